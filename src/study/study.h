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

struct study_stretch {
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
    struct study_stretch *stretches;
    size_t stretch_count;
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
    void *own; /* what all of it lies in */
};

/* -EINVAL and a sentence that names the file if it cannot be read, or is not a document of a
 * version known here: too long, cut short, or with anything in it that the schema does not allow.
 * Unknown keys are passed over. After a failure there is nothing to free. */
int study_read(struct study_run *run, const char *path);

/* The same from memory; path is only what it is called. */
int study_parse(struct study_run *run, const char *path, const char *text, size_t length);

void study_free(struct study_run *run);

/* ---- the page ---- */

/* One HTML page that needs nothing else: plots, figures and the description of all runs. */
int study_page(const struct study_run *runs, size_t count, FILE *out);

/* Latency against size, or what streams carry, as one SVG file with its own legend and colours.
 * -ENODATA if nothing was measured. */
int study_plot(const struct study_run *runs, size_t count, FILE *out);

#endif
