/* SPDX-License-Identifier: BSD-3-Clause */
/* --local: the same program as a second process. It is started by exec, before anything is opened,
 * and dies with this one. */
#include "tool/local.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LISTEN_MS = 10000, STOP_MS = 2000, ARGUMENTS = 16 };

struct arguments {
    char *list[ARGUMENTS + 1]; /* as exec wants them: it does not write to them */
    int n;
    char port[8], cpu[24], service[24], timeout[24], gpu[24];
};

static void argument(struct arguments *a, const char *name, const char *value)
{
    if (a->n + 2 > ARGUMENTS)
        return;
    a->list[a->n++] = (char *)name;
    a->list[a->n++] = (char *)value;
}

/* What is the server's own; the rest it hears from the client. */
static void make_arguments(struct arguments *a, const char *program, const struct plan *plan,
                           unsigned port, int64_t cpu)
{
    *a = (struct arguments){.list = {(char *)program}, .n = 1};
    snprintf(a->port, sizeof a->port, "%u", port);
    snprintf(a->service, sizeof a->service, "%" PRIu64, plan->service);
    snprintf(a->timeout, sizeof a->timeout, "%" PRIu64, plan->timeout_s);
    snprintf(a->cpu, sizeof a->cpu, "%" PRId64, cpu);
    snprintf(a->gpu, sizeof a->gpu, "%" PRId64, plan->rx_gpu);
    argument(a, "--port", a->port);
    argument(a, "--bind", *plan->bind ? plan->bind : "127.0.0.1");
    argument(a, "--device", plan->device);
    argument(a, "--svc-id", a->service);
    argument(a, "--timeout", a->timeout);
    if (cpu >= 0)
        argument(a, "--cpu", a->cpu);
    if (plan->rx_gpu >= 0)
        argument(a, "--rx-gpu", a->gpu);
}

/* In the child. An interrupt from the terminal reaches the whole group: the client tells us. */
static void become_server(const struct arguments *a, int out, int errors, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    signal(SIGINT, SIG_IGN);
    dup2(out, STDOUT_FILENO);
    dup2(errors, STDERR_FILENO);
    execv("/proc/self/exe", a->list);
    _exit(127);
}

/* The port from the Listening line. */
static int read_port(struct local *local, const volatile sig_atomic_t *stop, unsigned *port)
{
    char line[256];
    size_t have = 0;
    uint64_t until_ms = clock_ms() + LISTEN_MS;
    while (have + 1 < sizeof line && clock_ms() < until_ms && !*stop) {
        struct pollfd data = {.fd = local->out, .events = POLLIN};
        if (poll(&data, 1, 100) <= 0)
            continue;
        ssize_t n = read(local->out, line + have, 1);
        if (n <= 0)
            return fail(-ECHILD, "--local: the server did not start");
        if (line[have++] == '\n') {
            line[have] = '\0';
            return sscanf(line, "Listening on port %u", port) == 1
                       ? 0
                       : fail(-ECHILD, "--local: the server did not say where it listens");
        }
    }
    return *stop ? fail(-EINTR, "interrupted")
                 : fail(-ETIMEDOUT, "--local: the server did not listen within %d s",
                        LISTEN_MS / 1000);
}

/* The client is placed by --cpu or on one of a pair; the server on the other. */
static int place(const struct plan *plan, int64_t *server)
{
    int64_t pair[2] = {-1, -1};
    int count = cpu_pair(pair);
    int64_t client = plan->cpu[0] >= 0 ? plan->cpu[0] : pair[0];
    *server = plan->cpu[1] >= 0 ? plan->cpu[1] : client == pair[1] ? pair[0] : pair[1];
    if (count < 1 || client < 0)
        return 0;
    return cpu_pin(client);
}

int local_start(struct local *local, const char *program, const struct plan *plan, bool port_given,
                const volatile sig_atomic_t *stop, unsigned *port)
{
    struct arguments arguments;
    int pipes[2];
    int64_t cpu;
    *local = (struct local){.out = -1, .errors = -1};
    int status = place(plan, &cpu);
    if (status)
        return status;
    make_arguments(&arguments, program, plan, port_given ? (unsigned)plan->port : 0, cpu);
    local->errors = memfd_create("weft-server-errors", MFD_CLOEXEC);
    if (local->errors < 0 || pipe2(pipes, O_CLOEXEC))
        return fail(-errno, "--local: %s", strerror(errno));
    pid_t parent = getpid();
    local->pid = fork();
    if (local->pid == 0)
        become_server(&arguments, pipes[1], local->errors, parent);
    close(pipes[1]);
    local->out = pipes[0];
    if (local->pid < 0) {
        local->pid = 0;
        return fail(-errno, "--local: fork: %s", strerror(errno));
    }
    return read_port(local, stop, port);
}

void local_stop(struct local *local)
{
    uint64_t until_ms = clock_ms() + STOP_MS;
    int how = 0;
    if (local->out >= 0)
        close(local->out);
    local->out = -1;
    if (!local->pid)
        return;
    while (waitpid(local->pid, &how, WNOHANG) == 0) {
        if (clock_ms() > until_ms) {
            kill(local->pid, SIGKILL);
            waitpid(local->pid, &how, 0);
            break;
        }
        poll(NULL, 0, 1);
    }
    local->code = WIFEXITED(how) ? WEXITSTATUS(how) : 1;
    local->pid = 0;
}

const char *local_errors(struct local *local, char *text, size_t room)
{
    ssize_t n = local->errors >= 0 ? pread(local->errors, text, room - 1, 0) : 0;
    text[n > 0 ? n : 0] = '\0';
    return text;
}
