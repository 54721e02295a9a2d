/* SPDX-License-Identifier: BSD-3-Clause */
/* Who is at the other end of a TCP connection: ends with a secret, with another one and with none;
 * addresses that may connect; and ends that are alive and do nothing. */
#include "core/clock.h"
#include "peer/names.h"
#include "support/peers.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const struct secret ours = {{1, 2, 3}}, another = {{1, 2, 4}};

/* ---- the secret ---- */

/* A server with this secret takes the next client that it can. */
static struct peer *accept_with(struct listener *listener, const struct secret *secret,
                                const char *word)
{
    struct peer_terms terms = patient;
    struct peer *peer;
    struct msg greeting;
    terms.secret = secret;
    if (tcp_accept(listener, &terms, &peer, &greeting))
        fail_msg("%s", fail_reason());
    assert_string_equal(greeting.bytes, word);
    return peer;
}

static void assert_answered(struct peer *client, struct peer *server, const char *word)
{
    struct msg msg;
    print_msg(&msg, word);
    assert_int_equal(peer_send(server, &msg), 0);
    print_msg(&msg, "?");
    assert_int_equal(peer_recv(client, &msg, NULL, NULL), 0);
    assert_string_equal(msg.bytes, word);
}

static void ends_with_one_secret_trust_each_other_and_others_do_not(void **state)
{
    static const struct secret *const secrets[] = {&ours, NULL};
    (void)state;
    for (size_t i = 0; i < LENGTH(secrets); i++) {
        struct listener *listener = listen_at("127.0.0.1");
        struct dialling d = begin_dialling("127.0.0.1", tcp_port(listener), "hello");
        d.secret = secrets[i];
        start_dialling(&d);
        struct peer *server = accept_with(listener, secrets[i], "hello");
        struct peer *client = end_dialling(&d);
        assert_false(client->trusted); /* the server has not shown anything yet */
        assert_answered(client, server, "yes");
        assert_int_equal(client->trusted, secrets[i] != NULL);
        assert_int_equal(server->trusted, secrets[i] != NULL);
        for (int times = 0; times < 3; times++) {
            assert_answered(client, server, "there");
            assert_answered(server, client, "and back");
        }
        assert_string_equal(warnings, "");
        assert_int_equal(server->quiet_ms, PEER_QUIET_MS);
        assert_int_equal(client->quiet_ms, 0);
        peer_end(server, -EIO, "broken");
        struct msg msg;
        assert_int_equal(peer_recv(client, &msg, NULL, NULL), -EREMOTEIO);
        assert_string_equal(fail_reason(), "the server says: broken");
        peer_close(client);
        peer_close(server);
        tcp_close(listener);
    }
}

/* What a client that is not let in hears, and what its server says. */
static void refused_with(const struct secret *server_has, const struct secret *client_has,
                         const char *reason, const char *warning)
{
    struct listener *listener = listen_at("127.0.0.1");
    struct dialling d = begin_dialling("127.0.0.1", tcp_port(listener), "let me in");
    struct dialling real = begin_dialling("127.0.0.1", tcp_port(listener), "real");
    d.secret = client_has;
    real.secret = server_has;
    real.first = &d;
    start_dialling(&real);
    struct peer *server = accept_with(listener, server_has, "real");
    struct peer *client = end_dialling(&real);
    assert_int_equal(d.status, -EACCES);
    assert_string_equal(d.reason, reason);
    assert_contains(warnings, "ignored a connection from 127.0.0.1 port ");
    assert_contains(warnings, warning);
    peer_close(client);
    peer_close(server);
    tcp_close(listener);
}

static void a_client_without_the_secret_hears_that_one_is_required(void **state)
{
    (void)state;
    refused_with(&ours, NULL, "the server requires a secret: name its file in WEFT_SECRET",
                 "it has no secret, and one is required");
}

static void a_client_with_another_secret_is_refused(void **state)
{
    (void)state;
    refused_with(&ours, &another, "the server holds another secret than this end",
                 "it holds another secret");
}

static void a_client_with_a_secret_wants_a_server_that_has_it(void **state)
{
    (void)state;
    refused_with(NULL, &ours,
                 "the server has no secret: start it with this end's, or leave that out",
                 "the client says: the server has no secret");
}

/* ---- addresses ---- */

static bool lets_in(const char *list, const char *address)
{
    struct allow allow;
    struct sockaddr_in6 six = {.sin6_family = AF_INET6};
    struct sockaddr_in four = {.sin_family = AF_INET};
    if (allow_parse(&allow, list, "--allow"))
        fail_msg("%s", fail_reason());
    if (inet_pton(AF_INET, address, &four.sin_addr) == 1)
        return names_allowed(&allow, (struct sockaddr *)&four);
    assert_int_equal(inet_pton(AF_INET6, address, &six.sin6_addr), 1);
    return names_allowed(&allow, (struct sockaddr *)&six);
}

static void networks_hold_their_addresses_and_no_others(void **state)
{
    static const struct {
        const char *list, *in, *out;
    } cases[] = {{"10.0.0.0/8", "10.255.0.1", "11.0.0.1"},
                 {"10.0.0.0/8", "::ffff:10.1.2.3", "::ffff:11.1.2.3"},
                 {"192.168.7.9", "192.168.7.9", "192.168.7.8"},
                 {"192.168.7.9/32", "192.168.7.9", "192.168.7.11"},
                 {"172.16.0.0/12", "172.31.255.255", "172.32.0.0"},
                 {"0.0.0.0/0", "203.0.113.7", "::1"},
                 {"::/0", "fe80::1", "203.0.113.7"},
                 {"::/0", "::1", "::ffff:203.0.113.7"},
                 {"::1", "::1", "::2"},
                 {"fe80::/10", "febf::1", "fec0::1"},
                 {"2001:db8::/33", "2001:db8:7fff::1", "2001:db8:8000::1"},
                 {"::ffff:10.0.0.0/104", "10.9.9.9", "11.9.9.9"},
                 {"127.0.0.1,::1,10.0.0.0/8", "10.0.0.1", "127.0.0.2"},
                 {"127.0.0.1,::1,10.0.0.0/8", "::1", "::"}};
    (void)state;
    for (size_t i = 0; i < LENGTH(cases); i++)
        if (!lets_in(cases[i].list, cases[i].in) || lets_in(cases[i].list, cases[i].out))
            fail_msg("%s: %s, %s", cases[i].list, cases[i].in, cases[i].out);
}

static void what_is_no_list_of_networks_is_refused(void **state)
{
    static const char *const lists[] = {
        "",          ",",         "10.0.0.0/8,", ",10.0.0.0/8", "10.0.0.0/33",  "::/129",
        "10.0.0",    "10.0.0.0/", "10.0.0.0/-1", "10.0.0.0/8x", "localhost",    "10.0.0.256",
        "10.0.0.1 ", "/8",        "fe80::1%lo",  "10.0.0.0//8", "10.0.0.0/8/8", "*",
        "1.2.3.4;5", "::1/1e1",   "0x0a.0.0.0",  "10.0.0.0/08 "};
    static const char one[] = "10.0.0.1,";
    char many[sizeof one * (ALLOW_MAX + 1)];
    struct allow allow;
    (void)state;
    for (size_t i = 0; i < LENGTH(lists); i++) {
        if (allow_parse(&allow, lists[i], "--allow") != -EINVAL)
            fail_msg("\"%s\" was taken", lists[i]);
        assert_contains(fail_reason(), "--allow: \"");
        assert_contains(fail_reason(), "is not an address or a network");
    }
    for (size_t i = 0; i <= ALLOW_MAX; i++)
        snprintf(many + i * strlen(one), sizeof one, "%s", one);
    assert_int_equal(allow_parse(&allow, many, "--allow"), -EINVAL);
    assert_contains(fail_reason(), "more than 64 networks");
}

static void addresses_that_are_not_allowed_are_dropped_and_said_a_few_times(void **state)
{
    struct listener *listener = listen_at("");
    struct peer_terms terms = patient;
    struct peer *peer;
    struct msg msg;
    struct allow allow;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(tcp_port(listener) & 0xffff)};
    int fds[40], lines = 0;
    (void)state;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(allow_parse(&allow, "10.0.0.0/8,::1", "--allow"), 0);
    terms.allow = &allow;
    for (size_t i = 0; i < LENGTH(fds); i++) {
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(connect(fds[i], (struct sockaddr *)&to, sizeof to), 0);
        if (i % 10 == 9) { /* the backlog is short */
            stop_after_ms(50);
            assert_int_equal(tcp_accept(listener, &terms, &peer, &msg), -EINTR);
            stop = 0;
        }
    }
    for (size_t i = 0; i < LENGTH(fds); i++) {
        char byte;
        assert_true(recv(fds[i], &byte, 1, MSG_DONTWAIT) == 0);
        close(fds[i]);
    }
    assert_contains(warnings, "ignored a connection from 127.0.0.1 port ");
    assert_contains(warnings, "its address is not allowed");
    for (const char *at = warnings; (at = strchr(at, '\n')); at++)
        lines++;
    assert_in_range(lines, 1, 12);
    tcp_close(listener);
}

/* ---- ends that are alive and do nothing ---- */

enum { BEATING_MS = 20, QUIET_MS = 3 * SHORT_MS, WATCH_MS = 5 * SHORT_MS };

/* A heartbeat with so much done. */
static void give_beat(int fd, unsigned done)
{
    char beat[FRAME_HEAD + BEAT_DIGITS + 1];
    snprintf(beat, sizeof beat, "WEFT02 B 000010\n%016x", done);
    assert_true(give(fd, beat, sizeof beat - 1));
}

/* Looks at an end that beats for a while, and does more each time by step; we do, too, if busy. */
static int watch(unsigned step, bool busy, bool sends)
{
    int other, status = 0;
    struct channel *channel = half_channel(&other, LONG_MS);
    unsigned done = 7;
    channel->peer.quiet_ms = QUIET_MS;
    for (uint64_t since_ms = clock_ms(); !status && clock_ms() - since_ms < WATCH_MS;) {
        struct msg msg;
        give_beat(other, done += step);
        if (busy)
            peer_progress(&channel->peer);
        if (sends)
            assert_true(give(other, "WEFT02 D 000002\nhi", FRAME_HEAD + 2));
        status = sends ? peer_recv(&channel->peer, &msg, NULL, NULL) : peer_alive(&channel->peer);
        rest_ms(BEATING_MS);
    }
    channel_close(channel);
    close(other);
    return status;
}

static void an_end_that_only_beats_is_given_up(void **state)
{
    (void)state;
    assert_int_equal(watch(0, false, false), -ETIMEDOUT);
    assert_string_equal(fail_reason(), "the client made no progress for 0.6 s");
}

static void progress_of_either_end_and_messages_keep_it(void **state)
{
    (void)state;
    assert_int_equal(watch(1, false, false), 0);
    assert_int_equal(watch(0, true, false), 0);
    assert_int_equal(watch(0, false, true), 0);
}

static void heartbeats_say_how_much_is_done(void **state)
{
    const struct peer_terms terms = {.timeout_ms = LONG_MS};
    struct peer *pair[2];
    (void)state;
    assert_int_equal(peer_threads(pair, &terms), 0);
    pair[PEER_SERVER]->quiet_ms = QUIET_MS;
    int status = 0;
    for (uint64_t since_ms = clock_ms(); !status && clock_ms() - since_ms < WATCH_MS;) {
        assert_int_equal(peer_step(pair[PEER_CLIENT]), 0);
        status = peer_alive(pair[PEER_SERVER]);
        rest_ms(BEATING_MS);
    }
    assert_int_equal(status, 0);
    peer_close(pair[0]);
    peer_close(pair[1]);
}

/* One that sends heartbeats as fast as it can, for a while. */
struct flood {
    int fd;
    uint64_t until_ms;
};

static void *send_flood(void *arg)
{
    struct flood *flood = arg;
    static const char beat[] = "WEFT02 B 000010\n0000000000000000";
    char beats[256 * (sizeof beat - 1)];
    for (size_t at = 0; at < sizeof beats; at += strlen(beat))
        memcpy(beats + at, beat, strlen(beat));
    while (clock_ms() < flood->until_ms && send(flood->fd, beats, sizeof beats, MSG_NOSIGNAL) > 0)
        ;
    return NULL;
}

static void a_flood_of_heartbeats_keeps_nobody(void **state)
{
    struct flood flood = {.until_ms = clock_ms() + BOUND_MS};
    pthread_t thread;
    struct msg msg;
    (void)state;
    struct channel *channel = half_channel(&flood.fd, LONG_MS);
    channel->peer.stop = &stop;
    stop = 0;
    assert_int_equal(pthread_create(&thread, NULL, send_flood, &flood), 0);
    uint64_t since_ms = clock_ms();
    for (int i = 0; i < 1000; i++)
        assert_int_equal(peer_alive(&channel->peer), 0);
    stop_after_ms(100);
    assert_int_equal(peer_recv(&channel->peer, &msg, NULL, NULL), -EINTR);
    stop = 0;
    channel->peer.quiet_ms = SHORT_MS;
    assert_int_equal(peer_recv(&channel->peer, &msg, NULL, NULL), -ETIMEDOUT);
    uint64_t took_ms = clock_ms() - since_ms;
    channel_close(channel);
    pthread_join(thread, NULL);
    close(flood.fd);
    assert_in_range(took_ms, 0, BOUND_MS - 1000);
}

#define TCP_TEST(name) cmocka_unit_test_setup_teardown(name, begin_tcp, end_tcp)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TCP_TEST(ends_with_one_secret_trust_each_other_and_others_do_not),
        TCP_TEST(a_client_without_the_secret_hears_that_one_is_required),
        TCP_TEST(a_client_with_another_secret_is_refused),
        TCP_TEST(a_client_with_a_secret_wants_a_server_that_has_it),
        cmocka_unit_test(networks_hold_their_addresses_and_no_others),
        cmocka_unit_test(what_is_no_list_of_networks_is_refused),
        TCP_TEST(addresses_that_are_not_allowed_are_dropped_and_said_a_few_times),
        cmocka_unit_test(an_end_that_only_beats_is_given_up),
        cmocka_unit_test(progress_of_either_end_and_messages_keep_it),
        cmocka_unit_test(heartbeats_say_how_much_is_done),
        cmocka_unit_test(a_flood_of_heartbeats_keeps_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
