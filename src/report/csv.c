/* SPDX-License-Identifier: BSD-3-Clause */
/* The same results as CSV: one row per result, after a header line. Unknown values are empty. */
#include "report/report.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Spreadsheets run what begins like a formula, also in quotes. A number is none. */
static bool is_formula(const char *text)
{
    char *end;
    if (!*text || !strchr("=@+-\t\r", *text))
        return false;
    strtod(text, &end);
    return *end || text[strspn(text, "+-.0123456789eE")];
}

void csv_field(FILE *out, const char *text, size_t length)
{
    char *cell = strndup(text, length);
    if (cell) {
        bool formula = is_formula(cell);
        text_clean(cell);
        const char *quote = formula || strpbrk(cell, ",\"") ? "\"" : "";
        fprintf(out, "%s%s", quote, formula ? "'" : "");
        for (const char *at = cell; *at; at++)
            fputs(*at == '"' ? "\"\"" : (char[]){*at, '\0'}, out);
        fputs(quote, out);
    }
    free(cell);
    fputc(',', out);
}

static void text(FILE *out, const char *value)
{
    csv_field(out, value, strlen(value));
}

static void number(FILE *out, double value)
{
    if (isfinite(value))
        fprintf(out, "%.6f", value);
    fputc(',', out);
}

static void count(FILE *out, uint64_t value)
{
    fprintf(out, "%" PRIu64 ",", value);
}

/* What was run, where. What a method does not have is empty. */
static void add_run(const struct document *d, const struct entry *e, FILE *out)
{
    const struct facts *f = e->facts;
    const struct spec *spec = f->spec;
    char device[FABRIC_DEVICE_MAX + 40], host[256] = "";
    session_device(f->session, device, sizeof device);
    msg_value(&d->client, "host", host, sizeof host);
    text(out, d->begun);
    text(out, d->tool);
    text(out, core_version());
    text(out, host);
    text(out, e->test);
    text(out, e->label ? e->label : "");
    text(out, facts_layout(f) ? facts_layout(f) : "");
    text(out, facts_method(f));
    text(out, f->session->fabric->name);
    text(out, device);
    text(out, f->session->facts.form);
    number(out, f->method->ucx ? NAN : (double)spec->pace.gap_ns / 1000);
    if (spec->count.iterations)
        fprintf(out, "%" PRIu64, spec->count.iterations);
    fputc(',', out);
}

static void add_sampling(const struct result *r, FILE *out)
{
    count(out, r->count);
    count(out, r->sampling.ops);
    count(out, r->sampling.warmup);
    count(out, r->sampling.resolved);
    number(out, r->sampling.resolution_ns);
    count(out, r->sampling.clamped);
}

void csv_add(struct document *d, const struct entry *e)
{
    const struct result *r = e->result;
    const struct stats *s = r->stats;
    FILE *out = d->rows.out;
    add_run(d, e, out);
    count(out, r->size);
    count(out, s->count);
    number(out, s->count ? (double)s->min_ps * r->us_per_unit : 0);
    number(out, (double)s->max_ps * r->us_per_unit);
    number(out, report_mean_us(r));
    number(out, stats_deviation_ps(s) * r->us_per_unit);
    number(out, stats_median_ps(s) * r->us_per_unit);
    for (const double *percent = d->percentiles; *percent; percent++) {
        struct percentile p;
        report_percentile(r, *percent, &p);
        number(out, p.us);
        number(out, p.low_us);
        number(out, p.high_us);
    }
    if (isfinite(r->elapsed_s))
        fprintf(out, "%.12f", r->elapsed_s);
    fputc(',', out);
    number(out, r->bandwidth.overall);
    number(out, r->rate.overall);
    add_sampling(r, out);
    count(out, r->interference.switches);
    count(out, r->interference.migrations);
    count(out, r->interference.faults);
    count(out, r->interference.steal_ms);
    fprintf(out, "%d\n", r->complete);
}

static void titles(const struct document *d, FILE *out)
{
    fputs("begun,tool,version,host,test,label,layout,method,fabric,device,form,gap_us,iterations,"
          "size,"
          "count,min_us,max_us,mean_us,deviation_us,median_us,",
          out);
    for (const double *p = d->percentiles; *p; p++)
        fprintf(out, "p%.10g_us,p%.10g_low_us,p%.10g_high_us,", *p, *p, *p);
    fputs("elapsed_s,bytes_per_s,messages_per_s,operations,ops_per_sample,warmup,resolved,"
          "resolution_ns,clamped,preempted,migrated,page_faults,steal_ms,complete\n",
          out);
}

int document_save_csv(struct document *d, const char *path)
{
    char *bytes = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&bytes, &length);
    if (!out || fflush(d->rows.out) || ferror(d->rows.out)) {
        if (out)
            fclose(out);
        free(bytes);
        return fail(-ENOMEM, "no memory for a CSV document");
    }
    titles(d, out);
    fwrite(d->rows.bytes, 1, d->rows.length, out);
    int status = fclose(out) ? fail(-ENOMEM, "no memory for a CSV document")
                             : save_write(path, bytes, length);
    free(bytes);
    return status;
}
