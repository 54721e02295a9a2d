/* SPDX-License-Identifier: BSD-3-Clause */
/* A door of core: clocks. Samples are timed in ticks of a struct clock; deadlines by clock_ms. */
#ifndef WEFT_CLOCK_H
#define WEFT_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

enum clock_kind { CLOCK_GETTIME = 1, CLOCK_CYCLES = 2 };

struct clock {
    enum clock_kind kind;
    double ps_per_tick;
    uint64_t cost_ps;                   /* the clock's own cost: two reads back to back */
    uint64_t step_ps;                   /* the smallest amount by which it advances */
    uint64_t first_ticks, first_raw_ns; /* for the check of the calibration */
};

/* Prepares a clock and measures its cost and its step. Cycles are calibrated against MONOTONIC_RAW
 * for 100 ms, once per process; -ENOTSUP if the CPU's counter is not invariant. */
int clock_open(struct clock *clock, enum clock_kind kind);

/* Compares the calibration with the rate since clock_open. -ERANGE and an error message if they
 * differ by more than 0.1 %. */
int clock_check(const struct clock *clock);

/* Now, for deadlines: never goes back, not for samples. */
uint64_t clock_ms(void);
uint64_t clock_ns(void);

/* CPU time that this thread has used. */
uint64_t clock_cpu_ns(void);

static inline uint64_t clock_raw_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_RAW, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

#if defined(__x86_64__)
#define CLOCK_HAS_CYCLES 1
static inline uint64_t clock_cycles(void)
{
    uint32_t low, high;
    __asm__ volatile("lfence\n\trdtsc\n\tlfence" : "=a"(low), "=d"(high) : : "memory");
    return (uint64_t)high << 32 | low;
}
#elif defined(__aarch64__)
#define CLOCK_HAS_CYCLES 1
static inline uint64_t clock_cycles(void)
{
    uint64_t ticks;
    __asm__ volatile("isb\n\tmrs %0, cntvct_el0\n\tisb" : "=r"(ticks) : : "memory");
    return ticks;
}
#else
#define CLOCK_HAS_CYCLES 0
static inline uint64_t clock_cycles(void)
{
    return clock_raw_ns();
}
#endif

/* A read that the CPU may reorder with its neighbours: for many consecutive intervals without gaps,
 * where an error of one is corrected in the next. */
static inline uint64_t clock_read_unfenced(const struct clock *clock)
{
#if defined(__x86_64__)
    return clock->kind == CLOCK_CYCLES ? __builtin_ia32_rdtsc() : clock_raw_ns();
#elif defined(__aarch64__)
    uint64_t ticks;
    if (clock->kind != CLOCK_CYCLES)
        return clock_raw_ns();
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    (void)clock;
    return clock_raw_ns();
#endif
}

/* One read, in ticks of this clock. */
static inline uint64_t clock_read(const struct clock *clock)
{
    return clock->kind == CLOCK_CYCLES ? clock_cycles() : clock_raw_ns();
}

static inline uint64_t clock_to_ps(const struct clock *clock, uint64_t ticks)
{
    /* Signed, because that conversion is one instruction. */
    return (uint64_t)(int64_t)((double)(int64_t)ticks * clock->ps_per_tick + 0.5);
}

/* An interval between two reads that is shorter than this says nothing: the clock's own cost, or
 * its steps, are most of it. */
static inline uint64_t clock_least_ps(const struct clock *clock)
{
    uint64_t steps = 3 * clock->step_ps, costs = 2 * clock->cost_ps;
    return steps > costs ? steps : costs;
}

/* How many ticks last at least this long. */
static inline uint64_t clock_from_ps(const struct clock *clock, uint64_t ps)
{
    double ticks = (double)ps / clock->ps_per_tick;
    uint64_t whole = (uint64_t)ticks;
    return whole + ((double)whole < ticks);
}

/* What was begun before ends before what comes after it begins. */
static inline void cpu_fence(void)
{
#if defined(__x86_64__)
    __asm__ volatile("lfence" : : : "memory");
#elif defined(__aarch64__)
    __asm__ volatile("dsb ish\n\tisb" : : : "memory");
#else
    __sync_synchronize();
#endif
}

static inline void cpu_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#endif
