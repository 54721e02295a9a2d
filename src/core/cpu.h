/* SPDX-License-Identifier: BSD-3-Clause */
/* A door of core: on which CPUs this thread runs, and the other end. */
#ifndef WEFT_CPU_H
#define WEFT_CPU_H

#include "core/core.h"

/* Pins this thread, and what it starts, to a CPU. */
int cpu_pin(int64_t cpu);

/* Two of the allowed CPUs, on two cores that share their last-level cache if possible. Returns the
 * number of allowed CPUs. */
int cpu_pair(int64_t pair[2]);

/* The CPUs this thread may use and the machine they are on, as lines for the other end. */
int cpu_describe(struct msg *text);

/* Must the two ends take turns on one CPU? mine and theirs are such lines. */
bool cpu_shared(const struct msg *mine, const struct msg *theirs);

/* Are they on one machine, and may the scheduler put both on one CPU? */
bool cpu_roams(const struct msg *mine, const struct msg *theirs);

#endif
