/* SPDX-License-Identifier: BSD-3-Clause */
/* A peer over any carrier of whole messages: one byte of kind, then the payload. An end that leaves
 * without a final message has closed. A wait cannot sleep on the carrier, so it spins first and
 * then sleeps in growing steps. Messages are read as soon as they arrive, so that none hides the
 * next. */
#include "core/clock.h"
#include "peer/life.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum {
    UNHEARD = 8, /* received messages that are kept; more wait in the carrier */
    LOOK_MAX = 64,
    SPIN_NS = 1000000,
    FIRST_REST_NS = 50000,
    LAST_REST_NS = 4000000
};

struct relay {
    struct peer peer;
    struct peer_carrier carrier;
    bool left;            /* our final message is sent */
    int over;             /* why no more messages will come, 0: they may */
    struct kept over_why; /* its message, for a later call, maybe in another thread */
    uint64_t heard_ms, told_ms;
    unsigned first, count; /* of unheard */
    struct msg unheard[UNHEARD];
    char frame[CARRIER_MAX];
};

static struct relay *of(struct peer *peer)
{
    return (struct relay *)peer;
}

/* How long a wait has lasted, and how long its next sleep is. */
struct backoff {
    uint64_t since_ns, rest_ns;
};

static struct backoff backoff(void)
{
    return (struct backoff){.since_ns = clock_ns(), .rest_ns = FIRST_REST_NS};
}

static void rest(struct backoff *p)
{
    if (clock_ns() - p->since_ns < SPIN_NS) {
        sched_yield();
        return;
    }
    struct timespec pause = {.tv_nsec = (long)p->rest_ns};
    nanosleep(&pause, NULL);
    p->rest_ns = p->rest_ns < LAST_REST_NS / 2 ? 2 * p->rest_ns : LAST_REST_NS;
}

/* ---- in ---- */

/* Keeps the current error message as the reason why this connection ended. */
static void set_over(struct relay *r, int status)
{
    r->over = status;
    r->over_why = life_keep();
}

static int say_over(const struct relay *r)
{
    return r->over ? fail(r->over, "%s", r->over_why.sentence) : 0;
}

static void copy_in(struct msg *msg, const char *bytes, size_t length)
{
    memcpy(msg->bytes, bytes, length);
    msg->bytes[length] = '\0';
    msg->length = length;
}

/* The other end's final message becomes our error message. */
static int last_words(const struct relay *r, const char *bytes, size_t length)
{
    struct msg words;
    if (!length)
        return life_lost(&r->peer);
    copy_in(&words, bytes, length);
    return life_last_words(&r->peer, &words);
}

/* One message from outside, in frame. */
static int sort(struct relay *r, size_t length)
{
    if (length > MSG_MAX)
        return fail(-EPROTO, "the %s sent a message of %zu bytes, the limit is %d", r->peer.other,
                    length - 1, MSG_MAX - 1);
    const char *payload = r->frame + 1;
    switch (length ? r->frame[0] : 0) {
    case FRAME_BEAT:
        return 0;
    case FRAME_DATA:
        copy_in(&r->unheard[(r->first + r->count++) % UNHEARD], payload, length - 1);
        return 0;
    case FRAME_END:
        return last_words(r, payload, length - 1);
    default:
        return fail(-EPROTO, "the other end does not speak Weft's protocol");
    }
}

/* Reads without waiting, as long as there is room. */
static void look(struct relay *r)
{
    for (int i = 0; i < LOOK_MAX && !r->over && r->count < UNHEARD; i++) {
        size_t length = 0;
        int got = r->carrier.receive(r->carrier.arg, r->frame, sizeof r->frame, &length);
        if (!got)
            return;
        if (got > 0) {
            r->heard_ms = clock_ms();
            got = sort(r, length);
        } else if (got == -ECONNRESET) {
            got = life_lost(&r->peer);
        }
        if (got)
            set_over(r, got);
    }
}

static void take(struct relay *r, struct msg *msg)
{
    const struct msg *oldest = &r->unheard[r->first];
    copy_in(msg, oldest->bytes, oldest->length);
    r->first = (r->first + 1) % UNHEARD;
    r->count--;
}

/* ---- out ---- */

/* Once, without waiting. */
static int publish(struct relay *r, char kind, const void *bytes, size_t length)
{
    char frame[1 + MSG_MAX];
    frame[0] = kind;
    memcpy(frame + 1, bytes, length);
    int status = r->carrier.publish(r->carrier.arg, frame, 1 + length);
    if (!status)
        r->told_ms = clock_ms();
    return status;
}

/* An end that sends unreadable messages may still receive ours. */
static bool gone(const struct relay *r)
{
    return r->over && r->over != -EPROTO;
}

/* The final message: it is sent even after an interruption, but with a short deadline. Nothing that
 * fails here may replace the error message that made us leave. */
static void publish_end(struct relay *r, const void *bytes, size_t length)
{
    struct backoff p = backoff();
    uint64_t since_ms = clock_ms();
    while (!gone(r) && publish(r, FRAME_END, bytes, length) == -EAGAIN &&
           clock_ms() - since_ms < LINGER_MS) {
        r->count = 0; /* it will not be read any more, and may block ours */
        look(r);
        rest(&p);
    }
    r->left = true;
}

/* Both ends send that they are done, and neither reads beyond that. */
static void part(struct relay *r)
{
    struct backoff p = backoff();
    uint64_t since_ms = clock_ms();
    uint64_t most_ms = r->peer.timeout_ms > LINGER_MS ? r->peer.timeout_ms : LINGER_MS;
    bool said = false;
    while (clock_ms() - since_ms < most_ms) {
        if (!said)
            said = publish(r, FRAME_END, "", 0) != -EAGAIN;
        r->count = 0;
        look(r);
        if (said && r->over)
            break;
        rest(&p);
    }
    r->left = true;
}

/* ---- the table ---- */

static int relay_send(struct peer *peer, const struct msg *msg)
{
    struct relay *r = of(peer);
    struct backoff p = backoff();
    uint64_t since_ms = clock_ms();
    int status = life_fits(msg);
    while (!status) {
        look(r);
        status = say_over(r);
        if (!status)
            status = publish(r, FRAME_DATA, msg->bytes, msg->length);
        if (status != -EAGAIN)
            break;
        status =
            clock_ms() - since_ms > peer->timeout_ms ? life_silent(peer) : life_interrupted(peer);
        if (!status)
            rest(&p);
    }
    if (status != -ECONNRESET)
        return status;
    look(r); /* it may have sent the reason before it left */
    return r->over ? say_over(r) : life_lost(peer);
}

static int relay_alive(struct peer *peer)
{
    struct relay *r = of(peer);
    /* If both ends are interrupted, each reports that, and not the loss of the other. */
    int status = life_interrupted(peer);
    if (status)
        return status;
    look(r);
    uint64_t now_ms = clock_ms();
    bool late = now_ms - r->heard_ms > peer->timeout_ms;
    /* Messages sent before the other end left stay for the next recv, but not for ever. */
    if (r->over && (late || !r->count))
        return say_over(r);
    if (late)
        return life_silent(peer);
    if (r->over || now_ms - r->told_ms < BEAT_MS)
        return 0;
    /* No room, or the other end is gone: the next call finds out. */
    status = publish(r, FRAME_BEAT, "", 0);
    return status == -EAGAIN || status == -ECONNRESET ? 0 : status;
}

static int relay_recv(struct peer *peer, struct msg *msg, int (*progress)(void *), void *arg)
{
    struct relay *r = of(peer);
    struct backoff p = backoff();
    uint64_t since_ns = clock_ns();
    for (;;) {
        int status = life_interrupted(peer);
        if (status)
            return status;
        look(r);
        if (r->count) {
            take(r, msg);
            return 0;
        }
        status = relay_alive(peer);
        if (!status && progress && !r->count)
            status = life_spin(peer, since_ns, progress, arg);
        if (status)
            return status;
        if (!progress && !r->count)
            rest(&p);
    }
}

static int relay_sleep(struct peer *peer, int fd, bool listens)
{
    const struct relay *r = of(peer);
    return r->over || (listens && r->count) ? 0 : life_sleep(fd);
}

static void relay_end(struct peer *peer, int status, const char *why)
{
    struct relay *r = of(peer);
    struct msg words;
    const struct kept kept = life_keep();
    if (!r->left && !life_words(&words, status, why))
        publish_end(r, words.bytes, words.length);
    life_restore(&kept);
}

static void relay_close(struct peer *peer)
{
    struct relay *r = of(peer);
    const struct kept kept = life_keep();
    if (!r->left && r->carrier.lasts)
        part(r);
    else if (!r->left)
        publish_end(r, "", 0);
    if (r->carrier.close)
        r->carrier.close(r->carrier.arg);
    life_restore(&kept);
    free(r);
}

static const struct peer_ops relay_ops = {.name = "relay",
                                          .send = relay_send,
                                          .recv = relay_recv,
                                          .alive = relay_alive,
                                          .sleep = relay_sleep,
                                          .end = relay_end,
                                          .close = relay_close};

int peer_relay(struct peer **peer, const struct peer_carrier *carrier, int rank,
               const struct peer_terms *terms)
{
    struct relay *r = calloc(1, sizeof *r);
    if (!r)
        return fail(-ENOMEM, "no memory for a connection");
    life_begin(&r->peer, &relay_ops, rank, terms);
    r->peer.trusted = true;
    r->carrier = *carrier;
    r->heard_ms = r->told_ms = clock_ms();
    *peer = &r->peer;
    return 0;
}
