/* SPDX-License-Identifier: BSD-3-Clause */
/* weft info: what this machine is, what can be measured on it, and what would spoil it. */
#include "tool/info.h"
#include "core/clock.h"
#include "core/machine.h"
#include "tool/probe.h"
#include "tool/shell.h"
#include "tool/weft.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

enum { NETWORK_MS = 5000, CACHES = 8 };

/* ---- how it is laid out ---- */

void page_section(struct page *page, const char *title, const char *key, char bracket)
{
    if (page->form == PAGE_JSON)
        json_open(&page->json, key, bracket);
    else
        fprintf(page->out, "%s%s\n", page->begun ? "\n" : "", title);
    page->begun = true;
}

void page_end(struct page *page, char bracket)
{
    if (page->form == PAGE_JSON)
        json_close(&page->json, bracket);
}

void page_fact(struct page *page, const char *name, const char *format, ...)
{
    char text[1024];
    va_list words;
    va_start(words, format);
    vsnprintf(text, sizeof text, format, words);
    va_end(words);
    if (page->form == PAGE_LINES)
        fprintf(page->out, "%s\t%s\n", name, text);
    else if (page->form == PAGE_JSON && *name)
        json_text(&page->json, name, text);
    else if (page->form == PAGE_TEXT)
        fprintf(page->out, *name ? "  %-15s %s\n" : "  %s%s\n", name, text);
}

/* ---- sections ---- */

static const char *many(unsigned count)
{
    return count == 1 ? "" : "s";
}

static void show_cpus(const struct sight *sight, struct page *page)
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
        page_fact(page, "CPUs", "%u%s", t->cpus, text);
    if (allowed && allowed != t->cpus)
        page_fact(page, "allowed", "%u of them: %s", allowed, m->allowed);
    if (sight->usable > 1)
        page_fact(page, "chosen", "--cpu %d,%d: what --local takes", (int)sight->pair[0],
                  (int)sight->pair[1]);
}

struct shown {
    const struct sight *sight;
    struct page *page;
};

static void show_node(void *arg, const char *name)
{
    const struct shown *shown = arg;
    char cpus[256];
    if (strncmp(name, "node", 4) != 0 || name[4] < '0' || name[4] > '9')
        return;
    system_line(shown->sight->root, cpus, sizeof cpus, "/sys/devices/system/node/%s/cpulist", name);
    page_fact(shown->page, name, "CPUs %s", *cpus ? cpus : "none");
}

static void show_machine(const struct sight *sight, struct page *page)
{
    const struct machine *m = &sight->machine;
    char total[32], left[32], text[64];
    page_section(page, "Machine", "machine", '{');
    page_fact(page, "host", "%s", m->host);
    page_fact(page, "system", "%s, %s", m->system, m->architecture);
    if (*m->cpu)
        page_fact(page, "CPU", "%s", m->cpu);
    show_cpus(sight, page);
    if (sight->topology.nodes)
        page_fact(page, "memory nodes", "%u", sight->topology.nodes);
    if (sight->topology.nodes > 1)
        system_each(sight->root, show_node, &(struct shown){sight, page},
                    "/sys/devices/system/node");
    unit_bytes_text(m->memory, total, sizeof total);
    unit_bytes_text(memory_available(), left, sizeof left);
    if (m->memory)
        page_fact(page, "memory", "%s, %s to be had", total, left);
    if (*m->hypervisor)
        page_fact(page, "virtual machine", "%s", m->hypervisor);
    if (*m->container)
        page_fact(page, "container", "%s", m->container);
    if (system_line(sight->root, text, sizeof text, "/proc/loadavg"))
        page_fact(page, "load", "%.*s in the last minute", (int)strcspn(text, " "), text);
    page_end(page, '}');
}

static void show_caches(const struct sight *sight, struct page *page)
{
    struct cache caches[CACHES];
    size_t count = caches_look(caches, CACHES, sight->root);
    page_section(page, "Caches", "caches", '{');
    for (size_t i = 0; i < count; i++) {
        const struct cache *c = &caches[i];
        unsigned sharers = cpus_count(c->shared);
        uint64_t bytes;
        char size[32];
        snprintf(size, sizeof size, "%s", c->size);
        if (!unit_bytes(c->size, &bytes))
            unit_bytes_text(bytes, size, sizeof size);
        if (sharers > 1)
            page_fact(page, c->name, "%s, one for %u CPUs (%s); %u in all", size, sharers,
                      c->shared, c->count);
        else
            page_fact(page, c->name, "%s a CPU", size);
    }
    if (!count)
        page_fact(page, "", "not known");
    page_end(page, '}');
}

static void show_clocks(const struct sight *sight, struct page *page)
{
    const struct clock *wall = &sight->clocks[CLOCK_GETTIME].clock;
    const struct clock *cycles = &sight->clocks[CLOCK_CYCLES].clock;
    page_section(page, "Clocks", "clocks", '{');
    if (sight->clocks[CLOCK_GETTIME].there)
        page_fact(page, "clock_gettime", "two reads cost %.1f ns; the CXI tools' default",
                  (double)wall->cost_ps / 1000);
    if (sight->clocks[CLOCK_CYCLES].there)
        page_fact(page, "cycles",
                  "two reads cost %.1f ns; invariant, %.3f GHz; ucx_perftest's clock",
                  (double)cycles->cost_ps / 1000, 1000 / cycles->ps_per_tick);
    else
        page_fact(page, "cycles", "not invariant: not used");
    if (*sight->machine.clocksource)
        page_fact(page, "kernel", "%s", sight->machine.clocksource);
    page_end(page, '}');
}

static void show_huge(const struct sight *sight, struct page *page, const char *name, unsigned kib)
{
    uint64_t all = 0, left = 0;
    if (!system_number(sight->root, &all, "/sys/kernel/mm/hugepages/hugepages-%ukB/nr_hugepages",
                       kib))
        return;
    system_number(sight->root, &left, "/sys/kernel/mm/hugepages/hugepages-%ukB/free_hugepages",
                  kib);
    if (all)
        page_fact(page, name, "%" PRIu64 " set aside, %" PRIu64 " free", all, left);
    else
        page_fact(page, name, "none set aside");
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

static void show_memory(const struct sight *sight, struct page *page)
{
    char text[128], path[512];
    struct rlimit limit;
    struct statvfs shm;
    page_section(page, "Memory", "memory", '{');
    show_huge(sight, page, "pages of 2M", 2048);
    show_huge(sight, page, "pages of 1G", 1048576);
    if (system_line(sight->root, text, sizeof text, "/sys/kernel/mm/transparent_hugepage/enabled"))
        page_fact(page, "transparent", "%s", chosen(text));
    if (!getrlimit(RLIMIT_MEMLOCK, &limit)) {
        snprintf(text, sizeof text, "without limit");
        if (limit.rlim_cur != RLIM_INFINITY && !sight_may(sight, MAY_LOCK))
            unit_bytes_text(limit.rlim_cur, text, sizeof text);
        page_fact(page, "may be locked", "%s", text);
    }
    snprintf(path, sizeof path, "%s/dev/shm", sight->root);
    if (!statvfs(path, &shm)) {
        unit_bytes_text((uint64_t)shm.f_blocks * shm.f_frsize, text, sizeof text);
        page_fact(page, "/dev/shm", "%s", text);
    }
    page_end(page, '}');
}

static void network_work(const void *arg, FILE *out)
{
    devices_network(arg, &(struct page){.form = PAGE_LINES, .out = out});
}

/* A driver that hangs does so when its files are read. */
static void show_network(const struct sight *sight, struct page *page)
{
    struct probe probe;
    page_section(page, "Network devices", "network", '{');
    int status = probe_run(&probe, network_work, sight, NETWORK_MS);
    char *rest = probe.text, *line;
    while (rest && (line = strsep(&rest, "\n"))) {
        const char *name = strsep(&line, "\t");
        if (line)
            page_fact(page, name, "%s", line);
    }
    if (status)
        page_fact(page, "trouble", "%s, while reading below /sys/class", fail_reason());
    probe_free(&probe);
    page_end(page, '}');
}

static void noise_text(const struct sight *sight, struct page *page)
{
    const struct noise *noise = &sight->noise;
    if (noise->line_ns > 0)
        page_fact(page, "cache line", "%.0f ns from CPU %d to CPU %d", noise->line_ns,
                  (int)sight->pair[0], (int)sight->pair[1]);
    for (int i = 0; i < noise->cpus; i++) {
        const struct gaps *gaps = &noise->on[i];
        char name[32];
        snprintf(name, sizeof name, "CPU %d", (int)gaps->cpu);
        page_fact(page, name,
                  "%" PRIu64 " gap%s of more than %d us in %d ms, %.2f %% of it; the longest "
                  "%.1f us",
                  gaps->count, gaps->count == 1 ? "" : "s", NOISE_GAP_US, NOISE_MS,
                  100 * (double)gaps->lost_ns / (double)gaps->span_ns,
                  (double)gaps->largest_ns / 1000);
    }
    if (noise->cpus)
        page_fact(page, "others", "%" PRIu64 " ms of CPU time in these %d ms", noise->others_ms,
                  NOISE_MS);
    else
        page_fact(page, "", "nothing: the CPUs of this process are not known");
}

static void noise_json(const struct sight *sight, struct json *json)
{
    const struct noise *noise = &sight->noise;
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

static void show_noise(const struct sight *sight, struct page *page)
{
    page_section(page, "Measured", "measured", '{');
    if (page->form == PAGE_JSON)
        noise_json(sight, &page->json);
    else
        noise_text(sight, page);
    page_end(page, '}');
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

static void show_all(struct sight *sight, struct page *page)
{
    look(sight);
    show_machine(sight, page);
    show_caches(sight, page);
    show_clocks(sight, page);
    show_memory(sight, page);
    devices_gpus(sight, page);
    show_network(sight, page);
    fabrics_show(sight, page);
    noise_measure(&sight->noise, sight->pair, sight->usable);
    show_noise(sight, page);
    hurts_show(sight, page);
}

static int save_json(struct sight *sight, const char *path)
{
    char *bytes = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&bytes, &length);
    if (!out)
        return fail(-ENOMEM, "no memory for what is found");
    struct page page = {.form = PAGE_JSON, .out = out, .json = {.out = out, .lines = 3}};
    json_open(&page.json, NULL, '{');
    json_text(&page.json, "schema", "weft-info");
    json_count(&page.json, "version", 1);
    json_text(&page.json, "weft", weft_version());
    show_all(sight, &page);
    json_close(&page.json, '}');
    fputc('\n', out);
    int status = fclose(out) ? fail(-ENOMEM, "no memory for what is found") : 0;
    if (!status)
        status = save_write(path, bytes, length);
    free(bytes);
    return status;
}

int info_command(const struct command *command, int argc, char **argv)
{
    static struct weft_options options;
    static struct sight sight = {.root = ""};
    const char *places[argc];
    int given, status = weft_parse(command, argc, argv, &options, places, &given);
    if (status)
        return status < 0 ? status : 0;
    if (given)
        return fail(-EINVAL, "\"%s\" is one word too many (--help shows how)", places[0]);
    sight.verbose = options.verbose;
    if (*options.json) {
        status = save_check(options.json);
        return status ? status : save_json(&sight, options.json);
    }
    show_all(&sight, &(struct page){.form = PAGE_TEXT, .out = stdout});
    return shell_flush("what was found");
}
