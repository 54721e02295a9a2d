/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside tool: what `weft info` looks at, measures and finds. Every function that looks at files
 * takes them from below sight.root, so that tests can show another machine. */
#ifndef WEFT_TOOL_INFO_H
#define WEFT_TOOL_INFO_H

#include "core/clock.h"
#include "core/machine.h"
#include "report/report.h"

/* ---- how it is laid out ---- */

/* Text for people, JSON, or lines "NAME\tTEXT" for the parent of a child. */
enum page_form { PAGE_TEXT, PAGE_JSON, PAGE_LINES };
struct page {
    enum page_form form;
    FILE *out;
    struct json json; /* of PAGE_JSON */
    bool begun;       /* a section has been */
};

/* key is the name of the section in JSON, where it is an object or, by its bracket, a list. */
void page_section(struct page *page, const char *title, const char *key, char bracket);
void page_end(struct page *page, char bracket);
void page_fact(struct page *page, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

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
void devices_gpus(const struct sight *sight, struct page *page);
void devices_network(const struct sight *sight, struct page *page);

/* Every fabric, each looked at by a child. */
void fabrics_show(const struct sight *sight, struct page *page);

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

/* All findings, the worse first. */
void hurts_show(const struct sight *sight, struct page *page);

#endif
