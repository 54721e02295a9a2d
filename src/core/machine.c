/* SPDX-License-Identifier: BSD-3-Clause */
/* A description of this machine for readers of a result. Unknown facts are left out. */
#include "core/machine.h"
#include "core/core.h"

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

static bool cpu_word(const char *root, const char *name, char *text, size_t room)
{
    return system_value(root, name, text, room, "/proc/cpuinfo");
}

/* Arm CPUs give their vendor as a number. */
static bool arm_model(const char *root, char *text, size_t room)
{
    static const struct {
        unsigned vendor, part;
        const char *name;
    } known[] = {
        {0x41, 0xd08, "Arm Cortex-A72"},  {0x41, 0xd0c, "Arm Neoverse N1"},
        {0x41, 0xd40, "Arm Neoverse V1"}, {0x41, 0xd49, "Arm Neoverse N2"},
        {0x41, 0xd4f, "Arm Neoverse V2"}, {0x46, 0x001, "Fujitsu A64FX"},
        {0x48, 0xd01, "Kunpeng 920"},     {0xc0, 0xac3, "Ampere One"},
    };
    char vendor[32], part[32];
    if (!cpu_word(root, "CPU implementer", vendor, sizeof vendor))
        return false;
    cpu_word(root, "CPU part", part, sizeof part);
    for (size_t i = 0; i < LENGTH(known); i++)
        if (strtoul(vendor, NULL, 16) == known[i].vendor &&
            strtoul(part, NULL, 16) == known[i].part)
            return snprintf(text, room, "%s", known[i].name) > 0;
    return snprintf(text, room, "implementer %s part %s", vendor, part) > 0;
}

/* "0-3,8" */
static void allowed_cpus(char *text, size_t room)
{
    cpu_set_t set;
    size_t used = 0;
    CPU_ZERO(&set);
    text[0] = '\0';
    if (sched_getaffinity(0, sizeof set, &set))
        return;
    for (int cpu = 0; cpu < CPU_SETSIZE && used < room; cpu++) {
        int last = cpu;
        if (!CPU_ISSET(cpu, &set))
            continue;
        while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, &set))
            last++;
        used += (size_t)snprintf(text + used, room - used, last > cpu ? "%s%d-%d" : "%s%d",
                                 used ? "," : "", cpu, last);
        cpu = last;
    }
}

/* ---- the hypervisor ---- */

/* The CPU itself names the hypervisor. */
static bool hypervisor_signature(char *text, size_t room)
{
#if defined(__x86_64__)
    static const char *const names[][2] = {{"KVMKVMKVM", "KVM"},       {"Microsoft Hv", "Hyper-V"},
                                           {"VMwareVMware", "VMware"}, {"XenVMMXenVMM", "Xen"},
                                           {"TCGTCGTCGTCG", "QEMU"},   {"bhyve bhyve ", "bhyve"}};
    uint32_t unused, words[4] = {0};
    __cpuid(0x40000000, unused, words[0], words[1], words[2]);
    for (size_t i = 0; i < LENGTH(names); i++)
        if (strcmp((const char *)words, names[i][0]) == 0)
            return snprintf(text, room, "%s", names[i][1]) > 0;
#endif
    (void)text;
    (void)room;
    return false;
}

/* A hypervisor shows in a CPU flag on x86, in the device tree on Arm, and its name in one of
 * several places. */
static bool hypervisor(const char *root, char *text, size_t room)
{
    static const char tree[] = "/sys/firmware/devicetree/base/hypervisor/compatible";
    char flags[4096];
    if (system_line(root, text, room, "/sys/hypervisor/type") ||
        system_line(root, text, room, "%s", tree))
        return true;
    if (!cpu_word(root, "flags", flags, sizeof flags) || !strstr(flags, " hypervisor"))
        return false;
    if (!*root && hypervisor_signature(text, room))
        return true;
    if (!system_line(root, text, room, "/sys/class/dmi/id/sys_vendor"))
        snprintf(text, room, "unknown");
    return true;
}

static void container(const char *root, char *text, size_t room)
{
    static const char *const marks[][2] = {{"/.dockerenv", "Docker"},
                                           {"/run/.containerenv", "Podman"},
                                           {"/.singularity.d", "Apptainer"}};
    char path[512];
    for (size_t i = 0; i < LENGTH(marks); i++) {
        snprintf(path, sizeof path, "%s%s", root, marks[i][0]);
        if (access(path, F_OK) == 0) {
            snprintf(text, room, "%s", marks[i][1]);
            return;
        }
    }
    system_line(root, text, room, "/run/systemd/container");
}

static uint64_t memory_bytes(const char *root)
{
    char text[64];
    if (!system_value(root, "MemTotal", text, sizeof text, "/proc/meminfo"))
        return 0;
    return (uint64_t)strtoull(text, NULL, 10) << 10;
}

void machine_look(struct machine *m, const char *root)
{
    struct utsname system;
    *m = (struct machine){0};
    if (!uname(&system)) {
        snprintf(m->host, sizeof m->host, "%s", system.nodename);
        snprintf(m->system, sizeof m->system, "%s %s", system.sysname, system.release);
        snprintf(m->architecture, sizeof m->architecture, "%s", system.machine);
        text_clean(m->host);
        text_clean(m->system);
    }
    if (!cpu_word(root, "model name", m->cpu, sizeof m->cpu))
        arm_model(root, m->cpu, sizeof m->cpu);
    system_line(root, m->clocksource, sizeof m->clocksource,
                "/sys/devices/system/clocksource/clocksource0/current_clocksource");
    system_line(root, m->governor, sizeof m->governor,
                "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
    hypervisor(root, m->hypervisor, sizeof m->hypervisor);
    container(root, m->container, sizeof m->container);
    system_line(root, m->online, sizeof m->online, "/sys/devices/system/cpu/online");
    allowed_cpus(m->allowed, sizeof m->allowed);
    m->memory = memory_bytes(root);
}

/* ---- for a document ---- */

int machine_describe(struct msg *text)
{
    struct machine m;
    char cpus[32], memory[32] = "";
    machine_look(&m, "");
    snprintf(cpus, sizeof cpus, "%ld", sysconf(_SC_NPROCESSORS_ONLN));
    if (m.memory)
        snprintf(memory, sizeof memory, "%" PRIu64, m.memory);
    const char *const lines[][2] = {{"host", m.host},
                                    {"system", m.system},
                                    {"architecture", m.architecture},
                                    {"cpu", m.cpu},
                                    {"cpus", cpus},
                                    {"allowed", m.allowed},
                                    {"memory", memory},
                                    {"clocksource", m.clocksource},
                                    {"governor", m.governor},
                                    {"hypervisor", m.hypervisor}};
    int status = 0;
    for (size_t i = 0; i < LENGTH(lines) && !status; i++)
        if (*lines[i][1])
            status = msg_add(text, "%s=%s\n", lines[i][0], lines[i][1]);
    return status;
}
