/* SPDX-License-Identifier: BSD-3-Clause */
/* How a vendor's library is opened, and how long it is waited for. A file of its own, so that a
 * test program can link its own version of these, and what is installed cannot be led astray. */
#include "memory/gpu.h"

#include <dlfcn.h>

/* Half of what the other end usually waits for a sign of life: then it hears why. */
const unsigned gpu_timeout_ms = 5000;

void *gpu_library(const char *name)
{
    return dlopen(name, RTLD_NOW | RTLD_LOCAL);
}
