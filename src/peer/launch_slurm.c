/* SPDX-License-Identifier: BSD-3-Clause */
/* Launchers that only set variables: srun without an MPI, and PALS. They carry no card: the root is
 * on the first host, at a port that all ranks compute from the job. */
#include "peer/launchers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Above the ports of services, below those that systems choose by themselves. */
unsigned launch_port(const char *id)
{
    struct sha256 sha;
    unsigned char digest[SHA256_BYTES];
    sha256_begin(&sha);
    sha256_add(&sha, id, strlen(id));
    sha256_end(&sha, digest);
    return 20000 + ((unsigned)digest[0] << 8 | digest[1]) % 12000;
}

/* ---- Slurm ---- */

static bool slurm_here(void)
{
    return launch_value("SLURM_PROCID") && launch_value("SLURM_STEP_NUM_TASKS") &&
           launch_value("SLURM_STEP_NODELIST");
}

/* "top.s1.n2": the switches above the node; the nearest is its group. */
static void slurm_label(struct seat *seat)
{
    const char *address = launch_value("SLURM_TOPOLOGY_ADDR");
    const char *last = address ? strrchr(address, '.') : NULL;
    if (!last)
        return;
    size_t start = (size_t)(last - address);
    while (start && address[start - 1] != '.')
        start--;
    snprintf(seat->label, sizeof seat->label, "%.*s", (int)((size_t)(last - address) - start),
             address + start);
}

static int slurm_begin(struct seat *seat)
{
    const char *job = launch_value("SLURM_JOB_ID"), *step = launch_value("SLURM_STEP_ID");
    if (!launch_number("SLURM_PROCID", &seat->rank) ||
        !launch_number("SLURM_STEP_NUM_TASKS", &seat->size))
        return fail(-EINVAL, "SLURM_PROCID or SLURM_STEP_NUM_TASKS is not a number");
    snprintf(seat->id, sizeof seat->id, "slurm-%.20s.%.20s", job ? job : "0", step ? step : "0");
    seat->port = launch_port(seat->id);
    slurm_label(seat);
    return hostlist_name(launch_value("SLURM_STEP_NODELIST"), 0, seat->addresses,
                         sizeof seat->addresses);
}

const struct launcher launcher_slurm = {.name = "slurm", .here = slurm_here, .begin = slurm_begin};

/* ---- PALS ---- */

/* The file that PALS_APINFO names: a head of numbers with sizes, places and counts of its tables,
 * in the machine's own order. */
enum { PALS_WORDS = 17, PALS_FILE_MAX = 64 << 20, PALS_HOST = 64 };
enum pals_table { PALS_PROFILES, PALS_COMMANDS, PALS_RANKS, PALS_NODES, PALS_TABLES };
struct pals_head {
    int version;
    size_t total;
    struct {
        size_t size, offset;
        int count;
    } table[PALS_TABLES];
};

static bool pals_here(void)
{
    return launch_value("PALS_RANKID") && launch_value("PALS_APINFO");
}

static const unsigned char *pals_entry(const unsigned char *file, size_t length,
                                       const struct pals_head *head, enum pals_table table,
                                       int number, size_t least)
{
    size_t size = head->table[table].size, offset = head->table[table].offset;
    if (number < 0 || number >= head->table[table].count || size < least || size > length ||
        offset > length || (size_t)number > (length - offset) / size ||
        length - offset - (size_t)number * size < size)
        return NULL;
    return file + offset + (size_t)number * size;
}

/* How many ranks, and the name of the first one's host. */
static int pals_read(const unsigned char *file, size_t length, struct seat *seat)
{
    struct pals_head head;
    int rank_words[3] = {0};
    if (length < sizeof head)
        return fail(-EPROTO, "PALS_APINFO: the file ends within its head");
    memcpy(&head, file, sizeof head);
    int ranks = head.table[PALS_RANKS].count;
    const unsigned char *rank = pals_entry(file, length, &head, PALS_RANKS, 0, sizeof rank_words);
    if (rank)
        memcpy(rank_words, rank, sizeof rank_words);
    const unsigned char *node =
        rank ? pals_entry(file, length, &head, PALS_NODES, rank_words[2], sizeof(int) + PALS_HOST)
             : NULL;
    if (!node || ranks < 1 || ranks > GROUP_RANKS_MAX)
        return fail(-EPROTO, "PALS_APINFO: version %d of the file cannot be read", head.version);
    seat->size = (uint32_t)ranks;
    snprintf(seat->addresses, sizeof seat->addresses, "%.*s", PALS_HOST - 1,
             (const char *)node + sizeof(int));
    return 0;
}

static int pals_begin(struct seat *seat)
{
    const char *path = launch_value("PALS_APINFO"), *job = launch_value("PALS_APID");
    if (!launch_number("PALS_RANKID", &seat->rank))
        return fail(-EINVAL, "PALS_RANKID is not a number");
    unsigned char *bytes = malloc(PALS_FILE_MAX);
    FILE *file = bytes ? fopen(path, "re") : NULL;
    int status = file ? 0 : fail(-ENOENT, "PALS_APINFO: %s cannot be read", path);
    size_t length = file ? fread(bytes, 1, PALS_FILE_MAX, file) : 0;
    if (file)
        fclose(file);
    if (!status)
        status = pals_read(bytes, length, seat);
    free(bytes);
    snprintf(seat->id, sizeof seat->id, "pals-%.50s", job ? job : "0");
    seat->port = launch_port(seat->id);
    slurm_label(seat);
    return status;
}

const struct launcher launcher_pals = {.name = "pals", .here = pals_here, .begin = pals_begin};
