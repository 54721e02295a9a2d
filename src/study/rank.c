/* SPDX-License-Identifier: BSD-3-Clause */
/* Rank statistics. Timings have outliers, several modes, and ties if the clock is coarse. Ranks are
 * robust to outliers and modes, and a permutation test accounts for ties. */
#include "study/rank.h"
#include "core/core.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

double rank_choose(size_t n, size_t k)
{
    double ways = 1;
    for (size_t i = 1; i <= k; i++)
        ways = round(ways * (double)(n - k + i) / (double)i);
    return ways;
}

static int ascending(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static int no_memory(void)
{
    return fail(-ENOMEM, "no memory for the comparison");
}

/* ---- the shift ---- */

/* orders[u]: the number of orders of the two samples with at most u inverted pairs, which is the
 * cumulative sum of the coefficients of the Gaussian binomial. Exact, because below 2^53. */
static void count_orders(size_t m, size_t n, double *orders)
{
    size_t most = m * n;
    memset(orders, 0, (most + 1) * sizeof *orders);
    orders[0] = 1;
    for (size_t i = 1; i <= m; i++) {
        for (size_t u = most; u >= n + i; u--)
            orders[u] -= orders[u - n - i];
        for (size_t u = i; u <= most; u++)
            orders[u] += orders[u - i];
    }
    for (size_t u = 1; u <= most; u++)
        orders[u] += orders[u - 1];
}

/* The number of sorted differences outside the interval, at each end. */
static int outside(size_t m, size_t n, size_t *left_out)
{
    double ways = rank_choose(m + n, m), pairs = (double)m * (double)n;
    *left_out = 0;
    if (ways > 9007199254740992.0) {
        double spread = sqrt(pairs * (double)(m + n + 1) / 12);
        *left_out = (size_t)fmax(0, floor(pairs / 2 - 1.959964 * spread));
        return 0;
    }
    double *orders = calloc(m * n + 1, sizeof *orders);
    if (!orders)
        return no_memory();
    count_orders(m, n, orders);
    while (*left_out < m * n / 2 && orders[*left_out] <= 0.025 * ways)
        ++*left_out;
    free(orders);
    return 0;
}

int rank_shift(const double *a, size_t a_count, const double *b, size_t b_count,
               struct rank_shift *shift)
{
    size_t pairs = a_count * b_count, left_out;
    double *differences = calloc(pairs, sizeof *differences);
    if (!differences)
        return no_memory();
    for (size_t i = 0; i < a_count; i++)
        for (size_t k = 0; k < b_count; k++)
            differences[i * b_count + k] = b[k] - a[i];
    qsort(differences, pairs, sizeof *differences, ascending);
    *shift =
        (struct rank_shift){(differences[(pairs - 1) / 2] + differences[pairs / 2]) / 2, NAN, NAN};
    int status = outside(a_count, b_count, &left_out);
    if (!status && left_out) {
        shift->low = differences[left_out - 1];
        shift->high = differences[pairs - left_out];
    }
    free(differences);
    return status;
}

/* ---- the permutation test ---- */

/* An assignment gives the label of the smaller set to group runs. */
struct assignments {
    const double *scores; /* per run, one for each row */
    size_t rows, runs, group;
    double *sums; /* of the scores of the first n runs in the group, per row; for n up to group */
    double *largest, *next;
};

/* Ranks of a row, the mean rank for ties, scaled so that the sum over a random group has mean 0 and
 * variance 1. All scores are 0 if all values are equal. */
static void score(const double *values, size_t runs, size_t group, double *scores, size_t stride)
{
    double middle = (double)(runs + 1) / 2, squares = 0;
    for (size_t i = 0; i < runs; i++) {
        size_t below = 0, equal = 0;
        for (size_t k = 0; k < runs; k++) {
            below += values[k] < values[i];
            equal += values[k] == values[i];
        }
        double rank = (double)below + (double)(equal + 1) / 2 - middle;
        scores[i * stride] = rank;
        squares += rank * rank;
    }
    double variance =
        (double)group * (double)(runs - group) / ((double)runs * (double)(runs - 1)) * squares;
    for (size_t i = 0; i < runs; i++)
        scores[i * stride] = variance > 0 ? scores[i * stride] / sqrt(variance) : 0;
}

static void add_run(struct assignments *t, size_t n, size_t run)
{
    const double *before = t->sums + n * t->rows, *scores = t->scores + run * t->rows;
    double *after = t->sums + (n + 1) * t->rows;
    for (size_t row = 0; row < t->rows; row++)
        after[row] = before[row] + scores[row];
}

static void record(struct assignments *t)
{
    const double *sums = t->sums + t->group * t->rows;
    double largest = 0;
    for (size_t row = 0; row < t->rows; row++)
        largest = fmax(largest, fabs(sums[row]));
    *t->next++ = largest;
}

static void try_all(struct assignments *t, size_t n, size_t first)
{
    if (n == t->group) {
        record(t);
        return;
    }
    for (size_t run = first; run + t->group - n <= t->runs; run++) {
        add_run(t, n, run);
        try_all(t, n + 1, run + 1);
    }
}

static void try_random(struct assignments *t, size_t *order)
{
    uint64_t state = 1;
    for (size_t run = 0; run < t->runs; run++)
        order[run] = run;
    for (size_t i = 0; i < RANK_DRAWS; i++) {
        for (size_t n = 0; n < t->group; n++) {
            size_t other = n + (size_t)(random_next(&state) % (t->runs - n)), run = order[other];
            order[other] = order[n];
            order[n] = run;
            add_run(t, n, run);
        }
        record(t);
    }
}

/* The number of sorted values that are at least value. Sums of the same scores in another order may
 * differ in the last digits, hence the tolerance. */
static size_t count_at_least(const double *ordered, size_t count, double value)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (ordered[middle] < value - 1e-9)
            low = middle + 1;
        else
            high = middle;
    }
    return count - low;
}

/* Ranks the sum of each row in the real assignment among the largest sums of all assignments. */
static void rank_rows(struct assignments *t, size_t *order, bool all, size_t first, double *p)
{
    if (all)
        try_all(t, 0, 0);
    else
        try_random(t, order);
    size_t count = (size_t)(t->next - t->largest);
    qsort(t->largest, count, sizeof *t->largest, ascending);
    for (size_t n = 0; n < t->group; n++)
        add_run(t, n, first + n);
    /* The real assignment is one of all; random ones do not include it, so it is added. */
    for (size_t row = 0; row < t->rows; row++) {
        size_t reached = count_at_least(t->largest, count, fabs(t->sums[t->group * t->rows + row]));
        p[row] = (double)(reached + !all) / (double)(count + !all);
    }
}

int rank_permute(const double *values, size_t rows, size_t a_count, size_t b_count, double *p)
{
    bool a_smaller = a_count <= b_count;
    size_t runs = a_count + b_count, group = a_smaller ? a_count : b_count;
    double ways = rank_choose(runs, group);
    bool all = ways <= RANK_ALL_MAX;
    double *scores = calloc(runs * rows + 1, sizeof *scores);
    double *sums = calloc((group + 1) * rows + 1, sizeof *sums);
    double *largest = calloc(all ? (size_t)ways : RANK_DRAWS, sizeof *largest);
    size_t *order = calloc(runs + 1, sizeof *order);
    bool memory = scores && sums && largest && order;
    if (memory) {
        struct assignments t = {scores, rows, runs, group, sums, largest, largest};
        for (size_t row = 0; row < rows; row++)
            score(values + row * runs, runs, group, scores + row, rows);
        rank_rows(&t, order, all, a_smaller ? 0 : a_count, p);
    }
    free(scores);
    free(sums);
    free(largest);
    free(order);
    return memory ? 0 : no_memory();
}
