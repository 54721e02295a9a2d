/* SPDX-License-Identifier: BSD-3-Clause */
/* Robust estimates, and how large one must be to count. All values are natural logarithms. */
#ifndef WEFT_MAP_ESTIMATE_H
#define WEFT_MAP_ESTIMATE_H

#include "map/map.h"

#include <errno.h>

/* Always -ENOMEM. */
static inline int no_memory(void)
{
    fail(-ENOMEM, "no memory for a map");
    return -ENOMEM;
}

/* ---- estimates ---- */

struct estimate {
    double mean; /* Huber's: values beyond 1.345 scales count as if they were there */
    double sd;   /* of one value, such that mean has the error sd / sqrt(count) */
    size_t count;
};

double huber_mean(const double *values, size_t count, double start, double scale);
struct estimate estimate_of(const double *values, size_t count, double scale);

/* Both sort the values. */
double median_of(double *values, size_t count);
/* Standard deviation around the median; what lies beyond 2.5 of them counts as 2.5. */
double scale_of(double *values, size_t count);

/* What differs in truth, if estimates spread by scale and each has this error: what is left of the
 * spread, or 0 if chance may have made it. */
double spread_beyond(double scale, size_t count, double error);

/* ---- distributions ---- */

double normal_below(double z);
double normal_bound(double p);             /* exceeded with probability p */
double student_bound(double df, double p); /* the same; df is at least 3 */

/* ---- bounds ---- */

/* How an estimate is judged. */
struct judge {
    double scale; /* of one value, as all estimates together have it */
    double prior; /* as how many values that counts, beside the estimate's own */
    double extra; /* variance of what it is compared with, in squares of scale */
    double
        alpha; /* the probability to name it if it is as all others: corrected for their number */
    double differ;     /* how much those that are not slow differ in truth */
    double differ_df;  /* as how many of them show it */
    double alpha_all;  /* as alpha, for all of them: those that differ most were chosen */
    double min_effect; /* ln(1.05) */
};

enum { JUDGED_MIN = 4 }; /* values; with fewer nothing is said */

/* The error of the estimate, and the degrees of freedom of that. */
double judge_error(const struct judge *judge, double sd, size_t count, double *df);

/* The smallest mean that neither chance nor what all differ by explains; at least JUDGED_MIN
 * values. */
double judge_chance(const struct judge *judge, double sd, size_t count);

/* The smallest mean that counts as slower; infinite with too few values. */
double judge_bound(const struct judge *judge, double sd, size_t count);

#endif
