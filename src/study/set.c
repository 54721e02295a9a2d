/* SPDX-License-Identifier: BSD-3-Clause */
/* Sets of runs, and the options and machines that differ between two of them. */
#include "study/plot.h"
#include "study/read.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { RUNS_MAX = 4096 };

/* ---- reading ---- */

int reader_is_document(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name);
    return entry->d_name[0] != '.' && length > 5 &&
           strcmp(entry->d_name + length - 5, ".json") == 0;
}

static int read_entry(struct study_set *set, const char *name)
{
    char path[STUDY_PATH];
    if ((size_t)snprintf(path, sizeof path, "%s/%s", set->path, name) >= sizeof path)
        return fail(-EINVAL, "%s: path too long", set->path);
    int status = study_read(&set->runs[set->count], path, true);
    set->count += !status;
    return status;
}

static int read_folder(struct study_set *set)
{
    struct dirent **entries = NULL;
    int count = scandir(set->path, &entries, reader_is_document, alphasort), status = 0;
    if (count < 0)
        return fail(-EINVAL, "%s: %s", set->path, strerror(errno));
    if (!count)
        status = fail(-EINVAL, "%s: contains no *.json file", set->path);
    else if (count > RUNS_MAX)
        status = fail(-EINVAL, "%s: %d documents; the maximum is %d", set->path, count, RUNS_MAX);
    else if (!(set->runs = calloc((size_t)count, sizeof *set->runs)))
        status = fail(-ENOMEM, "no memory for %d runs", count);
    for (int i = 0; i < count; i++) {
        if (!status)
            status = read_entry(set, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    return status;
}

static bool is_folder(const char *path)
{
    struct stat facts;
    return !stat(path, &facts) && S_ISDIR(facts.st_mode);
}

static bool has_documents(const char *path)
{
    DIR *folder = opendir(path);
    const struct dirent *entry = NULL;
    while (folder && (entry = readdir(folder)) && !reader_is_document(entry))
        continue;
    if (folder)
        closedir(folder);
    return entry;
}

bool study_sides(const char *path, char a[STUDY_PATH], char b[STUDY_PATH])
{
    return snprintf(a, STUDY_PATH, "%s/a", path) < STUDY_PATH && is_folder(a) &&
           snprintf(b, STUDY_PATH, "%s/b", path) < STUDY_PATH && is_folder(b) &&
           !has_documents(path);
}

int study_set_read(struct study_set *set, const char *path)
{
    int status;
    *set = (struct study_set){.path = path};
    if (is_folder(path)) {
        status = read_folder(set);
    } else if (!(set->runs = calloc(1, sizeof *set->runs))) {
        status = fail(-ENOMEM, "no memory for a run");
    } else {
        status = study_read(set->runs, path, false);
        set->count = !status;
    }
    if (status)
        study_set_free(set);
    return status;
}

void study_set_free(struct study_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        study_free(&set->runs[i]);
    free(set->runs);
    *set = (struct study_set){0};
}

int study_check_output(const struct study_run *runs, size_t count, const char *path)
{
    struct stat facts;
    if (strcmp(path, "-") == 0 || stat(path, &facts) || !S_ISREG(facts.st_mode))
        return 0;
    for (size_t i = 0; i < count; i++)
        if (runs[i].file[0] == facts.st_dev && runs[i].file[1] == facts.st_ino)
            return fail(-EINVAL, "%s: is one of the results and would be overwritten", path);
    return 0;
}

/* ---- differences ---- */

enum { LISTS = 3 };
static const char *const list_names[LISTS] = {"", "client ", "server "};

static const struct study_pair *list_of(const struct study_run *run, int list, size_t *count)
{
    *count = list == 0 ? run->option_count : list == 1 ? run->client_count : run->server_count;
    return list == 0 ? run->options : list == 1 ? run->client : run->server;
}

/* NULL if it is not there. */
static const char *find_in(const struct study_run *run, int list, const char *name)
{
    size_t count;
    const struct study_pair *pairs = list_of(run, list, &count);
    return pair_value(pairs, count, name);
}

static const char *value_in(const struct study_run *run, int list, const char *name)
{
    const char *value = find_in(run, list, name);
    return value ? value : "";
}

/* The value that all runs of a set have. */
static const char *value_of(const struct study_set *set, int list, const char *name)
{
    const char *value = value_in(&set->runs[0], list, name);
    for (size_t i = 1; i < set->count; i++)
        if (strcmp(value_in(&set->runs[i], list, name), value) != 0)
            return "(varies between runs)";
    return value;
}

/* Options without influence on results, and names given by the launcher. */
static bool is_incidental(int list, const char *name)
{
    return list ? strcmp(name, "name") == 0 || strcmp(name, "ran_on") == 0
                : option_incidental(name) != 0;
}

/* True if both ends changed alike: the difference is then reported once. */
static bool at_both_ends(const struct study_set *const sets[2], int list, const char *name)
{
    for (int i = 0; i < 2 && list; i++)
        if (strcmp(value_of(sets[i], 1, name), value_of(sets[i], 2, name)) != 0)
            return false;
    return list;
}

static void visit_difference(const struct study_set *const sets[2], int list, const char *name,
                             void (*visit)(void *arg, const char *name, const char *a,
                                           const char *b),
                             void *arg)
{
    char full[128];
    const char *a = value_of(sets[0], list, name), *b = value_of(sets[1], list, name);
    bool both = at_both_ends(sets, list, name);
    if (is_incidental(list, name) || strcmp(a, b) == 0 || (both && list == 2))
        return;
    snprintf(full, sizeof full, "%s%s", both ? "" : list_names[list], name);
    visit(arg, full, *a ? a : "-", *b ? b : "-");
}

void study_differences(const struct study_set *a, const struct study_set *b,
                       void (*visit)(void *arg, const char *name, const char *a, const char *b),
                       void *arg)
{
    const struct study_set *sets[2] = {a, b};
    for (int k = 0; k < LISTS * 2; k++) {
        int list = k / 2;
        size_t count;
        const struct study_pair *pairs = list_of(&sets[k % 2]->runs[0], list, &count);
        for (size_t i = 0; i < count; i++) {
            /* Names of B that A has were visited already. */
            if (k % 2 == 0 || !find_in(&a->runs[0], list, pairs[i].name))
                visit_difference(sets, list, pairs[i].name, visit, arg);
        }
    }
}
