/* SPDX-License-Identifier: BSD-3-Clause */
/* Sections on the machine itself: CPUs, caches, clocks, memory, and the noise measured on it. */
#include "host/sections.h"
#include "core/clock.h"
#include "core/machine.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

enum { CACHES = 8 };

static const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

/* ---- machine ---- */

static void print_cpus(const struct host_state *state, struct printer *printer)
{
    const struct topology *t = &state->topology;
    const struct machine *m = &state->machine;
    unsigned allowed = cpus_count(m->allowed);
    char text[256] = "";
    if (t->sockets && t->cores)
        snprintf(text, sizeof text, " (%u socket%s, %u core%s, %u thread%s per core)", t->sockets,
                 plural(t->sockets), t->cores, plural(t->cores), t->cpus / t->cores,
                 plural(t->cpus / t->cores));
    if (t->cpus)
        print_value(printer, "CPUs", "%u%s", t->cpus, text);
    if (allowed && allowed != t->cpus)
        print_value(printer, "allowed CPUs", "%u: %s", allowed, m->allowed);
    if (state->usable > 1)
        print_value(printer, "CPU pair", "--cpu %d,%d (default of --local)", (int)state->pair[0],
                    (int)state->pair[1]);
}

struct node_list {
    const struct host_state *state;
    struct printer *printer;
};

static void print_node(void *arg, const char *name)
{
    const struct node_list *list = arg;
    char cpus[256];
    if (strncmp(name, "node", 4) != 0 || name[4] < '0' || name[4] > '9')
        return;
    system_line(list->state->root, cpus, sizeof cpus, "/sys/devices/system/node/%s/cpulist", name);
    print_value(list->printer, name, "CPUs %s", *cpus ? cpus : "none");
}

static void print_nodes(const struct host_state *state, struct printer *printer)
{
    struct node_list list = {state, printer};
    if (state->topology.nodes)
        print_value(printer, "NUMA nodes", "%u", state->topology.nodes);
    if (state->topology.nodes > 1)
        system_each(state->root, print_node, &list, "/sys/devices/system/node");
}

static void print_total_memory(const struct machine *machine, struct printer *printer)
{
    char total[32], available[32];
    if (!machine->memory)
        return;
    unit_bytes_text(machine->memory, total, sizeof total);
    unit_bytes_text(memory_available(), available, sizeof available);
    print_value(printer, "memory", "%s, %s available", total, available);
}

void machine_section(const struct host_state *state, struct printer *printer)
{
    const struct machine *m = &state->machine;
    char text[64];
    print_section(printer, "Machine", "machine", '{');
    print_value(printer, "host", "%s", m->host);
    print_value(printer, "system", "%s, %s", m->system, m->architecture);
    if (*m->cpu)
        print_value(printer, "CPU", "%s", m->cpu);
    print_cpus(state, printer);
    print_nodes(state, printer);
    print_total_memory(m, printer);
    if (*m->hypervisor)
        print_value(printer, "virtual machine", "%s", m->hypervisor);
    if (*m->container)
        print_value(printer, "container", "%s", m->container);
    if (system_line(state->root, text, sizeof text, "/proc/loadavg"))
        print_value(printer, "load average", "%.*s (1 minute)", (int)strcspn(text, " "), text);
    print_section_end(printer, '}');
}

/* ---- caches ---- */

static void print_cache(const struct cache *cache, struct printer *printer)
{
    unsigned sharing = cpus_count(cache->shared);
    uint64_t bytes;
    char size[32];
    snprintf(size, sizeof size, "%s", cache->size);
    if (!unit_bytes(cache->size, &bytes))
        unit_bytes_text(bytes, size, sizeof size);
    if (sharing > 1)
        print_value(printer, cache->name, "%s, shared by %u CPUs (%s); %u in total", size, sharing,
                    cache->shared, cache->count);
    else
        print_value(printer, cache->name, "%s per CPU", size);
}

void caches_section(const struct host_state *state, struct printer *printer)
{
    struct cache caches[CACHES];
    size_t count = caches_look(caches, CACHES, state->root);
    print_section(printer, "Caches", "caches", '{');
    for (size_t i = 0; i < count; i++)
        print_cache(&caches[i], printer);
    if (!count)
        print_value(printer, "", "unknown");
    print_section_end(printer, '}');
}

/* ---- clocks ---- */

void clocks_section(const struct host_state *state, struct printer *printer)
{
    const struct host_clock *gettime = &state->clocks[CLOCK_GETTIME];
    const struct host_clock *cycles = &state->clocks[CLOCK_CYCLES];
    print_section(printer, "Clocks", "clocks", '{');
    if (gettime->available)
        print_value(printer, "clock_gettime", "two reads cost %.1f ns; default of the CXI tools",
                    (double)gettime->clock.cost_ps / 1000);
    if (cycles->available)
        print_value(printer, "cycles",
                    "two reads cost %.1f ns; invariant, %.3f GHz; default of ucx_perftest",
                    (double)cycles->clock.cost_ps / 1000, 1000 / cycles->clock.ps_per_tick);
    else
        print_value(printer, "cycles", "not available: the cycle counter is not invariant");
    if (*state->machine.clocksource)
        print_value(printer, "kernel clock", "%s", state->machine.clocksource);
    print_section_end(printer, '}');
}

/* ---- memory ---- */

static void print_huge(const struct host_state *state, struct printer *printer, const char *name,
                       unsigned kib)
{
    static const char folder[] = "/sys/kernel/mm/hugepages/hugepages-";
    uint64_t all = 0, unused = 0;
    if (!system_number(state->root, &all, "%s%ukB/nr_hugepages", folder, kib))
        return;
    system_number(state->root, &unused, "%s%ukB/free_hugepages", folder, kib);
    if (all)
        print_value(printer, name, "%" PRIu64 " reserved, %" PRIu64 " free", all, unused);
    else
        print_value(printer, name, "none reserved");
}

const char *host_selected(char *text)
{
    char *begin = strchr(text, '[');
    char *end = begin ? strchr(begin, ']') : NULL;
    if (!end)
        return text;
    *end = '\0';
    return begin + 1;
}

static void print_memlock(const struct host_state *state, struct printer *printer)
{
    char text[32] = "unlimited";
    struct rlimit limit;
    if (getrlimit(RLIMIT_MEMLOCK, &limit))
        return;
    if (limit.rlim_cur != RLIM_INFINITY && !host_capable(state, CAPABILITY_IPC_LOCK))
        unit_bytes_text(limit.rlim_cur, text, sizeof text);
    print_value(printer, "memlock", "%s", text);
}

static void print_shm(const struct host_state *state, struct printer *printer)
{
    char text[32], path[512];
    struct statvfs shm;
    snprintf(path, sizeof path, "%s/dev/shm", state->root);
    if (statvfs(path, &shm))
        return;
    unit_bytes_text((uint64_t)shm.f_blocks * shm.f_frsize, text, sizeof text);
    print_value(printer, "/dev/shm", "%s", text);
}

void memory_section(const struct host_state *state, struct printer *printer)
{
    char text[128];
    print_section(printer, "Memory", "memory", '{');
    print_huge(state, printer, "2 MiB pages", 2048);
    print_huge(state, printer, "1 GiB pages", 1048576);
    if (system_line(state->root, text, sizeof text, "/sys/kernel/mm/transparent_hugepage/enabled"))
        print_value(printer, "THP", "%s (transparent huge pages)", host_selected(text));
    print_memlock(state, printer);
    print_shm(state, printer);
    print_section_end(printer, '}');
}

bool host_capable(const struct host_state *state, enum capability capability)
{
    char text[64];
    return system_value(state->root, "CapEff", text, sizeof text, "/proc/self/status") &&
           strtoull(text, NULL, 16) >> capability & 1;
}

/* ---- noise ---- */

static void print_gaps(const struct gaps *gaps, struct printer *printer)
{
    char name[32];
    snprintf(name, sizeof name, "CPU %d", (int)gaps->cpu);
    print_value(printer, name,
                "%" PRIu64 " gap%s of more than %d us in %d ms: %.2f %% of the time, longest "
                "%.1f us",
                gaps->count, plural(gaps->count), NOISE_GAP_US, NOISE_MS,
                100 * (double)gaps->lost_ns / (double)gaps->span_ns,
                (double)gaps->largest_ns / 1000);
}

static void noise_text(const struct host_state *state, struct printer *printer)
{
    const struct noise *noise = &state->noise;
    if (noise->line_ns > 0)
        print_value(printer, "cache line", "%.0f ns from CPU %d to CPU %d", noise->line_ns,
                    (int)state->pair[0], (int)state->pair[1]);
    for (int i = 0; i < noise->cpus; i++)
        print_gaps(&noise->on[i], printer);
    if (noise->cpus)
        print_value(printer, "other processes", "%" PRIu64 " ms of CPU time in %d ms",
                    noise->others_ms, NOISE_MS);
    else
        print_value(printer, "", "not measured: the CPUs of this process are unknown");
}

static void noise_json(const struct noise *noise, struct json *json)
{
    if (noise->line_ns > 0)
        json_number(json, "cache_line_ns", noise->line_ns);
    json_open(json, "gaps", '[');
    for (int i = 0; i < noise->cpus; i++) {
        const struct gaps *gaps = &noise->on[i];
        json_open(json, NULL, '{');
        json_count(json, "cpu", (uint64_t)gaps->cpu);
        json_count(json, "count", gaps->count);
        json_count(json, "lost_ns", gaps->lost_ns);
        json_count(json, "longest_ns", gaps->largest_ns);
        json_count(json, "measured_ns", gaps->span_ns);
        json_close(json, '}');
    }
    json_close(json, ']');
    json_count(json, "others_ms", noise->others_ms);
    json_count(json, "steal_ms", noise->steal_ms);
}

void noise_section(const struct host_state *state, struct printer *printer)
{
    print_section(printer, "Measured", "measured", '{');
    if (printer->format == PRINT_JSON)
        noise_json(&state->noise, &printer->json);
    else
        noise_text(state, printer);
    print_section_end(printer, '}');
}
