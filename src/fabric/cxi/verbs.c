/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes and reads: with the bytes in the command (IDC), by a DMA command of 32 bytes where one
 * alone is under way and needs no name, else by one of 64 bytes. */
#include "fabric/cxi/cxi.h"

#include <inttypes.h>

enum { LONGEST_HRP = 2048, IDC_HEAD = c_idc_put_cmd__size };

/* ---- what may not be ---- */

int weft_cxi_check(const struct weft_cxi *cxi, const struct xfer *x, size_t span)
{
    const struct weft_cxi_remote *r = x->remote->own;
    size_t length = x->length + span;
    if (!cxi->connected)
        return weft_cxi_host->fail(-ENOTCONN, "cxi: not connected");
    if (!weft_cxi_in_buffer(x) || span > x->local->length - x->at - x->length)
        return weft_cxi_host->fail(-ERANGE, "cxi: %zu bytes at %zu of a buffer of %zu", length,
                                   x->at, x->local->length);
    if (!r || x->remote->key != r->key)
        return weft_cxi_host->fail(-ENOENT, "cxi: no region of the target has key 0x%" PRIx64,
                                   x->remote->key);
    if (length > r->length || x->remote_at > r->length - length)
        return weft_cxi_host->fail(-ERANGE, "cxi: %zu bytes at %zu of the target's %zu", length,
                                   x->remote_at, r->length);
    if (x->length > UINT32_MAX)
        return weft_cxi_host->fail(-EMSGSIZE, "cxi: %zu bytes are too long for one operation",
                                   x->length);
    return 0;
}

int weft_cxi_check_form(const struct xfer *x)
{
    if (x->how & HINT(INLINE) && x->length > WEFT_C_MAX_IDC_PAYLOAD_RES)
        return weft_cxi_host->fail(-EMSGSIZE, "cxi: %zu bytes do not fit into a command, %d do",
                                   x->length, WEFT_C_MAX_IDC_PAYLOAD_RES);
    if (x->how & HINT(SHORT) && x->length > WEFT_C_MAX_IDC_PAYLOAD_UNR)
        return weft_cxi_host->fail(-EMSGSIZE, "cxi: %zu bytes are not short, %d are", x->length,
                                   WEFT_C_MAX_IDC_PAYLOAD_UNR);
    if (x->how & (HINT(INLINE) | HINT(SHORT)) && x->local->gpu)
        return weft_cxi_host->fail(-ENOTSUP, "cxi: immediate data cannot come from GPU memory");
    return 0;
}

/* Everything that is asked for of every operation, at once. */
static inline bool acceptable(const struct weft_cxi *cxi, const struct xfer *x)
{
    const struct weft_cxi_remote *r = x->remote->own;
    return cxi->connected && weft_cxi_in_buffer(x) && r && x->remote->key == r->key &&
           x->length <= r->length && x->remote_at <= r->length - x->length &&
           x->length <= UINT32_MAX;
}

/* ---- commands ---- */

bool weft_cxi_cstate(struct weft_cxi_tx *tx, const uint64_t cstate[4])
{
    if (memcmp(tx->cstate, cstate, sizeof tx->cstate) == 0)
        return true;
    if (!weft_cxi_emit(tx->cq, WEFT_C_CMD_TYPE_IDC, WEFT_C_CMD_CSTATE, cstate, sizeof tx->cstate))
        return false;
    memcpy(tx->cstate, cstate, sizeof tx->cstate);
    return true;
}

bool weft_cxi_profile(struct weft_cxi_tx *tx, const struct weft_cxi_cp *cp)
{
    if (tx->lcid == cp->lcid)
        return true;
    if (!weft_cxi_emit_lcid(tx->cq, cp->lcid))
        return false;
    tx->lcid = cp->lcid;
    return true;
}

bool weft_cxi_emit_idc(struct weft_cxi *cxi, struct weft_cxi_tx *tx,
                       const struct weft_cxi_idc_put *put)
{
    uint64_t cstate[c_cstate_cmd__size / sizeof(uint64_t)] = {0};
    uint64_t command[256 / sizeof(uint64_t)];
    cassini_put(cstate, c_cstate_cmd__length, c_cstate_cmd__size);
    cassini_put(cstate, c_cstate_cmd__event_send_disable, 1);
    cassini_put(cstate, c_cstate_cmd__event_success_disable, put->quiet);
    cassini_put(cstate, c_cstate_cmd__event_ct_ack, put->counts);
    cassini_put(cstate, c_cstate_cmd__restricted, put->restricted);
    cassini_put(cstate, c_cstate_cmd__initiator, put->restricted ? 0 : weft_cxi_self(cxi));
    cassini_put(cstate, c_cstate_cmd__index_ext, put->index);
    cassini_put(cstate, c_cstate_cmd__user_ptr, put->user_ptr);
    cassini_put(cstate, c_cstate_cmd__ct, put->counts ? cxi->ct->ctn : 0);
    cassini_put(cstate, c_cstate_cmd__eq, cxi->eq->eqn);
    memset(command, 0, IDC_HEAD);
    cassini_put(command, c_idc_put_cmd__length, IDC_HEAD + put->length);
    cassini_put(command, c_idc_put_cmd__dfa, weft_cxi_dfa(cxi, put->index));
    cassini_put(command, c_idc_put_cmd__remote_offset, put->offset);
    memcpy((char *)command + IDC_HEAD, put->bytes, put->length);
    return weft_cxi_cstate(tx, cstate) && weft_cxi_emit(tx->cq, WEFT_C_CMD_TYPE_IDC, WEFT_C_CMD_PUT,
                                                        command, IDC_HEAD + put->length);
}

/* A DMA command of either length: the first 32 bytes are alike. */
static bool emit_dma(struct weft_cxi *cxi, const struct xfer *x, const struct weft_cxi_way *way,
                     bool get)
{
    const struct weft_cxi_remote *r = x->remote->own;
    const struct weft_cxi_exposed *e = weft_cxi_find(cxi, x->local);
    uint64_t command[c_full_dma_cmd__size / sizeof(uint64_t)] = {0};
    unsigned index = get ? r->get : r->put;
    bool restricted = x->how & HINT(RESTRICTED), brief = restricted && !way->user_ptr;
    cassini_put(command, c_full_dma_cmd__index_ext, index);
    cassini_put(command, c_full_dma_cmd__lac, e->md->lac);
    cassini_put(command, c_full_dma_cmd__event_send_disable, 1);
    cassini_put(command, c_full_dma_cmd__event_success_disable, way->counts);
    cassini_put(command, get ? c_full_dma_cmd__event_ct_reply : c_full_dma_cmd__event_ct_ack,
                way->counts);
    cassini_put(command, c_full_dma_cmd__restricted, restricted);
    cassini_put(command, c_full_dma_cmd__dfa, weft_cxi_dfa(cxi, index));
    cassini_put(command, c_full_dma_cmd__remote_offset, x->remote_at);
    cassini_put(command, c_full_dma_cmd__local_addr,
                weft_cxi_iova(e->md, x->local->address + x->at));
    cassini_put(command, c_full_dma_cmd__request_len, x->length);
    cassini_put(command, c_full_dma_cmd__ct, way->counts ? cxi->ct->ctn : 0);
    cassini_put(command, c_full_dma_cmd__eq, cxi->eq->eqn);
    if (brief)
        return weft_cxi_emit(cxi->data.cq, WEFT_C_CMD_TYPE_DMA,
                             get ? WEFT_C_CMD_NOMATCH_GET : WEFT_C_CMD_NOMATCH_PUT, command,
                             c_nomatch_dma_cmd__size);
    cassini_put(command, c_full_dma_cmd__initiator, weft_cxi_self(cxi));
    cassini_put(command, c_full_dma_cmd__user_ptr, way->user_ptr);
    return weft_cxi_emit(cxi->data.cq, WEFT_C_CMD_TYPE_DMA, get ? WEFT_C_CMD_GET : WEFT_C_CMD_PUT,
                         command, c_full_dma_cmd__size);
}

static const struct weft_cxi_cp *profile_of(const struct weft_cxi *cxi, const struct xfer *x)
{
    bool hrp = cxi->hrp && x->how & HINT(HRP) && x->how & HINT(RESTRICTED);
    return hrp && x->length <= LONGEST_HRP ? cxi->hrp : cxi->cp;
}

int weft_cxi_emit_put(struct weft_cxi *cxi, const struct xfer *x, const struct weft_cxi_way *way)
{
    if (!weft_cxi_profile(&cxi->data, profile_of(cxi, x)))
        return -EAGAIN;
    if (!weft_cxi_idc(x))
        return emit_dma(cxi, x, way, false) ? 0 : -EAGAIN;
    const struct weft_cxi_remote *r = x->remote->own;
    const struct weft_cxi_idc_put put = {.index = r->put,
                                         .restricted = x->how & HINT(RESTRICTED),
                                         .quiet = way->counts,
                                         .counts = way->counts,
                                         .user_ptr = way->user_ptr,
                                         .offset = x->remote_at,
                                         .bytes = x->local->address + x->at,
                                         .length = x->length};
    return weft_cxi_emit_idc(cxi, &cxi->data, &put) ? 0 : -EAGAIN;
}

int weft_cxi_emit_get(struct weft_cxi *cxi, const struct xfer *x, const struct weft_cxi_way *way)
{
    return weft_cxi_profile(&cxi->data, cxi->cp) && emit_dma(cxi, x, way, true) ? 0 : -EAGAIN;
}

/* ---- verbs ---- */

/* DMA from and to memory that the NIC does not know cannot be. */
static int not_exposed(void)
{
    return weft_cxi_host->fail(-EINVAL, "cxi: the buffer of this operation is not exposed");
}

/* No room in the queue: what was kept back goes now. */
static int later(struct weft_cxi *cxi)
{
    weft_cxi_ring(cxi->data.cq);
    return -EAGAIN;
}

static int post(struct weft_cxi *cxi, const struct xfer *x, bool get)
{
    bool idc = !get && weft_cxi_idc(x);
    bool nameless = !idc && x->how & HINT(RESTRICTED) && !cxi->slots[0].busy && !cxi->batch.busy;
    if (!idc && !weft_cxi_find(cxi, x->local))
        return not_exposed();
    struct weft_cxi_slot *slot = weft_cxi_take(cxi, get ? VERB_READ : VERB_WRITE, x, nameless);
    if (!slot)
        return later(cxi);
    const struct weft_cxi_way way = {.user_ptr = (uint64_t)(slot - cxi->slots)};
    int status = get ? weft_cxi_emit_get(cxi, x, &way) : weft_cxi_emit_put(cxi, x, &way);
    if (status) {
        weft_cxi_give(cxi, slot);
        return later(cxi);
    }
    weft_cxi_go(cxi, x->how);
    return LATER;
}

int weft_cxi_write(struct fabric *fabric, const struct xfer *x)
{
    struct weft_cxi *cxi = (struct weft_cxi *)fabric;
    if (!acceptable(cxi, x))
        return weft_cxi_check(cxi, x, 0);
    int status = weft_cxi_check_form(x);
    return status ? status : post(cxi, x, false);
}

int weft_cxi_read(struct fabric *fabric, const struct xfer *x)
{
    struct weft_cxi *cxi = (struct weft_cxi *)fabric;
    return acceptable(cxi, x) ? post(cxi, x, true) : weft_cxi_check(cxi, x, 0);
}
