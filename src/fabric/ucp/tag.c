/* SPDX-License-Identifier: BSD-3-Clause */
/* Tagged messages, and on them messages that fill receives in order: those have a bit that no
 * caller's tag has. UCX keeps whatever comes before its receive, without end: so the receiver tells
 * what it has taken, in units, and a window of them may be on its way. */
#include "fabric/ucp/ucp.h"

#include <errno.h>

enum { UNIT = 4096, UNITS_MOST = WEFT_UCP_WINDOW / 32, TELL_EVERY = WEFT_UCP_WINDOW / 4 };
static const uint64_t mail_bit = UINT64_C(1) << 63;

/* Of a long one UCX keeps the announcement alone: as many as are outstanding in its own tool are on
 * their way whatever their length. */
static inline uint64_t units(size_t length)
{
    if (length < UNIT)
        return 1;
    return length / UNIT < UNITS_MOST ? 1 + length / UNIT : UNITS_MOST;
}

void weft_ucp_flow_acked(struct weft_ucp *u, uint64_t acked)
{
    if (acked > u->flow.acked && acked <= u->flow.sent)
        u->flow.acked = acked;
}

void weft_ucp_flow_tell(struct weft_ucp *u)
{
    if (u->connected && weft_ucp_tell(u, NEWS_TAKEN, u->flow.taken) < 0)
        return;
    u->flow.told = u->flow.taken;
    u->todo &= ~(unsigned)TODO_TELL;
}

/* ---- out ---- */

static int refuse(const struct weft_ucp *u, const struct xfer *x)
{
    if (!u->connected)
        return weft_ucp_not_connected(u);
    return weft_ucp_host->fail(-ERANGE, "ucp: a message of %zu bytes at %zu of a buffer of %zu",
                               x->length, x->at, x->local->length);
}

/* What UCX did not take is not on its way. */
static __attribute__((noinline)) int sent_slowly(struct weft_ucp_slot *slot, enum verb verb,
                                                 const struct xfer *x, void *request, bool taken)
{
    if (UCS_PTR_IS_ERR(request))
        slot->ucp->flow.sent -= units(x->length);
    return weft_ucp_sent_slowly(slot, verb, x, request, taken);
}

static __attribute__((noinline)) int
send_specially(struct weft_ucp_slot *slot, const struct xfer *x, enum verb verb, uint64_t tag)
{
    struct weft_ucp *u = slot->ucp;
    ucp_request_param_t own;
    struct weft_ucp_bytes b = weft_ucp_bytes(slot, verb, x, &u->send, &own);
    void *request = x->how & HINT(SYNC) ? ucp_tag_send_sync_nbx(u->ep, b.at, b.count, tag, b.param)
                                        : ucp_tag_send_nbx(u->ep, b.at, b.count, tag, b.param);
    return request ? sent_slowly(slot, verb, x, request, b.taken) : DONE;
}

static inline int send_tagged(struct weft_ucp *u, const struct xfer *x, enum verb verb,
                              uint64_t tag)
{
    if (!u->connected || !weft_ucp_in_buffer(x))
        return refuse(u, x);
    uint64_t sent = u->flow.sent + units(x->length);
    struct weft_ucp_slot *slot = weft_ucp_slot_next(u);
    if (!slot || sent - u->flow.acked > WEFT_UCP_WINDOW)
        return -EAGAIN;
    u->flow.sent = sent;
    if (!weft_ucp_usual(u, x) || x->how & HINT(SYNC))
        return send_specially(slot, x, verb, tag);
    void *request = ucp_tag_send_nbx(u->ep, x->local->address + x->at, x->length, tag, &u->send);
    return request ? sent_slowly(slot, verb, x, request, false) : DONE;
}

/* A short message of the host, in one piece, on a connection without anything unusual. */
static inline bool is_plain(const struct weft_ucp *u, const struct xfer *x)
{
    size_t room = x->local->length;
    return __builtin_expect(u->plain && u->free && !x->pieces && !x->local->gpu &&
                                x->length < UNIT && x->length <= room && x->at <= room - x->length,
                            1);
}

static int send_any(struct fabric *fabric, const struct xfer *x)
{
    if (x->tag & mail_bit)
        return weft_ucp_host->fail(-EINVAL, "ucp: a tag of 64 bits: it takes 63");
    return send_tagged((struct weft_ucp *)fabric, x, VERB_TSEND, x->tag);
}

/* Whatever is unusual, and what may abort. */
static __attribute__((noinline)) int
otherwise(struct weft_ucp *u, int (*verb)(struct fabric *fabric, const struct xfer *x),
          const struct xfer *x)
{
    return u->survives ? weft_ucp_survive_verb(u, verb, x) : verb(&u->fabric, x);
}

/* The plain way is short: it is between an arrival and the answer. */
int weft_ucp_tsend(struct fabric *fabric, const struct xfer *x)
{
    struct weft_ucp *u = (struct weft_ucp *)fabric;
    if (!is_plain(u, x) || x->how & HINT(SYNC) || x->tag & mail_bit ||
        u->flow.sent - u->flow.acked >= WEFT_UCP_WINDOW)
        return otherwise(u, send_any, x);
    struct weft_ucp_slot *slot = weft_ucp_slot_next(u);
    u->flow.sent++;
    void *request = ucp_tag_send_nbx(u->ep, x->local->address + x->at, x->length, x->tag, &u->send);
    return request ? sent_slowly(slot, VERB_TSEND, x, request, false) : DONE;
}

int weft_ucp_send(struct fabric *fabric, const struct xfer *x)
{
    return send_tagged((struct weft_ucp *)fabric, x, VERB_SEND, mail_bit);
}

/* ---- in ---- */

static void hand_over(struct weft_ucp_slot *slot, uint64_t tag)
{
    *weft_ucp_event(slot->ucp) = (struct completion){.id = slot->id,
                                                     .verb = slot->verb,
                                                     .status = slot->status,
                                                     .length = slot->length,
                                                     .tag = tag};
    weft_ucp_slot_give(slot);
}

/* A long message may be here after a short one behind it. */
static void hand_over_mail(struct weft_ucp *u)
{
    while (u->mail.first && u->mail.first->ready) {
        struct weft_ucp_slot *slot = u->mail.first;
        u->mail.first = slot->next;
        if (!u->mail.first)
            u->mail.last = &u->mail.first;
        hand_over(slot, 0);
    }
}

static inline void count_taken(struct weft_ucp *u, size_t length)
{
    u->flow.taken += units(length);
    if (u->flow.taken - u->flow.told >= TELL_EVERY)
        u->todo |= TODO_TELL;
}

/* In order, or not what it was to bring, or nobody waits for it any more. */
static __attribute__((noinline)) void
received_otherwise(struct weft_ucp_slot *slot, ucs_status_t status, const ucp_tag_recv_info_t *info)
{
    struct weft_ucp *u = slot->ucp;
    u->receives--;
    if (u->draining) {
        u->taken--;
        return;
    }
    if (status == UCS_ERR_MESSAGE_TRUNCATED)
        slot->status =
            weft_ucp_host->fail(-EMSGSIZE, "ucp: a message of %zu bytes into a buffer of %zu",
                                info->length, (size_t)slot->length);
    else if (status != UCS_OK)
        slot->status = weft_ucp_refuse(u, "a receive", status);
    slot->length = info->length;
    count_taken(u, slot->length);
    slot->ready = true;
    if (slot->verb == VERB_RECV)
        hand_over_mail(u);
    else
        hand_over(slot, info->sender_tag);
}

/* The request is in our memory, and stays with its slot. */
static void received(void *request, ucs_status_t status, const ucp_tag_recv_info_t *info, void *arg)
{
    struct weft_ucp_slot *slot = arg;
    struct weft_ucp *u = slot->ucp;
    (void)request;
    if (__builtin_expect(status != UCS_OK || u->draining || slot->verb == VERB_RECV, 0)) {
        received_otherwise(slot, status, info);
        return;
    }
    u->receives--;
    count_taken(u, info->length);
    *weft_ucp_event(u) = (struct completion){
        .id = slot->id, .verb = VERB_TRECV, .length = info->length, .tag = info->sender_tag};
    weft_ucp_slot_give(slot);
}

/* The callback may come before the call returns. */
static inline int post_receive(struct weft_ucp *u, const struct xfer *x, enum verb verb,
                               uint64_t tag, uint64_t mask, bool plain)
{
    struct weft_ucp_slot *slot = u->free;
    weft_ucp_slot_take(slot, verb, x);
    u->receives++;
    if (verb == VERB_RECV) {
        slot->next = NULL;
        *u->mail.last = slot;
        u->mail.last = &slot->next;
    }
    u->receive.user_data = slot;
    u->receive.request = slot->request;
    ucp_request_param_t own;
    struct weft_ucp_bytes b = {
        .at = x->local->address + x->at, .count = x->length, .param = &u->receive};
    if (!plain)
        b = weft_ucp_bytes(slot, verb, x, &u->receive, &own);
    void *request = ucp_tag_recv_nbx(u->worker, b.at, b.count, tag, mask, b.param);
    if (UCS_PTR_IS_ERR(request))
        weft_ucp_lose(u, UCS_PTR_STATUS(request), "a receive cannot be posted");
    return LATER;
}

const ucp_request_param_t weft_ucp_receive = {
    .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                    UCP_OP_ATTR_FIELD_MEMORY_TYPE | UCP_OP_ATTR_FIELD_REQUEST |
                    UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
    .memory_type = UCS_MEMORY_TYPE_HOST,
    .cb.recv = received};

static int receive_in(struct weft_ucp *u, const struct xfer *x, enum verb verb, uint64_t tag,
                      uint64_t mask)
{
    if (!u->connected || !weft_ucp_in_buffer(x))
        return refuse(u, x);
    return u->free ? post_receive(u, x, verb, tag, mask, false) : -EAGAIN;
}

static int receive_any(struct fabric *fabric, const struct xfer *x)
{
    return receive_in((struct weft_ucp *)fabric, x, VERB_TRECV, x->tag & ~mail_bit,
                      x->mask | mail_bit);
}

int weft_ucp_trecv(struct fabric *fabric, const struct xfer *x)
{
    struct weft_ucp *u = (struct weft_ucp *)fabric;
    if (!is_plain(u, x))
        return otherwise(u, receive_any, x);
    return post_receive(u, x, VERB_TRECV, x->tag & ~mail_bit, x->mask | mail_bit, true);
}

int weft_ucp_recv(struct fabric *fabric, const struct xfer *x)
{
    return receive_in((struct weft_ucp *)fabric, x, VERB_RECV, mail_bit, UINT64_MAX);
}

int weft_ucp_tprobe(struct fabric *fabric, const struct xfer *x)
{
    struct weft_ucp *u = (struct weft_ucp *)fabric;
    ucp_tag_recv_info_t info;
    if (!u->connected)
        return weft_ucp_not_connected(u);
    return ucp_tag_probe_nb(u->worker, x->tag & ~mail_bit, x->mask | mail_bit, 0, &info) ? DONE
                                                                                         : -EAGAIN;
}
