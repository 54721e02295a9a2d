/* SPDX-License-Identifier: BSD-3-Clause */
/* Looking after the other end while the thread that should is busy. */
#include "peer/peer.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { VIGIL_MS = 20 };

static void *keep_vigil(void *arg)
{
    struct vigil *vigil = arg;
    struct pollfd over = {.fd = vigil->over, .events = POLLIN};
    uint64_t since_ms = clock_ms();
    while (poll(&over, 1, VIGIL_MS) != 1 && !peer_alive(vigil->peer))
        if (vigil->most_ms && clock_ms() - since_ms > vigil->most_ms)
            break;
    return NULL;
}

void vigil_begin(struct vigil *vigil, struct peer *peer, unsigned most_ms)
{
    sigset_t all, before;
    *vigil = (struct vigil){.peer = peer, .most_ms = most_ms, .over = eventfd(0, EFD_CLOEXEC)};
    if (vigil->over < 0)
        return;
    /* Signals stay with the thread that is busy. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&vigil->thread, NULL, keep_vigil, vigil);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!error)
        return;
    close(vigil->over);
    vigil->over = -1;
}

void vigil_end(struct vigil *vigil)
{
    if (vigil->over < 0)
        return;
    eventfd_write(vigil->over, 1);
    pthread_join(vigil->thread, NULL);
    close(vigil->over);
}
