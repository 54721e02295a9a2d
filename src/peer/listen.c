/* SPDX-License-Identifier: BSD-3-Clause */
/* TCP, the server: connections that exchange nonces and greet, several at once, so that none keeps
 * another waiting. */
#include "core/clock.h"
#include "peer/names.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { GREETING_MS = 5000, CROWD_MS = 1000 };
enum { COLLECT_MS = 10000 };           /* for one more connection of a client, or its timeout */
enum { LINES = 10, LINES_MS = 10000 }; /* no more warnings than so many in so long */

struct listener {
    int fd;
    unsigned port;
    char address[64];
    unsigned lines, more; /* warnings since lines_ms, and those that were left out */
    uint64_t lines_ms;
    bool hampered; /* connections wait that cannot be accepted now */
    unsigned room; /* for these: */
    struct pending {
        struct channel *channel; /* connected, not yet greeted; or NULL */
        char name[72];
    } pending[];
};

static int bind_one(int family, const struct sockaddr *address, socklen_t length)
{
    int on = 1, off = 0;
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (bind(fd, address, length) || listen(fd, SOMAXCONN)) {
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
    int status = names_resolve(name, port, clock_ms() + GREETING_MS, terms, &found);
    if (status)
        return status;
    int fd = -EADDRNOTAVAIL;
    for (const struct addrinfo *at = found; at && fd < 0; at = at->ai_next)
        fd = bind_one(at->ai_family, at->ai_addr, at->ai_addrlen);
    freeaddrinfo(found);
    return fd >= 0 ? fd : fail(fd, "cannot listen on %s port %u: %s", name, port, strerror(-fd));
}

static int bind_here(const char *address, unsigned port, const struct peer_terms *terms)
{
    int fd = *address ? bind_name(address, port, terms) : bind_any(port);
    if (fd == -EADDRINUSE)
        return fail(fd, "port %u is in use (another server?); choose another", port);
    return fd >= 0 || *address ? fd : fail(fd, "cannot listen on port %u: %s", port, strerror(-fd));
}

/* The site's default. */
static int bind_default(unsigned port, const struct peer_terms *terms)
{
    char why[512];
    const char *address = secure_getenv("WEFT_BIND");
    int fd = bind_here(address ? address : "", port, terms);
    if (fd >= 0 || fd == -EINTR || !address || !*address)
        return fd;
    snprintf(why, sizeof why, "%s", fail_reason());
    return fail(fd, "WEFT_BIND: %s", why);
}

/* The address for people. */
static void note_place(struct listener *l, const struct sockaddr *bound, socklen_t length)
{
    names_text(bound, length, l->address, sizeof l->address, false);
    if (strcmp(l->address, "::") == 0)
        snprintf(l->address, sizeof l->address, "all addresses");
    else if (strcmp(l->address, "0.0.0.0") == 0)
        snprintf(l->address, sizeof l->address, "all IPv4 addresses");
}

int listener_open(struct listener **listener, const char *bind_address, unsigned port,
                  unsigned room, const struct peer_terms *terms)
{
    union {
        struct sockaddr any;
        struct sockaddr_in four;
        struct sockaddr_in6 six;
    } bound = {.six = {0}};
    socklen_t length = sizeof bound;
    int fd = bind_address ? bind_here(bind_address, port, terms) : bind_default(port, terms);
    if (fd < 0)
        return fd;
    struct listener *l = calloc(1, sizeof *l + room * sizeof l->pending[0]);
    if (!l || getsockname(fd, &bound.any, &length)) {
        free(l);
        close(fd);
        return fail(-ENOMEM, "no memory for a listening port");
    }
    l->fd = fd;
    l->room = room;
    note_place(l, &bound.any, length);
    l->port = ntohs(bound.any.sa_family == AF_INET6 ? bound.six.sin6_port : bound.four.sin_port);
    *listener = l;
    return 0;
}

int tcp_listen(struct listener **listener, const char *bind_address, unsigned port,
               const struct peer_terms *terms)
{
    return listener_open(listener, bind_address, port, LISTENER_ROOM, terms);
}

unsigned tcp_port(const struct listener *listener)
{
    return listener->port;
}

const char *tcp_address(const struct listener *listener)
{
    return listener->address;
}

/* ---- warnings ---- */

static void say_more(struct listener *l)
{
    if (clock_ms() - l->lines_ms < LINES_MS)
        return;
    if (l->more)
        warn("%u more connections were ignored or refused", l->more);
    l->lines = l->more = 0;
    l->lines_ms = clock_ms();
}

void tcp_warn(struct listener *l, const char *what, const char *why)
{
    say_more(l);
    if (l->lines++ < LINES)
        warn("%s: %s", what, why);
    else
        l->more++;
}

static void say_ignored(struct listener *l, const char *name, const char *why)
{
    char what[120];
    snprintf(what, sizeof what, "ignored a connection from %s", name);
    tcp_warn(l, what, why);
}

/* ---- connections ---- */

static void drop(struct listener *l, struct pending *p, const char *why)
{
    say_ignored(l, p->name, why);
    channel_close(p->channel);
    p->channel = NULL;
}

/* Is one a better choice to make room: one that has said nothing, and the eldest of these? */
static bool rather(const struct channel *one, const struct channel *other)
{
    return one->hello != other->hello ? one->hello : one->began_ms < other->began_ms;
}

/* A free slot, or the one to be freed. */
static struct pending *choose_slot(struct listener *l)
{
    struct pending *chosen = l->pending;
    for (struct pending *p = l->pending; p < l->pending + l->room; p++) {
        if (!p->channel)
            return p;
        if (rather(p->channel, chosen->channel))
            chosen = p;
    }
    return chosen;
}

/* Where many real clients come at once, others wait for a while before one is dropped. */
static bool is_full(struct listener *l)
{
    const struct channel *c = choose_slot(l)->channel;
    return c && l->room > LISTENER_ROOM && clock_ms() - c->began_ms < CROWD_MS;
}

/* Silent connections must not lock out a real client. */
static struct pending *free_slot(struct listener *l)
{
    struct pending *chosen = choose_slot(l);
    if (chosen->channel)
        drop(l, chosen, "it did not greet, and others wait");
    return chosen;
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

/* A new connection gets a slot, if its sender may connect. */
static bool greet_next(struct listener *l, const struct peer_terms *terms)
{
    struct sockaddr_storage from;
    socklen_t length = sizeof from;
    char name[sizeof l->pending[0].name];
    int on = 1;
    if (is_full(l))
        return false;
    int fd = accept4(l->fd, (struct sockaddr *)&from, &length, SOCK_CLOEXEC);
    note_accept(l, fd < 0 ? errno : 0);
    if (fd < 0)
        return false;
    names_text((struct sockaddr *)&from, length, name, sizeof name, true);
    if (terms->allow && !names_allowed(terms->allow, (struct sockaddr *)&from)) {
        say_ignored(l, name, "its address is not allowed");
        close(fd);
        return true;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    struct pending *p = free_slot(l);
    if (channel_open(&p->channel, fd, PEER_SERVER, terms))
        return true;
    memcpy(p->name, name, sizeof name);
    if (hello_begin(p->channel, terms->secret))
        drop(l, p, fail_reason());
    return true;
}

/* What a client that is dropped is told. One that has not shown the secret learns the version. */
static void say_why(struct channel *c, int status)
{
    bool guarded = (c->secret || c->theirs.on) && !c->peer.trusted;
    if (status == -EACCES)
        hello_refuse(c);
    else if (status == -EPROTO)
        channel_farewell(c, status, guarded ? "this is another protocol" : fail_reason());
}

static bool overdue(const struct channel *c)
{
    return clock_ms() - c->began_ms >= GREETING_MS;
}

/* 1 if this connection has greeted, 0 if not yet, -errno if it never will. */
static int greeted(struct channel *c)
{
    int status = hello_ready(c);
    if (status == 1)
        status = channel_ready(c, FRAME_GREETING);
    if (status == -ECONNRESET)
        return fail(status, "it closed the connection before greeting");
    if (!status && overdue(c))
        return fail(-ETIMEDOUT, "it did not greet within %d s", GREETING_MS / 1000);
    say_why(c, status);
    return status;
}

/* 1 if it has greeted; one that never will is dropped with a warning. */
static int look_at(struct listener *l, struct pending *p)
{
    int status = greeted(p->channel);
    if (status < 0)
        drop(l, p, fail_reason());
    return status == 1;
}

/* The peer of a connection that has greeted. */
static struct peer *take(struct channel *c, const struct peer_terms *terms, struct msg *greeting)
{
    channel_take(c, greeting);
    names_note(c);
    /* The server's user may want to wait longer, not the client. */
    c->peer.quiet_ms = terms->timeout_ms > PEER_QUIET_MS ? terms->timeout_ms : PEER_QUIET_MS;
    return &c->peer;
}

unsigned listener_fds(struct listener *l, struct pollfd *fds)
{
    unsigned n = 0;
    for (unsigned i = 0; i < l->room; i++)
        if (l->pending[i].channel)
            fds[n++] = (struct pollfd){.fd = l->pending[i].channel->fd, .events = POLLIN};
    if (!l->hampered && !is_full(l))
        fds[n++] = (struct pollfd){.fd = l->fd, .events = POLLIN};
    return n;
}

static void wait_for_any(struct listener *l)
{
    struct pollfd fds[1 + LISTENER_ROOM];
    poll(fds, listener_fds(l, fds), NAMES_SLICE_MS);
}

/* Of all that wait, as far as there is room. */
int listener_take(struct listener *l, const struct peer_terms *terms, struct peer **peer,
                  struct msg *greeting)
{
    int status = names_stopped(terms);
    if (status)
        return status;
    for (unsigned i = 0; i < l->room && greet_next(l, terms); i += LISTENER_ROOM)
        ; /* a larger room is filled faster */
    say_more(l);
    for (struct pending *p = l->pending; p < l->pending + l->room; p++) {
        struct channel *c = p->channel;
        if (!c || look_at(l, p) != 1)
            continue;
        p->channel = NULL;
        *peer = take(c, terms, greeting);
        return 1;
    }
    return 0;
}

int tcp_accept(struct listener *l, const struct peer_terms *terms, struct peer **peer,
               struct msg *greeting)
{
    int status;
    while (!(status = listener_take(l, terms, peer, greeting)))
        wait_for_any(l);
    return status < 0 ? status : 0;
}

/* ---- further connections of a client ---- */

/* The number on the ticket of a new connection; 0: it has none, or this is not known yet. */
static unsigned number_of(struct listener *l, struct pending *p, const char *ticket, unsigned count)
{
    struct channel *c = p->channel;
    char shown[PEER_TICKET] = "";
    uint64_t number = 0;
    struct msg hello;
    int status = c->hello && !c->have ? channel_peek(c, FRAME_NONCE, &hello) : 1;
    if (!status && !overdue(c))
        return 0;
    if (status == 1 && c->hello && !c->have && !msg_value(&hello, "ticket", shown, sizeof shown) &&
        bytes_equal((const unsigned char *)shown, (const unsigned char *)ticket, PEER_TICKET) &&
        !msg_number(&hello, "number", &number) && number && number < count)
        return (unsigned)number;
    look_at(l, p);
    return 0;
}

int tcp_collect(struct listener *l, const struct peer_terms *terms, struct peer *first,
                const char *ticket, bool *taken, unsigned count, unsigned *number, int *fd)
{
    uint64_t since_ms = clock_ms();
    uint64_t most_ms = first->timeout_ms > COLLECT_MS ? first->timeout_ms : COLLECT_MS;
    for (;;) {
        int status = peer_alive(first);
        if (!status && clock_ms() - since_ms > most_ms)
            status = fail(-ETIMEDOUT, "the client did not open all of its %u connections", count);
        if (status)
            return status;
        greet_next(l, terms);
        say_more(l);
        for (struct pending *p = l->pending; p < l->pending + l->room; p++) {
            *number = p->channel ? number_of(l, p, ticket, count) : 0;
            if (*number && taken[*number])
                drop(l, p, "its place is taken");
            else if (*number) {
                taken[*number] = true;
                *fd = channel_detach(p->channel);
                p->channel = NULL;
                return 0;
            }
        }
        wait_for_any(l);
    }
}

int tcp_adopt(int fd, const struct peer_terms *terms, struct peer **peer, struct msg *greeting)
{
    struct channel *c;
    int status = channel_open(&c, fd, PEER_SERVER, terms);
    if (status)
        return status;
    status = hello_begin(c, terms->secret);
    while (!status && !(status = greeted(c))) {
        struct pollfd data = {.fd = fd, .events = POLLIN};
        status = names_stopped(terms);
        if (!status)
            poll(&data, 1, NAMES_SLICE_MS);
    }
    if (status < 0)
        channel_close(c);
    else
        *peer = take(c, terms, greeting);
    return status < 0 ? status : 0;
}

void tcp_close(struct listener *l)
{
    if (!l)
        return;
    for (unsigned i = 0; i < l->room; i++)
        channel_close(l->pending[i].channel);
    close(l->fd);
    free(l);
}
