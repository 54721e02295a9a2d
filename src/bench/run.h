/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside bench: the state of a run, for ops and methods. First what the timed loops touch; then
 * what surrounds them. */
#ifndef WEFT_RUN_H
#define WEFT_RUN_H

#include "bench/session.h"

#include <errno.h>

/* ---- what is under way ---- */

/* Ids of what is posted, so that completions are told apart. ID_SECOND is for the second step of an
 * operation that has one. */
enum { ID_OPERATION, ID_SECOND, ID_RECEIVE, ID_ACK, ID_ASIDE };

struct inflight {
    unsigned pending;  /* operations that will complete */
    unsigned quiet;    /* polls without an arrival */
    unsigned idle;     /* looks in a row that found nothing, at the target */
    unsigned naps;     /* and all of them, where it sleeps */
    bool armed;        /* the last of them was followed by arming: the next one may sleep */
    uint64_t number;   /* the last message sent */
    uint64_t arrivals; /* how many came in */
    uint64_t acked;    /* active messages that were acknowledged to us */
    uint64_t answered; /* and by us */
    uint64_t noted;    /* how much of all that is known as progress */
    uint64_t turn_ns;  /* the target's last turn, of those that found nothing */
    uint64_t rested, rested_ns; /* arrivals, and the time, when a stream's target last rested */
    struct xfer ack;            /* local is NULL: nothing is acknowledged */
    uint64_t ack_every;         /* so many messages, or when nothing more comes */
    struct completion came; /* what a poll for one brought: not on the stack, which is guarded */
};

/* Between two looks for something that is not there yet. */
struct backoff {
    unsigned polls;
    uint64_t since_ms, turn_ns; /* the first look at the other end; the last turn */
    bool room;                  /* waits for room, which wakes nobody: does not sleep */
    bool armed; /* nothing was found before the fabric was armed: the next look decides */
};

/* How waits go on: they sleep on the fabric's descriptor, or take turns. */
struct nap {
    bool on;
    int fd;
    bool yields; /* both ends on one CPU */
};

/* A message in pieces. */
struct run_pieces {
    struct fabric_pieces list;
    const struct fabric_pieces *gather, *scatter; /* of what is sent and received; NULL: in one */
};

/* ---- the time of a run, in ticks: what is printed is computed when it is printed ---- */

struct meter {
    struct clock clock;
    struct stats *stats;
    uint64_t parts;   /* latency: a sample is what was timed, divided by this */
    uint64_t begin;   /* of the interval being measured; reports are not in it */
    uint64_t elapsed; /* of the intervals before */
    uint64_t next;    /* when to look up from the loop */
    uint64_t look, looked, interval, reported, duration;
    uint64_t done, reported_done, reported_elapsed; /* confirmed; and at the last report */
    struct interference before;                     /* when measuring began */
};

/* What the report wants. */
struct run_output {
    struct report *report; /* NULL: there is none */
    struct progress progress;
    struct series series;
    struct result result;
    unsigned sums;                 /* of the result */
    uint64_t operations;           /* of all sizes so far */
    struct run_counters *counters; /* NULL: nobody asked for them */
};

struct run {
    struct fabric *handle;
    int (*verb)(struct fabric *fabric, const struct xfer *xfer); /* posts xfer */
    struct xfer xfer;
    struct inflight flight;
    const struct op *op;
    const struct fabric_ops *fabric;
    const struct spec *spec; /* settled */
    size_t size;
    struct slots slots;
    size_t receive_at; /* where the half to receive into begins, in both buffers; 0: no halves */
    const char *inbox; /* where what the other end writes is looked for; NULL: in a GPU's memory */
    unsigned legs;
    bool verify; /* of the spec, near at hand */
    struct nap nap;
    struct run_pieces pieces;
    _Alignas(16) char own[192]; /* the op's */
    struct meter meter;
    const struct method *method;
    struct session *session;
    struct run_output out;
};

/* ---- operations: inflight.c ---- */

enum {
    LONG_BYTES = 1 << 20, /* from here on a poll may take long: each one looks at the clock */
    POLLS_PER_CLOCK = 64  /* below that: polls that find nothing, until the clock is looked at */
};

/* Starts the operation: DONE, LATER, -EAGAIN or -errno. */
static inline int run_post(struct run *run)
{
    return run->op->post ? run->op->post(run) : run->verb(run->handle, &run->xfer);
}

/* The rest of an operation that was not done at once, to its end. */
int run_finish(struct run *run, int got);

/* One operation to its end: what the latency method times. */
static inline int run_once(struct run *run)
{
    int got = run_post(run);
    return got == DONE ? 0 : run_finish(run, got);
}

/* An operation beside what is measured, to its end; its id becomes ID_ASIDE. */
int run_aside(struct run *run, int (*verb)(struct fabric *fabric, const struct xfer *xfer),
              struct xfer *xfer);

/* After a look that found nothing: takes turns where it must, and otherwise if it takes long; then
 * it also looks at the other end and at the time. Where waits sleep it arms, so that the caller
 * looks once more, and then sleeps.
 */
int run_backoff_slowly(struct run *run, struct backoff *backoff);
static inline int run_backoff(struct run *run, struct backoff *backoff)
{
    if (++backoff->polls % POLLS_PER_CLOCK && !run->nap.on && run->size < LONG_BYTES)
        return 0;
    return run_backoff_slowly(run, backoff);
}

/* Target, after a look that found so many, or failed: without any, takes turns or sleeps as above.
 * What a progress function returns. */
int run_idle_slowly(struct run *run);
static inline int run_idle(struct run *run, int found)
{
    if (!found)
        return ++run->flight.idle % POLLS_PER_CLOCK && !run->nap.on ? 0 : run_idle_slowly(run);
    run->flight.armed = false;
    run->flight.idle = 0;
    return found < 0 ? found : 0;
}

/* Which descriptor to sleep on, if the spec asks for it. */
int run_nap_open(struct run *run);

/* One poll, and what it brought, acknowledgements included; how many came, or -errno. */
int flight_poll(struct run *run);
/* What a completion means to what is under way: 0, or -errno. */
int flight_take(struct run *run, const struct completion *completion);
/* There and back, where one message is all that may come: polls for one. A message of this verb and
 * of the run's size is counted at once, in *plain too, because every instruction before the answer
 * is measured. Whatever else comes, and what is to be verified, goes the way of all completions. */
static inline int flight_poll_for(struct run *run, enum verb verb, unsigned *plain)
{
    struct completion *c = &run->flight.came;
    int got = run->fabric->poll(run->handle, c, 1);
    if (got <= 0)
        return got;
    if (c->verb != verb || c->status || c->length != run->size || run->verify) {
        int status = flight_take(run, c);
        return status ? status : got;
    }
    ++*plain;
    run->flight.arrivals++;
    run->flight.quiet = 0;
    return got;
}
/* What a call that was not done at once leaves to do; counted until it completes. */
int flight_post_slowly(struct run *run, int got);
/* Polls until no more than so many are under way, and so many not acknowledged. */
int flight_until(struct run *run, unsigned pending, uint64_t unacked);

/* What was posted is in the target's memory, also what has completed here alone. */
int flight_settle(struct run *run);

/* Posts what the verb alone is, counted in flight.pending until it completes. */
static inline int flight_post_verb(struct run *run)
{
    int got = run->verb(run->handle, &run->xfer);
    return got == DONE ? 0 : flight_post_slowly(run, got);
}

/* Posts an operation, counted in flight.pending until it completes. */
static inline int flight_post(struct run *run)
{
    int got = run_post(run);
    return got == DONE ? 0 : flight_post_slowly(run, got);
}

/* ---- long ones: attend.c ---- */

/* From here on, if the size is long, heartbeats go out while the fabric is at work. */
void attend_begin(struct run *run);
void attend_end(struct run *run);

/* ---- the time: meter.c ---- */

enum turn { TURN_ON, TURN_PAUSE, TURN_END };

/* Clock and statistics, once per run; and anew for a size. */
int meter_open(struct run *run);
void meter_close(struct run *run);
void meter_reset(struct run *run);

/* Starts the clock; stops it, where what follows is not measured, and goes on. */
void meter_start(struct run *run);
void meter_stop(struct run *run);
void meter_go_on(struct run *run);
/* At a time that is due: signs of life, and what is to be done (enum turn), or -errno. */
int meter_turn(struct run *run, uint64_t now);
/* The loops look up when the next thing is due. */
void meter_plan(struct meter *meter, uint64_t now);
/* Stops the clock, fills the result, reports unless final, and then starts it again. done:
 * iterations confirmed. */
int meter_report(struct run *run, uint64_t done, bool final);
/* Ping-pong and stream: the warm-up, by the loop that measures. It ends after its count or after
 * 100 ms; the other end follows, because it counts what comes. */
int meter_warm_up(struct run *run, int (*iterate)(struct run *run, uint64_t count, bool keep));
/* Several threads: goes on with iterations that do not count, or waits if iterate is NULL, until
 * all of them are here. So each is measured while all others run. */
int meter_until_all(struct run *run, int (*iterate)(struct run *run, uint64_t count, bool keep));
/* Whether the clock resolves what was sampled. */
void meter_judge(struct run *run);

/* A sample in picoseconds: the clock's cost subtracted once, then divided by legs and operations.
 */
static inline uint64_t meter_sample_ps(const struct run *run, uint64_t ticks)
{
    uint64_t ps = clock_to_ps(&run->meter.clock, ticks), parts = run->meter.parts;
    ps = ps > run->meter.clock.cost_ps ? ps - run->meter.clock.cost_ps : 0;
    return parts == 1 ? ps : (ps + parts / 2) / parts;
}

/* ---- round trips, one after the other: roundtrip.c ---- */

enum { ROUNDTRIP_ROW = 8 };

struct roundtrips {
    uint64_t *buckets;   /* NULL: samples are not kept */
    uint64_t sent, lead; /* when the last message went; how long the first one took to go */
    uint64_t held;       /* the newest sample, if there is one */
    uint64_t usual;      /* about what those before it were */
    uint64_t below;      /* what is short, in ticks */
    unsigned row;        /* so many were short one after the other: at ROUNDTRIP_ROW, they are timed
                            from sending to sending */
    bool holds;          /* there is a newest sample */
    bool after;          /* sent was read after the sending */
};

/* The time before a sending, unless after is set; and the time after it, if row is full. */
void roundtrip_before(struct roundtrips *r, uint64_t now);
void roundtrip_after(struct roundtrips *r, uint64_t now);
/* The last answer is here: its sample takes the sending of the first message, because its own was
 * that of the sample before it. Without sent, there is no such answer. */
void roundtrip_end(struct roundtrips *r, uint64_t now);

/* ---- counters of network devices, around a size and never within: counters.c ---- */

/* Once per run, if the spec asks for them: -EINVAL at both ends where neither has one that is
 * listed. */
int run_counters_open(struct run *run);
void run_counters_close(struct run *run);
/* Before a size; after it, when nothing is under way, and tells the other end: fills the result's.
 */
void run_counters_begin(struct run *run);
int run_counters_end(struct run *run);

/* As lines, and from those of the other end, which are checked: -EPROTO. */
int counters_write(const struct counters *counters, struct msg *text);
int counters_parse(struct counters *counters, const struct msg *text);

/* ---- after a size: figures.c ---- */

/* What each end used, and, of ends that both measured, what came of it: fills the result's. */
int run_swap_figures(struct run *run, bool initiates, uint64_t cpu_ns);

/* ---- the target ---- */

/* Answers what is asked until the initiator is done. progress, if not NULL, is called meanwhile.
 * *count: how many messages the initiator has sent. */
int run_serve(struct run *run, int (*progress)(void *run), uint64_t *count);
/* A progress that only polls; NULL where the fabric needs none for this op. */
int (*run_progress(const struct run *run))(void *run);

/* ---- data ---- */

/* The hints asked for that hold for this op, fabric and size, with the data layout. */
unsigned run_hints(const struct run *run);

/* Where the half to receive into begins, and how long a buffer is. */
size_t run_receive_at(const struct spec *spec);
size_t run_buffer_bytes(const struct spec *spec);

/* Asks the other end over the control connection; answer must be this, if not NULL. */
int run_ask(struct run *run, const char *key, uint64_t number, const char *good,
            struct msg *answer);

/* Data that says where it belongs: filled for iteration number, and found again. */
int pattern_fill(struct run *run, uint64_t number, size_t at, size_t size);
int pattern_check(struct run *run, uint64_t number, size_t at, size_t size);
/* The same for every place of a list: an iteration is a list there. */
int slots_fill(struct run *run, uint64_t number, size_t at);
int slots_check(struct run *run, uint64_t number, size_t at);
/* In iteration number, the data of iteration 0. */
int slots_check_first(struct run *run, uint64_t number, size_t at);
int pattern_compare(struct run *run, uint64_t number, const void *bytes, size_t size);

/* A plain model of the atomics, to check a fabric's by: target becomes what it should be. */
void model_apply(enum amo_op op, enum amo_type type, enum amo_compare compare, void *target,
                 const void *operand, const void *compare_with);

/* A small whole number as a value of a type. */
void model_number(enum amo_type type, unsigned number, void *value);

/* ---- the session's parts, each made only if what is there does not do: session.c ---- */

int session_open_fabric(struct session *session, const struct opened *wanted);
/* This end's buffer, exposed; forgets the other end if it has to be another one. */
int session_place(struct session *session, const char *memory, size_t length);
int session_connect(struct session *session);
/* Forgets the other end on the fabric. */
void session_unlink(struct session *session);
/* Closes the fabric and frees the memory; the session can be used again. */
int session_release(struct session *session, int status);

/* ---- several threads: threads.c ---- */

/* On which CPUs this end's threads run, from now on; this one goes near the NIC if it is asked to.
 */
int session_pin(struct session *session, const struct cpu_list *asked);
/* Where the spec asks for several, the others open and place what this session has; those of an
 * earlier run are used again if they are as many. ends: so many measure on this machine at once;
 * group: they are ranks. */
int threads_ready(struct session *session, const struct spec *spec, const char *memory,
                  unsigned ends, bool group);
/* A run by all of them: report is given the sum. */
int threads_measure(struct session *session, const struct spec *spec, struct report *report);
void threads_end(struct session *session);

/* ---- what a server grants: grant.c ---- */

/* May this device be opened, whichever end named it? */
int grant_fabric(const struct session *session, const struct offer *offer, const char *device);
/* Are the client's timeout and memory within the server's bounds? memory: this end's kind. */
int grant_amounts(const struct bounds *most, const struct spec *spec, const char *memory);

/* ---- before a run: can.c ---- */

/* Can this fabric do what the spec asks? In a sentence if not. */
int session_can(const struct session *session, const struct spec *spec);

/* The layout, where none was asked for: the first that the fabric has for the sizes. */
int session_layout(const struct session *session, const struct spec *spec);

#endif
