/* SPDX-License-Identifier: BSD-3-Clause */
/* The latency method: one operation at a time, each timed, a gap after each. Between the two clock
 * reads there is the operation and nothing else; or, if asked for, several operations, each
 * complete before the next begins. */
#include "bench/run.h"

#include <math.h>
#include <sched.h>
#include <time.h>

/* A run with a duration is split into about this many intervals, none shorter than this. */
enum { BATCH = 64, INTERVALS = 100, PRINTED_PS = 1000 };
enum { SPIN_NS = 100000, LONGEST_NS = 50000000 };
static const uint64_t interval_ps = 10000000000;

/* Before the header: at most so many operations, of at most so many bytes, so far apart. */
enum { PREVIEWS = 51, PREVIEW_MAX_BYTES = 1 << 20 };
static const uint64_t preview_ns = 30000000, preview_gap_ns = 1000000;

struct pace {
    uint64_t gap;   /* in ticks */
    uint64_t count; /* iterations to do; and done */
    uint64_t done;
    struct interval open;
    size_t waiting;
    uint64_t ticks[BATCH]; /* samples not yet in the statistics */
};

/* ---- what was measured ---- */

static void lengthen(struct interval *i, const uint64_t *ps, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        i->min_ps = ps[k] < i->min_ps ? ps[k] : i->min_ps;
        i->max_ps = ps[k] > i->max_ps ? ps[k] : i->max_ps;
        i->sum_ps += (double)ps[k];
    }
    i->count += n;
}

/* Samples that are printed one by one are those that count, to the digit. */
static void flush(struct run *run, struct pace *pace)
{
    uint64_t ps[BATCH];
    uint64_t grain_ps = run->meter.stats->kept_room ? PRINTED_PS : 1;
    for (size_t i = 0; i < pace->waiting; i++)
        ps[i] = (meter_sample_ps(run, pace->ticks[i]) + grain_ps / 2) / grain_ps * grain_ps;
    stats_add(run->meter.stats, ps, pace->waiting);
    if (run->meter.interval)
        lengthen(&pace->open, ps, pace->waiting);
    pace->waiting = 0;
}

static void end_interval(struct run *run, struct pace *pace, uint64_t now)
{
    flush(run, pace);
    pace->open.end_ps = clock_to_ps(&run->meter.clock, now - run->meter.begin);
    series_add(&run->out.series, &pace->open, run->meter.stats);
    pace->open = (struct interval){.min_ps = UINT64_MAX};
    run->meter.reported = now;
}

/* ---- between two operations ---- */

static void tell_progress(struct run *run, const struct pace *pace, uint64_t now)
{
    struct run_output *out = &run->out;
    const struct meter *m = &run->meter;
    if (!out->report || !out->report->ops->progress || !pace->count)
        return;
    out->progress.size = run->size;
    out->progress.share = m->duration ? (double)(now - m->begin) / (double)m->duration
                                      : (double)pace->done / (double)pace->count;
    out->report->ops->progress(out->report, &out->progress);
}

/* TURN_ON, TURN_END or -errno. */
static int turn(struct run *run, struct pace *pace, uint64_t now)
{
    int what = meter_turn(run, now);
    if (what < 0)
        return what;
    if (run->meter.looked == now)
        tell_progress(run, pace, now);
    if (what != TURN_PAUSE)
        return what;
    end_interval(run, pace, now);
    meter_plan(&run->meter, now);
    return TURN_ON;
}

static inline bool due(const struct run *run, uint64_t now)
{
    const volatile sig_atomic_t *stop = run->session->peer->stop;
    return now >= run->meter.next || (stop && *stop);
}

/* Where waits sleep, so do gaps, up to shortly before their end, and never for long. */
static void sleep_gap(const struct run *run, uint64_t left)
{
    uint64_t left_ns = clock_to_ps(&run->meter.clock, left) / 1000;
    uint64_t ns = left_ns - SPIN_NS < LONGEST_NS ? left_ns - SPIN_NS : LONGEST_NS;
    struct timespec pause = {.tv_nsec = (long)ns};
    if (left_ns > 2UL * SPIN_NS)
        nanosleep(&pause, NULL);
}

/* The gap is real time: signs of life are exchanged in it, an interruption is noticed. */
static int wait_gap(struct run *run, struct pace *pace, uint64_t end)
{
    uint64_t now;
    while ((now = clock_read(&run->meter.clock)) - end < pace->gap) {
        int what = due(run, now) ? turn(run, pace, now) : TURN_ON;
        if (what != TURN_ON)
            return what;
        if (run->nap.on)
            sleep_gap(run, pace->gap - (now - end));
        else if (run->nap.yields)
            sched_yield();
    }
    return TURN_ON;
}

static inline int timed(struct run *run, uint64_t *begin, uint64_t *end)
{
    *begin = clock_read(&run->meter.clock);
    int status = run_once(run);
    *end = clock_read(&run->meter.clock);
    return status;
}

/* Several operations as one iteration. What the op needs before each is in the time, unless it can
 * do without. A long one may take a second: the other end must not be taken for lost meanwhile. */
static int timed_together(struct run *run, uint64_t number, uint64_t *begin, uint64_t *end)
{
    const struct op *op = run->op;
    uint64_t ops = run->spec->count.ops_per_sample;
    bool steps = op->traits & OP_STEPS && !(op->traits & OP_REPEATS),
         looks = run->size >= LONG_BYTES;
    int status = steps ? op->verify.before(run, number) : 0;
    *begin = clock_read(&run->meter.clock);
    for (uint64_t i = 0; i < ops && !status; i++) {
        status = run_once(run);
        if (i + 1 < ops && steps && !status)
            status = op->verify.before(run, number);
        if (looks && !status)
            status = peer_alive(run->session->peer);
        cpu_fence();
    }
    *end = clock_read(&run->meter.clock);
    return status;
}

/* One iteration with what the op, or verifying, needs around it. */
static int surrounded(struct run *run, uint64_t number, uint64_t *begin, uint64_t *end)
{
    const struct op_verify *verify = &run->op->verify;
    int status = verify->before ? verify->before(run, number) : 0;
    if (!status)
        status = timed(run, begin, end);
    return status || !run->verify || !verify->after ? status : verify->after(run, number);
}

/* How an iteration is made; NULL: of one operation alone. */
static int (*way_of(const struct run *run))(struct run *, uint64_t, uint64_t *, uint64_t *)
{
    if (run->spec->count.ops_per_sample > 1)
        return timed_together;
    return run->verify || run->op->traits & OP_STEPS ? surrounded : NULL;
}

/* Iterations number, number + 1, ... up to count, or until the duration has passed. */
static int iterate(struct run *run, struct pace *pace, uint64_t number, uint64_t count, bool keep)
{
    int (*way)(struct run *, uint64_t, uint64_t *, uint64_t *) = way_of(run);
    uint64_t begin = 0, end = 0;
    int what = TURN_ON;
    run->meter.begin = run->meter.reported = run->meter.looked = clock_read(&run->meter.clock);
    meter_plan(&run->meter, run->meter.begin);
    for (uint64_t i = 0; i < count && what == TURN_ON; i++) {
        int status = way ? way(run, number + i, &begin, &end) : timed(run, &begin, &end);
        if (status)
            return status;
        if (keep) {
            pace->ticks[pace->waiting++] = end - begin;
            if (pace->waiting == BATCH)
                flush(run, pace);
        }
        pace->done = i + 1;
        run->flight.number += run->spec->count.ops_per_sample;
        if (due(run, end))
            what = turn(run, pace, end);
        /* After the last iteration there is nothing to wait for. */
        if (pace->gap && what == TURN_ON && (!keep || i + 1 < count))
            what = wait_gap(run, pace, end);
    }
    return what < 0 ? what : 0;
}

/* From here on samples count. */
static void begin(struct run *run, struct pace *pace, uint64_t duration)
{
    const struct spec_count *count = &run->spec->count;
    uint64_t each_ps = count->duration_ms * 1000000000 / INTERVALS;
    pace->count = count->duration_ms || !count->iterations ? UINT64_MAX : count->iterations;
    run->meter.duration = duration;
    if (!duration)
        return;
    each_ps = each_ps < interval_ps ? interval_ps : each_ps;
    run->meter.interval = clock_from_ps(&run->meter.clock, each_ps);
    pace->open = (struct interval){.min_ps = UINT64_MAX};
}

/* Statistics are in picoseconds, not in ticks. */
static void fill(struct run *run)
{
    struct result *r = &run->out.result;
    struct interference now;
    r->us_per_unit = 1e-6;
    r->count = run->meter.stats->count * r->sampling.ops;
    r->bytes = r->count * run->size;
    r->final = r->count > 0;
    interference_now(&now);
    interference_add(&r->interference, &run->meter.before, &now);
    r->sampling.warmup = run->spec->count.warmup;
    meter_judge(run);
}

static int initiate(struct run *run)
{
    const struct spec *spec = run->spec;
    uint64_t duration = run->meter.duration;
    struct pace pace = {.gap = clock_from_ps(&run->meter.clock, spec->pace.gap_ns * 1000)};
    run->meter.duration = run->meter.interval = 0;
    int status = iterate(run, &pace, 0, spec->count.warmup, false);
    if (!status)
        status = meter_until_all(run, NULL);
    if (status)
        return status;
    begin(run, &pace, duration);
    status = iterate(run, &pace, spec->count.warmup, pace.count, true);
    if (run->meter.interval)
        end_interval(run, &pace, clock_read(&run->meter.clock));
    flush(run, &pace);
    fill(run);
    return status;
}

/* ---- before the header ---- */

/* The gap of the run, or as much of it as makes an operation as cold as it will be. */
static void preview_gap(const struct run *run)
{
    uint64_t gap_ns = run->spec->pace.gap_ns;
    gap_ns = gap_ns < preview_gap_ns ? gap_ns : preview_gap_ns;
    for (uint64_t since_ns = clock_ns(); clock_ns() - since_ns < gap_ns;)
        if (run->nap.yields)
            sched_yield();
}

/* As it will be in the run, but not verified. */
static int preview_one(struct run *run, uint64_t number, uint64_t *begin, uint64_t *end)
{
    if (run->spec->count.ops_per_sample > 1)
        return timed_together(run, number, begin, end);
    int status = run->op->traits & OP_STEPS ? run->op->verify.before(run, number) : 0;
    return status ? status : timed(run, begin, end);
}

/* The median of a few operations of the smallest size, to weigh the clock's cost against. */
static int preview(struct run *run, double *median_ps)
{
    uint64_t since_ns = clock_ns(), begin, end;
    int status = 0;
    *median_ps = 0;
    if (run->size > PREVIEW_MAX_BYTES)
        return 0;
    for (uint64_t i = 0; i < PREVIEWS && !status && clock_ns() - since_ns < preview_ns; i++) {
        status = preview_one(run, i, &begin, &end);
        if (status)
            break;
        uint64_t ps = meter_sample_ps(run, end - begin);
        stats_add(run->meter.stats, &ps, 1);
        preview_gap(run);
    }
    *median_ps = stats_median_ps(run->meter.stats);
    return status;
}

/* ---- the other end ---- */

static int respond(struct run *run)
{
    uint64_t count;
    bool echoes = run->op->target.echo && !run->session->facts.alone;
    return run_serve(run, echoes ? run->op->target.echo : run_progress(run), &count);
}

/* ---- the table ---- */

/* Divided: a product with 1e-6 would round what ends in 5 to the other side. */
static const double ps_per_us = 1e6;

static double least(const struct result *r)
{
    return (double)r->stats->min_ps / ps_per_us;
}

static double most(const struct result *r)
{
    return (double)r->stats->max_ps / ps_per_us;
}

static double mean(const struct result *r)
{
    return r->stats->mean_ps / ps_per_us;
}

static double deviation(const struct result *r)
{
    return stats_deviation_ps(r->stats) / ps_per_us;
}

static const struct column columns[] = {{.title = "Min[us]", .value = least},
                                        {.title = "Max[us]", .value = most},
                                        {.title = "Mean[us]", .value = mean},
                                        {.title = "StdDev[us]", .value = deviation, .spread = true},
                                        {0}};

static const char *samples(const struct spec *spec)
{
    (void)spec;
    return "latency";
}

static int check(const struct spec *spec, const struct op *op)
{
    return op->legs ? 0
                    : fail(-EINVAL, "%s has no latency of its own: its completion says nothing",
                           op_called(spec));
}

const struct method method_latency = {.name = "latency",
                                      .subtracts = true,
                                      .columns = columns,
                                      .samples = samples,
                                      .check = check,
                                      .preview = preview,
                                      .initiate = initiate,
                                      .respond = respond};
