/* SPDX-License-Identifier: BSD-3-Clause */
/* Command queues: doorbells, windows of low-latency launch, and what each command means. */
#include "nic.h"

#include <unistd.h>

enum { UNIT = 32, SLOT = 64, FIRST = WEFT_C_CQ_FIRST_WR_PTR, RUN_MOST = 64 };

static void fail(struct cq *cq, unsigned slot, const uint8_t *command, unsigned code)
{
    uint8_t event[16] = {0};
    cq->failed = true;
    cassini_put(cq->ring, c_cq_status__fail_command, *command);
    cassini_put(cq->ring, c_cq_status__return_code, code);
    cassini_put(event, c_event_cmd_fail__cq_id, cq->pub.idx % WEFT_C_NUM_TRANSMIT_CQS);
    cassini_put(event, c_event_cmd_fail__is_target, !(cq->flags & WEFT_CXI_CQ_IS_TX));
    cassini_put(event, c_event_cmd_fail__fail_loc, slot);
    event[4] = *command;
    event_write(cq->eq, event, sizeof event, WEFT_C_EVENT_COMMAND_FAILURE, code);
    trace("failed 0x%02x code %u\n", *command, code);
}

/* ---- commands ---- */

/* Do its operations go as high-rate puts? */
static bool high_rate(const struct cq *cq)
{
    return cq->nic->cps[cq->lcid]->pub.tc_type == WEFT_CXI_TC_TYPE_HRP;
}

static unsigned run_amo_idc(struct cq *cq, const uint8_t *command, struct request *r, bool fetching)
{
    unsigned size = *command >> 2 & 3;
    r->kind = ATOMIC;
    if (size == WEFT_C_CMD_SIZE_32B) {
        const uint8_t *small = command + 16;
        if (fetching || cassini_get(command, c_idc_put_cmd__length) != 32)
            return WEFT_C_RC_CMD_INVALID_ARG;
        r->amo_op = (uint8_t)cassini_get(small, c_small_amo_payload__amo_op);
        r->amo_type = (uint8_t)cassini_get(small, c_small_amo_payload__amo_type);
        memcpy(r->operands, small + 8, 8);
    } else {
        if (size != WEFT_C_CMD_SIZE_64B || cassini_get(command, c_idc_put_cmd__length) != 64)
            return WEFT_C_RC_CMD_INVALID_ARG;
        r->amo_op = (uint8_t)cassini_get(command, c_idc_amo_cmd__atomic_op);
        r->amo_type = (uint8_t)cassini_get(command, c_idc_amo_cmd__atomic_type);
        r->cswap_op = (uint8_t)cassini_get(command, c_idc_amo_cmd__cswap_op);
        r->write_to = cassini_get(command, c_idc_amo_cmd__local_addr);
        memcpy(r->operands, command + 32, 32);
    }
    r->length = amo_bytes(r->amo_type);
    r->payload = r->operands;
    return initiator_issue(cq->nic, r);
}

static unsigned run_idc(struct cq *cq, const uint8_t *command, unsigned opcode)
{
    const uint8_t *cstate = cq->cstate;
    struct request r = {.kind = PUT,
                        .opcode = opcode,
                        .hrp = high_rate(cq),
                        .flags = cstate,
                        .write_lac = (unsigned)cassini_get(cstate, c_cstate_cmd__write_lac),
                        .index_ext = (unsigned)cassini_get(cstate, c_cstate_cmd__index_ext),
                        .initiator = (uint32_t)cassini_get(cstate, c_cstate_cmd__initiator),
                        .ct = (unsigned)cassini_get(cstate, c_cstate_cmd__ct),
                        .eq = (unsigned)cassini_get(cstate, c_cstate_cmd__eq),
                        .user_ptr = cassini_get(cstate, c_cstate_cmd__user_ptr),
                        .dfa = (uint32_t)cassini_get(command, c_idc_put_cmd__dfa),
                        .offset = cassini_get(command, c_idc_put_cmd__remote_offset),
                        .payload = command + 16};
    unsigned length = (unsigned)cassini_get(command, c_idc_put_cmd__length);
    unsigned size = 32U << (*command >> 2 & 3), head = 16;
    unsigned most = cassini_get(cstate, c_cstate_cmd__restricted) ? WEFT_C_MAX_IDC_PAYLOAD_RES
                                                                  : WEFT_C_MAX_IDC_PAYLOAD_UNR;
    if (opcode == WEFT_C_CMD_ATOMIC || opcode == WEFT_C_CMD_FETCHING_ATOMIC)
        return run_amo_idc(cq, command, &r, opcode == WEFT_C_CMD_FETCHING_ATOMIC);
    if (opcode == WEFT_C_CMD_SMALL_MESSAGE) {
        head = 32;
        r.offset = 0;
        r.payload = command + head;
        r.match_bits = cassini_get(command, c_idc_msg_hdr__match_bits);
        r.header_data = cassini_get(command, c_idc_msg_hdr__header_data);
        r.user_ptr = cassini_get(command, c_idc_msg_hdr__user_ptr);
    } else if (opcode != WEFT_C_CMD_PUT) {
        return WEFT_C_RC_CMD_INVALID_ARG;
    }
    if (length < head || length > size || length - head > most)
        return WEFT_C_RC_CMD_INVALID_ARG;
    r.length = length - head;
    return initiator_issue(cq->nic, &r);
}

static void common_dma(const uint8_t *c, struct request *r)
{
    r->flags = c;
    r->lac = (unsigned)cassini_get(c, c_full_dma_cmd__lac);
    r->index_ext = (unsigned)cassini_get(c, c_full_dma_cmd__index_ext);
    r->dfa = (uint32_t)cassini_get(c, c_full_dma_cmd__dfa);
    r->offset = cassini_get(c, c_full_dma_cmd__remote_offset);
    r->local = cassini_get(c, c_full_dma_cmd__local_addr);
    r->length = (uint32_t)cassini_get(c, c_full_dma_cmd__request_len);
    r->ct = (unsigned)cassini_get(c, c_full_dma_cmd__ct);
    r->eq = (unsigned)cassini_get(c, c_full_dma_cmd__eq);
}

static unsigned run_dma(struct cq *cq, const uint8_t *c, unsigned opcode)
{
    struct request r = {.opcode = opcode, .hrp = high_rate(cq)};
    unsigned size = *c >> 2 & 3;
    bool brief = opcode == WEFT_C_CMD_NOMATCH_PUT || opcode == WEFT_C_CMD_NOMATCH_GET;
    bool atomic = opcode == WEFT_C_CMD_ATOMIC || opcode == WEFT_C_CMD_FETCHING_ATOMIC;
    common_dma(c, &r);
    r.kind = atomic                                                         ? ATOMIC
             : opcode == WEFT_C_CMD_RENDEZVOUS_PUT                          ? PULL
             : opcode == WEFT_C_CMD_GET || opcode == WEFT_C_CMD_NOMATCH_GET ? GET
                                                                            : PUT;
    if (size != (brief ? WEFT_C_CMD_SIZE_32B : atomic ? WEFT_C_CMD_SIZE_128B : WEFT_C_CMD_SIZE_64B))
        return WEFT_C_RC_CMD_INVALID_ARG;
    if (brief)
        return cassini_get(c, c_nomatch_dma_cmd__restricted) ? initiator_issue(cq->nic, &r)
                                                             : WEFT_C_RC_CMD_INVALID_ARG;
    r.initiator = (uint32_t)cassini_get(c, c_full_dma_cmd__initiator);
    r.match_bits = cassini_get(c, c_full_dma_cmd__match_bits);
    r.header_data = cassini_get(c, c_full_dma_cmd__header_data);
    r.user_ptr = cassini_get(c, c_full_dma_cmd__user_ptr);
    if (atomic) {
        const char *operand = nic_memory(cq->nic, r.lac, r.local, r.length);
        r.amo_op = (uint8_t)cassini_get(c, c_dma_amo_cmd__atomic_op);
        r.amo_type = (uint8_t)cassini_get(c, c_dma_amo_cmd__atomic_type);
        r.cswap_op = (uint8_t)cassini_get(c, c_dma_amo_cmd__cswap_op);
        r.write_to = cassini_get(c, c_dma_amo_cmd__local_write_addr);
        r.write_lac = (unsigned)cassini_get(c, c_dma_amo_cmd__write_lac);
        if (r.length != amo_bytes(r.amo_type))
            return WEFT_C_RC_AMO_LENGTH_ERROR;
        if (operand)
            memcpy(r.operands, operand, r.length);
        memcpy(r.operands + 16, c + 80, 16);
    } else {
        r.eager = (unsigned)cassini_get(c, c_full_dma_cmd__eager_length);
        r.rendezvous_id = (unsigned)cassini_get(c, c_full_dma_cmd__rendezvous_id);
    }
    return initiator_issue(cq->nic, &r);
}

static unsigned run_ct(struct cq *cq, const uint8_t *c, unsigned opcode)
{
    struct nic *nic = cq->nic;
    struct ct *ct = nic_ct(nic, (unsigned)cassini_get(c, c_ct_cmd__ct));
    struct ct *trigger = nic_ct(nic, (unsigned)cassini_get(c, c_ct_cmd__trig_ct));
    if (!(cq->flags & WEFT_CXI_CQ_TX_WITH_TRIG_CMDS))
        return WEFT_C_RC_CMD_INVALID_ARG;
    if (opcode == WEFT_C_CMD_CT_NOOP)
        return 0;
    if (opcode == WEFT_C_CMD_CT_TRIG_EVENT) {
        if (!trigger || trigger->trigger_count == 256)
            return WEFT_C_RC_CMD_INVALID_ARG;
        unsigned at = trigger->trigger_count++;
        trigger->triggers[at].threshold = cassini_get(c, c_ct_cmd__threshold);
        trigger->triggers[at].eq = nic_eq(nic, (unsigned)cassini_get(c, c_ct_cmd__eq));
        ct_fire(trigger);
        return 0;
    }
    if (!ct)
        return WEFT_C_RC_CMD_INVALID_ARG;
    if (opcode == WEFT_C_CMD_CT_CANCEL) {
        ct->trigger_count = 0;
    } else if (opcode == WEFT_C_CMD_CT_GET && ct->pub.wb) {
        cassini_put(ct->pub.wb, c_ct_writeback__ct_success, ct->success);
        cassini_put(ct->pub.wb, c_ct_writeback__ct_failure, ct->failure);
        cassini_put(ct->pub.wb, c_ct_writeback__ct_writeback, 1);
    } else if (opcode == WEFT_C_CMD_CT_SET || opcode == WEFT_C_CMD_CT_INC) {
        uint64_t value = cassini_get(c, c_ct_cmd__ct_success);
        ct->success = opcode == WEFT_C_CMD_CT_SET ? value : ct->success + value;
        ct_fire(ct);
    } else {
        return WEFT_C_RC_CMD_INVALID_ARG;
    }
    return 0;
}

static unsigned run_command(struct cq *cq, const uint8_t *c, unsigned unit)
{
    unsigned type = *c & 3, size = *c >> 2 & 3, opcode = *c >> 4;
    bool tx = cq->flags & WEFT_CXI_CQ_IS_TX;
    if (unit % (1U << size))
        return WEFT_C_RC_CMD_ALIGN_ERROR;
    if (type == WEFT_C_CMD_TYPE_CT)
        return tx ? run_ct(cq, c, opcode) : WEFT_C_RC_CMD_INVALID_ARG;
    if (!tx)
        return type == WEFT_C_CMD_TYPE_CQ ? target_command(cq->nic, c) : WEFT_C_RC_CMD_INVALID_ARG;
    if (cq->flags & WEFT_CXI_CQ_TX_WITH_TRIG_CMDS)
        return WEFT_C_RC_CMD_INVALID_ARG;
    if (type == WEFT_C_CMD_TYPE_CQ) {
        unsigned lcid = (unsigned)cassini_get(c, c_cq_cmd__lcid);
        if (opcode != WEFT_C_CMD_CQ_LCID)
            return 0;
        if (lcid >= CPS || !cq->nic->cps[lcid] || unit % 4)
            return WEFT_C_RC_CMD_INVALID_ARG;
        cq->lcid = lcid;
        return 0;
    }
    if (type == WEFT_C_CMD_TYPE_IDC && opcode == WEFT_C_CMD_CSTATE) {
        if (cassini_get(c, c_cstate_cmd__length) != 32)
            return WEFT_C_RC_CMD_INVALID_ARG;
        memcpy(cq->cstate, c, sizeof cq->cstate);
        return 0;
    }
    if (fault("bad_command"))
        return WEFT_C_RC_CMD_INVALID_ARG;
    if (fault("gone")) {
        cq->nic->gone = true;
        return 0;
    }
    return type == WEFT_C_CMD_TYPE_IDC ? run_idc(cq, c, opcode) : run_dma(cq, c, opcode);
}

/* ---- the ring ---- */

static size_t cell_of(unsigned slot)
{
    return (size_t)(slot % CASSINI_LL_CELLS) * SLOT;
}

static bool same_words(const uint8_t *cell, const uint8_t *ring, size_t length)
{
    const uint64_t *a = (const uint64_t *)(const void *)cell, *b = (const void *)ring;
    for (size_t i = 0; i < length / sizeof *a; i++)
        if (__atomic_load_n(&a[i], __ATOMIC_ACQUIRE) != __atomic_load_n(&b[i], __ATOMIC_ACQUIRE))
            return false;
    return true;
}

/* What software has launched in the windows for this slot must stand in the ring too. Were they not
 * alike, one of them would be what nobody meant. */
static bool windows_agree(struct cq *cq, unsigned slot, const char **how)
{
    static const struct {
        unsigned at, slots;
        const char *name;
    } windows[] = {{CASSINI_LL_64, 1, "ll_64"},
                   {CASSINI_LL_128A, 2, "ll_128a"},
                   {CASSINI_LL_128U, 2, "ll_128u"}};
    for (size_t i = 0; i < 3; i++) {
        uint8_t *cell = cq->launch + windows[i].at + cell_of(slot);
        const uint8_t *ring = cq->ring + (size_t)slot * SLOT;
        size_t length = (size_t)windows[i].slots * SLOT;
        bool same = false;
        if (!__atomic_load_n((uint64_t *)(void *)cell, __ATOMIC_ACQUIRE))
            continue;
        /* It may still be on its way, and its sender may wait for this CPU. */
        for (int lap = 0; lap < 40000 && !same; lap++) {
            same = same_words(cell, ring, length);
            if (!same && lap > 1000)
                usleep(50);
        }
        memset(cell, 0, length);
        *how = windows[i].name;
        if (!same)
            return false;
    }
    return true;
}

static unsigned next_slot(const struct cq *cq, unsigned slot)
{
    return slot + 1 == cq->pub.size ? FIRST : slot + 1;
}

static bool rung(struct cq *cq)
{
    uint64_t *bell = (uint64_t *)(void *)cq->launch;
    if (__atomic_load_n(bell, __ATOMIC_ACQUIRE) == UINT64_MAX)
        return false;
    uint64_t slot = __atomic_exchange_n(bell, UINT64_MAX, __ATOMIC_ACQ_REL);
    if (slot < FIRST || slot >= cq->pub.size) {
        fail(cq, cq->rd, cq->ring + (size_t)cq->rd * SLOT, WEFT_C_RC_CMD_INVALID_ARG);
        return false;
    }
    cq->wr = (unsigned)slot;
    return true;
}

/* The slot that is next, or the one after it, was launched in a window: where it is filled to. */
static bool launched(struct cq *cq)
{
    unsigned slot = cq->wr, after = next_slot(cq, slot);
    size_t cell = cell_of(slot), cell_after = cell_of(after);
    const uint64_t *words[] = {(uint64_t *)(void *)(cq->launch + CASSINI_LL_64 + cell),
                               (uint64_t *)(void *)(cq->launch + CASSINI_LL_128A + cell),
                               (uint64_t *)(void *)(cq->launch + CASSINI_LL_128U + cell_after)};
    for (unsigned i = 0; i < 3; i++)
        if (__atomic_load_n(words[i], __ATOMIC_ACQUIRE)) {
            /* A doorbell that was rung before is seen now at the latest, and comes first. */
            if (rung(cq))
                return true;
            for (unsigned step = 0; step <= i; step++)
                cq->wr = next_slot(cq, cq->wr);
            return true;
        }
    return false;
}

static void run_slot(struct cq *cq)
{
    const char *how = "doorbell";
    unsigned slot = cq->rd, unit = 0, units = 2;
    const uint8_t *ring = cq->ring + (size_t)slot * SLOT;
    if (!windows_agree(cq, slot, &how)) {
        fail(cq, slot, ring, WEFT_C_RC_CMD_INVALID_ARG);
        return;
    }
    while (unit < units && !cq->failed) {
        const uint8_t *c = ring + (size_t)unit * UNIT;
        unsigned size = *c >> 2 & 3, opcode = *c >> 4, type = *c & 3;
        if (unit + (1U << size) > units)
            units = unit + (1U << size);
        if (opcode != WEFT_C_CMD_NOOP || type == WEFT_C_CMD_TYPE_CQ) {
            trace_command(cq, c, how);
            unsigned code = run_command(cq, c, 2 * slot + unit);
            if (code)
                fail(cq, slot, c, code);
        }
        unit += 1U << size;
    }
    for (unsigned i = 0; i < units / 2; i++)
        cq->rd = next_slot(cq, cq->rd);
}

static bool run_queue(struct cq *cq)
{
    bool any = false;
    for (int i = 0;
         i < RUN_MOST && !cq->failed && !cq->nic->gone && cq->nic->out_count < QUEUED_MOST; i++) {
        if (cq->rd == cq->wr && !rung(cq) && !launched(cq))
            break;
        if (cq->rd != cq->wr)
            run_slot(cq);
        any = true;
    }
    __atomic_store_n((uint16_t *)(void *)cq->ring, (uint16_t)cq->rd, __ATOMIC_RELEASE);
    return any;
}

bool commands_run(struct nic *nic)
{
    bool any = false;
    for (int i = 0; i < CQS; i++)
        if (nic->cqs[i])
            any |= run_queue(nic->cqs[i]);
    return any;
}
