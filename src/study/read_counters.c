/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters of network devices in a document: for each pair of devices an object per end. */
#include "study/read.h"

#include <math.h>
#include <stdio.h>

static const char *const ends[] = {"client", "server"};

struct end {
    const char *device, *why;
};
static const struct field end_fields[] = {
    {"device", TEXT_OR_NULL, offsetof(struct end, device), NULL},
    {"why", TEXT, offsetof(struct end, why), NULL},
    {0}};

static int read_deltas(struct reader *r, const json_t *end, const char *where,
                       struct study_counter like, struct study_result *result)
{
    json_t *all = json_object_get(end, "deltas"), *one;
    const char *name;
    if (!json_is_object(all))
        return reader_wrong(r, where, "deltas", all ? "is not an object" : "is missing");
    json_object_foreach(all, name, one)
    {
        if (!json_is_null(one) && !(json_is_number(one) && json_number_value(one) >= 0))
            return reader_wrong(r, where, "deltas", "has a value that is no count");
        like.name = reader_text(r, name);
        like.delta = json_is_null(one) ? NAN : json_number_value(one);
        if (!like.name)
            return reader_no_memory(r);
        result->counters[result->counter_count++] = like;
    }
    return 0;
}

static int read_pair(struct reader *r, const json_t *pair, const char *where,
                     struct study_result *result)
{
    int status = 0;
    for (size_t i = 0; i < LENGTH(ends) && !status; i++) {
        char inner[WHERE];
        struct end end;
        snprintf(inner, sizeof inner, "%.*s%s.", WHERE / 2, where, ends[i]);
        status = read_member(r, pair, where, ends[i], end_fields, &end);
        struct study_counter like = {.end = ends[i], .device = end.device};
        if (!status)
            status = read_deltas(r, json_object_get(pair, ends[i]), inner, like, result);
    }
    return status;
}

static size_t count_all(const json_t *all)
{
    size_t count = 0;
    for (size_t i = 0; i < json_array_size(all); i++)
        for (size_t k = 0; k < LENGTH(ends); k++)
            count += json_object_size(
                json_object_get(json_object_get(json_array_get(all, i), ends[k]), "deltas"));
    return count;
}

int read_counters(struct reader *r, const json_t *object, const char *where,
                  struct study_result *result)
{
    const json_t *all = json_object_get(object, "counters");
    size_t count = count_all(all);
    int status = 0;
    result->counters = NULL;
    if (!all)
        return 0;
    if (!json_is_array(all))
        return reader_wrong(r, where, "counters", "is not a list");
    /* One more, because there may be none. */
    result->counters = reader_alloc(r, (count + 1) * sizeof *result->counters);
    if (!result->counters)
        return reader_no_memory(r);
    for (size_t i = 0; i < json_array_size(all) && !status; i++) {
        char inner[WHERE];
        snprintf(inner, sizeof inner, "%.*scounters[%zu].", WHERE / 3, where, i);
        status = read_pair(r, json_array_get(all, i), inner, result);
    }
    return status;
}
