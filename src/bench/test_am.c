/* SPDX-License-Identifier: BSD-3-Clause */
/* Active messages: header and payload, no receive posted, the data looked at where it lies. The
 * header is part of the message's size and carries its number. */
#include "bench/bench.h"

#include <errno.h>
#include <inttypes.h>

static size_t header_bytes(const struct weft_params *p)
{
    if (p->layout == WEFT_ZCOPY)
        return p->am_header <= p->size ? p->am_header : 0;
    return p->size >= sizeof(uint64_t) ? sizeof(uint64_t) : 0;
}

static int am_prepare(struct run *run)
{
    const struct weft_params *p = run->params;
    bool brief = run->facts.layout_max[VERB_AM][LAYOUT_SHORT] >= sizeof(uint64_t);
    run->post = run->fabric->am;
    /* The payload lies as it would if the header stood before it. */
    run->xfer = (struct xfer){.local = &run->buffer,
                              .at = header_bytes(p),
                              .length = p->size - header_bytes(p),
                              .header_bytes = header_bytes(p),
                              .how = LAYOUT_HINT(p->layout - WEFT_SHORT)};
    run->ack = (struct xfer){.local = run->test_method->legs == 1 ? &run->buffer : NULL,
                             .header_bytes = sizeof(uint64_t),
                             .how = LAYOUT_HINT(brief ? LAYOUT_SHORT : LAYOUT_BCOPY)};
    return 0;
}

static int am_before(struct run *run, uint64_t number)
{
    run->xfer.header = number;
    return run->verify ? pattern_fill(run, number, run->xfer.at, run->xfer.length) : 0;
}

static int am_fire(struct run *run, uint64_t number)
{
    run->xfer.header = number;
    int status = run->verify ? am_before(run, number) : 0;
    return status ? status : test_post(run);
}

static int am_arrival(struct run *run, const struct completion *c)
{
    size_t header = run->xfer.header_bytes;
    if (c->length != run->params->size)
        return fail(-EPROTO,
                    "an active message of %" PRIu64 " bytes where %" PRIu64 " were to come",
                    c->length, run->params->size);
    if (header && c->id != run->arrivals)
        return fail(-EBADMSG, "--verify: message %" PRIu64 " came where %" PRIu64 " was to come",
                    c->id, run->arrivals);
    return pattern_compare(run, run->arrivals, (const char *)c->data + header, run->xfer.length);
}

static int am_arrived(struct run *run, uint64_t number)
{
    int got = run->arrivals >= number ? 1 : test_poll(run);
    return got < 0 ? got : run->arrivals >= number;
}

const struct test_op test_am = {.name = "am",
                                .verb = VERB_AM,
                                .verbs = VERB(AM),
                                .needs_ack = true,
                                .prepare = am_prepare,
                                .fire = am_fire,
                                .arrived = am_arrived,
                                .arrival = am_arrival,
                                .before = am_before};
