/* SPDX-License-Identifier: BSD-3-Clause */
/* From argv to an exit status: the only place that prints sentences and chooses exit codes. */
#include "tool/tool.h"
#include "tool/local.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef WEFT_VERSION
#define WEFT_VERSION "unknown"
#endif

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_WRONG = 2, EXIT_NO_PEER = 4, EXIT_SIGNAL = 128 };

/* The signal that asked us to stop, or 0. */
static volatile sig_atomic_t stop_signal;
static const char *program = "weft";

/* One run of the tool: argv, and what became of it. */
struct session {
    const struct tool *tool;
    struct plan plan;
    struct opt_set set;
    struct fabric_choice fabric;
    struct local local;
};

static void say(const char *sentence)
{
    fflush(stdout);
    fprintf(stderr, "%s: %s\n", program, sentence);
}

static int exit_code(int status)
{
    switch (status) {
    case 0:
        return EXIT_DONE;
    case -EINVAL:
        return EXIT_WRONG;
    case -EINTR:
        return EXIT_SIGNAL + (stop_signal ? stop_signal : SIGINT);
    case -ETIMEDOUT:
    case -ECONNREFUSED:
    case -ECONNRESET:
        return EXIT_NO_PEER;
    default:
        return EXIT_FAILED;
    }
}

/* ---- signals ---- */

static void on_signal(int number)
{
    stop_signal = number;
}

/* What the parent wants ignored stays ignored. A second signal changes nothing: timeout(1) sends
 * two, and every wait ends by itself. */
static void catch_signals(void)
{
    static const int signals[] = {SIGINT, SIGTERM};
    for (size_t i = 0; i < LENGTH(signals); i++) {
        struct sigaction was;
        struct sigaction mine = {.sa_handler = on_signal};
        if (!sigaction(signals[i], NULL, &was) && was.sa_handler != SIG_IGN)
            sigaction(signals[i], &mine, NULL);
    }
}

/* ---- help ---- */

static int print_help(const struct session *s)
{
    struct blob text;
    int status = blob_print(&text,
                            "Usage:\n"
                            "  %s [-d DEV] [-p PORT]\n"
                            "                          Start a server and wait for connection\n"
                            "  %s ADDR [OPTIONS]\n"
                            "                          Connect to server with address ADDR\n"
                            "\n"
                            "Options:\n",
                            program, program);
    if (!status)
        status = opt_help(&s->set, &s->tool->op->help, 0, &text);
    if (!status && s->tool->help_end)
        status = blob_add(&text, "%s", s->tool->help_end);
    if (!status)
        status = blob_add(&text, "\nWeft options:\n");
    if (!status)
        status = opt_help(&s->set, &s->tool->op->help, OPT_OURS, &text);
    if (!status && (fputs(text.bytes, stdout) < 0 || fflush(stdout)))
        status = fail(-EIO, "writing the help text: %s", strerror(errno));
    return status;
}

/* ---- agreeing on a run ---- */

static int run_with(struct session *s, struct peer *peer, const char *nonce)
{
    struct report_table table;
    report_table_open(&table, stdout);
    struct bench_wish wish = {.title = s->tool->title,
                              .plan = &s->plan,
                              .set = &s->set,
                              .op = s->tool->op,
                              .method = s->tool->method,
                              .fabric = &s->fabric,
                              .nonce = nonce,
                              .peer = peer,
                              .report = &table.report};
    return bench_run(&wish);
}

static int greet(struct session *s, struct peer *peer, const char *nonce)
{
    struct blob greeting, answer;
    int status = blob_print(&greeting, ".tool=%s\n.fabric=%s\n.at=%s\n.nonce=%s\n", s->tool->name,
                            s->fabric.ops->name, s->plan.device, nonce);
    if (!status)
        status = opt_encode(&s->set, &greeting);
    if (!status)
        status = peer_swap(peer, &greeting, &answer);
    if (status == -ETIMEDOUT)
        status = fail(status,
                      "the server took the connection but did not answer within %" PRIu64
                      " s: busy with another client, or no Weft server",
                      s->plan.timeout_s);
    if (!status && strcmp(answer.bytes, "yes=1\n") != 0)
        status = fail(-EPROTO, "the server's answer cannot be read");
    return status;
}

static int client(struct session *s, const char *address, unsigned port)
{
    struct peer_terms terms = {.timeout_ms = s->plan.timeout_s * 1000, .stop = &stop_signal};
    char nonce[33];
    struct peer *peer;
    int status = random_digits(nonce, sizeof nonce);
    if (!status)
        status = tcp_dial(&peer, address, port, s->plan.wait_s * 1000, &terms);
    if (status)
        return status;
    status = greet(s, peer, nonce);
    if (!status)
        status = run_with(s, peer, nonce);
    peer_close(peer);
    return status;
}

static void overridden(const struct opt *row, const char *was, const char *now)
{
    if (row->type == OPT_FLAG)
        warn("--%s is the client's to say, and it %s", row->name,
             *now == '1' ? "gave it" : "did not");
    else
        warn("--%s %s is the client's to say: %s", row->name, was, *now ? now : "not given");
}

/* Which fabric carries it: the client says; a server that named another refuses. */
static int agree_fabric(struct session *s, const struct blob *greeting)
{
    char fabric[32], device[FABRIC_DEVICE_MAX];
    int status = blob_value(greeting, ".fabric", fabric, sizeof fabric);
    if (!status)
        status = blob_value(greeting, ".at", device, sizeof device);
    if (status)
        return status == -ENOENT ? fail(-EPROTO, "a greeting without a fabric") : status;
    if (strcmp(fabric, s->fabric.ops->name) == 0)
        return 0;
    const struct opt *row = opt_find(&s->set, "device");
    if (opt_origin(&s->set, row) != OPT_BY_DEFAULT)
        return fail(-ENODEV,
                    "the client's fabric is %s, the server's is %s: give both the same "
                    "--device",
                    fabric, s->fabric.ops->name);
    status = fabric_choose(device, &s->fabric);
    struct fabric_facts facts;
    if (!status && strcmp(fabric, s->fabric.ops->name) != 0)
        status = fail(-EPROTO, "fabric \"%s\" does not have %s", fabric, device);
    if (!status)
        status = fabric_try(&s->fabric, s->plan.service, &facts);
    return status ? status : opt_assign(&s->set, row, device, OPT_BY_PEER);
}

/* Takes over what the client asks for, or says why not. */
static int agree(struct session *s, const struct blob *greeting, char *nonce, size_t room)
{
    char name[64];
    int status = blob_value(greeting, ".tool", name, sizeof name);
    if (!status)
        status = blob_value(greeting, ".nonce", nonce, room);
    if (status)
        return status == -ENOENT ? fail(-EPROTO, "a greeting that does not say who calls") : status;
    if (strcmp(name, s->tool->name) != 0)
        return fail(-EPROTO, "the client is %.40s, the server is %s", name, s->tool->name);
    status = agree_fabric(s, greeting);
    if (!status)
        status = opt_decode(&s->set, greeting, overridden);
    return status ? status : plan_check(&s->plan, &s->set);
}

/* One client. -EAGAIN: it was refused, and the server still waits for one it can serve. */
static int serve_one(struct session *s, struct listener **listener)
{
    struct peer_terms terms = {.timeout_ms = s->plan.timeout_s * 1000, .stop = &stop_signal};
    struct blob greeting, answer;
    char nonce[65];
    struct peer *peer;
    int status = tcp_accept(*listener, &terms, &peer, &greeting);
    if (status)
        return status;
    status = agree(s, &greeting, nonce, sizeof nonce);
    if (status) {
        warn("refused a client: %s", fail_reason());
        peer_end(peer, status, fail_reason());
        peer_close(peer);
        return -EAGAIN;
    }
    if (!s->plan.loop) {
        tcp_close(*listener);
        *listener = NULL;
    }
    peer->timeout_ms = s->plan.timeout_s * 1000;
    status = blob_print(&answer, "yes=1\n");
    if (!status)
        status = peer_tell(peer, &answer);
    if (!status)
        status = run_with(s, peer, nonce);
    peer_close(peer);
    return status;
}

static int server(struct session *s)
{
    struct session own = *s;
    struct listener *listener;
    int status = tcp_listen(&listener, s->plan.bind, (unsigned)s->plan.port);
    if (status)
        return status;
    do {
        printf("Listening on port %u for client to connect...\n", tcp_port(listener));
        if (fflush(stdout) || ferror(stdout)) {
            status = fail(-EIO, "writing to standard output: %s", strerror(errno));
            break;
        }
        do {
            *s = own;
            s->set.base = &s->plan;
            status = serve_one(s, &listener);
        } while (status == -EAGAIN);
        if (status && own.plan.loop && status != -EINTR)
            say(fail_reason());
    } while (own.plan.loop && status != -EINTR);
    tcp_close(listener);
    return status;
}

static int both(struct session *s)
{
    const struct opt *row = opt_find(&s->set, "port");
    unsigned port = 0;
    int status = local_start(&s->local, program, &s->plan, opt_origin(&s->set, row) == OPT_BY_USER,
                             &stop_signal, &port);
    if (!status)
        status = client(s, *s->plan.bind ? s->plan.bind : "127.0.0.1", port);
    int code = status;
    char why[1024];
    snprintf(why, sizeof why, "%s", fail_reason());
    local_stop(&s->local);
    return fail(code, "%s", why);
}

/* ---- main ---- */

/* A server that died without a word to us has said it on its standard error. */
static int report_failure(struct session *s, int status)
{
    char text[2048];
    bool untold = status == -ECHILD || status == -ECONNRESET;
    if (s->plan.local && untold && *local_errors(&s->local, text, sizeof text)) {
        fputs(text, stderr);
        if (status == -ECHILD && s->local.code)
            return s->local.code;
    } else {
        say(fail_reason());
    }
    return exit_code(status);
}

static int prepare(struct session *s, int argc, char **argv)
{
    int given;
    opt_defaults(&s->set);
    int status = opt_parse(&s->set, argc - 1, argv + 1, &s->plan.address, 1, &given);
    if (status || s->plan.help || s->plan.version)
        return status;
    status = plan_check(&s->plan, &s->set);
    if (!status)
        status = fabric_choose(s->plan.device, &s->fabric);
    /* What cannot be had here is said before anybody is kept waiting. */
    struct fabric_facts facts;
    if (!status)
        status = fabric_try(&s->fabric, s->plan.service, &facts);
    return status ? status : bench_can(&s->plan, s->tool->op, s->fabric.ops, &facts);
}

/* Were one of the three closed, the next socket would take its place, and our output its way. */
static void keep_standard(void)
{
    int fd;
    do
        fd = open("/dev/null", O_RDONLY);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

int tool_main(const struct tool *tool, int argc, char **argv)
{
    static struct session session;
    struct session *s = &session;
    s->tool = tool;
    s->set = (struct opt_set){.rows = tool->rows, .takes = tool->takes, .base = &s->plan};
    s->local = (struct local){.out = -1, .errors = -1};
    if (argc > 0)
        program = basename(argv[0]);
    warn_to(say);
    keep_standard();
    int status = prepare(s, argc, argv);
    if (!status && s->plan.help) {
        status = print_help(s);
    } else if (!status && s->plan.version) {
        printf("%s (Weft) %s\n", program, WEFT_VERSION);
        if (fflush(stdout))
            status = fail(-EIO, "writing the version: %s", strerror(errno));
    } else if (!status) {
        catch_signals();
        if (s->plan.cpu[0] >= 0 && !s->plan.local)
            status = cpu_pin(s->plan.cpu[0]);
        if (!status)
            status = s->plan.local     ? both(s)
                     : s->plan.address ? client(s, s->plan.address, (unsigned)s->plan.port)
                                       : server(s);
    }
    return status ? report_failure(s, status) : EXIT_DONE;
}
