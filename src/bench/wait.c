/* SPDX-License-Identifier: BSD-3-Clause */
/* One operation to its completion, and the target's side of waiting. Fabrics never wait; here is
 * where it is done, with an eye on the other end and on the time. */
#include "bench/bench.h"
#include "core/clock.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

enum {
    POLLS_PER_LOOK = 1024,
    POLLS_PER_YIELD = 64,
    LONG_BYTES = 1 << 20,         /* from here on a poll may take long: look every time */
    SLOWEST_BYTES_PER_MS = 10000, /* moving bytes are progress: a transfer may be this slow */
};

static int late(const struct run *run, uint64_t since_ms)
{
    uint64_t granted_ms = run->peer->timeout_ms + run->size / SLOWEST_BYTES_PER_MS;
    if (clock_ms() - since_ms <= granted_ms)
        return 0;
    return fail(-ETIMEDOUT, "a %s of %zu bytes did not complete within %g s", run->name, run->size,
                (double)granted_ms / 1000);
}

int run_backoff(struct run *run, struct backoff *backoff)
{
    backoff->polls++;
    if (run->share_cpu && backoff->polls % POLLS_PER_YIELD == 0)
        sched_yield();
    if (backoff->polls % POLLS_PER_LOOK && run->size < LONG_BYTES)
        return 0;
    if (!backoff->since_ms)
        backoff->since_ms = clock_ms();
    /* It takes long: on a busy machine, because the other end waits for a CPU. */
    sched_yield();
    int status = peer_alive(run->peer);
    return status ? status : late(run, backoff->since_ms);
}

int run_wait(struct run *run, enum verb verb)
{
    struct backoff backoff = {0};
    while (!(run->seen & 1U << verb)) {
        struct completion completion;
        int got = run->fabric->poll(run->handle, &completion, 1);
        if (got < 0)
            return got;
        if (got && completion.status)
            return completion.status;
        if (got && completion.verb == verb)
            return 0;
        if (got) {
            run->seen |= 1U << completion.verb;
            continue;
        }
        int status = run_backoff(run, &backoff);
        if (status)
            return status;
    }
    run->seen &= ~(1U << verb);
    return 0;
}

/* No room: what is under way must end first. */
static int post(struct run *run, int (*verb)(struct fabric *fabric, const struct xfer *xfer),
                const struct xfer *xfer)
{
    struct backoff backoff = {0};
    int got;
    while ((got = verb(run->handle, xfer)) == -EAGAIN) {
        struct completion completion;
        int polled = run->fabric->poll(run->handle, &completion, 1);
        if (polled < 0)
            return polled;
        if (polled && completion.status)
            return completion.status;
        if (polled)
            run->seen |= 1U << completion.verb;
        int status = run_backoff(run, &backoff);
        if (status)
            return status;
    }
    return got;
}

int run_post(struct run *run, int (*verb)(struct fabric *fabric, const struct xfer *xfer),
             const struct xfer *xfer)
{
    int got = verb(run->handle, xfer);
    return got == -EAGAIN ? post(run, verb, xfer) : got;
}

int run_do(struct run *run, enum verb verb,
           int (*function)(struct fabric *fabric, const struct xfer *xfer), const struct xfer *xfer)
{
    int got = run_post(run, function, xfer);
    if (got == LATER)
        return run_wait(run, verb);
    return got == DONE ? 0 : got;
}

/* ---- the target ---- */

void run_idle(struct run *run)
{
    if (++run->idle % (run->share_cpu ? POLLS_PER_YIELD : POLLS_PER_LOOK) == 0)
        sched_yield();
}

static int progress(void *arg)
{
    struct run *run = arg;
    struct completion completion;
    int got = run->fabric->poll(run->handle, &completion, 1);
    if (!got)
        run_idle(run);
    return got < 0 ? got : 0;
}

int run_serve(struct run *run,
              int (*answer)(struct run *run, const struct msg *ask, struct msg *answer))
{
    bool polls = run->facts.target_polls & 1U << run->verb;
    for (;;) {
        struct msg ask, reply;
        int status = peer_recv(run->peer, &ask, polls ? progress : NULL, run);
        if (status || strcmp(ask.bytes, "done=1\n") == 0)
            return status;
        if ((status = answer(run, &ask, &reply)) || (status = peer_send(run->peer, &reply)))
            return status;
    }
}
