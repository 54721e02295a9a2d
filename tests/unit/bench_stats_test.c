/* SPDX-License-Identifier: BSD-3-Clause */
/* Statistics against naive computations in long double on sorted samples. Random data come from
 * fixed seeds. The vectors are the samples printed in the CXI tools' manuals. */
#include "bench/bench.h"
#include "support/unit.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct stats *open_stats(uint64_t kept)
{
    struct stats *stats = NULL;
    if (stats_open(&stats, kept))
        fail_msg("%s", fail_reason());
    return stats;
}

/* ---- the naive way ---- */

static long double naive_mean(const uint64_t *ps, size_t n)
{
    long double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (long double)ps[i];
    return n ? sum / (long double)n : 0;
}

static long double naive_deviation(const uint64_t *ps, size_t n)
{
    long double mean = naive_mean(ps, n), squares = 0;
    for (size_t i = 0; i < n; i++)
        squares += ((long double)ps[i] - mean) * ((long double)ps[i] - mean);
    return n ? sqrtl(squares / (long double)n) : 0;
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void assert_near(double value, long double expected, long double relative)
{
    long double error = fabsl((long double)value - expected);
    if (!(error <= relative * fabsl(expected)))
        fail_msg("%.17g is not %.20Lg within %Lg", value, expected, relative);
}

/* Mean, deviation, extremes and count of these samples. */
static void check_moments(const struct stats *stats, const uint64_t *ps, size_t n)
{
    uint64_t min = UINT64_MAX, max = 0;
    for (size_t i = 0; i < n; i++) {
        min = ps[i] < min ? ps[i] : min;
        max = ps[i] > max ? ps[i] : max;
    }
    assert_int_equal(stats->count, n);
    assert_int_equal(stats->min_ps, min);
    assert_int_equal(stats->max_ps, max);
    assert_near(stats->mean_ps, naive_mean(ps, n), 1e-13L);
    long double deviation = naive_deviation(ps, n);
    /* What doubles can hold of the distance from the mean is the mean's last bits. */
    long double absolute = 1e-15L * naive_mean(ps, n);
    assert_true(fabsl((long double)stats_deviation_ps(stats) - deviation) <=
                1e-9L * deviation + absolute);
}

/* ---- kinds of data ---- */

enum { SAMPLES = 20000, MIDDLE = SAMPLES / 2 - 1 };

static uint64_t steady(uint64_t *seed)
{
    return 2000000 + next_random(seed) % 50000;
}

static uint64_t noisy(uint64_t *seed)
{
    return next_random(seed) % 1000 ? steady(seed) : next_random(seed) % (UINT64_C(1) << 40);
}

static uint64_t every_magnitude(uint64_t *seed)
{
    uint64_t ps = next_random(seed) >> (9 + next_random(seed) % 55);
    return ps ? ps : 1;
}

static uint64_t large(uint64_t *seed)
{
    return (UINT64_C(1) << 40) + next_random(seed) % 1000;
}

static uint64_t tiny(uint64_t *seed)
{
    return next_random(seed) % 3;
}

static uint64_t (*const kinds[])(uint64_t *) = {steady, noisy, every_magnitude, large, tiny};

static uint64_t *make_samples(size_t kind, uint64_t seed)
{
    uint64_t *ps = malloc(SAMPLES * sizeof *ps);
    assert_non_null(ps);
    for (size_t i = 0; i < SAMPLES; i++)
        ps[i] = kinds[kind](&seed);
    return ps;
}

/* ---- moments ---- */

static void stats_of_nothing_are_zero(void **state)
{
    struct stats *stats = open_stats(0);
    double low, high, value;
    (void)state;
    stats_add(stats, NULL, 0);
    assert_int_equal(stats->count, 0);
    assert_true(stats_deviation_ps(stats) == 0);
    assert_true(stats_median_ps(stats) == 0);
    assert_int_equal(stats_percentile(stats, 0.5, &value), -ENODATA);
    assert_int_equal(stats_interval(stats, 0.5, &low, &high), -ENODATA);
    stats_close(stats);
    stats_close(NULL);
}

static void stats_of_one_sample_are_that_sample(void **state)
{
    static const uint64_t cases[] = {
        0, 1, 1023, 1024, 2715000, UINT64_C(1) << 55, UINT64_C(1) << 62};
    (void)state;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct stats *stats = open_stats(0);
        stats_add(stats, &cases[i], 1);
        assert_int_equal(stats->count, 1);
        assert_int_equal(stats->min_ps, cases[i]);
        assert_int_equal(stats->max_ps, cases[i]);
        assert_true(stats->mean_ps == (double)cases[i]);
        assert_true(stats_deviation_ps(stats) == 0);
        assert_true(stats_median_ps(stats) == (double)cases[i]);
        stats_close(stats);
    }
}

static void stats_deviation_of_equal_samples_is_zero(void **state)
{
    static const uint64_t values[] = {1, 2715000, 999999999937, (UINT64_C(1) << 50) + 1};
    (void)state;
    for (size_t v = 0; v < LENGTH(values); v++) {
        struct stats *stats = open_stats(0);
        uint64_t batch[64];
        for (size_t i = 0; i < LENGTH(batch); i++)
            batch[i] = values[v];
        for (size_t i = 1; i < 200; i++)
            stats_add(stats, batch, 1 + i % LENGTH(batch));
        assert_true(stats->mean_ps == (double)values[v]);
        assert_true(stats_deviation_ps(stats) == 0);
        assert_true(stats_median_ps(stats) == (double)values[v]);
        stats_close(stats);
    }
}

static void stats_of_the_manuals_samples_are_right_where_the_manuals_are_not(void **state)
{
    static const struct {
        uint64_t ns[5];
        const char *mean, *deviation;
    } cases[] = {{{2715, 2715, 2725, 2725, 2716}, "2.719", "0.005"},  /* read, prints 0.03 */
                 {{2554, 2585, 2594, 2565, 2585}, "2.577", "0.015"},  /* atomic, prints 0.05 */
                 {{1688, 1898, 1688, 1693, 1683}, "1.730", "0.084"},  /* send, prints 0.08 */
                 {{2008, 2012, 2008, 2007, 2008}, "2.009", "0.002"}}; /* write, prints 0.01 */
    (void)state;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct stats *stats = open_stats(0);
        uint64_t ps[5];
        char mean[32], deviation[32];
        for (size_t k = 0; k < LENGTH(ps); k++)
            ps[k] = cases[i].ns[k] * 1000;
        stats_add(stats, ps, LENGTH(ps));
        check_moments(stats, ps, LENGTH(ps));
        snprintf(mean, sizeof mean, "%.3f", stats->mean_ps / 1e6);
        snprintf(deviation, sizeof deviation, "%.3f", stats_deviation_ps(stats) / 1e6);
        assert_string_equal(mean, cases[i].mean);
        assert_string_equal(deviation, cases[i].deviation);
        stats_close(stats);
    }
}

static void stats_moments_equal_the_naive_computation(void **state)
{
    (void)state;
    for (size_t kind = 0; kind < LENGTH(kinds); kind++) {
        uint64_t *ps = make_samples(kind, 10 + kind);
        struct stats *stats = open_stats(0);
        for (size_t i = 0; i < SAMPLES; i += 50)
            stats_add(stats, ps + i, 50);
        check_moments(stats, ps, SAMPLES);
        stats_close(stats);
        free(ps);
    }
}

static void stats_added_one_by_one_equal_batches_of_any_size(void **state)
{
    (void)state;
    for (size_t kind = 0; kind < LENGTH(kinds); kind++) {
        uint64_t *ps = make_samples(kind, 20 + kind), seed = 1;
        struct stats *single = open_stats(0), *batched = open_stats(0);
        for (size_t i = 0; i < SAMPLES; i++)
            stats_add(single, ps + i, 1);
        for (size_t at = 0, n; at < SAMPLES; at += n) {
            n = next_random(&seed) % 300;
            n = n < SAMPLES - at ? n : SAMPLES - at;
            stats_add(batched, ps + at, n);
        }
        check_moments(single, ps, SAMPLES);
        check_moments(batched, ps, SAMPLES);
        assert_memory_equal(single->buckets, batched->buckets, sizeof single->buckets);
        stats_close(single);
        stats_close(batched);
        free(ps);
    }
}

static void stats_merged_equal_all_samples_together(void **state)
{
    (void)state;
    for (size_t kind = 0; kind < LENGTH(kinds); kind++) {
        static const size_t parts[] = {0, 1, 7, 9000, SAMPLES - 9008, 0};
        uint64_t *ps = make_samples(kind, 30 + kind);
        struct stats *all = open_stats(0), *merged = open_stats(0), *part = open_stats(0);
        stats_add(all, ps, SAMPLES);
        for (size_t i = 0, at = 0; i < LENGTH(parts); at += parts[i++]) {
            stats_clear(part);
            stats_add(part, ps + at, parts[i]);
            stats_merge(merged, part);
        }
        check_moments(merged, ps, SAMPLES);
        assert_memory_equal(merged->buckets, all->buckets, sizeof all->buckets);
        assert_true(stats_median_ps(merged) == stats_median_ps(all));
        stats_close(all);
        stats_close(merged);
        stats_close(part);
        free(ps);
    }
}

static void stats_survive_an_outlier_as_the_first_sample(void **state)
{
    static const uint64_t outliers[] = {UINT64_C(1) << 40, UINT64_C(1) << 55, 0};
    (void)state;
    for (size_t o = 0; o < LENGTH(outliers); o++) {
        for (size_t batch = 1; batch < 100; batch += 63) {
            uint64_t *ps = make_samples(0, 40);
            struct stats *stats = open_stats(0);
            ps[0] = outliers[o];
            for (size_t at = 0; at < SAMPLES; at += batch)
                stats_add(stats, ps + at, batch < SAMPLES - at ? batch : SAMPLES - at);
            check_moments(stats, ps, SAMPLES);
            qsort(ps, SAMPLES, sizeof *ps, by_value);
            assert_near(stats_median_ps(stats), (long double)ps[MIDDLE], 1e-3L);
            stats_close(stats);
            free(ps);
        }
    }
}

/* A second of delay and a nanosecond of noise: the squares need 80 bits if summed as they are. */
static void stats_of_large_samples_keep_their_small_deviation(void **state)
{
    struct stats *stats = open_stats(0);
    uint64_t *ps = make_samples(3, 50);
    (void)state;
    stats_add(stats, ps, SAMPLES);
    assert_near(stats_deviation_ps(stats), naive_deviation(ps, SAMPLES), 1e-6L);
    assert_in_range((uint64_t)stats_deviation_ps(stats), 250, 330);
    stats_close(stats);
    free(ps);
}

static void stats_can_be_cleared_and_used_again(void **state)
{
    struct stats *stats = open_stats(4), *fresh = open_stats(0);
    uint64_t *ps = make_samples(1, 60);
    (void)state;
    stats_add(stats, ps, SAMPLES);
    stats_clear(stats);
    stats_add(stats, ps, 100);
    stats_add(fresh, ps, 100);
    check_moments(stats, ps, 100);
    assert_memory_equal(stats->buckets, fresh->buckets, sizeof fresh->buckets);
    assert_memory_equal(stats->kept_ps, ps, 4 * sizeof *ps);
    stats_close(stats);
    stats_close(fresh);
    free(ps);
}

/* ---- kept samples ---- */

static void stats_keep_samples_in_order_and_no_more_than_asked(void **state)
{
    struct stats *stats = open_stats(1000), *none = open_stats(0);
    uint64_t *ps = make_samples(1, 70);
    (void)state;
    for (size_t at = 0, n = 1; at < 990; at += n, n = n % 64 + 1)
        stats_add(stats, ps + at, n < 990 - at ? n : 990 - at);
    assert_int_equal(stats->kept_room, 1000);
    assert_memory_equal(stats->kept_ps, ps, 990 * sizeof *ps);
    stats_add(stats, ps + 990, 64);
    assert_int_equal(stats->count, 1054);
    assert_memory_equal(stats->kept_ps, ps, 1000 * sizeof *ps);
    check_moments(stats, ps, 1054);
    assert_null(none->kept_ps);
    assert_int_equal(none->kept_room, 0);
    stats_close(stats);
    stats_close(none);
    free(ps);
}

static void stats_that_cannot_keep_so_many_samples_say_so(void **state)
{
    static const uint64_t cases[] = {UINT64_MAX, UINT64_MAX / 8 + 1, UINT64_MAX / 8,
                                     UINT64_C(1) << 55};
    (void)state;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct stats *stats = NULL;
        assert_int_equal(stats_open(&stats, cases[i]), -ENOMEM);
        assert_null(stats);
        assert_int_equal(strncmp(fail_reason(), "--report-all: ", 14), 0);
    }
}

/* ---- the histogram ---- */

static double value_of(uint64_t ps)
{
    static struct stats *stats;
    /* Two samples around it, so that the bucket alone knows the middle one. */
    const uint64_t three[] = {0, ps, UINT64_C(1) << 60};
    if (!stats)
        stats = open_stats(0);
    stats_clear(stats);
    stats_add(stats, three, 3);
    return stats_median_ps(stats);
}

static void histogram_knows_every_value_within_a_thousandth(void **state)
{
    uint64_t seed = 2;
    (void)state;
    for (uint64_t ps = 1; ps < 5000; ps++)
        assert_near(value_of(ps), (long double)ps, ps < STATS_LINEAR ? 0 : 1e-3L);
    for (unsigned bit = 0; bit <= 55; bit++) {
        uint64_t power = UINT64_C(1) << bit;
        for (int i = 0; i < 60; i++) {
            uint64_t ps = i < 3 ? power + (uint64_t)i - 1 : power + next_random(&seed) % power;
            if (ps && ps <= UINT64_C(1) << 55)
                assert_near(value_of(ps), (long double)ps, 1e-3L);
        }
    }
}

static void histogram_buckets_are_in_order_and_without_gaps(void **state)
{
    uint64_t seed = 3;
    (void)state;
    for (uint64_t ps = 0; ps < 100000; ps++)
        assert_in_range(stats_bucket(ps + 1) - stats_bucket(ps), 0, 1);
    for (int i = 0; i < 100000; i++) {
        uint64_t ps = next_random(&seed) >> (8 + next_random(&seed) % 40);
        assert_in_range(stats_bucket(ps + 1) - stats_bucket(ps), 0, 1);
    }
    assert_int_equal(stats_bucket(UINT64_MAX), STATS_BUCKETS - 1);
    assert_int_equal(stats_bucket(UINT64_C(1) << 62), STATS_BUCKETS - 1);
}

/* ---- percentiles ---- */

static const struct {
    double share;
    uint64_t of, in; /* the same in whole numbers: of / in */
} shares[] = {{0.5, 50, 100},  {0.75, 75, 100},    {0.9, 90, 100},        {0.95, 95, 100},
              {0.99, 99, 100}, {0.999, 999, 1000}, {0.9999, 9999, 10000}, {0.99999, 99999, 100000},
              {0.1, 10, 100},  {0.25, 25, 100}};

/* The smallest rank that a share of the samples does not exceed, in whole numbers. */
static uint64_t rank_in(size_t s, uint64_t n)
{
    uint64_t rank = (shares[s].of * n + shares[s].in - 1) / shares[s].in;
    return rank ? rank : 1;
}

static void percentiles_equal_the_sorted_samples(void **state)
{
    (void)state;
    for (size_t kind = 0; kind < LENGTH(kinds); kind++) {
        uint64_t *ps = make_samples(kind, 80 + kind);
        struct stats *stats = open_stats(0);
        stats_add(stats, ps, SAMPLES);
        qsort(ps, SAMPLES, sizeof *ps, by_value);
        assert_near(stats_median_ps(stats), (long double)ps[MIDDLE], 1e-3L);
        for (size_t s = 0; s < LENGTH(shares); s++) {
            uint64_t rank = rank_in(s, SAMPLES);
            double value = -1;
            int status = stats_percentile(stats, shares[s].share, &value);
            assert_int_equal(status, SAMPLES - rank < 10 ? -ENODATA : 0);
            if (!status)
                assert_near(value, (long double)ps[rank - 1], 1e-3L);
        }
        stats_close(stats);
        free(ps);
    }
}

static void percentiles_of_kept_samples_are_among_them(void **state)
{
    (void)state;
    for (size_t kind = 0; kind < LENGTH(kinds); kind++) {
        uint64_t *ps = make_samples(kind, 40 + kind);
        struct stats *stats = open_stats(SAMPLES);
        stats_add(stats, ps, SAMPLES);
        qsort(ps, SAMPLES, sizeof *ps, by_value);
        assert_true(stats_median_ps(stats) == (double)ps[MIDDLE]);
        for (size_t s = 0; s < LENGTH(shares); s++) {
            double value;
            if (!stats_percentile(stats, shares[s].share, &value))
                assert_true(value == (double)ps[rank_in(s, SAMPLES) - 1]);
        }
        stats_close(stats);
        free(ps);
    }
}

/* Samples 1, 2, 3, ... below STATS_LINEAR have buckets of their own, so the rank itself shows. */
static void percentiles_are_given_only_with_ten_samples_beyond_them(void **state)
{
    struct stats *stats = open_stats(0);
    (void)state;
    fail(-EIO, "no sentence");
    for (uint64_t n = 1; n < STATS_LINEAR; n++) {
        stats_add(stats, &n, 1);
        uint64_t middle = (n + 1) / 2;
        assert_true(stats_median_ps(stats) == (double)middle);
        for (size_t s = 0; s < LENGTH(shares); s++) {
            uint64_t rank = rank_in(s, n);
            double value = -1;
            int status = stats_percentile(stats, shares[s].share, &value);
            int expected = n - rank < 10 ? -ENODATA : 0;
            if (status != expected || (!status && value != (double)rank))
                fail_msg("%g of %llu: status %d, rank %g, not %llu", shares[s].share,
                         (unsigned long long)n, status, value, (unsigned long long)rank);
        }
    }
    assert_string_equal(fail_reason(), "no sentence");
    stats_close(stats);
}

/* As many samples as a long run has: the rank must not drift with the count. */
static void percentiles_find_the_very_rank_among_billions(void **state)
{
    struct stats *stats = open_stats(0);
    uint64_t seed = 5;
    (void)state;
    for (int i = 0; i < 20000; i++) {
        size_t s = next_random(&seed) % LENGTH(shares);
        uint64_t n = 2000000 + next_random(&seed) % (UINT64_C(1) << (20 + i % 20));
        n -= i % 2 ? n % shares[s].in : 0; /* half of them without a fraction */
        uint64_t rank = rank_in(s, n);
        double value = -1;
        stats->count = n;
        stats->min_ps = 1;
        stats->max_ps = 3;
        /* Only the sample of this rank is 2. */
        stats->buckets[1] = rank - 1;
        stats->buckets[2] = 1;
        stats->buckets[3] = n - rank;
        assert_int_equal(stats_percentile(stats, shares[s].share, &value), 0);
        if (value != 2)
            fail_msg("%g of %llu", shares[s].share, (unsigned long long)n);
    }
    stats_close(stats);
}

static void intervals_bracket_their_percentile(void **state)
{
    (void)state;
    for (size_t kind = 0; kind < LENGTH(kinds); kind++) {
        uint64_t *ps = make_samples(kind, 90 + kind);
        struct stats *stats = open_stats(0);
        stats_add(stats, ps, SAMPLES);
        for (size_t s = 0; s < LENGTH(shares); s++) {
            double low = -1, value = -1, high = -1;
            int status = stats_percentile(stats, shares[s].share, &value);
            assert_int_equal(stats_interval(stats, shares[s].share, &low, &high), status);
            if (status)
                continue;
            assert_true(low <= value && value <= high);
            assert_true(low >= (double)stats->min_ps && high <= (double)stats->max_ps);
        }
        stats_close(stats);
        free(ps);
    }
}

/* Uniform samples up to 2000: the true median is 1000, the 90th percentile 1800. */
static void intervals_hold_the_truth_about_95_times_in_100(void **state)
{
    enum { TRIALS = 2000, N = 400 };
    static const double wanted[] = {0.5, 0.9};
    struct stats *stats = open_stats(0);
    uint64_t seed = 4;
    (void)state;
    for (size_t w = 0; w < LENGTH(wanted); w++) {
        int held = 0;
        for (int trial = 0; trial < TRIALS; trial++) {
            double low, high, truth = wanted[w] * 2000;
            stats_clear(stats);
            for (int i = 0; i < N; i++) {
                uint64_t ps = 1 + next_random(&seed) % 2000;
                stats_add(stats, &ps, 1);
            }
            assert_int_equal(stats_interval(stats, wanted[w], &low, &high), 0);
            held += low <= truth && truth <= high;
        }
        assert_in_range(held, TRIALS * 94 / 100, TRIALS * 98 / 100);
    }
    stats_close(stats);
}

/* ---- what disturbed a run ---- */

static void interference_is_the_sum_of_differences(void **state)
{
    struct interference sum = {.switches = 1};
    const struct interference from = {10, 20, 30, 40, {0}}, to = {11, 22, 33, 44, {0}};
    (void)state;
    interference_add(&sum, &from, &to);
    interference_add(&sum, &from, &to);
    assert_int_equal(sum.switches, 3);
    assert_int_equal(sum.migrations, 4);
    assert_int_equal(sum.faults, 6);
    assert_int_equal(sum.steal_ms, 8);
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
    interference_hint(0, 0, 0);
    interference_hint(0, 0, 5);
    interference_hint(4, 4, 10);
    interference_hint(9, 9, 100);
    /* The server sleeps, and something else takes our CPU; and the other way round. */
    interference_hint(100, 4, 10);
    interference_hint(100, 9, 100);
    interference_hint(0, 100, 100);
    assert_int_equal(hints, 0);
    interference_hint(10, 11, 100);
    assert_int_equal(hints, 1);
    interference_hint(110, 110, 100);
    assert_int_equal(hints, 1);
    warn_to(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stats_of_nothing_are_zero),
        cmocka_unit_test(stats_of_one_sample_are_that_sample),
        cmocka_unit_test(stats_deviation_of_equal_samples_is_zero),
        cmocka_unit_test(stats_of_the_manuals_samples_are_right_where_the_manuals_are_not),
        cmocka_unit_test(stats_moments_equal_the_naive_computation),
        cmocka_unit_test(stats_added_one_by_one_equal_batches_of_any_size),
        cmocka_unit_test(stats_merged_equal_all_samples_together),
        cmocka_unit_test(stats_survive_an_outlier_as_the_first_sample),
        cmocka_unit_test(stats_of_large_samples_keep_their_small_deviation),
        cmocka_unit_test(stats_can_be_cleared_and_used_again),
        cmocka_unit_test(stats_keep_samples_in_order_and_no_more_than_asked),
        cmocka_unit_test(stats_that_cannot_keep_so_many_samples_say_so),
        cmocka_unit_test(histogram_knows_every_value_within_a_thousandth),
        cmocka_unit_test(histogram_buckets_are_in_order_and_without_gaps),
        cmocka_unit_test(percentiles_equal_the_sorted_samples),
        cmocka_unit_test(percentiles_of_kept_samples_are_among_them),
        cmocka_unit_test(percentiles_are_given_only_with_ten_samples_beyond_them),
        cmocka_unit_test(percentiles_find_the_very_rank_among_billions),
        cmocka_unit_test(intervals_bracket_their_percentile),
        cmocka_unit_test(intervals_hold_the_truth_about_95_times_in_100),
        cmocka_unit_test(interference_is_the_sum_of_differences),
        cmocka_unit_test(ends_that_take_each_others_cpu_are_told_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
