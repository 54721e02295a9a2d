/* SPDX-License-Identifier: BSD-3-Clause */
/* Members of an end that measure together: the sum of what each of them hands in. */
#include "bench/team.h"
#include "support/unit.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MEMBERS = 3 };

/* Where the sum goes. */
struct sink {
    struct report report;
    struct result row, interval;
    struct stats *stats; /* of the last one */
    unsigned rows, intervals;
    int ended;
};

static int on_row(struct report *report, const struct result *result)
{
    struct sink *sink = (struct sink *)report;
    sink->rows++;
    sink->row = *result;
    stats_clear(sink->stats);
    stats_merge(sink->stats, result->stats);
    return 0;
}

static int on_interval(struct report *report, const struct result *result)
{
    struct sink *sink = (struct sink *)report;
    sink->intervals++;
    sink->interval = *result;
    return 0;
}

static int on_end(struct report *report, int status)
{
    ((struct sink *)report)->ended = status;
    return 0;
}

static const struct report_ops sink_ops = {
    .name = "sink", .interval = on_interval, .row = on_row, .end = on_end};

static struct {
    struct team *team;
    struct team_member members[MEMBERS];
    struct stats *stats[MEMBERS];
    struct sink sink;
} all;

static int set_up(void **state)
{
    (void)state;
    memset(&all, 0, sizeof all);
    all.sink.report = (struct report){&sink_ops};
    all.team = calloc(1, team_bytes(MEMBERS));
    if (!all.team || stats_open(&all.sink.stats, 0))
        return -1;
    all.team->count = MEMBERS;
    all.team->threads = true;
    for (unsigned i = 0; i < MEMBERS; i++) {
        if (team_join(&all.members[i], all.team, i) || stats_open(&all.stats[i], 0))
            return -1;
        all.members[i].timeout_ms = 10000;
    }
    all.members[0].sum = &all.sink.report;
    all.members[0].begun = true;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (unsigned i = 0; i < MEMBERS; i++) {
        team_quit(&all.members[i]);
        stats_close(all.stats[i]);
    }
    stats_close(all.sink.stats);
    free(all.team);
    return 0;
}

/* Of member i: so many operations in so many seconds, each sample so many units. */
static struct result result_of(unsigned i, uint64_t count, double elapsed_s, uint64_t sample,
                               double us_per_unit)
{
    double rate = (double)count / elapsed_s;
    stats_clear(all.stats[i]);
    for (uint64_t k = 0; k < count; k++)
        all.stats[i]->buckets[stats_bucket(sample)]++;
    stats_settle(all.stats[i]);
    return (struct result){.size = 8,
                           .count = count,
                           .bytes = 8 * count,
                           .stats = all.stats[i],
                           .us_per_unit = us_per_unit,
                           .elapsed_s = elapsed_s,
                           .latency_us = {(double)sample * us_per_unit, 1e6 / rate, 1e6 / rate},
                           .rate = {rate, rate, rate},
                           .bandwidth = {8 * rate, 8 * rate, 8 * rate},
                           .recent = {.count = count, .s = elapsed_s},
                           .sampling = {.resolved = true},
                           .reverse_elapsed_s = NAN,
                           .complete = true,
                           .final = true};
}

static int hand_in(unsigned i, struct result result)
{
    return team_ops.row(&all.members[i].report, &result);
}

static void rates_are_added_and_the_longest_time_counts(void **state)
{
    (void)state;
    assert_int_equal(hand_in(2, result_of(2, 100, 0.5, 1000, 0.001)), 0);
    assert_int_equal(hand_in(1, result_of(1, 300, 2.0, 1000, 0.001)), 0);
    assert_int_equal(all.sink.rows, 0);
    assert_int_equal(hand_in(0, result_of(0, 100, 1.0, 1000, 0.001)), 0);
    assert_int_equal(all.sink.rows, 1);
    const struct result *sum = &all.sink.row;
    assert_int_equal(sum->count, 500);
    assert_int_equal(sum->bytes, 4000);
    assert_true(fabs(sum->rate.overall - (100 + 150 + 200)) < 1e-9);
    assert_true(fabs(sum->bandwidth.recent - 8 * 450) < 1e-9);
    assert_true(fabs(sum->elapsed_s - 2) < 1e-9);
    assert_true(sum->complete);
    assert_int_equal(sum->parts->count, MEMBERS);
    assert_true(sum->parts->threads);
    assert_int_equal(sum->parts->list[1].count, 300);
}

/* Time per operation: 1 s for 100, 2 s for 300, 0.5 s for 100. */
static void the_average_latency_is_that_of_all_operations(void **state)
{
    (void)state;
    hand_in(1, result_of(1, 300, 2.0, 1000, 0.001));
    hand_in(2, result_of(2, 100, 0.5, 1000, 0.001));
    hand_in(0, result_of(0, 100, 1.0, 1000, 0.001));
    assert_true(fabs(all.sink.row.latency_us.overall - 3.5e6 / 500) < 1e-6);
    assert_true(fabs(all.sink.row.latency_us.recent - 3.5e6 / 500) < 1e-6);
    assert_int_equal(all.sink.row.recent.count, 500);
}

/* Member 2 counts in a unit four times as long. */
static void samples_of_all_are_merged_in_one_unit(void **state)
{
    (void)state;
    hand_in(1, result_of(1, 100, 1.0, 3000, 0.001));
    hand_in(2, result_of(2, 100, 1.0, 500, 0.004));
    hand_in(0, result_of(0, 101, 1.0, 1000, 0.001));
    double low, high;
    assert_int_equal(all.sink.stats->count, 301);
    assert_int_equal(stats_percentile(all.sink.stats, 0.30, &low), 0);
    assert_int_equal(stats_percentile(all.sink.stats, 0.90, &high), 0);
    assert_true(fabs(low - 1000) < 2);
    assert_true(fabs(high - 3000) < 6);
    assert_true(fabs(all.sink.row.latency_us.typical - 2.0) < 0.004);
    assert_true(fabs(all.sink.row.parts->list[2].median_us - 2.0) < 0.004);
}

static int interim(unsigned i, struct result result)
{
    result.final = false;
    return team_ops.interval(&all.members[i].report, &result);
}

static void an_interval_is_the_sum_of_what_all_have_so_far(void **state)
{
    (void)state;
    assert_int_equal(interim(1, result_of(1, 300, 1.0, 1000, 0.001)), 0);
    assert_int_equal(interim(2, result_of(2, 100, 1.0, 500, 0.002)), 0);
    assert_int_equal(all.sink.intervals, 0);
    for (unsigned turn = 1; turn <= 2; turn++) {
        assert_int_equal(interim(0, result_of(0, 100, 1.0, 1000, 0.001)), 0);
        assert_int_equal(all.sink.intervals, turn);
        assert_int_equal(all.sink.interval.count, 500);
        assert_true(fabs(all.sink.interval.rate.recent - 500) < 1e-9);
        assert_true(fabs(all.sink.interval.latency_us.typical - 1) < 0.002);
    }
}

static void without_all_there_is_no_row_of_an_interval(void **state)
{
    (void)state;
    assert_int_equal(interim(1, result_of(1, 300, 1.0, 1000, 0.001)), 0);
    assert_int_equal(interim(0, result_of(0, 100, 1.0, 1000, 0.001)), 0);
    assert_int_equal(all.sink.intervals, 0);
}

static void what_one_lost_is_not_in_the_sum(void **state)
{
    (void)state;
    hand_in(1, result_of(1, 300, 2.0, 1000, 0.001));
    fail(-EIO, "the data is wrong");
    assert_int_equal(team_ops.end(&all.members[2].report, -EIO), 0);
    struct result own = result_of(0, 100, 1.0, 1000, 0.001);
    own.complete = false;
    assert_int_equal(hand_in(0, own), 0);
    assert_int_equal(all.sink.rows, 0);
    assert_int_equal(team_ops.end(&all.members[0].report, -EIO), -EIO);
    assert_int_equal(all.sink.rows, 1);
    assert_int_equal(all.sink.row.count, 400);
    assert_false(all.sink.row.complete);
    assert_false(all.sink.row.parts->list[2].known);
    assert_true(all.sink.row.parts->list[1].known);
}

static void the_first_failure_ends_all_with_its_sentence(void **state)
{
    (void)state;
    assert_int_equal(team_watch(&all.members[0]), 0);
    fail(-EIO, "the data is wrong");
    team_lose(&all.members[2], 2, -EIO);
    fail(-ENODEV, "another one");
    team_lose(&all.members[1], 1, -ENODEV);
    assert_int_equal(team_watch(&all.members[0]), -EIO);
    assert_string_equal(fail_reason(), "thread 2: the data is wrong");
    assert_int_equal(team_watch(&all.members[2]), -EIO);
    assert_string_equal(fail_reason(), "the data is wrong");
}

static void the_loss_of_the_other_end_is_not_one_threads(void **state)
{
    (void)state;
    fail(-ECONNRESET, "lost the server");
    team_lose(&all.members[1], 1, -ECONNRESET);
    assert_int_equal(team_watch(&all.members[0]), -ECONNRESET);
    assert_string_equal(fail_reason(), "lost the server");
}

static void all_meet_or_nobody_does(void **state)
{
    (void)state;
    assert_int_equal(team_ops.meet(&all.members[0].report, true), 0);
    assert_int_equal(team_ops.meet(&all.members[1].report, true), 0);
    assert_int_equal(team_ops.meet(&all.members[0].report, false), 0);
    assert_int_equal(team_ops.meet(&all.members[2].report, true), 1);
    for (unsigned i = 0; i < MEMBERS; i++)
        assert_int_equal(team_ops.meet(&all.members[i].report, false), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(rates_are_added_and_the_longest_time_counts),
        TEST(the_average_latency_is_that_of_all_operations),
        TEST(samples_of_all_are_merged_in_one_unit),
        TEST(an_interval_is_the_sum_of_what_all_have_so_far),
        TEST(without_all_there_is_no_row_of_an_interval),
        TEST(what_one_lost_is_not_in_the_sum),
        TEST(the_first_failure_ends_all_with_its_sentence),
        TEST(the_loss_of_the_other_end_is_not_one_threads),
        TEST(all_meet_or_nobody_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
