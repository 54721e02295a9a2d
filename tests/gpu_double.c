/* SPDX-License-Identifier: BSD-3-Clause */
/* Linked into test programs in the place of memory/library.c: makers' libraries are taken from the
 * folder WEFT_TEST_GPU, with "double-" before their names, and from nowhere else if it is set. What
 * is installed never has this. */
#include "gpu_double.h"
#include "memory/gpu.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *last;

void *gpu_library(const char *name)
{
    char path[4096];
    const char *folder = getenv("WEFT_TEST_GPU");
    if (folder)
        snprintf(path, sizeof path, "%s/double-%s", folder, name);
    void *library = dlopen(folder ? path : name, RTLD_NOW | RTLD_LOCAL);
    last = library ? library : last;
    return library;
}

char *gpu_view(char *address)
{
    char *(*view)(char *) = NULL;
    void *found = last ? dlsym(last, "fake_view") : NULL;
    memcpy(&view, &found, sizeof view);
    return view ? view(address) : NULL;
}
