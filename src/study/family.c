/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups curves into families: repeated runs of the same command between the same machines. */
#include "study/plot.h"

#include <string.h>

int option_incidental(const char *name)
{
    static const struct {
        const char *name;
        int words;
    } options[] = {{"json", 2},       {"csv", 2},       {"percentiles", 2}, {"fail-if", 2},
                   {"report-all", 1}, {"csv-table", 1}, {"final", 1},       {"numeric", 1},
                   {"list", 1},       {"help", 1},      {"version", 1},     {"port", 2},
                   {"wait", 2},       {"bind", 2},      {"secret-file", 2}, {"histogram", 2}};
    for (size_t i = 0; i < LENGTH(options); i++)
        if (text_same(name, options[i].name))
            return options[i].words;
    return 0;
}

static bool same_program(const char *a, const char *b)
{
    const char *x = a ? a : "", *y = b ? b : "";
    size_t length = strcspn(x, " ");
    return length == strcspn(y, " ") && strncmp(x, y, length) == 0;
}

static bool same_options(const struct study_run *a, const struct study_run *b)
{
    if (a->option_count != b->option_count)
        return false;
    for (size_t i = 0; i < a->option_count; i++)
        if (!text_same(a->options[i].name, b->options[i].name) ||
            (!option_incidental(a->options[i].name) &&
             !text_same(a->options[i].value, b->options[i].value)))
            return false;
    return true;
}

bool run_same_command(const struct study_run *a, const struct study_run *b)
{
    return a->set == b->set && text_same(a->tool, b->tool) && text_same(a->version, b->version) &&
           same_program(a->command, b->command) && same_options(a, b) &&
           text_same(pair_value(a->client, a->client_count, "host"),
                     pair_value(b->client, b->client_count, "host")) &&
           text_same(pair_value(a->server, a->server_count, "host"),
                     pair_value(b->server, b->server_count, "host"));
}

static size_t commands(const struct plot_data *plots)
{
    size_t different = 0;
    for (size_t i = 0, j; i < plots->run_count; i++) {
        for (j = 0; j < i && !run_same_command(&plots->runs[i], &plots->runs[j]);)
            j++;
        different += j == i;
    }
    return different;
}

static void add_families(struct plot_data *plots, int words, bool separate)
{
    for (size_t i = 0; i < plots->curve_count; i++) {
        struct curve *curve = &plots->curves[i];
        size_t f = separate ? plots->family_count : 0;
        for (; f < plots->family_count; f++) {
            const struct curve *other = &plots->curves[plots->families[f].first];
            if (run_same_command(curve->run, other->run) &&
                result_same_kind(curve->results[0], other->results[0], words))
                break;
        }
        if (f == plots->family_count)
            plots->families[plots->family_count++] = (struct family){.first = i};
        plots->families[f].members++;
        curve->family = f;
    }
}

/* Several runs of several commands are grouped; a few runs of one command keep a colour each. */
void plot_data_group(struct plot_data *plots, int words)
{
    add_families(plots, words, false);
    if (plots->curve_count > FEW || (commands(plots) > 1 && plots->family_count > 1))
        return;
    plots->family_count = 0;
    add_families(plots, words, true);
}
