/* SPDX-License-Identifier: BSD-3-Clause */
/* The CXI tools' transcript: header, samples if requested, one row per size. One separator between
 * blocks, never two. Every line is flushed at once: scripts read it through pipes. */
#include "core/opt.h"
#include "report/report.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

enum { COLUMN = 10, LABEL = 17 };

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
    struct header header = {.facts = t->facts, .base = t->set->base};
    if (row->show) {
        if (row->show(&header, value, sizeof value) < 0)
            return;
    } else {
        opt_format(row, t->set->base, value, sizeof value);
    }
    text_clean(value); /* a device may be the other end's word */
    opt_expand(row, row->label, &t->facts->op->words->help, label, sizeof label);
    if (*label)
        fprintf(t->out, "%-*s: ", LABEL, label);
    fprintf(t->out, "%s\n", value);
}

/* Returns the width of its column. Of lists, it is a percentile of their times. */
static int percentile_title(const struct report_table *t, double percent, char *title, size_t room)
{
    const char *of = t->facts->method->lists ? "List " : "";
    int n = snprintf(title, room, "%sp%.10g[us]", of, percent);
    return n > COLUMN ? n : COLUMN;
}

/* Rows have their place in the header; there are few places, so search one after another. */
static void header(struct report_table *t)
{
    const struct opt_set *set = t->set;
    int last = 0;
    for (const struct opt *row = opt_next(set, NULL); row; row = opt_next(set, row))
        last = row->header > last ? row->header : last;
    for (int place = 1; place <= last; place++)
        for (const struct opt *row = opt_next(set, NULL); row; row = opt_next(set, row))
            if (row->header == place)
                header_line(t, row);
}

/* Widths and decimals by kind. Bandwidth is in MB/s, or in Gb/s on request. */
static const struct {
    int width, decimals;
} kinds[] = {[COLUMN_TIME] = {COLUMN, 0}, [COLUMN_BANDWIDTH] = {8, 2}, [COLUMN_RATE] = {15, 6}};

static const char *title_of(const struct report_table *t, const struct column *c)
{
    const char *rate = t->facts->op->words->rate;
    if (c->kind == COLUMN_RATE && rate)
        return rate;
    return c->kind == COLUMN_BANDWIDTH && t->gbits ? "BW[Gb/s]" : c->title;
}

/* Several devices have a row each, and a last column that says which. */
enum { DEVICE = 6 };

static int table_begin(struct report *report, const struct facts *facts)
{
    struct report_table *t = (struct report_table *)report;
    t->facts = facts;
    t->width = facts->op->words->size_width + COLUMN + 2;
    for (const struct column *c = facts->method->columns; c->title; c++)
        t->width += kinds[c->kind].width + 2;
    for (const double *p = t->percentiles; *p; p++) {
        char title[32];
        t->width += 2 + percentile_title(t, *p, title, sizeof title);
    }
    separator(t);
    fprintf(t->out, "    %s\n", t->title);
    header(t);
    separator(t);
    return report_flush(t->out);
}

/* ---- results ---- */

static int table_sample(struct report *report, uint64_t number, uint64_t ps)
{
    struct report_table *t = (struct report_table *)report;
    if (!number) {
        if (t->open)
            separator(t);
        fprintf(t->out, "%10s  %11s\n", t->facts->op->words->number, "Latency[us]");
    }
    fprintf(t->out, "%10" PRIu64 "  %11.3f\n", number, (double)ps / 1e6);
    t->open = true;
    t->titled = false;
    return 0;
}

static void titles(struct report_table *t)
{
    const struct op_words *words = t->facts->op->words;
    if (t->open)
        separator(t);
    fprintf(t->out, "%*s  %*s", words->size_width, words->size, COLUMN, words->many);
    for (const struct column *c = t->facts->method->columns; c->title; c++)
        fprintf(t->out, "  %*s", kinds[c->kind].width, title_of(t, c));
    for (const double *p = t->percentiles; *p; p++) {
        char title[32];
        int width = percentile_title(t, *p, title, sizeof title);
        fprintf(t->out, "  %*s", width, title);
    }
    fputs(t->devices ? "  Device\n" : "\n", t->out);
    t->titled = true;
}

static void cell(const struct report_table *t, int width, const struct result *result, double us,
                 bool known)
{
    char text[32];
    if (!known && report_below(result, us))
        report_below_text(result, text, sizeof text);
    else
        unit_us(us, text, sizeof text);
    fprintf(t->out, "  %*s", width, text);
}

static void figure(const struct report_table *t, const struct column *c, double value)
{
    if (c->kind == COLUMN_BANDWIDTH && t->gbits)
        value *= 8e-3;
    fprintf(t->out, "  %*.*f", kinds[c->kind].width, kinds[c->kind].decimals, value);
}

/* name: of the device, or NULL. */
static void put_row(struct report_table *t, const struct result *result, const char *name)
{
    fprintf(t->out, "%*" PRIu64 "  ", t->facts->op->words->size_width, result->size);
    if (t->facts->initiator || t->facts->spec->both_ways)
        fprintf(t->out, "%*" PRIu64, COLUMN, result->count);
    else
        fprintf(t->out, "%*s", COLUMN, "-");
    for (const struct column *c = t->facts->method->columns; c->title; c++)
        if (c->kind == COLUMN_TIME)
            cell(t, COLUMN, result, c->value(result), c->spread && result->sampling.resolved);
        else
            figure(t, c, c->value(result));
    for (const double *p = t->percentiles; *p; p++) {
        char title[32];
        struct percentile at;
        int width = percentile_title(t, *p, title, sizeof title);
        if (report_percentile(result, *p, &at))
            fprintf(t->out, "  %*s", width, "-");
        else
            cell(t, width, result, at.us, false);
    }
    fprintf(t->out, name ? "  %s\n" : "\n", name);
    t->open = true;
}

/* The row of one device: its pairs are every so manieth. List times are of all of them together. */
static void put_device(struct report_table *t, const struct result *whole, unsigned device)
{
    const struct parts *all = whole->parts;
    struct part list[all->count];
    struct parts own = {.list = list};
    struct result result = {.size = whole->size, .parts = &own, .sums = whole->sums};
    char name[sizeof list->device];
    for (unsigned i = device; i < all->count; i += all->devices) {
        list[own.count++] = all->list[i];
        result.count += all->list[i].count;
    }
    snprintf(name, sizeof name, "%s", all->list[device].device);
    text_clean(name);
    put_row(t, &result, name);
}

static int table_row(struct report *report, const struct result *result)
{
    struct report_table *t = (struct report_table *)report;
    const struct parts *parts = result->parts;
    unsigned devices = parts ? parts->devices : 1;
    t->devices = devices > 1;
    if (!t->titled)
        titles(t);
    for (unsigned i = 0; t->devices && i < devices; i++)
        put_device(t, result, i);
    put_row(t, result, t->devices ? "sum" : NULL);
    return report_flush(t->out);
}

/* A row of a run that goes on: what came since the last. */
static int table_interval(struct report *report, const struct result *result)
{
    struct report_table *t = (struct report_table *)report;
    struct result since = *result;
    if (!t->facts->method->lists)
        return 0;
    since.count = result->recent.count;
    since.elapsed_s = result->recent.s;
    since.stats = NULL;
    since.reverse_count = 0;
    return table_row(report, &since);
}

static int table_end(struct report *report, int status)
{
    struct report_table *t = (struct report_table *)report;
    if (!t->facts->initiator && !t->facts->method->lists) {
        fprintf(t->out, "See client for results.\n");
        t->open = true;
    } else if (status) {
        fprintf(t->out, "%s: %s.\n", status == -EINTR ? "Interrupted" : "Incomplete",
                t->open ? "the last row may be cut short" : "nothing was measured");
        t->open = true;
    }
    if (t->open)
        separator(t);
    return report_flush(t->out);
}

static const struct report_ops table_ops = {.name = "table",
                                            .begin = table_begin,
                                            .sample = table_sample,
                                            .interval = table_interval,
                                            .row = table_row,
                                            .end = table_end};

void report_table_open(struct report_table *table, FILE *out, const char *title,
                       const struct opt_set *set, const double *percentiles)
{
    static const double none[] = {0};
    *table = (struct report_table){.report = {&table_ops},
                                   .out = out,
                                   .title = title,
                                   .set = set,
                                   .percentiles = percentiles ? percentiles : none};
}
