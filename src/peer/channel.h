/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside peer: frames over a connected stream socket. A frame is a line of 16 characters,
 * "WEFT01 D 0001a4\n" (magic, version, kind, length in hex), and that many bytes. */
#ifndef WEFT_PEER_CHANNEL_H
#define WEFT_PEER_CHANNEL_H

#include "peer/life.h"

enum {
    FRAME_HEAD = 16,
    BEATS_BEHIND = 4096 /* room for heartbeats that follow an unread message */
};

struct channel {
    struct peer peer;
    int fd;
    bool greets;           /* our next message is the greeting */
    bool left;             /* our final message is sent */
    bool closed;           /* the other end closed */
    int ended;             /* status the other end left with, 0: it has not */
    struct kept ended_why; /* its message, for a later call, maybe in another thread */
    uint64_t heard_ms, told_ms;
    size_t have; /* bytes in in[] */
    char in[FRAME_HEAD + MSG_MAX + BEATS_BEHIND];
};

/* Takes the descriptor over. */
int channel_open(struct channel **channel, int fd, int rank, const struct peer_terms *terms);

/* Reads without waiting: 1 if a message of this kind is complete, 0 if not yet, or -errno if none
 * will come. */
int channel_ready(struct channel *channel, char kind);

/* Moves the complete message out. */
void channel_take(struct channel *channel, struct msg *msg);

/* Sends the reason why we leave, without waiting until it is read. */
void channel_farewell(struct channel *channel, int status, const char *why);

/* Does nothing for a NULL channel. */
void channel_close(struct channel *channel);

#endif
