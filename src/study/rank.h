/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside study: rank statistics of two samples. */
#ifndef WEFT_STUDY_RANK_H
#define WEFT_STUDY_RANK_H

#include <stddef.h>

/* The number of ways to choose k of n. */
double rank_choose(size_t n, size_t k);

/* The shift from a to b: the median of all pairwise differences (Hodges-Lehmann estimate) and its
 * 95 % confidence interval, exact unless the samples are large. low and high are NAN if the samples
 * are too small for an interval. */
struct rank_shift {
    double median, low, high;
};
int rank_shift(const double *a, size_t a_count, const double *b, size_t b_count,
               struct rank_shift *shift);

/* A permutation test. values holds rows; a row holds the values of all runs, those of A first. p of
 * a row is the share of random assignments of the labels A and B to whole runs that make any row
 * differ at least as much as this one does, in either direction. This bounds the probability of one
 * false alarm in the whole table, however the rows depend on each other. All assignments are tried
 * if there are at most RANK_ALL_MAX, otherwise RANK_DRAWS random ones from a fixed seed. */
enum { RANK_ALL_MAX = 200000, RANK_DRAWS = 20000 };
int rank_permute(const double *values, size_t rows, size_t a_count, size_t b_count, double *p);

#endif
