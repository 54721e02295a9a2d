/* SPDX-License-Identifier: BSD-3-Clause */
/* A door of peer: how the ranks of one command were started, and how they come to be a group. A
 * launcher tells each rank its number and how many there are. Most of them also carry a card from
 * the root to all: where it listens, and a new secret. Nothing of an MPI is loaded. */
#ifndef WEFT_LAUNCH_H
#define WEFT_LAUNCH_H

#include "peer/group.h"

#include <sys/types.h>

enum { LAUNCH_CARD = 1024, LAUNCH_ADDRESSES = 640 };

struct launcher;

/* A process that this one started. */
struct launch_child {
    pid_t pid;
    int in; /* where it reads its card; -1: closed */
    bool ended;
    int how; /* as waitpid has it, once it has ended */
};

/* What this process was told, and what it holds of its launcher. */
struct seat {
    const struct launcher *launcher;
    uint32_t rank, size; /* rank == size: it leads and does not measure */
    bool root;
    bool kills;                               /* the launcher ends all ranks when one dies */
    char id[GROUP_NAME];                      /* of this start */
    char node[GROUP_NAME], label[GROUP_NAME]; /* "": the host's name; no group */
    char addresses[LAUNCH_ADDRESSES];         /* at which the root may be found, with commas */
    unsigned port;                            /* where it listens; 0: any */
    struct secret secret;
    bool secret_held;              /* it came with the card, or is to go with it */
    uint64_t wait_ms;              /* for other ranks */
    int fd;                        /* the launcher's own */
    const char *hosts;             /* the list of hosts, one rank on each; NULL: not known */
    struct launch_child *children; /* that this process started */
    uint32_t started;
};

struct launcher {
    const char *name; /* "pmi" */
    /* Does the environment say so? Loads nothing. NULL: only an option does. */
    bool (*here)(void);
    /* Fills rank, size and what else is known, and asks nobody. */
    int (*begin)(struct seat *seat);
    /* All ranks call it once: the root's card comes to all. NULL: there is none, and addresses and
     * port are known to everybody. */
    int (*share)(struct seat *seat, char card[LAUNCH_CARD]);
    /* At once after that: launchers forgive the death of ranks that have finished with them. */
    void (*end)(struct seat *seat);
};

/* Who started this process; -ENOENT without a sentence: nobody that is known, or it is the only
 * rank. */
int launch_find(struct seat *seat);

/* The launcher for people: "PMI (mpiexec.hydra, srun --mpi=pmi2)". */
const char *launch_words(const struct seat *seat);

/* Starts count processes like this one, which all return from here with a seat of their own; this
 * one is rank 0. Nothing may have been opened yet. */
int launch_local(struct seat *seat, uint32_t count);

/* Starts a command on each host: agent, with every %h in it replaced by the host's name, and then
 * the words of member. The command must call launch_member. This process leads and does not
 * measure. list: "n[0-15,20],other", which must stay as long as the seat. Words of member are
 * passed on by shells: no blanks or quotes. Fails if the agent's program cannot be executed; the
 * rank of an agent that ends is struck. */
int launch_hosts(struct seat *seat, const char *list, const char *agent, char *const member[]);
/* A process so started: its seat is in the standard input. */
int launch_member(struct seat *seat);

struct launch_terms {
    const struct secret *secret; /* of the user's; NULL: a new one, where the launcher carries it */
    const char *bind;
    uint64_t timeout_ms, wait_ms;
    const volatile sig_atomic_t *stop;
    bool guard; /* where the launcher kills: a process stays behind that does not die with this one.
                   Returns in the one that goes on */
};
/* From the seat to the group. The seat must stay as long as the group. */
int launch_group(struct seat *seat, const struct launch_terms *terms, struct group **group);
/* Is the group's secret a shared one? Without, strangers can take part. */
bool launch_secret(const struct seat *seat, const struct launch_terms *terms);

/* Waits for the processes that were started, some seconds, and kills what is left of them. */
void launch_end(struct seat *seat);

#endif
