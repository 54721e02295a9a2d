/* SPDX-License-Identifier: BSD-3-Clause */
/* The table, open and close, and errors in our words. */
#include "fabric/uct/uct.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <ucs/config/global_opts.h>

const struct fabric_host *lane_host;

/* ---- errors ---- */

int lane_errno(ucs_status_t status)
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

int lane_refuse(const struct lane *lane, const char *what, ucs_status_t status)
{
    return lane_host->fail(lane_errno(status), "uct: %s on %s/%s: %s", what,
                           lane->port.place.transport, lane->port.place.device,
                           ucs_status_string(status));
}

void lane_lose(struct lane *lane, ucs_status_t status, const char *reason)
{
    if (lane->todo & TODO_LOST)
        return;
    lane->lost = status;
    lane->reason = reason;
    lane->todo |= TODO_LOST;
}

static ucs_status_t lost(void *arg, uct_ep_h ep, ucs_status_t status)
{
    (void)ep;
    lane_lose(arg, status, ucs_status_string(status));
    return UCS_OK;
}

/* ---- open and close ---- */

static void prepare(struct lane *l, const struct fabric_facts *facts,
                    const struct fabric_want *want)
{
    memcpy(l->put_max, facts->layout_max[VERB_WRITE], sizeof l->put_max);
    memcpy(l->get_max, facts->layout_max[VERB_READ], sizeof l->get_max);
    memcpy(l->am_max, facts->layout_max[VERB_AM], sizeof l->am_max);
    memcpy(l->amo, facts->amo, sizeof l->amo);
    l->worker = l->port.worker;
    l->settle = lane_settle(&l->port);
    l->looks = want->looks;
    l->needs_memh = l->port.domain_attr.cap.flags & UCT_MD_FLAG_NEED_MEMH;
    for (int i = LANE_SLOTS; i-- > 0;) {
        l->slots[i].lane = l;
        l->slots[i].done.func = lane_slot_done;
        lane_slot_give(&l->slots[i]);
    }
    l->taken = 0;
    lane_mail_open(l, want->nonce);
    l->mail.pulls = facts->honours & HINT(RENDEZVOUS);
}

static int listen_for(struct lane *l, uint8_t id, uct_am_callback_t arrived)
{
    ucs_status_t status = uct_iface_set_am_handler(l->port.iface, id, arrived, l, 0);
    return status == UCS_OK ? 0 : lane_refuse(l, "an active message handler", status);
}

static void lane_close(struct fabric *fabric)
{
    struct lane *l = (struct lane *)fabric;
    for (int i = 0; i < LANE_ENTRIES; i++)
        if (l->exposed[i].region)
            lane_withdraw(fabric, l->exposed[i].region);
    lane_drain(l);
    if (l->ep)
        uct_ep_destroy(l->ep);
    for (int i = 0; i < LANE_ENTRIES; i++)
        if (l->remotes[i].unpacked)
            uct_rkey_release(l->port.place.component, &l->remotes[i].bundle);
    lane_port_close(&l->port);
    lane_mail_close(l);
    for (unsigned i = l->next; i < l->count; i++)
        if (l->events[i].verb == VERB_ARRIVAL && l->events[i].data)
            free((char *)l->events[i].data - offsetof(struct lane_packet, data));
    while (l->given || l->spare) {
        struct lane_packet *packet = l->given ? l->given : l->spare;
        *(l->given ? &l->given : &l->spare) = packet->next;
        free(packet);
    }
    free(l->events);
    free(l->head);
    free(l);
}

static int lane_open(struct fabric **fabric, const struct fabric_want *want,
                     struct fabric_facts *facts)
{
    struct lane *l = calloc(1, sizeof *l);
    if (!l)
        return lane_host->fail(-ENOMEM, "uct: no memory");
    l->fabric.ops = &lane_ops;
    int status = lane_port_open(&l->port, want->device, want->here, lost, l);
    if (status)
        goto free_lane;
    lane_facts(&l->port, facts);
    lane_check_atomics(&l->port, facts);
    prepare(l, facts, want);
    l->head_max = facts->max_header < LANE_RKEY_MAX ? facts->max_header : LANE_RKEY_MAX;
    facts->max_header = l->head_max;
    l->head = calloc(1, LANE_RKEY_MAX);
    if (!l->head || !lane_events_grow(l))
        status = lane_host->fail(-ENOMEM, "uct: no memory");
    if (!status && facts->verbs & VERB(AM))
        status = listen_for(l, LANE_AM, lane_am_arrived);
    if (!status && facts->verbs & VERB(AM))
        status = listen_for(l, LANE_MAIL, lane_mail_arrived);
    if (status) {
        lane_close(&l->fabric);
        return status;
    }
    *fabric = &l->fabric;
    return 0;
free_lane:
    free(l);
    return status;
}

const struct fabric_ops lane_ops = {.abi = FABRIC_ABI,
                                    .name = "uct",
                                    .what = "UCX's transports: shared memory, TCP, InfiniBand",
                                    .list = lane_list,
                                    .open = lane_open,
                                    .close = lane_close,
                                    .expose = lane_expose,
                                    .withdraw = lane_withdraw,
                                    .address = lane_address,
                                    .connect = lane_connect,
                                    .write = lane_write,
                                    .read = lane_read,
                                    .send = lane_send,
                                    .recv = lane_recv,
                                    .atomic = lane_atomic,
                                    .am = lane_am,
                                    .poll = lane_poll};

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
    lane_host = host;
    quieten();
    return &lane_ops;
}
