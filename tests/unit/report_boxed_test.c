/* SPDX-License-Identifier: BSD-3-Clause */
/* The boxed table of ucx_perftest and its CSV, letter by letter. */
#include "report/report.h"
#include "support/unit.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the boxed table ---- */

#define BOX(group)                                                                                 \
    "+--------------+-----------------------------+---------------------+--------------------"     \
    "---+\n"                                                                                       \
    "|              |" group "|   bandwidth (MB/s)  |  message rate (msg/s) |\n" BORDER            \
    "| # iterations | typical | average | overall |  average |  overall |   average |   overall "  \
    "|\n" BORDER
#define BORDER                                                                                     \
    "+--------------+---------+---------+---------+----------+----------+-----------+----------"   \
    "-+\n"
#define LATENCY  "       latency (usec)        "
#define OVERHEAD "      overhead (usec)        "
#define FIELDS   "iterations,typical_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr\n"

struct sheet {
    struct report_boxed boxed;
    char *text;
    size_t length;
};

/* Only what is given is different from what report_boxed_open leaves. */
static void open_sheet(struct sheet *sheet, struct report_boxed how)
{
    FILE *out = open_memstream(&sheet->text, &sheet->length);
    assert_non_null(out);
    report_boxed_open(&sheet->boxed, out);
    sheet->boxed.csv = how.csv;
    sheet->boxed.grouped = how.grouped;
    sheet->boxed.final_only = how.final_only;
    sheet->boxed.today = how.today;
    sheet->boxed.mixed = how.mixed;
    sheet->boxed.threads = how.threads;
    sheet->boxed.columns = how.columns ? how.columns : "";
}

static void close_sheet(struct sheet *sheet)
{
    fclose(sheet->boxed.out);
    free(sheet->text);
}

/* The next test: samples of a ping-pong are latency, of a stream of messages overhead. */
static int begin_boxed(struct report_boxed *boxed, const char *group, const char *labels)
{
    struct spec spec;
    spec_defaults(&spec);
    spec.threads = boxed->threads ? boxed->threads : 1;
    spec.op = choice_named(op_names, "am");
    spec.method =
        choice_named(method_names, strcmp(group, "overhead") == 0 ? "stream" : "ping-pong");
    const struct facts facts = {.spec = &spec,
                                .op = op_of(&spec),
                                .method = method_of(&spec),
                                .legs = strcmp(group, "overhead") == 0 ? 1 : 2};
    assert_string_equal(facts.method->samples(&spec), group);
    boxed->labels = labels;
    return boxed->report.ops->begin(&boxed->report, &facts);
}

static int row_boxed(struct report_boxed *boxed, const struct result *result)
{
    const struct report_ops *ops = boxed->report.ops;
    return result->final ? ops->row(&boxed->report, result) : ops->interval(&boxed->report, result);
}

static void boxed_begin(struct sheet *sheet, const char *group, const char *labels)
{
    assert_int_equal(begin_boxed(&sheet->boxed, group, labels), 0);
}

static void boxed_row(struct sheet *sheet, const struct result *result)
{
    assert_int_equal(row_boxed(&sheet->boxed, result), 0);
}

/* The two rows of the manual's example: 8 bytes, a second and then the rest. */
static const struct result first_second = {
    .count = 586527,
    .latency_us = {.typical = 0.845, .recent = 0.852, .overall = 0.852},
    .bandwidth = {.recent = 586527.0 * 8, .overall = 586527.0 * 8},
    .rate = {.recent = 586527, .overall = 586527}};
static const struct result whole = {
    .final = true,
    .count = 1000000,
    .latency_us = {.typical = 0.844, .recent = 0.848, .overall = 0.851},
    .bandwidth = {.recent = 589339.0 * 8, .overall = 587681.0 * 8},
    .rate = {.recent = 589339, .overall = 587681}};

#define FIRST_ROW                                                                                  \
    "        586527     0.845     0.852     0.852       4.47       4.47      586527      586527\n"
#define WHOLE_ROW                                                                                  \
    "       1000000     0.844     0.848     0.851       4.50       4.48      589339      587681\n"

static void a_boxed_row_does_not_show_what_the_clock_cannot_resolve(void **state)
{
    struct sheet sheet;
    struct result fine = whole;
    (void)state;
    fine.sampling.resolution_ns = 1e9;
    for (int csv = 0; csv < 2; csv++) {
        open_sheet(&sheet, (struct report_boxed){.csv = csv});
        boxed_begin(&sheet, "latency", "");
        boxed_row(&sheet, &fine);
        assert_non_null(strstr(sheet.text, csv ? ",<1000000.00," : " <1000000.00 "));
        close_sheet(&sheet);
    }
}

static void the_boxed_table_is_that_of_the_manual(void **state)
{
    struct sheet sheet;
    (void)state;
    open_sheet(&sheet, (struct report_boxed){0});
    boxed_begin(&sheet, "latency", "");
    boxed_row(&sheet, &first_second);
    boxed_row(&sheet, &whole);
    assert_string_equal(sheet.text, BOX(LATENCY) FIRST_ROW WHOLE_ROW);
    close_sheet(&sheet);
}

static void only_the_last_row_is_printed_if_so_wished(void **state)
{
    struct sheet sheet;
    (void)state;
    open_sheet(&sheet, (struct report_boxed){.final_only = true});
    boxed_begin(&sheet, "latency", "");
    boxed_row(&sheet, &first_second);
    boxed_row(&sheet, &whole);
    assert_string_equal(sheet.text, BOX(LATENCY) WHOLE_ROW);
    close_sheet(&sheet);
}

static void what_was_cut_short_has_no_last_row(void **state)
{
    struct sheet sheet;
    (void)state;
    open_sheet(&sheet, (struct report_boxed){0});
    boxed_begin(&sheet, "latency", "");
    boxed_row(&sheet, &first_second);
    assert_int_equal(sheet.boxed.report.ops->row(&sheet.boxed.report, &first_second), 0);
    assert_string_equal(sheet.text, BOX(LATENCY) FIRST_ROW);
    close_sheet(&sheet);
}

static void a_stream_is_headed_by_its_overhead(void **state)
{
    struct sheet sheet;
    (void)state;
    open_sheet(&sheet, (struct report_boxed){0});
    boxed_begin(&sheet, "overhead", "");
    boxed_row(&sheet, &whole);
    assert_string_equal(sheet.text, BOX(OVERHEAD) WHOLE_ROW);
    close_sheet(&sheet);
}

static void labels_stand_in_the_border_and_the_box_is_drawn_once(void **state)
{
    struct sheet sheet;
    (void)state;
    open_sheet(&sheet, (struct report_boxed){0});
    boxed_begin(&sheet, "latency", "8");
    boxed_row(&sheet, &whole);
    boxed_begin(&sheet, "latency", "64K\nput\nlast one");
    boxed_row(&sheet, &first_second);
    char wanted[2048];
    snprintf(wanted, sizeof wanted, "%s+8%s%s+64K/put/last one%s%s", BOX(LATENCY), &BORDER[2],
             WHOLE_ROW, &BORDER[17], FIRST_ROW);
    assert_string_equal(sheet.text, wanted);
    close_sheet(&sheet);
}

static void the_box_is_drawn_again_when_its_first_group_changes(void **state)
{
    struct sheet sheet;
    (void)state;
    open_sheet(&sheet, (struct report_boxed){0});
    boxed_begin(&sheet, "latency", "");
    boxed_row(&sheet, &whole);
    boxed_begin(&sheet, "overhead", "");
    boxed_row(&sheet, &whole);
    boxed_begin(&sheet, "overhead", "");
    boxed_row(&sheet, &whole);
    boxed_begin(&sheet, "latency", "");
    assert_string_equal(sheet.text,
                        BOX(LATENCY) WHOLE_ROW BOX(OVERHEAD) WHOLE_ROW WHOLE_ROW BOX(LATENCY));
    close_sheet(&sheet);
}

static void labels_longer_than_the_border_are_cut_to_it(void **state)
{
    char label[400];
    struct sheet sheet;
    (void)state;
    memset(label, 'x', sizeof label);
    label[sizeof label - 1] = '\0';
    open_sheet(&sheet, (struct report_boxed){0});
    boxed_begin(&sheet, "latency", label);
    const char *line = sheet.text + strlen(BOX(LATENCY));
    assert_int_equal(strlen(line), strlen(BORDER));
    assert_int_equal(strspn(line + 1, "x"), strlen(BORDER) - 3);
    assert_string_equal(line + strlen(BORDER) - 2, "+\n");
    close_sheet(&sheet);
}

/* ---- the table of current UCX ---- */

#define TODAY(stage, group)                                                                        \
    "+--------------+--------------+------------------------------+---------------------+-------"  \
    "----------------+\n"                                                                          \
    "|              |              |" group                                                        \
    "|   bandwidth (MB/s)  |  message rate (msg/s) |\n" BORDER_TODAY "|    " stage                 \
    "     | # iterations | 50.0%ile | average | overall |  average |  "                            \
    "overall |  average  |  overall  |\n" BORDER_TODAY
#define BORDER_TODAY                                                                               \
    "+--------------+--------------+----------+---------+---------+----------+----------+-------"  \
    "----+-----------+\n"
#define FIRST_TODAY                                                                                \
    "            586527      0.845     0.852     0.852        8.95       8.95     1173054     "    \
    "1173054\n"
#define WHOLE_TODAY                                                                                \
    "           1000000      0.844     0.848     0.851        8.99       8.97     1178678     "    \
    "1175362\n"

/* Scripts look for "Final:"; a ping-pong's two ways count. */
static void rows_of_current_ucx_begin_with_their_stage(void **state)
{
    struct sheet sheet;
    (void)state;
    open_sheet(&sheet, (struct report_boxed){.today = true});
    boxed_begin(&sheet, "latency", "put\n8");
    boxed_row(&sheet, &first_second);
    boxed_row(&sheet, &whole);
    char wanted[2048];
    snprintf(wanted, sizeof wanted, "%s+put/8%s[thread 0]%sFinal:    %s",
             TODAY("Stage", "        latency (usec)        "), &BORDER_TODAY[6], FIRST_TODAY,
             WHOLE_TODAY);
    assert_string_equal(sheet.text, wanted);
    close_sheet(&sheet);
}

/* Then a row begins with its test, and there is no border above it. */
static void final_rows_of_current_ucx_begin_with_their_labels(void **state)
{
    struct sheet sheet;
    (void)state;
    open_sheet(&sheet, (struct report_boxed){.today = true, .final_only = true, .mixed = true});
    boxed_begin(&sheet, "latency", "put\n8");
    boxed_row(&sheet, &first_second);
    boxed_row(&sheet, &whole);
    boxed_begin(&sheet, "latency", "longer than that");
    boxed_row(&sheet, &whole);
    boxed_begin(&sheet, "latency", "");
    boxed_row(&sheet, &whole);
    assert_string_equal(
        sheet.text, TODAY(" Test", "    overhead/latency (usec)   ") "     put/8" WHOLE_TODAY
                                                                     "longer than that" WHOLE_TODAY
                                                                     "          " WHOLE_TODAY);
    close_sheet(&sheet);
}

/* Of all threads together, that is; a column of the other rows' has nothing then. */
static void a_final_row_of_current_ucx_has_four_figures_of_several_threads(void **state)
{
    struct sheet sheet;
    (void)state;
    open_sheet(&sheet, (struct report_boxed){.today = true, .threads = 2});
    boxed_begin(&sheet, "overhead", "");
    boxed_row(&sheet, &first_second);
    boxed_row(&sheet, &whole);
    const char *rows = sheet.text + strlen(TODAY("Stage", "       overhead (usec)        "));
    assert_string_equal(rows,
                        "[thread 0]            586527      0.845     0.852     0.852        4.47"
                        "       4.47      586527      586527\n"
                        "Final:               1000000                         0.851"
                        "                   4.48                  587681\n");
    close_sheet(&sheet);
}

static void thousands_are_separated_without_any_locale(void **state)
{
    static const struct result large = {
        .final = true,
        .count = 1234567,
        .latency_us = {.typical = 1234.5, .recent = 0.5, .overall = 12.25},
        .bandwidth = {.recent = 1234567.89 * 1024 * 1024, .overall = 999.99 * 1024 * 1024},
        .rate = {.recent = 1000, .overall = 123456789}};
    struct sheet sheet;
    (void)state;
    assert_non_null(setlocale(LC_ALL, "C"));
    open_sheet(&sheet, (struct report_boxed){.grouped = true});
    boxed_begin(&sheet, "latency", "");
    boxed_row(&sheet, &large);
    assert_string_equal(sheet.text + strlen(BOX(LATENCY)),
                        "     1,234,567  1234.500     0.500    12.250 1,234,567.89     999.99"
                        "       1,000 123,456,789\n");
    close_sheet(&sheet);
}

static void each_count_of_digits_is_grouped_from_the_right(void **state)
{
    static const struct {
        uint64_t count;
        const char *text;
    } cases[] = {
        {0, "             0"},      {7, "             7"},       {12, "            12"},
        {123, "           123"},    {1234, "         1,234"},    {12345, "        12,345"},
        {123456, "       123,456"}, {1234567, "     1,234,567"}, {1000000000, " 1,000,000,000"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct result result = {.final = true, .count = cases[i].count};
        struct sheet sheet;
        open_sheet(&sheet, (struct report_boxed){.grouped = true});
        boxed_begin(&sheet, "latency", "");
        boxed_row(&sheet, &result);
        assert_memory_equal(sheet.text + strlen(BOX(LATENCY)), cases[i].text, 14);
        close_sheet(&sheet);
    }
}

/* ---- CSV ---- */

static void csv_has_one_header_and_one_line_a_row(void **state)
{
    struct sheet sheet;
    (void)state;
    open_sheet(&sheet, (struct report_boxed){.csv = true});
    boxed_begin(&sheet, "latency", "");
    boxed_row(&sheet, &first_second);
    boxed_row(&sheet, &whole);
    boxed_begin(&sheet, "overhead", "");
    boxed_row(&sheet, &whole);
    assert_string_equal(sheet.text, FIELDS "586527,0.845,0.852,0.852,4.47,4.47,586527,586527\n"
                                           "1000000,0.844,0.848,0.851,4.50,4.48,589339,587681\n"
                                           "1000000,0.844,0.848,0.851,4.50,4.48,589339,587681\n");
    close_sheet(&sheet);
}

static void csv_numbers_are_never_grouped(void **state)
{
    struct sheet sheet;
    (void)state;
    open_sheet(&sheet, (struct report_boxed){.csv = true, .grouped = true});
    boxed_begin(&sheet, "latency", "");
    boxed_row(&sheet, &whole);
    assert_string_equal(sheet.text, FIELDS "1000000,0.844,0.848,0.851,4.50,4.48,589339,587681\n");
    close_sheet(&sheet);
}

static void csv_has_a_column_for_each_batch_file(void **state)
{
    struct sheet sheet;
    (void)state;
    open_sheet(&sheet, (struct report_boxed){.csv = true, .columns = "sizes\na,b \"c\".txt"});
    boxed_begin(&sheet, "latency", "8,16\nsay \"so\"");
    boxed_row(&sheet, &whole);
    boxed_begin(&sheet, "latency", "64\nplain words");
    boxed_row(&sheet, &whole);
    assert_string_equal(
        sheet.text,
        "sizes,\"a,b \"\"c\"\".txt\"," FIELDS
        "\"8,16\",\"say \"\"so\"\"\",1000000,0.844,0.848,0.851,4.50,4.48,589339,587681\n"
        "64,plain words,1000000,0.844,0.848,0.851,4.50,4.48,589339,587681\n");
    close_sheet(&sheet);
}

/* A spreadsheet would run it; a number it may have. */
static void csv_has_no_cell_that_is_a_formula(void **state)
{
    static const struct {
        const char *label, *cell;
    } cases[] = {{"=1+2", "\"'=1+2\""},
                 {"=cmd|'/c calc'!A0", "\"'=cmd|'/c calc'!A0\""},
                 {"@SUM(1,2)", "\"'@SUM(1,2)\""},
                 {"+1+2", "\"'+1+2\""},
                 {"-2+3", "\"'-2+3\""},
                 {"-", "\"'-\""},
                 {"\t=1", "\"' =1\""},
                 {"\r=\"1\"", "\"'?=\"\"1\"\"\""},
                 {"-1.5", "-1.5"},
                 {"+2e-3", "+2e-3"},
                 {"a=b@c+d-e", "a=b@c+d-e"},
                 {"a\x1b[2J\xc2\x9b\xc3\xbc", "a?[2J??\xc3\xbc"}};
    (void)state;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct sheet sheet;
        char row[128];
        open_sheet(&sheet, (struct report_boxed){.csv = true, .columns = "label"});
        boxed_begin(&sheet, "latency", cases[i].label);
        boxed_row(&sheet, &whole);
        snprintf(row, sizeof row, "%s,1000000,0.844,0.848,0.851,4.50,4.48,589339,587681\n",
                 cases[i].cell);
        assert_string_equal(strchr(sheet.text, '\n') + 1, row);
        close_sheet(&sheet);
    }
}

/* Commas outside quotes. */
static unsigned separators(const char *line)
{
    unsigned count = 0;
    for (bool quoted = false; *line && *line != '\n'; line++) {
        quoted ^= *line == '"';
        count += *line == ',' && !quoted;
    }
    return count;
}

static void csv_has_one_field_count_whatever_the_labels_are(void **state)
{
    static const char letters[] = "ab,\" ;#'";
    uint64_t seed = 7;
    (void)state;
    for (int round = 0; round < 500; round++) {
        char labels[64];
        size_t used = 0, files = 1 + next_random(&seed) % 4;
        struct sheet sheet;
        for (size_t i = 0; i < files; i++) {
            if (i)
                labels[used++] = '\n';
            for (size_t n = next_random(&seed) % 8 + (files == 1); n; n--)
                labels[used++] = letters[next_random(&seed) % (sizeof letters - 1)];
        }
        labels[used] = '\0';
        open_sheet(&sheet,
                   (struct report_boxed){.csv = true, .columns = &"a\na\na\na"[2 * (4 - files)]});
        boxed_begin(&sheet, "latency", labels);
        boxed_row(&sheet, &whole);
        const char *row = strchr(sheet.text, '\n') + 1;
        assert_int_equal(separators(sheet.text), files + 7);
        if (separators(row) != files + 7)
            fail_msg("%u fields for the labels \"%s\": %s", separators(row) + 1, labels, row);
        close_sheet(&sheet);
    }
}

static void results_that_cannot_be_written_are_an_error(void **state)
{
    (void)state;
    for (int csv = 0; csv < 2; csv++) {
        struct report_boxed boxed;
        FILE *full = fopen("/dev/full", "we");
        if (!full)
            skip();
        report_boxed_open(&boxed, full);
        boxed.csv = csv;
        assert_int_equal(begin_boxed(&boxed, "latency", ""), -EIO);
        assert_int_equal(strncmp(fail_reason(), "writing results: ", 17), 0);
        assert_int_equal(row_boxed(&boxed, &whole), -EIO);
        fclose(boxed.out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_boxed_row_does_not_show_what_the_clock_cannot_resolve),
        cmocka_unit_test(the_boxed_table_is_that_of_the_manual),
        cmocka_unit_test(only_the_last_row_is_printed_if_so_wished),
        cmocka_unit_test(what_was_cut_short_has_no_last_row),
        cmocka_unit_test(a_stream_is_headed_by_its_overhead),
        cmocka_unit_test(labels_stand_in_the_border_and_the_box_is_drawn_once),
        cmocka_unit_test(the_box_is_drawn_again_when_its_first_group_changes),
        cmocka_unit_test(labels_longer_than_the_border_are_cut_to_it),
        cmocka_unit_test(rows_of_current_ucx_begin_with_their_stage),
        cmocka_unit_test(final_rows_of_current_ucx_begin_with_their_labels),
        cmocka_unit_test(a_final_row_of_current_ucx_has_four_figures_of_several_threads),
        cmocka_unit_test(thousands_are_separated_without_any_locale),
        cmocka_unit_test(each_count_of_digits_is_grouped_from_the_right),
        cmocka_unit_test(csv_has_one_header_and_one_line_a_row),
        cmocka_unit_test(csv_numbers_are_never_grouped),
        cmocka_unit_test(csv_has_a_column_for_each_batch_file),
        cmocka_unit_test(csv_has_no_cell_that_is_a_formula),
        cmocka_unit_test(csv_has_one_field_count_whatever_the_labels_are),
        cmocka_unit_test(results_that_cannot_be_written_are_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
