/* SPDX-License-Identifier: BSD-3-Clause */
/* The distribution of the samples of one size: percentiles on an axis that stretches the tail, a
 * histogram in columns wider than the buckets of documents, and the means over time. */
#include "study/plot.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PER_DECADE = 20, DECADES = 9, GRID = PER_DECADE * DECADES + 1, COLUMNS = 100, WORD = 64 };
enum { SAMPLES_MIN = 20 }; /* for a curve that reaches the median */

/* The results of this size, and memory for their points. */
struct spread {
    const struct plot_data *plots;
    uint64_t size;
    const struct study_result **results; /* per curve; NULL if it has none */
    struct point *points;
    double percents[GRID];
    char words[GRID][WORD];
    const char *word_list[GRID];
};

/* ---- titles ---- */

/* All kinds of samples that are shown, enum study_kind. Only some are latencies: a stream does not
 * wait between two posts, and a list is waited for as a whole. */
static unsigned kinds_of(const struct spread *spread)
{
    unsigned kinds = 0;
    for (size_t i = 0; i < spread->plots->curve_count; i++)
        kinds |= spread->results[i] ? study_kind(spread->results[i]) : 0;
    return kinds;
}

static const char *time_title(const struct spread *spread)
{
    switch (kinds_of(spread)) {
    case STUDY_STREAM:
        return "Time between posts";
    case STUDY_LIST:
        return "List time";
    case STUDY_LATENCY:
    case 0:
        return "Latency";
    default:
        return "Time";
    }
}

/* The last sentence of a caption: what samples are, where they differ. */
static const char *time_note(const struct spread *spread)
{
    static const char *const notes[] = {
        [STUDY_STREAM | STUDY_LATENCY] = " Streams: time between posts.",
        [STUDY_LIST | STUDY_LATENCY] = " Lists: time of a list.",
        [STUDY_LIST | STUDY_STREAM] = " Streams: time between posts. Lists: time of a list.",
        [STUDY_LIST | STUDY_STREAM | STUDY_LATENCY] =
            " Streams: time between posts. Lists: time of a list."};
    const char *note = notes[kinds_of(spread)];
    return note ? note : "";
}

/* ---- samples that are not in the documents ---- */

#define NO_HISTOGRAM                                                                               \
    "<p class=\"none\">Not in the documents: written with --histogram=none.</p></figure>\n"

static bool without_histogram(const struct spread *spread)
{
    for (size_t i = 0; i < spread->plots->curve_count; i++) {
        const struct study_result *result = spread->results[i];
        if (result && result->count && !result->bucket_count)
            return true;
    }
    return false;
}

/* ---- percentiles ---- */

/* Number of nines at a point of the grid; 50 % and 75 % and their like are exact. */
static double grid_nines(size_t i)
{
    size_t decade = i / PER_DECADE;
    double part = (double)(i % PER_DECADE) / PER_DECADE;
    if (i % PER_DECADE == 6)
        part = log10(2);
    else if (i % PER_DECADE == 12)
        part = log10(4);
    return (double)decade + part;
}

static double grid_percent(size_t i)
{
    return 100 - 100 * pow(10, -grid_nines(i));
}

static void percent_text(size_t i, char *text, size_t room)
{
    int digits = 1 + (int)(i / PER_DECADE);
    snprintf(text, room, "%.*f", digits, grid_percent(i));
    char *end = text + strlen(text);
    while (end[-1] == '0')
        *--end = 0;
    if (end[-1] == '.')
        *--end = 0;
    snprintf(end, room - (size_t)(end - text), " %%");
}

static size_t percentile_points(const struct spread *spread, size_t curve, struct point *points)
{
    double values[GRID];
    const struct study_result *result = spread->results[curve];
    if (!result || result_samples(result) < SAMPLES_MIN)
        return 0;
    size_t n = result_curve(result, spread->percents, GRID, values);
    for (size_t i = 0; i < n; i++)
        points[i] = (struct point){.x = grid_nines(i), .y = values[i], .low = NAN, .high = NAN};
    return n;
}

static void draw_percentiles(struct spread *spread, FILE *out)
{
    const struct plot_data *plots = spread->plots;
    struct plot plot = {.out = out, .value = "", .unit = "us", .crowded = plot_data_crowded(plots)};
    size_t most = 0, n;
    axis_open(&plot.x, "Percentile", AXIS_PERCENTILE, AXIS_LINEAR);
    axis_open(&plot.y, time_title(spread), AXIS_TIME, AXIS_EITHER);
    axis_fit(&plot.x, 0);
    for (size_t i = 0; i < plots->curve_count; i++) {
        n = percentile_points(spread, i, spread->points);
        most = n > most ? n : most;
        for (size_t j = 0; j < n; j++) {
            axis_fit(&plot.x, spread->points[j].x);
            axis_fit(&plot.y, spread->points[j].y);
        }
    }
    fputs("<figure>\n<h3>Percentiles</h3>\n", out);
    if (!most) {
        if (without_histogram(spread))
            fputs(NO_HISTOGRAM, out);
        else
            fprintf(out, "<p class=\"none\">Fewer than %d samples: no curve.</p></figure>\n",
                    SAMPLES_MIN);
        return;
    }
    for (size_t i = 0; i < most; i++)
        percent_text(i, spread->words[i], WORD);
    plot_open(&plot, "Percentiles, tail stretched", spread->word_list, most);
    for (size_t i = 0; i < plots->curve_count; i++) {
        n = percentile_points(spread, i, spread->points);
        plot_curve(&plot, plots->curves[i].family, plots->curves[i].label, spread->points, n,
                   DRAW_ROUGHLY);
    }
    plot_close(&plot);
    fprintf(out,
            "<figcaption>Percentile axis: each additional nine has equal width. A curve ends where "
            "fewer than ten samples lie beyond.%s</figcaption>\n</figure>\n",
            time_note(spread));
}

/* ---- histogram ---- */

/* Where the body of the samples ends. The tail is shown by the percentiles; here it would take most
 * of the width. At most the 99.9th percentile. */
static double body_end(const struct study_result *result)
{
    double least = result_below(result, 0), most = result_below(result, 0.95);
    return fmin(result_below(result, 0.999), most + 2 * (most - least));
}

static void histogram_range(const struct spread *spread, struct axis *axis)
{
    for (size_t i = 0; i < spread->plots->curve_count; i++) {
        const struct study_result *result = spread->results[i];
        if (!result || !result->bucket_count)
            continue;
        double end = body_end(result);
        for (size_t j = 0; j < result->bucket_count; j++) {
            const struct study_bucket *bucket = &result->buckets[j];
            if (bucket->low_us > end)
                break;
            axis_fit(axis, bucket->low_us);
            axis_fit(axis, bucket->high_us);
        }
    }
}

/* Spreads the samples of a bucket evenly over the columns that it covers; the first column also
 * takes what lies before it. Buckets ascend, so the next one starts at column from or later. */
static void add_bucket(const struct study_bucket *bucket, const double *edges, double *columns,
                       size_t *from)
{
    double width = bucket->high_us - bucket->low_us;
    while (*from < COLUMNS && edges[*from + 1] <= bucket->low_us)
        ++*from;
    for (size_t i = *from; i < COLUMNS && (i == *from || edges[i] < bucket->high_us); i++) {
        double low = i ? fmax(edges[i], bucket->low_us) : bucket->low_us;
        double share = width > 0 ? (fmin(edges[i + 1], bucket->high_us) - low) / width : i == *from;
        columns[i] += (double)bucket->count * fmin(fmax(share, 0), 1);
    }
}

/* Columns in percent of all samples of the family; beyond counts those right of the last edge. */
static bool add_family(const struct spread *spread, size_t family, const double *edges,
                       double *columns, double *beyond)
{
    double all = 0, counted = 0;
    memset(columns, 0, COLUMNS * sizeof *columns);
    for (size_t i = 0; i < spread->plots->curve_count; i++) {
        const struct study_result *result = spread->results[i];
        if (!result || spread->plots->curves[i].family != family)
            continue;
        all += (double)result_samples(result);
        for (size_t j = 0, from = 0; j < result->bucket_count; j++)
            add_bucket(&result->buckets[j], edges, columns, &from);
    }
    for (size_t i = 0; i < COLUMNS; i++)
        counted += columns[i];
    for (size_t i = 0; i < COLUMNS && all > 0; i++)
        columns[i] *= 100 / all;
    *beyond += fmax(all - counted, 0);
    return all > 0;
}

static void column_edges(const struct axis *axis, double *edges)
{
    for (size_t i = 0; i <= COLUMNS; i++) {
        double share = (double)i / COLUMNS;
        edges[i] = axis->form == AXIS_LOG ? axis->low * pow(axis->high / axis->low, share)
                                          : axis->low + (axis->high - axis->low) * share;
    }
}

static void draw_columns(struct plot *plot, const struct family *family, size_t number,
                         const double *edges, const double *columns)
{
    size_t first = 0, end = COLUMNS;
    while (end > first && columns[end - 1] <= 0)
        end--;
    while (first < end && columns[first] <= 0)
        first++;
    plot_columns(plot, number, family->label, edges + first, columns + first, end - first, first);
}

static double histogram_plot(struct spread *spread, struct plot *plot, const double *edges)
{
    const struct plot_data *plots = spread->plots;
    double columns[COLUMNS], beyond = 0, again = 0;
    axis_open(&plot->y, "Samples per column [%]", AXIS_NUMBER, AXIS_LINEAR);
    plot->y.from_zero = true;
    for (size_t i = 0; i < plots->family_count; i++)
        if (add_family(spread, i, edges, columns, &beyond))
            for (size_t j = 0; j < COLUMNS; j++)
                axis_fit(&plot->y, columns[j]);
    for (size_t i = 0; i < COLUMNS; i++) {
        char low[24], high[24];
        time_text(edges[i], low, sizeof low);
        time_text(edges[i + 1], high, sizeof high);
        /* A logarithmic axis has no place for zeros: the first column takes them. */
        if (!i && plot->x.form == AXIS_LOG)
            snprintf(spread->words[i], WORD, "up to %s", high);
        else
            snprintf(spread->words[i], WORD, "%s .. %s", low, high);
    }
    plot_open(plot, "Histogram", spread->word_list, COLUMNS);
    for (size_t i = 0; i < plots->family_count; i++)
        if (add_family(spread, i, edges, columns, &again))
            draw_columns(plot, &plots->families[i], i, edges, columns);
    plot_close(plot);
    return beyond;
}

static void draw_histogram(struct spread *spread, FILE *out)
{
    struct plot plot = {
        .out = out, .value = "", .unit = "%", .crowded = spread->plots->family_count > FEW};
    double edges[COLUMNS + 1], most = 0;
    axis_open(&plot.x, time_title(spread), AXIS_TIME, AXIS_EITHER);
    histogram_range(spread, &plot.x);
    fputs("<figure>\n<h3>Histogram</h3>\n", out);
    if (!isfinite(plot.x.low)) {
        fputs(without_histogram(spread) ? NO_HISTOGRAM
                                        : "<p class=\"none\">No samples.</p></figure>\n",
              out);
        return;
    }
    /* The columns depend on the axis, so it is settled here; plot_open does it only once. */
    axis_settle(&plot.x);
    plot.x.least = plot.x.low > 0 ? plot.x.low : plot.x.least;
    column_edges(&plot.x, edges);
    double beyond = histogram_plot(spread, &plot, edges);
    for (size_t i = 0; i < spread->plots->curve_count; i++)
        if (spread->results[i] && isfinite(spread->results[i]->max_us))
            most = fmax(most, spread->results[i]->max_us);
    fputs("<figcaption>Share of the samples in each of 100 columns", out);
    if (spread->plots->family_count < spread->plots->curve_count)
        fputs(", runs of a command combined", out);
    if (beyond >= 0.5) {
        char text[24];
        time_text(most, text, sizeof text);
        fprintf(out, ". Beyond the right edge: %.0f samples, up to %s", beyond, text);
    }
    fprintf(out, ".%s</figcaption>\n</figure>\n", time_note(spread));
}

/* ---- over time ---- */

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
    axis_open(&plot->y, time_title(spread), AXIS_TIME, AXIS_EITHER);
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

static void draw_intervals(struct spread *spread, FILE *out)
{
    const struct plot_data *plots = spread->plots;
    bool medians = has_medians(spread);
    struct plot plot = {.out = out,
                        .value = medians ? "median" : "mean",
                        .unit = "us",
                        .crowded = plot_data_crowded(plots)};
    if (!interval_axes(spread, &plot, medians))
        return;
    fputs("<figure>\n<h3>Over time</h3>\n", out);
    plot_open(&plot, "Over time", NULL, 0);
    for (size_t i = 0; i < plots->curve_count; i++) {
        const struct curve *curve = &plots->curves[i];
        size_t n = interval_points(spread->results[i], spread->points, medians, !plot.crowded);
        plot_curve(&plot, curve->family, curve->label, spread->points, n,
                   DRAW_ROUGHLY | (n == 1 ? DRAW_MARKERS : 0));
        n = medians && !plot.crowded ? largest_points(spread->results[i], spread->points) : 0;
        plot_trace(&plot, curve->family, spread->points, n);
    }
    plot_close(&plot);
    fprintf(out, "<figcaption>%s per interval%s.%s</figcaption>\n</figure>\n",
            medians ? "Median" : "Mean",
            plot.crowded ? ""
            : medians    ? "; band up to the 99th percentile; thin line: largest sample"
                         : "; band from the smallest to the largest sample",
            time_note(spread));
}

/* ---- all three ---- */

static size_t most_points(const struct plot_data *plots)
{
    size_t most = GRID;
    for (size_t i = 0; i < plots->curve_count; i++)
        for (size_t j = 0; j < plots->curves[i].count; j++)
            if (plots->curves[i].results[j]->interval_count > most)
                most = plots->curves[i].results[j]->interval_count;
    return most;
}

static void draw(struct spread *spread, FILE *out)
{
    const struct plot_data *plots = spread->plots;
    for (size_t i = 0; i < GRID; i++) {
        spread->word_list[i] = spread->words[i];
        spread->percents[i] = grid_percent(i);
    }
    for (size_t i = 0; i < plots->curve_count; i++)
        spread->results[i] = curve_at(&plots->curves[i], spread->size);
    draw_percentiles(spread, out);
    draw_histogram(spread, out);
    draw_intervals(spread, out);
}

int spread_draw(const struct plot_data *plots, uint64_t size, FILE *out)
{
    struct spread *spread = calloc(1, sizeof *spread);
    void *results = calloc(plots->curve_count + 1, sizeof(struct study_result *));
    struct point *points = calloc(most_points(plots), sizeof *points);
    int status = 0;
    if (spread && results && points) {
        *spread =
            (struct spread){.plots = plots, .size = size, .results = results, .points = points};
        draw(spread, out);
    } else {
        status = fail(-ENOMEM, "no memory for a plot");
    }
    free(points);
    free(results);
    free(spread);
    return status;
}
