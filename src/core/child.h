/* SPDX-License-Identifier: BSD-3-Clause */
/* A door of core: waiting for a child process, always with a deadline. A child that sleeps in a
 * driver does not exit even after SIGKILL. */
#ifndef WEFT_CHILD_H
#define WEFT_CHILD_H

#include "core/core.h"

#include <sys/types.h>

/* How long a child may take to exit after SIGKILL. */
enum { CHILD_KILLED_MS = 1000 };

/* Returns the child's wait status, as waitpid does, or -1 if it did not exit within limit_ms. It is
 * then not waited for any longer. */
int child_wait(pid_t child, uint64_t limit_ms);

#endif
