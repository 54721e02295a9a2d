/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside tool: what `weft info` looks at, measures and finds. Every function that looks at files
 * takes them from below sight.root, so that tests can show another machine. */
#ifndef WEFT_TOOL_INFO_H
#define WEFT_TOOL_INFO_H

#include "bench/bench.h"

#include <stdio.h>

int info_main(int argc, char **argv);

/* ---- what is measured ---- */

enum { NOISE_MS = 200, NOISE_GAP_US = 10 };

/* What became of a loop on one CPU that did nothing but look at the clock. */
struct gaps {
    int64_t cpu;
    uint64_t count, lost_ns, largest_ns, span_ns;
};

struct noise {
    struct gaps on[2];
    int cpus;           /* of on; 0: not measured */
    double line_ns;     /* a cache line from one CPU to the other; 0: not measured */
    uint64_t others_ms; /* CPU time of everybody else meanwhile */
    char busiest[64];   /* and who used most of it, or "" */
    uint64_t busiest_ms;
    uint64_t steal_ms; /* taken by the hypervisor meanwhile */
};

/* Takes about 300 ms on the two CPUs. usable: how many there were to choose from. */
void noise_measure(struct noise *noise, const int64_t pair[2], int usable);

/* ---- what is seen ---- */

struct sight {
    const char *root;
    bool verbose;
    struct machine machine;
    struct topology topology;
    int64_t pair[2]; /* what the tools choose, client first */
    int usable;      /* CPUs */
    struct {
        bool there;
        struct clock clock;
    } clocks[CLOCK_CYCLES + 1];
    struct noise noise;
};

/* Privileges of this process: bits of CapEff in /proc/self/status. */
enum privilege { MAY_LOCK = 14, MAY_TRACE = 19 };
bool sight_may(const struct sight *sight, enum privilege what);

/* A device behind a PCIe slot, by its folder in /sys: has its link less than it could have? Then
 * says how much of what. */
bool slot_narrowed(const char *root, const char *folder, char *text, size_t room);

/* The sections on devices; they load nothing. */
void devices_gpus(const struct sight *sight, FILE *out);
void devices_network(const struct sight *sight, FILE *out);

/* Every fabric, each looked at by a child. */
void fabrics_show(const struct sight *sight, FILE *out);

/* ---- what hurts ---- */

struct finding {
    bool hint; /* worth knowing, no harm by itself */
    char what[256], mend[320];
};

/* One thing to look for. */
struct hurt {
    const char *name;
    bool hint;
    const char *why;
    /* Is it so? Then says what is so, and what to type. */
    bool (*look)(const struct sight *sight, struct finding *finding);
};

/* Each ends with a row without a name. */
extern const struct hurt hurts_cpu[], hurts_memory[];

/* Looks for one; true if it is so. */
bool hurt_found(const struct hurt *hurt, const struct sight *sight, struct finding *finding);

/* All findings, the worse first. Returns how many. */
int hurts_show(const struct sight *sight, FILE *out);

/* ---- how it is laid out ---- */

void show_section(FILE *out, const char *title);
void show_fact(FILE *out, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
