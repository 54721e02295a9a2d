/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside soft: what an end keeps for tagged messages. */
#ifndef WEFT_FABRIC_SOFT_TAG_H
#define WEFT_FABRIC_SOFT_TAG_H

#include "fabric/soft/soft.h"

/* A receive that no message has come for. */
struct soft_wanted {
    uint64_t tag, mask, id;
    char *to;
    size_t length;
    const struct fabric_pieces *pieces; /* NULL: in one */
};

/* A message that has left its line: without a receive, or with one and its bytes yet to be moved.
 */
struct soft_kept {
    uint64_t word, tag;                 /* as they came */
    const char *from;                   /* our copy, or the sender's memory */
    const struct fabric_pieces *pieces; /* in that; NULL: in one */
    size_t moved;
    struct soft_wanted to;
};

struct soft_tags {
    struct soft_wanted wanted[SOFT_RING]; /* in posting order */
    uint64_t wanted_head, wanted_tail;
    struct soft_kept kept[SOFT_KEPT];
    uint16_t free[SOFT_KEPT], waits[SOFT_KEPT], matched[SOFT_KEPT]; /* numbers of kept ones */
    unsigned free_count, wait_count;     /* those that wait: in the order in which they came */
    uint64_t matched_head, matched_tail; /* those that have found their receive */
    struct {
        bool used;
        uint64_t id, length;
    } asked[SOFT_QUEUE]; /* sends that wait for the other end to have matched, or pulled, them */
    unsigned asked_next;
    uint16_t owed[SOFT_QUEUE]; /* theirs that we have, and are yet to say so */
    uint64_t owed_head, owed_tail;
    _Alignas(8) char copies[SOFT_KEPT][SOFT_SLOT_BYTES];
};

#endif
