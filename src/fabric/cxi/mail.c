/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages: a put that matches the oldest list entry that the other end has appended for a receive,
 * by IDC, by DMA, or by rendezvous, in which the other end's NIC pulls. A message goes out only
 * when a receive is linked there: until then it waits here. Active messages are puts into a ring of
 * places of the other end. */
#include "fabric/cxi/cxi.h"

enum { HEADER = sizeof(uint64_t), TELL_EVERY = WEFT_CXI_AMS / 4 };

static const uint64_t region_bits = UINT64_C(0xffff) << 48; /* of a rendezvous' match bits */

/* ---- words for the other end ---- */

static bool tell(struct weft_cxi *cxi, size_t offset, uint64_t word)
{
    const struct weft_cxi_idc_put put = {.index = cxi->their_words,
                                         .quiet = true,
                                         .user_ptr = weft_cxi_nobody(cxi),
                                         .offset = offset,
                                         .bytes = &word,
                                         .length = sizeof word};
    if (!weft_cxi_emit_idc(cxi, &cxi->talk, &put))
        return false;
    weft_cxi_launch(cxi->talk.cq);
    return true;
}

/* A count of the other end's: it may say anything. */
static uint64_t heard(struct weft_cxi *cxi, const uint64_t *word, uint64_t ours, uint64_t most)
{
    uint64_t count = __atomic_load_n(word, __ATOMIC_ACQUIRE);
    if (count - ours <= most)
        return count;
    weft_cxi_lose(cxi, -EPROTO, "the other end counts what cannot be");
    return ours;
}

/* ---- out ---- */

static bool emit_message(struct weft_cxi *cxi, const struct weft_cxi_outgoing *out,
                         const struct weft_cxi_slot *slot, bool pull)
{
    uint64_t command[c_full_dma_cmd__size / sizeof(uint64_t)] = {0}, bits = 0;
    uint64_t number = (uint64_t)(slot - cxi->slots);
    cassini_put(command, c_full_dma_cmd__index_ext, cxi->their_messages);
    cassini_put(command, c_full_dma_cmd__lac, out->from->md->lac);
    cassini_put(command, c_full_dma_cmd__event_send_disable, 1);
    cassini_put(command, c_full_dma_cmd__dfa, weft_cxi_dfa(cxi, cxi->their_messages));
    cassini_put(command, c_full_dma_cmd__local_addr,
                weft_cxi_iova(out->from->md, out->from->region->address + out->at));
    cassini_put(command, c_full_dma_cmd__request_len, out->length);
    cassini_put(command, c_full_dma_cmd__eq, cxi->eq->eqn);
    cassini_put(command, c_full_dma_cmd__initiator, weft_cxi_self(cxi));
    cassini_put(command, c_full_dma_cmd__user_ptr, number);
    if (pull) {
        /* Which of our regions, and where in it, is for the get that comes back. */
        cassini_put(&bits, cxi_rdzv_match_bits__match_bits, (uint64_t)(out->from - cxi->exposed));
        cassini_put(command, c_full_dma_cmd__match_bits, bits);
        cassini_put(command, c_full_dma_cmd__use_offset_for_get, 1);
        cassini_put(command, c_full_dma_cmd__remote_offset, out->at);
        cassini_put(command, c_full_dma_cmd__rendezvous_id, number);
    }
    return weft_cxi_emit(cxi->data.cq, WEFT_C_CMD_TYPE_DMA,
                         pull ? WEFT_C_CMD_RENDEZVOUS_PUT : WEFT_C_CMD_PUT, command,
                         sizeof command);
}

/* DONE, LATER, or -EAGAIN. */
static int issue(struct weft_cxi *cxi, const struct weft_cxi_outgoing *out)
{
    /* There must be something to pull. */
    bool pull = out->how & HINT(RENDEZVOUS) && out->length;
    bool idc = !pull && out->how & (HINT(INLINE) | HINT(SHORT)) &&
               out->length <= WEFT_C_MAX_IDC_PAYLOAD_UNR;
    if (!weft_cxi_profile(&cxi->data, cxi->cp))
        return -EAGAIN;
    if (idc) {
        const struct weft_cxi_idc_put put = {.index = cxi->their_messages,
                                             .quiet = true,
                                             .user_ptr = weft_cxi_nobody(cxi),
                                             .bytes = out->from->region->address + out->at,
                                             .length = out->length};
        if (!weft_cxi_emit_idc(cxi, &cxi->data, &put))
            return -EAGAIN;
    } else {
        struct xfer x = {.id = out->id, .length = out->length};
        struct weft_cxi_slot *slot = weft_cxi_take(cxi, VERB_SEND, &x, false);
        if (slot)
            slot->awaits = pull ? AWAITS_ACK | AWAITS_GET : AWAITS_ACK;
        if (slot && !emit_message(cxi, out, slot, pull)) {
            weft_cxi_give(cxi, slot);
            slot = NULL;
        }
        if (!slot)
            return -EAGAIN;
    }
    cxi->mail.sent++;
    weft_cxi_go(cxi, out->how);
    return idc ? DONE : LATER;
}

static bool has_receive(struct weft_cxi *cxi)
{
    return heard(cxi, &cxi->arena->words.posted, cxi->mail.sent, WEFT_CXI_RECEIVES) !=
           cxi->mail.sent;
}

static int refuse(const struct weft_cxi *cxi, const struct xfer *x)
{
    if (!weft_cxi_in_buffer(x))
        return weft_cxi_host->fail(-ERANGE, "cxi: a message of %zu bytes at %zu of a buffer of %zu",
                                   x->length, x->at, x->local->length);
    if (!cxi->connected)
        return weft_cxi_host->fail(-ENOTCONN, "cxi: not connected");
    return weft_cxi_host->fail(-EINVAL, "cxi: the buffer of this message is not exposed");
}

int weft_cxi_send(struct fabric *fabric, const struct xfer *x)
{
    struct weft_cxi *cxi = (struct weft_cxi *)fabric;
    struct weft_cxi_mail *m = &cxi->mail;
    struct weft_cxi_outgoing out = {.from = weft_cxi_find(cxi, x->local),
                                    .at = x->at,
                                    .length = x->length,
                                    .id = x->id,
                                    .how = x->how};
    if (!weft_cxi_in_buffer(x) || !cxi->connected || !out.from)
        return refuse(cxi, x);
    int status = weft_cxi_check_form(x);
    if (status)
        return status;
    if (x->length > UINT32_MAX)
        return weft_cxi_host->fail(-EMSGSIZE, "cxi: a message of %zu bytes is too long", x->length);
    if (m->out_head == m->out_tail && has_receive(cxi)) {
        int got = issue(cxi, &out);
        if (got != -EAGAIN)
            return got;
        weft_cxi_ring(cxi->data.cq);
    }
    if (m->out_head - m->out_tail == WEFT_CXI_SENDS)
        return -EAGAIN;
    out.how &= ~HINT(MORE);
    m->out[m->out_head++ % WEFT_CXI_SENDS] = out;
    return LATER;
}

static void send_waiting(struct weft_cxi *cxi)
{
    struct weft_cxi_mail *m = &cxi->mail;
    while (m->out_tail != m->out_head && has_receive(cxi)) {
        const struct weft_cxi_outgoing *out = &m->out[m->out_tail % WEFT_CXI_SENDS];
        int got = issue(cxi, out);
        if (got == -EAGAIN)
            return;
        if (got == DONE)
            weft_cxi_complete(cxi, VERB_SEND, out->id, out->length, 0);
        m->out_tail++;
    }
}

/* ---- in ---- */

int weft_cxi_recv(struct fabric *fabric, const struct xfer *x)
{
    struct weft_cxi *cxi = (struct weft_cxi *)fabric;
    struct weft_cxi_mail *m = &cxi->mail;
    const struct weft_cxi_exposed *e = weft_cxi_find(cxi, x->local);
    if (!weft_cxi_in_buffer(x) || !cxi->connected || !e)
        return refuse(cxi, x);
    if (m->posted - m->filled == WEFT_CXI_RECEIVES)
        return -EAGAIN;
    unsigned number = (unsigned)(m->posted % WEFT_CXI_RECEIVES);
    const struct weft_cxi_grant grant = {
        .md = e->md,
        .address = x->local->address + x->at,
        .length = x->length,
        .put = true,
        .events = true,
        .once = true,
        .match_id = cassini_match_id(cxi->nid, cxi->pid, cxi->dev->info.pid_bits),
        .ignore_bits = region_bits,
        .buffer_id = number};
    if (weft_cxi_append(cxi, &cxi->messages, &grant))
        return -EAGAIN;
    m->receives[number] =
        (struct weft_cxi_receive){.id = x->id, .length = x->length, .to = e, .at = x->at};
    m->posted++;
    return LATER;
}

static void filled(struct weft_cxi_receive *r)
{
    r->filled = true;
    if (!r->status && r->came > r->length)
        r->status =
            weft_cxi_host->fail(-EMSGSIZE, "cxi: a message of %llu bytes into a buffer of %llu",
                                (unsigned long long)r->came, (unsigned long long)r->length);
}

/* Messages complete in the order of their receives, though one that is pulled takes longer. */
static void hand_over(struct weft_cxi *cxi)
{
    struct weft_cxi_mail *m = &cxi->mail;
    while (m->filled != m->posted) {
        struct weft_cxi_receive *r = &m->receives[m->filled % WEFT_CXI_RECEIVES];
        if (!r->filled)
            return;
        weft_cxi_complete(cxi, VERB_RECV, r->id, r->came, r->status);
        r->to = NULL;
        m->filled++;
    }
}

/* Three events a message that is pulled, in any order: it was matched, it was put, its data is
 * here. */
static void pulled_part(struct weft_cxi *cxi, struct weft_cxi_receive *r)
{
    enum { EVENTS = 3 };
    if (++r->pulls < EVENTS)
        return;
    filled(r);
    hand_over(cxi);
}

/* The NIC had no means of its own to pull. */
static void pull(struct weft_cxi *cxi, const struct weft_cxi_receive *r, const uint8_t event[64])
{
    uint64_t command[c_full_dma_cmd__size / sizeof(uint64_t)] = {0}, bits = 0;
    unsigned index = cxi->dev->info.rdzv_get_idx;
    uint64_t put_bits = cassini_get(event, c_event_target_long__match_bits);
    uint64_t length = r->came < r->length ? r->came : r->length;
    struct xfer x = {.id = cassini_get(event, c_event_target_long__buffer_id), .length = length};
    struct weft_cxi_slot *slot = weft_cxi_take(cxi, VERB_RECV, &x, false);
    cassini_put(&bits, cxi_rdzv_match_bits__rendezvous_id,
                cassini_get(event, c_event_target_long__rendezvous_id));
    cassini_put(&bits, cxi_rdzv_match_bits__match_bits,
                cassini_get(&put_bits, cxi_rdzv_match_bits__match_bits));
    cassini_put(command, c_full_dma_cmd__index_ext, index);
    cassini_put(command, c_full_dma_cmd__lac, r->to->md->lac);
    cassini_put(command, c_full_dma_cmd__event_send_disable, 1);
    cassini_put(command, c_full_dma_cmd__dfa, weft_cxi_dfa(cxi, index));
    cassini_put(command, c_full_dma_cmd__remote_offset,
                cassini_get(event, c_event_target_long__remote_offset));
    cassini_put(command, c_full_dma_cmd__local_addr,
                weft_cxi_iova(r->to->md, r->to->region->address + r->at));
    cassini_put(command, c_full_dma_cmd__request_len, length);
    cassini_put(command, c_full_dma_cmd__eq, cxi->eq->eqn);
    cassini_put(command, c_full_dma_cmd__initiator, weft_cxi_self(cxi));
    cassini_put(command, c_full_dma_cmd__match_bits, bits);
    cassini_put(command, c_full_dma_cmd__user_ptr, slot ? (uint64_t)(slot - cxi->slots) : 0);
    if (!slot || !weft_cxi_profile(&cxi->data, cxi->cp) ||
        !weft_cxi_emit(cxi->data.cq, WEFT_C_CMD_TYPE_DMA, WEFT_C_CMD_GET, command, sizeof command))
        weft_cxi_lose(cxi, -ENOSPC, "no room for a command that pulls a message");
    weft_cxi_ring(cxi->data.cq);
}

void weft_cxi_mail_pulled(struct weft_cxi *cxi, uint64_t number, unsigned code)
{
    struct weft_cxi_mail *m = &cxi->mail;
    struct weft_cxi_receive *r = &m->receives[number % WEFT_CXI_RECEIVES];
    if (number >= WEFT_CXI_RECEIVES || !r->to || r->filled)
        return;
    if (code != WEFT_C_RC_OK)
        r->status = weft_cxi_host->fail(weft_cxi_errno(code),
                                        "cxi: a message of %llu bytes could not be pulled: %s",
                                        (unsigned long long)r->came, weft_cxi_code(code));
    pulled_part(cxi, r);
}

static void arrived(struct weft_cxi *cxi, uint64_t offset, uint64_t length)
{
    struct weft_cxi_mail *m = &cxi->mail;
    uint64_t place = m->am_came % WEFT_CXI_AMS;
    const char *data = cxi->arena->in[place];
    if (m->am_came - m->am_taken == WEFT_CXI_AMS || length > WEFT_CXI_AM_BYTES ||
        offset != place * WEFT_CXI_AM_BYTES) {
        weft_cxi_lose(cxi, -EPROTO, "the other end puts active messages where none belong");
        return;
    }
    unsigned at = cxi->done_head % WEFT_CXI_DONE;
    weft_cxi_complete(cxi, VERB_ARRIVAL, 0, length, 0);
    if (length >= HEADER)
        memcpy(&cxi->done[at].id, data, HEADER);
    cxi->done[at].data = cxi->looks ? data : NULL;
    m->am_came++;
}

void weft_cxi_mail_event(struct weft_cxi *cxi, const uint8_t event[64])
{
    struct weft_cxi_mail *m = &cxi->mail;
    unsigned type = (unsigned)cassini_get(event, c_event_target_long__event_type);
    bool brief = cassini_get(event, c_event_target_long__event_size) == WEFT_C_EVENT_SIZE_32_BYTE;
    uint64_t length = brief ? cassini_get(event, c_event_target_short__length)
                            : cassini_get(event, c_event_target_long__rlength);
    uint64_t number = cassini_get(event, c_event_target_long__buffer_id);
    if (cassini_get(event, c_event_target_long__ptlte_index) == cxi->ams.pte->ptn) {
        uint64_t next = m->am_came % WEFT_CXI_AMS * WEFT_CXI_AM_BYTES;
        if (type == WEFT_C_EVENT_PUT)
            arrived(cxi, brief ? next : cassini_get(event, c_event_target_long__remote_offset),
                    length);
        return;
    }
    struct weft_cxi_receive *r = &m->receives[number % WEFT_CXI_RECEIVES];
    if (type == WEFT_C_EVENT_LINK) {
        m->linked++;
        return;
    }
    if (number >= WEFT_CXI_RECEIVES || !r->to || !r->to->region || r->filled)
        return;
    r->came = length;
    if (type == WEFT_C_EVENT_RENDEZVOUS && !cassini_get(event, c_event_target_long__get_issued))
        pull(cxi, r, event);
    if (type == WEFT_C_EVENT_RENDEZVOUS ||
        (!brief && cassini_get(event, c_event_target_long__rendezvous))) {
        pulled_part(cxi, r);
    } else if (type == WEFT_C_EVENT_PUT) {
        filled(r);
        hand_over(cxi);
    }
}

/* ---- active messages ---- */

/* DMA from a place of ours, which is free again when the other end is done with its own. */
static bool emit_am(struct weft_cxi *cxi, const char *from, uint64_t offset, size_t length)
{
    uint64_t command[c_full_dma_cmd__size / sizeof(uint64_t)] = {0};
    cassini_put(command, c_full_dma_cmd__index_ext, cxi->their_ams);
    cassini_put(command, c_full_dma_cmd__lac, cxi->arena_md->lac);
    cassini_put(command, c_full_dma_cmd__event_send_disable, 1);
    cassini_put(command, c_full_dma_cmd__event_success_disable, 1);
    cassini_put(command, c_full_dma_cmd__dfa, weft_cxi_dfa(cxi, cxi->their_ams));
    cassini_put(command, c_full_dma_cmd__remote_offset, offset);
    cassini_put(command, c_full_dma_cmd__local_addr, weft_cxi_iova(cxi->arena_md, from));
    cassini_put(command, c_full_dma_cmd__request_len, length);
    cassini_put(command, c_full_dma_cmd__eq, cxi->eq->eqn);
    cassini_put(command, c_full_dma_cmd__initiator, weft_cxi_self(cxi));
    cassini_put(command, c_full_dma_cmd__user_ptr, weft_cxi_nobody(cxi));
    return weft_cxi_emit(cxi->data.cq, WEFT_C_CMD_TYPE_DMA, WEFT_C_CMD_PUT, command,
                         sizeof command);
}

static int refuse_am(const struct weft_cxi *cxi, const struct xfer *x)
{
    if (!weft_cxi_in_buffer(x) || !cxi->connected)
        return refuse(cxi, x);
    return weft_cxi_host->fail(-EMSGSIZE,
                               "cxi: no active message has %zu bytes and a header of %zu in this "
                               "layout",
                               x->length, x->header_bytes);
}

static void hear_taken(struct weft_cxi *cxi)
{
    struct weft_cxi_mail *m = &cxi->mail;
    m->am_acked = heard(cxi, &cxi->arena->words.taken, m->am_acked, m->am_sent - m->am_acked);
}

/* The places that were handed out are the other end's again. */
static void take_back(struct weft_cxi *cxi)
{
    cxi->mail.am_taken += cxi->mail.am_handed;
    cxi->mail.am_handed = 0;
}

/* A GPU's bytes are moved by its own calls. */
static int copy_payload(const struct xfer *x, char *to)
{
    if (x->local->gpu)
        return x->length ? x->local->kind->peek(x->local, x->at, to, x->length) : 0;
    memcpy(to, x->local->address + x->at, x->length);
    return 0;
}

int weft_cxi_am(struct fabric *fabric, const struct xfer *x)
{
    struct weft_cxi *cxi = (struct weft_cxi *)fabric;
    struct weft_cxi_mail *m = &cxi->mail;
    size_t total = x->header_bytes + x->length;
    unsigned asked = x->how & (HINT(SHORT) | HINT(BCOPY) | HINT(ZCOPY));
    size_t most = asked == HINT(SHORT)   ? WEFT_C_MAX_IDC_PAYLOAD_UNR
                  : asked == HINT(ZCOPY) ? 0
                                         : WEFT_CXI_AM_BYTES;
    if (!weft_cxi_in_buffer(x) || !cxi->connected || total > most ||
        (asked == HINT(SHORT) && x->header_bytes != HEADER))
        return refuse_am(cxi, x);
    take_back(cxi);
    hear_taken(cxi);
    if (m->am_sent - m->am_acked >= WEFT_CXI_AMS)
        return -EAGAIN;
    uint64_t place = m->am_sent % WEFT_CXI_AMS;
    char *packed = cxi->arena->out[place];
    if (x->header_bytes) {
        memcpy(packed, &x->header, HEADER);
        memset(packed + HEADER, 0, x->header_bytes - HEADER);
    }
    int status = copy_payload(x, packed + x->header_bytes);
    if (status)
        return status;
    const struct weft_cxi_idc_put put = {.index = cxi->their_ams,
                                         .quiet = true,
                                         .user_ptr = weft_cxi_nobody(cxi),
                                         .offset = place * WEFT_CXI_AM_BYTES,
                                         .bytes = packed,
                                         .length = total};
    bool idc = total <= WEFT_C_MAX_IDC_PAYLOAD_UNR;
    if (!weft_cxi_profile(&cxi->data, cxi->cp) ||
        !(idc ? weft_cxi_emit_idc(cxi, &cxi->data, &put)
              : emit_am(cxi, packed, put.offset, total))) {
        weft_cxi_ring(cxi->data.cq);
        return -EAGAIN;
    }
    m->am_sent++;
    weft_cxi_go(cxi, x->how | HINT(LL));
    return DONE;
}

/* ---- in every poll ---- */

static bool owes_taken(const struct weft_cxi_mail *m)
{
    return m->am_taken - m->am_told >= TELL_EVERY;
}

void weft_cxi_mail_work(struct weft_cxi *cxi)
{
    struct weft_cxi_mail *m = &cxi->mail;
    take_back(cxi);
    hear_taken(cxi);
    if (m->linked != m->told && tell(cxi, offsetof(struct weft_cxi_words, posted), m->linked))
        m->told = m->linked;
    if (owes_taken(m) && tell(cxi, offsetof(struct weft_cxi_words, taken), m->am_taken))
        m->am_told = m->am_taken;
    send_waiting(cxi);
}

bool weft_cxi_mail_pending(struct weft_cxi *cxi)
{
    const struct weft_cxi_mail *m = &cxi->mail;
    return m->am_handed || m->linked != m->told || owes_taken(m) ||
           (m->out_tail != m->out_head && has_receive(cxi));
}
