/* SPDX-License-Identifier: BSD-3-Clause */
/* Heartbeats to the other end from a second thread while the first is busy. */
#include "core/clock.h"
#include "peer/peer.h"

#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { KEEPALIVE_MS = 20 };

/* Who may use the peer: the first thread, neither, the second. */
enum { RESTS, WORKS, BEATS };

/* False if there is no more use in it. The first thread waits if it comes back just now. */
static bool beat(struct keepalive *keepalive)
{
    int works = WORKS;
    if (!atomic_compare_exchange_strong(&keepalive->state, &works, BEATS))
        return true;
    int status = peer_alive(keepalive->peer);
    atomic_store(&keepalive->state, WORKS);
    return !status;
}

static void *send_keepalives(void *arg)
{
    struct keepalive *keepalive = arg;
    struct pollfd over = {.fd = keepalive->over, .events = POLLIN};
    uint64_t since_ms = clock_ms();
    unsigned turn = 0;
    while (poll(&over, 1, KEEPALIVE_MS) != 1) {
        if (atomic_load(&keepalive->turns) != turn) {
            turn = atomic_load(&keepalive->turns);
            since_ms = clock_ms();
        }
        if (keepalive->most_ms && clock_ms() - since_ms > keepalive->most_ms)
            continue;
        if (!beat(keepalive))
            break;
    }
    return NULL;
}

void keepalive_begin(struct keepalive *keepalive, struct peer *peer, unsigned most_ms)
{
    sigset_t all, before;
    peer_progress(peer); /* what may take long now is a step of its own */
    *keepalive = (struct keepalive){
        .peer = peer, .most_ms = most_ms, .over = eventfd(0, EFD_CLOEXEC), .state = WORKS};
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

void keepalive_rest(struct keepalive *keepalive)
{
    for (int works = WORKS; !atomic_compare_exchange_weak(&keepalive->state, &works, RESTS);
         works = WORKS)
        sched_yield();
}

void keepalive_work(struct keepalive *keepalive)
{
    atomic_fetch_add(&keepalive->turns, 1);
    atomic_store(&keepalive->state, WORKS);
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
