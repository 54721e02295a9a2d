/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside report: where an output file lies. */
#ifndef WEFT_REPORT_PLACE_H
#define WEFT_REPORT_PLACE_H

#include "report/report.h"

#include <limits.h>
#include <sys/stat.h>

struct place {
    int folder;              /* the last one, all links followed */
    char name[NAME_MAX + 1]; /* in it; not a link */
    int file;                /* what has this name, opened with O_PATH; -1: nothing yet */
    struct stat facts;       /* of the file */
    bool direct;             /* the name is a link of /proc, followed: to be opened, not replaced */
};

/* Follows a path. Refuses what another user has put into a folder where everybody may create files,
 * such as /tmp: a link on the way, or whatever has the name itself. */
int place_find(struct place *place, const char *path);
void place_free(struct place *place);

/* Why path cannot be written, from errno. */
int place_fail(const char *path);

#endif
