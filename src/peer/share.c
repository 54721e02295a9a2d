/* SPDX-License-Identifier: BSD-3-Clause */
/* One connection for several threads of an end: a line with the thread's number goes before each
 * message. Whichever thread looks takes in what has come, for all. Heartbeats, the final message
 * and deadlines are those of the connection. */
#include "core/clock.h"
#include "peer/life.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    UNREAD = 4, /* messages of a share that wait: the ends take turns, so more are not sent */
    HEAD = 8,   /* bytes of the line */
    SPIN_NS = 1000000,
    REST_NS = 200000
};

struct share {
    struct peer peer;
    struct peer_shares *all;
    unsigned number;
    uint64_t done;         /* of the peer's, that the connection knows of */
    unsigned first, count; /* of unread */
    struct msg unread[UNREAD];
};

struct peer_shares {
    struct peer *whole;
    unsigned count;
    pthread_mutex_t lock; /* of everything here, and of the connection */
    int over;             /* why no more messages will come, 0: they may */
    struct kept over_why;
    struct share shares[];
};

static struct share *of(struct peer *peer)
{
    return (struct share *)peer;
}

/* ---- in; the lock is held ---- */

static int not_now(void *arg)
{
    (void)arg;
    return -EAGAIN;
}

/* One message of the connection, from outside. */
static int sort(struct peer_shares *all, const struct msg *msg)
{
    char head[HEAD + 1] = "";
    uint64_t number;
    size_t length = msg->length;
    if (length >= HEAD)
        memcpy(head, msg->bytes, HEAD);
    if (head[0] != 'T' || head[HEAD - 1] != '\n')
        return fail(-EPROTO, "the %s sent a message that is for no thread", all->whole->other);
    head[HEAD - 1] = '\0';
    if (unit_number(head + 1, &number) || number >= all->count)
        return fail(-EPROTO, "the %s sent a message for thread %s of %u", all->whole->other,
                    head + 1, all->count);
    struct share *share = &all->shares[number];
    if (share->count == UNREAD)
        return fail(-EPROTO, "the %s sent thread %" PRIu64 " more messages than its turn",
                    all->whole->other, number);
    struct msg *place = &share->unread[(share->first + share->count++) % UNREAD];
    place->length = length - HEAD;
    memcpy(place->bytes, msg->bytes + HEAD, place->length);
    place->bytes[place->length] = '\0';
    return 0;
}

/* Takes in what has come, up to a message for this share: after the last one the connection is
 * another's, and what follows must stay in it. A look at the connection also sends its heartbeats.
 */
static void look(struct share *s)
{
    struct peer_shares *all = s->all;
    uint64_t done = __atomic_load_n(&s->peer.done, __ATOMIC_RELAXED);
    struct msg msg;
    int status = s->count && !all->over ? peer_alive(all->whole) : 0;
    __atomic_fetch_add(&all->whole->done, done - s->done, __ATOMIC_RELAXED);
    s->done = done;
    while (!status && !all->over && !s->count) {
        status = peer_recv(all->whole, &msg, not_now, NULL);
        if (!status)
            status = sort(all, &msg);
    }
    if (status && status != -EAGAIN) {
        all->over = status;
        all->over_why = life_keep();
    }
}

/* 1: the message is taken; 0: there is none yet; or -errno. */
static int take(struct share *s, struct msg *msg)
{
    struct peer_shares *all = s->all;
    if (s->count) {
        const struct msg *oldest = &s->unread[s->first];
        memcpy(msg->bytes, oldest->bytes, oldest->length + 1);
        msg->length = oldest->length;
        s->first = (s->first + 1) % UNREAD;
        s->count--;
        return 1;
    }
    return all->over ? fail(all->over, "%s", all->over_why.sentence) : 0;
}

/* ---- the table ---- */

static int share_send(struct peer *peer, const struct msg *msg)
{
    struct share *s = of(peer);
    struct msg whole;
    int status = life_interrupted(peer);
    if (!status)
        status = msg_print(&whole, "T%06u\n%s", s->number, msg->bytes);
    if (status)
        return status;
    pthread_mutex_lock(&s->all->lock);
    if (s->all->over)
        status = fail(s->all->over, "%s", s->all->over_why.sentence);
    else
        status = peer_send(s->all->whole, &whole);
    pthread_mutex_unlock(&s->all->lock);
    return status;
}

/* While another thread looks, it looks for this one too. */
static int look_once(struct share *s, struct msg *msg)
{
    int got = life_interrupted(&s->peer);
    if (got || pthread_mutex_trylock(&s->all->lock))
        return got;
    if (!s->count)
        look(s);
    got = take(s, msg);
    pthread_mutex_unlock(&s->all->lock);
    return got;
}

static int share_recv(struct peer *peer, struct msg *msg, int (*progress)(void *), void *arg)
{
    uint64_t since_ns = clock_ns();
    for (;;) {
        int got = look_once(of(peer), msg);
        if (got)
            return got < 0 ? got : 0;
        got = progress ? life_spin(peer, since_ns, progress, arg) : 0;
        if (got)
            return got;
        struct timespec pause = {.tv_nsec = REST_NS};
        if (!progress && clock_ns() - since_ns < SPIN_NS)
            sched_yield();
        else if (!progress)
            nanosleep(&pause, NULL);
    }
}

/* Messages sent before the other end left stay for the next recv. */
static int share_alive(struct peer *peer)
{
    struct share *s = of(peer);
    struct peer_shares *all = s->all;
    int status = life_interrupted(peer);
    if (status || pthread_mutex_trylock(&all->lock))
        return status;
    look(s);
    if (all->over && !s->count)
        status = fail(all->over, "%s", all->over_why.sentence);
    pthread_mutex_unlock(&all->lock);
    return status;
}

/* Another thread may take in what comes for this one. */
static int share_sleep(struct peer *peer, int fd, bool listens)
{
    struct share *s = of(peer);
    pthread_mutex_lock(&s->all->lock);
    bool there = s->all->over || (listens && s->count);
    pthread_mutex_unlock(&s->all->lock);
    return there ? 0 : life_sleep(fd);
}

/* The first that leaves early ends the connection, and with it all. */
static void share_end(struct peer *peer, int status, const char *why)
{
    struct share *s = of(peer);
    pthread_mutex_lock(&s->all->lock);
    peer_end(s->all->whole, status, why);
    pthread_mutex_unlock(&s->all->lock);
}

static void share_close(struct peer *peer)
{
    (void)peer;
}

static const struct peer_ops share_ops = {.name = "share",
                                          .send = share_send,
                                          .recv = share_recv,
                                          .alive = share_alive,
                                          .sleep = share_sleep,
                                          .end = share_end,
                                          .close = share_close};

int peer_shares_open(struct peer_shares **shares, struct peer *whole, unsigned count)
{
    struct peer_shares *all = calloc(1, sizeof *all + count * sizeof *all->shares);
    if (!all)
        return fail(-ENOMEM, "no memory for %u threads", count);
    all->whole = whole;
    all->count = count;
    pthread_mutex_init(&all->lock, NULL);
    for (unsigned i = 0; i < count; i++) {
        struct share *s = &all->shares[i];
        s->peer = *whole;
        s->peer.ops = &share_ops;
        s->peer.done = 0;
        s->all = all;
        s->number = i;
    }
    *shares = all;
    return 0;
}

struct peer *peer_share(struct peer_shares *shares, unsigned number)
{
    return &shares->shares[number].peer;
}

void peer_shares_close(struct peer_shares *shares)
{
    if (!shares)
        return;
    pthread_mutex_destroy(&shares->lock);
    free(shares);
}
