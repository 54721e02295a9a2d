/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside tool: the server that --local starts. */
#ifndef WEFT_TOOL_LOCAL_H
#define WEFT_TOOL_LOCAL_H

#include "bench/session.h"
#include "core/opt.h"
#include "tool/access.h"

#include <sys/types.h>

struct local {
    pid_t pid;  /* 0: none */
    int out;    /* its standard output, dropped */
    int errors; /* what it said on standard error */
    off_t told; /* so much of that before it listened, which is no reason to fail */
    int code;   /* its exit code, once it has ended */
};

/* The server's command line, as exec wants it. */
enum { ARGUMENTS = 32 };
struct arguments {
    char *list[ARGUMENTS + 1];
    int n;
    size_t used;
    char text[4096];
};
void arguments_begin(struct arguments *arguments);
void argument(struct arguments *arguments, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Its bounds: what was asked for here is granted, unless the user limits it. */
void local_bounds(struct arguments *arguments, const struct bounds *most);

/* Which CPUs are the client's and the server's: those requested, or a pair; -1: any. The server is
 * started before this process, the client, is pinned: it inherits where it may run. */
void local_place(const int64_t request[2], int64_t cpus[2]);

/* The address of a server that nobody gave one. */
extern const char local_address[];

/* Where the two ends are, for documents: what --local chose is in the options port, bind and cpu;
 * cpus is "" if there is nothing to say of them.
 */
void local_note(struct opt_set *set, unsigned port, const char *cpus);

/* Starts this program again as a server and waits until it listens on *port. A server that cannot
 * be reached after that is dead: --wait does not apply. */
enum { LOCAL_WAIT_MS = 500 };
/* Both get a new secret, so that nobody else on this machine can take the place of either: the
 * server on a descriptor that it inherits, the client in access. */
int local_start(struct local *local, struct arguments *arguments, struct access *access,
                unsigned *port);

/* Sees to it that it has ended, or leaves it behind if nothing ends it. Returns the status, with
 * its sentence. */
int local_end(struct local *local, int status);

/* Says why it failed, in the server's own words if we know nothing better; local may be NULL.
 * Returns the exit code. */
int local_failure(const struct local *local, int status);

#endif
