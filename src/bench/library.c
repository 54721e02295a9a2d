/* SPDX-License-Identifier: BSD-3-Clause */
/* The public library, weft.h: parameters, results, ready-made bootstraps, and the one call. */
#include "bench/bench.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#ifndef WEFT_VERSION
#define WEFT_VERSION "unknown"
#endif

enum { TIMEOUT_MS = 10000 };

const char *weft_version(void)
{
    return WEFT_VERSION;
}

const char *weft_reason(void)
{
    return fail_reason();
}

void weft_warnings(void (*sink)(const char *sentence))
{
    warn_to(sink);
}

void weft_params_init(struct weft_params *params)
{
    *params = (struct weft_params){.bytes = sizeof *params,
                                   .op = WEFT_AM,
                                   .mode = WEFT_PING_PONG,
                                   .layout = WEFT_SHORT,
                                   .size = 8,
                                   .am_header = 8,
                                   .window = 128,
                                   .outstanding = 1,
                                   .warmup = 10000,
                                   .iterations = 1000000,
                                   .interval_ms = 1000,
                                   .timeout_ms = TIMEOUT_MS,
                                   .percentiles = {50, 90, 99, 99.9},
                                   .memory = "host",
                                   .cpu = -1};
}

/* ---- results ---- */

int weft_histogram_next(const struct weft_histogram *histogram, size_t *at, double *low_us,
                        double *high_us, uint64_t *count)
{
    const struct stats *stats = histogram ? histogram->stats : NULL;
    for (; stats && *at < STATS_BUCKETS; ++*at) {
        double low, high;
        if (!stats->buckets[*at])
            continue;
        stats_bounds(*at, &low, &high);
        *low_us = low * histogram->us_per_tick;
        *high_us = high * histogram->us_per_tick;
        *count = stats->buckets[(*at)++];
        return 1;
    }
    return 0;
}

void weft_result_free(struct weft_result *result)
{
    /* What the library allocated it may take back. */
    struct weft_histogram *histogram = (struct weft_histogram *)result->histogram;
    if (histogram)
        stats_close(histogram->stats);
    free(histogram);
    result->histogram = NULL;
    result->fabric = NULL;
}

/* ---- bootstraps ---- */

static const struct peer_terms common_terms = {.timeout_ms = TIMEOUT_MS};

static void made(struct weft_bootstrap *bootstrap, struct peer *peer)
{
    *bootstrap = (struct weft_bootstrap){
        .size = 2, .index = peer->rank == PEER_CLIENT ? 0 : 1, .ready = peer};
}

int weft_threads(struct weft_bootstrap pair[2])
{
    struct peer *peers[2];
    int status = peer_threads(peers, &common_terms);
    for (int i = 0; i < 2 && !status; i++)
        made(&pair[i], peers[i]);
    return status;
}

/* Whoever calls is a library, not one of the tools. */
static const char hello[] = ".tool=weft\n", welcome[] = "yes=1\n";

static int greeted(struct peer *peer, const struct msg *greeting)
{
    struct msg answer;
    if (strcmp(greeting->bytes, hello) != 0)
        return fail(-EPROTO, "the other end is not a program that uses this library");
    int status = msg_print(&answer, "%s", welcome);
    return status ? status : peer_send(peer, &answer);
}

int weft_tcp_listen(struct weft_bootstrap *bootstrap, const char *address, unsigned port,
                    const volatile sig_atomic_t *stop)
{
    struct peer_terms terms = {.timeout_ms = TIMEOUT_MS, .stop = stop};
    struct listener *listener;
    struct msg greeting;
    struct peer *peer;
    if (port > UINT16_MAX || !port)
        return fail(-EINVAL, "port %u: 1 to 65535", port);
    int status = tcp_listen(&listener, address, port, &terms);
    if (status)
        return status;
    for (;;) {
        status = tcp_accept(listener, &terms, &peer, &greeting);
        if (status)
            break;
        status = greeted(peer, &greeting);
        if (!status) {
            made(bootstrap, peer);
            break;
        }
        /* Whoever it was, the right one may still come. */
        warn("refused a client: %s", fail_reason());
        peer_end(peer, status, fail_reason());
        peer_close(peer);
    }
    tcp_close(listener);
    return status;
}

int weft_tcp_dial(struct weft_bootstrap *bootstrap, const char *address, unsigned port,
                  uint64_t wait_ms, const volatile sig_atomic_t *stop)
{
    struct peer_terms terms = {.timeout_ms = TIMEOUT_MS, .stop = stop};
    struct msg greeting, answer;
    struct peer *peer;
    if (port > UINT16_MAX || !port)
        return fail(-EINVAL, "port %u: 1 to 65535", port);
    int status = tcp_dial(&peer, address, port, wait_ms, &terms);
    if (status)
        return status;
    status = msg_print(&greeting, "%s", hello);
    if (!status)
        status = peer_swap(peer, &greeting, &answer);
    if (!status && strcmp(answer.bytes, welcome) != 0)
        status = fail(-EPROTO, "the server's answer cannot be read");
    if (status)
        peer_close(peer);
    else
        made(bootstrap, peer);
    return status;
}

int weft_mpi_ranks(struct weft_bootstrap *bootstrap)
{
    struct peer *peer;
    int status = peer_mpi(&peer, &common_terms);
    if (!status)
        made(bootstrap, peer);
    return status;
}

void weft_close(struct weft_bootstrap *bootstrap)
{
    peer_close(bootstrap->ready);
    bootstrap->ready = NULL;
}

/* ---- the call ---- */

/* A caller's own way to pass messages, for as long as the test lasts. */
static int own_peer(const struct weft_bootstrap *bootstrap, const struct peer_terms *terms,
                    struct peer **peer)
{
    struct peer_carrier carrier = {.arg = bootstrap->arg,
                                   .publish = bootstrap->publish,
                                   .receive = bootstrap->receive,
                                   .lasts = true};
    if (bootstrap->size != 2 || bootstrap->index > 1)
        return fail(-EINVAL, "end %u of a group of %u: a test has two ends, 0 and 1",
                    bootstrap->index, bootstrap->size);
    if (!carrier.publish || !carrier.receive)
        return fail(-EINVAL, "a bootstrap without publish and receive");
    return peer_relay(peer, &carrier, bootstrap->index ? PEER_SERVER : PEER_CLIENT, terms);
}

int weft_run(const struct weft_params *params, const struct weft_bootstrap *bootstrap,
             void (*report)(void *arg, const struct weft_result *result), void *arg,
             struct weft_result *result)
{
    /* That 0 is none is said by the test, and the other end is to hear it. */
    struct peer_terms terms = {.timeout_ms = params->timeout_ms ? params->timeout_ms : TIMEOUT_MS,
                               .stop = params->stop};
    struct test_audience audience = {.report = report, .arg = arg};
    struct weft_result own = {0};
    struct peer *peer = bootstrap->ready;
    bool usable;
    if (result)
        *result = own;
    if (params->bytes != sizeof *params)
        return fail(-EINVAL, "parameters of %zu bytes: begin with weft_params_init", params->bytes);
    int status = peer ? 0 : own_peer(bootstrap, &terms, &peer);
    if (status || !peer)
        return status;
    peer->timeout_ms = terms.timeout_ms;
    peer->stop = params->stop;
    status = test_run(params, peer, &audience, &own, &usable);
    if (!bootstrap->ready)
        peer_close(peer);
    if (!status)
        fail(0, "%s", "");
    if (result && (!status || status == -EINTR))
        *result = own;
    else
        weft_result_free(&own);
    return status;
}
