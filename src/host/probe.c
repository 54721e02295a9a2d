/* SPDX-License-Identifier: BSD-3-Clause */
/* A child process that may hang. It is killed at its deadline. A child that sleeps in a driver does
 * not exit even then; it is not waited for. */
#include "host/probe.h"
#include "core/child.h"
#include "core/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TEXT_MAX = 1 << 20, OUTPUT_MAX = 4096 };

/* ---- the child ---- */

/* Ends by _exit, because handlers registered by vendor libraries may hang too. */
static void child_main(probe_work *work, const void *arg, int text_fd, int output_fd, pid_t parent)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    dup2(output_fd, STDOUT_FILENO);
    dup2(output_fd, STDERR_FILENO);
    FILE *out = fdopen(text_fd, "w");
    if (!out)
        _exit(1);
    /* Line by line, so that lines written before a crash arrive. */
    setvbuf(out, NULL, _IOLBF, BUFSIZ);
    work(arg, out);
    fflush(out);
    _exit(0);
}

/* ---- the parent ---- */

/* Reads until the child closes its end: 0, or -ETIMEDOUT. Text beyond TEXT_MAX is dropped. */
static int read_all(int from, char *text, uint64_t until_ms)
{
    size_t have = 0;
    for (;;) {
        char dropped[4096];
        struct pollfd data = {.fd = from, .events = POLLIN};
        uint64_t now_ms = clock_ms();
        if (now_ms >= until_ms)
            return -ETIMEDOUT;
        if (poll(&data, 1, (int)(until_ms - now_ms)) <= 0)
            continue;
        size_t room = TEXT_MAX - 1 - have;
        ssize_t n = read(from, room ? text + have : dropped, room ? room : sizeof dropped);
        if (n <= 0)
            return 0;
        have += room ? (size_t)n : 0;
        text[have] = '\0';
    }
}

/* Kills the child's process group, the child first unless it has ended. Returns its wait status, or
 * -1 if it does not exit. */
static int reap(pid_t child, bool ended)
{
    if (!ended)
        kill(-child, SIGKILL);
    int wait_status = child_wait(child, CHILD_KILLED_MS);
    kill(-child, SIGKILL);
    return wait_status;
}

static int judge_end(int wait_status)
{
    if (wait_status == -1)
        return fail(-ECHILD, "it does not exit");
    if (WIFSIGNALED(wait_status))
        return fail(-ECHILD, "it crashed (%s)", strsignal(WTERMSIG(wait_status)));
    if (WEXITSTATUS(wait_status))
        return fail(-ECHILD, "it ended the process (exit code %d)", WEXITSTATUS(wait_status));
    return 0;
}

static int collect(struct probe *probe, int from, pid_t child, uint64_t limit_ms)
{
    bool ended = read_all(from, probe->text, clock_ms() + limit_ms) == 0;
    int wait_status = reap(child, ended);
    return ended ? judge_end(wait_status)
                 : fail(-ETIMEDOUT, "no answer within %g s", (double)limit_ms / 1000);
}

static int run_child(struct probe *probe, probe_work *work, const void *arg, uint64_t limit_ms,
                     int output_fd)
{
    int pipes[2];
    if (pipe2(pipes, O_CLOEXEC))
        return fail(-errno, "pipe: %s", strerror(errno));
    pid_t parent = getpid(), child = fork();
    if (child == 0)
        child_main(work, arg, pipes[1], output_fd, parent);
    int status = child < 0 ? fail(-errno, "fork: %s", strerror(errno)) : 0;
    close(pipes[1]);
    if (!status)
        status = collect(probe, pipes[0], child, limit_ms);
    close(pipes[0]);
    return status;
}

int probe_run(struct probe *probe, probe_work *work, const void *arg, uint64_t limit_ms)
{
    *probe = (struct probe){.text = calloc(1, TEXT_MAX), .output = calloc(1, OUTPUT_MAX)};
    if (!probe->text || !probe->output)
        return fail(-ENOMEM, "no memory for a child's answer");
    int output_fd = memfd_create("weft-output", MFD_CLOEXEC);
    if (output_fd < 0)
        return fail(-errno, "memfd_create: %s", strerror(errno));
    fflush(stdout);
    int status = run_child(probe, work, arg, limit_ms, output_fd);
    ssize_t n = pread(output_fd, probe->output, OUTPUT_MAX - 1, 0);
    probe->output[n > 0 ? n : 0] = '\0';
    close(output_fd);
    return status;
}

void probe_free(struct probe *probe)
{
    free(probe->text);
    free(probe->output);
}
