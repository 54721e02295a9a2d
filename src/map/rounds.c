/* SPDX-License-Identifier: BSD-3-Clause */
/* Rounds of pairs by the circle method: places 0 to n - 2 stand on a circle, place n - 1 in its
 * middle, and in round r places meet whose sum is r. A round is computed, not stored: ranks and
 * rounds are put in random order by a permutation that needs no table. */
#include "map/map.h"

#include <errno.h>

/* Which permutation of a plan is meant. */
enum purpose { OF_RANKS = 1, OF_ROUNDS = 2 };

static uint32_t scramble(uint64_t seed, enum purpose purpose, unsigned step, uint32_t value)
{
    uint64_t state = seed ^ ((uint64_t)purpose << 60 | (uint64_t)step << 56 | (uint64_t)value) *
                                0xd6e8feb86659fd93U;
    return (uint32_t)(random_next(&state) >> 32);
}

/* A Feistel network permutes the numbers of 2 * half bits; a number beyond count goes through it
 * again. Fewer than three in four are beyond, so that takes few turns. */
enum { STEPS = 4 };
static uint32_t permute(uint64_t seed, enum purpose purpose, uint32_t count, uint32_t value,
                        bool back)
{
    unsigned half = 1;
    while ((uint64_t)1 << 2 * half < count)
        half++;
    uint32_t mask = (uint32_t)(((uint64_t)1 << half) - 1);
    do {
        uint32_t left = value >> half, right = value & mask;
        for (unsigned i = 0; i < STEPS; i++) {
            if (back) {
                uint32_t before = right ^ (scramble(seed, purpose, STEPS - 1 - i, left) & mask);
                right = left;
                left = before;
            } else {
                uint32_t after = left ^ (scramble(seed, purpose, i, right) & mask);
                left = right;
                right = after;
            }
        }
        value = left << half | right;
    } while (value >= count);
    return value;
}

static uint32_t even(uint32_t ranks)
{
    return ranks + ranks % 2;
}

static uint32_t turns_of(uint32_t pairs, uint32_t at_once)
{
    return pairs ? (pairs - 1) / at_once + 1 : 1;
}

int map_plan(struct map_plan *plan, uint32_t ranks, uint32_t partners, uint32_t at_once,
             uint64_t seed)
{
    if (ranks < 2 || ranks > MAP_RANKS_MAX)
        return fail(-EINVAL, "a map needs 2 to %d ranks, not %u", MAP_RANKS_MAX, ranks);
    uint32_t all = even(ranks) - 1, pairs = ranks / 2;
    /* No rank rests twice, so one more round makes up for it. */
    bool sampled = partners && partners < ranks - 1;
    *plan = (struct map_plan){.ranks = ranks,
                              .rounds = sampled ? partners + ranks % 2 : all,
                              .at_once = at_once && at_once < pairs ? at_once : pairs,
                              .seed = seed};
    plan->turns = turns_of(pairs, plan->at_once);
    return 0;
}

uint32_t map_partner(const struct map_plan *plan, uint32_t round, uint32_t rank, uint32_t *turn)
{
    uint32_t n = even(plan->ranks), circle = n - 1, middle = circle;
    uint32_t sum = permute(plan->seed, OF_ROUNDS, circle, round, false);
    /* The place that would meet itself meets the middle one. 2 * n / 2 = 1 on this circle. */
    uint32_t half = (uint32_t)((uint64_t)sum * (n / 2) % circle);
    uint32_t place = permute(plan->seed, OF_RANKS, plan->ranks, rank, false);
    uint32_t other = place == middle ? half : (sum + circle - place) % circle;
    if (other == place)
        other = middle;
    if (other >= plan->ranks)
        return MAP_NONE;
    /* Pairs are counted from the middle one, which is none if a rank rests. */
    uint32_t away = place == middle || other == middle ? 0 : (place + circle - half) % circle;
    if (away > circle / 2)
        away = circle - away;
    *turn = (away - plan->ranks % 2) / plan->at_once;
    return permute(plan->seed, OF_RANKS, plan->ranks, other, true);
}
