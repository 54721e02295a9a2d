/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside tool: the end of a child, which is not waited for without a deadline: one that sleeps in a
 * driver does not die of SIGKILL either. */
#ifndef WEFT_TOOL_CHILD_H
#define WEFT_TOOL_CHILD_H

#include "core/core.h"

#include <sys/types.h>

enum { CHILD_BURY_MS = 1000 }; /* enough for one that was killed */

/* How it ended, as waitpid has it; -1 if it has not within the limit: it is left behind. */
int child_wait(pid_t child, uint64_t limit_ms);

#endif
