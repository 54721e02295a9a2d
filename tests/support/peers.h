/* SPDX-License-Identifier: BSD-3-Clause */
/* Ends of peers that act in threads of their own, are stopped by signals, or are plain
 * descriptors. */
#ifndef WEFT_TEST_PEERS_H
#define WEFT_TEST_PEERS_H

#include "peer/channel.h"
#include "support/unit.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

enum { SHORT_MS = 200, LONG_MS = 20000, BOUND_MS = 5000 };

/* Ends every wait once it is set; stop_after_ms sets it from a signal, as the tools do. */
extern volatile sig_atomic_t stop;
void stop_after_ms(unsigned ms);

/* One end that acts in a thread of its own, and what became of it. */
struct actor {
    struct peer *peer;
    const char *word;
    int (*act)(struct actor *actor);
    struct msg msg;
    int status;
    char reason[256];
    pthread_t thread;
};

void start(struct actor *actor);
void join(struct actor *actor);
void *act(void *arg); /* in this thread */

int act_swap(struct actor *actor);  /* its word against msg */
int act_meet(struct actor *actor);  /* a hundred times at its word */
int act_hear(struct actor *actor);  /* one message into msg */
int act_alive(struct actor *actor); /* until the other end is not */
int act_fill(struct actor *actor);  /* sends until it may not */

void print_msg(struct msg *msg, const char *text);

/* What the client sends is what the server hears. */
void assert_carried(struct peer *pair[2], const struct msg *sent);
/* The other end does not listen, and the timeout is SHORT_MS. */
void assert_sending_times_out(struct peer *peer);

/* Progress of a wait at "here": in its 3000th call the other end comes there. */
struct spinning {
    struct peer *other;
    int calls;
};
int answer_after_a_while(void *arg);

/* A channel whose other end is a plain descriptor, and bytes into that. */
struct channel *half_channel(int *other, uint64_t timeout_ms);
bool give(int fd, const char *bytes, size_t length);

/* ---- over TCP ---- */

/* Around a test: warnings are collected, and *stop is not set. */
enum { WARNINGS = 65536 };
extern char warnings[WARNINGS];
int begin_tcp(void **state);
int end_tcp(void **state);
extern const struct peer_terms patient;

/* A port of the kernel's choice. */
struct listener *listen_at(const char *address);

/* A client in a thread of its own: the server must answer before it can greet. */
struct dialling {
    const char *address, *word;
    unsigned port;
    const struct secret *secret;
    struct dialling *first; /* dials before this one, and hears its answer */
    struct peer *peer;
    int status;
    char reason[256];
    pthread_t thread;
};
struct dialling begin_dialling(const char *address, unsigned port, const char *word);
void start_dialling(struct dialling *dialling);
struct peer *end_dialling(struct dialling *dialling);

#endif
