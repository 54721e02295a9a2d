/* SPDX-License-Identifier: BSD-3-Clause */
/* What results become besides a table: JSON letter by letter, percentiles and conditions as people
 * type them, series in bounded memory, files that are whole or not there. */
#include "report/report.h"
#include "support/unit.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- JSON ---- */

static void texts_are_quoted_and_what_is_no_character_is_replaced(void **state)
{
    static const struct {
        const char *text, *json;
    } cases[] = {
        {"", "\"\""},
        {"plain", "\"plain\""},
        {"a \"b\" \\ c", "\"a \\\"b\\\" \\\\ c\""},
        {"line\nline\t\x7f", "\"line\\u000aline\\u0009\\u007f\""},
        {"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "\"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\""},
        {"\x1b[2J\xc2\x9b", "\"\\u001b[2J\\u009b\""}, /* what a terminal obeys */
        {"\xff", "\"\\ufffd\""},
        {"\xc3", "\"\\ufffd\""},
        {"\xc0\x80", "\"\\ufffd\\ufffd\""},                         /* too long for what it says */
        {"\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\""},              /* half a pair */
        {"\xf4\x90\x80\x80x", "\"\\ufffd\\ufffd\\ufffd\\ufffdx\""}, /* beyond the last */
        {NULL, "null"},
    };
    (void)state;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        char *text = NULL;
        size_t length = 0;
        struct json json = {.out = open_memstream(&text, &length)};
        json_text(&json, NULL, cases[i].text);
        fclose(json.out);
        assert_string_equal(text, cases[i].json);
        free(text);
    }
}

static void numbers_have_six_digits_at_most_and_never_lie(void **state)
{
    static const struct {
        double value;
        const char *json;
    } cases[] = {{0, "0"},
                 {1, "1"},
                 {100, "100"},
                 {0.5, "0.5"},
                 {2.715, "2.715"},
                 {1e-6, "0.000001"},
                 {1e12, "1000000000000"},
                 {NAN, "null"},
                 {INFINITY, "null"}};
    (void)state;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        char *text = NULL;
        size_t length = 0;
        struct json json = {.out = open_memstream(&text, &length)};
        json_number(&json, NULL, cases[i].value);
        fclose(json.out);
        assert_string_equal(text, cases[i].json);
        free(text);
    }
}

static void commas_and_lines_stand_where_they_belong(void **state)
{
    char *text = NULL;
    size_t length = 0;
    struct json json = {.out = open_memstream(&text, &length), .lines = 1};
    (void)state;
    json_open(&json, NULL, '{');
    json_count(&json, "a", INT64_MAX);
    json_count(&json, "large", UINT64_MAX); /* no whole number, which readers could not take */
    json_open(&json, "b", '[');
    json_open(&json, NULL, '[');
    json_close(&json, ']');
    json_bool(&json, NULL, true);
    json_bool(&json, NULL, false);
    json_close(&json, ']');
    json_open(&json, "c", '{');
    json_close(&json, '}');
    json_close(&json, '}');
    fclose(json.out);
    assert_string_equal(text, "{\n  \"a\": 9223372036854775807,\n"
                              "  \"large\": 18446744073709551615.0,\n"
                              "  \"b\": [[], true, false],\n  \"c\": {}\n}");
    free(text);
}

/* ---- percentiles and conditions as they are typed ---- */

static void lists_of_percentiles_are_read_or_refused_by_the_word_that_is_wrong(void **state)
{
    static const char *const good[] = {"50", "50,90,99,99.9,99.99", "99.999999", "0.1", ""};
    static const char *const bad[] = {",",
                                      "50,",
                                      ",50",
                                      "0",
                                      "100",
                                      "-1",
                                      "1e1",
                                      "nan",
                                      "p50",
                                      "50 90",
                                      "50;",
                                      "5.0.",
                                      "50,50",
                                      "inf",
                                      "0x10",
                                      "50,,90",
                                      "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16",
                                      "50,90,99,99.9999999999999999999999999999999999"};
    double list[REPORT_PERCENTILES + 1];
    (void)state;
    for (size_t i = 0; i < LENGTH(good); i++)
        assert_int_equal(report_percentiles(good[i], list), 0);
    assert_true(list[0] == 0);
    assert_int_equal(report_percentiles(good[1], list), 0);
    assert_true(list[3] == 99.9 && list[4] == 99.99 && list[5] == 0);
    for (size_t i = 0; i < LENGTH(bad); i++) {
        assert_int_equal(report_percentiles(bad[i], list), -EINVAL);
        assert_non_null(strstr(fail_reason(), bad[i]));
    }
}

/* A result of samples 1 us ... n us. */
static struct result made(struct stats **stats, uint64_t n)
{
    assert_int_equal(stats_open(stats, 0), 0);
    for (uint64_t i = 1; i <= n; i++) {
        uint64_t ps = i * 1000000;
        stats_add(*stats, &ps, 1);
    }
    return (struct result){.size = 4096,
                           .count = n,
                           .stats = *stats,
                           .us_per_unit = 1e-6,
                           .elapsed_s = 2,
                           .latency_us = {NAN, NAN, NAN},
                           .bandwidth = {NAN, NAN, 10.0 * 1048576},
                           .rate = {NAN, NAN, 2560},
                           .reverse_elapsed_s = NAN,
                           .interference = {.switches = 3},
                           .final = true};
}

static void conditions_are_judged_by_what_they_say(void **state)
{
    static const struct {
        const char *text;
        enum verdict verdict;
    } cases[] = {
        {"p99 > 5us", VERDICT_FAILED},           {"p99>5us", VERDICT_FAILED},
        {" p99  >  5 us ", VERDICT_FAILED},      {"p99 > 2000us", VERDICT_PASSED},
        {"p99 > 2ms", VERDICT_PASSED},           {"p99 > 0.5ms", VERDICT_FAILED},
        {"p99.9 > 5us", VERDICT_UNKNOWN},        {"min < 1us", VERDICT_PASSED},
        {"min <= 1us", VERDICT_FAILED},          {"max >= 1ms", VERDICT_FAILED},
        {"max > 1ms", VERDICT_PASSED},           {"median > 500us", VERDICT_PASSED},
        {"median@4096 > 400us", VERDICT_FAILED}, {"median@4K > 400us", VERDICT_FAILED},
        {"median@8 > 400us", VERDICT_NONE},      {"mean < 500us", VERDICT_PASSED},
        {"mean < 501us", VERDICT_FAILED},        {"deviation > 1us", VERDICT_FAILED},
        {"count < 1000", VERDICT_PASSED},        {"count <= 1000", VERDICT_FAILED},
        {"preempted > 2", VERDICT_FAILED},       {"migrated > 0", VERDICT_PASSED},
        {"bandwidth < 10MB/s", VERDICT_PASSED},  {"bandwidth <= 10MB/s", VERDICT_FAILED},
        {"bandwidth < 1GB/s", VERDICT_FAILED},   {"rate < 3000", VERDICT_FAILED},
    };
    struct stats *stats;
    struct result result = made(&stats, 1000);
    (void)state;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct condition c;
        double value;
        if (condition_parse(cases[i].text, 1024, &c))
            fail_msg("%s", fail_reason());
        if (condition_judge(&c, &result, &value) != cases[i].verdict)
            fail_msg("%s: %g", cases[i].text, value);
    }
    stats_close(stats);
}

/* Some units go by the tool's table, some never do. */
static void a_bandwidth_has_the_units_of_its_tool_and_those_of_all(void **state)
{
    static const struct {
        const char *unit;
        double decimal, binary;
    } cases[] = {{"B/s", 1, 1},
                 {"KB/s", 1e3, 1024},
                 {"MB/s", 1e6, 1048576},
                 {"GB/s", 1e9, 1073741824},
                 {"KiB/s", 1024, 1024},
                 {"MiB/s", 1048576, 1048576},
                 {"GiB/s", 1073741824, 1073741824},
                 {"Mb/s", 125e3, 125e3},
                 {"Gb/s", 125e6, 125e6}};
    (void)state;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        char text[64], shown[64];
        struct condition c;
        snprintf(text, sizeof text, "bandwidth < 3 %s", cases[i].unit);
        assert_int_equal(condition_parse(text, 1000, &c), 0);
        assert_true(c.bound == 3 * cases[i].decimal);
        condition_value(&c, 5e6, shown, sizeof shown);
        assert_string_equal(shown, "5.00 MB/s");
        assert_int_equal(condition_parse(text, 1024, &c), 0);
        assert_true(c.bound == 3 * cases[i].binary);
        condition_value(&c, 5 << 20, shown, sizeof shown);
        assert_string_equal(shown, "5.00 MB/s");
    }
}

/* Both directions of lists, as their table has them; a stream's is its own. */
static void bandwidth_of_lists_both_ways_is_that_of_the_table(void **state)
{
    struct stats *stats;
    struct result result = made(&stats, 1000);
    struct condition c;
    double value;
    (void)state;
    result.size = 1000;
    result.count = 1000;
    result.elapsed_s = 1;
    result.reverse_count = 3000;
    result.reverse_elapsed_s = 1;
    assert_int_equal(condition_parse("bandwidth < 1MB/s", 1000, &c), 0);
    for (unsigned sums = 0; sums < 3; sums++) {
        result.sums = sums;
        condition_judge(&c, &result, &value);
        assert_true(value == (sums ? sums * 4e6 : result.bandwidth.overall));
    }
    stats_close(stats);
}

/* What the clock resolves is 10 ns; half of the samples, or none, are shorter. */
static void a_bound_that_is_too_fine_for_the_clock_cannot_be_judged(void **state)
{
    static const struct {
        const char *text;
        enum verdict unresolved, resolved;
    } cases[] = {
        {"median > 5ns", VERDICT_UNKNOWN, VERDICT_FAILED},
        {"min > 5ns", VERDICT_UNKNOWN, VERDICT_FAILED},
        {"max > 9ns", VERDICT_UNKNOWN, VERDICT_FAILED},
        {"p50 < 9.9ns", VERDICT_UNKNOWN, VERDICT_PASSED},
        {"deviation > 5ns", VERDICT_UNKNOWN, VERDICT_FAILED},
        {"median > 10ns", VERDICT_PASSED, VERDICT_FAILED},
        {"min < 10ns", VERDICT_FAILED, VERDICT_PASSED},
        {"max > 10ns", VERDICT_FAILED, VERDICT_FAILED},
        {"mean > 5ns", VERDICT_FAILED, VERDICT_FAILED}, /* of the elapsed time */
        {"rate < 1", VERDICT_PASSED, VERDICT_PASSED},
        {"count < 1", VERDICT_PASSED, VERDICT_PASSED},
    };
    struct stats *stats;
    struct result result = made(&stats, 1000);
    (void)state;
    result.sampling.resolution_ns = 10;
    result.latency_us.overall = 1;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct condition c;
        double value;
        assert_int_equal(condition_parse(cases[i].text, 1024, &c), 0);
        /* 1 us becomes 15 ps, or 15 ns. */
        result.us_per_unit = 15e-12;
        result.sampling.resolved = false;
        assert_int_equal(condition_judge(&c, &result, &value), cases[i].unresolved);
        result.us_per_unit = 15e-9;
        result.sampling.resolved = true;
        assert_int_equal(condition_judge(&c, &result, &value), cases[i].resolved);
    }
    result.elapsed_s = NAN;
    result.sampling.resolved = false;
    struct condition mean;
    double value;
    assert_int_equal(condition_parse("mean > 5ns", 1024, &mean), 0);
    assert_int_equal(condition_judge(&mean, &result, &value), VERDICT_UNKNOWN);
    stats_close(stats);
}

static void of_nothing_measured_no_time_is_judged(void **state)
{
    static const char *const times[] = {"min > 5us",  "max > 5us",       "median > 5us",
                                        "mean > 5us", "deviation > 5us", "p50 > 5us"};
    struct stats *stats;
    struct result result = made(&stats, 0);
    struct condition c;
    double value;
    (void)state;
    for (size_t i = 0; i < LENGTH(times); i++) {
        assert_int_equal(condition_parse(times[i], 1024, &c), 0);
        assert_int_equal(condition_judge(&c, &result, &value), VERDICT_UNKNOWN);
        assert_true(isnan(value));
    }
    assert_int_equal(condition_parse("count < 1", 1024, &c), 0);
    assert_int_equal(condition_judge(&c, &result, &value), VERDICT_FAILED);
    stats_close(stats);
}

static void conditions_that_mean_nothing_are_refused(void **state)
{
    static const char *const bad[] = {"",
                                      "p99",
                                      "p99 >",
                                      "> 5us",
                                      "p99 = 5us",
                                      "p99 > 5",
                                      "p99 > us",
                                      "p99 > 5 us x",
                                      "p0 > 5us",
                                      "p100 > 5us",
                                      "pp > 5us",
                                      "nonsense > 1us",
                                      "p99 @ > 5us",
                                      "p99@0 > 5us",
                                      "p99@x > 5us",
                                      "p99 > -5us",
                                      "p99 > 5min",
                                      "bandwidth < 10",
                                      "rate < 5us",
                                      "count > 5us",
                                      "p99 > nanus",
                                      "p99 >> 5us",
                                      "p99 > 1e3us",
                                      "p99 > 5us; max"};
    struct condition c;
    (void)state;
    for (size_t i = 0; i < LENGTH(bad); i++)
        if (condition_parse(bad[i], 1024, &c) != -EINVAL)
            fail_msg("\"%s\" is taken", bad[i]);
    assert_int_equal(condition_parse("bandwidth < 10MB/s", 0, &c), -EINVAL);
    assert_non_null(strstr(fail_reason(), "measures latency alone"));
    assert_int_equal(condition_parse("p99 > 10us", 0, &c), 0);
}

static void whatever_is_typed_ends_in_a_sentence_or_a_condition(void **state)
{
    static const char letters[] = "pmedianx09.5@ <>=usMB/K-";
    uint64_t seed = 5;
    struct stats *stats;
    struct result result = made(&stats, 50);
    (void)state;
    for (int i = 0; i < 200000; i++) {
        char text[24];
        size_t n = next_random(&seed) % (sizeof text - 1);
        for (size_t k = 0; k < n; k++)
            text[k] = letters[next_random(&seed) % (sizeof letters - 1)];
        text[n] = '\0';
        struct condition c;
        double value;
        if (!condition_parse(text, 1024, &c))
            condition_judge(&c, &result, &value);
        double list[REPORT_PERCENTILES + 1];
        report_percentiles(text, list);
    }
    stats_close(stats);
}

/* ---- a run over time ---- */

static void a_series_keeps_every_sample_however_long_the_run(void **state)
{
    static struct series series;
    uint64_t count = 0, seed = 7, least = UINT64_MAX, most = 0;
    double sum = 0;
    (void)state;
    series.count = 0;
    for (uint64_t i = 1; i <= 100000; i++) {
        struct interval s = {.end_ps = i * 1000,
                             .count = next_random(&seed) % 4,
                             .min_ps = 100 + next_random(&seed) % 1000,
                             .max_ps = 2000 + next_random(&seed) % 1000,
                             .sum_ps = (double)(next_random(&seed) % 5000)};
        series_add(&series, &s, NULL);
        if (!s.count)
            continue;
        count += s.count;
        sum += s.sum_ps;
        least = s.min_ps < least ? s.min_ps : least;
        most = s.max_ps > most ? s.max_ps : most;
    }
    assert_in_range(series.count, SERIES_MAX / 2, SERIES_MAX);
    uint64_t found = 0, low = UINT64_MAX, high = 0, before = 0;
    double total = 0;
    for (size_t i = 0; i < series.count; i++) {
        const struct interval *s = &series.intervals[i];
        assert_true(s->end_ps > before);
        before = s->end_ps;
        found += s->count;
        total += s->sum_ps;
        low = s->min_ps < low ? s->min_ps : low;
        high = s->max_ps > high ? s->max_ps : high;
    }
    assert_int_equal(found, count);
    assert_true(fabs(total - sum) < 1);
    assert_int_equal(low, least);
    assert_int_equal(high, most);
}

/* 700 intervals of 100 samples each: interval n has n us, and one sample of 1 ms. */
static void percentiles_over_time_are_those_of_all_samples_of_an_interval(void **state)
{
    static struct series series;
    struct stats *stats;
    double ps;
    (void)state;
    assert_int_equal(stats_open(&stats, 0), 0);
    assert_int_equal(series_open(&series), 0);
    series_clear(&series);
    for (uint64_t i = 1; i <= 700; i++) {
        uint64_t samples[100];
        for (size_t k = 0; k < LENGTH(samples); k++)
            samples[k] = k ? i * 1000000 : 1000000000;
        stats_add(stats, samples, LENGTH(samples));
        series_add(&series, &(struct interval){.end_ps = i, .count = LENGTH(samples)}, stats);
    }
    uint64_t first = 1;
    for (size_t i = 0; i < series.count; i++) {
        uint64_t last = series.intervals[i].end_ps;
        double middle = (double)(first + last) / 2 * 1e6;
        assert_int_equal(series_percentile(&series, i, 0.5, &ps), 0);
        assert_true(fabs(ps - middle) <= 0.016 * middle + 1e6 * (double)(last - first));
        assert_int_equal(series_percentile(&series, i, 1, &ps), 0);
        assert_true(fabs(ps - 1e9) <= 0.016e9);
        /* One sample in a hundred lies beyond. */
        int status = series_percentile(&series, i, 0.99, &ps);
        assert_int_equal(status, last - first + 1 >= 10 ? 0 : -ENODATA);
        first = last + 1;
    }
    assert_int_equal(first, 701);
    series_close(&series);
    assert_int_equal(series_percentile(&series, 0, 0.5, &ps), -ENODATA);
    stats_close(stats);
}

/* ---- files ---- */

static char folder[64];

static const char *in_folder(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/weft-output-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

/* How many there are, and none of them any more if so requested. */
static unsigned files_in_folder(bool remove_them)
{
    unsigned count = 0;
    DIR *listing = opendir(folder);
    assert_non_null(listing);
    for (const struct dirent *entry; (entry = readdir(listing));) {
        if (*entry->d_name == '.')
            continue;
        count++;
        if (remove_them)
            unlink(in_folder(entry->d_name));
    }
    closedir(listing);
    return count;
}

static int remove_folder(void **state)
{
    (void)state;
    files_in_folder(true);
    return rmdir(folder);
}

static void read_all(const char *path, char *text, size_t room)
{
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    text[fread(text, 1, room - 1, file)] = '\0';
    fclose(file);
}

static void a_file_is_replaced_whole_and_nothing_stays_beside_it(void **state)
{
    char text[64];
    struct stat file;
    mode_t mask = umask(022);
    (void)state;
    assert_int_equal(save_check(in_folder("a")), 0);
    assert_int_equal(files_in_folder(false), 0);
    assert_int_equal(save_write(in_folder("a"), "one\n", 4), 0);
    assert_int_equal(save_write(in_folder("a"), "two\n", 4), 0);
    read_all(in_folder("a"), text, sizeof text);
    assert_string_equal(text, "two\n");
    assert_int_equal(files_in_folder(false), 1);
    assert_int_equal(stat(in_folder("a"), &file), 0);
    assert_int_equal(file.st_mode & 0777, 0644);
    umask(mask);
}

static void a_link_stays_a_link(void **state)
{
    char text[64];
    struct stat file;
    (void)state;
    assert_int_equal(save_write(in_folder("target"), "old\n", 4), 0);
    assert_int_equal(symlink("target", in_folder("link")), 0);
    assert_int_equal(save_write(in_folder("link"), "new\n", 4), 0);
    assert_int_equal(lstat(in_folder("link"), &file), 0);
    assert_true(S_ISLNK(file.st_mode));
    read_all(in_folder("target"), text, sizeof text);
    assert_string_equal(text, "new\n");
}

/* Read before it is closed. */
static void grow(const char *path, const char *text)
{
    char found[64];
    FILE *out;
    assert_int_equal(save_open(path, &out), 0);
    fputs(text, out);
    assert_int_equal(fflush(out), 0);
    read_all(in_folder("cells"), found, sizeof found);
    assert_string_equal(found, text);
    fclose(out);
}

static void what_grows_is_written_into_the_file_itself(void **state)
{
    FILE *out;
    (void)state;
    grow(in_folder("cells"), "one\n");
    grow(in_folder("cells"), "2\n");
    assert_int_equal(symlink("cells", in_folder("link")), 0);
    grow(in_folder("link"), "by a link\n");
    assert_int_equal(files_in_folder(false), 2);
    assert_int_equal(save_open(in_folder("missing/a"), &out), -ENOENT);
    assert_int_equal(save_open(folder, &out), -EISDIR);
    assert_non_null(strstr(fail_reason(), "cannot be written: Is a directory"));
}

static void a_place_that_cannot_be_written_is_known_before(void **state)
{
    (void)state;
    assert_int_equal(save_check(in_folder("missing/a")), -ENOENT);
    assert_non_null(strstr(fail_reason(), "missing/a: cannot be written: No such file"));
    assert_int_equal(save_check(folder), -EISDIR);
    assert_int_equal(save_check(""), -EINVAL);
    assert_int_equal(save_check("-"), 0);
    assert_int_equal(save_check("/dev/null"), 0);
}

static void a_full_device_is_an_error_when_it_is_written(void **state)
{
    (void)state;
    assert_int_equal(save_write("/dev/full", "text", 4), -ENOSPC);
    assert_non_null(strstr(fail_reason(), "/dev/full: cannot be written: No space left"));
    assert_int_equal(save_write("/dev/null", "text", 4), 0);
}

/* ---- tables ---- */

static void percentiles_are_columns_of_the_box(void **state)
{
    static const double percentiles[] = {50, 99.9, 0};
    struct spec spec;
    struct stats *stats;
    struct report_boxed boxed;
    char *text = NULL;
    size_t length = 0;
    (void)state;
    spec_defaults(&spec);
    assert_int_equal(stats_open(&stats, 0), 0);
    for (int i = 0; i < 1000; i++)
        stats_add(stats, &(uint64_t){1500000}, 1);
    const struct facts facts = {.spec = &spec, .op = op_of(&spec), .method = method_of(&spec)};
    const struct result result = {
        .final = true, .count = 1000, .stats = stats, .us_per_unit = 1e-6};
    report_boxed_open(&boxed, open_memstream(&text, &length));
    boxed.percentiles = percentiles;
    boxed.labels = "8";
    assert_int_equal(boxed.report.ops->begin(&boxed.report, &facts), 0);
    assert_int_equal(boxed.report.ops->row(&boxed.report, &result), 0);
    fclose(boxed.out);
    stats_close(stats);
    assert_string_equal(
        text,
        "+--------------+-----------------------------+---------------------+---------------------"
        "--+-------------------+\n"
        "|              |       latency (usec)        |   bandwidth (MB/s)  |  message rate (msg/s"
        ") |percentiles (usec) |\n"
        "+--------------+---------+---------+---------+----------+----------+-----------+----------"
        "-+---------+---------+\n"
        "| # iterations | typical | average | overall |  average |  overall |   average |   overall"
        " |     p50 |   p99.9 |\n"
        "+--------------+---------+---------+---------+----------+----------+-----------+----------"
        "-+---------+---------+\n"
        "+8-------------+---------+---------+---------+----------+----------+-----------+----------"
        "-+---------+---------+\n"
        "          1000     0.000     0.000     0.000       0.00       0.00           0           0"
        "     1.500         -\n");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_quoted_and_what_is_no_character_is_replaced),
        cmocka_unit_test(numbers_have_six_digits_at_most_and_never_lie),
        cmocka_unit_test(commas_and_lines_stand_where_they_belong),
        cmocka_unit_test(lists_of_percentiles_are_read_or_refused_by_the_word_that_is_wrong),
        cmocka_unit_test(conditions_are_judged_by_what_they_say),
        cmocka_unit_test(a_bandwidth_has_the_units_of_its_tool_and_those_of_all),
        cmocka_unit_test(bandwidth_of_lists_both_ways_is_that_of_the_table),
        cmocka_unit_test(a_bound_that_is_too_fine_for_the_clock_cannot_be_judged),
        cmocka_unit_test(of_nothing_measured_no_time_is_judged),
        cmocka_unit_test(conditions_that_mean_nothing_are_refused),
        cmocka_unit_test(whatever_is_typed_ends_in_a_sentence_or_a_condition),
        cmocka_unit_test(a_series_keeps_every_sample_however_long_the_run),
        cmocka_unit_test(percentiles_over_time_are_those_of_all_samples_of_an_interval),
        cmocka_unit_test_setup_teardown(a_file_is_replaced_whole_and_nothing_stays_beside_it,
                                        make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(a_link_stays_a_link, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(what_grows_is_written_into_the_file_itself, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(a_place_that_cannot_be_written_is_known_before, make_folder,
                                        remove_folder),
        cmocka_unit_test(a_full_device_is_an_error_when_it_is_written),
        cmocka_unit_test(percentiles_are_columns_of_the_box),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
