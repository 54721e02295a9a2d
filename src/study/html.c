/* SPDX-License-Identifier: BSD-3-Clause */
/* Strings of documents and numbers as text of HTML and SVG. Documents are untrusted: markup is
 * escaped, and characters that XML does not allow become U+FFFD. */
#include "study/plot.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define UNKNOWN "\xef\xbf\xbd"

/* Length of the character at text in bytes; 0 if XML does not allow it or it is not UTF-8, which
 * paths need not be. */
static size_t character(const unsigned char *text)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t length = *text < 0x80 ? 1 : *text >> 5 == 6 ? 2 : *text >> 4 == 14 ? 3 : 4;
    uint32_t code = length == 1 ? *text : *text & (0x7fU >> length);
    if (length == 4 && *text >> 3 != 30)
        return 0;
    for (size_t i = 1; i < length; i++) {
        if (text[i] >> 6 != 2)
            return 0;
        code = code << 6 | (text[i] & 0x3fU);
    }
    bool control = (code < 0x20 && code != '\t' && code != '\n') || (code >= 0x7f && code < 0xa0);
    bool barred = (code >= 0xd800 && code < 0xe000) || code > 0x10ffff || (code & 0xfffe) == 0xfffe;
    return control || barred || code < least[length] ? 0 : length;
}

static const char *entity(char c)
{
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    case '|': /* separates lists in attributes */
        return "&#166;";
    default:
        return NULL;
    }
}

bool text_same(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "") == 0;
}

const char *pair_value(const struct study_pair *pairs, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (text_same(pairs[i].name, name))
            return pairs[i].value ? pairs[i].value : "";
    return NULL;
}

void html_text(FILE *out, const char *text)
{
    for (const char *at = text ? text : "-"; *at;) {
        const char *escaped = entity(*at);
        size_t length = character((const unsigned char *)at);
        if (escaped)
            fputs(escaped, out);
        else if (length)
            fwrite(at, 1, length, out);
        else
            fputs(UNKNOWN, out);
        at += length ? length : 1;
    }
}

void html_print(FILE *out, const char *format, ...)
{
    char text[2048];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    html_text(out, text);
}

void html_number(FILE *out, double value)
{
    char text[40];
    if (!isfinite(value)) {
        fputc('-', out);
        return;
    }
    snprintf(text, sizeof text, "%.15g", value);
    if (strtod(text, NULL) != value)
        snprintf(text, sizeof text, "%.17g", value);
    fputs(text, out);
}

static void scaled_size(uint64_t size, const char *const *names, char *text, size_t room)
{
    size_t i = 0;
    for (; size && size % 1024 == 0 && i < 4; i++)
        size /= 1024;
    snprintf(text, room, "%" PRIu64 "%s", size, names[i]);
}

void size_text(uint64_t size, char *text, size_t room)
{
    static const char *const names[] = {"", "K", "M", "G", "T"};
    scaled_size(size, names, text, room);
}

void size_words(uint64_t size, char *text, size_t room)
{
    static const char *const names[] = {" B", " KiB", " MiB", " GiB", " TiB"};
    scaled_size(size, names, text, room);
}

/* Always in microseconds, so that all times of a page compare at a glance. */
static void time_in_us(double us, bool padded, char *text, size_t room)
{
    int decimals = us < 0.9995 ? 3 : us < 9.995 ? 2 : us < 99.95;
    if (!isfinite(us))
        snprintf(text, room, "-");
    else if (us <= 0)
        snprintf(text, room, "0");
    else if (padded)
        snprintf(text, room, "%.*f us", decimals, us);
    else
        snprintf(text, room, us < 999.5 ? "%.3g us" : "%.0f us", us);
}

void time_text(double us, char *text, size_t room)
{
    time_in_us(us, false, text, room);
}

void time_figure(double us, char *text, size_t room)
{
    time_in_us(us, true, text, room);
}
