/* SPDX-License-Identifier: BSD-3-Clause */
/* Pairs that measure together: lists that do not count before all have begun and until all are
 * done. Of the pairs, one is here, and the others are a report that says when they come. */
#include "bench/session.h"
#include "support/specs.h"
#include "support/unit.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>

enum { LISTS = 10, LIST = 64, LATE = 5 };
static const double delay_s = 0.001;

/* The others come when this pair has asked LATE times, or are lost. */
struct others {
    struct report report;
    unsigned meetings, asked, rows;
    int lost; /* at the second meeting */
    struct result result;
};

static int meet(struct report *report, bool first)
{
    struct others *o = (struct others *)report;
    o->meetings += first;
    o->asked = first ? 0 : o->asked + 1;
    if (o->lost && o->meetings == 2)
        return fail(o->lost, "pair 3: lost");
    return o->asked >= LATE;
}

static int row(struct report *report, const struct result *result)
{
    struct others *o = (struct others *)report;
    o->rows++;
    o->result = *result;
    return 0;
}

static const struct report_ops others_ops = {.name = "others", .row = row, .meet = meet};

struct half {
    struct peer *peer;
    struct others others;
    bool both_ways;
    int status;
    char why[128];
};

static void *half_run(void *arg)
{
    struct half *half = arg;
    struct offer offer = {.device = "null:delay=1ms", .given = true, .vouched = true};
    struct session session;
    struct spec spec = spec_of("write", "list");
    spec.count.iterations = LISTS;
    spec.count.warmup = 1;
    spec.pace.list = LIST;
    spec.both_ways = half->both_ways;
    spec.size.min = spec.size.max = 1000;
    spec_settle(&spec);
    session_init(&session);
    session.peer = half->peer;
    half->status = session_run(&session, &offer, &spec, 0, &half->others.report);
    snprintf(half->why, sizeof half->why, "%s", fail_reason());
    half->status = session_close(&session, half->status);
    peer_close(half->peer);
    return NULL;
}

static double run_halves(struct half halves[2], bool both_ways, int lost)
{
    struct peer_terms terms = {.timeout_ms = 20000};
    struct peer *peers[2];
    pthread_t threads[2];
    assert_int_equal(peer_threads(peers, &terms), 0);
    uint64_t since_ms = clock_ms();
    for (int i = 0; i < 2; i++) {
        halves[i] = (struct half){
            .peer = peers[i], .both_ways = both_ways, .others = {.report = {&others_ops}}};
        halves[i].others.lost = i == PEER_CLIENT ? lost : 0;
        assert_int_equal(pthread_create(&threads[i], NULL, half_run, &halves[i]), 0);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return (double)(clock_ms() - since_ms) / 1000;
}

static void a_pair_runs_uncounted_lists_until_all_have_begun_and_all_are_done(void **state)
{
    struct half halves[2];
    (void)state;
    double wall_s = run_halves(halves, false, 0);
    const struct others *client = &halves[PEER_CLIENT].others;
    if (halves[PEER_CLIENT].status || halves[PEER_SERVER].status)
        fail_msg("%s", halves[PEER_CLIENT].why);
    assert_int_equal(client->meetings, 2);
    assert_int_equal(halves[PEER_SERVER].others.meetings, 0);
    assert_int_equal(client->result.count, LISTS * LIST);
    assert_int_equal(client->result.sampling.warmup, 1 + LATE);
    assert_true(client->result.elapsed_s >= LISTS * delay_s);
    assert_true(wall_s - client->result.elapsed_s >= (1 + 2 * LATE) * delay_s);
    assert_true(client->result.complete);
}

static void both_ways_each_end_has_its_own_meetings(void **state)
{
    struct half halves[2];
    (void)state;
    run_halves(halves, true, 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(halves[i].status, 0);
        assert_int_equal(halves[i].others.meetings, 2);
        assert_int_equal(halves[i].others.result.count, LISTS * LIST);
        assert_int_equal(halves[i].others.result.reverse_count, LISTS * LIST);
    }
}

static void what_was_measured_is_reported_if_another_pair_is_lost(void **state)
{
    struct half halves[2];
    (void)state;
    run_halves(halves, false, -ECONNRESET);
    const struct others *client = &halves[PEER_CLIENT].others;
    assert_int_equal(halves[PEER_CLIENT].status, -ECONNRESET);
    assert_string_equal(halves[PEER_CLIENT].why, "pair 3: lost");
    assert_int_equal(client->rows, 1);
    assert_int_equal(client->result.count, LISTS * LIST);
    assert_false(client->result.complete);
    assert_int_equal(halves[PEER_SERVER].status, -ECONNRESET);
    assert_string_equal(halves[PEER_SERVER].why, "the client gave up: pair 3: lost");
    assert_int_equal(halves[PEER_SERVER].others.rows, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pair_runs_uncounted_lists_until_all_have_begun_and_all_are_done),
        cmocka_unit_test(both_ways_each_end_has_its_own_meetings),
        cmocka_unit_test(what_was_measured_is_reported_if_another_pair_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
