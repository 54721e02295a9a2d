/* SPDX-License-Identifier: BSD-3-Clause */
/* The stream method: one operation after the other, as many under way as are allowed. What counts
 * is what the other end has: before the clock is stopped, everything under way is waited for. */
#include "bench/run.h"

#include <inttypes.h>

/* Completions are waited for where they come late by nature; what is copied at once has as much
 * room as the fabric gives. */
static unsigned most_pending(const struct run *run)
{
    const struct spec *spec = run->spec;
    uint64_t asked = spec->pace.outstanding, depth = run->session->facts.depth;
    bool returns = run->op->traits & OP_RETURNS || spec->amo.fetching;
    if (run->verify)
        return 0;
    if (spec->data.layout - 1 != LAYOUT_ZCOPY && !returns)
        asked = depth;
    return (unsigned)(asked > depth ? depth : asked) - 1;
}

static int stop_clock(struct run *run, uint64_t first, bool final)
{
    int status = flight_until(run, 0, 0);
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

/* One more message, as far as the window allows. */
static inline int next(struct run *run, unsigned pending, uint64_t window)
{
    struct inflight *f = &run->flight;
    run->xfer.header = f->number + 1;
    int got = run_post(run);
    if (got == DONE)
        f->number++;
    else if ((got = settle(run, got, pending)))
        return got;
    return f->ack.local && f->number - f->acked >= window
               ? flight_until(run, UINT32_MAX, window - 1)
               : 0;
}

/* Samples wait for their buckets: one by one, each would hold up the next clock read. Where nothing
 * is under way between two operations they wait long, and the clock stands still meanwhile;
 * otherwise they go in small batches. */
enum { SMALL = 64, LARGE = 4096 };

struct batch {
    size_t count;
    uint64_t ticks[LARGE];
};

static void empty(struct batch *b, uint64_t *buckets)
{
    for (size_t i = 0; buckets && i < b->count; i++)
        buckets[stats_bucket(b->ticks[i])]++;
    b->count = 0;
}

/* The loop itself, where most operations are done when the call returns: until the batch is full or
 * it is time to look up. */
static int burst(struct run *run, uint64_t count, unsigned pending, struct batch *b,
                 uint64_t *before)
{
    int (*post)(struct fabric * fabric, const struct xfer *xfer) = run->verb;
    struct fabric *handle = run->handle;
    const struct xfer *xfer = &run->xfer;
    const struct clock clock = run->meter.clock;
    uint64_t last = *before, next_look = run->meter.next;
    size_t at = b->count, room = LARGE - at, end = at + (count < room ? count : room);
    while (at < end) {
        int got = post(handle, xfer);
        if (got == DONE)
            run->flight.number++;
        else if ((got = settle(run, got, pending))) {
            b->count = at;
            return got;
        }
        uint64_t now = clock_read_unfenced(&clock);
        b->ticks[at++] = now - last;
        last = now;
        if (now >= next_look || (run->flight.pending && at >= SMALL))
            break;
    }
    b->count = at;
    *before = last;
    return 0;
}

/* One by one: with verify, with acknowledgements, and operations of several steps. */
static inline int single(struct run *run, unsigned pending, struct batch *b, uint64_t *before)
{
    int status = run->verify ? checked_post(run) : next(run, pending, run->spec->pace.window);
    if (status)
        return status;
    uint64_t now = clock_read_unfenced(&run->meter.clock);
    b->ticks[b->count++] = now - *before;
    *before = now;
    return 0;
}

static int iterate(struct run *run, uint64_t count, bool keep)
{
    struct meter *m = &run->meter;
    struct inflight *f = &run->flight;
    struct batch samples;
    samples.count = 0;
    uint64_t first = f->number;
    uint64_t *buckets = keep ? m->stats->buckets : NULL;
    unsigned pending = most_pending(run);
    bool simple = !run->verify && !f->ack.local && !run->op->post;
    int what = TURN_ON;
    meter_start(run);
    uint64_t before = m->begin;
    while (f->number - first < count && what == TURN_ON) {
        int status = simple ? burst(run, count - (f->number - first), pending, &samples, &before)
                            : single(run, pending, &samples, &before);
        if (status) {
            what = status;
            break;
        }
        bool due = before >= m->next, still = simple && !f->pending;
        if (still)
            meter_stop(run);
        if (due || samples.count >= SMALL)
            empty(&samples, buckets);
        if (still) {
            meter_go_on(run);
            before = m->begin;
        }
        if (due) {
            what = turn(run, before, first, keep && f->number - first < count);
            before = clock_read_unfenced(&m->clock);
        }
    }
    empty(&samples, buckets);
    return what < 0 ? what : 0;
}

static int initiate(struct run *run)
{
    struct inflight *f = &run->flight;
    uint64_t most = run->spec->count.iterations ? run->spec->count.iterations : UINT64_MAX;
    struct meter fresh = run->meter;
    run->meter.duration = run->meter.interval = 0;
    int status = iterate(run, run->spec->count.warmup, false);
    if (!status)
        status = flight_until(run, 0, 0);
    if (status)
        return status;
    run->meter = fresh;
    uint64_t first = f->number;
    status = iterate(run, most, true);
    if (!status)
        return stop_clock(run, first, true);
    if (status != -EINTR)
        return status;
    uint64_t got = f->ack.local ? f->acked : f->number - f->pending;
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
                                     .legs = 1,
                                     .samples = samples,
                                     .check = check,
                                     .answered = answered,
                                     .initiate = initiate,
                                     .respond = respond};
