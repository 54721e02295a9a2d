/* SPDX-License-Identifier: BSD-3-Clause */
/* ucx_perftest's results: the boxed table, and CSV. A row an interval and one at the end; the first
 * group of columns is called what it is in this test, and the box is drawn again when that changes.
 */
#include "report/report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const double mib = 1024 * 1024;

static int flushed(const struct report_boxed *b)
{
    if (!fflush(b->out) && !ferror(b->out))
        return 0;
    if (errno == EINTR)
        return fail(-EINTR, "interrupted");
    return fail(-EIO, "writing results: %s", strerror(errno));
}

/* ---- the box ---- */

static const char rule[] =
    "+--------------+---------+---------+---------+----------+----------+-----------+-----------+";

static void draw(struct report_boxed *b, const char *group)
{
    fprintf(b->out,
            "+--------------+-----------------------------+---------------------+------------------"
            "-----+\n"
            "|              |%*s (usec)%*s|   bandwidth (MB/s)  |  message rate (msg/s) |\n"
            "%s\n"
            "| # iterations | typical | average | overall |  average |  overall |   average |   "
            "overall |\n"
            "%s\n",
            14, group, 8, "", rule, rule);
}

/* A border with the labels in it. */
static void draw_labels(const struct report_boxed *b)
{
    char line[sizeof rule];
    size_t at = 1;
    memcpy(line, rule, sizeof line);
    for (const char *from = b->labels; *from && at + 1 < sizeof line - 1; from++)
        line[at++] = *from == '\n' ? '/' : *from;
    fprintf(b->out, "%s\n", line);
}

/* Digits in groups of three, without asking any locale. */
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

static void boxed_row(struct report_boxed *b, const struct weft_result *r)
{
    number(b, "", 14, 0, (double)r->iterations);
    fprintf(b->out, " %9.3f %9.3f %9.3f", r->latency_us.typical, r->latency_us.moment,
            r->latency_us.overall);
    number(b, " ", 10, 2, r->bandwidth.moment / mib);
    number(b, " ", 10, 2, r->bandwidth.overall / mib);
    number(b, " ", 11, 0, r->rate.moment);
    number(b, " ", 11, 0, r->rate.overall);
    fputc('\n', b->out);
}

/* ---- CSV ---- */

/* Quoted where a comma or a quote would be taken for more. */
static void field(const struct report_boxed *b, const char *from, size_t length)
{
    bool plain = !memchr(from, ',', length) && !memchr(from, '"', length);
    if (!plain)
        fputc('"', b->out);
    for (size_t i = 0; i < length; i++) {
        if (from[i] == '"')
            fputc('"', b->out);
        fputc(from[i], b->out);
    }
    if (!plain)
        fputc('"', b->out);
    fputc(',', b->out);
}

/* One field a batch file; a label may be empty. */
static void fields(const struct report_boxed *b, const char *list)
{
    for (const char *column = b->columns; *column;) {
        size_t length = strcspn(list, "\n");
        field(b, list, length);
        list += length + (list[length] == '\n');
        column += strcspn(column, "\n");
        column += *column == '\n';
    }
}

static void csv_row(const struct report_boxed *b, const struct weft_result *r)
{
    fields(b, b->labels);
    fprintf(b->out, "%" PRIu64 ",%.3f,%.3f,%.3f,%.2f,%.2f,%.0f,%.0f\n", r->iterations,
            r->latency_us.typical, r->latency_us.moment, r->latency_us.overall,
            r->bandwidth.moment / mib, r->bandwidth.overall / mib, r->rate.moment, r->rate.overall);
}

/* ---- */

int report_boxed_begin(struct report_boxed *b, const char *group, const char *labels)
{
    b->labels = labels;
    if (b->csv) {
        if (!b->group) {
            fields(b, b->columns);
            fprintf(b->out, "iterations,typical_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,"
                            "overall_mr\n");
        }
    } else {
        if (!b->group || strcmp(b->group, group) != 0)
            draw(b, group);
        if (*labels)
            draw_labels(b);
    }
    b->group = group;
    return flushed(b);
}

int report_boxed_row(struct report_boxed *b, const struct weft_result *result)
{
    if (b->final_only && !result->final)
        return 0;
    if (b->csv)
        csv_row(b, result);
    else
        boxed_row(b, result);
    return flushed(b);
}
