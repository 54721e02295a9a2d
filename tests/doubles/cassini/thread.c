/* SPDX-License-Identifier: BSD-3-Clause */
/* The NIC itself: a thread for each LNI, which sleeps while nothing is to be done. */
#include "nic.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { SPINS = 30, SHORT_NS = 20000, LONG_NS = 400000, PATIENT = 5000 };

/* Stores into a doorbell wake nobody: sleeps are short. */
static void sleep_a_little(const struct nic *nic, int socket, unsigned idle)
{
    struct pollfd fds[2] = {{.fd = nic->wake, .events = POLLIN}, {.fd = socket, .events = POLLIN}};
    struct timespec limit = {.tv_nsec = idle < PATIENT ? SHORT_NS : LONG_NS};
    ppoll(fds, 2, &limit, NULL);
}

static void *run(void *arg)
{
    struct nic *nic = arg;
    unsigned idle = 0;
    prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);
    for (;;) {
        pthread_mutex_lock(&nic->lock);
        bool stop = nic->stop, any = false;
        if (!stop && !nic->gone) {
            any = ct_doorbells(nic);
            any |= commands_run(nic);
            any |= wire_work(nic);
        }
        int socket = nic->domain ? nic->domain->socket : -1;
        pthread_mutex_unlock(&nic->lock);
        if (stop)
            return NULL;
        idle = any ? 0 : idle + 1;
        if (idle > SPINS)
            sleep_a_little(nic, socket, idle);
    }
}

int nic_start(struct nic *nic)
{
    if (nic->running)
        return 0;
    nic->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    nic->running = nic->wake >= 0 && !pthread_create(&nic->thread, NULL, run, nic);
    return nic->running ? 0 : -EAGAIN;
}

void nic_stop(struct nic *nic)
{
    uint64_t one = 1;
    if (!nic->running)
        return;
    pthread_mutex_lock(&nic->lock);
    nic->stop = true;
    pthread_mutex_unlock(&nic->lock);
    if (write(nic->wake, &one, sizeof one) != sizeof one)
        abort();
    pthread_join(nic->thread, NULL);
    close(nic->wake);
}
