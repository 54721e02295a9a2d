/* SPDX-License-Identifier: BSD-3-Clause */
/* A simulated cluster for tests of map: nodes, groups, pairs, noise and foreign traffic, and a map
 * of it from the first round to the verdicts. The seed decides everything. */
#ifndef WEFT_TEST_MAP_WORLD_H
#define WEFT_TEST_MAP_WORLD_H

#include "map/map.h"

struct world {
    uint32_t nodes, groups, partners, again; /* groups are blocks of nodes; partners 0: all */
    double noise, spread;                    /* of a pair; by which healthy nodes differ */
    double hit;     /* share of the measurements that foreign traffic hits */
    double drift;   /* of all, from the first to the second stage */
    double between; /* what another group costs */
    uint32_t slow_node, slow_group, pair[2]; /* MAP_NONE: none is slow */
    uint32_t slow_count;                     /* nodes from slow_node on; 0: one */
    double slow;                             /* by this fraction */
    uint32_t lost;     /* so many nodes end in the middle of the first stage */
    double persistent; /* by which pairs differ every time, beside noise */
    uint64_t seed;
};

struct world world_of(uint32_t nodes, uint32_t partners, uint32_t again, double noise,
                      uint64_t seed);

/* A map of it. The pairs are measured again only if with_pairs. Fails the test if map does. */
void world_map(const struct world *world, bool with_pairs, struct map_verdicts *verdicts);

/* How many findings of this kind are slower. */
size_t world_named(const struct map_verdicts *verdicts, enum map_kind kind);

#endif
