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

/* Fewer than suspects of the others came out higher. */
static double chosen(const struct map_verdicts *v, double effect)
{
    double others = (double)v->nodes - 1, sum = 0;
    double own = sqrt(fmax(0, v->row_noise * v->row_noise - v->spread * v->spread));
    if (v->row_noise <= 0)
        return effect > 0;
    for (int i = 0; i < PARTS; i++) {
        double share = normal_below(-(effect + own * part(i)) / v->row_noise);
        double above = others * share, deviation = sqrt(above * (1 - share)) + 1e-9;
        sum += normal_below(((double)v->suspects - 0.5 - above) / deviation);
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
