/* SPDX-License-Identifier: BSD-3-Clause */
/* The door of fabric: THE PORT. A fabric moves bytes between two ends; it is one table, whether
 * built in (null, soft) or loaded as a module. null/null.c is the commented manual for writing one.
 * Verbs, poll and connect never block, sleep or yield: waiting is the caller's, with his deadline.
 */
#ifndef WEFT_FABRIC_H
#define WEFT_FABRIC_H

#include "memory/memory.h"

enum { FABRIC_ABI = 3 };

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

/* Wishes to the NIC. A fabric says which it honours, and for the rest why not. */
enum hint {
    HINT_INLINE,     /* the payload travels inside the command (IDC) */
    HINT_LL,         /* low-latency issue: executed at once, not from the queue */
    HINT_RESTRICTED, /* no order promised among operations */
    HINT_MATCHING,
    HINT_RENDEZVOUS,
    HINT_SHORT,
    HINT_BCOPY,
    HINT_ZCOPY,
    HINTS
};
#define HINT(name) (1U << HINT_##name)
#define VERB(name) (1U << VERB_##name)

/* How the bytes of a write, a read or an active message are handed over: inside the call; copied,
 * so that the source is free at once; or read from and written to where they lie. Without one of
 * these hints the fabric chooses. */
enum layout { LAYOUT_SHORT, LAYOUT_BCOPY, LAYOUT_ZCOPY, LAYOUTS };
#define LAYOUT_HINT(layout) (1U << (HINT_SHORT + (layout)))

/* ---- atomics ---- */

enum amo_op {
    AMO_MIN,
    AMO_MAX,
    AMO_SUM,
    AMO_LOR,
    AMO_LAND,
    AMO_BOR,
    AMO_BAND,
    AMO_LXOR,
    AMO_BXOR,
    AMO_SWAP,
    AMO_CSWAP, /* if (compare REL target) target = operand */
    AMO_AXOR,  /* target = (target & ~compare) ^ operand */
    AMO_OPS
};
enum amo_compare { AMO_EQ, AMO_NE, AMO_LE, AMO_LT, AMO_GE, AMO_GT, AMO_COMPARES };
enum amo_type {
    AMO_INT8,
    AMO_UINT8,
    AMO_INT16,
    AMO_UINT16,
    AMO_INT32,
    AMO_UINT32,
    AMO_INT64,
    AMO_UINT64,
    AMO_FLOAT,
    AMO_DOUBLE,
    AMO_FLOAT_COMPLEX,
    AMO_DOUBLE_COMPLEX,
    AMO_UINT128,
    AMO_TYPES
};
enum { AMO_MAX_BYTES = 16 };

/* Names as they are typed; each list ends with NULL. */
extern const char *const amo_op_names[], *const amo_compare_names[], *const amo_type_names[];

/* A type's size, and which ops and compares exist for it, as bits. */
struct amo_facts {
    uint16_t size, ops, compares;
};
extern const struct amo_facts amo_types[AMO_TYPES];

static inline size_t amo_size(enum amo_type type)
{
    return amo_types[type].size;
}

/* Does the op exist for the type? compare counts for AMO_CSWAP alone. */
static inline bool amo_valid(enum amo_op op, enum amo_type type, enum amo_compare compare)
{
    return op < AMO_OPS && type < AMO_TYPES && amo_types[type].ops & 1U << op &&
           (op != AMO_CSWAP ||
            (compare < AMO_COMPARES && amo_types[type].compares & 1U << compare));
}

/* "SUM, SWAP, CSWAP EQ/NE": what a type takes, for a sentence. */
void amo_list_ops(enum amo_type type, char *text, size_t room);

/* The other end's memory as connect found it. Owned by the fabric until close. */
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
    size_t header_bytes; /* am only: what travels before the payload, 0 or at least 8; behind the
                            first eight it is zeroes. SHORT takes 8 */
    struct {
        uint8_t op, type, compare_op, fetch;
        const void *operand, *compare;
        void *result;
    } amo;
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
    bool own_memory;            /* expose must place the memory itself */
    size_t max_inline, max_send;
    size_t layout_max[VERBS][LAYOUTS]; /* bytes that a write, a read, or an active message with its
                                          header may have in a layout; 0: has no such layout */
    size_t max_header;                 /* of an active message in layout ZCOPY */
    unsigned depth;                    /* operations in flight */
    uint16_t amo[2][AMO_OPS];          /* bit = type; [1]: fetching */
    uint16_t cswap[AMO_COMPARES];      /* bit = type */
    const char *amo_how;               /* how the widest atomics are done, or NULL */
    const char *compare_how;           /* how a CSWAP or AXOR that does not fetch is, or NULL */
    unsigned gpus;                     /* whose GPU memory it reaches, a bit a maker */
    unsigned gpu_verbs;                /* what it can do there */
    unsigned gpu_layouts;              /* and in which layouts, a bit each */
    const char *why_no_gpu;            /* where gpus lacks a maker */
    char form[128];                    /* which path carries it, for the header; connect may say
                                          more, so facts stay as long as the handle */
    char self[64];                     /* this end's name on the fabric, "NIC 0x12 PID 0" */
    char domain[32];                   /* what it lives in, "VNI 10", or "" */
};

struct fabric_want {
    const char *device; /* what stands behind "FABRIC:" */
    const char *here;   /* our end of the control connection, numeric, or "" */
    const char *nonce;  /* known to both ends of this run and to nobody else */
    uint64_t service;
    unsigned verbs, hints;
    unsigned gpus; /* whose GPU memory will be exposed at either end, as far as it is known: bits */
    bool server;   /* the end that was asked, not the one that asks */
    bool looks;    /* the data of arrivals will be looked at */
};

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
    /* Drops what is posted; never waits for the other end. */
    void (*close)(struct fabric *fabric);

    /* Makes a region reachable; places it too if it has no address. key is for the other end. */
    int (*expose)(struct fabric *fabric, struct region *region, struct blob *key);
    void (*withdraw)(struct fabric *fabric, struct region *region);

    /* This end's address for the other's connect: text, never our structs. */
    int (*address)(struct fabric *fabric, struct blob *mine);
    /* DONE once bytes can go both ways; LATER: call again; or -errno. keys are the other end's,
     * and remote gets an entry for each. */
    int (*connect)(struct fabric *fabric, const struct blob *theirs, const struct blob *keys, int n,
                   struct remote *remote);

    /* NULL: cannot. Operations that poll has not completed may be forgotten only by close. */
    int (*write)(struct fabric *fabric, const struct xfer *xfer); /* bytes in the target's memory */
    int (*read)(struct fabric *fabric, const struct xfer *xfer);  /* bytes in ours */
    int (*send)(struct fabric *fabric, const struct xfer *xfer);  /* our buffer may be reused;
                                                                     RENDEZVOUS: target has pulled */
    int (*recv)(struct fabric *fabric, const struct xfer *xfer);  /* posts a buffer; never DONE */
    int (*atomic)(struct fabric *fabric, const struct xfer *xfer); /* applied; fetch: old value
                                                                      in result */
    int (*am)(struct fabric *fabric, const struct xfer *xfer);     /* our buffer may be reused;
                                                                      VERB_ARRIVAL at the other */

    /* Progress and completions: 0..max, or -errno when the link is known to be lost. */
    int (*poll)(struct fabric *fabric, struct completion *completions, int max);
};

/* ---- choosing ---- */

enum { FABRIC_DEVICE_MAX = 128 };

struct fabric_choice {
    const struct fabric_ops *ops;
    char device[FABRIC_DEVICE_MAX]; /* what stands behind the prefix */
    bool named;                     /* the user named the fabric */
};

/* From a device as typed: "soft:cxi1", "null:delay=2us", or a bare device, which is looked for on
 * the fabrics in order. -ENODEV and a sentence that lists what there is. */
int fabric_choose(const char *text, struct fabric_choice *choice);

/* The fabrics that may be there, those that are built in first; NULL behind the last. */
const char *fabric_name(size_t number);
bool fabric_built_in(const char *name);

/* Does it begin with the name of a fabric that is built in or can be loaded? */
bool fabric_named(const char *text);

/* Says every device of every fabric there is, "soft:cxi0". */
void fabric_list(void (*say)(void *arg, const char *device, const char *what), void *arg);

/* Is there a CXI device of that name on this machine? Looks, loads nothing. */
bool fabric_real_cxi(const char *device);

/* What this end is and has, as lines that begin with a full stop: its machine and network, which
 * modules, and whether the bare device (or NULL) is a real CXI device. Added to the text. */
int fabric_describe(const char *device, struct blob *text);

/* Where neither end names a fabric: what to choose here, from two such texts; both ends come to the
 * same. With a bare device: a real CXI device, else soft on one machine, else libfabric over
 * TCP; without one: soft, else UCX or libfabric over TCP. why is "" or says more than that. */
int fabric_between(const struct blob *mine, const struct blob *theirs, const char *device,
                   char *text, size_t room, const char **why);

/* Opens a fabric. Vendors' libraries take signals over when they do: every handler is put back. */
int fabric_open(const struct fabric_ops *ops, struct fabric **fabric,
                const struct fabric_want *want, struct fabric_facts *facts);

/* Can it be opened at all, with this service, and what could it do, with memory of these GPUs?
 * Opens and closes it. */
int fabric_try(const struct fabric_choice *choice, uint64_t service, unsigned gpus,
               struct fabric_facts *facts);

/* A built-in fabric, or weft-NAME.so from WEFT_MODULE_PATH, from beside the tools, or from the
 * installed module folder. NULL, and a sentence, if there is none. */
const struct fabric_ops *fabric_find(const char *name);

/* The names of verbs and hints, for sentences. */
const char *fabric_verb_name(enum verb verb);
extern const char *const fabric_layout_names[]; /* ends with NULL */

/* ---- modules ---- */

/* What a module may call: it has no other way back. */
struct fabric_host {
    unsigned abi;
    const struct fabric_ops *(*find)(const char *name);
    int (*fail)(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));
    void (*warn)(const char *format, ...) __attribute__((format(printf, 1, 2)));
    int (*blob_print)(struct blob *blob, const char *format, ...)
        __attribute__((format(printf, 2, 3)));
    int (*blob_add)(struct blob *blob, const char *format, ...)
        __attribute__((format(printf, 2, 3)));
    int (*blob_value)(const struct blob *blob, const char *key, char *value, size_t room);
    int (*blob_number)(const struct blob *blob, const char *key, uint64_t *number);
    int (*memory_enough)(uint64_t bytes);
};

/* The one symbol of a module, "weft_fabric". */
typedef const struct fabric_ops *fabric_entry(const struct fabric_host *host);

extern const struct fabric_ops fabric_null, fabric_soft;

#endif
