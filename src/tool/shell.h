/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside tool: what every command has in common with the shell that started it. */
#ifndef WEFT_TOOL_SHELL_H
#define WEFT_TOOL_SHELL_H

#include "core/core.h"
#include "core/opt.h"

#include <signal.h>

enum {
    EXIT_DONE = 0,
    EXIT_FAILED = 1,
    EXIT_WRONG = 2,
    EXIT_THRESHOLD = 3,
    EXIT_NO_PEER = 4,
    EXIT_UNSURE = 5,
    EXIT_SIGNAL = 128
};

/* The signal that asked us to stop, or 0. */
extern volatile sig_atomic_t shell_stop;

/* The command's name. */
extern const char *shell_program;

/* Name, standard streams, and warnings to standard error. */
void shell_open(int argc, char **argv);

/* From here on interrupts are noted, not obeyed: the first line of a main that promises a document.
 * Without it they end the process, which leaves nothing behind. */
void shell_catch_signals(void);

/* A sentence on standard error, after what stands on standard output. The listener hears it too,
 * and all that was said before there was one. */
void shell_say(const char *sentence);
/* The same for what is no warning: the listener does not hear it. */
void shell_note(const char *sentence);
void shell_listen(void (*listener)(void *arg, const char *sentence), void *arg);

/* What was printed has left. */
int shell_flush(const char *what);

int shell_exit_code(int status);

/* A server's row that the client decides otherwise. */
void shell_overridden(const struct opt *row, const char *was, const char *now);

#endif
