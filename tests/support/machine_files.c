/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/machine_files.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

char root[64];

int machine_begin(void **state)
{
    (void)state;
    strcpy(root, "/tmp/weft-test-XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st, (void)flag, (void)ftw;
    return remove(path);
}

int machine_end(void **state)
{
    (void)state;
    return nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void put_bytes(const char *path, const void *bytes, size_t length)
{
    char full[512];
    snprintf(full, sizeof full, "%s%s", root, path);
    for (char *at = full + strlen(root) + 1; (at = strchr(at, '/')); at++) {
        *at = '\0';
        mkdir(full, 0777);
        *at = '/';
    }
    FILE *file = fopen(full, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    fclose(file);
}

void put(const char *path, const char *text)
{
    put_bytes(path, text, strlen(text));
}

void put_for_cpu(int cpu, const char *file, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/%s", cpu, file);
    put(path, text);
}

void put_eight_cpus(void)
{
    static const char *const siblings[] = {"0,4\n", "1,5\n", "2,6\n", "3,7\n"};
    put("/sys/devices/system/cpu/online", "0-7\n");
    put("/sys/devices/system/node/online", "0-1\n");
    put("/sys/devices/system/node/node0/cpulist", "0-1,4-5\n");
    put("/sys/devices/system/node/node1/cpulist", "2-3,6-7\n");
    for (int cpu = 0; cpu < 8; cpu++) {
        bool second = cpu % 4 >= 2;
        const char *socket = second ? "2-3,6-7\n" : "0-1,4-5\n";
        put_for_cpu(cpu, "topology/thread_siblings_list", siblings[cpu % 4]);
        put_for_cpu(cpu, "topology/core_siblings_list", socket);
        put_for_cpu(cpu, "topology/physical_package_id", second ? "1\n" : "0\n");
        put_for_cpu(cpu, "cache/index0/level", "1\n");
        put_for_cpu(cpu, "cache/index0/type", "Data\n");
        put_for_cpu(cpu, "cache/index0/size", "32K\n");
        put_for_cpu(cpu, "cache/index0/shared_cpu_list", siblings[cpu % 4]);
        put_for_cpu(cpu, "cache/index1/level", "1\n");
        put_for_cpu(cpu, "cache/index1/type", "Instruction\n");
        put_for_cpu(cpu, "cache/index1/size", "32K\n");
        put_for_cpu(cpu, "cache/index2/level", "3\n");
        put_for_cpu(cpu, "cache/index2/type", "Unified\n");
        put_for_cpu(cpu, "cache/index2/size", "16384K\n");
        put_for_cpu(cpu, "cache/index2/shared_cpu_list", socket);
    }
}
