/* SPDX-License-Identifier: BSD-3-Clause */
/* Active messages as UCT has them, the queue of events, and poll. The handler of an arrival copies
 * only if the caller looks. */
#include "core/clock.h"
#include "fabric/uct/uct.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { EVENTS = 1024, EVENTS_MOST = 4096, HEADER = sizeof(uint64_t), PACKET_LEAST = 256 };

/* ---- bytes kept aside ---- */

struct weft_uct_packet *weft_uct_keep(struct weft_uct *l, const void *data, size_t length)
{
    struct weft_uct_packet *packet = l->spare;
    if (packet)
        l->spare = packet->next;
    if (!packet || packet->room < length) {
        size_t room = length > PACKET_LEAST ? length : PACKET_LEAST;
        free(packet);
        packet = malloc(sizeof *packet + room);
        if (!packet) {
            weft_uct_lose(l, UCS_ERR_NO_MEMORY, "no memory for what arrived");
            return NULL;
        }
        packet->room = room;
    }
    packet->next = NULL;
    packet->length = length;
    memcpy(packet->data, data, length);
    return packet;
}

void weft_uct_drop(struct weft_uct *l, struct weft_uct_packet *packet)
{
    packet->next = l->spare;
    l->spare = packet;
}

static struct weft_uct_packet *packet_of(const void *data)
{
    return (struct weft_uct_packet *)((char *)data - offsetof(struct weft_uct_packet, data));
}

/* ---- events ---- */

/* Room for more: what was handed out goes first. Progress stops long before there are too many. */
bool weft_uct_events_grow(struct weft_uct *l)
{
    if (l->next) {
        memmove(l->events, l->events + l->next, (l->count - l->next) * sizeof *l->events);
        l->count -= l->next;
        l->next = 0;
        return true;
    }
    unsigned room = l->room ? 2 * l->room : EVENTS;
    struct completion *events = realloc(l->events, room * sizeof *events);
    if (!events) {
        weft_uct_lose(l, UCS_ERR_NO_MEMORY, "no memory for events");
        return false;
    }
    l->events = events;
    l->room = room;
    return true;
}

static void drop_given(struct weft_uct *l)
{
    l->todo &= ~(unsigned)TODO_GIVEN;
    while (l->given) {
        struct weft_uct_packet *packet = l->given;
        l->given = packet->next;
        weft_uct_drop(l, packet);
    }
}

void weft_uct_events_drop(struct weft_uct *l)
{
    for (; l->next < l->count; l->next++)
        if (l->events[l->next].verb == VERB_ARRIVAL && l->events[l->next].data)
            weft_uct_drop(l, packet_of(l->events[l->next].data));
    l->next = l->count = 0;
    drop_given(l);
}

/* What is looked at lasts until the next poll. */
static void give(struct weft_uct *l, const void *data)
{
    struct weft_uct_packet *packet = packet_of(data);
    packet->next = l->given;
    l->given = packet;
    l->todo |= TODO_GIVEN;
}

static int hand_out(struct weft_uct *l, struct completion *completions, int max)
{
    int got = 0;
    while (got < max && l->next < l->count) {
        completions[got] = l->events[l->next++];
        if (completions[got].verb == VERB_ARRIVAL && completions[got].data)
            give(l, completions[got].data);
        got++;
    }
    if (l->next == l->count)
        l->next = l->count = 0;
    return got;
}

/* The rare part of a poll. */
static int poll_more(struct weft_uct *l, struct completion *completions, int max)
{
    if (l->todo & TODO_GIVEN)
        drop_given(l);
    if (l->todo & TODO_FLUSH)
        weft_uct_flush_again(l);
    if (l->todo & (TODO_OUT | TODO_IN | TODO_OWED))
        weft_uct_mail_work(l);
    int got = hand_out(l, completions, max);
    if (!got && l->todo & TODO_LOST && l->next == l->count)
        return weft_uct_host->fail(-ECONNRESET, "uct: the connection to the other end is lost: %s",
                                   l->reason);
    return got;
}

/* Arrivals whose data is not looked at go straight to the caller of poll, if no event is before
 * them. In shared memory one look takes a few nanoseconds, less than to come here again: a poll
 * for one, which is waited for, looks several times, with a pause between two looks: the other end
 * writes a message in several stores, and each look takes the line away from it. */
int weft_uct_poll(struct fabric *fabric, struct completion *completions, int max)
{
    struct weft_uct *l = (struct weft_uct *)fabric;
    if (l->count)
        return poll_more(l, completions, max);
    l->sink = completions;
    l->sink_end = completions + (l->looks ? 0 : max);
    for (unsigned i = max == 1 ? l->spins : 1; !uct_worker_progress(l->worker) && --i;)
        cpu_relax();
    int got = (int)(l->sink - completions);
    l->sink = l->sink_end = NULL;
    if (got || (!l->todo && !l->count))
        return got;
    return poll_more(l, completions, max);
}

/* ---- sleep ---- */

int weft_uct_event_fd(struct fabric *fabric)
{
    struct weft_uct *l = (struct weft_uct *)fabric;
    int fd = -1;
    if (!l->events_on)
        return weft_uct_host->fail(-ENOTSUP, "uct: it was not opened for events");
    ucs_status_t status = uct_iface_event_fd_get(l->port.iface, &fd);
    return status == UCS_OK ? fd : weft_uct_refuse(l, "an event descriptor", status);
}

/* What waits for room, or is done piece by piece, goes on when it is polled, and so does not sleep;
 * packets that are kept aside for a receive may. */
int weft_uct_arm(struct fabric *fabric)
{
    struct weft_uct *l = (struct weft_uct *)fabric;
    const struct weft_uct_mail *m = &l->mail;
    bool takes = l->todo & TODO_IN && (m->coming || m->filled != m->posted);
    if (l->count || takes || l->todo & ~(unsigned)TODO_IN)
        return -EAGAIN;
    ucs_status_t status = uct_iface_event_arm(l->port.iface, UCT_EVENT_SEND_COMP | UCT_EVENT_RECV);
    return status == UCS_OK         ? DONE
           : status == UCS_ERR_BUSY ? -EAGAIN
                                    : weft_uct_refuse(l, "sleeping", status);
}

/* ---- in ---- */

ucs_status_t weft_uct_am_arrived(void *arg, void *data, size_t length, unsigned flags)
{
    struct weft_uct *l = arg;
    bool direct = l->sink != l->sink_end && !l->count;
    struct completion *event = direct ? l->sink++ : weft_uct_event(l);
    (void)flags;
    *event = (struct completion){.verb = VERB_ARRIVAL, .length = length};
    if (length >= HEADER)
        memcpy(&event->id, data, HEADER);
    if (direct)
        return UCS_OK;
    if (l->looks) {
        struct weft_uct_packet *packet = weft_uct_keep(l, data, length);
        event->data = packet ? packet->data : NULL;
    }
    return UCS_OK;
}

/* ---- out ---- */

static size_t pack(void *to, void *arg)
{
    const struct xfer *x = arg;
    char *at = to;
    if (x->header_bytes) {
        memcpy(at, &x->header, HEADER);
        memset(at + HEADER, 0, x->header_bytes - HEADER);
    }
    memcpy(at + x->header_bytes, x->local->address + x->at, x->length);
    return x->header_bytes + x->length;
}

/* A short message always has eight bytes before its payload: without a header, the first eight of
 * the payload. */
static inline ucs_status_t am_short(struct weft_uct *l, const struct xfer *x)
{
    const char *from = x->local->address + x->at;
    uint64_t first;
    if (x->header_bytes)
        return uct_ep_am_short(l->ep, WEFT_UCT_AM, x->header, from, (unsigned)x->length);
    memcpy(&first, from, HEADER);
    return uct_ep_am_short(l->ep, WEFT_UCT_AM, first, from + HEADER,
                           (unsigned)(x->length - HEADER));
}

static int am_zcopy(struct weft_uct *l, const struct xfer *x)
{
    uct_iov_t iov = {.buffer = x->local->address + x->at,
                     .length = x->length,
                     .memh = weft_uct_memh(l, x->local),
                     .count = 1};
    struct weft_uct_slot *slot = weft_uct_slot_take(l, VERB_AM, x);
    if (!slot)
        return -EAGAIN;
    slot->remote = NULL;
    memcpy(l->head, &x->header, HEADER);
    ucs_status_t status = uct_ep_am_zcopy(l->ep, WEFT_UCT_AM, l->head, (unsigned)x->header_bytes,
                                          &iov, 1, 0, &slot->done);
    if (status == UCS_INPROGRESS)
        return LATER;
    weft_uct_slot_give(slot);
    return status == UCS_OK                ? DONE
           : status == UCS_ERR_NO_RESOURCE ? -EAGAIN
                                           : weft_uct_refuse(l, "am", status);
}

/* LAYOUTS: none takes it. */
static inline enum layout layout_of(const struct weft_uct *l, const struct xfer *x)
{
    unsigned asked = x->how & (HINT(SHORT) | HINT(BCOPY) | HINT(ZCOPY));
    size_t total = x->header_bytes + x->length;
    if (x->local->gpu && x->length && asked & ~HINT(ZCOPY))
        return LAYOUTS;
    if (x->local->gpu && x->length)
        asked = HINT(ZCOPY);
    if ((!asked || asked & HINT(SHORT)) && total <= l->am_max[LAYOUT_SHORT] &&
        (x->header_bytes == HEADER || (!x->header_bytes && x->length >= HEADER)))
        return LAYOUT_SHORT;
    if ((!asked || asked & HINT(BCOPY)) && total <= l->am_max[LAYOUT_BCOPY])
        return LAYOUT_BCOPY;
    if ((!asked || asked & HINT(ZCOPY)) && total <= l->am_max[LAYOUT_ZCOPY] &&
        x->header_bytes <= l->head_max)
        return LAYOUT_ZCOPY;
    return LAYOUTS;
}

static int refuse_am(const struct weft_uct *l, const struct xfer *x)
{
    if (!weft_uct_in_buffer(x))
        return weft_uct_host->fail(-ERANGE, "uct: a message of %zu bytes at %zu of a buffer of %zu",
                                   x->length, x->at, x->local->length);
    if (!l->connected)
        return weft_uct_host->fail(-ENOTCONN, "uct: not connected");
    return weft_uct_host->fail(
        -EMSGSIZE,
        "uct: %s/%s has no active message of %zu bytes and a header of %zu in "
        "this layout",
        l->port.place.transport, l->port.place.device, x->length, x->header_bytes);
}

static __attribute__((noinline)) int am_any(struct weft_uct *l, const struct xfer *x)
{
    ucs_status_t status = UCS_OK;
    enum layout layout = layout_of(l, x);
    if (!weft_uct_in_buffer(x) || !l->connected || layout == LAYOUTS)
        return refuse_am(l, x);
    if (layout == LAYOUT_SHORT) {
        status = am_short(l, x);
    } else if (layout == LAYOUT_BCOPY) {
        ssize_t packed = uct_ep_am_bcopy(l->ep, WEFT_UCT_AM, pack, (void *)x, 0);
        status = packed < 0 ? (ucs_status_t)packed : UCS_OK;
    } else {
        return am_zcopy(l, x);
    }
    return status == UCS_OK                ? DONE
           : status == UCS_ERR_NO_RESOURCE ? -EAGAIN
                                           : weft_uct_refuse(l, "am", status);
}

/* What is sent most often, and nothing else, so that it is short. */
int weft_uct_am(struct fabric *fabric, const struct xfer *x)
{
    struct weft_uct *l = (struct weft_uct *)fabric;
    if (!(x->how & HINT(SHORT) && x->header_bytes == HEADER && !(x->local->gpu && x->length) &&
          HEADER + x->length <= l->am_max[LAYOUT_SHORT] && weft_uct_in_buffer(x) && l->connected))
        return am_any(l, x);
    ucs_status_t status = uct_ep_am_short(l->ep, WEFT_UCT_AM, x->header, x->local->address + x->at,
                                          (unsigned)x->length);
    if (__builtin_expect(status == UCS_OK, 1))
        return DONE;
    return status == UCS_ERR_NO_RESOURCE ? -EAGAIN : weft_uct_refuse(l, "am", status);
}
