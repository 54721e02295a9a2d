/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomics on one value in the other end's memory. With verify the value is the number of the last
 * operation, whatever the operation is, so that each can be foretold. */
#include "bench/bench.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

/* Offsets in the sending half of the buffer. */
enum { OPERAND = 0, COMPARE = 64, RESULT = 128 };
enum { LOOKS_A_POLL = 4 };

static void set_value(struct run *run, size_t at, uint64_t value)
{
    uint32_t narrow = (uint32_t)value;
    if (run->params->size == sizeof narrow)
        memcpy(run->buffer.address + at, &narrow, sizeof narrow);
    else
        memcpy(run->buffer.address + at, &value, sizeof value);
}

static inline uint64_t value_at(const struct run *run, const char *from)
{
    if (run->size == sizeof(uint32_t))
        return atomic_load_explicit((const _Atomic uint32_t *)(const void *)from,
                                    memory_order_acquire);
    return atomic_load_explicit((const _Atomic uint64_t *)(const void *)from, memory_order_acquire);
}

static uint64_t get_value(const struct run *run, size_t at)
{
    return value_at(run, run->buffer.address + at);
}

/* A number as far as the value holds it. */
static inline uint64_t wrapped(const struct run *run, uint64_t number)
{
    return run->size == sizeof(uint32_t) ? (uint32_t)number : number;
}

static int atomic_prepare(struct run *run)
{
    char *base = run->buffer.address;
    run->post = run->fabric->atomic;
    run->xfer = (struct xfer){.local = &run->buffer,
                              .remote = &run->remote,
                              .remote_at = run->receive_at,
                              .length = run->params->size,
                              .how = (HINT(LL) | HINT(RESTRICTED)) & run->facts.honours};
    run->xfer.amo.op = (uint8_t)run->test->amo;
    run->xfer.amo.type = run->params->size == sizeof(uint32_t) ? AMO_UINT32 : AMO_UINT64;
    run->xfer.amo.compare_op = AMO_EQ;
    run->xfer.amo.fetch = run->test->fetch;
    run->xfer.amo.operand = base + OPERAND;
    run->xfer.amo.compare = base + COMPARE;
    run->xfer.amo.result = base + RESULT;
    set_value(run, OPERAND, run->test->amo == AMO_SUM);
    return 0;
}

static int add_fire(struct run *run, uint64_t number)
{
    (void)number;
    return test_post(run);
}

static int add_arrived(struct run *run, uint64_t number)
{
    for (int i = 0; i < LOOKS_A_POLL; i++)
        if (value_at(run, run->inbox) == wrapped(run, number))
            return 1;
    int got = test_poll(run);
    return got < 0 ? got : 0;
}

/* Operands that make the value the number. */
static int atomic_before(struct run *run, uint64_t number)
{
    if (run->test->amo == AMO_SUM)
        return 0;
    set_value(run, OPERAND, number);
    set_value(run, COMPARE, number - 1);
    return 0;
}

static int atomic_after(struct run *run, uint64_t number)
{
    uint64_t found = get_value(run, RESULT), wanted = wrapped(run, number - 1);
    if (!run->test->fetch || found == wanted)
        return 0;
    return fail(-EBADMSG, "--verify: %s %" PRIu64 " fetched %" PRIu64 ", it should be %" PRIu64,
                run->name, number, found, wanted);
}

static int atomic_finish(struct run *run, uint64_t count)
{
    struct msg ask, answer;
    uint64_t found, wanted = wrapped(run, count);
    int status = msg_print(&ask, "value=1\n");
    if (!status)
        status = peer_swap(run->peer, &ask, &answer);
    if (!status && msg_number(&answer, "value", &found))
        status = fail(-EPROTO, "the answer to --verify cannot be read");
    if (!status && found != wanted)
        status = fail(-EBADMSG, "--verify: after %" PRIu64 " of %s the value is %" PRIu64, count,
                      run->name, found);
    return status;
}

static int atomic_answer(struct run *run, const struct msg *ask, struct msg *answer)
{
    if (strcmp(ask->bytes, "value=1\n") != 0)
        return fail(-EPROTO, "a question that cannot be read");
    return msg_print(answer, "value=%" PRIu64 "\n", get_value(run, run->receive_at));
}

#define ATOMIC                                                                                     \
    .verb = VERB_ATOMIC, .verbs = VERB(ATOMIC), .atomic = true, .prepare = atomic_prepare,         \
    .before = atomic_before, .after = atomic_after, .finish = atomic_finish,                       \
    .answer = atomic_answer

const struct test_op test_add = {
    .name = "add", .amo = AMO_SUM, ATOMIC, .fire = add_fire, .arrived = add_arrived};
const struct test_op test_fadd = {.name = "fadd", .amo = AMO_SUM, .fetch = true, ATOMIC};
const struct test_op test_swap = {.name = "swap", .amo = AMO_SWAP, .fetch = true, ATOMIC};
const struct test_op test_cswap = {.name = "cswap", .amo = AMO_CSWAP, .fetch = true, ATOMIC};
