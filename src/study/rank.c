/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks. Timings have outliers, modes and ties where a clock ticks coarsely; ranks do not mind the
 * first two, and a permutation test has the ties in its own distribution. */
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
    return fail(-ENOMEM, "no memory to compare in");
}

/* ---- the shift ---- */

/* How many orders of the two samples have at most so many pairs the wrong way round, for every such
 * number: coefficients of the Gaussian binomial, added up. Whole numbers below 2^53, so exact. */
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

/* How many of the ordered differences lie outside the interval at either end. */
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

/* A deal gives the labels of one set to as many runs. */
struct deals {
    const double *scores; /* run by run, a score for each row */
    size_t rows, runs, hand;
    double *sums; /* of the scores in the hand: a line of rows for each card */
    double *largest, *next;
};

/* Ranks of a row, tied values sharing theirs, scaled so that the sum over a random hand has mean 0
 * and variance 1. What never differs scores 0. */
static void score(const double *values, size_t runs, size_t hand, double *scores, size_t stride)
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
        (double)hand * (double)(runs - hand) / ((double)runs * (double)(runs - 1)) * squares;
    for (size_t i = 0; i < runs; i++)
        scores[i * stride] = variance > 0 ? scores[i * stride] / sqrt(variance) : 0;
}

static void play(struct deals *d, size_t card, size_t run)
{
    const double *before = d->sums + card * d->rows, *scores = d->scores + run * d->rows;
    double *after = d->sums + (card + 1) * d->rows;
    for (size_t row = 0; row < d->rows; row++)
        after[row] = before[row] + scores[row];
}

static void show(struct deals *d)
{
    const double *sums = d->sums + d->hand * d->rows;
    double largest = 0;
    for (size_t row = 0; row < d->rows; row++)
        largest = fmax(largest, fabs(sums[row]));
    *d->next++ = largest;
}

static void deal_all(struct deals *d, size_t card, size_t first)
{
    if (card == d->hand) {
        show(d);
        return;
    }
    for (size_t run = first; run + d->hand - card <= d->runs; run++) {
        play(d, card, run);
        deal_all(d, card + 1, run + 1);
    }
}

/* splitmix64: the same draws everywhere and always. */
static uint64_t draw(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15U;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9U;
    z = (z ^ z >> 27) * 0x94d049bb133111ebU;
    return z ^ z >> 31;
}

static void deal_some(struct deals *d, size_t *pack)
{
    uint64_t state = 1;
    for (size_t run = 0; run < d->runs; run++)
        pack[run] = run;
    for (size_t i = 0; i < RANK_DRAWS; i++) {
        for (size_t card = 0; card < d->hand; card++) {
            size_t other = card + (size_t)(draw(&state) % (d->runs - card)), run = pack[other];
            pack[other] = pack[card];
            pack[card] = run;
            play(d, card, run);
        }
        show(d);
    }
}

/* How many of the ordered values reach it; sums of the same scores in another order may differ in
 * the last digits. */
static size_t reach(const double *ordered, size_t count, double value)
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

/* Deals, and finds each row's sum in the hand that was really played among the largest of all. */
static void deal(struct deals *d, size_t *pack, bool all, size_t first, double *p)
{
    if (all)
        deal_all(d, 0, 0);
    else
        deal_some(d, pack);
    size_t count = (size_t)(d->next - d->largest);
    qsort(d->largest, count, sizeof *d->largest, ascending);
    for (size_t card = 0; card < d->hand; card++)
        play(d, card, first + card);
    /* The deal that took place is one of all; of drawn ones it is one more. */
    for (size_t row = 0; row < d->rows; row++) {
        size_t reached = reach(d->largest, count, fabs(d->sums[d->hand * d->rows + row]));
        p[row] = (double)(reached + !all) / (double)(count + !all);
    }
}

int rank_permute(const double *values, size_t rows, size_t a_count, size_t b_count, double *p)
{
    bool a_smaller = a_count <= b_count;
    size_t runs = a_count + b_count, hand = a_smaller ? a_count : b_count;
    double ways = rank_choose(runs, hand);
    bool all = ways <= RANK_DEALS;
    double *scores = calloc(runs * rows + 1, sizeof *scores);
    double *sums = calloc((hand + 1) * rows + 1, sizeof *sums);
    double *largest = calloc(all ? (size_t)ways : RANK_DRAWS, sizeof *largest);
    size_t *pack = calloc(runs + 1, sizeof *pack);
    bool memory = scores && sums && largest && pack;
    if (memory) {
        struct deals d = {scores, rows, runs, hand, sums, largest, largest};
        for (size_t row = 0; row < rows; row++)
            score(values + row * runs, runs, hand, scores + row, rows);
        deal(&d, pack, all, a_smaller ? 0 : a_count, p);
    }
    free(scores);
    free(sums);
    free(largest);
    free(pack);
    return memory ? 0 : no_memory();
}
