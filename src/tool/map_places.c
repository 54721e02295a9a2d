/* SPDX-License-Identifier: BSD-3-Clause */
/* weft map: what ranks are called, and which groups they are in. */
#include "tool/map.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* An address of a Slingshot NIC has its switch above six bits of port. */
static void by_switch(struct map_record *r, const struct group_value *values)
{
    for (uint32_t i = 0; i < r->nodes; i++) {
        const struct map_ready *ready = values[i].bytes;
        char name[MAP_NAME] = "other";
        unsigned nic;
        if (ready && values[i].length == sizeof *ready &&
            memchr(ready->self, '\0', sizeof ready->self) &&
            sscanf(ready->self, "NIC 0x%x", &nic) == 1)
            snprintf(name, sizeof name, "switch 0x%x", nic >> 6);
        r->group_of[i] = group_number(r, name);
    }
}

/* Lines "NODE GROUP": the last one counts. */
static int read_groups(struct map_record *r, const struct group *group, FILE *in, const char *path,
                       char (*of)[MAP_NAME])
{
    char line[512], node[MAP_NAME], name[MAP_NAME];
    for (int number = 1; fgets(line, sizeof line, in); number++) {
        const char *first = line + strspn(line, " \t\r\n");
        if (!*first || *first == '#')
            continue;
        if (sscanf(line, "%95s %95s", node, name) != 2)
            return fail(-EINVAL, "%s, line %d: not NODE and GROUP", path, number);
        for (uint32_t i = 0; i < r->nodes; i++)
            if (strcmp(r->names[i], node) == 0 || strcmp(group_node(group, i), node) == 0)
                memcpy(of[i], name, sizeof name);
    }
    return 0;
}

/* What is not in the file is "other". */
static int by_file(struct map_record *r, const struct group *group, const char *path)
{
    char(*of)[MAP_NAME] = calloc(r->nodes + 1U, sizeof *of);
    if (!of)
        return fail(-ENOMEM, "no memory for %u names", r->nodes);
    FILE *in = fopen(path, "re");
    int status = in ? read_groups(r, group, in, path, of)
                    : fail(-EINVAL, "--groups %s: %s (accepted: auto, none, switch, or a file)",
                           path, strerror(errno));
    for (uint32_t i = 0; i < r->nodes && !status; i++)
        r->group_of[i] = group_number(r, *of[i] ? of[i] : "other");
    if (in)
        fclose(in);
    free(of);
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
