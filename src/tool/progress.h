/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside tool: one line on a terminal that says how far a run is. Never in a pipe. */
#ifndef WEFT_TOOL_PROGRESS_H
#define WEFT_TOOL_PROGRESS_H

#include "bench/bench.h"

/* A run is being set up, which may take long: large buffers, a vendor's library, a server that is
 * not there yet. After a second a line says so, until the run begins or progress_end. */
void progress_wait(void);

/* A run begins. */
void progress_begin(void);

/* Says where it stands, if that is worth a line by now and the terminal takes it at once. */
void progress_show(const struct progress *progress);

/* The same for steps of which done are over: "WHAT, 3 min 20 s left". What another process writes
 * to the terminal takes the place of the line. */
void progress_step(const char *what, uint64_t done, uint64_t all);

/* Takes the line away, before anything else is printed. */
void progress_clear(void);

/* And no other will be shown. */
void progress_end(void);

#endif
