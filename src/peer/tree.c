/* SPDX-License-Identifier: BSD-3-Clause */
/* The tree of a group: its connections, and who is lost. A member looks at them in its turns only.
 * Who waits sends heartbeats both ways, so silence is that of a member which does not wait: it may
 * be away for as long as the turn allows, and the timeout. */
#include "peer/tree.h"
#include "core/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLICE_MS = 50, ENDED_MS = 50 };

static uint32_t parent_of(uint32_t place)
{
    return (place - 1) / FANOUT;
}

struct link *tree_link(const struct group *g, uint32_t rank)
{
    for (uint32_t i = 0; i < g->links_count; i++)
        if (g->links[i].rank == rank)
            return &g->links[i];
    return NULL;
}

/* ---- who leaves ---- */

void tree_part(struct group *g, struct channel *c, const char *why)
{
    if (why)
        channel_farewell(c, -ECONNABORTED, why);
    if (g->parting_count == g->parting_room) {
        uint32_t room = g->parting_room ? 2 * g->parting_room : FANOUT;
        struct parting *parting = realloc(g->parting, room * sizeof *parting);
        if (!parting) {
            channel_close(c);
            return;
        }
        g->parting = parting;
        g->parting_room = room;
    }
    g->parting[g->parting_count++].channel = c;
}

static void see_off(struct group *g)
{
    uint64_t now_ms = clock_ms();
    for (uint32_t i = 0; i < g->parting_count;) {
        struct channel *c = g->parting[i].channel;
        c->have = c->checked = 0; /* nobody reads it */
        if (channel_ready(c, FRAME_BEAT) >= 0 && now_ms - c->told_ms < g->spec.timeout_ms) {
            i++;
            continue;
        }
        channel_close(c);
        g->parting[i] = g->parting[--g->parting_count];
    }
}

/* ---- who is lost ---- */

static void cut(struct group *g, struct link *l, const char *why)
{
    tree_part(g, l->channel, why);
    bytes_free(&l->in);
    *l = g->links[--g->links_count];
}

static const char closed[] = "its connection was closed";

int tree_strike(struct group *g, uint32_t rank, const char *reason)
{
    const struct group_watch *watch = &g->spec.watch;
    char ended[GROUP_REASON];
    /* The connection of a process that dies is closed a moment before it can be waited for. */
    if (watch->ended && !g->members[rank].dead && strcmp(reason, closed) == 0 &&
        watch->ended(watch->arg, rank, ENDED_MS, ended))
        reason = ended;
    struct member *m = &g->members[rank];
    struct link *l = tree_link(g, rank);
    if (l)
        cut(g, l, reason);
    m->got = true;
    if (m->dead)
        return 0;
    m->dead = true;
    struct group_death *d = &g->deaths[g->deaths_count++];
    *d = (struct group_death){.rank = rank, .round = g->round};
    snprintf(d->reason, sizeof d->reason, "%s", reason);
    text_clean(d->reason);
    return 0;
}

/* The root strikes, others tell it with their next message: that of this turn, if it is not sent.
 */
static int miss(struct group *g, uint32_t rank, const char *reason)
{
    struct link *l = tree_link(g, rank);
    if (g->spec.root)
        return tree_strike(g, rank, reason);
    if (l)
        cut(g, l, reason);
    const struct record loss = {
        .type = RECORD_LOSS, .rank = rank, .bytes = reason, .length = strlen(reason)};
    return record_add(g->collects ? &g->up : &g->losses, &loss);
}

/* The last error message, as others are to read it. */
static void reason_of(const struct channel *c, int status, char reason[GROUP_REASON])
{
    if (status == -ETIMEDOUT)
        snprintf(reason, GROUP_REASON, "silent for %g s", (double)c->peer.timeout_ms / 1000);
    else if (status == -ECONNRESET)
        snprintf(reason, GROUP_REASON, "%s", closed);
    else
        snprintf(reason, GROUP_REASON, "%.*s", GROUP_REASON - 1, fail_reason());
}

/* ---- children ---- */

static bool is_child(const struct group *g, uint32_t rank)
{
    uint32_t place = g->members[rank].place;
    return place != NOBODY && place && parent_of(place) == g->place;
}

bool tree_attached(const struct group *g)
{
    for (uint32_t place = g->place * FANOUT + 1;
         place <= g->place * FANOUT + FANOUT && place < g->came; place++)
        if (!g->members[g->rank_at[place]].dead && !tree_link(g, g->rank_at[place]))
            return false;
    return true;
}

int tree_miss(struct group *g)
{
    int status = 0;
    for (uint32_t i = 0; i < g->links_count && !g->spec.root;)
        if (is_child(g, g->links[i].rank))
            i++;
        else
            cut(g, &g->links[i], "this is not its parent");
    for (uint32_t place = g->place * FANOUT + 1;
         !status && place <= g->place * FANOUT + FANOUT && place < g->came; place++)
        if (!tree_link(g, g->rank_at[place]))
            status = miss(g, g->rank_at[place], "it did not connect to its place in the tree");
    return status;
}

static struct link *add_link(struct group *g)
{
    if (g->links_count == g->links_room) {
        uint32_t room = g->links_room ? 2 * g->links_room : FANOUT;
        struct link *links = realloc(g->links, room * sizeof *links);
        if (!links)
            return NULL;
        g->links = links;
        g->links_room = room;
    }
    return &g->links[g->links_count++];
}

static const char *reason_for(const struct group *g, uint32_t rank)
{
    for (uint32_t i = 0; i < g->deaths_count; i++)
        if (g->deaths[i].rank == rank)
            return g->deaths[i].reason;
    return "struck";
}

static int send_pieces(struct channel *c, char kind, uint64_t turn, const struct bytes *bytes)
{
    struct msg msg;
    size_t at = 0;
    int status = 0;
    do {
        wire_piece(&msg, kind, turn, bytes, &at);
        status = peer_send(&c->peer, &msg);
    } while (!status && at < bytes->length);
    return status;
}

/* have: how many messages down it has received. The one that its dead parent kept is sent again. */
void tree_attach(struct group *g, struct channel *c, const struct msg *greeting)
{
    uint64_t rank = 0, have = 0, told = g->started ? g->turn + g->answered : 0;
    if (msg_number(greeting, "rank", &rank) || msg_number(greeting, "have", &have) ||
        rank >= g->count || rank == g->spec.rank || have > told || have + 1 < told) {
        tree_part(g, c, "this member is at another turn");
        return;
    }
    if (g->members[rank].dead) {
        tree_part(g, c, reason_for(g, (uint32_t)rank));
        return;
    }
    bool late = g->settled && !g->spec.root;
    if (late || tree_link(g, (uint32_t)rank) || g->links_count > g->count) {
        tree_part(g, c, late ? "this is not its parent" : "it is here already");
        return;
    }
    struct link *l = add_link(g);
    if (!l) {
        channel_close(c);
        return;
    }
    *l = (struct link){.channel = c, .rank = (uint32_t)rank, .have = g->members[rank].got};
    c->peer.quiet_ms = 0;
    c->peer.timeout_ms = g->spec.timeout_ms + g->allow_ms;
    if (have < told && send_pieces(c, WIRE_DOWN, told - 1, &g->down))
        cut(g, l, "it could not be told");
}

void tree_down(struct group *g)
{
    char reason[GROUP_REASON];
    for (uint32_t i = 0; i < g->links_count;) {
        struct link *l = &g->links[i];
        uint32_t rank = l->rank;
        int status = send_pieces(l->channel, WIRE_DOWN, g->turn, &g->down);
        if (status) {
            reason_of(l->channel, status, reason);
            miss(g, rank, reason);
        } else {
            i++;
        }
    }
}

/* Does the rank stand below the other, or is it that one? */
static bool below(const struct group *g, uint32_t rank, uint32_t other)
{
    uint32_t place = g->members[rank].place, top = g->members[other].place;
    if (place == NOBODY || top == NOBODY)
        return false;
    while (place > top)
        place = parent_of(place);
    return place == top;
}

static int take_record(struct group *g, const struct link *l, const struct record *r)
{
    char reason[GROUP_REASON];
    if (r->rank >= g->count || !below(g, r->rank, l->rank) || r->length > GROUP_VALUE_MAX)
        return fail(-EPROTO, "a message of the group is about a rank that is not its sender's");
    struct member *m = &g->members[r->rank];
    if (r->type == RECORD_VALUE) {
        int status = m->got ? 0 : record_add(&g->up, r);
        m->got = true;
        return status;
    }
    if (r->type != RECORD_LOSS || r->rank == l->rank)
        return fail(-EPROTO, "a message of the group has a record out of place");
    if (!g->spec.root)
        return record_add(&g->up, r);
    snprintf(reason, sizeof reason, "%.*s",
             (int)(r->length < GROUP_REASON ? r->length : GROUP_REASON - 1),
             (const char *)r->bytes);
    return tree_link(g, r->rank) ? 0 : tree_strike(g, r->rank, reason);
}

int tree_take(struct group *g, struct link *l)
{
    struct record record;
    size_t at = 0;
    int status = 0, more = 0;
    if (l->turn < g->turn) { /* an orphan's, sent again: its parent had passed it on */
        l->in.length = 0;
        return 0;
    }
    if (l->turn > g->turn || !g->started)
        return fail(-EPROTO, "a member of the group is at turn %" PRIu64 ", this one at %" PRIu64,
                    l->turn, g->turn);
    struct bytes in = l->in;
    uint32_t rank = l->rank;
    l->in = (struct bytes){0};
    l->have = true;
    const struct link from = {.rank = rank}; /* striking others may move the link */
    while (!status && (more = record_next(&in, &at, &record)) == 1)
        status = take_record(g, &from, &record);
    bytes_free(&in);
    return status ? status : more;
}

static int read_link(struct group *g, uint32_t number)
{
    struct msg msg;
    uint32_t rank = g->links[number].rank;
    for (;;) {
        struct link *l = tree_link(g, rank);
        if (!l)
            return 0;
        int status = channel_ready(l->channel, FRAME_DATA);
        if (!status)
            return peer_alive(&l->channel->peer);
        if (status < 0)
            return status;
        channel_take(l->channel, &msg);
        status = wire_feed(&msg, WIRE_UP, &l->turn, &l->in,
                           (size_t)g->count * (GROUP_VALUE_MAX / 4) + GROUP_VALUE_MAX);
        if (status == 1)
            status = tree_take(g, l);
        if (status)
            return status;
    }
}

static int read_links(struct group *g)
{
    char reason[GROUP_REASON];
    uint64_t limit_ms = turn_most_ms(g) + (LEVELS - 1) * g->spec.timeout_ms;
    bool over = g->started && g->collects && clock_ms() - g->began_ms > limit_ms;
    for (uint32_t i = 0; i < g->links_count;) {
        uint32_t rank = g->links[i].rank;
        int status = read_link(g, i);
        struct link *l = tree_link(g, rank);
        if (!l)
            continue;
        if (status == -EINTR || status == -ENOMEM)
            return status;
        if (!status && over && !l->have)
            status =
                fail(-ETIME, "it did not finish the turn within %g s", (double)limit_ms / 1000);
        if (status) {
            reason_of(l->channel, status, reason);
            status = miss(g, rank, reason);
            if (status)
                return status;
        } else {
            i++;
        }
    }
    return 0;
}

/* ---- the parent ---- */

/* Its parent is lost: from now on the root is. */
static int adopt(struct group *g, int status)
{
    char why[GROUP_REASON];
    struct msg msg;
    snprintf(why, sizeof why, "%s", fail_reason());
    channel_close(g->parent);
    g->parent = NULL;
    g->from_parent.length = 0;
    if (status == -EINTR || status == -ENOMEM)
        return status;
    if (g->adopted)
        return fail(status == -EREMOTEIO || status == -ECONNABORTED ? status : -ECONNRESET,
                    "lost the leading rank: %s", why);
    g->adopted = true;
    uint64_t have = g->started ? g->turn : 0;
    status = msg_print(&msg, "group=%s\nask=attach\nrank=%u\nhave=%" PRIu64 "\n", g->spec.id,
                       g->spec.rank, have);
    if (!status)
        status = group_ask_root(g, &msg, g->spec.timeout_ms / 2, NULL, &g->parent);
    if (status)
        return status;
    g->parent->peer.timeout_ms = g->spec.timeout_ms + g->allow_ms;
    return g->sent ? tree_up(g) : 0;
}

int tree_up(struct group *g)
{
    g->sent = true;
    int status = g->parent ? send_pieces(g->parent, WIRE_UP, g->turn, &g->up) : -ECONNRESET;
    return status ? adopt(g, status) : 0;
}

static int read_parent(struct group *g)
{
    struct msg msg;
    int status = 0;
    while (g->parent && !g->arrived && (status = channel_ready(g->parent, FRAME_DATA)) == 1) {
        channel_take(g->parent, &msg);
        status = wire_feed(&msg, WIRE_DOWN, &g->parent_turn, &g->from_parent, GROUP_DOWN_MAX);
        if (status < 0)
            break;
        g->arrived = status == 1;
    }
    if (status >= 0 && g->parent && !g->arrived)
        status = peer_alive(&g->parent->peer);
    return status < 0 ? adopt(g, status) : 0;
}

int tree_await(struct group *g, uint64_t most_ms)
{
    uint64_t since_ms = clock_ms();
    int status = 0;
    while (!status && !g->arrived) {
        status = tree_pump(g);
        if (!status && !g->arrived && clock_ms() - since_ms > most_ms)
            status =
                fail(-ETIMEDOUT, "no answer of the leading rank for %g s", (double)most_ms / 1000);
    }
    if (!status && g->parent_turn != (g->started ? g->turn : 0))
        status = fail(-EPROTO, "the leading rank is at turn %" PRIu64 ", this one at %" PRIu64,
                      g->parent_turn, g->turn);
    if (status)
        return status;
    struct bytes old = g->down;
    g->down = g->from_parent;
    g->from_parent = old;
    g->from_parent.length = 0;
    g->arrived = false;
    return 0;
}

/* ---- all of them ---- */

int tree_pump(struct group *g)
{
    size_t room = GREETING_ROOM + 2 + g->links_count;
    struct pollfd *fds = calloc(room, sizeof *fds);
    if (!fds)
        return fail(-ENOMEM, "no memory for %zu connections", room);
    nfds_t n = listener_fds(g->listener, fds);
    for (uint32_t i = 0; i < g->links_count; i++)
        fds[n++] = (struct pollfd){.fd = g->links[i].channel->fd, .events = POLLIN};
    if (g->parent)
        fds[n++] = (struct pollfd){.fd = g->parent->fd, .events = POLLIN};
    poll(fds, n, SLICE_MS);
    free(fds);
    see_off(g);
    int status = group_greet(g);
    if (!status)
        status = read_links(g);
    if (!status && g->parent)
        status = read_parent(g);
    return status;
}
