/* SPDX-License-Identifier: BSD-3-Clause */
/* The latency method: one operation at a time, each timed, a gap behind each. Between the two
 * clock reads there is the operation and nothing else. */
#include "bench/bench.h"

#include <sched.h>

/* A look at the other end costs some hundred nanoseconds: this often is enough to notice. */
static const uint64_t look_ps = 100000000000;

enum { BATCH = 64 };

struct pace {
    uint64_t gap, look, duration; /* in ticks */
    uint64_t looked;
    size_t waiting;
    uint64_t ticks[BATCH]; /* samples not yet in the statistics */
};

/* Clock cost out, round trips halved. */
static void flush(struct run *run, struct pace *pace)
{
    uint64_t ps[BATCH];
    for (size_t i = 0; i < pace->waiting; i++)
        ps[i] = run_sample(run, pace->ticks[i]);
    stats_add(run->stats, ps, pace->waiting);
    pace->waiting = 0;
}

static int look(struct run *run, struct pace *pace, uint64_t now)
{
    pace->looked = now;
    return peer_alive(run->peer);
}

static inline bool due(const struct run *run, const struct pace *pace, uint64_t now)
{
    return now - pace->looked >= pace->look || (run->peer->stop && *run->peer->stop);
}

/* The gap is real time: signs of life are exchanged in it, an interruption is noticed. */
static int wait_gap(struct run *run, struct pace *pace, uint64_t end)
{
    uint64_t now;
    while ((now = clock_read(&run->clock)) - end < pace->gap) {
        int status = due(run, pace, now) ? look(run, pace, now) : 0;
        if (status)
            return status;
        if (run->share_cpu)
            sched_yield();
    }
    return 0;
}

static inline int timed(struct run *run, uint64_t *begin, uint64_t *end)
{
    *begin = clock_read(&run->clock);
    int status = run->op->once(run);
    *end = clock_read(&run->clock);
    return status;
}

/* One iteration with what the op, or --verify, needs around it. */
static int surrounded(struct run *run, uint64_t number, uint64_t *begin, uint64_t *end)
{
    int status = run->op->before(run, number);
    if (!status)
        status = timed(run, begin, end);
    return status || !run->plan->verify ? status : run->op->after(run, number);
}

/* Iterations number, number + 1, ... up to count, or until the duration has passed. */
static int iterate(struct run *run, struct pace *pace, uint64_t number, uint64_t count, bool keep)
{
    bool more = run->plan->verify || run->op->steps;
    uint64_t begin = 0, end = 0, first = clock_read(&run->clock);
    for (uint64_t i = 0; i < count; i++) {
        int status = more ? surrounded(run, number + i, &begin, &end) : timed(run, &begin, &end);
        if (status)
            return status;
        if (keep) {
            pace->ticks[pace->waiting++] = end - begin;
            if (pace->waiting == BATCH)
                flush(run, pace);
        }
        if (due(run, pace, end) && (status = look(run, pace, end)))
            return status;
        if (pace->gap && (status = wait_gap(run, pace, end)))
            return status;
        if (keep && pace->duration &&
            (pace->gap ? clock_read(&run->clock) : end) - first >= pace->duration)
            break;
    }
    return 0;
}

static int latency_run(struct run *run)
{
    const struct plan *plan = run->plan;
    struct pace pace = {.gap = clock_from_ps(&run->clock, plan->gap_us * 1000000),
                        .look = clock_from_ps(&run->clock, look_ps),
                        .duration = clock_from_ps(&run->clock, plan->duration_s * 1000000000000),
                        .looked = clock_read(&run->clock)};
    int status = iterate(run, &pace, 0, plan->warmup, false);
    if (!status)
        status =
            iterate(run, &pace, plan->warmup, plan->duration_s ? UINT64_MAX : plan->iters, true);
    flush(run, &pace);
    return status;
}

const struct method method_latency = {.name = "latency", .run = latency_run};
