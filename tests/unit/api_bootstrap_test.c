/* SPDX-License-Identifier: BSD-3-Clause */
/* Bootstraps of the library: of the caller's own, threads, TCP; and ends that do not come. */
#include "support/ends.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- a bootstrap of the caller's own ---- */

enum { SLOTS = 4 };

/* One way of two: a few messages in memory. */
struct lane {
    pthread_mutex_t lock;
    char bytes[SLOTS][WEFT_MESSAGE_MAX];
    size_t lengths[SLOTS];
    unsigned first, count, calls, full, too_long;
    int broken; /* what receive returns, once empty */
};

struct lanes {
    struct lane *out, *in;
};

static int lane_publish(void *arg, const void *bytes, size_t length)
{
    struct lane *lane = ((struct lanes *)arg)->out;
    int status = 0;
    pthread_mutex_lock(&lane->lock);
    if (length > WEFT_MESSAGE_MAX) {
        lane->too_long++;
        status = -EMSGSIZE;
    } else if (lane->count == SLOTS || ++lane->calls % 3 == 0) {
        lane->full++;
        status = -EAGAIN;
    } else {
        unsigned slot = (lane->first + lane->count++) % SLOTS;
        memcpy(lane->bytes[slot], bytes, length);
        lane->lengths[slot] = length;
    }
    pthread_mutex_unlock(&lane->lock);
    return status;
}

static int lane_receive(void *arg, void *bytes, size_t room, size_t *length)
{
    struct lane *lane = ((struct lanes *)arg)->in;
    int got = 0;
    pthread_mutex_lock(&lane->lock);
    if (lane->count) {
        unsigned slot = lane->first++ % SLOTS;
        lane->first %= SLOTS;
        lane->count--;
        got = lane->lengths[slot] <= room ? 1 : -EMSGSIZE;
        *length = lane->lengths[slot];
        if (got == 1)
            memcpy(bytes, lane->bytes[slot], *length);
    } else {
        got = lane->broken;
    }
    pthread_mutex_unlock(&lane->lock);
    return got;
}

struct own {
    struct lane ways[2];
    struct lanes lanes[2];
    struct weft_bootstrap pair[2];
};

static struct own *open_own(void)
{
    struct own *own = calloc(1, sizeof *own);
    assert_non_null(own);
    for (unsigned i = 0; i < 2; i++) {
        pthread_mutex_init(&own->ways[i].lock, NULL);
        own->lanes[i] = (struct lanes){.out = &own->ways[i], .in = &own->ways[1 - i]};
        own->pair[i] = (struct weft_bootstrap){.size = 2,
                                               .index = i,
                                               .arg = &own->lanes[i],
                                               .publish = lane_publish,
                                               .receive = lane_receive};
    }
    return own;
}

static void close_own(struct own *own)
{
    for (int i = 0; i < 2; i++) {
        assert_int_equal(own->ways[i].too_long, 0);
        pthread_mutex_destroy(&own->ways[i].lock);
    }
    free(own);
}

static void a_bootstrap_of_the_callers_own_carries_a_test(void **state)
{
    static const char *const methods[] = {"ping-pong", "stream", "both ways"};
    (void)state;
    for (size_t i = 0; i < LENGTH(methods); i++) {
        const struct weft_params params = small("am", methods[i], "short");
        struct own *own = open_own();
        expect_good(&params, own->pair);
        assert_true(own->ways[0].full > 0 && own->ways[1].full > 0);
        close_own(own);
    }
}

static void a_bootstrap_of_the_callers_own_carries_a_verified_test(void **state)
{
    struct weft_params params = small("write", "stream", "short");
    struct own *own = open_own();
    (void)state;
    params.verify = 1;
    params.iterations = 50;
    expect_good(&params, own->pair);
    close_own(own);
}

static void a_bootstrap_of_the_callers_own_carries_one_test_after_the_other(void **state)
{
    const struct weft_params params = small("read", "stream", "bcopy");
    struct own *own = open_own();
    (void)state;
    for (int i = 0; i < 5; i++)
        expect_good(&params, own->pair);
    close_own(own);
}

static void a_bootstrap_of_the_callers_own_can_be_used_after_a_refusal(void **state)
{
    struct weft_params params = small("read", "stream", "short");
    struct own *own = open_own();
    struct end ends[2];
    (void)state;
    prepare(ends, &params, own->pair);
    expect_refused(ends, -EINVAL, "not for read");
    close_own(own);
}

static void an_end_that_never_answers_is_given_up_after_the_timeout(void **state)
{
    (void)state;
    for (int index = 0; index < 2; index++) {
        struct own *own = open_own();
        struct end end = {.params = small("am", "ping-pong", "short"),
                          .bootstrap = &own->pair[index]};
        double begin = seconds();
        end.params.timeout_ms = 300;
        run_end(&end);
        assert_int_equal(end.status, -ETIMEDOUT);
        assert_non_null(strstr(end.reason, index ? "client" : "server"));
        assert_true(seconds() - begin > 0.2 && seconds() - begin < 5);
        assert_null(end.result.histogram);
        close_own(own);
    }
}

static void a_bootstrap_without_room_is_given_up_after_the_timeout(void **state)
{
    struct own *own = open_own();
    struct end end = {.params = small("am", "ping-pong", "short"), .bootstrap = &own->pair[0]};
    double begin = seconds();
    (void)state;
    own->ways[0].count = SLOTS;
    end.params.timeout_ms = 300;
    run_end(&end);
    assert_int_equal(end.status, -ETIMEDOUT);
    assert_true(seconds() - begin > 0.2 && seconds() - begin < 5);
    close_own(own);
}

static void a_bootstrap_that_breaks_ends_the_test(void **state)
{
    struct own *own = open_own();
    struct end end = {.params = small("am", "ping-pong", "short"), .bootstrap = &own->pair[0]};
    double begin = seconds();
    (void)state;
    own->ways[1].broken = -ECONNRESET;
    run_end(&end);
    assert_int_equal(end.status, -ECONNRESET);
    assert_true(*end.reason);
    assert_true(seconds() - begin < 5);
    close_own(own);
}

static void a_bootstrap_that_is_none_is_refused(void **state)
{
    struct own *own = open_own();
    struct end end = {.params = small("am", "ping-pong", "short")};
    static const struct {
        unsigned size, index;
    } wrong[] = {{0, 0}, {1, 0}, {3, 0}, {2, 2}, {2, 7}};
    (void)state;
    for (size_t i = 0; i < LENGTH(wrong); i++) {
        struct weft_bootstrap bootstrap = own->pair[0];
        bootstrap.size = wrong[i].size;
        bootstrap.index = wrong[i].index;
        end.bootstrap = &bootstrap;
        run_end(&end);
        assert_int_equal(end.status, -EINVAL);
        assert_non_null(strstr(end.reason, "two ends"));
    }
    struct weft_bootstrap bootstrap = own->pair[0];
    bootstrap.publish = NULL;
    end.bootstrap = &bootstrap;
    run_end(&end);
    assert_int_equal(end.status, -EINVAL);
    assert_non_null(strstr(end.reason, "no publish or no receive"));
    bootstrap = own->pair[0];
    bootstrap.receive = NULL;
    run_end(&end);
    assert_int_equal(end.status, -EINVAL);
    close_own(own);
}

static void never_called(const struct weft_bootstrap pair[2])
{
    for (int index = 0; index < 2; index++) {
        struct end end = {.params = small("am", "ping-pong", "short"), .bootstrap = &pair[index]};
        double begin = seconds();
        end.params.timeout_ms = 300;
        run_end(&end);
        assert_true(end.status == -ETIMEDOUT || (index && end.status < 0));
        assert_true(seconds() - begin < 5);
    }
}

static void a_thread_that_never_comes_is_given_up_after_the_timeout(void **state)
{
    (void)state;
    with_threads(never_called);
}

/* ---- TCP ---- */

struct meeting {
    struct weft_bootstrap bootstrap;
    unsigned port;
    const char *secret_file, *allow;
    const volatile sig_atomic_t *stop;
    int status;
};

static void *listen_there(void *arg)
{
    struct meeting *m = arg;
    struct weft_tcp tcp;
    weft_tcp_init(&tcp);
    tcp.address = "127.0.0.1";
    tcp.port = m->port;
    tcp.secret_file = m->secret_file;
    tcp.allow = m->allow;
    tcp.stop = m->stop;
    m->status = m->secret_file ? weft_tcp_listen_with(&m->bootstrap, &tcp)
                               : weft_tcp_listen(&m->bootstrap, "127.0.0.1", m->port, NULL);
    return NULL;
}

static unsigned free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &length), 0);
    close(fd);
    return ntohs(address.sin_port);
}

static void two_ends_meet_over_tcp_and_run_one_test_after_the_other(void **state)
{
    struct meeting there = {.port = free_port()};
    struct weft_bootstrap pair[2];
    struct weft_params params = small("am", "ping-pong", "short");
    struct end ends[2];
    pthread_t thread;
    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, listen_there, &there), 0);
    int status = weft_tcp_dial(&pair[0], "127.0.0.1", there.port, 10000, NULL);
    pthread_join(thread, NULL);
    assert_int_equal(status, 0);
    assert_int_equal(there.status, 0);
    pair[1] = there.bootstrap;
    assert_int_equal(pair[0].index, 0);
    assert_int_equal(pair[1].index, 1);
    expect_good(&params, pair);
    params.layout = "long";
    prepare(ends, &params, pair);
    expect_refused(ends, -EINVAL, "layout is not known: \"long\"");
    params = small("read", "stream", "zcopy");
    params.device = NULL;
    expect_good(&params, pair);
    weft_close(&pair[0]);
    weft_close(&pair[1]);
}

/* ---- the secret ---- */

static char secrets[2][64];

static int make_secrets(void **state)
{
    static const char digits[] = "0123456789abcdef";
    (void)state;
    for (int i = 0; i < 2; i++) {
        snprintf(secrets[i], sizeof secrets[i], "/tmp/weft-secret-XXXXXX");
        int fd = mkstemp(secrets[i]);
        for (int at = 0; at < 64; at++)
            if (write(fd, &digits[(at + i) % 16], 1) != 1)
                return -1;
        close(fd);
    }
    return 0;
}

static int remove_secrets(void **state)
{
    (void)state;
    return unlink(secrets[0]) | unlink(secrets[1]);
}

static int dial_with(struct weft_bootstrap *bootstrap, unsigned port, const char *secret_file)
{
    struct weft_tcp tcp;
    weft_tcp_init(&tcp);
    tcp.address = "127.0.0.1";
    tcp.port = port;
    tcp.wait_ms = 10000;
    tcp.secret_file = secret_file;
    return weft_tcp_dial_with(bootstrap, &tcp);
}

static void two_ends_over_tcp_know_each_other_by_their_secret(void **state)
{
    struct meeting there = {.port = free_port(), .secret_file = secrets[0], .allow = "127.0.0.1"};
    struct weft_bootstrap pair[2];
    struct weft_params params = small("am", "ping-pong", "short");
    pthread_t thread;
    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, listen_there, &there), 0);
    assert_int_equal(dial_with(&pair[0], there.port, ""), -EACCES);
    assert_contains(weft_reason(), "requires a secret");
    assert_int_equal(dial_with(&pair[0], there.port, secrets[1]), -EACCES);
    assert_contains(weft_reason(), "another secret");
    setenv("WEFT_SECRET", secrets[0], 1);
    int status = dial_with(&pair[0], there.port, NULL);
    unsetenv("WEFT_SECRET");
    pthread_join(thread, NULL);
    assert_int_equal(status, 0);
    assert_int_equal(there.status, 0);
    pair[1] = there.bootstrap;
    expect_good(&params, pair);
    weft_close(&pair[0]);
    weft_close(&pair[1]);
}

static void what_is_wrong_with_a_struct_weft_tcp_is_said(void **state)
{
    struct weft_bootstrap bootstrap;
    struct weft_tcp tcp = {.port = 1};
    (void)state;
    assert_int_equal(weft_tcp_listen_with(&bootstrap, NULL), -EINVAL);
    assert_int_equal(weft_tcp_listen_with(&bootstrap, &tcp), -EINVAL);
    assert_contains(weft_reason(), "begin with weft_tcp_init");
    weft_tcp_init(&tcp);
    tcp.port = free_port();
    tcp.allow = "everybody";
    assert_int_equal(weft_tcp_listen_with(&bootstrap, &tcp), -EINVAL);
    assert_contains(weft_reason(), "allow: \"everybody\" is not an address or a network");
    tcp.allow = "";
    assert_int_equal(weft_tcp_listen_with(&bootstrap, &tcp), -EINVAL);
    tcp.allow = NULL;
    tcp.secret_file = "/nonexistent/secret";
    assert_int_equal(weft_tcp_listen_with(&bootstrap, &tcp), -ENOENT);
    assert_int_equal(dial_with(&bootstrap, tcp.port, "/dev/null"), -EACCES);
    assert_contains(weft_reason(), "is not a regular file");
}

static void a_port_that_is_none_or_where_nobody_listens_is_an_error(void **state)
{
    struct weft_bootstrap bootstrap;
    volatile sig_atomic_t stop = 1;
    (void)state;
    assert_int_equal(weft_tcp_listen(&bootstrap, "127.0.0.1", 65536, NULL), -EINVAL);
    assert_int_equal(weft_tcp_dial(&bootstrap, "127.0.0.1", 65536, 100, NULL), -EINVAL);
    assert_int_equal(weft_tcp_dial(&bootstrap, "127.0.0.1", 0, 100, NULL), -EINVAL);
    assert_true(weft_tcp_dial(&bootstrap, "127.0.0.1", free_port(), 100, NULL) < 0);
    assert_true(*weft_reason());
    assert_int_equal(weft_tcp_listen(&bootstrap, "127.0.0.1", free_port(), &stop), -EINTR);
    assert_int_equal(weft_tcp_dial(&bootstrap, "127.0.0.1", free_port(), 20000, &stop), -EINTR);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bootstrap_of_the_callers_own_carries_a_test),
        cmocka_unit_test(a_bootstrap_of_the_callers_own_carries_a_verified_test),
        cmocka_unit_test(a_bootstrap_of_the_callers_own_carries_one_test_after_the_other),
        cmocka_unit_test(a_bootstrap_of_the_callers_own_can_be_used_after_a_refusal),
        cmocka_unit_test(an_end_that_never_answers_is_given_up_after_the_timeout),
        cmocka_unit_test(a_bootstrap_without_room_is_given_up_after_the_timeout),
        cmocka_unit_test(a_bootstrap_that_breaks_ends_the_test),
        cmocka_unit_test(a_bootstrap_that_is_none_is_refused),
        cmocka_unit_test(a_thread_that_never_comes_is_given_up_after_the_timeout),
        cmocka_unit_test(two_ends_meet_over_tcp_and_run_one_test_after_the_other),
        cmocka_unit_test(two_ends_over_tcp_know_each_other_by_their_secret),
        cmocka_unit_test(what_is_wrong_with_a_struct_weft_tcp_is_said),
        cmocka_unit_test(a_port_that_is_none_or_where_nobody_listens_is_an_error),
    };
    return cmocka_run_group_tests(tests, make_secrets, remove_secrets);
}
