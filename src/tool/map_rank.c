/* SPDX-License-Identifier: BSD-3-Clause */
/* weft map, one rank: its device stays open and its memory exposed; each partner is an ordinary
 * run of a session. */
#include "tool/map.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- what came of a run ---- */

struct catcher {
    struct report report;
    struct map_value *value;
    bool latency; /* samples are what is wanted; otherwise the time per operation */
};

/* What the clock cannot resolve counts as what it can: pairs do not differ by it. */

/* Samples in units of the figure, into compact buckets. */
static void add_histogram(struct map_value *v, const struct result *r)
{
    double least_ps = r->sampling.resolution_ns * 1e3;
    uint32_t last = UINT32_MAX;
    for (size_t i = 0; i < STATS_BUCKETS; i++) {
        double low, high;
        if (!r->stats->buckets[i])
            continue;
        stats_bounds(i, &low, &high);
        uint64_t ps = (uint64_t)fmax((low + high) / 2 * r->us_per_unit * 1e6, least_ps);
        uint32_t bucket = (uint32_t)(stats_bucket(ps) >> MAP_SHIFT);
        if (bucket != last && v->entries < MAP_BUCKETS)
            v->list[v->entries++] = (struct map_entry){.bucket = bucket};
        v->list[v->entries - 1].count += (uint32_t)r->stats->buckets[i];
        last = bucket;
    }
}

static void note_samples(struct map_value *v, const struct result *r)
{
    const struct stats *s = r->stats;
    double least_us = r->sampling.resolution_ns / 1000, p99;
    if (stats_percentile(s, 0.99, &p99))
        p99 = (double)s->max_ps;
    v->cell.min_us = (float)fmax((double)s->min_ps * r->us_per_unit, least_us);
    v->cell.p50_us = (float)fmax(stats_median_ps(s) * r->us_per_unit, least_us);
    v->cell.p99_us = (float)fmax(p99 * r->us_per_unit, least_us);
    v->cell.max_us = (float)fmax((double)s->max_ps * r->us_per_unit, least_us);
    v->unresolved_us = r->sampling.resolved ? 0 : (float)least_us;
    v->cell.count = s->count < UINT32_MAX ? (uint32_t)s->count : UINT32_MAX;
    add_histogram(v, r);
}

/* A stream has one figure: the inverse of its rate. */
static void note_rate(struct map_value *v, const struct result *r)
{
    double us = r->elapsed_s * 1e6 / (double)r->count;
    v->cell.min_us = v->cell.p50_us = v->cell.p99_us = v->cell.max_us = (float)us;
    v->cell.count = r->count < UINT32_MAX ? (uint32_t)r->count : UINT32_MAX;
    v->list[v->entries++] =
        (struct map_entry){(uint32_t)(stats_bucket((uint64_t)(us * 1e6)) >> MAP_SHIFT), 1};
}

static int catch_row(struct report *report, const struct result *result)
{
    struct catcher *c = (struct catcher *)report;
    if (c->latency && result->stats && result->stats->count)
        note_samples(c->value, result);
    else if (!c->latency && result->count && isfinite(result->elapsed_s))
        note_rate(c->value, result);
    return 0;
}

static const struct report_ops catch_ops = {.name = "map", .row = catch_row};

/* ---- a pair ---- */

/* No other meeting of the two has this number. */
static uint64_t ticket_of(const struct map_rank *m)
{
    return m->at.step + 1U;
}

/* The ends of a pair on two CPUs, the next pair of this step on the next two: left alone, ranks
 * that wake each other are put on one. */
static int take_cpu(const struct map_rank *m, uint32_t other)
{
    uint32_t lower = m->rank < other ? m->rank : other;
    size_t before = 0;
    for (uint32_t i = 0; i < lower; i++) {
        uint32_t partner = map_rank_partner(m, i);
        before += partner != MAP_NONE && i < partner;
    }
    return cpu_pin(m->cpus.cpus[(2 * before + (m->rank > other)) % m->cpus.count]);
}

static int run_pair(struct map_rank *m, uint32_t other, struct catcher *c)
{
    struct spec spec = m->request->options->spec;
    struct peer *peer;
    int as = m->rank < other ? PEER_CLIENT : PEER_SERVER;
    c->latency = strcmp(method_of(&spec)->samples(&spec), "latency") == 0;
    int status = m->cpus.count ? take_cpu(m, other) : 0;
    if (!status)
        status = group_meet(m->group, other, as, ticket_of(m), spec.timeout_ms, &peer);
    if (status)
        return status;
    session_turn(&m->session, peer);
    status = session_run(&m->session, &m->offer, &spec, 0, as == PEER_CLIENT ? &c->report : NULL);
    session_turn(&m->session, NULL);
    peer_close(peer);
    return status;
}

void map_pair(struct map_rank *m, uint32_t other, struct map_value *v)
{
    struct catcher catcher = {.report = {&catch_ops}, .value = v};
    v->cell = (struct map_cell){.a = m->rank, .b = other, .round = m->at.round};
    v->status = run_pair(m, other, &catcher);
    if (v->status)
        snprintf(v->why, sizeof v->why, "%s", fail_reason());
}

size_t map_value_length(const struct map_value *v)
{
    return offsetof(struct map_value, list) + v->entries * sizeof *v->list;
}
