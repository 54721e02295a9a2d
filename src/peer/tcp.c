/* SPDX-License-Identifier: BSD-3-Clause */
/* TCP: listening, and connecting until the server is up. The resolver has no deadline of its own,
 * so names are looked up in a thread that may outlive the call. */
#include "core/clock.h"
#include "peer/channel.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PENDING = 16, GREETING_MS = 5000, RETRY_MS = 50, SLICE_MS = 100 };

struct listener {
    int fd;
    unsigned port;
    bool hampered;                    /* connections wait that cannot be accepted now */
    struct channel *pending[PENDING]; /* connected, not yet greeted */
    char names[PENDING][72];
};

static int stopped(const struct peer_terms *terms)
{
    return terms->stop && *terms->stop ? fail(-EINTR, "interrupted") : 0;
}

static void name_of(const struct sockaddr *address, socklen_t length, char *name, size_t room,
                    bool with_port)
{
    char host[48] = "?", port[8] = "?";
    getnameinfo(address, length, host, sizeof host, port, sizeof port,
                NI_NUMERICHOST | NI_NUMERICSERV);
    /* IPv4 through a socket for both families is still IPv4. */
    const char *plain = strncmp(host, "::ffff:", 7) == 0 ? host + 7 : host;
    snprintf(name, room, with_port ? "%s port %s" : "%s", plain, port);
}

/* ---- names ---- */

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
        uint64_t wake_ns = clock_ns() + UINT64_C(1000000) * SLICE_MS;
        struct timespec wake = {.tv_sec = (time_t)(wake_ns / 1000000000U),
                                .tv_nsec = (long)(wake_ns % 1000000000U)};
        pthread_cond_timedwait(&l->done, &l->lock, &wake);
    }
    pthread_mutex_unlock(&l->lock);
}

/* Addresses of a name, by until_ms. The result is freed with freeaddrinfo. */
static int resolve(const char *host, unsigned port, uint64_t until_ms,
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
    if (stopped(terms))
        finished = false;
    if (finished && !error)
        return 0;
    if (*found)
        freeaddrinfo(*found);
    if (stopped(terms))
        return -EINTR;
    if (!finished)
        return fail(-ETIMEDOUT, "the name %s could not be looked up in time", host);
    return fail(error == EAI_AGAIN ? -ETIMEDOUT : -EHOSTUNREACH, "no address for the name %s: %s",
                host, gai_strerror(error));
}

/* ---- the server ---- */

static int bind_one(int family, const struct sockaddr *address, socklen_t length)
{
    int on = 1, off = 0;
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (bind(fd, address, length) || listen(fd, PENDING)) {
        int status = -errno;
        close(fd);
        return status;
    }
    return fd;
}

/* All addresses: one socket for both families if there is IPv6, else IPv4 only. */
static int bind_any(unsigned port)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = bind_one(AF_INET6, (struct sockaddr *)&six, sizeof six);
    if (fd == -EAFNOSUPPORT || fd == -EADDRNOTAVAIL)
        fd = bind_one(AF_INET, (struct sockaddr *)&four, sizeof four);
    return fd;
}

static int bind_name(const char *name, unsigned port, const struct peer_terms *terms)
{
    struct addrinfo *found;
    int status = resolve(name, port, clock_ms() + GREETING_MS, terms, &found);
    if (status)
        return status;
    int fd = -EADDRNOTAVAIL;
    for (const struct addrinfo *at = found; at && fd < 0; at = at->ai_next)
        fd = bind_one(at->ai_family, at->ai_addr, at->ai_addrlen);
    freeaddrinfo(found);
    return fd >= 0 ? fd : fail(fd, "cannot listen on %s port %u: %s", name, port, strerror(-fd));
}

int tcp_listen(struct listener **listener, const char *bind_address, unsigned port,
               const struct peer_terms *terms)
{
    union {
        struct sockaddr any;
        struct sockaddr_in four;
        struct sockaddr_in6 six;
    } bound = {.six = {0}};
    socklen_t length = sizeof bound;
    int fd = bind_address && *bind_address ? bind_name(bind_address, port, terms) : bind_any(port);
    if (fd == -EADDRINUSE)
        return fail(fd, "port %u is in use (another server?); choose another", port);
    if (fd < 0)
        return bind_address && *bind_address
                   ? fd
                   : fail(fd, "cannot listen on port %u: %s", port, strerror(-fd));
    struct listener *l = calloc(1, sizeof *l);
    if (!l || getsockname(fd, &bound.any, &length)) {
        free(l);
        close(fd);
        return fail(-ENOMEM, "no memory for a listening port");
    }
    l->fd = fd;
    l->port = ntohs(bound.any.sa_family == AF_INET6 ? bound.six.sin6_port : bound.four.sin_port);
    *listener = l;
    return 0;
}

unsigned tcp_port(const struct listener *listener)
{
    return listener->port;
}

/* The addresses of this connection, for fabrics that follow the control connection's network. */
static void note_addresses(struct channel *c)
{
    struct sockaddr_storage end;
    socklen_t length = sizeof end;
    if (!getsockname(c->fd, (struct sockaddr *)&end, &length))
        name_of((struct sockaddr *)&end, length, c->peer.here, sizeof c->peer.here, false);
    length = sizeof end;
    if (!getpeername(c->fd, (struct sockaddr *)&end, &length))
        name_of((struct sockaddr *)&end, length, c->peer.there, sizeof c->peer.there, false);
}

static void drop(struct listener *l, int slot, const char *why)
{
    warn("ignored a connection from %s: %s", l->names[slot], why);
    channel_close(l->pending[slot]);
    l->pending[slot] = NULL;
}

/* Silent connections must not lock out a real client: the oldest is dropped. */
static int free_slot(struct listener *l)
{
    int eldest = 0;
    for (int i = 0; i < PENDING; i++) {
        if (!l->pending[i])
            return i;
        if (l->pending[i]->told_ms < l->pending[eldest]->told_ms)
            eldest = i;
    }
    drop(l, eldest, "it did not greet, and others wait");
    return eldest;
}

/* If accept fails, for example without a free descriptor, the connection stays in the backlog. This
 * is reported once, and the wait does not poll the port meanwhile, which would be ready at once. */
static void note_accept(struct listener *l, int error)
{
    bool hampered = error && error != EAGAIN && error != EINTR && error != ECONNABORTED;
    if (hampered && !l->hampered)
        warn("a connection cannot be accepted now: %s", strerror(error));
    l->hampered = hampered;
}

static void greet_next(struct listener *l, const struct peer_terms *terms)
{
    struct sockaddr_storage from;
    socklen_t length = sizeof from;
    int on = 1;
    int fd = accept4(l->fd, (struct sockaddr *)&from, &length, SOCK_CLOEXEC);
    note_accept(l, fd < 0 ? errno : 0);
    if (fd < 0)
        return;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    int slot = free_slot(l);
    if (!channel_open(&l->pending[slot], fd, PEER_SERVER, terms))
        name_of((struct sockaddr *)&from, length, l->names[slot], sizeof l->names[slot], true);
}

/* 1 if this connection has greeted; one that never will is dropped with a warning. */
static int look_at(struct listener *l, int slot)
{
    struct channel *c = l->pending[slot];
    int status = channel_ready(c, FRAME_GREETING);
    if (status == 1)
        return 1;
    if (!status && clock_ms() - c->told_ms < GREETING_MS)
        return 0;
    if (!status)
        fail(-ETIMEDOUT, "it did not greet within %d s", GREETING_MS / 1000);
    else if (status == -ECONNRESET)
        fail(status, "it closed the connection before greeting");
    if (status == -EPROTO)
        channel_farewell(c, status, fail_reason());
    drop(l, slot, fail_reason());
    return 0;
}

static void wait_for_any(const struct listener *l)
{
    struct pollfd fds[1 + PENDING];
    nfds_t n = 0;
    for (int i = 0; i < PENDING; i++)
        if (l->pending[i])
            fds[n++] = (struct pollfd){.fd = l->pending[i]->fd, .events = POLLIN};
    if (!l->hampered)
        fds[n++] = (struct pollfd){.fd = l->fd, .events = POLLIN};
    poll(fds, n, SLICE_MS);
}

int tcp_accept(struct listener *l, const struct peer_terms *terms, struct peer **peer,
               struct msg *greeting)
{
    for (;;) {
        int status = stopped(terms);
        if (status)
            return status;
        greet_next(l, terms);
        for (int i = 0; i < PENDING; i++) {
            struct channel *c = l->pending[i];
            if (!c || look_at(l, i) != 1)
                continue;
            channel_take(c, greeting);
            l->pending[i] = NULL;
            note_addresses(c);
            *peer = &c->peer;
            return 0;
        }
        wait_for_any(l);
    }
}

void tcp_close(struct listener *l)
{
    if (!l)
        return;
    for (int i = 0; i < PENDING; i++)
        channel_close(l->pending[i]);
    close(l->fd);
    free(l);
}

/* ---- the client ---- */

static bool reached_itself(int fd)
{
    struct sockaddr_storage here = {0}, there = {0};
    socklen_t here_length = sizeof here, there_length = sizeof there;
    return !getsockname(fd, (struct sockaddr *)&here, &here_length) &&
           !getpeername(fd, (struct sockaddr *)&there, &there_length) &&
           here_length == there_length && memcmp(&here, &there, here_length) == 0;
}

static int connect_one(const struct addrinfo *to, uint64_t until_ms, const struct peer_terms *terms)
{
    int error = 0;
    socklen_t length = sizeof error;
    int fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    if (connect(fd, to->ai_addr, to->ai_addrlen) && errno != EINPROGRESS)
        error = errno;
    struct pollfd ready = {.fd = fd, .events = POLLOUT};
    while (!error) {
        uint64_t now_ms = clock_ms();
        int n = poll(&ready, 1, SLICE_MS);
        if (n > 0) {
            getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
            break;
        }
        if (terms->stop && *terms->stop)
            error = EINTR;
        else if (now_ms >= until_ms)
            error = ETIMEDOUT;
    }
    /* By TCP's rules, connecting to a local port without a listener can reach the connecting socket
     * itself. */
    if (!error && reached_itself(fd))
        error = ECONNREFUSED;
    if (error) {
        close(fd);
        return -error;
    }
    return fd;
}

/* Once through all addresses of the name. */
static int connect_any(const struct addrinfo *found, uint64_t until_ms,
                       const struct peer_terms *terms)
{
    int fd = -EHOSTUNREACH;
    unsigned left = 0;
    for (const struct addrinfo *at = found; at; at = at->ai_next)
        left++;
    for (const struct addrinfo *at = found; at && fd < 0 && fd != -EINTR; at = at->ai_next) {
        uint64_t now_ms = clock_ms();
        uint64_t share_ms = until_ms > now_ms ? (until_ms - now_ms) / left : 0;
        fd = connect_one(at, now_ms + share_ms, terms);
        left--;
    }
    return fd;
}

int tcp_dial(struct peer **peer, const char *address, unsigned port, uint64_t wait_ms,
             const struct peer_terms *terms)
{
    uint64_t until_ms = clock_ms() + wait_ms;
    struct addrinfo *found;
    struct channel *c;
    int on = 1;
    /* A name lookup needs some time even with a wait of 0. */
    uint64_t name_ms = wait_ms > 1000 ? until_ms : until_ms + 1000;
    int status = resolve(address, port, name_ms, terms, &found);
    if (status)
        return status;
    int fd = connect_any(found, until_ms, terms);
    while (fd < 0 && fd != -EINTR && clock_ms() < until_ms) {
        poll(NULL, 0, RETRY_MS);
        fd = stopped(terms) ? -EINTR : connect_any(found, until_ms, terms);
    }
    freeaddrinfo(found);
    if (fd == -EINTR)
        return fail(-EINTR, "interrupted");
    if (fd < 0)
        return fail(-ECONNREFUSED, "no server at %s port %u after %g s: %s", address, port,
                    (double)wait_ms / 1000, strerror(-fd));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    status = channel_open(&c, fd, PEER_CLIENT, terms);
    if (status)
        return status;
    c->greets = true;
    note_addresses(c);
    *peer = &c->peer;
    return 0;
}
