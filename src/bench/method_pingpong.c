/* SPDX-License-Identifier: BSD-3-Clause */
/* The ping-pong method: a message there, one back, and the next at once. The clock is read once an
 * iteration; a sample is put away while a message is under way, where it costs nothing. */
#include "bench/run.h"

#include <string.h>

/* So often in a row an arrival is looked for: the sooner the next look, the truer the time. After
 * so many rows it takes long, and a look at the clock costs nothing. */
enum { LOOKS = 8, LONG_POLLS = 64, SHORT_NS = 2000 };

static inline int look(struct run *run, uint64_t number)
{
    int got = run->op->pingpong.arrived(run, number);
    for (int i = 1; !got && i < LOOKS && !run->nap.yields; i++)
        got = run->op->pingpong.arrived(run, number);
    return got;
}

/* *now: read again if it took long. */
static inline int await(struct run *run, uint64_t *now, bool *due)
{
    struct backoff backoff = {0};
    int got;
    while (!(got = look(run, run->flight.number))) {
        got = run_backoff(run, &backoff);
        if (got)
            return got;
    }
    if (__builtin_expect(backoff.polls >= LONG_POLLS, 0)) {
        *now = clock_read_unfenced(&run->meter.clock);
        *due = *now >= run->meter.next;
    }
    return got < 0 ? got : 0;
}

/* What is due after an iteration. After the last one the final report is, and in the warm-up
 * nothing is reported. */
static int turn(struct run *run, uint64_t now, uint64_t first, bool more)
{
    int what = meter_turn(run, now);
    if (what != TURN_PAUSE)
        return what;
    return more ? meter_report(run, run->flight.number - first, false) : TURN_ON;
}

/* A message there and one back. *now: about when it went, or came; *due: then the meter is to be
 * looked at, which is found out while the message is under way. */
static inline int exchange(struct run *run, struct roundtrips *r, uint64_t *now, bool *due)
{
    const struct clock *clock = &run->meter.clock;
    if (!r->after) {
        *now = clock_read_unfenced(clock);
        roundtrip_before(r, *now);
    }
    int status = run->op->pingpong.fire(run, ++run->flight.number);
    if (r->row == ROUNDTRIP_ROW) {
        *now = clock_read_unfenced(clock);
        roundtrip_after(r, *now);
    }
    *due = *now >= run->meter.next;
    return status ? status : await(run, now, due);
}

static int iterate(struct run *run, uint64_t count, bool keep)
{
    struct meter *m = &run->meter;
    struct roundtrips r = {.buckets = keep ? m->stats->buckets : NULL};
    uint64_t first = run->flight.number, now = 0;
    int status = 0, what = TURN_ON;
    bool due = false;
    if (!run->session->facts.alone)
        r.below = clock_from_ps(&m->clock, SHORT_NS * UINT64_C(1000));
    meter_start(run);
    for (uint64_t i = 0; i < count; i++) {
        status = exchange(run, &r, &now, &due);
        if (status)
            break;
        if (__builtin_expect(due, 0)) {
            now = clock_read_unfenced(&m->clock);
            roundtrip_end(&r, now);
            what = turn(run, now, first, keep && i + 1 < count);
            if (what != TURN_ON)
                break;
        }
    }
    if (status) {
        run->flight.number--;
        r.sent = 0;
    }
    roundtrip_end(&r, clock_read_unfenced(&m->clock));
    return status ? status : what < 0 ? what : 0;
}

static int initiate(struct run *run)
{
    uint64_t most = run->spec->count.iterations ? run->spec->count.iterations : UINT64_MAX;
    int status = meter_warm_up(run, iterate);
    if (!status)
        status = meter_until_all(run, iterate);
    if (status)
        return status;
    uint64_t first = run->flight.number;
    status = iterate(run, most, true);
    if (status && status != -EINTR)
        return status;
    meter_report(run, run->flight.number - first, true);
    return status ? fail(status, "interrupted") : meter_until_all(run, iterate);
}

/* ---- the other end ---- */

static int answer(void *arg)
{
    struct run *run = arg;
    int got = look(run, run->flight.number + 1), idle = run_idle(run, got);
    if (got <= 0)
        return idle;
    return run->op->pingpong.fire(run, ++run->flight.number);
}

static int respond(struct run *run)
{
    bool alone = run->session->facts.alone;
    uint64_t count;
    int status = run_serve(run, alone ? NULL : answer, &count);
    if (!status && !alone && count != run->flight.number)
        status =
            fail(-EPROTO, "the %s counts other messages than this end", run->session->peer->other);
    return status;
}

static const char *samples(const struct spec *spec)
{
    (void)spec;
    return "latency";
}

static int check(const struct spec *spec, const struct op *op)
{
    return op->pingpong.fire ? 0
                             : fail(-EINVAL, "%s has no ping-pong: the other end cannot answer it",
                                    op_called(spec));
}

/* Where nobody is at the other end, an echo arrives only of what arrives by itself. */
static bool answered(const struct op *op)
{
    return !(op->traits & OP_ARRIVES);
}

const struct method method_pingpong = {.name = "ping-pong",
                                       .ucx = true,
                                       .legs = 2,
                                       .samples = samples,
                                       .check = check,
                                       .answered = answered,
                                       .initiate = initiate,
                                       .respond = respond};
