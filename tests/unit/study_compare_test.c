/* SPDX-License-Identifier: BSD-3-Clause */
/* The statistics of comparisons, checked against brute-force computations, and their error rate on
 * generated runs. Seeds are fixed, so results do not vary. */
#include "study/rank.h"
#include "study/study.h"
#include "support/unit.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- generated values ---- */

static uint64_t state;

static double uniform(void)
{
    state = state * 6364136223846793005U + 1442695040888963407U;
    return ((double)(state >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(void)
{
    return sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform());
}

static double steady(double middle)
{
    return middle * (1 + 0.01 * normal());
}

static double calm(double middle)
{
    return middle * (1 + 0.008 * normal());
}

static double skewed(double middle)
{
    return middle * exp(0.1 * normal());
}

/* The placement of memory makes every second run 2.5 times slower. */
static double moody(double middle)
{
    return middle * (uniform() < 0.5 ? 1 : 2.5) * (1 + 0.01 * normal());
}

/* A coarse clock: most runs have the same median. */
static double ticking(double middle)
{
    return round(middle * (1 + 0.01 * normal()) * 50) / 50;
}

typedef double shape(double middle);

/* ---- brute-force computations ---- */

static double rank_among(const double *values, size_t count, double value)
{
    double rank = 0.5;
    for (size_t i = 0; i < count; i++)
        rank += values[i] < value ? 1 : values[i] == value ? 0.5 : 0;
    return rank;
}

/* The rank sum of the runs in the mask, in its own standard deviations over all masks. */
static double plain_statistic(const double *values, size_t runs, size_t hand, unsigned mask)
{
    double sum = 0, mean = 0, square = 0;
    size_t deals = 0;
    for (unsigned m = 0; m < 1U << runs; m++) {
        double one = 0;
        if ((size_t)__builtin_popcount(m) != hand)
            continue;
        for (size_t i = 0; i < runs; i++)
            one += m >> i & 1 ? rank_among(values, runs, values[i]) : 0;
        mean += one;
        square += one * one;
        deals++;
        if (m == mask)
            sum = one;
    }
    mean /= (double)deals;
    double deviation = sqrt(fmax(0, square / (double)deals - mean * mean));
    return deviation > 1e-6 ? fabs(sum - mean) / deviation : 0;
}

static double plain_p(const double *values, size_t rows, size_t runs, size_t hand, size_t row)
{
    unsigned first = (1U << hand) - 1;
    double seen = plain_statistic(values + row * runs, runs, hand, first);
    size_t deals = 0, reached = 0;
    for (unsigned m = 0; m < 1U << runs; m++) {
        double largest = 0;
        if ((size_t)__builtin_popcount(m) != hand)
            continue;
        for (size_t i = 0; i < rows; i++)
            largest = fmax(largest, plain_statistic(values + i * runs, runs, hand, m));
        deals++;
        reached += largest >= seen - 1e-6;
    }
    return (double)reached / (double)deals;
}

static void p_equals_the_share_of_all_assignments_of_labels(void **unused)
{
    (void)unused;
    shape *const shapes[] = {steady, moody, ticking};
    const size_t sides[][2] = {{3, 3}, {2, 5}, {5, 2}, {4, 3}};
    enum { ROWS = 3 };
    state = 11;
    for (size_t k = 0; k < LENGTH(shapes) * LENGTH(sides); k++) {
        size_t a = sides[k % LENGTH(sides)][0], runs = a + sides[k % LENGTH(sides)][1];
        double values[ROWS * 8], p[ROWS];
        for (size_t i = 0; i < ROWS * runs; i++)
            values[i] = shapes[k % LENGTH(shapes)](i % runs < a ? 2 : 2.03);
        assert_int_equal(rank_permute(values, ROWS, a, runs - a, p), 0);
        for (size_t row = 0; row < ROWS; row++)
            assert_float_equal(p[row], plain_p(values, ROWS, runs, a, row), 1e-9);
    }
}

static void random_assignments_come_close_to_all_of_them(void **unused)
{
    (void)unused;
    /* There are 2704156 ways to choose 12 of 24. */
    double values[24], p;
    state = 5;
    for (size_t i = 0; i < 24; i++)
        values[i] = (double)i;
    assert_int_equal(rank_permute(values, 1, 12, 12, &p), 0);
    assert_true(p <= 2.0 / RANK_DRAWS);
    /* 0 2 4 ... against 1 3 5 ... */
    for (size_t i = 0; i < 24; i++)
        values[i] = (double)(i < 12 ? 2 * i : 2 * (i - 12) + 1);
    assert_int_equal(rank_permute(values, 1, 12, 12, &p), 0);
    assert_float_equal(p, 0.7553, 0.02); /* exact: 66 of 144 pairs one way */
}

static void equal_values_prove_nothing(void **unused)
{
    (void)unused;
    double values[16], p;
    struct rank_shift shift;
    for (size_t i = 0; i < 16; i++)
        values[i] = 2;
    assert_int_equal(rank_permute(values, 1, 8, 8, &p), 0);
    assert_float_equal(p, 1, 0);
    assert_int_equal(rank_shift(values, 8, values + 8, 8, &shift), 0);
    assert_float_equal(shift.median, 0, 0);
}

static void fully_separated_sets_have_the_smallest_p(void **unused)
{
    (void)unused;
    for (size_t n = 1; n <= 8; n++) {
        double values[16], p;
        for (size_t i = 0; i < 2 * n; i++)
            values[i] = (double)i;
        assert_int_equal(rank_permute(values, 1, n, n, &p), 0);
        assert_float_equal(p, 2 / rank_choose(2 * n, n), 1e-12);
    }
}

static int ascending(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

/* The number of orders of m and n values with at most u inverted pairs, by enumeration. */
static size_t orders_up_to(size_t m, size_t n, size_t u)
{
    size_t found = 0;
    for (unsigned mask = 0; mask < 1U << (m + n); mask++) {
        size_t wrong = 0, seen = 0;
        if ((size_t)__builtin_popcount(mask) != m)
            continue;
        for (size_t i = 0; i < m + n; i++) {
            if (mask >> i & 1)
                wrong += seen;
            else
                seen++;
        }
        found += wrong <= u;
    }
    return found;
}

static void the_shift_is_the_median_difference_and_its_interval_is_exact(void **unused)
{
    (void)unused;
    state = 23;
    for (size_t m = 1; m <= 6; m++)
        for (size_t n = 1; n <= 6; n++) {
            double a[6], b[6], all[36] = {0};
            struct rank_shift shift;
            size_t count = 0, out = 0;
            for (size_t i = 0; i < m; i++)
                a[i] = normal();
            for (size_t i = 0; i < n; i++)
                b[i] = normal() + 1;
            for (size_t i = 0; i < m * n; i++)
                all[count++] = b[i % n] - a[i / n];
            qsort(all, count, sizeof *all, ascending);
            while ((double)orders_up_to(m, n, out) <= 0.025 * rank_choose(m + n, m))
                out++;
            assert_int_equal(rank_shift(a, m, b, n, &shift), 0);
            assert_float_equal(shift.median, (all[(count - 1) / 2] + all[count / 2]) / 2, 1e-12);
            assert_int_equal(isnan(shift.low), out == 0);
            if (out) {
                assert_float_equal(shift.low, all[out - 1], 1e-12);
                assert_float_equal(shift.high, all[count - out], 1e-12);
            }
        }
}

static void the_interval_holds_the_true_shift_as_often_as_it_says(void **unused)
{
    (void)unused;
    const size_t sides[][2] = {{8, 8}, {5, 7}, {40, 40}};
    state = 31;
    for (size_t k = 0; k < LENGTH(sides); k++) {
        size_t held = 0, trials = 1000;
        for (size_t t = 0; t < trials; t++) {
            double a[40], b[40];
            struct rank_shift shift;
            for (size_t i = 0; i < sides[k][0]; i++)
                a[i] = normal();
            for (size_t i = 0; i < sides[k][1]; i++)
                b[i] = normal() + 0.7;
            assert_int_equal(rank_shift(a, sides[k][0], b, sides[k][1], &shift), 0);
            held += shift.low <= 0.7 && 0.7 <= shift.high;
        }
        assert_in_range(held, 933, 985);
    }
}

/* ---- whole comparisons ---- */

enum { SIZES = 5, RUNS_MOST = 24 };

struct made {
    struct study_set set;
    struct study_run runs[RUNS_MOST];
    struct study_result results[RUNS_MOST][SIZES];
};

/* One random factor per run, as processes have, and noise per size. */
static void make(struct made *m, size_t runs, shape *of, double middle)
{
    *m = (struct made){.set = {"made", m->runs, runs}};
    for (size_t i = 0; i < runs; i++) {
        double run = of(middle);
        m->runs[i] = (struct study_run){.path = "made",
                                        .tool = "cxi_write_lat",
                                        .state = "complete",
                                        .begun = "2026-01-01T00:00:00.000Z",
                                        .results = m->results[i],
                                        .result_count = SIZES};
        for (size_t k = 0; k < SIZES; k++)
            m->results[i][k] = (struct study_result){.test = "write",
                                                     .label = "",
                                                     .size = 8U << k,
                                                     .fabric = "null",
                                                     .method = "latency",
                                                     .complete = true,
                                                     .count = 1000,
                                                     .median_us = run * (1 + 0.002 * normal())};
    }
}

static const struct study_terms usual = {.percentiles = {50, 0}, .min_effect = 0.02};

static enum study_verdict verdict_of(const struct made *a, const struct made *b)
{
    struct study_comparison c;
    assert_int_equal(study_compare(&a->set, &b->set, &usual, &c), 0);
    enum study_verdict verdict = c.verdict;
    study_comparison_free(&c);
    return verdict;
}

static void false_alarms_are_rare(void **unused)
{
    (void)unused;
    shape *const shapes[] = {steady, skewed, moody, ticking};
    static struct made a, b;
    const size_t trials = 300;
    state = 41;
    for (size_t k = 0; k < LENGTH(shapes); k++)
        for (size_t runs = 5; runs <= 8; runs += 3) {
            size_t alarms = 0;
            for (size_t t = 0; t < trials; t++) {
                make(&a, runs, shapes[k], 2);
                make(&b, runs, shapes[k], 2);
                enum study_verdict verdict = verdict_of(&a, &b);
                alarms += verdict == STUDY_SLOWER || verdict == STUDY_FASTER;
            }
            assert_true(alarms <= trials * 2 / 100);
        }
}

/* The true change is exactly what must be excluded: an interval that misses it to the inner side
 * does so in at most 2.5 % of comparisons. */
static void same_is_rarely_said_of_a_change_that_counts(void **unused)
{
    (void)unused;
    shape *const shapes[] = {steady, skewed, moody, ticking};
    const double changes[] = {1.02, 1 / 1.02};
    static struct made a, b;
    const size_t trials = 150;
    state = 73;
    for (size_t k = 0; k < LENGTH(shapes) * LENGTH(changes); k++)
        for (size_t runs = 5; runs <= 8; runs += 3) {
            size_t wrong = 0;
            for (size_t t = 0; t < trials; t++) {
                make(&a, runs, shapes[k / 2], 2);
                make(&b, runs, shapes[k / 2], 2 * changes[k % 2]);
                wrong += verdict_of(&a, &b) == STUDY_SAME;
            }
            assert_true(wrong <= trials * 5 / 100);
        }
}

/* Whatever the runs are, each verdict follows from the row's own figures, and the whole is as bad
 * as its worst row. */
static void check_verdicts(const struct study_comparison *c, double min_effect)
{
    size_t counts[STUDY_ABSENT + 1] = {0};
    for (size_t i = 0; i < c->count; i++) {
        const struct study_shift *s = &c->shifts[i];
        bool shown = s->p <= STUDY_ALPHA && fabs(s->shift) >= min_effect;
        bool excluded = s->low > -min_effect && s->high < min_effect;
        enum study_verdict wanted = shown      ? s->shift > 0 ? STUDY_SLOWER : STUDY_FASTER
                                    : excluded ? STUDY_SAME
                                               : STUDY_UNSURE;
        assert_int_equal(s->verdict, wanted);
        counts[wanted]++;
    }
    assert_int_equal(c->verdict, counts[STUDY_SLOWER]   ? STUDY_SLOWER
                                 : counts[STUDY_UNSURE] ? STUDY_UNSURE
                                 : counts[STUDY_FASTER] ? STUDY_FASTER
                                                        : STUDY_SAME);
    assert_int_equal(c->unsure, counts[STUDY_UNSURE]);
    assert_true(!c->unsure == !c->runs_advised);
}

static void verdicts_follow_from_the_figures_whatever_they_are(void **unused)
{
    (void)unused;
    shape *const shapes[] = {steady, skewed, moody, ticking};
    static struct made a, b;
    size_t seen[STUDY_ABSENT + 1] = {0};
    state = 79;
    for (size_t t = 0; t < 200; t++) {
        struct study_terms terms = usual;
        struct study_comparison c;
        size_t runs = 5 + t % 4;
        terms.min_effect = t % 16 ? 0.1 * uniform() : 0;
        make(&a, runs, shapes[t % LENGTH(shapes)], 2);
        make(&b, runs, shapes[t % LENGTH(shapes)], 2 * (0.9 + 0.2 * uniform()));
        assert_int_equal(study_compare(&a.set, &b.set, &terms, &c), 0);
        check_verdicts(&c, terms.min_effect);
        seen[c.verdict]++;
        study_comparison_free(&c);
    }
    for (int verdict = STUDY_SAME; verdict <= STUDY_UNSURE; verdict++)
        assert_true(seen[verdict] > 10);
}

/* One comparison of few runs says how many would tell; most comparisons of that many do. */
static void as_many_runs_as_advised_can_tell(void **unused)
{
    (void)unused;
    static struct made a, b;
    size_t told = 0, asked = 0;
    state = 83;
    for (size_t t = 0; t < 200; t++) {
        struct study_comparison c;
        make(&a, 5, calm, 2);
        make(&b, 5, calm, 2);
        assert_int_equal(study_compare(&a.set, &b.set, &usual, &c), 0);
        size_t advised = c.runs_advised;
        study_comparison_free(&c);
        if (!advised || advised > RUNS_MOST)
            continue;
        assert_true(advised > 5);
        asked++;
        make(&a, advised, calm, 2);
        make(&b, advised, calm, 2);
        told += verdict_of(&a, &b) == STUDY_SAME;
    }
    assert_true(asked > 20);
    assert_true(told >= asked * 7 / 10);
}

static void runs_that_scatter_wildly_are_hopeless(void **unused)
{
    (void)unused;
    static struct made a, b;
    struct study_comparison c;
    state = 89;
    make(&a, 8, steady, 2);
    make(&b, 8, steady, 2);
    for (size_t i = 0; i < 8; i++)
        for (size_t k = 0; k < SIZES; k++)
            a.results[i][k].median_us = b.results[i][k].median_us = i % 2 ? 2 : 5;
    assert_int_equal(study_compare(&a.set, &b.set, &usual, &c), 0);
    assert_int_equal(c.verdict, STUDY_UNSURE);
    assert_int_equal(c.runs_advised, STUDY_HOPELESS);
    study_comparison_free(&c);
}

/* Median +39 %, but anything from nothing to twice as long. */
static void a_wide_interval_is_not_the_same(void **unused)
{
    (void)unused;
    const double before[] = {1.0, 1.1, 1.3, 1.9, 2.0}, after[] = {1.2, 1.6, 1.9, 2.3, 2.8};
    static struct made a, b;
    struct study_comparison c;
    make(&a, 5, steady, 2);
    make(&b, 5, steady, 2);
    for (size_t i = 0; i < 5; i++)
        for (size_t k = 0; k < SIZES; k++) {
            a.results[i][k].median_us = before[i];
            b.results[i][k].median_us = after[i];
        }
    assert_int_equal(study_compare(&a.set, &b.set, &usual, &c), 0);
    assert_true(c.shifts[0].shift > 0.3 && c.shifts[0].low < 0 && c.shifts[0].high > 0.9);
    assert_int_equal(c.shifts[0].verdict, STUDY_UNSURE);
    assert_int_equal(c.verdict, STUDY_UNSURE);
    study_comparison_free(&c);
}

static void five_percent_are_always_found(void **unused)
{
    (void)unused;
    static struct made a, b;
    state = 43;
    for (size_t t = 0; t < 300; t++) {
        make(&a, 8, steady, 2);
        make(&b, 8, steady, 2.1);
        assert_int_equal(verdict_of(&a, &b), STUDY_SLOWER);
        assert_int_equal(verdict_of(&b, &a), STUDY_FASTER);
    }
}

static void significant_but_small_changes_are_the_same(void **unused)
{
    (void)unused;
    static struct made a, b;
    struct study_comparison c;
    state = 47;
    make(&a, 8, steady, 2);
    make(&b, 8, steady, 2);
    for (size_t i = 0; i < 8; i++)
        for (size_t k = 0; k < SIZES; k++) {
            a.results[i][k].median_us = 2 + 0.0001 * (double)i;
            b.results[i][k].median_us = 2.03 + 0.0001 * (double)i;
        }
    assert_int_equal(study_compare(&a.set, &b.set, &usual, &c), 0);
    assert_int_equal(c.verdict, STUDY_SAME);
    assert_true(c.shifts[0].p < 0.001);
    assert_float_equal(c.shifts[0].shift, 0.015, 0.0005);
    study_comparison_free(&c);
}

static void too_few_runs_cannot_tell(void **unused)
{
    (void)unused;
    static struct made a, b;
    state = 53;
    for (size_t runs = 1; runs < 5; runs++) {
        make(&a, runs, steady, 2);
        make(&b, runs, steady, 4);
        assert_int_equal(verdict_of(&a, &b), STUDY_UNSURE);
    }
    make(&a, 5, steady, 2);
    make(&b, 5, steady, 4);
    assert_int_equal(verdict_of(&a, &b), STUDY_SLOWER);
}

static void medians_of_zero_are_not_divided_by(void **unused)
{
    (void)unused;
    static struct made a, b;
    struct study_comparison c;
    state = 59;
    make(&a, 8, steady, 2);
    make(&b, 8, steady, 2);
    for (size_t i = 0; i < 8; i++)
        for (size_t k = 0; k < SIZES; k++)
            a.results[i][k].median_us = b.results[i][k].median_us = 0;
    assert_int_equal(study_compare(&a.set, &b.set, &usual, &c), 0);
    assert_int_equal(c.verdict, STUDY_SAME);
    assert_true(c.shifts[0].shift == 0);
    study_comparison_free(&c);
    for (size_t i = 0; i < 8; i++)
        b.results[i][0].median_us = 0.003;
    assert_int_equal(study_compare(&a.set, &b.set, &usual, &c), 0);
    assert_int_equal(c.shifts[0].verdict, STUDY_SLOWER);
    assert_float_equal(c.shifts[0].shift, 2, 1e-9);
    study_comparison_free(&c);
}

static void results_of_the_same_name_are_matched_by_position(void **unused)
{
    (void)unused;
    static struct made a, b;
    struct study_comparison c;
    state = 71;
    make(&a, 8, steady, 2);
    make(&b, 8, steady, 2);
    for (size_t i = 0; i < 8; i++)
        for (size_t k = 0; k < SIZES; k++) {
            a.results[i][k].size = b.results[i][k].size = 8;
            a.results[i][k].median_us = b.results[i][k].median_us = 1 + (double)k;
        }
    assert_int_equal(study_compare(&a.set, &b.set, &usual, &c), 0);
    for (size_t k = 0; k < SIZES; k++)
        assert_float_equal(c.shifts[k].b, 1 + (double)k, 1e-9);
    study_comparison_free(&c);
}

static void streams_are_judged_by_their_rate(void **unused)
{
    (void)unused;
    static struct made a, b;
    state = 61;
    make(&a, 8, steady, 2);
    make(&b, 8, steady, 2);
    for (size_t i = 0; i < 8; i++)
        for (size_t k = 0; k < SIZES; k++) {
            a.results[i][k].method = b.results[i][k].method = "stream";
            a.results[i][k].messages_per_s = 1e6 + (double)i;
            b.results[i][k].messages_per_s = 0.9e6 + (double)i;
        }
    assert_int_equal(verdict_of(&a, &b), STUDY_SLOWER);
    assert_int_equal(verdict_of(&b, &a), STUDY_FASTER);
}

/* Equal list times, as if the lists had been longer in B: what counts is bandwidth. */
static void lists_are_judged_by_their_bandwidth_and_more_is_faster(void **unused)
{
    (void)unused;
    static struct made a, b;
    struct study_terms terms = {.percentiles = {50, 90, 0}, .min_effect = 0.02};
    struct study_bucket bucket = {2, 2.002, 1000};
    struct study_comparison c;
    state = 61;
    make(&a, 8, steady, 2);
    make(&b, 8, steady, 2);
    for (size_t i = 0; i < 8; i++)
        for (size_t k = 0; k < SIZES; k++) {
            struct study_result *left = &a.results[i][k], *right = &b.results[i][k];
            left->method = right->method = "list";
            left->buckets = right->buckets = &bucket;
            left->bucket_count = right->bucket_count = 1;
            left->messages_per_s = 1e6 + (double)i;
            right->messages_per_s = 1.1e6 + (double)i;
            left->bytes_per_s = left->messages_per_s * (double)left->size;
            right->bytes_per_s = right->messages_per_s * (double)right->size;
            left->reverse_elapsed_s = right->reverse_elapsed_s = NAN;
        }
    assert_int_equal(verdict_of(&a, &b), STUDY_FASTER);
    assert_int_equal(verdict_of(&b, &a), STUDY_SLOWER);
    assert_int_equal(study_compare(&a.set, &b.set, &terms, &c), 0);
    assert_int_equal(c.shifts[0].row.metric, STUDY_BANDWIDTH);
    assert_float_equal(c.shifts[0].a, 8 * 1000003.5, 1);
    assert_float_equal(c.shifts[0].shift, 0.1, 1e-3);
    assert_int_equal(c.shifts[1].row.metric, STUDY_PERCENTILE);
    assert_float_equal(c.shifts[1].a, 2.001, 1e-9);
    study_comparison_free(&c);
}

static void lists_both_ways_are_judged_by_the_sum_of_both_directions(void **unused)
{
    (void)unused;
    struct study_result result = {.method = "lists both ways",
                                  .size = 8,
                                  .bytes_per_s = 1000,
                                  .reverse_count = 50,
                                  .reverse_elapsed_s = 2};
    assert_float_equal(study_bytes_per_s(&result), 1200, 1e-9);
    result.reverse_elapsed_s = NAN;
    assert_float_equal(study_bytes_per_s(&result), 1000, 1e-9);
    result.method = "stream both ways";
    result.reverse_elapsed_s = 2;
    assert_float_equal(study_bytes_per_s(&result), 1000, 1e-9);
}

static void runs_that_differ_are_refused_and_can_be_forced(void **unused)
{
    (void)unused;
    static struct made a, b;
    struct study_terms force = usual;
    struct study_comparison c;
    force.force = true;
    state = 67;
    make(&a, 8, steady, 2);
    make(&b, 8, steady, 2);
    b.results[3][2].fabric = "soft";
    assert_int_equal(study_compare(&a.set, &b.set, &usual, &c), -EINVAL);
    assert_non_null(strstr(fail_reason(), "fabric null in made, soft in made"));
    assert_int_equal(study_compare(&a.set, &b.set, &force, &c), 0);
    assert_int_equal(c.count, SIZES - 1);
    assert_non_null(strstr(c.ignored, "soft"));
    study_comparison_free(&c);
    /* A different op everywhere: matched by size. */
    for (size_t i = 0; i < 8; i++)
        for (size_t k = 0; k < SIZES; k++)
            b.results[i][k].test = "read";
    assert_int_equal(study_compare(&a.set, &b.set, &force, &c), 0);
    assert_int_equal(c.count, SIZES);
    study_comparison_free(&c);
    /* No size in common. */
    for (size_t i = 0; i < 8; i++)
        for (size_t k = 0; k < SIZES; k++)
            b.results[i][k].size++;
    assert_int_equal(study_compare(&a.set, &b.set, &force, &c), -EINVAL);
}

static void a_percentile_that_is_missing_comes_from_the_histogram(void **unused)
{
    (void)unused;
    static struct made a, b;
    struct study_bucket buckets[] = {{1, 1.002, 900}, {5, 5.01, 80}, {9, 9.018, 20}};
    struct study_terms terms = {.percentiles = {95, 99, 0}, .min_effect = 0.02};
    struct study_comparison c;
    make(&a, 5, steady, 1);
    make(&b, 5, steady, 1);
    for (size_t i = 0; i < 5; i++)
        for (size_t k = 0; k < SIZES; k++) {
            a.results[i][k].buckets = b.results[i][k].buckets = buckets;
            a.results[i][k].bucket_count = b.results[i][k].bucket_count = 3;
        }
    b.results[4][0].bucket_count = 2; /* 980 samples: 9.8 lie beyond */
    assert_int_equal(study_compare(&a.set, &b.set, &terms, &c), 0);
    assert_float_equal(c.shifts[0].a, 5.005, 1e-9);
    assert_int_equal(c.shifts[1].verdict, STUDY_ABSENT);
    assert_float_equal(c.shifts[3].a, 9.009, 1e-9);
    assert_int_equal(c.absent, 1);
    study_comparison_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(p_equals_the_share_of_all_assignments_of_labels),
        cmocka_unit_test(random_assignments_come_close_to_all_of_them),
        cmocka_unit_test(equal_values_prove_nothing),
        cmocka_unit_test(fully_separated_sets_have_the_smallest_p),
        cmocka_unit_test(the_shift_is_the_median_difference_and_its_interval_is_exact),
        cmocka_unit_test(the_interval_holds_the_true_shift_as_often_as_it_says),
        cmocka_unit_test(false_alarms_are_rare),
        cmocka_unit_test(same_is_rarely_said_of_a_change_that_counts),
        cmocka_unit_test(verdicts_follow_from_the_figures_whatever_they_are),
        cmocka_unit_test(as_many_runs_as_advised_can_tell),
        cmocka_unit_test(runs_that_scatter_wildly_are_hopeless),
        cmocka_unit_test(a_wide_interval_is_not_the_same),
        cmocka_unit_test(five_percent_are_always_found),
        cmocka_unit_test(significant_but_small_changes_are_the_same),
        cmocka_unit_test(too_few_runs_cannot_tell),
        cmocka_unit_test(medians_of_zero_are_not_divided_by),
        cmocka_unit_test(results_of_the_same_name_are_matched_by_position),
        cmocka_unit_test(streams_are_judged_by_their_rate),
        cmocka_unit_test(lists_are_judged_by_their_bandwidth_and_more_is_faster),
        cmocka_unit_test(lists_both_ways_are_judged_by_the_sum_of_both_directions),
        cmocka_unit_test(runs_that_differ_are_refused_and_can_be_forced),
        cmocka_unit_test(a_percentile_that_is_missing_comes_from_the_histogram),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
