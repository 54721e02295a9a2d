/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes JSON: commas, quotes and digits. The caller decides the structure. */
#include "report/report.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* The number of bytes of the UTF-8 character at text; 0 if it is not one. */
static int character(const unsigned char *text)
{
    static const struct {
        unsigned char mask, lead;
        uint32_t least;
    } kinds[] = {{0x80, 0x00, 0}, {0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};
    for (int more = 0; more < (int)LENGTH(kinds); more++) {
        if ((text[0] & kinds[more].mask) != kinds[more].lead)
            continue;
        uint32_t code = text[0] & (unsigned char)~kinds[more].mask;
        for (int i = 1; i <= more; i++) {
            if ((text[i] & 0xc0) != 0x80)
                return 0;
            code = code << 6 | (text[i] & 0x3f);
        }
        bool surrogate = code >= 0xd800 && code < 0xe000;
        return code >= kinds[more].least && code < 0x110000 && !surrogate ? more + 1 : 0;
    }
    return 0;
}

static void quoted(FILE *out, const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    fputc('"', out);
    while (*at) {
        int length = character(at);
        if (!length)
            fputs("\\ufffd", out);
        else if (*at < ' ' || *at == 127)
            fprintf(out, "\\u%04x", *at);
        else
            fprintf(out, "%s%.*s", *at == '"' || *at == '\\' ? "\\" : "", length, (const char *)at);
        at += length ? length : 1;
    }
    fputc('"', out);
}

/* The comma before a value, and its key. */
static void begin(struct json *json, const char *key)
{
    if (json->filled)
        fputc(',', json->out);
    if (json->depth && json->depth <= json->lines)
        fprintf(json->out, "\n%*s", 2 * json->depth, "");
    else if (json->filled)
        fputc(' ', json->out);
    if (key) {
        quoted(json->out, key);
        fputs(": ", json->out);
    }
    json->filled = true;
}

void json_open(struct json *json, const char *key, char bracket)
{
    begin(json, key);
    fputc(bracket, json->out);
    json->depth++;
    json->filled = false;
}

void json_close(struct json *json, char bracket)
{
    json->depth--;
    if (json->filled && json->depth < json->lines)
        fprintf(json->out, "\n%*s", 2 * json->depth, "");
    fputc(bracket, json->out);
    json->filled = true;
}

void json_text(struct json *json, const char *key, const char *text)
{
    begin(json, key);
    if (text)
        quoted(json->out, text);
    else
        fputs("null", json->out);
}

void json_bool(struct json *json, const char *key, bool value)
{
    begin(json, key);
    fputs(value ? "true" : "false", json->out);
}

void json_count(struct json *json, const char *key, uint64_t count)
{
    begin(json, key);
    fprintf(json->out, "%" PRIu64, count);
}

void json_decimals(struct json *json, const char *key, double value, int decimals)
{
    char text[400];
    begin(json, key);
    if (!isfinite(value)) {
        fputs("null", json->out);
        return;
    }
    snprintf(text, sizeof text, "%.*f", decimals, value);
    size_t length = strlen(text);
    while (text[length - 1] == '0')
        length--;
    length -= text[length - 1] == '.';
    fprintf(json->out, "%.*s", (int)length, text);
}

void json_number(struct json *json, const char *key, double value)
{
    json_decimals(json, key, value, 6);
}
