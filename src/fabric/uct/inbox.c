/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of any size, the receiver's side: packets go straight into the posted buffer, or are
 * kept aside until there is one. What the other end tells of itself never waits for a message
 * before it. */
#include "fabric/uct/uct.h"

#include <errno.h>
#include <string.h>

enum { PULL_MOST = 64 << 20 /* a poll pulls so much */ };

int weft_uct_recv(struct fabric *fabric, const struct xfer *x)
{
    struct weft_uct *l = (struct weft_uct *)fabric;
    struct weft_uct_mail *m = &l->mail;
    if (!l->connected)
        return weft_uct_host->fail(-ENOTCONN, "uct: not connected");
    if (!weft_uct_in_buffer(x))
        return weft_uct_host->fail(-ERANGE, "uct: a receive of %zu bytes at %zu of a buffer of %zu",
                                   x->length, x->at, x->local->length);
    if (m->posted - m->filled == WEFT_UCT_RECEIVES)
        return -EAGAIN;
    uint64_t slot = m->posted++ % WEFT_UCT_RECEIVES;
    m->receives[slot].to = x->local->address + x->at;
    m->receives[slot].length = x->length;
    m->receives[slot].id = x->id;
    return LATER;
}

static inline void filled(struct weft_uct *l, uint64_t length)
{
    struct weft_uct_mail *m = &l->mail;
    uint64_t slot = m->filled++ % WEFT_UCT_RECEIVES;
    int status = 0;
    if (length > m->receives[slot].length)
        status = weft_uct_host->fail(-EMSGSIZE, "uct: a message of %llu bytes into a buffer of %zu",
                                     (unsigned long long)length, m->receives[slot].length);
    *weft_uct_event(l) = (struct completion){
        .id = m->receives[slot].id, .verb = VERB_RECV, .status = status, .length = length};
}

static inline void consumed(struct weft_uct *l, size_t length)
{
    struct weft_uct_mail *m = &l->mail;
    m->consumed += weft_uct_units(length);
    if (m->consumed - m->told >= WEFT_UCT_TELL_EVERY)
        l->todo |= TODO_OWED;
}

/* Into the buffer of the receive, as far as it goes. */
static inline void fill(struct weft_uct_mail *m, size_t at, const char *data, size_t length)
{
    uint64_t slot = m->filled % WEFT_UCT_RECEIVES;
    size_t room = m->receives[slot].length > at ? m->receives[slot].length - at : 0;
    if (length == sizeof(uint64_t) && room >= length)
        memcpy(m->receives[slot].to + at, data, sizeof(uint64_t));
    else
        memcpy(m->receives[slot].to + at, data, length < room ? length : room);
}

static void take_fragment(struct weft_uct *l, enum kind kind, const char *data, size_t length)
{
    struct weft_uct_mail *m = &l->mail;
    uint64_t total;
    if (kind == FIRST) {
        if (m->coming || length < sizeof total)
            return weft_uct_mail_bad(l);
        memcpy(&total, data, sizeof total);
        m->total = total;
        m->got = 0;
        m->coming = true;
        data += sizeof total;
        length -= sizeof total;
    }
    if (!m->coming || length > m->total - m->got)
        return weft_uct_mail_bad(l);
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

/* The target's side of a rendezvous: one piece in each poll. DONE when all is here. */
static int pull(struct weft_uct *l, const char *data, size_t length)
{
    struct weft_uct_mail *m = &l->mail;
    uint64_t slot = m->filled % WEFT_UCT_RECEIVES;
    struct weft_uct_news news = {.entry = WEFT_UCT_ENTRIES};
    if (length == sizeof news)
        memcpy(&news, data, sizeof news);
    const struct weft_uct_remote *r =
        news.entry < WEFT_UCT_ENTRIES ? l->by_entry[news.entry] : NULL;
    if (!m->pulls || !r || news.length > r->length || news.at > r->length - news.length) {
        weft_uct_mail_bad(l);
        return LATER;
    }
    size_t room = m->receives[slot].length, fits = news.length < room ? news.length : room;
    size_t left = fits - m->got, piece = left < PULL_MOST ? left : PULL_MOST;
    if (piece && uct_ep_get_bcopy(l->ep, unpack, m->receives[slot].to + m->got, piece,
                                  r->base + news.at + m->got, r->rkey, NULL) != UCS_OK) {
        weft_uct_mail_bad(l);
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
void weft_uct_inbox_work(struct weft_uct *l)
{
    struct weft_uct_mail *m = &l->mail;
    while (m->first && (m->coming || m->filled != m->posted)) {
        struct weft_uct_packet *packet = m->first;
        uint64_t head;
        memcpy(&head, packet->data, HEAD);
        enum kind kind = (enum kind)(head & ((1U << KIND_BITS) - 1));
        const char *data = packet->data + HEAD;
        size_t length = packet->length - HEAD;
        if (m->coming && kind != MORE) {
            weft_uct_mail_bad(l);
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
        weft_uct_drop(l, packet);
    }
    if (!m->first)
        l->todo &= ~(unsigned)TODO_IN;
}

static void keep(struct weft_uct *l, const void *data, size_t length)
{
    struct weft_uct_packet *packet = weft_uct_keep(l, data, length);
    if (!packet)
        return;
    *l->mail.last = packet;
    l->mail.last = &packet->next;
    l->todo |= TODO_IN;
}

/* ---- arrivals ---- */

static void heed(struct weft_uct *l, enum kind kind, const char *data, size_t length)
{
    struct weft_uct_mail *m = &l->mail;
    uint64_t word = 0;
    if (length != sizeof word)
        return weft_uct_mail_bad(l);
    memcpy(&word, data, sizeof word);
    switch (kind) {
    case HELLO:
        m->heard |= word == m->word;
        break;
    case PULLED:
        weft_uct_mail_pulled(l, word);
        break;
    case WITHDRAWN:
        if (word < WEFT_UCT_ENTRIES)
            l->notice->alive[word] = 0;
        break;
    case BYE:
        l->parted = true;
        break;
    case ACK:
        break;
    default:
        weft_uct_mail_bad(l);
    }
}

ucs_status_t weft_uct_mail_arrived(void *arg, void *data, size_t length, unsigned flags)
{
    struct weft_uct *l = arg;
    struct weft_uct_mail *m = &l->mail;
    const char *body = (const char *)data + HEAD;
    uint64_t head;
    (void)flags;
    if (length < HEAD) {
        weft_uct_mail_bad(l);
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
        weft_uct_mail_bad(l);
    } else if (kind == WHOLE) {
        fill(m, 0, body, length - HEAD);
        consumed(l, length - HEAD);
        filled(l, length - HEAD);
    } else {
        take_fragment(l, kind, body, length - HEAD);
    }
    return UCS_OK;
}
