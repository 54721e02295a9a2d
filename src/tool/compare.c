/* SPDX-License-Identifier: BSD-3-Clause */
/* weft compare: compares two sets of runs. */
#include "tool/shell.h"
#include "tool/weft.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const verdict_words[] = {[STUDY_SAME] = "same",
                                            [STUDY_FASTER] = "faster",
                                            [STUDY_SLOWER] = "slower",
                                            [STUDY_UNSURE] = "cannot tell",
                                            [STUDY_ABSENT] = "-"};

/* Both sets and their comparison. */
struct view {
    const struct study_set *a, *b;
    const struct study_terms *terms;
    const struct study_comparison *c;
};

/* ---- texts ---- */

static void test_text(const struct study_result *r, char *text, size_t room)
{
    snprintf(text, room, "%.40s%s%.10s%s%.60s", r->test, r->layout ? " " : "",
             r->layout ? r->layout : "", *r->label ? " " : "", r->label);
}

static const char *unit_text(const struct study_row *row)
{
    return row->metric == STUDY_BANDWIDTH ? "[MB/s]" : "[us]";
}

/* With its unit where the titles of the columns do not have it. */
static void metric_text(const struct study_row *row, bool unit, char *text, size_t room)
{
    const char *of = study_kind(row->of) == STUDY_LIST ? "list " : "";
    const char *in = unit ? unit_text(row) : "";
    if (row->metric == STUDY_BANDWIDTH)
        snprintf(text, room, "bandwidth%s", in);
    else if (row->metric == STUDY_PER_MESSAGE)
        snprintf(text, room, "per message%s", in);
    else if (row->percent == 50)
        snprintf(text, room, "%smedian%s", of, in);
    else
        snprintf(text, room, "%sp%g%s", of, row->percent, in);
}

static void value_text(const struct study_row *row, double value, char *text, size_t room)
{
    if (isnan(value))
        snprintf(text, room, "-");
    else if (row->metric == STUDY_BANDWIDTH)
        snprintf(text, room, "%.2f", value / 1e6);
    else
        unit_us(value, text, room);
}

static void percent_text(double share, char *text, size_t room)
{
    if (isnan(share))
        snprintf(text, room, "-");
    else
        snprintf(text, room, "%+.*f%%", fabs(share) < 9.995 ? 2 : 0, 100 * share);
}

static void interval_text(const struct study_shift *s, char *text, size_t room)
{
    char low[24], high[24];
    percent_text(s->low, low, sizeof low);
    percent_text(s->high, high, sizeof high);
    snprintf(text, room, isnan(s->low) ? "-" : "%s to %s", low, high);
}

static void p_text(double p, char *text, size_t room)
{
    snprintf(text, room, isnan(p) ? "-" : p < 0.0001 ? "<0.0001" : "%.4f", p);
}

static void print_side(const char *name, const struct study_set *set)
{
    const struct study_run *run = &set->runs[0];
    char path[STUDY_PATH];
    snprintf(path, sizeof path, "%s", set->path);
    text_clean(path);
    printf("%s%s%s: %zu %s of %s", name ? name : "", name ? ": " : "", path, set->count,
           set->count == 1 ? "run" : "runs", run->tool);
    if (run->result_count)
        printf(" on %s", run->results[0].fabric);
    printf("\n");
}

/* ---- columns that name a row ---- */

/* Widths. Columns with the same text in every row are left out: their width is 0. unit: of all
 * values, for titles; "" if rows differ in it. */
struct names {
    int test, metric;
    const char *unit;
};

/* Each row is the first member of a struct of stride bytes. */
static const struct study_row *row_at(const void *rows, size_t i, size_t stride)
{
    return (const void *)((const char *)rows + i * stride);
}

static const char *unit_of(const void *rows, size_t count, size_t stride)
{
    const char *unit = count ? unit_text(row_at(rows, 0, stride)) : "[us]";
    for (size_t i = 1; i < count; i++)
        if (strcmp(unit, unit_text(row_at(rows, i, stride))) != 0)
            return "";
    return unit;
}

static struct names find_names(const void *rows, size_t count, size_t stride)
{
    const char *unit = unit_of(rows, count, stride);
    char first[2][128] = {"", "median"}, text[2][128];
    int width[2] = {4, 6};
    bool differ[2] = {false, false};
    for (size_t i = 0; i < count; i++) {
        const struct study_row *row = row_at(rows, i, stride);
        test_text(row->of, text[0], sizeof text[0]);
        metric_text(row, !*unit, text[1], sizeof text[1]);
        if (!i)
            memcpy(first[0], text[0], sizeof first[0]);
        for (int k = 0; k < 2; k++) {
            differ[k] = differ[k] || strcmp(first[k], text[k]) != 0;
            width[k] = (int)strlen(text[k]) > width[k] ? (int)strlen(text[k]) : width[k];
        }
    }
    return (struct names){differ[0] ? width[0] : 0, differ[1] ? width[1] : 0, unit};
}

static void print_cell(int width, const char *text)
{
    if (width)
        printf("%-*s  ", width, text);
}

static void print_titles(const struct names *names)
{
    print_cell(names->test, "Test");
    print_cell(names->metric, "Metric");
    printf("%10s", "Bytes");
}

/* Of a column of values. */
static void print_title(const struct names *names, const char *title)
{
    char text[32];
    snprintf(text, sizeof text, "%s%s", title, names->unit);
    printf(" %11s", text);
}

static void print_row(const struct names *names, const struct study_row *row)
{
    char text[128];
    test_text(row->of, text, sizeof text);
    print_cell(names->test, text);
    metric_text(row, !*names->unit, text, sizeof text);
    print_cell(names->metric, text);
    printf("%10" PRIu64, row->of->size);
}

/* ---- one set ---- */

int spread_set(const struct study_set *set, const struct weft_options *options)
{
    struct study_terms terms;
    struct study_spread *rows = NULL;
    size_t count = 0;
    int status = weft_terms(options, &terms);
    if (!status)
        status = study_spread(set, &terms, &rows, &count);
    if (status)
        return status;
    struct names names = find_names(rows, count, sizeof *rows);
    print_side(NULL, set);
    print_titles(&names);
    print_title(&names, "Median");
    print_title(&names, "Min");
    print_title(&names, "Max");
    printf(" %9s\n", "Spread");
    for (size_t i = 0; i < count; i++) {
        const struct study_spread *s = &rows[i];
        char median[24], min[24], max[24], spread[24];
        value_text(&s->row, s->median, median, sizeof median);
        value_text(&s->row, s->min, min, sizeof min);
        value_text(&s->row, s->max, max, sizeof max);
        snprintf(spread, sizeof spread, s->median > 0 ? "%.2f%%" : "-",
                 100 * (s->max - s->min) / s->median);
        print_row(&names, &s->row);
        printf(" %11s %11s %11s %9s\n", median, min, max, spread);
    }
    free(rows);
    status = errors_print("these runs", set);
    return status ? status : shell_flush("the summary");
}

/* ---- two sets ---- */

static void print_difference(void *arg, const char *name, const char *a, const char *b)
{
    (void)arg;
    printf("%s: %s -> %s\n", name, a, b);
}

/* With a single run on one side, p is meaningful only if the other side has very many. */
static double p_of(const struct view *v, const struct study_shift *s)
{
    bool single = v->a->count == 1 || v->b->count == 1;
    return single && s->verdict == STUDY_UNSURE ? NAN : s->p;
}

static void print_shift(const struct view *v, const struct names *names,
                        const struct study_shift *s)
{
    char a[24], b[24], shift[24], interval[64], p[24];
    value_text(&s->row, s->a, a, sizeof a);
    value_text(&s->row, s->b, b, sizeof b);
    percent_text(s->shift, shift, sizeof shift);
    interval_text(s, interval, sizeof interval);
    p_text(p_of(v, s), p, sizeof p);
    print_row(names, &s->row);
    printf(" %11s %11s %9s %20s %8s  %s\n", a, b, shift, interval, p, verdict_words[s->verdict]);
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
static void print_absent(const struct study_comparison *c)
{
    size_t short_ones = c->unresolved, few = c->absent - c->unresolved;
    printf("Cannot tell: ");
    if (few)
        printf("%zu of %zu rows lack a value in some run (too few samples)%s", few, c->count,
               short_ones ? ", " : "");
    if (short_ones)
        printf("%zu of %zu rows are below what the clock resolves (see --ops-per-sample)",
               short_ones, c->count);
    printf("\n");
}

/* What would make it tell. */
static void print_unsure(const struct view *v)
{
    const struct study_comparison *c = v->c;
    size_t fewer = v->a->count < v->b->count ? v->a->count : v->b->count;
    if (!c->unsure)
        print_absent(c);
    else if (v->a->count == 1 && v->b->count == 1)
        printf("Cannot tell: 1 run per side; at least %zu needed (see weft repeat)\n",
               c->runs_needed);
    else if (fewer < c->runs_needed)
        printf("Cannot tell: %zu and %zu runs; at least %zu per side needed (see weft repeat)\n",
               v->a->count, v->b->count, c->runs_needed);
    else if (c->runs_advised == STUDY_HOPELESS)
        printf("Cannot tell: %zu of %zu rows may have changed by %g %% or more, and %d runs per "
               "side may not tell either: find what disturbs the runs (weft info), or raise "
               "--min-effect\n",
               c->unsure, c->count, 100 * v->terms->min_effect, STUDY_HOPELESS);
    else
        printf("Cannot tell: %zu of %zu rows may have changed by %g %% or more; about %zu runs per "
               "side would tell, if shift and spread stay as they are (see weft repeat)\n",
               c->unsure, c->count, 100 * v->terms->min_effect, c->runs_advised);
}

/* The verdict that counts is last. */
static void print_verdict(const struct view *v)
{
    const struct study_comparison *c = v->c;
    size_t rows = c->count;
    if (c->faster)
        printf("Faster: %zu of %zu rows, by up to %.1f %%\n", c->faster, rows,
               largest(c, STUDY_FASTER));
    if (c->slower)
        printf("Slower: %zu of %zu rows, by up to %.1f %%\n", c->slower, rows,
               largest(c, STUDY_SLOWER));
    if (c->verdict == STUDY_UNSURE)
        print_unsure(v);
    else if (c->verdict == STUDY_SAME)
        printf("Same: a change of %g %% or more is excluded\n", 100 * v->terms->min_effect);
}

static int print_view(const struct view *v)
{
    struct names names = find_names(v->c->shifts, v->c->count, sizeof *v->c->shifts);
    print_side("A", v->a);
    print_side("B", v->b);
    study_differences(v->a, v->b, print_difference, NULL);
    print_titles(&names);
    print_title(&names, "A");
    print_title(&names, "B");
    printf(" %9s %20s %8s  %s\n", "Shift", "95% interval", "p", "Verdict");
    for (size_t i = 0; i < v->c->count; i++)
        print_shift(v, &names, &v->c->shifts[i]);
    int status = errors_print("A", v->a);
    if (!status)
        status = errors_print("B", v->b);
    if (status)
        return status;
    print_verdict(v);
    return shell_flush("the comparison");
}

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
    json_number(j, "p", p_of(v, s));
    json_text(j, "verdict", s->verdict == STUDY_ABSENT ? NULL : verdict_words[s->verdict]);
    json_close(j, '}');
}

static void write_view(const struct view *v, FILE *out)
{
    struct json j = {.out = out};
    json_open(&j, NULL, '{');
    json_text(&j, "schema", "weft-comparison");
    json_count(&j, "version", 1);
    json_text(&j, "verdict", verdict_words[v->c->verdict]);
    json_number(&j, "alpha", STUDY_ALPHA);
    json_number(&j, "min_effect_percent", 100 * v->terms->min_effect);
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

static int save_view(const struct view *v, const char *path)
{
    char *bytes = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&bytes, &length);
    if (!out)
        return fail(-ENOMEM, "no memory for the JSON document");
    write_view(v, out);
    int status = fclose(out) ? fail(-ENOMEM, "no memory for the JSON document")
                             : weft_save(path, bytes, length);
    free(bytes);
    return status;
}

/* ---- the command ---- */

/* Limits of this comparison. */
static void warn_limits(const struct view *v)
{
    const struct study_comparison *c = v->c;
    if (*c->ignored)
        warn("compared anyway (--force): %s", c->ignored);
    if (c->absent > c->unresolved)
        warn("%zu of %zu rows not compared: too few samples in some runs, or none",
             c->absent - c->unresolved, c->count);
    if (c->unresolved)
        warn("%zu of %zu rows not compared: below what the clock resolves", c->unresolved,
             c->count);
    if (c->sequential)
        warn("all runs of one set began before the other: a drift of the machine would look like a "
             "difference; weft repeat N -- A -- B alternates them");
}

int compare_sets(const struct study_set *a, const struct study_set *b,
                 const struct weft_options *options)
{
    struct study_terms terms;
    struct study_comparison c;
    int status = weft_terms(options, &terms);
    if (!status)
        status = study_check_output(a->runs, a->count, options->json);
    if (!status)
        status = study_check_output(b->runs, b->count, options->json);
    if (!status)
        status = study_compare(a, b, &terms, &c);
    if (status)
        return status;
    struct view view = {.a = a, .b = b, .terms = &terms, .c = &c};
    warn_limits(&view);
    if (strcmp(options->json, "-") != 0)
        status = print_view(&view);
    if (!status && *options->json)
        status = save_view(&view, options->json);
    if (!status && c.verdict == STUDY_SLOWER)
        status = EXIT_THRESHOLD;
    else if (!status && c.verdict == STUDY_UNSURE)
        status = EXIT_UNSURE;
    study_comparison_free(&c);
    return status;
}

int compare_command(const struct command *command, int argc, char **argv)
{
    static struct weft_options options;
    const char *places[argc + 1];
    char sides[2][STUDY_PATH];
    struct study_set a = {0}, b = {0};
    struct study_terms terms;
    int given, status = weft_parse(command, argc, argv, &options, places, &given);
    if (status)
        return status < 0 ? status : 0;
    if (given == 1 && study_sides(places[0], sides[0], sides[1])) {
        given = 2;
        places[0] = sides[0];
        places[1] = sides[1];
    }
    if (given != 2)
        return fail(-EINVAL, "expected two results, A and B; %d given", given);
    status = weft_terms(&options, &terms);
    if (!status && *options.json)
        status = save_check(options.json);
    if (!status)
        status = study_set_read(&a, places[0]);
    if (!status)
        status = study_set_read(&b, places[1]);
    if (!status)
        status = compare_sets(&a, &b, &options);
    study_set_free(&a);
    study_set_free(&b);
    return status;
}
