/* SPDX-License-Identifier: BSD-3-Clause */
/* The verdict on the page: which of two sets is faster, with the rows it rests on. */
#include "study/plot.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static const char *const words[] = {[STUDY_SAME] = "same",
                                    [STUDY_FASTER] = "faster",
                                    [STUDY_SLOWER] = "slower",
                                    [STUDY_UNSURE] = "cannot tell",
                                    [STUDY_ABSENT] = "-"};
static const char *const sentences[] = {[STUDY_SAME] = "B is the same as A",
                                        [STUDY_FASTER] = "B is faster than A",
                                        [STUDY_SLOWER] = "B is slower than A",
                                        [STUDY_UNSURE] = "Cannot tell whether B is slower than A"};
static const char *const badges[] = {
    [STUDY_SAME] = "good", [STUDY_FASTER] = "good", [STUDY_SLOWER] = "bad"};

static void value_cell(const struct study_row *row, double value, FILE *out)
{
    char text[340] = "-";
    if (row->metric == STUDY_BANDWIDTH && isfinite(value))
        snprintf(text, sizeof text, "%.2f MB/s", value / 1e6);
    else if (isfinite(value))
        time_figure(value, text, sizeof text);
    fprintf(out, "<td class=\"n\">%s</td>", text);
}

static void share_text(double share, char *text, size_t room)
{
    snprintf(text, room, isfinite(share) ? "%+.2f %%" : "-", 100 * share);
}

static void row(const struct study_shift *s, FILE *out)
{
    char shift[32], low[32], high[32], metric[32];
    share_text(s->shift, shift, sizeof shift);
    share_text(s->low, low, sizeof low);
    share_text(s->high, high, sizeof high);
    if (s->row.metric == STUDY_PERCENTILE)
        snprintf(metric, sizeof metric, s->row.percent == 50 ? "median" : "p%g", s->row.percent);
    else
        snprintf(metric, sizeof metric, "%s",
                 s->row.metric == STUDY_BANDWIDTH ? "bandwidth" : "per message");
    fputs("<tr><td>", out);
    html_print(out, "%s %s", s->row.of->test, s->row.of->layout ? s->row.of->layout : "");
    fprintf(out, "</td><td>%s</td><td class=\"n\">%" PRIu64 "</td>", metric, s->row.of->size);
    value_cell(&s->row, s->a, out);
    value_cell(&s->row, s->b, out);
    fprintf(out, "<td class=\"n\">%s</td><td class=\"n\">%s to %s</td>", shift, low, high);
    fprintf(out, "<td><span class=\"badge %s\">%s</span></td></tr>\n",
            s->verdict <= STUDY_SLOWER ? badges[s->verdict] : "", words[s->verdict]);
}

static void table(const struct study_comparison *c, FILE *out)
{
    fputs(
        "<div class=\"scroll\"><table class=\"results\"><thead><tr><th>Test</th><th>Metric</th>"
        "<th class=\"n\">Size <small>[B]</small></th><th class=\"n\">A</th><th class=\"n\">B</th>"
        "<th class=\"n\">Shift</th><th class=\"n\">95 % interval</th><th>Verdict</th></tr></thead>"
        "<tbody>\n",
        out);
    for (size_t i = 0; i < c->count; i++)
        row(&c->shifts[i], out);
    fputs("</tbody></table></div>\n", out);
}

void verdict_section(const struct study_subject *subject, FILE *out)
{
    const struct study_comparison *c = subject->comparison;
    if (!c && !subject->not_compared)
        return;
    fputs("<section id=\"verdict\">\n", out);
    if (c) {
        fprintf(out, "<h2>%s</h2>\n<p>", sentences[c->verdict]);
        fprintf(out, "%zu rows: %zu slower, %zu faster, %zu cannot tell, %zu not measured.",
                c->count, c->slower, c->faster, c->unsure, c->absent);
        fputs(c->sequential
                  ? " Not interleaved: all runs of one set began before the other, so that "
                    "a drift of the machine looks like a difference."
                  : "",
              out);
        fputs("</p>\n", out);
        table(c, out);
    } else {
        fputs("<h2>A and B are not compared</h2>\n<p>", out);
        html_text(out, subject->not_compared);
        fputs("</p>\n", out);
    }
    fputs("</section>\n", out);
}
