/* SPDX-License-Identifier: BSD-3-Clause */
/* Which launcher the environment speaks of, and what is refused before any MPI is loaded. */
#include "peer/peer.h"
#include "support/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const known[] = {
    "WEFT_MPI",  "OMPI_COMM_WORLD_SIZE", "PMI_FD",       "PMI_SIZE",
    "PMIX_RANK", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "PALS_RANKID"};

/* "A=1 B=2", and nothing else that matters. */
static void set_environment(const char *text)
{
    char copy[200], *rest = NULL;
    for (size_t i = 0; i < LENGTH(known); i++)
        unsetenv(known[i]);
    assert_in_range(snprintf(copy, sizeof copy, "%s", text), 0, sizeof copy - 1);
    for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        char *value = strchr(word, '=');
        assert_non_null(value);
        *value = '\0';
        setenv(word, value + 1, 1);
    }
}

static void a_launcher_is_known_by_its_variables(void **state)
{
    static const struct {
        const char *environment;
        bool launched;
    } cases[] = {{"", false},
                 {"OMPI_COMM_WORLD_SIZE=2 PMIX_RANK=0", true},
                 {"OMPI_COMM_WORLD_SIZE=1", true}, /* to be refused in words */
                 {"PMI_FD=9 PMI_SIZE=2", true},
                 {"PMI_SIZE=1", true},
                 {"PMI_FD=9", true},
                 {"PMI_SIZE=2 PALS_RANKID=1", false},
                 {"PMIX_RANK=0", true},
                 {"WEFT_MPI=mpich", true},
                 {"WEFT_MPI=", false},
                 {"OMPI_COMM_WORLD_SIZE=", false},
                 /* A batch script's own process, and steps under srun. */
                 {"SLURM_NTASKS=2", false},
                 {"SLURM_NTASKS=2 SLURM_STEP_NUM_TASKS=2", false},
                 {"SLURM_NTASKS=2 SLURM_STEP_NUM_TASKS=2 PMIX_RANK=0", true},
                 {"SLURM_NTASKS=2 SLURM_STEP_NUM_TASKS=2 PMI_FD=9 PMI_SIZE=2", true},
                 {"SLURM_NTASKS=1 SLURM_STEP_NUM_TASKS=1 PMIX_RANK=0", false},
                 {"SLURM_NTASKS=1 SLURM_STEP_NUM_TASKS=1 PMI_FD=9 PMI_SIZE=1", false},
                 {"SLURM_STEP_NUM_TASKS=1 PMIX_RANK=0 WEFT_MPI=openmpi", true},
                 /* Launchers that were started by srun themselves. */
                 {"SLURM_STEP_NUM_TASKS=1 PMI_FD=9 PMI_SIZE=2", true},
                 {"SLURM_STEP_NUM_TASKS=1 OMPI_COMM_WORLD_SIZE=2", true}};
    (void)state;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        set_environment(cases[i].environment);
        if (mpi_launched() != cases[i].launched)
            fail_msg("\"%s\"", cases[i].environment);
    }
}

static void what_the_environment_rules_out_is_said_before_an_mpi_is_loaded(void **state)
{
    static const struct {
        const char *environment, *reason;
    } cases[] = {
        {"", "no MPI launcher started this process: use mpirun or srun --mpi"},
        {"SLURM_NTASKS=2", "no MPI launcher started this process: use mpirun or srun --mpi"},
        {"SLURM_STEP_NUM_TASKS=4", "srun started 4 tasks without an MPI: give it --mpi=pmi2 "
                                   "(MPICH) or --mpi=pmix (Open MPI)"},
        {"WEFT_MPI=lam", "WEFT_MPI=lam: openmpi and mpich are known"},
        {"WEFT_MPI=../x PMI_SIZE=2", "WEFT_MPI=../x: openmpi and mpich are known"},
        {"OMPI_COMM_WORLD_SIZE=3", "2 ranks are needed, the launcher started 3"},
        {"PMI_SIZE=1", "2 ranks are needed, the launcher started 1"},
        {"PMIX_RANK=0 SLURM_STEP_NUM_TASKS=64", "2 ranks are needed, the launcher started 64"},
        {"WEFT_MPI=mpich OMPI_COMM_WORLD_SIZE=4", "2 ranks are needed, the launcher started 4"}};
    const struct peer_terms terms = {.timeout_ms = 1000};
    (void)state;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct peer *peer = NULL;
        set_environment(cases[i].environment);
        assert_int_equal(peer_mpi(&peer, &terms), -EINVAL);
        assert_string_equal(fail_reason(), cases[i].reason);
        assert_null(peer);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_launcher_is_known_by_its_variables),
        cmocka_unit_test(what_the_environment_rules_out_is_said_before_an_mpi_is_loaded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
