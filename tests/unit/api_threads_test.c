/* SPDX-License-Identifier: BSD-3-Clause */
/* Several threads at each end: results are sums, a failure of one ends all, and what cannot be is
 * refused at both ends. */
#include "support/ends.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { THREADS = 4, ITERATIONS = 50, LIST = 8 };

static struct weft_params several(const char *op, const char *method, const char *device)
{
    struct weft_params params = small(op, method, NULL);
    params.device = device;
    params.iterations = ITERATIONS;
    params.warmup = 5;
    params.list = LIST;
    params.threads = THREADS;
    params.cpu = -1;
    params.timeout_ms = 20000;
    return params;
}

/* Reports came from this thread alone, which fields say. */
static struct end *run_good(struct end ends[2], const struct weft_params *params,
                            const struct weft_bootstrap pair[2])
{
    prepare(ends, params, pair);
    run_ends(ends);
    expect_done(ends);
    return ends;
}

static void sums(const struct weft_bootstrap pair[2], const char *device)
{
    static const struct {
        const char *op, *method;
        bool verify;
        unsigned each; /* operations of an iteration */
    } kinds[] = {{"am", "ping-pong", true, 1},  {"write", "stream", true, 1},
                 {"am", "stream", false, 1},    {"write", "both ways", false, 1},
                 {"write", "list", true, LIST}, {"read", "latency", true, 1},
                 {"atomic", "stream", true, 1}, {"tag", "stream", false, 1}};
    for (size_t i = 0; i < LENGTH(kinds); i++) {
        struct weft_params params = several(kinds[i].op, kinds[i].method, device);
        struct end ends[2];
        params.verify = kinds[i].verify && strncmp(device, "null", 4) != 0;
        /* Nobody is there to acknowledge. */
        if (strncmp(device, "null", 4) == 0 &&
            (strcmp(kinds[i].op, "am") == 0 || strcmp(kinds[i].op, "tag") == 0))
            continue;
        const struct weft_result *r = &run_good(ends, &params, pair)->result;
        uint64_t all = (uint64_t)THREADS * ITERATIONS * kinds[i].each;
        assert_int_equal(r->iterations, all);
        assert_int_equal(r->transferred, all * r->size);
        assert_int_equal(ends[0].reports.finals, 1);
        if (strcmp(kinds[i].method, "both ways") == 0)
            assert_int_equal(r->reverse_iterations, all);
        if (strcmp(kinds[i].method, "latency") != 0) {
            /* Of threads that took as long as the slowest, at least. */
            assert_true(r->rate.overall >= (double)all / r->elapsed_s * 0.999);
            assert_true(fabs(r->bandwidth.overall / r->rate.overall - (double)r->size) < 1e-6);
        }
        release(ends);
    }
}

static void sums_on_soft(const struct weft_bootstrap pair[2])
{
    sums(pair, "soft");
}

static void sums_on_null(const struct weft_bootstrap pair[2])
{
    sums(pair, "null");
}

static void on_soft_the_result_is_the_sum_of_all_threads(void **state)
{
    (void)state;
    with_threads(sums_on_soft);
}

static void on_null_the_result_is_the_sum_of_all_threads(void **state)
{
    (void)state;
    with_threads(sums_on_null);
}

/* Every write takes 1 ms: so a thread has at most 1000 a second, and the median is 1 ms. */
static void delays(const struct weft_bootstrap pair[2])
{
    struct weft_params params = several("read", "stream", "null:delay=1ms");
    struct end ends[2];
    const struct weft_result *r = &run_good(ends, &params, pair)->result;
    assert_true(r->rate.overall <= THREADS * 1000.0 * 1.001);
    assert_true(r->latency_us.recent >= 999 && r->latency_us.overall >= 999);
    assert_true(r->latency_us.typical >= 999);
    assert_int_equal(r->samples, THREADS * ITERATIONS);
    release(ends);
}

static void rates_are_added_and_latencies_are_not(void **state)
{
    (void)state;
    with_threads(delays);
}

static void intervals(const struct weft_bootstrap pair[2])
{
    struct weft_params params = several("read", "stream", "null:delay=1ms");
    struct end ends[2];
    params.iterations = 0;
    params.duration_ms = 700;
    params.interval_ms = 100;
    run_good(ends, &params, pair);
    assert_true(ends[0].reports.count >= 3);
    assert_true(ends[0].reports.grows);
    assert_int_equal(ends[0].reports.finals, 1);
    release(ends);
}

static void reports_in_between_are_sums_too(void **state)
{
    (void)state;
    with_threads(intervals);
}

/* ---- sessions ---- */

static void one_after_the_other(const struct weft_bootstrap pair[2])
{
    static const uint64_t threads[] = {1, 3, 3, 2, 1, 4};
    struct sessions sessions;
    sessions_open(&sessions, pair);
    for (size_t i = 0; i < LENGTH(threads); i++) {
        struct weft_params params = several(i % 2 ? "write" : "am", "ping-pong", "soft");
        params.threads = threads[i];
        expect_good_on(&sessions, &params);
    }
    sessions_close(&sessions);
}

static void tests_of_different_numbers_follow_each_other_on_one_session(void **state)
{
    (void)state;
    with_threads(one_after_the_other);
}

/* ---- what is refused, and what fails ---- */

static void refusals(const struct weft_bootstrap pair[2])
{
    struct weft_params params = several("write", "stream", "soft");
    struct end ends[2];
    prepare(ends, &params, pair);
    ends[0].params.threads = 3;
    expect_refused(ends, -EINVAL, "threads is 3 at the client and 4 at the server");
    params.threads = 129;
    prepare(ends, &params, pair);
    expect_refused(ends, -EINVAL, "threads is out of range: \"129\"");
    params.threads = 0;
    prepare(ends, &params, pair);
    expect_refused(ends, -EINVAL, "threads is out of range: \"0\"");
    params = several("write", "stream", "soft");
    expect_good(&params, pair);
}

static void numbers_that_differ_or_cannot_be_are_refused(void **state)
{
    (void)state;
    with_threads(refusals);
}

/* One bit of every twentieth write is wrong, and only one thread sees it first. */
static void corrupted(const struct weft_bootstrap pair[2])
{
    struct weft_params params = several("write", "stream", "corrupts:cxi0");
    struct end ends[2];
    params.verify = 1;
    prepare(ends, &params, pair);
    run_ends(ends);
    for (int i = 0; i < 2; i++) {
        assert_int_not_equal(ends[i].status, 0);
        assert_contains(ends[i].reason, "byte");
    }
    release(ends);
}

static void a_failure_of_one_thread_ends_all_at_both_ends(void **state)
{
    (void)state;
    with_threads(corrupted);
}

static void interrupted(const struct weft_bootstrap pair[2])
{
    static volatile sig_atomic_t stop;
    struct weft_params params = several("read", "stream", "null:delay=1ms");
    struct end ends[2];
    stop = 0;
    params.iterations = 0;
    params.duration_ms = 60000;
    params.interval_ms = 50;
    params.stop = &stop;
    prepare(ends, &params, pair);
    ends[0].reports.stop_at = &stop;
    run_ends(ends);
    assert_int_equal(ends[0].status, -EINTR);
    assert_true(ends[0].result.iterations > 0);
    assert_int_not_equal(ends[1].status, 0);
    release(ends);
}

static void an_interrupt_ends_all_with_what_was_measured(void **state)
{
    (void)state;
    with_threads(interrupted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(on_soft_the_result_is_the_sum_of_all_threads),
        cmocka_unit_test(on_null_the_result_is_the_sum_of_all_threads),
        cmocka_unit_test(rates_are_added_and_latencies_are_not),
        cmocka_unit_test(reports_in_between_are_sums_too),
        cmocka_unit_test(tests_of_different_numbers_follow_each_other_on_one_session),
        cmocka_unit_test(numbers_that_differ_or_cannot_be_are_refused),
        cmocka_unit_test(a_failure_of_one_thread_ends_all_at_both_ends),
        cmocka_unit_test(an_interrupt_ends_all_with_what_was_measured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
