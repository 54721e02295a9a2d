/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside peer: what members of a group send along the tree. A message is a head and a piece of a
 * sequence of records; the last piece says so. Records begin at multiples of WIRE_ALIGN, so that
 * numbers in them can be read in place. All of it comes from outside and is checked. */
#ifndef WEFT_PEER_WIRE_H
#define WEFT_PEER_WIRE_H

#include "core/core.h"

enum { WIRE_HEAD = 12, WIRE_RECORD = 16, WIRE_ALIGN = 8 };
enum { WIRE_UP = 'U', WIRE_DOWN = 'D' };
enum record_type {
    RECORD_VALUE = 1, /* up: of a rank */
    RECORD_LOSS,      /* up: a rank that its parent lost, and why */
    RECORD_MEMBER,    /* down, before the first turn: port in round, address, node and label */
    RECORD_DEATH,     /* down: a rank that was struck, in which round, and why */
    RECORD_ANSWER     /* down: of the root */
};

struct bytes {
    unsigned char *at;
    size_t length, room;
};
/* Appends; -ENOMEM and a sentence. */
int bytes_add(struct bytes *bytes, const void *more, size_t length);
void bytes_free(struct bytes *bytes);

struct record {
    enum record_type type;
    uint32_t rank, round;
    const void *bytes;
    size_t length;
};
int record_add(struct bytes *bytes, const struct record *record);
/* The record at *at, which then is that of the next one: 1, 0 after the last, or -EPROTO. */
int record_next(const struct bytes *bytes, size_t *at, struct record *record);
/* The same for all of them: how many there are, or -EPROTO if any cannot be read. */
int record_check(const struct bytes *bytes);

/* The piece of bytes from *at on as a message, and *at after it. */
void wire_piece(struct msg *msg, char kind, uint64_t turn, const struct bytes *bytes, size_t *at);
/* Appends a received piece; 1 if it was the last, 0 if more follow, -EPROTO if it is not a piece of
 * that kind and turn, -EMSGSIZE if all of them are longer than most. */
int wire_feed(const struct msg *msg, char kind, uint64_t *turn, struct bytes *bytes, size_t most);

#endif
