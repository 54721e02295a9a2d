/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends in lists: the receiver has a receive posted for each place, as many at a time as the fabric
 * holds, and acknowledges every whole list with an active message. So a list counts when the
 * receiver's program has it. */
#include "bench/run.h"

#include <inttypes.h>

struct state {
    unsigned posted; /* receives */
    unsigned place;  /* where the next one goes */
    uint64_t number; /* of that one in its list */
    bool draining;   /* no more are posted */
};
_Static_assert(sizeof(struct state) <= sizeof((struct run *)0)->own, "run.own is too small");

static struct state *state_of(struct run *run)
{
    return (struct state *)run->own;
}

static bool receives(const struct run *run)
{
    return !run->session->facts.alone &&
           (run->session->peer->rank == PEER_SERVER || run->spec->both_ways);
}

static bool sends(const struct run *run)
{
    return run->session->peer->rank == PEER_CLIENT || run->spec->both_ways;
}

/* As many as there are places for; a shorter list needs no more. */
static unsigned ahead(const struct run *run)
{
    uint64_t list = run->spec->pace.list;
    return list < run->session->facts.depth ? (unsigned)list : run->session->facts.depth;
}

static int post_receive(struct run *run)
{
    struct state *s = state_of(run);
    struct xfer receive = {.local = &run->session->buffer,
                           .at = run->receive_at + s->place * run->slots.step,
                           .length = run->size,
                           .id = ID_RECEIVE};
    int status = run->fabric->recv(run->handle, &receive);
    if (status != LATER)
        return status;
    s->posted++;
    s->place = s->place + 1 == run->slots.count ? 0 : s->place + 1;
    if (++s->number == run->spec->pace.list)
        s->number = s->place = 0;
    return 0;
}

static int prepare(struct run *run)
{
    struct session *session = run->session;
    bool brief = session->facts.layout_max[VERB_AM][LAYOUT_SHORT] >= sizeof(uint64_t);
    int status = 0;
    run->verb = run->fabric->send;
    run->xfer =
        (struct xfer){.local = &session->buffer, .length = run->size, .how = run_hints(run)};
    run->flight.ack = (struct xfer){.local = session->facts.alone ? NULL : &session->buffer,
                                    .id = ID_ACK,
                                    .header_bytes = sizeof(uint64_t),
                                    .how = LAYOUT_HINT(brief ? LAYOUT_SHORT : LAYOUT_BCOPY)};
    run->flight.ack_every = run->spec->pace.list;
    *state_of(run) = (struct state){0};
    for (unsigned i = 0; i < ahead(run) && receives(run) && !status; i++)
        status = post_receive(run);
    return status;
}

/* A receive is not one of ours that is under way. */
static int next(struct run *run, const struct completion *c)
{
    struct state *s = state_of(run);
    if (c->id != ID_RECEIVE)
        return DONE;
    if (c->length != run->size)
        return fail(-EPROTO, "a message of %" PRIu64 " bytes where %zu were to come", c->length,
                    run->size);
    int status = s->draining ? 0 : post_receive(run);
    if (status)
        return status;
    s->posted -= 1;
    run->flight.arrivals += !s->draining;
    run->flight.quiet = 0;
    return LATER;
}

static int drained(void *arg)
{
    struct run *run = arg;
    return run_idle(run, flight_poll(run));
}

/* The receives that wait for a list that does not come are filled, so that the next size begins
 * with its own. */
static int finish(struct run *run)
{
    struct state *s = state_of(run);
    struct backoff backoff = {0};
    if (run->session->facts.alone)
        return 0;
    s->draining = true;
    run->flight.ack.local = NULL;
    int status = peer_barrier(run->session->peer, "drain", drained, run);
    for (unsigned i = 0; i < ahead(run) && sends(run) && !status; i++)
        status = flight_post(run);
    if (!status)
        status = flight_until(run, 0, UINT64_MAX);
    while (s->posted && !status) {
        int got = flight_poll(run);
        backoff.armed &= !got;
        status = got < 0 ? got : got ? 0 : run_backoff(run, &backoff);
    }
    return status ? status : peer_barrier(run->session->peer, "drained", drained, run);
}

/* ---- verify: the receiver looks into its places once it has acknowledged the list ---- */

static int before(struct run *run, uint64_t number)
{
    return slots_fill(run, number, 0);
}

static int after(struct run *run, uint64_t number)
{
    struct msg answer;
    return run_ask(run, "check", number, "good=1\n", &answer);
}

static int here(struct run *run, uint64_t number)
{
    return slots_check(run, number, run->receive_at);
}

static int answer(struct run *run, const struct msg *ask, struct msg *reply)
{
    uint64_t number;
    if (msg_number(ask, "check", &number))
        return fail(-EPROTO, "a question that cannot be read");
    int status = here(run, number);
    return status ? status : msg_print(reply, "good=1\n");
}

static const struct op_words words = {.help = {.Op = "Send", .ops = "sends"},
                                      .many = "Sends",
                                      .number = "SendNum",
                                      .size = "Send Size[B]",
                                      .size_width = 12};

const struct op op_send_list = {.name = "send",
                                .words = &words,
                                .verb = VERB_SEND,
                                .verbs = VERB(SEND) | VERB(RECV) | VERB(AM),
                                .hints = HINT(INLINE) | HINT(RENDEZVOUS),
                                .traits = OP_NEEDS_ACK | OP_ASKS,
                                .legs = 1,
                                .prepare = prepare,
                                .next = next,
                                .target = {.answer = answer},
                                .list = {.form = &op_send_list, .finish = finish},
                                .verify = {.before = before, .after = after, .here = here}};
