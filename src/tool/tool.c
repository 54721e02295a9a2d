/* SPDX-License-Identifier: BSD-3-Clause */
/* The CXI tools, from argv to an exit status. */
#include "tool/tool.h"
#include "core/opt.h"
#include "fabric/choose.h"
#include "tool/local.h"
#include "tool/output.h"
#include "tool/serve.h"
#include "tool/shell.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* One run of the tool: argv, and what became of it. */
struct session {
    const struct tool *tool;
    struct plan plan;
    struct opt_set set;
    struct fabric_choice fabric;
    const char *why; /* this fabric, where nobody named one; or "" */
    char nonce[65];
    struct local local;
    struct output output; /* a client's */
    struct {              /* a server's, before a client said anything */
        struct plan plan;
        struct fabric_choice fabric;
        uint8_t origin[OPT_MAX];
    } own;
};

/* ---- help ---- */

static int print_help(const struct session *s)
{
    struct msg text;
    int status = msg_print(&text,
                           "Usage:\n"
                           "  %s [-d DEV] [-p PORT]\n"
                           "                          Start a server and wait for connection\n"
                           "  %s ADDR [OPTIONS]\n"
                           "                          Connect to server with address ADDR\n"
                           "\n"
                           "Options:\n",
                           shell_program, shell_program);
    if (!status)
        status = opt_help(&s->set, &s->tool->op->help, 0, &text);
    if (!status && s->tool->help_end)
        status = msg_add(&text, "%s", s->tool->help_end);
    if (!status)
        status = msg_add(&text, "\nWeft options:\n");
    if (!status)
        status = opt_help(&s->set, &s->tool->op->help, OPT_OURS, &text);
    if (status)
        return status;
    fputs(text.bytes, stdout);
    return shell_flush("the help text");
}

/* ---- agreeing on a run ---- */

static int run_with(struct session *s, struct peer *peer, struct report *report)
{
    struct bench_request request = {.title = s->tool->title,
                                    .plan = &s->plan,
                                    .set = &s->set,
                                    .op = s->tool->op,
                                    .method = s->tool->method,
                                    .fabric = &s->fabric,
                                    .why = s->why ? s->why : "",
                                    .nonce = s->nonce,
                                    .peer = peer,
                                    .report = report};
    return bench_run(&request);
}

/* ---- GPUs ---- */

/* What this end says of its buffer, if that is on a GPU. */
static int say_gpu(const struct session *s, int rank, struct msg *text)
{
    enum memory_vendor vendor = s->plan.vendors[rank];
    if (vendor == MEMORY_CPU)
        return 0;
    return msg_add(text, ".gpu=%" PRId64 "\n.vendor=%s\n", plan_gpu(&s->plan, rank),
                   memory_vendors[vendor - 1]);
}

/* And what the other end says. */
static int hear_gpu(struct session *s, int rank, const struct msg *text)
{
    uint64_t device;
    char vendor[16];
    s->plan.vendors[rank] = MEMORY_CPU;
    if (rank == PEER_SERVER)
        s->plan.rx_gpu = -1;
    int status = msg_value(text, ".vendor", vendor, sizeof vendor);
    if (status == -ENOENT)
        return 0;
    if (status || msg_number(text, ".gpu", &device) || device > INT32_MAX)
        return fail(-EPROTO, "the other end's GPU cannot be read");
    for (int i = 0; memory_vendors[i]; i++)
        if (strcmp(memory_vendors[i], vendor) == 0)
            s->plan.vendors[rank] = (enum memory_vendor)(i + 1);
    if (s->plan.vendors[rank] == MEMORY_CPU)
        return fail(-EPROTO, "the other end's GPU is of an unknown vendor");
    if (rank == PEER_CLIENT)
        return 0;
    char number[24];
    snprintf(number, sizeof number, "%" PRIu64, device);
    return opt_assign(&s->set, opt_find(&s->set, "rx-gpu"), number, OPT_BY_PEER);
}

static int find_gpu(struct session *s)
{
    bool server = !s->plan.address && !s->plan.local;
    unsigned client_count = 0, count = 0;
    int status = server ? 0 : plan_find_gpu(&s->plan, PEER_CLIENT, &client_count);
    if (!status && !s->plan.address)
        status = plan_find_gpu(&s->plan, PEER_SERVER, &count);
    count = count ? count : client_count;
    if (!status && count)
        warn("Found %u GPU(s)", count);
    if (s->plan.address && s->plan.rx_gpu >= 0)
        warn("--rx-gpu is the server's to say: it has no effect here");
    return status;
}

/* ---- choosing a fabric ---- */

/* Where nobody named a fabric, both ends decide alike. */
static const char any_fabric[] = "any";

/* Loads it if need be, and tries it: a vendor's library can take seconds, so with signs of life. */
static int choose_watched(struct session *s, struct peer *peer, const char *device,
                          struct fabric_facts *facts)
{
    struct keepalive keepalive;
    keepalive_begin(&keepalive, peer, KEEPALIVE_LIBRARY_MS);
    int status = fabric_choose(device, &s->fabric);
    if (!status)
        status = fabric_try(&s->fabric, s->plan.service, plan_gpus(&s->plan), facts);
    keepalive_end(&keepalive);
    return status;
}

static int decide(struct session *s, struct peer *peer, const struct msg *mine,
                  const struct msg *theirs)
{
    char device[FABRIC_DEVICE_MAX];
    struct fabric_facts facts;
    int status = fabric_between(mine, theirs, s->plan.device, device, sizeof device, &s->why);
    if (!status)
        status = choose_watched(s, peer, device, &facts);
    return status ? status : bench_can(&s->plan, s->tool->op, s->fabric.ops, &facts);
}

static int client(struct session *s, const char *address, unsigned port)
{
    struct visit visit = {.address = address,
                          .port = port,
                          .wait_ms = s->plan.local ? LOCAL_WAIT_MS : s->plan.wait_s * 1000,
                          .timeout_ms = s->plan.timeout_s * 1000};
    struct msg greeting, answer, mine = {0};
    struct peer *peer;
    int status = random_digits(s->nonce, sizeof s->nonce);
    if (!status)
        status =
            msg_print(&greeting, ".tool=%s\n.fabric=%s\n.at=%s\n.nonce=%s\n", s->tool->name,
                      s->fabric.named ? s->fabric.ops->name : any_fabric, s->plan.device, s->nonce);
    if (!status)
        status = fabric_describe(s->plan.device, &mine);
    if (!status)
        status = msg_add(&greeting, "%s", mine.bytes);
    if (!status)
        status = say_gpu(s, PEER_CLIENT, &greeting);
    if (!status)
        status = opt_encode(&s->set, &greeting);
    if (!status)
        status = visit_server(&visit, &greeting, &answer, &peer);
    if (status)
        return status;
    status = hear_gpu(s, PEER_SERVER, &answer);
    if (!status && !s->fabric.named)
        status = decide(s, peer, &mine, &answer);
    if (status)
        peer_end(peer, status, fail_reason());
    else
        status = run_with(s, peer, &s->output.report);
    peer_close(peer);
    return status;
}

/* Which fabric carries it: the client says; a server that named another refuses. */
static int agree_fabric(struct session *s, struct peer *peer, const struct msg *greeting,
                        struct msg *answer)
{
    char fabric[32], device[FABRIC_DEVICE_MAX];
    struct msg mine = {0};
    int status = msg_value(greeting, ".fabric", fabric, sizeof fabric);
    if (!status)
        status = msg_value(greeting, ".at", device, sizeof device);
    if (status)
        return status == -ENOENT ? fail(-EPROTO, "a greeting without a fabric") : status;
    if (strcmp(fabric, any_fabric) == 0 && !s->fabric.named) {
        status = fabric_describe(s->plan.device, &mine);
        if (!status)
            status = msg_add(answer, "%s", mine.bytes);
        return status ? status : decide(s, peer, &mine, greeting);
    }
    if (strcmp(fabric, any_fabric) == 0)
        snprintf(fabric, sizeof fabric, "soft");
    if (strcmp(fabric, s->fabric.ops->name) == 0)
        return 0;
    const struct opt *row = opt_find(&s->set, "device");
    if (opt_origin(&s->set, row) != OPT_BY_DEFAULT)
        return fail(-ENODEV,
                    "the client's fabric is %s, the server's is %s: give both the same "
                    "--device",
                    fabric, s->fabric.ops->name);
    struct fabric_facts facts;
    status = choose_watched(s, peer, device, &facts);
    if (!status && strcmp(fabric, s->fabric.ops->name) != 0)
        status = fail(-EPROTO, "fabric \"%s\" does not have %s", fabric, device);
    return status ? status : opt_assign(&s->set, row, device, OPT_BY_PEER);
}

/* Takes over what the client asks for, or says why not. */
static int agree(void *arg, struct peer *peer, const struct msg *greeting, struct msg *answer)
{
    struct session *s = arg;
    char name[64];
    /* What the last client said is forgotten. */
    s->plan = s->own.plan;
    s->fabric = s->own.fabric;
    memcpy(s->set.origin, s->own.origin, sizeof s->set.origin);
    int status = msg_value(greeting, ".tool", name, sizeof name);
    if (!status && strcmp(name, s->tool->name) != 0)
        return fail(-EPROTO, "the client is %.40s, the server is %s", name, s->tool->name);
    if (!status)
        status = msg_value(greeting, ".nonce", s->nonce, sizeof s->nonce);
    if (status)
        return status == -ENOENT ? fail(-EPROTO, "a greeting that does not say who calls") : status;
    status = hear_gpu(s, PEER_CLIENT, greeting);
    if (!status)
        status = agree_fabric(s, peer, greeting, answer);
    if (!status)
        status = say_gpu(s, PEER_SERVER, answer);
    if (!status)
        status = opt_decode(&s->set, greeting, shell_overridden);
    if (!status)
        status = plan_check(&s->plan, &s->set);
    peer->timeout_ms = s->plan.timeout_s * 1000;
    return status;
}

static int serve(void *arg, struct peer *peer)
{
    struct report_table table;
    report_table_open(&table, stdout, NULL);
    return run_with(arg, peer, &table.report);
}

static int server(struct session *s)
{
    struct service service = {.bind = s->own.plan.bind,
                              .port = (unsigned)s->plan.port,
                              .loop = s->plan.loop,
                              .timeout_ms = s->plan.timeout_s * 1000,
                              .arg = s,
                              .agree = agree,
                              .serve = serve};
    s->own.plan = s->plan;
    s->own.fabric = s->fabric;
    memcpy(s->own.origin, s->set.origin, sizeof s->own.origin);
    return serve_clients(&service);
}

/* What is the server's own; the rest it hears from the client. */
static void server_arguments(struct arguments *a, const struct plan *plan, bool port_given,
                             int64_t cpu)
{
    arguments_begin(a);
    argument(a, "--port", "%" PRIu64, port_given ? plan->port : 0);
    argument(a, "--bind", "%s", *plan->bind ? plan->bind : "127.0.0.1");
    argument(a, "--device", "%s", plan->device);
    argument(a, "--svc-id", "%" PRIu64, plan->service);
    argument(a, "--timeout", "%" PRIu64, plan->timeout_s);
    if (cpu >= 0)
        argument(a, "--cpu", "%" PRId64, cpu);
    if (plan->rx_gpu >= 0)
        argument(a, "--rx-gpu", "%" PRId64, plan->rx_gpu);
    if (plan->rx_gpu >= 0 && plan->gpu_type)
        argument(a, "--gpu-type", "%s", memory_vendors[plan->gpu_type - 1]);
}

static int both(struct session *s)
{
    const struct opt *row = opt_find(&s->set, "port");
    struct arguments arguments;
    unsigned port = 0;
    int64_t cpu;
    int status = local_place(s->plan.cpu, &cpu);
    if (!status) {
        server_arguments(&arguments, &s->plan, opt_origin(&s->set, row) == OPT_BY_USER, cpu);
        status = local_start(&s->local, &arguments, &port);
    }
    if (!status)
        status = client(s, *s->plan.bind ? s->plan.bind : "127.0.0.1", port);
    char why[1024];
    snprintf(why, sizeof why, "%s", fail_reason());
    local_stop(&s->local);
    return fail(status, "%s", why);
}

/* ---- main ---- */

/* A client's requests for its results; a server has none. */
static int prepare_output(struct session *s, int argc, char **argv)
{
    struct output_author author = {
        .tool = s->tool->name, .argc = argc, .argv = argv, .set = &s->set};
    if (!s->plan.address && !s->plan.local)
        return output_bar(&s->plan.output);
    return output_open(&s->output, &s->plan.output, &author);
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
    if (!status)
        status = find_gpu(s);
    if (!status)
        status = prepare_output(s, argc, argv);
    /* What cannot be had here is said before anybody is kept waiting. A real device is looked at
     * once the other end is known. */
    struct fabric_facts facts;
    if (!status && !s->fabric.named && fabric_real_cxi(s->plan.device))
        return 0;
    if (!status)
        status = fabric_try(&s->fabric, s->plan.service, plan_gpus(&s->plan), &facts);
    return status ? status : bench_can(&s->plan, s->tool->op, s->fabric.ops, &facts);
}

int tool_main(const struct tool *tool, int argc, char **argv)
{
    static struct session session;
    struct session *s = &session;
    s->tool = tool;
    s->set = (struct opt_set){.rows = tool->rows, .takes = tool->takes, .base = &s->plan};
    s->local = (struct local){.out = -1, .errors = -1};
    shell_open(argc, argv);
    int status = prepare(s, argc, argv);
    if (!status && s->plan.help) {
        status = print_help(s);
    } else if (!status && s->plan.version) {
        printf("%s (Weft) %s\n", shell_program, weft_version());
        status = shell_flush("the version");
    } else if (!status) {
        shell_catch_signals();
        if (s->plan.cpu[0] >= 0 && !s->plan.local)
            status = cpu_pin(s->plan.cpu[0]);
        if (!status)
            status = s->plan.local     ? both(s)
                     : s->plan.address ? client(s, s->plan.address, (unsigned)s->plan.port)
                                       : server(s);
    }
    int code = status ? local_failure(s->plan.local ? &s->local : NULL, status) : EXIT_DONE;
    return output_close(&s->output, code, fail_reason());
}
