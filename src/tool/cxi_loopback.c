/* SPDX-License-Identifier: BSD-3-Clause */
/* The loopback tool: both ends in one process. The first thread initiates and reports; the second
 * one holds the target's memory, and sleeps unless the fabric needs it to poll. */
#include "core/cpu.h"
#include "tool/cxi.h"
#include "tool/shell.h"

#include <pthread.h>
#include <string.h>

struct target {
    struct session session;
    struct offer offer;
    struct spec spec;
};

/* What goes wrong here the initiator hears, and says. */
static void *be_target(void *arg)
{
    struct target *t = arg;
    session_close(&t->session, session_run(&t->session, &t->offer, &t->spec, 0, NULL));
    return NULL;
}

static int initiate(struct session *s, const struct offer *offer, struct spec *spec, int64_t cpu,
                    struct report *report)
{
    int wrong = cpu >= 0 ? cpu_pin(cpu) : 0;
    return session_close(s, session_run(s, offer, spec, wrong, report));
}

int cxi_loopback(struct session *s, const struct offer *offer, struct spec *spec, int64_t cpu,
                 struct report *report)
{
    struct target target = {.offer = *offer, .spec = *spec};
    const struct peer_terms terms = {.timeout_ms = spec->timeout_ms, .stop = &shell_stop};
    struct peer *ends[2];
    pthread_t thread;
    int status = peer_threads(ends, &terms);
    if (status)
        return status;
    session_init(&target.session);
    s->peer = ends[PEER_CLIENT];
    target.session.peer = ends[PEER_SERVER];
    int failed = pthread_create(&thread, NULL, be_target, &target);
    status = failed ? session_close(s, fail(-failed, "a thread: %s", strerror(failed)))
                    : initiate(s, offer, spec, cpu, report);
    peer_close(ends[PEER_CLIENT]);
    if (!failed)
        pthread_join(thread, NULL);
    peer_close(ends[PEER_SERVER]);
    return status;
}
