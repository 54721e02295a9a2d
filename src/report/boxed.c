/* SPDX-License-Identifier: BSD-3-Clause */
/* ucx_perftest's results: the boxed table, and CSV. One row per interval and one at the end; the
 * heading of the first group of columns depends on the test, and the box is drawn again when it
 * changes. */
#include "report/report.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double mib = 1024 * 1024;

/* ---- the box ---- */

static const char rule[] =
    "+--------------+---------+---------+---------+----------+----------+-----------+-----------+";

static const char rule_today[] = "+--------------+--------------+----------+---------+---------+---"
                                 "-------+----------+-----------"
                                 "+-----------+";

enum { PERCENTILE = 9 };

static size_t percentiles_of(const struct report_boxed *b)
{
    size_t n = 0;
    while (b->percentiles && b->percentiles[n])
        n++;
    return n;
}

/* The part of a rule above the percentiles; without corners: one cell. */
static void rule_percentiles(const struct report_boxed *b, bool corners)
{
    size_t n = percentiles_of(b);
    for (size_t i = 0; i < n; i++) {
        for (int k = 0; k < PERCENTILE; k++)
            fputc('-', b->out);
        fputc(corners || i + 1 == n ? '+' : '-', b->out);
    }
}

static void group_percentiles(const struct report_boxed *b)
{
    size_t n = percentiles_of(b), width = n * (PERCENTILE + 1) - 1;
    const char *words = n > 1 ? "percentiles (usec)" : "(usec)";
    if (!n)
        return;
    int before = (int)(width - strlen(words)) / 2, behind = (int)(width - strlen(words)) - before;
    fprintf(b->out, "%*s%s%*s|", before, "", words, behind, "");
}

static void title_percentiles(const struct report_boxed *b)
{
    for (size_t i = 0; i < percentiles_of(b); i++) {
        char title[32];
        snprintf(title, sizeof title, "p%.10g", b->percentiles[i]);
        fprintf(b->out, "%*s |", PERCENTILE - 1, title);
    }
}

/* The first column's name. */
static void rank_title(const struct report_boxed *b, const char *form, char *text, size_t room)
{
    if (b->rank || b->today)
        snprintf(text, room, form, b->rank ? *b->rank : 50.0);
    else
        snprintf(text, room, "typical%s", *form && b->csv ? "_lat" : "");
}

static void draw_today(struct report_boxed *b, const char *group)
{
    char title[16];
    int right = strlen(group) > 8 ? 3 : 8, left = (int)(30 - right - strlen(" (usec)"));
    rank_title(b, "%.1f%%ile", title, sizeof title);
    fputs("+--------------+--------------+------------------------------+---------------------+"
          "-----------------------+",
          b->out);
    rule_percentiles(b, false);
    fprintf(b->out,
            "\n|              |              |%*s (usec)%*s|   bandwidth (MB/s)  |  message rate "
            "(msg/s) |",
            left, group, right, "");
    group_percentiles(b);
    fprintf(b->out, "\n%s", rule_today);
    rule_percentiles(b, true);
    fprintf(
        b->out,
        "\n|    %s     | # iterations | %8s | average | overall |  average |  overall |  average  "
        "|  overall  |",
        b->final_only ? " Test" : "Stage", title);
    title_percentiles(b);
    fprintf(b->out, "\n%s", rule_today);
    rule_percentiles(b, true);
    fputc('\n', b->out);
}

static void draw(struct report_boxed *b, const char *group)
{
    char title[16];
    rank_title(b, "%.1f%%ile", title, sizeof title);
    fputs("+--------------+-----------------------------+---------------------+------------------"
          "-----+",
          b->out);
    rule_percentiles(b, false);
    int right = strlen(group) > 8 ? 3 : 8;
    fprintf(b->out,
            "\n|              |%*s (usec)%*s|   bandwidth (MB/s)  |  message rate (msg/s) |",
            22 - right, group, right, "");
    group_percentiles(b);
    fprintf(b->out, "\n%s", rule);
    rule_percentiles(b, true);
    fprintf(b->out,
            "\n| # iterations |%*s%s| average | overall |  average |  overall |   average |   "
            "overall |",
            strlen(title) > 7 ? 9 : 8, title, strlen(title) > 7 ? "" : " ");
    title_percentiles(b);
    fprintf(b->out, "\n%s", rule);
    rule_percentiles(b, true);
    fputc('\n', b->out);
}

/* As many bytes of the labels as fit, with slashes between them. */
static size_t join_labels(const struct report_boxed *b, char *text, size_t room)
{
    size_t at = 0;
    for (const char *from = b->labels; *from && at < room; from++)
        text[at++] = *from == '\n' ? '/' : *from;
    return at;
}

/* A border with the labels in it. */
static void draw_labels(const struct report_boxed *b)
{
    char line[sizeof rule_today];
    size_t length = b->today ? sizeof rule_today : sizeof rule;
    memcpy(line, b->today ? rule_today : rule, length);
    join_labels(b, line + 1, length - 3);
    text_clean(line);
    fputs(line, b->out);
    rule_percentiles(b, true);
    fputc('\n', b->out);
}

/* Digits in groups of three, without a locale. */
static void grouped(double value, int decimals, char *text, size_t room)
{
    char plain[64];
    snprintf(plain, sizeof plain, "%.*f", decimals, value);
    size_t whole = strcspn(plain, "."), used = 0;
    for (size_t i = 0; plain[i] && used + 2 < room; i++) {
        if (i && i < whole && (whole - i) % 3 == 0)
            text[used++] = ',';
        text[used++] = plain[i];
    }
    text[used] = '\0';
}

static void number(const struct report_boxed *b, const char *before, int width, int decimals,
                   double value)
{
    char text[80];
    if (b->grouped)
        grouped(value, decimals, text, sizeof text);
    else
        snprintf(text, sizeof text, "%.*f", decimals, value);
    fprintf(b->out, "%s%*s", before, width, text);
}

/* A figure of the samples; what they are too short for is not printed as measured. */
static void sample_text(const struct result *r, double us, char *text, size_t room)
{
    if (report_below(r, us))
        report_below_text(r, text, room);
    else
        snprintf(text, room, "%.3f", us);
}

static void percentile_text(const struct result *r, double percent, char *text, size_t room)
{
    struct percentile p;
    if (report_percentile(r, percent, &p))
        snprintf(text, room, "-");
    else
        sample_text(r, p.us, text, room);
}

/* The first figure: the median, or the percentile that was asked for. */
static void rank_text(const struct report_boxed *b, const struct result *r, char *text, size_t room)
{
    double us = r->latency_us.typical;
    if (b->rank && *b->rank <= 0)
        us = (double)r->stats->min_ps * r->us_per_unit;
    else if (b->rank && *b->rank >= 100)
        us = (double)r->stats->max_ps * r->us_per_unit;
    else if (b->rank)
        return percentile_text(r, *b->rank, text, room);
    sample_text(r, us, text, room);
}

/* Current releases of UCX count a ping-pong's messages both ways. */
static double ways(const struct report_boxed *b)
{
    return b->today && b->legs == 2 ? 2 : 1;
}

/* Current releases of UCX have the labels here if only final rows are printed. */
static void stage(const struct report_boxed *b, const struct result *r)
{
    char labels[sizeof rule_today];
    labels[join_labels(b, labels, sizeof labels - 1)] = '\0';
    text_clean(labels);
    if (b->final_only)
        fprintf(b->out, "%10s", labels);
    else
        fprintf(b->out, "%-10s", r->final ? "Final:" : "[thread 0]");
}

/* Current releases of UCX print of several threads together only what is of the whole run. */
static void totals(const struct report_boxed *b, const struct result *r)
{
    double both = ways(b);
    fprintf(b->out, " %29.3f", r->latency_us.overall);
    number(b, " ", 22, 2, both * r->bandwidth.overall / mib);
    number(b, " ", 23, 0, both * r->rate.overall);
}

static void figures(const struct report_boxed *b, const struct result *r)
{
    char text[32];
    double both = ways(b);
    rank_text(b, r, text, sizeof text);
    fprintf(b->out, " %*s %9.3f %9.3f", b->today ? 10 : 9, text, r->latency_us.recent,
            r->latency_us.overall);
    number(b, " ", b->today ? 11 : 10, 2, both * r->bandwidth.recent / mib);
    number(b, " ", 10, 2, both * r->bandwidth.overall / mib);
    number(b, " ", 11, 0, both * r->rate.recent);
    number(b, " ", 11, 0, both * r->rate.overall);
}

static void boxed_row(const struct report_boxed *b, const struct result *r)
{
    char text[32];
    if (b->today)
        stage(b, r);
    number(b, "", b->today ? 18 : 14, 0, (double)r->count);
    if (b->today && r->final && b->threads > 1)
        totals(b, r);
    else
        figures(b, r);
    for (size_t i = 0; i < percentiles_of(b); i++) {
        percentile_text(r, b->percentiles[i], text, sizeof text);
        fprintf(b->out, " %*s", PERCENTILE, text);
    }
    fputc('\n', b->out);
}

/* ---- CSV ---- */

/* One field per batch file; a label may be empty. */
static void fields(const struct report_boxed *b, const char *list)
{
    for (const char *column = b->columns; *column;) {
        size_t length = strcspn(list, "\n");
        csv_field(b->out, list, length);
        list += length + (list[length] == '\n');
        column += strcspn(column, "\n");
        column += *column == '\n';
    }
}

static void csv_row(const struct report_boxed *b, const struct result *r)
{
    char text[32];
    double both = ways(b);
    fields(b, b->labels);
    rank_text(b, r, text, sizeof text);
    fprintf(b->out, "%" PRIu64 ",%s,%.3f,%.3f,%.2f,%.2f,%.0f,%.0f", r->count, text,
            r->latency_us.recent, r->latency_us.overall, both * r->bandwidth.recent / mib,
            both * r->bandwidth.overall / mib, both * r->rate.recent, both * r->rate.overall);
    for (size_t i = 0; i < percentiles_of(b); i++) {
        percentile_text(r, b->percentiles[i], text, sizeof text);
        fprintf(b->out, ",%s", text);
    }
    fputc('\n', b->out);
}

/* ---- */

static void csv_titles(const struct report_boxed *b)
{
    char title[32];
    rank_title(b, "%.1f_percentile_lat", title, sizeof title);
    fields(b, b->columns);
    fprintf(b->out, "iterations,%s,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr", title);
    for (size_t i = 0; i < percentiles_of(b); i++)
        fprintf(b->out, ",p%.10g", b->percentiles[i]);
    fputc('\n', b->out);
}

static int boxed_begin(struct report *report, const struct facts *facts)
{
    struct report_boxed *b = (struct report_boxed *)report;
    /* Only final rows: there is one box, and it is right for all of them. */
    bool one = b->final_only && b->mixed;
    const char *group = one ? "overhead/latency" : facts->method->samples(facts->spec);
    b->legs = facts->legs;
    b->threads = facts->spec->threads;
    if (b->csv && !b->group)
        csv_titles(b);
    if (!b->csv && (!b->group || strcmp(b->group, group) != 0))
        (b->today ? draw_today : draw)(b, group);
    if (!b->csv && *b->labels && !(b->today && b->final_only))
        draw_labels(b);
    b->group = group;
    return report_flush(b->out);
}

static int add_row(struct report *report, const struct result *result)
{
    struct report_boxed *b = (struct report_boxed *)report;
    if (b->csv)
        csv_row(b, result);
    else
        boxed_row(b, result);
    return report_flush(b->out);
}

static int boxed_interval(struct report *report, const struct result *result)
{
    const struct report_boxed *b = (const struct report_boxed *)report;
    return b->final_only ? 0 : add_row(report, result);
}

/* A test that was cut short has printed its rows. */
static int boxed_final(struct report *report, const struct result *result)
{
    return result->final ? add_row(report, result) : 0;
}

static const struct report_ops ops = {
    .name = "boxed", .begin = boxed_begin, .interval = boxed_interval, .row = boxed_final};

void report_boxed_open(struct report_boxed *boxed, FILE *out)
{
    *boxed = (struct report_boxed){.report = {&ops}, .out = out, .columns = "", .labels = ""};
}
