/* SPDX-License-Identifier: BSD-3-Clause */
/* The target's side: portal table entries, list entries and what matches them. */
#include "nic.h"

#include <stdlib.h>

enum { LATE_MS = 300 };

/* ---- events ---- */

static void say(struct pte *pte, const struct packet *p, const struct coming *c, unsigned type,
                uint32_t mlength, bool get_issued)
{
    unsigned code = fault("target_event") ? WEFT_C_RC_UNCOR : WEFT_C_RC_OK;
    uint8_t event[64] = {0};
    const uint8_t *entry = c->entry.command;
    bool pull = p->kind == PULL;
    bool brief = !pull && !pte->long_events && pte->eq && !pte->eq->target_long &&
                 c->mlength == p->length && p->kind != ATOMIC;
    cassini_put(event, c_event_target_long__header_data, p->header_data);
    cassini_put(event, c_event_target_long__initiator, p->initiator);
    cassini_put(event, c_event_target_long__ptlte_index, pte->pub.ptn);
    cassini_put(event, c_event_target_long__auto_unlinked, c->unlinked);
    cassini_put(event, c_event_target_long__match_bits, p->match_bits);
    cassini_put(event, c_event_target_long__buffer_id, cassini_get(entry, c_target_cmd__buffer_id));
    cassini_put(event, c_event_target_long__vni, p->vni);
    if (brief && mlength < 1U << 20) {
        cassini_put(event, c_event_target_short__length, mlength);
        event_write(pte->eq, event, 32, type, code);
        return;
    }
    cassini_put(event, c_event_target_long__rendezvous, pull);
    cassini_put(event, c_event_target_long__get_issued, get_issued);
    cassini_put(event, c_event_target_long__mlength, mlength);
    cassini_put(event, c_event_target_long__rlength, p->length);
    cassini_put(event, c_event_target_long__remote_offset, pull ? p->get_offset : c->offset);
    cassini_put(event, c_event_target_long__start, c->start);
    cassini_put(event, c_event_target_long__rendezvous_id, p->rendezvous_id);
    event_write(pte->eq, event, 64, type, code);
}

static void say_of(struct pte *pte, unsigned type, unsigned state, const uint8_t *entry)
{
    uint8_t event[64] = {0};
    cassini_put(event, c_event_target_long__ptlte_index, pte->pub.ptn);
    if (type == WEFT_C_EVENT_STATE_CHANGE)
        cassini_put(event, c_event_target_long__ptlte_state, state);
    else
        cassini_put(event, c_event_target_long__buffer_id,
                    cassini_get(entry, c_target_cmd__buffer_id));
    event_write(pte->eq, event, 64, type, WEFT_C_RC_OK);
}

/* ---- matching ---- */

static bool same_initiator(uint32_t wanted, uint32_t initiator)
{
    const uint32_t pid_any = 511U << 23, nid_any = (1U << 23) - 1;
    bool pid = (wanted & pid_any) == pid_any || (wanted & pid_any) == (initiator & pid_any);
    bool nid = (wanted & nid_any) == nid_any || (wanted & nid_any) == (initiator & nid_any);
    return pid && nid;
}

static bool matches(const struct le *le, const struct packet *p)
{
    const uint8_t *c = le->command;
    uint64_t differ = cassini_get(c, c_target_cmd__match_bits) ^ p->match_bits;
    return !(differ & ~cassini_get(c, c_target_cmd__ignore_bits)) &&
           same_initiator((uint32_t)cassini_get(c, c_target_cmd__match_id), p->initiator);
}

static bool permits(const uint8_t *entry, const struct packet *p)
{
    bool put = cassini_get(entry, c_target_cmd__op_put),
         get = cassini_get(entry, c_target_cmd__op_get);
    if (p->kind == GET)
        return get;
    return put && (p->kind != ATOMIC || !p->fetching || get);
}

/* Takes an entry out of its list. */
static void unlink_entry(struct pte *pte, struct le **at)
{
    struct le *le = *at;
    *at = le->next;
    if (pte->last == &le->next)
        pte->last = at;
    free(le);
}

/* Where it goes in the memory of the entry at *at: 0 or a code. */
static unsigned locate(struct nic *nic, struct pte *pte, struct le **at, const struct packet *p,
                       struct coming *c)
{
    struct le *le = *at;
    const uint8_t *entry = le->command;
    uint64_t length = cassini_get(entry, c_target_cmd__length);
    bool local = cassini_get(entry, c_target_cmd__manage_local);
    c->entry = *le;
    c->offset = local ? le->used : p->offset;
    uint64_t room = c->offset < length ? length - c->offset : 0;
    if (!permits(entry, p))
        return WEFT_C_RC_OP_VIOLATION;
    if (p->length > room && (!pte->matching || p->kind == ATOMIC))
        return WEFT_C_RC_ADDR_OUT_OF_RANGE;
    c->mlength = p->length < room ? p->length : (uint32_t)room;
    c->start = cassini_get(entry, c_target_cmd__start) + c->offset;
    c->to = c->mlength ? nic_memory(nic, (unsigned)cassini_get(entry, c_target_cmd__lac), c->start,
                                    c->mlength)
                       : NULL;
    if (c->mlength && !c->to)
        return WEFT_C_RC_NO_TRANSLATION;
    le->used += local ? c->mlength : 0;
    c->unlinked = cassini_get(entry, c_target_cmd__use_once) ||
                  (local && cassini_get(entry, c_target_cmd__min_free) > length - le->used);
    if (c->unlinked)
        unlink_entry(pte, at);
    return 0;
}

/* Puts and gets that are not restricted have connections of their own, which are told apart by the
 * upper half of the indices. */
static bool in_its_half(const struct packet *p)
{
    return p->restricted || (p->kind == GET) == (p->index >= INDICES / 2);
}

static unsigned match(struct nic *nic, const struct packet *p, struct coming *c)
{
    const struct map *map = p->index < INDICES ? nic->domain->portals[p->index] : NULL;
    struct pte *pte = map ? map->pte : NULL;
    if (p->vni != nic->domain->pub.vni)
        return WEFT_C_RC_VNI_NOT_FOUND;
    if (!pte)
        return WEFT_C_RC_PTLTE_NOT_FOUND;
    if (!in_its_half(p))
        return WEFT_C_RC_SEQUENCE_ERROR;
    c->pte = pte;
    if (fault("disabled")) {
        pte->state = WEFT_C_PTLTE_DISABLED;
        say_of(pte, WEFT_C_EVENT_STATE_CHANGE, pte->state, NULL);
    }
    if (pte->state != WEFT_C_PTLTE_ENABLED)
        return WEFT_C_RC_PT_DISABLED;
    if (fault("error"))
        return WEFT_C_RC_PCIE_UNSUCCESS_CMPL;
    if (fault("dropped"))
        return WEFT_C_RC_DROPPED;
    for (struct le **at = &pte->entries; *at; at = &(*at)->next)
        if (!pte->matching || matches(*at, p))
            return locate(nic, pte, at, p, c);
    return WEFT_C_RC_NO_MATCH;
}

/* ---- packets ---- */

static void answer(struct nic *nic, const struct packet *p, unsigned code, uint32_t mlength,
                   const uint8_t *result)
{
    struct packet ack = {
        .kind = ACK, .token = p->token, .code = code ? code : WEFT_C_RC_OK, .mlength = mlength};
    if (result)
        memcpy(ack.result, result, sizeof ack.result);
    if (fault("late_ack"))
        nic->out_from_ms = now_ms() + LATE_MS;
    if (!fault("lost_ack"))
        wire_send(nic, p->nid, p->pid, &ack, NULL, 0);
}

/* What the target's software is told of it. */
static void note(struct nic *nic, const struct packet *p, const struct coming *c, unsigned type)
{
    const uint8_t *entry = c->entry.command;
    bool quiet = cassini_get(entry, c_target_cmd__event_success_disable) ||
                 cassini_get(entry, c_target_cmd__event_comm_disable);
    if (cassini_get(entry, c_target_cmd__event_ct_comm))
        ct_add(nic_ct(nic, (unsigned)cassini_get(entry, c_target_cmd__ct)), true);
    if (!p->restricted && !quiet)
        say(c->pte, p, c, type, c->mlength, false);
    if (c->unlinked && !cassini_get(entry, c_target_cmd__event_unlink_disable))
        say_of(c->pte, WEFT_C_EVENT_UNLINK, 0, entry);
}

static struct coming **find_coming(struct nic *nic, const struct packet *p)
{
    struct coming **at = &nic->coming;
    while (*at && ((*at)->nid != p->nid || (*at)->pid != p->pid || (*at)->token != p->token))
        at = &(*at)->next;
    return at;
}

/* Eight bytes that are aligned appear at once, as on a bus. */
static void store(char *to, const uint8_t *from, size_t length)
{
    if (length == sizeof(uint64_t) && (uintptr_t)to % sizeof(uint64_t) == 0) {
        uint64_t word;
        memcpy(&word, from, sizeof word);
        __atomic_store_n((uint64_t *)(void *)to, word, __ATOMIC_RELEASE);
    } else if (length) {
        memcpy(to, from, length);
    }
}

static void put(struct nic *nic, const struct packet *p)
{
    struct coming one = {.nid = p->nid, .pid = p->pid, .token = p->token}, *c = &one;
    struct coming **kept = p->length > MTU ? find_coming(nic, p) : NULL;
    if (kept && *kept) {
        c = *kept;
    } else if (kept) {
        c = calloc(1, sizeof *c);
        if (!c)
            abort();
        *c = one;
        *kept = c;
    }
    if (p->at == 0)
        c->code = match(nic, p, c);
    if (!c->code && p->at < c->mlength) {
        uint32_t left = c->mlength - p->at;
        store(c->to + p->at, p->data, p->bytes < left ? p->bytes : left);
    }
    c->got += p->bytes;
    if (c->got < p->length)
        return;
    if (!c->code && c->pte)
        note(nic, p, c, WEFT_C_EVENT_PUT);
    answer(nic, p, c->code, c->mlength, NULL);
    if (kept) {
        *kept = c->next;
        free(c);
    }
}

static void get(struct nic *nic, const struct packet *p)
{
    struct coming c = {0};
    struct packet data = {.kind = DATA, .token = p->token};
    unsigned code = match(nic, p, &c);
    if (code) {
        answer(nic, p, code, 0, NULL);
        return;
    }
    data.code = WEFT_C_RC_OK;
    data.mlength = c.mlength;
    for (data.at = 0; data.at == 0 || data.at < c.mlength; data.at += MTU) {
        uint32_t left = c.mlength - data.at;
        data.bytes = left < MTU ? left : MTU;
        if (!fault("lost_data"))
            wire_send(nic, p->nid, p->pid, &data, c.to ? c.to + data.at : NULL, data.bytes);
    }
    note(nic, p, &c, WEFT_C_EVENT_GET);
}

/* Not silently, as a NIC would: who sends such a one is to notice. */
static bool loses(const struct nic *nic, const struct packet *p)
{
    return p->hrp && !p->fetching && p->amo_type == WEFT_C_AMO_TYPE_UINT32_T &&
           nic->info.device_rev <= CASSINI_1_LAST_LOSING_HRP;
}

static void atomic(struct nic *nic, const struct packet *p)
{
    struct coming c = {0};
    uint8_t old[16] = {0};
    unsigned code = loses(nic, p) ? WEFT_C_RC_HRP_RSP_DISCARD : match(nic, p, &c);
    if (!code)
        code = amo_apply(c.to, p, old);
    if (!code)
        note(nic, p, &c, p->fetching ? WEFT_C_EVENT_FETCH_ATOMIC : WEFT_C_EVENT_ATOMIC);
    answer(nic, p, code, c.mlength, old);
}

/* A put of which the target pulls the rest; its events come though success makes none. */
static void pull(struct nic *nic, const struct packet *p)
{
    struct coming c = {0};
    unsigned code = match(nic, p, &c);
    uint32_t eager = p->eager < c.mlength ? p->eager : c.mlength;
    if (code) {
        answer(nic, p, code, 0, NULL);
        return;
    }
    bool issued = !fault("no_get");
    if (eager)
        memcpy(c.to, p->data, eager);
    say(c.pte, p, &c, WEFT_C_EVENT_RENDEZVOUS, c.mlength, issued);
    say(c.pte, p, &c, WEFT_C_EVENT_PUT, eager, issued);
    if (cassini_get(c.entry.command, c_target_cmd__event_ct_comm))
        ct_add(nic_ct(nic, (unsigned)cassini_get(c.entry.command, c_target_cmd__ct)), true);
    answer(nic, p, 0, c.mlength, NULL);
    if (issued)
        initiator_pull(nic, p, &c);
}

void target_packet(struct nic *nic, struct packet *p)
{
    switch (p->kind) {
    case PUT:
        put(nic, p);
        break;
    case GET:
        get(nic, p);
        break;
    case ATOMIC:
        atomic(nic, p);
        break;
    case PULL:
        pull(nic, p);
        break;
    default:
        break;
    }
}

/* ---- commands of the target ---- */

static void append(struct pte *pte, const uint8_t command[64])
{
    struct le *le = calloc(1, sizeof *le);
    if (!le)
        abort();
    memcpy(le->command, command, sizeof le->command);
    *pte->last = le;
    pte->last = &le->next;
    if (!cassini_get(command, c_target_cmd__event_link_disable))
        say_of(pte, WEFT_C_EVENT_LINK, 0, command);
}

static void unlink_by_id(struct pte *pte, const uint8_t command[64])
{
    uint64_t id = cassini_get(command, c_target_cmd__buffer_id);
    for (struct le **at = &pte->entries; *at; at = &(*at)->next)
        if (cassini_get((*at)->command, c_target_cmd__buffer_id) == id) {
            unlink_entry(pte, at);
            say_of(pte, WEFT_C_EVENT_UNLINK, 0, command);
            return;
        }
}

unsigned target_command(struct nic *nic, const uint8_t command[64])
{
    unsigned opcode = *command >> 4, size = *command >> 2 & 3;
    unsigned number = (unsigned)cassini_get(command, c_target_cmd__ptlte_index);
    struct pte *pte = number < PTES ? nic->ptes[number] : NULL;
    if (opcode == WEFT_C_CMD_CQ_NOOP)
        return 0;
    if (!pte || size != WEFT_C_CMD_SIZE_64B)
        return WEFT_C_RC_CMD_INVALID_ARG;
    if (opcode == WEFT_C_CMD_TGT_SETSTATE) {
        pte->state = (unsigned)cassini_get(command, c_set_state_cmd__ptlte_state);
        say_of(pte, WEFT_C_EVENT_STATE_CHANGE, pte->state, command);
    } else if (opcode == WEFT_C_CMD_TGT_APPEND) {
        append(pte, command);
    } else if (opcode == WEFT_C_CMD_TGT_UNLINK) {
        unlink_by_id(pte, command);
    } else {
        return WEFT_C_RC_CMD_INVALID_ARG;
    }
    return 0;
}

void target_free(struct pte *pte)
{
    while (pte->entries)
        unlink_entry(pte, &pte->entries);
}
