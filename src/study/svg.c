/* SPDX-License-Identifier: BSD-3-Clause */
/* A plot as SVG: axes, bands, lines, markers, columns. The style sheet has the colours: elements
 * name their hue and dashes by class. For the hover, every line carries its values, one per corner.
 */
#include "study/plot.h"

#include <math.h>
#include <string.h>

enum { LEFT = 104, RIGHT = 622, TOP = 14, BOTTOM = 330, TICKS = 40 };

/* ---- frame ---- */

static void x_axis(struct plot *plot)
{
    struct tick ticks[TICKS];
    size_t n = axis_ticks(&plot->x, ticks, TICKS);
    for (size_t i = 0; i < n; i++) {
        double x = axis_place(&plot->x, ticks[i].value);
        fprintf(plot->out, "<path class=\"grid\" d=\"M%.1f %dV%d\"/>", x, TOP, BOTTOM);
        fprintf(plot->out, "<text class=\"tx%s\" x=\"%.1f\" y=\"%d\">%s</text>\n",
                ticks[i].spare ? " spare" : "", x, BOTTOM + 24, ticks[i].text);
    }
    fprintf(plot->out, "<text class=\"title below\" x=\"%d\" y=\"%d\">", (LEFT + RIGHT) / 2,
            BOTTOM + 54);
    html_text(plot->out, plot->x.title);
    fputs("</text>\n", plot->out);
}

static void y_axis(struct plot *plot)
{
    struct tick ticks[TICKS];
    size_t n = axis_ticks(&plot->y, ticks, TICKS);
    for (size_t i = 0; i < n; i++) {
        double y = axis_place(&plot->y, ticks[i].value);
        fprintf(plot->out, "<path class=\"grid\" d=\"M%d %.1fH%d\"/>", LEFT, y, RIGHT);
        fprintf(plot->out, "<text class=\"ty\" x=\"%d\" y=\"%.1f\">%s</text>\n", LEFT - 8, y + 4.5,
                ticks[i].text);
    }
    int middle = (TOP + BOTTOM) / 2;
    fprintf(plot->out, "<text class=\"title\" transform=\"translate(17 %d) rotate(-90)\">", middle);
    html_text(plot->out, plot->y.title);
    fputs("</text>\n", plot->out);
}

void plot_open(struct plot *plot, const char *name, const char *const *words, size_t count)
{
    FILE *out = plot->out;
    axis_settle(&plot->x);
    axis_settle(&plot->y);
    double edge = plot->x.kind == AXIS_SIZE ? 10 : 0;
    plot->x.from = LEFT + edge;
    plot->x.to = RIGHT - edge;
    plot->y.from = BOTTOM;
    plot->y.to = TOP;
    fprintf(out,
            "<svg class=\"plot%s\" viewBox=\"0 0 %d %d\" xmlns=\"http://www.w3.org/2000/svg\" ",
            plot->crowded ? " crowd" : "", PLOT_WIDTH, PLOT_HEIGHT);
    fputs("role=\"img\" aria-label=\"", out);
    html_text(out, name);
    fputs("\" data-value=\"", out);
    html_text(out, plot->value);
    fputs("\" data-unit=\"", out);
    html_text(out, plot->unit);
    for (size_t i = 0; i < count; i++) {
        fputs(i ? "|" : "\" data-x=\"", out);
        html_text(out, words[i]);
    }
    fputs("\">\n", out);
    x_axis(plot);
    y_axis(plot);
    fprintf(out, "<path class=\"frame\" d=\"M%d %dV%dH%d\"/>\n", LEFT, TOP, BOTTOM, RIGHT);
}

void plot_close(struct plot *plot)
{
    fputs("</svg>\n", plot->out);
}

/* ---- curves ---- */

static void place(struct plot *plot, const char *command, double x, double y)
{
    fprintf(plot->out, "%s%.1f %.1f", command, axis_place(&plot->x, x), axis_place(&plot->y, y));
}

static void group(struct plot *plot, size_t family, const char *label, bool bold)
{
    fprintf(plot->out, "<g class=\"c f%zu h%zu d%zu%s\" data-name=\"", family, family % HUES,
            family / HUES % 4, bold ? " bold" : "");
    html_text(plot->out, label);
}

static bool banded(const struct point *point)
{
    return isfinite(point->low) && isfinite(point->high);
}

/* Consecutive points that have a band: along the top and back along the bottom. */
static void band_segment(struct plot *plot, const struct point *points, size_t count)
{
    for (size_t i = 0; i < count; i++)
        place(plot, i ? "L" : "M", points[i].x, points[i].high);
    for (size_t i = count; i-- > 0;)
        place(plot, "L", points[i].x, points[i].low);
    fputs("Z", plot->out);
}

static void band(struct plot *plot, const struct point *points, size_t count)
{
    bool open = false;
    for (size_t i = 0, n; i < count; i += n + 1) {
        for (n = 0; i + n < count && banded(&points[i + n]);)
            n++;
        if (n < 2)
            continue;
        if (!open)
            fputs("<path class=\"b\" d=\"", plot->out);
        open = true;
        band_segment(plot, points + i, n);
    }
    if (open)
        fputs("\"/>", plot->out);
}

/* A point with a band between points without one gets a whisker. */
static void whiskers(struct plot *plot, const struct point *points, size_t count, bool all)
{
    bool open = false;
    for (size_t i = 0; i < count; i++) {
        bool isolated =
            !(i && banded(&points[i - 1])) && !(i + 1 < count && banded(&points[i + 1]));
        if (!banded(&points[i]) || !(all || isolated))
            continue;
        fputs(open ? "" : "<path class=\"w\" d=\"", plot->out);
        open = true;
        place(plot, "M", points[i].x, points[i].low);
        place(plot, "L", points[i].x, points[i].high);
    }
    if (open)
        fputs("\"/>", plot->out);
}

/* Shapes differ too, for print and for colour-blind readers. */
const char *plot_marker(size_t family)
{
    static const char *const shapes[] = {"m-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z", "m-3.5-3.5h7v7h-7z",
                                         "m0-5l5 5l-5 5l-5-5z", "m0-5l4.8 8.4h-9.6z"};
    return shapes[family % LENGTH(shapes)];
}

static void marker(struct plot *plot, size_t family, const struct point *point)
{
    place(plot, "M", point->x, point->y);
    fputs(plot_marker(family), plot->out);
}

static void value_text(FILE *out, double value, bool roughly)
{
    if (roughly && isfinite(value))
        fprintf(out, "%.4g", value);
    else
        html_number(out, value);
}

static void hover_title(struct plot *plot, const char *label, const struct point *point)
{
    fputs("<title>", plot->out);
    html_text(plot->out, label);
    html_print(plot->out, ", %s: %s ", point->at, plot->value);
    html_number(plot->out, point->y);
    html_print(plot->out, " %s%s", plot->unit, point->more);
    fputs("</title>", plot->out);
}

static void markers(struct plot *plot, size_t family, const char *label, const struct point *points,
                    size_t count, bool words)
{
    if (!words)
        fputs("<path class=\"m\" d=\"", plot->out);
    for (size_t i = 0; i < count; i++) {
        if (words)
            fputs("<path class=\"m\" d=\"", plot->out);
        marker(plot, family, &points[i]);
        if (words) {
            fputs("\">", plot->out);
            hover_title(plot, label, &points[i]);
            fputs("</path>", plot->out);
        }
    }
    if (!words)
        fputs("\"/>", plot->out);
}

static void values(struct plot *plot, const struct point *points, size_t count, bool roughly)
{
    FILE *out = plot->out;
    for (size_t i = 0; i < count; i++) {
        fputs(i ? "|" : "\" data-y=\"", out);
        value_text(out, points[i].y, roughly);
    }
    for (size_t i = 0; i < count && points[0].at[0]; i++) {
        fputs(i ? "|" : "\" data-x=\"", out);
        html_text(out, points[i].at);
    }
    for (size_t i = 0; i < count && points[0].more[0]; i++) {
        fputs(i ? "|" : "\" data-more=\"", out);
        html_text(out, points[i].more);
    }
    fputs("\">", out);
}

void plot_curve(struct plot *plot, size_t family, const char *label, const struct point *points,
                size_t count, unsigned how)
{
    bool alone = how & DRAW_ALONE;
    if (!count)
        return;
    group(plot, family, label, how & DRAW_BOLD);
    if (plot->many && !(how & DRAW_BOLD))
        fputs("\">", plot->out);
    else
        values(plot, points, count, how & DRAW_ROUGHLY);
    if (!alone)
        band(plot, points, count);
    whiskers(plot, points, count, alone);
    fputs(alone ? "<path class=\"l hidden\" d=\"" : "<path class=\"l\" d=\"", plot->out);
    for (size_t i = 0; i < count; i++)
        place(plot, i ? "L" : "M", points[i].x, points[i].y);
    fputs("\"/>", plot->out);
    if (how & DRAW_MARKERS)
        markers(plot, family, label, points, count, !plot->crowded || how & DRAW_BOLD);
    fputs("</g>\n", plot->out);
}

/* A thin line that belongs to a curve and is not in the hover. */
void plot_trace(struct plot *plot, size_t family, const struct point *points, size_t count)
{
    if (!count)
        return;
    fprintf(plot->out, "<g class=\"c f%zu h%zu\"><path class=\"t\" d=\"", family, family % HUES);
    for (size_t i = 0; i < count; i++)
        place(plot, i ? "L" : "M", points[i].x, points[i].y);
    fputs("\"/></g>\n", plot->out);
}

/* Above the last of its highest points, where curves are least likely to be. */
static void ceiling_name(struct plot *plot, const char *label, const struct point *points,
                         size_t count)
{
    size_t at = 0;
    for (size_t i = 1; i < count; i++)
        at = points[i].y >= points[at].y ? i : at;
    double x = axis_place(&plot->x, points[at].x), y = axis_place(&plot->y, points[at].y);
    bool right = x > RIGHT - 80;
    fprintf(plot->out, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">", right ? "ty" : "tx",
            x < LEFT + 80 ? LEFT + 80 : x, y < TOP + 20 ? y + 17 : y - 6);
    html_text(plot->out, label);
    fputs("</text>", plot->out);
}

/* Grey, in the dashes of its own, and seen also among many curves. */
void plot_ceiling(struct plot *plot, enum ceiling what, const char *label,
                  const struct point *points, size_t count)
{
    if (!count)
        return;
    fprintf(plot->out, "<g class=\"c ceiling bold h%d d%d\" data-name=\"", HUES, what + 1);
    html_text(plot->out, label);
    values(plot, points, count, true);
    fputs("<path class=\"l\" d=\"", plot->out);
    for (size_t i = 0; i < count; i++)
        place(plot, i ? "L" : "M", points[i].x, points[i].y);
    fputs("\"/>", plot->out);
    ceiling_name(plot, label, points, count);
    fputs("</g>\n", plot->out);
}

void plot_columns(struct plot *plot, size_t family, const char *label, const double *x,
                  const double *y, size_t count, size_t first)
{
    FILE *out = plot->out;
    if (!count)
        return;
    group(plot, family, label, false);
    fprintf(out, "\" data-first=\"%zu", first);
    for (size_t i = 0; i < count; i++)
        fprintf(out, "%s%.4g", i ? "|" : "\" data-y=\"", y[i]);
    fputs("\"><title>", out);
    html_text(out, label);
    fprintf(out, "</title><path class=\"l area\" d=\"M%.1f %d", axis_place(&plot->x, x[0]), BOTTOM);
    for (size_t i = 0; i < count; i++)
        fprintf(out, "V%.1fH%.1f", axis_place(&plot->y, y[i]), axis_place(&plot->x, x[i + 1]));
    fprintf(out, "V%d\"/></g>\n", BOTTOM);
}
