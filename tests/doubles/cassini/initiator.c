/* SPDX-License-Identifier: BSD-3-Clause */
/* The initiator's side: operations out, answers in. */
#include "nic.h"

enum { NONE = OPS };

static struct op *take(struct nic *nic, uint32_t *token)
{
    if (nic->free_op != NONE) {
        *token = nic->free_op;
        nic->free_op = nic->ops[*token].next;
    } else if (nic->ops_used < OPS) {
        *token = nic->ops_used++;
    } else {
        return NULL;
    }
    nic->ops[*token] = (struct op){.busy = true};
    return &nic->ops[*token];
}

static void finish(struct nic *nic, uint32_t token, unsigned code, uint32_t mlength)
{
    struct op *op = &nic->ops[token];
    bool good = code == WEFT_C_RC_OK;
    if (!op->quiet || !good)
        event_initiator(op->eq, op->get ? WEFT_C_EVENT_REPLY : WEFT_C_EVENT_ACK, code, op->user_ptr,
                        mlength, op->pulled);
    if (op->get ? op->count_reply : op->count_ack)
        ct_add(op->ct, good);
    op->busy = false;
    op->next = nic->free_op;
    nic->free_op = token;
}

/* The bytes of a put, or of an answer, in as many packets as they take. */
static void send_all(struct nic *nic, uint32_t nid, uint32_t pid, struct packet *packet,
                     const char *data, uint32_t length)
{
    for (packet->at = 0; packet->at == 0 || packet->at < length; packet->at += MTU) {
        uint32_t left = length - packet->at;
        packet->bytes = left < MTU ? left : MTU;
        wire_send(nic, nid, pid, packet, data + packet->at, packet->bytes);
    }
}

static void begin(struct nic *nic, const struct request *r, struct op *op)
{
    op->eq = nic_eq(nic, r->eq);
    op->ct = nic_ct(nic, r->ct);
    op->get = r->kind == GET || r->opcode == WEFT_C_CMD_FETCHING_ATOMIC;
    op->quiet = cassini_get(r->flags, c_full_dma_cmd__event_success_disable);
    op->count_ack = cassini_get(r->flags, c_full_dma_cmd__event_ct_ack);
    op->count_reply = cassini_get(r->flags, c_full_dma_cmd__event_ct_reply);
    op->user_ptr = r->user_ptr;
    op->length = r->length;
    op->to = r->kind == GET ? r->local : r->write_to;
    op->lac = r->kind == GET ? r->lac : r->write_lac;
}

static struct packet packet_of(const struct request *r, uint32_t token)
{
    bool use_offset = cassini_get(r->flags, c_full_dma_cmd__use_offset_for_get);
    struct packet packet = {.kind = r->kind,
                            .opcode = r->opcode,
                            .token = token,
                            .index = (r->dfa & 0xfff) >> PID_BITS << 5 | r->index_ext,
                            .initiator = r->initiator,
                            .restricted =
                                (uint32_t)cassini_get(r->flags, c_full_dma_cmd__restricted),
                            .match_bits = r->match_bits,
                            .header_data = r->header_data,
                            .offset = r->kind == PULL && use_offset ? 0 : r->offset,
                            .get_offset = use_offset ? r->offset : 0,
                            .length = r->length,
                            .rendezvous_id = r->rendezvous_id,
                            .eager = r->eager < r->length ? r->eager : r->length,
                            .amo_op = r->amo_op,
                            .amo_type = r->amo_type,
                            .cswap_op = r->cswap_op,
                            .fetching = r->opcode == WEFT_C_CMD_FETCHING_ATOMIC,
                            .hrp = r->hrp};
    memcpy(packet.operands, r->operands, sizeof packet.operands);
    return packet;
}

unsigned initiator_issue(struct nic *nic, const struct request *r)
{
    uint32_t token, bytes = r->kind == PUT ? r->length : 0;
    struct op *op = take(nic, &token);
    const char *from = r->payload;
    if (!op || !nic->domain)
        return WEFT_C_RC_CMD_INVALID_ARG;
    begin(nic, r, op);
    struct packet packet = packet_of(r, token);
    if (r->kind == PULL)
        bytes = packet.eager;
    /* Our own memory first: a get or a fetch needs room for its answer. */
    uint32_t local = r->kind == GET || r->kind == PULL ? r->length : bytes;
    if (!from && local)
        from = nic_memory(nic, r->lac, r->local, local);
    bool room = !op->get || r->kind == GET || nic_memory(nic, op->lac, op->to, r->length);
    if ((local && !from) || !room || fault("translation")) {
        finish(nic, token, WEFT_C_RC_NO_TRANSLATION, 0);
        return 0;
    }
    if (!cassini_get(r->flags, c_full_dma_cmd__event_send_disable) && !op->quiet)
        event_initiator(op->eq, WEFT_C_EVENT_SEND, WEFT_C_RC_OK, op->user_ptr, r->length, false);
    send_all(nic, r->dfa >> 12, r->dfa & ((1U << PID_BITS) - 1), &packet, from, bytes);
    return 0;
}

void initiator_pull(struct nic *nic, const struct packet *put, const struct coming *match)
{
    enum { SOME_TYPE = 5 }; /* of a transaction: those who match are told to ignore it */
    uint32_t token;
    struct op *op = take(nic, &token);
    const uint8_t *entry = match->entry.command;
    uint64_t bits = 0, name = 0;
    if (!op)
        return;
    cassini_put(&name, cxi_rdzv_user_ptr__src_nid, put->nid);
    cassini_put(&name, cxi_rdzv_user_ptr__src_pid, put->pid);
    cassini_put(&name, cxi_rdzv_user_ptr__ptlte_index, match->pte->pub.ptn);
    cassini_put(&name, cxi_rdzv_user_ptr__rendezvous_id, put->rendezvous_id);
    cassini_put(&name, cxi_rdzv_user_ptr__buffer_id, cassini_get(entry, c_target_cmd__buffer_id));
    uint32_t eager = put->eager < match->mlength ? put->eager : match->mlength;
    op->get = op->pulled = true;
    op->eq = match->pte->eq;
    op->ct = nic_ct(nic, (unsigned)cassini_get(entry, c_target_cmd__ct));
    op->count_reply = cassini_get(entry, c_target_cmd__event_ct_comm);
    op->user_ptr = name;
    op->to = match->start + eager;
    op->lac = (unsigned)cassini_get(entry, c_target_cmd__lac);
    op->length = match->mlength - eager;
    cassini_put(&bits, cxi_rdzv_match_bits__rendezvous_id, put->rendezvous_id);
    cassini_put(&bits, cxi_rdzv_match_bits__transaction_type, SOME_TYPE);
    cassini_put(&bits, cxi_rdzv_match_bits__match_bits, put->match_bits >> 48);
    struct packet packet = {.kind = GET,
                            .opcode = WEFT_C_CMD_GET,
                            .token = token,
                            .index = PULL_INDEX,
                            .initiator =
                                cassini_match_id(nic->info.nid, nic->domain->pub.pid, PID_BITS),
                            .match_bits = bits,
                            .offset = put->get_offset + eager,
                            .length = op->length};
    wire_send(nic, put->nid, put->pid, &packet, NULL, 0);
}

/* The data of a get, where it belongs. */
static void place(struct nic *nic, struct op *op, const struct packet *packet)
{
    if (packet->at > op->length || packet->bytes > op->length - packet->at)
        return;
    char *to = nic_memory(nic, op->lac, op->to + packet->at, packet->bytes);
    if (to)
        memcpy(to, packet->data, packet->bytes);
    else
        op->code = WEFT_C_RC_NO_TRANSLATION;
    op->got += packet->bytes;
}

void initiator_answer(struct nic *nic, const struct packet *packet)
{
    struct op *op = packet->token < OPS ? &nic->ops[packet->token] : NULL;
    if (!op || packet->token >= nic->ops_used || !op->busy)
        return;
    unsigned code = packet->code;
    if (packet->kind == DATA) {
        place(nic, op, packet);
        if (code == WEFT_C_RC_OK && op->got < packet->mlength)
            return;
        code = op->code ? op->code : code;
    } else if (op->get && code == WEFT_C_RC_OK) {
        char *to = nic_memory(nic, op->lac, op->to, op->length);
        if (to)
            memcpy(to, packet->result, op->length);
        else
            code = WEFT_C_RC_NO_TRANSLATION;
    }
    finish(nic, packet->token, code, packet->mlength);
}

void initiator_lost(struct nic *nic, const struct packet *packet)
{
    if (packet->token < nic->ops_used && nic->ops[packet->token].busy)
        finish(nic, packet->token, WEFT_C_RC_UNDELIVERABLE, 0);
}
