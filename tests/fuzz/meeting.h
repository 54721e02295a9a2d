/* SPDX-License-Identifier: BSD-3-Clause */
/* What the other end of a fabric gives for a meeting, from the input: its address and the keys of
 * its regions, with NULs between them. And what a module gets from the program that loads it. */
#ifndef WEFT_FUZZ_MEETING_H
#define WEFT_FUZZ_MEETING_H

#include "fabric/fabric.h"
#include "fuzz/feed.h"
#include "memory/memory.h"

#include <stdlib.h>
#include <string.h>

enum { MEETING_KEYS = 20 };

static const struct fabric_host fuzz_host = {.abi = FABRIC_ABI,
                                             .fail = fail,
                                             .warn = warn,
                                             .msg_print = msg_print,
                                             .msg_add = msg_add,
                                             .msg_value = msg_value,
                                             .msg_number = msg_number,
                                             .msg_add_hex = msg_add_hex,
                                             .msg_hex = msg_hex,
                                             .random_word = random_word,
                                             .memory_enough = memory_enough};

static inline void next_msg(struct feed *feed, struct msg *msg)
{
    const uint8_t *end = feed->left ? memchr(feed->data, '\0', feed->left) : NULL;
    size_t length = end ? (size_t)(end - feed->data) : feed->left;
    msg->length = length < MSG_MAX ? length : MSG_MAX - 1;
    memcpy(msg->bytes, feed->data, msg->length);
    msg->bytes[msg->length] = '\0';
    length += end != NULL;
    feed->data += length;
    feed->left -= length;
}

static inline struct fabric_meeting next_meeting(struct feed *feed)
{
    static const char *const places[] = {NULL, "127.0.0.1", "::1", "192.0.2.1"};
    static struct msg address, keys[MEETING_KEYS];
    struct fabric_meeting meeting = {
        .nonce = "0123456789abcdef", .address = &address, .keys = keys};
    meeting.there = places[next_byte(feed) % LENGTH(places)];
    next_msg(feed, &address);
    while (feed->left && meeting.count < MEETING_KEYS)
        next_msg(feed, &keys[meeting.count++]);
    return meeting;
}

/* What was agreed on does not wrap around. */
static inline void check_remotes(const struct remote *remotes, int count)
{
    for (int i = 0; i < count; i++)
        if (!remotes[i].own || remotes[i].base + remotes[i].length < remotes[i].base)
            abort();
}

#endif
