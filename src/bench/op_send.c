/* SPDX-License-Identifier: BSD-3-Clause */
/* Two-sided send: a message there and one back, half the round trip. Each end keeps two
 * receives posted, at the largest size, and posts the next one after it has answered. Between
 * iterations nothing crosses the control connection: the server learns there only that a size
 * is done. */
#include "bench/run.h"

#include <inttypes.h>
#include <string.h>

enum { RECEIVES = 2 };

/* What an operation still waits for. */
enum { AWAITS_SEND = 1, AWAITS_RECEIVE = 2 };

struct state {
    unsigned awaits; /* initiator */
    bool used;       /* an echo has used a receive up */
    bool reply_due;  /* target: a message came while its own was under way */
};
_Static_assert(sizeof(struct state) <= sizeof((struct run *)0)->own, "run.own is too small");

static struct state *state_of(struct run *run)
{
    return (struct state *)run->own;
}

static int post_receive(struct run *run)
{
    struct xfer receive = {.local = &run->session->buffer,
                           .at = run->receive_at,
                           .length = (size_t)run->spec->size.max,
                           .id = ID_RECEIVE};
    int status = run->fabric->recv(run->handle, &receive);
    return status == LATER ? 0 : status;
}

static int send_start(struct run *run)
{
    int status = 0;
    if (run->session->facts.alone && run->session->peer->rank == PEER_SERVER)
        return 0;
    for (int i = 0; i < RECEIVES && !status; i++)
        status = post_receive(run);
    return status;
}

/* With verify the server answers what has come; otherwise a message of its own, or what is measured
 * would be reading the first message, not sending the second. */
static int send_prepare(struct run *run)
{
    bool answers = run->session->peer->rank == PEER_SERVER && run->verify;
    run->verb = run->fabric->send;
    run->xfer = (struct xfer){.local = &run->session->buffer,
                              .at = answers ? run->receive_at : 0,
                              .length = run->size,
                              .how = run_hints(run)};
    return 0;
}

/* Through the queue, or by rendezvous, the send itself has a completion to come, besides the echo.
 */
static int send_post(struct run *run)
{
    int got = run->fabric->send(run->handle, &run->xfer);
    if (got < 0)
        return got;
    state_of(run)->awaits = got == DONE ? AWAITS_RECEIVE : AWAITS_RECEIVE | AWAITS_SEND;
    return LATER;
}

static int send_next(struct run *run, const struct completion *c)
{
    struct state *state = state_of(run);
    state->awaits &= ~(unsigned)(c->id == ID_RECEIVE ? AWAITS_RECEIVE : AWAITS_SEND);
    return state->awaits ? LATER : DONE;
}

/* The receive that the last echo used up, posted again outside the timing. */
static int send_before(struct run *run, uint64_t number)
{
    struct state *state = state_of(run);
    int status = state->used ? post_receive(run) : 0;
    state->used = true;
    if (!status && run->verify)
        status = pattern_fill(run, number, 0, run->size);
    return status;
}

/* The echo is what the server had: it proves both ways. */
static int send_after(struct run *run, uint64_t number)
{
    return pattern_check(run, number, run->receive_at, run->size);
}

/* ---- the target ---- */

/* One poll: 1 if our own answer has left; a message that comes meanwhile is answered next. */
static int poll_sent(struct run *run, struct backoff *backoff)
{
    struct completion completion;
    int got = run->fabric->poll(run->handle, &completion, 1);
    if (!got)
        return run_backoff(run, backoff);
    if (got < 0)
        return got;
    if (completion.status || completion.id != ID_RECEIVE)
        return completion.status ? completion.status : 1;
    backoff->armed = false;
    state_of(run)->reply_due = true;
    return 0;
}

static int reply(struct run *run)
{
    struct backoff backoff = {.room = true};
    int got, status = 0;
    while ((got = run->fabric->send(run->handle, &run->xfer)) == -EAGAIN && status >= 0)
        status = poll_sent(run, &backoff);
    status = status > 0 ? 0 : status;
    backoff = (struct backoff){0};
    while (got == LATER && !status)
        status = poll_sent(run, &backoff);
    if (got < 0 || status < 0)
        return status < 0 ? status : got;
    return post_receive(run);
}

static int send_echo(void *arg)
{
    struct run *run = arg;
    struct completion completion;
    if (state_of(run)->reply_due) {
        state_of(run)->reply_due = false;
        return reply(run);
    }
    int got = run->fabric->poll(run->handle, &completion, 1), idle = run_idle(run, got);
    if (got <= 0)
        return idle;
    if (completion.status || completion.id != ID_RECEIVE)
        return completion.status;
    if (completion.length != run->size)
        return fail(-EPROTO, "a message of %" PRIu64 " bytes where %zu were to come",
                    completion.length, run->size);
    return reply(run);
}

static const struct op_words words = {.help = {.Op = "Send", .ops = "sends"},
                                      .many = "Sends",
                                      .number = "SendNum",
                                      .size = "Bytes",
                                      .size_width = 10};

extern const struct op op_send_list;

const struct op op_send = {
    .name = "send",
    .words = &words,
    .verb = VERB_SEND,
    .verbs = VERB(SEND) | VERB(RECV),
    .hints = HINT(INLINE) | HINT(LL) | HINT(RENDEZVOUS),
    .traits = OP_STEPS | OP_HALVES,
    .legs = 2,
    .proves = "the other end has taken the message, and its answer is in the posted buffer",
    .start = send_start,
    .prepare = send_prepare,
    .post = send_post,
    .next = send_next,
    .target = {.echo = send_echo},
    .list = {.form = &op_send_list},
    .verify = {.before = send_before, .after = send_after}};
