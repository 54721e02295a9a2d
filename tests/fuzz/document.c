/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzzes the reader of results. What it accepts must be fit for all that is made of results. */
#include "study/study.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ignore(void *arg, const char *name, const char *was, const char *is)
{
    *(size_t *)arg += strlen(name) + strlen(was) + strlen(is);
}

/* The promises of the door. */
static void check(const struct study_run *run)
{
    for (size_t i = 0; i < run->condition_count; i++)
        if (run->conditions[i].result >= run->result_count)
            abort();
    for (size_t i = 0; i < run->result_count; i++) {
        const struct study_result *r = &run->results[i];
        if (!r->size || !isfinite(r->median_us) || r->median_us < 0 || !r->test || !r->method)
            abort();
        for (size_t k = 0; k < r->bucket_count; k++)
            if (!(r->buckets[k].high_us > r->buckets[k].low_us) || !r->buckets[k].count)
                abort();
    }
    for (const char *at = run->command; *at; at++)
        if ((unsigned char)*at < ' ')
            abort();
}

static void compare(struct study_run *run)
{
    struct study_run twice[5] = {*run, *run, *run, *run, *run};
    struct study_set set = {"set", twice, 5};
    struct study_terms terms = {.percentiles = {50, 99, 0}, .min_effect = 0.02, .force = true};
    struct study_comparison comparison;
    struct study_spread *rows;
    size_t count = 0;
    if (!study_compare(&set, &set, &terms, &comparison)) {
        if (comparison.verdict == STUDY_SLOWER || comparison.verdict == STUDY_FASTER)
            abort();
        study_comparison_free(&comparison);
    }
    if (!study_spread(&set, &terms, &rows, &count))
        free(rows);
    study_differences(&set, &set, ignore, &count);
}

static void page(const struct study_run *run)
{
    char *bytes = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&bytes, &length);
    if (!out)
        return;
    study_page(run, 1, out);
    fclose(out);
    free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct study_run run;
    if (study_parse(&run, "fuzz", (const char *)data, size))
        return 0;
    check(&run);
    if (run.result_count)
        compare(&run);
    page(&run);
    study_free(&run);
    return 0;
}
