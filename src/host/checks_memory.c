/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks of memory, limits, interrupts and PCIe links. */
#include "core/machine.h"
#include "host/checks.h"
#include "host/sections.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

static bool numa_balancing(const struct host_state *state, struct finding *found)
{
    uint64_t on;
    if (state->topology.nodes < 2 ||
        !system_number(state->root, &on, "/proc/sys/kernel/numa_balancing") || !on)
        return false;
    WHAT(found, "the kernel moves pages between %u NUMA nodes", state->topology.nodes);
    FIX(found, "sudo sysctl kernel.numa_balancing=0");
    return true;
}

static bool swap_used(const struct host_state *state, struct finding *found)
{
    char total[64], rest[64], text[32];
    if (!system_value(state->root, "SwapTotal", total, sizeof total, "/proc/meminfo") ||
        !system_value(state->root, "SwapFree", rest, sizeof rest, "/proc/meminfo"))
        return false;
    uint64_t all = strtoull(total, NULL, 10), left = strtoull(rest, NULL, 10);
    if (left >= all)
        return false;
    unit_bytes_text((all - left) << 10, text, sizeof text);
    WHAT(found, "%s are swapped out", text);
    FIX(found, "sudo swapoff -a");
    return true;
}

static bool huge_always(const struct host_state *state, struct finding *found)
{
    char text[128];
    if (!system_line(state->root, text, sizeof text,
                     "/sys/kernel/mm/transparent_hugepage/enabled") ||
        !strstr(text, "[always]"))
        return false;
    WHAT(found, "transparent huge pages are enabled for all processes");
    FIX(found, "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled");
    return true;
}

static bool no_huge(const struct host_state *state, struct finding *found)
{
    static const char file[] = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
    uint64_t pages;
    if (!system_number(state->root, &pages, "%s", file) || pages)
        return false;
    WHAT(found, "no 2 MiB huge pages are reserved: --use-hp would be refused");
    FIX(found, "echo 64 | sudo tee %s", file);
    return true;
}

static bool lock_limit(const struct host_state *state, struct finding *found)
{
    enum { ENOUGH = 64 << 20 };
    struct rlimit limit;
    char text[32];
    if (host_capable(state, CAPABILITY_IPC_LOCK) || getrlimit(RLIMIT_MEMLOCK, &limit) ||
        limit.rlim_cur >= ENOUGH)
        return false;
    unit_bytes_text(limit.rlim_cur, text, sizeof text);
    WHAT(found, "memlock allows %s of locked memory", text);
    FIX(found,
        "ulimit -l unlimited, after \"* - memlock unlimited\" in /etc/security/limits.conf; in a "
        "container: --ulimit memlock=-1");
    return true;
}

static bool small_shm(const struct host_state *state, struct finding *found)
{
    enum { ENOUGH = 128 << 20 };
    struct statvfs shm;
    char path[512], text[32];
    snprintf(path, sizeof path, "%s/dev/shm", state->root);
    if (statvfs(path, &shm) || (uint64_t)shm.f_blocks * shm.f_frsize >= ENOUGH)
        return false;
    unit_bytes_text((uint64_t)shm.f_blocks * shm.f_frsize, text, sizeof text);
    WHAT(found, "/dev/shm has %s", text);
    FIX(found, "sudo mount -o remount,size=1G /dev/shm; in a container: --shm-size=1g");
    return true;
}

static bool no_trace(const struct host_state *state, struct finding *found)
{
    uint64_t scope;
    if (!system_number(state->root, &scope, "/proc/sys/kernel/yama/ptrace_scope") || !scope ||
        host_capable(state, CAPABILITY_SYS_PTRACE))
        return false;
    WHAT(found, "a process may not read the memory of another (ptrace_scope is %" PRIu64 ")",
         scope);
    FIX(found, "sudo sysctl kernel.yama.ptrace_scope=0");
    return true;
}

/* ---- interrupts and PCIe links ---- */

struct search {
    const struct host_state *state;
    struct finding *found;
    bool matched;
};

static void is_irqbalance(void *arg, const char *name)
{
    struct search *s = arg;
    char comm[32];
    if (s->matched || *name < '0' || *name > '9')
        return;
    s->matched = system_line(s->state->root, comm, sizeof comm, "/proc/%s/comm", name) &&
                 strcmp(comm, "irqbalance") == 0;
}

static bool irq_moves(const struct host_state *state, struct finding *found)
{
    struct search s = {.state = state};
    system_each(state->root, is_irqbalance, &s, "/proc");
    if (!s.matched)
        return false;
    WHAT(found, "irqbalance is running");
    FIX(found, "sudo systemctl stop irqbalance");
    return true;
}

static void check_link(struct search *s, const char *class, const char *name)
{
    char folder[300], text[160];
    snprintf(folder, sizeof folder, "/sys/class/%s/%.200s/device", class, name);
    if (s->matched || !pcie_degraded(s->state->root, folder, text, sizeof text))
        return;
    WHAT(s->found, "%.60s has a PCIe link of %s", name, text);
    s->matched = true;
}

static void check_rdma(void *arg, const char *name)
{
    check_link(arg, "infiniband", name);
}

static void check_cxi(void *arg, const char *name)
{
    check_link(arg, "cxi", name);
}

static void check_interface(void *arg, const char *name)
{
    check_link(arg, "net", name);
}

static bool degraded_links(const struct host_state *state, struct finding *found)
{
    struct search s = {.state = state, .found = found};
    system_each(state->root, check_cxi, &s, "/sys/class/cxi");
    system_each(state->root, check_rdma, &s, "/sys/class/infiniband");
    system_each(state->root, check_interface, &s, "/sys/class/net");
    if (s.matched)
        FIX(found, "reseat the card or use another slot; sudo lspci -vv shows LnkSta and LnkCap");
    return s.matched;
}

const struct check checks_memory[] = {
    {"slot", false, "The bus is slower than the card: it limits bandwidth and adds latency.",
     degraded_links},
    {"numa balancing", false,
     "The kernel unmaps pages to see which CPU uses them: samples include page faults.",
     numa_balancing},
    {"swap", true, "Memory that was swapped out comes back with a page fault.", swap_used},
    {"irqbalance", true, "Interrupts reach the CPUs of the benchmark and move during a run.",
     irq_moves},
    {"huge always", true, "The kernel builds huge pages and compacts memory in the background.",
     huge_always},
    {"no huge", true, "Large buffers in small pages miss the TLB.", no_huge},
    {"lock", true, "NICs lock their buffers: larger ones cannot be registered.", lock_limit},
    {"shm", true, "uct:posix and ofi:shm keep their buffers there.", small_shm},
    {"trace", true, "uct:cma copies this way, and so does libfabric's shm where allowed.",
     no_trace},
    {0}};
