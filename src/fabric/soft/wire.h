/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside soft: lines and what their heads say. Messages to posted receives (mail.c) and active
 * messages (am.c) go the same way, in one order. */
#ifndef WEFT_FABRIC_SOFT_WIRE_H
#define WEFT_FABRIC_SOFT_WIRE_H

#include "fabric/soft/soft.h"

#include <string.h>
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

/* What a message is, in six bits: up to SOFT_LINE_BYTES, that many bytes of payload in the line. */
enum {
    CODE_PLACED = SOFT_LINE_BYTES + 1, /* it was put into the posted receive */
    CODE_PULL,                         /* it is to be pulled into one */
    CODE_AM_WORD,                      /* an active message that is a header of eight bytes */
    CODE_AM_LINE,                      /* one in the line, after its length */
    CODE_AM_SLOT,                      /* one in a slot */
    CODE_AM_LENT,                      /* one to be pulled; its header is in the slot */
    CODE_TAG                           /* a tagged message, or news of one; tag.c */
};
enum { HOLD_MOST = 64, ACK_EVERY = 16, COUNT_BITS = 8, CODE_BITS = 6, SEQUENCE_BITS = 42 };

#define MASK(bits) ((UINT64_C(1) << (bits)) - 1)

/* What stands in a line that does not carry the payload itself. */
struct news {
    uint64_t length;
    uint64_t at;    /* where to pull from */
    uint64_t entry; /* and from which list entry */
};
_Static_assert(sizeof(struct soft_half) == 32, "two halves are one cache line");
_Static_assert(sizeof(struct soft_line) == 64, "a line is a cache line");
_Static_assert(sizeof(struct news) <= SOFT_HOT_BYTES, "news fit into the hot line");
_Static_assert(CODE_TAG < 1 << CODE_BITS, "a code has so many bits");
_Static_assert(SOFT_RING <= 1 << (COUNT_BITS - 1), "counts of this many bits tell old from new");

/* A word of shared memory, loaded once, whatever the other end does to it meanwhile. */
static inline uint64_t load_word(const char *data, size_t number)
{
    typedef uint64_t __attribute__((may_alias)) shared_word;
    return __atomic_load_n((const shared_word *)(const void *)data + number, __ATOMIC_RELAXED);
}

static inline struct news load_news(const char *data)
{
    return (struct news){load_word(data, 0), load_word(data, 1), load_word(data, 2)};
}

/* Does the other end have this memory? */
static inline bool within(const struct soft *soft, uint64_t entry, uint64_t at, uint64_t length)
{
    return entry < SOFT_ENTRIES && soft->link.regions[entry].address &&
           length <= soft->link.regions[entry].length &&
           at <= soft->link.regions[entry].length - length;
}

/* A list of pieces in a slot; and out of it, checked: all of them, length together, lie in a region
 * of room bytes. */
void soft_pieces_write(char *list, const struct xfer *x);
int soft_pieces_read(struct fabric_pieces *pieces, const char *list, size_t length, size_t room);

/* The sequence is so long that a line of the ring that was last used a whole round of it ago, and
 * would be taken for new, cannot be met within days of nothing but messages in the hot line. */
static inline uint64_t head_of(const struct soft_mail *m, unsigned code)
{
    return ((m->sent + 1) & MASK(SEQUENCE_BITS)) | (uint64_t)code << SEQUENCE_BITS |
           (m->taken & MASK(COUNT_BITS)) << (SEQUENCE_BITS + CODE_BITS) |
           (m->posted & MASK(COUNT_BITS)) << (SEQUENCE_BITS + CODE_BITS + COUNT_BITS);
}

static inline uint64_t sequence_of(uint64_t head)
{
    return head & MASK(SEQUENCE_BITS);
}

static inline unsigned code_of(uint64_t head)
{
    return (unsigned)(head >> SEQUENCE_BITS & MASK(CODE_BITS));
}

/* What a message says of the other direction, unless the counters have said newer things. Counts of
 * eight bits are enough then: of what was acknowledged nothing can be missed, and of receives
 * posted too few may be noticed, never too many. */
static inline void note_counts(struct soft_mail *m, uint64_t head)
{
    if (m->taken < m->fresh)
        return;
    uint64_t ack = head >> (SEQUENCE_BITS + CODE_BITS);
    uint64_t posted = head >> (SEQUENCE_BITS + CODE_BITS + COUNT_BITS);
    uint64_t acked_ahead = (ack - m->acked) & MASK(COUNT_BITS);
    uint64_t posted_ahead = (posted - m->their_posted) & MASK(COUNT_BITS);
    if (acked_ahead <= m->sent - m->acked)
        m->acked += acked_ahead;
    if (posted_ahead < SOFT_RING)
        m->their_posted += posted_ahead;
}

static inline void read_counters(struct soft_mail *m)
{
    const struct soft_counters *theirs = &m->channel->counters[!m->side];
    uint64_t acked = atomic_load_explicit(&theirs->acked, memory_order_acquire);
    uint64_t posted = atomic_load_explicit(&theirs->posted, memory_order_acquire);
    uint64_t sent = atomic_load_explicit(&theirs->sent, memory_order_acquire);
    if (acked > m->acked && acked <= m->sent)
        m->acked = acked;
    if (posted > m->their_posted)
        m->their_posted = posted;
    if (sent > m->fresh)
        m->fresh = sent;
}

static inline void tell(const struct soft_mail *m, _Atomic uint64_t *counter, uint64_t value)
{
    atomic_store_explicit(&m->channel->counters[m->side].sent, m->sent, memory_order_release);
    atomic_store_explicit(counter, value, memory_order_release);
}

/* The same of what the other end may wait for in its sleep. */
static inline void tell_awake(struct soft_mail *m, _Atomic uint64_t *counter, uint64_t value)
{
    tell(m, counter, value);
    soft_wake(m, WAKES_BY_COUNTS);
}

static inline void tell_taken(struct soft_mail *m)
{
    m->told = m->taken;
    tell_awake(m, &m->channel->counters[m->side].acked, m->taken);
}

/* Is there a line for the next message? */
static inline bool line_free(struct soft_mail *m)
{
    if (m->sent - m->acked < SOFT_RING)
        return true;
    read_counters(m);
    return m->sent - m->acked < SOFT_RING;
}

static inline bool receive_posted(struct soft_mail *m)
{
    if (m->data_sent < m->their_posted)
        return true;
    read_counters(m);
    return m->data_sent < m->their_posted;
}

/* Head and a word of payload in one store: were it two, the other end, which is looking all the
 * while, could take the line away between them, and bring it back costs as much as a message. */
static inline void store_whole(struct soft_half *half, uint64_t head, const void *data)
{
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
    uint64_t word;
    memcpy(&word, data, sizeof word);
    __asm__ volatile("" ::: "memory");
    _mm_store_si128((__m128i *)(void *)half, _mm_set_epi64x((long long)word, (long long)head));
    __asm__ volatile("" ::: "memory");
#else
    memcpy(half->data, data, sizeof(uint64_t));
    atomic_store_explicit(&half->head, head, memory_order_release);
#endif
}

static inline void place_head(const struct soft *soft, struct soft_mail *m, unsigned code,
                              const void *data, size_t length)
{
    uint64_t head = head_of(m, code);
    bool hot = m->sent == m->acked && length <= SOFT_HOT_BYTES;
    m->sent++;
    if (hot) {
        struct soft_half *half = &m->channel->hot[m->side];
        m->held = m->hold;
        m->looks = 0;
        const size_t word = sizeof(uint64_t);
        if (soft->whole && (length == word || length == 2 * word || length == 3 * word)) {
            if (length == 2 * word)
                memcpy(half->data + word, (const char *)data + word, word);
            else if (length == 3 * word)
                memcpy(half->data + word, (const char *)data + word, 2 * word);
            store_whole(half, head, data);
            return;
        }
        memcpy(half->data, data, length);
        atomic_store_explicit(&half->head, head, memory_order_release);
    } else {
        struct soft_line *line = &m->channel->lines[m->side][m->sent % SOFT_RING];
        memcpy(line->data, data, length);
        atomic_store_explicit(&line->head, head, memory_order_release);
    }
}

static inline void put(const struct soft *soft, struct soft_mail *m, unsigned code,
                       const void *data, size_t length)
{
    place_head(soft, m, code, data, length);
    soft_wake(m, WAKES_BY_MAIL);
}

/* Which of our list entries this memory is, or SOFT_ENTRIES. */
static inline uint64_t entry_of(const struct soft *soft, const struct region *region)
{
    uint64_t entry = 0;
    while (entry < SOFT_ENTRIES && soft->exposed[entry] != region)
        entry++;
    return entry;
}

/* In turn, but from the first again whenever no message is under way, so that its lines stay where
 * they are. With fewer messages under way than slots, the next one is free. */
static inline unsigned next_slot(struct soft_mail *m)
{
    if (m->sent == m->acked)
        m->slot = 0;
    return m->slot++ % SOFT_SLOTS;
}

static inline bool slot_free(struct soft_mail *m)
{
    if (m->sent - m->acked < SOFT_SLOTS)
        return true;
    read_counters(m);
    return m->sent - m->acked < SOFT_SLOTS;
}

static inline void taken(struct soft_mail *m)
{
    m->taken++;
    if (m->taken - m->told >= ACK_EVERY)
        tell_taken(m);
}

/* An active message that was handed out stays until the caller comes again. */
static inline void release_kept(struct soft_mail *m)
{
    if (m->kept) {
        m->kept = false;
        taken(m);
    }
}

#endif
