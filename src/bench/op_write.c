/* SPDX-License-Identifier: BSD-3-Clause */
/* One-sided write: the initiator's bytes into the target's memory. The target takes no part, except
 * that it answers --verify over the control connection. In ping-pong no completion tells the
 * receiver that a write has come: it looks at the end of its memory, where every message has its
 * number. */
#include "bench/run.h"

#include <stdatomic.h>
#include <string.h>

/* A copy may be seen in another order than it was made: so long what is not there yet may come. */
enum { SETTLE_MS = 200, LOOKS_A_POLL = 4 };

/* The number is a word where it lies in one piece, otherwise its lowest byte. */
static size_t stamp_bytes(const struct run *run)
{
    return run->size % sizeof(uint64_t) ? 1 : sizeof(uint64_t);
}

static int write_prepare(struct run *run)
{
    static const uint64_t zero = 0;
    size_t stamp = stamp_bytes(run);
    run->verb = run->fabric->write;
    run->xfer = (struct xfer){.local = &run->session->buffer,
                              .remote = &run->session->remote,
                              .remote_at = run->receive_at,
                              .length = run->size,
                              .how = run_hints(run)};
    /* A number of an earlier run must not pass for one of this. */
    return run->receive_at
               ? run->session->buffer.kind->fill(&run->session->buffer,
                                                 run->receive_at + run->size - stamp, &zero, stamp)
               : 0;
}

/* ---- ping-pong ---- */

/* In a GPU's memory the CPU neither writes the number nor looks for it: both are copies, and what
 * is timed includes them. */
static int stamp_gpu(struct run *run, uint64_t number)
{
    unsigned char low = (unsigned char)number;
    size_t stamp = stamp_bytes(run);
    const void *bytes = stamp == 1 ? (const void *)&low : &number;
    struct region *buffer = &run->session->buffer;
    return buffer->kind->fill(buffer, run->size - stamp, bytes, stamp);
}

static int stamped_gpu(struct run *run, uint64_t number)
{
    unsigned char low = 0;
    uint64_t found = 0;
    size_t stamp = stamp_bytes(run);
    struct region *buffer = &run->session->buffer;
    int status = buffer->kind->peek(buffer, run->receive_at + run->size - stamp,
                                    stamp == 1 ? (void *)&low : &found, stamp);
    if (status)
        return status;
    return stamp == 1 ? low == (unsigned char)number : found == number;
}

static int put_fire(struct run *run, uint64_t number)
{
    size_t stamp = stamp_bytes(run), body = run->size - stamp;
    char *at = run->session->buffer.address + body;
    int status = run->verify ? pattern_fill(run, number, 0, body) : 0;
    if (status)
        return status;
    if (!run->inbox)
        status = stamp_gpu(run, number);
    else if (stamp == 1)
        *at = (char)number;
    else
        memcpy(at, &number, sizeof number);
    return status ? status : flight_post(run);
}

static inline bool stamped(const struct run *run, uint64_t number)
{
    size_t stamp = stamp_bytes(run);
    const void *at = run->inbox + run->size - stamp;
    if (stamp == 1)
        return atomic_load_explicit((const _Atomic unsigned char *)at, memory_order_acquire) ==
               (unsigned char)number;
    return atomic_load_explicit((const _Atomic uint64_t *)at, memory_order_acquire) == number;
}

static int look_until_settled(struct run *run, uint64_t number)
{
    uint64_t since_ms = clock_ms();
    size_t body = run->size - stamp_bytes(run);
    int status;
    do
        status = pattern_check(run, number, run->receive_at, body);
    while (status == -EBADMSG && clock_ms() - since_ms < SETTLE_MS);
    return status ? status : 1;
}

static int put_arrived_gpu(struct run *run, uint64_t number)
{
    int got = stamped_gpu(run, number);
    if (got > 0 && run->verify)
        return look_until_settled(run, number);
    if (got)
        return got;
    got = flight_poll(run);
    return got < 0 ? got : 0;
}

static int put_arrived(struct run *run, uint64_t number)
{
    if (!run->inbox)
        return put_arrived_gpu(run, number);
    for (int i = 0; i < LOOKS_A_POLL; i++) {
        if (stamped(run, number))
            return run->verify ? look_until_settled(run, number) : 1;
        cpu_relax();
    }
    int got = flight_poll(run);
    return got < 0 ? got : 0;
}

/* ---- verify ---- */

static int write_before(struct run *run, uint64_t number)
{
    return slots_fill(run, number, 0);
}

/* The other end looks into its own memory: what it sees is what was written. */
static int write_after(struct run *run, uint64_t number)
{
    struct msg answer;
    return run_ask(run, "check", number, "good=1\n", &answer);
}

static int write_here(struct run *run, uint64_t number)
{
    return slots_check(run, number, run->receive_at);
}

static int write_answer(struct run *run, const struct msg *ask, struct msg *answer)
{
    uint64_t number;
    if (msg_number(ask, "check", &number))
        return fail(-EPROTO, "a question that cannot be read");
    int status = write_here(run, number);
    return status ? status : msg_print(answer, "good=1\n");
}

static const struct op_words words = {.help = {.Op = "Write", .ops = "writes"},
                                      .ucx = "put",
                                      .many = "Writes",
                                      .number = "WriteNum",
                                      .size = "RDMA Size[B]",
                                      .size_width = 12};

static const struct op op_write_list;

#define WRITE                                                                                      \
    .name = "write", .words = &words, .verb = VERB_WRITE, .verbs = VERB(WRITE),                    \
    .traits = OP_STREAMS | OP_ASKS | OP_SETTLES, .legs = 1, .prepare = write_prepare,              \
    .target = {.answer = write_answer}, .list = {.form = &op_write_list},                          \
    .verify = {.before = write_before, .after = write_after, .here = write_here}

static const struct op op_write_list = {WRITE,
                                        .hints = HINT(INLINE) | HINT(RESTRICTED) | HINT(HRP)};

const struct op op_write = {WRITE, .hints = HINT(INLINE) | HINT(LL) | HINT(RESTRICTED),
                            .pingpong = {.fire = put_fire, .arrived = put_arrived}};
