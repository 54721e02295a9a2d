/* SPDX-License-Identifier: BSD-3-Clause */
/* Linked into test programs in the place of memory/library.c: makers' libraries are taken from the
 * folder WEFT_TEST_GPU, and from nowhere else if it is set. What is installed never has this. */
#include "memory/gpu.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

void *gpu_library(const char *name)
{
    char path[4096];
    const char *folder = getenv("WEFT_TEST_GPU");
    if (folder)
        snprintf(path, sizeof path, "%s/%s", folder, name);
    return dlopen(folder ? path : name, RTLD_NOW | RTLD_LOCAL);
}
