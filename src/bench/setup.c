/* SPDX-License-Identifier: BSD-3-Clause */
/* What every run needs before and after measuring: memory, a connected fabric, and a last word when
 * it fails. */
#include "bench/setup.h"
#include "core/clock.h"
#include "fabric/choose.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { POPULATE_BYTES = 64 << 20, GRACE_MS = 200 };

int setup_open(struct run *run, const struct fabric_ops *fabric, const struct fabric_want *want)
{
    struct keepalive keepalive;
    run->fabric = fabric;
    keepalive_begin(&keepalive, run->peer, KEEPALIVE_LIBRARY_MS);
    int status = fabric_open(fabric, &run->handle, want, &run->facts);
    keepalive_end(&keepalive);
    return status;
}

static int populate(struct run *run)
{
    struct region *buffer = &run->buffer;
    int status = 0;
    for (size_t at = 0; at < buffer->mapped && !status; at += POPULATE_BYTES) {
        size_t left = buffer->mapped - at;
        status = buffer->kind->populate(buffer, at, left < POPULATE_BYTES ? left : POPULATE_BYTES);
        if (!status)
            status = peer_alive(run->peer);
    }
    return status;
}

int setup_can_gpu(const struct fabric_facts *facts, const char *form, unsigned verbs,
                  enum memory_vendor vendor)
{
    if (vendor == MEMORY_CPU)
        return 0;
    if (!(facts->gpus & 1U << vendor))
        return fail(-ENOTSUP, "%s does not reach memory of %s GPUs: %s", form,
                    memory_vendors[vendor - 1], facts->why_no_gpu);
    for (unsigned verb = 0; verb < VERBS; verb++)
        if (verbs & 1U << verb && !(facts->gpu_verbs & 1U << verb))
            return fail(-ENOTSUP, "%s cannot %s on GPU memory", form,
                        fabric_verb_name((enum verb)verb));
    return 0;
}

/* Opening a GPU can take seconds. */
static int alloc_watched(struct run *run, size_t length, const struct memory_ops *kind)
{
    struct keepalive keepalive;
    keepalive_begin(&keepalive, run->peer, KEEPALIVE_LIBRARY_MS);
    int status = kind->alloc(&run->buffer, length, kind);
    keepalive_end(&keepalive);
    return status;
}

/* The fabric may open it for itself. */
static int expose_watched(struct run *run, struct msg *key)
{
    struct keepalive keepalive;
    keepalive_begin(&keepalive, run->peer, KEEPALIVE_LIBRARY_MS);
    int status = run->fabric->expose(run->handle, &run->buffer, key);
    keepalive_end(&keepalive);
    return status;
}

int setup_expose(struct run *run, struct msg *key)
{
    return run->buffer.gpu ? expose_watched(run, key)
                           : run->fabric->expose(run->handle, &run->buffer, key);
}

int setup_place(struct run *run, const char *memory, size_t length)
{
    const struct memory_ops *kind;
    int status = memory_choose(memory, &kind, &run->buffer.device);
    if (status)
        return status;
    status = setup_can_gpu(&run->facts, run->facts.form, 0, kind->vendor);
    if (status)
        return status;
    if (run->facts.own_memory) {
        if (kind != &memory_host)
            return fail(-ENOTSUP, "fabric %s places the memory itself, and not in %s",
                        run->fabric->name, kind->gpu ? "a GPU" : "huge pages");
        run->buffer = (struct region){.kind = kind, .length = length, .fd = -1};
        return 0;
    }
    status = kind->gpu ? alloc_watched(run, length, kind) : kind->alloc(&run->buffer, length, kind);
    return status ? status : populate(run);
}

int setup_free(struct run *run, int status)
{
    if (setup_any_gpu(run) && !status)
        status = peer_barrier(run->peer, "released", NULL, NULL);
    if (run->buffer.address && !run->facts.own_memory)
        run->buffer.kind->free(&run->buffer);
    return status;
}

/* Where one end alone has its memory on a GPU, the other opens that GPU here. */
static int connect_watched(struct run *run, const struct msg *theirs, const struct msg *their_key)
{
    struct keepalive keepalive;
    bool gpu = setup_any_gpu(run);
    if (gpu)
        keepalive_begin(&keepalive, run->peer, KEEPALIVE_LIBRARY_MS);
    const struct fabric_meeting meeting = {
        .nonce = run->nonce, .address = theirs, .keys = their_key, .count = 1};
    int status = run->fabric->connect(run->handle, &meeting, &run->remote);
    if (gpu)
        keepalive_end(&keepalive);
    return status;
}

int setup_connect(struct run *run, const struct msg *key)
{
    struct msg mine, theirs, their_key;
    int status = run->fabric->address(run->handle, &mine);
    if (!status)
        status = peer_swap(run->peer, &mine, &theirs);
    if (!status)
        status = peer_swap(run->peer, key, &their_key);
    if (status)
        return status;
    uint64_t since_ms = clock_ms();
    for (;;) {
        status = connect_watched(run, &theirs, &their_key);
        if (status == DONE)
            break;
        if (!status)
            status = peer_alive(run->peer);
        if (!status && clock_ms() - since_ms > run->peer->timeout_ms)
            status = fail(-ETIMEDOUT, "the fabric did not connect within %g s",
                          (double)run->peer->timeout_ms / 1000);
        if (status)
            return status;
        sched_yield();
    }
    if (!run->facts.alone && run->remote.length < run->buffer.length)
        return fail(-EPROTO, "the %s offers %zu bytes, %zu are needed", run->peer->other,
                    run->remote.length, run->buffer.length);
    return 0;
}

int setup_compare(struct run *run)
{
    struct msg mine, theirs;
    int status = cpu_describe(&mine);
    if (!status)
        status = peer_swap(run->peer, &mine, &theirs);
    if (status)
        return status;
    run->share_cpu = cpu_shared(&mine, &theirs);
    run->roams = cpu_roams(&mine, &theirs);
    if (run->share_cpu)
        warn("both ends run on one CPU: every hop waits for a switch between them");
    return 0;
}

/* ---- around the measurement ---- */

int setup_awake(void)
{
    int32_t latency_us = 0;
    int fd = open("/dev/cpu_dma_latency", O_WRONLY | O_CLOEXEC);
    if (fd >= 0 && write(fd, &latency_us, sizeof latency_us) != sizeof latency_us) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* To whoever meets it first, the other end's death looks like a fault of the fabric: wait a moment
 * for the control connection to tell. */
static int real_reason(struct peer *peer, int status)
{
    char kept[1024];
    uint64_t since_ms = clock_ms();
    int gone = 0;
    snprintf(kept, sizeof kept, "%s", fail_reason());
    while (!gone && clock_ms() - since_ms < GRACE_MS) {
        gone = peer_alive(peer);
        if (!gone)
            poll(NULL, 0, 5);
    }
    return gone == -ECONNRESET || gone == -ETIMEDOUT ? gone : fail(status, "%s", kept);
}

int setup_leave(struct run *run, int status)
{
    if (!status || run->left)
        return status;
    if (status != -EINTR && status != -ECONNRESET && status != -ETIMEDOUT)
        status = real_reason(run->peer, status);
    peer_end(run->peer, status, fail_reason());
    run->left = true;
    return status;
}
