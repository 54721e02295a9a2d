/* SPDX-License-Identifier: BSD-3-Clause */
/* Plots versus size: latency with a band up to the 99th percentile; time per message, bandwidth and
 * message rate of streams and lists. With a single size, runs are drawn side by side. Many curves
 * are drawn as thin lines, with the median of each family on top. */
#include "study/plot.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define POOLED_NOTE "Thin lines: single runs. Thick lines: median of the runs."

/* Units are those of the tools: MB of 10^6 bytes of lists, MiB of ucx_perftest. */
static const struct {
    const char *name; /* of a file */
    const char *title, *axis, *value, *unit, *note;
    enum axis_kind kind;
    unsigned of; /* enum study_kind */
} kinds[SWEEPS] = {
    [SWEEP_LATENCY] = {"latency", "Latency", "Latency [us]", "median", "us",
                       "Median; band up to the 99th percentile.", AXIS_TIME, STUDY_LATENCY},
    [SWEEP_STREAM_TIME] = {"time-per-message", "Time per message", "Time per message [us]",
                           "per message", "us", "1 / message rate.", AXIS_TIME, STUDY_STREAM},
    [SWEEP_LIST_BANDWIDTH] = {"list-bandwidth", "Bandwidth", "Bandwidth [MB/s]", "bandwidth",
                              "MB/s", "Average over each test; both directions together.",
                              AXIS_NUMBER, STUDY_LIST},
    [SWEEP_BANDWIDTH] = {"bandwidth", "Bandwidth", "Bandwidth [MiB/s]", "bandwidth", "MiB/s",
                         "Average over each test.", AXIS_NUMBER, STUDY_STREAM},
    [SWEEP_RATE] = {"message-rate", "Message rate", "Messages per second", "rate", "messages/s",
                    "Average over each test.", AXIS_NUMBER, STUDY_STREAM | STUDY_LIST},
};

static double value_of(const struct study_result *result, enum sweep what)
{
    switch (what) {
    case SWEEP_LIST_BANDWIDTH:
        return study_bytes_per_s(result) / 1e6;
    case SWEEP_BANDWIDTH:
        return result->bytes_per_s / (1 << 20);
    case SWEEP_RATE:
        return result_rate(result);
    default:
        return result_time(result);
    }
}

/* The upper end of the band. */
static double tail_of(const struct study_result *result, enum sweep what)
{
    return what == SWEEP_LATENCY ? result_percentile(result, 99) : NAN;
}

static bool shown(const struct study_result *result, enum sweep what)
{
    return study_kind(result) & kinds[what].of && isfinite(value_of(result, what));
}

/* ---- points ---- */

static void set_point(struct point *point, uint64_t size, double value, double tail)
{
    char text[24];
    size_words(size, text, sizeof text);
    *point = (struct point){.x = (double)size, .y = value, .low = value, .high = tail};
    snprintf(point->at, sizeof point->at, "%s", text);
    if (isfinite(tail))
        snprintf(point->more, sizeof point->more, ", p99 %.9g us", tail);
}

static size_t curve_points(const struct curve *curve, enum sweep what, struct point *points)
{
    size_t n = 0;
    for (size_t i = 0; i < curve->count; i++) {
        const struct study_result *result = curve->results[i];
        if (shown(result, what))
            set_point(&points[n++], result->size, value_of(result, what), tail_of(result, what));
    }
    return n;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median_of(double *values, size_t count)
{
    if (!count)
        return NAN;
    qsort(values, count, sizeof *values, ascending);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

/* The median over the runs of a family. */
static size_t family_points(const struct plot_data *plots, size_t family, enum sweep what,
                            struct point *points, double *room)
{
    size_t n = 0;
    double *tails = room + plots->curve_count;
    for (size_t s = 0; s < plots->size_count; s++) {
        size_t values = 0, ends = 0;
        for (size_t i = 0; i < plots->curve_count; i++) {
            const struct study_result *result = curve_at(&plots->curves[i], plots->sizes[s]);
            if (plots->curves[i].family != family || !result || !shown(result, what))
                continue;
            double tail = tail_of(result, what);
            room[values++] = value_of(result, what);
            if (isfinite(tail))
                tails[ends++] = tail;
        }
        if (values)
            set_point(&points[n++], plots->sizes[s], median_of(room, values),
                      median_of(tails, ends));
    }
    return n;
}

/* ---- ceilings ---- */

static double ceiling_of(const struct study_result *result, enum ceiling what)
{
    double one = what == CEILING_LINK ? result->link_bytes_per_s : result->memcpy_bytes_per_s;
    return one / 1e6;
}

/* CPUs that copy, or directions of links: each of them adds as much. */
static uint64_t times_of(const struct study_result *result, enum ceiling what)
{
    uint64_t together = what == CEILING_LINK ? result->devices : result->pairs;
    return (together ? together : 1) * (result->reverse_elapsed_s > 0 ? 2 : 1);
}

/* The highest of all runs that have it so many times. next: the smallest number above that. */
static size_t ceiling_points(const struct plot_data *plots, enum ceiling what, uint64_t times,
                             struct point *points, uint64_t *next)
{
    size_t n = 0;
    *next = UINT64_MAX;
    for (size_t s = 0; s < plots->size_count; s++) {
        double most = 0;
        for (size_t i = 0; i < plots->curve_count; i++) {
            const struct study_result *result = curve_at(&plots->curves[i], plots->sizes[s]);
            if (!result || !shown(result, SWEEP_LIST_BANDWIDTH))
                continue;
            uint64_t mine = times_of(result, what);
            if (mine == times)
                most = fmax(most, (double)times * ceiling_of(result, what));
            else if (mine > times && mine < *next)
                *next = mine;
        }
        if (most > 0)
            set_point(&points[n++], plots->sizes[s], most, NAN);
    }
    return n;
}

static void ceiling_label(enum ceiling what, uint64_t times, char *text, size_t room)
{
    const char *plural = times > 1 ? "s" : "";
    if (what == CEILING_MEMCPY)
        snprintf(text, room, "memcpy, %" PRIu64 " CPU%s", times, plural);
    else if (times == 1)
        snprintf(text, room, "link");
    else
        snprintf(text, room, "link x %" PRIu64, times);
}

/* Every ceiling that there is: visit gets its points. */
static void each_ceiling(const struct plot_data *plots, enum sweep what, struct plot *plot,
                         struct point *points,
                         void (*visit)(struct plot *plot, enum ceiling what, const char *label,
                                       const struct point *points, size_t count))
{
    for (int ceiling = 0; ceiling < CEILINGS && what == SWEEP_LIST_BANDWIDTH; ceiling++)
        for (uint64_t times = 1, next; times != UINT64_MAX; times = next) {
            char label[48];
            size_t n = ceiling_points(plots, (enum ceiling)ceiling, times, points, &next);
            /* With a single size, from edge to edge. */
            if (n == 1 && plot->x.kind == AXIS_SLOT) {
                points[1] = points[0];
                points[0].x = plot->x.low;
                points[1].x = plot->x.high;
                n = 2;
            }
            ceiling_label((enum ceiling)ceiling, times, label, sizeof label);
            visit(plot, (enum ceiling)ceiling, label, points, n);
        }
}

static void fit_ceiling(struct plot *plot, enum ceiling what, const char *label,
                        const struct point *points, size_t count)
{
    (void)what;
    (void)label;
    for (size_t i = 0; i < count; i++)
        axis_fit(&plot->y, points[i].y);
}

/* ---- versus size ---- */

static void fit(struct plot *plot, const struct point *points, size_t count, bool bands)
{
    for (size_t i = 0; i < count; i++) {
        axis_fit(&plot->x, points[i].x);
        axis_fit(&plot->y, points[i].y);
        if (bands)
            axis_fit(&plot->y, points[i].high);
    }
}

static void without_bands(struct point *points, size_t count)
{
    for (size_t i = 0; i < count; i++)
        points[i].low = points[i].high = NAN;
}

static void fit_all(const struct plot_data *plots, enum sweep what, struct plot *plot,
                    struct point *points, double *room)
{
    for (size_t i = 0; i < plots->curve_count; i++)
        fit(plot, points, curve_points(&plots->curves[i], what, points), !plot->crowded);
    for (size_t i = 0; i < plots->family_count && plot->crowded; i++)
        fit(plot, points, family_points(plots, i, what, points, room), true);
    each_ceiling(plots, what, plot, points, fit_ceiling);
}

static void draw_crowd(const struct plot_data *plots, enum sweep what, struct plot *plot,
                       struct point *points, double *room)
{
    for (size_t i = 0; i < plots->curve_count; i++) {
        const struct curve *curve = &plots->curves[i];
        bool single = plots->families[curve->family].members == 1;
        size_t n = curve_points(curve, what, points);
        without_bands(points, n);
        plot_curve(plot, curve->family, curve->label, points, n, single ? DRAW_MARKERS : 0);
    }
    for (size_t i = 0; i < plots->family_count; i++) {
        if (plots->families[i].members == 1)
            continue;
        size_t n = family_points(plots, i, what, points, room);
        plot_curve(plot, i, plots->families[i].label, points, n, DRAW_MARKERS | DRAW_BOLD);
    }
}

static void draw_few(const struct plot_data *plots, enum sweep what, struct plot *plot,
                     struct point *points)
{
    for (size_t i = 0; i < plots->curve_count; i++) {
        const struct curve *curve = &plots->curves[i];
        size_t n = curve_points(curve, what, points);
        plot_curve(plot, curve->family, curve->label, points, n, DRAW_MARKERS);
    }
}

static void draw_sizes(const struct plot_data *plots, enum sweep what, struct plot *plot,
                       const char *name, struct point *points, double *room)
{
    axis_open(&plot->x, "Size [bytes]", AXIS_SIZE, AXIS_LOG);
    axis_open(&plot->y, kinds[what].axis, kinds[what].kind, AXIS_LOG);
    fit_all(plots, what, plot, points, room);
    plot_open(plot, name, NULL, 0);
    each_ceiling(plots, what, plot, points, plot_ceiling);
    if (plot->crowded)
        draw_crowd(plots, what, plot, points, room);
    else
        draw_few(plots, what, plot, points);
    plot_close(plot);
}

/* ---- one size: side by side, families together ---- */

static size_t slot_points(const struct plot_data *plots, enum sweep what, size_t family,
                          struct point *points, size_t *slot)
{
    size_t n = 0;
    for (size_t i = 0; i < plots->curve_count; i++) {
        const struct curve *curve = &plots->curves[i];
        if (curve->family != family || !curve_points(curve, what, &points[n]))
            continue;
        points[n].x = (double)(*slot)++;
        if (plots->families[family].members > 1)
            snprintf(points[n].at, sizeof points[n].at, "%.36s", curve->label);
        n++;
    }
    return n;
}

static void draw_slots(const struct plot_data *plots, enum sweep what, struct plot *plot,
                       const char *name, struct point *points)
{
    size_t slots = 0;
    axis_open(&plot->x, "Runs, side by side", AXIS_SLOT, AXIS_LINEAR);
    axis_open(&plot->y, kinds[what].axis, kinds[what].kind, AXIS_EITHER);
    for (size_t i = 0; i < plots->family_count; i++)
        fit(plot, points, slot_points(plots, what, i, points, &slots), true);
    each_ceiling(plots, what, plot, points, fit_ceiling);
    plot_open(plot, name, NULL, 0);
    each_ceiling(plots, what, plot, points, plot_ceiling);
    slots = 0;
    for (size_t i = 0; i < plots->family_count; i++) {
        size_t n = slot_points(plots, what, i, points, &slots);
        plot_curve(plot, i, plots->families[i].label, points, n, DRAW_MARKERS | DRAW_ALONE);
    }
    plot_close(plot);
}

/* ---- the figure ---- */

/* The number of sizes with something to show, and the first of them. */
static size_t sizes_shown(const struct plot_data *plots, enum sweep what, uint64_t *size)
{
    size_t count = 0;
    for (size_t i = 0; i < plots->curve_count; i++) {
        for (size_t j = 0; j < plots->curves[i].count; j++) {
            const struct study_result *result = plots->curves[i].results[j];
            if (!shown(result, what) || (count && result->size == *size))
                continue;
            *size = count++ ? *size : result->size;
        }
    }
    return count;
}

/* The points have room for one of each size, or of each curve. */
struct room {
    struct point *points;
    double *values;
};

static int figure(struct canvas *canvas, enum sweep what, size_t sizes, uint64_t size,
                  const struct room *room)
{
    const struct plot_data *plots = canvas->plots;
    struct picture f;
    char title[80], text[24], caption[200];
    size_words(size, text, sizeof text);
    if (sizes > 1)
        snprintf(title, sizeof title, "%s versus size", kinds[what].title);
    else
        snprintf(title, sizeof title, "%s at %s", kinds[what].title, text);
    int status = picture_open(&f, canvas, "h2", kinds[what].name, title);
    if (status)
        return status;
    struct plot plot = {.out = f.out,
                        .value = kinds[what].value,
                        .unit = kinds[what].unit,
                        .crowded = plot_data_crowded(plots),
                        .many = plot_data_many(plots)};
    bool pooled = plot.crowded && sizes > 1 && plots->family_count < plots->curve_count;
    snprintf(caption, sizeof caption, "%s%s%s", kinds[what].note, pooled ? " " : "",
             pooled ? POOLED_NOTE : "");
    if (sizes > 1)
        draw_sizes(plots, what, &plot, title, room->points, room->values);
    else
        draw_slots(plots, what, &plot, title, room->points);
    return picture_close(&f, caption);
}

int sweep_draw(struct canvas *canvas, enum sweep what, bool *drawn)
{
    const struct plot_data *plots = canvas->plots;
    uint64_t size = 0;
    size_t sizes = sizes_shown(plots, what, &size);
    size_t most = 0;
    /* A single point is not worth a plot on the page; in a file it is drawn. */
    *drawn = sizes > 1 || (sizes == 1 && (!canvas->page || plots->curve_count > 1));
    if (!*drawn)
        return 0;
    for (size_t i = 0; i < plots->curve_count; i++)
        most = plots->curves[i].count > most ? plots->curves[i].count : most;
    most += plots->curve_count + plots->size_count;
    struct room room = {.points = calloc(most + 1, sizeof *room.points),
                        .values = calloc(2 * plots->curve_count + 1, sizeof *room.values)};
    int status = room.points && room.values
                     ? figure(canvas, what, sizes, size, &room)
                     : fail(-ENOMEM, "no memory for a plot of %zu sizes", sizes);
    free(room.points);
    free(room.values);
    return status;
}
