/* SPDX-License-Identifier: BSD-3-Clause */
/* weft serve: one port for the clients of all tools. This process only listens and greets; it never
 * loads a fabric, so it may fork. Each client that has greeted gets a process of its own, which is
 * an ordinary server of that tool with an ordinary server's bounds. */
#include "core/child.h"
#include "core/clock.h"
#include "report/report.h"
#include "tool/access.h"
#include "tool/local.h"
#include "tool/shell.h"
#include "tool/weft.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CLIENTS_MOST = 1024, STOP_MS = 3000, TOOL_NAME = 64 };

struct serve_options {
    uint64_t port, clients, timeout_s;
    char bind[256], device[FABRIC_DEVICE_MAX];
    struct access access;
    struct bounds most;
    bool help;
};

#define FIELD(member) .field = offsetof(struct serve_options, member)

/* clang-format off */
const struct opt serve_rows[] = {
    {.letter = 'p', .name = "port", .type = OPT_NUMBER, FIELD(port), .max = 65535,
     .fallback = "49194", .word = "PORT", .takes = 1,
     .help = "The port to listen on (default: {default})"},
    {.letter = 'd', .name = "device", .type = OPT_TEXT, FIELD(device), .max = FABRIC_DEVICE_MAX,
     .word = "DEV", .takes = 1,
     .help = "Serve this device only, such as cxi0 or ofi:tcp"},
    {.name = "max-clients", .type = OPT_NUMBER, FIELD(clients), .min = 1, .max = CLIENTS_MOST,
     .fallback = "8", .word = "N", .takes = 1,
     .help = "Refuse further clients while so many are served\n(default: {default})"},
    {.name = "bind", .type = OPT_TEXT, FIELD(bind), .max = 256, .word = "ADDR", .takes = 1,
     .help = "Listen on this address only"},
    {.name = "timeout", .type = OPT_NUMBER, FIELD(timeout_s), .min = 1, .max = 86400,
     .word = "SEC", .takes = 1,
     .help = "The longest --timeout that a client may ask for"},
    ACCESS_ROWS(offsetof(struct serve_options, access), 1),
    BOUNDS_ROWS(offsetof(struct serve_options, most), 1),
    {.letter = 'h', .name = "help", .type = OPT_FLAG, FIELD(help), .takes = 1,
     .help = "Print this help"},
    {0}};
/* clang-format on */
OPT_FITS(serve_rows);

struct serving {
    struct serve_options options;
    struct listener *listener;
    unsigned count;
    pid_t children[CLIENTS_MOST];
};

/* ---- the processes of clients ---- */

/* Asked while it waits for clients: those that have ended are reaped. */
static int reap(void *arg)
{
    struct serving *s = arg;
    for (unsigned i = 0; i < s->count;) {
        int how = 0;
        pid_t seen = waitpid(s->children[i], &how, WNOHANG);
        if (!seen) {
            i++;
            continue;
        }
        if (seen > 0 && WIFSIGNALED(how))
            warn("a client's process (%d) was killed by signal %d", (int)seen, WTERMSIG(how));
        s->children[i] = s->children[--s->count];
    }
    return 0;
}

static void end_all(struct serving *s)
{
    uint64_t until_ms = clock_ms() + STOP_MS;
    for (unsigned i = 0; i < s->count; i++) {
        kill(s->children[i], SIGTERM);
        kill(s->children[i], SIGCONT);
    }
    for (unsigned i = 0; i < s->count; i++) {
        uint64_t now_ms = clock_ms();
        if (child_wait(s->children[i], until_ms > now_ms ? until_ms - now_ms : 1) != -1)
            continue;
        kill(s->children[i], SIGKILL);
        child_wait(s->children[i], CHILD_KILLED_MS);
    }
    s->count = 0;
}

/* The command line of an ordinary server of this tool. The port says that it is one; nothing
 * listens there. */
static void server_arguments(struct arguments *a, const struct serve_options *o, char *tool)
{
    arguments_begin(a);
    a->list[0] = tool;
    argument(a, "--port", "%" PRIu64, o->port ? o->port : 1);
    if (*o->device)
        argument(a, "--device", "%s", o->device);
    if (o->timeout_s)
        argument(a, "--timeout", "%" PRIu64, o->timeout_s);
    if (o->most.memory)
        argument(a, "--max-memory", "%" PRIu64, o->most.memory);
    if (o->most.session_ms)
        argument(a, "--max-session", "%" PRIu64, o->most.session_ms / 1000);
}

/* In the child. What a server prints on standard output nobody could read: several write at once.
 */
static void become_server(struct serving *s, struct peer *peer, const struct msg *greeting,
                          char *tool, pid_t parent)
{
    static struct arguments arguments;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (null < 0 || dup2(null, STDOUT_FILENO) < 0)
        _exit(1);
    close(null);
    tcp_close(s->listener);
    unsetenv("WEFT_SECRET"); /* it was shown, or not, already */
    peer->watch = (struct peer_watch){0};
    server_arguments(&arguments, &s->options, tool);
    serve_hand(peer, greeting);
    exit(tool_main(tool, arguments.n, arguments.list));
}

/* ---- clients ---- */

/* Which tool the client is, or why it is not served. */
static int judge(const struct serving *s, const struct msg *greeting, char tool[TOOL_NAME])
{
    char pairs[24];
    if (s->count >= s->options.clients)
        return fail(-EBUSY, "the server has %u clients already, and takes no more: try again later",
                    s->count);
    int status = msg_value(greeting, ".tool", tool, TOOL_NAME);
    if (status)
        return status == -ENOENT ? fail(-EPROTO, "a greeting that does not name its tool") : status;
    if (!tool_serves(tool))
        return fail(-EPROTO, "the client is %.40s, which weft serve does not know", tool);
    if (msg_value(greeting, ".procs", pairs, sizeof pairs) != -ENOENT)
        return fail(-ENOTSUP,
                    "weft serve takes one pair per client: start %s itself as the server of "
                    "several",
                    tool);
    return 0;
}

static int start(struct serving *s, struct peer *peer, const struct msg *greeting, char *tool)
{
    pid_t parent = getpid(), child = fork();
    if (child == 0)
        become_server(s, peer, greeting, tool, parent);
    if (child < 0)
        return fail(-errno, "no process for another client: %s", strerror(errno));
    s->children[s->count++] = child;
    return 0;
}

static void take(struct serving *s, struct peer *peer, const struct msg *greeting)
{
    char tool[TOOL_NAME];
    reap(s);
    int status = judge(s, greeting, tool);
    if (!status)
        status = start(s, peer, greeting, tool);
    if (status) {
        peer_end(peer, status, fail_reason());
        tcp_warn(s->listener, "refused a client", fail_reason());
    }
    peer_close(peer);
}

static int serve_all(struct serving *s)
{
    const struct serve_options *o = &s->options;
    const struct service service = {
        .bind = o->bind, .access = &o->access, .device = o->device, .port = (unsigned)o->port};
    struct peer_terms terms = {.timeout_ms = o->timeout_s ? o->timeout_s * 1000 : 10000,
                               .stop = &shell_stop,
                               .watch = {reap, s}};
    struct msg greeting;
    struct peer *peer;
    access_terms(&o->access, &terms);
    int status = serve_listen(&service, &terms, &s->listener);
    if (status)
        return status;
    status = serve_say_port(s->listener);
    while (!status && !(status = tcp_accept(s->listener, &terms, &peer, &greeting)))
        take(s, peer, &greeting);
    tcp_close(s->listener);
    end_all(s);
    return status;
}

/* A bare device is a CXI device, which can be looked for without loading a fabric; the rest shows
 * when a client comes. */
static int check_device(const char *device)
{
    struct fabric_choice choice;
    return !*device || fabric_named(device) ? 0 : fabric_choose(device, &choice);
}

int serve_command(const struct command *command, int argc, char **argv)
{
    static struct serving serving;
    struct serve_options *o = &serving.options;
    struct opt_set set = {.rows = serve_rows, .base = o};
    const struct role role = {.port = 1, .server_cpu = -1};
    const char *places[argc];
    int given, status = weft_parse_rows(command, argc, argv, &set, &o->help, places, &given);
    if (status)
        return status < 0 ? status : 0;
    if (given)
        return fail(-EINVAL, "unexpected argument \"%s\" (--help shows the usage)", places[0]);
    status = check_device(o->device);
    if (!status)
        status = access_open(&o->access, &set, &role);
    if (status)
        return status;
    shell_catch_signals();
    return serve_all(&serving);
}
