/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside tool: --list. */
#ifndef WEFT_TOOL_LIST_H
#define WEFT_TOOL_LIST_H

/* Prints every device of every fabric there is, with what it can do. */
int list_print(void);

#endif
