/* SPDX-License-Identifier: BSD-3-Clause */
/* Two simulated maps, compared by the effects of their nodes: how often equal ones name a node, and
 * whether a slow one is found. Seeds are fixed, so results do not vary. */
#include "map/map.h"
#include "study/maps.h"
#include "support/unit.h"

#include <math.h>
#include <stdlib.h>

enum { NODES_MAX = 512 };

struct day {
    uint32_t nodes, partners, groups; /* partners 0: all */
    double noise;
    double spread; /* by which nodes differ: the same on both days */
    double hit;    /* share of the pairs that foreign traffic hits */
    uint32_t slow; /* node; MAP_NONE: none */
    uint64_t seed; /* of this day */
};

static double uniform(uint64_t *random)
{
    return ((double)(next_random(random) >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(uint64_t *random)
{
    return sqrt(-2 * log(uniform(random))) * cos(6.283185307179586 * uniform(random));
}

static double node_level(const struct day *day, uint32_t node)
{
    uint64_t own = node;
    next_random(&own);
    return day->spread * normal(&own) + (node == day->slow ? log(1.1) : 0);
}

static void measure(const struct day *day, struct map_cells *cells)
{
    struct map_plan plan;
    uint64_t random = day->seed;
    uint32_t turn;
    assert_int_equal(map_plan(&plan, day->nodes, day->partners, 0, day->seed), 0);
    for (uint32_t round = 0; round < plan.rounds; round++)
        for (uint32_t a = 0; a < day->nodes; a++) {
            uint32_t b = map_partner(&plan, round, a, &turn);
            if (b == MAP_NONE || a > b)
                continue;
            double value = node_level(day, a) + node_level(day, b) + day->noise * normal(&random);
            if (uniform(&random) < day->hit)
                value += log1p(-0.5 * log(uniform(&random)));
            float us = (float)(1.7 * exp(value));
            struct map_cell cell = {a, b, us, us, us, us, 1000, round};
            assert_int_equal(map_cells_add(cells, &cell), 0);
        }
}

/* What a document has. With more than 256 nodes it lacks most pairs: here it lacks all. */
static void save(const struct day *day, const struct map_cells *cells,
                 const struct map_model *model, struct study_map *map)
{
    static char names[NODES_MAX][8]; /* the comparison points to them */
    *map = (struct study_map){.path = "map",
                              .test = "send_lat",
                              .size = 8,
                              .measured = cells->count,
                              .noise_percent = 100 * model->noise,
                              .node_count = day->nodes,
                              .nodes = calloc(day->nodes, sizeof *map->nodes),
                              .cells = calloc(cells->count, sizeof *map->cells)};
    for (uint32_t i = 0; i < day->nodes; i++) {
        snprintf(names[i], sizeof names[i], "n%u", i % 1000);
        map->nodes[i] = (struct study_node){.name = names[i],
                                            .pairs = model->pairs[i],
                                            .effect_percent = 100 * expm1(model->effects[i]),
                                            .p50_us = 1.7};
    }
    for (size_t i = 0; i < cells->count && day->nodes <= 256; i++)
        map->cells[map->cell_count++] = (struct study_cell){
            .a = cells->all[i].a, .b = cells->all[i].b, .p50_us = (double)cells->all[i].p50_us};
}

static void make_map(const struct day *day, struct study_map *map)
{
    struct map_cells cells = {.nodes = day->nodes};
    struct map_model model;
    uint32_t group_of[NODES_MAX];
    for (uint32_t i = 0; i < day->nodes; i++)
        group_of[i] = i * day->groups / day->nodes;
    measure(day, &cells);
    assert_int_equal(
        map_fit(&model, &cells, MAP_P50, day->groups > 1 ? group_of : NULL, day->groups, 0.05), 0);
    save(day, &cells, &model, map);
    map_model_free(&model);
    map_cells_free(&cells);
}

/* The second day has seed + 1 and the slow node. */
static struct study_map_change compare_days(struct day day, double least)
{
    struct study_map a, b;
    struct study_map_change change;
    uint32_t slow = day.slow;
    day.slow = MAP_NONE;
    make_map(&day, &a);
    day.slow = slow;
    day.seed++;
    make_map(&day, &b);
    assert_int_equal(study_map_compare(&a, &b, least, false, &change), 0);
    assert_true(change.by_effects);
    free(a.nodes);
    free(a.cells);
    free(b.nodes);
    free(b.cells);
    return change;
}

/* ---- equal maps ---- */

static const struct day equals[] = {
    {.nodes = 24, .partners = 8, .groups = 1, .noise = 0.05},
    {.nodes = 24, .partners = 6, .groups = 1, .noise = 0.02, .spread = 0.02, .hit = 0.02},
    {.nodes = 64, .partners = 8, .groups = 4, .noise = 0.05, .spread = 0.01},
    {.nodes = 200, .partners = 16, .groups = 1, .noise = 0.1, .hit = 0.01},
};

/* Of any change that counts at all: the smaller, the more often chance makes one. */
static void equal_maps_name_no_node(void **state)
{
    (void)state;
    for (size_t i = 0; i < LENGTH(equals); i++) {
        size_t named = 0;
        for (uint64_t k = 0; k < 200; k++) {
            struct day day = equals[i];
            day.slow = MAP_NONE;
            day.seed = 1000 + 2 * k;
            struct study_map_change change = compare_days(day, 0.01);
            named += change.slower > 0;
            study_map_change_free(&change);
        }
        if (named > 4)
            fail_msg("case %zu: %zu of 200 pairs of equal maps name a node", i, named);
    }
}

/* ---- a slow node ---- */

static bool names_node(const struct study_map_change *change, uint32_t node)
{
    return change->slower == 1 && strtoul(change->moves[0].name + 1, NULL, 10) == node;
}

static void a_node_10_percent_slower_is_found_with_8_partners(void **state)
{
    (void)state;
    size_t found = 0;
    for (uint64_t k = 0; k < 100; k++) {
        struct study_map_change change = compare_days(
            (struct day){
                .nodes = 24, .partners = 8, .groups = 1, .noise = 0.02, .slow = 7, .seed = 2 * k},
            0.05);
        found += names_node(&change, 7);
        study_map_change_free(&change);
    }
    if (found < 98)
        fail_msg("found in %zu of 100", found);
}

static void a_slow_node_is_found_in_documents_without_most_pairs(void **state)
{
    (void)state;
    struct study_map_change change = compare_days(
        (struct day){.nodes = 300, .groups = 1, .noise = 0.02, .slow = 7, .seed = 5}, 0.05);
    assert_true(names_node(&change, 7));
    assert_int_equal(change.unsure, 0);
    study_map_change_free(&change);
}

/* The change that the comparison calls the smallest is found as often as it says. */
static void what_would_be_found_is_found(void **state)
{
    (void)state;
    size_t found = 0;
    double seen = 0;
    for (uint64_t k = 0; k < 200; k++) {
        struct study_map_change change = compare_days(
            (struct day){
                .nodes = 48, .partners = 8, .groups = 1, .noise = 0.036, .slow = 7, .seed = 2 * k},
            0.01);
        for (size_t i = 0; i < change.count; i++)
            found += change.moves[i].verdict == STUDY_MAP_SLOWER &&
                     strcmp(change.moves[i].name, "n7") == 0;
        seen += change.seen / 200;
        study_map_change_free(&change);
    }
    if (fabs(seen - 0.1) > 0.005 || found < 150 || found > 175)
        fail_msg("found %zu of 200 at 10 %%; 80 %% are promised at %.1f %%", found, 100 * seen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_maps_name_no_node),
        cmocka_unit_test(a_node_10_percent_slower_is_found_with_8_partners),
        cmocka_unit_test(a_slow_node_is_found_in_documents_without_most_pairs),
        cmocka_unit_test(what_would_be_found_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
