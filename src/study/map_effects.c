/* SPDX-License-Identifier: BSD-3-Clause */
/* Two maps compared by the effects of their nodes: partners chosen at random are others the next
 * time, and a document of many nodes has only the slowest pairs. The noise that both maps state
 * says what chance makes of an effect. */
#include "bench/stats.h"
#include "report/maps.h"
#include "study/map_change.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* As in map: efficiency of Huber's mean, and the probability that a map is to find with. */
static const double efficiency = 0.95, power_wanted = 0.8, of_deviation = 1.4826;

/* A document with fewer pairs than were measured has the slowest: their changes are not those of
 * all. */
static bool has_all_pairs(const struct study_map *m)
{
    return m->cell_count >= m->measured;
}

/* ---- effects ---- */

/* As a logarithm, with that of its group: the document has them apart. */
static double effect_of(const struct study_map *m, const struct study_node *node)
{
    double effect = node->effect_percent > -100 ? log1p(node->effect_percent / 100) : NAN;
    for (size_t i = 0; i < m->finding_count && node->group; i++) {
        const struct study_finding *f = &m->findings[i];
        if (strcmp(f->kind, "group") == 0 && f->effect_percent > -100 &&
            strcmp(m->groups[f->a], node->group) == 0)
            effect += log1p(f->effect_percent / 100);
    }
    return effect;
}

/* Squared error of an effect: one of the pairs was spent on it. */
static double variance_of(const struct study_map *m, const struct study_node *node)
{
    double noise = m->noise_percent / 100;
    return noise * noise / efficiency / ((double)node->pairs - 1);
}

/* Not a number: it has too few pairs. */
static double effect_change(const struct study_map *a, const struct study_map *b, size_t in_a,
                            size_t in_b)
{
    const struct study_node *from = &a->nodes[in_a], *to = &b->nodes[in_b];
    if (from->pairs < PAIRS_LEAST || to->pairs < PAIRS_LEAST ||
        isnan(variance_of(a, from) + variance_of(b, to)))
        return NAN;
    return effect_of(b, to) - effect_of(a, from);
}

/* ---- are pairs enough? ---- */

/* Are three quarters of the pairs that could be in both maps in both? */
static bool share_most(const struct study_map *a, const struct study_map *b, const size_t *of,
                       const bool *both, size_t shared)
{
    size_t of_a = 0, of_b = 0;
    for (size_t i = 0; i < a->cell_count; i++)
        of_a += of[a->cells[i].a] != SIZE_MAX && of[a->cells[i].b] != SIZE_MAX;
    for (size_t i = 0; i < b->cell_count; i++)
        of_b += both[b->cells[i].a] && both[b->cells[i].b];
    return 4 * shared >= 3 * (of_a < of_b ? of_a : of_b);
}

/* Has every node that can be judged by its effect enough of them? */
static bool share_enough(const struct study_map *a, const struct study_map *b, const size_t *of,
                         size_t *shared, const struct moved *m)
{
    bool enough = true;
    for (size_t i = 0; i < m->count; i++) {
        shared[m->pairs[i].a]++;
        shared[m->pairs[i].b]++;
    }
    for (size_t i = 0; i < a->node_count && enough; i++)
        enough =
            of[i] == SIZE_MAX || shared[i] >= PAIRS_LEAST || isnan(effect_change(a, b, i, of[i]));
    return enough;
}

bool maps_share_pairs(const struct study_map *a, const struct study_map *b, const size_t *of,
                      const struct moved *m)
{
    bool *both = calloc(b->node_count + 1, sizeof *both);
    size_t *shared = calloc(a->node_count + 1, sizeof *shared);
    bool share = both && shared && m->count && has_all_pairs(a) && has_all_pairs(b);
    for (size_t i = 0; i < a->node_count && share; i++)
        if (of[i] != SIZE_MAX)
            both[of[i]] = true;
    share = share && share_most(a, b, of, both, m->count) && share_enough(a, b, of, shared, m);
    free(both);
    free(shared);
    return share;
}

/* ---- changes ---- */

/* Medians of all pairs, or, if a document has only the slowest, of the histograms of nodes. */
static double all_by_effects(const struct study_map *a, const struct study_map *b, const size_t *of,
                             double *scratch, struct study_map_change *c)
{
    size_t n = 0;
    if (has_all_pairs(a) && has_all_pairs(b) && a->cell_count && b->cell_count) {
        double medians[2];
        for (int side = 0; side < 2; side++) {
            const struct study_map *m = side ? b : a;
            for (size_t i = 0; i < m->cell_count; i++)
                scratch[i] = log(m->cells[i].p50_us);
            medians[side] = change_median(scratch, m->cell_count);
        }
        return medians[1] - medians[0];
    }
    c->coarse = (double)(1 << MAP_SHIFT) / STATS_SUB;
    for (size_t i = 0; i < a->node_count; i++) {
        double from = a->nodes[i].p50_us, to = of[i] == SIZE_MAX ? NAN : b->nodes[of[i]].p50_us;
        if (from > 0 && to > 0)
            scratch[n++] = log(to / from);
    }
    return n ? change_median(scratch, n) : 0;
}

/* By how much changes of nodes differ beyond their error; as in map. */
static double beyond_error(double *distances, size_t count, double error)
{
    double scale = of_deviation * change_median(distances, count);
    double sure = 1 - 2 / sqrt(2 * (double)count), variance = scale * scale * fmax(0, sure);
    return variance > error * error ? scale * scale - error * error : 0;
}

struct changed {
    double *by, *variance; /* per move; by: not a number: it is not judged */
    double *scratch;
    size_t count; /* of moves */
};

static void gather(struct changed *d, const struct study_map *a, const struct study_map *b,
                   const size_t *of, struct study_map_change *c)
{
    for (size_t i = 0; i < a->node_count; i++) {
        if (of[i] == SIZE_MAX)
            continue;
        const struct study_node *from = &a->nodes[i], *to = &b->nodes[of[i]];
        size_t k = d->count++;
        c->moves[k].pairs = from->pairs < to->pairs ? from->pairs : to->pairs;
        d->by[k] = effect_change(a, b, i, of[i]);
        d->variance[k] = variance_of(a, from) + variance_of(b, to);
    }
}

static double median_where_judged(struct changed *d, const double *values)
{
    size_t n = 0;
    for (size_t k = 0; k < d->count; k++)
        if (!isnan(d->by[k]))
            d->scratch[n++] = values[k];
    return n ? change_median(d->scratch, n) : 0;
}

static void judge_changed(struct changed *d, double z, double least, struct study_map_change *c)
{
    size_t n = 0;
    double worst = 0, middle = median_where_judged(d, d->by);
    double error = sqrt(median_where_judged(d, d->variance));
    for (size_t k = 0; k < d->count; k++)
        if (!isnan(d->by[k]))
            d->scratch[n++] = fabs(d->by[k] - middle);
    double spread = n ? beyond_error(d->scratch, n, error) : 0;
    for (size_t k = 0; k < d->count; k++) {
        struct study_move *move = &c->moves[k];
        double own = sqrt(d->variance[k] + spread), shift = d->by[k] - middle;
        if (isnan(shift)) {
            move_unknown(move);
            continue;
        }
        move_interval(move, shift, own);
        move->verdict = move_verdict(shift, own, z, least, 0);
        worst = fmax(worst, own);
    }
    c->seen = expm1(fmax(log1p(least), z * worst) + change_exceeded(1 - power_wanted) * worst);
}

int maps_judge_by_effects(const struct study_map *a, const struct study_map *b, const size_t *of,
                          double z, double least, struct study_map_change *c)
{
    size_t room = a->node_count + 1;
    size_t cells = a->cell_count > b->cell_count ? a->cell_count : b->cell_count;
    struct changed d = {.by = calloc(room, sizeof *d.by),
                        .variance = calloc(room, sizeof *d.variance),
                        .scratch = calloc(room + cells, sizeof *d.scratch)};
    bool enough = d.by && d.variance && d.scratch;
    if (enough) {
        c->by_effects = true;
        c->all = expm1(all_by_effects(a, b, of, d.scratch, c));
        c->noise = hypot(a->noise_percent, b->noise_percent) / 100 / M_SQRT2;
        gather(&d, a, b, of, c);
        judge_changed(&d, z, least, c);
    }
    free(d.by);
    free(d.variance);
    free(d.scratch);
    return enough ? 0 : fail(-ENOMEM, "no memory for %zu nodes", a->node_count);
}
