/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions built on send and recv, whatever carries them. */
#include "peer/peer.h"
#include "core/clock.h"

#include <errno.h>
#include <string.h>

void peer_bound(struct peer *peer, uint64_t longest_ms)
{
    peer->longest_ms = longest_ms;
    peer->until_ms = longest_ms ? clock_ms() + longest_ms : 0;
}

int peer_swap(struct peer *peer, const struct msg *mine, struct msg *theirs)
{
    int status = peer_send(peer, mine);
    return status ? status : peer_recv(peer, theirs, NULL, NULL);
}

int peer_barrier(struct peer *peer, const char *word, int (*progress)(void *), void *arg)
{
    struct msg mine, theirs;
    int status = msg_print(&mine, "meet=%s\n", word);
    if (!status)
        status = peer_send(peer, &mine);
    if (!status)
        status = peer_recv(peer, &theirs, progress, arg);
    if (!status && strcmp(mine.bytes, theirs.bytes) != 0)
        status = fail(-EPROTO, "the %s is at another step than this end: out of step at \"%s\"",
                      peer->other, word);
    return status;
}
