/* SPDX-License-Identifier: BSD-3-Clause */
/* The description of each run: options and their origin, both machines, timing, interference; and
 * the differences between runs. */
#include "core/counters.h"
#include "study/plot.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Up to so many runs are printed in full. */
enum { PRINTED_RUNS = 4 };

static void cells(FILE *out, const char *name, const char *value)
{
    fputs("<tr><th>", out);
    html_text(out, name);
    fputs("</th><td>", out);
    html_text(out, value && value[0] ? value : "-");
    fputs("</td></tr>\n", out);
}

/* ---- one run ---- */

static bool is_default(const struct study_pair *option)
{
    return !option->origin || strcmp(option->origin, "default") == 0;
}

static void options_given(const struct study_run *run, FILE *out)
{
    size_t given = 0;
    for (size_t i = 0; i < run->option_count; i++) {
        const struct study_pair *option = &run->options[i];
        if (is_default(option))
            continue;
        if (!given++)
            fputs("<table class=\"facts given\"><thead><tr><th>Option</th><th>Value</th><th>Set by"
                  "</th></tr></thead><tbody>\n",
                  out);
        fputs("<tr><td>", out);
        html_text(out, option->name);
        fputs("</td><td>", out);
        html_text(out, option->value && option->value[0] ? option->value : "-");
        fputs("</td><td>", out);
        html_text(out, option->origin);
        fputs("</td></tr>\n", out);
    }
    fputs(given ? "</tbody></table>\n" : "", out);
}

static void options_default(const struct study_run *run, FILE *out)
{
    size_t count = 0;
    for (size_t i = 0; i < run->option_count; i++) {
        const struct study_pair *option = &run->options[i];
        if (!is_default(option))
            continue;
        fputs(count++ ? "" : "<p class=\"usual\">Defaults: ", out);
        fputs("<span>", out);
        html_text(out, option->name);
        fputs(" ", out);
        html_text(out, option->value && option->value[0] ? option->value : "-");
        fputs("</span> ", out);
    }
    fputs(count ? "</p>\n" : "", out);
}

static void machine_row(const struct study_run *run, const char *name, FILE *out)
{
    fputs("<tr><th>", out);
    html_text(out, name);
    fputs("</th><td>", out);
    html_text(out, pair_value(run->client, run->client_count, name));
    fputs("</td><td>", out);
    html_text(out, pair_value(run->server, run->server_count, name));
    fputs("</td></tr>\n", out);
}

static void machines(const struct study_run *run, FILE *out)
{
    fputs("<h4>Machines</h4>\n<div class=\"scroll\"><table class=\"facts\"><thead><tr><th></th>"
          "<th>Client</th><th>Server</th></tr></thead><tbody>\n",
          out);
    for (size_t i = 0; i < run->client_count; i++)
        machine_row(run, run->client[i].name, out);
    for (size_t i = 0; i < run->server_count; i++)
        if (!pair_value(run->client, run->client_count, run->server[i].name))
            machine_row(run, run->server[i].name, out);
    fputs("</tbody></table></div>\n", out);
    if (!run->server_count)
        fputs("<p class=\"none\">The server never answered.</p>\n", out);
}

static bool same_timing(const struct study_result *a, const struct study_result *b)
{
    return text_same(a->test, b->test) && text_same(a->method, b->method) &&
           text_same(a->clock, b->clock) && text_same(a->proves, b->proves) &&
           text_same(a->device, b->device) && text_same(a->form, b->form) &&
           text_same(a->why, b->why) && a->half_round_trip == b->half_round_trip &&
           a->clock_subtracted == b->clock_subtracted;
}

static void sampling(const struct study_result *result, FILE *out)
{
    if (!(result->resolution_ns > 0))
        return;
    fprintf(out, "<tr><th>Resolution</th><td>%.4g ns", result->resolution_ns);
    if (result->ops_per_sample > 1)
        fprintf(out, ", a sample is the %s %" PRIu64 " operations",
                study_kind(result) == STUDY_LIST ? "time of a list of" : "mean of",
                result->ops_per_sample);
    fputs("</td></tr>\n", out);
}

static void method(const struct study_result *result, FILE *out)
{
    fputs("<table class=\"facts\"><tbody>\n", out);
    cells(out, "Test", result->test);
    cells(out, "Device", result->device);
    cells(out, "Path", result->form);
    if (result->why && result->why[0])
        cells(out, "Chosen because", result->why);
    fputs("<tr><th>Method</th><td>", out);
    html_text(out, result->method);
    fputs(result->half_round_trip ? ", half round trip" : "", out);
    fputs("</td></tr>\n<tr><th>Clock</th><td>", out);
    html_text(out, result->clock);
    if (isfinite(result->clock_cost_ns))
        fprintf(out, ", %.4g ns per sample%s", result->clock_cost_ns,
                result->clock_subtracted ? ", subtracted" : ", not subtracted");
    fputs("</td></tr>\n", out);
    cells(out, "Completion proves", result->proves);
    sampling(result, out);
    fputs("</tbody></table>\n", out);
}

static void methods(const struct study_run *run, FILE *out)
{
    fputs(run->result_count ? "<h4>Timing</h4>\n" : "", out);
    for (size_t i = 0, j; i < run->result_count; i++) {
        for (j = 0; j < i && !same_timing(&run->results[i], &run->results[j]);)
            j++;
        if (j == i)
            method(&run->results[i], out);
    }
}

static bool same_end(const struct study_counter *a, const struct study_counter *b)
{
    return strcmp(a->end, b->end) == 0 && text_same(a->device, b->device);
}

static void counter(const struct study_counter *c, FILE *out)
{
    bool error = c->delta > 0 && counter_is_error(c->name);
    fputs(error ? "<span class=\"badge bad\">" : "", out);
    html_print(out, "%s ", c->name);
    if (isnan(c->delta))
        fputs("n/a", out);
    else
        fprintf(out, "+%.0f", c->delta);
    fputs(error ? "</span>" : "", out);
}

/* A row for each end of each result: what moved, and how many did not. */
static void counters_of(const struct study_result *result, FILE *out)
{
    const struct study_counter *all = result->counters;
    for (size_t i = 0, end; i < result->counter_count; i = end) {
        size_t still = 0, shown = 0;
        char text[24];
        size_words(result->size, text, sizeof text);
        fputs("<tr><td>", out);
        html_print(out, "%s %s", result->test ? result->test : "", text);
        fputs("</td><td>", out);
        html_print(out, "%s %s", all[i].end, all[i].device ? all[i].device : "-");
        fputs("</td><td>", out);
        for (end = i; end < result->counter_count && same_end(&all[i], &all[end]); end++) {
            if (all[end].delta == 0 && ++still)
                continue;
            fputs(shown++ ? ", " : "", out);
            counter(&all[end], out);
        }
        if (still)
            fprintf(out, "%s%zu unchanged", shown ? ", " : "", still);
        fputs("</td></tr>\n", out);
    }
}

static void counters(const struct study_run *run, FILE *out)
{
    size_t count = 0;
    for (size_t i = 0; i < run->result_count; i++)
        count += run->results[i].counter_count;
    if (!count)
        return;
    fputs("<h4>Counters of network devices</h4>\n<table class=\"facts\"><tbody>\n", out);
    for (size_t i = 0; i < run->result_count; i++)
        counters_of(&run->results[i], out);
    fputs("</tbody></table>\n", out);
}

static void conditions(const struct study_run *run, FILE *out)
{
    fputs(run->condition_count ? "<h4>Conditions</h4>\n<table class=\"facts\"><tbody>\n" : "", out);
    for (size_t i = 0; i < run->condition_count; i++) {
        const struct study_condition *condition = &run->conditions[i];
        char text[24];
        uint64_t place = condition->result;
        size_words(place < run->result_count ? run->results[place].size : 0, text, sizeof text);
        fputs("<tr><td>", out);
        html_text(out, condition->text);
        fprintf(out, "</td><td>%s</td><td>", text);
        html_number(out, condition->value);
        fprintf(out, "</td><td><span class=\"badge %s\">",
                text_same(condition->verdict, "passed")   ? "good"
                : text_same(condition->verdict, "failed") ? "bad"
                                                          : "");
        html_text(out, condition->verdict);
        fputs("</span></td></tr>\n", out);
    }
    fputs(run->condition_count ? "</tbody></table>\n" : "", out);
}

static void warnings(const struct study_run *run, FILE *out)
{
    fputs(run->warning_count ? "<h4>Printed on standard error</h4>\n<ul>\n" : "", out);
    for (size_t i = 0; i < run->warning_count; i++) {
        fputs("<li>", out);
        html_text(out, run->warnings[i]);
        fputs("</li>\n", out);
    }
    fputs(run->warning_count ? "</ul>\n" : "", out);
}

static void built(const struct study_run *run, FILE *out)
{
    if (!run->commit)
        return;
    fputs("<tr><th>Built from</th><td>", out);
    html_print(out, "commit %s with %s %s", run->commit, run->compiler, run->flags);
    for (size_t i = 0; i < run->library_count; i++)
        html_print(out, "%s%s", i ? ", " : "; loaded: ", run->libraries[i]);
    fputs("</td></tr>\n", out);
}

static void describe_run(const struct plot_data *plots, size_t number, FILE *out)
{
    const struct study_run *run = &plots->runs[number];
    bool complete = text_same(run->state, "complete");
    fprintf(out, "<details%s><summary>", plots->run_count == 1 ? " open" : "");
    html_text(out, plots->names[number]);
    if (!complete) {
        fputs(" <span class=\"badge bad\">", out);
        html_text(out, run->state);
        fputs("</span>", out);
    }
    fputs("</summary><div class=\"in\">\n<p><code>", out);
    html_text(out, run->command);
    fputs("</code></p>\n<table class=\"facts\"><tbody>\n", out);
    cells(out, "File", run->path);
    fputs("<tr><th>Tool</th><td>", out);
    html_print(out, "%s of Weft %s", run->tool ? run->tool : "-",
               run->version ? run->version : "-");
    fputs("</td></tr>\n", out);
    built(run, out);
    cells(out, "Started", run->begun);
    cells(out, "Ended", run->ended);
    fputs("<tr><th>Status</th><td>", out);
    html_text(out, run->state);
    fprintf(out, ", exit code %" PRIu64, run->exit);
    html_print(out, "%s%s", run->reason && run->reason[0] ? ": " : "",
               run->reason ? run->reason : "");
    fputs("</td></tr>\n</tbody></table>\n", out);
    conditions(run, out);
    warnings(run, out);
    fputs(run->option_count ? "<h4>Options</h4>\n" : "", out);
    options_given(run, out);
    options_default(run, out);
    machines(run, out);
    methods(run, out);
    disturbance_of(run, out);
    counters(run, out);
    fputs("</div></details>\n", out);
}

/* A line for each of very many: what differs between them has its own section. */
static void list_runs(const struct plot_data *plots, FILE *out)
{
    fputs(
        "<div class=\"scroll long\"><table class=\"facts\"><thead><tr><th>Run</th><th>Started</th>"
        "<th>Status</th><th>Command</th></tr></thead><tbody>\n",
        out);
    for (size_t i = 0; i < plots->run_count; i++) {
        const struct study_run *run = &plots->runs[i];
        const char *const texts[] = {plots->names[i], run->begun, run->state, run->command};
        fputs("<tr>", out);
        for (size_t k = 0; k < LENGTH(texts); k++) {
            fputs("<td>", out);
            html_text(out, texts[k]);
            fputs("</td>", out);
        }
        fputs("</tr>\n", out);
    }
    fputs("</tbody></table></div>\n<p class=\"sub\">The first one in full:</p>\n", out);
}

void describe_runs(const struct plot_data *plots, FILE *out)
{
    bool many = plot_data_many(plots);
    /* In print, few runs are written out; of many, only those that were opened. */
    fprintf(out, "<section id=\"runs\"%s>\n<h2>%s</h2>\n",
            plots->run_count <= PRINTED_RUNS ? " class=\"few\"" : "",
            plots->run_count == 1 ? "The run" : "The runs");
    if (many)
        list_runs(plots, out);
    for (size_t i = 0; i < (many ? 1 : plots->run_count); i++)
        describe_run(plots, i, out);
    fputs("</section>\n", out);
}

/* ---- differences ---- */

enum source { OPTIONS, CLIENT, SERVER, SOURCES };

static const struct study_pair *pairs_of(const struct study_run *run, enum source source,
                                         size_t *count)
{
    *count = source == OPTIONS  ? run->option_count
             : source == CLIENT ? run->client_count
                                : run->server_count;
    return source == OPTIONS ? run->options : source == CLIENT ? run->client : run->server;
}

static const char *value_of(const struct study_run *run, enum source source, const char *name)
{
    size_t count;
    const struct study_pair *pairs = pairs_of(run, source, &count);
    return pair_value(pairs, count, name);
}

/* A server that never answered is unknown, which is not a difference. */
static bool unknown(const struct study_run *run, enum source source)
{
    size_t count;
    pairs_of(run, source, &count);
    return source != OPTIONS && !count;
}

/* One line per value: the value and the first runs that have it. */
static void values(const struct plot_data *plots, enum source source, const char *name, FILE *out)
{
    for (size_t i = 0, j; i < plots->run_count; i++) {
        const char *mine = value_of(&plots->runs[i], source, name);
        for (j = 0; j < i && (unknown(&plots->runs[j], source) ||
                              !text_same(mine, value_of(&plots->runs[j], source, name)));)
            j++;
        if (j < i || unknown(&plots->runs[i], source))
            continue;
        fputs("<div><b>", out);
        html_text(out, mine && mine[0] ? mine : "-");
        fputs("</b> <span class=\"sub\">", out);
        size_t others = 0;
        for (j = i; j < plots->run_count; j++) {
            if (unknown(&plots->runs[j], source) ||
                !text_same(mine, value_of(&plots->runs[j], source, name)))
                continue;
            if (others++ >= 4)
                continue;
            fputs(others > 1 ? ", " : "", out);
            html_text(out, plots->names[j]);
        }
        if (others > 4)
            fprintf(out, " and %zu more", others - 4);
        fputs("</span></div>", out);
    }
}

static bool differs(const struct plot_data *plots, enum source source, const char *name)
{
    const struct study_run *first = NULL;
    for (size_t i = 0; i < plots->run_count; i++) {
        const struct study_run *run = &plots->runs[i];
        if (unknown(run, source))
            continue;
        first = first ? first : run;
        if (!text_same(value_of(run, source, name), value_of(first, source, name)))
            return true;
    }
    return false;
}

static bool named_before(const struct plot_data *plots, size_t run, enum source source,
                         const char *name)
{
    for (size_t i = 0; i < run; i++)
        if (value_of(&plots->runs[i], source, name))
            return true;
    return false;
}

void describe_differences(const struct plot_data *plots, FILE *out)
{
    static const char *const words[SOURCES] = {"option", "client", "server"};
    size_t found = 0, count;
    for (int source = 0; source < SOURCES; source++) {
        for (size_t i = 0; i < plots->run_count; i++) {
            const struct study_pair *pairs = pairs_of(&plots->runs[i], source, &count);
            for (size_t j = 0; j < count; j++) {
                const char *name = pairs[j].name;
                if (named_before(plots, i, source, name) || !differs(plots, source, name) ||
                    (source == OPTIONS && option_incidental(name)))
                    continue;
                if (!found++)
                    fputs("<section id=\"differences\">\n<h2>Differences between runs</h2>\n<div "
                          "class=\"scroll\"><table class=\"facts\"><tbody>\n",
                          out);
                fprintf(out, "<tr><th>%s ", words[source]);
                html_text(out, name);
                fputs("</th><td>", out);
                values(plots, source, name, out);
                fputs("</td></tr>\n", out);
            }
        }
    }
    fputs(found ? "</tbody></table></div>\n</section>\n" : "", out);
}
