/* SPDX-License-Identifier: BSD-3-Clause */
/* The door of study: results read back. A document that a tool wrote becomes a struct study_run;
 * runs are compared, and made into a page. Nothing here measures. */
#ifndef WEFT_STUDY_H
#define WEFT_STUDY_H

#include "report/report.h"

/* ---- documents, read ---- */

/* What a document does not say is not a number, or NULL. */
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

struct study_result {
    const char *test, *label, *layout;
    uint64_t size;
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
};

struct study_run {
    const char *path; /* as it was given */
    const char *tool, *version, *command;
    const char *begun, *ended, *state, *reason;
    int exit;
    struct study_pair *options, *client, *server;
    size_t option_count, client_count, server_count; /* server: 0 if it was never heard */
    struct study_result *results;
    size_t result_count;
    void *own; /* what the strings belong to */
};

/* -EINVAL and a sentence that names the file if it is not a document of a version known here;
 * another status if it cannot be read. */
int study_read(struct study_run *run, const char *path);
void study_free(struct study_run *run);

#endif
