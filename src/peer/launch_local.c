/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks that this process starts: copies of itself, or a command per host. They get their card
 * through a pipe or the command's standard input: a secret is never in an argument. */
#include "core/child.h"
#include "core/clock.h"
#include "peer/launchers.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { AGENT_MAX = 4096, AGENT_WORDS = 256, END_MS = 5000 };

static int no_children(struct seat *seat, uint32_t count)
{
    seat->children = calloc(count, sizeof *seat->children);
    return seat->children ? 0 : fail(-ENOMEM, "no memory for %u processes", count);
}

void launch_end(struct seat *seat)
{
    uint64_t until_ms = clock_ms() + END_MS;
    for (uint32_t i = 0; i < seat->started; i++) {
        uint64_t now_ms = clock_ms();
        pid_t child = seat->children[i];
        if (child <= 0 || child_wait(child, now_ms < until_ms ? until_ms - now_ms : 0) != -1)
            continue;
        kill(child, SIGKILL);
        child_wait(child, CHILD_KILLED_MS);
    }
    free(seat->children);
    free(seat->inputs);
    seat->children = NULL;
    seat->inputs = NULL;
    seat->started = 0;
}

/* ---- copies ---- */

/* A card of constant length for each of them in one pipe. */
static int local_share(struct seat *seat, char card[LAUNCH_CARD])
{
    int status = 0;
    for (uint32_t i = 1; seat->root && !status && i < seat->size; i++)
        status = launch_write(seat->fd, card, LAUNCH_CARD);
    if (!seat->root) {
        struct pollfd data = {.fd = seat->fd, .events = POLLIN};
        if (poll(&data, 1, (int)seat->wait_ms) <= 0 ||
            read(seat->fd, card, LAUNCH_CARD) != LAUNCH_CARD)
            status = fail(-ECONNRESET, "the process that started this one is gone");
        card[LAUNCH_CARD - 1] = '\0';
    }
    close(seat->fd);
    seat->fd = -1;
    return status;
}

const struct launcher launcher_local = {.name = "local", .share = local_share};

/* Standard output is the root's. */
static void become_rank(struct seat *seat, const int pipe_fds[2], uint32_t rank)
{
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(pipe_fds[1]);
    seat->fd = pipe_fds[0];
    seat->rank = rank;
    seat->root = false;
    free(seat->children);
    seat->children = NULL;
    seat->started = 0;
    if (null >= 0) {
        dup2(null, STDOUT_FILENO);
        close(null);
    }
}

int launch_local(struct seat *seat, uint32_t count)
{
    int fds[2];
    *seat = (struct seat){.launcher = &launcher_local, .size = count, .root = true, .fd = -1};
    snprintf(seat->addresses, sizeof seat->addresses, "127.0.0.1");
    if (count < 2 || count > GROUP_RANKS_MAX)
        return fail(-EINVAL, "%u ranks: 2 to %d are possible", count, GROUP_RANKS_MAX);
    int status = no_children(seat, count);
    if (status || pipe2(fds, O_CLOEXEC))
        return status ? status : fail(-errno, "pipe: %s", strerror(errno));
    fflush(NULL);
    for (uint32_t i = 1; i < count; i++) {
        pid_t child = fork();
        if (child == 0) {
            become_rank(seat, fds, i);
            return 0;
        }
        if (child < 0) {
            status = fail(-errno, "only %u of %u processes could be started: %s", i, count,
                          strerror(errno));
            break;
        }
        seat->children[seat->started++] = child;
    }
    close(fds[0]);
    seat->fd = fds[1];
    return status;
}

/* ---- hosts ---- */

/* Every %h in the agent is the host. */
static int fill_in(const char *agent, const char *host, char command[AGENT_MAX])
{
    size_t used = 0;
    for (const char *at = agent; *at; at++) {
        bool here = at[0] == '%' && at[1] == 'h';
        const char *piece = here ? host : at;
        size_t length = here ? strlen(host) : 1;
        if (used + length + 1 > AGENT_MAX)
            return fail(-EINVAL, "--agent is longer than %d characters", AGENT_MAX);
        memcpy(command + used, piece, length);
        used += length;
        at += here;
    }
    command[used] = '\0';
    return 0;
}

/* The agent's words, separated by blanks, and then the member's. */
static int make_words(char *command, char *const member[], char *words[AGENT_WORDS])
{
    int count = 0;
    char *rest = NULL;
    for (char *word = strtok_r(command, " \t", &rest); word; word = strtok_r(NULL, " \t", &rest))
        if (count < AGENT_WORDS - 1)
            words[count++] = word;
    if (!count)
        return fail(-EINVAL, "--agent is empty: \"ssh %%h\" is an example");
    for (int i = 0; member[i]; i++) {
        if (count == AGENT_WORDS - 1)
            return fail(-EINVAL, "--agent and this command have more than %d words together",
                        AGENT_WORDS - 1);
        if (strspn(member[i], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                              "_-+=./:,%@") != strlen(member[i]))
            return fail(-EINVAL, "\"%s\" cannot be passed on to another host", member[i]);
        words[count++] = member[i];
    }
    words[count] = NULL;
    return 0;
}

/* Its standard input is a pipe that stays open for its card. */
static int start_agent(struct seat *seat, char *words[], int *in)
{
    int fds[2];
    if (!words[0] || pipe2(fds, O_CLOEXEC))
        return fail(-errno, "pipe: %s", strerror(errno));
    pid_t child = fork();
    if (child == 0) {
        dup2(fds[0], STDIN_FILENO);
        dup2(STDERR_FILENO, STDOUT_FILENO);
        signal(SIGPIPE, SIG_DFL);
        execvp(words[0], words);
        _exit(127);
    }
    close(fds[0]);
    if (child < 0) {
        close(fds[1]);
        return fail(-errno, "%s cannot be started: %s", words[0], strerror(errno));
    }
    seat->children[seat->started++] = child;
    *in = fds[1];
    return 0;
}

int launch_hosts(struct seat *seat, const char *list, const char *agent, char *const member[])
{
    char host[256] = "", command[AGENT_MAX] = "", *words[AGENT_WORDS] = {NULL};
    *seat = (struct seat){.launcher = &launcher_hosts, .root = true, .fd = -1};
    int status = hostlist_count(list, GROUP_RANKS_MAX, &seat->size);
    if (!status && seat->size < 2)
        status = fail(-EINVAL, "--hosts: at least two hosts are needed");
    if (!status)
        status = no_children(seat, seat->size);
    seat->rank = seat->size;
    seat->inputs = calloc(seat->size + 1, sizeof *seat->inputs);
    if (!seat->inputs)
        return fail(-ENOMEM, "no memory for %u hosts", seat->size);
    signal(SIGPIPE, SIG_IGN);
    for (uint32_t i = 0; !status && i < seat->size; i++) {
        status = hostlist_name(list, i, host, sizeof host);
        if (!status)
            status = fill_in(agent, host, command);
        if (!status)
            status = make_words(command, member, words);
        if (!status)
            status = start_agent(seat, words, &seat->inputs[i]);
        /* One that cannot be started is missed later, as one that dies is. */
        char line[GROUP_NAME + 64];
        int length =
            snprintf(line, sizeof line, "%u %u %.*s\n", i, seat->size, GROUP_NAME - 1, host);
        if (!status)
            (void)!write(seat->inputs[i], line, (size_t)length);
    }
    return status;
}

static int hosts_share(struct seat *seat, char card[LAUNCH_CARD])
{
    char line[LAUNCH_CARD + 1];
    if (!seat->root)
        return launch_line(STDIN_FILENO, card, LAUNCH_CARD, seat->wait_ms);
    int length = snprintf(line, sizeof line, "%s\n", card);
    for (uint32_t i = 0; i < seat->size; i++) {
        (void)!write(seat->inputs[i], line, (size_t)length);
        close(seat->inputs[i]);
    }
    explicit_bzero(line, sizeof line);
    return 0;
}

const struct launcher launcher_hosts = {.name = "hosts", .share = hosts_share};

int launch_member(struct seat *seat)
{
    char line[256], node[GROUP_NAME] = "";
    enum { FIRST_MS = 30000 };
    *seat = (struct seat){.launcher = &launcher_hosts, .fd = -1};
    int status = launch_line(STDIN_FILENO, line, sizeof line, FIRST_MS);
    if (status)
        return status;
    if (sscanf(line, "%u %u %63s", &seat->rank, &seat->size, node) != 3 ||
        seat->rank >= seat->size || seat->size > GROUP_RANKS_MAX)
        return fail(-EPROTO, "the standard input does not say which rank this is");
    snprintf(seat->node, sizeof seat->node, "%s", node);
    return 0;
}
