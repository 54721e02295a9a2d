/* SPDX-License-Identifier: BSD-3-Clause */
/* The door of bench: THE MEASUREMENT. A plan says what was asked; a method times an op on a fabric
 * between two peers; samples become stats; a report is told. Both ends run the same code, and
 * once or serve is the one difference. */
#ifndef WEFT_BENCH_H
#define WEFT_BENCH_H

#include "core/clock.h"
#include "core/opt.h"
#include "fabric/choose.h"
#include "fabric/fabric.h"
#include "peer/peer.h"

#include <weft.h>

/* ---- plan ---- */

/* Where results go besides the table; tool knows what is made of it. */
enum { PLAN_PERCENTILES = 160, PLAN_PATH = 1024, PLAN_CONDITIONS = 2048 };
struct plan_output {
    char percentiles[PLAN_PERCENTILES], json[PLAN_PATH], csv[PLAN_PATH], fail_if[PLAN_CONDITIONS];
};

struct plan {
    struct plan_output output;
    char device[FABRIC_DEVICE_MAX];
    uint64_t service, port;
    int64_t tx_gpu, rx_gpu; /* the client's and the server's; -1: none */
    int gpu_type;           /* this end's: 1 + place in memory_vendors, 0: whatever there is */
    /* Whose GPU each end's buffer is on, once it is known, by its rank; MEMORY_CPU: none. */
    enum memory_vendor vendors[2];
    uint64_t iters, duration_s, warmup, gap_us;
    struct opt_range size;
    bool unrestricted, no_idc, no_ll, report_all, rendezvous;
    int amo_op, amo_compare, amo_type; /* choices: 1 + enum */
    bool fetching, matching;
    int huge; /* 0, or the choice of --use-hp */
    int clock;
    bool ignore_mismatch, local, loop, verify, help, version;
    char bind[256];
    uint64_t timeout_s, wait_s;
    int64_t cpu[2];
    const char *address; /* NULL: a server, or local */
};

/* The choices of --use-hp, as memory kinds are named. */
extern const char *const plan_huge[];

/* The rules that no single option knows, in sentences. Settles what one option does to another and
 * warns of it; after this the plan does not change. */
int plan_check(struct plan *plan, const struct opt_set *set);

/* Which GPU an end's buffer is on, by its rank; -1: none. */
static inline int64_t plan_gpu(const struct plan *plan, int rank)
{
    return rank == PEER_SERVER ? plan->rx_gpu : plan->tx_gpu;
}

/* Whose GPUs take part, as bits. */
unsigned plan_gpus(const struct plan *plan);

/* Looks for the GPU of this end's buffer, if it is to have one, and how many there are. */
int plan_find_gpu(struct plan *plan, int rank, unsigned *count);

/* ---- stats: all samples count, in constant memory ---- */

/* 512 steps an octave: the middle of a bucket is within 0.1 % of whatever is in it. */
enum {
    STATS_BITS = 9,
    STATS_SUB = 1 << STATS_BITS,
    STATS_OCTAVES = 47,
    STATS_BUCKETS = (STATS_OCTAVES + 1) * STATS_SUB
};
#define STATS_LINEAR ((size_t)2 * STATS_SUB) /* up to here a bucket is a picosecond */

struct stats {
    uint64_t count, min_ps, max_ps;
    double mean_ps, square_ps; /* Welford's: mean, and sum of squared distances from it */
    uint64_t *kept_ps;         /* every sample in order, or NULL */
    uint64_t kept_room;
    uint64_t buckets[STATS_BUCKETS];
};

/* kept: how many samples to keep one by one; their memory is present and locked. */
int stats_open(struct stats **stats, uint64_t kept);
void stats_close(struct stats *stats);
void stats_clear(struct stats *stats);
void stats_merge(struct stats *into, const struct stats *from);

/* The population's standard deviation. */
double stats_deviation_ps(const struct stats *stats);

/* The value that a share of the samples (0 < share < 1) does not exceed, within 0.1 %. -ENODATA,
 * without a sentence, if fewer than ten samples lie beyond it. */
int stats_percentile(const struct stats *stats, double share, double *ps);

/* Its 95 % confidence interval by order statistics. */
int stats_interval(const struct stats *stats, double share, double *low_ps, double *high_ps);

/* The middle sample, however few there are. */
double stats_median_ps(const struct stats *stats);

/* What stats_bucket puts into a bucket: from low up to, not including, high. */
void stats_bounds(size_t bucket, double *low, double *high);

/* Counts and moments from the buckets, for samples that were only put there. */
void stats_settle(struct stats *stats);

static inline size_t stats_bucket(uint64_t ps)
{
    if (ps < STATS_LINEAR)
        return ps;
    unsigned shift = 63U - STATS_BITS - (unsigned)__builtin_clzll(ps);
    size_t bucket = (size_t)shift * STATS_SUB + (ps >> shift);
    return bucket < STATS_BUCKETS ? bucket : STATS_BUCKETS - 1;
}

/* Adds samples in order. A handful at a time costs a few nanoseconds each: one by one, the next
 * clock read would have to wait for the arithmetic. */
void stats_add(struct stats *stats, const uint64_t *ps, size_t n);

/* ---- a run over time ---- */

/* What a interval of a run came to. */
struct interval {
    uint64_t end_ps; /* since the measurement began */
    uint64_t count;
    uint64_t min_ps, max_ps; /* UINT64_MAX and 0: not known */
    double sum_ps;
};

enum { SERIES_MAX = 256 };
struct series {
    size_t count;
    struct interval intervals[SERIES_MAX];
};

/* Adds the next interval, unless nothing happened in it. Without room, every two become one. */
void series_add(struct series *series, const struct interval *interval);

/* ---- what disturbed us ---- */

struct interference {
    uint64_t switches, migrations, faults, steal_ms;
};

void interference_now(struct interference *now);

/* Adds what happened between two looks. */
void interference_add(struct interference *sum, const struct interference *from,
                      const struct interference *to);

/* Warns, once, if ends that are free to run on one CPU seem to have done so: then the scheduler
 * takes one off it every few operations. */
void interference_hint(bool roams, uint64_t switches, uint64_t operations);

/* Warns of what touched the result, if anything did. */
void interference_say(const struct interference *sum);

/* ---- CPUs ---- */

/* Pins this thread, and what it starts, to a CPU. */
int cpu_pin(int64_t cpu);

/* Two CPUs of those allowed, on two cores that share their last cache if there are such. Returns
 * how many there were to choose from. */
int cpu_pair(int64_t pair[2]);

/* The CPUs this thread may use and the machine they are on, as lines for the other end. */
int cpu_describe(struct msg *text);

/* Can the two ends only run in turns? mine and theirs are such lines. */
bool cpu_shared(const struct msg *mine, const struct msg *theirs);

/* Are they on one machine, and at least one of them free to go where the other is? */
bool cpu_roams(const struct msg *mine, const struct msg *theirs);

/* ---- ops and methods ---- */

struct run;

struct op {
    const char *name;
    struct opt_words help; /* "Write", "writes" */
    const char *many;      /* column title: Writes */
    const char *number;    /* --report-all's column title: WriteNum */
    const char *size;      /* first column title: RDMA Size[B] */
    int size_width;
    enum verb verb;
    unsigned verbs; /* all it needs, bits */
    unsigned hints; /* hints that mean something to this op */
    unsigned legs;  /* 2: what is timed is a round trip */
    /* What tells two kinds of it apart, besides the size; may be NULL. */
    void (*label)(const struct plan *plan, char *text, size_t room);

    /* Initiator, outside the timing: sets up run->xfer for a size. */
    int (*prepare)(struct run *run, size_t size);
    /* Initiator, timed: one operation to its completion. */
    int (*once)(struct run *run);
    /* Initiator, outside the timing, around iteration number; after only with --verify, and before
     * too unless steps is set. */
    int (*before)(struct run *run, uint64_t number);
    int (*after)(struct run *run, uint64_t number);
    bool steps; /* every iteration needs its before */
    /* Both ends, once they are connected: receives to be posted and the like; may be NULL. */
    int (*start)(struct run *run);
    /* How many bytes each end's buffer needs; NULL: the largest size. */
    size_t (*buffer)(const struct plan *plan);
    /* Target: everything of one size, until the initiator says it is done. */
    int (*serve)(struct run *run, size_t size);
};

extern const struct op op_write, op_read, op_send, op_atomic;

struct method {
    const char *name;
    /* Initiator: warm-up and measurement of one size into run->stats. */
    int (*run)(struct run *run);
};

extern const struct method method_latency;

/* ---- tests: ops and methods of the library ---- */

/* The time and the samples of a test, in ticks: what is printed is computed when it is printed. */
struct tally {
    uint64_t begin;   /* of the interval being measured; pauses are not in it */
    uint64_t elapsed; /* of the intervals before */
    uint64_t next;    /* when to look up from the loop */
    uint64_t look, looked, interval, reported, duration;
    uint64_t done, reported_done, reported_elapsed; /* confirmed; and at the last report */
};

/* An operation as the library's tests use it. Both ends have the same buffer: what is sent from,
 * then what is received into. */
struct test_op {
    const char *name;
    enum verb verb;
    unsigned verbs;  /* all it needs, bits */
    bool atomic;     /* on a value of four or eight bytes, in layout short alone */
    enum amo_op amo; /* and which */
    bool fetch;
    bool needs_ack; /* its messages are acknowledged by the target, which polls for them */

    /* Both ends, outside the timing: run->xfer and run->post. */
    int (*prepare)(struct run *run);
    /* Ping-pong: sends message number; has the other end's come? 1, 0 or -errno. */
    int (*fire)(struct run *run, uint64_t number);
    int (*arrived)(struct run *run, uint64_t number);
    /* An active message has come in. */
    int (*arrival)(struct run *run, const struct completion *completion);
    /* Streams, only with verify: around iteration number, which is then alone; behind them all;
     * and the target's answers. NULL: nothing to do. */
    int (*before)(struct run *run, uint64_t number);
    int (*after)(struct run *run, uint64_t number);
    int (*finish)(struct run *run, uint64_t count);
    int (*answer)(struct run *run, const struct msg *ask, struct msg *answer);
};

extern const struct test_op test_am, test_put, test_get, test_add, test_fadd, test_swap, test_cswap;

/* By enum weft_op; NULL if there is none. */
const struct test_op *test_op_find(enum weft_op op);

struct test_method {
    const char *name;
    unsigned legs;
    int (*initiate)(struct run *run); /* warm-up and measurement, reports included */
    int (*respond)(struct run *run);  /* until the initiator is done */
};

extern const struct test_method test_ping_pong, test_stream, test_stream_both;

/* What carries a test, and how it is measured. */
struct test_facts {
    const struct fabric_choice *choice;
    const struct fabric_facts *fabric;
    enum weft_layout layout;
    const char *method, *proves;
    unsigned legs;
    const struct clock *clock;
    const struct msg *about[2]; /* buffer, fabric and name of this end, and of the other */
};

/* Who is told of results. */
struct test_audience {
    /* Before anything is timed; may be NULL. */
    void (*begin)(void *arg, const struct test_facts *facts);
    void (*report)(void *arg, const struct weft_result *result);
    void *arg;
};

/* What is wrong with it on every machine, in a sentence. */
int test_check(const struct weft_params *params);

/* What a result of the library points to. */
struct weft_histogram {
    struct stats *stats; /* in ticks */
    double us_per_tick;
    char fabric[128];
};

/* One test. A test that cannot be run fails at both ends with the same reason, and the peer can be
 * used again: *usable. What fails later ends the peer. Whatever it returns, *result is to be freed
 * by weft_result_free. */
int test_run(const struct weft_params *params, struct peer *peer,
             const struct test_audience *audience, struct weft_result *result, bool *usable);

/* ---- reports ---- */

/* What was run, for the header. */
struct bench_facts {
    const char *title;
    const struct plan *plan;
    const struct opt_set *set;
    const struct op *op;
    const struct fabric_facts *fabric;
    const char *why; /* this fabric, or "" */
    const struct fabric_choice *choice;
    const struct method *method;
    const char *proves; /* what is known when an operation counts as done */
    bool initiator;
    const struct region *buffer;
    const struct clock *ticks; /* the client's, at the client */
    char clock[128];           /* the client's clock and its cost */
    char remote[64];           /* the other end's name on the fabric */
    struct msg about[2];       /* the machines, as machine_describe does: ours, theirs */
};

struct result {
    size_t size;
    const struct stats *stats;
    const struct series *series; /* empty unless the run has a duration */
    struct interference interference;
    bool complete;
};

/* Where a run stands. */
struct progress {
    size_t size;
    double share;         /* of this size that is done */
    unsigned sizes, done; /* how many there are; how many are done */
};

struct report;

struct report_ops {
    const char *name;
    int (*begin)(struct report *report, const struct bench_facts *facts);
    int (*sample)(struct report *report, uint64_t number, uint64_t ps);
    int (*row)(struct report *report, const struct result *result);
    /* Now and then, outside the timing; must not wait. May be NULL. */
    void (*progress)(struct report *report, const struct progress *progress);
    /* status: 0 when all is done, otherwise what cut the run short. */
    int (*end)(struct report *report, int status);
};

struct report {
    const struct report_ops *ops; /* first member of every report's own struct */
};

/* ---- run ---- */

/* What a tool hands over. */
struct bench_request {
    const char *title;
    const struct plan *plan;
    const struct opt_set *set;
    const struct op *op;
    const struct method *method;
    const struct fabric_choice *fabric;
    const char *why; /* it was chosen, if nobody named it; or "" */
    const char *nonce;
    struct peer *peer;
    struct report *report;
};

/* Can this fabric do what the plan asks? In a sentence if not. */
int bench_can(const struct plan *plan, const struct op *op, const struct fabric_ops *fabric,
              const struct fabric_facts *facts);

/* One run between two ends, from opening the fabric to the last line. If *peer->stop is set the
 * run ends early with -EINTR, what was measured reported and the other end told. */
int bench_run(const struct bench_request *request);

/* The state of a run: for ops and methods. */
struct run {
    const char *name; /* of the op, for sentences */
    enum verb verb;
    const struct bench_request *request;
    const struct plan *plan;
    const struct op *op;
    struct peer *peer;
    const struct fabric_ops *fabric;
    struct fabric *handle;
    const char *nonce; /* of the meeting with the other end */
    struct fabric_facts facts;
    struct region buffer;
    struct remote remote;
    struct xfer xfer;
    struct clock clock;
    struct stats *stats;
    struct series series;
    struct progress progress;
    struct interference before; /* tests: when measuring began */
    size_t size;
    bool share_cpu; /* both ends on one CPU: yield while waiting */
    bool roams;     /* nothing keeps the ends from running on one CPU */
    bool left;      /* the other end was told why we go */
    unsigned seen;  /* verbs that completed while another was waited for, bits */
    unsigned idle;  /* empty polls in a row, at the target */
    bool echoes;    /* op_send: an echo has used a receive up */
    unsigned char amo_value[AMO_MAX_BYTES]; /* op_atomic: what the target should have */

    /* Tests. */
    const struct weft_params *params; /* settled */
    struct weft_params settled;       /* what was asked, and what was left open */
    const struct test_op *test;
    const struct test_method *test_method;
    const struct test_audience *audience;
    struct weft_result *result;
    struct tally tally;
    bool verify;       /* of params, near at hand */
    const char *inbox; /* where what the other end writes is looked for */
    int (*post)(struct fabric *fabric, const struct xfer *xfer);
    size_t receive_at;         /* in both buffers */
    unsigned pending;          /* operations that will complete */
    uint64_t number, arrivals; /* the last message sent; how many came in */
    uint64_t acked, answered;  /* active messages that were acknowledged to us, and by us */
    uint64_t checked;          /* arrivals looked at */
    unsigned quiet;            /* polls without an arrival */
    bool refused;              /* the test cannot be run; the peer is as good as before */
    struct xfer ack;
    bool exposed;   /* the buffer is reachable */
    char form[128]; /* the fabric, for sentences */
    struct weft_histogram *histogram;
    enum memory_vendor vendors[2]; /* whose GPU each end's buffer is on, by its rank */
};

/* Posts an operation, making room if there is none: DONE, LATER or -errno. */
int run_post(struct run *run, int (*verb)(struct fabric *fabric, const struct xfer *xfer),
             const struct xfer *xfer);

/* The same, and waits for its completion; for op.once. */
int run_do(struct run *run, enum verb verb,
           int (*function)(struct fabric *fabric, const struct xfer *xfer),
           const struct xfer *xfer);

/* Polls until this verb has completed. What else completes meanwhile is kept in run->seen. */
int run_wait(struct run *run, enum verb verb);

/* Between two looks for something that is not there yet: yields where it must, and now and then
 * looks at the other end and at the time. */
struct backoff {
    unsigned polls;
    uint64_t since_ms;
};
int run_backoff(struct run *run, struct backoff *backoff);

/* Target: a poll that makes progress and finds nothing; yields if the ends share a CPU. */
void run_idle(struct run *run);

/* Target, one-sided: answers the initiator's questions until he is done. */
int run_serve(struct run *run,
              int (*answer)(struct run *run, const struct msg *ask, struct msg *answer));

/* What was timed, as a sample: picoseconds, the clock's cost subtracted once, legs divided. */
static inline uint64_t run_sample(const struct run *run, uint64_t ticks)
{
    uint64_t ps = clock_to_ps(&run->clock, ticks);
    ps = ps > run->clock.cost_ps ? ps - run->clock.cost_ps : 0;
    return run->op->legs == 1 ? ps : (ps + run->op->legs / 2) / run->op->legs;
}

/* The hints asked for that hold for this op, fabric and size. */
unsigned run_hints(const struct run *run, size_t size);

/* For tests: one poll, and what it brought, acknowledgements included; a posted operation, counted
 * in run->pending until it completes; and all of them, and all acknowledgements, waited for. */
int test_poll(struct run *run);
int test_post_slowly(struct run *run, int got);
int test_drain(struct run *run);

static inline int test_post(struct run *run)
{
    int got = run->post(run->handle, &run->xfer);
    return got == DONE ? 0 : test_post_slowly(run, got);
}

/* Where a test's clock stands. */
enum turn { TURN_ON, TURN_PAUSE, TURN_END };
void tally_open(struct run *run);
void tally_start(struct run *run);
/* Stops the clock for a moment in which nothing is under way, and starts it again. */
void tally_stop(struct run *run);
void tally_go_on(struct run *run);
/* At a time that is due: signs of life, and what is to be done, or -errno. */
int tally_turn(struct run *run, uint64_t now);
/* Stops the clock, reports, and unless final starts it again. done: iterations confirmed. */
int tally_report(struct run *run, uint64_t done, bool final);

/* Data that says where it belongs: filled for iteration number, and found again. */
int pattern_fill(struct run *run, uint64_t number, size_t at, size_t size);
int pattern_check(struct run *run, uint64_t number, size_t at, size_t size);
int pattern_compare(struct run *run, uint64_t number, const void *bytes, size_t size);

/* A plain model of the atomics, to check a fabric's by: target becomes what it should be. */
void model_apply(enum amo_op op, enum amo_type type, enum amo_compare compare, void *target,
                 const void *operand, const void *compare_with);

/* A small whole number as a value of a type. */
void model_number(enum amo_type type, unsigned number, void *value);

#endif
