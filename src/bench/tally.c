/* SPDX-License-Identifier: BSD-3-Clause */
/* The time of a test and what it comes to. The loops only count ticks; everything else happens
 * here, with the clock stopped. */
#include "bench/setup.h"
#include "core/clock.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/* A look at the other end costs some hundred nanoseconds: this often is enough to notice. */
static const uint64_t look_ps = 100000000000;
static const uint64_t ps_per_ms = 1000000000;

void tally_open(struct run *run)
{
    const struct weft_params *p = run->params;
    run->tally = (struct tally){
        .look = clock_from_ps(&run->clock, look_ps),
        .interval = run->audience ? clock_from_ps(&run->clock, p->interval_ms * ps_per_ms) : 0,
        .duration = clock_from_ps(&run->clock, p->duration_ms * ps_per_ms)};
}

/* The loops look up when the next of these is due. */
static void plan_next(struct tally *t, uint64_t now)
{
    uint64_t next = t->looked + t->look;
    if (t->interval && t->reported + t->interval < next)
        next = t->reported + t->interval;
    uint64_t left = t->duration > t->elapsed ? t->duration - t->elapsed : 0;
    if (t->duration && t->begin + left < next)
        next = t->begin + left;
    t->next = next > now ? next : now;
}

void tally_start(struct run *run)
{
    struct tally *t = &run->tally;
    t->begin = clock_read_unfenced(&run->clock);
    t->reported = t->looked = t->begin;
    plan_next(t, t->begin);
}

void tally_stop(struct run *run)
{
    run->tally.elapsed += clock_read_unfenced(&run->clock) - run->tally.begin;
}

void tally_go_on(struct run *run)
{
    run->tally.begin = clock_read_unfenced(&run->clock);
    plan_next(&run->tally, run->tally.begin);
}

int tally_turn(struct run *run, uint64_t now)
{
    struct tally *t = &run->tally;
    if (run->peer->stop && *run->peer->stop)
        return fail(-EINTR, "interrupted");
    if (now - t->looked >= t->look) {
        int status = peer_alive(run->peer);
        if (status)
            return status;
        t->looked = now;
    }
    if (t->duration && t->elapsed + (now - t->begin) >= t->duration)
        return TURN_END;
    if (t->interval && now - t->reported >= t->interval)
        return TURN_PAUSE;
    plan_next(t, now);
    return TURN_ON;
}

/* ---- figures ---- */

static double to_us(const struct run *run, double ticks)
{
    return ticks * run->clock.ps_per_tick / 1e6 / run->test_method->legs;
}

static void fill_percentiles(const struct run *run, struct weft_result *result)
{
    size_t n = 0;
    for (; n < WEFT_PERCENTILES && run->params->percentiles[n] > 0; n++) {
        double percent = run->params->percentiles[n], at = NAN, low = NAN, high = NAN;
        if (!stats_percentile(run->stats, percent / 100, &at))
            stats_interval(run->stats, percent / 100, &low, &high);
        result->percentiles[n] = (struct weft_percentile){.percent = percent,
                                                          .us = to_us(run, at),
                                                          .low_us = to_us(run, low),
                                                          .high_us = to_us(run, high)};
    }
    result->percentile_count = n;
}

static double per(double amount, double of)
{
    return of > 0 ? amount / of : 0;
}

static void fill_disturbance(const struct run *run, struct weft_result *result)
{
    struct interference now, sum = {0};
    interference_now(&now);
    interference_add(&sum, &run->before, &now);
    interference_hint(run->roams, sum.switches, run->tally.done);
    result->disturbed = (struct weft_disturbance){.preempted = sum.switches,
                                                  .migrated = sum.migrations,
                                                  .page_faults = sum.faults,
                                                  .steal_ms = sum.steal_ms};
}

static void fill(const struct run *run, struct weft_result *result)
{
    const struct tally *t = &run->tally;
    double s_per_tick = run->clock.ps_per_tick / 1e12, size = (double)run->params->size;
    double all = (double)t->done, all_s = (double)t->elapsed * s_per_tick;
    double recent = (double)(t->done - t->reported_done);
    double recent_s = (double)(t->elapsed - t->reported_elapsed) * s_per_tick;
    double typical_us = to_us(run, stats_median_ps(run->stats)), legs = run->test_method->legs;
    double recent_us = per(recent_s * 1e6, recent * legs), recent_rate = per(recent, recent_s);
    if (t->done == t->reported_done) { /* interrupted just behind a report: that one stands */
        recent_us = result->latency_us.recent;
        recent_rate = result->rate.recent;
    }
    result->iterations = t->done;
    result->bytes = t->done * run->params->size;
    result->elapsed_s = all_s;
    result->latency_us = (struct weft_figure){
        .typical = typical_us, .recent = recent_us, .overall = per(all_s * 1e6, all * legs)};
    result->rate = (struct weft_figure){
        .typical = per(1e6, typical_us * legs), .recent = recent_rate, .overall = per(all, all_s)};
    result->bandwidth = (struct weft_figure){.typical = result->rate.typical * size,
                                             .recent = result->rate.recent * size,
                                             .overall = result->rate.overall * size};
    result->min_us = run->stats->count ? to_us(run, (double)run->stats->min_ps) : 0;
    result->max_us = to_us(run, (double)run->stats->max_ps);
    result->deviation_us = to_us(run, stats_deviation_ps(run->stats));
    fill_percentiles(run, result);
}

int tally_report(struct run *run, uint64_t done, bool final)
{
    struct tally *t = &run->tally;
    const struct test_audience *audience = run->audience;
    struct weft_result *result = run->result;
    tally_stop(run);
    t->done = done;
    if (final)
        fill_disturbance(run, result);
    /* Of an interval without a new iteration there is nothing to say. */
    if (audience && audience->report && (final || done > t->reported_done)) {
        struct keepalive keepalive;
        stats_settle(run->stats);
        fill(run, result);
        result->final = final;
        keepalive_begin(&keepalive, run->peer, 0);
        audience->report(audience->arg, result);
        keepalive_end(&keepalive);
        t->reported_done = t->done;
        t->reported_elapsed = t->elapsed;
    } else if (final) {
        stats_settle(run->stats);
        fill(run, result);
        result->final = true;
    }
    if (!final)
        tally_start(run);
    return 0;
}
