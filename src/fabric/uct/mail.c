/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of any size on active messages. A message is a packet, or a first one and more, or a
 * descriptor by which the target pulls it. Packets go in order; each costs units, of which a window
 * may be on its way: what has no receive yet is kept aside, and cannot grow beyond that. Their
 * first word says what a packet is and how many units its sender has consumed. */
#include "fabric/uct/uct.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum kind { HELLO, WHOLE, FIRST, MORE, PULL, PULLED, ACK, WITHDRAWN };
enum {
    KIND_BITS = 8,
    HEAD = sizeof(uint64_t),
    UNIT = 4096,
    WINDOW = 256,
    TELL_EVERY = WINDOW / 4,
    FRAGMENT_MOST = 64 << 10,
    PIECES = 8,          /* a poll sends so many, */
    PULL_MOST = 64 << 20 /* and pulls so much */
};

/* What a descriptor says: which of the sender's regions, and where in it. */
struct news {
    uint64_t entry, at, length;
};

static inline uint64_t units(size_t length)
{
    return 1 + length / UNIT;
}

static inline bool room_for(const struct lane_mail *m, size_t length)
{
    return m->sent - m->acked + units(length) <= WINDOW;
}

static inline uint64_t head_of(const struct lane_mail *m, enum kind kind)
{
    return m->consumed << KIND_BITS | (uint64_t)kind;
}

void lane_mail_open(struct lane *l, const char *nonce)
{
    struct lane_mail *m = &l->mail;
    m->word = 14695981039346656037U;
    for (const char *at = nonce; *at; at++)
        m->word = (m->word ^ (unsigned char)*at) * 1099511628211U;
    m->zcopy = l->am_max[LAYOUT_ZCOPY] > 2 * HEAD && l->port.attr.cap.am.max_hdr >= 2 * HEAD;
    m->whole_most = l->am_max[LAYOUT_BCOPY] > HEAD ? l->am_max[LAYOUT_BCOPY] - HEAD : 0;
    size_t most = l->am_max[m->zcopy ? LAYOUT_ZCOPY : LAYOUT_BCOPY];
    most = most < FRAGMENT_MOST ? most : FRAGMENT_MOST;
    m->fragment_most = most > 2 * HEAD ? most - 2 * HEAD : 0;
    m->last = &m->first;
}

void lane_mail_close(struct lane *l)
{
    while (l->mail.first) {
        struct lane_packet *packet = l->mail.first;
        l->mail.first = packet->next;
        free(packet);
    }
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

static ucs_status_t put_bcopy(struct lane *l, struct parcel *parcel)
{
    ssize_t packed = uct_ep_am_bcopy(l->ep, LANE_MAIL, pack, parcel, 0);
    return packed < 0 ? (ucs_status_t)packed : UCS_OK;
}

/* One packet that needs no waiting for: 0, or -EAGAIN, or lost. */
static inline int put(struct lane *l, enum kind kind, const void *data, size_t length)
{
    struct lane_mail *m = &l->mail;
    uint64_t head = head_of(m, kind);
    ucs_status_t status;
    if (HEAD + length <= l->am_max[LAYOUT_SHORT]) {
        status = uct_ep_am_short(l->ep, LANE_MAIL, head, data, (unsigned)length);
    } else {
        struct parcel parcel = {.head = {head}, .head_bytes = HEAD, .data = data, .length = length};
        status = put_bcopy(l, &parcel);
    }
    if (status == UCS_OK) {
        m->told = m->consumed;
        return 0;
    }
    return status == UCS_ERR_NO_RESOURCE ? -EAGAIN : lane_refuse(l, "send", status);
}

int lane_mail_hello(struct lane *l)
{
    struct lane_mail *m = &l->mail;
    int status = m->said ? 0 : put(l, HELLO, &m->word, sizeof m->word);
    if (status && status != -EAGAIN)
        return status;
    m->said |= !status;
    return m->said && m->heard ? DONE : LATER;
}

/* If there is no room for it, it is not told: whoever leaves does not wait. */
void lane_mail_withdrawn(struct lane *l, uint64_t entry)
{
    put(l, WITHDRAWN, &entry, sizeof entry);
}

/* ---- messages out ---- */

static void out_complete(struct lane_outgoing *o, int status)
{
    o->complete = true;
    *lane_event(o->lane) =
        (struct completion){.id = o->id, .verb = VERB_SEND, .status = status, .length = o->length};
}

static void out_done(uct_completion_t *done)
{
    struct lane_outgoing *o = (struct lane_outgoing *)done;
    out_complete(o, done->status == UCS_OK ? 0 : lane_refuse(o->lane, "send", done->status));
}

static ucs_status_t put_fragment(struct lane *l, struct lane_outgoing *o, size_t piece)
{
    struct parcel parcel = {.head = {head_of(&l->mail, o->moved ? MORE : FIRST), o->length},
                            .head_bytes = o->moved ? HEAD : 2 * HEAD,
                            .data = o->from + o->moved,
                            .length = piece};
    if (!l->mail.zcopy)
        return put_bcopy(l, &parcel);
    uct_iov_t iov = {
        .buffer = (void *)(uintptr_t)parcel.data, .length = piece, .memh = o->memh, .count = 1};
    o->done.count++;
    ucs_status_t status = uct_ep_am_zcopy(l->ep, LANE_MAIL, parcel.head,
                                          (unsigned)parcel.head_bytes, &iov, 1, 0, &o->done);
    if (status != UCS_INPROGRESS)
        o->done.count--;
    return status == UCS_INPROGRESS ? UCS_OK : status;
}

/* DONE: all of it is on its way. */
static int send_fragments(struct lane *l, struct lane_outgoing *o, int *pieces)
{
    struct lane_mail *m = &l->mail;
    while (o->moved < o->length) {
        size_t left = o->length - o->moved;
        size_t piece = left < m->fragment_most ? left : m->fragment_most;
        if (!room_for(m, piece) || --*pieces < 0)
            return LATER;
        ucs_status_t status = put_fragment(l, o, piece);
        if (status == UCS_ERR_NO_RESOURCE)
            return LATER;
        if (status != UCS_OK)
            return lane_refuse(l, "send", status);
        m->told = m->consumed;
        m->sent += units(piece);
        o->moved += piece;
    }
    return DONE;
}

static int send_pull(struct lane *l, const struct lane_outgoing *o)
{
    struct lane_mail *m = &l->mail;
    struct news news = {.entry = o->entry, .at = o->at, .length = o->length};
    if (!room_for(m, 0))
        return LATER;
    int status = put(l, PULL, &news, sizeof news);
    if (status)
        return status == -EAGAIN ? LATER : status;
    m->sent += units(0);
    m->asked++;
    return DONE;
}

static int send_whole(struct lane *l, const char *from, size_t length)
{
    struct lane_mail *m = &l->mail;
    if (!room_for(m, length))
        return -EAGAIN;
    int status = put(l, WHOLE, from, length);
    if (status)
        return status;
    m->sent += units(length);
    return DONE;
}

/* As far as the oldest that waits can go now. */
static int advance(struct lane *l, struct lane_outgoing *o, int *pieces)
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

static void send_waiting(struct lane *l)
{
    struct lane_mail *m = &l->mail;
    int pieces = PIECES;
    while (m->out_next != m->out_head) {
        struct lane_outgoing *o = &m->out[m->out_next % LANE_SENDS];
        int status = advance(l, o, &pieces);
        if (status == LATER)
            break;
        if (status < 0) {
            out_complete(o, status);
            lane_lose(l, UCS_ERR_IO_ERROR, "a message could not be sent");
        }
        m->out_next++;
    }
    while (m->out_tail != m->out_next && m->out[m->out_tail % LANE_SENDS].complete)
        m->out_tail++;
    if (m->out_next == m->out_head)
        l->todo &= ~(unsigned)TODO_OUT;
}

static int enqueue(struct lane *l, const struct xfer *x, bool pull)
{
    struct lane_mail *m = &l->mail;
    while (m->out_tail != m->out_next && m->out[m->out_tail % LANE_SENDS].complete)
        m->out_tail++;
    if (m->out_head - m->out_tail == LANE_SENDS)
        return -EAGAIN;
    struct lane_outgoing *o = &m->out[m->out_head % LANE_SENDS];
    *o = (struct lane_outgoing){.done = {.func = out_done, .count = 1, .status = UCS_OK},
                                .lane = l,
                                .from = x->local->address + x->at,
                                .memh = lane_memh(l, x->local),
                                .length = x->length,
                                .id = x->id,
                                .entry = LANE_ENTRIES,
                                .at = x->at,
                                .pull = pull};
    for (uint64_t i = 0; i < LANE_ENTRIES && pull; i++)
        if (l->exposed[i].region == x->local)
            o->entry = i;
    if (pull && o->entry == LANE_ENTRIES)
        return lane_host->fail(-EINVAL, "uct: a rendezvous from memory that is not exposed");
    m->out_head++;
    l->todo |= TODO_OUT;
    send_waiting(l);
    return LATER;
}

int lane_send(struct fabric *fabric, const struct xfer *x)
{
    struct lane *l = (struct lane *)fabric;
    struct lane_mail *m = &l->mail;
    bool rendezvous = x->how & HINT(RENDEZVOUS) && m->pulls;
    if (!l->connected || !lane_in_buffer(x))
        return lane_host->fail(-ERANGE, "uct: a message of %zu bytes at %zu of a buffer of %zu",
                               x->length, x->at, x->local->length);
    /* Messages never overtake each other. */
    if (!rendezvous && x->length <= m->whole_most && m->out_next == m->out_head)
        return send_whole(l, x->local->address + x->at, x->length);
    return enqueue(l, x, rendezvous || (m->pulls && x->length > m->whole_most));
}

/* ---- messages in ---- */

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
    m->consumed += units(length);
    if (m->consumed - m->told >= TELL_EVERY)
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

static void protocol_error(struct lane *l)
{
    lane_lose(l, UCS_ERR_IO_ERROR, "it sent what makes no sense");
}

static void take_fragment(struct lane *l, enum kind kind, const char *data, size_t length)
{
    struct lane_mail *m = &l->mail;
    uint64_t total;
    if (kind == FIRST) {
        if (m->coming || length < sizeof total)
            return protocol_error(l);
        memcpy(&total, data, sizeof total);
        m->total = total;
        m->got = 0;
        m->coming = true;
        data += sizeof total;
        length -= sizeof total;
    }
    if (!m->coming || length > m->total - m->got)
        return protocol_error(l);
    fill(m, m->got, data, length);
    m->got += length;
    consumed(l, length);
    m->coming = m->got < m->total;
    if (!m->coming)
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
    struct news news = {.entry = LANE_ENTRIES};
    if (length == sizeof news)
        memcpy(&news, data, sizeof news);
    const struct lane_remote *r = news.entry < LANE_ENTRIES ? l->by_entry[news.entry] : NULL;
    if (!r || news.length > r->length || news.at > r->length - news.length) {
        protocol_error(l);
        return LATER;
    }
    size_t room = m->receives[slot].length, fits = news.length < room ? news.length : room;
    size_t left = fits - m->got, piece = left < PULL_MOST ? left : PULL_MOST;
    if (piece && uct_ep_get_bcopy(l->ep, unpack, m->receives[slot].to + m->got, piece,
                                  r->base + news.at + m->got, r->rkey, NULL) != UCS_OK) {
        protocol_error(l);
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
static void take_kept(struct lane *l)
{
    struct lane_mail *m = &l->mail;
    while (m->first && (m->coming || m->filled != m->posted)) {
        struct lane_packet *packet = m->first;
        uint64_t head;
        memcpy(&head, packet->data, HEAD);
        enum kind kind = (enum kind)(head & ((1U << KIND_BITS) - 1));
        const char *data = packet->data + HEAD;
        size_t length = packet->length - HEAD;
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

/* ---- what the other end tells ---- */

/* Descriptors are pulled in order: the oldest that wait are the ones. */
static void note_pulled(struct lane *l, uint64_t count)
{
    struct lane_mail *m = &l->mail;
    if (count > m->asked)
        return protocol_error(l);
    for (uint64_t i = m->out_tail; i != m->out_next && m->pulled < count; i++) {
        struct lane_outgoing *o = &m->out[i % LANE_SENDS];
        if (!o->pull || o->complete)
            continue;
        out_complete(o, 0);
        m->pulled++;
    }
}

static void heed(struct lane *l, enum kind kind, const char *data, size_t length)
{
    struct lane_mail *m = &l->mail;
    uint64_t word = 0;
    if (length != sizeof word)
        return protocol_error(l);
    memcpy(&word, data, sizeof word);
    switch (kind) {
    case HELLO:
        m->heard |= word == m->word;
        break;
    case PULLED:
        note_pulled(l, word);
        break;
    case WITHDRAWN:
        if (word < LANE_ENTRIES)
            l->notice.alive[word] = 0;
        break;
    case ACK:
        break;
    default:
        protocol_error(l);
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
        protocol_error(l);
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
    } else if (kind == WHOLE) {
        fill(m, 0, body, length - HEAD);
        consumed(l, length - HEAD);
        filled(l, length - HEAD);
    } else {
        take_fragment(l, kind, body, length - HEAD);
    }
    return UCS_OK;
}

static void tell_owed(struct lane *l)
{
    struct lane_mail *m = &l->mail;
    if (m->pulls_told != m->pulls_done) {
        uint64_t count = m->pulls_done;
        if (put(l, PULLED, &count, sizeof count))
            return;
        m->pulls_told = count;
    } else if (m->consumed - m->told >= TELL_EVERY) {
        uint64_t nothing = 0;
        if (put(l, ACK, &nothing, sizeof nothing))
            return;
    }
    l->todo &= ~(unsigned)TODO_OWED;
}

void lane_mail_work(struct lane *l)
{
    if (l->todo & TODO_IN)
        take_kept(l);
    if (l->todo & TODO_OWED)
        tell_owed(l);
    if (l->todo & TODO_OUT)
        send_waiting(l);
}
