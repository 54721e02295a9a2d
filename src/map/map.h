/* SPDX-License-Identifier: BSD-3-Clause */
/* The door of map: many ranks measured in pairs. Who meets whom in which round, what was measured,
 * which node, pair or group is slow, and what could not have been found. Nothing here talks to
 * anybody: the same input gives the same output on every machine. */
#ifndef WEFT_MAP_H
#define WEFT_MAP_H

#include "core/core.h"

#include <stdio.h>

enum { MAP_RANKS_MAX = 1 << 20 };
#define MAP_NONE UINT32_MAX /* no partner: the rank rests */

/* ---- rounds: the first stage ---- */

/* In a round every rank meets at most one other. Over all rounds no pair meets twice, and in a full
 * map each pair meets once. Ranks and rounds are in random order, by the seed. */
struct map_plan {
    uint32_t ranks, rounds;
    uint32_t turns;   /* per round: its pairs are split so that few enough are under way at once */
    uint32_t at_once; /* pairs per turn */
    uint64_t seed;
};

/* partners: how many each rank meets at least; 0, or more than there are: all. at_once: the most
 * pairs that measure at the same time; 0: no limit. -EINVAL and a sentence for fewer than two or
 * too many ranks. */
int map_plan(struct map_plan *plan, uint32_t ranks, uint32_t partners, uint32_t at_once,
             uint64_t seed);

/* The partner of rank in round, and in *turn when they measure. Takes constant time and no memory.
 * MAP_NONE: it rests, as one rank does in each round if their number is odd. */
uint32_t map_partner(const struct map_plan *plan, uint32_t round, uint32_t rank, uint32_t *turn);

/* ---- rounds: suspects again ---- */

/* The second stage. Each suspect meets another healthy rank in each round; some healthy ranks meet
 * each other meanwhile, to tell what is usual at that time. */
struct map_again {
    uint32_t ranks, rounds, turns, at_once;
    uint32_t suspects, healthy, controls; /* controls: healthy pairs per round */
    uint32_t *order;                      /* suspects, then healthy ranks shuffled */
    uint32_t *place;                      /* of a rank in order; MAP_NONE: it takes no part */
};

/* lost: per rank, true if it takes no part; may be NULL. rounds is cut to the number of healthy
 * ranks. -EINVAL and a sentence if a suspect is no rank or named twice, or if more than half of
 * those left are suspect. */
int map_again_open(struct map_again *again, const struct map_plan *plan, const uint32_t *suspects,
                   uint32_t count, uint32_t rounds, const bool *lost);
uint32_t map_again_partner(const struct map_again *again, uint32_t round, uint32_t rank,
                           uint32_t *turn);
void map_again_close(struct map_again *again);

#endif
