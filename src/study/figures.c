/* SPDX-License-Identifier: BSD-3-Clause */
/* The results in numbers: what was run, where and when, and the key results. */
#include "study/plot.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CARDS = 8 };

/* ---- headline ---- */

/* Each distinct word once, up to five. */
static void listed(FILE *out, const struct plot_data *plots,
                   const char *(*word)(const struct study_run *))
{
    size_t printed = 0;
    for (size_t i = 0; i < plots->run_count; i++) {
        const char *mine = word(&plots->runs[i]);
        size_t j = 0;
        for (; mine && j < i; j++) {
            const char *other = word(&plots->runs[j]);
            if (other && strcmp(mine, other) == 0)
                break;
        }
        if (!mine || j < i)
            continue;
        if (printed == 5)
            fputs(", ...", out);
        if (printed++ >= 5)
            continue;
        fputs(printed > 1 ? ", " : "", out);
        html_text(out, mine);
    }
}

static const char *tool_of(const struct study_run *run)
{
    return run->tool;
}

static const char *client_of(const struct study_run *run)
{
    return pair_value(run->client, run->client_count, "host");
}

static const char *server_of(const struct study_run *run)
{
    return pair_value(run->server, run->server_count, "host");
}

static const char *form_of(const struct study_run *run)
{
    return run->result_count ? run->results[0].form : NULL;
}

/* From the first start to the last end; times of documents sort as text. */
static void when(const struct plot_data *plots, FILE *out)
{
    const char *begun = NULL, *ended = NULL;
    for (size_t i = 0; i < plots->run_count; i++) {
        const struct study_run *run = &plots->runs[i];
        if (run->begun && (!begun || strcmp(run->begun, begun) < 0))
            begun = run->begun;
        if (run->ended && (!ended || strcmp(run->ended, ended) > 0))
            ended = run->ended;
    }
    if (!begun || !ended || strlen(begun) < 19 || strlen(ended) < 19)
        return;
    fputs("<p class=\"sub\">", out);
    html_print(out, "%.10s %.8s to ", begun, begun + 11);
    if (strncmp(begun, ended, 10) != 0)
        html_print(out, "%.10s ", ended);
    html_print(out, "%.8s UTC", ended + 11);
    fputs("</p>\n", out);
}

static bool complete(const struct study_run *run)
{
    return run->state && strcmp(run->state, "complete") == 0;
}

static size_t verdicts_not(const struct study_run *run, const char *wanted)
{
    size_t n = 0;
    for (size_t i = 0; i < run->condition_count; i++)
        n += !run->conditions[i].verdict || strcmp(run->conditions[i].verdict, wanted) != 0;
    return n;
}

static void alarms(const struct plot_data *plots, FILE *out)
{
    size_t printed = 0;
    for (size_t i = 0; i < plots->run_count; i++) {
        const struct study_run *run = &plots->runs[i];
        size_t unmet = verdicts_not(run, "passed");
        if (complete(run) && !unmet)
            continue;
        fputs(printed++ ? "" : "<div class=\"alarm\" role=\"note\">\n", out);
        fputs("<p><b class=\"name\">", out);
        html_text(out, plots->names[i]);
        fputs("</b>: ", out);
        if (!complete(run)) {
            html_text(out, run->state);
            fputs(run->reason && run->reason[0] ? ": " : "", out);
            html_text(out, run->reason ? run->reason : "");
        }
        if (unmet)
            fprintf(out, "%s%zu of %zu conditions not passed", complete(run) ? "" : "; ", unmet,
                    run->condition_count);
        fputs("</p>\n", out);
    }
    fputs(printed ? "</div>\n" : "", out);
}

/* ---- key results ---- */

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* What counts: of lists their bandwidth, otherwise a time. */
static double key_value(const struct study_result *result)
{
    return study_kind(result) == STUDY_LIST ? study_bytes_per_s(result) : result_time(result);
}

static bool has_value(const struct study_result *result)
{
    return result && isfinite(key_value(result));
}

static void bandwidth_text(double value, const char *unit, char *text, size_t room)
{
    snprintf(text, room, value < 1000 ? "%.4g %s" : "%.0f %s", value, unit);
}

static void key_text(const struct study_result *like, double value, char *text, size_t room)
{
    if (study_kind(like) == STUDY_LIST)
        bandwidth_text(value / 1e6, "MB/s", text, room);
    else
        time_figure(value, text, room);
}

/* The result of the family at that size, or at the smallest size that it has a value for. */
static const struct study_result *result_at(const struct plot_data *plots, size_t family,
                                            uint64_t size)
{
    const struct study_result *found = NULL;
    for (size_t i = 0; i < plots->curve_count; i++) {
        const struct curve *curve = &plots->curves[i];
        if (curve->family != family)
            continue;
        if (has_value(curve_at(curve, size)))
            return curve_at(curve, size);
        for (size_t j = 0; j < curve->count; j++)
            if (has_value(curve->results[j]) && (!found || curve->results[j]->size < found->size))
                found = curve->results[j];
    }
    return found;
}

static void card_of_many(const struct plot_data *plots, size_t family,
                         const struct study_result *like, const char *text, FILE *out)
{
    double *found = calloc(plots->families[family].members + 1, sizeof *found);
    enum study_kind kind = study_kind(like);
    char median[32], low[32], high[32];
    size_t n = 0;
    for (size_t i = 0; i < plots->curve_count && found; i++) {
        const struct study_result *result = curve_at(&plots->curves[i], like->size);
        if (plots->curves[i].family == family && has_value(result))
            found[n++] = key_value(result);
    }
    if (n) {
        qsort(found, n, sizeof *found, ascending);
        key_text(like, (found[(n - 1) / 2] + found[n / 2]) / 2, median, sizeof median);
        key_text(like, found[0], low, sizeof low);
        key_text(like, found[n - 1], high, sizeof high);
        fprintf(out, "<strong>%s</strong> <small>%s %zu %s at %s</small>\n", median,
                kind == STUDY_STREAM ? "per message, median of" : "median of", n,
                kind == STUDY_LATENCY ? "medians" : "runs", text);
        fprintf(out, "<p><small>from</small> %s <small>to</small> %s</p>\n", low, high);
    }
    free(found);
}

static void card_of_one(const struct study_result *result, const char *text, FILE *out)
{
    static const char *const words[] = {
        [STUDY_LATENCY] = "median at", [STUDY_STREAM] = "per message at", [STUDY_LIST] = "at"};
    enum study_kind kind = study_kind(result);
    char value[32];
    double tail = result_percentile(result, 99);
    key_text(result, key_value(result), value, sizeof value);
    fprintf(out, "<strong>%s</strong> <small>%s %s</small>\n", value, words[kind], text);
    if (kind == STUDY_STREAM)
        return;
    if (isfinite(tail)) {
        time_figure(tail, value, sizeof value);
        fprintf(out, "<p>%s <small>99th percentile%s</small></p>\n", value,
                kind == STUDY_LIST ? " of list times" : "");
    } else {
        fputs("<p><small>no 99th percentile: too few samples</small></p>\n", out);
    }
}

static double best_bandwidth(const struct plot_data *plots, size_t family, enum study_kind kind)
{
    double best = NAN;
    for (size_t i = 0; i < plots->curve_count; i++)
        for (size_t j = 0; j < plots->curves[i].count && plots->curves[i].family == family; j++)
            if (study_kind(plots->curves[i].results[j]) == kind)
                best = fmax(best, study_bytes_per_s(plots->curves[i].results[j]));
    return best;
}

/* In the unit of the tool. */
static void card_best(const struct plot_data *plots, size_t family, FILE *out)
{
    double streams = best_bandwidth(plots, family, STUDY_STREAM);
    double lists = best_bandwidth(plots, family, STUDY_LIST);
    char text[32] = "";
    if (isfinite(streams))
        bandwidth_text(streams / (1 << 20), "MiB/s", text, sizeof text);
    else if (isfinite(lists))
        bandwidth_text(lists / 1e6, "MB/s", text, sizeof text);
    if (*text)
        fprintf(out, "<p>%s <small>best</small></p>\n", text);
}

static void card(const struct plot_data *plots, size_t family, uint64_t size, FILE *out)
{
    const struct study_result *result = result_at(plots, family, size);
    char text[24];
    fprintf(out, "<div class=\"h%zu\"><div class=\"who\">", family % HUES);
    html_text(out, plots->families[family].label);
    fputs("</div>\n", out);
    if (result) {
        size_words(result->size, text, sizeof text);
        if (plots->families[family].members > 1)
            card_of_many(plots, family, result, text, out);
        else
            card_of_one(result, text, out);
    } else {
        fputs("<strong>-</strong> <small>no samples</small>\n", out);
    }
    card_best(plots, family, out);
    fputs("</div>\n", out);
}

void figures_headline(const struct plot_data *plots, const char *title, FILE *out)
{
    fputs("<header>\n<h1>", out);
    if (title)
        html_text(out, title);
    else
        listed(out, plots, tool_of);
    if (!title && plots->run_count != 1)
        fprintf(out, ": %zu runs", plots->run_count);
    fputs("</h1>\n<p>", out);
    listed(out, plots, client_of);
    fputs(" to ", out);
    listed(out, plots, server_of);
    fputs(" <span class=\"sub\">over</span> ", out);
    listed(out, plots, form_of);
    fputs("</p>\n", out);
    when(plots, out);
    alarms(plots, out);
    describe_disturbance(plots, out);
    if (!plots->curve_count)
        fputs("<p class=\"none\">Nothing was measured.</p>\n", out);
    fputs("<div class=\"cards\">\n", out);
    /* All at the size that the page opens with, where they have it. */
    size_t first = plot_data_first_size(plots);
    for (size_t i = 0; i < plots->family_count && i < CARDS; i++)
        card(plots, i, plots->sizes[first], out);
    fputs("</div>\n", out);
    if (plots->family_count > CARDS)
        fprintf(out, "<p class=\"sub\">The first %d of %zu; the table below has all.</p>\n", CARDS,
                plots->family_count);
    fputs("</header>\n", out);
}
