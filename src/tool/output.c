/* SPDX-License-Identifier: BSD-3-Clause */
/* What becomes of results: the table at once, documents and verdicts at the end. A run that failed
 * or was interrupted leaves its document too. */
#include "tool/output.h"
#include "fabric/choose.h"
#include "tool/progress.h"
#include "tool/shell.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* ---- verdicts ---- */

static void find(struct output *o, int i, const struct result *result)
{
    const struct condition *c = &o->conditions[i];
    char text[64], label[160] = "";
    double value;
    enum verdict verdict = condition_judge(c, result, &value);
    if (verdict == VERDICT_NONE)
        return;
    o->judged[i]++;
    document_judge(&o->document, c, value, verdict);
    if (verdict == VERDICT_PASSED || !o->findings.out)
        return;
    if (o->entry.label && *o->entry.label)
        snprintf(label, sizeof label, "%.150s, ", o->entry.label);
    if (verdict == VERDICT_UNKNOWN && condition_too_fine(c, result, value)) {
        o->unsure++;
        fprintf(o->findings.out,
                "cannot tell whether %s: %ssize %llu: the clock resolves %.3g ns\n", c->text, label,
                (unsigned long long)result->size, result->sampling.resolution_ns);
        return;
    }
    if (verdict == VERDICT_UNKNOWN && *c->counter) {
        o->unsure++;
        fprintf(o->findings.out,
                "cannot tell whether %s: %ssize %llu: not all of it is known, see the counters\n",
                c->text, label, (unsigned long long)result->size);
        return;
    }
    if (verdict == VERDICT_UNKNOWN) {
        o->unsure++;
        fprintf(o->findings.out,
                "cannot tell whether %s: %ssize %llu has %llu samples, %.0f are needed\n", c->text,
                label, (unsigned long long)result->size, (unsigned long long)result->stats->count,
                condition_needs(c));
        return;
    }
    o->failed++;
    condition_value(c, value, text, sizeof text);
    fprintf(o->findings.out, "failed, because %s: %ssize %llu has %s\n", c->text, label,
            (unsigned long long)result->size, text);
}

/* ---- what the clock resolves ---- */

static void note_unresolved(struct output *o, const struct result *r)
{
    const struct facts *f = o->entry.facts;
    if (r->sampling.resolved || !r->stats->count)
        return;
    if (!o->unresolved++)
        snprintf(o->unresolved_text, sizeof o->unresolved_text,
                 "size %llu: the clock (step %.0f ns, cost %.0f ns) resolves intervals of %.0f ns, "
                 "and half of them are shorter%s",
                 (unsigned long long)r->size, (double)f->clock->step_ps / 1000,
                 (double)f->clock->cost_ps / 1000, (double)clock_least_ps(f->clock) / 1000,
                 f->method->ucx ? "" : "; --ops-per-sample N times N operations together");
}

static void say_unresolved(const struct output *o)
{
    if (o->unresolved == 1)
        warn("not resolved: %s", o->unresolved_text);
    else if (o->unresolved)
        warn("not resolved: %u results, first %s", o->unresolved, o->unresolved_text);
}

/* ---- counters ---- */

/* Ends without any are said once. */
static void note_counters(struct output *o, const struct result *r)
{
    const char *which = o->entry.facts->spec->counters;
    bool none = r->counters.pairs;
    for (unsigned i = 0; i < 2 * r->counters.pairs; i++)
        none &= *r->counters.ends[i].why != '\0';
    if (!*which || !o->counters.out || (none && o->without_counters))
        return;
    o->without_counters |= none;
    if (r->counters.pairs)
        counters_print(&r->counters, which, r->size, o->counters.out);
    else
        fprintf(o->counters.out, "counters: size %llu: n/a (it was not measured to its end)\n",
                (unsigned long long)r->size);
}

/* ---- CPU time ---- */

/* What sleeping is for, beside what it costs. */
static void note_cpu(struct output *o, const struct result *r)
{
    const struct facts *f = o->entry.facts;
    const double *ns = r->interference.cpu_ns;
    if (!f->spec->waits.events || !o->counters.out || isnan(ns[PEER_CLIENT]))
        return;
    fprintf(o->counters.out, "CPU time per %s: size %llu, client %.0f ns, server %.0f ns\n",
            op_called(f->spec), (unsigned long long)r->size, ns[PEER_CLIENT], ns[PEER_SERVER]);
}

/* ---- what bench tells ---- */

static struct report *table_of(const struct output *o)
{
    return o->table_off ? NULL : o->table;
}

/* Of a batch, the first test describes the two ends. */
static int on_begin(struct report *report, const struct facts *facts)
{
    struct output *o = (struct output *)report;
    struct report *table = table_of(o);
    o->entry.facts = facts;
    if (!o->document.server.length) {
        o->document.client = facts->about[0];
        o->document.server = facts->about[1];
    }
    if (!o->entry.label && facts->op->label) {
        facts->op->label(facts->spec, o->label, sizeof o->label);
        o->entry.label = o->label;
    }
    progress_begin();
    return table && table->ops->begin ? table->ops->begin(table, facts) : 0;
}

static int on_sample(struct report *report, uint64_t number, uint64_t ps)
{
    struct report *table = table_of((struct output *)report);
    return table && table->ops->sample ? table->ops->sample(table, number, ps) : 0;
}

static int on_interval(struct report *report, const struct result *result)
{
    struct report *table = table_of((struct output *)report);
    if (!table || !table->ops->interval)
        return 0;
    progress_clear();
    return table->ops->interval(table, result);
}

/* One interval, where nobody asked for time, is the whole again. */
static void add(struct output *o, const struct result *result)
{
    struct result shown = *result;
    bool whole =
        result->series && result->series->count == 1 && !o->entry.facts->spec->count.duration_ms;
    if (!o->open)
        return;
    shown.series = whole ? NULL : result->series;
    o->entry.result = &shown;
    interference_add(&o->disturbed, &(struct interference){0}, &result->interference);
    struct entry entry = o->entry;
    entry.options = o->batch ? entry.options : NULL;
    entry.memcpy_bytes_per_s = *o->request->json ? ceiling_memcpy(entry.facts, result->size) : NAN;
    document_add(&o->document, &entry);
    note_unresolved(o, result);
    note_counters(o, result);
    note_cpu(o, result);
    for (int i = 0; i < o->condition_count; i++)
        find(o, i, &shown);
}

/* Each pair or thread, in both directions. Its figures are in the document. */
static void note_pairs(const struct result *r)
{
    char text[300], where[200];
    for (unsigned i = 0; r->parts && i < r->parts->count; i++) {
        const struct part *part = &r->parts->list[i];
        int n = snprintf(where, sizeof where, "size %llu, %s %u (%s", (unsigned long long)r->size,
                         r->parts->threads ? "thread" : "pair", i, part->device);
        if (part->cpus[0] >= 0 && n > 0 && (size_t)n < sizeof where)
            snprintf(where + n, sizeof where - (size_t)n, ", CPU %lld to %lld",
                     (long long)part->cpus[0], (long long)part->cpus[1]);
        if (part->known)
            snprintf(text, sizeof text, "%s): %.2f MB/s%s", where,
                     part_rate(part) * (double)r->size / 1e6, part->complete ? "" : ", cut short");
        else
            snprintf(text, sizeof text, "%s): lost", where);
        shell_note(text);
    }
}

static int on_row(struct report *report, const struct result *result)
{
    struct output *o = (struct output *)report;
    struct report *table = table_of(o);
    progress_clear();
    add(o, result);
    note_pairs(result);
    return table ? table->ops->row(table, result) : 0;
}

/* A batch is so far as its tests are. */
static void on_progress(struct report *report, const struct progress *progress)
{
    const struct output *o = (const struct output *)report;
    struct progress shown = *progress;
    if (o->progress.sizes) {
        shown.sizes = o->progress.sizes;
        shown.done = o->progress.done;
    }
    progress_show(&shown);
}

static int on_end(struct report *report, int status)
{
    struct report *table = table_of((struct output *)report);
    progress_clear();
    return table && table->ops->end ? table->ops->end(table, status) : 0;
}

static const struct report_ops output_ops = {.name = "output",
                                             .begin = on_begin,
                                             .sample = on_sample,
                                             .interval = on_interval,
                                             .row = on_row,
                                             .progress = on_progress,
                                             .end = on_end};

/* ---- requests ---- */

const char *const output_histograms[] = {"full", "sparse", "none", NULL};

int output_bar(const struct output_request *w)
{
    const char *given = *w->json                        ? "--json"
                        : *w->csv                       ? "--csv"
                        : *w->fail_if                   ? "--fail-if"
                        : *w->percentiles               ? "--percentiles"
                        : w->histogram > HISTOGRAM_FULL ? "--histogram"
                                                        : NULL;
    return given ? fail(-EINVAL, "%s is for the client: a server measures nothing", given) : 0;
}

static int parse_conditions(struct output *o, const struct output_author *author)
{
    const struct spec *spec = author->set->base;
    char *rest = o->text, *one;
    int status = 0;
    snprintf(o->text, sizeof o->text, "%s", o->request->fail_if);
    while (rest && *rest && !status && (one = strsep(&rest, "\n"))) {
        if (o->condition_count == OUTPUT_CONDITIONS)
            return fail(-EINVAL, "--fail-if: at most %d conditions", OUTPUT_CONDITIONS);
        struct condition *c = &o->conditions[o->condition_count++];
        status = condition_parse(one, author->kilo, c);
        if (!status && *c->counter && !*spec->counters)
            status = fail(-EINVAL, "--fail-if \"%.80s\": needs --report-counters", one);
    }
    return status;
}

static int check_files(const struct output_request *w)
{
    if (w->histogram > HISTOGRAM_FULL && !*w->json)
        return fail(-EINVAL, "--histogram: needs --json");
    if (*w->json && *w->csv && save_same(w->json, w->csv))
        return fail(-EINVAL, "--json and --csv both write to %s", w->json);
    int status = *w->json ? save_check(w->json) : 0;
    return status || !*w->csv ? status : save_check(w->csv);
}

static void hear(void *arg, const char *sentence)
{
    struct output *o = arg;
    document_hear(&o->document, sentence);
}

int output_open(struct output *o, const struct output_request *request,
                const struct output_author *author, struct report *table)
{
    *o = (struct output){.report = {&output_ops},
                         .table = table,
                         .request = request,
                         .table_off =
                             strcmp(request->json, "-") == 0 || strcmp(request->csv, "-") == 0};
    int status = report_percentiles(request->percentiles, o->percentiles);
    if (!status)
        status = parse_conditions(o, author);
    if (!status)
        status = check_files(request);
    if (!status)
        status = document_open(&o->document, author->tool, author->argc, author->argv, author->set,
                               o->percentiles);
    if (!status) {
        o->document.histogram = (enum histogram)request->histogram;
        o->findings.out = open_memstream(&o->findings.bytes, &o->findings.length);
        o->counters.out = open_memstream(&o->counters.bytes, &o->counters.length);
    }
    o->open = !status;
    /* A reader that closes the pipe to the table still gets its document. */
    if (o->open && (*request->json || *request->csv))
        signal(SIGPIPE, SIG_IGN);
    if (o->open)
        shell_listen(hear, o);
    return status;
}

/* ---- the end ---- */

/* A condition about a size that was not measured must not look like one that was met. */
static void find_idle(struct output *o)
{
    for (int i = 0; i < o->condition_count; i++) {
        if (o->judged[i] || !o->findings.out)
            continue;
        o->unsure++;
        fprintf(o->findings.out, "cannot tell whether %s: there is no such result\n",
                o->conditions[i].text);
    }
}

/* Forgets them, having passed on each line; NULL: to nobody. */
static void take_lines(struct membuf *lines, void (*take)(const char *line))
{
    char *rest, *one;
    if (!lines->out)
        return;
    fclose(lines->out);
    rest = lines->bytes;
    while (take && rest && *rest && (one = strsep(&rest, "\n")))
        take(one);
    free(lines->bytes);
    *lines = (struct membuf){0};
}

/* What a run that was good comes to if its results cannot be written. */
static int spoiled(int code)
{
    return code == EXIT_DONE || code == EXIT_THRESHOLD || code == EXIT_UNSURE ? EXIT_FAILED : code;
}

/* The document last: it has the exit code. */
static int save(struct output *o, int code, const char *reason)
{
    int csv = *o->request->csv ? document_save_csv(&o->document, o->request->csv) : 0;
    if (csv) {
        shell_say(fail_reason());
        code = spoiled(code);
    }
    struct ending ending = {
        .state = code == EXIT_DONE || code == EXIT_THRESHOLD || code == EXIT_UNSURE ? "complete"
                 : code > EXIT_SIGNAL                                               ? "interrupted"
                                                                                    : "failed",
        .exit = code,
        .reason = reason};
    int json = *o->request->json ? document_save_json(&o->document, &ending, o->request->json) : 0;
    if (json)
        shell_say(fail_reason());
    return json ? spoiled(code) : code;
}

void output_drop(struct output *o)
{
    if (!o->open)
        return;
    shell_listen(NULL, NULL);
    take_lines(&o->findings, NULL);
    take_lines(&o->counters, NULL);
    document_close(&o->document);
    o->open = false;
}

int output_close(struct output *o, int code, const char *reason)
{
    char why[1024];
    if (!o->open)
        return code;
    progress_end();
    snprintf(why, sizeof why, "%s", code ? reason : "");
    /* Of a run that failed, this is not what the user needs to know. */
    if (code == EXIT_DONE) {
        say_unresolved(o);
        interference_say(&o->disturbed);
    }
    if (code == EXIT_DONE)
        find_idle(o);
    take_lines(&o->counters, shell_note);
    take_lines(&o->findings, shell_say);
    if (code == EXIT_DONE)
        code = o->failed ? EXIT_THRESHOLD : o->unsure ? EXIT_UNSURE : EXIT_DONE;
    code = save(o, code, why);
    output_drop(o);
    return code;
}
