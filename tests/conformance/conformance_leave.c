/* SPDX-License-Identifier: BSD-3-Clause */
/* Leaving: what an end keeps, what it forgets, and that the next meeting is as good as the first,
 * with the same end or another. */
#include "conformance/conformance.h"
#include "core/clock.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

enum { HERE_AT = 1024, THERE_AT = 2048, SMALLEST = 4096 };

/* No two operations have the same id. */
static uint64_t next_id(void)
{
    static uint64_t last = UINT64_C(0xfeed) << 48;
    return last += 3;
}

/* Of a region, what lies before the places that the tests use. */
static size_t longest(const struct end *end)
{
    size_t most = end->region.length < end->remote.length ? end->region.length : end->remote.length;
    return (most < REGION_BYTES ? most : REGION_BYTES) - THERE_AT;
}

/* ---- every verb once, and each completion with its id ---- */

static void write_there(struct pair *pair, size_t length)
{
    struct end *end = &pair->end;
    struct xfer xfer = xfer_of(end, HERE_AT, length);
    xfer.id = next_id();
    xfer.remote_at = THERE_AT;
    if (end->facts.alone) {
        assert_int_equal(perform(end, VERB_WRITE, &xfer), 0);
        return;
    }
    pattern(end->bytes + HERE_AT, length, xfer.id);
    int status = perform(end, VERB_WRITE, &xfer);
    if (status)
        print_message("# %s\n", fail_reason());
    assert_int_equal(status, 0);
    assert_int_equal(ask(pair, "look", THERE_AT, length, 0), digest(end->bytes + HERE_AT, length));
}

static void read_back(struct pair *pair, size_t length)
{
    struct end *end = &pair->end;
    struct xfer xfer = xfer_of(end, HERE_AT, length);
    xfer.id = next_id();
    xfer.remote_at = THERE_AT;
    uint64_t there = end->facts.alone ? 0 : ask(pair, "pattern", THERE_AT, length, (int)length + 5);
    assert_int_equal(perform(end, VERB_READ, &xfer), 0);
    if (!end->facts.alone)
        assert_int_equal(digest(end->bytes + HERE_AT, length), there);
}

static void add_there(struct pair *pair)
{
    struct end *end = &pair->end;
    uint64_t *cells = (uint64_t *)(void *)(end->bytes + HERE_AT);
    struct xfer xfer = xfer_of(end, HERE_AT, sizeof *cells);
    if (!(end->facts.amo[1][AMO_SUM] >> AMO_UINT64 & 1))
        return;
    xfer.id = next_id();
    xfer.how = 0;
    xfer.remote_at = THERE_AT;
    xfer.amo.op = AMO_SUM;
    xfer.amo.type = AMO_UINT64;
    xfer.amo.fetch = 1;
    cells[0] = 5;
    cells[1] = 0;
    xfer.amo.operand = &cells[0];
    xfer.amo.result = &cells[1];
    if (!end->facts.alone)
        ask(pair, "fill", THERE_AT, sizeof *cells, 0x11);
    assert_int_equal(perform(end, VERB_ATOMIC, &xfer), 0);
    if (!end->facts.alone)
        assert_int_equal(cells[1], UINT64_C(0x1111111111111111));
}

static void send_there(struct pair *pair, size_t length, unsigned how)
{
    struct end *end = &pair->end;
    struct xfer xfer = xfer_of(end, HERE_AT, length);
    uint64_t receive = next_id();
    xfer.id = next_id();
    xfer.how = how & end->facts.honours;
    pattern(end->bytes + HERE_AT, length, xfer.id);
    uint64_t sent = digest(end->bytes + HERE_AT, length);
    assert_int_equal(ask_all(pair, "post", THERE_AT, length, receive).status, 0);
    int status = perform(end, VERB_SEND, &xfer);
    if (status)
        print_message("# %s\n", fail_reason());
    assert_int_equal(status, 0);
    struct answer came = ask_all(pair, "take", THERE_AT, length, 0);
    assert_int_equal(came.status, 0);
    assert_int_equal(came.verb, VERB_RECV);
    assert_int_equal(came.id, receive);
    assert_int_equal(came.length, length);
    assert_int_equal(came.digest, sent);
}

static void receive_here(struct pair *pair, size_t length, unsigned how)
{
    struct end *end = &pair->end;
    struct completion completion;
    struct xfer receive = {.local = &end->region, .at = HERE_AT, .length = length, .id = next_id()};
    assert_int_equal(choice.ops->recv(end->handle, &receive), LATER);
    uint64_t sent = ask(pair, "pattern", THERE_AT, length, (int)length);
    assert_int_equal(ask_all(pair, "say", THERE_AT, length, how & end->facts.honours).status, 0);
    assert_int_equal(next_completion(end, &completion), 0);
    assert_int_equal(completion.status, 0);
    assert_int_equal(completion.verb, VERB_RECV);
    assert_int_equal(completion.id, receive.id);
    assert_int_equal(completion.length, length);
    assert_int_equal(digest(end->bytes + HERE_AT, length), sent);
}

/* The first layout that takes a message of this length. */
static unsigned am_layout(const struct end *end, size_t length)
{
    for (unsigned layout = 0; layout < LAYOUTS; layout++)
        if (length + 8 <= end->facts.layout_max[VERB_AM][layout])
            return LAYOUT_HINT(layout);
    return 0;
}

static void am_both_ways(struct pair *pair, size_t length)
{
    struct end *end = &pair->end;
    struct completion completion;
    uint64_t value = UINT64_C(8) << 32 | am_layout(end, length);
    struct xfer xfer = am_of(end, HERE_AT, length, value);
    if (!am_layout(end, length))
        return;
    xfer.id = next_id();
    assert_int_equal(perform(end, VERB_AM, &xfer), 0);
    struct answer came = ask_all(pair, "take", 0, 0, 0);
    assert_int_equal(came.verb, VERB_ARRIVAL);
    assert_int_equal(came.id, xfer.header);
    assert_int_equal(came.length, 8 + length);
    assert_int_equal(ask_all(pair, "am", THERE_AT, length, value).status, 0);
    assert_int_equal(next_completion(end, &completion), 0);
    assert_int_equal(completion.verb, VERB_ARRIVAL);
    assert_int_equal(completion.id, xfer.header);
    assert_int_equal(completion.length, 8 + length);
}

/* Where nothing moves, a message answers itself. */
static void answer_alone(struct end *end)
{
    struct completion completion;
    struct xfer xfer = xfer_of(end, HERE_AT, 8), receive = xfer;
    receive.id = next_id();
    xfer.id = next_id();
    assert_int_equal(choice.ops->recv(end->handle, &receive), LATER);
    assert_true(choice.ops->send(end->handle, &xfer) >= 0);
    assert_int_equal(next_completion(end, &completion), 0);
    assert_int_equal(completion.verb, VERB_RECV);
    assert_int_equal(completion.id, receive.id);
}

static void expect_quiet(struct end *end)
{
    struct completion completion;
    for (int i = 0; i < 100; i++)
        assert_int_equal(choice.ops->poll(end->handle, &completion, 1), 0);
}

static void move_bytes(struct pair *pair)
{
    struct end *end = &pair->end;
    unsigned verbs = end->facts.verbs;
    const size_t lengths[] = {8, 1000, longest(end)};
    expect_quiet(end);
    for (size_t i = 0; i < LENGTH(lengths); i++) {
        if (verbs & VERB(WRITE))
            write_there(pair, lengths[i]);
        if (verbs & VERB(READ))
            read_back(pair, lengths[i]);
        if (!end->facts.alone && verbs & VERB(SEND) && verbs & VERB(RECV)) {
            send_there(pair, lengths[i], HINT(LL));
            receive_here(pair, lengths[i], HINT(LL));
            send_there(pair, lengths[i], HINT(RENDEZVOUS));
            receive_here(pair, lengths[i], HINT(RENDEZVOUS));
        }
        if (!end->facts.alone && verbs & VERB(AM))
            am_both_ways(pair, lengths[i]);
    }
    if (verbs & VERB(ATOMIC))
        add_there(pair);
    if (end->facts.alone && verbs & VERB(SEND))
        answer_alone(end);
    expect_quiet(end);
}

/* As soon as the other end is connected too. */
static void leave(struct pair *pair)
{
    ask(pair, "look", 0, 0, 0);
    choice.ops->leave(pair->end.handle);
}

/* Leaves as much unfinished as the fabric takes. */
static void begin_lengths(struct end *end, size_t most)
{
    unsigned verbs = end->facts.verbs;
    for (unsigned i = 0; i < 20; i++) {
        size_t length = i % 2 || most > longest(end) ? 64 : most;
        struct xfer xfer = xfer_of(end, HERE_AT, length);
        xfer.remote_at = THERE_AT;
        xfer.how = 0;
        xfer.id = next_id();
        if (verbs & VERB(RECV))
            choice.ops->recv(end->handle, &xfer);
        if (verbs & VERB(WRITE))
            choice.ops->write(end->handle, &xfer);
        if (verbs & VERB(READ))
            choice.ops->read(end->handle, &xfer);
        if (verbs & VERB(SEND))
            choice.ops->send(end->handle, &xfer);
        struct xfer am = am_of(end, HERE_AT, 64, UINT64_C(8) << 32 | am_layout(end, 64));
        if (verbs & VERB(AM) && am_layout(end, 64))
            choice.ops->am(end->handle, &am);
    }
}

static void begin_everything(struct end *end)
{
    begin_lengths(end, longest(end));
}

/* ---- tests ---- */

static void every_verb_works_in_every_meeting(void **state)
{
    struct pair *pair = *state;
    move_bytes(pair);
    for (int i = 0; i < 3; i++) {
        pair_meet(pair, 0);
        move_bytes(pair);
    }
}

static void regions_of_other_sizes_are_exposed_between_meetings(void **state)
{
    struct pair *pair = *state;
    static const size_t sizes[] = {SMALLEST, (size_t)3 * REGION_BYTES, REGION_BYTES};
    for (size_t i = 0; i < LENGTH(sizes); i++) {
        pair_meet(pair, sizes[i]);
        assert_true(pair->end.facts.alone || pair->end.remote.length >= sizes[i]);
        move_bytes(pair);
    }
}

/* Two regions, and the other end gets the key of the second one only. */
static void a_region_added_after_leaving_is_reached(void **state)
{
    struct pair *pair = *state;
    struct end *end = &pair->end;
    struct region first = end->region;
    struct msg key;
    assert_int_equal(choice.ops->expose(end->handle, &end->region, &key), 0);
    struct region second = {.kind = &memory_host, .length = SMALLEST, .fd = -1};
    if (!end->facts.own_memory)
        assert_int_equal(memory_kinds[0]->alloc(&second, SMALLEST, memory_kinds[0]), 0);
    leave(pair);
    assert_int_equal(choice.ops->expose(end->handle, &second, &key), 0);
    pair_meet(pair, 0);
    move_bytes(pair);
    choice.ops->withdraw(end->handle, &second);
    if (!end->facts.own_memory)
        second.kind->free(&second);
    assert_ptr_equal(end->region.address, first.address);
    move_bytes(pair);
}

static void keys_of_another_meeting_are_others(void **state)
{
    struct pair *pair = *state;
    struct msg before = pair->end.key;
    if (pair->end.facts.alone) {
        print_message("# %s moves no bytes\n", choice.ops->name);
        skip();
    }
    struct msg again;
    assert_int_equal(choice.ops->expose(pair->end.handle, &pair->end.region, &again), 0);
    assert_string_equal(again.bytes, before.bytes);
    pair_meet(pair, 0);
    assert_string_not_equal(pair->end.key.bytes, before.bytes);
}

static void meet_other(struct pair *pair, struct pair *other)
{
    pair->end.peer = other->peers[PEER_CLIENT];
    int status = end_connect(&pair->end);
    if (status)
        print_message("# %s\n", fail_reason());
    assert_int_equal(status, 0);
}

/* Ends another target, with which the pair's end is. */
static void part(struct pair *pair, struct pair *other)
{
    struct msg go;
    choice.ops->leave(pair->end.handle);
    msg_print(&go, "go=1\n");
    peer_send(other->peers[PEER_CLIENT], &go);
    waitpid(other->target, NULL, 0);
    peer_close(other->peers[PEER_CLIENT]);
    pair->end.peer = pair->peers[PEER_CLIENT];
}

static void a_third_end_is_met_and_the_second_again(void **state)
{
    struct pair *pair = *state, third;
    assert_int_equal(pair_target(&third), 0);
    move_bytes(pair);
    assert_int_equal(ask_all(pair, "leave", 0, 0, 0).status, 0);
    choice.ops->leave(pair->end.handle);
    meet_other(pair, &third);
    move_bytes(pair);
    part(pair, &third);
    pair_meet(pair, 0);
    move_bytes(pair);
}

/* The second end stays in its meeting with us and goes on sending, as far as its fabric lets it: a
 * library may go on trying to connect. */
static void an_end_that_has_not_left_does_not_disturb_the_next_meeting(void **state)
{
    struct pair *pair = *state, third;
    struct end *end = &pair->end;
    unsigned layout = am_layout(end, 64);
    move_bytes(pair);
    assert_int_equal(pair_target(&third), 0);
    choice.ops->leave(end->handle);
    for (int i = 0; i < 3; i++) {
        if (end->facts.verbs & VERB(SEND) && !end->facts.alone)
            ask_all(pair, "say", THERE_AT, 64, HINT(LL) & end->facts.honours);
        if (end->facts.verbs & VERB(AM) && layout && !end->facts.alone)
            ask_all(pair, "am_once", THERE_AT, 64, UINT64_C(8) << 32 | layout);
    }
    meet_other(pair, &third);
    move_bytes(pair);
    pair->end.peer = pair->peers[PEER_CLIENT];
    ask(pair, "withdraw", 0, 0, 0);
    pair->end.peer = third.peers[PEER_CLIENT];
    move_bytes(pair);
    part(pair, &third);
}

/* Libraries move messages of a middle length in another way than long ones. */
static void what_was_under_way_is_forgotten(void **state)
{
    struct pair *pair = *state;
    const size_t lengths[] = {longest(&pair->end), 100000, 20000, longest(&pair->end)};
    for (size_t i = 0; i < LENGTH(lengths); i++) {
        begin_lengths(&pair->end, lengths[i]);
        if (pair->end.facts.verbs & VERB(RECV) && !pair->end.facts.alone)
            assert_int_equal(ask_all(pair, "post", THERE_AT, 64, next_id()).status, 0);
        pair_meet(pair, 0);
        move_bytes(pair);
    }
}

static void leaving_twice_or_without_a_meeting_is_safe(void **state)
{
    struct pair *pair = *state;
    struct end lone;
    struct msg address;
    assert_int_equal(end_open(&lone, NULL, NULL), 0);
    for (int i = 0; i < 3; i++) {
        choice.ops->leave(lone.handle);
        choice.ops->leave(lone.handle);
        expect_quiet(&lone);
        assert_int_equal(choice.ops->expose(lone.handle, &lone.region, &lone.key), 0);
        assert_int_equal(choice.ops->address(lone.handle, &address), 0);
    }
    end_close(&lone);
    leave(pair);
    choice.ops->leave(pair->end.handle);
    expect_quiet(&pair->end);
    pair_meet(pair, 0);
    move_bytes(pair);
}

static void verbs_without_a_meeting_are_refused(void **state)
{
    struct pair *pair = *state;
    struct end *end = &pair->end;
    struct xfer xfer = xfer_of(end, HERE_AT, 8);
    if (end->facts.alone) {
        print_message("# %s needs no other end\n", choice.ops->name);
        skip();
    }
    leave(pair);
    xfer.how = HINT(LL) & end->facts.honours;
    if (end->facts.verbs & VERB(SEND))
        assert_int_equal(choice.ops->send(end->handle, &xfer), -ENOTCONN);
    if (end->facts.verbs & VERB(RECV))
        assert_int_equal(choice.ops->recv(end->handle, &xfer), -ENOTCONN);
    struct xfer am = am_of(end, HERE_AT, 64, UINT64_C(8) << 32 | am_layout(end, 64));
    if (end->facts.verbs & VERB(AM) && am_layout(end, 64))
        assert_int_equal(choice.ops->am(end->handle, &am), -ENOTCONN);
    pair_meet(pair, 0);
    move_bytes(pair);
}

/* A connect that never came to its end is left like a meeting. */
static void a_meeting_that_did_not_come_about_is_left(void **state)
{
    struct pair *pair = *state;
    struct end *end = &pair->end, absent;
    struct msg address;
    struct remote remote;
    const struct fabric_meeting meeting = {
        .nonce = "00ff", .address = &address, .keys = &absent.key, .count = 1};
    leave(pair);
    assert_int_equal(end_open(&absent, NULL, NULL), 0);
    assert_int_equal(choice.ops->address(absent.handle, &address), 0);
    assert_int_equal(choice.ops->expose(end->handle, &end->region, &end->key), 0);
    for (int i = 0; i < 3; i++)
        if (choice.ops->connect(end->handle, &meeting, &remote) != LATER)
            break;
    pair_meet(pair, 0);
    move_bytes(pair);
    end_close(&absent);
}

static void leave_dead_end(struct pair *pair, bool busy)
{
    struct pair third;
    move_bytes(pair);
    assert_int_equal(pair_target(&third), 0);
    if (busy)
        begin_everything(&pair->end);
    kill(pair->target, SIGKILL);
    if (busy)
        begin_everything(&pair->end);
    uint64_t since_ms = clock_ms();
    choice.ops->leave(pair->end.handle);
    assert_true(clock_ms() - since_ms < WAIT_MS);
    meet_other(pair, &third);
    move_bytes(pair);
    part(pair, &third);
}

static void an_end_that_is_dead_is_left(void **state)
{
    leave_dead_end(*state, false);
}

static void an_end_that_died_with_operations_under_way_is_left(void **state)
{
    leave_dead_end(*state, true);
}

static void withdrawing_from_a_dead_end_does_not_wait(void **state)
{
    struct pair *pair = *state;
    ask(pair, "look", 0, 0, 0);
    begin_everything(&pair->end);
    kill(pair->target, SIGKILL);
    uint64_t since_ms = clock_ms();
    choice.ops->withdraw(pair->end.handle, &pair->end.region);
    assert_true(clock_ms() - since_ms < WAIT_MS);
}

static const struct CMUnitTest tests[] = {
    WITH_PAIR(every_verb_works_in_every_meeting),
    WITH_PAIR(regions_of_other_sizes_are_exposed_between_meetings),
    WITH_PAIR(a_region_added_after_leaving_is_reached),
    WITH_PAIR(keys_of_another_meeting_are_others),
    WITH_PAIR(a_third_end_is_met_and_the_second_again),
    WITH_PAIR(an_end_that_has_not_left_does_not_disturb_the_next_meeting),
    WITH_PAIR(what_was_under_way_is_forgotten),
    WITH_PAIR(leaving_twice_or_without_a_meeting_is_safe),
    WITH_PAIR(verbs_without_a_meeting_are_refused),
    WITH_PAIR(a_meeting_that_did_not_come_about_is_left),
    WITH_PAIR(an_end_that_is_dead_is_left),
    WITH_PAIR(an_end_that_died_with_operations_under_way_is_left),
    WITH_PAIR(withdrawing_from_a_dead_end_does_not_wait),
};
const struct topic leave_topic = {tests, LENGTH(tests)};
