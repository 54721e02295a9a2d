/* SPDX-License-Identifier: BSD-3-Clause */
/* The distribution of the samples of one size: percentiles on an axis that stretches the tail, and
 * a histogram in columns wider than the buckets of documents. Of very many runs, the medians of the
 * slowest commands. */
#include "study/plot.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PER_DECADE = 20, DECADES = 9, GRID = PER_DECADE * DECADES + 1, COLUMNS = 100, WORD = 64 };
#define SAMPLES_MIN 20 /* for a curve that reaches the median */
#define TEXT_OF_(x) #x
#define TEXT_OF(x)  TEXT_OF_(x)

/* Texts of the x axis. */
struct spread_words {
    double percents[GRID];
    char words[GRID][WORD];
    const char *list[GRID];
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

const char *spread_title(const struct spread *spread)
{
    switch (kinds_of(spread)) {
    case STUDY_STREAM:
        return "Time between posts [us]";
    case STUDY_LIST:
        return "List time [us]";
    case STUDY_LATENCY:
    case 0:
        return "Latency [us]";
    default:
        return "Time [us]";
    }
}

const char *spread_note(const struct spread *spread)
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
    size_t n = result_curve(result, spread->words->percents, GRID, values);
    for (size_t i = 0; i < n; i++)
        points[i] = (struct point){.x = grid_nines(i), .y = values[i], .low = NAN, .high = NAN};
    return n;
}

/* The values of all runs of a family, one row of the grid each; returns how many rows. */
static size_t family_values(struct spread *spread, size_t family)
{
    size_t rows = 0;
    for (size_t i = 0; i < spread->plots->curve_count; i++) {
        const struct study_result *result = spread->results[i];
        double *row = spread->values + rows * GRID;
        if (spread->plots->curves[i].family != family || !result ||
            result_samples(result) < SAMPLES_MIN)
            continue;
        for (size_t k = result_curve(result, spread->words->percents, GRID, row); k < GRID; k++)
            row[k] = NAN;
        rows++;
    }
    return rows;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* The median of the runs of a family at every fourth point of the grid, and all of them as a band.
 */
static size_t family_points(struct spread *spread, size_t family, struct point *points)
{
    size_t rows = family_values(spread, family), n = 0;
    double *column = spread->values + rows * GRID;
    for (size_t i = 0; i < GRID; i += 4) {
        size_t have = 0;
        for (size_t k = 0; k < rows; k++)
            if (isfinite(spread->values[k * GRID + i]))
                column[have++] = spread->values[k * GRID + i];
        if (2 * have <= rows)
            break;
        qsort(column, have, sizeof *column, ascending);
        points[n] = (struct point){.x = grid_nines(i),
                                   .y = (column[(have - 1) / 2] + column[have / 2]) / 2,
                                   .low = have > 1 ? column[0] : NAN,
                                   .high = have > 1 ? column[have - 1] : NAN};
        percent_text(i, points[n].at, sizeof points[n].at);
        n++;
    }
    return n;
}

/* Curve by curve, or of very many family by family. */
static size_t percentile_curve(struct spread *spread, size_t i, struct plot *plot)
{
    if (!plot->many)
        return percentile_points(spread, i, spread->points);
    return spread->families[i] ? family_points(spread, i, spread->points) : 0;
}

static size_t percentile_axes(struct spread *spread, struct plot *plot, size_t curves)
{
    size_t most = 0;
    axis_open(&plot->x, "Percentile", AXIS_PERCENTILE, AXIS_LINEAR);
    axis_open(&plot->y, spread_title(spread), AXIS_TIME, AXIS_EITHER);
    axis_fit(&plot->x, 0);
    for (size_t i = 0; i < curves; i++) {
        size_t n = percentile_curve(spread, i, plot);
        most = n > most ? n : most;
        for (size_t j = 0; j < n; j++) {
            axis_fit(&plot->x, spread->points[j].x);
            axis_fit(&plot->y, spread->points[j].y);
            axis_fit(&plot->y, spread->points[j].high);
        }
    }
    return most;
}

static int spread_close(const struct spread *spread, struct picture *f, const char *text)
{
    char caption[400], left_out[80] = "";
    if (spread->left_out)
        snprintf(left_out, sizeof left_out, " The %d slowest of %zu are drawn.", FEW,
                 FEW + spread->left_out);
    snprintf(caption, sizeof caption, "%s%s%s", text, left_out, spread_note(spread));
    return picture_close(f, caption);
}

/* On the page the size is said above. */
int spread_open(const struct spread *spread, struct picture *f, const char *name, const char *title)
{
    char file[64], full[96], size[24];
    size_text(spread->size, size, sizeof size);
    snprintf(file, sizeof file, "%s-%s", name, size);
    size_words(spread->size, size, sizeof size);
    snprintf(full, sizeof full, "%s at %s", title, size);
    return picture_open(f, spread->canvas, "h3", file, spread->canvas->page ? title : full);
}

static int draw_percentiles(struct spread *spread)
{
    const struct plot_data *plots = spread->plots;
    struct plot plot = {.value = "",
                        .unit = "us",
                        .crowded = plot_data_crowded(plots),
                        .many = plot_data_many(plots)};
    size_t curves = plot.many ? plots->family_count : plots->curve_count;
    size_t most = percentile_axes(spread, &plot, curves);
    struct picture f;
    int status = spread_open(spread, &f, "percentiles", "Percentiles");
    if (status)
        return status;
    if (!most) {
        picture_none(&f, without_histogram(spread)
                             ? NO_HISTOGRAM
                             : "Fewer than " TEXT_OF(SAMPLES_MIN) " samples: "
                                                                  "no curve.");
        return 0;
    }
    plot.out = f.out;
    for (size_t i = 0; i < most; i++)
        percent_text(i, spread->words->words[i], WORD);
    plot_open(&plot, "Percentiles, tail stretched", spread->words->list, plot.many ? 0 : most);
    for (size_t i = 0; i < curves; i++) {
        size_t n = percentile_curve(spread, i, &plot);
        plot_curve(&plot, plot.many ? i : plots->curves[i].family,
                   plot.many ? plots->families[i].label : plots->curves[i].label, spread->points, n,
                   DRAW_ROUGHLY | (plot.many ? DRAW_BOLD : 0));
    }
    plot_close(&plot);
    return spread_close(spread, &f,
                        plot.many
                            ? "Percentile axis: each additional nine has equal width. Median "
                              "of the runs; band: all runs."
                            : "Percentile axis: each additional nine has equal width. A curve "
                              "ends where fewer than ten samples lie beyond.");
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
        if (!result || !result->bucket_count || !spread->families[spread->plots->curves[i].family])
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
    if (!spread->families[family])
        return false;
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
            snprintf(spread->words->words[i], WORD, "up to %s", high);
        else
            snprintf(spread->words->words[i], WORD, "%s .. %s", low, high);
    }
    plot_open(plot, "Histogram", spread->words->list, COLUMNS);
    for (size_t i = 0; i < plots->family_count; i++)
        if (add_family(spread, i, edges, columns, &again))
            draw_columns(plot, &plots->families[i], i, edges, columns);
    plot_close(plot);
    return beyond;
}

/* What the columns do not show, too. */
static void histogram_text(const struct spread *spread, double beyond, char *text, size_t room)
{
    char tail[96] = "", largest[24];
    double most = 0;
    for (size_t i = 0; i < spread->plots->curve_count; i++)
        if (spread->results[i] && isfinite(spread->results[i]->max_us))
            most = fmax(most, spread->results[i]->max_us);
    time_text(most, largest, sizeof largest);
    if (beyond >= 0.5)
        snprintf(tail, sizeof tail, ". Beyond the right edge: %.0f samples, up to %s", beyond,
                 largest);
    snprintf(text, room, "Share of the samples in each of 100 columns%s%s.",
             spread->plots->family_count < spread->plots->curve_count
                 ? ", runs of a command combined"
                 : "",
             tail);
}

static int draw_histogram(struct spread *spread)
{
    struct plot plot = {.value = "", .unit = "%", .crowded = spread->plots->family_count > FEW};
    double edges[COLUMNS + 1];
    char text[240];
    struct picture f;
    axis_open(&plot.x, spread_title(spread), AXIS_TIME, AXIS_EITHER);
    histogram_range(spread, &plot.x);
    int status = spread_open(spread, &f, "histogram", "Histogram");
    if (status)
        return status;
    if (!isfinite(plot.x.low)) {
        picture_none(&f, without_histogram(spread) ? NO_HISTOGRAM : "No samples.");
        return 0;
    }
    plot.out = f.out;
    /* The columns depend on the axis, so it is settled here; plot_open does it only once. */
    axis_settle(&plot.x);
    plot.x.least = plot.x.low > 0 ? plot.x.low : plot.x.least;
    column_edges(&plot.x, edges);
    double beyond = histogram_plot(spread, &plot, edges);
    histogram_text(spread, beyond, text, sizeof text);
    return spread_close(spread, &f, text);
}

/* ---- all three ---- */

/* Of very many families, the slowest ones. */
static void choose_families(struct spread *spread)
{
    const struct plot_data *plots = spread->plots;
    bool all = !plot_data_many(plots) || plots->family_count <= FEW;
    for (size_t i = 0; i < plots->family_count; i++)
        spread->families[i] = all;
    for (size_t n = 0; n < FEW && !all; n++) {
        size_t slowest = plots->family_count;
        double most = -1;
        for (size_t i = 0; i < plots->curve_count; i++) {
            const struct study_result *result = spread->results[i];
            double time = result ? result_time(result) : NAN;
            if (!spread->families[plots->curves[i].family] && time > most) {
                most = time;
                slowest = plots->curves[i].family;
            }
        }
        if (slowest < plots->family_count)
            spread->families[slowest] = true;
    }
    spread->left_out = all ? 0 : plots->family_count - FEW;
}

static size_t most_points(const struct plot_data *plots)
{
    size_t most = GRID;
    for (size_t i = 0; i < plots->curve_count; i++)
        for (size_t j = 0; j < plots->curves[i].count; j++)
            if (plots->curves[i].results[j]->interval_count > most)
                most = plots->curves[i].results[j]->interval_count;
    return most;
}

static int draw(struct spread *spread)
{
    const struct plot_data *plots = spread->plots;
    for (size_t i = 0; i < GRID; i++) {
        spread->words->list[i] = spread->words->words[i];
        spread->words->percents[i] = grid_percent(i);
    }
    for (size_t i = 0; i < plots->curve_count; i++)
        spread->results[i] = curve_at(&plots->curves[i], spread->size);
    choose_families(spread);
    int status = draw_percentiles(spread);
    if (!status)
        status = draw_histogram(spread);
    return status ? status : over_time_draw(spread);
}

int spread_draw(struct canvas *canvas, uint64_t size)
{
    const struct plot_data *plots = canvas->plots;
    void *results = calloc(plots->curve_count + 1, sizeof(struct study_result *));
    struct spread spread = {.canvas = canvas,
                            .plots = plots,
                            .size = size,
                            .results = results,
                            .families = calloc(plots->family_count + 1, sizeof(bool)),
                            .points = calloc(most_points(plots), sizeof *spread.points),
                            .values = calloc((plots->curve_count + 1) * (GRID + 1), sizeof(double)),
                            .words = calloc(1, sizeof *spread.words)};
    bool room = results && spread.families && spread.points && spread.values && spread.words;
    int status = room ? draw(&spread) : fail(-ENOMEM, "no memory for the plots of a size");
    free(results);
    free(spread.families);
    free(spread.points);
    free(spread.values);
    free(spread.words);
    return status;
}
