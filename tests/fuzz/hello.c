/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzzes the greeting of two ends over a stream. The other end is a real one that does what the
 * input says: frames of any kind with the right codes, bytes of any kind, a frame again. It holds
 * the same secret as ours, another one, or none. Where ours holds a secret, it may take only what
 * an end with that secret has sent, in that order, and once. */
#include "fuzz/feed.h"
#include "peer/channel.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

unsigned fuzz_accepted;

enum { STEPS = 64, BODY = 96, SENT = STEPS };
enum { OUR_CLIENT = 1, OUR_SECRET = 2, THEIR_SECRET = 4, ANOTHER_SECRET = 8 };
static const char kinds[] = {FRAME_NONCE, FRAME_GREETING, FRAME_DATA,
                             FRAME_BEAT,  FRAME_END,      FRAME_REFUSAL};
static const struct peer_terms terms = {.timeout_ms = 60000};
static const struct secret secrets[] = {{{1}}, {{2}}};

struct pair {
    struct channel *ours, *other;
    int socket; /* the other end's */
    bool sealed, greeted, over;
    char wanted; /* what ours waits for now */
    struct {
        size_t length;
        unsigned char bytes[BODY];
    } sent[SENT]; /* messages of the other end, with their codes */
    unsigned sent_count, taken;
};

static size_t next_body(struct feed *feed, unsigned char *bytes)
{
    size_t length = next_byte(feed) % BODY;
    for (size_t i = 0; i < length; i++)
        bytes[i] = next_byte(feed);
    return length;
}

static void send_frame(struct pair *p, struct feed *feed)
{
    unsigned char bytes[BODY];
    char kind = kinds[next_byte(feed) % sizeof kinds];
    size_t length = next_body(feed, bytes);
    bool message = kind == FRAME_GREETING || kind == FRAME_DATA;
    if (!channel_frame(p->other, kind, bytes, length) && message && p->sent_count < SENT) {
        p->sent[p->sent_count].length = length;
        memcpy(p->sent[p->sent_count++].bytes, bytes, length);
    }
}

static void send_bytes(struct pair *p, struct feed *feed)
{
    unsigned char bytes[BODY];
    size_t length = next_body(feed, bytes);
    if (send(p->socket, bytes, length, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        p->over = true;
}

/* What the other end is sent is sent back to ours. */
static void reflect(struct pair *p)
{
    unsigned char bytes[512];
    ssize_t n = recv(p->socket, bytes, sizeof bytes, MSG_DONTWAIT);
    if (n > 0 && send(p->socket, bytes, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        p->over = true;
}

static void check(struct pair *p, const struct msg *msg)
{
    fuzz_accepted++;
    if (!p->sealed)
        return;
    if (p->taken == p->sent_count || p->sent[p->taken].length != msg->length ||
        memcmp(p->sent[p->taken].bytes, msg->bytes, msg->length) != 0 || !p->ours->peer.trusted)
        abort();
    p->taken++;
}

static void step_ours(struct pair *p)
{
    struct msg msg;
    if (!p->greeted) {
        int status = hello_ready(p->ours);
        p->greeted = status == 1;
        p->over |= status < 0;
        if (status < 0 && p->ours->peer.rank == PEER_SERVER)
            hello_refuse(p->ours);
        return;
    }
    int status = channel_ready(p->ours, p->wanted);
    if (status == 1) {
        channel_take(p->ours, &msg);
        check(p, &msg);
        p->wanted = FRAME_DATA;
    }
    p->over |= status < 0 || peer_alive(&p->ours->peer) < 0;
}

static void talk(struct pair *p, struct feed *feed)
{
    for (int i = 0; i < STEPS && feed->left && !p->over; i++) {
        switch (next_byte(feed) % 8) {
        case 0:
            send_bytes(p, feed);
            break;
        case 1:
            reflect(p);
            break;
        case 2:
        case 3:
            hello_ready(p->other);
            break;
        default:
            send_frame(p, feed);
        }
        step_ours(p);
    }
    for (int i = 0; i < STEPS && !p->over; i++)
        step_ours(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct feed feed = {data, size};
    static struct pair pair;
    struct pair *p = &pair;
    unsigned what = next_byte(&feed);
    int fd[2], rank = what & OUR_CLIENT ? PEER_CLIENT : PEER_SERVER;
    pair = (struct pair){.sealed = what & OUR_SECRET,
                         .wanted = what & OUR_CLIENT ? FRAME_DATA : FRAME_GREETING};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd))
        return 0;
    p->socket = fd[1];
    if (channel_open(&p->ours, fd[0], rank, &terms) ||
        channel_open(&p->other, fd[1], rank == PEER_CLIENT ? PEER_SERVER : PEER_CLIENT, &terms))
        abort();
    hello_begin(p->ours, what & OUR_SECRET ? &secrets[0] : NULL);
    hello_begin(p->other, what & THEIR_SECRET ? &secrets[what & ANOTHER_SECRET ? 1 : 0] : NULL);
    talk(p, &feed);
    channel_close(p->ours);
    channel_close(p->other);
    return 0;
}
