/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside study: the two ways to compare maps. */
#ifndef WEFT_STUDY_MAP_CHANGE_H
#define WEFT_STUDY_MAP_CHANGE_H

#include "study/maps.h"

enum { PAIRS_LEAST = 4 }; /* of a node that is judged */

/* ---- by pairs (map_compare.c) ---- */

struct change_of_pair {
    size_t a, b;  /* nodes of the first map */
    double moved; /* logarithm */
};

struct moved {
    struct change_of_pair *pairs;
    size_t count;
    double *scratch;
};

/* Sorts them. */
double change_median(double *values, size_t count);

/* The standard normal value that is exceeded with this probability. */
double change_exceeded(double probability);

/* reach: how far beyond its estimate a node that counts as the same may be. */
enum study_map_verdict move_verdict(double shift, double error, double z, double least,
                                    double reach);
void move_interval(struct study_move *move, double shift, double error);
void move_unknown(struct study_move *move);

/* ---- by effects (map_effects.c) ---- */

/* of: per node of a, which one of b it is; SIZE_MAX: none. True if nodes can be judged by the pairs
 * that both documents have. */
bool maps_share_pairs(const struct study_map *a, const struct study_map *b, const size_t *of,
                      const struct moved *m);

/* The moves have the order of the nodes of a that b has. z: of the bound for one node. */
int maps_judge_by_effects(const struct study_map *a, const struct study_map *b, const size_t *of,
                          double z, double least, struct study_map_change *c);

#endif
