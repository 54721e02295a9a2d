/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzzes the option rows of every tool and every command of weft. The first byte chooses one; the
 * words follow, one per line. What is accepted can be shown, and is read again alike. */
#include "fuzz/feed.h"
#include "tool/cxi.h"
#include "tool/perftest.h"
#include "tool/weft.h"

#include <stdlib.h>
#include <string.h>

enum { WORDS = 64, BYTES = 4096 };

unsigned fuzz_accepted;

struct words {
    char bytes[BYTES];
    char *list[WORDS];
    const char *places[WORDS];
    int count, given;
};

static void split(struct feed *feed, struct words *w)
{
    size_t length = feed->left < BYTES - 1 ? feed->left : BYTES - 1;
    char *rest = w->bytes, *word;
    memcpy(w->bytes, feed->data, length);
    w->bytes[length] = '\0';
    w->count = 0;
    while (w->count < WORDS && (word = strsep(&rest, "\n")))
        w->list[w->count++] = word;
}

/* As a value is shown, so it may be typed. */
static void show(const struct opt_set *set, void *copy, size_t length)
{
    struct opt_set again = *set;
    memcpy(copy, set->base, length);
    again.base = copy;
    for (const struct opt *row = opt_next(set, NULL); row; row = opt_next(set, row)) {
        char text[4096], same[4096], few[4];
        if (row->type == OPT_LINE)
            continue;
        opt_format(row, set->base, text, sizeof text);
        opt_format(row, set->base, few, sizeof few);
        if (opt_origin(set, row) != OPT_BY_USER || opt_whole(row).type == OPT_TEXT)
            continue;
        if (opt_assign(&again, row, text, OPT_BY_USER))
            abort();
        opt_format(row, again.base, same, sizeof same);
        if (strcmp(text, same) != 0)
            abort();
    }
}

static int outputs(const struct output_request *request, unsigned kilo)
{
    struct condition condition;
    double percentiles[REPORT_PERCENTILES + 1];
    char text[OUTPUT_TEXT], *rest = text, *one;
    int status = report_percentiles(request->percentiles, percentiles);
    memcpy(text, request->fail_if, sizeof text);
    while (!status && (one = strsep(&rest, "\n")) && *one)
        status = condition_parse(one, kilo, &condition);
    return status;
}

/* ---- the tools ---- */

#define CXI_TOOL(tool, words, what, how)      {what, how, false},
#define LOOPBACK_TOOL(tool, words, what, how) {what, how, true},
#define TOOL(tool, main)
static const struct {
    const char *op, *method;
    bool alone;
} cxi_tools[] = {
#include "tool/tools.def"
};
#undef CXI_TOOL
#undef LOOPBACK_TOOL
#undef TOOL

static int choice_of(const char *const *names, const char *name)
{
    int i = 0;
    while (strcmp(names[i], name) != 0)
        i++;
    return i + 1;
}

static int cxi(const char *op, const char *method, bool alone, struct words *w)
{
    static struct cxi_options values, copy;
    values = (struct cxi_options){0};
    spec_defaults(&values.spec);
    values.spec.op = choice_of(op_names, op);
    values.spec.method = choice_of(method_names, method);
    struct opt_set set = {.rows = cxi_rows,
                          .takes = alone ? CXI_ALONE
                                         : cxi_takes(op_of(&values.spec), method_of(&values.spec)),
                          .base = &values};
    opt_defaults(&set);
    int status = opt_parse(&set, w->count, w->list, &values.address, 1, &w->given);
    if (!status)
        status = cxi_check(&values, &set);
    if (!status)
        status = outputs(&values.output, method_of(&values.spec)->lists ? 1000 : 0);
    if (!status)
        show(&set, &copy, sizeof copy);
    return status;
}

static int perftest(struct words *w)
{
    static struct perftest values, copy;
    struct opt_set set = {.rows = perf_rows, .base = &values};
    char device[FABRIC_DEVICE_MAX], memory[PERF_MEMORY];
    values = (struct perftest){0};
    spec_defaults(&values.spec);
    opt_defaults(&set);
    int status = opt_parse(&set, w->count, w->list, &values.address, 1, &w->given);
    if (!status)
        status = outputs(&values.output, 1024);
    if (!status)
        show(&set, &copy, sizeof copy);
    if (!status)
        status = perf_settle(&set);
    for (int rank = 0; rank < 2 && !status; rank++)
        status = perf_memory(values.memory, rank, memory);
    return status ? status : perf_device(0, values.transport, values.device, device, sizeof device);
}

static int weft(unsigned takes, struct words *w)
{
    static struct weft_options values, copy;
    struct opt_set set = {.rows = weft_rows, .takes = takes, .base = &values};
    struct study_terms terms;
    values = (struct weft_options){0};
    opt_defaults(&set);
    int status = opt_parse(&set, w->count, w->list, w->places, WORDS, &w->given);
    if (!status && takes & (WEFT_COMPARE | WEFT_REPEAT))
        status = weft_terms(&values, &terms);
    if (!status)
        show(&set, &copy, sizeof copy);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const unsigned commands[] = {WEFT_COMPARE, WEFT_REPEAT, WEFT_REPORT, WEFT_INFO,
                                        WEFT_KEYGEN};
    static struct words words;
    struct feed feed = {data, size};
    /* The family that grows comes last, so that a seed stays what it was. */
    size_t which = next_byte(&feed) % (LENGTH(commands) + 1 + LENGTH(cxi_tools));
    size_t tool = which - LENGTH(commands) - 1;
    split(&feed, &words);
    int status = which < LENGTH(commands)    ? weft(commands[which], &words)
                 : which == LENGTH(commands) ? perftest(&words)
                                             : cxi(cxi_tools[tool].op, cxi_tools[tool].method,
                                                   cxi_tools[tool].alone, &words);
    fuzz_accepted += !status;
    return 0;
}
