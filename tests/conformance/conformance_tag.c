/* SPDX-License-Identifier: BSD-3-Clause */
/* Tagged messages: each finds the receive that its tag fits, expected or not, in order, and no more
 * are kept than the fabric says. */
#include "conformance.h"
#include "core/clock.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

enum { MARGIN = 64, BUFFER_AT = 4096, SLOT = 16384, LAPS = 300, ALL = 0xffff };

static const size_t lengths[] = {0,  1,   7,    8,    9,    24,    40,    41,
                                 64, 224, 4096, 8192, 8193, 65536, 300001};

/* The value of a question, and of tagged_of. */
static uint64_t value_of(uint64_t id, uint64_t mask, uint64_t tag)
{
    return id << 32 | mask << 16 | tag;
}

/* In all bits that tags have here, so that none is lost on the way. */
struct xfer tagged_of(struct end *end, size_t at, size_t length, uint64_t value)
{
    uint64_t mask = value >> 16 & 0xffff, high = UINT64_C(0xa5c3f00d12340000);
    return (struct xfer){.local = &end->region,
                         .at = at,
                         .length = length,
                         .tag = (high & end->facts.tag_bits) | (value & 0xffff),
                         .mask = mask == ALL ? UINT64_MAX : mask,
                         .id = value >> 32};
}

static void needs_tags(struct pair *pair)
{
    needs(pair, VERB_TSEND, true);
    needs(pair, VERB_TRECV, true);
}

static void needs_probe(struct pair *pair)
{
    needs_tags(pair);
    if (!pair->end.facts.why_no_probe)
        return;
    print_message("# no probe: %s\n", pair->end.facts.why_no_probe);
    skip();
}

static void post_there(struct pair *pair, size_t at, size_t length, uint64_t id, uint64_t mask,
                       uint64_t tag)
{
    assert_int_equal(ask_all(pair, "tpost", at, length, value_of(id, mask, tag)).status, 0);
}

/* Starts one whose bytes follow from its number; whether its completion is still to come. */
static bool send_tagged(struct pair *pair, size_t at, size_t length, uint64_t tag, unsigned how,
                        uint64_t number)
{
    struct xfer xfer = tagged_of(&pair->end, at, length, value_of(number, 0, tag));
    xfer.how = how;
    pattern(pair->end.bytes + at, length, number);
    int got = post(&pair->end, VERB_TSEND, &xfer);
    if (got != DONE && got != LATER)
        print_message("# %s\n", fail_reason());
    assert_true(got == DONE || got == LATER);
    return got == LATER;
}

static void finish_tagged(struct pair *pair, bool later, uint64_t number)
{
    struct completion completion;
    if (!later)
        return;
    int status = next_completion(&pair->end, &completion);
    if (status)
        print_message("# message %llu\n", (unsigned long long)number);
    assert_int_equal(status, 0);
    assert_int_equal(completion.verb, VERB_TSEND);
    assert_int_equal(completion.id, number);
    assert_int_equal(completion.status, 0);
}

/* The next that the target has received: which receive it is, and that its bytes are those of the
 * message with this number. */
static uint64_t take_there(struct pair *pair, size_t at, size_t length, uint64_t number)
{
    static char expected[300001];
    struct answer came = ask_all(pair, "take", at, length, 0);
    if (came.status)
        print_message("# message %llu of %zu bytes\n", (unsigned long long)number, length);
    assert_int_equal(came.status, 0);
    assert_int_equal(came.verb, VERB_TRECV);
    assert_int_equal(came.length, length);
    pattern(expected, length, number);
    assert_int_equal(came.digest, digest(expected, length));
    return came.id;
}

static void expect_margins(struct pair *pair, size_t at, size_t length)
{
    char margin[MARGIN];
    memset(margin, 0x5a, sizeof margin);
    assert_int_equal(ask(pair, "look", at - MARGIN, MARGIN, 0), digest(margin, MARGIN));
    assert_int_equal(ask(pair, "look", at + length, MARGIN, 0), digest(margin, MARGIN));
}

/* Its receive is posted before it, or after it has come. */
static void tagged_there(struct pair *pair, size_t length, bool expected)
{
    bool later = false;
    ask(pair, "fill", BUFFER_AT - MARGIN, length + (size_t)2 * MARGIN, 0x5a);
    if (!expected)
        later = send_tagged(pair, 512, length, 7, 0, length);
    if (!expected)
        ask(pair, "look", 0, 0, 0);
    post_there(pair, BUFFER_AT, length, 1000 + length, ALL, 7);
    if (expected)
        later = send_tagged(pair, 512, length, 7, 0, length);
    finish_tagged(pair, later, length);
    /* The source may be used again. */
    memset(pair->end.bytes + 512, 0xee, length);
    assert_int_equal(take_there(pair, BUFFER_AT, length, length), 1000 + length);
    expect_margins(pair, BUFFER_AT, length);
}

static void tagged_messages_land_whole_expected_or_not(void **state)
{
    struct pair *pair = *state;
    needs_tags(pair);
    for (size_t i = 0; i < LENGTH(lengths); i++) {
        tagged_there(pair, lengths[i], true);
        tagged_there(pair, lengths[i], false);
    }
}

static void tagged_messages_come_back_with_their_tag(void **state)
{
    struct pair *pair = *state;
    struct end *end = &pair->end;
    needs_tags(pair);
    for (size_t i = 0; i < LENGTH(lengths); i++) {
        struct completion completion;
        struct xfer receive = tagged_of(end, BUFFER_AT, lengths[i], value_of(5 + i, 0, 0));
        assert_int_equal(post(end, VERB_TRECV, &receive), LATER);
        uint64_t sent = ask(pair, "pattern", 512, lengths[i], (int)i);
        assert_int_equal(ask_all(pair, "tsay", 512, lengths[i], value_of(0, 0, 40 + i)).status, 0);
        assert_int_equal(next_completion(end, &completion), 0);
        assert_int_equal(completion.verb, VERB_TRECV);
        assert_int_equal(completion.status, 0);
        assert_int_equal(completion.id, 5 + i);
        assert_int_equal(completion.length, lengths[i]);
        assert_int_equal(completion.tag, receive.tag | (40 + i));
        assert_int_equal(digest(end->bytes + BUFFER_AT, lengths[i]), sent);
    }
}

/* Whatever the order of posting, and of sending. */
static void a_message_finds_the_receive_of_its_tag(void **state)
{
    enum { TAGS = 5 };
    static const uint64_t order[TAGS] = {3, 0, 4, 2, 1};
    struct pair *pair = *state;
    needs_tags(pair);
    for (int early = 0; early < 2; early++) {
        bool later[TAGS];
        for (uint64_t tag = 0; tag < TAGS && !early; tag++)
            post_there(pair, tag * SLOT, SLOT, 100 + tag, ALL, tag);
        for (size_t i = 0; i < TAGS; i++)
            later[i] = send_tagged(pair, i * SLOT, 16 + i, order[i], 0, order[i]);
        for (uint64_t tag = 0; tag < TAGS && early; tag++)
            post_there(pair, tag * SLOT, SLOT, 100 + tag, ALL, tag);
        for (size_t i = 0; i < TAGS; i++)
            finish_tagged(pair, later[i], order[i]);
        for (uint64_t seen = 0, i = 0; i < TAGS; i++) {
            struct answer came = ask_all(pair, "take", 0, 0, 0);
            assert_true(came.id >= 100 && came.id < 100 + TAGS && !(seen >> (came.id - 100) & 1));
            seen |= UINT64_C(1) << (came.id - 100);
            assert_int_equal(came.status, 0);
        }
        for (size_t i = 0; i < TAGS; i++)
            assert_int_equal(ask(pair, "look", order[i] * SLOT, 16 + i, 0),
                             digest(pair->end.bytes + i * SLOT, 16 + i));
    }
}

static void a_mask_says_which_bits_count(void **state)
{
    struct pair *pair = *state;
    needs_tags(pair);
    /* The first wants another low byte, the second only the low byte, the third takes all. */
    post_there(pair, 0, SLOT, 1, 0x00ff, 0x0031);
    post_there(pair, SLOT, SLOT, 2, 0x00ff, 0x0032);
    post_there(pair, (size_t)2 * SLOT, SLOT, 3, 0, 0x7777);
    finish_tagged(pair, send_tagged(pair, 0, 8, 0xab32, 0, 1), 1);
    assert_int_equal(take_there(pair, SLOT, 8, 1), 2);
    finish_tagged(pair, send_tagged(pair, 0, 8, 0xab32, 0, 2), 2);
    assert_int_equal(take_there(pair, (size_t)2 * SLOT, 8, 2), 3);
    finish_tagged(pair, send_tagged(pair, 0, 8, 0xcd31, 0, 3), 3);
    assert_int_equal(take_there(pair, 0, 8, 3), 1);
}

/* Short ones, and such as take longer to move, between each other. */
static void messages_of_one_tag_keep_their_order(void **state)
{
    enum { MESSAGES = 12, ROOM = 32768 };
    static const size_t sizes[MESSAGES] = {8, 20000, 0, 24, 8192, 8193, 100, 1, 40, 30000, 41, 8};
    struct pair *pair = *state;
    needs_tags(pair);
    for (int early = 0; early < 2; early++) {
        bool later[MESSAGES], seen[MESSAGES] = {false};
        unsigned pending = 0;
        for (size_t i = 0; i < MESSAGES && !early; i++)
            post_there(pair, i * ROOM, ROOM, i, ALL, 9);
        for (size_t i = 0; i < MESSAGES; i++) {
            later[i] = send_tagged(pair, i * ROOM, sizes[i], 9, 0, 50 + i);
            pending += later[i];
        }
        for (size_t i = 0; i < MESSAGES && early; i++)
            post_there(pair, i * ROOM, ROOM, i, ALL, 9);
        for (; pending; pending--) {
            struct completion completion;
            assert_int_equal(next_completion(&pair->end, &completion), 0);
            assert_int_equal(completion.status, 0);
        }
        for (size_t i = 0; i < MESSAGES; i++) {
            struct answer came = ask_all(pair, "take", 0, 0, 0);
            assert_int_equal(came.status, 0);
            assert_true(came.id < MESSAGES && !seen[came.id]);
            seen[came.id] = true;
            assert_int_equal(came.length, sizes[came.id]);
        }
        for (size_t i = 0; i < MESSAGES; i++)
            assert_int_equal(ask(pair, "look", i * ROOM, sizes[i], 0),
                             digest(pair->end.bytes + i * ROOM, sizes[i]));
    }
}

static void a_message_longer_than_its_receive_is_an_error(void **state)
{
    struct pair *pair = *state;
    needs_tags(pair);
    for (size_t i = 1; i < LENGTH(lengths); i++)
        for (int early = 0; early < 2; early++) {
            size_t room = i % 2 ? lengths[i] - 1 : lengths[i] / 3;
            bool later = false;
            ask(pair, "fill", BUFFER_AT - MARGIN, lengths[i] + (size_t)2 * MARGIN, 0x5a);
            if (early)
                later = send_tagged(pair, 512, lengths[i], 7, 0, i);
            if (early)
                ask(pair, "look", 0, 0, 0);
            post_there(pair, BUFFER_AT, room, i, ALL, 7);
            if (!early)
                later = send_tagged(pair, 512, lengths[i], 7, 0, i);
            finish_tagged(pair, later, i);
            struct answer came = ask_all(pair, "take", BUFFER_AT, room, 0);
            assert_int_equal(came.verb, VERB_TRECV);
            assert_int_equal(came.id, i);
            assert_int_equal(came.status, -EMSGSIZE);
            expect_margins(pair, BUFFER_AT, room);
            tagged_there(pair, lengths[i], !early);
        }
}

static void a_probe_finds_what_waits_and_nothing_else(void **state)
{
    struct pair *pair = *state;
    needs_probe(pair);
    for (size_t i = 0; i < LENGTH(lengths); i++) {
        struct backoff backoff = {0};
        int found = -EAGAIN;
        assert_int_equal(ask_all(pair, "tprobe", 0, 0, value_of(0, ALL, 7)).status, -EAGAIN);
        bool later = send_tagged(pair, 512, lengths[i], 7, 0, i);
        while (found && patient(&backoff)) {
            struct completion completion;
            choice.ops->poll(pair->end.handle, &completion, 0);
            found = ask_all(pair, "tprobe", 0, 0, value_of(0, ALL, 7)).status;
        }
        assert_int_equal(found, 0);
        assert_int_equal(ask_all(pair, "tprobe", 0, 0, value_of(0, 0, 0)).status, 0);
        assert_int_equal(ask_all(pair, "tprobe", 0, 0, value_of(0, ALL, 8)).status, -EAGAIN);
        post_there(pair, BUFFER_AT, lengths[i], 3, ALL, 7);
        finish_tagged(pair, later, i);
        assert_int_equal(take_there(pair, BUFFER_AT, lengths[i], i), 3);
    }
}

static void a_synchronous_send_completes_when_its_receive_is_found(void **state)
{
    struct pair *pair = *state;
    needs_tags(pair);
    needs_hint(pair, HINT_SYNC, "synchronous sends");
    for (size_t i = 0; i < LENGTH(lengths); i++) {
        struct completion completion;
        assert_true(send_tagged(pair, 512, lengths[i], 7, HINT(SYNC), i));
        for (int lap = 0; lap < LAPS; lap++)
            assert_int_equal(choice.ops->poll(pair->end.handle, &completion, 1), 0);
        ask(pair, "look", 0, 0, 0);
        assert_int_equal(choice.ops->poll(pair->end.handle, &completion, 1), 0);
        post_there(pair, BUFFER_AT, lengths[i], 3, ALL, 7);
        finish_tagged(pair, true, i);
        assert_int_equal(take_there(pair, BUFFER_AT, lengths[i], i), 3);
        /* And with a receive that is there already. */
        post_there(pair, BUFFER_AT, lengths[i], 4, ALL, 7);
        finish_tagged(pair, send_tagged(pair, 512, lengths[i], 7, HINT(SYNC), i), i);
        assert_int_equal(take_there(pair, BUFFER_AT, lengths[i], i), 4);
    }
}

/* The sender runs out of room before the receiver does, and goes on where it was. */
static void what_nobody_receives_has_a_bound(void **state)
{
    struct pair *pair = *state;
    struct end *end = &pair->end;
    const unsigned most = 100000;
    needs_tags(pair);
    for (size_t length = 8; length <= 64; length *= 8) {
        struct completion completion;
        unsigned sent = 0, full = 0, done = 0;
        while (sent < most && full < LAPS) {
            struct xfer xfer = tagged_of(end, 0, length, value_of(sent, 0, 5));
            pattern(end->bytes, length, sent);
            int got = choice.ops->tsend(end->handle, &xfer);
            assert_true(got >= 0 || got == -EAGAIN);
            sent += got >= 0;
            done += got == DONE;
            /* Its source is not free before that. */
            while (got >= 0 && done < sent && !next_completion(end, &completion))
                done++;
            full = got == -EAGAIN ? full + 1 : 0;
            choice.ops->poll(end->handle, &completion, 0);
            if (full)
                ask(pair, "look", 0, 0, 0);
        }
        /* Some of it may be taken up by what is not acknowledged yet. */
        assert_true(sent >= end->facts.max_unexpected / 2 && sent < most);
        for (unsigned i = 0; i < sent; i++) {
            post_there(pair, BUFFER_AT, length, i, ALL, 5);
            assert_int_equal(take_there(pair, BUFFER_AT, length, i), i);
            choice.ops->poll(end->handle, &completion, 0);
        }
        tagged_there(pair, length, true);
    }
}

/* A receive without a tag, and active messages, are others. */
static void tagged_and_other_messages_do_not_meet(void **state)
{
    struct pair *pair = *state;
    struct end *end = &pair->end;
    needs_tags(pair);
    needs(pair, VERB_SEND, true);
    post_there(pair, 0, SLOT, 1, 0, 0);
    assert_int_equal(ask_all(pair, "post", SLOT, SLOT, 2).status, 0);
    struct xfer plain = xfer_of(end, 512, 16);
    pattern(end->bytes + 512, 16, 1);
    assert_int_equal(perform(end, VERB_SEND, &plain), 0);
    struct answer came = ask_all(pair, "take", SLOT, 16, 0);
    assert_int_equal(came.verb, VERB_RECV);
    assert_int_equal(came.id, 2);
    assert_int_equal(ask_all(pair, "post", SLOT, SLOT, 4).status, 0);
    finish_tagged(pair, send_tagged(pair, 1024, 16, 3, 0, 6), 6);
    assert_int_equal(take_there(pair, 0, 16, 6), 1);
}

static void leaving_forgets_what_waits(void **state)
{
    struct pair *pair = *state;
    needs_tags(pair);
    for (size_t i = 0; i < LENGTH(lengths); i++) {
        send_tagged(pair, 512, lengths[i], 7, 0, i);
        if (pair->end.facts.honours & HINT(SYNC))
            send_tagged(pair, 512, lengths[i], 8, HINT(SYNC), i);
    }
    ask(pair, "look", 0, 0, 0);
    pair_meet(pair, 0);
    for (int i = 0; i < LAPS && !pair->end.facts.why_no_probe; i++)
        assert_int_equal(ask_all(pair, "tprobe", 0, 0, value_of(0, 0, 0)).status, -EAGAIN);
    for (size_t i = 0; i < LENGTH(lengths); i++)
        tagged_there(pair, lengths[i], i % 2);
}

static void what_a_tag_or_a_buffer_cannot_hold_is_refused(void **state)
{
    struct pair *pair = *state;
    struct end *end = &pair->end;
    static const size_t bad[] = {REGION_BYTES, REGION_BYTES - 7, SIZE_MAX - 3};
    needs_tags(pair);
    for (size_t i = 0; i < LENGTH(bad); i++) {
        struct xfer xfer = tagged_of(end, bad[i], 8, 0);
        assert_true(choice.ops->tsend(end->handle, &xfer) < 0);
        assert_true(choice.ops->trecv(end->handle, &xfer) < 0);
        assert_true(*fail_reason());
    }
    struct xfer xfer = tagged_of(end, 0, 8, 0);
    xfer.tag = ~end->facts.tag_bits;
    if (xfer.tag)
        assert_true(choice.ops->tsend(end->handle, &xfer) < 0);
}

static void tagged_sends_return_when_the_target_is_dead(void **state)
{
    struct pair *pair = *state;
    needs(pair, VERB_TSEND, false);
    kill(pair->target, SIGKILL);
    uint64_t since_ms = clock_ms();
    for (unsigned i = 0; i < 2000; i++) {
        struct completion completion;
        struct xfer xfer = tagged_of(&pair->end, 0, lengths[i % LENGTH(lengths)], i);
        choice.ops->trecv(pair->end.handle, &xfer);
        choice.ops->tsend(pair->end.handle, &xfer);
        choice.ops->poll(pair->end.handle, &completion, 1);
    }
    assert_true(clock_ms() - since_ms < WAIT_MS);
}

static void a_tagged_message_answers_itself_where_nothing_moves(void **state)
{
    struct pair *pair = *state;
    struct completion completion;
    if (!pair->end.facts.alone)
        skip();
    needs(pair, VERB_TSEND, false);
    for (uint64_t i = 0; i < 500; i++) {
        struct xfer receive = tagged_of(&pair->end, 0, 8, value_of(i, ALL, i % 7));
        struct xfer message = tagged_of(&pair->end, 0, 8 + i, value_of(0, 0, i % 7));
        bool first = i % 2;
        if (first)
            assert_int_equal(choice.ops->trecv(pair->end.handle, &receive), LATER);
        assert_int_equal(perform(&pair->end, VERB_TSEND, &message), 0);
        if (!first)
            assert_int_equal(choice.ops->trecv(pair->end.handle, &receive), LATER);
        assert_int_equal(next_completion(&pair->end, &completion), 0);
        assert_int_equal(completion.verb, VERB_TRECV);
        assert_int_equal(completion.id, i);
        assert_int_equal(completion.length, 8 + i);
        assert_int_equal(completion.tag, message.tag);
    }
}

static const struct CMUnitTest tests[] = {
    WITH_PAIR(tagged_messages_land_whole_expected_or_not),
    WITH_PAIR(tagged_messages_come_back_with_their_tag),
    WITH_PAIR(a_message_finds_the_receive_of_its_tag),
    WITH_PAIR(a_mask_says_which_bits_count),
    WITH_PAIR(messages_of_one_tag_keep_their_order),
    WITH_PAIR(a_message_longer_than_its_receive_is_an_error),
    WITH_PAIR(a_probe_finds_what_waits_and_nothing_else),
    WITH_PAIR(a_synchronous_send_completes_when_its_receive_is_found),
    WITH_PAIR(what_nobody_receives_has_a_bound),
    WITH_PAIR(tagged_and_other_messages_do_not_meet),
    WITH_PAIR(leaving_forgets_what_waits),
    WITH_PAIR(what_a_tag_or_a_buffer_cannot_hold_is_refused),
    WITH_PAIR(tagged_sends_return_when_the_target_is_dead),
    WITH_PAIR(a_tagged_message_answers_itself_where_nothing_moves),
};
const struct topic tag_topic = {tests, LENGTH(tests)};
