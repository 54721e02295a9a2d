/* SPDX-License-Identifier: BSD-3-Clause */
/* The fabric that moves nothing, and the manual for writing one: read fabric.h beside it.
 * Every verb completes at once, or after a programmed delay ("null:delay=2us,jitter=100ns").
 * It shows what the harness itself costs, and that the tools report the truth: a programmed 2 us
 * must read 2 us. */
#include "core/clock.h"
#include "core/opt.h"
#include "fabric/fabric.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH = 64, NEAR_PS = 100000 };
#define EXTRA_MAX_PS UINT64_C(10000000000000) /* the other end may ask for 10 s, no more */

/* A fabric's settings are option rows too; they follow the prefix of the device. */
struct settings {
    uint64_t delay_ps, jitter_ps;
    uint64_t extra_ps;  /* what this end adds at both */
    int64_t slow, rank; /* -1: not given */
};

static const struct opt rows[] = {{.name = "delay",
                                   .type = OPT_TIME,
                                   .field = offsetof(struct settings, delay_ps),
                                   .flags = OPT_SETTING,
                                   .fallback = "0",
                                   .word = "TIME",
                                   .help = "Every operation takes this long"},
                                  {.name = "jitter",
                                   .type = OPT_TIME,
                                   .field = offsetof(struct settings, jitter_ps),
                                   .flags = OPT_SETTING,
                                   .fallback = "0",
                                   .word = "TIME",
                                   .help = "and up to this much longer, evenly spread"},
                                  {.name = "extra",
                                   .type = OPT_TIME,
                                   .field = offsetof(struct settings, extra_ps),
                                   .flags = OPT_SETTING,
                                   .fallback = "0",
                                   .word = "TIME",
                                   .help = "Operations from and to this end take so much longer"},
                                  {.name = "slow",
                                   .type = OPT_INDEX,
                                   .field = offsetof(struct settings, slow),
                                   .max = UINT32_MAX,
                                   .flags = OPT_SETTING,
                                   .word = "RANK",
                                   .help = "extra is for this rank alone"},
                                  {.name = "rank",
                                   .type = OPT_INDEX,
                                   .field = offsetof(struct settings, rank),
                                   .max = UINT32_MAX,
                                   .flags = OPT_SETTING,
                                   .word = "RANK",
                                   .help = "which rank this end is"},
                                  {0}};
OPT_FITS(rows);

/* Tagged messages that nobody has received yet, and receives that no message has come for, each in
 * the order in which they came. */
struct tagged {
    unsigned count;
    struct {
        struct xfer xfer;
        uint64_t due_ticks;
    } list[DEPTH];
};

/* All state lives in the handle. The generic part comes first, so that one pointer serves both. */
struct null {
    struct fabric fabric;
    struct clock clock;
    uint64_t delay_ticks, jitter_ticks, near_ticks, reads_ticks;
    uint64_t own_ps, extra_ps; /* the delay without the other end's; what it is told to add */
    uint64_t random;
    /* Operations under way, in order of posting: a slot belongs to the fabric until its
     * completion is polled, so a caller that gives up leaves no dangling pointer. */
    struct {
        uint64_t id, due_ticks, length, tag;
        uint32_t verb;
    } slots[DEPTH];
    uint64_t head, tail;
    uint64_t receives[DEPTH], receive_head, receive_tail;
    struct tagged messages, wanted;
};

/* list: every device a user could name here. */
static int null_list(void (*say)(void *arg, const char *device, const char *what), void *arg)
{
    say(arg, "null", "moves nothing; null:delay=2us completes after 2 us");
    return 0;
}

/* Uniform enough for a jitter, and the same in every run. */
static uint64_t next_random(struct null *n)
{
    n->random ^= n->random << 13;
    n->random ^= n->random >> 7;
    n->random ^= n->random << 17;
    return n->random;
}

/* facts: all that a caller may know. What is not in verbs is refused by name before a run. */
static void describe(struct fabric_facts *facts, const struct settings *s)
{
    *facts = (struct fabric_facts){
        .verbs = VERB(WRITE) | VERB(READ) | VERB(SEND) | VERB(RECV) | VERB(ATOMIC) | VERB(AM) |
                 VERB(TSEND) | VERB(TRECV),
        .alone = true,
        .gpus = MEMORY_ALL_GPUS,
        .gpu_verbs = VERB(WRITE) | VERB(READ) | VERB(SEND) | VERB(RECV) | VERB(AM) | VERB(TSEND) |
                     VERB(TRECV),
        .gpu_layouts = (1U << LAYOUTS) - 1,
        .depth = DEPTH,
        .pieces = VERB(AM) | VERB(TSEND) | VERB(TRECV),
        .tag_bits = UINT64_MAX,
        .max_unexpected = DEPTH,
        .why_no_events = "null does everything when it is polled",
        .max_send = SIZE_MAX,
        .self = "null",
        .why_no_service = "null has no services",
    };
    for (int i = 0; i < VERBS; i++) {
        facts->proves[i] = "nothing: no byte moves, the programmed delay has passed";
        for (int k = 0; k < LAYOUTS; k++)
            facts->layout_max[i][k] = SIZE_MAX;
    }
    facts->max_header = SIZE_MAX;
    /* A type is a bit: all of them, fetching or not, with every comparison. */
    memset(facts->amo, 0xff, sizeof facts->amo);
    memset(facts->cswap, 0xff, sizeof facts->cswap);
    for (int i = 0; i < HINTS; i++)
        facts->why_not[i] = "null moves nothing";
    if (s->delay_ps || s->jitter_ps)
        snprintf(facts->form, sizeof facts->form,
                 "null (moves nothing, delay %g us, jitter up to %g us)", (double)s->delay_ps / 1e6,
                 (double)s->jitter_ps / 1e6);
    else
        snprintf(facts->form, sizeof facts->form, "null (moves nothing)");
}

/* A delay of any kind needs a clock. */
static void set_delay(struct null *n, uint64_t theirs_ps)
{
    bool open = n->near_ticks;
    if (!open && !n->own_ps && !n->jitter_ticks && !theirs_ps)
        return;
    if (!open) {
        /* The counter is the finest way to wait; the kernel's clock where there is none. */
        if (clock_open(&n->clock, CLOCK_CYCLES))
            clock_open(&n->clock, CLOCK_GETTIME);
        /* An operation reads this clock on its way in and again until it is due. Half of what
         * that takes is taken off, so that the reads do not come on top of the delay; not all,
         * because the delay is a promise of "not sooner". */
        n->reads_ticks = clock_from_ps(&n->clock, n->clock.cost_ps / 2);
        n->near_ticks = clock_from_ps(&n->clock, NEAR_PS);
    }
    n->delay_ticks = clock_from_ps(&n->clock, n->own_ps + theirs_ps);
}

static int null_open(struct fabric **fabric, const struct fabric_want *want,
                     struct fabric_facts *facts)
{
    struct settings settings;
    struct opt_set set = {.rows = rows, .base = &settings};
    opt_defaults(&set);
    int status = opt_parse_list(&set, want->device);
    if (status)
        return fail(status, "null: %s", fail_reason());
    struct null *n = calloc(1, sizeof *n);
    if (!n)
        return fail(-ENOMEM, "null: no memory");
    n->fabric.ops = &fabric_null;
    n->random = 88172645463325252U;
    if (settings.extra_ps > EXTRA_MAX_PS) {
        free(n);
        return fail(-EINVAL, "null: extra is at most 10 s");
    }
    n->extra_ps = settings.slow < 0 || settings.slow == settings.rank ? settings.extra_ps : 0;
    n->own_ps = settings.delay_ps + n->extra_ps;
    n->jitter_ticks = settings.jitter_ps; /* until there is a clock */
    set_delay(n, 0);
    if (n->jitter_ticks)
        n->jitter_ticks = clock_from_ps(&n->clock, settings.jitter_ps);
    describe(facts, &settings);
    *fabric = &n->fabric;
    return 0;
}

static void null_close(struct fabric *fabric)
{
    free(fabric);
}

/* expose: a real fabric registers the region and puts into key what the other end needs. */
static int null_expose(struct fabric *fabric, struct region *region, struct msg *key)
{
    (void)fabric;
    return msg_print(key, "length=%zu\n", region->length);
}

static void null_withdraw(struct fabric *fabric, struct region *region)
{
    (void)fabric;
    (void)region;
}

static int null_address(struct fabric *fabric, struct msg *mine)
{
    const struct null *n = (struct null *)fabric;
    return msg_print(mine, "null=1\nextra_ps=%" PRIu64 "\n", n->extra_ps);
}

/* connect: called again and again until DONE; both ends call it, neither waits in it. */
static int null_connect(struct fabric *fabric, const struct fabric_meeting *meeting,
                        struct remote *remote)
{
    uint64_t theirs_ps = 0;
    if (msg_number(meeting->address, "extra_ps", &theirs_ps) == -EINVAL || theirs_ps > EXTRA_MAX_PS)
        return fail(-EPROTO, "null: the other end's delay cannot be read");
    set_delay((struct null *)fabric, theirs_ps);
    for (int i = 0; i < meeting->count; i++) {
        uint64_t length;
        int status = msg_number(&meeting->keys[i], "length", &length);
        if (status)
            return status;
        remote[i] = (struct remote){.length = length};
    }
    return DONE;
}

/* leave: nothing of this meeting may be seen in the next one. */
static void null_leave(struct fabric *fabric)
{
    struct null *n = (struct null *)fabric;
    n->head = n->tail = 0;
    n->receive_head = n->receive_tail = 0;
    n->messages.count = n->wanted.count = 0;
    set_delay(n, 0);
}

/* Something that completes later. */
static void begin(struct null *n, uint32_t verb, uint64_t id, uint64_t length, uint64_t due_ticks)
{
    if (n->jitter_ticks)
        due_ticks += next_random(n) % (n->jitter_ticks + 1);
    uint64_t slot = n->head++ % DEPTH;
    n->slots[slot].id = id;
    n->slots[slot].due_ticks = due_ticks > n->reads_ticks ? due_ticks - n->reads_ticks : 0;
    n->slots[slot].length = length;
    n->slots[slot].tag = 0;
    n->slots[slot].verb = verb;
}

/* The due time is taken first thing, so that nothing of ours adds to the delay. */
static int post(struct fabric *fabric, const struct xfer *xfer, uint32_t verb)
{
    struct null *n = (struct null *)fabric;
    if (!n->delay_ticks && !n->jitter_ticks)
        return DONE;
    /* Not before the caller's own clock read; the end may be seen late, and never early. */
    uint64_t due_ticks = clock_read(&n->clock) + n->delay_ticks;
    if (n->head - n->tail == DEPTH)
        return -EAGAIN;
    begin(n, verb, xfer->id, xfer->length, due_ticks);
    return LATER;
}

static int null_write(struct fabric *fabric, const struct xfer *xfer)
{
    return post(fabric, xfer, VERB_WRITE);
}

static int null_read(struct fabric *fabric, const struct xfer *xfer)
{
    return post(fabric, xfer, VERB_READ);
}

static int null_atomic(struct fabric *fabric, const struct xfer *xfer)
{
    return post(fabric, xfer, VERB_ATOMIC);
}

/* There and back: two delays. */
static uint64_t echo_ticks(const struct null *n)
{
    bool timed = n->delay_ticks || n->jitter_ticks;
    return timed ? clock_read(&n->clock) + 2 * n->delay_ticks : 0;
}

/* Nobody is there to answer: a message fills our own first receive, as if it had been there and
 * back. Without a receive it has left after the delay, and is lost. */
static int null_send(struct fabric *fabric, const struct xfer *xfer)
{
    struct null *n = (struct null *)fabric;
    if (n->receive_tail == n->receive_head)
        return post(fabric, xfer, VERB_SEND);
    uint64_t due_ticks = echo_ticks(n);
    if (n->head - n->tail == DEPTH)
        return -EAGAIN;
    begin(n, VERB_RECV, n->receives[n->receive_tail++ % DEPTH], xfer->length, due_ticks);
    return DONE;
}

static int null_recv(struct fabric *fabric, const struct xfer *xfer)
{
    struct null *n = (struct null *)fabric;
    if (n->receive_head - n->receive_tail == DEPTH)
        return -EAGAIN;
    n->receives[n->receive_head++ % DEPTH] = xfer->id;
    return LATER;
}

/* An active message needs no receive: its echo arrives with what its header says. */
static int null_am(struct fabric *fabric, const struct xfer *xfer)
{
    struct null *n = (struct null *)fabric;
    uint64_t due_ticks = echo_ticks(n);
    if (n->head - n->tail == DEPTH)
        return -EAGAIN;
    begin(n, VERB_ARRIVAL, xfer->header_bytes ? xfer->header : 0, xfer->header_bytes + xfer->length,
          due_ticks);
    return DONE;
}

/* ---- tagged messages ---- */

/* The oldest receive for a message, the oldest message for a receive; the count if there is none.
 */
static unsigned find_receive(const struct tagged *in, const struct xfer *message)
{
    unsigned i = 0;
    while (i < in->count &&
           !fabric_tag_fits(message->tag, in->list[i].xfer.tag, in->list[i].xfer.mask))
        i++;
    return i;
}

static unsigned find_message(const struct tagged *in, const struct xfer *receive)
{
    unsigned i = 0;
    while (i < in->count && !fabric_tag_fits(in->list[i].xfer.tag, receive->tag, receive->mask))
        i++;
    return i;
}

static void drop(struct tagged *from, unsigned at)
{
    from->count--;
    memmove(&from->list[at], &from->list[at + 1], (from->count - at) * sizeof from->list[0]);
}

static int keep(struct tagged *in, const struct xfer *xfer, uint64_t due_ticks)
{
    if (in->count == DEPTH)
        return -EAGAIN;
    in->list[in->count].xfer = *xfer;
    in->list[in->count++].due_ticks = due_ticks;
    return LATER;
}

/* A message and its receive have met. */
static void match(struct null *n, const struct xfer *message, uint64_t id, uint64_t due_ticks)
{
    begin(n, VERB_TRECV, id, message->length, due_ticks);
    n->slots[(n->head - 1) % DEPTH].tag = message->tag;
}

/* Its echo is for the oldest of our receives that its tag fits, or is kept for one to come: up to
 * max_unexpected of the facts, and then there is no room. */
static int null_tsend(struct fabric *fabric, const struct xfer *xfer)
{
    struct null *n = (struct null *)fabric;
    uint64_t due_ticks = echo_ticks(n);
    unsigned at = find_receive(&n->wanted, xfer);
    if (n->head - n->tail == DEPTH)
        return -EAGAIN;
    if (at == n->wanted.count)
        return keep(&n->messages, xfer, due_ticks) ? -EAGAIN : DONE;
    match(n, xfer, n->wanted.list[at].xfer.id, due_ticks);
    drop(&n->wanted, at);
    return DONE;
}

/* Gets the oldest message that fits, if one has come already. */
static int null_trecv(struct fabric *fabric, const struct xfer *xfer)
{
    struct null *n = (struct null *)fabric;
    unsigned at = find_message(&n->messages, xfer);
    if (n->head - n->tail == DEPTH)
        return -EAGAIN;
    if (at == n->messages.count)
        return keep(&n->wanted, xfer, 0);
    match(n, &n->messages.list[at].xfer, xfer->id, n->messages.list[at].due_ticks);
    drop(&n->messages, at);
    return LATER;
}

static int null_tprobe(struct fabric *fabric, const struct xfer *xfer)
{
    const struct null *n = (struct null *)fabric;
    unsigned at = find_message(&n->messages, xfer);
    if (at == n->messages.count)
        return -EAGAIN;
    uint64_t due_ticks = n->messages.list[at].due_ticks;
    return due_ticks && clock_read(&n->clock) < due_ticks ? -EAGAIN : DONE;
}

/* poll: makes progress and hands out completions, in order of posting here. */
static int null_poll(struct fabric *fabric, struct completion *completions, int max)
{
    struct null *n = (struct null *)fabric;
    int got = 0;
    while (got < max && n->tail != n->head) {
        uint64_t slot = n->tail % DEPTH, now;
        /* So near the end that leaving and coming back would overshoot: stay. */
        while (n->slots[slot].due_ticks &&
               (now = clock_read_unfenced(&n->clock)) < n->slots[slot].due_ticks)
            if (n->slots[slot].due_ticks - now > n->near_ticks)
                return got;
        completions[got++] = (struct completion){.id = n->slots[slot].id,
                                                 .verb = n->slots[slot].verb,
                                                 .length = n->slots[slot].length,
                                                 .tag = n->slots[slot].tag};
        n->tail++;
    }
    return got;
}

const struct fabric_ops fabric_null = {.abi = FABRIC_ABI,
                                       .name = "null",
                                       .what = "moves nothing, with a programmed delay",
                                       .list = null_list,
                                       .open = null_open,
                                       .close = null_close,
                                       .expose = null_expose,
                                       .withdraw = null_withdraw,
                                       .address = null_address,
                                       .connect = null_connect,
                                       .leave = null_leave,
                                       .write = null_write,
                                       .read = null_read,
                                       .send = null_send,
                                       .recv = null_recv,
                                       .atomic = null_atomic,
                                       .am = null_am,
                                       .tsend = null_tsend,
                                       .trecv = null_trecv,
                                       .tprobe = null_tprobe,
                                       .poll = null_poll};
