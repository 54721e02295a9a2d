/* SPDX-License-Identifier: BSD-3-Clause */
/* The public library between two threads: every test that the software NIC has, figures that agree
 * with each other, and limits of time. */
#include "support/ends.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- every test of the software NIC ---- */

static const char *const layouts[] = {"short", "bcopy", "zcopy"};
enum { SHORT = 1, BCOPY = 2, ZCOPY = 4 };

static const struct {
    const char *op, *amo_op;
    bool fetching, ping_pong, stream, latency;
    bool asks;        /* verifying asks the other end */
    unsigned layouts; /* but for latency */
} ops[] = {{"am", NULL, false, true, true, false, false, SHORT | BCOPY | ZCOPY},
           {"write", NULL, false, true, true, true, true, SHORT | BCOPY | ZCOPY},
           {"read", NULL, false, false, true, true, false, BCOPY | ZCOPY},
           {"send", NULL, false, false, false, true, false, 0},
           {"atomic", "SUM", false, true, true, true, true, SHORT},
           {"atomic", "SUM", true, true, true, true, true, SHORT},
           {"atomic", "SWAP", true, false, true, true, true, SHORT},
           {"atomic", "CSWAP", true, false, true, true, true, SHORT}};

static bool has(size_t op, const char *method)
{
    return strcmp(method, "latency") == 0     ? ops[op].latency
           : strcmp(method, "ping-pong") == 0 ? ops[op].ping_pong
                                              : ops[op].stream;
}

/* The atomic's type is as long as the size. */
static struct weft_params test_of(size_t op, const char *method, const char *layout, uint64_t size)
{
    struct weft_params params = small(ops[op].op, method, layout);
    params.size = size;
    if (ops[op].amo_op) {
        params.amo_op = ops[op].amo_op;
        params.fetching = ops[op].fetching;
        params.amo_type = size == 4 ? "UINT32" : "UINT64";
    }
    return params;
}

static unsigned every_test_of(size_t op, const char *method, bool verify,
                              const struct weft_bootstrap pair[2])
{
    static const uint64_t sizes[] = {8, 4, 1, 64, 4096};
    unsigned ran = 0;
    for (size_t l = 0; l < LENGTH(layouts); l++)
        for (size_t k = 0; k < LENGTH(sizes); k++) {
            struct weft_params params = test_of(op, method, layouts[l], sizes[k]);
            bool brief = 1U << l == SHORT, am = strcmp(params.op, "am") == 0;
            params.verify = verify;
            params.outstanding = k % 2 ? 8 : 1;
            params.window = k % 2 ? 5 : 128;
            if (am && params.size < 8)
                params.am_header = 0;
            if (!(ops[op].layouts & 1U << l) || (params.both_ways && verify && ops[op].asks) ||
                (ops[op].amo_op && params.size != 4 && params.size != 8) ||
                (brief && (params.size > 64 || (am && params.size < 8))))
                continue;
            expect_good(&params, pair);
            ran++;
        }
    return ran;
}

static void every_test_in(const char *method, bool verify)
{
    struct weft_bootstrap pair[2];
    unsigned ran = 0;
    assert_int_equal(weft_threads(pair), 0);
    for (size_t i = 0; i < LENGTH(ops); i++)
        if (has(i, method))
            ran += every_test_of(i, method, verify, pair);
    assert_true(ran >= 10);
    weft_close(&pair[0]);
    weft_close(&pair[1]);
}

static void every_ping_pong_runs_and_its_figures_agree(void **state)
{
    (void)state;
    every_test_in("ping-pong", false);
}

static void every_ping_pong_runs_verified(void **state)
{
    (void)state;
    every_test_in("ping-pong", true);
}

/* Both ends sleep while they wait, in one process. */
static void asleep(const struct weft_bootstrap pair[2])
{
    static const char *const methods[] = {"ping-pong", "stream", "latency"};
    for (size_t i = 0; i < LENGTH(ops) * LENGTH(methods); i++) {
        size_t op = i / LENGTH(methods);
        const char *method = methods[i % LENGTH(methods)], *layout = layouts[op == 2];
        struct weft_params params =
            test_of(op, method, i % LENGTH(methods) == 2 ? NULL : layout, 8);
        params.iterations = 200;
        params.events = 1;
        params.verify = 1;
        if (has(op, method))
            expect_good(&params, pair);
    }
}

static void every_test_can_sleep(void **state)
{
    (void)state;
    with_threads(asleep);
}

static void of_the_defaults(const struct weft_bootstrap pair[2])
{
    struct weft_params params;
    weft_params_init(&params);
    params.op = "read";
    params.method = "stream";
    expect_good(&params, pair);
}

static void a_stream_of_reads_needs_no_more_than_its_name(void **state)
{
    (void)state;
    with_threads(of_the_defaults);
}

static void every_stream_runs_and_its_figures_agree(void **state)
{
    (void)state;
    every_test_in("stream", false);
}

static void every_stream_runs_verified(void **state)
{
    (void)state;
    every_test_in("stream", true);
}

static void every_stream_both_ways_runs_and_its_figures_agree(void **state)
{
    (void)state;
    every_test_in("both ways", false);
}

static void every_stream_both_ways_that_can_be_verified_is(void **state)
{
    (void)state;
    every_test_in("both ways", true);
}

static void one_at_a_time(const struct weft_bootstrap pair[2])
{
    static const uint64_t sizes[] = {8, 4, 64, 4096};
    for (size_t i = 0; i < LENGTH(ops); i++)
        for (size_t k = 0; k < LENGTH(sizes) && ops[i].latency; k++)
            for (int verify = 0; verify < 2; verify++) {
                struct weft_params params = test_of(i, "latency", NULL, sizes[k]);
                params.iterations = 50;
                params.gap_ns = k % 2 ? 5000 : 0;
                params.verify = verify;
                expect_good(&params, pair);
            }
}

static void every_latency_runs_with_and_without_a_gap_verified_or_not(void **state)
{
    (void)state;
    with_threads(one_at_a_time);
}

static void hinted(const struct weft_bootstrap pair[2])
{
    static const char *const sized[] = {"write", "read", "send"};
    for (unsigned bits = 1; bits < 32; bits++)
        for (size_t i = 0; i < LENGTH(sized); i++) {
            struct weft_params params = small(sized[i], "latency", NULL);
            params.iterations = 20;
            params.verify = 1;
            params.unrestricted = bits & 1;
            params.no_idc = (bits & 2) != 0;
            params.no_ll = (bits & 4) != 0;
            params.rendezvous = (bits & 8) && strcmp(sized[i], "send") == 0;
            params.matching = (bits & 16) != 0;
            expect_good(&params, pair);
        }
}

static void every_hint_to_the_nic_may_be_given(void **state)
{
    (void)state;
    with_threads(hinted);
}

/* On null nobody answers: what needs an answer is refused, see api_refuse. */
static void on_null(const struct weft_bootstrap pair[2])
{
    static const char *const methods[] = {"latency", "ping-pong", "stream", "both ways"};
    unsigned ran = 0;
    for (size_t i = 0; i < LENGTH(ops); i++)
        for (size_t k = 0; k < LENGTH(methods); k++) {
            struct weft_params params = test_of(i, methods[k], NULL, 8);
            bool am = strcmp(ops[i].op, "am") == 0;
            params.device = "null";
            params.gap_ns = i % 2 ? 1000 : 0;
            if (!has(i, methods[k]) || am != (strcmp(methods[k], "ping-pong") == 0))
                continue;
            expect_good(&params, pair);
            ran++;
        }
    assert_int_equal(ran, 1 + 7 + 6 + 6);
}

static void every_test_that_nobody_has_to_answer_runs_on_null(void **state)
{
    (void)state;
    with_threads(on_null);
}

/* The fabric of tests/doubles/fabric_corrupts_all.c spoils one of twenty. */
static void expect_caught(struct weft_params params)
{
    for (int verify = 0; verify < 2; verify++) {
        struct weft_bootstrap pair[2];
        struct end ends[2];
        params.device = "corrupts_all:cxi0";
        params.verify = verify;
        assert_int_equal(weft_threads(pair), 0);
        prepare(ends, &params, pair);
        run_ends(ends);
        bool caught = ends[0].status == -EBADMSG || ends[1].status == -EBADMSG;
        if (caught != verify || (ends[0].status != 0) != verify || (ends[1].status != 0) != verify)
            fail_msg("%s, %s%s: %d %s, %d %s", params.op, params.method, verify ? " verified" : "",
                     ends[0].status, ends[0].reason, ends[1].status, ends[1].reason);
        for (int k = 0; k < 2 && verify; k++)
            assert_contains(ends[k].reason, "verify: ");
        release(ends);
        weft_close(&pair[0]);
        weft_close(&pair[1]);
    }
}

static void faults_are_caught_where_data_is_verified_and_only_there(void **state)
{
    struct weft_params tests[] = {
        small("am", "ping-pong", "bcopy"),    small("am", "stream", "short"),
        small("am", "both ways", "bcopy"),    small("write", "ping-pong", "short"),
        small("write", "stream", "bcopy"),    small("read", "stream", "bcopy"),
        small("write", "latency", NULL),      small("read", "latency", NULL),
        small_atomic("SUM", false, "stream"), small_atomic("SUM", true, "stream"),
        small_atomic("SWAP", true, "stream"), small_atomic("CSWAP", true, "stream"),
        small_atomic("SUM", true, "latency")};
    (void)state;
    for (size_t i = 0; i < LENGTH(tests); i++) {
        tests[i].size = i % 2 ? 64 : 200;
        expect_caught(tests[i]);
    }
}

static void at_the_edges(const struct weft_bootstrap pair[2])
{
    for (uint64_t n = 1; n <= 40; n += n < 12 ? 1 : 7) {
        struct weft_params params = small("am", "ping-pong", "short");
        params.iterations = n;
        params.warmup = n % 2;
        expect_good(&params, pair);
        params = small("read", "stream", "bcopy");
        params.iterations = n;
        params.warmup = n % 2;
        params.outstanding = 4;
        expect_good(&params, pair);
        params = small("am", "stream", "short");
        params.iterations = n;
        params.warmup = n % 2;
        params.window = 3;
        expect_good(&params, pair);
    }
}

static void few_iterations_are_counted_and_have_percentiles_only_where_ten_lie_beyond(void **state)
{
    (void)state;
    with_threads(at_the_edges);
}

static void own_percentiles(const struct weft_bootstrap pair[2])
{
    struct weft_params params = small("write", "ping-pong", "short");
    params.iterations = 2000;
    for (int i = 0; i < WEFT_PERCENTILES; i++)
        params.percentiles[i] = 99.9 - i * 6.5;
    expect_good(&params, pair);
    memset(params.percentiles, 0, sizeof params.percentiles);
    expect_good(&params, pair);
}

static void as_many_percentiles_as_there_is_room_for_or_none(void **state)
{
    (void)state;
    with_threads(own_percentiles);
}

/* A result or a report may be left out. */
static void *run_quietly(void *arg)
{
    struct end *end = arg;
    end->status = weft_run(&end->params, end->bootstrap, NULL, NULL, NULL);
    return NULL;
}

static void unheard(const struct weft_bootstrap pair[2])
{
    const struct weft_params params = small("am", "stream", "short");
    pthread_t threads[2];
    struct end ends[2];
    prepare(ends, &params, pair);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_quietly, &ends[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(ends[0].status, 0);
    assert_int_equal(ends[1].status, 0);
}

static void report_and_result_may_be_left_out(void **state)
{
    (void)state;
    with_threads(unheard);
}

/* ---- limits of time ---- */

/* How many reports came. */
static unsigned for_a_while_by(const char *method, const struct weft_bootstrap pair[2])
{
    struct weft_params params = small("am", method, "short");
    struct end ends[2];
    params.iterations = 0;
    params.duration_ms = 200;
    params.interval_ms = 50;
    prepare(ends, &params, pair);
    run_ends(ends);
    expect_done(ends);
    expect_figures(&ends[0]);
    expect_reports(ends);
    assert_true(ends[0].result.iterations > 0);
    assert_true(ends[0].result.elapsed_s >= 0.199);
    assert_true(ends[0].result.elapsed_s < 5);
    unsigned count = ends[0].reports.count;
    release(ends);
    assert_in_range(count, 1, 5);
    return count;
}

/* On a busy machine one wait for a CPU may be longer than all of the intervals. */
static void for_a_while(const struct weft_bootstrap pair[2])
{
    static const char *const methods[] = {"ping-pong", "stream", "both ways"};
    for (size_t i = 0; i < LENGTH(methods); i++) {
        unsigned count = 0;
        for (int attempt = 0; attempt < 5 && count < 2; attempt++)
            count = for_a_while_by(methods[i], pair);
        assert_in_range(count, 2, 5);
    }
}

static void a_duration_ends_a_test_and_intervals_are_reported(void **state)
{
    (void)state;
    with_threads(for_a_while);
}

/* Every operation takes longer than an interval, also the last. */
static void slower_than_intervals(const struct weft_bootstrap pair[2])
{
    const struct weft_params tests[] = {small("am", "ping-pong", "short"),
                                        small("read", "stream", "bcopy")};
    for (size_t i = 0; i < LENGTH(tests); i++) {
        struct weft_params params = tests[i];
        params.device = "null:delay=3ms";
        params.iterations = 4;
        params.warmup = 0;
        params.interval_ms = 1;
        struct end ends[2];
        prepare(ends, &params, pair);
        run_ends(ends);
        expect_done(ends);
        expect_figures(&ends[0]);
        expect_reports(ends);
        assert_true(ends[0].result.latency_us.recent >= 3000 * 0.98);
        assert_int_equal(ends[0].reports.count, 4);
        release(ends);
    }
}

static void an_interval_that_ends_with_the_last_operation_has_no_report_of_its_own(void **state)
{
    (void)state;
    with_threads(slower_than_intervals);
}

static void iterations_first(const struct weft_bootstrap pair[2])
{
    struct weft_params params = small("write", "stream", "short");
    params.duration_ms = 3600000;
    expect_good(&params, pair);
}

static void of_two_limits_the_first_one_counts(void **state)
{
    (void)state;
    with_threads(iterations_first);
}

static void until_stopped(const struct weft_bootstrap pair[2], const char *op, const char *method)
{
    struct weft_params params = small(op, method, NULL);
    volatile sig_atomic_t stop = 0;
    struct end ends[2];
    params.iterations = 0;
    params.interval_ms = 30;
    prepare(ends, &params, pair);
    ends[0].params.stop = &stop;
    ends[0].reports.stop_at = &stop;
    run_ends(ends);
    assert_int_equal(ends[0].status, -EINTR);
    assert_true(ends[1].status < 0 && ends[1].status != -ETIMEDOUT);
    assert_non_null(strstr(ends[1].reason, "interrupted"));
    assert_true(ends[0].result.final);
    assert_true(ends[0].result.iterations > 0);
    assert_int_equal(ends[0].result.transferred, ends[0].result.iterations * 8);
    assert_true(ends[0].result.elapsed_s >= 0.03 && ends[0].result.elapsed_s < 5);
    expect_reports(ends);
    assert_true(ends[0].reports.count >= 3);
    release(ends);
}

static void stopped_streams(const struct weft_bootstrap pair[2])
{
    until_stopped(pair, "read", "stream");
}

static void stopped_messages(const struct weft_bootstrap pair[2])
{
    until_stopped(pair, "am", "stream");
}

static void stopped_ping_pong(const struct weft_bootstrap pair[2])
{
    until_stopped(pair, "write", "ping-pong");
}

static void a_test_without_limits_goes_on_until_it_is_stopped(void **state)
{
    (void)state;
    with_threads(stopped_streams);
    with_threads(stopped_messages);
    with_threads(stopped_ping_pong);
}

/* Nothing is reported between: the other end's thread says when. */
static void *stop_later(void *stop)
{
    rest_ms(500);
    *(volatile sig_atomic_t *)stop = 1;
    return NULL;
}

static void stopped_latency(const struct weft_bootstrap pair[2])
{
    struct weft_params params = small("write", "latency", NULL);
    volatile sig_atomic_t stop = 0;
    struct end ends[2];
    pthread_t thread;
    params.iterations = 0;
    params.gap_ns = 1000;
    prepare(ends, &params, pair);
    ends[0].params.stop = &stop;
    assert_int_equal(pthread_create(&thread, NULL, stop_later, (void *)&stop), 0);
    run_ends(ends);
    pthread_join(thread, NULL);
    assert_int_equal(ends[0].status, -EINTR);
    assert_contains(ends[1].reason, "interrupted");
    assert_true(ends[0].result.final && ends[0].result.iterations > 0);
    expect_figures(&ends[0]);
    expect_reports(ends);
    release(ends);
}

static void latency_without_limits_goes_on_until_it_is_stopped_too(void **state)
{
    (void)state;
    with_threads(stopped_latency);
}

static void for_a_while_one_at_a_time(const struct weft_bootstrap pair[2])
{
    struct weft_params params = small("read", "latency", NULL);
    struct end ends[2];
    params.duration_ms = 100;
    params.gap_ns = 1000;
    double begin = seconds();
    prepare(ends, &params, pair);
    run_ends(ends);
    expect_done(ends);
    expect_figures(&ends[0]);
    expect_reports(ends);
    assert_true(seconds() - begin >= 0.099);
    assert_true(ends[0].result.iterations > params.iterations);
    release(ends);
}

static void a_duration_overrides_the_iterations_of_latency(void **state)
{
    (void)state;
    with_threads(for_a_while_one_at_a_time);
}

/* ---- sizes ---- */

static void size_after_size(const struct weft_bootstrap pair[2])
{
    const struct weft_params tests[] = {
        small("write", "latency", NULL),   small("read", "latency", NULL),
        small("send", "latency", NULL),    small("am", "ping-pong", NULL),
        small("write", "ping-pong", NULL), small("read", "stream", NULL),
        small("am", "both ways", "bcopy")};
    for (size_t i = 0; i < LENGTH(tests); i++) {
        struct weft_params params = tests[i];
        struct end ends[2];
        params.size = 8;
        params.size_max = 1024;
        params.verify = !params.both_ways;
        prepare(ends, &params, pair);
        run_ends(ends);
        expect_done(ends);
        assert_int_equal(ends[0].reports.finals, 8);
        assert_int_equal(ends[0].reports.count, 8);
        for (int k = 0; k < 8; k++)
            assert_int_equal(ends[0].reports.sizes[k], 8U << k);
        assert_int_equal(ends[1].reports.count, 0);
        assert_int_equal(ends[0].result.size, 1024);
        assert_int_equal(ends[0].result.iterations, params.iterations);
        expect_figures(&ends[0]);
        release(ends);
    }
}

static void a_range_of_sizes_has_a_report_for_each_and_the_last_for_a_result(void **state)
{
    (void)state;
    with_threads(size_after_size);
}

/* On a fabric that says it is on lo. */
static void counted(const struct weft_bootstrap pair[2])
{
    static const char *const names[] = {"rx_bytes", "rx_errors"};
    struct weft_params params = small("write", "latency", NULL);
    struct end ends[2];
    size_t at = 0, count = 0;
    int end;
    const char *device, *name;
    double delta;
    params.device = "counts:cxi0";
    params.size_max = 16;
    params.counters = "rx_bytes,rx_errors";
    prepare(ends, &params, pair);
    run_ends(ends);
    assert_int_equal(ends[0].status, 0);
    const struct weft_counters *all = ends[0].result.counters;
    assert_non_null(all);
    for (; weft_counters_next(all, &at, &end, &device, &name, &delta) == 1; count++) {
        assert_int_equal(end, count / 2);
        assert_string_equal(device, "lo");
        assert_string_equal(name, names[count % 2]);
        assert_true(delta >= 0);
    }
    assert_int_equal(count, 4);
    assert_int_equal(weft_counters_next(all, NULL, &end, &device, &name, &delta), -EINVAL);
    release(ends);
    assert_null(ends[0].result.counters);
    params.counters = "rx_byte";
    prepare(ends, &params, pair);
    run_ends(ends);
    assert_int_equal(ends[0].status, -EINVAL);
    assert_contains(ends[0].reason, "counter rx_byte: neither lo at the client");
    release(ends);
    params.counters = NULL;
    prepare(ends, &params, pair);
    run_ends(ends);
    assert_int_equal(ends[0].status, 0);
    assert_null(ends[0].result.counters);
    release(ends);
}

static void counters_of_network_devices_are_part_of_the_result(void **state)
{
    (void)state;
    if (access("/sys/class/net/lo/statistics/rx_bytes", R_OK))
        skip();
    setenv("WEFT_TEST_DEVICE", "lo", 1);
    setenv("WEFT_TEST_COUNTS", "/dev/null", 1);
    with_threads(counted);
    unsetenv("WEFT_TEST_DEVICE");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_ping_pong_runs_and_its_figures_agree),
        cmocka_unit_test(every_ping_pong_runs_verified),
        cmocka_unit_test(every_test_can_sleep),
        cmocka_unit_test(a_stream_of_reads_needs_no_more_than_its_name),
        cmocka_unit_test(every_stream_runs_and_its_figures_agree),
        cmocka_unit_test(every_stream_runs_verified),
        cmocka_unit_test(every_stream_both_ways_runs_and_its_figures_agree),
        cmocka_unit_test(every_stream_both_ways_that_can_be_verified_is),
        cmocka_unit_test(every_latency_runs_with_and_without_a_gap_verified_or_not),
        cmocka_unit_test(every_hint_to_the_nic_may_be_given),
        cmocka_unit_test(every_test_that_nobody_has_to_answer_runs_on_null),
        cmocka_unit_test(faults_are_caught_where_data_is_verified_and_only_there),
        cmocka_unit_test(few_iterations_are_counted_and_have_percentiles_only_where_ten_lie_beyond),
        cmocka_unit_test(as_many_percentiles_as_there_is_room_for_or_none),
        cmocka_unit_test(report_and_result_may_be_left_out),
        cmocka_unit_test(a_duration_ends_a_test_and_intervals_are_reported),
        cmocka_unit_test(an_interval_that_ends_with_the_last_operation_has_no_report_of_its_own),
        cmocka_unit_test(of_two_limits_the_first_one_counts),
        cmocka_unit_test(a_test_without_limits_goes_on_until_it_is_stopped),
        cmocka_unit_test(latency_without_limits_goes_on_until_it_is_stopped_too),
        cmocka_unit_test(a_duration_overrides_the_iterations_of_latency),
        cmocka_unit_test(a_range_of_sizes_has_a_report_for_each_and_the_last_for_a_result),
        cmocka_unit_test(counters_of_network_devices_are_part_of_the_result),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
