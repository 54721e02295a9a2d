/* SPDX-License-Identifier: BSD-3-Clause */
/* Active messages: whole, in every layout, with their header, in order, both ways; what is looked
 * at stays; what is too long is refused. */
#include "conformance.h"
#include "core/clock.h"
#include "fabric/choose.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum { HEADER = 8, LONGEST = 65536, PLACE = 4096, BUFFERS = 8, INTERVAL = 100 };

/* ---- what both ends compute alike ---- */

/* As it arrives: the header, zeroes behind it, the payload. */
static size_t expect(char *bytes, const struct xfer *xfer, const char *payload)
{
    memset(bytes, 0, xfer->header_bytes);
    if (xfer->header_bytes)
        memcpy(bytes, &xfer->header, HEADER);
    memcpy(bytes + xfer->header_bytes, payload, xfer->length);
    return xfer->header_bytes + xfer->length;
}

static uint64_t first_eight(const char *bytes, size_t length)
{
    uint64_t first = 0;
    if (length >= HEADER)
        memcpy(&first, bytes, HEADER);
    return first;
}

/* Which headers a layout takes. */
static bool takes(const struct fabric_facts *facts, enum layout layout, size_t header_bytes)
{
    return layout == LAYOUT_BCOPY || (layout == LAYOUT_SHORT && header_bytes == HEADER) ||
           (layout == LAYOUT_ZCOPY && header_bytes <= facts->max_header);
}

struct xfer am_of(struct end *end, size_t at, size_t length, uint64_t value)
{
    struct xfer xfer = {.local = &end->region,
                        .at = at,
                        .length = length,
                        .how = (unsigned)(value & UINT32_MAX),
                        .header_bytes = (size_t)(value >> 32)};
    xfer.header = length * UINT64_C(0x9e3779b97f4a7c15) + xfer.header_bytes + 1;
    xfer.id = xfer.header ^ 1;
    return xfer;
}

/* ---- one at a time ---- */

static void am_there(struct pair *pair, enum layout layout, size_t length, size_t header_bytes)
{
    static char expected[LONGEST + 256];
    struct end *end = &pair->end;
    struct xfer xfer =
        am_of(end, 512 + length % 64, length, (uint64_t)header_bytes << 32 | LAYOUT_HINT(layout));
    char *payload = end->bytes + xfer.at;
    pattern(payload, length, length + layout);
    size_t total = expect(expected, &xfer, payload);
    int status = perform(end, VERB_AM, &xfer);
    if (status)
        print_message("# %s %zu + %zu: %s\n", fabric_layout_names[layout], header_bytes, length,
                      fail_reason());
    assert_int_equal(status, 0);
    /* The source may be used again. */
    memset(payload, 0xee, length);
    struct answer came = ask_all(pair, "take", 0, 0, 0);
    assert_int_equal(came.status, 0);
    assert_int_equal(came.verb, VERB_ARRIVAL);
    assert_int_equal(came.length, total);
    assert_int_equal(came.id, first_eight(expected, total));
    assert_int_equal(came.digest, digest(expected, total));
}

static void all_lengths(struct pair *pair, enum layout layout, size_t header_bytes)
{
    static const size_t lengths[] = {0,   1,   7,   8,    9,    31,   64,   91,   92,   93,
                                     223, 224, 225, 1024, 4095, 4096, 4097, 8192, 8193, LONGEST};
    size_t limit = pair->end.facts.layout_max[VERB_AM][layout];
    for (size_t i = 0; i < LENGTH(lengths); i++)
        if (header_bytes + lengths[i] && header_bytes + lengths[i] <= limit)
            am_there(pair, layout, lengths[i], header_bytes);
    for (size_t under = 0; under < 3; under++)
        if (limit - header_bytes - under <= LONGEST)
            am_there(pair, layout, limit - header_bytes - under, header_bytes);
}

static void active_messages_arrive_whole_in_every_layout(void **state)
{
    struct pair *pair = *state;
    const struct fabric_facts *facts = &pair->end.facts;
    static const size_t headers[] = {0, 8, 9, 16, 64};
    needs(pair, VERB_AM, true);
    for (unsigned layout = 0; layout < LAYOUTS; layout++)
        for (size_t i = 0; i < LENGTH(headers); i++)
            if (facts->layout_max[VERB_AM][layout] > headers[i] + 2 &&
                takes(facts, (enum layout)layout, headers[i]))
                all_lengths(pair, (enum layout)layout, headers[i]);
}

/* Without a hint the fabric finds a layout for anything that one of them takes. */
static void active_messages_arrive_without_a_layout_asked_for(void **state)
{
    struct pair *pair = *state;
    struct end *end = &pair->end;
    static const size_t lengths[] = {0, 1, 8, 64, 92, 93, 1000, 4096, 8000};
    static char expected[LONGEST + 256];
    needs(pair, VERB_AM, true);
    for (size_t i = 0; i < LENGTH(lengths); i++) {
        struct xfer xfer = am_of(end, 64, lengths[i], (uint64_t)HEADER << 32);
        bool fits = false;
        for (unsigned layout = 0; layout < LAYOUTS; layout++)
            fits |= HEADER + lengths[i] <= end->facts.layout_max[VERB_AM][layout];
        if (!fits)
            continue;
        pattern(end->bytes + 64, lengths[i], i);
        size_t total = expect(expected, &xfer, end->bytes + 64);
        assert_int_equal(perform(end, VERB_AM, &xfer), 0);
        struct answer came = ask_all(pair, "take", 0, 0, 0);
        assert_int_equal(came.length, total);
        assert_int_equal(came.digest, digest(expected, total));
    }
}

static void next_arrival(struct end *end, struct completion *completion)
{
    assert_int_equal(next_completion(end, completion), 0);
    assert_int_equal(completion->verb, VERB_ARRIVAL);
    assert_int_equal(completion->status, 0);
    assert_non_null(completion->data);
}

/* The target says it twice; the first is good until we poll again, whatever arrives meanwhile. */
static void what_arrived_stays_until_the_next_poll(void **state)
{
    static char expected[LONGEST + 256], payload[LONGEST];
    struct pair *pair = *state;
    struct end *end = &pair->end;
    struct completion completion;
    needs(pair, VERB_AM, true);
    for (unsigned layout = 0; layout < LAYOUTS; layout++) {
        size_t limit = end->facts.layout_max[VERB_AM][layout];
        size_t length = limit < LONGEST ? limit - HEADER : LONGEST - HEADER;
        if (!limit || !takes(&end->facts, (enum layout)layout, HEADER))
            continue;
        uint64_t value = (uint64_t)HEADER << 32 | LAYOUT_HINT(layout);
        /* Each from a place of its own: a message may still be read from there. */
        for (uint64_t i = 0; i < 2; i++) {
            ask(pair, "pattern", PLACE + i * LONGEST, length, (int)i);
            assert_int_equal(ask_all(pair, "am", PLACE + i * LONGEST, length, value).status, 0);
        }
        for (uint64_t i = 0; i < 2; i++) {
            struct xfer xfer = am_of(end, PLACE, length, value);
            pattern(payload, length, i);
            size_t total = expect(expected, &xfer, payload);
            next_arrival(end, &completion);
            ask(pair, "look", 0, 0, 0);
            assert_int_equal(completion.id, xfer.header);
            assert_int_equal(completion.length, total);
            assert_memory_equal(completion.data, expected, total);
        }
    }
}

/* ---- in numbers ---- */

struct message {
    size_t length, header_bytes;
    enum layout layout;
    uint64_t text;
};

/* What a message of this number is, from the seed of who sends it. */
static struct message message_of(const struct fabric_facts *facts, const struct exchange *x,
                                 uint64_t seed, uint64_t number)
{
    static const size_t headers[] = {8, 8, 8, 16, 24, 0};
    uint64_t random = seed * 1000003 + number;
    struct message m = {.header_bytes = HEADER, .layout = next_random(&random) % LAYOUTS};
    while (!facts->layout_max[VERB_AM][m.layout])
        m.layout = (m.layout + 1) % LAYOUTS;
    size_t request = headers[next_random(&random) % LENGTH(headers)];
    if (takes(facts, m.layout, request) && request >= HEADER)
        m.header_bytes = request;
    size_t limit = facts->layout_max[VERB_AM][m.layout] - m.header_bytes;
    uint64_t most = next_random(&random) % 8 ? 128 : x->longest;
    m.length = next_random(&random) % ((most < limit ? most : limit) + 1);
    m.text = next_random(&random);
    return m;
}

struct traffic {
    struct end *end;
    const struct exchange *x;
    uint64_t sent, received, busy;
    unsigned idle;
    struct backoff backoff;
};

static size_t buffer_at(const struct traffic *t, uint64_t number)
{
    return PLACE + number % BUFFERS * (t->x->longest + 64);
}

/* A message's buffer is ours again: what is written there now must not arrive. */
static void free_buffer(struct traffic *t, uint64_t number)
{
    t->busy &= ~(UINT64_C(1) << number % BUFFERS);
    memset(t->end->bytes + buffer_at(t, number), 0xee, t->x->longest);
}

static int send_next(struct traffic *t)
{
    if (t->sent == t->x->out || t->busy >> t->sent % BUFFERS & 1)
        return 0;
    struct message m = message_of(&t->end->facts, t->x, t->x->seed, t->sent);
    struct xfer xfer = {.local = &t->end->region,
                        .at = buffer_at(t, t->sent),
                        .length = m.length,
                        .how = LAYOUT_HINT(m.layout),
                        .id = t->sent,
                        .header = t->sent,
                        .header_bytes = m.header_bytes};
    pattern(t->end->bytes + xfer.at, m.length, m.text);
    int got = choice.ops->am(t->end->handle, &xfer);
    if (got == -EAGAIN)
        return 0;
    if (got < 0)
        return got;
    t->busy |= UINT64_C(1) << t->sent % BUFFERS;
    if (got == DONE)
        free_buffer(t, t->sent);
    t->sent++;
    return 1;
}

static int check_arrival(struct traffic *t, const struct completion *c)
{
    static char expected[LONGEST + 256], payload[LONGEST];
    struct message m = message_of(&t->end->facts, t->x, t->x->seed ^ 1, t->received);
    struct xfer xfer = {.length = m.length, .header = t->received, .header_bytes = m.header_bytes};
    pattern(payload, m.length, m.text);
    size_t total = expect(expected, &xfer, payload);
    if (c->id != t->received || c->length != total || !c->data ||
        memcmp(c->data, expected, total) != 0)
        return fail(-EBADMSG, "arrival %" PRIu64 " of %" PRIu64 " bytes; %" PRIu64 " of %zu is due",
                    c->id, c->length, t->received, total);
    t->received++;
    return 0;
}

static int poll_once(struct traffic *t)
{
    struct completion c;
    int got = choice.ops->poll(t->end->handle, &c, 1);
    if (got <= 0)
        return got;
    if (c.status)
        return c.status;
    if (c.verb == VERB_AM)
        free_buffer(t, c.id);
    int status = c.verb == VERB_ARRIVAL ? check_arrival(t, &c) : 0;
    return status ? status : 1;
}

int am_exchange_run(struct end *end, const struct exchange *x)
{
    struct traffic t = {.end = end, .x = x};
    while (t.sent < x->out || t.received < x->in || t.busy) {
        int sent = send_next(&t);
        int polled = sent < 0 ? sent : poll_once(&t);
        if (polled < 0)
            return polled;
        if (sent || polled) {
            t.idle = 0;
            t.backoff = (struct backoff){0};
            continue;
        }
        if (++t.idle % INTERVAL)
            continue;
        if (!patient(&t.backoff))
            return fail(-ETIMEDOUT, "it stands still: %" PRIu64 " sent, %" PRIu64 " received",
                        t.sent, t.received);
        give_way(&t.backoff);
        int status = peer_alive(end->peer);
        if (status)
            return status;
    }
    return 0;
}

static void traffic(void **state, uint64_t out, uint64_t in, uint64_t longest)
{
    struct pair *pair = *state;
    needs(pair, VERB_AM, true);
    struct exchange x = {.out = many(out),
                         .in = many(in),
                         .seed = 20,
                         .longest = longest,
                         .window = BUFFERS,
                         .am = true};
    exchange_both(pair, &x);
}

static void ten_thousand_active_messages_each_way_keep_their_order(void **state)
{
    traffic(state, 10000, 10000, 16384);
}

static void many_active_messages_stream_one_way(void **state)
{
    traffic(state, 50000, 0, 128);
}

static void many_active_messages_stream_the_other_way(void **state)
{
    traffic(state, 0, 50000, 128);
}

/* ---- refusals and faults ---- */

static void a_byte_more_than_a_layout_takes_is_refused(void **state)
{
    struct pair *pair = *state;
    struct end *end = &pair->end;
    needs(pair, VERB_AM, true);
    for (unsigned layout = 0; layout < LAYOUTS; layout++) {
        size_t limit = end->facts.layout_max[VERB_AM][layout];
        struct xfer xfer =
            am_of(end, 0, limit - HEADER + 1, (uint64_t)HEADER << 32 | LAYOUT_HINT(layout));
        if (!limit || xfer.length > REGION_BYTES)
            continue;
        fail(0, "%s", "");
        assert_int_equal(choice.ops->am(end->handle, &xfer), -EMSGSIZE);
        assert_true(*fail_reason());
    }
    /* Nothing of it arrived, and the next one does. */
    for (unsigned layout = 0; layout < LAYOUTS; layout++)
        if (end->facts.layout_max[VERB_AM][layout] >= 16 && takes(&end->facts, layout, HEADER))
            am_there(pair, (enum layout)layout, 8, HEADER);
}

static void an_active_message_from_outside_our_buffer_is_refused(void **state)
{
    struct pair *pair = *state;
    static const size_t bad[] = {REGION_BYTES, REGION_BYTES - 7, SIZE_MAX - 3};
    needs(pair, VERB_AM, true);
    for (size_t i = 0; i < LENGTH(bad); i++) {
        struct xfer xfer = am_of(&pair->end, bad[i], 8, (uint64_t)HEADER << 32);
        fail(0, "%s", "");
        assert_true(choice.ops->am(pair->end.handle, &xfer) < 0);
        assert_true(*fail_reason());
    }
}

static void active_messages_return_when_the_target_is_dead(void **state)
{
    struct pair *pair = *state;
    needs(pair, VERB_AM, false);
    kill(pair->target, SIGKILL);
    uint64_t since_ms = clock_ms();
    for (unsigned i = 0; i < 2000; i++) {
        struct completion completion;
        struct xfer xfer = am_of(&pair->end, 0, i % 64, (uint64_t)HEADER << 32);
        choice.ops->am(pair->end.handle, &xfer);
        choice.ops->poll(pair->end.handle, &completion, 1);
    }
    assert_true(clock_ms() - since_ms < WAIT_MS);
}

static void closing_with_active_messages_under_way_is_safe(void **state)
{
    struct pair *pair = *state;
    struct end *end = &pair->end;
    needs(pair, VERB_AM, false);
    for (unsigned i = 0; i < 200; i++) {
        size_t limit = end->facts.layout_max[VERB_AM][i % LAYOUTS];
        struct xfer xfer = am_of(end, 0, 4000, (uint64_t)HEADER << 32 | LAYOUT_HINT(i % LAYOUTS));
        if (limit && limit < 4000 + HEADER)
            xfer.length = limit - HEADER;
        if (limit)
            choice.ops->am(end->handle, &xfer);
    }
    choice.ops->withdraw(end->handle, &end->region);
    choice.ops->close(end->handle);
    end->handle = NULL;
}

static const struct CMUnitTest tests[] = {
    WITH_PAIR(active_messages_arrive_whole_in_every_layout),
    WITH_PAIR(active_messages_arrive_without_a_layout_asked_for),
    WITH_PAIR(what_arrived_stays_until_the_next_poll),
    WITH_PAIR(ten_thousand_active_messages_each_way_keep_their_order),
    WITH_PAIR(many_active_messages_stream_one_way),
    WITH_PAIR(many_active_messages_stream_the_other_way),
    WITH_PAIR(a_byte_more_than_a_layout_takes_is_refused),
    WITH_PAIR(an_active_message_from_outside_our_buffer_is_refused),
    WITH_PAIR(active_messages_return_when_the_target_is_dead),
    WITH_PAIR(closing_with_active_messages_under_way_is_safe),
};
const struct topic am_topic = {tests, LENGTH(tests)};
