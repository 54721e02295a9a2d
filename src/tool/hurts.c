/* SPDX-License-Identifier: BSD-3-Clause */
/* What spoils measurements: the list of it, and what is the CPUs' doing. A row is one thing to look
 * for; what cannot be looked at is not found. */
#include "core/clock.h"
#include "core/machine.h"
#include "tool/info.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WHAT(found, ...) snprintf((found)->what, sizeof(found)->what, __VA_ARGS__)
#define MEND(found, ...) snprintf((found)->mend, sizeof(found)->mend, __VA_ARGS__)

/* ---- the build, and how many CPUs there are ---- */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SLOW_BUILD "with sanitizers"
#elif !defined(__OPTIMIZE__)
#define SLOW_BUILD "without optimisation"
#endif

static bool slow_build(const struct sight *sight, struct finding *found)
{
    (void)sight;
#ifdef SLOW_BUILD
    WHAT(found, "this Weft is built " SLOW_BUILD);
    MEND(found, "meson setup --buildtype=release BUILD, or an installed Weft");
    return true;
#else
    (void)found;
    return false;
#endif
}

static bool one_cpu(const struct sight *sight, struct finding *found)
{
    unsigned all = cpus_count(sight->machine.online);
    int shown = (int)sizeof found->mend / 4;
    if (sight->usable != 1)
        return false;
    if (all > 1) {
        WHAT(found, "this process may use one CPU of %u", all);
        MEND(found, "taskset -c %.*s COMMAND; in a container --cpuset-cpus=%.*s", shown,
             sight->machine.online, shown, sight->machine.online);
    } else {
        WHAT(found, "there is one CPU");
        MEND(found, "give the machine a second CPU");
    }
    return true;
}

struct quota {
    const char *root;
    double cpus; /* the least; 0: none */
    uint64_t throttled;
};

static void look_quota(void *arg, const char *folder, bool unified)
{
    struct quota *quota = arg;
    char text[64];
    uint64_t most = 0, period = 0;
    if (unified && (!system_line(quota->root, text, sizeof text, "%s/cpu.max", folder) ||
                    sscanf(text, "%" SCNu64 " %" SCNu64, &most, &period) != 2))
        return;
    if (!unified && (!system_number(quota->root, &most, "%s/cpu.cfs_quota_us", folder) ||
                     !system_number(quota->root, &period, "%s/cpu.cfs_period_us", folder)))
        return;
    if (!most || !period)
        return;
    double cpus = (double)most / (double)period;
    if (quota->cpus > 0 && quota->cpus <= cpus)
        return;
    quota->cpus = cpus;
    system_value(quota->root, "nr_throttled", text, sizeof text, "%s/cpu.stat", folder);
    quota->throttled = strtoull(text, NULL, 10);
}

static bool throttled(const struct sight *sight, struct finding *found)
{
    struct quota quota = {.root = sight->root};
    system_groups(sight->root, "cpu", look_quota, &quota);
    if (quota.cpus <= 0)
        return false;
    WHAT(found, "this container has a quota of %.2f CPUs; held back %" PRIu64 " times so far",
         quota.cpus, quota.throttled);
    MEND(found, "run it without --cpus, or a limit for cpu; CPUs of its own by --cpuset-cpus=A,B");
    return true;
}

/* ---- frequency and sleep ---- */

struct governors {
    const char *root;
    unsigned all, other;
    char name[64];
};

static void look_governor(void *arg, const char *name)
{
    struct governors *g = arg;
    char text[64];
    if (strncmp(name, "cpu", 3) != 0 ||
        !system_line(g->root, text, sizeof text,
                     "/sys/devices/system/cpu/%s/cpufreq/scaling_governor", name))
        return;
    g->all++;
    if (strcmp(text, "performance") == 0)
        return;
    g->other++;
    memcpy(g->name, text, sizeof g->name);
}

static bool governor(const struct sight *sight, struct finding *found)
{
    struct governors g = {.root = sight->root};
    system_each(sight->root, look_governor, &g, "/sys/devices/system/cpu");
    if (!g.other)
        return false;
    WHAT(found, "the frequency governor is %s on %u of %u CPUs", g.name, g.other, g.all);
    MEND(found,
         "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor");
    return true;
}

static bool turbo(const struct sight *sight, struct finding *found)
{
    static const struct {
        const char *file;
        uint64_t on;
    } switches[] = {{"/sys/devices/system/cpu/intel_pstate/no_turbo", 0},
                    {"/sys/devices/system/cpu/cpufreq/boost", 1}};
    for (size_t i = 0; i < LENGTH(switches); i++) {
        uint64_t now;
        if (!system_number(sight->root, &now, "%s", switches[i].file) || now != switches[i].on)
            continue;
        WHAT(found, "turbo frequencies are on");
        MEND(found, "echo %d | sudo tee %s", switches[i].on == 0, switches[i].file);
        return true;
    }
    return false;
}

/* Tools that may hold the CPUs awake do so themselves. */
static bool sleeps(const struct sight *sight, struct finding *found)
{
    enum { DEEP_US = 10, STATES = 16 };
    char path[512];
    uint64_t deepest = 0, latency_us, disabled;
    int first = -1;
    snprintf(path, sizeof path, "%s/dev/cpu_dma_latency", sight->root);
    for (int i = 0; i < STATES; i++) {
        char folder[64];
        snprintf(folder, sizeof folder, "/sys/devices/system/cpu/cpu0/cpuidle/state%d", i);
        if (!system_number(sight->root, &latency_us, "%s/latency", folder) ||
            latency_us <= DEEP_US ||
            (system_number(sight->root, &disabled, "%s/disable", folder) && disabled))
            continue;
        first = first < 0 ? i : first;
        deepest = latency_us > deepest ? latency_us : deepest;
    }
    if (first < 0 || access(path, W_OK) == 0)
        return false;
    WHAT(found,
         "an idle CPU takes up to %" PRIu64 " us to wake, and /dev/cpu_dma_latency is not ours",
         deepest);
    MEND(found, "sudo chmod o+rw /dev/cpu_dma_latency, or run as root: the tools keep CPUs awake");
    return true;
}

/* ---- who shares a core ---- */

static bool siblings(const struct sight *sight, struct finding *found)
{
    char list[256];
    uint64_t active = 0;
    const int64_t *pair = sight->pair;
    if (sight->usable < 2 ||
        !system_line(sight->root, list, sizeof list,
                     "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", (int)pair[0]))
        return false;
    if (cpus_has(list, (unsigned)pair[1])) {
        found->hint = false;
        WHAT(found, "the CPUs to be had, %d and %d, are threads of one core", (int)pair[0],
             (int)pair[1]);
        MEND(found, "take CPUs of two cores; a virtual machine needs four CPUs for that");
        return true;
    }
    if (cpus_count(list) < 2 ||
        (system_number(sight->root, &active, "/sys/devices/system/cpu/smt/active") && !active))
        return false;
    WHAT(found, "cores run two threads: CPUs %.100s are one core", list);
    MEND(found,
         "--cpu %d,%d, as --local does by itself; echo off | sudo tee "
         "/sys/devices/system/cpu/smt/control",
         (int)pair[0], (int)pair[1]);
    return true;
}

static bool apart(const struct sight *sight, struct finding *found)
{
    uint64_t package[2];
    for (int i = 0; i < 2; i++)
        if (sight->usable < 2 ||
            !system_number(sight->root, &package[i],
                           "/sys/devices/system/cpu/cpu%d/topology/physical_package_id",
                           (int)sight->pair[i]))
            return false;
    if (package[0] == package[1])
        return false;
    WHAT(found, "the CPUs to be had, %d and %d, are on two sockets", (int)sight->pair[0],
         (int)sight->pair[1]);
    MEND(found, "let the process use two CPUs of one socket: lscpu --extended shows which");
    return true;
}

/* ---- clocks ---- */

static bool slow_clock(const struct sight *sight, struct finding *found)
{
    static const char folder[] = "/sys/devices/system/clocksource/clocksource0";
    enum { SLOW_PS = 200000 };
    char all[128];
    const struct clock *clock = &sight->clocks[CLOCK_GETTIME].clock;
    if (!sight->clocks[CLOCK_GETTIME].there || clock->cost_ps < SLOW_PS)
        return false;
    WHAT(found, "clock_gettime costs %.0f ns%s%s", (double)clock->cost_ps / 1000,
         *sight->machine.clocksource ? ": the kernel's clock source is " : "",
         sight->machine.clocksource);
    system_line(sight->root, all, sizeof all, "%s/available_clocksource", folder);
    if (sight->clocks[CLOCK_CYCLES].there)
        MEND(found, "--clock cycles");
    else if (strstr(all, "tsc") && strcmp(sight->machine.clocksource, "tsc") != 0)
        MEND(found, "echo tsc | sudo tee %s/current_clocksource", folder);
    else
        MEND(found, "ask your administrator: the kernel does not trust this CPU's counter");
    return true;
}

static bool no_cycles(const struct sight *sight, struct finding *found)
{
    if (sight->clocks[CLOCK_CYCLES].there)
        return false;
    WHAT(found, "this CPU's cycle counter does not run at a constant rate");
    MEND(found, "nothing: --clock cycles is refused, and clock_gettime is the default");
    return true;
}

/* ---- what was measured ---- */

/* Lost in a thousand; and what a sample may meet. */
static bool gaps(const struct sight *sight, struct finding *found)
{
    const struct gaps *worst = &sight->noise.on[0];
    for (int i = 1; i < sight->noise.cpus; i++)
        if (sight->noise.on[i].lost_ns > worst->lost_ns)
            worst = &sight->noise.on[i];
    if (!sight->noise.cpus ||
        (worst->lost_ns * 1000 < worst->span_ns && worst->largest_ns < 1000000))
        return false;
    WHAT(found, "CPU %d lost %.2f %% of %d ms in %" PRIu64 " gaps, the longest %.0f us",
         (int)worst->cpu, 100 * (double)worst->lost_ns / (double)worst->span_ns, NOISE_MS,
         worst->count, (double)worst->largest_ns / 1000);
    if (sight->noise.others_ms * 2000000 > worst->lost_ns)
        MEND(found, "stop what else runs here: top -d 1 shows it");
    else if (*sight->machine.hypervisor)
        MEND(found,
             "ask for CPUs of its own for this virtual machine; else many runs, and medians");
    else if (sight->usable > 3)
        MEND(found,
             "boot with isolcpus=%d,%d nohz_full=%d,%d rcu_nocbs=%d,%d, and give --cpu %d,%d",
             (int)sight->pair[0], (int)sight->pair[1], (int)sight->pair[0], (int)sight->pair[1],
             (int)sight->pair[0], (int)sight->pair[1], (int)sight->pair[0], (int)sight->pair[1]);
    else
        MEND(found, "ask your administrator for two CPUs that are kept free");
    return true;
}

static bool busy(const struct sight *sight, struct finding *found)
{
    enum { BUSY_MS = NOISE_MS / 4 };
    const struct noise *noise = &sight->noise;
    double load = 0;
    char text[128];
    if (system_line(sight->root, text, sizeof text, "/proc/loadavg"))
        load = strtod(text, NULL);
    unsigned cpus = cpus_count(sight->machine.online);
    bool now = noise->others_ms > BUSY_MS;
    if (!now && (!cpus || load <= 0.5 * cpus))
        return false;
    if (now)
        WHAT(found, "other processes used %" PRIu64 " ms of CPU within %d ms%s%s", noise->others_ms,
             NOISE_MS, noise->busiest_ms ? ", most of it " : "",
             noise->busiest_ms ? noise->busiest : "");
    else
        WHAT(found, "the load was %.2f over the last minute, on %u CPUs", load, cpus);
    MEND(found, "wait until it is quiet; top -d 1 shows who it is");
    return true;
}

/* Since the machine started, and just now. */
static bool stolen(const struct sight *sight, struct finding *found)
{
    char text[256];
    uint64_t ticks[8] = {0}, all = 0;
    if (!system_line(sight->root, text, sizeof text, "/proc/stat") ||
        sscanf(text,
               "cpu %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
               " %" SCNu64 " %" SCNu64,
               &ticks[0], &ticks[1], &ticks[2], &ticks[3], &ticks[4], &ticks[5], &ticks[6],
               &ticks[7]) != 8)
        return false;
    for (size_t i = 0; i < LENGTH(ticks); i++)
        all += ticks[i];
    if (!sight->noise.steal_ms && ticks[7] * 1000 <= all)
        return false;
    found->hint = !sight->noise.steal_ms && ticks[7] * 100 <= all;
    WHAT(found,
         "the hypervisor took %.2f %% of the CPUs' time since boot, %" PRIu64
         " ms while this was measured",
         all ? 100 * (double)ticks[7] / (double)all : 0, sight->noise.steal_ms);
    MEND(found, "ask for CPUs that are not shared with other virtual machines");
    return true;
}

static bool virtual(const struct sight *sight, struct finding *found)
{
    if (!*sight->machine.hypervisor)
        return false;
    if (sight->noise.line_ns > 0)
        WHAT(found, "this is a virtual machine (%s), where a cache line takes %.0f ns just now",
             sight->machine.hypervisor, sight->noise.line_ns);
    else
        WHAT(found, "this is a virtual machine (%s)", sight->machine.hypervisor);
    MEND(found,
         "ask for CPUs that are pinned; else compare medians of several runs, A and B in turn");
    return true;
}

static bool not_isolated(const struct sight *sight, struct finding *found)
{
    char list[256];
    const int *p = (const int[]){(int)sight->pair[0], (int)sight->pair[1]};
    if (sight->usable < 4 || *sight->machine.hypervisor ||
        system_line(sight->root, list, sizeof list, "/sys/devices/system/cpu/isolated"))
        return false;
    WHAT(found, "no CPU is kept free for measuring");
    MEND(found, "boot with isolcpus=%d,%d nohz_full=%d,%d rcu_nocbs=%d,%d, and give --cpu %d,%d",
         p[0], p[1], p[0], p[1], p[0], p[1], p[0], p[1]);
    return true;
}

const struct hurt hurts_cpu[] = {
    {"build", false, "Every operation is several times slower than it could be.", slow_build},
    {"one cpu", false, "Client and server take turns on it: every hop waits for the scheduler.",
     one_cpu},
    {"quota", false, "When it is used up, everything stands still until the next period.",
     throttled},
    {"busy", false, "Other work takes the CPU away in the middle of a sample, or shares its core.",
     busy},
    {"gaps", false,
     "A sample that meets one is that much longer: maxima and tails are not the "
     "fabric's.",
     gaps},
    {"steal", false, "A sample that meets it is longer by milliseconds.", stolen},
    {"virtual", false,
     "Where the host puts the CPUs is not known: what a cache line costs may change by four.",
     virtual},
    {"governor", false, "The frequency follows the load: first samples are slow, and runs differ.",
     governor},
    {"idle", false, "With gaps between operations the CPU falls asleep, and waking is measured.",
     sleeps},
    {"clock", false, "That is added to the noise of every sample.", slow_clock},
    {"sockets", false, "Every cache line crosses the link between them.", apart},
    {"turbo", true, "The frequency depends on temperature and neighbours: runs differ by percents.",
     turbo},
    {"siblings", true, "Two ends on one core slow each other down.", siblings},
    {"cycles", true, "Only short operations would gain from that clock.", no_cycles},
    {"isolated", true, "Ticks, other processes and interrupts come to every CPU.", not_isolated},
    {0}};

/* ---- all of them ---- */

bool hurt_found(const struct hurt *hurt, const struct sight *sight, struct finding *finding)
{
    *finding = (struct finding){.hint = hurt->hint};
    return hurt->look(sight, finding);
}

/* Root needs no sudo, and in a container may have none. */
static void without_sudo(char *mend)
{
    char *at;
    while (geteuid() == 0 && (at = strstr(mend, "sudo ")))
        memmove(at, at + strlen("sudo "), strlen(at + strlen("sudo ")) + 1);
}

static void show_one(const struct hurt *hurt, struct finding *finding, struct page *page)
{
    static const char *const words[] = {"hurts", "hint"};
    without_sudo(finding->mend);
    if (page->form != PAGE_JSON) {
        fprintf(page->out, "  %-5s  %s\n         %s\n         mend: %s\n", words[finding->hint],
                finding->what, hurt->why, finding->mend);
        return;
    }
    json_open(&page->json, NULL, '{');
    json_text(&page->json, "check", hurt->name);
    json_text(&page->json, "severity", words[finding->hint]);
    json_text(&page->json, "what", finding->what);
    json_text(&page->json, "why", hurt->why);
    json_text(&page->json, "mend", finding->mend);
    json_close(&page->json, '}');
}

static int show_those(const struct sight *sight, struct page *page, bool hints)
{
    static const struct hurt *const lists[] = {hurts_cpu, hurts_memory};
    int count = 0;
    for (size_t i = 0; i < LENGTH(lists); i++)
        for (const struct hurt *hurt = lists[i]; hurt->name; hurt++) {
            struct finding finding;
            if (!hurt_found(hurt, sight, &finding) || finding.hint != hints)
                continue;
            show_one(hurt, &finding, page);
            count++;
        }
    return count;
}

void hurts_show(const struct sight *sight, struct page *page)
{
    page_section(page, "What will hurt measurements here", "findings", '[');
    int count = show_those(sight, page, false);
    count += show_those(sight, page, true);
    if (!count && page->form == PAGE_TEXT)
        page_fact(page, "", "nothing that was looked for");
    page_end(page, ']');
}
