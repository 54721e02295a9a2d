/* SPDX-License-Identifier: BSD-3-Clause */
/* Who meets whom: every pair once, nobody twice in a round, and never more pairs at once than asked
 * for. */
#include "map/map.h"
#include "support/unit.h"

#include <errno.h>
#include <stdlib.h>

enum { MOST = 257 };
static uint8_t met[MOST][MOST];

/* One round: partners agree, also on their turn. Returns the number of pairs. */
static uint32_t check_round(const struct map_plan *plan, uint32_t round)
{
    uint32_t pairs = 0, partner[MOST], turn[MOST], in_turn[MOST] = {0};
    for (uint32_t rank = 0; rank < plan->ranks; rank++)
        partner[rank] = map_partner(plan, round, rank, &turn[rank]);
    for (uint32_t rank = 0; rank < plan->ranks; rank++) {
        uint32_t other = partner[rank];
        if (other == MAP_NONE)
            continue;
        assert_true(other < plan->ranks && other != rank);
        assert_true(partner[other] == rank && turn[other] == turn[rank]);
        assert_true(turn[rank] < plan->turns);
        met[rank][other]++;
        if (rank < other) {
            pairs++;
            assert_true(++in_turn[turn[rank]] <= plan->at_once);
        }
    }
    return pairs;
}

static void every_pair_meets_once(void **state)
{
    (void)state;
    for (uint32_t n = 2; n <= MOST; n++) {
        struct map_plan plan;
        memset(met, 0, sizeof met);
        assert_int_equal(map_plan(&plan, n, 0, 0, n), 0);
        assert_int_equal(plan.rounds, n % 2 ? n : n - 1);
        assert_int_equal(plan.turns, 1);
        for (uint32_t round = 0; round < plan.rounds; round++)
            assert_int_equal(check_round(&plan, round), n / 2);
        for (uint32_t a = 0; a < n; a++)
            for (uint32_t b = 0; b < n; b++)
                if (met[a][b] != (a != b))
                    fail_msg("%u ranks: %u and %u met %u times", n, a, b, met[a][b]);
    }
}

static void sampled_ranks_meet_as_many_as_promised(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {2, 3, 5, 16, 17, 64, 101, 256, 257};
    for (size_t i = 0; i < LENGTH(sizes); i++)
        for (uint32_t partners = 1; partners < 20; partners += 3) {
            struct map_plan plan;
            uint32_t n = sizes[i], promised = partners < n - 1 ? partners : n - 1;
            memset(met, 0, sizeof met);
            assert_int_equal(map_plan(&plan, n, partners, 0, 7), 0);
            assert_true(plan.rounds <= promised + n % 2);
            for (uint32_t round = 0; round < plan.rounds; round++)
                check_round(&plan, round);
            for (uint32_t a = 0; a < n; a++) {
                uint32_t count = 0;
                for (uint32_t b = 0; b < n; b++) {
                    assert_true(met[a][b] <= 1);
                    count += met[a][b];
                }
                assert_true(count >= promised && count <= plan.rounds);
            }
        }
}

static void a_round_is_split_into_turns(void **state)
{
    (void)state;
    for (uint32_t n = 2; n < 40; n += 1 + n / 8)
        for (uint32_t at_once = 1; at_once < 24; at_once += 1 + at_once / 3) {
            struct map_plan plan;
            assert_int_equal(map_plan(&plan, n, 0, at_once, 3), 0);
            assert_true(plan.at_once <= at_once);
            assert_int_equal(plan.turns, (n / 2 + plan.at_once - 1) / plan.at_once);
            for (uint32_t round = 0; round < plan.rounds; round++)
                assert_int_equal(check_round(&plan, round), n / 2);
        }
}

static void the_seed_decides_the_order(void **state)
{
    (void)state;
    struct map_plan a, b, c;
    uint32_t turn, differ = 0;
    assert_int_equal(map_plan(&a, 100, 0, 0, 1), 0);
    assert_int_equal(map_plan(&b, 100, 0, 0, 1), 0);
    assert_int_equal(map_plan(&c, 100, 0, 0, 2), 0);
    for (uint32_t rank = 0; rank < 100; rank++) {
        assert_int_equal(map_partner(&a, 5, rank, &turn), map_partner(&b, 5, rank, &turn));
        differ += map_partner(&a, 5, rank, &turn) != map_partner(&c, 5, rank, &turn);
    }
    assert_true(differ > 80);
}

/* Over many seeds each pair is as likely as any other to meet in the first round. */
static void sampled_pairs_are_random(void **state)
{
    (void)state;
    enum { N = 9, SEEDS = 4500 };
    uint32_t count[N][N] = {{0}}, turn;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct map_plan plan;
        assert_int_equal(map_plan(&plan, N, 1, 0, seed), 0);
        for (uint32_t a = 0; a < N; a++) {
            uint32_t b = map_partner(&plan, 0, a, &turn);
            if (b != MAP_NONE)
                count[a][b]++;
        }
    }
    for (uint32_t a = 0; a < N; a++)
        for (uint32_t b = 0; b < N; b++)
            if (a != b && (count[a][b] < 400 || count[a][b] > 600))
                fail_msg("%u and %u met %u times, not about 500", a, b, count[a][b]);
}

static void wrong_numbers_of_ranks_are_refused(void **state)
{
    (void)state;
    struct map_plan plan;
    assert_int_equal(map_plan(&plan, 1, 0, 0, 0), -EINVAL);
    assert_contains(fail_reason(), "not 1");
    assert_int_equal(map_plan(&plan, MAP_RANKS_MAX + 1, 0, 0, 0), -EINVAL);
}

/* ---- suspects again ---- */

static void check_again(const struct map_again *again, const bool *lost)
{
    for (uint32_t round = 0; round < again->rounds; round++) {
        uint32_t suspect_pairs = 0, healthy_pairs = 0, turn = 0, back = 0, in_turn[MOST] = {0};
        for (uint32_t rank = 0; rank < again->ranks; rank++) {
            uint32_t other = map_again_partner(again, round, rank, &turn);
            bool suspect = again->place[rank] < again->suspects;
            assert_true(other != MAP_NONE || !suspect);
            if (other == MAP_NONE)
                continue;
            assert_false(lost[rank]);
            assert_int_equal(map_again_partner(again, round, other, &back), rank);
            assert_int_equal(back, turn);
            assert_true(turn < again->turns);
            met[rank][other]++;
            assert_false(suspect && again->place[other] < again->suspects);
            assert_false(suspect && met[rank][other] > 1);
            suspect_pairs += suspect;
            healthy_pairs += !suspect && again->place[other] >= again->suspects && rank < other;
            assert_true(rank > other || ++in_turn[turn] <= again->at_once);
        }
        assert_int_equal(suspect_pairs, again->suspects);
        assert_int_equal(healthy_pairs, again->controls);
    }
}

static void suspects_meet_other_healthy_ranks_in_every_round(void **state)
{
    (void)state;
    uint32_t suspects[] = {3, 0, 11};
    for (uint32_t n = 12; n < 120; n += 7)
        for (uint32_t gone = 0; gone < 3; gone++) {
            bool lost[MOST] = {[5] = gone > 0, [7] = gone > 1};
            struct map_plan plan;
            struct map_again again;
            memset(met, 0, sizeof met);
            assert_int_equal(map_plan(&plan, n, 8, 1 + n % 5, n), 0);
            assert_int_equal(map_again_open(&again, &plan, suspects, 3, 32, lost), 0);
            assert_int_equal(again.rounds, n - 3 - gone < 32 ? n - 3 - gone : 32);
            assert_int_equal(again.healthy, n - 3 - gone);
            check_again(&again, lost);
            map_again_close(&again);
        }
}

static void wrong_suspects_are_refused(void **state)
{
    (void)state;
    struct map_plan plan;
    struct map_again again;
    bool lost[6] = {[4] = true};
    assert_int_equal(map_plan(&plan, 6, 0, 0, 1), 0);
    assert_int_equal(map_again_open(&again, &plan, (uint32_t[]){6}, 1, 4, NULL), -EINVAL);
    assert_int_equal(map_again_open(&again, &plan, (uint32_t[]){1, 1}, 2, 4, NULL), -EINVAL);
    assert_int_equal(map_again_open(&again, &plan, (uint32_t[]){4}, 1, 4, lost), -EINVAL);
    assert_int_equal(map_again_open(&again, &plan, (uint32_t[]){0, 1, 2}, 3, 4, lost), -EINVAL);
    assert_contains(fail_reason(), "3 suspects and 2 healthy ranks");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pair_meets_once),
        cmocka_unit_test(sampled_ranks_meet_as_many_as_promised),
        cmocka_unit_test(a_round_is_split_into_turns),
        cmocka_unit_test(the_seed_decides_the_order),
        cmocka_unit_test(sampled_pairs_are_random),
        cmocka_unit_test(wrong_numbers_of_ranks_are_refused),
        cmocka_unit_test(suspects_meet_other_healthy_ranks_in_every_round),
        cmocka_unit_test(wrong_suspects_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
