/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside tool: how the ranks of weft map come to be, and find each other. */
#ifndef WEFT_TOOL_MAP_LAUNCH_H
#define WEFT_TOOL_MAP_LAUNCH_H

#include "peer/launch.h"
#include "tool/map.h"

struct map_launch {
    struct seat seat;
    struct secret secret; /* of --secret-file */
    struct group *group;
    const char *how; /* "local", "pmi" */
    bool trusted;
};

/* Returns in every rank, with a joined group. */
int map_launch(struct map_launch *launch, const struct map_request *request,
               const struct opt_set *set);

/* Leaves the group and ends what was started. Returns the status, or the exit code that a command's
 * main returns. A rank that does not lead never returns: what it has to say the leader knows. */
int map_launch_end(struct map_launch *launch, int status);

/* A usage error, which every rank of a launcher has found: one of them says it. Returns the status.
 */
int map_launch_wrong(struct map_launch *launch, int status);

#endif
