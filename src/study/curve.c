/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs become curves, one per kind of test. A batch may have a label for each size, so a kind is
 * identified by as few words as keep results of one size apart. */
#include "study/plot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* test and device; then layout; then label. */
enum { WORDS_MIN = 1, WORDS_MAX = 3 };

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

static int words_needed(const struct plot_data *plots)
{
    int words = WORDS_MIN;
    for (size_t i = 0; i < plots->run_count; i++)
        while (words < WORDS_MAX && clashes(&plots->runs[i], words))
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

static struct curve *curve_of(struct plot_data *plots, size_t first,
                              const struct study_result *result, int words)
{
    for (size_t i = first; i < plots->curve_count; i++)
        if (result_same_kind(plots->curves[i].results[0], result, words))
            return &plots->curves[i];
    return NULL;
}

/* The curves of one run share its part of the pool, one after the other. */
static void add_run(struct plot_data *plots, size_t number, const struct study_result **pool,
                    int words)
{
    const struct study_run *run = &plots->runs[number];
    size_t first = plots->curve_count;
    for (size_t i = 0; i < run->result_count; i++) {
        if (curve_of(plots, first, &run->results[i], words))
            continue;
        struct curve *curve = &plots->curves[plots->curve_count++];
        *curve = (struct curve){.run = run, .results = pool};
        for (size_t j = i; j < run->result_count; j++)
            if (result_same_kind(&run->results[i], &run->results[j], words))
                curve->results[curve->count++] = &run->results[j];
        pool += curve->count;
        qsort((void *)curve->results, curve->count, sizeof(struct study_result *), by_size);
    }
}

static void add_curves(struct plot_data *plots, int words)
{
    size_t used = 0;
    for (size_t i = 0; i < plots->run_count; i++) {
        add_run(plots, i, plots->pool + used, words);
        used += plots->runs[i].result_count;
    }
}

static int ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void add_sizes(struct plot_data *plots)
{
    size_t n = 0, unique = 0;
    for (size_t i = 0; i < plots->run_count; i++)
        for (size_t j = 0; j < plots->runs[i].result_count; j++)
            plots->sizes[n++] = plots->runs[i].results[j].size;
    qsort(plots->sizes, n, sizeof *plots->sizes, ascending);
    for (size_t i = 0; i < n; i++)
        if (!i || plots->sizes[i] != plots->sizes[unique - 1])
            plots->sizes[unique++] = plots->sizes[i];
    plots->size_count = unique;
}

/* ---- all plot data ---- */

static void fill(struct plot_data *plots)
{
    int words = words_needed(plots);
    add_curves(plots, words);
    add_sizes(plots);
    plot_data_group(plots, words);
    plot_data_name_curves(plots, words);
}

int plot_data_open(struct plot_data *plots, const struct study_run *runs, size_t n)
{
    size_t results = 0;
    for (size_t i = 0; i < n; i++)
        results += runs[i].result_count;
    *plots = (struct plot_data){.runs = runs, .run_count = n};
    plots->curves = calloc(results + 1, sizeof *plots->curves);
    plots->families = calloc(results + 1, sizeof *plots->families);
    plots->sizes = calloc(results + 1, sizeof *plots->sizes);
    plots->pool = calloc(results + 1, sizeof(struct study_result *));
    plots->names = calloc(n + 1, sizeof *plots->names);
    if (!plots->curves || !plots->families || !plots->sizes || !plots->pool || !plots->names) {
        plot_data_close(plots);
        return fail(-ENOMEM, "no memory for a page of %zu results", results);
    }
    plot_data_name_runs(plots);
    if (results)
        fill(plots);
    return 0;
}

void plot_data_close(struct plot_data *plots)
{
    free(plots->curves);
    free(plots->families);
    free(plots->sizes);
    free((void *)plots->pool);
    free(plots->names);
}

bool plot_data_crowded(const struct plot_data *plots)
{
    return plots->curve_count > FEW;
}

bool plot_data_many(const struct plot_data *plots)
{
    return plots->curve_count > MANY;
}

size_t plot_data_first_size(const struct plot_data *plots)
{
    size_t first = 0, most = 0;
    for (size_t i = 0; i < plots->size_count; i++) {
        size_t have = 0;
        for (size_t j = 0; j < plots->curve_count; j++) {
            const struct study_result *result = curve_at(&plots->curves[j], plots->sizes[i]);
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
