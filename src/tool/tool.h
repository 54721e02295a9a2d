/* SPDX-License-Identifier: BSD-3-Clause */
/* The door of tool: from argv to an exit status. */
#ifndef WEFT_TOOL_H
#define WEFT_TOOL_H

#include <stdbool.h>

/* Runs the tool of this name in tools.def. */
int tool_main(const char *name, int argc, char **argv);

/* SHELL TOOL CALLED: prints what bash, zsh or fish is to read for this tool, which is installed
 * under the second name. */
int complete_main(int argc, char **argv);

/* Is it one with servers and clients? */
bool tool_serves(const char *name);

#endif
