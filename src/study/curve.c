/* SPDX-License-Identifier: BSD-3-Clause */
/* Who is drawn: runs become curves, one for each kind of test in them. A batch may have a label for
 * each size, so a kind is told by as few words as keep results of one size apart. */
#include "study/plot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* test and device; then layout; then label. */
enum { WORDS_LEAST = 1, WORDS_MOST = 3 };

bool result_same_kind(const struct study_result *a, const struct study_result *b, int words)
{
    return text_same(a->test, b->test) && text_same(a->fabric, b->fabric) &&
           text_same(a->device, b->device) && text_same(a->method, b->method) &&
           (words < 2 || text_same(a->layout, b->layout)) &&
           (words < 3 || text_same(a->label, b->label));
}

static bool clashes(const struct study_run *run, int words)
{
    for (size_t i = 0; i < run->result_count; i++)
        for (size_t j = 0; j < i; j++)
            if (run->results[i].size == run->results[j].size &&
                result_same_kind(&run->results[i], &run->results[j], words))
                return true;
    return false;
}

static int words_needed(const struct cast *cast)
{
    int words = WORDS_LEAST;
    for (size_t i = 0; i < cast->run_count; i++)
        while (words < WORDS_MOST && clashes(&cast->runs[i], words))
            words++;
    return words;
}

/* ---- curves ---- */

static int by_size(const void *a, const void *b)
{
    const struct study_result *const *x = a, *const *y = b;
    if ((*x)->size != (*y)->size)
        return (*x)->size < (*y)->size ? -1 : 1;
    return *x < *y ? -1 : *x > *y;
}

static struct curve *curve_of(struct cast *cast, size_t first, const struct study_result *result,
                              int words)
{
    for (size_t i = first; i < cast->curve_count; i++)
        if (result_same_kind(cast->curves[i].results[0], result, words))
            return &cast->curves[i];
    return NULL;
}

/* Curves of one run take their results from its part of the pool, one after the other. */
static void add_run(struct cast *cast, size_t number, const struct study_result **pool, int words)
{
    const struct study_run *run = &cast->runs[number];
    size_t first = cast->curve_count;
    for (size_t i = 0; i < run->result_count; i++) {
        if (curve_of(cast, first, &run->results[i], words))
            continue;
        struct curve *curve = &cast->curves[cast->curve_count++];
        *curve = (struct curve){.run = run, .results = pool};
        for (size_t j = i; j < run->result_count; j++)
            if (result_same_kind(&run->results[i], &run->results[j], words))
                curve->results[curve->count++] = &run->results[j];
        pool += curve->count;
        qsort((void *)curve->results, curve->count, sizeof(struct study_result *), by_size);
    }
}

static void add_curves(struct cast *cast, int words)
{
    size_t used = 0;
    for (size_t i = 0; i < cast->run_count; i++) {
        add_run(cast, i, cast->pool + used, words);
        used += cast->runs[i].result_count;
    }
}

static int ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void add_sizes(struct cast *cast)
{
    size_t n = 0, unique = 0;
    for (size_t i = 0; i < cast->run_count; i++)
        for (size_t j = 0; j < cast->runs[i].result_count; j++)
            cast->sizes[n++] = cast->runs[i].results[j].size;
    qsort(cast->sizes, n, sizeof *cast->sizes, ascending);
    for (size_t i = 0; i < n; i++)
        if (!i || cast->sizes[i] != cast->sizes[unique - 1])
            cast->sizes[unique++] = cast->sizes[i];
    cast->size_count = unique;
}

/* ---- the whole ---- */

static void fill(struct cast *cast)
{
    int words = words_needed(cast);
    add_curves(cast, words);
    add_sizes(cast);
    cast_group(cast, words);
    cast_name_curves(cast, words);
}

int cast_open(struct cast *cast, const struct study_run *runs, size_t n)
{
    size_t results = 0;
    for (size_t i = 0; i < n; i++)
        results += runs[i].result_count;
    *cast = (struct cast){.runs = runs, .run_count = n};
    cast->curves = calloc(results + 1, sizeof *cast->curves);
    cast->families = calloc(results + 1, sizeof *cast->families);
    cast->sizes = calloc(results + 1, sizeof *cast->sizes);
    cast->pool = calloc(results + 1, sizeof(struct study_result *));
    cast->names = calloc(n + 1, sizeof *cast->names);
    if (!cast->curves || !cast->families || !cast->sizes || !cast->pool || !cast->names) {
        cast_close(cast);
        return fail(-ENOMEM, "no memory for a page of %zu results", results);
    }
    cast_name_runs(cast);
    if (results)
        fill(cast);
    return 0;
}

void cast_close(struct cast *cast)
{
    free(cast->curves);
    free(cast->families);
    free(cast->sizes);
    free((void *)cast->pool);
    free(cast->names);
}

bool cast_crowded(const struct cast *cast)
{
    return cast->curve_count > FEW;
}

size_t cast_first_size(const struct cast *cast)
{
    size_t first = 0, most = 0;
    for (size_t i = 0; i < cast->size_count; i++) {
        size_t have = 0;
        for (size_t j = 0; j < cast->curve_count; j++) {
            const struct study_result *result = curve_at(&cast->curves[j], cast->sizes[i]);
            have += result && result->count;
        }
        first = have > most ? i : first;
        most = have > most ? have : most;
    }
    return first;
}

const struct study_result *curve_at(const struct curve *curve, uint64_t size)
{
    for (size_t i = 0; i < curve->count; i++)
        if (curve->results[i]->size == size)
            return curve->results[i];
    return NULL;
}
