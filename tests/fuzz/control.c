/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzzes the control protocol: what a stranger may send to a port, and to an end that has greeted,
 * over a stream and as whole messages. Nothing here waits. */
#include "fuzz/feed.h"
#include "peer/channel.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

unsigned fuzz_accepted;

static const struct peer_terms terms = {.timeout_ms = 60000};

static void look_at(const struct msg *msg)
{
    char value[64];
    uint64_t number;
    fuzz_accepted++;
    msg_value(msg, "why", value, sizeof value);
    msg_number(msg, "code", &number);
}

/* At a port, with or without a secret, nonces come first. */
static void stream(const uint8_t *data, size_t size, char kind, const struct secret *secret)
{
    struct channel *channel;
    struct msg msg;
    int fd[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd))
        return;
    if (write(fd[1], data, size) < 0 || channel_open(&channel, fd[0], PEER_SERVER, &terms)) {
        close(fd[1]);
        return;
    }
    shutdown(fd[1], SHUT_WR);
    bool greeted = kind != FRAME_GREETING;
    if (!greeted && !hello_begin(channel, secret))
        greeted = hello_ready(channel) == 1;
    for (int i = 0; i < 64 && greeted && channel_ready(channel, kind) == 1; i++) {
        channel_take(channel, &msg);
        look_at(&msg);
    }
    peer_alive(&channel->peer);
    channel_close(channel);
    close(fd[1]);
}

static int publish(void *arg, const void *bytes, size_t length)
{
    (void)arg;
    (void)bytes;
    (void)length;
    return 0;
}

/* Messages: a length in two bytes, and as many bytes as there are. */
static int receive(void *arg, void *bytes, size_t room, size_t *length)
{
    struct feed *feed = arg;
    if (feed->left < 2)
        return -ECONNRESET;
    size_t wanted = (size_t)next_bytes(feed, 2);
    size_t here = wanted < feed->left ? wanted : feed->left;
    memcpy(bytes, feed->data, here < room ? here : room);
    feed->data += here;
    feed->left -= here;
    *length = here;
    return 1;
}

static void messages(const uint8_t *data, size_t size)
{
    struct feed feed = {data, size};
    struct peer_carrier carrier = {.arg = &feed, .publish = publish, .receive = receive};
    struct peer *peer;
    struct msg msg;
    if (peer_relay(&peer, &carrier, PEER_CLIENT, &terms))
        return;
    for (int i = 0; i < 64 && !peer_recv(peer, &msg, NULL, NULL); i++)
        look_at(&msg);
    peer_alive(peer);
    peer_close(peer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct secret secret = {{1}};
    stream(data, size, FRAME_GREETING, NULL);
    stream(data, size, FRAME_GREETING, &secret);
    stream(data, size, FRAME_DATA, NULL);
    messages(data, size);
    return 0;
}
