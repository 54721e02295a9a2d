/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes and reads. Delivery is asked for with every write: without it some providers complete a
 * write that is not there yet. */
#include "fabric/ofi/ofi.h"

#include <errno.h>
#include <inttypes.h>
#include <rdma/fi_rma.h>
#include <string.h>

/* ---- what is refused ---- */

bool weft_ofi_acceptable(const struct xfer *x)
{
    const struct weft_ofi_remote *m = x->remote->own;
    return m && m->alive == x->remote->key && x->length <= m->length &&
           x->remote_at <= m->length - x->length && weft_ofi_in_buffer(x);
}

int weft_ofi_unacceptable(const struct xfer *x)
{
    const struct weft_ofi_remote *m = x->remote->own;
    if (!m)
        return weft_ofi_host->fail(-ENOTCONN, "ofi: not connected");
    if (m->alive != x->remote->key)
        return weft_ofi_host->fail(-ENOENT, "ofi: no region of the target has key 0x%" PRIx64,
                                   x->remote->key);
    if (!weft_ofi_in_buffer(x))
        return weft_ofi_host->fail(-ERANGE, "ofi: %zu bytes at %zu of a buffer of %zu", x->length,
                                   x->at, x->local->length);
    return weft_ofi_host->fail(-ERANGE, "ofi: %zu bytes at %zu, the target's region has %zu",
                               x->length, x->remote_at, m->length);
}

static int too_long(const struct weft_ofi *r, const struct xfer *x, const char *what, size_t most)
{
    return weft_ofi_host->fail(-EMSGSIZE, "ofi: a %s of %zu bytes on %s, which takes %zu so", what,
                               x->length, r->port.name, most);
}

/* ---- write ---- */

static inline ssize_t put(struct weft_ofi *r, const struct xfer *x, struct weft_ofi_slot *slot,
                          uint64_t flags)
{
    const struct weft_ofi_remote *m = x->remote->own;
    struct iovec iov = {.iov_base = x->local->address + x->at, .iov_len = x->length};
    void *desc = slot->bounce ? r->arena_desc : weft_ofi_desc(r, x->local);
    struct fi_rma_iov to = {
        .addr = weft_ofi_target(m, x->remote_at), .len = x->length, .key = m->rkey};
    struct fi_msg_rma msg = {.msg_iov = &iov,
                             .desc = &desc,
                             .iov_count = 1,
                             .addr = r->peer,
                             .rma_iov = &to,
                             .rma_iov_count = 1,
                             .context = &slot->context};
    if (slot->bounce)
        iov.iov_base = slot->bounce;
    return fi_writemsg(r->ep, &msg, FI_DELIVERY_COMPLETE | FI_COMPLETION | flags);
}

int weft_ofi_write(struct fabric *fabric, const struct xfer *x)
{
    struct weft_ofi *r = (struct weft_ofi *)fabric;
    bool inject = x->how & (HINT(INLINE) | HINT(SHORT)), bounce = x->how & HINT(BCOPY);
    if (!weft_ofi_acceptable(x))
        return weft_ofi_unacceptable(x);
    if (inject && x->local->gpu)
        return weft_ofi_host->fail(-ENOTSUP, "ofi: immediate data cannot come from GPU memory");
    if ((inject && x->length > r->inject) || (bounce && x->length > WEFT_OFI_BOUNCE))
        return too_long(r, x, "write", inject ? r->inject : WEFT_OFI_BOUNCE);
    if (!x->length)
        return DONE;
    /* Order that the provider does not keep is kept by waiting. */
    if (!r->waw && r->orders && !(x->how & HINT(RESTRICTED)))
        return -EAGAIN;
    struct weft_ofi_slot *slot = weft_ofi_slot_take(r, VERB_WRITE, x->id, x->length);
    if (!slot)
        return -EAGAIN;
    slot->remote = x->remote->own;
    slot->orders = true;
    r->orders++;
    if (bounce && !weft_ofi_slot_bounce(r, slot)) {
        weft_ofi_slot_give(r, slot);
        return -EAGAIN;
    }
    int status = bounce ? weft_ofi_peek(x, slot->bounce) : 0;
    if (status) {
        weft_ofi_slot_give(r, slot);
        return status;
    }
    uint64_t flags = inject ? FI_INJECT : 0;
    return weft_ofi_begun(r, slot, put(r, x, slot, flags | weft_ofi_more(x)), "write");
}

/* ---- read ---- */

static ssize_t get(struct weft_ofi *r, const struct xfer *x, struct weft_ofi_slot *slot, void *to)
{
    const struct weft_ofi_remote *m = x->remote->own;
    struct iovec iov = {.iov_base = to, .iov_len = x->length};
    void *desc = slot->bounce ? r->arena_desc : weft_ofi_desc(r, x->local);
    struct fi_rma_iov from = {
        .addr = weft_ofi_target(m, x->remote_at), .len = x->length, .key = m->rkey};
    struct fi_msg_rma msg = {.msg_iov = &iov,
                             .desc = &desc,
                             .iov_count = 1,
                             .addr = r->peer,
                             .rma_iov = &from,
                             .rma_iov_count = 1,
                             .context = &slot->context};
    return fi_readmsg(r->ep, &msg, FI_COMPLETION | weft_ofi_more(x));
}

int weft_ofi_read(struct fabric *fabric, const struct xfer *x)
{
    struct weft_ofi *r = (struct weft_ofi *)fabric;
    if (!weft_ofi_acceptable(x))
        return weft_ofi_unacceptable(x);
    if (x->how & HINT(SHORT) || (x->how & HINT(BCOPY) && x->length > WEFT_OFI_BOUNCE))
        return too_long(r, x, "read", x->how & HINT(SHORT) ? 0 : WEFT_OFI_BOUNCE);
    if (!x->length)
        return DONE;
    if (!r->raw && r->orders && !(x->how & HINT(RESTRICTED)))
        return -EAGAIN;
    struct weft_ofi_slot *slot = weft_ofi_slot_take(r, VERB_READ, x->id, x->length);
    if (!slot)
        return -EAGAIN;
    char *to = x->local->address + x->at;
    slot->remote = x->remote->own;
    if (x->how & HINT(BCOPY)) {
        if (!weft_ofi_slot_bounce(r, slot)) {
            weft_ofi_slot_give(r, slot);
            return -EAGAIN;
        }
        slot->to = to;
        slot->region = x->local;
        to = slot->bounce;
    }
    return weft_ofi_begun(r, slot, get(r, x, slot, to), "read");
}
