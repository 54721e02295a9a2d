/* SPDX-License-Identifier: BSD-3-Clause */
/* A door of study: runs drawn, on a page and as files. */
#ifndef WEFT_STUDY_PAGE_H
#define WEFT_STUDY_PAGE_H

#include "study/study.h"

/* What is drawn. */
struct study_subject {
    const struct study_run *runs;
    size_t count;
    const char *title; /* NULL: the names of the tools */
    /* Of the first two sets of the runs: what came of comparing them, or why they are not; NULL:
     * they were not to be compared. */
    const struct study_comparison *comparison;
    const char *not_compared;
};

/* Writes one self-contained HTML page: plots, results and the description of all runs. */
int study_page(const struct study_subject *subject, FILE *out);

/* Every plot of the page as an SVG file with its own legend and literal colours, given to save by
 * its name, "latency.svg"; or only the first one. -ENODATA if nothing was measured. */
int study_plots(const struct study_subject *subject, bool first,
                int (*save)(void *arg, const char *name, const char *bytes, size_t length),
                void *arg);

#endif
