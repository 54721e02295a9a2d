/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs a fuzz target on each file of a folder, and prints TAP: a seed that is refused at once
 * teaches the fuzzer nothing, so each must be accepted. */
#include "fuzz/feed.h"

#include <dirent.h>
#include <stdio.h>

static unsigned accepted(const char *folder, const char *name)
{
    static unsigned char bytes[1 << 16];
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    size_t length = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    fuzz_accepted = 0;
    LLVMFuzzerTestOneInput(bytes, length);
    return fuzz_accepted;
}

int main(int argc, char **argv)
{
    DIR *folder = argc == 2 ? opendir(argv[1]) : NULL;
    const struct dirent *entry;
    int count = 0, refused = 0;
    if (!folder) {
        fprintf(stderr, "usage: seeds FOLDER\n");
        return 2;
    }
    while ((entry = readdir(folder))) {
        if (entry->d_name[0] == '.')
            continue;
        unsigned times = accepted(argv[1], entry->d_name);
        refused += !times;
        printf("%s %d - seed %s is accepted\n", times ? "ok" : "not ok", ++count, entry->d_name);
    }
    closedir(folder);
    printf("1..%d\n", count);
    return refused || !count;
}
