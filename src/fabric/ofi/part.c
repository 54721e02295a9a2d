/* SPDX-License-Identifier: BSD-3-Clause */
/* Closing an endpoint where libfabric does not survive it. Before release 1.18 the tcp provider
 * reports a read twice if its endpoint closes while a part of the data has come, the second time
 * without a context, and ofi_rxm follows that pointer. Reads are also how ofi_rxm fetches long
 * messages. An endpoint with such a read is given up instead: nobody polls it again, and it goes
 * with the process. */
#include "fabric/ofi/ofi.h"

#include <rdma/fi_endpoint.h>
#include <stdatomic.h>
#include <stdlib.h>

/* They stay reachable, so that they are not taken for a leak. */
struct given_up {
    struct given_up *next;
    struct weft_ofi_port port;
};
static _Atomic(struct given_up *) given_up;

static bool fragile(const struct weft_ofi *r)
{
    return FI_VERSION_LT(fi_version(), FI_VERSION(1, 18)) && weft_ofi_is(r->port.info, "tcp");
}

static bool reads(const struct weft_ofi *r)
{
    for (int i = 0; i < WEFT_OFI_SLOTS; i++)
        if (r->slots[i].taken && (r->slots[i].verb == VERB_READ || r->slots[i].receive))
            return true;
    return false;
}

/* Takes back all receives that are posted: how many. */
static int cancel_all(struct weft_ofi *r)
{
    int count = WEFT_OFI_NOTES;
    for (int i = 0; i < WEFT_OFI_NOTES; i++)
        fi_cancel(&r->ep->fid, &r->notes[i].context);
    for (int i = 0; i < WEFT_OFI_ARRIVALS && r->receives_am; i++) {
        if (r->post.in[i].filled)
            continue;
        fi_cancel(&r->ep->fid, &r->post.in[i].context);
        count++;
    }
    for (uint64_t i = r->mail.filled; i != r->mail.posted; i++) {
        struct weft_ofi_receive *receive = &r->mail.receives[i % WEFT_OFI_RECEIVES];
        if (receive->state != POSTED)
            continue;
        fi_cancel(&r->ep->fid, &receive->context);
        count++;
    }
    return count;
}

/* What does not come back is being filled. */
static bool all_back(struct weft_ofi *r, int count)
{
    enum { LAPS = 4096 };
    for (int lap = 0; lap < LAPS && count > 0; lap++) {
        struct fi_cq_tagged_entry entry = {0};
        struct fi_cq_err_entry error = {0};
        ssize_t got = fi_cq_read(r->cq, &entry, 1);
        const struct weft_ofi_context *context = entry.op_context;
        if (got == -FI_EAVAIL) {
            got = fi_cq_readerr(r->cq, &error, 0);
            context = error.op_context;
        }
        if (got != 1)
            break;
        count -= context && context->what != IS_SLOT;
    }
    return count <= 0;
}

void weft_ofi_part(struct weft_ofi *r)
{
    struct given_up *one = NULL;
    if (r->ep && r->tried && fragile(r) && (reads(r) || !all_back(r, cancel_all(r))))
        one = calloc(1, sizeof *one);
    if (one) {
        one->port = r->port;
        one->next = atomic_load(&given_up);
        while (!atomic_compare_exchange_weak(&given_up, &one->next, one))
            ;
        r->port.ep = NULL;
        r->port.cq = NULL;
        r->port.av = NULL;
    }
    weft_ofi_port_part(&r->port);
    r->ep = NULL;
    r->cq = NULL;
}
