/* SPDX-License-Identifier: BSD-3-Clause */
/* What can be asked of a result by name: --percentiles, and the conditions of --fail-if. */
#include "report/report.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- percentiles ---- */

/* Digits and a point, nothing else that strtod would take. */
static int plain_number(const char *text, size_t length, double *value)
{
    char copy[32], *end;
    if (!length || length >= sizeof copy || strspn(text, "0123456789.") < length)
        return -EINVAL;
    memcpy(copy, text, length);
    copy[length] = '\0';
    *value = strtod(copy, &end);
    return *end || end == copy ? -EINVAL : 0;
}

int report_percentiles(const char *text, double list[REPORT_PERCENTILES + 1])
{
    size_t n = 0;
    for (const char *at = text; *text; at += *at == ',') {
        size_t length = strcspn(at, ",");
        double percent;
        if (plain_number(at, length, &percent) || !(percent > 0 && percent < 100))
            return fail(-EINVAL,
                        "--percentiles %s: \"%.*s\" is not a percentile; give some such as "
                        "50,99,99.9",
                        text, (int)(length < 32 ? length : 32), at);
        if (n == REPORT_PERCENTILES)
            return fail(-EINVAL, "--percentiles %s: at most %d", text, REPORT_PERCENTILES);
        for (size_t i = 0; i < n; i++)
            if (list[i] == percent)
                return fail(-EINVAL, "--percentiles %s: %g stands there twice", text, percent);
        list[n++] = percent;
        at += length;
        if (!*at)
            break;
    }
    list[n] = 0;
    return 0;
}
