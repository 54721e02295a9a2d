/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists: operations that announce that more follow, and whole lists in one call. */
#include "conformance.h"

#include <errno.h>
#include <string.h>

enum { AT = 4096, STEP = 96, PLACES = 10, COUNT = 37, LENGTH_OF_ONE = 24 };

static void needs_batch(struct pair *pair, enum verb verb)
{
    needs(pair, verb, true);
    if (!pair->end.handle->ops->batch || pair->end.facts.batch_max < LENGTH_OF_ONE) {
        print_message("# no whole lists\n");
        skip();
    }
}

static int batch(struct end *end, enum verb verb, const struct xfer *first, unsigned slots)
{
    const struct fabric_batch list = {.count = COUNT, .slots = slots, .step = STEP};
    struct completion completion;
    int got = end->handle->ops->batch(end->handle, verb, first, &list);
    if (got != LATER)
        return got == DONE ? 0 : got;
    int status = next_completion(end, &completion);
    return status ? status : completion.status;
}

/* What the target's bytes become: those of the places, and none between them. */
static uint64_t painted(const struct end *end, unsigned slots)
{
    static char expected[(COUNT + 1) * STEP];
    memset(expected, 0x5a, sizeof expected);
    for (unsigned i = 0; i < slots && i < COUNT; i++)
        memcpy(expected + (size_t)i * STEP, end->bytes + AT + (size_t)i * STEP, LENGTH_OF_ONE);
    return digest(expected, sizeof expected);
}

static void a_list_of_writes_paints_its_places_and_nothing_else(void **state)
{
    struct pair *pair = *state;
    struct end *end = &pair->end;
    needs_batch(pair, VERB_WRITE);
    for (unsigned slots = 1; slots <= COUNT; slots += slots < PLACES ? 3 : PLACES) {
        struct xfer first = xfer_of(end, AT, LENGTH_OF_ONE);
        pattern(end->bytes + AT, (size_t)COUNT * STEP, slots);
        ask(pair, "fill", AT, (size_t)(COUNT + 1) * STEP, 0x5a);
        assert_int_equal(batch(end, VERB_WRITE, &first, slots), 0);
        assert_int_equal(ask(pair, "look", AT, (size_t)(COUNT + 1) * STEP, 0), painted(end, slots));
    }
}

static void a_list_of_reads_brings_its_places_and_nothing_else(void **state)
{
    struct pair *pair = *state;
    struct end *end = &pair->end;
    needs_batch(pair, VERB_READ);
    struct xfer first = xfer_of(end, AT, LENGTH_OF_ONE);
    ask(pair, "pattern", AT, (size_t)COUNT * STEP, 7);
    memset(end->bytes + AT, 0x5a, (size_t)COUNT * STEP);
    assert_int_equal(batch(end, VERB_READ, &first, COUNT), 0);
    char there[COUNT * STEP];
    pattern(there, sizeof there, 7);
    for (size_t i = 0; i < sizeof there; i++)
        assert_int_equal(end->bytes[AT + i], i % STEP < LENGTH_OF_ONE ? there[i] : 0x5a);
}

static void a_list_of_atomics_applies_each_and_fetches_each(void **state)
{
    struct pair *pair = *state;
    struct end *end = &pair->end;
    uint64_t operand = 3, results[(size_t)COUNT * STEP / sizeof(uint64_t)] = {0};
    needs_batch(pair, VERB_ATOMIC);
    struct xfer first = xfer_of(end, AT, sizeof operand);
    first.amo.op = AMO_SUM;
    first.amo.type = AMO_UINT64;
    first.amo.fetch = 1;
    first.amo.operand = &operand;
    first.amo.result = results;
    ask(pair, "fill", AT, (size_t)COUNT * STEP, 0);
    assert_int_equal(batch(end, VERB_ATOMIC, &first, PLACES), 0);
    for (unsigned i = 0; i < PLACES; i++) {
        /* As often as the list came past it. */
        uint64_t times = COUNT / PLACES + (i < COUNT % PLACES), there = times * operand;
        assert_int_equal(results[(size_t)i * STEP / sizeof(uint64_t)], there - operand);
        assert_int_equal(ask(pair, "look", AT + (size_t)i * STEP, sizeof there, 0),
                         digest((const char *)&there, sizeof there));
    }
}

static void a_list_that_leaves_the_region_writes_nothing_outside(void **state)
{
    struct pair *pair = *state;
    struct end *end = &pair->end;
    needs_batch(pair, VERB_WRITE);
    struct xfer first = xfer_of(end, REGION_BYTES - 5 * STEP, LENGTH_OF_ONE);
    uint64_t before = ask(pair, "look", 0, REGION_BYTES, 0);
    assert_true(batch(end, VERB_WRITE, &first, COUNT) < 0);
    assert_int_equal(ask(pair, "look", 0, REGION_BYTES, 0), before);
}

/* Announced or not, all are there once all have completed. */
static void operations_that_announce_more_complete_with_the_last(void **state)
{
    struct pair *pair = *state;
    struct end *end = &pair->end;
    unsigned more = HINT(MORE) & end->facts.honours, later = 0;
    needs(pair, VERB_WRITE, true);
    pattern(end->bytes + AT, (size_t)COUNT * STEP, 1);
    ask(pair, "fill", AT, (size_t)(COUNT + 1) * STEP, 0x5a);
    for (unsigned i = 0; i < COUNT && i < end->facts.depth; i++) {
        struct xfer one = xfer_of(end, AT + (size_t)i * STEP, LENGTH_OF_ONE);
        one.how = i + 1 < COUNT && i + 1 < end->facts.depth ? more : 0;
        int got = post(end, VERB_WRITE, &one);
        assert_true(got >= 0);
        later += got == LATER;
    }
    while (later--) {
        struct completion completion;
        assert_int_equal(next_completion(end, &completion), 0);
        assert_int_equal(completion.status, 0);
    }
    unsigned made = COUNT < end->facts.depth ? COUNT : end->facts.depth;
    assert_int_equal(ask(pair, "look", AT, (size_t)(COUNT + 1) * STEP, 0), painted(end, made));
}

static const struct CMUnitTest tests[] = {
    WITH_PAIR(a_list_of_writes_paints_its_places_and_nothing_else),
    WITH_PAIR(a_list_of_reads_brings_its_places_and_nothing_else),
    WITH_PAIR(a_list_of_atomics_applies_each_and_fetches_each),
    WITH_PAIR(a_list_that_leaves_the_region_writes_nothing_outside),
    WITH_PAIR(operations_that_announce_more_complete_with_the_last),
};
const struct topic list_topic = {tests, LENGTH(tests)};
