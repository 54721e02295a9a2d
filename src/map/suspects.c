/* SPDX-License-Identifier: BSD-3-Clause */
/* Who is measured again: the slowest nodes and pairs of the first stage. More pairs than foreign
 * traffic is likely to have hit, or those would fill the list. */
#include "map/fit.h"

#include <math.h>
#include <stdlib.h>

static const double NODE_SHARE = 0.05, PAIR_SHARE = 0.03;
enum { NODES_MIN = 4, PAIRS_MIN = 4, PAIR_CONTROLS = 64 };

struct ranked {
    double value;
    uint32_t at;
};

static int highest_first(const void *a, const void *b)
{
    const struct ranked *left = a, *right = b;
    if (left->value != right->value)
        return left->value > right->value ? -1 : 1;
    return (left->at > right->at) - (left->at < right->at);
}

/* Suspects whatever their effect. */
uint32_t suspects_quota(uint32_t nodes)
{
    uint32_t quota = (uint32_t)ceil(NODE_SHARE * nodes);
    quota = quota < NODES_MIN ? NODES_MIN : quota;
    return quota > nodes / 4 ? nodes / 4 : quota;
}

uint32_t map_suspects(const struct map_model *model, uint32_t *list)
{
    struct ranked *ranked = calloc(model->nodes + 1U, sizeof *ranked);
    uint32_t n = 0, most, count;
    if (!ranked)
        return 0;
    for (uint32_t node = 0; node < model->nodes; node++)
        if (model->pairs[node] >= ROW_MIN)
            ranked[n++] = (struct ranked){model->effects[node], node};
    qsort(ranked, n, sizeof *ranked, highest_first);
    count = suspects_quota(n);
    most = n > 2 ? (n - 2) / 2 : 0;
    while (count < most && expm1(ranked[count].value) >= model->min_effect)
        count++;
    for (uint32_t i = 0; i < count; i++)
        list[i] = ranked[i].at;
    free(ranked);
    return count;
}

static struct map_pair pair_of(const struct map_model *model, const struct ranked *ranked,
                               bool suspect)
{
    const struct map_cell *cell = &model->cells->all[ranked->at];
    return (struct map_pair){cell->a, cell->b, ranked->value, suspect};
}

/* The first ones, and some of the others at random. */
static size_t pick(const struct map_model *model, struct ranked *ranked, size_t n, size_t most,
                   uint64_t seed, struct map_pair *pairs)
{
    size_t controls = most < PAIR_CONTROLS ? PAIR_CONTROLS : most, picked = 0;
    while (picked < most) {
        pairs[picked] = pair_of(model, &ranked[picked], true);
        picked++;
    }
    for (size_t i = most; i < n && picked < most + controls; i++) {
        size_t other = i + (size_t)(random_next(&seed) % (n - i));
        struct ranked swap = ranked[other];
        ranked[other] = ranked[i];
        ranked[i] = swap;
        pairs[picked++] = pair_of(model, &swap, false);
    }
    return picked;
}

int map_suspect_pairs(const struct map_model *model, uint64_t seed, struct map_pair **pairs,
                      size_t *count)
{
    const struct map_cells *cells = model->cells;
    struct ranked *ranked = calloc(cells->count + 1, sizeof *ranked);
    size_t n = 0, most = (size_t)ceil(PAIR_SHARE * (double)cells->count);
    for (size_t c = 0; ranked && c < cells->count; c++) {
        const struct map_cell *cell = &cells->all[c];
        if (model->pairs[cell->a] < ROW_MIN || model->pairs[cell->b] < ROW_MIN)
            continue;
        double value = cell_value(model, cell) - model_usual(model, cell->a, cell->b) -
                       model->effects[cell->a] - model->effects[cell->b];
        ranked[n++] = (struct ranked){value, (uint32_t)c};
    }
    most = most < PAIRS_MIN ? PAIRS_MIN : most;
    most = most > n / 4 ? n / 4 : most;
    *pairs = calloc(2 * most + PAIR_CONTROLS + 1, sizeof **pairs);
    int status = ranked && *pairs ? 0 : no_memory();
    if (!status) {
        qsort(ranked, n, sizeof *ranked, highest_first);
        *count = pick(model, ranked, n, most, seed, *pairs);
    } else {
        free(*pairs);
        *pairs = NULL;
    }
    free(ranked);
    return status;
}
