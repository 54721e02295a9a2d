/* SPDX-License-Identifier: BSD-3-Clause */
/* ucx_perftest's client: one connection carries all its tests. It sends the options of each, and
 * both ends run it. */
#include "tool/perftest_command.h"
#include "tool/progress.h"
#include "tool/serve.h"
#include "tool/shell.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- one test, at the client ---- */

int perf_find_device(const struct command *c, unsigned kind, const char *transport,
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
        status = perf_find_device(c, perf_kind(o), o->transport, o->device, device);
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

int perf_run_all(struct command *c)
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
    if (c->usable && !msg_print(&bye, "%s", PERF_GOODBYE))
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

int perf_client(struct command *c, const char *address, unsigned port)
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
    status = perf_run_all(c);
    status = session_close(&c->session, status);
    peer_close(peer);
    return status;
}

int perf_both(struct command *c)
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
        status = perf_client(c, o->bind, port);
    }
    return local_end(&c->local, status);
}

/* ---- before there is a server ---- */

int perf_check_client(struct command *c)
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
                  : perf_device(perf_kind(o), o->transport, o->device, device, sizeof device);
}
