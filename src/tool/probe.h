/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside tool: what may hang, crash or print, such as a vendor's library, done by a child with a
 * deadline. */
#ifndef WEFT_TOOL_PROBE_H
#define WEFT_TOOL_PROBE_H

#include "core/core.h"

#include <stdio.h>

struct probe {
    char *text; /* what work wrote, as far as it came */
    char *said; /* what was printed meanwhile on its standard output and error */
};

/* Runs work in a child. -ETIMEDOUT if it does not end within the limit, -ECHILD if it crashes, and
 * a sentence. Whatever it returns, the probe is to be freed. */
int probe_run(struct probe *probe, void (*work)(const void *arg, FILE *out), const void *arg,
              uint64_t limit_ms);
void probe_free(struct probe *probe);

#endif
