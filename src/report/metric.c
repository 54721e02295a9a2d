/* SPDX-License-Identifier: BSD-3-Clause */
/* Values of a result by name: --percentiles, and the conditions of --fail-if. */
#include "report/report.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- percentiles ---- */

/* Digits and a point, nothing else that strtod would accept. */
static int plain_number(const char *text, size_t length, double *value)
{
    char copy[32], *end;
    if (!length || length >= sizeof copy || strspn(text, "0123456789.") < length)
        return -EINVAL;
    memcpy(copy, text, length);
    copy[length] = '\0';
    *value = strtod(copy, &end);
    return *end || end == copy ? -EINVAL : 0;
}

int report_percentiles(const char *text, double list[REPORT_PERCENTILES + 1])
{
    size_t n = 0;
    for (const char *at = text; *text; at += *at == ',') {
        size_t length = strcspn(at, ",");
        double percent;
        if (plain_number(at, length, &percent) || !(percent > 0 && percent < 100))
            return fail(-EINVAL,
                        "--percentiles %s: \"%.*s\" is not a percentile; give some such as "
                        "50,99,99.9",
                        text, (int)(length < 32 ? length : 32), at);
        if (n == REPORT_PERCENTILES)
            return fail(-EINVAL, "--percentiles %s: at most %d", text, REPORT_PERCENTILES);
        for (size_t i = 0; i < n; i++)
            if (list[i] == percent)
                return fail(-EINVAL, "--percentiles %s: %g is given twice", text, percent);
        list[n++] = percent;
        at += length;
        if (!*at)
            break;
    }
    list[n] = 0;
    return 0;
}

int report_percentile(const struct result *r, double percent, struct percentile *p)
{
    double at = NAN, low = NAN, high = NAN;
    int status = r->stats ? stats_percentile(r->stats, percent / 100, &at) : -ENODATA;
    if (!status)
        stats_interval(r->stats, percent / 100, &low, &high);
    *p = (struct percentile){.percent = percent,
                             .us = at * r->us_per_unit,
                             .low_us = low * r->us_per_unit,
                             .high_us = high * r->us_per_unit};
    return status;
}

/* ---- what the clock resolves ---- */

/* In the digits that are printed, so that no figure is below the one that is said to be the least.
 */
static double least_ns(const struct result *r)
{
    return ceil(r->sampling.resolution_ns - 1e-9);
}

bool report_below(const struct result *r, double us)
{
    return us * 1000 < least_ns(r);
}

void report_below_text(const struct result *r, char *text, size_t room)
{
    char number[24];
    unit_us(least_ns(r) / 1000, number, sizeof number);
    snprintf(text, room, "<%s", number);
}

/* ---- metrics ---- */

enum unit { UNIT_TIME, UNIT_BYTES, UNIT_PLAIN };

static double get_min(const struct result *r)
{
    return (double)r->stats->min_ps * r->us_per_unit;
}

static double get_max(const struct result *r)
{
    return (double)r->stats->max_ps * r->us_per_unit;
}

double report_mean_us(const struct result *r)
{
    return isnan(r->latency_us.overall) ? r->stats->mean_ps * r->us_per_unit
                                        : r->latency_us.overall;
}

static double get_deviation(const struct result *r)
{
    return stats_deviation_ps(r->stats) * r->us_per_unit;
}

static double get_median(const struct result *r)
{
    return stats_median_ps(r->stats) * r->us_per_unit;
}

/* As in the table, which may have two directions together. */
static double get_rate(const struct result *r)
{
    return r->sums ? list_rate(r) : r->rate.overall;
}

static double get_bandwidth(const struct result *r)
{
    return r->sums ? list_rate(r) * (double)r->size : r->bandwidth.overall;
}

static double get_count(const struct result *r)
{
    return (double)r->stats->count;
}

static double get_preempted(const struct result *r)
{
    return (double)r->interference.switches;
}

static double get_migrated(const struct result *r)
{
    return (double)r->interference.migrations;
}

static double get_faults(const struct result *r)
{
    return (double)r->interference.faults;
}

static double get_steal(const struct result *r)
{
    return (double)r->interference.steal_ms;
}

static double get_client_cpu(const struct result *r)
{
    return r->interference.cpu_ns[PEER_CLIENT];
}

static double get_server_cpu(const struct result *r)
{
    return r->interference.cpu_ns[PEER_SERVER];
}

static const struct metric {
    const char *name;
    enum unit unit;
    double (*get)(const struct result *result);
    bool rate; /* only where there is an elapsed time */
} metrics[] = {
    {"min", UNIT_TIME, get_min, false},
    {"max", UNIT_TIME, get_max, false},
    {"mean", UNIT_TIME, report_mean_us, false},
    {"median", UNIT_TIME, get_median, false},
    {"deviation", UNIT_TIME, get_deviation, false},
    {"stddev", UNIT_TIME, get_deviation, false}, /* as in the table */
    {"bandwidth", UNIT_BYTES, get_bandwidth, true},
    {"rate", UNIT_PLAIN, get_rate, true},
    {"count", UNIT_PLAIN, get_count, false},
    {"preempted", UNIT_PLAIN, get_preempted, false},
    {"migrated", UNIT_PLAIN, get_migrated, false},
    {"page_faults", UNIT_PLAIN, get_faults, false},
    {"steal_ms", UNIT_PLAIN, get_steal, false},
    {"client_cpu_ns", UNIT_PLAIN, get_client_cpu, false},
    {"server_cpu_ns", UNIT_PLAIN, get_server_cpu, false},
};

/* ---- conditions ---- */

static const char *const relations[] = {">=", "<=", ">", "<"};
enum { AT_LEAST, AT_MOST, ABOVE, BELOW };

static const char *skip(const char *at)
{
    while (isspace((unsigned char)*at))
        at++;
    return at;
}

static int parse_metric(const char *name, size_t length, struct condition *c)
{
    if (*name == 'p' && length > 1 && !plain_number(name + 1, length - 1, &c->percent) &&
        c->percent > 0 && c->percent < 100)
        return 0;
    c->percent = 0;
    for (size_t i = 0; i < LENGTH(metrics); i++)
        if (strlen(metrics[i].name) == length && memcmp(metrics[i].name, name, length) == 0) {
            c->metric = &metrics[i];
            return 0;
        }
    return -EINVAL;
}

/* "counter:NAME", "counter:client:NAME" or "counter:server:NAME"; its length, or 0. */
static size_t parse_counter(const char *text, struct condition *c)
{
    static const struct {
        const char *words;
        int end;
    } forms[] = {
        {"counter:client:", PEER_CLIENT}, {"counter:server:", PEER_SERVER}, {"counter:", -1}};
    size_t i = 0, before = 0;
    for (; i < LENGTH(forms) && !before; i++)
        if (strncmp(text, forms[i].words, strlen(forms[i].words)) == 0) {
            before = strlen(forms[i].words);
            c->end = forms[i].end;
        }
    size_t length = strcspn(text + before, " \t@<>=");
    if (!before || length >= sizeof c->counter)
        return 0;
    memcpy(c->counter, text + before, length);
    c->counter[length] = '\0';
    return counter_named(c->counter) ? before + length : 0;
}

/* A number and its unit: of a time in us, of a bandwidth in bytes per second. */
static int parse_bound(const char *text, enum unit unit, double kilo, double *bound)
{
    const struct {
        const char *name;
        enum unit unit;
        double scale;
    } units[] = {{"ps", UNIT_TIME, 1e-6},
                 {"ns", UNIT_TIME, 1e-3},
                 {"us", UNIT_TIME, 1},
                 {"ms", UNIT_TIME, 1e3},
                 {"s", UNIT_TIME, 1e6},
                 {"B/s", UNIT_BYTES, 1},
                 {"KB/s", UNIT_BYTES, kilo},
                 {"MB/s", UNIT_BYTES, kilo * kilo},
                 {"GB/s", UNIT_BYTES, kilo * kilo * kilo},
                 {"KiB/s", UNIT_BYTES, 1 << 10},
                 {"MiB/s", UNIT_BYTES, 1 << 20},
                 {"GiB/s", UNIT_BYTES, 1 << 30},
                 {"Mb/s", UNIT_BYTES, 1e6 / 8},
                 {"Gb/s", UNIT_BYTES, 1e9 / 8},
                 {"", UNIT_PLAIN, 1}};
    size_t length = strspn(text, "0123456789.");
    double number;
    if (plain_number(text, length, &number))
        return -EINVAL;
    const char *rest = skip(text + length);
    for (size_t i = 0; i < LENGTH(units); i++)
        if (units[i].unit == unit && strncmp(rest, units[i].name, strlen(units[i].name)) == 0 &&
            !*skip(rest + strlen(units[i].name))) {
            *bound = number * units[i].scale;
            return 0;
        }
    return -EINVAL;
}

static enum unit unit_of(const struct condition *c)
{
    return *c->counter ? UNIT_PLAIN : c->metric ? c->metric->unit : UNIT_TIME;
}

static int bad(const char *text, const char *what)
{
    return fail(-EINVAL, "--fail-if \"%.80s\": %s", text, what);
}

/* METRIC[@SIZE] RELATION BOUND */
int condition_parse(const char *text, unsigned kilo, struct condition *c)
{
    *c = (struct condition){.text = text, .kilo = kilo};
    const char *at = skip(text);
    size_t length = strspn(at, "abcdefghijklmnopqrstuvwxyz_0123456789."), named;
    if ((named = parse_counter(at, c)))
        length = named;
    else if (parse_metric(at, length, c))
        return bad(text,
                   "unknown metric; known are min, max, mean, median, deviation, a percentile "
                   "such as p99.9, bandwidth, rate, count, preempted, migrated, page_faults, "
                   "steal_ms, client_cpu_ns, server_cpu_ns, or a counter such as "
                   "counter:rx_errors");
    if (c->metric && c->metric->rate && !kilo)
        return bad(text, "this tool measures latency alone");
    at = skip(at + length);
    if (*at == '@') {
        char size[24];
        at = skip(at + 1);
        length = strcspn(at, " \t<>=");
        snprintf(size, sizeof size, "%.*s", (int)(length < 23 ? length : 23), at);
        if (unit_bytes(size, &c->size) || !c->size)
            return bad(text, "after @ a size in bytes is needed, such as 4096 or 4K");
        at = skip(at + length);
    }
    c->relation = -1;
    for (int i = 0; i < (int)LENGTH(relations) && c->relation < 0; i++)
        if (strncmp(at, relations[i], strlen(relations[i])) == 0)
            c->relation = i;
    if (c->relation < 0)
        return bad(text, "<, >, <= or >= is missing");
    enum unit unit = unit_of(c);
    if (parse_bound(skip(at + strlen(relations[c->relation])), unit, kilo, &c->bound))
        return bad(text, unit == UNIT_TIME ? "the bound must be a time such as 5us, in ps, ns, us, "
                                             "ms or s"
                         : unit == UNIT_BYTES ? "the bound must be a bandwidth such as 900MB/s, in "
                                                "B/s, KB/s, MB/s, GB/s, KiB/s, MiB/s, GiB/s, Mb/s "
                                                "or Gb/s"
                                              : "the bound must be a plain number");
    return 0;
}

/* The bound is shorter than what the clock resolves, and so is what it is to be compared with; of a
 * size that is not resolved, no figure can be. The mean over an elapsed time is not one of the
 * samples. */
bool condition_too_fine(const struct condition *c, const struct result *r, double value)
{
    bool timed = unit_of(c) == UNIT_TIME &&
                 !(c->metric && c->metric->get == report_mean_us && isfinite(r->elapsed_s));
    return timed && report_below(r, c->bound) && (!r->sampling.resolved || report_below(r, value));
}

enum verdict condition_judge(const struct condition *c, const struct result *r, double *value)
{
    struct percentile p;
    bool sure = true;
    *value = NAN;
    if (c->size && c->size != r->size)
        return VERDICT_NONE;
    if (*c->counter)
        *value = counter_value(c, r, &sure);
    else if (c->metric && (r->stats->count || c->metric->unit != UNIT_TIME))
        *value = c->metric->get(r);
    else if (!c->metric && !report_percentile(r, c->percent, &p))
        *value = p.us;
    if (isnan(*value) || condition_too_fine(c, r, *value))
        return VERDICT_UNKNOWN;
    bool met = c->relation == AT_LEAST  ? *value >= c->bound
               : c->relation == AT_MOST ? *value <= c->bound
               : c->relation == ABOVE   ? *value > c->bound
                                        : *value < c->bound;
    /* What is not known could only be larger. */
    bool above = c->relation == ABOVE || c->relation == AT_LEAST;
    if (!sure && met != above)
        return VERDICT_UNKNOWN;
    return met ? VERDICT_FAILED : VERDICT_PASSED;
}

double condition_needs(const struct condition *c)
{
    return c->metric ? 1 : ceil(10 / (1 - c->percent / 100) - 1e-6);
}

void condition_value(const struct condition *c, double value, char *text, size_t room)
{
    enum unit unit = unit_of(c);
    if (unit == UNIT_TIME)
        snprintf(text, room, "%.3f us", value);
    else if (unit == UNIT_BYTES)
        snprintf(text, room, "%.2f MB/s", value / c->kilo / c->kilo);
    else
        snprintf(text, room, "%.0f", value);
}
