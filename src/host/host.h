/* SPDX-License-Identifier: BSD-3-Clause */
/* The door of host: what this machine is, which fabrics and devices it has, and what will distort
 * results on it. `weft info` prints it. */
#ifndef WEFT_HOST_H
#define WEFT_HOST_H

#include "core/clock.h"
#include "core/machine.h"

#include <stdio.h>

/* ---- measured ------------------------------------------------------------- */

/* How long each CPU is watched, and the shortest pause that counts as a gap. */
enum { NOISE_MS = 200, NOISE_GAP_US = 10 };

/* Gaps of one CPU: pauses of a thread that only reads the clock. */
struct gaps {
    /* The CPU that was watched. */
    int64_t cpu;
    /* Number of gaps, and their total length. */
    uint64_t count, lost_ns;
    /* The longest pause, whether it counts as a gap or not. */
    uint64_t largest_ns;
    /* How long the CPU was watched. */
    uint64_t span_ns;
};

/* What else runs on this machine, measured over NOISE_MS. */
struct noise {
    /* One entry per CPU that was watched. */
    struct gaps on[2];
    /* Number of entries; 0 if nothing was measured. */
    int cpus;
    /* Time to move a cache line from one CPU to the other; 0 if not measured. */
    double line_ns;
    /* CPU time of all other processes. */
    uint64_t others_ms;
    /* Name and pid of the busiest other process, or "", and its CPU time. */
    char busiest[64];
    uint64_t busiest_ms;
    /* CPU time that the hypervisor gave to other virtual machines. */
    uint64_t steal_ms;
};

/* Watches the first `usable` CPUs of the pair, 0 to 2, for NOISE_MS, then measures cache line
 * transfers between two. Takes about 300 ms. */
void noise_measure(struct noise *noise, const int64_t pair[2], int usable);

/* ---- the state of this machine --------------------------------------------- */

/* A clock of the tools. */
struct host_clock {
    /* False if this CPU does not have it; then clock is not filled. */
    bool available;
    struct clock clock;
};

/* What the sections and checks read. */
struct host_state {
    /* Stands before every path below /proc, /sys and /dev: "", or a folder that shows another
     * machine to a test. */
    const char *root;
    /* Print details of every device: sizes, atomics, what completion proves. */
    bool verbose;
    /* Names, versions and limits; sockets, cores and NUMA nodes. */
    struct machine machine;
    struct topology topology;
    /* The CPUs that the tools choose, the client's first, and the number of CPUs they chose from.
     */
    int64_t pair[2];
    int usable;
    /* By enum clock_kind. */
    struct host_clock clocks[CLOCK_CYCLES + 1];
    /* Filled by host_print_text and host_print_json. */
    struct noise noise;
};

/* Reads machine, topology, CPUs and clocks below state->root. Files that cannot be read leave their
 * members 0 or "". */
void host_look(struct host_state *state);

/* Both write everything known about the machine to out: first what host_look found, then devices
 * and fabrics, which are asked by child processes with deadlines, then noise, which they measure,
 * then what was found to distort results. Write errors stay in out for the caller to check. */
void host_print_text(struct host_state *state, FILE *out);
void host_print_json(struct host_state *state, FILE *out);

#endif
