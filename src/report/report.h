/* SPDX-License-Identifier: BSD-3-Clause */
/* The door of report: results to text. A format implements bench's struct report_ops. */
#ifndef WEFT_REPORT_H
#define WEFT_REPORT_H

#include "bench/bench.h"

#include <stdio.h>

/* At most so many percentiles; a list of them ends with 0. */
enum { REPORT_PERCENTILES = WEFT_PERCENTILES - 1 };

/* "50,99,99.9" to numbers; an empty text to none. -EINVAL and a sentence. */
int report_percentiles(const char *text, double list[REPORT_PERCENTILES + 1]);

/* JSON as it is written; key is NULL in arrays. Down to JSON_LINES deep everything has a line of
 * its own. A number that is none is null, and so is a text that is NULL. */
enum { JSON_LINES = 3 };
struct json {
    FILE *out;
    int depth;
    bool filled;
};
void json_open(struct json *json, const char *key, char bracket);
void json_close(struct json *json, char bracket);
void json_text(struct json *json, const char *key, const char *text);
void json_bool(struct json *json, const char *key, bool value);
void json_count(struct json *json, const char *key, uint64_t count);
void json_number(struct json *json, const char *key, double value);

/* Can this file be written, as far as can be known before? "-" is standard output. */
int save_check(const char *path);
/* Writes it whole and puts it in its place. */
int save_write(const char *path, const char *bytes, size_t length);


/* The CXI tools' header and table. */
struct report_table {
    struct report report;
    FILE *out;
    const struct bench_facts *facts;
    int width;   /* of separators */
    bool titled; /* column titles stand */
    bool open;   /* something stands below the last separator */
};

void report_table_open(struct report_table *table, FILE *out);

/* ucx_perftest's table, or CSV. Lists have an entry a line. */
struct report_boxed {
    FILE *out;
    bool csv, final_only, grouped;
    const char *columns; /* of CSV, before the others: the batch files */
    const char *labels;  /* of the test that runs, one for each batch file */
    const char *group;   /* of the first columns, as last drawn */
};

/* A test begins; group is "latency" or "overhead". */
int report_boxed_begin(struct report_boxed *boxed, const char *group, const char *labels);
int report_boxed_row(struct report_boxed *boxed, const struct weft_result *result);

#endif
