/* SPDX-License-Identifier: BSD-3-Clause */
/* Tagged messages, there and back or in a stream, all with one tag. Their receives are posted
 * before the other end may send: two of them there and back, and a whole window in a stream, where
 * the receiver acknowledges what has come by active messages. Or none is, and the receiver looks
 * for a message until there is one, and receives that. */
#include "bench/run.h"

#include <inttypes.h>
#include <stdio.h>

enum { THERE_AND_BACK = 2, RECEIVES_MOST = 128 };
static const uint64_t the_tag = 0x7ea57a66ed;

struct state {
    unsigned due;   /* receives that are to be posted again */
    bool receiving; /* what was found is being received */
    bool again;     /* in a stream: a receive whose message came is posted again at once */
    struct xfer receive;
};
_Static_assert(sizeof(struct state) <= sizeof((struct run *)0)->own, "run.own is too small");

static struct state *state_of(struct run *run)
{
    return (struct state *)run->own;
}

static bool streams(const struct run *run)
{
    return run->legs == 1;
}

static int post_receive(struct run *run)
{
    int status = run->fabric->trecv(run->handle, &state_of(run)->receive);
    return status == LATER ? 0 : status;
}

/* Whether messages come to this end. */
static bool receives(const struct run *run)
{
    bool server = run->session->peer->rank == PEER_SERVER;
    return run->session->facts.alone ? !server : server || !streams(run) || run->spec->both_ways;
}

static int tag_start(struct run *run)
{
    uint64_t count = streams(run) ? run->spec->pace.window : THERE_AND_BACK;
    int status = 0;
    *state_of(run) = (struct state){.again = streams(run) && !run->spec->tag.unexpected,
                                    .receive = {.local = &run->session->buffer,
                                                .at = run->receive_at,
                                                .length = (size_t)run->spec->size.max,
                                                .pieces = run->pieces.scatter,
                                                .tag = the_tag,
                                                .mask = run->spec->tag.wildcard ? 0 : UINT64_MAX,
                                                .id = ID_RECEIVE}};
    if (!receives(run) || run->spec->tag.unexpected)
        return 0;
    for (uint64_t i = 0; i < count && !status; i++)
        status = post_receive(run);
    return status;
}

static int tag_prepare(struct run *run)
{
    struct session *s = run->session;
    bool brief = s->facts.layout_max[VERB_AM][LAYOUT_SHORT] >= sizeof(uint64_t);
    run->verb = run->fabric->tsend;
    run->xfer = (struct xfer){.local = &s->buffer,
                              .length = run->size,
                              .pieces = run->pieces.gather,
                              .tag = the_tag,
                              .how = run_hints(run) | (run->spec->tag.sync ? HINT(SYNC) : 0)};
    run->flight.ack = (struct xfer){.local = streams(run) ? &s->buffer : NULL,
                                    .id = ID_ACK,
                                    .header_bytes = sizeof(uint64_t),
                                    .how = LAYOUT_HINT(brief ? LAYOUT_SHORT : LAYOUT_BCOPY)};
    run->flight.ack_every = (run->spec->pace.window + 1) / 2;
    return 0;
}

/* Its receive is posted again at once in a stream, and otherwise when the answer is on its way. */
static int tag_next(struct run *run, const struct completion *c)
{
    struct state *state = state_of(run);
    if (c->verb != VERB_TRECV)
        return DONE;
    if (c->length != run->size)
        return fail(-EPROTO, "a tagged message of %" PRIu64 " bytes where %zu were to come",
                    c->length, run->size);
    int status =
        run->verify ? pattern_check(run, run->flight.arrivals + 1, run->receive_at, run->size) : 0;
    if (!status && state->again)
        status = post_receive(run);
    if (status)
        return status;
    state->due += !state->again && !run->spec->tag.unexpected;
    state->receiving = false;
    run->flight.arrivals++;
    run->flight.quiet = 0;
    return LATER;
}

/* Where receives are not expected: one is posted for what is there. */
static int tag_look(struct run *run)
{
    struct state *state = state_of(run);
    if (!run->spec->tag.unexpected || state->receiving || !receives(run))
        return 0;
    int got = run->fabric->tprobe(run->handle, &state->receive);
    if (got != DONE)
        return got == -EAGAIN ? 0 : got;
    got = post_receive(run);
    state->receiving = !got;
    return got == -EAGAIN ? 0 : got;
}

static int tag_before(struct run *run, uint64_t number)
{
    return pattern_fill(run, number + 1, 0, run->size);
}

static int tag_fire(struct run *run, uint64_t number)
{
    struct state *state = state_of(run);
    int status = run->verify ? tag_before(run, number - 1) : 0;
    if (!status)
        status = flight_post_verb(run);
    for (; state->due && !status; state->due -= !status)
        status = post_receive(run);
    return status;
}

static int tag_arrived(struct run *run, uint64_t number)
{
    int got = run->flight.arrivals >= number ? 1
              : run->spec->tag.unexpected    ? flight_poll(run)
                                          : flight_poll_for(run, VERB_TRECV, &state_of(run)->due);
    return got < 0 ? got : run->flight.arrivals >= number;
}

static int tag_check(const struct spec *spec)
{
    if (!spec->tag.unexpected && spec->pace.window > RECEIVES_MOST)
        return fail(-EINVAL,
                    "a window of %" PRIu64 " messages: each has its receive posted, at most %d",
                    spec->pace.window, RECEIVES_MOST);
    return 0;
}

static int tag_can(const struct spec *spec, const struct fabric_facts *facts, const char *form)
{
    if (the_tag & ~facts->tag_bits)
        return fail(-ENOTSUP, "%s: tag 0x%" PRIx64 " has more bits than it takes", form, the_tag);
    if (spec->tag.sync && !(facts->honours & HINT(SYNC)))
        return fail(-ENOTSUP, "%s has no synchronous tagged messages: %s", form,
                    facts->why_not[HINT_SYNC]);
    if (spec->tag.unexpected && facts->why_no_probe)
        return fail(-ENOTSUP, "%s cannot probe for tagged messages: %s", form, facts->why_no_probe);
    return 0;
}

static void tag_label(const struct spec *spec, char *text, size_t room)
{
    snprintf(text, room, "%s receives%s%s", spec->tag.unexpected ? "unexpected" : "expected",
             spec->tag.wildcard ? ", any tag" : "", spec->tag.sync ? ", synchronous" : "");
}

const struct op op_tag = {.name = "tag",
                          .verb = VERB_TSEND,
                          .verbs = VERB(TSEND) | VERB(TRECV) | VERB(AM),
                          .traits = OP_STREAMS | OP_NEEDS_ACK | OP_HALVES | OP_ARRIVES |
                                    OP_AUTOMATIC | OP_EMPTY | OP_GATHERS | OP_SCATTERS,
                          .label = tag_label,
                          .check = tag_check,
                          .can = tag_can,
                          .start = tag_start,
                          .prepare = tag_prepare,
                          .next = tag_next,
                          .target = {.look = tag_look},
                          .pingpong = {.fire = tag_fire, .arrived = tag_arrived},
                          .verify = {.before = tag_before}};
