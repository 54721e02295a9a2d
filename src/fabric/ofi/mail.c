/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages: libfabric's own sends and receives, bounded by a window of what the other end has not
 * consumed. By rendezvous an empty message takes the place in the order, a note says where the
 * bytes are, and the target reads them. Receives are handed out in the order of their posting. */
#include "fabric/ofi/ofi.h"

#include <errno.h>
#include <inttypes.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <stdlib.h>
#include <string.h>

enum { TELL_EVERY = WEFT_OFI_WINDOW / 4, IN_NOTE = WEFT_OFI_ENTRIES };

/* ---- out ---- */

static int refuse(const struct weft_ofi *r, const struct xfer *x, const char *what)
{
    if (!r->connected)
        return weft_ofi_host->fail(-ENOTCONN, "ofi: not connected");
    return weft_ofi_host->fail(-ERANGE, "ofi: a %s of %zu bytes at %zu of a buffer of %zu", what,
                               x->length, x->at, x->local->length);
}

static int send_inline(struct weft_ofi *r, const struct xfer *x)
{
    const char *from = x->local->address + x->at;
    ssize_t status = x->how & HINT(MATCHING) ? fi_tinject(r->ep, from, x->length, r->peer,
                                                          weft_ofi_tag_class(CLASS_MATCHED))
                                             : fi_inject(r->ep, from, x->length, r->peer);
    return status ? weft_ofi_refuse(r, "send", status) : DONE;
}

static int send_later(struct weft_ofi *r, const struct xfer *x)
{
    struct weft_ofi_slot *slot = weft_ofi_slot_take(r, VERB_SEND, x->id, x->length);
    void *desc = weft_ofi_desc(r, x->local);
    char *from = x->local->address + x->at;
    if (!slot)
        return -EAGAIN;
    ssize_t status = x->how & HINT(MATCHING)
                         ? fi_tsend(r->ep, from, x->length, desc, r->peer,
                                    weft_ofi_tag_class(CLASS_MATCHED), &slot->context)
                         : fi_send(r->ep, from, x->length, desc, r->peer, &slot->context);
    return weft_ofi_begun(r, slot, status, "send");
}

/* ---- out by rendezvous ---- */

/* The empty message that says: here belongs what descriptor number so and so is about. */
static void mark(struct weft_ofi *r)
{
    struct weft_ofi_mail *m = &r->mail;
    uint32_t number = (uint32_t)(m->asks - 1);
    ssize_t status = m->mark_matching ? fi_tinjectdata(r->ep, NULL, 0, number, r->peer,
                                                       weft_ofi_tag_class(CLASS_MATCHED))
                                      : fi_injectdata(r->ep, NULL, 0, number, r->peer);
    m->mark_owed = status == -FI_EAGAIN;
    if (m->mark_owed)
        r->todo |= TODO_MARK;
    else
        r->todo &= ~(unsigned)TODO_MARK;
    if (status && !m->mark_owed)
        weft_ofi_lose(r, fi_strerror((int)-status));
}

void weft_ofi_mark_work(struct weft_ofi *r)
{
    mark(r);
}

/* In the note itself, if it is short and the caller does not insist: then we need not poll. */
static int describe(const struct weft_ofi *r, const struct xfer *x, struct weft_ofi_news *news)
{
    news->head.number = r->mail.asks;
    news->head.entry = IN_NOTE;
    news->head.at = x->at;
    news->head.length = x->length;
    if (x->length <= sizeof news->data && !(x->how & HINT(RENDEZVOUS)))
        return weft_ofi_peek(x, news->data);
    for (uint64_t i = 0; i < WEFT_OFI_ENTRIES; i++)
        if (r->exposed[i].region == x->local)
            news->head.entry = i;
    return news->head.entry != IN_NOTE
               ? 0
               : weft_ofi_host->fail(-EINVAL, "ofi: a rendezvous from memory that is not exposed");
}

static int send_pull(struct weft_ofi *r, const struct xfer *x)
{
    struct weft_ofi_mail *m = &r->mail;
    struct weft_ofi_news news;
    if (m->asks - m->pulled == WEFT_OFI_PULLS)
        return -EAGAIN;
    int status = describe(r, x, &news);
    if (status)
        return status;
    bool in_note = news.head.entry == IN_NOTE;
    struct weft_ofi_slot *slot =
        in_note ? NULL : weft_ofi_slot_take(r, VERB_SEND, x->id, x->length);
    if (!slot && !in_note)
        return -EAGAIN;
    status = weft_ofi_tell(r, NOTE_PULL, &news, sizeof news.head + (in_note ? x->length : 0));
    if (status) {
        if (slot)
            weft_ofi_slot_give(r, slot);
        return status;
    }
    m->asked[m->asks++ % WEFT_OFI_PULLS] = slot;
    m->mark_matching = x->how & HINT(MATCHING);
    mark(r);
    return in_note ? DONE : LATER;
}

/* They are pulled in order: the oldest are the ones. */
void weft_ofi_note_pulled(struct weft_ofi *r, uint64_t count)
{
    struct weft_ofi_mail *m = &r->mail;
    if (count > m->asks)
        return weft_ofi_lose(r, "it pulled what was not there");
    for (; m->pulled < count; m->pulled++)
        if (m->asked[m->pulled % WEFT_OFI_PULLS])
            weft_ofi_slot_done(r, m->asked[m->pulled % WEFT_OFI_PULLS], 0);
}

/* Is it longer than what we know every receive has room for, even after a look? */
static inline bool may_be_cut(struct weft_ofi *r, size_t length)
{
    if (__builtin_expect(length <= r->mail.their_room || !r->pulls, 1))
        return false;
    if (r->count - r->next < WEFT_OFI_EVENTS / 2)
        weft_ofi_progress(r);
    return length > r->mail.their_room;
}

int weft_ofi_send(struct fabric *fabric, const struct xfer *x)
{
    struct weft_ofi *r = (struct weft_ofi *)fabric;
    struct weft_ofi_mail *m = &r->mail;
    if (!r->connected || !weft_ofi_in_buffer(x))
        return refuse(r, x, "message");
    if (x->how & HINT(INLINE) && x->local->gpu)
        return weft_ofi_host->fail(-ENOTSUP, "ofi: immediate data cannot come from GPU memory");
    if (x->how & HINT(INLINE) && x->length > r->inject)
        return weft_ofi_host->fail(-EMSGSIZE, "ofi: %zu bytes inline, and %s takes %zu", x->length,
                                   r->port.name, r->inject);
    if (m->sent - m->acked >= WEFT_OFI_WINDOW || m->mark_owed)
        return -EAGAIN;
    bool pulls = x->how & HINT(RENDEZVOUS) || may_be_cut(r, x->length);
    int got = pulls                   ? send_pull(r, x)
              : x->how & HINT(INLINE) ? send_inline(r, x)
                                      : send_later(r, x);
    if (got >= 0)
        m->sent++;
    return got;
}

/* ---- in ---- */

/* As long as every receive that is posted has room for it, so much may be sent outright. */
static void raise_room(struct weft_ofi *r, size_t room)
{
    struct weft_ofi_mail *m = &r->mail;
    for (uint64_t i = m->filled; i != m->posted; i++) {
        const struct weft_ofi_receive *other = &m->receives[i % WEFT_OFI_RECEIVES];
        if ((other->in_own ? other->own_room : other->room) < room)
            return;
    }
    m->room = room;
    r->todo |= TODO_OWED;
}

static int take_own(struct weft_ofi *r, struct weft_ofi_receive *receive, size_t room)
{
    if (receive->own_room >= room)
        return 0;
    int status = weft_ofi_host->memory_enough(room);
    if (status)
        return status;
    if (receive->own_mr)
        fi_close(&receive->own_mr->fid);
    receive->own_mr = NULL;
    receive->own_room = 0;
    free(receive->own);
    receive->own = malloc(room);
    if (!receive->own)
        return weft_ofi_host->fail(-ENOMEM, "ofi: no memory for a receive of %zu bytes", room);
    status = r->local_mr ? weft_ofi_register(r, receive->own, room, NULL, FI_SEND | FI_RECV,
                                             &receive->own_mr)
                         : 0;
    receive->own_room = status ? 0 : room;
    return status;
}

void weft_ofi_mail_leave(struct weft_ofi *r)
{
    for (int i = 0; i < WEFT_OFI_RECEIVES; i++) {
        if (r->mail.receives[i].own_mr)
            fi_close(&r->mail.receives[i].own_mr->fid);
        free(r->mail.receives[i].own);
    }
    r->mail = (struct weft_ofi_mail){0};
    for (int i = 0; i < WEFT_OFI_RECEIVES; i++)
        r->mail.receives[i].context.what = IS_RECEIVE;
}

static ssize_t post(struct weft_ofi *r, struct weft_ofi_receive *receive, unsigned how)
{
    void *to = receive->in_own ? receive->own : receive->to;
    size_t room = receive->in_own ? receive->own_room : receive->room;
    void *desc = !receive->in_own  ? weft_ofi_desc(r, receive->region)
                 : receive->own_mr ? fi_mr_desc(receive->own_mr)
                                   : NULL;
    return how & HINT(MATCHING)
               ? fi_trecv(r->ep, to, room, desc, FI_ADDR_UNSPEC, weft_ofi_tag_class(CLASS_MATCHED),
                          weft_ofi_tag_ignore, &receive->context)
               : fi_recv(r->ep, to, room, desc, FI_ADDR_UNSPEC, &receive->context);
}

int weft_ofi_recv(struct fabric *fabric, const struct xfer *x)
{
    struct weft_ofi *r = (struct weft_ofi *)fabric;
    struct weft_ofi_mail *m = &r->mail;
    if (!r->connected || !weft_ofi_in_buffer(x))
        return refuse(r, x, "receive");
    if (m->posted - m->filled == WEFT_OFI_RECEIVES)
        return -EAGAIN;
    struct weft_ofi_receive *receive = &m->receives[m->posted % WEFT_OFI_RECEIVES];
    if (x->length > m->room && r->pulls)
        raise_room(r, x->length);
    receive->in_own = x->length < m->room;
    int status = receive->in_own ? take_own(r, receive, m->room) : 0;
    if (status)
        return status;
    receive->state = POSTED;
    receive->region = x->local;
    receive->to = x->local->address + x->at;
    receive->room = x->length;
    receive->id = x->id;
    receive->pulled = false;
    receive->status = 0;
    ssize_t posted = post(r, receive, x->how);
    if (posted)
        return weft_ofi_refuse(r, "receive", posted);
    m->posted++;
    return LATER;
}

void weft_ofi_release(struct weft_ofi *r)
{
    struct weft_ofi_mail *m = &r->mail;
    while (m->filled != m->posted) {
        struct weft_ofi_receive *receive = &m->receives[m->filled % WEFT_OFI_RECEIVES];
        if (receive->state != FILLED)
            break;
        *weft_ofi_event(r) = (struct completion){.id = receive->id,
                                                 .verb = VERB_RECV,
                                                 .status = receive->status,
                                                 .length = receive->length};
        m->filled++;
        m->consumed++;
        if (receive->pulled) {
            m->pulls_done++;
            r->todo |= TODO_OWED;
        }
    }
    if (m->consumed - m->told >= TELL_EVERY)
        r->todo |= TODO_OWED;
}

static int too_long(const struct weft_ofi_receive *receive, uint64_t length)
{
    return weft_ofi_host->fail(-EMSGSIZE,
                               "ofi: a message of %" PRIu64 " bytes into a buffer of %zu", length,
                               receive->room);
}

void weft_ofi_receive_failed(struct weft_ofi *r, struct weft_ofi_receive *receive, uint64_t length,
                             int status)
{
    receive->state = FILLED;
    receive->length = length;
    receive->status = status == -EMSGSIZE ? too_long(receive, length) : status;
    weft_ofi_release(r);
}

void weft_ofi_received(struct weft_ofi *r, struct weft_ofi_receive *receive,
                       const struct fi_cq_tagged_entry *entry)
{
    if (__builtin_expect(entry->flags & FI_REMOTE_CQ_DATA, 0)) {
        receive->state = TO_PULL;
        receive->pull = (uint32_t)entry->data;
        r->todo |= TODO_PULL;
        return;
    }
    receive->state = FILLED;
    receive->length = entry->len;
    if (receive->in_own) {
        bool fits = entry->len <= receive->room;
        receive->status = weft_ofi_fill(receive->region, receive->to, receive->own,
                                        fits ? entry->len : receive->room);
        if (!fits)
            receive->status = too_long(receive, entry->len);
    }
    weft_ofi_release(r);
}

/* ---- in by rendezvous ---- */

bool weft_ofi_note_news(struct weft_ofi *r, const void *note, size_t length)
{
    struct weft_ofi_news news;
    if (length < sizeof news.head || length > sizeof news)
        return false;
    memcpy(&news, note, length);
    const struct weft_ofi_remote *from =
        news.head.entry < WEFT_OFI_ENTRIES ? r->by_entry[news.head.entry] : NULL;
    bool sound = news.head.entry == IN_NOTE ? news.head.length == length - sizeof news.head
                                            : from && news.head.length <= from->length &&
                                                  news.head.at <= from->length - news.head.length;
    if (!sound)
        return false;
    /* From one on, so that nothing which was never said has a number. */
    struct weft_ofi_news *kept = &r->mail.news[news.head.number++ % WEFT_OFI_PULLS];
    *kept = news;
    r->todo |= TODO_PULL;
    return true;
}

static ssize_t begin_read(struct weft_ofi *r, struct weft_ofi_receive *receive,
                          const struct weft_ofi_news *news, uint64_t length)
{
    const struct weft_ofi_remote *from = r->by_entry[news->head.entry];
    struct weft_ofi_slot *slot = weft_ofi_slot_take(r, VERBS, 0, length);
    if (!slot)
        return -FI_EAGAIN;
    slot->receive = receive;
    ssize_t status = fi_read(r->ep, receive->to, length, weft_ofi_desc(r, receive->region), r->peer,
                             weft_ofi_target(from, news->head.at), from->rkey, &slot->context);
    if (status)
        weft_ofi_slot_give(r, slot);
    return status;
}

/* Whether it is here or under way; otherwise it is tried again. */
static bool pull(struct weft_ofi *r, struct weft_ofi_receive *receive)
{
    const struct weft_ofi_news *news = &r->mail.news[receive->pull % WEFT_OFI_PULLS];
    if ((uint32_t)(news->head.number - 1) != receive->pull || !news->head.number)
        return false;
    uint64_t length = news->head.length, fits = length < receive->room ? length : receive->room;
    bool reads = fits && news->head.entry != IN_NOTE;
    ssize_t status = reads ? begin_read(r, receive, news, fits) : 0;
    if (status && status != -FI_EAGAIN)
        weft_ofi_lose(r, fi_strerror((int)-status));
    if (status)
        return false;
    receive->status = reads ? 0 : weft_ofi_fill(receive->region, receive->to, news->data, fits);
    receive->state = reads ? PULLING : FILLED;
    receive->pulled = true;
    receive->length = length;
    if (fits < length)
        receive->status = too_long(receive, length);
    return true;
}

void weft_ofi_pull_work(struct weft_ofi *r)
{
    struct weft_ofi_mail *m = &r->mail;
    bool waits = false;
    for (uint64_t i = m->filled; i != m->posted; i++) {
        struct weft_ofi_receive *receive = &m->receives[i % WEFT_OFI_RECEIVES];
        if (receive->state == TO_PULL && !pull(r, receive))
            waits = true;
    }
    if (!waits)
        r->todo &= ~(unsigned)TODO_PULL;
    weft_ofi_release(r);
}
