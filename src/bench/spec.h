/* SPDX-License-Identifier: BSD-3-Clause */
/* A door of bench: the spec, all that both ends of a run agree on. Tools, ucx_perftest and the
 * library fill one; it is checked once and then const. Its rows are the one place for an option's
 * type and limits, its text between the ends, and the library's parameter. */
#ifndef WEFT_SPEC_H
#define WEFT_SPEC_H

#include "core/counters.h"
#include "core/opt.h"
#include "fabric/facts.h"

/* How much is measured. */
struct spec_count {
    uint64_t iterations;     /* 0: no limit */
    uint64_t duration_ms;    /* 0: no limit */
    uint64_t warmup;         /* iterations before anything counts; all but latency: for 100 ms */
    uint64_t ops_per_sample; /* latency: operations that one iteration times together */
};

/* What follows what. */
struct spec_pace {
    uint64_t gap_ns;      /* latency: from one operation to the next */
    uint64_t window;      /* streams of messages: how many may be unacknowledged */
    uint64_t outstanding; /* streams: how many may be under way */
    uint64_t list;        /* lists: how many are waited for together */
};

/* A message that does not lie in one piece: the bytes of each, so far apart. */
struct spec_pieces {
    struct opt_amounts sizes; /* of one message, all together its size */
    uint64_t stride;          /* from the beginning of one to the next; 0: they follow each other */
    bool gather, scatter;     /* sends are made of them; receives are */
};

/* The bytes. */
struct spec_data {
    int layout;         /* 1 + enum layout; 0: the first there is for the size */
    uint64_t am_header; /* of a zcopy active message: 0, or at least 8 */
    uint64_t most;      /* lists: bytes of a buffer; operations that do not fit share places */
    uint64_t align;     /* lists: of every operation's place */
    bool apart;         /* the header is not part of an active message's size */
    bool copies;        /* what arrives as an active message is copied */
    bool lend;          /* a stream's bytes are taken where the fabric has them */
    bool verify;        /* check them */
    struct spec_pieces pieces;
};

/* Requests to the NIC; a fabric may not honour them, and says so. */
struct spec_hints {
    bool unrestricted, no_idc, no_ll, rendezvous, matching, no_hrp;
};

/* Which atomic: choices, 1 + enum. */
struct spec_amo {
    int op, compare, type;
    bool fetching;
};

/* Tagged messages. */
struct spec_tag {
    bool sync;       /* a send completes when the receiver has matched it */
    bool wildcard;   /* receives take any tag */
    bool unexpected; /* they are posted when their message is there, not before */
};

/* How an end waits. */
struct spec_waits {
    bool events;     /* it sleeps until an event of the fabric wakes it */
    bool wakeup;     /* it could, but polls */
    bool target_out; /* the target makes no progress: it takes no part */
};

/* What the measuring end needs to know. */
struct spec_local {
    int clock;            /* enum clock_kind; 0: the best there is */
    bool ignore_mismatch; /* a clock that drifted is only warned of */
    bool keep_samples;    /* one by one, for a report that wants them */
    bool ucx_words;       /* sentences call operations by UCX's names: put, get, fadd */
    uint64_t interval_ms; /* a report this often; 0: only the last */
};

enum { SPEC_TUNES_TEXT = 128 };

struct spec {
    int op, method; /* choices: 1 + place in ops.def, methods.def */
    bool both_ways; /* streams and lists: both ends send at once */
    struct opt_range size;
    uint64_t timeout_ms; /* without progress or a sign of life */
    uint64_t threads;    /* of each end: thread i with thread i */
    struct spec_count count;
    struct spec_pace pace;
    struct spec_data data;
    struct spec_hints hints;
    struct spec_amo amo;
    struct spec_tag tag;
    struct spec_waits waits;
    struct spec_local local;
    char tunes[SPEC_TUNES_TEXT];   /* of the fabric, as it has them; "": none */
    char counters[COUNTERS_WHICH]; /* of network devices, to be read around every size; "": none */
};

/* A spec is the first member of every struct that a tool's rows fill, so that rows `of` these have
 * one base with the tool's own. */
enum spec_row {
    SPEC_OP,
    SPEC_METHOD,
    SPEC_BOTH_WAYS,
    SPEC_SIZE,
    SPEC_TIMEOUT,
    SPEC_ITERATIONS,
    SPEC_DURATION,
    SPEC_WARMUP,
    SPEC_OPS_PER_SAMPLE,
    SPEC_GAP,
    SPEC_WINDOW,
    SPEC_OUTSTANDING,
    SPEC_LIST,
    SPEC_MOST,
    SPEC_ALIGN,
    SPEC_LAYOUT,
    SPEC_AM_HEADER,
    SPEC_APART,
    SPEC_COPIES,
    SPEC_LEND,
    SPEC_VERIFY,
    SPEC_PIECES,
    SPEC_STRIDE,
    SPEC_GATHER,
    SPEC_SCATTER,
    SPEC_UNRESTRICTED,
    SPEC_NO_IDC,
    SPEC_NO_LL,
    SPEC_RENDEZVOUS,
    SPEC_MATCHING,
    SPEC_NO_HRP,
    SPEC_AMO_OP,
    SPEC_AMO_COMPARE,
    SPEC_AMO_TYPE,
    SPEC_FETCHING,
    SPEC_TAG_SYNC,
    SPEC_TAG_WILDCARD,
    SPEC_TAG_UNEXPECTED,
    SPEC_EVENTS,
    SPEC_WAKEUP,
    SPEC_TARGET_OUT,
    SPEC_CLOCK,
    SPEC_IGNORE_MISMATCH,
    SPEC_KEEP_SAMPLES,
    SPEC_UCX_WORDS,
    SPEC_INTERVAL,
    SPEC_COUNTERS,
    SPEC_TUNES,
    SPEC_THREADS,
    SPEC_ROWS
};
extern const struct opt spec_rows[];

/* The rows' defaults: those of ucx_perftest. */
void spec_defaults(struct spec *spec);

/* What one field decides of another: an atomic is as long as its type. */
void spec_settle(struct spec *spec);

/* What is wrong with it on every machine, in a sentence. Everything after this may rely on an op, a
 * method and an atomic that exist. */
int spec_check(const struct spec *spec);

/* As lines for the other end, and from them; what comes in is checked. */
int spec_encode(const struct spec *spec, struct msg *text);
int spec_decode(struct spec *spec, const struct msg *text);

/* Were both ends asked for the same? If not, the sentence names the row and both values. */
int spec_compare(const struct spec *client, const struct spec *server);

/* Lists: bytes of all places together. */
size_t spec_list_bytes(const struct spec *spec);

/* Bytes from the beginning of a message of so many to its end, with what lies between its pieces.
 */
size_t spec_extent(const struct spec *spec, size_t size);
/* Its pieces, if any end has them. */
void spec_fill_pieces(const struct spec *spec, struct fabric_pieces *pieces);

/* Where the operations of a list lie: so many places, so far apart. Otherwise there is one. */
struct slots {
    unsigned count;
    size_t step;
};
struct slots list_slots(const struct spec *spec, size_t size);

/* The next size after one; 0: that was the last. */
static inline uint64_t spec_next_size(const struct spec *spec, uint64_t size)
{
    return size > spec->size.max / 2 ? 0 : 2 * size;
}

/* Plain numbers of the atomic's choices. */
static inline enum amo_op spec_amo_op(const struct spec *spec)
{
    return (enum amo_op)(spec->amo.op - 1);
}

static inline enum amo_type spec_amo_type(const struct spec *spec)
{
    return (enum amo_type)(spec->amo.type - 1);
}

static inline enum amo_compare spec_amo_compare(const struct spec *spec)
{
    return (enum amo_compare)(spec->amo.compare - 1);
}

#endif
