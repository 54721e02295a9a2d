/* SPDX-License-Identifier: BSD-3-Clause */
/* Command queues and event queues of a Cassini, the side of software. A command queue is a ring of
 * slots of 64 bytes that hold one or two commands each; the NIC is told how far it is filled by a
 * doorbell, or gets a short command in the doorbell's page itself (low-latency launch). An event
 * queue is memory that the NIC writes and software clears. */
#ifndef WEFT_FABRIC_CXI_QUEUE_H
#define WEFT_FABRIC_CXI_QUEUE_H

#include "fabric/cxi/cassini.h"

/* A ring counts in units of 32 bytes. */
enum {
    CXI_UNIT = 32,
    CXI_FIRST = 2 * WEFT_C_CQ_FIRST_WR_PTR, /* the status is before it */
    CXI_KEEP = 2,                           /* units that stay free */
    CXI_LOOK = 16                           /* with fewer than that the NIC's own pointer is read */
};

/* Stores before it are seen by a device before stores after it. */
static inline void weft_cxi_fence(void)
{
#if defined(__x86_64__)
    __asm__ volatile("sfence" ::: "memory");
#elif defined(__aarch64__)
    __asm__ volatile("dmb oshst" ::: "memory");
#else
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

/* Units of a command of a size of WEFT_C_CMD_SIZE_*. */
static inline unsigned weft_cxi_units(unsigned size)
{
    return 1U << size;
}

/* The size of the smallest command with so many bytes. */
static inline unsigned weft_cxi_size_for(size_t bytes)
{
    return bytes <= 32    ? WEFT_C_CMD_SIZE_32B
           : bytes <= 64  ? WEFT_C_CMD_SIZE_64B
           : bytes <= 128 ? WEFT_C_CMD_SIZE_128B
                          : WEFT_C_CMD_SIZE_256B;
}

static inline long weft_cxi_between(const struct weft_cxi_cq *cq)
{
    long wp = (long)cq->wp32, rp = (long)cq->rp32;
    return wp >= rp ? (long)cq->size32 - wp + rp - CXI_KEEP - CXI_FIRST : rp - wp - CXI_KEEP;
}

/* How far the NIC has read. */
static inline void weft_cxi_look(struct weft_cxi_cq *cq)
{
    const uint16_t *read = (const uint16_t *)(const void *)cq->cmds32;
    cq->rp32 = 2 * (uint64_t)__atomic_load_n(read, __ATOMIC_ACQUIRE);
}

/* Units that can be written now. */
static inline long weft_cxi_room(struct weft_cxi_cq *cq)
{
    long room = weft_cxi_between(cq);
    if (room >= CXI_LOOK)
        return room;
    weft_cxi_look(cq);
    return weft_cxi_between(cq);
}

static inline void weft_cxi_advance(struct weft_cxi_cq *cq, unsigned units)
{
    cq->wp32 += units;
    if (cq->wp32 >= cq->size32)
        cq->wp32 = CXI_FIRST;
}

/* Where a command of this size goes, behind as many empty ones as its alignment takes; NULL: no
 * room. */
static inline uint8_t *weft_cxi_reserve(struct weft_cxi_cq *cq, unsigned size)
{
    unsigned units = weft_cxi_units(size), pad = (unsigned)-cq->wp32 % units;
    if (weft_cxi_room(cq) < (long)units + (long)pad)
        return NULL;
    for (unsigned i = 0; i < pad; i++)
        memset(cq->cmds32 + (cq->wp32 + i) * CXI_UNIT, 0, sizeof(uint64_t));
    weft_cxi_advance(cq, pad);
    return cq->cmds32 + cq->wp32 * CXI_UNIT;
}

/* A command into the ring, with its first byte; false: no room. */
static inline bool weft_cxi_emit(struct weft_cxi_cq *cq, unsigned type, unsigned opcode,
                                 const void *command, size_t bytes)
{
    unsigned size = weft_cxi_size_for(bytes);
    uint8_t *at = weft_cxi_reserve(cq, size);
    if (!at)
        return false;
    memcpy(at, command, bytes);
    *at = (uint8_t)(type | size << 2 | opcode << 4);
    weft_cxi_advance(cq, weft_cxi_units(size));
    return true;
}

/* ---- queue.c ---- */

/* Another profile for what follows in the queue. */
bool weft_cxi_emit_lcid(struct weft_cxi_cq *cq, unsigned lcid);

/* Tells the NIC of all that was emitted: by the doorbell; in the doorbell's page where that takes
 * it, else by the doorbell. */
void weft_cxi_ring(struct weft_cxi_cq *cq);
void weft_cxi_launch(struct weft_cxi_cq *cq);

/* The next event, copied whole; false: none. What has been read is given back to the NIC now and
 * then. */
bool weft_cxi_event(struct weft_cxi_eq *eq, uint8_t event[64]);

/* Is there an event to read? */
bool weft_cxi_has_event(const struct weft_cxi_eq *eq);

/* All that was read is given back, and what comes now makes an interrupt. */
void weft_cxi_listen(struct weft_cxi_eq *eq);

/* Has the NIC dropped events, because the queue was full? */
bool weft_cxi_dropped(const struct weft_cxi_eq *eq);
/* Tells the NIC that this is known. */
void weft_cxi_forgive(struct weft_cxi_eq *eq);

#endif
