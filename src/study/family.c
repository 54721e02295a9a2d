/* SPDX-License-Identifier: BSD-3-Clause */
/* Who is drawn: runs become curves, one for each kind of test in them, and curves become families.
 * A batch may have a result of one size for each of its labels, so a kind is told by as few words
 * as keep results of one size apart. */
#include "study/plot.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* test and device; then layout; then label. */
enum { WORDS_LEAST = 1, WORDS_MOST = 3 };

static bool same(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "") == 0;
}

static bool same_kind(const struct study_result *a, const struct study_result *b, int words)
{
    return same(a->test, b->test) && same(a->fabric, b->fabric) && same(a->device, b->device) &&
           same(a->method, b->method) && (words < 2 || same(a->layout, b->layout)) &&
           (words < 3 || same(a->label, b->label));
}

static bool clashes(const struct study_run *run, int words)
{
    for (size_t i = 0; i < run->result_count; i++)
        for (size_t j = 0; j < i; j++)
            if (run->results[i].size == run->results[j].size &&
                same_kind(&run->results[i], &run->results[j], words))
                return true;
    return false;
}

static int words_needed(const struct cast *cast)
{
    int words = WORDS_LEAST;
    for (size_t i = 0; i < cast->run_count; i++)
        while (words < WORDS_MOST && clashes(&cast->runs[i], words))
            words++;
    return words;
}

/* ---- curves ---- */

static int by_size(const void *a, const void *b)
{
    const struct study_result *const *x = a, *const *y = b;
    if ((*x)->size != (*y)->size)
        return (*x)->size < (*y)->size ? -1 : 1;
    return *x < *y ? -1 : *x > *y;
}

static struct curve *curve_of(struct cast *cast, size_t first, const struct study_result *result,
                              int words)
{
    for (size_t i = first; i < cast->curve_count; i++)
        if (same_kind(cast->curves[i].results[0], result, words))
            return &cast->curves[i];
    return NULL;
}

/* Curves of one run take their results from its part of the pool, one after the other. */
static void add_run(struct cast *cast, size_t number, const struct study_result **pool, int words)
{
    const struct study_run *run = &cast->runs[number];
    size_t first = cast->curve_count;
    for (size_t i = 0; i < run->result_count; i++) {
        if (curve_of(cast, first, &run->results[i], words))
            continue;
        struct curve *curve = &cast->curves[cast->curve_count++];
        *curve = (struct curve){.run = run, .results = pool};
        for (size_t j = i; j < run->result_count; j++)
            if (same_kind(&run->results[i], &run->results[j], words))
                curve->results[curve->count++] = &run->results[j];
        pool += curve->count;
        qsort(curve->results, curve->count, sizeof *curve->results, by_size);
    }
}

static void add_curves(struct cast *cast, int words)
{
    size_t used = 0;
    for (size_t i = 0; i < cast->run_count; i++) {
        add_run(cast, i, cast->pool + used, words);
        used += cast->runs[i].result_count;
    }
}

static int ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void add_sizes(struct cast *cast)
{
    size_t n = 0, unique = 0;
    for (size_t i = 0; i < cast->run_count; i++)
        for (size_t j = 0; j < cast->runs[i].result_count; j++)
            cast->sizes[n++] = cast->runs[i].results[j].size;
    qsort(cast->sizes, n, sizeof *cast->sizes, ascending);
    for (size_t i = 0; i < n; i++)
        if (!i || cast->sizes[i] != cast->sizes[unique - 1])
            cast->sizes[unique++] = cast->sizes[i];
    cast->size_count = unique;
}

/* ---- families ---- */

bool option_is_incidental(const char *name)
{
    static const char *const names[] = {"json", "csv", "port"};
    for (size_t i = 0; i < LENGTH(names); i++)
        if (same(name, names[i]))
            return true;
    return false;
}

static bool same_program(const char *a, const char *b)
{
    size_t x = strcspn(a ? a : "", " "), y = strcspn(b ? b : "", " ");
    return x == y && (!x || strncmp(a, b, x) == 0);
}

static bool same_options(const struct study_run *a, const struct study_run *b)
{
    if (a->option_count != b->option_count)
        return false;
    for (size_t i = 0; i < a->option_count; i++)
        if (!same(a->options[i].name, b->options[i].name) ||
            (!option_is_incidental(a->options[i].name) &&
             !same(a->options[i].value, b->options[i].value)))
            return false;
    return true;
}

static const char *fact(const struct study_pair *pairs, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (same(pairs[i].name, name))
            return pairs[i].value;
    return NULL;
}

/* Asked for alike, of the same program, between the same machines: another try of the same thing.
 */
static bool same_command(const struct study_run *a, const struct study_run *b)
{
    return same(a->tool, b->tool) && same(a->version, b->version) &&
           same_program(a->command, b->command) && same_options(a, b) &&
           same(fact(a->client, a->client_count, "host"),
                fact(b->client, b->client_count, "host")) &&
           same(fact(a->server, a->server_count, "host"), fact(b->server, b->server_count, "host"));
}

static size_t commands(const struct cast *cast)
{
    size_t different = 0;
    for (size_t i = 0, j; i < cast->run_count; i++) {
        for (j = 0; j < i && !same_command(&cast->runs[i], &cast->runs[j]);)
            j++;
        different += j == i;
    }
    return different;
}

static void add_families(struct cast *cast, int words, bool each_its_own)
{
    for (size_t i = 0; i < cast->curve_count; i++) {
        struct curve *curve = &cast->curves[i];
        size_t f = each_its_own ? cast->family_count : 0;
        for (; f < cast->family_count; f++) {
            const struct curve *other = &cast->curves[cast->families[f].first];
            if (same_command(curve->run, other->run) &&
                same_kind(curve->results[0], other->results[0], words))
                break;
        }
        if (f == cast->family_count)
            cast->families[cast->family_count++] = (struct family){.first = i};
        cast->families[f].members++;
        curve->family = f;
    }
}

/* Several commands, several times each, is a comparison; a few runs of one are looked at singly. */
static void choose_families(struct cast *cast, int words)
{
    add_families(cast, words, false);
    if (cast->curve_count > FEW || (commands(cast) > 1 && cast->family_count > 1))
        return;
    cast->family_count = 0;
    add_families(cast, words, true);
}

/* ---- names ---- */

static size_t common_folder(const struct cast *cast)
{
    size_t length = 0;
    const char *first = cast->runs[0].path ? cast->runs[0].path : "";
    for (const char *slash = strchr(first, '/'); slash; slash = strchr(slash + 1, '/'))
        length = (size_t)(slash - first) + 1;
    for (size_t i = 1; i < cast->run_count; i++) {
        const char *path = cast->runs[i].path ? cast->runs[i].path : "";
        while (length && strncmp(path, first, length) != 0)
            for (length--; length && first[length - 1] != '/';)
                length--;
    }
    return length;
}

/* Cut so that no character is halved. */
static void copy_text(char *to, const char *from, size_t length)
{
    if (length >= LABEL_MAX) {
        length = LABEL_MAX - 4;
        while (length && ((unsigned char)from[length] & 0xc0) == 0x80)
            length--;
        memcpy(to, from, length);
        memcpy(to + length, "...", 4);
        return;
    }
    memcpy(to, from, length);
    to[length] = 0;
}

static void name_runs(struct cast *cast)
{
    size_t folder = cast->run_count ? common_folder(cast) : 0;
    for (size_t i = 0; i < cast->run_count; i++) {
        const char *path = cast->runs[i].path ? cast->runs[i].path + folder : "";
        size_t length = strlen(path);
        if (length > 5 && strcmp(path + length - 5, ".json") == 0)
            length -= 5;
        copy_text(cast->names[i], path, length);
    }
}

/* The words of the kind that are not the same everywhere; where it ran, only if one run had
 * several. */
static void kind_text(const struct cast *cast, const struct curve *curve, int words, char *text,
                      size_t room)
{
    const struct study_result *kind = curve->results[0];
    bool test = false, device = false, layout = false;
    size_t used = 0;
    for (size_t i = 0; i < cast->curve_count; i++) {
        const struct study_result *other = cast->curves[i].results[0];
        test |= !same(other->test, kind->test);
        device |= cast->curves[i].run == curve->run &&
                  (!same(other->device, kind->device) || !same(other->fabric, kind->fabric));
        layout |= words > 1 && !same(other->layout, kind->layout);
    }
    const char *const parts[] = {test ? kind->test : NULL, device ? kind->device : NULL,
                                 layout ? kind->layout : NULL, words > 2 ? kind->label : NULL};
    text[0] = 0;
    for (size_t i = 0; i < LENGTH(parts) && used < room; i++)
        if (parts[i] && parts[i][0])
            used += (size_t)snprintf(text + used, room - used, "%s%s", used ? ", " : "", parts[i]);
}

static void join(char *label, const char *name, const char *kind)
{
    char text[2 * LABEL_MAX + 3];
    snprintf(text, sizeof text, "%s%s%s", name, name[0] && kind[0] ? ": " : "", kind);
    copy_text(label, text, strlen(text));
}

/* What was asked for: the command without where its results went. */
static void asked(const struct study_run *run, char *text, size_t room)
{
    size_t used = (size_t)snprintf(text, room, "%s", run->tool ? run->tool : "");
    for (size_t i = 0; i < run->option_count && used < room; i++) {
        const struct study_pair *option = &run->options[i];
        if (!option->origin || strcmp(option->origin, "user") != 0 || !option->name ||
            option_is_incidental(option->name))
            continue;
        used += (size_t)snprintf(text + used, room - used, " --%s", option->name);
        if (used < room && option->value && strcmp(option->value, "1") != 0)
            used += (size_t)snprintf(text + used, room - used, " %s", option->value);
    }
}

/* Several runs of one command: a letter each command, as in a comparison. */
static void name_family(struct cast *cast, struct family *family, int words)
{
    const struct curve *curve = &cast->curves[family->first];
    char text[LABEL_MAX], kind[LABEL_MAX], command[LABEL_MAX];
    if (family->members < 2) {
        copy_text(family->label, curve->label, strlen(curve->label));
        return;
    }
    size_t letter = 0;
    for (size_t i = 0; i < cast->run_count && &cast->runs[i] != curve->run; i++) {
        size_t j = 0;
        while (j < i && !same_command(&cast->runs[i], &cast->runs[j]))
            j++;
        letter += j == i && !same_command(&cast->runs[i], curve->run);
    }
    asked(curve->run, command, sizeof command);
    snprintf(text, sizeof text, "%c, %zu runs: %.*s", (char)('A' + letter % 26), family->members,
             LABEL_MAX / 2, command);
    kind_text(cast, curve, words, kind, sizeof kind);
    join(family->label, text, kind);
}

static void name_all(struct cast *cast, int words)
{
    name_runs(cast);
    for (size_t i = 0; i < cast->curve_count; i++) {
        struct curve *curve = &cast->curves[i];
        char kind[LABEL_MAX];
        kind_text(cast, curve, words, kind, sizeof kind);
        const char *name = cast->names[curve->run - cast->runs];
        join(curve->label, cast->run_count > 1 || !kind[0] ? name : "", kind);
    }
    for (size_t i = 0; i < cast->family_count; i++)
        name_family(cast, &cast->families[i], words);
}

/* ---- the whole ---- */

int cast_open(struct cast *cast, const struct study_run *runs, size_t n)
{
    size_t results = 0;
    for (size_t i = 0; i < n; i++)
        results += runs[i].result_count;
    *cast = (struct cast){.runs = runs, .run_count = n};
    cast->curves = calloc(results + 1, sizeof *cast->curves);
    cast->families = calloc(results + 1, sizeof *cast->families);
    cast->sizes = calloc(results + 1, sizeof *cast->sizes);
    cast->pool = calloc(results + 1, sizeof(struct study_result *));
    cast->names = calloc(n + 1, sizeof *cast->names);
    if (!cast->curves || !cast->families || !cast->sizes || !cast->pool || !cast->names) {
        cast_close(cast);
        return fail(-ENOMEM, "no memory for a page of %zu results", results);
    }
    int words = words_needed(cast);
    add_curves(cast, words);
    add_sizes(cast);
    choose_families(cast, words);
    name_all(cast, words);
    return 0;
}

void cast_close(struct cast *cast)
{
    free(cast->curves);
    free(cast->families);
    free(cast->sizes);
    free((void *)cast->pool);
    free(cast->names);
}

bool cast_crowded(const struct cast *cast)
{
    return cast->curve_count > FEW;
}

const struct study_result *curve_at(const struct curve *curve, uint64_t size)
{
    for (size_t i = 0; i < curve->count; i++)
        if (curve->results[i]->size == size)
            return curve->results[i];
    return NULL;
}
