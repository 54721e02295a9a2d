/* SPDX-License-Identifier: BSD-3-Clause */
/* Members of an end that measure together: who is there, and what ends all of them. */
#include "bench/team.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

enum { LOOK_MS = 20, BEGIN_MS = 10000 };
enum lost { NOBODY, CLAIMED, LOST };

int team_join(struct team_member *m, struct team *team, unsigned number)
{
    m->report = (struct report){&team_ops};
    m->team = team;
    m->number = number;
    m->devices = 1;
    if (number)
        return 0;
    int status = stats_open(&m->merged, 0);
    m->list = calloc(team->count, sizeof *m->list);
    m->counters = calloc((size_t)2 * team->count, sizeof *m->counters);
    if (!status && (!m->list || !m->counters))
        status = fail(-ENOMEM, "no memory for the sum of %u", team->count);
    if (status)
        team_quit(m);
    return status;
}

void team_quit(struct team_member *m)
{
    if (m->merged)
        stats_close(m->merged);
    free(m->list);
    free(m->counters);
    m->merged = NULL;
    m->list = NULL;
    m->counters = NULL;
    m->team = NULL;
}

int team_meet(struct team_member *m, struct peer *peer)
{
    int met = team_ops.meet(&m->report, true);
    while (!met) {
        met = peer_alive(peer);
        poll(NULL, 0, 1);
        if (!met)
            met = team_ops.meet(&m->report, false);
    }
    return met < 0 ? met : 0;
}

/* ---- failures ---- */

int team_lose(struct team_member *m, unsigned by, int status)
{
    struct team *team = m->team;
    int nobody = NOBODY;
    if (atomic_compare_exchange_strong(&team->lost, &nobody, CLAIMED)) {
        team->status = status;
        team->by = by;
        snprintf(team->why, sizeof team->why, "%s", fail_reason());
        atomic_store(&team->lost, LOST);
    }
    return status;
}

/* Threads have one connection: what the other end did is not one thread's. */
static bool of_all(const struct team *team)
{
    bool other =
        team->status == -ECONNRESET || team->status == -ETIMEDOUT || team->status == -EREMOTEIO;
    return team->status == -EINTR || (team->threads && other);
}

bool team_lost(const struct team_member *m, int *status)
{
    const struct team *team = m->team;
    if (atomic_load(&team->lost) != LOST)
        return false;
    if (team->by == m->number || of_all(team))
        *status = fail(team->status, "%s", team->why);
    else
        *status =
            fail(team->status, "%s %u: %s", team->threads ? "thread" : "pair", team->by, team->why);
    return true;
}

static void look_at(struct team_member *m, unsigned number, uint64_t now_ms)
{
    const struct team_slot *slot = &m->team->slots[number];
    uint64_t seen_ms = atomic_load(&slot->seen_ms), most_ms = m->timeout_ms;
    if (!seen_ms && most_ms < BEGIN_MS)
        most_ms = BEGIN_MS;
    seen_ms = seen_ms ? seen_ms : m->team->begun_ms;
    if (!seen_ms || now_ms < seen_ms || now_ms - seen_ms <= most_ms || atomic_load(&slot->over))
        return;
    fail(-ETIMEDOUT, "no sign of life of its %s here for %g s",
         m->team->threads ? "thread" : "process", (double)most_ms / 1000);
    team_lose(m, number, -ETIMEDOUT);
}

int team_watch(void *arg)
{
    struct team_member *m = arg;
    uint64_t now_ms = clock_ms();
    int status = 0;
    if (!m->team)
        return 0;
    atomic_store(&team_own(m)->seen_ms, now_ms);
    /* A keepalive's thread may ask too: one of the two looks. */
    uint64_t looked_ms = __atomic_load_n(&m->looked_ms, __ATOMIC_RELAXED);
    bool due = now_ms - looked_ms >= LOOK_MS &&
               __atomic_compare_exchange_n(&m->looked_ms, &looked_ms, now_ms, false,
                                           __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < m->team->count && due; i++) {
        if (m->look)
            m->look(m, i);
        if (i != m->number)
            look_at(m, i, now_ms);
    }
    return team_lost(m, &status) ? status : 0;
}
