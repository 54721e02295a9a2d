/* SPDX-License-Identifier: BSD-3-Clause */
/* Clocks: they cost something, never go back, and are calibrated once. */
#include "core/clock.h"
#include "core/core.h"
#include "support/unit.h"

#include <errno.h>

static bool open_clock(struct clock *clock, enum clock_kind kind)
{
    int status = clock_open(clock, kind);
    if (status == -ENOTSUP && kind == CLOCK_CYCLES) {
        assert_contains(fail_reason(), "clock_gettime");
        return false;
    }
    assert_int_equal(status, 0);
    return true;
}

/* What every clock must do; the kind stands in the test's name. */
static void check_clock(enum clock_kind kind)
{
    struct clock clock;
    if (!open_clock(&clock, kind))
        skip();
    assert_int_equal(clock.kind, kind);
    assert_true(clock.ps_per_tick > 0);
    assert_true(clock.cost_ps > 0);
    assert_true(clock.cost_ps < 1000000000);
    assert_true(clock.step_ps > 0);
    assert_true(clock_least_ps(&clock) >= 2 * clock.cost_ps);
    assert_true(clock_least_ps(&clock) >= 3 * clock.step_ps);
    uint64_t before = clock_read(&clock), least = UINT64_MAX;
    for (int i = 0; i < 100000; i++) {
        uint64_t now = clock_read(&clock);
        assert_true(now >= before);
        if (now > before && now - before < least)
            least = now - before;
        before = now;
    }
    /* A tick more, because a step need not be a whole number of ticks. */
    assert_true((double)clock.step_ps <= (double)(least + 1) * clock.ps_per_tick);
    before = clock_read(&clock);
    rest_ms(20);
    uint64_t passed_ps = clock_to_ps(&clock, clock_read(&clock) - before);
    assert_in_range(passed_ps, UINT64_C(19900000000), UINT64_C(5000000000000));
    assert_int_equal(clock_check(&clock), 0);
}

static void clock_gettime_costs_something_and_never_goes_back(void **state)
{
    (void)state;
    check_clock(CLOCK_GETTIME);
}

static void clock_cycles_cost_something_and_never_go_back(void **state)
{
    (void)state;
    check_clock(CLOCK_CYCLES);
}

static void clock_cycles_are_calibrated_once_a_process(void **state)
{
    struct clock first, second;
    (void)state;
    if (!open_clock(&first, CLOCK_CYCLES))
        skip();
    assert_true(open_clock(&second, CLOCK_CYCLES));
    assert_true(first.ps_per_tick == second.ps_per_tick);
    assert_true(second.first_raw_ns > first.first_raw_ns);
}

static void clock_from_ps_lasts_at_least_as_long_and_not_a_tick_longer(void **state)
{
    static const double rates[] = {1000, 333.3333, 0.7, 40000};
    uint64_t seed = 4;
    (void)state;
    for (size_t r = 0; r < LENGTH(rates); r++) {
        struct clock clock = {.kind = CLOCK_CYCLES, .ps_per_tick = rates[r]};
        assert_int_equal(clock_from_ps(&clock, 0), 0);
        assert_int_equal(clock_from_ps(&clock, 1), rates[r] < 1 ? 2 : 1);
        for (int i = 0; i < 20000; i++) {
            uint64_t ps = next_random(&seed) >> (14 + next_random(&seed) % 50);
            uint64_t ticks = clock_from_ps(&clock, ps);
            long double exact = (long double)ticks * (long double)rates[r];
            long double slack = 1e-15L * (long double)ps;
            assert_true(exact >= (long double)ps - slack);
            assert_true(exact <= (long double)ps + (long double)rates[r] + slack);
            /* And back, rounded to the nearest picosecond. */
            long double error = (long double)clock_to_ps(&clock, ticks) - exact;
            assert_true(error <= 0.5001L + slack && error >= -0.5001L - slack);
        }
    }
}

static void clock_gettime_converts_nanoseconds_exactly(void **state)
{
    struct clock clock;
    (void)state;
    assert_true(open_clock(&clock, CLOCK_GETTIME));
    assert_int_equal(clock_to_ps(&clock, 27), 27000);
    assert_int_equal(clock_from_ps(&clock, 27000), 27);
    assert_int_equal(clock_from_ps(&clock, 27001), 28);
    assert_int_equal(clock_from_ps(&clock, 1000000000000), 1000000000);
    assert_int_equal(clock_to_ps(&clock, UINT64_C(1) << 40), (UINT64_C(1) << 40) * 1000);
}

static void clock_check_says_so_when_the_calibration_is_one_percent_off(void **state)
{
    struct clock clock;
    (void)state;
    if (!open_clock(&clock, CLOCK_CYCLES))
        skip();
    const double truth = clock.ps_per_tick;
    rest_ms(20);
    assert_int_equal(clock_check(&clock), 0);
    clock.ps_per_tick = truth * 1.01;
    assert_int_equal(clock_check(&clock), -ERANGE);
    assert_contains(fail_reason(), "GHz");
    clock.ps_per_tick = truth / 1.01;
    assert_int_equal(clock_check(&clock), -ERANGE);
    clock.ps_per_tick = truth;
    assert_int_equal(clock_check(&clock), 0);
}

static void clock_ms_and_clock_ns_tell_the_same_time(void **state)
{
    (void)state;
    for (int i = 0; i < 1000; i++) {
        uint64_t before = clock_ns(), ms = clock_ms(), after = clock_ns();
        assert_true(before / 1000000 <= ms && ms <= after / 1000000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clock_gettime_costs_something_and_never_goes_back),
        cmocka_unit_test(clock_cycles_cost_something_and_never_go_back),
        cmocka_unit_test(clock_cycles_are_calibrated_once_a_process),
        cmocka_unit_test(clock_from_ps_lasts_at_least_as_long_and_not_a_tick_longer),
        cmocka_unit_test(clock_gettime_converts_nanoseconds_exactly),
        cmocka_unit_test(clock_check_says_so_when_the_calibration_is_one_percent_off),
        cmocka_unit_test(clock_ms_and_clock_ns_tell_the_same_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
