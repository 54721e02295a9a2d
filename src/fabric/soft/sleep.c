/* SPDX-License-Identifier: BSD-3-Clause */
/* Ends that sleep. One says so in shared memory, and looks once more; the other puts something
 * there, and looks whether it sleeps: in this order one of the two sees the other. A byte over the
 * socket of the meeting wakes it, and so does the other end's death, which closes that. */
#include "fabric/soft/wire.h"

#include <errno.h>
#include <sys/socket.h>

enum { DRAIN_MOST = 16 };

/* Without room for one more byte there is one to be read. */
void soft_wake_up(struct soft_mail *m, uint64_t what)
{
    _Atomic uint64_t *asleep = &m->channel->counters[!m->side].asleep;
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(asleep, memory_order_relaxed) & what && atomic_exchange(asleep, 0))
        (void)send(m->waker, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

int soft_event_fd(struct fabric *fabric)
{
    const struct soft *soft = (const struct soft *)fabric;
    if (!soft->sleeps)
        return fail(-ENOTSUP, "soft: it was not opened for events");
    if (!soft->mail.channel)
        return fail(-ENOTCONN, "soft: no other end is connected");
    return soft->link.partner;
}

/* What woke us last time. Bytes that somebody sends without end are not waited for. */
static int drain(int fd)
{
    char byte[8];
    ssize_t n = 1;
    for (int i = 0; i < DRAIN_MOST && n > 0; i++)
        n = recv(fd, byte, sizeof byte, MSG_DONTWAIT);
    return n == 0 ? fail(-ECONNRESET, "soft: the other end has left") : 0;
}

/* The next message, unless it waits for a receive; and what the other end has pulled of ours. */
static bool something_came(struct soft_mail *m)
{
    uint64_t next = (m->taken + 1) & MASK(SEQUENCE_BITS);
    uint64_t hot = atomic_load_explicit(&m->channel->hot[!m->side].head, memory_order_acquire);
    uint64_t line = atomic_load_explicit(&m->channel->lines[!m->side][next % SOFT_RING].head,
                                         memory_order_acquire);
    uint64_t head = sequence_of(hot) == next ? hot : line;
    if (sequence_of(head) == next && (code_of(head) >= CODE_AM_WORD || m->filled != m->posted))
        return true;
    read_counters(m);
    return (m->pull_tail != m->pull_head &&
            atomic_load_explicit(&m->channel->counters[!m->side].pulled, memory_order_acquire) >
                m->pull_tail) ||
           (m->lent_tail != m->lent_head && m->acked >= m->lent[m->lent_tail % SOFT_QUEUE].number);
}

/* Commands that are queued run in poll: for them this end must not sleep. */
int soft_arm(struct fabric *fabric)
{
    struct soft *soft = (struct soft *)fabric;
    struct soft_mail *m = &soft->mail;
    if (!soft->sleeps || !m->channel)
        return fail(-ENOTCONN, "soft: not opened for events, or not connected");
    if (soft->command_head != soft->event_tail || m->kept || m->tag_work)
        return -EAGAIN;
    _Atomic uint64_t *asleep = &m->channel->counters[m->side].asleep;
    bool counts = m->pull_tail != m->pull_head || m->lent_tail != m->lent_head;
    int status = drain(soft->link.partner);
    if (status)
        return status;
    m->held = 0;
    atomic_store_explicit(asleep, counts ? WAKES_BY_MAIL | WAKES_BY_COUNTS : WAKES_BY_MAIL,
                          memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
    if (!something_came(m))
        return DONE;
    atomic_store_explicit(asleep, 0, memory_order_relaxed);
    return -EAGAIN;
}
