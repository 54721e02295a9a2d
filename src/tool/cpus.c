/* SPDX-License-Identifier: BSD-3-Clause */
/* The CPUs of ucx_perftest's threads. Thread i is on CPU i of its end's list. */
#include "tool/cpus.h"
#include "tool/local.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char option[] = "--cpu";

static void cut(struct cpu_list *from, size_t first, struct cpu_list *to)
{
    for (size_t i = first; i < from->count; i++)
        to->cpus[to->count++] = from->cpus[i];
    from->count = from->count < first ? from->count : first;
}

static bool has(const struct cpu_list *list, int64_t cpu)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->cpus[i] == cpu)
            return true;
    return false;
}

static bool given(const struct cpu_list *list)
{
    return list->count || list->near;
}

/* One thread at each end: a pair of CPUs, as every tool has them. */
static void choose_pair(struct cpus *c)
{
    int64_t asked[2] = {-1, -1}, cpus[2];
    for (int i = 0; i < 2; i++)
        if (c->ends[i].count)
            asked[i] = c->ends[i].cpus[0];
    local_place(asked, cpus);
    for (int i = 0; i < 2; i++)
        if (!given(&c->ends[i]) && cpus[i] >= 0)
            c->ends[i] = (struct cpu_list){.count = 1, .cpus = {cpus[i]}};
}

/* A CPU for every thread that has none, and for it alone, if there are enough; or else it may run
 * anywhere. */
static void choose(struct cpus *c, unsigned threads)
{
    int64_t all[CPU_CHOICES];
    size_t count = cpu_choices("", NULL, all, LENGTH(all)), free = 0, at = 0;
    for (size_t i = 0; i < count; i++)
        if (!has(&c->ends[0], all[i]) && !has(&c->ends[1], all[i]))
            all[free++] = all[i];
    if (free < (size_t)threads * (!given(&c->ends[0]) + !given(&c->ends[1])))
        return;
    for (int i = 0; i < 2; i++)
        for (bool open = !given(&c->ends[i]); open && c->ends[i].count < threads;)
            c->ends[i].cpus[c->ends[i].count++] = all[at++];
}

int cpus_read(struct cpus *c, const char *text, bool local, unsigned threads)
{
    char first[CPUS_TEXT];
    const char *slash = strchr(text, '/');
    *c = (struct cpus){.ends[0].count = 0};
    if (slash && !local)
        return fail(-EINVAL, "--cpu %s: a second list is for the server that --local starts", text);
    snprintf(first, sizeof first, "%.*s", (int)(slash ? slash - text : (long)strlen(text)), text);
    int status = *text ? cpu_list_parse(&c->ends[0], first, option) : 0;
    if (!status && slash)
        status = cpu_list_parse(&c->ends[1], slash + 1, option);
    if (status || !local)
        return status;
    if (!slash && *text)
        cut(&c->ends[0], threads, &c->ends[1]);
    c->ends[1].near |= !slash && c->ends[0].near;
    if (threads == 1)
        choose_pair(c);
    else
        choose(c, threads);
    return 0;
}

void cpus_text(const struct cpus *c, char text[CPUS_TEXT])
{
    cpu_list_text(&c->ends[0], text, CPUS_TEXT);
    size_t used = strlen(text);
    bool alone = c->ends[0].count == 1 && c->ends[1].count == 1;
    if (!given(&c->ends[1]) || used + 2 > CPUS_TEXT)
        return;
    text[used] = alone ? ',' : '/';
    cpu_list_text(&c->ends[1], text + used + 1, CPUS_TEXT - used - 1);
}

int cpus_pin(const struct cpu_list *list)
{
    return list->count ? cpu_pin(list->cpus[0]) : 0;
}
