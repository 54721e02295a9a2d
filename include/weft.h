/* SPDX-License-Identifier: BSD-3-Clause */
/* weft.h: how long active messages, puts, gets and atomics take between two ends.
 *
 * weft_run runs one test in the calling thread: it allocates and connects everything itself, runs,
 * takes it down again and fills the result. The other end makes the same call, in another thread,
 * process or machine. How the two ends reach each other is said by a struct weft_bootstrap.
 *
 * Functions return 0 or a negative errno value; weft_reason() has the sentence that goes with it.
 * Nothing here prints or exits. Every wait ends: by an answer, by the other end's death, or after
 * timeout_ms of silence.
 */
#ifndef WEFT_H
#define WEFT_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_API __attribute__((visibility("default")))

/* "0.1.0": of the library that was linked. */
WEFT_API const char *weft_version(void);

/* The sentence of this thread's last failure; "" before the first, and after a weft_run that did
 * not fail. */
WEFT_API const char *weft_reason(void);

/* What should be known but does not end a test is said to sink; NULL (as at first): to nobody. */
WEFT_API void weft_warnings(void (*sink)(const char *sentence));

/* ---- what to test ---- */

enum weft_op { WEFT_AM = 1, WEFT_PUT, WEFT_GET, WEFT_ADD, WEFT_FADD, WEFT_SWAP, WEFT_CSWAP };

enum weft_mode {
    WEFT_PING_PONG = 1, /* there and back, half the time: am, put, add */
    WEFT_STREAM,        /* one after the other from end 0 */
    WEFT_STREAM_BOTH    /* from both ends at once */
};

enum weft_layout {
    WEFT_FIRST_LAYOUT =
        0,          /* the first of these that the fabric has for the operation and the size */
    WEFT_SHORT = 1, /* inside the call; not for get */
    WEFT_BCOPY,     /* copied, the source is free at once; not for atomics */
    WEFT_ZCOPY      /* from where it lies; not for atomics */
};

enum { WEFT_PERCENTILES = 16 };

struct weft_params {
    size_t bytes; /* of this struct; weft_params_init sets it */
    enum weft_op op;
    enum weft_mode mode;
    enum weft_layout layout;
    uint64_t size;        /* of a message, an active message's header included */
    uint64_t am_header;   /* of a zcopy active message: 0, or at least 8 */
    uint64_t window;      /* active messages under way that the other end has not acknowledged */
    uint64_t outstanding; /* operations under way whose completion is waited for */
    uint64_t warmup;      /* iterations before the clock starts */
    uint64_t iterations;  /* 0: no limit */
    uint64_t duration_ms; /* 0: no limit */
    uint64_t interval_ms; /* a report this often; 0: only the last */
    uint64_t timeout_ms;  /* silence after which the other end counts as lost */
    double percentiles[WEFT_PERCENTILES]; /* such as 99.9, in percent; the list ends with 0 */
    const char *device; /* "soft:cxi0", "uct:posix/memory", "null:delay=5us"; NULL: soft if both
                           ends are on one machine, else UCX or libfabric over TCP */
    const char *memory; /* "host", "2M", "1G", or a GPU's: "cuda", "rocm", "ze", "cuda:1"; this
                           end's own */
    int cpu;            /* this end runs there while it measures; -1: anywhere */
    int verify;         /* check the data; what is then timed includes the checking */
    const volatile sig_atomic_t *stop; /* not 0: end early, with -EINTR; may be NULL */
};

/* The defaults of ucx_perftest: 8 bytes, short, 1,000,000 iterations, 10,000 of warm-up. */
WEFT_API void weft_params_init(struct weft_params *params);

/* ---- what came of it ---- */

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

/* What the machine did to the measuring thread meanwhile. */
struct weft_disturbance {
    uint64_t preempted, migrated, page_faults;
    uint64_t steal_ms; /* taken by a hypervisor, all CPUs together */
};

struct weft_result {
    int final;
    uint64_t iterations, bytes;    /* that the other end has, not that were posted */
    double elapsed_s;              /* reports are not in it */
    struct weft_figure latency_us; /* ping-pong: half the round trip; stream: between two posts */
    struct weft_figure bandwidth;  /* bytes a second */
    struct weft_figure rate;       /* messages a second; ping-pong: round trips */
    struct weft_percentile percentiles[WEFT_PERCENTILES];
    size_t percentile_count;
    double min_us, max_us, deviation_us;
    struct weft_disturbance disturbed;      /* final */
    const struct weft_histogram *histogram; /* of latency_us */
    const char *fabric;                     /* what carried it */
    /* WEFT_STREAM_BOTH, final: what the other end sent meanwhile. */
    uint64_t reverse_iterations;
    double reverse_elapsed_s;
};

/* The next bucket behind *at that is not empty: 1 and its bounds and count, or 0. Begin with *at 0.
 */
WEFT_API int weft_histogram_next(const struct weft_histogram *histogram, size_t *at, double *low_us,
                                 double *high_us, uint64_t *count);

/* What the result of weft_run holds. Results that a report was shown hold nothing. */
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

/* TCP: end 1 listens (on all addresses, if address is NULL) and waits for one end 0, which tries
 * for wait_ms to reach it. stop may be NULL. */
WEFT_API int weft_tcp_listen(struct weft_bootstrap *bootstrap, const char *address, unsigned port,
                             const volatile sig_atomic_t *stop);
WEFT_API int weft_tcp_dial(struct weft_bootstrap *bootstrap, const char *address, unsigned port,
                           uint64_t wait_ms, const volatile sig_atomic_t *stop);

/* The two ranks that an MPI launcher started; rank 1 is end 0. */
WEFT_API int weft_mpi_ranks(struct weft_bootstrap *bootstrap);

WEFT_API void weft_close(struct weft_bootstrap *bootstrap);

/* ---- the call ---- */

/* report, if not NULL, is called at end 0 for every interval and at the end. result, if not NULL,
 * gets the last one, which is to be freed by weft_result_free; at end 1 it has no figures. If the
 * test cannot be run, both ends return the same reason and the bootstrap can be used again. */
WEFT_API int weft_run(const struct weft_params *params, const struct weft_bootstrap *bootstrap,
                      void (*report)(void *arg, const struct weft_result *result), void *arg,
                      struct weft_result *result);

#ifdef __cplusplus
}
#endif

#endif
