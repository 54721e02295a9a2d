/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside tool: the server that --local starts. */
#ifndef WEFT_TOOL_LOCAL_H
#define WEFT_TOOL_LOCAL_H

#include "core/core.h"

#include <sys/types.h>

struct local {
    pid_t pid;  /* 0: none */
    int out;    /* its standard output, dropped */
    int errors; /* what it said on standard error */
    int code;   /* its exit code, once it has ended */
};

/* The server's command line, as exec wants it. */
enum { ARGUMENTS = 24 };
struct arguments {
    char *list[ARGUMENTS + 1];
    int n;
    size_t used;
    char text[1024];
};
void arguments_begin(struct arguments *arguments);
void argument(struct arguments *arguments, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts this process, the client, on the first CPU requested for or on one of a pair, and says which
 * is the server's; -1: any. */
int local_place(const int64_t request[2], int64_t *server);

/* Starts this program again as a server and waits until it listens on *port. A server that cannot
 * be reached after that is dead: --wait does not apply. */
enum { LOCAL_WAIT_MS = 500 };
int local_start(struct local *local, const struct arguments *arguments, unsigned *port);

/* Sees to it that it has ended, or leaves it behind if nothing ends it. Returns the status, with
 * its sentence. */
int local_end(struct local *local, int status);

/* Says why it failed, in the server's own words if we know nothing better; local may be NULL.
 * Returns the exit code. */
int local_failure(const struct local *local, int status);

#endif
