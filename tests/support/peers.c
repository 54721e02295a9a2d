/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/peers.h"
#include "core/clock.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/time.h>

volatile sig_atomic_t stop;

static void on_alarm(int number)
{
    stop = number;
}

void stop_after_ms(unsigned ms)
{
    struct sigaction action = {.sa_handler = on_alarm};
    struct itimerval timer = {.it_value = {.tv_usec = (suseconds_t)ms * 1000}};
    stop = 0;
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
}

void *act(void *arg)
{
    struct actor *actor = arg;
    actor->status = actor->act(actor);
    snprintf(actor->reason, sizeof actor->reason, "%s", fail_reason());
    return NULL;
}

void start(struct actor *actor)
{
    assert_int_equal(pthread_create(&actor->thread, NULL, act, actor), 0);
}

void join(struct actor *actor)
{
    pthread_join(actor->thread, NULL);
}

int act_swap(struct actor *actor)
{
    struct msg mine;
    int status = msg_print(&mine, "%s", actor->word);
    return status ? status : peer_swap(actor->peer, &mine, &actor->msg);
}

int act_meet(struct actor *actor)
{
    int status = 0;
    for (int i = 0; i < 100 && !status; i++)
        status = peer_barrier(actor->peer, actor->word, NULL, NULL);
    return status;
}

int act_hear(struct actor *actor)
{
    return peer_recv(actor->peer, &actor->msg, NULL, NULL);
}

int act_alive(struct actor *actor)
{
    int status = 0;
    while (!(status = peer_alive(actor->peer)))
        rest_ms(5);
    return status;
}

int act_fill(struct actor *actor)
{
    struct msg msg = {.length = MSG_MAX - 1};
    int status = 0;
    while (!status)
        status = peer_send(actor->peer, &msg);
    return status;
}

void print_msg(struct msg *msg, const char *text)
{
    assert_int_equal(msg_print(msg, "%s", text), 0);
}

struct channel *half_channel(int *other, uint64_t timeout_ms)
{
    const struct peer_terms terms = {.timeout_ms = timeout_ms};
    struct channel *channel;
    int fd[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
    assert_int_equal(channel_open(&channel, fd[0], PEER_SERVER, &terms), 0);
    *other = fd[1];
    return channel;
}

bool give(int fd, const char *bytes, size_t length)
{
    return send(fd, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)length;
}

void assert_carried(struct peer *pair[2], const struct msg *sent)
{
    struct msg got;
    memset(&got, 0x55, sizeof got);
    assert_int_equal(peer_send(pair[0], sent), 0);
    assert_int_equal(peer_recv(pair[1], &got, NULL, NULL), 0);
    assert_int_equal(got.length, sent->length);
    assert_memory_equal(got.bytes, sent->bytes, sent->length);
    assert_int_equal(got.bytes[got.length], 0);
}

void assert_sending_times_out(struct peer *peer)
{
    struct actor client = {.peer = peer, .act = act_fill};
    uint64_t since_ms = clock_ms();
    act(&client);
    assert_int_equal(client.status, -ETIMEDOUT);
    assert_contains(client.reason, "no sign of life for 0.2 s");
    assert_in_range(clock_ms() - since_ms, SHORT_MS, BOUND_MS);
}

int answer_after_a_while(void *arg)
{
    struct spinning *spinning = arg;
    struct msg msg;
    if (++spinning->calls != 3000)
        return 0;
    int status = msg_print(&msg, "meet=here\n");
    return status ? status : peer_send(spinning->other, &msg);
}

/* ---- over TCP ---- */

char warnings[WARNINGS];
static pthread_mutex_t warnings_lock = PTHREAD_MUTEX_INITIALIZER;

static void collect(const char *sentence)
{
    pthread_mutex_lock(&warnings_lock);
    size_t used = strlen(warnings);
    snprintf(warnings + used, sizeof warnings - used, "%s\n", sentence);
    pthread_mutex_unlock(&warnings_lock);
}

const struct peer_terms patient = {.timeout_ms = LONG_MS, .stop = &stop};

int begin_tcp(void **state)
{
    (void)state;
    warnings[0] = '\0';
    stop = 0;
    warn_to(collect);
    return 0;
}

int end_tcp(void **state)
{
    (void)state;
    warn_to(NULL);
    return 0;
}

struct listener *listen_at(const char *address)
{
    struct listener *listener;
    if (tcp_listen(&listener, address, 0, &patient))
        fail_msg("%s", fail_reason());
    assert_in_range(tcp_port(listener), 1, 65535);
    return listener;
}

/* The other end's answer to a greeting: its status and reason are the dialling's. */
static void hear_answer(struct dialling *d)
{
    struct msg answer;
    if (d->status)
        return;
    d->status = peer_recv(d->peer, &answer, NULL, NULL);
    snprintf(d->reason, sizeof d->reason, "%s", fail_reason());
    peer_close(d->peer);
}

static void *dial_and_greet(void *arg)
{
    struct dialling *d = arg;
    struct peer_terms terms = patient;
    struct msg greeting;
    if (d->first) {
        dial_and_greet(d->first);
        hear_answer(d->first);
    }
    terms.secret = d->secret;
    terms.stop = NULL; /* that is for the other end */
    d->status = tcp_dial(&d->peer, d->address, d->port, LONG_MS, &terms);
    if (!d->status)
        d->status = msg_print(&greeting, "%s", d->word);
    if (!d->status)
        d->status = peer_send(d->peer, &greeting);
    snprintf(d->reason, sizeof d->reason, "%s", fail_reason());
    return NULL;
}

struct dialling begin_dialling(const char *address, unsigned port, const char *word)
{
    return (struct dialling){.address = address, .port = port, .word = word};
}

void start_dialling(struct dialling *d)
{
    assert_int_equal(pthread_create(&d->thread, NULL, dial_and_greet, d), 0);
}

struct peer *end_dialling(struct dialling *d)
{
    pthread_join(d->thread, NULL);
    if (d->status)
        fail_msg("%s", d->reason);
    return d->peer;
}
