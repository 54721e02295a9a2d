/* SPDX-License-Identifier: BSD-3-Clause */
/* One-sided operations. In shared memory they are copies, done before the call returns; elsewhere a
 * slot of the handle waits for the completion. */
#include "fabric/uct/uct.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* ---- what is refused ---- */

/* Cheap compares only: wrong keys, withdrawn memory, bounds at both ends. */
static inline bool acceptable(const struct xfer *x)
{
    const struct weft_uct_remote *r = x->remote->own;
    return r && *r->alive == x->remote->key && x->length <= r->length &&
           x->remote_at <= r->length - x->length && weft_uct_in_buffer(x);
}

static int refuse(const struct xfer *x)
{
    const struct weft_uct_remote *r = x->remote->own;
    if (!r)
        return weft_uct_host->fail(-ENOTCONN, "uct: not connected");
    if (*r->alive != x->remote->key)
        return weft_uct_host->fail(-ENOENT, "uct: no region of the target has key 0x%" PRIx64,
                                   x->remote->key);
    if (!weft_uct_in_buffer(x))
        return weft_uct_host->fail(-ERANGE, "uct: %zu bytes at %zu of a buffer of %zu", x->length,
                                   x->at, x->local->length);
    return weft_uct_host->fail(-ERANGE, "uct: %zu bytes at %zu, the target's region has %zu",
                               x->length, x->remote_at, r->length);
}

static int too_long(const struct weft_uct *l, const struct xfer *x, const char *what)
{
    return weft_uct_host->fail(-EMSGSIZE, "uct: %s/%s has no %s of %zu bytes in this layout",
                               l->port.place.transport, l->port.place.device, what, x->length);
}

/* ---- layouts ---- */

/* LAYOUTS: none takes it. */
static inline enum layout layout_of(const struct xfer *x, const size_t max[LAYOUTS])
{
    unsigned asked = x->how & (HINT(SHORT) | HINT(BCOPY) | HINT(ZCOPY));
    if (x->local->gpu)
        return asked & ~HINT(ZCOPY) || x->length > max[LAYOUT_ZCOPY] ? LAYOUTS : LAYOUT_ZCOPY;
    if (asked && !(asked & (asked - 1))) {
        unsigned k = (unsigned)__builtin_ctz(asked) - HINT_SHORT;
        return x->length <= max[k] ? (enum layout)k : LAYOUTS;
    }
    for (unsigned k = LAYOUT_SHORT; k < LAYOUTS; k++)
        if (x->length <= max[k] && (!asked || asked & LAYOUT_HINT(k)))
            return (enum layout)k;
    return LAYOUTS;
}

static size_t pack(void *to, void *arg)
{
    const struct xfer *x = arg;
    memcpy(to, x->local->address + x->at, x->length);
    return x->length;
}

/* A word needs no call. */
static void unpack(void *arg, const void *data, size_t length)
{
    if (length == sizeof(uint64_t))
        memcpy(arg, data, sizeof(uint64_t));
    else
        memcpy(arg, data, length);
}

static inline uct_iov_t iov_of(const struct weft_uct *l, const struct xfer *x)
{
    return (uct_iov_t){.buffer = x->local->address + x->at,
                       .length = x->length,
                       .memh = weft_uct_memh(l, x->local),
                       .count = 1};
}

static inline ucs_status_t put(struct weft_uct *l, const struct xfer *x, enum layout layout,
                               uct_completion_t *done)
{
    const struct weft_uct_remote *r = x->remote->own;
    uint64_t to = r->base + x->remote_at;
    if (layout == LAYOUT_SHORT)
        return uct_ep_put_short(l->ep, x->local->address + x->at, (unsigned)x->length, to, r->rkey);
    if (layout == LAYOUT_BCOPY) {
        ssize_t packed = uct_ep_put_bcopy(l->ep, pack, (void *)x, to, r->rkey);
        return packed < 0 ? (ucs_status_t)packed : UCS_OK;
    }
    uct_iov_t iov = iov_of(l, x);
    return uct_ep_put_zcopy(l->ep, &iov, 1, to, r->rkey, done);
}

static inline ucs_status_t get(struct weft_uct *l, const struct xfer *x, enum layout layout,
                               uct_completion_t *done)
{
    const struct weft_uct_remote *r = x->remote->own;
    uint64_t from = r->base + x->remote_at;
    char *to = x->local->address + x->at;
    if (layout == LAYOUT_SHORT)
        return uct_ep_get_short(l->ep, to, (unsigned)x->length, from, r->rkey);
    if (layout == LAYOUT_BCOPY)
        return uct_ep_get_bcopy(l->ep, unpack, to, x->length, from, r->rkey, done);
    uct_iov_t iov = iov_of(l, x);
    return uct_ep_get_zcopy(l->ep, &iov, 1, from, r->rkey, done);
}

/* ---- completions ---- */

static const char *const verb_words[VERBS] = {
    [VERB_WRITE] = "write", [VERB_READ] = "read", [VERB_ATOMIC] = "atomic", [VERB_AM] = "am"};

void weft_uct_slot_done(uct_completion_t *done)
{
    struct weft_uct_slot *slot = (struct weft_uct_slot *)done;
    struct weft_uct *l = slot->uct;
    int status = 0;
    if (slot->verb == VERBS) {
        if (done->status != UCS_OK)
            weft_uct_lose(l, done->status, ucs_status_string(done->status));
        return weft_uct_slot_give(slot);
    }
    if (l->draining)
        status = weft_uct_errno(done->status); /* the caller knows why it leaves */
    else if (done->status != UCS_OK)
        status = weft_uct_refuse(l, verb_words[slot->verb], done->status);
    else if (slot->remote && *slot->remote->alive != slot->key)
        status = weft_uct_host->fail(-ENOENT, "uct: no region of the target has key 0x%" PRIx64,
                                     slot->key);
    *weft_uct_event(l) = (struct completion){
        .id = slot->id, .verb = slot->verb, .status = status, .length = slot->length};
    weft_uct_slot_give(slot);
}

/* What was put, or posted, shall be there: the slot counts the flush too. */
static void flush(struct weft_uct_slot *slot)
{
    struct weft_uct *l = slot->uct;
    ucs_status_t status = uct_ep_flush(l->ep, UCT_FLUSH_FLAG_LOCAL, &slot->done);
    slot->flush = status == UCS_ERR_NO_RESOURCE;
    if (slot->flush) {
        l->todo |= TODO_FLUSH;
        return;
    }
    if (status == UCS_INPROGRESS)
        return;
    if (status != UCS_OK && slot->done.status == UCS_OK)
        slot->done.status = status;
    slot->done.count--;
}

void weft_uct_flush_again(struct weft_uct *l)
{
    l->todo &= ~(unsigned)TODO_FLUSH;
    for (int i = 0; i < WEFT_UCT_SLOTS; i++) {
        struct weft_uct_slot *slot = &l->slots[i];
        if (!slot->flush)
            continue;
        flush(slot);
        if (!slot->flush && !slot->done.count)
            weft_uct_slot_done(&slot->done);
    }
}

/* From what the call said to what a verb returns. */
static int begun(struct weft_uct_slot *slot, ucs_status_t status, bool flushes)
{
    struct weft_uct *l = slot->uct;
    if (status == UCS_ERR_NO_RESOURCE || (status != UCS_OK && status != UCS_INPROGRESS)) {
        weft_uct_slot_give(slot);
        return status == UCS_ERR_NO_RESOURCE ? -EAGAIN
                                             : weft_uct_refuse(l, verb_words[slot->verb], status);
    }
    slot->done.count = (status == UCS_INPROGRESS) + flushes;
    if (flushes)
        flush(slot);
    if (slot->done.count)
        return LATER;
    status = slot->done.status;
    weft_uct_slot_give(slot);
    return status == UCS_OK ? DONE : weft_uct_refuse(l, verb_words[slot->verb], status);
}

static struct weft_uct_slot *slot_for(struct weft_uct *l, uint32_t verb, const struct xfer *x)
{
    struct weft_uct_slot *slot = weft_uct_slot_take(l, verb, x);
    if (slot) {
        slot->remote = x->remote->own;
        slot->key = x->remote->key;
    }
    return slot;
}

/* ---- write and read ---- */

static int write_later(struct weft_uct *l, const struct xfer *x, enum layout layout)
{
    struct weft_uct_slot *slot = slot_for(l, VERB_WRITE, x);
    if (!slot)
        return -EAGAIN;
    bool flushes = l->settle == SETTLE_FLUSH || layout != LAYOUT_ZCOPY;
    return begun(slot, put(l, x, layout, &slot->done), flushes);
}

int weft_uct_write(struct fabric *fabric, const struct xfer *x)
{
    struct weft_uct *l = (struct weft_uct *)fabric;
    enum layout layout = layout_of(x, l->put_max);
    if (!acceptable(x))
        return refuse(x);
    if (layout == LAYOUTS)
        return too_long(l, x, "put");
    if (!x->length)
        return DONE;
    if (l->settle != SETTLE_FENCE)
        return write_later(l, x, layout);
    ucs_status_t status = put(l, x, layout, NULL);
    if (status != UCS_OK)
        return weft_uct_refuse(l, "write", status);
    uct_ep_flush(l->ep, UCT_FLUSH_FLAG_LOCAL, NULL);
    return DONE;
}

static int read_later(struct weft_uct *l, const struct xfer *x, enum layout layout)
{
    struct weft_uct_slot *slot = slot_for(l, VERB_READ, x);
    return slot ? begun(slot, get(l, x, layout, &slot->done), false) : -EAGAIN;
}

int weft_uct_read(struct fabric *fabric, const struct xfer *x)
{
    struct weft_uct *l = (struct weft_uct *)fabric;
    enum layout layout = layout_of(x, l->get_max);
    if (!acceptable(x))
        return refuse(x);
    if (layout == LAYOUT_BCOPY && l->settle == SETTLE_FENCE) {
        const struct weft_uct_remote *r = x->remote->own;
        ucs_status_t got = uct_ep_get_bcopy(l->ep, unpack, x->local->address + x->at, x->length,
                                            r->base + x->remote_at, r->rkey, NULL);
        return got == UCS_OK ? DONE : weft_uct_refuse(l, "read", got);
    }
    if (layout == LAYOUTS)
        return too_long(l, x, "get");
    if (!x->length)
        return DONE;
    if (l->settle != SETTLE_FENCE)
        return read_later(l, x, layout);
    ucs_status_t status = get(l, x, layout, NULL);
    return status == UCS_OK ? DONE : weft_uct_refuse(l, "read", status);
}

/* ---- atomics ---- */

const uct_atomic_op_t weft_uct_amo_ops[AMO_OPS] = {
    [AMO_SUM] = UCT_ATOMIC_OP_ADD,   [AMO_BOR] = UCT_ATOMIC_OP_OR,
    [AMO_BAND] = UCT_ATOMIC_OP_AND,  [AMO_BXOR] = UCT_ATOMIC_OP_XOR,
    [AMO_SWAP] = UCT_ATOMIC_OP_SWAP, [AMO_CSWAP] = UCT_ATOMIC_OP_CSWAP};

static inline size_t size_of(const struct xfer *x)
{
    return x->amo.type < AMO_INT64 ? sizeof(uint32_t) : sizeof(uint64_t);
}

/* Only what the facts offer: 32 and 64 bits, and of the compares EQ. */
static inline bool offered(const struct weft_uct *l, const struct xfer *x)
{
    return x->amo.op < AMO_OPS && x->amo.type < AMO_TYPES &&
           l->amo[x->amo.fetch ? 1 : 0][x->amo.op] >> x->amo.type & 1 &&
           (x->amo.op != AMO_CSWAP || x->amo.compare_op == AMO_EQ);
}

static int refuse_atomic(const struct weft_uct *l, const struct xfer *x)
{
    if (!offered(l, x))
        return weft_uct_host->fail(-EINVAL, "uct: %s/%s has no such atomic",
                                   l->port.place.transport, l->port.place.device);
    if (x->length != size_of(x))
        return weft_uct_host->fail(-EINVAL, "uct: an atomic of %zu bytes on a type of %zu",
                                   x->length, size_of(x));
    if (x->remote_at % size_of(x))
        return weft_uct_host->fail(-EINVAL, "uct: an atomic of %zu bytes at %zu is not aligned",
                                   x->length, x->remote_at);
    return refuse(x);
}

static inline ucs_status_t apply64(struct weft_uct *l, const struct xfer *x, uct_completion_t *done)
{
    const struct weft_uct_remote *r = x->remote->own;
    uint64_t to = r->base + x->remote_at, operand, compare, *result = x->amo.result;
    memcpy(&operand, x->amo.operand, sizeof operand);
    if (x->amo.op == AMO_CSWAP) {
        memcpy(&compare, x->amo.compare, sizeof compare);
        return uct_ep_atomic_cswap64(l->ep, compare, operand, to, r->rkey, result, done);
    }
    if (x->amo.fetch)
        return uct_ep_atomic64_fetch(l->ep, weft_uct_amo_ops[x->amo.op], operand, result, to,
                                     r->rkey, done);
    return uct_ep_atomic64_post(l->ep, weft_uct_amo_ops[x->amo.op], operand, to, r->rkey);
}

static inline ucs_status_t apply32(struct weft_uct *l, const struct xfer *x, uct_completion_t *done)
{
    const struct weft_uct_remote *r = x->remote->own;
    uint64_t to = r->base + x->remote_at;
    uint32_t operand, compare, *result = x->amo.result;
    memcpy(&operand, x->amo.operand, sizeof operand);
    if (x->amo.op == AMO_CSWAP) {
        memcpy(&compare, x->amo.compare, sizeof compare);
        return uct_ep_atomic_cswap32(l->ep, compare, operand, to, r->rkey, result, done);
    }
    if (x->amo.fetch)
        return uct_ep_atomic32_fetch(l->ep, weft_uct_amo_ops[x->amo.op], operand, result, to,
                                     r->rkey, done);
    return uct_ep_atomic32_post(l->ep, weft_uct_amo_ops[x->amo.op], operand, to, r->rkey);
}

static inline ucs_status_t apply(struct weft_uct *l, const struct xfer *x, uct_completion_t *done)
{
    return x->amo.type < AMO_INT64 ? apply32(l, x, done) : apply64(l, x, done);
}

/* The add of a word in shared memory, which is measured in nanoseconds: the checks it needs, and no
 * others. */
static inline bool plain_add(const struct weft_uct *l, const struct xfer *x)
{
    return x->amo.op == AMO_SUM && x->amo.type == AMO_UINT64 && !x->amo.fetch &&
           l->settle == SETTLE_FENCE && l->amo[0][AMO_SUM] >> AMO_UINT64 & 1 &&
           x->length == sizeof(uint64_t) && !(x->remote_at % sizeof(uint64_t));
}

static inline int add_word(struct weft_uct *l, const struct xfer *x)
{
    const struct weft_uct_remote *r = x->remote->own;
    uint64_t operand;
    memcpy(&operand, x->amo.operand, sizeof operand);
    ucs_status_t status =
        uct_ep_atomic64_post(l->ep, UCT_ATOMIC_OP_ADD, operand, r->base + x->remote_at, r->rkey);
    if (status != UCS_OK)
        return weft_uct_refuse(l, "atomic", status);
#if !defined(__x86_64__) /* there an atomic is its own fence */
    uct_ep_flush(l->ep, UCT_FLUSH_FLAG_LOCAL, NULL);
#endif
    return DONE;
}

int weft_uct_atomic(struct fabric *fabric, const struct xfer *x)
{
    struct weft_uct *l = (struct weft_uct *)fabric;
    if (plain_add(l, x) && acceptable(x))
        return add_word(l, x);
    if (!offered(l, x) || x->length != size_of(x) || x->remote_at % size_of(x) || !acceptable(x))
        return refuse_atomic(l, x);
    if (l->settle != SETTLE_FENCE) {
        struct weft_uct_slot *slot = slot_for(l, VERB_ATOMIC, x);
        return slot ? begun(slot, apply(l, x, &slot->done), !x->amo.fetch) : -EAGAIN;
    }
    ucs_status_t status = apply(l, x, NULL);
    if (status != UCS_OK)
        return weft_uct_refuse(l, "atomic", status);
    if (!x->amo.fetch)
        uct_ep_flush(l->ep, UCT_FLUSH_FLAG_LOCAL, NULL);
    return DONE;
}
