/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages in numbers: streams one way and both ways, with windows, of all lengths and kinds. */
#include "conformance.h"

#include <errno.h>

static void stream(void **state, struct exchange x)
{
    struct pair *pair = *state;
    needs(pair, VERB_SEND, true);
    needs(pair, VERB_RECV, true);
    x.out = many(x.out);
    x.in = many(x.in);
    exchange_both(pair, &x);
}

static const unsigned eager = HINT(LL) | HINT(INLINE);

static void many_messages_each_way_keep_their_order(void **state)
{
    stream(state,
           (struct exchange){
               .out = 20000, .in = 20000, .seed = 2, .longest = 8192, .how = eager, .window = 32});
}

static void messages_each_way_some_by_rendezvous_keep_their_order(void **state)
{
    struct pair *pair = *state;
    needs_hint(pair, HINT_RENDEZVOUS, "rendezvous");
    stream(state, (struct exchange){.out = 20000,
                                    .in = 20000,
                                    .seed = 4,
                                    .longest = 8192,
                                    .how = eager | HINT(RENDEZVOUS),
                                    .window = 32});
}

static void queued_messages_each_way_keep_their_order(void **state)
{
    stream(state,
           (struct exchange){.out = 5000, .in = 5000, .seed = 6, .longest = 8192, .window = 64});
}

static void long_messages_each_way_keep_their_order(void **state)
{
    stream(state,
           (struct exchange){
               .out = 1000, .in = 1000, .seed = 8, .longest = 65536, .how = eager, .window = 8});
}

static void one_message_at_a_time_each_way_keeps_its_order(void **state)
{
    stream(state,
           (struct exchange){
               .out = 5000, .in = 5000, .seed = 10, .longest = 600, .how = eager, .window = 1});
}

static void many_small_messages_stream_one_way(void **state)
{
    stream(state,
           (struct exchange){.out = 100000, .seed = 12, .longest = 24, .how = eager, .window = 64});
}

static void many_small_messages_stream_the_other_way(void **state)
{
    stream(state,
           (struct exchange){.in = 100000, .seed = 14, .longest = 56, .how = eager, .window = 64});
}

/* Who sends and looks for nothing must not be misled by what came long ago. */
static void a_sender_that_polls_only_when_it_must_loses_nothing(void **state)
{
    struct pair *pair = *state;
    struct end *end = &pair->end;
    struct completion completion;
    static const unsigned rounds[] = {100, 200, 300, 400, 500, 600, 700, 1000};
    needs(pair, VERB_SEND, true);
    needs(pair, VERB_RECV, true);
    needs_early(pair);
    for (unsigned i = 0; i < LENGTH(rounds); i++) {
        struct xfer receive = {.local = &end->region, .at = 0, .length = 64, .id = 4711};
        /* This one waits, while counts go on. */
        assert_int_equal(ask_all(pair, "say", 0, 8, eager & end->facts.honours).status, 0);
        struct exchange x = {.out = rounds[i],
                             .seed = 16 + 2 * (uint64_t)i,
                             .longest = 24,
                             .how = eager,
                             .window = 64,
                             .lazy = true};
        exchange_both(pair, &x);
        assert_int_equal(choice.ops->recv(end->handle, &receive), LATER);
        assert_int_equal(next_completion(end, &completion), 0);
        assert_int_equal(completion.id, 4711);
        x.seed += 100;
        exchange_both(pair, &x);
    }
}

/* So many receives at once, posted after a message went out: the count in it is an old one. */
static void receives_posted_behind_a_message_are_counted_once(void **state)
{
    enum { MOST = 4096, SLOT = 128 };
    struct pair *pair = *state;
    struct end *end = &pair->end;
    struct completion completion;
    needs(pair, VERB_SEND, true);
    needs(pair, VERB_RECV, true);
    needs_early(pair);
    assert_int_equal(ask_all(pair, "say", 0, 8, eager & end->facts.honours).status, 0);
    unsigned posted = 0, sent = 0;
    while (posted < MOST && !ask_all(pair, "post", (uint64_t)posted * SLOT, SLOT, posted).status)
        posted++;
    struct xfer xfer = xfer_of(end, 0, 100);
    struct xfer receive = {.local = &end->region, .at = 4096, .length = 64, .id = 4711};
    xfer.how = HINT(LL) & end->facts.honours;
    pattern(end->bytes, 100, 0);
    int first = post(end, VERB_SEND, &xfer);
    assert_true(first >= 0);
    assert_int_equal(choice.ops->recv(end->handle, &receive), LATER);
    for (bool received = false, gone = first == DONE; !received || !gone;) {
        assert_int_equal(next_completion(end, &completion), 0);
        received |= completion.verb == VERB_RECV;
        gone |= completion.verb == VERB_SEND;
    }
    /* Every receive is used once, and not one that was not posted. */
    for (sent = 1; sent < 2 * posted; sent++) {
        pattern(end->bytes, 100, sent);
        int got = -EAGAIN;
        struct backoff backoff = {0};
        /* Those for which there is a receive will go, once the target runs; the rest may. */
        for (int lap = 0; got == -EAGAIN && (sent < posted ? patient(&backoff) : lap < 20000);
             lap++) {
            choice.ops->poll(end->handle, &completion, 0);
            got = choice.ops->send(end->handle, &xfer);
        }
        if (got == -EAGAIN)
            break;
        /* The source is ours again when this one is complete. */
        if (got == LATER && sent < posted)
            assert_int_equal(next_completion(end, &completion), 0);
    }
    assert_true(sent >= posted);
    for (unsigned i = 0; i < posted; i++) {
        struct answer came = ask_all(pair, "take", (uint64_t)i * SLOT, 100, 0);
        pattern(end->bytes, 100, i);
        assert_int_equal(came.status, 0);
        assert_int_equal(came.id, i);
        assert_int_equal(came.digest, digest(end->bytes, 100));
    }
}

static const struct CMUnitTest tests[] = {
    WITH_PAIR(many_messages_each_way_keep_their_order),
    WITH_PAIR(messages_each_way_some_by_rendezvous_keep_their_order),
    WITH_PAIR(queued_messages_each_way_keep_their_order),
    WITH_PAIR(long_messages_each_way_keep_their_order),
    WITH_PAIR(one_message_at_a_time_each_way_keeps_its_order),
    WITH_PAIR(many_small_messages_stream_one_way),
    WITH_PAIR(many_small_messages_stream_the_other_way),
    WITH_PAIR(a_sender_that_polls_only_when_it_must_loses_nothing),
    WITH_PAIR(receives_posted_behind_a_message_are_counted_once),
};
const struct topic stream_topic = {tests, LENGTH(tests)};
