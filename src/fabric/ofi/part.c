/* SPDX-License-Identifier: BSD-3-Clause */
/* Closing an endpoint where libfabric does not survive it.
 * - Before release 1.18 the tcp provider reports a read twice if its endpoint closes while a part
 * of the data has come, the second time without a context, and ofi_rxm follows that pointer. Reads
 *   are also how ofi_rxm fetches long messages.
 * - In releases 2.0 to 2.6 ofi_rxm takes a message of which a part has come for something else.
 * - Two endpoints of shm in one process use one mapping of each other's memory.
 * Such endpoints are kept: nobody polls them, and they go with the process, or with the other end.
 */
#include "fabric/ofi/tag.h"

#include <pthread.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* They stay reachable, so that they are not taken for a leak. */
struct kept {
    struct kept *next;
    struct weft_ofi_port port;
    bool owns; /* the domain too: its handle is closed */
    fi_addr_t peer;
    char mine[WEFT_OFI_ADDRESS_MAX]; /* our name, if the other end is in this process; else "" */
    char theirs[WEFT_OFI_ADDRESS_MAX];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct kept *all;

static bool reads(const struct weft_ofi *r)
{
    for (int i = 0; i < WEFT_OFI_SLOTS; i++)
        if (r->slots[i].taken &&
            (r->slots[i].verb == VERB_READ || r->slots[i].receive || r->slots[i].tagged))
            return true;
    return false;
}

/* Takes back all receives that are posted: how many. */
static int cancel_all(struct weft_ofi *r)
{
    int count = WEFT_OFI_NOTES + weft_ofi_tags_cancel(r);
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

/* An end that says that it leaves has most often sent its messages whole; if both ends kept their
 * endpoints, what is under way between those would hold up the next ones. */
static bool fragile(struct weft_ofi *r)
{
    uint32_t version = fi_version();
    bool old = FI_VERSION_LT(version, FI_VERSION(1, 18));
    bool lost = !r->parted && FI_VERSION_GE(version, FI_VERSION(2, 0)) &&
                FI_VERSION_LT(version, FI_VERSION(2, 7));
    if (!r->ep || !r->tried || !weft_ofi_is(r->port.info, "tcp") || !(old || lost))
        return false;
    return (old && reads(r)) || !all_back(r, cancel_all(r));
}

/* ---- both ends in one process ---- */

static bool in_this_process(const struct weft_ofi *r)
{
    return r->ep && r->linked && weft_ofi_is(r->port.info, "shm") &&
           r->peer_pid == (uint64_t)getpid();
}

static struct kept *take_other(const struct kept *one)
{
    for (struct kept **at = &all; *at; at = &(*at)->next) {
        struct kept *other = *at;
        if (*other->mine && !strcmp(other->mine, one->theirs) &&
            !strcmp(other->theirs, one->mine)) {
            *at = other->next;
            return other;
        }
    }
    return NULL;
}

/* Each forgets the other while both are mapped. */
static void close_both(struct kept *one, struct kept *other)
{
    struct kept *both[] = {one, other};
    for (int i = 0; i < 2; i++)
        fi_av_remove(both[i]->port.av, &both[i]->peer, 1, 0);
    for (int i = 0; i < 2; i++) {
        both[i]->port.info = NULL;
        if (!both[i]->owns) {
            both[i]->port.domain = NULL;
            both[i]->port.fabric = NULL;
        }
        weft_ofi_port_close(&both[i]->port);
        free(both[i]);
    }
}

/* ---- leaving ---- */

static void keep(struct weft_ofi *r)
{
    struct kept *one = calloc(1, sizeof *one);
    size_t length = sizeof one->mine - 1;
    pthread_mutex_lock(&lock);
    if (one) {
        one->port = r->port;
        one->peer = r->peer;
        if (in_this_process(r) && !fi_getname(&r->ep->fid, one->mine, &length))
            memcpy(one->theirs, r->peer_name, sizeof one->theirs);
        struct kept *other = *one->mine ? take_other(one) : NULL;
        if (other) {
            close_both(one, other);
        } else {
            one->next = all;
            all = one;
        }
    }
    pthread_mutex_unlock(&lock);
    r->port.ep = NULL;
    r->port.cq = NULL;
    r->port.av = NULL;
}

void weft_ofi_part(struct weft_ofi *r)
{
    if (r->stuck || in_this_process(r) || fragile(r))
        keep(r);
    weft_ofi_port_part(&r->port);
    r->ep = NULL;
    r->cq = NULL;
}

void weft_ofi_bequeath(struct weft_ofi *r)
{
    bool needed = false;
    pthread_mutex_lock(&lock);
    for (struct kept *one = all; one; one = one->next)
        if (one->port.domain == r->port.domain)
            one->owns = needed = true;
    pthread_mutex_unlock(&lock);
    if (needed) {
        r->port.domain = NULL;
        r->port.fabric = NULL;
    }
}
