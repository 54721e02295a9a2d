/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside peer: what an MPI module offers, and what it is given. The program links no MPI; each
 * module is the same source compiled for another MPI. */
#ifndef WEFT_PEER_MPI_H
#define WEFT_PEER_MPI_H

#include <stdbool.h>
#include <stddef.h>

enum { MPI_MODULE_ABI = 1 };

struct mpi_host {
    unsigned abi;
    int (*fail)(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));
};

/* All but begin need two ranks. Calls come from any thread, but never two at once. Only begin and
 * finish wait. */
struct mpi_module {
    unsigned abi;
    const char *name; /* "Open MPI" */
    /* Once per process: starts MPI and returns the number of ranks and this rank. */
    int (*begin)(int *size, int *rank);
    /* As in struct peer_carrier. */
    int (*publish)(void *arg, const void *bytes, size_t length);
    int (*receive)(void *arg, void *bytes, size_t room, size_t *length);
    /* Called repeatedly: 1 once the other rank has called this too and nothing is in flight, 0 if
     * not yet, or -errno. Messages that arrive meanwhile are dropped. */
    int (*part)(void);
    /* Ends MPI. Waits for the other ranks: call it only if they call it too. */
    void (*finish)(void);
};

/* The module's one symbol; NULL if it is of another version. */
#define MPI_MODULE_SYMBOL "weft_mpi"
const struct mpi_module *weft_mpi(const struct mpi_host *host);

#endif
