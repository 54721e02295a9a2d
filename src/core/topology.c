/* SPDX-License-Identifier: BSD-3-Clause */
/* Sockets, cores and threads. A group of CPUs is counted at its first member, so that no state is
 * needed. */
#include "core/core.h"
#include "core/machine.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* How many groups of CPUs there are, if a file in each CPU's folder lists its group. */
static unsigned groups(const char *root, const char *online, const char *file)
{
    char list[256];
    unsigned first, last, count = 0, begin, end;
    while (cpus_next(&online, &first, &last))
        for (unsigned cpu = first; cpu <= last; cpu++) {
            const char *at = list;
            if (!system_line(root, list, sizeof list, "/sys/devices/system/cpu/cpu%u/%s", cpu,
                             file) ||
                !cpus_next(&at, &begin, &end))
                return 0;
            count += begin == cpu;
        }
    return count;
}

void topology_look(struct topology *t, const char *root)
{
    char online[256], nodes[256];
    *t = (struct topology){0};
    if (system_line(root, online, sizeof online, "/sys/devices/system/cpu/online")) {
        t->cpus = cpus_count(online);
        t->sockets = groups(root, online, "topology/core_siblings_list");
        t->cores = groups(root, online, "topology/thread_siblings_list");
    }
    if (system_line(root, nodes, sizeof nodes, "/sys/devices/system/node/online"))
        t->nodes = cpus_count(nodes);
}

size_t caches_look(struct cache *caches, size_t room, const char *root)
{
    char online[256], level[16], type[32], file[64];
    const char *list = online;
    unsigned cpu, last;
    size_t count = 0;
    if (!system_line(root, online, sizeof online, "/sys/devices/system/cpu/online") ||
        !cpus_next(&list, &cpu, &last))
        return 0;
    for (unsigned index = 0; index < 8 && count < room; index++) {
        struct cache *cache = &caches[count];
        char folder[64];
        snprintf(folder, sizeof folder, "/sys/devices/system/cpu/cpu%u/cache/index%u", cpu, index);
        if (!system_line(root, level, sizeof level, "%s/level", folder) ||
            !system_line(root, type, sizeof type, "%s/type", folder) ||
            !system_line(root, cache->size, sizeof cache->size, "%s/size", folder) ||
            strcmp(type, "Instruction") == 0)
            continue;
        snprintf(cache->name, sizeof cache->name, "L%.8s%s", level,
                 strcmp(type, "Data") == 0 ? "d" : "");
        system_line(root, cache->shared, sizeof cache->shared, "%s/shared_cpu_list", folder);
        snprintf(file, sizeof file, "cache/index%u/shared_cpu_list", index);
        cache->count = groups(root, online, file);
        count++;
    }
    return count;
}
