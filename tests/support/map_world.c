/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/map_world.h"
#include "support/unit.h"

#include <math.h>
#include <stdlib.h>

struct state {
    const struct world *world;
    uint64_t random;
    double *effects;
    uint32_t *groups;
    bool *lost;
};

static double uniform(uint64_t *random)
{
    return ((double)(next_random(random) >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(uint64_t *random)
{
    return sqrt(-2 * log(uniform(random))) * cos(6.283185307179586 * uniform(random));
}

struct world world_of(uint32_t nodes, uint32_t partners, uint32_t again, double noise,
                      uint64_t seed)
{
    return (struct world){.nodes = nodes,
                          .groups = 1,
                          .partners = partners,
                          .again = again,
                          .noise = noise,
                          .slow_node = MAP_NONE,
                          .slow_group = MAP_NONE,
                          .pair = {MAP_NONE, MAP_NONE},
                          .seed = seed};
}

static double truth(const struct state *s, uint32_t a, uint32_t b)
{
    const struct world *w = s->world;
    double value = s->effects[a] + s->effects[b];
    if (s->groups[a] != s->groups[b])
        value += log1p(w->between);
    if ((a == w->pair[0] && b == w->pair[1]) || (b == w->pair[0] && a == w->pair[1]))
        value += log1p(w->slow);
    if (w->persistent > 0) {
        uint64_t own = w->seed ^ ((uint64_t)(a < b ? a : b) << 32 | (a < b ? b : a));
        next_random(&own);
        value += w->persistent * normal(&own);
    }
    return value;
}

static void measure(struct state *s, struct map_cells *cells, uint32_t a, uint32_t b, double more)
{
    const struct world *w = s->world;
    double value = truth(s, a, b) + more + w->noise * normal(&s->random);
    if (w->hit > 0 && uniform(&s->random) < w->hit)
        value += log1p(-0.5 * log(uniform(&s->random)));
    float us = (float)(1.7 * exp(value));
    struct map_cell cell = {a, b, us * 0.95F, us, us * 1.5F, us * 4, 12000, 0};
    assert_int_equal(map_cells_add(cells, &cell), 0);
}

static void state_open(struct state *s, const struct world *w)
{
    *s = (struct state){.world = w,
                        .random = w->seed,
                        .effects = calloc(w->nodes, sizeof(double)),
                        .groups = calloc(w->nodes, sizeof(uint32_t)),
                        .lost = calloc(w->nodes, sizeof(bool))};
    for (uint32_t node = 0; node < w->nodes; node++) {
        s->groups[node] = (uint32_t)((uint64_t)node * w->groups / w->nodes);
        s->effects[node] = w->spread > 0 ? w->spread * normal(&s->random) : 0;
        uint32_t count = w->slow_count ? w->slow_count : 1;
        bool slow = node >= w->slow_node && node - w->slow_node < count;
        if (slow || s->groups[node] == w->slow_group)
            s->effects[node] += log1p(w->slow);
        s->lost[node] = node % 7 == 3 && node / 7 < w->lost;
    }
}

static void first_stage(struct state *s, const struct map_plan *plan, struct map_cells *cells)
{
    uint32_t turn;
    for (uint32_t round = 0; round < plan->rounds; round++)
        for (uint32_t a = 0; a < plan->ranks; a++) {
            uint32_t b = map_partner(plan, round, a, &turn);
            bool gone = round > plan->rounds / 2 && (s->lost[a] || (b != MAP_NONE && s->lost[b]));
            if (b != MAP_NONE && a < b && !gone)
                measure(s, cells, a, b, 0);
        }
}

static void second_stage(struct state *s, const struct map_plan *plan, struct map_second *second,
                         struct map_cells *cells)
{
    struct map_again again;
    uint32_t turn;
    assert_int_equal(map_again_open(&again, plan, second->suspects, second->suspect_count,
                                    s->world->again, s->lost),
                     0);
    for (uint32_t round = 0; round < again.rounds; round++)
        for (uint32_t a = 0; a < plan->ranks; a++) {
            uint32_t b = map_again_partner(&again, round, a, &turn);
            if (b != MAP_NONE && a < b)
                measure(s, cells, a, b, s->world->drift);
        }
    map_again_close(&again);
}

/* Those that are lost cannot be measured again. */
static uint32_t living(const struct state *s, uint32_t *suspects, uint32_t count)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++)
        if (!s->lost[suspects[i]])
            suspects[kept++] = suspects[i];
    return kept;
}

void world_map(const struct world *w, bool with_pairs, struct map_verdicts *verdicts)
{
    struct state s;
    struct map_plan plan;
    struct map_model model;
    struct map_cells cells = {.nodes = w->nodes}, second_cells = cells, again = cells;
    struct map_pair *pairs = NULL;
    uint32_t *suspects = calloc(w->nodes, sizeof *suspects);
    state_open(&s, w);
    assert_int_equal(map_plan(&plan, w->nodes, w->partners, 0, w->seed), 0);
    first_stage(&s, &plan, &cells);
    const uint32_t *groups = w->groups > 1 ? s.groups : NULL;
    assert_int_equal(map_fit(&model, &cells, MAP_P50, groups, w->groups, 0.05), 0);
    struct map_second second = {.cells = &second_cells, .suspects = suspects};
    second.suspect_count = living(&s, suspects, map_suspects(&model, suspects));
    second_stage(&s, &plan, &second, &second_cells);
    if (with_pairs) {
        assert_int_equal(map_suspect_pairs(&model, w->seed, &pairs, &second.pair_count), 0);
        for (size_t i = 0; i < second.pair_count * MAP_TIMES; i++) {
            const struct map_pair *pair = &pairs[i / MAP_TIMES];
            if (!s.lost[pair->a] && !s.lost[pair->b])
                measure(&s, &again, pair->a, pair->b, w->drift);
        }
        second.again = &again;
        second.pairs = pairs;
    }
    assert_int_equal(map_judge(verdicts, &model, &second, 0.05), 0);
    map_model_free(&model);
    map_cells_free(&cells);
    map_cells_free(&second_cells);
    map_cells_free(&again);
    free(pairs);
    free(suspects);
    free(s.effects);
    free(s.groups);
    free(s.lost);
}

size_t world_named(const struct map_verdicts *verdicts, enum map_kind kind)
{
    size_t named = 0;
    for (size_t i = 0; i < verdicts->count; i++)
        named += verdicts->all[i].kind == kind && verdicts->all[i].verdict == MAP_SLOWER;
    return named;
}
