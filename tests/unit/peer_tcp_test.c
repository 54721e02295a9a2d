/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers over TCP: names and addresses, waits that end, and strangers at the listening port. */
#include "core/clock.h"
#include "support/peers.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* A port nobody listens on. */
static unsigned free_port(void)
{
    struct listener *listener = listen_at("");
    unsigned port = tcp_port(listener);
    tcp_close(listener);
    return port;
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

/* A client and a server that have met. */
struct met {
    struct peer *client, *server;
};

static struct met meet(struct listener *listener, const char *address, const char *word)
{
    struct dialling d = begin_dialling(address, tcp_port(listener), word);
    start_dialling(&d);
    struct peer *server = accept_greeting(listener, word);
    return (struct met){.client = end_dialling(&d), .server = server};
}

static void part(struct met *met)
{
    peer_close(met->client);
    peer_close(met->server);
}

/* Greeting, an answer, and a question back. */
static void check_connection(const char *listen_on, const char *dial)
{
    struct listener *listener = listen_at(listen_on);
    struct met met = meet(listener, dial, "hello");
    struct peer *client = met.client, *server = met.server;
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
        struct met met = meet(listener, "127.0.0.1", "hello");
        assert_string_equal(met.client->here, "127.0.0.1");
        assert_string_equal(met.server->here, "127.0.0.1");
        part(&met);
        tcp_close(listener);
    }
}

static void tcp_takes_one_client_after_another(void **state)
{
    struct listener *listener = listen_at("127.0.0.1");
    struct dialling clients[3];
    struct peer *servers[3];
    (void)state;
    for (size_t i = 0; i < LENGTH(clients); i++) {
        clients[i] = begin_dialling("127.0.0.1", tcp_port(listener), "hello");
        start_dialling(&clients[i]);
    }
    for (size_t i = 0; i < LENGTH(servers); i++)
        servers[i] = accept_greeting(listener, "hello");
    for (size_t i = 0; i < LENGTH(servers); i++) {
        peer_close(end_dialling(&clients[i]));
        peer_close(servers[i]);
    }
    tcp_close(listener);
}

/* In place of the C library's: how often somebody slept and nothing came. */
static _Atomic unsigned slept_in_vain;

int poll(struct pollfd *fds, nfds_t count, int most_ms)
{
    struct timespec most = {.tv_sec = most_ms / 1000, .tv_nsec = most_ms % 1000 * 1000000L};
    int got = ppoll(fds, count, most_ms < 0 ? NULL : &most, NULL);
    slept_in_vain += got == 0 && most_ms;
    return got;
}

struct interjection {
    struct peer *from;
    unsigned looks;
};

/* Between the first read of a wait and the second. */
static int interject(void *arg)
{
    struct interjection *i = arg;
    struct msg msg;
    return ++i->looks == 2 ? msg_print(&msg, "now") || peer_send(i->from, &msg) : 0;
}

static void a_message_that_comes_between_two_looks_is_not_slept_upon(void **state)
{
    struct listener *listener = listen_at("127.0.0.1");
    struct met met = meet(listener, "127.0.0.1", "hello");
    struct interjection interjection = {.from = met.client};
    struct msg msg;
    (void)state;
    met.server->watch = (struct peer_watch){interject, &interjection};
    slept_in_vain = 0;
    assert_int_equal(peer_recv(met.server, &msg, NULL, NULL), 0);
    assert_string_equal(msg.bytes, "now");
    assert_int_equal(slept_in_vain, 0);
    part(&met);
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
    struct dialling early = begin_dialling("127.0.0.1", late.port, "early");
    start_dialling(&early);
    pthread_join(thread, NULL);
    assert_int_equal(late.status, 0);
    peer_close(accept_greeting(late.listener, "early"));
    peer_close(end_dialling(&early));
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

/* After so many looks. */
static int fails_later(void *arg)
{
    int *left = arg;
    return (*left)-- > 0 ? 0 : fail(-ENOSPC, "another pair has no room");
}

/* A port whose listener takes no more connections: who dials it hears nothing. */
static unsigned full_port(int sockets[4])
{
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof here;
    for (int i = 0; i < 4; i++)
        sockets[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_int_equal(bind(sockets[0], (struct sockaddr *)&here, length), 0);
    assert_int_equal(listen(sockets[0], 0), 0);
    assert_int_equal(getsockname(sockets[0], (struct sockaddr *)&here, &length), 0);
    for (int i = 1; i < 4; i++)
        assert_true(connect(sockets[i], (struct sockaddr *)&here, length) == 0 ||
                    errno == EINPROGRESS);
    return ntohs(here.sin_port);
}

static void a_watch_that_fails_ends_dialling_and_says_why(void **state)
{
    int sockets[4];
    unsigned ports[] = {free_port(), full_port(sockets)};
    (void)state;
    for (size_t i = 0; i < LENGTH(ports); i++) {
        struct peer *peer = NULL;
        int left = 2;
        struct peer_terms terms = patient;
        terms.watch = (struct peer_watch){fails_later, &left};
        assert_int_equal(tcp_dial(&peer, "127.0.0.1", ports[i], BOUND_MS, &terms), -ENOSPC);
        assert_string_equal(fail_reason(), "another pair has no room");
        assert_null(peer);
    }
    for (int i = 0; i < 4; i++)
        close(sockets[i]);
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
    struct dialling real = begin_dialling("127.0.0.1", tcp_port(listener), "real");
    struct peer *peer = NULL;
    struct rlimit before, none;
    struct msg msg;
    (void)state;
    start_dialling(&real);
    rest_ms(100); /* it needs a descriptor, too */
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
    assert_int_equal(count_of(warnings, "a connection cannot be accepted now: "), 1);
    assert_in_range(used_ms, 0, 200);
    peer_close(accept_greeting(listener, "real"));
    peer_close(end_dialling(&real));
    tcp_close(listener);
}

static void strangers_are_warned_of_and_a_real_client_gets_through(void **state)
{
    static const struct {
        const char *bytes, *warning;
    } cases[] = {{"", "closed the connection before greeting"},
                 {"WEFT", "closed the connection before greeting"},
                 {"WEFT02 H 000010\nhalf", "closed the connection before greeting"},
                 {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "does not speak Weft's protocol"},
                 {"\026\003\001\002", "does not speak Weft's protocol"},
                 {"WEFT02 D ffffff\n", "announced a message of 16777215 bytes"},
                 {"WEFT02 H ffffff\n", "announced a message of 16777215 bytes"},
                 {"WEFT01 H 000000\n", "speaks version 01 of the protocol"},
                 {"WEFT02 D 000002\nhi", "sent a message out of turn"},
                 {"WEFT02 H 000002\nhi", "sent a message out of turn"},
                 {"WEFT02 R 00000f\nsecret required", "sent a message out of turn"},
                 {"WEFT02 B 000010\n0000000000000000", "sent a message out of turn"},
                 {"WEFT02 N 000002\nhi", "nonce cannot be read"},
                 {"WEFT02 N 00000f\nnonce=\nsecret=0", "nonce cannot be read"},
                 {"WEFT02 E 000000\n", "left with a message that cannot be read"}};
    (void)state;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct listener *listener = listen_at("127.0.0.1");
        warnings[0] = '\0';
        int fd = stranger(tcp_port(listener));
        assert_true(give(fd, cases[i].bytes, strlen(cases[i].bytes)));
        shutdown(fd, SHUT_WR);
        struct met met = meet(listener, "127.0.0.1", "real");
        assert_contains(warnings, "ignored a connection from 127.0.0.1 port ");
        assert_contains(warnings, cases[i].warning);
        close(fd);
        part(&met);
        tcp_close(listener);
    }
}

static void a_stranger_that_waits_is_told_why_it_is_refused(void **state)
{
    struct listener *listener = listen_at("127.0.0.1");
    int fd = stranger(tcp_port(listener));
    char answer[512] = "";
    (void)state;
    assert_true(give(fd, "WEFT01 H 000000\n", FRAME_HEAD));
    struct met met = meet(listener, "127.0.0.1", "real");
    assert_true(recv(fd, answer, sizeof answer - 1, MSG_DONTWAIT) > FRAME_HEAD);
    assert_memory_equal(answer, "WEFT02 E ", 9);
    assert_contains(answer, "speaks version 01 of the protocol, this is version 02");
    close(fd);
    part(&met);
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

/* A client that does not wait for the server's nonce: without a secret it need not. */
static const char slow_nonce[] =
    "EFT02 N 000050\n"
    "nonce=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\nsecret=0\n"
    "WEFT02 H 000004\nslow";

static void a_slow_client_keeps_nobody_waiting_and_gets_its_turn(void **state)
{
    struct listener *listener = listen_at("127.0.0.1");
    struct drip drip = {.fd = stranger(tcp_port(listener)), .bytes = slow_nonce};
    pthread_t thread;
    (void)state;
    assert_true(give(drip.fd, "W", 1));
    struct met met = meet(listener, "127.0.0.1", "real");
    assert_int_equal(pthread_create(&thread, NULL, send_byte_by_byte, &drip), 0);
    struct peer *slow = accept_greeting(listener, "slow");
    pthread_join(thread, NULL);
    assert_string_equal(warnings, "");
    close(drip.fd);
    peer_close(slow);
    part(&met);
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
    struct dialling real = begin_dialling("127.0.0.1", tcp_port(a.listener), "real");
    start_dialling(&real);
    struct peer *client = end_dialling(&real);
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
    struct dialling real = begin_dialling("127.0.0.1", tcp_port(a.listener), "real");
    start_dialling(&real);
    struct peer *client = end_dialling(&real);
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
    struct met met = meet(silent.listener, "127.0.0.1", "real");
    assert_contains(warnings, "it did not greet within 5 s");
    assert_true(recv(silent.fd, &byte, 1, MSG_DONTWAIT) == 0);
    close(silent.fd);
    part(&met);
    tcp_close(silent.listener);
}

#define TCP_TEST(name) cmocka_unit_test_setup_teardown(name, begin_tcp, end_tcp)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TCP_TEST(tcp_connects_over_ipv4),
        TCP_TEST(tcp_listens_on_every_address_and_takes_names),
        TCP_TEST(tcp_connects_over_ipv6),
        TCP_TEST(tcp_ends_know_their_own_numeric_address),
        TCP_TEST(tcp_takes_one_client_after_another),
        TCP_TEST(a_message_that_comes_between_two_looks_is_not_slept_upon),
        TCP_TEST(tcp_port_in_use_is_said),
        TCP_TEST(tcp_listening_on_an_address_of_another_machine_is_refused),
        TCP_TEST(tcp_dialling_nobody_is_refused_after_the_wait),
        TCP_TEST(tcp_dialling_waits_for_a_server_that_is_not_up_yet),
        TCP_TEST(tcp_dialling_a_name_that_does_not_exist_says_so),
        TCP_TEST(an_interruption_ends_dialling_and_accepting),
        TCP_TEST(a_watch_that_fails_ends_dialling_and_says_why),
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
