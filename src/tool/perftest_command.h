/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside tool: one run of ucx_perftest, as its client, its server and its ranks see it. */
#ifndef WEFT_TOOL_PERFTEST_COMMAND_H
#define WEFT_TOOL_PERFTEST_COMMAND_H

#include "tool/local.h"
#include "tool/perftest_batch.h"
#include "tool/perftest_show.h"
#include "tool/ranks.h"

/* What a client sends when it has no further test. */
#define PERF_GOODBYE "bye=1\n"

struct command {
    struct perftest options;
    struct opt_set set;
    struct session session;
    struct ranks ranks;      /* of a launcher without an MPI */
    struct peer *other_rank; /* of a launcher: it is left when all is said, for a launcher may end
                                this rank when the other has failed */
    bool usable;             /* the connection, after the last test */
    struct product product;  /* of batch files; of none, it is the one test of the command line */
    struct perf_show show;
    struct output_author author;
    unsigned failures, runs;
    int status;     /* of the last failure */
    unsigned verbs; /* of all tests of a batch */
    bool looks;
    const char *group; /* of columns, of the last of them */
    bool mixed;        /* they do not all have one */
    bool bounded;      /* a server, which may have strangers for clients */
    struct cpus cpus;
    unsigned threads; /* the most of any test */
    struct local local;
};

/* Usage errors of a client, reported before the server is kept waiting. */
int perf_check_client(struct command *command);
/* All tests of a client over the connection of its session. */
int perf_run_all(struct command *command);
int perf_client(struct command *command, const char *address, unsigned port);
/* A client with a server that it starts; with one that is a thread of this process. */
int perf_both(struct command *command);
int perf_loopback(struct command *command);

/* One test after the other, until the client has said goodbye. */
int perf_serve(struct command *command);
int perf_server(struct command *command);

/* As perf_device, with signs of life: a device may be looked for on every fabric there is, and
 * loading them can take seconds. */
int perf_find_device(const struct command *command, unsigned kind, const char *transport,
                     const char *device, char text[FABRIC_DEVICE_MAX]);

#endif
