/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside tool: the two ranks of a launcher as the two ends of a tool. Rank 0 is the server, and
 * rank 1 the client, which alone prints results. */
#ifndef WEFT_TOOL_RANKS_H
#define WEFT_TOOL_RANKS_H

#include "peer/launch.h"
#include "tool/access.h"

struct ranks {
    struct seat seat;
    struct group *group;
    struct peer *peer; /* the other rank, once they have met */
    bool found;        /* a launcher has started this process */
};

/* Looks for a launcher. */
int ranks_find(struct ranks *ranks);
/* Other than two ranks are refused, and several pairs. What is wrong with a command line every rank
 * finds: rank 0 says it, the others exit. */
int ranks_check(struct ranks *ranks, int status, bool several);
/* Where a client's rank finds its server, for people. */
extern const char ranks_server[];

static inline bool ranks_client(const struct ranks *ranks)
{
    return ranks->found && ranks->seat.rank == 1;
}

/* Both ends have read their command line: they meet. Standard output of the server goes nowhere
 * from now on. */
int ranks_meet(struct ranks *ranks, const struct access *access, uint64_t timeout_ms,
               uint64_t wait_ms);

/* Server: waits for the client's greeting and hands it to serve_clients. wrong: not 0 if it cannot
 * serve, which the client is then told. */
int ranks_serve(struct ranks *ranks, int wrong);

/* After the peer. What the server failed of, the client was told and says: the server exits. */
int ranks_end(struct ranks *ranks, int status);

#endif
