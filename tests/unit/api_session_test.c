/* SPDX-License-Identifier: BSD-3-Clause */
/* Sessions of the library: one test after the other on a device that is opened once, refusals in
 * between, and what is left of a session after a failure. */
#include "support/ends.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- tests/doubles/fabric_counts.c ---- */

static char record[] = "/tmp/weft-counts-XXXXXX";

static int make_record(void **state)
{
    (void)state;
    int fd = mkstemp(record);
    return fd < 0 || close(fd) || setenv("WEFT_TEST_COUNTS", record, 1);
}

static int remove_record(void **state)
{
    (void)state;
    return unlink(record);
}

static void forget(void)
{
    assert_int_equal(truncate(record, 0), 0);
}

/* How often, by both ends together. */
static unsigned counted(const char *what)
{
    char line[64];
    unsigned count = 0;
    FILE *file = fopen(record, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file))
        count += strstr(line, what) != NULL;
    fclose(file);
    return count;
}

/* ---- one test after the other ---- */

static struct weft_params counted_test(const char *op, const char *method, uint64_t size)
{
    struct weft_params params = small(op, method, NULL);
    params.device = "counts:cxi0";
    params.size = size;
    params.iterations = 50;
    return params;
}

static void two_tests(const struct weft_bootstrap pair[2])
{
    const struct weft_params first = counted_test("write", "latency", 64);
    const struct weft_params second = counted_test("write", "latency", 64);
    struct sessions sessions;
    forget();
    sessions_open(&sessions, pair);
    expect_good_on(&sessions, &first);
    expect_good_on(&sessions, &second);
    sessions_close(&sessions);
    assert_int_equal(counted("open"), 2);
    assert_int_equal(counted("connect"), 2);
}

static void two_tests_on_one_session_open_and_connect_once(void **state)
{
    (void)state;
    with_threads(two_tests);
}

static void ten_tests(const struct weft_bootstrap pair[2])
{
    struct weft_params tests[] = {
        counted_test("write", "latency", 8),      counted_test("read", "stream", 65536),
        counted_test("am", "ping-pong", 64),      counted_test("send", "latency", 4096),
        counted_test("write", "latency", 1),      counted_test("atomic", "latency", 8),
        counted_test("write", "ping-pong", 200),  counted_test("am", "both ways", 1 << 18),
        counted_test("read", "latency", 1 << 20), counted_test("atomic", "stream", 8)};
    struct sessions sessions;
    forget();
    sessions_open(&sessions, pair);
    for (size_t i = 0; i < LENGTH(tests); i++) {
        tests[i].verify = strcmp(tests[i].op, "am") != 0;
        expect_good_on(&sessions, &tests[i]);
    }
    sessions_close(&sessions);
    assert_int_equal(counted("open"), 2);
}

static void ten_tests_of_all_kinds_and_sizes_on_one_session_open_once(void **state)
{
    (void)state;
    with_threads(ten_tests);
}

static void every_order(const struct weft_bootstrap pair[2])
{
    static const char *const ops[] = {"write", "read", "send", "atomic"};
    struct sessions sessions;
    forget();
    sessions_open(&sessions, pair);
    for (size_t i = 0; i < LENGTH(ops); i++)
        for (size_t k = 0; k < LENGTH(ops); k++) {
            struct weft_params first = counted_test(ops[i], "latency", 64);
            struct weft_params then = counted_test(ops[k], "latency", 32);
            first.verify = then.verify = 1;
            expect_good_on(&sessions, &first);
            expect_good_on(&sessions, &then);
        }
    sessions_close(&sessions);
    assert_int_equal(counted("open"), 2);
}

static void every_operation_may_follow_every_other(void **state)
{
    (void)state;
    with_threads(every_order);
}

static void looked_at(const struct weft_bootstrap pair[2])
{
    struct weft_params params = counted_test("am", "stream", 64);
    struct sessions sessions;
    forget();
    sessions_open(&sessions, pair);
    for (int i = 0; i < 4; i++) {
        params.verify = i > 0;
        expect_good_on(&sessions, &params);
    }
    sessions_close(&sessions);
    assert_int_equal(counted("open"), 4);
}

static void only_verifying_messages_opens_the_device_again_once(void **state)
{
    (void)state;
    with_threads(looked_at);
}

static void devices(const struct weft_bootstrap pair[2])
{
    static const char *const names[] = {"counts:cxi0", "counts:cxi1", "counts:cxi1", "soft",
                                        "null",        NULL,          "counts:cxi0"};
    struct sessions sessions;
    forget();
    sessions_open(&sessions, pair);
    for (size_t i = 0; i < LENGTH(names); i++) {
        struct weft_params params = small("read", "latency", NULL);
        params.device = names[i];
        expect_good_on(&sessions, &params);
    }
    sessions_close(&sessions);
    assert_int_equal(counted("open"), 2 * 3);
}

static void tests_on_other_devices_may_follow_each_other(void **state)
{
    (void)state;
    with_threads(devices);
}

static void again(const struct weft_bootstrap pair[2])
{
    const struct weft_params params = small("send", "latency", NULL);
    for (int i = 0; i < 3; i++) {
        struct sessions sessions;
        sessions_open(&sessions, pair);
        for (int k = 0; k < i; k++)
            expect_good_on(&sessions, &params);
        sessions_close(&sessions);
        expect_good(&params, pair);
    }
}

static void a_bootstrap_carries_one_session_after_the_other(void **state)
{
    (void)state;
    with_threads(again);
}

/* ---- refusals ---- */

static void prepare_on(struct end ends[2], const struct sessions *sessions,
                       const struct weft_params *params)
{
    for (int i = 0; i < 2; i++)
        ends[i] = (struct end){.params = *params, .session = sessions->ends[i]};
}

static void refused_between(const struct weft_bootstrap pair[2])
{
    const struct weft_params large = counted_test("write", "latency", 1 << 20);
    const struct weft_params little = counted_test("read", "latency", 8);
    struct sessions sessions;
    struct end ends[2];
    sessions_open(&sessions, pair);
    expect_good_on(&sessions, &large);
    for (int which = 0; which < 2; which++) {
        prepare_on(ends, &sessions, &large);
        ends[which].params.percentiles[0] = 200;
        expect_refused(ends, -EINVAL, "percentile 200");
        expect_good_on(&sessions, &little);
        prepare_on(ends, &sessions, &large);
        ends[which].params.memory = "nosuch";
        expect_refused(ends, -EINVAL, "nosuch");
        expect_good_on(&sessions, &little);
        expect_good_on(&sessions, &large);
        prepare_on(ends, &sessions, &little);
        ends[which].params.size = 16;
        expect_refused(ends, -EINVAL, "size is");
        expect_good_on(&sessions, &large);
    }
    sessions_close(&sessions);
}

static void a_refused_test_leaves_the_session_as_good_as_before(void **state)
{
    (void)state;
    with_threads(refused_between);
}

/* One end closes what it had, and then has a smaller buffer than the other. */
static void one_end_closed(const struct weft_bootstrap pair[2])
{
    const struct weft_params large = counted_test("write", "latency", 1 << 20);
    const struct weft_params little = counted_test("read", "latency", 8);
    struct sessions sessions;
    sessions_open(&sessions, pair);
    for (int which = 0; which < 2; which++) {
        struct end ends[2];
        expect_good_on(&sessions, &large);
        prepare_on(ends, &sessions, &little);
        ends[which].params.device = "counts:cxi99";
        run_ends(ends);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(ends[i].status, -ENODEV);
            assert_contains(ends[i].reason, "cxi99");
        }
        expect_good_on(&sessions, &little);
        expect_good_on(&sessions, &large);
    }
    sessions_close(&sessions);
}

static void a_refusal_that_cost_one_end_its_device_is_made_up_for(void **state)
{
    (void)state;
    with_threads(one_end_closed);
}

static void costs_nothing(const struct weft_bootstrap pair[2])
{
    const struct weft_params good = counted_test("am", "ping-pong", 64);
    struct sessions sessions;
    forget();
    sessions_open(&sessions, pair);
    for (int i = 0; i < 3; i++) {
        struct weft_params bad = good;
        struct end ends[2];
        expect_good_on(&sessions, &good);
        bad.layout = "short";
        bad.size = 1 << 20;
        prepare_on(ends, &sessions, &bad);
        run_ends(ends);
        assert_int_equal(ends[0].status, -EMSGSIZE);
        assert_int_equal(ends[1].status, -EMSGSIZE);
    }
    sessions_close(&sessions);
    assert_int_equal(counted("open"), 2);
    assert_int_equal(counted("connect"), 2);
}

static void a_test_that_the_device_refuses_does_not_close_it(void **state)
{
    (void)state;
    with_threads(costs_nothing);
}

/* ---- failures ---- */

static void expect_over(struct weft_session *session, const struct weft_params *params)
{
    struct weft_result result;
    weft_result_init(&result);
    for (int i = 0; i < 3; i++) {
        double begin = seconds();
        assert_int_equal(weft_session_run(session, params, NULL, NULL, &result), -ENOTCONN);
        assert_contains(weft_reason(), "the session has ended");
        assert_true(seconds() - begin < 1);
        assert_null(result.histogram);
    }
}

static void a_session_whose_other_end_is_gone_says_so_from_then_on(void **state)
{
    (void)state;
    for (int stays = 0; stays < 2; stays++) {
        const struct weft_params params = small("write", "latency", NULL);
        struct weft_bootstrap pair[2];
        struct sessions sessions;
        assert_int_equal(weft_threads(pair), 0);
        sessions_open(&sessions, pair);
        expect_good_on(&sessions, &params);
        weft_session_close(sessions.ends[1 - stays]);
        weft_close(&pair[1 - stays]);
        assert_int_equal(weft_session_run(sessions.ends[stays], &params, NULL, NULL, NULL),
                         -ECONNRESET);
        assert_contains(weft_reason(), stays ? "lost the client" : "lost the server");
        expect_over(sessions.ends[stays], &params);
        weft_session_close(sessions.ends[stays]);
        weft_close(&pair[stays]);
    }
}

static void times_out(const struct weft_bootstrap pair[2])
{
    struct weft_params params = small("read", "latency", NULL);
    struct sessions sessions;
    struct end ends[2];
    sessions_open(&sessions, pair);
    expect_good_on(&sessions, &params);
    params.device = "null:delay=3600s";
    params.timeout_ms = 300;
    prepare_on(ends, &sessions, &params);
    run_ends(ends);
    assert_int_equal(ends[0].status, -ETIMEDOUT);
    assert_true(ends[1].status < 0);
    for (int i = 0; i < 2; i++)
        expect_over(sessions.ends[i], &params);
    sessions_close(&sessions);
}

static void after_a_test_that_failed_both_ends_say_that_the_session_is_over(void **state)
{
    (void)state;
    with_threads(times_out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_tests_on_one_session_open_and_connect_once),
        cmocka_unit_test(ten_tests_of_all_kinds_and_sizes_on_one_session_open_once),
        cmocka_unit_test(every_operation_may_follow_every_other),
        cmocka_unit_test(only_verifying_messages_opens_the_device_again_once),
        cmocka_unit_test(tests_on_other_devices_may_follow_each_other),
        cmocka_unit_test(a_bootstrap_carries_one_session_after_the_other),
        cmocka_unit_test(a_refused_test_leaves_the_session_as_good_as_before),
        cmocka_unit_test(a_refusal_that_cost_one_end_its_device_is_made_up_for),
        cmocka_unit_test(a_test_that_the_device_refuses_does_not_close_it),
        cmocka_unit_test(a_session_whose_other_end_is_gone_says_so_from_then_on),
        cmocka_unit_test(after_a_test_that_failed_both_ends_say_that_the_session_is_over),
    };
    return cmocka_run_group_tests(tests, make_record, remove_record);
}
