/* SPDX-License-Identifier: BSD-3-Clause */
/* Values of a document, checked against the schema one by one. What is kept lies in one heap of
 * chunks. */
#include "study/read.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 1 << 16 };

/* ---- memory ---- */

struct chunk {
    struct chunk *next;
    size_t used, room;
    max_align_t bytes[];
};

/* From the newest chunk, or from a new one. */
void *chunk_alloc(struct chunk **chunks, size_t length)
{
    size_t need = (length + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t);
    struct chunk *chunk = *chunks;
    if (!chunk || chunk->room - chunk->used < need) {
        size_t room = need > CHUNK ? need : CHUNK;
        chunk = malloc(sizeof *chunk + room);
        if (!chunk)
            return NULL;
        *chunk = (struct chunk){.next = *chunks, .room = room};
        *chunks = chunk;
    }
    void *place = (char *)chunk->bytes + chunk->used;
    chunk->used += need;
    return place;
}

void *reader_alloc(struct reader *r, size_t length)
{
    void *place = chunk_alloc(&r->chunks, length);
    return place ? memset(place, 0, length) : NULL;
}

void chunk_free(struct chunk *chunk)
{
    while (chunk) {
        struct chunk *next = chunk->next;
        free(chunk);
        chunk = next;
    }
}

int reader_no_memory(const struct reader *r)
{
    return fail(-ENOMEM, "%s: no memory", r->path);
}

/* ---- values ---- */

int reader_wrong(const struct reader *r, const char *where, const char *key, const char *what)
{
    return fail(-EINVAL, "%s: %s%s %s", r->path, where, key, what);
}

const char *reader_text(struct reader *r, const char *text)
{
    char *copy = reader_alloc(r, strlen(text) + 1);
    if (copy) {
        memcpy(copy, text, strlen(text) + 1);
        text_clean(copy);
    }
    return copy;
}

/* "2026-01-31T23:59:59.000Z" */
static bool is_time(const char *text)
{
    static const char form[] = "0000-00-00T00:00:00.000Z";
    for (size_t i = 0; i < sizeof form; i++)
        if (form[i] == '0' ? text[i] < '0' || text[i] > '9' : text[i] != form[i])
            return false;
    return true;
}

static bool is_among(const char *text, const char *const *words)
{
    while (*words && strcmp(*words, text) != 0)
        words++;
    return *words;
}

/* ---- objects, by rows ---- */

static int read_text(struct reader *r, const char *where, const struct field *f,
                     const json_t *value, const char **text)
{
    if (f->kind == TEXT_OR_NULL && json_is_null(value))
        return 0;
    if (!json_is_string(value))
        return reader_wrong(r, where, f->key, "is not a string");
    const char *given = json_string_value(value);
    if (f->kind == TIME && !is_time(given))
        return reader_wrong(r, where, f->key, "is not a time");
    if (f->words && !is_among(given, f->words))
        return reader_wrong(r, where, f->key, "has an unknown value");
    *text = reader_text(r, given);
    return *text ? 0 : reader_no_memory(r);
}

static int read_count(const struct reader *r, const char *where, const struct field *f,
                      const json_t *value, uint64_t *count)
{
    json_int_t number = json_integer_value(value);
    if (!json_is_integer(value) || number < (f->kind == POSITIVE))
        return reader_wrong(r, where, f->key, "is not a whole number in range");
    *count = (uint64_t)number;
    return 0;
}

static int read_number(const struct reader *r, const char *where, const struct field *f,
                       const json_t *value, double *number)
{
    *number = json_is_number(value) ? json_number_value(value) : NAN;
    bool none = f->kind == NUMBER_OR_NULL || f->kind == NUMBER_IF_ANY || f->kind == SIGNED_OR_NULL;
    if (none && (!value || json_is_null(value)))
        return 0;
    if (f->kind == SIGNED_OR_NULL && isfinite(*number))
        return 0;
    if (!isfinite(*number) || *number < 0)
        return reader_wrong(r, where, f->key, "is not a number of 0 or more");
    if (f->kind == PERCENT && (*number <= 0 || *number >= 100))
        return reader_wrong(r, where, f->key, "is not between 0 and 100");
    return 0;
}

static int read_value(struct reader *r, const char *where, const struct field *f,
                      const json_t *value, void *place)
{
    switch (f->kind) {
    case TEXT:
    case TEXT_OR_NULL:
    case TIME:
        return read_text(r, where, f, value, place);
    case COUNT:
    case POSITIVE:
        return read_count(r, where, f, value, place);
    case NUMBER:
    case NUMBER_OR_NULL:
    case NUMBER_IF_ANY:
    case SIGNED_OR_NULL:
    case PERCENT:
        return read_number(r, where, f, value, place);
    case FLAG:
        if (!json_is_boolean(value))
            return reader_wrong(r, where, f->key, "is not true or false");
        *(bool *)place = json_is_true(value);
        return 0;
    }
    return -EINVAL;
}

int read_object(struct reader *r, const json_t *object, const char *where,
                const struct field *fields, void *base)
{
    if (!json_is_object(object))
        return reader_wrong(r, *where ? where : "the document", "", "is not an object");
    for (const struct field *f = fields; f->key; f++) {
        const json_t *value = json_object_get(object, f->key);
        int status = value || f->kind == NUMBER_IF_ANY
                         ? read_value(r, where, f, value, (char *)base + f->at)
                         : reader_wrong(r, where, f->key, "is missing");
        if (status)
            return status;
    }
    return 0;
}

int read_member(struct reader *r, const json_t *object, const char *where, const char *key,
                const struct field *fields, void *base)
{
    char inner[WHERE + 16];
    snprintf(inner, sizeof inner, "%.*s%s.", WHERE - 1, where, key);
    return read_object(r, json_object_get(object, key), inner, fields, base);
}

int read_list(struct reader *r, const json_t *object, const char *where, const char *key,
              size_t size, void *list, size_t *count)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_array(value))
        return reader_wrong(r, where, key, value ? "is not a list" : "is missing");
    *count = json_array_size(value);
    void *items = reader_alloc(r, *count * size);
    memcpy(list, &items, sizeof items);
    return items ? 0 : reader_no_memory(r);
}

int read_objects(struct reader *r, const json_t *object, const char *where, const char *key,
                 const struct field *fields, size_t size, void *list, size_t *count)
{
    char *items = NULL;
    int status = read_list(r, object, where, key, size, &items, count);
    memcpy(list, &items, sizeof items);
    for (size_t i = 0; items && i < *count && !status; i++) {
        char inner[WHERE];
        snprintf(inner, sizeof inner, "%.*s%s[%zu].", WHERE / 3, where, key, i);
        status = read_object(r, json_array_get(json_object_get(object, key), i), inner, fields,
                             items + i * size);
    }
    return status;
}
