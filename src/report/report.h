/* SPDX-License-Identifier: BSD-3-Clause */
/* The door of report: results to text. A format implements bench's struct report_ops. */
#ifndef WEFT_REPORT_H
#define WEFT_REPORT_H

#include "bench/bench.h"
#include "core/clock.h"
#include "core/opt.h"

#include <stdio.h>

/* ---- one result, however it was measured ---- */

/* At most so many percentiles; a list of them ends with 0. */
enum { REPORT_PERCENTILES = WEFT_PERCENTILES - 1 };

/* What is not known is NULL, or not a number. */
struct outcome {
    const char *test, *label, *layout;
    uint64_t size;
    const char *fabric, *device, *form, *why;
    const char *method, *proves;
    bool half_round_trip, clock_subtracted, complete;
    enum clock_kind clock;
    double clock_cost_ns;
    const struct stats *stats; /* in units of */
    double us_per_unit;
    double mean_us; /* not a number: of the samples */
    double elapsed_s, bytes_per_s, messages_per_s;
    struct interference interference;
    const struct series *series;
    uint64_t reverse_count; /* stream both ways */
    double reverse_elapsed_s;
    const struct opt_set *options; /* of this result alone, or NULL */
};

/* "50,99,99.9" to numbers; an empty text to none. -EINVAL and a sentence. */
int report_percentiles(const char *text, double list[REPORT_PERCENTILES + 1]);

/* One with its interval; -ENODATA, and not numbers, where too few samples lie beyond it. */
int outcome_percentile(const struct outcome *outcome, double percent,
                       struct weft_percentile *percentile);

/* As the tool's table has it: of the samples, or elapsed time by messages. */
double outcome_mean_us(const struct outcome *outcome);

/* A condition of --fail-if: METRIC[@SIZE] RELATION BOUND. */
struct condition {
    const char *text;
    const struct metric *metric; /* NULL: a percentile */
    double percent;
    uint64_t size; /* 0: any */
    int relation;
    double bound;
};
enum verdict { VERDICT_NONE, VERDICT_PASSED, VERDICT_FAILED, VERDICT_UNKNOWN };

/* rates: the tool has bandwidth and message rate. -EINVAL and a sentence. */
int condition_parse(const char *text, bool rates, struct condition *condition);

/* Failed: the condition holds. None: it is about another size; unknown: too few samples. */
enum verdict condition_judge(const struct condition *condition, const struct outcome *outcome,
                             double *value);

/* How many samples it takes to be judged. */
double condition_needs(const struct condition *condition);

/* The value with its unit. */
void condition_value(const struct condition *condition, double value, char *text, size_t room);

/* ---- formats that are written at the end, whole ---- */

/* JSON as it is written; key is NULL in arrays. A number that is none is null, and so is a text
 * that is NULL. */
struct json {
    FILE *out;
    int depth, lines; /* so deep, everything has a line of its own */
    bool filled;
};
void json_open(struct json *json, const char *key, char bracket);
void json_close(struct json *json, char bracket);
void json_text(struct json *json, const char *key, const char *text);
void json_bool(struct json *json, const char *key, bool value);
void json_count(struct json *json, const char *key, uint64_t count);
void json_number(struct json *json, const char *key, double value); /* to the millionth */
void json_decimals(struct json *json, const char *key, double value, int decimals); /* at most */

/* Text that grows. */
struct membuf {
    FILE *out;
    char *bytes;
    size_t length;
};

/* A run as the schema describes it, and as CSV. Both are collected while it goes on. */
struct document {
    const char *tool;
    int argc;
    char **argv;
    const struct opt_set *set;
    double percentiles[REPORT_PERCENTILES + 1]; /* those asked for, or the usual ones */
    char begun[32];
    struct msg client, server; /* as machine_describe does; server may be empty */
    unsigned results;
    struct json json, verdicts, said;
    struct membuf result_text, verdict_text, said_text, rows;
};

/* How a run ended. */
struct ending {
    const char *state; /* complete, interrupted, failed */
    int exit;
    const char *reason;
};

int document_open(struct document *document, const char *tool, int argc, char **argv,
                  const struct opt_set *set, const double *percentiles);
void document_close(struct document *document);
void document_add(struct document *document, const struct outcome *outcome);
/* What standard error was told. */
void document_hear(struct document *document, const char *sentence);
void document_judge(struct document *document, const struct condition *condition, double value,
                    enum verdict verdict);

/* Writes what was collected; "-" is standard output. */
int document_save_json(struct document *document, const struct ending *ending, const char *path);
int document_save_csv(struct document *document, const char *path);

/* A field of CSV, quoted where it must be, and the comma behind it. */
void csv_field(FILE *out, const char *text, size_t length);

/* The rows of document_save_csv; for document_add. */
void csv_add(struct document *document, const struct outcome *outcome);

/* Can this file be written, as far as can be known before? "-" is standard output. */
int save_check(const char *path);

/* Do two paths lead to one place? Also if there is no file yet. */
bool save_same(const char *a, const char *b);
/* Writes it whole and puts it in its place. */
int save_write(const char *path, const char *bytes, size_t length);

/* ---- tables ---- */

/* The CXI tools' header and table. */
struct report_table {
    struct report report;
    FILE *out;
    const double *percentiles; /* columns of their own; ends with 0 */
    const struct bench_facts *facts;
    int width;   /* of separators */
    bool titled; /* column titles stand */
    bool open;   /* something stands below the last separator */
};

void report_table_open(struct report_table *table, FILE *out, const double *percentiles);

/* ucx_perftest's table, or CSV. Lists have an entry a line. */
struct report_boxed {
    FILE *out;
    bool csv, final_only, grouped;
    const double *percentiles; /* columns of their own; ends with 0, or NULL */
    const char *columns;       /* of CSV, before the others: the batch files */
    const char *labels;        /* of the test that runs, one for each batch file */
    const char *group;         /* of the first columns, as last drawn */
};

/* A test begins; group is "latency" or "overhead". */
int report_boxed_begin(struct report_boxed *boxed, const char *group, const char *labels);
int report_boxed_row(struct report_boxed *boxed, const struct weft_result *result);

#endif
