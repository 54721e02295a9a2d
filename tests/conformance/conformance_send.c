/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages one at a time: whole, into buffers in posting order, late, too long, by rendezvous. */
#include "conformance.h"
#include "core/clock.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

enum { MARGIN = 64, BUFFER_AT = 4096, LAPS = 300, SPARE = 100000 };

static const size_t lengths[] = {0,  1,  2,  7,  8,  9,  19,  20,  21,  23,   24,    25,
                                 31, 55, 56, 57, 64, 65, 223, 224, 225, 4096, 65536, 300001};

static void needs_messages(struct pair *pair)
{
    needs(pair, VERB_SEND, true);
    needs(pair, VERB_RECV, true);
}

/* What a message may be asked for: any of the first three bits. */
static unsigned message_hints(const struct end *end, unsigned combination, size_t length)
{
    unsigned how = (combination & 1 ? HINT(LL) : 0) | (combination & 2 ? HINT(INLINE) : 0) |
                   (combination & 4 ? HINT(RENDEZVOUS) : 0);
    how &= end->facts.honours;
    if (length > end->facts.max_inline || how & HINT(RENDEZVOUS))
        how &= ~HINT(INLINE);
    return how;
}

/* Posts a send; whether its completion is still to come. Receives that complete are none of ours
 * here. */
static bool send_one(struct end *end, const struct xfer *xfer)
{
    int got = post(end, VERB_SEND, xfer);
    assert_true(got == DONE || got == LATER);
    return got == LATER;
}

static void finish_send(struct end *end, const struct xfer *xfer, bool later)
{
    struct completion completion;
    if (!later)
        return;
    int status = next_completion(end, &completion);
    if (status)
        print_message("# a send of %zu bytes with hints 0x%x\n", xfer->length, xfer->how);
    assert_int_equal(status, 0);
    assert_int_equal(completion.verb, VERB_SEND);
    assert_int_equal(completion.id, xfer->id);
    assert_int_equal(completion.status, 0);
}

static void expect_margins(struct pair *pair, size_t at, size_t length)
{
    char margin[MARGIN];
    memset(margin, 0x5a, sizeof margin);
    assert_int_equal(ask(pair, "look", at - MARGIN, MARGIN, 0), digest(margin, MARGIN));
    assert_int_equal(ask(pair, "look", at + length, MARGIN, 0), digest(margin, MARGIN));
}

static void message_there(struct pair *pair, size_t length, unsigned combination)
{
    struct end *end = &pair->end;
    struct xfer xfer = xfer_of(end, 512 + length % 64, length);
    xfer.how = message_hints(end, combination, length);
    xfer.id = 77 + length;
    pattern(end->bytes + xfer.at, length, length + combination);
    uint64_t sent = digest(end->bytes + xfer.at, length);
    ask(pair, "fill", BUFFER_AT - MARGIN, length + (size_t)2 * MARGIN, 0x5a);
    assert_int_equal(ask_all(pair, "post", BUFFER_AT, length, 1000 + length).status, 0);
    finish_send(end, &xfer, send_one(end, &xfer));
    /* The source may be used again. */
    memset(end->bytes + xfer.at, 0xee, length);
    struct answer came = ask_all(pair, "take", BUFFER_AT, length, 0);
    assert_int_equal(came.status, 0);
    assert_int_equal(came.verb, VERB_RECV);
    assert_int_equal(came.id, 1000 + length);
    assert_int_equal(came.length, length);
    assert_int_equal(came.digest, sent);
    expect_margins(pair, BUFFER_AT, length);
}

static void messages_land_whole_with_every_combination_of_hints(void **state)
{
    struct pair *pair = *state;
    needs_messages(pair);
    for (size_t i = 0; i < LENGTH(lengths); i++)
        for (unsigned how = 0; how < 8; how++)
            message_there(pair, lengths[i], how);
}

static void message_back(struct pair *pair, size_t length, unsigned combination)
{
    struct end *end = &pair->end;
    struct completion completion;
    struct xfer receive = {
        .local = &end->region, .at = BUFFER_AT, .length = length, .id = 5 + length};
    unsigned how = message_hints(end, combination, length);
    memset(end->bytes + BUFFER_AT - MARGIN, 0x5a, length + (size_t)2 * MARGIN);
    assert_int_equal(choice.ops->recv(end->handle, &receive), LATER);
    uint64_t sent = ask(pair, "pattern", 512, length, (int)length);
    assert_int_equal(ask_all(pair, "say", 512, length, how).status, 0);
    assert_int_equal(next_completion(end, &completion), 0);
    assert_int_equal(completion.status, 0);
    assert_int_equal(completion.verb, VERB_RECV);
    assert_int_equal(completion.id, 5 + length);
    assert_int_equal(completion.length, length);
    assert_int_equal(digest(end->bytes + BUFFER_AT, length), sent);
    for (size_t i = 0; i < MARGIN; i++) {
        assert_int_equal(end->bytes[BUFFER_AT - 1 - i], 0x5a);
        assert_int_equal(end->bytes[BUFFER_AT + length + i], 0x5a);
    }
}

static void messages_go_both_ways(void **state)
{
    struct pair *pair = *state;
    needs_messages(pair);
    for (size_t i = 0; i < LENGTH(lengths); i++)
        for (unsigned how = 0; how < 4; how++) {
            message_there(pair, lengths[i], how);
            message_back(pair, lengths[i], how);
        }
}

static void messages_fill_buffers_in_posting_order(void **state)
{
    enum { MESSAGES = 12, SLOT = 8192 };
    struct pair *pair = *state;
    struct end *end = &pair->end;
    static const size_t sizes[MESSAGES] = {8, 4096, 0, 24, 25, 56, 57, 1, 224, 300, 8192, 3};
    needs_messages(pair);
    for (unsigned i = 0; i < MESSAGES; i++)
        assert_int_equal(ask_all(pair, "post", (uint64_t)i * SLOT, SLOT, 100 - i).status, 0);
    for (unsigned i = 0; i < MESSAGES; i++) {
        struct xfer xfer = xfer_of(end, (size_t)i * SLOT, sizes[i]);
        xfer.how = message_hints(end, i, sizes[i]);
        pattern(end->bytes + xfer.at, SLOT, i);
        finish_send(end, &xfer, send_one(end, &xfer));
    }
    for (unsigned i = 0; i < MESSAGES; i++) {
        struct answer came = ask_all(pair, "take", (uint64_t)i * SLOT, sizes[i], 0);
        assert_int_equal(came.status, 0);
        assert_int_equal(came.id, 100 - i);
        assert_int_equal(came.length, sizes[i]);
        assert_int_equal(came.digest, digest(end->bytes + (size_t)i * SLOT, sizes[i]));
    }
}

/* Too long for its buffer: an error at the target, nothing beside the buffer, and the next one
 * comes as if nothing had been. */
static void a_message_longer_than_its_buffer_is_an_error_and_does_not_overrun(void **state)
{
    struct pair *pair = *state;
    struct end *end = &pair->end;
    needs_messages(pair);
    for (size_t i = 1; i < LENGTH(lengths); i++)
        for (unsigned how = 0; how < 8; how++) {
            static const size_t rooms[] = {0, 1, 7};
            size_t room = i % 4 == 3 ? lengths[i] - 1 : rooms[i % 4];
            room = room < lengths[i] ? room : lengths[i] - 1;
            struct xfer xfer = xfer_of(end, 64, lengths[i]);
            xfer.how = message_hints(end, how, lengths[i]);
            pattern(end->bytes + 64, lengths[i], i);
            ask(pair, "fill", BUFFER_AT - MARGIN, lengths[i] + (size_t)2 * MARGIN, 0x5a);
            assert_int_equal(ask_all(pair, "post", BUFFER_AT, room, i).status, 0);
            finish_send(end, &xfer, send_one(end, &xfer));
            struct answer came = ask_all(pair, "take", BUFFER_AT, room, 0);
            assert_int_equal(came.verb, VERB_RECV);
            assert_int_equal(came.id, i);
            assert_true(came.status < 0);
            expect_margins(pair, BUFFER_AT, room);
            message_there(pair, lengths[i], how);
        }
}

static void a_message_waits_for_its_receive(void **state)
{
    struct pair *pair = *state;
    struct end *end = &pair->end;
    needs_messages(pair);
    for (size_t i = 0; i < LENGTH(lengths); i++)
        for (unsigned how = 0; how < 8; how++) {
            struct completion completion;
            struct xfer xfer = xfer_of(end, 128, lengths[i]);
            xfer.how = message_hints(end, how, lengths[i]);
            pattern(end->bytes + 128, lengths[i], i + how);
            ask(pair, "fill", BUFFER_AT, lengths[i], 0);
            int got = -EAGAIN, done = 0;
            for (int lap = 0; lap < LAPS && got == -EAGAIN; lap++) {
                got = choice.ops->send(end->handle, &xfer);
                choice.ops->poll(end->handle, &completion, 0);
            }
            assert_true(got == -EAGAIN || got == DONE || got == LATER);
            /* The target polls meanwhile, and must not lose it. */
            ask(pair, "look", 0, 0, 0);
            if (got == LATER)
                done = choice.ops->poll(end->handle, &completion, 1);
            if (xfer.how & HINT(RENDEZVOUS))
                assert_int_equal(done, 0);
            assert_int_equal(ask_all(pair, "post", BUFFER_AT, lengths[i], i).status, 0);
            bool later = got == LATER && !done;
            if (got == -EAGAIN)
                later = send_one(end, &xfer);
            finish_send(end, &xfer, later);
            struct answer came = ask_all(pair, "take", BUFFER_AT, lengths[i], 0);
            assert_int_equal(came.status, 0);
            assert_int_equal(came.length, lengths[i]);
            assert_int_equal(came.digest, digest(end->bytes + 128, lengths[i]));
        }
}

static void a_full_ring_says_so_and_goes_on_afterwards(void **state)
{
    struct pair *pair = *state;
    struct end *end = &pair->end;
    needs_messages(pair);
    for (unsigned how = 0; how < 4; how++) {
        struct completion completion;
        unsigned accepted = 0, complete = 0;
        int got = DONE;
        if (how && message_hints(end, how, 8) == message_hints(end, how - 1, 8))
            continue; /* the same again */
        while (got != -EAGAIN && accepted < SPARE) {
            struct xfer xfer = xfer_of(end, (size_t)(accepted % 1024) * 8, 8);
            uint64_t number = accepted;
            memcpy(end->bytes + xfer.at, &number, sizeof number);
            xfer.how = message_hints(end, how, 8);
            xfer.id = accepted;
            got = choice.ops->send(end->handle, &xfer);
            assert_true(got >= 0 || got == -EAGAIN);
            accepted += got >= 0;
            complete += got == DONE;
        }
        assert_true(accepted < SPARE);
        for (unsigned i = 0; i < accepted; i++) {
            uint64_t number = i;
            assert_int_equal(ask_all(pair, "post", BUFFER_AT, 8, i).status, 0);
            while (choice.ops->poll(end->handle, &completion, 1) == 1)
                complete++;
            /* What waits here for a receive goes when a poll finds that there is one. */
            if (complete <= i && !next_completion(end, &completion))
                complete++;
            struct answer came = ask_all(pair, "take", BUFFER_AT, 8, 0);
            assert_int_equal(came.status, 0);
            assert_int_equal(came.id, i);
            assert_int_equal(came.digest, digest((const char *)&number, 8));
        }
        while (complete < accepted) {
            assert_int_equal(next_completion(end, &completion), 0);
            complete++;
        }
        message_there(pair, 8, how);
    }
}

/* ---- rendezvous ---- */

static void a_rendezvous_completes_only_when_the_target_has_pulled(void **state)
{
    struct pair *pair = *state;
    struct end *end = &pair->end;
    needs_messages(pair);
    needs_hint(pair, HINT_RENDEZVOUS, "rendezvous");
    for (unsigned ll = 0; ll < 2; ll++) {
        struct completion completion;
        struct xfer xfer = xfer_of(end, 0, 100000);
        xfer.how = HINT(RENDEZVOUS) | (ll ? HINT(LL) & end->facts.honours : 0);
        memset(end->bytes, 1, 100000);
        assert_int_equal(choice.ops->send(end->handle, &xfer), LATER);
        for (int lap = 0; lap < LAPS; lap++)
            assert_int_equal(choice.ops->poll(end->handle, &completion, 1), 0);
        /* Not pulled yet: what stands there now is what arrives. */
        memset(end->bytes, 2, 100000);
        uint64_t sent = digest(end->bytes, 100000);
        assert_int_equal(ask_all(pair, "post", 0, 100000, 9).status, 0);
        finish_send(end, &xfer, true);
        memset(end->bytes, 3, 100000);
        struct answer came = ask_all(pair, "take", 0, 100000, 0);
        assert_int_equal(came.status, 0);
        assert_int_equal(came.digest, sent);
    }
}

/* Two ends that each send first and receive afterwards must not wait for each other. */
static void a_rendezvous_completes_though_a_message_waits_for_its_receive(void **state)
{
    struct pair *pair = *state;
    struct end *end = &pair->end;
    struct completion completion;
    needs_messages(pair);
    needs_early(pair);
    needs_hint(pair, HINT_RENDEZVOUS, "rendezvous");
    struct xfer xfer = xfer_of(end, 0, 100000);
    xfer.how = HINT(RENDEZVOUS);
    uint64_t laid = ask(pair, "pattern", 0, 8, 4);
    assert_int_equal(ask_all(pair, "say", 0, 8, message_hints(end, 3, 8)).status, 0);
    assert_int_equal(post(end, VERB_SEND, &xfer), LATER);
    assert_int_equal(ask_all(pair, "post", 4096, 100000, 9).status, 0);
    finish_send(end, &xfer, true);
    struct xfer receive = {.local = &end->region, .at = 0, .length = 8, .id = 3};
    assert_int_equal(choice.ops->recv(end->handle, &receive), LATER);
    assert_int_equal(next_completion(end, &completion), 0);
    assert_int_equal(completion.verb, VERB_RECV);
    assert_int_equal(completion.id, 3);
    assert_int_equal(digest(end->bytes, 8), laid);
}

/* ---- refusals and faults ---- */

static void a_message_from_outside_our_buffer_is_refused(void **state)
{
    struct pair *pair = *state;
    needs_messages(pair);
    static const size_t bad[] = {REGION_BYTES, REGION_BYTES - 7, SIZE_MAX - 3};
    for (size_t i = 0; i < LENGTH(bad); i++) {
        struct xfer xfer = xfer_of(&pair->end, bad[i], 8);
        assert_true(choice.ops->send(pair->end.handle, &xfer) < 0);
        assert_true(choice.ops->recv(pair->end.handle, &xfer) < 0);
        assert_true(*fail_reason());
    }
}

static void immediate_data_beyond_the_limit_is_refused_in_a_message(void **state)
{
    struct pair *pair = *state;
    needs_messages(pair);
    needs_hint(pair, HINT_INLINE, "immediate data");
    for (unsigned ll = 0; ll < 2; ll++) {
        struct xfer xfer = xfer_of(&pair->end, 0, pair->end.facts.max_inline + 1);
        xfer.how = HINT(INLINE) | (ll ? HINT(LL) & pair->end.facts.honours : 0);
        assert_int_equal(choice.ops->send(pair->end.handle, &xfer), -EMSGSIZE);
    }
}

static void sends_return_when_the_target_is_dead(void **state)
{
    struct pair *pair = *state;
    needs(pair, VERB_SEND, false);
    kill(pair->target, SIGKILL);
    uint64_t since_ms = clock_ms();
    for (unsigned i = 0; i < 2000; i++) {
        struct completion completion;
        struct xfer xfer = xfer_of(&pair->end, 0, lengths[i % LENGTH(lengths)]);
        xfer.how = message_hints(&pair->end, i, xfer.length);
        choice.ops->send(pair->end.handle, &xfer);
        choice.ops->poll(pair->end.handle, &completion, 1);
    }
    assert_true(clock_ms() - since_ms < WAIT_MS);
}

static void closing_with_messages_under_way_is_safe(void **state)
{
    struct pair *pair = *state;
    needs(pair, VERB_SEND, false);
    needs(pair, VERB_RECV, false);
    for (unsigned i = 0; i < 200; i++) {
        struct xfer xfer = xfer_of(&pair->end, 0, lengths[i % LENGTH(lengths)]);
        choice.ops->recv(pair->end.handle, &xfer);
        xfer.how = message_hints(&pair->end, i, xfer.length);
        choice.ops->send(pair->end.handle, &xfer);
    }
    choice.ops->withdraw(pair->end.handle, &pair->end.region);
    choice.ops->close(pair->end.handle);
    pair->end.handle = NULL;
}

/* ---- where nothing moves ---- */

static void a_message_answers_itself_where_nothing_moves(void **state)
{
    struct pair *pair = *state;
    struct completion completion;
    if (!pair->end.facts.alone)
        skip();
    needs(pair, VERB_SEND, false);
    needs(pair, VERB_RECV, false);
    for (uint64_t i = 0; i < 500; i++) {
        struct xfer xfer = xfer_of(&pair->end, 0, 8 + i);
        xfer.id = i;
        assert_int_equal(choice.ops->recv(pair->end.handle, &xfer), LATER);
        assert_int_equal(perform(&pair->end, VERB_SEND, &xfer), 0);
        assert_int_equal(next_completion(&pair->end, &completion), 0);
        assert_int_equal(completion.verb, VERB_RECV);
        assert_int_equal(completion.id, i);
        assert_int_equal(completion.length, 8 + i);
    }
}

static const struct CMUnitTest tests[] = {
    WITH_PAIR(messages_land_whole_with_every_combination_of_hints),
    WITH_PAIR(messages_go_both_ways),
    WITH_PAIR(messages_fill_buffers_in_posting_order),
    WITH_PAIR(a_message_longer_than_its_buffer_is_an_error_and_does_not_overrun),
    WITH_PAIR(a_message_waits_for_its_receive),
    WITH_PAIR(a_full_ring_says_so_and_goes_on_afterwards),
    WITH_PAIR(a_rendezvous_completes_only_when_the_target_has_pulled),
    WITH_PAIR(a_rendezvous_completes_though_a_message_waits_for_its_receive),
    WITH_PAIR(a_message_from_outside_our_buffer_is_refused),
    WITH_PAIR(immediate_data_beyond_the_limit_is_refused_in_a_message),
    WITH_PAIR(sends_return_when_the_target_is_dead),
    WITH_PAIR(closing_with_messages_under_way_is_safe),
    WITH_PAIR(a_message_answers_itself_where_nothing_moves),
};
const struct topic send_topic = {tests, LENGTH(tests)};
