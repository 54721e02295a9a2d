/* SPDX-License-Identifier: BSD-3-Clause */
/* weft info: what this machine is, what can be measured on it, and what would spoil it. */
#include "tool/info.h"
#include "tool/probe.h"
#include "tool/shell.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

enum { NETWORK_MS = 5000, CACHES = 8 };

/* ---- how it is laid out ---- */

void show_section(FILE *out, const char *title)
{
    fprintf(out, "\n%s\n", title);
}

void show_fact(FILE *out, const char *name, const char *format, ...)
{
    char text[1024];
    va_list words;
    va_start(words, format);
    vsnprintf(text, sizeof text, format, words);
    va_end(words);
    if (*name)
        fprintf(out, "  %-15s %s\n", name, text);
    else
        fprintf(out, "  %s\n", text);
}

/* ---- sections ---- */

static const char *many(unsigned count)
{
    return count == 1 ? "" : "s";
}

static void show_cpus(const struct sight *sight, FILE *out)
{
    const struct topology *t = &sight->topology;
    const struct machine *m = &sight->machine;
    unsigned allowed = cpus_count(m->allowed);
    char text[256] = "";
    if (t->sockets && t->cores)
        snprintf(text, sizeof text, " (%u socket%s, %u core%s, %u thread%s a core)", t->sockets,
                 many(t->sockets), t->cores, many(t->cores), t->cpus / t->cores,
                 many(t->cpus / t->cores));
    if (t->cpus)
        show_fact(out, "CPUs", "%u%s", t->cpus, text);
    if (allowed && allowed != t->cpus)
        show_fact(out, "allowed", "%u of them: %s", allowed, m->allowed);
    if (sight->usable > 1)
        show_fact(out, "chosen", "--cpu %d,%d: what --local takes", (int)sight->pair[0],
                  (int)sight->pair[1]);
}

struct shown {
    const struct sight *sight;
    FILE *out;
};

static void show_node(void *arg, const char *name)
{
    const struct shown *shown = arg;
    char cpus[256];
    if (strncmp(name, "node", 4) != 0 || name[4] < '0' || name[4] > '9')
        return;
    system_line(shown->sight->root, cpus, sizeof cpus, "/sys/devices/system/node/%s/cpulist", name);
    show_fact(shown->out, name, "CPUs %s", *cpus ? cpus : "none");
}

static void show_machine(const struct sight *sight, FILE *out)
{
    const struct machine *m = &sight->machine;
    char total[32], left[32], text[64];
    fprintf(out, "Machine\n");
    show_fact(out, "host", "%s", m->host);
    show_fact(out, "system", "%s, %s", m->system, m->architecture);
    if (*m->cpu)
        show_fact(out, "CPU", "%s", m->cpu);
    show_cpus(sight, out);
    if (sight->topology.nodes)
        show_fact(out, "memory nodes", "%u", sight->topology.nodes);
    if (sight->topology.nodes > 1)
        system_each(sight->root, show_node, &(struct shown){sight, out},
                    "/sys/devices/system/node");
    unit_bytes_text(m->memory, total, sizeof total);
    unit_bytes_text(memory_available(), left, sizeof left);
    if (m->memory)
        show_fact(out, "memory", "%s, %s to be had", total, left);
    if (*m->hypervisor)
        show_fact(out, "virtual machine", "%s", m->hypervisor);
    if (*m->container)
        show_fact(out, "container", "%s", m->container);
    if (system_line(sight->root, text, sizeof text, "/proc/loadavg"))
        show_fact(out, "load", "%.*s in the last minute", (int)strcspn(text, " "), text);
}

static void show_caches(const struct sight *sight, FILE *out)
{
    struct cache caches[CACHES];
    size_t count = caches_look(caches, CACHES, sight->root);
    show_section(out, "Caches");
    for (size_t i = 0; i < count; i++) {
        const struct cache *c = &caches[i];
        unsigned sharers = cpus_count(c->shared);
        uint64_t bytes;
        char size[32];
        snprintf(size, sizeof size, "%s", c->size);
        if (!unit_bytes(c->size, &bytes))
            unit_bytes_text(bytes, size, sizeof size);
        if (sharers > 1)
            show_fact(out, c->name, "%s, one for %u CPUs (%s); %u in all", size, sharers, c->shared,
                      c->count);
        else
            show_fact(out, c->name, "%s a CPU", size);
    }
    if (!count)
        show_fact(out, "", "not known");
}

static void show_clocks(const struct sight *sight, FILE *out)
{
    const struct clock *wall = &sight->clocks[CLOCK_GETTIME].clock;
    const struct clock *cycles = &sight->clocks[CLOCK_CYCLES].clock;
    show_section(out, "Clocks");
    if (sight->clocks[CLOCK_GETTIME].there)
        show_fact(out, "clock_gettime", "two reads cost %.1f ns; the CXI tools' default",
                  (double)wall->cost_ps / 1000);
    if (sight->clocks[CLOCK_CYCLES].there)
        show_fact(out, "cycles",
                  "two reads cost %.1f ns; invariant, %.3f GHz; ucx_perftest's clock",
                  (double)cycles->cost_ps / 1000, 1000 / cycles->ps_per_tick);
    else
        show_fact(out, "cycles", "not invariant: not used");
    if (*sight->machine.clocksource)
        show_fact(out, "kernel", "%s", sight->machine.clocksource);
}

static void show_huge(const struct sight *sight, FILE *out, const char *name, unsigned kib)
{
    uint64_t all = 0, left = 0;
    if (!system_number(sight->root, &all, "/sys/kernel/mm/hugepages/hugepages-%ukB/nr_hugepages",
                       kib))
        return;
    system_number(sight->root, &left, "/sys/kernel/mm/hugepages/hugepages-%ukB/free_hugepages",
                  kib);
    if (all)
        show_fact(out, name, "%" PRIu64 " set aside, %" PRIu64 " free", all, left);
    else
        show_fact(out, name, "none set aside");
}

/* "always [madvise] never" */
static const char *chosen(char *text)
{
    char *begin = strchr(text, '[');
    char *end = begin ? strchr(begin, ']') : NULL;
    if (!end)
        return text;
    *end = '\0';
    return begin + 1;
}

static void show_memory(const struct sight *sight, FILE *out)
{
    char text[128], path[512];
    struct rlimit limit;
    struct statvfs shm;
    show_section(out, "Memory");
    show_huge(sight, out, "pages of 2M", 2048);
    show_huge(sight, out, "pages of 1G", 1048576);
    if (system_line(sight->root, text, sizeof text, "/sys/kernel/mm/transparent_hugepage/enabled"))
        show_fact(out, "transparent", "%s", chosen(text));
    if (!getrlimit(RLIMIT_MEMLOCK, &limit)) {
        snprintf(text, sizeof text, "without limit");
        if (limit.rlim_cur != RLIM_INFINITY && !sight_may(sight, MAY_LOCK))
            unit_bytes_text(limit.rlim_cur, text, sizeof text);
        show_fact(out, "may be locked", "%s", text);
    }
    snprintf(path, sizeof path, "%s/dev/shm", sight->root);
    if (!statvfs(path, &shm)) {
        unit_bytes_text((uint64_t)shm.f_blocks * shm.f_frsize, text, sizeof text);
        show_fact(out, "/dev/shm", "%s", text);
    }
}

static void network_work(const void *arg, FILE *out)
{
    devices_network(arg, out);
}

/* A driver that hangs does so when its files are read. */
static void show_network(const struct sight *sight, FILE *out)
{
    struct probe probe;
    show_section(out, "Network devices");
    int status = probe_run(&probe, network_work, sight, NETWORK_MS);
    if (probe.text)
        fputs(probe.text, out);
    if (status)
        show_fact(out, "", "%s, while reading below /sys/class", fail_reason());
    probe_free(&probe);
}

static void show_noise(const struct sight *sight, FILE *out)
{
    const struct noise *noise = &sight->noise;
    show_section(out, "Measured");
    if (noise->line_ns > 0)
        show_fact(out, "cache line", "%.0f ns from CPU %d to CPU %d", noise->line_ns,
                  (int)sight->pair[0], (int)sight->pair[1]);
    for (int i = 0; i < noise->cpus; i++) {
        const struct gaps *gaps = &noise->on[i];
        char name[32];
        snprintf(name, sizeof name, "CPU %d", (int)gaps->cpu);
        show_fact(out, name,
                  "%" PRIu64 " gap%s of more than %d us in %d ms, %.2f %% of it; the longest "
                  "%.1f us",
                  gaps->count, gaps->count == 1 ? "" : "s", NOISE_GAP_US, NOISE_MS,
                  100 * (double)gaps->lost_ns / (double)gaps->span_ns,
                  (double)gaps->largest_ns / 1000);
    }
    if (!noise->cpus)
        show_fact(out, "", "nothing: the CPUs of this process are not known");
    else
        show_fact(out, "others", "%" PRIu64 " ms of CPU time in these %d ms", noise->others_ms,
                  NOISE_MS);
}

/* ---- main ---- */

static void look(struct sight *sight)
{
    static const enum clock_kind kinds[] = {CLOCK_GETTIME, CLOCK_CYCLES};
    machine_look(&sight->machine, sight->root);
    topology_look(&sight->topology, sight->root);
    sight->usable = cpu_pair(sight->pair);
    for (size_t i = 0; i < LENGTH(kinds); i++)
        sight->clocks[kinds[i]].there = !clock_open(&sight->clocks[kinds[i]].clock, kinds[i]);
}

static int show_all(struct sight *sight, FILE *out)
{
    look(sight);
    show_machine(sight, out);
    show_caches(sight, out);
    show_clocks(sight, out);
    show_memory(sight, out);
    devices_gpus(sight, out);
    show_network(sight, out);
    fabrics_show(sight, out);
    noise_measure(&sight->noise, sight->pair, sight->usable);
    show_noise(sight, out);
    hurts_show(sight, out);
    return shell_flush("what was found");
}

struct options {
    bool verbose, help;
};

static const struct opt rows[] = {
    {.letter = 'v',
     .name = "verbose",
     .type = OPT_FLAG,
     .field = offsetof(struct options, verbose),
     .help = "Also what each device can do: layouts and their limits, atomics,\n"
             "what the completion of an operation proves"},
    {.letter = 'h',
     .name = "help",
     .type = OPT_FLAG,
     .field = offsetof(struct options, help),
     .help = "Print this help text and exit"},
    {0}};

static int print_help(const struct opt_set *set)
{
    struct blob text;
    int status =
        blob_print(&text, "Usage: weft info [OPTIONS]\n"
                          "What this machine is, what can be measured on it, what would spoil the\n"
                          "figures, and what to type to mend it.\n\n"
                          "Options:\n");
    if (!status)
        status = opt_help(set, NULL, 0, &text);
    if (status)
        return status;
    fputs(text.bytes, stdout);
    return shell_flush("the help text");
}

int info_main(int argc, char **argv)
{
    struct options options;
    struct opt_set set = {.rows = rows, .base = &options};
    static struct sight sight = {.root = ""};
    int given;
    opt_defaults(&set);
    int status = opt_parse(&set, argc - 1, argv + 1, NULL, 0, &given);
    if (!status && options.help)
        status = print_help(&set);
    else if (!status) {
        sight.verbose = options.verbose;
        status = show_all(&sight, stdout);
    }
    if (status)
        shell_say(fail_reason());
    return shell_exit_code(status);
}
