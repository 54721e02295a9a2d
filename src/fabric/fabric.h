/* SPDX-License-Identifier: BSD-3-Clause */
/* The door of fabric: THE PORT. A fabric moves bytes between two ends; it is one table, whether
 * built in (null, soft) or loaded as a module. null/null.c is the commented manual for writing one.
 * Verbs, poll and connect never block, sleep or yield: waiting is the caller's, with its deadline.
 */
#ifndef WEFT_FABRIC_H
#define WEFT_FABRIC_H

#include "fabric/amo.h"
#include "memory/memory.h"

enum { FABRIC_ABI = 9 };

/* What a verb returns: DONE, LATER (a completion will come from poll), -EAGAIN (no room: poll and
 * try again; silent), or -errno with the reason said. */
enum { LATER = 0, DONE = 1 };

enum verb {
    VERB_WRITE,
    VERB_READ,
    VERB_SEND,
    VERB_RECV,
    VERB_ATOMIC,
    VERB_AM,
    VERBS,
    VERB_ARRIVAL /* in completions only: the other end's active message has come in */
};

/* Requests to the NIC. A fabric says which it honours, and for the rest why not. */
enum hint {
    HINT_INLINE,     /* the payload travels inside the command (IDC) */
    HINT_LL,         /* low-latency issue: executed at once, not from the queue */
    HINT_RESTRICTED, /* no order promised among operations */
    HINT_MATCHING,
    HINT_RENDEZVOUS,
    HINT_HRP, /* high-rate put: the last port of the fabric acknowledges, not the target */
    HINT_SHORT,
    HINT_BCOPY,
    HINT_ZCOPY,
    HINT_MORE, /* another operation follows at once, and may ring for both */
    HINTS
};
#define HINT(name) (1U << HINT_##name)
#define VERB(name) (1U << VERB_##name)

/* How the bytes of a write, a read or an active message are handed over: inside the call; copied,
 * so that the source is free at once; or read from and written to where they lie. Without one of
 * these hints the fabric chooses. */
enum layout { LAYOUT_SHORT, LAYOUT_BCOPY, LAYOUT_ZCOPY, LAYOUTS };
#define LAYOUT_HINT(layout) (1U << (HINT_SHORT + (layout)))

/* The other end's memory as connect found it. Owned by the fabric until leave or close. */
struct remote {
    char *address; /* where it is mapped here, or NULL */
    size_t length;
    bool gpu; /* the address is for a GPU's calls */
    uint64_t key, base;
    void *own; /* the fabric's */
};

/* One operation, filled once a size, outside the timing. */
struct xfer {
    struct region *local;
    size_t at;
    struct remote *remote;
    size_t remote_at;
    size_t length;
    unsigned how;        /* HINT bits */
    uint64_t id;         /* comes back in the completion */
    uint64_t header;     /* am only: the first eight bytes of the message */
    size_t header_bytes; /* am only: what travels before the payload, 0 or at least 8; after the
                            first eight it is zeroes. SHORT takes 8 */
    struct {
        uint8_t op, type, compare_op, fetch;
        const void *operand, *compare;
        void *result;
    } amo;
};

/* A list of equal operations: the i-th lies (i % slots) * step bytes further on than the first, at
 * both ends, and so does its atomic's result. */
struct fabric_batch {
    unsigned count, slots;
    size_t step;
};

struct completion {
    uint64_t id; /* an arrival's: the first eight bytes of the message, 0 if it is shorter */
    uint32_t verb;
    int status;
    uint64_t length;  /* an arrival's: header and payload */
    const void *data; /* an arrival's: all of it, until the next poll or am; NULL unless the caller
                         looks, see fabric_want */
};

/* Filled by open: what this fabric can do here, and what it proves. */
struct fabric_facts {
    unsigned verbs, honours;    /* bits */
    unsigned target_polls;      /* verbs that complete only while the other end polls */
    const char *proves[VERBS];  /* a sentence a verb: what its completion proves */
    const char *why_not[HINTS]; /* the reason of each hint not honoured */
    bool alone;                 /* the other end takes no part and no byte moves */
    bool nic;          /* it is one: what two ends on it send each other crosses it twice */
    bool own_memory;   /* expose must place the memory itself */
    bool one_run;      /* its library stands one kind of run per meeting only: leave after each */
    bool follows_here; /* which device was opened depends on want.here: a caller that
                          learns it later must open again */
    uint64_t link_bits_per_s; /* one way; 0: not known, or there is no link */
    size_t max_inline, max_inline_ordered, max_send; /* ordered: not RESTRICTED; 0: max_inline */
    size_t max_ll;    /* bytes of a command that HINT_LL issues at once: longer ones are queued;
                         0: any */
    size_t batch_max; /* bytes up to which `batch` takes an operation */
    size_t layout_max[VERBS][LAYOUTS]; /* bytes that a write, a read, or an active message with its
                                          header may have in a layout; 0: has no such layout */
    size_t max_header;                 /* of an active message in layout ZCOPY */
    unsigned depth;                    /* operations in flight */
    uint16_t amo[2][AMO_OPS];          /* bit = type; [1]: fetching */
    uint16_t cswap[AMO_COMPARES];      /* bit = type */
    const char *amo_how;               /* how the widest atomics are done, or NULL */
    const char *compare_how;           /* how a CSWAP or AXOR that does not fetch is, or NULL */
    unsigned gpus;                     /* whose GPU memory it reaches, a bit a vendor */
    unsigned gpu_verbs;                /* what it can do there */
    unsigned gpu_layouts;              /* and in which layouts, a bit each */
    const char *why_no_gpu;            /* where gpus lacks a vendor */
    char form[128];                    /* which path carries it, for the header; connect may say
                                          more, so facts stay as long as the handle */
    char self[64];                     /* this end's name on the fabric, "NIC 0x12 PID 0" */
    char domain[32];                   /* what it lives in, "VNI 10", or "" */
    char device[64];                   /* as in /sys/class, "mlx5_0:1"; "" if no NIC carries it */
    const char *why_no_service;        /* NULL: want.service means something */
    char library[48];                  /* as loaded, "libfabric 1.17.0", or "" */
};

struct fabric_want {
    const char *device; /* what follows "FABRIC:" */
    const char *here;   /* our end of the control connection, numeric; "": not known yet */
    uint64_t service;
    unsigned verbs, hints;
    unsigned gpus; /* whose GPU memory will be exposed at either end, as far as it is known: bits */
    bool server;   /* the end that was asked, not the one that asks */
    bool looks;    /* the data of arrivals will be looked at */
};

/* One meeting with another end: what connect needs to know of it. */
struct fabric_meeting {
    const char *nonce;         /* known to both ends of this meeting and to nobody else; never used
                                  again, not even with the same end */
    const struct msg *address; /* the other end's, from its address() */
    const struct msg *keys;    /* of its regions, from its expose() */
    int count;                 /* of keys */
    const char *there;         /* the one numeric IP address that the other end may have, or NULL:
                                  it may have any. Fabrics without IP addresses have no use for it */
    uint64_t timeout_ms;       /* silence of the other end that counts as death; 0: not known */
};

/* A nonce as one word, for a first message that shows which meeting it belongs to. */
static inline uint64_t fabric_nonce_word(const char *nonce)
{
    uint64_t word = 14695981039346656037U;
    for (const char *at = nonce; *at; at++)
        word = (word ^ (unsigned char)*at) * 1099511628211U;
    return word;
}

struct fabric {
    const struct fabric_ops *ops; /* first member of every fabric's own struct */
};

struct fabric_ops {
    unsigned abi; /* FABRIC_ABI */
    const char *name;
    const char *what; /* a few words for lists */

    /* Says every usable device; none is no error. */
    int (*list)(void (*say)(void *arg, const char *device, const char *what), void *arg);

    int (*open)(struct fabric **fabric, const struct fabric_want *want, struct fabric_facts *facts);
    /* leave, and the rest. */
    void (*close)(struct fabric *fabric);

    /* Makes a region reachable; places it too if it has no address. key is for the other end of one
     * meeting. Of a region that is exposed already only the key is asked for. */
    int (*expose)(struct fabric *fabric, struct region *region, struct msg *key);
    /* Sends nothing to an end that is known to be gone, and never waits for one. */
    void (*withdraw)(struct fabric *fabric, struct region *region);

    /* This end's address for the other's connect, in one meeting: text, never our structs. */
    int (*address)(struct fabric *fabric, struct msg *mine);
    /* DONE once bytes can go both ways; LATER: call again with the same meeting; or -errno. remote
     * gets an entry for each key. */
    int (*connect)(struct fabric *fabric, const struct fabric_meeting *meeting,
                   struct remote *remote);
    /* Ends the meeting: the other end is forgotten, what is posted or under way is dropped, remotes
     * and keys are no longer good. The device stays open and regions stay exposed; for the next
     * meeting, with this end or another, ask for address and keys again. Never waits for the other
     * end, which may be dead; does nothing if there is no meeting. */
    void (*leave)(struct fabric *fabric);

    /* NULL: cannot. Operations that poll has not completed may be forgotten only by leave or close.
     */
    int (*write)(struct fabric *fabric, const struct xfer *xfer); /* bytes in the target's memory */
    int (*read)(struct fabric *fabric, const struct xfer *xfer);  /* bytes in ours */
    int (*send)(struct fabric *fabric, const struct xfer *xfer);  /* our buffer may be reused;
                                                                     RENDEZVOUS: target has pulled */
    int (*recv)(struct fabric *fabric, const struct xfer *xfer);  /* posts a buffer; never DONE */
    int (*atomic)(struct fabric *fabric, const struct xfer *xfer); /* applied; fetch: old value
                                                                      in result */
    int (*am)(struct fabric *fabric, const struct xfer *xfer);     /* our buffer may be reused;
                                                                      VERB_ARRIVAL at the other */

    /* A whole list of writes, reads or atomics in one call: DONE, LATER (one completion for all of
     * it), -EAGAIN (not now, or not such a list: post one by one), or -errno. May be NULL. */
    int (*batch)(struct fabric *fabric, enum verb verb, const struct xfer *first,
                 const struct fabric_batch *batch);

    /* Progress and completions: 0..max, or -errno when the link is known to be lost. */
    int (*poll)(struct fabric *fabric, struct completion *completions, int max);
};

/* ---- modules ---- */

/* What a module may call: it has no other way back. */
struct fabric_host {
    unsigned abi;
    const struct fabric_ops *(*find)(const char *name);
    int (*fail)(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));
    void (*warn)(const char *format, ...) __attribute__((format(printf, 1, 2)));
    int (*msg_print)(struct msg *msg, const char *format, ...)
        __attribute__((format(printf, 2, 3)));
    int (*msg_add)(struct msg *msg, const char *format, ...) __attribute__((format(printf, 2, 3)));
    int (*msg_value)(const struct msg *msg, const char *key, char *value, size_t room);
    int (*msg_number)(const struct msg *msg, const char *key, uint64_t *number);
    int (*msg_add_hex)(struct msg *msg, const char *key, const void *bytes, size_t length);
    int (*msg_hex)(const struct msg *msg, const char *key, void *bytes, size_t room,
                   size_t *length);
    int (*random_word)(uint64_t *word);
    int (*memory_enough)(uint64_t bytes);
};

/* The one symbol of a module, "weft_fabric". */
typedef const struct fabric_ops *fabric_entry(const struct fabric_host *host);

/* fabric_NAME of every built-in fabric. */
#define FABRIC_MODULE(...)
#define FABRIC_BUILT_IN(name, ...) extern const struct fabric_ops fabric_##name;
#include "fabric/fabrics.def"
#undef FABRIC_BUILT_IN
#undef FABRIC_MODULE

#endif
