/* SPDX-License-Identifier: BSD-3-Clause */
/* The version, from the build. */
#include "core/core.h"

#ifndef WEFT_VERSION
#define WEFT_VERSION "unknown"
#endif

const char *core_version(void)
{
    return WEFT_VERSION;
}
