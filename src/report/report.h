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

#endif
