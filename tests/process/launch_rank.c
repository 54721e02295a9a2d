/* SPDX-License-Identifier: BSD-3-Clause */
/* One rank of a group under any launcher, for launch_test.py.
 *   launch_rank [--local N | --hosts LIST AGENT | --member] [ROUNDS PAUSE_MS [HOW RANK ROUND]]
 * HOW: kill, stop. The root prints who is there, what they said, and who was lost. */
#include "peer/launch.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TIMEOUT_MS = 2000, WAIT_MS = 30000 };

struct plan {
    uint32_t rounds, pause_ms, rank, round;
    int how;
};

static volatile sig_atomic_t stop;

static void on_signal(int number)
{
    (void)number;
    stop = 1;
}

static int complain(int status)
{
    fprintf(stderr, "launch_rank: %s\n", fail_reason());
    return status == -EINTR ? 130 : 1;
}

static int show(void *arg, const struct group_value *values, struct group_value *answer)
{
    struct group *group = arg;
    (void)answer;
    for (uint32_t i = 0; i < group_size(group); i++)
        if (values[i].bytes)
            printf("rank %u on %s in \"%s\": %.*s\n", i, group_node(group, i),
                   group_label(group, i), (int)values[i].length, (const char *)values[i].bytes);
    return 0;
}

/* Neighbours meet, round by round. */
static int take_part(struct group *group, const struct plan *plan)
{
    char text[32];
    uint32_t rank = group_rank(group), other = rank ^ 1U, met = 0;
    int status = 0;
    for (uint32_t round = 1; round <= plan->rounds && !status; round++) {
        struct peer *peer = NULL;
        usleep(plan->pause_ms * 1000);
        if (plan->how && plan->rank == rank && plan->round == round)
            kill(getpid(), plan->how);
        if (group_measures(group) && group_alive(group, other) &&
            !group_meet(group, other, rank & 1 ? PEER_CLIENT : PEER_SERVER, round, 1000, &peer)) {
            met += !peer_barrier(peer, "here", NULL, NULL);
            peer_close(peer);
        }
        status =
            group_turn(group, plan->pause_ms + 1000 + TIMEOUT_MS, round, NULL, NULL, NULL, NULL);
    }
    snprintf(text, sizeof text, "met %u", met);
    const struct group_value mine = {text, strlen(text)};
    return status ? status : group_turn(group, 1000, plan->rounds, &mine, show, group, NULL);
}

static int run(struct seat *seat, const struct plan *plan)
{
    const struct launch_terms terms = {
        .timeout_ms = TIMEOUT_MS, .wait_ms = WAIT_MS, .stop = &stop, .guard = true};
    struct group *group = NULL;
    int status = launch_group(seat, &terms, &group);
    if (!status)
        status = take_part(group, plan);
    for (uint32_t i = 0; !status && seat->root && i < group_deaths(group); i++) {
        const struct group_death *death = group_death(group, i);
        printf("lost rank %u in round %u: %s\n", death->rank, death->round, death->reason);
    }
    if (!status && seat->root)
        printf("%u ranks by %s%s\n", seat->size, seat->launcher->name,
               launch_secret(seat, &terms) ? ", with a secret" : "");
    fflush(stdout);
    if (!status || group)
        group_leave(group, status);
    int code = status ? complain(status) : 0;
    launch_end(seat);
    return code;
}

static uint32_t number_at(char **argv, int argc, int at)
{
    return at < argc ? (uint32_t)strtoul(argv[at], NULL, 10) : 0;
}

int main(int argc, char **argv)
{
    struct seat seat;
    int status, at = 1;
    const char *how = argc > 1 ? argv[1] : "";
    if (strcmp(how, "--local") == 0 && argc > 2) {
        at = 3;
    } else if (strcmp(how, "--hosts") == 0 && argc > 3) {
        at = 4;
    } else if (strcmp(how, "--member") == 0) {
        at = 2;
    }
    struct plan plan = {.rounds = number_at(argv, argc, at),
                        .pause_ms = number_at(argv, argc, at + 1),
                        .rank = number_at(argv, argc, at + 3),
                        .round = number_at(argv, argc, at + 4)};
    if (at + 4 < argc)
        plan.how = strcmp(argv[at + 2], "stop") == 0 ? SIGSTOP : SIGKILL;
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    if (at == 3) {
        status = launch_local(&seat, number_at(argv, argc, 2));
    } else if (at == 4) {
        char *member[16] = {argv[0], "--member"};
        for (int i = 4; i < argc && i < 14; i++)
            member[i - 2] = argv[i];
        status = launch_hosts(&seat, argv[2], argv[3], member);
    } else {
        status = at == 2 ? launch_member(&seat) : launch_find(&seat);
    }
    if (status == -ENOENT)
        fail(status, "nobody has launched this");
    return status ? complain(status) : run(&seat, &plan);
}
