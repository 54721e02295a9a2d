/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside tool: several pairs of processes that measure together (--procs, -d A,B). At each end the
 * process that the user started is pair 0; it starts this program again for every other pair. The
 * processes of an end are a team (bench/team.h), in a page of memory that they share. */
#ifndef WEFT_TOOL_PAIRS_H
#define WEFT_TOOL_PAIRS_H

#include "bench/team.h"
#include "tool/access.h"

#include <sys/types.h>

struct pairs_page;

struct pairs {
    struct team_member member; /* measure with its report */
    struct pairs_page *page;   /* NULL: there is one pair */
    int fd;
    unsigned count;
    char **argv;
    int connection;            /* a server's, for a pair other than 0; -1: none */
    pid_t children[TEAM_MOST]; /* 0: none, or it has ended */
};

/* Was this process started for one pair of others? 1, and then its member, count and the rest are
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

/* Makes sure that the other processes have ended, which they do early if status is not 0. Returns
 * the status, or that of the pair that failed first, with its sentence. */
int pairs_close(struct pairs *pairs, int status);

#endif
