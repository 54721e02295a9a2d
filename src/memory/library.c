/* SPDX-License-Identifier: BSD-3-Clause */
/* How a vendor library is opened, and how long to wait for it. In a separate file, so that a test
 * program can link its own version, without a switch in the installed tools. */
#include "memory/gpu.h"

#include <dlfcn.h>

/* Half of the default timeout, so that the other end receives the reason. */
const unsigned gpu_timeout_ms = 5000;

void *gpu_library(const char *name)
{
    return dlopen(name, RTLD_NOW | RTLD_LOCAL);
}
