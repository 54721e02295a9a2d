/* SPDX-License-Identifier: BSD-3-Clause */
/* For targets whose fabric maps the other end's memory: what it looks like here, and a kernel that
 * reads it and nothing else. The file under test is included with write replaced by look_at. */
#ifndef WEFT_FUZZ_MAPPED_H
#define WEFT_FUZZ_MAPPED_H

#include "fuzz/meeting.h"

#include <errno.h>
#include <unistd.h>

enum { MAPPED = 8192 };
static char mapped[MAPPED];

static ssize_t look_at(int fd, const void *address, size_t length)
{
    uintptr_t at = (uintptr_t)address, first = (uintptr_t)mapped;
    if (at < first || at - first > MAPPED - length) {
        errno = EFAULT;
        return -1;
    }
    return write(fd, address, length);
}

/* A function that is not on the way of what comes from the other end. */
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define NEVER(name, ...)                                                                           \
    name(__VA_ARGS__)                                                                              \
    {                                                                                              \
        abort();                                                                                   \
    }

#endif
