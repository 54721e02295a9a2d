/* SPDX-License-Identifier: BSD-3-Clause */
/* Closing an endpoint where libfabric does not survive it.
 * - Before release 1.18 the tcp provider reports a read twice if its endpoint closes while a part
 * of the data has come, the second time without a context, and ofi_rxm follows that pointer. Reads
 *   are also how ofi_rxm fetches long messages.
 * - In releases 2.0 to 2.6 ofi_rxm takes a message of which a part has come for something else.
 * - Two endpoints of shm in one process use one mapping of each other's memory.
 * Such endpoints are kept, and go with the process, or with the other end. A poll since 1.18 serves
 * all endpoints of a domain, also where what they read into is freed: then the domain is kept too.
 */
#include "fabric/ofi/tag.h"

#include <pthread.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <sched.h>
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

static bool on_tcp(const struct weft_ofi *r)
{
    return r->ep && r->tried && weft_ofi_is(r->port.info, "tcp");
}

static bool fragile(struct weft_ofi *r)
{
    return on_tcp(r) && FI_VERSION_LT(fi_version(), FI_VERSION(1, 18)) &&
           (reads(r) || !all_back(r, cancel_all(r)));
}

/* ---- what comes in parts ---- */

static int under_way(const struct weft_ofi *r)
{
    int count = 0;
    for (int i = 0; i < WEFT_OFI_SLOTS; i++)
        count += r->slots[i].taken && !r->slots[i].left;
    return count;
}

/* Messages keep their order: what the other end sent before it said that it leaves has come whole,
 * and so has at the other end what we have sent. An end that is silent is not waited for. */
static void settle(struct weft_ofi *r)
{
    enum { QUIET = 4096, LAPS = 16 * QUIET, PAUSE = 256 };
    int left = under_way(r);
    for (int lap = 0, quiet = 0; lap < LAPS && quiet < QUIET && !(r->parted && left <= 0); lap++) {
        struct fi_cq_tagged_entry entry = {0};
        struct fi_cq_err_entry error = {0};
        ssize_t got = fi_cq_read(r->cq, &entry, 1);
        bool failed = got == -FI_EAVAIL;
        if (failed)
            got = fi_cq_readerr(r->cq, &error, 0);
        if (got != 1 && got != -FI_EAGAIN)
            return;
        quiet = got == 1 ? 0 : quiet + 1;
        if (quiet && quiet % PAUSE == 0)
            sched_yield();
        const struct weft_ofi_context *context = failed ? error.op_context : entry.op_context;
        if (got != 1 || !context)
            continue;
        left -= context->what == IS_SLOT;
        r->parted |=
            !failed && context->what == IS_NOTE && (entry.tag >> KIND_AT & KIND_MASK) == NOTE_BYE;
    }
}

/* May there be a part of a message? */
static bool torn(struct weft_ofi *r)
{
    uint32_t version = fi_version();
    if (!on_tcp(r) || FI_VERSION_LT(version, FI_VERSION(2, 0)) ||
        FI_VERSION_GE(version, FI_VERSION(2, 7)))
        return false;
    settle(r);
    return !r->parted && !all_back(r, cancel_all(r));
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

static void keep(struct weft_ofi *r, bool domain)
{
    struct kept *one = calloc(1, sizeof *one);
    size_t length = sizeof one->mine - 1;
    pthread_mutex_lock(&lock);
    if (one) {
        one->port = r->port;
        one->owns = domain;
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
    if (domain) {
        r->port.domain = NULL;
        r->port.fabric = NULL;
    }
}

void weft_ofi_part(struct weft_ofi *r)
{
    if (r->stuck || in_this_process(r) || fragile(r))
        keep(r, false);
    else if (torn(r))
        keep(r, true);
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
