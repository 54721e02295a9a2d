/* SPDX-License-Identifier: BSD-3-Clause */
/* A group whose members are threads of this process, over loopback: they exchange values, meet in
 * pairs, and go on without those that die, stop or never come. */
#include "core/clock.h"
#include "peer/tree.h"
#include "support/unit.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#ifdef __SANITIZE_THREAD__
enum { MANY = 64 };
#else
enum { MANY = 512 };
#endif
enum { TIMEOUT_MS = 4000, WAIT_MS = 60000, ROUNDS = 4, ALLOW_MS = 30000 };

enum fate { LIVES, LEAVES, STOPS, NEVER_COMES };

/* One group, and the same for all members. */
struct world {
    uint32_t size;
    bool apart;      /* the root does not measure */
    enum fate inner; /* of the member that stands above most others, in round 2 */
    const struct secret *secret;
    uint64_t timeout_ms, wait_ms, allow_ms;
    atomic_uint port; /* of the root */
    atomic_uint ended;
};

struct actor {
    struct world *world;
    uint32_t rank;
    enum fate fate;
    uint32_t round; /* of its fate */
    int status;
    uint32_t table_ok, deaths, met;
    struct group_death last;
    char reason[256];
    pthread_t thread;
};

static int sum_up(void *arg, const struct group_value *values, struct group_value *answer)
{
    static _Thread_local uint64_t sum;
    const struct world *world = arg;
    sum = 0;
    for (uint32_t i = 0; i < world->size; i++)
        if (values[i].bytes)
            sum += *(const uint32_t *)values[i].bytes;
    *answer = (struct group_value){&sum, sizeof sum};
    return 0;
}

/* Neighbours meet: ranks 2k and 2k + 1. */
static int meet(struct actor *a, struct group *g, uint32_t round)
{
    uint32_t other = a->rank ^ 1U;
    struct peer *peer = NULL;
    if (other >= a->world->size || !group_measures(g) || !group_alive(g, other))
        return 0;
    int status = group_meet(g, other, a->rank & 1 ? PEER_CLIENT : PEER_SERVER, round,
                            a->world->timeout_ms / 4, &peer);
    if (!status)
        status = peer_barrier(peer, "here", NULL, NULL);
    if (!status)
        a->met++;
    peer_close(peer);
    return 0; /* a partner that is gone is the group's matter */
}

static int take_turns(struct actor *a, struct group *g)
{
    const struct group_value mine = {&a->rank, sizeof a->rank};
    struct group_value *table = calloc(a->world->size, sizeof *table), answer;
    int status = table ? group_table(g, a->world->allow_ms, &mine, table) : -ENOMEM;
    for (uint32_t i = 0; !status && i < a->world->size; i++)
        if (table[i].length == sizeof i && *(const uint32_t *)table[i].bytes == i)
            a->table_ok++;
    free(table);
    for (uint32_t round = 1; !status && round <= ROUNDS; round++) {
        if (a->world->inner && g->place == 1 && round == 2)
            a->fate = a->world->inner, a->round = round;
        if (a->fate != LIVES && a->round == round)
            return -ECANCELED;
        status = meet(a, g, round);
        if (!status)
            status = group_turn(g, a->world->allow_ms, round, &mine, sum_up, a->world, &answer);
    }
    return status;
}

static void *live(void *arg)
{
    struct actor *a = arg;
    struct world *w = a->world;
    struct group *g = NULL;
    bool root = a->rank == (w->apart ? w->size : 0);
    const struct group_spec spec = {.rank = a->rank,
                                    .size = w->size,
                                    .root = root,
                                    .id = "test",
                                    .secret = w->secret,
                                    .bind = "127.0.0.1",
                                    .timeout_ms = w->timeout_ms,
                                    .wait_ms = w->wait_ms};
    if (a->fate == NEVER_COMES)
        return NULL;
    a->status = group_open(&g, &spec);
    if (root && !a->status)
        atomic_store(&w->port, group_port(g));
    while (!root && !atomic_load(&w->port))
        usleep(1000);
    if (!a->status)
        a->status = group_join(g, "127.0.0.1", atomic_load(&w->port));
    if (!a->status)
        a->status = take_turns(a, g);
    snprintf(a->reason, sizeof a->reason, "%s", fail_reason());
    if (a->status != -ECANCELED)
        atomic_fetch_add(&w->ended, 1);
    while (a->fate == STOPS && atomic_load(&w->ended) < w->size / 2)
        usleep(10000);
    if (g && group_deaths(g)) {
        a->deaths = group_deaths(g);
        a->last = *group_death(g, a->deaths - 1);
    }
    group_leave(g, a->status == -ECANCELED ? 0 : a->status);
    return NULL;
}

static struct actor *begin(struct world *world)
{
    uint32_t count = world->size + world->apart;
    struct actor *all = calloc(count, sizeof *all);
    assert_non_null(all);
    for (uint32_t i = 0; i < count; i++)
        all[i] = (struct actor){.world = world, .rank = i};
    return all;
}

static void run(struct world *world, struct actor *all)
{
    uint32_t count = world->size + world->apart;
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 1 << 20);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(pthread_create(&all[i].thread, &small, live, &all[i]), 0);
    for (uint32_t i = 0; i < count; i++)
        pthread_join(all[i].thread, NULL);
    pthread_attr_destroy(&small);
}

static void assert_lived(const struct actor *a, uint32_t deaths)
{
    if (a->status || a->deaths != deaths)
        print_error("rank %u: %d %s, %u deaths\n", a->rank, a->status, a->reason, a->deaths);
    assert_int_equal(a->status, 0);
    assert_int_equal(a->deaths, deaths);
}

/* ---- tests ---- */

static void group_of_two_exchanges_values_and_meets(void **state)
{
    (void)state;
    struct world world = {
        .size = 2, .timeout_ms = TIMEOUT_MS, .wait_ms = WAIT_MS, .allow_ms = ALLOW_MS};
    struct actor *all = begin(&world);
    run(&world, all);
    for (uint32_t i = 0; i < 2; i++) {
        assert_lived(&all[i], 0);
        assert_int_equal(all[i].table_ok, 2);
        assert_int_equal(all[i].met, ROUNDS);
    }
    free(all);
}

static void group_with_a_secret_and_a_root_apart_has_all_ranks(void **state)
{
    (void)state;
    struct secret secret;
    assert_int_equal(secret_make(&secret), 0);
    struct world world = {.size = 20,
                          .apart = true,
                          .secret = &secret,
                          .timeout_ms = TIMEOUT_MS,
                          .wait_ms = WAIT_MS,
                          .allow_ms = ALLOW_MS};
    struct actor *all = begin(&world);
    run(&world, all);
    for (uint32_t i = 0; i <= 20; i++) {
        assert_lived(&all[i], 0);
        assert_int_equal(all[i].table_ok, 20);
        assert_int_equal(all[i].met, i < 20 ? ROUNDS : 0);
    }
    free(all);
}

static void group_goes_on_without_those_that_leave_stop_or_never_come(void **state)
{
    (void)state;
    struct world world = {.size = 40, .timeout_ms = 2500, .wait_ms = 5000, .allow_ms = 500};
    struct actor *all = begin(&world);
    all[7].fate = LEAVES;
    all[7].round = 2;
    all[8].fate = STOPS;
    all[8].round = 3;
    all[9].fate = NEVER_COMES;
    run(&world, all);
    for (uint32_t i = 0; i < 40; i++)
        if (all[i].fate == LIVES)
            assert_lived(&all[i], 3);
    assert_int_equal(all[0].table_ok, 39);
    assert_int_equal(all[0].last.rank, 8);
    assert_int_equal(all[0].last.round, 3);
    assert_non_null(strstr(all[0].last.reason, "silent for 3 s"));
    free(all);
}

static void members_whose_parent_is_lost_stay(void **state)
{
    (void)state;
    for (enum fate fate = LEAVES; fate <= STOPS; fate++) {
        struct world world = {
            .size = 40, .inner = fate, .timeout_ms = 2500, .wait_ms = WAIT_MS, .allow_ms = 500};
        struct actor *all = begin(&world);
        run(&world, all);
        for (uint32_t i = 0; i < 40; i++)
            if (all[i].fate == LIVES)
                assert_lived(&all[i], 1);
        assert_int_equal(all[0].last.round, 2);
        free(all);
    }
}

static void many_members_exchange_addresses_lose_ten_and_finish(void **state)
{
    (void)state;
    struct world world = {
        .size = MANY, .timeout_ms = TIMEOUT_MS, .wait_ms = WAIT_MS, .allow_ms = ALLOW_MS};
    struct actor *all = begin(&world);
    uint64_t seed = 7;
    unsigned lost = 0;
    while (lost < 10) {
        uint32_t rank = 1 + (uint32_t)(random_next(&seed) % (MANY - 1));
        if (all[rank].fate == LIVES) {
            all[rank].fate = LEAVES;
            all[rank].round = 1 + lost++ % ROUNDS;
        }
    }
    run(&world, all);
    for (uint32_t i = 0; i < MANY; i++) {
        if (all[i].fate != LIVES)
            continue;
        assert_lived(&all[i], 10);
        assert_int_equal(all[i].table_ok, MANY);
    }
    free(all);
}

static void group_without_its_root_ends(void **state)
{
    (void)state;
    struct world world = {.size = 20, .timeout_ms = 1000, .wait_ms = WAIT_MS, .allow_ms = 500};
    struct actor *all = begin(&world);
    all[0].fate = LEAVES;
    all[0].round = 2;
    run(&world, all);
    for (uint32_t i = 1; i < 20; i++)
        assert_true(all[i].status < 0);
    free(all);
}

static void group_that_nobody_joins_ends(void **state)
{
    (void)state;
    struct world world = {.size = 2, .timeout_ms = 200, .wait_ms = 200};
    struct actor *all = begin(&world);
    all[1].fate = NEVER_COMES;
    run(&world, all);
    assert_int_equal(all[0].status, -ETIMEDOUT);
    assert_string_equal(all[0].reason, "no other of 2 ranks came within 0.2 s");
    free(all);
}

static int more_descriptors(void **state)
{
    (void)state;
    struct rlimit most;
    getrlimit(RLIMIT_NOFILE, &most);
    most.rlim_cur = most.rlim_max < 16384 ? most.rlim_max : 16384;
    return setrlimit(RLIMIT_NOFILE, &most);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(group_of_two_exchanges_values_and_meets),
        cmocka_unit_test(group_with_a_secret_and_a_root_apart_has_all_ranks),
        cmocka_unit_test(group_goes_on_without_those_that_leave_stop_or_never_come),
        cmocka_unit_test(members_whose_parent_is_lost_stay),
        cmocka_unit_test(group_without_its_root_ends),
        cmocka_unit_test(group_that_nobody_joins_ends),
        cmocka_unit_test(many_members_exchange_addresses_lose_ten_and_finish),
    };
    return cmocka_run_group_tests(tests, more_descriptors, NULL);
}
