/* SPDX-License-Identifier: BSD-3-Clause */
/* The door of peer: how two ends find each other and agree. Never inside the timing.
 * Every wait ends: by an answer, by the other end's death, by its silence for timeout_ms, or
 * by *stop. An end that waits or works calls peer_alive from time to time, which sends at most four
 * heartbeats per second. */
#ifndef WEFT_PEER_H
#define WEFT_PEER_H

#include "core/core.h"
#include "core/secret.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

enum { PEER_CLIENT = 0, PEER_SERVER = 1 };

/* What else may end every wait: 0, or -errno and its error message. look may be NULL. */
struct peer_watch {
    int (*look)(void *arg);
    void *arg;
};

/* By this a server knows a further connection of a client that it has: what it sent to that one,
 * and a number, from 1. */
enum { PEER_TICKET = 65 };
struct peer_ticket {
    char text[PEER_TICKET];
    unsigned number;
};

struct peer;

struct peer_ops {
    const char *name;
    int (*send)(struct peer *peer, const struct msg *msg);
    /* Waits for the next message. progress, if not NULL, is called during the wait and may end it
     * by returning < 0; > 0: a message may be there, look at once. Without it the wait sleeps. */
    int (*recv)(struct peer *peer, struct msg *msg, int (*progress)(void *), void *arg);
    /* Never waits: 0, or -errno if the other end is gone. */
    int (*alive)(struct peer *peer);
    /* Sleeps until the descriptor is readable, something comes from the other end, or a fraction of
     * a heartbeat has passed. 1: the descriptor alone is; 0: alive or recv is to be called.
     * listens: a message that was read and not yet received is there at once. */
    int (*sleep)(struct peer *peer, int fd, bool listens);
    /* Sends the other end the reason why we leave early. Never fails. */
    void (*end)(struct peer *peer, int status, const char *why);
    void (*close)(struct peer *peer);
};

struct peer {
    const struct peer_ops *ops;
    int rank;            /* PEER_CLIENT or PEER_SERVER */
    const char *other;   /* "server" or "client", for messages */
    uint64_t timeout_ms; /* silence that counts as death */
    char here[64];       /* our numeric address on the way to the other, or "" */
    char there[64];      /* the other's, or "": it is not reached by one */
    bool trusted;  /* the other end is known: it has shown the secret, or one program or launcher
                      started both */
    uint64_t runs; /* how many this end has begun over it */
    uint64_t longest_ms, until_ms; /* this end ends the session then, by clock_ms(); 0: never. See
                                      peer_bound */
    const volatile sig_atomic_t *stop; /* not 0: give up with -EINTR; may be NULL */
    struct peer_watch watch;           /* asked at every look */
    uint64_t quiet_ms; /* not 0: the other end is given up after this long without progress of
                          either end, however alive it is */
    uint64_t done;     /* by peer_progress; heartbeats carry it to the other end */
};

enum { PEER_QUIET_MS = 60000 }; /* for a server over TCP, or its timeout; plus what a run plans */

struct allow;

/* From now on the session lasts no longer than this; 0: as long as it takes. */
void peer_bound(struct peer *peer, uint64_t longest_ms);

/* What every way to connect needs. */
struct peer_terms {
    uint64_t timeout_ms;
    const volatile sig_atomic_t *stop;
    const struct secret *secret;      /* TCP: both ends must show it; NULL: none */
    const struct allow *allow;        /* TCP, server: who may connect; NULL: everybody */
    const struct peer_ticket *ticket; /* TCP, client: NULL: this is its first connection */
    struct peer_watch watch;
};

static inline int peer_send(struct peer *peer, const struct msg *msg)
{
    return peer->ops->send(peer, msg);
}

static inline int peer_recv(struct peer *peer, struct msg *msg, int (*progress)(void *), void *arg)
{
    return peer->ops->recv(peer, msg, progress, arg);
}

static inline int peer_alive(struct peer *peer)
{
    return peer->ops->alive(peer);
}

static inline int peer_sleep(struct peer *peer, int fd, bool listens)
{
    return peer->ops->sleep(peer, fd, listens);
}

/* Something was done: a step, operations, a part of a long piece of work. Only that is progress;
 * keepalives alone are not. */
static inline void peer_progress(struct peer *peer)
{
    __atomic_fetch_add(&peer->done, 1, __ATOMIC_RELAXED); /* a keepalive's thread reads it */
}

/* The same as peer_alive, after something was done. */
static inline int peer_step(struct peer *peer)
{
    peer_progress(peer);
    return peer_alive(peer);
}

static inline void peer_end(struct peer *peer, int status, const char *why)
{
    peer->ops->end(peer, status, why);
}

static inline void peer_close(struct peer *peer)
{
    if (peer)
        peer->ops->close(peer);
}

/* Sends a msg and receives the other end's. */
int peer_swap(struct peer *peer, const struct msg *mine, struct msg *theirs);

/* A barrier: both ends send the same word. */
int peer_barrier(struct peer *peer, const char *word, int (*progress)(void *), void *arg);

/* Heartbeats from a second thread while this one does something that may take seconds and does not
 * use the peer: a call into a vendor library, output to a slow reader. Short work causes none. An
 * error that the thread finds is found again by the next call on the peer. The heartbeats stop
 * after most_ms, unless that is 0: a reader may be slow, but a library that takes longer hangs, and
 * the other end must not wait for it. */
enum { KEEPALIVE_LIBRARY_MS = 60000 };
struct keepalive {
    struct peer *peer;
    unsigned most_ms;
    pthread_t thread;
    int over; /* readable when the thread must end; -1: there is no thread */
    atomic_int state;
    atomic_uint turns;
};
void keepalive_begin(struct keepalive *keepalive, struct peer *peer, unsigned most_ms);
void keepalive_end(struct keepalive *keepalive);
/* In between: from here on this thread uses the peer itself; it is busy again, for most_ms. */
void keepalive_rest(struct keepalive *keepalive);
void keepalive_work(struct keepalive *keepalive);

/* ---- ways to connect ---- */

/* Two threads of one process. */
int peer_threads(struct peer *pair[2], const struct peer_terms *terms);

/* A peer over any carrier that passes messages between two ends in order: heartbeats, the final
 * message and deadlines are added here. Neither function may wait. -ECONNRESET, the other end is
 * gone, needs no error message; every other failure has one. */
struct peer_carrier {
    void *arg;
    int (*publish)(void *arg, const void *bytes, size_t length); /* 0, -EAGAIN (no room), -errno */
    /* 1 and a message, 0 if there is none yet, or -errno: none will come. */
    int (*receive)(void *arg, void *bytes, size_t room, size_t *length);
    /* Makes sure that published messages arrive, if the other end still receives. May be NULL. */
    void (*close)(void *arg);
    /* The carrier is used again after this peer: close waits for the other end's final message, so
     * that nothing of this peer is left in it. */
    bool lasts;
};
enum { CARRIER_MAX = MSG_MAX + 16 }; /* no message is longer */
/* On success the peer owns the carrier; on failure the caller still does. */
int peer_relay(struct peer **peer, const struct peer_carrier *carrier, int rank,
               const struct peer_terms *terms);

/* One connection for several threads of an end, each with a peer of its own: what share i sends,
 * share i of the other end receives. Both ends open as many, and use nothing else of the connection
 * until both are done with them. The first that leaves early ends the connection, and with it all;
 * closing leaves it open. */
struct peer_shares;
int peer_shares_open(struct peer_shares **shares, struct peer *whole, unsigned count);
struct peer *peer_share(struct peer_shares *shares, unsigned number);
void peer_shares_close(struct peer_shares *shares);

/* Was this process started by an MPI launcher? */
bool mpi_launched(void);

/* The other of the two ranks; rank 1 is the client. The module for the launcher's MPI is loaded. */
int peer_mpi(struct peer **peer, const struct peer_terms *terms);

/* The networks that may connect, from "10.0.0.0/8,fe80::/10,10.1.2.3"; what is the option's name,
 * for the sentence. */
enum { ALLOW_MAX = 64 };
struct allow {
    int count;
    struct allow_network {
        unsigned char bytes[16]; /* IPv4 as in ::ffff:0:0/96 */
        unsigned bits;
        bool four;
    } networks[ALLOW_MAX];
};
int allow_parse(struct allow *allow, const char *text, const char *what);

/* TCP, IPv4 and IPv6. Both ends exchange nonces first; if they share a secret, every message after
 * that carries a code by which changed, repeated and reordered messages are noticed, and the ends
 * are trusted. A listener accepts one client after another. A connection that does not greet as a
 * Weft client within five seconds, or does not show the secret, is dropped with a warning and does
 * not delay a real client. */
struct listener;
/* bind_address may be a name, which is looked up for five seconds at most, or until *stop. NULL:
 * that of WEFT_BIND, if it is set; "": all addresses. */
int tcp_listen(struct listener **listener, const char *bind_address, unsigned port,
               const struct peer_terms *terms);
unsigned tcp_port(const struct listener *listener);
/* The address it listens on, for people: "127.0.0.1", "all addresses". */
const char *tcp_address(const struct listener *listener);
/* Waits for a client's greeting until *stop, without a deadline. */
int tcp_accept(struct listener *listener, const struct peer_terms *terms, struct peer **peer,
               struct msg *greeting);
/* Waits for a further connection of the client first: it shows the ticket with a number below count
 * that is not in taken, and is entered there. Nothing is read from it: *fd can go to another
 * process, for tcp_adopt. Other clients stay in the queue. */
int tcp_collect(struct listener *listener, const struct peer_terms *terms, struct peer *first,
                const char *ticket, bool *taken, unsigned count, unsigned *number, int *fd);
/* The server's end of a connection that was accepted elsewhere, from its first byte on. */
int tcp_adopt(int fd, const struct peer_terms *terms, struct peer **peer, struct msg *greeting);
/* A warning about a stranger, "what: why". Strangers must not fill a log: of many in a short time
 * only some are said, and the others counted. */
void tcp_warn(struct listener *listener, const char *what, const char *why);
void tcp_close(struct listener *listener);

/* Tries for wait_ms to reach a server, and then for timeout_ms to be heard; the first message sent
 * is the greeting. A server that has no secret is refused if this end has one. */
int tcp_dial(struct peer **peer, const char *address, unsigned port, uint64_t wait_ms,
             const struct peer_terms *terms);

/* The error message about a server that took the connection and says nothing: -ETIMEDOUT. */
int tcp_unanswered(uint64_t timeout_ms);

#endif
