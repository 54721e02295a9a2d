/* SPDX-License-Identifier: BSD-3-Clause */
/* --local: the same program as a second process. It is started by exec, before anything is opened,
 * and dies with this one. */
#include "tool/local.h"
#include "core/child.h"
#include "core/clock.h"
#include "core/cpu.h"
#include "tool/shell.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LISTEN_MS = 10000, STOP_MS = 2000 };

void arguments_begin(struct arguments *a)
{
    *a = (struct arguments){.list = {(char *)shell_program}, .n = 1};
}

void argument(struct arguments *a, const char *name, const char *format, ...)
{
    va_list words;
    char *value = a->text + a->used;
    size_t room = sizeof a->text - a->used;
    if (a->n + 2 > ARGUMENTS)
        return;
    va_start(words, format);
    int n = vsnprintf(value, room, format, words);
    va_end(words);
    if (n < 0 || (size_t)n >= room)
        return;
    a->used += (size_t)n + 1;
    a->list[a->n++] = (char *)name;
    a->list[a->n++] = value;
}

void local_bounds(struct arguments *a, const struct bounds *most)
{
    argument(a, "--max-memory", "%" PRIu64, most->memory ? most->memory : UINT64_MAX);
    if (most->session_ms)
        argument(a, "--max-session", "%" PRIu64, most->session_ms / 1000);
}

/* In the child. An interrupt from the terminal reaches the whole group: the client tells us. */
static void become_server(const struct arguments *a, int out, int errors, int secret, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    signal(SIGINT, SIG_IGN);
    dup2(out, STDOUT_FILENO);
    dup2(errors, STDERR_FILENO);
    fcntl(secret, F_SETFD, 0); /* this one it inherits */
    execv("/proc/self/exe", a->list);
    _exit(127);
}

/* The port from the Listening line. */
static int read_port(struct local *local, unsigned *port)
{
    char line[256];
    size_t have = 0;
    uint64_t until_ms = clock_ms() + LISTEN_MS;
    while (have + 1 < sizeof line && clock_ms() < until_ms && !shell_stop) {
        struct pollfd data = {.fd = local->out, .events = POLLIN};
        if (poll(&data, 1, 100) <= 0)
            continue;
        ssize_t n = read(local->out, line + have, 1);
        if (n <= 0)
            return fail(-ECHILD, "--local: the server did not start");
        if (line[have++] == '\n') {
            line[have] = '\0';
            local->told = lseek(local->errors, 0, SEEK_END);
            return sscanf(line, "Listening on port %u", port) == 1
                       ? 0
                       : fail(-ECHILD, "--local: the server did not say where it listens");
        }
    }
    return shell_stop ? fail(-EINTR, "interrupted")
                      : fail(-ETIMEDOUT, "--local: the server did not listen within %d s",
                             LISTEN_MS / 1000);
}

void local_place(const int64_t request[2], int64_t cpus[2])
{
    int64_t pair[2] = {-1, -1};
    int count = cpu_pair(pair);
    cpus[0] = request[0] >= 0 ? request[0] : pair[0];
    cpus[1] = request[1] >= 0 ? request[1] : cpus[0] == pair[1] ? pair[0] : pair[1];
    if (count < 1)
        cpus[0] = cpus[1] = -1;
}

const char local_address[] = "127.0.0.1";

/* If it is not what the option says already. */
static void note(struct opt_set *set, const char *name, const char *text)
{
    const struct opt *row = opt_find(set, name);
    char value[1024];
    opt_format(row, set->base, value, sizeof value);
    if (strcmp(value, text) != 0 && !opt_assign(set, row, text, OPT_BY_OPTION))
        opt_resolved(set, name, "local");
}

void local_note(struct opt_set *set, unsigned port, const char *cpus)
{
    char text[64];
    snprintf(text, sizeof text, "%u", port);
    note(set, "port", text);
    if (opt_origin(set, opt_find(set, "bind")) != OPT_BY_USER)
        note(set, "bind", local_address);
    if (*cpus)
        note(set, "cpu", cpus);
}

/* In memory, and as closed to others as a file would have to be. */
static int secret_descriptor(struct access *access)
{
    char text[SECRET_TEXT];
    int status = access_renew(access);
    if (status)
        return status;
    secret_text(&access->secret, text);
    int fd = memfd_create("weft-secret", MFD_CLOEXEC);
    if (fd >= 0 && !fchmod(fd, 0600) && write(fd, text, sizeof text) == sizeof text)
        return fd;
    status = fail(-errno, "--local: %s", strerror(errno));
    if (fd >= 0)
        close(fd);
    return status;
}

int local_start(struct local *local, struct arguments *arguments, struct access *access,
                unsigned *port)
{
    int pipes[2];
    *local = (struct local){.out = -1, .errors = -1};
    local->errors = memfd_create("weft-server-errors", MFD_CLOEXEC);
    if (local->errors < 0 || pipe2(pipes, O_CLOEXEC))
        return fail(-errno, "--local: %s", strerror(errno));
    local->out = pipes[0];
    int secret = secret_descriptor(access);
    if (secret < 0) {
        close(pipes[1]);
        return secret;
    }
    argument(arguments, "--secret-file", "fd:%d", secret);
    pid_t parent = getpid();
    local->pid = fork();
    if (local->pid == 0)
        become_server(arguments, pipes[1], local->errors, secret, parent);
    close(pipes[1]);
    close(secret);
    if (local->pid < 0) {
        local->pid = 0;
        return fail(-errno, "--local: fork: %s", strerror(errno));
    }
    return read_port(local, port);
}

static void local_stop(struct local *local)
{
    if (local->out >= 0)
        close(local->out);
    local->out = -1;
    if (!local->pid)
        return;
    int how = child_wait(local->pid, STOP_MS);
    if (how == -1) {
        kill(local->pid, SIGKILL);
        how = child_wait(local->pid, CHILD_KILLED_MS);
    }
    local->code = how != -1 && WIFEXITED(how) ? WEXITSTATUS(how) : 1;
    local->pid = 0;
}

/* A server that died without a word to us has said it on its standard error. */
int local_end(struct local *local, int status)
{
    char why[1024];
    snprintf(why, sizeof why, "%s", fail_reason());
    local_stop(local);
    return status ? fail(status, "%s", why) : 0;
}

int local_failure(const struct local *local, int status)
{
    char text[2048] = "";
    bool untold = status == -ECHILD || status == -ECONNRESET;
    ssize_t n = 0;
    if (local && untold && local->errors >= 0)
        n = pread(local->errors, text, sizeof text - 1, local->told);
    text[n > 0 ? n : 0] = '\0';
    if (!*text) {
        shell_say(fail_reason());
        return shell_exit_code(status);
    }
    fputs(text, stderr);
    text[strcspn(text, "\n")] = '\0';
    fail(status, "%s", text);
    return status == -ECHILD && local->code ? local->code : shell_exit_code(status);
}
