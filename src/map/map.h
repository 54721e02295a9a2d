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

/* ---- cells: what was measured ---- */

/* One measurement of a pair: times of one operation. A bandwidth counts by its inverse. */
struct map_cell {
    uint32_t a, b; /* nodes */
    float min_us, p50_us, p99_us, max_us;
    uint32_t count; /* samples */
    uint32_t round;
};

/* Begin with {.nodes = N}. */
struct map_cells {
    uint32_t nodes;
    size_t count, room;
    struct map_cell *all;
};

/* -EINVAL and a sentence for a pair that is none and for times that cannot be. */
int map_cells_add(struct map_cells *cells, const struct map_cell *cell);
void map_cells_free(struct map_cells *cells);

/* ---- effects ---- */

enum map_metric { MAP_P50, MAP_P99 };

/* ln t(a, b) = level + group(a) + group(b) + pair of groups(a, b) + node(a) + node(b) + noise.
 * Effects are logarithms here: 0.1 is about 10 % slower. */
struct map_model {
    const struct map_cells *cells;
    enum map_metric metric;
    uint32_t nodes, groups;
    const uint32_t *group_of;  /* NULL: one group */
    double level[2];           /* between groups; within one */
    double noise;              /* of a pair */
    double row_noise;          /* of the effect of a node, as they spread */
    double spread;             /* by which healthy nodes differ beyond noise */
    double *effects;           /* per node, within its group */
    uint32_t *pairs;           /* per node: how many cells it has */
    double *group_effects;     /* 0 unless chance does not explain it */
    struct map_finding *found; /* slow groups and pairs of groups, and groups that differ */
    size_t found_count;
    uint32_t measured; /* nodes with enough cells */
    double min_effect; /* a fraction; a node with this effect is suspect */
};

enum map_kind { MAP_GROUP, MAP_GROUP_PAIR, MAP_NODE, MAP_PAIR };

enum map_verdict {
    MAP_SLOWER,    /* by min_effect or more, and chance does not explain it */
    MAP_NOT_AGAIN, /* suspect in the first stage; the second excludes min_effect: it was load */
    MAP_UNSURE     /* suspect; the second stage does not exclude min_effect, or was too short */
};

/* Effects are fractions: 0.1 is 10 % slower. Groups are judged by all cells, nodes and pairs by the
 * second stage alone, which does not depend on how they were chosen. */
struct map_finding {
    enum map_kind kind;
    enum map_verdict verdict;
    uint32_t a, b;            /* groups or nodes; b is MAP_NONE if there is one */
    double first;             /* effect in the first stage */
    double effect, low, high; /* what was judged, with its 95 % interval */
    uint32_t cells;           /* that were judged; of a node 0: it was not measured again */
    bool open; /* it may be slow, and that cannot be told. Of many pairs some always come near
                * min_effect by chance: open are those that this does not explain so well */
};

/* Fits the model to the cells of the first stage. Nodes without cells are left out. The cells and
 * group_of must stay until it is freed. */
int map_fit(struct map_model *model, const struct map_cells *cells, enum map_metric metric,
            const uint32_t *group_of, uint32_t groups, double min_effect);
void map_model_free(struct map_model *model);

/* ---- suspects ---- */

/* The highest 5 % of the nodes, at least 4, at most a quarter; and all that are slower by
 * min_effect or more, so long as most nodes are not suspect and two of them can meet while suspects
 * are measured. list has room for all nodes; returns how many it has now, the slowest first. */
uint32_t map_suspects(const struct map_model *model, uint32_t *list);

struct map_pair {
    uint32_t a, b;
    double first; /* how much slower than its nodes explain; a logarithm */
    bool suspect; /* otherwise it is a control: one of those that are not */
};

/* The highest 3 % of the pairs, and as many others chosen by the seed. Each is to be measured
 * MAP_TIMES more, alone. The caller frees *pairs. */
enum { MAP_TIMES = 8 };
int map_suspect_pairs(const struct map_model *model, uint64_t seed, struct map_pair **pairs,
                      size_t *count);

/* ---- verdicts ---- */

struct map_second {
    const struct map_cells *cells; /* of the rounds of map_again */
    const uint32_t *suspects;
    uint32_t suspect_count;
    const struct map_cells *again; /* of the pairs, several of each; NULL: none were measured */
    const struct map_pair *pairs;
    size_t pair_count;
};

/* What is slow, and what could have been found. */
struct map_verdicts {
    struct map_finding *all; /* groups, nodes, pairs: slower ones first within each */
    size_t count, slower;
    size_t unsure; /* that are open */
    /* What map_power needs: of the second stage. */
    double noise, min_effect, prior, extra, spread, row_noise, tested;
    uint32_t nodes, suspects, quota, cells_each; /* quota: suspects whatever their effect */
};

/* If nodes are equal, at most 2 % of all maps name anything: 1 % for nodes, 0.5 % for groups and
 * pairs of groups, 0.5 % for pairs. */
int map_judge(struct map_verdicts *verdicts, const struct map_model *model,
              const struct map_second *second, double min_effect);
void map_verdicts_free(struct map_verdicts *verdicts);

/* Is the finding one to be shown: slower, or slower by min_effect in the first stage? The other
 * suspects only fill the list. */
bool map_worth(const struct map_finding *finding, double min_effect);

/* The probability that a node slower by this fraction would have been named, with the noise seen.
 */
double map_power(const struct map_verdicts *verdicts, double effect);

/* ---- as text ---- */

struct map_heat {
    const struct map_cells *cells;
    enum map_metric metric;
    const uint32_t *order;    /* nodes as they are to stand; NULL: by number */
    const char *const *names; /* per node, as others chose them; NULL: numbers */
    uint32_t columns;         /* of the terminal */
    bool colour;              /* half blocks in 256 colours; otherwise a table */
};

/* Prints nothing if nothing was measured. */
int map_heat(const struct map_heat *heat, FILE *out);

/* Nodes by group, and within one the slowest last. order has room for all nodes. */
int map_order(const struct map_model *model, uint32_t *order);

#endif
