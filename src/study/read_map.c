/* SPDX-License-Identifier: BSD-3-Clause */
/* Maps read back. Nodes are referred to by number: every number is checked, so that what draws and
 * compares them need not. */
#include "study/maps.h"
#include "study/read.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define AT(type, member) offsetof(struct type, member)

static const struct field head_fields[] = {{"begun", TEXT, AT(study_map, begun), NULL},
                                           {"test", TEXT, AT(study_map, test), NULL},
                                           {"time", TEXT, AT(study_map, time), NULL},
                                           {"weft", TEXT, AT(study_map, weft), NULL},
                                           {"size", COUNT, AT(study_map, size), NULL},
                                           {"pairs_measured", COUNT, AT(study_map, measured), NULL},
                                           {0}};
static const struct field fabric_fields[] = {
    {"device", TEXT, AT(study_map, device), NULL}, {"form", TEXT, AT(study_map, form), NULL}, {0}};
static const struct field launch_fields[] = {{"muster", TEXT, AT(study_map, muster), NULL},
                                             {"ranks", COUNT, AT(study_map, ranks), NULL},
                                             {"hosts", COUNT, AT(study_map, hosts), NULL},
                                             {"trusted", FLAG, AT(study_map, trusted), NULL},
                                             {0}};
static const struct field schedule_fields[] = {
    {"seed", TEXT, AT(study_map, seed), NULL}, {"rounds", COUNT, AT(study_map, rounds), NULL}, {0}};
static const struct field model_fields[] = {
    {"noise_percent", NUMBER_OR_NULL, AT(study_map, noise_percent), NULL},
    {"min_effect_percent", NUMBER, AT(study_map, min_effect_percent), NULL},
    {0}};
static const struct field ending_fields[] = {
    {"code", COUNT, AT(study_map, code), NULL}, {"reason", TEXT, AT(study_map, ending), NULL}, {0}};

static const char *const states[] = {"present", "lost", NULL};
static const char *const verdicts[] = {"slower", "not again", "cannot tell", NULL};
static const char *const kinds[] = {"group", "groups", "node", "pair", NULL};

static const struct field node_fields[] = {
    {"name", TEXT, AT(study_node, name), NULL},
    {"group", TEXT_OR_NULL, AT(study_node, group), NULL},
    {"state", TEXT, AT(study_node, state), states},
    {"verdict", TEXT_OR_NULL, AT(study_node, verdict), verdicts},
    {"pairs", COUNT, AT(study_node, pairs), NULL},
    {"effect_percent", SIGNED_OR_NULL, AT(study_node, effect_percent), NULL},
    {"p50_us", NUMBER_OR_NULL, AT(study_node, p50_us), NULL},
    {"p99_us", NUMBER_OR_NULL, AT(study_node, p99_us), NULL},
    {0}};
static const struct field cell_fields[] = {{"a", COUNT, AT(study_cell, a), NULL},
                                           {"b", COUNT, AT(study_cell, b), NULL},
                                           {"count", COUNT, AT(study_cell, count), NULL},
                                           {"round", COUNT, AT(study_cell, round), NULL},
                                           {"min_us", NUMBER, AT(study_cell, min_us), NULL},
                                           {"p50_us", NUMBER, AT(study_cell, p50_us), NULL},
                                           {"p99_us", NUMBER, AT(study_cell, p99_us), NULL},
                                           {"max_us", NUMBER, AT(study_cell, max_us), NULL},
                                           {0}};
static const struct field finding_fields[] = {
    {"kind", TEXT, AT(study_finding, kind), kinds},
    {"verdict", TEXT, AT(study_finding, verdict), verdicts},
    {"a", COUNT, AT(study_finding, a), NULL},
    {"first_percent", SIGNED_OR_NULL, AT(study_finding, first_percent), NULL},
    {"effect_percent", SIGNED_OR_NULL, AT(study_finding, effect_percent), NULL},
    {"low_percent", SIGNED_OR_NULL, AT(study_finding, low_percent), NULL},
    {"high_percent", SIGNED_OR_NULL, AT(study_finding, high_percent), NULL},
    {0}};
static const struct field lost_fields[] = {{"node", COUNT, AT(study_lost, node), NULL},
                                           {"round", COUNT, AT(study_lost, round), NULL},
                                           {"reason", TEXT, AT(study_lost, reason), NULL},
                                           {0}};
static const struct field power_fields[] = {
    {"effect_percent", NUMBER, AT(study_power, effect_percent), NULL},
    {"probability", NUMBER, AT(study_power, probability), NULL},
    {0}};

/* ---- checks between values ---- */

static int check_number(const struct reader *r, uint64_t number, uint64_t count, const char *where,
                        size_t at)
{
    char inner[WHERE];
    snprintf(inner, sizeof inner, "%s[%zu]", where, at);
    return number < count ? 0 : reader_wrong(r, inner, "", "refers to a node that is not there");
}

static int check_cells(const struct reader *r, const struct study_map *m)
{
    int status = 0;
    for (size_t i = 0; i < m->cell_count && !status; i++) {
        const struct study_cell *c = &m->cells[i];
        status = check_number(r, c->a, m->node_count, "pairs", i);
        if (!status)
            status = check_number(r, c->b, m->node_count, "pairs", i);
        if (!status && (c->a == c->b || !(c->p50_us > 0)))
            status = reader_wrong(r, "pairs", "", "has a pair that cannot be");
    }
    return status;
}

/* The number of the second node or group, where the kind has two. */
static int read_second(const struct reader *r, const json_t *list, struct study_map *m, size_t i)
{
    struct study_finding *f = &m->findings[i];
    bool of_groups = strncmp(f->kind, "group", 5) == 0;
    uint64_t most = of_groups ? m->group_count : m->node_count;
    const json_t *second = json_object_get(json_array_get(list, i), "b");
    bool two = strcmp(f->kind, "pair") == 0 || strcmp(f->kind, "groups") == 0;
    f->b = f->a;
    if (two && (!json_is_integer(second) || json_integer_value(second) < 0))
        return reader_wrong(r, "findings", "", "has a pair without a second node");
    if (two)
        f->b = (uint64_t)json_integer_value(second);
    int status = check_number(r, f->a, most, "findings", i);
    return status ? status : check_number(r, f->b, most, "findings", i);
}

static int read_groups(struct reader *r, const json_t *root, struct study_map *m)
{
    const json_t *list = json_object_get(root, "groups");
    int status = read_list(r, root, "", "groups", sizeof *m->groups, &m->groups, &m->group_count);
    for (size_t i = 0; i < m->group_count && !status; i++) {
        const char *name = json_string_value(json_array_get(list, i));
        if (!name)
            return reader_wrong(r, "groups", "", "has an item that is not a string");
        m->groups[i] = reader_text(r, name);
        status = m->groups[i] ? 0 : reader_no_memory(r);
    }
    return status;
}

/* ---- the document ---- */

static int read_head(struct reader *r, const json_t *root, struct study_map *m)
{
    int status = read_object(r, root, "", head_fields, m);
    if (!status)
        status = read_member(r, root, "", "fabric", fabric_fields, m);
    if (!status)
        status = read_member(r, root, "", "launch", launch_fields, m);
    if (!status)
        status = read_member(r, root, "", "schedule", schedule_fields, m);
    if (!status)
        status = read_member(r, root, "", "model", model_fields, m);
    /* Older documents do not have it. */
    const json_t *planned = json_object_get(root, "pairs_planned");
    if (!status && planned && (!json_is_integer(planned) || json_integer_value(planned) < 0))
        return reader_wrong(r, "", "pairs_planned", "is not a whole number in range");
    m->planned = planned ? (uint64_t)json_integer_value(planned) : 0;
    return status ? status : read_member(r, root, "", "ending", ending_fields, m);
}

static int read_lists(struct reader *r, const json_t *root, struct study_map *m)
{
    int status = read_objects(r, root, "", "nodes", node_fields, sizeof *m->nodes, &m->nodes,
                              &m->node_count);
    if (!status && (m->node_count < 2 || m->node_count > STUDY_MAP_NODES))
        status = reader_wrong(r, "", "nodes", "are too few, or too many");
    if (!status)
        status = read_groups(r, root, m);
    if (!status)
        status = read_objects(r, root, "", "pairs", cell_fields, sizeof *m->cells, &m->cells,
                              &m->cell_count);
    if (!status)
        status = check_cells(r, m);
    if (!status)
        status = read_objects(r, root, "", "findings", finding_fields, sizeof *m->findings,
                              &m->findings, &m->finding_count);
    for (size_t i = 0; i < m->finding_count && !status; i++)
        status = read_second(r, json_object_get(root, "findings"), m, i);
    if (!status)
        status = read_objects(r, root, "", "lost", lost_fields, sizeof *m->lost, &m->lost,
                              &m->lost_count);
    for (size_t i = 0; i < m->lost_count && !status; i++)
        status = check_number(r, m->lost[i].node, m->node_count, "lost", i);
    if (!status)
        status = read_objects(r, json_object_get(root, "model"), "model.", "power", power_fields,
                              sizeof *m->power, &m->power, &m->power_count);
    return status;
}

static bool is_map(const json_t *root)
{
    const char *schema = json_string_value(json_object_get(root, "schema"));
    return schema && strcmp(schema, "weft-map") == 0;
}

/* 1: done. */
static int take_map(struct reader *r, json_t *root, void *into)
{
    struct study_map *m = into;
    const json_t *version = json_object_get(root, "version");
    if (!is_map(root))
        return 0;
    if (!json_is_integer(version) || json_integer_value(version) != 1)
        return fail(-EINVAL, "%s: a map of another version than 1", r->path);
    m->path = reader_text(r, r->path);
    int status = m->path ? read_head(r, root, m) : reader_no_memory(r);
    if (!status)
        status = read_lists(r, root, m);
    return status ? status : 1;
}

int study_map_parse(struct study_map *map, const char *path, const char *text, size_t length)
{
    struct reader r = {.path = path};
    *map = (struct study_map){0};
    int status = reader_parse(&r, text, length, take_map, map);
    map->own = r.chunks;
    if (status != 1)
        study_map_free(map);
    return status;
}

static int read_file(struct study_map *map, const char *path)
{
    struct stat facts;
    char *text;
    size_t length = 0;
    if (stat(path, &facts) || !S_ISREG(facts.st_mode))
        return 0;
    int status = reader_load(path, true, &text, &length, &facts);
    if (!status)
        status = study_map_parse(map, path, text, length);
    free(text);
    if (status != 1)
        return status;
    map->file[0] = facts.st_dev;
    map->file[1] = facts.st_ino;
    return 1;
}

/* The documents of a folder, counted up to the first that is no map; the first one is kept. */
static int read_documents(struct study_map *map, const char *path, struct dirent *const *entries,
                          int count)
{
    char file[STUDY_PATH];
    int maps = 0, status = 1;
    for (; maps < count && status == 1; maps += status == 1) {
        struct study_map next = {0};
        if ((size_t)snprintf(file, sizeof file, "%s/%s", path, entries[maps]->d_name) >=
            sizeof file)
            status = fail(-EINVAL, "%s: path too long", path);
        else
            status = read_file(maps ? &next : map, file);
        if (maps && status == 1)
            study_map_free(&next);
    }
    if (!status && maps)
        status = fail(-EINVAL, "%s: a folder with maps and other documents: %s is no map", path,
                      entries[maps]->d_name);
    else if (status == 1 && maps > 1)
        status = fail(-EINVAL, "%s: a folder with %d maps: give one of them, such as %s/%s", path,
                      maps, path, entries[maps - 1]->d_name);
    if (status != 1 && maps)
        study_map_free(map);
    return status;
}

int study_map_read(struct study_map *map, const char *path)
{
    struct stat facts;
    struct dirent **entries = NULL;
    *map = (struct study_map){0};
    if (stat(path, &facts) || !S_ISDIR(facts.st_mode))
        return read_file(map, path);
    int count = scandir(path, &entries, reader_is_document, alphasort);
    int status = count > 0 ? read_documents(map, path, entries, count) : 0;
    for (int i = 0; i < count; i++)
        free(entries[i]);
    free(entries);
    return status;
}

void study_map_free(struct study_map *map)
{
    chunk_free(map->own);
    *map = (struct study_map){0};
}
