/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside tool: a temporary folder, which a later start removes if this process cannot. */
#ifndef WEFT_TOOL_SCRATCH_H
#define WEFT_TOOL_SCRATCH_H

#include <limits.h>

struct scratch {
    char path[PATH_MAX];
    int lock; /* the folder itself, locked while this process lives */
};

/* Makes one in TMPDIR, or in /tmp, and removes what processes of this user that were killed have
 * left there. */
int scratch_make(struct scratch *scratch);

/* Removes it, with its files and those of its folders. */
void scratch_remove(struct scratch *scratch);

#endif
