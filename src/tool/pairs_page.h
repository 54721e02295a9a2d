/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside tool's pairs: what the processes of an end share. */
#ifndef WEFT_TOOL_PAIRS_PAGE_H
#define WEFT_TOOL_PAIRS_PAGE_H

#include "tool/pairs.h"

enum { PAIRS_REASON = 700 };
enum lost { NOBODY, CLAIMED, LOST };

/* What one pair's process writes, for the others of its end. */
struct pairs_slot {
    int64_t cpu; /* written by pair 0 */
    char device[sizeof((struct part *)0)->device];
    atomic_uint arrived, rows;
    atomic_ullong seen_ms; /* 0: it has not begun */
    atomic_bool over;      /* it ended well */
    struct part part;
    struct result result; /* its pointers are of no use to others */
    struct stats stats;
    struct counters counters[2]; /* if the result has some */
};

struct pairs_page {
    uint64_t length;
    unsigned count;
    pid_t parent;
    uint64_t begun_ms, timeout_ms;
    char address[256], ticket[PEER_TICKET];
    unsigned port;
    bool held;
    struct secret secret;
    atomic_int lost;
    int status; /* of the pair that failed first */
    unsigned by;
    char why[PAIRS_REASON];
    struct pairs_slot slots[];
};

static inline struct pairs_slot *pairs_own(const struct pairs *p)
{
    return &p->page->slots[p->number];
}

/* The first to fail says why for all; returns the status. */
int pairs_lose(struct pairs *pairs, unsigned by, int status);
/* That, as this process's error message. */
int pairs_reason(const struct pairs *pairs);

/* Has the process that pair 0 started for another pair ended, or was it stopped? */
bool pairs_rests(const struct pairs *pairs, unsigned number);

/* Meetings and the sum: pairs_sum.c. */
extern const struct report_ops pairs_ops;

#endif
