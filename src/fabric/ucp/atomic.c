/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomics. Over a network UCX 1.13 makes messages of them, and when the other end dies it looks at
 * parts of a request that an atomic does not set: so those that fetch bring memory of ours for
 * their request, all zeroes. */
#include "fabric/ucp/ucp.h"

#include <errno.h>
#include <string.h>

const ucp_atomic_op_t weft_ucp_amo_ops[AMO_OPS] = {
    [AMO_SUM] = UCP_ATOMIC_OP_ADD,   [AMO_BOR] = UCP_ATOMIC_OP_OR,
    [AMO_BAND] = UCP_ATOMIC_OP_AND,  [AMO_BXOR] = UCP_ATOMIC_OP_XOR,
    [AMO_SWAP] = UCP_ATOMIC_OP_SWAP, [AMO_CSWAP] = UCP_ATOMIC_OP_CSWAP};

static void bring_zeroes(struct weft_ucp_slot *slot, ucp_request_param_t *param)
{
    size_t bytes = slot->ucp->request_bytes;
    memset((char *)slot->request - bytes, 0, bytes);
    param->op_attr_mask |= UCP_OP_ATTR_FIELD_REQUEST;
    param->request = slot->request;
}

/* ---- the verb ---- */

static inline size_t size_of(const struct xfer *x)
{
    return x->amo.type < AMO_INT64 ? sizeof(uint32_t) : sizeof(uint64_t);
}

/* Only what the facts offer: 32 and 64 bits, and of the compares EQ. */
static inline bool offered(const struct weft_ucp *u, const struct xfer *x)
{
    return x->amo.op < AMO_OPS && x->amo.type < AMO_TYPES &&
           u->facts->amo[x->amo.fetch ? 1 : 0][x->amo.op] >> x->amo.type & 1 &&
           (x->amo.op != AMO_CSWAP || x->amo.compare_op == AMO_EQ);
}

static int refuse(const struct weft_ucp *u, const struct xfer *x)
{
    if (!offered(u, x))
        return weft_ucp_host->fail(-EINVAL, "ucp: there is no such atomic");
    if (x->length != size_of(x) || x->remote_at % size_of(x))
        return weft_ucp_host->fail(
            -EINVAL, "ucp: an atomic of %zu bytes at %zu on a type of %zu is not aligned",
            x->length, x->remote_at, size_of(x));
    return weft_ucp_refuse_remote(u, x);
}

/* A compare-and-swap has what it compares with as its operand, and what it swaps in where the old
 * value will be. */
int weft_ucp_atomic(struct fabric *fabric, const struct xfer *x)
{
    struct weft_ucp *u = (struct weft_ucp *)fabric;
    const struct weft_ucp_remote *r = x->remote->own;
    if (!offered(u, x) || x->length != size_of(x) || x->remote_at % size_of(x) ||
        !weft_ucp_acceptable(x))
        return refuse(u, x);
    struct weft_ucp_slot *slot = weft_ucp_slot_next(u);
    if (!slot)
        return -EAGAIN;
    bool compares = x->amo.op == AMO_CSWAP;
    ucp_request_param_t param = u->send;
    param.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE;
    param.datatype = ucp_dt_make_contig(x->length);
    if (x->amo.fetch) {
        param.op_attr_mask |= UCP_OP_ATTR_FIELD_REPLY_BUFFER;
        param.reply_buffer = x->amo.result;
    }
    if (x->amo.fetch && !u->port.shared)
        bring_zeroes(slot, &param);
    if (compares)
        memcpy(x->amo.result, x->amo.operand, x->length);
    void *request = ucp_atomic_op_nbx(u->ep, weft_ucp_amo_ops[x->amo.op],
                                      compares ? x->amo.compare : x->amo.operand, 1,
                                      r->base + x->remote_at, r->rkey, &param);
    return weft_ucp_begun(slot, VERB_ATOMIC, x, request, !x->amo.fetch && !(x->how & HINT(LOCAL)));
}
