/* SPDX-License-Identifier: BSD-3-Clause */
/* PMI-1's wire protocol: lines over the descriptor PMI_FD. mpiexec.hydra speaks it, and srun
 * --mpi=pmi2 too, to a client that begins so. */
#include "core/clock.h"
#include "peer/launchers.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PMI_LINE = 2048 };

int launch_write(int fd, const char *bytes, size_t length)
{
    while (length) {
        ssize_t n = write(fd, bytes, length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return fail(-errno, "the launcher is gone: %s", strerror(errno));
        bytes += n;
        length -= (size_t)n;
    }
    return 0;
}

int launch_line(int fd, char *line, size_t room, uint64_t wait_ms)
{
    uint64_t until_ms = clock_ms() + wait_ms;
    for (size_t have = 0; have < room;) {
        uint64_t now_ms = clock_ms();
        struct pollfd data = {.fd = fd, .events = POLLIN};
        if (now_ms >= until_ms)
            return fail(-ETIMEDOUT, "no answer of the launcher within %g s",
                        (double)wait_ms / 1000);
        if (poll(&data, 1, 50) <= 0)
            continue;
        ssize_t n = read(fd, line + have, 1);
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (n <= 0)
            return fail(-ECONNRESET, "the launcher is gone");
        if (line[have] == '\n') {
            line[have] = '\0';
            return 0;
        }
        have++;
    }
    return fail(-EPROTO, "the launcher sent a line of more than %zu characters", room - 1);
}

/* The value of a key in "cmd=x key=value ...". A card has no blanks. */
static int value_of(const char *line, const char *key, char *value, size_t room)
{
    size_t length = strlen(key);
    for (const char *at = line; at; at = strchr(at, ' ')) {
        at += *at == ' ';
        if (strncmp(at, key, length) == 0 && at[length] == '=') {
            size_t n = strcspn(at + length + 1, " ");
            if (n >= room)
                break;
            memcpy(value, at + length + 1, n);
            value[n] = '\0';
            return 0;
        }
    }
    return fail(-EPROTO, "the launcher's answer has no %s: %.100s", key, line);
}

/* A question, and the answer whose command must be that one. */
static int ask(const struct seat *seat, const char *question, const char *expected,
               char answer[PMI_LINE])
{
    char command[64] = "", code[16] = "";
    answer[0] = '\0';
    int status = launch_write(seat->fd, question, strlen(question));
    if (!status)
        status = launch_line(seat->fd, answer, PMI_LINE, seat->wait_ms);
    if (!status)
        status = value_of(answer, "cmd", command, sizeof command);
    if (!status && strcmp(command, expected) != 0)
        status = fail(-EPROTO, "the launcher answered %.40s, not %s", command, expected);
    if (!status && strstr(answer, " rc=") && !value_of(answer, "rc", code, sizeof code) &&
        strcmp(code, "0") != 0)
        status = fail(-EPROTO, "the launcher refused: %.100s", answer);
    return status;
}

static bool pmi_here(void)
{
    return launch_value("PMI_FD") && launch_value("PMI_RANK") && launch_value("PMI_SIZE");
}

static int pmi_begin(struct seat *seat)
{
    uint32_t fd = 0;
    if (!launch_number("PMI_FD", &fd) || !launch_number("PMI_RANK", &seat->rank) ||
        !launch_number("PMI_SIZE", &seat->size))
        return fail(-EINVAL, "PMI_FD, PMI_RANK or PMI_SIZE is not a number");
    seat->fd = (int)fd;
    /* Slurm lets the others go on. */
    seat->kills = !launch_value("SLURM_STEP_ID") || launch_value("HYDI_CONTROL_FD") ||
                  launch_value("HYDRA_BSTRAP_LOCALHOST");
    return 0;
}

static int put_card(const struct seat *seat, const char *name, const char *card)
{
    char line[PMI_LINE], answer[PMI_LINE] = "";
    if (snprintf(line, sizeof line, "cmd=put kvsname=%s key=weft value=%s\n", name, card) >=
        (int)sizeof line)
        return fail(-EMSGSIZE, "a card of %zu characters is too long for PMI", strlen(card));
    return ask(seat, line, "put_result", answer);
}

static int pmi_share(struct seat *seat, char card[LAUNCH_CARD])
{
    char answer[PMI_LINE] = "", name[256] = "", line[PMI_LINE];
    int status = ask(seat, "cmd=init pmi_version=1 pmi_subversion=1\n", "response_to_init", answer);
    if (!status)
        status = ask(seat, "cmd=get_my_kvsname\n", "my_kvsname", answer);
    if (!status)
        status = value_of(answer, "kvsname", name, sizeof name);
    if (!status && seat->root)
        status = put_card(seat, name, card);
    if (!status)
        status = ask(seat, "cmd=barrier_in\n", "barrier_out", answer);
    if (status || seat->root)
        return status;
    snprintf(line, sizeof line, "cmd=get kvsname=%s key=weft\n", name);
    status = ask(seat, line, "get_result", answer);
    return status ? status : value_of(answer, "value", card, LAUNCH_CARD);
}

static void pmi_end(struct seat *seat)
{
    char answer[PMI_LINE] = "";
    ask(seat, "cmd=finalize\n", "finalize_ack", answer);
}

const struct launcher launcher_pmi = {
    .name = "pmi", .here = pmi_here, .begin = pmi_begin, .share = pmi_share, .end = pmi_end};
