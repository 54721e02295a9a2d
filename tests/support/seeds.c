/* SPDX-License-Identifier: BSD-3-Clause */
/* seeds FOLDER ...: runs a fuzz target on each file of the folders that are there, and prints TAP:
 * a seed that is refused at once teaches the fuzzer nothing, so each must be accepted. */
#include "fuzz/feed.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

enum { SEED_MAX = 1 << 16 };

static unsigned accepted(const char *folder, const char *name)
{
    static unsigned char bytes[SEED_MAX];
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    size_t length = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    /* As a fuzzer does: in memory of exactly this length. */
    unsigned char *exact = malloc(length ? length : 1);
    fuzz_accepted = 0;
    for (size_t i = 0; exact && i < length; i++)
        exact[i] = bytes[i];
    if (exact)
        LLVMFuzzerTestOneInput(exact, length);
    free(exact);
    return fuzz_accepted;
}

int main(int argc, char **argv)
{
    int count = 0, refused = 0;
    for (int i = 1; i < argc; i++) {
        DIR *folder = opendir(argv[i]);
        const struct dirent *entry;
        while (folder && (entry = readdir(folder))) {
            if (entry->d_name[0] == '.')
                continue;
            unsigned times = accepted(argv[i], entry->d_name);
            refused += !times;
            printf("%s %d - seed %s is accepted\n", times ? "ok" : "not ok", ++count,
                   entry->d_name);
        }
        if (folder)
            closedir(folder);
    }
    printf("1..%d\n", count);
    return refused || !count;
}
