/* SPDX-License-Identifier: BSD-3-Clause */
/* A software Cassini: a libcxi whose NIC is a thread. It decodes command queues, moves bytes
 * between processes by datagrams, matches list entries, writes events and counts. It is fair: it
 * knows only the formats. It is unkind: an IOVA is not an address, and the same one means other
 * memory in another address context; no context is 0; a doorbell is taken once; what is launched in
 * a window must be what stands in the ring; events are written where there is room, or are lost.
 *
 * State hangs on the LNI, so that two ends may be threads of one process. The thread starts with
 * the first command queue, after any fork. Environment:
 *   CASSINI_DEVICES  how many NICs there are (2)
 *   CASSINI_NAME     a name of its own for its network: ends of other names do not meet
 *   CASSINI_TRACE    a file to which every command is added, a line each
 *   CASSINI_FAULT    what goes wrong, see faults.c
 *   CASSINI_REMAP    the atomic that it makes a fetch-and-add of (-1: none)
 *   CASSINI_REVISION of the NIC (2): up to 2 it loses high-rate atomics on UINT32 that come to it
 */
#ifndef CASSINI_NIC_H
#define CASSINI_NIC_H

#include "fabric/cxi/cassini.h"

#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>

enum {
    MDS = 256,
    EQS = 64,
    CQS = 64,
    CTS = 64,
    PTES = 256,
    CPS = 16,
    INDICES = 256,
    OPS = 65536,
    PID_BITS = 9,
    PIDS = 511,
    PULL_INDEX = 255,
    FIRST_NID = 0x1a20, /* two NICs are on a switch */
    PORTS = 64,         /* addresses of a switch */
    MTU = 32768,
    LAUNCH_PAGE = 4096,
    QUEUED_MOST = 256 /* packets, after which commands wait */
};

struct nic;

struct md {
    struct weft_cxi_md pub;
    struct nic *nic;
    char *memory; /* where it is for this CPU: a device's is not at its address */
};

/* As the driver's: its descriptor can always be read, and is urgent after an interrupt. */
struct weft_cxil_wait_obj {
    struct nic *nic;
    int software, hardware; /* two ends of a socket */
    bool raised;
    unsigned users;
};

struct eq {
    struct weft_cxi_eq pub;
    struct nic *nic;
    struct weft_cxil_wait_obj *wait;
    const struct md *md;
    uint64_t state;     /* what software stores: how far it has read */
    uint32_t wr, limit; /* offset of the next event */
    bool initiator_long, target_long;
    bool dropped; /* an event, and software has not said that it knows */
    unsigned drop_number, users;
};

struct ct {
    struct weft_cxi_ct pub;
    struct nic *nic;
    uint64_t *page;
    uint64_t success, failure;
    struct {
        uint64_t threshold;
        struct eq *eq;
    } triggers[256];
    unsigned trigger_count;
};

struct cq {
    struct weft_cxi_cq pub;
    struct nic *nic;
    struct eq *eq;
    uint8_t *ring, *launch;
    unsigned rd, wr; /* slots */
    unsigned flags, lcid, initial_lcid;
    uint8_t cstate[32];
    bool failed;
};

/* A list entry. */
struct le {
    struct le *next;
    uint8_t command[64];
    uint64_t used; /* bytes, where the target manages the offset */
};

struct pte {
    struct weft_cxil_pte pub;
    struct nic *nic;
    struct eq *eq;
    bool matching, long_events;
    unsigned state, maps;
    struct le *entries, **last;
};

struct map {
    struct map *next; /* at the same index: only the first is reached */
    struct pte *pte;
    struct domain *domain;
    unsigned index;
};

struct cp {
    struct weft_cxi_cp pub;
    struct nic *nic;
    unsigned users;
};

struct domain {
    struct weft_cxil_domain pub;
    struct nic *nic;
    int socket;
    unsigned maps;
    struct map *portals[INDICES];
};

/* ---- packets ---- */

enum kind { PUT, GET, ATOMIC, PULL, ACK, DATA };

struct packet {
    uint32_t kind, opcode;
    uint32_t nid, pid;   /* where it comes from */
    uint32_t token;      /* of the initiator's operation */
    uint32_t index, vni; /* where it goes */
    uint32_t initiator, restricted;
    uint32_t code; /* of an answer */
    uint64_t match_bits, header_data, offset, get_offset;
    uint32_t length;    /* of the whole operation */
    uint32_t at, bytes; /* of this packet */
    uint32_t mlength, rendezvous_id, eager;
    uint8_t amo_op, amo_type, cswap_op, fetching, hrp;
    uint8_t operands[32], result[16];
    uint8_t data[];
};

struct queued {
    struct queued *next;
    struct sockaddr_un to;
    socklen_t to_length;
    size_t length;
    struct packet packet;
};

/* What we initiated and nobody has answered yet. */
struct op {
    bool busy, get, quiet, count_ack, count_reply, pulled;
    struct eq *eq;
    struct ct *ct;
    uint64_t user_ptr, to; /* IOVA */
    unsigned lac;
    uint32_t length, got, code;
    uint32_t next;
};

/* A put of several packets that has begun to come in. */
struct coming {
    struct coming *next;
    uint32_t nid, pid, token, code, mlength, got;
    char *to;
    struct le entry; /* as it was when it matched */
    struct pte *pte;
    uint64_t start, offset;
    bool unlinked;
};

struct nic {
    struct weft_cxil_lni pub;
    struct weft_cxil_devinfo info;
    pthread_mutex_t lock;
    pthread_t thread;
    bool running, stop, gone;
    int wake;
    unsigned things; /* that are there and would keep it from being destroyed */
    struct md *mds[MDS];
    struct eq *eqs[EQS];
    struct cq *cqs[CQS];
    struct ct *cts[CTS];
    struct pte *ptes[PTES];
    struct cp *cps[CPS];
    struct domain *domain;
    uint64_t next_iova[8];
    unsigned next_lac;
    struct queued *out, **out_last;
    unsigned out_count;
    uint64_t out_from_ms; /* not before */
    struct op *ops;
    uint32_t free_op;
    unsigned ops_used;
    struct coming *coming;
};

/* ---- thread.c ---- */

int nic_start(struct nic *nic);
void nic_stop(struct nic *nic);

/* ---- commands.c ---- */

/* Doorbells, windows, and what they announce: has anything been done? */
bool commands_run(struct nic *nic);

/* ---- initiator.c ---- */

/* One operation of the initiator, from a command of any form. */
struct request {
    enum kind kind;
    unsigned opcode;
    const uint8_t *flags; /* the four first bytes of the command's options */
    unsigned lac, write_lac, index_ext;
    uint32_t dfa, initiator, length;
    uint64_t offset, local, write_to;
    const void *payload; /* NULL: by DMA */
    unsigned ct, eq;
    uint64_t match_bits, header_data, user_ptr;
    unsigned eager, rendezvous_id;
    uint8_t amo_op, amo_type, cswap_op, hrp;
    uint8_t operands[32];
};

/* 0, or the code for which the command fails. */
unsigned initiator_issue(struct nic *nic, const struct request *request);
/* A get of the NIC itself, for a rendezvous. */
void initiator_pull(struct nic *nic, const struct packet *put, const struct coming *match);
void initiator_answer(struct nic *nic, const struct packet *packet);
void initiator_lost(struct nic *nic, const struct packet *packet);

/* ---- target.c ---- */

void target_packet(struct nic *nic, struct packet *packet);
unsigned target_command(struct nic *nic, const uint8_t command[64]);
void target_free(struct pte *pte);

/* ---- wire.c ---- */

int wire_open(struct domain *domain, unsigned pid);
void wire_address(uint32_t nid, unsigned vni, uint32_t pid, struct sockaddr_un *address,
                  socklen_t *length);
/* Queues a packet. */
void wire_send(struct nic *nic, uint32_t nid, uint32_t pid, const struct packet *packet,
               const void *data, size_t length);
bool wire_work(struct nic *nic);

/* ---- events.c ---- */

/* Host memory of a range of IOVAs, or NULL. */
char *nic_memory(const struct nic *nic, unsigned lac, uint64_t iova, uint64_t length);
void event_write(struct eq *eq, uint8_t *event, size_t length, unsigned type, unsigned code);
void event_initiator(struct eq *eq, unsigned type, unsigned code, uint64_t user_ptr,
                     uint32_t mlength, bool rendezvous);
void ct_add(struct ct *ct, bool success);
void ct_fire(struct ct *ct);
bool ct_doorbells(struct nic *nic);
struct eq *nic_eq(const struct nic *nic, unsigned number);
struct ct *nic_ct(const struct nic *nic, unsigned number);

/* ---- amo.c ---- */

/* 0, or a code. */
unsigned amo_apply(void *target, const struct packet *packet, uint8_t old[16]);
unsigned amo_bytes(unsigned type);

/* ---- faults.c ---- */

/* Does the fault of this name happen now? Some happen once, after some operations. */
bool fault(const char *name);
uint64_t now_ms(void);
void trace(const char *format, ...) __attribute__((format(printf, 1, 2)));
void trace_command(const struct cq *cq, const uint8_t *command, const char *how);

#endif
