/* SPDX-License-Identifier: BSD-3-Clause */
/* Active messages: no receive is posted, the data is handed out where it lies. A short one travels
 * in its line; others are copied into a slot, or, without a copy at this end, pulled by the other.
 */
#include "fabric/pieces.h"
#include "fabric/soft/wire.h"

#include <errno.h>

/* In a line: how long the message is, and the message. */
struct small {
    uint64_t length;
    char bytes[SOFT_LINE_BYTES - sizeof(uint64_t)];
};

/* In a line, of a message in a slot: its length, the slot and the length of its header in one word,
 * and its first eight bytes, so that the message is known without fetching the slot. */
struct placed {
    uint64_t word, first;
};

/* Of a message that is lent, its slot has the length of its header and the header, and if it is in
 * pieces their list. */
enum { LIST_AT = sizeof(uint64_t) + SOFT_HEADER_BYTES };
#define LENT_PIECES (UINT64_C(1) << 31) /* among the bits of its entry */

/* ---- out ---- */

/* The payload into host memory. */
static inline int fetch(struct soft *soft, char *to, const struct xfer *x)
{
    const char *from = x->local->address + x->at;
    if (x->local->gpu)
        return soft_copy(soft, to, false, from, true, x->length);
    if (x->pieces)
        pieces_gather(to, from, x->pieces, 0, x->length);
    else
        memcpy(to, from, x->length);
    return 0;
}

static inline void write_header(char *to, const struct xfer *x)
{
    if (!x->header_bytes)
        return;
    memcpy(to, &x->header, sizeof x->header);
    if (x->header_bytes > sizeof x->header)
        memset(to + sizeof x->header, 0, x->header_bytes - sizeof x->header);
}

static inline int send_small(struct soft *soft, const struct xfer *x, size_t total)
{
    struct soft_mail *m = &soft->mail;
    struct small small = {.length = total};
    write_header(small.bytes, x);
    if (x->pieces)
        pieces_gather(small.bytes + x->header_bytes, x->local->address + x->at, x->pieces, 0,
                      x->length);
    else
        memcpy(small.bytes + x->header_bytes, x->local->address + x->at, x->length);
    put(soft, m, CODE_AM_LINE, &small, sizeof small.length + total);
    return DONE;
}

static inline int send_slot(struct soft *soft, const struct xfer *x, uint64_t total)
{
    struct soft_mail *m = &soft->mail;
    unsigned number = next_slot(m);
    char *payload = m->channel->slots[m->side][number].payload;
    const char *from = x->local->gpu || x->pieces ? payload : x->local->address + x->at;
    struct placed placed = {.word =
                                total | (uint64_t)number << 32 | (uint64_t)x->header_bytes << 48,
                            .first = x->header};
    write_header(payload - x->header_bytes, x);
    int status = fetch(soft, payload, x);
    if (status)
        return status;
    if (!x->header_bytes && total >= sizeof placed.first)
        memcpy(&placed.first, from, sizeof placed.first);
    put(soft, m, CODE_AM_SLOT, &placed, sizeof placed);
    return DONE;
}

static int lend(struct soft *soft, const struct xfer *x, size_t total)
{
    struct soft_mail *m = &soft->mail;
    struct news news = {.length = total, .at = x->at, .entry = entry_of(soft, x->local)};
    uint64_t header_bytes = x->header_bytes;
    if (news.entry == SOFT_ENTRIES)
        return fail(-EINVAL, "soft: an active message from memory that is not exposed");
    if (m->lent_head - m->lent_tail == SOFT_QUEUE)
        return -EAGAIN;
    unsigned number = next_slot(m);
    char *slot = m->channel->slots[m->side][number].payload;
    news.entry |= (uint64_t)number << 32;
    memcpy(slot, &header_bytes, sizeof header_bytes);
    write_header(slot + sizeof header_bytes, x);
    if (x->pieces) {
        soft_pieces_write(slot + LIST_AT, x);
        news.entry |= LENT_PIECES;
    }
    uint64_t at = m->lent_head++ % SOFT_QUEUE;
    m->lent[at].id = x->id;
    m->lent[at].length = total;
    m->lent[at].number = m->sent + 1;
    put(soft, m, CODE_AM_LENT, &news, sizeof news);
    return LATER;
}

static int refuse(const struct soft *soft, const struct xfer *x)
{
    if (!soft->mail.arrival)
        return fail(-ENOTSUP, "soft: opened without active messages");
    if (!soft->mail.channel)
        return fail(-ENOTCONN, "soft: an active message, and no other end is connected");
    if (x->header_bytes && x->header_bytes < sizeof x->header)
        return fail(-EINVAL, "soft: a header of %zu bytes is shorter than %zu", x->header_bytes,
                    sizeof x->header);
    if (x->header_bytes > SOFT_HEADER_BYTES)
        return fail(-EMSGSIZE, "soft: a header of %zu bytes, it may have %d", x->header_bytes,
                    SOFT_HEADER_BYTES);
    if (x->local->gpu && x->how & HINT(SHORT) && x->length)
        return fail(-ENOTSUP, "soft: a short active message cannot come from GPU memory");
    if (x->pieces && x->local->gpu)
        return fail(-ENOTSUP, "soft: pieces of a message cannot be in GPU memory");
    if (!pieces_fit(x))
        return fail(-ERANGE, "soft: %zu bytes at %zu of a buffer of %zu", x->length, x->at,
                    x->local->length);
    return fail(-EMSGSIZE,
                "soft: an active message of %zu bytes; it may have %d short, %d bcopy, %d zcopy",
                x->header_bytes + x->length, SOFT_IDC, SOFT_SLOT_BYTES, SOFT_PULL_BYTES);
}

static inline bool acceptable(const struct xfer *x, size_t total)
{
    size_t most = x->how & HINT(SHORT)   ? SOFT_IDC
                  : x->how & HINT(ZCOPY) ? SOFT_PULL_BYTES
                                         : SOFT_SLOT_BYTES;
    return x->header_bytes <= SOFT_HEADER_BYTES && total <= most && total >= x->length &&
           pieces_fit(x) && !(x->pieces && x->local->gpu) &&
           (!x->header_bytes || x->header_bytes >= sizeof x->header) &&
           !(x->local->gpu && x->how & HINT(SHORT) && x->length);
}

int soft_am(struct fabric *fabric, const struct xfer *x)
{
    struct soft *soft = (struct soft *)fabric;
    struct soft_mail *m = &soft->mail;
    size_t total = x->header_bytes + x->length;
    if (!m->channel || !m->arrival || !acceptable(x, total))
        return refuse(soft, x);
    /* Messages never overtake each other. */
    if (soft->command_head != soft->command_tail)
        soft_ring(soft);
    release_kept(m);
    if (soft->command_head != soft->command_tail || !line_free(m))
        return -EAGAIN;
    bool slot = x->how & (HINT(ZCOPY) | HINT(BCOPY)) ||
                total > sizeof(((struct small *)0)->bytes) ||
                (x->local->gpu && x->length && !(x->how & HINT(SHORT)));
    if (slot && !slot_free(m))
        return -EAGAIN;
    if (x->how & HINT(ZCOPY))
        return lend(soft, x, total);
    if (slot)
        return send_slot(soft, x, total);
    if (x->header_bytes == sizeof x->header && !x->length) {
        put(soft, m, CODE_AM_WORD, &x->header, sizeof x->header);
        return DONE;
    }
    return send_small(soft, x, total);
}

int soft_am_returned(struct soft_mail *m, struct completion *completion)
{
    uint64_t at = m->lent_tail % SOFT_QUEUE;
    if (m->acked < m->lent[at].number)
        read_counters(m);
    if (m->acked < m->lent[at].number)
        return 0;
    m->lent_tail++;
    *completion =
        (struct completion){.id = m->lent[at].id, .verb = VERB_AM, .length = m->lent[at].length};
    return 1;
}

/* ---- in ---- */

static inline int arrived(struct completion *completion, const char *data, uint64_t length)
{
    uint64_t header = 0;
    if (length >= sizeof header)
        memcpy(&header, data, sizeof header);
    *completion =
        (struct completion){.id = header, .verb = VERB_ARRIVAL, .length = length, .data = data};
    return 1;
}

static inline int take_small(struct soft_mail *m, struct completion *completion, const char *data,
                             size_t room)
{
    uint64_t length = load_word(data, 0);
    if (length > room - sizeof length)
        return fail(-EPROTO, "soft: an active message longer than its line");
    memcpy(m->arrival, data + sizeof length, length);
    taken(m);
    return arrived(completion, m->arrival, length);
}

static int take_slot(struct soft_mail *m, struct completion *completion, const char *data)
{
    struct placed placed = {.word = load_word(data, 0), .first = load_word(data, 1)};
    uint64_t length = placed.word & UINT32_MAX, number = placed.word >> 32 & UINT16_MAX;
    uint64_t header_bytes = placed.word >> 48;
    if (length > SOFT_SLOT_BYTES || number >= SOFT_SLOTS || header_bytes > SOFT_HEADER_BYTES)
        return fail(-EPROTO, "soft: an active message longer than its slot");
    const char *payload = m->channel->slots[!m->side][number].payload;
    m->kept = true;
    *completion = (struct completion){.id = length >= sizeof placed.first ? placed.first : 0,
                                      .verb = VERB_ARRIVAL,
                                      .length = length,
                                      .data = payload - header_bytes};
    return 1;
}

static int fetch_pieces(const struct soft *soft, char *to, const struct news *news,
                        const char *slot, uint64_t header_bytes)
{
    struct fabric_pieces pieces;
    const char *base = soft->link.regions[news->entry].address;
    size_t length = news->length - header_bytes;
    if (soft->link.regions[news->entry].gpu)
        return fail(-EPROTO, "soft: pieces of a message in GPU memory");
    int status =
        soft_pieces_read(&pieces, slot + LIST_AT, length, soft->link.regions[news->entry].length);
    if (!status)
        pieces_gather(to, base, &pieces, 0, length);
    return status;
}

static int take_lent(struct soft *soft, struct completion *completion, const char *data)
{
    struct soft_mail *m = &soft->mail;
    struct news news = load_news(data);
    uint64_t number = news.entry >> 32;
    bool in_pieces = news.entry & LENT_PIECES;
    news.entry &= LENT_PIECES - 1;
    const char *slot = m->channel->slots[!m->side][number % SOFT_SLOTS].payload;
    uint64_t header_bytes = load_word(slot, 0);
    if (header_bytes > SOFT_HEADER_BYTES || news.length > SOFT_PULL_BYTES ||
        header_bytes > news.length ||
        !within(soft, news.entry, news.at, in_pieces ? 0 : news.length - header_bytes))
        return fail(-EPROTO, "soft: an active message outside the other end's memory");
    memcpy(m->arrival, slot + sizeof header_bytes, header_bytes);
    const char *from = soft->link.regions[news.entry].address + news.at;
    if (in_pieces) {
        int status = fetch_pieces(soft, m->arrival + header_bytes, &news, slot, header_bytes);
        if (status)
            return status;
    } else if (soft->link.regions[news.entry].gpu) {
        int status = soft_copy(soft, m->arrival + header_bytes, false, from, true,
                               news.length - header_bytes);
        if (status)
            return status;
    } else {
        memcpy(m->arrival + header_bytes, from, news.length - header_bytes);
    }
    /* The sender waits for this one, and perhaps no poll follows to tell it. */
    m->taken++;
    tell_taken(m);
    return arrived(completion, m->arrival, news.length);
}

int soft_am_take(struct soft *soft, struct completion *completion, unsigned code, const char *data,
                 size_t room)
{
    struct soft_mail *m = &soft->mail;
    if (!m->arrival)
        return fail(-EPROTO, "soft: an active message, and none was to come");
    switch (code) {
    case CODE_AM_WORD:
        memcpy(m->arrival, data, sizeof(uint64_t));
        taken(m);
        return arrived(completion, m->arrival, sizeof(uint64_t));
    case CODE_AM_LINE:
        return take_small(m, completion, data, room);
    case CODE_AM_SLOT:
        return take_slot(m, completion, data);
    case CODE_AM_LENT:
        return take_lent(soft, completion, data);
    default:
        return fail(-EPROTO, "soft: an active message of an unknown kind");
    }
}
