/* SPDX-License-Identifier: BSD-3-Clause */
/* ucx_perftest's server: it runs what its client asks for, test by test. */
#include "tool/perftest_command.h"
#include "tool/serve.h"
#include "tool/shell.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

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
    return perf_find_device(c, layer ? PERF_LAYER : 0, *o->transport ? o->transport : transport,
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

int perf_serve(struct command *c)
{
    int last = 0;
    char why[1024] = "";
    for (;;) {
        struct msg ask;
        int status = peer_recv(c->session.peer, &ask, NULL, NULL);
        if (status)
            return status;
        if (strcmp(ask.bytes, PERF_GOODBYE) == 0) {
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
    int status = session_leave(&c->session, answered ? answered : perf_serve(c));
    session_part(&c->session);
    return status;
}

int perf_server(struct command *c)
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
