/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames over a stream socket: messages, heartbeats, and the final message of an end that leaves.
 * Everything read here comes from outside: every length is checked before it is used. */
#include "peer/channel.h"
#include "core/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct channel *of(struct peer *peer)
{
    return (struct channel *)peer;
}

/* ---- out ---- */

static int send_all(struct channel *c, const void *bytes, size_t length)
{
    const char *at = bytes;
    uint64_t since_ms = clock_ms();
    while (length) {
        ssize_t n = send(c->fd, at, length, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n >= 0) {
            at += n;
            length -= (size_t)n;
            since_ms = clock_ms();
            continue;
        }
        if (errno != EAGAIN && errno != EINTR)
            return life_lost(&c->peer);
        if (clock_ms() - since_ms > c->peer.timeout_ms)
            return life_silent(&c->peer);
        int status = life_interrupted(&c->peer);
        if (status)
            return status;
        struct pollfd room = {.fd = c->fd, .events = POLLOUT};
        poll(&room, 1, 50);
    }
    c->told_ms = clock_ms();
    return 0;
}

int channel_frame(struct channel *c, char kind, const void *bytes, size_t length)
{
    char frame[FRAME_HEAD + MSG_MAX + FRAME_CODE];
    char head[FRAME_HEAD + 1];
    size_t whole = FRAME_HEAD + length;
    snprintf(head, sizeof head, "WEFT%02u %c %06x\n", PROTOCOL % 100U, kind,
             (unsigned)length & 0xffffffU);
    memcpy(frame, head, FRAME_HEAD);
    memcpy(frame + FRAME_HEAD, bytes, length);
    if (c->ours.on && kind != FRAME_REFUSAL) {
        hello_seal(c, frame, whole, (unsigned char *)frame + whole);
        whole += FRAME_CODE;
    }
    return send_all(c, frame, whole);
}

static int send_beat(struct channel *c)
{
    char done[BEAT_DIGITS + 1];
    snprintf(done, sizeof done, "%016" PRIx64, c->our_done);
    return channel_frame(c, FRAME_BEAT, done, BEAT_DIGITS);
}

/* ---- in ---- */

/* Parses the head at that place: 1 with kind and length if it is complete, 0 if not yet, -EPROTO if
 * it is not a Weft frame. */
static int parse_head(const struct channel *c, size_t at, char *kind, size_t *length)
{
    static const char shape[] = "WEFT";
    size_t have = c->have - at < FRAME_HEAD ? c->have - at : FRAME_HEAD;
    const char *in = c->in + at;
    if (memcmp(in, shape, have < 4 ? have : 4) != 0)
        return fail(-EPROTO, "the other end does not speak Weft's protocol");
    if (have < FRAME_HEAD)
        return 0;
    char hex[7] = {0};
    memcpy(hex, in + 9, 6);
    if (in[6] != ' ' || in[8] != ' ' || in[15] != '\n' || strspn(hex, "0123456789abcdef") != 6)
        return fail(-EPROTO, "the other end does not speak Weft's protocol");
    if (in[4] != '0' + PROTOCOL / 10 || in[5] != '0' + PROTOCOL % 10)
        return fail(-EPROTO, "the %s speaks version %.2s of the protocol, this is version %02d",
                    c->peer.other, in + 4, PROTOCOL);
    *kind = in[7];
    *length = strtoul(hex, NULL, 16);
    if (*length >= MSG_MAX)
        return fail(-EPROTO, "the %s announced a message of %zu bytes, the limit is %d",
                    c->peer.other, *length, MSG_MAX - 1);
    return 1;
}

/* What a heartbeat says, if it is news, is progress. */
static int note_beat(struct channel *c, const char *bytes, size_t length)
{
    char digits[BEAT_DIGITS + 1] = {0};
    memcpy(digits, bytes, length < BEAT_DIGITS ? length : BEAT_DIGITS);
    if (length != BEAT_DIGITS || strspn(digits, "0123456789abcdef") != BEAT_DIGITS)
        return fail(-EPROTO, "the %s sent a heartbeat that cannot be read", c->peer.other);
    uint64_t done = strtoull(digits, NULL, 16);
    if (done != c->their_done)
        c->moved_ms = c->heard_ms;
    c->their_done = done;
    return 0;
}

/* Checks the frames that have come in whole. A heartbeat is dropped at once: it must not fill the
 * buffer behind an unread message. Before the nonces are exchanged there is one frame and no other:
 * what follows it is to be checked with the keys. An error is for the call that has taken the
 * frames before it. */
static int admit(struct channel *c)
{
    size_t at = c->checked, length = 0;
    int status = 0;
    char kind = 0;
    while (!(c->hello && c->checked) && (status = parse_head(c, at, &kind, &length)) == 1) {
        size_t whole = FRAME_HEAD + length, code = hello_sealed(c, kind) ? FRAME_CODE : 0;
        bool beat = kind == FRAME_BEAT && !c->hello;
        status = 0;
        if (c->have - at < whole + code)
            break;
        if (code)
            status = hello_check(c, c->in + at, whole);
        if (!status && beat)
            status = note_beat(c, c->in + at + FRAME_HEAD, length);
        if (status)
            break;
        if (!beat) {
            memmove(c->in + c->checked, c->in + at, whole);
            c->checked += whole;
            c->moved_ms = c->heard_ms;
        }
        at += whole + code;
    }
    c->have -= at - c->checked;
    memmove(c->in + c->checked, c->in + at, c->have - c->checked);
    return status;
}

void channel_take(struct channel *c, struct msg *msg)
{
    char kind;
    size_t length = 0;
    if (!c->checked || parse_head(c, 0, &kind, &length) != 1)
        return;
    memcpy(msg->bytes, c->in + FRAME_HEAD, length);
    msg->bytes[length] = '\0';
    msg->length = length;
    c->have -= FRAME_HEAD + length;
    c->checked -= FRAME_HEAD + length;
    memmove(c->in, c->in + FRAME_HEAD + length, c->have);
}

/* The other end's final message becomes our error message. */
static int last_words(const struct channel *c, size_t length)
{
    struct msg words = {.length = length};
    memcpy(words.bytes, c->in + FRAME_HEAD, length);
    words.bytes[length] = '\0';
    return life_last_words(&c->peer, &words);
}

/* Once: an end that sends without pause must not keep us here. */
static void read_some(struct channel *c)
{
    if (c->have == sizeof c->in)
        return;
    ssize_t n = recv(c->fd, c->in + c->have, sizeof c->in - c->have, MSG_DONTWAIT);
    if (n > 0) {
        c->have += (size_t)n;
        c->heard_ms = clock_ms();
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        c->closed = true;
    }
}

/* The first message that waits: 1 if it is wanted. Only its kind is looked at, and one that ends
 * the connection is kept for every later call. */
static int look_at_first(struct channel *c, char wanted)
{
    char kind = 0;
    size_t length = 0;
    parse_head(c, 0, &kind, &length);
    if (kind == wanted)
        return 1;
    /* Only a check: the message stays for the next recv, even if its sender has left. */
    if (kind == FRAME_DATA && wanted == FRAME_BEAT)
        return 0;
    if (kind == FRAME_END)
        c->ended = last_words(c, length);
    else if (kind == FRAME_REFUSAL && c->peer.rank == PEER_CLIENT && (c->hello || c->ours.on))
        c->ended = hello_refused(c, c->in + FRAME_HEAD, length);
    else
        return fail(-EPROTO, "the %s sent a message out of turn", c->peer.other);
    c->ended_why = life_keep();
    return c->ended;
}

int channel_ready(struct channel *c, char wanted)
{
    if (c->ended)
        return fail(c->ended, "%s", c->ended_why.sentence);
    read_some(c);
    int status = admit(c);
    if (c->checked)
        return look_at_first(c, wanted);
    if (status < 0)
        return status;
    return c->closed ? life_lost(&c->peer) : 0;
}

int channel_peek(struct channel *c, char kind, struct msg *msg)
{
    ssize_t n = recv(c->fd, c->in, sizeof c->in, MSG_DONTWAIT | MSG_PEEK);
    if (n <= 0)
        return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : life_lost(&c->peer);
    c->have = (size_t)n;
    int status = admit(c);
    if (c->checked)
        status = look_at_first(c, kind);
    if (status == 1)
        channel_take(c, msg);
    c->have = c->checked = 0;
    return status;
}

/* ---- the table ---- */

/* Progress of either end: the other's comes with its messages and heartbeats. */
static bool idle(struct channel *c, uint64_t now_ms)
{
    uint64_t done = __atomic_load_n(&c->peer.done, __ATOMIC_RELAXED);
    if (done != c->our_done)
        c->moved_ms = now_ms;
    c->our_done = done;
    return c->peer.quiet_ms && now_ms - c->moved_ms > c->peer.quiet_ms;
}

static int channel_alive(struct peer *peer)
{
    struct channel *c = of(peer);
    /* If both ends are interrupted, each reports that, and not the loss of the other. */
    int status = life_interrupted(&c->peer);
    if (!status)
        status = channel_ready(c, FRAME_BEAT);
    if (status)
        return status;
    uint64_t now_ms = clock_ms();
    if (now_ms - c->heard_ms > peer->timeout_ms)
        return life_silent(&c->peer);
    if (idle(c, now_ms))
        return life_idle(&c->peer);
    if (now_ms - c->told_ms < BEAT_MS)
        return 0;
    /* An end that has left may have sent everything before: the next recv finds out. */
    status = send_beat(c);
    return status == -ECONNRESET ? 0 : status;
}

static int channel_send(struct peer *peer, const struct msg *msg)
{
    struct channel *c = of(peer);
    char kind = c->greets ? FRAME_GREETING : FRAME_DATA;
    int status = life_fits(msg);
    if (status)
        return status;
    c->greets = false;
    status = channel_frame(c, kind, msg->bytes, msg->length);
    if (status == -ECONNRESET) {
        /* It may have sent the reason before it left. */
        int why = channel_ready(c, FRAME_BEAT);
        return why < 0 ? why : life_lost(&c->peer);
    }
    return status;
}

static int channel_recv(struct peer *peer, struct msg *msg, int (*progress)(void *), void *arg)
{
    struct channel *c = of(peer);
    uint64_t since_ns = clock_ns();
    for (;;) {
        int status = life_interrupted(&c->peer);
        if (!status)
            status = channel_ready(c, FRAME_DATA);
        if (status == 1) {
            channel_take(c, msg);
            return 0;
        }
        if (!status)
            status = channel_alive(peer);
        if (!status && progress && !c->checked)
            status = life_spin(peer, since_ns, progress, arg);
        if (status)
            return status;
        /* What came since the first look has been read. */
        struct pollfd data = {.fd = c->fd, .events = POLLIN};
        if (!progress && !c->checked)
            poll(&data, 1, BEAT_MS / 5);
    }
}

/* What cannot be read any more, or not now, does not wake. */
static int channel_sleep(struct peer *peer, int fd, bool listens)
{
    const struct channel *c = of(peer);
    bool reads = !c->closed && c->have < sizeof c->in;
    struct pollfd both[] = {{.fd = fd, .events = POLLIN},
                            {.fd = reads ? c->fd : -1, .events = POLLIN}};
    if (c->ended || (listens && c->checked))
        return 0;
    return poll(both, LENGTH(both), BEAT_MS / 5) > 0 && both[0].revents && !both[1].revents;
}

void channel_farewell(struct channel *c, int status, const char *why)
{
    struct msg words;
    /* Nothing that fails here may replace the error message that made us leave. */
    const struct kept kept = life_keep();
    if (!c->left && !c->ended && !c->closed && !life_words(&words, status, why) &&
        !channel_frame(c, FRAME_END, words.bytes, words.length))
        shutdown(c->fd, SHUT_WR);
    c->left = true;
    life_restore(&kept);
}

static void channel_end(struct peer *peer, int status, const char *why)
{
    struct channel *c = of(peer);
    uint64_t since_ms = clock_ms();
    if (c->left)
        return;
    channel_farewell(c, status, why);
    /* Closing with unread bytes would reset the connection and lose the final message. */
    while (!c->ended && !c->closed && clock_ms() - since_ms < LINGER_MS) {
        struct pollfd data = {.fd = c->fd, .events = POLLIN};
        poll(&data, 1, 20);
        c->have = c->checked = 0;
        read_some(c);
    }
}

int channel_detach(struct channel *channel)
{
    int fd = channel->fd;
    explicit_bzero(channel, sizeof *channel); /* its keys */
    free(channel);
    return fd;
}

void channel_close(struct channel *channel)
{
    if (channel)
        close(channel_detach(channel));
}

static void close_peer(struct peer *peer)
{
    channel_close(of(peer));
}

static const struct peer_ops channel_ops = {.name = "stream",
                                            .send = channel_send,
                                            .recv = channel_recv,
                                            .alive = channel_alive,
                                            .sleep = channel_sleep,
                                            .end = channel_end,
                                            .close = close_peer};

int channel_open(struct channel **channel, int fd, int rank, const struct peer_terms *terms)
{
    struct channel *c = calloc(1, sizeof *c);
    if (!c) {
        close(fd);
        return fail(-ENOMEM, "no memory for a connection");
    }
    life_begin(&c->peer, &channel_ops, rank, terms);
    c->fd = fd;
    c->began_ms = c->heard_ms = c->told_ms = c->moved_ms = clock_ms();
    *channel = c;
    return 0;
}
