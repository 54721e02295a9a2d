/* SPDX-License-Identifier: BSD-3-Clause */
/* PMIx, through a module that is loaded when a launcher has set its variables. */
#include "peer/launchers.h"

#include <errno.h>

static const struct pmix_host host = {.abi = PMIX_MODULE_ABI, .fail = fail};
static const struct pmix_module *module;

static bool pmix_here(void)
{
    return launch_value("PMIX_RANK") && launch_value("PMIX_NAMESPACE");
}

/* Rank and size are in the environment of the launchers that set PMIx's variables. */
static int pmix_begin(struct seat *seat)
{
    if (!launch_number("PMIX_RANK", &seat->rank))
        return fail(-EINVAL, "PMIX_RANK is not a number");
    if (!launch_number("OMPI_COMM_WORLD_SIZE", &seat->size) &&
        !launch_number("SLURM_STEP_NUM_TASKS", &seat->size))
        return fail(-ENOTSUP, "the launcher of PMIx does not say how many ranks there are");
    seat->kills = launch_value("OMPI_COMM_WORLD_SIZE") != NULL;
    return 0;
}

static int load(void)
{
    union {
        void *object;
        const struct pmix_module *(*function)(const struct pmix_host *);
    } entry = {NULL};
    int status = module_load("pmix", PMIX_MODULE_SYMBOL, false, &entry.object);
    if (status == -ENOENT)
        return fail(-ENOENT, "weft-pmix.so is not found: the package's pmix feature builds it");
    if (status)
        return status;
    module = entry.function(&host);
    if (!module || module->abi != PMIX_MODULE_ABI)
        return fail(-ELIBBAD, "weft-pmix.so is not a module of this version");
    return 0;
}

static int pmix_share(struct seat *seat, char card[LAUNCH_CARD])
{
    unsigned rank = 0, size = 0;
    int status = load();
    if (status)
        return status;
    signals_keep();
    status = module->begin(&rank, &size);
    signals_restore();
    if (!status && (rank != seat->rank || size != seat->size))
        status = fail(-EINVAL, "PMIx counts rank %u of %u, the environment %u of %u", rank, size,
                      seat->rank, seat->size);
    return status ? status
                  : module->share(card, LAUNCH_CARD, seat->root, (int)(seat->wait_ms / 1000) + 1);
}

static void pmix_end(struct seat *seat)
{
    (void)seat;
    if (module)
        module->end();
}

const struct launcher launcher_pmix = {
    .name = "pmix", .here = pmix_here, .begin = pmix_begin, .share = pmix_share, .end = pmix_end};
