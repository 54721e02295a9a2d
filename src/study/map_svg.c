/* SPDX-License-Identifier: BSD-3-Clause */
/* The heat map of a map as SVG: a path for each colour, so that 256 nodes are no burden, and the
 * figures in attributes for the script of the page. */
#include "study/map_draw.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE_MAX = 256, WIDTH = 640, LABEL = 16, LETTER = 7, TEXT = 12 };

struct tiles {
    const struct study_map *map;
    size_t side;       /* of the square, in tiles */
    size_t *order;     /* nodes as they stand */
    size_t *place;     /* of a node in order */
    double *p50, *p99; /* side * side; not a number: not measured */
    double low, high;  /* of the colours */
    double tile;       /* its width */
    int margin;        /* for names, at the left and at the top */
};

/* ---- the order ---- */

static const struct study_map *sorted; /* qsort has no argument */

static int by_group_and_effect(const void *a, const void *b)
{
    size_t i = *(const size_t *)a, k = *(const size_t *)b;
    const struct study_node *x = &sorted->nodes[i], *y = &sorted->nodes[k];
    int group = strcmp(x->group ? x->group : "", y->group ? y->group : "");
    double left = isnan(x->effect_percent) ? 1e9 : x->effect_percent;
    double right = isnan(y->effect_percent) ? 1e9 : y->effect_percent;
    if (group)
        return group;
    return left != right ? (left > right) - (left < right) : (i > k) - (i < k);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* ---- tiles ---- */

static void add(struct tiles *t, const struct study_cell *c)
{
    size_t count = t->map->node_count;
    size_t row = t->place[c->a] * t->side / count, column = t->place[c->b] * t->side / count;
    double *const values[] = {t->p50, t->p99};
    const double times[] = {c->p50_us, c->p99_us};
    for (int i = 0; i < 2; i++) {
        double *one = &values[i][row * t->side + column];
        double *other = &values[i][column * t->side + row];
        /* Of several pairs in a tile the slowest is seen. */
        if (isnan(*one) || *one < times[i])
            *one = *other = times[i];
    }
}

/* Colours go from the fastest to all but the slowest half percent. */
static int choose_scale(struct tiles *t)
{
    size_t count = 0;
    double *all = calloc(t->side * t->side + 1, sizeof *all);
    if (!all)
        return fail(-ENOMEM, "no memory for the heat map");
    for (size_t i = 0; i < t->side * t->side; i++)
        if (!isnan(t->p50[i]))
            all[count++] = t->p50[i];
    qsort(all, count, sizeof *all, by_value);
    t->low = count ? all[0] : 1;
    t->high = count ? all[(count - 1) * 199 / 200] : 1;
    if (t->high < 1.1 * t->low)
        t->high = 1.1 * t->low;
    free(all);
    return 0;
}

/* Room for the longest name. */
static int margin_of(const struct study_map *map)
{
    size_t longest = 2;
    for (size_t i = 0; i < map->node_count; i++)
        longest = strlen(map->nodes[i].name) > longest ? strlen(map->nodes[i].name) : longest;
    return 12 + LETTER * (int)(longest < LABEL ? longest : LABEL);
}

static int tiles_open(struct tiles *t, const struct study_map *map)
{
    size_t nodes = map->node_count;
    *t = (struct tiles){.map = map, .side = nodes < SIDE_MAX ? nodes : SIDE_MAX};
    t->order = calloc(nodes + 1, sizeof *t->order);
    t->place = calloc(nodes + 1, sizeof *t->place);
    t->p50 = calloc(t->side * t->side + 1, sizeof *t->p50);
    t->p99 = calloc(t->side * t->side + 1, sizeof *t->p99);
    if (!t->order || !t->place || !t->p50 || !t->p99)
        return fail(-ENOMEM, "no memory for the heat map");
    for (size_t i = 0; i < nodes; i++)
        t->order[i] = i;
    sorted = map;
    qsort(t->order, nodes, sizeof *t->order, by_group_and_effect);
    for (size_t i = 0; i < nodes; i++)
        t->place[t->order[i]] = i;
    for (size_t i = 0; i < t->side * t->side; i++)
        t->p50[i] = t->p99[i] = NAN;
    for (size_t i = 0; i < map->cell_count; i++)
        add(t, &map->cells[i]);
    t->margin = margin_of(map);
    t->tile = (double)(WIDTH - t->margin - LABEL) / (double)t->side;
    return choose_scale(t);
}

static void tiles_close(struct tiles *t)
{
    free(t->order);
    free(t->place);
    free(t->p50);
    free(t->p99);
}

static int class_of(const struct tiles *t, double us)
{
    double share = log(us / t->low) / log(t->high / t->low);
    int level = (int)(share * MAP_CLASSES);
    return level < 0 ? 0 : level >= MAP_CLASSES ? MAP_CLASSES - 1 : level;
}

/* ---- drawing ---- */

/* Tiles overlap a little: rounding must not leave lines between them. */
static void draw_tiles(const struct tiles *t, FILE *out)
{
    double width = t->tile + 0.05;
    for (int level = 0; level < MAP_CLASSES; level++) {
        bool any = false;
        for (size_t i = 0; i < t->side * t->side; i++) {
            if (isnan(t->p50[i]) || class_of(t, t->p50[i]) != level)
                continue;
            if (!any)
                fprintf(out, "<path class=\"t%d\" shape-rendering=\"crispEdges\" d=\"", level);
            any = true;
            fprintf(out, "M%.5g %.5gh%.4gv%.4gh-%.4gz", t->margin + (double)(i % t->side) * t->tile,
                    t->margin + (double)(i / t->side) * t->tile, width, width, width);
        }
        if (any)
            fputs("\"/>\n", out);
    }
}

static const char *name_at(const struct tiles *t, size_t tile)
{
    size_t node = t->order[tile * t->map->node_count / t->side];
    return t->map->nodes[node].name;
}

/* Long names keep their ends, which tell them apart. */
static void draw_name(const char *name, FILE *out)
{
    size_t length = strlen(name);
    html_text(out, length > LABEL ? "\xe2\x80\xa6" : "");
    html_text(out, length > LABEL ? name + length - LABEL + 1 : name);
}

static void draw_names(const struct tiles *t, FILE *out)
{
    size_t every = (size_t)ceil(TEXT / t->tile);
    double size = t->tile > TEXT ? TEXT : t->tile > 9 ? t->tile : 9;
    for (size_t i = 0; i < t->side; i += every ? every : 1) {
        double at = ((double)i + 0.5) * t->tile;
        fprintf(out, "<text class=\"ty\" style=\"font-size:%.3gpx\" x=\"%d\" y=\"%.5g\">", size,
                t->margin - 6, t->margin + at + size / 3);
        draw_name(name_at(t, i), out);
        fprintf(out,
                "</text>\n<text style=\"font-size:%.3gpx\" transform=\"translate(%.5g %d) "
                "rotate(-90)\">",
                size, t->margin + at + size / 3, t->margin - 6);
        draw_name(name_at(t, i), out);
        fputs("</text>\n", out);
    }
}

/* Lines between groups. */
static void draw_groups(const struct tiles *t, FILE *out)
{
    const struct study_map *m = t->map;
    double end = (double)t->side * t->tile;
    for (size_t i = 1; i < m->node_count; i++) {
        double at = (double)(i * t->side) / (double)m->node_count * t->tile;
        if (text_same(m->nodes[t->order[i]].group, m->nodes[t->order[i - 1]].group))
            continue;
        fprintf(out, "<path class=\"frame\" d=\"M%d %.5gh%.5gM%.5g %dv%.5g\"/>\n", t->margin,
                t->margin + at, end, t->margin + at, t->margin, end);
    }
    fprintf(out, "<path class=\"frame\" d=\"M%d %dh%.5gv%.5gh-%.5gz\"/>\n", t->margin, t->margin,
            end, end, end);
}

static void draw_scale(const struct tiles *t, FILE *out)
{
    double top = t->margin + (double)t->side * t->tile + 18, width = 24;
    char text[24];
    for (int i = 0; i < MAP_CLASSES; i++)
        fprintf(out, "<path class=\"t%d\" d=\"M%.5g %.5gh%gv12h-%gz\"/>\n", i,
                t->margin + i * width, top, width, width);
    time_text(t->low, text, sizeof text);
    fprintf(out, "<text x=\"%d\" y=\"%.5g\">", t->margin, top + 28);
    html_text(out, text);
    time_text(t->high, text, sizeof text);
    fprintf(out, "</text>\n<text class=\"ty\" x=\"%.5g\" y=\"%.5g\">",
            t->margin + MAP_CLASSES * width, top + 28);
    html_text(out, text);
    fputs("</text>\n", out);
}

/* ---- what the script reads ---- */

static void list_values(const double *values, size_t side, FILE *out)
{
    for (size_t row = 0; row < side; row++)
        for (size_t column = 0; column < row; column++) {
            if (row > 1 || column)
                fputc('|', out);
            if (!isnan(values[row * side + column]))
                fprintf(out, "%.4g", values[row * side + column]);
        }
}

static void data(const struct tiles *t, FILE *out)
{
    fprintf(out, " data-side=\"%zu\" data-left=\"%d\" data-top=\"%d\" data-tile=\"%.6g\"", t->side,
            t->margin, t->margin, t->tile);
    fputs(" data-names=\"", out);
    for (size_t i = 0; i < t->side; i++) {
        if (i)
            fputc('|', out);
        html_text(out, name_at(t, i));
    }
    fputs("\" data-p50=\"", out);
    list_values(t->p50, t->side, out);
    fputs("\" data-p99=\"", out);
    list_values(t->p99, t->side, out);
    fputs("\"", out);
}

int map_svg(const struct study_map *map, bool alone, FILE *out)
{
    struct tiles t;
    int status = tiles_open(&t, map);
    if (!status) {
        double height = t.margin + (double)t.side * t.tile + 56;
        fprintf(out,
                "<svg class=\"heat\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %.5g\" "
                "role=\"img\" aria-label=\"Median time of every pair of nodes\"",
                WIDTH, height);
        if (alone)
            fprintf(out, " width=\"%d\" height=\"%.5g\"", WIDTH, height);
        else
            data(&t, out);
        fputs(">\n", out);
        if (alone)
            fprintf(out, "<style>%s</style>\n<path class=\"card\" d=\"M0 0H%dV%.5gH0z\"/>\n",
                    plot_style, WIDTH, height);
        draw_tiles(&t, out);
        draw_groups(&t, out);
        draw_names(&t, out);
        draw_scale(&t, out);
        fputs("</svg>\n", out);
    }
    tiles_close(&t);
    return status;
}
