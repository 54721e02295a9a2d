/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables of option rows of all tools: whatever their rows take, the spec's rows take too, so
 * that no option that is accepted here is refused by the other end. */
#include "support/unit.h"
#include "tool/cxi.h"
#include "tool/perftest.h"

#include <stdio.h>
#include <string.h>

/* What a table fills begins with a spec. */
union options {
    struct spec spec;
    struct cxi_options cxi;
    struct perftest perftest;
};
_Static_assert(offsetof(struct cxi_options, spec) == 0, "the spec is first");
_Static_assert(offsetof(struct perftest, spec) == 0, "the spec is first");

struct table {
    const char *name;
    const struct opt *rows;
    unsigned takes;
};

/* Every tool's: the CXI family has two for each op with latency, which also goes in lists. */
static size_t tables(struct table list[16])
{
    size_t n = 0;
    for (int i = 0; op_names[i]; i++)
        for (int k = 0; k < 2; k++) {
            struct spec spec = {.op = i + 1,
                                .method = choice_named(method_names, k ? "list" : "latency")};
            if (op_of(&spec)->legs)
                list[n++] = (struct table){op_names[i], cxi_rows,
                                           cxi_takes(op_of(&spec), method_of(&spec))};
        }
    list[n++] = (struct table){"loopback", cxi_rows, CXI_ALONE};
    list[n++] = (struct table){"ucx_perftest", perf_rows, 0};
    list[n++] = (struct table){"a line of a batch file", perf_rows, PERF_TEST};
    return n;
}

static void each_row(void (*check)(const struct table *table, struct opt_set *set,
                                   const struct opt *row))
{
    struct table list[16];
    size_t count = tables(list);
    for (size_t i = 0; i < count; i++) {
        union options options;
        memset(&options, 0, sizeof options);
        spec_defaults(&options.spec);
        struct opt_set set = {.rows = list[i].rows, .takes = list[i].takes, .base = &options};
        opt_defaults(&set);
        for (const struct opt *row = opt_next(&set, NULL); row; row = opt_next(&set, row))
            check(&list[i], &set, row);
    }
}

static bool is_number(const struct opt *row)
{
    enum opt_type type = opt_whole(row).type;
    return type == OPT_NUMBER || type == OPT_AMOUNT;
}

/* ---- */

static void stands_for_the_spec(const struct table *table, struct opt_set *set,
                                const struct opt *row)
{
    (void)set;
    if (row->of && (row->of < spec_rows || row->of >= spec_rows + SPEC_ROWS))
        fail_msg("%s: --%s stands for a row that is not the spec's", table->name, row->name);
    if (!row->of && row->type != OPT_LINE && row->field < sizeof(struct spec))
        fail_msg("%s: --%s fills the spec without standing for a row of it", table->name,
                 row->name);
    if (row->flags & OPT_SHARED)
        fail_msg("%s: --%s is shared by itself", table->name, row->name);
}

static void every_row_of_the_spec_is_filled_through_its_row(void **state)
{
    (void)state;
    each_row(stands_for_the_spec);
}

static void is_within(const struct table *table, struct opt_set *set, const struct opt *row)
{
    struct opt whole = opt_whole(row);
    uint64_t scale = row->scale ? row->scale : 1;
    (void)set;
    if (!row->of || !is_number(row))
        return;
    if (row->scale && !row->max)
        fail_msg("%s: --%s has limits in another unit than it is typed in", table->name, row->name);
    if (whole.max > UINT64_MAX / scale || whole.max * scale > row->of->max ||
        whole.min * scale < row->of->min)
        fail_msg("%s: --%s takes more than %s does", table->name, row->name, row->of->name);
}

static void no_row_takes_more_than_the_one_it_stands_for(void **state)
{
    (void)state;
    each_row(is_within);
}

static void default_is_good(const struct table *table, struct opt_set *set, const struct opt *row)
{
    if (row->fallback && opt_assign(set, row, row->fallback, OPT_BY_USER))
        fail_msg("%s: %s", table->name, fail_reason());
}

/* opt_defaults has nobody to tell. */
static void every_default_can_be_typed(void **state)
{
    (void)state;
    each_row(default_is_good);
}

static void comes_over(const struct table *table, struct opt_set *set, const struct opt *row)
{
    struct opt whole = opt_whole(row);
    const uint64_t limits[] = {whole.min, whole.max};
    if (!row->of || !is_number(row))
        return;
    for (size_t i = 0; i < LENGTH(limits); i++) {
        char text[32], there[32];
        struct spec server;
        struct opt_set rows = {.rows = spec_rows, .base = &server};
        struct msg lines = {0};
        snprintf(text, sizeof text, "%llu", (unsigned long long)limits[i]);
        if (opt_assign(set, row, text, OPT_BY_USER))
            fail_msg("%s: %s", table->name, fail_reason());
        spec_defaults(&server);
        struct spec client = *(const struct spec *)set->base;
        client.size.max = client.size.min;
        assert_int_equal(spec_encode(&client, &lines), 0);
        if (opt_decode(&rows, &lines))
            fail_msg("%s: --%s %s: %s", table->name, row->name, text, fail_reason());
        opt_format(row, &server, there, sizeof there);
        if (row->of->flags & OPT_SHARED && strcmp(there, *there || limits[i] ? text : "") != 0)
            fail_msg("%s: --%s %s came as %s", table->name, row->name, text, there);
    }
    opt_clear(set, row, OPT_BY_DEFAULT);
    if (row->fallback)
        opt_assign(set, row, row->fallback, OPT_BY_DEFAULT);
}

static void the_limits_of_every_row_come_to_the_other_end(void **state)
{
    (void)state;
    each_row(comes_over);
}

static void is_the_only_one(const struct table *table, struct opt_set *set, const struct opt *row)
{
    char letter[2] = {row->letter, '\0'};
    if (row->name && opt_find(set, row->name) != row)
        fail_msg("%s: two rows are --%s", table->name, row->name);
    if (row->letter && opt_find(set, letter) != row)
        fail_msg("%s: two rows are -%c", table->name, row->letter);
}

static void no_two_rows_of_a_tool_have_one_name(void **state)
{
    (void)state;
    each_row(is_the_only_one);
}

static void is_helped(const struct table *table, struct opt_set *set, const struct opt *row)
{
    enum opt_type type = opt_whole(row).type;
    (void)set;
    bool hidden = row->flags & OPT_ACTION && !row->help; /* only there to be refused */
    if (type == OPT_LINE || hidden)
        return;
    if (!row->help || !*row->help)
        fail_msg("%s: --%s has no help", table->name, row->name);
    if ((type == OPT_FLAG) != !row->word)
        fail_msg("%s: --%s has a word for its value, or lacks one", table->name, row->name);
    if (type == OPT_CHOICE && !opt_whole(row).choices)
        fail_msg("%s: --%s has no choices", table->name, row->name);
}

static void every_row_is_helped(void **state)
{
    (void)state;
    each_row(is_helped);
}

/* ---- all of them together ---- */

static bool reached[SPEC_ROWS];

static void note_row(const struct table *table, struct opt_set *set, const struct opt *row)
{
    (void)table;
    (void)set;
    if (row->of)
        reached[row->of - spec_rows] = true;
}

static void every_row_of_the_spec_is_an_option_of_some_tool(void **state)
{
    (void)state;
    each_row(note_row);
    /* These are the tool's name, or the test's, or may be left to the test. */
    reached[SPEC_OP] = reached[SPEC_METHOD] = reached[SPEC_UCX_WORDS] = true;
    reached[SPEC_TAG_SYNC] = reached[SPEC_OUTSTANDING] = true;
    reached[SPEC_APART] = reached[SPEC_LEND] = true;
    reached[SPEC_LAYOUT] = reached[SPEC_PIECES] = true;
    reached[SPEC_GATHER] = reached[SPEC_SCATTER] = reached[SPEC_TUNES] = true;
    for (int i = 0; i < SPEC_ROWS; i++)
        if (!reached[i])
            fail_msg("no tool has an option for %s", spec_rows[i].name);
}

/* ---- ucx_perftest's tests ---- */

static void every_test_of_ucx_perftest_is_a_spec_that_is_taken(void **state)
{
    (void)state;
    for (int i = 0; perf_tests[i].name; i++) {
        struct perftest options;
        struct opt_set set = {.rows = perf_rows, .base = &options};
        memset(&options, 0, sizeof options);
        spec_defaults(&options.spec);
        opt_defaults(&set);
        assert_string_equal(perf_test_names[i], perf_tests[i].name);
        options.test = i + 1;
        if (perf_settle(&set))
            fail_msg("%s: %s", perf_tests[i].name, fail_reason());
        assert_string_equal(op_of(&options.spec)->name, perf_tests[i].op);
        assert_string_equal(method_of(&options.spec)->name, perf_tests[i].method);
        assert_true(method_of(&options.spec)->ucx);
        assert_int_equal(options.spec.amo.fetching, (perf_tests[i].kind & PERF_FETCHES) != 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_of_the_spec_is_filled_through_its_row),
        cmocka_unit_test(no_row_takes_more_than_the_one_it_stands_for),
        cmocka_unit_test(every_default_can_be_typed),
        cmocka_unit_test(the_limits_of_every_row_come_to_the_other_end),
        cmocka_unit_test(no_two_rows_of_a_tool_have_one_name),
        cmocka_unit_test(every_row_is_helped),
        cmocka_unit_test(every_row_of_the_spec_is_an_option_of_some_tool),
        cmocka_unit_test(every_test_of_ucx_perftest_is_a_spec_that_is_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
