/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside tool: a comparison of two sets, and the forms it is written in. */
#ifndef WEFT_TOOL_VIEW_H
#define WEFT_TOOL_VIEW_H

#include "study/study.h"

/* Both sets and their comparison. */
struct view {
    const struct study_set *a, *b;
    const struct study_terms *terms;
    const struct study_comparison *c;
};

extern const char *const view_words[]; /* of enum study_verdict */

void view_test_text(const struct study_result *r, char *text, size_t room);
/* "[us]" or "[MB/s]". */
const char *view_unit(const struct study_row *row);
/* With its unit where the titles of the columns do not have it. */
void view_metric_text(const struct study_row *row, bool unit, char *text, size_t room);
void view_value_text(const struct study_row *row, double value, char *text, size_t room);
void view_percent_text(double share, char *text, size_t room);
void view_interval_text(const struct study_shift *s, char *text, size_t room);
void view_p_text(double p, char *text, size_t room);

/* With a single run on one side, p is meaningful only if the other side has very many: else NAN. */
double view_p(const struct view *v, const struct study_shift *s);

/* Lines; the verdict that counts is last. */
void view_verdict(const struct view *v, FILE *out);

/* Whole documents. */
void view_json(const struct view *v, FILE *out);
void view_markdown(const struct view *v, FILE *out);
void view_junit(const struct view *v, FILE *out);

#endif
