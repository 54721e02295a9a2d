/* SPDX-License-Identifier: BSD-3-Clause */
/* A comparison in words: names of rows, values, and the verdict. */
#include "tool/view.h"

#include <math.h>
#include <string.h>

const char *const view_words[] = {[STUDY_SAME] = "same",
                                  [STUDY_FASTER] = "faster",
                                  [STUDY_SLOWER] = "slower",
                                  [STUDY_UNSURE] = "cannot tell",
                                  [STUDY_ABSENT] = "-"};

void view_test_text(const struct study_result *r, char *text, size_t room)
{
    snprintf(text, room, "%.40s%s%.10s%s%.60s", r->test, r->layout ? " " : "",
             r->layout ? r->layout : "", *r->label ? " " : "", r->label);
}

const char *view_unit(const struct study_row *row)
{
    return row->metric == STUDY_BANDWIDTH ? "[MB/s]" : "[us]";
}

void view_metric_text(const struct study_row *row, bool unit, char *text, size_t room)
{
    const char *of = study_kind(row->of) == STUDY_LIST ? "list " : "";
    const char *in = unit ? view_unit(row) : "";
    if (row->metric == STUDY_BANDWIDTH)
        snprintf(text, room, "bandwidth%s", in);
    else if (row->metric == STUDY_PER_MESSAGE)
        snprintf(text, room, "per message%s", in);
    else if (row->percent == 50)
        snprintf(text, room, "%smedian%s", of, in);
    else
        snprintf(text, room, "%sp%g%s", of, row->percent, in);
}

void view_value_text(const struct study_row *row, double value, char *text, size_t room)
{
    if (isnan(value))
        snprintf(text, room, "-");
    else if (row->metric == STUDY_BANDWIDTH)
        snprintf(text, room, "%.2f", value / 1e6);
    else
        unit_us(value, text, room);
}

void view_percent_text(double share, char *text, size_t room)
{
    if (isnan(share))
        snprintf(text, room, "-");
    else
        snprintf(text, room, "%+.*f%%", fabs(share) < 9.995 ? 2 : 0, 100 * share);
}

void view_interval_text(const struct study_shift *s, char *text, size_t room)
{
    char low[24], high[24];
    view_percent_text(s->low, low, sizeof low);
    view_percent_text(s->high, high, sizeof high);
    snprintf(text, room, isnan(s->low) ? "-" : "%s to %s", low, high);
}

void view_p_text(double p, char *text, size_t room)
{
    snprintf(text, room, isnan(p) ? "-" : p < 0.0001 ? "<0.0001" : "%.4f", p);
}

double view_p(const struct view *v, const struct study_shift *s)
{
    bool single = v->a->count == 1 || v->b->count == 1;
    return single && s->verdict == STUDY_UNSURE ? NAN : s->p;
}

static double largest(const struct study_comparison *c, enum study_verdict verdict)
{
    double most = 0;
    for (size_t i = 0; i < c->count; i++)
        if (c->shifts[i].verdict == verdict && fabs(c->shifts[i].shift) > most)
            most = fabs(c->shifts[i].shift);
    return 100 * most;
}

/* Rows without a value in every run. */
static void print_absent(const struct study_comparison *c, FILE *out)
{
    size_t short_ones = c->unresolved, few = c->absent - c->unresolved;
    fprintf(out, "Cannot tell: ");
    if (few)
        fprintf(out, "%zu of %zu rows lack a value in some run (too few samples)%s", few, c->count,
                short_ones ? ", " : "");
    if (short_ones)
        fprintf(out, "%zu of %zu rows are below what the clock resolves (see --ops-per-sample)",
                short_ones, c->count);
    fprintf(out, "\n");
}

/* What would make it tell. */
static void print_unsure(const struct view *v, FILE *out)
{
    const struct study_comparison *c = v->c;
    size_t fewer = v->a->count < v->b->count ? v->a->count : v->b->count;
    if (!c->unsure)
        print_absent(c, out);
    else if (v->a->count == 1 && v->b->count == 1)
        fprintf(out, "Cannot tell: 1 run per side; at least %zu needed (see weft repeat)\n",
                c->runs_needed);
    else if (fewer < c->runs_needed)
        fprintf(out,
                "Cannot tell: %zu and %zu runs; at least %zu per side needed (see weft repeat)\n",
                v->a->count, v->b->count, c->runs_needed);
    else if (c->runs_advised == STUDY_HOPELESS)
        fprintf(out,
                "Cannot tell: %zu of %zu rows may have changed by %g %% or more, and %d runs per "
                "side may not tell either: find what disturbs the runs (weft info), or raise "
                "--min-effect\n",
                c->unsure, c->count, 100 * v->terms->min_effect, STUDY_HOPELESS);
    else
        fprintf(
            out,
            "Cannot tell: %zu of %zu rows may have changed by %g %% or more; about %zu runs per "
            "side would tell, if shift and spread stay as they are (see weft repeat)\n",
            c->unsure, c->count, 100 * v->terms->min_effect, c->runs_advised);
}

void view_verdict(const struct view *v, FILE *out)
{
    const struct study_comparison *c = v->c;
    size_t rows = c->count;
    if (c->faster)
        fprintf(out, "Faster: %zu of %zu rows, by up to %.1f %%\n", c->faster, rows,
                largest(c, STUDY_FASTER));
    if (c->slower)
        fprintf(out, "Slower: %zu of %zu rows, by up to %.1f %%\n", c->slower, rows,
                largest(c, STUDY_SLOWER));
    if (c->verdict == STUDY_UNSURE)
        print_unsure(v, out);
    else if (c->verdict == STUDY_SAME)
        fprintf(out, "Same: a change of %g %% or more is excluded\n", 100 * v->terms->min_effect);
}
