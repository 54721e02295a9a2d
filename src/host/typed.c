/* SPDX-License-Identifier: BSD-3-Clause */
/* The machine for programs: flat, typed, with units in the keys. What is not known is null, so that
 * every machine has every key. */
#include "core/machine.h"
#include "host/sections.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

enum { CACHES = 8 };

/* Empty is unknown, and so is 0. */
static void text_or_null(struct json *j, const char *key, const char *text)
{
    json_text(j, key, *text ? text : NULL);
}

static void count_or_null(struct json *j, const char *key, uint64_t count)
{
    if (count)
        json_count(j, key, count);
    else
        json_text(j, key, NULL);
}

static void write_cpus(const struct host_state *state, struct json *j)
{
    const struct topology *t = &state->topology;
    const struct machine *m = &state->machine;
    bool pair = state->usable > 1;
    count_or_null(j, "cpus", t->cpus);
    count_or_null(j, "sockets", t->sockets);
    count_or_null(j, "cores", t->cores);
    count_or_null(j, "threads_per_core", t->cores ? t->cpus / t->cores : 0);
    count_or_null(j, "numa_nodes", t->nodes);
    count_or_null(j, "allowed_cpus", cpus_count(m->allowed));
    text_or_null(j, "allowed_cpu_list", m->allowed);
    json_number(j, "client_cpu", pair ? (double)state->pair[0] : NAN);
    json_number(j, "server_cpu", pair ? (double)state->pair[1] : NAN);
    text_or_null(j, "governor", m->governor);
}

static void write_load(const struct host_state *state, struct json *j)
{
    char text[64];
    bool known = system_line(state->root, text, sizeof text, "/proc/loadavg");
    json_number(j, "load_average", known ? strtod(text, NULL) : NAN);
}

static void write_pages(const struct host_state *state, struct json *j, unsigned kib,
                        const char *all_key, const char *free_key)
{
    static const char folder[] = "/sys/kernel/mm/hugepages/hugepages-";
    uint64_t all = 0, unused = 0;
    bool known = system_number(state->root, &all, "%s%ukB/nr_hugepages", folder, kib);
    known &= system_number(state->root, &unused, "%s%ukB/free_hugepages", folder, kib);
    json_number(j, all_key, known ? (double)all : NAN);
    json_number(j, free_key, known ? (double)unused : NAN);
}

static void write_memlock(const struct host_state *state, struct json *j)
{
    struct rlimit limit = {.rlim_cur = RLIM_INFINITY};
    bool known = !getrlimit(RLIMIT_MEMLOCK, &limit);
    bool unlimited = limit.rlim_cur == RLIM_INFINITY || host_capable(state, CAPABILITY_IPC_LOCK);
    json_bool(j, "memlock_unlimited", known && unlimited);
    if (known && !unlimited)
        json_count(j, "memlock_bytes", limit.rlim_cur);
    else
        json_text(j, "memlock_bytes", NULL);
}

static void write_memory(const struct host_state *state, struct json *j)
{
    char text[128] = "", path[512];
    struct statvfs shm = {0};
    snprintf(path, sizeof path, "%s/dev/shm", state->root);
    if (statvfs(path, &shm))
        shm = (struct statvfs){0};
    count_or_null(j, "memory_bytes", state->machine.memory);
    count_or_null(j, "memory_available_bytes", memory_available());
    write_memlock(state, j);
    count_or_null(j, "shm_bytes", (uint64_t)shm.f_blocks * shm.f_frsize);
    write_pages(state, j, 2048, "huge_2mib_pages", "huge_2mib_free");
    write_pages(state, j, 1048576, "huge_1gib_pages", "huge_1gib_free");
    system_line(state->root, text, sizeof text, "/sys/kernel/mm/transparent_hugepage/enabled");
    text_or_null(j, "transparent_huge_pages", host_selected(text));
}

static void write_clocks(const struct host_state *state, struct json *j)
{
    const struct host_clock *gettime = &state->clocks[CLOCK_GETTIME];
    const struct host_clock *cycles = &state->clocks[CLOCK_CYCLES];
    text_or_null(j, "kernel_clock", state->machine.clocksource);
    json_number(j, "clock_gettime_cost_ns",
                gettime->available ? (double)gettime->clock.cost_ps / 1000 : NAN);
    json_number(j, "cycles_cost_ns",
                cycles->available ? (double)cycles->clock.cost_ps / 1000 : NAN);
    json_decimals(j, "cycles_hz", cycles->available ? 1e12 / cycles->clock.ps_per_tick : NAN, 0);
}

static void write_caches(const struct host_state *state, struct json *j)
{
    struct cache caches[CACHES];
    size_t count = caches_look(caches, CACHES, state->root);
    json_open(j, "caches", '[');
    for (size_t i = 0; i < count; i++) {
        uint64_t bytes = 0;
        if (unit_bytes(caches[i].size, &bytes))
            bytes = 0;
        json_open(j, NULL, '{');
        json_text(j, "name", caches[i].name);
        count_or_null(j, "bytes", bytes);
        count_or_null(j, "shared_by_cpus", cpus_count(caches[i].shared));
        count_or_null(j, "count", caches[i].count);
        json_close(j, '}');
    }
    json_close(j, ']');
}

void typed_section(const struct host_state *state, struct json *j)
{
    const struct machine *m = &state->machine;
    text_or_null(j, "host", m->host);
    text_or_null(j, "system", m->system);
    text_or_null(j, "architecture", m->architecture);
    text_or_null(j, "cpu", m->cpu);
    write_cpus(state, j);
    text_or_null(j, "hypervisor", m->hypervisor);
    text_or_null(j, "container", m->container);
    write_load(state, j);
    write_memory(state, j);
    write_clocks(state, j);
    write_caches(state, j);
}
