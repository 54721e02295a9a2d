/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers from text, strictly, and quantities to text. */
#include "core/core.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Digits at the start of text; *rest is the text after them. */
static int digits(const char *text, uint64_t *number, const char **rest)
{
    uint64_t value = 0;
    const char *at = text;
    for (; isdigit((unsigned char)*at); at++) {
        unsigned digit = (unsigned)(*at - '0');
        if (value > (UINT64_MAX - digit) / 10)
            return -EINVAL;
        value = value * 10 + digit;
    }
    if (at == text)
        return -EINVAL;
    *number = value;
    *rest = at;
    return 0;
}

static int scaled(const char *text, const char *const *names, const uint64_t *scales, size_t n,
                  uint64_t *result)
{
    const char *rest;
    uint64_t number;
    if (digits(text, &number, &rest))
        return -EINVAL;
    for (size_t i = 0; i < n; i++) {
        if (strcmp(rest, names[i]) == 0) {
            if (number > UINT64_MAX / scales[i])
                return -EINVAL;
            *result = number * scales[i];
            return 0;
        }
    }
    return -EINVAL;
}

int unit_number(const char *text, uint64_t *number)
{
    const char *rest;
    uint64_t value;
    if (digits(text, &value, &rest) || *rest)
        return -EINVAL;
    *number = value;
    return 0;
}

int unit_bytes(const char *text, uint64_t *bytes)
{
    static const char *const names[] = {"", "K", "M", "G"};
    static const uint64_t scales[] = {1, 1U << 10, 1U << 20, 1U << 30};
    return scaled(text, names, scales, LENGTH(names), bytes);
}

int unit_time(const char *text, uint64_t *ps)
{
    static const char *const names[] = {"ps", "ns", "us", "ms", "s"};
    static const uint64_t scales[] = {1, 1000, 1000000, 1000000000, 1000000000000};
    if (strcmp(text, "0") == 0) {
        *ps = 0;
        return 0;
    }
    return scaled(text, names, scales, LENGTH(names), ps);
}

void unit_us(double us, char *text, size_t room)
{
    /* A value that would round up to 1.000 is printed as 1.00. */
    snprintf(text, room, us < 0.9995 ? "%.3f" : "%.2f", us);
}

void unit_bytes_text(uint64_t bytes, char *text, size_t room)
{
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    size_t i = 0;
    for (; value >= (i ? 1023.95 : 1024) && i + 1 < LENGTH(names); i++)
        value /= 1024;
    snprintf(text, room, i ? "%.1f %s" : "%.0f %s", value, names[i]);
}
