/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters of network devices in documents, conditions and sentences. A result has those of both
 * ends, or none if the size was not measured to its end. */
#include "report/report.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static const char *const roles[] = {[PEER_CLIENT] = "client", [PEER_SERVER] = "server"};

/* ---- conditions ---- */

/* All that count errors, together. */
static double sum_errors(const struct counters *end, bool *sure)
{
    double sum = 0;
    bool any = false;
    for (unsigned i = 0; i < end->count; i++) {
        const struct counter *c = &end->list[i];
        if (!counter_is_error(c->name))
            continue;
        sum += (double)c->value;
        any = true;
        *sure &= c->known;
    }
    *sure &= any;
    return any ? sum : NAN;
}

static double value_at(const struct counters *end, const char *name, bool *sure)
{
    const struct counter *c = counters_find(end, name);
    if (!c && strcmp(name, COUNTERS_ERRORS) == 0)
        return sum_errors(end, sure);
    *sure &= c && c->known;
    return c && c->known ? (double)c->value : NAN;
}

double counter_value(const struct condition *condition, const struct result *r, bool *sure)
{
    double larger = NAN;
    *sure = r->counters.pairs;
    for (unsigned i = 0; i < 2 * r->counters.pairs; i++)
        if (condition->end < 0 || condition->end == (int)(i % 2))
            larger = fmax(larger, value_at(&r->counters.ends[i], condition->counter, sure));
    return larger;
}

/* ---- documents ---- */

static void add_end(struct json *j, const char *key, const struct counters *end)
{
    json_open(j, key, '{');
    json_text(j, "device", *end->device ? end->device : NULL);
    json_text(j, "why", end->why);
    json_open(j, "deltas", '{');
    for (unsigned i = 0; i < end->count; i++)
        if (end->list[i].known)
            json_count(j, end->list[i].name, end->list[i].value);
        else
            json_number(j, end->list[i].name, NAN);
    json_close(j, '}');
    json_close(j, '}');
}

void counters_document(struct json *j, const struct facts *facts, const struct result *r)
{
    if (!*facts->spec->counters)
        return;
    json_open(j, "counters", '[');
    for (unsigned i = 0; i < 2 * r->counters.pairs; i++) {
        if (i % 2 == 0)
            json_open(j, NULL, '{');
        add_end(j, roles[i % 2], &r->counters.ends[i]);
        if (i % 2)
            json_close(j, '}');
    }
    json_close(j, ']');
}

/* ---- sentences ---- */

/* Those that did not move are only counted, unless they were asked for by name. */
static void print_end(const struct counters *end, bool listed, FILE *out)
{
    unsigned still = 0, shown = 0;
    for (unsigned i = 0; i < end->count; i++) {
        const struct counter *c = &end->list[i];
        if (c->known && !c->value && !listed) {
            still++;
            continue;
        }
        fprintf(out, "%s%s ", shown++ ? ", " : "", c->name);
        if (c->known)
            fprintf(out, "+%" PRIu64, c->value);
        else
            fprintf(out, "n/a");
    }
    if (still)
        fprintf(out, "%s%u unchanged", shown ? ", " : "", still);
}

void counters_print(const struct counted *counted, const char *which, uint64_t size, FILE *out)
{
    bool listed = counters_listed(which);
    for (unsigned i = 0; i < 2 * counted->pairs; i++) {
        const struct counters *end = &counted->ends[i];
        fprintf(out, "counters: size %" PRIu64 ", %s%s%s: ", size, roles[i % 2],
                *end->device ? " " : "", end->device);
        if (*end->why)
            fprintf(out, "n/a (%s)", end->why);
        else
            print_end(end, listed, out);
        fputc('\n', out);
    }
}
