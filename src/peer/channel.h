/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside peer: frames over a connected stream socket. A frame is a line of 16 characters,
 * "WEFT02 D 0001a4\n" (magic, version, kind, length in hex), and that many bytes; where the ends
 * share a secret, a code of 32 bytes follows. */
#ifndef WEFT_PEER_CHANNEL_H
#define WEFT_PEER_CHANNEL_H

#include "peer/life.h"

enum {
    PROTOCOL = 2,
    FRAME_HEAD = 16,
    FRAME_CODE = SHA256_BYTES,
    BEAT_DIGITS = 16, /* a heartbeat's content: how much its sender has done, in hex */
    NONCE_ROOM = 65,  /* 64 digits */
    BEHIND = 4096     /* room for frames that follow an unread message */
};

/* The code of one direction: each frame has its number. */
struct seal {
    bool on;
    unsigned char key[SHA256_BYTES];
    uint64_t count;
};

struct channel {
    struct peer peer;
    int fd;
    bool hello;            /* the nonces are still to be exchanged, and nothing else is taken in */
    bool greets;           /* our next message is the greeting */
    bool left;             /* our final message is sent */
    bool closed;           /* the other end closed */
    int ended;             /* status the other end left with, 0: it has not */
    struct kept ended_why; /* its message, for a later call, maybe in another thread */
    const struct secret *secret;      /* until the nonces are exchanged; NULL: none */
    const struct peer_ticket *ticket; /* until then, a client's; NULL: none */
    char nonce[NONCE_ROOM];           /* ours */
    struct seal ours, theirs;
    uint64_t began_ms, heard_ms, told_ms;
    uint64_t moved_ms, our_done, their_done; /* when there was progress; what was done until then */
    size_t have;                             /* bytes in in[] */
    size_t checked; /* of them: whole frames, each checked and without its code */
    char in[FRAME_HEAD + MSG_MAX + FRAME_CODE + BEHIND];
};

/* Takes the descriptor over. The ends trust each other unless they say hello first. */
int channel_open(struct channel **channel, int fd, int rank, const struct peer_terms *terms);

/* Reads without waiting, and once: 1 if a message of this kind is complete, 0 if not yet, or -errno
 * if none will come. */
int channel_ready(struct channel *channel, char kind);

/* The same for the first message of a connection from which nothing was read, and nothing is now.
 */
int channel_peek(struct channel *channel, char kind, struct msg *msg);

/* Moves the complete message out. */
void channel_take(struct channel *channel, struct msg *msg);

/* Sends one frame, with its code if there is to be one. */
int channel_frame(struct channel *channel, char kind, const void *bytes, size_t length);

/* Sends the reason why we leave, without waiting until it is read. */
void channel_farewell(struct channel *channel, int status, const char *why);

/* Does nothing for a NULL channel. */
void channel_close(struct channel *channel);

/* Ends the channel and returns its descriptor, which stays open. */
int channel_detach(struct channel *channel);

/* ---- many connections: listen.c ---- */

struct pollfd;

/* tcp_listen, with room for so many connections that have not yet greeted. */
enum { LISTENER_ROOM = 16 };
int listener_open(struct listener **listener, const char *bind_address, unsigned port,
                  unsigned room, const struct peer_terms *terms);

/* tcp_accept without waiting: 1 if there is a client, 0 if not yet, or -errno. */
int listener_take(struct listener *listener, const struct peer_terms *terms, struct peer **peer,
                  struct msg *greeting);

/* What to poll for the next look: at most room + 1 descriptors. */
unsigned listener_fds(struct listener *listener, struct pollfd *fds);

/* ---- who is there: hello.c ---- */

/* Begins a connection with strangers; the client sends its nonce. */
int hello_begin(struct channel *channel, const struct secret *secret);

/* 1 once the nonces are exchanged, 0 if not yet, or -errno. Does not wait. */
int hello_ready(struct channel *channel);

/* Server: tells a client without the right secret so, and nothing else. */
void hello_refuse(struct channel *channel);

/* Client: such a message as our error message. */
int hello_refused(const struct channel *channel, const char *words, size_t length);

/* Does a frame of this kind that comes in have a code? */
bool hello_sealed(const struct channel *channel, char kind);

/* The code of our next frame; and is that of their next one right? If not, in a sentence. */
void hello_seal(struct channel *channel, const char *frame, size_t length,
                unsigned char code[FRAME_CODE]);
int hello_check(struct channel *channel, const char *frame, size_t length);

#endif
