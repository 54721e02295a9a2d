/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of memory kinds, and how much host memory there is. */
#include "memory/memory.h"
#include "core/machine.h"

#include <errno.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <stdio.h>
#include <string.h>

/* Left to everything else on the machine. */
static const uint64_t reserve_bytes = 64 << 20;

#define MEMORY(symbol, ...) extern const struct memory_ops memory_##symbol;
#include "memory/memories.def"
#undef MEMORY

#define MEMORY(symbol, ...) &memory_##symbol,
static const struct memory_ops *const kinds[] = {
#include "memory/memories.def"
};
#undef MEMORY

const struct memory_ops *memory_find(const char *name)
{
    for (size_t i = 0; i < LENGTH(kinds); i++)
        if (strcmp(kinds[i]->name, name) == 0)
            return kinds[i];
    return NULL;
}

int memory_choose(const char *text, const struct memory_ops **kind, unsigned *device)
{
    char name[16];
    uint64_t number = 0;
    const char *colon = strchr(text, ':');
    size_t length = colon ? (size_t)(colon - text) : strlen(text);
    snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name), text);
    *kind = memory_find(name);
    if (!*kind || (colon && (!(*kind)->gpu || unit_number(colon + 1, &number) || number > 65535)))
        return fail(-EINVAL,
                    "no kind of memory \"%s\": there are host, 2M, 1G and, of GPUs, cuda, rocm and "
                    "ze, or cuda:1 for GPU 1",
                    text);
    *device = (unsigned)number;
    return 0;
}

static uint64_t machine_available(void)
{
    char text[64];
    uint64_t kib;
    if (!system_value("", "MemAvailable", text, sizeof text, "/proc/meminfo"))
        return UINT64_MAX;
    text[strcspn(text, " ")] = '\0';
    return unit_number(text, &kib) || kib > UINT64_MAX >> 10 ? UINT64_MAX : kib << 10;
}

/* The tightest limit of a group and those above it. */
static void group_left(void *arg, const char *folder, bool unified)
{
    uint64_t *least = arg, limit, used;
    if (!system_number("", &limit, "%s/%s", folder,
                       unified ? "memory.max" : "memory.limit_in_bytes") ||
        !system_number("", &used, "%s/%s", folder,
                       unified ? "memory.current" : "memory.usage_in_bytes"))
        return;
    uint64_t left = used < limit ? limit - used : 0;
    *least = left < *least ? left : *least;
}

static uint64_t group_available(void)
{
    uint64_t least = UINT64_MAX;
    system_groups("", "memory", group_left, &least);
    return least;
}

uint64_t memory_available(void)
{
    uint64_t machine = machine_available(), group = group_available();
    return machine < group ? machine : group;
}

int memory_enough(uint64_t bytes)
{
    char need[32], have[32], missing[32];
    uint64_t available = memory_available();
    uint64_t wanted = bytes < UINT64_MAX - reserve_bytes ? bytes + reserve_bytes : UINT64_MAX;
    if (wanted <= available)
        return 0;
    unit_bytes_text(bytes, need, sizeof need);
    unit_bytes_text(available, have, sizeof have);
    unit_bytes_text(wanted - available, missing, sizeof missing);
    return fail(-ENOMEM, "not enough memory: %s needed, %s available, %s missing", need, have,
                missing);
}

/* ---- the allocator ---- */

void memory_keep_freed(void)
{
#ifdef __GLIBC__
    enum { LARGEST_BLOCK = 32 << 20, MOST_KEPT = 512 << 20 };
    mallopt(M_MMAP_THRESHOLD, LARGEST_BLOCK);
    mallopt(M_TRIM_THRESHOLD, MOST_KEPT);
#endif
}
