/* SPDX-License-Identifier: BSD-3-Clause */
/* weft report: results as a page, and as plots. Each argument is a set of runs; two are compared.
 * Maps have pages of their own. */
#include "study/maps.h"
#include "study/page.h"
#include "tool/weft.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { SETS_COMPARED = 2 };

/* All runs, set after set; and where the first two sets are among them. */
struct run_list {
    struct study_run *runs;
    size_t count;
    unsigned sets;
    struct study_set compared[SETS_COMPARED];
    size_t from[SETS_COMPARED];
};

static int list_add(struct run_list *list, const char *path)
{
    struct study_set set;
    int status = study_set_read(&set, path);
    if (status)
        return status;
    struct study_run *more = realloc(list->runs, (list->count + set.count) * sizeof *more);
    if (!more) {
        study_set_free(&set);
        return fail(-ENOMEM, "no memory for %zu runs", list->count + set.count);
    }
    memcpy(more + list->count, set.runs, set.count * sizeof *more);
    list->runs = more;
    for (size_t i = 0; i < set.count; i++)
        more[list->count + i].set = list->sets;
    if (list->sets < SETS_COMPARED) {
        list->compared[list->sets] = (struct study_set){.path = path, .count = set.count};
        list->from[list->sets] = list->count;
    }
    list->count += set.count;
    list->sets++;
    free(set.runs);
    return 0;
}

/* A result, or both sides of a folder written by repeat. */
static int list_add_path(struct run_list *list, const char *path)
{
    static char a[STUDY_PATH], b[STUDY_PATH];
    if (!study_sides(path, a, b))
        return list_add(list, path);
    int status = list_add(list, a);
    return status ? status : list_add(list, b);
}

static bool ends_in(const char *path, const char *end)
{
    size_t length = strlen(path);
    return length > strlen(end) && strcasecmp(path + length - strlen(end), end) == 0;
}

static bool is_folder(const char *path)
{
    struct stat facts;
    return ends_in(path, "/") || (!stat(path, &facts) && S_ISDIR(facts.st_mode));
}

static int check_page(const char *path)
{
    static const char *const others[] = {".json", ".pdf", ".png"};
    if (!*path)
        return fail(-EINVAL, "-o PAGE is missing (\"-\": standard output)");
    for (size_t i = 0; i < LENGTH(others); i++)
        if (ends_in(path, others[i]))
            return fail(-EINVAL, "%s: only HTML and SVG can be written", path);
    if (!is_folder(path))
        return save_check(path);
    if (mkdir(path, 0777) && errno != EEXIST)
        return fail(-errno, "%s: %s", path, strerror(errno));
    return 0;
}

/* ---- writing ---- */

/* Where plots go: each into a folder, or one to a path. */
struct place {
    const char *folder, *path;
    const struct run_list *list;
};

static int save(void *arg, const char *name, const char *bytes, size_t length)
{
    const struct place *place = arg;
    char path[WEFT_PATH + 80];
    snprintf(path, sizeof path, "%s/%s", place->folder ? place->folder : "", name);
    const char *chosen = place->folder ? path : place->path;
    int status = study_check_output(place->list->runs, place->list->count, chosen);
    return status ? status : weft_save(chosen, bytes, length);
}

static int write_page(const struct study_subject *subject, struct place *place)
{
    char *bytes = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&bytes, &length);
    if (!out)
        return fail(-ENOMEM, "no memory for the page");
    int status = study_page(subject, out);
    if (fclose(out) && !status)
        status = fail(-ENOMEM, "no memory for the page");
    if (!status)
        status = save(place, "index.html", bytes, length);
    free(bytes);
    return status;
}

static int write_all(const struct study_subject *subject, const struct run_list *list,
                     const char *path)
{
    struct place place = {.path = path, .list = list};
    if (ends_in(path, ".svg"))
        return study_plots(subject, true, save, &place);
    if (!is_folder(path))
        return write_page(subject, &place);
    place.folder = path;
    int status = write_page(subject, &place);
    if (!status)
        status = study_plots(subject, false, save, &place);
    return status == -ENODATA ? 0 : status;
}

/* Two sets of several runs each are compared by their medians. */
static int draw(struct run_list *list, const struct weft_options *options)
{
    static const struct study_terms terms = {.percentiles = {50}, .min_effect = 0.02};
    struct study_subject subject = {
        .runs = list->runs, .count = list->count, .title = *options->title ? options->title : NULL};
    struct study_comparison comparison = {0};
    char reason[1024];
    bool two = list->sets == SETS_COMPARED;
    for (unsigned i = 0; i < SETS_COMPARED && two; i++) {
        list->compared[i].runs = list->runs + list->from[i];
        two = list->compared[i].count > 1;
    }
    if (two && study_compare(&list->compared[0], &list->compared[1], &terms, &comparison)) {
        snprintf(reason, sizeof reason, "%s", fail_reason());
        subject.not_compared = reason;
    } else if (two) {
        subject.comparison = &comparison;
    }
    int status = write_all(&subject, list, options->output);
    study_comparison_free(&comparison);
    return status;
}

/* ---- maps ---- */

/* picture: of the first alone. */
static int save_map(const struct study_map *maps, size_t count, bool picture,
                    const struct weft_options *options, const char *path)
{
    char *bytes = NULL;
    const char *title = *options->title ? options->title : NULL;
    size_t length = 0;
    FILE *out = open_memstream(&bytes, &length);
    if (!out)
        return fail(-ENOMEM, "no memory for the page");
    int status =
        picture ? study_map_plot(maps, title, out) : study_map_page(maps, count, title, out);
    if (fclose(out) && !status)
        status = fail(-ENOMEM, "no memory for the page");
    if (!status)
        status = weft_save(path, bytes, length);
    free(bytes);
    return status;
}

/* A folder has the page, map.svg, map-2.svg and so on. */
static int write_maps(const struct study_map *maps, size_t count,
                      const struct weft_options *options)
{
    char path[WEFT_PATH + 24];
    bool picture = ends_in(options->output, ".svg");
    if (picture && count > 1)
        return fail(-EINVAL, "%s: a picture has one map: for %zu use a page or a folder",
                    options->output, count);
    if (!is_folder(options->output))
        return save_map(maps, count, picture, options, options->output);
    snprintf(path, sizeof path, "%s/index.html", options->output);
    int status = save_map(maps, count, false, options, path);
    for (size_t i = 0; i < count && !status; i++) {
        snprintf(path, sizeof path, i ? "%s/map-%zu.svg" : "%s/map.svg", options->output, i + 1);
        status = save_map(&maps[i], 1, true, options, path);
    }
    return status;
}

/* 1: they are maps, and the page is written; 0: the first is none. */
static int report_maps(const char *const *places, int given, const struct weft_options *options)
{
    struct study_map maps[given];
    int count = 0, status = 1;
    while (count < given && (status = study_map_read(&maps[count], places[count])) == 1) {
        count++;
        if (save_same(places[count - 1], options->output))
            status = fail(-EINVAL, "%s: the page would replace the map", options->output);
        if (status < 0)
            break;
    }
    if (!status && count)
        status = fail(-EINVAL, "%s is no map, and %s is one: make a page of each kind",
                      places[count], places[0]);
    if (status == 1)
        status = write_maps(maps, (size_t)count, options);
    else if (!count)
        return status;
    for (int i = 0; i < count; i++)
        study_map_free(&maps[i]);
    return status < 0 ? status : 1;
}

/* ---- the command ---- */

int report_command(const struct command *command, int argc, char **argv)
{
    static struct weft_options options;
    const char *places[argc];
    struct run_list list = {0};
    int given, status = weft_parse(command, argc, argv, &options, places, &given);
    if (status)
        return status < 0 ? status : 0;
    if (!given)
        return fail(-EINVAL, "no result given (--help shows the usage)");
    status = check_page(options.output);
    if (!status)
        status = report_maps(places, given, &options);
    if (status)
        return status < 0 ? status : 0;
    for (int i = 0; i < given && !status; i++)
        status = list_add_path(&list, places[i]);
    if (!status)
        status = draw(&list, &options);
    for (size_t i = 0; i < list.count; i++)
        study_free(&list.runs[i]);
    free(list.runs);
    return status;
}
