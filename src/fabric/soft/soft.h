/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside soft, the software NIC. Words follow the hardware: a NIC has process ids (PIDs) in virtual
 * networks (VNIs); a target appends list entries to its portal; an initiator issues commands,
 * at once or through its command queue, and reads its event queue. */
#ifndef WEFT_FABRIC_SOFT_H
#define WEFT_FABRIC_SOFT_H

#include "fabric/fabric.h"

#include <stdalign.h>
#include <stdatomic.h>

enum {
    SOFT_NICS = 4,
    SOFT_FIRST_NIC = 0x12, /* the address of cxi0 */
    SOFT_PIDS = 511,
    SOFT_ENTRIES = 16,
    SOFT_BATCH = 4096,        /* bytes of an operation that goes in a list of its own */
    SOFT_GPU_BATCH = 1 << 20, /* and of a GPU's, which makes the list itself */
    SOFT_QUEUE = 64,
    SOFT_IDC = 224,           /* bytes that fit into a command */
    SOFT_IDC_ORDERED = 192,   /* and into one that keeps the order */
    SOFT_PIECE = 64 << 20,    /* longer copies are made in pieces, one a poll */
    SOFT_GPU_PIECE = 1 << 30, /* and a GPU's: it is faster, and every piece is waited for */
    SOFT_BOUNCE = 4096,       /* for what is waited for; then as much for each queued command: */
    SOFT_BOUNCE_ROOM = 256,
    SOFT_GUESTS = 64, /* ends that may dial before we meet them */
    SOFT_NONCE = 64   /* characters */
};

/* ---- nic.c: names ---- */

/* What the name of an end's socket is made of. */
struct soft_name {
    unsigned address, pid;
    uint64_t vni, user;
    uint64_t tag; /* not 0: another user keeps the name without it */
};

struct soft_nic {
    struct soft_name name;
    int listener; /* bound to the name: having it is having the PID */
};

int soft_nic_list(void (*say)(void *arg, const char *device, const char *what), void *arg);

/* Takes this user's lowest free PID of a device in the service's VNI. */
int soft_nic_open(struct soft_nic *nic, const char *device, uint64_t service);

/* A socket dialling that end: the descriptor, -EAGAIN, or -errno without a sentence. */
int soft_nic_dial(const struct soft_name *name);

/* The user on the other side of a socket. */
bool soft_nic_user(int fd, uint64_t *user);

/* By NIC address, PID, and then the rest: below, equal to or above 0. */
int soft_name_order(const struct soft_name *a, const struct soft_name *b);

/* As text for the other end, and from it. */
int soft_name_print(const struct soft_name *name, struct msg *text);
int soft_name_read(struct soft_name *name, const struct msg *text);

/* To a server only its own user, or root, may connect. Both ends judge alike. */
bool soft_may_connect(bool server, uint64_t mine, uint64_t theirs);

/* Can an end whose text this is be reached, and may it? server: ours is one. */
int soft_name_check(const struct soft_name *ours, bool server, const struct soft_name *theirs,
                    const struct msg *text);

/* What nobody can do to shared memory any more: set here, checked on receipt. */
#define SOFT_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

/* ---- soft.c: what both ends see ---- */

/* A list entry, in the target's portal. key 0: not linked. Where its memory is and how long is not
 * here: the other end may change all of this at any time. */
struct soft_entry {
    _Atomic uint64_t key;
};

/* ---- mail.c: messages ---- */

enum {
    SOFT_RING = 128,
    SOFT_HOT_BYTES = 24,
    SOFT_LINE_BYTES = 56,
    SOFT_SLOTS = 32,           /* few enough to stay in a cache */
    SOFT_SLOT_BYTES = 8192,    /* the longest active message that is copied */
    SOFT_PULL_BYTES = 1 << 20, /* and that is pulled */
    SOFT_HEADER_BYTES = 1024   /* its header */
};

/* Half of the line that a message and its answer share: one cache line changes hands, once each
 * way. head says everything but the payload: sequence, what it is, what is acknowledged, how many
 * receives are posted. */
struct soft_half {
    alignas(32) _Atomic uint64_t head;
    char data[SOFT_HOT_BYTES];
};

/* A line of the ring that carries messages when more than one is under way. */
struct soft_line {
    alignas(64) _Atomic uint64_t head;
    char data[SOFT_LINE_BYTES];
};

/* A posted receive, as the sender sees it: it puts longer messages there itself. */
struct soft_posted {
    _Atomic uint64_t at, length;
    _Atomic uint64_t entry; /* which of the receiver's list entries */
};

/* The same, and more, in full: for an end that lacks room or receives, or cannot see the newest
 * message because an older one waits for a receive. sent is written before the others and read
 * after them: what a message up to that number says is older than what stands here. */
struct soft_counters {
    alignas(128) _Atomic uint64_t sent;
    _Atomic uint64_t acked, posted;
    _Atomic uint64_t pulled; /* rendezvous messages */
    _Atomic uint64_t asleep; /* what is to wake this end; 0: it is awake */
};

/* A longer active message, its header right before its payload. The payload lies in the middle of a
 * page: a source is likely to begin one, and where the two lie alike but for a few bytes, CPUs
 * take the copy's loads for loads of what it has just stored, and wait. */
struct soft_slot {
    char before[2048];
    char payload[SOFT_SLOT_BYTES];
    char after[2048];
};

/* Messages between two ends, in the portal of the one with the lower name. [0] is for that end.
 * Whatever is read here was written by the other end, which may write anything at any time: a value
 * is loaded once, checked, and then used. */
struct soft_channel {
    alignas(128) struct soft_half hot[2];
    struct soft_counters counters[2];
    alignas(128) struct soft_line lines[2][SOFT_RING];
    alignas(128) struct soft_posted posted[2][SOFT_RING];
    /* Last, because present only where active messages are wanted. */
    alignas(4096) struct soft_slot slots[2][SOFT_SLOTS];
};

/* What the other end of one meeting sees of this one. The next meeting gets another: what an end
 * that has not left yet still does in this one is seen by nobody. */
struct soft_portal {
    struct soft_entry entries[SOFT_ENTRIES];
    _Atomic uint32_t amo_lock; /* for CPUs that cannot swap 16 bytes */
    struct soft_channel channel;
};

/* One end's view of the channel. Sequences count from 1. */
struct soft_mail {
    struct soft_channel *channel;
    int side;             /* which half is ours to write */
    uint64_t sent, acked; /* the last message sent, and the last known to be taken */
    uint64_t taken, told; /* the last message taken, and what our counters tell */
    uint64_t fresh;       /* messages up to this one are older than what their counters said */
    uint64_t data_sent, their_posted; /* messages that used up a receive; receives they posted */
    uint64_t posted, filled;          /* ours */
    struct {
        char *to;
        size_t length;
        uint64_t id;
    } receives[SOFT_RING];
    struct {
        uint64_t id, length;
    } pulling[SOFT_QUEUE]; /* rendezvous sends that wait for the target to have pulled */
    uint64_t pull_head, pull_tail;
    struct {
        uint64_t id, length, number;
    } lent[SOFT_QUEUE]; /* active messages that wait for the target to have pulled */
    uint64_t lent_head, lent_tail;
    unsigned slot; /* the next to be used */
    bool kept;     /* the next message is handed out and not yet taken */
    bool wakes;    /* the other end may sleep; by this socket it is woken: */
    int waker;
    char *arrival;  /* where active messages go that do not stay in a slot, or NULL */
    unsigned hold;  /* polls to let pass after a message in the hot line; adapts itself */
    unsigned held;  /* of them, still to pass */
    unsigned looks; /* at the line since then */
    struct {
        uint64_t number, length; /* of the message */
        const char *from;
        bool from_gpu;
        size_t moved;
    } pull;                   /* the rendezvous message that is being pulled */
    uint64_t pulls;           /* rendezvous messages pulled */
    bool into_gpu[SOFT_RING]; /* the receives; set only where a GPU takes part */
    bool tag_work;            /* poll has something to do for tagged messages */
};

/* ---- sleep.c: ends that sleep ---- */

enum { WAKES_BY_MAIL = 1, WAKES_BY_COUNTS = 2 };
int soft_event_fd(struct fabric *fabric);
int soft_arm(struct fabric *fabric);
/* If it sleeps, and this is to wake it. */
void soft_wake_up(struct soft_mail *mail, uint64_t what);

/* After something that the other end may wait for. */
static inline void soft_wake(struct soft_mail *mail, uint64_t what)
{
    if (mail->wakes)
        soft_wake_up(mail, what);
}

/* ---- amo.c: the atomic unit ---- */

struct soft_wide {
    alignas(16) uint64_t low;
    uint64_t high;
};

struct soft_amo {
    enum amo_op op;
    enum amo_type type;
    enum amo_compare compare;
    struct soft_wide operand, compare_with;
};

/* Can this CPU swap 16 bytes at once? Store 16 aligned bytes so that all appear at once? */
bool soft_amo_wide(void);
bool soft_store_whole(void);

/* Applies it; *old is what was there. -EAGAIN: somebody else holds the lock, or kept changing the
 * target. */
int soft_amo_apply(struct soft_portal *portal, void *target, const struct soft_amo *amo, bool wide,
                   struct soft_wide *old);

/* A command in the queue. An immediate one carries its payload or its operands. */
struct soft_command {
    struct xfer xfer;
    uint32_t verb;
    size_t moved;
    struct fabric_batch list; /* one command may be a list of copies by a GPU */
    int status;               /* of beginning those */
    struct soft_amo amo;
    char idc[SOFT_IDC];
};

/* The other end's memory as we reach it. */
struct soft_map {
    void *address; /* NULL: none */
    size_t length;
    bool gpu;    /* a GPU's */
    bool shared; /* of our own process: not ours to unmap when we leave */
};

/* ---- own.c: ends of this process ---- */

/* The portal of a meeting, and what another end of this process needs to use it, and the memory of
 * its list entries, in place. That end finds it here: no address comes out of a socket. */
struct soft_own {
    struct region portal;
    unsigned holders; /* ends that use it; the last one frees it */
    struct soft_own *next;
    char nonce[SOFT_NONCE + 1];
    struct soft_name name, other; /* whose it is, and who may find it */
    struct {
        uint64_t key;
        struct region region;
    } entries[SOFT_ENTRIES];
};

struct soft;

/* From now on it is found by the other end of this meeting. */
void soft_own_list(const struct soft *soft, const char *nonce);

/* What the other end of this meeting has, if it is of this process, else NULL. To be released. */
struct soft_own *soft_own_find(const struct soft *soft, const char *nonce);

/* The memory of a key, or NULL. */
const struct region *soft_own_region(const struct soft_own *own, uint64_t key);

/* Not found any more; not used any more. */
void soft_own_unlist(struct soft_own *own);
void soft_own_release(struct soft_own *own);

/* ---- two ends exchange descriptors ---- */

struct soft_link {
    int dialled;             /* our connection to them, -1: not yet */
    int partner;             /* theirs to us, -1: not yet */
    int guests[SOFT_GUESTS]; /* accepted, nonce not yet seen, or of another meeting */
    unsigned next_guest;     /* the one that goes if there are too many */
    struct soft_name theirs;
    bool listed;           /* theirs is known, and ours can be found by it in this process */
    bool served, attached; /* they have ours; we have theirs */
    struct soft_own *own;  /* the other end is of this process: what it has; else NULL */
    int received;          /* messages so far */
    struct soft_map maps[1 + SOFT_ENTRIES];
    struct remote remotes[SOFT_ENTRIES]; /* one for each key of the meeting */
    /* Their regions by list entry, for messages. */
    struct {
        char *address;
        size_t length;
        bool gpu;
    } regions[SOFT_ENTRIES];
};

/* Host pages locked for a GPU: regions of both ends, both portals, what else takes part. */
enum { SOFT_PINS = 2 * SOFT_ENTRIES + 4 };

struct soft {
    struct fabric fabric;
    struct soft_nic nic;
    struct soft_own *own; /* the portal of this meeting and what belongs to it, or NULL */
    struct soft_portal *portal;
    struct region *exposed[SOFT_ENTRIES];
    uint64_t keys[SOFT_ENTRIES]; /* of this meeting; 0: nobody has asked for it yet */
    struct soft_link link;
    struct soft_mail mail;
    struct soft_tags *tags; /* NULL: opened without */
    bool server, sleeps;    /* may be woken */
    bool wide, whole;       /* 16 bytes can be swapped; stored as one */
    struct gpu *gpu;        /* makes all copies, if memory of either end is a GPU's; else NULL */
    uint64_t command_head, command_tail, event_head, event_tail;
    struct completion events[SOFT_QUEUE];
    struct soft_command commands[SOFT_QUEUE];
    /* Only where a GPU takes part. */
    uint64_t flying;       /* commands, from the tail on, whose copies are begun and not yet done */
    uint64_t flying_sends; /* of them */
    char *bounce;          /* for what travels in commands and lines from or to a GPU */
    void *pins[SOFT_PINS];
    unsigned pin_count;
    bool unpinned; /* some could not be locked */
    bool locked;   /* all host memory of copies is, and was so before the first one */
    struct fabric_facts *facts;
};

/* ---- soft.c ---- */

/* A portal for this meeting, if there is none yet; and its end. */
int soft_portal_open(struct soft *soft);
void soft_portal_close(struct soft *soft);

/* The path of the bytes and what completions of copies prove, without a GPU. */
void soft_describe_path(struct fabric_facts *facts);

/* The payload travels in the command. */
static inline bool soft_immediate(const struct xfer *x)
{
    return x->how & (HINT(INLINE) | HINT(SHORT));
}

/* Does it fit into our own buffer, and into a command if it is to travel in one? */
static inline bool soft_fits(const struct xfer *x)
{
    return x->length <= x->local->length && x->at <= x->local->length - x->length &&
           (!soft_immediate(x) || x->length <= SOFT_IDC);
}

/* Immediate data, but from a GPU? */
static inline bool soft_out_of_reach(const struct soft *soft, const struct xfer *x)
{
    return soft->gpu && x->local->gpu && soft_immediate(x);
}

/* Why immediate data does not fit: -errno. */
int soft_refuse_immediate(const struct xfer *x);

/* ---- command.c: writes, reads, atomics, and the command queue ---- */

int soft_write(struct fabric *fabric, const struct xfer *x);
int soft_batch(struct fabric *fabric, enum verb verb, const struct xfer *first,
               const struct fabric_batch *batch);
int soft_read(struct fabric *fabric, const struct xfer *x);
int soft_atomic(struct fabric *fabric, const struct xfer *x);

/* NULL: no room. */
struct soft_command *soft_enqueue(struct soft *soft, uint32_t verb, const struct xfer *x);

/* The doorbell: runs what is queued, as far as it goes. */
void soft_ring(struct soft *soft);

/* ---- mail.c: the verbs of messages, and poll ---- */

int soft_send(struct fabric *fabric, const struct xfer *x);
int soft_recv(struct fabric *fabric, const struct xfer *x);
int soft_poll(struct fabric *fabric, struct completion *completions, int max);

/* Puts a message out: DONE, LATER (rendezvous under way), or -EAGAIN. *moved counts the bytes of a
 * long one that were placed already. */
int soft_mail_send(struct soft *soft, const struct xfer *x, const char *from, size_t *moved);

/* The same in two steps, for copies by a GPU: begins the copy into the receive that the other end
 * posted for this message, so many after the next one: 0, -EAGAIN or -errno; and once it is done,
 * says so to the other end. */
int soft_mail_begin(struct soft *soft, const struct xfer *x, uint64_t ahead);
void soft_mail_placed(struct soft *soft, const struct xfer *x);

/* ---- am.c: active messages ---- */

int soft_am(struct fabric *fabric, const struct xfer *x);

/* One has come, in a line with room for so many bytes: 1 and the arrival, or -errno. */
int soft_am_take(struct soft *soft, struct completion *completion, unsigned code, const char *data,
                 size_t room);

/* Has the oldest one lent been pulled? */
int soft_am_returned(struct soft_mail *mail, struct completion *completion);

/* ---- tag.c: tagged messages ---- */

enum { SOFT_KEPT = 256 }; /* messages out of their lines; the last is for one with a receive */
int soft_tag_open(struct soft *soft);
void soft_tag_leave(struct soft *soft);

int soft_tsend(struct fabric *fabric, const struct xfer *x);
int soft_trecv(struct fabric *fabric, const struct xfer *x);
int soft_tprobe(struct fabric *fabric, const struct xfer *x);

/* One has come: 1 and a completion, 0, or -errno. */
int soft_tag_take(struct soft *soft, struct completion *completion, const char *data, size_t room);
/* What poll has to do where tag_work is set: the same. */
int soft_tag_work(struct soft *soft, struct completion *completion);

/* ---- gpu.c: where a GPU's memory takes part ---- */

/* A copy by the GPU if either side is its memory, else by this CPU; the bytes are there when it
 * returns. Only where soft->gpu is set. */
int soft_copy(struct soft *soft, char *to, bool to_gpu, const char *from, bool from_gpu,
              size_t length);
int soft_gpu_write(struct soft *soft, const struct xfer *x);
int soft_gpu_read(struct soft *soft, const struct xfer *x);

/* Into a receive that the other end has posted, at so much of its entry: DONE, LATER or -errno. */
int soft_gpu_place(struct soft *soft, const struct xfer *x, const char *from, uint64_t entry,
                   uint64_t at, size_t fits, size_t *moved);

/* Begins a copy, and those of a queued command: 0 or -errno. */
int soft_gpu_begin(struct soft *soft, char *to, bool to_gpu, const char *from, bool from_gpu,
                   size_t length);
int soft_gpu_begin_all(struct soft *soft, const struct soft_command *command);

/* One piece of a queued copy: DONE, -EAGAIN for more, or -errno. */
int soft_gpu_advance(struct soft *soft, struct soft_command *command);

/* Our memory, in lines for the other end; a descriptor may go along. */
int soft_gpu_describe(const struct region *region, bool own_process, struct msg *text, int *fd);

/* Does the other end say that its memory is a GPU's? Then it is mapped by the GPU. */
bool soft_gpu_said(const struct msg *text);
int soft_gpu_map(struct soft *soft, struct soft_map *map, const struct msg *text, int fd);

/* A GPU for the copies, of a region in this process; a region withdrawn; all is known: host pages
 * are locked; and undone. */
int soft_gpu_expose(struct soft *soft, const struct region *region);
void soft_gpu_withdraw(struct soft *soft, const struct region *region);
int soft_gpu_join(struct soft *soft);
void soft_gpu_unpin(struct soft *soft); /* after what is under way is done */
/* After all of the other end's memory is released. */
void soft_gpu_leave(struct soft *soft);

/* ---- link.c ---- */

void soft_link_open(struct soft_link *link);
/* Lets go of the other end; ends that wait to be met stay. */
void soft_link_leave(struct soft *soft);
void soft_link_close(struct soft *soft);

/* One step, never waiting: DONE, LATER or -errno. */
int soft_link_step(struct soft *soft, const struct fabric_meeting *meeting, struct remote *remote);

#endif
