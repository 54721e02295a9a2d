/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams of bytes: they come in their order, whole, however they were cut when they were sent and
 * are when they are received; lent bytes are those that were sent. */
#include "conformance.h"

#include <errno.h>
#include <string.h>

enum { FROM = 512, TO = 4096, MARGIN = 64 };

/* What is sent at once, and what is received at most at once. */
static const size_t cuts[] = {1, 7, 64, 1000, 8192, 8193, 65536, 200000};

static void needs_streams(struct pair *pair)
{
    needs(pair, VERB_STREAM_SEND, true);
    needs(pair, VERB_STREAM_RECV, true);
}

static void finish(struct pair *pair, int got, uint64_t id)
{
    struct completion completion;
    assert_true(got == DONE || got == LATER);
    if (got == DONE)
        return;
    assert_int_equal(next_completion(&pair->end, &completion), 0);
    assert_int_equal(completion.verb, VERB_STREAM_SEND);
    assert_int_equal(completion.id, id);
    assert_int_equal(completion.status, 0);
}

/* The target collects so many, in receives of at most so many. */
static void collect_there(struct pair *pair, size_t length, size_t most)
{
    for (size_t got = 0; got < length;) {
        size_t room = length - got < most ? length - got : most;
        assert_int_equal(ask_all(pair, "bpost", TO + got, room, got).status, 0);
        struct answer came = ask_all(pair, "take", TO + got, 0, 0);
        assert_int_equal(came.status, 0);
        assert_int_equal(came.verb, VERB_STREAM_RECV);
        assert_int_equal(came.id, got);
        assert_true(came.length > 0 && came.length <= room);
        got += came.length;
    }
}

static void bytes_of_a_stream_come_in_their_order(void **state)
{
    struct pair *pair = *state;
    struct end *end = &pair->end;
    needs_streams(pair);
    for (size_t i = 0; i < LENGTH(cuts); i++) {
        size_t length = cuts[i] < 1000 ? 50 * cuts[i] : 2 * cuts[i];
        ask(pair, "fill", TO - MARGIN, length + (size_t)2 * MARGIN, 0x5a);
        pattern(end->bytes + FROM, length, i);
        uint64_t sent = digest(end->bytes + FROM, length);
        for (size_t at = 0; at < length; at += cuts[i]) {
            struct xfer xfer = xfer_of(end, FROM + at, cuts[i]);
            xfer.id = at;
            finish(pair, post(end, VERB_STREAM_SEND, &xfer), at);
        }
        memset(end->bytes + FROM, 0xee, length);
        size_t most = cuts[LENGTH(cuts) - 1 - i], few = length / 200;
        collect_there(pair, length, most > few ? most : few + 1);
        assert_int_equal(ask(pair, "look", TO, length, 0), sent);
        char margin[MARGIN];
        memset(margin, 0x5a, sizeof margin);
        assert_int_equal(ask(pair, "look", TO + length, MARGIN, 0), digest(margin, MARGIN));
    }
}

static void collect_here(struct end *end, size_t length, bool lends)
{
    for (size_t got = 0; got < length;) {
        struct completion completion;
        struct xfer receive = xfer_of(end, TO + got, length - got);
        receive.how = lends ? HINT(LEND) : 0;
        receive.id = 40;
        assert_int_equal(post(end, VERB_STREAM_RECV, &receive), LATER);
        assert_int_equal(next_completion(end, &completion), 0);
        assert_int_equal(completion.verb, VERB_STREAM_RECV);
        assert_int_equal(completion.status, 0);
        assert_true(completion.length > 0 && completion.length <= length - got);
        assert_true(!completion.data || lends);
        if (completion.data)
            memcpy(end->bytes + TO + got, completion.data, completion.length);
        got += completion.length;
    }
}

static void a_stream_goes_both_ways_and_lends(void **state)
{
    struct pair *pair = *state;
    struct end *end = &pair->end;
    needs_streams(pair);
    for (size_t i = 0; i < 2 * LENGTH(cuts); i++) {
        bool lends = i % 2 && end->facts.honours & HINT(LEND);
        size_t length = cuts[i / 2];
        memset(end->bytes + TO, 0x5a, length + MARGIN);
        uint64_t sent = ask(pair, "pattern", FROM, length, (int)i);
        assert_int_equal(ask_all(pair, "bsay", FROM, length, 0).status, 0);
        collect_here(end, length, lends);
        assert_int_equal(digest(end->bytes + TO, length), sent);
    }
}

static void a_stream_outside_its_buffer_is_refused(void **state)
{
    struct pair *pair = *state;
    struct end *end = &pair->end;
    needs_streams(pair);
    struct xfer far = xfer_of(end, REGION_BYTES - 8, 16), none = xfer_of(end, 0, 0);
    assert_int_equal(choice.ops->stream_send(end->handle, &far), -ERANGE);
    assert_int_equal(choice.ops->stream_recv(end->handle, &far), -ERANGE);
    assert_int_equal(choice.ops->stream_recv(end->handle, &none), -EINVAL);
}

static const struct CMUnitTest tests[] = {
    WITH_PAIR(bytes_of_a_stream_come_in_their_order),
    WITH_PAIR(a_stream_goes_both_ways_and_lends),
    WITH_PAIR(a_stream_outside_its_buffer_is_refused),
};
const struct topic bytes_topic = {tests, LENGTH(tests)};
