/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomic on one value in the server's memory. Operands are chosen so that the target really
 * changes every time; where an op would come to rest, the target is set back outside the
 * timing, by a write. --verify compares target and fetched value with a plain model. */
#include "bench/bench.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Offsets in the client's buffer, and how many steps an op walks before it is set back. */
enum { RESULT = 0, OPERAND = 64, COMPARE = 128, RESET = 192, BUFFER = 256, PERIOD = 100 };

/* One iteration: what to set the target back to, if at all, and the operands. */
struct step {
    bool reset;
    unsigned start, operand, compare;
};

static enum amo_op op_of(const struct plan *plan)
{
    return (enum amo_op)(plan->amo_op - 1);
}

static enum amo_type type_of(const struct plan *plan)
{
    return (enum amo_type)(plan->amo_type - 1);
}

static enum amo_compare compare_of(const struct plan *plan)
{
    return (enum amo_compare)(plan->amo_compare - 1);
}

static struct step cswap_step(enum amo_compare compare, unsigned at)
{
    /* The target goes 1, 2, 1, 2; the comparison holds every time. */
    unsigned now = 1 + at % 2;
    struct step step = {.reset = at == 0, .start = 1, .operand = 3 - now};
    switch (compare) {
    case AMO_EQ:
        step.compare = now;
        break;
    case AMO_GE:
    case AMO_GT:
        step.compare = 3;
        break;
    default:
        step.compare = 0;
    }
    return step;
}

static struct step step_of(const struct plan *plan, uint64_t number)
{
    unsigned at = (unsigned)(number % PERIOD);
    switch (op_of(plan)) {
    case AMO_MIN:
        return (struct step){.reset = at == 0, .start = PERIOD, .operand = PERIOD - 1 - at};
    case AMO_MAX:
        return (struct step){.reset = at == 0, .start = 0, .operand = at + 1};
    case AMO_SUM:
    case AMO_LXOR:
    case AMO_BXOR:
        return (struct step){.reset = at == 0, .start = 0, .operand = 1};
    case AMO_LOR:
    case AMO_BOR:
        return (struct step){.reset = true, .start = 0, .operand = 1};
    case AMO_LAND:
    case AMO_BAND:
        return (struct step){.reset = true, .start = 1, .operand = 0};
    case AMO_SWAP:
        return (struct step){.reset = at == 0, .start = 0, .operand = 1 + at % 2};
    case AMO_AXOR:
        return (struct step){.reset = at == 0, .start = 0, .operand = 1 + at % 2, .compare = 3};
    default:
        return cswap_step(compare_of(plan), at);
    }
}

static int set_back(struct run *run, unsigned number)
{
    enum amo_type type = type_of(run->plan);
    struct xfer put = {.local = &run->buffer,
                       .at = RESET,
                       .remote = &run->remote,
                       .length = amo_size(type),
                       .how = HINT(LL) & run->facts.honours};
    model_number(type, number, run->buffer.address + RESET);
    memcpy(run->amo_value, run->buffer.address + RESET, amo_size(type));
    return run->facts.alone ? 0 : run_do(run, VERB_WRITE, run->fabric->write, &put);
}

static int atomic_prepare(struct run *run, size_t size)
{
    const struct plan *plan = run->plan;
    run->xfer = (struct xfer){
        .local = &run->buffer, .remote = &run->remote, .length = size, .how = run_hints(run, size)};
    run->xfer.amo.op = (uint8_t)op_of(plan);
    run->xfer.amo.type = (uint8_t)type_of(plan);
    run->xfer.amo.compare_op = (uint8_t)compare_of(plan);
    run->xfer.amo.fetch = plan->fetching;
    run->xfer.amo.result = run->buffer.address + RESULT;
    run->xfer.amo.operand = run->buffer.address + OPERAND;
    run->xfer.amo.compare = run->buffer.address + COMPARE;
    struct step step = step_of(plan, 0);
    model_number(type_of(plan), step.operand, run->buffer.address + OPERAND);
    model_number(type_of(plan), step.compare, run->buffer.address + COMPARE);
    return set_back(run, step.start);
}

static int atomic_once(struct run *run)
{
    return run_do(run, VERB_ATOMIC, run->fabric->atomic, &run->xfer);
}

static int atomic_before(struct run *run, uint64_t number)
{
    enum amo_type type = type_of(run->plan);
    struct step step = step_of(run->plan, number);
    model_number(type, step.operand, run->buffer.address + OPERAND);
    model_number(type, step.compare, run->buffer.address + COMPARE);
    return step.reset ? set_back(run, step.start) : 0;
}

static void to_hex(const unsigned char *bytes, size_t size, char *text)
{
    for (size_t i = 0; i < size; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
}

static int differs(const struct run *run, const char *what, uint64_t number, const char *found,
                   const char *wanted)
{
    return fail(-EBADMSG,
                "--verify: %s %" PRIu64 ", %s: the %s is 0x%s, it should be 0x%s (lowest "
                "byte first)",
                run->op->name, number, amo_op_names[op_of(run->plan)], what, found, wanted);
}

static int atomic_after(struct run *run, uint64_t number)
{
    const struct plan *plan = run->plan;
    size_t size = amo_size(type_of(plan));
    char found[2 * AMO_MAX_BYTES + 1] = "", wanted[2 * AMO_MAX_BYTES + 1] = "";
    struct msg ask, answer;
    unsigned char old[AMO_MAX_BYTES];
    memcpy(old, run->amo_value, size);
    model_apply(op_of(plan), type_of(plan), compare_of(plan), run->amo_value,
                run->buffer.address + OPERAND, run->buffer.address + COMPARE);
    int status = msg_print(&ask, "look=%zu\n", size);
    if (!status)
        status = peer_swap(run->peer, &ask, &answer);
    if (!status && msg_value(&answer, "bytes", found, sizeof found))
        status = fail(-EPROTO, "the server's answer to --verify cannot be read");
    if (status)
        return status;
    to_hex(run->amo_value, size, wanted);
    if (strcmp(found, wanted) != 0)
        return differs(run, "target", number, found, wanted);
    if (memcmp(old, run->amo_value, size) == 0)
        return fail(-EBADMSG, "--verify: %s %" PRIu64 " left the target as it was", run->op->name,
                    number);
    to_hex((const unsigned char *)run->buffer.address + RESULT, size, found);
    to_hex(old, size, wanted);
    if (plan->fetching && strcmp(found, wanted) != 0)
        return differs(run, "fetched value", number, found, wanted);
    return 0;
}

static int answer_look(struct run *run, const struct msg *ask, struct msg *answer)
{
    uint64_t size;
    char text[2 * AMO_MAX_BYTES + 1] = "";
    unsigned char bytes[AMO_MAX_BYTES];
    int status = msg_number(ask, "look", &size);
    if (!status && size > AMO_MAX_BYTES)
        status = fail(-EPROTO, "the client asked to see %" PRIu64 " bytes", size);
    if (!status)
        status = run->buffer.kind->peek(&run->buffer, 0, bytes, size);
    if (status)
        return status;
    to_hex(bytes, size, text);
    return msg_print(answer, "bytes=%s\n", text);
}

static int atomic_serve(struct run *run, size_t size)
{
    run->size = size;
    return run_serve(run, answer_look);
}

static size_t atomic_buffer(const struct plan *plan)
{
    (void)plan;
    return BUFFER;
}

static void label(const struct plan *plan, char *text, size_t room)
{
    bool compares = plan->amo_op - 1 == AMO_CSWAP;
    snprintf(text, room, "%s%s%s%s %s", plan->fetching ? "fetching " : "",
             amo_op_names[plan->amo_op - 1], compares ? " " : "",
             compares ? amo_compare_names[plan->amo_compare - 1] : "",
             amo_type_names[plan->amo_type - 1]);
}

const struct op op_atomic = {.name = "atomic",
                             .help = {"Atomic", "AMOs"},
                             .many = "Ops",
                             .number = "OpNum",
                             .size = "AMO Size[B]",
                             .size_width = 11,
                             .label = label,
                             .verb = VERB_ATOMIC,
                             .verbs = VERB(ATOMIC) | VERB(WRITE),
                             .hints = HINT(INLINE) | HINT(LL) | HINT(RESTRICTED) | HINT(MATCHING),
                             .legs = 1,
                             .prepare = atomic_prepare,
                             .once = atomic_once,
                             .before = atomic_before,
                             .after = atomic_after,
                             .steps = true,
                             .buffer = atomic_buffer,
                             .serve = atomic_serve};
