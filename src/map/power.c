/* SPDX-License-Identifier: BSD-3-Clause */
/* What could have been found. A slow node must be among the suspects of the first stage, and then
 * be as slow as the bound of the second, which its own noise moves: both by quantiles. */
#include "map/fit.h"

#include <math.h>

enum { PARTS = 64 };

/* The middle of part i of a normal variable. */
static double part(int i)
{
    return normal_bound(1 - (i + 0.5) / PARTS);
}

/* The probability that fewer than so many of the others came out higher than value. */
static double among(const struct map_verdicts *v, double value, uint32_t suspects)
{
    double share = normal_below(-value / v->row_noise), above = ((double)v->nodes - 1) * share;
    double deviation = sqrt(above * (1 - share)) + 1e-9;
    return normal_below(((double)suspects - 0.5 - above) / deviation);
}

/* It was suspect: one of the quota, or for its own effect, unless those were too many. */
static double chosen(const struct map_verdicts *v, double effect)
{
    double own = sqrt(fmax(0, v->row_noise * v->row_noise - v->spread * v->spread)), sum = 0;
    double enough = log1p(v->min_effect);
    bool full = 2 * (v->suspects + 1) + 2 > v->nodes;
    if (v->row_noise <= 0)
        return effect > 0;
    for (int i = 0; i < PARTS; i++) {
        double value = effect + own * part(i);
        uint32_t places = value >= enough || v->quota > v->suspects ? v->suspects : v->quota;
        sum += value >= enough && !full ? 1 : among(v, value, places);
    }
    return sum / PARTS;
}

/* Wilson and Hilferty's approximation of the deviation that so many values show. */
static double seen_deviation(double df, double z)
{
    double root = fmax(0, 1 - 2 / (9 * df) + z * sqrt(2 / (9 * df)));
    return sqrt(root * root * root);
}

static double confirmed(const struct map_verdicts *v, double effect)
{
    struct judge judge = verdicts_judge(v);
    double count = v->cells_each, sum = 0, sd = v->noise / sqrt(0.95);
    double error = sd * sqrt(1 / count + judge.extra);
    for (int i = 0; i < PARTS; i++) {
        double own = sd * seen_deviation(count - 1, part(i));
        double bound = judge_bound(&judge, own, v->cells_each);
        sum += error > 0 ? normal_below((effect - bound) / error) : effect >= bound;
    }
    return sum / PARTS;
}

double map_power(const struct map_verdicts *verdicts, double effect)
{
    if (verdicts->cells_each < JUDGED_MIN || !verdicts->suspects || verdicts->extra <= 0)
        return 0;
    return chosen(verdicts, log1p(effect)) * confirmed(verdicts, log1p(effect));
}
