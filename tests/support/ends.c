/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/ends.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* A put is noticed by looking at memory while it is written, which is what is tested; and a stop is
 * set by signal handlers, whatever thread looks at it. */
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
    return "race:put_arrived\nrace:put_fire\nrace:life_interrupted\nrace:meter_turn\nrace:due\n"
           "race:stop_later\n";
}

bool sanitized(void)
{
    const char *word = getenv("WEFT_SANITIZED");
    return word && *word && strcmp(word, "0") != 0;
}

double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* ---- both ends ---- */

static void on_report(void *arg, const struct weft_result *result)
{
    struct reports *r = arg;
    if (r->count) {
        r->wall_s += seconds() - r->left_s;
        r->counted_s += result->elapsed_s - r->elapsed_s;
    } else {
        r->grows = true;
    }
    r->after_final += r->finals > 0;
    if (result->final && r->finals < SIZES_MOST)
        r->sizes[r->finals] = result->size;
    r->finals += result->final != 0;
    r->grows =
        r->grows && result->iterations >= r->iterations && !(result->elapsed_s < r->elapsed_s);
    r->iterations = result->iterations;
    r->elapsed_s = result->elapsed_s;
    sched_getaffinity(0, sizeof r->cpus, &r->cpus);
    if (++r->count == 2 && r->stop_at)
        *r->stop_at = 1;
    r->left_s = seconds();
}

void *run_end(void *arg)
{
    struct end *end = arg;
    weft_result_init(&end->result);
    end->status =
        end->session
            ? weft_session_run(end->session, &end->params, on_report, &end->reports, &end->result)
            : weft_run(&end->params, end->bootstrap, on_report, &end->reports, &end->result);
    snprintf(end->reason, sizeof end->reason, "%s", weft_reason());
    return NULL;
}

void run_ends(struct end ends[2])
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_end, &ends[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

int cpu_of(int index)
{
    cpu_set_t allowed;
    int cpu = CPU_SETSIZE;
    if (sched_getaffinity(0, sizeof allowed, &allowed) || CPU_COUNT(&allowed) < 2)
        return -1;
    while (--cpu >= 0 && (!CPU_ISSET((size_t)cpu, &allowed) || index--))
        ;
    return cpu;
}

void prepare(struct end ends[2], const struct weft_params *params,
             const struct weft_bootstrap pair[2])
{
    for (int i = 0; i < 2; i++) {
        ends[i] = (struct end){.params = *params, .bootstrap = &pair[i]};
        ends[i].params.cpu = params->threads > 1 ? -1 : cpu_of(i);
    }
}

void release(struct end ends[2])
{
    weft_result_free(&ends[0].result);
    weft_result_free(&ends[1].result);
}

struct weft_params small(const char *op, const char *method, const char *layout)
{
    struct weft_params params;
    weft_params_init(&params);
    params.op = op;
    params.both_ways = strcmp(method, "both ways") == 0;
    params.method = params.both_ways ? "stream" : method;
    params.layout = layout;
    params.iterations = 200;
    params.warmup = 10;
    params.interval_ms = 0;
    params.timeout_ms = 20000;
    params.device = "soft";
    return params;
}

struct weft_params small_atomic(const char *amo_op, bool fetching, const char *method)
{
    struct weft_params params = small("atomic", method, NULL);
    params.amo_op = amo_op;
    params.fetching = fetching;
    return params;
}

void expect_done(const struct end ends[2])
{
    for (int i = 0; i < 2; i++)
        if (ends[i].status)
            fail_msg("end %d: %s", i, ends[i].reason);
}

/* ---- figures ---- */

static void close_to(double got, double wanted)
{
    if (!(fabs(got - wanted) <= 1e-9 * fabs(wanted)))
        fail_msg("%.12g, and %.12g is wanted", got, wanted);
}

/* Its counts add up, its buckets are in order, and the median lies where half of them are. */
static void expect_histogram(const struct weft_result *r)
{
    double low, high, before = 0, middle_low = 0, middle_high = 0;
    uint64_t count, sum = 0;
    size_t at = 0;
    while (weft_histogram_next(r->histogram, &at, &low, &high, &count)) {
        assert_true(count > 0);
        assert_true(low >= before && high >= low);
        before = low;
        if (sum < (r->samples + 1) / 2 && sum + count >= (r->samples + 1) / 2) {
            middle_low = low;
            middle_high = high;
        }
        sum += count;
    }
    assert_int_equal(sum, r->samples);
    assert_true(r->latency_us.typical >= middle_low * (1 - 1e-9));
    assert_true(r->latency_us.typical <= middle_high * (1 + 1e-9));
}

static void expect_percentiles(const struct weft_params *p, const struct weft_result *r)
{
    double before = 0;
    size_t count = 0;
    while (count < WEFT_PERCENTILES && p->percentiles[count] > 0)
        count++;
    assert_int_equal(r->percentile_count, count);
    for (size_t i = 0; i < count; i++) {
        const struct weft_percentile *q = &r->percentiles[i];
        double beyond =
            (double)r->samples - ceil((double)r->samples * q->percent / 100 * (1 - 1e-12));
        close_to(q->percent, p->percentiles[i]);
        if (beyond < 10) {
            assert_true(isnan(q->us) && isnan(q->low_us) && isnan(q->high_us));
            continue;
        }
        assert_false(isnan(q->us));
        assert_true(q->low_us <= q->us && q->us <= q->high_us);
        if (!i || p->percentiles[i - 1] < q->percent)
            assert_true(q->us >= before);
        before = q->us;
    }
}

/* One at a time with gaps: there is no elapsed time, and so no rate. */
static void expect_latency(const struct weft_result *r)
{
    assert_true(isnan(r->elapsed_s) && isnan(r->latency_us.recent));
    assert_true(isnan(r->rate.overall) && isnan(r->bandwidth.overall));
    assert_true(r->min_us <= r->latency_us.overall && r->latency_us.overall <= r->max_us);
}

static void expect_rates(const struct weft_params *p, const struct weft_result *r)
{
    double n = (double)r->iterations, legs = strcmp(p->method, "ping-pong") == 0 ? 2 : 1;
    double size = (double)r->size;
    assert_true(r->elapsed_s > 0);
    close_to(r->bandwidth.overall, r->rate.overall * size);
    close_to(r->bandwidth.recent, r->rate.recent * size);
    /* Of several threads the time is that of the slowest. */
    assert_true(r->rate.overall >= n / r->elapsed_s * (1 - 1e-9));
    if (p->threads > 1)
        return;
    close_to(r->latency_us.overall, r->elapsed_s * 1e6 / n / legs);
    close_to(r->rate.overall, n / r->elapsed_s);
    close_to(r->rate.recent * r->latency_us.recent * legs, 1e6);
}

/* All operations are in samples; several in one only where they are too short to be timed alone. */
static void expect_sampling(const struct weft_params *p, const struct weft_result *r)
{
    bool latency = strcmp(p->method, "latency") == 0, stream = strcmp(p->method, "stream") == 0;
    assert_true(r->samples * r->ops_per_sample >= r->iterations);
    assert_true(r->resolution_us > 0);
    assert_int_equal(r->resolved, r->latency_us.typical >= r->resolution_us);
    if (latency)
        assert_int_equal(r->ops_per_sample, p->ops_per_sample);
    else if (!stream)
        assert_int_equal(r->ops_per_sample, 1);
    if (latency || !stream)
        assert_int_equal(r->samples * r->ops_per_sample, r->iterations);
    assert_true(latency ? r->warmup == p->warmup : r->warmup <= p->warmup);
    assert_true(latency || !r->clamped);
}

void expect_figures(const struct end *end)
{
    const struct weft_params *p = &end->params;
    const struct weft_result *r = &end->result;
    assert_true(r->final);
    assert_int_equal(r->bytes, sizeof *r);
    assert_true(r->fabric && *r->fabric && r->completion_proves && *r->completion_proves);
    assert_int_equal(r->transferred, r->iterations * r->size);
    if (strcmp(p->method, "latency") == 0)
        expect_latency(r);
    else
        expect_rates(p, r);
    assert_true(r->latency_us.typical >= 0);
    assert_true(r->min_us <= r->latency_us.typical && r->latency_us.typical <= r->max_us);
    assert_true(r->deviation_us >= 0 && r->deviation_us <= r->max_us - r->min_us);
    expect_sampling(p, r);
    expect_histogram(r);
    expect_percentiles(p, r);
}

void expect_reports(const struct end ends[2])
{
    assert_int_equal(ends[1].reports.count, 0);
    assert_int_equal(ends[0].reports.finals, 1);
    assert_int_equal(ends[0].reports.after_final, 0);
    assert_true(ends[0].reports.grows);
    assert_int_equal(ends[0].reports.iterations, ends[0].result.iterations);
    if (!ends[0].params.interval_ms)
        assert_int_equal(ends[0].reports.count, 1);
}

static void expect_good_ends(struct end ends[2])
{
    const struct weft_params *params = &ends[0].params;
    run_ends(ends);
    expect_done(ends);
    assert_int_equal(ends[0].result.iterations, params->threads * params->iterations);
    if (strcmp(params->op, "atomic") != 0)
        assert_int_equal(ends[0].result.size, params->size);
    expect_figures(&ends[0]);
    expect_reports(ends);
    if (params->both_ways) {
        assert_int_equal(ends[0].result.reverse_iterations, params->threads * params->iterations);
        assert_true(ends[0].result.reverse_elapsed_s > 0);
    }
    release(ends);
}

void expect_good(const struct weft_params *params, const struct weft_bootstrap pair[2])
{
    struct end ends[2];
    prepare(ends, params, pair);
    expect_good_ends(ends);
}

void sessions_open(struct sessions *sessions, const struct weft_bootstrap pair[2])
{
    for (int i = 0; i < 2; i++)
        assert_int_equal(weft_session_open(&sessions->ends[i], &pair[i]), 0);
}

void sessions_close(struct sessions *sessions)
{
    for (int i = 0; i < 2; i++)
        weft_session_close(sessions->ends[i]);
}

void expect_good_on(const struct sessions *sessions, const struct weft_params *params)
{
    struct end ends[2];
    for (int i = 0; i < 2; i++) {
        ends[i] = (struct end){.params = *params, .session = sessions->ends[i]};
        ends[i].params.cpu = params->threads > 1 ? -1 : cpu_of(i);
    }
    expect_good_ends(ends);
}

void expect_refused(struct end ends[2], int status, const char *words)
{
    const struct weft_params good = small("am", "ping-pong", "short");
    run_ends(ends);
    for (int i = 0; i < 2; i++) {
        if (ends[i].status != status || !strstr(ends[i].reason, words))
            fail_msg("end %d: %d (%d is wanted), %s", i, ends[i].status, status, ends[i].reason);
        assert_int_equal(ends[i].reports.count, 0);
        assert_null(ends[i].result.histogram);
    }
    assert_string_equal(ends[0].reason, ends[1].reason);
    if (ends[0].session)
        expect_good_on(&(struct sessions){{ends[0].session, ends[1].session}}, &good);
    else
        expect_good(&good, (struct weft_bootstrap[2]){*ends[0].bootstrap, *ends[1].bootstrap});
}

void with_threads(void (*what)(const struct weft_bootstrap pair[2]))
{
    struct weft_bootstrap pair[2];
    assert_int_equal(weft_threads(pair), 0);
    assert_int_equal(pair[0].size, 2);
    assert_int_equal(pair[0].index, 0);
    assert_int_equal(pair[1].index, 1);
    what(pair);
    weft_close(&pair[0]);
    weft_close(&pair[1]);
}
