/* SPDX-License-Identifier: BSD-3-Clause */
/* An ordered stream of bytes. A receive that borrows waits here until UCX has bytes to lend; what
 * is lent goes back with the next poll, once all of it has been handed out. */
#include "fabric/ucp/ucp.h"

#include <errno.h>

static int refuse(const struct weft_ucp *u, const struct xfer *x)
{
    if (!u->connected)
        return weft_ucp_not_connected(u);
    return weft_ucp_host->fail(-ERANGE, "ucp: %zu bytes at %zu of a buffer of %zu", x->length,
                               x->at, x->local->length);
}

int weft_ucp_stream_send(struct fabric *fabric, const struct xfer *x)
{
    struct weft_ucp *u = (struct weft_ucp *)fabric;
    if (!u->connected || !weft_ucp_in_buffer(x))
        return refuse(u, x);
    struct weft_ucp_slot *slot = weft_ucp_slot_next(u);
    if (!slot)
        return -EAGAIN;
    ucp_request_param_t own;
    struct weft_ucp_bytes b = weft_ucp_bytes(slot, VERB_STREAM_SEND, x, &u->send, &own);
    void *request = ucp_stream_send_nbx(u->ep, b.at, b.count, b.param);
    return weft_ucp_sent(slot, VERB_STREAM_SEND, x, request, b.taken);
}

static void came(struct weft_ucp *u, uint64_t id, size_t length, const void *data)
{
    *weft_ucp_event(u) =
        (struct completion){.id = id, .verb = VERB_STREAM_RECV, .length = length, .data = data};
}

static void received(void *request, ucs_status_t status, size_t length, void *arg)
{
    struct weft_ucp_slot *slot = arg;
    struct weft_ucp *u = slot->ucp;
    if (status == UCS_OK && !u->draining)
        came(u, slot->id, length, NULL);
    else if (!u->draining)
        weft_ucp_lose(u, status, ucs_status_string(status));
    u->receives--;
    weft_ucp_slot_give(slot);
    ucp_request_free(request);
}

/* ---- what is borrowed ---- */

/* A receive that borrows is a slot in a queue. */
static int borrow(struct weft_ucp_slot *slot, const struct xfer *x)
{
    struct weft_ucp *u = slot->ucp;
    weft_ucp_slot_take(slot, VERB_STREAM_RECV, x);
    u->receives++;
    slot->next = NULL;
    *u->loan.last = slot;
    u->loan.last = &slot->next;
    u->todo |= TODO_LEND;
    return LATER;
}

void weft_ucp_stream_give_back(struct weft_ucp *u)
{
    if (u->loan.data && !u->loan.left && u->ep)
        ucp_stream_data_release(u->ep, u->loan.data);
    if (!u->loan.left)
        u->loan.data = NULL;
}

/* One receive gets what there is, as far as it asked for it. */
void weft_ucp_stream_lend(struct weft_ucp *u)
{
    struct weft_ucp_slot *slot = u->loan.first;
    size_t length = 0;
    weft_ucp_stream_give_back(u);
    if (!slot || !u->connected)
        return;
    if (!u->loan.data) {
        void *data = ucp_stream_recv_data_nb(u->ep, &length);
        if (!UCS_PTR_IS_PTR(data)) {
            if (UCS_PTR_IS_ERR(data))
                weft_ucp_lose(u, UCS_PTR_STATUS(data), ucs_status_string(UCS_PTR_STATUS(data)));
            return;
        }
        u->loan.data = data;
        u->loan.at = data;
        u->loan.left = length;
    }
    length = u->loan.left < slot->length ? u->loan.left : slot->length;
    came(u, slot->id, length, u->loan.at);
    u->loan.at += length;
    u->loan.left -= length;
    u->loan.first = slot->next;
    if (!u->loan.first)
        u->loan.last = &u->loan.first;
    u->receives--;
    weft_ucp_slot_give(slot);
    if (!u->loan.first && u->loan.left)
        u->todo &= ~(unsigned)TODO_LEND;
}

const ucp_request_param_t weft_ucp_stream_receive = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                                                                     UCP_OP_ATTR_FIELD_USER_DATA |
                                                                     UCP_OP_ATTR_FIELD_MEMORY_TYPE,
                                                     .cb.recv_stream = received};

int weft_ucp_stream_recv(struct fabric *fabric, const struct xfer *x)
{
    struct weft_ucp *u = (struct weft_ucp *)fabric;
    if (!u->connected || !weft_ucp_in_buffer(x))
        return refuse(u, x);
    if (!x->length)
        return weft_ucp_host->fail(-EINVAL, "ucp: a stream's receive of no bytes");
    struct weft_ucp_slot *slot = weft_ucp_slot_next(u);
    if (!slot)
        return -EAGAIN;
    if (x->how & HINT(LEND))
        return borrow(slot, x);
    size_t length = 0;
    u->stream.memory_type = weft_ucp_type(&u->port, x->local);
    u->stream.user_data = slot;
    void *request =
        ucp_stream_recv_nbx(u->ep, x->local->address + x->at, x->length, &length, &u->stream);
    if (UCS_PTR_IS_ERR(request))
        return weft_ucp_refuse(u, "a stream", UCS_PTR_STATUS(request));
    if (!request) {
        came(u, x->id, length, NULL);
        return LATER;
    }
    weft_ucp_slot_take(slot, VERB_STREAM_RECV, x);
    u->receives++;
    return LATER;
}
