/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of all results: a row each, whose cells carry the exact numbers of the document. Of
 * very many runs there is a row for each command and size, with the medians over the runs. */
#include "study/plot.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PERCENTS = 16, LONG = 24 };

struct columns {
    double percents[PERCENTS];
    size_t percent_count;
    bool bandwidth, rate, labels;
    bool plain;     /* of very many rows: cells do not carry exact numbers */
    bool mib;       /* the unit of ucx_perftest, where one of its results has a bandwidth */
    unsigned kinds; /* enum study_kind */
};

static void add_percent(struct columns *columns, double percent)
{
    size_t at = 0;
    /* The median has its own column. */
    if (!isfinite(percent) || fabs(percent - 50) < 1e-9 || columns->percent_count == PERCENTS)
        return;
    while (at < columns->percent_count && columns->percents[at] < percent - 1e-9)
        at++;
    if (at < columns->percent_count && fabs(columns->percents[at] - percent) < 1e-9)
        return;
    memmove(&columns->percents[at + 1], &columns->percents[at],
            (columns->percent_count - at) * sizeof(double));
    columns->percents[at] = percent;
    columns->percent_count++;
}

static struct columns columns_of(const struct plot_data *plots)
{
    struct columns columns = {.plain = plot_data_many(plots)};
    for (size_t i = 0; i < plots->run_count; i++) {
        for (size_t j = 0; j < plots->runs[i].result_count; j++) {
            const struct study_result *result = &plots->runs[i].results[j];
            columns.bandwidth |= isfinite(result->bytes_per_s);
            columns.mib |= isfinite(result->bytes_per_s) && study_kind(result) != STUDY_LIST;
            columns.rate |= isfinite(result->messages_per_s);
            columns.labels |= result->label && result->label[0];
            columns.kinds |= study_kind(result);
            for (size_t k = 0; k < result->percentile_count; k++)
                add_percent(&columns, result->percentiles[k].percent);
        }
    }
    return columns;
}

static void titles(const struct columns *columns, FILE *out)
{
    fputs("<thead><tr><th>Run</th><th>Test</th>", out);
    fputs(columns->labels ? "<th>Label</th>" : "", out);
    fputs("<th class=\"n\">Size <small>[B]</small></th><th class=\"n\">Samples</th>"
          "<th class=\"n\">Min <small>[us]</small></th>"
          "<th class=\"n\">Median <small>[us]</small></th>",
          out);
    for (size_t i = 0; i < columns->percent_count; i++)
        fprintf(out, "<th class=\"n\">p%.10g <small>[us]</small></th>", columns->percents[i]);
    fputs(
        "<th class=\"n\">Max <small>[us]</small></th><th class=\"n\">Mean <small>[us]</small></th>"
        "<th class=\"n\">Deviation <small>[us]</small></th>",
        out);
    if (columns->bandwidth)
        fprintf(out, "<th class=\"n\">Bandwidth <small>[%s]</small></th>",
                columns->mib ? "MiB/s" : "MB/s");
    fputs(columns->rate ? "<th class=\"n\">Rate <small>[1/s]</small></th>" : "", out);
    fputs("</tr></thead>\n", out);
}

static void cell(FILE *out, const char *key, double value, const char *text)
{
    if (key)
        fprintf(out, "<td class=\"n\" data-key=\"%s\"", key);
    else
        fputs("<td class=\"n\"", out);
    if (key && isfinite(value)) {
        fputs(" data-value=\"", out);
        html_number(out, value);
        fputc('"', out);
    }
    fprintf(out, ">%s</td>", isfinite(value) ? text : "-");
}

static void time_cell(FILE *out, const char *key, double us)
{
    char text[340];
    unit_us(us, text, sizeof text);
    cell(out, key, us, text);
}

static void count_cell(FILE *out, const char *key, uint64_t count)
{
    if (key)
        fprintf(out, "<td class=\"n\" data-key=\"%s\" data-value=\"%" PRIu64 "\">%" PRIu64 "</td>",
                key, count, count);
    else
        fprintf(out, "<td class=\"n\">%" PRIu64 "</td>", count);
}

static void percent_cell(FILE *out, const struct study_result *result, double percent, bool plain)
{
    char text[32];
    const char *key = plain ? NULL : text;
    snprintf(text, sizeof text, "p%.10g", percent);
    for (size_t i = 0; i < result->percentile_count; i++) {
        if (fabs(result->percentiles[i].percent - percent) < 1e-9) {
            time_cell(out, key, result->percentiles[i].us);
            return;
        }
    }
    cell(out, key, NAN, "");
}

static void name_cell(FILE *out, size_t family, const char *name)
{
    fputs("<td class=\"who\" title=\"", out);
    html_text(out, name);
    fprintf(out, "\"><i class=\"swatch h%zu\"></i>", family % HUES);
    html_text(out, name);
    fputs("</td>", out);
}

/* From the test on. */
static void cells(const struct study_result *result, const struct columns *columns, FILE *out)
{
    char text[340];
#define KEY(name) (columns->plain ? NULL : (name))
    fputs("<td>", out);
    html_text(out, result->test);
    html_print(out, "%s%s", result->layout ? " " : "", result->layout ? result->layout : "");
    fputs(result->complete ? "</td>" : " <span class=\"badge bad\">incomplete</span></td>", out);
    if (columns->labels) {
        fputs("<td>", out);
        html_text(out, result->label);
        fputs("</td>", out);
    }
    count_cell(out, KEY("size"), result->size);
    count_cell(out, KEY("count"), result->count);
    time_cell(out, KEY("min_us"), result->min_us);
    time_cell(out, KEY("median_us"), result->median_us);
    for (size_t i = 0; i < columns->percent_count; i++)
        percent_cell(out, result, columns->percents[i], columns->plain);
    time_cell(out, KEY("max_us"), result->max_us);
    time_cell(out, KEY("mean_us"), result->mean_us);
    time_cell(out, KEY("deviation_us"), result->deviation_us);
    if (columns->bandwidth) {
        double bytes_per_s = study_bytes_per_s(result);
        snprintf(text, sizeof text, "%.2f", bytes_per_s / (columns->mib ? 1 << 20 : 1e6));
        cell(out, KEY("bytes_per_s"), bytes_per_s, text);
    }
    if (columns->rate) {
        snprintf(text, sizeof text, "%.0f", result_rate(result));
        cell(out, KEY("messages_per_s"), result_rate(result), text);
    }
#undef KEY
    fputs("</tr>\n", out);
}

/* ---- a row of a result ---- */

static size_t family_of(const struct plot_data *plots, size_t run,
                        const struct study_result *result)
{
    for (size_t i = 0; i < plots->curve_count; i++)
        if (plots->curves[i].run == &plots->runs[run] &&
            curve_at(&plots->curves[i], result->size) == result)
            return plots->curves[i].family;
    return 0;
}

static void rows(const struct plot_data *plots, const struct columns *columns, FILE *out)
{
    for (size_t i = 0; i < plots->run_count; i++) {
        for (size_t j = 0; j < plots->runs[i].result_count; j++) {
            const struct study_result *result = &plots->runs[i].results[j];
            fprintf(out, "<tr data-run=\"%zu\" data-result=\"%zu\">", i, j);
            name_cell(out, family_of(plots, i, result), plots->names[i]);
            cells(result, columns, out);
        }
    }
}

/* ---- a row of a family: medians over its runs ---- */

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* The median of a member of all results; not a number if one has none. */
static double median_of(const struct study_result *const *all, size_t count, size_t at,
                        double *values)
{
    for (size_t i = 0; i < count; i++) {
        memcpy(&values[i], (const char *)all[i] + at, sizeof *values);
        if (isnan(values[i]))
            return NAN;
    }
    qsort(values, count, sizeof *values, ascending);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

static void medians_of(const struct study_result *const *all, size_t count,
                       const struct columns *columns, struct study_result *medians,
                       struct study_percentile *percentiles, double *values)
{
    static const size_t members[] = {
        offsetof(struct study_result, min_us),        offsetof(struct study_result, median_us),
        offsetof(struct study_result, max_us),        offsetof(struct study_result, mean_us),
        offsetof(struct study_result, deviation_us),  offsetof(struct study_result, bytes_per_s),
        offsetof(struct study_result, messages_per_s)};
    *medians = *all[0];
    for (size_t i = 0; i < LENGTH(members); i++) {
        double median = median_of(all, count, members[i], values);
        memcpy((char *)medians + members[i], &median, sizeof median);
    }
    for (size_t i = 0; i < columns->percent_count; i++) {
        double percent = columns->percents[i];
        for (size_t k = 0; k < count; k++)
            values[k] = result_percentile(all[k], percent);
        qsort(values, count, sizeof *values, ascending);
        percentiles[i] = (struct study_percentile){.percent = percent, .us = values[count / 2]};
    }
    medians->percentiles = percentiles;
    medians->percentile_count = columns->percent_count;
    for (size_t i = 0; i < count; i++)
        medians->complete &= all[i]->complete;
}

static void family_rows(const struct plot_data *plots, size_t family, const struct columns *columns,
                        const struct study_result **all, double *values, FILE *out)
{
    struct study_percentile percentiles[PERCENTS];
    for (size_t s = 0; s < plots->size_count; s++) {
        struct study_result medians;
        size_t n = 0;
        for (size_t i = 0; i < plots->curve_count; i++) {
            const struct study_result *result = curve_at(&plots->curves[i], plots->sizes[s]);
            if (result && plots->curves[i].family == family)
                all[n++] = result;
        }
        if (!n)
            continue;
        medians_of(all, n, columns, &medians, percentiles, values);
        fputs("<tr>", out);
        name_cell(out, family, plots->families[family].label);
        cells(&medians, columns, out);
    }
}

static void families(const struct plot_data *plots, const struct columns *columns, FILE *out)
{
    void *all = calloc(plots->curve_count + 1, sizeof(struct study_result *));
    double *values = calloc(plots->curve_count + 1, sizeof *values);
    for (size_t i = 0; i < plots->family_count && all && values; i++)
        family_rows(plots, i, columns, all, values, out);
    free(all);
    free(values);
}

void figures_table(const struct plot_data *plots, FILE *out)
{
    struct columns columns = columns_of(plots);
    bool pooled = columns.plain && plots->family_count < plots->curve_count;
    size_t count = 0;
    for (size_t i = 0; i < plots->run_count; i++)
        count += plots->runs[i].result_count;
    fprintf(out,
            "<section id=\"figures\">\n<h2>Results</h2>\n<div class=\"scroll%s\" tabindex=\"0\">\n",
            count > LONG ? " long" : "");
    fputs("<table class=\"results\">", out);
    titles(&columns, out);
    fputs("<tbody>\n", out);
    if (columns.plain)
        families(plots, &columns, out);
    else
        rows(plots, &columns, out);
    fprintf(out,
            "</tbody></table>\n</div>\n<p class=\"sub\">%sPercentiles need at least ten samples "
            "beyond them, otherwise -.%s%s</p>\n</section>\n",
            pooled ? "Medians over the runs of each command. " : "",
            columns.kinds & STUDY_STREAM ? " Times of streams are times between posts." : "",
            columns.kinds & STUDY_LIST
                ? " Times of lists are times of whole lists; their bandwidth "
                  "and rate are of both directions together."
                : "");
}
