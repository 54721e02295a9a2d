/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside tool: what ucx_perftest's client shows of its tests, and writes. */
#ifndef WEFT_TOOL_PERFTEST_SHOW_H
#define WEFT_TOOL_PERFTEST_SHOW_H

#include "core/clock.h"
#include "core/opt.h"
#include "fabric/choose.h"
#include "tool/output.h"
#include "tool/perftest.h"

struct perf_show {
    struct report_boxed boxed;
    struct output output;
    bool batch;                    /* tests come from lines of files */
    struct progress progress;      /* in tests */
    struct interference disturbed; /* of all of them */
    /* Of the test that runs: */
    const struct opt_set *set;
    const char *labels; /* one a line */
    struct test_facts facts;
    struct fabric_choice choice;
    struct fabric_facts fabric;
    struct clock clock;
    struct series series;
    uint64_t seen;  /* iterations, at the last report */
    int status;     /* of printing */
    char why[256];  /* it failed */
    char said[128]; /* the fabric last said to have been chosen */
};

/* What is to be told of a test with these options. */
void perf_show_begin(struct perf_show *show, const struct opt_set *set, const char *labels,
                     struct test_audience *audience);

/* A test has ended, by status. Returns that, or why it could not be shown. */
int perf_show_end(struct perf_show *show, const struct weft_result *result, int status);

#endif
