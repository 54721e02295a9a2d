/* SPDX-License-Identifier: BSD-3-Clause */
/* The CXI tools, from argv to an exit status. */
#include "tool/cxi.h"
#include "core/cpu.h"
#include "tool/list.h"
#include "tool/local.h"
#include "tool/pairs.h"
#include "tool/progress.h"
#include "tool/ranks.h"
#include "tool/serve.h"
#include "tool/shell.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One run of the tool: argv, and what became of it. */
struct command {
    const struct cxi_tool *tool;
    const struct op *op;
    struct cxi_options options;
    struct opt_set set;
    struct offer offer;
    struct session session;
    struct local local;
    struct pairs pairs;
    struct ranks ranks;
    struct place place;
    char **argv;
    struct report_table table;
    struct output output; /* a client's */
    struct {              /* a server's, before a client said anything */
        struct cxi_options options;
        uint8_t origin[OPT_MAX];
    } own;
};

static struct command running;

/* ---- what this end brings ---- */

/* How many there are is in the header of a bandwidth tool, if the end that prints it uses one. */
static int find_gpus(struct command *c)
{
    const struct cxi_options *o = &c->options;
    bool server = !o->address && !o->local, lists = method_of(&o->spec)->lists;
    unsigned client_count = 0, count = 0;
    int status =
        server ? 0 : cxi_find_gpu(o, o->tx_gpu, c->offer.memory[PEER_CLIENT], &client_count);
    if (!status && !o->address)
        status = cxi_find_gpu(o, o->rx_gpu, c->offer.memory[PEER_SERVER], &count);
    if (lists)
        c->options.gpus = c->own.options.gpus =
            server || (c->tool->alone && count) ? count : client_count;
    else if (!status && (count || client_count))
        warn("Found %u GPU(s)", count ? count : client_count);
    return status;
}

static bool given(const struct command *c, const char *name)
{
    return opt_origin(&c->set, opt_find(&c->set, name)) == OPT_BY_USER;
}

static void type_device(const char *device, char *text, size_t room)
{
    snprintf(text, room, "-d %s", device);
}

static int make_offer(struct command *c)
{
    const struct cxi_options *o = &c->options;
    bool server = !o->address && !o->local, named = given(c, "device");
    c->offer = (struct offer){.device = c->own.options.device,
                              .given = named,
                              .vouched = named,
                              .typed = type_device,
                              .service = o->service};
    if (server && given(c, "timeout"))
        c->own.options.most.timeout_ms = o->spec.timeout_ms;
    int status = find_gpus(c);
    if (!status)
        status = cxi_check_device(o->device);
    for (int rank = 0; rank < 2 && o->huge && !server; rank++)
        if (!*c->offer.memory[rank])
            snprintf(c->offer.memory[rank], SESSION_MEMORY, "%s", cxi_huge[o->huge - 1]);
    return status;
}

/* A device that the other end named is shown in the header. */
static int show_device(struct command *c)
{
    const struct opt *row = opt_find(&c->set, "device");
    char device[FABRIC_DEVICE_MAX + 40];
    if (!c->session.adopted)
        return 0;
    session_device(&c->session, device, sizeof device);
    if (opt_origin(&c->set, row) == OPT_BY_USER)
        shell_overridden(row, c->options.device, device);
    return opt_assign(&c->set, row, device, OPT_BY_PEER);
}

/* ---- several pairs ---- */

static bool several(const struct command *c)
{
    return c->options.pairs > 1;
}

/* This is pair 0 of all that were asked for. */
static int open_pairs(struct command *c)
{
    struct cxi_options *o = &c->options;
    struct pairs *p = &c->pairs;
    char device[FABRIC_DEVICE_MAX];
    if (!several(c) || o->member)
        return 0;
    int status = pairs_open(p, o->pairs, c->argv);
    p->member.devices = c->own.options.device_count;
    p->member.timeout_ms = o->spec.timeout_ms;
    for (unsigned i = 0; i < o->pairs && !status; i++) {
        place_device(c->own.options.devices, i % p->member.devices, device);
        pairs_assign(p, i, place_cpu(&c->place, i), device);
    }
    return status;
}

/* What every other pair needs is known: they are started. */
static int start_pairs(struct command *c, const struct msg *answer, const char *address,
                       unsigned port)
{
    if (!several(c) || c->options.member)
        return 0;
    if (msg_value(answer, ".ticket", pairs_ticket(&c->pairs), PEER_TICKET))
        return fail(-EPROTO, "the server does not take several pairs");
    pairs_share(&c->pairs, &c->options.access, address, port);
    return pairs_start(&c->pairs);
}

/* ---- the client ---- */

static int greet(struct command *c, const struct visit *visit, struct msg *answer,
                 struct peer **peer)
{
    struct msg greeting;
    int status = msg_print(&greeting, ".tool=%s\n", c->tool->name);
    if (!status && several(c))
        status =
            msg_add(&greeting, ".procs=%u\n.pair=%u\n", c->options.pairs, c->pairs.member.number);
    if (!status)
        status = session_propose(&c->session, &c->offer, &c->options.spec, &greeting);
    return status ? status : visit_server(visit, &greeting, answer, peer);
}

/* What is agreed on, from the answer on. */
static int measure(struct command *c, const struct msg *answer)
{
    struct session *s = &c->session;
    c->pairs.member.sum = &c->output.report;
    int status = session_join(s, &c->offer, &c->options.spec, answer);
    if (!status)
        status = show_device(c);
    if (!status)
        status = session_measure(s, &c->options.spec,
                                 several(c) ? &c->pairs.member.report : &c->output.report);
    return status;
}

static int client(struct command *c, const char *address, unsigned port)
{
    struct peer_ticket ticket = {.number = c->pairs.member.number};
    struct visit visit = {.address = address,
                          .access = &c->options.access,
                          .port = port,
                          .wait_ms = c->options.local ? LOCAL_WAIT_MS : c->options.wait_s * 1000,
                          .timeout_ms = c->options.spec.timeout_ms,
                          .ticket = c->options.member ? &ticket : NULL,
                          .peer = c->ranks.peer,
                          .watch = {team_watch, &c->pairs.member}};
    struct session *s = &c->session;
    struct msg answer;
    struct peer *peer;
    if (c->options.member)
        memcpy(ticket.text, pairs_ticket(&c->pairs), sizeof ticket.text);
    else
        progress_wait();
    /* What cannot be had here is refused before the server is kept waiting. */
    int status = session_prepare(s, &c->offer, &c->options.spec, false);
    if (!status)
        status = open_pairs(c);
    if (!status)
        status = greet(c, &visit, &answer, &peer);
    if (status)
        return pairs_close(&c->pairs, session_close(s, status));
    s->peer = peer;
    status = start_pairs(c, &answer, address, port);
    /* Nothing is sent meanwhile: the server watches this connection while it gathers the others. */
    if (!status && several(c))
        status = team_meet(&c->pairs.member, peer);
    if (!status)
        status = measure(c, &answer);
    status = session_close(s, session_leave(s, status));
    peer_close(peer);
    return pairs_close(&c->pairs, status);
}

/* ---- the server ---- */

/* What the last client said is forgotten. */
static void reset(struct command *c)
{
    c->options = c->own.options;
    memcpy(c->set.origin, c->own.origin, sizeof c->set.origin);
}

static int accept_client(struct command *c, const struct msg *greeting, struct msg *answer)
{
    const struct spec *own = &c->own.options.spec;
    struct spec *spec = &c->options.spec;
    int status = session_accept(&c->session, &c->offer, greeting, spec, false, answer);
    if (!status && (spec->op != own->op || spec->method != own->method))
        status = fail(-EPROTO, "the client measures another operation than %s", c->tool->name);
    if (!status)
        status = show_device(c);
    if (!status)
        opt_adopt(&c->set, &c->own.options, shell_overridden);
    return status;
}

/* Takes over what the client asks for, or says why not. */
static int agree(void *arg, struct peer *peer, const struct msg *greeting, struct msg *answer)
{
    struct command *c = arg;
    char name[64];
    reset(c);
    c->offer.most = c->options.most;
    bounds_fill(&c->offer.most);
    peer_bound(peer, c->offer.most.session_ms);
    int status = msg_value(greeting, ".tool", name, sizeof name);
    if (status)
        return status == -ENOENT ? fail(-EPROTO, "a greeting that does not name its tool") : status;
    if (strcmp(name, c->tool->name) != 0)
        return fail(-EPROTO, "the client is %.40s, the server is %s", name, c->tool->name);
    c->session.peer = peer;
    status = cxi_grant_pairs(&c->own.options, &c->pairs, greeting, &c->options.pairs);
    c->offer.most.ends = c->options.pairs;
    if (!status)
        status = accept_client(c, greeting, answer);
    if (!status)
        status = open_pairs(c);
    if (!status && several(c) && !c->options.member) {
        pairs_share(&c->pairs, &c->own.options.access, "", 0);
        status = msg_add(answer, ".ticket=%s\n", pairs_ticket(&c->pairs));
    }
    if (status)
        session_part(&c->session);
    return status;
}

static int serve(void *arg, struct peer *peer, int answered)
{
    struct command *c = arg;
    struct session *s = &c->session;
    (void)peer;
    report_table_open(&c->table, serve_output(), c->tool->title, &c->set, NULL);
    c->table.gbits = c->own.options.gbits;
    c->pairs.member.sum = &c->table.report;
    int status = answered ? answered : session_await(s);
    if (!status)
        status = session_measure(s, &c->options.spec,
                                 several(c) ? &c->pairs.member.report : &c->table.report);
    else
        status = session_leave(s, status);
    session_part(s);
    return pairs_close(&c->pairs, status);
}

static struct service service_of(struct command *c)
{
    return (struct service){.bind = c->own.options.bind,
                            .access = &c->own.options.access,
                            .device = c->offer.vouched ? c->offer.device : "",
                            .port = (unsigned)c->options.port,
                            .loop = c->options.loop,
                            .timeout_ms = c->options.spec.timeout_ms,
                            .pairs = &c->pairs,
                            .arg = c,
                            .agree = agree,
                            .serve = serve};
}

static int server(struct command *c)
{
    const struct service service = service_of(c);
    /* Another pair's client waits already, and is told what cannot be had. */
    int status = c->options.member
                     ? serve_connection(&service, c->pairs.connection)
                     : session_prepare(&c->session, &c->offer, &c->options.spec, true);
    if (c->ranks.found)
        status = ranks_serve(&c->ranks, status);
    if (!status && !c->options.member)
        status = serve_clients(&service);
    return pairs_close(&c->pairs, session_close(&c->session, status));
}

/* ---- both ---- */

static int both(struct command *c)
{
    const struct cxi_options *o = &c->options;
    struct arguments arguments;
    unsigned port = 0;
    int64_t cpus[2] = {place_cpu(&c->place, 0), place_server(&c->place, o->cpu, o->pairs)};
    cxi_server_arguments(&arguments, o, given(c, "port"), cpus[1]);
    int status = local_start(&c->local, &arguments, &c->options.access, &port);
    if (!status && cpus[0] >= 0)
        status = cpu_pin(cpus[0]);
    if (!status) {
        char text[64] = "";
        if (cpus[0] >= 0)
            snprintf(text, sizeof text, cpus[1] < 0 ? "%" PRId64 : "%" PRId64 ",%" PRId64, cpus[0],
                     cpus[1]);
        local_note(&c->set, port, text);
        status = client(c, o->bind, port);
    }
    return local_end(&c->local, status);
}

/* ---- main ---- */

enum { MOST_STRAY = 8 };

/* Requests for a client's results; a server has none. */
static int prepare_output(struct command *c, int argc, char **argv)
{
    struct output_author author = {.tool = c->tool->name,
                                   .argc = argc,
                                   .argv = argv,
                                   .set = &c->set,
                                   .kilo = method_of(&c->options.spec)->lists ? 1000 : 0};
    if (c->options.member)
        return 0;
    if (!c->options.address && !c->options.local)
        return output_bar(&c->options.output);
    int status = output_open(&c->output, &c->options.output, &author, &c->table.report);
    c->output.entry.test = c->op->name;
    report_table_open(&c->table, stdout, c->tool->title, &c->set, c->output.percentiles);
    c->table.gbits = c->options.gbits;
    return status;
}

static void begin(struct command *c, const struct cxi_tool *tool)
{
    struct spec *spec = &c->options.spec;
    c->tool = tool;
    spec_defaults(spec);
    c->op = cxi_tool_rows(tool, spec, &c->set);
    c->set.base = &c->options;
    c->local = (struct local){.out = -1, .errors = -1};
    opt_defaults(&c->set);
}

/* Scripts may give the loopback tool an address, as they do the others. */
static int parse(struct command *c, int argc, char **argv)
{
    const char *words[MOST_STRAY];
    bool alone = c->tool->alone;
    int given;
    int status = opt_parse(&c->set, argc - 1, argv + 1, alone ? words : &c->options.address,
                           alone ? MOST_STRAY : 1, &given);
    for (int i = 0; i < given && alone && !status; i++)
        warn("ignored: \"%s\": there is no other end", words[i]);
    return status;
}

/* Ranks of a launcher, unless told to be one of the two that meet over TCP. */
static int find_ranks(struct command *c)
{
    struct cxi_options *o = &c->options;
    if (c->tool->alone || o->address || o->local || o->loop || *o->bind || o->member ||
        given(c, "port"))
        return 0;
    int status = ranks_find(&c->ranks);
    if (!status && ranks_client(&c->ranks))
        o->address = ranks_server;
    return status;
}

static int prepare(struct command *c, int argc, char **argv)
{
    struct cxi_options *o = &c->options;
    int status = parse(c, argc, argv);
    if (status || o->help || o->version || o->list)
        return status;
    o->member = c->pairs.page;
    if (o->member)
        pairs_access(&c->pairs, &o->access);
    status = find_ranks(c);
    if (!status)
        status = cxi_check(o, &c->set);
    if (c->ranks.found)
        status = ranks_check(&c->ranks, status, several(c));
    if (!status)
        place_device(o->devices, c->pairs.member.number % o->device_count, o->device);
    c->own.options = *o;
    memcpy(c->own.origin, c->set.origin, sizeof c->own.origin);
    if (!status)
        status = make_offer(c);
    if (!status)
        status = prepare_output(c, argc, argv);
    session_init(&c->session);
    /* A pair's client waits for this server already. */
    if (status && o->member && c->pairs.connection >= 0) {
        const struct service service = service_of(c);
        serve_refusal(&service, c->pairs.connection, status);
    }
    return status;
}

/* What was said before, pair 0 has said too. */
static void say_of_pair(const char *sentence)
{
    char text[2048];
    snprintf(text, sizeof text, "pair %u: %s", running.pairs.member.number, sentence);
    shell_say(text);
}

/* Another pair's process: where its parent has put it, with what its parent knows. */
static int run_member(struct command *c)
{
    unsigned port;
    const char *address = pairs_place(&c->pairs, &port);
    int64_t cpu = pairs_cpu(&c->pairs);
    warn_to(say_of_pair);
    int status = cpu >= 0 ? cpu_pin(cpu) : 0;
    if (status)
        return pairs_close(&c->pairs, status);
    return *address ? client(c, address, port) : server(c);
}

static int run(struct command *c)
{
    struct cxi_options *o = &c->options;
    if (o->member)
        return run_member(c);
    place_open(&c->place, o->cpu, o->device, o->pairs, o->local && !c->tool->alone);
    int64_t cpu = place_cpu(&c->place, 0);
    if (*c->place.near)
        snprintf(o->near, sizeof o->near, "%" PRId64 " (near %s)", cpu, c->place.near);
    memcpy(c->own.options.near, o->near, sizeof o->near);
    if (c->tool->alone)
        return cxi_loopback(&c->session, &c->offer, &o->spec, cpu, &c->output.report);
    if (o->local)
        return both(c);
    int status = cpu >= 0 ? cpu_pin(cpu) : 0;
    if (!status && c->ranks.found)
        status = ranks_meet(&c->ranks, &o->access, o->spec.timeout_ms, o->wait_s * 1000);
    if (!status)
        status = o->address ? client(c, o->address, (unsigned)o->port) : server(c);
    return ranks_end(&c->ranks, status);
}

int cxi_main(const struct cxi_tool *tool, int argc, char **argv)
{
    struct command *c = &running;
    shell_catch_signals();
    begin(c, tool);
    c->argv = argv;
    shell_open(argc, argv);
    int status = pairs_join(&c->pairs);
    if (status == 1)
        warn_to(NULL);
    status = status < 0 ? status : prepare(c, argc, argv);
    if (!status && c->options.help) {
        status = cxi_help(c->tool, c->op, &c->set);
    } else if (!status && c->options.version) {
        printf("%s (Weft) %s\n", shell_program, core_version());
        status = shell_flush("the version");
    } else if (!status && c->options.list) {
        status = list_print();
    } else if (!status) {
        status = run(c);
    }
    if (c->options.member)
        return shell_exit_code(pairs_close(&c->pairs, status));
    int code = status ? local_failure(c->options.local ? &c->local : NULL, status) : EXIT_DONE;
    return output_close(&c->output, code, fail_reason());
}
