/* SPDX-License-Identifier: BSD-3-Clause */
/* What the library refuses: both ends word it alike, and can go on. */
#include "support/ends.h"

#include <errno.h>
#include <math.h>
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
                  {"warmup", offsetof(struct weft_params, warmup)},
                  {"iterations", offsetof(struct weft_params, iterations)},
                  {"duration_ms", offsetof(struct weft_params, duration_ms)}};
    const struct weft_params params = small(WEFT_PUT, WEFT_PING_PONG, WEFT_BCOPY);
    for (size_t i = 0; i < LENGTH(fields); i++)
        for (int which = 0; which < 2; which++) {
            struct end ends[2];
            prepare(ends, &params, pair);
            *(uint64_t *)((char *)&ends[which].params + fields[i].at) += 8;
            expect_refused(ends, -EINVAL, fields[i].name);
        }
    for (int what = 0; what < 4; what++) {
        static const char *const names[] = {"op is 1", "mode is 2", "layout is 1", "verify is 1"};
        struct end ends[2];
        prepare(ends, &params, pair);
        struct weft_params *p = &ends[0].params;
        p->op = what == 0 ? WEFT_AM : p->op;
        p->mode = what == 1 ? WEFT_STREAM : p->mode;
        p->layout = what == 2 ? WEFT_SHORT : p->layout;
        p->verify = what == 3;
        expect_refused(ends, -EINVAL, names[what]);
    }
}

static void ends_that_were_asked_for_different_tests_say_so_alike_and_can_go_on(void **state)
{
    (void)state;
    with_threads(differing);
}

static void other_fabrics(const struct weft_bootstrap pair[2])
{
    const struct weft_params params = small(WEFT_GET, WEFT_STREAM, WEFT_BCOPY);
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
    const struct weft_params params = small(WEFT_AM, WEFT_PING_PONG, WEFT_SHORT);
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

static const struct refusal {
    struct weft_params params; /* over those of small() where not 0 */
    int status;
    const char *words;
} refusals[] = {
    {{.op = WEFT_GET, .mode = WEFT_STREAM, .layout = WEFT_SHORT}, -EINVAL, "not for get"},
    {{.op = WEFT_FADD, .mode = WEFT_STREAM, .layout = WEFT_BCOPY}, -EINVAL, "not for atomics"},
    {{.op = WEFT_ADD, .mode = WEFT_PING_PONG, .layout = WEFT_ZCOPY}, -EINVAL, "not for atomics"},
    {{.op = WEFT_SWAP, .mode = WEFT_STREAM, .layout = WEFT_SHORT, .size = 7}, -EINVAL, "4 or 8"},
    {{.op = WEFT_GET, .mode = WEFT_PING_PONG, .layout = WEFT_BCOPY}, -EINVAL, "no ping-pong"},
    {{.op = WEFT_CSWAP, .mode = WEFT_PING_PONG, .layout = WEFT_SHORT}, -EINVAL, "no ping-pong"},
    {{.op = WEFT_AM, .mode = WEFT_STREAM, .layout = WEFT_SHORT, .size = 4}, -EINVAL, "8 bytes"},
    {{.op = WEFT_AM, .mode = WEFT_STREAM, .layout = WEFT_ZCOPY, .size = 8, .am_header = 16},
     -EINVAL,
     "header of 16"},
    {{.op = WEFT_AM, .mode = WEFT_STREAM, .layout = WEFT_ZCOPY, .size = 8, .am_header = 3},
     -EINVAL,
     "header of 3"},
    {{.op = WEFT_PUT, .mode = WEFT_STREAM, .layout = WEFT_ZCOPY, .size = UINT64_C(1) << 32},
     -EINVAL,
     "4294967296"},
    {{.op = WEFT_PUT, .mode = WEFT_STREAM_BOTH, .layout = WEFT_SHORT, .verify = 1},
     -EINVAL,
     "not in both directions"},
    {{.op = WEFT_PUT, .mode = WEFT_STREAM, .layout = WEFT_SHORT, .size = 1 << 20},
     -EMSGSIZE,
     "at most"},
    {{.op = WEFT_AM, .mode = WEFT_STREAM, .layout = WEFT_SHORT, .size = 1 << 20},
     -EMSGSIZE,
     "at most"},
    {{.op = WEFT_AM,
      .mode = WEFT_STREAM,
      .layout = WEFT_ZCOPY,
      .size = 1 << 20,
      .am_header = 1 << 19},
     -EMSGSIZE,
     "header takes at most"},
    {{.op = (enum weft_op)99, .mode = WEFT_STREAM, .layout = WEFT_SHORT}, -EINVAL, "operation 99"},
    {{.op = WEFT_PUT, .mode = (enum weft_mode)9, .layout = WEFT_SHORT}, -EINVAL, "mode 9"},
    {{.op = WEFT_PUT, .mode = WEFT_STREAM, .layout = (enum weft_layout)7}, -EINVAL, "layout 7"},
    {{.op = WEFT_PUT, .mode = WEFT_STREAM, .layout = WEFT_SHORT, .percentiles = {101}},
     -EINVAL,
     "percentile 101"},
    {{.op = WEFT_PUT, .mode = WEFT_STREAM, .layout = WEFT_SHORT, .percentiles = {50, -1}},
     -EINVAL,
     "percentile -1"},
    {{.op = WEFT_PUT, .mode = WEFT_STREAM, .layout = WEFT_SHORT, .percentiles = {NAN}},
     -EINVAL,
     "percentile"},
    {{.op = WEFT_PUT, .mode = WEFT_PING_PONG, .layout = WEFT_SHORT, .device = "null"},
     -ENOTSUP,
     "nobody is there to answer put in ping-pong"},
    {{.op = WEFT_ADD, .mode = WEFT_PING_PONG, .layout = WEFT_SHORT, .device = "null"},
     -ENOTSUP,
     "nobody is there to answer add in ping-pong"},
    {{.op = WEFT_AM, .mode = WEFT_STREAM, .layout = WEFT_SHORT, .device = "null"},
     -ENOTSUP,
     "nobody is there to answer am in stream"},
    {{.op = WEFT_GET, .mode = WEFT_STREAM, .layout = WEFT_BCOPY, .device = "null", .verify = 1},
     -EINVAL,
     "nothing to verify"}};

static struct weft_params asked(const struct refusal *refusal)
{
    const struct weft_params *over = &refusal->params;
    struct weft_params params = small(over->op, over->mode, over->layout);
    params.size = over->size ? over->size : params.size;
    params.am_header = over->am_header ? over->am_header : params.am_header;
    params.verify = over->verify;
    params.device = over->device ? over->device : params.device;
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
    const struct weft_params params = small(WEFT_PUT, WEFT_STREAM, WEFT_SHORT);
    for (int what = 0; what < 3; what++) {
        static const char *const words[] = {"0 bytes", "window of 0", "0 outstanding"};
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
    const struct weft_params params = small(WEFT_PUT, WEFT_STREAM, WEFT_SHORT);
    struct end ends[2];
    prepare(ends, &params, pair);
    ends[0].params.timeout_ms = ends[1].params.timeout_ms = 0;
    expect_refused(ends, -EINVAL, "a timeout of 0");
}

static void a_timeout_of_nothing_is_refused(void **state)
{
    (void)state;
    with_threads(no_timeout);
}

static void one_refuses(const struct weft_bootstrap pair[2])
{
    struct weft_params params = small(WEFT_PUT, WEFT_STREAM, WEFT_SHORT);
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

static void wrong_struct(const struct weft_bootstrap pair[2])
{
    struct weft_params params = small(WEFT_AM, WEFT_PING_PONG, WEFT_SHORT);
    static const size_t wrong[] = {0, 1, sizeof params - 8, sizeof params + 8, SIZE_MAX};
    for (size_t i = 0; i < LENGTH(wrong); i++) {
        struct end ends[2];
        params.bytes = wrong[i];
        prepare(ends, &params, pair);
        expect_refused(ends, -EINVAL, "begin with weft_params_init");
    }
}

static void parameters_of_another_length_are_refused_before_anything_is_said(void **state)
{
    (void)state;
    with_threads(wrong_struct);
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
        cmocka_unit_test(parameters_of_another_length_are_refused_before_anything_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
