/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of any size, the receiver's side: packets go straight into the posted buffer, or are
 * kept aside until there is one. What the other end tells of itself is never behind a message that
 * waits. */
#include "fabric/uct/uct.h"

#include <errno.h>
#include <string.h>

enum { PULL_MOST = 64 << 20 /* a poll pulls so much */ };

int lane_recv(struct fabric *fabric, const struct xfer *x)
{
    struct lane *l = (struct lane *)fabric;
    struct lane_mail *m = &l->mail;
    if (!lane_in_buffer(x))
        return lane_host->fail(-ERANGE, "uct: a receive of %zu bytes at %zu of a buffer of %zu",
                               x->length, x->at, x->local->length);
    if (m->posted - m->filled == LANE_RECEIVES)
        return -EAGAIN;
    uint64_t slot = m->posted++ % LANE_RECEIVES;
    m->receives[slot].to = x->local->address + x->at;
    m->receives[slot].length = x->length;
    m->receives[slot].id = x->id;
    return LATER;
}

static inline void filled(struct lane *l, uint64_t length)
{
    struct lane_mail *m = &l->mail;
    uint64_t slot = m->filled++ % LANE_RECEIVES;
    int status = 0;
    if (length > m->receives[slot].length)
        status = lane_host->fail(-EMSGSIZE, "uct: a message of %llu bytes into a buffer of %zu",
                                 (unsigned long long)length, m->receives[slot].length);
    *lane_event(l) = (struct completion){
        .id = m->receives[slot].id, .verb = VERB_RECV, .status = status, .length = length};
}

static inline void consumed(struct lane *l, size_t length)
{
    struct lane_mail *m = &l->mail;
    m->consumed += lane_units(length);
    if (m->consumed - m->told >= LANE_TELL_EVERY)
        l->todo |= TODO_OWED;
}

/* Into the buffer of the receive, as far as it goes. */
static inline void fill(struct lane_mail *m, size_t at, const char *data, size_t length)
{
    uint64_t slot = m->filled % LANE_RECEIVES;
    size_t room = m->receives[slot].length > at ? m->receives[slot].length - at : 0;
    if (length == sizeof(uint64_t) && room >= length)
        memcpy(m->receives[slot].to + at, data, sizeof(uint64_t));
    else
        memcpy(m->receives[slot].to + at, data, length < room ? length : room);
}

static void take_fragment(struct lane *l, enum kind kind, const char *data, size_t length)
{
    struct lane_mail *m = &l->mail;
    uint64_t total;
    if (kind == FIRST) {
        if (m->coming || length < sizeof total)
            return lane_mail_bad(l);
        memcpy(&total, data, sizeof total);
        m->total = total;
        m->got = 0;
        m->coming = true;
        data += sizeof total;
        length -= sizeof total;
    }
    if (!m->coming || length > m->total - m->got)
        return lane_mail_bad(l);
    fill(m, m->got, data, length);
    m->got += length;
    consumed(l, length);
    m->coming = m->got < m->total;
    if (m->coming)
        return;
    m->got = 0;
    filled(l, m->total);
}

static void unpack(void *arg, const void *data, size_t length)
{
    memcpy(arg, data, length);
}

/* The target's side of a rendezvous: a stretch a poll. DONE when all is here. */
static int pull(struct lane *l, const char *data, size_t length)
{
    struct lane_mail *m = &l->mail;
    uint64_t slot = m->filled % LANE_RECEIVES;
    struct lane_news news = {.entry = LANE_ENTRIES};
    if (length == sizeof news)
        memcpy(&news, data, sizeof news);
    const struct lane_remote *r = news.entry < LANE_ENTRIES ? l->by_entry[news.entry] : NULL;
    if (!m->pulls || !r || news.length > r->length || news.at > r->length - news.length) {
        lane_mail_bad(l);
        return LATER;
    }
    size_t room = m->receives[slot].length, fits = news.length < room ? news.length : room;
    size_t left = fits - m->got, piece = left < PULL_MOST ? left : PULL_MOST;
    if (piece && uct_ep_get_bcopy(l->ep, unpack, m->receives[slot].to + m->got, piece,
                                  r->base + news.at + m->got, r->rkey, NULL) != UCS_OK) {
        lane_mail_bad(l);
        return LATER;
    }
    m->got += piece;
    if (m->got < fits)
        return LATER;
    m->got = 0;
    m->pulls_done++;
    l->todo |= TODO_OWED;
    consumed(l, 0);
    filled(l, news.length);
    return DONE;
}

/* What can be taken now, in order. */
void lane_inbox_work(struct lane *l)
{
    struct lane_mail *m = &l->mail;
    while (m->first && (m->coming || m->filled != m->posted)) {
        struct lane_packet *packet = m->first;
        uint64_t head;
        memcpy(&head, packet->data, HEAD);
        enum kind kind = (enum kind)(head & ((1U << KIND_BITS) - 1));
        const char *data = packet->data + HEAD;
        size_t length = packet->length - HEAD;
        if (m->coming && kind != MORE) {
            lane_mail_bad(l);
            return;
        }
        if (kind == PULL) {
            if (pull(l, data, length) != DONE)
                return;
        } else if (kind == WHOLE) {
            fill(m, 0, data, length);
            consumed(l, length);
            filled(l, length);
        } else {
            take_fragment(l, kind, data, length);
        }
        m->first = packet->next;
        if (!m->first)
            m->last = &m->first;
        lane_drop(l, packet);
    }
    if (!m->first)
        l->todo &= ~(unsigned)TODO_IN;
}

static void keep(struct lane *l, const void *data, size_t length)
{
    struct lane_packet *packet = lane_keep(l, data, length);
    if (!packet)
        return;
    *l->mail.last = packet;
    l->mail.last = &packet->next;
    l->todo |= TODO_IN;
}

/* ---- arrivals ---- */

static void heed(struct lane *l, enum kind kind, const char *data, size_t length)
{
    struct lane_mail *m = &l->mail;
    uint64_t word = 0;
    if (length != sizeof word)
        return lane_mail_bad(l);
    memcpy(&word, data, sizeof word);
    switch (kind) {
    case HELLO:
        m->heard |= word == m->word;
        break;
    case PULLED:
        lane_mail_pulled(l, word);
        break;
    case WITHDRAWN:
        if (word < LANE_ENTRIES)
            l->notice.alive[word] = 0;
        break;
    case ACK:
        break;
    default:
        lane_mail_bad(l);
    }
}

ucs_status_t lane_mail_arrived(void *arg, void *data, size_t length, unsigned flags)
{
    struct lane *l = arg;
    struct lane_mail *m = &l->mail;
    const char *body = (const char *)data + HEAD;
    uint64_t head;
    (void)flags;
    if (length < HEAD) {
        lane_mail_bad(l);
        return UCS_OK;
    }
    memcpy(&head, data, HEAD);
    uint64_t acked = head >> KIND_BITS;
    enum kind kind = (enum kind)(head & ((1U << KIND_BITS) - 1));
    if (acked > m->acked && acked <= m->sent)
        m->acked = acked;
    if (kind < WHOLE || kind > PULL) {
        heed(l, kind, body, length - HEAD);
    } else if (m->first || kind == PULL || (!m->coming && m->filled == m->posted)) {
        keep(l, data, length);
    } else if (m->coming && kind != MORE) {
        lane_mail_bad(l);
    } else if (kind == WHOLE) {
        fill(m, 0, body, length - HEAD);
        consumed(l, length - HEAD);
        filled(l, length - HEAD);
    } else {
        take_fragment(l, kind, body, length - HEAD);
    }
    return UCS_OK;
}
