/* SPDX-License-Identifier: BSD-3-Clause */
/* ucx_perftest's results: rows as they come, a document at the end. Reports come while the clock is
 * stopped. */
#include "tool/perftest_show.h"
#include "core/opt.h"
#include "fabric/choose.h"
#include "tool/progress.h"
#include "tool/shell.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

static const struct perftest *options_of(const struct perf_show *s)
{
    return s->set->base;
}

static const struct perf_test *test_of(const struct perf_show *s)
{
    return &perf_tests[options_of(s)->test - 1];
}

/* If nobody can read what comes of it, there is no need to go on. */
static void printed(struct perf_show *s, int status)
{
    s->status = status;
    if (!status)
        return;
    snprintf(s->why, sizeof s->why, "%s", fail_reason());
    if (!shell_stop)
        shell_stop = SIGPIPE;
}

/* ---- before ---- */

/* A layout that nobody asked for, and is not the usual one. */
static void say_layout(const struct perf_show *s)
{
    bool get = test_of(s)->op == WEFT_GET;
    char sentence[128];
    if (options_of(s)->layout || s->facts.layout == (get ? WEFT_BCOPY : WEFT_SHORT))
        return;
    snprintf(sentence, sizeof sentence,
             "data layout %s, the first there is for this; -D chooses another",
             fabric_layout_names[s->facts.layout - WEFT_SHORT]);
    shell_say(sentence);
}

static void say_fabric(struct perf_show *s)
{
    const struct perftest *o = options_of(s);
    char sentence[256];
    if (*o->device || *o->transport || strcmp(s->said, s->fabric.form) == 0)
        return;
    snprintf(sentence, sizeof sentence, "carried by %s; -x and -d choose another", s->fabric.form);
    shell_say(sentence);
    snprintf(s->said, sizeof s->said, "%s", s->fabric.form);
}

/* What the facts point to ends with the test. */
static void keep(struct perf_show *s, const struct test_facts *facts)
{
    s->facts = *facts;
    s->choice = *facts->choice;
    s->fabric = *facts->fabric;
    s->clock = *facts->clock;
}

/* What only a test knows of the two ends; of a batch, the first. */
static void describe_once(struct perf_show *s, const struct test_facts *facts)
{
    struct msg *ends[] = {&s->output.document.client, &s->output.document.server};
    char known[32];
    for (size_t i = 0; i < LENGTH(ends) && s->output.open; i++)
        if (msg_value(ends[i], "buffer", known, sizeof known) == -ENOENT)
            msg_add(ends[i], "%s", facts->about[i]->bytes);
}

static void on_begin(void *arg, const struct test_facts *facts)
{
    struct perf_show *s = arg;
    const char *name = test_of(s)->name;
    bool overhead = strstr(name, "_bw") || strstr(name, "_mr");
    keep(s, facts);
    describe_once(s, facts);
    say_fabric(s);
    say_layout(s);
    if (!s->output.table_off)
        printed(s, report_boxed_begin(&s->boxed, overhead ? "overhead" : "latency", s->labels));
}

/* ---- rows ---- */

static void note_interval(struct perf_show *s, const struct weft_result *r)
{
    uint64_t count = r->iterations - s->seen;
    struct interval interval = {.end_ps = (uint64_t)(r->elapsed_s * 1e12),
                                .count = count,
                                .min_ps = UINT64_MAX,
                                .sum_ps = r->latency_us.recent * 1e6 * (double)count};
    series_add(&s->series, &interval);
    s->seen = r->iterations;
}

static void show_progress(struct perf_show *s, const struct weft_result *r)
{
    const struct perftest *o = options_of(s);
    double by_count = o->iters ? (double)r->iterations / (double)o->iters : 0;
    double by_time = o->duration_s ? r->elapsed_s / (double)o->duration_s : 0;
    s->progress.size = (size_t)o->size;
    s->progress.share = by_count > by_time ? by_count : by_time;
    progress_show(&s->progress);
}

static void on_report(void *arg, const struct weft_result *result)
{
    struct perf_show *s = arg;
    bool row = !s->output.table_off && (result->final || !s->boxed.final_only);
    note_interval(s, result);
    if (row || result->final)
        progress_clear();
    if (row && !s->status)
        printed(s, report_boxed_row(&s->boxed, result));
    if (!result->final)
        show_progress(s, result);
}

void perf_show_begin(struct perf_show *s, const struct opt_set *set, const char *labels,
                     struct test_audience *audience)
{
    s->set = set;
    s->labels = labels;
    s->series.count = 0;
    s->seen = 0;
    *audience = (struct test_audience){.begin = on_begin, .report = on_report, .arg = s};
}

/* ---- behind ---- */

static void say_reverse(const struct weft_result *r, uint64_t size)
{
    char sentence[256];
    double there_s = r->elapsed_s > 0 ? r->elapsed_s : 1;
    double back_s = r->reverse_elapsed_s > 0 ? r->reverse_elapsed_s : 1;
    double there = (double)r->iterations / there_s, back = (double)r->reverse_iterations / back_s;
    snprintf(sentence, sizeof sentence,
             "the other way at the same time: %" PRIu64
             " messages, %.2f MB/s; both ways %.2f MB/s, "
             "%.0f msg/s",
             r->reverse_iterations, back * (double)size / 1048576,
             (there + back) * (double)size / 1048576, there + back);
    shell_say(sentence);
}

static void join_labels(const char *labels, char *text, size_t room)
{
    snprintf(text, room, "%s", labels);
    for (char *at = text; *at; at++)
        if (*at == '\n')
            *at = '/';
}

static void note(struct perf_show *s, const struct weft_result *r, bool complete, bool both)
{
    const struct perftest *o = options_of(s);
    char device[FABRIC_DEVICE_MAX + 40], label[1200];
    snprintf(device, sizeof device, "%s%s%s", s->choice.ops->name, *s->choice.device ? ":" : "",
             s->choice.device);
    join_labels(s->labels, label, sizeof label);
    struct interference disturbed = {.switches = r->disturbed.preempted,
                                     .migrations = r->disturbed.migrated,
                                     .faults = r->disturbed.page_faults,
                                     .steal_ms = r->disturbed.steal_ms};
    interference_add(&s->disturbed, &(struct interference){0}, &disturbed);
    /* One interval, where nobody asked for time, is the whole again. */
    if (s->series.count == 1 && !o->duration_s)
        s->series.count = 0;
    struct outcome outcome = {.test = test_of(s)->name,
                              .label = label,
                              .layout = fabric_layout_names[s->facts.layout - WEFT_SHORT],
                              .size = o->size,
                              .fabric = s->choice.ops->name,
                              .device = device,
                              .form = s->fabric.form,
                              .method = s->facts.method,
                              .proves = s->facts.proves,
                              .half_round_trip = s->facts.legs == 2,
                              .clock = s->clock.kind,
                              .clock_cost_ns = (double)s->clock.cost_ps / s->facts.legs / 1000,
                              .complete = complete,
                              .stats = r->histogram->stats,
                              .us_per_unit = r->histogram->us_per_tick,
                              .mean_us = r->latency_us.overall,
                              .elapsed_s = r->elapsed_s,
                              .bytes_per_s = r->bandwidth.overall,
                              .messages_per_s = r->rate.overall,
                              .interference = disturbed,
                              .series = &s->series,
                              .reverse_count = r->reverse_iterations,
                              .reverse_elapsed_s = both && complete ? r->reverse_elapsed_s : NAN,
                              .options = s->batch ? s->set : NULL};
    output_add(&s->output, &outcome);
}

int perf_show_end(struct perf_show *s, const struct weft_result *result, int status)
{
    const struct perftest *o = options_of(s);
    bool both = o->bidir && test_of(s)->mode == WEFT_STREAM;
    if (!status && both)
        say_reverse(result, o->size);
    /* Of a test that was cut short there is what the last row had. */
    if (!result->final && s->seen && result->histogram && result->histogram->stats)
        stats_settle(result->histogram->stats);
    if ((result->final || s->seen) && result->histogram && result->histogram->stats)
        note(s, result, !status, both);
    s->progress.done++;
    return s->status ? fail(s->status, "%s", s->why) : status;
}
