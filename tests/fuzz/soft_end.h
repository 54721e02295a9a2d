/* SPDX-License-Identifier: BSD-3-Clause */
/* An end of soft whose other end is the input: between the calls of ours it writes to the shared
 * memory what it likes. All memory is exactly as long as our end was told, so that AddressSanitizer
 * sees what lies beyond. */
#ifndef WEFT_FUZZ_SOFT_END_H
#define WEFT_FUZZ_SOFT_END_H

#include "fabric/soft/wire.h"
#include "fuzz/feed.h"

#include <stdlib.h>

/* Lengths, positions and counters: small ones, those around a limit, and any. */
static inline uint64_t next_number(struct feed *feed)
{
    static const uint64_t near[] = {
        SOFT_HOT_BYTES, SOFT_LINE_BYTES, SOFT_IDC,        SOFT_HEADER_BYTES, 4096,
        SOFT_RING,      SOFT_SLOT_BYTES, SOFT_PULL_BYTES, SOFT_PIECE,        UINT64_C(1) << 32};
    uint8_t kind = next_byte(feed);
    if (kind < 128)
        return kind;
    if (kind < 128 + LENGTH(near) * 8)
        return near[(kind - 128) / 8] + (uint64_t)(kind % 8) - 4;
    return next_bytes(feed, 8);
}

/* ---- our end ---- */

enum { THEIRS = 4096, FEW = 100, OURS = 8192, RECEIVED = OURS / 2 };

static struct soft end;
static struct soft_portal *portal;
static struct region ours;
static char kept[OURS - RECEIVED];
static struct remote remote;
static uint64_t ids, room_of[256]; /* of the receives posted, by id */

static inline void *exactly(size_t length)
{
    void *bytes = NULL;
    if (posix_memalign(&bytes, 4096, length))
        abort();
    memset(bytes, 0, length);
    return bytes;
}

/* The first half of our memory is for what is received; nothing may change the second. */
static inline void end_open(int side)
{
    static char *theirs, *few, *arrival;
    static bool wide, whole;
    if (!portal) {
        wide = soft_amo_wide();
        whole = soft_store_whole();
        portal = exactly(sizeof *portal);
        theirs = exactly(THEIRS);
        few = exactly(FEW);
        arrival = exactly(SOFT_PULL_BYTES);
        ours = (struct region){.kind = &memory_host, .address = exactly(OURS), .length = OURS};
        memset(kept, 'k', sizeof kept);
        memcpy(ours.address + RECEIVED, kept, sizeof kept);
    }
    memset(portal, 0, offsetof(struct soft_portal, channel.slots));
    end = (struct soft){.portal = portal, .wide = wide, .whole = whole};
    end.exposed[0] = &ours;
    end.mail.channel = &portal->channel;
    end.mail.arrival = arrival;
    end.mail.side = side;
    end.link.maps[0] = (struct soft_map){.address = portal, .length = sizeof *portal};
    end.link.regions[0].address = theirs;
    end.link.regions[0].length = THEIRS;
    end.link.regions[5].address = few;
    end.link.regions[5].length = FEW;
    remote =
        (struct remote){.address = theirs, .length = THEIRS, .key = 1, .own = &portal->entries[0]};
    atomic_store(&portal->entries[0].key, 1);
    ids = 0;
    fuzz_accepted = 0;
}

static inline void end_check(void)
{
    if (memcmp(ours.address + RECEIVED, kept, sizeof kept) != 0)
        abort();
}

/* ---- the other end ---- */

/* A message that is in its turn; what it says is the input's. */
static inline void forge(struct feed *feed, unsigned code)
{
    struct soft_mail *m = &end.mail;
    uint64_t counts = next_bytes(feed, 2), words[SOFT_LINE_BYTES / sizeof(uint64_t)];
    uint8_t what = next_byte(feed);
    uint64_t next = (m->taken + 1 + m->kept) & MASK(SEQUENCE_BITS);
    uint64_t head = next | (uint64_t)code << SEQUENCE_BITS | counts << (SEQUENCE_BITS + CODE_BITS);
    struct soft_half *half = &m->channel->hot[!m->side];
    struct soft_line *line = &m->channel->lines[!m->side][next % SOFT_RING];
    bool hot = what & 0x80;
    size_t room = hot ? SOFT_HOT_BYTES : SOFT_LINE_BYTES;
    for (size_t i = 0; i < LENGTH(words); i++)
        words[i] = i < (what & 7U) ? next_number(feed) : 0;
    if (what & 8) /* a slot and a length in one word */
        words[0] |= next_bytes(feed, 4) << 32;
    if (what & 16)
        words[2] |= next_bytes(feed, 4) << 32;
    memcpy(hot ? half->data : line->data, words, room);
    atomic_store(hot ? &half->head : &line->head, head);
}

/* A word anywhere before the slots, its counters, or a receive that it posts. */
static inline void scribble(struct feed *feed)
{
    struct soft_channel *channel = end.mail.channel;
    struct soft_counters *counters = &channel->counters[!end.mail.side];
    _Atomic uint64_t *const words[] = {&counters->sent, &counters->acked, &counters->posted,
                                       &counters->pulled, &portal->entries[0].key};
    uint8_t kind = next_byte(feed);
    if (kind < LENGTH(words)) {
        atomic_store(words[kind], next_number(feed));
    } else if (kind < 128) {
        struct soft_posted *posted = &channel->posted[!end.mail.side][kind - LENGTH(words)];
        posted->at = next_number(feed);
        posted->length = next_number(feed);
        posted->entry = next_byte(feed);
    } else {
        size_t at = next_bytes(feed, 2) % (offsetof(struct soft_portal, channel.slots) / 8);
        atomic_store((_Atomic uint64_t *)portal + at, next_bytes(feed, 8));
    }
}

/* ---- what our end finds ---- */

static inline void look_at(const struct completion *c)
{
    volatile char sum = 0;
    if ((c->verb == VERB_RECV || c->verb == VERB_TRECV) && !c->status &&
        (c->id >= ids || c->length > room_of[c->id % 256]))
        abort();
    if (c->verb == VERB_ARRIVAL) {
        if (!c->data || c->length > SOFT_PULL_BYTES)
            abort();
        for (uint64_t i = 0; i < c->length; i += 61)
            sum = (char)(sum + ((const char *)c->data)[i]);
        if (c->length)
            sum = (char)(sum + ((const char *)c->data)[c->length - 1]);
    }
    fuzz_accepted += !c->status;
}

/* ---- slots ---- */

static uint32_t written; /* slots of the other end that are not zero any more */

static inline void write_slot(struct feed *feed)
{
    unsigned number = next_byte(feed) % SOFT_SLOTS;
    char *payload = end.mail.channel->slots[!end.mail.side][number].payload;
    uint64_t word = next_number(feed);
    memcpy(payload, &word, sizeof word);
    written |= 1U << number;
}

static inline void clear_slots(void)
{
    for (unsigned i = 0; i < SOFT_SLOTS; i++)
        if (written & 1U << i)
            memset(end.mail.channel->slots[!end.mail.side][i].payload, 0, sizeof(uint64_t));
    written = 0;
}

static inline bool poll_some(struct feed *feed)
{
    struct completion found[4];
    int most = next_byte(feed) % 4 + 1;
    int got = soft_poll(&end.fabric, found, most);
    if (got > most)
        abort();
    for (int i = 0; i < got; i++)
        look_at(&found[i]);
    return got >= 0;
}

#endif
