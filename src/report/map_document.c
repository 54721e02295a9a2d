/* SPDX-License-Identifier: BSD-3-Clause */
/* A map as share/schema describes it. All pairs of a small map are in it; of a large one the
 * slowest, and --cells has the others. */
#include "core/machine.h"
#include "report/maps.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const map_verdict_words[] = {
    [MAP_SLOWER] = "slower", [MAP_NOT_AGAIN] = "not again", [MAP_UNSURE] = "cannot tell"};
const char *const map_kind_words[] = {
    [MAP_GROUP] = "group", [MAP_GROUP_PAIR] = "groups", [MAP_NODE] = "node", [MAP_PAIR] = "pair"};

/* ---- histograms ---- */

void map_bounds(size_t bucket, double *low_us, double *high_us)
{
    double ignored;
    stats_bounds(bucket << MAP_SHIFT, low_us, &ignored);
    stats_bounds(((bucket + 1) << MAP_SHIFT) - 1, &ignored, high_us);
    *low_us /= 1e6;
    *high_us /= 1e6;
}

double map_share(const struct map_histogram *h, double share)
{
    uint64_t count = 0, below = 0;
    double low, high;
    for (size_t i = 0; i < MAP_BUCKETS; i++)
        count += h->buckets[i];
    for (size_t i = 0; i < MAP_BUCKETS && count; i++) {
        below += h->buckets[i];
        if ((double)below < share * (double)count)
            continue;
        map_bounds(i, &low, &high);
        return (low + high) / 2;
    }
    return NAN;
}

void map_finding_text(const struct map_record *r, const struct map_finding *f, char *text,
                      size_t room)
{
    bool groups = f->kind == MAP_GROUP || f->kind == MAP_GROUP_PAIR;
    char(*names)[MAP_NAME] = groups ? r->group_names : r->names;
    snprintf(text, room, f->b == MAP_NONE ? "%s %s" : "%s %s - %s", map_kind_words[f->kind],
             names[f->a], f->b == MAP_NONE ? "" : names[f->b]);
}

/* ---- JSON ---- */

static void write_head(struct json *j, const struct map_record *r)
{
    const struct map_head *h = &r->head;
    json_text(j, "schema", "weft-map");
    json_count(j, "version", 1);
    json_text(j, "weft", core_version());
    json_text(j, "commit", core_commit());
    json_open(j, "command", '[');
    for (int i = 0; i < h->argc; i++)
        json_text(j, NULL, h->argv[i]);
    json_close(j, ']');
    json_text(j, "begun", h->begun);
    json_text(j, "ended", h->ended);
    json_text(j, "test", h->test);
    json_text(j, "time", h->time);
    json_count(j, "size", h->size);
    json_open(j, "fabric", '{');
    json_text(j, "device", h->device);
    json_text(j, "form", h->form);
    json_close(j, '}');
    json_open(j, "launch", '{');
    json_text(j, "muster", h->how);
    json_count(j, "ranks", r->nodes);
    json_count(j, "hosts", r->hosts);
    json_bool(j, "trusted", h->trusted);
    json_close(j, '}');
}

static void write_schedule(struct json *j, const struct map_record *r)
{
    char seed[24];
    snprintf(seed, sizeof seed, "%016" PRIx64, r->plan.seed);
    json_open(j, "schedule", '{');
    json_text(j, "seed", seed);
    json_count(j, "rounds", r->plan.rounds);
    json_count(j, "partners", r->head.partners);
    json_count(j, "again", r->head.again);
    json_count(j, "at_once", r->plan.at_once);
    json_count(j, "slot_ms", r->head.slot_ms);
    json_count(j, "iterations", r->head.iterations);
    json_close(j, '}');
}

/* What is to be said of a node; NULL: it never looked slow. */
static const struct map_finding *judged(const struct map_record *r, uint32_t node)
{
    for (size_t i = 0; r->verdicts && i < r->verdicts->count; i++)
        if (r->verdicts->all[i].kind == MAP_NODE && r->verdicts->all[i].a == node &&
            map_worth(&r->verdicts->all[i], r->head.min_effect))
            return &r->verdicts->all[i];
    return NULL;
}

/* Times of a node: the medians of those of its pairs. */
struct times {
    uint32_t pairs;
    double p50_us, p99_us;
};

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double middle_of(double *values, size_t count)
{
    if (!count)
        return NAN;
    qsort(values, count, sizeof *values, by_value);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

/* Each pair counts at both its nodes: the pairs of a node one after the other, then their middle.
 */
static int find_times(const struct map_record *r, struct times *times)
{
    size_t *from = calloc(r->nodes + 1U, sizeof *from);
    double *p50 = calloc(2 * r->first.count + 1, sizeof *p50);
    double *p99 = calloc(2 * r->first.count + 1, sizeof *p99);
    if (!from || !p50 || !p99) {
        free(from);
        free(p50);
        free(p99);
        return fail(-ENOMEM, "no memory for %u nodes", r->nodes);
    }
    for (size_t c = 0; c < r->first.count; c++) {
        times[r->first.all[c].a].pairs++;
        times[r->first.all[c].b].pairs++;
    }
    for (uint32_t i = 0; i < r->nodes; i++)
        from[i + 1] = from[i] + times[i].pairs;
    for (size_t c = 0; c < 2 * r->first.count; c++) {
        const struct map_cell *cell = &r->first.all[c / 2];
        size_t at = from[c % 2 ? cell->b : cell->a]++;
        p50[at] = (double)cell->p50_us;
        p99[at] = (double)cell->p99_us;
    }
    for (uint32_t i = 0; i < r->nodes; i++) {
        size_t first = from[i] - times[i].pairs;
        times[i].p50_us = middle_of(p50 + first, times[i].pairs);
        times[i].p99_us = middle_of(p99 + first, times[i].pairs);
    }
    free(from);
    free(p50);
    free(p99);
    return 0;
}

static void write_bandwidth(struct json *j, const struct map_record *r, double us)
{
    if (map_is_rate(&r->head))
        json_number(j, "mb_per_s", map_mb_per_s(r->head.size, us));
}

static void write_node(struct json *j, const struct map_record *r, const struct times *times,
                       uint32_t i)
{
    const struct map_model *m = r->model;
    const struct map_finding *f = judged(r, i);
    bool known = m && m->pairs[i];
    json_open(j, NULL, '{');
    json_text(j, "name", r->names[i]);
    json_text(j, "group", r->groups > 1 ? r->group_names[r->group_of[i]] : NULL);
    json_text(j, "state", r->struck[i] ? "lost" : "present");
    json_count(j, "pairs", times[i].pairs);
    json_number(j, "effect_percent", known ? 100 * expm1(m->effects[i]) : NAN);
    json_number(j, "p50_us", times[i].p50_us);
    json_number(j, "p99_us", times[i].p99_us);
    write_bandwidth(j, r, times[i].p50_us);
    json_text(j, "verdict", f ? map_verdict_words[f->verdict] : NULL);
    json_close(j, '}');
}

static int write_nodes(struct json *j, const struct map_record *r)
{
    struct times *times = calloc(r->nodes + 1U, sizeof *times);
    if (!times)
        return fail(-ENOMEM, "no memory for %u nodes", r->nodes);
    int status = find_times(r, times);
    json_open(j, "nodes", '[');
    for (uint32_t i = 0; i < r->nodes && !status; i++)
        write_node(j, r, times, i);
    free(times);
    json_close(j, ']');
    json_open(j, "groups", '[');
    for (uint32_t i = 0; i < r->groups && r->groups > 1; i++)
        json_text(j, NULL, r->group_names[i]);
    json_close(j, ']');
    return status;
}

static int by_time(const void *a, const void *b)
{
    const struct map_cell *x = a, *y = b;
    return (x->p50_us < y->p50_us) - (x->p50_us > y->p50_us);
}

static void write_cell(struct json *j, const struct map_record *r, const struct map_cell *c)
{
    json_open(j, NULL, '{');
    json_count(j, "a", c->a);
    json_count(j, "b", c->b);
    json_count(j, "round", c->round);
    json_count(j, "count", c->count);
    json_number(j, "min_us", (double)c->min_us);
    json_number(j, "p50_us", (double)c->p50_us);
    json_number(j, "p99_us", (double)c->p99_us);
    json_number(j, "max_us", (double)c->max_us);
    write_bandwidth(j, r, (double)c->p50_us);
    json_close(j, '}');
}

static int write_pairs(struct json *j, const struct map_record *r)
{
    size_t count = r->first.count;
    struct map_cell *order = calloc(count + 1, sizeof *order);
    if (!order)
        return fail(-ENOMEM, "no memory for %zu pairs", count);
    if (count)
        memcpy(order, r->first.all, count * sizeof *order);
    if (r->nodes > MAP_ALL_PAIRS) {
        qsort(order, count, sizeof *order, by_time);
        count = count < MAP_WORST_PAIRS ? count : MAP_WORST_PAIRS;
    }
    json_count(j, "pairs_planned", r->planned);
    json_count(j, "pairs_measured", r->first.count);
    json_count(j, "pairs_unresolved", r->unresolved);
    json_number(j, "resolution_us", r->unresolved ? (double)r->resolution_us : NAN);
    json_open(j, "pairs", '[');
    for (size_t i = 0; i < count; i++)
        write_cell(j, r, &order[i]);
    json_close(j, ']');
    free(order);
    return 0;
}

static void write_findings(struct json *j, const struct map_record *r)
{
    json_open(j, "findings", '[');
    for (size_t i = 0; r->verdicts && i < r->verdicts->count; i++) {
        const struct map_finding *f = &r->verdicts->all[i];
        if (!map_worth(f, r->head.min_effect))
            continue;
        json_open(j, NULL, '{');
        json_text(j, "kind", map_kind_words[f->kind]);
        json_count(j, "a", f->a);
        if (f->b != MAP_NONE)
            json_count(j, "b", f->b);
        json_text(j, "verdict", map_verdict_words[f->verdict]);
        json_number(j, "first_percent", 100 * f->first);
        json_number(j, "effect_percent", 100 * f->effect);
        json_number(j, "low_percent", 100 * f->low);
        json_number(j, "high_percent", 100 * f->high);
        json_count(j, "cells", f->cells);
        json_close(j, '}');
    }
    json_close(j, ']');
}

static void write_model(struct json *j, const struct map_record *r)
{
    static const double effects[] = {0.05, 0.1, 0.15, 0.2};
    json_open(j, "model", '{');
    json_number(j, "noise_percent", r->model ? 100 * r->model->noise : NAN);
    json_number(j, "min_effect_percent", 100 * r->head.min_effect);
    json_open(j, "power", '[');
    for (size_t i = 0; i < LENGTH(effects) && r->verdicts; i++) {
        json_open(j, NULL, '{');
        json_number(j, "effect_percent", 100 * effects[i]);
        json_number(j, "probability", map_power(r->verdicts, effects[i]));
        json_close(j, '}');
    }
    json_close(j, ']');
    json_close(j, '}');
}

static void write_histogram(struct json *j, const struct map_record *r)
{
    json_open(j, "histogram", '[');
    for (size_t bucket = 0; bucket < MAP_BUCKETS; bucket++) {
        double low, high;
        uint64_t count = r->histogram.buckets[bucket];
        if (!count)
            continue;
        map_bounds(bucket, &low, &high);
        json_open(j, NULL, '{');
        json_number(j, "low_us", low);
        json_number(j, "high_us", high);
        json_count(j, "count", count);
        json_close(j, '}');
    }
    json_close(j, ']');
}

static void write_lost(struct json *j, const struct map_record *r)
{
    for (int pairs = 0; pairs < 2; pairs++) {
        json_open(j, pairs ? "failed" : "lost", '[');
        for (size_t i = 0; i < r->lost_count; i++) {
            const struct map_lost *lost = &r->lost[i];
            if ((lost->b != MAP_NONE) != pairs)
                continue;
            json_open(j, NULL, '{');
            json_count(j, pairs ? "a" : "node", lost->a);
            if (pairs)
                json_count(j, "b", lost->b);
            json_count(j, "round", lost->round);
            json_text(j, "reason", lost->reason);
            json_close(j, '}');
        }
        json_close(j, ']');
    }
}

static int write_document(const struct map_record *r, FILE *out)
{
    struct json j = {.out = out, .lines = 2};
    json_open(&j, NULL, '{');
    write_head(&j, r);
    write_schedule(&j, r);
    int status = write_nodes(&j, r);
    if (!status)
        status = write_pairs(&j, r);
    write_findings(&j, r);
    write_model(&j, r);
    write_histogram(&j, r);
    write_lost(&j, r);
    json_open(&j, "ending", '{');
    json_count(&j, "code", (uint64_t)r->code);
    json_text(&j, "reason", r->ending);
    json_close(&j, '}');
    json_close(&j, '}');
    fputc('\n', out);
    return status;
}

/* ---- CSV ---- */

static int write_csv(const struct map_record *r, FILE *out)
{
    fprintf(out, "a,b,round,count,min_us,p50_us,p99_us,max_us%s\n",
            map_is_rate(&r->head) ? ",mb_per_s" : "");
    for (size_t i = 0; i < r->first.count; i++) {
        const struct map_cell *c = &r->first.all[i];
        csv_field(out, r->names[c->a], strlen(r->names[c->a]));
        csv_field(out, r->names[c->b], strlen(r->names[c->b]));
        fprintf(out, "%u,%u,%.4f,%.4f,%.4f,%.4f", c->round, c->count, (double)c->min_us,
                (double)c->p50_us, (double)c->p99_us, (double)c->max_us);
        if (map_is_rate(&r->head))
            fprintf(out, ",%.3f", map_mb_per_s(r->head.size, (double)c->p50_us));
        fputc('\n', out);
    }
    return 0;
}

static int save(const struct map_record *r, const char *path,
                int (*write)(const struct map_record *, FILE *))
{
    char *bytes = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&bytes, &length);
    if (!out)
        return fail(-ENOMEM, "no memory for a document");
    int status = write(r, out);
    if (fclose(out) && !status)
        status = fail(-ENOMEM, "no memory for a document");
    if (!status)
        status = save_write(path, bytes, length);
    free(bytes);
    return status;
}

int map_save_json(const struct map_record *r, const char *path)
{
    return save(r, path, write_document);
}

int map_save_csv(const struct map_record *r, const char *path)
{
    return save(r, path, write_csv);
}
