/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands: writes, reads and atomics, at once or through the command queue. A command executes in
 * the initiator's thread on the target's mapped memory; a full fence makes it delivered. */
#include "fabric/soft/soft.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

int soft_refuse_immediate(const struct xfer *x)
{
    if (x->local->gpu)
        return fail(-ENOTSUP, "soft: immediate data cannot come from GPU memory");
    return fail(-EMSGSIZE, "soft: %zu bytes do not fit into a command, which takes %d", x->length,
                SOFT_IDC);
}

static int refuse(const struct xfer *x)
{
    const struct soft_entry *entry = x->remote->own;
    if (!entry || atomic_load(&entry->key) != x->remote->key)
        return fail(-ENOENT, "soft: no list entry at the target has key 0x%" PRIx64,
                    x->remote->key);
    if (x->length > x->remote->length || x->remote_at > x->remote->length - x->length)
        return fail(-ERANGE, "soft: %zu bytes at %zu, the target's entry has %zu", x->length,
                    x->remote_at, x->remote->length);
    if (x->length > x->local->length || x->at > x->local->length - x->length)
        return fail(-ERANGE, "soft: %zu bytes at %zu of a buffer of %zu", x->length, x->at,
                    x->local->length);
    return soft_refuse_immediate(x);
}

/* What the target's NIC would check. The entry's length may be changed by the other process at
 * any time, so bounds are those agreed on at connect. */
static inline bool acceptable(const struct xfer *x)
{
    const struct soft_entry *entry = x->remote->own;
    return entry && atomic_load_explicit(&entry->key, memory_order_acquire) == x->remote->key &&
           x->length <= x->remote->length && x->remote_at <= x->remote->length - x->length &&
           soft_fits(x);
}

/* Matching: the entry is not named but looked for. */
static bool matched(const struct soft *soft, const struct xfer *x)
{
    const struct soft_portal *portal = soft->link.maps[0].address;
    for (int i = 0; i < SOFT_ENTRIES; i++)
        if (atomic_load_explicit(&portal->entries[i].key, memory_order_acquire) == x->remote->key)
            return true;
    return false;
}

static inline void full_fence(void)
{
    atomic_thread_fence(memory_order_seq_cst);
}

/* A word needs no call. */
static inline void copy(char *to, const char *from, size_t length)
{
    if (length == sizeof(uint64_t))
        memcpy(to, from, sizeof(uint64_t));
    else
        memcpy(to, from, length);
}

/* Ordered commands wait for everything before them to be visible. */
static inline void deliver(const struct xfer *x, char *to, const char *from, size_t length)
{
    if (!(x->how & HINT(RESTRICTED)))
        full_fence();
    copy(to, from, length);
    full_fence();
}

struct soft_command *soft_enqueue(struct soft *soft, uint32_t verb, const struct xfer *x)
{
    /* A command keeps a place in the event queue from the start. */
    if (soft->command_head - soft->event_tail >= SOFT_QUEUE)
        return NULL;
    struct soft_command *command = &soft->commands[soft->command_head++ % SOFT_QUEUE];
    command->xfer = *x;
    command->verb = verb;
    command->moved = 0;
    command->list.count = 1;
    if (soft_immediate(x) && verb != VERB_ATOMIC)
        memcpy(command->idc, x->local->address + x->at, x->length);
    return command;
}

/* Must it go through the queue? Long ones do, to be made in pieces; so does what asked for it, and
 * what must not overtake. */
static inline bool queues(const struct soft *soft, const struct xfer *x)
{
    return !(x->how & (HINT(LL) | HINT(SHORT) | HINT(BCOPY))) || x->how & HINT(ZCOPY) ||
           x->length > SOFT_PIECE ||
           (soft->command_head != soft->command_tail && !(x->how & HINT(RESTRICTED)));
}

int soft_write(struct fabric *fabric, const struct xfer *x)
{
    struct soft *soft = (struct soft *)fabric;
    if (!acceptable(x) || soft_out_of_reach(soft, x))
        return refuse(x);
    if (queues(soft, x))
        return soft_enqueue(soft, VERB_WRITE, x) ? LATER : -EAGAIN;
    if (soft->gpu) {
        int got = soft_gpu_write(soft, x);
        soft_wake(&soft->mail, WAKES_BY_MAIL);
        return got;
    }
    const char *from = x->local->address + x->at;
    char idc[SOFT_IDC];
    if (soft_immediate(x)) {
        copy(idc, from, x->length);
        from = idc;
    }
    deliver(x, x->remote->address + x->remote_at, from, x->length);
    soft_wake(&soft->mail, WAKES_BY_MAIL);
    return DONE;
}

int soft_read(struct fabric *fabric, const struct xfer *x)
{
    struct soft *soft = (struct soft *)fabric;
    if (!acceptable(x) || soft_out_of_reach(soft, x))
        return refuse(x);
    if (queues(soft, x))
        return soft_enqueue(soft, VERB_READ, x) ? LATER : -EAGAIN;
    if (soft->gpu)
        return soft_gpu_read(soft, x);
    if (!(x->how & HINT(RESTRICTED)))
        full_fence();
    copy(x->local->address + x->at, x->remote->address + x->remote_at, x->length);
    return DONE;
}

/* ---- atomics ---- */

/* A value of a type's size; none needs a call. */
static inline void copy_value(void *to, const void *from, size_t size)
{
    switch (size) {
    case 1:
        memcpy(to, from, 1);
        break;
    case 2:
        memcpy(to, from, 2);
        break;
    case 4:
        memcpy(to, from, 4);
        break;
    case 8:
        memcpy(to, from, 8);
        break;
    default:
        memcpy(to, from, AMO_MAX_BYTES);
    }
}

static inline struct soft_wide operand(const void *bytes, size_t size)
{
    struct soft_wide wide = {0, 0};
    if (bytes)
        copy_value(&wide, bytes, size);
    return wide;
}

static int refuse_atomic(const struct soft *soft, const struct xfer *x)
{
    if (!amo_valid(x->amo.op, x->amo.type, x->amo.compare_op))
        return fail(-EINVAL, "soft: no such atomic");
    if (x->length != amo_size(x->amo.type))
        return fail(-EINVAL, "soft: an atomic of %zu bytes on a type of %zu", x->length,
                    amo_size(x->amo.type));
    if (x->how & HINT(MATCHING) && !matched(soft, x))
        return fail(-ENOENT, "soft: no list entry at the target matches 0x%" PRIx64,
                    x->remote->key);
    if (x->remote_at % amo_size(x->amo.type))
        return fail(-EINVAL, "soft: an atomic of %zu bytes at %zu is not aligned",
                    amo_size(x->amo.type), x->remote_at);
    return refuse(x);
}

static int apply(const struct soft *soft, const struct xfer *x, const struct soft_amo *amo)
{
    struct soft_wide old;
    int status = soft_amo_apply(soft->link.maps[0].address, x->remote->address + x->remote_at, amo,
                                soft->wide, &old);
    if (!status && x->amo.fetch)
        copy_value(x->amo.result, &old, amo_size(amo->type));
    return status;
}

/* The add of a word, at once: what is measured in nanoseconds needs no general case. */
static inline bool plain_add(const struct soft *soft, const struct xfer *x)
{
    return x->amo.op == AMO_SUM && x->amo.type == AMO_UINT64 && x->length == sizeof(uint64_t) &&
           (x->how & (HINT(LL) | HINT(MATCHING))) == HINT(LL) &&
           !(x->remote_at % sizeof(uint64_t)) && soft->command_head == soft->command_tail &&
           acceptable(x);
}

static inline int add_word(const struct xfer *x)
{
    uint64_t operand, old;
    memcpy(&operand, x->amo.operand, sizeof operand);
    old =
        atomic_fetch_add((_Atomic uint64_t *)(void *)(x->remote->address + x->remote_at), operand);
    if (x->amo.fetch)
        memcpy(x->amo.result, &old, sizeof old);
    return DONE;
}

int soft_atomic(struct fabric *fabric, const struct xfer *x)
{
    struct soft *soft = (struct soft *)fabric;
    if (soft->gpu && (x->remote->gpu || x->local->gpu))
        return fail(-ENOTSUP, "soft: no atomics on GPU memory");
    if (plain_add(soft, x)) {
        add_word(x);
        soft_wake(&soft->mail, WAKES_BY_MAIL);
        return DONE;
    }
    if (!amo_valid(x->amo.op, x->amo.type, x->amo.compare_op) ||
        x->length != amo_size(x->amo.type) || !acceptable(x) ||
        x->remote_at % amo_size(x->amo.type) || (x->how & HINT(MATCHING) && !matched(soft, x)))
        return refuse_atomic(soft, x);
    size_t size = amo_size(x->amo.type);
    struct soft_amo amo = {.op = x->amo.op,
                           .type = x->amo.type,
                           .compare = x->amo.compare_op,
                           .operand = operand(x->amo.operand, size),
                           .compare_with = operand(x->amo.compare, size)};
    if (queues(soft, x)) {
        struct soft_command *command = soft_enqueue(soft, VERB_ATOMIC, x);
        if (!command)
            return -EAGAIN;
        /* Immediate operands are in the command; others are read when it runs. */
        command->amo = amo;
        return LATER;
    }
    int status = apply(soft, x, &amo);
    soft_wake(&soft->mail, WAKES_BY_MAIL);
    return status ? status : DONE;
}

static int run_atomic(struct soft *soft, struct soft_command *command)
{
    const struct xfer *x = &command->xfer;
    size_t size = amo_size(x->amo.type);
    if (!(x->how & HINT(INLINE))) {
        command->amo.operand = operand(x->amo.operand, size);
        command->amo.compare_with = operand(x->amo.compare, size);
    }
    return apply(soft, x, &command->amo);
}

/* ---- whole lists ---- */

/* Is every place of the list inside both buffers? */
static bool all_acceptable(const struct xfer *first, const struct fabric_batch *b)
{
    struct xfer last = *first;
    size_t by = (size_t)(b->slots - 1) * b->step;
    last.at += by;
    last.remote_at += by;
    return acceptable(first) && acceptable(&last);
}

/* Words, the commonest, need no call. Ordered commands keep their order; one fence delivers all.
 * The bytes may lie anywhere, even where the step does: so it is read once. */
static void copy_list(const struct xfer *x, const struct fabric_batch *b, char *to,
                      const char *from)
{
    const bool ordered = !(x->how & HINT(RESTRICTED));
    const size_t step = b->step, length = x->length;
    for (unsigned left = b->count; left;) {
        const unsigned round = left < b->slots ? left : b->slots;
        if (length == sizeof(uint64_t) && !ordered)
            for (size_t i = 0, at = 0; i < round; i++, at += step)
                memcpy(to + at, from + at, sizeof(uint64_t));
        else
            for (size_t i = 0, at = 0; i < round; i++, at += step) {
                memcpy(to + at, from + at, length);
                if (ordered)
                    atomic_thread_fence(memory_order_release);
            }
        /* What a place is overwritten with comes later. */
        atomic_signal_fence(memory_order_seq_cst);
        left -= round;
    }
    full_fence();
}

/* Adds of words, whose places were all checked before: a check between two would cost as much as
 * they do. */
static void add_list(const struct xfer *first, const struct fabric_batch *b)
{
    char *at = first->remote->address + first->remote_at;
    uint64_t operand;
    memcpy(&operand, first->amo.operand, sizeof operand);
    for (unsigned done = 0; done < b->count;) {
        unsigned left = b->count - done, round = left < b->slots ? left : b->slots;
        for (size_t i = 0; i < round; i++)
            atomic_fetch_add((_Atomic uint64_t *)(void *)(at + i * b->step), operand);
        done += round;
    }
}

static int apply_list(struct soft *soft, const struct xfer *first, const struct fabric_batch *b)
{
    struct xfer x = *first;
    int status = DONE;
    unsigned slot = 0;
    if (plain_add(soft, first) && !first->amo.fetch && !(b->step % sizeof(uint64_t)) &&
        all_acceptable(first, b)) {
        add_list(first, b);
        return DONE;
    }
    for (unsigned i = 0; i < b->count && status == DONE; i++) {
        status = plain_add(soft, &x) ? add_word(&x) : soft_atomic(&soft->fabric, &x);
        bool last = ++slot == b->slots;
        slot = last ? 0 : slot;
        x.remote_at = first->remote_at + slot * b->step;
        if (x.amo.fetch)
            x.amo.result = (char *)first->amo.result + slot * b->step;
    }
    return status;
}

/* For a GPU: one command, with one completion. */
static int enqueue_list(struct soft *soft, enum verb verb, const struct xfer *x,
                        const struct fabric_batch *b)
{
    struct soft_command *command = all_acceptable(x, b) ? soft_enqueue(soft, verb, x) : NULL;
    if (!command)
        return -EAGAIN;
    command->list = *b;
    return LATER;
}

int soft_batch(struct fabric *fabric, enum verb verb, const struct xfer *first,
               const struct fabric_batch *b)
{
    struct soft *soft = (struct soft *)fabric;
    struct xfer x = *first;
    bool copies = verb == VERB_WRITE || verb == VERB_READ;
    if (x.length > soft->facts->batch_max || (!copies && verb != VERB_ATOMIC))
        return -EAGAIN;
    x.how &= ~HINT(INLINE);
    if (soft->gpu)
        return copies ? enqueue_list(soft, verb, &x, b) : -EAGAIN;
    if (soft->command_head != soft->command_tail)
        return -EAGAIN;
    char *here = x.local->address + x.at;
    if (!copies) {
        x.how |= HINT(LL); /* the list is rung once, and done then */
        return apply_list(soft, &x, b);
    }
    if (!all_acceptable(&x, b))
        return -EAGAIN; /* one by one, the first that does not fit says so */
    char *there = x.remote->address + x.remote_at;
    copy_list(&x, b, verb == VERB_WRITE ? there : here, verb == VERB_WRITE ? here : there);
    soft_wake(&soft->mail, WAKES_BY_MAIL);
    return DONE;
}

/* ---- the doorbell ---- */

/* One piece of a queued copy: DONE, or -EAGAIN for more. */
static int advance(struct soft *soft, struct soft_command *command)
{
    const struct xfer *x = &command->xfer;
    if (soft->gpu)
        return soft_gpu_advance(soft, command);
    size_t left = x->length - command->moved;
    size_t piece = left < SOFT_PIECE ? left : SOFT_PIECE;
    char *there = x->remote->address + x->remote_at + command->moved;
    char *here = x->local->address + x->at + command->moved;
    if (command->verb == VERB_READ)
        deliver(x, here, there, piece);
    else
        deliver(x, there, soft_immediate(x) ? command->idc + command->moved : here, piece);
    command->moved += piece;
    return command->moved == x->length ? DONE : -EAGAIN;
}

/* DONE, LATER (its completion comes with the answer), -EAGAIN, or what failed. */
static int execute(struct soft *soft, struct soft_command *command)
{
    const struct xfer *x = &command->xfer;
    int status;
    switch (command->verb) {
    case VERB_SEND:
        return soft_mail_send(soft, x,
                              x->how & HINT(INLINE) ? command->idc : x->local->address + x->at,
                              &command->moved);
    case VERB_ATOMIC:
        if (!acceptable(x))
            return refuse_atomic(soft, x);
        status = run_atomic(soft, command);
        return status ? status : DONE;
    default:
        return acceptable(x) ? advance(soft, command) : refuse(x);
    }
}

/* The first in the queue leaves it: DONE, LATER or -errno. What completes later has its event made
 * then; its place here is given up. */
static inline void finish(struct soft *soft, const struct soft_command *command, int status)
{
    soft_wake(&soft->mail, WAKES_BY_MAIL);
    soft->events[soft->event_head++ % SOFT_QUEUE] =
        (struct completion){.id = command->xfer.id,
                            .verb = status == LATER ? VERBS : command->verb,
                            .status = status < 0 ? status : 0,
                            .length = command->xfer.length};
    soft->command_tail++;
}

/* ---- copies in flight ---- */

/* Begins a command: 0, -EAGAIN or -errno. */
static int begin(struct soft *soft, const struct soft_command *command)
{
    const struct xfer *x = &command->xfer;
    if (command->verb == VERB_SEND)
        return x->how & (HINT(INLINE) | HINT(RENDEZVOUS))
                   ? -EAGAIN
                   : soft_mail_begin(soft, x, soft->flying_sends);
    if (command->verb == VERB_ATOMIC)
        return -EAGAIN;
    return acceptable(x) ? soft_gpu_begin_all(soft, command) : refuse(x);
}

static void land(struct soft *soft, int status)
{
    for (; soft->flying; soft->flying--) {
        const struct soft_command *command = &soft->commands[soft->command_tail % SOFT_QUEUE];
        int how = status < 0 ? status : command->status ? command->status : DONE;
        if (command->verb == VERB_SEND && how == DONE)
            soft_mail_placed(soft, &command->xfer);
        finish(soft, command, how);
    }
    soft->flying_sends = 0;
}

/* Copies by a GPU are begun as far as they are queued, and known to be done together. One alone is
 * waited for, which is faster. True: they are under way. */
static bool fly(struct soft *soft)
{
    uint64_t queued = soft->command_head - soft->command_tail;
    bool list = soft->commands[soft->command_tail % SOFT_QUEUE].list.count > 1;
    if (queued == 1 && !soft->flying && !list)
        return false;
    while (soft->flying < queued) {
        struct soft_command *command =
            &soft->commands[(soft->command_tail + soft->flying) % SOFT_QUEUE];
        command->status = begin(soft, command);
        if (command->status == -EAGAIN)
            break;
        soft->flying++;
        soft->flying_sends += command->verb == VERB_SEND;
    }
    if (soft->flying == 1 && !list)
        gpu_wait(soft->gpu);
    int done = soft->flying ? gpu_done(soft->gpu) : 1;
    if (done)
        land(soft, done);
    return !done;
}

/* Queued commands run in order, a long one piece by piece. */
void soft_ring(struct soft *soft)
{
    while (soft->command_tail != soft->command_head) {
        if (soft->gpu && fly(soft))
            return;
        if (soft->command_tail == soft->command_head)
            return;
        struct soft_command *command = &soft->commands[soft->command_tail % SOFT_QUEUE];
        int status = execute(soft, command);
        if (status == -EAGAIN)
            return;
        finish(soft, command, status);
    }
}
