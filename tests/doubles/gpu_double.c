/* SPDX-License-Identifier: BSD-3-Clause */
/* Linked into test programs in the place of memory/library.c: vendors' libraries are taken from the
 * folder WEFT_TEST_GPU, with "double-" before their names, and from nowhere else if it is set; and
 * there is less backoff with them. What is installed never has this. */
#include "doubles/gpu_double.h"
#include "memory/gpu.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const unsigned gpu_timeout_ms = 300;

static void *opened[8];
static unsigned opened_count;

void *gpu_library(const char *name)
{
    char path[4096];
    const char *folder = getenv("WEFT_TEST_GPU");
    if (folder)
        snprintf(path, sizeof path, "%s/double-%s", folder, name);
    void *library = dlopen(folder ? path : name, RTLD_NOW | RTLD_LOCAL);
    if (library && opened_count < LENGTH(opened))
        opened[opened_count++] = library;
    return library;
}

char *gpu_view(char *address)
{
    char *(*view)(char *), *bytes = NULL;
    for (unsigned i = 0; i < opened_count && !bytes; i++) {
        void *found = dlsym(opened[i], "fake_view");
        memcpy(&view, &found, sizeof view);
        bytes = found ? view(address) : NULL;
    }
    return bytes;
}
