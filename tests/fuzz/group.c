/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzzes what members of a group send along the tree: messages down to a member that has not begun
 * yet, and messages up to the root. What is accepted leaves a group that is consistent. */
#include "fuzz/feed.h"
#include "peer/tree.h"

#include <stdlib.h>
#include <string.h>

enum { RANKS = 5, COUNT = RANKS + 1 };

unsigned fuzz_accepted;

static void begin(struct group *g, uint32_t rank)
{
    static struct member members[COUNT];
    static uint32_t rank_at[COUNT];
    static struct group_death deaths[COUNT];
    memset(members, 0, sizeof members);
    memset(deaths, 0, sizeof deaths);
    for (uint32_t i = 0; i < COUNT; i++)
        members[i].place = NOBODY;
    *g = (struct group){.spec = {.rank = rank, .size = RANKS, .root = !rank, .timeout_ms = 1000},
                        .count = COUNT,
                        .members = members,
                        .rank_at = rank_at,
                        .deaths = deaths};
}

static void check(const struct group *g)
{
    if (g->came > COUNT || g->deaths_count > COUNT || g->deaths_told > g->deaths_count)
        abort();
    for (uint32_t i = 0; i < COUNT; i++) {
        const struct member *m = &g->members[i];
        if (m->place != NOBODY && (m->place >= COUNT || g->rank_at[m->place] != i))
            abort();
        for (const char *at = m->node; *at; at++)
            if (text_control(at))
                abort();
    }
    for (uint32_t i = 0; i < g->deaths_count; i++)
        if (g->deaths[i].rank >= COUNT || !g->members[g->deaths[i].rank].dead)
            abort();
}

static void down(const struct msg *msg)
{
    struct group g;
    uint64_t turn = 0;
    begin(&g, 1);
    g.place = 1;
    if (wire_feed(msg, WIRE_DOWN, &turn, &g.down, 65536) == 1 && !turn_learn(&g)) {
        check(&g);
        fuzz_accepted++;
    }
    bytes_free(&g.down);
}

static void up(const struct msg *msg)
{
    struct group g;
    begin(&g, 0);
    for (uint32_t i = 0; i < RANKS; i++) {
        g.members[i].place = g.rank_at[i] = i;
        g.came++;
    }
    g.started = g.collects = true;
    g.turn = 1;
    struct link link = {.rank = 1};
    if (wire_feed(msg, WIRE_UP, &link.turn, &link.in, 65536) == 1 && !tree_take(&g, &link)) {
        check(&g);
        fuzz_accepted++;
    }
    bytes_free(&link.in);
    bytes_free(&g.up);
    bytes_free(&g.losses);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct msg msg;
    if (!size || size >= sizeof msg.bytes)
        return 0;
    memcpy(msg.bytes, data, size);
    msg.bytes[size] = '\0';
    msg.length = size;
    if (data[0] == WIRE_DOWN)
        down(&msg);
    else
        up(&msg);
    return 0;
}
