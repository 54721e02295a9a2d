/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside host: work that may hang, crash or print, such as calls into a vendor library, done in a
 * child process with a deadline. */
#ifndef WEFT_HOST_PROBE_H
#define WEFT_HOST_PROBE_H

#include "core/core.h"

#include <stdio.h>

struct probe {
    char *text;   /* what the work wrote to its out, up to where it got */
    char *output; /* what the child printed on standard output and standard error */
};

/* Work done in the child. It writes its findings to out, line by line. */
typedef void probe_work(const void *arg, FILE *out);

/* Runs work in a child process. -ETIMEDOUT if it does not end within limit_ms, -ECHILD if it
 * crashes or exits, each with a sentence. The probe must be freed whatever is returned. */
int probe_run(struct probe *probe, probe_work *work, const void *arg, uint64_t limit_ms);
void probe_free(struct probe *probe);

#endif
