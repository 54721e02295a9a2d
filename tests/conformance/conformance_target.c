/* SPDX-License-Identifier: BSD-3-Clause */
/* The target of the conformance suite, in its own process: it answers questions about its memory,
 * posts, sends and takes what it is told to, and takes part in exchanges of messages. */
#include "conformance.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Noreturn void target_main(struct peer *peer, struct peer *second);

/* ---- messages both ways at once ---- */

enum { TEXT = 1 << 17, OUT_AT = 1 << 19, WINDOW_MOST = 64, INTERVAL = 100, POLLS = 4 };
static const uint64_t said = UINT64_MAX; /* the id of a single message, which nobody waits for */

struct progress {
    struct end *end;
    const struct exchange *x;
    uint64_t sent, posted, received;
    uint64_t slot;    /* bytes of a buffer */
    uint64_t busy;    /* a bit a buffer whose send is not complete */
    uint64_t pending; /* sends not complete */
    unsigned idle;
    struct backoff backoff;
};

/* The same random bytes at both ends; a message is a interval of them. */
static const char *text_of(uint64_t number)
{
    static char *text;
    uint64_t seed = 7;
    if (!text) {
        text = malloc((size_t)2 * TEXT);
        if (!text)
            abort();
        for (size_t i = 0; i < (size_t)2 * TEXT; i++)
            text[i] = (char)next_random(&seed);
    }
    return text + number * 8191 % TEXT;
}

struct message {
    uint64_t length, text;
    unsigned how;
};

/* The message of this number: many short ones, some long. */
static struct message message_of(const struct exchange *x, uint64_t seed, uint64_t number)
{
    uint64_t state = seed * 1000003 + number;
    uint64_t size = next_random(&state), kind = next_random(&state) % 8;
    uint64_t most = kind < 4 ? 64 : kind < 7 ? 512 : x->longest;
    return (struct message){.length = size % ((most < x->longest ? most : x->longest) + 1),
                            .text = next_random(&state) % TEXT,
                            .how = (unsigned)next_random(&state) & x->how};
}

static uint64_t window_of(const struct exchange *x)
{
    uint64_t slot = x->longest ? x->longest : 1, fit = (REGION_BYTES - OUT_AT) / slot;
    uint64_t window = x->window < WINDOW_MOST ? x->window : WINDOW_MOST;
    return window < fit ? window : fit;
}

static int post_next(struct progress *p)
{
    uint64_t window = window_of(p->x);
    if (p->posted == p->x->in || p->posted - p->received == window)
        return 0;
    struct xfer receive = {.local = &p->end->region,
                           .at = p->posted % window * p->slot,
                           .length = p->slot,
                           .id = p->posted};
    int got = choice.ops->recv(p->end->handle, &receive);
    if (got == -EAGAIN)
        return 0;
    if (got != LATER)
        return got < 0 ? got : fail(-EPROTO, "a receive was DONE");
    p->posted++;
    return 1;
}

/* A complete send's buffer is ours: nothing of what is written there now may arrive. */
static void send_done(struct progress *p, uint64_t number)
{
    uint64_t buffer = number % window_of(p->x);
    p->busy &= ~(UINT64_C(1) << buffer);
    memset(p->end->bytes + OUT_AT + buffer * p->slot, 0xee, p->slot);
}

static int send_next(struct progress *p)
{
    uint64_t buffer = p->sent % window_of(p->x);
    if (p->sent == p->x->out || p->busy >> buffer & 1)
        return 0;
    struct message message = message_of(p->x, p->x->seed, p->sent);
    struct xfer xfer = {.local = &p->end->region,
                        .at = OUT_AT + buffer * p->slot,
                        .length = message.length,
                        .how = message.how & p->end->facts.honours,
                        .id = p->sent};
    if (xfer.length > p->end->facts.max_inline || xfer.how & HINT(RENDEZVOUS))
        xfer.how &= ~HINT(INLINE);
    memcpy(p->end->bytes + xfer.at, text_of(message.text), message.length);
    int got = choice.ops->send(p->end->handle, &xfer);
    if (got == -EAGAIN)
        return 0;
    if (got < 0)
        return got;
    p->busy |= UINT64_C(1) << buffer;
    if (got == DONE)
        send_done(p, p->sent);
    else
        p->pending++;
    p->sent++;
    return 1;
}

static int message_came(struct progress *p, const struct completion *completion)
{
    struct message message = message_of(p->x, p->x->seed ^ 1, p->received);
    const char *found = p->end->bytes + p->received % window_of(p->x) * p->slot;
    if (completion->id != p->received)
        return fail(-EBADMSG, "message %" PRIu64 " came into buffer %" PRIu64, p->received,
                    completion->id);
    if (completion->length != message.length)
        return fail(-EBADMSG, "message %" PRIu64 " has %" PRIu64 " bytes, not %" PRIu64,
                    p->received, completion->length, message.length);
    if (memcmp(found, text_of(message.text), message.length) != 0)
        return fail(-EBADMSG, "message %" PRIu64 " of %" PRIu64 " bytes is not what was sent",
                    p->received, message.length);
    p->received++;
    return 1;
}

static int poll_once(struct progress *p)
{
    struct completion completion;
    int got = 1;
    if (p->end->kept_tail != p->end->kept_head)
        completion = p->end->kept[p->end->kept_tail++ % KEPT];
    else
        got = choice.ops->poll(p->end->handle, &completion, 1);
    if (got <= 0)
        return got;
    if (completion.status)
        return completion.status;
    if (completion.verb == VERB_RECV)
        return message_came(p, &completion);
    if (completion.verb == VERB_SEND && completion.id == said)
        return 1;
    if (completion.verb != VERB_SEND || completion.id >= p->sent || !p->pending)
        return fail(-EBADMSG, "a completion of something that is not under way");
    p->pending--;
    send_done(p, completion.id);
    return 1;
}

/* Nothing moved: lets others run, keeps the peer content, and in the end gives up. */
static int wait_a_little(struct progress *p)
{
    if (++p->idle % INTERVAL)
        return 0;
    if (!patient(&p->backoff))
        return fail(-ETIMEDOUT,
                    "it stands still: %" PRIu64 " of %" PRIu64 " sent, %" PRIu64 " incomplete, "
                    "%" PRIu64 " of %" PRIu64 " received, %" PRIu64 " posted",
                    p->sent, p->x->out, p->pending, p->received, p->x->in, p->posted);
    give_way(&p->backoff);
    return peer_alive(p->end->peer);
}

int exchange_run(struct end *end, const struct exchange *x)
{
    struct progress p = {.end = end, .x = x, .slot = x->longest ? x->longest : 1};
    while (p.sent < x->out || p.received < x->in || p.pending) {
        int posted = post_next(&p);
        if (posted < 0)
            return posted;
        int sent = send_next(&p);
        if (sent < 0)
            return sent;
        int polled = x->lazy && sent ? 0 : poll_once(&p);
        if (polled < 0)
            return polled;
        if (posted || sent || polled) {
            p.idle = 0;
            p.backoff = (struct backoff){0};
            continue;
        }
        int status = wait_a_little(&p);
        if (status)
            return status;
    }
    return 0;
}

/* ---- the target ---- */

struct target {
    struct end ends[2];
    int count;
    struct backoff backoff;
};

/* What arrived is looked at at once: it does not stay. */
static uint64_t digest_of(const struct completion *completion)
{
    bool arrival = completion->verb == VERB_ARRIVAL && completion->data;
    return arrival ? digest(completion->data, completion->length) : 0;
}

/* What completes is kept until it is asked for. That the other end is lost is no error here: it may
 * have left with operations under way, and be about to say so. */
static int target_poll(struct target *target)
{
    int came = 0;
    for (int i = 0; i < target->count; i++) {
        struct end *end = &target->ends[i];
        struct completion *room = &end->kept[end->kept_head % KEPT];
        if (end->kept_head - end->kept_tail == KEPT)
            continue;
        int got = choice.ops->poll(end->handle, room, 1);
        if (got <= 0)
            continue;
        end->kept_digest[end->kept_head % KEPT] = digest_of(room);
        end->kept_head += (unsigned)got;
        came += got;
    }
    return came;
}

/* Polls while it listens. */
static int target_progress(void *arg)
{
    struct target *target = arg;
    int came = target_poll(target);
    if (came)
        target->backoff = (struct backoff){0};
    else
        give_way(&target->backoff);
    return !came; /* a question may have come meanwhile */
}

static int take_completion(struct end *end, struct completion *completion, uint64_t *sum)
{
    int status = 0;
    do {
        if (end->kept_tail == end->kept_head) {
            status = next_completion(end, completion);
            *sum = status ? 0 : digest_of(completion);
        } else {
            *sum = end->kept_digest[end->kept_tail % KEPT];
            *completion = end->kept[end->kept_tail++ % KEPT];
        }
    } while (!status && completion->id == said &&
             (completion->verb == VERB_SEND || completion->verb == VERB_AM ||
              completion->verb == VERB_TSEND || completion->verb == VERB_STREAM_SEND));
    return status;
}

struct question {
    struct end *end;
    uint64_t at, length, value;
    uint64_t sum; /* of what arrived */
};

/* A tagged receive, a message, or a look whether one waits. */
static int answer_tagged(const char *what, const struct question *q)
{
    struct xfer xfer = tagged_of(q->end, q->at, q->length, q->value);
    if (strcmp(what, "tpost") == 0)
        return post(q->end, VERB_TRECV, &xfer);
    if (strcmp(what, "tprobe") == 0)
        return choice.ops->tprobe(q->end->handle, &xfer) == DONE ? 0 : -EAGAIN;
    xfer.id = said;
    int got = post(q->end, VERB_TSEND, &xfer);
    return got < 0 ? got : 0;
}

/* What completes, or is asked for, is answered like a completion. */
static int answer_one(const char *what, struct question *q, struct completion *found)
{
    struct end *end = q->end;
    struct xfer xfer = {.local = &end->region, .at = q->at, .length = q->length, .id = q->value};
    if (strcmp(what, "leave") == 0) {
        choice.ops->leave(end->handle);
    } else if (strcmp(what, "withdraw") == 0) {
        choice.ops->withdraw(end->handle, &end->region);
    } else if (strcmp(what, "fill") == 0) {
        memset(end->bytes + q->at, (int)q->value, q->length);
    } else if (strcmp(what, "pattern") == 0) {
        pattern(end->bytes + q->at, q->length, q->value);
    } else if (strcmp(what, "cells") == 0) {
        cells_fill(end->bytes + q->at, (enum amo_type)q->value);
    } else if (strcmp(what, "post") == 0) {
        return choice.ops->recv(end->handle, &xfer);
    } else if (strcmp(what, "say") == 0) {
        xfer.how = (unsigned)q->value;
        xfer.id = said;
        int got = choice.ops->send(end->handle, &xfer);
        return got < 0 ? got : 0;
    } else if (strcmp(what, "am") == 0) {
        xfer = am_of(end, q->at, q->length, q->value);
        xfer.id = said;
        int got = post(end, VERB_AM, &xfer);
        return got < 0 ? got : 0;
    } else if (strcmp(what, "am_once") == 0) {
        xfer = am_of(end, q->at, q->length, q->value);
        xfer.id = said;
        int got = choice.ops->am(end->handle, &xfer);
        return got < 0 ? got : 0;
    } else if (strcmp(what, "bpost") == 0) {
        return post(end, VERB_STREAM_RECV, &xfer);
    } else if (strcmp(what, "bsay") == 0) {
        xfer.id = said;
        int got = post(end, VERB_STREAM_SEND, &xfer);
        return got < 0 ? got : 0;
    } else if (*what == 't' && strcmp(what, "take") != 0) {
        return answer_tagged(what, q);
    } else if (strcmp(what, "take") == 0) {
        return take_completion(end, found, &q->sum);
    } else if (strcmp(what, "verbs") == 0) {
        end->verbs = (unsigned)q->value;
    } else if (strcmp(what, "look") != 0) {
        return fail(-EPROTO, "the target does not know what %s is", what);
    }
    return 0;
}

static int answer_question(const char *what, struct end *end, const struct msg *ask)
{
    struct question q = {.end = end};
    struct completion found = {0};
    struct msg answer;
    if (msg_number(ask, "at", &q.at) || msg_number(ask, "length", &q.length) ||
        msg_number(ask, "value", &q.value))
        return fail(-EPROTO, "a question without its numbers");
    int status = answer_one(what, &q, &found);
    status = status ? status : found.status;
    uint64_t sum = end->bytes ? digest(end->bytes + q.at, q.length) : 0;
    if (found.verb == VERB_ARRIVAL)
        sum = q.sum;
    status = msg_print(&answer,
                       "digest=%" PRIu64 "\nid=%" PRIu64 "\nlength=%" PRIu64
                       "\nerror=%d\nverb=%" PRIu32 "\n",
                       sum, found.id, found.length, -status, found.verb);
    return status ? status : peer_send(end->peer, &answer);
}

static int answer_exchange(struct end *end, const struct msg *ask)
{
    struct exchange x = {0};
    struct msg answer;
    uint64_t how = 0, am = 0;
    if (msg_number(ask, "out", &x.out) || msg_number(ask, "in", &x.in) ||
        msg_number(ask, "seed", &x.seed) || msg_number(ask, "longest", &x.longest) ||
        msg_number(ask, "how", &how) || msg_number(ask, "window", &x.window) ||
        msg_number(ask, "am", &am))
        return fail(-EPROTO, "an exchange without its numbers");
    x.how = (unsigned)how;
    int status = am ? msg_print(&answer, "ready=1\n") : 0;
    if (!status && am)
        status = peer_send(end->peer, &answer);
    if (status)
        return status;
    status = am ? am_exchange_run(end, &x) : exchange_run(end, &x);
    status = msg_print(&answer, "error=%d\nwhy=%s\n", -status, status ? fail_reason() : "");
    return status ? status : peer_send(end->peer, &answer);
}

static int answer_rounds(struct end *end, const struct msg *ask)
{
    struct msg answer;
    uint64_t rounds = 0, verb = 0;
    if (msg_number(ask, "rounds", &rounds) || msg_number(ask, "verb", &verb))
        return fail(-EPROTO, "rounds without their numbers");
    int status = msg_print(&answer, "ready=1\n");
    if (!status)
        status = peer_send(end->peer, &answer);
    if (status)
        return status;
    status = rounds_run(end, (enum verb)verb, rounds, false);
    if (status)
        fprintf(stderr, "# the target: %s\n", fail_reason());
    status = msg_print(&answer, "error=%d\n", -status);
    return status ? status : peer_send(end->peer, &answer);
}

static int answer_meet(struct end *end, const struct msg *ask)
{
    struct msg answer;
    uint64_t bytes = 0;
    int status = msg_number(ask, "meet", &bytes);
    choice.ops->leave(end->handle);
    end->kept_head = end->kept_tail = 0;
    if (!status && bytes)
        status = end_resize(end, bytes);
    if (!status)
        status = end_connect(end);
    if (status)
        fprintf(stderr, "# the target: %s\n", fail_reason());
    status = msg_print(&answer, "error=%d\n", -status);
    return status ? status : peer_send(end->peer, &answer);
}

/* Does what it is asked to until it is told to go. */
static int target_serve(struct target *target)
{
    struct msg ask;
    struct end *end = &target->ends[0];
    for (;;) {
        bool polls = end->facts.target_polls & end->verbs;
        int status = peer_recv(end->peer, &ask, polls ? target_progress : NULL, target);
        if (status)
            return status;
        /* Also if it is asked so quickly that it never waits. */
        for (int i = 0; polls && i < POLLS; i++)
            target_poll(target);
        char what[32] = "";
        snprintf(what, sizeof what, "%.*s", (int)strcspn(ask.bytes, "="), ask.bytes);
        if (strcmp(what, "go") == 0)
            return 0;
        if (strcmp(what, "exchange") == 0)
            status = answer_exchange(end, &ask);
        else if (strcmp(what, "rounds") == 0)
            status = answer_rounds(end, &ask);
        else if (strcmp(what, "meet") == 0)
            status = answer_meet(end, &ask);
        else
            status = answer_question(what, end, &ask);
        if (status)
            return status;
    }
}

_Noreturn void target_main(struct peer *peer, struct peer *second)
{
    static struct target target;
    struct peer *peers[2] = {peer, second};
    int status = 0;
    for (int i = 0; i < (second ? 2 : 1) && !status; i++) {
        status = end_open(&target.ends[i], peers[i], i ? &target.ends[0] : NULL);
        if (!status)
            status = end_connect(&target.ends[i]);
        target.count++;
    }
    if (!status)
        status = target_serve(&target);
    if (status)
        peer_end(peer, status, fail_reason());
    for (int i = target.count; i-- > 0 && !status;)
        end_close(&target.ends[i]);
    _exit(status ? 1 : 0);
}
