/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside peer: the launchers, and what they share. */
#ifndef WEFT_PEER_LAUNCHERS_H
#define WEFT_PEER_LAUNCHERS_H

#include "peer/launch.h"

#define LAUNCHER(symbol, words) extern const struct launcher launcher_##symbol;
#include "peer/launchers.def"
#undef LAUNCHER

/* The value of a variable; NULL if it is not set, or empty. */
const char *launch_value(const char *variable);
/* The same as a number, at most a rank. */
bool launch_number(const char *variable, uint32_t *number);
/* A port that ranks of one start choose alike, from its id. */
unsigned launch_port(const char *id);
/* Reads a line of a launcher, without its end, within wait_ms. */
int launch_line(int fd, char *line, size_t room, uint64_t wait_ms);
int launch_write(int fd, const char *bytes, size_t length);

/* group_watch of ranks that this process started: an ended one is warned of once. */
bool launch_ended(void *seat, uint32_t rank, uint64_t wait_ms, char reason[GROUP_REASON]);

/* ---- what weft-pmix.so offers ---- */

enum { PMIX_MODULE_ABI = 1 };
struct pmix_host {
    unsigned abi;
    int (*fail)(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));
};
struct pmix_module {
    unsigned abi;
    int (*begin)(unsigned *rank, unsigned *size);
    /* The root's card to all; waits for all, wait_s at most. */
    int (*share)(char *card, size_t room, bool root, int wait_s);
    void (*end)(void);
};
#define PMIX_MODULE_SYMBOL "weft_pmix"
const struct pmix_module *weft_pmix(const struct pmix_host *host);

#endif
