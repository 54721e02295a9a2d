/* SPDX-License-Identifier: BSD-3-Clause */
/* One connection for several threads: what share i sends, share i of the other end receives. */
#include "peer/peer.h"
#include "support/unit.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>

enum { SHARES = 3, ROUNDS = 200, MORE_THAN_FIT = 5 };

static struct {
    struct peer *pair[2];
    struct peer_shares *shares[2];
} ends;

static int set_up(void **state)
{
    struct peer_terms terms = {.timeout_ms = 10000};
    (void)state;
    if (peer_threads(ends.pair, &terms))
        return -1;
    for (int i = 0; i < 2; i++)
        if (peer_shares_open(&ends.shares[i], ends.pair[i], SHARES))
            return -1;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        peer_shares_close(ends.shares[i]);
        peer_close(ends.pair[i]);
    }
    return 0;
}

static void say(struct peer *peer, const char *text)
{
    struct msg msg;
    assert_int_equal(msg_print(&msg, "%s", text), 0);
    assert_int_equal(peer_send(peer, &msg), 0);
}

static void hears(struct peer *peer, const char *text)
{
    struct msg msg;
    assert_int_equal(peer_recv(peer, &msg, NULL, NULL), 0);
    assert_string_equal(msg.bytes, text);
    assert_int_equal(msg.length, strlen(text));
}

static void a_message_is_for_the_share_of_the_same_number(void **state)
{
    (void)state;
    say(peer_share(ends.shares[0], 0), "a=0\n");
    say(peer_share(ends.shares[0], 2), "a=2\n");
    say(peer_share(ends.shares[0], 2), "");
    say(peer_share(ends.shares[0], 1), "a=1\n");
    hears(peer_share(ends.shares[1], 2), "a=2\n");
    hears(peer_share(ends.shares[1], 1), "a=1\n");
    hears(peer_share(ends.shares[1], 0), "a=0\n");
    hears(peer_share(ends.shares[1], 2), "");
}

static void the_connection_is_as_good_afterwards(void **state)
{
    (void)state;
    say(peer_share(ends.shares[0], 1), "a=1\n");
    say(ends.pair[0], "whole=1\n");
    hears(peer_share(ends.shares[1], 1), "a=1\n");
    hears(ends.pair[1], "whole=1\n");
}

/* In threads at both ends, each with a count of its own. */
struct half {
    struct peer *peer;
    unsigned number;
    int status;
};

static void *exchange(void *arg)
{
    struct half *half = arg;
    struct msg mine, theirs;
    for (unsigned i = 0; i < ROUNDS && !half->status; i++) {
        half->status = msg_print(&mine, "share=%u\nround=%u\n", half->number, i);
        if (!half->status)
            half->status = peer_swap(half->peer, &mine, &theirs);
        if (!half->status && strcmp(mine.bytes, theirs.bytes) != 0)
            half->status = -EPROTO;
        if (!half->status)
            half->status = peer_step(half->peer);
    }
    return NULL;
}

static void threads_of_both_ends_exchange_messages_at_once(void **state)
{
    struct half halves[2 * SHARES];
    pthread_t threads[2 * SHARES];
    (void)state;
    for (unsigned i = 0; i < 2 * SHARES; i++) {
        halves[i] = (struct half){.peer = peer_share(ends.shares[i % 2], i / 2), .number = i / 2};
        assert_int_equal(pthread_create(&threads[i], NULL, exchange, &halves[i]), 0);
    }
    for (unsigned i = 0; i < 2 * SHARES; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(halves[i].status, 0);
    }
}

static void an_end_that_leaves_ends_all_shares_with_its_sentence(void **state)
{
    struct msg msg;
    (void)state;
    say(peer_share(ends.shares[0], 1), "a=1\n");
    peer_end(peer_share(ends.shares[0], 2), -EIO, "the data is wrong");
    hears(peer_share(ends.shares[1], 1), "a=1\n");
    for (unsigned i = 0; i < SHARES; i++) {
        assert_int_equal(peer_recv(peer_share(ends.shares[1], i), &msg, NULL, NULL), -EREMOTEIO);
        assert_contains(fail_reason(), "the data is wrong");
        assert_int_equal(peer_alive(peer_share(ends.shares[1], i)), -EREMOTEIO);
    }
}

static void hostile(const char *text, const char *sentence)
{
    struct msg msg;
    say(ends.pair[0], text);
    assert_int_equal(peer_recv(peer_share(ends.shares[1], 0), &msg, NULL, NULL), -EPROTO);
    assert_contains(fail_reason(), sentence);
    assert_int_equal(peer_alive(peer_share(ends.shares[1], 1)), -EPROTO);
}

static void a_message_for_no_thread_is_refused(void **state)
{
    (void)state;
    hostile("go=1\n", "for no thread");
}

static void a_message_for_a_thread_that_there_is_not_is_refused(void **state)
{
    (void)state;
    hostile("T000003\nx=1\n", "thread 000003 of 3");
}

static void a_number_that_is_none_is_refused(void **state)
{
    (void)state;
    hostile("T-00001\nx=1\n", "of 3");
}

static void more_messages_than_a_turn_are_refused(void **state)
{
    struct msg msg;
    (void)state;
    for (int i = 0; i < MORE_THAN_FIT; i++)
        say(peer_share(ends.shares[0], 1), "x=1\n");
    assert_int_equal(peer_recv(peer_share(ends.shares[1], 0), &msg, NULL, NULL), -EPROTO);
    assert_contains(fail_reason(), "more messages than its turn");
}

static int look(void *arg)
{
    *(unsigned *)arg += 1;
    return fail(-EIO, "thread 1: lost");
}

static void every_wait_asks_the_watch(void **state)
{
    unsigned asked = 0;
    struct peer *peer = peer_share(ends.shares[0], 0);
    struct msg msg;
    (void)state;
    peer->watch = (struct peer_watch){look, &asked};
    assert_int_equal(peer_recv(peer, &msg, NULL, NULL), -EIO);
    assert_int_equal(peer_alive(peer), -EIO);
    assert_int_equal(asked, 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_message_is_for_the_share_of_the_same_number),
        TEST(the_connection_is_as_good_afterwards),
        TEST(threads_of_both_ends_exchange_messages_at_once),
        TEST(an_end_that_leaves_ends_all_shares_with_its_sentence),
        TEST(a_message_for_no_thread_is_refused),
        TEST(a_message_for_a_thread_that_there_is_not_is_refused),
        TEST(a_number_that_is_none_is_refused),
        TEST(more_messages_than_a_turn_are_refused),
        TEST(every_wait_asks_the_watch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
