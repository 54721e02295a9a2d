/* SPDX-License-Identifier: BSD-3-Clause */
/* A stream of bytes, cut into messages by their length alone: a message is here when so many bytes
 * have come, in however many pieces. They come into the buffer, or the fabric lends them where it
 * has them. In one direction the receiver acknowledges what has come by active messages. */
#include "bench/run.h"

#include <inttypes.h>
#include <stdio.h>

struct state {
    size_t got; /* of the message that is coming in */
    bool due;   /* a receive is to be posted */
    struct xfer receive;
};
_Static_assert(sizeof(struct state) <= sizeof((struct run *)0)->own, "run.own is too small");

static struct state *state_of(struct run *run)
{
    return (struct state *)run->own;
}

static bool one_way(const struct run *run)
{
    return run->legs == 1;
}

static int post_receive(struct run *run)
{
    struct state *state = state_of(run);
    state->receive.at = run->receive_at + state->got;
    state->receive.length = (run->size ? run->size : run->spec->size.min) - state->got;
    int status = run->fabric->stream_recv(run->handle, &state->receive);
    state->due = status == -EAGAIN;
    return status == LATER || state->due ? 0 : status;
}

static int stream_start(struct run *run)
{
    bool server = run->session->peer->rank == PEER_SERVER;
    *state_of(run) = (struct state){.receive = {.local = &run->session->buffer,
                                                .how = run->spec->data.lend ? HINT(LEND) : 0,
                                                .id = ID_RECEIVE}};
    return server || !one_way(run) || run->spec->both_ways ? post_receive(run) : 0;
}

static int stream_prepare(struct run *run)
{
    struct session *s = run->session;
    run->verb = run->fabric->stream_send;
    run->xfer = (struct xfer){.local = &s->buffer,
                              .length = run->size,
                              .pieces = run->pieces.gather,
                              .how = run_hints(run)};
    run->flight.ack = (struct xfer){
        .local = one_way(run) ? &s->buffer : NULL, .id = ID_ACK, .header_bytes = sizeof(uint64_t)};
    run->flight.ack_every = (run->spec->pace.window + 1) / 2;
    return 0;
}

static int whole(struct run *run)
{
    int status =
        run->verify ? pattern_check(run, run->flight.arrivals + 1, run->receive_at, run->size) : 0;
    state_of(run)->got = 0;
    run->flight.arrivals++;
    run->flight.quiet = 0;
    return status;
}

static int stream_next(struct run *run, const struct completion *c)
{
    struct state *state = state_of(run);
    int status = 0;
    if (c->verb != VERB_STREAM_RECV)
        return DONE;
    if (c->length > run->size - state->got)
        return fail(-EPROTO, "%" PRIu64 " bytes of a stream where %zu were to come", c->length,
                    run->size - state->got);
    /* What is lent is looked at in our own memory, with the rest of its message. */
    if (run->verify && c->data)
        status = run->session->buffer.kind->fill(&run->session->buffer,
                                                 run->receive_at + state->got, c->data, c->length);
    state->got += c->length;
    if (!status && state->got == run->size)
        status = whole(run);
    if (!status)
        status = post_receive(run);
    return status ? status : LATER;
}

static int stream_look(struct run *run)
{
    return state_of(run)->due ? post_receive(run) : 0;
}

static int stream_before(struct run *run, uint64_t number)
{
    return pattern_fill(run, number + 1, 0, run->size);
}

static int stream_fire(struct run *run, uint64_t number)
{
    int status = run->verify ? stream_before(run, number - 1) : 0;
    return status ? status : flight_post(run);
}

static int stream_arrived(struct run *run, uint64_t number)
{
    int got = run->flight.arrivals >= number ? 1 : flight_poll(run);
    return got < 0 ? got : run->flight.arrivals >= number;
}

static int stream_can(const struct spec *spec, const struct fabric_facts *facts, const char *form)
{
    if (spec->data.lend && !(facts->honours & HINT(LEND)))
        return fail(-ENOTSUP, "%s lends no bytes of a stream: %s", form, facts->why_not[HINT_LEND]);
    return 0;
}

static void stream_label(const struct spec *spec, char *text, size_t room)
{
    snprintf(text, room, "%s", spec->data.lend ? "bytes are lent" : "bytes into the buffer");
}

const struct op op_stream = {.name = "stream",
                             .verb = VERB_STREAM_SEND,
                             .verbs = VERB(STREAM_SEND) | VERB(STREAM_RECV) | VERB(AM),
                             .traits =
                                 OP_STREAMS | OP_NEEDS_ACK | OP_HALVES | OP_AUTOMATIC | OP_GATHERS,
                             .label = stream_label,
                             .can = stream_can,
                             .start = stream_start,
                             .prepare = stream_prepare,
                             .next = stream_next,
                             .target = {.look = stream_look},
                             .pingpong = {.fire = stream_fire, .arrived = stream_arrived},
                             .verify = {.before = stream_before}};
