/* SPDX-License-Identifier: BSD-3-Clause */
/* What the machine did to us while we measured. */
#include "bench/stats.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { FEW = 5, OPERATIONS_A_SWITCH = 10 };

static uint64_t migrations(void)
{
    char line[128];
    uint64_t count = 0;
    FILE *file = fopen("/proc/thread-self/sched", "re");
    if (!file)
        return 0;
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "se.nr_migrations : %" SCNu64, &count) == 1)
            break;
    fclose(file);
    return count;
}

/* Time the hypervisor gave to others, all CPUs together. */
static uint64_t steal_ms(void)
{
    uint64_t ticks = 0;
    long per_second = sysconf(_SC_CLK_TCK);
    FILE *file = fopen("/proc/stat", "re");
    if (!file)
        return 0;
    if (fscanf(file, "cpu %*u %*u %*u %*u %*u %*u %*u %" SCNu64, &ticks) != 1)
        ticks = 0;
    fclose(file);
    return per_second > 0 ? ticks * 1000 / (uint64_t)per_second : 0;
}

void interference_now(struct interference *now)
{
    struct rusage usage;
    memset(&usage, 0, sizeof usage);
    *now = (struct interference){.migrations = migrations(), .steal_ms = steal_ms()};
    getrusage(RUSAGE_THREAD, &usage);
    now->switches = (uint64_t)usage.ru_nivcsw;
    now->faults = (uint64_t)usage.ru_minflt + (uint64_t)usage.ru_majflt;
}

void interference_add(struct interference *sum, const struct interference *from,
                      const struct interference *to)
{
    sum->switches += to->switches - from->switches;
    sum->migrations += to->migrations - from->migrations;
    sum->faults += to->faults - from->faults;
    sum->steal_ms += to->steal_ms - from->steal_ms;
}

void interference_hint(uint64_t mine, uint64_t theirs, uint64_t operations)
{
    static atomic_bool said;
    uint64_t both = mine < theirs ? mine : theirs;
    if (both < FEW || both * OPERATIONS_A_SWITCH < operations || atomic_exchange(&said, true))
        return;
    warn("both ends seem to have run on one CPU, each waiting for the other: give each a CPU of "
         "its own");
}

void interference_say(const struct interference *sum)
{
    const struct {
        uint64_t count;
        const char *what;
    } kinds[] = {{sum->switches, "x preempted"},
                 {sum->migrations, "x moved to another CPU"},
                 {sum->faults, "x page fault"},
                 {sum->steal_ms, " ms taken by the hypervisor"}};
    char text[256] = "";
    for (size_t i = 0; i < LENGTH(kinds); i++)
        if (kinds[i].count)
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s%" PRIu64 "%s",
                     *text ? ", " : "", kinds[i].count, kinds[i].what);
    if (*text)
        warn("disturbed while measuring: %s", text);
}
