/* SPDX-License-Identifier: BSD-3-Clause */
/* What was measured, pair by pair. 32 bytes each: 10,000 nodes with 48 partners are 8 MB. */
#include "map/map.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

_Static_assert(sizeof(struct map_cell) == 32, "a cell has 32 bytes");

static bool good(float us)
{
    return isfinite(us) && us > 0;
}

int map_cells_add(struct map_cells *cells, const struct map_cell *cell)
{
    if (cell->a >= cells->nodes || cell->b >= cells->nodes || cell->a == cell->b)
        return fail(-EINVAL, "no pair of this map: %u and %u of %u nodes", cell->a, cell->b,
                    cells->nodes);
    if (!cell->count || !good(cell->min_us) || !good(cell->p50_us) || !good(cell->p99_us) ||
        !good(cell->max_us) || cell->min_us > cell->p50_us || cell->p50_us > cell->p99_us ||
        cell->p99_us > cell->max_us)
        return fail(-EINVAL, "nodes %u and %u: times that cannot be", cell->a, cell->b);
    if (cells->count == cells->room) {
        size_t room = cells->room ? cells->room + cells->room / 2 : 1024;
        struct map_cell *all = realloc(cells->all, room * sizeof *all);
        if (!all)
            return fail(-ENOMEM, "no memory for the pairs of a map");
        cells->all = all;
        cells->room = room;
    }
    cells->all[cells->count++] = *cell;
    return 0;
}

void map_cells_free(struct map_cells *cells)
{
    free(cells->all);
    *cells = (struct map_cells){.nodes = cells->nodes};
}
