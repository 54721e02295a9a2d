/* SPDX-License-Identifier: BSD-3-Clause */
/* The page of maps: each with its verdict, its heat map and its tables. */
#include "study/map_draw.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

static void number_cell(double value, const char *format, FILE *out)
{
    fputs("<td class=\"n\">", out);
    if (isfinite(value))
        fprintf(out, format, value);
    else
        fputs("-", out);
    fputs("</td>", out);
}

static void text_cell(const char *text, FILE *out)
{
    fputs("<td>", out);
    html_text(out, text);
    fputs("</td>", out);
}

static void badge(const struct study_map *m, FILE *out)
{
    const char *kind = m->code == 0 ? " good" : m->code == 3 ? " bad" : "";
    fprintf(out, "<p><span class=\"badge%s\">", kind);
    html_text(out, m->ending);
    fputs("</span></p>\n", out);
}

void map_subject(const struct study_map *m, FILE *out)
{
    char size[24];
    size_words(m->size, size, sizeof size);
    html_print(out, "%s of %s on %s, %zu ranks on %" PRIu64 " host%s", m->test, size, m->device,
               m->node_count, m->hosts, m->hosts == 1 ? "" : "s");
}

static void headline(const struct study_map *m, FILE *out)
{
    fprintf(out, "<h1>Map of %zu ranks</h1>\n<p class=\"sub\">", m->node_count);
    map_subject(m, out);
    html_print(out, "; %s; started by %s%s, %s", m->form, m->muster,
               m->trusted ? "" : " (no secret)", m->begun);
    fprintf(out, "</p>\n<p class=\"sub\">%" PRIu64, m->measured);
    if (m->measured < m->planned)
        fprintf(out, " of %" PRIu64 " pair%s", m->planned, m->planned == 1 ? "" : "s");
    else
        fprintf(out, " pair%s in %" PRIu64 " round%s", m->measured == 1 ? "" : "s", m->rounds,
                m->rounds == 1 ? "" : "s");
    if (isfinite(m->noise_percent))
        fprintf(out, "; noise of a pair %.1f %%", m->noise_percent);
    fputs("</p>\n", out);
    badge(m, out);
}

/* ---- tables ---- */

static void finding_names(const struct study_map *m, const struct study_finding *f, FILE *out)
{
    bool groups = strncmp(f->kind, "group", 5) == 0;
    const char *first = groups ? m->groups[f->a] : m->nodes[f->a].name;
    const char *second = groups ? m->groups[f->b] : m->nodes[f->b].name;
    fputs("<td>", out);
    html_print(out, "%s ", f->kind);
    html_text(out, first);
    if (f->b != f->a)
        html_print(out, " - %s", second);
    fputs("</td>", out);
}

/* Suspects that did not look slow are of no interest. */
static bool worth(const struct study_map *m, const struct study_finding *f)
{
    return strcmp(f->verdict, "slower") == 0 || f->first_percent >= m->min_effect_percent;
}

static const char *nothing(const struct study_map *m)
{
    if (!m->power_count)
        return "<p>Not judged: the map ended early.</p>\n";
    if (!m->measured)
        return "<p>Not judged: no pair was measured.</p>\n";
    return m->code == 4 ? "<p>Not judged: too many ranks were lost.</p>\n"
                        : "<p>Nothing looked slow.</p>\n";
}

static void findings(const struct study_map *m, FILE *out)
{
    size_t shown = 0;
    fputs("<section><h2>What is slow</h2>\n", out);
    for (size_t i = 0; i < m->finding_count; i++) {
        const struct study_finding *f = &m->findings[i];
        if (!worth(m, f))
            continue;
        if (!shown++)
            fputs("<div class=\"scroll\"><table class=\"results findings\"><thead><tr><th>What</th>"
                  "<th class=\"n\">First[%]</th><th class=\"n\">Again[%]</th>"
                  "<th class=\"n\">95% interval</th><th>Verdict</th></tr></thead><tbody>\n",
                  out);
        fputs("<tr>", out);
        finding_names(m, f, out);
        number_cell(f->first_percent, "%+.1f", out);
        number_cell(f->effect_percent, "%+.1f", out);
        if (isfinite(f->low_percent) && isfinite(f->high_percent))
            fprintf(out, "<td class=\"n\">%+.1f to %+.1f</td>", f->low_percent, f->high_percent);
        else
            fputs("<td class=\"n\">-</td>", out);
        bool seldom = strcmp(f->verdict, "cannot tell") == 0 && !isfinite(f->effect_percent);
        text_cell(seldom ? "cannot tell: measured too seldom again" : f->verdict, out);
        fputs("</tr>\n", out);
    }
    fputs(shown ? "</tbody></table></div>\n" : nothing(m), out);
    for (size_t i = 0; i < m->power_count; i++)
        fprintf(out, "%s%g %%: %.2f",
                i ? "; " : "<p class=\"sub\">Probability to find a slower node: ",
                m->power[i].effect_percent, m->power[i].probability);
    fputs(m->power_count ? "</p>\n</section>\n" : "</section>\n", out);
}

static void lost(const struct study_map *m, FILE *out)
{
    for (size_t i = 0; i < m->lost_count; i++) {
        fputs(i ? "<p>" : "<div class=\"alarm\">\n<p>", out);
        html_print(out, "Lost: %s in round %" PRIu64 ": ", m->nodes[m->lost[i].node].name,
                   m->lost[i].round);
        html_text(out, m->lost[i].reason);
        fputs("</p>\n", out);
    }
    fputs(m->lost_count ? "</div>\n" : "", out);
}

/* Older documents have a verdict on every suspect. */
static bool node_worth(const struct study_map *m, const struct study_node *n)
{
    return n->verdict &&
           (strcmp(n->verdict, "slower") == 0 || n->effect_percent >= m->min_effect_percent);
}

static void nodes(const struct study_map *m, FILE *out)
{
    bool rate = strcmp(m->time, "latency") != 0;
    fputs("<details><summary>All nodes</summary><div class=\"in scroll long\"><table "
          "class=\"results\"><thead><tr><th>Node</th><th>Group</th><th class=\"n\">Effect[%]</th>"
          "<th class=\"n\">p50[us]</th><th class=\"n\">p99[us]</th>",
          out);
    fputs(rate ? "<th class=\"n\">MB/s</th>" : "", out);
    fputs("<th class=\"n\">Pairs</th><th>State</th><th>Verdict</th></tr></thead><tbody>\n", out);
    for (size_t i = 0; i < m->node_count; i++) {
        const struct study_node *n = &m->nodes[i];
        fputs("<tr>", out);
        text_cell(n->name, out);
        text_cell(n->group, out);
        number_cell(n->effect_percent, "%+.1f", out);
        number_cell(n->p50_us, "%.2f", out);
        number_cell(n->p99_us, "%.2f", out);
        if (rate) /* bytes per microsecond */
            number_cell((double)m->size / n->p50_us, "%.2f", out);
        fprintf(out, "<td class=\"n\">%" PRIu64 "</td>", n->pairs);
        text_cell(n->state, out);
        text_cell(node_worth(m, n) ? n->verdict : NULL, out);
        fputs("</tr>\n", out);
    }
    fputs("</tbody></table></div></details>\n", out);
}

/* ---- the page ---- */

static int draw(const struct study_map *m, FILE *out)
{
    headline(m, out);
    lost(m, out);
    fputs("<section><h2>Median of every pair</h2>\n<figure class=\"heat\"><div class=\"scroll\">\n",
          out);
    int status = map_svg(m, out);
    fputs("</div><figcaption>Nodes by group, and in each the slowest last. ", out);
    if (m->cell_count < m->measured)
        fprintf(out, "Of %" PRIu64 " pairs the document has the %zu slowest. ", m->measured,
                m->cell_count);
    fputs("Point at a tile for its nodes and times.</figcaption></figure></section>\n", out);
    findings(m, out);
    nodes(m, out);
    return status;
}

int study_map_page(const struct study_map *maps, size_t count, const char *title, FILE *out)
{
    int status = 0;
    page_open(title ? title : "Weft map", out);
    for (size_t i = 0; i < count && !status; i++)
        status = draw(&maps[i], out);
    page_end(out);
    if (!status && (fflush(out) || ferror(out)))
        status = fail(-EIO, "writing the page: %s", strerror(errno));
    return status;
}
