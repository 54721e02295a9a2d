/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside uct, the fabric on UCX's transport layer. A handle is one interface of a
 * transport on a device, with one endpoint for each meeting. The vendor's names begin with uct_,
 * ours with weft_uct_. */
#ifndef WEFT_FABRIC_UCT_H
#define WEFT_FABRIC_UCT_H

#include "fabric/fabric.h"

#include <ucs/async/async_fwd.h>
#include <uct/api/uct.h>
#include <uct/api/version.h>

enum {
    WEFT_UCT_SLOTS = 128,    /* operations in flight */
    WEFT_UCT_ENTRIES = 16,   /* regions exposed */
    WEFT_UCT_RECEIVES = 128, /* posted */
    WEFT_UCT_SENDS = 64,     /* messages that wait, or are under way */
    WEFT_UCT_NOTICES = 16,   /* meetings after which a late word from an old one could be heard */
    WEFT_UCT_RKEY_MAX = 1024,
    WEFT_UCT_ADDRESS_MAX = 512
};

enum { WEFT_UCT_AM = 1, WEFT_UCT_MAIL = 2 }; /* ids of active messages: the caller's, and our own */

/* The only way back to the tool. */
extern const struct fabric_host *weft_uct_host;
extern const struct fabric_ops weft_uct_ops;

/* ---- scan.c: what there is ---- */

/* How a transport's put gets into the target's memory for sure. */
enum settle {
    SETTLE_FENCE, /* it is a copy: the flush is a fence and done at once */
    SETTLE_SELF,  /* the completion of a zero-copy put proves it; a flush would do it twice */
    SETTLE_FLUSH  /* a flush with its completion */
};

/* A transport on a device, its domain open. */
struct weft_uct_place {
    uct_component_h component;
    uct_md_h domain;
    char transport[UCT_TL_NAME_MAX], device[UCT_DEVICE_NAME_MAX];
    uct_device_type_t type;
};

struct weft_uct_port {
    struct weft_uct_place place;
    ucs_async_context_t *async;
    uct_worker_h worker;
    uct_iface_h iface;
    uct_md_attr_t domain_attr;
    bool follows_here; /* a network interface that the device text does not name */
    uct_iface_attr_t attr;
};

int weft_uct_list(void (*say)(void *arg, const char *device, const char *what), void *arg);

/* Finds and opens what the device text means; here: our address on the control connection. */
int weft_uct_port_open(struct weft_uct_port *port, const char *device, const char *here,
                       uct_error_handler_t lost, void *arg);
/* Another interface instead of the one that is there; domain and worker stay. */
ucs_status_t weft_uct_port_renew(struct weft_uct_port *port, uct_error_handler_t lost, void *arg);
void weft_uct_port_close(struct weft_uct_port *port);

/* ---- facts.c: what a port can do ---- */

/* "am short bcopy, put short" */
void weft_uct_describe(const struct weft_uct_port *port, char *text, size_t room);
void weft_uct_facts(const struct weft_uct_port *port, struct fabric_facts *facts);
enum settle weft_uct_settle(const struct weft_uct_port *port);

/* ---- check.c: what it says it can but gets wrong is taken out of the facts ---- */

void weft_uct_check_atomics(const struct weft_uct_port *port, struct fabric_facts *facts);

/* ---- the handle ---- */

/* Memory of ours that the other end may reach. */
struct weft_uct_exposed {
    struct region *region;
    uint64_t key; /* of this meeting; 0: nobody has asked for it yet */
    uct_mem_h memh;
    bool registered, placed;
    uct_allocated_memory_t memory; /* placed by us */
    volatile uint64_t *mark;       /* in placed memory: its key, until it is withdrawn */
};

/* Theirs. alive points to the key, as long as it is good: a mark in their memory, or a note here
 * that they change. */
struct weft_uct_remote {
    const volatile uint64_t *alive;
    uint64_t base, key;
    uct_rkey_t rkey;
    size_t length;
    uct_rkey_bundle_t bundle;
    bool unpacked;
};

/* What the other end may tell us of itself, by a put where there are no active messages. */
struct weft_uct_notice {
    uint64_t hello;
    uint64_t alive[WEFT_UCT_ENTRIES];
};

/* An operation under way. */
struct weft_uct_slot {
    uct_completion_t done; /* first: the callback gets its address */
    struct weft_uct *uct;
    struct weft_uct_slot *next;
    const struct weft_uct_remote *remote;
    uint64_t id, key, length;
    uint32_t verb; /* VERBS: our own */
    bool flush;    /* to be flushed yet */
};

/* Bytes kept aside: of an arrival that is looked at, or of a message without a receive. */
struct weft_uct_packet {
    struct weft_uct_packet *next;
    size_t room, length;
    char data[];
};

/* A message on its way out. */
struct weft_uct_outgoing {
    uct_completion_t done; /* first, as above */
    struct weft_uct *uct;
    const char *from;
    uct_mem_h memh;
    size_t length, moved;
    uint64_t id, entry, at;
    bool pull, complete;
};

struct weft_uct_mail {
    uint64_t word; /* the meeting's: an end that says it belongs to it */
    bool said, heard;
    size_t whole_most, fragment_most; /* bytes of a message in one packet, and of a piece */
    bool zcopy, pulls;
    uint64_t sent, acked;    /* in units of flow control */
    uint64_t consumed, told; /* theirs */
    struct {
        char *to;
        size_t length;
        uint64_t id;
    } receives[WEFT_UCT_RECEIVES];
    uint64_t posted, filled;
    size_t total, got; /* of the message coming in */
    bool coming;       /* more of it is to come */
    struct weft_uct_packet *first, **last;
    struct weft_uct_outgoing out[WEFT_UCT_SENDS];
    uint64_t out_head, out_next, out_tail;
    uint64_t asked, pulled;          /* of ours: descriptors sent, and pulled by the other end */
    uint64_t pulls_done, pulls_told; /* of theirs */
};

enum todo {
    TODO_OUT = 1,   /* messages wait to go out */
    TODO_IN = 2,    /* packets are kept aside */
    TODO_OWED = 4,  /* the other end is to be told */
    TODO_GIVEN = 8, /* what was looked at can be dropped */
    TODO_FLUSH = 16,
    TODO_LOST = 32
};

struct weft_uct {
    struct fabric fabric;
    uct_worker_h worker; /* of the port, here for speed */
    uct_ep_h ep;
    unsigned todo;
    unsigned next, count, room; /* of events */
    struct completion *events;
    struct completion *sink, *sink_end; /* where a poll that is under way wants arrivals */
    size_t put_max[LAYOUTS], get_max[LAYOUTS], am_max[LAYOUTS];
    unsigned spins; /* looks of a poll, at least 1 */
    enum settle settle;
    bool looks, events_on, needs_memh, draining;
    bool hears, renewed; /* active messages; the interface is there */
    bool parted;         /* the other end has said that it leaves: its silence is no loss */
    bool tried, linked, connected; /* the endpoint was attempted; is there; both ends said so */
    struct weft_uct_slot *free;
    int taken;  /* slots */
    char *head; /* of an active message in layout ZCOPY: eight bytes, then zeroes */
    size_t head_max;

    struct weft_uct_slot slots[WEFT_UCT_SLOTS];
    struct weft_uct_packet *spare, *given;
    struct weft_uct_exposed exposed[WEFT_UCT_ENTRIES];
    struct weft_uct_remote remotes[WEFT_UCT_ENTRIES];
    int remote_count;
    const struct weft_uct_remote *by_entry[WEFT_UCT_ENTRIES];
    /* What they tell, in a place of its own for each meeting; what we tell. */
    struct weft_uct_notice notices[WEFT_UCT_NOTICES], *notice, note;
    unsigned meetings;
    uint64_t their_notice;
    bool has_notice;
    ucs_status_t lost;
    const char *reason;
    uint16_t amo[2][AMO_OPS];
    struct weft_uct_mail mail;
    struct weft_uct_port port;
};

/* ---- uct.c ---- */

/* A status of UCX's as ours. */
int weft_uct_errno(ucs_status_t status);

/* An interface to be met at, if the last one could not be had. */
int weft_uct_renew(struct weft_uct *uct);

/* Says that a call did not succeed: weft_uct_refuse(uct, "put", status). */
int weft_uct_refuse(const struct weft_uct *uct, const char *what, ucs_status_t status);

/* The connection is of no use any more. */
void weft_uct_lose(struct weft_uct *uct, ucs_status_t status, const char *reason);

/* ---- link.c ---- */

int weft_uct_expose(struct fabric *fabric, struct region *region, struct msg *key);
void weft_uct_withdraw(struct fabric *fabric, struct region *region);
/* All regions: the keys of a meeting are no longer good; they are not exposed any more. */
void weft_uct_lock(struct weft_uct *uct);
void weft_uct_unexpose(struct weft_uct *uct);
/* Before the endpoint goes. */
void weft_uct_drain(struct weft_uct *uct);
int weft_uct_address(struct fabric *fabric, struct msg *mine);
int weft_uct_connect(struct fabric *fabric, const struct fabric_meeting *meeting,
                     struct remote *remote);

/* ---- verbs.c ---- */

int weft_uct_write(struct fabric *fabric, const struct xfer *x);
int weft_uct_read(struct fabric *fabric, const struct xfer *x);
int weft_uct_atomic(struct fabric *fabric, const struct xfer *x);
extern const uct_atomic_op_t weft_uct_amo_ops[AMO_OPS];
/* Flushes that found no room. */
void weft_uct_flush_again(struct weft_uct *uct);
void weft_uct_slot_done(uct_completion_t *done);

static inline bool weft_uct_in_buffer(const struct xfer *x)
{
    return x->length <= x->local->length && x->at <= x->local->length - x->length;
}

/* The handle of the memory of a region, where the transport wants one. */
static inline uct_mem_h weft_uct_memh(const struct weft_uct *uct, const struct region *region)
{
    for (int i = 0; i < WEFT_UCT_ENTRIES && uct->needs_memh; i++)
        if (uct->exposed[i].region == region)
            return uct->exposed[i].memh;
    return UCT_MEM_HANDLE_NULL;
}

static inline struct weft_uct_slot *weft_uct_slot_take(struct weft_uct *uct, uint32_t verb,
                                                       const struct xfer *x)
{
    struct weft_uct_slot *slot = uct->free;
    if (!slot)
        return NULL;
    uct->free = slot->next;
    uct->taken++;
    slot->done.count = 1;
    slot->done.status = UCS_OK;
    slot->id = x->id;
    slot->length = x->length;
    slot->verb = verb;
    slot->flush = false;
    return slot;
}

static inline void weft_uct_slot_give(struct weft_uct_slot *slot)
{
    slot->next = slot->uct->free;
    slot->uct->free = slot;
    slot->uct->taken--;
}

/* ---- am.c: active messages, events, poll ---- */

int weft_uct_am(struct fabric *fabric, const struct xfer *x);
int weft_uct_poll(struct fabric *fabric, struct completion *completions, int max);
int weft_uct_event_fd(struct fabric *fabric);
int weft_uct_arm(struct fabric *fabric);
ucs_status_t weft_uct_am_arrived(void *arg, void *data, size_t length, unsigned flags);

/* A copy kept aside, or NULL after the loss was noted. */
struct weft_uct_packet *weft_uct_keep(struct weft_uct *uct, const void *data, size_t length);
void weft_uct_drop(struct weft_uct *uct, struct weft_uct_packet *packet);

bool weft_uct_events_grow(struct weft_uct *uct);
void weft_uct_events_drop(struct weft_uct *uct);

static inline struct completion *weft_uct_event(struct weft_uct *uct)
{
    static _Thread_local struct completion nowhere;
    if (__builtin_expect(uct->count == uct->room, 0) && !weft_uct_events_grow(uct))
        return &nowhere;
    return &uct->events[uct->count++];
}

/* ---- mail.c: messages of any size, out; inbox.c: in ---- */

/* What a packet is: the low bits of its first word. Above them stand the units of flow control that
 * its sender has consumed. */
enum kind { HELLO, WHOLE, FIRST, MORE, PULL, PULLED, ACK, WITHDRAWN, BYE };
enum { KIND_BITS = 8, HEAD = sizeof(uint64_t), UNIT = 4096, WINDOW = 256 };

/* What a descriptor says: which of the sender's regions, and where in it. */
struct weft_uct_news {
    uint64_t entry, at, length;
};

/* What a packet costs. */
static inline uint64_t weft_uct_units(size_t length)
{
    return 1 + length / UNIT;
}

void weft_uct_mail_open(struct weft_uct *uct);
void weft_uct_mail_leave(struct weft_uct *uct);
/* The other end has pulled so many of ours. */
void weft_uct_mail_pulled(struct weft_uct *uct, uint64_t count);
/* It said what makes no sense. */
void weft_uct_mail_bad(struct weft_uct *uct);
/* What was kept aside and can be taken now. */
void weft_uct_inbox_work(struct weft_uct *uct);
enum { WEFT_UCT_TELL_EVERY = WINDOW / 4 };
int weft_uct_send(struct fabric *fabric, const struct xfer *x);
int weft_uct_recv(struct fabric *fabric, const struct xfer *x);
ucs_status_t weft_uct_mail_arrived(void *arg, void *data, size_t length, unsigned flags);
/* What waits for room, for a receive, or to be told. */
void weft_uct_mail_work(struct weft_uct *uct);
/* Once: that we are there. DONE when the other end has said so too. */
int weft_uct_mail_hello(struct weft_uct *uct);
void weft_uct_mail_withdrawn(struct weft_uct *uct, uint64_t entry);
void weft_uct_mail_bye(struct weft_uct *uct);

#endif
