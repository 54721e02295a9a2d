/* SPDX-License-Identifier: BSD-3-Clause */
/* The public library between two threads: every test that the software NIC has, figures that agree
 * with each other, and limits of time. */
#include "support/ends.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

/* ---- every test of the software NIC ---- */

static const struct {
    enum weft_op op;
    bool ping_pong, atomic, asks;
    bool layouts[WEFT_ZCOPY + 1];
} ops[] = {
    {WEFT_AM, true, false, false, {[WEFT_SHORT] = true, [WEFT_BCOPY] = true, [WEFT_ZCOPY] = true}},
    {WEFT_PUT, true, false, true, {[WEFT_SHORT] = true, [WEFT_BCOPY] = true, [WEFT_ZCOPY] = true}},
    {WEFT_GET, false, false, false, {[WEFT_BCOPY] = true, [WEFT_ZCOPY] = true}},
    {WEFT_ADD, true, true, true, {[WEFT_SHORT] = true}},
    {WEFT_FADD, false, true, true, {[WEFT_SHORT] = true}},
    {WEFT_SWAP, false, true, true, {[WEFT_SHORT] = true}},
    {WEFT_CSWAP, false, true, true, {[WEFT_SHORT] = true}}};

static void every_test_in_mode(enum weft_mode mode, bool verify)
{
    static const uint64_t sizes[] = {8, 4, 1, 64, 4096};
    struct weft_bootstrap pair[2];
    unsigned ran = 0;
    assert_int_equal(weft_threads(pair), 0);
    for (size_t i = 0; i < LENGTH(ops); i++)
        for (enum weft_layout layout = WEFT_SHORT; layout <= WEFT_ZCOPY; layout++)
            for (size_t k = 0; k < LENGTH(sizes); k++) {
                struct weft_params params = small(ops[i].op, mode, layout);
                params.size = sizes[k];
                params.verify = verify;
                params.outstanding = k % 2 ? 8 : 1;
                params.window = k % 2 ? 5 : 128;
                if (params.op == WEFT_AM && params.layout == WEFT_ZCOPY && params.size < 8)
                    params.am_header = 0;
                if ((mode == WEFT_PING_PONG && !ops[i].ping_pong) || !ops[i].layouts[layout] ||
                    (ops[i].atomic && params.size != 4 && params.size != 8) ||
                    (mode == WEFT_STREAM_BOTH && verify && ops[i].asks) ||
                    (layout == WEFT_SHORT && params.size > 64) ||
                    (ops[i].op == WEFT_AM && layout == WEFT_SHORT && params.size < 8))
                    continue;
                expect_good(&params, pair);
                ran++;
            }
    assert_true(ran >= 10);
    weft_close(&pair[0]);
    weft_close(&pair[1]);
}

static void every_ping_pong_runs_and_its_figures_agree(void **state)
{
    (void)state;
    every_test_in_mode(WEFT_PING_PONG, false);
}

static void every_ping_pong_runs_verified(void **state)
{
    (void)state;
    every_test_in_mode(WEFT_PING_PONG, true);
}

static void every_stream_runs_and_its_figures_agree(void **state)
{
    (void)state;
    every_test_in_mode(WEFT_STREAM, false);
}

static void every_stream_runs_verified(void **state)
{
    (void)state;
    every_test_in_mode(WEFT_STREAM, true);
}

static void every_stream_both_ways_runs_and_its_figures_agree(void **state)
{
    (void)state;
    every_test_in_mode(WEFT_STREAM_BOTH, false);
}

static void every_stream_both_ways_that_can_be_verified_is(void **state)
{
    (void)state;
    every_test_in_mode(WEFT_STREAM_BOTH, true);
}

/* The fabric of tests/doubles/fabric_corrupts_all.c spoils one of twenty. */
static void faults_are_caught_where_data_is_verified_and_only_there(void **state)
{
    static const struct {
        enum weft_op op;
        enum weft_mode mode;
        enum weft_layout layout;
        uint64_t size;
    } tests[] = {
        {WEFT_AM, WEFT_PING_PONG, WEFT_BCOPY, 64},   {WEFT_AM, WEFT_STREAM, WEFT_SHORT, 64},
        {WEFT_AM, WEFT_STREAM_BOTH, WEFT_BCOPY, 64}, {WEFT_PUT, WEFT_PING_PONG, WEFT_SHORT, 64},
        {WEFT_PUT, WEFT_STREAM, WEFT_BCOPY, 8},      {WEFT_GET, WEFT_STREAM, WEFT_BCOPY, 64},
        {WEFT_ADD, WEFT_STREAM, WEFT_SHORT, 8},      {WEFT_FADD, WEFT_STREAM, WEFT_SHORT, 4},
        {WEFT_SWAP, WEFT_STREAM, WEFT_SHORT, 8},     {WEFT_CSWAP, WEFT_STREAM, WEFT_SHORT, 8}};
    (void)state;
    for (size_t i = 0; i < 2 * LENGTH(tests); i++) {
        struct weft_params params = small(tests[i / 2].op, tests[i / 2].mode, tests[i / 2].layout);
        struct weft_bootstrap pair[2];
        struct end ends[2];
        params.size = tests[i / 2].size;
        params.device = "corrupts_all:cxi0";
        params.verify = i % 2 == 1;
        assert_int_equal(weft_threads(pair), 0);
        prepare(ends, &params, pair);
        run_ends(ends);
        bool caught = ends[0].status == -EBADMSG || ends[1].status == -EBADMSG;
        if (caught != params.verify || !ends[0].status != !ends[1].status)
            fail_msg("test %zu%s: %d %s, %d %s", i / 2, params.verify ? " verified" : "",
                     ends[0].status, ends[0].reason, ends[1].status, ends[1].reason);
        for (int k = 0; k < 2 && params.verify; k++)
            assert_non_null(strstr(ends[k].reason, "--verify: "));
        release(ends);
        weft_close(&pair[0]);
        weft_close(&pair[1]);
    }
}

static void at_the_edges(const struct weft_bootstrap pair[2])
{
    for (uint64_t n = 1; n <= 40; n += n < 12 ? 1 : 7) {
        struct weft_params params = small(WEFT_AM, WEFT_PING_PONG, WEFT_SHORT);
        params.iterations = n;
        params.warmup = n % 2;
        expect_good(&params, pair);
        params = small(WEFT_GET, WEFT_STREAM, WEFT_BCOPY);
        params.iterations = n;
        params.warmup = n % 2;
        params.outstanding = 4;
        expect_good(&params, pair);
        params = small(WEFT_AM, WEFT_STREAM, WEFT_SHORT);
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
    struct weft_params params = small(WEFT_PUT, WEFT_PING_PONG, WEFT_SHORT);
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
    const struct weft_params params = small(WEFT_AM, WEFT_STREAM, WEFT_SHORT);
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

static void for_a_while(const struct weft_bootstrap pair[2])
{
    static const enum weft_mode modes[] = {WEFT_PING_PONG, WEFT_STREAM, WEFT_STREAM_BOTH};
    for (size_t i = 0; i < LENGTH(modes); i++) {
        struct weft_params params = small(WEFT_AM, modes[i], WEFT_SHORT);
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
        assert_in_range(ends[0].reports.count, 2, 5);
        release(ends);
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
    static const struct {
        enum weft_op op;
        enum weft_mode mode;
        enum weft_layout layout;
    } tests[] = {{WEFT_AM, WEFT_PING_PONG, WEFT_SHORT}, {WEFT_GET, WEFT_STREAM, WEFT_BCOPY}};
    for (size_t i = 0; i < LENGTH(tests); i++) {
        struct weft_params params = small(tests[i].op, tests[i].mode, tests[i].layout);
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
    struct weft_params params = small(WEFT_PUT, WEFT_STREAM, WEFT_SHORT);
    params.duration_ms = 3600000;
    expect_good(&params, pair);
}

static void of_two_limits_the_first_one_counts(void **state)
{
    (void)state;
    with_threads(iterations_first);
}

static void until_stopped(const struct weft_bootstrap pair[2], enum weft_op op, enum weft_mode mode)
{
    struct weft_params params = small(op, mode, op == WEFT_GET ? WEFT_BCOPY : WEFT_SHORT);
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
    assert_int_equal(ends[0].result.bytes, ends[0].result.iterations * 8);
    assert_true(ends[0].result.elapsed_s >= 0.059 && ends[0].result.elapsed_s < 5);
    expect_reports(ends);
    assert_true(ends[0].reports.count >= 3);
    release(ends);
}

static void stopped_streams(const struct weft_bootstrap pair[2])
{
    until_stopped(pair, WEFT_GET, WEFT_STREAM);
}

static void stopped_messages(const struct weft_bootstrap pair[2])
{
    until_stopped(pair, WEFT_AM, WEFT_STREAM);
}

static void stopped_ping_pong(const struct weft_bootstrap pair[2])
{
    until_stopped(pair, WEFT_PUT, WEFT_PING_PONG);
}

static void a_test_without_limits_goes_on_until_it_is_stopped(void **state)
{
    (void)state;
    with_threads(stopped_streams);
    with_threads(stopped_messages);
    with_threads(stopped_ping_pong);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_ping_pong_runs_and_its_figures_agree),
        cmocka_unit_test(every_ping_pong_runs_verified),
        cmocka_unit_test(every_stream_runs_and_its_figures_agree),
        cmocka_unit_test(every_stream_runs_verified),
        cmocka_unit_test(every_stream_both_ways_runs_and_its_figures_agree),
        cmocka_unit_test(every_stream_both_ways_that_can_be_verified_is),
        cmocka_unit_test(faults_are_caught_where_data_is_verified_and_only_there),
        cmocka_unit_test(few_iterations_are_counted_and_have_percentiles_only_where_ten_lie_beyond),
        cmocka_unit_test(as_many_percentiles_as_there_is_room_for_or_none),
        cmocka_unit_test(report_and_result_may_be_left_out),
        cmocka_unit_test(a_duration_ends_a_test_and_intervals_are_reported),
        cmocka_unit_test(an_interval_that_ends_with_the_last_operation_has_no_report_of_its_own),
        cmocka_unit_test(of_two_limits_the_first_one_counts),
        cmocka_unit_test(a_test_without_limits_goes_on_until_it_is_stopped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
