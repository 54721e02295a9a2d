/* SPDX-License-Identifier: BSD-3-Clause */
/* Mutations that keep JSON what it is: the parser of a library is not what is tested, and bytes at
 * random do not get past it. A value becomes another one, is doubled, dropped, or exchanged with a
 * value of another place. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t room);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed);

enum { JSON_VALUES = 4096 };

struct json_value {
    size_t at, length;
};

/* The end of the value at i: a text, a whole list or object, or letters and digits. */
static size_t json_end(const uint8_t *data, size_t size, size_t i)
{
    unsigned depth = 0;
    do {
        if (data[i] == '"') {
            for (i++; i < size && data[i] != '"'; i++)
                i += data[i] == '\\';
            i++;
        } else if (strchr("{[", data[i]) && data[i]) {
            depth++;
            i++;
        } else if (strchr("]}", data[i]) && data[i]) {
            if (!depth)
                return i;
            depth--;
            i++;
        } else if (depth) {
            i++;
        } else {
            while (i < size && (!data[i] || !strchr(",:]} \n", data[i])))
                i++;
        }
    } while (depth && i < size);
    return i < size ? i : size;
}

/* Every value, also those inside of others; keys too. */
static size_t json_values(const uint8_t *data, size_t size, struct json_value *values)
{
    size_t count = 0;
    for (size_t i = 0; i < size && count < JSON_VALUES;) {
        if (!data[i] || strchr(",:]} \n\t", data[i])) {
            i++;
            continue;
        }
        size_t end = json_end(data, size, i);
        end = end > i ? end : i + 1;
        values[count++] = (struct json_value){i, end - i};
        i = data[i] == '{' || data[i] == '[' ? i + 1 : end;
    }
    return count;
}

/* Puts bytes in the place of a value. */
static size_t json_put(uint8_t *data, size_t size, size_t room, struct json_value value,
                       const void *bytes, size_t length)
{
    size_t after = size - value.at - value.length;
    if (value.at + length + after > room)
        return size;
    memmove(data + value.at + length, data + value.at + value.length, after);
    memcpy(data + value.at, bytes, length);
    return value.at + length + after;
}

static size_t json_drop(uint8_t *data, size_t size, size_t room, struct json_value value)
{
    size_t end = value.at + value.length;
    value.length += end < size && data[end] == ',';
    return json_put(data, size, room, value, "", 0);
}

static size_t json_double(uint8_t *data, size_t size, size_t room, struct json_value value)
{
    size_t length = 2 * value.length + 1;
    char *twice = malloc(length);
    if (!twice)
        return size;
    memcpy(twice, data + value.at, value.length);
    twice[value.length] = ',';
    memcpy(twice + value.length + 1, data + value.at, value.length);
    size = json_put(data, size, room, value, twice, length);
    free(twice);
    return size;
}

static size_t json_copy(uint8_t *data, size_t size, size_t room, struct json_value to,
                        struct json_value from)
{
    char *copy = malloc(from.length + 1);
    if (!copy)
        return size;
    memcpy(copy, data + from.at, from.length);
    size = json_put(data, size, room, to, copy, from.length);
    free(copy);
    return size;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed)
{
    static const char *const words[] = {"0",
                                        "1",
                                        "-1",
                                        "2",
                                        "0.5",
                                        "1e-9",
                                        "1e18",
                                        "-0.0",
                                        "1e308",
                                        "null",
                                        "true",
                                        "false",
                                        "\"\"",
                                        "\"a\"",
                                        "[]",
                                        "{}",
                                        "9007199254740993",
                                        "100",
                                        "99.99",
                                        "\"null\"",
                                        "[0]",
                                        "9223372036854775807",
                                        "8",
                                        "[[],1]",
                                        "\"\\u009b\"",
                                        "4096",
                                        "18446744073709551615"};
    static struct json_value values[JSON_VALUES];
    size_t count = json_values(data, size, values);
    unsigned what = seed % 8;
    seed = seed * 1664525U + 1013904223U;
    struct json_value one = count ? values[(seed >> 4) % count] : (struct json_value){0, 0};
    seed = seed * 1664525U + 1013904223U;
    struct json_value other = count ? values[(seed >> 4) % count] : one;
    const char *word = words[(seed >> 6) % (sizeof words / sizeof *words)];
    if (!count || !what)
        return LLVMFuzzerMutate(data, size, room);
    return what < 4    ? json_put(data, size, room, one, word, strlen(word))
           : what == 4 ? json_drop(data, size, room, one)
           : what == 5 ? json_double(data, size, room, one)
                       : json_copy(data, size, room, one, other);
}
