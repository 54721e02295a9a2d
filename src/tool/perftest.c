/* SPDX-License-Identifier: BSD-3-Clause */
/* ucx_perftest: one test, or the product of batch files, between a client and a server, or between
 * two MPI ranks. One connection carries all the tests of a client: it sends the options of each,
 * and both ends run it. */
#include "core/cpu.h"
#include "tool/list.h"
#include "tool/local.h"
#include "tool/perftest_batch.h"
#include "tool/perftest_show.h"
#include "tool/progress.h"
#include "tool/serve.h"
#include "tool/shell.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char goodbye[] = "bye=1\n";

struct command {
    struct perftest options;
    struct opt_set set;
    struct session session;
    struct peer *other_rank; /* of a launcher: it is left when all is said, for a launcher may end
                                this rank when the other has failed */
    bool usable;             /* the connection, after the last test */
    struct product product;  /* of batch files; of none, it is the one test of the command line */
    struct perf_show show;
    struct output_author author;
    unsigned failures, runs;
    int status;     /* of the last failure */
    unsigned verbs; /* of all tests of a batch */
    bool looks;
    const char *group; /* of columns, of the last of them */
    bool mixed;        /* they do not all have one */
    bool bounded;      /* a server, which may have strangers for clients */
    struct cpus cpus;
    unsigned threads; /* the most of any test */
    struct local local;
};

/* ---- one test, at the client ---- */

/* A device may be looked for on every fabric there is, and loading them can take seconds: with
 * signs of life meanwhile. */
static int find_device(const struct command *c, unsigned kind, const char *transport,
                       const char *device, char text[FABRIC_DEVICE_MAX])
{
    struct keepalive keepalive;
    keepalive_begin(&keepalive, c->session.peer, KEEPALIVE_LIBRARY_MS);
    int status = perf_device(kind, transport, device, text, FABRIC_DEVICE_MAX);
    keepalive_end(&keepalive);
    return status;
}

static int run_test(struct command *c, struct opt_set *set, const char *labels)
{
    struct perftest *o = set->base;
    char device[FABRIC_DEVICE_MAX], more[FABRIC_DEVICE_MAX + 32];
    struct offer offer = {.device = device,
                          .vouched = true,
                          .typed = perf_typed,
                          .service = 1,
                          .verbs = c->verbs,
                          .looks = c->looks,
                          .cpus = &c->cpus.ends[PEER_CLIENT],
                          .more = more};
    int status = perf_settle(set);
    if (!status)
        status = find_device(c, perf_tests[o->test - 1].kind, o->transport, o->device, device);
    for (int rank = 0; rank < 2 && !status; rank++)
        status = perf_memory(o->memory, rank, offer.memory[rank]);
    if (status)
        return status;
    offer.given = *device;
    snprintf(more, sizeof more, ".transport=%.*s\n.layer=%d\n", FABRIC_DEVICE_MAX - 1, o->transport,
             perf_tests[o->test - 1].kind & PERF_LAYER ? 1 : 0);
    perf_show_begin(&c->show, set, labels, c->product.count > 0);
    progress_wait();
    struct spec spec = o->spec;
    status = cpus_pin(&c->cpus.ends[PEER_CLIENT]);
    status = session_run(&c->session, &offer, &spec, status, &c->show.report);
    c->usable = !status || c->session.refused;
    c->show.output.progress.done++;
    return status;
}

/* ---- all tests ---- */

/* What the tests of a batch need of the fabric, all together: then it is opened once. */
static bool add_needs(void *arg, struct opt_set *set, const char *labels)
{
    struct command *c = arg;
    const struct perftest *o = set->base;
    (void)labels;
    if (!perf_settle(set)) {
        const char *group = method_of(&o->spec)->samples(&o->spec);
        c->verbs |= op_of(&o->spec)->verbs;
        c->looks |= o->spec.data.verify;
        c->mixed |= c->group && strcmp(c->group, group) != 0;
        c->group = group;
    }
    return true;
}

static bool count_threads(void *arg, struct opt_set *set, const char *labels)
{
    struct command *c = arg;
    const struct perftest *o = set->base;
    (void)labels;
    if (o->spec.threads > c->threads)
        c->threads = (unsigned)o->spec.threads;
    return true;
}

/* One test of the product; false ends it. */
static bool run_one(void *arg, struct opt_set *set, const char *labels)
{
    struct command *c = arg;
    int status = run_test(c, set, labels);
    c->runs++;
    if (status) {
        c->failures++;
        c->status = status;
    }
    if (status && c->product.count && status != -EINTR)
        product_say(&c->product, fail_reason());
    return !shell_stop && c->usable;
}

/* All tests of this client over one connection. */
static int run_all(struct command *c)
{
    char columns[PRODUCT_LABELS];
    struct msg bye;
    product_columns(&c->product, columns, sizeof columns);
    c->show.boxed.columns = columns;
    c->show.output.progress.sizes = c->product.count ? product_tests(&c->product) : 0;
    if (c->product.count)
        product_each(&c->product, &c->set, add_needs, c);
    c->show.boxed.mixed = c->mixed;
    c->usable = true;
    product_each(&c->product, &c->set, run_one, c);
    if (c->usable)
        session_close(&c->session, 0);
    if (c->usable && !msg_print(&bye, "%s", goodbye))
        peer_send(c->session.peer, &bye);
    /* After that there is nothing to add. */
    c->session.left |= c->usable;
    const struct progress *progress = &c->show.output.progress;
    if (shell_stop && !c->failures && progress->done < progress->sizes)
        return fail(-EINTR, "interrupted after %u of %u tests", progress->done, progress->sizes);
    if (!c->failures || !c->product.count || shell_stop)
        return c->failures ? c->status : 0;
    if (!c->usable)
        return fail(c->status, "%s", fail_reason());
    return fail(-EREMOTEIO, "%u of %u tests failed", c->failures, c->runs);
}

/* ---- the client ---- */

static int client(struct command *c, const char *address, unsigned port)
{
    struct visit visit = {.address = address,
                          .access = &c->options.access,
                          .port = port,
                          .wait_ms = c->options.local ? LOCAL_WAIT_MS : c->options.wait_s * 1000,
                          .timeout_ms = c->options.spec.timeout_ms};
    struct msg greeting, answer;
    struct peer *peer;
    int status = msg_print(&greeting, ".tool=ucx_perftest\n");
    if (!status)
        status = visit_server(&visit, &greeting, &answer, &peer);
    if (status)
        return status;
    c->session.peer = peer;
    status = run_all(c);
    status = session_close(&c->session, status);
    peer_close(peer);
    return status;
}

static int both(struct command *c)
{
    const struct perftest *o = &c->options;
    const struct opt *row = opt_find(&c->set, "port");
    struct arguments a;
    unsigned port = 0;
    char cpus[CPUS_TEXT];
    bool given = opt_origin(&c->set, row) == OPT_BY_USER;
    arguments_begin(&a);
    argument(&a, "--port", "%" PRIu64, given ? o->port : 0);
    argument(&a, "--bind", "%s", *o->bind ? o->bind : local_address);
    argument(&a, "--timeout", "%" PRIu64, o->spec.timeout_ms / 1000);
    local_bounds(&a, &o->most);
    /* The lines of a batch may name others. */
    if (*o->transport && !c->product.count)
        argument(&a, "--transport", "%s", o->transport);
    if (*o->device)
        argument(&a, "--device", "%s", o->device);
    cpus_text(&(struct cpus){.ends[0] = c->cpus.ends[PEER_SERVER]}, cpus);
    if (*cpus)
        argument(&a, "--cpu", "%s", cpus);
    argument(&a, "--max-threads", "%u", c->threads);
    int status = local_start(&c->local, &a, &c->options.access, &port);
    if (!status)
        status = cpus_pin(&c->cpus.ends[PEER_CLIENT]);
    cpus_text(&c->cpus, cpus);
    if (!status) {
        local_note(&c->set, port, cpus);
        status = client(c, o->bind, port);
    }
    return local_end(&c->local, status);
}

/* ---- the server ---- */

/* This end's own transport and device, or its device on the client's transport; otherwise the
 * client's choice. */
static int own_device(const struct command *c, const struct msg *ask,
                      char device[FABRIC_DEVICE_MAX])
{
    const struct perftest *o = &c->options;
    char transport[FABRIC_DEVICE_MAX];
    device[0] = '\0';
    uint64_t layer = 0;
    if (msg_value(ask, ".transport", transport, sizeof transport) ||
        msg_number(ask, ".layer", &layer))
        return fail(-EPROTO, "a test without a transport");
    if (!*o->transport && !*o->device)
        return 0;
    return find_device(c, layer ? PERF_LAYER : 0, *o->transport ? o->transport : transport,
                       o->device, device);
}

static int serve_test(struct command *c, const struct msg *ask)
{
    struct spec spec = c->options.spec;
    char device[FABRIC_DEVICE_MAX];
    const struct perftest *o = &c->options;
    struct offer offer = {.device = device,
                          .vouched = *o->transport || fabric_named(o->device),
                          .typed = perf_typed,
                          .most = o->most,
                          .cpus = &c->cpus.ends[0],
                          .service = 1};
    c->session.peer->runs++;
    int status = session_refused(&c->session, ask);
    if (status) {
        c->usable = c->session.refused;
        return status;
    }
    if (c->bounded)
        bounds_fill(&offer.most);
    status = own_device(c, ask, device);
    if (!status)
        status = perf_same_threads(&c->set, ask);
    offer.given = *device;
    status = session_serve(&c->session, &offer, ask, &spec, false, status, NULL);
    c->usable = !status || c->session.refused;
    return status;
}

/* One test after the other, until the client has said goodbye. */
static int serve(struct command *c)
{
    int last = 0;
    char why[1024] = "";
    for (;;) {
        struct msg ask;
        int status = peer_recv(c->session.peer, &ask, NULL, NULL);
        if (status)
            return status;
        if (strcmp(ask.bytes, goodbye) == 0) {
            c->session.left = true;
            return last ? fail(last, "%s", why) : 0;
        }
        status = serve_test(c, &ask);
        if (!status)
            continue;
        if (!c->usable || status == -EINTR)
            return status;
        if (last)
            shell_say(why);
        last = status;
        snprintf(why, sizeof why, "%s", fail_reason());
    }
}

static int agree(void *arg, struct peer *peer, const struct msg *greeting, struct msg *answer)
{
    const struct command *c = arg;
    char name[64] = "";
    (void)answer;
    peer_bound(peer, c->options.most.session_ms);
    msg_value(greeting, ".tool", name, sizeof name);
    if (strcmp(name, "ucx_perftest") == 0)
        return 0;
    return fail(-EPROTO, "the client is %.40s, the server is ucx_perftest",
                *name ? name : "of an unknown kind");
}

static int serve_client(void *arg, struct peer *peer, int answered)
{
    struct command *c = arg;
    c->session.peer = peer;
    int status = session_leave(&c->session, answered ? answered : serve(c));
    session_part(&c->session);
    return status;
}

static int server(struct command *c)
{
    const struct perftest *o = &c->options;
    struct service service = {.bind = c->options.bind,
                              .device = *o->transport             ? o->transport
                                        : fabric_named(o->device) ? o->device
                                                                  : "",
                              .access = &c->options.access,
                              .port = (unsigned)c->options.port,
                              .loop = c->options.loop,
                              .timeout_ms = c->options.spec.timeout_ms,
                              .arg = c,
                              .agree = agree,
                              .serve = serve_client};
    const struct opt *timeout = opt_find(&c->set, "timeout");
    int status = cpus_pin(&c->cpus.ends[0]);
    c->bounded = true;
    if (opt_origin(&c->set, timeout) == OPT_BY_USER)
        c->options.most.timeout_ms = c->options.spec.timeout_ms;
    return session_close(&c->session, status ? status : serve_clients(&service));
}

/* ---- main ---- */

/* Usage errors are reported before the server is kept waiting. */
static int check_client(struct command *c)
{
    const struct perftest *o = &c->options;
    int status = product_read(&c->product, o->batch);
    if (!status)
        status = product_sizes(&c->product, &o->sizes);
    if (status)
        return status;
    if (o->csv && o->grouped)
        warn("-N has no effect on CSV: a separator would be taken for a field's end");
    c->runs = c->failures = product_check(&c->product, &c->set);
    c->status = c->failures ? -EINVAL : 0;
    c->threads = 1;
    product_each(&c->product, &c->set, count_threads, c);
    status = perf_show_open(&c->show, o, &c->author);
    if (status || c->product.count)
        return status;
    char device[FABRIC_DEVICE_MAX], memory[PERF_MEMORY];
    status = perf_settle(&c->set);
    for (int rank = 0; rank < 2 && !status; rank++)
        status = perf_memory(o->memory, rank, memory);
    return status ? status
                  : perf_device(perf_tests[o->test - 1].kind, o->transport, o->device, device,
                                sizeof device);
}

/* ---- MPI ---- */

static int by_rank(struct command *c, int wrong)
{
    bool first = c->session.peer->rank == PEER_CLIENT;
    if (!wrong && first)
        wrong = check_client(c);
    if (!wrong)
        wrong = cpus_read(&c->cpus, c->options.cpu, false, 1);
    if (!wrong && !first)
        wrong = cpus_pin(&c->cpus.ends[0]);
    if (wrong)
        return wrong;
    return first ? run_all(c) : serve(c);
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
    return !o->address && !o->local && !server_here && mpi_launched();
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

static int run(struct command *c)
{
    const struct perftest *o = &c->options;
    bool launched = by_launcher(c);
    struct role role = {.address = o->address,
                        .local = o->local,
                        .loop = o->loop,
                        .port = o->port,
                        .server_cpu = -1};
    perf_hints(&c->set);
    int status = role_check(&role, &c->set);
    if (!status && o->mpi == PERF_MPI_ON && !mpi_launched())
        return fail(-EINVAL, "-P 1: no MPI launcher has started this process");
    if (!status && !launched)
        status = access_open(&c->options.access, &c->set, &role);
    if (!status && (o->address || o->local))
        status = check_client(c);
    if (launched)
        return ranks(c, status);
    if (!status)
        status = cpus_read(&c->cpus, o->cpu, o->local, c->threads);
    if (status)
        return status;
    if (o->local)
        return both(c);
    if (o->address)
        return client(c, o->address, (unsigned)o->port);
    warn_server(c);
    return server(c);
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
        status = perf_help(&c->set, &text);
        if (!status)
            fputs(text.bytes, stdout);
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
