/* SPDX-License-Identifier: BSD-3-Clause */
/* Words that were mistyped. */
#include "core/core.h"

unsigned word_distance(const char *a, const char *b, unsigned limit)
{
    while (*a && *a == *b)
        a++, b++;
    if (!*a && !*b)
        return 0;
    if (!limit)
        return 1;
    unsigned best = 1 + limit, d;
    if (*a && *b && (d = 1 + word_distance(a + 1, b + 1, limit - 1)) < best)
        best = d;
    if (*a && (d = 1 + word_distance(a + 1, b, limit - 1)) < best)
        best = d;
    if (*b && (d = 1 + word_distance(a, b + 1, limit - 1)) < best)
        best = d;
    return best;
}
