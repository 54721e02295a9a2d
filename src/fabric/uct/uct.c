/* SPDX-License-Identifier: BSD-3-Clause */
/* The table, open and close, and errors in our words. */
#include "fabric/uct/uct.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <ucs/config/global_opts.h>

enum { SPINS = 8 };

const struct fabric_host *weft_uct_host;

/* ---- errors ---- */

int weft_uct_errno(ucs_status_t status)
{
    switch (status) {
    case UCS_OK:
        return 0;
    case UCS_ERR_NO_RESOURCE:
        return -EAGAIN;
    case UCS_ERR_NO_MEMORY:
    case UCS_ERR_EXCEEDS_LIMIT:
        return -ENOMEM;
    case UCS_ERR_UNSUPPORTED:
    case UCS_ERR_NOT_IMPLEMENTED:
        return -ENOTSUP;
    case UCS_ERR_NO_DEVICE:
        return -ENODEV;
    case UCS_ERR_UNREACHABLE:
    case UCS_ERR_REJECTED:
    case UCS_ERR_NOT_CONNECTED:
    case UCS_ERR_CONNECTION_RESET:
    case UCS_ERR_CANCELED:
    case UCS_ERR_ENDPOINT_TIMEOUT:
        return -ECONNRESET;
    default:
        return -EIO;
    }
}

int weft_uct_refuse(const struct weft_uct *uct, const char *what, ucs_status_t status)
{
    return weft_uct_host->fail(weft_uct_errno(status), "uct: %s on %s/%s: %s", what,
                               uct->port.place.transport, uct->port.place.device,
                               ucs_status_string(status));
}

void weft_uct_lose(struct weft_uct *uct, ucs_status_t status, const char *reason)
{
    if (uct->todo & TODO_LOST || uct->parted)
        return;
    uct->lost = status;
    uct->reason = reason;
    uct->todo |= TODO_LOST;
}

static ucs_status_t lost(void *arg, uct_ep_h ep, ucs_status_t status)
{
    (void)ep;
    weft_uct_lose(arg, status, ucs_status_string(status));
    return UCS_OK;
}

/* ---- open and close ---- */

static void free_slots(struct weft_uct *l)
{
    l->free = NULL;
    for (int i = WEFT_UCT_SLOTS; i-- > 0;) {
        l->slots[i] = (struct weft_uct_slot){.uct = l, .done.func = weft_uct_slot_done};
        weft_uct_slot_give(&l->slots[i]);
    }
    l->taken = 0;
}

static void prepare(struct weft_uct *l, const struct fabric_facts *facts,
                    const struct fabric_want *want)
{
    memcpy(l->put_max, facts->layout_max[VERB_WRITE], sizeof l->put_max);
    memcpy(l->get_max, facts->layout_max[VERB_READ], sizeof l->get_max);
    memcpy(l->am_max, facts->layout_max[VERB_AM], sizeof l->am_max);
    memcpy(l->amo, facts->amo, sizeof l->amo);
    l->worker = l->port.worker;
    l->settle = weft_uct_settle(&l->port);
    l->spins = l->port.place.type == UCT_DEVICE_TYPE_SHM ? SPINS : 1;
    l->looks = want->looks;
    l->events_on = want->events;
    l->needs_memh = l->port.domain_attr.cap.flags & UCT_MD_FLAG_NEED_MEMH;
    l->hears = facts->verbs & VERB(AM);
    l->renewed = true;
    l->notice = l->notices;
    free_slots(l);
    weft_uct_mail_open(l);
    l->mail.pulls = facts->honours & HINT(RENDEZVOUS);
}

static int listen_for(struct weft_uct *l, uint8_t id, uct_am_callback_t arrived)
{
    ucs_status_t status = uct_iface_set_am_handler(l->port.iface, id, arrived, l, 0);
    return status == UCS_OK ? 0 : weft_uct_refuse(l, "an active message handler", status);
}

static int listen_all(struct weft_uct *l)
{
    int status = l->hears ? listen_for(l, WEFT_UCT_AM, weft_uct_am_arrived) : 0;
    if (!status && l->hears)
        status = listen_for(l, WEFT_UCT_MAIL, weft_uct_mail_arrived);
    return status;
}

static const uint64_t no_key;

/* The other end goes with everything that belongs to it. */
static void forget(struct weft_uct *l)
{
    weft_uct_lock(l);
    /* On a network the other end would take the end of the connection for a loss. */
    if (l->connected && l->hears && l->port.place.type == UCT_DEVICE_TYPE_NET &&
        !(l->todo & TODO_LOST))
        weft_uct_mail_bye(l);
    weft_uct_drain(l);
    /* What the endpoint takes along is complete, and nobody asks for it. */
    l->draining = true;
    if (l->ep)
        uct_ep_destroy(l->ep);
    l->draining = false;
    l->ep = NULL;
    for (int i = 0; i < WEFT_UCT_ENTRIES; i++)
        if (l->remotes[i].unpacked)
            uct_rkey_release(l->port.place.component, &l->remotes[i].bundle);
    for (int i = 0; i < WEFT_UCT_ENTRIES; i++)
        l->remotes[i] = (struct weft_uct_remote){.alive = &no_key};
    memset(l->by_entry, 0, sizeof l->by_entry);
    l->remote_count = 0;
    free_slots(l);
    weft_uct_mail_leave(l);
    weft_uct_events_drop(l);
    l->notice = &l->notices[++l->meetings % WEFT_UCT_NOTICES];
    *l->notice = l->note = (struct weft_uct_notice){0};
    l->parted = l->has_notice = l->tried = l->linked = l->connected = false;
    l->todo = 0;
}

int weft_uct_renew(struct weft_uct *l)
{
    ucs_status_t status = weft_uct_port_renew(&l->port, lost, l);
    int got = status == UCS_OK ? listen_all(l) : weft_uct_refuse(l, "another interface", status);
    l->renewed = !got;
    return got;
}

/* Messages are taken from whichever end sends to the interface, so the next meeting gets another:
 * what the old partner still sends goes nowhere. address says it if there is none to be had. */
static void weft_uct_leave(struct fabric *fabric)
{
    struct weft_uct *l = (struct weft_uct *)fabric;
    if (!l->tried && !l->ep)
        return;
    forget(l);
    (void)weft_uct_renew(l);
}

static void weft_uct_close(struct fabric *fabric)
{
    struct weft_uct *l = (struct weft_uct *)fabric;
    forget(l);
    weft_uct_unexpose(l);
    weft_uct_port_close(&l->port);
    while (l->spare) {
        struct weft_uct_packet *packet = l->spare;
        l->spare = packet->next;
        free(packet);
    }
    free(l->events);
    free(l->head);
    free(l);
}

static int weft_uct_open(struct fabric **fabric, const struct fabric_want *want,
                         struct fabric_facts *facts)
{
    struct weft_uct *l = calloc(1, sizeof *l);
    if (!l)
        return weft_uct_host->fail(-ENOMEM, "uct: no memory");
    l->fabric.ops = &weft_uct_ops;
    int status = weft_uct_port_open(&l->port, want->device, want->here, lost, l);
    if (status)
        goto free_uct;
    weft_uct_facts(&l->port, facts);
    weft_uct_check_atomics(&l->port, facts);
    prepare(l, facts, want);
    l->head_max = facts->max_header < WEFT_UCT_RKEY_MAX ? facts->max_header : WEFT_UCT_RKEY_MAX;
    facts->max_header = l->head_max;
    l->head = calloc(1, WEFT_UCT_RKEY_MAX);
    if (!l->head || !weft_uct_events_grow(l))
        status = weft_uct_host->fail(-ENOMEM, "uct: no memory");
    if (!status)
        status = listen_all(l);
    if (status) {
        weft_uct_close(&l->fabric);
        return status;
    }
    *fabric = &l->fabric;
    return 0;
free_uct:
    free(l);
    return status;
}

const struct fabric_ops weft_uct_ops = {.abi = FABRIC_ABI,
                                        .name = "uct",
                                        .what = "UCX's transports: shared memory, TCP, InfiniBand",
                                        .list = weft_uct_list,
                                        .open = weft_uct_open,
                                        .close = weft_uct_close,
                                        .expose = weft_uct_expose,
                                        .withdraw = weft_uct_withdraw,
                                        .address = weft_uct_address,
                                        .connect = weft_uct_connect,
                                        .leave = weft_uct_leave,
                                        .write = weft_uct_write,
                                        .read = weft_uct_read,
                                        .send = weft_uct_send,
                                        .recv = weft_uct_recv,
                                        .atomic = weft_uct_atomic,
                                        .am = weft_uct_am,
                                        .poll = weft_uct_poll,
                                        .event_fd = weft_uct_event_fd,
                                        .arm = weft_uct_arm};

/* ---- the module ---- */

/* What UCX would print we say in our own sentences. It has read its environment by now, when the
 * library was loaded; a user's own settings stay. */
static void quieten(void)
{
    if (!getenv("UCX_LOG_LEVEL"))
        ucs_global_opts_set_value("LOG_LEVEL", "fatal");
    if (!getenv("UCX_HANDLE_ERRORS"))
        ucs_global_opts_set_value("HANDLE_ERRORS", "none");
}

__attribute__((visibility("default"))) const struct fabric_ops *
weft_fabric(const struct fabric_host *host);

const struct fabric_ops *weft_fabric(const struct fabric_host *host)
{
    if (host->abi != FABRIC_ABI)
        return NULL;
    weft_uct_host = host;
    quieten();
    return &weft_uct_ops;
}
