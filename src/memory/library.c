/* SPDX-License-Identifier: BSD-3-Clause */
/* How a maker's library is opened. A file of its own, so that a test program can link its own
 * version of this one function, and what is installed cannot be led astray. */
#include "memory/gpu.h"

#include <dlfcn.h>

void *gpu_library(const char *name)
{
    return dlopen(name, RTLD_NOW | RTLD_LOCAL);
}
