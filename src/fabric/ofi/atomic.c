/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomics as libfabric has them. Those that compare always fetch: where nothing is to be fetched,
 * the old value goes into memory of our own. AXOR is a masked swap where that says the same; it,
 * and comparing with zero or NaN, is otherwise a compare-and-swap repeated until nothing came
 * between. */
#include "fabric/ofi/ofi.h"

#include <errno.h>
#include <rdma/fi_atomic.h>
#include <string.h>

/* ---- the vocabulary ---- */

static const uint8_t sizes[AMO_TYPES] = {1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 8, 16, 16};

static const enum fi_datatype types[AMO_TYPES] = {
    FI_INT8,   FI_UINT8, FI_INT16,  FI_UINT16,        FI_INT32,          FI_UINT32, FI_INT64,
    FI_UINT64, FI_FLOAT, FI_DOUBLE, FI_FLOAT_COMPLEX, FI_DOUBLE_COMPLEX, FI_UINT128};

static const enum fi_op ops[AMO_OPS] = {
    [AMO_MIN] = FI_MIN,           [AMO_MAX] = FI_MAX,     [AMO_SUM] = FI_SUM,
    [AMO_LOR] = FI_LOR,           [AMO_LAND] = FI_LAND,   [AMO_BOR] = FI_BOR,
    [AMO_BAND] = FI_BAND,         [AMO_LXOR] = FI_LXOR,   [AMO_BXOR] = FI_BXOR,
    [AMO_SWAP] = FI_ATOMIC_WRITE, [AMO_CSWAP] = FI_CSWAP, [AMO_AXOR] = FI_MSWAP};

static const enum fi_op compares[AMO_COMPARES] = {FI_CSWAP,    FI_CSWAP_NE, FI_CSWAP_LE,
                                                  FI_CSWAP_LT, FI_CSWAP_GE, FI_CSWAP_GT};

#define OPS(first, last) ((2U << AMO_##last) - (1U << AMO_##first))

/* What exists at all: of floats and complex numbers libfabric offers more. */
static bool exists(unsigned op, unsigned type, unsigned compare)
{
    const unsigned some = 1U << AMO_SUM | 1U << AMO_SWAP | 1U << AMO_CSWAP;
    unsigned all = type <= AMO_UINT64    ? OPS(MIN, AXOR)
                   : type <= AMO_DOUBLE  ? some | OPS(MIN, MAX)
                   : type != AMO_UINT128 ? some
                                         : 1U << AMO_CSWAP;
    unsigned most = type <= AMO_DOUBLE ? AMO_GT : type != AMO_UINT128 ? AMO_NE : AMO_EQ;
    return all >> op & 1 && (op != AMO_CSWAP || compare <= most);
}

static bool has(struct fid_domain *domain, enum fi_datatype type, enum fi_op op, uint64_t flags)
{
    struct fi_atomic_attr attr = {0};
    return !fi_query_atomic(domain, type, op, &attr, flags) && attr.count;
}

/* A swap that does not fetch is a write; one that fetches has its own name in the call. */
static void ask(struct fid_domain *domain, struct fabric_facts *facts, unsigned op, unsigned type)
{
    uint16_t bit = (uint16_t)(1U << type);
    if (op == AMO_CSWAP || op == AMO_AXOR) {
        if (!has(domain, types[type], ops[op], FI_COMPARE_ATOMIC))
            return;
        facts->amo[0][op] |= bit;
        facts->amo[1][op] |= bit;
        return;
    }
    if (has(domain, types[type], ops[op], 0))
        facts->amo[0][op] |= bit;
    if (has(domain, types[type], ops[op], FI_FETCH_ATOMIC))
        facts->amo[1][op] |= bit;
}

void weft_ofi_atomics(struct fid_domain *domain, struct fabric_facts *facts)
{
    for (unsigned type = 0; type < AMO_TYPES; type++) {
        for (unsigned op = 0; op < AMO_OPS; op++)
            if (exists(op, type, AMO_EQ))
                ask(domain, facts, op, type);
        for (unsigned compare = 0; compare < AMO_COMPARES; compare++)
            if (exists(AMO_CSWAP, type, compare) &&
                has(domain, types[type], compares[compare], FI_COMPARE_ATOMIC))
                facts->cswap[compare] |= (uint16_t)(1U << type);
    }
}

/* ---- what is refused ---- */

static inline bool offered(const struct weft_ofi *r, const struct xfer *x)
{
    return x->amo.op < AMO_OPS && x->amo.type < AMO_TYPES &&
           r->amo[x->amo.fetch ? 1 : 0][x->amo.op] >> x->amo.type & 1 &&
           (x->amo.op != AMO_CSWAP ||
            (x->amo.compare_op < AMO_COMPARES && r->cswap[x->amo.compare_op] >> x->amo.type & 1));
}

static int refuse(const struct weft_ofi *r, const struct xfer *x)
{
    if (!offered(r, x))
        return weft_ofi_host->fail(-EINVAL, "ofi: %s has no such atomic", r->port.name);
    if (x->length != sizes[x->amo.type])
        return weft_ofi_host->fail(-EINVAL, "ofi: an atomic of %zu bytes on a type of %u",
                                   x->length, sizes[x->amo.type]);
    if (x->remote_at % sizes[x->amo.type])
        return weft_ofi_host->fail(-EINVAL, "ofi: an atomic of %zu bytes at %zu is not aligned",
                                   x->length, x->remote_at);
    return weft_ofi_unacceptable(x);
}

/* ---- one call ---- */

/* Where a slot keeps what the caller may change, or does not want. */
enum { OPERAND_AT = 0, COMPARE_AT = AMO_MAX_BYTES, RESULT_AT = 2 * AMO_MAX_BYTES };

struct call {
    enum { PLAIN, FETCH, COMPARE } form;
    enum fi_datatype type;
    enum fi_op op;
    uint64_t to, rkey;
    struct fi_ioc operand, compare, result;
    void *desc, *result_desc;
    uint64_t flags;
};

static ssize_t issue(struct weft_ofi *r, struct call *c, struct weft_ofi_slot *slot)
{
    struct fi_rma_ioc to = {.addr = c->to, .count = 1, .key = c->rkey};
    struct fi_msg_atomic msg = {.msg_iov = &c->operand,
                                .desc = &c->desc,
                                .iov_count = 1,
                                .addr = r->peer,
                                .rma_iov = &to,
                                .rma_iov_count = 1,
                                .datatype = c->type,
                                .op = c->op,
                                .context = &slot->context};
    if (c->form == PLAIN)
        return fi_atomicmsg(r->ep, &msg, FI_DELIVERY_COMPLETE | FI_COMPLETION | c->flags);
    if (c->form == FETCH)
        return fi_fetch_atomicmsg(r->ep, &msg, &c->result, &c->result_desc, 1, FI_COMPLETION);
    return fi_compare_atomicmsg(r->ep, &msg, &c->compare, &c->desc, 1, &c->result, &c->result_desc,
                                1, FI_COMPLETION);
}

/* ---- what takes more than one call ---- */

static uint64_t number(const void *bytes, size_t size)
{
    uint64_t value = 0;
    memcpy(&value, bytes, size);
    return value;
}

/* Providers compare the bits of numbers, for which both zeroes are one and NaN is never equal. */
static bool same_real(uint64_t a, uint64_t b, uint8_t type)
{
    float fa[2], fb[2];
    double da, db;
    if (type == AMO_DOUBLE) {
        memcpy(&da, &a, sizeof da);
        memcpy(&db, &b, sizeof db);
        return da == db;
    }
    memcpy(fa, &a, sizeof fa);
    memcpy(fb, &b, sizeof fb);
    return fa[0] == fb[0] && (type == AMO_FLOAT || fa[1] == fb[1]);
}

/* What follows from an old value. */
static uint64_t outcome(const struct weft_ofi_loop *loop, uint64_t old)
{
    if (loop->op == AMO_AXOR)
        return (old & ~loop->compare) ^ loop->operand;
    return same_real(loop->compare, old, loop->type) ? loop->operand : old;
}

/* Puts in place what follows from the guess, which stands in the slot. */
static ssize_t step(struct weft_ofi *r, struct weft_ofi_slot *slot)
{
    static const enum fi_datatype widths[] = {
        [1] = FI_UINT8, [2] = FI_UINT16, [4] = FI_UINT32, [8] = FI_UINT64};
    const struct weft_ofi_loop *loop = &slot->loop;
    uint64_t next = outcome(loop, number(slot->small + COMPARE_AT, loop->size));
    struct call c = {.form = COMPARE,
                     .type = widths[loop->size],
                     .op = FI_CSWAP,
                     .to = loop->to,
                     .rkey = slot->remote->rkey,
                     .operand = {.addr = slot->small + OPERAND_AT, .count = 1},
                     .compare = {.addr = slot->small + COMPARE_AT, .count = 1},
                     .result = {.addr = slot->small + RESULT_AT, .count = 1},
                     .desc = r->arena_desc,
                     .result_desc = r->arena_desc};
    memcpy(slot->small + OPERAND_AT, &next, loop->size);
    return issue(r, &c, slot);
}

bool weft_ofi_atomic_again(struct weft_ofi *r, struct weft_ofi_slot *slot)
{
    const struct weft_ofi_loop *loop = &slot->loop;
    if (memcmp(slot->small + COMPARE_AT, slot->small + RESULT_AT, loop->size) == 0) {
        if (loop->result)
            memcpy(loop->result, slot->small + RESULT_AT, loop->size);
        return false;
    }
    memcpy(slot->small + COMPARE_AT, slot->small + RESULT_AT, loop->size);
    ssize_t status = step(r, slot);
    slot->again = status == -FI_EAGAIN;
    if (slot->again)
        r->todo |= TODO_AGAIN;
    else if (status)
        weft_ofi_lose(r, fi_strerror((int)-status));
    return true;
}

void weft_ofi_atomic_work(struct weft_ofi *r)
{
    r->todo &= ~(unsigned)TODO_AGAIN;
    for (int i = 0; i < WEFT_OFI_SLOTS; i++) {
        if (!r->slots[i].again)
            continue;
        ssize_t status = step(r, &r->slots[i]);
        r->slots[i].again = status == -FI_EAGAIN;
        if (r->slots[i].again)
            r->todo |= TODO_AGAIN;
        else if (status)
            weft_ofi_lose(r, fi_strerror((int)-status));
    }
}

static ssize_t begin_loop(struct weft_ofi *r, const struct xfer *x, struct weft_ofi_slot *slot)
{
    size_t size = sizes[x->amo.type];
    slot->loop = (struct weft_ofi_loop){.to = weft_ofi_target(slot->remote, x->remote_at),
                                        .compare = number(x->amo.compare, size),
                                        .operand = number(x->amo.operand, size),
                                        .result = x->amo.fetch ? x->amo.result : NULL,
                                        .size = (uint32_t)size,
                                        .op = x->amo.op,
                                        .type = x->amo.type};
    /* Most likely there is what is compared with. */
    memcpy(slot->small + COMPARE_AT, &slot->loop.compare, size);
    return step(r, slot);
}

static bool is_edge(const struct xfer *x)
{
    uint64_t compare = number(x->amo.compare, sizes[x->amo.type]), zero = 0;
    uint64_t halves[2] = {compare & UINT32_MAX, compare >> 32};
    if (x->amo.type == AMO_DOUBLE)
        return same_real(compare, zero, AMO_DOUBLE) || !same_real(compare, compare, AMO_DOUBLE);
    for (int i = 0; i < (x->amo.type == AMO_FLOAT ? 1 : 2); i++)
        if (same_real(halves[i], zero, AMO_FLOAT) || !same_real(halves[i], halves[i], AMO_FLOAT))
            return true;
    return false;
}

static inline bool needs_loop(const struct xfer *x)
{
    size_t size = sizes[x->amo.type];
    if (x->amo.op == AMO_AXOR)
        return number(x->amo.operand, size) & ~number(x->amo.compare, size);
    return x->amo.op == AMO_CSWAP && x->amo.type >= AMO_FLOAT && x->amo.compare_op == AMO_EQ &&
           size <= sizeof(uint64_t) && is_edge(x);
}

/* ---- the verb ---- */

/* Immediate operands are the provider's, or copied, before the call returns. */
static void immediate(struct weft_ofi *r, const struct xfer *x, struct weft_ofi_slot *slot,
                      struct call *c)
{
    if (c->form == PLAIN && r->amo_injects) {
        c->flags = FI_INJECT;
        return;
    }
    c->desc = r->arena_desc;
    c->operand.addr = memcpy(slot->small + OPERAND_AT, x->amo.operand, x->length);
    if (c->form == COMPARE)
        c->compare.addr = memcpy(slot->small + COMPARE_AT, x->amo.compare, x->length);
}

static ssize_t begin(struct weft_ofi *r, const struct xfer *x, struct weft_ofi_slot *slot)
{
    bool compares_first = x->amo.op == AMO_CSWAP || x->amo.op == AMO_AXOR;
    void *desc = weft_ofi_desc(r, x->local);
    struct call c = {.form = compares_first ? COMPARE
                             : x->amo.fetch ? FETCH
                                            : PLAIN,
                     .type = types[x->amo.type],
                     .op = x->amo.op == AMO_CSWAP ? compares[x->amo.compare_op] : ops[x->amo.op],
                     .to = weft_ofi_target(slot->remote, x->remote_at),
                     .rkey = slot->remote->rkey,
                     .operand = {.addr = (void *)x->amo.operand, .count = 1},
                     .compare = {.addr = (void *)x->amo.compare, .count = 1},
                     .result = {.addr = x->amo.result, .count = 1},
                     .desc = desc,
                     .result_desc = desc};
    if (!x->amo.fetch) {
        c.result.addr = slot->small + RESULT_AT;
        c.result_desc = r->arena_desc;
    }
    if (x->how & HINT(INLINE))
        immediate(r, x, slot, &c);
    return issue(r, &c, slot);
}

int weft_ofi_atomic(struct fabric *fabric, const struct xfer *x)
{
    struct weft_ofi *r = (struct weft_ofi *)fabric;
    if (!offered(r, x) || x->length != sizes[x->amo.type] || x->remote_at % sizes[x->amo.type] ||
        !weft_ofi_acceptable(x))
        return refuse(r, x);
    struct weft_ofi_slot *slot = weft_ofi_slot_take(r, VERB_ATOMIC, x->id, x->length);
    if (!slot)
        return -EAGAIN;
    slot->remote = x->remote->own;
    slot->orders = true;
    r->orders++;
    return weft_ofi_begun(r, slot, needs_loop(x) ? begin_loop(r, x, slot) : begin(r, x, slot),
                          "atomic");
}
