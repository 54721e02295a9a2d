/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts and gets. In ping-pong nobody tells the receiver that a put has come: it looks at the end of
 * its memory, where every message has its number. */
#include "bench/bench.h"
#include "core/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

/* A copy may be seen in another order than it was made: so long what is not there yet may come. */
enum { SETTLE_MS = 200, LOOKS_A_POLL = 4 };

static unsigned how(const struct run *run)
{
    unsigned common = (HINT(LL) | HINT(RESTRICTED)) & run->facts.honours;
    return common | LAYOUT_HINT(run->params->layout - WEFT_SHORT);
}

/* The number is a word where it lies in one piece, otherwise its lowest byte. */
static size_t stamp_bytes(const struct run *run)
{
    return run->size % sizeof(uint64_t) ? 1 : sizeof(uint64_t);
}

static int put_prepare(struct run *run)
{
    run->post = run->fabric->write;
    run->xfer = (struct xfer){.local = &run->buffer,
                              .remote = &run->remote,
                              .remote_at = run->receive_at,
                              .length = run->params->size,
                              .how = how(run)};
    return 0;
}

/* In a GPU's memory the CPU neither writes the number nor looks for it: both are copies, and what
 * is timed includes them. */
static int stamp_gpu(struct run *run, uint64_t number)
{
    unsigned char low = (unsigned char)number;
    size_t stamp = stamp_bytes(run);
    const void *bytes = stamp == 1 ? (const void *)&low : &number;
    return run->buffer.kind->fill(&run->buffer, run->size - stamp, bytes, stamp);
}

static int stamped_gpu(struct run *run, uint64_t number)
{
    unsigned char low = 0;
    uint64_t found = 0;
    size_t stamp = stamp_bytes(run);
    int status = run->buffer.kind->peek(&run->buffer, run->receive_at + run->size - stamp,
                                        stamp == 1 ? (void *)&low : &found, stamp);
    if (status)
        return status;
    return stamp == 1 ? low == (unsigned char)number : found == number;
}

static int put_fire(struct run *run, uint64_t number)
{
    size_t stamp = stamp_bytes(run), body = run->size - stamp;
    char *at = run->buffer.address + body;
    int status = run->verify ? pattern_fill(run, number, 0, body) : 0;
    if (status)
        return status;
    if (!run->inbox)
        status = stamp_gpu(run, number);
    else if (stamp == 1)
        *at = (char)number;
    else
        memcpy(at, &number, sizeof number);
    return status ? status : test_post(run);
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
    size_t body = run->params->size - stamp_bytes(run);
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
    got = test_poll(run);
    return got < 0 ? got : 0;
}

static int put_arrived(struct run *run, uint64_t number)
{
    if (!run->inbox)
        return put_arrived_gpu(run, number);
    for (int i = 0; i < LOOKS_A_POLL; i++)
        if (stamped(run, number))
            return run->verify ? look_until_settled(run, number) : 1;
    int got = test_poll(run);
    return got < 0 ? got : 0;
}

static int put_before(struct run *run, uint64_t number)
{
    return pattern_fill(run, number, 0, run->params->size);
}

/* The other end looks into its own memory: what it sees is what was put. */
static int put_after(struct run *run, uint64_t number)
{
    struct msg ask, answer;
    int status = msg_print(&ask, "check=%" PRIu64 "\n", number);
    if (!status)
        status = peer_swap(run->peer, &ask, &answer);
    if (!status && strcmp(answer.bytes, "good=1\n") != 0)
        status = fail(-EPROTO, "the answer to --verify cannot be read");
    return status;
}

static int put_answer(struct run *run, const struct msg *ask, struct msg *answer)
{
    uint64_t number;
    int status = msg_number(ask, "check", &number);
    if (status)
        return fail(-EPROTO, "a question that cannot be read");
    status = pattern_check(run, number, run->receive_at, run->params->size);
    return status ? status : msg_print(answer, "good=1\n");
}

const struct test_op test_put = {.name = "put",
                                 .verb = VERB_WRITE,
                                 .verbs = VERB(WRITE),
                                 .prepare = put_prepare,
                                 .fire = put_fire,
                                 .arrived = put_arrived,
                                 .before = put_before,
                                 .after = put_after,
                                 .answer = put_answer};

/* ---- get ---- */

static int get_prepare(struct run *run)
{
    run->post = run->fabric->read;
    run->xfer = (struct xfer){.local = &run->buffer,
                              .at = run->receive_at,
                              .remote = &run->remote,
                              .length = run->params->size,
                              .how = how(run)};
    return run->verify ? pattern_fill(run, 0, 0, run->params->size) : 0;
}

/* What was got before must not pass for what is got now. */
static int get_before(struct run *run, uint64_t number)
{
    return pattern_fill(run, number, run->receive_at, run->params->size);
}

static int get_after(struct run *run, uint64_t number)
{
    (void)number;
    return pattern_check(run, 0, run->receive_at, run->params->size);
}

const struct test_op test_get = {.name = "get",
                                 .verb = VERB_READ,
                                 .verbs = VERB(READ),
                                 .prepare = get_prepare,
                                 .before = get_before,
                                 .after = get_after};
