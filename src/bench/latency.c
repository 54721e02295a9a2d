/* SPDX-License-Identifier: BSD-3-Clause */
/* The latency method: one operation at a time, each timed, a gap behind each. Between the two
 * clock reads there is the operation and nothing else. */
#include "bench/bench.h"

#include <sched.h>

/* A look at the other end costs some hundred nanoseconds: this often is enough to notice. */
static const uint64_t look_ps = 100000000000;

struct pace {
    uint64_t gap, look, duration; /* in ticks */
    uint64_t looked;
};

/* Time passes between iterations: signs of life are exchanged, an interruption is noticed. */
static int between(struct run *run, struct pace *pace, uint64_t end)
{
    uint64_t now = end;
    do {
        if (now - pace->looked >= pace->look || (run->peer->stop && *run->peer->stop)) {
            int status = peer_alive(run->peer);
            if (status)
                return status;
            pace->looked = now;
        }
        if (!pace->gap)
            return 0;
        if (run->share_cpu)
            sched_yield();
        now = clock_read(&run->clock);
    } while (now - end < pace->gap);
    return 0;
}

static int timed(struct run *run, uint64_t *begin, uint64_t *end)
{
    const struct clock *clock = &run->clock;
    *begin = clock_read(clock);
    int status = run->op->once(run);
    *end = clock_read(clock);
    return status;
}

/* One iteration with all that --verify adds around it. */
static int verified(struct run *run, uint64_t number, uint64_t *begin, uint64_t *end)
{
    int status = run->op->mark(run, number);
    if (!status)
        status = timed(run, begin, end);
    return status ? status : run->op->check(run, number);
}

static void add(struct run *run, uint64_t ticks)
{
    uint64_t ps = clock_to_ps(&run->clock, ticks);
    ps = ps > run->clock.cost_ps ? ps - run->clock.cost_ps : 0;
    stats_add(run->stats, run->op->legs == 1 ? ps : ps / run->op->legs);
}

static int latency_run(struct run *run)
{
    const struct plan *plan = run->plan;
    struct pace pace = {.gap = clock_from_ps(&run->clock, plan->gap_us * 1000000),
                        .look = clock_from_ps(&run->clock, look_ps),
                        .duration = clock_from_ps(&run->clock, plan->duration_s * 1000000000000)};
    uint64_t begin = 0, end = 0, number = 0;
    pace.looked = clock_read(&run->clock);
    for (uint64_t i = 0; i < plan->warmup; i++, number++) {
        int status = plan->verify ? verified(run, number, &begin, &end) : timed(run, &begin, &end);
        if (status || (status = between(run, &pace, end)))
            return status;
    }
    uint64_t first = clock_read(&run->clock);
    for (uint64_t i = 0; plan->duration_s || i < plan->iters; i++, number++) {
        int status = plan->verify ? verified(run, number, &begin, &end) : timed(run, &begin, &end);
        if (status)
            return status;
        add(run, end - begin);
        if ((status = between(run, &pace, end)))
            return status;
        if (plan->duration_s && (pace.gap ? clock_read(&run->clock) : end) - first >= pace.duration)
            break;
    }
    return 0;
}

const struct method method_latency = {.name = "latency", .run = latency_run};
