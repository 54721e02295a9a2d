/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading batch files. They come from outside: sizes are bounded, and what is wrong with a line is
 * kept with the line, so that the others still run. */
#include "tool/batch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* One word, with its quotes taken off, in place; NULL if a quote stays open. *end is after it. */
static char *take_word(char *from, char **end)
{
    char *to = from, *word = from, quote = 0;
    for (; *from && (quote || !blank(*from)); from++) {
        if (quote && *from == quote)
            quote = 0;
        else if (!quote && (*from == '"' || *from == '\''))
            quote = *from;
        else
            *to++ = *from;
    }
    *end = *from ? from + 1 : from;
    *to = '\0';
    return quote ? NULL : word;
}

/* Splits a line into words; says why if it cannot. */
static const char *split(char *line, char **words, int *count)
{
    *count = 0;
    for (char *at = line; *at;) {
        if (blank(*at)) {
            at++;
            continue;
        }
        if (*at == '#')
            break;
        if (*count == BATCH_WORDS)
            return "more than 64 words";
        char *word = take_word(at, &at);
        if (!word)
            return "a quote that is not closed";
        words[(*count)++] = word;
    }
    return NULL;
}

static const char *unprintable(const char *line, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)line[i] < ' ' && !blank(line[i]))
            return "a control character";
    return NULL;
}

static int keep(struct batch *b, unsigned number, char *const *words, int count, const char *error)
{
    if (b->count == BATCH_LINES)
        return fail(-EINVAL, "more than %d tests", BATCH_LINES);
    if (b->count % 64 == 0) {
        struct batch_line *lines = realloc(b->lines, (b->count + 64) * sizeof *lines);
        if (!lines)
            return fail(-ENOMEM, "no memory for a batch");
        b->lines = lines;
    }
    struct batch_line *line = &b->lines[b->count];
    *line = (struct batch_line){.number = number, .count = count, .error = error};
    line->words = calloc((size_t)count + 1, sizeof *line->words);
    if (!line->words)
        return fail(-ENOMEM, "no memory for a batch");
    if (count)
        memcpy(line->words, words, (size_t)count * sizeof *words);
    b->count++;
    return 0;
}

static int parse_line(struct batch *b, unsigned number, char *line, size_t length)
{
    char *words[BATCH_WORDS];
    int count = 0;
    const char *error = unprintable(line, length);
    if (!error)
        error = split(line, words, &count);
    return error || count ? keep(b, number, words, count, error) : 0;
}

int batch_parse(struct batch *b, const char *text, size_t length)
{
    *b = (struct batch){.text = malloc(length + 1)};
    int status = 0;
    unsigned number = 0;
    if (!b->text)
        return fail(-ENOMEM, "no memory for a batch");
    memcpy(b->text, text, length);
    b->text[length] = '\0';
    for (size_t at = 0; at < length && !status;) {
        char *end = memchr(b->text + at, '\n', length - at);
        size_t part = end ? (size_t)(end - b->text) - at : length - at;
        b->text[at + part] = '\0';
        status = parse_line(b, ++number, b->text + at, part);
        at += part + 1;
    }
    if (status)
        batch_free(b);
    return status;
}

void batch_free(struct batch *b)
{
    for (size_t i = 0; i < b->count; i++)
        free(b->lines[i].words);
    free(b->lines);
    free(b->text);
    *b = (struct batch){0};
}

static int bad_file(const char *path, const char *why)
{
    return fail(-EINVAL, "batch file %s: %s", path, why);
}

int batch_read(struct batch *b, const char *path)
{
    struct stat facts;
    FILE *file = fopen(path, "re");
    if (!file)
        return bad_file(path, strerror(errno));
    char *text = malloc(BATCH_BYTES + 1);
    size_t length = text ? fread(text, 1, BATCH_BYTES + 1, file) : 0;
    int status = 0;
    if (!text)
        status = fail(-ENOMEM, "no memory for a batch");
    else if (!fstat(fileno(file), &facts) && S_ISDIR(facts.st_mode))
        status = bad_file(path, "it is a folder");
    else if (ferror(file))
        status = bad_file(path, strerror(errno));
    else if (length > BATCH_BYTES)
        status = bad_file(path, "longer than 1 MiB");
    else if ((status = batch_parse(b, text, length)))
        status = fail(status, "batch file %s: %s", path, fail_reason());
    else
        b->path = path;
    free(text);
    fclose(file);
    return status;
}
