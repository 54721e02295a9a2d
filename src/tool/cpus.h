/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside tool: the CPUs of ucx_perftest's threads, from -c: "0,2-4", "near", with --local
 * "CLIENT/SERVER". */
#ifndef WEFT_TOOL_CPUS_H
#define WEFT_TOOL_CPUS_H

#include "core/cpu.h"

enum { CPUS_TEXT = 1024 };

struct cpus {
    struct cpu_list ends[2]; /* by rank; only with --local is the server's its own */
};

/* text as typed, for so many threads at each end. With --local a list without a slash is for both
 * ends, the client's threads first, and what is left open is chosen. -EINVAL and a sentence. */
int cpus_read(struct cpus *cpus, const char *text, bool local, unsigned threads);

/* Both lists as they would be typed. */
void cpus_text(const struct cpus *cpus, char text[CPUS_TEXT]);

/* This thread goes to the first of the list; a list that is near the NIC waits for that. */
int cpus_pin(const struct cpu_list *list);

#endif
