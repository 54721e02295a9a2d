/* SPDX-License-Identifier: BSD-3-Clause */
/* A peer over a carrier of whole messages: here two rings in memory that can run full, break and
 * carry what no Weft would send. Upper bounds of time are generous. */
#include "core/clock.h"
#include "peer/life.h"
#include "support/peers.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

enum { SLOTS = 16 };

/* ---- the carrier ---- */

struct ring {
    pthread_mutex_t lock;
    unsigned first, count, room;
    unsigned storm; /* of this many calls of publish, one has room */
    unsigned calls;
    int broken; /* what receive says once the ring is empty, and publish at once */
    bool closed;
    struct {
        size_t length;
        char bytes[CARRIER_MAX];
    } slot[SLOTS];
};

struct way {
    struct ring *out, *in;
};

struct wires {
    struct ring ring[2];
    struct way way[2];
};

static int put(struct ring *ring, const void *bytes, size_t length)
{
    int status = 0;
    pthread_mutex_lock(&ring->lock);
    if (ring->broken) {
        status = ring->broken;
    } else if (ring->count == ring->room || ++ring->calls % ring->storm) {
        status = -EAGAIN;
    } else {
        unsigned at = (ring->first + ring->count++) % SLOTS;
        ring->slot[at].length = length;
        memcpy(ring->slot[at].bytes, bytes, length < CARRIER_MAX ? length : CARRIER_MAX);
    }
    pthread_mutex_unlock(&ring->lock);
    return status;
}

static int get(struct ring *ring, void *bytes, size_t room, size_t *length)
{
    int status = 1;
    pthread_mutex_lock(&ring->lock);
    if (ring->count) {
        size_t have = ring->slot[ring->first].length;
        memcpy(bytes, ring->slot[ring->first].bytes, have < room ? have : room);
        *length = have;
        ring->first = (ring->first + 1) % SLOTS;
        ring->count--;
    } else {
        status = ring->broken;
    }
    pthread_mutex_unlock(&ring->lock);
    return status;
}

static unsigned waiting(struct ring *ring)
{
    pthread_mutex_lock(&ring->lock);
    unsigned count = ring->count;
    pthread_mutex_unlock(&ring->lock);
    return count;
}

static int way_publish(void *arg, const void *bytes, size_t length)
{
    return put(((struct way *)arg)->out, bytes, length);
}

static int way_receive(void *arg, void *bytes, size_t room, size_t *length)
{
    return get(((struct way *)arg)->in, bytes, room, length);
}

static void way_close(void *arg)
{
    ((struct way *)arg)->out->closed = true;
    fail(-EIO, "closing is not what made us leave");
}

static struct wires *new_wires(void)
{
    struct wires *wires = calloc(1, sizeof *wires);
    assert_non_null(wires);
    for (int i = 0; i < 2; i++) {
        pthread_mutex_init(&wires->ring[i].lock, NULL);
        wires->ring[i].room = SLOTS;
        wires->ring[i].storm = 1;
        wires->way[i] = (struct way){.out = &wires->ring[i], .in = &wires->ring[1 - i]};
    }
    return wires;
}

static struct peer *open_end(struct wires *wires, int rank, uint64_t timeout_ms)
{
    const struct peer_terms terms = {.timeout_ms = timeout_ms, .stop = &stop};
    const struct peer_carrier carrier = {.arg = &wires->way[rank],
                                         .publish = way_publish,
                                         .receive = way_receive,
                                         .close = way_close};
    struct peer *peer;
    assert_int_equal(peer_relay(&peer, &carrier, rank, &terms), 0);
    return peer;
}

static struct wires *open_pair(struct peer *pair[2], uint64_t timeout_ms)
{
    struct wires *wires = new_wires();
    stop = 0;
    for (int rank = 0; rank < 2; rank++)
        pair[rank] = open_end(wires, rank, timeout_ms);
    return wires;
}

static void close_pair(struct peer *pair[2], struct wires *wires)
{
    peer_close(pair[0]);
    peer_close(pair[1]);
    assert_true(wires->ring[0].closed);
    free(wires);
}

/* ---- actors ---- */

static int nothing_to_do(void *arg)
{
    (void)arg;
    return 0;
}

static int act_hear_spinning(struct actor *actor)
{
    return peer_recv(actor->peer, &actor->msg, nothing_to_do, NULL);
}

/* Every way to wait for the other end. */
static int (*const waits[])(struct actor *) = {act_hear, act_hear_spinning, act_alive, act_swap,
                                               act_meet};

static void tell(struct peer *peer, const char *text)
{
    struct msg msg;
    assert_int_equal(msg_print(&msg, "%s", text), 0);
    assert_int_equal(peer_send(peer, &msg), 0);
}

static void assert_hears(struct peer *peer, const char *text)
{
    struct msg msg;
    assert_int_equal(peer_recv(peer, &msg, NULL, NULL), 0);
    assert_string_equal(msg.bytes, text);
    assert_int_equal(msg.length, strlen(text));
}

/* ---- meeting ---- */

static void relayed_ends_swap_and_meet(void **state)
{
    (void)state;
    struct peer *pair[2];
    struct wires *wires = open_pair(pair, LONG_MS);
    assert_string_equal(pair[PEER_CLIENT]->other, "server");
    assert_string_equal(pair[PEER_SERVER]->other, "client");
    struct actor client = {.peer = pair[0], .word = "from the client", .act = act_swap};
    struct actor server = {.peer = pair[1], .word = "from the server", .act = act_swap};
    for (int round = 0; round < 2; round++) {
        start(&server);
        act(&client);
        join(&server);
        assert_int_equal(client.status, 0);
        assert_int_equal(server.status, 0);
        client.act = server.act = act_meet;
        client.word = server.word = "size 8";
    }
    assert_string_equal(client.msg.bytes, "from the server");
    assert_string_equal(server.msg.bytes, "from the client");
    close_pair(pair, wires);
}

static void relayed_ends_that_are_out_of_step_say_so(void **state)
{
    (void)state;
    struct peer *pair[2];
    struct wires *wires = open_pair(pair, LONG_MS);
    struct actor client = {.peer = pair[0], .word = "size 80", .act = act_meet};
    struct actor server = {.peer = pair[1], .word = "size 8", .act = act_meet};
    start(&server);
    act(&client);
    join(&server);
    assert_int_equal(client.status, -EPROTO);
    assert_int_equal(server.status, -EPROTO);
    assert_contains(client.reason, "out of step at \"size 80\"");
    close_pair(pair, wires);
}

static void a_relay_carries_messages_up_to_the_bound_and_refuses_longer_ones(void **state)
{
    (void)state;
    static const size_t lengths[] = {0, 1, 4096, MSG_MAX - 1};
    struct peer *pair[2];
    struct wires *wires = open_pair(pair, LONG_MS);
    struct msg sent;
    for (size_t at = 0; at < sizeof sent.bytes; at++)
        sent.bytes[at] = (char)(at * 37 + at / 256);
    for (size_t i = 0; i < LENGTH(lengths); i++) {
        sent.length = lengths[i];
        assert_carried(pair, &sent);
    }
    sent.length = MSG_MAX;
    assert_int_equal(peer_send(pair[0], &sent), -EMSGSIZE);
    assert_contains(fail_reason(), "8192 bytes, the limit is 8191");
    assert_int_equal(waiting(&wires->ring[0]), 0);
    close_pair(pair, wires);
}

static void a_carrier_that_seldom_has_room_loses_nothing(void **state)
{
    (void)state;
    struct peer *pair[2];
    struct wires *wires = open_pair(pair, LONG_MS);
    for (int i = 0; i < 2; i++) {
        wires->ring[i].room = 1;
        wires->ring[i].storm = 7;
    }
    struct actor client = {.peer = pair[0], .word = "storm", .act = act_meet};
    struct actor server = {.peer = pair[1], .word = "storm", .act = act_meet};
    start(&server);
    act(&client);
    join(&server);
    assert_int_equal(client.status, 0);
    assert_int_equal(server.status, 0);
    close_pair(pair, wires);
}

static int give_up(void *arg)
{
    int *calls = arg;
    return ++*calls == 5 ? fail(-EIO, "the link is lost") : 0;
}

static void relayed_waits_make_progress_and_are_ended_by_it(void **state)
{
    (void)state;
    struct peer *pair[2];
    struct wires *wires = open_pair(pair, LONG_MS);
    struct spinning spinning = {.other = pair[1]};
    struct msg msg;
    int calls = 0;
    assert_int_equal(peer_barrier(pair[0], "here", answer_after_a_while, &spinning), 0);
    assert_true(spinning.calls >= 3000);
    assert_int_equal(peer_recv(pair[0], &msg, give_up, &calls), -EIO);
    assert_string_equal(fail_reason(), "the link is lost");
    assert_int_equal(calls, 5);
    close_pair(pair, wires);
}

/* ---- signs of life ---- */

static void looking_for_life_keeps_early_messages(void **state)
{
    (void)state;
    struct peer *pair[2];
    struct wires *wires = open_pair(pair, LONG_MS);
    tell(pair[1], "first");
    tell(pair[1], "second");
    for (int i = 0; i < 100; i++)
        assert_int_equal(peer_alive(pair[0]), 0);
    assert_int_equal(waiting(&wires->ring[1]), 0);
    tell(pair[1], "third");
    assert_hears(pair[0], "first");
    assert_hears(pair[0], "second");
    assert_hears(pair[0], "third");
    close_pair(pair, wires);
}

static void more_early_messages_than_a_relay_keeps_wait_in_the_carrier(void **state)
{
    (void)state;
    struct peer *pair[2];
    struct wires *wires = open_pair(pair, LONG_MS);
    char word[16];
    for (int i = 0; i < SLOTS; i++) {
        snprintf(word, sizeof word, "%d", i);
        tell(pair[1], word);
        assert_int_equal(peer_alive(pair[0]), 0);
    }
    for (int i = 0; i < SLOTS; i++) {
        snprintf(word, sizeof word, "%d", i);
        assert_hears(pair[0], word);
    }
    close_pair(pair, wires);
}

static void a_message_that_waits_hides_no_heartbeat(void **state)
{
    (void)state;
    struct peer *pair[2];
    struct wires *wires = open_pair(pair, 600);
    int status[2] = {0, 0};
    tell(pair[0], "unheard");
    for (uint64_t since_ms = clock_ms(); !status[1] && clock_ms() - since_ms < 1300;) {
        status[0] = peer_alive(pair[0]);
        status[1] = peer_alive(pair[1]);
        rest_ms(10);
    }
    assert_int_equal(status[0], 0);
    assert_int_equal(status[1], 0);
    close_pair(pair, wires);
}

static void relayed_heartbeats_are_at_most_four_a_second(void **state)
{
    (void)state;
    struct peer *pair[2];
    struct wires *wires = open_pair(pair, LONG_MS);
    uint64_t since_ms = clock_ms();
    while (clock_ms() - since_ms < 600)
        assert_int_equal(peer_alive(pair[0]), 0);
    uint64_t passed_ms = clock_ms() - since_ms;
    assert_in_range(waiting(&wires->ring[0]), 1, passed_ms / BEAT_MS);
    assert_int_equal(wires->ring[0].slot[0].length, 1);
    assert_int_equal(wires->ring[0].slot[0].bytes[0], 'B');
    close_pair(pair, wires);
}

static void a_heartbeat_without_room_is_not_waited_for(void **state)
{
    (void)state;
    struct peer *pair[2];
    struct wires *wires = open_pair(pair, LONG_MS);
    wires->ring[0].room = 0;
    rest_ms(BEAT_MS + 10);
    uint64_t since_ms = clock_ms();
    for (int i = 0; i < 100; i++)
        assert_int_equal(peer_alive(pair[0]), 0);
    assert_in_range(clock_ms() - since_ms, 0, 200);
    close_pair(pair, wires);
}

static void a_silent_relayed_peer_is_taken_for_dead(void **state)
{
    (void)state;
    for (size_t i = 0; i < LENGTH(waits); i++) {
        struct peer *pair[2];
        struct wires *wires = open_pair(pair, SHORT_MS);
        struct actor client = {.peer = pair[0], .word = "hello", .act = waits[i]};
        uint64_t since_ms = clock_ms();
        act(&client);
        assert_int_equal(client.status, -ETIMEDOUT);
        assert_string_equal(client.reason, "lost the server: no sign of life for 0.2 s");
        assert_in_range(clock_ms() - since_ms, SHORT_MS, BOUND_MS);
        close_pair(pair, wires);
    }
}

static void a_carrier_that_stays_full_times_out(void **state)
{
    (void)state;
    struct peer *pair[2];
    struct wires *wires = open_pair(pair, SHORT_MS);
    assert_sending_times_out(pair[0]);
    close_pair(pair, wires);
}

/* ---- leaving ---- */

static void relayed_last_words_become_the_sentence(void **state)
{
    (void)state;
    static const struct {
        int status, becomes;
        const char *why, *reason;
    } cases[] = {{-ENOMEM, -EREMOTEIO, "no memory: 8 bytes", "the server says: no memory: 8 bytes"},
                 {-EINTR, -ECONNRESET, "interrupted", "the server was interrupted"},
                 {-ETIMEDOUT, -ECONNRESET, "lost it", "the server gave up: lost it"}};
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct peer *pair[2];
        struct wires *wires = open_pair(pair, LONG_MS);
        struct msg msg;
        tell(pair[1], "before the end");
        peer_end(pair[1], cases[i].status, cases[i].why);
        peer_end(pair[1], -EIO, "said twice");
        /* Only looking leaves what was said before the end to be heard. */
        assert_int_equal(peer_alive(pair[0]), 0);
        assert_hears(pair[0], "before the end");
        for (int round = 0; round < 2; round++) {
            fail(0, "%s", "");
            assert_int_equal(peer_alive(pair[0]), cases[i].becomes);
            assert_string_equal(fail_reason(), cases[i].reason);
            assert_int_equal(peer_recv(pair[0], &msg, NULL, NULL), cases[i].becomes);
        }
        msg.length = 0;
        assert_int_equal(peer_send(pair[0], &msg), cases[i].becomes);
        assert_string_equal(fail_reason(), cases[i].reason);
        close_pair(pair, wires);
    }
}

static void an_end_behind_an_unheard_message_is_not_waited_for_for_ever(void **state)
{
    (void)state;
    struct peer *pair[2];
    struct wires *wires = open_pair(pair, SHORT_MS);
    tell(pair[1], "unheard");
    peer_end(pair[1], -EIO, "broken");
    struct actor client = {.peer = pair[0], .act = act_alive};
    act(&client);
    assert_int_equal(client.status, -EREMOTEIO);
    assert_string_equal(client.reason, "the server says: broken");
    close_pair(pair, wires);
}

static void a_relayed_peer_that_closes_is_lost_at_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < LENGTH(waits); i++) {
        struct peer *pair[2];
        struct wires *wires = open_pair(pair, LONG_MS);
        peer_close(pair[0]);
        struct actor server = {.peer = pair[1], .word = "hello", .act = waits[i]};
        uint64_t since_ms = clock_ms();
        act(&server);
        assert_int_equal(server.status, -ECONNRESET);
        assert_string_equal(server.reason, "lost the client: it closed the connection");
        assert_in_range(clock_ms() - since_ms, 0, BOUND_MS);
        peer_close(pair[1]);
        free(wires);
    }
}

static void a_carrier_that_breaks_ends_every_wait(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * LENGTH(waits); i++) {
        struct peer *pair[2];
        struct wires *wires = open_pair(pair, LONG_MS);
        wires->ring[0].broken = wires->ring[1].broken = i % 2 ? -ECONNRESET : -ENOTCONN;
        fail(-ENOTCONN, "the carrier says why");
        struct actor client = {.peer = pair[0], .word = "hello", .act = waits[i / 2]};
        act(&client);
        assert_int_equal(client.status, i % 2 ? -ECONNRESET : -ENOTCONN);
        assert_string_equal(client.reason, i % 2 ? "lost the server: it closed the connection"
                                                 : "the carrier says why");
        close_pair(pair, wires);
    }
}

static void leaving_a_relay_keeps_the_sentence_that_made_us_leave(void **state)
{
    (void)state;
    for (unsigned room = 0; room < 2; room++) {
        struct peer *pair[2];
        struct wires *wires = open_pair(pair, LONG_MS);
        wires->ring[0].room = room;
        stop = (int)room; /* an interruption must not keep the words back */
        fail(-EIO, "the true reason");
        uint64_t since_ms = clock_ms();
        peer_end(pair[0], -EIO, fail_reason());
        assert_string_equal(fail_reason(), "the true reason");
        peer_close(pair[0]);
        assert_string_equal(fail_reason(), "the true reason");
        assert_in_range(clock_ms() - since_ms, 0, BOUND_MS);
        assert_int_equal(waiting(&wires->ring[0]), room);
        peer_close(pair[1]);
        free(wires);
    }
    stop = 0;
}

/* ---- what no Weft would send ---- */

static void garbage_is_refused_and_the_sender_is_told(void **state)
{
    (void)state;
    static char large[CARRIER_MAX] = "D";
    static const struct {
        const char *bytes;
        size_t length;
        const char *reason;
    } cases[] = {{"", 0, "does not speak Weft's protocol"},
                 {"X", 1, "does not speak Weft's protocol"},
                 {"\0", 1, "does not speak Weft's protocol"},
                 {"Hello", 5, "does not speak Weft's protocol"},
                 {"E?", 2, "left with a message that cannot be read"},
                 {large, MSG_MAX + 1, "of 8192 bytes, the limit is 8191"},
                 {large, CARRIER_MAX, "the limit is 8191"},
                 {large, (size_t)1 << 40, "the limit is 8191"},
                 {large, SIZE_MAX, "the limit is 8191"}};
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct peer *pair[2];
        struct wires *wires = open_pair(pair, LONG_MS);
        struct msg msg;
        tell(pair[1], "good");
        assert_int_equal(put(&wires->ring[1], cases[i].bytes, cases[i].length), 0);
        tell(pair[1], "behind it");
        assert_hears(pair[0], "good");
        assert_int_equal(peer_recv(pair[0], &msg, NULL, NULL), -EPROTO);
        assert_contains(fail_reason(), cases[i].reason);
        assert_int_equal(peer_alive(pair[0]), -EPROTO);
        peer_end(pair[0], -EPROTO, "nonsense");
        assert_int_equal(peer_alive(pair[1]), -EREMOTEIO);
        assert_string_equal(fail_reason(), "the client says: nonsense");
        close_pair(pair, wires);
    }
}

static void a_full_frame_of_every_kind_does_no_harm(void **state)
{
    (void)state;
    for (int kind = 0; kind < 256; kind++) {
        struct peer *pair[2];
        struct wires *wires = open_pair(pair, LONG_MS);
        char bytes[MSG_MAX];
        memset(bytes, '=', sizeof bytes);
        bytes[0] = (char)kind;
        assert_int_equal(put(&wires->ring[1], bytes, sizeof bytes), 0);
        int wanted = kind == 'D' || kind == 'B' ? 0 : -EPROTO;
        assert_int_equal(peer_alive(pair[0]), wanted);
        close_pair(pair, wires);
    }
}

/* ---- interruption ---- */

static void an_interruption_ends_every_relayed_wait(void **state)
{
    (void)state;
    for (size_t i = 0; i <= LENGTH(waits); i++) {
        struct peer *pair[2];
        struct wires *wires = open_pair(pair, LONG_MS);
        struct actor client = {
            .peer = pair[0], .word = "hello", .act = i < LENGTH(waits) ? waits[i] : act_fill};
        uint64_t since_ms = clock_ms();
        stop_after_ms(60);
        act(&client);
        assert_int_equal(client.status, -EINTR);
        assert_string_equal(client.reason, "interrupted");
        assert_in_range(clock_ms() - since_ms, 0, BOUND_MS);
        close_pair(pair, wires);
    }
    stop = 0;
}

static int act_late_answer(struct actor *actor)
{
    struct msg msg;
    rest_ms(300);
    int status = msg_print(&msg, "%s", actor->word);
    return status ? status : peer_send(actor->peer, &msg);
}

/* A carrier cannot be slept on, yet a long wait must leave the CPU to others. */
static void a_long_relayed_wait_sleeps(void **state)
{
    (void)state;
    struct peer *pair[2];
    struct wires *wires = open_pair(pair, LONG_MS);
    struct actor server = {.peer = pair[1], .word = "at last", .act = act_late_answer};
    struct timespec before, after;
    start(&server);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
    assert_hears(pair[0], "at last");
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
    join(&server);
    int64_t used_ns = (after.tv_sec - before.tv_sec) * 1000000000 + after.tv_nsec - before.tv_nsec;
    assert_in_range(used_ns, 0, 100000000);
    close_pair(pair, wires);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(relayed_ends_swap_and_meet),
        cmocka_unit_test(relayed_ends_that_are_out_of_step_say_so),
        cmocka_unit_test(a_relay_carries_messages_up_to_the_bound_and_refuses_longer_ones),
        cmocka_unit_test(a_carrier_that_seldom_has_room_loses_nothing),
        cmocka_unit_test(relayed_waits_make_progress_and_are_ended_by_it),
        cmocka_unit_test(looking_for_life_keeps_early_messages),
        cmocka_unit_test(more_early_messages_than_a_relay_keeps_wait_in_the_carrier),
        cmocka_unit_test(a_message_that_waits_hides_no_heartbeat),
        cmocka_unit_test(relayed_heartbeats_are_at_most_four_a_second),
        cmocka_unit_test(a_heartbeat_without_room_is_not_waited_for),
        cmocka_unit_test(a_silent_relayed_peer_is_taken_for_dead),
        cmocka_unit_test(a_carrier_that_stays_full_times_out),
        cmocka_unit_test(relayed_last_words_become_the_sentence),
        cmocka_unit_test(an_end_behind_an_unheard_message_is_not_waited_for_for_ever),
        cmocka_unit_test(a_relayed_peer_that_closes_is_lost_at_once),
        cmocka_unit_test(a_carrier_that_breaks_ends_every_wait),
        cmocka_unit_test(leaving_a_relay_keeps_the_sentence_that_made_us_leave),
        cmocka_unit_test(garbage_is_refused_and_the_sender_is_told),
        cmocka_unit_test(a_full_frame_of_every_kind_does_no_harm),
        cmocka_unit_test(an_interruption_ends_every_relayed_wait),
        cmocka_unit_test(a_long_relayed_wait_sleeps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
