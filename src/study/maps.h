/* SPDX-License-Identifier: BSD-3-Clause */
/* A door of study: maps read back, drawn and compared. */
#ifndef WEFT_STUDY_MAPS_H
#define WEFT_STUDY_MAPS_H

#include "core/core.h"

#include <stdio.h>

enum { STUDY_MAP_NODES = 1 << 20 };

struct study_node {
    const char *name, *group; /* group is NULL: there is one */
    const char *state, *verdict;
    uint64_t pairs;
    double effect_percent, p50_us, p99_us; /* not a number: not known */
};

struct study_cell {
    uint64_t a, b, count, round;
    double min_us, p50_us, p99_us, max_us;
};

struct study_finding {
    const char *kind, *verdict;
    uint64_t a;
    uint64_t b; /* the same as a: there is none */
    double first_percent, effect_percent, low_percent, high_percent;
};

struct study_lost {
    uint64_t node, round;
    const char *reason;
};

struct study_power {
    double effect_percent, probability;
};

struct study_map {
    const char *path, *begun, *test, *time, *device, *form, *muster, *seed, *weft;
    uint64_t size, ranks, hosts, rounds, measured;
    uint64_t planned; /* pairs; 0: not known */
    bool trusted;
    double noise_percent, min_effect_percent;
    struct study_node *nodes;
    size_t node_count;
    const char **groups;
    size_t group_count;
    struct study_cell *cells;
    size_t cell_count;
    struct study_finding *findings;
    size_t finding_count;
    struct study_lost *lost;
    size_t lost_count;
    struct study_power *power;
    size_t power_count;
    uint64_t code;
    const char *ending;
    uint64_t file[2];
    void *own;
};

/* 1: it is a map, or a folder with one; 0: it is none, and study_read may have something to say of
 * it; or -errno, as for a folder with several. */
int study_map_read(struct study_map *map, const char *path);
/* The same from memory. */
int study_map_parse(struct study_map *map, const char *path, const char *text, size_t length);
void study_map_free(struct study_map *map);

/* The page with heat maps and tables of the maps. title: NULL: what they are. */
int study_map_page(const struct study_map *maps, size_t count, const char *title, FILE *out);
/* The heat map as an SVG file of its own, with literal colours. */
int study_map_plot(const struct study_map *map, const char *title, FILE *out);

/* ---- comparison ---- */

enum study_map_verdict { STUDY_MAP_SAME, STUDY_MAP_SLOWER, STUDY_MAP_FASTER, STUDY_MAP_UNSURE };

/* How far a node moved against all others from one map to the other. */
struct study_move {
    const char *name;
    size_t pairs;            /* in both maps; by effects: of the map in which it has fewer */
    double shift, low, high; /* fractions; the interval has 95 %; not a number: too few pairs */
    enum study_map_verdict verdict;
};

struct study_map_change {
    struct study_move *moves; /* the slowest first, those with too few pairs last */
    size_t count, pairs;      /* pairs: in both documents */
    const char **only;        /* nodes that only one map has: those of A, then those of B */
    size_t only_a, only_b;
    bool by_effects; /* too few pairs are in both: nodes are judged by their effects */
    double seen;     /* by effects: the least change that is found with probability 0.8 */
    double all;      /* shift of all pairs together: no verdict by one map of each */
    double coarse;   /* all is known within that; 0: well */
    double noise;    /* of a pair: of its change; by effects: in one map */
    size_t slower, faster, unsure;
    size_t few; /* nodes that are not judged */
    bool blind; /* seen is more than twice the minimum */
    bool moved; /* all is a change that counts */
    enum study_map_verdict verdict;
};

/* Nodes are matched by name. -EINVAL and a sentence for maps that do not measure the same. */
int study_map_compare(const struct study_map *a, const struct study_map *b, double min_effect,
                      bool force, struct study_map_change *change);
void study_map_change_free(struct study_map_change *change);

#endif
