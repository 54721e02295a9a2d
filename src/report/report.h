/* SPDX-License-Identifier: BSD-3-Clause */
/* The door of report: results to text. A format implements bench's struct report_ops. */
#ifndef WEFT_REPORT_H
#define WEFT_REPORT_H

#include "bench/bench.h"

#include <stdio.h>

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
