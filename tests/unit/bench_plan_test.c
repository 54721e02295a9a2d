/* SPDX-License-Identifier: BSD-3-Clause */
/* From options to a plan: the rules among options in their sentences, what a plan asks of the
 * fabric, how a sample is corrected, and which CPUs the two ends use. */
#include "core/opt.h"
#include "support/unit.h"
#include "tool/tool.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

static char warnings[512];

static void collect(const char *sentence)
{
    size_t used = strlen(warnings);
    snprintf(warnings + used, sizeof warnings - used, "%s\n", sentence);
}

/* ---- plans ---- */

enum { WORDS = 8 };

struct asked {
    struct plan plan;
    struct opt_set set;
};

/* As the tools do it: defaults, then the words. */
static void ask(struct asked *asked, char *const *words)
{
    int argc = 0, given;
    while (words[argc])
        argc++;
    *asked = (struct asked){.set = {.rows = cxi_rows, .takes = CXI_WRITE, .base = &asked->plan}};
    opt_defaults(&asked->set);
    if (opt_parse(&asked->set, argc, words, &asked->plan.address, 1, &given))
        fail_msg("%s", fail_reason());
}

static int check(struct asked *asked)
{
    warnings[0] = '\0';
    warn_to(collect);
    int status = plan_check(&asked->plan, &asked->set);
    warn_to(NULL);
    return status;
}

#define ASK(asked, ...) ask(asked, (char *const[WORDS + 1]){__VA_ARGS__})

static void plans_that_make_sense_pass_without_a_word(void **state)
{
    static char *const cases[][WORDS + 1] = {{NULL},
                                             {"10.1.1.8"},
                                             {"10.1.1.8", "-s", "1:4M", "-n", "5"},
                                             {"10.1.1.8", "-D", "5"},
                                             {"10.1.1.8", "--report-all", "-n", "5"},
                                             {"10.1.1.8", "--use-hp", "2M"},
                                             {"10.1.1.8", "--cpu", "1"},
                                             {"--local"},
                                             {"--local", "--cpu", "0,1"},
                                             {"--local", "-p", "0"},
                                             {"--loop", "--cpu", "0"},
                                             {"-p", "0"}};
    (void)state;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct asked asked;
        ask(&asked, cases[i]);
        struct plan before = asked.plan;
        if (check(&asked))
            fail_msg("case %zu: %s", i, fail_reason());
        assert_string_equal(warnings, "");
        assert_memory_equal(&asked.plan, &before, sizeof before);
    }
}

static void plans_that_contradict_themselves_are_refused_in_a_sentence(void **state)
{
    static const struct {
        char *words[WORDS + 1];
        int status;
        const char *reason;
    } cases[] = {
        {{"--local", "host"},
         -EINVAL,
         "--local starts its own server: leave out the address \"host\""},
        {{"--loop", "host"}, -EINVAL, "--loop is for a server: leave out the address"},
        {{"--loop", "--local"}, -EINVAL, "--loop is for a server: leave out --local"},
        {{""}, -EINVAL, "the server's address is empty"},
        {{"host", "-p", "0"}, -EINVAL, "--port 0 is for a server"},
        {{"--cpu", "0,1"}, -EINVAL, "--cpu: a second CPU is for the server that --local starts"},
        {{"host", "--cpu", "0,1"}, -EINVAL, "--cpu: a second CPU"}};
    (void)state;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct asked asked;
        ask(&asked, cases[i].words);
        if (check(&asked) != cases[i].status)
            fail_msg("not refused: %s", cases[i].reason);
        assert_contains(fail_reason(), cases[i].reason);
        assert_string_equal(warnings, "");
    }
}

static void duration_wins_over_iterations_and_says_so(void **state)
{
    struct asked asked;
    (void)state;
    ASK(&asked, "host", "-D", "5", "-n", "100");
    assert_int_equal(check(&asked), 0);
    assert_string_equal(warnings, "--duration and --iters are both given: --duration wins\n");
    assert_int_equal(asked.plan.duration_s, 5);
    ASK(&asked, "host", "-n", "100");
    assert_int_equal(check(&asked), 0);
    assert_string_equal(warnings, "");
    assert_int_equal(asked.plan.duration_s, 0);
}

static void report_all_is_ignored_with_a_duration_and_says_so(void **state)
{
    struct asked asked;
    (void)state;
    ASK(&asked, "host", "--report-all", "-D", "5");
    assert_int_equal(check(&asked), 0);
    assert_string_equal(warnings, "--report-all is ignored with --duration\n");
    assert_false(asked.plan.report_all);
    ASK(&asked, "host", "--report-all");
    assert_int_equal(check(&asked), 0);
    assert_true(asked.plan.report_all);
}

static void huge_pages_of_gpu_buffers_are_warned_of(void **state)
{
    struct asked asked;
    (void)state;
    ASK(&asked, "host", "-t", "1", "--use-hp", "2M");
    assert_int_equal(check(&asked), 0);
    assert_string_equal(warnings, "--use-hp has no effect on GPU buffers\n");
}

static void a_type_of_gpu_without_a_gpu_is_warned_of(void **state)
{
    struct asked asked;
    (void)state;
    ASK(&asked, "host", "-g", "AMD");
    assert_int_equal(check(&asked), 0);
    assert_string_equal(warnings, "--gpu-type has no effect without --tx-gpu or --rx-gpu\n");
    ASK(&asked, "host", "-g", "AMD", "-r", "0");
    assert_int_equal(check(&asked), 0);
    assert_string_equal(warnings, "");
}

static void a_server_does_not_repeat_the_warnings_of_its_client(void **state)
{
    struct asked client, server;
    struct msg text = {0};
    (void)state;
    ASK(&client, "host", "--report-all", "-D", "5", "-n", "7", "-s", "1:64");
    ASK(&server, "-n", "9");
    assert_int_equal(opt_encode(&client.set, &text), 0);
    assert_int_equal(opt_decode(&server.set, &text, NULL), 0);
    assert_int_equal(check(&server), 0);
    assert_string_equal(warnings, "");
    assert_int_equal(server.plan.duration_s, 5);
    assert_int_equal(server.plan.size.max, 64);
    assert_false(server.plan.report_all);
}

static void both_ends_get_the_same_plan_of_every_shared_option(void **state)
{
    struct asked client, server;
    struct msg first = {0}, second = {0};
    (void)state;
    ASK(&client, "host", "-n5", "--warmup=0", "--latency-gap=0", "-s8:1K", "--no-idc", "--no-ll",
        "--unrestricted");
    ASK(&server, NULL);
    assert_int_equal(opt_encode(&client.set, &first), 0);
    assert_int_equal(opt_decode(&server.set, &first, NULL), 0);
    assert_int_equal(opt_encode(&server.set, &second), 0);
    assert_string_equal(second.bytes, first.bytes);
    assert_int_equal(server.plan.warmup, 0);
    assert_int_equal(server.plan.gap_us, 0);
    assert_true(server.plan.no_idc && server.plan.no_ll && server.plan.unrestricted);
}

static void a_send_has_room_for_both_ways(void **state)
{
    struct asked asked;
    (void)state;
    ASK(&asked, "host", "-s", "1:64K");
    assert_true(op_send.buffer(&asked.plan) >= UINT64_C(2) * 65536);
}

static void huge_page_choices_are_kinds_of_memory(void **state)
{
    (void)state;
    assert_non_null(plan_huge[0]);
    for (size_t i = 0; plan_huge[i]; i++)
        assert_non_null(memory_find(plan_huge[i]));
}

/* ---- hints ---- */

static void hints_are_those_asked_for_meant_and_honoured(void **state)
{
    enum { IDC = HINT(INLINE), LL = HINT(LL), ORDERLESS = HINT(RESTRICTED) };
    static const struct {
        char *words[WORDS + 1];
        size_t size;
        unsigned meant, honours, hints;
    } cases[] = {{{NULL}, 8, ~0U, ~0U, IDC | LL | ORDERLESS},
                 {{NULL}, 224, ~0U, ~0U, IDC | LL | ORDERLESS},
                 {{NULL}, 225, ~0U, ~0U, LL | ORDERLESS},
                 {{"--no-idc"}, 8, ~0U, ~0U, LL | ORDERLESS},
                 {{"--no-ll"}, 8, ~0U, ~0U, IDC | ORDERLESS},
                 {{"--unrestricted"}, 8, ~0U, ~0U, IDC | LL},
                 {{"--no-idc", "--no-ll", "--unrestricted"}, 8, ~0U, ~0U, 0},
                 {{NULL}, 8, LL | ORDERLESS, ~0U, LL | ORDERLESS},
                 {{NULL}, 8, ~0U, IDC, IDC},
                 {{NULL}, 8, ~0U, 0, 0},
                 /* Each size for itself, whatever range it is in. */
                 {{"-s", "8:1024"}, 128, ~0U, ~0U, IDC | LL | ORDERLESS},
                 {{"-s", "8:1024"}, 256, ~0U, ~0U, LL | ORDERLESS}};
    (void)state;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct asked asked;
        struct op op = op_write;
        struct run run = {.plan = &asked.plan,
                          .op = &op,
                          .facts = {.honours = cases[i].honours, .max_inline = 224}};
        struct gpu gpu;
        ask(&asked, cases[i].words);
        op.hints = cases[i].meant;
        if (run_hints(&run, cases[i].size) != cases[i].hints)
            fail_msg("case %zu: %x", i, run_hints(&run, cases[i].size));
        /* No command carries what lies on a GPU. */
        run.buffer.gpu = &gpu;
        assert_int_equal(run_hints(&run, cases[i].size), cases[i].hints & ~IDC);
    }
}

static void a_fabric_that_does_not_reach_a_gpu_is_refused_by_name(void **state)
{
    static const struct fabric_ops fabric = {.name = "odd"};
    const struct fabric_facts none = {.verbs = VERB(WRITE), .why_no_gpu = "it is old"};
    const struct fabric_facts some = {
        .verbs = VERB(WRITE) | VERB(READ), .gpus = 1U << MEMORY_AMD, .gpu_verbs = VERB(WRITE)};
    struct asked asked;
    (void)state;
    ASK(&asked, "host", "-t", "0");
    for (int rank = 0; rank < 2; rank++) {
        asked.plan.vendors[rank] = MEMORY_NVIDIA;
        assert_int_equal(bench_can(&asked.plan, &op_write, &fabric, &none), -ENOTSUP);
        assert_string_equal(fail_reason(), "odd does not reach memory of NVIDIA GPUs: it is old");
        assert_int_equal(bench_can(&asked.plan, &op_write, &fabric, &some), -ENOTSUP);
        asked.plan.vendors[rank] = MEMORY_AMD;
        assert_int_equal(bench_can(&asked.plan, &op_write, &fabric, &some), 0);
        assert_int_equal(bench_can(&asked.plan, &op_read, &fabric, &some), -ENOTSUP);
        assert_string_equal(fail_reason(), "odd cannot read on GPU memory");
        asked.plan.vendors[rank] = MEMORY_CPU;
    }
}

static void a_fabric_that_cannot_do_what_is_asked_is_refused(void **state)
{
    static const struct fabric_ops fabric = {.name = "odd"};
    const struct fabric_facts able = {.verbs = VERB(WRITE)}, unable = {.verbs = VERB(SEND)};
    const struct fabric_facts alone = {.verbs = VERB(WRITE), .alone = true};
    struct asked plain, verify;
    (void)state;
    ASK(&plain, "host");
    ASK(&verify, "host", "--verify");
    assert_int_equal(bench_can(&plain.plan, &op_write, &fabric, &able), 0);
    assert_int_equal(bench_can(&verify.plan, &op_write, &fabric, &able), 0);
    assert_int_equal(bench_can(&plain.plan, &op_write, &fabric, &alone), 0);
    assert_int_equal(bench_can(&plain.plan, &op_write, &fabric, &unable), -ENOTSUP);
    assert_string_equal(fail_reason(), "odd cannot write");
    assert_int_equal(bench_can(&verify.plan, &op_write, &fabric, &alone), -EINVAL);
    assert_contains(fail_reason(), "fabric odd moves nothing: --verify");
}

/* ---- samples ---- */

static void samples_lose_the_clock_once_and_never_go_below_zero(void **state)
{
    struct op op = op_write;
    struct run run = {.op = &op, .clock = {.ps_per_tick = 1000, .cost_ps = 27000}};
    (void)state;
    assert_int_equal(op.legs, 1);
    assert_int_equal(run_sample(&run, 2027), 2000000);
    assert_int_equal(run_sample(&run, 28), 1000);
    assert_int_equal(run_sample(&run, 27), 0);
    assert_int_equal(run_sample(&run, 26), 0);
    assert_int_equal(run_sample(&run, 0), 0);
    /* A round trip: the cost once, then half, rounded. */
    op.legs = 2;
    assert_int_equal(run_sample(&run, 2027), 1000000);
    assert_int_equal(run_sample(&run, 20), 0);
    run.clock.cost_ps = 0;
    run.clock.ps_per_tick = 1;
    assert_int_equal(run_sample(&run, 5), 3);
    assert_int_equal(run_sample(&run, 4), 2);
}

static void interference_is_the_sum_of_differences(void **state)
{
    struct interference sum = {.switches = 1};
    const struct interference from = {10, 20, 30, 40}, to = {11, 22, 33, 44};
    (void)state;
    interference_add(&sum, &from, &to);
    interference_add(&sum, &from, &to);
    assert_int_equal(sum.switches, 3);
    assert_int_equal(sum.migrations, 4);
    assert_int_equal(sum.faults, 6);
    assert_int_equal(sum.steal_ms, 8);
}

/* ---- CPUs ---- */

static void two_ends_share_a_cpu_only_on_one_machine_and_one_cpu(void **state)
{
    static const struct {
        const char *mine, *theirs;
        bool shared, roams;
    } cases[] = {{"host=a\ncpu=1\n", "host=a\ncpu=1\n", true, false},
                 {"host=a\ncpu=1\n", "host=a\ncpu=2\n", false, false},
                 {"host=a\ncpu=1\n", "host=a\ncpu=11\n", false, false},
                 {"host=a\ncpu=1\n", "host=b\ncpu=1\n", false, false},
                 {"host=a\ncpu=many\n", "host=a\ncpu=many\n", false, true},
                 {"host=a\ncpu=many\n", "host=a\ncpu=1\n", false, true},
                 {"host=a\ncpu=1\n", "host=a\ncpu=many\n", false, true},
                 {"host=a\ncpu=many\n", "host=b\ncpu=many\n", false, false},
                 {"host=a\ncpu=1\n", "cpu=1\n", false, false},
                 {"host=a\ncpu=1\n", "host=a\n", false, false},
                 {"host=a\ncpu=1\n", "", false, false},
                 {"", "", false, false}};
    (void)state;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct msg mine, theirs;
        msg_print(&mine, "%s", cases[i].mine);
        msg_print(&theirs, "%s", cases[i].theirs);
        if (cpu_shared(&mine, &theirs) != cases[i].shared)
            fail_msg("case %zu", i);
        if (cpu_roams(&mine, &theirs) != cases[i].roams)
            fail_msg("case %zu: free to meet", i);
    }
}

static unsigned hints;

static void count_hint(const char *sentence)
{
    hints += strstr(sentence, "seem to have run on one CPU") != NULL;
}

static void ends_that_take_each_others_cpu_are_told_once(void **state)
{
    (void)state;
    warn_to(count_hint);
    interference_hint(true, 0, 0);
    interference_hint(true, 0, 5);
    interference_hint(true, 4, 10);
    interference_hint(true, 9, 100);
    interference_hint(false, 100, 100);
    assert_int_equal(hints, 0);
    interference_hint(true, 10, 100);
    assert_int_equal(hints, 1);
    interference_hint(true, 110, 100);
    assert_int_equal(hints, 1);
    warn_to(NULL);
}

/* What a thread of its own finds: pinning must not reach the tests that follow. */
struct place {
    int64_t cpu, pair[2];
    int pinned, found;
    struct msg text;
};

static void *look_around(void *arg)
{
    struct place *place = arg;
    if (place->cpu >= 0)
        place->pinned = cpu_pin(place->cpu);
    place->found = cpu_pair(place->pair);
    cpu_describe(&place->text);
    return NULL;
}

static void look_from(struct place *place, int64_t cpu)
{
    pthread_t thread;
    *place = (struct place){.cpu = cpu, .pair = {-1, -1}};
    assert_int_equal(pthread_create(&thread, NULL, look_around, place), 0);
    pthread_join(thread, NULL);
}

static void the_pair_is_two_cpus_where_there_are_two(void **state)
{
    struct place place;
    cpu_set_t allowed;
    (void)state;
    CPU_ZERO(&allowed);
    assert_int_equal(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    look_from(&place, -1);
    assert_int_equal(place.found, CPU_COUNT(&allowed));
    assert_true(CPU_ISSET((size_t)place.pair[0], &allowed));
    assert_true(CPU_ISSET((size_t)place.pair[1], &allowed));
    assert_int_equal(place.pair[0] != place.pair[1], place.found > 1);
}

static void a_pinned_thread_has_one_cpu_and_says_which(void **state)
{
    struct place free_place, first, second;
    char expected[32];
    (void)state;
    look_from(&free_place, -1);
    look_from(&first, free_place.pair[0]);
    assert_int_equal(first.pinned, 0);
    assert_int_equal(first.found, 1);
    assert_int_equal(first.pair[0], free_place.pair[0]);
    assert_int_equal(first.pair[1], free_place.pair[0]);
    snprintf(expected, sizeof expected, "\ncpu=%d\n", (int)free_place.pair[0]);
    assert_contains(first.text.bytes, expected);
    assert_true(cpu_shared(&first.text, &first.text));
    if (free_place.found == 1)
        skip();
    assert_contains(free_place.text.bytes, "\ncpu=many\n");
    look_from(&second, free_place.pair[1]);
    assert_false(cpu_shared(&first.text, &second.text));
    assert_false(cpu_shared(&first.text, &free_place.text));
}

static void pinning_to_a_cpu_that_is_not_there_is_refused(void **state)
{
    struct place place;
    char expected[32];
    (void)state;
    look_from(&place, CPU_SETSIZE);
    assert_int_equal(place.pinned, -ENODEV);
    assert_int_equal(cpu_pin(65535), -ENODEV);
    snprintf(expected, sizeof expected, "--cpu %d: ", 65535);
    assert_contains(fail_reason(), expected);
    assert_contains(fail_reason(), "no such CPU");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_that_make_sense_pass_without_a_word),
        cmocka_unit_test(plans_that_contradict_themselves_are_refused_in_a_sentence),
        cmocka_unit_test(duration_wins_over_iterations_and_says_so),
        cmocka_unit_test(report_all_is_ignored_with_a_duration_and_says_so),
        cmocka_unit_test(huge_pages_of_gpu_buffers_are_warned_of),
        cmocka_unit_test(a_type_of_gpu_without_a_gpu_is_warned_of),
        cmocka_unit_test(a_server_does_not_repeat_the_warnings_of_its_client),
        cmocka_unit_test(both_ends_get_the_same_plan_of_every_shared_option),
        cmocka_unit_test(a_send_has_room_for_both_ways),
        cmocka_unit_test(huge_page_choices_are_kinds_of_memory),
        cmocka_unit_test(hints_are_those_asked_for_meant_and_honoured),
        cmocka_unit_test(a_fabric_that_cannot_do_what_is_asked_is_refused),
        cmocka_unit_test(a_fabric_that_does_not_reach_a_gpu_is_refused_by_name),
        cmocka_unit_test(samples_lose_the_clock_once_and_never_go_below_zero),
        cmocka_unit_test(interference_is_the_sum_of_differences),
        cmocka_unit_test(two_ends_share_a_cpu_only_on_one_machine_and_one_cpu),
        cmocka_unit_test(ends_that_take_each_others_cpu_are_told_once),
        cmocka_unit_test(the_pair_is_two_cpus_where_there_are_two),
        cmocka_unit_test(a_pinned_thread_has_one_cpu_and_says_which),
        cmocka_unit_test(pinning_to_a_cpu_that_is_not_there_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
