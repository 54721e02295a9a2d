/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of memory kinds, and how much host memory there is. */
#include "memory/memory.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Left to everything else on the machine. */
static const uint64_t reserve_bytes = 64 << 20;

static const struct memory_ops *const kinds[] = {&memory_host, &memory_huge_2m, &memory_huge_1g,
                                                 &memory_cuda, &memory_rocm,    &memory_ze};

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
    char line[128];
    uint64_t kib = UINT64_MAX >> 10;
    FILE *file = fopen("/proc/meminfo", "re");
    if (!file)
        return UINT64_MAX;
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %" SCNu64, &kib) == 1)
            break;
    fclose(file);
    return kib << 10;
}

static int read_number(const char *folder, const char *name, uint64_t *number)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "re");
    if (!file)
        return -errno;
    int status = fscanf(file, "%" SCNu64, number) == 1 ? 0 : -ENOENT;
    fclose(file);
    return status;
}

/* The two ways the kernel has of keeping control groups. */
static const struct {
    const char *mark, *root, *limit, *used;
} group_kinds[] = {
    {"0::/", "/sys/fs/cgroup", "memory.max", "memory.current"},
    {":memory:/", "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"},
};

/* The tightest limit of a group and those above it. */
static uint64_t group_left(char *folder, size_t kind)
{
    uint64_t least = UINT64_MAX, limit = 0, used = 0;
    while (strlen(folder) >= strlen(group_kinds[kind].root)) {
        if (!read_number(folder, group_kinds[kind].limit, &limit) &&
            !read_number(folder, group_kinds[kind].used, &used)) {
            uint64_t left = used < limit ? limit - used : 0;
            least = left < least ? left : least;
        }
        *strrchr(folder, '/') = '\0';
    }
    return least;
}

static uint64_t group_available(void)
{
    char line[256], folder[512];
    uint64_t least = UINT64_MAX;
    FILE *file = fopen("/proc/self/cgroup", "re");
    if (!file)
        return least;
    while (fgets(line, sizeof line, file))
        for (size_t i = 0; i < LENGTH(group_kinds); i++) {
            const char *mark = strstr(line, group_kinds[i].mark);
            if (!mark || (i == 0 && mark != line))
                continue;
            const char *path = mark + strlen(group_kinds[i].mark);
            snprintf(folder, sizeof folder, "%s/%.*s", group_kinds[i].root,
                     (int)strcspn(path, "\n"), path);
            uint64_t left = group_left(folder, i);
            least = left < least ? left : least;
        }
    fclose(file);
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
