/* SPDX-License-Identifier: BSD-3-Clause */
/* Small texts of limited length that two ends exchange. */
#include "core/core.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int add(struct msg *msg, const char *format, va_list words)
{
    size_t room = sizeof msg->bytes - msg->length;
    int length = vsnprintf(msg->bytes + msg->length, room, format, words);
    if (length < 0 || (size_t)length >= room) {
        msg->bytes[msg->length] = '\0';
        return fail(-EMSGSIZE, "a message of more than %d bytes", MSG_MAX - 1);
    }
    msg->length += (size_t)length;
    return 0;
}

int msg_print(struct msg *msg, const char *format, ...)
{
    va_list words;
    va_start(words, format);
    msg->length = 0;
    int status = add(msg, format, words);
    va_end(words);
    return status;
}

int msg_add(struct msg *msg, const char *format, ...)
{
    va_list words;
    va_start(words, format);
    int status = add(msg, format, words);
    va_end(words);
    return status;
}

/* The value of a key, or NULL. */
static const char *find(const struct msg *msg, const char *key, size_t *length)
{
    size_t key_length = strlen(key);
    const char *end = msg->bytes + msg->length;
    for (const char *line = msg->bytes; line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        if (!stop)
            stop = end;
        if ((size_t)(stop - line) > key_length && memcmp(line, key, key_length) == 0 &&
            line[key_length] == '=') {
            const char *text = line + key_length + 1;
            *length = (size_t)(stop - text);
            return text;
        }
        line = stop + 1;
    }
    return NULL;
}

int msg_value(const struct msg *msg, const char *key, char *value, size_t room)
{
    size_t length;
    const char *text = find(msg, key, &length);
    if (!text)
        return -ENOENT;
    if (length >= room)
        return fail(-EMSGSIZE, "%s: a value of %zu bytes", key, length);
    memcpy(value, text, length);
    value[length] = '\0';
    return 0;
}

int msg_number(const struct msg *msg, const char *key, uint64_t *number)
{
    char text[32] = "";
    int status = msg_value(msg, key, text, sizeof text);
    if (status)
        return status == -ENOENT ? fail(-EPROTO, "%s is missing in a message", key) : status;
    if (strncmp(text, "0x", 2) == 0 && text[2] && strspn(text + 2, "0123456789abcdef") <= 16 &&
        text[2 + strspn(text + 2, "0123456789abcdef")] == '\0') {
        *number = strtoull(text + 2, NULL, 16);
        return 0;
    }
    if (unit_number(text, number))
        return fail(-EPROTO, "%s in a message is not a number: %s", key, text);
    return 0;
}

int msg_add_hex(struct msg *msg, const char *key, const void *bytes, size_t length)
{
    const unsigned char *at = bytes;
    int status = msg_add(msg, "%s=", key);
    for (size_t i = 0; i < length && !status; i++)
        status = msg_add(msg, "%02x", at[i]);
    return status ? status : msg_add(msg, "\n");
}

static int digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int msg_hex(const struct msg *msg, const char *key, void *bytes, size_t room, size_t *length)
{
    size_t digits;
    const char *text = find(msg, key, &digits);
    if (!text)
        return fail(-EPROTO, "%s is missing in a message", key);
    if (digits % 2)
        return fail(-EPROTO, "%s in a message has %zu hexadecimal digits", key, digits);
    if (digits / 2 > room)
        return fail(-EMSGSIZE, "%s: a value of %zu bytes, at most %zu", key, digits / 2, room);
    *length = digits / 2;
    for (size_t i = 0; i < *length; i++) {
        int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return fail(-EPROTO, "%s in a message is not hexadecimal", key);
        ((unsigned char *)bytes)[i] = (unsigned char)(high << 4 | low);
    }
    return 0;
}
