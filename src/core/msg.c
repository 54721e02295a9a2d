/* SPDX-License-Identifier: BSD-3-Clause */
/* Small bounded texts that two ends exchange. */
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

int msg_value(const struct msg *msg, const char *key, char *value, size_t room)
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
            size_t length = (size_t)(stop - text);
            if (length >= room)
                return fail(-EMSGSIZE, "%s: a value of %zu bytes", key, length);
            memcpy(value, text, length);
            value[length] = '\0';
            return 0;
        }
        line = stop + 1;
    }
    return -ENOENT;
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
        return fail(-EPROTO, "%s in a message is no number: %s", key, text);
    return 0;
}
