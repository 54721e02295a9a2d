/* SPDX-License-Identifier: BSD-3-Clause */
/* Doorbells, low-latency launch, and reading events. */
#include "fabric/cxi/queue.h"

enum { SLOT_UNITS = 2, WORDS = WEFT_C_CQ_CMD_SIZE / sizeof(uint64_t) };

bool weft_cxi_emit_lcid(struct weft_cxi_cq *cq, unsigned lcid)
{
    uint64_t command[WORDS] = {0}, empty[WORDS] = {0};
    /* Both together begin on a boundary of 128 bytes. */
    if (!weft_cxi_reserve(cq, WEFT_C_CMD_SIZE_128B))
        return false;
    cassini_put(command, c_cq_cmd__lcid, lcid);
    return weft_cxi_emit(cq, WEFT_C_CMD_TYPE_CQ, WEFT_C_CMD_CQ_LCID, command, sizeof command) &&
           weft_cxi_emit(cq, WEFT_C_CMD_TYPE_CQ, WEFT_C_CMD_CQ_NOOP, empty, sizeof empty);
}

/* The NIC takes whole slots. */
static void fill_slot(struct weft_cxi_cq *cq)
{
    if (cq->wp32 % SLOT_UNITS) {
        memset(cq->cmds32 + cq->wp32 * CXI_UNIT, 0, sizeof(uint64_t));
        weft_cxi_advance(cq, 1);
    }
}

void weft_cxi_ring(struct weft_cxi_cq *cq)
{
    if (cq->wp32 == cq->hw_wp32)
        return;
    fill_slot(cq);
    weft_cxi_fence();
    cq->hw_wp32 = cq->wp32;
    __atomic_store_n(cq->wp_addr, cq->wp32 / SLOT_UNITS, __ATOMIC_RELEASE);
    weft_cxi_fence();
}

static unsigned size_at(const struct weft_cxi_cq *cq, uint64_t unit)
{
    return cq->cmds32[unit * CXI_UNIT] >> 2 & 3;
}

/* Into the cell of a window that belongs to the slot, in words and in order. */
static void launch_slots(struct weft_cxi_cq *cq, uint8_t *window, uint64_t unit, unsigned slots)
{
    size_t cell = unit / SLOT_UNITS % CASSINI_LL_CELLS * WEFT_C_CQ_CMD_SIZE;
    volatile uint64_t *to = (volatile uint64_t *)(void *)(window + cell);
    const uint64_t *from = (const uint64_t *)(const void *)(cq->cmds32 + unit * CXI_UNIT);
    for (size_t i = 0; i < (size_t)slots * WORDS; i++)
        to[i] = from[i];
    cq->hw_wp32 = cq->wp32;
    weft_cxi_fence();
}

/* Units that the NIC has been told of and may not have read. */
static uint64_t ahead(const struct weft_cxi_cq *cq)
{
    uint64_t wp = cq->hw_wp32, rp = cq->rp32;
    return wp >= rp ? wp - rp : wp + cq->size32 - CXI_FIRST - rp;
}

/* A window has a cell for every 16th slot, and, as the ring leaves out the first four, for every
 * twelfth where it wraps: a launch must not overwrite one that was not taken yet. */
static bool cells_are_free(struct weft_cxi_cq *cq)
{
    enum { MOST = CASSINI_LL_CELLS / 2 * SLOT_UNITS };
    if (ahead(cq) > MOST)
        weft_cxi_look(cq);
    return ahead(cq) <= MOST;
}

void weft_cxi_launch(struct weft_cxi_cq *cq)
{
    uint64_t from = cq->hw_wp32;
    if (!cells_are_free(cq)) {
        weft_cxi_ring(cq);
        return;
    }
    fill_slot(cq);
    /* Up to the end of the ring, if just that is filled. */
    uint64_t to = cq->wp32 == CXI_FIRST && from != CXI_FIRST ? cq->size32 : cq->wp32;
    uint64_t slots = to > from ? (to - from) / SLOT_UNITS : 0;
    bool even = from / SLOT_UNITS % 2 == 0;
    weft_cxi_fence();
    if (slots == 1)
        launch_slots(cq, cq->ll_64, from, 1);
    else if (slots == 2 && even)
        launch_slots(cq, cq->ll_128a, from, 2);
    else if (slots == 3 && !even && !cq->cmds32[from * CXI_UNIT] &&
             size_at(cq, from + SLOT_UNITS) == WEFT_C_CMD_SIZE_128B)
        launch_slots(cq, cq->ll_128u, from + SLOT_UNITS, 2); /* the NIC skips the empty slot */
    else
        weft_cxi_ring(cq);
}

/* ---- events ---- */

/* Clears what was read, and says so: in small parts, because an operation may be timed meanwhile.
 */
enum { PARTS = 64 };

static void give_back(struct weft_cxi_eq *eq)
{
    uint32_t from = eq->prev_rd_offset, to = eq->rd_offset;
    if (from <= to) {
        memset(eq->events + from, 0, to - from);
    } else {
        memset(eq->events + from, 0, eq->byte_size - from);
        memset(eq->events + CASSINI_EQ_BLOCK, 0, to - CASSINI_EQ_BLOCK);
    }
    eq->prev_rd_offset = to;
    cassini_put(eq, cxi_eq__rd_ptr, to / CASSINI_EQ_BLOCK);
    weft_cxi_fence();
    __atomic_store_n(eq->sw_state_addr, eq->sw_state, __ATOMIC_RELEASE);
}

static uint32_t unread(const struct weft_cxi_eq *eq)
{
    uint32_t from = eq->prev_rd_offset, to = eq->rd_offset;
    return from <= to ? to - from : to + eq->byte_size - CASSINI_EQ_BLOCK - from;
}

/* The length of the event that is next, 0: none. */
static unsigned next_length(const struct weft_cxi_eq *eq)
{
    const uint8_t *at = eq->events + eq->rd_offset;
    unsigned kind = __atomic_load_n(at + 14, __ATOMIC_RELAXED), length = 8U << (kind & 3);
    /* The code in the last byte comes last. */
    return kind & 3 && __atomic_load_n(at + length - 1, __ATOMIC_ACQUIRE) & 0x3f ? length : 0;
}

bool weft_cxi_event(struct weft_cxi_eq *eq, uint8_t event[64])
{
    for (;;) {
        unsigned length = next_length(eq);
        if (!length)
            return false;
        memcpy(event, eq->events + eq->rd_offset, length);
        eq->rd_offset += length;
        if (eq->rd_offset >= eq->byte_size)
            eq->rd_offset = CASSINI_EQ_BLOCK;
        if (unread(eq) >= eq->byte_size / PARTS)
            give_back(eq);
        if (cassini_get(event, c_event_initiator_short__event_type) != WEFT_C_EVENT_NULL_EVENT)
            return true;
    }
}

bool weft_cxi_has_event(const struct weft_cxi_eq *eq)
{
    return next_length(eq);
}

void weft_cxi_listen(struct weft_cxi_eq *eq)
{
    cassini_put(eq, cxi_eq__event_int_disable, 0);
    give_back(eq);
    /* The NIC writes an event and then looks whether to interrupt; we say so and then look. */
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

bool weft_cxi_dropped(const struct weft_cxi_eq *eq)
{
    return __atomic_load_n(eq->events + 15, __ATOMIC_RELAXED) & 1;
}

void weft_cxi_forgive(struct weft_cxi_eq *eq)
{
    cassini_put(eq, cxi_eq__event_drop_seq_no,
                cassini_get(eq->events, c_eq_status__event_drop_seq_no));
    give_back(eq);
    __atomic_fetch_and(eq->events + 15, (uint8_t)~1U, __ATOMIC_RELAXED);
}
