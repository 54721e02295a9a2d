/* SPDX-License-Identifier: BSD-3-Clause */
/* Ends that sleep on the fabric's descriptor. They sleep for good: an event that goes past an end
 * between its last poll and its sleep is noticed by nobody, and the test fails after WAIT_MS. */
#include "conformance.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

enum { ROUNDS = 20000, SPINS = 1 << 14, QUIET_MS = 50, LONG_BYTES = 1 << 18 };

static void needs_events(struct pair *pair)
{
    const struct fabric_facts *facts = &pair->end.facts;
    if (!facts->why_no_events)
        return;
    print_message("# %s has no events: %s\n", choice.ops->name, facts->why_no_events);
    skip();
}

/* What is waited for in memory, if anything: that it is there now is seen before the sleep. */
struct word {
    const volatile uint64_t *at;
    uint64_t value;
};

/* For up to some 20 us, as long as the other end takes to wake up and answer: so what is waited for
 * comes at every moment of falling asleep. */
static void dawdle(void)
{
    static uint64_t state = 11;
    for (volatile uint64_t i = next_random(&state) % SPINS; i; i--)
        ;
}

/* 0: woken; -EAGAIN: did not sleep, because something is there; or what is wrong. */
static int sleep_once(struct end *end, int most_ms, const struct word *word)
{
    struct pollfd event = {.fd = choice.ops->event_fd(end->handle), .events = POLLIN};
    if (event.fd < 0)
        return event.fd;
    int got = choice.ops->arm(end->handle);
    if (got != DONE)
        return got;
    if (word && *word->at == word->value)
        return -EAGAIN;
    return poll(&event, 1, most_ms) > 0 ? 0 : fail(-ETIMEDOUT, "nothing woke the sleeper");
}

/* Until a poll brings something, 1, or memory has changed, which is the caller's to see. */
static int poll_asleep(struct end *end, struct completion *completion, const struct word *word)
{
    int got = choice.ops->poll(end->handle, completion, 1);
    if (got)
        return got;
    dawdle();
    got = sleep_once(end, WAIT_MS, word);
    return got == -EAGAIN ? 0 : got;
}

/* ---- there and back, asleep in between ---- */

/* A message of this number; a write is looked for in memory, where it was written. */
static int fire(struct end *end, enum verb verb, uint64_t number)
{
    struct xfer xfer = xfer_of(end, 64, sizeof number);
    if (verb == VERB_WRITE) {
        xfer.remote_at = 0;
        memcpy(end->bytes + xfer.at, &number, sizeof number);
        return perform(end, verb, &xfer);
    }
    xfer.header = number;
    xfer.header_bytes = sizeof number;
    xfer.length = 0;
    int got = post(end, verb, &xfer);
    return got < 0 ? got : 0;
}

static int await(struct end *end, enum verb verb, uint64_t number, uint64_t *arrived)
{
    const struct word word = {(const volatile uint64_t *)(const void *)end->bytes, number};
    struct completion completion;
    int got = 0;
    while (got >= 0 && *arrived < number) {
        got = poll_asleep(end, &completion, verb == VERB_WRITE ? &word : NULL);
        if (got > 0 && completion.status)
            return completion.status;
        if (got > 0 && completion.verb == VERB_ARRIVAL)
            ++*arrived;
        if (verb == VERB_WRITE)
            *arrived = *word.at;
    }
    return got < 0 ? got : 0;
}

int rounds_run(struct end *end, enum verb verb, uint64_t rounds, bool first)
{
    uint64_t arrived = 0;
    int status = 0;
    for (uint64_t i = 1; i <= rounds && !status; i++) {
        if (first)
            status = fire(end, verb, i);
        if (!status)
            status = await(end, verb, i, &arrived);
        if (!status && !first)
            status = fire(end, verb, i);
    }
    return status;
}

/* The target's last write may need us once more, to acknowledge it. */
static int go_on(void *arg)
{
    struct completion completion;
    struct end *end = arg;
    int got = choice.ops->poll(end->handle, &completion, 1);
    return got < 0 ? got : 0;
}

static void in_rounds(struct pair *pair, enum verb verb)
{
    struct end *end = &pair->end;
    struct msg question, text;
    uint64_t rounds = many(ROUNDS), error = 0;
    needs_events(pair);
    needs(pair, verb, true);
    if (!(end->facts.wakes & 1U << verb)) {
        print_message("# %s does not wake for a %s\n", choice.ops->name, fabric_verb_name(verb));
        skip();
    }
    memset(end->bytes, 0, 128);
    ask(pair, "fill", 0, 128, 0);
    assert_int_equal(msg_print(&question, "rounds=%" PRIu64 "\nverb=%d\n", rounds, (int)verb), 0);
    assert_int_equal(peer_send(end->peer, &question), 0);
    assert_int_equal(peer_recv(end->peer, &text, NULL, NULL), 0);
    int status = rounds_run(end, verb, rounds, true);
    if (status)
        print_message("# here: %s\n", fail_reason());
    assert_int_equal(status, 0);
    assert_int_equal(peer_recv(end->peer, &text, go_on, end), 0);
    assert_int_equal(msg_number(&text, "error", &error), 0);
    assert_int_equal(error, 0);
}

static void active_messages_wake_both_ends_at_every_moment(void **state)
{
    in_rounds(*state, VERB_AM);
}

static void writes_wake_both_ends_at_every_moment(void **state)
{
    in_rounds(*state, VERB_WRITE);
}

/* ---- one by one ---- */

static void an_end_that_nobody_wakes_sleeps(void **state)
{
    struct pair *pair = *state;
    struct completion completion;
    needs_events(pair);
    ask(pair, "look", 0, 0, 0);
    /* What is left of connecting may wake it a few times. */
    int status = 0;
    for (int i = 0; i < 20 && status != -ETIMEDOUT; i++) {
        assert_int_equal(choice.ops->poll(pair->end.handle, &completion, 1), 0);
        status = sleep_once(&pair->end, QUIET_MS, NULL);
    }
    assert_int_equal(status, -ETIMEDOUT);
}

static void what_has_come_keeps_an_end_from_sleeping(void **state)
{
    struct pair *pair = *state;
    struct completion completion;
    needs_events(pair);
    needs(pair, VERB_AM, true);
    for (int i = 0; i < 20; i++) {
        ask_all(pair, "am", 512, 8, (uint64_t)8 << 32);
        int status = sleep_once(&pair->end, WAIT_MS, NULL);
        assert_true(!status || status == -EAGAIN);
        assert_int_equal(next_completion(&pair->end, &completion), 0);
        assert_int_equal(completion.verb, VERB_ARRIVAL);
    }
}

static void perform_asleep(struct pair *pair, enum verb verb, const struct xfer *xfer)
{
    struct completion completion = {.verb = VERBS};
    int got = post(&pair->end, verb, xfer);
    assert_true(got >= 0);
    while (got == LATER && completion.verb != verb) {
        int polled = poll_asleep(&pair->end, &completion, NULL);
        if (polled < 0)
            print_message("# %s\n", fail_reason());
        assert_true(polled >= 0);
    }
    assert_true(got == DONE || !completion.status);
}

static void operations_of_an_end_wake_it_when_they_complete(void **state)
{
    static const enum verb verbs[] = {VERB_WRITE, VERB_READ, VERB_AM, VERB_SEND};
    struct pair *pair = *state;
    struct end *end = &pair->end;
    needs_events(pair);
    for (size_t i = 0; i < 20 * LENGTH(verbs); i++) {
        enum verb verb = verbs[i % LENGTH(verbs)];
        struct xfer xfer = xfer_of(end, 0, LONG_BYTES);
        if (!(end->facts.verbs & 1U << verb))
            continue;
        if (verb == VERB_SEND) {
            ask_all(pair, "post", 0, LONG_BYTES, 1);
            xfer.how = end->facts.honours & HINT(RENDEZVOUS);
        }
        if (verb == VERB_AM) {
            size_t most = end->facts.layout_max[VERB_AM][LAYOUT_ZCOPY];
            if (!most)
                continue;
            xfer = am_of(end, 0, most < LONG_BYTES ? most : LONG_BYTES, LAYOUT_HINT(LAYOUT_ZCOPY));
        }
        perform_asleep(pair, verb, &xfer);
        if (verb == VERB_SEND || verb == VERB_AM)
            assert_int_equal(ask_all(pair, "take", 0, 0, 0).status, 0);
    }
}

static void an_end_that_did_not_ask_for_events_has_none(void **state)
{
    struct pair *pair = *state;
    needs_events(pair);
    fail(0, "%s", "");
    assert_true(choice.ops->event_fd(pair->end.handle) < 0);
    assert_true(*fail_reason());
}

#define ASLEEP(test) cmocka_unit_test_setup_teardown(test, pair_open_asleep, pair_close)

static const struct CMUnitTest tests[] = {
    ASLEEP(active_messages_wake_both_ends_at_every_moment),
    ASLEEP(writes_wake_both_ends_at_every_moment),
    ASLEEP(an_end_that_nobody_wakes_sleeps),
    ASLEEP(what_has_come_keeps_an_end_from_sleeping),
    ASLEEP(operations_of_an_end_wake_it_when_they_complete),
    WITH_PAIR(an_end_that_did_not_ask_for_events_has_none),
};
const struct topic event_topic = {tests, LENGTH(tests)};
