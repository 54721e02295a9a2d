/* SPDX-License-Identifier: BSD-3-Clause */
/* weft compare of two maps. */
#include "study/maps.h"
#include "tool/shell.h"
#include "tool/weft.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { MOST_ROWS = 20, MOST_NAMES = 8 };

static const char *const words[] = {[STUDY_MAP_SAME] = "same",
                                    [STUDY_MAP_SLOWER] = "slower",
                                    [STUDY_MAP_FASTER] = "faster",
                                    [STUDY_MAP_UNSURE] = "cannot tell"};

static void print_side(const char *side, const struct study_map *m)
{
    char path[STUDY_PATH];
    snprintf(path, sizeof path, "%s", m->path);
    text_clean(path);
    printf("%s: %s: map of %zu ranks, %s of %" PRIu64 " bytes on %s, %s\n", side, path,
           m->node_count, m->test, m->size, m->device, m->begun);
}

static void print_moves(const struct study_map_change *c)
{
    size_t printed = 0, left = 0;
    int width = 4;
    for (size_t i = 0; i < c->count; i++)
        if (c->moves[i].verdict != STUDY_MAP_SAME && (int)strlen(c->moves[i].name) > width)
            width = (int)strlen(c->moves[i].name);
    for (size_t i = 0; i < c->count; i++) {
        const struct study_move *m = &c->moves[i];
        char interval[64], shift[24];
        if (m->verdict == STUDY_MAP_SAME || !isfinite(m->shift))
            continue;
        if (printed >= MOST_ROWS) {
            left++;
            continue;
        }
        if (!printed++)
            printf("%-*s %6s %9s %20s  %s\n", width, "Node", "Pairs", "Shift", "95% interval",
                   "Verdict");
        snprintf(shift, sizeof shift, "%+.1f %%", 100 * m->shift);
        snprintf(interval, sizeof interval, "%+.1f to %+.1f %%", 100 * m->low, 100 * m->high);
        printf("%-*s %6zu %9s %20s  %s\n", width, m->name, m->pairs, shift, interval,
               words[m->verdict]);
    }
    if (left)
        printf("and %zu more\n", left);
}

/* ": n1, n2 and 3 more" of names that are stride bytes apart. */
static void print_names(const char *const *first, size_t count, size_t stride)
{
    for (size_t i = 0; i < count && i < MOST_NAMES; i++)
        printf("%s%s", i ? ", " : ": ",
               *(const char *const *)(const void *)((const char *)first + i * stride));
    if (count > MOST_NAMES)
        printf(" and %zu more", count - MOST_NAMES);
    printf("\n");
}

static void print_not_judged(const struct study_map_change *c)
{
    for (int side = 0; side < 2; side++) {
        size_t count = side ? c->only_b : c->only_a;
        if (!count)
            continue;
        printf("Only in %c: %zu %s", "AB"[side], count, count == 1 ? "node" : "nodes");
        print_names(c->only + (side ? c->only_a : 0), count, sizeof *c->only);
    }
    if (!c->few)
        return;
    printf("Not judged, too few pairs: %zu of %zu nodes", c->few, c->count);
    print_names(&c->moves[c->count - c->few].name, c->few, sizeof *c->moves);
}

static void print_all(const struct study_map_change *c)
{
    if (c->by_effects)
        printf("Only %zu pairs are in both documents: nodes are judged by their effects\n",
               c->pairs);
    printf("All ");
    if (!c->by_effects)
        printf("%zu ", c->pairs);
    printf("pairs: %+.1f %% (", 100 * c->all);
    if (c->coarse > 0)
        printf("within %.0f %%; ", 100 * c->coarse);
    printf("no verdict: one map of each); noise of a pair %.1f %%\n", 100 * c->noise);
}

static void print_verdict(const struct study_map_change *c, double min_effect)
{
    if (c->by_effects && c->few < c->count)
        printf("A node that became %.1f %% slower would be found with probability 0.80\n",
               100 * c->seen);
    if (c->faster)
        printf("Faster: %zu of %zu nodes, against the others\n", c->faster, c->count);
    if (c->slower)
        printf("Slower: %zu of %zu nodes, against the others\n", c->slower, c->count);
    else if (c->unsure)
        printf("Cannot tell: %zu of %zu nodes may be slower by %g %% or more\n", c->unsure,
               c->count, 100 * min_effect);
    else if (c->few)
        printf("Cannot tell: too few pairs to judge %zu of %zu nodes\n", c->few, c->count);
    else if (c->blind)
        printf("Cannot tell: a node that became %g %% slower might not be found; more partners or "
               "a longer --slot of both maps find it\n",
               200 * min_effect);
    else if (c->moved)
        printf("Cannot tell: all pairs moved by %+.1f %%, which one map of each does not explain\n",
               100 * c->all);
    else
        printf("Same: no node is slower by %g %% or more\n", 100 * min_effect);
}

/* ---- limits of the comparison ---- */

static int check_options(const struct weft_options *options)
{
    if (*options->json || *options->junit || options->markdown)
        return fail(-EINVAL, "--json, --junit and --markdown are not for maps: their comparison is "
                             "text alone");
    if (options->percentiles_given)
        return fail(-EINVAL, "--percentiles is not for maps: the medians of pairs are compared");
    return 0;
}

/* Nothing slow in a part of the pairs does not mean that nothing is. */
static void warn_incomplete(const struct study_map *m)
{
    bool whole = m->code == EXIT_DONE || m->code == EXIT_THRESHOLD || m->code == EXIT_UNSURE;
    if (m->lost_count)
        warn("%s: ranks were lost: %zu of %zu", m->path, m->lost_count, m->node_count);
    if (!whole)
        warn("%s: the map is not complete: %s", m->path, m->ending);
}

static bool same_groups(const struct study_map *a, const struct study_map *b)
{
    bool same = a->group_count == b->group_count;
    for (size_t i = 0; i < a->group_count && same; i++)
        same = strcmp(a->groups[i], b->groups[i]) == 0;
    return same;
}

static void warn_limits(const struct study_map *a, const struct study_map *b,
                        const struct study_terms *terms, const struct study_map_change *c)
{
    warn_incomplete(a);
    warn_incomplete(b);
    if (strcmp(a->test, b->test) != 0)
        warn("compared anyway (--force): tests %s and %s", a->test, b->test);
    if (a->size != b->size)
        warn("compared anyway (--force): sizes %" PRIu64 " and %" PRIu64, a->size, b->size);
    if (strcmp(a->form, b->form) != 0 && !terms->across_fabrics)
        warn("the maps are of different fabrics: %s and %s", a->form, b->form);
    else if (strcmp(a->device, b->device) != 0 && !terms->across_fabrics)
        warn("the maps are of different devices: %s and %s", a->device, b->device);
    if (c->by_effects && !same_groups(a, b))
        warn("the maps have different groups, and an effect is against the others of a group");
}

static int compare(const struct study_map *a, const struct study_map *b,
                   const struct weft_options *options)
{
    struct study_map_change change;
    struct study_terms terms;
    int status = weft_terms(options, &terms);
    if (!status && !options->effect_given)
        terms.min_effect = b->min_effect_percent / 100;
    if (!status)
        status = check_options(options);
    if (!status)
        status = study_map_compare(a, b, terms.min_effect, terms.force, &change);
    if (status)
        return status;
    warn_limits(a, b, &terms, &change);
    print_side("A", a);
    print_side("B", b);
    print_all(&change);
    print_moves(&change);
    print_not_judged(&change);
    print_verdict(&change, terms.min_effect);
    status = shell_flush("the comparison");
    if (!status && change.verdict == STUDY_MAP_SLOWER)
        status = EXIT_THRESHOLD;
    else if (!status && change.verdict == STUDY_MAP_UNSURE)
        status = EXIT_UNSURE;
    study_map_change_free(&change);
    return status;
}

int compare_maps(const char *a, const char *b, const struct weft_options *options, bool *maps)
{
    struct study_map sides[2] = {{0}};
    int first = study_map_read(&sides[0], a), second = 0, status = first < 0 ? first : 0;
    if (!status)
        status = second = study_map_read(&sides[1], b);
    status = status < 0 ? status : 0;
    *maps = first == 1 || second == 1;
    if (!status && *maps && first != second)
        status = fail(-EINVAL, "%s is a map, %s is none", first == 1 ? a : b, first == 1 ? b : a);
    if (!status && *maps)
        status = compare(&sides[0], &sides[1], options);
    study_map_free(&sides[0]);
    study_map_free(&sides[1]);
    return status;
}
