/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside cxi, the fabric on Slingshot's NIC itself, through libcxi. A handle is one domain (a PID
 * in a VNI) with one queue for what it initiates, one for what it is a target of, and one event
 * queue. Regions are list entries, each in a portal table entry of its own; messages match list
 * entries that are used once; what the ends tell each other are words in a page of the other. The
 * vendor's names begin with cxil_ and cxi_, ours with weft_cxi_. */
#ifndef WEFT_FABRIC_CXI_H
#define WEFT_FABRIC_CXI_H

#include "fabric/cxi/queue.h"
#include "fabric/fabric.h"

#include <errno.h>

enum {
    WEFT_CXI_SLOTS = 128, /* operations in flight: also the ids of rendezvous, which have 8 bits */
    WEFT_CXI_ENTRIES = 16,
    WEFT_CXI_INDICES = 256, /* of a domain, at most */
    WEFT_CXI_RECEIVES = 128,
    WEFT_CXI_SENDS = 64,    /* messages that wait for a receive of the other end */
    WEFT_CXI_QUEUE = 16384, /* slots of the queue of commands */
    WEFT_CXI_EVENTS = 1 << 18,
    WEFT_CXI_AMS = 64,
    WEFT_CXI_AM_BYTES = 8192,
    WEFT_CXI_BATCH = 16384, /* results of a list of atomics that fetch */
    WEFT_CXI_DONE = 1024    /* completions nobody has asked for yet: all that can be under way */
};

/* The only way back to the tool. */
extern const struct fabric_host *weft_cxi_host;
extern const struct fabric_ops weft_cxi_ops;

/* ---- library.c ---- */

/* libcxi's functions, or NULL and a sentence. */
const struct cassini_calls *weft_cxi_library(void);
int weft_cxi_list(void (*say)(void *arg, const char *device, const char *what), void *arg);

/* ---- portal.c: what a target has ---- */

/* A portal table entry, with one list entry or more, at an index of the domain for puts and
 * atomics, at one for gets, or at both. The NIC orders what is not restricted in connections of
 * their own for puts and for gets, and tells them apart by the half of the indices: gets have the
 * upper one.
 */
enum weft_cxi_use { WEFT_CXI_PUTS, WEFT_CXI_PUTS_AND_GETS, WEFT_CXI_PULLS };
struct weft_cxi_portal {
    struct weft_cxil_pte *pte;
    enum weft_cxi_use use;
    struct weft_cxil_pte_map *put_map, *get_map;
    unsigned put_index, get_index;
};

/* What the other end may do with memory, and what is said of it. */
struct weft_cxi_grant {
    const struct weft_cxi_md *md;
    const void *address;
    size_t length;
    bool put, get, events, once, relaxed;
    uint32_t match_id;
    uint64_t match_bits, ignore_bits;
    unsigned buffer_id;
};

struct weft_cxi;

uint64_t weft_cxi_now_ms(void);

/* At indices that nobody can tell beforehand; for pulls at the one where other NICs look. */
int weft_cxi_portal_open(struct weft_cxi *cxi, struct weft_cxi_portal *portal, bool matching,
                         enum weft_cxi_use use);
void weft_cxi_portal_close(struct weft_cxi *cxi, struct weft_cxi_portal *portal);

/* At no index any more; at others from now on. */
void weft_cxi_portal_hide(struct weft_cxi *cxi, struct weft_cxi_portal *portal);
int weft_cxi_portal_move(struct weft_cxi *cxi, struct weft_cxi_portal *portal);

/* Appends a list entry; -EAGAIN: no room in the queue. append_now waits until it is linked. */
int weft_cxi_append(struct weft_cxi *cxi, const struct weft_cxi_portal *portal,
                    const struct weft_cxi_grant *grant);
int weft_cxi_append_now(struct weft_cxi *cxi, const struct weft_cxi_portal *portal,
                        const struct weft_cxi_grant *grant);

/* ---- the handle ---- */

struct weft_cxi_exposed {
    struct region *region;
    uint64_t key; /* of this meeting; 0: nobody has asked for it yet */
    struct weft_cxi_md *md;
    struct weft_cxi_portal plain, matching;
    bool pulled; /* it has an entry in the portal of rendezvous */
};

struct weft_cxi_remote {
    uint64_t key;
    size_t length;
    unsigned put, get, matching; /* indices */
};

/* A queue of what we initiate, and what it was told last: commands with immediate data depend on
 * it. */
struct weft_cxi_tx {
    struct weft_cxi_cq *cq;
    uint64_t cstate[c_cstate_cmd__size / sizeof(uint64_t)];
    unsigned lcid; /* the profile's */
};

enum { AWAITS_ACK = 1, AWAITS_GET = 2 };

struct weft_cxi_slot {
    struct weft_cxi_slot *next;
    uint64_t id, length;
    uint32_t verb; /* VERBS: nobody waits for it any more */
    unsigned awaits;
    void *result; /* of an atomic that fetches */
    bool busy;
};

/* A message that is to go out. */
struct weft_cxi_outgoing {
    const struct weft_cxi_exposed *from;
    size_t at, length;
    uint64_t id;
    unsigned how;
};

struct weft_cxi_receive {
    uint64_t id, length, came;
    const struct weft_cxi_exposed *to; /* NULL: not posted */
    size_t at;
    unsigned pulls; /* events of a rendezvous that have come */
    bool filled;
    int status;
};

/* What the other end writes: each is one aligned word. */
struct weft_cxi_words {
    uint64_t hello;  /* the meeting's */
    uint64_t posted; /* receives that are linked there */
    uint64_t taken;  /* active messages of ours that it is done with */
};

/* Memory of our own that the NIC reaches. */
struct weft_cxi_arena {
    struct weft_cxi_words words;
    char page[4096 - sizeof(struct weft_cxi_words)];
    struct {
        unsigned char operand[16], result[16], room[32];
    } atomics[WEFT_CXI_SLOTS];
    unsigned char results[WEFT_CXI_BATCH][16], operand[4096];
    char in[WEFT_CXI_AMS][WEFT_CXI_AM_BYTES], out[WEFT_CXI_AMS][WEFT_CXI_AM_BYTES];
};

struct weft_cxi_mail {
    struct weft_cxi_receive receives[WEFT_CXI_RECEIVES];
    uint64_t posted, linked, told, filled; /* receives: the last is what has come */
    struct weft_cxi_outgoing out[WEFT_CXI_SENDS];
    uint64_t out_head, out_tail;
    uint64_t sent;                                  /* messages */
    uint64_t am_sent, am_acked;                     /* active messages: ours */
    uint64_t am_came, am_handed, am_taken, am_told; /* theirs */
};

struct weft_cxi_batch {
    bool busy;
    uint64_t id, total; /* the counter, when all are done */
    uint32_t verb;      /* VERBS: nobody waits for it any more */
    struct fabric_batch shape;
    size_t length;
    char *result; /* of the first; NULL: none */
};

struct weft_cxi {
    struct fabric fabric;
    struct fabric_facts *facts;
    const struct cassini_calls *calls;
    struct weft_cxi_tx data, talk; /* what is asked for; words for the other end */
    struct weft_cxi_cq *target, *trigger;
    struct weft_cxi_eq *eq;
    struct weft_cxi_ct *ct;
    struct weft_cxi_arena *arena;
    struct weft_cxi_slot *free;
    unsigned taken;
    bool connected, looks;
    bool no_lists; /* one has failed: the counter will not come to where it should */

    struct weft_cxi_slot slots[WEFT_CXI_SLOTS];
    struct completion done[WEFT_CXI_DONE];
    unsigned done_head, done_tail;
    struct weft_cxi_mail mail;
    struct weft_cxi_batch batch;
    uint64_t counted;

    struct weft_cxil_dev *dev;
    struct weft_cxil_lni *lni;
    struct weft_cxil_domain *domain;
    struct weft_cxi_cp *cp, *hrp;
    struct weft_cxi_md *eq_md, *arena_md;
    void *eq_memory;
    struct weft_cxi_exposed exposed[WEFT_CXI_ENTRIES];
    struct weft_cxi_remote remotes[WEFT_CXI_ENTRIES];

    /* This meeting's. */
    bool met;         /* the portals below are there */
    uint64_t meeting; /* which one */
    bool hello_sent;
    struct weft_cxi_portal words, messages, ams, pulls;
    uint32_t nid, pid; /* the other end's */
    unsigned their_words, their_messages, their_ams;
    uint64_t used[WEFT_CXI_INDICES / 64]; /* indices of the domain: a bit each */
    uint16_t amo[2][AMO_OPS], cswap[AMO_COMPARES];
    /* Waiting for the target's own queue: what has come. */
    unsigned state_changes, links;
    unsigned waits_for; /* the portal table entry */
    /* Sleep: NULL and -1 unless it was asked for. */
    struct weft_cxil_wait_obj *wait;
    int bell;
    int lost; /* -errno */
    char reason[160];
};

/* ---- cxi.c ---- */

/* The connection is of no use any more. */
void weft_cxi_lose(struct weft_cxi *cxi, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* What the driver calls invalid is no mistake of the user's. */
static inline int weft_cxi_status(int status)
{
    return status == -EINVAL ? -EIO : status;
}

/* The words of a code of an event. */
const char *weft_cxi_code(unsigned code);
int weft_cxi_errno(unsigned code);

/* ---- facts.c ---- */

void weft_cxi_facts(struct weft_cxi *cxi, const struct fabric_want *want,
                    struct fabric_facts *facts);
/* Types of atomics that this NIC loses as a target where they are high-rate puts. */
uint16_t weft_cxi_no_hrp(const struct weft_cxi *cxi);
/* The NIC's number of an atomic. */
int weft_cxi_amo_op(enum amo_op op);

/* ---- link.c ---- */

int weft_cxi_expose(struct fabric *fabric, struct region *region, struct msg *key);
void weft_cxi_withdraw(struct fabric *fabric, struct region *region);
int weft_cxi_address(struct fabric *fabric, struct msg *mine);
int weft_cxi_connect(struct fabric *fabric, const struct fabric_meeting *meeting,
                     struct remote *remote);
void weft_cxi_leave(struct fabric *fabric);

static inline struct weft_cxi_exposed *weft_cxi_find(struct weft_cxi *cxi,
                                                     const struct region *region)
{
    for (struct weft_cxi_exposed *e = cxi->exposed; e < cxi->exposed + WEFT_CXI_ENTRIES; e++)
        if (e->region == region)
            return e;
    return NULL;
}

/* Where the NIC finds an address of ours. */
static inline uint64_t weft_cxi_iova(const struct weft_cxi_md *md, const void *address)
{
    return md->iova + ((uint64_t)(uintptr_t)address - md->va);
}

/* ---- verbs.c, atomic.c, list.c ---- */

int weft_cxi_write(struct fabric *fabric, const struct xfer *x);
int weft_cxi_read(struct fabric *fabric, const struct xfer *x);
int weft_cxi_atomic(struct fabric *fabric, const struct xfer *x);
int weft_cxi_batch(struct fabric *fabric, enum verb verb, const struct xfer *first,
                   const struct fabric_batch *batch);

/* How an operation says that it is done. */
struct weft_cxi_way {
    uint64_t user_ptr;
    bool counts; /* by the counter, not by an event */
};

/* Emits one: -EAGAIN where there is no room. */
int weft_cxi_emit_put(struct weft_cxi *cxi, const struct xfer *x, const struct weft_cxi_way *way);
int weft_cxi_emit_get(struct weft_cxi *cxi, const struct xfer *x, const struct weft_cxi_way *way);
int weft_cxi_emit_amo(struct weft_cxi *cxi, const struct xfer *x, const struct weft_cxi_way *way,
                      unsigned char *operand, unsigned char *result);

/* Does the payload travel in the command, in this form? */
static inline bool weft_cxi_idc(const struct xfer *x)
{
    size_t most =
        x->how & HINT(RESTRICTED) ? WEFT_C_MAX_IDC_PAYLOAD_RES : WEFT_C_MAX_IDC_PAYLOAD_UNR;
    return x->how & (HINT(INLINE) | HINT(SHORT)) && x->length <= most;
}

static inline bool weft_cxi_in_buffer(const struct xfer *x)
{
    return x->length <= x->local->length && x->at <= x->local->length - x->length;
}

/* What a one-sided operation may not be: -errno and a sentence, or 0. */
int weft_cxi_check(const struct weft_cxi *cxi, const struct xfer *x, size_t span);
int weft_cxi_check_amo(const struct weft_cxi *cxi, const struct xfer *x);
/* The same of a payload that is to be in the command. */
int weft_cxi_check_form(const struct xfer *x);

/* A put with its bytes in the command, to an index of the other end. */
struct weft_cxi_idc_put {
    unsigned index;
    bool restricted, quiet, counts; /* quiet: no event if all is well */
    uint64_t user_ptr, offset;
    const void *bytes;
    size_t length;
};
bool weft_cxi_emit_idc(struct weft_cxi *cxi, struct weft_cxi_tx *tx,
                       const struct weft_cxi_idc_put *put);

/* CSTATE, unless the queue has this one already. */
bool weft_cxi_cstate(struct weft_cxi_tx *tx, const uint64_t cstate[4]);

/* The profile of what follows. */
bool weft_cxi_profile(struct weft_cxi_tx *tx, const struct weft_cxi_cp *cp);

/* The user_ptr of what has no slot, in this meeting: its success makes no event. */
static inline uint64_t weft_cxi_nobody(const struct weft_cxi *cxi)
{
    return (cxi->meeting + 1) << 32;
}

/* Where an index of the other end is. */
static inline uint32_t weft_cxi_dfa(const struct weft_cxi *cxi, unsigned index)
{
    return cassini_dfa(cxi->nid, cxi->pid, cxi->dev->info.pid_bits, index);
}

static inline uint32_t weft_cxi_self(const struct weft_cxi *cxi)
{
    return cassini_match_id(cxi->dev->info.nid, cxi->domain->pid, cxi->dev->info.pid_bits);
}

/* Hands over what was emitted, as asked for. */
static inline void weft_cxi_go(struct weft_cxi *cxi, unsigned how)
{
    if (how & HINT(MORE))
        return;
    if (how & HINT(LL))
        weft_cxi_launch(cxi->data.cq);
    else
        weft_cxi_ring(cxi->data.cq);
}

/* Slot 0 is for the command that has no user_ptr. */
static inline struct weft_cxi_slot *weft_cxi_take(struct weft_cxi *cxi, uint32_t verb,
                                                  const struct xfer *x, bool nameless)
{
    struct weft_cxi_slot *slot = nameless ? &cxi->slots[0] : cxi->free;
    if (!slot || (nameless && slot->busy))
        return NULL;
    if (!nameless)
        cxi->free = slot->next;
    *slot = (struct weft_cxi_slot){
        .id = x->id, .length = x->length, .verb = verb, .awaits = AWAITS_ACK, .busy = true};
    cxi->taken++;
    return slot;
}

static inline void weft_cxi_give(struct weft_cxi *cxi, struct weft_cxi_slot *slot)
{
    slot->busy = false;
    cxi->taken--;
    if (slot == &cxi->slots[0])
        return;
    slot->next = cxi->free;
    cxi->free = slot;
}

/* ---- mail.c: messages and active messages ---- */

int weft_cxi_send(struct fabric *fabric, const struct xfer *x);
int weft_cxi_recv(struct fabric *fabric, const struct xfer *x);
int weft_cxi_am(struct fabric *fabric, const struct xfer *x);
/* What waits for the other end, and what it waits for. */
void weft_cxi_mail_work(struct weft_cxi *cxi);
/* Has that work something to do that no event will bring? */
bool weft_cxi_mail_pending(struct weft_cxi *cxi);
/* Events of the target's side. */
void weft_cxi_mail_event(struct weft_cxi *cxi, const uint8_t event[64]);
/* The data of a rendezvous has come. */
void weft_cxi_mail_pulled(struct weft_cxi *cxi, uint64_t number, unsigned code);

/* ---- sleep.c ---- */

/* What is needed to sleep until the NIC interrupts; false: there is no such thing here. */
bool weft_cxi_sleep_open(struct weft_cxi *cxi);
void weft_cxi_sleep_close(struct weft_cxi *cxi);
int weft_cxi_event_fd(struct fabric *fabric);
int weft_cxi_arm(struct fabric *fabric);

/* ---- poll.c ---- */

int weft_cxi_poll(struct fabric *fabric, struct completion *completions, int max);
/* Takes what events there are. */
void weft_cxi_progress(struct weft_cxi *cxi);
void weft_cxi_complete(struct weft_cxi *cxi, uint32_t verb, uint64_t id, uint64_t length,
                       int status);

#endif
