/* SPDX-License-Identifier: BSD-3-Clause */
/* Results as the library shows them: to a program's function while a test runs, and at its end. */
#include "api/api.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int weft_histogram_next(const struct weft_histogram *histogram, size_t *at, double *low_us,
                        double *high_us, uint64_t *count)
{
    const struct stats *stats = histogram ? histogram->stats : NULL;
    if (!at || !low_us || !high_us || !count)
        return fail(-EINVAL, "weft_histogram_next: at, low_us, high_us and count must not be NULL");
    for (; stats && *at < STATS_BUCKETS; ++*at) {
        double low, high;
        if (!stats->buckets[*at])
            continue;
        stats_bounds(*at, &low, &high);
        *low_us = low * histogram->us_per_unit;
        *high_us = high * histogram->us_per_unit;
        *count = stats->buckets[(*at)++];
        return 1;
    }
    return 0;
}

int weft_counters_next(const struct weft_counters *counters, size_t *at, int *end,
                       const char **device, const char **name, double *delta)
{
    size_t passed = 0;
    if (!at || !end || !device || !name || !delta)
        return fail(-EINVAL,
                    "weft_counters_next: at, end, device, name and delta must not be NULL");
    if (!counters)
        return 0;
    const struct counted *all = &counters->counted;
    for (unsigned i = 0; i < 2 * all->pairs; passed += all->ends[i++].count) {
        const struct counters *one = &all->ends[i];
        if (*at - passed >= one->count)
            continue;
        const struct counter *c = &one->list[(*at)++ - passed];
        *end = (int)(i % 2);
        *device = one->device;
        *name = c->name;
        *delta = c->known ? (double)c->value : NAN;
        return 1;
    }
    return 0;
}

static void counters_free(const struct weft_counters *counters)
{
    struct weft_counters *own = (struct weft_counters *)counters;
    if (own)
        free((struct counters *)own->counted.ends);
    free(own);
}

/* A copy that stays when the run's own goes; NULL: no memory. */
static struct weft_counters *counters_copy(const struct counted *from)
{
    struct weft_counters *copy = calloc(1, sizeof *copy);
    struct counters *ends = calloc((size_t)2 * from->pairs, sizeof *ends);
    if (!copy || !ends) {
        free(copy);
        free(ends);
        return NULL;
    }
    memcpy(ends, from->ends, (size_t)2 * from->pairs * sizeof *ends);
    copy->counted = (struct counted){.pairs = from->pairs, .ends = ends};
    return copy;
}

static void histogram_free(const struct weft_histogram *histogram)
{
    /* What the library allocated it may take back. */
    struct weft_histogram *own = (struct weft_histogram *)histogram;
    if (own)
        stats_close(own->stats);
    free(own);
}

/* Does the program's struct, which may be an older one, reach as far as the end of this member? */
#define REACHES(result, member) ((result)->bytes > offsetof(struct weft_result, member))

void weft_result_free(struct weft_result *result)
{
    if (!result || !REACHES(result, histogram))
        return;
    histogram_free(result->histogram);
    result->histogram = NULL;
    if (REACHES(result, fabric))
        result->fabric = NULL;
    if (REACHES(result, completion_proves))
        result->completion_proves = NULL;
    if (REACHES(result, counters)) {
        counters_free(result->counters);
        result->counters = NULL;
    }
}

/* ---- figures ---- */

static void fill_percentiles(const struct weft_params *params, const struct result *from,
                             struct weft_result *result)
{
    double unit = from->us_per_unit;
    size_t n = 0;
    for (; n < WEFT_PERCENTILES && params->percentiles[n] > 0; n++) {
        double percent = params->percentiles[n], at = NAN, low = NAN, high = NAN;
        if (!stats_percentile(from->stats, percent / 100, &at))
            stats_interval(from->stats, percent / 100, &low, &high);
        result->percentiles[n] = (struct weft_percentile){
            .percent = percent, .us = at * unit, .low_us = low * unit, .high_us = high * unit};
    }
    result->percentile_count = n;
}

static struct weft_figure figure(const struct figure *from)
{
    return (struct weft_figure){from->typical, from->recent, from->overall};
}

static void fill(struct api_report *r, const struct result *from, struct weft_result *result)
{
    const struct stats *s = from->stats;
    const struct interference *i = &from->interference;
    double unit = from->us_per_unit;
    *result = (struct weft_result){
        .bytes = sizeof *result,
        .final = from->final,
        .size = from->size,
        .iterations = from->count,
        .transferred = from->bytes,
        .elapsed_s = from->elapsed_s,
        .latency_us = figure(&from->latency_us),
        .bandwidth = figure(&from->bandwidth),
        .rate = figure(&from->rate),
        .min_us = s->count ? (double)s->min_ps * unit : 0,
        .max_us = (double)s->max_ps * unit,
        .deviation_us = stats_deviation_ps(s) * unit,
        .disturbed = {i->switches, i->migrations, i->faults, i->steal_ms},
        .histogram = &r->shown,
        .fabric = r->shown.fabric,
        .completion_proves = r->shown.proves,
        .reverse_iterations = from->reverse_count,
        .reverse_elapsed_s = isnan(from->reverse_elapsed_s) ? 0 : from->reverse_elapsed_s,
        .samples = s->count,
        .ops_per_sample = from->sampling.ops,
        .resolution_us = from->sampling.resolution_ns / 1000,
        .resolved = from->sampling.resolved,
        .clamped = from->sampling.clamped,
        .warmup = from->sampling.warmup};
    if (isnan(from->latency_us.typical)) {
        result->latency_us.typical = stats_median_ps(s) * unit;
        result->latency_us.overall = s->mean_ps * unit;
    }
    r->counted.counted = from->counters;
    result->counters = from->final && from->counters.pairs ? &r->counted : NULL;
    fill_percentiles(r->params, from, result);
    r->shown.stats = (struct stats *)s;
    r->shown.us_per_unit = unit;
}

/* ---- the report ---- */

static int on_begin(struct report *report, const struct facts *facts)
{
    struct api_report *r = (struct api_report *)report;
    snprintf(r->shown.fabric, sizeof r->shown.fabric, "%s", facts->session->facts.form);
    snprintf(r->shown.proves, sizeof r->shown.proves, "%s", facts->proves);
    return 0;
}

static int on_interval(struct report *report, const struct result *from)
{
    struct api_report *r = (struct api_report *)report;
    struct weft_result result;
    fill(r, from, &result);
    if (r->call)
        r->call(r->arg, &result);
    return 0;
}

/* The last one stays when its statistics go. */
static int keep(struct api_report *r, const struct weft_result *result)
{
    struct weft_histogram *histogram = calloc(1, sizeof *histogram);
    histogram_free(r->last.histogram);
    counters_free(r->last.counters);
    r->last = *result;
    r->last.histogram = histogram;
    r->last.counters = result->counters ? counters_copy(&result->counters->counted) : NULL;
    if (!histogram || (result->counters && !r->last.counters))
        return fail(-ENOMEM, "no memory for statistics");
    *histogram = r->shown;
    histogram->stats = NULL;
    r->last.fabric = histogram->fabric;
    r->last.completion_proves = histogram->proves;
    int status = stats_open(&histogram->stats, 0);
    if (!status)
        stats_merge(histogram->stats, r->shown.stats);
    return status;
}

static int on_row(struct report *report, const struct result *from)
{
    struct api_report *r = (struct api_report *)report;
    struct weft_result result;
    fill(r, from, &result);
    if (r->call && from->final)
        r->call(r->arg, &result);
    return keep(r, &result);
}

static const struct report_ops ops = {
    .name = "library", .begin = on_begin, .interval = on_interval, .row = on_row};

void api_report_open(struct api_report *report, const struct weft_params *params,
                     void (*call)(void *arg, const struct weft_result *result), void *arg)
{
    *report = (struct api_report){.report = {&ops}, .params = params, .call = call, .arg = arg};
    report->last.bytes = sizeof report->last;
}

void api_report_close(struct api_report *report)
{
    histogram_free(report->last.histogram);
    counters_free(report->last.counters);
    report->last.histogram = NULL;
    report->last.counters = NULL;
}

int result_check(const struct weft_result *result)
{
    if (result->bytes >= offsetof(struct weft_result, latency_us) &&
        result->bytes <= API_STRUCT_MOST)
        return 0;
    return fail(-EINVAL, "a result of %zu bytes: begin with weft_result_init", result->bytes);
}

void api_report_take(struct api_report *report, struct weft_result *result)
{
    size_t bytes = result->bytes;
    memcpy(result, &report->last, bytes < sizeof report->last ? bytes : sizeof report->last);
    result->bytes = bytes;
    /* A program from before there were histograms cannot free one. */
    if (REACHES(result, histogram))
        report->last.histogram = NULL;
    if (REACHES(result, counters))
        report->last.counters = NULL;
}
