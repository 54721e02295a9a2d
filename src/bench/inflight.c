/* SPDX-License-Identifier: BSD-3-Clause */
/* What is under way: posting, polling, waiting. Fabrics never wait; here is where it is done, with
 * an eye on the other end and on the time. */
#include "bench/run.h"

#include <inttypes.h>
#include <sched.h>
#include <string.h>

enum {
    TURN_NS =
        100000, /* so long a wait is not the fabric's alone: the other end may need this CPU */
    SLOWEST_BYTES_PER_MS = 10000, /* moving bytes are progress: a transfer may be this slow */
    REST_MESSAGES = 16,
    REST_MOST_NS = 4000,
    REST_BYTES = 4096,
    ACK = 0x57ac0000, /* the upper half of an acknowledgement; the lower is a count */
    POLLED = 16,
    NAPS_PER_LOOK = 4,  /* each may last for a fifth of a heartbeat */
    QUIET_POLLS = 1000, /* after which what was received is acknowledged, however little */
    POLL_NS = 16        /* about what one takes in shared memory */
};

/* ---- waiting ---- */

static int late(const struct run *run, uint64_t since_ms)
{
    uint64_t granted_ms = run->session->peer->timeout_ms + run->size / SLOWEST_BYTES_PER_MS;
    if (clock_ms() - since_ms <= granted_ms)
        return 0;
    return fail(-ETIMEDOUT, "a %s of %zu bytes did not complete within %g s", op_called(run->spec),
                run->size, (double)granted_ms / 1000);
}

/* Moving bytes are progress: something completed or came since the last look. */
static void note_progress(struct run *run)
{
    struct inflight *f = &run->flight;
    uint64_t done = f->number - f->pending + f->arrivals + f->acked;
    if (done != f->noted)
        peer_progress(run->session->peer);
    f->noted = done;
}

int run_nap_open(struct run *run)
{
    struct session *s = run->session;
    if (!run->spec->waits.events)
        return 0;
    int fd = s->fabric->event_fd ? s->fabric->event_fd(s->handle)
                                 : fail(-ENOTSUP, "fabric %s has no events", s->fabric->name);
    run->nap = (struct nap){.on = fd >= 0, .fd = fd};
    return fd < 0 ? fd : 0;
}

/* Arms first, and the caller looks once more: what came before is found then, and what comes after
 * it wakes. What is owed is acknowledged with that look: the other end may wait for it. 1: slept,
 * and the other end is to be looked at. */
static int nap(struct run *run, bool *armed, bool listens)
{
    if (*armed) {
        *armed = false;
        return !peer_sleep(run->session->peer, run->nap.fd, listens);
    }
    run->flight.quiet = QUIET_POLLS;
    int got = run->fabric->arm(run->handle);
    *armed = got == DONE;
    return got == DONE || got == -EAGAIN ? 0 : got;
}

static int look_around(struct run *run, struct backoff *backoff)
{
    if (!backoff->since_ms)
        backoff->since_ms = clock_ms();
    note_progress(run);
    int status = peer_alive(run->session->peer);
    return status ? status : late(run, backoff->since_ms);
}

static int backoff_asleep(struct run *run, struct backoff *backoff)
{
    int got = nap(run, &backoff->armed, false);
    bool looks = got || backoff->polls % (2 * NAPS_PER_LOOK) == 0;
    if (got < 0 || !looks)
        return got;
    sched_yield(); /* woken so often, it may not have slept at all */
    return look_around(run, backoff);
}

/* How long polls take depends on the fabric: from nanoseconds to a system call. */
static bool turn_is_over(uint64_t *turn_ns)
{
    uint64_t now_ns = clock_ns(), since_ns = *turn_ns ? *turn_ns : now_ns;
    bool over = now_ns - since_ns >= TURN_NS;
    *turn_ns = over ? now_ns : since_ns;
    return over;
}

int run_backoff_slowly(struct run *run, struct backoff *backoff)
{
    bool clocked = backoff->polls % POLLS_PER_CLOCK == 0;
    if (run->nap.on && !backoff->room)
        return backoff_asleep(run, backoff);
    if (!clocked && run->size < LONG_BYTES)
        return 0;
    bool over = turn_is_over(&backoff->turn_ns);
    if (over || (run->nap.yields && clocked))
        sched_yield();
    return over ? look_around(run, backoff) : 0;
}

int run_idle_slowly(struct run *run)
{
    struct inflight *f = &run->flight;
    if (run->nap.on) {
        int got = nap(run, &f->armed, true);
        bool looks = ++f->naps % (2 * NAPS_PER_LOOK) == 0;
        if (looks)
            sched_yield();
        return got ? got : looks;
    }
    if (f->idle == POLLS_PER_CLOCK)
        f->turn_ns = 0;
    if (run->nap.yields || turn_is_over(&f->turn_ns))
        sched_yield();
    return 0;
}

/* ---- one operation to its end ---- */

/* What a completion means to the operation. A next step that has no room is tried again; what else
 * completes meanwhile is taken. */
static __attribute__((noinline)) int next_again(struct run *run,
                                                const struct completion *completion)
{
    struct backoff backoff = {.room = true};
    int got;
    do {
        struct completion other;
        int polled = run->fabric->poll(run->handle, &other, 1);
        int status = polled < 0   ? polled
                     : polled > 0 ? flight_take(run, &other)
                                  : run_backoff(run, &backoff);
        if (status < 0)
            return status;
    } while ((got = run->op->next(run, completion)) == -EAGAIN);
    return got;
}

static inline int next_step(struct run *run, const struct completion *completion)
{
    int got = run->op->next(run, completion);
    return got == -EAGAIN ? next_again(run, completion) : got;
}

static inline int take_step(struct run *run, const struct completion *completion)
{
    if (completion->status)
        return completion->status;
    return run->op->next ? next_step(run, completion) : DONE;
}

/* No room: what is under way must end first. */
static int post_again(struct run *run)
{
    struct backoff backoff = {.room = true};
    int got = -EAGAIN;
    while (got == -EAGAIN) {
        struct completion completion;
        int polled = run->fabric->poll(run->handle, &completion, 1);
        int status = polled < 0   ? polled
                     : polled > 0 ? take_step(run, &completion)
                                  : run_backoff(run, &backoff);
        if (status < 0)
            return status;
        got = run_post(run);
    }
    return got;
}

/* The loop is short: it ends inside the timing. */
int run_finish(struct run *run, int got)
{
    int (*poll)(struct fabric * fabric, struct completion * completions, int max) =
        run->fabric->poll;
    struct fabric *handle = run->handle;
    struct backoff backoff = {0};
    struct completion completion;
    if (got == -EAGAIN)
        got = post_again(run);
    while (got == LATER) {
        int polled = poll(handle, &completion, 1);
        if (polled > 0) {
            backoff.armed = false;
            got = take_step(run, &completion);
        } else if (polled < 0) {
            got = polled;
        } else {
            got = run_backoff(run, &backoff);
        }
    }
    return got == DONE ? 0 : got;
}

int run_aside(struct run *run, int (*verb)(struct fabric *fabric, const struct xfer *xfer),
              struct xfer *xfer)
{
    struct backoff backoff = {0};
    struct completion completion = {0};
    xfer->id = ID_ASIDE;
    int got = verb(run->handle, xfer), polled = 0;
    while (got == LATER || got == -EAGAIN) {
        backoff.room = got == -EAGAIN;
        polled = run->fabric->poll(run->handle, &completion, 1);
        backoff.armed &= !polled;
        int status = polled < 0 ? polled : polled ? completion.status : run_backoff(run, &backoff);
        if (status)
            return status;
        if (got == -EAGAIN)
            got = verb(run->handle, xfer);
        else if (polled && completion.id == ID_ASIDE)
            got = DONE;
    }
    return got == DONE ? 0 : got;
}

/* ---- many under way ---- */

/* Every half window or whole list, and when nothing more comes. Without room now, the next poll
 * tries again. */
static int acknowledge(struct run *run)
{
    struct inflight *f = &run->flight;
    uint64_t owed = f->arrivals - f->answered;
    if (!owed || (owed < f->ack_every && f->quiet < QUIET_POLLS))
        return 0;
    f->ack.header = (uint64_t)ACK << 32 | (f->arrivals & UINT32_MAX);
    int got = run->fabric->am(run->handle, &f->ack);
    if (got < 0)
        return got == -EAGAIN ? 0 : got;
    f->pending += got == LATER;
    f->answered = f->arrivals;
    return 0;
}

static int acknowledged(struct run *run, const struct completion *c)
{
    run->flight.acked += (uint32_t)(c->id - run->flight.acked);
    return run->flight.acked <= run->flight.number
               ? 0
               : fail(-EPROTO, "the %s acknowledges what was not sent", run->session->peer->other);
}

static inline int arrived(struct run *run, const struct completion *c)
{
    if (run->flight.ack.local && c->length == sizeof c->id && c->id >> 32 == ACK)
        return acknowledged(run, c);
    run->flight.arrivals++;
    run->flight.quiet = 0;
    if (c->length == run->size && !run->verify)
        return 0;
    return run->op->target.arrival ? run->op->target.arrival(run, c)
                                   : fail(-EPROTO, "an active message, and none was to come");
}

static inline int take(struct run *run, const struct completion *c)
{
    int got = DONE;
    if (c->status)
        return c->status;
    if (c->verb == VERB_ARRIVAL)
        return arrived(run, c);
    if (run->op->next && c->id != ID_ACK)
        got = next_step(run, c);
    run->flight.pending -= got == DONE;
    return got < 0 ? got : 0;
}

int flight_take(struct run *run, const struct completion *c)
{
    return take(run, c);
}

int flight_poll(struct run *run)
{
    struct completion completions[POLLED];
    int got = run->op->target.look ? run->op->target.look(run) : 0;
    if (got)
        return got;
    got = run->fabric->poll(run->handle, completions, POLLED);
    if (!got)
        run->flight.quiet++;
    for (int i = 0; i < got; i++) {
        int status = take(run, &completions[i]);
        if (status)
            return status;
    }
    if (got >= 0 && run->flight.ack.local) {
        int status = acknowledge(run);
        got = status ? status : got;
    }
    return got;
}

int flight_post_slowly(struct run *run, int got)
{
    struct backoff backoff = {.room = true};
    while (got == -EAGAIN) {
        int status = flight_poll(run);
        if (!status)
            status = run_backoff(run, &backoff);
        if (status < 0)
            return status;
        got = run_post(run);
    }
    run->flight.pending += got == LATER;
    return got < 0 ? got : 0;
}

int flight_until(struct run *run, unsigned pending, uint64_t unacked)
{
    const struct inflight *f = &run->flight;
    struct backoff backoff = {0};
    while (f->pending > pending || (f->ack.local && f->number - f->acked > unacked)) {
        int status = flight_poll(run);
        if (!status)
            status = run_backoff(run, &backoff);
        else
            backoff = (struct backoff){0};
        if (status < 0)
            return status;
    }
    return 0;
}

int flight_settle(struct run *run)
{
    struct xfer all = {.length = 0};
    int status = flight_until(run, 0, 0);
    if (status || !(run->xfer.how & HINT(LOCAL)))
        return status;
    return run_aside(run, run->fabric->flush, &all);
}

/* ---- the target ---- */

/* Each look for a message takes its line away from the sender that is writing it. A target that has
 * caught up with a stream gains nothing by looking at once: it waits until there may be a few more.
 * Meanwhile it is quiet. */
static void rest(struct inflight *f)
{
    uint64_t now_ns = clock_raw_ns(), came = f->arrivals - f->rested;
    uint64_t each_ns = (now_ns - f->rested_ns) / (came ? came : 1);
    uint64_t ns = REST_MESSAGES * each_ns < REST_MOST_NS ? REST_MESSAGES * each_ns : REST_MOST_NS;
    f->rested = f->arrivals;
    f->rested_ns = now_ns;
    f->quiet += (unsigned)(ns / POLL_NS);
    while (clock_raw_ns() - now_ns < ns)
        cpu_relax();
}

/* A longer message comes in parts, which take many looks. */
static bool may_rest(const struct run *run)
{
    return run->method->rests && run->flight.arrivals && run->size <= REST_BYTES && !run->nap.on &&
           !run->nap.yields;
}

static int progress(void *arg)
{
    struct run *run = arg;
    int found = flight_poll(run);
    if (!found && may_rest(run))
        rest(&run->flight);
    int got = run_idle(run, found);
    /* Verifying asks before or after every operation. */
    return got ? got : run->verify;
}

int (*run_progress(const struct run *run))(void *run)
{
    const struct fabric_facts *facts = &run->session->facts;
    bool polls = run->flight.ack.local || facts->target_polls & run->op->verbs;
    return polls && !facts->alone ? progress : NULL;
}

int run_serve(struct run *run, int (*progress)(void *run), uint64_t *count)
{
    struct peer *peer = run->session->peer;
    for (;;) {
        struct msg ask, reply;
        int status = peer_recv(peer, &ask, progress, run);
        run->flight.armed = false;
        if (status || !msg_number(&ask, "done", count))
            return status;
        status = run->op->target.answer ? run->op->target.answer(run, &ask, &reply)
                                        : fail(-EPROTO,
                                               "the %s sent an unexpected message instead "
                                               "of \"done\"",
                                               peer->other);
        if (!status)
            status = peer_send(peer, &reply);
        if (status)
            return status;
    }
}

int run_ask(struct run *run, const char *key, uint64_t number, const char *good, struct msg *answer)
{
    struct msg ask;
    int status = msg_print(&ask, "%s=%" PRIu64 "\n", key, number);
    if (!status)
        status = peer_swap(run->session->peer, &ask, answer);
    if (!status && good && strcmp(answer->bytes, good) != 0)
        status =
            fail(-EPROTO, "the %s's answer to verify cannot be read", run->session->peer->other);
    return status;
}
