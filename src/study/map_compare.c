/* SPDX-License-Identifier: BSD-3-Clause */
/* Two maps of the same machine. What moved all pairs alike may be the day; a node is judged against
 * the others: by the medians of its pairs in both maps, less what all of them moved. Where the maps
 * share too few pairs, because partners were chosen at random or a document has only the slowest
 * pairs, it is judged by how its effect changed. */
#include "study/map_change.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double alpha = 0.01, sided = 1.96, of_median = 1.2533, of_deviation = 1.4826;

/* ---- which is which ---- */

struct name {
    const char *text;
    size_t at;
};

static int by_text(const void *a, const void *b)
{
    return strcmp(((const struct name *)a)->text, ((const struct name *)b)->text);
}

/* Names that only one map has: of[i] is SIZE_MAX, and taken[i] is false. */
static int keep_names(const struct study_map *a, const struct study_map *b, const size_t *of,
                      const bool *taken, struct study_map_change *change)
{
    change->only = calloc(a->node_count + b->node_count + 1, sizeof *change->only);
    if (!change->only)
        return fail(-ENOMEM, "no memory for %zu nodes", a->node_count + b->node_count);
    for (size_t i = 0; i < a->node_count; i++)
        if (of[i] == SIZE_MAX)
            change->only[change->only_a++] = a->nodes[i].name;
    for (size_t i = 0; i < b->node_count; i++)
        if (!taken[i])
            change->only[change->only_a + change->only_b++] = b->nodes[i].name;
    return 0;
}

/* The number in b of every node of a; SIZE_MAX: it is not there. */
static int match_nodes(const struct study_map *a, const struct study_map *b, size_t *of,
                       struct study_map_change *change)
{
    const char *twice = NULL;
    struct name *names = calloc(b->node_count + 1, sizeof *names);
    bool *taken = calloc(b->node_count + 1, sizeof *taken);
    if (!names || !taken) {
        free(names);
        free(taken);
        return fail(-ENOMEM, "no memory for %zu nodes", b->node_count);
    }
    for (size_t i = 0; i < b->node_count; i++)
        names[i] = (struct name){b->nodes[i].name, i};
    qsort(names, b->node_count, sizeof *names, by_text);
    for (size_t i = 0; i < a->node_count; i++) {
        struct name key = {a->nodes[i].name, 0};
        const struct name *found = bsearch(&key, names, b->node_count, sizeof *names, by_text);
        of[i] = found ? found->at : SIZE_MAX;
        if (!found)
            continue;
        twice = twice ? twice : taken[found->at] ? found->text : NULL;
        taken[found->at] = true;
    }
    int status = twice ? fail(-EINVAL, "%s: two nodes are called %s", a->path, twice)
                       : keep_names(a, b, of, taken, change);
    free(names);
    free(taken);
    return status;
}

static void sort_ends(struct study_cell *cell)
{
    uint64_t low = cell->a < cell->b ? cell->a : cell->b;
    cell->b = cell->a < cell->b ? cell->b : cell->a;
    cell->a = low;
}

static int by_ends(const void *a, const void *b)
{
    const struct study_cell *x = a, *y = b;
    if (x->a != y->a)
        return x->a < y->a ? -1 : 1;
    return (x->b > y->b) - (x->b < y->b);
}

/* ---- robust figures ---- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double change_median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, by_value);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

double change_exceeded(double probability)
{
    double low = 0, high = 40;
    for (int i = 0; i < 100; i++) {
        double middle = (low + high) / 2;
        if (erfc(middle / M_SQRT2) / 2 > probability)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* ---- pairs in both maps ---- */

static int match_pairs(const struct study_map *a, const struct study_map *b, const size_t *of,
                       struct moved *moved)
{
    struct study_cell *sorted = calloc(b->cell_count + 1, sizeof *sorted);
    moved->pairs = calloc(a->cell_count + 1, sizeof *moved->pairs);
    moved->scratch = calloc(a->cell_count + 1, sizeof *moved->scratch);
    if (!sorted || !moved->pairs || !moved->scratch) {
        free(sorted);
        return fail(-ENOMEM, "no memory for %zu pairs", a->cell_count);
    }
    memcpy(sorted, b->cells, b->cell_count * sizeof *sorted);
    for (size_t i = 0; i < b->cell_count; i++)
        sort_ends(&sorted[i]);
    qsort(sorted, b->cell_count, sizeof *sorted, by_ends);
    for (size_t i = 0; i < a->cell_count; i++) {
        const struct study_cell *cell = &a->cells[i];
        struct study_cell key = {.a = of[cell->a], .b = of[cell->b]};
        if (of[cell->a] == SIZE_MAX || of[cell->b] == SIZE_MAX)
            continue;
        sort_ends(&key);
        const struct study_cell *other =
            bsearch(&key, sorted, b->cell_count, sizeof *sorted, by_ends);
        if (other)
            moved->pairs[moved->count++] =
                (struct change_of_pair){cell->a, cell->b, log(other->p50_us / cell->p50_us)};
    }
    free(sorted);
    return 0;
}

/* How all pairs moved, and how much they differ in that. */
static void judge_all(struct moved *m, struct study_map_change *change, double *all)
{
    for (size_t i = 0; i < m->count; i++)
        m->scratch[i] = m->pairs[i].moved;
    *all = change_median(m->scratch, m->count);
    for (size_t i = 0; i < m->count; i++)
        m->scratch[i] = fabs(m->pairs[i].moved - *all);
    change->noise = of_deviation * change_median(m->scratch, m->count);
    change->all = expm1(*all);
}

enum study_map_verdict move_verdict(double shift, double error, double z, double least,
                                    double reach)
{
    if (shift >= log1p(least) && shift - z * error > 0)
        return STUDY_MAP_SLOWER;
    if (shift <= -log1p(least) && shift + z * error < 0)
        return STUDY_MAP_FASTER;
    return shift + reach >= log1p(least) ? STUDY_MAP_UNSURE : STUDY_MAP_SAME;
}

void move_interval(struct study_move *move, double shift, double error)
{
    move->shift = expm1(shift);
    move->low = expm1(shift - sided * error);
    move->high = expm1(shift + sided * error);
}

void move_unknown(struct study_move *move)
{
    move->verdict = STUDY_MAP_UNSURE;
    move->shift = move->low = move->high = NAN;
}

static void judge_node(struct moved *m, size_t node, double all, double z, double least,
                       const struct study_map_change *change, struct study_move *move)
{
    for (size_t i = 0; i < m->count; i++)
        if (m->pairs[i].a == node || m->pairs[i].b == node)
            m->scratch[move->pairs++] = m->pairs[i].moved - all;
    if (move->pairs < PAIRS_LEAST) {
        move_unknown(move);
        return;
    }
    double shift = change_median(m->scratch, move->pairs);
    double error = of_median * change->noise / sqrt((double)move->pairs);
    move_interval(move, shift, error);
    move->verdict = move_verdict(shift, error, z, least, sided * error);
}

/* The moves have the order of the nodes of a that b has. */
static void judge_by_pairs(struct moved *m, const struct study_map *a, const size_t *of, double z,
                           double least, struct study_map_change *c)
{
    size_t n = 0;
    double all;
    judge_all(m, c, &all);
    for (size_t i = 0; i < a->node_count; i++)
        if (of[i] != SIZE_MAX)
            judge_node(m, i, all, z, least, c, &c->moves[n++]);
}

/* ---- all nodes ---- */

static int by_shift(const void *a, const void *b)
{
    double x = ((const struct study_move *)a)->shift, y = ((const struct study_move *)b)->shift;
    return (isnan(x) - isnan(y)) ? isnan(x) - isnan(y) : (x < y) - (x > y);
}

static void conclude(struct study_map_change *c, double least)
{
    for (size_t i = 0; i < c->count; i++) {
        const struct study_move *move = &c->moves[i];
        c->few += isnan(move->shift);
        c->slower += move->verdict == STUDY_MAP_SLOWER;
        c->faster += move->verdict == STUDY_MAP_FASTER;
        c->unsure += move->verdict == STUDY_MAP_UNSURE && !isnan(move->shift);
    }
    c->blind = c->by_effects && !(c->seen <= 2 * least);
    c->moved = fabs(c->all) >= least && fabs(log1p(c->all)) > c->coarse;
    c->verdict = c->slower                                     ? STUDY_MAP_SLOWER
                 : c->unsure || c->few || c->blind || c->moved ? STUDY_MAP_UNSURE
                 : c->faster                                   ? STUDY_MAP_FASTER
                                                               : STUDY_MAP_SAME;
}

static int judge(struct moved *m, const struct study_map *a, const struct study_map *b,
                 const size_t *of, double least, struct study_map_change *c)
{
    double z = change_exceeded(alpha / 2 / (double)a->node_count);
    int status = 0;
    c->moves = calloc(a->node_count + 1, sizeof *c->moves);
    if (!c->moves)
        return fail(-ENOMEM, "no memory for %zu nodes", a->node_count);
    for (size_t i = 0; i < a->node_count; i++)
        if (of[i] != SIZE_MAX)
            c->moves[c->count++].name = a->nodes[i].name;
    c->pairs = m->count;
    if (maps_share_pairs(a, b, of, m))
        judge_by_pairs(m, a, of, z, least, c);
    else
        status = maps_judge_by_effects(a, b, of, z, least, c);
    if (status)
        return status;
    qsort(c->moves, c->count, sizeof *c->moves, by_shift);
    conclude(c, least);
    return 0;
}

/* ---- the comparison ---- */

static int check_same(const struct study_map *a, const struct study_map *b)
{
    if (strcmp(a->test, b->test) != 0)
        return fail(-EINVAL, "the maps are of different tests: %s and %s (--force compares anyway)",
                    a->test, b->test);
    if (a->size != b->size)
        return fail(-EINVAL,
                    "the maps are of different sizes: %" PRIu64 " and %" PRIu64
                    " bytes (--force compares anyway)",
                    a->size, b->size);
    return 0;
}

int study_map_compare(const struct study_map *a, const struct study_map *b, double min_effect,
                      bool force, struct study_map_change *change)
{
    struct moved moved = {0};
    *change = (struct study_map_change){0};
    size_t *of = calloc(a->node_count + 1, sizeof *of);
    if (!of)
        return fail(-ENOMEM, "no memory for %zu nodes", a->node_count);
    int status = force ? 0 : check_same(a, b);
    if (!status)
        status = match_nodes(a, b, of, change);
    if (!status)
        status = match_pairs(a, b, of, &moved);
    if (!status && a->node_count - change->only_a < 2)
        status = fail(-EINVAL, "%s and %s have no pair of nodes in common", a->path, b->path);
    if (!status)
        status = judge(&moved, a, b, of, min_effect, change);
    free(moved.pairs);
    free(moved.scratch);
    free(of);
    if (status)
        study_map_change_free(change);
    return status;
}

void study_map_change_free(struct study_map_change *change)
{
    free(change->moves);
    free(change->only);
    change->moves = NULL;
    change->only = NULL;
}
