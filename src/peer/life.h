/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside peer: heartbeats, the error messages about their absence, and the final message of an end
 * that leaves. The same whatever carries them. */
#ifndef WEFT_PEER_LIFE_H
#define WEFT_PEER_LIFE_H

#include "peer/peer.h"

enum { BEAT_MS = 250, LINGER_MS = 300 };
enum {
    FRAME_NONCE = 'N',
    FRAME_REFUSAL = 'R', /* about the secret; the only frame that never has a code */
    FRAME_GREETING = 'H',
    FRAME_DATA = 'D',
    FRAME_BEAT = 'B',
    FRAME_END = 'E'
};

/* Fills the members that every peer has. */
void life_begin(struct peer *peer, const struct peer_ops *ops, int rank,
                const struct peer_terms *terms);

/* -EINTR and its error message once *stop is set, -ETIMEDOUT after the longest session. */
int life_interrupted(const struct peer *peer);

/* The error messages about an end that is gone; each returns its status. */
int life_lost(const struct peer *peer);
int life_silent(const struct peer *peer);
int life_idle(const struct peer *peer);

/* -EMSGSIZE for a message that is too long. */
int life_fits(const struct msg *msg);

/* Our final message as it is sent, and the other end's as our error message and status. */
int life_words(struct msg *words, int status, const char *why);
int life_last_words(const struct peer *peer, const struct msg *words);

/* Progress until the control channel is to be looked at: for a quarter of the time since the wait
 * began, at most a millisecond. Polling that channel costs as much as several messages of a fast
 * fabric, reading the clock far less. */
int life_spin(const struct peer *peer, uint64_t since_ns, int (*progress)(void *), void *arg);

/* The sleep of a peer whose messages wake nobody: short, so that it looks for them often. */
int life_sleep(int fd);

/* An error message, saved while something else may fail. */
struct kept {
    char sentence[1024];
};
struct kept life_keep(void);
void life_restore(const struct kept *kept);

#endif
