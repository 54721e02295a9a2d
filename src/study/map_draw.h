/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside study: the heat map. */
#ifndef WEFT_STUDY_MAP_DRAW_H
#define WEFT_STUDY_MAP_DRAW_H

#include "study/maps.h"
#include "study/plot.h"

enum { MAP_CLASSES = 10 };

/* One figure: nodes by group, and in it the slowest last; at most 256 tiles per side. */
int map_svg(const struct study_map *map, FILE *out);
/* "send_lat of 8 B on soft:cxi0, 16 ranks on 4 hosts", as HTML. */
void map_subject(const struct study_map *map, FILE *out);

#endif
