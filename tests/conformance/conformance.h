/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of the conformance suite share: one end, the pair of processes, questions to the
 * target, and the lists of tests by topic. */
#ifndef WEFT_CONFORMANCE_H
#define WEFT_CONFORMANCE_H

#include "fabric/choose.h"
#include "fabric/fabric.h"
#include "peer/peer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/types.h>

#include <cmocka.h>
#undef fail /* ours, not cmocka's */

/* WAIT_MS and SILENCE_MS are for what will never come. A machine that others use too has stood
 * nearly still for ten seconds. */
enum { REGION_BYTES = 1 << 20, WAIT_MS = 30000, SILENCE_MS = 60000, KEPT = 1024 };

extern struct fabric_choice choice;

/* The initiator's and the target's kind of memory, by rank. */
extern const struct memory_ops *memory_kinds[2];

/* ---- one end ---- */

struct end {
    struct fabric *handle;
    struct fabric_facts facts;
    struct region region;
    char *bytes; /* of the region, for this CPU: a GPU's own addresses are not */
    bool guest;  /* the region is another end's */
    struct msg key;
    struct remote remote;
    struct peer *peer;
    unsigned verbs; /* what may come: the target sleeps if none of it needs its polling */
    /* The target's: what was polled while it listened, for who asks later. */
    struct completion kept[KEPT];
    uint64_t kept_digest[KEPT]; /* of what arrived, which does not stay */
    unsigned kept_head, kept_tail;
};

/* share: another end whose memory this one exposes too, or NULL. */
int end_open(struct end *end, struct peer *peer, const struct end *share);
int end_connect(struct end *end);
/* Another region of so many bytes, instead of the one that is there. */
int end_resize(struct end *end, size_t length);
void end_close(struct end *end);

/* ---- the pair: this process initiates, a child is the target ---- */

struct pair {
    struct end end;
    pid_t target, second;
    struct peer *peers[2];
};

int pair_open(void **state);
/* Both ends opened for events. */
int pair_open_asleep(void **state);
int pair_close(void **state);

/* Another target alone, which waits to be met. */
int pair_target(struct pair *pair);

/* Both ends leave, and meet again; if bytes is not 0, with new regions of so many. */
void pair_meet(struct pair *pair, size_t bytes);

/* Another initiator of the same target, in a process of its own: it calls add with its own end as
 * soon as go is written to, and add's outcome is its exit status. */
int crowd_open(struct pair *pair, int (*add)(struct end *end), int *go);

/* What the target answered. */
struct answer {
    uint64_t digest, id, length;
    int status, verb;
};

/* Questions to the target: look, fill, pattern, withdraw, post, say, am, take, cells, verbs, leave,
 * tpost, tsay, tprobe. */
struct answer ask_all(struct pair *pair, const char *what, uint64_t at, uint64_t length,
                      uint64_t value);
uint64_t ask(struct pair *pair, const char *what, size_t at, size_t length, int value);

/* ---- what both ends compute alike ---- */

uint64_t digest(const char *bytes, size_t length);
uint64_t next_random(uint64_t *state);
void pattern(char *bytes, size_t length, uint64_t value);

/* Both ends at once: so many messages out, so many in, of lengths, contents and hints that follow
 * from the seed. */
struct exchange {
    uint64_t out, in, seed;
    uint64_t longest;
    unsigned how; /* of these hints each message takes some */
    uint64_t window;
    bool lazy; /* polls only when it must */
    bool am;   /* active messages */
};
int exchange_run(struct end *end, const struct exchange *exchange);
int am_exchange_run(struct end *end, const struct exchange *exchange);

/* There and back so many times, asleep in between; first: this end begins. */
int rounds_run(struct end *end, enum verb verb, uint64_t rounds, bool first);

/* An active message; value is its hints, and the bytes of its header in the upper half. */
struct xfer am_of(struct end *end, size_t at, size_t length, uint64_t value);

/* A tagged message or receive; value is its tag in 16 bits, then the mask, of which 0xffff is all
 * bits, and the id. */
struct xfer tagged_of(struct end *end, size_t at, size_t length, uint64_t value);

/* The target runs the mirror image meanwhile. */
void exchange_both(struct pair *pair, const struct exchange *exchange);

/* A value of any type of atomic. */
union value {
    int8_t i8;
    uint8_t u8;
    int16_t i16;
    uint16_t u16;
    int32_t i32;
    uint32_t u32;
    int64_t i64;
    uint64_t u64;
    float f[2];
    double d[2];
    uint64_t wide[2];
    unsigned char bytes[16];
};

struct operands {
    union value operand, compare;
};

/* What an atomic makes of its target. */
void amo_model(enum amo_op op, enum amo_type type, enum amo_compare compare, union value *t,
               const struct operands *o);

/* Cells of memory for atomics, each with a margin on both sides. */
enum { CELL_VALUES = 14, CELLS = CELL_VALUES * CELL_VALUES, CELL_BYTES = 48, CELL_AT = 16 };
enum { CELLS_AT = 4096, CELLS_BYTES = CELLS * CELL_BYTES };
void cell_value(enum amo_type type, unsigned which, void *value);
void cells_fill(char *area, enum amo_type type);

/* ---- verbs ---- */

typedef int verb_function(struct fabric *fabric, const struct xfer *xfer);
verb_function *verb_of(enum verb verb);

/* Waits of WAIT_MS: goes on while it is true. */
struct backoff {
    uint64_t last_ms, spent_ms;
    unsigned turns;
};
bool patient(struct backoff *backoff);

/* Lets others run. Beside ends that only poll and yield, a thread that sleeps, as a software NIC's
 * does, may wait seconds for a CPU: who has polled in vain for a while sleeps too. */
void give_way(struct backoff *backoff);

/* The next completion, or -ETIMEDOUT. */
int next_completion(struct end *end, struct completion *completion);

/* Posts one operation, waiting for room: what the verb returned. */
int post(struct end *end, enum verb verb, const struct xfer *xfer);

/* Posts and completes one operation; its status. */
int perform(struct end *end, enum verb verb, const struct xfer *xfer);

/* Posts far more operations than there is room for; every id comes back once. */
void perform_many(struct pair *pair, enum verb verb);

/* The hints of a combination that are honoured for so many bytes. */
unsigned honoured(const struct end *end, unsigned combination, size_t length);

/* Calls once for each layout that a verb has, with lengths that it takes, up to its limit; a byte
 * more is refused. */
void in_every_layout(struct pair *pair, enum verb verb,
                     void (*once)(struct pair *pair, size_t at, size_t length, unsigned how));

/* Skips what the fabric cannot, and, if bytes are looked at, where none move. */
void needs(struct pair *pair, enum verb verb, bool bytes);
void needs_hint(struct pair *pair, enum hint hint, const char *name);
/* Skips where a message cannot be on its way before its receive is posted: from a GPU. */
void needs_early(struct pair *pair);

/* Does every message cross the kernel? Counts are small then, unless WEFT_CONFORMANCE_FULL is set.
 */
bool is_slow(void);

/* So many, or a tenth where that is slow. */
uint64_t many(uint64_t count);

struct xfer xfer_of(struct end *end, size_t at, size_t length);

/* ---- tests by topic ---- */

#define WITH_PAIR(test) cmocka_unit_test_setup_teardown(test, pair_open, pair_close)

struct topic {
    const struct CMUnitTest *tests;
    size_t count;
};

extern const struct topic write_topic, read_topic, send_topic, stream_topic, atomic_topic, am_topic,
    leave_topic, list_topic, event_topic, tag_topic, pieces_topic, bytes_topic;

#endif
