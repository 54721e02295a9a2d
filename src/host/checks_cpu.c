/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks of the build, CPUs, frequencies, clocks, and other work on the machine. */
#include "core/clock.h"
#include "core/machine.h"
#include "host/checks.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the build and the number of CPUs ---- */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SLOW_BUILD "with sanitizers"
#elif !defined(__OPTIMIZE__)
#define SLOW_BUILD "without optimization"
#endif

static bool slow_build(const struct host_state *state, struct finding *found)
{
    (void)state;
#ifdef SLOW_BUILD
    WHAT(found, "Weft was built " SLOW_BUILD);
    FIX(found, "use an installed Weft, or build with meson setup --buildtype=release BUILD");
    return true;
#else
    (void)found;
    return false;
#endif
}

static bool one_cpu(const struct host_state *state, struct finding *found)
{
    unsigned all = cpus_count(state->machine.online);
    int shown = (int)sizeof found->fix / 4;
    if (state->usable != 1)
        return false;
    if (all > 1) {
        WHAT(found, "this process may use one CPU of %u", all);
        FIX(found, "taskset -c %.*s COMMAND; in a container: --cpuset-cpus=%.*s", shown,
            state->machine.online, shown, state->machine.online);
    } else {
        WHAT(found, "the machine has one CPU");
        FIX(found, "add a second CPU");
    }
    return true;
}

struct quota {
    const char *root;
    double cpus; /* of the tightest group; 0 if there is no quota */
    uint64_t throttled;
};

static void read_quota(void *arg, const char *folder, bool unified)
{
    struct quota *quota = arg;
    char text[64];
    uint64_t quota_us = 0, period_us = 0;
    if (unified && (!system_line(quota->root, text, sizeof text, "%s/cpu.max", folder) ||
                    sscanf(text, "%" SCNu64 " %" SCNu64, &quota_us, &period_us) != 2))
        return;
    if (!unified && (!system_number(quota->root, &quota_us, "%s/cpu.cfs_quota_us", folder) ||
                     !system_number(quota->root, &period_us, "%s/cpu.cfs_period_us", folder)))
        return;
    if (!quota_us || !period_us)
        return;
    double cpus = (double)quota_us / (double)period_us;
    if (quota->cpus > 0 && quota->cpus <= cpus)
        return;
    quota->cpus = cpus;
    system_value(quota->root, "nr_throttled", text, sizeof text, "%s/cpu.stat", folder);
    quota->throttled = strtoull(text, NULL, 10);
}

static bool throttled(const struct host_state *state, struct finding *found)
{
    struct quota quota = {.root = state->root};
    system_groups(state->root, "cpu", read_quota, &quota);
    if (quota.cpus <= 0)
        return false;
    WHAT(found,
         "the control group has a quota of %.2f CPUs; it was throttled %" PRIu64 " times so far",
         quota.cpus, quota.throttled);
    FIX(found, "remove the CPU limit (container option --cpus); use --cpuset-cpus=A,B instead");
    return true;
}

/* ---- frequencies and idle states ---- */

struct governors {
    const char *root;
    unsigned all, other;
    char name[64];
};

static void read_governor(void *arg, const char *name)
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

static bool governor(const struct host_state *state, struct finding *found)
{
    struct governors g = {.root = state->root};
    system_each(state->root, read_governor, &g, "/sys/devices/system/cpu");
    if (!g.other)
        return false;
    WHAT(found, "the frequency governor is %s on %u of %u CPUs", g.name, g.other, g.all);
    FIX(found, "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor");
    return true;
}

static bool turbo(const struct host_state *state, struct finding *found)
{
    static const struct {
        const char *file;
        uint64_t on;
    } switches[] = {{"/sys/devices/system/cpu/intel_pstate/no_turbo", 0},
                    {"/sys/devices/system/cpu/cpufreq/boost", 1}};
    for (size_t i = 0; i < LENGTH(switches); i++) {
        uint64_t now;
        if (!system_number(state->root, &now, "%s", switches[i].file) || now != switches[i].on)
            continue;
        WHAT(found, "turbo frequencies are enabled");
        FIX(found, "echo %d | sudo tee %s", switches[i].on == 0, switches[i].file);
        return true;
    }
    return false;
}

/* The longest wake-up time of the idle states that are enabled, if it is above DEEP_US; otherwise
 * 0. */
static uint64_t deepest_idle_us(const char *root)
{
    enum { DEEP_US = 10, STATES = 16 };
    uint64_t deepest_us = 0, latency_us, disabled;
    for (int i = 0; i < STATES; i++) {
        char folder[64];
        snprintf(folder, sizeof folder, "/sys/devices/system/cpu/cpu0/cpuidle/state%d", i);
        if (!system_number(root, &latency_us, "%s/latency", folder) || latency_us <= DEEP_US ||
            (system_number(root, &disabled, "%s/disable", folder) && disabled))
            continue;
        deepest_us = latency_us > deepest_us ? latency_us : deepest_us;
    }
    return deepest_us;
}

/* Harmless where the tools can write to /dev/cpu_dma_latency: they keep the CPUs awake. */
static bool deep_idle(const struct host_state *state, struct finding *found)
{
    char path[512];
    uint64_t deepest_us = deepest_idle_us(state->root);
    snprintf(path, sizeof path, "%s/dev/cpu_dma_latency", state->root);
    if (!deepest_us || access(path, W_OK) == 0)
        return false;
    WHAT(found,
         "an idle CPU takes up to %" PRIu64
         " us to wake up, and /dev/cpu_dma_latency is not writable",
         deepest_us);
    FIX(found,
        "sudo chmod o+rw /dev/cpu_dma_latency, or run as root: the tools then keep CPUs awake");
    return true;
}

/* ---- shared cores, separate sockets ---- */

static bool siblings(const struct host_state *state, struct finding *found)
{
    char list[256];
    uint64_t active = 0;
    const int64_t *pair = state->pair;
    if (state->usable < 2 ||
        !system_line(state->root, list, sizeof list,
                     "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", (int)pair[0]))
        return false;
    if (cpus_has(list, (unsigned)pair[1])) {
        found->hint = false;
        WHAT(found, "the available CPUs, %d and %d, are threads of one core", (int)pair[0],
             (int)pair[1]);
        FIX(found, "use CPUs of two cores; a virtual machine needs four CPUs for that");
        return true;
    }
    if (cpus_count(list) < 2 ||
        (system_number(state->root, &active, "/sys/devices/system/cpu/smt/active") && !active))
        return false;
    WHAT(found, "cores run several threads: CPUs %.100s share one core", list);
    FIX(found,
        "--cpu %d,%d (default of --local), or echo off | sudo tee "
        "/sys/devices/system/cpu/smt/control",
        (int)pair[0], (int)pair[1]);
    return true;
}

static bool two_sockets(const struct host_state *state, struct finding *found)
{
    uint64_t package[2];
    for (int i = 0; i < 2; i++)
        if (state->usable < 2 ||
            !system_number(state->root, &package[i],
                           "/sys/devices/system/cpu/cpu%d/topology/physical_package_id",
                           (int)state->pair[i]))
            return false;
    if (package[0] == package[1])
        return false;
    WHAT(found, "the available CPUs, %d and %d, are on two sockets", (int)state->pair[0],
         (int)state->pair[1]);
    FIX(found, "allow two CPUs of one socket; lscpu --extended shows them");
    return true;
}

/* ---- clocks ---- */

static bool slow_clock(const struct host_state *state, struct finding *found)
{
    static const char folder[] = "/sys/devices/system/clocksource/clocksource0";
    enum { SLOW_PS = 200000 };
    char all[128];
    const struct clock *clock = &state->clocks[CLOCK_GETTIME].clock;
    if (!state->clocks[CLOCK_GETTIME].available || clock->cost_ps < SLOW_PS)
        return false;
    WHAT(found, "two reads of clock_gettime cost %.0f ns%s%s", (double)clock->cost_ps / 1000,
         *state->machine.clocksource ? "; the kernel clock is " : "", state->machine.clocksource);
    system_line(state->root, all, sizeof all, "%s/available_clocksource", folder);
    if (state->clocks[CLOCK_CYCLES].available)
        FIX(found, "use --clock cycles");
    else if (strstr(all, "tsc") && strcmp(state->machine.clocksource, "tsc") != 0)
        FIX(found, "echo tsc | sudo tee %s/current_clocksource", folder);
    else
        FIX(found, "ask your administrator: the kernel does not trust this CPU's cycle counter");
    return true;
}

static bool no_cycles(const struct host_state *state, struct finding *found)
{
    if (state->clocks[CLOCK_CYCLES].available)
        return false;
    WHAT(found, "this CPU's cycle counter does not run at a constant rate");
    FIX(found, "none needed: clock_gettime is the default, and --clock cycles is refused");
    return true;
}

/* ---- other work on the CPUs ---- */

static void fix_by_isolation(const struct host_state *state, struct finding *found)
{
    char pair[48];
    snprintf(pair, sizeof pair, "%d,%d", (int)state->pair[0], (int)state->pair[1]);
    FIX(found, "boot with isolcpus=%s nohz_full=%s rcu_nocbs=%s, then use --cpu %s", pair, pair,
        pair, pair);
}

static void fix_gaps(const struct host_state *state, uint64_t lost_ns, struct finding *found)
{
    if (state->noise.others_ms * 2000000 > lost_ns)
        FIX(found, "stop other processes; top -d 1 shows them");
    else if (*state->machine.hypervisor)
        FIX(found,
            "give this virtual machine dedicated CPUs; otherwise compare medians of many runs");
    else if (state->usable > 3)
        fix_by_isolation(state, found);
    else
        FIX(found, "ask your administrator for two isolated CPUs");
}

/* More than a thousandth of the time was lost, or a whole millisecond at once. */
static bool gaps(const struct host_state *state, struct finding *found)
{
    const struct gaps *worst = &state->noise.on[0];
    for (int i = 1; i < state->noise.cpus; i++)
        if (state->noise.on[i].lost_ns > worst->lost_ns)
            worst = &state->noise.on[i];
    if (!state->noise.cpus ||
        (worst->lost_ns * 1000 < worst->span_ns && worst->largest_ns < 1000000))
        return false;
    WHAT(found, "CPU %d lost %.2f %% of %d ms in %" PRIu64 " gaps, longest %.0f us",
         (int)worst->cpu, 100 * (double)worst->lost_ns / (double)worst->span_ns, NOISE_MS,
         worst->count, (double)worst->largest_ns / 1000);
    fix_gaps(state, worst->lost_ns, found);
    return true;
}

static bool busy(const struct host_state *state, struct finding *found)
{
    enum { BUSY_MS = NOISE_MS / 4 };
    const struct noise *noise = &state->noise;
    double load = 0;
    char text[128];
    if (system_line(state->root, text, sizeof text, "/proc/loadavg"))
        load = strtod(text, NULL);
    unsigned cpus = cpus_count(state->machine.online);
    bool now = noise->others_ms > BUSY_MS;
    if (!now && (!cpus || load <= 0.5 * cpus))
        return false;
    if (now)
        WHAT(found, "other processes used %" PRIu64 " ms of CPU time in %d ms%s%s",
             noise->others_ms, NOISE_MS, noise->busiest_ms ? ", most of it by " : "",
             noise->busiest_ms ? noise->busiest : "");
    else
        WHAT(found, "the load average of the last minute is %.2f on %u CPUs", load, cpus);
    FIX(found, "stop other processes or wait for their end; top -d 1 shows them");
    return true;
}

/* CPU time since boot, of all CPUs: stolen by the hypervisor, and the total. */
static bool read_steal(const char *root, uint64_t *stolen, uint64_t *all)
{
    enum { KINDS = 8 };
    char text[256], *at = text + strlen("cpu"), *end;
    if (!system_line(root, text, sizeof text, "/proc/stat") || strncmp(text, "cpu ", 4) != 0)
        return false;
    *all = 0;
    for (int i = 0; i < KINDS; i++, at = end) {
        *stolen = strtoull(at, &end, 10);
        if (end == at)
            return false;
        *all += *stolen;
    }
    return true;
}

/* A hint if it was little, and none of it during this measurement. */
static bool steal(const struct host_state *state, struct finding *found)
{
    uint64_t stolen, all;
    uint64_t now_ms = state->noise.steal_ms;
    if (!read_steal(state->root, &stolen, &all) || (!now_ms && stolen * 1000 <= all))
        return false;
    found->hint = !now_ms && stolen * 100 <= all;
    WHAT(found,
         "the hypervisor took %.2f %% of the CPU time since boot, %" PRIu64
         " ms during this measurement",
         all ? 100 * (double)stolen / (double)all : 0, now_ms);
    FIX(found, "use CPUs that are not shared with other virtual machines");
    return true;
}

static bool virtual(const struct host_state *state, struct finding *found)
{
    if (!*state->machine.hypervisor)
        return false;
    if (state->noise.line_ns > 0)
        WHAT(found, "this is a virtual machine (%s); a cache line transfer takes %.0f ns now",
             state->machine.hypervisor, state->noise.line_ns);
    else
        WHAT(found, "this is a virtual machine (%s)", state->machine.hypervisor);
    FIX(found, "pin the virtual CPUs; otherwise compare medians of several runs, A and B in turns");
    return true;
}

static bool not_isolated(const struct host_state *state, struct finding *found)
{
    char list[256];
    if (state->usable < 4 || *state->machine.hypervisor ||
        system_line(state->root, list, sizeof list, "/sys/devices/system/cpu/isolated"))
        return false;
    WHAT(found, "no CPU is isolated from other work");
    fix_by_isolation(state, found);
    return true;
}

const struct check checks_cpu[] = {
    {"build", false, "Every operation is several times slower than in a release build.",
     slow_build},
    {"one cpu", false, "Client and server take turns on it: every hop waits for the scheduler.",
     one_cpu},
    {"quota", false, "When the quota is used up, all threads stop until the next period.",
     throttled},
    {"busy", false, "Other processes preempt the benchmark within a sample, or share its core.",
     busy},
    {"gaps", false, "Samples that meet a gap include it: maxima and tails are not the fabric's.",
     gaps},
    {"steal", false, "Samples that meet it are longer by milliseconds.", steal},
    {"virtual", false,
     "The host may move virtual CPUs, which can change the cost of a cache line transfer fourfold.",
     virtual},
    {"governor", false, "The frequency follows the load: first samples are slow, and runs differ.",
     governor},
    {"idle", false, "Between operations CPUs enter idle states, and samples include the wake-up.",
     deep_idle},
    {"clock", false, "The cost of the clock adds noise to every sample.", slow_clock},
    {"sockets", false, "Every cache line crosses the link between the sockets.", two_sockets},
    {"turbo", true, "The frequency depends on temperature and on other cores: runs differ.", turbo},
    {"siblings", true, "Client and server on one core slow each other down.", siblings},
    {"cycles", true, "Only short operations would gain from that clock.", no_cycles},
    {"isolated", true, "Timer ticks, other processes and interrupts run on every CPU.",
     not_isolated},
    {0}};
