/* SPDX-License-Identifier: BSD-3-Clause */
/* A comparison for other programs: JSON, Markdown for a pull request, JUnit for a CI server. */
#include "tool/view.h"
#include "tool/weft.h"

#include <math.h>
#include <string.h>

/* ---- JSON ---- */

static void write_side(struct json *j, const char *key, const struct study_set *set)
{
    json_open(j, key, '{');
    json_text(j, "path", set->path);
    json_text(j, "tool", set->runs[0].tool);
    json_count(j, "runs", set->count);
    errors_write(j, set);
    json_close(j, '}');
}

static void write_difference(void *arg, const char *name, const char *a, const char *b)
{
    json_open(arg, NULL, '{');
    json_text(arg, "name", name);
    json_text(arg, "a", a);
    json_text(arg, "b", b);
    json_close(arg, '}');
}

static void write_shift(struct json *j, const struct view *v, const struct study_shift *s)
{
    static const char *const metrics[] = {[STUDY_PERCENTILE] = "percentile",
                                          [STUDY_PER_MESSAGE] = "per message",
                                          [STUDY_BANDWIDTH] = "bandwidth"};
    bool bandwidth = s->row.metric == STUDY_BANDWIDTH;
    json_open(j, NULL, '{');
    json_text(j, "test", s->row.of->test);
    json_text(j, "label", s->row.of->label);
    json_text(j, "layout", s->row.of->layout);
    json_count(j, "size", s->row.of->size);
    json_number(j, "percent", s->row.percent);
    json_text(j, "metric", metrics[s->row.metric]);
    json_bool(j, "per_message", s->row.metric == STUDY_PER_MESSAGE);
    json_number(j, "a_us", bandwidth ? NAN : s->a);
    json_number(j, "b_us", bandwidth ? NAN : s->b);
    json_number(j, "a_bytes_per_s", bandwidth ? s->a : NAN);
    json_number(j, "b_bytes_per_s", bandwidth ? s->b : NAN);
    json_number(j, "shift_percent", 100 * s->shift);
    json_number(j, "low_percent", 100 * s->low);
    json_number(j, "high_percent", 100 * s->high);
    json_number(j, "p", view_p(v, s));
    json_text(j, "verdict", s->verdict == STUDY_ABSENT ? NULL : view_words[s->verdict]);
    json_close(j, '}');
}

void view_json(const struct view *v, FILE *out)
{
    struct json j = {.out = out};
    json_open(&j, NULL, '{');
    json_text(&j, "schema", "weft-comparison");
    json_count(&j, "version", 1);
    json_text(&j, "verdict", view_words[v->c->verdict]);
    json_number(&j, "alpha", STUDY_ALPHA);
    json_number(&j, "min_effect_percent", 100 * v->terms->min_effect);
    json_bool(&j, "interleaved", !v->c->sequential);
    write_side(&j, "a", v->a);
    write_side(&j, "b", v->b);
    json_open(&j, "differences", '[');
    study_differences(v->a, v->b, write_difference, &j);
    json_close(&j, ']');
    json_open(&j, "shifts", '[');
    for (size_t i = 0; i < v->c->count; i++)
        write_shift(&j, v, &v->c->shifts[i]);
    json_close(&j, ']');
    json_close(&j, '}');
    fputc('\n', out);
}

/* ---- Markdown ---- */

/* A cell: a bar would end it, a line feed the table. */
static void markdown_text(FILE *out, const char *text)
{
    for (; *text; text++) {
        if (strchr("\\`*_{}[]<>#|~&", *text))
            fputc('\\', out);
        fputc((unsigned char)*text < ' ' ? ' ' : *text, out);
    }
}

static void markdown_side(const char *name, const struct study_set *set, FILE *out)
{
    const struct study_run *run = &set->runs[0];
    fprintf(out, "- %s: ", name);
    markdown_text(out, set->path);
    fprintf(out, ", %zu %s of ", set->count, set->count == 1 ? "run" : "runs");
    markdown_text(out, run->tool);
    if (run->result_count) {
        fputs(" on ", out);
        markdown_text(out, run->results[0].fabric);
    }
    fputc('\n', out);
}

static void markdown_difference(void *arg, const char *name, const char *a, const char *b)
{
    fputs("- ", arg);
    markdown_text(arg, name);
    fputs(": ", arg);
    markdown_text(arg, a);
    fputs(" -> ", arg);
    markdown_text(arg, b);
    fputc('\n', arg);
}

static void markdown_row(const struct view *v, const struct study_shift *s, FILE *out)
{
    char test[128], metric[64], a[24], b[24], shift[24], interval[64], p[24];
    bool loud = s->verdict == STUDY_SLOWER || s->verdict == STUDY_FASTER;
    view_test_text(s->row.of, test, sizeof test);
    view_metric_text(&s->row, true, metric, sizeof metric);
    view_value_text(&s->row, s->a, a, sizeof a);
    view_value_text(&s->row, s->b, b, sizeof b);
    view_percent_text(s->shift, shift, sizeof shift);
    view_interval_text(s, interval, sizeof interval);
    view_p_text(view_p(v, s), p, sizeof p);
    fputs("| ", out);
    markdown_text(out, test);
    fputs(" | ", out);
    markdown_text(out, metric);
    fprintf(out, " | %llu | %s | %s | %s | %s | ", (unsigned long long)s->row.of->size, a, b, shift,
            interval);
    markdown_text(out, p);
    fprintf(out, " | %s%s%s |\n", loud ? "**" : "", view_words[s->verdict], loud ? "**" : "");
}

void view_markdown(const struct view *v, FILE *out)
{
    fprintf(out, "### weft compare: %s\n\n", view_words[v->c->verdict]);
    markdown_side("A", v->a, out);
    markdown_side("B", v->b, out);
    study_differences(v->a, v->b, markdown_difference, out);
    fputs("\n| Test | Metric | Bytes | A | B | Shift | 95 % interval | p | Verdict |\n"
          "|---|---|--:|--:|--:|--:|--:|--:|---|\n",
          out);
    for (size_t i = 0; i < v->c->count; i++)
        markdown_row(v, &v->c->shifts[i], out);
    fputc('\n', out);
    view_verdict(v, out);
    if (v->c->sequential)
        fputs("\n> Not interleaved: all runs of one set began before the other. A drift of the "
              "machine looks like a difference; `weft repeat N -- A -- B` alternates them.\n",
              out);
}

/* ---- JUnit ---- */

static const char *entity(char c)
{
    return c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '"' ? "&quot;" : NULL;
}

/* As XML allows it; what is no character is replaced. */
static void xml_text(FILE *out, const char *text)
{
    while (*text) {
        int length = text_character(text);
        if (!length || text_control(text))
            fputs("&#xfffd;", out);
        else if (entity(*text))
            fputs(entity(*text), out);
        else
            fprintf(out, "%.*s", length, text);
        text += length ? length : 1;
    }
}

static void xml_attribute(FILE *out, const char *name, const char *text)
{
    fprintf(out, " %s=\"", name);
    xml_text(out, text);
    fputc('"', out);
}

/* A row that cannot be told is neither passed nor failed. */
static void junit_row(const struct view *v, const struct study_shift *s, FILE *out)
{
    char test[128], metric[64], name[256], a[24], b[24], shift[24], interval[64], said[256];
    view_test_text(s->row.of, test, sizeof test);
    view_metric_text(&s->row, true, metric, sizeof metric);
    view_value_text(&s->row, s->a, a, sizeof a);
    view_value_text(&s->row, s->b, b, sizeof b);
    view_percent_text(s->shift, shift, sizeof shift);
    view_interval_text(s, interval, sizeof interval);
    snprintf(name, sizeof name, "%s %llu bytes %s", test, (unsigned long long)s->row.of->size,
             metric);
    snprintf(said, sizeof said, "%s: A %s, B %s, shift %s, 95 %% interval %s",
             s->verdict == STUDY_ABSENT ? "not measured" : view_words[s->verdict], a, b, shift,
             interval);
    fputs("    <testcase", out);
    xml_attribute(out, "classname", v->b->runs[0].tool);
    xml_attribute(out, "name", name);
    fputs(">", out);
    if (s->verdict == STUDY_SLOWER || s->verdict == STUDY_UNSURE || s->verdict == STUDY_ABSENT) {
        fprintf(out, "<%s", s->verdict == STUDY_SLOWER ? "failure" : "skipped");
        xml_attribute(out, "message", said);
        fputs("/>", out);
    } else {
        fputs("<system-out>", out);
        xml_text(out, said);
        fputs("</system-out>", out);
    }
    fputs("</testcase>\n", out);
}

void view_junit(const struct view *v, FILE *out)
{
    const struct study_comparison *c = v->c;
    fprintf(out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n"
            "  <testsuite name=\"weft compare\" tests=\"%zu\" failures=\"%zu\" errors=\"0\" "
            "skipped=\"%zu\">\n    <properties>\n",
            c->count, c->slower, c->unsure + c->absent);
    const struct {
        const char *name, *value;
    } properties[] = {{"a", v->a->path},
                      {"b", v->b->path},
                      {"verdict", view_words[c->verdict]},
                      {"interleaved", c->sequential ? "false" : "true"}};
    for (size_t i = 0; i < LENGTH(properties); i++) {
        fputs("      <property", out);
        xml_attribute(out, "name", properties[i].name);
        xml_attribute(out, "value", properties[i].value);
        fputs("/>\n", out);
    }
    fputs("    </properties>\n", out);
    for (size_t i = 0; i < c->count; i++)
        junit_row(v, &c->shifts[i], out);
    fputs("  </testsuite>\n</testsuites>\n", out);
}
