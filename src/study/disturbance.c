/* SPDX-License-Identifier: BSD-3-Clause */
/* What the machine did to the results: at the top of the page in a line per run, and with each run
 * size by size. */
#include "study/plot.h"

#include <inttypes.h>
#include <string.h>

enum { LINES = 8 };

/* ---- size by size ---- */

static void interference(const struct study_result *result, FILE *out)
{
    const struct {
        const char *name;
        uint64_t count;
    } counts[] = {{"preempted", result->preempted},
                  {"migrated", result->migrated},
                  {"page faults", result->page_faults},
                  {"ms stolen", result->steal_ms}};
    char text[24];
    size_t printed = 0;
    for (size_t i = 0; i < LENGTH(counts); i++) {
        if (!counts[i].count)
            continue;
        size_words(result->size, text, sizeof text);
        if (!printed++) {
            fputs("<span class=\"badge\">", out);
            html_print(out, "%s %s: ", result->test ? result->test : "", text);
        } else {
            fputs(", ", out);
        }
        fprintf(out, "%" PRIu64 " %s", counts[i].count, counts[i].name);
    }
    fputs(printed ? "</span> " : "", out);
}

static bool is_undisturbed(const struct study_result *result)
{
    return !(result->preempted || result->migrated || result->page_faults || result->steal_ms);
}

void disturbance_of(const struct study_run *run, FILE *out)
{
    size_t disturbed = 0;
    if (!run->result_count)
        return;
    fputs("<h4>Interference</h4>\n<p>", out);
    for (size_t i = 0; i < run->result_count; i++) {
        disturbed += !is_undisturbed(&run->results[i]);
        interference(&run->results[i], out);
    }
    fputs(disturbed ? "</p>\n"
                    : "None: not preempted, not migrated, no page faults, no time stolen.</p>\n",
          out);
}

/* ---- at the top ---- */

struct sum {
    uint64_t counts[4];
    size_t results;
};

static struct sum sum_of(const struct study_run *run)
{
    struct sum sum = {0};
    for (size_t i = 0; i < run->result_count; i++) {
        const struct study_result *r = &run->results[i];
        const uint64_t counts[] = {r->preempted, r->migrated, r->page_faults, r->steal_ms};
        for (size_t k = 0; k < LENGTH(counts); k++)
            sum.counts[k] += counts[k];
        sum.results += !is_undisturbed(r);
    }
    return sum;
}

static void print_sum(const struct study_run *run, const char *name, const struct sum *sum,
                      FILE *out)
{
    static const char *const before[] = {"preempted ", "migrated ", "", ""};
    static const char *const after[] = {" times", " times", " page faults", " ms stolen"};
    size_t printed = 0;
    fputs("<p><b class=\"name\">", out);
    html_text(out, name);
    fprintf(out, "</b>: %zu of %zu results disturbed: ", sum->results, run->result_count);
    for (size_t i = 0; i < LENGTH(after); i++) {
        if (!sum->counts[i])
            continue;
        fprintf(out, "%s%s%" PRIu64 "%s", printed++ ? ", " : "", before[i], sum->counts[i],
                after[i]);
    }
    fputs("</p>\n", out);
}

void describe_disturbance(const struct plot_data *plots, FILE *out)
{
    size_t found = 0;
    for (size_t i = 0; i < plots->run_count; i++) {
        struct sum sum = sum_of(&plots->runs[i]);
        if (!sum.results || found++ >= LINES)
            continue;
        fputs(found == 1 ? "<div class=\"alarm mild\" role=\"note\" id=\"disturbed\">\n" : "", out);
        print_sum(&plots->runs[i], plots->names[i], &sum, out);
    }
    if (found > LINES)
        fprintf(out, "<p>and %zu more runs</p>\n", found - LINES);
    fputs(found ? "</div>\n" : "", out);
}
