/* SPDX-License-Identifier: BSD-3-Clause */
/* ucx_perftest with both ends in one process: a second thread is the server, with a session and
 * options of its own, over a connection that nobody else can reach. */
#include "tool/perftest_command.h"
#include "tool/shell.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* What goes wrong here the client hears, and says. */
static void *be_server(void *arg)
{
    struct command *server = arg;
    int status = cpus_pin(&server->cpus.ends[0]);
    status = session_leave(&server->session, status ? status : perf_serve(server));
    session_close(&server->session, status);
    return NULL;
}

/* It takes the threads from each test, and so it does the transport, where lines of a batch may
 * name others. */
static void set_up(struct command *server, const struct command *c)
{
    session_init(&server->session);
    server->options = c->options;
    if (c->product.count)
        server->options.transport[0] = '\0';
    server->set = (struct opt_set){.rows = perf_rows, .base = &server->options};
    server->cpus.ends[0] = c->cpus.ends[PEER_SERVER];
}

static int join(struct command *c, struct command *server)
{
    const struct peer_terms terms = {.timeout_ms = c->options.spec.timeout_ms, .stop = &shell_stop};
    struct peer *ends[2];
    pthread_t thread;
    int status = peer_threads(ends, &terms);
    if (status)
        return status;
    c->session.peer = ends[PEER_CLIENT];
    server->session.peer = ends[PEER_SERVER];
    int failed = pthread_create(&thread, NULL, be_server, server);
    status = failed ? fail(-failed, "a thread: %s", strerror(failed)) : perf_run_all(c);
    status = session_close(&c->session, status);
    peer_close(ends[PEER_CLIENT]);
    if (!failed)
        pthread_join(thread, NULL);
    peer_close(ends[PEER_SERVER]);
    return status;
}

int perf_loopback(struct command *c)
{
    struct command *server = calloc(1, sizeof *server);
    if (!server)
        return fail(-ENOMEM, "no memory for the other end");
    set_up(server, c);
    int status = join(c, server);
    free(server);
    return status;
}
