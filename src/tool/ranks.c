/* SPDX-License-Identifier: BSD-3-Clause */
/* Two ranks of a launcher as client and server. */
#include "tool/ranks.h"
#include "tool/serve.h"
#include "tool/shell.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { WANTED_RANKS = 2, LEAST_WAIT_MS = 30000, MEETING = 1 };

const char ranks_server[] = "rank 0";

int ranks_find(struct ranks *r)
{
    int status = launch_find(&r->seat);
    r->found = !status;
    return status == -ENOENT ? 0 : status;
}

int ranks_check(struct ranks *r, int status, bool several)
{
    if (!status && r->seat.size != WANTED_RANKS)
        status = fail(-EINVAL, "%d ranks are needed, the launcher started %u", WANTED_RANKS,
                      r->seat.size);
    else if (!status && several)
        status = fail(-EINVAL, "several pairs need a server with a port: start it with --port, and "
                               "the client with its address");
    if (status == -EINVAL && !r->seat.root)
        exit(shell_exit_code(status));
    return status;
}

int ranks_meet(struct ranks *r, const struct access *access, uint64_t timeout_ms, uint64_t wait_ms)
{
    const struct launch_terms terms = {.secret = access->held ? &access->secret : NULL,
                                       .timeout_ms = timeout_ms,
                                       .wait_ms = wait_ms > LEAST_WAIT_MS ? wait_ms : LEAST_WAIT_MS,
                                       .stop = &shell_stop};
    bool client = ranks_client(r);
    if (!client && !freopen("/dev/null", "w", stdout))
        return fail(-errno, "/dev/null cannot be opened");
    int status = launch_group(&r->seat, &terms, &r->group);
    if (status)
        return status;
    return group_meet(r->group, client ? 0 : 1, client ? PEER_CLIENT : PEER_SERVER, MEETING,
                      terms.wait_ms, &r->peer);
}

int ranks_serve(struct ranks *r, int wrong)
{
    struct msg greeting;
    int status = wrong ? wrong : peer_recv(r->peer, &greeting, NULL, NULL);
    if (!status)
        serve_hand(r->peer, &greeting);
    if (wrong)
        peer_end(r->peer, wrong, fail_reason());
    if (status)
        peer_close(r->peer);
    return status;
}

int ranks_end(struct ranks *r, int status)
{
    group_leave(r->group, status);
    r->group = NULL;
    if (r->found && !ranks_client(r) && status && status != -EINTR && r->peer)
        exit(shell_exit_code(status));
    return status;
}
