/* SPDX-License-Identifier: BSD-3-Clause */
/* What the library refuses: both ends word it alike, and can go on. */
#include "support/ends.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* ---- ends that differ ---- */

static void differing(const struct weft_bootstrap pair[2])
{
    static const struct {
        const char *name;
        size_t at;
    } fields[] = {{"size", offsetof(struct weft_params, size)},
                  {"am_header", offsetof(struct weft_params, am_header)},
                  {"window", offsetof(struct weft_params, window)},
                  {"outstanding", offsetof(struct weft_params, outstanding)},
                  {"gap_ns", offsetof(struct weft_params, gap_ns)},
                  {"timeout_ms", offsetof(struct weft_params, timeout_ms)},
                  {"warmup", offsetof(struct weft_params, warmup)},
                  {"iterations", offsetof(struct weft_params, iterations)},
                  {"duration_ms", offsetof(struct weft_params, duration_ms)}};
    const struct weft_params params = small("write", "ping-pong", "bcopy");
    for (size_t i = 0; i < LENGTH(fields); i++)
        for (int which = 0; which < 2; which++) {
            struct end ends[2];
            prepare(ends, &params, pair);
            *(uint64_t *)((char *)&ends[which].params + fields[i].at) += 8;
            expect_refused(ends, -EINVAL, fields[i].name);
        }
    for (int what = 0; what < 4; what++) {
        static const char *const words[] = {
            "op is am at the client and write at the server",
            "method is stream at the client and ping-pong at the server",
            "layout is short at the client and bcopy at the server",
            "verify is 1 at the client and 0 at the server"};
        struct end ends[2];
        prepare(ends, &params, pair);
        struct weft_params *p = &ends[0].params;
        p->op = what == 0 ? "am" : p->op;
        p->method = what == 1 ? "stream" : p->method;
        p->layout = what == 2 ? "short" : p->layout;
        p->verify = what == 3;
        expect_refused(ends, -EINVAL, words[what]);
    }
}

static void ends_that_were_asked_for_different_tests_say_so_alike_and_can_go_on(void **state)
{
    (void)state;
    with_threads(differing);
}

static void other_fabrics(const struct weft_bootstrap pair[2])
{
    const struct weft_params params = small("read", "stream", "bcopy");
    struct end ends[2];
    prepare(ends, &params, pair);
    ends[1].params.device = "null";
    expect_refused(ends, -ENODEV, "the client's fabric is soft, the server's is null");
    for (int which = 0; which < 2; which++) {
        prepare(ends, &params, pair);
        ends[which].params.device = "soft:cxi99";
        expect_refused(ends, -ENODEV, "cxi99");
        prepare(ends, &params, pair);
        ends[which].params.memory = "nosuch";
        expect_refused(ends, -EINVAL, "nosuch");
        prepare(ends, &params, pair);
        ends[which].params.cpu = 65535;
        expect_refused(ends, -ENODEV, "65535");
    }
}

static void what_one_end_lacks_is_said_by_both(void **state)
{
    (void)state;
    with_threads(other_fabrics);
}

static void one_device_named(const struct weft_bootstrap pair[2])
{
    const struct weft_params params = small("am", "ping-pong", "short");
    for (int named = 0; named < 3; named++) {
        struct end ends[2];
        prepare(ends, &params, pair);
        for (int i = 0; i < 2; i++)
            ends[i].params.device = i == named ? "soft:cxi1" : NULL;
        run_ends(ends);
        expect_done(ends);
        assert_int_equal(strncmp(ends[0].result.fabric, "soft", 4), 0);
        release(ends);
    }
}

static void a_device_may_be_named_at_one_end_or_at_none(void **state)
{
    (void)state;
    with_threads(one_device_named);
}

/* ---- what cannot be had ---- */

/* The library's own names, whatever tools call it. */
static const struct refusal {
    struct weft_params params; /* over those of small() where not 0 */
    int status;
    const char *words;
} refusals[] = {
    {{.op = "read", .method = "stream", .layout = "short"}, -EINVAL, "not for read"},
    {{.op = "atomic", .method = "stream", .layout = "bcopy", .fetching = 1},
     -EINVAL,
     "not for atomics"},
    {{.op = "atomic", .method = "ping-pong", .layout = "zcopy"}, -EINVAL, "not for atomics"},
    {{.op = "atomic", .method = "stream", .amo_op = "SWAP", .amo_type = "UINT128"},
     -EINVAL,
     "SWAP on UINT128, which takes CSWAP"},
    {{.op = "atomic", .method = "latency", .amo_op = "SUM", .amo_type = "UINT7"},
     -EINVAL,
     "amo_type is not known: \"UINT7\""},
    {{.op = "atomic", .method = "latency", .amo_op = "ADD"}, -EINVAL, "amo_op is not known"},
    {{.op = "atomic", .method = "latency", .amo_op = "CSWAP", .amo_compare = "OK"},
     -EINVAL,
     "amo_compare is not known"},
    {{.op = "read", .method = "ping-pong", .layout = "bcopy"}, -EINVAL, "read has no ping-pong"},
    {{.op = "send", .method = "ping-pong"}, -EINVAL, "send has no ping-pong"},
    {{.op = "send", .method = "stream"}, -EINVAL, "send has no stream"},
    {{.op = "am", .method = "latency"}, -EINVAL, "am has no latency"},
    {{.op = "atomic", .method = "ping-pong", .amo_op = "CSWAP"}, -EINVAL, "no ping-pong"},
    {{.op = "am", .method = "stream", .layout = "short", .size = 4}, -EINVAL, "8 bytes"},
    {{.op = "am", .method = "stream", .layout = "zcopy", .size = 8, .am_header = 16},
     -EINVAL,
     "header of 16"},
    {{.op = "am", .method = "stream", .layout = "zcopy", .size = 8, .am_header = 3},
     -EINVAL,
     "header of 3"},
    {{.op = "write", .method = "stream", .layout = "zcopy", .size = UINT64_C(1) << 32},
     -EINVAL,
     "size is out of range: \"4294967296\""},
    {{.op = "write", .method = "latency", .size = 8, .size_max = 4}, -EINVAL, "8:4"},
    {{.op = "write", .method = "latency", .size = 3, .size_max = 12}, -EINVAL, "3:12"},
    {{.op = "write", .method = "ping-pong", .both_ways = 1}, -EINVAL, "both_ways is for streams"},
    {{.op = "read", .method = "latency", .both_ways = 1}, -EINVAL, "both_ways is for streams"},
    {{.op = "write", .method = "stream", .both_ways = 1, .layout = "short", .verify = 1},
     -EINVAL,
     "not in both directions"},
    {{.op = "write", .method = "stream", .ops_per_sample = 2},
     -EINVAL,
     "2 operations per sample are for latency, not for stream"},
    {{.op = "write", .method = "latency", .ops_per_sample = 2, .verify = 1},
     -EINVAL,
     "verifying looks at every operation"},
    {{.op = "write", .method = "stream", .layout = "short", .size = 1 << 20}, -EMSGSIZE, "at most"},
    {{.op = "am", .method = "stream", .layout = "short", .size = 1 << 20}, -EMSGSIZE, "at most"},
    {{.op = "am", .method = "stream", .layout = "zcopy", .size = 1 << 20, .am_header = 1 << 19},
     -EMSGSIZE,
     "header takes at most"},
    {{.op = "reed", .method = "stream"}, -EINVAL, "op is not known: \"reed\" (did you mean read?"},
    {{.op = "", .method = "stream"}, -EINVAL, "op is not known: \"\""},
    {{.op = "write", .method = "bandwidth"}, -EINVAL, "method is not known: \"bandwidth\""},
    {{.op = "write", .method = "stream", .layout = "long"}, -EINVAL, "layout is not known"},
    {{.op = "write", .method = "latency", .clock = "sun"}, -EINVAL, "clock is not known: \"sun\""},
    {{.op = "write", .method = "stream", .layout = "short", .percentiles = {101}},
     -EINVAL,
     "percentile 101"},
    {{.op = "write", .method = "stream", .layout = "short", .percentiles = {50, -1}},
     -EINVAL,
     "percentile -1"},
    {{.op = "write", .method = "stream", .layout = "short", .percentiles = {NAN}},
     -EINVAL,
     "percentile"},
    {{.op = "write", .method = "ping-pong", .layout = "short", .device = "null"},
     -ENOTSUP,
     "nobody is there to answer write in ping-pong"},
    {{.op = "atomic", .method = "ping-pong", .device = "null"},
     -ENOTSUP,
     "nobody is there to answer atomic in ping-pong"},
    {{.op = "am", .method = "stream", .layout = "short", .device = "null"},
     -ENOTSUP,
     "nobody is there to answer am in stream"},
    {{.op = "read", .method = "stream", .layout = "bcopy", .device = "null", .verify = 1},
     -EINVAL,
     "nothing to verify"}};

static struct weft_params asked(const struct refusal *refusal)
{
    const struct weft_params *over = &refusal->params;
    struct weft_params params = small(over->op, over->method, over->layout);
    const char **names[] = {&params.amo_op, &params.amo_type, &params.amo_compare, &params.device,
                            &params.clock};
    const char *given[] = {over->amo_op, over->amo_type, over->amo_compare, over->device,
                           over->clock};
    for (size_t i = 0; i < LENGTH(names); i++)
        *names[i] = given[i] ? given[i] : *names[i];
    params.size = over->size ? over->size : params.size;
    params.size_max = over->size_max;
    params.am_header = over->am_header ? over->am_header : params.am_header;
    params.both_ways = over->both_ways;
    params.fetching = over->fetching;
    params.verify = over->verify;
    params.ops_per_sample = over->ops_per_sample ? over->ops_per_sample : 1;
    if (over->percentiles[0] != 0)
        memcpy(params.percentiles, over->percentiles, sizeof params.percentiles);
    return params;
}

static void refuse_all(const struct weft_bootstrap pair[2])
{
    for (size_t i = 0; i < LENGTH(refusals); i++) {
        const struct weft_params params = asked(&refusals[i]);
        struct end ends[2];
        prepare(ends, &params, pair);
        expect_refused(ends, refusals[i].status, refusals[i].words);
    }
}

static void what_cannot_be_had_is_refused_at_both_ends_alike_and_they_can_go_on(void **state)
{
    (void)state;
    with_threads(refuse_all);
}

static void refuse_zeros(const struct weft_bootstrap pair[2])
{
    const struct weft_params params = small("write", "stream", "short");
    for (int what = 0; what < 3; what++) {
        static const char *const words[] = {"size is out of range: \"0\"",
                                            "window is out of range: \"0\"",
                                            "outstanding is out of range: \"0\""};
        struct end ends[2];
        prepare(ends, &params, pair);
        for (int i = 0; i < 2; i++) {
            struct weft_params *p = &ends[i].params;
            *(what == 0 ? &p->size : what == 1 ? &p->window : &p->outstanding) = 0;
        }
        expect_refused(ends, -EINVAL, words[what]);
    }
}

static void nothing_is_refused_where_something_is_needed(void **state)
{
    (void)state;
    with_threads(refuse_zeros);
}

static void no_timeout(const struct weft_bootstrap pair[2])
{
    const struct weft_params params = small("write", "stream", "short");
    struct end ends[2];
    prepare(ends, &params, pair);
    ends[0].params.timeout_ms = ends[1].params.timeout_ms = 0;
    expect_refused(ends, -EINVAL, "timeout_ms is out of range: \"0\"");
}

static void a_timeout_of_nothing_is_refused(void **state)
{
    (void)state;
    with_threads(no_timeout);
}

static void one_refuses(const struct weft_bootstrap pair[2])
{
    struct weft_params params = small("write", "stream", "short");
    for (int which = 0; which < 2; which++) {
        struct end ends[2];
        prepare(ends, &params, pair);
        ends[which].params.percentiles[0] = 200;
        expect_refused(ends, -EINVAL, "percentile 200");
    }
}

static void what_one_end_refuses_the_other_hears(void **state)
{
    (void)state;
    with_threads(one_refuses);
}

/* ---- structs of other versions ---- */

static void wrong_struct(const struct weft_bootstrap pair[2])
{
    struct weft_params params = small("am", "ping-pong", "short");
    static const size_t wrong[] = {0, 1, sizeof(size_t), 8192, SIZE_MAX};
    for (size_t i = 0; i < LENGTH(wrong); i++) {
        struct end ends[2];
        params.bytes = wrong[i];
        prepare(ends, &params, pair);
        expect_refused(ends, -EINVAL, "begin with weft_params_init");
    }
}

static void parameters_of_no_version_are_refused(void **state)
{
    (void)state;
    with_threads(wrong_struct);
}

/* Both ends with a struct of another version: its parameters and its result. */
struct version {
    struct {
        struct weft_params params;
        char more[64];
    } params;
    struct {
        struct weft_result result;
        char more[64];
    } result;
    const struct weft_bootstrap *bootstrap;
    int status;
    char reason[512];
};

static void *run_version(void *arg)
{
    struct version *v = arg;
    v->status = weft_run(&v->params.params, v->bootstrap, NULL, NULL, &v->result.result);
    snprintf(v->reason, sizeof v->reason, "%s", weft_reason());
    return NULL;
}

static void run_versions(struct version ends[2], const struct weft_bootstrap pair[2])
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        ends[i].bootstrap = &pair[i];
        assert_int_equal(pthread_create(&threads[i], NULL, run_version, &ends[i]), 0);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

/* As a program has them that was compiled with these sizes; behind them lies something else. */
static void set_up(struct version *v, size_t params, size_t result)
{
    struct weft_params defaults = small("read", "latency", NULL);
    memset(v, 0x5a, sizeof *v);
    weft_params_init_sized(&v->params.params, params);
    v->params.params.op = defaults.op;
    v->params.params.method = defaults.method;
    v->params.params.size = 64;
    v->params.params.iterations = 100;
    v->params.params.warmup = 0;
    memset(&v->result, 0, result);
    v->result.result.bytes = result;
}

static void expect_untouched(const void *bytes, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        assert_int_equal(((const char *)bytes)[i], 0x5a);
}

static void older(const struct weft_bootstrap pair[2])
{
    /* Before there were hints; and results without a histogram, without what it proves. */
    const size_t params = offsetof(struct weft_params, unrestricted);
    static const size_t results[] = {
        offsetof(struct weft_result, latency_us), offsetof(struct weft_result, histogram),
        offsetof(struct weft_result, fabric), offsetof(struct weft_result, completion_proves)};
    for (size_t i = 0; i < LENGTH(results); i++) {
        struct version ends[2];
        for (int k = 0; k < 2; k++)
            set_up(&ends[k], params, results[i]);
        run_versions(ends, pair);
        for (int k = 0; k < 2; k++) {
            if (ends[k].status)
                fail_msg("end %d: %s", k, ends[k].reason);
            expect_untouched(&ends[k].params, params, sizeof ends[k].params);
            expect_untouched(&ends[k].result, results[i], sizeof ends[k].result);
            assert_int_equal(ends[k].result.result.bytes, results[i]);
        }
        assert_int_equal(ends[0].result.result.iterations, 100);
        assert_int_equal(ends[0].result.result.size, 64);
        if (results[i] > offsetof(struct weft_result, histogram))
            assert_non_null(ends[0].result.result.histogram);
        for (int k = 0; k < 2; k++) {
            weft_result_free(&ends[k].result.result);
            expect_untouched(&ends[k].result, results[i], sizeof ends[k].result);
        }
    }
}

static void an_older_program_has_the_defaults_of_what_it_does_not_know(void **state)
{
    (void)state;
    with_threads(older);
}

static void newer(const struct weft_bootstrap pair[2])
{
    for (int set = 0; set < 2; set++) {
        struct version ends[2];
        for (int k = 0; k < 2; k++) {
            set_up(&ends[k], sizeof ends[k].params, sizeof ends[k].result);
            ends[k].params.more[7] = (char)set;
        }
        run_versions(ends, pair);
        for (int k = 0; k < 2; k++) {
            assert_int_equal(ends[k].status, set ? -E2BIG : 0);
            if (set)
                assert_contains(ends[k].reason, "parameters of a newer weft.h");
            assert_int_equal(ends[k].result.result.bytes, sizeof ends[k].result);
            weft_result_free(&ends[k].result.result);
        }
    }
}

static void a_newer_program_is_served_unless_it_asks_for_what_is_not_known_here(void **state)
{
    (void)state;
    with_threads(newer);
}

static void no_result(const struct weft_bootstrap pair[2])
{
    static const size_t wrong[] = {0, 8, SIZE_MAX};
    for (size_t i = 0; i < LENGTH(wrong); i++) {
        struct version ends[2];
        for (int k = 0; k < 2; k++)
            set_up(&ends[k], sizeof ends[k].params.params, sizeof ends[k].result.result);
        ends[i % 2].result.result.bytes = wrong[i];
        run_versions(ends, pair);
        for (int k = 0; k < 2; k++) {
            assert_int_equal(ends[k].status, -EINVAL);
            assert_contains(ends[k].reason, "begin with weft_result_init");
        }
    }
}

static void a_result_that_was_not_set_up_is_refused_before_anything_is_measured(void **state)
{
    (void)state;
    with_threads(no_result);
}

/* ---- nothing where something must be ---- */

static void nowhere_to_go(const struct weft_bootstrap pair[2])
{
    const struct weft_params params = small("am", "ping-pong", NULL);
    struct weft_bootstrap bootstrap;
    struct weft_session *session;
    assert_int_equal(weft_run(NULL, &pair[0], NULL, NULL, NULL), -EINVAL);
    assert_contains(weft_reason(), "params");
    assert_int_equal(weft_run(&params, NULL, NULL, NULL, NULL), -EINVAL);
    assert_contains(weft_reason(), "bootstrap");
    assert_int_equal(weft_session_open(NULL, &pair[0]), -EINVAL);
    assert_int_equal(weft_session_open(&session, NULL), -EINVAL);
    assert_int_equal(weft_session_run(NULL, &params, NULL, NULL, NULL), -EINVAL);
    assert_int_equal(weft_session_open(&session, &pair[0]), 0);
    assert_int_equal(weft_session_run(session, NULL, NULL, NULL, NULL), -EINVAL);
    weft_session_close(session);
    weft_session_close(NULL);
    assert_int_equal(weft_threads(NULL), -EINVAL);
    assert_int_equal(weft_tcp_listen(NULL, NULL, 1, NULL), -EINVAL);
    assert_int_equal(weft_tcp_dial(NULL, "127.0.0.1", 1, 0, NULL), -EINVAL);
    assert_int_equal(weft_tcp_dial(&bootstrap, NULL, 1, 0, NULL), -EINVAL);
    assert_int_equal(weft_mpi_ranks(NULL), -EINVAL);
    weft_close(NULL);
    weft_result_free(NULL);
    weft_result_init(NULL);
    weft_params_init(NULL);
    assert_contains(weft_reason(), "params");
}

static void nothing_in_place_of_an_argument_is_refused(void **state)
{
    (void)state;
    with_threads(nowhere_to_go);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ends_that_were_asked_for_different_tests_say_so_alike_and_can_go_on),
        cmocka_unit_test(what_one_end_lacks_is_said_by_both),
        cmocka_unit_test(a_device_may_be_named_at_one_end_or_at_none),
        cmocka_unit_test(what_cannot_be_had_is_refused_at_both_ends_alike_and_they_can_go_on),
        cmocka_unit_test(nothing_is_refused_where_something_is_needed),
        cmocka_unit_test(a_timeout_of_nothing_is_refused),
        cmocka_unit_test(what_one_end_refuses_the_other_hears),
        cmocka_unit_test(parameters_of_no_version_are_refused),
        cmocka_unit_test(an_older_program_has_the_defaults_of_what_it_does_not_know),
        cmocka_unit_test(a_newer_program_is_served_unless_it_asks_for_what_is_not_known_here),
        cmocka_unit_test(a_result_that_was_not_set_up_is_refused_before_anything_is_measured),
        cmocka_unit_test(nothing_in_place_of_an_argument_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
