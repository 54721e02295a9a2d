/* SPDX-License-Identifier: BSD-3-Clause */
/* Two ends that meet: waits that end, and last words that arrive. */
#include "core/clock.h"
#include "support/peers.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- pairs ---- */

static void open_pair(struct peer *pair[2], uint64_t timeout_ms)
{
    const struct peer_terms terms = {.timeout_ms = timeout_ms, .stop = &stop};
    stop = 0;
    assert_int_equal(peer_threads(pair, &terms), 0);
}

/* The server is gone, and has said why. */
static void open_broken(struct peer *pair[2])
{
    open_pair(pair, LONG_MS);
    peer_end(pair[1], -EIO, "broken");
    peer_close(pair[1]);
}

static void close_pair(struct peer *pair[2])
{
    peer_close(pair[0]);
    peer_close(pair[1]);
}

static void peers_swap_messages(void **state)
{
    struct peer *pair[2];
    struct msg mine, theirs;
    (void)state;
    open_pair(pair, LONG_MS);
    assert_int_equal(pair[PEER_CLIENT]->rank, PEER_CLIENT);
    assert_string_equal(pair[PEER_CLIENT]->other, "server");
    assert_int_equal(pair[PEER_SERVER]->rank, PEER_SERVER);
    assert_string_equal(pair[PEER_SERVER]->other, "client");
    struct actor server = {.peer = pair[PEER_SERVER], .word = "from the server", .act = act_swap};
    start(&server);
    print_msg(&mine, "from the client");
    int status = peer_swap(pair[PEER_CLIENT], &mine, &theirs);
    join(&server);
    assert_int_equal(status, 0);
    assert_int_equal(server.status, 0);
    assert_string_equal(theirs.bytes, "from the server");
    assert_int_equal(theirs.length, strlen("from the server"));
    assert_string_equal(server.msg.bytes, "from the client");
    close_pair(pair);
}

static void peers_carry_messages_up_to_the_bound_whatever_is_in_them(void **state)
{
    static const size_t lengths[] = {0, 1, 15, 16, 17, 4096, MSG_MAX - 1};
    struct peer *pair[2];
    struct msg sent;
    uint64_t seed = 1;
    (void)state;
    open_pair(pair, LONG_MS);
    for (size_t i = 0; i < LENGTH(lengths); i++) {
        sent.length = lengths[i];
        for (size_t at = 0; at < sizeof sent.bytes; at++)
            sent.bytes[at] = (char)next_random(&seed);
        assert_carried(pair, &sent);
    }
    close_pair(pair);
}

static void peers_refuse_a_message_over_the_bound_and_send_nothing_of_it(void **state)
{
    struct peer *pair[2];
    struct msg msg = {.length = MSG_MAX};
    (void)state;
    open_pair(pair, LONG_MS);
    assert_int_equal(peer_send(pair[0], &msg), -EMSGSIZE);
    assert_contains(fail_reason(), "8192 bytes, the limit is 8191");
    print_msg(&msg, "next");
    assert_int_equal(peer_send(pair[0], &msg), 0);
    print_msg(&msg, "?");
    assert_int_equal(peer_recv(pair[1], &msg, NULL, NULL), 0);
    assert_string_equal(msg.bytes, "next");
    close_pair(pair);
}

static void peers_meet_at_the_same_word_again_and_again(void **state)
{
    struct peer *pair[2];
    (void)state;
    open_pair(pair, LONG_MS);
    struct actor server = {.peer = pair[1], .word = "size 8", .act = act_meet};
    struct actor client = {.peer = pair[0], .word = "size 8", .act = act_meet};
    start(&server);
    act(&client);
    join(&server);
    assert_int_equal(client.status, 0);
    assert_int_equal(server.status, 0);
    close_pair(pair);
}

static void peers_that_are_out_of_step_both_say_so(void **state)
{
    struct peer *pair[2];
    (void)state;
    open_pair(pair, LONG_MS);
    struct actor server = {.peer = pair[1], .word = "size 8", .act = act_meet};
    struct actor client = {.peer = pair[0], .word = "size 80", .act = act_meet};
    start(&server);
    act(&client);
    join(&server);
    assert_int_equal(client.status, -EPROTO);
    assert_contains(client.reason,
                    "the server is at another step than this end: out of step at \"size 80\"");
    assert_int_equal(server.status, -EPROTO);
    assert_contains(server.reason, "out of step at \"size 8\"");
    close_pair(pair);
}

static void meeting_makes_progress_while_it_waits(void **state)
{
    struct peer *pair[2];
    (void)state;
    open_pair(pair, LONG_MS);
    struct spinning spinning = {.other = pair[1]};
    assert_int_equal(peer_barrier(pair[0], "here", answer_after_a_while, &spinning), 0);
    assert_true(spinning.calls >= 3000);
    close_pair(pair);
}

static int give_up(void *arg)
{
    int *calls = arg;
    return ++*calls == 5 ? fail(-EIO, "the link is lost") : 0;
}

struct caller {
    struct peer *peer;
    unsigned calls;
};

static int call_once(void *arg)
{
    struct caller *caller = arg;
    struct msg word;
    print_msg(&word, "look");
    if (!caller->calls++)
        assert_int_equal(peer_send(caller->peer, &word), 0);
    return 1;
}

static void progress_that_expects_a_message_has_it_looked_for_at_once(void **state)
{
    struct peer *pair[2];
    struct msg heard;
    (void)state;
    open_pair(pair, LONG_MS);
    struct caller caller = {.peer = pair[0]};
    assert_int_equal(peer_recv(pair[1], &heard, call_once, &caller), 0);
    assert_string_equal(heard.bytes, "look");
    assert_int_equal(caller.calls, 1);
    close_pair(pair);
}

static void progress_may_end_the_wait(void **state)
{
    struct peer *pair[2];
    struct msg msg;
    int calls = 0;
    (void)state;
    open_pair(pair, LONG_MS);
    assert_int_equal(peer_recv(pair[0], &msg, give_up, &calls), -EIO);
    assert_string_equal(fail_reason(), "the link is lost");
    assert_int_equal(calls, 5);
    close_pair(pair);
}

/* ---- signs of life ---- */

static void looking_for_life_leaves_a_message_for_whoever_hears_it(void **state)
{
    struct peer *pair[2];
    struct msg msg;
    (void)state;
    open_pair(pair, LONG_MS);
    assert_int_equal(peer_alive(pair[0]), 0);
    print_msg(&msg, "first");
    assert_int_equal(peer_send(pair[1], &msg), 0);
    print_msg(&msg, "second");
    assert_int_equal(peer_send(pair[1], &msg), 0);
    for (int i = 0; i < 100; i++)
        assert_int_equal(peer_alive(pair[0]), 0);
    assert_int_equal(peer_recv(pair[0], &msg, NULL, NULL), 0);
    assert_string_equal(msg.bytes, "first");
    assert_int_equal(peer_recv(pair[0], &msg, NULL, NULL), 0);
    assert_string_equal(msg.bytes, "second");
    close_pair(pair);
}

static void a_silent_peer_is_taken_for_dead(void **state)
{
    static int (*const ways[])(struct actor *) = {act_hear, act_alive, act_swap, act_meet};
    (void)state;
    for (size_t i = 0; i < LENGTH(ways); i++) {
        struct peer *pair[2];
        open_pair(pair, SHORT_MS);
        struct actor client = {.peer = pair[0], .word = "hello", .act = ways[i]};
        uint64_t since_ms = clock_ms();
        act(&client);
        uint64_t waited_ms = clock_ms() - since_ms;
        assert_int_equal(client.status, -ETIMEDOUT);
        assert_string_equal(client.reason, "lost the server: no sign of life for 0.2 s");
        assert_in_range(waited_ms, SHORT_MS, BOUND_MS);
        close_pair(pair);
    }
}

static void heartbeats_keep_a_slow_peer_alive_far_beyond_the_timeout(void **state)
{
    const uint64_t timeout_ms = 700;
    struct peer *pair[2];
    struct msg msg;
    int status = 0;
    (void)state;
    open_pair(pair, timeout_ms);
    struct actor server = {.peer = pair[1], .act = act_hear};
    start(&server);
    for (uint64_t since_ms = clock_ms(); !status && clock_ms() - since_ms < 3 * timeout_ms;) {
        status = peer_alive(pair[0]);
        rest_ms(10);
    }
    print_msg(&msg, "at last");
    int told = peer_send(pair[0], &msg);
    join(&server);
    assert_int_equal(status, 0);
    assert_int_equal(told, 0);
    assert_int_equal(server.status, 0);
    assert_string_equal(server.msg.bytes, "at last");
    close_pair(pair);
}

static void heartbeats_are_at_most_four_a_second(void **state)
{
    char bytes[4096];
    int other;
    struct channel *channel = half_channel(&other, LONG_MS);
    (void)state;
    uint64_t since_ms = clock_ms();
    while (clock_ms() - since_ms < 600)
        assert_int_equal(peer_alive(&channel->peer), 0);
    uint64_t passed_ms = clock_ms() - since_ms;
    ssize_t got = recv(other, bytes, sizeof bytes, MSG_DONTWAIT);
    assert_true(got > 0 && got % (FRAME_HEAD + BEAT_DIGITS) == 0);
    assert_in_range(got / (FRAME_HEAD + BEAT_DIGITS), 1, passed_ms / 250);
    assert_memory_equal(bytes, "WEFT02 B 000010\n0000000000000000", FRAME_HEAD + BEAT_DIGITS);
    channel_close(channel);
    close(other);
}

/* A message that waits to be heard must not hide the signs of life behind it. */
static void heartbeats_count_behind_a_message_that_waits(void **state)
{
    struct peer *pair[2];
    struct msg msg = {.length = MSG_MAX - 1};
    int status[2] = {0, 0};
    (void)state;
    open_pair(pair, 600);
    assert_int_equal(peer_send(pair[0], &msg), 0);
    for (uint64_t since_ms = clock_ms(); !status[1] && clock_ms() - since_ms < 1300;) {
        status[0] = peer_alive(pair[0]);
        status[1] = peer_alive(pair[1]);
        rest_ms(10);
    }
    assert_int_equal(status[0], 0);
    if (status[1])
        fail_msg("%s", fail_reason());
    close_pair(pair);
}

/* One end is busy, in a thread of its own for all the other knows. */
static void keepalives_stop_after_their_limit(void **state)
{
    static const unsigned most_ms[] = {0, 300};
    struct peer *pair[2];
    struct keepalive keepalive;
    (void)state;
    for (size_t i = 0; i < LENGTH(most_ms); i++) {
        int status = 0;
        open_pair(pair, 600);
        keepalive_begin(&keepalive, pair[0], most_ms[i]);
        for (uint64_t since_ms = clock_ms(); !status && clock_ms() - since_ms < 1400;) {
            status = peer_alive(pair[1]);
            rest_ms(10);
        }
        keepalive_end(&keepalive);
        assert_int_equal(status, most_ms[i] ? -ETIMEDOUT : 0);
        close_pair(pair);
    }
}

/* ---- leaving ---- */

static void a_peer_that_closes_is_lost_at_once(void **state)
{
    static int (*const ways[])(struct actor *) = {act_hear, act_alive, act_swap, act_meet};
    (void)state;
    for (size_t i = 0; i < LENGTH(ways); i++) {
        struct peer *pair[2];
        open_pair(pair, LONG_MS);
        peer_close(pair[PEER_CLIENT]);
        struct actor server = {.peer = pair[PEER_SERVER], .word = "hello", .act = ways[i]};
        uint64_t since_ms = clock_ms();
        act(&server);
        assert_int_equal(server.status, -ECONNRESET);
        assert_string_equal(server.reason, "lost the client: it closed the connection");
        assert_in_range(clock_ms() - since_ms, 0, BOUND_MS);
        peer_close(pair[PEER_SERVER]);
    }
}

static void what_was_told_before_closing_is_heard(void **state)
{
    struct peer *pair[2];
    struct msg msg;
    (void)state;
    open_pair(pair, LONG_MS);
    print_msg(&msg, "my last message");
    assert_int_equal(peer_send(pair[0], &msg), 0);
    peer_close(pair[0]);
    print_msg(&msg, "?");
    assert_int_equal(peer_recv(pair[1], &msg, NULL, NULL), 0);
    assert_string_equal(msg.bytes, "my last message");
    assert_int_equal(peer_recv(pair[1], &msg, NULL, NULL), -ECONNRESET);
    peer_close(pair[1]);
}

static int act_end(struct actor *actor)
{
    struct msg msg;
    int status = msg_print(&msg, "before the end");
    if (!status)
        status = peer_send(actor->peer, &msg);
    fail(actor->status, "%s", actor->word);
    peer_end(actor->peer, actor->status, actor->word);
    return status;
}

static void the_reason_of_leaving_travels(void **state)
{
    static const struct {
        int status, becomes;
        const char *why, *reason;
    } cases[] = {
        {-ENOMEM, -EREMOTEIO, "no memory: 8 bytes", "the server says: no memory: 8 bytes"},
        {-EINVAL, -EREMOTEIO, "a=b why=c", "the server says: a=b why=c"},
        {-EINTR, -ECONNRESET, "interrupted", "the server was interrupted"},
        {-ETIMEDOUT, -ECONNRESET, "lost the client", "the server gave up: lost the client"},
        {-ECONNRESET, -ECONNRESET, "it is gone", "the server gave up: it is gone"},
        {-EBADMSG, -EREMOTEIO, "\033[2J\a", "the server says: ?[2J?"}};
    (void)state;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct peer *pair[2];
        struct msg msg;
        open_pair(pair, LONG_MS);
        struct actor server = {
            .peer = pair[1], .word = cases[i].why, .status = cases[i].status, .act = act_end};
        start(&server);
        int first = peer_recv(pair[0], &msg, NULL, NULL);
        int second = peer_recv(pair[0], &msg, NULL, NULL);
        char reason[128];
        snprintf(reason, sizeof reason, "%s", fail_reason());
        peer_close(pair[0]);
        join(&server);
        assert_int_equal(first, 0);
        assert_string_equal(msg.bytes, "before the end");
        assert_int_equal(second, cases[i].becomes);
        assert_string_equal(reason, cases[i].reason);
        assert_int_equal(server.status, 0);
        peer_close(pair[1]);
    }
}

static void an_end_that_was_heard_is_found_by_every_later_call(void **state)
{
    struct peer *pair[2];
    struct msg msg;
    (void)state;
    open_broken(pair);
    assert_int_equal(peer_alive(pair[0]), -EREMOTEIO);
    assert_string_equal(fail_reason(), "the server says: broken");
    assert_int_equal(peer_recv(pair[0], &msg, NULL, NULL), -EREMOTEIO);
    assert_int_equal(peer_alive(pair[0]), -EREMOTEIO);
    print_msg(&msg, "too late");
    assert_int_equal(peer_send(pair[0], &msg), -EREMOTEIO);
    peer_close(pair[0]);
}

static void last_words_that_another_thread_has_read_are_said_again(void **state)
{
    struct peer *pair[2];
    struct msg msg;
    (void)state;
    open_broken(pair);
    struct actor other = {.peer = pair[0], .act = act_alive};
    start(&other);
    join(&other);
    assert_int_equal(other.status, -EREMOTEIO);
    assert_string_equal(other.reason, "the server says: broken");
    fail(0, "%s", "an older sentence");
    assert_int_equal(peer_alive(pair[0]), -EREMOTEIO);
    assert_string_equal(fail_reason(), "the server says: broken");
    fail(0, "%s", "an older sentence");
    assert_int_equal(peer_recv(pair[0], &msg, NULL, NULL), -EREMOTEIO);
    assert_string_equal(fail_reason(), "the server says: broken");
    print_msg(&msg, "too late");
    assert_int_equal(peer_send(pair[0], &msg), -EREMOTEIO);
    assert_string_equal(fail_reason(), "the server says: broken");
    peer_close(pair[0]);
}

static void telling_one_that_left_finds_its_last_words(void **state)
{
    struct peer *pair[2];
    struct msg msg;
    (void)state;
    open_broken(pair);
    print_msg(&msg, "hello?");
    assert_int_equal(peer_send(pair[0], &msg), -EREMOTEIO);
    assert_string_equal(fail_reason(), "the server says: broken");
    peer_close(pair[0]);
}

static void leaving_keeps_the_sentence_that_made_us_leave(void **state)
{
    struct peer *pair[2];
    (void)state;
    open_pair(pair, LONG_MS);
    fail(-EIO, "the true reason");
    peer_end(pair[0], -EIO, fail_reason()); /* the other end is there and does not listen */
    assert_string_equal(fail_reason(), "the true reason");
    peer_close(pair[1]);
    peer_end(pair[0], -EIO, "once more");
    assert_string_equal(fail_reason(), "the true reason");
    peer_close(pair[0]);
    open_pair(pair, LONG_MS);
    peer_close(pair[1]);
    uint64_t since_ms = clock_ms();
    peer_end(pair[0], -EIO, fail_reason()); /* nobody is there */
    assert_string_equal(fail_reason(), "the true reason");
    assert_in_range(clock_ms() - since_ms, 0, BOUND_MS);
    peer_close(pair[0]);
    peer_close(NULL);
}

static void a_very_long_reason_is_cut_not_lost(void **state)
{
    struct peer *pair[2];
    char why[3000];
    (void)state;
    memset(why, 'w', sizeof why - 1);
    why[sizeof why - 1] = '\0';
    open_pair(pair, LONG_MS);
    peer_end(pair[1], -EIO, why);
    assert_int_equal(peer_alive(pair[0]), -EREMOTEIO);
    assert_contains(fail_reason(), "the server says: wwwwwwwwwwwwwwww");
    close_pair(pair);
}

/* ---- interruption ---- */

/* 1: woken by the descriptor alone; 0: there is something of the other end's. */
static void a_sleep_ends_by_the_descriptor_or_by_the_other_end(void **state)
{
    struct peer *pair[2];
    struct msg msg;
    int event = eventfd(0, EFD_CLOEXEC);
    uint64_t since_ms = clock_ms();
    (void)state;
    open_pair(pair, LONG_MS);
    assert_int_equal(peer_sleep(pair[1], event, true), 0);
    assert_true(clock_ms() - since_ms < BOUND_MS);
    assert_int_equal(eventfd_write(event, 1), 0);
    assert_int_equal(peer_sleep(pair[1], event, true), 1);
    print_msg(&msg, "word");
    assert_int_equal(peer_send(pair[0], &msg), 0);
    assert_int_equal(peer_sleep(pair[1], event, true), 0);
    /* Read, and not yet received: who listens for it must not sleep over it, who does not may. */
    assert_int_equal(peer_alive(pair[1]), 0);
    assert_int_equal(peer_sleep(pair[1], event, true), 0);
    assert_int_equal(peer_sleep(pair[1], event, false), 1);
    assert_int_equal(peer_recv(pair[1], &msg, NULL, NULL), 0);
    assert_int_equal(peer_sleep(pair[1], event, true), 1);
    close(event);
    close_pair(pair);
}

static void an_interruption_ends_every_wait(void **state)
{
    static int (*const ways[])(struct actor *) = {act_hear, act_alive, act_swap, act_meet};
    (void)state;
    for (size_t i = 0; i < 2 * LENGTH(ways); i++) {
        struct peer *pair[2];
        open_pair(pair, LONG_MS);
        struct actor client = {.peer = pair[0], .word = "hello", .act = ways[i / 2]};
        uint64_t since_ms = clock_ms();
        if (i % 2)
            stop_after_ms(60);
        else
            stop = 1;
        act(&client);
        assert_int_equal(client.status, -EINTR);
        assert_string_equal(client.reason, "interrupted");
        assert_in_range(clock_ms() - since_ms, 0, BOUND_MS);
        close_pair(pair);
    }
    stop = 0;
}

static void telling_a_peer_that_does_not_listen_times_out(void **state)
{
    struct peer *pair[2];
    (void)state;
    open_pair(pair, SHORT_MS);
    assert_sending_times_out(pair[0]);
    close_pair(pair);
}

static void an_interruption_ends_telling_a_peer_that_does_not_listen(void **state)
{
    struct peer *pair[2];
    (void)state;
    open_pair(pair, BOUND_MS / 2);
    struct actor client = {.peer = pair[0], .act = act_fill};
    stop_after_ms(60);
    act(&client);
    stop = 0;
    assert_int_equal(client.status, -EINTR);
    close_pair(pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(peers_swap_messages),
        cmocka_unit_test(peers_carry_messages_up_to_the_bound_whatever_is_in_them),
        cmocka_unit_test(peers_refuse_a_message_over_the_bound_and_send_nothing_of_it),
        cmocka_unit_test(peers_meet_at_the_same_word_again_and_again),
        cmocka_unit_test(peers_that_are_out_of_step_both_say_so),
        cmocka_unit_test(meeting_makes_progress_while_it_waits),
        cmocka_unit_test(progress_that_expects_a_message_has_it_looked_for_at_once),
        cmocka_unit_test(progress_may_end_the_wait),
        cmocka_unit_test(looking_for_life_leaves_a_message_for_whoever_hears_it),
        cmocka_unit_test(a_silent_peer_is_taken_for_dead),
        cmocka_unit_test(heartbeats_keep_a_slow_peer_alive_far_beyond_the_timeout),
        cmocka_unit_test(heartbeats_are_at_most_four_a_second),
        cmocka_unit_test(heartbeats_count_behind_a_message_that_waits),
        cmocka_unit_test(keepalives_stop_after_their_limit),
        cmocka_unit_test(a_peer_that_closes_is_lost_at_once),
        cmocka_unit_test(what_was_told_before_closing_is_heard),
        cmocka_unit_test(the_reason_of_leaving_travels),
        cmocka_unit_test(an_end_that_was_heard_is_found_by_every_later_call),
        cmocka_unit_test(last_words_that_another_thread_has_read_are_said_again),
        cmocka_unit_test(telling_one_that_left_finds_its_last_words),
        cmocka_unit_test(leaving_keeps_the_sentence_that_made_us_leave),
        cmocka_unit_test(a_very_long_reason_is_cut_not_lost),
        cmocka_unit_test(a_sleep_ends_by_the_descriptor_or_by_the_other_end),
        cmocka_unit_test(an_interruption_ends_every_wait),
        cmocka_unit_test(telling_a_peer_that_does_not_listen_times_out),
        cmocka_unit_test(an_interruption_ends_telling_a_peer_that_does_not_listen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
