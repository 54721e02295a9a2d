/* SPDX-License-Identifier: BSD-3-Clause */
/* ucx_perftest: one test, or the product of batch files, between a client and a server, or between
 * two MPI ranks. */
#include "tool/list.h"
#include "tool/perftest_command.h"
#include "tool/serve.h"
#include "tool/shell.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- MPI ---- */

static int by_rank(struct command *c, int wrong)
{
    bool first = c->session.peer->rank == PEER_CLIENT;
    if (!wrong && first)
        wrong = perf_check_client(c);
    if (!wrong)
        wrong = cpus_read(&c->cpus, c->options.cpu, false, 1);
    if (!wrong && !first)
        wrong = cpus_pin(&c->cpus.ends[0]);
    if (wrong)
        return wrong;
    return first ? perf_run_all(c) : perf_serve(c);
}

/* What is wrong with a command line both ranks find, or one of them tells the other: the client
 * says it. */
static int ranks(struct command *c, int wrong)
{
    struct peer_terms terms = {.timeout_ms = c->options.spec.timeout_ms, .stop = &shell_stop};
    struct peer *peer;
    char why[1024];
    snprintf(why, sizeof why, "%s", fail_reason());
    int status = peer_mpi(&peer, &terms);
    if (status)
        return wrong ? fail(wrong, "%s", why) : status;
    c->session.peer = peer;
    status = by_rank(c, wrong ? fail(wrong, "%s", why) : 0);
    bool told = c->usable || wrong || status == -EREMOTEIO;
    bool quiet = peer->rank == PEER_SERVER && told;
    status = session_close(&c->session, status);
    c->other_rank = peer;
    if (!status || !quiet || status == -EINTR)
        return status;
    peer_close(peer);
    exit(shell_exit_code(status));
}

/* Ranks of a launcher, unless told to be one of the two that meet over TCP. */
static bool by_launcher(const struct command *c)
{
    const struct perftest *o = &c->options;
    const struct opt *port = opt_find(&c->set, "port");
    bool server_here = o->loop || *o->bind || *o->access.secret_file || *o->access.allow_list ||
                       opt_origin(&c->set, port) == OPT_BY_USER;
    if (o->mpi)
        return o->mpi == PERF_MPI_ON;
    return !o->address && !o->local && !o->loopback && !server_here && mpi_launched();
}

/* A server may be given the client's command line: it has its tests from the client. */
static void warn_server(const struct command *c)
{
    char names[512] = "";
    size_t used = 0;
    for (const struct opt *row = opt_next(&c->set, NULL); row; row = opt_next(&c->set, row))
        if (row->takes & PERF_CLIENT && opt_origin(&c->set, row) == OPT_BY_USER &&
            used < sizeof names)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s--%s", used ? ", " : "",
                                     row->name);
    if (used)
        warn("no effect at a server, which takes its tests from the client: %s", names);
}

/* ---- main ---- */

static int check_loopback(const struct perftest *o)
{
    if (!o->loopback || !(o->address || o->local || o->loop))
        return 0;
    return fail(-EINVAL, "--loopback is both ends in this process: leave out %s",
                o->local  ? "--local"
                : o->loop ? "--loop"
                          : "the address");
}

static int run(struct command *c)
{
    const struct perftest *o = &c->options;
    bool launched = by_launcher(c);
    bool both = o->local || o->loopback;
    struct role role = {
        .address = o->address, .local = both, .loop = o->loop, .port = o->port, .server_cpu = -1};
    perf_hints(&c->set);
    int status = check_loopback(o);
    if (!status)
        status = role_check(&role, &c->set);
    if (!status && o->mpi == PERF_MPI_ON && !mpi_launched())
        return fail(-EINVAL, "-P 1: no MPI launcher has started this process");
    if (!status && !launched)
        status = access_open(&c->options.access, &c->set, &role);
    if (!status && (o->address || both))
        status = perf_check_client(c);
    if (launched)
        return ranks(c, status);
    if (!status)
        status = cpus_read(&c->cpus, o->cpu, both, c->threads);
    if (status)
        return status;
    if (both)
        return o->local ? perf_both(c) : perf_loopback(c);
    if (o->address)
        return perf_client(c, o->address, (unsigned)o->port);
    warn_server(c);
    return perf_server(c);
}

static int answer(struct command *c, int argc, char **argv)
{
    struct msg text;
    int given;
    opt_defaults(&c->set);
    int status = opt_parse(&c->set, argc - 1, argv + 1, &c->options.address, 1, &given);
    if (status)
        return by_launcher(c) ? ranks(c, status) : status;
    if (c->options.help) {
        struct msg ours;
        status = perf_help(&c->set, &text);
        if (!status)
            status = perf_help_ours(&c->set, &ours);
        if (!status)
            printf("%s%s", text.bytes, ours.bytes);
        return status ? status : shell_flush("the help text");
    }
    if (c->options.version) {
        printf("%s (Weft) %s\n", shell_program, core_version());
        return shell_flush("the version");
    }
    return c->options.list ? list_print() : run(c);
}

int perftest_main(int argc, char **argv)
{
    static struct command command;
    struct command *c = &command;
    shell_catch_signals();
    session_init(&c->session);
    spec_defaults(&c->options.spec);
    c->set = (struct opt_set){.rows = perf_rows, .base = &c->options};
    c->local = (struct local){.out = -1, .errors = -1};
    c->author = (struct output_author){
        .tool = "ucx_perftest", .argc = argc, .argv = argv, .set = &c->set, .kilo = 1024};
    shell_open(argc, argv);
    int status = answer(c, argc, argv);
    product_free(&c->product);
    int code = status ? local_failure(c->options.local ? &c->local : NULL, status) : EXIT_DONE;
    code = output_close(&c->show.output, code, fail_reason());
    peer_close(c->other_rank);
    return code;
}
