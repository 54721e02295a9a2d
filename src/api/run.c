/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls of weft.h: sessions, and one test on a session of its own. */
#include "api/api.h"
#include "core/cpu.h"
#include "fabric/choose.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Which tests will follow is not known: a session's device is opened for all of them. */
enum { ANY_VERB = (1U << VERBS) - 1 };

struct weft_session {
    struct session session;
    struct peer *own; /* over a program's own carrier; NULL: the bootstrap's */
    unsigned verbs;   /* that later tests may need */
    bool usable;
    bool hasty;           /* the last run was refused here, without waiting for the other end */
    struct cpu_list cpus; /* of the threads of a test */
};

const char *weft_version(void)
{
    return core_version();
}

const char *weft_reason(void)
{
    return fail_reason();
}

void weft_warnings(void (*sink)(const char *sentence))
{
    warn_to(sink);
}

/* A program's own way to pass messages, for as long as the session lasts. */
static int own_peer(const struct weft_bootstrap *bootstrap, struct peer **peer)
{
    struct peer_terms terms = {.timeout_ms = API_TIMEOUT_MS};
    struct peer_carrier carrier = {.arg = bootstrap->arg,
                                   .publish = bootstrap->publish,
                                   .receive = bootstrap->receive,
                                   .lasts = true};
    if (bootstrap->size != 2 || bootstrap->index > 1)
        return fail(-EINVAL, "end %u of a group of %u: a test has two ends, 0 and 1",
                    bootstrap->index, bootstrap->size);
    if (!carrier.publish || !carrier.receive)
        return fail(-EINVAL, "a bootstrap that is closed, or has no publish or no receive");
    return peer_relay(peer, &carrier, bootstrap->index ? PEER_SERVER : PEER_CLIENT, &terms);
}

int weft_session_open(struct weft_session **session, const struct weft_bootstrap *bootstrap)
{
    if (!session || !bootstrap)
        return fail(-EINVAL, "weft_session_open: session and bootstrap must not be NULL");
    struct weft_session *s = calloc(1, sizeof *s);
    *session = NULL;
    if (!s)
        return fail(-ENOMEM, "no memory for a session");
    int status = bootstrap->ready ? 0 : own_peer(bootstrap, &s->own);
    if (status) {
        free(s);
        return status;
    }
    session_init(&s->session);
    s->session.peer = s->own ? s->own : bootstrap->ready;
    s->verbs = ANY_VERB;
    s->usable = true;
    *session = s;
    return 0;
}

void weft_session_close(struct weft_session *s)
{
    if (!s)
        return;
    session_close(&s->session, s->usable ? 0 : -ECONNRESET);
    /* Nobody may be there. */
    if (s->own && s->hasty)
        s->own->timeout_ms = 0;
    peer_close(s->own);
    free(s);
}

/* What is wrong with an end's own parameters, wherever the other end is. A loadable fabric looks at
 * its devices when it is opened. */
static int check_own(const struct weft_params *params, struct offer *offer, int rank)
{
    const struct memory_ops *kind;
    struct fabric_choice choice;
    unsigned gpu;
    const char *memory = params->memory ? params->memory : "host";
    int status = memory_choose(memory, &kind, &gpu);
    if (!status && offer->given && !fabric_named(offer->device))
        status = fabric_choose(offer->device, &choice);
    if (!status)
        snprintf(offer->memory[rank], sizeof offer->memory[rank], "%s", memory);
    return status;
}

/* The thread is put back where it was before. */
static int pinned(struct weft_session *s, const struct weft_params *params, int status,
                  struct report *report)
{
    cpu_set_t before;
    struct spec spec;
    struct offer offer = {.device = params->device ? params->device : "",
                          .given = params->device != NULL,
                          .vouched = params->device != NULL,
                          .verbs = s->verbs,
                          .cpus = &s->cpus,
                          .service = params->service};
    bool moves = params->cpu >= 0;
    s->cpus.count = 0;
    while (moves && s->cpus.count < params->threads && s->cpus.count < LENGTH(s->cpus.cpus)) {
        s->cpus.cpus[s->cpus.count] = params->cpu + (int64_t)s->cpus.count;
        s->cpus.count++;
    }
    if (!status)
        status = params_spec(params, &spec);
    if (!status)
        status = check_own(params, &offer, s->session.peer->rank);
    if (!status && moves && sched_getaffinity(0, sizeof before, &before))
        status = fail(-errno, "which CPUs this thread may use: %s", strerror(errno));
    moves = moves && !status;
    if (moves)
        status = cpu_pin(params->cpu);
    s->hasty = status;
    status = session_run(&s->session, &offer, &spec, status, report);
    if (moves)
        sched_setaffinity(0, sizeof before, &before);
    return status;
}

int weft_session_run(struct weft_session *s, const struct weft_params *params,
                     void (*report)(void *arg, const struct weft_result *result), void *arg,
                     struct weft_result *result)
{
    struct weft_params whole;
    struct api_report told;
    if (!s || !params)
        return fail(-EINVAL, "weft_session_run: session and params must not be NULL");
    if (!s->usable)
        return fail(-ENOTCONN, "the session has ended: a run on it failed");
    struct peer *peer = s->session.peer;
    int status = params_take(params, &whole);
    if (!status && result)
        status = result_check(result);
    peer->timeout_ms = whole.timeout_ms ? whole.timeout_ms : API_TIMEOUT_MS;
    if (peer->quiet_ms && peer->quiet_ms < peer->timeout_ms)
        peer->quiet_ms = peer->timeout_ms;
    peer->stop = whole.stop;
    api_report_open(&told, &whole, report, arg);
    status = pinned(s, &whole, status, peer->rank == PEER_CLIENT ? &told.report : NULL);
    s->usable = !status || s->session.refused;
    if (!status)
        fail(0, "%s", "");
    if (result && (!status || status == -EINTR))
        api_report_take(&told, result);
    api_report_close(&told);
    peer->stop = NULL;
    return status;
}

int weft_run(const struct weft_params *params, const struct weft_bootstrap *bootstrap,
             void (*report)(void *arg, const struct weft_result *result), void *arg,
             struct weft_result *result)
{
    struct weft_session *session = NULL;
    if (!params || !bootstrap)
        return fail(-EINVAL, "weft_run: params and bootstrap must not be NULL");
    int status = weft_session_open(&session, bootstrap);
    if (status || !session)
        return status;
    session->verbs = 0;
    status = weft_session_run(session, params, report, arg, result);
    weft_session_close(session);
    return status;
}
