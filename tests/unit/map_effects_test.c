/* SPDX-License-Identifier: BSD-3-Clause */
/* Which node, pair or group is slow: the rate of false alarms and of findings, on simulated maps.
 * Seeds are fixed, so results do not vary. With WEFT_SOAK more maps and larger ones. */
#include "map/estimate.h"
#include "support/map_world.h"
#include "support/unit.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <sys/resource.h>

static bool soak;

/* ---- equal nodes ---- */

/* How many of so many maps name anything. */
static size_t alarms(struct world world, size_t maps, bool pairs)
{
    size_t named = 0;
    for (size_t i = 0; i < maps; i++) {
        struct map_verdicts verdicts;
        world.seed = 1000 + i;
        world_map(&world, pairs, &verdicts);
        named += verdicts.slower > 0;
        map_verdicts_free(&verdicts);
    }
    return named;
}

static void check_alarms(struct world world, size_t maps, bool pairs)
{
    size_t named = alarms(world, maps, pairs);
    if (named * 50 > maps)
        fail_msg("%u nodes in %u groups, %u+%u partners, noise %g: %zu of %zu maps name one",
                 world.nodes, world.groups, world.partners, world.again, world.noise, named, maps);
}

static void maps_of_equal_nodes_name_none(void **state)
{
    (void)state;
    size_t maps = soak ? 2000 : 200;
    static const double noises[] = {0.05, 0.2};
    for (size_t i = 0; i < LENGTH(noises); i++) {
        check_alarms(world_of(24, 0, 32, noises[i], 0), maps, true);
        struct world world = world_of(64, 16, 32, noises[i], 0);
        world.groups = 4;
        check_alarms(world, maps, false);
    }
    for (size_t i = 0; soak && i < LENGTH(noises); i++) {
        check_alarms(world_of(1024, 16, 32, noises[i], 0), 200, true);
        check_alarms(world_of(4, 0, 32, noises[i], 0), maps, true);
        check_alarms(world_of(9, 0, 32, noises[i], 0), maps, true);
        check_alarms(world_of(64, 4, 8, noises[i], 0), maps, true); /* many look slow at first */
    }
}

/* Healthy nodes differ by 1 %, foreign traffic hits 1 % of the measurements, all drifts by 10 %. */
static void traffic_and_drift_are_no_slow_nodes(void **state)
{
    (void)state;
    struct world world = world_of(64, 16, 32, 0.05, 0);
    world.spread = world.hit = 0.01;
    world.drift = 0.1;
    check_alarms(world, soak ? 2000 : 100, true);
    world.spread = 0.04;
    check_alarms(world, soak ? 2000 : 100, false);
    world = world_of(48, 0, 32, 0.03, 0);
    world.persistent = 0.04;
    check_alarms(world, soak ? 1000 : 50, true);
}

/* Of many pairs some come near again by chance: that must not end a good map with "cannot tell". */
static void maps_of_equal_nodes_can_be_told(void **state)
{
    (void)state;
    size_t maps = soak ? 1000 : 100;
    static const uint32_t sizes[] = {24, 64};
    for (size_t i = 0; i < LENGTH(sizes); i++) {
        size_t unsure = 0, near = 0;
        for (size_t k = 0; k < maps; k++) {
            struct world world = world_of(sizes[i], 0, 16, 0.05, 9000 + k);
            struct map_verdicts v;
            world_map(&world, true, &v);
            unsure += v.unsure > 0;
            for (size_t f = 0; f < v.count; f++)
                near += v.all[f].verdict == MAP_UNSURE && map_worth(&v.all[f], 0.05);
            map_verdicts_free(&v);
        }
        if (unsure * 20 > maps || near < maps)
            fail_msg("%u nodes: %zu of %zu maps cannot be told; %zu pairs came near", sizes[i],
                     unsure, maps, near);
    }
}

/* ---- slow nodes, pairs, groups ---- */

static void check_power(struct world world, double slow, size_t maps)
{
    double printed = 0, found = 0;
    world.slow_node = world.nodes / 3;
    world.slow = slow;
    for (size_t i = 0; i < maps; i++) {
        struct map_verdicts v;
        world.seed = 5000 + i;
        world_map(&world, false, &v);
        printed += map_power(&v, slow) / (double)maps;
        for (size_t k = 0; k < v.count; k++)
            if (v.all[k].kind == MAP_NODE && v.all[k].a == world.slow_node)
                found += (v.all[k].verdict == MAP_SLOWER) / (double)maps;
        map_verdicts_free(&v);
    }
    if (fabs(printed - found) > 0.05)
        fail_msg("%u nodes, %u+%u, noise %g, %g slower: found %.3f, printed %.3f", world.nodes,
                 world.partners, world.again, world.noise, slow, found, printed);
}

static void power_is_what_is_found(void **state)
{
    (void)state;
    size_t maps = soak ? 2000 : 1000;
    check_power(world_of(24, 0, 32, 0.1, 0), 0.1, maps);
    check_power(world_of(64, 8, 16, 0.08, 0), 0.1, maps);
    check_power(world_of(64, 16, 32, 0.12, 0), 0.1, maps);
    if (soak) {
        check_power(world_of(64, 4, 8, 0.05, 0), 0.1, maps);
        check_power(world_of(1024, 16, 32, 0.1, 0), 0.1, 500);
        check_power(world_of(256, 8, 16, 0.1, 0), 0.12, maps);
    }
}

static void check_found(const struct world *world, enum map_kind kind, uint32_t a, uint32_t b)
{
    struct map_verdicts v;
    world_map(world, true, &v);
    assert_int_equal(v.slower, 1);
    assert_int_equal(world_named(&v, kind), 1);
    for (size_t i = 0; i < v.count; i++) {
        const struct map_finding *f = &v.all[i];
        if (f->verdict != MAP_SLOWER)
            continue;
        assert_int_equal(f->a, a);
        assert_int_equal(f->b, b);
        assert_true(f->low < f->effect && f->effect < f->high);
        assert_true(fabs(f->effect - world->slow) < world->slow / 3);
        assert_true(f->cells >= 4);
    }
    map_verdicts_free(&v);
}

static void a_slow_node_is_named_and_nothing_else(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct world world = world_of(24, 0, 32, 0.02, seed);
        world.slow_node = 7;
        world.slow = 0.1;
        check_found(&world, MAP_NODE, 7, MAP_NONE);
        world.groups = 3;
        world.between = 0.25;
        check_found(&world, MAP_NODE, 7, MAP_NONE);
        world.nodes = 129;
        world.partners = 16;
        world.noise = 0.05;
        world.hit = 0.01;
        world.drift = 0.1;
        check_found(&world, MAP_NODE, 7, MAP_NONE);
    }
}

static void a_slow_pair_is_called_a_pair(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct world world = world_of(48, 0, 32, 0.05, seed);
        world.pair[0] = 3;
        world.pair[1] = 11;
        world.slow = 0.3;
        struct map_verdicts v;
        world_map(&world, true, &v);
        assert_int_equal(world_named(&v, MAP_PAIR), 1);
        assert_int_equal(v.slower, 1);
        map_verdicts_free(&v);
    }
}

static void a_slow_group_is_called_a_group(void **state)
{
    (void)state;
    static const uint32_t groups[] = {2, 4, 8};
    for (size_t i = 0; i < LENGTH(groups); i++)
        for (uint64_t seed = 1; seed <= 3; seed++) {
            struct world world = world_of(128, 16, 32, 0.05, seed);
            world.groups = groups[i];
            world.slow_group = 1;
            world.slow = 0.1;
            world.between = 0.25;
            check_found(&world, MAP_GROUP, 1, MAP_NONE);
        }
}

/* Beyond the quota: every node that looked slow is measured again, as long as most are healthy. */
static void many_slow_nodes_are_all_named(void **state)
{
    (void)state;
    static const uint32_t sizes[][2] = {{8, 3}, {12, 4}, {12, 5}, {24, 10}};
    for (size_t i = 0; i < LENGTH(sizes); i++)
        for (uint64_t seed = 1; seed <= 5; seed++) {
            struct world world = world_of(sizes[i][0], 0, 16, 0.01, seed);
            struct map_verdicts v;
            world.slow_node = 1;
            world.slow_count = sizes[i][1];
            world.slow = 0.2;
            world_map(&world, false, &v);
            if (v.slower != world.slow_count || v.unsure)
                fail_msg("%u nodes, %u slow: %zu named, %zu cannot be told", world.nodes,
                         world.slow_count, v.slower, v.unsure);
            map_verdicts_free(&v);
        }
}

/* "Not again" is said only where the second stage excludes what counts as slow. */
static void not_again_excludes_the_least_effect(void **state)
{
    (void)state;
    size_t excluded = 0, open = 0;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct world world = world_of(24, 0, 8, 0.15, seed);
        struct map_verdicts v;
        world.slow_node = 5;
        world.slow = 0.1;
        world_map(&world, true, &v);
        for (size_t i = 0; i < v.count; i++) {
            const struct map_finding *f = &v.all[i];
            assert_true(f->verdict != MAP_NOT_AGAIN || f->high < 0.05);
            assert_true(f->verdict != MAP_UNSURE || f->cells < 4 || f->high >= 0.05);
            excluded += f->verdict == MAP_NOT_AGAIN;
            open += f->verdict == MAP_UNSURE && f->kind == MAP_NODE && map_worth(f, 0.05);
        }
        map_verdicts_free(&v);
    }
    assert_true(excluded > 50 && open > 10);
}

/* ---- what is missing ---- */

/* It looked slow and then was gone: nothing is known of it. */
static void a_slow_node_that_is_not_measured_again_is_listed(void **state)
{
    (void)state;
    struct world world = world_of(24, 0, 16, 0.01, 1);
    struct map_verdicts v;
    size_t listed = 0;
    world.lost = 1;
    world.slow_node = 3; /* is lost */
    world.slow = 0.2;
    world_map(&world, true, &v);
    for (size_t i = 0; i < v.count; i++)
        if (v.all[i].kind == MAP_NODE && v.all[i].a == 3) {
            assert_int_equal(v.all[i].verdict, MAP_UNSURE);
            assert_int_equal(v.all[i].cells, 0);
            assert_true(fabs(v.all[i].first - 0.2) < 0.02);
            listed++;
        }
    assert_int_equal(listed, 1);
    assert_int_equal(v.slower, 0);
    assert_int_equal(v.unsure, 1);
    map_verdicts_free(&v);
}

static void lost_nodes_do_not_break_a_map(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct world world = world_of(63, 16, 32, 0.03, seed);
        world.lost = 6;
        world.slow_node = 20;
        world.slow = 0.1;
        check_found(&world, MAP_NODE, 20, MAP_NONE);
    }
    struct world world = world_of(64, 16, 32, 0.2, 0);
    world.lost = 9;
    check_alarms(world, soak ? 1000 : 100, true);
}

/* Too few ranks for a verdict: nothing is named, and the power says so. */
static void small_maps_say_what_they_cannot_find(void **state)
{
    (void)state;
    for (uint32_t nodes = 2; nodes < 7; nodes++) {
        struct world world = world_of(nodes, 0, 32, 0.01, 3);
        struct map_verdicts v;
        world_map(&world, true, &v);
        assert_int_equal(v.slower, 0);
        double power = map_power(&v, 0.1);
        assert_true(power >= 0 && power <= 1);
        if (nodes < 4 && power > 0)
            fail_msg("%u nodes: power %g", nodes, power);
        map_verdicts_free(&v);
    }
}

static void a_map_without_cells_is_empty(void **state)
{
    (void)state;
    struct map_cells cells = {.nodes = 8};
    struct map_model model;
    struct map_verdicts v;
    uint32_t list[8], groups[8] = {0, 0, 0, 0, 1, 1, 1, 1};
    assert_int_equal(map_fit(&model, &cells, MAP_P99, groups, 2, 0.05), 0);
    assert_int_equal(map_suspects(&model, list), 0);
    struct map_second second = {.cells = &cells, .suspects = (uint32_t[]){1}, .suspect_count = 1};
    assert_int_equal(map_judge(&v, &model, &second, 0.05), 0);
    assert_int_equal(v.count, 1);
    assert_int_equal(v.all[0].verdict, MAP_UNSURE);
    assert_int_equal(v.unsure, 0); /* it did not look slow */
    assert_true(map_power(&v, 0.5) == 0);
    map_verdicts_free(&v);
    second.suspects = (uint32_t[]){8};
    assert_int_equal(map_judge(&v, &model, &second, 0.05), -EINVAL);
    map_model_free(&model);
    assert_int_equal(map_fit(&model, &cells, MAP_P50, groups, 1, 0.05), -EINVAL);
    assert_contains(fail_reason(), "group 1 of 1");
}

static void cells_that_cannot_be_are_refused(void **state)
{
    (void)state;
    struct map_cells cells = {.nodes = 4};
    const struct map_cell good = {1, 2, 1, 2, 3, 4, 100, 0};
    struct map_cell bad[6] = {good, good, good, good, good, good};
    bad[0].a = 4;
    bad[1].b = 1;
    bad[2].p50_us = NAN;
    bad[3].p99_us = 1.5F;
    bad[4].min_us = 0;
    bad[5].count = 0;
    for (size_t i = 0; i < LENGTH(bad); i++)
        assert_int_equal(map_cells_add(&cells, &bad[i]), -EINVAL);
    assert_int_equal(map_cells_add(&cells, &good), 0);
    assert_int_equal(cells.count, 1);
    map_cells_free(&cells);
}

/* ---- size ---- */

static void a_map_of_many_nodes_fits(void **state)
{
    (void)state;
    struct rusage before, after;
    struct world world = world_of(soak ? 10000 : 500, 16, 32, 0.05, 1);
    world.groups = 20;
    world.slow_node = 77;
    world.slow = 0.1;
    assert_int_equal(getrusage(RUSAGE_SELF, &before), 0);
    check_found(&world, MAP_NODE, 77, MAP_NONE);
    assert_int_equal(getrusage(RUSAGE_SELF, &after), 0);
    double seconds = (double)(after.ru_utime.tv_sec - before.ru_utime.tv_sec) +
                     (double)(after.ru_utime.tv_usec - before.ru_utime.tv_usec) / 1e6;
    print_message("# %u nodes: %.2f s of CPU, %ld MB\n", world.nodes, seconds,
                  after.ru_maxrss / 1024);
    assert_true(after.ru_maxrss < 1024L * 1024);
    assert_true(!soak || seconds < 60);
}

/* ---- bounds ---- */

static void bounds_are_those_of_tables(void **state)
{
    (void)state;
    assert_true(fabs(normal_bound(0.025) - 1.95996) < 1e-4);
    assert_true(fabs(normal_bound(1e-6) - 4.75342) < 1e-4);
    assert_true(fabs(student_bound(7, 0.001) / 4.785 - 1) < 0.01);
    assert_true(fabs(student_bound(3, 0.001) / 10.215 - 1) < 0.01);
    assert_true(fabs(student_bound(30, 0.025) / 2.0423 - 1) < 0.01);
    double values[] = {1, 2, 3, 4, 1000};
    assert_true(fabs(huber_mean(values, 5, 3, 1) - 3) < 1);
    double equal[] = {2, 2, 2, 2};
    assert_true(scale_of(equal, 4) == 0);
    assert_true(estimate_of(equal, 4, 0).mean == 2);
}

int main(void)
{
    const char *text = getenv("WEFT_SOAK");
    soak = text && *text == '1';
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(maps_of_equal_nodes_name_none),
        cmocka_unit_test(maps_of_equal_nodes_can_be_told),
        cmocka_unit_test(traffic_and_drift_are_no_slow_nodes),
        cmocka_unit_test(power_is_what_is_found),
        cmocka_unit_test(a_slow_node_is_named_and_nothing_else),
        cmocka_unit_test(a_slow_pair_is_called_a_pair),
        cmocka_unit_test(a_slow_group_is_called_a_group),
        cmocka_unit_test(many_slow_nodes_are_all_named),
        cmocka_unit_test(not_again_excludes_the_least_effect),
        cmocka_unit_test(a_slow_node_that_is_not_measured_again_is_listed),
        cmocka_unit_test(lost_nodes_do_not_break_a_map),
        cmocka_unit_test(small_maps_say_what_they_cannot_find),
        cmocka_unit_test(a_map_without_cells_is_empty),
        cmocka_unit_test(cells_that_cannot_be_are_refused),
        cmocka_unit_test(a_map_of_many_nodes_fits),
        cmocka_unit_test(bounds_are_those_of_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
