/* SPDX-License-Identifier: BSD-3-Clause */
/* Two ends that meet: waits that end, last words that arrive, and strangers at the listening port.
 * Upper bounds of time are generous: they tell a wait that ends from one that does not. */
#include "core/clock.h"
#include "peer/channel.h"

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cmocka.h>

enum { SHORT_MS = 200, LONG_MS = 20000, BOUND_MS = 5000 };

static uint64_t next_random(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15U;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9U;
    x = (x ^ x >> 27) * 0x94d049bb133111ebU;
    return x ^ x >> 31;
}

static void assert_contains(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("\"%s\" is not in \"%s\"", part, text);
}

static void rest_ms(unsigned ms)
{
    struct timespec rest = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    while (nanosleep(&rest, &rest))
        ;
}

/* ---- stopping ---- */

static volatile sig_atomic_t stop;

static void on_alarm(int number)
{
    stop = number;
}

/* Sets stop from a signal, as the tools do. */
static void stop_after_ms(unsigned ms)
{
    struct sigaction action = {.sa_handler = on_alarm};
    struct itimerval timer = {.it_value = {.tv_usec = (suseconds_t)ms * 1000}};
    stop = 0;
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
}

/* ---- pairs ---- */

static void open_pair(struct peer *pair[2], uint64_t timeout_ms)
{
    const struct peer_terms terms = {.timeout_ms = timeout_ms, .stop = &stop};
    stop = 0;
    assert_int_equal(peer_threads(pair, &terms), 0);
}

static void close_pair(struct peer *pair[2])
{
    peer_close(pair[0]);
    peer_close(pair[1]);
}

/* One end that acts in a thread of its own, and what became of it. */
struct actor {
    struct peer *peer;
    const char *word;
    int (*act)(struct actor *actor);
    struct msg msg;
    int status;
    char reason[256];
    pthread_t thread;
};

static void *act(void *arg)
{
    struct actor *actor = arg;
    actor->status = actor->act(actor);
    snprintf(actor->reason, sizeof actor->reason, "%s", fail_reason());
    return NULL;
}

static void start(struct actor *actor)
{
    assert_int_equal(pthread_create(&actor->thread, NULL, act, actor), 0);
}

static void join(struct actor *actor)
{
    pthread_join(actor->thread, NULL);
}

static void print_msg(struct msg *msg, const char *text)
{
    assert_int_equal(msg_print(msg, "%s", text), 0);
}

static int act_swap(struct actor *actor)
{
    struct msg mine;
    int status = msg_print(&mine, "%s", actor->word);
    return status ? status : peer_swap(actor->peer, &mine, &actor->msg);
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
    struct msg sent, got;
    uint64_t seed = 1;
    (void)state;
    open_pair(pair, LONG_MS);
    for (size_t i = 0; i < LENGTH(lengths); i++) {
        sent.length = lengths[i];
        for (size_t at = 0; at < sizeof sent.bytes; at++)
            sent.bytes[at] = (char)next_random(&seed);
        memset(&got, 0x55, sizeof got);
        assert_int_equal(peer_send(pair[0], &sent), 0);
        assert_int_equal(peer_recv(pair[1], &got, NULL, NULL), 0);
        assert_int_equal(got.length, sent.length);
        assert_memory_equal(got.bytes, sent.bytes, sent.length);
        assert_int_equal(got.bytes[got.length], 0);
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
    assert_contains(fail_reason(), "8192 bytes, the bound is 8191");
    print_msg(&msg, "next");
    assert_int_equal(peer_send(pair[0], &msg), 0);
    print_msg(&msg, "?");
    assert_int_equal(peer_recv(pair[1], &msg, NULL, NULL), 0);
    assert_string_equal(msg.bytes, "next");
    close_pair(pair);
}

static int act_meet(struct actor *actor)
{
    int status = 0;
    for (int i = 0; i < 100 && !status; i++)
        status = peer_barrier(actor->peer, actor->word, NULL, NULL);
    return status;
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
                    "the server is not where this end is: out of step at \"size 80\"");
    assert_int_equal(server.status, -EPROTO);
    assert_contains(server.reason, "out of step at \"size 8\"");
    close_pair(pair);
}

struct spinning {
    struct peer *other;
    int calls;
};

static int answer_after_a_while(void *arg)
{
    struct spinning *spinning = arg;
    struct msg msg;
    if (++spinning->calls != 3000)
        return 0;
    int status = msg_print(&msg, "meet=here\n");
    return status ? status : peer_send(spinning->other, &msg);
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
    return ++*calls == 5 ? (fail)(-EIO, "the link is lost") : 0;
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

static int act_alive(struct actor *actor)
{
    int status = 0;
    while (!(status = peer_alive(actor->peer)))
        rest_ms(5);
    return status;
}

static int act_hear(struct actor *actor)
{
    return peer_recv(actor->peer, &actor->msg, NULL, NULL);
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

/* A channel whose other end is a plain descriptor. */
static struct channel *half_channel(int *other, uint64_t timeout_ms)
{
    const struct peer_terms terms = {.timeout_ms = timeout_ms};
    struct channel *channel;
    int fd[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
    assert_int_equal(channel_open(&channel, fd[0], PEER_SERVER, &terms), 0);
    *other = fd[1];
    return channel;
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
    assert_true(got > 0 && got % FRAME_HEAD == 0);
    assert_in_range(got / FRAME_HEAD, 1, passed_ms / 250);
    assert_memory_equal(bytes, "WEFT01 B 000000\n", FRAME_HEAD);
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
    (fail)(actor->status, "%s", actor->word);
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
    open_pair(pair, LONG_MS);
    peer_end(pair[1], -EIO, "broken");
    peer_close(pair[1]);
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
    open_pair(pair, LONG_MS);
    peer_end(pair[1], -EIO, "broken");
    peer_close(pair[1]);
    struct actor other = {.peer = pair[0], .act = act_alive};
    start(&other);
    join(&other);
    assert_int_equal(other.status, -EREMOTEIO);
    assert_string_equal(other.reason, "the server says: broken");
    (fail)(0, "%s", "an older sentence");
    assert_int_equal(peer_alive(pair[0]), -EREMOTEIO);
    assert_string_equal(fail_reason(), "the server says: broken");
    (fail)(0, "%s", "an older sentence");
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
    open_pair(pair, LONG_MS);
    peer_end(pair[1], -EIO, "broken");
    peer_close(pair[1]);
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
    (fail)(-EIO, "the true reason");
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

static int act_fill(struct actor *actor)
{
    struct msg msg = {.length = MSG_MAX - 1};
    int status = 0;
    while (!status)
        status = peer_send(actor->peer, &msg);
    return status;
}

static void telling_a_peer_that_does_not_listen_times_out(void **state)
{
    struct peer *pair[2];
    (void)state;
    open_pair(pair, SHORT_MS);
    struct actor client = {.peer = pair[0], .act = act_fill};
    uint64_t since_ms = clock_ms();
    act(&client);
    assert_int_equal(client.status, -ETIMEDOUT);
    assert_contains(client.reason, "no sign of life for 0.2 s");
    assert_in_range(clock_ms() - since_ms, SHORT_MS, BOUND_MS);
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

/* ---- frames ---- */

enum { STREAM_MAX = 4 * (FRAME_HEAD + MSG_MAX) };

struct stream {
    size_t length;
    char bytes[STREAM_MAX];
};

static void add_frame(struct stream *stream, char kind, const void *bytes, size_t length)
{
    if (stream->length + FRAME_HEAD + length >= STREAM_MAX)
        return;
    snprintf(stream->bytes + stream->length, FRAME_HEAD + 1, "WEFT01 %c %06x\n", kind,
             (unsigned)length & 0xffffffU);
    stream->length += FRAME_HEAD;
    memcpy(stream->bytes + stream->length, bytes, length);
    stream->length += length;
}

static bool give(int fd, const char *bytes, size_t length)
{
    return send(fd, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)length;
}

static void frames_are_put_together_from_any_pieces(void **state)
{
    uint64_t seed = 2;
    (void)state;
    for (int round = 0; round < 500; round++) {
        struct stream stream = {0};
        char bytes[MSG_MAX];
        size_t lengths[8], told = 0, heard = 0;
        uint64_t from = seed;
        int other;
        struct channel *channel = half_channel(&other, LONG_MS);
        for (size_t i = 0; i < LENGTH(lengths); i++) {
            bool beat = next_random(&seed) % 3 == 0;
            size_t length = next_random(&seed) % (round % 10 ? 100 : MSG_MAX);
            for (size_t at = 0; at < length; at++)
                bytes[at] = (char)(at + told);
            size_t before = stream.length;
            add_frame(&stream, beat ? FRAME_BEAT : FRAME_DATA, bytes, beat ? 0 : length);
            if (!beat && stream.length > before)
                lengths[told++] = length;
        }
        for (size_t at = 0; at < stream.length || heard < told;) {
            struct msg msg;
            size_t piece = 1 + next_random(&seed) % (round % 3 ? 40 : 9000);
            piece = piece < stream.length - at ? piece : stream.length - at;
            assert_true(!piece || give(other, stream.bytes + at, piece));
            at += piece;
            int status = channel_ready(channel, FRAME_DATA);
            assert_in_range(status, 0, 1);
            if (!status && at == stream.length && heard < told)
                fail_msg("round %d, seed %llu: %zu of %zu messages", round,
                         (unsigned long long)from, heard, told);
            if (!status)
                continue;
            channel_take(channel, &msg);
            assert_int_equal(msg.length, lengths[heard]);
            for (size_t i = 0; i < msg.length; i++)
                assert_true(msg.bytes[i] == (char)(i + heard));
            heard++;
        }
        channel_close(channel);
        close(other);
    }
}

/* More than there is room for. Each time nothing was heard for ever, but for what comes now. */
static void heartbeats_count_behind_messages_that_wait_for_hours(void **state)
{
    enum { BEATS = 64, ROUNDS = 40 };
    static const char last[] = "code=5\nwhy=broken\n";
    struct stream beats = {0}, messages = {0};
    struct msg msg = {0};
    int other;
    struct channel *channel = half_channel(&other, SHORT_MS);
    (void)state;
    for (int i = 0; i < BEATS; i++)
        add_frame(&beats, FRAME_BEAT, "", 0);
    add_frame(&messages, FRAME_DATA, msg.bytes, MSG_MAX - 1);
    add_frame(&messages, FRAME_BEAT, "", 0);
    add_frame(&messages, FRAME_DATA, "second", 6);
    assert_true(give(other, messages.bytes, messages.length));
    for (int i = 0; i < ROUNDS; i++) {
        /* Some of them cut in the middle. */
        size_t half = beats.length / 2 + (size_t)i % FRAME_HEAD;
        assert_true(give(other, beats.bytes, half));
        channel->heard_ms = 0;
        assert_int_equal(peer_alive(&channel->peer), 0);
        assert_true(give(other, beats.bytes + half, beats.length - half));
        channel->heard_ms = 0;
        assert_int_equal(peer_alive(&channel->peer), 0);
    }
    messages.length = 0;
    add_frame(&messages, FRAME_END, last, strlen(last));
    assert_true(give(other, messages.bytes, messages.length));
    assert_int_equal(peer_recv(&channel->peer, &msg, NULL, NULL), 0);
    assert_int_equal(msg.length, MSG_MAX - 1);
    assert_int_equal(peer_recv(&channel->peer, &msg, NULL, NULL), 0);
    assert_string_equal(msg.bytes, "second");
    assert_int_equal(peer_recv(&channel->peer, &msg, NULL, NULL), -EREMOTEIO);
    assert_string_equal(fail_reason(), "the client says: broken");
    channel_close(channel);
    close(other);
}

/* Frames of all kinds, most of them well-formed, in a row. */
static void random_stream(struct stream *stream, uint64_t *seed)
{
    static const char kinds[] = {FRAME_GREETING, FRAME_DATA, FRAME_DATA, FRAME_BEAT, FRAME_END};
    static const char *const ends[] = {"code=4\nwhy=x\n", "why=y\ncode=0x5\n", "code=\nwhy=\n", ""};
    stream->length = 0;
    for (uint64_t frames = 1 + next_random(seed) % 5; frames; frames--) {
        char kind = kinds[next_random(seed) % LENGTH(kinds)], bytes[MSG_MAX] = {0};
        const char *end = ends[next_random(seed) % LENGTH(ends)];
        bool big = next_random(seed) % 64 == 0;
        size_t length = next_random(seed) % (big ? MSG_MAX : 60);
        for (size_t i = 0; i < length; i++)
            bytes[i] = (char)next_random(seed);
        if (kind == FRAME_END)
            add_frame(stream, kind, end, strlen(end));
        else
            add_frame(stream, kind, bytes, length);
    }
}

static void mutate(struct stream *stream, uint64_t *seed)
{
    size_t length = stream->length, at = length ? next_random(seed) % length : 0;
    size_t head = next_random(seed) % FRAME_HEAD, n = 1 + next_random(seed) % 30;
    switch (next_random(seed) % 6) {
    case 0: /* a byte anywhere */
        stream->bytes[at] = (char)next_random(seed);
        break;
    case 1: /* a character of the first head */
        stream->bytes[head] = "0123456789abcdefHDBEWFT \n"[next_random(seed) % 25];
        break;
    case 2: /* the length of the first frame */
        stream->bytes[9 + head % 6] = "0123456789abcdef"[next_random(seed) % 16];
        break;
    case 3: /* a piece less */
        n = n < length - at ? n : length - at;
        memmove(stream->bytes + at, stream->bytes + at + n, length - at - n);
        stream->length -= n;
        break;
    case 4: /* a piece twice */
        n = n < length - at ? n : length - at;
        n = n < STREAM_MAX - length ? n : STREAM_MAX - length;
        memmove(stream->bytes + at + n, stream->bytes + at, length - at);
        stream->length += n;
        break;
    default: /* cut off */
        stream->length = at;
    }
}

/* Everything a stream holds, until the channel says that no more will come. */
static int drain(struct channel *channel, bool greeting, size_t *messages)
{
    for (int waits = 0; waits < 100;) {
        struct msg msg;
        int status = greeting ? channel_ready(channel, FRAME_GREETING)
                              : peer_recv(&channel->peer, &msg, NULL, NULL);
        if (status < 0)
            return status;
        if (greeting && !status) { /* there is more than fits at once */
            waits++;
            continue;
        }
        if (greeting)
            channel_take(channel, &msg);
        if (msg.length >= MSG_MAX || msg.bytes[msg.length])
            return (fail)(-ENOMSG, "a message of %zu bytes", msg.length);
        ++*messages;
    }
    return (fail)(-ENOMSG, "the stream has ended, and yet it waits");
}

static void frames_from_a_madman_end_in_an_error_not_in_a_crash(void **state)
{
    static struct stream stream;
    uint64_t seed = 3;
    size_t heard = 0, strange = 0;
    (void)state;
    for (int round = 0; round < 20000; round++) {
        uint64_t from = seed;
        int other;
        size_t messages = 0;
        struct channel *channel = half_channel(&other, LONG_MS);
        random_stream(&stream, &seed);
        if (round % 16 == 0) /* noise from end to end */
            for (size_t i = round % 32 ? 4 : 0; i < stream.length; i++)
                stream.bytes[i] = (char)next_random(&seed);
        for (uint64_t times = next_random(&seed) % 5; times; times--)
            mutate(&stream, &seed);
        size_t half = stream.length ? next_random(&seed) % stream.length : 0;
        assert_true(give(other, stream.bytes, half));
        if (round % 3 == 0)
            peer_alive(&channel->peer);
        assert_true(give(other, stream.bytes + half, stream.length - half));
        shutdown(other, SHUT_WR);
        int status = drain(channel, round % 4 == 1, &messages);
        if (status != -EPROTO && status != -ECONNRESET && status != -EREMOTEIO)
            fail_msg("round %d, seed %llu: status %d, %s", round, (unsigned long long)from, status,
                     fail_reason());
        assert_true(messages <= stream.length / FRAME_HEAD);
        heard += messages;
        strange += status == -EPROTO;
        channel_close(channel);
        close(other);
    }
    /* Otherwise this would try only one of the two ways. */
    assert_true(heard > 1000 && strange > 1000);
}

static void a_frame_that_is_not_ours_is_named(void **state)
{
    static const struct {
        const char *bytes, *reason;
    } cases[] = {{"GET / HTTP/1.1\r\n", "does not speak Weft's protocol"},
                 {"X", "does not speak Weft's protocol"},
                 {"WEFT01_D 000000\n", "does not speak Weft's protocol"},
                 {"WEFT01 D 00000G\n", "does not speak Weft's protocol"},
                 {"WEFT01 D 00000A\n", "does not speak Weft's protocol"},
                 {"WEFT01 D 000000 ", "does not speak Weft's protocol"},
                 {"WEFT01 D      0\n", "does not speak Weft's protocol"},
                 {"WEFT01 D 0x0000\n", "does not speak Weft's protocol"},
                 {"WEFT02 D 000000\n", "the client speaks version 02 of the protocol, this is "
                                       "version 01"},
                 {"WEFT01 D ffffff\n", "the client announced a message of 16777215 bytes, the "
                                       "bound is 8191"},
                 {"WEFT01 D 002000\n", "announced a message of 8192 bytes"},
                 {"WEFT01 H 000000\n", "the client sent a message out of turn"},
                 {"WEFT01 Z 000000\n", "the client sent a message out of turn"},
                 {"WEFT01 E 000000\n", "left with a message that cannot be read"}};
    (void)state;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct msg msg;
        int other;
        struct channel *channel = half_channel(&other, LONG_MS);
        assert_true(give(other, cases[i].bytes, strlen(cases[i].bytes)));
        assert_int_equal(peer_recv(&channel->peer, &msg, NULL, NULL), -EPROTO);
        assert_contains(fail_reason(), cases[i].reason);
        channel_close(channel);
        close(other);
    }
}

/* ---- TCP ---- */

static char warnings[65536];
static pthread_mutex_t warnings_lock = PTHREAD_MUTEX_INITIALIZER;

static void collect(const char *sentence)
{
    pthread_mutex_lock(&warnings_lock);
    size_t used = strlen(warnings);
    snprintf(warnings + used, sizeof warnings - used, "%s\n", sentence);
    pthread_mutex_unlock(&warnings_lock);
}

static int begin_tcp(void **state)
{
    (void)state;
    warnings[0] = '\0';
    stop = 0;
    warn_to(collect);
    return 0;
}

static int end_tcp(void **state)
{
    (void)state;
    warn_to(NULL);
    return 0;
}

static const struct peer_terms patient = {.timeout_ms = LONG_MS, .stop = &stop};

static struct listener *listen_at(const char *address)
{
    struct listener *listener;
    if (tcp_listen(&listener, address, 0, &patient))
        fail_msg("%s", fail_reason());
    assert_in_range(tcp_port(listener), 1, 65535);
    return listener;
}

/* A port nobody listens on. */
static unsigned free_port(void)
{
    struct listener *listener = listen_at("");
    unsigned port = tcp_port(listener);
    tcp_close(listener);
    return port;
}

static struct peer *dial_and_greet(const char *address, unsigned port, const char *word)
{
    struct peer *peer;
    struct msg greeting;
    if (tcp_dial(&peer, address, port, LONG_MS, &patient))
        fail_msg("%s", fail_reason());
    print_msg(&greeting, word);
    assert_int_equal(peer_send(peer, &greeting), 0);
    return peer;
}

static struct peer *accept_greeting(struct listener *listener, const char *word)
{
    struct peer *peer;
    struct msg greeting;
    if (tcp_accept(listener, &patient, &peer, &greeting))
        fail_msg("%s", fail_reason());
    assert_string_equal(greeting.bytes, word);
    return peer;
}

/* Greeting, an answer, and a question back. */
static void check_connection(const char *listen_on, const char *dial)
{
    struct listener *listener = listen_at(listen_on);
    struct peer *client = dial_and_greet(dial, tcp_port(listener), "hello");
    struct peer *server = accept_greeting(listener, "hello");
    struct msg msg;
    assert_int_equal(client->rank, PEER_CLIENT);
    assert_int_equal(server->rank, PEER_SERVER);
    print_msg(&msg, "yes");
    assert_int_equal(peer_send(server, &msg), 0);
    print_msg(&msg, "?");
    assert_int_equal(peer_recv(client, &msg, NULL, NULL), 0);
    assert_string_equal(msg.bytes, "yes");
    print_msg(&msg, "go");
    assert_int_equal(peer_send(client, &msg), 0);
    print_msg(&msg, "?");
    assert_int_equal(peer_recv(server, &msg, NULL, NULL), 0);
    assert_string_equal(msg.bytes, "go");
    assert_true(*client->here && *server->here);
    peer_close(client);
    assert_int_equal(peer_recv(server, &msg, NULL, NULL), -ECONNRESET);
    peer_close(server);
    tcp_close(listener);
    assert_string_equal(warnings, "");
}

static void tcp_connects_over_ipv4(void **state)
{
    (void)state;
    check_connection("127.0.0.1", "127.0.0.1");
}

static void tcp_listens_on_every_address_and_takes_names(void **state)
{
    (void)state;
    check_connection("", "127.0.0.1");
    check_connection(NULL, "localhost");
    check_connection("localhost", "localhost");
}

static void tcp_connects_over_ipv6(void **state)
{
    struct listener *listener;
    (void)state;
    int status = tcp_listen(&listener, "::1", 0, &patient);
    if (status == -EADDRNOTAVAIL || status == -EAFNOSUPPORT)
        skip();
    assert_int_equal(status, 0);
    tcp_close(listener);
    check_connection("::1", "::1");
    check_connection("", "::1");
}

static void tcp_ends_know_their_own_numeric_address(void **state)
{
    static const char *const ways[] = {"127.0.0.1", ""};
    (void)state;
    for (size_t i = 0; i < LENGTH(ways); i++) {
        struct listener *listener = listen_at(ways[i]);
        struct peer *client = dial_and_greet("127.0.0.1", tcp_port(listener), "hello");
        struct peer *server = accept_greeting(listener, "hello");
        assert_string_equal(client->here, "127.0.0.1");
        assert_string_equal(server->here, "127.0.0.1");
        peer_close(client);
        peer_close(server);
        tcp_close(listener);
    }
}

static void tcp_takes_one_client_after_another(void **state)
{
    struct listener *listener = listen_at("127.0.0.1");
    struct peer *clients[3], *servers[3];
    (void)state;
    for (size_t i = 0; i < LENGTH(clients); i++)
        clients[i] = dial_and_greet("127.0.0.1", tcp_port(listener), "hello");
    for (size_t i = 0; i < LENGTH(servers); i++)
        servers[i] = accept_greeting(listener, "hello");
    for (size_t i = 0; i < LENGTH(servers); i++) {
        peer_close(clients[i]);
        peer_close(servers[i]);
    }
    tcp_close(listener);
}

static void tcp_port_in_use_is_said(void **state)
{
    static const char *const addresses[] = {"", "127.0.0.1"};
    (void)state;
    for (size_t i = 0; i < LENGTH(addresses); i++) {
        struct listener *first = listen_at(addresses[i]), *second = NULL;
        char expected[64];
        assert_int_equal(tcp_listen(&second, addresses[i], tcp_port(first), &patient), -EADDRINUSE);
        snprintf(expected, sizeof expected, "port %u is in use", tcp_port(first));
        assert_contains(fail_reason(), expected);
        assert_null(second);
        tcp_close(first);
    }
    tcp_close(NULL);
}

static void tcp_listening_on_an_address_of_another_machine_is_refused(void **state)
{
    struct listener *listener = NULL;
    (void)state;
    assert_int_equal(tcp_listen(&listener, "203.0.113.77", 0, &patient), -EADDRNOTAVAIL);
    assert_contains(fail_reason(), "203.0.113.77");
    assert_null(listener);
}

static void tcp_dialling_nobody_is_refused_after_the_wait(void **state)
{
    unsigned port = free_port();
    struct peer *peer = NULL;
    char expected[64];
    (void)state;
    uint64_t since_ms = clock_ms();
    assert_int_equal(tcp_dial(&peer, "127.0.0.1", port, SHORT_MS, &patient), -ECONNREFUSED);
    assert_in_range(clock_ms() - since_ms, SHORT_MS, BOUND_MS);
    snprintf(expected, sizeof expected, "no server at 127.0.0.1 port %u after 0.2 s", port);
    assert_contains(fail_reason(), expected);
    assert_int_equal(tcp_dial(&peer, "127.0.0.1", port, 0, &patient), -ECONNREFUSED);
    assert_null(peer);
}

struct late {
    unsigned port;
    struct listener *listener;
    int status;
};

static void *listen_late(void *arg)
{
    struct late *late = arg;
    rest_ms(SHORT_MS);
    late->status = tcp_listen(&late->listener, "127.0.0.1", late->port, &patient);
    return NULL;
}

static void tcp_dialling_waits_for_a_server_that_is_not_up_yet(void **state)
{
    struct late late = {.port = free_port()};
    pthread_t thread;
    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, listen_late, &late), 0);
    struct peer *client = dial_and_greet("127.0.0.1", late.port, "early");
    pthread_join(thread, NULL);
    assert_int_equal(late.status, 0);
    peer_close(accept_greeting(late.listener, "early"));
    peer_close(client);
    tcp_close(late.listener);
}

static void tcp_dialling_a_name_that_does_not_exist_says_so(void **state)
{
    struct peer *peer = NULL;
    (void)state;
    uint64_t since_ms = clock_ms();
    int status = tcp_dial(&peer, "no-such-host.invalid", 1, SHORT_MS, &patient);
    /* Without a resolver that answers it is not known whether there is one. */
    assert_true(status == -EHOSTUNREACH || status == -ETIMEDOUT);
    assert_contains(fail_reason(), "no-such-host.invalid");
    assert_in_range(clock_ms() - since_ms, 0, BOUND_MS);
    assert_null(peer);
}

static void an_interruption_ends_dialling_and_accepting(void **state)
{
    struct listener *listener = listen_at("127.0.0.1");
    unsigned port = free_port();
    struct peer *peer = NULL;
    struct msg msg;
    (void)state;
    uint64_t since_ms = clock_ms();
    stop_after_ms(60);
    assert_int_equal(tcp_dial(&peer, "127.0.0.1", port, BOUND_MS, &patient), -EINTR);
    assert_string_equal(fail_reason(), "interrupted");
    stop_after_ms(60);
    assert_int_equal(tcp_accept(listener, &patient, &peer, &msg), -EINTR);
    assert_string_equal(fail_reason(), "interrupted");
    assert_in_range(clock_ms() - since_ms, 0, BOUND_MS);
    stop = 0;
    assert_null(peer);
    tcp_close(listener);
}

static void an_interruption_ends_looking_up_where_to_listen(void **state)
{
    struct listener *listener = NULL;
    (void)state;
    stop = 1;
    assert_int_equal(tcp_listen(&listener, "no-such-host.invalid", 0, &patient), -EINTR);
    assert_string_equal(fail_reason(), "interrupted");
    assert_null(listener);
    stop = 0;
}

/* ---- strangers ---- */

static int stranger(unsigned port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

static int count_of(const char *text, const char *part)
{
    int count = 0;
    for (const char *at = text; (at = strstr(at, part)); at++)
        count++;
    return count;
}

static uint64_t cpu_ms(void)
{
    struct timespec used;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * 1000 + (uint64_t)used.tv_nsec / 1000000;
}

static void a_server_without_descriptors_says_so_once_and_does_not_spin(void **state)
{
    struct listener *listener = listen_at("127.0.0.1");
    struct peer *client = dial_and_greet("127.0.0.1", tcp_port(listener), "real"), *peer = NULL;
    struct rlimit before, none;
    struct msg msg;
    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){.rlim_cur = STDERR_FILENO + 1, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    uint64_t used_ms = cpu_ms();
    stop_after_ms(400);
    int status = tcp_accept(listener, &patient, &peer, &msg);
    used_ms = cpu_ms() - used_ms;
    stop = 0;
    setrlimit(RLIMIT_NOFILE, &before);
    assert_int_equal(status, -EINTR);
    assert_int_equal(count_of(warnings, "a connection cannot be taken now: "), 1);
    assert_in_range(used_ms, 0, 200);
    peer_close(accept_greeting(listener, "real"));
    peer_close(client);
    tcp_close(listener);
}

static void strangers_are_warned_of_and_a_real_client_gets_through(void **state)
{
    static const struct {
        const char *bytes, *warning;
    } cases[] = {{"", "closed the connection before greeting"},
                 {"WEFT", "closed the connection before greeting"},
                 {"WEFT01 H 000010\nhalf", "closed the connection before greeting"},
                 {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "does not speak Weft's protocol"},
                 {"\026\003\001\002", "does not speak Weft's protocol"},
                 {"WEFT01 D ffffff\n", "announced a message of 16777215 bytes"},
                 {"WEFT01 H ffffff\n", "announced a message of 16777215 bytes"},
                 {"WEFT02 H 000000\n", "speaks version 02 of the protocol"},
                 {"WEFT01 D 000002\nhi", "sent a message out of turn"},
                 {"WEFT01 E 000000\n", "left with a message that cannot be read"}};
    struct listener *listener = listen_at("127.0.0.1");
    (void)state;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        warnings[0] = '\0';
        int fd = stranger(tcp_port(listener));
        assert_true(give(fd, cases[i].bytes, strlen(cases[i].bytes)));
        shutdown(fd, SHUT_WR);
        struct peer *client = dial_and_greet("127.0.0.1", tcp_port(listener), "real");
        struct peer *server = accept_greeting(listener, "real");
        assert_contains(warnings, "ignored a connection from 127.0.0.1 port ");
        assert_contains(warnings, cases[i].warning);
        close(fd);
        peer_close(client);
        peer_close(server);
    }
    tcp_close(listener);
}

static void a_stranger_that_waits_is_told_why_it_is_refused(void **state)
{
    struct listener *listener = listen_at("127.0.0.1");
    int fd = stranger(tcp_port(listener));
    char answer[512] = "";
    (void)state;
    assert_true(give(fd, "WEFT02 H 000000\n", FRAME_HEAD));
    struct peer *client = dial_and_greet("127.0.0.1", tcp_port(listener), "real");
    struct peer *server = accept_greeting(listener, "real");
    assert_true(recv(fd, answer, sizeof answer - 1, MSG_DONTWAIT) > FRAME_HEAD);
    assert_memory_equal(answer, "WEFT01 E ", 9);
    assert_contains(answer, "speaks version 02 of the protocol, this is version 01");
    close(fd);
    peer_close(client);
    peer_close(server);
    tcp_close(listener);
}

struct drip {
    int fd;
    const char *bytes;
};

static void *send_byte_by_byte(void *arg)
{
    struct drip *drip = arg;
    for (const char *at = drip->bytes; *at; at++) {
        rest_ms(2);
        if (send(drip->fd, at, 1, MSG_NOSIGNAL) != 1)
            break;
    }
    return NULL;
}

static void a_slow_client_keeps_nobody_waiting_and_gets_its_turn(void **state)
{
    struct listener *listener = listen_at("127.0.0.1");
    struct drip drip = {.fd = stranger(tcp_port(listener)), .bytes = "EFT01 H 000004\nslow"};
    pthread_t thread;
    (void)state;
    assert_true(give(drip.fd, "W", 1));
    struct peer *client = dial_and_greet("127.0.0.1", tcp_port(listener), "real");
    struct peer *server = accept_greeting(listener, "real");
    assert_int_equal(pthread_create(&thread, NULL, send_byte_by_byte, &drip), 0);
    struct peer *slow = accept_greeting(listener, "slow");
    pthread_join(thread, NULL);
    assert_string_equal(warnings, "");
    close(drip.fd);
    peer_close(slow);
    peer_close(client);
    peer_close(server);
    tcp_close(listener);
}

struct accepting {
    struct listener *listener;
    struct peer *peer;
    struct msg greeting;
    int status;
};

static void *accept_one(void *arg)
{
    struct accepting *a = arg;
    struct msg answer;
    a->status = tcp_accept(a->listener, &patient, &a->peer, &a->greeting);
    if (!a->status)
        a->status = msg_print(&answer, "welcome");
    if (!a->status)
        a->status = peer_send(a->peer, &answer);
    return NULL;
}

static void silent_strangers_do_not_keep_a_real_client_out(void **state)
{
    struct accepting a = {.listener = listen_at("127.0.0.1")};
    int fds[20];
    struct msg answer;
    pthread_t thread;
    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, accept_one, &a), 0);
    uint64_t since_ms = clock_ms();
    for (size_t i = 0; i < LENGTH(fds); i++)
        fds[i] = stranger(tcp_port(a.listener));
    struct peer *client = dial_and_greet("127.0.0.1", tcp_port(a.listener), "real");
    int heard = peer_recv(client, &answer, NULL, NULL);
    uint64_t waited_ms = clock_ms() - since_ms;
    pthread_join(thread, NULL);
    assert_int_equal(heard, 0);
    assert_int_equal(a.status, 0);
    assert_string_equal(a.greeting.bytes, "real");
    assert_in_range(waited_ms, 0, 5000 + BOUND_MS);
    /* More than there are places for: the eldest had to go. */
    int dropped = count_of(warnings, "did not greet, and others wait");
    assert_in_range(dropped, LENGTH(fds) - 16, LENGTH(fds));
    for (size_t i = 0; i < LENGTH(fds); i++)
        close(fds[i]);
    peer_close(client);
    peer_close(a.peer);
    tcp_close(a.listener);
}

static void the_eldest_stranger_makes_room(void **state)
{
    struct accepting a = {.listener = listen_at("127.0.0.1")};
    int fds[16];
    char byte;
    pthread_t thread;
    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, accept_one, &a), 0);
    for (size_t i = 0; i < LENGTH(fds); i++) {
        fds[i] = stranger(tcp_port(a.listener));
        rest_ms(5);
    }
    struct peer *client = dial_and_greet("127.0.0.1", tcp_port(a.listener), "real");
    pthread_join(thread, NULL);
    assert_int_equal(a.status, 0);
    assert_string_equal(a.greeting.bytes, "real");
    assert_true(recv(fds[0], &byte, 1, MSG_DONTWAIT) == 0);
    for (size_t i = 1; i < LENGTH(fds); i++)
        assert_true(recv(fds[i], &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN);
    for (size_t i = 0; i < LENGTH(fds); i++)
        close(fds[i]);
    peer_close(client);
    peer_close(a.peer);
    tcp_close(a.listener);
}

/* One that connects before all other tests and says nothing while they run: its five seconds cost
 * nobody any time. */
static struct {
    struct listener *listener;
    int fd;
    uint64_t since_ms;
} silent;

static int invite_a_silent_stranger(void **state)
{
    struct peer *peer;
    struct msg msg;
    (void)state;
    silent.listener = listen_at("127.0.0.1");
    silent.fd = stranger(tcp_port(silent.listener));
    silent.since_ms = clock_ms();
    stop_after_ms(60);
    int status = tcp_accept(silent.listener, &patient, &peer, &msg);
    stop = 0;
    return status == -EINTR ? 0 : -1;
}

static void a_stranger_that_says_nothing_is_dropped_after_the_greeting_limit(void **state)
{
    char byte;
    (void)state;
    while (clock_ms() - silent.since_ms < 5200)
        rest_ms(50);
    assert_true(recv(silent.fd, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN);
    struct peer *client = dial_and_greet("127.0.0.1", tcp_port(silent.listener), "real");
    struct peer *server = accept_greeting(silent.listener, "real");
    assert_contains(warnings, "it did not greet within 5 s");
    assert_true(recv(silent.fd, &byte, 1, MSG_DONTWAIT) == 0);
    close(silent.fd);
    peer_close(client);
    peer_close(server);
    tcp_close(silent.listener);
}

#define TCP_TEST(name) cmocka_unit_test_setup_teardown(name, begin_tcp, end_tcp)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(peers_swap_messages),
        cmocka_unit_test(peers_carry_messages_up_to_the_bound_whatever_is_in_them),
        cmocka_unit_test(peers_refuse_a_message_over_the_bound_and_send_nothing_of_it),
        cmocka_unit_test(peers_meet_at_the_same_word_again_and_again),
        cmocka_unit_test(peers_that_are_out_of_step_both_say_so),
        cmocka_unit_test(meeting_makes_progress_while_it_waits),
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
        cmocka_unit_test(an_interruption_ends_every_wait),
        cmocka_unit_test(telling_a_peer_that_does_not_listen_times_out),
        cmocka_unit_test(an_interruption_ends_telling_a_peer_that_does_not_listen),
        cmocka_unit_test(frames_are_put_together_from_any_pieces),
        cmocka_unit_test(heartbeats_count_behind_messages_that_wait_for_hours),
        cmocka_unit_test(frames_from_a_madman_end_in_an_error_not_in_a_crash),
        cmocka_unit_test(a_frame_that_is_not_ours_is_named),
        TCP_TEST(tcp_connects_over_ipv4),
        TCP_TEST(tcp_listens_on_every_address_and_takes_names),
        TCP_TEST(tcp_connects_over_ipv6),
        TCP_TEST(tcp_ends_know_their_own_numeric_address),
        TCP_TEST(tcp_takes_one_client_after_another),
        TCP_TEST(tcp_port_in_use_is_said),
        TCP_TEST(tcp_listening_on_an_address_of_another_machine_is_refused),
        TCP_TEST(tcp_dialling_nobody_is_refused_after_the_wait),
        TCP_TEST(tcp_dialling_waits_for_a_server_that_is_not_up_yet),
        TCP_TEST(tcp_dialling_a_name_that_does_not_exist_says_so),
        TCP_TEST(an_interruption_ends_dialling_and_accepting),
        TCP_TEST(an_interruption_ends_looking_up_where_to_listen),
        TCP_TEST(strangers_are_warned_of_and_a_real_client_gets_through),
        TCP_TEST(a_server_without_descriptors_says_so_once_and_does_not_spin),
        TCP_TEST(a_stranger_that_waits_is_told_why_it_is_refused),
        TCP_TEST(a_slow_client_keeps_nobody_waiting_and_gets_its_turn),
        TCP_TEST(silent_strangers_do_not_keep_a_real_client_out),
        TCP_TEST(the_eldest_stranger_makes_room),
        TCP_TEST(a_stranger_that_says_nothing_is_dropped_after_the_greeting_limit),
    };
    return cmocka_run_group_tests(tests, invite_a_silent_stranger, NULL);
}
