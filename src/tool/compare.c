/* SPDX-License-Identifier: BSD-3-Clause */
/* weft compare: compares two sets of runs. */
#include "tool/shell.h"
#include "tool/view.h"
#include "tool/weft.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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
    const char *unit = count ? view_unit(row_at(rows, 0, stride)) : "[us]";
    for (size_t i = 1; i < count; i++)
        if (strcmp(unit, view_unit(row_at(rows, i, stride))) != 0)
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
        view_test_text(row->of, text[0], sizeof text[0]);
        view_metric_text(row, !*unit, text[1], sizeof text[1]);
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
    view_test_text(row->of, text, sizeof text);
    print_cell(names->test, text);
    view_metric_text(row, !*names->unit, text, sizeof text);
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
        view_value_text(&s->row, s->median, median, sizeof median);
        view_value_text(&s->row, s->min, min, sizeof min);
        view_value_text(&s->row, s->max, max, sizeof max);
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

static void print_shift(const struct view *v, const struct names *names,
                        const struct study_shift *s)
{
    static const enum text_style styles[] = {[STUDY_FASTER] = TEXT_GOOD,
                                             [STUDY_SLOWER] = TEXT_BAD,
                                             [STUDY_UNSURE] = TEXT_DOUBT,
                                             [STUDY_ABSENT] = TEXT_PLAIN};
    char a[24], b[24], shift[24], interval[64], p[24];
    view_value_text(&s->row, s->a, a, sizeof a);
    view_value_text(&s->row, s->b, b, sizeof b);
    view_percent_text(s->shift, shift, sizeof shift);
    view_interval_text(s, interval, sizeof interval);
    view_p_text(view_p(v, s), p, sizeof p);
    print_row(names, &s->row);
    printf(" %11s %11s %9s %20s %8s  %s%s%s\n", a, b, shift, interval, p,
           text_style(stdout, styles[s->verdict]), view_words[s->verdict],
           text_style(stdout, TEXT_PLAIN));
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
    view_verdict(v, stdout);
    return shell_flush("the comparison");
}

/* ---- the command ---- */

/* Writes one of the forms to a file. */
static int save_view(const struct view *v, void (*form)(const struct view *v, FILE *out),
                     const char *path)
{
    char *bytes = NULL;
    size_t length = 0;
    FILE *out = *path ? open_memstream(&bytes, &length) : NULL;
    if (!*path)
        return 0;
    if (!out)
        return fail(-ENOMEM, "no memory for %s", path);
    form(v, out);
    int status =
        fclose(out) ? fail(-ENOMEM, "no memory for %s", path) : weft_save(path, bytes, length);
    free(bytes);
    return status;
}

/* Where the table goes, another form may. */
static int show_view(const struct view *v, const struct weft_options *options)
{
    if (strcmp(options->json, "-") == 0 || strcmp(options->junit, "-") == 0)
        return 0;
    return options->markdown ? save_view(v, view_markdown, "-") : print_view(v);
}

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
    if (c->sequential && v->a->count > 1 && v->b->count > 1)
        warn("all runs of one set began before the other: a drift of the machine would look like a "
             "difference; weft repeat N -- A -- B alternates them");
}

int compare_check(const struct weft_options *options)
{
    if (*options->json && *options->junit && save_same(options->json, options->junit))
        return fail(-EINVAL, "--json and --junit both write to %s", options->json);
    int status = *options->json ? save_check(options->json) : 0;
    return status || !*options->junit ? status : save_check(options->junit);
}

int compare_sets(const struct study_set *a, const struct study_set *b,
                 const struct weft_options *options)
{
    struct study_terms terms;
    struct study_comparison c;
    int status = weft_terms(options, &terms);
    for (int i = 0; i < 4 && !status; i++)
        status = study_check_output(i / 2 ? b->runs : a->runs, i / 2 ? b->count : a->count,
                                    i % 2 ? options->junit : options->json);
    if (!status)
        status = study_compare(a, b, &terms, &c);
    if (status)
        return status;
    struct view view = {.a = a, .b = b, .terms = &terms, .c = &c};
    warn_limits(&view);
    status = show_view(&view, options);
    if (!status)
        status = save_view(&view, view_json, options->json);
    if (!status)
        status = save_view(&view, view_junit, options->junit);
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
    bool maps = false;
    status = weft_terms(&options, &terms);
    if (!status)
        status = compare_check(&options);
    if (!status)
        status = compare_maps(places[0], places[1], &options, &maps);
    if (status || maps)
        return status;
    status = study_set_read(&a, places[0]);
    if (!status)
        status = study_set_read(&b, places[1]);
    if (!status)
        status = compare_sets(&a, &b, &options);
    study_set_free(&a);
    study_set_free(&b);
    return status;
}
