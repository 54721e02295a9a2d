/* SPDX-License-Identifier: BSD-3-Clause */
/* Which MPI launched this process, and the peer over it. Only the environment shows it, and it must
 * be right: an MPI under another launcher does not fail, but makes each process rank 0 of 1. */
#include "core/clock.h"
#include "peer/life.h"
#include "peer/mpi.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { WANTED_RANKS = 2, CLIENT_RANK = 1, PARTING_MS = 10000, HURRY_MS = 1000 };

/* The values of WEFT_MPI, and the module for each. */
static const struct {
    const char *word, *module;
} known[] = {{"openmpi", "mpi_openmpi"}, {"mpich", "mpi_mpich"}};

/* What the environment shows. */
struct launcher {
    const char *mpi;      /* NULL: no MPI launched this */
    const char *variable; /* has the number of ranks; NULL: none has */
    uint64_t size;
};

static const char *value_of(const char *variable)
{
    const char *value = getenv(variable);
    return value && *value ? value : NULL;
}

static bool is_set(const char *variable)
{
    return value_of(variable) != NULL;
}

static void read_size(struct launcher *launcher, const char *variable)
{
    const char *value = value_of(variable);
    if (!launcher->variable && value && !unit_number(value, &launcher->size))
        launcher->variable = variable;
}

/* Open MPI first, because it sets PMIx's variables too. PALS has PMI_SIZE, and no MPICH of ours
 * speaks to it. */
static void find_launcher(struct launcher *launcher)
{
    *launcher = (struct launcher){.mpi = value_of("WEFT_MPI")};
    const char *chosen = NULL;
    if (is_set("OMPI_COMM_WORLD_SIZE")) {
        chosen = "openmpi";
        read_size(launcher, "OMPI_COMM_WORLD_SIZE");
    } else if (is_set("PMI_FD") || (is_set("PMI_SIZE") && !is_set("PALS_RANKID"))) {
        chosen = "mpich";
        read_size(launcher, "PMI_SIZE");
        read_size(launcher, "SLURM_STEP_NUM_TASKS");
    } else if (is_set("PMIX_RANK")) {
        chosen = "openmpi";
        read_size(launcher, "SLURM_STEP_NUM_TASKS");
    }
    if (!launcher->mpi)
        launcher->mpi = chosen;
}

/* In a Slurm allocation a plain client or server must stay one. A batch script has SLURM_NTASKS of
 * the whole allocation, which proves nothing. If PMI or PMIx is the site's default for srun, even
 * `srun -n1 TOOL` has their variables. Our MPI runs never have one task, so a step of one task is
 * a plain process too, unless WEFT_MPI is set. */
bool mpi_launched(void)
{
    struct launcher launcher;
    find_launcher(&launcher);
    bool lone_step = is_set("SLURM_STEP_NUM_TASKS") && !is_set("OMPI_COMM_WORLD_SIZE") &&
                     !is_set("WEFT_MPI") && launcher.variable && launcher.size == 1;
    return launcher.mpi && !lone_step;
}

static int wrong_count(uint64_t count)
{
    return fail(-EINVAL, "%d ranks are needed, the launcher started %llu", WANTED_RANKS,
                (unsigned long long)count);
}

static int find_module(const char *mpi, const char **module)
{
    for (size_t i = 0; i < LENGTH(known); i++)
        if (strcmp(mpi, known[i].word) == 0) {
            *module = known[i].module;
            return 0;
        }
    return fail(-EINVAL, "WEFT_MPI=%s: openmpi and mpich are known", mpi);
}

/* All checks that are possible before an MPI is loaded. A process that has not started MPI can exit
 * without waiting for other ranks. */
static int check_launcher(const struct launcher *launcher, const char **module)
{
    struct launcher slurm = {0};
    read_size(&slurm, "SLURM_STEP_NUM_TASKS");
    if (!launcher->mpi && slurm.size > 1)
        return fail(-EINVAL,
                    "srun started %llu tasks without an MPI: give it --mpi=pmi2 (MPICH) "
                    "or --mpi=pmix (Open MPI)",
                    (unsigned long long)slurm.size);
    if (!launcher->mpi)
        return fail(-EINVAL, "no MPI launcher started this process: use mpirun or srun --mpi");
    int status = find_module(launcher->mpi, module);
    if (!status && launcher->variable && launcher->size != WANTED_RANKS)
        status = wrong_count(launcher->size);
    return status;
}

/* ---- the module ---- */

static const struct mpi_host host = {.abi = MPI_MODULE_ABI, .fail = fail};

static int load(const char *name, const struct mpi_module **module)
{
    /* A function's address from dlsym, as POSIX specifies. */
    union {
        void *object;
        const struct mpi_module *(*function)(const struct mpi_host *);
    } entry = {NULL};
    /* Global: plug-ins of some Open MPIs do not name the library they need. */
    int status = module_load(name, MPI_MODULE_SYMBOL, true, &entry.object);
    if (status == -ENOENT)
        return fail(
            -ENOENT,
            "weft-%s.so is not found: the package's mpi feature builds it where this MPI is "
            "installed",
            name);
    if (status)
        return status;
    *module = entry.function(&host);
    if (!*module || (*module)->abi != MPI_MODULE_ABI)
        return fail(-ELIBBAD, "weft-%s.so is not a module of this version", name);
    return 0;
}

/* Every rank sees the same sizes and decides the same, so MPI can be finalized properly. */
static int check_size(const struct launcher *launcher, const struct mpi_module *module, int size)
{
    if (launcher->variable && launcher->size != (uint64_t)size)
        return fail(-EINVAL,
                    "%s=%llu, but %s counts %d: this is not the launcher's MPI (WEFT_MPI "
                    "chooses another)",
                    launcher->variable, (unsigned long long)launcher->size, module->name, size);
    return size == WANTED_RANKS ? 0 : wrong_count((uint64_t)size);
}

static int begin(const struct launcher *launcher, const struct mpi_module *module, int *rank)
{
    int size = 0;
    /* MPIs load libraries that install signal handlers. */
    signals_keep();
    int status = module->begin(&size, rank);
    signals_restore();
    if (status)
        return status;
    status = check_size(launcher, module, size);
    if (status)
        module->finish();
    return status;
}

/* ---- the carrier ---- */

struct ranks {
    const struct mpi_module *module;
    struct peer_terms terms;
    uint64_t heard_ms;
};

static int ranks_publish(void *arg, const void *bytes, size_t length)
{
    return ((struct ranks *)arg)->module->publish(NULL, bytes, length);
}

static int ranks_receive(void *arg, void *bytes, size_t room, size_t *length)
{
    struct ranks *ranks = arg;
    int got = ranks->module->receive(NULL, bytes, room, length);
    if (got > 0)
        ranks->heard_ms = clock_ms();
    return got;
}

/* Both ends must leave together: a launcher kills a rank that is still busy when another has exited
 * without MPI_Finalize. */
static bool part(const struct ranks *ranks)
{
    const volatile sig_atomic_t *stop = ranks->terms.stop;
    uint64_t since_ms = clock_ms();
    uint64_t timeout_ms = ranks->terms.timeout_ms;
    uint64_t bound_ms = timeout_ms > PARTING_MS ? timeout_ms : PARTING_MS;
    /* Silent, or just not polled for that long: give it a short time to send something. */
    if (since_ms - ranks->heard_ms > timeout_ms)
        bound_ms = HURRY_MS;
    for (;;) {
        int status = ranks->module->part();
        uint64_t passed_ms = clock_ms() - since_ms;
        if (status || passed_ms > bound_ms || (stop && *stop && passed_ms > HURRY_MS))
            return status == 1;
        struct timespec pause = {.tv_nsec = 200000};
        nanosleep(&pause, NULL);
    }
}

/* MPI_Finalize waits for every rank, without a deadline. If the other rank is gone, MPI is not
 * finalized: the process exits without it, and the launcher ends the rest of the job. */
static void ranks_close(void *arg)
{
    struct ranks *ranks = arg;
    if (part(ranks))
        ranks->module->finish();
    free(ranks);
}

static int open_ranks(struct peer **peer, const struct launcher *launcher,
                      const struct mpi_module *module, const struct peer_terms *terms)
{
    int rank = 0;
    struct ranks *ranks = calloc(1, sizeof *ranks);
    if (!ranks)
        return fail(-ENOMEM, "no memory for a connection");
    int status = begin(launcher, module, &rank);
    if (status) {
        free(ranks);
        return status;
    }
    *ranks = (struct ranks){.module = module, .terms = *terms, .heard_ms = clock_ms()};
    const struct peer_carrier carrier = {
        .arg = ranks, .publish = ranks_publish, .receive = ranks_receive, .close = ranks_close};
    status = peer_relay(peer, &carrier, rank == CLIENT_RANK ? PEER_CLIENT : PEER_SERVER, terms);
    if (status)
        ranks_close(ranks);
    return status;
}

int peer_mpi(struct peer **peer, const struct peer_terms *terms)
{
    struct launcher launcher;
    const struct mpi_module *module = NULL;
    const char *name = NULL;
    find_launcher(&launcher);
    int status = check_launcher(&launcher, &name);
    if (!status)
        status = load(name, &module);
    return status || !module ? status : open_ranks(peer, &launcher, module, terms);
}
