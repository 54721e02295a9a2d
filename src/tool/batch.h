/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside tool: batch files. One test a line: a label, then options. Blank lines and comments are
 * skipped, quotes group words. */
#ifndef WEFT_TOOL_BATCH_H
#define WEFT_TOOL_BATCH_H

#include "core/core.h"

enum { BATCH_WORDS = 64, BATCH_LINES = 10000, BATCH_BYTES = 1 << 20 };

struct batch_line {
    unsigned number;
    int count;
    char **words;      /* the first is the label */
    const char *error; /* why it cannot be read, or NULL */
};

struct batch {
    const char *path;
    struct batch_line *lines;
    size_t count;
    char *text;
};

/* -EINVAL and a sentence if it cannot be had; a line that cannot be read is kept with its error. */
int batch_read(struct batch *batch, const char *path);
int batch_parse(struct batch *batch, const char *text, size_t length);
void batch_free(struct batch *batch);

#endif
