/* SPDX-License-Identifier: BSD-3-Clause */
/* The stream method: one operation after the other, as many under way as are allowed. What counts
 * is what the other end has: before the clock is stopped, everything under way is waited for. */
#include "bench/bench.h"
#include "core/clock.h"

#include <errno.h>
#include <inttypes.h>

enum {
    ACK = 0x57ac0000, /* the upper half of an acknowledgement; the lower is a count */
    POLLED = 16,
    QUIET_POLLS = 1000 /* after which what was received is acknowledged, however little */
};

/* ---- polls and posts, for all methods ---- */

/* Every half window, and when nothing more comes. Without room now, the next poll tries again. */
static int acknowledge(struct run *run)
{
    uint64_t owed = run->arrivals - run->answered;
    if (!owed || (owed < (run->params->window + 1) / 2 && run->quiet < QUIET_POLLS))
        return 0;
    run->ack.header = (uint64_t)ACK << 32 | (run->arrivals & UINT32_MAX);
    int got = run->fabric->am(run->handle, &run->ack);
    if (got < 0)
        return got == -EAGAIN ? 0 : got;
    run->pending += got == LATER;
    run->answered = run->arrivals;
    return 0;
}

static int acknowledged(struct run *run, const struct completion *c)
{
    run->acked += (uint32_t)(c->id - run->acked);
    return run->acked <= run->number
               ? 1
               : fail(-EPROTO, "the %s acknowledges what was not sent", run->peer->other);
}

static inline int arrived(struct run *run, const struct completion *c)
{
    if (run->ack.local && c->length == sizeof c->id && c->id >> 32 == ACK)
        return acknowledged(run, c);
    run->arrivals++;
    run->quiet = 0;
    if (c->length == run->size && !run->verify)
        return 1;
    int status = run->test->arrival ? run->test->arrival(run, c)
                                    : fail(-EPROTO, "an active message, and none was to come");
    return status ? status : 1;
}

static inline int take(struct run *run, const struct completion *c)
{
    if (c->status)
        return c->status;
    if (c->verb == VERB_ARRIVAL)
        return arrived(run, c);
    run->pending--;
    return 1;
}

int test_poll(struct run *run)
{
    struct completion completions[POLLED];
    int got = run->fabric->poll(run->handle, completions, POLLED);
    if (!got)
        run->quiet++;
    for (int i = 0; i < got; i++) {
        int status = take(run, &completions[i]);
        if (status < 0)
            return status;
    }
    if (got >= 0 && run->ack.local) {
        int status = acknowledge(run);
        got = status ? status : got;
    }
    return got;
}

int test_post_slowly(struct run *run, int got)
{
    struct backoff backoff = {0};
    while (got == -EAGAIN) {
        int status = test_poll(run);
        if (!status)
            status = run_backoff(run, &backoff);
        if (status < 0)
            return status;
        got = run->post(run->handle, &run->xfer);
    }
    run->pending += got == LATER;
    return got < 0 ? got : 0;
}

/* Polls until so few are under way, and so few are not acknowledged. */
static int until(struct run *run, unsigned pending, uint64_t unacked)
{
    struct backoff backoff = {0};
    while (run->pending > pending || (run->test->needs_ack && run->number - run->acked > unacked)) {
        int status = test_poll(run);
        if (!status)
            status = run_backoff(run, &backoff);
        else
            backoff = (struct backoff){0};
        if (status < 0)
            return status;
    }
    return 0;
}

int test_drain(struct run *run)
{
    return until(run, 0, 0);
}

/* ---- the initiator ---- */

/* Completions are waited for where they come late by nature; what is copied at once has as much
 * room as the fabric gives. */
static unsigned most_pending(const struct run *run)
{
    uint64_t request = run->params->outstanding;
    if (run->params->verify)
        return 0;
    if (run->params->layout != WEFT_ZCOPY && !run->test->fetch && run->verb != VERB_READ)
        request = run->facts.depth;
    return request > run->facts.depth ? run->facts.depth - 1 : (unsigned)request - 1;
}

static int stop_clock(struct run *run, uint64_t first, bool final)
{
    int status = test_drain(run);
    if (!status)
        tally_report(run, run->number - first, final);
    return status;
}

/* Behind the last operation the final report is due, and in the warm-up nothing is reported. */
static int turn(struct run *run, uint64_t now, uint64_t first, bool more)
{
    int what = tally_turn(run, now);
    if (what != TURN_PAUSE)
        return what;
    return more ? stop_clock(run, first, false) : TURN_ON;
}

/* With verify: one at a time, and looked at. */
static int checked_post(struct run *run)
{
    int status = run->test->before ? run->test->before(run, run->number + 1) : 0;
    if (!status)
        status = test_post(run);
    if (status)
        return status;
    run->number++;
    status = test_drain(run);
    return !status && run->test->after ? run->test->after(run, run->number) : status;
}

/* What a call that was not done at once leaves to do: then as few are under way as allowed. */
static int settle(struct run *run, int got, unsigned pending)
{
    int status = test_post_slowly(run, got);
    if (status)
        return status;
    run->number++;
    return run->pending > pending ? until(run, pending, UINT64_MAX) : 0;
}

/* One more active message, as far as the window allows. */
static inline int next(struct run *run, unsigned pending, uint64_t window)
{
    run->xfer.header = run->number + 1;
    int got = run->post(run->handle, &run->xfer);
    if (got == DONE)
        run->number++;
    else if ((got = settle(run, got, pending)))
        return got;
    return run->number - run->acked >= window ? until(run, UINT32_MAX, window - 1) : 0;
}

/* Samples wait for their buckets: one by one, each would hold up the next clock read. Where nothing
 * is under way between two operations they wait long, and the clock stands still meanwhile;
 * otherwise they go by the handful. */
enum { HANDFUL = 64, MANY = 4096 };

struct handful {
    size_t count;
    uint64_t ticks[MANY];
};

static void empty(struct handful *h, uint64_t *buckets)
{
    for (size_t i = 0; buckets && i < h->count; i++)
        buckets[stats_bucket(h->ticks[i])]++;
    h->count = 0;
}

/* The loop itself, where most operations are done when the call returns: until the handful is full
 * or it is time to look up. */
static int burst(struct run *run, uint64_t count, unsigned pending, struct handful *h,
                 uint64_t *before)
{
    int (*post)(struct fabric * fabric, const struct xfer *xfer) = run->post;
    struct fabric *handle = run->handle;
    const struct xfer *xfer = &run->xfer;
    const struct clock clock = run->clock;
    uint64_t last = *before, next_look = run->tally.next;
    size_t at = h->count, room = MANY - at, end = at + (count < room ? count : room);
    while (at < end) {
        int got = post(handle, xfer);
        if (got == DONE)
            run->number++;
        else if ((got = settle(run, got, pending))) {
            h->count = at;
            return got;
        }
        uint64_t now = clock_read_unfenced(&clock);
        h->ticks[at++] = now - last;
        last = now;
        if (now >= next_look || (run->pending && at >= HANDFUL))
            break;
    }
    h->count = at;
    *before = last;
    return 0;
}

/* By hand: with verify, and active messages. */
static inline int step(struct run *run, unsigned pending, struct handful *h, uint64_t *before)
{
    int status = run->verify ? checked_post(run) : next(run, pending, run->params->window);
    if (status)
        return status;
    uint64_t now = clock_read_unfenced(&run->clock);
    h->ticks[h->count++] = now - *before;
    *before = now;
    return 0;
}

static int iterate(struct run *run, uint64_t count, bool keep)
{
    struct tally *t = &run->tally;
    struct handful samples;
    samples.count = 0;
    uint64_t first = run->number;
    unsigned pending = most_pending(run);
    bool simple = !run->verify && !run->test->needs_ack;
    int what = TURN_ON;
    tally_start(run);
    uint64_t before = t->begin;
    while (run->number - first < count && what == TURN_ON) {
        int status = simple ? burst(run, count - (run->number - first), pending, &samples, &before)
                            : step(run, pending, &samples, &before);
        if (status) {
            what = status;
            break;
        }
        bool due = before >= t->next, still = simple && !run->pending;
        if (still)
            tally_stop(run);
        if (due || samples.count >= HANDFUL)
            empty(&samples, keep ? run->stats->buckets : NULL);
        if (still) {
            tally_go_on(run);
            before = t->begin;
        }
        if (due) {
            what = turn(run, before, first, keep && run->number - first < count);
            before = clock_read_unfenced(&run->clock);
        }
    }
    empty(&samples, keep ? run->stats->buckets : NULL);
    return what < 0 ? what : 0;
}

static int finish(struct run *run)
{
    bool looks = run->params->verify && run->test->finish;
    return looks ? run->test->finish(run, run->number) : 0;
}

static int initiate(struct run *run)
{
    uint64_t most = run->params->iterations ? run->params->iterations : UINT64_MAX;
    struct tally fresh = run->tally;
    run->tally.duration = run->tally.interval = 0;
    int status = iterate(run, run->params->warmup, false);
    if (!status)
        status = test_drain(run);
    if (status)
        return status;
    run->tally = fresh;
    uint64_t first = run->number;
    status = iterate(run, most, true);
    if (!status)
        status = stop_clock(run, first, true);
    else if (status == -EINTR) {
        uint64_t got = run->test->needs_ack ? run->acked : run->number - run->pending;
        tally_report(run, got > first ? got - first : 0, true);
        return fail(status, "interrupted");
    }
    return status ? status : finish(run);
}

/* ---- the other end ---- */

static int progress(void *arg)
{
    struct run *run = arg;
    int got = test_poll(run);
    if (!got)
        run_idle(run);
    return got < 0 ? got : 0;
}

/* Answers what verify asks, until the other end is done. */
static int respond(struct run *run)
{
    bool polls = run->test->needs_ack || run->facts.target_polls & 1U << run->verb;
    for (;;) {
        struct msg ask, reply;
        uint64_t count;
        int status = peer_recv(run->peer, &ask, polls && !run->facts.alone ? progress : NULL, run);
        if (status)
            return status;
        if (!msg_number(&ask, "done", &count)) {
            if (run->test->needs_ack && count != run->arrivals)
                return fail(-EPROTO, "%" PRIu64 " messages were sent, %" PRIu64 " came", count,
                            run->arrivals);
            return 0;
        }
        status = run->test->answer ? run->test->answer(run, &ask, &reply)
                                   : fail(-EPROTO, "a question that has no answer");
        if (!status)
            status = peer_send(run->peer, &reply);
        if (status)
            return status;
    }
}

const struct test_method test_stream = {
    .name = "stream", .legs = 1, .initiate = initiate, .respond = respond};

/* Both ends send; who is done first goes on hearing. */
const struct test_method test_stream_both = {
    .name = "stream both ways", .legs = 1, .initiate = initiate, .respond = respond};
