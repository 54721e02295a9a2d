/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomics: every op, type and compare in every form against the model; refusals; and adds by two
 * processes at once. */
#include "conformance.h"
#include "core/clock.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Where the initiator keeps its operands. */
enum { RESULT_AT = 64, OPERAND_AT = 128, COMPARE_AT = 192, MEETING_AT = 8192, EACH = 100000 };
/* The same for each cell, where all are under way at once. */
enum { SLOTS_AT = 65536, SLOT_BYTES = 256, RESULT_BYTES = 32 };

/* ---- one combination over all cells ---- */

struct form {
    enum amo_op op;
    enum amo_type type;
    enum amo_compare compare;
    bool fetch;
    unsigned how;
};

static struct xfer amo_xfer(struct end *end, const struct form *form, size_t remote_at)
{
    struct xfer xfer = {.local = &end->region,
                        .remote = &end->remote,
                        .remote_at = remote_at,
                        .length = amo_size(form->type),
                        .how = form->how,
                        .id = remote_at + form->op};
    xfer.amo.op = (uint8_t)form->op;
    xfer.amo.type = (uint8_t)form->type;
    xfer.amo.compare_op = (uint8_t)form->compare;
    xfer.amo.fetch = form->fetch;
    xfer.amo.result = end->bytes + RESULT_AT;
    xfer.amo.operand = end->bytes + OPERAND_AT;
    xfer.amo.compare = end->bytes + COMPARE_AT;
    return xfer;
}

/* Every value meets every other: as operand, and for CSWAP as what is compared. */
static struct operands operands_of(const struct form *form, unsigned cell)
{
    struct operands o = {.operand = {.wide = {0, 0}}, .compare = {.wide = {0, 0}}};
    unsigned other = cell % CELL_VALUES, mixed = (cell * 5 + cell / CELL_VALUES) % CELL_VALUES;
    cell_value(form->type, form->op == AMO_CSWAP ? mixed : other, &o.operand);
    cell_value(form->type, form->op == AMO_CSWAP ? other : mixed, &o.compare);
    return o;
}

/* Fills the cell's slot, and tells in expected what its result must become and in area what the
 * target must. */
static struct xfer prepare_cell(struct end *end, const struct form *form, char *area, unsigned cell,
                                unsigned char expected[RESULT_BYTES])
{
    size_t size = amo_size(form->type), at = (size_t)cell * CELL_BYTES + CELL_AT;
    char *slot = end->bytes + SLOTS_AT + (size_t)cell * SLOT_BYTES;
    struct operands o = operands_of(form, cell);
    struct xfer xfer = amo_xfer(end, form, CELLS_AT + at);
    union value old = {.wide = {0, 0}}, now;
    xfer.id = cell;
    xfer.amo.result = slot + RESULT_AT;
    xfer.amo.operand = slot + OPERAND_AT;
    xfer.amo.compare = slot + COMPARE_AT;
    memset(expected, 0x77, RESULT_BYTES);
    memset(slot + RESULT_AT, 0x77, RESULT_BYTES);
    memcpy(slot + OPERAND_AT, &o.operand, size);
    memcpy(slot + COMPARE_AT, &o.compare, size);
    memcpy(&old, area + at, size);
    now = old;
    amo_model(form->op, form->type, form->compare, &now, &o);
    memcpy(area + at, &now, size);
    if (form->fetch)
        memcpy(expected, &old, size);
    return xfer;
}

/* The next cell to do. Of a sample each value is on either side once. */
static unsigned next_cell(unsigned cell, bool sample)
{
    while (sample && cell < CELLS && cell % CELL_VALUES != cell / CELL_VALUES * 5 % CELL_VALUES)
        cell++;
    return cell;
}

/* A known fault: the provider shm of libfabric 1.17 confuses the operands and results of atomics
 * that are under way together. */
static bool confuses_atomics(void)
{
    return strcmp(choice.ops->name, "ofi") == 0 && strcmp(choice.device, "shm") == 0;
}

/* As many cells at once as there is room for: where the target has to poll, one by one would be a
 * turn of both processes for each. */
static void perform_cells(struct end *end, const struct form *form, char *area, bool sample)
{
    static unsigned char expected[CELLS][RESULT_BYTES];
    unsigned done[CELLS] = {0}, under_way = 0, cell = next_cell(0, sample);
    struct backoff backoff = {0};
    struct xfer xfer = prepare_cell(end, form, area, cell, expected[cell]);
    while ((cell < CELLS || under_way) && patient(&backoff)) {
        struct completion completion;
        bool wait = cell == CELLS || (under_way && confuses_atomics());
        int got = wait ? -EAGAIN : choice.ops->atomic(end->handle, &xfer);
        if (got >= 0) {
            done[cell] += got == DONE;
            under_way += got != DONE;
            cell = next_cell(cell + 1, sample);
            if (cell < CELLS)
                xfer = prepare_cell(end, form, area, cell, expected[cell]);
            continue;
        }
        assert_int_equal(got, -EAGAIN);
        got = choice.ops->poll(end->handle, &completion, 1);
        assert_true(got >= 0);
        if (!got) {
            give_way(&backoff);
            continue;
        }
        backoff.turns = 0;
        assert_int_equal(completion.status, 0);
        assert_int_equal(completion.verb, VERB_ATOMIC);
        assert_true(completion.id < CELLS);
        done[completion.id]++;
        under_way--;
    }
    for (cell = next_cell(0, sample); cell < CELLS; cell = next_cell(cell + 1, sample)) {
        assert_int_equal(done[cell], 1);
        assert_memory_equal(end->bytes + SLOTS_AT + (size_t)cell * SLOT_BYTES + RESULT_AT,
                            expected[cell], RESULT_BYTES);
    }
}

static void all_cells(struct pair *pair, const struct form *form, bool sample)
{
    static char area[CELLS_BYTES];
    cells_fill(area, form->type);
    ask(pair, "cells", CELLS_AT, CELLS_BYTES, (int)form->type);
    perform_cells(&pair->end, form, area, sample);
    uint64_t found = ask(pair, "look", CELLS_AT, CELLS_BYTES, 0);
    if (found != digest(area, CELLS_BYTES))
        print_message("# %s %s %s %s, hints 0x%x\n", form->fetch ? "fetching" : "",
                      amo_op_names[form->op], amo_type_names[form->type],
                      amo_compare_names[form->compare], form->how);
    assert_int_equal(found, digest(area, CELLS_BYTES));
}

/* Does the specification have it? Written out again, not asked of the code. */
static bool exists(enum amo_op op, enum amo_type type, enum amo_compare compare)
{
    if (type <= AMO_UINT64)
        return true;
    if (op == AMO_CSWAP)
        return type <= AMO_DOUBLE || compare == AMO_EQ ||
               (type != AMO_UINT128 && compare == AMO_NE);
    if (op == AMO_SUM || op == AMO_SWAP)
        return type != AMO_UINT128;
    return (op == AMO_MIN || op == AMO_MAX) && type <= AMO_DOUBLE;
}

static bool offered(const struct end *end, const struct form *form)
{
    const struct fabric_facts *facts = &end->facts;
    return facts->amo[form->fetch][form->op] >> form->type & 1 &&
           (form->op != AMO_CSWAP || facts->cswap[form->compare] >> form->type & 1);
}

/* Every form of one op, type and compare: all pairs of values, and with further hints a sample. */
static void all_forms(struct pair *pair, struct form form)
{
    static const unsigned hints[] = {HINT(LL), HINT(INLINE), HINT(MATCHING), HINT(RESTRICTED)};
    unsigned tried[1U << LENGTH(hints)] = {0}, count = 0;
    for (unsigned mix = 0; mix < 1U << LENGTH(hints); mix++) {
        unsigned seen = 0;
        form.how = 0;
        for (unsigned i = 0; i < LENGTH(hints); i++)
            form.how |= mix >> i & 1 ? hints[i] & pair->end.facts.honours : 0;
        /* Matching is never restricted, and has no immediate data. */
        if (form.how & HINT(MATCHING))
            form.how &= ~(HINT(INLINE) | HINT(RESTRICTED));
        while (seen < count && tried[seen] != form.how)
            seen++;
        if (seen < count)
            continue;
        tried[count++] = form.how;
        for (int fetch = 0; fetch < 2; fetch++) {
            form.fetch = fetch;
            if (offered(&pair->end, &form))
                all_cells(pair, &form, count > 1 || is_slow());
        }
    }
}

static void all_of_types(void **state, enum amo_type first, enum amo_type last)
{
    struct pair *pair = *state;
    needs(pair, VERB_ATOMIC, true);
    for (unsigned type = first; type <= last; type++)
        for (unsigned op = 0; op < AMO_OPS; op++)
            for (unsigned compare = 0; compare < AMO_COMPARES; compare++) {
                struct form form = {.op = op, .type = type, .compare = compare};
                if ((op == AMO_CSWAP || compare == AMO_EQ) && exists(op, type, compare))
                    all_forms(pair, form);
            }
}

static void atomics_on_8_bits_equal_the_model(void **state)
{
    all_of_types(state, AMO_INT8, AMO_UINT8);
}

static void atomics_on_16_bits_equal_the_model(void **state)
{
    all_of_types(state, AMO_INT16, AMO_UINT16);
}

static void atomics_on_32_bits_equal_the_model(void **state)
{
    all_of_types(state, AMO_INT32, AMO_UINT32);
}

static void atomics_on_64_bits_equal_the_model(void **state)
{
    all_of_types(state, AMO_INT64, AMO_UINT64);
}

static void atomics_on_real_numbers_equal_the_model(void **state)
{
    all_of_types(state, AMO_FLOAT, AMO_DOUBLE);
}

static void atomics_on_complex_numbers_equal_the_model(void **state)
{
    all_of_types(state, AMO_FLOAT_COMPLEX, AMO_DOUBLE_COMPLEX);
}

static void atomics_on_128_bits_equal_the_model(void **state)
{
    all_of_types(state, AMO_UINT128, AMO_UINT128);
}

/* On every type, also on those of which the facts say that they are never such puts: who asks all
 * the same gets an ordinary one. */
static void atomics_as_high_rate_puts_equal_the_model(void **state)
{
    static const unsigned forms[] = {HINT(INLINE), 0};
    struct pair *pair = *state;
    const struct fabric_facts *facts = &pair->end.facts;
    needs(pair, VERB_ATOMIC, true);
    assert_int_equal(facts->amo_no_hrp >> AMO_TYPES, 0);
    needs_hint(pair, HINT_HRP, "high-rate puts");
    for (unsigned type = 0; type < AMO_TYPES; type++)
        for (size_t i = 0; i < LENGTH(forms); i++) {
            struct form form = {.op = AMO_SUM, .type = type};
            form.how = HINT(HRP) | (facts->honours & (HINT(RESTRICTED) | forms[i]));
            if (offered(&pair->end, &form))
                all_cells(pair, &form, true);
        }
}

/* An operand that is immediate, or whose atomic is complete, may change at once. */
static void operands_may_change_once_they_are_the_nics(void **state)
{
    struct pair *pair = *state;
    struct end *end = &pair->end;
    struct completion completion;
    uint64_t one = 1, none = 0, sum = 10;
    needs(pair, VERB_ATOMIC, true);
    needs_hint(pair, HINT_INLINE, "immediate data");
    ask(pair, "fill", CELLS_AT, 8, 0);
    for (int i = 0; i < 10; i++) {
        struct form form = {.op = AMO_SUM, .type = AMO_UINT64, .how = HINT(INLINE)};
        struct xfer xfer = amo_xfer(end, &form, CELLS_AT);
        memcpy(end->bytes + OPERAND_AT, &one, sizeof one);
        int got = post(end, VERB_ATOMIC, &xfer);
        memcpy(end->bytes + OPERAND_AT, &none, sizeof none);
        assert_true(got == DONE || got == LATER);
        if (got == LATER)
            assert_int_equal(next_completion(end, &completion), 0);
    }
    assert_int_equal(ask(pair, "look", CELLS_AT, 8, 0), digest((const char *)&sum, sizeof sum));
}

static void every_atomic_completes_once_however_many_are_posted(void **state)
{
    struct pair *pair = *state;
    struct end *end = &pair->end;
    unsigned total = end->facts.depth * 3 + 5, done = 0;
    uint64_t one = 1, sum = total;
    struct backoff backoff = {0};
    struct form form = {.op = AMO_SUM, .type = AMO_UINT64, .fetch = true};
    needs(pair, VERB_ATOMIC, true);
    ask(pair, "fill", CELLS_AT, 8, 0);
    memcpy(end->bytes + OPERAND_AT, &one, sizeof one);
    for (unsigned posted = 0; done < total && patient(&backoff);) {
        struct completion completion;
        struct xfer xfer = amo_xfer(end, &form, CELLS_AT);
        xfer.id = posted;
        xfer.amo.result = end->bytes + 65536 + (size_t)posted * 8;
        int got = posted < total ? choice.ops->atomic(end->handle, &xfer) : -EAGAIN;
        posted += got >= 0;
        done += got == DONE;
        if (got >= 0)
            continue;
        assert_int_equal(got, -EAGAIN);
        done += choice.ops->poll(end->handle, &completion, 1) == 1;
    }
    assert_int_equal(done, total);
    assert_int_equal(ask(pair, "look", CELLS_AT, 8, 0), digest((const char *)&sum, sizeof sum));
    for (uint64_t i = 0; i < total; i++)
        assert_memory_equal(end->bytes + 65536 + i * 8, &i, sizeof i);
}

/* ---- refusals ---- */

static void every_atomic_is_accepted_if_offered_and_refused_if_it_does_not_exist(void **state)
{
    struct pair *pair = *state;
    struct end *end = &pair->end;
    needs(pair, VERB_ATOMIC, true);
    ask(pair, "fill", CELLS_AT, 64, 0);
    for (unsigned i = 0; i < 2 * AMO_TYPES * AMO_OPS * AMO_COMPARES; i++) {
        struct form form = {.op = i / AMO_COMPARES % AMO_OPS,
                            .type = i / AMO_COMPARES / AMO_OPS % AMO_TYPES,
                            .compare = i % AMO_COMPARES,
                            .fetch = i / AMO_COMPARES / AMO_OPS / AMO_TYPES,
                            .how = i % 5 ? HINT(LL) & end->facts.honours : 0};
        struct xfer xfer = amo_xfer(end, &form, CELLS_AT);
        int status = perform(end, VERB_ATOMIC, &xfer);
        if (!exists(form.op, form.type, form.compare)) {
            assert_int_equal(status, -EINVAL);
            assert_false(offered(end, &form));
        } else {
            assert_int_equal(status == 0, offered(end, &form));
        }
    }
}

static void what_is_no_op_type_or_compare_at_all_is_refused(void **state)
{
    struct pair *pair = *state;
    static const struct {
        uint8_t op, type, compare;
    } bad[] = {{AMO_OPS, AMO_UINT64, 0},
               {255, AMO_UINT64, 0},
               {AMO_SUM, AMO_TYPES, 0},
               {AMO_SUM, 255, 0},
               {AMO_CSWAP, AMO_UINT64, AMO_COMPARES},
               {AMO_CSWAP, AMO_UINT64, 255}};
    needs(pair, VERB_ATOMIC, true);
    uint64_t before = ask(pair, "look", 0, REGION_BYTES, 0);
    for (size_t i = 0; i < LENGTH(bad); i++) {
        struct form form = {.type = AMO_UINT64};
        struct xfer xfer = amo_xfer(&pair->end, &form, CELLS_AT);
        xfer.amo.op = bad[i].op;
        xfer.amo.type = bad[i].type;
        xfer.amo.compare_op = bad[i].compare;
        assert_int_equal(perform(&pair->end, VERB_ATOMIC, &xfer), -EINVAL);
    }
    assert_int_equal(ask(pair, "look", 0, REGION_BYTES, 0), before);
}

static void misaligned_atomics_are_refused(void **state)
{
    struct pair *pair = *state;
    needs(pair, VERB_ATOMIC, true);
    uint64_t before = ask(pair, "look", 0, REGION_BYTES, 0);
    for (unsigned type = 0; type < AMO_TYPES; type++)
        for (size_t off = 1; off < amo_size(type); off++)
            for (unsigned how = 0; how < 2; how++) {
                struct form form = {.op = type == AMO_UINT128 ? AMO_CSWAP : AMO_SWAP,
                                    .type = type,
                                    .how = how ? HINT(LL) & pair->end.facts.honours : 0};
                struct xfer xfer = amo_xfer(&pair->end, &form, CELLS_AT + off);
                if (!offered(&pair->end, &form))
                    continue;
                assert_int_equal(perform(&pair->end, VERB_ATOMIC, &xfer), -EINVAL);
            }
    assert_int_equal(ask(pair, "look", 0, REGION_BYTES, 0), before);
}

static void an_atomic_beyond_the_targets_entry_is_refused(void **state)
{
    struct pair *pair = *state;
    static const size_t bad[] = {REGION_BYTES, REGION_BYTES + 4096, SIZE_MAX - 7};
    needs(pair, VERB_ATOMIC, true);
    for (size_t i = 0; i < LENGTH(bad); i++) {
        struct form form = {.op = AMO_SUM, .type = AMO_UINT64};
        struct xfer xfer = amo_xfer(&pair->end, &form, bad[i]);
        assert_true(perform(&pair->end, VERB_ATOMIC, &xfer) < 0);
        /* Its type says how long it is, whatever the length says. */
        xfer.length = 0;
        assert_true(perform(&pair->end, VERB_ATOMIC, &xfer) < 0);
    }
}

static void an_atomic_with_a_wrong_key_or_on_a_withdrawn_region_is_refused(void **state)
{
    struct pair *pair = *state;
    unsigned honours = pair->end.facts.honours;
    needs(pair, VERB_ATOMIC, true);
    for (unsigned withdrawn = 0; withdrawn < 2; withdrawn++) {
        for (unsigned how = 0; how < 4; how++) {
            struct form form = {.op = AMO_SUM,
                                .type = AMO_UINT64,
                                .how = ((how & 1 ? HINT(LL) : 0) | (how & 2 ? HINT(MATCHING) : 0)) &
                                       honours};
            struct xfer xfer = amo_xfer(&pair->end, &form, CELLS_AT);
            struct remote wrong = pair->end.remote;
            assert_int_equal(perform(&pair->end, VERB_ATOMIC, &xfer) == 0, !withdrawn);
            wrong.key ^= 0x10;
            xfer.remote = &wrong;
            assert_true(perform(&pair->end, VERB_ATOMIC, &xfer) < 0);
        }
        ask(pair, "withdraw", 0, 0, 0);
    }
}

static void atomics_return_when_the_target_is_dead(void **state)
{
    struct pair *pair = *state;
    needs(pair, VERB_ATOMIC, false);
    kill(pair->target, SIGKILL);
    uint64_t since_ms = clock_ms();
    for (int i = 0; i < 100; i++) {
        struct form form = {.op = AMO_SUM, .type = AMO_UINT64, .fetch = i % 2};
        struct completion completion;
        struct xfer xfer = amo_xfer(&pair->end, &form, CELLS_AT);
        choice.ops->atomic(pair->end.handle, &xfer);
        choice.ops->poll(pair->end.handle, &completion, 1);
    }
    assert_true(clock_ms() - since_ms < WAIT_MS);
}

/* ---- two processes at once ---- */

static const enum amo_type added[] = {AMO_UINT64, AMO_UINT32, AMO_FLOAT, AMO_DOUBLE_COMPLEX};

static double number_of(enum amo_type type, const void *bytes)
{
    union value v = {.wide = {0, 0}};
    memcpy(&v, bytes, amo_size(type));
    return type == AMO_UINT64   ? (double)v.u64
           : type == AMO_UINT32 ? (double)v.u32
           : type == AMO_FLOAT  ? (double)v.f[0]
                                : v.d[0];
}

static union value value_of(enum amo_type type, unsigned number)
{
    union value v = {.wide = {0, 0}};
    if (type == AMO_UINT64)
        v.u64 = number;
    else if (type == AMO_UINT32)
        v.u32 = number;
    else if (type == AMO_FLOAT)
        v.f[0] = (float)number;
    else
        v.d[0] = v.d[1] = number;
    return v;
}

/* One fetching add, to its end. */
static int add_one(struct end *end, enum amo_type type, size_t at, unsigned how)
{
    struct form form = {.op = AMO_SUM, .type = type, .fetch = true, .how = how};
    struct completion completion = {0};
    struct xfer xfer = amo_xfer(end, &form, at);
    int got = post(end, VERB_ATOMIC, &xfer);
    int status = got == LATER ? next_completion(end, &completion) : got < 0 ? got : 0;
    return status ? status : completion.status;
}

static void set_operand(struct end *end, enum amo_type type, unsigned number)
{
    union value value = value_of(type, number);
    memcpy(end->bytes + OPERAND_AT, &value, sizeof value);
}

/* Both begin together, or they would add one after the other: a count at the target says who is
 * there. */
static int both_here(struct end *end, uint64_t count)
{
    struct backoff backoff = {0};
    uint64_t seen = 0;
    set_operand(end, AMO_UINT64, 1);
    int status = add_one(end, AMO_UINT64, MEETING_AT, 0);
    set_operand(end, AMO_UINT64, 0);
    while (!status && seen < count && patient(&backoff)) {
        status = add_one(end, AMO_UINT64, MEETING_AT, 0);
        memcpy(&seen, end->bytes + RESULT_AT, sizeof seen);
    }
    return status || seen >= count ? status : fail(-ETIMEDOUT, "the other one does not come");
}

/* Adds one, EACH times, to a number of each type; what is fetched only ever grows. */
static int add_many(struct end *end)
{
    for (size_t i = 0; i < LENGTH(added); i++) {
        double last = -1;
        int status = both_here(end, 2 * (i + 1));
        set_operand(end, added[i], 1);
        for (unsigned n = 0; n < many(many(EACH)) && !status; n++) {
            unsigned how = n % 64 ? HINT(LL) & end->facts.honours : 0;
            status = add_one(end, added[i], CELLS_AT + i * 64, how);
            double fetched = number_of(added[i], end->bytes + RESULT_AT);
            if (!status && fetched <= last)
                status = fail(-EBADMSG, "%s: %g was fetched after %g", amo_type_names[added[i]],
                              fetched, last);
            last = fetched;
        }
        if (status)
            return status;
    }
    return 0;
}

static void adds_by_two_processes_at_once_lose_none(void **state)
{
    struct pair *pair = *state;
    int go, how = -1;
    needs(pair, VERB_ATOMIC, true);
    for (size_t i = 0; i < LENGTH(added); i++)
        if (!(pair->end.facts.amo[1][AMO_SUM] >> added[i] & 1))
            skip();
    assert_int_equal(crowd_open(pair, add_many, &go), 0);
    ask(pair, "fill", CELLS_AT, 8192, 0);
    /* With only two CPUs, a target that polls for nothing would make them take turns. */
    ask(pair, "verbs", 0, 0, VERB(ATOMIC));
    assert_int_equal(write(go, "g", 1), 1);
    int status = add_many(&pair->end);
    if (status)
        print_message("# %s\n", fail_reason());
    waitpid(pair->second, &how, 0);
    pair->second = 0;
    close(go);
    assert_int_equal(status, 0);
    assert_int_equal(how, 0);
    for (size_t i = 0; i < LENGTH(added); i++) {
        union value sum = value_of(added[i], 2 * many(many(EACH)));
        size_t size = amo_size(added[i]);
        assert_int_equal(ask(pair, "look", CELLS_AT + i * 64, size, 0),
                         digest((const char *)&sum, size));
    }
}

/* ---- where nothing moves ---- */

static void reads_and_atomics_complete_where_nothing_moves(void **state)
{
    struct pair *pair = *state;
    if (!pair->end.facts.alone)
        skip();
    needs(pair, VERB_READ, false);
    struct form form = {.op = AMO_SUM, .type = AMO_UINT64};
    struct xfer xfer = amo_xfer(&pair->end, &form, 0);
    assert_int_equal(perform(&pair->end, VERB_READ, &xfer), 0);
    needs(pair, VERB_ATOMIC, false);
    assert_int_equal(perform(&pair->end, VERB_ATOMIC, &xfer), 0);
}

static const struct CMUnitTest tests[] = {
    WITH_PAIR(atomics_on_8_bits_equal_the_model),
    WITH_PAIR(atomics_on_16_bits_equal_the_model),
    WITH_PAIR(atomics_on_32_bits_equal_the_model),
    WITH_PAIR(atomics_on_64_bits_equal_the_model),
    WITH_PAIR(atomics_on_real_numbers_equal_the_model),
    WITH_PAIR(atomics_on_complex_numbers_equal_the_model),
    WITH_PAIR(atomics_on_128_bits_equal_the_model),
    WITH_PAIR(atomics_as_high_rate_puts_equal_the_model),
    WITH_PAIR(operands_may_change_once_they_are_the_nics),
    WITH_PAIR(every_atomic_completes_once_however_many_are_posted),
    WITH_PAIR(every_atomic_is_accepted_if_offered_and_refused_if_it_does_not_exist),
    WITH_PAIR(what_is_no_op_type_or_compare_at_all_is_refused),
    WITH_PAIR(misaligned_atomics_are_refused),
    WITH_PAIR(an_atomic_beyond_the_targets_entry_is_refused),
    WITH_PAIR(an_atomic_with_a_wrong_key_or_on_a_withdrawn_region_is_refused),
    WITH_PAIR(atomics_return_when_the_target_is_dead),
    WITH_PAIR(adds_by_two_processes_at_once_lose_none),
    WITH_PAIR(reads_and_atomics_complete_where_nothing_moves),
};
const struct topic atomic_topic = {tests, LENGTH(tests)};
