/* SPDX-License-Identifier: BSD-3-Clause */
/* Two-sided send: a message there and one back, half the round trip. Each end keeps two
 * receives posted, at the largest size, and posts the next one after it has answered. Between
 * iterations nothing crosses the control connection: the server hears there only that a size
 * is done. */
#include "bench/bench.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

enum { RECEIVES = 2, ALIGN = 64 };

/* The buffer: what is sent, then what is received. */
static size_t receive_at(const struct plan *plan)
{
    return ((size_t)plan->size.max + ALIGN - 1) / ALIGN * ALIGN;
}

static size_t send_buffer(const struct plan *plan)
{
    return receive_at(plan) + (size_t)plan->size.max;
}

static int post_receive(struct run *run)
{
    struct xfer receive = {
        .local = &run->buffer, .at = receive_at(run->plan), .length = (size_t)run->plan->size.max};
    int status = run->fabric->recv(run->handle, &receive);
    return status == LATER ? 0 : status;
}

static int send_start(struct run *run)
{
    int status = 0;
    if (run->facts.alone && run->peer->rank == PEER_SERVER)
        return 0;
    for (int i = 0; i < RECEIVES && !status; i++)
        status = post_receive(run);
    return status;
}

static int send_prepare(struct run *run, size_t size)
{
    run->xfer = (struct xfer){.local = &run->buffer, .length = size, .how = run_hints(run, size)};
    return 0;
}

static int send_once(struct run *run)
{
    int got = run_post(run, run->fabric->send, &run->xfer);
    if (got < 0)
        return got;
    int status = run_wait(run, VERB_RECV);
    /* Through the queue, or by rendezvous, the send itself has a completion to come. */
    return status || got == DONE ? status : run_wait(run, VERB_SEND);
}

/* The receive that the last echo used up, posted again outside the timing. */
static int send_before(struct run *run, uint64_t number)
{
    int status = run->echoes ? post_receive(run) : 0;
    run->echoes = true;
    if (!status && run->plan->verify)
        status = pattern_fill(run, number, 0, run->size);
    return status;
}

/* The echo is what the server had: it proves both ways. */
static int send_after(struct run *run, uint64_t number)
{
    return pattern_check(run, number, receive_at(run->plan), run->size);
}

/* Target: answers, then posts the next receive. */
static int echo(struct run *run)
{
    int got = run_post(run, run->fabric->send, &run->xfer);
    if (got < 0)
        return got;
    int status = got == LATER ? run_wait(run, VERB_SEND) : 0;
    return status ? status : post_receive(run);
}

static int send_progress(void *arg)
{
    struct run *run = arg;
    struct completion completion;
    if (run->seen & VERB(RECV)) {
        run->seen &= ~VERB(RECV);
        return echo(run);
    }
    int got = run->fabric->poll(run->handle, &completion, 1);
    if (!got)
        run_idle(run);
    if (got <= 0)
        return got;
    if (completion.status || completion.verb != VERB_RECV)
        return completion.status;
    if (completion.length != run->size)
        return fail(-EPROTO, "a message of %" PRIu64 " bytes where %zu were to come",
                    completion.length, run->size);
    return echo(run);
}

static int send_serve(struct run *run, size_t size)
{
    struct msg done;
    run->size = size;
    int status = send_prepare(run, size);
    /* With --verify the answer is what has come; otherwise a message of the server's own, or what
     * is measured would be reading the first message, not sending the second. */
    run->xfer.at = run->plan->verify ? receive_at(run->plan) : 0;
    if (!status)
        status = peer_recv(run->peer, &done, run->facts.alone ? NULL : send_progress, run);
    if (!status && strcmp(done.bytes, "done=1\n") != 0)
        status = fail(-EPROTO, "the client said something else than that it is done");
    return status;
}

const struct op op_send = {.name = "send",
                           .help = {"Send", "sends"},
                           .many = "Sends",
                           .number = "SendNum",
                           .size = "Bytes",
                           .size_width = 10,
                           .verb = VERB_SEND,
                           .verbs = VERB(SEND) | VERB(RECV),
                           .hints = HINT(INLINE) | HINT(LL) | HINT(RENDEZVOUS),
                           .legs = 2,
                           .prepare = send_prepare,
                           .once = send_once,
                           .before = send_before,
                           .after = send_after,
                           .steps = true,
                           .start = send_start,
                           .buffer = send_buffer,
                           .serve = send_serve};
