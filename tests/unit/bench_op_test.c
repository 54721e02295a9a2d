/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables of operations and methods keep what they promise to each other; what a spec asks of a
 * fabric, and how a sample is corrected. */
#include "bench/run.h"
#include "support/specs.h"

#include <stdio.h>
#include <string.h>

static const struct op *op_named(const char *name)
{
    struct spec spec = spec_of(name, method_names[0]);
    return op_of(&spec);
}

static const struct method *method_named(const char *name)
{
    struct spec spec = spec_of(op_names[0], name);
    return method_of(&spec);
}

static void expect(bool holds, const char *name, const char *what)
{
    if (!holds)
        fail_msg("%s: %s", name, what);
}

/* ---- operations ---- */

static void every_op_has_what_all_of_them_need(void **state)
{
    (void)state;
    for (int i = 0; op_names[i]; i++) {
        const struct op *op = op_named(op_names[i]);
        expect(strcmp(op->name, op_names[i]) == 0, op_names[i], "has another name in its table");
        expect(op->prepare, op->name, "is not prepared");
        expect(op->verb < VERBS && op->verbs & 1U << op->verb, op->name,
               "does not need its own verb");
        expect(!(op->verbs >> VERBS), op->name, "needs a verb that there is not");
        expect(!(op->hints >> HINTS), op->name, "has a hint that there is not");
        expect(op->legs <= 2, op->name, "has more legs than there and back");
        for (int k = 0; k < i; k++)
            expect(op_named(op_names[k]) != op, op->name, "is there twice");
    }
}

static void an_op_has_words_for_a_table_or_no_latency(void **state)
{
    (void)state;
    for (int i = 0; op_names[i]; i++) {
        struct spec spec = spec_of(op_names[i], "latency");
        const struct op *op = op_of(&spec);
        const struct op_words *words = op->words;
        if (!words || !op->legs) {
            expect(spec_check(&spec), op->name, "is measured by latency without words or legs");
            continue;
        }
        if (spec_check(&spec))
            fail_msg("%s: %s", op->name, fail_reason());
        expect(words->help.Op && words->help.ops && words->many && words->number && words->size,
               op->name, "lacks a word");
        expect(words->size_width >= (int)strlen(words->size), op->name,
               "has a column narrower than its title");
    }
}

static void an_op_has_what_its_traits_promise(void **state)
{
    (void)state;
    for (int i = 0; op_names[i]; i++) {
        const struct op *op = op_named(op_names[i]);
        unsigned traits = op->traits;
        expect(!(traits & OP_NEEDS_ACK) || op->target.arrival || op->next, op->name,
               "is acknowledged, and nobody looks at what arrives");
        expect(!(traits & OP_NEEDS_ACK) || traits & OP_STREAMS, op->name,
               "is acknowledged and has no stream");
        expect(!(traits & OP_ASKS) || (op->target.answer && op->verify.after), op->name,
               "asks, and nobody answers");
        expect(!(traits & OP_STEPS) || op->verify.before, op->name, "has steps without a before");
        expect(!op->pingpong.fire == !op->pingpong.arrived, op->name, "fires what never arrives");
        expect(!op->target.echo || op->legs == 2, op->name, "echoes what is not a round trip");
        expect(op->legs != 2 || op->target.echo, op->name, "is a round trip without an echo");
        expect(!op->target.echo || traits & OP_HALVES, op->name, "echoes from no half of its own");
        expect(!op->post || op->next, op->name, "has steps that nobody takes");
        expect(!(traits & OP_NO_LAYOUTS) || op->label, op->name, "has nothing to tell kinds apart");
    }
}

static void every_op_can_be_verified(void **state)
{
    (void)state;
    for (int i = 0; op_names[i]; i++) {
        const struct op *op = op_named(op_names[i]);
        expect(op->verify.before, op->name, "sends no data of its own to be verified");
        expect(op->verify.after || op->target.arrival || op->next, op->name,
               "is verified by nobody");
    }
}

static void an_op_has_the_methods_that_its_table_has_calls_for(void **state)
{
    (void)state;
    for (int i = 0; op_names[i]; i++) {
        const struct op *op = op_named(op_names[i]);
        const struct {
            const char *method;
            bool has;
        } cases[] = {{"latency", op->legs},
                     {"ping-pong", op->pingpong.fire},
                     {"stream", op->traits & OP_STREAMS},
                     {"list", op->list.form}};
        unsigned methods = 0, count = 0;
        for (size_t k = 0; k < LENGTH(cases); k++) {
            struct spec spec = spec_of(op->name, cases[k].method);
            expect(!spec_check(&spec) == cases[k].has, op->name, cases[k].method);
            methods += cases[k].has;
        }
        while (method_names[count])
            count++;
        assert_int_equal(count, LENGTH(cases)); /* a new method has its line above */
        expect(methods, op->name, "cannot be measured");
    }
}

/* ---- methods ---- */

static void every_method_has_what_all_of_them_need(void **state)
{
    (void)state;
    for (int i = 0; method_names[i]; i++) {
        const struct method *method = method_named(method_names[i]);
        expect(strcmp(method->name, method_names[i]) == 0, method_names[i],
               "has another name in its table");
        expect(method->samples && method->initiate && method->respond, method->name,
               "cannot be run");
        expect(method->legs <= 2, method->name, "has more legs than there and back");
        expect(method->ucx || method->columns, method->name, "has no table");
        for (const struct column *c = method->columns; c && c->title; c++)
            expect(c->value, method->name, c->title);
    }
}

static void every_method_measures_some_op_and_says_what(void **state)
{
    (void)state;
    for (int m = 0; method_names[m]; m++) {
        unsigned ops = 0;
        for (int i = 0; op_names[i]; i++) {
            struct spec spec = spec_of(op_names[i], method_names[m]);
            if (spec_check(&spec))
                continue;
            ops++;
            const char *samples = method_of(&spec)->samples(&spec);
            expect(strcmp(samples, "latency") == 0 || strcmp(samples, "overhead") == 0 ||
                       strcmp(samples, "list time") == 0,
                   method_names[m], samples);
            expect(spec_legs(&spec) == 1 || spec_legs(&spec) == 2, method_names[m], op_names[i]);
            expect(*op_called(&spec), method_names[m], "calls it nothing");
        }
        expect(ops, method_names[m], "measures no operation");
    }
}

static void a_stream_of_what_brings_something_back_has_a_latency(void **state)
{
    static const struct {
        const char *op, *samples;
        bool fetching;
    } cases[] = {{"write", "overhead", false},
                 {"read", "latency", false},
                 {"am", "overhead", false},
                 {"atomic", "overhead", false},
                 {"atomic", "latency", true}};
    (void)state;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct spec spec = spec_of(cases[i].op, "stream");
        spec.amo.fetching = cases[i].fetching;
        assert_string_equal(method_of(&spec)->samples(&spec), cases[i].samples);
    }
}

/* ---- memory ---- */

static void what_goes_both_ways_has_room_for_both(void **state)
{
    (void)state;
    for (int m = 0; method_names[m]; m++)
        for (int i = 0; op_names[i]; i++)
            for (uint64_t size = 1; size <= 65536; size *= 4) {
                struct spec spec = spec_of(op_names[i], method_names[m]);
                bool both = method_of(&spec)->ucx || op_of(&spec)->traits & OP_HALVES;
                if (method_of(&spec)->lists)
                    continue;
                spec.size.min = spec.size.max = size;
                size_t at = run_receive_at(&spec), bytes = run_buffer_bytes(&spec);
                assert_true(bytes >= size * (both ? 2 : 1));
                assert_int_equal(at != 0, both);
                assert_true(!both || (at >= size && bytes - at >= size && at % 64 == 0));
            }
}

static void a_list_has_room_for_its_places_in_each_direction(void **state)
{
    (void)state;
    for (int i = 0; op_names[i]; i++)
        for (uint64_t size = 1; size <= 65536; size *= 4)
            for (int both = 0; both < 2; both++) {
                struct spec spec = spec_of(op_names[i], "list");
                spec.size.min = spec.size.max = size;
                spec.both_ways = both;
                struct slots slots = list_slots(&spec, (size_t)size);
                size_t span = (slots.count - 1) * slots.step + (size_t)size;
                size_t at = run_receive_at(&spec), bytes = run_buffer_bytes(&spec);
                assert_int_equal(slots.count, spec.pace.list);
                assert_true(slots.step >= size && slots.step % spec.data.align == 0);
                assert_true(bytes - at >= span);
                assert_true(!both || at >= span);
            }
}

/* By the specification of the bandwidth tools: only whole steps are used, at least one. */
static void places_of_a_list_that_does_not_fit_are_shared(void **state)
{
    static const struct {
        uint64_t size, align, most, list, count, step, bytes;
    } cases[] = {{65536, 64, 4294967296, 256, 256, 65536, 16777216},
                 {100, 64, 4294967296, 256, 256, 128, 32768},
                 {100, 64, 1000, 256, 7, 128, 1000},
                 {1000, 24, 3528, 100, 3, 1008, 3528},
                 {1000, 64, 1000, 10, 1, 1024, 1000},
                 {8, 1, 4294967296, 16382, 16382, 8, 131056},
                 {4294967295, 64, 4294967296, 256, 1, 4294967296, 4294967296}};
    (void)state;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct spec spec = spec_of("write", "list");
        spec.size.min = spec.size.max = cases[i].size;
        spec.data.align = cases[i].align;
        spec.data.most = cases[i].most;
        spec.pace.list = cases[i].list;
        struct slots slots = list_slots(&spec, (size_t)cases[i].size);
        assert_int_equal(slots.count, cases[i].count);
        assert_int_equal(slots.step, cases[i].step);
        assert_int_equal(spec_list_bytes(&spec), cases[i].bytes);
    }
}

/* ---- hints ---- */

static void hints_are_those_asked_for_meant_and_honoured(void **state)
{
    enum { IDC = HINT(INLINE), LL = HINT(LL), ORDERLESS = HINT(RESTRICTED) };
    enum { MATCH = HINT(MATCHING), PULL = HINT(RENDEZVOUS) };
    static const struct {
        struct spec_hints asked;
        size_t size;
        unsigned meant, honours, hints;
    } cases[] = {{{0}, 8, ~0U, ~0U, IDC | LL | ORDERLESS},
                 {{0}, 224, ~0U, ~0U, IDC | LL | ORDERLESS},
                 {{0}, 225, ~0U, ~0U, LL | ORDERLESS},
                 {{.no_idc = true}, 8, ~0U, ~0U, LL | ORDERLESS},
                 {{.no_ll = true}, 8, ~0U, ~0U, IDC | ORDERLESS},
                 {{.unrestricted = true}, 8, ~0U, ~0U, IDC | LL},
                 {{.no_idc = true, .no_ll = true, .unrestricted = true}, 8, ~0U, ~0U, 0},
                 {{.matching = true}, 8, ~0U, ~0U, LL | MATCH},
                 {{.rendezvous = true}, 8, ~0U, ~0U, LL | ORDERLESS | PULL},
                 /* What is not honoured itself rules nothing out. */
                 {{.matching = true}, 8, ~0U, ~(unsigned)MATCH, IDC | LL | ORDERLESS},
                 {{.matching = true}, 8, ~(unsigned)MATCH, ~0U, IDC | LL | ORDERLESS},
                 {{.rendezvous = true}, 8, ~0U, ~(unsigned)PULL, IDC | LL | ORDERLESS},
                 /* Longer commands are queued; of a rendezvous, only the request is issued. */
                 {{0}, 64 << 20, ~0U, ~0U, LL | ORDERLESS},
                 {{0}, (64 << 20) + 1, ~0U, ~0U, ORDERLESS},
                 {{.rendezvous = true}, (64 << 20) + 1, ~0U, ~0U, LL | ORDERLESS | PULL},
                 {{0}, 8, LL | ORDERLESS, ~0U, LL | ORDERLESS},
                 {{0}, 8, ~0U, IDC, IDC},
                 {{0}, 8, ~0U, 0, 0}};
    (void)state;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct spec spec = spec_of("write", "latency");
        struct op op = *op_of(&spec);
        struct session session = {
            .facts = {.honours = cases[i].honours, .max_inline = 224, .max_ll = 64 << 20}};
        struct run run = {.spec = &spec,
                          .op = &op,
                          .method = method_of(&spec),
                          .session = &session,
                          .size = cases[i].size};
        struct gpu *gpu = (struct gpu *)(void *)&session;
        spec.hints = cases[i].asked;
        op.hints = cases[i].meant & ~(unsigned)HINT(HRP);
        if (run_hints(&run) != cases[i].hints)
            fail_msg("case %zu: %x", i, run_hints(&run));
        /* No command carries what lies on a GPU. */
        session.buffer.gpu = gpu;
        assert_int_equal(run_hints(&run), cases[i].hints & ~(unsigned)IDC);
    }
}

/* For short operations that need no order and bring nothing back. */
static void high_rate_puts_are_for_what_is_short_and_has_no_order(void **state)
{
    static const struct {
        const char *op;
        struct spec_hints asked;
        size_t size;
        bool fetching, holds;
        enum amo_type type;
    } cases[] = {{"write", {0}, 2048, false, true, AMO_UINT32},
                 {"write", {0}, 2049, false, false, 0},
                 {"write", {.no_hrp = true}, 8, false, false, 0},
                 {"write", {.unrestricted = true}, 8, false, false, 0},
                 {"read", {0}, 8, false, false, 0},
                 {"atomic", {0}, 8, false, true, AMO_UINT64},
                 {"atomic", {0}, 8, true, false, AMO_UINT64},
                 {"atomic", {.matching = true}, 8, false, false, AMO_UINT64},
                 /* And on types that the NIC takes so. */
                 {"atomic", {0}, 4, false, false, AMO_UINT32},
                 {"atomic", {0}, 4, false, true, AMO_INT32}};
    (void)state;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct spec spec = spec_of(cases[i].op, "list");
        struct session session = {
            .facts = {.honours = ~0U, .max_inline = 224, .amo_no_hrp = 1U << AMO_UINT32}};
        struct run run = {.spec = &spec,
                          .op = op_of(&spec),
                          .method = method_of(&spec),
                          .session = &session,
                          .size = cases[i].size};
        spec.hints = cases[i].asked;
        spec.amo.fetching = cases[i].fetching;
        spec.amo.type = (int)cases[i].type + 1;
        if (!(run_hints(&run) & HINT(HRP)) == cases[i].holds)
            fail_msg("case %zu", i);
        assert_false(run_hints(&run) & HINT(LL)); /* lists are rung, not issued one by one */
    }
}

static void a_data_layout_goes_with_the_hints(void **state)
{
    struct spec spec = spec_of("write", "stream");
    struct session session = {.facts = {.honours = ~0U, .max_inline = 224}};
    struct run run = {.spec = &spec,
                      .op = op_of(&spec),
                      .method = method_of(&spec),
                      .session = &session,
                      .size = 8};
    (void)state;
    unsigned without = run_hints(&run);
    assert_false(without & HINT(INLINE)); /* the layout decides */
    for (int i = 0; i < LAYOUTS; i++) {
        spec.data.layout = 1 + i;
        assert_int_equal(run_hints(&run), without | LAYOUT_HINT(i));
    }
}

/* ---- what a fabric can do ---- */

static void a_fabric_that_does_not_reach_a_gpu_is_refused_by_name(void **state)
{
    static const struct fabric_ops fabric = {.name = "odd"};
    const struct fabric_facts none = {.verbs = VERB(WRITE), .why_no_gpu = "it is old"};
    const struct fabric_facts some = {
        .verbs = VERB(WRITE) | VERB(READ), .gpus = 1U << MEMORY_AMD, .gpu_verbs = VERB(WRITE)};
    const struct spec write = spec_of("write", "latency"), read = spec_of("read", "latency");
    (void)state;
    for (int rank = 0; rank < 2; rank++) {
        struct session session = {.fabric = &fabric, .facts = none};
        session.vendors[rank] = MEMORY_NVIDIA;
        assert_int_equal(session_can(&session, &write), -ENOTSUP);
        assert_string_equal(fail_reason(), "odd does not reach memory of NVIDIA GPUs: it is old");
        session.facts = some;
        assert_int_equal(session_can(&session, &write), -ENOTSUP);
        session.vendors[rank] = MEMORY_AMD;
        assert_int_equal(session_can(&session, &write), 0);
        assert_int_equal(session_can(&session, &read), -ENOTSUP);
        assert_string_equal(fail_reason(), "odd cannot read on GPU memory");
    }
}

static void a_fabric_that_cannot_do_what_is_asked_is_refused(void **state)
{
    static const struct fabric_ops fabric = {.name = "odd"};
    struct session session = {.fabric = &fabric};
    struct spec plain = spec_of("write", "latency"), verify = plain;
    (void)state;
    verify.data.verify = true;
    session.facts = (struct fabric_facts){.verbs = VERB(WRITE)};
    assert_int_equal(session_can(&session, &plain), 0);
    assert_int_equal(session_can(&session, &verify), 0);
    session.facts = (struct fabric_facts){.verbs = VERB(WRITE), .alone = true};
    assert_int_equal(session_can(&session, &plain), 0);
    assert_int_equal(session_can(&session, &verify), -EINVAL);
    assert_contains(fail_reason(), "fabric odd moves nothing: there is nothing to verify");
    session.facts = (struct fabric_facts){.verbs = VERB(SEND)};
    assert_int_equal(session_can(&session, &plain), -ENOTSUP);
    assert_string_equal(fail_reason(), "odd cannot write");
    struct spec put = spec_of("write", "stream");
    put.local.ucx_words = true;
    assert_int_equal(session_can(&session, &put), -ENOTSUP);
    assert_string_equal(fail_reason(), "odd cannot put");
}

/* A fabric with these longest messages in the three layouts of a write. */
static struct session session_with(size_t brief, size_t copied, size_t zero)
{
    static const struct fabric_ops fabric = {.name = "odd"};
    struct session session = {.fabric = &fabric, .facts = {.verbs = (1U << VERBS) - 1}};
    for (int verb = 0; verb < VERBS; verb++) {
        size_t *most = session.facts.layout_max[verb];
        most[LAYOUT_SHORT] = brief;
        most[LAYOUT_BCOPY] = copied;
        most[LAYOUT_ZCOPY] = zero;
    }
    return session;
}

static void the_first_layout_that_holds_the_message_is_taken(void **state)
{
    struct session session = session_with(64, 4096, SIZE_MAX);
    struct spec spec = spec_of("write", "stream");
    static const struct {
        uint64_t size;
        int layout;
    } cases[] = {{8, LAYOUT_SHORT},    {64, LAYOUT_SHORT},   {65, LAYOUT_BCOPY},
                 {4096, LAYOUT_BCOPY}, {4097, LAYOUT_ZCOPY}, {UINT32_MAX, LAYOUT_ZCOPY}};
    (void)state;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        spec.size.min = spec.size.max = cases[i].size;
        assert_int_equal(session_layout(&session, &spec), 1 + cases[i].layout);
    }
    struct spec read = spec_of("read", "stream"), latency = spec_of("write", "latency");
    assert_int_equal(session_layout(&session, &read), 1 + LAYOUT_BCOPY);
    assert_int_equal(session_layout(&session, &latency), 0);
    spec.data.layout = 1 + LAYOUT_BCOPY;
    spec.size.min = spec.size.max = 8;
    assert_int_equal(session_layout(&session, &spec), 1 + LAYOUT_BCOPY);
}

static void a_layout_that_is_not_there_is_refused_with_what_there_is(void **state)
{
    struct session session = session_with(64, 0, 4096);
    struct spec spec = spec_of("write", "stream");
    (void)state;
    spec.data.layout = 1 + LAYOUT_BCOPY;
    assert_int_equal(session_can(&session, &spec), -ENOTSUP);
    assert_string_equal(fail_reason(), "odd has no write in layout bcopy; it has short, zcopy");
    spec.data.layout = 1 + LAYOUT_SHORT;
    assert_int_equal(session_can(&session, &spec), 0);
    spec.size.min = spec.size.max = 65;
    assert_int_equal(session_can(&session, &spec), -EMSGSIZE);
    assert_string_equal(fail_reason(), "odd: write in layout short takes at most 64 bytes, not 65");
}

/* ---- samples ---- */

static void samples_lose_the_clock_once_and_never_go_below_zero(void **state)
{
    struct run run = {.meter = {.parts = 1, .clock = {.ps_per_tick = 1000, .cost_ps = 27000}}};
    (void)state;
    assert_int_equal(meter_sample_ps(&run, 2027), 2000000);
    assert_int_equal(meter_sample_ps(&run, 28), 1000);
    assert_int_equal(meter_sample_ps(&run, 27), 0);
    assert_int_equal(meter_sample_ps(&run, 26), 0);
    assert_int_equal(meter_sample_ps(&run, 0), 0);
    /* A round trip: the cost once, then half, rounded. */
    run.meter.parts = 2;
    assert_int_equal(meter_sample_ps(&run, 2027), 1000000);
    assert_int_equal(meter_sample_ps(&run, 20), 0);
    run.meter.clock.cost_ps = 0;
    run.meter.clock.ps_per_tick = 1;
    assert_int_equal(meter_sample_ps(&run, 5), 3);
    assert_int_equal(meter_sample_ps(&run, 4), 2);
    /* A hundred operations: the cost once, and the hundredth part. */
    run.meter = (struct meter){.parts = 100, .clock = {.ps_per_tick = 1000, .cost_ps = 27000}};
    assert_int_equal(meter_sample_ps(&run, 1527), 15000);
    assert_int_equal(meter_sample_ps(&run, 27), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_op_has_what_all_of_them_need),
        cmocka_unit_test(an_op_has_words_for_a_table_or_no_latency),
        cmocka_unit_test(an_op_has_what_its_traits_promise),
        cmocka_unit_test(every_op_can_be_verified),
        cmocka_unit_test(an_op_has_the_methods_that_its_table_has_calls_for),
        cmocka_unit_test(every_method_has_what_all_of_them_need),
        cmocka_unit_test(every_method_measures_some_op_and_says_what),
        cmocka_unit_test(a_stream_of_what_brings_something_back_has_a_latency),
        cmocka_unit_test(what_goes_both_ways_has_room_for_both),
        cmocka_unit_test(a_list_has_room_for_its_places_in_each_direction),
        cmocka_unit_test(places_of_a_list_that_does_not_fit_are_shared),
        cmocka_unit_test(hints_are_those_asked_for_meant_and_honoured),
        cmocka_unit_test(high_rate_puts_are_for_what_is_short_and_has_no_order),
        cmocka_unit_test(a_data_layout_goes_with_the_hints),
        cmocka_unit_test(a_fabric_that_does_not_reach_a_gpu_is_refused_by_name),
        cmocka_unit_test(a_fabric_that_cannot_do_what_is_asked_is_refused),
        cmocka_unit_test(the_first_layout_that_holds_the_message_is_taken),
        cmocka_unit_test(a_layout_that_is_not_there_is_refused_with_what_there_is),
        cmocka_unit_test(samples_lose_the_clock_once_and_never_go_below_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
