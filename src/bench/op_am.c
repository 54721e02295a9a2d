/* SPDX-License-Identifier: BSD-3-Clause */
/* Active messages: header and payload, no receive posted, the data looked at where it lies. The
 * header is part of the message's size and carries its number. */
#include "bench/run.h"

#include <inttypes.h>

static size_t header_bytes(const struct run *run)
{
    const struct spec_data *data = &run->spec->data;
    if (data->apart)
        return data->am_header;
    if (data->layout - 1 == LAYOUT_ZCOPY)
        return data->am_header <= run->size ? data->am_header : 0;
    return run->size >= sizeof(uint64_t) ? sizeof(uint64_t) : 0;
}

static int am_prepare(struct run *run)
{
    struct session *s = run->session;
    bool brief = s->facts.layout_max[VERB_AM][LAYOUT_SHORT] >= sizeof(uint64_t);
    run->verb = run->fabric->am;
    /* The payload lies as it would if the header stood before it. */
    run->xfer =
        (struct xfer){.local = &s->buffer,
                      .at = run->spec->data.apart ? 0 : header_bytes(run),
                      .length = run->spec->data.apart ? run->size : run->size - header_bytes(run),
                      .header_bytes = header_bytes(run),
                      .pieces = run->pieces.gather,
                      .how = run_hints(run)};
    /* There and back needs no acknowledgements. */
    run->flight.ack = (struct xfer){.local = run->legs == 1 ? &s->buffer : NULL,
                                    .id = ID_ACK,
                                    .header_bytes = sizeof(uint64_t),
                                    .how = LAYOUT_HINT(brief ? LAYOUT_SHORT : LAYOUT_BCOPY)};
    run->flight.ack_every = (run->spec->pace.window + 1) / 2;
    return 0;
}

static int am_before(struct run *run, uint64_t number)
{
    run->xfer.header = number + 1;
    return pattern_fill(run, number + 1, run->xfer.at, run->xfer.length);
}

static int am_fire(struct run *run, uint64_t number)
{
    run->xfer.header = number;
    int status = run->verify ? am_before(run, number - 1) : 0;
    return status ? status : flight_post_verb(run);
}

static int am_arrival(struct run *run, const struct completion *c)
{
    size_t header = run->xfer.header_bytes;
    uint64_t arrivals = run->flight.arrivals;
    if (c->length != header + run->xfer.length)
        return fail(-EPROTO, "an active message of %" PRIu64 " bytes where %zu were to come",
                    c->length, header + run->xfer.length);
    if (!run->verify)
        return 0;
    if (header && c->id != arrivals)
        return fail(-EBADMSG, "verify: message %" PRIu64 " came where %" PRIu64 " was to come",
                    c->id, arrivals);
    return pattern_compare(run, arrivals, (const char *)c->data + header, run->xfer.length);
}

static int am_arrived(struct run *run, uint64_t number)
{
    unsigned plain = 0;
    int got = run->flight.arrivals >= number ? 1 : flight_poll_for(run, VERB_ARRIVAL, &plain);
    return got < 0 ? got : run->flight.arrivals >= number;
}

static int am_check(const struct spec *spec)
{
    const struct spec_data *data = &spec->data;
    bool other_header = data->am_header != sizeof(uint64_t);
    if (data->apart)
        return 0;
    if (!spec->size.min)
        return fail(-EINVAL,
                    "size is out of range: \"0\" (accepted: 1 to %u, where its header is "
                    "part of an active message)",
                    UINT32_MAX);
    if (data->pieces.gather)
        return fail(-EINVAL, "pieces are for a header that is not part of the message");
    bool zcopy = data->layout ? data->layout - 1 == LAYOUT_ZCOPY : other_header;
    if (data->layout - 1 == LAYOUT_SHORT && spec->size.min < sizeof(uint64_t))
        return fail(-EINVAL,
                    "a message of %" PRIu64 " bytes: a short active message begins with its header "
                    "of 8 bytes",
                    spec->size.min);
    /* A bcopy message that is too short for a header has none. */
    bool none = !data->am_header && spec->size.max < sizeof(uint64_t);
    if (data->layout && !zcopy && other_header && !none)
        return fail(-EINVAL,
                    "a header of %" PRIu64 " bytes is for layout zcopy: in %s it has 8 bytes",
                    data->am_header, fabric_layout_names[data->layout - 1]);
    if (zcopy && data->am_header > spec->size.min)
        return fail(-EINVAL,
                    "a message of %" PRIu64 " bytes has no room for its header of %" PRIu64,
                    spec->size.min, data->am_header);
    return 0;
}

static int am_can(const struct spec *spec, const struct fabric_facts *facts, const char *form)
{
    bool any = spec->data.apart || spec->data.layout - 1 == LAYOUT_ZCOPY;
    if (any && spec->data.am_header > facts->max_header)
        return fail(-EMSGSIZE,
                    "%s: an active message's header takes at most %zu bytes, not %" PRIu64, form,
                    facts->max_header, spec->data.am_header);
    return 0;
}

const struct op op_am = {.name = "am",
                         .verb = VERB_AM,
                         .verbs = VERB(AM),
                         .traits = OP_STREAMS | OP_NEEDS_ACK | OP_HALVES | OP_ARRIVES | OP_EMPTY |
                                   OP_GATHERS,
                         .check = am_check,
                         .can = am_can,
                         .prepare = am_prepare,
                         .target = {.arrival = am_arrival},
                         .pingpong = {.fire = am_fire, .arrived = am_arrived},
                         .verify = {.before = am_before}};
