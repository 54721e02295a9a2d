/* SPDX-License-Identifier: BSD-3-Clause */
/* A server takes clients until one was served, or for ever; a client asks to be one of them. */
#include "tool/serve.h"
#include "report/report.h"
#include "tool/access.h"
#include "tool/pairs.h"
#include "tool/shell.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char accepted[] = "yes=1\n";

/* What a client or a server has no use for. */
static void warn_idle(const struct role *r, const struct opt_set *set)
{
    static const char *const of_server[] = {"bind",      "max-memory",  "max-session",
                                            "max-procs", "max-threads", NULL};
    static const char *const of_client[] = {"wait", NULL};
    for (const char *const *name = r->address ? of_server : of_client; *name && !r->local; name++)
        if (opt_find(set, *name) && opt_origin(set, opt_find(set, *name)) == OPT_BY_USER)
            warn("--%s is for a %s: it has no effect here", *name,
                 r->address ? "server" : "client");
}

int role_check(const struct role *r, const struct opt_set *set)
{
    if (r->local && r->address)
        return fail(-EINVAL, "--local starts its own server: leave out the address \"%s\"",
                    r->address);
    if (r->loop && (r->address || r->local))
        return fail(-EINVAL, "--loop is for a server: leave out %s",
                    r->local ? "--local" : "the address");
    if (r->address && !*r->address)
        return fail(-EINVAL, "the server's address is empty: \"\"");
    if (r->address && !r->port)
        return fail(-EINVAL, "--port 0 is for a server, which then prints the port it was given");
    if (r->server_cpu >= 0 && !r->local)
        return fail(-EINVAL, "--cpu: a second CPU is for the server that --local starts");
    warn_idle(r, set);
    return 0;
}

/* ---- the server's output ---- */

static ssize_t write_if_read(void *cookie, const char *bytes, size_t length)
{
    size_t done = 0;
    (void)cookie;
    while (done < length) {
        ssize_t n = write(STDOUT_FILENO, bytes + done, length - done);
        if (n < 0 && errno == EPIPE)
            return (ssize_t)length;
        if (n < 0)
            break;
        done += (size_t)n;
    }
    return (ssize_t)done;
}

FILE *serve_output(void)
{
    static FILE *out;
    if (!out) {
        signal(SIGPIPE, SIG_IGN);
        out = fopencookie(NULL, "w", (cookie_io_functions_t){.write = write_if_read});
    }
    return out ? out : stdout;
}

/* ---- clients ---- */

/* The answer to a client's greeting; on failure it was told why, and is gone. */
static int agree(const struct service *s, struct peer *peer, const struct msg *greeting,
                 struct msg *answer)
{
    int status = msg_print(answer, "%s", accepted);
    if (!status)
        status = s->agree(s->arg, peer, greeting, answer);
    if (status) {
        peer_end(peer, status, fail_reason());
        peer_close(peer);
    }
    return status;
}

/* One client. 1: it was refused. */
static int serve_one(const struct service *s, struct listener **listener,
                     const struct peer_terms *terms)
{
    struct msg greeting, answer;
    struct peer *peer;
    int status = tcp_accept(*listener, terms, &peer, &greeting);
    if (status)
        return status;
    if (agree(s, peer, &greeting, &answer)) {
        tcp_warn(*listener, "refused a client", fail_reason());
        return 1;
    }
    bool several = s->pairs && s->pairs->count > 1;
    status = several ? peer_send(peer, &answer) : 0;
    if (several && !status)
        status = pairs_gather(s->pairs, *listener, terms, peer);
    if (!s->loop) {
        tcp_close(*listener);
        *listener = NULL;
    }
    status = s->serve(s->arg, peer, several ? status : peer_send(peer, &answer));
    peer_close(peer);
    return status;
}

/* Who can reach this server, and what it does for them. */
static void announce(const struct service *s, const struct listener *listener)
{
    const struct access *access = s->access;
    char sentence[ACCESS_LIST + 300], guarded[100];
    fabric_guarded_names(guarded, sizeof guarded);
    snprintf(sentence, sizeof sentence, "listening on %s%s%s, %s: serves %s", tcp_address(listener),
             access->limited ? " for " : "", access->limited ? access->allow_list : "",
             access->held ? "secret required" : "no secret",
             *s->device     ? s->device
             : access->held ? "every fabric"
                            : guarded);
    shell_say(sentence);
}

static struct peer_terms terms_of(const struct service *s)
{
    struct peer_terms terms = {.timeout_ms = s->timeout_ms, .stop = &shell_stop};
    if (s->pairs)
        terms.watch = (struct peer_watch){team_watch, &s->pairs->member};
    access_terms(s->access, &terms);
    return terms;
}

int serve_connection(const struct service *s, int fd)
{
    const struct peer_terms terms = terms_of(s);
    struct msg greeting, answer;
    struct peer *peer;
    int status = tcp_adopt(fd, &terms, &peer, &greeting);
    if (!status)
        status = agree(s, peer, &greeting, &answer);
    if (status)
        return status;
    status = s->serve(s->arg, peer, peer_send(peer, &answer));
    peer_close(peer);
    return status;
}

void serve_refusal(const struct service *s, int fd, int status)
{
    const struct peer_terms terms = terms_of(s);
    struct msg greeting;
    struct peer *peer;
    char why[1024];
    snprintf(why, sizeof why, "%s", fail_reason());
    if (!tcp_adopt(fd, &terms, &peer, &greeting)) {
        peer_end(peer, status, why);
        peer_close(peer);
    }
    fail(status, "%s", why);
}

/* ---- a client that another process of this server has greeted ---- */

static struct {
    struct peer *peer; /* NULL: none */
    struct msg greeting;
} handed;

void serve_hand(struct peer *peer, const struct msg *greeting)
{
    handed.peer = peer;
    handed.greeting = *greeting;
}

static int serve_handed(const struct service *s)
{
    struct peer *peer = handed.peer;
    struct msg answer;
    handed.peer = NULL;
    int status = agree(s, peer, &handed.greeting, &answer);
    if (status)
        return status;
    status = s->serve(s->arg, peer, peer_send(peer, &answer));
    peer_close(peer);
    return status;
}

/* ---- the server ---- */

int serve_listen(const struct service *s, const struct peer_terms *terms,
                 struct listener **listener)
{
    int status = tcp_listen(listener, *s->bind ? s->bind : NULL, s->port, terms);
    if (!status)
        announce(s, *listener);
    return status;
}

int serve_say_port(const struct listener *listener)
{
    fprintf(serve_output(), "Listening on port %u for client to connect...\n", tcp_port(listener));
    return report_flush(serve_output());
}

int serve_clients(const struct service *s)
{
    const struct peer_terms terms = terms_of(s);
    struct listener *listener;
    if (handed.peer)
        return serve_handed(s);
    int status = serve_listen(s, &terms, &listener);
    if (status)
        return status;
    do {
        status = serve_say_port(listener);
        if (status)
            break;
        do
            status = serve_one(s, &listener, &terms);
        while (status == 1);
        if (status && s->loop && status != -EINTR)
            shell_say(fail_reason());
    } while (s->loop && status != -EINTR);
    tcp_close(listener);
    return status;
}

int visit_server(const struct visit *v, const struct msg *greeting, struct msg *answer,
                 struct peer **peer)
{
    struct peer_terms terms = {
        .timeout_ms = v->timeout_ms, .stop = &shell_stop, .ticket = v->ticket, .watch = v->watch};
    access_terms(v->access, &terms);
    *peer = v->peer;
    int status = v->peer ? 0 : tcp_dial(peer, v->address, v->port, v->wait_ms, &terms);
    if (status)
        return status;
    status = peer_swap(*peer, greeting, answer);
    if (status == -ETIMEDOUT)
        status = tcp_unanswered(v->timeout_ms);
    if (!status && strncmp(answer->bytes, accepted, strlen(accepted)) != 0)
        status = fail(-EPROTO, "the server's answer cannot be read");
    if (status)
        peer_close(*peer);
    return status;
}
