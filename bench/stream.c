/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages one way as fast as they go, as many under way as the fabric takes: millions a second.
 * stream DEVICE SIZE CPU,CPU. The receiver is a child process; what counts is what it has taken. */
#include "bench/bench.h"
#include "core/clock.h"
#include "core/cpu.h"
#include "fabric/choose.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MESSAGES = 4000000, RECEIVES = 64, REGION_BYTES = 1 << 20 };

struct end {
    struct fabric_choice choice;
    struct fabric *handle;
    struct fabric_facts facts;
    struct region region;
    struct remote remote;
    struct peer *peer;
    size_t size;
};

static int check(int status)
{
    if (status < 0) {
        fprintf(stderr, "stream: %s\n", fail_reason());
        exit(1);
    }
    return status;
}

static void join(struct end *end, const char *device, struct peer *peer)
{
    struct msg mine, theirs, key, their_key;
    struct fabric_want want = {.here = "", .service = 1, .server = peer->rank == PEER_SERVER};
    const struct fabric_meeting meeting = {
        .nonce = "stream", .address = &theirs, .keys = &their_key, .count = 1};
    end->peer = peer;
    check(fabric_choose(device, &end->choice));
    want.device = end->choice.device;
    check(fabric_open(end->choice.ops, &end->handle, &want, &end->facts));
    check(memory_host.alloc(&end->region, REGION_BYTES, &memory_host));
    check(memory_host.populate(&end->region, 0, REGION_BYTES));
    check(end->choice.ops->expose(end->handle, &end->region, &key));
    check(end->choice.ops->address(end->handle, &mine));
    check(peer_swap(peer, &mine, &theirs));
    check(peer_swap(peer, &key, &their_key));
    while (check(end->choice.ops->connect(end->handle, &meeting, &end->remote)) != DONE)
        check(peer_alive(peer));
}

static void leave(struct end *end)
{
    end->choice.ops->withdraw(end->handle, &end->region);
    end->choice.ops->close(end->handle);
    memory_host.free(&end->region);
}

static void receive(struct end *end)
{
    struct xfer post = {.local = &end->region, .length = end->size};
    for (int i = 0; i < RECEIVES; i++)
        check(end->choice.ops->recv(end->handle, &post));
    check(peer_barrier(end->peer, "ready", NULL, NULL));
    for (int taken = 0; taken < MESSAGES;) {
        struct completion completions[16];
        int got = check(end->choice.ops->poll(end->handle, completions, 16));
        for (int i = 0; i < got; i++)
            check(end->choice.ops->recv(end->handle, &post));
        taken += got;
    }
    check(peer_barrier(end->peer, "taken", NULL, NULL));
}

static void send_all(struct end *end)
{
    struct completion completion;
    struct xfer x = {
        .local = &end->region, .length = end->size, .how = HINT(LL) & end->facts.honours};
    if (end->size <= end->facts.max_inline)
        x.how |= HINT(INLINE) & end->facts.honours;
    check(peer_barrier(end->peer, "ready", NULL, NULL));
    uint64_t since_ns = clock_raw_ns();
    for (int sent = 0; sent < MESSAGES;) {
        int got = end->choice.ops->send(end->handle, &x);
        if (got == -EAGAIN)
            check(end->choice.ops->poll(end->handle, &completion, 1));
        else if (check(got) >= 0)
            sent++;
    }
    check(peer_barrier(end->peer, "taken", NULL, NULL));
    double seconds = (double)(clock_raw_ns() - since_ns) / 1e9;
    printf("%.2f M/s\n", MESSAGES / seconds / 1e6);
}

int main(int argc, char **argv)
{
    static const struct peer_terms terms = {.timeout_ms = 20000};
    struct peer *pair[2];
    struct end end = {0};
    uint64_t size = 0;
    int target, initiator, how;
    if (argc != 4 || unit_bytes(argv[2], &size) || size > REGION_BYTES ||
        sscanf(argv[3], "%d,%d", &target, &initiator) != 2) {
        fprintf(stderr, "usage: stream DEVICE SIZE TARGET,INITIATOR\n");
        return 2;
    }
    end.size = (size_t)size;
    check(peer_threads(pair, &terms));
    pid_t child = fork();
    int rank = child == 0 ? PEER_SERVER : PEER_CLIENT;
    peer_close(pair[!rank]);
    check(cpu_pin(rank == PEER_SERVER ? target : initiator));
    join(&end, argv[1], pair[rank]);
    if (rank == PEER_SERVER)
        receive(&end);
    else
        send_all(&end);
    leave(&end);
    peer_close(pair[rank]);
    return rank == PEER_SERVER || waitpid(child, &how, 0) != child ? 0 : WEXITSTATUS(how);
}
