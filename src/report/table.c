/* SPDX-License-Identifier: BSD-3-Clause */
/* The CXI tools' transcript: header, samples if asked for, a row a size. One separator between
 * blocks, never two. Everything is flushed as it appears: scripts read it through pipes. */
#include "core/opt.h"
#include "report/report.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

enum { COLUMN = 10, COLUMNS = 5, LABEL = 17 };

static int flushed(struct report_table *t)
{
    if (!fflush(t->out) && !ferror(t->out))
        return 0;
    if (errno == EINTR)
        return fail(-EINTR, "interrupted");
    return fail(-EIO, "writing results: %s", strerror(errno));
}

static void separator(struct report_table *t)
{
    for (int i = 0; i < t->width; i++)
        fputc('-', t->out);
    fputc('\n', t->out);
    t->open = false;
}

/* ---- header ---- */

static void header_line(struct report_table *t, const struct opt *row)
{
    char label[48], value[256];
    if (row->show) {
        if (row->show(t->facts, value, sizeof value) < 0)
            return;
    } else {
        opt_format(row, t->facts->plan, value, sizeof value);
    }
    opt_expand(row, row->label, &t->facts->op->help, label, sizeof label);
    fprintf(t->out, "%-*s: %s\n", LABEL, label, value);
}

/* Returns how wide its column is. */
static int percentile_title(double percent, char *title, size_t room)
{
    int n = snprintf(title, room, "p%.10g[us]", percent);
    return n > COLUMN ? n : COLUMN;
}

/* Rows say their place in the header; places are few, so look for one after the other. */
static void header(struct report_table *t)
{
    const struct opt_set *set = t->facts->set;
    int last = 0;
    for (const struct opt *row = opt_next(set, NULL); row; row = opt_next(set, row))
        last = row->header > last ? row->header : last;
    for (int place = 1; place <= last; place++)
        for (const struct opt *row = opt_next(set, NULL); row; row = opt_next(set, row))
            if (row->header == place)
                header_line(t, row);
}

static int table_begin(struct report *report, const struct bench_facts *facts)
{
    struct report_table *t = (struct report_table *)report;
    t->facts = facts;
    t->width = facts->op->size_width + COLUMNS * (COLUMN + 2);
    for (const double *p = t->percentiles; *p; p++) {
        char title[32];
        t->width += 2 + percentile_title(*p, title, sizeof title);
    }
    separator(t);
    fprintf(t->out, "    %s\n", facts->title);
    header(t);
    separator(t);
    return flushed(t);
}

/* ---- results ---- */

static int table_sample(struct report *report, uint64_t number, uint64_t ps)
{
    struct report_table *t = (struct report_table *)report;
    if (!number) {
        if (t->open)
            separator(t);
        fprintf(t->out, "%10s  %11s\n", t->facts->op->number, "Latency[us]");
    }
    fprintf(t->out, "%10" PRIu64 "  %11.3f\n", number, (double)ps / 1e6);
    t->open = true;
    t->titled = false;
    return 0;
}

static void titles(struct report_table *t)
{
    const struct op *op = t->facts->op;
    if (t->open)
        separator(t);
    fprintf(t->out, "%*s  %*s  %*s  %*s  %*s  %*s", op->size_width, op->size, COLUMN, op->many,
            COLUMN, "Min[us]", COLUMN, "Max[us]", COLUMN, "Mean[us]", COLUMN, "StdDev[us]");
    for (const double *p = t->percentiles; *p; p++) {
        char title[32];
        int width = percentile_title(*p, title, sizeof title);
        fprintf(t->out, "  %*s", width, title);
    }
    fputc('\n', t->out);
    t->titled = true;
}

static int table_row(struct report *report, const struct result *result)
{
    struct report_table *t = (struct report_table *)report;
    const struct stats *s = result->stats;
    const double ps[] = {(double)s->min_ps, (double)s->max_ps, s->mean_ps, stats_deviation_ps(s)};
    if (!t->titled)
        titles(t);
    fprintf(t->out, "%*zu  %*" PRIu64, t->facts->op->size_width, result->size, COLUMN, s->count);
    for (size_t i = 0; i < LENGTH(ps); i++) {
        char text[32];
        unit_us(ps[i] / 1e6, text, sizeof text);
        fprintf(t->out, "  %*s", COLUMN, text);
    }
    for (const double *p = t->percentiles; *p; p++) {
        char title[32], text[32] = "-";
        double at_ps;
        if (!stats_percentile(s, *p / 100, &at_ps))
            unit_us(at_ps / 1e6, text, sizeof text);
        fprintf(t->out, "  %*s", percentile_title(*p, title, sizeof title), text);
    }
    fputc('\n', t->out);
    t->open = true;
    return flushed(t);
}

static int table_end(struct report *report, int status)
{
    struct report_table *t = (struct report_table *)report;
    if (!t->facts->initiator) {
        fprintf(t->out, "See client for results.\n");
        t->open = true;
    } else if (status) {
        fprintf(t->out, "%s: %s.\n", status == -EINTR ? "Interrupted" : "Incomplete",
                t->open ? "the last row may be cut short" : "nothing was measured");
        t->open = true;
    }
    if (t->open)
        separator(t);
    return flushed(t);
}

static const struct report_ops table_ops = {.name = "table",
                                            .begin = table_begin,
                                            .sample = table_sample,
                                            .row = table_row,
                                            .end = table_end};

void report_table_open(struct report_table *table, FILE *out, const double *percentiles)
{
    static const double none[] = {0};
    *table = (struct report_table){
        .report = {&table_ops}, .out = out, .percentiles = percentiles ? percentiles : none};
}
