/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside ofi, the fabric on libfabric. A handle is a domain of a provider, with one
 * reliable datagram endpoint for each meeting. The vendor's names begin with fi_, ours with
 * weft_ofi_. Messages of the caller are libfabric's own; active messages and our notes are tagged,
 * and the tag counts what was consumed.
 */
#ifndef WEFT_FABRIC_OFI_H
#define WEFT_FABRIC_OFI_H

#include "fabric/choose.h"
#include "fabric/fabric.h"

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

enum {
    WEFT_OFI_SLOTS = 128,    /* operations in flight */
    WEFT_OFI_ENTRIES = 16,   /* regions exposed */
    WEFT_OFI_RECEIVES = 128, /* posted */
    WEFT_OFI_WINDOW = 256,   /* messages that may be on their way */
    WEFT_OFI_ARRIVALS = 64,  /* buffers for active messages, and as many on their way */
    WEFT_OFI_NOTES = 32,     /* buffers for what the ends tell each other */
    WEFT_OFI_NOTE = 64,      /* bytes */
    WEFT_OFI_PULLS = 16,     /* messages that wait to be pulled: each is a note */
    WEFT_OFI_BOUNCES = 32,
    WEFT_OFI_BOUNCE = 64 << 10,
    WEFT_OFI_HEADER_MAX = 4096, /* of an active message */
    WEFT_OFI_ADDRESS_MAX = 512,
    WEFT_OFI_EVENTS = 1024,
    WEFT_OFI_TAGGED = 16 << 10 /* bytes of a tagged message that is sent outright */
};

/* The only way back to the tool. */
extern const struct fabric_host *weft_ofi_host;
extern const struct fabric_ops weft_ofi_ops;

/* ---- scan.c: what there is ---- */

struct weft_ofi_port {
    struct fi_info *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_cq *cq;
    struct fid_av *av;
    struct fid_ep *ep;
    char name[FABRIC_DEVICE_MAX]; /* "tcp;ofi_rxm/lo" */
    bool follows_here;            /* on IP, and no domain was named */
    bool waits, no_wait;          /* the queue is to have a descriptor; it cannot */
};

int weft_ofi_list(void (*say)(void *arg, const char *device, const char *what), void *arg);

/* Finds and opens what the device text means. */
int weft_ofi_port_open(struct weft_ofi_port *port, const struct fabric_want *want);
void weft_ofi_port_close(struct weft_ofi_port *port);

/* The endpoint with its queue and addresses: it belongs to one meeting, the domain to all, unless
 * it was kept with an endpoint. */
int weft_ofi_port_meet(struct weft_ofi_port *port);
void weft_ofi_port_part(struct weft_ofi_port *port);

/* Does the provider's name begin with this word, before any ';'? */
bool weft_ofi_is(const struct fi_info *info, const char *provider);
static inline bool weft_ofi_on_ip(const struct fi_info *info)
{
    return info->addr_format == FI_SOCKADDR_IN || info->addr_format == FI_SOCKADDR_IN6;
}

/* ---- facts.c: what a port can do ---- */

/* "send, write, read, atomics, inject 64" */
void weft_ofi_describe(const struct fi_info *info, char *text, size_t room);
void weft_ofi_facts(const struct weft_ofi_port *port, const struct fabric_want *want,
                    struct fabric_facts *facts);
/* Some providers never complete an injected atomic. */
bool weft_ofi_injects_atomics(const struct fi_info *info);

/* ---- slingshot.c: only where its header is ---- */

/* Adds the service and its network to what is asked of the cxi provider. */
int weft_ofi_slingshot_request(struct fi_info *hints, const struct fabric_want *want);
/* What that provider says of its NIC. */
void weft_ofi_slingshot_facts(const struct fi_info *info, struct fabric_facts *facts);

/* ---- the handle ---- */

/* What libfabric gets as context, and gives back. */
struct weft_ofi_context {
    struct fi_context2 theirs; /* first */
    enum { IS_SLOT, IS_RECEIVE, IS_NOTE, IS_ARRIVAL, IS_TAGGED, IS_PEEK } what;
};

/* Memory of ours that the other end may reach. */
struct weft_ofi_exposed {
    struct region *region; /* NULL, and mr not: withdrawn while it was in use */
    struct fid_mr *mr;
    uint64_t key; /* of this meeting, a word that nobody guesses; 0: not asked for yet */
};

struct weft_ofi_remote {
    uint64_t alive; /* the key, as long as it is good */
    uint64_t key, base, rkey;
    size_t length;
};

/* A compare-and-swap that is repeated until nothing came between. */
struct weft_ofi_loop {
    uint64_t to, compare, operand;
    void *result;
    uint32_t size;
    uint8_t op, type;
};

/* An operation under way. */
struct weft_ofi_slot {
    struct weft_ofi_context context;
    struct weft_ofi_slot *next;
    char *small;           /* WEFT_OFI_NOTE bytes of its own, for operands and results */
    char *bounce;          /* WEFT_OFI_BOUNCE bytes, or NULL */
    char *to;              /* where a read out of the bounce goes, or NULL */
    struct region *region; /* that it is in */
    const struct weft_ofi_remote *remote;
    struct weft_ofi_receive *receive; /* that it pulls for */
    struct weft_ofi_tagged *tagged;   /* or that */
    uint64_t id, length;
    uint32_t verb; /* VERBS: our own */
    bool taken, orphan, orders, again;
    bool left, unmatched; /* a synchronous send: our part of it is done; the other's is not */
    struct weft_ofi_loop loop;
};

/* A posted buffer: receives complete in the order in which they were posted. */
struct weft_ofi_receive {
    struct weft_ofi_context context;
    enum { POSTED, TO_PULL, PULLING, FILLED } state;
    struct region *region;
    char *to;
    size_t room;
    char *own; /* a longer buffer than the caller's, or NULL */
    size_t own_room;
    struct fid_mr *own_mr;
    bool in_own;
    uint64_t id, length;
    uint32_t pull; /* which of the other end's descriptors */
    bool pulled;
    int status;
};

/* Buffers of ours for what comes tagged. */
struct weft_ofi_bounce {
    struct weft_ofi_context context;
    char *data;
    size_t length;
    bool filled;
};

/* Where the target pulls a message from; a short one is in it, after the head. */
struct weft_ofi_news {
    struct {
        uint64_t number, entry, at, length;
    } head;
    char data[WEFT_OFI_NOTE - 4 * sizeof(uint64_t)];
};

struct weft_ofi_mail {
    uint64_t sent, acked;    /* messages */
    uint64_t consumed, told; /* theirs */
    struct weft_ofi_receive receives[WEFT_OFI_RECEIVES];
    uint64_t posted, filled;
    size_t room, room_told, their_room;          /* no receive is posted with less */
    struct weft_ofi_slot *asked[WEFT_OFI_PULLS]; /* sends that the other end is to pull, or NULL */
    uint64_t asks, pulled;
    bool mark_owed, mark_matching; /* the last descriptor is out, its place in the order is not */
    struct weft_ofi_news news[WEFT_OFI_PULLS];
    uint64_t pulls_done, pulls_told; /* of theirs */
};

struct weft_ofi_post {
    uint64_t sent, acked; /* active messages */
    uint64_t arrived, handed, recycled, told;
    struct weft_ofi_bounce in[WEFT_OFI_ARRIVALS];
};

enum todo {
    TODO_GIVEN = 1, /* what was looked at can be used again */
    TODO_OWED = 2,  /* the other end is to be told */
    TODO_PULL = 4,
    TODO_MARK = 8,
    TODO_AGAIN = 16,
    TODO_LOST = 32,
    TODO_TAGGED = 64
};

struct weft_ofi {
    struct fabric fabric;
    struct fid_ep *ep; /* of the port, here for speed */
    struct fid_cq *cq;
    fi_addr_t peer;
    unsigned todo;
    unsigned next, count; /* of events */
    size_t inject;
    uint64_t virtual_address, local_mr; /* bits of the mode, or 0 */
    uint64_t access;                    /* to what is exposed */
    bool looks, linked, tried, said, heard, connected;
    bool stuck;    /* a call did not return and was left: the endpoint is not touched again */
    bool parted;   /* the other end has said that it leaves: its silence is no loss */
    bool raw, waw; /* the provider keeps this order of its own */
    bool amo_injects, pulls;
    bool receives_am;  /* buffers for active messages are posted */
    uint64_t bound_mr; /* bit of the mode, or 0: memory is registered with an endpoint */
    char peer_name[WEFT_OFI_ADDRESS_MAX];
    uint64_t peer_pid;            /* where the ends share memory */
    struct weft_ofi_guard *guard; /* where a call may not return, or NULL */
    struct weft_ofi_slot *free;
    unsigned orders; /* writes and atomics under way */

    struct completion events[WEFT_OFI_EVENTS];
    struct weft_ofi_slot slots[WEFT_OFI_SLOTS];
    char *bounces[WEFT_OFI_BOUNCES];
    unsigned bounces_free;
    struct weft_ofi_post post;
    struct weft_ofi_mail mail;
    struct weft_ofi_tags *tags; /* NULL: opened without; tag.h */
    struct weft_ofi_bounce notes[WEFT_OFI_NOTES];
    struct weft_ofi_exposed exposed[WEFT_OFI_ENTRIES];
    struct weft_ofi_remote remotes[WEFT_OFI_ENTRIES];
    const struct weft_ofi_remote *by_entry[WEFT_OFI_ENTRIES];
    int remote_count;
    uint64_t withdrawing; /* the entry that the other end is told of */
    uint64_t word;        /* the meeting's: an end that says it belongs to it */
    uint16_t amo[2][AMO_OPS], cswap[AMO_COMPARES];
    char *arena;
    size_t arena_bytes;
    struct fid_mr *arena_mr;
    void *arena_desc;
    char reason[160];
    struct weft_ofi_port port;
};

/* ---- ofi.c ---- */

/* Says that a call did not succeed; -FI_EAGAIN is silent. */
int weft_ofi_refuse(const struct weft_ofi *ofi, const char *what, ssize_t status);

/* An endpoint to be met at, if there is none. */
int weft_ofi_renew(struct weft_ofi *ofi);

/* The connection is of no use any more. */
void weft_ofi_lose(struct weft_ofi *ofi, const char *reason);

/* Does this error mean that? */
bool weft_ofi_is_loss(int error);

/* gpu: the region, if it is a GPU's; else NULL. access: what may be done with it, apart
 * from our own reads and writes. */
int weft_ofi_register(struct weft_ofi *ofi, void *address, size_t length, const struct region *gpu,
                      uint64_t access, struct fid_mr **mr);

/* ---- guard.c: where the ends share locks, a call may never return ---- */

/* From here on calls are watched; without memory or a free signal they are not. */
void weft_ofi_guard_begin(struct weft_ofi *ofi, const struct fabric_meeting *meeting);
void weft_ofi_guard_end(struct weft_ofi *ofi);

/* The other end's process is not stopped or gone, as far as that can be seen. */
bool weft_ofi_peer_runs(const struct weft_ofi *ofi);

/* What the call returns, or -ECONNRESET with the reason if it did not; then ofi->stuck. */
int weft_ofi_guarded(struct weft_ofi *ofi, int (*call)(struct weft_ofi *ofi));
/* These two need a guard. */
int weft_ofi_guarded_verb(struct weft_ofi *ofi,
                          int (*verb)(struct fabric *fabric, const struct xfer *x),
                          const struct xfer *x);
int weft_ofi_guarded_poll(struct weft_ofi *ofi, struct completion *completions, int max);

/* ---- part.c ---- */

/* Closes the endpoint, its queue and its addresses. */
void weft_ofi_part(struct weft_ofi *ofi);
/* A domain that is still needed goes with the endpoint that needs it. */
void weft_ofi_bequeath(struct weft_ofi *ofi);

/* ---- link.c ---- */

/* Do both ends share memory, in which one that stops may hold a lock for ever? */
bool weft_ofi_by_name(const struct weft_ofi *ofi);

/* Memory that is not exposed any more, or whose registration goes with the endpoint, is let go. */
void weft_ofi_deregister(struct weft_ofi *ofi, bool all);

int weft_ofi_expose(struct fabric *fabric, struct region *region, struct msg *key);
void weft_ofi_withdraw(struct fabric *fabric, struct region *region);
int weft_ofi_address(struct fabric *fabric, struct msg *mine);
int weft_ofi_connect(struct fabric *fabric, const struct fabric_meeting *meeting,
                     struct remote *remote);

/* ---- verbs.c ---- */

int weft_ofi_write(struct fabric *fabric, const struct xfer *x);
int weft_ofi_read(struct fabric *fabric, const struct xfer *x);
/* Cheap compares only: wrong keys, withdrawn memory, bounds at both ends. */
/* Another operation follows at once: the provider may ring for both. */
static inline uint64_t weft_ofi_more(const struct xfer *x)
{
    return x->how & HINT(MORE) ? FI_MORE : 0;
}

bool weft_ofi_acceptable(const struct xfer *x);
int weft_ofi_unacceptable(const struct xfer *x);

static inline bool weft_ofi_in_buffer(const struct xfer *x)
{
    return x->length <= x->local->length && x->at <= x->local->length - x->length;
}

/* Bytes between a region and memory of ours: a GPU's are moved by its own calls. */
static inline int weft_ofi_fill(struct region *region, char *to, const void *from, size_t length)
{
    if (region->gpu)
        return region->kind->fill(region, (size_t)(to - region->address), from, length);
    __builtin_memcpy(to, from, length);
    return 0;
}

static inline int weft_ofi_peek(const struct xfer *x, void *to)
{
    if (x->local->gpu)
        return x->local->kind->peek(x->local, x->at, to, x->length);
    __builtin_memcpy(to, x->local->address + x->at, x->length);
    return 0;
}

static inline void *weft_ofi_desc(const struct weft_ofi *ofi, const struct region *region)
{
    for (int i = 0; i < WEFT_OFI_ENTRIES && ofi->local_mr; i++)
        if (ofi->exposed[i].region == region && ofi->exposed[i].mr)
            return fi_mr_desc(ofi->exposed[i].mr);
    return NULL;
}

static inline uint64_t weft_ofi_target(const struct weft_ofi_remote *remote, size_t at)
{
    return remote->base + at;
}

static inline struct weft_ofi_slot *weft_ofi_slot_take(struct weft_ofi *ofi, uint32_t verb,
                                                       uint64_t id, uint64_t length)
{
    struct weft_ofi_slot *slot = ofi->free;
    if (!slot)
        return NULL;
    ofi->free = slot->next;
    slot->id = id;
    slot->length = length;
    slot->verb = verb;
    slot->taken = true;
    return slot;
}

static inline void weft_ofi_slot_give(struct weft_ofi *ofi, struct weft_ofi_slot *slot)
{
    if (slot->bounce)
        ofi->bounces[ofi->bounces_free++] = slot->bounce;
    ofi->orders -= slot->orders;
    slot->bounce = slot->to = NULL;
    slot->remote = NULL;
    slot->receive = NULL;
    slot->tagged = NULL;
    slot->loop.size = 0;
    slot->taken = slot->orphan = slot->orders = slot->again = false;
    slot->left = slot->unmatched = false;
    slot->next = ofi->free;
    ofi->free = slot;
}

static inline bool weft_ofi_slot_bounce(struct weft_ofi *ofi, struct weft_ofi_slot *slot)
{
    if (ofi->bounces_free)
        slot->bounce = ofi->bounces[--ofi->bounces_free];
    return slot->bounce;
}

/* From what a posting call said to what a verb returns. */
static inline int weft_ofi_begun(struct weft_ofi *ofi, struct weft_ofi_slot *slot, ssize_t status,
                                 const char *what)
{
    if (__builtin_expect(!status, 1))
        return LATER;
    weft_ofi_slot_give(ofi, slot);
    return weft_ofi_refuse(ofi, what, status);
}

void weft_ofi_slot_done(struct weft_ofi *ofi, struct weft_ofi_slot *slot, int status);

/* ---- atomic.c ---- */

int weft_ofi_atomic(struct fabric *fabric, const struct xfer *x);
void weft_ofi_atomics(struct fid_domain *domain, struct fabric_facts *facts);
/* A step of a loop is complete: true if there is another. */
bool weft_ofi_atomic_again(struct weft_ofi *ofi, struct weft_ofi_slot *slot);
void weft_ofi_atomic_work(struct weft_ofi *ofi);

/* ---- poll.c: completions and events ---- */

int weft_ofi_poll(struct fabric *fabric, struct completion *completions, int max);
int weft_ofi_event_fd(struct fabric *fabric);
int weft_ofi_arm(struct fabric *fabric);
void weft_ofi_progress(struct weft_ofi *ofi);

static inline struct completion *weft_ofi_event(struct weft_ofi *ofi)
{
    if (__builtin_expect(ofi->count == WEFT_OFI_EVENTS, 0)) {
        /* What was handed out goes; there is always some, since progress stops in time. */
        ofi->count -= ofi->next;
        __builtin_memmove(ofi->events, ofi->events + ofi->next, ofi->count * sizeof *ofi->events);
        ofi->next = 0;
    }
    return &ofi->events[ofi->count++];
}

/* ---- notes.c: what the ends tell each other, and the tags ---- */

enum class { CLASS_NOTE, CLASS_AM, CLASS_MATCHED, CLASS_TAGGED };
enum note {
    NOTE_HELLO,
    NOTE_ACK,
    NOTE_PULL,
    NOTE_PULLED,
    NOTE_WITHDRAWN,
    NOTE_ROOM,
    NOTE_BYE,
    NOTE_MATCHED
};
enum { COUNT_BITS = 20, KIND_AT = 2 * COUNT_BITS, CLASS_AT = KIND_AT + 4, KIND_MASK = 0xf };
static const uint64_t weft_ofi_tag_ignore = (UINT64_C(1) << CLASS_AT) - 1;

static inline uint64_t weft_ofi_tag_class(enum class class)
{
    return (uint64_t) class << CLASS_AT;
}

/* Every tag says how much its sender has consumed. */
static inline uint64_t weft_ofi_tag(const struct weft_ofi *ofi, enum class class, enum note kind)
{
    const uint64_t mask = (1U << COUNT_BITS) - 1;
    return weft_ofi_tag_class(class) | (uint64_t)kind << KIND_AT |
           (ofi->mail.consumed & mask) << COUNT_BITS | (ofi->post.recycled & mask);
}

/* It is on its way. */
static inline void weft_ofi_told(struct weft_ofi *ofi)
{
    ofi->post.told = ofi->post.recycled;
    ofi->mail.told = ofi->mail.consumed;
}

void weft_ofi_heed_tag(struct weft_ofi *ofi, uint64_t tag);
int weft_ofi_notes_open(struct weft_ofi *ofi);
/* 0, -EAGAIN, or why not. */
int weft_ofi_tell(struct weft_ofi *ofi, enum note kind, const void *data, size_t length);
void weft_ofi_note_arrived(struct weft_ofi *ofi, struct weft_ofi_bounce *note,
                           const struct fi_cq_tagged_entry *entry);
void weft_ofi_tell_owed(struct weft_ofi *ofi);

/* ---- am.c ---- */

int weft_ofi_am(struct fabric *fabric, const struct xfer *x);
int weft_ofi_am_open(struct weft_ofi *ofi);
void weft_ofi_am_arrived(struct weft_ofi *ofi, struct weft_ofi_bounce *in,
                         const struct fi_cq_tagged_entry *entry);
void weft_ofi_am_recycle(struct weft_ofi *ofi);

/* ---- mail.c: messages ---- */

int weft_ofi_send(struct fabric *fabric, const struct xfer *x);
int weft_ofi_recv(struct fabric *fabric, const struct xfer *x);
void weft_ofi_received(struct weft_ofi *ofi, struct weft_ofi_receive *receive,
                       const struct fi_cq_tagged_entry *entry);
void weft_ofi_receive_failed(struct weft_ofi *ofi, struct weft_ofi_receive *receive,
                             uint64_t length, int status);
void weft_ofi_mail_leave(struct weft_ofi *ofi);
/* Receives that are complete, in order. */
void weft_ofi_release(struct weft_ofi *ofi);
void weft_ofi_pull_work(struct weft_ofi *ofi);
void weft_ofi_mark_work(struct weft_ofi *ofi);
void weft_ofi_note_pulled(struct weft_ofi *ofi, uint64_t count);
/* False: it makes no sense. */
bool weft_ofi_note_news(struct weft_ofi *ofi, const void *note, size_t length);

#endif
