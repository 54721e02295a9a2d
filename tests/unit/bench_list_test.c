/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the operations of a list lie: a fabric that moves nothing notes the place of each, and they
 * are those of the formula. Every list begins at the first place again. */
#include "bench/run.h"
#include "support/specs.h"

#include <string.h>

enum { NOTED = 4096, DEPTH = 16 };

/* What the fabric saw. */
static struct seen {
    size_t at[NOTED], remote_at[NOTED];
    unsigned more[NOTED];
    unsigned count, batches;
    struct fabric_batch batch;
} seen;

static int note(struct fabric *fabric, const struct xfer *x)
{
    (void)fabric;
    assert_true(seen.count < NOTED);
    seen.at[seen.count] = x->at;
    seen.remote_at[seen.count] = x->remote_at;
    seen.more[seen.count++] = x->how & HINT(MORE);
    return DONE;
}

static int note_batch(struct fabric *fabric, enum verb verb, const struct xfer *first,
                      const struct fabric_batch *batch)
{
    (void)fabric;
    assert_int_equal(verb, VERB_WRITE);
    assert_int_equal(first->at, 0);
    seen.batch = *batch;
    seen.batches++;
    return DONE;
}

static int nothing(struct fabric *fabric, struct completion *completions, int max)
{
    (void)fabric;
    (void)completions;
    (void)max;
    return 0;
}

static int is_alive(struct peer *peer)
{
    (void)peer;
    return 0;
}

static const struct peer_ops quiet_peer = {.name = "quiet", .alive = is_alive};

/* Runs lists of a size. */
static void run_lists(const struct spec *spec, size_t size, const struct fabric_ops *ops)
{
    struct fabric handle = {.ops = ops};
    struct peer peer = {.ops = &quiet_peer, .rank = PEER_CLIENT, .other = "server"};
    struct session session = {.peer = &peer, .fabric = ops, .handle = &handle};
    struct run run = {.handle = &handle,
                      .op = op_of(spec),
                      .fabric = ops,
                      .spec = spec,
                      .size = size,
                      .slots = list_slots(spec, size),
                      .receive_at = run_receive_at(spec),
                      .legs = 1,
                      .method = method_of(spec),
                      .session = &session};
    session.facts = (struct fabric_facts){
        .verbs = VERB(WRITE), .honours = HINT(MORE), .depth = DEPTH, .batch_max = SIZE_MAX};
    memset(&seen, 0, sizeof seen);
    assert_int_equal(meter_open(&run), 0);
    meter_reset(&run);
    assert_int_equal(run.op->prepare(&run), 0);
    assert_int_equal(run.method->initiate(&run), 0);
    assert_int_equal(run.out.result.count, spec->count.iterations * spec->pace.list);
    meter_close(&run);
}

/* The specification's, in its own words: how many places there are. */
static size_t places(const struct spec *spec, size_t size, size_t *step)
{
    size_t align = spec->data.align, page = 4096;
    size_t largest = (spec->size.max + align - 1) / align * align;
    size_t length = largest * spec->pace.list;
    if (length > spec->data.most)
        length = spec->data.most;
    size_t mapped = (length + page - 1) / page * page;
    size_t usable = mapped < spec->data.most ? mapped : spec->data.most;
    *step = (size + align - 1) / align * align;
    return usable / *step ? usable / *step : 1;
}

static const struct layout_case {
    uint64_t size, size_max, list, align, most;
} cases[] = {
    {64, 64, 10, 64, 1 << 20},  /* nothing wraps */
    {65, 65, 10, 64, 1 << 20},  /* rounded up */
    {100, 100, 10, 1, 1 << 20}, /* packed */
    {1000, 1000, 10, 24, 3528}, /* three places and a half: the half is not used */
    {1000, 1000, 10, 24, 3024}, /* three exactly */
    {1000, 1000, 10, 24, 1000}, /* less than one step: one place */
    {8, 4096, 20, 64, 8192},    /* a sweep whose small sizes fit */
    {1, 1024, 7, 4096, 1 << 14}, {4096, 4096, 1, 64, 4096},
    {1, 1, 300, 3, 100}, /* not a power of two */
};

static struct spec spec_for(const struct layout_case *c)
{
    struct spec spec = spec_of("write", "list");
    spec.size = (struct opt_range){c->size, c->size_max};
    spec.count.iterations = 3;
    spec.count.warmup = 1;
    spec.pace.list = c->list;
    spec.data.align = c->align;
    spec.data.most = c->most;
    assert_int_equal(spec_check(&spec), 0);
    return spec;
}

static void each_case(const struct fabric_ops *ops,
                      void (*check)(const struct spec *spec, size_t size))
{
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct spec spec = spec_for(&cases[i]);
        for (uint64_t size = spec.size.min; size; size = spec_next_size(&spec, size)) {
            run_lists(&spec, size, ops);
            check(&spec, size);
        }
    }
}

static void lies_where_it_should(const struct spec *spec, size_t size)
{
    size_t step, count = places(spec, size, &step);
    assert_int_equal(seen.count, 4 * spec->pace.list);
    for (unsigned i = 0; i < seen.count; i++) {
        size_t number = i % spec->pace.list, at = number % count * step;
        if (seen.at[i] != at || seen.remote_at[i] != at)
            fail_msg("%zu bytes: operation %zu lies at %zu and %zu, not at %zu", size, number,
                     seen.at[i], seen.remote_at[i], at);
        /* The last of a list rings, and the last that the fabric holds. */
        bool rings = number + 1 == spec->pace.list || (number + 1) % DEPTH == 0;
        assert_int_equal(!seen.more[i], rings);
    }
}

static void every_operation_has_the_place_of_the_formula(void **state)
{
    static const struct fabric_ops ops = {.name = "notes", .write = note, .poll = nothing};
    (void)state;
    each_case(&ops, lies_where_it_should);
}

static void goes_as_a_whole(const struct spec *spec, size_t size)
{
    size_t step, count = places(spec, size, &step);
    assert_int_equal(seen.count, 0);
    assert_int_equal(seen.batches, 4);
    assert_int_equal(seen.batch.count, spec->pace.list);
    assert_int_equal(seen.batch.slots, count < spec->pace.list ? count : spec->pace.list);
    assert_int_equal(seen.batch.step, step);
}

static void a_list_in_one_call_has_the_same_places(void **state)
{
    static const struct fabric_ops ops = {
        .name = "notes", .write = note, .batch = note_batch, .poll = nothing};
    (void)state;
    each_case(&ops, goes_as_a_whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operation_has_the_place_of_the_formula),
        cmocka_unit_test(a_list_in_one_call_has_the_same_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
