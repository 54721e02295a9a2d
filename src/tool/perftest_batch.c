/* SPDX-License-Identifier: BSD-3-Clause */
/* The product of batch files: every line of the last file with every line of those before it. */
#include "tool/perftest_batch.h"
#include "tool/shell.h"

#include <errno.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>

/* ---- lines ---- */

static int only_in_command(const struct opt_set *set)
{
    for (const struct opt *row = opt_next(set, NULL); row; row = opt_next(set, row))
        if (row->takes & PERF_RUN && set->origin[row - set->rows] == OPT_BY_USER)
            return fail(-EINVAL, "-%c (--%s) is for the command line, not for a line of a batch",
                        row->letter ? row->letter : '-', row->name);
    return 0;
}

/* A line's options on top of those that stand. */
static int apply_line(const struct batch_line *line, struct opt_set *set)
{
    const char *place;
    int given;
    uint8_t before[OPT_MAX];
    if (line->error)
        return fail(-EINVAL, "%s", line->error);
    if (strlen(line->words[0]) > PRODUCT_LABEL)
        return fail(-EINVAL, "a label of more than %d characters", PRODUCT_LABEL);
    memcpy(before, set->origin, sizeof before);
    memset(set->origin, OPT_BY_DEFAULT, sizeof set->origin);
    int status = opt_parse(set, line->count - 1, line->words + 1, &place, 0, &given);
    if (!status)
        status = only_in_command(set);
    for (size_t i = 0; i < OPT_MAX; i++)
        if (before[i] == OPT_BY_USER)
            set->origin[i] = OPT_BY_USER;
    return status;
}

static void say_line(const struct batch *file, const struct batch_line *line, const char *why)
{
    char sentence[1024];
    snprintf(sentence, sizeof sentence, "%.300s:%u: %s", file->path, line->number, why);
    shell_say(sentence);
}

unsigned product_check(struct product *p, const struct opt_set *outer)
{
    unsigned wrong = 0;
    for (int i = 0; i < p->count; i++)
        for (size_t k = 0; k < p->files[i].count; k++) {
            struct batch_line *line = &p->files[i].lines[k];
            struct perftest scratch = *(const struct perftest *)outer->base;
            struct opt_set set = *outer;
            set.base = &scratch;
            if (!apply_line(line, &set))
                continue;
            say_line(&p->files[i], line, fail_reason());
            line->error = "said";
            wrong++;
        }
    return wrong;
}

/* ---- files ---- */

int product_read(struct product *p, const char *paths)
{
    char *rest = p->paths, *path;
    int status = 0;
    snprintf(p->paths, sizeof p->paths, "%s", paths);
    while (rest && *rest && !status && (path = strsep(&rest, "\n"))) {
        if (p->count == PRODUCT_FILES)
            return fail(-EINVAL, "more than %d batch files", PRODUCT_FILES);
        status = batch_read(&p->files[p->count], path);
        if (!status && !p->files[p->count++].count)
            status = fail(-EINVAL, "batch file %s: no test in it", path);
    }
    return status;
}

int product_sizes(struct product *p, const struct opt_range *sizes)
{
    struct msg text = {0};
    int status = 0;
    if (!sizes->min)
        return 0;
    if (p->count == PRODUCT_FILES)
        return fail(-EINVAL, "more than %d batch files", PRODUCT_FILES - 1);
    for (uint64_t size = sizes->min; size <= sizes->max && !status; size *= 2)
        status = msg_add(&text, "%" PRIu64 " -s %" PRIu64 "\n", size, size);
    if (!status)
        status = batch_parse(&p->files[p->count], text.bytes, strlen(text.bytes));
    if (!status)
        p->files[p->count++].path = "size";
    return status;
}

void product_free(struct product *p)
{
    for (int i = 0; i < p->count; i++)
        batch_free(&p->files[i]);
    p->count = 0;
}

/* ---- tests ---- */

struct visitor {
    bool (*visit)(void *arg, struct opt_set *set, const char *labels);
    void *arg;
};

/* Every line of this file, on top of the lines of the files before it. */
static bool descend(struct product *p, int level, const struct opt_set *outer, const char *labels,
                    const struct visitor *visitor)
{
    struct perftest options = *(const struct perftest *)outer->base;
    struct opt_set set = *outer;
    bool more = true;
    set.base = &options;
    if (level == p->count)
        return visitor->visit(visitor->arg, &set, labels);
    const struct batch *file = &p->files[level];
    for (size_t i = 0; i < file->count && more; i++) {
        char joined[PRODUCT_LABELS];
        /* A line with too long a label is an error, so they fit. */
        if (file->lines[i].error ||
            (size_t)snprintf(joined, sizeof joined, "%s%s%s", labels, level ? "\n" : "",
                             file->lines[i].words[0]) >= sizeof joined)
            continue;
        options = *(const struct perftest *)outer->base;
        set = *outer;
        set.base = &options;
        apply_line(&file->lines[i], &set);
        p->at[level] = &file->lines[i];
        more = descend(p, level + 1, &set, joined, visitor);
    }
    return more;
}

void product_each(struct product *p, const struct opt_set *set,
                  bool (*visit)(void *arg, struct opt_set *set, const char *labels), void *arg)
{
    struct visitor visitor = {.visit = visit, .arg = arg};
    descend(p, 0, set, "", &visitor);
}

unsigned product_tests(const struct product *p)
{
    unsigned tests = 1;
    for (int i = 0; i < p->count; i++) {
        unsigned lines = 0;
        for (size_t k = 0; k < p->files[i].count; k++)
            lines += !p->files[i].lines[k].error;
        tests *= lines;
    }
    return tests;
}

/* ---- words ---- */

void product_say(const struct product *p, const char *why)
{
    char sentence[2048] = "";
    size_t used = 0;
    for (int i = 0; i < p->count && used < sizeof sentence; i++)
        used += (size_t)snprintf(sentence + used, sizeof sentence - used, "%s%.200s:%u",
                                 i ? ", " : "", p->files[i].path, p->at[i]->number);
    if (used < sizeof sentence)
        snprintf(sentence + used, sizeof sentence - used, ": %s", why);
    shell_say(sentence);
}

void product_columns(const struct product *p, char *columns, size_t room)
{
    size_t used = 0;
    columns[0] = '\0';
    for (int i = 0; i < p->count; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s", p->files[i].path);
        int n = snprintf(columns + used, room - used, "%s%.*s", i ? "\n" : "", PRODUCT_LABEL,
                         basename(path));
        if (n > 0 && used + (size_t)n < room)
            used += (size_t)n;
    }
}
