/* SPDX-License-Identifier: BSD-3-Clause */
/* The door of report: results to text. A format implements bench's struct report_ops. */
#ifndef WEFT_REPORT_H
#define WEFT_REPORT_H

#include "bench/session.h"
#include "core/clock.h"
#include "core/opt.h"

#include <stdio.h>

/* ---- one result ---- */

/* At most so many percentiles; a list of them ends with 0. */
enum { REPORT_PERCENTILES = 15 };

/* A percentile with its 95 % confidence interval. */
struct percentile {
    double percent, us, low_us, high_us;
};

/* A result and what it belongs to. */
struct entry {
    const char *test;              /* as the tool calls it */
    const char *label;             /* distinguishes it from others of that name, or "" */
    const struct opt_set *options; /* of this result only, or NULL */
    const struct facts *facts;
    const struct result *result;
    double memcpy_bytes_per_s; /* of lists: ceiling_memcpy, or not a number */
};

/* Lists: bytes per second that one CPU of this machine copies from as many places to as many, of
 * this size; NAN where that bounds nothing: on GPUs, or where no byte moves. Takes some
 * milliseconds. */
double ceiling_memcpy(const struct facts *facts, uint64_t size);

/* The data layout, or NULL if there is none; and the method. */
const char *facts_layout(const struct facts *facts);
const char *facts_method(const struct facts *facts);

/* "50,99,99.9" to numbers; an empty text to none. -EINVAL and an error message. */
int report_percentiles(const char *text, double list[REPORT_PERCENTILES + 1]);

/* A percentile with its interval; -ENODATA and NAN if too few samples lie beyond it. */
int report_percentile(const struct result *result, double percent, struct percentile *percentile);

/* As in the tool's table: of the samples, or elapsed time / messages. */
double report_mean_us(const struct result *result);

/* A figure of the samples is below what the clock resolves: all that is known of it. */
bool report_below(const struct result *result, double us);

/* Such a figure as it is shown: "<0.022", rounded up. */
void report_below_text(const struct result *result, char *text, size_t room);

/* A condition of --fail-if: METRIC[@SIZE] RELATION BOUND. */
struct condition {
    const char *text;
    const struct metric *metric; /* NULL: a percentile */
    double percent;
    char counter[COUNTER_NAME]; /* "": the metric is no counter */
    int end;                    /* of a counter: its rank; -1: the larger one of both ends */
    uint64_t size;              /* 0: any */
    int relation;
    double bound;
    unsigned kilo; /* of the tool's KB/s */
};
enum verdict { VERDICT_NONE, VERDICT_PASSED, VERDICT_FAILED, VERDICT_UNKNOWN };

/* kilo: what the tool's table makes of K, M and G, 1000s or 1024s; 0: it has neither bandwidth nor
 * message rate. -EINVAL and an error message. */
int condition_parse(const char *text, unsigned kilo, struct condition *condition);

/* Failed: the condition holds. None: it is about another size; unknown: too few samples, or its
 * bound is too fine for the clock. */
enum verdict condition_judge(const struct condition *condition, const struct result *result,
                             double *value);

bool condition_too_fine(const struct condition *condition, const struct result *result,
                        double value);

/* How many samples are needed to judge it. */
double condition_needs(const struct condition *condition);

/* The value with its unit. */
void condition_value(const struct condition *condition, double value, char *text, size_t room);

/* A counter of a condition: of one end, or the larger one of both, and the largest of all devices;
 * "errors" is the sum of all that count errors. Not a number if it is not known; *sure: no other
 * value could be larger. */
double counter_value(const struct condition *condition, const struct result *result, bool *sure);

/* Lines about the counters of a result, one per end and device. */
void counters_print(const struct counted *counted, const char *which, uint64_t size, FILE *out);

/* ---- formats that are written at the end, whole ---- */

/* JSON as it is written; key is NULL in arrays. NAN and a text of NULL become null. */
struct json {
    FILE *out;
    int depth, lines; /* up to this depth, everything has its own line */
    bool filled;
};
void json_open(struct json *json, const char *key, char bracket);
void json_close(struct json *json, char bracket);
void json_text(struct json *json, const char *key, const char *text);
/* A value that is JSON already. */
void json_raw(struct json *json, const char *key, const char *text);
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

/* What a document has of the samples of a result: every bucket, fewer and wider ones, or none. */
enum histogram { HISTOGRAM_FULL = 1, HISTOGRAM_SPARSE, HISTOGRAM_NONE };

/* A run as the schema describes it, and as CSV. Both are collected during the run. */
struct document {
    const char *tool;
    int argc;
    char **argv;
    const struct opt_set *set;
    double percentiles[REPORT_PERCENTILES + 1]; /* the requested ones, or the default ones */
    enum histogram histogram;                   /* 0: full */
    char begun[32];
    struct msg client, server; /* as from machine_describe; server may be empty */
    unsigned results;
    char libraries[4][48]; /* of the fabrics that carried it */
    size_t library_count;
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
void document_add(struct document *document, const struct entry *entry);
/* A line that was printed on standard error. */
void document_hear(struct document *document, const char *sentence);
void document_judge(struct document *document, const struct condition *condition, double value,
                    enum verdict verdict);

/* Writes what was collected; "-" is standard output. */
int document_save_json(struct document *document, const struct ending *ending, const char *path);
int document_save_csv(struct document *document, const char *path);

/* A field of CSV, quoted if needed, and the comma after it. */
void csv_field(FILE *out, const char *text, size_t length);

/* The object "counters" of a result, if they were asked for. */
void counters_document(struct json *json, const struct facts *facts, const struct result *result);

/* The object "options": all of a run, or those that are not as in but. */
void options_write(struct json *json, const struct opt_set *set, const struct opt_set *but);

/* The rows of document_save_csv; for document_add. */
void csv_add(struct document *document, const struct entry *entry);

/* Can this file be written, as far as can be checked before? "-" is standard output. */
int save_check(const char *path);

/* Refuses a path on which another user has put a link or the last name itself, in a folder where
 * everybody may create files. */
int save_folder(const char *path);

/* Are two paths the same file? Also if it does not exist yet. */
bool save_same(const char *a, const char *b);
/* Writes the whole file and renames it into place. */
int save_write(const char *path, const char *bytes, size_t length);
/* For what is written as it comes in: empties the file itself, or makes it. */
int save_open(const char *path, FILE **out);

/* ---- tables ---- */

/* The argument of a header row's show function. */
struct header {
    const struct facts *facts;
    const void *base; /* what the option rows fill */
};

/* The CXI tools' header and table. */
struct report_table {
    struct report report;
    FILE *out;
    const char *title;
    const struct opt_set *set;
    const double *percentiles; /* extra columns; ends with 0 */
    bool gbits;                /* bandwidth in Gb/s, not in MB/s */
    bool devices;              /* there is a row for each of several */
    const struct facts *facts;
    int width;   /* of separators */
    bool titled; /* column titles are printed */
    bool open;   /* something is printed after the last separator */
};

void report_table_open(struct report_table *table, FILE *out, const char *title,
                       const struct opt_set *set, const double *percentiles);

/* ucx_perftest's table, or CSV. Lists have an entry per line. */
struct report_boxed {
    struct report report;
    FILE *out;
    bool csv, final_only, grouped;
    bool today; /* as current releases of UCX print it: a column for the stage, a ping-pong's
                   bandwidth and rate of both ways */
    const double *rank; /* the percentile of the first column, in percent; NULL: the median */
    unsigned legs;      /* of the test that runs */
    uint64_t threads;   /* of each end of it */
    bool mixed;         /* the tests of a batch do not all have the same first columns */
    const double *percentiles; /* extra columns; ends with 0, or NULL */
    const char *columns;       /* of CSV, before the others: the batch files */
    const char *labels;        /* of the test that runs, one for each batch file */
    const char *group;         /* of the first columns, as last drawn */
};

void report_boxed_open(struct report_boxed *boxed, FILE *out);

/* Flushes the output; -EIO and an error message if that fails. */
int report_flush(FILE *out);

#endif
