/* SPDX-License-Identifier: BSD-3-Clause */
/* Active messages, the queue of events, and poll. What came by rendezvous is fetched before it
 * counts as arrived; arrivals keep their order. The handler copies only if the caller looks. */
#include "core/clock.h"
#include "fabric/ucp/ucp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    EVENTS = 1024,
    HEADER = sizeof(uint64_t),
    PACKET_LEAST = 256,
    KEPT_LEAST = 64 << 20 /* so much may be kept, and the largest region twice */
};

/* ---- bytes kept aside ---- */

/* What the other end sends is no longer than what this end has room for. */
static size_t longest(const struct weft_ucp *u)
{
    size_t most = 0;
    for (int i = 0; i < WEFT_UCP_ENTRIES; i++)
        if (u->exposed[i].region && u->exposed[i].region->length > most)
            most = u->exposed[i].region->length;
    return most + WEFT_UCP_HEAD_MAX;
}

static bool has_room(const struct weft_ucp *u, size_t bytes)
{
    size_t most = 2 * longest(u) + KEPT_LEAST;
    return bytes <= most && u->kept <= most - bytes;
}

/* So many bytes of it are kept here; what is kept already stays. */
static bool keep_bytes(struct weft_ucp_packet *packet, size_t here)
{
    struct weft_ucp *u = packet->ucp;
    if (packet->room < here || !packet->data) {
        size_t room = here > PACKET_LEAST ? here : PACKET_LEAST;
        char *data = realloc(packet->data, room);
        if (!data) {
            weft_ucp_lose(u, UCS_ERR_NO_MEMORY, "no memory for what arrived");
            return false;
        }
        packet->data = data;
        packet->room = room;
    }
    u->kept += here - packet->here;
    packet->here = here;
    return true;
}

static void drop(struct weft_ucp *u, struct weft_ucp_packet *packet)
{
    u->kept -= sizeof *packet + packet->here;
    packet->next = u->spare;
    u->spare = packet;
}

static struct weft_ucp_packet *new_packet(struct weft_ucp *u, size_t length, size_t here)
{
    struct weft_ucp_packet *packet = u->spare;
    if (length > longest(u) || !has_room(u, sizeof *packet + here)) {
        weft_ucp_lose(u, UCS_ERR_EXCEEDS_LIMIT, "it sends more than this end has room for");
        return NULL;
    }
    if (packet)
        u->spare = packet->next;
    else
        packet = calloc(1, sizeof *packet);
    if (!packet) {
        weft_ucp_lose(u, UCS_ERR_NO_MEMORY, "no memory for what arrived");
        return NULL;
    }
    *packet = (struct weft_ucp_packet){
        .ucp = u, .length = length, .data = packet->data, .room = packet->room};
    u->kept += sizeof *packet;
    if (keep_bytes(packet, here))
        return packet;
    drop(u, packet);
    return NULL;
}

void weft_ucp_packets_free(struct weft_ucp *u)
{
    while (u->spare) {
        struct weft_ucp_packet *packet = u->spare;
        u->spare = packet->next;
        free(packet->data);
        free(packet);
    }
}

/* ---- events ---- */

/* Room for more: what was handed out goes first. Progress stops long before there are too many. */
bool weft_ucp_events_grow(struct weft_ucp *u)
{
    if (u->next) {
        memmove(u->events, u->events + u->next, (u->count - u->next) * sizeof *u->events);
        u->count -= u->next;
        u->next = 0;
        return true;
    }
    unsigned room = u->room ? 2 * u->room : EVENTS;
    struct completion *events = realloc(u->events, room * sizeof *events);
    if (!events) {
        weft_ucp_lose(u, UCS_ERR_NO_MEMORY, "no memory for events");
        return false;
    }
    u->events = events;
    u->room = room;
    return true;
}

struct completion *weft_ucp_event_queued(struct weft_ucp *u)
{
    static _Thread_local struct completion nowhere;
    if (u->count == u->room && !weft_ucp_events_grow(u))
        return &nowhere;
    return &u->events[u->count++];
}

static void drop_given(struct weft_ucp *u)
{
    u->todo &= ~(unsigned)TODO_GIVEN;
    while (u->given) {
        struct weft_ucp_packet *packet = u->given;
        u->given = packet->next;
        drop(u, packet);
    }
}

void weft_ucp_events_drop(struct weft_ucp *u)
{
    u->next = u->count = 0;
    drop_given(u);
    while (u->first) {
        struct weft_ucp_packet *packet = u->first;
        u->first = packet->next;
        drop(u, packet);
    }
    u->last = &u->first;
}

static uint64_t first_word(const char *data, size_t length)
{
    uint64_t word = 0;
    if (length >= HEADER)
        memcpy(&word, data, HEADER);
    return word;
}

/* Arrivals in their order; what is looked at lasts until the next poll. */
static int hand_out(struct weft_ucp *u, struct completion *completions, int max)
{
    int got = 0;
    while (got < max && u->next < u->count)
        completions[got++] = u->events[u->next++];
    if (u->next == u->count)
        u->next = u->count = 0;
    while (got < max && u->first && u->first->ready) {
        struct weft_ucp_packet *packet = u->first;
        u->first = packet->next;
        if (!u->first)
            u->last = &u->first;
        completions[got++] = (struct completion){.id = first_word(packet->data, packet->here),
                                                 .verb = VERB_ARRIVAL,
                                                 .status = packet->status,
                                                 .length = packet->length,
                                                 .data = u->looks ? packet->data : NULL};
        packet->next = u->given;
        u->given = packet;
        u->todo |= TODO_GIVEN;
    }
    return got;
}

static bool has_some(const struct weft_ucp *u)
{
    return u->count || (u->first && u->first->ready);
}

/* The rare part of a poll. */
static int poll_more(struct weft_ucp *u, struct completion *completions, int max)
{
    if (u->todo & TODO_GIVEN)
        drop_given(u);
    if (u->waits && u->connected)
        weft_ucp_fetch(u);
    if (u->todo & TODO_FLUSH && u->connected)
        weft_ucp_flush_start(u);
    if (u->todo & TODO_TELL)
        weft_ucp_flow_tell(u);
    if (!has_some(u) && u->worker && !(u->todo & TODO_LOST))
        ucp_worker_progress(u->worker);
    if (u->todo & TODO_LEND && !u->count)
        weft_ucp_stream_lend(u);
    int got = hand_out(u, completions, max);
    if (!got && u->todo & TODO_LOST)
        return weft_ucp_not_connected(u);
    return got;
}

/* A look in shared memory takes less than the way here: a poll for one, which is waited for, looks
 * several times, with a pause between two looks: the other end writes a message in several stores,
 * and each look takes the line away from it. */
int weft_ucp_poll(struct fabric *fabric, struct completion *completions, int max)
{
    struct weft_ucp *u = (struct weft_ucp *)fabric;
    if (u->count || u->todo || u->first || !u->worker)
        return poll_more(u, completions, max);
    u->sink = completions;
    u->sink_end = completions + max;
    for (unsigned i = max == 1 ? u->spins : 1; !ucp_worker_progress(u->worker) && --i;)
        cpu_relax();
    int got = (int)(u->sink - completions);
    u->sink = u->sink_end = NULL;
    return got || !has_some(u) ? got : hand_out(u, completions, max);
}

/* ---- sleep ---- */

int weft_ucp_event_fd(struct fabric *fabric)
{
    struct weft_ucp *u = (struct weft_ucp *)fabric;
    int fd = -1;
    if (!u->sleeps || !u->worker)
        return weft_ucp_host->fail(-ENOTSUP, "ucp: it was not opened for events");
    ucs_status_t status = ucp_worker_get_efd(u->worker, &fd);
    return status == UCS_OK ? fd : weft_ucp_refuse(u, "an event descriptor", status);
}

/* Bytes of a stream wake who waits to be lent them. */
int weft_ucp_arm(struct fabric *fabric)
{
    struct weft_ucp *u = (struct weft_ucp *)fabric;
    if (!u->worker || has_some(u) || u->todo & ~(unsigned)TODO_LEND)
        return -EAGAIN;
    ucs_status_t status = ucp_worker_arm(u->worker);
    return status == UCS_OK         ? DONE
           : status == UCS_ERR_BUSY ? -EAGAIN
                                    : weft_ucp_refuse(u, "sleeping", status);
}

/* ---- in ---- */

/* By rendezvous the sender waits until this end has fetched it. Where nobody looks, and on a GPU,
 * all of them come to the end of this end's memory, as in UCX's own tool; what this end sends lies
 * before its middle. */
static bool comes_to_inbox(const struct weft_ucp *u)
{
    return u->inbox && (u->inbox->gpu || !u->looks);
}

static size_t inbox_at(const struct weft_ucp *u, const struct weft_ucp_packet *packet)
{
    return u->inbox->length - (packet->length - packet->at);
}

/* It is where it was to come; from a GPU what is looked at is copied. */
static void landed(struct weft_ucp_packet *packet, ucs_status_t status)
{
    struct weft_ucp *u = packet->ucp;
    packet->ready = true;
    u->fetching--;
    if (u->draining)
        return;
    if (status != UCS_OK)
        packet->status = weft_ucp_refuse(u, "fetching a message", status);
    else if (u->looks && comes_to_inbox(u))
        packet->status = u->inbox->kind->peek(
            u->inbox, inbox_at(u, packet), packet->data + packet->at, packet->length - packet->at);
}

static void fetched(void *request, ucs_status_t status, size_t length, void *arg)
{
    struct weft_ucp_packet *packet = arg;
    (void)length;
    landed(packet, status);
    ucp_request_free(request);
    weft_ucp_fetch(packet->ucp);
}

static void fetch_one(struct weft_ucp *u, struct weft_ucp_packet *packet)
{
    bool there = comes_to_inbox(u);
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                        UCP_OP_ATTR_FIELD_MEMORY_TYPE,
        .memory_type = there ? weft_ucp_type(&u->port, u->inbox) : UCS_MEMORY_TYPE_HOST,
        .cb.recv_am = fetched,
        .user_data = packet};
    void *source = packet->source;
    if ((u->looks || !there) && !keep_bytes(packet, packet->length))
        return;
    packet->source = NULL;
    u->waits--;
    u->fetching++;
    char *to = there ? u->inbox->address + inbox_at(u, packet) : packet->data + packet->at;
    void *request =
        ucp_am_recv_data_nbx(u->worker, source, to, packet->length - packet->at, &param);
    if (!UCS_PTR_IS_PTR(request))
        landed(packet, UCS_PTR_STATUS(request));
}

/* What is looked at is kept, so there must be room for it; a GPU's is copied before the next comes
 * to its place. */
static bool can_fetch(const struct weft_ucp *u, const struct weft_ucp_packet *packet)
{
    if (!u->looks && comes_to_inbox(u))
        return true;
    return comes_to_inbox(u) ? !u->fetching : has_room(u, packet->length);
}

void weft_ucp_fetch(struct weft_ucp *u)
{
    for (struct weft_ucp_packet *p = u->first; p && u->waits && !(u->todo & TODO_LOST); p = p->next)
        if (p->source) {
            if (u->draining || !can_fetch(u, p))
                return;
            fetch_one(u, p);
        }
}

static __attribute__((noinline)) ucs_status_t keep(struct weft_ucp *u, const void *header,
                                                   size_t header_bytes, void *data, size_t length,
                                                   bool pulls)
{
    size_t here = pulls ? 0 : u->looks || length < HEADER ? length : HEADER;
    struct weft_ucp_packet *packet = NULL;
    if (u->draining)
        return UCS_OK;
    if (u->inbox && length > u->inbox->length)
        weft_ucp_lose(u, UCS_ERR_EXCEEDS_LIMIT, "it sends more than this end has room for");
    else if (length < SIZE_MAX - header_bytes)
        packet = new_packet(u, header_bytes + length, header_bytes + here);
    if (!packet)
        return UCS_OK;
    packet->at = header_bytes;
    if (header_bytes)
        memcpy(packet->data, header, header_bytes);
    *u->last = packet;
    u->last = &packet->next;
    if (pulls) {
        packet->source = data;
        u->waits++;
        weft_ucp_fetch(u);
        return UCS_INPROGRESS;
    }
    memcpy(packet->data + header_bytes, data, here);
    packet->ready = true;
    return UCS_OK;
}

static ucs_status_t am_arrived(void *arg, const void *header, size_t header_bytes, void *data,
                               size_t length, const ucp_am_recv_param_t *param)
{
    struct weft_ucp *u = arg;
    bool pulls = param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV;
    if (pulls || u->looks || u->first || u->draining)
        return keep(u, header, header_bytes, data, length, pulls);
    uint64_t word = header_bytes ? first_word(header, header_bytes) : first_word(data, length);
    *weft_ucp_event(u) =
        (struct completion){.id = word, .verb = VERB_ARRIVAL, .length = header_bytes + length};
    return UCS_OK;
}

static ucs_status_t news_arrived(void *arg, const void *header, size_t header_bytes, void *data,
                                 size_t length, const ucp_am_recv_param_t *param)
{
    struct weft_ucp *u = arg;
    uint64_t news[2] = {0};
    (void)data;
    (void)length;
    (void)param;
    if (header_bytes == sizeof news)
        memcpy(news, header, sizeof news);
    switch (news[0]) {
    case NEWS_HELLO:
        u->heard |= news[1] == u->word;
        break;
    case NEWS_WITHDRAWN:
        if (news[1] < WEFT_UCP_ENTRIES)
            u->notice[news[1]] = 0;
        break;
    case NEWS_TAKEN:
        weft_ucp_flow_acked(u, news[1]);
        break;
    case NEWS_BYE:
        u->parted = true;
        break;
    default:
        weft_ucp_lose(u, UCS_ERR_INVALID_PARAM, "it sent what makes no sense");
    }
    return UCS_OK;
}

int weft_ucp_listen(struct weft_ucp *u)
{
    const struct {
        unsigned id;
        ucp_am_recv_callback_t cb;
    } handlers[] = {{WEFT_UCP_AM, am_arrived}, {WEFT_UCP_NEWS, news_arrived}};
    for (size_t i = 0; i < LENGTH(handlers); i++) {
        ucp_am_handler_param_t param = {.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
                                                      UCP_AM_HANDLER_PARAM_FIELD_CB |
                                                      UCP_AM_HANDLER_PARAM_FIELD_ARG,
                                        .id = handlers[i].id,
                                        .cb = handlers[i].cb,
                                        .arg = u};
        ucs_status_t status = ucp_worker_set_am_recv_handler(u->worker, &param);
        if (status != UCS_OK)
            return weft_ucp_refuse(u, "an active message handler", status);
    }
    return 0;
}

/* ---- out ---- */

int weft_ucp_tell(struct weft_ucp *u, enum news what, uint64_t word)
{
    const struct xfer none = {.length = 0};
    const uint64_t news[2] = {what, word};
    struct weft_ucp_slot *slot = weft_ucp_slot_next(u);
    if (!slot)
        return -EAGAIN;
    memcpy(slot->head, news, sizeof news);
    void *request =
        ucp_am_send_nbx(u->ep, WEFT_UCP_NEWS, slot->head, sizeof news, NULL, 0, &u->send);
    return weft_ucp_sent(slot, VERBS, &none, request, false);
}

static int refuse(const struct weft_ucp *u, const struct xfer *x)
{
    if (!weft_ucp_in_buffer(x))
        return weft_ucp_host->fail(-ERANGE, "ucp: a message of %zu bytes at %zu of a buffer of %zu",
                                   x->length, x->at, x->local->length);
    if (!u->connected)
        return weft_ucp_not_connected(u);
    return weft_ucp_host->fail(-EMSGSIZE, "ucp: a header of %zu bytes: it takes at most %d",
                               x->header_bytes, WEFT_UCP_HEAD_MAX);
}

static void write_head(struct weft_ucp_slot *slot, const struct xfer *x)
{
    memset(slot->head + HEADER, 0, x->header_bytes - HEADER);
    memcpy(slot->head, &x->header, HEADER);
}

static __attribute__((noinline)) int send_specially(struct weft_ucp_slot *slot,
                                                    const struct xfer *x)
{
    ucp_request_param_t own;
    struct weft_ucp_bytes b = weft_ucp_bytes(slot, VERB_AM, x, &slot->ucp->send, &own);
    void *request = ucp_am_send_nbx(slot->ucp->ep, WEFT_UCP_AM, slot->head, x->header_bytes, b.at,
                                    b.count, b.param);
    return weft_ucp_sent(slot, VERB_AM, x, request, b.taken);
}

int weft_ucp_am(struct fabric *fabric, const struct xfer *x)
{
    struct weft_ucp *u = (struct weft_ucp *)fabric;
    if (!weft_ucp_in_buffer(x) || !u->connected || x->header_bytes > WEFT_UCP_HEAD_MAX)
        return refuse(u, x);
    struct weft_ucp_slot *slot = weft_ucp_slot_next(u);
    if (!slot)
        return -EAGAIN;
    if (x->header_bytes)
        write_head(slot, x);
    if (!weft_ucp_usual(u, x))
        return send_specially(slot, x);
    void *request = ucp_am_send_nbx(u->ep, WEFT_UCP_AM, slot->head, x->header_bytes,
                                    x->local->address + x->at, x->length, &u->send);
    return weft_ucp_sent(slot, VERB_AM, x, request, false);
}
