/* SPDX-License-Identifier: BSD-3-Clause */
/* Clocks: calibration of the cycle counter, and the cost of reading a clock. The counter is
 * calibrated once per process because that takes 100 ms; later opens share it. */
#include "core/clock.h"
#include "core/core.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

enum { CALIBRATE_MS = 100, COST_PAIRS = 1000, STEP_PAIRS = 1000, WORK = 32 };
static const uint64_t step_ps_at_most = 10000000000; /* to look for the step */
static const double calibration_tolerance = 1e-3;

static uint64_t now_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

uint64_t clock_ns(void)
{
    return now_ns(CLOCK_MONOTONIC);
}

uint64_t clock_cpu_ns(void)
{
    return now_ns(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t clock_ms(void)
{
    return clock_ns() / 1000000;
}

static bool cycles_invariant(void)
{
#if defined(__x86_64__)
    unsigned a, b, c, d;
    return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & 1U << 8);
#else
    return CLOCK_HAS_CYCLES;
#endif
}

/* One instant on both clocks, from the narrowest of several attempts. */
static void both_clocks(uint64_t *ticks, uint64_t *raw_ns)
{
    uint64_t narrowest = UINT64_MAX;
    *ticks = *raw_ns = 0;
    for (int i = 0; i < 20; i++) {
        uint64_t before = clock_raw_ns();
        uint64_t between = clock_cycles();
        uint64_t after = clock_raw_ns();
        if (after - before < narrowest) {
            narrowest = after - before;
            *ticks = between;
            *raw_ns = before + narrowest / 2;
        }
    }
}

static double shared_ps_per_tick;

static void calibrate(void)
{
    uint64_t ticks0, ns0, ticks1, ns1;
    struct timespec rest = {.tv_nsec = CALIBRATE_MS * 1000000L};
    both_clocks(&ticks0, &ns0);
    do {
        nanosleep(&rest, NULL);
        both_clocks(&ticks1, &ns1);
    } while (ns1 - ns0 < UINT64_C(1000000) * CALIBRATE_MS);
    shared_ps_per_tick = (double)(ns1 - ns0) * 1000 / (double)(ticks1 - ticks0);
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* The mean of the middle half of all pairs. If the counter advances in coarse steps, the median
 * jumps between two steps; this mean does not, and equals the median if the steps are fine. */
static double cost_ticks(const struct clock *clock)
{
    uint64_t pair[COST_PAIRS], sum = 0;
    for (int i = 0; i < COST_PAIRS; i++) {
        uint64_t before = clock_read(clock);
        pair[i] = clock_read(clock) - before;
    }
    qsort(pair, COST_PAIRS, sizeof pair[0], by_value);
    int first = COST_PAIRS / 4, end = COST_PAIRS - first;
    for (int i = first; i < end; i++)
        sum += pair[i];
    return (double)sum / (end - first);
}

/* Differences between reads that are some work apart, each at least one step, ascending; how many.
 * The work differs, so that a fine clock shows many differences. */
static int differences(const struct clock *clock, uint64_t *found)
{
    uint64_t since = clock_read(clock), most = clock_from_ps(clock, step_ps_at_most);
    int n = 0;
    while (n < STEP_PAIRS) {
        uint64_t before = clock_read(clock), after;
        for (volatile int work = n % WORK; work > 0; work--)
            continue;
        do
            after = clock_read(clock);
        while (after == before);
        found[n++] = after - before;
        if (after - since > most)
            break;
    }
    qsort(found, (size_t)n, sizeof found[0], by_value);
    return n;
}

/* The clock's step: how far apart its differences are. Those of one step may differ by a tick,
 * because a step need not be a whole number of ticks; more neighbours are from a clock that counts
 * every tick. The longest ones, and rare ones, are of interruptions. */
static double step_ticks(const struct clock *clock)
{
    uint64_t found[STEP_PAIRS];
    int n = differences(clock, found), use = n - n / 10;
    double step = 0, last = 0;
    for (int first = 0, end; first < use; first = end) {
        double sum = (double)found[first];
        for (end = first + 1; end < use && found[end] - found[end - 1] <= 1; end++)
            sum += (double)found[end];
        double mean = sum / (end - first);
        if (end - first < use / 100)
            continue;
        if (found[end - 1] - found[first] > 1)
            return 1;
        if (!last || mean - last < step)
            step = mean - last;
        last = mean;
    }
    return step;
}

int clock_open(struct clock *clock, enum clock_kind kind)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    *clock = (struct clock){.kind = kind, .ps_per_tick = 1000};
    if (kind == CLOCK_CYCLES) {
        if (!cycles_invariant())
            return fail(-ENOTSUP, "clock cycles: this CPU's counter does not run at a constant "
                                  "rate; use clock_gettime");
        pthread_once(&once, calibrate);
        clock->ps_per_tick = shared_ps_per_tick;
    }
    clock->cost_ps = (uint64_t)(cost_ticks(clock) * clock->ps_per_tick + 0.5);
    clock->step_ps = (uint64_t)(step_ticks(clock) * clock->ps_per_tick + 0.5);
    both_clocks(&clock->first_ticks, &clock->first_raw_ns);
    return 0;
}

int clock_check(const struct clock *clock)
{
    uint64_t ticks, raw_ns;
    if (clock->kind != CLOCK_CYCLES)
        return 0;
    both_clocks(&ticks, &raw_ns);
    /* Too little time has passed for a comparison. */
    if (raw_ns - clock->first_raw_ns < 1000000)
        return 0;
    double now =
        (double)(raw_ns - clock->first_raw_ns) * 1000 / (double)(ticks - clock->first_ticks);
    if (fabs(now / clock->ps_per_tick - 1) > calibration_tolerance)
        return fail(-ERANGE,
                    "clock cycles: calibrated at %.6f GHz, but %.6f GHz over the run: the "
                    "counter's frequency changed",
                    1000 / clock->ps_per_tick, 1000 / now);
    return 0;
}
