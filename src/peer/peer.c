/* SPDX-License-Identifier: BSD-3-Clause */
/* What is made of telling and hearing, whatever carries them. */
#include "peer/peer.h"

#include <errno.h>
#include <string.h>

int peer_swap(struct peer *peer, const struct blob *mine, struct blob *theirs)
{
    int status = peer_tell(peer, mine);
    return status ? status : peer_hear(peer, theirs, NULL, NULL);
}

int peer_meet(struct peer *peer, const char *word, int (*progress)(void *), void *arg)
{
    struct blob mine, theirs;
    int status = blob_print(&mine, "meet=%s\n", word);
    if (!status)
        status = peer_tell(peer, &mine);
    if (!status)
        status = peer_hear(peer, &theirs, progress, arg);
    if (!status && strcmp(mine.bytes, theirs.bytes) != 0)
        status = fail(-EPROTO, "the %s is not where this end is: out of step at \"%s\"",
                      peer->other, word);
    return status;
}
