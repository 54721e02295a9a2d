/* SPDX-License-Identifier: BSD-3-Clause */
/* One of two ranks: mpi_pair WHAT. Prints lines on stdout and the reason of a failure on stderr.
 * talk: swaps, meets and sends messages of all lengths; wait: hears until something ends it;
 * end: the client leaves with last words; slow: the client takes its time to close. */
#include "peer/peer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MESSAGES = 1000 };

static volatile sig_atomic_t stop;

static void on_signal(int number)
{
    stop = number;
}

static size_t length_of(int number)
{
    return (size_t)number * 7919 % MSG_MAX;
}

static void fill(struct msg *msg, int number)
{
    msg->length = length_of(number);
    memset(msg->bytes, number & 0xff, msg->length);
}

static int expect(struct peer *peer, int number)
{
    struct msg msg, wanted;
    int status = peer_recv(peer, &msg, NULL, NULL);
    if (status)
        return status;
    fill(&wanted, number);
    if (msg.length != wanted.length || memcmp(msg.bytes, wanted.bytes, msg.length) != 0)
        return fail(-EPROTO, "message %d is not what was told", number);
    return 0;
}

/* Bursts, so that more is under way than is heard. */
static int send_many(struct peer *peer)
{
    int status = 0;
    for (int first = 0; !status && first < MESSAGES; first += 4) {
        for (int i = first; !status && i < first + 4; i++) {
            struct msg msg;
            fill(&msg, i);
            status = peer_send(peer, &msg);
        }
        for (int i = first; !status && i < first + 4; i++)
            status = expect(peer, i);
    }
    return status;
}

static int nothing_to_do(void *arg)
{
    (void)arg;
    return 0;
}

static int talk(struct peer *peer)
{
    struct msg mine, theirs;
    int status = msg_print(&mine, "%s", peer->rank == PEER_CLIENT ? "client" : "server");
    if (!status)
        status = peer_swap(peer, &mine, &theirs);
    if (!status && strcmp(theirs.bytes, peer->other) != 0)
        status = fail(-EPROTO, "the %s says it is the %s", peer->other, theirs.bytes);
    for (int i = 0; !status && i < 100; i++)
        status = peer_barrier(peer, "here", i % 2 ? nothing_to_do : NULL, NULL);
    if (!status)
        status = send_many(peer);
    if (!status)
        status = peer_alive(peer);
    return status ? status : peer_barrier(peer, "done", NULL, NULL);
}

static int wait_for_ever(struct peer *peer)
{
    struct msg msg;
    printf("waiting %d\n", (int)getpid());
    fflush(stdout);
    return peer_recv(peer, &msg, NULL, NULL);
}

static int leave_early(struct peer *peer)
{
    struct msg msg;
    if (peer->rank == PEER_CLIENT)
        return fail(-EIO, "broken on purpose");
    return peer_recv(peer, &msg, NULL, NULL);
}

static int act(struct peer *peer, const char *what)
{
    if (strcmp(what, "wait") == 0)
        return wait_for_ever(peer);
    if (strcmp(what, "end") == 0)
        return leave_early(peer);
    int status = talk(peer);
    if (!status && strcmp(what, "slow") == 0 && peer->rank == PEER_CLIENT)
        sleep(5);
    return status;
}

int main(int argc, char **argv)
{
    /* What only talks must stand a busy machine; the others are about the timeout. */
    bool talks = argc > 1 && strcmp(argv[1], "talk") == 0;
    const struct peer_terms terms = {.timeout_ms = talks ? 20000 : 4000, .stop = &stop};
    const struct sigaction action = {.sa_handler = on_signal};
    struct sigaction now;
    struct peer *peer = NULL;
    setvbuf(stdout, NULL, _IOLBF, 0);
    sigaction(SIGTERM, &action, NULL);
    int status = argc == 2 ? 0 : fail(-EINVAL, "one word is wanted");
    if (!status && !mpi_launched())
        status = fail(-EINVAL, "not launched");
    if (!status)
        status = peer_mpi(&peer, &terms);
    sigaction(SIGTERM, NULL, &now);
    if (!status && now.sa_handler != on_signal)
        status = fail(-EIO, "SIGTERM is not ours any more");
    if (!status)
        status = act(peer, argv[1]);
    const char *rank = peer && peer->rank == PEER_CLIENT ? "client" : "server";
    if (status && peer)
        peer_end(peer, status, fail_reason());
    /* A launcher may end the job as soon as one rank has left: what is to be said comes first. */
    if (status)
        fprintf(stderr, "mpi_pair: %s\n", fail_reason());
    peer_close(peer);
    if (!status)
        printf("%s done\n", rank);
    return status ? 1 : 0;
}
