/* SPDX-License-Identifier: BSD-3-Clause */
/* Tagged messages: libfabric matches. They share the window of all messages, so that the other end
 * keeps a bounded number. A synchronous send carries the number of its slot, which the receiver
 * gives back in a note: no provider tells it otherwise that a receive was found. Providers hang or
 * lose the next message after one that was cut off: a longer one says where its bytes are, and the
 * receiver, who knows what it has room for, reads them. */
#include "fabric/ofi/tag.h"

#include <errno.h>
#include <inttypes.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <stdlib.h>
#include <string.h>

enum { TELL_EVERY = WEFT_OFI_WINDOW / 4 };
static const uint32_t is_pull = 1U << 31; /* beside the number of the slot */

/* ---- open and leave ---- */

void weft_ofi_tags_leave(struct weft_ofi *r)
{
    struct weft_ofi_tags *t = r->tags;
    if (!t)
        return;
    memset(t, 0, sizeof *t);
    t->peek.context.what = IS_PEEK;
    char *own = r->arena + r->arena_bytes - (size_t)WEFT_OFI_RECEIVES * WEFT_OFI_TAGGED;
    for (int i = 0; i < WEFT_OFI_RECEIVES; i++) {
        t->receives[i].context.what = IS_TAGGED;
        t->receives[i].own = own + (size_t)i * WEFT_OFI_TAGGED;
        t->receives[i].next = t->free;
        t->free = &t->receives[i];
    }
}

int weft_ofi_tags_open(struct weft_ofi *r)
{
    r->tags = malloc(sizeof *r->tags);
    if (!r->tags)
        return weft_ofi_host->fail(-ENOMEM, "ofi: no memory for tagged messages");
    weft_ofi_tags_leave(r);
    return 0;
}

static int refuse(const struct weft_ofi *r, const struct xfer *x, const char *what)
{
    if (!r->connected)
        return weft_ofi_host->fail(-ENOTCONN, "ofi: not connected");
    if (!r->tags)
        return weft_ofi_host->fail(-ENOTSUP, "ofi: opened without tagged messages");
    if (x->tag & ~weft_ofi_tag_ignore)
        return weft_ofi_host->fail(-EINVAL, "ofi: tag 0x%" PRIx64 " has more than %d bits", x->tag,
                                   CLASS_AT);
    return weft_ofi_host->fail(-ERANGE, "ofi: a %s of %zu bytes at %zu of a buffer of %zu", what,
                               x->length, x->at, x->local->length);
}

static inline bool acceptable(const struct weft_ofi *r, const struct xfer *x)
{
    return r->connected && r->tags && !(x->tag & ~weft_ofi_tag_ignore) && weft_ofi_in_buffer(x);
}

/* ---- out ---- */

/* With the number of its slot, which comes back when it is matched or pulled. */
static int send_numbered(struct weft_ofi *r, struct weft_ofi_slot *slot, const void *from,
                         size_t length, void *desc, uint64_t tag, uint32_t flag)
{
    uint64_t number = (uint64_t)(slot - r->slots) | flag;
    bool inject = length <= r->inject;
    slot->unmatched = true;
    slot->left = inject;
    ssize_t status =
        inject ? fi_tinjectdata(r->ep, from, length, number, r->peer, tag)
               : fi_tsenddata(r->ep, from, length, desc, number, r->peer, tag, &slot->context);
    return weft_ofi_begun(r, slot, status, "a tagged send");
}

static int send_slot(struct weft_ofi *r, const struct xfer *x, uint64_t tag)
{
    struct weft_ofi_slot *slot = weft_ofi_slot_take(r, VERB_TSEND, x->id, x->length);
    char *from = x->local->address + x->at;
    void *desc = weft_ofi_desc(r, x->local);
    if (!slot)
        return -EAGAIN;
    if (x->how & HINT(SYNC))
        return send_numbered(r, slot, from, x->length, desc, tag, 0);
    ssize_t status = fi_tsend(r->ep, from, x->length, desc, r->peer, tag, &slot->context);
    return weft_ofi_begun(r, slot, status, "a tagged send");
}

static int send_pull(struct weft_ofi *r, const struct xfer *x, uint64_t tag)
{
    struct weft_ofi_from where = {.at = x->at, .length = x->length};
    while (where.entry < WEFT_OFI_ENTRIES && r->exposed[where.entry].region != x->local)
        where.entry++;
    if (where.entry == WEFT_OFI_ENTRIES || !r->pulls)
        return weft_ofi_host->fail(-EMSGSIZE,
                                   "ofi: a tagged message of %zu bytes; without reads, or from "
                                   "memory that is not exposed, it may have %d",
                                   x->length, WEFT_OFI_TAGGED);
    struct weft_ofi_slot *slot = weft_ofi_slot_take(r, VERB_TSEND, x->id, x->length);
    if (!slot)
        return -EAGAIN;
    memcpy(slot->small, &where, sizeof where);
    return send_numbered(r, slot, slot->small, sizeof where, r->arena_desc, tag, is_pull);
}

static int send_inject(struct weft_ofi *r, const struct xfer *x, uint64_t tag)
{
    ssize_t status = fi_tinject(r->ep, x->local->address + x->at, x->length, r->peer, tag);
    return status ? weft_ofi_refuse(r, "a tagged send", status) : DONE;
}

int weft_ofi_tsend(struct fabric *fabric, const struct xfer *x)
{
    struct weft_ofi *r = (struct weft_ofi *)fabric;
    struct weft_ofi_mail *m = &r->mail;
    if (!acceptable(r, x))
        return refuse(r, x, "tagged message");
    if (m->sent - m->acked >= WEFT_OFI_WINDOW)
        return -EAGAIN;
    uint64_t tag = weft_ofi_tag_class(CLASS_TAGGED) | x->tag;
    bool inject = x->length <= r->inject && !(x->how & HINT(SYNC));
    int got = x->length > WEFT_OFI_TAGGED ? send_pull(r, x, tag)
              : inject                    ? send_inject(r, x, tag)
                                          : send_slot(r, x, tag);
    if (got >= 0)
        m->sent++;
    return got;
}

int weft_ofi_tags_cancel(struct weft_ofi *r)
{
    int count = 0;
    for (int i = 0; r->tags && i < WEFT_OFI_RECEIVES; i++)
        if (r->tags->receives[i].posted) {
            fi_cancel(&r->ep->fid, &r->tags->receives[i].context);
            count++;
        }
    return count;
}

bool weft_ofi_tag_left(struct weft_ofi_slot *slot)
{
    slot->left = true;
    return !slot->unmatched;
}

bool weft_ofi_note_matched(struct weft_ofi *r, uint64_t number)
{
    struct weft_ofi_slot *slot = number < WEFT_OFI_SLOTS ? &r->slots[number] : NULL;
    if (!slot || !slot->taken || !slot->unmatched)
        return false;
    slot->unmatched = false;
    if (slot->left)
        weft_ofi_slot_done(r, slot, 0);
    return true;
}

/* ---- in ---- */

int weft_ofi_tell_matched(struct weft_ofi *r)
{
    struct weft_ofi_tags *t = r->tags;
    int status = 0;
    while (t && t->owed_tail != t->owed_head && !status) {
        uint64_t number = t->owed[t->owed_tail % WEFT_OFI_SLOTS];
        status = weft_ofi_tell(r, NOTE_MATCHED, &number, sizeof number);
        t->owed_tail += !status;
    }
    return status;
}

/* A sender cannot wait for more than it has slots. */
static void owe(struct weft_ofi *r, uint64_t data)
{
    struct weft_ofi_tags *t = r->tags;
    if (t->owed_head - t->owed_tail == WEFT_OFI_SLOTS)
        return weft_ofi_lose(r, "it has too many tagged messages under way");
    t->owed[t->owed_head++ % WEFT_OFI_SLOTS] = (uint32_t)data;
    r->todo |= TODO_OWED;
}

static void received(struct weft_ofi *r, struct weft_ofi_tagged *receive, int status)
{
    struct weft_ofi_tags *t = r->tags;
    struct weft_ofi_mail *m = &r->mail;
    if (!status && receive->length > receive->room)
        status = weft_ofi_host->fail(-EMSGSIZE,
                                     "ofi: a tagged message of %" PRIu64 " bytes into a buffer "
                                     "of %zu",
                                     receive->length, receive->room);
    *weft_ofi_event(r) = (struct completion){.id = receive->id,
                                             .verb = VERB_TRECV,
                                             .status = status,
                                             .length = receive->length,
                                             .tag = receive->tag};
    receive->next = t->free;
    t->free = receive;
    m->consumed++;
    if (m->consumed - m->told >= TELL_EVERY)
        r->todo |= TODO_OWED;
}

static inline size_t fits(const struct weft_ofi_tagged *receive)
{
    return receive->length < receive->room ? (size_t)receive->length : receive->room;
}

void weft_ofi_tagged_pulled(struct weft_ofi *r, struct weft_ofi_tagged *receive, int status)
{
    owe(r, receive->pull);
    received(r, receive, status);
}

/* Whether it is under way; otherwise it is tried again. What it says lies in its own buffer. */
static bool pull(struct weft_ofi *r, struct weft_ofi_tagged *receive)
{
    struct weft_ofi_from where;
    memcpy(&where, receive->own, sizeof where);
    const struct weft_ofi_remote *from = r->by_entry[where.entry];
    struct weft_ofi_slot *slot = weft_ofi_slot_take(r, VERBS, 0, fits(receive));
    if (!slot)
        return false;
    slot->tagged = receive;
    ssize_t status = fi_read(r->ep, receive->to, fits(receive), weft_ofi_desc(r, receive->region),
                             r->peer, weft_ofi_target(from, where.at), from->rkey, &slot->context);
    if (status)
        weft_ofi_slot_give(r, slot);
    if (status && status != -FI_EAGAIN)
        weft_ofi_lose(r, fi_strerror((int)-status));
    return !status;
}

/* Words of the other end's, checked once, here. */
static void begin_pull(struct weft_ofi *r, struct weft_ofi_tagged *receive, size_t length)
{
    struct weft_ofi_from where;
    if (length != sizeof where)
        return weft_ofi_lose(r, "it sent what makes no sense");
    memcpy(&where, receive->own, sizeof where);
    const struct weft_ofi_remote *from =
        where.entry < WEFT_OFI_ENTRIES ? r->by_entry[where.entry] : NULL;
    if (!from || where.length > from->length || where.at > from->length - where.length)
        return weft_ofi_lose(r, "it sent what makes no sense");
    receive->length = where.length;
    if (!fits(receive))
        return weft_ofi_tagged_pulled(r, receive, 0);
    receive->waits = !pull(r, receive);
    if (receive->waits)
        r->todo |= TODO_TAGGED;
}

void weft_ofi_tagged_work(struct weft_ofi *r)
{
    bool waits = false;
    for (int i = 0; i < WEFT_OFI_RECEIVES; i++) {
        struct weft_ofi_tagged *receive = &r->tags->receives[i];
        if (receive->waits)
            receive->waits = !pull(r, receive);
        waits |= receive->waits;
    }
    if (!waits)
        r->todo &= ~(unsigned)TODO_TAGGED;
}

void weft_ofi_tagged_came(struct weft_ofi *r, struct weft_ofi_tagged *receive,
                          const struct fi_cq_tagged_entry *entry, int status)
{
    receive->posted = false;
    bool numbered = entry->flags & FI_REMOTE_CQ_DATA;
    receive->tag = entry->tag & weft_ofi_tag_ignore;
    receive->length = entry->len;
    receive->pull = entry->data & ~(uint64_t)is_pull;
    if (!status && numbered && entry->data & is_pull)
        return begin_pull(r, receive, entry->len);
    if (!status)
        memcpy(receive->to, receive->own, fits(receive));
    if (numbered)
        owe(r, entry->data);
    received(r, receive, status);
}

int weft_ofi_trecv(struct fabric *fabric, const struct xfer *x)
{
    struct weft_ofi *r = (struct weft_ofi *)fabric;
    struct weft_ofi_tags *t = r->tags;
    if (!acceptable(r, x))
        return refuse(r, x, "tagged receive");
    struct weft_ofi_tagged *receive = t->free;
    if (!receive)
        return -EAGAIN;
    receive->id = x->id;
    receive->room = x->length;
    receive->region = x->local;
    receive->to = x->local->address + x->at;
    ssize_t status = fi_trecv(r->ep, receive->own, WEFT_OFI_TAGGED, r->arena_desc, FI_ADDR_UNSPEC,
                              weft_ofi_tag_class(CLASS_TAGGED) | x->tag,
                              ~x->mask & weft_ofi_tag_ignore, &receive->context);
    if (status)
        return weft_ofi_refuse(r, "a tagged receive", status);
    t->free = receive->next;
    receive->posted = true;
    return LATER;
}

/* ---- a look ---- */

static ssize_t peek(struct weft_ofi *r, const struct xfer *x)
{
    struct weft_ofi_tags *t = r->tags;
    struct fi_msg_tagged msg = {.addr = FI_ADDR_UNSPEC,
                                .tag = weft_ofi_tag_class(CLASS_TAGGED) | x->tag,
                                .ignore = ~x->mask & weft_ofi_tag_ignore,
                                .context = &t->peek.context};
    t->peek.tag = x->tag;
    t->peek.mask = x->mask;
    t->peek.state = PEEK_ASKED;
    return fi_trecvmsg(r->ep, &msg, FI_PEEK | FI_COMPLETION);
}

void weft_ofi_peeked(struct weft_ofi *r, bool found)
{
    r->tags->peek.state = found ? PEEK_FOUND : PEEK_NONE;
}

/* The answer comes through the queue of completions, mostly at once. */
int weft_ofi_tprobe(struct fabric *fabric, const struct xfer *x)
{
    struct weft_ofi *r = (struct weft_ofi *)fabric;
    struct weft_ofi_tags *t = r->tags;
    if (!acceptable(r, x))
        return refuse(r, x, "tagged receive");
    bool other = t->peek.tag != x->tag || t->peek.mask != x->mask;
    if (t->peek.state == PEEK_IDLE || (other && t->peek.state != PEEK_ASKED)) {
        ssize_t status = peek(r, x);
        if (status)
            t->peek.state = PEEK_IDLE;
        if (status == -FI_ENOMSG)
            return -EAGAIN;
        if (status)
            return weft_ofi_refuse(r, "a probe", status);
    }
    if (r->count - r->next < WEFT_OFI_EVENTS / 2)
        weft_ofi_progress(r);
    if (t->peek.state == PEEK_ASKED)
        return -EAGAIN;
    bool found = t->peek.state == PEEK_FOUND && t->peek.tag == x->tag && t->peek.mask == x->mask;
    t->peek.state = PEEK_IDLE;
    return found ? DONE : -EAGAIN;
}
