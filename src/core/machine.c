/* SPDX-License-Identifier: BSD-3-Clause */
/* What this machine is, for whoever reads a result later. What cannot be found out is left out. */
#include "core/core.h"

#include <ctype.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

/* The first line of a file. */
static bool first_line(const char *path, char *text, size_t room)
{
    FILE *file = fopen(path, "re");
    text[0] = '\0';
    if (!file)
        return false;
    if (!fgets(text, (int)room, file))
        text[0] = '\0';
    fclose(file);
    text[strcspn(text, "\n")] = '\0';
    return *text != '\0';
}

/* The value of "name : value" in /proc/cpuinfo. */
static bool cpu_word(const char *name, char *text, size_t room)
{
    char line[4096];
    size_t length = strlen(name);
    bool found = false;
    FILE *file = fopen("/proc/cpuinfo", "re");
    if (!file)
        return false;
    while (!found && fgets(line, sizeof line, file)) {
        const char *colon = strchr(line, ':');
        if (!colon || strncmp(line, name, length) != 0 || !isspace((unsigned char)line[length]))
            continue;
        while (isspace((unsigned char)*++colon))
            ;
        snprintf(text, room, "%s", colon);
        text[strcspn(text, "\n")] = '\0';
        found = *text != '\0';
    }
    fclose(file);
    return found;
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

/* A hypervisor shows itself to x86 in a CPU flag and names itself here or there. */
static bool hypervisor(char *text, size_t room)
{
    char flags[4096];
    if (first_line("/sys/hypervisor/type", text, room))
        return true;
    if (!cpu_word("flags", flags, sizeof flags) || !strstr(flags, " hypervisor"))
        return false;
    if (!first_line("/sys/class/dmi/id/sys_vendor", text, room))
        snprintf(text, room, "unknown");
    return true;
}

/* A value must stay on its line. */
static int line(struct blob *text, const char *key, char *value)
{
    for (char *at = value; *at; at++)
        if (iscntrl((unsigned char)*at))
            *at = ' ';
    return *value ? blob_add(text, "%s=%s\n", key, value) : 0;
}

int machine_describe(struct blob *text)
{
    static const struct {
        const char *key, *path;
    } files[] = {
        {"clocksource", "/sys/devices/system/clocksource/clocksource0/current_clocksource"},
        {"governor", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"}};
    struct utsname system;
    char word[256];
    int status = 0;
    if (!uname(&system)) {
        status = line(text, "host", system.nodename);
        snprintf(word, sizeof word, "%.100s %.100s", system.sysname, system.release);
        if (!status)
            status = line(text, "system", word);
        if (!status)
            status = line(text, "architecture", system.machine);
    }
    if (!status && (cpu_word("model name", word, sizeof word) ||
                    cpu_word("CPU implementer", word, sizeof word)))
        status = line(text, "cpu", word);
    snprintf(word, sizeof word, "%ld", sysconf(_SC_NPROCESSORS_ONLN));
    if (!status)
        status = line(text, "cpus", word);
    allowed_cpus(word, sizeof word);
    if (!status)
        status = line(text, "allowed", word);
    snprintf(word, sizeof word, "%" PRIu64,
             (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE));
    if (!status)
        status = line(text, "memory", word);
    for (size_t i = 0; i < LENGTH(files) && !status; i++)
        if (first_line(files[i].path, word, sizeof word))
            status = line(text, files[i].key, word);
    if (!status && hypervisor(word, sizeof word))
        status = line(text, "hypervisor", word);
    return status;
}
