/* SPDX-License-Identifier: BSD-3-Clause */
/* Two maps of the same machine. What moved all pairs alike may be the day; a node is judged against
 * the others: by the medians of its pairs in both maps, less what all of them moved. */
#include "study/maps.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PAIRS_LEAST = 4 };
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

/* The number in b of every node of a; SIZE_MAX: it is not there. */
static int match_nodes(const struct study_map *a, const struct study_map *b, size_t *of,
                       struct study_map_change *change)
{
    struct name *names = calloc(b->node_count + 1, sizeof *names);
    if (!names)
        return fail(-ENOMEM, "no memory for %zu nodes", b->node_count);
    for (size_t i = 0; i < b->node_count; i++)
        names[i] = (struct name){b->nodes[i].name, i};
    qsort(names, b->node_count, sizeof *names, by_text);
    change->only_b = b->node_count;
    for (size_t i = 0; i < a->node_count; i++) {
        struct name key = {a->nodes[i].name, 0};
        const struct name *found = bsearch(&key, names, b->node_count, sizeof *names, by_text);
        of[i] = found ? found->at : SIZE_MAX;
        change->only_a += !found;
        change->only_b -= found && change->only_b;
    }
    free(names);
    return 0;
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

/* Sorts them. */
static double median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, by_value);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/* The standard normal value that is exceeded with this probability. */
static double exceeded(double probability)
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

struct change_of_pair {
    size_t a, b;  /* nodes of the first map */
    double moved; /* logarithm */
};

struct moved {
    struct change_of_pair *pairs;
    size_t count;
    double *scratch;
};

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
    *all = median(m->scratch, m->count);
    for (size_t i = 0; i < m->count; i++)
        m->scratch[i] = fabs(m->pairs[i].moved - *all);
    change->noise = of_deviation * median(m->scratch, m->count);
    change->all = expm1(*all);
}

static enum study_map_verdict verdict_of(double shift, double error, double z, double least)
{
    if (shift >= log1p(least) && shift - z * error > 0)
        return STUDY_MAP_SLOWER;
    if (shift <= -log1p(least) && shift + z * error < 0)
        return STUDY_MAP_FASTER;
    return shift + sided * error >= log1p(least) ? STUDY_MAP_UNSURE : STUDY_MAP_SAME;
}

static void judge_node(struct moved *m, size_t node, double all, double z, double least,
                       const struct study_map_change *change, struct study_move *move)
{
    for (size_t i = 0; i < m->count; i++)
        if (m->pairs[i].a == node || m->pairs[i].b == node)
            m->scratch[move->pairs++] = m->pairs[i].moved - all;
    if (move->pairs < PAIRS_LEAST) {
        move->verdict = STUDY_MAP_UNSURE;
        move->shift = move->low = move->high = NAN;
        return;
    }
    double shift = median(m->scratch, move->pairs);
    double error = of_median * change->noise / sqrt((double)move->pairs);
    move->shift = expm1(shift);
    move->low = expm1(shift - sided * error);
    move->high = expm1(shift + sided * error);
    move->verdict = verdict_of(shift, error, z, least);
}

static int by_shift(const void *a, const void *b)
{
    double x = ((const struct study_move *)a)->shift, y = ((const struct study_move *)b)->shift;
    return (isnan(x) - isnan(y)) ? isnan(x) - isnan(y) : (x < y) - (x > y);
}

static int judge(struct moved *m, const struct study_map *a, const size_t *of, double least,
                 struct study_map_change *c)
{
    double all, z = exceeded(alpha / 2 / (double)a->node_count);
    c->moves = calloc(a->node_count + 1, sizeof *c->moves);
    if (!c->moves)
        return fail(-ENOMEM, "no memory for %zu nodes", a->node_count);
    judge_all(m, c, &all);
    for (size_t i = 0; i < a->node_count; i++) {
        struct study_move *move = &c->moves[c->count];
        if (of[i] == SIZE_MAX)
            continue;
        move->name = a->nodes[i].name;
        judge_node(m, i, all, z, least, c, move);
        c->slower += move->verdict == STUDY_MAP_SLOWER;
        c->faster += move->verdict == STUDY_MAP_FASTER;
        c->unsure += move->verdict == STUDY_MAP_UNSURE;
        c->count++;
    }
    qsort(c->moves, c->count, sizeof *c->moves, by_shift);
    c->pairs = m->count;
    c->verdict = c->slower                            ? STUDY_MAP_SLOWER
                 : c->unsure || fabs(c->all) >= least ? STUDY_MAP_UNSURE
                 : c->faster                          ? STUDY_MAP_FASTER
                                                      : STUDY_MAP_SAME;
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
    if (!status && !moved.count)
        status = fail(-EINVAL, "%s and %s have no pair of nodes in common", a->path, b->path);
    if (!status)
        status = judge(&moved, a, of, min_effect, change);
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
    change->moves = NULL;
}
