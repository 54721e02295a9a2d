/* SPDX-License-Identifier: BSD-3-Clause */
/* One-sided operations. UCX calls a put or an atomic complete when our buffer is free; that it is
 * in the target's memory, a flush says. One flush is under way at a time, for all that were posted
 * before it; those posted meanwhile wait for the next. */
#include "fabric/ucp/ucp.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* ---- what is refused ---- */

static int no_key(uint64_t key)
{
    return weft_ucp_host->fail(-ENOENT, "ucp: no region of the target has key 0x%" PRIx64, key);
}

int weft_ucp_refuse_remote(const struct weft_ucp *u, const struct xfer *x)
{
    const struct weft_ucp_remote *r = x->remote->own;
    if (!r || !u->connected)
        return weft_ucp_not_connected(u);
    if (*r->alive != x->remote->key)
        return no_key(x->remote->key);
    if (!weft_ucp_in_buffer(x))
        return weft_ucp_host->fail(-ERANGE, "ucp: %zu bytes at %zu of a buffer of %zu", x->length,
                                   x->at, x->local->length);
    return weft_ucp_host->fail(-ERANGE, "ucp: %zu bytes at %zu, the target's region has %zu",
                               x->length, x->remote_at, r->length);
}

/* ---- completions ---- */

static const char *const verb_words[VERBS + 1] = {[VERB_WRITE] = "write",
                                                  [VERB_READ] = "read",
                                                  [VERB_ATOMIC] = "atomic",
                                                  [VERB_AM] = "am",
                                                  [VERB_SEND] = "send",
                                                  [VERB_TSEND] = "a tagged message",
                                                  [VERB_STREAM_SEND] = "a stream",
                                                  [VERBS] = "am"};

/* It is over, with an event for who waits for it. */
static void finish(struct weft_ucp_slot *slot)
{
    struct weft_ucp *u = slot->ucp;
    if (slot->verb < VERBS && !u->draining) {
        if (!slot->status && slot->remote && *slot->remote->alive != slot->key)
            slot->status = no_key(slot->key);
        *weft_ucp_event(u) = (struct completion){
            .id = slot->id, .verb = slot->verb, .status = slot->status, .length = slot->length};
    }
    weft_ucp_slot_give(slot);
}

static void note(struct weft_ucp_slot *slot, ucs_status_t status)
{
    struct weft_ucp *u = slot->ucp;
    if (status == UCS_OK || u->draining)
        return;
    if (slot->verb == VERBS)
        weft_ucp_lose(u, status, ucs_status_string(status));
    else
        slot->status = weft_ucp_refuse(u, verb_words[slot->verb], status);
}

/* The oldest first: what a flush that is over has settled. */
static void finish_settled(struct weft_ucp *u)
{
    while (u->waiting && u->waiting->settled && u->waiting->local) {
        struct weft_ucp_slot *slot = u->waiting;
        u->waiting = slot->next;
        if (!u->waiting)
            u->waiting_last = &u->waiting;
        finish(slot);
    }
}

void weft_ucp_slot_done(void *request, ucs_status_t status, void *arg)
{
    struct weft_ucp_slot *slot = arg;
    bool brought = request == slot->request;
    note(slot, status);
    if (slot->shows)
        weft_ucp_show(slot->ucp, request);
    slot->local = true;
    if (!slot->flushes)
        finish(slot);
    else
        finish_settled(slot->ucp);
    if (!brought)
        ucp_request_free(request);
}

/* ---- flushes ---- */

static void settle_all(struct weft_ucp *u, ucs_status_t status)
{
    for (struct weft_ucp_slot *slot = u->waiting; slot && slot->turn <= u->turn_begun;
         slot = slot->next) {
        note(slot, status);
        slot->settled = true;
        slot->local |= status != UCS_OK;
    }
}

static void flushed(void *request, ucs_status_t status, void *arg)
{
    struct weft_ucp *u = arg;
    u->flushing = false;
    settle_all(u, status);
    finish_settled(u);
    if (u->waiting)
        u->todo |= TODO_FLUSH;
    ucp_request_free(request);
}

static void start_flush(struct weft_ucp *u)
{
    ucp_request_param_t param = {.op_attr_mask =
                                     UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
                                 .cb.send = flushed,
                                 .user_data = u};
    u->todo &= ~(unsigned)TODO_FLUSH;
    u->turn_begun = u->turns++;
    void *request = ucp_ep_flush_nbx(u->ep, &param);
    u->flushing = UCS_PTR_IS_PTR(request);
    if (u->flushing)
        return;
    settle_all(u, UCS_PTR_STATUS(request));
}

void weft_ucp_flush_start(struct weft_ucp *u)
{
    start_flush(u);
    finish_settled(u);
}

/* After the call, the flush: most often in shared memory that is done at once, and then there is
 * nothing to wait for. */
static int flush_too(struct weft_ucp_slot *slot)
{
    struct weft_ucp *u = slot->ucp;
    bool alone = !u->waiting;
    slot->flushes = true;
    slot->turn = u->turns;
    slot->next = NULL;
    *u->waiting_last = slot;
    u->waiting_last = &slot->next;
    if (u->flushing)
        return LATER;
    start_flush(u);
    if (!alone || !slot->settled || !slot->local) {
        finish_settled(u);
        return LATER;
    }
    u->waiting = NULL;
    u->waiting_last = &u->waiting;
    weft_ucp_slot_give(slot);
    return slot->status ? slot->status : DONE;
}

int weft_ucp_flush(struct fabric *fabric, const struct xfer *x)
{
    struct weft_ucp *u = (struct weft_ucp *)fabric;
    if (!u->connected)
        return weft_ucp_not_connected(u);
    struct weft_ucp_slot *slot = weft_ucp_slot_next(u);
    if (!slot)
        return -EAGAIN;
    weft_ucp_slot_take(slot, VERB_WRITE, x);
    slot->local = true;
    return flush_too(slot);
}

int weft_ucp_begun(struct weft_ucp_slot *slot, enum verb verb, const struct xfer *x, void *request,
                   bool flushes)
{
    if (UCS_PTR_IS_ERR(request))
        return weft_ucp_refuse(slot->ucp, verb_words[verb], UCS_PTR_STATUS(request));
    if (slot->ucp->tuned)
        weft_ucp_show_once(slot->ucp, verb, x->length, request);
    if (!request && !flushes)
        return DONE;
    weft_ucp_slot_take(slot, verb, x);
    slot->remote = x->remote->own;
    slot->key = x->remote->key;
    slot->local = !request;
    return flushes ? flush_too(slot) : LATER;
}

int weft_ucp_sent_slowly(struct weft_ucp_slot *slot, enum verb verb, const struct xfer *x,
                         void *request, bool taken)
{
    if (UCS_PTR_IS_ERR(request)) {
        if (taken)
            weft_ucp_slot_give(slot);
        return weft_ucp_refuse(slot->ucp, verb_words[verb], UCS_PTR_STATUS(request));
    }
    if (!taken)
        weft_ucp_slot_take(slot, verb, x);
    return LATER;
}

/* ---- write and read ---- */

static inline int move(struct fabric *fabric, const struct xfer *x, enum verb verb)
{
    struct weft_ucp *u = (struct weft_ucp *)fabric;
    const struct weft_ucp_remote *r = x->remote->own;
    if (!weft_ucp_acceptable(x))
        return weft_ucp_refuse_remote(u, x);
    if (!x->length)
        return DONE;
    struct weft_ucp_slot *slot = weft_ucp_slot_next(u);
    if (!slot)
        return -EAGAIN;
    ucp_request_param_t own;
    struct weft_ucp_bytes b = weft_ucp_bytes(slot, verb, x, &u->send, &own);
    uint64_t there = r->base + x->remote_at;
    bool writes = verb == VERB_WRITE;
    void *request = writes ? ucp_put_nbx(u->ep, b.at, b.count, there, r->rkey, b.param)
                           : ucp_get_nbx(u->ep, b.at, b.count, there, r->rkey, b.param);
    return weft_ucp_begun(slot, verb, x, request, writes && !(x->how & HINT(LOCAL)));
}

int weft_ucp_write(struct fabric *fabric, const struct xfer *x)
{
    return move(fabric, x, VERB_WRITE);
}

int weft_ucp_read(struct fabric *fabric, const struct xfer *x)
{
    return move(fabric, x, VERB_READ);
}
