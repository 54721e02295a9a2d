/* SPDX-License-Identifier: BSD-3-Clause */
/* A door of bench: several members of one end that measure together, each with a session of its
 * own: threads (threads.c) or processes (tool's pairs). They share a struct team, in memory that
 * all of them see: where they meet, what each measured, and why the first of them failed, which
 * ends all. Nothing here is timed: between two meetings it is not touched. */
#ifndef WEFT_TEAM_H
#define WEFT_TEAM_H

#include "bench/session.h"

enum { TEAM_MOST = 128, TEAM_REASON = 700 };

/* What a member has so far, while it measures. */
struct team_interim {
    unsigned turn; /* how many of this size; 0: none */
    struct result result;
    struct stats stats;
};

/* What one member writes, for the others of its end. Pointers in it are of no use to others. */
struct team_slot {
    int64_t cpu; /* both are written before the member begins */
    char device[sizeof((struct part *)0)->device];
    atomic_uint arrived, rows;
    atomic_ullong seen_ms; /* 0: it has not begun */
    atomic_bool over;      /* it ended well */
    struct part part;
    struct result result;
    struct stats stats;
    struct counters counters[2]; /* if the result has some */
    struct team_interim now;     /* threads: under the team's lock */
};

struct team {
    unsigned count;
    bool threads;         /* of one process, with one connection; otherwise processes */
    pthread_mutex_t lock; /* threads */
    uint64_t begun_ms;
    atomic_int lost;
    int status; /* of the member that failed first */
    unsigned by;
    char why[TEAM_REASON];
    struct team_slot slots[];
};

static inline size_t team_bytes(unsigned count)
{
    return sizeof(struct team) + count * sizeof(struct team_slot);
}

/* One of them, where it is. */
struct team_member {
    struct report report; /* measure with this: it hands in what this member measured, and member 0
                             passes the sum on */
    struct report *sum;   /* member 0: to here; NULL: nowhere */
    struct team *team;    /* NULL: it is alone */
    unsigned number, devices; /* this one; all of them are on so many devices */
    uint64_t looked_ms, timeout_ms;
    /* Processes, member 0: looks whether another has ended; can it hand in nothing any more? */
    void (*look)(struct team_member *member, unsigned number);
    bool (*rests)(const struct team_member *member, unsigned number);
    struct result held;    /* member 0: of a run cut short, its own row */
    bool cut_short, begun; /* begun: the sum's report knows of the run */
    struct stats *merged;
    struct part *list;
    struct parts parts;
    struct counters *counters; /* of both ends, once for all members on the same devices */
};

/* number 0 also makes the sum. After a failure there is nothing to close. */
int team_join(struct team_member *member, struct team *team, unsigned number);
void team_quit(struct team_member *member);

static inline struct team_slot *team_own(const struct team_member *member)
{
    return &member->team->slots[member->number];
}

/* Waits until all members have come here; peer is this one's other end. */
int team_meet(struct team_member *member, struct peer *peer);

/* For every wait, a struct peer_watch's: the failure of another member. */
int team_watch(void *member);

/* The first to fail says why for all; returns the status. */
int team_lose(struct team_member *member, unsigned by, int status);
/* Has one failed? Then *status is its, and its sentence is this thread's error message. */
bool team_lost(const struct team_member *member, int *status);

/* Meetings and the sum: team_sum.c. */
extern const struct report_ops team_ops;

#endif
