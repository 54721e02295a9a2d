/* SPDX-License-Identifier: BSD-3-Clause */
/* What network devices counted as errors while runs were measured. */
#include "core/counters.h"
#include "study/study.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* One that grew, in a run. */
struct grown {
    const struct study_counter *counter;
    size_t run;
};

static bool is_grown(const struct study_counter *c)
{
    return c->delta > 0 && counter_is_error(c->name);
}

static int compare_texts(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) : (a != NULL) - (b != NULL);
}

static int compare_counters(const struct study_counter *a, const struct study_counter *b)
{
    int order = strcmp(a->end, b->end);
    if (!order)
        order = compare_texts(a->device, b->device);
    return order ? order : strcmp(a->name, b->name);
}

static int compare(const void *one, const void *two)
{
    const struct grown *a = one, *b = two;
    int order = compare_counters(a->counter, b->counter);
    return order ? order : (a->run > b->run) - (a->run < b->run);
}

/* Fills list, if there is one; how many there are. */
static size_t collect(const struct study_set *set, struct grown *list)
{
    size_t count = 0;
    for (size_t run = 0; run < set->count; run++)
        for (size_t i = 0; i < set->runs[run].result_count; i++) {
            const struct study_result *result = &set->runs[run].results[i];
            for (size_t k = 0; k < result->counter_count; k++) {
                if (!is_grown(&result->counters[k]))
                    continue;
                if (list)
                    list[count] = (struct grown){&result->counters[k], run};
                count++;
            }
        }
    return count;
}

int study_errors(const struct study_set *set,
                 void (*visit)(void *arg, const struct study_counter *sum, size_t runs), void *arg)
{
    size_t count = collect(set, NULL);
    struct grown *list = count ? calloc(count, sizeof *list) : NULL;
    if (!count)
        return 0;
    if (!list)
        return fail(-ENOMEM, "no memory for the counters of runs");
    collect(set, list);
    qsort(list, count, sizeof *list, compare);
    for (size_t i = 0, end; i < count; i = end) {
        struct study_counter sum = *list[i].counter;
        size_t runs = 1;
        for (end = i + 1; end < count && !compare_counters(list[end].counter, &sum); end++) {
            sum.delta += list[end].counter->delta;
            runs += list[end].run != list[end - 1].run;
        }
        visit(arg, &sum, runs);
    }
    free(list);
    return 0;
}
