/* SPDX-License-Identifier: BSD-3-Clause */
/* What network devices counted as errors in the runs of a comparison, where they were asked. */
#include "tool/weft.h"

#include <stdio.h>

struct side {
    const char *name;
    size_t runs;
};

static void print(void *arg, const struct study_counter *sum, size_t runs)
{
    const struct side *side = arg;
    printf("Errors in %s: %s %s: %s +%.0f in %zu of %zu %s\n", side->name, sum->end,
           sum->device ? sum->device : "-", sum->name, sum->delta, runs, side->runs,
           side->runs == 1 ? "run" : "runs");
}

int errors_print(const char *name, const struct study_set *set)
{
    struct side side = {name, set->count};
    return study_errors(set, print, &side);
}

static void write_one(void *arg, const struct study_counter *sum, size_t runs)
{
    json_open(arg, NULL, '{');
    json_text(arg, "end", sum->end);
    json_text(arg, "device", sum->device);
    json_text(arg, "counter", sum->name);
    json_number(arg, "delta", sum->delta);
    json_count(arg, "runs", runs);
    json_close(arg, '}');
}

void errors_write(struct json *j, const struct study_set *set)
{
    json_open(j, "errors", '[');
    study_errors(set, write_one, j);
    json_close(j, ']');
}
