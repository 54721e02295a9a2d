/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters of network devices in a document: for each pair of devices an object per end. */
#include "study/read.h"

#include <stdio.h>

struct end {
    const char *device, *why;
};
static const struct field end_fields[] = {
    {"device", TEXT_OR_NULL, offsetof(struct end, device), NULL},
    {"why", TEXT, offsetof(struct end, why), NULL},
    {0}};

static int check_deltas(const struct reader *r, const json_t *end, const char *where)
{
    json_t *all = json_object_get(end, "deltas"), *one;
    const char *name;
    if (!json_is_object(all))
        return reader_wrong(r, where, "deltas", all ? "is not an object" : "is missing");
    json_object_foreach(all, name, one)
    {
        if (!json_is_null(one) && !(json_is_number(one) && json_number_value(one) >= 0))
            return reader_wrong(r, where, "deltas", "has a value that is no count");
    }
    return 0;
}

static int check_pair(struct reader *r, const json_t *pair, const char *where)
{
    static const char *const ends[] = {"client", "server"};
    int status = 0;
    for (size_t i = 0; i < LENGTH(ends) && !status; i++) {
        char inner[WHERE];
        struct end end;
        snprintf(inner, sizeof inner, "%.*s%s.", WHERE / 2, where, ends[i]);
        status = read_member(r, pair, where, ends[i], end_fields, &end);
        if (!status)
            status = check_deltas(r, json_object_get(pair, ends[i]), inner);
    }
    return status;
}

int check_counters(struct reader *r, const json_t *object, const char *where)
{
    const json_t *all = json_object_get(object, "counters");
    int status = 0;
    if (all && !json_is_array(all))
        return reader_wrong(r, where, "counters", "is not a list");
    for (size_t i = 0; i < json_array_size(all) && !status; i++) {
        char inner[WHERE];
        snprintf(inner, sizeof inner, "%.*scounters[%zu].", WHERE / 3, where, i);
        status = check_pair(r, json_array_get(all, i), inner);
    }
    return status;
}
