/* SPDX-License-Identifier: BSD-3-Clause */
/* Long operations: a fabric may move gigabytes in one call, for seconds, and the other end would
 * take the silence for death. The fabric's table is replaced by one that calls it while a second
 * thread sends heartbeats. */
#include "bench/run.h"

enum { LONGEST_BYTES = 64 << 20, SLOWEST_BYTES_PER_MS = 10000 };

static _Thread_local struct {
    const struct fabric_ops *ops;
    struct fabric_ops table;
    struct keepalive keepalive;
} now;

#define ATTENDED(name)                                                                             \
    static int attended_##name(struct fabric *fabric, const struct xfer *xfer)                     \
    {                                                                                              \
        keepalive_work(&now.keepalive);                                                            \
        int got = now.ops->name(fabric, xfer);                                                     \
        keepalive_rest(&now.keepalive);                                                            \
        return got;                                                                                \
    }
ATTENDED(write)
ATTENDED(read)
ATTENDED(send)
ATTENDED(recv)
ATTENDED(am)

static int attended_poll(struct fabric *fabric, struct completion *completions, int max)
{
    keepalive_work(&now.keepalive);
    int got = now.ops->poll(fabric, completions, max);
    keepalive_rest(&now.keepalive);
    return got;
}

void attend_begin(struct run *run)
{
    struct session *s = run->session;
    uint64_t most_ms = KEEPALIVE_LIBRARY_MS + run->size / SLOWEST_BYTES_PER_MS;
    attend_end(run);
    if (run->size < LONGEST_BYTES || s->facts.alone)
        return;
    now.ops = s->fabric;
    now.table = *s->fabric;
    now.table.write = attended_write;
    now.table.read = attended_read;
    now.table.send = attended_send;
    now.table.recv = attended_recv;
    now.table.am = attended_am;
    now.table.poll = attended_poll;
    keepalive_begin(&now.keepalive, s->peer, (unsigned)most_ms);
    keepalive_rest(&now.keepalive);
    run->fabric = &now.table;
}

void attend_end(struct run *run)
{
    if (run->fabric != run->session->fabric)
        keepalive_end(&now.keepalive);
    run->fabric = run->session->fabric;
}
