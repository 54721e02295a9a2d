/* SPDX-License-Identifier: BSD-3-Clause */
/* Which CPUs the two ends run on. */
#include "core/cpu.h"
#include "core/machine.h"

#include <ctype.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LAST_CPU = 65535 };

int cpu_pin(int64_t cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (cpu >= CPU_SETSIZE)
        return fail(-ENODEV, "CPU %lld: no such CPU", (long long)cpu);
    CPU_SET((size_t)cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set))
        return fail(-ENODEV, "CPU %lld: %s", (long long)cpu,
                    errno == EINVAL ? "no such CPU, or not allowed to this process"
                                    : strerror(errno));
    return 0;
}

/* Is cpu in a list such as "0-3,8" of a file in the CPU's folder? */
static bool listed(size_t owner, const char *file, size_t cpu)
{
    char list[512];
    return system_line("", list, sizeof list, "/sys/devices/system/cpu/cpu%zu/%s", owner, file) &&
           cpus_has(list, (unsigned)cpu);
}

/* 0: another package; 1: the same core; 2: two cores, one last-level cache. */
static int kinship(size_t a, size_t b)
{
    static const char *const caches[] = {"cache/index3/shared_cpu_list",
                                         "cache/index2/shared_cpu_list"};
    if (listed(a, "topology/thread_siblings_list", b))
        return 1;
    for (size_t i = 0; i < LENGTH(caches); i++)
        if (listed(a, caches[i], b))
            return 2;
    return 0;
}

int cpu_pair(int64_t pair[2])
{
    cpu_set_t set;
    int best = -1;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set))
        return 0;
    size_t first = 0;
    while (first < CPU_SETSIZE && !CPU_ISSET(first, &set))
        first++;
    pair[0] = pair[1] = (int64_t)first;
    for (size_t cpu = first + 1; cpu < CPU_SETSIZE && best < 2; cpu++) {
        if (!CPU_ISSET(cpu, &set))
            continue;
        int kin = kinship(first, cpu);
        if (kin == 1)
            kin = -1; /* the same core: only if there is nothing else */
        if (best == -1 ? kin >= best : kin > best) {
            best = kin;
            pair[0] = (int64_t)cpu;
        }
    }
    return CPU_COUNT(&set);
}

static bool first_thread(const char *root, unsigned cpu)
{
    char list[256];
    const char *at = list;
    unsigned first = cpu, last;
    system_line(root, list, sizeof list,
                "/sys/devices/system/cpu/cpu%u/topology/thread_siblings_list", cpu);
    cpus_next(&at, &first, &last);
    return first == cpu;
}

size_t cpu_choices(const char *root, const char *list, int64_t *cpus, size_t room)
{
    cpu_set_t set;
    size_t count = 0;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set))
        return 0;
    for (int later = 0; later < 2; later++)
        for (unsigned cpu = 0; cpu < CPU_SETSIZE && count < room; cpu++)
            if (CPU_ISSET(cpu, &set) && (!list || cpus_has(list, cpu)) &&
                first_thread(root, cpu) == !later)
                cpus[count++] = cpu;
    return count;
}

static int bad_list(const char *text, const char *what)
{
    return fail(-EINVAL, "%s \"%s\" is no list of CPUs (such as 0,2-4, or near)", what, text);
}

/* One of "2", "2-4". */
static bool take_range(struct cpu_list *list, const char **at)
{
    char *end;
    if (!isdigit((unsigned char)**at))
        return false;
    unsigned long first = strtoul(*at, &end, 10), last = first;
    if (*end == '-' && isdigit((unsigned char)end[1]))
        last = strtoul(end + 1, &end, 10);
    *at = end;
    if (last < first || last > LAST_CPU || last - first >= LENGTH(list->cpus) - list->count)
        return false;
    for (; first <= last; first++)
        list->cpus[list->count++] = (int64_t)first;
    return true;
}

int cpu_list_parse(struct cpu_list *list, const char *text, const char *what)
{
    const char *at = text;
    *list = (struct cpu_list){.near = strcmp(text, "near") == 0};
    while (!list->near) {
        if (!take_range(list, &at) || (*at && *at != ','))
            return bad_list(text, what);
        if (!*at++)
            break;
    }
    return 0;
}

void cpu_list_text(const struct cpu_list *list, char *text, size_t room)
{
    size_t used = (size_t)snprintf(text, room, "%s", list->near ? "near" : "");
    for (size_t i = 0; i < list->count && used < room; i++)
        used += (size_t)snprintf(text + used, room - used, "%s%lld", i ? "," : "",
                                 (long long)list->cpus[i]);
}

bool cpu_near(const char *root, const char *name, char *list, size_t room)
{
    static const char *const classes[] = {"cxi", "infiniband", "net"};
    char node[32];
    if (!*name || *name == '.' || strchr(name, '/'))
        return false;
    for (size_t i = 0; i < LENGTH(classes); i++)
        if (system_line(root, node, sizeof node, "/sys/class/%s/%s/device/numa_node", classes[i],
                        name))
            return *node != '-' &&
                   system_line(root, list, room, "/sys/class/%s/%s/device/local_cpulist",
                               classes[i], name);
    return false;
}

int cpu_describe(struct msg *text)
{
    cpu_set_t set;
    char host[64];
    host_id(host, sizeof host);
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set))
        return msg_print(text, "host=%s\ncpu=many\n", host);
    if (CPU_COUNT(&set) != 1)
        return msg_print(text, "host=%s\ncpu=many\n", host);
    size_t cpu = 0;
    while (!CPU_ISSET(cpu, &set))
        cpu++;
    return msg_print(text, "host=%s\ncpu=%zu\n", host, cpu);
}

/* The output of cpu_describe, for ends on one machine. */
static bool on_one_host(const struct msg *mine, const struct msg *theirs, char cpus[2][64])
{
    char hosts[2][64];
    return !msg_value(mine, "host", hosts[0], sizeof hosts[0]) &&
           !msg_value(theirs, "host", hosts[1], sizeof hosts[1]) &&
           !msg_value(mine, "cpu", cpus[0], sizeof cpus[0]) &&
           !msg_value(theirs, "cpu", cpus[1], sizeof cpus[1]) && strcmp(hosts[0], hosts[1]) == 0;
}

bool cpu_shared(const struct msg *mine, const struct msg *theirs)
{
    char cpus[2][64];
    return on_one_host(mine, theirs, cpus) && strcmp(cpus[0], cpus[1]) == 0 &&
           strcmp(cpus[0], "many") != 0;
}

bool cpu_roams(const struct msg *mine, const struct msg *theirs)
{
    char cpus[2][64];
    return on_one_host(mine, theirs, cpus) &&
           (strcmp(cpus[0], "many") == 0 || strcmp(cpus[1], "many") == 0);
}
