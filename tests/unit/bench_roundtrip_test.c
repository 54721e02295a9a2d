/* SPDX-License-Identifier: BSD-3-Clause */
/* Samples of round trips by a clock that a test moves: all count, their sum is the time that
 * passed, and a clock that is read late makes none of them too short. */
#include "bench/run.h"
#include "support/unit.h"

#include <stdlib.h>

enum { SENDING = 30, USUAL = 700, COUNT = 5000, SHORT = 2000 };

struct world {
    struct stats *stats;
    struct roundtrips r;
    uint64_t now, begin, elapsed;
};

static void start(struct world *w, uint64_t below)
{
    *w = (struct world){.now = 1000};
    assert_int_equal(stats_open(&w->stats, 0), 0);
    w->r = (struct roundtrips){.buckets = w->stats->buckets, .below = below};
    w->begin = w->now;
}

/* One message: it goes, an interrupt comes before the clock is read, it is answered. */
static void exchange(struct world *w, uint64_t wait, uint64_t interrupt)
{
    if (!w->r.after)
        roundtrip_before(&w->r, w->now);
    uint64_t answered = w->now + SENDING + wait;
    w->now += SENDING + interrupt;
    if (w->r.row == ROUNDTRIP_ROW)
        roundtrip_after(&w->r, w->now);
    w->now = answered > w->now ? answered : w->now;
}

static void pause_it(struct world *w)
{
    roundtrip_end(&w->r, w->now);
    w->elapsed += w->now - w->begin;
    w->now += 123456;
    w->begin = w->now;
}

static uint64_t counted(const struct world *w)
{
    uint64_t count = 0;
    for (size_t i = 0; i < STATS_BUCKETS; i++)
        count += w->stats->buckets[i];
    return count;
}

static double sum(const struct world *w)
{
    double all = 0;
    for (size_t i = 0; i < STATS_BUCKETS; i++) {
        double low, high;
        stats_bounds(i, &low, &high);
        all += (double)w->stats->buckets[i] * (low + high) / 2;
    }
    return all;
}

static uint64_t shortest(const struct world *w)
{
    size_t i = 0;
    double low, high;
    while (i < STATS_BUCKETS && !w->stats->buckets[i])
        i++;
    stats_bounds(i, &low, &high);
    return (uint64_t)high;
}

static void one_round_trip_is_what_it_lasted(void **state)
{
    (void)state;
    struct world w;
    start(&w, SHORT);
    exchange(&w, USUAL, 0);
    pause_it(&w);
    assert_int_equal(counted(&w), 1);
    assert_in_range(sum(&w), (SENDING + USUAL) * 0.999, (SENDING + USUAL) * 1.001);
    stats_close(w.stats);
}

static void short_ones_are_timed_from_sending_to_sending_and_long_ones_are_not(void **state)
{
    (void)state;
    struct world w;
    start(&w, SHORT);
    for (int i = 0; i <= ROUNDTRIP_ROW; i++) {
        assert_false(w.r.after);
        exchange(&w, USUAL, 0);
    }
    assert_true(w.r.after);
    stats_close(w.stats);
    start(&w, SHORT);
    for (int i = 0; i < 100; i++)
        exchange(&w, SHORT, 0);
    assert_false(w.r.after);
    stats_close(w.stats);
}

static void a_zero_is_a_sample(void **state)
{
    (void)state;
    struct world w;
    start(&w, 0);
    for (int i = 0; i < 10; i++)
        roundtrip_before(&w.r, w.now);
    roundtrip_end(&w.r, w.now);
    assert_int_equal(counted(&w), 10);
    stats_close(w.stats);
}

/* What failed is no sample; what came before it is. */
static void without_an_answer_there_is_no_sample(void **state)
{
    (void)state;
    struct world w;
    start(&w, SHORT);
    for (int i = 0; i < 20; i++)
        exchange(&w, USUAL, 0);
    w.r.sent = 0;
    roundtrip_end(&w.r, w.now);
    assert_int_equal(counted(&w), 19);
    stats_close(w.stats);
}

static void every_time_counts_and_a_late_clock_makes_none_too_short(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= 20; seed++) {
        struct world w;
        srand(seed);
        start(&w, SHORT);
        for (int i = 0; i < COUNT; i++) {
            uint64_t wait = USUAL + (uint64_t)rand() % 10, interrupt = 0;
            if (i % 10 == 0)
                interrupt = (uint64_t)rand() % 5000;
            else if (i % 50 == 25)
                wait += (uint64_t)rand() % 20000;
            exchange(&w, wait, interrupt);
            if (rand() % 500 == 0)
                pause_it(&w);
        }
        pause_it(&w);
        assert_int_equal(counted(&w), COUNT);
        assert_in_range(sum(&w), (double)w.elapsed * 0.999, (double)w.elapsed * 1.001);
        assert_in_range(shortest(&w), (SENDING + USUAL) * 4 / 5, SENDING + USUAL + 10);
        stats_close(w.stats);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_round_trip_is_what_it_lasted),
        cmocka_unit_test(short_ones_are_timed_from_sending_to_sending_and_long_ones_are_not),
        cmocka_unit_test(a_zero_is_a_sample),
        cmocka_unit_test(without_an_answer_there_is_no_sample),
        cmocka_unit_test(every_time_counts_and_a_late_clock_makes_none_too_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
