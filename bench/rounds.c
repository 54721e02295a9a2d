/* SPDX-License-Identifier: BSD-3-Clause */
/* What a round of a group costs: rounds DEVICE RANKS ROUNDS. Each rank has its device open; in a
 * round it leaves its partner, connects to another one, sends a single message, and all take a
 * turn. Prints milliseconds per round at rank 0, one line each. */
#include "bench/session.h"
#include "core/clock.h"
#include "peer/launch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TIMEOUT_MS = 10000 };

static int check(int status)
{
    if (status < 0) {
        fprintf(stderr, "rounds: %s\n", fail_reason());
        exit(1);
    }
    return status;
}

static int choice(const char *const *names, const char *name)
{
    int i = 0;
    while (strcmp(names[i], name) != 0)
        i++;
    return i + 1;
}

/* The circle method: the last rank stays, the others go round. */
static uint32_t partner(uint32_t rank, uint32_t round, uint32_t ranks)
{
    uint32_t turn = ranks - 1, place = rank == turn ? turn : (rank + round) % turn;
    if (place == turn)
        return (turn - round % turn) % turn;
    if (place == 0)
        return turn;
    return (turn - place + turn - round % turn) % turn;
}

static void take_round(struct group *group, struct session *session, const struct offer *offer,
                       const struct spec *wanted, uint32_t round)
{
    uint32_t rank = group_rank(group), other = partner(rank, round, group_size(group));
    struct spec spec = *wanted;
    struct peer *peer = NULL;
    check(group_meet(group, other, rank < other ? PEER_CLIENT : PEER_SERVER, round, TIMEOUT_MS,
                     &peer));
    session_turn(session, peer);
    check(session_run(session, offer, &spec, 0, NULL));
    session_turn(session, NULL);
    peer_close(peer);
    check(group_turn(group, TIMEOUT_MS, round, NULL, NULL, NULL, NULL));
}

int main(int argc, char **argv)
{
    struct seat seat;
    struct group *group = NULL;
    struct session session;
    struct spec spec;
    const struct launch_terms terms = {.timeout_ms = TIMEOUT_MS, .wait_ms = TIMEOUT_MS};
    if (argc != 4)
        return 2;
    uint32_t ranks = (uint32_t)strtoul(argv[2], NULL, 10);
    uint32_t rounds = (uint32_t)strtoul(argv[3], NULL, 10);
    const struct offer offer = {
        .device = argv[1], .given = true, .vouched = true, .members = ranks, .service = 1};
    if (ranks < 2 || ranks % 2)
        return 2;
    spec_defaults(&spec);
    spec.op = choice(op_names, "send");
    spec.method = choice(method_names, "latency");
    spec.size = (struct opt_range){8, 8};
    spec.count.iterations = 1;
    spec.count.warmup = 0;
    spec_settle(&spec);
    check(launch_local(&seat, ranks));
    check(launch_group(&seat, &terms, &group));
    memory_keep_freed(); /* as weft map does */
    session_init(&session);
    check(session_prepare(&session, &offer, &spec, true));
    take_round(group, &session, &offer, &spec, 0); /* opens what is opened once */
    for (uint32_t round = 1; round <= rounds; round++) {
        uint64_t since_ns = clock_ns();
        take_round(group, &session, &offer, &spec, round);
        if (seat.root)
            printf("%.3f\n", (double)(clock_ns() - since_ns) / 1e6);
    }
    fflush(stdout);
    session_close(&session, 0);
    group_leave(group, 0);
    launch_end(&seat);
    return 0;
}
