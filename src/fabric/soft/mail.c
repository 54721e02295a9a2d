/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages. What costs time is a cache line changing owner, so a message and its answer share one:
 * the hot line carries a short message, or the news of a longer one that was put straight into
 * the posted buffer. With more than one under way, the ring carries them. Acknowledgements and
 * counts of posted receives travel with whatever goes back, and alone only when nothing does. */
#include "fabric/soft/wire.h"

#include <errno.h>

/* A receive of the other end's, read once. */
struct posted {
    uint64_t at, room, entry;
};

/* The one for message number so much, counted from 0. */
static inline int posted_for(const struct soft *soft, uint64_t number, struct posted *posted)
{
    const struct soft_mail *m = &soft->mail;
    const struct soft_posted *p = &m->channel->posted[!m->side][number % SOFT_RING];
    posted->at = atomic_load_explicit(&p->at, memory_order_relaxed);
    posted->room = atomic_load_explicit(&p->length, memory_order_relaxed);
    posted->entry = atomic_load_explicit(&p->entry, memory_order_relaxed);
    if (within(soft, posted->entry, posted->at, posted->room))
        return 0;
    return fail(-EPROTO, "soft: the other end posted a buffer outside its memory");
}

/* Into the buffer that the other end posted for this message, piece by piece if it is long. */
static int place(struct soft *soft, const struct xfer *x, const char *from, size_t *moved)
{
    struct posted to;
    int status = posted_for(soft, soft->mail.data_sent, &to);
    if (status)
        return status;
    size_t fits = x->length < to.room ? x->length : to.room;
    size_t left = fits > *moved ? fits - *moved : 0;
    if (soft->gpu)
        return soft_gpu_place(soft, x, from, to.entry, to.at, fits, moved);
    size_t piece = left < SOFT_PIECE ? left : SOFT_PIECE;
    if (piece)
        memcpy(soft->link.regions[to.entry].address + to.at + *moved, from + *moved, piece);
    *moved += piece;
    return *moved < fits ? LATER : DONE;
}

void soft_mail_placed(struct soft *soft, const struct xfer *x)
{
    soft->mail.data_sent++;
    put(soft, &soft->mail, CODE_PLACED, &x->length, sizeof x->length);
}

static int send_pull(struct soft *soft, const struct xfer *x)
{
    struct soft_mail *m = &soft->mail;
    struct news news = {.length = x->length, .at = x->at, .entry = entry_of(soft, x->local)};
    if (news.entry == SOFT_ENTRIES)
        return fail(-EINVAL, "soft: a rendezvous from memory that is not exposed");
    if (m->pull_head - m->pull_tail == SOFT_QUEUE)
        return -EAGAIN;
    m->pulling[m->pull_head % SOFT_QUEUE].id = x->id;
    m->pulling[m->pull_head++ % SOFT_QUEUE].length = x->length;
    m->data_sent++;
    put(soft, m, CODE_PULL, &news, sizeof news);
    return LATER;
}

static inline int send_now(struct soft *soft, const struct xfer *x, const char *from, size_t *moved)
{
    struct soft_mail *m = &soft->mail;
    if (!line_free(m))
        return -EAGAIN;
    if (x->how & HINT(RENDEZVOUS))
        return send_pull(soft, x);
    /* Immediate data goes along in the line where it fits; everything else straight into the posted
     * buffer. In a stream the longer lines of the ring carry more of it. */
    size_t fits = m->sent == m->acked ? SOFT_HOT_BYTES : SOFT_LINE_BYTES;
    if (x->how & HINT(INLINE) && x->length <= fits) {
        m->data_sent++;
        put(soft, m, (unsigned)x->length, from, x->length);
        return DONE;
    }
    if (!receive_posted(m))
        return -EAGAIN;
    int status = place(soft, x, from, moved);
    if (status != DONE)
        return status == LATER ? -EAGAIN : status;
    soft_mail_placed(soft, x);
    return DONE;
}

int soft_mail_send(struct soft *soft, const struct xfer *x, const char *from, size_t *moved)
{
    return send_now(soft, x, from, moved);
}

int soft_mail_begin(struct soft *soft, const struct xfer *x, uint64_t ahead)
{
    struct soft_mail *m = &soft->mail;
    struct posted to;
    if (m->sent + ahead - m->acked >= SOFT_RING || m->data_sent + ahead >= m->their_posted)
        read_counters(m);
    if (m->sent + ahead - m->acked >= SOFT_RING || m->data_sent + ahead >= m->their_posted)
        return -EAGAIN;
    int status = posted_for(soft, m->data_sent + ahead, &to);
    return status ? status
                  : soft_gpu_begin(soft, soft->link.regions[to.entry].address + to.at,
                                   soft->link.regions[to.entry].gpu, x->local->address + x->at,
                                   x->local->gpu, x->length < to.room ? x->length : to.room);
}

static int refuse(const struct soft *soft, const struct xfer *x, const char *what)
{
    if (!soft->mail.channel)
        return fail(-ENOTCONN, "soft: a %s, and no other end is connected", what);
    return fail(-ERANGE, "soft: a %s of %zu bytes at %zu of a buffer of %zu", what, x->length,
                x->at, x->local->length);
}

int soft_send(struct fabric *fabric, const struct xfer *x)
{
    struct soft *soft = (struct soft *)fabric;
    size_t moved = 0;
    if ((x->how & HINT(INLINE) && x->length > SOFT_IDC) || soft_out_of_reach(soft, x))
        return soft_refuse_immediate(x);
    if (!soft->mail.channel || !soft_fits(x))
        return refuse(soft, x, "message");
    /* Messages never overtake each other. */
    bool waits = soft->command_head != soft->command_tail;
    if (!(x->how & HINT(LL)) || waits || (x->length > SOFT_PIECE && !(x->how & HINT(RENDEZVOUS))))
        return soft_enqueue(soft, VERB_SEND, x) ? LATER : -EAGAIN;
    return send_now(soft, x, x->local->address + x->at, &moved);
}

/* Written only when it changes: the sender keeps it in its cache. */
static inline void show(_Atomic uint64_t *word, uint64_t value)
{
    if (atomic_load_explicit(word, memory_order_relaxed) != value)
        atomic_store_explicit(word, value, memory_order_relaxed);
}

int soft_recv(struct fabric *fabric, const struct xfer *x)
{
    struct soft *soft = (struct soft *)fabric;
    struct soft_mail *m = &soft->mail;
    if (!m->channel || !soft_fits(x))
        return refuse(soft, x, "receive");
    uint64_t slot = m->posted % SOFT_RING, entry = entry_of(soft, x->local);
    if (m->posted - m->filled == SOFT_RING)
        return -EAGAIN;
    if (entry == SOFT_ENTRIES)
        return fail(-EINVAL, "soft: a receive into memory that is not exposed");
    m->receives[slot].to = x->local->address + x->at;
    m->receives[slot].length = x->length;
    m->receives[slot].id = x->id;
    if (soft->gpu)
        m->into_gpu[slot] = x->local->gpu;
    struct soft_posted *p = &m->channel->posted[m->side][slot];
    show(&p->at, x->at);
    show(&p->length, x->length);
    show(&p->entry, entry);
    m->posted++;
    tell(m, &m->channel->counters[m->side].posted, m->posted);
    return LATER;
}

/* ---- in ---- */

static inline int filled(struct soft_mail *m, struct completion *completion, uint64_t length)
{
    uint64_t slot = m->filled++ % SOFT_RING;
    *completion =
        (struct completion){.id = m->receives[slot].id, .verb = VERB_RECV, .length = length};
    if (length > m->receives[slot].length)
        completion->status = fail(-EMSGSIZE, "soft: a message of %llu bytes into a buffer of %zu",
                                  (unsigned long long)length, m->receives[slot].length);
    return 1;
}

/* By way of host memory that is locked for it. */
static __attribute__((noinline, cold)) int
take_inline_gpu(struct soft *soft, struct completion *completion, const char *data, size_t length)
{
    struct soft_mail *m = &soft->mail;
    uint64_t slot = m->filled % SOFT_RING;
    size_t room = m->receives[slot].length, fits = length < room ? length : room;
    memcpy(soft->bounce, data, fits);
    int status = soft_copy(soft, m->receives[slot].to, true, soft->bounce, false, fits);
    if (status)
        return status;
    taken(m);
    return filled(m, completion, length);
}

static inline int take_inline(struct soft *soft, struct completion *completion, const char *data,
                              size_t length)
{
    struct soft_mail *m = &soft->mail;
    uint64_t slot = m->filled % SOFT_RING;
    char *to = m->receives[slot].to;
    if (soft->gpu && m->into_gpu[slot])
        return take_inline_gpu(soft, completion, data, length);
    if (length == sizeof(uint64_t) && m->receives[slot].length >= length)
        memcpy(to, data, sizeof(uint64_t));
    else
        memcpy(to, data, length < m->receives[slot].length ? length : m->receives[slot].length);
    taken(m);
    return filled(m, completion, length);
}

/* What it says is read with the first piece: what its sender changes later changes nothing. */
static int begin_pull(struct soft *soft, const char *data)
{
    struct soft_mail *m = &soft->mail;
    struct news news = load_news(data);
    if (!within(soft, news.entry, news.at, news.length))
        return fail(-EPROTO, "soft: a rendezvous outside the other end's memory");
    m->pull.number = m->taken + 1;
    m->pull.length = news.length;
    m->pull.from = soft->link.regions[news.entry].address + news.at;
    m->pull.from_gpu = soft->link.regions[news.entry].gpu;
    m->pull.moved = 0;
    return 0;
}

/* The target's side of a rendezvous: a piece a poll. That it is done is told by a counter, which
 * the sender sees even while messages before its own wait for a receive. */
static int take_pull(struct soft *soft, struct completion *completion, const char *data)
{
    struct soft_mail *m = &soft->mail;
    uint64_t slot = m->filled % SOFT_RING;
    int status = m->pull.number == m->taken + 1 ? 0 : begin_pull(soft, data);
    if (status)
        return status;
    size_t room = m->receives[slot].length;
    size_t fits = m->pull.length < room ? m->pull.length : room;
    size_t most = soft->gpu ? SOFT_GPU_PIECE : SOFT_PIECE;
    size_t left = fits - m->pull.moved, piece = left < most ? left : most;
    char *to = m->receives[slot].to + m->pull.moved;
    const char *from = m->pull.from + m->pull.moved;
    if (soft->gpu)
        status = soft_copy(soft, to, m->into_gpu[slot], from, m->pull.from_gpu, piece);
    else
        memcpy(to, from, piece);
    if (status)
        return status;
    m->pull.moved += piece;
    if (m->pull.moved < fits)
        return 0;
    taken(m);
    tell_awake(m, &m->channel->counters[m->side].pulled, ++m->pulls);
    return filled(m, completion, m->pull.length);
}

/* The initiator's side: the oldest of its messages that was pulled. */
static int next_pulled(struct soft_mail *m, struct completion *completion)
{
    const struct soft_counters *theirs = &m->channel->counters[!m->side];
    uint64_t pulled = atomic_load_explicit(&theirs->pulled, memory_order_acquire);
    if (pulled <= m->pull_tail)
        return 0;
    uint64_t slot = m->pull_tail++ % SOFT_QUEUE;
    *completion = (struct completion){
        .id = m->pulling[slot].id, .verb = VERB_SEND, .length = m->pulling[slot].length};
    return 1;
}

static inline int take(struct soft *soft, struct completion *completion, uint64_t head,
                       const char *data, size_t room)
{
    struct soft_mail *m = &soft->mail;
    unsigned code = code_of(head);
    note_counts(m, head);
    if (code >= CODE_AM_WORD)
        return code == CODE_TAG ? soft_tag_take(soft, completion, data, room)
                                : soft_am_take(soft, completion, code, data, room);
    if (m->filled == m->posted)
        return 0; /* it waits where it is for a receive */
    if (code <= room)
        return take_inline(soft, completion, data, code);
    if (code == CODE_PULL)
        return take_pull(soft, completion, data);
    if (code != CODE_PLACED)
        return fail(-EPROTO, "soft: a message longer than its line");
    taken(m);
    return filled(m, completion, load_word(data, 0));
}

/* Looking at the line too soon after writing it takes it away from the other end while that is
 * about to answer. The right moment is just before the answer is there: found at the first look,
 * it may have waited for us; found later, we looked in vain. */
static inline void adapt(struct soft_mail *m)
{
    if (m->looks > 1)
        m->hold += m->hold < HOLD_MOST;
    else
        m->hold -= m->hold > 0;
}

/* Ours that the other end may have pulled meanwhile. */
static inline int ours_pulled(struct soft_mail *m, struct completion *completion)
{
    if (m->pull_tail != m->pull_head && next_pulled(m, completion))
        return 1;
    return m->lent_tail != m->lent_head ? soft_am_returned(m, completion) : 0;
}

/* While the next message waits for a receive, or is being pulled, ours may have been. */
static inline int taken_or_pulled(struct soft *soft, struct completion *completion, int status)
{
    return status ? status : ours_pulled(&soft->mail, completion);
}

static inline int next_message(struct soft *soft, struct completion *completion)
{
    struct soft_mail *m = &soft->mail;
    if (!m->channel)
        return 0;
    if (m->tag_work) {
        int status = soft_tag_work(soft, completion);
        if (status)
            return status;
    }
    if (m->held) {
        m->held--;
        return 0;
    }
    release_kept(m);
    m->looks++;
    uint64_t next = (m->taken + 1) & MASK(SEQUENCE_BITS);
    const struct soft_half *half = &m->channel->hot[!m->side];
    uint64_t head = atomic_load_explicit(&half->head, memory_order_acquire);
    if (sequence_of(head) == next) {
        adapt(m);
        return taken_or_pulled(soft, completion,
                               take(soft, completion, head, half->data, SOFT_HOT_BYTES));
    }
    const struct soft_line *line = &m->channel->lines[!m->side][next % SOFT_RING];
    head = atomic_load_explicit(&line->head, memory_order_acquire);
    if (sequence_of(head) == next)
        return taken_or_pulled(soft, completion,
                               take(soft, completion, head, line->data, SOFT_LINE_BYTES));
    if (m->told != m->taken)
        tell_taken(m);
    return ours_pulled(m, completion);
}

static int queued_events(struct soft *soft, struct completion *completions, int max)
{
    int got = 0;
    soft_ring(soft);
    while (got < max && soft->event_tail != soft->event_head) {
        const struct completion *event = &soft->events[soft->event_tail++ % SOFT_QUEUE];
        if (event->verb != VERBS)
            completions[got++] = *event;
    }
    return got;
}

int soft_poll(struct fabric *fabric, struct completion *completions, int max)
{
    struct soft *soft = (struct soft *)fabric;
    int got = 0;
    if (soft->command_head != soft->event_tail)
        got = queued_events(soft, completions, max);
    while (got < max) {
        int status = next_message(soft, &completions[got]);
        if (status < 0)
            return status;
        if (!status)
            break;
        /* The data of an arrival stays until the next poll: no completion may follow it. */
        if (completions[got++].verb == VERB_ARRIVAL)
            break;
    }
    return got;
}
