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
#include <sys/random.h>
#include <unistd.h>

static const char no_layout[] = "soft has no data layouts for this operation";

static void describe(const struct soft *soft, struct fabric_facts *facts)
{
    *facts = (struct fabric_facts){
        .verbs = VERB(WRITE),
        .honours = HINT(INLINE) | HINT(LL) | HINT(RESTRICTED),
        .max_inline = SOFT_IDC,
        .depth = SOFT_QUEUE,
        .form = "soft (software NIC, shared memory)",
    };
    facts->proves[VERB_WRITE] = "the bytes are in the target's memory, visible to all its CPUs";
    facts->why_not[HINT_MATCHING] = "writes go to plain list entries";
    facts->why_not[HINT_RENDEZVOUS] = "writes need no rendezvous";
    facts->why_not[HINT_SHORT] = facts->why_not[HINT_BCOPY] = facts->why_not[HINT_ZCOPY] =
        no_layout;
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
    int wanted = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    if (have >= 0 && (have & wanted) == wanted)
        return 0;
    if (fcntl(region->fd, F_ADD_SEALS, wanted))
        return fail(-errno, "soft: sealing memory: %s", strerror(errno));
    return 0;
}

static void soft_close(struct fabric *fabric)
{
    struct soft *soft = (struct soft *)fabric;
    soft_link_close(&soft->link);
    if (soft->nic.listener >= 0)
        close(soft->nic.listener);
    if (soft->portal)
        memory_host.free(&soft->portal_region);
    free(soft);
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
    soft_link_open(&soft->link);
    snprintf(soft->nonce, sizeof soft->nonce, "%s", want->nonce);
    int status = soft_nic_open(&soft->nic, want->device, want->service);
    if (!status)
        status = memory_host.alloc(&soft->portal_region, sizeof *soft->portal, &memory_host);
    if (!status) {
        soft->portal = (struct soft_portal *)soft->portal_region.address;
        status = seal(&soft->portal_region);
    }
    if (status) {
        soft_close(&soft->fabric);
        return status;
    }
    describe(soft, facts);
    *fabric = &soft->fabric;
    return 0;
}

/* ---- list entries ---- */

static int soft_expose(struct fabric *fabric, struct region *region, struct blob *key)
{
    struct soft *soft = (struct soft *)fabric;
    uint64_t number;
    int slot = 0;
    int status = seal(region);
    if (status)
        return status;
    while (slot < SOFT_ENTRIES && soft->exposed[slot])
        slot++;
    if (slot == SOFT_ENTRIES)
        return fail(-ENOSPC, "soft: all %d list entries are in use", SOFT_ENTRIES);
    do {
        if (getrandom(&number, sizeof number, 0) != sizeof number)
            return fail(-errno, "soft: no random key: %s", strerror(errno));
    } while (!number);
    soft->exposed[slot] = region;
    soft->portal->entries[slot].length = region->length;
    atomic_store(&soft->portal->entries[slot].key, number);
    return blob_print(key, "key=%" PRIu64 "\nlength=%zu\nentry=%d\n", number, region->length, slot);
}

static void soft_withdraw(struct fabric *fabric, struct region *region)
{
    struct soft *soft = (struct soft *)fabric;
    for (int i = 0; i < SOFT_ENTRIES; i++)
        if (soft->exposed[i] == region) {
            atomic_store(&soft->portal->entries[i].key, 0);
            soft->exposed[i] = NULL;
        }
}

static int soft_address(struct fabric *fabric, struct blob *mine)
{
    return soft_link_address((struct soft *)fabric, mine);
}

static int soft_connect(struct fabric *fabric, const struct blob *theirs, const struct blob *keys,
                        int n, struct remote *remote)
{
    return soft_link_step((struct soft *)fabric, theirs, keys, n, remote);
}

/* ---- commands ---- */

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
    return fail(-EMSGSIZE, "soft: %zu bytes do not fit into a command, which takes %d", x->length,
                SOFT_IDC);
}

/* What the target's NIC would check. The entry's length may be changed by the other process at
 * any time, so bounds are those agreed on at connect. */
static inline bool acceptable(const struct xfer *x)
{
    const struct soft_entry *entry = x->remote->own;
    return entry && atomic_load_explicit(&entry->key, memory_order_acquire) == x->remote->key &&
           x->length <= x->remote->length && x->remote_at <= x->remote->length - x->length &&
           x->length <= x->local->length && x->at <= x->local->length - x->length &&
           (!(x->how & HINT(INLINE)) || x->length <= SOFT_IDC);
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

static int enqueue(struct soft *soft, uint32_t verb, const struct xfer *x)
{
    /* A command keeps a place in the event queue from the start. */
    if (soft->command_head - soft->event_tail >= SOFT_QUEUE)
        return -EAGAIN;
    struct soft_command *command = &soft->commands[soft->command_head++ % SOFT_QUEUE];
    command->xfer = *x;
    command->verb = verb;
    command->moved = 0;
    if (x->how & HINT(INLINE))
        memcpy(command->idc, x->local->address + x->at, x->length);
    return LATER;
}

static int soft_write(struct fabric *fabric, const struct xfer *x)
{
    struct soft *soft = (struct soft *)fabric;
    if (!acceptable(x))
        return refuse(x);
    bool behind = soft->command_head != soft->command_tail && !(x->how & HINT(RESTRICTED));
    if (!(x->how & HINT(LL)) || x->length > SOFT_PIECE || behind)
        return enqueue(soft, VERB_WRITE, x);
    const char *from = x->local->address + x->at;
    char idc[SOFT_IDC];
    if (x->how & HINT(INLINE)) {
        copy(idc, from, x->length);
        from = idc;
    }
    deliver(x, x->remote->address + x->remote_at, from, x->length);
    return DONE;
}

/* One piece of a queued command; true when it is done. */
static bool advance(struct soft_command *command)
{
    const struct xfer *x = &command->xfer;
    size_t left = x->length - command->moved;
    size_t piece = left < SOFT_PIECE ? left : SOFT_PIECE;
    const char *from = x->how & HINT(INLINE) ? command->idc : x->local->address + x->at;
    deliver(x, x->remote->address + x->remote_at + command->moved, from + command->moved, piece);
    command->moved += piece;
    return command->moved == x->length;
}

/* The doorbell: queued commands run in order, a long one piece by piece. */
static void ring(struct soft *soft)
{
    while (soft->command_tail != soft->command_head) {
        struct soft_command *command = &soft->commands[soft->command_tail % SOFT_QUEUE];
        int status = 0;
        if (!acceptable(&command->xfer))
            status = refuse(&command->xfer);
        else if (!advance(command))
            return;
        soft->events[soft->event_head++ % SOFT_QUEUE] =
            (struct completion){.id = command->xfer.id,
                                .verb = command->verb,
                                .status = status,
                                .length = command->xfer.length};
        soft->command_tail++;
    }
}

static int soft_poll(struct fabric *fabric, struct completion *completions, int max)
{
    struct soft *soft = (struct soft *)fabric;
    int got = 0;
    ring(soft);
    while (got < max && soft->event_tail != soft->event_head)
        completions[got++] = soft->events[soft->event_tail++ % SOFT_QUEUE];
    return got;
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
                                       .poll = soft_poll};
