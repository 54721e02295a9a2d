/* SPDX-License-Identifier: BSD-3-Clause */
/* ucx_perftest's results: rows as they come, a document at the end; and on standard error what was
 * chosen for the user. */
#include "tool/perftest_show.h"
#include "tool/shell.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- before ---- */

/* A layout that nobody asked for, and is not the usual one. */
static void say_layout(const struct facts *facts, const struct perftest *o)
{
    char sentence[128];
    int usual = facts->op->verb == VERB_READ ? LAYOUT_BCOPY : LAYOUT_SHORT;
    if (o->spec.data.layout || !facts->spec->data.layout || facts->spec->data.layout - 1 == usual)
        return;
    snprintf(sentence, sizeof sentence,
             "data layout %s, the first there is for this; -D chooses another",
             fabric_layout_names[facts->spec->data.layout - 1]);
    shell_say(sentence);
}

/* Kinds of the op that the table does not tell apart. */
static void say_kind(const struct facts *facts)
{
    char kind[64], sentence[128];
    if (!facts->op->label || !(facts->op->traits & OP_AUTOMATIC))
        return;
    facts->op->label(facts->spec, kind, sizeof kind);
    snprintf(sentence, sizeof sentence, "%s messages: %s", facts->op->name, kind);
    shell_say(sentence);
}

static void say_fabric(struct perf_show *s, const struct facts *facts, const struct perftest *o)
{
    const char *form = facts->session->facts.form;
    char sentence[256];
    if (*o->device || *o->transport || strcmp(s->said, form) == 0)
        return;
    snprintf(sentence, sizeof sentence, "carried by %s; -x and -d choose another", form);
    shell_say(sentence);
    snprintf(s->said, sizeof s->said, "%s", form);
}

static void hint_memory(struct perf_show *s, const struct perftest *o)
{
    const char *comma = strchr(o->memory, ',');
    bool differ = comma && strncmp(o->memory, comma + 1, (size_t)(comma - o->memory)) != 0;
    if (differ && !s->hinted)
        shell_say("-m A,B is the client's memory and the server's; in UCX it is what each end "
                  "sends from and receives into");
    s->hinted |= differ;
}

static int on_begin(struct report *report, const struct facts *facts)
{
    struct perf_show *s = (struct perf_show *)report;
    const struct perftest *o = s->output.entry.options->base;
    s->facts = facts;
    s->said_protocol = false;
    say_fabric(s, facts, o);
    say_layout(facts, o);
    say_kind(facts);
    hint_memory(s, o);
    return s->output.report.ops->begin(&s->output.report, facts);
}

void perf_hints(const struct opt_set *set)
{
    const struct perftest *o = set->base;
    if (o->loop && o->test && !o->address && !o->local && !o->loopback)
        shell_say("-l serves one client after another; UCX's -l, a test within one process, is "
                  "--loopback here");
    if (o->version && o->test)
        shell_say("-V prints the version; UCX's -V, a check of the data, is --verify here");
    /* Only UCX prints without being asked. */
    if (o->quiet)
        setenv("UCX_LOG_LEVEL", "fatal", 0);
}

/* ---- rows ---- */

/* Known once an operation of the test has been made. */
static void say_protocol(struct perf_show *s)
{
    char sentence[256];
    const struct perftest *o = s->output.entry.options->base;
    if (!s->facts || s->said_protocol || !o->protocols)
        return;
    const char *protocol = s->facts->session->facts.protocol;
    snprintf(sentence, sizeof sentence, "protocol of %s: %s", s->output.entry.test,
             *protocol ? protocol : "UCX does not say");
    shell_say(sentence);
    s->said_protocol = true;
}

static int on_interval(struct report *report, const struct result *result)
{
    struct perf_show *s = (struct perf_show *)report;
    say_protocol(s);
    return s->output.report.ops->interval(&s->output.report, result);
}

static void say_reverse(const struct result *r)
{
    char sentence[256];
    double back_s = r->reverse_elapsed_s > 0 ? r->reverse_elapsed_s : 1;
    double there = r->rate.overall, back = (double)r->reverse_count / back_s;
    double size = (double)r->size;
    snprintf(
        sentence, sizeof sentence,
        "the other way at the same time: %" PRIu64 " messages, %.2f MB/s; both ways %.2f MB/s, "
        "%.0f msg/s",
        r->reverse_count, back * size / 1048576, (there + back) * size / 1048576, there + back);
    shell_say(sentence);
}

/* What the median and the percentiles are of, where that is not single operations. */
static void say_means(struct perf_show *s, const struct result *r)
{
    char sentence[128];
    if (r->sampling.ops < 2 || s->said_means)
        return;
    snprintf(sentence, sizeof sentence,
             "an operation takes less than 100 ns: samples are means of %" PRIu64 " of them",
             r->sampling.ops);
    shell_say(sentence);
    s->said_means = true;
}

static int on_row(struct report *report, const struct result *result)
{
    struct perf_show *s = (struct perf_show *)report;
    say_protocol(s);
    int status = s->output.report.ops->row(&s->output.report, result);
    if (!status)
        say_means(s, result);
    if (!status && !isnan(result->reverse_elapsed_s))
        say_reverse(result);
    return status;
}

static void on_progress(struct report *report, const struct progress *progress)
{
    struct perf_show *s = (struct perf_show *)report;
    s->output.report.ops->progress(&s->output.report, progress);
}

static int on_end(struct report *report, int status)
{
    struct perf_show *s = (struct perf_show *)report;
    s->facts = NULL;
    return s->output.report.ops->end(&s->output.report, status);
}

static const struct report_ops ops = {.name = "ucx_perftest",
                                      .begin = on_begin,
                                      .interval = on_interval,
                                      .row = on_row,
                                      .progress = on_progress,
                                      .end = on_end};

static int read_rank(const char *text, double *rank)
{
    char *end;
    *rank = strtod(text, &end);
    return !strchr("0123456789.", *text) || *end || !(*rank >= 0 && *rank <= 100)
               ? fail(-EINVAL, "--rank %s: a percentile is 0 to 100", text)
               : 0;
}

int perf_show_open(struct perf_show *s, const struct perftest *o,
                   const struct output_author *author)
{
    s->report = (struct report){&ops};
    int status = output_open(&s->output, &o->output, author, &s->boxed.report);
    report_boxed_open(&s->boxed, stdout);
    s->boxed.csv = o->csv;
    s->boxed.today = o->form == PERF_FORM_UCX;
    if (!status && *o->rank) {
        status = read_rank(o->rank, &s->rank);
        s->boxed.rank = &s->rank;
    }
    s->boxed.final_only = o->final_only;
    s->boxed.grouped = o->grouped;
    s->boxed.percentiles = s->output.percentiles;
    return status;
}

void perf_show_begin(struct perf_show *s, const struct opt_set *set, const char *labels, bool batch)
{
    const struct perftest *o = set->base;
    snprintf(s->label, sizeof s->label, "%s", labels);
    for (char *at = s->label; *at; at++)
        if (*at == '\n')
            *at = '/';
    s->boxed.labels = labels;
    s->output.entry =
        (struct entry){.test = perf_tests[o->test - 1].name, .label = s->label, .options = set};
    s->output.batch = batch;
}
