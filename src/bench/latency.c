/* SPDX-License-Identifier: BSD-3-Clause */
/* The latency method: one operation at a time, each timed, a gap behind each. Between the two
 * clock reads there is the operation and nothing else. */
#include "bench/bench.h"
#include "core/clock.h"

#include <sched.h>

/* A look at the other end costs some hundred nanoseconds: this often is enough to notice. */
static const uint64_t look_ps = 100000000000;

/* A run of some duration is told in intervals: about so many, and none shorter than this. */
enum { BATCH = 64, INTERVALS = 100 };
static const uint64_t interval_ps = 10000000000;

struct pace {
    uint64_t gap, look, duration; /* in ticks */
    uint64_t looked, first;
    uint64_t alive, asked;             /* how often to look at the other end; when it was */
    uint64_t interval, interval_begun; /* 0: the run is not told in intervals */
    uint64_t count, done;              /* iterations */
    struct interval open;
    size_t waiting;
    uint64_t ticks[BATCH]; /* samples not yet in the statistics */
};

/* ---- what was measured ---- */

static void lengthen(struct interval *s, const uint64_t *ps, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        s->min_ps = ps[i] < s->min_ps ? ps[i] : s->min_ps;
        s->max_ps = ps[i] > s->max_ps ? ps[i] : s->max_ps;
        s->sum_ps += (double)ps[i];
    }
    s->count += n;
}

/* Clock cost out, round trips halved. */
static void flush(struct run *run, struct pace *pace)
{
    uint64_t ps[BATCH];
    for (size_t i = 0; i < pace->waiting; i++)
        ps[i] = run_sample(run, pace->ticks[i]);
    stats_add(run->stats, ps, pace->waiting);
    if (pace->interval)
        lengthen(&pace->open, ps, pace->waiting);
    pace->waiting = 0;
}

static void end_interval(struct run *run, struct pace *pace, uint64_t now)
{
    flush(run, pace);
    pace->open.end_ps = clock_to_ps(&run->clock, now - pace->first);
    series_add(&run->series, &pace->open);
    pace->open = (struct interval){.min_ps = UINT64_MAX};
    pace->interval_begun = now;
}

/* ---- between two operations ---- */

static void tell_progress(struct run *run, const struct pace *pace, uint64_t now)
{
    struct report *report = run->request->report;
    if (!report->ops->progress || !pace->count)
        return;
    run->progress.size = run->size;
    run->progress.share = pace->duration ? (double)(now - pace->first) / (double)pace->duration
                                         : (double)pace->done / (double)pace->count;
    report->ops->progress(report, &run->progress);
}

static int look(struct run *run, struct pace *pace, uint64_t now)
{
    pace->looked = now;
    if (pace->interval && now - pace->interval_begun >= pace->interval)
        end_interval(run, pace, now);
    if (now - pace->asked < pace->alive && !(run->peer->stop && *run->peer->stop))
        return 0;
    pace->asked = now;
    tell_progress(run, pace, now);
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
    uint64_t begin = 0, end = 0;
    pace->first = pace->interval_begun = pace->looked = clock_read(&run->clock);
    for (uint64_t i = 0; i < count; i++) {
        int status = more ? surrounded(run, number + i, &begin, &end) : timed(run, &begin, &end);
        if (status)
            return status;
        if (keep) {
            pace->ticks[pace->waiting++] = end - begin;
            if (pace->waiting == BATCH)
                flush(run, pace);
        }
        pace->done = i + 1;
        if (due(run, pace, end) && (status = look(run, pace, end)))
            return status;
        if (pace->gap && (status = wait_gap(run, pace, end)))
            return status;
        if (keep && pace->duration &&
            (pace->gap ? clock_read(&run->clock) : end) - pace->first >= pace->duration)
            break;
    }
    return 0;
}

/* From here on samples count. */
static void begin(struct run *run, struct pace *pace)
{
    uint64_t duration_ps = run->plan->duration_s * 1000000000000, each_ps = duration_ps / INTERVALS;
    pace->count = run->plan->duration_s ? UINT64_MAX : run->plan->iters;
    if (!duration_ps)
        return;
    each_ps = each_ps < interval_ps ? interval_ps : each_ps;
    pace->interval = clock_from_ps(&run->clock, each_ps);
    pace->look = pace->interval < pace->look ? pace->interval : pace->look;
    pace->open = (struct interval){.min_ps = UINT64_MAX};
}

static int latency_run(struct run *run)
{
    const struct plan *plan = run->plan;
    uint64_t now = clock_read(&run->clock), look = clock_from_ps(&run->clock, look_ps);
    struct pace pace = {.gap = clock_from_ps(&run->clock, plan->gap_us * 1000000),
                        .look = look,
                        .alive = look,
                        .duration = clock_from_ps(&run->clock, plan->duration_s * 1000000000000),
                        .looked = now,
                        .asked = now};
    int status = iterate(run, &pace, 0, plan->warmup, false);
    if (status)
        return status;
    begin(run, &pace);
    status = iterate(run, &pace, plan->warmup, pace.count, true);
    if (pace.interval)
        end_interval(run, &pace, clock_read(&run->clock));
    flush(run, &pace);
    return status;
}

const struct method method_latency = {.name = "latency", .run = latency_run};
