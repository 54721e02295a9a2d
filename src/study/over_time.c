/* SPDX-License-Identifier: BSD-3-Clause */
/* A run over time: the median of each interval, a band up to its 99th percentile, and its largest
 * sample. Documents of older releases have the mean, the smallest and the largest. */
#include "study/plot.h"

#include <math.h>

/* Does any interval have its median? Documents of older releases have means only. */
static bool has_medians(const struct spread *spread)
{
    for (size_t i = 0; i < spread->plots->curve_count; i++)
        for (size_t j = 0; spread->results[i] && j < spread->results[i]->interval_count; j++)
            if (isfinite(spread->results[i]->intervals[j].p50_us))
                return true;
    return false;
}

/* The median with a band up to the 99th percentile; or the mean, from the smallest to the largest.
 */
static size_t interval_points(const struct study_result *result, struct point *points, bool medians,
                              bool bands)
{
    size_t n = 0;
    for (size_t i = 0; result && i < result->interval_count; i++) {
        const struct study_interval *s = &result->intervals[i];
        double y = medians ? s->p50_us : s->mean_us;
        if (!isfinite(s->end_s) || !isfinite(y) || !s->count)
            continue;
        points[n] = (struct point){.x = s->end_s, .y = y, .low = NAN, .high = NAN};
        snprintf(points[n].at, sizeof points[n].at, "until %.6g s", s->end_s);
        if (medians && isfinite(s->max_us))
            snprintf(points[n].more, sizeof points[n].more, ", p99 %.4g, max %.4g us", s->p99_us,
                     s->max_us);
        else if (isfinite(s->min_us) && isfinite(s->max_us))
            snprintf(points[n].more, sizeof points[n].more, ", %.6g to %.6g us", s->min_us,
                     s->max_us);
        if (bands) {
            points[n].low = medians ? y : s->min_us;
            points[n].high = medians ? s->p99_us : s->max_us;
        }
        n++;
    }
    return n;
}

static size_t largest_points(const struct study_result *result, struct point *points)
{
    size_t n = 0;
    for (size_t i = 0; result && i < result->interval_count; i++) {
        const struct study_interval *s = &result->intervals[i];
        if (!isfinite(s->end_s) || !isfinite(s->max_us) || !s->count)
            continue;
        points[n] = (struct point){.x = s->end_s, .y = s->max_us, .low = NAN, .high = NAN};
        snprintf(points[n].at, sizeof points[n].at, "until %.6g s", s->end_s);
        n++;
    }
    return n;
}

static void fit_points(struct plot *plot, const struct point *points, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        axis_fit(&plot->x, points[i].x);
        axis_fit(&plot->y, points[i].y);
        axis_fit(&plot->y, points[i].low);
        axis_fit(&plot->y, points[i].high);
    }
}

static size_t interval_axes(const struct spread *spread, struct plot *plot, bool medians)
{
    size_t all = 0;
    axis_open(&plot->x, "Time since the measurement began [s]", AXIS_NUMBER, AXIS_LINEAR);
    axis_open(&plot->y, spread_title(spread), AXIS_TIME, AXIS_EITHER);
    plot->x.from_zero = true;
    for (size_t i = 0; i < spread->plots->curve_count; i++) {
        size_t n = interval_points(spread->results[i], spread->points, medians, !plot->crowded);
        all += n;
        fit_points(plot, spread->points, n);
        if (medians && !plot->crowded)
            fit_points(plot, spread->points, largest_points(spread->results[i], spread->points));
    }
    return all;
}

static int draw(struct spread *spread, struct plot *plot, bool medians, struct picture *f)
{
    const struct plot_data *plots = spread->plots;
    char caption[300];
    plot->out = f->out;
    plot_open(plot, "Over time", NULL, 0);
    for (size_t i = 0; i < plots->curve_count; i++) {
        const struct curve *curve = &plots->curves[i];
        size_t n = interval_points(spread->results[i], spread->points, medians, !plot->crowded);
        plot_curve(plot, curve->family, curve->label, spread->points, n,
                   DRAW_ROUGHLY | (n == 1 ? DRAW_MARKERS : 0));
        n = medians && !plot->crowded ? largest_points(spread->results[i], spread->points) : 0;
        plot_trace(plot, curve->family, spread->points, n);
    }
    plot_close(plot);
    snprintf(caption, sizeof caption, "%s per interval%s.%s", medians ? "Median" : "Mean",
             plot->crowded ? ""
             : medians     ? "; band up to the 99th percentile; thin line: largest sample"
                           : "; band from the smallest to the largest sample",
             spread_note(spread));
    return picture_close(f, caption);
}

int over_time_draw(struct spread *spread)
{
    struct picture f;
    bool medians = has_medians(spread);
    struct plot plot = {.value = medians ? "median" : "mean",
                        .unit = "us",
                        .crowded = plot_data_crowded(spread->plots)};
    if (plot_data_many(spread->plots) || !interval_axes(spread, &plot, medians))
        return 0;
    int status = spread_open(spread, &f, "over-time", "Over time");
    return status ? status : draw(spread, &plot, medians, &f);
}
