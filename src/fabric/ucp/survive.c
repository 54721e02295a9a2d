/* SPDX-License-Identifier: BSD-3-Clause */
/* Aborts in UCX that an end on a network outlives. Releases of UCX abort the process when the other
 * end dies, or wakes up late, with operations under way: here that is a lost connection. The signal
 * is only caught inside a call into UCX, in the thread that made the call; the handler jumps out of
 * it, and the worker is given up: nobody calls it again. Any other abort goes to the handler that
 * was there before. */
#include "fabric/ucp/ucp.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <unistd.h>

/* Of the call that this thread is in; the handler may not be the first to touch it. */
static _Thread_local sigjmp_buf *way_out __attribute__((tls_model("initial-exec")));

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned users;
static struct sigaction before;

static void on_abort(int number, siginfo_t *info, void *context)
{
    (void)context;
    if (way_out && info->si_code == SI_TKILL && info->si_pid == getpid())
        siglongjmp(*way_out, 1);
    sigaction(number, &before, NULL);
    raise(number);
}

void weft_ucp_survive_begin(struct weft_ucp *u)
{
    struct sigaction mine = {.sa_sigaction = on_abort, .sa_flags = SA_SIGINFO | SA_NODEFER};
    if (u->port.shared || u->survives)
        return;
    pthread_mutex_lock(&lock);
    u->survives = users || !sigaction(SIGABRT, &mine, &before);
    users += u->survives;
    pthread_mutex_unlock(&lock);
}

/* A handler that somebody has put in its place stays. */
void weft_ucp_survive_end(struct weft_ucp *u)
{
    struct sigaction now;
    if (!u->survives)
        return;
    u->survives = false;
    pthread_mutex_lock(&lock);
    if (!--users && !sigaction(SIGABRT, NULL, &now) && now.sa_sigaction == on_abort)
        sigaction(SIGABRT, &before, NULL);
    pthread_mutex_unlock(&lock);
}

static void jumped(struct weft_ucp *u)
{
    way_out = NULL;
    weft_ucp_give_up(u, "UCX aborted its work on it");
}

int weft_ucp_survive(struct weft_ucp *u, int (*call)(struct weft_ucp *u))
{
    sigjmp_buf out;
    if (!u->survives)
        return call(u);
    if (sigsetjmp(out, 0)) {
        jumped(u);
        return -ECONNRESET;
    }
    way_out = &out;
    int got = call(u);
    way_out = NULL;
    return got;
}

int weft_ucp_survive_verb(struct weft_ucp *u,
                          int (*verb)(struct fabric *fabric, const struct xfer *x),
                          const struct xfer *x)
{
    sigjmp_buf out;
    if (sigsetjmp(out, 0)) {
        jumped(u);
        return weft_ucp_not_connected(u);
    }
    way_out = &out;
    int got = verb(&u->fabric, x);
    way_out = NULL;
    return got;
}

int weft_ucp_survive_poll(struct weft_ucp *u, struct completion *completions, int max)
{
    sigjmp_buf out;
    if (sigsetjmp(out, 0)) {
        jumped(u);
        return u->parted ? 0 : weft_ucp_not_connected(u);
    }
    way_out = &out;
    int got = weft_ucp_poll(&u->fabric, completions, max);
    way_out = NULL;
    return got;
}
