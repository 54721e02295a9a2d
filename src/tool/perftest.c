/* SPDX-License-Identifier: BSD-3-Clause */
/* ucx_perftest: one test, or the product of batch files, between a client and a server, or between
 * two ranks of a launcher: over its MPI, or where there is none over TCP. */
#include "tool/list.h"
#include "tool/perftest_command.h"
#include "tool/serve.h"
#include "tool/shell.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- two ranks ---- */

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

static int meet(struct command *c, struct peer **peer)
{
    const struct perftest *o = &c->options;
    struct peer_terms terms = {.timeout_ms = o->spec.timeout_ms, .stop = &shell_stop};
    if (!c->ranks.found)
        return peer_mpi(peer, &terms);
    int status = ranks_meet(&c->ranks, &o->access, o->spec.timeout_ms, o->wait_s * 1000);
    *peer = c->ranks.peer;
    c->bounded = true;
    if (!status && !ranks_client(&c->ranks))
        peer_bound(*peer, o->most.session_ms);
    return status;
}

/* What is wrong with a command line both ranks find, or one of them tells the other: the client
 * says it. Without an MPI rank 0 does, before they meet. */
static int ranks(struct command *c, int wrong)
{
    struct peer *peer;
    char why[1024];
    if (c->ranks.found && (wrong = ranks_check(&c->ranks, wrong, false)))
        return wrong;
    snprintf(why, sizeof why, "%s", fail_reason());
    int status = meet(c, &peer);
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
    group_leave(c->ranks.group, status);
    exit(shell_exit_code(status));
}

/* Ranks of a launcher, unless told to be one of the two that meet over TCP. An MPI goes before
 * what other tools use. */
static int find_ranks(struct command *c, bool *launched)
{
    const struct perftest *o = &c->options;
    const struct opt *port = opt_find(&c->set, "port");
    bool plain = o->address || o->local || o->loopback || o->loop || *o->bind ||
                 *o->access.allow_list || opt_origin(&c->set, port) == OPT_BY_USER;
    *launched = false;
    if (o->mpi ? o->mpi == PERF_MPI_OFF : plain)
        return 0;
    if (mpi_launched()) {
        *launched = o->mpi || !*o->access.secret_file;
        return 0;
    }
    int status = ranks_find(&c->ranks);
    *launched = c->ranks.found;
    return status;
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
    bool both = o->local || o->loopback, launched;
    int status = find_ranks(c, &launched);
    struct role role = {.address = ranks_client(&c->ranks) ? ranks_server : o->address,
                        .local = both,
                        .loop = o->loop,
                        .port = o->port,
                        .server_cpu = -1};
    perf_hints(&c->set);
    if (!status)
        status = check_loopback(o);
    if (!status)
        status = role_check(&role, &c->set);
    if (!status && o->mpi == PERF_MPI_ON && !launched)
        return fail(-EINVAL, "-P 1: no launcher has started this process");
    if (!status && (!launched || c->ranks.found))
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
    bool launched;
    opt_defaults(&c->set);
    int status = opt_parse(&c->set, argc - 1, argv + 1, &c->options.address, 1, &given);
    if (status)
        return !find_ranks(c, &launched) && launched ? ranks(c, status) : status;
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
        perf_hints(&c->set);
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
    group_leave(c->ranks.group, status);
    return code;
}
