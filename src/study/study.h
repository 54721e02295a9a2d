/* SPDX-License-Identifier: BSD-3-Clause */
/* The door of study: results read back. A document that a tool wrote becomes a struct study_run;
 * runs are compared and drawn on a page. */
#ifndef WEFT_STUDY_H
#define WEFT_STUDY_H

#include "report/report.h"

/* ---- documents, read ---- */

/* Values that a document does not have are NAN or NULL. Texts have no control characters, but are
 * otherwise untrusted input. */
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
    double p50_us, p99_us; /* NAN in documents of older releases */
};

/* A fact or an option, its value as typed: 1 or 0 for a flag. origin is NULL for facts; "--NAME" if
 * another option decided. */
struct study_pair {
    const char *name, *value, *origin;
};

/* A --fail-if condition, judged with one result. */
struct study_condition {
    const char *text, *verdict;
    uint64_t result; /* index, within result_count */
    double value;
};

/* One of several pairs of processes. */
struct study_part {
    const char *device;
    bool complete;
    uint64_t operations;
    double elapsed_s, bytes_per_s, messages_per_s; /* not a number: it was lost */
};

/* How far a counter of an end's network device came; not a number: not known. */
struct study_counter {
    const char *end, *device, *name;
    double delta;
};

struct study_result {
    const char *test, *label, *layout;
    uint64_t size;
    struct study_pair *options; /* those that differ from the run's; only with batches */
    size_t option_count;
    const char *fabric, *device, *form, *why, *library;
    const char *method, *clock, *proves;
    bool half_round_trip, clock_subtracted, complete;
    double clock_cost_ns, clock_step_ns;
    uint64_t count, operations, ops_per_sample, warmup;
    bool resolved;        /* the clock resolves the median */
    double resolution_ns; /* figures below it are not known; 0: not said */
    uint64_t clamped;
    double min_us, max_us, mean_us, deviation_us, median_us;
    double elapsed_s, bytes_per_s, messages_per_s;
    struct study_percentile *percentiles;
    size_t percentile_count;
    struct study_bucket *buckets;
    size_t bucket_count;
    struct study_interval *intervals;
    size_t interval_count;
    uint64_t preempted, migrated, page_faults, steal_ms;
    uint64_t reverse_count; /* both ways: messages that the other end sent */
    double reverse_elapsed_s;
    uint64_t pairs, devices; /* that were at work together; 0: one */
    /* What bounds the bandwidth of one pair and one device in one direction; of lists. */
    double memcpy_bytes_per_s, link_bytes_per_s;
    struct study_part *parts; /* the result is their sum; only with several */
    size_t part_count;
    struct study_counter *counters; /* only if they were asked for */
    size_t counter_count;
};

struct study_run {
    const char *path; /* as given by the user */
    const char *tool, *version;
    const char *commit, *compiler, *flags;      /* NULL in documents of version 1 */
    const char *command;                        /* quoted for a shell */
    const char *begun, *ended, *state, *reason; /* times sort as text */
    uint64_t exit;
    struct study_pair *options, *client, *server;
    size_t option_count, client_count, server_count; /* server: 0 if it never answered */
    struct study_result *results;
    size_t result_count;
    struct study_condition *conditions;
    size_t condition_count;
    const char **warnings, **libraries; /* printed on standard error; of vendors, with versions */
    size_t warning_count, library_count;
    unsigned set;     /* of runs that are drawn together: which set it belongs to, from 0 */
    uint64_t file[2]; /* device and inode of the file; 0 if read from memory */
    void *own;        /* the memory of all of it */
};

/* Reads a document of version 1 or 2. -EINVAL and a sentence that names the file if it cannot be
 * read, has another schema version, is too long or truncated, or has a value that the schema does
 * not allow. Unknown keys are ignored. After a failure there is nothing to free. regular: refuse a
 * pipe or a device, which nobody has named. */
int study_read(struct study_run *run, const char *path, bool regular);

/* The same from memory; path is only its name. */
int study_parse(struct study_run *run, const char *path, const char *text, size_t length);

void study_free(struct study_run *run);

/* What samples are: latencies; times between the posts of a stream; times of lists of operations.
 */
enum study_kind { STUDY_LATENCY = 1, STUDY_STREAM = 2, STUDY_LIST = 4 };
enum study_kind study_kind(const struct study_result *result);

/* Delivered; of lists both ways, by both directions together. NAN if it is not known. */
double study_bytes_per_s(const struct study_result *result);

/* ---- sets of runs ---- */

/* Repeated runs: one file, or every *.json of a folder in the order of their names. */
struct study_set {
    const char *path; /* as given by the user */
    struct study_run *runs;
    size_t count;
};

int study_set_read(struct study_set *set, const char *path);

/* True if a folder has no *.json itself but folders a and b: two sets, with these paths. */
enum { STUDY_PATH = 4096 };
bool study_sides(const char *path, char a[STUDY_PATH], char b[STUDY_PATH]);

void study_set_free(struct study_set *set);

/* -EINVAL and a sentence if path is the file that one of the runs was read from: writing to it
 * would destroy the result. */
int study_check_output(const struct study_run *runs, size_t count, const char *path);

/* Calls visit for every option and every fact of a machine that differs between the sets. */
void study_differences(const struct study_set *a, const struct study_set *b,
                       void (*visit)(void *arg, const char *name, const char *a, const char *b),
                       void *arg);

/* Calls visit for every counter of errors that grew: by how much in all runs of the set together,
 * and in how many. */
int study_errors(const struct study_set *set,
                 void (*visit)(void *arg, const struct study_counter *sum, size_t runs), void *arg);

/* ---- comparing ---- */

struct study_terms {
    /* What is compared; 50 is the median; ends with 0. */
    double percentiles[REPORT_PERCENTILES + 1];
    double min_effect;   /* as a fraction: a smaller change does not count, however certain */
    bool across_fabrics; /* the fabric of B may be another one than that of A */
    bool force;          /* compare runs that are not comparable, or not complete */
};

/* Significance level of the whole comparison, over all rows together. */
#define STUDY_ALPHA 0.01

enum study_verdict {
    STUDY_SAME, /* a change of min_effect is excluded: the interval lies within it */
    STUDY_FASTER,
    STUDY_SLOWER,
    STUDY_UNSURE, /* such a change is neither shown nor excluded */
    STUDY_ABSENT  /* the value is missing in at least one run */
};

/* What is compared in one row. Streams are judged by their time per message, 1 / message rate, and
 * lists by their bandwidth, instead of the median. */
enum study_metric { STUDY_PERCENTILE, STUDY_PER_MESSAGE, STUDY_BANDWIDTH };

struct study_row {
    const struct study_result *of; /* in the first run of A */
    double percent;
    enum study_metric metric; /* bandwidth is in bytes per second, and more of it is faster; all
                                 else is in microseconds */
    bool unresolved; /* some run's value is below what its clock resolves, and counts as missing */
};

/* One row in both sets. Values are NAN where missing. */
struct study_shift {
    struct study_row row;
    double a, b;      /* medians over the runs */
    double shift;     /* Hodges-Lehmann estimate: 0.05 if the value is 5 % more in B */
    double low, high; /* its 95 % confidence interval */
    double p;         /* probability that chance makes any row differ as much */
    enum study_verdict verdict;
};

struct study_comparison {
    struct study_shift *shifts;
    size_t count;
    enum study_verdict verdict; /* of all rows: slower, else unsure, else faster, if any row is;
                                   a row that is absent cannot be told either */
    size_t slower, faster, unsure, absent, unresolved;
    size_t runs_needed;  /* per side, to find any change at all */
    size_t runs_advised; /* unsure: per side, roughly, to tell if shift and spread stay as they are;
                            0: unknown; STUDY_HOPELESS: that many or more */
    bool sequential;     /* not interleaved: all runs of one set began before those of the other,
                            as with a stored baseline */
    char ignored[512];   /* the reason that --force overrode, or "" */
};
enum { STUDY_HOPELESS = 1000 };

/* Compares two sets. -EINVAL and a sentence if they are not comparable: different tests, labels,
 * layouts, sizes, fabrics or methods, between the sets or within one, or a run that is not
 * complete. With force, it compares what all runs have in common, by size alone if nothing else
 * matches. The comparison points into the sets. */
int study_compare(const struct study_set *a, const struct study_set *b,
                  const struct study_terms *terms, struct study_comparison *comparison);

/* The smallest number of runs per side that can show a change in one of so many rows. */
size_t study_runs_needed(size_t rows);

void study_comparison_free(struct study_comparison *comparison);

/* The spread of the runs of one set, per row: median, minimum and maximum over the runs; NAN if the
 * value is missing in at least one. The caller frees the rows. */
struct study_spread {
    struct study_row row;
    double median, min, max;
};
int study_spread(const struct study_set *set, const struct study_terms *terms,
                 struct study_spread **rows, size_t *count);

#endif
