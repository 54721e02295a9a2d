/* SPDX-License-Identifier: BSD-3-Clause */
/* What spoils measurements, second part: memory, limits and devices. */
#include "core/machine.h"
#include "tool/info.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

#define WHAT(found, ...) snprintf((found)->what, sizeof(found)->what, __VA_ARGS__)
#define MEND(found, ...) snprintf((found)->mend, sizeof(found)->mend, __VA_ARGS__)

bool sight_may(const struct sight *sight, enum privilege what)
{
    char text[64];
    return system_value(sight->root, "CapEff", text, sizeof text, "/proc/self/status") &&
           strtoull(text, NULL, 16) >> what & 1;
}

static bool numa_balancing(const struct sight *sight, struct finding *found)
{
    uint64_t on;
    if (sight->topology.nodes < 2 ||
        !system_number(sight->root, &on, "/proc/sys/kernel/numa_balancing") || !on)
        return false;
    WHAT(found, "the kernel moves pages between its %u memory nodes", sight->topology.nodes);
    MEND(found, "sudo sysctl kernel.numa_balancing=0");
    return true;
}

static bool swap_used(const struct sight *sight, struct finding *found)
{
    char total[64], rest[64], text[32];
    if (!system_value(sight->root, "SwapTotal", total, sizeof total, "/proc/meminfo") ||
        !system_value(sight->root, "SwapFree", rest, sizeof rest, "/proc/meminfo"))
        return false;
    uint64_t all = strtoull(total, NULL, 10), left = strtoull(rest, NULL, 10);
    if (left >= all)
        return false;
    unit_bytes_text((all - left) << 10, text, sizeof text);
    WHAT(found, "%s are swapped out", text);
    MEND(found, "sudo swapoff -a");
    return true;
}

static bool huge_always(const struct sight *sight, struct finding *found)
{
    char text[128];
    if (!system_line(sight->root, text, sizeof text,
                     "/sys/kernel/mm/transparent_hugepage/enabled") ||
        !strstr(text, "[always]"))
        return false;
    WHAT(found, "transparent huge pages are on for everybody");
    MEND(found, "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled");
    return true;
}

static bool no_huge(const struct sight *sight, struct finding *found)
{
    static const char file[] = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
    uint64_t pages;
    if (!system_number(sight->root, &pages, "%s", file) || pages)
        return false;
    WHAT(found, "no huge pages are set aside: --use-hp would be refused");
    MEND(found, "echo 64 | sudo tee %s", file);
    return true;
}

static bool lock_limit(const struct sight *sight, struct finding *found)
{
    enum { ENOUGH = 64 << 20 };
    struct rlimit limit;
    char text[32];
    if (sight_may(sight, MAY_LOCK) || getrlimit(RLIMIT_MEMLOCK, &limit) || limit.rlim_cur >= ENOUGH)
        return false;
    unit_bytes_text(limit.rlim_cur, text, sizeof text);
    WHAT(found, "a process may lock %s of memory", text);
    MEND(found, "ulimit -l unlimited; allowed by \"* - memlock unlimited\" in "
                "/etc/security/limits.conf, in a container by --ulimit memlock=-1");
    return true;
}

static bool small_shm(const struct sight *sight, struct finding *found)
{
    enum { ENOUGH = 128 << 20 };
    struct statvfs shm;
    char path[512], text[32];
    snprintf(path, sizeof path, "%s/dev/shm", sight->root);
    if (statvfs(path, &shm) || (uint64_t)shm.f_blocks * shm.f_frsize >= ENOUGH)
        return false;
    unit_bytes_text((uint64_t)shm.f_blocks * shm.f_frsize, text, sizeof text);
    WHAT(found, "/dev/shm has %s", text);
    MEND(found, "sudo mount -o remount,size=1G /dev/shm; in a container --shm-size=1g");
    return true;
}

static bool no_trace(const struct sight *sight, struct finding *found)
{
    uint64_t scope;
    if (!system_number(sight->root, &scope, "/proc/sys/kernel/yama/ptrace_scope") || !scope ||
        sight_may(sight, MAY_TRACE))
        return false;
    WHAT(found, "one process may not read another's memory (ptrace_scope is %" PRIu64 ")", scope);
    MEND(found, "sudo sysctl kernel.yama.ptrace_scope=0");
    return true;
}

/* ---- interrupts and slots ---- */

struct search {
    const struct sight *sight;
    struct finding *found;
    bool is;
};

static void is_irqbalance(void *arg, const char *name)
{
    struct search *s = arg;
    char comm[32];
    if (s->is || *name < '0' || *name > '9')
        return;
    s->is = system_line(s->sight->root, comm, sizeof comm, "/proc/%s/comm", name) &&
            strcmp(comm, "irqbalance") == 0;
}

static bool irq_moves(const struct sight *sight, struct finding *found)
{
    struct search s = {.sight = sight};
    system_each(sight->root, is_irqbalance, &s, "/proc");
    if (!s.is)
        return false;
    WHAT(found, "irqbalance is running");
    MEND(found, "sudo systemctl stop irqbalance");
    return true;
}

static void look_slot(struct search *s, const char *class, const char *name)
{
    char folder[300], text[160];
    snprintf(folder, sizeof folder, "/sys/class/%s/%.200s/device", class, name);
    if (s->is || !slot_narrowed(s->sight->root, folder, text, sizeof text))
        return;
    WHAT(s->found, "%.60s has a PCIe link of %s", name, text);
    s->is = true;
}

static void look_card(void *arg, const char *name)
{
    look_slot(arg, "infiniband", name);
}

static void look_cxi(void *arg, const char *name)
{
    look_slot(arg, "cxi", name);
}

static void look_interface(void *arg, const char *name)
{
    look_slot(arg, "net", name);
}

static bool narrowed(const struct sight *sight, struct finding *found)
{
    struct search s = {.sight = sight, .found = found};
    system_each(sight->root, look_cxi, &s, "/sys/class/cxi");
    system_each(sight->root, look_card, &s, "/sys/class/infiniband");
    system_each(sight->root, look_interface, &s, "/sys/class/net");
    if (s.is)
        MEND(found, "another slot, or reseat the card; sudo lspci -vv shows LnkSta and LnkCap");
    return s.is;
}

const struct hurt hurts_memory[] = {
    {"slot", false, "The bus is slower than the card: bandwidth ends there, and latency grows.",
     narrowed},
    {"numa balancing", false,
     "Pages are taken away to see who touches them: page faults while "
     "measuring.",
     numa_balancing},
    {"swap", true, "What was swapped out comes back at a page fault.", swap_used},
    {"irqbalance", true, "Interrupts come to CPUs that are measured on, and move meanwhile.",
     irq_moves},
    {"huge always", true, "The kernel makes them in the background, and compacts memory for it.",
     huge_always},
    {"no huge", true, "Large buffers in small pages miss the TLB.", no_huge},
    {"lock", true, "NICs must lock their buffers: registering more is refused.", lock_limit},
    {"shm", true, "uct:posix and ofi:shm put their buffers there.", small_shm},
    {"trace", true, "uct:cma copies that way, and libfabric's shm if it may.", no_trace},
    {0}};
