/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory as the NIC sees it, event queues, counters. */
#include "nic.h"

#include <time.h>

char *nic_memory(const struct nic *nic, unsigned lac, uint64_t iova, uint64_t length)
{
    for (int i = 0; i < MDS; i++) {
        const struct md *md = nic->mds[i];
        if (!md || md->pub.lac != lac || iova < md->pub.iova || length > md->pub.len ||
            iova - md->pub.iova > md->pub.len - length)
            continue;
        return md->memory + (iova - md->pub.iova);
    }
    return NULL;
}

struct eq *nic_eq(const struct nic *nic, unsigned number)
{
    return number && number < EQS ? nic->eqs[number] : NULL;
}

struct ct *nic_ct(const struct nic *nic, unsigned number)
{
    return number && number < CTS ? nic->cts[number] : NULL;
}

/* ---- events ---- */

/* What software has said last. */
static struct weft_cxi_eq said(const struct eq *eq)
{
    return (struct weft_cxi_eq){.sw_state = __atomic_load_n(&eq->state, __ATOMIC_ACQUIRE)};
}

/* Says so until software answers with the same number: to clear the status is not enough. */
static void say_dropped(struct eq *eq)
{
    struct timespec now;
    uint8_t *status = eq->pub.events;
    clock_gettime(CLOCK_REALTIME, &now);
    cassini_put(status, c_eq_status__timestamp_ns, (uint64_t)now.tv_nsec);
    cassini_put(status, c_eq_status__timestamp_sec, (uint64_t)now.tv_sec);
    cassini_put(status, c_eq_status__timestamp_ns_cpy, (uint64_t)now.tv_nsec);
    cassini_put(status, c_eq_status__timestamp_sec_cpy, (uint64_t)now.tv_sec);
    __atomic_store_n(&status[15], (uint8_t)(1 | eq->drop_number << 4), __ATOMIC_RELEASE);
}

static bool acknowledged(const struct eq *eq)
{
    const struct weft_cxi_eq state = said(eq);
    return cassini_get(&state, cxi_eq__event_drop_seq_no) == eq->drop_number;
}

static void drop(struct eq *eq)
{
    if (!eq->dropped || acknowledged(eq))
        eq->drop_number ^= 1;
    eq->dropped = true;
    say_dropped(eq);
}

/* Free blocks, all but the one that tells full from empty. */
static uint32_t room(const struct eq *eq)
{
    uint32_t blocks = eq->limit / CASSINI_EQ_BLOCK - 1, wr = eq->wr / CASSINI_EQ_BLOCK;
    uint32_t rd = (uint32_t)(__atomic_load_n(&eq->state, __ATOMIC_ACQUIRE) & 0x3ffffff);
    uint32_t used = wr >= rd ? wr - rd : wr + blocks - rd;
    return used + 1 < blocks ? blocks - used - 1 : 0;
}

static void store(struct eq *eq, const uint8_t *event, size_t length)
{
    uint8_t *at = eq->pub.events + eq->wr;
    /* Software has to have cleared it. */
    for (size_t i = 0; i < length; i++)
        if (__atomic_load_n(at + i, __ATOMIC_RELAXED)) {
            drop(eq);
            return;
        }
    memcpy(at, event, length - 1);
    __atomic_store_n(at + length - 1, event[length - 1], __ATOMIC_RELEASE);
    eq->wr += (uint32_t)length;
    if (eq->wr >= eq->limit)
        eq->wr = CASSINI_EQ_BLOCK;
}

/* No event crosses a block: empty ones fill it. */
static void pad(struct eq *eq, size_t length)
{
    while (eq->wr % CASSINI_EQ_BLOCK && eq->wr % CASSINI_EQ_BLOCK + length > CASSINI_EQ_BLOCK) {
        size_t left = CASSINI_EQ_BLOCK - eq->wr % CASSINI_EQ_BLOCK;
        size_t step = left >= 32 && eq->wr % 32 == 0 ? 32 : 16;
        uint8_t empty[32] = {0};
        cassini_put(empty, c_event_initiator_short__event_size, step == 32 ? 2 : 1);
        cassini_put(empty, c_event_initiator_short__event_type, WEFT_C_EVENT_NULL_EVENT);
        empty[step - 1] |= WEFT_C_RC_OK;
        store(eq, empty, step);
    }
}

/* For the first event after those that software has said to have read. */
static void interrupt(struct eq *eq, uint32_t from)
{
    struct weft_cxil_wait_obj *wait = eq->wait;
    if (!wait)
        return;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    const struct weft_cxi_eq state = said(eq);
    if (wait->raised || cassini_get(&state, cxi_eq__event_int_disable) ||
        cassini_get(&state, cxi_eq__rd_ptr) != from / CASSINI_EQ_BLOCK)
        return;
    wait->raised = send(wait->hardware, "", 1, MSG_OOB | MSG_NOSIGNAL) == 1;
}

void event_write(struct eq *eq, uint8_t *event, size_t length, unsigned type, unsigned code)
{
    if (!eq)
        return;
    cassini_put(event, c_event_initiator_short__event_size,
                length == 16   ? 1
                : length == 32 ? 2
                               : 3);
    cassini_put(event, c_event_initiator_short__event_type, type);
    event[length - 1] = (uint8_t)((event[length - 1] & 0xc0) | (code & 0x3f));
    if (eq->dropped && !acknowledged(eq))
        say_dropped(eq);
    if (room(eq) < 2 || (type != WEFT_C_EVENT_LINK && fault("overflow"))) {
        drop(eq);
        return;
    }
    uint32_t from = eq->wr;
    pad(eq, length);
    store(eq, event, length);
    interrupt(eq, from);
}

void event_initiator(struct eq *eq, unsigned type, unsigned code, uint64_t user_ptr,
                     uint32_t mlength, bool rendezvous)
{
    uint8_t event[32] = {0};
    if (!eq)
        return;
    cassini_put(event, c_event_initiator_short__user_ptr, user_ptr);
    cassini_put(event, c_event_initiator_short__mlength, mlength);
    cassini_put(event, c_event_initiator_short__rendezvous, rendezvous);
    cassini_put(event, c_event_initiator_short__tgt_error, code != WEFT_C_RC_OK);
    event_write(eq, event, eq->initiator_long ? 32 : 16, type, code);
}

/* ---- counters ---- */

void ct_fire(struct ct *ct)
{
    for (unsigned i = 0; i < ct->trigger_count;) {
        uint8_t event[16] = {0};
        if (ct->success < ct->triggers[i].threshold) {
            i++;
            continue;
        }
        cassini_put(event, c_event_trig_op_short__threshold, ct->triggers[i].threshold);
        cassini_put(event, c_event_trig_op_short__ct_handle, ct->pub.ctn);
        event_write(ct->triggers[i].eq, event, sizeof event, WEFT_C_EVENT_TRIGGERED_OP,
                    WEFT_C_RC_OK);
        ct->triggers[i] = ct->triggers[--ct->trigger_count];
    }
}

void ct_add(struct ct *ct, bool success)
{
    if (!ct)
        return;
    if (success)
        ct->success++;
    else
        ct->failure++;
    ct_fire(ct);
}

/* What is stored there counts once, also a second time the same and also 0. */
static bool taken(uint64_t *word, uint64_t *value)
{
    if (__atomic_load_n(word, __ATOMIC_ACQUIRE) == UINT64_MAX)
        return false;
    *value = __atomic_exchange_n(word, UINT64_MAX, __ATOMIC_ACQ_REL);
    return true;
}

bool ct_doorbells(struct nic *nic)
{
    bool any = false;
    for (int i = 1; i < CTS; i++) {
        struct ct *ct = nic->cts[i];
        uint64_t value;
        if (!ct)
            continue;
        if (taken(&ct->page[CASSINI_CT_RESET / 8], &value))
            ct->success = value, any = true;
        if (taken(&ct->page[CASSINI_CT_RESET_FAIL / 8], &value))
            ct->failure = value, any = true;
        if (taken(&ct->page[CASSINI_CT_INC / 8], &value))
            ct->success += value, any = true;
        if (taken(&ct->page[CASSINI_CT_FAIL / 8], &value))
            ct->failure += value, any = true;
        ct_fire(ct);
    }
    return any;
}
