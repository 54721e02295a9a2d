/* SPDX-License-Identifier: BSD-3-Clause */
/* Verdicts on suspects, by the second stage alone: its cells do not depend on how they were chosen,
 * so their errors are as large as they look. What is usual is taken from the controls that were
 * measured at the same time, so a drift between the stages is not a slow node. */
#include "map/fit.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

static const double NODE_ALPHA = 0.01, PAIR_ALPHA = 0.005;
/* So much more often a pair of equal ones may be open. */
static const double OPEN = 10;
enum { PRIOR = 24, CONTROLS_MIN = 8 };

int finding_add(struct map_finding **all, size_t *count, const struct map_finding *finding)
{
    struct map_finding *more = realloc(*all, (*count + 1) * sizeof *more);
    if (!more)
        return no_memory();
    more[(*count)++] = *finding;
    *all = more;
    return 0;
}

struct map_finding finding_of(enum map_kind kind, uint32_t a, uint32_t b, const struct judge *judge,
                              const struct estimate *estimate)
{
    struct map_finding f = {.kind = kind,
                            .verdict = MAP_UNSURE,
                            .a = a,
                            .b = b,
                            .cells = (uint32_t)estimate->count,
                            .effect = NAN,
                            .low = NAN,
                            .high = NAN,
                            .first = expm1(estimate->mean)};
    if (estimate->count < JUDGED_MIN)
        return f;
    double df, error = judge_error(judge, estimate->sd, estimate->count, &df);
    double reach = student_bound(df, 0.025) * error;
    f.effect = expm1(estimate->mean);
    f.low = expm1(estimate->mean - reach);
    f.high = expm1(estimate->mean + reach);
    bool slower = estimate->mean >= judge_bound(judge, estimate->sd, estimate->count);
    bool excluded = f.high < expm1(judge->min_effect);
    f.verdict = slower ? MAP_SLOWER : excluded ? MAP_NOT_AGAIN : MAP_UNSURE;
    return f;
}

bool map_worth(const struct map_finding *f, double min_effect)
{
    return f->verdict == MAP_SLOWER || f->first >= min_effect;
}

/* ---- values by whom they are about ---- */

/* Suspects 0 to count - 1, then all controls together. */
struct lists {
    size_t count;
    size_t *from;   /* per list, and the end of the last */
    double *values; /* less what is usual */
    double *work;
    size_t total;
};

static int lists_open(struct lists *lists, size_t count, size_t room)
{
    *lists = (struct lists){.count = count,
                            .from = calloc(count + 3, sizeof *lists->from),
                            .values = calloc(room + 1, sizeof *lists->values),
                            .work = calloc(room + 1, sizeof *lists->work)};
    return lists->from && lists->values && lists->work ? 0 : no_memory();
}

static void lists_close(struct lists *lists)
{
    free(lists->from);
    free(lists->values);
    free(lists->work);
}

/* Whose each cell is: a list, or MAP_NONE. Two passes: count, then place. */
static void lists_fill(struct lists *lists, const struct map_cells *cells,
                       double (*value)(const void *arg, const struct map_cell *cell),
                       uint32_t (*whose)(const void *arg, const struct map_cell *cell),
                       const void *arg)
{
    for (size_t c = 0; c < cells->count; c++) {
        uint32_t list = whose(arg, &cells->all[c]);
        if (list != MAP_NONE)
            lists->from[list + 2]++;
    }
    for (size_t i = 0; i <= lists->count; i++)
        lists->from[i + 2] += lists->from[i + 1];
    for (size_t c = 0; c < cells->count; c++) {
        uint32_t list = whose(arg, &cells->all[c]);
        if (list != MAP_NONE)
            lists->values[lists->from[list + 1]++] = value(arg, &cells->all[c]);
    }
    lists->total = lists->from[lists->count + 1];
}

static size_t list_length(const struct lists *lists, size_t i)
{
    return lists->from[i + 1] - lists->from[i];
}

/* The noise of one value around the middle of its own list. */
static double lists_noise(struct lists *lists, size_t count)
{
    size_t n = 0, used = 0;
    for (size_t i = 0; i < count; i++) {
        size_t length = list_length(lists, i);
        if (length < 2)
            continue;
        for (size_t k = 0; k < length; k++)
            lists->work[n + k] = lists->values[lists->from[i] + k];
        double middle = median_of(lists->work + n, length);
        for (size_t k = 0; k < length; k++)
            lists->work[n + k] -= middle;
        n += length;
        used++;
    }
    double scale = scale_of(lists->work, n);
    return n > used ? scale * sqrt((double)n / (double)(n - used)) : scale;
}

/* ---- nodes ---- */

struct nodes {
    const struct map_model *model;
    uint32_t *list; /* per node: which suspect it is; MAP_NONE: healthy */
    uint32_t suspects;
};

static double node_value(const void *arg, const struct map_cell *cell)
{
    const struct nodes *nodes = arg;
    return cell_value(nodes->model, cell) - model_usual(nodes->model, cell->a, cell->b);
}

static uint32_t node_of(const void *arg, const struct map_cell *cell)
{
    const struct nodes *nodes = arg;
    uint32_t a = nodes->list[cell->a], b = nodes->list[cell->b];
    if (a == MAP_NONE && b == MAP_NONE)
        return nodes->suspects;
    return a != MAP_NONE && b != MAP_NONE ? MAP_NONE : a != MAP_NONE ? a : b;
}

/* What is usual in the second stage, and how nodes are judged by it. */
static double node_terms(struct map_verdicts *v, struct lists *lists, struct judge *judge)
{
    size_t controls = list_length(lists, v->suspects);
    double usual = 0;
    v->noise = lists_noise(lists, v->suspects + 1U);
    if (controls)
        usual = estimate_of(lists->values + lists->from[v->suspects], controls, v->noise).mean;
    v->extra = controls ? 1 / (double)controls : 0;
    v->prior =
        lists->total > v->suspects + 1U ? fmin(PRIOR, (double)(lists->total - v->suspects - 1)) : 0;
    for (size_t i = 0; i < v->suspects; i++)
        lists->work[i] = (double)list_length(lists, i);
    v->cells_each = (uint32_t)median_of(lists->work, v->suspects);
    *judge = verdicts_judge(v);
    return usual;
}

static int judge_nodes(struct map_verdicts *v, const struct map_second *second,
                       const struct nodes *nodes, struct lists *lists)
{
    struct judge judge;
    int status = 0;
    lists_fill(lists, second->cells, node_value, node_of, nodes);
    double usual = node_terms(v, lists, &judge);
    for (uint32_t i = 0; i < v->suspects && !status; i++) {
        size_t n = list_length(lists, i);
        struct estimate e = estimate_of(lists->values + lists->from[i], n, v->noise);
        e.mean -= usual;
        if (v->extra <= 0)
            e.count = 0; /* without controls nothing is known to be usual */
        struct map_finding f = finding_of(MAP_NODE, second->suspects[i], MAP_NONE, &judge, &e);
        f.first = expm1(nodes->model->effects[f.a]);
        f.open = f.verdict == MAP_UNSURE && map_worth(&f, v->min_effect);
        status = finding_add(&v->all, &v->count, &f);
    }
    return status;
}

/* Nodes that were slower at first and are no suspects: there were too many, or they are gone. */
static int note_untested(struct map_verdicts *v, const struct nodes *nodes)
{
    const struct map_model *model = nodes->model;
    int status = 0;
    for (uint32_t node = 0; node < model->nodes && !status; node++) {
        struct map_finding f = {.kind = MAP_NODE,
                                .verdict = MAP_UNSURE,
                                .open = true,
                                .a = node,
                                .b = MAP_NONE,
                                .first = expm1(model->effects[node]),
                                .effect = NAN,
                                .low = NAN,
                                .high = NAN};
        if (model->pairs[node] >= ROW_MIN && nodes->list[node] == MAP_NONE &&
            f.first >= v->min_effect)
            status = finding_add(&v->all, &v->count, &f);
    }
    return status;
}

static int nodes_judge(struct map_verdicts *v, const struct map_model *model,
                       const struct map_second *second)
{
    struct lists lists;
    struct nodes nodes = {model, calloc(model->nodes + 1U, sizeof *nodes.list), v->suspects};
    int status = lists_open(&lists, v->suspects, second->cells->count + v->suspects);
    if (!status && !nodes.list)
        status = no_memory();
    for (uint32_t node = 0; !status && node < model->nodes; node++)
        nodes.list[node] = MAP_NONE;
    for (uint32_t i = 0; !status && i < v->suspects; i++) {
        if (second->suspects[i] < model->nodes)
            nodes.list[second->suspects[i]] = i;
        else
            status = fail(-EINVAL, "suspect %u is no node of the map", second->suspects[i]);
    }
    if (!status)
        status = judge_nodes(v, second, &nodes, &lists);
    if (!status)
        status = note_untested(v, &nodes);
    free(nodes.list);
    lists_close(&lists);
    return status;
}

/* ---- pairs ---- */

struct pairs {
    const struct map_model *model;
    struct map_pair *sorted;
    size_t count;
};

static int by_nodes(const void *a, const void *b)
{
    const struct map_pair *x = a, *y = b;
    uint64_t left = x->a < x->b ? (uint64_t)x->a << 32 | x->b : (uint64_t)x->b << 32 | x->a;
    uint64_t right = y->a < y->b ? (uint64_t)y->a << 32 | y->b : (uint64_t)y->b << 32 | y->a;
    return (left > right) - (left < right);
}

static double pair_value(const void *arg, const struct map_cell *cell)
{
    const struct map_model *model = ((const struct pairs *)arg)->model;
    return cell_value(model, cell) - model_usual(model, cell->a, cell->b) -
           model->effects[cell->a] - model->effects[cell->b];
}

static uint32_t pair_place(const void *arg, const struct map_cell *cell)
{
    const struct pairs *pairs = arg;
    struct map_pair key = {.a = cell->a, .b = cell->b};
    const struct map_pair *found = bsearch(&key, pairs->sorted, pairs->count, sizeof key, by_nodes);
    return found ? (uint32_t)(found - pairs->sorted) : MAP_NONE;
}

/* What is expected of a pair has the errors of two nodes' effects, as the first stage knows them.
 */
static double expectation_error(const struct map_model *model, double scale)
{
    double each = 2 * (double)model->cells->count / (double)model->nodes - 1;
    double share = scale > 0 ? model->noise / scale : 1;
    return 2 * share * share / fmax(1, each);
}

/* What controls show: what is usual now, and by how much pairs differ in truth. */
static double pair_terms(const struct pairs *pairs, struct lists *lists, struct judge *judge)
{
    size_t controls = 0, suspects = 0, values = 0;
    judge->scale = lists_noise(lists, pairs->count);
    for (size_t i = 0; i < pairs->count; i++) {
        size_t n = list_length(lists, i);
        suspects += pairs->sorted[i].suspect;
        if (pairs->sorted[i].suspect || n < JUDGED_MIN)
            continue;
        lists->work[controls++] = estimate_of(lists->values + lists->from[i], n, judge->scale).mean;
        values += n;
    }
    judge->alpha = PAIR_ALPHA / (double)(suspects ? suspects : 1);
    judge->alpha_all = PAIR_ALPHA / (double)pairs->model->cells->count;
    judge->prior = lists->total > 2 * pairs->count ? PRIOR : 0;
    judge->extra = expectation_error(pairs->model, judge->scale);
    if (controls < CONTROLS_MIN)
        return 0;
    double each = (double)values / (double)controls;
    double scale = scale_of(lists->work, controls); /* sorts them */
    judge->differ_df = (double)controls - 1;
    judge->differ = spread_beyond(scale, controls, judge->scale / sqrt(0.95 * each));
    judge->extra += 1.6 / (double)values;
    return median_of(lists->work, controls);
}

static int judge_pairs(struct map_verdicts *v, const struct pairs *pairs, struct lists *lists,
                       const struct map_cells *again)
{
    struct judge judge = {.min_effect = log1p(v->min_effect)};
    int status = 0;
    lists_fill(lists, again, pair_value, pair_place, pairs);
    double usual = pair_terms(pairs, lists, &judge);
    struct judge likely = judge;
    likely.alpha *= OPEN;
    likely.alpha_all *= OPEN;
    for (size_t i = 0; i < pairs->count && !status; i++) {
        const struct map_pair *pair = &pairs->sorted[i];
        if (!pair->suspect)
            continue;
        struct estimate e =
            estimate_of(lists->values + lists->from[i], list_length(lists, i), judge.scale);
        e.mean -= usual;
        struct map_finding f = finding_of(MAP_PAIR, pair->a, pair->b, &judge, &e);
        f.first = expm1(pair->first);
        f.open = f.verdict == MAP_UNSURE && map_worth(&f, v->min_effect) &&
                 (e.count < JUDGED_MIN || e.mean >= judge_chance(&likely, e.sd, e.count));
        status = finding_add(&v->all, &v->count, &f);
    }
    return status;
}

static int pairs_judge(struct map_verdicts *v, const struct map_model *model,
                       const struct map_second *second)
{
    struct lists lists;
    struct pairs pairs = {model, calloc(second->pair_count + 1, sizeof *pairs.sorted),
                          second->pair_count};
    int status = lists_open(&lists, second->pair_count, second->again->count + second->pair_count);
    if (!status && !pairs.sorted)
        status = no_memory();
    for (size_t i = 0; !status && i < pairs.count; i++)
        pairs.sorted[i] = second->pairs[i];
    if (!status) {
        qsort(pairs.sorted, pairs.count, sizeof *pairs.sorted, by_nodes);
        status = judge_pairs(v, &pairs, &lists, second->again);
    }
    free(pairs.sorted);
    lists_close(&lists);
    return status;
}

/* ---- all ---- */

static int worst_first(const void *a, const void *b)
{
    const struct map_finding *x = a, *y = b;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    if (x->verdict != y->verdict)
        return x->verdict < y->verdict ? -1 : 1;
    double left = isfinite(x->effect) ? x->effect : x->first;
    double right = isfinite(y->effect) ? y->effect : y->first;
    if (left != right)
        return left > right ? -1 : 1;
    return (x->a > y->a) - (x->a < y->a);
}

struct judge verdicts_judge(const struct map_verdicts *v)
{
    return (struct judge){.scale = v->noise,
                          .prior = v->prior,
                          .extra = v->extra,
                          .alpha = NODE_ALPHA / fmax(1, v->tested),
                          .differ = v->spread,
                          .differ_df = (double)v->nodes - 1,
                          .alpha_all = NODE_ALPHA / (v->nodes ? v->nodes : 1),
                          .min_effect = log1p(v->min_effect)};
}

/* As how many nodes the suspects count. A full map is measured again on the same pairs: if those
 * differ every time, the second stage repeats what the first one chose by, and all nodes count. */
static double tested(const struct map_verdicts *v, size_t cells)
{
    double pairs = (double)v->nodes * ((double)v->nodes - 1) / 2;
    double share = pairs > 0 ? fmin(1, (double)cells / pairs) : 1;
    return v->suspects + share * fmax(0, (double)v->nodes - v->suspects);
}

int map_judge(struct map_verdicts *verdicts, const struct map_model *model,
              const struct map_second *second, double min_effect)
{
    *verdicts = (struct map_verdicts){.min_effect = min_effect,
                                      .spread = model->spread,
                                      .row_noise = model->row_noise,
                                      .nodes = model->measured,
                                      .suspects = second->suspect_count,
                                      .quota = suspects_quota(model->measured)};
    verdicts->tested = tested(verdicts, model->cells->count);
    int status = 0;
    for (size_t i = 0; i < model->found_count && !status; i++)
        if (model->found[i].verdict == MAP_SLOWER)
            status = finding_add(&verdicts->all, &verdicts->count, &model->found[i]);
    if (!status)
        status = nodes_judge(verdicts, model, second);
    if (!status && second->again)
        status = pairs_judge(verdicts, model, second);
    if (status) {
        map_verdicts_free(verdicts);
        return status;
    }
    if (verdicts->count)
        qsort(verdicts->all, verdicts->count, sizeof *verdicts->all, worst_first);
    for (size_t i = 0; i < verdicts->count; i++) {
        verdicts->slower += verdicts->all[i].verdict == MAP_SLOWER;
        verdicts->unsure += verdicts->all[i].open;
    }
    return 0;
}

void map_verdicts_free(struct map_verdicts *verdicts)
{
    free(verdicts->all);
    *verdicts = (struct map_verdicts){0};
}
