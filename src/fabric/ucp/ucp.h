/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside ucp, the fabric on UCX's protocol layer. A handle is a context, with one worker and one
 * endpoint for each meeting. UCX chooses transports and protocols; what its completions leave open,
 * a flush settles. The vendor's names begin with ucp_, ours with weft_ucp_. */
#ifndef WEFT_FABRIC_UCP_H
#define WEFT_FABRIC_UCP_H

#include "fabric/choose.h"
#include "fabric/fabric.h"
#include "fabric/pieces.h"

#include <stddef.h>
#include <ucp/api/ucp.h>
#include <ucp/api/ucp_version.h>

enum {
    WEFT_UCP_SLOTS = 512,   /* operations in flight */
    WEFT_UCP_ENTRIES = 16,  /* regions exposed */
    WEFT_UCP_NOTICES = 16,  /* meetings after which a late word from an old one could be heard */
    WEFT_UCP_WINDOW = 1024, /* units of tagged messages that the other end has not taken */
    WEFT_UCP_HEAD_MAX = 64, /* bytes before the payload of an active message */
    WEFT_UCP_RKEY_MAX = 1024,
    WEFT_UCP_ADDRESS_MAX = 2048,
    /* UCX is not told how long an address or a key is: what it could read of one lies in a buffer
     * of zeroes of this size. */
    WEFT_UCP_PADDED = 32768
};

/* Ids of active messages: the caller's, and our own. */
enum { WEFT_UCP_AM = 1, WEFT_UCP_NEWS = 2 };

/* The only way back to the tool. */
extern const struct fabric_host *weft_ucp_host;
extern const struct fabric_ops weft_ucp_ops;

/* ---- scan.c: what there is ---- */

/* A context on the transports and devices of a device text. */
struct weft_ucp_port {
    ucp_context_h context;
    char transports[FABRIC_DEVICE_MAX], device[FABRIC_DEVICE_MAX]; /* "": UCX's choice */
    bool atomics;                                                  /* its endpoints have them */
    bool shared;       /* every transport is one of shared memory */
    bool places;       /* some reach only memory that UCX has placed */
    bool unwatched;    /* some have no error handling: UCX would not use them with it */
    bool follows_here; /* a network interface that the device text does not name */
    bool relics;       /* something of it cannot be closed */
    unsigned gpus;     /* whose GPU memory UCX reaches with them, a bit a vendor */
    unsigned char memory_types[MEMORY_VENDORS]; /* what this release calls it */
    uint64_t key_types; /* of their memory, a bit a type: keys may be of these, too */
    char why_no_gpu[160];
};

int weft_ucp_list(void (*say)(void *arg, const char *device, const char *what), void *arg);
int weft_ucp_port_open(struct weft_ucp_port *port, const struct fabric_want *want);
void weft_ucp_port_close(struct weft_ucp_port *port);
/* Has this release of UCX the protocols that came with 1.16? */
bool weft_ucp_new_protocols(void);

/* Calls for every "transport/device" that UCX prints of something; may be called with the same one
 * twice. */
void weft_ucp_each(const char *text, void (*found)(void *arg, const char *name), void *arg);

/* ---- gpu.c: whose GPU memory UCX reaches ---- */

/* UCX's names of it differ by release. wanted: for whose memory a reason is to be there. */
void weft_ucp_gpus(struct weft_ucp_port *port, unsigned wanted);

static inline ucs_memory_type_t weft_ucp_type(const struct weft_ucp_port *port,
                                              const struct region *region)
{
    return region->gpu ? (ucs_memory_type_t)port->memory_types[region->kind->vendor]
                       : UCS_MEMORY_TYPE_HOST;
}

/* ---- facts.c ---- */

void weft_ucp_facts(const struct weft_ucp_port *port, const struct fabric_want *want,
                    struct fabric_facts *facts);

/* ---- check.c: addresses and keys of the other end, before UCX sees them ---- */

/* Is it a worker's address, whole, and of this machine, if there is one, alone? */
int weft_ucp_check_address(const unsigned char *bytes, size_t length, const char *there);
/* types: what its memory may be beside the host's. */
int weft_ucp_check_rkey(const unsigned char *bytes, size_t length, uint64_t types);

/* ---- try.c: what UCX says it can but gets wrong is taken out of the facts ---- */

void weft_ucp_try_atomics(const struct weft_ucp_port *port, struct fabric_facts *facts);
extern const ucp_atomic_op_t weft_ucp_amo_ops[AMO_OPS];

/* ---- the handle ---- */

/* Memory of ours that the other end may reach. */
struct weft_ucp_exposed {
    struct region *region;
    uint64_t key; /* of this meeting; 0: nobody has asked for it yet */
    ucp_mem_h memh;
    void *rkey; /* packed */
    size_t rkey_bytes;
    volatile uint64_t *mark; /* in memory that we placed: its key, until it is withdrawn */
};

/* Theirs. alive points to the key, as long as it is good: a mark in their memory, or a note here
 * that they change. */
struct weft_ucp_remote {
    const volatile uint64_t *alive;
    uint64_t base, key;
    size_t length;
    ucp_rkey_h rkey;
};

/* An operation under way. The first line of it is all that a message of tags needs: there may be
 * more of them in use than a cache has room for. */
enum { WEFT_UCP_LINE = 64 };
struct weft_ucp_slot {
    _Alignas(WEFT_UCP_LINE) struct weft_ucp *ucp;
    void *request; /* memory of ours for UCX's part, where that is brought; points to its end */
    struct weft_ucp_slot *next; /* free, or in the order in which they wait for a flush */
    const struct weft_ucp_remote *remote;
    uint64_t id, length;
    uint32_t verb; /* VERBS: our own */
    int status;
    bool flushes, local, settled;
    bool ready; /* a receive in order: its message is here */
    bool shows; /* which protocol it has is to be told */

    uint64_t key;
    uint64_t turn; /* of flushes */
    unsigned char head[WEFT_UCP_HEAD_MAX];
};
_Static_assert(offsetof(struct weft_ucp_slot, shows) < WEFT_UCP_LINE, "the first line is too long");

/* An active message that came in, or is on its way in. */
struct weft_ucp_packet {
    struct weft_ucp_packet *next;
    struct weft_ucp *ucp;
    size_t length, at; /* header and payload; the header alone */
    size_t here;       /* so much of it is in data */
    void *source;      /* UCX's, until it is fetched; or NULL */
    bool ready;
    int status;
    char *data;
    size_t room;
};

/* Settings of ours. */
struct weft_ucp_tunes {
    bool errors_none, errors_peer; /* neither: as the transports and atomics allow */
    bool registered;               /* operations have the handle of their memory */
    bool nonblock;                 /* memory is registered without waiting for its pages */
    bool protocols;                /* facts.protocol is filled */
    uint64_t shown;                /* the length and verb that it is of */
};

enum todo {
    TODO_GIVEN = 1, /* what was looked at can be dropped */
    TODO_FLUSH = 2, /* some wait for a flush that is not under way */
    TODO_LOST = 4,
    TODO_TELL = 8, /* the other end is to be told what was taken */
    TODO_LEND = 16 /* some wait for bytes of the stream, or some are to go back */
};

struct weft_ucp {
    struct fabric fabric;
    ucp_worker_h worker;
    ucp_ep_h ep;
    unsigned todo;
    unsigned next, count, room; /* of events */
    unsigned spins;             /* looks of a poll, at least 1 */
    struct completion *events;
    struct completion *sink, *sink_end; /* of a poll that is under way */
    struct weft_ucp_slot *free;
    ucp_request_param_t send, receive, stream; /* of operations but for their slot */
    bool looks, sleeps, connected;
    bool tuned; /* operations are not all as usual */
    bool plain; /* connected, nothing is tuned, and no call has to be survived */
    bool linked, tried, draining, peer_errors;
    bool survives; /* aborts in UCX */
    bool parted;   /* the other end has said that it leaves: its silence is no loss */

    int taken, receives; /* slots; of them those that nobody has to answer */
    struct weft_ucp_slot *waiting, **waiting_last; /* for a flush */
    uint64_t turns, turn_begun;                    /* of flushes */
    bool flushing;

    struct weft_ucp_packet *first, **last, *spare, *given; /* of arrivals */
    size_t kept;                                           /* bytes of those */
    const struct region *inbox; /* what is fetched may come to its end; a GPU's if there is one */
    unsigned waits, fetching;   /* of those arrivals that have to be fetched */

    struct {
        uint64_t sent, acked, taken, told; /* units of tagged messages: ours, and theirs */
    } flow;
    struct {
        struct weft_ucp_slot *first, **last; /* receives that complete in order */
    } mail;
    struct {
        struct weft_ucp_slot *first, **last; /* receives that wait */
        char *data, *at;                     /* UCX's, and how far it was handed out */
        size_t left;
    } loan;

    struct weft_ucp_slot slots[WEFT_UCP_SLOTS];
    char *requests; /* one per slot */
    size_t request_bytes;
    ucp_dt_iov_t iov[WEFT_UCP_SLOTS][FABRIC_PIECES]; /* of messages in pieces */
    struct weft_ucp_exposed exposed[WEFT_UCP_ENTRIES];
    ucp_mem_h late[WEFT_UCP_ENTRIES]; /* withdrawn while there was another end */
    int late_count;
    uint64_t withdrawn; /* the entry that the other end is being told of */
    struct weft_ucp_remote remotes[WEFT_UCP_ENTRIES];
    int remote_count;
    uint64_t notices[WEFT_UCP_NOTICES][WEFT_UCP_ENTRIES], *notice; /* which of theirs are good */
    unsigned meetings;
    uint64_t word; /* the meeting's: an end that says it belongs to it */
    bool said, heard;
    ucs_status_t lost;
    const char *reason;
    struct fabric_facts *facts;
    struct weft_ucp_port port;
    struct weft_ucp_tunes tunes;
};

/* ---- ucp.c ---- */

static inline void weft_ucp_disconnect(struct weft_ucp *ucp)
{
    ucp->connected = ucp->plain = false;
}
/* Why nothing can be posted: there is no other end, or it is lost. */
int weft_ucp_not_connected(const struct weft_ucp *ucp);
/* A status of UCX's as ours. */
int weft_ucp_errno(ucs_status_t status);
/* Says that a call did not succeed: weft_ucp_refuse(ucp, "put", status). */
int weft_ucp_refuse(const struct weft_ucp *ucp, const char *what, ucs_status_t status);
/* The connection is of no use any more. */
void weft_ucp_lose(struct weft_ucp *ucp, ucs_status_t status, const char *reason);
/* So is the worker: it is never called again. */
void weft_ucp_give_up(struct weft_ucp *ucp, const char *reason);
/* A worker to be met at, if the last one could not be had. */
int weft_ucp_renew(struct weft_ucp *ucp);
/* Of an endpoint. */
void weft_ucp_error(void *arg, ucp_ep_h ep, ucs_status_t status);

/* ---- survive.c: a call into UCX that aborts loses the connection, and nothing else ---- */

/* Of an end on a network: between these two. */
void weft_ucp_survive_begin(struct weft_ucp *ucp);
void weft_ucp_survive_end(struct weft_ucp *ucp);
/* What the call returns, or -ECONNRESET without a reason said. */
int weft_ucp_survive(struct weft_ucp *ucp, int (*call)(struct weft_ucp *ucp));
int weft_ucp_survive_verb(struct weft_ucp *ucp,
                          int (*verb)(struct fabric *fabric, const struct xfer *x),
                          const struct xfer *x);
int weft_ucp_survive_poll(struct weft_ucp *ucp, struct completion *completions, int max);

/* ---- link.c ---- */

int weft_ucp_expose(struct fabric *fabric, struct region *region, struct msg *key);
void weft_ucp_withdraw(struct fabric *fabric, struct region *region);
/* All regions: the keys of a meeting are no longer good; they are not exposed any more. */
void weft_ucp_lock(struct weft_ucp *ucp);
void weft_ucp_unexpose(struct weft_ucp *ucp);
/* Memory that was withdrawn too early to be given back, when nothing is under way. */
void weft_ucp_give_back(struct weft_ucp *ucp);
int weft_ucp_address(struct fabric *fabric, struct msg *mine);
int weft_ucp_connect(struct fabric *fabric, const struct fabric_meeting *meeting,
                     struct remote *remote);

/* ---- verbs.c ---- */

int weft_ucp_write(struct fabric *fabric, const struct xfer *x);
int weft_ucp_read(struct fabric *fabric, const struct xfer *x);
int weft_ucp_flush(struct fabric *fabric, const struct xfer *x);
/* Why it is not acceptable. */
int weft_ucp_refuse_remote(const struct weft_ucp *ucp, const struct xfer *x);
/* From what the call said to what a verb returns. */
int weft_ucp_begun(struct weft_ucp_slot *slot, enum verb verb, const struct xfer *x, void *request,
                   bool flushes);
void weft_ucp_slot_done(void *request, ucs_status_t status, void *arg);
/* A flush for all that wait for one. */
void weft_ucp_flush_start(struct weft_ucp *ucp);

static inline bool weft_ucp_in_buffer(const struct xfer *x)
{
    return pieces_fit(x);
}

/* What UCX is given of a message: where it is, how many of what, and the rest. */
struct weft_ucp_bytes {
    void *at;
    size_t count;
    const ucp_request_param_t *param;
    bool taken; /* the slot is already: its protocol is to be shown */
};

/* ---- tune.c ---- */

int weft_ucp_tune(struct weft_ucp *ucp, const char *tunes);
extern const char weft_ucp_tune_names[];
/* In pieces, on a GPU, or with what tunes add; slot is the one it will have. own: as usual, and
 * changed. */
struct weft_ucp_bytes weft_ucp_tuned(struct weft_ucp_slot *slot, enum verb verb,
                                     const struct xfer *x, ucp_request_param_t *own);
/* How a request goes that UCX has taken; NULL: it was done at once. */
void weft_ucp_show(struct weft_ucp *ucp, void *request);
/* The same of the first of a verb and length. */
void weft_ucp_show_once(struct weft_ucp *ucp, enum verb verb, size_t length, void *request);

/* In one piece, not on a GPU, and nothing is tuned. */
static inline bool weft_ucp_usual(const struct weft_ucp *ucp, const struct xfer *x)
{
    return __builtin_expect(!x->pieces && !ucp->tuned && !x->local->gpu, 1);
}

/* own: room for a param of its own. */
static inline struct weft_ucp_bytes weft_ucp_bytes(struct weft_ucp_slot *slot, enum verb verb,
                                                   const struct xfer *x,
                                                   const ucp_request_param_t *usual,
                                                   ucp_request_param_t *own)
{
    if (!weft_ucp_usual(slot->ucp, x)) {
        *own = *usual;
        return weft_ucp_tuned(slot, verb, x, own);
    }
    return (struct weft_ucp_bytes){
        .at = x->local->address + x->at, .count = x->length, .param = usual};
}

/* Cheap compares only: wrong keys, withdrawn memory, bounds at both ends. */
static inline bool weft_ucp_acceptable(const struct xfer *x)
{
    const struct weft_ucp_remote *r = x->remote->own;
    return r && *r->alive == x->remote->key && x->length <= r->length &&
           x->remote_at <= r->length - x->length && weft_ucp_in_buffer(x);
}

/* The next free slot, which stays free until it is taken; NULL: there is none. What is complete at
 * once never takes it. */
static inline struct weft_ucp_slot *weft_ucp_slot_next(struct weft_ucp *ucp)
{
    ucp->send.user_data = ucp->free;
    return ucp->free;
}

static inline void weft_ucp_slot_take(struct weft_ucp_slot *slot, enum verb verb,
                                      const struct xfer *x)
{
    slot->ucp->free = slot->next;
    slot->ucp->taken++;
    slot->remote = NULL;
    slot->id = x->id;
    slot->length = x->length;
    slot->verb = verb;
    slot->flushes = slot->settled = slot->local = slot->ready = slot->shows = false;
    slot->status = 0;
}

static inline void weft_ucp_slot_give(struct weft_ucp_slot *slot)
{
    slot->next = slot->ucp->free;
    slot->ucp->free = slot;
    slot->ucp->taken--;
}

/* ---- atomic.c ---- */

int weft_ucp_atomic(struct fabric *fabric, const struct xfer *x);

/* What a call that sends has returned, as a verb's outcome. taken: the slot is already. */
int weft_ucp_sent_slowly(struct weft_ucp_slot *slot, enum verb verb, const struct xfer *x,
                         void *request, bool taken);
static inline int weft_ucp_sent(struct weft_ucp_slot *slot, enum verb verb, const struct xfer *x,
                                void *request, bool taken)
{
    return request ? weft_ucp_sent_slowly(slot, verb, x, request, taken) : DONE;
}

/* ---- tag.c ---- */

int weft_ucp_tsend(struct fabric *fabric, const struct xfer *x);
int weft_ucp_trecv(struct fabric *fabric, const struct xfer *x);
int weft_ucp_tprobe(struct fabric *fabric, const struct xfer *x);
int weft_ucp_send(struct fabric *fabric, const struct xfer *x);
int weft_ucp_recv(struct fabric *fabric, const struct xfer *x);
extern const ucp_request_param_t weft_ucp_receive;
/* The other end has taken so many units; it is told how many this one has. */
void weft_ucp_flow_acked(struct weft_ucp *ucp, uint64_t acked);
void weft_ucp_flow_tell(struct weft_ucp *ucp);

/* ---- stream.c ---- */

int weft_ucp_stream_send(struct fabric *fabric, const struct xfer *x);
int weft_ucp_stream_recv(struct fabric *fabric, const struct xfer *x);
extern const ucp_request_param_t weft_ucp_stream_receive;
/* To the oldest receive that borrows, if there is something; takes back what was lent before. */
void weft_ucp_stream_lend(struct weft_ucp *ucp);
void weft_ucp_stream_give_back(struct weft_ucp *ucp);

/* ---- am.c: active messages, events, poll ---- */

int weft_ucp_am(struct fabric *fabric, const struct xfer *x);
int weft_ucp_poll(struct fabric *fabric, struct completion *completions, int max);
int weft_ucp_event_fd(struct fabric *fabric);
int weft_ucp_arm(struct fabric *fabric);
int weft_ucp_listen(struct weft_ucp *ucp);

/* What ends tell each other, beside what is measured. */
enum news { NEWS_HELLO = 1, NEWS_WITHDRAWN, NEWS_BYE, NEWS_TAKEN };
/* DONE, LATER or -EAGAIN; nobody waits for it. */
int weft_ucp_tell(struct weft_ucp *ucp, enum news what, uint64_t word);

bool weft_ucp_events_grow(struct weft_ucp *ucp);
/* All that came in and was not asked for. */
void weft_ucp_events_drop(struct weft_ucp *ucp);
void weft_ucp_packets_free(struct weft_ucp *ucp);
/* Arrivals that wait for it, as far as there is room. */
void weft_ucp_fetch(struct weft_ucp *ucp);

/* Straight to the caller of a poll that is under way, or else in the queue, which is empty when
 * such a poll begins and is not used before the caller's room is full. */
struct completion *weft_ucp_event_queued(struct weft_ucp *ucp);
static inline struct completion *weft_ucp_event(struct weft_ucp *ucp)
{
    return ucp->sink != ucp->sink_end ? ucp->sink++ : weft_ucp_event_queued(ucp);
}

#endif
