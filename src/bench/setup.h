/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside bench: what every run needs before and after measuring. */
#ifndef WEFT_BENCH_SETUP_H
#define WEFT_BENCH_SETUP_H

#include "bench/bench.h"

/* Is the memory of either end on a GPU? */
static inline bool setup_any_gpu(const struct run *run)
{
    return run->vendors[0] != MEMORY_CPU || run->vendors[1] != MEMORY_CPU;
}

/* Can these verbs be had on this vendor's GPU memory? form names the fabric. */
int setup_can_gpu(const struct fabric_facts *facts, const char *form, unsigned verbs,
                  enum memory_vendor vendor);

/* Opens the fabric into the run, with signs of life meanwhile: a vendor's library can take seconds.
 */
int setup_open(struct run *run, const struct fabric_ops *fabric, const struct fabric_want *want);

/* A buffer of that kind of memory, present; where the fabric places memory itself, only noted. */
int setup_place(struct run *run, const char *memory, size_t length);

/* The fabric gets to know the buffer. */
int setup_expose(struct run *run, struct msg *key);

/* After the fabric is closed. A GPU's memory may go only when the other end has let go of it, for
 * which this waits if all went well. */
int setup_free(struct run *run, int status);

/* Addresses and keys are exchanged and the fabric connected. */
int setup_connect(struct run *run, const struct msg *key);

/* Do the two ends have to take turns on one CPU? */
int setup_compare(struct run *run);

/* Keeps the CPU's deep sleep states away, where that is allowed: a descriptor to close, or -1. */
int setup_awake(void);

/* On failure the other end is told, once. Returns the status, or a better one. */
int setup_leave(struct run *run, int status);

#endif
