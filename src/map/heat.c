/* SPDX-License-Identifier: BSD-3-Clause */
/* A map as text: on a terminal two rows of tiles per line, the upper one in the colour of a half
 * block and the lower one behind it; otherwise a table. A tile of several nodes shows the upper
 * quartile: the median would hide one slow node among two, and the highest shows noise. */
#include "map/fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MARGIN = 12, CELL = 9, TILES_MAX = 512, COLOURS = 16 };

/* From fast to slow in the 256 colours of terminals. */
static const uint8_t ramp[COLOURS] = {17,  18,  25,  31,  37,  36,  35,  71,
                                      107, 143, 179, 215, 209, 203, 197, 196};

struct tiles {
    uint32_t side, nodes;
    float *values; /* us; not a number: nothing was measured */
    float low, high;
};

struct piece {
    uint32_t tile;
    float us;
};

static int by_tile(const void *a, const void *b)
{
    const struct piece *x = a, *y = b;
    if (x->tile != y->tile)
        return x->tile < y->tile ? -1 : 1;
    return (x->us > y->us) - (x->us < y->us);
}

static uint32_t tile_of(const struct tiles *tiles, uint32_t place)
{
    return (uint32_t)((uint64_t)place * tiles->side / tiles->nodes);
}

/* The first node of a tile. */
static uint32_t tile_begin(const struct tiles *tiles, uint32_t tile)
{
    return (uint32_t)(((uint64_t)tile * tiles->nodes + tiles->side - 1) / tiles->side);
}

static void tiles_reduce(struct tiles *tiles, struct piece *pieces, size_t count)
{
    qsort(pieces, count, sizeof *pieces, by_tile);
    for (size_t i = 0; i < (size_t)tiles->side * tiles->side; i++)
        tiles->values[i] = NAN;
    tiles->low = INFINITY;
    tiles->high = 0;
    for (size_t from = 0, end; from < count; from = end) {
        for (end = from; end < count && pieces[end].tile == pieces[from].tile; end++)
            ;
        float us = pieces[from + (end - from - 1) * 3 / 4 + ((end - from - 1) * 3 % 4 != 0)].us;
        tiles->values[pieces[from].tile] = us;
        tiles->low = fminf(tiles->low, us);
        tiles->high = fmaxf(tiles->high, us);
    }
}

static int tiles_open(struct tiles *tiles, const struct map_heat *heat, uint32_t most)
{
    const struct map_cells *cells = heat->cells;
    tiles->nodes = cells->nodes;
    tiles->side = cells->nodes < most ? cells->nodes : most;
    size_t squares = (size_t)tiles->side * tiles->side;
    uint32_t *place = calloc(cells->nodes + 1U, sizeof *place);
    struct piece *pieces = calloc(2 * cells->count + 1, sizeof *pieces);
    tiles->values = calloc(squares + 1, sizeof *tiles->values);
    int status = place && pieces && tiles->values ? 0 : no_memory();
    for (uint32_t i = 0; !status && i < cells->nodes; i++)
        place[heat->order ? heat->order[i] : i] = i;
    for (size_t c = 0; !status && c < cells->count; c++) {
        const struct map_cell *cell = &cells->all[c];
        uint32_t a = tile_of(tiles, place[cell->a]), b = tile_of(tiles, place[cell->b]);
        float us = heat->metric == MAP_P99 ? cell->p99_us : cell->p50_us;
        pieces[2 * c] = (struct piece){a * tiles->side + b, us};
        pieces[2 * c + 1] = (struct piece){b * tiles->side + a, us};
    }
    if (!status)
        tiles_reduce(tiles, pieces, 2 * cells->count);
    free(place);
    free(pieces);
    return status;
}

/* The name of the first node of a tile, cut to width. */
static void tile_name(const struct map_heat *heat, const struct tiles *tiles, uint32_t tile,
                      int width, char text[64])
{
    uint32_t first = tile_begin(tiles, tile), node = heat->order ? heat->order[first] : first;
    if (heat->names)
        snprintf(text, 64, "%.*s", width, heat->names[node]);
    else
        snprintf(text, 64, "%u", node);
    text_clean(text);
}

/* ---- with colours ---- */

static unsigned colour_of(const struct tiles *tiles, float us)
{
    /* Less than 10 % from end to end is no reason for red. */
    float top = fmaxf(tiles->high, tiles->low * 1.1F);
    float share = logf(us / tiles->low) / logf(top / tiles->low);
    int at = (int)(share * (float)COLOURS);
    return ramp[at < 0 ? 0 : at < COLOURS ? at : COLOURS - 1];
}

static void print_pair(const struct tiles *tiles, float upper, float lower, FILE *out)
{
    if (!isnan(upper) && !isnan(lower))
        fprintf(out, "\033[38;5;%u;48;5;%um\u2580", colour_of(tiles, upper),
                colour_of(tiles, lower));
    else if (!isnan(upper) || !isnan(lower))
        fprintf(out, "\033[0;38;5;%um%s", colour_of(tiles, isnan(upper) ? lower : upper),
                isnan(upper) ? "\u2584" : "\u2580");
    else
        fputs("\033[0m ", out);
}

static void print_legend(const struct map_heat *heat, const struct tiles *tiles, FILE *out)
{
    char low[32], high[32];
    unit_us((double)tiles->low, low, sizeof low);
    unit_us((double)fmaxf(tiles->high, tiles->low * 1.1F), high, sizeof high);
    fprintf(out, "%s %s us ", heat->metric == MAP_P99 ? "p99" : "p50", low);
    for (size_t i = 0; heat->colour && i < COLOURS; i++)
        fprintf(out, "\033[48;5;%um ", (unsigned)ramp[i]);
    fprintf(out, "%s %s us", heat->colour ? "\033[0m" : "to", high);
    if (tiles->side < tiles->nodes)
        fprintf(out, ", upper quartile of %.3g nodes per tile", (double)tiles->nodes / tiles->side);
    fputc('\n', out);
}

/* The upper row's name stands before the line, the lower one's after it. */
static void print_blocks(const struct map_heat *heat, const struct tiles *tiles, FILE *out)
{
    for (uint32_t row = 0; row < tiles->side; row += 2) {
        char name[64];
        tile_name(heat, tiles, row, MARGIN - 1, name);
        fprintf(out, "%-*s", MARGIN, name);
        for (uint32_t column = 0; column < tiles->side; column++) {
            const float *upper = &tiles->values[(size_t)row * tiles->side + column];
            print_pair(tiles, *upper, row + 1 < tiles->side ? upper[tiles->side] : NAN, out);
        }
        fputs("\033[0m", out);
        if (row + 1 < tiles->side) {
            tile_name(heat, tiles, row + 1, MARGIN - 1, name);
            fprintf(out, " %s", name);
        }
        fputc('\n', out);
    }
}

/* ---- without ---- */

static void print_table(const struct map_heat *heat, const struct tiles *tiles, FILE *out)
{
    char text[64];
    fprintf(out, "%-*s", MARGIN, heat->metric == MAP_P99 ? "p99[us]" : "p50[us]");
    for (uint32_t column = 0; column < tiles->side; column++) {
        tile_name(heat, tiles, column, CELL - 1, text);
        fprintf(out, "%*s", CELL, text);
    }
    for (uint32_t row = 0; row < tiles->side; row++) {
        tile_name(heat, tiles, row, MARGIN - 1, text);
        fprintf(out, "\n%-*s", MARGIN, text);
        for (uint32_t column = 0; column < tiles->side; column++) {
            float us = tiles->values[(size_t)row * tiles->side + column];
            snprintf(text, sizeof text, "-");
            if (!isnan(us))
                unit_us((double)us, text, sizeof text);
            fprintf(out, "%*s", CELL, text);
        }
    }
    fputc('\n', out);
}

int map_heat(const struct map_heat *heat, FILE *out)
{
    struct tiles tiles = {0};
    uint32_t names = heat->colour ? 2 * MARGIN : MARGIN;
    uint32_t room = heat->columns > names + CELL ? heat->columns - names : CELL;
    uint32_t most = heat->colour ? room : room / CELL;
    if (!heat->cells->count || !heat->cells->nodes)
        return 0;
    int status = tiles_open(&tiles, heat, most < TILES_MAX ? most : TILES_MAX);
    if (!status) {
        (heat->colour ? print_blocks : print_table)(heat, &tiles, out);
        print_legend(heat, &tiles, out);
    }
    free(tiles.values);
    return status;
}

/* ---- the order ---- */

struct placed {
    uint32_t group, node;
    double effect;
};

static int by_group_and_effect(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    if (x->effect != y->effect)
        return x->effect < y->effect ? -1 : 1;
    return (x->node > y->node) - (x->node < y->node);
}

int map_order(const struct map_model *model, uint32_t *order)
{
    struct placed *placed = calloc(model->nodes + 1U, sizeof *placed);
    if (!placed)
        return no_memory();
    for (uint32_t i = 0; i < model->nodes; i++)
        placed[i] = (struct placed){model_group(model, i), i, model->effects[i]};
    qsort(placed, model->nodes, sizeof *placed, by_group_and_effect);
    for (uint32_t i = 0; i < model->nodes; i++)
        order[i] = placed[i].node;
    free(placed);
    return 0;
}
