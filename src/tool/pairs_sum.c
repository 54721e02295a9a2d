/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the pairs of an end meet, and the sum of what they measured. */
#include "core/clock.h"
#include "tool/pairs_page.h"

#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

enum { PARTS_MS = 500 };

/* ---- meeting ---- */

static int meet(struct report *report, bool first)
{
    struct pairs *p = (struct pairs *)report;
    unsigned mine = atomic_load(&pairs_own(p)->arrived) + first;
    atomic_store(&pairs_own(p)->arrived, mine);
    for (unsigned i = 0; i < p->count; i++)
        if (atomic_load(&p->page->slots[i].arrived) < mine)
            return pairs_watch(p);
    return 1;
}

static int64_t cpu_of(const struct msg *about)
{
    uint64_t cpu;
    return msg_number(about, "ran_on", &cpu) ? -1 : (int64_t)cpu;
}

int pairs_meet(struct pairs *p, struct peer *peer)
{
    int met = meet(&p->report, true);
    while (!met) {
        met = peer_alive(peer);
        poll(NULL, 0, 1);
        if (!met)
            met = meet(&p->report, false);
    }
    return met < 0 ? met : 0;
}

/* Nothing is shown before every pair is connected. */
static int on_begin(struct report *report, const struct facts *facts)
{
    struct pairs *p = (struct pairs *)report;
    struct part *part = &pairs_own(p)->part;
    int status = pairs_meet(p, facts->session->peer);
    if (status)
        return status;
    memcpy(part->device, pairs_own(p)->device, sizeof part->device);
    part->cpus[PEER_CLIENT] = cpu_of(&facts->about[!facts->initiator]);
    part->cpus[PEER_SERVER] = cpu_of(&facts->about[facts->initiator]);
    p->begun = !p->number;
    return p->begun && p->sum->ops->begin ? p->sum->ops->begin(p->sum, facts) : 0;
}

/* ---- the sum ---- */

static void hand_in(struct pairs *p, const struct result *r)
{
    struct pairs_slot *slot = pairs_own(p);
    slot->result = *r;
    if (r->stats)
        slot->stats = *r->stats;
    if (r->counters.pairs)
        memcpy(slot->counters, r->counters.ends, sizeof slot->counters);
    slot->part.count = r->count;
    slot->part.elapsed_s = r->elapsed_s;
    slot->part.reverse_count = r->reverse_count;
    slot->part.reverse_elapsed_s = r->reverse_elapsed_s;
    slot->part.known = true;
    slot->part.complete = r->complete;
    atomic_fetch_add(&slot->rows, 1);
}

static bool is_here(const struct pairs *p, unsigned number)
{
    return atomic_load(&p->page->slots[number].rows) >= atomic_load(&pairs_own(p)->rows);
}

/* After a failure, no longer than a moment: what was killed hands in nothing. */
static void await_parts(struct pairs *p)
{
    uint64_t lost_ms = 0;
    bool waits = true;
    while (waits) {
        bool lost = pairs_watch(p) != 0;
        lost_ms = lost && !lost_ms ? clock_ms() : lost_ms;
        waits = false;
        for (unsigned i = 1; i < p->count; i++)
            waits |= !is_here(p, i) && !(lost && pairs_rests(p, i));
        waits &= !lost || clock_ms() - lost_ms < PARTS_MS;
        if (waits)
            poll(NULL, 0, 1);
    }
}

static void add_figure(struct figure *sum, const struct figure *one)
{
    sum->typical += one->typical;
    sum->recent += one->recent;
    sum->overall += one->overall;
}

/* Rates are added; the time is that of the pair that took longest. */
static void add(struct result *sum, const struct result *one)
{
    sum->count += one->count;
    sum->bytes += one->bytes;
    sum->reverse_count += one->reverse_count;
    sum->elapsed_s = fmax(sum->elapsed_s, one->elapsed_s);
    sum->reverse_elapsed_s = fmax(sum->reverse_elapsed_s, one->reverse_elapsed_s);
    add_figure(&sum->rate, &one->rate);
    add_figure(&sum->bandwidth, &one->bandwidth);
    interference_add(&sum->interference, &(struct interference){0}, &one->interference);
    sum->sampling.clamped += one->sampling.clamped;
    sum->sampling.resolved &= one->sampling.resolved;
    sum->complete &= one->complete;
}

static void merge(struct pairs *p, struct result *sum)
{
    stats_clear(p->merged);
    for (unsigned i = 0; i < p->count; i++)
        if (p->list[i].known)
            stats_merge(p->merged, &p->page->slots[i].stats);
    sum->stats = p->merged;
    sum->latency_us.typical = stats_median_ps(p->merged) * sum->us_per_unit;
    sum->latency_us.overall = p->merged->mean_ps * sum->us_per_unit;
}

static bool counted(const struct counted *all, const struct counters ends[2])
{
    for (size_t i = 0; i < all->pairs; i++)
        if (strcmp(all->ends[2 * i].device, ends[0].device) == 0 &&
            strcmp(all->ends[2 * i + 1].device, ends[1].device) == 0)
            return true;
    return false;
}

/* Pairs on the same devices have read the same counters: the first of them is enough. */
static void take_counters(struct pairs *p, struct result *sum)
{
    struct counted all = {.ends = p->counters};
    for (unsigned i = 0; i < p->count; i++) {
        const struct pairs_slot *slot = &p->page->slots[i];
        if (!p->list[i].known || !slot->result.counters.pairs || counted(&all, slot->counters))
            continue;
        memcpy(p->counters + (size_t)2 * all.pairs++, slot->counters, sizeof slot->counters);
    }
    sum->counters = all;
}

static int sum_up(struct pairs *p, const struct result *mine)
{
    struct result sum = *mine;
    char why[PAIRS_REASON];
    await_parts(p);
    p->parts = (struct parts){.count = p->count, .list = p->list, .devices = p->devices};
    for (unsigned i = 0; i < p->count; i++) {
        const struct pairs_slot *slot = &p->page->slots[i];
        bool here = is_here(p, i) && slot->result.size == mine->size;
        p->list[i] = here ? slot->part : (struct part){.cpus = {-1, -1}};
        memcpy(p->list[i].device, slot->device, sizeof slot->device);
        if (here && i)
            add(&sum, &slot->result);
        sum.complete &= here;
    }
    if (mine->stats)
        merge(p, &sum);
    take_counters(p, &sum);
    sum.series = NULL;
    sum.parts = &p->parts;
    snprintf(why, sizeof why, "%s", fail_reason());
    int status = p->sum->ops->row(p->sum, &sum);
    return status ? status : pairs_watch(p) ? pairs_reason(p) : fail(0, "%s", why);
}

/* Of a run cut short, the sum is made when all know that it is. */
static int on_row(struct report *report, const struct result *result)
{
    struct pairs *p = (struct pairs *)report;
    hand_in(p, result);
    if (p->number)
        return 0;
    p->cut_short = !result->complete;
    p->held = *result;
    return p->cut_short ? 0 : sum_up(p, result);
}

static void on_progress(struct report *report, const struct progress *progress)
{
    struct pairs *p = (struct pairs *)report;
    if (!p->number && p->sum->ops->progress)
        p->sum->ops->progress(p->sum, progress);
}

static int on_end(struct report *report, int status)
{
    struct pairs *p = (struct pairs *)report;
    if (status)
        pairs_lose(p, p->number, status);
    if (!p->begun)
        return 0;
    int told = p->cut_short ? sum_up(p, &p->held) : 0;
    int last = p->sum->ops->end ? p->sum->ops->end(p->sum, status) : 0;
    return last ? last : told;
}

const struct report_ops pairs_ops = {.name = "pairs",
                                     .begin = on_begin,
                                     .row = on_row,
                                     .progress = on_progress,
                                     .meet = meet,
                                     .end = on_end};
