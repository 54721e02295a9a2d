/* SPDX-License-Identifier: BSD-3-Clause */
/* weft map, the schedule: three stages of steps, the same at every rank. All that one rank must
 * know of another comes in the answers of turns, so that all of them compute the same. */
#include "tool/map.h"
#include "tool/progress.h"
#include "tool/shell.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    READY_MS = 120000,  /* loading libraries */
    CHOOSE_MS = 120000, /* fitting a large model */
    COUNT_MS = 86400000 /* so many iterations take as long as they take */
};

/* ---- who meets whom ---- */

static bool takes_part(const struct map_rank *m, uint32_t rank)
{
    return rank < m->size && !m->out[rank] && group_alive(m->group, rank);
}

static uint32_t in_third(const struct map_rank *m, uint32_t whose)
{
    for (size_t i = 0; i < m->third_count; i++)
        if (m->third[i].step == m->at.round && (m->third[i].a == whose || m->third[i].b == whose))
            return m->third[i].a == whose ? m->third[i].b : m->third[i].a;
    return MAP_NONE;
}

static uint32_t planned(const struct map_rank *m, uint32_t whose)
{
    uint32_t turn = m->at.turn, other = MAP_NONE;
    if (whose >= m->size)
        return MAP_NONE;
    if (m->at.stage == MAP_FIRST)
        other = map_partner(&m->plan, m->at.round, whose, &turn);
    else if (m->at.stage == MAP_SECOND)
        other = map_again_partner(&m->again, m->at.round, whose, &turn);
    else
        other = in_third(m, whose);
    return turn == m->at.turn ? other : MAP_NONE;
}

uint32_t map_rank_partner(const struct map_rank *m, uint32_t whose)
{
    uint32_t other = planned(m, whose);
    if (other == MAP_NONE || !takes_part(m, whose) || !takes_part(m, other))
        return MAP_NONE;
    bool host = strcmp(group_node(m->group, whose), group_node(m->group, other)) == 0;
    return host && !m->one_host ? MAP_NONE : other;
}

/* ---- a step ---- */

static int take_turn(struct map_rank *m, uint64_t allow_ms, const void *bytes, size_t length,
                     group_decide decide, struct group_value *answer)
{
    struct group_value mine = {.bytes = bytes, .length = length};
    return group_turn(m->group, allow_ms, m->at.base + m->at.round, &mine, m->lead ? decide : NULL,
                      m->lead, answer);
}

static int step(struct map_rank *m)
{
    static struct map_value value;
    const struct spec *spec = &m->request->options->spec;
    uint32_t other = m->rank < m->size ? map_rank_partner(m, m->rank) : MAP_NONE;
    memset(&value, 0, offsetof(struct map_value, list));
    value.magic = MAP_MAGIC;
    if (other != MAP_NONE)
        map_pair(m, other, &value);
    if (value.status == -EINTR)
        return fail(-EINTR, "interrupted");
    int status = take_turn(m, spec->count.duration_ms + spec->timeout_ms, &value,
                           map_value_length(&value), map_lead_take, NULL);
    m->at.step++;
    return status;
}

/* How far the stage is. */
static void tell(const struct map_rank *m, uint32_t rounds, uint32_t turns)
{
    static const char *const names[] = {
        [MAP_FIRST] = "pairs", [MAP_SECOND] = "suspects again", [MAP_THIRD] = "pairs again"};
    char text[80];
    snprintf(text, sizeof text, "%s: round %u of %u", names[m->at.stage], m->at.round + 1, rounds);
    progress_step(text, (uint64_t)m->at.round * turns + m->at.turn, (uint64_t)rounds * turns);
}

static int stage(struct map_rank *m, enum map_stage which, uint32_t rounds, uint32_t turns)
{
    int status = 0;
    m->at.stage = which;
    if (m->lead)
        progress_begin();
    for (m->at.round = 0; m->at.round < rounds && !status; m->at.round++)
        for (m->at.turn = 0; m->at.turn < turns && !status; m->at.turn++) {
            if (m->lead)
                tell(m, rounds, turns);
            status = step(m);
        }
    if (m->lead)
        progress_end();
    m->at.base += rounds;
    m->at.round = 0;
    return status;
}

/* ---- before the first round ---- */

/* Opens the device, once. */
static void get_ready(struct map_rank *m, struct map_ready *ready)
{
    struct session *s = &m->session;
    ready->magic = MAP_MAGIC;
    if (m->rank < m->size)
        ready->status = session_prepare(s, &m->offer, &m->request->options->spec, true);
    if (ready->status)
        snprintf(ready->why, sizeof ready->why, "%s", fail_reason());
    if (!s->handle)
        return;
    session_device(s, ready->device, sizeof ready->device);
    snprintf(ready->form, sizeof ready->form, "%s", s->facts.form);
    snprintf(ready->self, sizeof ready->self, "%s", s->facts.self);
}

/* One that did not come has no node. */
static bool on_one_host(const struct group *group)
{
    const char *first = "";
    for (uint32_t i = 0; i < group_size(group); i++) {
        const char *node = group_node(group, i);
        if (*first && *node && strcmp(node, first) != 0)
            return false;
        first = *first ? first : node;
    }
    return true;
}

/* Of the ranks on the leader's host. */
static void say_crowded(unsigned members)
{
    char sentence[160];
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    if (online <= 0 || members <= online)
        return;
    snprintf(
        sentence, sizeof sentence,
        "%u ranks measure at once on %ld CPU%s: times include waiting for a CPU (--at-once %ld)",
        members, online, online == 1 ? "" : "s", online / 2 ? online / 2 : 1);
    shell_say(sentence);
}

/* The seed, and who cannot take part. */
static int read_start(struct map_rank *m, const struct group_value *answer)
{
    const struct map_request *r = m->request;
    const uint32_t *words = answer->bytes;
    size_t count = answer->length / sizeof *words;
    if (answer->length % sizeof *words || count < 2)
        return fail(-EPROTO, "the leader's plan cannot be read");
    for (size_t i = 2; i < count; i++) {
        if (words[i] >= m->size)
            return fail(-EPROTO, "the leader's plan cannot be read");
        m->out[words[i]] = true;
    }
    m->one_host = on_one_host(m->group);
    group_patience(m->group, r->options->spec.count.duration_ms ? 0 : COUNT_MS);
    int status = map_plan(&m->plan, m->size, r->partners, (uint32_t)r->options->at_once,
                          (uint64_t)words[1] << 32 | words[0]);
    uint32_t here = group_here(m->group), all = 2 * m->plan.at_once;
    m->offer.members = here < all ? here : all;
    if (m->lead)
        say_crowded(m->offer.members);
    if (r->options->local)
        m->cpus.count = cpu_choices("", NULL, m->cpus.cpus, CPU_CHOICES);
    return status;
}

static int start(struct map_rank *m)
{
    static struct map_ready ready;
    struct group_value answer = {0};
    get_ready(m, &ready);
    int status = take_turn(m, READY_MS, &ready, sizeof ready, map_lead_ready, &answer);
    return status ? status : read_start(m, &answer);
}

/* ---- what is measured again ---- */

/* Pairs that are measured again are nearly alone: few at once, and none shares a rank. Each is
 * measured several times. */
static int pack(struct map_rank *m, const uint32_t *pairs, size_t count)
{
    uint32_t at_once = m->size / 8 < m->plan.at_once ? m->size / 8 : m->plan.at_once;
    size_t all = count * MAP_TIMES;
    uint32_t *next = calloc(m->size + 1U, sizeof *next), *used = calloc(all + 1, sizeof *used);
    m->third = calloc(all + 1, sizeof *m->third);
    if (!next || !used || !m->third) {
        free(next);
        free(used);
        return fail(-ENOMEM, "no memory for %zu pairs", count);
    }
    for (size_t i = 0; i < all; i++) {
        uint32_t a = pairs[2 * (i % count)], b = pairs[2 * (i % count) + 1];
        uint32_t at = next[a] > next[b] ? next[a] : next[b];
        while (used[at] >= (at_once ? at_once : 1))
            at++;
        used[at]++;
        next[a] = next[b] = at + 1;
        m->third[i] = (struct map_meeting){a, b, at};
        if (at >= m->third_steps)
            m->third_steps = at + 1;
    }
    m->third_count = all;
    free(next);
    free(used);
    return 0;
}

/* Suspects, and pairs: each a count and so many ranks or pairs of ranks. */
static int read_again(struct map_rank *m, const struct group_value *answer)
{
    const uint32_t *words = answer->bytes;
    size_t count = answer->length / sizeof *words;
    bool *lost = calloc(m->size + 1U, sizeof *lost);
    int status = 0;
    size_t suspects = count > 1 ? words[0] : 0;
    if (!lost)
        return fail(-ENOMEM, "no memory for %u ranks", m->size);
    if (count < 2 || suspects > m->size || count < 2 + suspects || (count - suspects) % 2 ||
        (count - 2 - suspects) / 2 != words[1 + suspects])
        status = fail(-EPROTO, "the leader's second plan cannot be read");
    for (size_t i = 2 + suspects; i < count && !status; i++)
        if (words[i] >= m->size)
            status = fail(-EPROTO, "the leader's second plan cannot be read");
    for (uint32_t i = 0; i < m->size && !status; i++)
        lost[i] = !takes_part(m, i);
    if (!status && suspects)
        status = map_again_open(&m->again, &m->plan, words + 1, (uint32_t)suspects,
                                m->request->again, lost);
    if (!status && words[1 + suspects])
        status = pack(m, words + 2 + suspects, words[1 + suspects]);
    free(lost);
    return status;
}

static int choose_again(struct map_rank *m)
{
    struct group_value answer = {0};
    int status = take_turn(m, CHOOSE_MS, NULL, 0, map_lead_choose, &answer);
    return status ? status : read_again(m, &answer);
}

/* ---- all of it ---- */

static int measure(struct map_rank *m)
{
    int status = start(m);
    if (!status)
        status = stage(m, MAP_FIRST, m->plan.rounds, m->plan.turns);
    if (!status)
        status = choose_again(m);
    if (!status && m->again.ranks)
        status = stage(m, MAP_SECOND, m->again.rounds, m->again.turns);
    if (!status && m->third_count)
        status = stage(m, MAP_THIRD, m->third_steps, 1);
    if (m->lead)
        m->lead->complete = !status;
    return status;
}

/* Of a bare device, what it came to be: where ranks are on several machines, that is known only
 * once two of them have met. */
static void note_fabric(const struct map_rank *m)
{
    struct map_head *h = &m->lead->record.head;
    if (strchr(h->device, ':'))
        return;
    if (m->session.handle) {
        session_device(&m->session, h->device, sizeof h->device);
        snprintf(h->form, sizeof h->form, "%s", m->session.facts.form);
    } else if (!m->one_host) {
        *h->form = '\0';
    }
}

int map_measure(struct map_rank *m)
{
    m->rank = group_measures(m->group) ? group_rank(m->group) : group_size(m->group);
    m->size = group_size(m->group);
    m->out = calloc(m->size + 1U, sizeof *m->out);
    if (!m->out)
        return fail(-ENOMEM, "no memory for %u ranks", m->size);
    memory_keep_freed();
    session_init(&m->session);
    int status = m->lead ? map_lead_open(m->lead, m) : 0;
    if (!status)
        status = measure(m);
    if (m->lead) {
        note_fabric(m);
        status = map_lead_judge(m->lead, status);
    }
    session_close(&m->session, 0);
    map_again_close(&m->again);
    free(m->third);
    free(m->out);
    return status;
}
