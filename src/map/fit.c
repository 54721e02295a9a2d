/* SPDX-License-Identifier: BSD-3-Clause */
/* The model of the first stage. Each turn takes the robust mean of every node's cells, less what
 * its partners explain; a node that is done counts for the next at once, which also converges where
 * ranks meet across two halves only. */
#include "map/fit.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TURNS = 12 };

double cell_value(const struct map_model *model, const struct map_cell *cell)
{
    return log((double)(model->metric == MAP_P99 ? cell->p99_us : cell->p50_us));
}

uint32_t model_group(const struct map_model *model, uint32_t node)
{
    return model->group_of ? model->group_of[node] : 0;
}

/* Findings that are pairs of groups come first, sorted. */
static double pair_of_groups(const struct map_model *model, uint32_t a, uint32_t b)
{
    uint32_t low = a < b ? a : b, high = a < b ? b : a;
    size_t from = 0, end = model->found_count;
    while (from < end) {
        size_t middle = from + (end - from) / 2;
        const struct map_finding *f = &model->found[middle];
        if (f->kind == MAP_GROUP_PAIR && f->a == low && f->b == high)
            return log1p(f->effect);
        if (f->kind == MAP_GROUP_PAIR && (f->a < low || (f->a == low && f->b < high)))
            from = middle + 1;
        else
            end = middle;
    }
    return 0;
}

double model_usual(const struct map_model *model, uint32_t a, uint32_t b)
{
    uint32_t ga = model_group(model, a), gb = model_group(model, b);
    return model->level[ga == gb] + model->group_effects[ga] + model->group_effects[gb] +
           pair_of_groups(model, ga, gb);
}

/* The cells of each node, one node after the other. */
struct rows {
    size_t *from; /* per node, and the end of the last */
    uint32_t *cells;
    double *left; /* per cell: what nodes and levels are to explain */
    double *values;
};

static void rows_free(struct rows *rows)
{
    free(rows->from);
    free(rows->cells);
    free(rows->left);
    free(rows->values);
}

static int rows_open(struct rows *rows, const struct map_model *model)
{
    const struct map_cells *cells = model->cells;
    *rows = (struct rows){.from = calloc(model->nodes + 2U, sizeof *rows->from),
                          .cells = calloc(2 * cells->count + 1, sizeof *rows->cells),
                          .left = calloc(cells->count + 1, sizeof *rows->left),
                          .values = calloc(cells->count + model->nodes + 1, sizeof *rows->values)};
    if (!rows->from || !rows->cells || !rows->left || !rows->values) {
        rows_free(rows);
        return no_memory();
    }
    for (size_t c = 0; c < cells->count; c++) {
        rows->from[cells->all[c].a + 2]++;
        rows->from[cells->all[c].b + 2]++;
    }
    for (uint32_t node = 0; node < model->nodes; node++)
        rows->from[node + 2] += rows->from[node + 1];
    for (size_t c = 0; c < cells->count; c++) {
        rows->cells[rows->from[cells->all[c].a + 1]++] = (uint32_t)c;
        rows->cells[rows->from[cells->all[c].b + 1]++] = (uint32_t)c;
    }
    for (uint32_t node = 0; node < model->nodes; node++)
        model->pairs[node] = (uint32_t)(rows->from[node + 1] - rows->from[node]);
    return 0;
}

static bool within(const struct map_model *model, const struct map_cell *cell)
{
    return model_group(model, cell->a) == model_group(model, cell->b);
}

/* What is left of each cell, after pairs of groups. */
static void begin(struct rows *rows, struct map_model *model)
{
    const struct map_cells *cells = model->cells;
    for (size_t c = 0; c < cells->count; c++) {
        const struct map_cell *cell = &cells->all[c];
        rows->left[c] = cell_value(model, cell) - pair_of_groups(model, model_group(model, cell->a),
                                                                 model_group(model, cell->b));
    }
    for (int same = 0; same < 2; same++) {
        size_t n = 0;
        for (size_t c = 0; c < cells->count; c++)
            if (within(model, &cells->all[c]) == same)
                rows->values[n++] = rows->left[c];
        model->level[same] = median_of(rows->values, n);
    }
}

static double residual(const struct rows *rows, const struct map_model *model, size_t c)
{
    const struct map_cell *cell = &model->cells->all[c];
    return rows->left[c] - model->level[within(model, cell)] - model->effects[cell->a] -
           model->effects[cell->b];
}

static void noise_of(struct rows *rows, struct map_model *model)
{
    for (size_t c = 0; c < model->cells->count; c++)
        rows->values[c] = residual(rows, model, c);
    model->noise = scale_of(rows->values, model->cells->count);
}

static void fit_nodes(struct rows *rows, struct map_model *model)
{
    for (uint32_t node = 0; node < model->nodes; node++) {
        size_t n = 0;
        if (model->pairs[node] < ROW_MIN)
            continue;
        for (size_t i = rows->from[node]; i < rows->from[node + 1]; i++)
            rows->values[n++] = residual(rows, model, rows->cells[i]) + model->effects[node];
        model->effects[node] = huber_mean(rows->values, n, model->effects[node], model->noise);
    }
}

static void fit_levels(struct rows *rows, struct map_model *model)
{
    size_t n = 0;
    for (uint32_t node = 0; node < model->nodes; node++)
        if (model->pairs[node] >= ROW_MIN)
            rows->values[n++] = model->effects[node];
    double middle = median_of(rows->values, n);
    for (uint32_t node = 0; node < model->nodes; node++)
        if (model->pairs[node] >= ROW_MIN)
            model->effects[node] -= middle;
    for (int same = 0; same < 2; same++) {
        model->level[same] += 2 * middle;
        n = 0;
        for (size_t c = 0; c < model->cells->count; c++)
            if (within(model, &model->cells->all[c]) == same)
                rows->values[n++] = residual(rows, model, c);
        model->level[same] += huber_mean(rows->values, n, 0, model->noise);
    }
}

static void fit(struct rows *rows, struct map_model *model)
{
    begin(rows, model);
    for (int turn = 0; turn < TURNS; turn++) {
        noise_of(rows, model);
        fit_nodes(rows, model);
        fit_levels(rows, model);
    }
    noise_of(rows, model);
    /* Each node's effect took a part of the noise with it. */
    model->measured = 0;
    for (uint32_t node = 0; node < model->nodes; node++)
        model->measured += model->pairs[node] >= ROW_MIN;
    double cells = (double)model->cells->count, left = cells - (double)model->measured;
    model->noise *= left > cells / 4 ? sqrt(cells / left) : 2;
}

static void spread_of_nodes(struct rows *rows, struct map_model *model)
{
    size_t n = 0;
    double cells = 0;
    for (uint32_t node = 0; node < model->nodes; node++)
        if (model->pairs[node] >= ROW_MIN) {
            cells += (double)model->pairs[node];
            rows->values[n++] = model->effects[node];
        }
    model->row_noise = scale_of(rows->values, n);
    double each = n ? cells / (double)n : ROW_MIN;
    model->spread = spread_beyond(model->row_noise, n, model->noise / sqrt(0.95 * (each - 1)));
}

static int fit_all(struct map_model *model, double min_effect)
{
    struct rows rows;
    int status = rows_open(&rows, model);
    if (status)
        return status;
    fit(&rows, model);
    if (model->groups > 1) {
        status = group_pairs_find(model, min_effect);
        if (!status && model->found_count) {
            memset(model->effects, 0, model->nodes * sizeof *model->effects);
            fit(&rows, model);
        }
        if (!status)
            status = groups_find(model, min_effect);
    }
    if (!status)
        spread_of_nodes(&rows, model);
    rows_free(&rows);
    return status;
}

int map_fit(struct map_model *model, const struct map_cells *cells, enum map_metric metric,
            const uint32_t *group_of, uint32_t groups, double min_effect)
{
    *model = (struct map_model){.cells = cells,
                                .metric = metric,
                                .nodes = cells->nodes,
                                .groups = group_of ? groups : 1,
                                .group_of = group_of,
                                .min_effect = min_effect};
    for (uint32_t node = 0; group_of && node < cells->nodes; node++)
        if (group_of[node] >= groups)
            return fail(-EINVAL, "node %u is in group %u of %u", node, group_of[node], groups);
    model->effects = calloc(model->nodes + 1U, sizeof *model->effects);
    model->pairs = calloc(model->nodes + 1U, sizeof *model->pairs);
    model->group_effects = calloc(model->groups + 1U, sizeof *model->group_effects);
    int status = model->effects && model->pairs && model->group_effects ? fit_all(model, min_effect)
                                                                        : no_memory();
    if (status)
        map_model_free(model);
    return status;
}

void map_model_free(struct map_model *model)
{
    free(model->effects);
    free(model->pairs);
    free(model->group_effects);
    free(model->found);
    *model = (struct map_model){0};
}
