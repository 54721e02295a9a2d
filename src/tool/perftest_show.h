/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside tool: what ucx_perftest's client shows of its tests, and writes. */
#ifndef WEFT_TOOL_PERFTEST_SHOW_H
#define WEFT_TOOL_PERFTEST_SHOW_H

#include "tool/perftest.h"

struct perf_show {
    struct report report; /* passes on to the output */
    struct report_boxed boxed;
    struct output output;
    double rank;               /* -R */
    char label[1200];          /* of the test that runs, for documents */
    char said[128];            /* the fabric last said to have been chosen */
    const struct facts *facts; /* of it; NULL: none runs */
    bool said_means, hinted, said_protocol;
};

/* Letters that mean something else in current releases of UCX, on standard error; and -q. */
void perf_hints(const struct opt_set *set);

int perf_show_open(struct perf_show *show, const struct perftest *options,
                   const struct output_author *author);

/* A test with these options begins; labels has one per line, for each batch file. batch: its
 * options come from lines of files. */
void perf_show_begin(struct perf_show *show, const struct opt_set *set, const char *labels,
                     bool batch);

#endif
