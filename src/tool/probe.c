/* SPDX-License-Identifier: BSD-3-Clause */
/* A child that may hang. It is killed when its time is over, and if even that does not help,
 * because it sleeps in a driver, it is left behind: nobody waits for it. */
#include "tool/probe.h"
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

enum { TEXT_MOST = 1 << 20, SAID_MOST = 4096 };

/* In the child. What is left open or allocated ends with it: handlers at exit may hang too. */
static void work_alone(void (*work)(const void *arg, FILE *out), const void *arg, int to, int said,
                       pid_t parent)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    dup2(said, STDOUT_FILENO);
    dup2(said, STDERR_FILENO);
    FILE *out = fdopen(to, "w");
    if (!out)
        _exit(1);
    /* By lines, so that what was written before a crash is there. */
    setvbuf(out, NULL, _IOLBF, BUFSIZ);
    work(arg, out);
    fflush(out);
    _exit(0);
}

/* Until the child closes its end: 0, or -ETIMEDOUT. What is too much is read and dropped. */
static int read_all(int from, char *text, uint64_t until_ms)
{
    size_t have = 0;
    for (;;) {
        char spare[4096];
        struct pollfd data = {.fd = from, .events = POLLIN};
        uint64_t now_ms = clock_ms();
        if (now_ms >= until_ms)
            return -ETIMEDOUT;
        if (poll(&data, 1, (int)(until_ms - now_ms)) <= 0)
            continue;
        size_t room = TEXT_MOST - 1 - have;
        ssize_t n = read(from, room ? text + have : spare, room ? room : sizeof spare);
        if (n <= 0)
            return 0;
        have += room ? (size_t)n : 0;
        text[have] = '\0';
    }
}

/* How it ended, within a moment; -1 if it does not. */
static int bury(pid_t child, bool dead)
{
    if (!dead)
        kill(-child, SIGKILL);
    int how = child_wait(child, CHILD_KILLED_MS);
    kill(-child, SIGKILL); /* itself, or what it may have started */
    return how;
}

static int run_child(struct probe *probe, void (*work)(const void *arg, FILE *out), const void *arg,
                     uint64_t limit_ms, int said)
{
    int pipes[2];
    if (pipe2(pipes, O_CLOEXEC))
        return fail(-errno, "pipe: %s", strerror(errno));
    uint64_t until_ms = clock_ms() + limit_ms;
    pid_t parent = getpid(), child = fork();
    if (child == 0)
        work_alone(work, arg, pipes[1], said, parent);
    int status = child < 0 ? fail(-errno, "fork: %s", strerror(errno)) : 0;
    close(pipes[1]);
    if (!status) {
        bool ended = read_all(pipes[0], probe->text, until_ms) == 0;
        int how = bury(child, ended);
        if (!ended)
            status = fail(-ETIMEDOUT, "no answer within %g s", (double)limit_ms / 1000);
        else if (how == -1)
            status = fail(-ECHILD, "it does not end");
        else if (WIFSIGNALED(how))
            status = fail(-ECHILD, "it crashed (%s)", strsignal(WTERMSIG(how)));
        else if (WEXITSTATUS(how))
            status = fail(-ECHILD, "it ended the process (exit code %d)", WEXITSTATUS(how));
    }
    close(pipes[0]);
    return status;
}

int probe_run(struct probe *probe, void (*work)(const void *arg, FILE *out), const void *arg,
              uint64_t limit_ms)
{
    *probe = (struct probe){.text = calloc(1, TEXT_MOST), .said = calloc(1, SAID_MOST)};
    if (!probe->text || !probe->said)
        return fail(-ENOMEM, "no memory to look with");
    int said = memfd_create("weft-said", MFD_CLOEXEC);
    if (said < 0)
        return fail(-errno, "memfd_create: %s", strerror(errno));
    fflush(stdout);
    int status = run_child(probe, work, arg, limit_ms, said);
    ssize_t n = pread(said, probe->said, SAID_MOST - 1, 0);
    probe->said[n > 0 ? n : 0] = '\0';
    close(said);
    return status;
}

void probe_free(struct probe *probe)
{
    free(probe->text);
    free(probe->said);
}
