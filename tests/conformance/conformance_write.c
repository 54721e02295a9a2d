/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes: whole, in bounds, in order, and refused where they must be. */
#include "conformance.h"
#include "core/clock.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static void write_and_compare(struct pair *pair, size_t at, size_t length, unsigned combination)
{
    enum { MARGIN = 64 };
    struct end *end = &pair->end;
    struct xfer xfer = xfer_of(end, at, length);
    char expected[MARGIN];
    xfer.how = honoured(end, combination, length);
    xfer.id = combination * UINT64_C(1000003) + length;
    for (size_t i = 0; i < length; i++)
        end->bytes[at + i] = (char)(i * 31 + length + combination);
    ask(pair, "fill", at - MARGIN, length + (size_t)2 * MARGIN, 0x5a);
    assert_int_equal(perform(end, VERB_WRITE, &xfer), 0);
    /* At the moment of completion the bytes are there, and none beside them. */
    assert_int_equal(ask(pair, "look", at, length, 0), digest(end->bytes + at, length));
    memset(expected, 0x5a, sizeof expected);
    assert_int_equal(ask(pair, "look", at - MARGIN, MARGIN, 0), digest(expected, MARGIN));
    assert_int_equal(ask(pair, "look", at + length, MARGIN, 0), digest(expected, MARGIN));
}

static void writes_land_whole_with_every_combination_of_hints(void **state)
{
    struct pair *pair = *state;
    static const size_t lengths[] = {1,  2,   3,   4,   7,   8,    9,    16,   31,    64,    65,
                                     92, 223, 224, 225, 256, 4095, 4096, 4097, 65536, 300001};
    needs(pair, VERB_WRITE, true);
    for (size_t i = 0; i < LENGTH(lengths); i++)
        for (unsigned how = 0; how < 8; how++)
            write_and_compare(pair, 4096 + i, lengths[i], how);
}

static void write_in_layout(struct pair *pair, size_t at, size_t length, unsigned how)
{
    struct end *end = &pair->end;
    struct xfer xfer = xfer_of(end, at, length);
    xfer.how = how;
    pattern(end->bytes + at, length, length + how);
    uint64_t sent = digest(end->bytes + at, length);
    ask(pair, "fill", at, length, 0x5a);
    assert_int_equal(perform(end, VERB_WRITE, &xfer), 0);
    memset(end->bytes + at, 0, length);
    assert_int_equal(ask(pair, "look", at, length, 0), sent);
}

/* All that was posted before it, also what has completed at this end alone. */
static void after_a_flush_local_writes_are_in_the_targets_memory(void **state)
{
    enum { WRITES = 40, FLUSH_ID = 7777 };
    static const size_t lengths[] = {8, 1, 300, 4096, 20000};
    struct pair *pair = *state;
    struct end *end = &pair->end;
    needs(pair, VERB_WRITE, true);
    needs_hint(pair, HINT_LOCAL, "local");
    for (uint64_t lap = 0; lap < 20; lap++) {
        unsigned open = 0;
        bool settled = false;
        pattern(end->bytes, REGION_BYTES, lap);
        for (unsigned i = 0; i < WRITES; i++) {
            struct xfer xfer =
                xfer_of(end, (size_t)i * 20480, lengths[(i + lap) % LENGTH(lengths)]);
            xfer.how = HINT(LOCAL);
            xfer.id = i;
            int got = post(end, VERB_WRITE, &xfer);
            assert_true(got == DONE || got == LATER);
            open += got == LATER;
        }
        struct xfer flush = xfer_of(end, 0, 0);
        flush.id = FLUSH_ID;
        int got;
        while ((got = choice.ops->flush(end->handle, &flush)) == -EAGAIN) {
            struct completion completion;
            assert_int_equal(next_completion(end, &completion), 0);
            open--;
        }
        settled = got == DONE;
        assert_true(got == DONE || got == LATER);
        while (!settled || open) {
            struct completion completion;
            assert_int_equal(next_completion(end, &completion), 0);
            assert_int_equal(completion.status, 0);
            assert_int_equal(completion.verb, VERB_WRITE);
            settled |= completion.id == FLUSH_ID;
            open -= completion.id != FLUSH_ID;
        }
        for (unsigned i = 0; i < WRITES; i++) {
            size_t at = (size_t)i * 20480, length = lengths[(i + lap) % LENGTH(lengths)];
            assert_int_equal(ask(pair, "look", at, length, 0), digest(end->bytes + at, length));
        }
    }
}

static void writes_land_whole_in_every_layout(void **state)
{
    struct pair *pair = *state;
    needs(pair, VERB_WRITE, true);
    in_every_layout(pair, VERB_WRITE, write_in_layout);
}

static void a_write_of_no_bytes_changes_nothing(void **state)
{
    struct pair *pair = *state;
    needs(pair, VERB_WRITE, true);
    uint64_t before = ask(pair, "look", 0, REGION_BYTES, 0);
    struct xfer xfer = xfer_of(&pair->end, 128, 0);
    assert_int_equal(perform(&pair->end, VERB_WRITE, &xfer), 0);
    assert_int_equal(ask(pair, "look", 0, REGION_BYTES, 0), before);
}

static void the_whole_region_can_be_written_at_once(void **state)
{
    struct pair *pair = *state;
    needs(pair, VERB_WRITE, true);
    for (size_t i = 0; i < REGION_BYTES; i++)
        pair->end.bytes[i] = (char)(i * 7 + (i >> 9));
    struct xfer xfer = xfer_of(&pair->end, 0, REGION_BYTES);
    assert_int_equal(perform(&pair->end, VERB_WRITE, &xfer), 0);
    assert_int_equal(ask(pair, "look", 0, REGION_BYTES, 0), digest(pair->end.bytes, REGION_BYTES));
}

static void the_source_may_change_once_a_write_is_complete(void **state)
{
    struct pair *pair = *state;
    needs(pair, VERB_WRITE, true);
    for (unsigned how = 0; how < 8; how++) {
        struct xfer xfer = xfer_of(&pair->end, 512, 200);
        xfer.how = honoured(&pair->end, how, 200);
        memset(pair->end.bytes + 512, (int)how + 1, 200);
        uint64_t sent = digest(pair->end.bytes + 512, 200);
        assert_int_equal(perform(&pair->end, VERB_WRITE, &xfer), 0);
        memset(pair->end.bytes + 512, 0, 200);
        assert_int_equal(ask(pair, "look", 512, 200, 0), sent);
    }
}

static void every_write_completes_once_however_many_are_posted(void **state)
{
    struct pair *pair = *state;
    needs(pair, VERB_WRITE, false);
    perform_many(pair, VERB_WRITE);
}

/* Two writes to one place: with order asked for, the second one is what stays. */
static void unrestricted_writes_keep_their_order(void **state)
{
    struct pair *pair = *state;
    struct end *end = &pair->end;
    needs(pair, VERB_WRITE, true);
    if (!(end->facts.honours & HINT(RESTRICTED))) {
        print_message("# order: %s\n", end->facts.why_not[HINT_RESTRICTED]);
        skip();
    }
    for (int round = 0; round < 50; round++) {
        struct completion completion;
        struct xfer first = xfer_of(end, 0, 64), second = xfer_of(end, 64, 64);
        int later = 0;
        first.how = 0;
        second.how = HINT(LL) & end->facts.honours;
        second.remote_at = 0;
        memset(end->bytes, round, 64);
        memset(end->bytes + 64, round + 100, 64);
        int got = post(end, VERB_WRITE, &first);
        assert_true(got >= 0);
        later += got == LATER;
        got = post(end, VERB_WRITE, &second);
        assert_true(got >= 0);
        later += got == LATER;
        while (later-- > 0)
            assert_int_equal(next_completion(end, &completion), 0);
        assert_int_equal(ask(pair, "look", 0, 64, 0), digest(end->bytes + 64, 64));
    }
}

static void closing_with_operations_under_way_is_safe(void **state)
{
    struct pair *pair = *state;
    needs(pair, VERB_WRITE, false);
    for (unsigned i = 0; i < pair->end.facts.depth; i++) {
        struct xfer xfer = xfer_of(&pair->end, 0, 64);
        xfer.how = 0;
        if (choice.ops->write(pair->end.handle, &xfer) == -EAGAIN)
            break;
    }
    choice.ops->withdraw(pair->end.handle, &pair->end.region);
    choice.ops->close(pair->end.handle);
    pair->end.handle = NULL;
}

/* ---- refusals: each on a connection of its own, which they may cost ---- */

static void a_write_beyond_the_targets_entry_is_refused(void **state)
{
    struct pair *pair = *state;
    needs(pair, VERB_WRITE, true);
    uint64_t before = ask(pair, "look", 0, REGION_BYTES, 0);
    const struct {
        size_t at, length;
    } bad[] = {{REGION_BYTES, 1}, {REGION_BYTES - 7, 8}, {SIZE_MAX - 3, 8}, {0, REGION_BYTES + 1}};
    for (size_t i = 0; i < LENGTH(bad); i++) {
        struct xfer xfer = xfer_of(&pair->end, 0, bad[i].length);
        xfer.remote_at = bad[i].at;
        assert_true(perform(&pair->end, VERB_WRITE, &xfer) < 0);
        assert_true(*fail_reason());
    }
    assert_int_equal(ask(pair, "look", 0, REGION_BYTES, 0), before);
}

static void a_write_with_a_wrong_key_is_refused(void **state)
{
    struct pair *pair = *state;
    needs(pair, VERB_WRITE, true);
    struct xfer xfer = xfer_of(&pair->end, 0, 8);
    pair->end.remote.key ^= 0x10;
    assert_true(perform(&pair->end, VERB_WRITE, &xfer) < 0);
}

static void a_write_to_a_withdrawn_region_is_refused(void **state)
{
    struct pair *pair = *state;
    needs(pair, VERB_WRITE, true);
    struct xfer xfer = xfer_of(&pair->end, 0, 8);
    assert_int_equal(perform(&pair->end, VERB_WRITE, &xfer), 0);
    ask(pair, "withdraw", 0, 0, 0);
    assert_true(perform(&pair->end, VERB_WRITE, &xfer) < 0);
}

static void immediate_data_beyond_the_limit_is_refused(void **state)
{
    struct pair *pair = *state;
    needs(pair, VERB_WRITE, true);
    if (!(pair->end.facts.honours & HINT(INLINE)))
        skip();
    struct xfer xfer = xfer_of(&pair->end, 0, pair->end.facts.max_inline + 1);
    xfer.how |= HINT(INLINE);
    assert_int_equal(perform(&pair->end, VERB_WRITE, &xfer), -EMSGSIZE);
}

/* What the fabric says of a dead peer is its own affair; that it comes back is not. */
static void verbs_and_poll_return_when_the_target_is_dead(void **state)
{
    struct pair *pair = *state;
    needs(pair, VERB_WRITE, false);
    kill(pair->target, SIGKILL);
    uint64_t since_ms = clock_ms();
    for (int i = 0; i < 100; i++) {
        struct completion completion;
        struct xfer xfer = xfer_of(&pair->end, 0, 64);
        choice.ops->write(pair->end.handle, &xfer);
        choice.ops->poll(pair->end.handle, &completion, 1);
    }
    assert_true(clock_ms() - since_ms < WAIT_MS);
}

static const struct CMUnitTest tests[] = {
    WITH_PAIR(writes_land_whole_with_every_combination_of_hints),
    WITH_PAIR(writes_land_whole_in_every_layout),
    WITH_PAIR(after_a_flush_local_writes_are_in_the_targets_memory),
    WITH_PAIR(a_write_of_no_bytes_changes_nothing),
    WITH_PAIR(the_whole_region_can_be_written_at_once),
    WITH_PAIR(the_source_may_change_once_a_write_is_complete),
    WITH_PAIR(every_write_completes_once_however_many_are_posted),
    WITH_PAIR(unrestricted_writes_keep_their_order),
    WITH_PAIR(closing_with_operations_under_way_is_safe),
    WITH_PAIR(a_write_beyond_the_targets_entry_is_refused),
    WITH_PAIR(a_write_with_a_wrong_key_is_refused),
    WITH_PAIR(a_write_to_a_withdrawn_region_is_refused),
    WITH_PAIR(immediate_data_beyond_the_limit_is_refused),
    WITH_PAIR(verbs_and_poll_return_when_the_target_is_dead),
};
const struct topic write_topic = {tests, LENGTH(tests)};
