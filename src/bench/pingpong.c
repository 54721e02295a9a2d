/* SPDX-License-Identifier: BSD-3-Clause */
/* The ping-pong method: a message there, one back, and the next at once. The clock is read once an
 * iteration; a sample is put away while the next message is under way, where it costs nothing. */
#include "bench/bench.h"
#include "core/clock.h"

#include <errno.h>
#include <string.h>

/* So often in a row an arrival is looked for: the sooner the next look, the truer the time. */
enum { LOOKS = 8 };

static inline int look(struct run *run, uint64_t number)
{
    int got = run->test->arrived(run, number);
    for (int i = 1; !got && i < LOOKS && !run->share_cpu; i++)
        got = run->test->arrived(run, number);
    return got;
}

static int await(struct run *run)
{
    struct backoff backoff = {0};
    int got;
    while (!(got = look(run, run->number))) {
        got = run_backoff(run, &backoff);
        if (got)
            return got;
    }
    return got < 0 ? got : 0;
}

/* What is due behind an iteration. Behind the last one the final report is, and in the warm-up
 * nothing is reported. */
static int turn(struct run *run, uint64_t now, uint64_t first, bool more)
{
    int what = tally_turn(run, now);
    if (what != TURN_PAUSE)
        return what;
    return more ? tally_report(run, run->number - first, false) : TURN_ON;
}

static int iterate(struct run *run, uint64_t count, bool keep)
{
    struct tally *t = &run->tally;
    uint64_t *buckets = run->stats->buckets;
    uint64_t first = run->number, sample = 0;
    bool waiting = false;
    int what = TURN_ON;
    tally_start(run);
    uint64_t before = t->begin;
    for (uint64_t i = 0; i < count && what == TURN_ON; i++) {
        int status = run->test->fire(run, ++run->number);
        if (waiting)
            buckets[stats_bucket(sample)]++;
        if (status || (status = await(run))) {
            run->number--;
            return status;
        }
        uint64_t now = clock_read_unfenced(&run->clock);
        sample = now - before;
        before = now;
        waiting = keep;
        if (now >= t->next) {
            if (keep)
                buckets[stats_bucket(sample)]++;
            waiting = false;
            what = turn(run, now, first, keep && i + 1 < count);
            before = clock_read_unfenced(&run->clock);
        }
    }
    if (waiting)
        buckets[stats_bucket(sample)]++;
    return what < 0 ? what : 0;
}

static int initiate(struct run *run)
{
    uint64_t most = run->params->iterations ? run->params->iterations : UINT64_MAX;
    struct tally fresh = run->tally;
    run->tally.duration = run->tally.interval = 0;
    int status = iterate(run, run->params->warmup, false);
    if (status)
        return status;
    run->tally = fresh;
    uint64_t first = run->number;
    status = iterate(run, most, true);
    if (status && status != -EINTR)
        return status;
    tally_report(run, run->number - first, true);
    return status ? fail(status, "interrupted") : 0;
}

/* ---- the other end ---- */

static int answer(void *arg)
{
    struct run *run = arg;
    int got = look(run, run->number + 1);
    if (got <= 0) {
        if (!got)
            run_idle(run);
        return got;
    }
    return run->test->fire(run, ++run->number);
}

static int respond(struct run *run)
{
    struct msg done;
    uint64_t count;
    int status = peer_recv(run->peer, &done, run->facts.alone ? NULL : answer, run);
    if (!status &&
        (msg_number(&done, "done", &count) || (!run->facts.alone && count != run->number)))
        status = fail(-EPROTO, "the %s counts other messages than this end", run->peer->other);
    return status;
}

const struct test_method test_ping_pong = {
    .name = "ping-pong", .legs = 2, .initiate = initiate, .respond = respond};
