/* SPDX-License-Identifier: BSD-3-Clause */
/* All of a run on a session: the ends agree, and it is measured. */
#include "bench/run.h"

#include <inttypes.h>
#include <stdio.h>

/* An end that cannot make a run says so without waiting for the other: what that one sends about
 * the run is left over, and has a smaller number than the run that it comes into. */
static int number_run(const struct session *s, struct msg *text)
{
    return msg_add(text, ".run=%" PRIu64 "\n", s->peer->runs);
}

static bool left_over(const struct peer *peer, const struct msg *text)
{
    char number[24];
    uint64_t run;
    return !msg_value(text, ".run", number, sizeof number) && !unit_number(number, &run) &&
           run < peer->runs;
}

static int recv_first(struct session *s, struct msg *text)
{
    int status;
    do
        status = peer_recv(s->peer, text, NULL, NULL);
    while (!status && left_over(s->peer, text));
    return status;
}

/* Whether anybody hears it does not matter. */
static int refuse_run(struct session *s, int wrong)
{
    struct msg text;
    char why[1024];
    snprintf(why, sizeof why, "%s", fail_reason());
    if (!session_refuse(&text, wrong) && !number_run(s, &text))
        peer_send(s->peer, &text);
    s->refused = true;
    return fail(wrong, "%s", why);
}

static int as_client(struct session *s, const struct offer *offer, struct spec *spec, int wrong)
{
    struct msg text = {0}, answer;
    int status = wrong ? wrong : session_propose(s, offer, spec, &text);
    if (!status)
        status = number_run(s, &text);
    if (status)
        return refuse_run(s, status);
    status = peer_send(s->peer, &text);
    /* An end that refused at once may have left: its refusal is still there. */
    if (!status || status == -ECONNRESET)
        status = recv_first(s, &answer);
    return status ? status : session_join(s, offer, spec, &answer);
}

int session_serve(struct session *s, const struct offer *offer, const struct msg *proposal,
                  struct spec *spec, bool same, int wrong, struct report *report)
{
    struct msg answer = {0};
    int status = wrong ? wrong : session_accept(s, offer, proposal, spec, same, &answer);
    if (status == -EINTR)
        return session_leave(s, status);
    int said = status ? session_refuse(&answer, status) : 0;
    s->refused = status;
    if (!said)
        said = peer_send(s->peer, &answer);
    if (said || status)
        return said ? session_leave(s, said) : status;
    status = session_await(s);
    return status ? session_leave(s, status) : session_measure(s, spec, report);
}

static int as_server(struct session *s, const struct offer *offer, struct spec *spec, int wrong,
                     struct report *report)
{
    struct msg text;
    if (wrong)
        return refuse_run(s, wrong);
    int status = recv_first(s, &text);
    if (!status)
        status = session_refused(s, &text);
    return status ? session_leave(s, status)
                  : session_serve(s, offer, &text, spec, true, 0, report);
}

int session_run(struct session *s, const struct offer *offer, struct spec *spec, int wrong,
                struct report *report)
{
    s->refused = false;
    s->peer->runs++;
    wrong = wrong ? wrong : spec_check(spec);
    if (s->peer->rank == PEER_SERVER)
        return as_server(s, offer, spec, wrong, report);
    int status = as_client(s, offer, spec, wrong);
    return status ? session_leave(s, status) : session_measure(s, spec, report);
}
