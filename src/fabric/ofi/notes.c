/* SPDX-License-Identifier: BSD-3-Clause */
/* What the ends tell each other: that they are there, what was consumed, pulled, or withdrawn.
 * Notes are few and short, and go tagged; every tag carries the counts of flow control. */
#include "fabric/ofi/tag.h"

#include <errno.h>
#include <inttypes.h>
#include <rdma/fi_tagged.h>
#include <string.h>

enum { TELL_MAIL = WEFT_OFI_WINDOW / 4, TELL_AM = WEFT_OFI_ARRIVALS / 4 };

static ssize_t post(struct weft_ofi *r, struct weft_ofi_bounce *note)
{
    return fi_trecv(r->ep, note->data, WEFT_OFI_NOTE, r->arena_desc, FI_ADDR_UNSPEC,
                    weft_ofi_tag_class(CLASS_NOTE), weft_ofi_tag_ignore, &note->context);
}

int weft_ofi_notes_open(struct weft_ofi *r)
{
    for (int i = 0; i < WEFT_OFI_NOTES; i++) {
        ssize_t status = post(r, &r->notes[i]);
        if (status)
            return weft_ofi_refuse(r, "a receive", status);
    }
    return 0;
}

int weft_ofi_tell(struct weft_ofi *r, enum note kind, const void *data, size_t length)
{
    uint64_t tag = weft_ofi_tag(r, CLASS_NOTE, kind);
    struct weft_ofi_slot *slot = NULL;
    ssize_t status;
    if (length <= r->inject) {
        status = fi_tinject(r->ep, data, length, r->peer, tag);
    } else {
        slot = weft_ofi_slot_take(r, VERBS, 0, length);
        if (slot)
            memcpy(slot->small, data, length);
        status =
            slot ? fi_tsend(r->ep, slot->small, length, r->arena_desc, r->peer, tag, &slot->context)
                 : -FI_EAGAIN;
    }
    if (!status) {
        weft_ofi_told(r);
        return 0;
    }
    if (slot)
        weft_ofi_slot_give(r, slot);
    return weft_ofi_refuse(r, "a note", status);
}

/* ---- in ---- */

/* A count of which the lower bits have come; one that makes no sense is none. */
static inline void heed_count(uint64_t *acked, uint64_t sent, uint64_t bits)
{
    uint64_t now = *acked + ((bits - *acked) & ((1U << COUNT_BITS) - 1));
    if (now <= sent)
        *acked = now;
}

void weft_ofi_heed_tag(struct weft_ofi *r, uint64_t tag)
{
    heed_count(&r->post.acked, r->post.sent, tag);
    heed_count(&r->mail.acked, r->mail.sent, tag >> COUNT_BITS);
}

/* What is under way to withdrawn memory may never come back from the provider. */
static void withdrawn(struct weft_ofi *r, uint64_t entry)
{
    struct weft_ofi_remote *remote = NULL;
    for (int i = 0; i < r->remote_count && entry < WEFT_OFI_ENTRIES; i++)
        if (&r->remotes[i] == r->by_entry[entry])
            remote = &r->remotes[i];
    if (!remote)
        return;
    remote->alive = 0;
    for (int i = 0; i < WEFT_OFI_SLOTS; i++) {
        struct weft_ofi_slot *slot = &r->slots[i];
        if (!slot->taken || slot->orphan || slot->verb == VERBS || slot->remote != remote)
            continue;
        slot->orphan = true;
        *weft_ofi_event(r) = (struct completion){
            .id = slot->id,
            .verb = slot->verb,
            .length = slot->length,
            .status = weft_ofi_host->fail(
                -ENOENT, "ofi: no region of the target has key 0x%" PRIx64, remote->key)};
    }
}

static bool heed(struct weft_ofi *r, enum note kind, const void *data, size_t length)
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
        return weft_ofi_note_news(r, data, length);
    case NOTE_PULLED:
        weft_ofi_note_pulled(r, word);
        return length == sizeof word;
    case NOTE_ROOM:
        r->mail.their_room = (size_t)word;
        return length == sizeof word;
    case NOTE_MATCHED:
        return length == sizeof word && weft_ofi_note_matched(r, word);
    case NOTE_BYE:
        r->parted = true;
        return true;
    case NOTE_WITHDRAWN:
        withdrawn(r, word);
        return length == sizeof word;
    }
    return false;
}

void weft_ofi_note_arrived(struct weft_ofi *r, struct weft_ofi_bounce *note,
                           const struct fi_cq_tagged_entry *entry)
{
    weft_ofi_heed_tag(r, entry->tag);
    if (!heed(r, (enum note)(entry->tag >> KIND_AT & KIND_MASK), note->data, entry->len))
        weft_ofi_lose(r, "it sent what makes no sense");
    if (post(r, note))
        weft_ofi_lose(r, "no receive for its notes");
}

/* ---- what is owed ---- */

static int tell_next(struct weft_ofi *r)
{
    struct weft_ofi_mail *m = &r->mail;
    int status = 0;
    if (m->room_told != m->room) {
        uint64_t room = m->room;
        status = weft_ofi_tell(r, NOTE_ROOM, &room, sizeof room);
        if (!status)
            m->room_told = m->room;
    }
    if (!status && m->pulls_told != m->pulls_done) {
        uint64_t count = m->pulls_done;
        status = weft_ofi_tell(r, NOTE_PULLED, &count, sizeof count);
        if (!status)
            m->pulls_told = count;
    }
    if (!status)
        status = weft_ofi_tell_matched(r);
    if (!status &&
        (m->consumed - m->told >= TELL_MAIL || r->post.recycled - r->post.told >= TELL_AM))
        status = weft_ofi_tell(r, NOTE_ACK, NULL, 0);
    return status;
}

void weft_ofi_tell_owed(struct weft_ofi *r)
{
    if (r->connected && !tell_next(r))
        r->todo &= ~(unsigned)TODO_OWED;
}
