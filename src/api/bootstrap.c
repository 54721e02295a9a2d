/* SPDX-License-Identifier: BSD-3-Clause */
/* Ready-made bootstraps: how the two ends of a test reach each other. */
#include "api/api.h"

#include <errno.h>
#include <stdlib.h>
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

/* What the program asked for, and what becomes of it. */
struct place {
    struct weft_tcp tcp; /* as this version knows it */
    struct secret secret;
    struct allow allow;
    struct peer_terms terms;
};

static int take_place(struct place *p, const struct weft_bootstrap *bootstrap,
                      const struct weft_tcp *tcp)
{
    *p = (struct place){0};
    if (!bootstrap || !tcp)
        return fail(-EINVAL, "a bootstrap over TCP: bootstrap and tcp must not be NULL");
    if (tcp->bytes < offsetof(struct weft_tcp, wait_ms) || tcp->bytes > API_STRUCT_MOST)
        return fail(-EINVAL, "a struct weft_tcp of %zu bytes: begin with weft_tcp_init",
                    tcp->bytes);
    int status = struct_take(&p->tcp, sizeof p->tcp, tcp, tcp->bytes);
    if (!status && (!p->tcp.port || p->tcp.port > UINT16_MAX))
        status = fail(-EINVAL, "port %u: 1 to 65535", p->tcp.port);
    if (status)
        return status;
    p->terms = (struct peer_terms){.timeout_ms = API_TIMEOUT_MS, .stop = p->tcp.stop};
    const char *file = p->tcp.secret_file ? p->tcp.secret_file : secure_getenv("WEFT_SECRET");
    if (file && *file) {
        p->terms.secret = &p->secret;
        status = secret_read(&p->secret, file);
    }
    if (!status && p->tcp.allow) {
        p->terms.allow = &p->allow;
        status = allow_parse(&p->allow, p->tcp.allow, "allow");
    }
    return status;
}

/* Until one has come. */
static int await_client(struct listener *listener, const struct peer_terms *terms,
                        struct weft_bootstrap *bootstrap)
{
    for (;;) {
        struct msg greeting;
        struct peer *peer;
        int status = tcp_accept(listener, terms, &peer, &greeting);
        if (status)
            return status;
        status = greeted(peer, &greeting);
        if (!status) {
            made(bootstrap, peer);
            return 0;
        }
        /* The right client may still come. */
        tcp_warn(listener, "refused a client", fail_reason());
        peer_end(peer, status, fail_reason());
        peer_close(peer);
    }
}

int weft_tcp_listen_with(struct weft_bootstrap *bootstrap, const struct weft_tcp *tcp)
{
    struct place p;
    struct listener *listener;
    int status = take_place(&p, bootstrap, tcp);
    if (!status)
        status = tcp_listen(&listener, p.tcp.address, p.tcp.port, &p.terms);
    if (!status) {
        status = await_client(listener, &p.terms, bootstrap);
        tcp_close(listener);
    }
    explicit_bzero(&p.secret, sizeof p.secret);
    return status;
}

static int greet(struct peer *peer)
{
    struct msg greeting, answer;
    int status = msg_print(&greeting, "%s", hello);
    if (!status)
        status = peer_swap(peer, &greeting, &answer);
    if (!status && strcmp(answer.bytes, welcome) != 0)
        status = fail(-EPROTO, "the server's answer cannot be read");
    return status;
}

int weft_tcp_dial_with(struct weft_bootstrap *bootstrap, const struct weft_tcp *tcp)
{
    struct place p;
    struct peer *peer = NULL;
    int status = take_place(&p, bootstrap, tcp);
    if (!status && !p.tcp.address)
        status = fail(-EINVAL, "weft_tcp_dial: address must not be NULL");
    if (!status)
        status = tcp_dial(&peer, p.tcp.address, p.tcp.port, p.tcp.wait_ms, &p.terms);
    explicit_bzero(&p.secret, sizeof p.secret);
    if (status)
        return status;
    status = greet(peer);
    if (status)
        peer_close(peer);
    else
        made(bootstrap, peer);
    return status;
}

int weft_tcp_listen(struct weft_bootstrap *bootstrap, const char *address, unsigned port,
                    const volatile sig_atomic_t *stop)
{
    struct weft_tcp tcp = {.bytes = sizeof tcp, .address = address, .port = port, .stop = stop};
    return weft_tcp_listen_with(bootstrap, &tcp);
}

int weft_tcp_dial(struct weft_bootstrap *bootstrap, const char *address, unsigned port,
                  uint64_t wait_ms, const volatile sig_atomic_t *stop)
{
    struct weft_tcp tcp = {
        .bytes = sizeof tcp, .address = address, .port = port, .wait_ms = wait_ms, .stop = stop};
    return weft_tcp_dial_with(bootstrap, &tcp);
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
