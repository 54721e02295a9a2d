/* SPDX-License-Identifier: BSD-3-Clause */
/* Completions: from libfabric's queue to whom they belong, and as events to the caller. */
#include "fabric/ofi/ofi.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 8 };

static const char *const verb_words[VERBS + 1] = {
    [VERB_WRITE] = "write",   [VERB_READ] = "read", [VERB_SEND] = "send", [VERB_RECV] = "receive",
    [VERB_ATOMIC] = "atomic", [VERB_AM] = "am",     [VERBS] = "a note"};

/* ---- one completion ---- */

static void own_done(struct rail *r, struct rail_slot *slot, int status)
{
    struct rail_receive *receive = slot->receive;
    rail_slot_give(r, slot);
    if (!receive)
        return;
    receive->state = FILLED;
    receive->status = status ? status : receive->status;
    rail_release(r);
}

void rail_slot_done(struct rail *r, struct rail_slot *slot, int status)
{
    if (slot->verb == VERBS || slot->orphan)
        return own_done(r, slot, status);
    if (!status && slot->loop.size && rail_atomic_again(r, slot))
        return;
    if (!status && slot->to)
        status = rail_fill(slot->region, slot->to, slot->bounce, slot->length);
    if (!status && slot->remote && slot->remote->alive != slot->remote->key)
        status = rail_host->fail(-ENOENT, "ofi: no region of the target has key 0x%" PRIx64,
                                 slot->remote->key);
    *rail_event(r) = (struct completion){
        .id = slot->id, .verb = slot->verb, .status = status, .length = slot->length};
    rail_slot_give(r, slot);
}

static inline void handle(struct rail *r, const struct fi_cq_tagged_entry *entry)
{
    struct rail_context *context = entry->op_context;
    switch (context->what) {
    case IS_SLOT:
        return rail_slot_done(r, (struct rail_slot *)context, 0);
    case IS_RECEIVE:
        return rail_received(r, (struct rail_receive *)context, entry);
    case IS_ARRIVAL:
        return rail_am_arrived(r, (struct rail_bounce *)context, entry);
    case IS_NOTE:
        return rail_note_arrived(r, (struct rail_bounce *)context, entry);
    }
}

/* ---- errors ---- */

static void handle_error(struct rail *r, const struct fi_cq_err_entry *e)
{
    struct rail_context *context = e->op_context;
    /* Some providers say it with a sign. */
    int error = abs(e->err);
    bool loss = rail_is_loss(error);
    if (context && context->what == IS_SLOT) {
        struct rail_slot *slot = (struct rail_slot *)context;
        rail_slot_done(r, slot, rail_refuse(r, verb_words[slot->verb], -error));
    } else if (context && context->what == IS_RECEIVE) {
        struct rail_receive *receive = (struct rail_receive *)context;
        if (error == FI_ETRUNC)
            return rail_receive_failed(r, receive, e->len + e->olen, -EMSGSIZE);
        rail_receive_failed(r, receive, 0, rail_refuse(r, "receive", -error));
    } else {
        loss = true;
    }
    if (loss)
        rail_lose(r, fi_strerror(error));
}

static void trouble(struct rail *r, ssize_t status)
{
    struct fi_cq_err_entry e = {0};
    if (status == -FI_EAVAIL) {
        ssize_t got = fi_cq_readerr(r->cq, &e, 0);
        if (got == 1)
            return handle_error(r, &e);
        if (got == -FI_EAGAIN)
            return;
        status = got;
    }
    rail_lose(r, fi_strerror((int)-status));
}

/* ---- poll ---- */

void rail_progress(struct rail *r)
{
    struct fi_cq_tagged_entry entries[BATCH];
    ssize_t got = fi_cq_read(r->cq, entries, BATCH);
    for (ssize_t i = 0; i < got; i++)
        handle(r, &entries[i]);
    if (__builtin_expect(got < 0 && got != -FI_EAGAIN, 0))
        trouble(r, got);
}

static int hand_out(struct rail *r, struct completion *completions, int max)
{
    int got = 0;
    while (got < max && r->next < r->count) {
        completions[got] = r->events[r->next++];
        if (completions[got++].verb == VERB_ARRIVAL) {
            r->post.handed++;
            r->todo |= TODO_GIVEN;
        }
    }
    if (r->next == r->count)
        r->next = r->count = 0;
    return got;
}

/* The rare part of a poll. */
static int poll_more(struct rail *r, struct completion *completions, int max)
{
    if (r->todo & TODO_PULL)
        rail_pull_work(r);
    if (r->todo & TODO_MARK)
        rail_mark_work(r);
    if (r->todo & TODO_AGAIN)
        rail_atomic_work(r);
    if (r->todo & TODO_OWED)
        rail_tell_owed(r);
    int got = hand_out(r, completions, max);
    if (!got && r->todo & TODO_LOST && r->next == r->count)
        return rail_host->fail(-ECONNRESET, "ofi: the connection to the other end is lost: %s",
                               r->reason);
    return got;
}

int rail_poll(struct fabric *fabric, struct completion *completions, int max)
{
    struct rail *r = (struct rail *)fabric;
    if (r->todo & TODO_GIVEN)
        rail_am_recycle(r);
    if (r->count - r->next < RAIL_EVENTS / 2)
        rail_progress(r);
    if (!r->todo && !r->count)
        return 0;
    return poll_more(r, completions, max);
}
