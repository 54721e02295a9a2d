/* SPDX-License-Identifier: BSD-3-Clause */
/* One end of a session, as the first byte of an input says: a server that reads a proposal, or a
 * client that reads the answer to one. The other end hears nothing. */
#ifndef WEFT_FUZZ_AGREE_H
#define WEFT_FUZZ_AGREE_H

#include "bench/run.h"
#include "bench/session.h"
#include "peer/peer.h"

#include <errno.h>

enum { AS_CLIENT = 1, GIVEN = 2, SAME = 4, DEVICE_BIT = 3 };

static const char *const agree_devices[] = {"", "cxi0", "soft:cxi1", "null", "null:delay=1us"};

static int to_nobody(void *arg, const void *bytes, size_t length)
{
    (void)arg;
    (void)bytes;
    (void)length;
    return 0;
}

static int from_nobody(void *arg, void *bytes, size_t room, size_t *length)
{
    (void)arg;
    (void)bytes;
    (void)room;
    (void)length;
    return 0;
}

static inline int agree_open(struct session *session, struct offer *offer, unsigned what)
{
    static const struct peer_terms terms = {.timeout_ms = 60000};
    static const struct peer_carrier carrier = {.publish = to_nobody, .receive = from_nobody};
    *offer = (struct offer){.device = agree_devices[(what >> DEVICE_BIT) % LENGTH(agree_devices)],
                            .given = what & GIVEN,
                            .service = 1};
    session_init(session);
    return peer_relay(&session->peer, &carrier, what & AS_CLIENT ? PEER_CLIENT : PEER_SERVER,
                      &terms);
}

static inline void agree_close(struct session *session)
{
    struct peer *peer = session->peer;
    session->left = true;
    session_part(session);
    session_close(session, 0);
    peer_close(peer);
}

#endif
