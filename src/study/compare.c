/* SPDX-License-Identifier: BSD-3-Clause */
/* Compares two sets of runs. A run counts once, however many samples it has: samples of one process
 * are not independent, because they share the placement of its memory. */
#include "study/rank.h"
#include "study/study.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { RESULTS_MAX = 8192 };

/* After the cost of the clock is subtracted, times below 1 ns mean nothing. */
static const double floor_us = 0.001;

/* ---- the value of one result ---- */

/* For a percentile that the tool was not asked for. As in the tools, at least ten samples must lie
 * beyond it. */
static double from_histogram(const struct study_result *result, double percent)
{
    double total = 0, below = 0;
    for (size_t i = 0; i < result->bucket_count; i++)
        total += (double)result->buckets[i].count;
    double rank = total * percent / 100;
    if (total - rank < 10)
        return NAN;
    for (size_t i = 0; i < result->bucket_count; i++) {
        below += (double)result->buckets[i].count;
        if (below >= rank)
            return (result->buckets[i].low_us + result->buckets[i].high_us) / 2;
    }
    return NAN;
}

static double row_value(const struct study_result *result, double percent, enum study_metric metric)
{
    if (metric == STUDY_PER_MESSAGE)
        return result->messages_per_s > 0 ? 1e6 / result->messages_per_s : NAN;
    if (metric == STUDY_BANDWIDTH)
        return study_bytes_per_s(result);
    if (!result->count)
        return NAN;
    if (percent == 50)
        return result->median_us;
    for (size_t i = 0; i < result->percentile_count; i++)
        if (fabs(result->percentiles[i].percent - percent) < 1e-9)
            return result->percentiles[i].us;
    return from_histogram(result, percent);
}

/* ---- matching results ---- */

/* The strictest first; a forced comparison uses the first that matches anything. */
enum match { MATCH_ALL, MATCH_ACROSS, MATCH_TEST, MATCH_LABEL, MATCH_SIZE, MATCHES };

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool matches(const struct study_result *a, const struct study_result *b, enum match how)
{
    return a->size == b->size && (how >= MATCH_SIZE || same_text(a->label, b->label)) &&
           (how >= MATCH_LABEL ||
            (same_text(a->test, b->test) && same_text(a->layout, b->layout))) &&
           (how >= MATCH_ACROSS || same_text(a->fabric, b->fabric)) &&
           (how >= MATCH_TEST || same_text(a->method, b->method));
}

/* The n-th match in run, where the result at place is the n-th of its kind in first. */
static const struct study_result *find(const struct study_run *first, size_t place,
                                       const struct study_run *run, enum match how)
{
    const struct study_result *wanted = &first->results[place];
    size_t before = 0;
    for (size_t i = 0; i < place; i++)
        before += matches(&first->results[i], wanted, how);
    for (size_t i = 0; i < run->result_count; i++)
        if (matches(&run->results[i], wanted, how) && !before--)
            return &run->results[i];
    return NULL;
}

/* ---- are they comparable ---- */

static int not_comparable(const char *what, const char *was, const struct study_run *a,
                          const char *is, const struct study_run *b)
{
    return fail(-EINVAL, "not comparable: %s %.60s in %s, %.60s in %s", what, was, a->path, is,
                b->path);
}

/* Fails with the first difference between two results that counts. */
static int fail_mismatch(const struct study_run *a, const struct study_result *left,
                         const struct study_run *b, const struct study_result *right,
                         enum match how)
{
    const struct {
        const char *what, *was, *is;
    } texts[] = {{"test", left->test, right->test},
                 {"label", left->label, right->label},
                 {"layout", left->layout, right->layout},
                 {"method", left->method, right->method},
                 {"fabric", left->fabric, right->fabric}};
    char was[24], is[24];
    size_t count = how == MATCH_ALL ? LENGTH(texts) : LENGTH(texts) - 1;
    for (size_t i = 0; i < count; i++)
        if (!same_text(texts[i].was, texts[i].is))
            return not_comparable(texts[i].what, texts[i].was ? texts[i].was : "none", a,
                                  texts[i].is ? texts[i].is : "none", b);
    snprintf(was, sizeof was, "%" PRIu64, left->size);
    snprintf(is, sizeof is, "%" PRIu64, right->size);
    return not_comparable("size", was, a, is, b);
}

static int check_run(const struct study_run *first, const struct study_run *run, enum match how)
{
    size_t both = first->result_count < run->result_count ? first->result_count : run->result_count;
    if (strcmp(run->state, "complete") != 0)
        return fail(-EINVAL, "%s: %s, not complete", run->path, run->state);
    for (size_t i = 0; i < both; i++)
        if (!matches(&first->results[i], &run->results[i], how))
            return fail_mismatch(first, &first->results[i], run, &run->results[i], how);
    if (first->result_count != run->result_count)
        return fail(-EINVAL, "not comparable: %zu %s in %s, %zu in %s", first->result_count,
                    first->result_count == 1 ? "result" : "results", first->path, run->result_count,
                    run->path);
    return 0;
}

/* ---- the table of values ---- */

/* The result of one run for one size. */
struct cell {
    const struct study_result *result;
};

struct work {
    const struct study_set *sets[2];
    const struct study_terms *terms;
    size_t percentiles; /* number of */
    const struct study_run *first;
    size_t runs;
    struct cell *cells; /* per size, those of all runs, the runs of A first */
    size_t sizes;
    double *values; /* per row, those of all runs */
    double *ordered;
    double *p;
};

static const struct study_run *run_at(const struct work *w, size_t i)
{
    return i < w->sets[0]->count ? &w->sets[0]->runs[i] : &w->sets[1]->runs[i - w->sets[0]->count];
}

/* Across fabrics, those of a set are still all on one. */
static int check_sets(const struct work *w)
{
    size_t a_count = w->sets[0]->count;
    int status = 0;
    for (size_t i = 0; i < w->runs && !status; i++) {
        const struct study_run *first = run_at(w, i < a_count ? 0 : a_count);
        status = check_run(w->terms->across_fabrics ? first : w->first, run_at(w, i), MATCH_ALL);
    }
    return status || !w->terms->across_fabrics || a_count == w->runs
               ? status
               : check_run(w->first, run_at(w, a_count), MATCH_ACROSS);
}

/* Finds the sizes that every run has. */
static void collect(struct work *w, enum match how)
{
    w->sizes = 0;
    for (size_t place = 0; place < w->first->result_count; place++) {
        struct cell *cells = w->cells + w->sizes * w->runs;
        size_t i = 0;
        while (i < w->runs && (cells[i].result = find(w->first, place, run_at(w, i), how)))
            i++;
        w->sizes += i == w->runs;
    }
}

static int prepare(struct work *w, char *ignored, size_t room)
{
    while (w->percentiles < REPORT_PERCENTILES && w->terms->percentiles[w->percentiles] > 0)
        w->percentiles++;
    if (!w->runs || !w->percentiles)
        return fail(-EINVAL, "nothing to compare");
    for (size_t i = 0; i < w->runs; i++)
        if (run_at(w, i)->result_count > RESULTS_MAX)
            return fail(-EINVAL, "%s: more than %d results", run_at(w, i)->path, RESULTS_MAX);
    int status = check_sets(w);
    if (status && !w->terms->force)
        return fail(status, "%s (--force compares what all runs have in common)", fail_reason());
    snprintf(ignored, room, "%s", status ? fail_reason() : "");
    w->cells = calloc((w->first->result_count + 1) * w->runs, sizeof *w->cells);
    if (!w->cells)
        return fail(-ENOMEM, "no memory for the comparison");
    collect(w, w->terms->across_fabrics ? MATCH_ACROSS : MATCH_ALL);
    for (int how = MATCH_ACROSS; how < MATCHES && w->terms->force && !w->sizes; how++)
        collect(w, (enum match)how);
    if (!w->sizes)
        return fail(-EINVAL, "%s: no result is present in all runs", w->first->path);
    size_t rows = w->sizes * w->percentiles;
    w->values = calloc(rows * w->runs, sizeof *w->values);
    w->ordered = calloc(w->runs, sizeof *w->ordered);
    w->p = calloc(rows, sizeof *w->p);
    return w->values && w->ordered && w->p ? 0 : fail(-ENOMEM, "no memory for the comparison");
}

static void work_free(struct work *w)
{
    free(w->cells);
    free(w->values);
    free(w->ordered);
    free(w->p);
}

/* ---- values of all runs ---- */

/* By rate or bandwidth only if all runs have one. */
static enum study_metric metric_of(const struct work *w, size_t size, double percent)
{
    const struct cell *cells = w->cells + size * w->runs;
    enum study_kind kind = study_kind(cells[0].result);
    bool rate = percent == 50 && kind != STUDY_LATENCY;
    for (size_t i = 0; i < w->runs && rate; i++)
        rate = study_kind(cells[i].result) == kind && cells[i].result->messages_per_s > 0;
    return !rate ? STUDY_PERCENTILE : kind == STUDY_LIST ? STUDY_BANDWIDTH : STUDY_PER_MESSAGE;
}

/* The values of one row, one per run; false if a run lacks it. */
static bool row_values(const struct work *w, size_t place, struct study_row *row, double *values)
{
    size_t size = place / w->percentiles;
    double percent = w->terms->percentiles[place % w->percentiles];
    bool all = true;
    *row = (struct study_row){.of = w->cells[size * w->runs].result,
                              .percent = percent,
                              .metric = metric_of(w, size, percent)};
    for (size_t i = 0; i < w->runs; i++) {
        const struct study_result *result = w->cells[size * w->runs + i].result;
        values[i] = row_value(result, percent, row->metric);
        row->unresolved |=
            row->metric == STUDY_PERCENTILE && values[i] * 1000 < result->resolution_ns;
        all = all && !isnan(values[i]);
    }
    return all && !row->unresolved;
}

static int ascending(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

/* Leaves the values sorted in w->ordered. */
static double median(const struct work *w, const double *values, size_t count)
{
    double *ordered = w->ordered;
    memcpy(ordered, values, count * sizeof *values);
    qsort(ordered, count, sizeof *ordered, ascending);
    return (ordered[(count - 1) / 2] + ordered[count / 2]) / 2;
}

/* ---- two sets ---- */

/* Leaves the logarithms of the values in values. */
static int estimate_shift(const struct work *w, double *values, struct study_shift *s)
{
    size_t a_count = w->sets[0]->count, b_count = w->sets[1]->count;
    struct rank_shift shift;
    s->a = median(w, values, a_count);
    s->b = median(w, values + a_count, b_count);
    for (size_t i = 0; i < w->runs; i++)
        values[i] = log(fmax(values[i], floor_us));
    int status = rank_shift(values, a_count, values + a_count, b_count, &shift);
    if (status)
        return status;
    s->shift = expm1(shift.median);
    s->low = expm1(shift.low);
    s->high = expm1(shift.high);
    s->verdict = STUDY_SAME;
    return 0;
}

static int compare_rows(const struct work *w, struct study_comparison *c)
{
    size_t have = 0;
    for (size_t i = 0; i < c->count; i++) {
        double *values = w->values + have * w->runs;
        struct study_shift *s = &c->shifts[i];
        *s = (struct study_shift){.a = NAN,
                                  .b = NAN,
                                  .shift = NAN,
                                  .low = NAN,
                                  .high = NAN,
                                  .p = NAN,
                                  .verdict = STUDY_ABSENT};
        bool all = row_values(w, i, &s->row, values);
        int status = all ? estimate_shift(w, values, s) : 0;
        if (status)
            return status;
        have += all;
    }
    return have ? rank_permute(w->values, have, w->sets[0]->count, w->sets[1]->count, w->p) : 0;
}

/* NAN, where there are too few runs for an interval, excludes nothing. */
static bool excludes_change(const struct study_shift *s, double min_effect)
{
    return s->low > -min_effect && s->high < min_effect;
}

static enum study_verdict judge(const struct work *w, const struct study_shift *s, double least_p)
{
    if (least_p > STUDY_ALPHA)
        return STUDY_UNSURE;
    if (s->p <= STUDY_ALPHA && fabs(s->shift) >= w->terms->min_effect)
        return (s->shift > 0) == (s->row.metric == STUDY_BANDWIDTH) ? STUDY_FASTER : STUDY_SLOWER;
    return excludes_change(s, w->terms->min_effect) ? STUDY_SAME : STUDY_UNSURE;
}

/* A row is fully separated in two assignments of the labels: one and its mirror image. */
size_t study_runs_needed(size_t rows)
{
    size_t runs = 2;
    while (2 * (double)rows / rank_choose(2 * runs, runs) > STUDY_ALPHA)
        runs++;
    return runs;
}

/* Roughly how many runs per side decide a row. An interval shrinks with the square root of the
 * runs. It must fit between what was estimated and the nearest value that makes the row unsure,
 * twice, because the next estimate will be another one. */
static double runs_to_decide(const struct work *w, const struct study_shift *s)
{
    double a = (double)w->sets[0]->count, b = (double)w->sets[1]->count;
    double reach = log1p(s->high) - log1p(s->low); /* twice half the interval */
    double effect = log1p(w->terms->min_effect), shift = fabs(log1p(s->shift));
    double distance = shift < effect ? effect - shift : shift;
    return 2 * a * b / (a + b) * (reach / distance) * (reach / distance);
}

/* Of the row that needs most; never fewer than there are. */
static size_t advise(const struct work *w, const struct study_comparison *c)
{
    size_t fewer = fmin((double)w->sets[0]->count, (double)w->sets[1]->count);
    double runs = fmax((double)fewer + 1, (double)study_runs_needed(c->count - c->absent));
    for (size_t i = 0; i < c->count; i++) {
        double wanted = c->shifts[i].verdict == STUDY_UNSURE ? runs_to_decide(w, &c->shifts[i]) : 0;
        if (isnan(wanted))
            return 0;
        runs = fmax(runs, ceil(wanted));
    }
    return runs < STUDY_HOPELESS ? (size_t)runs : STUDY_HOPELESS;
}

static void count_verdict(struct study_comparison *c, enum study_verdict verdict)
{
    c->slower += verdict == STUDY_SLOWER;
    c->faster += verdict == STUDY_FASTER;
    c->unsure += verdict == STUDY_UNSURE;
    c->absent += verdict == STUDY_ABSENT;
}

static void conclude(const struct work *w, struct study_comparison *c)
{
    double least_p = 2 / rank_choose(w->runs, w->sets[0]->count);
    const double *p = w->p;
    for (size_t i = 0; i < c->count; i++) {
        struct study_shift *s = &c->shifts[i];
        if (s->verdict != STUDY_ABSENT) {
            s->p = *p++;
            s->verdict = judge(w, s, least_p);
        }
        count_verdict(c, s->verdict);
        c->unresolved += s->row.unresolved;
    }
    c->verdict = c->slower                ? STUDY_SLOWER
                 : c->unsure || c->absent ? STUDY_UNSURE
                 : c->faster              ? STUDY_FASTER
                                          : STUDY_SAME;
    c->runs_needed = study_runs_needed(1);
    c->runs_advised = c->unsure ? advise(w, c) : 0;
}

/* True if all runs of a began before all runs of b. */
static bool precedes(const struct study_set *a, const struct study_set *b)
{
    for (size_t i = 0; i < a->count; i++)
        for (size_t k = 0; k < b->count; k++)
            if (strcmp(a->runs[i].begun, b->runs[k].begun) >= 0)
                return false;
    return true;
}

static int compare_work(const struct work *w, struct study_comparison *c)
{
    c->count = w->sizes * w->percentiles;
    c->shifts = calloc(c->count, sizeof *c->shifts);
    if (!c->shifts)
        return fail(-ENOMEM, "no memory for the comparison");
    int status = compare_rows(w, c);
    if (!status)
        conclude(w, c);
    return status;
}

int study_compare(const struct study_set *a, const struct study_set *b,
                  const struct study_terms *terms, struct study_comparison *comparison)
{
    struct study_comparison *c = comparison;
    struct work w = {
        .sets = {a, b}, .terms = terms, .first = &a->runs[0], .runs = a->count + b->count};
    *c = (struct study_comparison){0};
    int status = prepare(&w, c->ignored, sizeof c->ignored);
    if (!status)
        status = compare_work(&w, c);
    c->sequential = precedes(a, b) || precedes(b, a);
    work_free(&w);
    if (status)
        study_comparison_free(c);
    return status;
}

void study_comparison_free(struct study_comparison *comparison)
{
    free(comparison->shifts);
    *comparison = (struct study_comparison){0};
}

/* ---- one set ---- */

static int spread_work(const struct work *w, struct study_spread **rows, size_t *count)
{
    *count = w->sizes * w->percentiles;
    *rows = calloc(*count + 1, sizeof **rows);
    if (!*rows)
        return fail(-ENOMEM, "no memory for the comparison");
    for (size_t i = 0; i < *count; i++) {
        struct study_spread *s = &(*rows)[i];
        bool all = row_values(w, i, &s->row, w->values);
        s->median = all ? median(w, w->values, w->runs) : NAN;
        s->min = all ? w->ordered[0] : NAN;
        s->max = all ? w->ordered[w->runs - 1] : NAN;
    }
    return 0;
}

int study_spread(const struct study_set *set, const struct study_terms *terms,
                 struct study_spread **rows, size_t *count)
{
    static const struct study_set none;
    struct work w = {
        .sets = {set, &none}, .terms = terms, .first = &set->runs[0], .runs = set->count};
    char ignored[512];
    int status = prepare(&w, ignored, sizeof ignored);
    if (!status)
        status = spread_work(&w, rows, count);
    work_free(&w);
    return status;
}
