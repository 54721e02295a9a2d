/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs a command without its stdout and prints the most memory it had resident, in KiB, once.
 * A caller that is large cannot ask itself: Linux counts what a process was before its exec, so
 * everything that Python starts has had at least as much as Python. This caller is small. The
 * figure is the largest of the command and of the children it waited for, not their sum. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void run(char **argv, pid_t parent)
{
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (nowhere < 0 || dup2(nowhere, STDOUT_FILENO) < 0)
        _exit(127);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
        _exit(127);
    execvp(argv[0], argv);
    fprintf(stderr, "peak: %s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

int main(int argc, char **argv)
{
    int status;
    struct rusage used;
    if (argc < 2) {
        fputs("usage: peak COMMAND [ARGUMENT...]\n", stderr);
        return 2;
    }
    pid_t parent = getpid(), child = fork();
    if (child == 0)
        run(argv + 1, parent);
    if (child < 0 || wait4(child, &status, 0, &used) < 0) {
        fprintf(stderr, "peak: %s\n", strerror(errno));
        return 1;
    }
    printf("%ld KiB\n", used.ru_maxrss);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
