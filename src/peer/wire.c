/* SPDX-License-Identifier: BSD-3-Clause */
/* Records and pieces of the tree's messages. Numbers are little-endian. */
#include "peer/wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void put_number(unsigned char *at, uint64_t number, int bytes)
{
    for (int i = 0; i < bytes; i++)
        at[i] = (unsigned char)(number >> (8 * i));
}

static uint64_t get_number(const unsigned char *at, int bytes)
{
    uint64_t number = 0;
    for (int i = 0; i < bytes; i++)
        number |= (uint64_t)at[i] << (8 * i);
    return number;
}

int bytes_add(struct bytes *b, const void *more, size_t length)
{
    if (b->room - b->length < length) {
        size_t room = b->room ? b->room : 256;
        while (room - b->length < length)
            room *= 2;
        unsigned char *at = realloc(b->at, room);
        if (!at)
            return fail(-ENOMEM, "no memory for a message of %zu bytes", b->length + length);
        b->at = at;
        b->room = room;
    }
    if (length)
        memcpy(b->at + b->length, more, length);
    b->length += length;
    return 0;
}

void bytes_free(struct bytes *b)
{
    free(b->at);
    *b = (struct bytes){0};
}

/* What follows a record begins where any number may. */
static size_t padded(size_t length)
{
    return (length + WIRE_ALIGN - 1) / WIRE_ALIGN * WIRE_ALIGN;
}

int record_add(struct bytes *b, const struct record *record)
{
    static const char nothing[WIRE_ALIGN];
    unsigned char head[WIRE_RECORD] = {(unsigned char)record->type};
    put_number(head + 4, record->rank, 4);
    put_number(head + 8, record->round, 4);
    put_number(head + 12, record->length, 4);
    int status = bytes_add(b, head, sizeof head);
    if (!status)
        status = bytes_add(b, record->bytes, record->length);
    return status ? status : bytes_add(b, nothing, padded(record->length) - record->length);
}

int record_next(const struct bytes *b, size_t *at, struct record *record)
{
    size_t left = b->length - *at;
    if (!left)
        return 0;
    if (left < WIRE_RECORD)
        return fail(-EPROTO, "a message of the group ends within a record");
    const unsigned char *head = b->at + *at;
    size_t length = get_number(head + 12, 4);
    if (head[0] < RECORD_VALUE || head[0] > RECORD_ANSWER || head[1] || head[2] || head[3])
        return fail(-EPROTO, "a message of the group has a record of an unknown type");
    if (left - WIRE_RECORD < padded(length))
        return fail(-EPROTO, "a message of the group ends within a record");
    *record = (struct record){.type = (enum record_type)head[0],
                              .rank = (uint32_t)get_number(head + 4, 4),
                              .round = (uint32_t)get_number(head + 8, 4),
                              .bytes = head + WIRE_RECORD,
                              .length = length};
    *at += WIRE_RECORD + padded(length);
    return 1;
}

int record_check(const struct bytes *b)
{
    struct record record;
    size_t at = 0;
    int count = 0, status = 0;
    while ((status = record_next(b, &at, &record)) == 1)
        count++;
    return status ? status : count;
}

void wire_piece(struct msg *msg, char kind, uint64_t turn, const struct bytes *b, size_t *at)
{
    size_t left = b->length - *at, most = MSG_MAX - 1 - WIRE_HEAD;
    size_t length = left < most ? left : most;
    unsigned char head[WIRE_HEAD] = {(unsigned char)kind, length == left};
    put_number(head + 4, turn, 8);
    memcpy(msg->bytes, head, sizeof head);
    if (length)
        memcpy(msg->bytes + WIRE_HEAD, b->at + *at, length);
    msg->length = WIRE_HEAD + length;
    *at += length;
}

int wire_feed(const struct msg *msg, char kind, uint64_t *turn, struct bytes *b, size_t most)
{
    const unsigned char *head = (const unsigned char *)msg->bytes;
    if (msg->length < WIRE_HEAD || head[0] != (unsigned char)kind || head[1] > 1 || head[2] ||
        head[3])
        return fail(-EPROTO, "a message of the group cannot be read");
    size_t length = msg->length - WIRE_HEAD;
    uint64_t said = get_number(head + 4, 8);
    if (b->length && said != *turn)
        return fail(-EPROTO, "a message of the group ends within its turn");
    if (length > most || b->length > most - length)
        return fail(-EMSGSIZE, "a message of the group has more than %zu bytes", most);
    *turn = said;
    int status = bytes_add(b, head + WIRE_HEAD, length);
    return status ? status : head[1];
}
