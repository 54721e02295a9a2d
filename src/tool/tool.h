/* SPDX-License-Identifier: BSD-3-Clause */
/* The door of tool: from argv to an exit status. A command is one struct tool; its main is one
 * call of tool_main. */
#ifndef WEFT_TOOL_H
#define WEFT_TOOL_H

#include "core/opt.h"
#include "report/report.h"

struct tool {
    const char *name;  /* what both ends must have in common */
    const char *title; /* of the header */
    const struct op *op;
    const struct method *method;
    const struct opt *rows;
    unsigned takes;       /* which of the rows */
    const char *help_end; /* behind the options people know, or NULL */
};

int tool_main(const struct tool *tool, int argc, char **argv);

/* ucx_perftest. */
int perftest_main(int argc, char **argv);

/* weft. */
int weft_main(int argc, char **argv);

/* The CXI family: which of cxi_rows a tool takes. */
enum { CXI_WRITE = 1, CXI_READ = 2, CXI_SEND = 4, CXI_ATOMIC = 8 };
extern const struct opt cxi_rows[];

#endif
