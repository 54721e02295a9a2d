/* SPDX-License-Identifier: BSD-3-Clause */
/* The rounds of the second stage. Healthy ranks stand on a circle that turns by one place per
 * round; suspects stand still outside, so that each meets another healthy rank every time. On the
 * rest of the circle those meet that are equally far from its ends: these change too. */
#include "map/map.h"

#include <errno.h>
#include <stdlib.h>

/* As many pairs of healthy ranks as suspects, but enough to know what is usual. */
enum { CONTROLS_MIN = 32 };

static int take_suspects(struct map_again *again, const uint32_t *suspects, uint32_t count,
                         const bool *lost)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t rank = suspects[i];
        if (rank >= again->ranks || (lost && lost[rank]) || again->place[rank] != MAP_NONE)
            return fail(-EINVAL, "suspect %u is no rank of the map, lost, or named twice", rank);
        again->place[rank] = again->suspects;
        again->order[again->suspects++] = rank;
    }
    return 0;
}

static void take_healthy(struct map_again *again, uint64_t seed, const bool *lost)
{
    uint32_t *healthy = again->order + again->suspects;
    for (uint32_t rank = 0; rank < again->ranks; rank++)
        if (again->place[rank] == MAP_NONE && !(lost && lost[rank]))
            healthy[again->healthy++] = rank;
    for (uint32_t i = 0; i < again->healthy; i++) {
        uint32_t other = i + (uint32_t)(random_next(&seed) % (again->healthy - i));
        uint32_t rank = healthy[other];
        healthy[other] = healthy[i];
        healthy[i] = rank;
        again->place[rank] = again->suspects + i;
    }
}

static int fill(struct map_again *again, const struct map_plan *plan, const uint32_t *suspects,
                uint32_t count, uint32_t rounds, const bool *lost)
{
    for (uint32_t rank = 0; rank < plan->ranks; rank++)
        again->place[rank] = MAP_NONE;
    int status = take_suspects(again, suspects, count, lost);
    if (status)
        return status;
    take_healthy(again, plan->seed, lost);
    if (again->suspects > again->healthy)
        return fail(-EINVAL, "%u suspects and %u healthy ranks: too few to test them against",
                    again->suspects, again->healthy);
    uint32_t free_pairs = (again->healthy - again->suspects) / 2;
    uint32_t wanted = count > CONTROLS_MIN ? count : CONTROLS_MIN;
    again->controls = wanted < free_pairs ? wanted : free_pairs;
    again->rounds = rounds < again->healthy ? rounds : again->healthy;
    again->at_once = plan->at_once;
    uint32_t pairs = again->suspects + again->controls;
    again->turns = pairs ? (pairs - 1) / again->at_once + 1 : 1;
    return 0;
}

int map_again_open(struct map_again *again, const struct map_plan *plan, const uint32_t *suspects,
                   uint32_t count, uint32_t rounds, const bool *lost)
{
    *again = (struct map_again){.ranks = plan->ranks};
    if (count > plan->ranks)
        return fail(-EINVAL, "%u suspects of %u ranks", count, plan->ranks);
    again->order = calloc(plan->ranks, sizeof *again->order);
    again->place = calloc(plan->ranks, sizeof *again->place);
    int status = again->order && again->place ? fill(again, plan, suspects, count, rounds, lost)
                                              : fail(-ENOMEM, "no memory for the second stage");
    if (status)
        map_again_close(again);
    return status;
}

void map_again_close(struct map_again *again)
{
    free(again->order);
    free(again->place);
    *again = (struct map_again){0};
}

uint32_t map_again_partner(const struct map_again *again, uint32_t round, uint32_t rank,
                           uint32_t *turn)
{
    uint32_t s = again->suspects, h = again->healthy, place = again->place[rank];
    if (place == MAP_NONE)
        return MAP_NONE;
    if (place < s) {
        *turn = place / again->at_once;
        return again->order[s + (place + round) % h];
    }
    /* Where it stands on the circle now: the first ones beside the suspects. */
    uint32_t now = (place - s + h - round % h) % h, pair, other;
    if (now < s) {
        *turn = now / again->at_once;
        return again->order[now];
    }
    other = h - 1 - (now - s);
    pair = now < other ? now - s : other - s;
    if (other == now || pair >= again->controls)
        return MAP_NONE;
    *turn = (s + pair) / again->at_once;
    return again->order[s + (other + round) % h];
}
