/* SPDX-License-Identifier: BSD-3-Clause */
/* Are the atomics what they are called? In shared memory they are UCX's own code, and there are
 * releases in which some that fetch store something else. Each is tried by a worker on its own
 * memory, and what is wrong is not offered. */
#include "fabric/ucp/ucp.h"

#include <string.h>

enum { LAPS = 10000 };

/* A worker that reaches itself. */
struct mirror {
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_ep_h ep;
    ucp_mem_h memh;
    ucp_rkey_h rkey;
    void *address;
};

static ucs_status_t reach_self(struct mirror *m)
{
    ucp_worker_params_t worker = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                  .thread_mode = UCS_THREAD_MODE_SINGLE};
    ucp_ep_params_t ep = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS};
    ucp_address_t *address;
    size_t length;
    ucs_status_t status = ucp_worker_create(m->context, &worker, &m->worker);
    if (status != UCS_OK) {
        m->worker = NULL;
        return status;
    }
    status = ucp_worker_get_address(m->worker, &address, &length);
    if (status != UCS_OK)
        return status;
    ep.address = address;
    status = ucp_ep_create(m->worker, &ep, &m->ep);
    ucp_worker_release_address(m->worker, address);
    return status;
}

static ucs_status_t reach_memory(struct mirror *m)
{
    ucp_mem_map_params_t params = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH |
                                                 UCP_MEM_MAP_PARAM_FIELD_FLAGS,
                                   .length = sizeof(uint64_t),
                                   .flags = UCP_MEM_MAP_ALLOCATE};
    ucp_mem_attr_t attr = {.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS};
    void *packed;
    size_t size;
    ucs_status_t status = ucp_mem_map(m->context, &params, &m->memh);
    if (status != UCS_OK) {
        m->memh = NULL;
        return status;
    }
    status = ucp_mem_query(m->memh, &attr);
    m->address = attr.address;
    if (status == UCS_OK)
        status = ucp_rkey_pack(m->context, m->memh, &packed, &size);
    if (status != UCS_OK)
        return status;
    status = ucp_ep_rkey_unpack(m->ep, packed, &m->rkey);
    if (status != UCS_OK)
        m->rkey = NULL;
    ucp_rkey_buffer_release(packed);
    return status;
}

static void leave(struct mirror *m)
{
    if (m->rkey)
        ucp_rkey_destroy(m->rkey);
    if (m->worker)
        ucp_worker_destroy(m->worker);
    if (m->memh)
        ucp_mem_unmap(m->context, m->memh);
}

static bool wait_for(struct mirror *m, void *request)
{
    if (!UCS_PTR_IS_PTR(request))
        return UCS_PTR_STATUS(request) == UCS_OK;
    ucs_status_t status = UCS_INPROGRESS;
    for (int lap = 0; lap < LAPS && status == UCS_INPROGRESS; lap++) {
        ucp_worker_progress(m->worker);
        status = ucp_request_check_status(request);
    }
    ucp_request_free(request);
    return status == UCS_OK;
}

/* Values that tell the ops from each other, and from nothing. */
static const uint64_t before = 0x0ff0c35a0ff0c35aU, operand = 0x3c5a00ff3c5a00ffU;

static uint64_t expected(enum amo_op op, size_t size)
{
    uint64_t all = size == sizeof all ? UINT64_MAX : UINT32_MAX;
    uint64_t value = op == AMO_SUM    ? (before & all) + (operand & all)
                     : op == AMO_BOR  ? before | operand
                     : op == AMO_BAND ? before & operand
                     : op == AMO_BXOR ? before ^ operand
                                      : operand;
    return value & all;
}

static bool right(struct mirror *m, enum amo_op op, bool fetch, size_t size)
{
    const ucp_request_param_t flush = {.op_attr_mask = 0};
    uint64_t all = size == sizeof all ? UINT64_MAX : UINT32_MAX, old = operand & all, found = 0;
    ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE |
                                                 (fetch ? UCP_OP_ATTR_FIELD_REPLY_BUFFER : 0U),
                                 .datatype = ucp_dt_make_contig(size),
                                 .reply_buffer = &old};
    const uint64_t *with = op == AMO_CSWAP ? &before : &operand;
    memcpy(m->address, &before, size);
    if (!wait_for(m, ucp_atomic_op_nbx(m->ep, weft_ucp_amo_ops[op], with, 1,
                                       (uint64_t)(uintptr_t)m->address, m->rkey, &param)) ||
        !wait_for(m, ucp_ep_flush_nbx(m->ep, &flush)))
        return false;
    memcpy(&found, m->address, size);
    return found == expected(op, size) && (!fetch || old == (before & all));
}

static void try_all(struct mirror *m, uint16_t amo[2][AMO_OPS])
{
    const uint16_t narrow = 1U << AMO_INT32 | 1U << AMO_UINT32;
    const uint16_t wide = 1U << AMO_INT64 | 1U << AMO_UINT64;
    for (int fetch = 0; fetch < 2; fetch++)
        for (unsigned op = 0; op < AMO_OPS; op++) {
            uint16_t *types = &amo[fetch][op];
            if (*types & narrow && !right(m, (enum amo_op)op, fetch, sizeof(uint32_t)))
                *types &= (uint16_t)~narrow;
            if (*types & wide && !right(m, (enum amo_op)op, fetch, sizeof(uint64_t)))
                *types &= (uint16_t)~wide;
        }
}

void weft_ucp_try_atomics(const struct weft_ucp_port *port, struct fabric_facts *facts)
{
    struct mirror mirror = {.context = port->context};
    if (reach_self(&mirror) == UCS_OK && reach_memory(&mirror) == UCS_OK)
        try_all(&mirror, facts->amo);
    facts->cswap[AMO_EQ] = facts->amo[1][AMO_CSWAP];
    leave(&mirror);
}
