/* SPDX-License-Identifier: BSD-3-Clause */
/* The door of fabric: THE PORT. A fabric moves bytes between two ends; it is one table, whether
 * built in (null, soft) or loaded as a module. null/null.c is the commented manual for writing one.
 * Verbs, poll and connect never block, sleep or yield: waiting is the caller's, with its deadline.
 */
#ifndef WEFT_FABRIC_H
#define WEFT_FABRIC_H

#include "fabric/facts.h"

enum { FABRIC_ABI = 13 };

struct fabric_want {
    const char *device; /* what follows "FABRIC:" */
    const char *here;   /* our end of the control connection, numeric; "": not known yet */
    uint64_t service;
    unsigned verbs, hints;
    unsigned gpus; /* whose GPU memory will be exposed at either end, as far as it is known: bits */
    unsigned threads;  /* handles of this fabric that this process has open at once, each for one
                          thread; 0 is 1 */
    bool server;       /* the end that was asked, not the one that asks */
    bool looks;        /* the data of arrivals will be looked at */
    bool events;       /* the caller will sleep: it asks for event_fd and arm */
    const char *tunes; /* settings of this fabric's own, "NAME" or "NAME=VALUE" with commas between
                          them, of facts.tunes; both ends have the same. "" or NULL: none */
};

/* One meeting with another end: what connect needs to know of it. */
struct fabric_meeting {
    const char *nonce;         /* known to both ends of this meeting and to nobody else; never used
                                  again, not even with the same end */
    const struct msg *address; /* the other end's, from its address() */
    const struct msg *keys;    /* of its regions, from its expose() */
    int count;                 /* of keys */
    const char *there;         /* the one numeric IP address that the other end may have, or NULL:
                                  it may have any. Fabrics without IP addresses have no use for it */
    uint64_t timeout_ms;       /* silence of the other end that counts as death; 0: not known */
};

/* A nonce as one word, for a first message that shows which meeting it belongs to. */
static inline uint64_t fabric_nonce_word(const char *nonce)
{
    uint64_t word = 14695981039346656037U;
    for (const char *at = nonce; *at; at++)
        word = (word ^ (unsigned char)*at) * 1099511628211U;
    return word;
}

struct fabric {
    const struct fabric_ops *ops; /* first member of every fabric's own struct */
};

struct fabric_ops {
    unsigned abi; /* FABRIC_ABI */
    const char *name;
    const char *what; /* a few words for lists */

    /* Says every usable device; none is no error. */
    int (*list)(void (*say)(void *arg, const char *device, const char *what), void *arg);

    int (*open)(struct fabric **fabric, const struct fabric_want *want, struct fabric_facts *facts);
    /* leave, and the rest. */
    void (*close)(struct fabric *fabric);

    /* Makes a region reachable; places it too if it has no address. key is for the other end of one
     * meeting. Of a region that is exposed already only the key is asked for. */
    int (*expose)(struct fabric *fabric, struct region *region, struct msg *key);
    /* Sends nothing to an end that is known to be gone, and never waits for one. */
    void (*withdraw)(struct fabric *fabric, struct region *region);

    /* This end's address for the other's connect, in one meeting: text, never our structs. */
    int (*address)(struct fabric *fabric, struct msg *mine);
    /* DONE once bytes can go both ways; LATER: call again with the same meeting; or -errno. remote
     * gets an entry for each key. */
    int (*connect)(struct fabric *fabric, const struct fabric_meeting *meeting,
                   struct remote *remote);
    /* Ends the meeting: the other end is forgotten, what is posted or under way is dropped, remotes
     * and keys are no longer good. The device stays open and regions stay exposed; for the next
     * meeting, with this end or another, ask for address and keys again. Never waits for the other
     * end, which may be dead; does nothing if there is no meeting. */
    void (*leave)(struct fabric *fabric);

    /* NULL: cannot. Operations that poll has not completed may be forgotten only by leave or close.
     */
    int (*write)(struct fabric *fabric, const struct xfer *xfer); /* bytes in the target's memory */
    int (*read)(struct fabric *fabric, const struct xfer *xfer);  /* bytes in ours */
    int (*send)(struct fabric *fabric, const struct xfer *xfer);  /* our buffer may be reused;
                                                                     RENDEZVOUS: target has pulled */
    int (*recv)(struct fabric *fabric, const struct xfer *xfer);  /* posts a buffer; never DONE */
    int (*atomic)(struct fabric *fabric, const struct xfer *xfer); /* applied; fetch: old value
                                                                      in result */
    int (*am)(struct fabric *fabric, const struct xfer *xfer);     /* our buffer may be reused;
                                                                      VERB_ARRIVAL at the other */

    /* A whole list of writes, reads or atomics in one call: DONE, LATER (one completion for all of
     * it), -EAGAIN (not now, or not such a list: post one by one), or -errno. May be NULL. */
    int (*batch)(struct fabric *fabric, enum verb verb, const struct xfer *first,
                 const struct fabric_batch *batch);

    /* All writes and atomics posted before, with HINT_LOCAL too, are in the target's memory; its
     * completion has VERB_WRITE. NULL: HINT_LOCAL is not honoured. */
    int (*flush)(struct fabric *fabric, const struct xfer *xfer);

    /* Messages that find their receive by its tag. tsend may come before it: the fabric keeps up
     * to facts.max_unexpected of them, then it has no room. */
    int (*tsend)(struct fabric *fabric, const struct xfer *xfer); /* our buffer may be reused; SYNC:
                                                                     its receive has been found */
    int (*trecv)(struct fabric *fabric, const struct xfer *xfer); /* posts a buffer; never DONE */
    /* DONE: a message that fits tag and mask has come in and waits for its receive; -EAGAIN: none
     * has. Makes no progress: poll does. May be NULL. */
    int (*tprobe)(struct fabric *fabric, const struct xfer *xfer);

    /* An ordered stream of bytes without borders. */
    int (*stream_send)(struct fabric *fabric, const struct xfer *xfer); /* our buffer may be
                                                                           reused */
    int (*stream_recv)(struct fabric *fabric, const struct xfer *xfer); /* 1 to length bytes; never
                                                                           DONE */

    /* Progress and completions: 0..max, or -errno when the link is known to be lost. */
    int (*poll)(struct fabric *fabric, struct completion *completions, int max);

    /* A descriptor that becomes readable when poll may find something, or -ENOTSUP and why; only
     * with want.events, once connected, good until leave. arm, after a poll that found nothing:
     * DONE: nothing waits, and whatever comes from now on, also memory that one of facts.wakes has
     * changed, makes it readable; -EAGAIN: poll first; or -errno. Room for a verb that returned
     * -EAGAIN wakes nobody. Both may be NULL: facts.why_no_events. */
    int (*event_fd)(struct fabric *fabric);
    int (*arm)(struct fabric *fabric);
};

/* ---- modules ---- */

/* What a module may call: it has no other way back. */
struct fabric_host {
    unsigned abi;
    const struct fabric_ops *(*find)(const char *name);
    int (*fail)(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));
    void (*warn)(const char *format, ...) __attribute__((format(printf, 1, 2)));
    int (*msg_print)(struct msg *msg, const char *format, ...)
        __attribute__((format(printf, 2, 3)));
    int (*msg_add)(struct msg *msg, const char *format, ...) __attribute__((format(printf, 2, 3)));
    int (*msg_value)(const struct msg *msg, const char *key, char *value, size_t room);
    int (*msg_number)(const struct msg *msg, const char *key, uint64_t *number);
    int (*msg_add_hex)(struct msg *msg, const char *key, const void *bytes, size_t length);
    int (*msg_hex)(const struct msg *msg, const char *key, void *bytes, size_t room,
                   size_t *length);
    int (*random_word)(uint64_t *word);
    int (*memory_enough)(uint64_t bytes);
};

/* The one symbol of a module, "weft_fabric". */
typedef const struct fabric_ops *fabric_entry(const struct fabric_host *host);

/* fabric_NAME of every built-in fabric. */
#define FABRIC_MODULE(...)
#define FABRIC_BUILT_IN(name, ...) extern const struct fabric_ops fabric_##name;
#include "fabric/fabrics.def"
#undef FABRIC_BUILT_IN
#undef FABRIC_MODULE

#endif
