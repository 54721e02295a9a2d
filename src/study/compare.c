/* SPDX-License-Identifier: BSD-3-Clause */
/* Two sets of runs against each other. A run counts once, however many samples it has: those of one
 * process are not independent, where its memory happened to lie is common to all of them. */
#include "study/rank.h"
#include "study/study.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { RESULTS_MOST = 8192 };

/* Below a nanosecond there is nothing left of an operation once the clock is subtracted. */
static const double floor_us = 0.001;

/* ---- figures ---- */

/* From the buckets, for a percentile that nobody asked the tool for; as the tools do, only if ten
 * samples lie beyond it. */
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

static double figure_of(const struct study_result *result, double percent, bool rate)
{
    if (rate)
        return result->messages_per_s > 0 ? 1e6 / result->messages_per_s : NAN;
    if (!result->count)
        return NAN;
    if (percent == 50)
        return result->median_us;
    for (size_t i = 0; i < result->percentile_count; i++)
        if (fabs(result->percentiles[i].percent - percent) < 1e-9)
            return result->percentiles[i].us;
    return from_histogram(result, percent);
}

/* ---- which results belong together ---- */

/* By what they do, the strictest first; a forced comparison takes the first that leaves anything.
 */
enum likeness { LIKE_ALL, LIKE_TEST, LIKE_LABEL, LIKE_SIZE, LIKENESSES };

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool alike(const struct study_result *a, const struct study_result *b, enum likeness how)
{
    return a->size == b->size && (how >= LIKE_SIZE || same_text(a->label, b->label)) &&
           (how >= LIKE_LABEL ||
            (same_text(a->test, b->test) && same_text(a->layout, b->layout))) &&
           (how >= LIKE_TEST ||
            (same_text(a->fabric, b->fabric) && same_text(a->method, b->method)));
}

/* The result of run that stands where the one at place stands among its like in first. */
static const struct study_result *find(const struct study_run *first, size_t place,
                                       const struct study_run *run, enum likeness how)
{
    const struct study_result *wanted = &first->results[place];
    size_t before = 0;
    for (size_t i = 0; i < place; i++)
        before += alike(&first->results[i], wanted, how);
    for (size_t i = 0; i < run->result_count; i++)
        if (alike(&run->results[i], wanted, how) && !before--)
            return &run->results[i];
    return NULL;
}

/* ---- may they be compared ---- */

static int not_comparable(const char *what, const char *was, const struct study_run *a,
                          const char *is, const struct study_run *b)
{
    return fail(-EINVAL, "not comparable: %s %.60s in %s, %.60s in %s", what, was, a->path, is,
                b->path);
}

/* The first thing in which two results are not alike. */
static int say_unlike(const struct study_run *a, const struct study_result *left,
                      const struct study_run *b, const struct study_result *right)
{
    const struct {
        const char *what, *was, *is;
    } texts[] = {{"test", left->test, right->test},
                 {"label", left->label, right->label},
                 {"layout", left->layout, right->layout},
                 {"fabric", left->fabric, right->fabric},
                 {"method", left->method, right->method}};
    char was[24], is[24];
    for (size_t i = 0; i < LENGTH(texts); i++)
        if (!same_text(texts[i].was, texts[i].is))
            return not_comparable(texts[i].what, texts[i].was ? texts[i].was : "none", a,
                                  texts[i].is ? texts[i].is : "none", b);
    snprintf(was, sizeof was, "%" PRIu64, left->size);
    snprintf(is, sizeof is, "%" PRIu64, right->size);
    return not_comparable("size", was, a, is, b);
}

static int check_run(const struct study_run *first, const struct study_run *run)
{
    size_t both = first->result_count < run->result_count ? first->result_count : run->result_count;
    if (strcmp(run->state, "complete") != 0)
        return fail(-EINVAL, "%s: %s, not complete", run->path, run->state);
    for (size_t i = 0; i < both; i++)
        if (!alike(&first->results[i], &run->results[i], LIKE_ALL))
            return say_unlike(first, &first->results[i], run, &run->results[i]);
    if (first->result_count != run->result_count)
        return fail(-EINVAL, "not comparable: %zu %s in %s, %zu in %s", first->result_count,
                    first->result_count == 1 ? "result" : "results", first->path, run->result_count,
                    run->path);
    return 0;
}

/* ---- the work ---- */

/* A result of a run, at its place among the others. */
struct cell {
    const struct study_result *result;
};

struct work {
    const struct study_set *sets[2];
    const struct study_terms *terms;
    size_t percentiles; /* how many of them */
    const struct study_run *first;
    size_t runs;
    struct cell *cells; /* of all runs, A's first, for each size */
    size_t sizes;
    double *values; /* a line of all runs for each figure there is */
    double *ordered;
    double *p;
};

static const struct study_run *run_at(const struct work *w, size_t i)
{
    return i < w->sets[0]->count ? &w->sets[0]->runs[i] : &w->sets[1]->runs[i - w->sets[0]->count];
}

static int check_sets(const struct work *w)
{
    int status = 0;
    for (size_t i = 0; i < w->runs && !status; i++)
        status = check_run(w->first, run_at(w, i));
    return status;
}

/* What every run has. */
static void collect(struct work *w, enum likeness how)
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
        if (run_at(w, i)->result_count > RESULTS_MOST)
            return fail(-EINVAL, "%s: more than %d results", run_at(w, i)->path, RESULTS_MOST);
    int status = check_sets(w);
    if (status && !w->terms->force)
        return fail(status, "%s (--force compares what all have in common)", fail_reason());
    snprintf(ignored, room, "%s", status ? fail_reason() : "");
    w->cells = calloc((w->first->result_count + 1) * w->runs, sizeof *w->cells);
    if (!w->cells)
        return fail(-ENOMEM, "no memory to compare in");
    collect(w, LIKE_ALL);
    for (int how = LIKE_TEST; how < LIKENESSES && w->terms->force && !w->sizes; how++)
        collect(w, (enum likeness)how);
    if (!w->sizes)
        return fail(-EINVAL, "%s: no result that all runs have", w->first->path);
    size_t figures = w->sizes * w->percentiles;
    w->values = calloc(figures * w->runs, sizeof *w->values);
    w->ordered = calloc(w->runs, sizeof *w->ordered);
    w->p = calloc(figures, sizeof *w->p);
    return w->values && w->ordered && w->p ? 0 : fail(-ENOMEM, "no memory to compare in");
}

static void put_away(struct work *w)
{
    free(w->cells);
    free(w->values);
    free(w->ordered);
    free(w->p);
}

/* ---- figures of all runs ---- */

/* A stream is judged by its rate, if all runs have one. */
static bool by_rate(const struct work *w, size_t size, double percent)
{
    for (size_t i = 0; i < w->runs; i++) {
        const struct study_result *r = w->cells[size * w->runs + i].result;
        if (percent != 50 || strncmp(r->method, "stream", 6) != 0 || !(r->messages_per_s > 0))
            return false;
    }
    return true;
}

/* The figure that stands at this place of the table, a value a run; false if a run lacks it. */
static bool gather(const struct work *w, size_t place, struct study_row *row, double *values)
{
    size_t size = place / w->percentiles;
    double percent = w->terms->percentiles[place % w->percentiles];
    bool all = true;
    *row = (struct study_row){w->cells[size * w->runs].result, percent, by_rate(w, size, percent)};
    for (size_t i = 0; i < w->runs; i++) {
        values[i] = figure_of(w->cells[size * w->runs + i].result, percent, row->rate);
        all = all && !isnan(values[i]);
    }
    return all;
}

static int ascending(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

/* Leaves them in order in w->ordered. */
static double middle(const struct work *w, const double *values, size_t count)
{
    double *ordered = w->ordered;
    memcpy(ordered, values, count * sizeof *values);
    qsort(ordered, count, sizeof *ordered, ascending);
    return (ordered[(count - 1) / 2] + ordered[count / 2]) / 2;
}

/* ---- two sets ---- */

/* Leaves logarithms in values. */
static int weigh(const struct work *w, double *values, struct study_shift *s)
{
    size_t a_count = w->sets[0]->count, b_count = w->sets[1]->count;
    struct rank_shift shift;
    s->a_us = middle(w, values, a_count);
    s->b_us = middle(w, values + a_count, b_count);
    for (size_t i = 0; i < w->runs; i++)
        values[i] = log(fmax(values[i], floor_us));
    int status = rank_shift(values, a_count, values + a_count, b_count, &shift);
    if (status)
        return status;
    s->shift = expm1(shift.middle);
    s->low = expm1(shift.low);
    s->high = expm1(shift.high);
    s->outcome = STUDY_SAME;
    return 0;
}

static int measure(const struct work *w, struct study_comparison *c)
{
    size_t have = 0;
    for (size_t i = 0; i < c->count; i++) {
        double *values = w->values + have * w->runs;
        struct study_shift *s = &c->shifts[i];
        *s = (struct study_shift){.a_us = NAN,
                                  .b_us = NAN,
                                  .shift = NAN,
                                  .low = NAN,
                                  .high = NAN,
                                  .p = NAN,
                                  .outcome = STUDY_ABSENT};
        bool all = gather(w, i, &s->row, values);
        int status = all ? weigh(w, values, s) : 0;
        if (status)
            return status;
        have += all;
    }
    return have ? rank_permute(w->values, have, w->sets[0]->count, w->sets[1]->count, w->p) : 0;
}

static enum study_outcome judge(const struct work *w, const struct study_shift *s, double least_p)
{
    if (least_p > STUDY_ALPHA)
        return STUDY_UNSURE;
    if (s->p > STUDY_ALPHA || fabs(s->shift) < w->terms->min_effect)
        return STUDY_SAME;
    return s->shift > 0 ? STUDY_SLOWER : STUDY_FASTER;
}

/* Each row is fully apart in one deal and its mirror image. */
size_t study_runs_needed(size_t rows)
{
    size_t runs = 2;
    while (2 * (double)rows / rank_choose(2 * runs, runs) > STUDY_ALPHA)
        runs++;
    return runs;
}

static void conclude(const struct work *w, struct study_comparison *c)
{
    double least_p = 2 / rank_choose(w->runs, w->sets[0]->count);
    const double *p = w->p;
    for (size_t i = 0; i < c->count; i++) {
        struct study_shift *s = &c->shifts[i];
        if (s->outcome == STUDY_ABSENT) {
            c->absent++;
            continue;
        }
        s->p = *p++;
        s->outcome = judge(w, s, least_p);
        c->slower += s->outcome == STUDY_SLOWER;
        c->faster += s->outcome == STUDY_FASTER;
    }
    bool unsure = least_p > STUDY_ALPHA || c->absent == c->count;
    c->outcome = unsure      ? STUDY_UNSURE
                 : c->slower ? STUDY_SLOWER
                 : c->faster ? STUDY_FASTER
                             : STUDY_SAME;
    c->runs_needed = study_runs_needed(1);
    c->runs_wanted = study_runs_needed(c->count - c->absent);
}

/* Was all of one set begun before anything of the other? */
static bool before(const struct study_set *a, const struct study_set *b)
{
    for (size_t i = 0; i < a->count; i++)
        for (size_t k = 0; k < b->count; k++)
            if (strcmp(a->runs[i].begun, b->runs[k].begun) >= 0)
                return false;
    return true;
}

static int work_out(const struct work *w, struct study_comparison *c)
{
    c->count = w->sizes * w->percentiles;
    c->shifts = calloc(c->count, sizeof *c->shifts);
    if (!c->shifts)
        return fail(-ENOMEM, "no memory to compare in");
    int status = measure(w, c);
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
        status = work_out(&w, c);
    c->one_after_the_other = a->count > 1 && b->count > 1 && (before(a, b) || before(b, a));
    put_away(&w);
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

static int work_out_spread(const struct work *w, struct study_spread **rows, size_t *count)
{
    *count = w->sizes * w->percentiles;
    *rows = calloc(*count + 1, sizeof **rows);
    if (!*rows)
        return fail(-ENOMEM, "no memory to compare in");
    for (size_t i = 0; i < *count; i++) {
        struct study_spread *s = &(*rows)[i];
        bool all = gather(w, i, &s->row, w->values);
        s->middle_us = all ? middle(w, w->values, w->runs) : NAN;
        s->min_us = all ? w->ordered[0] : NAN;
        s->max_us = all ? w->ordered[w->runs - 1] : NAN;
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
        status = work_out_spread(&w, rows, count);
    put_away(&w);
    return status;
}
