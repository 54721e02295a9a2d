/* SPDX-License-Identifier: BSD-3-Clause */
/* The software NIC: opening and closing, the portal of a meeting, and list entries. */
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

void soft_describe_path(struct fabric_facts *facts)
{
    snprintf(facts->form, sizeof facts->form, "soft (software NIC, shared memory)");
    facts->proves[VERB_WRITE] = "the bytes are in the target's memory, visible to all its CPUs";
    facts->proves[VERB_READ] = "the target's bytes are in the initiator's memory";
    facts->batch_max = SOFT_BATCH;
}

static void describe(const struct soft *soft, struct fabric_facts *facts)
{
    *facts = (struct fabric_facts){
        .verbs = VERB(WRITE) | VERB(READ) | VERB(SEND) | VERB(RECV) | VERB(ATOMIC) | VERB(AM) |
                 VERB(TSEND) | VERB(TRECV),
        .honours = ((1U << HINTS) - 1) & ~(HINT(HRP) | HINT(LEND) | HINT(LOCAL)),
        .target_polls = VERB(SEND) | VERB(AM) | VERB(TSEND),
        .wakes = ((1U << VERBS) - 1) & ~VERB(READ),
        .max_inline = SOFT_IDC,
        .max_inline_ordered = SOFT_IDC_ORDERED,
        .max_ll = SOFT_PIECE,
        .max_send = SIZE_MAX,
        .max_header = SOFT_HEADER_BYTES,
        .layout_max = {[VERB_WRITE] = {SOFT_IDC, SIZE_MAX, SIZE_MAX},
                       [VERB_READ] = {0, SIZE_MAX, SIZE_MAX},
                       [VERB_AM] = {SOFT_IDC, SOFT_SLOT_BYTES, SOFT_PULL_BYTES}},
        .depth = SOFT_QUEUE,
        .pieces = VERB(AM) | VERB(TSEND) | VERB(TRECV),
        .tag_bits = UINT64_MAX,
        .max_unexpected = SOFT_KEPT - 1,
        .amo_how = soft->wide ? "16 bytes by compare-and-swap" : "16 bytes under a lock",
        .gpus = MEMORY_ALL_GPUS,
        .gpu_verbs = VERB(WRITE) | VERB(READ) | VERB(SEND) | VERB(RECV) | VERB(AM),
        .gpu_layouts = 1U << LAYOUT_BCOPY | 1U << LAYOUT_ZCOPY,
    };
    soft_describe_path(facts);
    facts->why_not[HINT_HRP] = "the software NIC has no switch that could acknowledge";
    facts->why_not[HINT_LOCAL] = "the software NIC copies at once";
    facts->why_not[HINT_LEND] = "the software NIC has no streams of bytes";
    facts->proves[VERB_SEND] = "the message is on its way in shared memory, and the source may be "
                               "reused; by rendezvous: the target has pulled it";
    facts->proves[VERB_RECV] = "the message is in the posted buffer";
    facts->proves[VERB_ATOMIC] = "the target's memory has the new value, and the initiator the "
                                 "old one if it was fetched";
    facts->proves[VERB_AM] = "the message is on its way in shared memory, and the source may be "
                             "reused; zcopy: the target has pulled it";
    facts->proves[VERB_TSEND] = "the message is on its way in shared memory, and the source may be "
                                "reused; over 8 KiB: the target has pulled it";
    facts->proves[VERB_TRECV] = "the message is in the posted buffer";
    describe_atomics(facts);
    snprintf(facts->self, sizeof facts->self, "NIC 0x%x PID %u", soft->nic.name.address,
             soft->nic.name.pid);
    snprintf(facts->domain, sizeof facts->domain, "VNI %" PRIu64, soft->nic.name.vni);
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

/* ---- the portal ---- */

/* An end that does not know yet that we left finds no list entry. */
void soft_portal_close(struct soft *soft)
{
    if (!soft->own)
        return;
    soft_own_unlist(soft->own);
    for (int i = 0; i < SOFT_ENTRIES && soft->portal; i++)
        atomic_store(&soft->portal->entries[i].key, 0);
    soft_own_release(soft->own);
    soft->own = NULL;
    soft->portal = NULL;
}

int soft_portal_open(struct soft *soft)
{
    if (soft->portal)
        return 0;
    /* Slots are for active and tagged messages; without those nobody needs their pages. */
    size_t bytes = soft->mail.arrival || soft->tags ? sizeof(struct soft_portal)
                                                    : offsetof(struct soft_portal, channel.slots);
    struct soft_own *own = calloc(1, sizeof *own);
    if (!own)
        return fail(-ENOMEM, "soft: no memory for a portal");
    own->portal.fd = -1;
    own->holders = 1;
    soft->own = own;
    int status = memory_host.alloc(&own->portal, sizeof *soft->portal, &memory_host);
    if (!status)
        status = memory_host.populate(&own->portal, 0, bytes);
    if (!status)
        status = seal(&own->portal);
    if (status) {
        soft_portal_close(soft);
        return status;
    }
    soft->portal = (struct soft_portal *)own->portal.address;
    for (int i = 0; i < SOFT_ENTRIES; i++)
        atomic_store(&soft->portal->entries[i].key, soft->keys[i]);
    return 0;
}

/* ---- opening, leaving, closing ---- */

static void soft_leave(struct fabric *fabric)
{
    struct soft *soft = (struct soft *)fabric;
    if (!soft->link.listed)
        return;
    soft_link_leave(soft);
    soft_gpu_leave(soft);
    soft_portal_close(soft);
    soft->mail = (struct soft_mail){.arrival = soft->mail.arrival};
    soft_tag_leave(soft);
    soft->command_head = soft->command_tail = soft->event_head = soft->event_tail = 0;
    soft->flying = soft->flying_sends = 0;
    memset(soft->keys, 0, sizeof soft->keys);
}

static void soft_close(struct fabric *fabric)
{
    struct soft *soft = (struct soft *)fabric;
    soft_leave(fabric);
    soft_link_close(soft);
    gpu_close(soft->gpu);
    if (soft->nic.listener >= 0)
        close(soft->nic.listener);
    soft_portal_close(soft);
    free(soft->mail.arrival);
    free(soft->tags);
    free(soft);
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
    soft->sleeps = want->events;
    soft->wide = soft_amo_wide();
    soft->whole = soft_store_whole();
    soft_link_open(&soft->link);
    int status = soft_nic_open(&soft->nic, want->device, want->service);
    if (!status && want->verbs & VERB(AM))
        status = place_arrival(soft);
    if (!status && want->verbs & (VERB(TSEND) | VERB(TRECV)))
        status = soft_tag_open(soft);
    if (!status)
        status = soft_portal_open(soft);
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

static int link_entry(struct soft *soft, struct region *region, int *slot)
{
    *slot = 0;
    while (*slot < SOFT_ENTRIES && soft->exposed[*slot] != region)
        ++*slot;
    if (*slot < SOFT_ENTRIES)
        return 0;
    int status = region->gpu ? soft_gpu_expose(soft, region) : seal(region);
    if (status)
        return status;
    *slot = 0;
    while (*slot < SOFT_ENTRIES && soft->exposed[*slot])
        ++*slot;
    if (*slot == SOFT_ENTRIES)
        return fail(-ENOSPC, "soft: all %d list entries are in use", SOFT_ENTRIES);
    soft->exposed[*slot] = region;
    soft->keys[*slot] = 0;
    return 0;
}

static int soft_expose(struct fabric *fabric, struct region *region, struct msg *key)
{
    struct soft *soft = (struct soft *)fabric;
    int slot;
    int status = link_entry(soft, region, &slot);
    if (!status && !soft->keys[slot])
        status = random_word(&soft->keys[slot]);
    if (status)
        return status;
    if (soft->portal)
        atomic_store(&soft->portal->entries[slot].key, soft->keys[slot]);
    return msg_print(key, "key=%" PRIu64 "\nlength=%zu\nentry=%d\n", soft->keys[slot],
                     region->length, slot);
}

static void soft_withdraw(struct fabric *fabric, struct region *region)
{
    struct soft *soft = (struct soft *)fabric;
    for (int i = 0; i < SOFT_ENTRIES; i++) {
        if (soft->exposed[i] != region)
            continue;
        if (soft->portal)
            atomic_store(&soft->portal->entries[i].key, 0);
        soft->exposed[i] = NULL;
        soft->keys[i] = 0;
        soft_gpu_withdraw(soft, region);
    }
}

static int soft_address(struct fabric *fabric, struct msg *mine)
{
    return soft_name_print(&((struct soft *)fabric)->nic.name, mine);
}

static int soft_connect(struct fabric *fabric, const struct fabric_meeting *meeting,
                        struct remote *remote)
{
    return soft_link_step((struct soft *)fabric, meeting, remote);
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
                                       .leave = soft_leave,
                                       .write = soft_write,
                                       .read = soft_read,
                                       .send = soft_send,
                                       .recv = soft_recv,
                                       .atomic = soft_atomic,
                                       .am = soft_am,
                                       .batch = soft_batch,
                                       .tsend = soft_tsend,
                                       .trecv = soft_trecv,
                                       .tprobe = soft_tprobe,
                                       .poll = soft_poll,
                                       .event_fd = soft_event_fd,
                                       .arm = soft_arm};
