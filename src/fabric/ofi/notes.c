/* SPDX-License-Identifier: BSD-3-Clause */
/* What the ends tell each other: that they are there, what was consumed, pulled, or withdrawn.
 * Notes are few and short, and go tagged; every tag carries the counts of flow control. */
#include "fabric/ofi/ofi.h"

#include <errno.h>
#include <inttypes.h>
#include <rdma/fi_tagged.h>
#include <string.h>

enum { TELL_MAIL = RAIL_WINDOW / 4, TELL_AM = RAIL_ARRIVALS / 4 };

static ssize_t post(struct rail *r, struct rail_bounce *note)
{
    return fi_trecv(r->ep, note->data, RAIL_NOTE, r->arena_desc, FI_ADDR_UNSPEC,
                    rail_tag_class(CLASS_NOTE), rail_tag_ignore, &note->context);
}

int rail_notes_open(struct rail *r)
{
    for (int i = 0; i < RAIL_NOTES; i++) {
        ssize_t status = post(r, &r->notes[i]);
        if (status)
            return rail_refuse(r, "a receive", status);
    }
    return 0;
}

int rail_tell(struct rail *r, enum note kind, const void *data, size_t length)
{
    uint64_t tag = rail_tag(r, CLASS_NOTE, kind);
    struct rail_slot *slot = NULL;
    ssize_t status;
    if (length <= r->inject) {
        status = fi_tinject(r->ep, data, length, r->peer, tag);
    } else {
        slot = rail_slot_take(r, VERBS, 0, length);
        if (slot)
            memcpy(slot->small, data, length);
        status =
            slot ? fi_tsend(r->ep, slot->small, length, r->arena_desc, r->peer, tag, &slot->context)
                 : -FI_EAGAIN;
    }
    if (!status) {
        rail_told(r);
        return 0;
    }
    if (slot)
        rail_slot_give(r, slot);
    return rail_refuse(r, "a note", status);
}

/* ---- in ---- */

/* A count of which the lower bits have come; one that makes no sense is none. */
static inline void heed_count(uint64_t *acked, uint64_t sent, uint64_t bits)
{
    uint64_t now = *acked + ((bits - *acked) & ((1U << COUNT_BITS) - 1));
    if (now <= sent)
        *acked = now;
}

void rail_heed_tag(struct rail *r, uint64_t tag)
{
    heed_count(&r->post.acked, r->post.sent, tag);
    heed_count(&r->mail.acked, r->mail.sent, tag >> COUNT_BITS);
}

/* What is under way to withdrawn memory may never come back from the provider. */
static void withdrawn(struct rail *r, uint64_t entry)
{
    struct rail_remote *remote = NULL;
    for (int i = 0; i < r->remote_count && entry < RAIL_ENTRIES; i++)
        if (&r->remotes[i] == r->by_entry[entry])
            remote = &r->remotes[i];
    if (!remote)
        return;
    remote->alive = 0;
    for (int i = 0; i < RAIL_SLOTS; i++) {
        struct rail_slot *slot = &r->slots[i];
        if (!slot->taken || slot->orphan || slot->verb == VERBS || slot->remote != remote)
            continue;
        slot->orphan = true;
        *rail_event(r) = (struct completion){
            .id = slot->id,
            .verb = slot->verb,
            .length = slot->length,
            .status = rail_host->fail(-ENOENT, "ofi: no region of the target has key 0x%" PRIx64,
                                      remote->key)};
    }
}

static bool heed(struct rail *r, enum note kind, const void *data, size_t length)
{
    uint64_t word = 0;
    if (length == sizeof word)
        memcpy(&word, data, sizeof word);
    switch (kind) {
    case NOTE_ACK:
        return true;
    case NOTE_HELLO:
        r->heard |= length == sizeof word && word == r->word;
        return true;
    case NOTE_PULL:
        return rail_note_news(r, data, length);
    case NOTE_PULLED:
        rail_note_pulled(r, word);
        return length == sizeof word;
    case NOTE_ROOM:
        r->mail.their_room = (size_t)word;
        return length == sizeof word;
    case NOTE_WITHDRAWN:
        withdrawn(r, word);
        return length == sizeof word;
    }
    return false;
}

void rail_note_arrived(struct rail *r, struct rail_bounce *note,
                       const struct fi_cq_tagged_entry *entry)
{
    rail_heed_tag(r, entry->tag);
    if (!heed(r, (enum note)(entry->tag >> KIND_AT & 0xf), note->data, entry->len))
        rail_lose(r, "it sent what makes no sense");
    if (post(r, note))
        rail_lose(r, "no receive for its notes");
}

/* ---- what is owed ---- */

static int tell_next(struct rail *r)
{
    struct rail_mail *m = &r->mail;
    int status = 0;
    if (m->room_told != m->room) {
        uint64_t room = m->room;
        status = rail_tell(r, NOTE_ROOM, &room, sizeof room);
        if (!status)
            m->room_told = m->room;
    }
    if (!status && m->pulls_told != m->pulls_done) {
        uint64_t count = m->pulls_done;
        status = rail_tell(r, NOTE_PULLED, &count, sizeof count);
        if (!status)
            m->pulls_told = count;
    }
    if (!status &&
        (m->consumed - m->told >= TELL_MAIL || r->post.recycled - r->post.told >= TELL_AM))
        status = rail_tell(r, NOTE_ACK, NULL, 0);
    return status;
}

void rail_tell_owed(struct rail *r)
{
    if (r->connected && !tell_next(r))
        r->todo &= ~(unsigned)TODO_OWED;
}
