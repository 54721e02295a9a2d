/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzzes the reader of maps. What it accepts can be drawn, and compared with itself. */
#include "fuzz/feed.h"
#include "study/maps.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

unsigned fuzz_accepted;

/* The promises of the door. */
static void check(const struct study_map *m)
{
    for (size_t i = 0; i < m->cell_count; i++)
        if (m->cells[i].a >= m->node_count || m->cells[i].b >= m->node_count ||
            m->cells[i].a == m->cells[i].b || !(m->cells[i].p50_us > 0))
            abort();
    for (size_t i = 0; i < m->lost_count; i++)
        if (m->lost[i].node >= m->node_count || !m->lost[i].reason)
            abort();
    for (size_t i = 0; i < m->node_count; i++)
        if (!m->nodes[i].name || !m->nodes[i].state)
            abort();
}

static void draw(const struct study_map *m)
{
    char *bytes = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&bytes, &length);
    if (!out)
        return;
    if (study_map_page(m, 1, NULL, out) || study_map_plot(m, NULL, out))
        abort();
    fclose(out);
    free(bytes);
}

static void compare(const struct study_map *m)
{
    struct study_map_change change;
    if (study_map_compare(m, m, 0.05, true, &change))
        return;
    if (change.slower || change.count > m->node_count)
        abort();
    study_map_change_free(&change);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct study_map map;
    if (study_map_parse(&map, "fuzz", (const char *)data, size) != 1)
        return 0;
    fuzz_accepted++;
    check(&map);
    draw(&map);
    compare(&map);
    study_map_free(&map);
    return 0;
}
