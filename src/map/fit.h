/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of map share of a model. */
#ifndef WEFT_MAP_FIT_H
#define WEFT_MAP_FIT_H

#include "map/estimate.h"

/* The natural logarithm of what is judged. */
double cell_value(const struct map_model *model, const struct map_cell *cell);

/* What is expected of a pair whose nodes are as all others of their groups. */
double model_usual(const struct map_model *model, uint32_t a, uint32_t b);

/* The group of a node; 0 without groups. */
uint32_t model_group(const struct map_model *model, uint32_t node);

/* A node with fewer cells is not measured: it has no effect and is never suspect. */
enum { ROW_MIN = 3 };

/* Node effects are those of groups too; on return they are taken apart. */
int groups_find(struct map_model *model, double min_effect);

/* Pairs of groups that differ from what their groups explain. */
int group_pairs_find(struct map_model *model, double min_effect);

int finding_add(struct map_finding **all, size_t *count, const struct map_finding *finding);

/* A finding with effect and interval of an estimate. */
struct map_finding finding_of(enum map_kind kind, uint32_t a, uint32_t b, const struct judge *judge,
                              const struct estimate *estimate);

/* How many of so many nodes are suspect whatever their effect. */
uint32_t suspects_quota(uint32_t nodes);

/* How nodes are judged in the second stage. */
struct judge verdicts_judge(const struct map_verdicts *verdicts);

#endif
