/* SPDX-License-Identifier: BSD-3-Clause */
/* The same results as CSV: a row each, and one line of titles. What is not known is empty. */
#include "report/report.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void csv_field(FILE *out, const char *text, size_t length)
{
    bool plain = !memchr(text, ',', length) && !memchr(text, '"', length) &&
                 !memchr(text, '\n', length) && !memchr(text, '\r', length);
    if (!plain)
        fputc('"', out);
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '"')
            fputc('"', out);
        fputc(text[i], out);
    }
    if (!plain)
        fputc('"', out);
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

void csv_add(struct document *d, const struct outcome *o)
{
    const struct stats *s = o->stats;
    FILE *out = d->rows.out;
    text(out, d->begun);
    text(out, d->tool);
    text(out, o->test);
    text(out, o->label ? o->label : "");
    text(out, o->layout ? o->layout : "");
    text(out, o->method);
    text(out, o->device);
    text(out, o->form);
    count(out, o->size);
    count(out, s->count);
    number(out, s->count ? (double)s->min_ps * o->us_per_unit : 0);
    number(out, (double)s->max_ps * o->us_per_unit);
    number(out, outcome_mean_us(o));
    number(out, stats_deviation_ps(s) * o->us_per_unit);
    number(out, stats_median_ps(s) * o->us_per_unit);
    for (const double *percent = d->percentiles; *percent; percent++) {
        struct weft_percentile p;
        outcome_percentile(o, *percent, &p);
        number(out, p.us);
        number(out, p.low_us);
        number(out, p.high_us);
    }
    if (isfinite(o->elapsed_s))
        fprintf(out, "%.12f", o->elapsed_s);
    fputc(',', out);
    number(out, o->bytes_per_s);
    number(out, o->messages_per_s);
    count(out, o->interference.switches);
    count(out, o->interference.migrations);
    count(out, o->interference.faults);
    count(out, o->interference.steal_ms);
    fprintf(out, "%d\n", o->complete);
}

static void titles(const struct document *d, FILE *out)
{
    fputs("begun,tool,test,label,layout,method,device,fabric,size,count,min_us,max_us,mean_us,"
          "deviation_us,median_us,",
          out);
    for (const double *p = d->percentiles; *p; p++)
        fprintf(out, "p%.10g_us,p%.10g_low_us,p%.10g_high_us,", *p, *p, *p);
    fputs("elapsed_s,bytes_per_s,messages_per_s,preempted,migrated,page_faults,steal_ms,complete\n",
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
        return fail(-ENOMEM, "no memory for a sheet");
    }
    titles(d, out);
    fwrite(d->rows.bytes, 1, d->rows.length, out);
    int status =
        fclose(out) ? fail(-ENOMEM, "no memory for a sheet") : save_write(path, bytes, length);
    free(bytes);
    return status;
}
