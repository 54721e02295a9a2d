/* SPDX-License-Identifier: BSD-3-Clause */
/* Names and addresses. The resolver has no deadline of its own, so names are looked up in a thread
 * that may outlive the call. */
#include "peer/names.h"
#include "core/clock.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int names_stopped(const struct peer_terms *terms)
{
    if (terms->stop && *terms->stop)
        return fail(-EINTR, "interrupted");
    return terms->watch.look ? terms->watch.look(terms->watch.arg) : 0;
}

void names_text(const struct sockaddr *address, socklen_t length, char *name, size_t room,
                bool with_port)
{
    char host[48] = "?", port[8] = "?";
    getnameinfo(address, length, host, sizeof host, port, sizeof port,
                NI_NUMERICHOST | NI_NUMERICSERV);
    /* IPv4 through a socket for both families is still IPv4. */
    const char *plain = strncmp(host, "::ffff:", 7) == 0 ? host + 7 : host;
    snprintf(name, room, with_port ? "%s port %s" : "%s", plain, port);
}

/* The addresses of this connection, for fabrics that follow the control connection's network. */
void names_note(struct channel *c)
{
    struct sockaddr_storage end;
    socklen_t length = sizeof end;
    if (!getsockname(c->fd, (struct sockaddr *)&end, &length))
        names_text((struct sockaddr *)&end, length, c->peer.here, sizeof c->peer.here, false);
    length = sizeof end;
    if (!getpeername(c->fd, (struct sockaddr *)&end, &length))
        names_text((struct sockaddr *)&end, length, c->peer.there, sizeof c->peer.there, false);
}

/* ---- looking up ---- */

struct lookup {
    pthread_mutex_t lock;
    pthread_cond_t done;
    int owners, error;
    bool finished;
    char host[256], port[8];
    struct addrinfo *found;
};

static void lookup_drop(struct lookup *l)
{
    pthread_mutex_lock(&l->lock);
    int left = --l->owners;
    pthread_mutex_unlock(&l->lock);
    if (left)
        return;
    if (l->found)
        freeaddrinfo(l->found);
    pthread_mutex_destroy(&l->lock);
    pthread_cond_destroy(&l->done);
    free(l);
}

static void *lookup_thread(void *arg)
{
    struct lookup *l = arg;
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    int error = getaddrinfo(l->host, l->port, &hints, &found);
    pthread_mutex_lock(&l->lock);
    l->error = error;
    l->found = error ? NULL : found;
    l->finished = true;
    pthread_cond_signal(&l->done);
    pthread_mutex_unlock(&l->lock);
    lookup_drop(l);
    return NULL;
}

static struct lookup *lookup_start(const char *host, unsigned port)
{
    struct lookup *l = calloc(1, sizeof *l);
    pthread_condattr_t monotonic;
    pthread_attr_t detached;
    pthread_t thread;
    if (!l)
        return NULL;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&l->done, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&l->lock, NULL);
    snprintf(l->host, sizeof l->host, "%s", host);
    snprintf(l->port, sizeof l->port, "%u", port);
    l->owners = 2;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    int error = pthread_create(&thread, &detached, lookup_thread, l);
    pthread_attr_destroy(&detached);
    if (error) {
        l->owners = 1;
        lookup_drop(l);
        return NULL;
    }
    return l;
}

static void lookup_wait(struct lookup *l, uint64_t until_ms, const struct peer_terms *terms)
{
    pthread_mutex_lock(&l->lock);
    while (!l->finished && clock_ms() < until_ms && !(terms->stop && *terms->stop)) {
        uint64_t wake_ns = clock_ns() + UINT64_C(1000000) * NAMES_SLICE_MS;
        struct timespec wake = {.tv_sec = (time_t)(wake_ns / 1000000000U),
                                .tv_nsec = (long)(wake_ns % 1000000000U)};
        pthread_cond_timedwait(&l->done, &l->lock, &wake);
    }
    pthread_mutex_unlock(&l->lock);
}

int names_resolve(const char *host, unsigned port, uint64_t until_ms,
                  const struct peer_terms *terms, struct addrinfo **found)
{
    char port_text[8];
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
    snprintf(port_text, sizeof port_text, "%u", port);
    if (!getaddrinfo(host, port_text, &hints, found))
        return 0;
    struct lookup *l = lookup_start(host, port);
    if (!l)
        return fail(-EAGAIN, "cannot start looking up the name %s", host);
    lookup_wait(l, until_ms, terms);
    pthread_mutex_lock(&l->lock);
    bool finished = l->finished;
    int error = l->error;
    *found = l->found;
    l->found = NULL;
    pthread_mutex_unlock(&l->lock);
    lookup_drop(l);
    if (names_stopped(terms))
        finished = false;
    if (finished && !error)
        return 0;
    if (*found)
        freeaddrinfo(*found);
    if (names_stopped(terms))
        return -EINTR;
    if (!finished)
        return fail(-ETIMEDOUT, "the name %s could not be looked up in time", host);
    return fail(error == EAI_AGAIN ? -ETIMEDOUT : -EHOSTUNREACH, "no address for the name %s: %s",
                host, gai_strerror(error));
}
