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

static void add_child(struct seat *seat, pid_t pid, int in)
{
    seat->children[seat->started++] = (struct launch_child){.pid = pid, .in = in};
}

static void close_input(struct launch_child *child)
{
    if (child->in >= 0)
        close(child->in);
    child->in = -1;
}

/* ---- their ends ---- */

static bool has_ended(struct launch_child *child, uint64_t wait_ms)
{
    pid_t seen = child->ended ? 0 : waitpid(child->pid, &child->how, WNOHANG);
    if (!child->ended && !seen && wait_ms) {
        child->how = child_wait(child->pid, wait_ms);
        seen = child->how == -1 ? 0 : child->pid;
    }
    child->ended |= seen == child->pid;
    return child->ended;
}

bool launch_ended(void *arg, uint32_t rank, uint64_t wait_ms, char reason[GROUP_REASON])
{
    struct seat *seat = arg;
    bool hosts = seat->launcher == &launcher_hosts;
    uint32_t number = hosts ? rank : rank - 1; /* rank 0 of copies is this process */
    struct launch_child *child = number < seat->started ? &seat->children[number] : NULL;
    char host[GROUP_NAME] = "";
    if (!child)
        return false;
    bool known = child->ended;
    if (!has_ended(child, wait_ms))
        return false;
    const char *what = hosts ? "the agent" : "its process";
    if (WIFSIGNALED(child->how))
        snprintf(reason, GROUP_REASON, "%s%skilled by signal %d", hosts ? what : "",
                 hosts ? " was " : "", WTERMSIG(child->how));
    else
        snprintf(reason, GROUP_REASON, "%s ended with %d", what, WEXITSTATUS(child->how));
    if (!known && hosts && !hostlist_name(seat->hosts, rank, host, sizeof host))
        warn("host %s: %s", host, reason);
    else if (!known)
        warn("rank %u: %s", rank, reason);
    return true;
}

void launch_end(struct seat *seat)
{
    uint64_t until_ms = clock_ms() + END_MS;
    for (uint32_t i = 0; i < seat->started; i++)
        close_input(&seat->children[i]);
    for (uint32_t i = 0; i < seat->started; i++) {
        uint64_t now_ms = clock_ms();
        struct launch_child *child = &seat->children[i];
        if (has_ended(child, now_ms < until_ms ? until_ms - now_ms : 0))
            continue;
        kill(child->pid, SIGKILL);
        child_wait(child->pid, CHILD_KILLED_MS);
    }
    free(seat->children);
    seat->children = NULL;
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
        add_child(seat, child, -1);
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

static void become_agent(char *words[], int in, int told)
{
    dup2(in, STDIN_FILENO);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    signal(SIGPIPE, SIG_DFL);
    execvp(words[0], words);
    int why = errno;
    (void)!write(told, &why, sizeof why);
    _exit(127);
}

/* What execvp could not do in the child, as errno has it: the pipe closes when it could. */
static int exec_failure(int told)
{
    int why = 0;
    ssize_t n;
    do
        n = read(told, &why, sizeof why);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)sizeof why ? why : 0;
}

/* Its standard input is a pipe that stays open for its card. */
static int start_agent(struct seat *seat, char *words[])
{
    int in[2], told[2];
    if (!words[0] || pipe2(in, O_CLOEXEC))
        return fail(-errno, "pipe: %s", strerror(errno));
    if (pipe2(told, O_CLOEXEC)) {
        int status = fail(-errno, "pipe: %s", strerror(errno));
        close(in[0]);
        close(in[1]);
        return status;
    }
    pid_t child = fork();
    int why = child < 0 ? errno : 0;
    if (child == 0)
        become_agent(words, in[0], told[1]);
    close(in[0]);
    close(told[1]);
    if (child > 0) {
        add_child(seat, child, in[1]);
        why = exec_failure(told[0]);
    } else {
        close(in[1]);
    }
    close(told[0]);
    return why ? fail(-why, "--agent: %s cannot be started: %s", words[0], strerror(why)) : 0;
}

int launch_hosts(struct seat *seat, const char *list, const char *agent, char *const member[])
{
    char host[256] = "", command[AGENT_MAX] = "", *words[AGENT_WORDS] = {NULL};
    *seat = (struct seat){.launcher = &launcher_hosts, .root = true, .fd = -1, .hosts = list};
    int status = hostlist_count(list, GROUP_RANKS_MAX, &seat->size);
    if (!status && seat->size < 2)
        status = fail(-EINVAL, "--hosts: at least two hosts are needed");
    if (!status)
        status = no_children(seat, seat->size);
    seat->rank = seat->size;
    signal(SIGPIPE, SIG_IGN);
    for (uint32_t i = 0; !status && i < seat->size; i++) {
        status = hostlist_name(list, i, host, sizeof host);
        if (!status)
            status = fill_in(agent, host, command);
        if (!status)
            status = make_words(command, member, words);
        if (!status)
            status = start_agent(seat, words);
        char line[GROUP_NAME + 64];
        int length =
            snprintf(line, sizeof line, "%u %u %.*s\n", i, seat->size, GROUP_NAME - 1, host);
        if (!status)
            (void)!write(seat->children[i].in, line, (size_t)length);
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
        (void)!write(seat->children[i].in, line, (size_t)length);
        close_input(&seat->children[i]);
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
