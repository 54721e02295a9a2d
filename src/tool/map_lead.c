/* SPDX-License-Identifier: BSD-3-Clause */
/* weft map, the leader: what ranks send is checked and collected; after the first stage the model
 * says what is to be measured again, and at the end what is slow. */
#include "tool/map.h"
#include "tool/shell.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double power_wanted = 0.8;
/* Measurements of a suspect for a verdict; with fewer ranks it has fewer healthy partners. */
enum { VERDICT_LEAST = 4, RANKS_LEAST = 5 };

int map_lead_open(struct map_lead *l, const struct map_rank *rank)
{
    struct map_record *r = &l->record;
    uint32_t nodes = rank->size;
    l->rank = rank;
    r->nodes = r->first.nodes = r->second.nodes = r->third.nodes = nodes;
    r->names = calloc(nodes + 1U, sizeof *r->names);
    r->group_names = calloc(nodes + 1U, sizeof *r->group_names);
    r->group_of = calloc(nodes + 1U, sizeof *r->group_of);
    r->struck = calloc(nodes + 1U, sizeof *r->struck);
    l->suspects = calloc(nodes + 1U, sizeof *l->suspects);
    if (!r->names || !r->group_names || !r->group_of || !r->struck || !l->suspects)
        return fail(-ENOMEM, "no memory for a map of %u ranks", nodes);
    return 0;
}

void map_lead_close(struct map_lead *l)
{
    struct map_record *r = &l->record;
    if (r->verdicts)
        map_verdicts_free(&l->verdicts);
    if (r->model)
        map_model_free(&l->model);
    map_cells_free(&r->first);
    map_cells_free(&r->second);
    map_cells_free(&r->third);
    free(r->names);
    free(r->group_names);
    free(r->group_of);
    free(r->struck);
    free(r->lost);
    free(l->suspects);
    free(l->pairs);
    free(l->answer);
}

static int add_lost(struct map_lead *l, uint32_t a, uint32_t b, uint32_t round, const char *reason)
{
    struct map_record *r = &l->record;
    struct map_lost *more = realloc(r->lost, (r->lost_count + 1) * sizeof *more);
    if (!more)
        return fail(-ENOMEM, "no memory for what was lost");
    r->lost = more;
    more += r->lost_count++;
    *more = (struct map_lost){.a = a, .b = b, .round = round};
    snprintf(more->reason, sizeof more->reason, "%s", reason);
    text_clean(more->reason);
    return 0;
}

/* ---- before the first round ---- */

static const struct map_ready *ready_of(const struct group_value *value)
{
    const struct map_ready *ready = value->bytes;
    return ready && value->length == sizeof *ready && ready->magic == MAP_MAGIC ? ready : NULL;
}

/* Copies a text that may have no end. */
static void take_text(char *to, size_t room, const char *from, size_t length)
{
    snprintf(to, room, "%.*s", (int)strnlen(from, length), from);
    text_clean(to);
}

/* Ranks that cannot open the device take no part; if none can, that is the end. */
static int sort_out(struct map_lead *l, const struct group_value *values, size_t *count)
{
    struct map_record *r = &l->record;
    char why[MAP_REASON] = "";
    int status = 0, last = 0;
    uint32_t good = 0;
    for (uint32_t i = 0; i < r->nodes && !status; i++) {
        const struct map_ready *ready = ready_of(&values[i]);
        if (!values[i].bytes)
            continue;
        if (ready && !ready->status) {
            if (!good++) {
                take_text(r->head.form, sizeof r->head.form, ready->form, 160);
                if (!*r->head.device)
                    take_text(r->head.device, sizeof r->head.device, ready->device, 160);
            }
            continue;
        }
        take_text(why, sizeof why, ready ? ready->why : "of another version", MAP_REASON);
        last = ready && ready->status < 0 && ready->status > -4096 ? ready->status : -EPROTO;
        l->answer[(*count)++] = i;
        r->struck[i] = true;
        status = add_lost(l, i, MAP_NONE, 0, why);
    }
    if (status || good >= 2)
        return status;
    return last ? fail(last, "%s", why) : fail(-ETIMEDOUT, "fewer than two ranks are there");
}

int map_lead_ready(void *arg, const struct group_value *values, struct group_value *answer)
{
    struct map_lead *l = arg;
    uint64_t seed = l->rank->request->options->seed;
    size_t count = 2;
    l->answer = calloc(l->record.nodes + 2U, sizeof *l->answer);
    int status = l->answer ? 0 : fail(-ENOMEM, "no memory for %u ranks", l->record.nodes);
    if (!status && !seed)
        status = random_word(&seed);
    if (!status)
        status = map_lead_places(l, values);
    if (!status)
        status = sort_out(l, values, &count);
    if (!status)
        status = cell_file_open(&l->cells, &l->record, l->rank->request->options->cells);
    if (status)
        return status;
    l->answer[0] = (uint32_t)seed;
    l->answer[1] = (uint32_t)(seed >> 32);
    *answer = (struct group_value){l->answer, count * sizeof *l->answer};
    return 0;
}

/* ---- after a step ---- */

static const struct map_value *value_of(const struct group_value *value)
{
    const struct map_value *v = value->bytes;
    size_t head = offsetof(struct map_value, list);
    if (!v || value->length < head || v->magic != MAP_MAGIC || v->entries > MAP_BUCKETS ||
        value->length != map_value_length(v))
        return NULL;
    return v;
}

static int take_cell(struct map_lead *l, const struct map_value *v)
{
    struct map_record *r = &l->record;
    struct map_cells *const stages[] = {&r->first, &r->second, &r->third};
    struct map_cell cell = v->cell;
    cell.round = l->rank->at.round;
    int status = map_cells_add(stages[l->rank->at.stage], &cell);
    if (!status && v->unresolved_us > 0 && l->rank->at.stage == MAP_FIRST) {
        r->unresolved++;
        r->resolution_us = fmaxf(r->resolution_us, v->unresolved_us);
    }
    for (uint32_t i = 0; i < v->entries && !status && l->rank->at.stage == MAP_FIRST; i++) {
        uint32_t bucket = v->list[i].bucket < MAP_BUCKETS ? v->list[i].bucket : MAP_BUCKETS - 1;
        r->histogram.buckets[bucket] += v->list[i].count;
    }
    return status;
}

/* One end of the pair is enough to say it; of a rank that was struck it is no news. */
static int note_failure(struct map_lead *l, uint32_t rank, uint32_t other, const char *why)
{
    char clean[MAP_REASON];
    take_text(clean, sizeof clean, why, MAP_REASON);
    return rank < other ? add_lost(l, rank, other, l->rank->at.base + l->rank->at.round, clean) : 0;
}

int map_lead_take(void *arg, const struct group_value *values, struct group_value *answer)
{
    struct map_lead *l = arg;
    int status = 0;
    *answer = (struct group_value){0};
    for (uint32_t i = 0; i < l->record.nodes && !status; i++) {
        const struct map_value *v = value_of(&values[i]);
        uint32_t other = v ? map_rank_partner(l->rank, i) : MAP_NONE;
        if (other == MAP_NONE)
            continue;
        bool both = i < other && v->cell.a == i && v->cell.b == other;
        if (v->status && values[other].bytes)
            status = note_failure(l, i, other, v->why);
        else if (!v->status && both && v->cell.count && take_cell(l, v))
            status = note_failure(l, i, other, fail_reason());
    }
    cell_file_write(&l->cells, &l->record);
    return status;
}

/* ---- what is measured again ---- */

static int fit(struct map_lead *l)
{
    struct map_record *r = &l->record;
    r->plan = l->rank->plan;
    r->head.partners = r->plan.rounds;
    int status = map_fit(&l->model, &r->first, MAP_P50, r->groups > 1 ? r->group_of : NULL,
                         r->groups > 1 ? r->groups : 1, l->rank->request->min_effect);
    if (!status)
        r->model = &l->model;
    return status;
}

/* Of those that are there still, and no more than the plan can have. */
static void choose_suspects(struct map_lead *l)
{
    const struct map_rank *m = l->rank;
    uint32_t count = map_suspects(&l->model, l->suspects), present = 0, kept = 0;
    for (uint32_t i = 0; i < m->size; i++)
        present += !m->out[i] && group_alive(m->group, i);
    for (uint32_t i = 0; i < count; i++)
        if (!m->out[l->suspects[i]] && group_alive(m->group, l->suspects[i]) &&
            2 * (kept + 2) <= present)
            l->suspects[kept++] = l->suspects[i];
    l->suspect_count = kept;
}

/* A single pair is looked for only where all were measured. */
static int choose_pairs(struct map_lead *l)
{
    const struct map_plan *plan = &l->rank->plan;
    if (plan->rounds + 1 < plan->ranks)
        return 0;
    return map_suspect_pairs(&l->model, plan->seed, &l->pairs, &l->pair_count);
}

static int write_answer(struct map_lead *l, struct group_value *answer)
{
    size_t count = 0, room = 2 + l->suspect_count + 2 * l->pair_count;
    uint32_t *words = realloc(l->answer, room * sizeof *words);
    if (!words)
        return fail(-ENOMEM, "no memory for the second plan");
    l->answer = words;
    words[count++] = l->suspect_count;
    for (uint32_t i = 0; i < l->suspect_count; i++)
        words[count++] = l->suspects[i];
    words[count++] = (uint32_t)l->pair_count;
    for (size_t i = 0; i < l->pair_count; i++) {
        words[count++] = l->pairs[i].a;
        words[count++] = l->pairs[i].b;
    }
    *answer = (struct group_value){words, count * sizeof *words};
    return 0;
}

/* What cannot be judged is not measured again: the map has its cells all the same. */
int map_lead_choose(void *arg, const struct group_value *values, struct group_value *answer)
{
    struct map_lead *l = arg;
    (void)values;
    if (fit(l))
        return write_answer(l, answer);
    choose_suspects(l);
    int status = choose_pairs(l);
    return status ? status : write_answer(l, answer);
}

/* ---- the end ---- */

static int judge(struct map_lead *l)
{
    struct map_record *r = &l->record;
    struct map_second second = {.cells = &r->second,
                                .suspects = l->suspects,
                                .suspect_count = l->suspect_count,
                                .again = l->pair_count ? &r->third : NULL,
                                .pairs = l->pairs,
                                .pair_count = l->pair_count};
    if (!r->model || !l->complete)
        return 0;
    int status = map_judge(&l->verdicts, &l->model, &second, l->rank->request->min_effect);
    if (!status)
        r->verdicts = &l->verdicts;
    return status;
}

static int note_deaths(struct map_lead *l)
{
    struct group *group = l->rank->group;
    int status = 0;
    for (uint32_t i = 0; i < group_deaths(group) && !status; i++) {
        const struct group_death *death = group_death(group, i);
        l->record.struck[death->rank] = true;
        status = add_lost(l, death->rank, MAP_NONE, death->round, death->reason);
    }
    return status;
}

static uint32_t count_struck(const struct map_record *r)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < r->nodes; i++)
        count += r->struck[i];
    return count;
}

/* Ranks of one host do not meet, unless there is one. */
static bool may_meet(const struct map_rank *m, uint32_t a, uint32_t b)
{
    return m->one_host || strcmp(group_node(m->group, a), group_node(m->group, b)) != 0;
}

/* How many pairs the first stage was to measure. */
static size_t pairs_planned(const struct map_rank *m, bool shared)
{
    const struct map_plan *plan = &m->plan;
    bool all = plan->rounds + 1 >= plan->ranks;
    size_t n = plan->ranks, count = 0;
    if (!shared)
        return all ? n * (n - 1) / 2 : plan->rounds * (n / 2);
    for (uint32_t a = 0; a < n && all; a++)
        for (uint32_t b = a + 1; b < n; b++)
            count += may_meet(m, a, b);
    for (uint32_t round = 0; round < plan->rounds && !all; round++)
        for (uint32_t a = 0; a < n; a++) {
            uint32_t turn, b = map_partner(plan, round, a, &turn);
            count += b != MAP_NONE && a < b && may_meet(m, a, b);
        }
    return count;
}

__attribute__((format(printf, 3, 4))) static void conclude(struct map_record *r, int code,
                                                           const char *format, ...)
{
    va_list args;
    va_start(args, format);
    r->code = code;
    vsnprintf(r->ending, sizeof r->ending, format, args);
    va_end(args);
}

/* ---- nothing is named: could it have been? ---- */

/* What would tell more. */
static const char *remedy(const struct map_lead *l)
{
    const struct map_rank *m = l->rank;
    const struct map_verdicts *v = l->record.verdicts;
    uint32_t again = m->request->again;
    if (!m->again.ranks || v->cells_each < VERDICT_LEAST)
        return again && again < VERDICT_LEAST ? "use a larger K2 (--partners K+K2), 4 or more"
                                              : "use more ranks";
    if (l->record.head.iterations)
        return again > m->again.rounds
                   ? "use more iterations (-n)"
                   : "use more iterations (-n) or a larger K2 (--partners K+K2)";
    return again > m->again.rounds ? "use a longer --slot"
                                   : "use a longer --slot or a larger K2 (--partners K+K2)";
}

/* The first ones by name. */
static void name_open(const struct map_record *r, char *text, size_t room)
{
    enum { NAMED = 3 };
    size_t named = 0, length = 0;
    for (size_t i = 0; i < r->verdicts->count; i++) {
        char what[2 * MAP_NAME + 16];
        const struct map_finding *f = &r->verdicts->all[i];
        if (!f->open || named == NAMED)
            continue;
        map_finding_text(r, f, what, sizeof what);
        int n = snprintf(text + length, room - length, "%s%s", named++ ? ", " : "", what);
        length += n > 0 && (size_t)n < room - length ? (size_t)n : 0;
    }
    if (r->verdicts->unsure > named)
        snprintf(text + length, room - length, " and %zu more", r->verdicts->unsure - named);
}

static void conclude_good(struct map_record *r)
{
    double least = 100 * r->head.min_effect;
    size_t near = 0;
    for (size_t i = 0; i < r->verdicts->count; i++)
        near += r->verdicts->all[i].verdict == MAP_UNSURE &&
                map_worth(&r->verdicts->all[i], r->head.min_effect);
    if (near)
        conclude(r, EXIT_DONE,
                 "Nothing is slower by %.3g %% or more; pairs of which that is not certain: %zu",
                 least, near);
    else
        conclude(r, EXIT_DONE, "Nothing is slower by %.3g %% or more", least);
}

/* Whether verdicts could have named a slow node. */
static void conclude_power(struct map_lead *l)
{
    struct map_record *r = &l->record;
    const struct map_verdicts *v = r->verdicts;
    double effect = 2 * r->head.min_effect;
    char names[320] = "";
    if (v->unsure) {
        name_open(r, names, sizeof names);
        conclude(r, EXIT_UNSURE, "Cannot tell: %s may be slow; %s", names, remedy(l));
    } else if (2 * r->unresolved >= r->first.count) {
        conclude(r, EXIT_UNSURE,
                 "Cannot tell: the clock cannot resolve the medians of %zu of %zu pairs; measure "
                 "something longer, such as a larger --size",
                 r->unresolved, r->first.count);
    } else if (r->nodes < RANKS_LEAST) {
        conclude(r, EXIT_UNSURE,
                 "Cannot tell: %u ranks are too few to find a slow one; use %d or more", r->nodes,
                 RANKS_LEAST);
    } else if (v->nodes < RANKS_LEAST) {
        conclude(r, EXIT_UNSURE,
                 "Cannot tell: fewer than %d ranks were measured in 3 pairs or more; use more "
                 "partners (--partners K+K2)",
                 RANKS_LEAST);
    } else if (v->cells_each < VERDICT_LEAST) {
        conclude(r, EXIT_UNSURE,
                 "Cannot tell: suspects were measured again %u times, and a verdict needs %d; %s",
                 v->cells_each, VERDICT_LEAST, remedy(l));
    } else if (!(map_power(v, effect) >= power_wanted)) {
        bool sampled = r->plan.rounds + 1 < r->plan.ranks;
        conclude(r, EXIT_UNSURE,
                 "Cannot tell: a node %.3g %% slower might not have been found; %s%s", 100 * effect,
                 remedy(l), sampled ? ", or more partners" : "");
    } else {
        conclude_good(r);
    }
}

static void conclude_nothing(struct map_lead *l, uint32_t struck)
{
    struct map_record *r = &l->record;
    if (!r->first.count && struck)
        conclude(r, EXIT_NO_PEER, "No pair could be measured, and ranks were lost: %u", struck);
    else if (!r->first.count)
        conclude(r, EXIT_FAILED, "No pair could be measured");
    else if (struck)
        conclude(r, EXIT_UNSURE, "Cannot tell: nothing is named, but ranks were lost: %u", struck);
    else if (!r->verdicts)
        conclude(r, EXIT_UNSURE, "Cannot tell: too few pairs were measured");
    else
        conclude_power(l);
}

int map_lead_judge(struct map_lead *l, int status)
{
    struct map_record *r = &l->record;
    char why[400];
    snprintf(why, sizeof why, "%s", status ? fail_reason() : "");
    int failed = note_deaths(l);
    if (!failed)
        failed = judge(l);
    if (failed)
        return failed;
    uint32_t struck = count_struck(r);
    r->plan = l->rank->plan;
    if (r->plan.ranks)
        r->planned = pairs_planned(l->rank, r->hosts < r->nodes && !l->rank->one_host);
    r->head.again = l->rank->again.rounds;
    if (status) {
        r->code = shell_exit_code(status);
        snprintf(r->ending, sizeof r->ending, "Ended early: %s", why);
        return fail(status, "%s", why);
    }
    if (r->verdicts && r->verdicts->slower)
        conclude(r, EXIT_THRESHOLD, "Slower: %zu named", r->verdicts->slower);
    else
        conclude_nothing(l, struck);
    if (2 * struck > r->nodes)
        conclude(r, EXIT_NO_PEER, "%u ranks were lost: more than half", struck);
    return 0;
}
