/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzzes what is made of several results: documents with NULs between them, as two sets that are
 * compared, and on one page and one plot. */
#include "fuzz/feed.h"
#include "study/page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

unsigned fuzz_accepted;

enum { RUNS = 12 };

static size_t read_runs(struct study_run *runs, const char *data, size_t size)
{
    size_t count = 0;
    while (size && count < RUNS) {
        const char *end = memchr(data, '\0', size);
        size_t length = end ? (size_t)(end - data) : size;
        count += !study_parse(&runs[count], "fuzz", data, length);
        length += end != NULL;
        data += length;
        size -= length;
    }
    return count;
}

static void see(void *arg, const char *name, const char *was, const char *is)
{
    *(size_t *)arg += strlen(name) + strlen(was) + strlen(is);
}

static void see_errors(void *arg, const struct study_counter *sum, size_t runs)
{
    const struct study_set *set = arg;
    if (!sum->end || !sum->name || !(sum->delta > 0) || !runs || runs > set->count)
        abort();
}

/* The promises of the door. */
static void check(const struct study_comparison *c)
{
    for (size_t i = 0; i < c->count; i++) {
        const struct study_shift *s = &c->shifts[i];
        if (!s->row.of || s->p < 0 || s->p > 1 || s->low > s->high)
            abort();
        if (s->verdict == STUDY_SLOWER && !(s->shift > 0))
            abort();
        if (s->verdict == STUDY_FASTER && !(s->shift < 0))
            abort();
        if (s->verdict == STUDY_SAME && (isnan(s->low) || isnan(s->high)))
            abort();
    }
    if (c->slower + c->faster + c->unsure + c->absent > c->count)
        abort();
}

static void compare(struct study_run *runs, size_t count, bool force)
{
    struct study_set a = {"a", runs, count / 2}, b = {"b", runs + count / 2, count - count / 2};
    struct study_terms terms = {.percentiles = {50, 99, 0}, .min_effect = 0.02, .force = force};
    struct study_comparison comparison;
    struct study_spread *rows;
    size_t seen = 0;
    if (!study_compare(&a, &b, &terms, &comparison)) {
        check(&comparison);
        study_comparison_free(&comparison);
        fuzz_accepted++;
    }
    if (!study_spread(&b, &terms, &rows, &seen))
        free(rows);
    study_differences(&a, &b, see, &seen);
    study_errors(&b, see_errors, &b);
}

static int drop(void *arg, const char *name, const char *bytes, size_t length)
{
    (void)arg;
    (void)name;
    (void)bytes;
    (void)length;
    return 0;
}

static void draw(const struct study_run *runs, size_t count)
{
    char *bytes = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&bytes, &length);
    if (!out)
        return;
    struct study_subject subject = {.runs = runs, .count = count};
    study_page(&subject, out);
    study_plots(&subject, false, drop, NULL);
    fclose(out);
    free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct study_run runs[RUNS];
    size_t count = read_runs(runs, (const char *)data, size);
    if (count > 1) {
        compare(runs, count, false);
        compare(runs, count, true);
        draw(runs, count);
    }
    for (size_t i = 0; i < count; i++)
        study_free(&runs[i]);
    return 0;
}
