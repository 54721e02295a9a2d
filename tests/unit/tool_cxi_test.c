/* SPDX-License-Identifier: BSD-3-Clause */
/* The CXI family's options: the rules among them in their sentences, what they make of the spec and
 * what of them both ends have in common. */
#include "support/unit.h"
#include "tool/cxi.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static char warnings[512];

static void collect(const char *sentence)
{
    size_t used = strlen(warnings);
    snprintf(warnings + used, sizeof warnings - used, "%s\n", sentence);
}

/* ---- rules ---- */

enum { WORDS = 8 };

struct asked {
    struct cxi_options options;
    struct opt_set set;
};

/* As the tools do it: defaults, then the words. */
static void ask_for(struct asked *asked, const char *op, char *const *words)
{
    int argc = 0, given;
    struct spec *spec = &asked->options.spec;
    while (words[argc])
        argc++;
    memset(asked, 0, sizeof *asked);
    spec_defaults(spec);
    spec->op = choice_named(op_names, op);
    spec->method = choice_named(method_names, "latency");
    asked->set = (struct opt_set){.rows = cxi_rows,
                                  .takes = cxi_takes(op_of(spec), method_of(spec)),
                                  .base = &asked->options};
    opt_defaults(&asked->set);
    if (opt_parse(&asked->set, argc, words, &asked->options.address, 1, &given))
        fail_msg("%s", fail_reason());
}

static void ask(struct asked *asked, char *const *words)
{
    ask_for(asked, "write", words);
}

static int check(struct asked *asked)
{
    warnings[0] = '\0';
    warn_to(collect);
    int status = cxi_check(&asked->options, &asked->set);
    warn_to(NULL);
    return status;
}

#define ASK(asked, ...) ask(asked, (char *const[WORDS + 1]){__VA_ARGS__})

static void options_that_make_sense_pass_without_a_word(void **state)
{
    static char *const cases[][WORDS + 1] = {{NULL},
                                             {"10.1.1.8"},
                                             {"10.1.1.8", "-s", "1:4M", "-n", "5"},
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
        struct cxi_options before = asked.options;
        before.pairs = before.device_count = 1;
        if (check(&asked))
            fail_msg("case %zu: %s", i, fail_reason());
        assert_string_equal(warnings, "");
        assert_memory_equal(&asked.options, &before, sizeof before);
    }
}

static void options_that_contradict_themselves_are_refused_in_a_sentence(void **state)
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
    assert_int_equal(asked.options.spec.count.duration_ms, 5000);
    const struct opt *iters = opt_find(&asked.set, "iters");
    assert_int_equal(asked.options.spec.count.iterations, 0);
    assert_int_equal(opt_origin(&asked.set, iters), OPT_BY_OPTION);
    assert_string_equal(asked.set.cause[iters - asked.set.rows], "duration");
    ASK(&asked, "host", "-D", "5");
    assert_int_equal(check(&asked), 0);
    assert_string_equal(warnings, "");
    ASK(&asked, "host", "-n", "100");
    assert_int_equal(check(&asked), 0);
    assert_string_equal(warnings, "");
    assert_int_equal(asked.options.spec.count.duration_ms, 0);
}

static void report_all_is_ignored_with_a_duration_and_says_so(void **state)
{
    struct asked asked;
    (void)state;
    ASK(&asked, "host", "--report-all", "-D", "5");
    assert_int_equal(check(&asked), 0);
    assert_string_equal(warnings, "--report-all is ignored with --duration\n");
    assert_false(asked.options.spec.local.keep_samples);
    ASK(&asked, "host", "--report-all");
    assert_int_equal(check(&asked), 0);
    assert_true(asked.options.spec.local.keep_samples);
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
    ASK(&asked, "-g", "AMD", "-r", "0");
    assert_int_equal(check(&asked), 0);
    assert_string_equal(warnings, "");
    ASK(&asked, "host", "-g", "AMD", "-r", "0");
    assert_int_equal(check(&asked), 0);
    assert_string_equal(warnings, "--rx-gpu is the server's to say: it has no effect here\n");
}

static void a_comparison_is_for_cswap(void **state)
{
    struct asked asked;
    (void)state;
    ask_for(&asked, "atomic", (char *const[]){"host", "-A", "CSWAP", "-C", "NE", NULL});
    assert_int_equal(check(&asked), 0);
    ask_for(&asked, "atomic", (char *const[]){"host", "-A", "SUM", "-C", "NE", NULL});
    assert_int_equal(check(&asked), -EINVAL);
    assert_string_equal(fail_reason(), "--cswap-op NE is for --atomic-op CSWAP, not SUM");
}

static void an_atomic_is_as_long_as_its_type(void **state)
{
    struct asked asked;
    (void)state;
    ask_for(&asked, "atomic", (char *const[]){"host", "-T", "UINT16", NULL});
    assert_int_equal(check(&asked), 0);
    assert_int_equal(asked.options.spec.size.min, 2);
    assert_int_equal(asked.options.spec.size.max, 2);
    ask_for(&asked, "atomic", (char *const[]){"host", "-A", "MIN", "-T", "UINT128", NULL});
    assert_int_equal(check(&asked), -EINVAL);
    assert_contains(fail_reason(), "Invalid Op and Type combination: MIN on UINT128");
}

static void a_server_warns_of_what_only_a_client_may_say(void **state)
{
    struct asked asked;
    (void)state;
    ASK(&asked, "-t", "0", "--use-hp", "2M");
    assert_int_equal(check(&asked), 0);
    assert_contains(warnings, "--tx-gpu is the client's to say");
    assert_contains(warnings, "--use-hp is the client's to say");
}

/* ---- both ends ---- */

static void quiet(const struct opt *row, const char *was, const char *now)
{
    char text[128];
    snprintf(text, sizeof text, "%s %s %s", row->name, was, now);
    collect(text);
}

/* What the client says becomes the server's, as a tool does it. */
static void adopt(struct asked *server, const struct asked *client)
{
    struct cxi_options before = server->options;
    struct msg text = {0};
    assert_int_equal(spec_encode(&client->options.spec, &text), 0);
    assert_int_equal(spec_decode(&server->options.spec, &text), 0);
    warnings[0] = '\0';
    opt_adopt(&server->set, &before, quiet);
}

static void a_server_does_not_repeat_the_warnings_of_its_client(void **state)
{
    struct asked client, server;
    (void)state;
    ASK(&client, "host", "--report-all", "-D", "5", "-n", "7", "-s", "1:64");
    assert_int_equal(check(&client), 0);
    ASK(&server, "-n", "9");
    adopt(&server, &client);
    assert_string_equal(warnings, "iters 9 0\n");
    assert_int_equal(check(&server), 0);
    assert_string_equal(warnings, "");
    assert_int_equal(server.options.spec.count.duration_ms, 5000);
    assert_int_equal(server.options.spec.size.max, 64);
    assert_false(server.options.spec.local.keep_samples);
}

static void both_ends_get_the_same_spec_of_every_shared_option(void **state)
{
    struct asked client, server;
    (void)state;
    ASK(&client, "host", "-n5", "--warmup=0", "--latency-gap=0", "-s8:1K", "--no-idc", "--no-ll",
        "--unrestricted");
    ASK(&server, NULL);
    adopt(&server, &client);
    assert_string_equal(warnings, "");
    assert_int_equal(spec_compare(&client.options.spec, &server.options.spec), 0);
    const struct spec *spec = &server.options.spec;
    assert_int_equal(spec->count.warmup, 0);
    assert_int_equal(spec->pace.gap_ns, 0);
    assert_true(spec->hints.no_idc && spec->hints.no_ll && spec->hints.unrestricted);
}

/* ---- rows ---- */

/* By the specification: which options each tool has. */
static void each_op_has_the_rows_that_mean_something_to_it(void **state)
{
    static const struct {
        const char *op, *has, *has_not;
    } cases[] = {{"write", "size unrestricted no-idc tx-gpu", "rdzv atomic-op matching"},
                 {"read", "size unrestricted tx-gpu", "no-idc rdzv atomic-op matching"},
                 {"send", "size no-idc rdzv tx-gpu", "unrestricted atomic-op matching"},
                 {"atomic", "atomic-op cswap-op atomic-type fetching matching no-idc unrestricted",
                  "size rdzv tx-gpu use-hp"}};
    (void)state;
    for (size_t i = 0; i < LENGTH(cases); i++)
        for (int has = 0; has < 2; has++) {
            char names[128], *rest = names;
            struct asked asked;
            ask_for(&asked, cases[i].op, (char *const[]){NULL});
            snprintf(names, sizeof names, "%s", has ? cases[i].has : cases[i].has_not);
            for (char *name; (name = strsep(&rest, " "));)
                if (has != (opt_find(&asked.set, name) != NULL))
                    fail_msg("%s: --%s", cases[i].op, name);
        }
}

static void huge_page_choices_are_kinds_of_memory(void **state)
{
    (void)state;
    assert_non_null(cxi_huge[0]);
    for (size_t i = 0; cxi_huge[i]; i++)
        assert_non_null(memory_find(cxi_huge[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_that_make_sense_pass_without_a_word),
        cmocka_unit_test(options_that_contradict_themselves_are_refused_in_a_sentence),
        cmocka_unit_test(duration_wins_over_iterations_and_says_so),
        cmocka_unit_test(report_all_is_ignored_with_a_duration_and_says_so),
        cmocka_unit_test(huge_pages_of_gpu_buffers_are_warned_of),
        cmocka_unit_test(a_type_of_gpu_without_a_gpu_is_warned_of),
        cmocka_unit_test(a_comparison_is_for_cswap),
        cmocka_unit_test(an_atomic_is_as_long_as_its_type),
        cmocka_unit_test(a_server_warns_of_what_only_a_client_may_say),
        cmocka_unit_test(a_server_does_not_repeat_the_warnings_of_its_client),
        cmocka_unit_test(both_ends_get_the_same_spec_of_every_shared_option),
        cmocka_unit_test(each_op_has_the_rows_that_mean_something_to_it),
        cmocka_unit_test(huge_page_choices_are_kinds_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
