/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes JSON: commas, quotes and digits. The caller decides the structure. */
#include "report/report.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static void quoted(FILE *out, const char *text)
{
    fputc('"', out);
    while (*text) {
        int length = text_character(text);
        if (!length)
            fputs("\\ufffd", out);
        else if (text_control(text))
            fprintf(out, "\\u%04x", (unsigned char)text[length - 1]);
        else
            fprintf(out, "%s%.*s", *text == '"' || *text == '\\' ? "\\" : "", length, text);
        text += length ? length : 1;
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

void json_raw(struct json *json, const char *key, const char *text)
{
    begin(json, key);
    fputs(text, json->out);
}

void json_bool(struct json *json, const char *key, bool value)
{
    begin(json, key);
    fputs(value ? "true" : "false", json->out);
}

void json_count(struct json *json, const char *key, uint64_t count)
{
    begin(json, key);
    /* Many readers take no larger whole number. */
    fprintf(json->out, count <= INT64_MAX ? "%" PRIu64 : "%" PRIu64 ".0", count);
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
