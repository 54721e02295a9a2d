/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside tool: the server that --local starts. */
#ifndef WEFT_TOOL_LOCAL_H
#define WEFT_TOOL_LOCAL_H

#include "tool/tool.h"

#include <sys/types.h>

struct local {
    pid_t pid;  /* 0: none */
    int out;    /* its standard output, dropped */
    int errors; /* what it said on standard error */
    int code;   /* its exit code, once it has ended */
};

/* Starts this program again as a server and waits until it listens on *port, or *stop is set. */
int local_start(struct local *local, const char *program, const struct plan *plan, bool port_given,
                const volatile sig_atomic_t *stop, unsigned *port);

/* Sees to it that it has ended. */
void local_stop(struct local *local);

/* What the server said before it died, for when we know nothing better; "" if nothing. */
const char *local_errors(struct local *local, char *text, size_t room);

#endif
