/* SPDX-License-Identifier: BSD-3-Clause */
/* Heartbeats to the other end from a second thread while the first is busy. */
#include "core/clock.h"
#include "peer/peer.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { KEEPALIVE_MS = 20 };

static void *send_keepalives(void *arg)
{
    struct keepalive *keepalive = arg;
    struct pollfd over = {.fd = keepalive->over, .events = POLLIN};
    uint64_t since_ms = clock_ms();
    while (poll(&over, 1, KEEPALIVE_MS) != 1 && !peer_alive(keepalive->peer))
        if (keepalive->most_ms && clock_ms() - since_ms > keepalive->most_ms)
            break;
    return NULL;
}

void keepalive_begin(struct keepalive *keepalive, struct peer *peer, unsigned most_ms)
{
    sigset_t all, before;
    peer_progress(peer); /* what may take long now is a step of its own */
    *keepalive =
        (struct keepalive){.peer = peer, .most_ms = most_ms, .over = eventfd(0, EFD_CLOEXEC)};
    if (keepalive->over < 0)
        return;
    /* Signals are delivered to the busy thread only. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&keepalive->thread, NULL, send_keepalives, keepalive);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!error)
        return;
    close(keepalive->over);
    keepalive->over = -1;
}

void keepalive_end(struct keepalive *keepalive)
{
    peer_progress(keepalive->peer);
    if (keepalive->over < 0)
        return;
    eventfd_write(keepalive->over, 1);
    pthread_join(keepalive->thread, NULL);
    close(keepalive->over);
}
