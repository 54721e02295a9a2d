/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside uct, the fabric on UCX's transport layer. A lane is one interface of a transport on a
 * device with its one endpoint. Vendor's names begin with uct_, ours with lane_. */
#ifndef WEFT_FABRIC_UCT_H
#define WEFT_FABRIC_UCT_H

#include "fabric/fabric.h"

#include <ucs/async/async_fwd.h>
#include <uct/api/uct.h>
#include <uct/api/version.h>

enum {
    LANE_SLOTS = 128,    /* operations in flight */
    LANE_ENTRIES = 16,   /* regions exposed */
    LANE_RECEIVES = 128, /* posted */
    LANE_SENDS = 64,     /* messages that wait, or are under way */
    LANE_RKEY_MAX = 1024,
    LANE_ADDRESS_MAX = 512
};

enum { LANE_AM = 1, LANE_MAIL = 2 }; /* ids of active messages: the caller's, and our own */

/* The only way back to the tool. */
extern const struct fabric_host *lane_host;
extern const struct fabric_ops lane_ops;

/* ---- scan.c: what there is ---- */

/* How a transport's put gets into the target's memory for sure. */
enum settle {
    SETTLE_FENCE, /* it is a copy: the flush is a fence and done at once */
    SETTLE_SELF,  /* the completion of a zero-copy put proves it; a flush would do it twice */
    SETTLE_FLUSH  /* a flush with its completion */
};

/* A transport on a device, its domain open. */
struct lane_place {
    uct_component_h component;
    uct_md_h domain;
    char transport[UCT_TL_NAME_MAX], device[UCT_DEVICE_NAME_MAX];
    uct_device_type_t type;
};

struct lane_port {
    struct lane_place place;
    ucs_async_context_t *async;
    uct_worker_h worker;
    uct_iface_h iface;
    uct_md_attr_t domain_attr;
    uct_iface_attr_t attr;
};

int lane_list(void (*say)(void *arg, const char *device, const char *what), void *arg);

/* Finds and opens what the device text means; here: our address on the control connection. */
int lane_port_open(struct lane_port *port, const char *device, const char *here,
                   uct_error_handler_t lost, void *arg);
void lane_port_close(struct lane_port *port);

/* ---- facts.c: what a port can do ---- */

/* "am short bcopy, put short" */
void lane_describe(const struct lane_port *port, char *text, size_t room);
void lane_facts(const struct lane_port *port, struct fabric_facts *facts);
enum settle lane_settle(const struct lane_port *port);

/* ---- check.c: what it says it can but gets wrong is taken out of the facts ---- */

void lane_check_atomics(const struct lane_port *port, struct fabric_facts *facts);

/* ---- the handle ---- */

/* Memory of ours that the other end may reach. */
struct lane_exposed {
    struct region *region;
    uint64_t key;
    uct_mem_h memh;
    bool registered, placed;
    uct_allocated_memory_t memory; /* placed by us */
    volatile uint64_t *mark;       /* in placed memory: its key, until it is withdrawn */
};

/* Theirs. alive points to the key, as long as it is good: a mark in their memory, or a note here
 * that they change. */
struct lane_remote {
    const volatile uint64_t *alive;
    uint64_t base, key;
    uct_rkey_t rkey;
    size_t length;
    uct_rkey_bundle_t bundle;
    bool unpacked;
};

/* What the other end may tell us of itself, by a put where there are no active messages. */
struct lane_notice {
    uint64_t hello;
    uint64_t alive[LANE_ENTRIES];
};

/* An operation under way. */
struct lane_slot {
    uct_completion_t done; /* first: the callback gets its address */
    struct lane *lane;
    struct lane_slot *next;
    const struct lane_remote *remote;
    uint64_t id, key, length;
    uint32_t verb; /* VERBS: our own */
    bool flush;    /* to be flushed yet */
};

/* Bytes kept aside: of an arrival that is looked at, or of a message without a receive. */
struct lane_packet {
    struct lane_packet *next;
    size_t room, length;
    char data[];
};

/* A message on its way out. */
struct lane_outgoing {
    uct_completion_t done; /* first, as above */
    struct lane *lane;
    const char *from;
    uct_mem_h memh;
    size_t length, moved;
    uint64_t id, entry, at;
    bool pull, complete;
};

struct lane_mail {
    uint64_t word; /* of the run: who says it belongs to it */
    bool said, heard;
    size_t whole_most, fragment_most; /* bytes of a message in one packet, and of a piece */
    bool zcopy, pulls;
    uint64_t sent, acked;    /* in units of flow control */
    uint64_t consumed, told; /* theirs */
    struct {
        char *to;
        size_t length;
        uint64_t id;
    } receives[LANE_RECEIVES];
    uint64_t posted, filled;
    size_t total, got; /* of the message coming in */
    bool coming;       /* more of it is to come */
    struct lane_packet *first, **last;
    struct lane_outgoing out[LANE_SENDS];
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

struct lane {
    struct fabric fabric;
    uct_worker_h worker; /* of the port, here for speed */
    uct_ep_h ep;
    unsigned todo;
    unsigned next, count, room; /* of events */
    struct completion *events;
    struct completion *sink, *sink_end; /* where a poll that is under way wants arrivals */
    size_t put_max[LAYOUTS], get_max[LAYOUTS], am_max[LAYOUTS];
    enum settle settle;
    bool looks, needs_memh, draining;
    bool tried, linked, connected; /* the endpoint was attempted; is there; both ends said so */
    struct lane_slot *free;
    int taken;  /* slots */
    char *head; /* of an active message in layout ZCOPY: zeroes behind eight bytes */
    size_t head_max;

    struct lane_slot slots[LANE_SLOTS];
    struct lane_packet *spare, *given;
    struct lane_exposed exposed[LANE_ENTRIES];
    struct lane_remote remotes[LANE_ENTRIES];
    int remote_count;
    const struct lane_remote *by_entry[LANE_ENTRIES];
    struct lane_notice notice, note; /* what they tell; what we tell */
    uint64_t their_notice;
    bool has_notice;
    ucs_status_t lost;
    const char *reason;
    uint16_t amo[2][AMO_OPS];
    struct lane_mail mail;
    struct lane_port port;
};

/* ---- uct.c ---- */

/* A status of UCX's as ours. */
int lane_errno(ucs_status_t status);

/* Says that a call did not succeed: lane_refuse(lane, "put", status). */
int lane_refuse(const struct lane *lane, const char *what, ucs_status_t status);

/* The connection is of no use any more. */
void lane_lose(struct lane *lane, ucs_status_t status, const char *reason);

/* ---- link.c ---- */

int lane_expose(struct fabric *fabric, struct region *region, struct blob *key);
void lane_withdraw(struct fabric *fabric, struct region *region);
/* Before the endpoint goes. */
void lane_drain(struct lane *lane);
int lane_address(struct fabric *fabric, struct blob *mine);
int lane_connect(struct fabric *fabric, const struct blob *theirs, const struct blob *keys, int n,
                 struct remote *remote);

/* ---- verbs.c ---- */

int lane_write(struct fabric *fabric, const struct xfer *x);
int lane_read(struct fabric *fabric, const struct xfer *x);
int lane_atomic(struct fabric *fabric, const struct xfer *x);
extern const uct_atomic_op_t lane_amo_ops[AMO_OPS];
/* Flushes that found no room. */
void lane_flush_again(struct lane *lane);
void lane_slot_done(uct_completion_t *done);

static inline bool lane_in_buffer(const struct xfer *x)
{
    return x->length <= x->local->length && x->at <= x->local->length - x->length;
}

/* The handle of the memory of a region, where the transport wants one. */
static inline uct_mem_h lane_memh(const struct lane *lane, const struct region *region)
{
    for (int i = 0; i < LANE_ENTRIES && lane->needs_memh; i++)
        if (lane->exposed[i].region == region)
            return lane->exposed[i].memh;
    return UCT_MEM_HANDLE_NULL;
}

static inline struct lane_slot *lane_slot_take(struct lane *lane, uint32_t verb,
                                               const struct xfer *x)
{
    struct lane_slot *slot = lane->free;
    if (!slot)
        return NULL;
    lane->free = slot->next;
    lane->taken++;
    slot->done.count = 1;
    slot->done.status = UCS_OK;
    slot->id = x->id;
    slot->length = x->length;
    slot->verb = verb;
    slot->flush = false;
    return slot;
}

static inline void lane_slot_give(struct lane_slot *slot)
{
    slot->next = slot->lane->free;
    slot->lane->free = slot;
    slot->lane->taken--;
}

/* ---- am.c: active messages, events, poll ---- */

int lane_am(struct fabric *fabric, const struct xfer *x);
int lane_poll(struct fabric *fabric, struct completion *completions, int max);
ucs_status_t lane_am_arrived(void *arg, void *data, size_t length, unsigned flags);

/* A copy kept aside, or NULL after the loss was noted. */
struct lane_packet *lane_keep(struct lane *lane, const void *data, size_t length);
void lane_drop(struct lane *lane, struct lane_packet *packet);

bool lane_events_grow(struct lane *lane);

static inline struct completion *lane_event(struct lane *lane)
{
    static struct completion nowhere;
    if (__builtin_expect(lane->count == lane->room, 0) && !lane_events_grow(lane))
        return &nowhere;
    return &lane->events[lane->count++];
}

/* ---- mail.c: messages of any size, out; inbox.c: in ---- */

/* What a packet is: the low bits of its first word. Above them stand the units of flow control that
 * its sender has consumed. */
enum kind { HELLO, WHOLE, FIRST, MORE, PULL, PULLED, ACK, WITHDRAWN };
enum { KIND_BITS = 8, HEAD = sizeof(uint64_t), UNIT = 4096, WINDOW = 256 };

/* What a descriptor says: which of the sender's regions, and where in it. */
struct lane_news {
    uint64_t entry, at, length;
};

/* What a packet costs. */
static inline uint64_t lane_units(size_t length)
{
    return 1 + length / UNIT;
}

void lane_mail_open(struct lane *lane, const char *nonce);
void lane_mail_close(struct lane *lane);
/* The other end has pulled so many of ours. */
void lane_mail_pulled(struct lane *lane, uint64_t count);
/* It said what makes no sense. */
void lane_mail_bad(struct lane *lane);
/* What was kept aside and can be taken now. */
void lane_inbox_work(struct lane *lane);
enum { LANE_TELL_EVERY = WINDOW / 4 };
int lane_send(struct fabric *fabric, const struct xfer *x);
int lane_recv(struct fabric *fabric, const struct xfer *x);
ucs_status_t lane_mail_arrived(void *arg, void *data, size_t length, unsigned flags);
/* What waits for room, for a receive, or to be told. */
void lane_mail_work(struct lane *lane);
/* Once: that we are there. DONE when the other end has said so too. */
int lane_mail_hello(struct lane *lane);
void lane_mail_withdrawn(struct lane *lane, uint64_t entry);

#endif
