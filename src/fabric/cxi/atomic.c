/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomics: with the operands in the command, of 32 bytes where that is enough, or by DMA. What is
 * fetched lands in our own memory first, so that a caller's result may lie anywhere. */
#include "fabric/cxi/cxi.h"

static const uint8_t ops[AMO_OPS] = {
    [AMO_MIN] = WEFT_C_AMO_OP_MIN,     [AMO_MAX] = WEFT_C_AMO_OP_MAX,
    [AMO_SUM] = WEFT_C_AMO_OP_SUM,     [AMO_LOR] = WEFT_C_AMO_OP_LOR,
    [AMO_LAND] = WEFT_C_AMO_OP_LAND,   [AMO_BOR] = WEFT_C_AMO_OP_BOR,
    [AMO_BAND] = WEFT_C_AMO_OP_BAND,   [AMO_LXOR] = WEFT_C_AMO_OP_LXOR,
    [AMO_BXOR] = WEFT_C_AMO_OP_BXOR,   [AMO_SWAP] = WEFT_C_AMO_OP_SWAP,
    [AMO_CSWAP] = WEFT_C_AMO_OP_CSWAP, [AMO_AXOR] = WEFT_C_AMO_OP_AXOR};
static const uint8_t compares[AMO_COMPARES] = {
    [AMO_EQ] = WEFT_C_AMO_OP_CSWAP_EQ, [AMO_NE] = WEFT_C_AMO_OP_CSWAP_NE,
    [AMO_LE] = WEFT_C_AMO_OP_CSWAP_LE, [AMO_LT] = WEFT_C_AMO_OP_CSWAP_LT,
    [AMO_GE] = WEFT_C_AMO_OP_CSWAP_GE, [AMO_GT] = WEFT_C_AMO_OP_CSWAP_GT};
static const uint8_t types[AMO_TYPES] = {[AMO_INT8] = WEFT_C_AMO_TYPE_INT8_T,
                                         [AMO_UINT8] = WEFT_C_AMO_TYPE_UINT8_T,
                                         [AMO_INT16] = WEFT_C_AMO_TYPE_INT16_T,
                                         [AMO_UINT16] = WEFT_C_AMO_TYPE_UINT16_T,
                                         [AMO_INT32] = WEFT_C_AMO_TYPE_INT32_T,
                                         [AMO_UINT32] = WEFT_C_AMO_TYPE_UINT32_T,
                                         [AMO_INT64] = WEFT_C_AMO_TYPE_INT64_T,
                                         [AMO_UINT64] = WEFT_C_AMO_TYPE_UINT64_T,
                                         [AMO_FLOAT] = WEFT_C_AMO_TYPE_FLOAT_T,
                                         [AMO_DOUBLE] = WEFT_C_AMO_TYPE_DOUBLE_T,
                                         [AMO_FLOAT_COMPLEX] = WEFT_C_AMO_TYPE_FLOAT_COMPLEX_T,
                                         [AMO_DOUBLE_COMPLEX] = WEFT_C_AMO_TYPE_DOUBLE_COMPLEX_T,
                                         [AMO_UINT128] = WEFT_C_AMO_TYPE_UINT128_T};
static const uint8_t sizes[AMO_TYPES] = {1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 8, 16, 16};

int weft_cxi_amo_op(enum amo_op op)
{
    return ops[op];
}

int weft_cxi_check_amo(const struct weft_cxi *cxi, const struct xfer *x)
{
    if (x->amo.op >= AMO_OPS || x->amo.type >= AMO_TYPES ||
        !(cxi->amo[x->amo.fetch ? 1 : 0][x->amo.op] >> x->amo.type & 1) ||
        (x->amo.op == AMO_CSWAP && (x->amo.compare_op >= AMO_COMPARES ||
                                    !(cxi->cswap[x->amo.compare_op] >> x->amo.type & 1))))
        return weft_cxi_host->fail(-EINVAL, "cxi: there is no such atomic");
    size_t size = sizes[x->amo.type];
    if (x->length != size || x->remote_at % size)
        return weft_cxi_host->fail(-EINVAL,
                                   "cxi: an atomic of %zu bytes at %zu, on a type of %zu bytes",
                                   x->length, x->remote_at, size);
    return weft_cxi_check(cxi, x, 0);
}

/* An operand as the two words of a command. */
static void words_of(const void *value, size_t size, uint64_t words[2])
{
    words[0] = words[1] = 0;
    if (value)
        memcpy(words, value, size);
}

static bool two_operands(const struct xfer *x)
{
    return x->amo.op == AMO_CSWAP || x->amo.op == AMO_AXOR;
}

static bool emit_idc(struct weft_cxi *cxi, const struct xfer *x, const struct weft_cxi_way *way,
                     const unsigned char *result)
{
    const struct weft_cxi_remote *r = x->remote->own;
    uint64_t cstate[c_cstate_cmd__size / sizeof(uint64_t)] = {0};
    uint64_t command[c_idc_amo_cmd__size / sizeof(uint64_t)] = {0}, one[2], two[2];
    size_t size = sizes[x->amo.type];
    bool small = !x->amo.fetch && !two_operands(x) && size <= sizeof(uint64_t);
    cassini_put(cstate, c_cstate_cmd__length, c_cstate_cmd__size);
    cassini_put(cstate, c_cstate_cmd__write_lac, x->amo.fetch ? cxi->arena_md->lac : 0);
    cassini_put(cstate, c_cstate_cmd__event_send_disable, 1);
    cassini_put(cstate, c_cstate_cmd__event_success_disable, way->counts);
    cassini_put(cstate, x->amo.fetch ? c_cstate_cmd__event_ct_reply : c_cstate_cmd__event_ct_ack,
                way->counts);
    cassini_put(cstate, c_cstate_cmd__restricted, !!(x->how & HINT(RESTRICTED)));
    cassini_put(cstate, c_cstate_cmd__index_ext, r->put);
    cassini_put(cstate, c_cstate_cmd__user_ptr, way->user_ptr);
    cassini_put(cstate, c_cstate_cmd__ct, way->counts ? cxi->ct->ctn : 0);
    cassini_put(cstate, c_cstate_cmd__eq, cxi->eq->eqn);
    words_of(x->amo.operand, size, one);
    words_of(two_operands(x) ? x->amo.compare : NULL, size, two);
    cassini_put(command, c_idc_put_cmd__length, small ? 32 : c_idc_amo_cmd__size);
    cassini_put(command, c_idc_put_cmd__dfa, weft_cxi_dfa(cxi, r->put));
    cassini_put(command, c_idc_put_cmd__remote_offset, x->remote_at);
    if (small) {
        cassini_put(command + 2, c_small_amo_payload__amo_op, ops[x->amo.op]);
        cassini_put(command + 2, c_small_amo_payload__amo_type, types[x->amo.type]);
        cassini_put(command + 2, c_small_amo_payload__op1_word1, one[0]);
    } else {
        cassini_put(command, c_idc_amo_cmd__local_addr,
                    x->amo.fetch ? weft_cxi_iova(cxi->arena_md, result) : 0);
        cassini_put(command, c_idc_amo_cmd__atomic_op, ops[x->amo.op]);
        cassini_put(command, c_idc_amo_cmd__atomic_type, types[x->amo.type]);
        cassini_put(command, c_idc_amo_cmd__cswap_op,
                    x->amo.op == AMO_CSWAP ? compares[x->amo.compare_op] : 0);
        cassini_put(command, c_idc_amo_cmd__op1_word1, one[0]);
        cassini_put(command, c_idc_amo_cmd__op1_word2, one[1]);
        cassini_put(command, c_idc_amo_cmd__op2_word1, two[0]);
        cassini_put(command, c_idc_amo_cmd__op2_word2, two[1]);
    }
    return weft_cxi_cstate(&cxi->data, cstate) &&
           weft_cxi_emit(cxi->data.cq, WEFT_C_CMD_TYPE_IDC,
                         x->amo.fetch ? WEFT_C_CMD_FETCHING_ATOMIC : WEFT_C_CMD_ATOMIC, command,
                         small ? 32 : c_idc_amo_cmd__size);
}

static bool emit_dma(struct weft_cxi *cxi, const struct xfer *x, const struct weft_cxi_way *way,
                     unsigned char *operand, const unsigned char *result)
{
    const struct weft_cxi_remote *r = x->remote->own;
    uint64_t command[128 / sizeof(uint64_t)] = {0}, two[2];
    size_t size = sizes[x->amo.type];
    bool matching = x->how & HINT(MATCHING), restricted = x->how & HINT(RESTRICTED) && !matching;
    unsigned index = matching ? r->matching : r->put;
    memcpy(operand, x->amo.operand, size);
    words_of(two_operands(x) ? x->amo.compare : NULL, size, two);
    cassini_put(command, c_dma_amo_cmd__index_ext, index);
    cassini_put(command, c_dma_amo_cmd__lac, cxi->arena_md->lac);
    cassini_put(command, c_dma_amo_cmd__event_send_disable, 1);
    cassini_put(command, c_dma_amo_cmd__event_success_disable, way->counts);
    cassini_put(command, x->amo.fetch ? c_dma_amo_cmd__event_ct_reply : c_dma_amo_cmd__event_ct_ack,
                way->counts);
    cassini_put(command, c_dma_amo_cmd__restricted, restricted);
    cassini_put(command, c_dma_amo_cmd__dfa, weft_cxi_dfa(cxi, index));
    cassini_put(command, c_dma_amo_cmd__remote_offset, x->remote_at);
    cassini_put(command, c_dma_amo_cmd__local_read_addr, weft_cxi_iova(cxi->arena_md, operand));
    cassini_put(command, c_dma_amo_cmd__request_len, size);
    cassini_put(command, c_dma_amo_cmd__ct, way->counts ? cxi->ct->ctn : 0);
    cassini_put(command, c_dma_amo_cmd__eq, cxi->eq->eqn);
    cassini_put(command, c_dma_amo_cmd__initiator, restricted ? 0 : weft_cxi_self(cxi));
    cassini_put(command, c_dma_amo_cmd__match_bits, matching);
    cassini_put(command, c_dma_amo_cmd__user_ptr, way->user_ptr);
    cassini_put(command, c_dma_amo_cmd__local_write_addr,
                x->amo.fetch ? weft_cxi_iova(cxi->arena_md, result) : 0);
    cassini_put(command, c_dma_amo_cmd__atomic_op, ops[x->amo.op]);
    cassini_put(command, c_dma_amo_cmd__atomic_type, types[x->amo.type]);
    cassini_put(command, c_dma_amo_cmd__cswap_op,
                x->amo.op == AMO_CSWAP ? compares[x->amo.compare_op] : 0);
    cassini_put(command, c_dma_amo_cmd__write_lac, x->amo.fetch ? cxi->arena_md->lac : 0);
    cassini_put(command, c_dma_amo_cmd__op2_word1, two[0]);
    cassini_put(command, c_dma_amo_cmd__op2_word2, two[1]);
    return weft_cxi_emit(cxi->data.cq, WEFT_C_CMD_TYPE_DMA,
                         x->amo.fetch ? WEFT_C_CMD_FETCHING_ATOMIC : WEFT_C_CMD_ATOMIC, command,
                         sizeof command);
}

int weft_cxi_emit_amo(struct weft_cxi *cxi, const struct xfer *x, const struct weft_cxi_way *way,
                      unsigned char *operand, unsigned char *result)
{
    bool idc = x->how & HINT(INLINE) && !(x->how & HINT(MATCHING));
    bool hrp = cxi->hrp && x->how & HINT(HRP) && x->how & HINT(RESTRICTED) && !x->amo.fetch &&
               !(x->how & HINT(MATCHING)) && !(cxi->facts->amo_no_hrp >> x->amo.type & 1);
    if (!weft_cxi_profile(&cxi->data, hrp ? cxi->hrp : cxi->cp))
        return -EAGAIN;
    return (idc ? emit_idc(cxi, x, way, result) : emit_dma(cxi, x, way, operand, result)) ? 0
                                                                                          : -EAGAIN;
}

int weft_cxi_atomic(struct fabric *fabric, const struct xfer *x)
{
    struct weft_cxi *cxi = (struct weft_cxi *)fabric;
    int status = weft_cxi_check_amo(cxi, x);
    if (status)
        return status;
    struct weft_cxi_slot *slot = weft_cxi_take(cxi, VERB_ATOMIC, x, false);
    if (slot) {
        const struct weft_cxi_way way = {.user_ptr = (uint64_t)(slot - cxi->slots)};
        slot->result = x->amo.fetch ? x->amo.result : NULL;
        status = weft_cxi_emit_amo(cxi, x, &way, cxi->arena->atomics[way.user_ptr].operand,
                                   cxi->arena->atomics[way.user_ptr].result);
        if (status)
            weft_cxi_give(cxi, slot);
    }
    if (!slot || status) {
        weft_cxi_ring(cxi->data.cq);
        return -EAGAIN;
    }
    weft_cxi_go(cxi, x->how);
    return LATER;
}
