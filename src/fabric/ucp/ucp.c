/* SPDX-License-Identifier: BSD-3-Clause */
/* The table, open and close, and errors in our words. */
#include "fabric/ucp/ucp.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucs/config/global_opts.h>

enum { SPINS = 8, QUIET_MS = 500, MOST_MS = 2000 };

const struct fabric_host *weft_ucp_host;

/* ---- errors ---- */

int weft_ucp_errno(ucs_status_t status)
{
    static const struct {
        ucs_status_t status;
        int number;
    } numbers[] = {{UCS_OK, 0},
                   {UCS_ERR_NO_RESOURCE, -EAGAIN},
                   {UCS_ERR_NO_MEMORY, -ENOMEM},
                   {UCS_ERR_EXCEEDS_LIMIT, -ENOMEM},
                   {UCS_ERR_MESSAGE_TRUNCATED, -EMSGSIZE},
                   {UCS_ERR_UNSUPPORTED, -ENOTSUP},
                   {UCS_ERR_NOT_IMPLEMENTED, -ENOTSUP},
                   {UCS_ERR_NO_DEVICE, -ENODEV},
                   {UCS_ERR_UNREACHABLE, -EHOSTUNREACH},
                   {UCS_ERR_REJECTED, -ECONNRESET},
                   {UCS_ERR_NOT_CONNECTED, -ECONNRESET},
                   {UCS_ERR_CONNECTION_RESET, -ECONNRESET},
                   {UCS_ERR_CANCELED, -ECONNRESET},
                   {UCS_ERR_ENDPOINT_TIMEOUT, -ECONNRESET}};
    for (size_t i = 0; i < LENGTH(numbers); i++)
        if (numbers[i].status == status)
            return numbers[i].number;
    return -EIO;
}

int weft_ucp_refuse(const struct weft_ucp *u, const char *what, ucs_status_t status)
{
    return weft_ucp_host->fail(weft_ucp_errno(status), "ucp: %s by %s: %s", what,
                               *u->port.transports ? u->port.transports : "UCX's choice",
                               ucs_status_string(status));
}

static const uint64_t no_key;

/* UCX ends the process for an operation on an endpoint that has failed: none is posted any more. */
void weft_ucp_lose(struct weft_ucp *u, ucs_status_t status, const char *reason)
{
    if (u->todo & TODO_LOST || u->parted || u->draining)
        return;
    u->lost = status;
    u->reason = reason;
    u->todo |= TODO_LOST;
    weft_ucp_disconnect(u);
    for (int i = 0; i < u->remote_count; i++)
        u->remotes[i].alive = &no_key;
}

int weft_ucp_not_connected(const struct weft_ucp *u)
{
    if (u->todo & TODO_LOST)
        return weft_ucp_host->fail(-ECONNRESET, "ucp: the connection to the other end is lost: %s",
                                   u->reason);
    return weft_ucp_host->fail(-ENOTCONN, "ucp: not connected");
}

void weft_ucp_error(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    struct weft_ucp *u = arg;
    if (ep == u->ep)
        weft_ucp_lose(u, status, ucs_status_string(status));
}

/* ---- open and close ---- */

static void free_slots(struct weft_ucp *u)
{
    u->free = NULL;
    for (int i = WEFT_UCP_SLOTS; i-- > 0;) {
        u->slots[i] = (struct weft_ucp_slot){.ucp = u, .request = u->slots[i].request};
        weft_ucp_slot_give(&u->slots[i]);
    }
    u->taken = u->receives = 0;
    u->waiting = NULL;
    u->waiting_last = &u->waiting;
    u->turns = u->turn_begun = 0;
    u->flushing = false;
    u->flow.sent = u->flow.acked = u->flow.taken = u->flow.told = 0;
    u->mail.first = u->loan.first = NULL;
    u->mail.last = &u->mail.first;
    u->loan.last = &u->loan.first;
    u->loan.data = NULL;
    u->loan.left = 0;
}

int weft_ucp_renew(struct weft_ucp *u)
{
    ucp_worker_params_t params = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE |
                                                UCP_WORKER_PARAM_FIELD_FLAGS,
                                  .thread_mode = UCS_THREAD_MODE_SINGLE,
                                  .flags = UCP_WORKER_FLAG_IGNORE_REQUEST_LEAK};
    ucs_status_t status = ucp_worker_create(u->port.context, &params, &u->worker);
    if (status == UCS_OK)
        return weft_ucp_listen(u);
    u->worker = NULL;
    return weft_ucp_refuse(u, "a worker", status);
}

/* A worker that cannot be destroyed is kept, and never used again. */
struct relic {
    struct relic *next;
    ucp_worker_h worker;
    ucp_context_h context;
};
static _Atomic(struct relic *) relics;

static void keep_relic(struct weft_ucp *u)
{
    struct relic *relic = calloc(1, sizeof *relic);
    u->port.relics = true;
    if (!relic)
        return;
    *relic = (struct relic){.worker = u->worker, .context = u->port.context, .next = relics};
    while (!atomic_compare_exchange_weak(&relics, &relic->next, relic))
        continue;
}

void weft_ucp_give_up(struct weft_ucp *u, const char *reason)
{
    weft_ucp_lose(u, UCS_ERR_ENDPOINT_TIMEOUT, reason);
    weft_ucp_disconnect(u);
    u->sink = u->sink_end = NULL;
    if (u->worker)
        keep_relic(u);
    u->worker = NULL;
    u->ep = NULL;
}

/* No progress after it: what the other end still asks for could not be answered any more, and UCX
 * would end the process. */
static void close_endpoint(struct weft_ucp *u)
{
    const ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
                                       .flags = UCP_EP_CLOSE_FLAG_FORCE};
    void *request = u->ep ? ucp_ep_close_nbx(u->ep, &param) : NULL;
    if (UCS_PTR_IS_PTR(request))
        ucp_request_free(request);
}

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* As long as the other end answers what is under way, and not for long: in shared memory UCX would
 * end its process for an answer that finds nobody. */
static void drain(struct weft_ucp *u)
{
    uint64_t begun_ms = u->taken > u->receives ? now_ms() : 0, last_ms = begun_ms, ms = begun_ms;
    while (u->taken > u->receives && !(u->todo & TODO_LOST) && ms - last_ms < QUIET_MS &&
           ms - begun_ms < MOST_MS) {
        bool moved = ucp_worker_progress(u->worker);
        ms = now_ms();
        last_ms = moved ? ms : last_ms;
    }
}

/* Without error handling an endpoint cannot be closed with requests under way, and UCX ends the
 * process if its worker is destroyed then. With it, UCX 1.18 frees twice what the end of a request
 * on registered memory has put off; 1.13 does not. A network has to be told of the end: there it is
 * closed. */
static bool can_destroy(const struct weft_ucp *u)
{
    if (!u->peer_errors)
        return !u->taken;
    return !u->port.shared || u->taken <= u->receives || !weft_ucp_new_protocols();
}

/* What the worker takes along is complete, and nobody asks for it. On a network the other end would
 * take the end of the connection for a loss: only our word that we leave is waited for. */
static int end_worker(struct weft_ucp *u)
{
    bool idle = u->taken == u->receives;
    if (!u->worker)
        return 0;
    if (u->connected && !u->parted && !(u->todo & TODO_LOST) && !u->port.shared)
        (void)weft_ucp_tell(u, NEWS_BYE, 0);
    u->draining = true;
    if (u->port.shared || idle)
        drain(u);
    if (!can_destroy(u)) {
        keep_relic(u);
    } else {
        if (u->peer_errors)
            close_endpoint(u);
        for (int i = 0; i < u->remote_count; i++)
            if (u->remotes[i].rkey)
                ucp_rkey_destroy(u->remotes[i].rkey);
        ucp_worker_destroy(u->worker);
    }
    u->worker = NULL;
    u->ep = NULL;
    return 0;
}

/* The other end goes with everything that belongs to it. */
static void forget(struct weft_ucp *u)
{
    weft_ucp_lock(u);
    (void)weft_ucp_survive(u, end_worker);
    weft_ucp_survive_end(u);
    u->draining = false;
    for (int i = 0; i < WEFT_UCP_ENTRIES; i++)
        u->remotes[i] = (struct weft_ucp_remote){.alive = &no_key};
    u->remote_count = 0;
    free_slots(u);
    weft_ucp_give_back(u);
    weft_ucp_events_drop(u);
    u->waits = u->fetching = 0;
    u->notice = u->notices[++u->meetings % WEFT_UCP_NOTICES];
    memset(u->notice, 0, sizeof u->notices[0]);
    u->said = u->heard = u->parted = u->tried = u->linked = false;
    weft_ucp_disconnect(u);
    u->todo = 0;
}

/* Messages are taken from whichever end sends to the worker, so the next meeting gets another: what
 * the old partner still sends goes nowhere. address says it if there is none to be had. */
static void weft_ucp_leave(struct fabric *fabric)
{
    struct weft_ucp *u = (struct weft_ucp *)fabric;
    if (!u->tried)
        return;
    forget(u);
    (void)weft_ucp_renew(u);
}

static void weft_ucp_close(struct fabric *fabric)
{
    struct weft_ucp *u = (struct weft_ucp *)fabric;
    forget(u);
    weft_ucp_unexpose(u);
    weft_ucp_port_close(&u->port);
    weft_ucp_packets_free(u);
    free(u->events);
    free(u->requests);
    free(u);
}

static void *zeroed_lines(size_t bytes)
{
    void *memory = aligned_alloc(WEFT_UCP_LINE, bytes);
    return memory ? memset(memory, 0, bytes) : NULL;
}

/* Memory of ours for UCX's part of receives and of some atomics. */
static int requests_open(struct weft_ucp *u)
{
    ucp_context_attr_t attr = {.field_mask = UCP_ATTR_FIELD_REQUEST_SIZE};
    ucs_status_t status = ucp_context_query(u->port.context, &attr);
    if (status != UCS_OK)
        return weft_ucp_refuse(u, "the size of requests", status);
    /* An odd number of lines: the same field of each comes to another place in the cache. */
    size_t apart = (attr.request_size + WEFT_UCP_LINE - 1) / WEFT_UCP_LINE | 1;
    u->request_bytes = attr.request_size;
    u->requests = zeroed_lines(WEFT_UCP_SLOTS * apart * WEFT_UCP_LINE);
    if (!u->requests)
        return weft_ucp_host->fail(-ENOMEM, "ucp: no memory");
    for (size_t i = 0; i < WEFT_UCP_SLOTS; i++)
        u->slots[i].request = u->requests + i * apart * WEFT_UCP_LINE + u->request_bytes;
    return 0;
}

/* A user who asks for error handling has it, and no atomics where they exclude each other. So has a
 * caller that wants all there is: what cannot be closed at once stays, with UCX's threads, and no
 * process can be forked then. */
static void choose_errors(struct weft_ucp *u, const struct fabric_want *want)
{
    const unsigned all = (1U << VERBS) - 1;
    bool either = weft_ucp_new_protocols(), handled = u->tunes.errors_peer;
    handled |= want->verbs == all && !u->tunes.errors_none;
    u->port.atomics = !either || !handled;
    u->tunes.errors_none |= either && !handled && (!want->verbs || want->verbs & VERB(ATOMIC));
    u->peer_errors = u->tunes.errors_peer || (!u->tunes.errors_none && !u->port.unwatched);
}

static int weft_ucp_open(struct fabric **fabric, const struct fabric_want *want,
                         struct fabric_facts *facts)
{
    struct weft_ucp *u = zeroed_lines(sizeof *u);
    if (!u)
        return weft_ucp_host->fail(-ENOMEM, "ucp: no memory");
    u->fabric.ops = &weft_ucp_ops;
    u->facts = facts;
    u->looks = want->looks;
    u->sleeps = want->events;
    u->notice = u->notices[0];
    u->last = &u->first;
    u->send = (ucp_request_param_t){.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                                                    UCP_OP_ATTR_FIELD_USER_DATA |
                                                    UCP_OP_ATTR_FIELD_MEMORY_TYPE,
                                    .memory_type = UCS_MEMORY_TYPE_HOST,
                                    .cb.send = weft_ucp_slot_done};
    u->receive = weft_ucp_receive;
    u->stream = weft_ucp_stream_receive;
    free_slots(u);
    int status = weft_ucp_tune(u, want->tunes ? want->tunes : "");
    if (!status)
        status = weft_ucp_port_open(&u->port, want);
    if (status) {
        free(u);
        return status;
    }
    u->spins = u->port.shared ? SPINS : 1;
    choose_errors(u, want);
    weft_ucp_facts(&u->port, want, facts);
    if (u->port.places && facts->verbs & VERB(ATOMIC))
        weft_ucp_try_atomics(&u->port, facts);
    status =
        weft_ucp_events_grow(u) ? requests_open(u) : weft_ucp_host->fail(-ENOMEM, "ucp: no memory");
    if (!status)
        status = weft_ucp_renew(u);
    if (status)
        weft_ucp_close(&u->fabric);
    else
        *fabric = &u->fabric;
    return status;
}

/* ---- the table ---- */

#define SURVIVED(name)                                                                             \
    static int table_##name(struct fabric *fabric, const struct xfer *x)                           \
    {                                                                                              \
        struct weft_ucp *u = (struct weft_ucp *)fabric;                                            \
        return __builtin_expect(u->survives, 0) ? weft_ucp_survive_verb(u, weft_ucp_##name, x)     \
                                                : weft_ucp_##name(fabric, x);                      \
    }
SURVIVED(write)
SURVIVED(read)
SURVIVED(send)
SURVIVED(recv)
SURVIVED(atomic)
SURVIVED(am)
SURVIVED(tprobe)
SURVIVED(stream_send)
SURVIVED(stream_recv)
SURVIVED(flush)

static int table_poll(struct fabric *fabric, struct completion *completions, int max)
{
    struct weft_ucp *u = (struct weft_ucp *)fabric;
    return u->survives ? weft_ucp_survive_poll(u, completions, max)
                       : weft_ucp_poll(fabric, completions, max);
}

const struct fabric_ops weft_ucp_ops = {.abi = FABRIC_ABI,
                                        .name = "ucp",
                                        .what = "UCX's protocols, on transports that it chooses",
                                        .list = weft_ucp_list,
                                        .open = weft_ucp_open,
                                        .close = weft_ucp_close,
                                        .expose = weft_ucp_expose,
                                        .withdraw = weft_ucp_withdraw,
                                        .address = weft_ucp_address,
                                        .connect = weft_ucp_connect,
                                        .leave = weft_ucp_leave,
                                        .write = table_write,
                                        .read = table_read,
                                        .atomic = table_atomic,
                                        .am = table_am,
                                        .send = table_send,
                                        .recv = table_recv,
                                        .tsend = weft_ucp_tsend,
                                        .trecv = weft_ucp_trecv,
                                        .tprobe = table_tprobe,
                                        .stream_send = table_stream_send,
                                        .stream_recv = table_stream_recv,
                                        .flush = table_flush,
                                        .poll = table_poll,
                                        .event_fd = weft_ucp_event_fd,
                                        .arm = weft_ucp_arm};

/* ---- the module ---- */

/* What UCX would print we say in our own sentences; a user's own settings stay. */
static void quieten(const char *variable, const char *option, const char *value)
{
    if (!getenv(variable))
        ucs_global_opts_set_value(option, value);
}

__attribute__((visibility("default"))) const struct fabric_ops *
weft_fabric(const struct fabric_host *host);

const struct fabric_ops *weft_fabric(const struct fabric_host *host)
{
    if (host->abi != FABRIC_ABI)
        return NULL;
    weft_ucp_host = host;
    quieten("UCX_LOG_LEVEL", "LOG_LEVEL", "fatal");
    quieten("UCX_HANDLE_ERRORS", "HANDLE_ERRORS", "none");
    return &weft_ucp_ops;
}
