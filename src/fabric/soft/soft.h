/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside soft, the software NIC. Words follow the hardware: a NIC has process ids (PIDs) in virtual
 * networks (VNIs); a target appends list entries to its portal; an initiator issues commands,
 * at once or through its command queue, and reads its event queue. */
#ifndef WEFT_FABRIC_SOFT_H
#define WEFT_FABRIC_SOFT_H

#include "fabric/fabric.h"

#include <stdatomic.h>

enum {
    SOFT_NICS = 4,
    SOFT_FIRST_NIC = 0x12, /* the address of cxi0 */
    SOFT_PIDS = 511,
    SOFT_ENTRIES = 16,
    SOFT_QUEUE = 64,
    SOFT_IDC = 224,        /* bytes that fit into a command */
    SOFT_PIECE = 64 << 20, /* longer copies are made in pieces, one a poll */
    SOFT_GUESTS = 4
};

/* ---- nic.c: names ---- */

struct soft_nic {
    unsigned address, pid;
    uint64_t vni;
    int listener; /* bound to the name of (NIC, VNI, PID): having it is having the PID */
};

int soft_nic_list(void (*say)(void *arg, const char *device, const char *what), void *arg);

/* Takes the lowest free PID of a device in the service's VNI. */
int soft_nic_open(struct soft_nic *nic, const char *device, uint64_t service);

/* A socket dialling that end: the descriptor, -EAGAIN, or -errno without a sentence. */
int soft_nic_dial(unsigned address, uint64_t vni, unsigned pid);

/* ---- soft.c: what both halves see ---- */

/* A list entry, in the target's portal. key 0: not linked. */
struct soft_entry {
    _Atomic uint64_t key;
    uint64_t length;
};

/* One page of the target's memory that initiators map. */
struct soft_portal {
    struct soft_entry entries[SOFT_ENTRIES];
};

/* A command in the queue. An immediate one carries its payload. */
struct soft_command {
    struct xfer xfer;
    uint32_t verb;
    size_t moved;
    char idc[SOFT_IDC];
};

/* A mapping of the other end's memory, undone at close. */
struct soft_map {
    void *address;
    size_t length; /* 0: it is our own process's, not ours to unmap */
};

/* ---- link.c: two ends exchange descriptors ---- */

struct soft_link {
    int dialled;             /* our connection to them, -1: not yet */
    int guests[SOFT_GUESTS]; /* accepted, nonce not yet seen */
    bool served, attached;   /* they have ours; we have theirs */
    bool same_process;
    int received; /* messages so far */
    struct soft_map maps[1 + SOFT_ENTRIES];
};

struct soft {
    struct fabric fabric;
    struct soft_nic nic;
    struct soft_portal *portal;
    struct region portal_region;
    struct region *exposed[SOFT_ENTRIES];
    struct soft_link link;
    bool server;
    char nonce[65];
    uint64_t command_head, command_tail, event_head, event_tail;
    struct completion events[SOFT_QUEUE];
    struct soft_command commands[SOFT_QUEUE];
};

void soft_link_open(struct soft_link *link);
void soft_link_close(struct soft_link *link);

/* Where this end can be dialled. */
int soft_link_address(const struct soft *soft, struct blob *mine);

/* One step, never waiting: DONE, LATER or -errno. */
int soft_link_step(struct soft *soft, const struct blob *theirs, const struct blob *keys, int n,
                   struct remote *remote);

#endif
