/* SPDX-License-Identifier: BSD-3-Clause */
/* A door of fabric: what is moved and what can be said of it. The words of the port: verbs, hints,
 * one operation, its completion, and the facts of a fabric. fabric.h has the table itself.
 */
#ifndef WEFT_FACTS_H
#define WEFT_FACTS_H

#include "fabric/amo.h"
#include "memory/memory.h"

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
    VERB_TSEND,
    VERB_TRECV,
    VERB_STREAM_SEND,
    VERB_STREAM_RECV,
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
    HINT_SYNC, /* a tagged send completes only when the receiver has matched it */
    HINT_LEND, /* a stream's bytes are lent where the fabric has them, in completion.data, until the
                  next poll */
    HINT_LOCAL, /* a write or an atomic completes when our buffer may be reused: `flush` proves the
                   rest */
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

/* A message in several pieces, in their order: the bytes of each, and where it begins, counted from
 * xfer.at. */
enum { FABRIC_PIECES = 32 };
struct fabric_pieces {
    unsigned count;
    struct {
        size_t at, length;
    } list[FABRIC_PIECES];
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
    uint64_t tag;        /* of a tagged message, within facts.tag_bits */
    uint64_t mask;       /* trecv, tprobe: the bits of it that must agree; 0: any tag */
    /* NULL: length bytes at `at`. Otherwise they lie, or are to lie, in these pieces, which are
     * length together, and are not changed before the operation is over. */
    const struct fabric_pieces *pieces;
    struct {
        uint8_t op, type, compare_op, fetch;
        const void *operand, *compare;
        void *result;
    } amo;
};

/* Does a message that was sent with a tag belong to a receive or probe with this one? */
static inline bool fabric_tag_fits(uint64_t sent, uint64_t tag, uint64_t mask)
{
    return !((sent ^ tag) & mask);
}

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
    uint64_t length; /* an arrival's: header and payload */
    union {
        const void *data; /* an arrival's: all of it, until the next poll or am; NULL unless the
                             caller looks, see fabric_want */
        uint64_t tag;     /* a tagged receive's, as it was sent */
    };
};

/* Filled by open: what this fabric can do here, and what it proves. */
struct fabric_facts {
    unsigned verbs, honours;    /* bits */
    unsigned target_polls;      /* verbs that complete only while the other end polls */
    const char *proves[VERBS];  /* a sentence a verb: what its completion proves */
    const char *why_not[HINTS]; /* the reason of each hint not honoured */
    bool alone;                 /* the other end takes no part and no byte moves */
    bool nic;          /* it is one: what two ends on it send each other crosses it twice */
    bool own_memory;   /* expose must place the memory itself, but for a GPU's */
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
    const char *why_no_layouts;        /* NULL: one can be asked for; else the fabric chooses */
    size_t max_header;                 /* of an active message in layout ZCOPY */
    unsigned depth;                    /* operations in flight */
    unsigned pieces;                   /* verbs whose bytes may lie in pieces here, bits */
    const char *why_no_pieces;         /* of the others, if there is a reason */
    uint64_t tag_bits;                 /* that tags may have */
    unsigned max_unexpected;           /* tagged messages kept without a receive */
    const char *why_no_probe;          /* NULL: tprobe works, if tagged messages do */
    const char *why_no_events;         /* NULL: event_fd and arm work */
    unsigned wakes;                    /* verbs that wake their target, which sleeps */
    uint16_t amo[2][AMO_OPS];          /* bit = type; [1]: fetching */
    uint16_t cswap[AMO_COMPARES];      /* bit = type */
    uint16_t amo_no_hrp;               /* bit = type: its atomics are never high-rate puts; connect
                                          may add some that the other end's NIC does not take */
    const char *amo_how;               /* how the widest atomics are done, or NULL */
    const char *compare_how;           /* how a CSWAP or AXOR that does not fetch is, or NULL */
    unsigned gpus;                     /* whose GPU memory it reaches, a bit a vendor */
    unsigned gpu_verbs;                /* what it can do there */
    unsigned gpu_layouts;              /* and in which layouts, a bit each */
    const char *why_no_gpu;            /* where gpus lacks a vendor */
    const char *tunes;                 /* names of those it takes, with blanks; NULL: none */
    char protocol[96];                 /* how its library carried the last operation of another
                                          kind or size, where a tune asks for that; or "" */
    char form[128];                    /* which path carries it, for the header; connect may say
                                          more, so facts stay as long as the handle */
    char self[64];                     /* this end's name on the fabric, "NIC 0x12 PID 0" */
    char domain[32];                   /* what it lives in, "VNI 10", or "" */
    char device[64];                   /* as in /sys/class, "mlx5_0:1"; "" if no NIC carries it */
    const char *why_no_service;        /* NULL: want.service means something */
    char library[48];                  /* as loaded, "libfabric 1.17.0", or "" */
};

#endif
