/* SPDX-License-Identifier: BSD-3-Clause */
/* Whole lists: every command counts when it is done, none makes an event, and a trigger on the
 * counter makes one event for all of them. The doorbell is rung once. */
#include "fabric/cxi/cxi.h"

enum { MOST_UNITS = 32 };

/* How many units of the queue one operation takes, with what its alignment may cost. */
static unsigned units_of(enum verb verb, const struct xfer *x)
{
    bool idc = verb != VERB_READ && weft_cxi_idc(x);
    if (verb == VERB_ATOMIC)
        return x->how & HINT(INLINE) && !(x->how & HINT(MATCHING)) ? 2 : 4;
    if (idc)
        return weft_cxi_units(weft_cxi_size_for(c_idc_put_cmd__size + x->length));
    return x->how & HINT(RESTRICTED) ? 1 : 2;
}

static bool fits(struct weft_cxi *cxi, enum verb verb, const struct xfer *x, unsigned count)
{
    /* What a change of profile and CSTATE take comes on top. */
    return weft_cxi_room(cxi->data.cq) > (long)count * units_of(verb, x) + MOST_UNITS;
}

static int check(const struct weft_cxi *cxi, enum verb verb, const struct xfer *first, size_t span)
{
    int status = verb == VERB_ATOMIC  ? weft_cxi_check_amo(cxi, first)
                 : verb == VERB_WRITE ? weft_cxi_check_form(first)
                                      : 0;
    return status ? status : weft_cxi_check(cxi, first, span);
}

/* One event when the counter has come so far. */
static bool arm(struct weft_cxi *cxi, uint64_t threshold)
{
    uint64_t command[WEFT_C_CQ_CMD_SIZE / sizeof(uint64_t)] = {0};
    cassini_put(command, c_ct_cmd__trig_ct, cxi->ct->ctn);
    cassini_put(command, c_ct_cmd__eq, cxi->eq->eqn);
    cassini_put(command, c_ct_cmd__threshold, threshold);
    if (!weft_cxi_emit(cxi->trigger, WEFT_C_CMD_TYPE_CT, WEFT_C_CMD_CT_TRIG_EVENT, command,
                       sizeof command))
        return false;
    weft_cxi_ring(cxi->trigger);
    return true;
}

static int emit(struct weft_cxi *cxi, enum verb verb, const struct xfer *x, unsigned number)
{
    struct weft_cxi_way way = {.counts = true};
    if (verb == VERB_WRITE)
        return weft_cxi_emit_put(cxi, x, &way);
    if (verb == VERB_READ)
        return weft_cxi_emit_get(cxi, x, &way);
    return weft_cxi_emit_amo(cxi, x, &way, cxi->arena->operand, cxi->arena->results[number]);
}

int weft_cxi_batch(struct fabric *fabric, enum verb verb, const struct xfer *first,
                   const struct fabric_batch *batch)
{
    struct weft_cxi *cxi = (struct weft_cxi *)fabric;
    unsigned places = batch->count < batch->slots ? batch->count : batch->slots;
    if (verb != VERB_WRITE && verb != VERB_READ && verb != VERB_ATOMIC)
        return -EAGAIN;
    int status = check(cxi, verb, first, places ? (places - 1) * batch->step : 0);
    if (status)
        return status;
    bool fetches = verb == VERB_ATOMIC && first->amo.fetch;
    if (!batch->count || !batch->slots)
        return DONE;
    /* Errors of a list have no name: nothing else without one may be under way. */
    if (cxi->no_lists || cxi->batch.busy || cxi->slots[0].busy || batch->count > WEFT_CXI_BATCH ||
        !weft_cxi_find(cxi, first->local) || !fits(cxi, verb, first, batch->count) ||
        !arm(cxi, cxi->counted + batch->count))
        return -EAGAIN;
    cxi->batch = (struct weft_cxi_batch){.busy = true,
                                         .id = first->id,
                                         .total = cxi->counted += batch->count,
                                         .verb = verb,
                                         .shape = *batch,
                                         .length = first->length,
                                         .result = fetches ? first->amo.result : NULL};
    for (unsigned i = 0; i < batch->count && !status; i++) {
        struct xfer x = *first;
        size_t further = i % batch->slots * batch->step;
        x.at += verb == VERB_ATOMIC ? 0 : further;
        x.remote_at += further;
        status = emit(cxi, verb, &x, i);
    }
    weft_cxi_ring(cxi->data.cq);
    if (status)
        weft_cxi_lose(cxi, -EIO, "a list does not fit into the command queue");
    return LATER;
}
