/* SPDX-License-Identifier: BSD-3-Clause */
/* Values of a result that its document does not have: computed from the histogram, by the same
 * rules as in the tools. */
#include "study/plot.h"

#include <math.h>
#include <string.h>

enum { BEYOND = 10 };

enum study_kind study_kind(const struct study_result *result)
{
    const char *method = result->method ? result->method : "";
    return strncmp(method, "stream", 6) == 0 ? STUDY_STREAM
           : strncmp(method, "list", 4) == 0 ? STUDY_LIST
                                             : STUDY_LATENCY;
}

/* Of lists both ways, what the other end sent per second; else 0. */
static double reverse_rate(const struct study_result *result)
{
    bool both = study_kind(result) == STUDY_LIST && result->reverse_elapsed_s > 0;
    return both ? (double)result->reverse_count / result->reverse_elapsed_s : 0;
}

double study_bytes_per_s(const struct study_result *result)
{
    return result->bytes_per_s + reverse_rate(result) * (double)result->size;
}

double result_rate(const struct study_result *result)
{
    return result->messages_per_s + reverse_rate(result);
}

double result_time(const struct study_result *result)
{
    if (study_kind(result) == STUDY_STREAM)
        return result->messages_per_s > 0 ? 1e6 / result->messages_per_s : NAN;
    return result->count && isfinite(result->median_us) ? result->median_us : NAN;
}

uint64_t result_samples(const struct study_result *result)
{
    uint64_t samples = 0;
    for (size_t i = 0; i < result->bucket_count; i++)
        samples += result->buckets[i].count;
    return samples;
}

static uint64_t rank_of(double share, uint64_t count)
{
    double rank = ceil(share * (double)count - 1e-9);
    return rank < 1 ? 1 : rank >= (double)count ? count : (uint64_t)rank;
}

/* The middle of a bucket, limited to the range of the samples. */
static double middle(const struct study_result *result, const struct study_bucket *bucket)
{
    double value = (bucket->low_us + bucket->high_us) / 2;
    if (isfinite(result->max_us) && value > result->max_us)
        value = result->max_us;
    return isfinite(result->min_us) && value < result->min_us ? result->min_us : value;
}

static double at_rank(const struct study_result *result, uint64_t rank)
{
    uint64_t seen = 0;
    for (size_t i = 0; i < result->bucket_count; i++) {
        seen += result->buckets[i].count;
        if (seen >= rank)
            return middle(result, &result->buckets[i]);
    }
    return NAN;
}

double result_below(const struct study_result *result, double share)
{
    uint64_t count = result_samples(result);
    return count ? at_rank(result, rank_of(share, count)) : NAN;
}

double result_percentile(const struct study_result *result, double percent)
{
    for (size_t i = 0; i < result->percentile_count; i++)
        if (fabs(result->percentiles[i].percent - percent) < 1e-9)
            return result->percentiles[i].us;
    uint64_t count = result_samples(result), rank = rank_of(percent / 100, count);
    return count - rank < BEYOND ? NAN : at_rank(result, rank);
}

static double stated(const struct study_result *result, double percent)
{
    for (size_t i = 0; i < result->percentile_count; i++)
        if (fabs(result->percentiles[i].percent - percent) < 1e-9)
            return result->percentiles[i].us;
    return NAN;
}

size_t result_curve(const struct study_result *result, const double *percents, size_t count,
                    double *values)
{
    uint64_t all = result_samples(result), seen = 0;
    size_t bucket = 0, n = 0;
    for (; n < count; n++) {
        uint64_t rank = rank_of(percents[n] / 100, all);
        if (all < BEYOND || all - rank < BEYOND)
            break;
        for (; seen < rank; bucket++)
            seen += result->buckets[bucket].count;
        double exact = stated(result, percents[n]);
        values[n] = isfinite(exact) ? exact : middle(result, &result->buckets[bucket - 1]);
    }
    return n;
}
