/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting for a child, with a deadline. */
#include "tool/child.h"
#include "core/clock.h"

#include <poll.h>
#include <sys/wait.h>

int child_wait(pid_t child, uint64_t limit_ms)
{
    uint64_t until_ms = clock_ms() + limit_ms;
    int how = -1;
    while (waitpid(child, &how, WNOHANG) == 0) {
        if (clock_ms() > until_ms)
            return -1;
        poll(NULL, 0, 1);
    }
    return how;
}
