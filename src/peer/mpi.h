/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside peer: what a module that speaks one MPI offers, and what it is given. The program links
 * no MPI; each module is the same source compiled for another one. */
#ifndef WEFT_PEER_MPI_H
#define WEFT_PEER_MPI_H

#include <stdbool.h>
#include <stddef.h>

enum { MPI_MODULE_ABI = 1 };

struct mpi_host {
    unsigned abi;
    int (*fail)(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));
};

/* All but begin need two ranks. Calls come from any thread, but never two at once. None waits,
 * save begin and finish. */
struct mpi_module {
    unsigned abi;
    const char *name; /* "Open MPI" */
    /* Once a process: starts MPI and says how many ranks it sees, and which this is. */
    int (*begin)(int *size, int *rank);
    /* As a struct peer_carrier has them. */
    int (*publish)(void *arg, const void *bytes, size_t length);
    int (*receive)(void *arg, void *bytes, size_t room, size_t *length);
    /* Called again and again: 1 once the other rank has come here too and nothing is under way,
     * 0 if not yet, or -errno. What arrives meanwhile is dropped. */
    int (*part)(void);
    /* Ends MPI. Waits for the other ranks: only where they come here too. */
    void (*finish)(void);
};

/* The module's one symbol; NULL if it is of another version. */
#define MPI_MODULE_SYMBOL "weft_mpi"
const struct mpi_module *weft_mpi(const struct mpi_host *host);

#endif
