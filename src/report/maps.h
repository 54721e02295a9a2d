/* SPDX-License-Identifier: BSD-3-Clause */
/* A door of report: a map of many ranks as text and as documents. */
#ifndef WEFT_REPORT_MAPS_H
#define WEFT_REPORT_MAPS_H

#include "bench/stats.h"
#include "map/map.h"
#include "report/report.h"

#include <string.h>

/* Ranks send histograms that are compact, 16 steps an octave. */
enum { MAP_SHIFT = 5, MAP_BUCKETS = STATS_BUCKETS >> MAP_SHIFT };
enum { MAP_NAME = 96, MAP_REASON = 160, MAP_ALL_PAIRS = 256, MAP_WORST_PAIRS = 1000 };

struct map_histogram {
    uint64_t buckets[MAP_BUCKETS];
};

/* From low up to, not including, high. */
void map_bounds(size_t bucket, double *low_us, double *high_us);
/* The value that a share of the samples does not exceed; not a number if there are none. */
double map_share(const struct map_histogram *histogram, double share);

/* 10^6 bytes per second, of operations of this size and time. */
static inline double map_mb_per_s(uint64_t size, double us)
{
    return (double)size / us;
}

/* A rank that was struck, or two that could not measure (b is MAP_NONE: one rank). */
struct map_lost {
    uint32_t a, b, round;
    char reason[MAP_REASON];
};

/* What was run. */
struct map_head {
    int argc;
    char **argv;
    char begun[32], ended[32];
    const char *test; /* send_lat */
    const char *time; /* what the times are: "latency", "time per operation" */
    const char *how;  /* the ranks were started: "local", "pmi" */
    uint64_t size;    /* bytes */
    uint64_t slot_ms; /* a pair measures for so long; 0: for so many iterations */
    uint64_t iterations;
    char device[160], form[160];
    bool trusted; /* ranks have shown each other a secret */
    uint32_t partners, again;
    double min_effect;
};

/* Its times are the inverse of a bandwidth. */
static inline bool map_is_rate(const struct map_head *head)
{
    return strcmp(head->time, "latency") != 0;
}

/* All that is known at the end. model and verdicts may be NULL: there was not enough for them. */
struct map_record {
    struct map_head head;
    struct map_plan plan;
    uint32_t nodes, hosts, groups;
    char (*names)[MAP_NAME];       /* per node */
    char (*group_names)[MAP_NAME]; /* per group */
    uint32_t *group_of;
    bool *struck; /* per node */
    struct map_cells first, second, third;
    size_t planned;                 /* pairs of the first */
    size_t unresolved;              /* of the first: the clock does not resolve their medians, */
    float resolution_us;            /* and they count as so long */
    struct map_histogram histogram; /* of the first */
    const struct map_model *model;
    const struct map_verdicts *verdicts;
    struct map_lost *lost; /* ranks, then pairs */
    size_t lost_count;
    int code; /* exit code */
    char ending[512];
};

extern const char *const map_verdict_words[]; /* by enum map_verdict */
extern const char *const map_kind_words[];    /* by enum map_kind */

/* What a finding is of: "node n07", "pair n03 - n11". */
void map_finding_text(const struct map_record *record, const struct map_finding *finding,
                      char *text, size_t room);

/* Writes the document (schema weft-map-1); one line per pair as CSV. "-": standard output. */
int map_save_json(const struct map_record *record, const char *path);
int map_save_csv(const struct map_record *record, const char *path);

/* Every cell of a map, written as it comes in. */
struct cell_file {
    const char *path;
    FILE *out;         /* NULL: none, or writing has failed */
    size_t written[3]; /* of each stage */
    int status;
    char why[1024];
};

/* Empties the file, or makes it, and writes the names of the nodes; "": none is wanted. */
int cell_file_open(struct cell_file *file, const struct map_record *record, const char *path);
/* The cells that are new in the record. Once writing fails nothing more is written, and close has
 * the reason. */
void cell_file_write(struct cell_file *file, const struct map_record *record);
int cell_file_close(struct cell_file *file);

/* The transcript: head, heat map if it is a terminal of so many columns (0: none), what is slow,
 * and what could not have been found. */
int map_print(const struct map_record *record, uint32_t columns, FILE *out);

#endif
