/* SPDX-License-Identifier: BSD-3-Clause */
/* A door of bench: samples. All of them count, in constant memory; what a run did over time; and
 * what disturbed it. */
#ifndef WEFT_STATS_H
#define WEFT_STATS_H

#include "core/core.h"

/* 512 steps an octave: the middle of a bucket is within 0.1 % of whatever is in it. */
enum {
    STATS_BITS = 9,
    STATS_SUB = 1 << STATS_BITS,
    STATS_OCTAVES = 47,
    STATS_BUCKETS = (STATS_OCTAVES + 1) * STATS_SUB
};
#define STATS_LINEAR ((size_t)2 * STATS_SUB) /* up to here a bucket is a picosecond */

struct stats {
    uint64_t count, min_ps, max_ps;
    double mean_ps, square_ps; /* Welford's: mean, and sum of squared distances from it */
    uint64_t *kept_ps;         /* every sample in order, or NULL */
    uint64_t kept_room;
    uint64_t buckets[STATS_BUCKETS];
};

/* kept: how many samples to keep one by one; their memory is present and locked. */
int stats_open(struct stats **stats, uint64_t kept);
void stats_close(struct stats *stats);
void stats_clear(struct stats *stats);
void stats_merge(struct stats *into, const struct stats *from);
/* Every sample times a factor, within the width of a bucket; not those that are kept. Factors that
 * differ by less than clocks do are 1. */
void stats_scale(struct stats *stats, double factor);

/* The population's standard deviation. */
double stats_deviation_ps(const struct stats *stats);

/* The value that a share of the samples (0 < share < 1) does not exceed, within 0.1 %; where
 * samples are kept, one of them. -ENODATA, without a sentence, if fewer than ten samples lie beyond
 * it. */
int stats_percentile(const struct stats *stats, double share, double *ps);

/* Its 95 % confidence interval by order statistics. */
int stats_interval(const struct stats *stats, double share, double *low_ps, double *high_ps);

/* The middle sample, however few there are. */
double stats_median_ps(const struct stats *stats);

/* What stats_bucket puts into a bucket: from low up to, not including, high. */
void stats_bounds(size_t bucket, double *low, double *high);

/* Counts and moments from the buckets, for samples that were only put there. */
void stats_settle(struct stats *stats);

static inline size_t stats_bucket(uint64_t ps)
{
    if (ps < STATS_LINEAR)
        return ps;
    unsigned shift = 63U - STATS_BITS - (unsigned)__builtin_clzll(ps);
    size_t bucket = (size_t)shift * STATS_SUB + (ps >> shift);
    return bucket < STATS_BUCKETS ? bucket : STATS_BUCKETS - 1;
}

/* Adds samples in order. A handful at a time costs a few nanoseconds each: one by one, the next
 * clock read would have to wait for the arithmetic. */
void stats_add(struct stats *stats, const uint64_t *ps, size_t n);

/* ---- a run over time ---- */

/* What an interval of a run came to. */
struct interval {
    uint64_t end_ps; /* since the measurement began */
    uint64_t count;
    uint64_t min_ps, max_ps; /* UINT64_MAX and 0: not known */
    double sum_ps;
};

/* Of each interval a coarser histogram, so that its percentiles are known also when neighbours have
 * become one: 32 buckets per octave, a value within 1.6 %. */
enum {
    SERIES_MAX = 256,
    SERIES_SUB = 32,
    SERIES_WIDTH = STATS_SUB / SERIES_SUB,
    SERIES_BUCKETS = STATS_BUCKETS / SERIES_WIDTH
};

struct series_counts {
    uint64_t taken[SERIES_BUCKETS]; /* samples of the statistics that are in an interval */
    uint32_t of[SERIES_MAX][SERIES_BUCKETS];
};

struct series {
    size_t count;
    struct interval intervals[SERIES_MAX];
    struct series_counts *counts; /* NULL: percentiles are not kept */
};

/* Keeps percentiles from now on; 1.5 MiB, however long the run. */
int series_open(struct series *series);
void series_close(struct series *series);
void series_clear(struct series *series);

/* Adds the next interval, unless nothing happened in it: all samples of the statistics that are in
 * no interval yet. stats may be NULL. Without room, every two become one. */
void series_add(struct series *series, const struct interval *interval, const struct stats *stats);

/* As stats_percentile, of one interval and within 1.6 %; a share of 1 is the largest sample. */
int series_percentile(const struct series *series, size_t interval, double share, double *ps);

/* ---- pairs of ends, or threads of them, that measured together ---- */

/* What came of one of them. Each was measured while all others ran. */
struct part {
    char device[128];
    int64_t cpus[2]; /* of client and server; -1: not known */
    uint64_t count, reverse_count;
    double elapsed_s, reverse_elapsed_s;
    double median_us;     /* of its samples; not a number: it has none */
    bool known, complete; /* not known: it was lost with what it had measured */
};

struct parts {
    unsigned count;
    const struct part *list;
    unsigned devices; /* different ones: pair i is on device i % devices */
    bool threads;     /* of one process at each end; otherwise processes */
};

/* Operations per second of one of them, in both directions; 0: not known. */
double part_rate(const struct part *part);

/* What a sample is, and whether the clock can tell samples apart. */
struct sampling {
    uint64_t warmup;      /* iterations that ran before anything counted */
    uint64_t ops;         /* operations per sample, which is their mean */
    double resolution_ns; /* of the samples: figures below it are not known */
    uint64_t clamped;     /* samples that were no longer than the clock's own cost: they read 0 */
    bool resolved;        /* the median is not below the resolution */
};

/* ---- what disturbed us ---- */

struct interference {
    uint64_t switches, migrations, faults, steal_ms;
    /* Not a disturbance: what each end's thread used per operation of the size, warm-up included;
     * by rank, not a number if it is not known. */
    double cpu_ns[2];
};

void interference_now(struct interference *now);

/* Adds what happened between two looks. */
void interference_add(struct interference *sum, const struct interference *from,
                      const struct interference *to);

/* Warns, once, if ends that are free to run on one CPU seem to have done so: then the scheduler
 * takes each off it every few operations. An end that sleeps is not taken off. */
void interference_hint(uint64_t mine, uint64_t theirs, uint64_t operations);

/* Warns of what touched the result, if anything did. */
void interference_say(const struct interference *sum);

#endif
