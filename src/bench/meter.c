/* SPDX-License-Identifier: BSD-3-Clause */
/* The time of a run and what it comes to. The loops only count ticks; everything else happens here,
 * with the clock stopped. */
#include "bench/run.h"

#include <inttypes.h>
#include <math.h>
#include <sched.h>
#include <string.h>

/* A look at the other end costs some hundred nanoseconds: this often is enough to notice. */
static const uint64_t look_ps = 100000000000;
static const uint64_t ps_per_ms = 1000000000;
enum { WARMUP_MS = 100 };

/* ---- clock and statistics ---- */

int meter_open(struct run *run)
{
    struct meter *m = &run->meter;
    const struct spec_local *local = &run->spec->local;
    int kind = local->clock ? local->clock : CLOCK_CYCLES;
    int status = clock_open(&m->clock, (enum clock_kind)kind);
    if (status == -ENOTSUP && !local->clock)
        status = clock_open(&m->clock, CLOCK_GETTIME);
    m->parts = run->legs * run->spec->count.ops_per_sample;
    if (!status)
        status = stats_open(&m->stats, local->keep_samples ? run->spec->count.iterations : 0);
    if (!status && (run->spec->count.duration_ms || local->interval_ms))
        status = series_open(&run->out.series);
    return status;
}

void meter_close(struct run *run)
{
    stats_close(run->meter.stats);
    run->meter.stats = NULL;
    series_close(&run->out.series);
}

void meter_reset(struct run *run)
{
    struct meter *m = &run->meter;
    const struct spec *spec = run->spec;
    *m = (struct meter){
        .clock = m->clock,
        .stats = m->stats,
        .parts = m->parts,
        .look = clock_from_ps(&m->clock, look_ps),
        .interval =
            run->out.report ? clock_from_ps(&m->clock, spec->local.interval_ms * ps_per_ms) : 0,
        .duration = clock_from_ps(&m->clock, spec->count.duration_ms * ps_per_ms)};
    stats_clear(m->stats);
    series_clear(&run->out.series);
    run->out.result = (struct result){.size = run->size,
                                      .stats = m->stats,
                                      .us_per_unit = m->clock.ps_per_tick / 1e6 / run->legs,
                                      .sampling = {.ops = m->parts / run->legs},
                                      .series = &run->out.series,
                                      .elapsed_s = NAN,
                                      .latency_us = {NAN, NAN, NAN},
                                      .bandwidth = {NAN, NAN, NAN},
                                      .rate = {NAN, NAN, NAN},
                                      .interference = {.cpu_ns = {NAN, NAN}},
                                      .reverse_elapsed_s = NAN};
    interference_now(&m->before);
}

/* ---- running ---- */

void meter_plan(struct meter *m, uint64_t now)
{
    uint64_t next = m->looked + m->look;
    if (m->interval && m->reported + m->interval < next)
        next = m->reported + m->interval;
    uint64_t left = m->duration > m->elapsed ? m->duration - m->elapsed : 0;
    if (m->duration && m->begin + left < next)
        next = m->begin + left;
    m->next = next > now ? next : now;
}

void meter_start(struct run *run)
{
    struct meter *m = &run->meter;
    m->begin = clock_read_unfenced(&m->clock);
    m->reported = m->looked = m->begin;
    meter_plan(m, m->begin);
}

void meter_stop(struct run *run)
{
    run->meter.elapsed += clock_read_unfenced(&run->meter.clock) - run->meter.begin;
}

void meter_go_on(struct run *run)
{
    run->meter.begin = clock_read_unfenced(&run->meter.clock);
    meter_plan(&run->meter, run->meter.begin);
}

int meter_turn(struct run *run, uint64_t now)
{
    struct meter *m = &run->meter;
    struct peer *peer = run->session->peer;
    if (peer->stop && *peer->stop)
        return fail(-EINTR, "interrupted");
    if (now - m->looked >= m->look) {
        /* After an iteration, or after a part of a gap that was asked for. */
        int status = peer_step(peer);
        if (status)
            return status;
        m->looked = now;
    }
    if (m->duration && m->elapsed + (now - m->begin) >= m->duration)
        return TURN_END;
    if (m->interval && now - m->reported >= m->interval)
        return TURN_PAUSE;
    meter_plan(m, now);
    return TURN_ON;
}

int meter_warm_up(struct run *run, int (*iterate)(struct run *run, uint64_t count, bool keep))
{
    struct meter fresh = run->meter;
    uint64_t first = run->flight.number, asked = run->spec->count.warmup;
    run->meter.interval = 0;
    run->meter.duration = clock_from_ps(&run->meter.clock, WARMUP_MS * ps_per_ms);
    int status = iterate(run, asked, false);
    uint64_t ran = run->flight.number - first;
    if (!status && ran < asked)
        warn("the warm-up ended after %d ms: %" PRIu64 " of %" PRIu64 " iterations", WARMUP_MS, ran,
             asked);
    run->meter = fresh;
    run->out.result.sampling.warmup = ran;
    return status;
}

int meter_until_all(struct run *run, int (*iterate)(struct run *run, uint64_t count, bool keep))
{
    struct report *report = run->out.report;
    struct meter fresh = run->meter, *m = &run->meter;
    int met = report && report->ops->meet ? report->ops->meet(report, true) : 1;
    while (!met) {
        m->elapsed = m->interval = 0;
        m->duration = clock_from_ps(&m->clock, ps_per_ms);
        if (iterate)
            met = iterate(run, UINT64_MAX, false);
        else
            sched_yield();
        if (!met)
            met = peer_step(run->session->peer);
        if (!met)
            met = report->ops->meet(report, false);
    }
    *m = fresh;
    return met < 0 ? met : 0;
}

/* ---- figures ---- */

void meter_judge(struct run *run)
{
    const struct result *r = &run->out.result;
    struct sampling *s = &run->out.result.sampling;
    const struct clock *clock = &run->meter.clock;
    bool subtracts = run->method->subtracts;
    double least_ps = (double)(clock_least_ps(clock) - (subtracts ? clock->cost_ps : 0));
    s->resolution_ns = least_ps / 1000 / (double)(run->legs * s->ops);
    s->clamped = subtracts ? run->meter.stats->buckets[0] : 0;
    s->resolved = stats_median_ps(run->meter.stats) * r->us_per_unit * 1000 >= s->resolution_ns;
}

static double per(double amount, double of)
{
    return of > 0 ? amount / of : 0;
}

static void fill_interference(struct run *run)
{
    struct result *r = &run->out.result;
    struct interference now;
    r->interference = (struct interference){.cpu_ns = {NAN, NAN}};
    interference_now(&now);
    interference_add(&r->interference, &run->meter.before, &now);
}

static void fill(struct run *run)
{
    struct result *r = &run->out.result;
    const struct meter *m = &run->meter;
    double s_per_tick = m->clock.ps_per_tick / 1e12, size = (double)run->size, legs = run->legs;
    double all = (double)m->done, all_s = (double)m->elapsed * s_per_tick;
    double recent = (double)(m->done - m->reported_done);
    double recent_s = (double)(m->elapsed - m->reported_elapsed) * s_per_tick;
    double typical_us = stats_median_ps(m->stats) * r->us_per_unit;
    /* Interrupted just after a report: that one stands. */
    bool fresh = m->done > m->reported_done || isnan(r->latency_us.recent);
    double recent_us = fresh ? per(recent_s * 1e6, recent * legs) : r->latency_us.recent;
    double recent_rate = fresh ? per(recent, recent_s) : r->rate.recent;
    if (fresh)
        r->recent = (struct recent){.count = m->done - m->reported_done, .s = recent_s};
    r->count = m->done;
    r->bytes = m->done * run->size;
    r->elapsed_s = all_s;
    r->latency_us = (struct figure){
        .typical = typical_us, .recent = recent_us, .overall = per(all_s * 1e6, all * legs)};
    r->rate = (struct figure){
        .typical = per(1e6, typical_us * legs), .recent = recent_rate, .overall = per(all, all_s)};
    r->bandwidth = (struct figure){.typical = r->rate.typical * size,
                                   .recent = r->rate.recent * size,
                                   .overall = r->rate.overall * size};
    meter_judge(run);
}

/* What came since the last report, as part of the run over time. */
static void note_interval(struct run *run)
{
    const struct result *r = &run->out.result;
    uint64_t count = run->meter.done - run->meter.reported_done;
    struct interval interval = {.end_ps = (uint64_t)(r->elapsed_s * 1e12),
                                .count = count,
                                .min_ps = UINT64_MAX,
                                .sum_ps = r->latency_us.recent * 1e6 * (double)count};
    series_add(&run->out.series, &interval, run->meter.stats);
}

static void tell_progress(struct run *run)
{
    struct run_output *out = &run->out;
    const struct spec_count *count = &run->spec->count;
    double by_count = count->iterations ? (double)out->result.count / (double)count->iterations : 0;
    double by_time =
        count->duration_ms ? out->result.elapsed_s * 1000 / (double)count->duration_ms : 0;
    out->progress.size = run->size;
    out->progress.share = by_count > by_time ? by_count : by_time;
    if (out->report->ops->progress)
        out->report->ops->progress(out->report, &out->progress);
}

static int tell_interval(struct run *run)
{
    struct report *report = run->out.report;
    struct keepalive keepalive;
    int status = 0;
    keepalive_begin(&keepalive, run->session->peer, 0);
    if (report->ops->interval)
        status = report->ops->interval(report, &run->out.result);
    if (!status)
        tell_progress(run);
    keepalive_end(&keepalive);
    return status;
}

int meter_report(struct run *run, uint64_t done, bool final)
{
    struct meter *m = &run->meter;
    int status = 0;
    meter_stop(run);
    m->done = done;
    /* Of an interval without a new iteration there is nothing to say. */
    if (final || done > m->reported_done) {
        stats_settle(m->stats);
        fill(run);
        note_interval(run);
        run->out.result.final = final;
        if (final)
            fill_interference(run);
        else
            status = tell_interval(run);
        m->reported_done = m->done;
        m->reported_elapsed = m->elapsed;
    }
    if (!final)
        meter_start(run);
    return status;
}
