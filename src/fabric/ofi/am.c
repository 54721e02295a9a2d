/* SPDX-License-Identifier: BSD-3-Clause */
/* Active messages: tagged, into buffers that the receiver keeps posted, so that nothing is copied
 * there. A sender never has more on its way than there are buffers. */
#include "fabric/ofi/ofi.h"

#include <errno.h>
#include <rdma/fi_tagged.h>
#include <string.h>

enum { HEADER = sizeof(uint64_t) };

/* ---- in ---- */

static ssize_t post(struct weft_ofi *r, struct weft_ofi_bounce *in)
{
    in->filled = false;
    return fi_trecv(r->ep, in->data, WEFT_OFI_BOUNCE, r->arena_desc, FI_ADDR_UNSPEC,
                    weft_ofi_tag_class(CLASS_AM), weft_ofi_tag_ignore, &in->context);
}

int weft_ofi_am_open(struct weft_ofi *r)
{
    for (int i = 0; i < WEFT_OFI_ARRIVALS; i++) {
        ssize_t status = post(r, &r->post.in[i]);
        if (status)
            return weft_ofi_refuse(r, "a receive", status);
    }
    return 0;
}

/* Buffers fill in the order of their posting, but a long message may be complete after a short one
 * that came later. */
void weft_ofi_am_arrived(struct weft_ofi *r, struct weft_ofi_bounce *in,
                         const struct fi_cq_tagged_entry *entry)
{
    struct weft_ofi_post *p = &r->post;
    weft_ofi_heed_tag(r, entry->tag);
    in->length = entry->len;
    in->filled = true;
    while (p->arrived - p->recycled < WEFT_OFI_ARRIVALS) {
        const struct weft_ofi_bounce *first = &p->in[p->arrived % WEFT_OFI_ARRIVALS];
        if (!first->filled)
            return;
        struct completion *event = weft_ofi_event(r);
        *event = (struct completion){
            .verb = VERB_ARRIVAL, .length = first->length, .data = r->looks ? first->data : NULL};
        if (first->length >= HEADER)
            memcpy(&event->id, first->data, HEADER);
        p->arrived++;
    }
}

void weft_ofi_am_recycle(struct weft_ofi *r)
{
    enum { TELL_EVERY = WEFT_OFI_ARRIVALS / 4 };
    struct weft_ofi_post *p = &r->post;
    while (p->recycled != p->handed) {
        ssize_t status = post(r, &p->in[p->recycled % WEFT_OFI_ARRIVALS]);
        if (status == -FI_EAGAIN)
            return;
        if (status)
            weft_ofi_lose(r, "no receive for active messages");
        p->recycled++;
    }
    r->todo &= ~(unsigned)TODO_GIVEN;
    if (p->recycled - p->told >= TELL_EVERY)
        r->todo |= TODO_OWED;
}

/* ---- out ---- */

static int pack(char *to, const struct xfer *x)
{
    if (x->header_bytes) {
        memcpy(to, &x->header, HEADER);
        memset(to + HEADER, 0, x->header_bytes - HEADER);
    }
    return weft_ofi_peek(x, to + x->header_bytes);
}

static int am_short(struct weft_ofi *r, const struct xfer *x)
{
    char packed[WEFT_OFI_HEADER_MAX];
    const char *from = x->local->address + x->at;
    size_t length = x->header_bytes + x->length;
    if (x->local->gpu && x->length)
        return weft_ofi_host->fail(-ENOTSUP, "ofi: a short message cannot come from GPU memory");
    if (x->header_bytes) {
        pack(packed, x);
        from = packed;
    }
    ssize_t status = fi_tinject(r->ep, from, length, r->peer, weft_ofi_tag(r, CLASS_AM, 0));
    return status ? weft_ofi_refuse(r, "am", status) : DONE;
}

/* Its completion is waited for, though the source is free at once: a long message may be fetched by
 * the other end, while we poll. */
static int am_bcopy(struct weft_ofi *r, const struct xfer *x)
{
    struct weft_ofi_slot *slot = weft_ofi_slot_take(r, VERB_AM, x->id, x->length);
    if (!slot)
        return -EAGAIN;
    if (!weft_ofi_slot_bounce(r, slot)) {
        weft_ofi_slot_give(r, slot);
        return -EAGAIN;
    }
    int packed = pack(slot->bounce, x);
    if (packed) {
        weft_ofi_slot_give(r, slot);
        return packed;
    }
    ssize_t status = fi_tsend(r->ep, slot->bounce, x->header_bytes + x->length, r->arena_desc,
                              r->peer, weft_ofi_tag(r, CLASS_AM, 0), &slot->context);
    return weft_ofi_begun(r, slot, status, "am");
}

static int am_zcopy(struct weft_ofi *r, const struct xfer *x)
{
    struct iovec iov[2];
    void *desc[2];
    size_t count = 0;
    struct weft_ofi_slot *slot = weft_ofi_slot_take(r, VERB_AM, x->id, x->length);
    if (!slot)
        return -EAGAIN;
    if (x->header_bytes) {
        if (!weft_ofi_slot_bounce(r, slot)) {
            weft_ofi_slot_give(r, slot);
            return -EAGAIN;
        }
        memcpy(slot->bounce, &x->header, HEADER);
        memset(slot->bounce + HEADER, 0, x->header_bytes - HEADER);
        iov[0] = (struct iovec){.iov_base = slot->bounce, .iov_len = x->header_bytes};
        desc[count++] = r->arena_desc;
    }
    iov[count] = (struct iovec){.iov_base = x->local->address + x->at, .iov_len = x->length};
    desc[count++] = weft_ofi_desc(r, x->local);
    ssize_t status =
        fi_tsendv(r->ep, iov, desc, count, r->peer, weft_ofi_tag(r, CLASS_AM, 0), &slot->context);
    return weft_ofi_begun(r, slot, status, "am");
}

/* LAYOUTS: none takes it. */
static inline enum layout layout_of(const struct weft_ofi *r, const struct xfer *x)
{
    unsigned asked = x->how & (HINT(SHORT) | HINT(BCOPY) | HINT(ZCOPY));
    size_t total = x->header_bytes + x->length;
    if ((!asked || asked & HINT(SHORT)) && total <= r->inject && total <= WEFT_OFI_HEADER_MAX)
        return LAYOUT_SHORT;
    if ((!asked || asked & HINT(BCOPY)) && total <= WEFT_OFI_BOUNCE)
        return LAYOUT_BCOPY;
    if ((!asked || asked & HINT(ZCOPY)) && total <= WEFT_OFI_BOUNCE &&
        x->header_bytes <= WEFT_OFI_HEADER_MAX)
        return LAYOUT_ZCOPY;
    return LAYOUTS;
}

static int refuse_am(const struct weft_ofi *r, const struct xfer *x)
{
    if (!weft_ofi_in_buffer(x))
        return weft_ofi_host->fail(-ERANGE, "ofi: a message of %zu bytes at %zu of a buffer of %zu",
                                   x->length, x->at, x->local->length);
    if (!r->connected)
        return weft_ofi_host->fail(-ENOTCONN, "ofi: not connected");
    return weft_ofi_host->fail(
        -EMSGSIZE,
        "ofi: %s has no active message of %zu bytes and a header of %zu in this "
        "layout",
        r->port.name, x->length, x->header_bytes);
}

int weft_ofi_am(struct fabric *fabric, const struct xfer *x)
{
    struct weft_ofi *r = (struct weft_ofi *)fabric;
    enum layout layout = layout_of(r, x);
    if (!weft_ofi_in_buffer(x) || !r->connected || layout == LAYOUTS)
        return refuse_am(r, x);
    if (r->post.sent - r->post.acked >= WEFT_OFI_ARRIVALS)
        return -EAGAIN;
    int got = layout == LAYOUT_SHORT   ? am_short(r, x)
              : layout == LAYOUT_BCOPY ? am_bcopy(r, x)
                                       : am_zcopy(r, x);
    if (got >= 0) {
        r->post.sent++;
        weft_ofi_told(r);
    }
    return got;
}
