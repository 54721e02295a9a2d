/* SPDX-License-Identifier: BSD-3-Clause */
/* The heat map of a map as SVG: a path for each colour, so that 256 nodes are no burden, and the
 * figures in attributes for the script of the page. */
#include "study/map_draw.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    SIDE_MAX = 256,
    WIDTH = 640,
    LABEL = 16,
    TEXT = 12,
    LEAST = 9,
    GAP = 6,
    SCALE = 24,
    HEAD = 54
};
enum { PHONE_TEXT = 18, PHONE_LABEL = 6 }; /* a phone shows everything at half the size */

struct tiles {
    const struct study_map *map;
    size_t side;       /* of the square, in tiles */
    size_t *order;     /* nodes as they stand */
    size_t *place;     /* of a node, in tiles */
    double *p50, *p99; /* side * side; not a number: not measured */
    double low, high;  /* of the colours */
    double tile;       /* its width */
    size_t domain;     /* letters at the end of each name that are not drawn */
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
    size_t row = t->place[c->a], column = t->place[c->b];
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

/* Of letters of this size. */
static int width_of(size_t letters, int size)
{
    return (int)letters * size * 3 / 5;
}

/* A domain that all names have tells none of them apart. */
static size_t domain_of(const struct study_map *map)
{
    const char *domain = strchr(map->nodes[0].name, '.');
    for (size_t i = 1; i < map->node_count; i++)
        if (!text_same(strchr(map->nodes[i].name, '.'), domain))
            return 0;
    return domain ? strlen(domain) : 0;
}

/* Room for the longest name, and for the end of it on a phone. */
static int margin_of(const struct study_map *map, size_t domain)
{
    size_t longest = 2;
    for (size_t i = 0; i < map->node_count; i++) {
        size_t length = strlen(map->nodes[i].name) - domain;
        longest = length > longest ? length : longest;
    }
    int desk = width_of(longest < LABEL ? longest : LABEL, TEXT);
    int phone = width_of(longest < PHONE_LABEL ? longest : PHONE_LABEL, PHONE_TEXT);
    return 2 * GAP + (desk > phone ? desk : phone);
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
        t->place[t->order[i]] = i * t->side / nodes;
    for (size_t i = 0; i < t->side * t->side; i++)
        t->p50[i] = t->p99[i] = NAN;
    for (size_t i = 0; i < map->cell_count; i++)
        add(t, &map->cells[i]);
    t->domain = domain_of(map);
    t->margin = margin_of(map, t->domain);
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
    /* Of values far from any time it is not a number. */
    if (!(share > 0))
        return 0;
    return share < 1 ? (int)(share * MAP_CLASSES) : MAP_CLASSES - 1;
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
            size_t row = i / t->side, column = i % t->side;
            fprintf(out, "M%.5g %.5gh%.4gv%.4gh-%.4gz", t->margin + (double)column * t->tile,
                    t->margin + (double)row * t->tile, width, width, width);
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

/* Long names keep their ends, which tell them apart. The dots are as wide as two letters. */
static void draw_name(const struct tiles *t, size_t tile, size_t most, FILE *out)
{
    const char *name = name_at(t, tile);
    size_t length = strlen(name) - t->domain, left = length > most ? length - most + 2 : 0;
    char text[LABEL + 1];
    snprintf(text, sizeof text, "%.*s", (int)(length - left), name + left);
    html_text(out, left ? "\xe2\x80\xa6" : "");
    html_text(out, text);
}

/* As many as have room below each other. */
static void draw_names(const struct tiles *t, const char *where, double size, size_t most,
                       FILE *out)
{
    size_t every = (size_t)ceil((size > TEXT ? size : TEXT) / t->tile);
    fprintf(out, "<g class=\"%s\">\n", where);
    for (size_t i = 0; i < t->side; i += every ? every : 1) {
        double at = t->margin + ((double)i + 0.5) * t->tile + size / 3;
        fprintf(out, "<text class=\"ty\" style=\"font-size:%.3gpx\" x=\"%d\" y=\"%.5g\">", size,
                t->margin - GAP, at);
        draw_name(t, i, most, out);
        fprintf(out,
                "</text>\n<text style=\"font-size:%.3gpx\" transform=\"translate(%.5g %d) "
                "rotate(-90)\">",
                size, at, t->margin - GAP);
        draw_name(t, i, most, out);
        fputs("</text>\n", out);
    }
    fputs("</g>\n", out);
}

static const char *group_at(const struct tiles *t, size_t i)
{
    return t->map->nodes[t->order[i]].group;
}

/* Beside the rows of nodes first to last, as far as it has room there. */
static void draw_group(const struct tiles *t, size_t first, size_t last, FILE *out)
{
    double scale = t->tile * (double)t->side / (double)t->map->node_count;
    double from = (double)first * scale, length = (double)(last + 1 - first) * scale;
    char text[LABEL + 1];
    int most = (int)(length * 5 / (3 * TEXT));
    if (most < 2 || !group_at(t, first))
        return;
    snprintf(text, sizeof text, "%.*s", most, group_at(t, first));
    fprintf(out,
            "<text class=\"tx\" style=\"font-size:%dpx\" transform=\"translate(%d %.5g) "
            "rotate(90)\">",
            TEXT, WIDTH - LABEL + 4, t->margin + from + length / 2);
    html_text(out, text);
    fputs("</text>\n", out);
}

/* Lines between groups, and their names. */
static void draw_groups(const struct tiles *t, FILE *out)
{
    const struct study_map *m = t->map;
    double end = (double)t->side * t->tile;
    fputs("<g class=\"desk\">\n", out);
    for (size_t i = 0, first = 0; i < m->node_count; i++)
        if (i + 1 == m->node_count || !text_same(group_at(t, i), group_at(t, i + 1))) {
            draw_group(t, first, i, out);
            first = i + 1;
        }
    fputs("</g>\n", out);
    for (size_t i = 1; i < m->node_count; i++) {
        double at = (double)(i * t->side) / (double)m->node_count * t->tile;
        if (text_same(group_at(t, i), group_at(t, i - 1)))
            continue;
        fprintf(out, "<path class=\"frame\" d=\"M%d %.5gh%.5gM%.5g %dv%.5g\"/>\n", t->margin,
                t->margin + at, end, t->margin + at, t->margin, end);
    }
    fprintf(out, "<path class=\"frame\" d=\"M%d %dh%.5gv%.5gh-%.5gz\"/>\n", t->margin, t->margin,
            end, end, end);
}

static double scale_top(const struct tiles *t)
{
    return t->margin + (double)t->side * t->tile + 18;
}

static void draw_scale(const struct tiles *t, FILE *out)
{
    for (int i = 0; i < MAP_CLASSES; i++)
        fprintf(out, "<path class=\"t%d\" d=\"M%d %.5gh%dv12h-%dz\"/>\n", i, t->margin + i * SCALE,
                scale_top(t), SCALE, SCALE);
}

static void draw_ends(const struct tiles *t, const char *where, int size, FILE *out)
{
    double below = scale_top(t) + 14 + size;
    char low[24], high[24];
    time_text(t->low, low, sizeof low);
    time_text(t->high, high, sizeof high);
    fprintf(out, "<g class=\"%s\"><text style=\"font-size:%dpx\" x=\"%d\" y=\"%.5g\">", where, size,
            t->margin, below);
    html_text(out, low);
    fprintf(out, "</text>\n<text class=\"ty\" style=\"font-size:%dpx\" x=\"%d\" y=\"%.5g\">", size,
            t->margin + MAP_CLASSES * SCALE, below);
    html_text(out, high);
    fputs("</text></g>\n", out);
}

/* All text; for a phone only in the page, which shows one or the other. */
static void draw_texts(const struct tiles *t, bool alone, FILE *out)
{
    double size = t->tile > TEXT ? TEXT : t->tile > LEAST ? t->tile : LEAST;
    draw_names(t, "desk", size, LABEL, out);
    draw_ends(t, "desk", TEXT, out);
    if (alone)
        return;
    size_t most = (size_t)((t->margin - 2 * GAP) * 5 / (3 * PHONE_TEXT)) + 1;
    draw_names(t, "phone", PHONE_TEXT, most, out);
    draw_ends(t, "phone", PHONE_TEXT, out);
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

static double height_of(const struct tiles *t)
{
    return t->margin + (double)t->side * t->tile + 56;
}

static void draw(const struct tiles *t, bool alone, FILE *out)
{
    draw_tiles(t, out);
    draw_groups(t, out);
    draw_scale(t, out);
    draw_texts(t, alone, out);
    fputs("</svg>\n", out);
}

int map_svg(const struct study_map *map, FILE *out)
{
    struct tiles t;
    int status = tiles_open(&t, map);
    if (!status) {
        fprintf(out,
                "<svg class=\"heat\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %.5g\" "
                "role=\"img\" aria-label=\"Median time of every pair of nodes\"",
                WIDTH, height_of(&t));
        data(&t, out);
        fputs(">\n", out);
        draw(&t, false, out);
    }
    tiles_close(&t);
    return status;
}

int study_map_plot(const struct study_map *map, const char *title, FILE *out)
{
    struct tiles t;
    int status = tiles_open(&t, map);
    if (!status) {
        double height = height_of(&t);
        fprintf(out,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %.5g\" width=\"%d\" "
                "height=\"%.5g\">\n<style>%s</style>\n<rect class=\"card\" x=\".5\" y=\".5\" "
                "width=\"%d\" height=\"%.5g\" rx=\"8\"/>\n<text class=\"head\" x=\"18\" y=\"28\">",
                WIDTH, height + HEAD, WIDTH, height + HEAD, file_style, WIDTH - 1,
                height + HEAD - 1);
        if (title)
            html_print(out, "%s: ", title);
        fputs("Median of every pair</text>\n<text x=\"18\" y=\"48\">", out);
        map_subject(map, out);
        fprintf(out, "</text>\n<svg y=\"%d\" width=\"%d\" height=\"%.5g\">\n", HEAD, WIDTH, height);
        draw(&t, true, out);
        fputs("</svg>\n", out);
    }
    tiles_close(&t);
    return status;
}
