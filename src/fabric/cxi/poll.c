/* SPDX-License-Identifier: BSD-3-Clause */
/* Events of the NIC, and what they complete. */
#include "fabric/cxi/cxi.h"

static const char *const verb_words[VERBS] = {
    [VERB_WRITE] = "a write",  [VERB_READ] = "a read",      [VERB_SEND] = "a send",
    [VERB_RECV] = "a receive", [VERB_ATOMIC] = "an atomic", [VERB_AM] = "an active message"};

void weft_cxi_complete(struct weft_cxi *cxi, uint32_t verb, uint64_t id, uint64_t length,
                       int status)
{
    if (cxi->done_head - cxi->done_tail == WEFT_CXI_DONE) {
        weft_cxi_lose(cxi, -EOVERFLOW, "more has completed than could be under way");
        return;
    }
    cxi->done[cxi->done_head++ % WEFT_CXI_DONE] =
        (struct completion){.id = id, .verb = verb, .status = status, .length = length};
}

/* ---- the initiator's events ---- */

static unsigned code_of(const uint8_t event[64])
{
    size_t length = (size_t)8 << cassini_get(event, c_event_initiator_short__event_size);
    return event[length - 1] & 0x3f;
}

static void finish(struct weft_cxi *cxi, struct weft_cxi_slot *slot, unsigned code)
{
    int status = 0;
    size_t number = (size_t)(slot - cxi->slots);
    if (slot->verb == VERB_RECV) {
        uint64_t receive = slot->id;
        weft_cxi_give(cxi, slot);
        weft_cxi_mail_pulled(cxi, receive, code);
        return;
    }
    if (code != WEFT_C_RC_OK && slot->verb < VERBS)
        status = weft_cxi_host->fail(weft_cxi_errno(code), "cxi: %s of %llu bytes failed: %s",
                                     verb_words[slot->verb], (unsigned long long)slot->length,
                                     weft_cxi_code(code));
    else if (slot->verb == VERB_ATOMIC && slot->result)
        memcpy(slot->result, cxi->arena->atomics[number].result, slot->length);
    if (slot->verb < VERBS)
        weft_cxi_complete(cxi, slot->verb, slot->id, slot->length, status);
    weft_cxi_give(cxi, slot);
}

static void batch_failed(struct weft_cxi *cxi, unsigned code)
{
    bool known = cxi->batch.busy && cxi->batch.verb < VERBS;
    /* The counter may never come to where it was to be. */
    cxi->no_lists |= cxi->batch.busy;
    cxi->batch.busy = false;
    if (!known)
        return;
    int status = weft_cxi_host->fail(weft_cxi_errno(code), "cxi: %s of a list failed: %s",
                                     verb_words[cxi->batch.verb], weft_cxi_code(code));
    weft_cxi_complete(cxi, cxi->batch.verb, cxi->batch.id, cxi->batch.length, status);
    weft_cxi_lose(cxi, status, "an operation of a list failed: %s", weft_cxi_code(code));
}

static void slot_event(struct weft_cxi *cxi, const uint8_t event[64], unsigned awaited)
{
    uint64_t number = cassini_get(event, c_event_initiator_short__user_ptr);
    unsigned code = code_of(event);
    struct weft_cxi_slot *slot = &cxi->slots[number % WEFT_CXI_SLOTS];
    if (number < WEFT_CXI_SLOTS && slot->busy) {
        slot->awaits &= code == WEFT_C_RC_OK ? ~awaited : 0;
        if (!slot->awaits)
            finish(cxi, slot, code);
    } else if (code == WEFT_C_RC_OK) {
        return;
    } else if (number == 0) {
        batch_failed(cxi, code);
    } else if (number == weft_cxi_nobody(cxi)) {
        weft_cxi_lose(cxi, weft_cxi_errno(code),
                      "the other end's NIC does not take what is sent: %s", weft_cxi_code(code));
    }
}

/* The other end's NIC has pulled a message of ours. */
static void got(struct weft_cxi *cxi, const uint8_t event[64])
{
    uint64_t bits = cassini_get(event, c_event_target_long__match_bits);
    uint64_t number = cassini_get(&bits, cxi_rdzv_match_bits__rendezvous_id);
    struct weft_cxi_slot *slot = &cxi->slots[number % WEFT_CXI_SLOTS];
    if (number >= WEFT_CXI_SLOTS || !slot->busy || !(slot->awaits & AWAITS_GET))
        return;
    unsigned code = code_of(event);
    slot->awaits &= code == WEFT_C_RC_OK ? ~(unsigned)AWAITS_GET : 0;
    if (!slot->awaits)
        finish(cxi, slot, code);
}

static void batch_done(struct weft_cxi *cxi, const uint8_t event[64])
{
    struct weft_cxi_batch *b = &cxi->batch;
    if (!b->busy || cassini_get(event, c_event_trig_op_short__threshold) != b->total)
        return;
    for (unsigned i = 0; b->result && i < b->shape.count; i++)
        memcpy(b->result + i % b->shape.slots * b->shape.step, cxi->arena->results[i], b->length);
    b->busy = false;
    if (b->verb < VERBS)
        weft_cxi_complete(cxi, b->verb, b->id, b->length, 0);
}

/* ---- all of them ---- */

/* Only what we have asked for is expected. */
static void state_changed(struct weft_cxi *cxi, const uint8_t event[64], unsigned portal)
{
    if (cassini_get(event, c_event_target_long__ptlte_state) != WEFT_C_PTLTE_ENABLED)
        weft_cxi_lose(cxi, -EIO, "the NIC has disabled a portal table entry");
    else if (portal == cxi->waits_for)
        cxi->state_changes++;
}

static void target_event(struct weft_cxi *cxi, const uint8_t event[64], unsigned type)
{
    unsigned portal = (unsigned)cassini_get(event, c_event_target_long__ptlte_index);
    unsigned code = code_of(event);
    bool message = (cxi->messages.pte && portal == cxi->messages.pte->ptn) ||
                   (cxi->ams.pte && portal == cxi->ams.pte->ptn);
    if (type == WEFT_C_EVENT_GET && cxi->pulls.pte && portal == cxi->pulls.pte->ptn) {
        got(cxi, event);
    } else if (code != WEFT_C_RC_OK) {
        weft_cxi_lose(cxi, weft_cxi_errno(code), "the NIC reports an error at the target: %s",
                      weft_cxi_code(code));
    } else if (type == WEFT_C_EVENT_STATE_CHANGE) {
        state_changed(cxi, event, portal);
    } else {
        cxi->links += portal == cxi->waits_for && type == WEFT_C_EVENT_LINK;
        if (message)
            weft_cxi_mail_event(cxi, event);
    }
}

/* Our NIC has pulled a message of the other end's. */
static void pulled(struct weft_cxi *cxi, const uint8_t event[64])
{
    uint64_t name = cassini_get(event, c_event_initiator_short__user_ptr);
    if (cxi->messages.pte &&
        cassini_get(&name, cxi_rdzv_user_ptr__ptlte_index) == cxi->messages.pte->ptn)
        weft_cxi_mail_pulled(cxi, cassini_get(&name, cxi_rdzv_user_ptr__buffer_id), code_of(event));
}

static void take(struct weft_cxi *cxi, const uint8_t event[64])
{
    unsigned type = (unsigned)cassini_get(event, c_event_initiator_short__event_type);
    switch (type) {
    case WEFT_C_EVENT_REPLY:
        if (cassini_get(event, c_event_initiator_short__rendezvous)) {
            pulled(cxi, event);
            return;
        }
        /* fall through */
    case WEFT_C_EVENT_ACK:
    case WEFT_C_EVENT_SEND:
        slot_event(cxi, event, AWAITS_ACK);
        return;
    case WEFT_C_EVENT_TRIGGERED_OP:
        batch_done(cxi, event);
        return;
    case WEFT_C_EVENT_COMMAND_FAILURE:
        weft_cxi_lose(cxi, -EIO, "the NIC refuses a command (opcode %u): %s",
                      (unsigned)cassini_get(event, c_event_cmd_fail__opcode),
                      weft_cxi_code(code_of(event)));
        return;
    default:
        target_event(cxi, event, type);
    }
}

void weft_cxi_progress(struct weft_cxi *cxi)
{
    enum { MOST = 64 };
    uint8_t event[64];
    for (int i = 0; i < MOST && weft_cxi_event(cxi->eq, event); i++)
        take(cxi, event);
    if (weft_cxi_dropped(cxi->eq))
        weft_cxi_lose(cxi, -EOVERFLOW, "the event queue was full, and the NIC has dropped events");
}

/* What was handed out last time is the other end's again. */
static int hand_out(struct weft_cxi *cxi, struct completion *completions, int max)
{
    int count = 0;
    while (count < max && cxi->done_tail != cxi->done_head) {
        completions[count] = cxi->done[cxi->done_tail++ % WEFT_CXI_DONE];
        if (completions[count].verb == VERB_ARRIVAL)
            cxi->mail.am_handed++;
        count++;
    }
    return count;
}

int weft_cxi_poll(struct fabric *fabric, struct completion *completions, int max)
{
    struct weft_cxi *cxi = (struct weft_cxi *)fabric;
    weft_cxi_ring(cxi->data.cq);
    weft_cxi_progress(cxi);
    if (cxi->connected)
        weft_cxi_mail_work(cxi);
    int count = hand_out(cxi, completions, max);
    if (!count && cxi->lost)
        return weft_cxi_host->fail(cxi->lost, "cxi: %s", cxi->reason);
    return count;
}
