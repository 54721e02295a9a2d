/* SPDX-License-Identifier: BSD-3-Clause */
/* weft.h: measures how long writes, reads, sends, active messages and atomics take between two
 * ends.
 *
 * weft_run runs one test in the calling thread: it opens, connects and measures, closes everything
 * again and fills the result. The other end makes the same call, in another thread, process or
 * machine. A struct weft_bootstrap says how the two ends reach each other. Several tests in a row
 * share one open device through a struct weft_session.
 *
 * Functions return 0 or a negative errno value; weft_reason() has the sentence that goes with it.
 * Nothing here prints or exits. Every wait ends: by an answer, by the other end's death, or after
 * timeout_ms of silence.
 *
 * Structs carry their size in `bytes`, so that they can grow: set them up with weft_params_init and
 * weft_result_init, which are compiled into the program.
 */
#ifndef WEFT_H
#define WEFT_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_API __attribute__((visibility("default")))

/* "0.1.0": of the library that was linked. */
WEFT_API const char *weft_version(void);

/* The sentence of this thread's last failure; "" before the first, and after a run that did not
 * fail. */
WEFT_API const char *weft_reason(void);

/* Warnings, which do not end a test, go to sink; NULL (as at first): nowhere. */
WEFT_API void weft_warnings(void (*sink)(const char *sentence));

/* ---- what to test ---- */

enum { WEFT_PERCENTILES = 16 };

/* Names are text, as tools and documents have them; NULL: the default. Both ends must give the same
 * values, except for those marked with *, which are each end's own. */
struct weft_params {
    size_t bytes;         /* of this struct, in the program; weft_params_init sets it */
    const char *op;       /* such as "write", "read", "send", "am", "tag", "atomic";
                             default am */
    const char *method;   /* "latency": one at a time, with a gap (not am, tag). "ping-pong": there
                             and   back, the next at once (am, tag, write, atomic SUM). "stream": one
                             after the   other (not send). "list": so many posted together and waited
                             for   together, where iterations, warm-up and samples are whole lists
                             (not   am, tag). Default ping-pong */
    int both_ways;        /* stream and list: from both ends at once */
    uint64_t size;        /* of a message, an active message's header included; an atomic's type has
                             its own */
    uint64_t size_max;    /* not 0: size, twice that, ... up to this, from power of two to power of
                             two; a result for each */
    uint64_t iterations;  /* per size; 0: no limit */
    uint64_t duration_ms; /* per size; 0: no limit. latency: not 0 overrides iterations */
    uint64_t warmup; /* iterations before anything counts; ping-pong and stream: as many of them
                        as 100 ms allow */
    uint64_t gap_ns; /* latency: between two operations */
    uint64_t window; /* stream of am, tag: messages that the other end has not acknowledged */
    uint64_t outstanding; /* stream: operations under way whose completion is waited for */
    const char *layout;   /* ping-pong and stream: "short", "bcopy", "zcopy"; NULL: the first that
                             the fabric has for the size */
    uint64_t am_header;   /* of a zcopy active message: 0, or at least 8 */
    int verify;           /* check the data: outside the timing in latency, inside it otherwise */
    const char *amo_op, *amo_compare, *amo_type; /* "SUM", "EQ", "UINT64" ... */
    int fetching;                                /* the atomic brings the old value back */
    int unrestricted, no_idc, no_ll, rendezvous, matching; /* hints to the NIC, latency and list */
    uint64_t timeout_ms;  /* silence after which the other end counts as lost */
    uint64_t interval_ms; /* * ping-pong and stream: a report this often; 0: only the last */
    const char *clock;    /* "cycles" or "clock_gettime"; NULL: the best there is */
    double percentiles[WEFT_PERCENTILES]; /* * such as 99.9, in percent; the list ends with 0 */
    const char *device; /* * "soft:cxi0", "uct:posix/memory", "null:delay=5us"; NULL: that of the
                           other end, else soft if both are on one machine, else libfabric
                           over TCP. End 1 over TCP must name what does not guard its
                           memory, such as UCX, unless both have the secret */
    const char *memory; /* * "host", "2M", "1G", or a GPU's: "cuda", "rocm", "ze", "cuda:1" */
    uint64_t service;   /* * of the NIC */
    int cpu;            /* * this end runs there while it measures, thread i on cpu + i; -1:
                           anywhere */
    const volatile sig_atomic_t *stop; /* * not 0: end early, with -EINTR; may be NULL */
    uint64_t ops_per_sample; /* latency: operations, one after the other, that are timed together;
                                a sample is their mean. 1 to 1000 */
    uint64_t list;           /* list: operations that are posted and waited for together */
    uint64_t buffer_max;     /* list: bytes of a buffer; operations that do not fit share places */
    uint64_t align;          /* list: every operation's place in the buffer is a multiple of this */
    int no_hrp;              /* one more hint */
    int events;              /* waits sleep until the fabric wakes them, instead of polling */
    uint64_t threads; /* of each end, 1 to 128: thread i with thread i, each with an endpoint of its
                         own; results are sums, and samples are those of all threads */
    int tag_sync;     /* a tagged send completes when the receiver has matched it */
    int tag_wildcard; /* tagged receives take any tag */
    int tag_unexpected;   /* they are posted when their message has come, not before */
    const char *counters; /* of the ends' network devices, read before and after each size: "usual",
                             "errors", or names with commas between them; NULL: none */
    const char *pieces;   /* ping-pong and stream of tag: bytes of the pieces of a message, at most
                             32, together its size: "512,512", or "512:2"; NULL: in one */
    uint64_t piece_stride; /* from the beginning of a piece to that of the next; 0: they follow each
                              other */
    int gather, scatter;   /* sends are made of these pieces; receives are */
    const char *tunes;     /* settings of the fabric's own, such as "errors=none,registered" of ucp;
                              NULL: none */
};

/* The defaults of ucx_perftest: 8 bytes, 1,000,000 iterations, 10,000 of warm-up. */
WEFT_API void weft_params_init_sized(struct weft_params *params, size_t bytes);
static inline void weft_params_init(struct weft_params *params)
{
    weft_params_init_sized(params, sizeof *params);
}

/* ---- what came of it ---- */

/* Not a number where the method does not know it. */
struct weft_figure {
    double typical; /* the median of all iterations */
    double recent;  /* the average since the last report */
    double overall; /* the average of all of it */
};

struct weft_percentile {
    double percent;
    double us;              /* not a number where fewer than ten samples lie beyond it */
    double low_us, high_us; /* its 95 % confidence interval */
};

struct weft_histogram;
struct weft_counters;

/* What the machine did to the measuring thread meanwhile. */
struct weft_disturbance {
    uint64_t preempted, migrated, page_faults;
    uint64_t steal_ms; /* taken by a hypervisor, all CPUs together */
};

struct weft_result {
    size_t bytes; /* of this struct, in the program; weft_result_init sets it */
    int final;
    uint64_t size;
    uint64_t iterations, transferred; /* operations and bytes that the other end has */
    double elapsed_s;                 /* from the first post to the last completion, without
                                         reports; latency: not a number, gaps are in it */
    struct weft_figure latency_us;    /* ping-pong: half the round trip; stream: between two posts;
                                         latency: typical and overall */
    struct weft_figure bandwidth;     /* bytes per second; not latency */
    struct weft_figure rate;          /* messages per second; ping-pong: round trips; not latency */
    struct weft_percentile percentiles[WEFT_PERCENTILES];
    size_t percentile_count;
    double min_us, max_us, deviation_us;
    struct weft_disturbance disturbed;      /* final */
    const struct weft_histogram *histogram; /* of latency_us */
    const char *fabric;                     /* what carried it */
    const char *completion_proves;          /* what is known when an operation counts as done */
    /* Both ways, final: what the other end sent meanwhile. */
    uint64_t reverse_iterations;
    double reverse_elapsed_s;
    /* A sample is the mean of so many operations. Figures of samples below the resolution are not
     * known, only that they are below it; resolved: the median is not. */
    uint64_t samples, ops_per_sample;
    double resolution_us;
    int resolved;
    uint64_t clamped; /* samples no longer than the clock's own cost, which read 0 */
    uint64_t warmup;  /* iterations that ran before anything counted */
    const struct weft_counters *counters; /* final, if they were asked for; else NULL */
};

static inline void weft_result_init(struct weft_result *result)
{
    if (!result)
        return;
    memset(result, 0, sizeof *result);
    result->bytes = sizeof *result;
}

/* The next bucket after *at that is not empty: 1 and its bounds and count, 0 after the last, or
 * -EINVAL. Begin with *at 0. */
WEFT_API int weft_histogram_next(const struct weft_histogram *histogram, size_t *at, double *low_us,
                                 double *high_us, uint64_t *count);

/* The next counter after *at: 1, its end, device and name, and how far it came (not a number: not
 * known); 0 after the last, or -EINVAL. Begin with *at 0. */
WEFT_API int weft_counters_next(const struct weft_counters *counters, size_t *at, int *end,
                                const char **device, const char **name, double *delta);

/* Frees what the result of a run holds. Results that a report was shown hold nothing. */
WEFT_API void weft_result_free(struct weft_result *result);

/* ---- how the two ends reach each other ---- */

enum { WEFT_MESSAGE_MAX = 8208 };

struct weft_bootstrap {
    unsigned size;  /* of the group: 2 */
    unsigned index; /* 0 initiates, measures and reports; 1 is the other end */
    void *arg;
    /* Gives the other end a message of at most WEFT_MESSAGE_MAX bytes; messages stay in order.
     * 0, -EAGAIN if there is no room now, or another -errno. Does not wait. */
    int (*publish)(void *arg, const void *bytes, size_t length);
    /* 1 and the next message, 0 if there is none yet, or -errno if none will come. Does not wait:
     * barriers, deadlines and progress are made of these two by the library. */
    int (*receive)(void *arg, void *bytes, size_t room, size_t *length);
    void *ready; /* of those that the library made; else NULL */
};

/* Ready-made ones. Each may carry one test after the other, and is closed by weft_close. */

/* Two threads of one process. */
WEFT_API int weft_threads(struct weft_bootstrap pair[2]);

/* TCP: end 1 listens and waits for one end 0, which tries to reach it. If there is a secret, both
 * ends must have it: neither then talks to an end that cannot show it. */
struct weft_tcp {
    size_t bytes;        /* of this struct, in the program; weft_tcp_init sets it */
    const char *address; /* listen: NULL: that of WEFT_BIND, if it is set, else all addresses */
    unsigned port;
    uint64_t wait_ms;        /* dial: keeps trying for so long */
    const char *secret_file; /* as weft keygen makes it; NULL: the one that WEFT_SECRET names; "":
                                no secret */
    const char *allow;       /* listen: networks such as "10.0.0.0/8,::1"; NULL: everybody */
    const volatile sig_atomic_t *stop; /* not 0: end early, with -EINTR; may be NULL */
};
static inline void weft_tcp_init(struct weft_tcp *tcp)
{
    memset(tcp, 0, sizeof *tcp);
    tcp->bytes = sizeof *tcp;
}
WEFT_API int weft_tcp_listen_with(struct weft_bootstrap *bootstrap, const struct weft_tcp *tcp);
WEFT_API int weft_tcp_dial_with(struct weft_bootstrap *bootstrap, const struct weft_tcp *tcp);

/* The same with what most programs need. */
WEFT_API int weft_tcp_listen(struct weft_bootstrap *bootstrap, const char *address, unsigned port,
                             const volatile sig_atomic_t *stop);
WEFT_API int weft_tcp_dial(struct weft_bootstrap *bootstrap, const char *address, unsigned port,
                           uint64_t wait_ms, const volatile sig_atomic_t *stop);

/* The two ranks that an MPI launcher started; rank 1 is end 0. */
WEFT_API int weft_mpi_ranks(struct weft_bootstrap *bootstrap);

WEFT_API void weft_close(struct weft_bootstrap *bootstrap);

/* ---- the calls ---- */

/* report, if not NULL, is called at end 0 for every interval and for every size. result, if not
 * NULL, gets the last one, which is to be freed by weft_result_free; at end 1 it has no figures. If
 * the test cannot be run, both ends return the same reason and the bootstrap can be used again. */
WEFT_API int weft_run(const struct weft_params *params, const struct weft_bootstrap *bootstrap,
                      void (*report)(void *arg, const struct weft_result *result), void *arg,
                      struct weft_result *result);

/* One test after the other, on a device that is opened once where they can share it. Both ends open
 * a session, run the same tests in the same order, and close it. A test that cannot be run leaves
 * the session as it was; after any other failure it is over, and further tests are -ENOTCONN. */
struct weft_session;
WEFT_API int weft_session_open(struct weft_session **session,
                               const struct weft_bootstrap *bootstrap);
WEFT_API int weft_session_run(struct weft_session *session, const struct weft_params *params,
                              void (*report)(void *arg, const struct weft_result *result),
                              void *arg, struct weft_result *result);
WEFT_API void weft_session_close(struct weft_session *session);

#ifdef __cplusplus
}
#endif

#endif
