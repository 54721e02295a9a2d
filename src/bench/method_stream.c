/* SPDX-License-Identifier: BSD-3-Clause */
/* The stream method: one operation after the other, as many under way as are allowed. The clock
 * runs from the first post until everything is confirmed, and stops for reports alone; what counts
 * is what the other end has. */
#include "bench/run.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Completions are waited for where they come late by nature; what is copied at once has as much
 * room as the fabric gives. */
static unsigned most_pending(const struct run *run)
{
    const struct spec *spec = run->spec;
    uint64_t asked = spec->pace.outstanding, depth = run->session->facts.depth;
    bool late = run->op->traits & (OP_RETURNS | OP_AUTOMATIC) || spec->amo.fetching;
    if (run->verify)
        return 0;
    if (spec->data.layout && spec->data.layout - 1 != LAYOUT_ZCOPY && !late)
        asked = depth;
    return (unsigned)(asked > depth ? depth : asked) - 1;
}

static int stop_clock(struct run *run, uint64_t first, bool final)
{
    int status = flight_settle(run);
    return status ? status : meter_report(run, run->flight.number - first, final);
}

/* After the last operation the final report is due, and in the warm-up nothing is reported. */
static int turn(struct run *run, uint64_t now, uint64_t first, bool more)
{
    int what = meter_turn(run, now);
    if (what != TURN_PAUSE)
        return what;
    return more ? stop_clock(run, first, false) : TURN_ON;
}

/* With verify: one at a time, and looked at. */
static int checked_post(struct run *run)
{
    const struct op_verify *verify = &run->op->verify;
    uint64_t number = run->flight.number;
    int status = verify->before ? verify->before(run, number) : 0;
    if (!status)
        status = flight_post(run);
    if (status)
        return status;
    run->flight.number++;
    status = flight_until(run, 0, 0);
    return !status && verify->after ? verify->after(run, number) : status;
}

/* What a call that was not done at once leaves to do: then as few are under way as allowed. */
static int settle(struct run *run, int got, unsigned pending)
{
    int status = flight_post_slowly(run, got);
    if (status)
        return status;
    run->flight.number++;
    return run->flight.pending > pending ? flight_until(run, pending, UINT64_MAX) : 0;
}

/* Samples wait for their buckets: one by one, each would hold up the next clock read. An operation
 * of less than 100 ns is not timed alone, because reading the clock and keeping the sample would
 * slow down what is measured: then a sample is the mean of as many as last about 1 us. The first
 * ones are timed alone, to see which it is. */
enum { TRIAL = 1024, BATCH = 64 };
static const double short_ps = 100000, sample_ps = 1000000, least_ps = 1000;

struct batch {
    size_t count, room;
    uint64_t ops; /* per sample */
    uint64_t ticks[TRIAL];
};

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Operations per sample, by the last of the first ones: by then there are as many under way as may
 * be. Of those the middle half, because a clock of coarse steps has no finer median. */
static uint64_t choose_ops(const struct run *run, const struct batch *b)
{
    uint64_t last[TRIAL / 4], sum = 0;
    size_t n = (b->count + 3) / 4, first = n / 4, end = n - first;
    memcpy(last, b->ticks + b->count - n, n * sizeof last[0]);
    qsort(last, n, sizeof last[0], by_value);
    for (size_t i = first; i < end; i++)
        sum += last[i];
    double each_ps = (double)sum / (double)(end - first) * run->meter.clock.ps_per_tick;
    if (each_ps >= short_ps)
        return 1;
    return (uint64_t)(sample_ps / (each_ps > least_ps ? each_ps : least_ps));
}

/* Of so many operations, as ticks of a whole sample. */
static uint64_t whole(const struct batch *b, uint64_t ticks, uint64_t ops)
{
    return ops == b->ops ? ticks : ticks * b->ops / ops;
}

static void end_trial(struct run *run, struct batch *b)
{
    size_t samples = 0, n = b->count;
    b->room = BATCH;
    b->ops = choose_ops(run, b);
    run->out.result.sampling.ops = b->ops;
    run->out.result.us_per_unit /= (double)b->ops;
    for (size_t at = 0; b->ops > 1 && at < n; at += b->ops) {
        uint64_t ticks = 0, ops = n - at < b->ops ? n - at : b->ops;
        for (size_t i = 0; i < ops; i++)
            ticks += b->ticks[at + i];
        b->ticks[samples++] = whole(b, ticks, ops);
    }
    b->count = samples ? samples : n;
}

static void put_away(struct run *run, struct batch *b, bool keep)
{
    uint64_t *buckets = run->meter.stats->buckets;
    if (keep && b->count && b->room == TRIAL)
        end_trial(run, b);
    for (size_t i = 0; keep && i < b->count; i++)
        buckets[stats_bucket(b->ticks[i])]++;
    b->count = 0;
}

/* The loop itself, where most operations are done when the call returns. */
static int plain(struct run *run, uint64_t ops, unsigned pending)
{
    int (*post)(struct fabric * fabric, const struct xfer *xfer) = run->verb;
    struct fabric *handle = run->handle;
    const struct xfer *xfer = &run->xfer;
    uint64_t done = 0;
    int status = 0;
    for (uint64_t i = 0; i < ops && !status; i++) {
        int got = post(handle, xfer);
        if (got == DONE)
            done++;
        else
            status = settle(run, got, pending);
    }
    run->flight.number += done;
    return status;
}

/* Messages that are acknowledged, each with its number: no more than the window are on their way.
 */
static int windowed(struct run *run, uint64_t ops, unsigned pending)
{
    int (*post)(struct fabric * fabric, const struct xfer *xfer) = run->verb;
    struct fabric *handle = run->handle;
    struct inflight *f = &run->flight;
    uint64_t window = run->spec->pace.window;
    int status = 0;
    while (ops && !status) {
        uint64_t room = window - (f->number - f->acked), burst = ops < room ? ops : room;
        ops -= burst;
        while (burst-- && !status) {
            run->xfer.header = f->number + 1;
            int got = post(handle, &run->xfer);
            if (got == DONE)
                f->number++;
            else
                status = settle(run, got, pending);
        }
        if (!status && f->number - f->acked >= window)
            status = flight_until(run, UINT32_MAX, window - 1);
    }
    return status;
}

/* With verify, and operations of several steps. */
static int careful(struct run *run, uint64_t ops, unsigned pending)
{
    int status = 0;
    for (uint64_t i = 0; i < ops && !status; i++)
        status = run->verify ? checked_post(run) : settle(run, run_post(run), pending);
    return status;
}

static int iterate(struct run *run, uint64_t count, bool keep)
{
    struct meter *m = &run->meter;
    struct inflight *f = &run->flight;
    struct batch b = {.room = TRIAL, .ops = 1};
    uint64_t first = f->number, left;
    unsigned pending = most_pending(run);
    int (*loop)(struct run * run, uint64_t ops, unsigned pending) = run->verify || run->op->post
                                                                        ? careful
                                                                    : f->ack.local ? windowed
                                                                                   : plain;
    int what = TURN_ON;
    meter_start(run);
    uint64_t before = m->begin;
    while ((left = count - (f->number - first)) && what == TURN_ON) {
        uint64_t ops = left < b.ops ? left : b.ops;
        what = loop(run, ops, pending);
        if (what)
            break;
        uint64_t now = clock_read_unfenced(&m->clock);
        b.ticks[b.count++] = whole(&b, now - before, ops);
        before = now;
        bool due = now >= m->next;
        if (due || b.count == b.room)
            put_away(run, &b, keep);
        if (due)
            what = turn(run, now, first, keep && f->number - first < count);
        /* What is not an operation is not in a sample, unless operations went on meanwhile. */
        if (due || (!b.count && !f->pending))
            before = clock_read_unfenced(&m->clock);
    }
    put_away(run, &b, keep);
    return what < 0 ? what : 0;
}

static int initiate(struct run *run)
{
    struct inflight *f = &run->flight;
    uint64_t most = run->spec->count.iterations ? run->spec->count.iterations : UINT64_MAX;
    int status = meter_warm_up(run, iterate);
    if (!status)
        status = meter_until_all(run, iterate);
    if (!status)
        status = flight_settle(run);
    if (status)
        return status;
    uint64_t first = f->number;
    status = iterate(run, most, true);
    if (!status)
        status = stop_clock(run, first, true);
    if (!status)
        status = meter_until_all(run, iterate);
    if (!status)
        return flight_settle(run);
    if (status != -EINTR)
        return status;
    uint64_t got = f->ack.local                  ? f->acked
                   : run->xfer.how & HINT(LOCAL) ? first + run->meter.done
                                                 : f->number - f->pending;
    meter_report(run, got > first ? got - first : 0, true);
    return fail(status, "interrupted");
}

/* ---- the other end ---- */

static int respond(struct run *run)
{
    uint64_t count;
    int status = run_serve(run, run_progress(run), &count);
    if (!status && run->flight.ack.local && count != run->flight.arrivals)
        status = fail(-EPROTO, "%" PRIu64 " messages were sent, %" PRIu64 " came", count,
                      run->flight.arrivals);
    return status;
}

/* Of one at a time that brings something back, the time between two posts is its latency. */
static const char *samples(const struct spec *spec)
{
    bool returns = op_of(spec)->traits & OP_RETURNS || spec->amo.fetching;
    bool alone = spec->pace.outstanding == 1 || spec->data.verify;
    return returns && alone ? "latency" : "overhead";
}

static int check(const struct spec *spec, const struct op *op)
{
    return op->traits & OP_STREAMS
               ? 0
               : fail(-EINVAL, "%s has no stream: every message waits for its answer",
                      op_called(spec));
}

static bool answered(const struct op *op)
{
    return op->traits & OP_NEEDS_ACK;
}

const struct method method_stream = {.name = "stream",
                                     .both_ways = "stream both ways",
                                     .ucx = true,
                                     .rests = true,
                                     .legs = 1,
                                     .samples = samples,
                                     .check = check,
                                     .answered = answered,
                                     .initiate = initiate,
                                     .respond = respond};
