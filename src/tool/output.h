/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside tool: where a client's results go besides the table, and what is made of them. */
#ifndef WEFT_TOOL_OUTPUT_H
#define WEFT_TOOL_OUTPUT_H

#include "core/opt.h"
#include "report/report.h"

/* What is asked for besides the table. */
enum { OUTPUT_PERCENTILES = 160, OUTPUT_PATH = 1024, OUTPUT_TEXT = 2048 };
struct output_request {
    char percentiles[OUTPUT_PERCENTILES], json[OUTPUT_PATH], csv[OUTPUT_PATH], fail_if[OUTPUT_TEXT];
    int histogram; /* enum histogram */
};

/* The names of enum histogram. */
extern const char *const output_histograms[];

/* clang-format off */
/* The rows of struct output_request, the same in every tool; at is where it stands in the tool's own. */
#define OUTPUT_ROW(at, member) \
    .type = OPT_TEXT, .field = (at) + offsetof(struct output_request, member), \
    .max = sizeof ((struct output_request *)0)->member
#define OUTPUT_ROWS(at, tools) \
    {.name = "percentiles", OUTPUT_ROW(at, percentiles), .word = "LIST", .takes = (tools), \
     .flags = OPT_OURS, \
     .help = "Columns for percentiles, such as 50,99,99.9;\n" \
             "\"-\" where fewer than ten samples lie beyond"}, \
    {.name = "json", OUTPUT_ROW(at, json), .word = "FILE", .takes = (tools), .flags = OPT_OURS, \
     .help = "Write all that was run and measured as JSON\n" \
             "(\"-\": to standard output, instead of the table)"}, \
    {.name = "csv", OUTPUT_ROW(at, csv), .word = "FILE", .takes = (tools), .flags = OPT_OURS, \
     .help = "The same as CSV, one row per result"}, \
    {.name = "histogram", .type = OPT_CHOICE, .choices = output_histograms, .word = "FORM", \
     .field = (at) + offsetof(struct output_request, histogram), .takes = (tools), \
     .flags = OPT_OURS, .fallback = "full", \
     .help = "Histograms in JSON: full, sparse (32 buckets per\n" \
             "power of two) or none (default: {default})"}, \
    {.name = "fail-if", OUTPUT_ROW(at, fail_if), .word = "COND", .takes = (tools), \
     .flags = OPT_OURS | OPT_REPEATS, \
     .help = "Exit with 3 if this holds for a result, such as\n" \
             "'p99 > 5us' or 'median@4K >= 800ns'; may be\n" \
             "given again"}, \
    {.name = "report-counters", .of = &spec_rows[SPEC_COUNTERS], .word = "LIST", \
     .bare = COUNTERS_USUAL, .takes = (tools), .flags = OPT_OURS, \
     .help = "How far the counters of both ends' network devices\n" \
             "came, per size: all, \"errors\", or a list of names;\n" \
             "on standard error and in JSON"}
/* clang-format on */

enum { OUTPUT_CONDITIONS = 32 };

struct output {
    struct report
        report; /* what bench tells goes to the table, into the document and to verdicts */
    struct report *table;
    const struct output_request *request;
    bool open, table_off; /* the table's place is taken by a document */
    bool batch;           /* the entry's options are for the document too */
    char label[64];
    struct entry entry;            /* of the run: the tool sets test, label and options */
    struct progress progress;      /* of a batch: sizes are tests; else 0 */
    struct interference disturbed; /* all results together */
    double percentiles[REPORT_PERCENTILES + 1];
    char text[OUTPUT_TEXT]; /* of the conditions */
    struct condition conditions[OUTPUT_CONDITIONS];
    int condition_count;
    struct document document;
    unsigned judged[OUTPUT_CONDITIONS]; /* how many results each looked at */
    unsigned unresolved;                /* results that the clock does not resolve */
    char unresolved_text[256];          /* the first of them */
    unsigned failed, unsure;
    struct membuf findings; /* a line each */
    struct membuf counters; /* likewise */
    bool without_counters;  /* that neither end has any was said */
};

/* The author of a document. */
struct output_author {
    const char *tool;
    int argc;
    char **argv;
    const struct opt_set *set;
    unsigned kilo; /* of its bandwidth's KB/s: 1000 or 1024; 0: it measures latency alone */
};

/* What is wrong with the requests, and files that cannot be written, are said before anything runs.
 */
int output_open(struct output *output, const struct output_request *request,
                const struct output_author *author, struct report *table);

/* Refuses the requests, at an end that measures nothing. */
int output_bar(const struct output_request *request);

/* Forgets it all: this end turned out to measure nothing. */
void output_drop(struct output *output);

/* Writes the documents and says what was found. code is the exit code so far and reason its
 * sentence; returns the one to exit with. */
int output_close(struct output *output, int code, const char *reason);

#endif
