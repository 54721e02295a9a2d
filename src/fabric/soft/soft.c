/* SPDX-License-Identifier: BSD-3-Clause */
/* The software NIC: opening, list entries, and the execution of commands. A command executes in
 * the initiator's thread on the target's mapped memory; a full fence makes it delivered. */
#include "fabric/soft/soft.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Every op and compare on every type that has it. */
static void describe_atomics(struct fabric_facts *facts)
{
    for (unsigned type = 0; type < AMO_TYPES; type++)
        for (unsigned op = 0; op < AMO_OPS; op++)
            for (unsigned compare = 0; compare < AMO_COMPARES; compare++) {
                if (!amo_valid(op, type, compare))
                    continue;
                facts->amo[0][op] |= (uint16_t)(1U << type);
                facts->amo[1][op] |= (uint16_t)(1U << type);
                if (op == AMO_CSWAP)
                    facts->cswap[compare] |= (uint16_t)(1U << type);
            }
}

static void describe(const struct soft *soft, struct fabric_facts *facts)
{
    *facts = (struct fabric_facts){
        .verbs = VERB(WRITE) | VERB(READ) | VERB(SEND) | VERB(RECV) | VERB(ATOMIC) | VERB(AM),
        .honours = (1U << HINTS) - 1,
        .target_polls = VERB(SEND) | VERB(AM),
        .max_inline = SOFT_IDC,
        .max_send = SIZE_MAX,
        .max_header = SOFT_HEADER_BYTES,
        .layout_max = {[VERB_WRITE] = {SOFT_IDC, SIZE_MAX, SIZE_MAX},
                       [VERB_READ] = {0, SIZE_MAX, SIZE_MAX},
                       [VERB_AM] = {SOFT_IDC, SOFT_SLOT_BYTES, SOFT_PULL_BYTES}},
        .depth = SOFT_QUEUE,
        .amo_how = soft->wide ? "16 bytes by compare-and-swap" : "16 bytes under a lock",
        .gpus = MEMORY_ALL_GPUS,
        .gpu_verbs = VERB(WRITE) | VERB(READ) | VERB(SEND) | VERB(RECV) | VERB(AM),
        .gpu_layouts = 1U << LAYOUT_BCOPY | 1U << LAYOUT_ZCOPY,
        .form = "soft (software NIC, shared memory)",
    };
    facts->proves[VERB_WRITE] = "the bytes are in the target's memory, visible to all its CPUs";
    facts->proves[VERB_READ] = "the target's bytes are in the initiator's memory";
    facts->proves[VERB_SEND] = "the message is on its way in shared memory, and the source may be "
                               "reused; by rendezvous: the target has pulled it";
    facts->proves[VERB_RECV] = "the message is in the posted buffer";
    facts->proves[VERB_ATOMIC] = "the target's memory has the new value, and the initiator the "
                                 "old one if it was fetched";
    facts->proves[VERB_AM] = "the message is on its way in shared memory, and the source may be "
                             "reused; zcopy: the target has pulled it";
    describe_atomics(facts);
    snprintf(facts->self, sizeof facts->self, "NIC 0x%x PID %u", soft->nic.address, soft->nic.pid);
    snprintf(facts->domain, sizeof facts->domain, "VNI %" PRIu64, soft->nic.vni);
}

/* After this nobody can take pages away from under the other end. */
static int seal(const struct region *region)
{
    if (region->fd < 0)
        return fail(-ENOTSUP, "soft: %s memory cannot be shared with another process",
                    region->kind->name);
    int have = fcntl(region->fd, F_GET_SEALS);
    if (have >= 0 && (have & SOFT_SEALS) == SOFT_SEALS)
        return 0;
    if (fcntl(region->fd, F_ADD_SEALS, SOFT_SEALS))
        return fail(-errno, "soft: sealing memory: %s", strerror(errno));
    return 0;
}

static void soft_close(struct fabric *fabric)
{
    struct soft *soft = (struct soft *)fabric;
    soft_link_close(soft);
    soft_gpu_close(soft);
    if (soft->nic.listener >= 0)
        close(soft->nic.listener);
    if (soft->portal)
        memory_host.free(&soft->portal_region);
    free(soft->mail.arrival);
    free(soft);
}

/* Slots are for active messages; who wants none does without their pages. */
static size_t portal_bytes(const struct fabric_want *want)
{
    return want->verbs & VERB(AM) ? sizeof(struct soft_portal)
                                  : offsetof(struct soft_portal, channel.slots);
}

static int place_arrival(struct soft *soft)
{
    soft->mail.arrival = malloc(SOFT_PULL_BYTES);
    if (!soft->mail.arrival)
        return fail(-ENOMEM, "soft: no memory for active messages");
    memset(soft->mail.arrival, 0, SOFT_PULL_BYTES);
    return 0;
}

static int soft_open(struct fabric **fabric, const struct fabric_want *want,
                     struct fabric_facts *facts)
{
    struct soft *soft = calloc(1, sizeof *soft);
    if (!soft)
        return fail(-ENOMEM, "soft: no memory for a NIC");
    soft->fabric.ops = &fabric_soft;
    soft->nic.listener = -1;
    soft->server = want->server;
    soft->wide = soft_amo_wide();
    soft->whole = soft_store_whole();
    soft_link_open(&soft->link);
    int status = soft_nic_open(&soft->nic, want->device, want->service);
    if (!status)
        status = memory_host.alloc(&soft->portal_region, sizeof *soft->portal, &memory_host);
    if (!status) {
        soft->portal = (struct soft_portal *)soft->portal_region.address;
        status = memory_host.populate(&soft->portal_region, 0, portal_bytes(want));
    }
    if (!status)
        status = seal(&soft->portal_region);
    if (!status && want->verbs & VERB(AM))
        status = place_arrival(soft);
    if (status) {
        soft_close(&soft->fabric);
        return status;
    }
    describe(soft, facts);
    soft->facts = facts;
    *fabric = &soft->fabric;
    return 0;
}

/* ---- list entries ---- */

static int soft_expose(struct fabric *fabric, struct region *region, struct msg *key)
{
    struct soft *soft = (struct soft *)fabric;
    uint64_t number;
    int slot = 0;
    int status = region->gpu ? soft_gpu_expose(soft, region) : seal(region);
    if (status)
        return status;
    while (slot < SOFT_ENTRIES && soft->exposed[slot])
        slot++;
    if (slot == SOFT_ENTRIES)
        return fail(-ENOSPC, "soft: all %d list entries are in use", SOFT_ENTRIES);
    status = random_word(&number);
    if (status)
        return status;
    soft->exposed[slot] = region;
    soft->portal->entries[slot].length = region->length;
    atomic_store(&soft->portal->entries[slot].key, number);
    return msg_print(key, "key=%" PRIu64 "\nlength=%zu\nentry=%d\n", number, region->length, slot);
}

static void soft_withdraw(struct fabric *fabric, struct region *region)
{
    struct soft *soft = (struct soft *)fabric;
    for (int i = 0; i < SOFT_ENTRIES; i++)
        if (soft->exposed[i] == region) {
            atomic_store(&soft->portal->entries[i].key, 0);
            soft->exposed[i] = NULL;
            soft_gpu_withdraw(soft, region);
        }
}

static int soft_address(struct fabric *fabric, struct msg *mine)
{
    return soft_link_address((struct soft *)fabric, mine);
}

static int soft_connect(struct fabric *fabric, const struct fabric_meeting *meeting,
                        struct remote *remote)
{
    return soft_link_step((struct soft *)fabric, meeting, remote);
}

/* ---- commands ---- */

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

static int soft_write(struct fabric *fabric, const struct xfer *x)
{
    struct soft *soft = (struct soft *)fabric;
    if (!acceptable(x) || soft_out_of_reach(soft, x))
        return refuse(x);
    if (queues(soft, x))
        return soft_enqueue(soft, VERB_WRITE, x) ? LATER : -EAGAIN;
    if (soft->gpu)
        return soft_gpu_write(soft, x);
    const char *from = x->local->address + x->at;
    char idc[SOFT_IDC];
    if (soft_immediate(x)) {
        copy(idc, from, x->length);
        from = idc;
    }
    deliver(x, x->remote->address + x->remote_at, from, x->length);
    return DONE;
}

static int soft_read(struct fabric *fabric, const struct xfer *x)
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

static int soft_atomic(struct fabric *fabric, const struct xfer *x)
{
    struct soft *soft = (struct soft *)fabric;
    if (soft->gpu && (x->remote->gpu || x->local->gpu))
        return fail(-ENOTSUP, "soft: no atomics on GPU memory");
    if (plain_add(soft, x))
        return add_word(x);
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

/* Queued commands run in order, a long one piece by piece. */
void soft_ring(struct soft *soft)
{
    while (soft->command_tail != soft->command_head) {
        struct soft_command *command = &soft->commands[soft->command_tail % SOFT_QUEUE];
        int status = execute(soft, command);
        if (status == -EAGAIN)
            return;
        /* What completes later has its event made then; its place here is given up. */
        soft->events[soft->event_head++ % SOFT_QUEUE] =
            (struct completion){.id = command->xfer.id,
                                .verb = status == LATER ? VERBS : command->verb,
                                .status = status < 0 ? status : 0,
                                .length = command->xfer.length};
        soft->command_tail++;
    }
}

const struct fabric_ops fabric_soft = {.abi = FABRIC_ABI,
                                       .name = "soft",
                                       .what = "software NIC, shared memory, one machine",
                                       .list = soft_nic_list,
                                       .open = soft_open,
                                       .close = soft_close,
                                       .expose = soft_expose,
                                       .withdraw = soft_withdraw,
                                       .address = soft_address,
                                       .connect = soft_connect,
                                       .write = soft_write,
                                       .read = soft_read,
                                       .send = soft_send,
                                       .recv = soft_recv,
                                       .atomic = soft_atomic,
                                       .am = soft_am,
                                       .poll = soft_poll};
