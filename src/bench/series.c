/* SPDX-License-Identifier: BSD-3-Clause */
/* A run over time, in bounded memory: when there is no more room, neighbours become one. */
#include "bench/stats.h"

static void join(struct interval *into, const struct interval *next)
{
    into->end_ps = next->end_ps;
    into->count += next->count;
    into->sum_ps += next->sum_ps;
    into->min_ps = next->min_ps < into->min_ps ? next->min_ps : into->min_ps;
    into->max_ps = next->max_ps > into->max_ps ? next->max_ps : into->max_ps;
}

void series_add(struct series *series, const struct interval *interval)
{
    if (!interval->count)
        return;
    if (series->count == SERIES_MAX) {
        for (size_t i = 0; i < SERIES_MAX / 2; i++) {
            series->intervals[i] = series->intervals[2 * i];
            join(&series->intervals[i], &series->intervals[2 * i + 1]);
        }
        series->count = SERIES_MAX / 2;
    }
    series->intervals[series->count++] = *interval;
}
