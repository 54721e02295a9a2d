/* SPDX-License-Identifier: BSD-3-Clause */
/* A door of bench: the session. Two ends with one fabric, opened once, and memory; any number of
 * runs follow each other on it. A run that cannot be made is refused at both ends with the same
 * sentence before anything is timed, and the session is as good as before. */
#ifndef WEFT_SESSION_H
#define WEFT_SESSION_H

#include "bench/bench.h"
#include "core/cpu.h"

enum { SESSION_MEMORY = 48 };

/* The most that a server grants a client; 0: no limit. */
struct bounds {
    uint64_t timeout_ms, memory, session_ms;
    unsigned ends;    /* so many of this machine together; 0: one */
    uint64_t threads; /* of an end */
};

/* What an end brings to a run, besides the spec. */
struct offer {
    const char *device;             /* as typed, or "" */
    bool given;                     /* by the user: it is not only a default */
    bool vouched;                   /* this end's own user named the fabric in it */
    unsigned members;               /* so many ranks of a group measure on this machine at once.
                                       Each is now client, now server: it keeps its own device,
                                       opened once for both. 0: this is no group */
    char memory[2][SESSION_MEMORY]; /* by rank, as memory is named. The client's word counts for
                                       both; "": this end's own choice, else "host" */
    uint64_t service;               /* this end's */
    unsigned verbs;                 /* that later runs of the session will need too, bits */
    bool looks;                     /* later runs will verify */
    const struct cpu_list *cpus;    /* of this end's threads, in turns; NULL: any. The caller's is
                                       there already, unless the list is to be near the NIC */
    struct bounds most;             /* a server's */
    /* What a user types at this end to name a device, for sentences. NULL: this is a program. */
    void (*typed)(const char *device, char *text, size_t room);
    const char *more; /* client: lines for the other end's front, each begins with a full stop; or
                         NULL */
};

/* What was opened. */
struct opened {
    struct fabric_choice choice;
    char here[64];
    unsigned verbs, gpus, threads;
    bool looks, server, events;
    uint64_t service;
    char tunes[SPEC_TUNES_TEXT];
};

struct session_cpu {
    bool yields;                       /* both ends on one CPU: they must take turns */
    bool crowded;                      /* more threads than CPUs: they must, too */
    bool roams;                        /* nothing keeps the ends from running on one CPU */
    int awake;                         /* keeps the CPU from deep sleep; -1: may not */
    struct session_near *near;         /* where this thread was put; NULL: nowhere */
    const struct cpu_list *of_threads; /* NULL: any */
};

struct session {
    struct peer *peer;
    const struct fabric_ops *fabric;
    struct fabric *handle; /* NULL: not open */
    struct fabric_facts facts;
    struct opened opened;
    const char *why; /* this fabric, where no end named one; or "" */
    char nonce[65];
    char memory[2][SESSION_MEMORY]; /* of the two ends, by rank */
    enum memory_vendor vendors[2];  /* whose GPU each is on */
    bool adopted;                   /* the device is the one that the other end named */
    struct region buffer;
    size_t needed; /* bytes of it for this run: it may be longer */
    struct remote remote;
    bool exposed, connected;
    bool refused; /* the last run was refused; the peer is as good as before */
    bool left;    /* the other end was told why we go */
    struct session_cpu cpu;
    struct threads *threads; /* other than this one; NULL: there are none */
};

void session_init(struct session *session);

/* Closes the fabric and frees the memory, in the order that both ends can stand. status: how the
 * last run ended; returns that, or what failed now. The peer stays open. */
int session_close(struct session *session, int status);

/* Forgets the other end and frees the memory: the device stays open, for the next one. */
void session_part(struct session *session);

/* The next partner: the last one is forgotten, device and memory stay as they are. */
void session_turn(struct session *session, struct peer *peer);

/* Before there is a peer: opens what is built in, and at a server every fabric, so that what cannot
 * be had here is refused before another end waits. */
int session_prepare(struct session *session, const struct offer *offer, const struct spec *spec,
                    bool server);

/* ---- agreeing on a run: proposal, answer, go ---- */

/* Client: what it asks for. */
int session_propose(struct session *session, const struct offer *offer, const struct spec *spec,
                    struct msg *text);

/* Server: takes the proposal over into spec (same: it must be the spec there already), chooses a
 * fabric, opens it, places memory; adds its own part to the answer, or says why not. */
int session_accept(struct session *session, const struct offer *offer, const struct msg *proposal,
                   struct spec *spec, bool same, struct msg *answer);

/* Client: the same from the server's answer, and tells the server to go, or why not. The layout in
 * the spec is settled now, at both ends. */
int session_join(struct session *session, const struct offer *offer, struct spec *spec,
                 const struct msg *answer);

/* Server: waits for that word. */
int session_await(struct session *session);

/* A refusal as lines, and out of them: 0 if it is none. */
int session_refuse(struct msg *text, int status);
int session_refused(struct session *session, const struct msg *text);

/* What a server's user left open: 600 s of silence, and a quarter of the memory that is available
 * now. */
void bounds_fill(struct bounds *bounds);

/* ---- measuring ---- */

/* One run, agreed on, from connecting to the last row. report may be NULL. If *peer->stop is set it
 * ends early with -EINTR, what was measured reported and the other end told. */
int session_measure(struct session *session, const struct spec *spec, struct report *report);

/* Server: all of it from a proposal on. same: the spec must be the client's already, and does not
 * become it. wrong: not 0 if this end knows before that it cannot, which the client is then told.
 */
int session_serve(struct session *session, const struct offer *offer, const struct msg *proposal,
                  struct spec *spec, bool same, int wrong, struct report *report);

/* All of it over a peer that is there, as a client or as a server with a spec of its own. wrong:
 * not 0 if the spec could not even be made. What is wrong with it is returned at once: the other
 * end is told, but not waited for. */
int session_run(struct session *session, const struct offer *offer, struct spec *spec, int wrong,
                struct report *report);

/* After a failure: the other end's death first looks like a fault of the fabric. Waits a moment for
 * the control connection to tell; returns the status, or a better one. */
int session_reason(struct session *session, int status);

/* After a failure: sends the reason to the other end, once. Returns the status, or a better one. */
int session_leave(struct session *session, int status);

/* Operations per second as a table of lists has them; and those that were delivered. */
double list_rate(const struct result *result);
double list_delivered(const struct result *result);

/* Do both ends have the same NIC? By its address, which is nobody else's. */
bool facts_loopback(const struct facts *facts);

/* ---- requests to the NIC ---- */

/* Operations of a size, and where their bytes come from. */
struct hint_question {
    const struct fabric_facts *facts;
    const struct op *op;
    const struct spec *spec;
    uint64_t size;
    bool gpu;
    bool lists; /* the method's */
};

struct hint_state {
    bool has;     /* the op and the fabric have it */
    bool asked;   /* the options ask for it */
    bool barred;  /* another request rules it out */
    bool holds;   /* these operations are issued so */
    char why[96]; /* where it cannot hold, asked for or not */
};

/* By enum hint, up to rendezvous: idc, ll, ... */
enum { HINT_NAMES = HINT_HRP + 1 };
extern const char *const hint_names[];
void hint_judge(const struct hint_question *question, enum hint hint, struct hint_state *state);

/* "soft:cxi0": the device as it may be typed. */
void session_device(const struct session *session, char *text, size_t room);

/* Lists: does the fabric take a whole one in one call? */
static inline bool session_takes_lists(const struct session *session, const struct spec *spec)
{
    return session->fabric->batch && spec->size.max <= session->facts.batch_max &&
           op_of(spec)->verbs & (VERB(WRITE) | VERB(READ) | VERB(ATOMIC));
}

/* Is the memory of either end on a GPU? */
static inline bool session_any_gpu(const struct session *session)
{
    return session->vendors[0] != MEMORY_CPU || session->vendors[1] != MEMORY_CPU;
}

#endif
