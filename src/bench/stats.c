/* SPDX-License-Identifier: BSD-3-Clause */
/* Samples: a log-linear histogram of 512 steps an octave (so a value is known within 0.1 %), and
 * running moments. Memory does not depend on how many samples there are, unless they are kept. */
#include "bench/stats.h"
#include "memory/memory.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { BEYOND = 10 };
static const double clocks_differ = 0.005;

_Static_assert(sizeof(struct stats) <= 256 << 10, "a size's histogram stays within 256 KiB");

/* They may be locked: more than half of what there is would leave the machine no room to live. */
static int check_room(uint64_t kept, size_t bytes)
{
    char need[32], have[32];
    uint64_t available = memory_available();
    if (bytes <= available / 2)
        return 0;
    unit_bytes_text(bytes, need, sizeof need);
    unit_bytes_text(available, have, sizeof have);
    return fail(-ENOMEM,
                "--report-all: not enough memory: %" PRIu64 " samples need %s, and may take half "
                "of the %s available",
                kept, need, have);
}

/* Present and, where allowed, locked: no page fault between samples. */
static int keep_room(struct stats *s, uint64_t kept)
{
    size_t most = SIZE_MAX / sizeof *s->kept_ps;
    size_t bytes = kept < most ? kept * sizeof *s->kept_ps : SIZE_MAX;
    int status = check_room(kept, bytes);
    if (status)
        return status;
    s->kept_ps = malloc(bytes);
    if (!s->kept_ps)
        return fail(-ENOMEM, "--report-all: no memory to keep %" PRIu64 " samples", kept);
    memset(s->kept_ps, 0, bytes);
    mlock(s->kept_ps, bytes);
    s->kept_room = kept;
    return 0;
}

int stats_open(struct stats **stats, uint64_t kept)
{
    struct stats *s = calloc(1, sizeof *s);
    if (!s)
        return fail(-ENOMEM, "no memory for statistics");
    int status = kept ? keep_room(s, kept) : 0;
    if (status) {
        free(s);
        return status;
    }
    stats_clear(s);
    *stats = s;
    return 0;
}

void stats_close(struct stats *stats)
{
    if (!stats)
        return;
    if (stats->kept_ps)
        munlock(stats->kept_ps, stats->kept_room * sizeof *stats->kept_ps);
    free(stats->kept_ps);
    free(stats);
}

void stats_clear(struct stats *stats)
{
    stats->count = stats->max_ps = 0;
    stats->min_ps = UINT64_MAX;
    stats->mean_ps = stats->square_ps = 0;
    memset(stats->buckets, 0, sizeof stats->buckets);
}

/* Welford's update, for a group of samples at once. */
static void merge_moments(struct stats *into, double n, double mean_ps, double square_ps)
{
    double a = (double)into->count, distance = mean_ps - into->mean_ps;
    into->mean_ps += distance * n / (a + n);
    into->square_ps += square_ps + distance * distance * a * n / (a + n);
}

void stats_add(struct stats *stats, const uint64_t *ps, size_t n)
{
    /* Distances from a value near the mean, so that their squares lose nothing. */
    double near = stats->count ? stats->mean_ps : n ? (double)(int64_t)ps[0] : 0;
    double sum = 0, squares = 0;
    uint64_t min_ps = stats->min_ps, max_ps = stats->max_ps;
    if (!n)
        return;
    for (size_t i = 0; i < n; i++) {
        double distance = (double)(int64_t)ps[i] - near;
        sum += distance;
        squares += distance * distance;
        min_ps = ps[i] < min_ps ? ps[i] : min_ps;
        max_ps = ps[i] > max_ps ? ps[i] : max_ps;
        stats->buckets[stats_bucket(ps[i])]++;
    }
    double square_ps = squares - sum * sum / (double)n;
    merge_moments(stats, (double)n, near + sum / (double)n, square_ps > 0 ? square_ps : 0);
    for (size_t i = 0; i < n && stats->count + i < stats->kept_room; i++)
        stats->kept_ps[stats->count + i] = ps[i];
    stats->count += n;
    stats->min_ps = min_ps;
    stats->max_ps = max_ps;
}

void stats_merge(struct stats *into, const struct stats *from)
{
    if (!from->count)
        return;
    merge_moments(into, (double)from->count, from->mean_ps, from->square_ps);
    into->count += from->count;
    into->min_ps = from->min_ps < into->min_ps ? from->min_ps : into->min_ps;
    into->max_ps = from->max_ps > into->max_ps ? from->max_ps : into->max_ps;
    for (size_t i = 0; i < STATS_BUCKETS; i++)
        into->buckets[i] += from->buckets[i];
}

/* In the order in which no bucket is reached before it is emptied. */
void stats_scale(struct stats *stats, double factor)
{
    if (!(factor > 0) || fabs(factor - 1) < clocks_differ)
        return;
    for (size_t i = 0; i < STATS_BUCKETS; i++) {
        size_t from = factor > 1 ? STATS_BUCKETS - 1 - i : i;
        uint64_t count = stats->buckets[from];
        double low, high;
        if (!count)
            continue;
        stats_bounds(from, &low, &high);
        stats->buckets[from] = 0;
        stats->buckets[stats_bucket((uint64_t)((low + (high - low - 1) / 2) * factor))] += count;
    }
    stats->min_ps = stats->count ? (uint64_t)((double)stats->min_ps * factor) : stats->min_ps;
    stats->max_ps = (uint64_t)((double)stats->max_ps * factor);
    stats->mean_ps *= factor;
    stats->square_ps *= factor * factor;
}

void stats_settle(struct stats *stats)
{
    stats->count = stats->max_ps = 0;
    stats->min_ps = UINT64_MAX;
    stats->mean_ps = stats->square_ps = 0;
    for (size_t i = 0; i < STATS_BUCKETS; i++) {
        double low, high;
        if (!stats->buckets[i])
            continue;
        stats_bounds(i, &low, &high);
        merge_moments(stats, (double)stats->buckets[i], low + (high - low - 1) / 2, 0);
        stats->count += stats->buckets[i];
        if (stats->min_ps == UINT64_MAX)
            stats->min_ps = (uint64_t)low;
        stats->max_ps = (uint64_t)high - 1;
    }
}

double stats_deviation_ps(const struct stats *stats)
{
    /* Rounding may leave a hair below zero. */
    return stats->count && stats->square_ps > 0 ? sqrt(stats->square_ps / (double)stats->count) : 0;
}

void stats_bounds(size_t bucket, double *low, double *high)
{
    unsigned shift = bucket < STATS_LINEAR ? 0 : (unsigned)(bucket / STATS_SUB) - 1;
    double width = (double)(UINT64_C(1) << shift);
    *low = (double)(bucket - (size_t)shift * STATS_SUB) * width;
    *high = *low + width;
}

/* The middle of a bucket, as far as samples reach into it. */
static double bucket_value(const struct stats *stats, size_t bucket)
{
    double low, high;
    stats_bounds(bucket, &low, &high);
    double middle = low + (high - low - 1) / 2;
    if (bucket == STATS_BUCKETS - 1 || middle > (double)stats->max_ps)
        return (double)stats->max_ps;
    return middle < (double)stats->min_ps ? (double)stats->min_ps : middle;
}

/* The very sample, where all are kept: what is printed follows from them to the digit. */
static double kept_at_rank(const struct stats *stats, size_t bucket, uint64_t rank)
{
    double from, to;
    stats_bounds(bucket, &from, &to);
    uint64_t low = (uint64_t)from, high = (uint64_t)to - 1;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2, up_to = 0;
        for (uint64_t i = 0; i < stats->count; i++)
            up_to += stats->kept_ps[i] <= middle;
        if (up_to >= rank)
            high = middle;
        else
            low = middle + 1;
    }
    return (double)low;
}

/* The sample of this rank, counted from 1. */
static double at_rank(const struct stats *stats, uint64_t rank)
{
    bool kept = stats->kept_ps && stats->count <= stats->kept_room;
    uint64_t seen = 0;
    for (size_t i = 0; i < STATS_BUCKETS; i++) {
        seen += stats->buckets[i];
        if (seen >= rank)
            return kept && i < STATS_BUCKETS - 1 ? kept_at_rank(stats, i, rank)
                                                 : bucket_value(stats, i);
    }
    return (double)stats->max_ps;
}

static uint64_t rank_of(double share, uint64_t count)
{
    /* 0.07 is not quite seven hundredths. */
    double rank = ceil(share * (double)count - 1e-9);
    if (rank < 1)
        return 1;
    return rank > (double)count ? count : (uint64_t)rank;
}

int stats_percentile(const struct stats *stats, double share, double *ps)
{
    if (!stats->count)
        return -ENODATA;
    uint64_t rank = rank_of(share, stats->count);
    if (stats->count - rank < BEYOND)
        return -ENODATA;
    *ps = at_rank(stats, rank);
    return 0;
}

int stats_interval(const struct stats *stats, double share, double *low_ps, double *high_ps)
{
    double n = (double)stats->count, middle = n * share;
    double reach = 1.959964 * sqrt(n * share * (1 - share));
    if (!stats->count || stats->count - rank_of(share, stats->count) < BEYOND)
        return -ENODATA;
    *low_ps = at_rank(stats, rank_of((middle - reach) / n, stats->count));
    *high_ps = at_rank(stats, rank_of((middle + reach + 1) / n, stats->count));
    return 0;
}

double stats_median_ps(const struct stats *stats)
{
    return stats->count ? at_rank(stats, rank_of(0.5, stats->count)) : 0;
}
