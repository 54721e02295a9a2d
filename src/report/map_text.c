/* SPDX-License-Identifier: BSD-3-Clause */
/* A map as a transcript: what was run, the heat map, what is slow, and what could not have been
 * found. */
#include "report/maps.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

enum { WHAT = 28 };

static int by_float(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static void print_head(const struct map_record *r, FILE *out)
{
    const struct map_head *h = &r->head;
    char size[32];
    unit_bytes_text(h->size, size, sizeof size);
    fprintf(out, "%u ranks on %u host%s", r->nodes, r->hosts, r->hosts == 1 ? "" : "s");
    if (r->groups > 1)
        fprintf(out, " in %u groups", r->groups);
    fprintf(out, " (%s%s), %s, %s of %s, %zu", h->how, h->trusted ? "" : ", no secret", h->device,
            h->test, size, r->first.count);
    if (r->first.count < r->planned)
        fprintf(out, " of %zu pair%s", r->planned, r->planned == 1 ? "" : "s");
    else
        fprintf(out, " pair%s in %u round%s", r->first.count == 1 ? "" : "s", r->plan.rounds,
                r->plan.rounds == 1 ? "" : "s");
    if (r->plan.turns > 1)
        fprintf(out, ", %u at once", r->plan.at_once);
    fputc('\n', out);
}

/* The slowest pair has the least bandwidth. */
static void print_bandwidth(const struct map_record *r, const float *medians, size_t count,
                            FILE *out)
{
    uint64_t size = r->head.size;
    if (map_is_rate(&r->head))
        fprintf(out, "Pairs, bandwidth: p50 %.2f MB/s (%.2f to %.2f)\n",
                map_mb_per_s(size, (double)medians[count / 2]),
                map_mb_per_s(size, (double)medians[count - 1]),
                map_mb_per_s(size, (double)medians[0]));
}

/* Steps of the histogram are coarse: within what the pairs themselves have. */
static double share_of_all(const struct map_record *r, double share, double least)
{
    double most = least;
    for (size_t i = 0; i < r->first.count; i++)
        most = fmax(most, (double)r->first.all[i].max_us);
    return fmin(most, fmax(least, map_share(&r->histogram, share)));
}

/* All pairs together. */
static int print_pairs(const struct map_record *r, FILE *out)
{
    char text[4][32];
    size_t count = r->first.count;
    float *medians = malloc((count + 1) * sizeof *medians);
    if (!medians)
        return fail(-ENOMEM, "no memory for %zu pairs", count);
    for (size_t i = 0; i < count; i++)
        medians[i] = r->first.all[i].p50_us;
    qsort(medians, count, sizeof *medians, by_float);
    if (count) {
        unit_us((double)medians[count / 2], text[0], sizeof text[0]);
        unit_us((double)medians[0], text[1], sizeof text[1]);
        unit_us((double)medians[count - 1], text[2], sizeof text[2]);
        unit_us(share_of_all(r, 0.99, (double)medians[count / 2]), text[3], sizeof text[3]);
        fprintf(out, "Pairs, %s: p50 %s us (%s to %s), p99 %s us", r->head.time, text[0], text[1],
                text[2], text[3]);
        if (r->model)
            fprintf(out, "; noise of a pair %.1f %%", 100 * r->model->noise);
        fputc('\n', out);
        print_bandwidth(r, medians, count, out);
    }
    if (r->unresolved) {
        unit_us((double)r->resolution_us, text[0], sizeof text[0]);
        fprintf(out,
                "Not resolved: %zu of %zu pairs; the clock cannot tell medians below %s us apart\n",
                r->unresolved, count, text[0]);
    }
    free(medians);
    return 0;
}

static int print_heat(const struct map_record *r, uint32_t columns, FILE *out)
{
    uint32_t *order = calloc(r->nodes + 1U, sizeof *order);
    const char **names = calloc(r->nodes + 1U, sizeof *names);
    if (!order || !names) {
        free(order);
        free(names);
        return fail(-ENOMEM, "no memory for %u nodes", r->nodes);
    }
    for (uint32_t i = 0; i < r->nodes; i++) {
        order[i] = i;
        names[i] = r->names[i];
    }
    int status = r->model ? map_order(r->model, order) : 0;
    struct map_heat heat = {.cells = &r->first,
                            .metric = MAP_P50,
                            .order = order,
                            .names = names,
                            .columns = columns,
                            .colour = true};
    if (!status)
        status = map_heat(&heat, out);
    free(order);
    free(names);
    return status;
}

/* ---- what is slow ---- */

static const char *verdict_text(const struct map_finding *f)
{
    if (f->verdict == MAP_SLOWER)
        return "slower";
    if (f->verdict == MAP_NOT_AGAIN)
        return f->kind == MAP_NODE ? "not again: load, not the node" : "not again: load, not link";
    if (f->kind == MAP_NODE && !f->cells)
        return "slower at first, not measured again";
    return isfinite(f->effect) ? "cannot tell" : "cannot tell: measured too seldom again";
}

static void print_finding(const struct map_record *r, const struct map_finding *f, FILE *out)
{
    bool groups = f->kind == MAP_GROUP || f->kind == MAP_GROUP_PAIR, known = isfinite(f->effect);
    char what[2 * MAP_NAME + 16], interval[64] = "-";
    map_finding_text(r, f, what, sizeof what);
    if (known)
        snprintf(interval, sizeof interval, "%+.1f to %+.1f %%", 100 * f->low, 100 * f->high);
    fprintf(out, "%-*s %+8.1f %% ", WHAT, what, 100 * f->first);
    if (groups)
        fprintf(out, "%10s", "");
    else if (!known)
        fprintf(out, "%10s", "-");
    else
        fprintf(out, "%+8.1f %%", 100 * f->effect);
    fprintf(out, "  %20s  %s\n", interval, verdict_text(f));
}

static void print_findings(const struct map_record *r, FILE *out)
{
    bool titled = false;
    for (size_t i = 0; r->verdicts && i < r->verdicts->count; i++) {
        if (!map_worth(&r->verdicts->all[i], r->head.min_effect))
            continue;
        if (!titled)
            fprintf(out, "%-*s %10s %10s  %20s  %s\n", WHAT, "What", "First", "Again",
                    "95% interval", "Verdict");
        titled = true;
        print_finding(r, &r->verdicts->all[i], out);
    }
}

static void print_lost(const struct map_record *r, FILE *out)
{
    for (size_t i = 0; i < r->lost_count; i++) {
        const struct map_lost *l = &r->lost[i];
        if (l->b == MAP_NONE)
            fprintf(out, "Lost: %s in round %u: %s\n", r->names[l->a], l->round, l->reason);
        else
            fprintf(out, "Failed: %s - %s in round %u: %s\n", r->names[l->a], r->names[l->b],
                    l->round, l->reason);
    }
}

static void print_power(const struct map_record *r, FILE *out)
{
    if (!r->verdicts || !r->first.count)
        return;
    for (int times = 1; times <= 3; times++) {
        double effect = times * r->head.min_effect;
        fprintf(out,
                times == 1 ? "A node %.3g %% slower would be found with probability %.2f"
                           : "; %.3g %%: %.2f",
                100 * effect, map_power(r->verdicts, effect));
    }
    fputc('\n', out);
    if (r->plan.rounds + 1 < r->plan.ranks)
        fputs("A single slow pair could not be found: that needs all pairs\n", out);
}

int map_print(const struct map_record *r, uint32_t columns, FILE *out)
{
    print_head(r, out);
    int status = print_pairs(r, out);
    if (!status && columns)
        status = print_heat(r, columns, out);
    if (status)
        return status;
    print_findings(r, out);
    print_lost(r, out);
    print_power(r, out);
    if (*r->ending)
        fprintf(out, "%s\n", r->ending);
    return report_flush(out);
}
