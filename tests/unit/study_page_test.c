/* SPDX-License-Identifier: BSD-3-Clause */
/* The page and what it is made of: escaping, numbers, axes, percentiles, families; and runs that
 * have hardly anything in them. What a browser makes of it is browser_test.py's. */
#include "study/plot.h"
#include "support/unit.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- runs that were never run ---- */

static struct study_result result_of(const char *test, uint64_t size, double median)
{
    return (struct study_result){.test = test,
                                 .label = "",
                                 .size = size,
                                 .fabric = "soft",
                                 .device = "cxi0",
                                 .form = "soft",
                                 .why = "",
                                 .method = "latency",
                                 .clock = "cycles",
                                 .proves = "it is there",
                                 .complete = true,
                                 .clock_cost_ns = 20,
                                 .count = 1,
                                 .min_us = median,
                                 .max_us = median,
                                 .mean_us = median,
                                 .median_us = median,
                                 .elapsed_s = NAN,
                                 .bytes_per_s = NAN,
                                 .messages_per_s = NAN,
                                 .reverse_elapsed_s = NAN};
}

static struct study_run run_of(const char *path, struct study_result *results, size_t count)
{
    return (struct study_run){.path = path,
                              .tool = "cxi_write_lat",
                              .version = "0.1.0",
                              .command = "cxi_write_lat --local",
                              .begun = "2026-01-02T03:04:05.000Z",
                              .ended = "2026-01-02T03:04:06.000Z",
                              .state = "complete",
                              .reason = "",
                              .results = results,
                              .result_count = count};
}

/* The page as text; the caller frees it. */
static char *page_of(const struct study_run *runs, size_t count)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    assert_non_null(out);
    if (study_page(&(struct study_subject){.runs = runs, .count = count}, out))
        fail_msg("%s", fail_reason());
    fclose(out);
    return text;
}

static size_t times(const char *text, const char *word)
{
    size_t n = 0;
    for (; (text = strstr(text, word)); text += strlen(word))
        n++;
    return n;
}

/* ---- text ---- */

static void strings_of_documents_cannot_become_markup(void **state)
{
    (void)state;
    static const char evil[] =
        "\"><img src=x onerror=boo()></script><script>boo()</script><!-- '&amp;";
    struct study_pair pair = {evil, evil, evil};
    struct study_condition verdict = {.text = evil, .verdict = evil, .value = 1};
    struct study_result results[] = {result_of(evil, 8, 1), result_of(evil, 16, 2)};
    for (size_t i = 0; i < LENGTH(results); i++) {
        results[i].label = results[i].layout = results[i].fabric = results[i].device = evil;
        results[i].form = results[i].why = results[i].method = results[i].clock = evil;
        results[i].proves = evil;
        results[i].preempted = 1;
    }
    struct study_run run = {.path = evil,
                            .tool = evil,
                            .version = evil,
                            .command = evil,
                            .begun = evil,
                            .ended = evil,
                            .state = evil,
                            .reason = evil,
                            .options = &pair,
                            .client = &pair,
                            .server = &pair,
                            .option_count = 1,
                            .client_count = 1,
                            .server_count = 1,
                            .results = results,
                            .result_count = 2,
                            .conditions = &verdict,
                            .condition_count = 1};
    struct study_run runs[] = {run, run};
    runs[1].path = "other";
    char *page = page_of(runs, 2);
    assert_int_equal(times(page, "<img"), 0);
    assert_int_equal(times(page, "<script"), 1);
    assert_int_equal(times(page, "</script"), 1);
    assert_int_equal(times(page, "<!--"), 0);
    assert_int_equal(times(page, "\"&gt;"), 0);
    assert_true(times(page, "&quot;&gt;&lt;img") > 20);
    free(page);
}

static void what_is_not_a_character_is_shown_as_unknown(void **state)
{
    (void)state;
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    assert_non_null(out);
    html_text(out, "a\x01"
                   "b\xff"
                   "c\xc3"
                   "d\xe2\x82\xac\xed\xa0\x80"
                   "e\xc0\x80"
                   "f\xf4\x90\x80\x80\xf0\x9f\x90\xa7|");
    fclose(out);
#define UNKNOWN "\xef\xbf\xbd"
    assert_string_equal(text, "a" UNKNOWN "b" UNKNOWN "c" UNKNOWN
                              "d\xe2\x82\xac" UNKNOWN UNKNOWN UNKNOWN "e" UNKNOWN UNKNOWN
                              "f" UNKNOWN UNKNOWN UNKNOWN UNKNOWN "\xf0\x9f\x90\xa7&#166;");
    free(text);
}

static void a_number_in_the_page_reads_back_as_the_same_number(void **state)
{
    (void)state;
    uint64_t random = 1;
    for (int i = 0; i < 20000; i++) {
        char text[64] = "";
        double value = ldexp((double)(next_random(&random) >> 11), (int)(i % 80) - 60);
        if (i % 2) /* as documents have them: six decimals */
            value = round(fmod(value, 1e6) * 1e6) / 1e6;
        FILE *out = fmemopen(text, sizeof text, "w");
        assert_non_null(out);
        html_number(out, value);
        fclose(out);
        assert_true(strtod(text, NULL) == value);
        if (i % 2)
            assert_true(strlen(text) <= 16);
    }
}

static void times_are_in_microseconds_and_sizes_in_units_that_suit(void **state)
{
    (void)state;
    static const struct {
        double us;
        const char *text, *figure;
    } times_said[] = {{0.0005, "0.0005 us", "0.001 us"},
                      {0.0123, "0.0123 us", "0.012 us"},
                      {2, "2 us", "2.00 us"},
                      {999.6, "1000 us", "1000 us"},
                      {1500, "1500 us", "1500 us"},
                      {9.996, "10 us", "10.0 us"},
                      {3e6, "3000000 us", "3000000 us"},
                      {NAN, "-", "-"},
                      {0, "0", "0"}};
    char text[24];
    for (size_t i = 0; i < LENGTH(times_said); i++) {
        time_text(times_said[i].us, text, sizeof text);
        assert_string_equal(text, times_said[i].text);
        time_figure(times_said[i].us, text, sizeof text);
        assert_string_equal(text, times_said[i].figure);
    }
    size_text(65536, text, sizeof text);
    assert_string_equal(text, "64K");
    size_text(1025, text, sizeof text);
    assert_string_equal(text, "1025");
    size_words(1 << 20, text, sizeof text);
    assert_string_equal(text, "1 MiB");
}

/* ---- axes ---- */

static void check_axis(enum axis_kind kind, enum axis_form form, double low, double high)
{
    struct axis axis;
    struct tick ticks[40];
    axis_open(&axis, "", kind, form);
    axis_fit(&axis, low);
    axis_fit(&axis, high);
    axis_fit(&axis, NAN);
    axis_settle(&axis);
    axis.from = 330;
    axis.to = 14;
    const double values[] = {low, high, NAN, INFINITY, 0, -1, (low + high) / 2};
    for (size_t i = 0; i < LENGTH(values); i++) {
        double at = axis_place(&axis, values[i]);
        assert_true(at >= 14 && at <= 330);
    }
    assert_true(axis_place(&axis, low) >= axis_place(&axis, high));
    size_t n = axis_ticks(&axis, ticks, LENGTH(ticks));
    if (n < 2 || n > 14)
        fail_msg("%zu ticks from %g to %g", n, low, high);
    for (size_t i = 1; i < n; i++) {
        assert_true(ticks[i].value > ticks[i - 1].value);
        if (strcmp(ticks[i].text, ticks[i - 1].text) == 0)
            fail_msg("two ticks %s from %g to %g", ticks[i].text, low, high);
    }
}

static void every_range_has_an_axis_with_different_ticks(void **state)
{
    (void)state;
    uint64_t random = 2;
    static const enum axis_form forms[] = {AXIS_LINEAR, AXIS_LOG, AXIS_EITHER};
    for (int i = 0; i < 30000; i++) {
        double low = pow(10, (double)(next_random(&random) % 1000) / 100 - 4);
        double wide = pow(10, (double)(next_random(&random) % 1000) / 150 - 2);
        check_axis(i & 1 ? AXIS_TIME : AXIS_NUMBER, forms[i % 3], low, low * (1 + wide));
    }
    check_axis(AXIS_TIME, AXIS_LOG, 0, 0);
    check_axis(AXIS_TIME, AXIS_LOG, 0, 5);
    check_axis(AXIS_TIME, AXIS_LOG, 5, 5);
    check_axis(AXIS_TIME, AXIS_EITHER, 1e-6, 1e12);
    check_axis(AXIS_NUMBER, AXIS_LINEAR, 0, 0);
    check_axis(AXIS_TIME, AXIS_LINEAR, 7, 7);
    check_axis(AXIS_TIME, AXIS_EITHER, NAN, NAN);
    check_axis(AXIS_SIZE, AXIS_LOG, 1, 1);
    check_axis(AXIS_SIZE, AXIS_LOG, 8, 0x1p40);
    check_axis(AXIS_SIZE, AXIS_LOG, 24, 1000);
}

/* ---- percentiles ---- */

enum { SAMPLES = 5000 };

/* Samples of whole picoseconds, each in a bucket as wide as itself: nothing is approximate. */
static void exact_samples(struct study_result *result, uint64_t *samples)
{
    uint64_t random = 3, at = 1000;
    result->buckets = calloc(SAMPLES, sizeof *result->buckets);
    assert_non_null(result->buckets);
    for (size_t i = 0; i < SAMPLES; at += next_random(&random) % 9 + 1) {
        uint64_t count = next_random(&random) % 3 + 1;
        struct study_bucket *bucket = &result->buckets[result->bucket_count++];
        *bucket = (struct study_bucket){.low_us = (double)at, .high_us = (double)at};
        for (; i < SAMPLES && bucket->count < count; i++, bucket->count++)
            samples[i] = at;
    }
    result->count = SAMPLES;
    result->min_us = (double)samples[0];
    result->max_us = (double)samples[SAMPLES - 1];
}

static void the_percentile_curve_is_that_of_the_sorted_samples(void **state)
{
    (void)state;
    static uint64_t samples[SAMPLES];
    static const double percents[] = {0,  0.02, 7,    25,   50,    75,    90,   95,
                                      99, 99.5, 99.7, 99.8, 99.82, 99.98, 99.99};
    double values[LENGTH(percents)];
    struct study_result result = result_of("write", 8, 1);
    exact_samples(&result, samples);
    size_t n = result_curve(&result, percents, LENGTH(percents), values);
    /* 99.8 %: ten of 5000 lie beyond; 99.82: nine. */
    assert_int_equal(n, 12);
    for (size_t i = 0; i < n; i++) {
        size_t rank = (size_t)ceil(percents[i] / 100 * SAMPLES - 1e-9);
        assert_true(values[i] == (double)samples[rank ? rank - 1 : 0]);
        assert_true(result_percentile(&result, percents[i]) == values[i]);
    }
    assert_true(isnan(result_percentile(&result, 99.82)));
    free(result.buckets);
}

static void a_percentile_that_the_document_states_is_taken_from_there(void **state)
{
    (void)state;
    static uint64_t samples[SAMPLES];
    struct study_percentile stated[] = {{50, 12.5, 12, 13}, {99, NAN, NAN, NAN}};
    static const double percents[] = {50};
    double values[1];
    struct study_result result = result_of("write", 8, 1);
    exact_samples(&result, samples);
    result.percentiles = stated;
    result.percentile_count = 2;
    assert_true(result_percentile(&result, 50) == 12.5);
    assert_true(isnan(result_percentile(&result, 99)));
    assert_int_equal(result_curve(&result, percents, 1, values), 1);
    assert_true(values[0] == 12.5);
    free(result.buckets);
}

/* ---- families ---- */

static size_t families_of(const struct study_run *runs, size_t count, struct plot_data *cast)
{
    if (plot_data_open(cast, runs, count))
        fail_msg("%s", fail_reason());
    return cast->family_count;
}

static void runs_of_two_commands_are_two_families(void **state)
{
    (void)state;
    struct study_result result = result_of("write", 8, 1);
    struct study_pair options[] = {{"device", "cxi0", "user"}, {"json", "1", "user"},
                                   {"device", "cxi1", "user"}, {"json", "2", "user"},
                                   {"device", "cxi0", "user"}, {"json", "3", "user"}};
    struct study_run runs[3];
    struct plot_data cast;
    static const char *const words[] = {
        "/a/tool -d cxi0 --json '/a b' --report-all -D 1 --csv=x --fail-if 'p99 > 1'",
        "/a/tool -d cxi1", "/a/tool -d cxi0 --json /c -D 1"};
    for (size_t i = 0; i < 3; i++) {
        runs[i] = run_of(i ? "b/x.json" : "a/x.json", &result, 1);
        runs[i].command = words[i];
        runs[i].options = &options[2 * i];
        runs[i].option_count = 2;
    }
    assert_int_equal(families_of(runs, 3, &cast), 2);
    assert_int_equal(cast.curves[0].family, cast.curves[2].family);
    assert_string_equal(cast.families[0].label, "A, 2 runs: cxi_write_lat -d cxi0 -D 1");
    assert_string_equal(cast.families[1].label, "b/x");
    plot_data_close(&cast);
    /* Of one command alone, each is looked at by itself while there are few. */
    struct study_run alike[] = {runs[0], runs[2]};
    assert_int_equal(families_of(alike, 2, &cast), 2);
    plot_data_close(&cast);
}

static void many_runs_of_one_command_are_one_family(void **state)
{
    (void)state;
    struct study_result result = result_of("write", 8, 1);
    struct study_run runs[FEW + 1];
    struct plot_data cast;
    for (size_t i = 0; i <= FEW; i++)
        runs[i] = run_of("x.json", &result, 1);
    assert_int_equal(families_of(runs, FEW, &cast), FEW);
    assert_false(plot_data_crowded(&cast));
    plot_data_close(&cast);
    assert_int_equal(families_of(runs, FEW + 1, &cast), 1);
    assert_true(plot_data_crowded(&cast));
    plot_data_close(&cast);
}

static void a_batch_of_sizes_is_one_curve_and_labels_part_what_has_the_same_size(void **state)
{
    (void)state;
    struct study_result results[] = {result_of("am_lat", 64, 1), result_of("am_lat", 8, 1),
                                     result_of("put_lat", 8, 1)};
    struct study_run run = run_of("x.json", results, 3);
    struct plot_data cast;
    results[0].label = "64";
    results[1].label = "8";
    results[0].layout = "bcopy";
    results[1].layout = "short";
    assert_int_equal(families_of(&run, 1, &cast), 2);
    assert_int_equal(cast.curves[0].count, 2);
    assert_int_equal(cast.curves[0].results[0]->size, 8);
    assert_string_equal(cast.families[0].label, "am_lat");
    plot_data_close(&cast);
    results[0].size = 8;
    assert_int_equal(families_of(&run, 1, &cast), 3);
    assert_string_equal(cast.families[0].label, "am_lat, bcopy");
    plot_data_close(&cast);
    results[0].layout = results[2].layout = "short";
    assert_int_equal(families_of(&run, 1, &cast), 3);
    assert_string_equal(cast.families[0].label, "am_lat, 64");
    plot_data_close(&cast);
}

static void one_way_and_both_ways_have_names_of_their_own(void **state)
{
    (void)state;
    struct study_result results[] = {result_of("am_bw", 8, 1), result_of("am_bw", 8, 1)};
    struct study_run run = run_of("x.json", results, 2);
    struct plot_data cast;
    results[0].method = "stream";
    results[1].method = "stream both ways";
    assert_int_equal(families_of(&run, 1, &cast), 2);
    assert_string_equal(cast.families[0].label, "stream");
    assert_string_equal(cast.families[1].label, "stream both ways");
    plot_data_close(&cast);
}

/* ---- streams ---- */

/* A post takes 50 ns, but one message per microsecond is transferred. */
static struct study_result stream_of(uint64_t size)
{
    struct study_result result = result_of("put_bw", size, 0.05);
    result.method = "stream";
    result.count = 1000;
    result.messages_per_s = 1e6;
    result.bytes_per_s = 1e6 * (double)size;
    return result;
}

static void a_stream_is_shown_by_its_message_rate(void **state)
{
    (void)state;
    struct study_bucket buckets[] = {{0.05, 0.051, 1000}};
    struct study_result results[] = {stream_of(8), stream_of(64)};
    results[0].buckets = results[1].buckets = buckets;
    results[0].bucket_count = results[1].bucket_count = 1;
    struct study_run runs[FEW + 1];
    for (size_t i = 0; i < LENGTH(runs); i++)
        runs[i] = run_of("x.json", results, 2);
    for (size_t count = 1; count <= LENGTH(runs); count += FEW) {
        char *page = page_of(runs, count), *end = strstr(page, "</header>");
        assert_non_null(end);
        assert_non_null(strstr(end, "Time per message versus size"));
        assert_non_null(strstr(end, "data-y=\"1|1\""));
        *end = 0;
        assert_non_null(strstr(page, "<strong>1.00 us</strong>"));
        assert_null(strstr(page, "50.0 ns"));
        assert_null(strstr(page, "percentile"));
        assert_null(strstr(page, "median at"));
        assert_null(strstr(page, "medians"));
        free(page);
    }
}

static void samples_of_streams_are_called_time_between_posts(void **state)
{
    (void)state;
    struct study_bucket buckets[] = {{0.05, 0.051, 1000}};
    struct study_result stream = stream_of(8), other = result_of("put_lat", 8, 1);
    stream.buckets = other.buckets = buckets;
    stream.bucket_count = other.bucket_count = 1;
    struct study_run runs[] = {run_of("a.json", &stream, 1), run_of("b.json", &other, 1)};
    char *page = page_of(runs, 1);
    assert_int_equal(times(page, ">Time between posts [us]</text>"), 2);
    assert_int_equal(times(page, ">Latency [us]</text>"), 0);
    assert_int_equal(times(page, "Times of streams are times between posts."), 1);
    free(page);
    page = page_of(runs + 1, 1);
    assert_int_equal(times(page, ">Latency [us]</text>"), 2);
    assert_int_equal(times(page, "ime between posts"), 0);
    free(page);
    page = page_of(runs, 2);
    assert_int_equal(times(page, ">Time [us]</text>"), 2);
    assert_int_equal(times(page, "Streams: time between posts."), 2);
    assert_int_equal(times(page, "Times of streams are times between posts."), 1);
    free(page);
}

/* ---- lists ---- */

/* A list of 100 takes 50 us: 2000 messages per millisecond. memcpy is twice as fast, the link four
 * times. */
static struct study_result list_of(uint64_t size)
{
    static struct study_bucket bucket = {50, 50.05, 1000};
    struct study_result result = result_of("write", size, 50);
    result.method = "list";
    result.count = 1000;
    result.buckets = &bucket;
    result.bucket_count = 1;
    result.messages_per_s = 2e6;
    result.bytes_per_s = 2e6 * (double)size;
    result.memcpy_bytes_per_s = 2 * result.bytes_per_s;
    result.link_bytes_per_s = NAN;
    return result;
}

static void lists_are_shown_by_their_bandwidth_below_its_ceilings(void **state)
{
    (void)state;
    struct study_result results[] = {list_of(1000), list_of(1000000)};
    struct study_run run = run_of("x.json", results, 2);
    char *page = page_of(&run, 1);
    assert_non_null(strstr(page, "<strong>2000 MB/s</strong> <small>at 1000 B</small>"));
    assert_non_null(strstr(page, "50.0 us <small>99th percentile of list times</small>"));
    assert_non_null(strstr(page, "2000000 MB/s <small>best</small>"));
    assert_non_null(strstr(page, "Bandwidth versus size"));
    assert_non_null(strstr(page, "Bandwidth <small>[MB/s]</small>"));
    assert_non_null(strstr(page, "data-y=\"2000|2000000\""));
    assert_int_equal(times(page, "class=\"c ceiling"), 1);
    assert_non_null(strstr(page, "data-name=\"memcpy, 1 CPU\" data-y=\"4000|4e+06\""));
    assert_null(strstr(page, "Latency"));
    assert_int_equal(times(page, ">List time [us]</text>"),
                     4); /* percentiles and histogram, two sizes */
    assert_int_equal(times(page, "Times of lists are times of whole lists"), 1);
    free(page);
    results[0].link_bytes_per_s = results[1].link_bytes_per_s = 25e9;
    page = page_of(&run, 1);
    assert_int_equal(times(page, "class=\"c ceiling"), 2);
    assert_non_null(strstr(page, "data-name=\"link\" data-y=\"2.5e+04|2.5e+04\""));
    free(page);
}

static void lists_both_ways_are_shown_by_their_sum_below_twice_the_ceilings(void **state)
{
    (void)state;
    struct study_result results[] = {list_of(1000), list_of(2000)};
    struct study_run runs[] = {run_of("x.json", results, 2), run_of("y.json", results, 1)};
    for (size_t i = 0; i < LENGTH(results); i++) {
        results[i].method = "lists both ways";
        results[i].reverse_count = 3000;
        results[i].reverse_elapsed_s = 0.001;
    }
    char *page = page_of(runs, 1);
    assert_non_null(strstr(page, "data-y=\"5000|10000\""));
    assert_non_null(strstr(page, "data-name=\"memcpy, 2 CPUs\" data-y=\"8000|1.6e+04\""));
    assert_null(strstr(page, "memcpy, 1 CPU"));
    assert_non_null(strstr(page, "data-key=\"bytes_per_s\" data-value=\"5000000000\">5000.00<"));
    assert_non_null(strstr(page, "data-key=\"messages_per_s\" data-value=\"5000000\">"));
    free(page);
    /* Four pairs on two devices. */
    results[0].pairs = results[1].pairs = 4;
    results[0].devices = results[1].devices = 2;
    results[0].link_bytes_per_s = results[1].link_bytes_per_s = 25e9;
    page = page_of(runs, 1);
    assert_non_null(strstr(page, "data-name=\"memcpy, 8 CPUs\" data-y=\"3.2e+04|6.4e+04\""));
    assert_non_null(strstr(page, "data-name=\"link x 4\" data-y=\"1e+05|1e+05\""));
    results[0].pairs = results[0].devices = 0;
    free(page);
    /* One size, two runs: side by side, the ceiling from edge to edge. */
    runs[0].result_count = 1;
    page = page_of(runs, 2);
    assert_non_null(strstr(page, "Bandwidth at 1000 B"));
    assert_non_null(strstr(page, "data-name=\"memcpy, 2 CPUs\" data-y=\"8000|8000\""));
    free(page);
}

static void samples_of_lists_beside_others_are_told_apart(void **state)
{
    (void)state;
    struct study_result list = list_of(8), stream = stream_of(8), other = result_of("write", 8, 1);
    stream.buckets = other.buckets = list.buckets;
    stream.bucket_count = other.bucket_count = 1;
    struct study_run runs[] = {run_of("a.json", &list, 1), run_of("b.json", &other, 1),
                               run_of("c.json", &stream, 1)};
    char *page = page_of(runs, 2);
    assert_int_equal(times(page, ">Time [us]</text>"), 2);
    assert_int_equal(times(page, "Lists: time of a list."), 2);
    assert_int_equal(times(page, "Streams:"), 0);
    free(page);
    page = page_of(runs, 3);
    assert_int_equal(times(page, "Streams: time between posts. Lists: time of a list."), 2);
    assert_non_null(strstr(page, "Bandwidth <small>[MiB/s]</small>"));
    free(page);
}

/* ---- sizes that not all have ---- */

static void a_page_opens_with_the_smallest_size_that_all_runs_have(void **state)
{
    (void)state;
    struct study_result few[] = {result_of("write", 8, 1), result_of("write", 64, 2)};
    struct study_result many[] = {result_of("write", 1, 3), result_of("write", 64, 4),
                                  result_of("write", 128, 5)};
    struct study_run runs[] = {run_of("few.json", few, 2), run_of("many.json", many, 3),
                               run_of("none.json", NULL, 0)};
    char *page = page_of(runs, 3);
    assert_non_null(strstr(page, " checked>64 B</label>"));
    assert_non_null(strstr(page, "<strong>2.00 us</strong> <small>median at 64 B</small>"));
    assert_non_null(strstr(page, "<strong>4.00 us</strong> <small>median at 64 B</small>"));
    assert_int_equal(times(page, "No samples at this size: "), 3);
    assert_non_null(strstr(page, "No samples at this size: few</p>"));
    free(page);
    /* If no size is common to all, the one that most have; a curve without it shows another. */
    struct study_result lone = result_of("write", 4096, 6);
    runs[2] = run_of("lone.json", &lone, 1);
    page = page_of(runs, 3);
    assert_non_null(strstr(page, " checked>64 B</label>"));
    assert_non_null(strstr(page, "<strong>6.00 us</strong> <small>median at 4 KiB</small>"));
    free(page);
}

/* ---- hardly anything ---- */

/* The page between its style and its script has neither of these words. */
static void check_page(const struct study_run *runs, size_t count)
{
    char *page = page_of(runs, count), *body = strstr(page, "<body>");
    assert_non_null(body);
    char *end = strstr(body, "<script>");
    assert_non_null(end);
    *end = 0;
    for (char *at = body; *at; at++)
        if (strncasecmp(at, "nan", 3) == 0 || strncasecmp(at, "inf", 3) == 0)
            fail_msg("not a number in the page: %.60s", at > body + 40 ? at - 40 : at);
    free(page);
}

static void runs_without_results_have_a_page(void **state)
{
    (void)state;
    struct study_run runs[] = {run_of("a.json", NULL, 0), {.path = NULL}};
    runs[0].state = "failed";
    runs[0].reason = "no peer";
    check_page(runs, 0);
    check_page(runs, 1);
    check_page(runs, 2);
    char *page = page_of(runs, 1);
    assert_non_null(strstr(page, "Nothing was measured"));
    assert_non_null(strstr(page, "no peer"));
    free(page);
}

static void results_without_numbers_have_a_page(void **state)
{
    (void)state;
    struct study_percentile percentile = {99, NAN, NAN, NAN};
    struct study_bucket buckets[] = {{0, 0, 1}, {1, 1.001, 1}};
    struct study_interval intervals[] = {{0, 1, 0, NAN, NAN, NAN, NAN},
                                         {NAN, 1, NAN, NAN, NAN, NAN, NAN}};
    struct study_result results[8];
    for (size_t i = 0; i < LENGTH(results); i++)
        results[i] = result_of("write", i < 6 ? 1 + i % 3 : 8, i < 4 ? 0 : 5);
    results[0].count = 0;
    results[1].percentiles = &percentile;
    results[1].percentile_count = 1;
    results[2].buckets = buckets;
    results[2].bucket_count = 1;
    results[3].buckets = buckets;
    results[3].bucket_count = 2;
    results[4].intervals = intervals;
    results[4].interval_count = 2;
    results[5].median_us = results[5].min_us = results[5].max_us = NAN;
    results[5].mean_us = results[5].deviation_us = NAN;
    results[6].method = "stream";
    results[6].messages_per_s = results[6].bytes_per_s = 0;
    results[7].method = NULL;
    results[7].test = results[7].label = results[7].form = NULL;
    for (size_t first = 0; first < LENGTH(results); first++) {
        for (size_t n = 1; first + n <= LENGTH(results); n++) {
            struct study_run runs[12];
            for (size_t i = 0; i < LENGTH(runs); i++)
                runs[i] = run_of("x.json", results + first, n);
            check_page(runs, 1);
            check_page(runs, LENGTH(runs));
        }
    }
}

static void extreme_numbers_and_names_have_a_page(void **state)
{
    (void)state;
    char name[5000];
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = 0;
    struct study_bucket buckets[] = {{1e-6, 1e-6, UINT64_MAX / 4}, {1e300, 1.1e300, 40}};
    struct study_result results[] = {result_of(name, UINT64_MAX, 1.7e308),
                                     result_of(name, 1, 1e-300)};
    results[0].buckets = buckets;
    results[0].bucket_count = 2;
    results[0].label = results[0].device = name;
    struct study_run runs[] = {run_of(name, results, 2), run_of("\xff/\xff", results, 1)};
    runs[0].command = name;
    check_page(runs, 1);
    check_page(runs, 2);
}

/* What is saved, one after the other. */
struct saved {
    char text[1 << 20], names[400];
    size_t length, count;
};

static int keep(void *arg, const char *name, const char *bytes, size_t length)
{
    struct saved *saved = arg;
    assert_true(saved->length + length < sizeof saved->text);
    memcpy(saved->text + saved->length, bytes, length);
    saved->length += length;
    size_t named = strlen(saved->names);
    snprintf(saved->names + named, sizeof saved->names - named, "%s ", name);
    saved->count++;
    return 0;
}

static void a_plot_needs_something_measured(void **state)
{
    (void)state;
    static struct saved saved;
    struct study_result result = result_of("write", 8, 1);
    struct study_run runs[] = {run_of("a.json", NULL, 0), run_of("b.json", &result, 1)};
    struct study_subject subject = {.runs = runs, .count = 1};
    assert_int_equal(study_plots(&subject, true, keep, &saved), -ENODATA);
    subject.count = 2;
    assert_int_equal(study_plots(&subject, true, keep, &saved), 0);
    assert_int_equal(saved.count, 1);
    assert_non_null(strstr(saved.text, "<svg"));
}

static void plot_files_explain_themselves_and_need_no_style_of_the_page(void **state)
{
    (void)state;
    static struct saved saved;
    struct study_result results[] = {result_of("write", 8, 1), result_of("write", 64, 2)};
    struct study_run runs[] = {run_of("a.json", results, 2), run_of("b.json", results, 2)};
    struct study_subject subject = {.runs = runs, .count = 2, .title = "Ours & theirs"};
    struct study_bucket buckets[] = {{1, 1.1, 600}, {1.1, 1.2, 400}};
    for (size_t i = 0; i < LENGTH(results); i++) {
        results[i].buckets = buckets;
        results[i].bucket_count = LENGTH(buckets);
    }
    assert_int_equal(study_plots(&subject, false, keep, &saved), 0);
    assert_non_null(strstr(saved.text, ">Ours &amp; theirs: Latency versus size</text>"));
    assert_non_null(strstr(saved.text, ">Median; band up to the 99th percentile.</text>"));
    assert_int_equal(times(saved.text, "class=\"key\""), 2 * (int)saved.count);
    assert_null(strstr(saved.text, "var(--"));
    assert_string_equal(saved.names, "latency.svg percentiles-8.svg histogram-8.svg "
                                     "percentiles-64.svg histogram-64.svg ");
}

/* 300 runs, of one command or of as many machines: no part of the page grows with all samples. */
static void the_page_of_several_hundred_runs_is_small(void **state)
{
    (void)state;
    enum { RUNS = 300, SIZES = 17 };
    static struct study_result results[SIZES];
    static struct study_run runs[RUNS];
    static char names[RUNS][8], hosts[RUNS][8];
    static struct study_pair machines[RUNS];
    static struct study_bucket buckets[1000];
    for (size_t i = 0; i < LENGTH(buckets); i++)
        buckets[i] = (struct study_bucket){(double)i + 1, (double)i + 2, 10};
    for (size_t i = 0; i < SIZES; i++) {
        results[i] = result_of("write", 8U << i, 1);
        results[i].buckets = buckets;
        results[i].bucket_count = LENGTH(buckets);
    }
    for (size_t i = 0; i < RUNS; i++) {
        snprintf(names[i], sizeof names[i], "%zu", i);
        snprintf(hosts[i], sizeof hosts[i], "n%zu", i);
        machines[i] = (struct study_pair){.name = "host", .value = hosts[i]};
        runs[i] = run_of(names[i], results, SIZES);
    }
    for (int machine = 0; machine < 2; machine++) {
        for (size_t i = 0; i < RUNS && machine; i++) {
            runs[i].client = &machines[i];
            runs[i].client_count = 1;
        }
        char *page = page_of(runs, RUNS);
        assert_in_range(strlen(page), 10000, 5000000);
        if (machine)
            assert_non_null(strstr(page, "The first 8 of 300; the table below has all."));
        free(page);
    }
}

static void a_page_that_cannot_be_written_is_an_error(void **state)
{
    (void)state;
    struct study_run run = run_of("a.json", NULL, 0);
    FILE *out = fopen("/dev/full", "w");
    if (!out) {
        print_message("no /dev/full\n");
        skip();
    }
    assert_int_equal(study_page(&(struct study_subject){.runs = &run, .count = 1}, out), -EIO);
    fclose(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strings_of_documents_cannot_become_markup),
        cmocka_unit_test(what_is_not_a_character_is_shown_as_unknown),
        cmocka_unit_test(a_number_in_the_page_reads_back_as_the_same_number),
        cmocka_unit_test(times_are_in_microseconds_and_sizes_in_units_that_suit),
        cmocka_unit_test(every_range_has_an_axis_with_different_ticks),
        cmocka_unit_test(the_percentile_curve_is_that_of_the_sorted_samples),
        cmocka_unit_test(a_percentile_that_the_document_states_is_taken_from_there),
        cmocka_unit_test(runs_of_two_commands_are_two_families),
        cmocka_unit_test(many_runs_of_one_command_are_one_family),
        cmocka_unit_test(a_batch_of_sizes_is_one_curve_and_labels_part_what_has_the_same_size),
        cmocka_unit_test(one_way_and_both_ways_have_names_of_their_own),
        cmocka_unit_test(a_stream_is_shown_by_its_message_rate),
        cmocka_unit_test(samples_of_streams_are_called_time_between_posts),
        cmocka_unit_test(lists_are_shown_by_their_bandwidth_below_its_ceilings),
        cmocka_unit_test(lists_both_ways_are_shown_by_their_sum_below_twice_the_ceilings),
        cmocka_unit_test(samples_of_lists_beside_others_are_told_apart),
        cmocka_unit_test(a_page_opens_with_the_smallest_size_that_all_runs_have),
        cmocka_unit_test(runs_without_results_have_a_page),
        cmocka_unit_test(results_without_numbers_have_a_page),
        cmocka_unit_test(extreme_numbers_and_names_have_a_page),
        cmocka_unit_test(a_plot_needs_something_measured),
        cmocka_unit_test(plot_files_explain_themselves_and_need_no_style_of_the_page),
        cmocka_unit_test(the_page_of_several_hundred_runs_is_small),
        cmocka_unit_test(a_page_that_cannot_be_written_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
