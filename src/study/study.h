/* SPDX-License-Identifier: BSD-3-Clause */
/* The door of study: results read back. A document that a tool wrote becomes a struct study_run;
 * runs are compared, and made into a page. Nothing here measures. */
#ifndef WEFT_STUDY_H
#define WEFT_STUDY_H

#include "report/report.h"

/* ---- documents, read ---- */

/* What a document does not say is not a number, or NULL. No text has control characters in it; all
 * of it is a stranger's nevertheless. */
struct study_percentile {
    double percent, us, low_us, high_us;
};

struct study_bucket {
    double low_us, high_us;
    uint64_t count;
};

struct study_interval {
    double end_s;
    uint64_t count;
    double mean_us, min_us, max_us;
};

/* A fact or an option; origin is NULL for facts. */
struct study_pair {
    const char *name, *value, *origin;
};

/* Of a --fail-if, with one result. */
struct study_verdict {
    const char *condition, *verdict;
    uint64_t result; /* index, within result_count */
    double value;
};

struct study_result {
    const char *test, *label, *layout;
    uint64_t size;
    struct study_pair *options; /* those that are not as in the run's; only with batches */
    size_t option_count;
    const char *fabric, *device, *form, *why;
    const char *method, *clock, *proves;
    bool half_round_trip, clock_subtracted, complete;
    double clock_cost_ns;
    uint64_t count;
    double min_us, max_us, mean_us, deviation_us, median_us;
    double elapsed_s, bytes_per_s, messages_per_s;
    struct study_percentile *percentiles;
    size_t percentile_count;
    struct study_bucket *buckets;
    size_t bucket_count;
    struct study_interval *intervals;
    size_t interval_count;
    uint64_t preempted, migrated, page_faults, steal_ms;
    uint64_t reverse_count; /* stream both ways: what the other end sent meanwhile */
    double reverse_elapsed_s;
};

struct study_run {
    const char *path; /* as it was given */
    const char *tool, *version;
    const char *command;                        /* as one would type it */
    const char *begun, *ended, *state, *reason; /* times sort as text */
    uint64_t exit;
    struct study_pair *options, *client, *server;
    size_t option_count, client_count, server_count; /* server: 0 if it was never heard */
    struct study_result *results;
    size_t result_count;
    struct study_verdict *verdicts;
    size_t verdict_count;
    uint64_t file[2]; /* which one it was read from: device and inode; from memory, none */
    void *own;        /* what all of it lies in */
};

/* -EINVAL and a sentence that names the file if it cannot be read, or is not a document of a
 * version known here: too long, cut short, or with anything in it that the schema does not allow.
 * Unknown keys are passed over. After a failure there is nothing to free. */
int study_read(struct study_run *run, const char *path);

/* The same from memory; path is only what it is called. */
int study_parse(struct study_run *run, const char *path, const char *text, size_t length);

void study_free(struct study_run *run);

/* ---- sets of runs ---- */

/* Runs that repeat each other: a file is one, a folder has one in each *.json, in order of name. */
struct study_set {
    const char *path; /* as it was given */
    struct study_run *runs;
    size_t count;
};

int study_set_read(struct study_set *set, const char *path);

/* Whether a folder has no *.json itself, but folders a and b: two sets, whose paths these are. */
enum { STUDY_PATH = 4096 };
bool study_sides(const char *path, char a[STUDY_PATH], char b[STUDY_PATH]);

void study_set_free(struct study_set *set);

/* -EINVAL and a sentence if path is the very file that one of the runs was read from: written to,
 * it would be lost. */
int study_spare(const struct study_run *runs, size_t count, const char *path);

/* Calls say with every option and every fact of a machine that is not the same in both. */
void study_differences(const struct study_set *a, const struct study_set *b,
                       void (*say)(void *arg, const char *name, const char *was, const char *is),
                       void *arg);

/* ---- comparing ---- */

struct study_terms {
    double
        percentiles[REPORT_PERCENTILES + 1]; /* what is compared; 50 is the median; ends with 0 */
    double min_effect; /* as a share: less is no difference, however certain */
    bool force;        /* runs that are not comparable, or not complete */
};

/* A difference counts if chance explains it less often than this, over all rows together. */
#define STUDY_ALPHA 0.01

enum study_outcome {
    STUDY_SAME,
    STUDY_FASTER,
    STUDY_SLOWER,
    STUDY_UNSURE, /* too few runs to tell */
    STUDY_ABSENT  /* no run, or not every run, has the figure */
};

/* A figure of a size. */
struct study_row {
    const struct study_result *of; /* in A's first run */
    double percent;
    bool rate; /* microseconds a message of a stream, not of an operation */
};

/* The same in both sets. Not a number: not to be had. */
struct study_shift {
    struct study_row row;
    double a_us, b_us; /* medians over the runs */
    double shift;      /* Hodges-Lehmann: 0.05 is B taking 5 % longer */
    double low, high;  /* its 95 % interval */
    double p;          /* that chance makes any of the rows look so different */
    enum study_outcome outcome;
};

struct study_comparison {
    struct study_shift *shifts;
    size_t count;
    enum study_outcome outcome; /* slower if anything is, else faster if anything is */
    size_t slower, faster, absent;
    size_t runs_needed;       /* a side, to find anything at all */
    size_t runs_wanted;       /* a side, to find one row that differs alone */
    bool one_after_the_other; /* all of one set was begun before the other */
    char ignored[512];        /* what forbids the comparison, if it was forced; or empty */
};

/* -EINVAL and a sentence if they are not comparable: other tests, labels, layouts, sizes, fabrics
 * or methods, between the sets or within one; or a run that is not complete. Forced, it compares
 * what all have in common, by size alone if there is nothing else. Pointers lead into the sets. */
int study_compare(const struct study_set *a, const struct study_set *b,
                  const struct study_terms *terms, struct study_comparison *comparison);
/* The least number of runs a side with which one of so many rows can be told to differ. */
size_t study_runs_needed(size_t rows);

void study_comparison_free(struct study_comparison *comparison);

/* How far the runs of one set lie apart: the median of the figure over the runs, the least and the
 * largest; not numbers if not every run has it. The rows are the caller's to free. */
struct study_spread {
    struct study_row row;
    double middle_us, min_us, max_us;
};
int study_spread(const struct study_set *set, const struct study_terms *terms,
                 struct study_spread **rows, size_t *count);

/* ---- the page ---- */

/* One HTML page that needs nothing else: plots, figures and the description of all runs. */
int study_page(const struct study_run *runs, size_t count, FILE *out);

/* Latency against size, or what streams carry, as one SVG file with its own legend and colours.
 * -ENODATA if nothing was measured. */
int study_plot(const struct study_run *runs, size_t count, FILE *out);

#endif
