/* SPDX-License-Identifier: BSD-3-Clause */
/* Two threads of one process: the same frames over a socket pair, so that tests have the same waits
 * and deadlines as two hosts. */
#include "peer/channel.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int peer_threads(struct peer *pair[2], const struct peer_terms *terms)
{
    int fd[2];
    struct channel *client, *server;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd))
        return fail(-errno, "socketpair: %s", strerror(errno));
    int status = channel_open(&client, fd[0], PEER_CLIENT, terms);
    if (status) {
        close(fd[1]);
        return status;
    }
    status = channel_open(&server, fd[1], PEER_SERVER, terms);
    if (status) {
        channel_close(client);
        return status;
    }
    client->peer.trusted = server->peer.trusted = true;
    pair[PEER_CLIENT] = &client->peer;
    pair[PEER_SERVER] = &server->peer;
    return 0;
}
