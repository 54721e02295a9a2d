/* SPDX-License-Identifier: BSD-3-Clause */
/* Robust means and scales. Foreign traffic hits a few pairs hard, so means are Huber's. The noise
 * of a few values is known badly, so it is combined with that of all, as if a number of values more
 * had been measured. */
#include "map/estimate.h"

#include <math.h>
#include <stdlib.h>

static const double HUBER = 1.345, EFFICIENCY = 0.95;
/* Values beyond are clipped; the variance of normal values shrinks by this. */
static const double CLIP = 2.5, CLIPPED = 0.97756;
/* Its own values alone must exclude chance too: it may be noisier than all others. */
static const double OWN_ALPHA = 0.001;

static int ascending(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

double median_of(double *values, size_t count)
{
    if (!count)
        return 0;
    qsort(values, count, sizeof *values, ascending);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

/* The middle of the distances from the middle of sorted values, found from both ends. */
static double median_distance(const double *values, size_t count, double middle)
{
    size_t low = 0, high = count - 1;
    for (size_t left = count - 1 - count / 2; left; left--) {
        if (middle - values[low] > values[high] - middle)
            low++;
        else
            high--;
    }
    return fmax(middle - values[low], values[high] - middle);
}

double scale_of(double *values, size_t count)
{
    if (count < 2)
        return 0;
    double middle = median_of(values, count), sum = 0;
    double scale = 1.4826 * median_distance(values, count, middle);
    if (scale <= 0) { /* more than half are equal: the clock is coarse */
        for (size_t i = 0; i < count; i++)
            sum += fabs(values[i] - middle);
        return 1.2533 * sum / (double)count;
    }
    for (size_t i = 0; i < count; i++) {
        double d = fmin(fabs(values[i] - middle), CLIP * scale);
        sum += d * d;
    }
    return sqrt(sum / ((double)count - 1) / CLIPPED);
}

double huber_mean(const double *values, size_t count, double start, double scale)
{
    double mean = start, near = HUBER * scale;
    for (int turn = 0; turn < 50; turn++) {
        double sum = 0, weights = 0;
        for (size_t i = 0; i < count; i++) {
            double d = fabs(values[i] - mean), weight = d > near ? near / d : 1;
            sum += weight * values[i];
            weights += weight;
        }
        if (weights <= 0)
            return mean;
        double before = mean;
        mean = sum / weights;
        if (fabs(mean - before) <= 1e-4 * scale)
            break;
    }
    return mean;
}

struct estimate estimate_of(const double *values, size_t count, double scale)
{
    struct estimate e = {.count = count};
    double start = 0, squares = 0, near = HUBER * scale;
    size_t inside = 0;
    if (!count)
        return e;
    for (size_t i = 0; i < count; i++)
        start += values[i] / (double)count;
    e.mean = huber_mean(values, count, start, scale);
    for (size_t i = 0; i < count; i++) {
        double d = fabs(values[i] - e.mean);
        inside += d <= near;
        squares += fmin(d, near) * fmin(d, near);
    }
    if (count > 1)
        e.sd = sqrt(squares / ((double)count - 1)) * (double)count / (double)(inside ? inside : 1);
    return e;
}

double spread_beyond(double scale, size_t count, double error)
{
    double sure = 1 - 2 / sqrt(2 * (double)(count ? count : 1)), variance = scale * scale;
    return variance * fmax(0, sure) > error * error ? sqrt(variance - error * error) : 0;
}

double normal_below(double z)
{
    return erfc(-z / sqrt(2)) / 2;
}

double normal_bound(double p)
{
    double low = -40, high = 40;
    for (int i = 0; i < 60; i++) {
        double middle = (low + high) / 2;
        if (normal_below(-middle) > p)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Gaver and Kafadar's approximation: within half a percent from three degrees on. */
double student_bound(double df, double p)
{
    double z = normal_bound(p);
    return sqrt(df * expm1(z * z * (df - 1.5) / ((df - 1) * (df - 1))));
}

double judge_error(const struct judge *judge, double sd, size_t count, double *df)
{
    double own = (double)count - 1;
    *df = judge->prior + own;
    double variance =
        (judge->prior * judge->scale * judge->scale / EFFICIENCY + own * sd * sd) / *df;
    return sqrt(variance * (1 / (double)count + judge->extra));
}

double judge_chance(const struct judge *judge, double sd, size_t count)
{
    double df, error = judge_error(judge, sd, count, &df);
    double differ = judge->differ > 0
                        ? student_bound(fmax(3, judge->differ_df), judge->alpha_all) * judge->differ
                        : 0;
    return hypot(student_bound(df, judge->alpha) * error, differ);
}

double judge_bound(const struct judge *judge, double sd, size_t count)
{
    if (count < JUDGED_MIN)
        return INFINITY;
    double own = student_bound((double)count - 1, OWN_ALPHA) * sd / sqrt((double)count);
    return fmax(fmax(judge_chance(judge, sd, count), own), judge->min_effect);
}
