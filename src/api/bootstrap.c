/* SPDX-License-Identifier: BSD-3-Clause */
/* Ready-made bootstraps: how the two ends of a test reach each other. */
#include "api/api.h"

#include <errno.h>
#include <string.h>

static const struct peer_terms common_terms = {.timeout_ms = API_TIMEOUT_MS};

static void made(struct weft_bootstrap *bootstrap, struct peer *peer)
{
    *bootstrap = (struct weft_bootstrap){
        .size = 2, .index = peer->rank == PEER_CLIENT ? 0 : 1, .ready = peer};
}

int weft_threads(struct weft_bootstrap pair[2])
{
    struct peer *peers[2];
    if (!pair)
        return fail(-EINVAL, "weft_threads: pair must not be NULL");
    int status = peer_threads(peers, &common_terms);
    for (int i = 0; i < 2 && !status; i++)
        made(&pair[i], peers[i]);
    return status;
}

/* The greeting of programs that use this library; tools have their own. */
static const char hello[] = ".tool=weft\n", welcome[] = "yes=1\n";

static int greeted(struct peer *peer, const struct msg *greeting)
{
    struct msg answer;
    if (strcmp(greeting->bytes, hello) != 0)
        return fail(-EPROTO, "the other end is not a program that uses this library");
    int status = msg_print(&answer, "%s", welcome);
    return status ? status : peer_send(peer, &answer);
}

static int check_place(const struct weft_bootstrap *bootstrap, unsigned port)
{
    if (!bootstrap)
        return fail(-EINVAL, "a bootstrap over TCP: bootstrap must not be NULL");
    return port && port <= UINT16_MAX ? 0 : fail(-EINVAL, "port %u: 1 to 65535", port);
}

int weft_tcp_listen(struct weft_bootstrap *bootstrap, const char *address, unsigned port,
                    const volatile sig_atomic_t *stop)
{
    struct peer_terms terms = {.timeout_ms = API_TIMEOUT_MS, .stop = stop};
    struct listener *listener;
    struct msg greeting;
    struct peer *peer;
    int status = check_place(bootstrap, port);
    if (!status)
        status = tcp_listen(&listener, address, port, &terms);
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
        /* The right client may still come. */
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
    struct peer_terms terms = {.timeout_ms = API_TIMEOUT_MS, .stop = stop};
    struct msg greeting, answer;
    struct peer *peer;
    int status = check_place(bootstrap, port);
    if (!status && !address)
        status = fail(-EINVAL, "weft_tcp_dial: address must not be NULL");
    if (!status)
        status = tcp_dial(&peer, address, port, wait_ms, &terms);
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
    if (!bootstrap)
        return fail(-EINVAL, "weft_mpi_ranks: bootstrap must not be NULL");
    int status = peer_mpi(&peer, &common_terms);
    if (!status)
        made(bootstrap, peer);
    return status;
}

void weft_close(struct weft_bootstrap *bootstrap)
{
    if (!bootstrap)
        return;
    peer_close(bootstrap->ready);
    bootstrap->ready = NULL;
}
