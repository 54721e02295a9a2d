/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside tool: ucx_perftest's options and tests. */
#ifndef WEFT_TOOL_PERFTEST_H
#define WEFT_TOOL_PERFTEST_H

#include "tool/access.h"
#include "tool/cpus.h"
#include "tool/output.h"

/* Which rows may stand in a line of a batch file, which only on the command line, and which of
 * both have no effect at a server. */
enum { PERF_TEST = 1, PERF_RUN = 2, PERF_CLIENT = 4 };
enum { PERF_MEMORY = 40, PERF_RANK = 16 }; /* room for -m and -R */
/* Choices. */
enum { PERF_FORM_UCX = 2, PERF_MPI_OFF = 1, PERF_MPI_ON = 2 };
enum { PERF_STREAM_LENDS = 2, PERF_WAIT_SLEEP = 2 };
extern const char *const perf_errors[];
extern const char *const perf_layouts[]; /* first those of the fabrics */

struct perftest {
    struct spec spec; /* first: rows `of` the spec's fill it */
    struct output_request output;
    int test; /* choice: 1 + place in perf_tests */
    char device[FABRIC_DEVICE_MAX], transport[FABRIC_DEVICE_MAX];
    char cpu[CPUS_TEXT]; /* as cpus.h has it */
    int thread_mode;     /* accepted: every thread has a handle of its own */
    uint64_t port, wait_s, outstanding;
    int wait_mode, stream_mode, form, mpi, layout; /* choices */
    struct opt_amounts size;                       /* of the pieces of a message */
    struct opt_range sizes;                        /* min is 0: -s */
    char rank[PERF_RANK];                          /* "": the median */
    int errors;                                    /* choice: -e */
    bool registered, nonblock, protocols;          /* -z, -B, -X */
    bool ipv6, quiet;
    bool grouped, final_only, csv, loop, local, loopback, list, help, version;
    char batch[4096], bind[256];
    struct access access;
    char memory[PERF_MEMORY]; /* the client's, or the client's and the server's */
    struct bounds most;       /* a server's */
    const char *address;
};

/* A test by name. */
struct perf_test {
    const char *name, *what;
    const char *op, *method;
    const char *amo;      /* of op atomic */
    unsigned kind;        /* bits of what follows */
    uint64_t outstanding; /* unless -O says so */
};
/* UCP: of UCX's protocol layer; LAYER: transports of UCX's that are named are that layer's. */
enum { PERF_FETCHES = 1, PERF_SYNC = 2, PERF_LAYER = 4, PERF_UCP = 8 | PERF_LAYER };

#define PERF_TEST_ROW(test_name, test_op, test_method, test_amo, test_kind, most, words)           \
    {.name = #test_name,                                                                           \
     .what = (words),                                                                              \
     .op = (test_op),                                                                              \
     .method = (test_method),                                                                      \
     .amo = (test_amo),                                                                            \
     .kind = (test_kind),                                                                          \
     .outstanding = (most)},
#define PERF_TEST_NAME(test_name, test_op, test_method, test_amo, test_kind, most, words)          \
#test_name,

extern const struct perf_test perf_tests[]; /* of tests.def */
extern const char *const perf_test_names[];

/* What a test says of the spec, whose size is known. */
int perf_test_apply(struct spec *spec, const struct perf_test *test);

extern const struct opt perf_rows[];

/* The help text: options of the first releases of UCX, and the others. */
int perf_help(const struct opt_set *set, struct msg *text);
int perf_help_ours(const struct opt_set *set, struct msg *text);

/* What the chosen test is; one of UCX's layer on a GPU's memory is UCX's alone. */
unsigned perf_kind(const struct perftest *o);

/* The device as fabrics are chosen by, from -x and -d; "" if neither is given. */
int perf_device(unsigned kind, const char *transport, const char *device, char *text, size_t room);

/* The options that name such a device, for sentences. */
void perf_typed(const char *device, char *text, size_t room);

/* One end's kind of memory, by its rank; -EINVAL and a sentence if there is no such kind. */
int perf_memory(const char *text, int rank, char memory[PERF_MEMORY]);

/* A server that was given a number of threads takes that one only. ask: the client's test. */
int perf_same_threads(const struct opt_set *set, const struct msg *ask);

/* What the test's name says of the spec, and what one option does to another. */
int perf_settle(struct opt_set *set);

#endif
