/* SPDX-License-Identifier: BSD-3-Clause */
/* The door of tool: from argv to an exit status. */
#ifndef WEFT_TOOL_H
#define WEFT_TOOL_H

/* Runs the tool of this name in tools.def. */
int tool_main(const char *name, int argc, char **argv);

#endif
