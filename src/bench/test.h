/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside bench: what a result of the library points to. */
#ifndef WEFT_BENCH_TEST_H
#define WEFT_BENCH_TEST_H

#include "bench/bench.h"

struct weft_histogram {
    struct stats *stats; /* in ticks */
    double us_per_tick;
    char fabric[128];
};

#endif
