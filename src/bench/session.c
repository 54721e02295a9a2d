/* SPDX-License-Identifier: BSD-3-Clause */
/* What two ends hold while they measure: a fabric opened once, memory, a connection. Every step is
 * made only if what is there does not do. */
#include "bench/run.h"
#include "core/cpu.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { POPULATE_BYTES = 64 << 20, GRACE_MS = 1000, WORK_MS = 100 };

/* ---- around the measurement ---- */

/* Keeps the CPU's deep sleep states away, where that is allowed: a descriptor to close, or -1. */
static int stay_awake(void)
{
    int32_t latency_us = 0;
    int fd = open("/dev/cpu_dma_latency", O_WRONLY | O_CLOEXEC);
    if (fd >= 0 && write(fd, &latency_us, sizeof latency_us) != sizeof latency_us) {
        close(fd);
        fd = -1;
    }
    return fd;
}

void session_init(struct session *s)
{
    *s = (struct session){.why = "", .buffer = {.fd = -1}, .cpu = {.awake = stay_awake()}};
}

int session_reason(struct session *s, int status)
{
    struct peer *peer = s->peer;
    char kept[1024];
    uint64_t since_ms = clock_ms();
    int gone = 0;
    if (status == -EINTR || status == -ETIMEDOUT)
        return status;
    snprintf(kept, sizeof kept, "%s", fail_reason());
    while (!gone && clock_ms() - since_ms < GRACE_MS) {
        gone = peer_alive(peer);
        if (!gone)
            poll(NULL, 0, 5);
    }
    return gone == -ECONNRESET || gone == -ETIMEDOUT ? gone : fail(status, "%s", kept);
}

int session_leave(struct session *s, int status)
{
    if (!status || s->left || s->refused || !s->peer)
        return status;
    status = session_reason(s, status);
    peer_end(s->peer, status, fail_reason());
    s->left = true;
    return status;
}

/* ---- the fabric ---- */

/* Signs of life meanwhile, if there is a peer: a vendor's library can take seconds. */
static void watch(const struct session *s, struct keepalive *keepalive)
{
    if (s->peer)
        keepalive_begin(keepalive, s->peer, KEEPALIVE_LIBRARY_MS);
}

static void unwatch(const struct session *s, struct keepalive *keepalive)
{
    if (s->peer)
        keepalive_end(keepalive);
}

static bool same_device(const struct fabric_choice *a, const struct fabric_choice *b)
{
    return a->ops == b->ops && strcmp(a->device, b->device) == 0;
}

/* Is what is open good for this too? */
static bool covers(const struct session *s, const struct opened *wanted)
{
    const struct opened *have = &s->opened;
    if (!s->handle || !same_device(&have->choice, &wanted->choice))
        return false;
    return !(wanted->verbs & ~have->verbs) && !(wanted->gpus & ~have->gpus) &&
           (have->looks || !wanted->looks) && (have->events || !wanted->events) &&
           have->server == wanted->server && have->threads >= wanted->threads &&
           have->service == wanted->service && strcmp(have->tunes, wanted->tunes) == 0 &&
           (!s->facts.follows_here || strcmp(have->here, wanted->here) == 0);
}

/* Also a meeting that failed half way is over. */
void session_unlink(struct session *s)
{
    if (s->handle)
        s->fabric->leave(s->handle);
    s->connected = false;
}

/* Gigabytes take a while, and the other end may wait for the next run. */
static void free_memory(struct session *s)
{
    struct keepalive keepalive;
    bool large = s->peer && s->buffer.length >= POPULATE_BYTES;
    if (large)
        watch(s, &keepalive);
    if (s->exposed)
        s->fabric->withdraw(s->handle, &s->buffer);
    s->exposed = false;
    if (s->buffer.address && s->buffer.kind && (s->buffer.gpu || !s->facts.own_memory))
        s->buffer.kind->free(&s->buffer);
    s->buffer = (struct region){.fd = -1};
    if (large)
        unwatch(s, &keepalive);
}

/* The meeting ends first: the other end may have closed already, and must not be told anything. */
static void close_fabric(struct session *s)
{
    session_unlink(s);
    if (s->exposed)
        s->fabric->withdraw(s->handle, &s->buffer);
    s->exposed = false;
    if (s->handle)
        s->fabric->close(s->handle);
    s->handle = NULL;
}

void session_part(struct session *s)
{
    threads_end(s);
    session_unlink(s);
    free_memory(s);
    s->peer = NULL;
    s->left = s->refused = false;
}

void session_turn(struct session *s, struct peer *peer)
{
    threads_end(s);
    session_unlink(s);
    s->peer = peer;
    s->left = s->refused = false;
}

int session_open_fabric(struct session *s, const struct opened *wanted)
{
    struct fabric_want want = {.device = wanted->choice.device,
                               .here = wanted->here,
                               .service = wanted->service,
                               .verbs = wanted->verbs,
                               .hints = (1U << HINTS) - 1,
                               .gpus = wanted->gpus,
                               .threads = wanted->threads,
                               .server = wanted->server,
                               .looks = wanted->looks,
                               .events = wanted->events};
    struct keepalive keepalive;
    if (covers(s, wanted))
        return 0;
    close_fabric(s);
    free_memory(s);
    s->opened = *wanted;
    want.device = s->opened.choice.device;
    want.here = s->opened.here;
    want.tunes = s->opened.tunes;
    s->fabric = wanted->choice.ops;
    watch(s, &keepalive);
    int status = fabric_open(s->fabric, &s->handle, &want, &s->facts);
    unwatch(s, &keepalive);
    if (status)
        s->handle = NULL;
    return status;
}

/* ---- memory ---- */

static int populate(struct session *s)
{
    struct region *buffer = &s->buffer;
    int status = 0;
    for (size_t at = 0; at < buffer->mapped && !status; at += POPULATE_BYTES) {
        size_t left = buffer->mapped - at;
        status = buffer->kind->populate(buffer, at, left < POPULATE_BYTES ? left : POPULATE_BYTES);
        if (!status)
            status = peer_step(s->peer);
    }
    return status;
}

static int place(struct session *s, const struct memory_ops *kind, unsigned device, size_t length)
{
    struct keepalive keepalive;
    s->buffer.device = device;
    if (s->facts.own_memory && !kind->gpu) {
        if (kind != &memory_host)
            return fail(-ENOTSUP, "fabric %s places the memory itself, and not in huge pages",
                        s->fabric->name);
        s->buffer = (struct region){.kind = kind, .length = length, .fd = -1};
        return 0;
    }
    if (kind->gpu)
        watch(s, &keepalive);
    int status = kind->alloc(&s->buffer, length, kind);
    if (kind->gpu)
        unwatch(s, &keepalive);
    return status ? status : populate(s);
}

/* A buffer that is there and exposed is used again if it is long enough and of the same kind. */
int session_place(struct session *s, const char *memory, size_t length)
{
    struct keepalive keepalive;
    const struct memory_ops *kind;
    struct msg key;
    unsigned device;
    int status = memory_choose(memory, &kind, &device);
    if (status)
        return status;
    s->needed = length;
    if (s->exposed && s->buffer.length >= length && s->buffer.kind == kind &&
        s->buffer.device == device)
        return 0;
    session_unlink(s);
    free_memory(s);
    status = place(s, kind, device, length);
    if (status) {
        free_memory(s);
        return status;
    }
    watch(s, &keepalive);
    status = s->fabric->expose(s->handle, &s->buffer, &key);
    unwatch(s, &keepalive);
    s->exposed = !status;
    if (status)
        free_memory(s);
    return status;
}

/* ---- the connection ---- */

/* Do the two ends have to take turns on one CPU? */
static int compare_cpus(struct session *s)
{
    struct msg mine, theirs;
    int status = cpu_describe(&mine);
    if (!status)
        status = peer_swap(s->peer, &mine, &theirs);
    if (status)
        return status;
    s->cpu.yields = cpu_shared(&mine, &theirs);
    s->cpu.roams = cpu_roams(&mine, &theirs);
    if (s->cpu.yields)
        warn("both ends run on one CPU: every hop waits for a switch between them");
    return 0;
}

/* What takes long in one call is work, not waiting. */
static int connect_once(struct session *s, const struct fabric_meeting *meeting,
                        struct keepalive *keepalive, uint64_t *since_ms)
{
    uint64_t begun_ms = clock_ms();
    keepalive_work(keepalive);
    int status = s->fabric->connect(s->handle, meeting, &s->remote);
    keepalive_rest(keepalive);
    uint64_t took_ms = clock_ms() - begun_ms;
    if (took_ms > WORK_MS)
        *since_ms += took_ms;
    return status;
}

static int connect_attended(struct session *s, const struct fabric_meeting *meeting,
                            struct keepalive *keepalive)
{
    uint64_t since_ms = clock_ms();
    for (;;) {
        int status = connect_once(s, meeting, keepalive, &since_ms);
        if (status == DONE)
            return 0;
        if (!status)
            status = peer_alive(s->peer);
        if (!status && clock_ms() - since_ms > s->peer->timeout_ms)
            status = fail(-ETIMEDOUT, "the fabric did not connect within %g s",
                          (double)s->peer->timeout_ms / 1000);
        if (status)
            return status;
        sched_yield();
    }
}

/* Gigabytes may have to be mapped, or the other end's GPU opened. */
static int connect_fully(struct session *s, const struct fabric_meeting *meeting)
{
    struct keepalive keepalive;
    keepalive_begin(&keepalive, s->peer, KEEPALIVE_LIBRARY_MS);
    keepalive_rest(&keepalive);
    int status = connect_attended(s, meeting, &keepalive);
    keepalive_end(&keepalive);
    return status;
}

int session_connect(struct session *s)
{
    struct msg mine, key, theirs, their_key;
    /* A stranger must not make a server dial somebody else. */
    bool stranger = s->peer->rank == PEER_SERVER && !s->peer->trusted;
    struct fabric_meeting meeting = {.nonce = s->nonce,
                                     .address = &theirs,
                                     .keys = &their_key,
                                     .count = 1,
                                     .there = stranger ? s->peer->there : NULL,
                                     .timeout_ms = s->peer->timeout_ms};
    if (s->connected)
        return 0;
    int status = compare_cpus(s);
    /* Address and key are good for one meeting. */
    if (!status)
        status = s->fabric->expose(s->handle, &s->buffer, &key);
    if (!status)
        status = s->fabric->address(s->handle, &mine);
    if (!status)
        status = peer_swap(s->peer, &mine, &theirs);
    if (!status)
        status = peer_swap(s->peer, &key, &their_key);
    if (!status)
        status = connect_fully(s, &meeting);
    s->connected = !status;
    if (!status && !s->facts.alone && s->remote.length < s->needed)
        return fail(-EPROTO, "the %s offers %zu bytes, %zu are needed", s->peer->other,
                    s->remote.length, s->needed);
    return status;
}

/* ---- the end ---- */

/* A GPU's memory may go only when the other end has let go of it: both close, meet, and only then
 * free. After a failure they do not meet. */
int session_release(struct session *s, int status)
{
    bool meets = s->exposed && session_any_gpu(s) && !status && !s->refused && s->peer;
    threads_end(s);
    close_fabric(s);
    if (meets)
        status = peer_barrier(s->peer, "released", NULL, NULL);
    free_memory(s);
    return status;
}

int session_close(struct session *s, int status)
{
    status = session_leave(s, session_release(s, status));
    if (s->cpu.awake >= 0)
        close(s->cpu.awake);
    s->cpu.awake = -1;
    free(s->cpu.near);
    s->cpu.near = NULL;
    return status;
}

void session_device(const struct session *s, char *text, size_t room)
{
    const struct fabric_choice *choice = &s->opened.choice;
    snprintf(text, room, "%s%s%s", choice->ops->name, *choice->device ? ":" : "", choice->device);
}
