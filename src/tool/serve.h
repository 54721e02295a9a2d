/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside tool: how a client reaches a server, and a server takes clients. */
#ifndef WEFT_TOOL_SERVE_H
#define WEFT_TOOL_SERVE_H

#include "bench/session.h"

#include <stdio.h>

/* How this process takes part: a client of address, a server, or both. */
struct role {
    const char *address; /* NULL: a server, or local */
    bool local, loop;
    uint64_t port;
    int64_t server_cpu; /* -1: not given */
    bool member;        /* pair 0 was started with the same options, and has the secret */
};

/* What is wrong with it, in a sentence; warns of options that have no effect in it. */
int role_check(const struct role *role, const struct opt_set *set);

struct access;
struct pairs;

struct service {
    const char *bind; /* "": that of WEFT_BIND, or all addresses */
    const struct access *access;
    const char *device; /* whose fabric this user named, or "" */
    unsigned port;
    bool loop; /* one client after another */
    uint64_t timeout_ms;
    struct pairs
        *pairs; /* of the client that was agreed with; NULL: there is never more than one */
    void *arg;
    /* Takes over what the client's greeting asks for, or says why not: it is then refused, and the
     * server still waits for one it can serve. What it adds to the answer the client hears. */
    int (*agree)(void *arg, struct peer *peer, const struct msg *greeting, struct msg *answer);
    /* answered: 0, or why the client could not be told so; then there is nothing more to say. */
    int (*serve)(void *arg, struct peer *peer, int answered);
};

int serve_clients(const struct service *service);

/* Its first half: a port, with a line on standard error about who may come; and the line with its
 * number. */
int serve_listen(const struct service *service, const struct peer_terms *terms,
                 struct listener **listener);
int serve_say_port(const struct listener *listener);

/* The next serve_clients of this process serves this client, which has greeted already, and then
 * returns. */
void serve_hand(struct peer *peer, const struct msg *greeting);

/* One client, on a connection that another process of this server has accepted. */
int serve_connection(const struct service *service, int fd);

/* The same, but all that it is told is this failure. */
void serve_refusal(const struct service *service, int fd, int status);

/* Standard output of a server: a reader that has gone, as `server | head -1` does, does not end it,
 * and what nobody reads is dropped. */
FILE *serve_output(void);

/* The rows of a server's bounds: a struct bounds at this offset of what the rows fill. */
/* clang-format off */
#define BOUNDS_ROWS(offset, who)                                                                   \
    {.name = "max-memory", .type = OPT_AMOUNT, .field = (offset) + offsetof(struct bounds, memory), \
     .min = 1, .max = UINT64_MAX, .word = "SIZE", .takes = (who), .flags = OPT_OURS,                \
     .help = "Server: refuse clients whose run needs more memory\n"                                 \
             "here (default: a quarter of what is available)"},                                     \
    {.name = "max-session", .type = OPT_NUMBER,                                                     \
     .field = (offset) + offsetof(struct bounds, session_ms), .scale = 1000, .min = 1,              \
     .max = 100000000, .word = "SEC", .takes = (who), .flags = OPT_OURS,                            \
     .help = "Server: end a client's session after this long\n"                                     \
             "(default: no limit)"}
/* clang-format on */

/* Dials, greets, and hears that the server agrees. */
struct visit {
    const char *address;
    const struct access *access;
    unsigned port;
    uint64_t wait_ms, timeout_ms;
    const struct peer_ticket *ticket; /* of a further pair; NULL: the first, or the only one */
    struct peer *peer;                /* that is there already; NULL: it is dialled */
    struct peer_watch watch;
};
int visit_server(const struct visit *visit, const struct msg *greeting, struct msg *answer,
                 struct peer **peer);

#endif
