/* SPDX-License-Identifier: BSD-3-Clause */
/* The turns of a group: values go up the tree, the root decides, its answer goes down. */
#include "core/clock.h"
#include "peer/tree.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

/* ---- what is known ---- */

uint32_t group_rank(const struct group *g)
{
    return g->spec.rank;
}

uint32_t group_size(const struct group *g)
{
    return g->spec.size;
}

bool group_root(const struct group *g)
{
    return g->spec.root;
}

bool group_measures(const struct group *g)
{
    return g->spec.rank < g->spec.size;
}

const char *group_node(const struct group *g, uint32_t rank)
{
    return rank < g->count ? g->members[rank].node : "";
}

const char *group_label(const struct group *g, uint32_t rank)
{
    return rank < g->count ? g->members[rank].label : "";
}

void group_absent_node(const struct group *g, uint32_t rank, char node[GROUP_NAME])
{
    node[0] = '\0';
    if (g->spec.nodes && rank < g->spec.size &&
        hostlist_name(g->spec.nodes, rank, node, GROUP_NAME))
        node[0] = '\0';
}

uint32_t group_here(const struct group *g)
{
    uint32_t here = 0;
    for (uint32_t i = 0; i < g->spec.size; i++)
        here += strcmp(g->members[i].node, group_node(g, g->spec.rank)) == 0;
    return here;
}

uint32_t group_deaths(const struct group *g)
{
    return g->deaths_told;
}

const struct group_death *group_death(const struct group *g, uint32_t number)
{
    return number < g->deaths_told ? &g->deaths[number] : NULL;
}

bool group_alive(const struct group *g, uint32_t rank)
{
    for (uint32_t i = 0; i < g->deaths_told; i++)
        if (g->deaths[i].rank == rank)
            return false;
    return rank < g->spec.size;
}

/* ---- what the root tells ---- */

static int add_deaths(struct group *g)
{
    int status = 0;
    for (; !status && g->deaths_told < g->deaths_count; g->deaths_told++) {
        const struct group_death *d = &g->deaths[g->deaths_told];
        const struct record record = {.type = RECORD_DEATH,
                                      .rank = d->rank,
                                      .round = d->round,
                                      .bytes = d->reason,
                                      .length = strlen(d->reason)};
        status = record_add(&g->down, &record);
    }
    return status;
}

/* The table, in the order of places, and who did not come. */
int turn_start(struct group *g)
{
    int status = 0;
    g->down.length = 0;
    for (uint32_t place = 0; !status && place < g->came; place++) {
        const struct member *m = &g->members[g->rank_at[place]];
        char text[3 * GROUP_NAME + 3];
        int length = snprintf(text, sizeof text, "%s\n%s\n%s\n", m->address, m->node, m->label);
        const struct record record = {.type = RECORD_MEMBER,
                                      .rank = g->rank_at[place],
                                      .round = m->port,
                                      .bytes = text,
                                      .length = (size_t)length};
        status = record_add(&g->down, &record);
    }
    if (!status)
        status = add_deaths(g);
    if (status)
        return status;
    g->started = g->answered = true;
    tree_down(g);
    return 0;
}

/* Up to the end of the line, which is then the next one. */
static int take_line(const char **at, const char *end, char *text, size_t room)
{
    const char *stop = memchr(*at, '\n', (size_t)(end - *at));
    if (!stop || (size_t)(stop - *at) >= room)
        return fail(-EPROTO, "the table of the group cannot be read");
    memcpy(text, *at, (size_t)(stop - *at));
    text[stop - *at] = '\0';
    text_clean(text);
    *at = stop + 1;
    return 0;
}

static int learn_member(struct group *g, const struct record *r)
{
    const char *at = r->bytes, *end = at + r->length;
    if (g->started || r->rank >= g->count || g->came == g->count || !r->round ||
        r->round > UINT16_MAX || g->members[r->rank].place != NOBODY)
        return fail(-EPROTO, "the table of the group cannot be read");
    struct member *m = &g->members[r->rank];
    int status = take_line(&at, end, m->address, sizeof m->address);
    if (!status)
        status = take_line(&at, end, m->node, sizeof m->node);
    if (!status)
        status = take_line(&at, end, m->label, sizeof m->label);
    m->port = r->round;
    m->place = g->came;
    g->rank_at[g->came++] = r->rank;
    return status;
}

static int learn_death(struct group *g, const struct record *r)
{
    if (r->rank >= g->spec.size || g->members[r->rank].dead)
        return fail(-EPROTO, "a message of the group strikes a rank that is none");
    struct group_death *d = &g->deaths[g->deaths_count++];
    *d = (struct group_death){.rank = r->rank, .round = r->round};
    snprintf(d->reason, sizeof d->reason, "%.*s",
             (int)(r->length < GROUP_REASON ? r->length : GROUP_REASON - 1),
             (const char *)r->bytes);
    text_clean(d->reason);
    g->members[r->rank].dead = true;
    g->deaths_told = g->deaths_count;
    if (r->rank == g->spec.rank)
        return fail(-ECONNABORTED, "this rank was struck: %s", d->reason);
    return 0;
}

int turn_learn(struct group *g)
{
    struct record record;
    size_t at = 0;
    int status = 0, more = 0;
    while (!status && (more = record_next(&g->down, &at, &record)) == 1) {
        if (record.type == RECORD_MEMBER)
            status = learn_member(g, &record);
        else if (record.type == RECORD_DEATH)
            status = learn_death(g, &record);
        else if (record.type != RECORD_ANSWER || !g->started)
            status = fail(-EPROTO, "a message of the group has a record out of place");
    }
    if (!status)
        status = more;
    if (!status && !g->started && (g->place >= g->came || g->rank_at[g->place] != g->spec.rank))
        status = fail(-EPROTO, "the table of the group has another rank at this one's place");
    g->started = true;
    return status;
}

/* ---- a turn ---- */

static int begin(struct group *g, uint64_t allow_ms, uint32_t round, const struct group_value *mine)
{
    const struct record value = {.type = RECORD_VALUE,
                                 .rank = g->spec.rank,
                                 .bytes = mine ? mine->bytes : NULL,
                                 .length = mine ? mine->length : 0};
    if (value.length > GROUP_VALUE_MAX)
        return fail(-EMSGSIZE, "a value of %zu bytes, the limit is %d", value.length,
                    GROUP_VALUE_MAX);
    g->turn++;
    g->answered = g->sent = false;
    g->collects = true;
    g->began_ms = clock_ms();
    g->allow_ms = allow_ms;
    g->round = round;
    for (uint32_t i = 0; i < g->count; i++)
        g->members[i].got = g->members[i].dead || g->members[i].place == NOBODY;
    for (uint32_t i = 0; i < g->links_count; i++) {
        g->links[i].have = false;
        g->links[i].channel->peer.timeout_ms = g->spec.timeout_ms + allow_ms;
    }
    if (g->parent)
        g->parent->peer.timeout_ms = g->spec.timeout_ms + allow_ms;
    g->up.length = 0;
    int status = bytes_add(&g->up, g->losses.at, g->losses.length);
    g->losses.length = 0;
    g->members[g->spec.rank].got = true;
    return status ? status : record_add(&g->up, &value);
}

/* Does a link lead to the rank, and no dead member stand between? */
static bool covered(const struct group *g, uint32_t rank)
{
    for (uint32_t place = g->members[rank].place; place; place = (place - 1) / FANOUT) {
        uint32_t at = g->rank_at[place];
        if (g->members[at].dead)
            return false;
        if (tree_link(g, at))
            return true;
    }
    return false;
}

/* The root: are all values here? A rank that no link leads to has some time to dial. */
static bool have_all(struct group *g)
{
    uint64_t now_ms = clock_ms();
    bool all = true, over = now_ms - g->began_ms > turn_most_ms(g) + LEVELS * g->spec.timeout_ms;
    for (uint32_t i = 0; i < g->count; i++) {
        struct member *m = &g->members[i];
        if (m->got)
            continue;
        if (covered(g, i))
            m->uncovered_ms = 0;
        else if (!m->uncovered_ms)
            m->uncovered_ms = now_ms;
        if (over)
            tree_strike(g, i, "it did not finish the turn");
        else if (m->uncovered_ms && now_ms - m->uncovered_ms > g->spec.timeout_ms)
            tree_strike(g, i, "its way to the leading rank was lost");
        all = all && m->got;
    }
    return all;
}

static bool collected(struct group *g)
{
    if (g->spec.root)
        return have_all(g);
    for (uint32_t i = 0; i < g->links_count; i++)
        if (!g->links[i].have)
            return false;
    return true;
}

static int decide_all(struct group *g, group_decide decide, void *arg)
{
    struct record record;
    struct group_value answer = {0};
    size_t at = 0;
    int status = 0;
    memset(g->values, 0, g->count * sizeof *g->values);
    while (record_next(&g->up, &at, &record) == 1)
        if (record.type == RECORD_VALUE && !g->members[record.rank].dead)
            g->values[record.rank] = (struct group_value){record.bytes, record.length};
    if (decide)
        status = decide(arg, g->values, &answer);
    if (!status && answer.length > GROUP_ANSWER_MAX)
        status = fail(-EMSGSIZE, "an answer of %zu bytes, the limit is %d", answer.length,
                      GROUP_ANSWER_MAX);
    g->down.length = 0;
    if (!status)
        status = add_deaths(g);
    const struct record down = {
        .type = RECORD_ANSWER, .bytes = answer.bytes, .length = answer.length};
    if (!status)
        status = record_add(&g->down, &down);
    g->answered = !status;
    return status;
}

static void find_answer(const struct group *g, struct group_value *answer)
{
    struct record record;
    size_t at = 0;
    *answer = (struct group_value){0};
    while (record_next(&g->down, &at, &record) == 1)
        if (record.type == RECORD_ANSWER)
            *answer = (struct group_value){record.bytes, record.length};
}

int group_turn(struct group *g, uint64_t allow_ms, uint32_t round, const struct group_value *mine,
               group_decide decide, void *arg, struct group_value *answer)
{
    int status = begin(g, allow_ms, round, mine);
    while (!status && !collected(g))
        status = tree_pump(g);
    g->collects = false;
    if (!status && g->spec.root)
        status = decide_all(g, decide, arg);
    else if (!status)
        status = tree_up(g);
    if (!status && !g->spec.root)
        status = tree_await(g, turn_most_ms(g) + UINT64_C(2) * LEVELS * g->spec.timeout_ms);
    if (!status && !g->spec.root)
        status = turn_learn(g);
    if (status)
        return status;
    tree_down(g);
    if (answer)
        find_answer(g, answer);
    return 0;
}

/* ---- the table ---- */

static int gather(void *arg, const struct group_value *values, struct group_value *answer)
{
    struct group *g = arg;
    int status = 0;
    g->all.length = 0;
    for (uint32_t i = 0; !status && i < g->spec.size; i++) {
        const struct record value = {
            .type = RECORD_VALUE, .rank = i, .bytes = values[i].bytes, .length = values[i].length};
        if (values[i].bytes)
            status = record_add(&g->all, &value);
    }
    *answer = (struct group_value){g->all.at, g->all.length};
    return status;
}

int group_table(struct group *g, uint64_t allow_ms, const struct group_value *mine,
                struct group_value *table)
{
    struct group_value answer;
    struct record record;
    size_t at = 0;
    int more = 0, status = group_turn(g, allow_ms, g->round, mine, gather, g, &answer);
    if (status)
        return status;
    /* The answer is read only; record_next does not write. */
    const struct bytes all = {.at = (unsigned char *)answer.bytes, .length = answer.length};
    memset(table, 0, g->spec.size * sizeof *table);
    while ((more = record_next(&all, &at, &record)) == 1)
        if (record.rank < g->spec.size)
            table[record.rank] = (struct group_value){record.bytes, record.length};
    return more;
}

void group_patience(struct group *g, uint64_t most_ms)
{
    g->patience_ms = most_ms;
}

/* ---- pairs ---- */

/* Whoever is lost is noticed in the next turn. */
static int attend(void *arg)
{
    struct group *g = arg;
    uint64_t now_ms = clock_ms();
    if (now_ms - g->attended_ms < BEAT_MS)
        return 0;
    g->attended_ms = now_ms;
    const struct kept kept = life_keep();
    for (uint32_t i = 0; i < g->links_count; i++)
        (void)peer_alive(&g->links[i].channel->peer);
    if (g->parent)
        (void)peer_alive(&g->parent->peer);
    life_restore(&kept);
    return 0;
}

static struct peer *take_early(struct group *g, uint32_t other, uint64_t ticket)
{
    struct peer *found = NULL;
    for (unsigned i = 0; i < g->early_count;) {
        struct early *e = &g->early[i];
        if (e->rank != other) {
            i++;
            continue;
        }
        if (e->ticket == ticket && !found)
            found = e->peer;
        else
            peer_close(e->peer);
        *e = g->early[--g->early_count];
    }
    return found;
}

static int await_partner(struct group *g, uint32_t other, uint64_t ticket, uint64_t wait_ms,
                         struct peer **peer)
{
    struct pollfd fds[GREETING_ROOM + 1];
    uint64_t since_ms = clock_ms();
    for (;;) {
        int status = group_greet(g);
        *peer = take_early(g, other, ticket);
        if (status || *peer)
            return status;
        if (clock_ms() - since_ms > wait_ms)
            return fail(-ETIMEDOUT, "rank %u (%s) did not come within %g s", other,
                        group_node(g, other), (double)wait_ms / 1000);
        poll(fds, listener_fds(g->listener, fds), 50);
    }
}

static int dial_partner(struct group *g, uint32_t other, uint64_t ticket, uint64_t wait_ms,
                        struct peer **peer)
{
    const struct member *m = &g->members[other];
    struct msg greeting;
    /* Its own address is not known to the root, nor to others, where both are the same machine. */
    const char *root = g->spec.root ? "localhost" : g->root_address;
    int status = msg_print(&greeting, "group=%s\nask=pair\nfrom=%u\nto=%u\nticket=%llu\n",
                           g->spec.id, g->spec.rank, other, (unsigned long long)ticket);
    if (!status)
        status = tcp_dial(peer, *m->address ? m->address : root, m->port, wait_ms, &g->terms);
    if (status)
        return status;
    status = peer_send(*peer, &greeting);
    if (status)
        peer_close(*peer);
    return status;
}

int group_meet(struct group *g, uint32_t other, int as, uint64_t ticket, uint64_t wait_ms,
               struct peer **peer)
{
    if (other >= g->spec.size || other == g->spec.rank || g->members[other].place == NOBODY)
        return fail(-EINVAL, "rank %u has no partner %u", g->spec.rank, other);
    int status = as == PEER_CLIENT ? dial_partner(g, other, ticket, wait_ms, peer)
                                   : await_partner(g, other, ticket, wait_ms, peer);
    if (!status && *peer)
        (*peer)->watch = (struct peer_watch){attend, g};
    return status;
}
