/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomic on one value in the target's memory. One at a time, operands are chosen so that the target
 * really changes every time; where an op would come to rest, the target is set back outside the
 * timing, by a write. --verify compares target and fetched value with a plain model. There and
 * back, the value is the number of the last message. */
#include "bench/run.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* Offsets in the part that is sent from; after the results of all places, what the target is set
 * back to. And how many steps an op walks before that. */
enum { OPERAND = 0, COMPARE = 64, RESULT = 128, LEAST = 64, PERIOD = 100 };
enum { LOOKS_A_POLL = 4 };

/* One iteration: what to set the target back to, if at all, and the operands. */
struct step {
    bool reset;
    unsigned start, operand, compare;
};

/* In run->own: what the target should have. */
static const struct op op_atomic_list;
_Static_assert(AMO_MAX_BYTES <= sizeof((struct run *)0)->own, "run.own is too small");

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

static struct step step_of(const struct spec *spec, uint64_t number)
{
    unsigned at = (unsigned)(number % PERIOD);
    switch (spec_amo_op(spec)) {
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
        return cswap_step(spec_amo_compare(spec), at);
    }
}

/* In streams the operands stay: the value counts, or is exchanged for itself. */
static struct step stream_step(const struct spec *spec)
{
    return (struct step){.operand = spec_amo_op(spec) == AMO_SUM};
}

/* So they do where a sample has several operations; here every comparison holds. */
static struct step steady_step(const struct spec *spec)
{
    struct step step = cswap_step(spec_amo_compare(spec), 0);
    step.operand = step.start;
    if (spec_amo_op(spec) == AMO_AXOR)
        step.compare = 3;
    return step;
}

static void set_operands(struct run *run, const struct step *step)
{
    char *base = run->session->buffer.address;
    model_number(spec_amo_type(run->spec), step->operand, base + OPERAND);
    model_number(spec_amo_type(run->spec), step->compare, base + COMPARE);
}

/* From the first place to the end of the last. */
static size_t span(const struct slots *slots, size_t size)
{
    size_t bytes = (slots->count - 1) * slots->step + size;
    return bytes < LEAST ? LEAST : (bytes + LEAST - 1) / LEAST * LEAST;
}

static size_t front(const struct spec *spec)
{
    struct slots slots = list_slots(spec, (size_t)spec->size.max);
    return RESULT + 2 * span(&slots, (size_t)spec->size.max);
}

/* All places, in one write. */
static int set_back(struct run *run, unsigned number)
{
    struct session *s = run->session;
    size_t at = RESULT + span(&run->slots, run->size);
    char *image = s->buffer.address + at;
    struct xfer put = {.local = &s->buffer,
                       .at = at,
                       .remote = &s->remote,
                       .remote_at = run->receive_at,
                       .length = (run->slots.count - 1) * run->slots.step + run->size,
                       .how = HINT(LL) & s->facts.honours};
    model_number(spec_amo_type(run->spec), number, run->own);
    for (unsigned i = 0; i < run->slots.count; i++)
        memcpy(image + i * run->slots.step, run->own, run->size);
    return s->facts.alone ? 0 : run_aside(run, run->fabric->write, &put);
}

static int atomic_prepare(struct run *run)
{
    struct session *s = run->session;
    const struct spec *spec = run->spec;
    char *base = s->buffer.address;
    struct step first = run->method->ucx                 ? stream_step(spec)
                        : spec->count.ops_per_sample > 1 ? steady_step(spec)
                                                         : step_of(spec, 0);
    run->verb = run->fabric->atomic;
    run->xfer = (struct xfer){.local = &s->buffer,
                              .remote = &s->remote,
                              .remote_at = run->receive_at,
                              .length = run->size,
                              .how = run_hints(run)};
    run->xfer.amo.op = (uint8_t)spec_amo_op(spec);
    run->xfer.amo.type = (uint8_t)spec_amo_type(spec);
    run->xfer.amo.compare_op = (uint8_t)spec_amo_compare(spec);
    run->xfer.amo.fetch = spec->amo.fetching;
    run->xfer.amo.result = base + RESULT;
    run->xfer.amo.operand = base + OPERAND;
    run->xfer.amo.compare = base + COMPARE;
    for (unsigned i = 0; i < run->slots.count; i++)
        model_number(spec_amo_type(spec), first.start,
                     base + run->receive_at + i * run->slots.step);
    set_operands(run, &first);
    return 0;
}

/* ---- there and back ---- */

static int add_fire(struct run *run, uint64_t number)
{
    (void)number;
    return flight_post(run);
}

/* The value, as far as the type holds the number. */
static inline bool counted(const struct run *run, uint64_t number)
{
    const void *at = run->inbox;
    if (run->size == sizeof(uint32_t))
        return atomic_load_explicit((const _Atomic uint32_t *)at, memory_order_acquire) ==
               (uint32_t)number;
    return atomic_load_explicit((const _Atomic uint64_t *)at, memory_order_acquire) == number;
}

static int add_arrived(struct run *run, uint64_t number)
{
    for (int i = 0; i < LOOKS_A_POLL; i++) {
        if (counted(run, number))
            return 1;
        cpu_relax();
    }
    int got = flight_poll(run);
    return got < 0 ? got : 0;
}

/* ---- verify ---- */

static int atomic_before(struct run *run, uint64_t number)
{
    struct step step = step_of(run->spec, number);
    set_operands(run, &step);
    return step.reset ? set_back(run, step.start) : 0;
}

static void to_hex(const void *bytes, size_t size, char *text)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < size; i++)
        snprintf(text + 2 * i, 3, "%02x", at[i]);
}

static int differs(const struct run *run, const char *what, uint64_t number, const char *found,
                   const char *wanted)
{
    return fail(-EBADMSG,
                "verify: %s %" PRIu64 ", %s: the %s is 0x%s, it should be 0x%s (lowest "
                "byte first)",
                op_called(run->spec), number, amo_op_names[spec_amo_op(run->spec)], what, found,
                wanted);
}

/* The operations of a list do the same in every place. */
static int all_alike(const struct run *run, const char *first, const char *what)
{
    for (unsigned i = 1; i < run->slots.count; i++)
        if (memcmp(first, first + i * run->slots.step, run->size) != 0)
            return fail(-EBADMSG, "verify: the %s of place %u of a list is not that of the first",
                        what, i);
    return 0;
}

/* The target as the end that has it sees it. */
static int look_here(struct run *run, char text[2 * AMO_MAX_BYTES + 1])
{
    unsigned char bytes[AMO_MAX_BYTES];
    struct region *buffer = &run->session->buffer;
    int status = buffer->kind->peek(buffer, run->receive_at, bytes, run->size);
    if (!status)
        status = all_alike(run, buffer->address + run->receive_at, "target");
    to_hex(bytes, status ? 0 : run->size, text);
    return status;
}

static int look_there(struct run *run, char text[2 * AMO_MAX_BYTES + 1])
{
    struct msg answer;
    int status = run_ask(run, "look", run->size, NULL, &answer);
    if (!status && msg_value(&answer, "bytes", text, 2 * AMO_MAX_BYTES + 1))
        status = fail(-EPROTO, "the server's answer to verify cannot be read");
    return status;
}

/* Both ways, the target is here: both ends do the same to each other's. */
static int atomic_after(struct run *run, uint64_t number)
{
    const struct spec *spec = run->spec;
    const char *base = run->session->buffer.address;
    size_t size = run->size;
    char found[2 * AMO_MAX_BYTES + 1] = "", wanted[2 * AMO_MAX_BYTES + 1] = "";
    unsigned char old[AMO_MAX_BYTES];
    memcpy(old, run->own, size);
    model_apply(spec_amo_op(spec), spec_amo_type(spec), spec_amo_compare(spec), run->own,
                base + OPERAND, base + COMPARE);
    int status = spec->both_ways ? look_here(run, found) : look_there(run, found);
    if (status)
        return status;
    to_hex(run->own, size, wanted);
    if (strcmp(found, wanted) != 0)
        return differs(run, "target", number, found, wanted);
    if (memcmp(old, run->own, size) == 0)
        return fail(-EBADMSG, "verify: %s %" PRIu64 " left the target as it was", op_called(spec),
                    number);
    to_hex(base + RESULT, size, found);
    to_hex(old, size, wanted);
    if (spec->amo.fetching && strcmp(found, wanted) != 0)
        return differs(run, "fetched value", number, found, wanted);
    return spec->amo.fetching ? all_alike(run, base + RESULT, "fetched value") : 0;
}

static int atomic_answer(struct run *run, const struct msg *ask, struct msg *answer)
{
    uint64_t size;
    char text[2 * AMO_MAX_BYTES + 1] = "";
    if (msg_number(ask, "look", &size) || size != run->size)
        return fail(-EPROTO, "a question that cannot be read");
    int status = look_here(run, text);
    return status ? status : msg_print(answer, "bytes=%s\n", text);
}

/* ---- rules and words ---- */

static int atomic_check(const struct spec *spec)
{
    enum amo_op op = spec_amo_op(spec);
    enum amo_type type = spec_amo_type(spec);
    char ops[128];
    if (!spec->amo.op || !spec->amo.type || !spec->amo.compare)
        return fail(-EINVAL, "an atomic without its operation, comparison or type");
    if (!amo_valid(op, type, spec_amo_compare(spec))) {
        amo_list_ops(type, ops, sizeof ops);
        return fail(-EINVAL, "Invalid Op and Type combination: %s%s%s on %s, which takes %s",
                    amo_op_names[op], op == AMO_CSWAP ? " " : "",
                    op == AMO_CSWAP ? amo_compare_names[spec_amo_compare(spec)] : "",
                    amo_type_names[type], ops);
    }
    if (spec->size.min != amo_size(type) || spec->size.max != amo_size(type))
        return fail(-EINVAL, "%s of %" PRIu64 " bytes: %s has %zu", op_called(spec), spec->size.min,
                    amo_type_names[type], amo_size(type));
    if (method_of(spec)->legs == 2 && (op != AMO_SUM || (type != AMO_UINT32 && type != AMO_UINT64)))
        return fail(-EINVAL, "%s has no ping-pong: only adding to UINT32 or UINT64 counts messages",
                    op_called(spec));
    return 0;
}

static void atomic_label(const struct spec *spec, char *text, size_t room)
{
    bool compares = spec_amo_op(spec) == AMO_CSWAP;
    snprintf(text, room, "%s%s%s%s %s", spec->amo.fetching ? "fetching " : "",
             amo_op_names[spec_amo_op(spec)], compares ? " " : "",
             compares ? amo_compare_names[spec_amo_compare(spec)] : "",
             amo_type_names[spec_amo_type(spec)]);
}

static const char *atomic_called(const struct spec *spec)
{
    switch (spec_amo_op(spec)) {
    case AMO_SUM:
        return spec->amo.fetching ? "fadd" : "add";
    case AMO_SWAP:
        return "swap";
    case AMO_CSWAP:
        return "cswap";
    default:
        return "atomic";
    }
}

/* Where the fabric has some atomics but not this one. */
static int atomic_can(const struct spec *spec, const struct fabric_facts *facts, const char *form)
{
    char label[64];
    unsigned type = 1U << spec_amo_type(spec);
    bool has = facts->amo[spec->amo.fetching][spec_amo_op(spec)] & type;
    if (spec_amo_op(spec) == AMO_CSWAP)
        has = has && facts->cswap[spec_amo_compare(spec)] & type;
    if (has)
        return 0;
    if (spec->local.ucx_words)
        return fail(-ENOTSUP, "%s has no %s of %" PRIu64 " bytes", form, op_called(spec),
                    spec->size.min);
    atomic_label(spec, label, sizeof label);
    char *space = strrchr(label, ' ');
    return fail(-ENOTSUP, "fabric %s has no %.*s on %s", form, (int)(space - label), label,
                space + 1);
}

static const struct op_words words = {.help = {.Op = "Atomic", .ops = "AMOs"},
                                      .many = "Ops",
                                      .number = "OpNum",
                                      .size = "AMO Size[B]",
                                      .size_width = 11};
static const struct op_words list_words = {.help = {.Op = "Atomic", .ops = "AMOs"},
                                           .many = "Ops",
                                           .size = "AMO Size[B]",
                                           .size_width = 12,
                                           .rate = "OpRate[M/s]"};

#define ATOMIC                                                                                     \
    .name = "atomic", .verb = VERB_ATOMIC, .verbs = VERB(ATOMIC) | VERB(WRITE),                    \
    .traits =                                                                                      \
        OP_STREAMS | OP_STEPS | OP_HALVES | OP_NO_LAYOUTS | OP_ASKS | OP_REPEATS | OP_SETTLES,     \
    .legs = 1, .label = atomic_label, .called = atomic_called, .check = atomic_check,              \
    .can = atomic_can, .prepare = atomic_prepare, .target = {.answer = atomic_answer},             \
    .list = {.form = &op_atomic_list, .front = front},                                             \
    .verify = {.before = atomic_before, .after = atomic_after, .here = atomic_after}

static const struct op op_atomic_list = {ATOMIC, .words = &list_words,
                                         .hints = HINT(INLINE) | HINT(RESTRICTED) | HINT(MATCHING) |
                                                  HINT(HRP)};

const struct op op_atomic = {ATOMIC, .words = &words,
                             .hints = HINT(INLINE) | HINT(LL) | HINT(RESTRICTED) | HINT(MATCHING),
                             .pingpong = {.fire = add_fire, .arrived = add_arrived}};
