/* SPDX-License-Identifier: BSD-3-Clause */
/* Tagged messages. They travel as active messages do: in their line, in a slot, or, if they are
 * longer, only news of them, and the receiver pulls. The receiver matches. A message without a
 * receive leaves its line for memory of our own, so that others can pass; when that is full it
 * stays in its line, and the sender runs out of lines. */
#include "fabric/soft/tag.h"
#include "fabric/pieces.h"
#include "fabric/soft/wire.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

/* The first word of a line: length, what it is, and which of its sender's requests. */
enum { LENGTH_BITS = 40, ASKED_AT = 48 };
enum kind { TAG_LINE, TAG_SLOT, TAG_PULL, TAG_MATCHED };
#define ANSWER  (UINT64_C(1) << 44) /* the sender waits for TAG_MATCHED */
#define PIECES  (UINT64_C(1) << 45) /* TAG_PULL: a slot has the list of its pieces */
#define KIND(k) ((uint64_t)(k) << LENGTH_BITS)

/* In a line; what follows the tag is the payload, the slot, or where to pull from. */
struct line {
    uint64_t word, tag;
    char bytes[SOFT_LINE_BYTES - 2 * sizeof(uint64_t)];
};
enum {
    IN_LINE = sizeof((struct line *)0)->bytes,
    BEFORE = offsetof(struct line, bytes),
    AT_BITS = 56
};
_Static_assert(SOFT_ENTRIES <= 1 << (64 - AT_BITS), "an entry fits above the place in it");

static inline uint64_t length_of(uint64_t word)
{
    return word & MASK(LENGTH_BITS);
}

static inline enum kind kind_of(uint64_t word)
{
    return (enum kind)(word >> LENGTH_BITS & 3);
}

/* ---- open and leave ---- */

void soft_tag_leave(struct soft *soft)
{
    struct soft_tags *t = soft->tags;
    if (!t)
        return;
    t->wanted_head = t->wanted_tail = t->matched_head = t->matched_tail = 0;
    t->owed_head = t->owed_tail = 0;
    t->wait_count = t->asked_next = 0;
    memset(t->asked, 0, sizeof t->asked);
    for (t->free_count = 0; t->free_count < SOFT_KEPT; t->free_count++)
        t->free[t->free_count] = (uint16_t)(SOFT_KEPT - 1 - t->free_count);
}

/* Written to once, so that no message waits for its pages. */
int soft_tag_open(struct soft *soft)
{
    soft->tags = malloc(sizeof *soft->tags);
    if (!soft->tags)
        return fail(-ENOMEM, "soft: no memory for tagged messages");
    memset(soft->tags, 0, sizeof *soft->tags);
    soft_tag_leave(soft);
    return 0;
}

/* ---- out ---- */

static int refuse(const struct soft *soft, const struct xfer *x, const char *what)
{
    if (!soft->tags)
        return fail(-ENOTSUP, "soft: opened without tagged messages");
    if (!soft->mail.channel)
        return fail(-ENOTCONN, "soft: a %s, and no other end is connected", what);
    if (x->local->gpu)
        return fail(-ENOTSUP, "soft: a %s cannot be in GPU memory", what);
    if (soft_immediate(x) && x->length > SOFT_IDC)
        return soft_refuse_immediate(x);
    return fail(-ERANGE, "soft: a %s of %zu bytes at %zu of a buffer of %zu", what, x->length,
                x->at, x->local->length);
}

static inline bool acceptable(const struct soft *soft, const struct xfer *x)
{
    return soft->tags && soft->mail.channel && !x->local->gpu && pieces_fit(x) &&
           (!soft_immediate(x) || x->length <= SOFT_IDC);
}

/* A request that the other end answers with its number: -EAGAIN, or the bits of the word. */
static int64_t ask(struct soft_tags *t, const struct xfer *x)
{
    for (unsigned i = 0; i < SOFT_QUEUE; i++) {
        unsigned at = t->asked_next++ % SOFT_QUEUE;
        if (t->asked[at].used)
            continue;
        t->asked[at].used = true;
        t->asked[at].id = x->id;
        t->asked[at].length = x->length;
        return (int64_t)(ANSWER | (uint64_t)at << ASKED_AT);
    }
    return -EAGAIN;
}

static inline void send_line(struct soft *soft, const struct xfer *x, uint64_t asked)
{
    struct line line;
    const char *from = x->local->address + x->at;
    line.word = KIND(TAG_LINE) | x->length | asked;
    line.tag = x->tag;
    if (x->length == sizeof(uint64_t) && !x->pieces) {
        memcpy(line.bytes, from, sizeof(uint64_t));
        put(soft, &soft->mail, CODE_TAG, &line, BEFORE + sizeof(uint64_t));
        return;
    }
    pieces_gather(line.bytes, from, x->pieces, 0, x->length);
    put(soft, &soft->mail, CODE_TAG, &line, BEFORE + x->length);
}

static inline void send_news(struct soft *soft, const struct xfer *x, uint64_t word, uint64_t where)
{
    struct line line;
    line.word = word | x->length;
    line.tag = x->tag;
    memcpy(line.bytes, &where, sizeof where);
    put(soft, &soft->mail, CODE_TAG, &line, BEFORE + sizeof where);
}

/* Of a message in pieces that is to be pulled, the list goes ahead. */
static void send_list(struct soft *soft, const struct xfer *x, uint64_t asked)
{
    struct soft_mail *m = &soft->mail;
    unsigned slot = next_slot(m);
    soft_pieces_write(m->channel->slots[m->side][slot].payload, x);
    send_news(soft, x, KIND(TAG_PULL) | PIECES | asked, slot | entry_of(soft, x->local) << AT_BITS);
}

/* What is longer than a line. */
static int send_long(struct soft *soft, const struct xfer *x, uint64_t asked)
{
    struct soft_mail *m = &soft->mail;
    if (x->length > SOFT_SLOT_BYTES && x->pieces) {
        send_list(soft, x, asked);
        return LATER;
    }
    if (x->length > SOFT_SLOT_BYTES) {
        send_news(soft, x, KIND(TAG_PULL) | asked, x->at | entry_of(soft, x->local) << AT_BITS);
        return LATER;
    }
    unsigned slot = next_slot(m);
    pieces_gather(m->channel->slots[m->side][slot].payload, x->local->address + x->at, x->pieces, 0,
                  x->length);
    send_news(soft, x, KIND(TAG_SLOT) | asked, slot);
    return asked ? LATER : DONE;
}

int soft_tsend(struct fabric *fabric, const struct xfer *x)
{
    struct soft *soft = (struct soft *)fabric;
    struct soft_mail *m = &soft->mail;
    bool pulled = x->length > SOFT_SLOT_BYTES;
    int64_t asked = 0;
    if (!acceptable(soft, x))
        return refuse(soft, x, "tagged message");
    if (pulled && entry_of(soft, x->local) == SOFT_ENTRIES)
        return fail(-EINVAL, "soft: a tagged message from memory that is not exposed");
    /* Messages never overtake each other. */
    if (soft->command_head != soft->command_tail)
        soft_ring(soft);
    if (soft->command_head != soft->command_tail || !line_free(m) ||
        (x->length > IN_LINE && !slot_free(m)))
        return -EAGAIN;
    if (pulled || x->how & HINT(SYNC))
        asked = ask(soft->tags, x);
    if (asked < 0)
        return -EAGAIN;
    if (x->length > IN_LINE)
        return send_long(soft, x, (uint64_t)asked);
    send_line(soft, x, (uint64_t)asked);
    return asked ? LATER : DONE;
}

/* ---- in ---- */

/* The other end has what we asked it for. Which that is, it says itself. */
static int matched(struct soft *soft, struct completion *completion, uint64_t word)
{
    struct soft_tags *t = soft->tags;
    uint64_t number = word >> ASKED_AT;
    if (number >= SOFT_QUEUE || !t->asked[number].used)
        return fail(-EPROTO, "soft: the other end matched what was not sent");
    t->asked[number].used = false;
    taken(&soft->mail);
    *completion = (struct completion){
        .id = t->asked[number].id, .verb = VERB_TSEND, .length = t->asked[number].length};
    return 1;
}

static void note_work(struct soft *soft)
{
    const struct soft_tags *t = soft->tags;
    soft->mail.tag_work = t->owed_tail != t->owed_head || t->matched_tail != t->matched_head;
}

static void tell_matched(struct soft *soft)
{
    struct soft_tags *t = soft->tags;
    while (t->owed_tail != t->owed_head && line_free(&soft->mail)) {
        uint64_t word = KIND(TAG_MATCHED) | (uint64_t)t->owed[t->owed_tail++ % SOFT_QUEUE]
                                                << ASKED_AT;
        put(soft, &soft->mail, CODE_TAG, &word, sizeof word);
    }
    note_work(soft);
}

/* A message is in its receive. */
static int received(struct soft *soft, struct completion *completion, uint64_t word, uint64_t tag,
                    const struct soft_wanted *to)
{
    struct soft_tags *t = soft->tags;
    uint64_t length = length_of(word);
    *completion =
        (struct completion){.id = to->id, .verb = VERB_TRECV, .length = length, .tag = tag};
    if (length > to->length)
        completion->status =
            fail(-EMSGSIZE, "soft: a tagged message of %" PRIu64 " bytes into a buffer of %zu",
                 length, to->length);
    if (!(word & ANSWER))
        return 1;
    /* It cannot wait for more than it may ask for. */
    if (t->owed_head - t->owed_tail == SOFT_QUEUE)
        return fail(-EPROTO, "soft: the other end has too many tagged messages under way");
    t->owed[t->owed_head++ % SOFT_QUEUE] = (uint16_t)(word >> ASKED_AT);
    tell_matched(soft);
    return 1;
}

static inline size_t fits(uint64_t word, const struct soft_wanted *to)
{
    return length_of(word) < to->length ? length_of(word) : to->length;
}

/* The oldest receive that takes this tag, or wanted_head. */
static inline uint64_t find_wanted(const struct soft_tags *t, uint64_t tag)
{
    uint64_t at = t->wanted_tail;
    while (at != t->wanted_head &&
           !fabric_tag_fits(tag, t->wanted[at % SOFT_RING].tag, t->wanted[at % SOFT_RING].mask))
        at++;
    return at;
}

static inline struct soft_wanted take_wanted(struct soft_tags *t, uint64_t at)
{
    struct soft_wanted found = t->wanted[at % SOFT_RING];
    for (; at != t->wanted_tail; at--)
        t->wanted[at % SOFT_RING] = t->wanted[(at - 1) % SOFT_RING];
    t->wanted_tail++;
    return found;
}

/* Where its bytes are now, all of it checked; NULL: it makes no sense. where: the third word, which
 * the other end could change while it is looked at, so it is read once. */
static inline const char *source(const struct soft *soft, uint64_t word, const char *data,
                                 size_t room, uint64_t where)
{
    const struct soft_mail *m = &soft->mail;
    uint64_t length = length_of(word);
    if (kind_of(word) == TAG_LINE)
        return length <= room - BEFORE ? data + BEFORE : NULL;
    if (kind_of(word) == TAG_SLOT)
        return where < SOFT_SLOTS && length <= SOFT_SLOT_BYTES
                   ? m->channel->slots[!m->side][where].payload
                   : NULL;
    uint64_t entry = where >> AT_BITS, at = where & MASK(AT_BITS);
    if (word & PIECES)
        return word & ANSWER && at < SOFT_SLOTS && within(soft, entry, 0, 0) &&
                       !soft->link.regions[entry].gpu
                   ? soft->link.regions[entry].address
                   : NULL;
    return word & ANSWER && within(soft, entry, at, length) && !soft->link.regions[entry].gpu
               ? soft->link.regions[entry].address + at
               : NULL;
}

static void match(struct soft *soft, uint16_t number, const struct soft_wanted *to)
{
    struct soft_tags *t = soft->tags;
    t->kept[number].to = *to;
    t->matched[t->matched_head++ % SOFT_KEPT] = number;
    note_work(soft);
}

/* The list of a message's pieces, in memory of ours before it is looked at. */
static int keep_list(const struct soft *soft, struct soft_kept *kept, char *copy, uint64_t where)
{
    const struct soft_mail *m = &soft->mail;
    const char *list = m->channel->slots[!m->side][where & MASK(AT_BITS)].payload;
    struct fabric_pieces *pieces = (struct fabric_pieces *)(void *)copy;
    kept->pieces = pieces;
    return soft_pieces_read(pieces, list, length_of(kept->word),
                            soft->link.regions[where >> AT_BITS].length);
}

/* Out of its line: the next one can be looked at. What is to be pulled stays where it is. */
static int keep(struct soft *soft, uint64_t word, uint64_t tag, const char *from, uint64_t wanted,
                uint64_t where)
{
    struct soft_tags *t = soft->tags;
    if (t->free_count <= (wanted == t->wanted_head))
        return 0;
    uint16_t number = t->free[--t->free_count];
    struct soft_kept *kept = &t->kept[number];
    *kept = (struct soft_kept){.word = word, .tag = tag, .from = from};
    if (kind_of(word) != TAG_PULL) {
        memcpy(t->copies[number], from, length_of(word));
        kept->from = t->copies[number];
    } else if (word & PIECES) {
        int status = keep_list(soft, kept, t->copies[number], where);
        if (status)
            return status;
    }
    taken(&soft->mail);
    if (wanted != t->wanted_head) {
        struct soft_wanted to = take_wanted(t, wanted);
        match(soft, number, &to);
    } else {
        t->waits[t->wait_count++] = number;
    }
    return 0;
}

int soft_tag_take(struct soft *soft, struct completion *completion, const char *data, size_t room)
{
    struct soft_tags *t = soft->tags;
    uint64_t word = load_word(data, 0), tag = load_word(data, 1);
    if (!t)
        return fail(-EPROTO, "soft: a tagged message, and none was to come");
    if (kind_of(word) == TAG_MATCHED)
        return matched(soft, completion, word);
    uint64_t where = kind_of(word) == TAG_LINE ? 0 : load_word(data, 2);
    const char *from = source(soft, word, data, room, where);
    if (!from)
        return fail(-EPROTO, "soft: a tagged message longer than its place");
    uint64_t wanted = find_wanted(t, tag);
    if (wanted == t->wanted_head || kind_of(word) == TAG_PULL)
        return keep(soft, word, tag, from, wanted, where);
    struct soft_wanted to = take_wanted(t, wanted);
    size_t length = fits(word, &to);
    if (length == sizeof(uint64_t) && !to.pieces)
        memcpy(to.to, from, sizeof(uint64_t));
    else
        pieces_scatter(to.to, to.pieces, 0, from, length);
    taken(&soft->mail);
    return received(soft, completion, word, tag, &to);
}

/* The oldest that has found its receive, a piece a poll. */
int soft_tag_work(struct soft *soft, struct completion *completion)
{
    struct soft_tags *t = soft->tags;
    tell_matched(soft);
    if (t->matched_tail == t->matched_head)
        return 0;
    uint16_t number = t->matched[t->matched_tail % SOFT_KEPT];
    struct soft_kept *kept = &t->kept[number];
    size_t left = fits(kept->word, &kept->to) - kept->moved;
    size_t piece = left < SOFT_PIECE ? left : SOFT_PIECE, there, here;
    size_t at = pieces_find(kept->pieces, kept->moved, &there);
    size_t to = pieces_find(kept->to.pieces, kept->moved, &here);
    piece = there < piece ? there : piece;
    piece = here < piece ? here : piece;
    memcpy(kept->to.to + to, kept->from + at, piece);
    kept->moved += piece;
    if (piece < left)
        return 0;
    t->matched_tail++;
    t->free[t->free_count++] = number;
    int status = received(soft, completion, kept->word, kept->tag, &kept->to);
    note_work(soft);
    return status;
}

/* ---- receives ---- */

/* The oldest that waits and fits, or wait_count. */
static unsigned find_waiting(const struct soft_tags *t, const struct xfer *x)
{
    unsigned at = 0;
    while (at < t->wait_count && !fabric_tag_fits(t->kept[t->waits[at]].tag, x->tag, x->mask))
        at++;
    return at;
}

int soft_trecv(struct fabric *fabric, const struct xfer *x)
{
    struct soft *soft = (struct soft *)fabric;
    struct soft_tags *t = soft->tags;
    if (!acceptable(soft, x))
        return refuse(soft, x, "tagged receive");
    struct soft_wanted to = {.tag = x->tag,
                             .mask = x->mask,
                             .id = x->id,
                             .to = x->local->address + x->at,
                             .length = x->length,
                             .pieces = x->pieces};
    unsigned at = find_waiting(t, x);
    if (at < t->wait_count) {
        uint16_t number = t->waits[at];
        t->wait_count--;
        memmove(&t->waits[at], &t->waits[at + 1], (t->wait_count - at) * sizeof t->waits[0]);
        match(soft, number, &to);
        return LATER;
    }
    if (t->wanted_head - t->wanted_tail == SOFT_RING)
        return -EAGAIN;
    t->wanted[t->wanted_head++ % SOFT_RING] = to;
    return LATER;
}

int soft_tprobe(struct fabric *fabric, const struct xfer *x)
{
    const struct soft *soft = (struct soft *)fabric;
    if (!soft->tags || !soft->mail.channel)
        return refuse(soft, x, "tagged receive");
    return find_waiting(soft->tags, x) < soft->tags->wait_count ? DONE : -EAGAIN;
}
