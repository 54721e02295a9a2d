/* SPDX-License-Identifier: BSD-3-Clause */
/* weft map: what ranks are called, and which groups they are in. */
#include "tool/map.h"
#include "tool/shell.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- names ---- */

struct named {
    char node[GROUP_NAME];
    uint32_t rank;
};

static int by_node(const void *a, const void *b)
{
    const struct named *x = a, *y = b;
    int order = strcmp(x->node, y->node);
    return order ? order : (x->rank > y->rank) - (x->rank < y->rank);
}

/* A host's name; its ranks are numbered if it has several. */
static int name_nodes(struct map_record *r, const struct group *group)
{
    struct named *all = calloc(r->nodes + 1U, sizeof *all);
    if (!all)
        return fail(-ENOMEM, "no memory for %u names", r->nodes);
    for (uint32_t i = 0; i < r->nodes; i++) {
        all[i].rank = i;
        snprintf(all[i].node, sizeof all[i].node, "%s", group_node(group, i));
        if (!*all[i].node)
            group_absent_node(group, i, all[i].node);
    }
    qsort(all, r->nodes, sizeof *all, by_node);
    for (uint32_t i = 0; i < r->nodes;) {
        uint32_t count = 1;
        while (i + count < r->nodes && strcmp(all[i].node, all[i + count].node) == 0)
            count++;
        r->hosts++;
        for (uint32_t k = 0; k < count; k++) {
            char *name = r->names[all[i + k].rank];
            const char *node = *all[i].node ? all[i].node : "rank";
            if (count > 1 || !*all[i].node)
                snprintf(name, MAP_NAME, "%s:%u", node, *all[i].node ? k : all[i + k].rank);
            else
                snprintf(name, MAP_NAME, "%s", node);
            text_clean(name);
        }
        i += count;
    }
    free(all);
    return 0;
}

/* ---- groups ---- */

static uint32_t group_number(struct map_record *r, const char *name)
{
    uint32_t i = 0;
    while (i < r->groups && strcmp(r->group_names[i], name) != 0)
        i++;
    if (i == r->groups) {
        snprintf(r->group_names[r->groups++], MAP_NAME, "%.*s", MAP_NAME - 1, name);
        text_clean(r->group_names[i]);
    }
    return i;
}

static void by_label(struct map_record *r, const struct group *group)
{
    for (uint32_t i = 0; i < r->nodes; i++) {
        const char *label = group_label(group, i);
        r->group_of[i] = group_number(r, *label ? label : "other");
    }
}

/* Warnings are mute while ranks measure, and this is one of the first turn. */
static void __attribute__((format(printf, 1, 2))) say(const char *format, ...)
{
    char sentence[MAP_PATH + 128];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    shell_say(sentence);
}

/* An address of a Slingshot NIC has its switch above six bits of port. */
static void by_switch(struct map_record *r, const struct group_value *values)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < r->nodes; i++) {
        const struct map_ready *ready = values[i].bytes;
        char name[MAP_NAME] = "other";
        unsigned nic;
        if (ready && values[i].length == sizeof *ready &&
            memchr(ready->self, '\0', sizeof ready->self) &&
            sscanf(ready->self, "NIC 0x%x", &nic) == 1) {
            snprintf(name, sizeof name, "switch 0x%x", nic >> 6);
            found++;
        }
        r->group_of[i] = group_number(r, name);
    }
    if (!found)
        say("--groups switch: no device has the address of a switch");
}

/* Lines "NODE GROUP". */
struct lines {
    const char *path;
    FILE *in;
    int number, count; /* of the line; of those with a group */
    char node[MAP_NAME], name[MAP_NAME];
};

static int line_wrong(const struct lines *f, const char *what)
{
    return fail(-EINVAL, "--groups %s, line %d: %s, a line is NODE GROUP", f->path, f->number,
                what);
}

/* 1: the next one; 0: there is no more. */
static int next_line(struct lines *f)
{
    char line[512], more[8] = "";
    while (fgets(line, sizeof line, f->in)) {
        const char *first = line + strspn(line, " \t\r\n");
        f->number++;
        if (strlen(line) == sizeof line - 1)
            return line_wrong(f, "too long");
        if (!*first || *first == '#')
            continue;
        int words = sscanf(line, "%95s %95s %7s", f->node, f->name, more);
        if (words < 2 || *f->name == '#')
            return line_wrong(f, "no group");
        if (words > 2 && *more != '#')
            return line_wrong(f, strlen(f->node) == MAP_NAME - 1 || strlen(f->name) == MAP_NAME - 1
                                     ? "a name that is too long"
                                     : "more than two words");
        f->count++;
        return 1;
    }
    if (ferror(f->in))
        return fail(-EINVAL, "--groups %s: %s", f->path, strerror(errno));
    return f->count ? 0 : fail(-EINVAL, "--groups %s: it has no line NODE GROUP", f->path);
}

static int open_lines(struct lines *f, const char *path)
{
    *f = (struct lines){.path = path, .in = fopen(path, "re")};
    return f->in ? 0
                 : fail(-EINVAL, "--groups %s: %s (accepted: auto, none, switch, or a file)", path,
                        strerror(errno));
}

static bool is_file(const char *groups)
{
    return strcmp(groups, "none") != 0 && strcmp(groups, "switch") != 0 &&
           strcmp(groups, "auto") != 0;
}

/* A pipe can be read only once. */
int map_groups_check(const char *groups)
{
    struct lines f;
    struct stat info;
    if (!is_file(groups) || (!stat(groups, &info) && S_ISFIFO(info.st_mode)))
        return 0;
    int status = open_lines(&f, groups);
    if (status)
        return status;
    do
        status = next_line(&f);
    while (status == 1);
    fclose(f.in);
    return status;
}

/* The last line of a node counts. */
static int read_groups(const struct map_record *r, const struct group *group, const char *path,
                       char (*of)[MAP_NAME])
{
    struct lines f;
    int status = open_lines(&f, path);
    if (status)
        return status;
    while ((status = next_line(&f)) == 1)
        for (uint32_t i = 0; i < r->nodes; i++)
            if (strcmp(r->names[i], f.node) == 0 || strcmp(group_node(group, i), f.node) == 0)
                memcpy(of[i], f.name, sizeof f.name);
    fclose(f.in);
    return status;
}

/* What is not in the file is "other". */
static int by_file(struct map_record *r, const struct group *group, const char *path)
{
    uint32_t found = 0;
    char(*of)[MAP_NAME] = calloc(r->nodes + 1U, sizeof *of);
    if (!of)
        return fail(-ENOMEM, "no memory for %u names", r->nodes);
    int status = read_groups(r, group, path, of);
    for (uint32_t i = 0; i < r->nodes && !status; i++) {
        r->group_of[i] = group_number(r, *of[i] ? of[i] : "other");
        found += *of[i] != '\0';
    }
    free(of);
    if (!status && found < r->nodes)
        say("--groups: %u of %u nodes are in %s; the others are in group \"other\"", found,
            r->nodes, path);
    return status;
}

int map_lead_places(struct map_lead *l, const struct group_value *values)
{
    struct map_record *r = &l->record;
    const struct group *group = l->rank->group;
    const char *groups = l->rank->request->options->groups;
    int status = name_nodes(r, group);
    if (status)
        return status;
    if (strcmp(groups, "none") == 0)
        r->groups = 1;
    else if (strcmp(groups, "switch") == 0)
        by_switch(r, values);
    else if (strcmp(groups, "auto") == 0)
        by_label(r, group);
    else
        status = by_file(r, group, groups);
    return status;
}
