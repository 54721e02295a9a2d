/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzzes the reader of results. What it accepts keeps the promises of the door. */
#include "fuzz/feed.h"
#include "study/study.h"

#include <math.h>
#include <stdlib.h>

unsigned fuzz_accepted;

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
    for (const char *at = run->command; *at; at += text_character(at))
        if (!text_character(at) || text_control(at))
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct study_run run;
    if (study_parse(&run, "fuzz", (const char *)data, size))
        return 0;
    fuzz_accepted++;
    check(&run);
    study_free(&run);
    return 0;
}
