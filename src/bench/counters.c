/* SPDX-License-Identifier: BSD-3-Clause */
/* How far the counters of both ends' network devices came in a size. Each end reads its own before
 * the barrier of the size and after its last completion, and tells the other. */
#include "bench/run.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct run_counters {
    struct counters before;
    struct counters ends[2]; /* by rank */
};

/* ---- between the ends ---- */

static const char mark[] = "c.";

int counters_write(const struct counters *c, struct msg *text)
{
    int status = msg_print(text, "device=%s\nwhy=%s\n", c->device, c->why);
    for (unsigned i = 0; i < c->count && !status; i++)
        status = c->list[i].known
                     ? msg_add(text, "%s%s=%" PRIu64 "\n", mark, c->list[i].name, c->list[i].value)
                     : msg_add(text, "%s%s=-\n", mark, c->list[i].name);
    return status;
}

/* "NAME=12", or "NAME=-" where it is not known. */
static bool take_counter(struct counters *c, const char *line)
{
    struct counter *one = &c->list[c->count];
    const char *equals = strchr(line, '=');
    size_t length = equals ? (size_t)(equals - line) : 0;
    if (!equals || c->count == COUNTERS_MOST || length >= COUNTER_NAME)
        return false;
    memcpy(one->name, line, length);
    one->name[length] = '\0';
    if (!counter_named(one->name) || counters_find(c, one->name))
        return false;
    one->known = strcmp(equals + 1, "-") != 0;
    one->value = 0;
    c->count++;
    return !one->known || !unit_number(equals + 1, &one->value);
}

static bool take_line(struct counters *c, const char *line)
{
    if (strncmp(line, mark, sizeof mark - 1) == 0)
        return take_counter(c, line + sizeof mark - 1);
    return strncmp(line, "device=", 7) == 0 || strncmp(line, "why=", 4) == 0;
}

int counters_parse(struct counters *c, const struct msg *text)
{
    char lines[MSG_MAX], *rest = lines, *line;
    bool good = !memchr(text->bytes, '\0', text->length);
    *c = (struct counters){0};
    good = good && !msg_value(text, "device", c->device, sizeof c->device) &&
           !msg_value(text, "why", c->why, sizeof c->why) &&
           (!*c->device || counter_device(c->device));
    text_clean(c->why);
    snprintf(lines, sizeof lines, "%s", text->bytes);
    while (good && (line = strsep(&rest, "\n")) && *line)
        good = take_line(c, line);
    /* An end without counters says why. */
    if (good && !rest && (c->count || *c->why))
        return 0;
    *c = (struct counters){0};
    return -EPROTO;
}

/* ---- in a run ---- */

static void read_ours(const struct run *run, struct counters *counters)
{
    struct session *s = run->session;
    struct keepalive keepalive;
    keepalive_begin(&keepalive, s->peer, KEEPALIVE_LIBRARY_MS);
    counters_read(counters, "", s->facts.device, run->spec->counters);
    if (!*s->facts.device)
        snprintf(counters->why, sizeof counters->why, "fabric %s uses no network device",
                 s->fabric->name);
    keepalive_end(&keepalive);
}

static int swap(struct run *run)
{
    struct peer *peer = run->session->peer;
    struct counters *ends = run->out.counters->ends;
    struct msg mine, theirs;
    int status = counters_write(&ends[peer->rank], &mine);
    if (!status)
        status = peer_swap(peer, &mine, &theirs);
    if (!status && counters_parse(&ends[!peer->rank], &theirs))
        status = fail(-EPROTO, "the %s's counters cannot be read", peer->other);
    return status;
}

/* A name that neither end has was mistyped. Both ends have seen both answers, so both refuse. */
static int check_names(const struct run *run)
{
    const struct counters *ends = run->out.counters->ends;
    bool listed = counters_listed(run->spec->counters);
    for (unsigned i = 0; listed && i < ends[0].count; i++) {
        const char *name = ends[0].list[i].name;
        const struct counter *other = counters_find(&ends[1], name);
        if (!ends[0].list[i].known && other && !other->known)
            return fail(-EINVAL,
                        "counter %s: neither %s at the client nor %s at the server has it; their "
                        "names are those of files in /sys/class",
                        name, ends[PEER_CLIENT].device, ends[PEER_SERVER].device);
    }
    return 0;
}

int run_counters_open(struct run *run)
{
    if (!*run->spec->counters)
        return 0;
    run->out.counters = calloc(1, sizeof *run->out.counters);
    if (!run->out.counters)
        return fail(-ENOMEM, "no memory for counters");
    read_ours(run, &run->out.counters->ends[run->session->peer->rank]);
    int status = swap(run);
    if (!status) {
        status = check_names(run);
        run->session->refused = status;
    }
    return status;
}

void run_counters_close(struct run *run)
{
    free(run->out.counters);
    run->out.counters = NULL;
}

void run_counters_begin(struct run *run)
{
    if (run->out.counters)
        read_ours(run, &run->out.counters->before);
}

int run_counters_end(struct run *run)
{
    struct run_counters *c = run->out.counters;
    if (!c)
        return 0;
    struct counters *mine = &c->ends[run->session->peer->rank];
    read_ours(run, mine);
    counters_since(mine, &c->before);
    int status = swap(run);
    if (!status)
        run->out.result.counters = (struct counted){.pairs = 1, .ends = c->ends};
    return status;
}
