/* SPDX-License-Identifier: BSD-3-Clause */
/* What the library measures against programmed delays, where its threads run, and its defaults. */
#include "support/ends.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- time ---- */

/* Nothing on a machine may make a time too short; other work makes it too long. */
static void skip_if_busy(const char *what)
{
    double load = 0;
    if (getloadavg(&load, 1) != 1 || load <= 1.5 * (double)sysconf(_SC_NPROCESSORS_ONLN))
        return;
    print_message("# %s: other work took the CPU away in every attempt, the load is %.1f\n", what,
                  load);
    skip();
}

/* Within 2 %, as far as a histogram can tell, whose buckets are up to 1/512 wide, and to half of
 * what the clock resolves. Another process may take the CPU for most of a run; not for five of
 * them. */
static void expect_median(const struct weft_params *params, const struct weft_bootstrap pair[2],
                          double us, double least)
{
    double typical = 0, most = 0;
    for (int tries = 0; tries < 5 && !(typical >= us * least && typical <= most); tries++) {
        struct end ends[2];
        prepare(ends, params, pair);
        run_ends(ends);
        expect_done(ends);
        expect_figures(&ends[0]);
        typical = ends[0].result.latency_us.typical;
        most =
            sanitized() ? 3 * us : us * 1.02 * (1 + 1.0 / 512) + ends[0].result.resolution_us / 2;
        assert_true(ends[0].result.latency_us.overall >= us * 0.98);
        release(ends);
    }
    if (typical > most)
        skip_if_busy(params->op);
    if (!(typical >= us * least && typical <= most))
        fail_msg("%s, %s: %g us, and %g us were programmed", params->op, params->method, typical,
                 us);
}

static void five_microseconds(const struct weft_bootstrap pair[2])
{
    const struct weft_params tests[] = {
        small("read", "stream", "bcopy"),      small("read", "stream", "zcopy"),
        small_atomic("SUM", true, "stream"),   small_atomic("SWAP", true, "stream"),
        small_atomic("CSWAP", true, "stream"), small("am", "ping-pong", "short")};
    for (size_t i = 0; i < LENGTH(tests); i++) {
        struct weft_params params = tests[i];
        params.device = "null:delay=5us";
        params.iterations = 4000;
        expect_median(&params, pair, 5, 0.98);
    }
}

static void a_programmed_delay_is_what_is_read(void **state)
{
    (void)state;
    with_threads(five_microseconds);
}

/* One at a time: what null was programmed to is the least that can be read. A send is a round trip
 * of two delays, and half of it is the figure. */
static void two_microseconds(const struct weft_bootstrap pair[2])
{
    static const uint64_t gaps_ns[] = {0, 20000};
    static const char *const ops[] = {"write", "read", "send", "atomic"};
    for (size_t i = 0; i < LENGTH(ops); i++)
        for (size_t k = 0; k < LENGTH(gaps_ns); k++) {
            struct weft_params params = small(ops[i], "latency", NULL);
            params.device = "null:delay=2us";
            params.iterations = 4000;
            params.gap_ns = gaps_ns[k];
            expect_median(&params, pair, 2, 1);
        }
}

static void a_programmed_delay_is_the_latency_with_and_without_a_gap(void **state)
{
    (void)state;
    with_threads(two_microseconds);
}

/* Many under way at once take no longer than one. */
static void overlapping(const struct weft_bootstrap pair[2])
{
    struct weft_params params = small("read", "stream", "zcopy");
    struct end ends[2];
    params.device = "null:delay=100us";
    params.outstanding = 10;
    params.iterations = 2000;
    prepare(ends, &params, pair);
    run_ends(ends);
    expect_done(ends);
    assert_true(ends[0].result.elapsed_s >= 200 * 100e-6 * 0.98);
    /* The median, not the elapsed time: other work may take the CPU away. */
    double typical = ends[0].result.latency_us.typical;
    release(ends);
    if (typical >= 50)
        skip_if_busy("read");
    assert_true(typical < 50);
}

static void as_many_as_are_allowed_are_under_way_at_once(void **state)
{
    (void)state;
    with_threads(overlapping);
}

/* All that passes between two reports is in the elapsed time, so that rates are true. */
static void in_wall_time(const struct weft_bootstrap pair[2])
{
    const struct weft_params tests[] = {
        small("write", "stream", "short"), small("read", "stream", "bcopy"),
        small_atomic("SUM", true, "stream"), small("am", "stream", "short")};
    for (size_t i = 0; i < LENGTH(tests); i++) {
        double share = 0;
        for (int tries = 0; tries < 5 && share < 0.98; tries++) {
            struct end ends[2];
            prepare(ends, &tests[i], pair);
            for (int k = 0; k < 2; k++) {
                ends[k].params.iterations = 0;
                ends[k].params.duration_ms = 400;
                ends[k].params.interval_ms = 100;
            }
            run_ends(ends);
            expect_done(ends);
            share = ends[0].reports.counted_s / ends[0].reports.wall_s;
            assert_true(share < 1.001);
            release(ends);
        }
        if (share < 0.98)
            skip_if_busy(tests[i].op);
        if (share < 0.98)
            fail_msg("%s: %.1f %% of the time is missing", tests[i].op, 100 - 100 * share);
    }
}

static void the_elapsed_time_of_a_stream_is_wall_time(void **state)
{
    (void)state;
    with_threads(in_wall_time);
}

static unsigned heard;

static void hear(const char *sentence)
{
    heard += strstr(sentence, "the warm-up ended after 100 ms: ") != NULL;
}

/* A warm-up of hours, and one that is long over; the other end counts what comes, and follows. */
static void warm_up(const struct weft_bootstrap pair[2])
{
    struct weft_params tests[] = {small("am", "ping-pong", "short"), small("am", "stream", "short"),
                                  small("write", "stream", "bcopy")};
    weft_warnings(hear);
    for (size_t i = 0; i < LENGTH(tests); i++)
        for (int cut = 0; cut < 2; cut++) {
            struct end ends[2];
            double begin = seconds();
            heard = 0;
            tests[i].warmup = cut ? UINT64_C(1) << 50 : 5;
            prepare(ends, &tests[i], pair);
            run_ends(ends);
            expect_done(ends);
            assert_int_equal(ends[0].result.iterations, tests[i].iterations);
            assert_true(cut ? ends[0].result.warmup > 0 : ends[0].result.warmup == 5);
            assert_int_equal(heard, cut);
            assert_true(seconds() - begin < 20);
            release(ends);
        }
    weft_warnings(NULL);
}

static void a_warm_up_ends_after_its_count_or_after_a_tenth_of_a_second(void **state)
{
    (void)state;
    with_threads(warm_up);
}

/* ---- what a sample is ---- */

static struct weft_result sampled(const struct weft_params *params,
                                  const struct weft_bootstrap pair[2])
{
    struct end ends[2];
    prepare(ends, params, pair);
    run_ends(ends);
    expect_done(ends);
    expect_figures(&ends[0]);
    struct weft_result result = ends[0].result;
    release(ends);
    return result;
}

/* Nothing is shorter than a write of null. What the other ops do besides may last as long as a
 * costly clock needs. */
static void alone_or_together(const struct weft_bootstrap pair[2])
{
    static const char *const ops[] = {"write", "read", "send", "atomic"};
    for (size_t i = 0; i < LENGTH(ops); i++) {
        struct weft_params params = small(ops[i], "latency", NULL);
        params.device = "null";
        struct weft_result alone = sampled(&params, pair);
        /* A busy machine makes nothing long. */
        for (int more = 0; alone.resolved && more < 5; more++)
            alone = sampled(&params, pair);
        params.ops_per_sample = 1000;
        struct weft_result together = sampled(&params, pair);
        assert_int_equal(together.iterations, 200000);
        assert_int_equal(together.samples, 200);
        assert_true(together.resolved);
        assert_true(together.resolution_us < alone.resolution_us / 500);
        if (sanitized())
            continue;
        assert_int_equal(alone.resolved, alone.latency_us.typical >= alone.resolution_us);
        assert_true(i > 0 || !alone.resolved);
        assert_true(alone.resolved || alone.min_us < alone.resolution_us);
    }
}

static void what_the_clock_cannot_resolve_is_resolved_a_thousand_at_a_time(void **state)
{
    (void)state;
    with_threads(alone_or_together);
}

static void ten_together(const struct weft_bootstrap pair[2])
{
    static const char *const ops[] = {"write", "read", "send", "atomic"};
    for (size_t i = 0; i < LENGTH(ops); i++) {
        struct weft_params params = small(ops[i], "latency", NULL);
        params.device = "null:delay=10us";
        params.ops_per_sample = 10;
        params.gap_ns = 1000;
        expect_median(&params, pair, 10, 1);
    }
}

static void operations_timed_together_take_as_long_as_alone(void **state)
{
    (void)state;
    with_threads(ten_together);
}

/* Too short to be timed one by one, or not. */
static void one_or_many(const struct weft_bootstrap pair[2])
{
    struct weft_params params = small("write", "stream", "short");
    params.iterations = 20001;
    struct weft_result many = sampled(&params, pair);
    assert_true(sanitized() || many.ops_per_sample >= 10);
    assert_true(many.samples <= 20001 / many.ops_per_sample + 2);
    params = small("read", "stream", "bcopy");
    params.device = "null:delay=1us";
    params.iterations = 1000;
    struct weft_result one = sampled(&params, pair);
    assert_int_equal(one.ops_per_sample, 1);
    assert_int_equal(one.samples, 1000);
}

static void a_stream_of_short_operations_has_samples_of_many(void **state)
{
    (void)state;
    with_threads(one_or_many);
}

/* ---- patience ---- */

static void nobody_completes(const struct weft_bootstrap pair[2])
{
    struct weft_params params = small("read", "stream", "bcopy");
    struct end ends[2];
    params.device = "null:delay=3600s";
    params.timeout_ms = 400;
    double begin = seconds();
    prepare(ends, &params, pair);
    run_ends(ends);
    assert_int_equal(ends[0].status, -ETIMEDOUT);
    assert_true(ends[1].status < 0);
    assert_true(seconds() - begin > 0.3 && seconds() - begin < 5);
}

static void an_operation_that_never_completes_ends_at_the_timeout(void **state)
{
    (void)state;
    with_threads(nobody_completes);
}

/* ---- CPUs ---- */

struct pinned {
    struct end end;
    cpu_set_t before, after;
};

static void *run_pinned(void *arg)
{
    struct pinned *p = arg;
    sched_getaffinity(0, sizeof p->before, &p->before);
    run_end(&p->end);
    sched_getaffinity(0, sizeof p->after, &p->after);
    return NULL;
}

static void on_cpus(const struct weft_bootstrap pair[2])
{
    const struct weft_params params = small("am", "ping-pong", "short");
    struct pinned ends[2] = {0};
    pthread_t threads[2];
    cpu_set_t allowed, wanted;
    sched_getaffinity(0, sizeof allowed, &allowed);
    if (CPU_COUNT(&allowed) < 2)
        skip();
    for (int i = 0; i < 2; i++) {
        ends[i].end = (struct end){.params = params, .bootstrap = &pair[i]};
        ends[i].end.params.cpu = cpu_of(i);
    }
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_pinned, &ends[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ends[i].end.status, 0);
        assert_true(CPU_EQUAL(&ends[i].before, &allowed));
        assert_true(CPU_EQUAL(&ends[i].after, &allowed));
        weft_result_free(&ends[i].end.result);
    }
    CPU_ZERO(&wanted);
    CPU_SET((size_t)ends[0].end.params.cpu, &wanted);
    assert_true(CPU_EQUAL(&ends[0].end.reports.cpus, &wanted));
}

static void a_thread_is_put_on_its_cpu_and_back_again(void **state)
{
    (void)state;
    with_threads(on_cpus);
}

/* ---- small things ---- */

static void the_defaults_are_those_of_the_tool(void **state)
{
    struct weft_params p;
    (void)state;
    memset(&p, 0xff, sizeof p);
    weft_params_init(&p);
    assert_int_equal(p.bytes, sizeof p);
    assert_int_equal(p.size, 8);
    assert_string_equal(p.op, "am");
    assert_string_equal(p.method, "ping-pong");
    assert_null(p.layout);
    assert_string_equal(p.amo_op, "SUM");
    assert_string_equal(p.amo_compare, "EQ");
    assert_string_equal(p.amo_type, "UINT64");
    assert_int_equal(p.size_max, 0);
    assert_int_equal(p.gap_ns, 0);
    assert_int_equal(p.timeout_ms, 10000);
    assert_int_equal(p.service, 1);
    assert_string_equal(p.memory, "host");
    assert_null(p.clock);
    assert_int_equal(p.iterations, 1000000);
    assert_int_equal(p.warmup, 10000);
    assert_int_equal(p.window, 128);
    assert_int_equal(p.outstanding, 1);
    assert_int_equal(p.ops_per_sample, 1);
    assert_int_equal(p.am_header, 8);
    assert_int_equal(p.interval_ms, 1000);
    assert_int_equal(p.cpu, -1);
    assert_null(p.device);
    assert_null(p.stop);
    assert_true(*weft_version());
}

static void nothing_has_no_buckets_and_is_freed(void **state)
{
    struct weft_result result = {0};
    size_t at = 0;
    double low, high;
    uint64_t count;
    (void)state;
    assert_int_equal(weft_histogram_next(NULL, &at, &low, &high, &count), 0);
    assert_int_equal(weft_histogram_next(NULL, NULL, &low, &high, &count), -EINVAL);
    assert_int_equal(weft_histogram_next(NULL, &at, NULL, &high, &count), -EINVAL);
    assert_int_equal(weft_histogram_next(NULL, &at, &low, NULL, &count), -EINVAL);
    assert_int_equal(weft_histogram_next(NULL, &at, &low, &high, NULL), -EINVAL);
    weft_result_free(&result);
    weft_result_free(&result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_programmed_delay_is_what_is_read),
        cmocka_unit_test(a_programmed_delay_is_the_latency_with_and_without_a_gap),
        cmocka_unit_test(as_many_as_are_allowed_are_under_way_at_once),
        cmocka_unit_test(the_elapsed_time_of_a_stream_is_wall_time),
        cmocka_unit_test(a_warm_up_ends_after_its_count_or_after_a_tenth_of_a_second),
        cmocka_unit_test(what_the_clock_cannot_resolve_is_resolved_a_thousand_at_a_time),
        cmocka_unit_test(operations_timed_together_take_as_long_as_alone),
        cmocka_unit_test(a_stream_of_short_operations_has_samples_of_many),
        cmocka_unit_test(an_operation_that_never_completes_ends_at_the_timeout),
        cmocka_unit_test(a_thread_is_put_on_its_cpu_and_back_again),
        cmocka_unit_test(the_defaults_are_those_of_the_tool),
        cmocka_unit_test(nothing_has_no_buckets_and_is_freed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
