/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists between two threads, through the public library: every operation, in one direction and
 * both, checked, with places that are shared, and what the counts come to. */
#include "support/ends.h"

#include <math.h>
#include <string.h>

enum { LISTS = 10, LIST = 100 };

static const struct {
    const char *op, *amo_op;
    bool fetching;
} ops[] = {{"write", NULL, false},   {"read", NULL, false},   {"send", NULL, false},
           {"atomic", "SUM", false}, {"atomic", "SUM", true}, {"atomic", "LOR", false},
           {"atomic", "CSWAP", true}};

static struct weft_params lists_of(size_t number)
{
    struct weft_params params = small(ops[number].op, "list", NULL);
    params.amo_op = ops[number].amo_op;
    params.fetching = ops[number].fetching;
    params.iterations = LISTS;
    params.warmup = 1;
    params.list = LIST;
    return params;
}

static void expect_lists(const struct weft_params *params, const struct weft_bootstrap pair[2],
                         uint64_t sizes)
{
    struct end ends[2];
    prepare(ends, params, pair);
    run_ends(ends);
    expect_done(ends);
    const struct weft_result *r = &ends[0].result;
    assert_int_equal(ends[0].reports.finals, sizes);
    assert_int_equal(r->iterations, params->iterations * params->list);
    assert_int_equal(r->transferred, r->iterations * r->size);
    assert_true(r->elapsed_s > 0);
    assert_true(fabs(r->bandwidth.overall * r->elapsed_s - (double)r->transferred) < 1);
    assert_int_equal(r->reverse_iterations, params->both_ways ? r->iterations : 0);
    release(ends);
}

static void every_op(const struct weft_bootstrap pair[2])
{
    static const uint64_t sizes[] = {8, 1, 192, 5000};
    for (size_t i = 0; i < LENGTH(ops); i++)
        for (size_t k = 0; k < (ops[i].amo_op ? 1 : LENGTH(sizes)); k++)
            for (int both = 0; both < 2; both++)
                for (int verify = 0; verify < 2; verify++) {
                    struct weft_params params = lists_of(i);
                    params.size = sizes[k];
                    params.both_ways = both;
                    params.verify = verify;
                    expect_lists(&params, pair, 1);
                }
}

static void every_op_runs_in_lists_in_one_direction_and_both(void **state)
{
    (void)state;
    with_threads(every_op);
}

/* A buffer of three places and a half, and a list of a hundred. */
static void shared_places(const struct weft_bootstrap pair[2])
{
    for (size_t i = 0; i < 3; i++) {
        struct weft_params params = lists_of(i);
        params.size = 1000;
        params.align = 24;
        params.buffer_max = 1008 * 7 / 2;
        params.verify = 1;
        expect_lists(&params, pair, 1);
    }
}

static void operations_that_do_not_fit_share_places(void **state)
{
    (void)state;
    with_threads(shared_places);
}

static void sweep(const struct weft_bootstrap pair[2])
{
    for (size_t i = 0; i < 3; i++) {
        struct weft_params params = lists_of(i);
        params.size = 1;
        params.size_max = 4096;
        params.verify = 1;
        expect_lists(&params, pair, 13);
    }
}

static void a_sweep_begins_every_size_with_its_own_places(void **state)
{
    (void)state;
    with_threads(sweep);
}

static void timed(const struct weft_bootstrap pair[2])
{
    for (int both = 0; both < 2; both++) {
        struct end ends[2];
        struct weft_params params = lists_of(2);
        params.duration_ms = 100;
        params.both_ways = both;
        prepare(ends, &params, pair);
        run_ends(ends);
        expect_done(ends);
        assert_int_equal(ends[0].result.iterations % LIST, 0);
        assert_true(ends[0].result.elapsed_s >= 0.1);
        release(ends);
    }
}

static void a_duration_ends_with_a_whole_list(void **state)
{
    (void)state;
    with_threads(timed);
}

/* null completes a list after its delay, as often as its depth has to be filled. */
static void delayed(const struct weft_bootstrap pair[2])
{
    for (size_t i = 0; i < 4; i++) {
        struct end ends[2];
        struct weft_params params = lists_of(i);
        double least_us = 0;
        params.device = "null:delay=10ms";
        /* The machine may be busy, but not all the time. */
        for (int attempt = 0; attempt < 5 && (least_us < 20000 || least_us > 26000); attempt++) {
            prepare(ends, &params, pair);
            run_ends(ends);
            expect_done(ends);
            least_us = ends[0].result.min_us;
            release(ends);
        }
        if (least_us < 20000 || least_us > 26000)
            fail_msg("%s: a list takes %g us, and 20000 is wanted", params.op, least_us);
    }
}

static void a_list_takes_as_long_as_its_operations_under_way_together(void **state)
{
    (void)state;
    with_threads(delayed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_op_runs_in_lists_in_one_direction_and_both),
        cmocka_unit_test(operations_that_do_not_fit_share_places),
        cmocka_unit_test(a_sweep_begins_every_size_with_its_own_places),
        cmocka_unit_test(a_duration_ends_with_a_whole_list),
        cmocka_unit_test(a_list_takes_as_long_as_its_operations_under_way_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
