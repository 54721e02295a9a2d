/* SPDX-License-Identifier: BSD-3-Clause */
/* How the ranks of weft map come to be. Those of --local are children of this process, forked
 * before any library is loaded. */
#include "tool/map_launch.h"
#include "core/child.h"
#include "core/clock.h"
#include "tool/shell.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STOP_MS = 3000 };
static const char here[] = "127.0.0.1";

static struct group_spec spec_of(struct map_launch *l, const struct map_request *r, uint32_t rank,
                                 uint32_t size)
{
    const struct map_options *o = r->options;
    return (struct group_spec){.rank = rank,
                               .size = size,
                               .root = rank == 0,
                               .id = l->id,
                               .secret = &l->secret,
                               .bind = here,
                               .timeout_ms = o->spec.timeout_ms,
                               .wait_ms = o->wait_s * 1000,
                               .stop = &shell_stop};
}

/* ---- --local ---- */

static void become_rank(struct map_launch *l, pid_t parent, int out)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    close(out);
    l->child = true;
    l->count = 0;
}

/* The port of the leader, which it writes once for each rank. */
static int read_port(int from, unsigned *port)
{
    uint32_t number;
    if (read(from, &number, sizeof number) != sizeof number)
        return fail(-ECONNRESET, "the leader has gone");
    *port = number;
    return 0;
}

static int join_local(struct map_launch *l, const struct map_request *r, uint32_t rank, int from)
{
    struct group_spec spec = spec_of(l, r, rank, (uint32_t)r->options->local);
    unsigned port = 0;
    int status = read_port(from, &port);
    close(from);
    if (!status)
        status = group_open(&l->group, &spec);
    return status ? status : group_join(l->group, here, port);
}

static int lead_local(struct map_launch *l, const struct map_request *r, int to)
{
    struct group_spec spec = spec_of(l, r, 0, (uint32_t)r->options->local);
    int status = group_open(&l->group, &spec);
    if (!status) {
        uint32_t port = group_port(l->group);
        for (uint64_t i = 1; i < r->options->local; i++)
            if (write(to, &port, sizeof port) != sizeof port)
                status = fail(-EIO, "--local: %s", strerror(errno));
    }
    close(to);
    return status ? status : group_join(l->group, here, group_port(l->group));
}

static int start_local(struct map_launch *l, const struct map_request *r)
{
    uint32_t size = (uint32_t)r->options->local;
    int pipes[2];
    pid_t parent = getpid();
    l->children = calloc(size, sizeof *l->children);
    int status = secret_make(&l->secret);
    if (!status)
        status = random_digits(l->id, sizeof l->id);
    if (!status && (!l->children || pipe(pipes)))
        status = fail(-ENOMEM, "--local: no memory for %u ranks", size);
    l->how = "local";
    l->trusted = true;
    for (uint32_t rank = 1; rank < size && !status; rank++) {
        pid_t child = fork();
        if (child == 0) {
            become_rank(l, parent, pipes[1]);
            return join_local(l, r, rank, pipes[0]);
        }
        if (child < 0)
            status = fail(-errno, "--local: fork: %s", strerror(errno));
        else
            l->children[l->count++] = child;
    }
    if (status)
        return status;
    close(pipes[0]);
    return lead_local(l, r, pipes[1]);
}

/* ---- all ways ---- */

int map_launch(struct map_launch *l, const struct map_request *r, int argc, char **argv)
{
    (void)argc;
    (void)argv;
    if (r->options->local)
        return start_local(l, r);
    return fail(-EINVAL, "no ranks: give --local N, or start it by a launcher");
}

int map_launch_wrong(int status)
{
    return status;
}

/* They end by themselves once the group has. */
static void end_children(const struct map_launch *l)
{
    uint64_t until_ms = clock_ms() + STOP_MS;
    for (uint32_t i = 0; i < l->count; i++) {
        uint64_t now_ms = clock_ms();
        if (child_wait(l->children[i], until_ms > now_ms ? until_ms - now_ms : 1) != -1)
            continue;
        kill(l->children[i], SIGKILL);
        child_wait(l->children[i], CHILD_KILLED_MS);
    }
}

int map_launch_end(struct map_launch *l, int status)
{
    char why[1024];
    bool leads = l->group ? group_root(l->group) : !l->child;
    snprintf(why, sizeof why, "%s", status < 0 ? fail_reason() : "");
    group_leave(l->group, status < 0 ? status : 0);
    if (!leads)
        exit(EXIT_DONE);
    end_children(l);
    free(l->children);
    explicit_bzero(&l->secret, sizeof l->secret);
    return status < 0 ? fail(status, "%s", why) : status;
}
