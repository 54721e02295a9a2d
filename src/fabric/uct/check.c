/* SPDX-License-Identifier: BSD-3-Clause */
/* Are the atomics what they are called? In shared memory they are UCX's own code, and there are
 * releases whose fetching XOR writes zero. Each is tried on our own memory, and what is wrong is
 * not offered. */
#include "fabric/uct/uct.h"

#include <errno.h>
#include <string.h>

/* A port that reaches itself. */
struct mirror {
    uct_allocated_memory_t memory;
    uct_rkey_bundle_t bundle;
    uct_ep_h ep;
    bool placed, unpacked;
};

static ucs_status_t reach_memory(const struct weft_uct_port *port, struct mirror *m)
{
    uct_alloc_method_t method = UCT_ALLOC_METHOD_MD;
    unsigned char packed[WEFT_UCT_RKEY_MAX];
    uct_mem_alloc_params_t params = {
        .field_mask = UCT_MEM_ALLOC_PARAM_FIELD_FLAGS | UCT_MEM_ALLOC_PARAM_FIELD_MEM_TYPE |
                      UCT_MEM_ALLOC_PARAM_FIELD_MDS | UCT_MEM_ALLOC_PARAM_FIELD_NAME,
        .flags = UCT_MD_MEM_ACCESS_ALL,
        .mem_type = UCS_MEMORY_TYPE_HOST,
        .mds = {.mds = &port->place.domain, .count = 1},
        .name = "weft"};
    ucs_status_t status = uct_mem_alloc(sizeof(uint64_t), &method, 1, &params, &m->memory);
    m->placed = status == UCS_OK;
    if (status == UCS_OK && port->domain_attr.rkey_packed_size > sizeof packed)
        status = UCS_ERR_BUFFER_TOO_SMALL;
    if (status == UCS_OK)
        status = uct_md_mkey_pack(port->place.domain, m->memory.memh, packed);
    if (status == UCS_OK)
        status = uct_rkey_unpack(port->place.component, packed, &m->bundle);
    m->unpacked = status == UCS_OK;
    return status;
}

static ucs_status_t reach_self(const struct weft_uct_port *port, struct mirror *m)
{
    unsigned char device[WEFT_UCT_ADDRESS_MAX], iface[WEFT_UCT_ADDRESS_MAX];
    uct_ep_params_t params = {.field_mask = UCT_EP_PARAM_FIELD_IFACE | UCT_EP_PARAM_FIELD_DEV_ADDR |
                                            UCT_EP_PARAM_FIELD_IFACE_ADDR,
                              .iface = port->iface,
                              .dev_addr = (uct_device_addr_t *)(void *)device,
                              .iface_addr = (uct_iface_addr_t *)(void *)iface};
    if (port->attr.device_addr_len > sizeof device || port->attr.iface_addr_len > sizeof iface)
        return UCS_ERR_BUFFER_TOO_SMALL;
    ucs_status_t status =
        uct_iface_get_device_address(port->iface, (uct_device_addr_t *)(void *)device);
    if (status == UCS_OK)
        status = uct_iface_get_address(port->iface, (uct_iface_addr_t *)(void *)iface);
    return status == UCS_OK ? uct_ep_create(&params, &m->ep) : status;
}

static void leave(const struct weft_uct_port *port, struct mirror *m)
{
    if (m->ep)
        uct_ep_destroy(m->ep);
    if (m->unpacked)
        uct_rkey_release(port->place.component, &m->bundle);
    if (m->placed)
        uct_mem_free(&m->memory);
}

/* Values that tell the ops from each other, and from nothing. */
static const uint32_t before = 0x0ff0c35aU, operand = 0x3c5a00ffU;

static uint32_t expected(enum amo_op op)
{
    return op == AMO_SUM    ? before + operand
           : op == AMO_BOR  ? before | operand
           : op == AMO_BAND ? before & operand
           : op == AMO_BXOR ? before ^ operand
                            : operand;
}

static bool right64(const struct mirror *m, enum amo_op op, bool fetch)
{
    uint64_t *target = m->memory.address, old = ~UINT64_C(0), at = (uint64_t)(uintptr_t)target;
    uct_rkey_t rkey = m->bundle.rkey;
    *target = before;
    ucs_status_t status =
        op == AMO_CSWAP ? uct_ep_atomic_cswap64(m->ep, before, operand, at, rkey, &old, NULL)
        : fetch ? uct_ep_atomic64_fetch(m->ep, weft_uct_amo_ops[op], operand, &old, at, rkey, NULL)
                : uct_ep_atomic64_post(m->ep, weft_uct_amo_ops[op], operand, at, rkey);
    return status == UCS_OK && *target == expected(op) && (!fetch || old == before);
}

static bool right32(const struct mirror *m, enum amo_op op, bool fetch)
{
    uint32_t *target = m->memory.address, old = ~UINT32_C(0);
    uint64_t at = (uint64_t)(uintptr_t)target;
    uct_rkey_t rkey = m->bundle.rkey;
    *target = before;
    ucs_status_t status =
        op == AMO_CSWAP ? uct_ep_atomic_cswap32(m->ep, before, operand, at, rkey, &old, NULL)
        : fetch ? uct_ep_atomic32_fetch(m->ep, weft_uct_amo_ops[op], operand, &old, at, rkey, NULL)
                : uct_ep_atomic32_post(m->ep, weft_uct_amo_ops[op], operand, at, rkey);
    return status == UCS_OK && *target == expected(op) && (!fetch || old == before);
}

static void try_all(const struct mirror *m, uint16_t amo[2][AMO_OPS])
{
    const uint16_t narrow = 1U << AMO_INT32 | 1U << AMO_UINT32;
    const uint16_t wide = 1U << AMO_INT64 | 1U << AMO_UINT64;
    for (int fetch = 0; fetch < 2; fetch++)
        for (unsigned op = 0; op < AMO_OPS; op++) {
            uint16_t *types = &amo[fetch][op];
            if (*types & narrow && !right32(m, (enum amo_op)op, fetch))
                *types &= (uint16_t)~narrow;
            if (*types & wide && !right64(m, (enum amo_op)op, fetch))
                *types &= (uint16_t)~wide;
        }
}

void weft_uct_check_atomics(const struct weft_uct_port *port, struct fabric_facts *facts)
{
    struct mirror mirror = {.ep = NULL};
    if (!(facts->verbs & VERB(ATOMIC)) || !(port->domain_attr.cap.flags & UCT_MD_FLAG_RKEY_PTR))
        return;
    if (reach_memory(port, &mirror) == UCS_OK && reach_self(port, &mirror) == UCS_OK)
        try_all(&mirror, facts->amo);
    facts->cswap[AMO_EQ] = facts->amo[1][AMO_CSWAP];
    leave(port, &mirror);
}
