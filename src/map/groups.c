/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups, such as the nodes of a switch, and pairs of them. A group's effect is that of most of its
 * nodes; it counts only where chance does not explain it, so that equal groups add no noise to
 * their nodes. A group of few nodes has none: its nodes speak for themselves. */
#include "map/fit.h"

#include <math.h>
#include <stdlib.h>

enum { GROUP_MIN = 4, GROUP_PAIR_MIN = 8, MANY_GROUPS = 8 };
static const double ALPHA = 0.0025; /* for groups, and again for pairs of groups */
/* Errors beyond which a difference is taken out of what is usual, slow or not. */
static const double CERTAIN = 4;

struct keyed {
    uint64_t key; /* of what belongs together */
    double value;
};

static int by_key(const void *a, const void *b)
{
    const struct keyed *left = a, *right = b;
    if (left->key != right->key)
        return left->key < right->key ? -1 : 1;
    return (left->value > right->value) - (left->value < right->value);
}

static size_t run_length(const struct keyed *keyed, size_t from, size_t count)
{
    size_t end = from;
    while (end < count && keyed[end].key == keyed[from].key)
        end++;
    return end - from;
}

/* Values by what they belong to; lot_next goes through those with enough of them. */
struct lot {
    struct keyed *keyed;
    double *values;
    size_t count, least;
    double scale;
};

static bool lot_next(struct lot *lot, size_t *at, uint64_t *key, struct estimate *estimate)
{
    while (*at < lot->count) {
        size_t from = *at, n = run_length(lot->keyed, from, lot->count);
        *at += n;
        if (n < lot->least)
            continue;
        for (size_t i = 0; i < n; i++)
            lot->values[i] = lot->keyed[from + i].value;
        *key = lot->keyed[from].key;
        *estimate = estimate_of(lot->values, n, lot->scale);
        return true;
    }
    return false;
}

static int lot_open(struct lot *lot, size_t room, size_t least)
{
    *lot = (struct lot){.keyed = calloc(room + 1, sizeof *lot->keyed),
                        .values = calloc(room + 1, sizeof *lot->values),
                        .least = least};
    if (lot->keyed && lot->values)
        return 0;
    free(lot->keyed);
    free(lot->values);
    return no_memory();
}

static void lot_close(struct lot *lot)
{
    free(lot->keyed);
    free(lot->values);
}

/* The spread of values around the middle of their own group. */
static double inner_scale(struct lot *lot)
{
    size_t used = 0, groups = 0;
    for (size_t at = 0, n; at < lot->count; at += n) {
        n = run_length(lot->keyed, at, lot->count);
        if (n < lot->least)
            continue;
        double middle = (lot->keyed[at + (n - 1) / 2].value + lot->keyed[at + n / 2].value) / 2;
        for (size_t i = 0; i < n; i++)
            lot->values[used++] = lot->keyed[at + i].value - middle;
        groups++;
    }
    double scale = scale_of(lot->values, used);
    return used > groups ? scale * sqrt((double)used / (double)(used - groups)) : scale;
}

/* ---- groups ---- */

static void gather_nodes(struct lot *lot, const struct map_model *model)
{
    for (uint32_t node = 0; node < model->nodes; node++)
        if (model->pairs[node] >= ROW_MIN)
            lot->keyed[lot->count++] =
                (struct keyed){model_group(model, node), model->effects[node]};
    qsort(lot->keyed, lot->count, sizeof *lot->keyed, by_key);
    lot->scale = inner_scale(lot);
}

/* What is usual: the middle group, of two the faster one. */
static double usual_group(struct lot *lot, double *means, size_t *groups, double *spread)
{
    struct estimate e;
    uint64_t key;
    double members = 0;
    *groups = 0;
    for (size_t at = 0; lot_next(lot, &at, &key, &e);) {
        means[(*groups)++] = e.mean;
        members += (double)e.count;
    }
    if (*groups < 2)
        return 0;
    double scale = scale_of(means, *groups); /* sorts them */
    members /= (double)*groups;
    *spread = *groups < MANY_GROUPS
                  ? 0
                  : spread_beyond(scale, *groups, lot->scale / sqrt(0.95 * members));
    return means[(*groups - 1) / 2];
}

static int judge_groups(struct map_model *model, struct lot *lot, double *means, double min_effect)
{
    struct judge judge = {.scale = lot->scale, .min_effect = log1p(min_effect)};
    struct estimate e;
    uint64_t key;
    size_t groups;
    double usual = usual_group(lot, means, &groups, &judge.differ), df;
    if (groups < 2)
        return 0;
    /* Of two groups either may be the slow one. */
    judge.alpha = judge.alpha_all = ALPHA / 2 / (double)groups;
    judge.differ_df = (double)groups - 1;
    judge.prior = fmin(24, (double)(lot->count - groups));
    for (uint32_t node = 0; node < model->nodes; node++)
        if (model->pairs[node] >= ROW_MIN)
            model->effects[node] -= usual;
    for (int same = 0; same < 2; same++)
        model->level[same] += 2 * usual;
    for (size_t at = 0; lot_next(lot, &at, &key, &e);) {
        e.mean -= usual;
        judge.extra = 2 / (double)groups / (double)e.count;
        if (fabs(e.mean) > CERTAIN * judge_error(&judge, e.sd, e.count, &df))
            model->group_effects[key] = e.mean;
        if (e.mean < judge_bound(&judge, e.sd, e.count))
            continue;
        struct map_finding f = finding_of(MAP_GROUP, (uint32_t)key, MAP_NONE, &judge, &e);
        int status = finding_add(&model->found, &model->found_count, &f);
        if (status)
            return status;
    }
    for (uint32_t node = 0; node < model->nodes; node++)
        model->effects[node] -=
            model->pairs[node] >= ROW_MIN ? model->group_effects[model_group(model, node)] : 0;
    return 0;
}

int groups_find(struct map_model *model, double min_effect)
{
    struct lot lot;
    int status = lot_open(&lot, model->nodes, GROUP_MIN);
    if (status)
        return status;
    double *means = calloc(model->groups, sizeof *means);
    gather_nodes(&lot, model);
    status = means ? judge_groups(model, &lot, means, min_effect) : no_memory();
    free(means);
    lot_close(&lot);
    return status;
}

/* ---- pairs of groups ---- */

static void gather_cells(struct lot *lot, const struct map_model *model)
{
    for (size_t c = 0; c < model->cells->count; c++) {
        const struct map_cell *cell = &model->cells->all[c];
        uint64_t a = model_group(model, cell->a), b = model_group(model, cell->b);
        lot->keyed[lot->count++] =
            (struct keyed){a < b ? a << 32 | b : b << 32 | a,
                           cell_value(model, cell) - model_usual(model, cell->a, cell->b) -
                               model->effects[cell->a] - model->effects[cell->b]};
    }
    qsort(lot->keyed, lot->count, sizeof *lot->keyed, by_key);
    lot->scale = model->noise;
}

int group_pairs_find(struct map_model *model, double min_effect)
{
    struct lot lot;
    struct estimate e;
    uint64_t key;
    size_t all = 0;
    int status = lot_open(&lot, model->cells->count, GROUP_PAIR_MIN);
    if (status)
        return status;
    gather_cells(&lot, model);
    for (size_t at = 0; lot_next(&lot, &at, &key, &e);)
        all++;
    struct judge judge = {.scale = model->noise,
                          .prior = 24,
                          .alpha = ALPHA / (double)(all ? all : 1),
                          .min_effect = log1p(min_effect)};
    for (size_t at = 0; !status && lot_next(&lot, &at, &key, &e);) {
        double df;
        bool slower = e.mean >= judge_bound(&judge, e.sd, e.count);
        if (!slower && fabs(e.mean) < CERTAIN * judge_error(&judge, e.sd, e.count, &df))
            continue;
        struct map_finding f =
            finding_of(MAP_GROUP_PAIR, (uint32_t)(key >> 32), (uint32_t)key, &judge, &e);
        f.verdict = slower ? MAP_SLOWER : MAP_NOT_AGAIN;
        status = finding_add(&model->found, &model->found_count, &f);
    }
    lot_close(&lot);
    return status;
}
