/* SPDX-License-Identifier: BSD-3-Clause */
/* A group: how its members find each other. All of them dial the root once; it tells each its
 * parent in the tree, which came before, and at last sends the table of all members down. One port
 * of each member serves the tree and its partners. */
#include "core/clock.h"
#include "peer/names.h"
#include "peer/tree.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DIAL_MS = 1000, LOOK_MS = 50 };

/* ---- open and leave ---- */

static int allocate(struct group *g)
{
    g->members = calloc(g->count, sizeof *g->members);
    g->rank_at = calloc(g->count, sizeof *g->rank_at);
    g->values = calloc(g->count, sizeof *g->values);
    g->deaths = calloc(g->count, sizeof *g->deaths);
    if (!g->members || !g->rank_at || !g->values || !g->deaths)
        return fail(-ENOMEM, "no memory for a group of %u ranks", g->count);
    for (uint32_t i = 0; i < g->count; i++)
        g->members[i].place = NOBODY;
    return 0;
}

static void release(struct group *g)
{
    free(g->members);
    free(g->rank_at);
    free(g->values);
    free(g->deaths);
    free(g->links);
    free(g->parting);
    bytes_free(&g->from_parent);
    bytes_free(&g->up);
    bytes_free(&g->losses);
    bytes_free(&g->down);
    bytes_free(&g->all);
    free(g);
}

int group_open(struct group **group, const struct group_spec *spec)
{
    bool apart = spec->root && spec->rank == spec->size;
    if (!spec->size || spec->size > GROUP_RANKS_MAX || (spec->rank >= spec->size && !apart))
        return fail(-EINVAL, "rank %u of %u: a group has 1 to %d ranks", spec->rank, spec->size,
                    GROUP_RANKS_MAX);
    struct group *g = calloc(1, sizeof *g);
    if (!g)
        return fail(-ENOMEM, "no memory for a group");
    g->spec = *spec;
    g->terms = (struct peer_terms){
        .timeout_ms = spec->timeout_ms, .stop = spec->stop, .secret = spec->secret};
    /* Members do not know whether the root measures: there is room for it. */
    g->count = spec->size + 1;
    int status = allocate(g);
    if (!status)
        status = listener_open(&g->listener, spec->bind, spec->port, GREETING_ROOM, &g->terms);
    if (status)
        release(g);
    else
        *group = g;
    return status;
}

unsigned group_port(const struct group *g)
{
    return tcp_port(g->listener);
}

/* Nothing is lost that was sent before: the other end has closed, or a moment has passed. */
static void drain(struct group *g)
{
    uint64_t since_ms = clock_ms();
    uint32_t open = g->links_count;
    while (open && clock_ms() - since_ms < LINGER_MS) {
        open = 0;
        for (uint32_t i = 0; i < g->links_count; i++) {
            struct channel *c = g->links[i].channel;
            c->have = c->checked = 0;
            open += channel_ready(c, FRAME_BEAT) >= 0;
        }
        if (open)
            poll(NULL, 0, 5);
    }
}

void group_leave(struct group *g, int status)
{
    if (!g)
        return;
    const struct kept kept = life_keep();
    const char *why = status ? kept.sentence : "it has left the group";
    int code = status ? status : -ECONNRESET;
    for (uint32_t i = 0; i < g->links_count; i++)
        channel_farewell(g->links[i].channel, code, why);
    if (g->parent)
        channel_farewell(g->parent, code, why);
    drain(g);
    for (uint32_t i = 0; i < g->links_count; i++) {
        channel_close(g->links[i].channel);
        bytes_free(&g->links[i].in);
    }
    channel_close(g->parent);
    for (uint32_t i = 0; i < g->parting_count; i++)
        channel_close(g->parting[i].channel);
    for (unsigned i = 0; i < g->early_count; i++)
        peer_close(g->early[i].peer);
    tcp_close(g->listener);
    release(g);
    life_restore(&kept);
}

/* ---- connections that come in ---- */

static void refuse(struct group *g, struct peer *peer, const char *why)
{
    tree_part(g, (struct channel *)peer, why);
}

static void keep_early(struct group *g, struct peer *peer, const struct msg *greeting)
{
    uint64_t from = 0, to = 0, ticket = 0;
    if (msg_number(greeting, "from", &from) || msg_number(greeting, "to", &to) ||
        msg_number(greeting, "ticket", &ticket) || from >= g->spec.size || to != g->spec.rank) {
        refuse(g, peer, "this is another rank");
        return;
    }
    if (g->early_count == EARLY_MAX) {
        peer_close(g->early[0].peer);
        memmove(g->early, g->early + 1, --g->early_count * sizeof g->early[0]);
    }
    g->early[g->early_count++] = (struct early){peer, (uint32_t)from, ticket};
}

static void note_member(struct group *g, uint32_t rank, const struct peer *peer,
                        const struct msg *greeting, uint64_t port)
{
    struct member *m = &g->members[rank];
    bool here = strcmp(peer->there, peer->here) == 0;
    snprintf(m->address, sizeof m->address, "%s", here ? "" : peer->there);
    if (msg_value(greeting, "node", m->node, sizeof m->node))
        m->node[0] = '\0';
    if (msg_value(greeting, "label", m->label, sizeof m->label))
        m->label[0] = '\0';
    text_clean(m->node);
    text_clean(m->label);
    m->port = (unsigned)port;
    m->place = g->came;
    g->rank_at[g->came++] = rank;
}

/* The root: a place for a new member. */
static void seat(struct group *g, struct peer *peer, const struct msg *greeting)
{
    uint64_t rank = 0, size = 0, port = 0;
    struct msg answer;
    char why[96] = "";
    if (msg_number(greeting, "rank", &rank) || msg_number(greeting, "size", &size) ||
        msg_number(greeting, "port", &port) || !port || port > UINT16_MAX)
        snprintf(why, sizeof why, "its greeting cannot be read");
    else if (!g->spec.root || g->started)
        snprintf(why, sizeof why, g->spec.root ? "it came too late" : "this is not the root");
    else if (size != g->spec.size || rank >= size)
        snprintf(why, sizeof why, "it is rank %" PRIu64 " of %" PRIu64 ", this group has %u ranks",
                 rank, size, g->spec.size);
    else if (g->members[rank].dead)
        snprintf(why, sizeof why, "rank %" PRIu64 " was struck already", rank);
    else if (g->members[rank].place != NOBODY)
        snprintf(why, sizeof why, "rank %" PRIu64 " is here already", rank);
    if (*why) {
        refuse(g, peer, why);
        return;
    }
    uint32_t parent = g->rank_at[(g->came - 1) / FANOUT];
    const struct member *p = &g->members[parent];
    if (!msg_print(&answer, "place=%u\naddress=%s\nport=%u\n", g->came, p->address, p->port) &&
        !peer_send(peer, &answer))
        note_member(g, (uint32_t)rank, peer, greeting, port);
    tree_part(g, (struct channel *)peer, NULL);
}

int group_greet(struct group *g)
{
    struct msg greeting;
    struct peer *peer = NULL;
    int status = 0;
    while ((status = listener_take(g->listener, &g->terms, &peer, &greeting)) == 1) {
        char id[GROUP_NAME] = "", ask[16] = "";
        peer->quiet_ms = 0;
        bool known = !msg_value(&greeting, "group", id, sizeof id) && strcmp(id, g->spec.id) == 0;
        if (msg_value(&greeting, "ask", ask, sizeof ask))
            ask[0] = '\0';
        if (known && strcmp(ask, "join") == 0)
            seat(g, peer, &greeting);
        else if (known && strcmp(ask, "attach") == 0)
            tree_attach(g, (struct channel *)peer, &greeting);
        else if (known && strcmp(ask, "pair") == 0)
            keep_early(g, peer, &greeting);
        else
            refuse(g, peer, known ? "its greeting cannot be read" : "this port is another group's");
    }
    return status;
}

/* ---- joining ---- */

static int dial(struct group *g, const char *address, unsigned port, uint64_t wait_ms,
                const struct msg *question, struct channel **channel)
{
    struct peer *peer = NULL;
    int status = tcp_dial(&peer, address, port, wait_ms, &g->terms);
    if (!status)
        status = peer_send(peer, question);
    if (status)
        peer_close(peer);
    else
        *channel = (struct channel *)peer;
    return status;
}

int group_ask_root(struct group *g, const struct msg *question, uint64_t wait_ms,
                   struct msg *answer, struct channel **channel)
{
    int status = dial(g, g->root_address, g->root_port, wait_ms, question, channel);
    if (status || !answer)
        return status;
    status = peer_recv(&(*channel)->peer, answer, NULL, NULL);
    channel_close(*channel);
    *channel = NULL;
    return status;
}

/* Tries one address after the other until the root answers. */
static int find_root(struct group *g, const char *addresses, unsigned port, struct msg *question,
                     struct msg *answer)
{
    uint64_t until_ms = clock_ms() + g->spec.wait_ms;
    struct channel *channel = NULL;
    int status = -ETIMEDOUT;
    g->root_port = port;
    do {
        for (const char *at = addresses; *at;) {
            size_t length = strcspn(at, ",");
            snprintf(g->root_address, sizeof g->root_address, "%.*s", (int)length, at);
            status = group_ask_root(g, question, DIAL_MS, answer, &channel);
            if (!status || status == -EINTR || status == -EACCES || status == -ENOMEM)
                return status;
            at += length + (at[length] == ',');
        }
        poll(NULL, 0, 20);
    } while (clock_ms() < until_ms && status != -EREMOTEIO);
    return status;
}

static int attach(struct group *g, const struct msg *answer)
{
    char address[GROUP_PLACE] = "";
    uint64_t place = 0, port = 0;
    struct msg greeting;
    if (msg_number(answer, "place", &place) || msg_number(answer, "port", &port) ||
        msg_value(answer, "address", address, sizeof address) || !place || place >= g->count ||
        port > UINT16_MAX)
        return fail(-EPROTO, "the leading rank's answer cannot be read");
    g->place = (uint32_t)place;
    g->adopted = place <= FANOUT;
    int status =
        msg_print(&greeting, "group=%s\nask=attach\nrank=%u\nhave=0\n", g->spec.id, g->spec.rank);
    if (status)
        return status;
    status = g->adopted ? -ENOTCONN
                        : dial(g, *address ? address : g->root_address, (unsigned)port,
                               g->spec.timeout_ms, &greeting, &g->parent);
    /* Without its parent it is the root's child. */
    if (status && status != -EINTR) {
        g->adopted = true;
        status = group_ask_root(g, &greeting, g->spec.timeout_ms, NULL, &g->parent);
    }
    return status;
}

static void local_name(const struct group *g, char node[GROUP_NAME])
{
    node[0] = '\0';
    if (g->spec.node)
        snprintf(node, GROUP_NAME, "%s", g->spec.node);
    else if (gethostname(node, GROUP_NAME - 1))
        snprintf(node, GROUP_NAME, "?");
    node[GROUP_NAME - 1] = '\0';
}

/* The table goes down; every member waits for its children before it passes it on. */
static int settle(struct group *g)
{
    uint64_t since_ms = clock_ms();
    int status = 0;
    while (!status && !tree_attached(g) && clock_ms() - since_ms < g->spec.timeout_ms)
        status = tree_pump(g);
    if (!status)
        status = tree_miss(g);
    g->settled = true;
    return status;
}

static int join_member(struct group *g, const char *addresses, unsigned port)
{
    char node[GROUP_NAME];
    struct msg question, answer;
    local_name(g, node);
    int status = msg_print(
        &question, "group=%s\nask=join\nrank=%u\nsize=%u\nport=%u\nnode=%s\nlabel=%s\n", g->spec.id,
        g->spec.rank, g->spec.size, group_port(g), node, g->spec.label ? g->spec.label : "");
    if (!status)
        status = find_root(g, addresses, port, &question, &answer);
    if (!status)
        status = attach(g, &answer);
    if (!status)
        status = tree_await(g, g->spec.wait_ms + LEVELS * g->spec.timeout_ms);
    if (!status)
        status = turn_learn(g);
    if (!status)
        status = settle(g);
    if (!status)
        tree_down(g);
    return status;
}

/* Strikes those that do not come any more. Returns how many these are. */
static uint32_t strike_ended(struct group *g)
{
    const struct group_watch *watch = &g->spec.watch;
    char reason[GROUP_REASON];
    uint32_t count = 0;
    for (uint32_t i = 0; watch->ended && i < g->spec.size; i++) {
        if (g->members[i].place != NOBODY)
            continue;
        if (!g->members[i].dead && watch->ended(watch->arg, i, 0, reason))
            tree_strike(g, i, reason);
        count += g->members[i].dead;
    }
    return count;
}

/* All that can come have come, or the time is over. */
static int await_members(struct group *g)
{
    uint32_t wanted = g->spec.size + (g->spec.rank == g->spec.size), ended = 0;
    uint64_t since_ms = clock_ms(), looked_ms = 0;
    int status = 0;
    while (!status && g->came + ended < wanted && clock_ms() - since_ms < g->spec.wait_ms) {
        status = tree_pump(g);
        if (!status && clock_ms() - looked_ms >= LOOK_MS) {
            ended = strike_ended(g);
            looked_ms = clock_ms();
        }
    }
    if (!status && g->came == 1 && ended && ended + 1 >= wanted)
        return fail(-ETIMEDOUT, "no other of %u ranks came: %s", g->spec.size,
                    g->deaths[g->deaths_count - 1].reason);
    if (!status && g->came == 1 && g->spec.size > 1)
        return fail(-ETIMEDOUT, "no other of %u ranks came within %g s", g->spec.size,
                    (double)g->spec.wait_ms / 1000);
    return status;
}

static int join_root(struct group *g)
{
    struct member *m = &g->members[g->spec.rank];
    char why[GROUP_REASON];
    local_name(g, m->node);
    snprintf(m->label, sizeof m->label, "%s", g->spec.label ? g->spec.label : "");
    m->port = group_port(g);
    m->place = 0;
    g->rank_at[g->came++] = g->spec.rank;
    int status = await_members(g);
    snprintf(why, sizeof why, "it did not come within %g s", (double)g->spec.wait_ms / 1000);
    for (uint32_t i = 0; !status && i < g->spec.size; i++)
        if (g->members[i].place == NOBODY)
            tree_strike(g, i, why);
    if (!status)
        status = settle(g);
    return status ? status : turn_start(g);
}

int group_join(struct group *g, const char *addresses, unsigned port)
{
    return g->spec.root ? join_root(g) : join_member(g, addresses, port);
}
