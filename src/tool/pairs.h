/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside tool: several pairs of processes that measure together (--procs, -d A,B). At each end the
 * process that the user started is pair 0; it starts this program again for every other pair. The
 * processes of an end share a page of memory: where they meet, what each measured, and why the
 * first of them failed, which ends all. */
#ifndef WEFT_TOOL_PAIRS_H
#define WEFT_TOOL_PAIRS_H

#include "tool/access.h"

#include <sys/types.h>

enum { PAIRS_MOST = 128 };

struct pairs_page;

struct pairs {
    struct report report;    /* measure with this: it hands in what this pair measured, and pair 0
                                passes the sum on */
    struct report *sum;      /* pair 0: to here */
    struct pairs_page *page; /* NULL: there is one pair */
    int fd;
    unsigned number, count, devices; /* this pair; how many; on so many devices */
    char **argv;
    int connection; /* a server's, for a pair other than 0; -1: none */
    uint64_t looked_ms, timeout_ms;
    pid_t children[PAIRS_MOST]; /* 0: none, or it has ended */
    struct result held;         /* pair 0: of a run cut short, its own row */
    bool cut_short, begun;      /* begun: the sum's report knows of the run */
    struct stats *merged;
    struct part list[PAIRS_MOST];
    struct parts parts;
    struct counters *counters; /* pair 0: of both ends, once for all pairs on the same devices */
};

/* Was this process started for one pair of others? 1, and then number, count and the rest are
 * known; 0: no. */
int pairs_join(struct pairs *pairs);

/* This is pair 0 of so many. argv is what the other processes are started with. */
int pairs_open(struct pairs *pairs, unsigned count, char **argv);

/* What the other pairs need to know: the secret, and at a client the server's place. */
void pairs_share(struct pairs *pairs, const struct access *access, const char *address,
                 unsigned port);
void pairs_access(const struct pairs *pairs, struct access *access);
const char *pairs_place(const struct pairs *pairs, unsigned *port);

/* The CPU and the device of a pair, for its process and for documents; -1: any CPU. */
void pairs_assign(struct pairs *pairs, unsigned number, int64_t cpu, const char *device);
int64_t pairs_cpu(const struct pairs *pairs);

/* The text of the ticket by which the server knows the other connections. */
char *pairs_ticket(struct pairs *pairs);

/* Client: starts the processes of the other pairs. Server: waits for their connections, and starts
 * a process for each. */
int pairs_start(struct pairs *pairs);
int pairs_gather(struct pairs *pairs, struct listener *listener, const struct peer_terms *terms,
                 struct peer *first);

/* Waits until all pairs of this end have come here; peer is this one's other end. */
int pairs_meet(struct pairs *pairs, struct peer *peer);

/* For every wait, a struct peer_watch's: the failure of another pair. */
int pairs_watch(void *pairs);

/* Makes sure that the other processes have ended, which they do early if status is not 0. Returns
 * the status, or that of the pair that failed first, with its sentence. */
int pairs_close(struct pairs *pairs, int status);

#endif
