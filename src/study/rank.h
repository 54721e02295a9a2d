/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside study: what can be said about two samples from the order of their values alone. */
#ifndef WEFT_STUDY_RANK_H
#define WEFT_STUDY_RANK_H

#include <stddef.h>

/* How many ways there are to choose k of n. */
double rank_choose(size_t n, size_t k);

/* By how much b lies above a: the median of all differences (Hodges and Lehmann), and its 95 %
 * interval, exact for as many values as fit; without an interval low and high are not numbers. */
struct rank_shift {
    double middle, low, high;
};
int rank_shift(const double *a, size_t a_count, const double *b, size_t b_count,
               struct rank_shift *shift);

/* Rows of values, a row holding those of all runs, A's first. p of a row is how often labels dealt
 * to whole runs at random make any row look at least as different as this one does, either way: so
 * the chance of one false alarm in the whole family is kept, however the rows depend on each
 * other. All deals if there are at most RANK_DEALS, otherwise RANK_DRAWS from a fixed seed. */
enum { RANK_DEALS = 200000, RANK_DRAWS = 20000 };
int rank_permute(const double *values, size_t rows, size_t a_count, size_t b_count, double *p);

#endif
