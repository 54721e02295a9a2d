/* SPDX-License-Identifier: BSD-3-Clause */
/* A run as share/schema describes it: every option, both machines, every result with its histogram.
 * Results are formatted as they come, between two measurements; the document is written at the
 * end. */
#include "core/clock.h"
#include "core/machine.h"
#include "core/opt.h"
#include "report/report.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Decimals: of seconds, of microseconds. */
enum { PICOSECONDS = 12, HALF_PICOSECONDS = 7 };

static const double usual[] = {50, 90, 99, 99.9, 99.99, 0};

/* UTC, with milliseconds. */
static void time_text(char *text, size_t room)
{
    struct timespec now;
    struct tm parts;
    char seconds[32] = "1970-01-01T00:00:00";
    clock_gettime(CLOCK_REALTIME, &now);
    if (gmtime_r(&now.tv_sec, &parts))
        strftime(seconds, sizeof seconds, "%Y-%m-%dT%H:%M:%S", &parts);
    snprintf(text, room, "%.19s.%03dZ", seconds, (int)(now.tv_nsec / 1000000));
}

static int membuf_open(struct membuf *membuf)
{
    membuf->out = open_memstream(&membuf->bytes, &membuf->length);
    return membuf->out ? 0 : fail(-ENOMEM, "no memory for a document");
}

static void membuf_close(struct membuf *membuf)
{
    if (membuf->out)
        fclose(membuf->out);
    free(membuf->bytes);
    *membuf = (struct membuf){0};
}

static int by_percent(const void *a, const void *b)
{
    double one = *(const double *)a, other = *(const double *)b;
    return (one > other) - (one < other);
}

/* The requested percentiles, and those of every document. */
static void choose_percentiles(struct document *d, const double *asked)
{
    size_t n = 0;
    for (; asked && asked[n]; n++)
        d->percentiles[n] = asked[n];
    for (const double *p = usual; *p && n < REPORT_PERCENTILES; p++) {
        bool there = false;
        for (size_t i = 0; i < n; i++)
            there |= d->percentiles[i] == *p;
        if (!there)
            d->percentiles[n++] = *p;
    }
    d->percentiles[n] = 0;
    qsort(d->percentiles, n, sizeof *d->percentiles, by_percent);
}

int document_open(struct document *d, const char *tool, int argc, char **argv,
                  const struct opt_set *set, const double *percentiles)
{
    *d = (struct document){.tool = tool, .argc = argc, .argv = argv, .set = set};
    choose_percentiles(d, percentiles);
    time_text(d->begun, sizeof d->begun);
    int status = membuf_open(&d->result_text);
    if (!status)
        status = membuf_open(&d->verdict_text);
    if (!status)
        status = membuf_open(&d->said_text);
    if (!status)
        status = membuf_open(&d->rows);
    if (!status)
        status = machine_describe(&d->client);
    if (!status)
        status = msg_add(&d->client, "weft=%s\ncommit=%s\n", core_version(), core_commit());
    d->json = (struct json){.out = d->result_text.out, .depth = 2, .lines = 3};
    d->verdicts = (struct json){.out = d->verdict_text.out, .depth = 2, .lines = 2};
    d->said = (struct json){.out = d->said_text.out, .depth = 2, .lines = 2};
    if (status)
        document_close(d);
    return status;
}

void document_close(struct document *d)
{
    membuf_close(&d->result_text);
    membuf_close(&d->verdict_text);
    membuf_close(&d->said_text);
    membuf_close(&d->rows);
}

/* ---- results ---- */

const char *facts_layout(const struct facts *f)
{
    return f->spec->data.layout ? fabric_layout_names[f->spec->data.layout - 1] : NULL;
}

const char *facts_method(const struct facts *f)
{
    return f->spec->both_ways ? f->method->both_ways : f->method->name;
}

static void add_method(struct json *j, const struct facts *f)
{
    char device[FABRIC_DEVICE_MAX + 40];
    session_device(f->session, device, sizeof device);
    json_open(j, "fabric", '{');
    json_text(j, "name", f->session->fabric->name);
    json_text(j, "device", device);
    json_text(j, "form", f->session->facts.form);
    if (*f->session->facts.protocol)
        json_text(j, "protocol", f->session->facts.protocol);
    json_text(j, "why", f->session->why);
    json_text(j, "library", *f->session->facts.library ? f->session->facts.library : NULL);
    json_close(j, '}');
    json_open(j, "method", '{');
    json_text(j, "name", facts_method(f));
    json_bool(j, "half_round_trip", f->legs == 2);
    json_text(j, "clock", f->clock->kind == CLOCK_CYCLES ? "cycles" : "clock_gettime");
    json_number(j, "clock_cost_ns", (double)f->clock->cost_ps / f->legs / 1000);
    json_number(j, "clock_step_ns", (double)f->clock->step_ps / 1000);
    json_bool(j, "clock_subtracted", f->method->subtracts);
    json_text(j, "completion_proves", f->proves);
    json_text(j, "sample", f->method->samples(f->spec));
    json_close(j, '}');
}

/* As asked for, and whether operations of this size were issued so. Where a data layout decides,
 * there are none. */
static void add_hints(struct json *j, const struct facts *f, uint64_t size)
{
    struct hint_question question = {.facts = &f->session->facts,
                                     .op = f->op,
                                     .spec = f->spec,
                                     .size = size,
                                     .gpu = f->session->vendors[PEER_CLIENT] != MEMORY_CPU,
                                     .lists = f->method->lists};
    json_open(j, "hints", '{');
    for (int hint = 0; hint < HINT_NAMES && !f->method->ucx; hint++) {
        struct hint_state state;
        if (!(f->op->hints & 1U << hint))
            continue;
        hint_judge(&question, (enum hint)hint, &state);
        json_open(j, hint_names[hint], '{');
        json_bool(j, "asked", state.asked);
        json_bool(j, "honoured", state.holds);
        json_text(j, "why", state.asked && !state.holds ? state.why : "");
        json_close(j, '}');
    }
    json_close(j, '}');
}

static void add_sampling(struct json *j, const struct result *r)
{
    json_count(j, "operations", r->count);
    json_count(j, "ops_per_sample", r->sampling.ops);
    json_count(j, "warmup", r->sampling.warmup);
    json_bool(j, "resolved", r->sampling.resolved);
    json_number(j, "resolution_ns", r->sampling.resolution_ns);
    json_count(j, "clamped", r->sampling.clamped);
}

static void add_moments(struct json *j, const struct document *d, const struct result *r)
{
    const struct stats *s = r->stats;
    json_count(j, "count", s->count);
    json_number(j, "min_us", s->count ? (double)s->min_ps * r->us_per_unit : 0);
    json_number(j, "max_us", (double)s->max_ps * r->us_per_unit);
    json_number(j, "mean_us", report_mean_us(r));
    json_number(j, "deviation_us", stats_deviation_ps(s) * r->us_per_unit);
    json_number(j, "median_us", stats_median_ps(s) * r->us_per_unit);
    json_open(j, "percentiles", '[');
    for (const double *percent = d->percentiles; *percent; percent++) {
        struct percentile p;
        report_percentile(r, *percent, &p);
        json_open(j, NULL, '{');
        json_number(j, "percent", p.percent);
        json_number(j, "us", p.us);
        json_number(j, "low_us", p.low_us);
        json_number(j, "high_us", p.high_us);
        json_close(j, '}');
    }
    json_close(j, ']');
    json_decimals(j, "elapsed_s", r->elapsed_s, PICOSECONDS);
    json_number(j, "bytes_per_s", r->bandwidth.overall);
    json_number(j, "messages_per_s", r->rate.overall);
    json_open(j, "interference", '{');
    json_count(j, "preempted", r->interference.switches);
    json_count(j, "migrated", r->interference.migrations);
    json_count(j, "page_faults", r->interference.faults);
    json_count(j, "steal_ms", r->interference.steal_ms);
    json_close(j, '}');
    json_open(j, "cpu_ns_per_op", '{');
    json_number(j, "client", r->interference.cpu_ns[PEER_CLIENT]);
    json_number(j, "server", r->interference.cpu_ns[PEER_SERVER]);
    json_close(j, '}');
}

/* Of a sparse histogram: buckets of the statistics in one; 32 per octave. */
enum { WIDE = STATS_SUB / 32 };

/* A bucket holds whole units: from half a unit below the first to half a unit above the last, so
 * that its middle is theirs. */
static void add_histogram(struct json *j, const struct result *r, enum histogram form)
{
    size_t wide = form == HISTOGRAM_SPARSE ? WIDE : 1;
    json_open(j, "histogram", '[');
    for (size_t i = 0; i < STATS_BUCKETS && form != HISTOGRAM_NONE; i += wide) {
        double low, high, unused;
        uint64_t count = 0;
        for (size_t k = 0; k < wide; k++)
            count += r->stats->buckets[i + k];
        if (!count)
            continue;
        stats_bounds(i, &low, &unused);
        stats_bounds(i + wide - 1, &unused, &high);
        json_open(j, NULL, '[');
        json_decimals(j, NULL, low > 0 ? (low - 0.5) * r->us_per_unit : 0, HALF_PICOSECONDS);
        json_decimals(j, NULL, (high - 0.5) * r->us_per_unit, HALF_PICOSECONDS);
        json_count(j, NULL, count);
        json_close(j, ']');
    }
    json_close(j, ']');
}

static double over_time_us(const struct result *r, size_t interval, double share)
{
    double units;
    return series_percentile(r->series, interval, share, &units) ? NAN : units * r->us_per_unit;
}

static void add_series(struct json *j, const struct result *r)
{
    json_open(j, "series", '[');
    for (size_t i = 0; r->series && i < r->series->count; i++) {
        const struct interval *s = &r->series->intervals[i];
        bool known = s->min_ps != UINT64_MAX;
        json_open(j, NULL, '{');
        json_decimals(j, "end_s", (double)s->end_ps / 1e12, PICOSECONDS);
        json_count(j, "count", s->count);
        json_number(j, "mean_us", s->sum_ps / (double)s->count / 1e6);
        json_number(j, "min_us", known ? (double)s->min_ps / 1e6 : NAN);
        json_number(j, "p50_us", over_time_us(r, i, 0.5));
        json_number(j, "p99_us", over_time_us(r, i, 0.99));
        json_number(j, "max_us", known ? (double)s->max_ps / 1e6 : over_time_us(r, i, 1));
        json_close(j, '}');
    }
    json_close(j, ']');
}

static void add_samples(struct json *j, const struct result *r)
{
    const struct stats *s = r->stats;
    if (!s->kept_room)
        return;
    json_open(j, "samples_us", '[');
    for (uint64_t i = 0; i < s->count && i < s->kept_room; i++)
        json_number(j, NULL, (double)s->kept_ps[i] * r->us_per_unit);
    json_close(j, ']');
}

/* In one direction. */
static void add_ceilings(struct json *j, const struct entry *e)
{
    double link = (double)e->facts->session->facts.link_bits_per_s / 8;
    json_open(j, "ceilings", '{');
    json_number(j, "memcpy_bytes_per_s", e->memcpy_bytes_per_s);
    json_number(j, "link_bytes_per_s", link > 0 ? link : NAN);
    json_close(j, '}');
}

/* Of a batch there may be several. */
static void note_library(struct document *d, const char *library)
{
    size_t i = 0;
    while (i < d->library_count && strcmp(d->libraries[i], library) != 0)
        i++;
    if (*library && i == d->library_count && i < LENGTH(d->libraries))
        snprintf(d->libraries[d->library_count++], sizeof *d->libraries, "%s", library);
}

static void add_reverse(struct json *j, uint64_t count, double elapsed_s)
{
    if (isnan(elapsed_s))
        return;
    json_open(j, "reverse", '{');
    json_count(j, "count", count);
    json_decimals(j, "elapsed_s", elapsed_s, PICOSECONDS);
    json_close(j, '}');
}

/* Both ways: what came of both directions, as a table of lists has it. */
static void add_sum(struct json *j, const struct result *r)
{
    if (!r->sums)
        return;
    json_open(j, "sum", '{');
    json_number(j, "bytes_per_s", list_rate(r) * (double)r->size);
    json_number(j, "delivered", list_delivered(r) * (double)r->size);
    json_close(j, '}');
}

static void add_part(struct json *j, const struct part *part, uint64_t size, bool thread)
{
    double rate = part->known && part->elapsed_s > 0 ? (double)part->count / part->elapsed_s : NAN;
    json_open(j, NULL, '{');
    json_text(j, "device", part->device);
    json_number(j, "client_cpu", part->cpus[0] < 0 ? NAN : (double)part->cpus[0]);
    json_number(j, "server_cpu", part->cpus[1] < 0 ? NAN : (double)part->cpus[1]);
    json_bool(j, "complete", part->complete);
    json_count(j, "operations", part->count);
    json_decimals(j, "elapsed_s", part->known ? part->elapsed_s : NAN, PICOSECONDS);
    json_number(j, "bytes_per_s", rate * (double)size);
    json_number(j, "messages_per_s", rate);
    if (thread)
        json_number(j, "median_us", part->known ? part->median_us : NAN);
    if (part->known)
        add_reverse(j, part->reverse_count, part->reverse_elapsed_s);
    json_close(j, '}');
}

static void add_parts(struct json *j, const struct result *r)
{
    if (!r->parts)
        return;
    json_open(j, r->parts->threads ? "threads" : "pairs", '[');
    for (unsigned i = 0; i < r->parts->count; i++)
        add_part(j, &r->parts->list[i], r->size, r->parts->threads);
    json_close(j, ']');
}

void document_add(struct document *d, const struct entry *e)
{
    const struct result *r = e->result;
    struct json *j = &d->json;
    json_open(j, NULL, '{');
    json_text(j, "test", e->test);
    json_text(j, "label", e->label ? e->label : "");
    json_count(j, "size", r->size);
    json_text(j, "layout", facts_layout(e->facts));
    if (e->options)
        options_write(j, e->options, d->set);
    add_method(j, e->facts);
    add_hints(j, e->facts, r->size);
    json_bool(j, "complete", r->complete);
    add_sampling(j, r);
    add_moments(j, d, r);
    add_histogram(j, r, d->histogram);
    add_series(j, r);
    add_samples(j, r);
    counters_document(j, e->facts, r);
    add_reverse(j, r->reverse_count, r->reverse_elapsed_s);
    add_sum(j, r);
    if (e->facts->method->lists)
        add_ceilings(j, e);
    add_parts(j, r);
    json_close(j, '}');
    csv_add(d, e);
    note_library(d, e->facts->session->facts.library);
    d->results++;
}

void document_judge(struct document *d, const struct condition *c, double value,
                    enum verdict verdict)
{
    static const char *const words[] = {
        [VERDICT_PASSED] = "passed", [VERDICT_FAILED] = "failed", [VERDICT_UNKNOWN] = "unknown"};
    struct json *j = &d->verdicts;
    json_open(j, NULL, '{');
    json_text(j, "condition", c->text);
    json_count(j, "result", d->results - 1);
    json_number(j, "value", value);
    json_text(j, "verdict", words[verdict]);
    json_close(j, '}');
}

void document_hear(struct document *d, const char *sentence)
{
    json_text(&d->said, NULL, sentence);
}

/* ---- the document ---- */

/* Only facts of the schema: the other end may send anything. */
static void add_end(struct json *j, const char *name, const struct msg *lines)
{
    static const char *const facts[] = {
        "host",     "weft",       "commit", "system",  "architecture", "cpu",
        "cpus",     "allowed",    "ran_on", "memory",  "buffer",       "clocksource",
        "governor", "hypervisor", "fabric", "library", "name"};
    char value[512];
    if (msg_value(lines, "host", value, sizeof value) ||
        msg_value(lines, "weft", value, sizeof value)) {
        json_text(j, name, NULL);
        return;
    }
    json_open(j, name, '{');
    for (size_t i = 0; i < LENGTH(facts); i++)
        if (!msg_value(lines, facts[i], value, sizeof value) && *value)
            json_text(j, facts[i], value);
    json_close(j, '}');
}

/* An array whose entries were written before. */
static int add_collected(struct json *j, const char *key, struct membuf *membuf)
{
    json_open(j, key, '[');
    if (fflush(membuf->out) || ferror(membuf->out))
        return fail(-ENOMEM, "no memory for a document");
    fwrite(membuf->bytes, 1, membuf->length, j->out);
    j->filled = membuf->length > 0;
    json_close(j, ']');
    return 0;
}

static void add_tool(struct json *j, const struct document *d)
{
    json_open(j, "tool", '{');
    json_text(j, "name", d->tool);
    json_text(j, "version", core_version());
    json_open(j, "command", '[');
    for (int i = 0; i < d->argc; i++)
        json_text(j, NULL, d->argv[i]);
    json_close(j, ']');
    json_close(j, '}');
    json_open(j, "build", '{');
    json_text(j, "version", core_version());
    json_text(j, "commit", core_commit());
    json_text(j, "compiler", core_compiler());
    json_text(j, "flags", core_flags());
    json_open(j, "libraries", '[');
    for (size_t i = 0; i < d->library_count; i++)
        json_text(j, NULL, d->libraries[i]);
    json_close(j, ']');
    json_close(j, '}');
}

static int write_document(struct document *d, const struct ending *ending, FILE *out)
{
    struct json json = {.out = out, .lines = 2}, *j = &json;
    char ended[32];
    time_text(ended, sizeof ended);
    json_open(j, NULL, '{');
    json_text(j, "schema", "weft-result");
    json_count(j, "version", 2);
    add_tool(j, d);
    json_text(j, "begun", d->begun);
    json_text(j, "ended", ended);
    json_open(j, "status", '{');
    json_text(j, "state", ending->state);
    json_count(j, "exit", (uint64_t)ending->exit);
    json_text(j, "reason", ending->reason);
    json_close(j, '}');
    options_write(j, d->set, NULL);
    json_open(j, "ends", '{');
    add_end(j, "client", &d->client);
    add_end(j, "server", &d->server);
    json_close(j, '}');
    int status = add_collected(j, "warnings", &d->said_text);
    if (!status)
        status = add_collected(j, "verdicts", &d->verdict_text);
    if (!status)
        status = add_collected(j, "results", &d->result_text);
    json_close(j, '}');
    fputc('\n', out);
    return status;
}

int document_save_json(struct document *d, const struct ending *ending, const char *path)
{
    struct membuf whole = {0};
    int status = membuf_open(&whole);
    if (status)
        return status;
    status = write_document(d, ending, whole.out);
    if (!status && (fflush(whole.out) || ferror(whole.out)))
        status = fail(-ENOMEM, "no memory for a document");
    if (!status)
        status = save_write(path, whole.bytes, whole.length);
    membuf_close(&whole);
    return status;
}
