/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the members of a team meet, and the sum of what they measured. */
#include "bench/team.h"

#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

enum { PARTS_MS = 500, LATE_MS = 500 };

/* ---- meeting ---- */

static int meet(struct report *report, bool first)
{
    struct team_member *m = (struct team_member *)report;
    unsigned mine = atomic_load(&team_own(m)->arrived) + first;
    atomic_store(&team_own(m)->arrived, mine);
    for (unsigned i = 0; i < m->team->count; i++)
        if (atomic_load(&m->team->slots[i].arrived) < mine)
            return team_watch(m);
    return 1;
}

static int64_t cpu_of(const struct msg *about)
{
    uint64_t cpu;
    return msg_number(about, "ran_on", &cpu) ? -1 : (int64_t)cpu;
}

/* Nothing is shown before every member is connected. */
static int on_begin(struct report *report, const struct facts *facts)
{
    struct team_member *m = (struct team_member *)report;
    struct team_slot *slot = team_own(m);
    struct part *part = &slot->part;
    slot->now.turn = 0;
    int status = team_meet(m, facts->session->peer);
    if (status)
        return status;
    memcpy(part->device, slot->device, sizeof part->device);
    part->cpus[PEER_CLIENT] = cpu_of(&facts->about[!facts->initiator]);
    part->cpus[PEER_SERVER] = cpu_of(&facts->about[facts->initiator]);
    m->begun = !m->number && m->sum;
    return m->begun && m->sum->ops->begin ? m->sum->ops->begin(m->sum, facts) : 0;
}

/* ---- the sum ---- */

static void add_figure(struct figure *sum, const struct figure *one)
{
    sum->typical += one->typical;
    sum->recent += one->recent;
    sum->overall += one->overall;
}

/* The mean of two, one with so much weight and the other. */
static double blend(double a, double weight_a, double b, double weight_b)
{
    return weight_a + weight_b > 0 ? (a * weight_a + b * weight_b) / (weight_a + weight_b) : a;
}

/* Rates are added; latencies are of all operations; the time is that of the member that took
 * longest. */
static void add(struct result *sum, const struct result *one)
{
    sum->latency_us.overall = blend(sum->latency_us.overall, (double)sum->count,
                                    one->latency_us.overall, (double)one->count);
    sum->latency_us.recent = blend(sum->latency_us.recent, (double)sum->recent.count,
                                   one->latency_us.recent, (double)one->recent.count);
    sum->recent.count += one->recent.count;
    for (int i = 0; i < 2; i++)
        sum->interference.cpu_ns[i] = blend(sum->interference.cpu_ns[i], (double)sum->count,
                                            one->interference.cpu_ns[i], (double)one->count);
    sum->count += one->count;
    sum->bytes += one->bytes;
    sum->reverse_count += one->reverse_count;
    sum->elapsed_s = fmax(sum->elapsed_s, one->elapsed_s);
    sum->reverse_elapsed_s = fmax(sum->reverse_elapsed_s, one->reverse_elapsed_s);
    add_figure(&sum->rate, &one->rate);
    add_figure(&sum->bandwidth, &one->bandwidth);
    /* All of them have seen the same theft. */
    uint64_t steal_ms = sum->interference.steal_ms;
    interference_add(&sum->interference, &(struct interference){0}, &one->interference);
    sum->interference.steal_ms =
        one->interference.steal_ms > steal_ms ? one->interference.steal_ms : steal_ms;
    sum->sampling.clamped += one->sampling.clamped;
    sum->complete &= one->complete;
}

/* One more member's samples, which it may have counted in another unit. */
static void merge(struct team_member *m, const struct result *sum, const struct result *one,
                  struct stats *stats)
{
    stats_scale(stats, one->us_per_unit / sum->us_per_unit);
    stats_merge(m->merged, stats);
}

static void take_samples(const struct team_member *m, struct result *sum)
{
    sum->stats = m->merged;
    sum->latency_us.typical = stats_median_ps(m->merged) * sum->us_per_unit;
    sum->sampling.resolved = sum->latency_us.typical * 1000 >= sum->sampling.resolution_ns;
}

/* ---- while it runs ---- */

static void hand_in_interim(struct team_member *m, const struct result *r)
{
    struct team_interim *now = &team_own(m)->now;
    pthread_mutex_lock(&m->team->lock);
    now->turn = now->turn && now->result.size == r->size ? now->turn + 1 : 1;
    now->result = *r;
    now->stats = *r->stats;
    pthread_mutex_unlock(&m->team->lock);
}

/* Have all others handed in as much, or are they done? */
static bool all_interim(struct team_member *m, const struct result *mine, bool *known)
{
    unsigned turn = team_own(m)->now.turn, arrived = atomic_load(&team_own(m)->arrived);
    bool all = true;
    *known = true;
    pthread_mutex_lock(&m->team->lock);
    for (unsigned i = 0; i < m->team->count; i++) {
        const struct team_slot *slot = &m->team->slots[i];
        bool here = slot->now.turn && slot->now.result.size == mine->size;
        *known &= here;
        all &= (here && slot->now.turn >= turn) || atomic_load(&slot->arrived) > arrived;
    }
    pthread_mutex_unlock(&m->team->lock);
    return all;
}

static int sum_interim(struct team_member *m, const struct result *mine)
{
    struct result sum = *mine;
    stats_clear(m->merged);
    pthread_mutex_lock(&m->team->lock);
    for (unsigned i = 0; i < m->team->count; i++) {
        struct team_interim *now = &m->team->slots[i].now;
        if (i)
            add(&sum, &now->result);
        merge(m, mine, &now->result, &now->stats);
        now->result.us_per_unit = mine->us_per_unit;
    }
    pthread_mutex_unlock(&m->team->lock);
    take_samples(m, &sum);
    sum.series = NULL;
    return m->sum->ops->interval(m->sum, &sum);
}

/* The others come at about the same time. Without all of them there is no row. */
static int on_interval(struct report *report, const struct result *result)
{
    struct team_member *m = (struct team_member *)report;
    uint64_t since_ms = clock_ms();
    bool known;
    hand_in_interim(m, result);
    if (m->number || !m->sum || !m->sum->ops->interval)
        return 0;
    while (!all_interim(m, result, &known) && clock_ms() - since_ms < LATE_MS) {
        int status = team_watch(m);
        if (status)
            return status;
        poll(NULL, 0, 1);
    }
    return known ? sum_interim(m, result) : 0;
}

/* ---- at the end ---- */

static void hand_in(struct team_member *m, const struct result *r)
{
    struct team_slot *slot = team_own(m);
    slot->result = *r;
    if (r->stats)
        slot->stats = *r->stats;
    if (r->counters.pairs)
        memcpy(slot->counters, r->counters.ends, sizeof slot->counters);
    slot->part.count = r->count;
    slot->part.elapsed_s = r->elapsed_s;
    slot->part.reverse_count = r->reverse_count;
    slot->part.reverse_elapsed_s = r->reverse_elapsed_s;
    slot->part.median_us = r->latency_us.typical;
    slot->part.known = true;
    slot->part.complete = r->complete;
    atomic_fetch_add(&slot->rows, 1);
}

static bool is_here(const struct team_member *m, unsigned number)
{
    return atomic_load(&m->team->slots[number].rows) >= atomic_load(&team_own(m)->rows);
}

/* After a failure, no longer than a moment: what was killed hands in nothing. */
static void await_parts(struct team_member *m)
{
    uint64_t lost_ms = 0;
    bool waits = true;
    while (waits) {
        bool lost = team_watch(m) != 0;
        lost_ms = lost && !lost_ms ? clock_ms() : lost_ms;
        waits = false;
        for (unsigned i = 1; i < m->team->count; i++)
            waits |= !is_here(m, i) && !(lost && m->rests && m->rests(m, i));
        waits &= !lost || clock_ms() - lost_ms < PARTS_MS;
        if (waits)
            poll(NULL, 0, 1);
    }
}

static bool counted(const struct counted *all, const struct counters ends[2])
{
    for (size_t i = 0; i < all->pairs; i++)
        if (strcmp(all->ends[2 * i].device, ends[0].device) == 0 &&
            strcmp(all->ends[2 * i + 1].device, ends[1].device) == 0)
            return true;
    return false;
}

/* Members on the same devices have read the same counters: the first of them is enough. */
static void take_counters(struct team_member *m, struct result *sum)
{
    struct counted all = {.ends = m->counters};
    for (unsigned i = 0; i < m->team->count; i++) {
        const struct team_slot *slot = &m->team->slots[i];
        if (!m->list[i].known || !slot->result.counters.pairs || counted(&all, slot->counters))
            continue;
        memcpy(m->counters + (size_t)2 * all.pairs++, slot->counters, sizeof slot->counters);
    }
    sum->counters = all;
}

static int sum_up(struct team_member *m, const struct result *mine)
{
    struct team *team = m->team;
    struct result sum = *mine;
    char why[TEAM_REASON];
    int lost = 0;
    await_parts(m);
    stats_clear(m->merged);
    m->parts = (struct parts){
        .count = team->count, .list = m->list, .devices = m->devices, .threads = team->threads};
    for (unsigned i = 0; i < team->count; i++) {
        struct team_slot *slot = &team->slots[i];
        bool here = is_here(m, i) && slot->result.size == mine->size;
        m->list[i] = here ? slot->part : (struct part){.cpus = {-1, -1}};
        memcpy(m->list[i].device, slot->device, sizeof slot->device);
        if (here && i)
            add(&sum, &slot->result);
        if (here && mine->stats)
            merge(m, mine, &slot->result, &slot->stats);
        sum.complete &= here;
    }
    if (mine->stats)
        take_samples(m, &sum);
    take_counters(m, &sum);
    sum.series = NULL;
    sum.parts = &m->parts;
    snprintf(why, sizeof why, "%s", fail_reason());
    int status = m->sum->ops->row(m->sum, &sum);
    team_watch(m);
    return status ? status : team_lost(m, &lost) ? lost : fail(0, "%s", why);
}

/* Of a run cut short, the sum is made when all know that it is. */
static int on_row(struct report *report, const struct result *result)
{
    struct team_member *m = (struct team_member *)report;
    hand_in(m, result);
    if (m->number || !m->sum)
        return 0;
    m->cut_short = !result->complete;
    m->held = *result;
    return m->cut_short ? 0 : sum_up(m, result);
}

static void on_progress(struct report *report, const struct progress *progress)
{
    struct team_member *m = (struct team_member *)report;
    if (m->begun && m->sum->ops->progress)
        m->sum->ops->progress(m->sum, progress);
}

static int on_end(struct report *report, int status)
{
    struct team_member *m = (struct team_member *)report;
    if (status)
        team_lose(m, m->number, status);
    if (!m->begun)
        return 0;
    int told = m->cut_short ? sum_up(m, &m->held) : 0;
    int last = m->sum->ops->end ? m->sum->ops->end(m->sum, status) : 0;
    return last ? last : told;
}

const struct report_ops team_ops = {.name = "team",
                                    .begin = on_begin,
                                    .interval = on_interval,
                                    .row = on_row,
                                    .progress = on_progress,
                                    .meet = meet,
                                    .end = on_end};
