/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of any size on active messages, the sender's side. A message is a packet, or a first one
 * and more, or a descriptor by which the target pulls it. Packets go in order; each costs units, of
 * which a window may be on its way: what has no receive yet is kept aside, and cannot grow beyond
 * that. Their first word says what a packet is and how many units its sender has consumed. */
#include "fabric/uct/uct.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    FRAGMENT_MOST = 64 << 10,
    PIECES = 8 /* a poll sends so many */
};

static inline bool room_for(const struct weft_uct_mail *m, size_t length)
{
    return m->sent - m->acked + weft_uct_units(length) <= WINDOW;
}

static inline uint64_t head_of(const struct weft_uct_mail *m, enum kind kind)
{
    return m->consumed << KIND_BITS | (uint64_t)kind;
}

void weft_uct_mail_open(struct weft_uct *l)
{
    struct weft_uct_mail *m = &l->mail;
    m->zcopy = l->am_max[LAYOUT_ZCOPY] > (size_t)2 * HEAD &&
               l->port.attr.cap.am.max_hdr >= (size_t)2 * HEAD;
    m->whole_most = l->am_max[LAYOUT_BCOPY] > HEAD ? l->am_max[LAYOUT_BCOPY] - HEAD : 0;
    size_t most = l->am_max[m->zcopy ? LAYOUT_ZCOPY : LAYOUT_BCOPY];
    most = most < FRAGMENT_MOST ? most : FRAGMENT_MOST;
    m->fragment_most = most > (size_t)2 * HEAD ? most - (size_t)2 * HEAD : 0;
    m->last = &m->first;
}

void weft_uct_mail_leave(struct weft_uct *l)
{
    bool pulls = l->mail.pulls;
    while (l->mail.first) {
        struct weft_uct_packet *packet = l->mail.first;
        l->mail.first = packet->next;
        weft_uct_drop(l, packet);
    }
    l->mail = (struct weft_uct_mail){.pulls = pulls};
    weft_uct_mail_open(l);
}

/* ---- packets out ---- */

struct parcel {
    uint64_t head[2];
    size_t head_bytes;
    const char *data;
    size_t length;
};

static size_t pack(void *to, void *arg)
{
    const struct parcel *p = arg;
    memcpy(to, p->head, p->head_bytes);
    memcpy((char *)to + p->head_bytes, p->data, p->length);
    return p->head_bytes + p->length;
}

static ucs_status_t put_bcopy(struct weft_uct *l, struct parcel *parcel)
{
    ssize_t packed = uct_ep_am_bcopy(l->ep, WEFT_UCT_MAIL, pack, parcel, 0);
    return packed < 0 ? (ucs_status_t)packed : UCS_OK;
}

/* One packet that needs no waiting for. */
static inline ucs_status_t try_put(struct weft_uct *l, enum kind kind, const void *data,
                                   size_t length)
{
    struct weft_uct_mail *m = &l->mail;
    uint64_t head = head_of(m, kind);
    ucs_status_t status;
    if (HEAD + length <= l->am_max[LAYOUT_SHORT]) {
        status = uct_ep_am_short(l->ep, WEFT_UCT_MAIL, head, data, (unsigned)length);
    } else {
        struct parcel parcel = {.head = {head}, .head_bytes = HEAD, .data = data, .length = length};
        status = put_bcopy(l, &parcel);
    }
    if (status == UCS_OK)
        m->told = m->consumed;
    return status;
}

/* 0, or -EAGAIN, or why not. */
static inline int put(struct weft_uct *l, enum kind kind, const void *data, size_t length)
{
    ucs_status_t status = try_put(l, kind, data, length);
    return status == UCS_OK                ? 0
           : status == UCS_ERR_NO_RESOURCE ? -EAGAIN
                                           : weft_uct_refuse(l, "send", status);
}

int weft_uct_mail_hello(struct weft_uct *l)
{
    struct weft_uct_mail *m = &l->mail;
    int status = m->said ? 0 : put(l, HELLO, &m->word, sizeof m->word);
    if (status && status != -EAGAIN)
        return status;
    m->said |= !status;
    return m->said && m->heard ? DONE : LATER;
}

/* If there is no room for it, or nobody, the other end is not told: we do not wait for it. */
void weft_uct_mail_withdrawn(struct weft_uct *l, uint64_t entry)
{
    (void)try_put(l, WITHDRAWN, &entry, sizeof entry);
}

void weft_uct_mail_bye(struct weft_uct *l)
{
    uint64_t nothing = 0;
    (void)try_put(l, BYE, &nothing, sizeof nothing);
}

/* ---- messages out ---- */

static void out_complete(struct weft_uct_outgoing *o, int status)
{
    o->complete = true;
    *weft_uct_event(o->uct) =
        (struct completion){.id = o->id, .verb = VERB_SEND, .status = status, .length = o->length};
}

static void out_done(uct_completion_t *done)
{
    struct weft_uct_outgoing *o = (struct weft_uct_outgoing *)done;
    if (o->uct->draining)
        return;
    out_complete(o, done->status == UCS_OK ? 0 : weft_uct_refuse(o->uct, "send", done->status));
}

static ucs_status_t put_fragment(struct weft_uct *l, struct weft_uct_outgoing *o, size_t piece)
{
    struct parcel parcel = {.head = {head_of(&l->mail, o->moved ? MORE : FIRST), o->length},
                            .head_bytes = o->moved ? HEAD : 2 * HEAD,
                            .data = o->from + o->moved,
                            .length = piece};
    if (!l->mail.zcopy)
        return put_bcopy(l, &parcel);
    uct_iov_t iov = {.buffer = (void *)parcel.data, .length = piece, .memh = o->memh, .count = 1};
    o->done.count++;
    ucs_status_t status = uct_ep_am_zcopy(l->ep, WEFT_UCT_MAIL, parcel.head,
                                          (unsigned)parcel.head_bytes, &iov, 1, 0, &o->done);
    if (status != UCS_INPROGRESS)
        o->done.count--;
    return status == UCS_INPROGRESS ? UCS_OK : status;
}

/* DONE: all of it is on its way. */
static int send_fragments(struct weft_uct *l, struct weft_uct_outgoing *o, int *pieces)
{
    struct weft_uct_mail *m = &l->mail;
    while (o->moved < o->length) {
        size_t left = o->length - o->moved;
        size_t piece = left < m->fragment_most ? left : m->fragment_most;
        if (!room_for(m, piece) || --*pieces < 0)
            return LATER;
        ucs_status_t status = put_fragment(l, o, piece);
        if (status == UCS_ERR_NO_RESOURCE)
            return LATER;
        if (status != UCS_OK)
            return weft_uct_refuse(l, "send", status);
        m->told = m->consumed;
        m->sent += weft_uct_units(piece);
        o->moved += piece;
    }
    return DONE;
}

static int send_pull(struct weft_uct *l, const struct weft_uct_outgoing *o)
{
    struct weft_uct_mail *m = &l->mail;
    struct weft_uct_news news = {.entry = o->entry, .at = o->at, .length = o->length};
    if (!room_for(m, 0))
        return LATER;
    int status = put(l, PULL, &news, sizeof news);
    if (status)
        return status == -EAGAIN ? LATER : status;
    m->sent += weft_uct_units(0);
    m->asked++;
    return DONE;
}

static int send_whole(struct weft_uct *l, const char *from, size_t length)
{
    struct weft_uct_mail *m = &l->mail;
    if (!room_for(m, length))
        return -EAGAIN;
    int status = put(l, WHOLE, from, length);
    if (status)
        return status;
    m->sent += weft_uct_units(length);
    return DONE;
}

/* As far as the oldest that waits can go now. */
static int advance(struct weft_uct *l, struct weft_uct_outgoing *o, int *pieces)
{
    if (o->pull)
        return send_pull(l, o);
    if (o->length <= l->mail.whole_most) {
        int status = send_whole(l, o->from, o->length);
        if (status == DONE)
            out_complete(o, 0);
        return status == -EAGAIN ? LATER : status;
    }
    int status = send_fragments(l, o, pieces);
    if (status == DONE && --o->done.count == 0)
        out_complete(o, 0);
    return status;
}

static void send_waiting(struct weft_uct *l)
{
    struct weft_uct_mail *m = &l->mail;
    int pieces = PIECES;
    while (m->out_next != m->out_head) {
        struct weft_uct_outgoing *o = &m->out[m->out_next % WEFT_UCT_SENDS];
        int status = advance(l, o, &pieces);
        if (status == LATER)
            break;
        if (status < 0) {
            out_complete(o, status);
            weft_uct_lose(l, UCS_ERR_IO_ERROR, "a message could not be sent");
        }
        m->out_next++;
    }
    while (m->out_tail != m->out_next && m->out[m->out_tail % WEFT_UCT_SENDS].complete)
        m->out_tail++;
    if (m->out_next == m->out_head)
        l->todo &= ~(unsigned)TODO_OUT;
}

static int enqueue(struct weft_uct *l, const struct xfer *x, bool pull)
{
    struct weft_uct_mail *m = &l->mail;
    while (m->out_tail != m->out_next && m->out[m->out_tail % WEFT_UCT_SENDS].complete)
        m->out_tail++;
    if (m->out_head - m->out_tail == WEFT_UCT_SENDS)
        return -EAGAIN;
    struct weft_uct_outgoing *o = &m->out[m->out_head % WEFT_UCT_SENDS];
    *o = (struct weft_uct_outgoing){.done = {.func = out_done, .count = 1, .status = UCS_OK},
                                    .uct = l,
                                    .from = x->local->address + x->at,
                                    .memh = weft_uct_memh(l, x->local),
                                    .length = x->length,
                                    .id = x->id,
                                    .entry = WEFT_UCT_ENTRIES,
                                    .at = x->at,
                                    .pull = pull};
    for (uint64_t i = 0; i < WEFT_UCT_ENTRIES && pull; i++)
        if (l->exposed[i].region == x->local)
            o->entry = i;
    if (pull && o->entry == WEFT_UCT_ENTRIES)
        return weft_uct_host->fail(-EINVAL, "uct: a rendezvous from memory that is not exposed");
    m->out_head++;
    l->todo |= TODO_OUT;
    send_waiting(l);
    return LATER;
}

int weft_uct_send(struct fabric *fabric, const struct xfer *x)
{
    struct weft_uct *l = (struct weft_uct *)fabric;
    struct weft_uct_mail *m = &l->mail;
    bool rendezvous = x->how & HINT(RENDEZVOUS) && m->pulls;
    if (!l->connected)
        return weft_uct_host->fail(-ENOTCONN, "uct: not connected");
    if (!weft_uct_in_buffer(x))
        return weft_uct_host->fail(-ERANGE, "uct: a message of %zu bytes at %zu of a buffer of %zu",
                                   x->length, x->at, x->local->length);
    /* Messages never overtake each other. */
    if (!rendezvous && x->length <= m->whole_most && m->out_next == m->out_head)
        return send_whole(l, x->local->address + x->at, x->length);
    return enqueue(l, x, rendezvous || (m->pulls && x->length > m->whole_most));
}

/* ---- what the other end tells, and is told ---- */

void weft_uct_mail_bad(struct weft_uct *l)
{
    weft_uct_lose(l, UCS_ERR_IO_ERROR, "it sent what makes no sense");
}

/* Descriptors are pulled in order: the oldest that wait are the ones. */
void weft_uct_mail_pulled(struct weft_uct *l, uint64_t count)
{
    struct weft_uct_mail *m = &l->mail;
    if (count > m->asked)
        return weft_uct_mail_bad(l);
    for (uint64_t i = m->out_tail; i != m->out_next && m->pulled < count; i++) {
        struct weft_uct_outgoing *o = &m->out[i % WEFT_UCT_SENDS];
        if (!o->pull || o->complete)
            continue;
        out_complete(o, 0);
        m->pulled++;
    }
}

static void tell_owed(struct weft_uct *l)
{
    struct weft_uct_mail *m = &l->mail;
    if (m->pulls_told != m->pulls_done) {
        uint64_t count = m->pulls_done;
        if (put(l, PULLED, &count, sizeof count))
            return;
        m->pulls_told = count;
    } else if (m->consumed - m->told >= WEFT_UCT_TELL_EVERY) {
        uint64_t nothing = 0;
        if (put(l, ACK, &nothing, sizeof nothing))
            return;
    }
    l->todo &= ~(unsigned)TODO_OWED;
}

void weft_uct_mail_work(struct weft_uct *l)
{
    if (l->todo & TODO_IN)
        weft_uct_inbox_work(l);
    if (l->todo & TODO_OWED)
        tell_owed(l);
    if (l->todo & TODO_OUT)
        send_waiting(l);
}
