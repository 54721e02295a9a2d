/* SPDX-License-Identifier: BSD-3-Clause */
/* Completions: from libfabric's queue to the operation they belong to, and as events to the caller.
 */
#include "fabric/ofi/tag.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 8 };

static const char *const verb_words[VERBS + 1] = {
    [VERB_WRITE] = "write",       [VERB_READ] = "read",     [VERB_SEND] = "send",
    [VERB_RECV] = "receive",      [VERB_ATOMIC] = "atomic", [VERB_AM] = "am",
    [VERB_TSEND] = "tagged send", [VERBS] = "a note"};

/* ---- one completion ---- */

static void own_done(struct weft_ofi *r, struct weft_ofi_slot *slot, int status)
{
    struct weft_ofi_receive *receive = slot->receive;
    struct weft_ofi_tagged *tagged = slot->tagged;
    weft_ofi_slot_give(r, slot);
    if (tagged)
        return weft_ofi_tagged_pulled(r, tagged, status);
    if (!receive)
        return;
    receive->state = FILLED;
    receive->status = status ? status : receive->status;
    weft_ofi_release(r);
}

void weft_ofi_slot_done(struct weft_ofi *r, struct weft_ofi_slot *slot, int status)
{
    if (slot->verb == VERBS || slot->orphan)
        return own_done(r, slot, status);
    if (!status && slot->loop.size && weft_ofi_atomic_again(r, slot))
        return;
    if (!status && slot->to)
        status = weft_ofi_fill(slot->region, slot->to, slot->bounce, slot->length);
    if (!status && slot->remote && slot->remote->alive != slot->remote->key)
        status = weft_ofi_host->fail(-ENOENT, "ofi: no region of the target has key 0x%" PRIx64,
                                     slot->remote->key);
    *weft_ofi_event(r) = (struct completion){
        .id = slot->id, .verb = slot->verb, .status = status, .length = slot->length};
    weft_ofi_slot_give(r, slot);
}

static inline void handle(struct weft_ofi *r, const struct fi_cq_tagged_entry *entry)
{
    struct weft_ofi_context *context = entry->op_context;
    switch (context->what) {
    case IS_SLOT:
        if (__builtin_expect(((struct weft_ofi_slot *)context)->unmatched, 0) &&
            !weft_ofi_tag_left((struct weft_ofi_slot *)context))
            return;
        return weft_ofi_slot_done(r, (struct weft_ofi_slot *)context, 0);
    case IS_RECEIVE:
        return weft_ofi_received(r, (struct weft_ofi_receive *)context, entry);
    case IS_ARRIVAL:
        return weft_ofi_am_arrived(r, (struct weft_ofi_bounce *)context, entry);
    case IS_NOTE:
        return weft_ofi_note_arrived(r, (struct weft_ofi_bounce *)context, entry);
    case IS_TAGGED:
        return weft_ofi_tagged_came(r, (struct weft_ofi_tagged *)context, entry, 0);
    case IS_PEEK:
        return weft_ofi_peeked(r, true);
    }
}

/* ---- errors ---- */

static void handle_error(struct weft_ofi *r, const struct fi_cq_err_entry *e)
{
    struct weft_ofi_context *context = e->op_context;
    /* Some providers say it with a sign. */
    int error = abs(e->err);
    bool loss = weft_ofi_is_loss(error);
    if (context && context->what == IS_SLOT) {
        struct weft_ofi_slot *slot = (struct weft_ofi_slot *)context;
        weft_ofi_slot_done(r, slot, weft_ofi_refuse(r, verb_words[slot->verb], -error));
    } else if (context && context->what == IS_RECEIVE) {
        struct weft_ofi_receive *receive = (struct weft_ofi_receive *)context;
        if (error == FI_ETRUNC)
            return weft_ofi_receive_failed(r, receive, e->len + e->olen, -EMSGSIZE);
        weft_ofi_receive_failed(r, receive, 0, weft_ofi_refuse(r, "receive", -error));
    } else if (context && context->what == IS_TAGGED) {
        const struct fi_cq_tagged_entry none = {.tag = e->tag};
        weft_ofi_tagged_came(r, (struct weft_ofi_tagged *)context, &none,
                             weft_ofi_refuse(r, "a tagged receive", -error));
    } else if (context && context->what == IS_PEEK && error == FI_ENOMSG) {
        weft_ofi_peeked(r, false);
    } else {
        loss = true;
    }
    if (loss)
        weft_ofi_lose(r, fi_strerror(error));
}

static void trouble(struct weft_ofi *r, ssize_t status)
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
    weft_ofi_lose(r, fi_strerror((int)-status));
}

/* ---- poll ---- */

void weft_ofi_progress(struct weft_ofi *r)
{
    struct fi_cq_tagged_entry entries[BATCH];
    if (__builtin_expect(!r->cq, 0))
        return;
    ssize_t got = fi_cq_read(r->cq, entries, BATCH);
    for (ssize_t i = 0; i < got; i++)
        handle(r, &entries[i]);
    if (__builtin_expect(got < 0 && got != -FI_EAGAIN, 0))
        trouble(r, got);
}

static int hand_out(struct weft_ofi *r, struct completion *completions, int max)
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
static int poll_more(struct weft_ofi *r, struct completion *completions, int max)
{
    if (r->todo & TODO_PULL)
        weft_ofi_pull_work(r);
    if (r->todo & TODO_MARK)
        weft_ofi_mark_work(r);
    if (r->todo & TODO_TAGGED)
        weft_ofi_tagged_work(r);
    if (r->todo & TODO_AGAIN)
        weft_ofi_atomic_work(r);
    if (r->todo & TODO_OWED)
        weft_ofi_tell_owed(r);
    int got = hand_out(r, completions, max);
    if (!got && r->todo & TODO_LOST && r->next == r->count)
        return weft_ofi_host->fail(-ECONNRESET, "ofi: the connection to the other end is lost: %s",
                                   r->reason);
    return got;
}

/* ---- sleep ---- */

int weft_ofi_event_fd(struct fabric *fabric)
{
    struct weft_ofi *r = (struct weft_ofi *)fabric;
    int fd = -1;
    if (!r->port.waits || r->port.no_wait || !r->cq)
        return weft_ofi_host->fail(-ENOTSUP, "ofi: it was not opened for events, or has none");
    int status = fi_control(&r->cq->fid, FI_GETWAIT, &fd);
    return status ? weft_ofi_refuse(r, "a descriptor to wait for", status) : fd;
}

int weft_ofi_arm(struct fabric *fabric)
{
    struct weft_ofi *r = (struct weft_ofi *)fabric;
    if (!r->cq || r->count || r->todo)
        return -EAGAIN;
    struct fid *queue = &r->cq->fid;
    int status = fi_trywait(r->port.fabric, &queue, 1);
    return status ? weft_ofi_refuse(r, "sleeping", status) : DONE;
}

/* ---- poll ---- */

int weft_ofi_poll(struct fabric *fabric, struct completion *completions, int max)
{
    struct weft_ofi *r = (struct weft_ofi *)fabric;
    if (r->todo & TODO_GIVEN)
        weft_ofi_am_recycle(r);
    if (r->count - r->next < WEFT_OFI_EVENTS / 2)
        weft_ofi_progress(r);
    if (!r->todo && !r->count)
        return 0;
    return poll_more(r, completions, max);
}
