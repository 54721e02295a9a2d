/* SPDX-License-Identifier: BSD-3-Clause */
/* The table, open and close, the memory of our own, and errors in our words. */
#include "fabric/ofi/tag.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

const struct fabric_host *weft_ofi_host;

/* ---- errors ---- */

bool weft_ofi_is_loss(int error)
{
    static const int losses[] = {FI_ENOTCONN,  FI_ECONNRESET,   FI_ECONNABORTED, FI_ESHUTDOWN,
                                 FI_ECANCELED, FI_EHOSTUNREACH, FI_ECONNREFUSED, FI_EHOSTDOWN,
                                 FI_ETIMEDOUT, FI_ENETUNREACH,  FI_EOPBADSTATE,  EPIPE};
    for (size_t i = 0; i < LENGTH(losses); i++)
        if (error == losses[i])
            return true;
    return false;
}

int weft_ofi_refuse(const struct weft_ofi *r, const char *what, ssize_t status)
{
    int error = (int)-status;
    if (error == FI_EAGAIN)
        return -EAGAIN;
    /* Above the system's own numbers are libfabric's. */
    return weft_ofi_host->fail(weft_ofi_is_loss(error) ? -ECONNRESET
                               : error < 256           ? -error
                                                       : -EIO,
                               "ofi: %s on %s: %s", what, r->port.name, fi_strerror(error));
}

void weft_ofi_lose(struct weft_ofi *r, const char *reason)
{
    if (r->todo & TODO_LOST || r->parted)
        return;
    snprintf(r->reason, sizeof r->reason, "%s", reason);
    r->todo |= TODO_LOST;
}

/* ---- memory ---- */

static enum fi_hmem_iface interface_of(const struct region *gpu)
{
    static const enum fi_hmem_iface interfaces[] = {[MEMORY_CPU] = FI_HMEM_SYSTEM,
                                                    [MEMORY_AMD] = FI_HMEM_ROCR,
                                                    [MEMORY_NVIDIA] = FI_HMEM_CUDA,
                                                    [MEMORY_INTEL] = FI_HMEM_ZE};
    return interfaces[gpu ? gpu->kind->vendor : MEMORY_CPU];
}

/* Where the provider does not choose the key, one that cannot be guessed, as long as it takes. */
static int random_key(const struct weft_ofi *r, uint64_t *key)
{
    const struct fi_domain_attr *domain = r->port.info->domain_attr;
    size_t bytes = domain->mr_key_size;
    *key = 0;
    if (domain->mr_mode & FI_MR_PROV_KEY)
        return 0;
    int status = weft_ofi_host->random_word(key);
    if (bytes && bytes < sizeof *key)
        *key &= (UINT64_C(1) << (8 * bytes)) - 1;
    return status;
}

/* A key may be taken: then another is tried. */
static int register_memory(struct weft_ofi *r, void *address, size_t length,
                           const struct region *gpu, uint64_t access, struct fid_mr **mr)
{
    enum { TRIES = 16 };
    struct iovec iov = {.iov_base = address, .iov_len = length};
    struct fi_mr_attr attr = {.mr_iov = &iov,
                              .iov_count = 1,
                              .access = access,
                              .iface = interface_of(gpu),
                              .device.reserved = gpu ? gpu->device : 0};
    int status = -FI_ENOKEY;
    for (int i = 0; i < TRIES && status == -FI_ENOKEY; i++) {
        if (random_key(r, &attr.requested_key))
            return -EIO;
        status = fi_mr_regattr(r->port.domain, &attr, 0, mr);
    }
    return status;
}

int weft_ofi_register(struct weft_ofi *r, void *address, size_t length, const struct region *gpu,
                      uint64_t access, struct fid_mr **mr)
{
    const char *what = gpu ? "registering GPU memory" : "registering memory";
    uint64_t mode = (uint64_t)r->port.info->domain_attr->mr_mode;
    if (r->port.info->caps & FI_RMA)
        access |= FI_READ | FI_WRITE;
    else
        access = FI_SEND | FI_RECV;
    int status = register_memory(r, address, length, gpu, access, mr);
    if (status || !(mode & FI_MR_ENDPOINT))
        return status ? weft_ofi_refuse(r, what, status) : 0;
    status = fi_mr_bind(*mr, &r->ep->fid, 0);
    if (!status)
        status = fi_mr_enable(*mr);
    if (status) {
        fi_close(&(*mr)->fid);
        *mr = NULL;
    }
    return status ? weft_ofi_refuse(r, what, status) : 0;
}

/* Buffers for active messages lie so far apart that they do not share sets of a cache. */
enum { LINE = 64, STRIDE = WEFT_OFI_BOUNCE + 5 * LINE };

static int arena_open(struct weft_ofi *r)
{
    size_t slots = (size_t)WEFT_OFI_SLOTS * WEFT_OFI_NOTE,
           notes = (size_t)WEFT_OFI_NOTES * WEFT_OFI_NOTE;
    /* The last part is for tagged messages. */
    r->arena_bytes = slots + notes + (size_t)(WEFT_OFI_BOUNCES + WEFT_OFI_ARRIVALS) * STRIDE +
                     (size_t)WEFT_OFI_RECEIVES * WEFT_OFI_TAGGED;
    /* Nothing of it is there until it is used. */
    r->arena =
        mmap(NULL, r->arena_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (r->arena != MAP_FAILED)
        return 0;
    r->arena = NULL;
    return weft_ofi_host->fail(-ENOMEM, "ofi: no memory");
}

/* All of it is free, whatever was under way. */
static void arena_deal(struct weft_ofi *r)
{
    char *at = r->arena;
    r->free = NULL;
    r->orders = r->bounces_free = 0;
    for (int i = WEFT_OFI_SLOTS; i-- > 0; at += WEFT_OFI_NOTE) {
        r->slots[i] = (struct weft_ofi_slot){.context.what = IS_SLOT, .small = at};
        weft_ofi_slot_give(r, &r->slots[i]);
    }
    for (int i = 0; i < WEFT_OFI_NOTES; i++, at += WEFT_OFI_NOTE)
        r->notes[i] = (struct weft_ofi_bounce){.context.what = IS_NOTE, .data = at};
    for (int i = 0; i < WEFT_OFI_BOUNCES; i++, at += STRIDE)
        r->bounces[r->bounces_free++] = at;
    r->post = (struct weft_ofi_post){0};
    for (int i = 0; i < WEFT_OFI_ARRIVALS; i++, at += STRIDE)
        r->post.in[i] = (struct weft_ofi_bounce){.context.what = IS_ARRIVAL, .data = at};
}

static int arena_register(struct weft_ofi *r)
{
    if (!r->local_mr || r->arena_mr)
        return 0;
    int status =
        weft_ofi_register(r, r->arena, r->arena_bytes, NULL, FI_SEND | FI_RECV, &r->arena_mr);
    r->arena_desc = status ? NULL : fi_mr_desc(r->arena_mr);
    return status;
}

static void arena_deregister(struct weft_ofi *r)
{
    if (r->arena_mr)
        fi_close(&r->arena_mr->fid);
    r->arena_mr = NULL;
}

/* ---- open and close ---- */

/* What is exposed is open for no more than what the caller is about to do; a message may be pulled
 * by its receiver. */
static uint64_t access_for(unsigned verbs)
{
    const unsigned reads =
        VERB(READ) | VERB(SEND) | VERB(RECV) | VERB(ATOMIC) | VERB(TSEND) | VERB(TRECV);
    const unsigned writes = VERB(WRITE) | VERB(ATOMIC),
                   mails = VERB(SEND) | VERB(RECV) | VERB(AM) | VERB(TSEND) | VERB(TRECV);
    uint64_t access = 0;
    if (!verbs || verbs & reads)
        access |= FI_REMOTE_READ;
    if (!verbs || verbs & writes)
        access |= FI_REMOTE_WRITE;
    /* With FI_SEND ofi_rxm adds the right to read. */
    if (!verbs || verbs & mails)
        access |= FI_SEND | FI_RECV;
    return access;
}

static void prepare(struct weft_ofi *r, const struct fabric_facts *facts,
                    const struct fabric_want *want)
{
    const struct fi_info *info = r->port.info;
    uint64_t order = info->tx_attr->msg_order & info->rx_attr->msg_order;
    uint64_t mode = (uint64_t)info->domain_attr->mr_mode;
    r->inject = info->tx_attr->inject_size;
    r->local_mr = mode & (FI_MR_LOCAL | FI_MR_HMEM);
    r->virtual_address = mode & FI_MR_VIRT_ADDR;
    r->bound_mr = mode & FI_MR_ENDPOINT;
    r->access = access_for(want->verbs);
    r->receives_am = want->verbs & VERB(AM);
    r->looks = want->looks;
    r->waw = order & (FI_ORDER_RMA_WAW | FI_ORDER_WAW);
    r->raw = order & (FI_ORDER_RMA_RAW | FI_ORDER_RAW);
    r->pulls = facts->honours & HINT(RENDEZVOUS);
    r->amo_injects = weft_ofi_injects_atomics(info);
    memcpy(r->amo, facts->amo, sizeof r->amo);
    memcpy(r->cswap, facts->cswap, sizeof r->cswap);
}

/* The endpoint goes, and with it all that is posted or under way, and the other end. */
static void forget(struct weft_ofi *r)
{
    for (int i = 0; i < WEFT_OFI_ENTRIES; i++)
        r->exposed[i].key = 0;
    /* On a network the other end would take the end of the connection for a loss. */
    if (r->connected && !(r->todo & TODO_LOST) && !weft_ofi_by_name(r))
        weft_ofi_tell(r, NOTE_BYE, NULL, 0);
    if (r->bound_mr) {
        weft_ofi_deregister(r, true);
        arena_deregister(r);
    }
    weft_ofi_guard_end(r);
    weft_ofi_part(r);
    bool kept = !r->port.domain; /* with the endpoint: there will be another */
    weft_ofi_deregister(r, kept);
    if (kept)
        arena_deregister(r);
    weft_ofi_mail_leave(r);
    weft_ofi_tags_leave(r);
    memset(r->remotes, 0, sizeof r->remotes);
    memset(r->by_entry, 0, sizeof r->by_entry);
    r->remote_count = 0;
    r->next = r->count = r->todo = 0;
    r->linked = r->tried = r->said = r->heard = r->connected = r->parted = r->stuck = false;
    r->peer_pid = 0;
}

/* Receives for notes and active messages are posted before the address is known to anybody. */
int weft_ofi_renew(struct weft_ofi *r)
{
    if (r->ep)
        return 0;
    int status = r->port.ep ? 0 : weft_ofi_port_meet(&r->port);
    if (status)
        return weft_ofi_refuse(r, "another endpoint", status);
    r->ep = r->port.ep;
    r->cq = r->port.cq;
    arena_deal(r);
    weft_ofi_mail_leave(r);
    status = arena_register(r);
    if (!status)
        status = weft_ofi_notes_open(r);
    if (!status && r->receives_am)
        status = weft_ofi_am_open(r);
    if (status)
        forget(r);
    return status;
}

/* A new endpoint is found by ends that get its address and by no other: an end that has not left
 * yet cannot send to it, and the shared memory of one on this machine has its name again. */
static void weft_ofi_leave(struct fabric *fabric)
{
    struct weft_ofi *r = (struct weft_ofi *)fabric;
    if (r->tried)
        forget(r);
}

static void weft_ofi_close(struct fabric *fabric)
{
    struct weft_ofi *r = (struct weft_ofi *)fabric;
    forget(r);
    weft_ofi_deregister(r, true);
    arena_deregister(r);
    weft_ofi_bequeath(r);
    weft_ofi_port_close(&r->port);
    if (r->arena)
        munmap(r->arena, r->arena_bytes);
    free(r->tags);
    free(r);
}

static int weft_ofi_open(struct fabric **fabric, const struct fabric_want *want,
                         struct fabric_facts *facts)
{
    struct weft_ofi *r = calloc(1, sizeof *r);
    if (!r)
        return weft_ofi_host->fail(-ENOMEM, "ofi: no memory");
    r->fabric.ops = &weft_ofi_ops;
    int status = weft_ofi_port_open(&r->port, want);
    if (status) {
        free(r);
        return status;
    }
    weft_ofi_facts(&r->port, want, facts);
    prepare(r, facts, want);
    status = arena_open(r);
    if (!status && want->verbs & (VERB(TSEND) | VERB(TRECV)))
        status = weft_ofi_tags_open(r);
    if (!status)
        status = weft_ofi_renew(r);
    if (status) {
        weft_ofi_close(&r->fabric);
        return status;
    }
    *fabric = &r->fabric;
    return 0;
}

/* ---- the table ---- */

#define GUARDED(name)                                                                              \
    static int table_##name(struct fabric *fabric, const struct xfer *x)                           \
    {                                                                                              \
        struct weft_ofi *r = (struct weft_ofi *)fabric;                                            \
        return __builtin_expect(!r->guard, 1) ? weft_ofi_##name(fabric, x)                         \
                                              : weft_ofi_guarded_verb(r, weft_ofi_##name, x);      \
    }
GUARDED(write)
GUARDED(read)
GUARDED(send)
GUARDED(recv)
GUARDED(atomic)
GUARDED(am)
GUARDED(tsend)
GUARDED(trecv)
GUARDED(tprobe)

static int table_poll(struct fabric *fabric, struct completion *completions, int max)
{
    struct weft_ofi *r = (struct weft_ofi *)fabric;
    return __builtin_expect(!r->guard, 1) ? weft_ofi_poll(fabric, completions, max)
                                          : weft_ofi_guarded_poll(r, completions, max);
}

const struct fabric_ops weft_ofi_ops = {.abi = FABRIC_ABI,
                                        .name = "ofi",
                                        .what =
                                            "libfabric's providers: Slingshot, InfiniBand, TCP, "
                                            "shared memory",
                                        .list = weft_ofi_list,
                                        .open = weft_ofi_open,
                                        .close = weft_ofi_close,
                                        .expose = weft_ofi_expose,
                                        .withdraw = weft_ofi_withdraw,
                                        .address = weft_ofi_address,
                                        .connect = weft_ofi_connect,
                                        .leave = weft_ofi_leave,
                                        .write = table_write,
                                        .read = table_read,
                                        .send = table_send,
                                        .recv = table_recv,
                                        .atomic = table_atomic,
                                        .am = table_am,
                                        .tsend = table_tsend,
                                        .trecv = table_trecv,
                                        .tprobe = table_tprobe,
                                        .poll = table_poll,
                                        .event_fd = weft_ofi_event_fd,
                                        .arm = weft_ofi_arm};

/* ---- the module ---- */

__attribute__((visibility("default"))) const struct fabric_ops *
weft_fabric(const struct fabric_host *host);

const struct fabric_ops *weft_fabric(const struct fabric_host *host)
{
    if (host->abi != FABRIC_ABI)
        return NULL;
    weft_ofi_host = host;
    return &weft_ofi_ops;
}
