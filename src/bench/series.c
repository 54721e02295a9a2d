/* SPDX-License-Identifier: BSD-3-Clause */
/* A run over time, in bounded memory: when there is no more room, neighbours become one.
 * Percentiles of what has become one are those of all its samples, because each interval keeps a
 * histogram. */
#include "bench/stats.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BEYOND = 10 };

int series_open(struct series *series)
{
    series->counts = malloc(sizeof *series->counts);
    if (!series->counts)
        return fail(-ENOMEM, "no memory for percentiles over time");
    /* Present before anything is timed. */
    memset(series->counts, 0, sizeof *series->counts);
    return 0;
}

void series_close(struct series *series)
{
    free(series->counts);
    series->counts = NULL;
}

void series_clear(struct series *series)
{
    series->count = 0;
    if (series->counts)
        memset(series->counts->taken, 0, sizeof series->counts->taken);
}

static void join(struct interval *into, const struct interval *next)
{
    into->end_ps = next->end_ps;
    into->count += next->count;
    into->sum_ps += next->sum_ps;
    into->min_ps = next->min_ps < into->min_ps ? next->min_ps : into->min_ps;
    into->max_ps = next->max_ps > into->max_ps ? next->max_ps : into->max_ps;
}

/* It stays at the largest number that there is room for. */
static uint32_t bounded(uint64_t count)
{
    return count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
}

static void halve(struct series *series)
{
    struct series_counts *counts = series->counts;
    for (size_t i = 0; i < SERIES_MAX / 2; i++) {
        series->intervals[i] = series->intervals[2 * i];
        join(&series->intervals[i], &series->intervals[2 * i + 1]);
        for (size_t k = 0; counts && k < SERIES_BUCKETS; k++)
            counts->of[i][k] = bounded((uint64_t)counts->of[2 * i][k] + counts->of[2 * i + 1][k]);
    }
    series->count = SERIES_MAX / 2;
}

/* What the statistics have that no interval has. */
static void take(struct series_counts *counts, size_t interval, const struct stats *stats)
{
    for (size_t i = 0; i < SERIES_BUCKETS; i++) {
        uint64_t all = 0;
        for (size_t k = 0; k < SERIES_WIDTH; k++)
            all += stats->buckets[i * SERIES_WIDTH + k];
        counts->of[interval][i] = bounded(all - counts->taken[i]);
        counts->taken[i] = all;
    }
}

void series_add(struct series *series, const struct interval *interval, const struct stats *stats)
{
    if (!interval->count)
        return;
    if (series->count == SERIES_MAX)
        halve(series);
    if (series->counts && stats)
        take(series->counts, series->count, stats);
    series->intervals[series->count++] = *interval;
}

static double middle(size_t bucket)
{
    double low, high, unused;
    stats_bounds(bucket * SERIES_WIDTH, &low, &unused);
    stats_bounds((bucket + 1) * SERIES_WIDTH - 1, &unused, &high);
    return low + (high - low - 1) / 2;
}

int series_percentile(const struct series *series, size_t interval, double share, double *ps)
{
    const uint32_t *counts = series->counts ? series->counts->of[interval] : NULL;
    uint64_t all = 0, seen = 0;
    size_t bucket = 0;
    for (size_t i = 0; counts && i < SERIES_BUCKETS; i++)
        all += counts[i];
    double rank = ceil(share * (double)all - 1e-9);
    if (!all || (share < 1 && (double)all - rank < BEYOND))
        return -ENODATA;
    for (seen = counts[0]; (double)seen < rank; seen += counts[bucket])
        bucket++;
    *ps = middle(bucket);
    return 0;
}
