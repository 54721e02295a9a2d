/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting for a child process, with a deadline. */
#include "core/child.h"
#include "core/clock.h"

#include <poll.h>
#include <sys/wait.h>

int child_wait(pid_t child, uint64_t limit_ms)
{
    uint64_t until_ms = clock_ms() + limit_ms;
    int wait_status = -1;
    while (waitpid(child, &wait_status, WNOHANG) == 0) {
        if (clock_ms() > until_ms)
            return -1;
        poll(NULL, 0, 1);
    }
    return wait_status;
}
