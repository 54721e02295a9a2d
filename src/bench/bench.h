/* SPDX-License-Identifier: BSD-3-Clause */
/* The door of bench: THE MEASUREMENT. A front fills a spec; two ends hold a session (peer, fabric,
 * memory), opened once; on it a method drives an op and yields results; a report shows them.
 * spec.h and stats.h beside it are the other doors. Both ends run the same code: initiate or
 * respond is the one difference. */
#ifndef WEFT_BENCH_H
#define WEFT_BENCH_H

#include "bench/spec.h"
#include "bench/stats.h"
#include "core/clock.h"
#include "fabric/choose.h"
#include "fabric/fabric.h"
#include "peer/peer.h"

/* ---- ops and methods: the tables; what they are given is inside, in run.h ---- */

struct run;

/* How tables and help texts call an operation. */
struct op_words {
    struct opt_words help; /* "Write", "writes" */
    const char *ucx;       /* what it is to UCX: put; NULL: the same */
    const char *many;      /* column title: Writes */
    const char *number;    /* title of the column that numbers samples: WriteNum */
    const char *size;      /* title of the first column: RDMA Size[B] */
    int size_width;
    const char *rate; /* lists: title of the column of rates; NULL: the method's */
};

enum {
    OP_STREAMS = 1,     /* one may follow the other without an answer */
    OP_NEEDS_ACK = 2,   /* streams: the target, which polls, acknowledges what has come in */
    OP_STEPS = 4,       /* latency: every iteration needs its `before` */
    OP_HALVES = 8,      /* each buffer has a half to send from and one to receive into */
    OP_NO_LAYOUTS = 16, /* a value, not bytes: layout short alone */
    OP_RETURNS = 32,    /* its completion brings something back from the target */
    OP_ASKS = 64,       /* verifying asks the other end, which must not be busy itself */
    OP_REPEATS = 128,   /* within one sample it does without its `before` */
    OP_ARRIVES = 256,   /* what comes in completes here: where nobody answers, its echo does */
    OP_AUTOMATIC = 512, /* the fabric chooses the layout, by size */
    OP_SETTLES = 1024,  /* streams: may complete here alone, if a flush follows */
    OP_EMPTY = 2048,    /* may be of no bytes */
    OP_GATHERS = 4096,  /* what is sent may lie in pieces */
    OP_SCATTERS = 8192  /* so may what is received */
};

/* Initiator, outside the timing, around an operation that is then alone and whose data is checked;
 * number counts from 0. NULL: nothing to do. */
struct op_verify {
    int (*before)(struct run *run, uint64_t number);
    int (*after)(struct run *run, uint64_t number);
    /* Lists both ways, where the other end cannot be asked: looks at what it has done here with its
     * list of that number. Both ends are between two lists. */
    int (*here)(struct run *run, uint64_t number);
};

/* What the target does. NULL: nothing. */
struct op_target {
    /* Latency: one look for what has come in, and its answer. */
    int (*echo)(void *run);
    /* Whichever end may receive, before every poll. */
    int (*look)(struct run *run);
    /* An active message has come in. */
    int (*arrival)(struct run *run, const struct completion *completion);
    /* Answers what the initiator asks over the control connection to verify. */
    int (*answer)(struct run *run, const struct msg *ask, struct msg *answer);
};

/* There and back: both ends send message number, counted from 1, and look for the other's. */
struct op_pingpong {
    int (*fire)(struct run *run, uint64_t number);
    int (*arrived)(struct run *run, uint64_t number); /* 1, 0 or -errno */
};

/* In lists, where operation i has the i-th place in both buffers. */
struct op_list {
    const struct op *form; /* the table for it; NULL: it is not done in lists */
    /* Bytes of this end's own, before the part of its buffer that the other end reaches; NULL:
     * none.
     */
    size_t (*front)(const struct spec *spec);
    /* Both ends, after a size: nothing may be left posted. May be NULL. */
    int (*finish)(struct run *run);
};

/* What is measured. A file of its own, op_NAME.c, and a line in ops.def. */
struct op {
    const char *name;
    const struct op_words *words;
    enum verb verb; /* of its first step: for layouts, and what a completion proves */
    unsigned verbs; /* all it needs, bits */
    unsigned hints; /* those that mean something to it, bits */
    unsigned traits;
    unsigned legs;      /* latency: 2 where what is timed is a round trip; 0: not for latency */
    const char *proves; /* what its completion proves, where that is not the fabric's to say */
    /* What tells two kinds of it apart, besides the size; may be NULL. */
    void (*label)(const struct spec *spec, char *text, size_t room);
    /* What it is called in UCX's words, where that depends on the spec; may be NULL. */
    const char *(*called)(const struct spec *spec);
    /* What is wrong on every machine; what this fabric lacks. Sentences. May be NULL. */
    int (*check)(const struct spec *spec);
    int (*can)(const struct spec *spec, const struct fabric_facts *facts, const char *form);
    /* Both ends, once per run, before any size: receives to be posted and the like; may be NULL. */
    int (*start)(struct run *run);
    /* Both ends, outside the timing: run->xfer and run->verb for run->size. */
    int (*prepare)(struct run *run);
    /* Initiator, timed: starts one operation and never waits. DONE, LATER, -errno, or -EAGAIN where
     * there is no room: then it is called again from its beginning. NULL: run->xfer is posted by
     * run->verb. */
    int (*post)(struct run *run);
    /* A completion has come, told apart by its id: DONE if the operation is over, LATER if there is
     * more to come, having posted it if need be. -EAGAIN where that has no room: then it is called
     * again with the same completion. NULL: the first completion ends the operation. */
    int (*next)(struct run *run, const struct completion *completion);
    struct op_target target;
    struct op_pingpong pingpong;
    struct op_list list;
    struct op_verify verify;
};

extern const char *const op_names[]; /* ends with NULL */
const struct op *op_of(const struct spec *spec);

/* What it is called in sentences about this spec: write or put, atomic or fadd. */
const char *op_called(const struct spec *spec);

struct result;

/* A column of results: microseconds, MB/s, or millions a second. */
enum column_kind { COLUMN_TIME, COLUMN_BANDWIDTH, COLUMN_RATE };
struct column {
    const char *title;
    double (*value)(const struct result *result);
    bool spread; /* of the samples: may be less than the clock resolves, if they are not */
    enum column_kind kind;
};

/* How it is measured. A file of its own, method_NAME.c, and a line in methods.def. */
struct method {
    const char *name;
    const char *both_ways; /* what it is called where both ends initiate; NULL: they cannot */
    bool ucx;              /* operations have UCX's names, and a data layout */
    bool lists;            /* an iteration is a list; both ends are told what came of it */
    unsigned legs;         /* 2: half of what is timed is the figure; 0: as the op has it */
    bool subtracts;        /* the clock's cost is taken off every sample */
    bool rests;            /* a target that has caught up looks away for a moment */
    const struct column *columns; /* of a table with a row per size; ends with no title */
    /* What its samples are: "latency" or "overhead". */
    const char *(*samples)(const struct spec *spec);
    /* What is wrong on every machine with this op; may be NULL. */
    int (*check)(const struct spec *spec, const struct op *op);
    /* Must there be an end that answers this op? NULL: no. */
    bool (*answered)(const struct op *op);
    /* Initiator, before the header: a few operations, and their median; may be NULL. */
    int (*preview)(struct run *run, double *median_ps);
    /* Initiator: warm-up and measurement of run->size. */
    int (*initiate)(struct run *run);
    /* Target: until the initiator is done. */
    int (*respond)(struct run *run);
};

extern const char *const method_names[]; /* ends with NULL */
const struct method *method_of(const struct spec *spec);
unsigned spec_legs(const struct spec *spec);

/* ---- results ---- */

struct figure {
    double typical; /* the median of all iterations */
    double recent;  /* the average since the last report */
    double overall; /* the average of all */
};

/* What came since the last report, and how long that took. */
struct recent {
    uint64_t count;
    double s;
};

/* What came of one size. What is not known is NULL, or not a number. */
struct result {
    uint64_t size, count, bytes; /* count: operations that are known to have arrived */
    const struct stats *stats;   /* in units of: */
    double us_per_unit;
    struct sampling sampling;
    double elapsed_s; /* from the first post to the last completion that was confirmed, without
                         reports; not a number where gaps are in it */
    struct figure latency_us, bandwidth, rate;
    const struct series *series;
    struct interference interference;
    uint64_t reverse_count; /* both ways: what the other end sent meanwhile */
    double reverse_elapsed_s;
    struct recent recent;      /* not latency */
    const struct parts *parts; /* of several pairs: this is their sum */
    unsigned sums; /* lists both ways: the table has both directions together, this many times */
    struct counted counters; /* how far they came */
    bool complete, final;
};

struct session;

/* What is being run, for headers and documents. */
struct facts {
    const struct spec *spec;
    const struct op *op;
    const struct method *method;
    const struct session *session;
    const struct clock *clock; /* of the end that measures */
    char clock_text[128];      /* the client's clock and its cost, at both ends */
    char remote[64];           /* the other end's name on the fabric */
    const char *proves;        /* what is known when an operation counts as done */
    unsigned legs;
    bool initiator;
    struct msg about[2]; /* lines on the two ends, as machine_describe writes them: ours, theirs */
};

/* Where a run stands. */
struct progress {
    uint64_t size;
    double share;         /* of this size that is done */
    unsigned sizes, done; /* how many there are; how many are done */
};

struct report;

/* A report receives what happens; nothing is timed meanwhile. Members except row may be NULL. */
struct report_ops {
    const char *name;
    int (*begin)(struct report *report, const struct facts *facts);
    int (*sample)(struct report *report, uint64_t number, uint64_t ps);
    /* Since the last of these; result->final is not set. */
    int (*interval)(struct report *report, const struct result *result);
    int (*row)(struct report *report, const struct result *result);
    /* Now and then; must not wait. */
    void (*progress)(struct report *report, const struct progress *progress);
    /* Lists, where several pairs measure together: have all come to this point? 1, 0 or -errno.
     * first: this pair is there now. NULL: it is alone. */
    int (*meet)(struct report *report, bool first);
    /* status: 0 when all is done, otherwise what cut the run short. */
    int (*end)(struct report *report, int status);
};

struct report {
    const struct report_ops *ops; /* first member of every report's own struct */
};

#endif
