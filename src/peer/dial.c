/* SPDX-License-Identifier: BSD-3-Clause */
/* TCP, the client: connecting until the server is up. */
#include "core/clock.h"
#include "peer/names.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

enum { RETRY_MS = 50, PROCESS_MS = 10000 };

static bool reached_itself(int fd)
{
    struct sockaddr_storage here = {0}, there = {0};
    socklen_t here_length = sizeof here, there_length = sizeof there;
    return !getsockname(fd, (struct sockaddr *)&here, &here_length) &&
           !getpeername(fd, (struct sockaddr *)&there, &there_length) &&
           here_length == there_length && memcmp(&here, &there, here_length) == 0;
}

/* stopped: why it is to end, if it is. */
static int connect_one(const struct addrinfo *to, uint64_t until_ms, const struct peer_terms *terms,
                       int *stopped)
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
        int n = poll(&ready, 1, NAMES_SLICE_MS);
        if (n > 0) {
            getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
            break;
        }
        *stopped = names_stopped(terms);
        if (*stopped)
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
                       const struct peer_terms *terms, int *stopped)
{
    int fd = -EHOSTUNREACH;
    unsigned left = 0;
    for (const struct addrinfo *at = found; at; at = at->ai_next)
        left++;
    for (const struct addrinfo *at = found; at && fd < 0 && !*stopped; at = at->ai_next) {
        uint64_t now_ms = clock_ms();
        uint64_t share_ms = until_ms > now_ms ? (until_ms - now_ms) / left : 0;
        fd = connect_one(at, now_ms + share_ms, terms, stopped);
        left--;
    }
    return fd;
}

int tcp_unanswered(uint64_t timeout_ms)
{
    return fail(-ETIMEDOUT,
                "the server took the connection but did not answer within %g s: busy with another "
                "client, or no Weft server",
                (double)timeout_ms / 1000);
}

/* Exchanges the nonces. The server may be busy, or none. For a further connection it starts a
 * process first. */
static int say_hello(struct channel *c, const struct peer_terms *terms)
{
    uint64_t since_ms = clock_ms(), most_ms = terms->timeout_ms;
    if (terms->ticket && most_ms < PROCESS_MS)
        most_ms = PROCESS_MS;
    int status = hello_begin(c, terms->secret);
    while (!status && !(status = hello_ready(c))) {
        struct pollfd data = {.fd = c->fd, .events = POLLIN};
        status = names_stopped(terms);
        if (!status && clock_ms() - since_ms > most_ms)
            status = tcp_unanswered(most_ms);
        if (!status)
            poll(&data, 1, RETRY_MS);
    }
    if (status < 0 && status != -ECONNRESET)
        channel_farewell(c, status, fail_reason());
    return status == 1 ? 0 : status;
}

int tcp_dial(struct peer **peer, const char *address, unsigned port, uint64_t wait_ms,
             const struct peer_terms *terms)
{
    uint64_t until_ms = clock_ms() + wait_ms;
    struct addrinfo *found;
    struct channel *c;
    int on = 1, stopped = 0;
    /* A name lookup needs some time even with a wait of 0. */
    uint64_t name_ms = wait_ms > 1000 ? until_ms : until_ms + 1000;
    int status = names_resolve(address, port, name_ms, terms, &found);
    if (status)
        return status;
    int fd = connect_any(found, until_ms, terms, &stopped);
    while (fd < 0 && !stopped && clock_ms() < until_ms) {
        poll(NULL, 0, RETRY_MS);
        stopped = names_stopped(terms);
        if (!stopped)
            fd = connect_any(found, until_ms, terms, &stopped);
    }
    freeaddrinfo(found);
    if (stopped)
        return stopped;
    if (fd < 0)
        return fail(-ECONNREFUSED, "no server at %s port %u after %g s: %s", address, port,
                    (double)wait_ms / 1000, strerror(-fd));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    status = channel_open(&c, fd, PEER_CLIENT, terms);
    if (status)
        return status;
    c->greets = true;
    c->ticket = terms->ticket;
    names_note(c);
    status = say_hello(c, terms);
    if (status)
        channel_close(c);
    else
        *peer = &c->peer;
    return status;
}
