/* SPDX-License-Identifier: BSD-3-Clause */
/* A stream of messages that are acknowledged, on a fabric that completes and acknowledges at
 * random: whatever comes when, no more than the window are unacknowledged, and no more than allowed
 * are under way. */
#include "support/unit.h"

/* NOLINTBEGIN(bugprone-suspicious-include): with what is inside. */
#include "bench/inflight.c"
#include "bench/method_stream.c"
/* NOLINTEND(bugprone-suspicious-include) */

static struct {
    struct run *run;
    uint64_t posted, acked; /* so far; and said to be acknowledged */
    unsigned pending;       /* returned LATER, and not complete yet */
    unsigned most_pending;
    uint64_t window;
    unsigned random;
} other;

static unsigned chance(unsigned of)
{
    other.random = other.random * 1103515245 + 12345;
    return (other.random >> 16) % of;
}

static int post_one(struct fabric *fabric, const struct xfer *x)
{
    (void)fabric;
    if (chance(8) == 0)
        return -EAGAIN;
    assert_int_equal(x->header, other.posted + 1);
    assert_true(other.posted - other.run->flight.acked < other.window);
    other.posted++;
    if (chance(3))
        return DONE;
    other.pending++;
    assert_true(other.pending <= other.most_pending + 1);
    return LATER;
}

static int poll_one(struct fabric *fabric, struct completion *c, int max)
{
    (void)fabric;
    (void)max;
    if (other.pending && chance(2)) {
        other.pending--;
        *c = (struct completion){.verb = VERB_AM};
        return 1;
    }
    if (other.posted == other.acked)
        return 0;
    other.acked += 1 + chance((unsigned)(other.posted - other.acked));
    *c = (struct completion){
        .verb = VERB_ARRIVAL, .length = 8, .id = (uint64_t)ACK << 32 | other.acked};
    return 1;
}

static void no_more_than_the_window_are_unacknowledged(void **state)
{
    static const uint64_t windows[] = {1, 2, 3, 7, 64, 128};
    static const struct fabric_ops ops = {.poll = poll_one};
    static const struct op op = {.name = "am", .verb = VERB_AM};
    static struct region region;
    (void)state;
    for (size_t i = 0; i < LENGTH(windows); i++)
        for (unsigned pending = 0; pending < 40; pending += 13) {
            struct spec spec = {.pace.window = windows[i]};
            struct run run = {
                .verb = post_one, .op = &op, .fabric = &ops, .spec = &spec, .size = 8};
            run.flight.ack = (struct xfer){.local = &region};
            run.flight.ack_every = 1;
            memset(&other, 0, sizeof other);
            other.run = &run;
            other.window = windows[i];
            other.most_pending = pending;
            other.random = (unsigned)(i * 100 + pending);
            for (uint64_t burst = 1; burst < 60; burst++)
                assert_int_equal(windowed(&run, burst, pending), 0);
            assert_int_equal(other.posted, 59 * 60 / 2);
            assert_int_equal(run.flight.number, other.posted);
            assert_int_equal(run.flight.pending, other.pending);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_more_than_the_window_are_unacknowledged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
