/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads: whole, beside nothing else, and refused where they must be. */
#include "conformance.h"
#include "core/clock.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

enum { MARGIN = 64 };

static void read_and_compare(struct pair *pair, size_t at, size_t length, unsigned combination)
{
    struct end *end = &pair->end;
    struct xfer xfer = xfer_of(end, at, length);
    char margin[MARGIN];
    uint64_t value = length + combination;
    xfer.remote_at = at + 4096;
    /* There is no immediate data in a read. */
    xfer.how = honoured(end, combination, length) & ~HINT(INLINE);
    xfer.id = combination * UINT64_C(1000003) + length;
    memset(end->bytes + at - MARGIN, 0x5a, length + (size_t)2 * MARGIN);
    uint64_t laid = ask_all(pair, "pattern", xfer.remote_at, length, value).digest;
    uint64_t whole = ask(pair, "look", 0, REGION_BYTES, 0);
    assert_int_equal(perform(end, VERB_READ, &xfer), 0);
    assert_int_equal(digest(end->bytes + at, length), laid);
    memset(margin, 0x5a, sizeof margin);
    assert_memory_equal(end->bytes + at - MARGIN, margin, MARGIN);
    assert_memory_equal(end->bytes + at + length, margin, MARGIN);
    assert_int_equal(ask(pair, "look", 0, REGION_BYTES, 0), whole);
}

static void reads_land_whole_with_every_combination_of_hints(void **state)
{
    struct pair *pair = *state;
    static const size_t lengths[] = {1,  2,   3,   4,   7,   8,    9,    16,   31,    64,    65,
                                     92, 223, 224, 225, 256, 4095, 4096, 4097, 65536, 300001};
    static const unsigned hows[] = {0, HINT(LL), HINT(RESTRICTED), HINT(LL) | HINT(RESTRICTED)};
    needs(pair, VERB_READ, true);
    for (size_t i = 0; i < LENGTH(lengths); i++)
        for (size_t how = 0; how < LENGTH(hows); how++)
            read_and_compare(pair, 4096 + i, lengths[i], hows[how]);
}

static void read_in_layout(struct pair *pair, size_t at, size_t length, unsigned how)
{
    struct end *end = &pair->end;
    struct xfer xfer = xfer_of(end, at, length);
    xfer.how = how;
    memset(end->bytes + at, 0x5a, length);
    uint64_t laid = ask(pair, "pattern", at, length, (int)(length % 1000 + how));
    assert_int_equal(perform(end, VERB_READ, &xfer), 0);
    assert_int_equal(digest(end->bytes + at, length), laid);
}

static void reads_land_whole_in_every_layout(void **state)
{
    struct pair *pair = *state;
    needs(pair, VERB_READ, true);
    in_every_layout(pair, VERB_READ, read_in_layout);
}

static void a_read_of_no_bytes_changes_nothing(void **state)
{
    struct pair *pair = *state;
    needs(pair, VERB_READ, true);
    struct xfer xfer = xfer_of(&pair->end, 128, 0);
    uint64_t before = digest(pair->end.bytes, REGION_BYTES);
    assert_int_equal(perform(&pair->end, VERB_READ, &xfer), 0);
    assert_int_equal(digest(pair->end.bytes, REGION_BYTES), before);
}

static void the_whole_region_can_be_read_at_once(void **state)
{
    struct pair *pair = *state;
    needs(pair, VERB_READ, true);
    uint64_t laid = ask(pair, "pattern", 0, REGION_BYTES, 3);
    struct xfer xfer = xfer_of(&pair->end, 0, REGION_BYTES);
    xfer.how &= ~HINT(INLINE);
    assert_int_equal(perform(&pair->end, VERB_READ, &xfer), 0);
    assert_int_equal(digest(pair->end.bytes, REGION_BYTES), laid);
}

static void a_read_sees_what_was_written_before_it(void **state)
{
    struct pair *pair = *state;
    struct end *end = &pair->end;
    needs(pair, VERB_READ, true);
    needs(pair, VERB_WRITE, true);
    for (int round = 0; round < 50; round++) {
        struct xfer put = xfer_of(end, 0, 100), get = xfer_of(end, 4096, 100);
        struct completion completion;
        put.how = round % 2 ? put.how & HINT(LL) : 0;
        get.how = round % 3 ? get.how & HINT(LL) : 0;
        get.remote_at = 0;
        memset(end->bytes, round + 1, 100);
        int later = post(end, VERB_WRITE, &put) == LATER;
        later += post(end, VERB_READ, &get) == LATER;
        while (later-- > 0)
            assert_int_equal(next_completion(end, &completion), 0);
        assert_memory_equal(end->bytes + 4096, end->bytes, 100);
    }
}

static void every_read_completes_once_however_many_are_posted(void **state)
{
    struct pair *pair = *state;
    needs(pair, VERB_READ, false);
    perform_many(pair, VERB_READ);
}

/* ---- refusals: each on a connection of its own, which they may cost ---- */

static void a_read_beyond_the_targets_entry_is_refused(void **state)
{
    struct pair *pair = *state;
    needs(pair, VERB_READ, true);
    uint64_t before = digest(pair->end.bytes, REGION_BYTES);
    const struct {
        size_t at, length;
    } bad[] = {{REGION_BYTES, 1}, {REGION_BYTES - 7, 8}, {SIZE_MAX - 3, 8}, {0, REGION_BYTES + 1}};
    for (size_t i = 0; i < LENGTH(bad); i++) {
        struct xfer xfer = xfer_of(&pair->end, 0, bad[i].length);
        xfer.how &= ~HINT(INLINE);
        xfer.remote_at = bad[i].at;
        assert_true(perform(&pair->end, VERB_READ, &xfer) < 0);
        assert_true(*fail_reason());
    }
    assert_int_equal(digest(pair->end.bytes, REGION_BYTES), before);
}

static void a_read_beyond_our_own_buffer_is_refused(void **state)
{
    struct pair *pair = *state;
    needs(pair, VERB_READ, true);
    static const size_t bad[] = {REGION_BYTES, REGION_BYTES - 7, SIZE_MAX - 3};
    for (size_t i = 0; i < LENGTH(bad); i++) {
        struct xfer xfer = xfer_of(&pair->end, 0, 8);
        xfer.at = bad[i];
        assert_true(perform(&pair->end, VERB_READ, &xfer) < 0);
    }
}

static void a_read_with_a_wrong_key_is_refused(void **state)
{
    struct pair *pair = *state;
    needs(pair, VERB_READ, true);
    struct xfer xfer = xfer_of(&pair->end, 0, 8);
    pair->end.remote.key ^= 0x10;
    assert_true(perform(&pair->end, VERB_READ, &xfer) < 0);
}

static void a_read_of_a_withdrawn_region_is_refused(void **state)
{
    struct pair *pair = *state;
    needs(pair, VERB_READ, true);
    struct xfer xfer = xfer_of(&pair->end, 0, 8);
    assert_int_equal(perform(&pair->end, VERB_READ, &xfer), 0);
    ask(pair, "withdraw", 0, 0, 0);
    assert_true(perform(&pair->end, VERB_READ, &xfer) < 0);
}

static void reads_return_when_the_target_is_dead(void **state)
{
    struct pair *pair = *state;
    needs(pair, VERB_READ, false);
    kill(pair->target, SIGKILL);
    uint64_t since_ms = clock_ms();
    for (int i = 0; i < 100; i++) {
        struct completion completion;
        struct xfer xfer = xfer_of(&pair->end, 0, 64);
        choice.ops->read(pair->end.handle, &xfer);
        choice.ops->poll(pair->end.handle, &completion, 1);
    }
    assert_true(clock_ms() - since_ms < WAIT_MS);
}

static const struct CMUnitTest tests[] = {
    WITH_PAIR(reads_land_whole_with_every_combination_of_hints),
    WITH_PAIR(reads_land_whole_in_every_layout),
    WITH_PAIR(a_read_of_no_bytes_changes_nothing),
    WITH_PAIR(the_whole_region_can_be_read_at_once),
    WITH_PAIR(a_read_sees_what_was_written_before_it),
    WITH_PAIR(every_read_completes_once_however_many_are_posted),
    WITH_PAIR(a_read_beyond_the_targets_entry_is_refused),
    WITH_PAIR(a_read_beyond_our_own_buffer_is_refused),
    WITH_PAIR(a_read_with_a_wrong_key_is_refused),
    WITH_PAIR(a_read_of_a_withdrawn_region_is_refused),
    WITH_PAIR(reads_return_when_the_target_is_dead),
};
const struct topic read_topic = {tests, LENGTH(tests)};
