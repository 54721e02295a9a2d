/* SPDX-License-Identifier: BSD-3-Clause */
/* The native cxi fabric on the software Cassini, both ends in this process: what keys say, and what
 * an end that leaves in the middle of something brings to its next meeting. */
#include "core/clock.h"
#include "fabric/choose.h"
#include "fabric/cxi/cxi.h"
#include "support/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { BYTES = 1 << 16, WAIT_MS = 5000 };

static struct fabric_choice choice;

struct end {
    struct fabric *handle;
    struct fabric_facts facts;
    struct region region;
    struct msg key, address;
    struct remote remote;
};

struct pair {
    struct end ends[2];
};

/* ---- both ends ---- */

static void fault(const char *what)
{
    if (what)
        setenv("CASSINI_FAULT", what, 1);
    else
        unsetenv("CASSINI_FAULT");
}

static void open_end(struct end *end, const char *device)
{
    const struct fabric_want want = {
        .device = device, .here = "", .service = 1, .verbs = (1U << VERBS) - 1, .looks = true};
    *end = (struct end){.region = {.fd = -1}};
    assert_int_equal(choice.ops->open(&end->handle, &want, &end->facts), 0);
    assert_int_equal(memory_host.alloc(&end->region, BYTES, &memory_host), 0);
    assert_int_equal(choice.ops->expose(end->handle, &end->region, &end->key), 0);
}

static void close_end(struct end *end)
{
    choice.ops->close(end->handle);
    memory_host.free(&end->region);
}

static int connect_end(struct end *end, const struct end *other, const char *nonce)
{
    const struct fabric_meeting meeting = {
        .nonce = nonce, .address = &other->address, .keys = &other->key, .count = 1};
    return choice.ops->connect(end->handle, &meeting, &end->remote);
}

static void meet(struct pair *pair)
{
    static unsigned meetings;
    char nonce[32];
    uint64_t since = clock_ms();
    int got[2] = {LATER, LATER};
    snprintf(nonce, sizeof nonce, "meeting %u", meetings++);
    for (int i = 0; i < 2; i++) {
        struct end *end = &pair->ends[i];
        assert_int_equal(choice.ops->expose(end->handle, &end->region, &end->key), 0);
        assert_int_equal(choice.ops->address(end->handle, &end->address), 0);
    }
    while (got[0] != DONE || got[1] != DONE) {
        for (int i = 0; i < 2; i++)
            got[i] = connect_end(&pair->ends[i], &pair->ends[1 - i], nonce);
        assert_true(got[0] >= 0 && got[1] >= 0 && clock_ms() - since < WAIT_MS);
    }
}

static void leave(struct pair *pair)
{
    choice.ops->leave(pair->ends[0].handle);
    choice.ops->leave(pair->ends[1].handle);
}

static int open_pair(void **state)
{
    if (fabric_choose("cxi:cxi0", &choice))
        return -1;
    struct pair *pair = calloc(1, sizeof *pair);
    assert_non_null(pair);
    open_end(&pair->ends[0], "cxi0");
    open_end(&pair->ends[1], "cxi1");
    meet(pair);
    *state = pair;
    return 0;
}

static int close_pair(void **state)
{
    struct pair *pair = *state;
    fault(NULL);
    close_end(&pair->ends[0]);
    close_end(&pair->ends[1]);
    free(pair);
    return 0;
}

/* The next completion of an end, while the other one polls too. */
static int next(struct pair *pair, int which, struct completion *completion)
{
    uint64_t since = clock_ms();
    while (clock_ms() - since < WAIT_MS) {
        int got = choice.ops->poll(pair->ends[which].handle, completion, 1);
        if (got)
            return got;
        choice.ops->poll(pair->ends[1 - which].handle, NULL, 0);
    }
    return -ETIMEDOUT;
}

static struct xfer xfer_of(struct end *end, size_t at, size_t length)
{
    return (struct xfer){.local = &end->region,
                         .at = at,
                         .remote = &end->remote,
                         .remote_at = at,
                         .length = length,
                         .id = at + 1};
}

static void write_works(struct pair *pair, unsigned how)
{
    struct completion done;
    struct xfer x = xfer_of(&pair->ends[0], 64, 4096);
    x.how = how;
    memset(pair->ends[0].region.address, 0x5a, BYTES);
    memset(pair->ends[1].region.address, 0, BYTES);
    assert_int_equal(choice.ops->write(pair->ends[0].handle, &x), LATER);
    assert_int_equal(next(pair, 0, &done), 1);
    assert_int_equal(done.status, 0);
    assert_int_equal(done.id, 65);
    assert_memory_equal(pair->ends[0].region.address, pair->ends[1].region.address + 64, 4096);
}

/* ---- keys and indices ---- */

static uint64_t number_in(const struct msg *text, const char *name)
{
    uint64_t value = 0;
    assert_int_equal(msg_number(text, name, &value), 0);
    return value;
}

/* The driver does not say that an index is taken: two portals at one would share what comes. */
static void no_two_portals_have_one_index(void **state)
{
    static const char *const names[] = {"put", "get", "matching"};
    struct pair *pair = *state;
    struct region regions[15];
    bool used[256] = {false};
    size_t count = 0;
    for (const char *const *name = (const char *const[]){"words", "messages", "ams", NULL}; *name;
         name++, count++)
        used[number_in(&pair->ends[0].address, *name)] = true;
    for (size_t i = 0; i < LENGTH(regions); i++) {
        struct msg key;
        assert_int_equal(memory_host.alloc(&regions[i], 4096, &memory_host), 0);
        assert_int_equal(choice.ops->expose(pair->ends[0].handle, &regions[i], &key), 0);
        for (size_t k = 0; k < LENGTH(names); k++, count++)
            used[number_in(&key, names[k])] = true;
    }
    for (size_t i = 0; i < LENGTH(used); i++)
        count -= used[i];
    assert_int_equal(count, 0);
    for (size_t i = 0; i < LENGTH(regions); i++) {
        choice.ops->withdraw(pair->ends[0].handle, &regions[i]);
        memory_host.free(&regions[i]);
    }
}

static void puts_and_gets_have_indices_in_halves_of_their_own(void **state)
{
    struct pair *pair = *state;
    for (int i = 0; i < 20; i++) {
        leave(pair);
        meet(pair);
        assert_true(number_in(&pair->ends[0].key, "put") < 128);
        assert_true(number_in(&pair->ends[0].key, "matching") < 128);
        assert_true(number_in(&pair->ends[0].key, "get") >= 128);
        assert_true(number_in(&pair->ends[0].address, "words") < 128);
    }
    write_works(pair, 0);
}

static void keys_outside_of_their_half_are_refused(void **state)
{
    static const char *const bad[] = {
        "key=0x1\nlength=64\nput=128\nget=200\nmatching=1\n",
        "key=0x1\nlength=64\nput=1\nget=127\nmatching=1\n",
        "key=0x1\nlength=64\nput=1\nget=256\nmatching=1\n",
        "key=0x1\nlength=64\nput=1\nget=200\nmatching=4096\n",
        "key=0x1\nlength=0x100000000000000\nput=1\nget=200\nmatching=1\n",
        "key=0x1\nput=1\nget=200\nmatching=1\n",
        "length=64\nput=1\nget=200\nmatching=1\n",
        ""};
    struct pair *pair = *state;
    leave(pair);
    for (size_t i = 0; i < LENGTH(bad); i++) {
        struct msg address = pair->ends[1].address;
        assert_int_equal(choice.ops->address(pair->ends[0].handle, &pair->ends[0].address), 0);
        pair->ends[1].address = address;
        assert_int_equal(msg_print(&pair->ends[1].key, "%s", bad[i]), 0);
        assert_int_equal(connect_end(&pair->ends[0], &pair->ends[1], "x"), -EPROTO);
        assert_contains(fail_reason(), "cxi: what the other end gave has no good ");
        choice.ops->leave(pair->ends[0].handle);
    }
}

/* ---- the next meeting ---- */

/* Acknowledgements come when nobody waits for them any more, and the results are somebody else's
 * memory. */
static void a_list_that_is_not_done_is_not_of_the_next_meeting(void **state)
{
    struct pair *pair = *state;
    struct completion done;
    const struct fabric_batch batch = {.count = 16, .slots = 16, .step = 8};
    uint64_t operand = 1, results[16], untouched[16];
    struct xfer x = xfer_of(&pair->ends[0], 0, 8);
    x.how = HINT(RESTRICTED) | HINT(INLINE);
    x.amo.op = AMO_SUM;
    x.amo.type = AMO_UINT64;
    x.amo.fetch = true;
    x.amo.operand = &operand;
    x.amo.result = results;
    memset(untouched, 0xee, sizeof untouched);
    memset(results, 0xee, sizeof results);
    fault("late_ack:3");
    assert_int_equal(choice.ops->batch(pair->ends[0].handle, VERB_ATOMIC, &x, &batch), LATER);
    rest_ms(20);
    leave(pair);
    meet(pair);
    for (uint64_t since = clock_ms(); clock_ms() - since < 500;)
        assert_int_equal(choice.ops->poll(pair->ends[0].handle, &done, 1), 0);
    assert_memory_equal(results, untouched, sizeof results);
    /* The counter is where it should be. */
    assert_int_equal(choice.ops->batch(pair->ends[0].handle, VERB_ATOMIC, &x, &batch), LATER);
    assert_int_equal(next(pair, 0, &done), 1);
    assert_int_equal(done.status, 0);
    assert_int_equal(results[15], 1);
    write_works(pair, HINT(RESTRICTED));
}

static void a_list_that_failed_is_not_of_the_next_meeting(void **state)
{
    struct pair *pair = *state;
    struct completion done;
    const struct fabric_batch batch = {.count = 16, .slots = 16, .step = 64};
    struct xfer x = xfer_of(&pair->ends[0], 0, 64);
    x.how = HINT(RESTRICTED);
    fault("error:3");
    assert_int_equal(choice.ops->batch(pair->ends[0].handle, VERB_WRITE, &x, &batch), LATER);
    assert_int_equal(next(pair, 0, &done), 1);
    assert_int_equal(done.status, -EIO);
    assert_int_equal(next(pair, 0, &done), -EIO);
    leave(pair);
    fault(NULL);
    meet(pair);
    /* One by one, because the counter is behind. */
    assert_int_equal(choice.ops->batch(pair->ends[0].handle, VERB_WRITE, &x, &batch), -EAGAIN);
    write_works(pair, HINT(RESTRICTED));
}

static void operations_longer_than_a_command_can_say_are_refused(void **state)
{
    struct pair *pair = *state;
    const struct fabric_batch batch = {.count = 1, .slots = 1};
    size_t length = (size_t)UINT32_MAX + 1;
    struct region huge = {.address = pair->ends[0].region.address, .length = 2 * length};
    struct xfer x = xfer_of(&pair->ends[0], 0, length);
    struct weft_cxi_remote *there = pair->ends[0].remote.own;
    x.local = &huge;
    there->length = huge.length; /* as if the other end had said so */
    assert_int_equal(choice.ops->write(pair->ends[0].handle, &x), -EMSGSIZE);
    assert_int_equal(choice.ops->read(pair->ends[0].handle, &x), -EMSGSIZE);
    assert_int_equal(choice.ops->batch(pair->ends[0].handle, VERB_WRITE, &x, &batch), -EMSGSIZE);
}

static void a_portal_that_the_nic_disables_is_reported(void **state)
{
    struct pair *pair = *state;
    struct completion done;
    struct xfer x = xfer_of(&pair->ends[0], 0, 4096);
    fault("disabled");
    assert_int_equal(choice.ops->write(pair->ends[0].handle, &x), LATER);
    assert_int_equal(next(pair, 1, &done), -EIO);
    assert_contains(fail_reason(), "cxi: the NIC has disabled a portal table entry");
}

static void events_that_were_dropped_are_not_of_the_next_meeting(void **state)
{
    struct pair *pair = *state;
    for (int i = 0; i < 3; i++) {
        struct completion done;
        struct xfer x = xfer_of(&pair->ends[0], 0, 4096);
        fault(i % 2 ? "overflow" : "overflow:0");
        assert_int_equal(choice.ops->write(pair->ends[0].handle, &x), LATER);
        assert_int_equal(next(pair, 0, &done), -EOVERFLOW);
        assert_contains(fail_reason(), "the event queue was full");
        fault(NULL);
        leave(pair);
        meet(pair);
        write_works(pair, 0);
        write_works(pair, HINT(RESTRICTED));
    }
}

/* ---- what a revision of the NIC cannot do ---- */

/* Either end's NIC rules it out, the target's because it would lose them. */
static void a_nic_that_loses_high_rate_atomics_is_sent_none(void **state)
{
    static const struct {
        const char *revisions[2];
        uint16_t none;
    } cases[] = {{{"2", "2"}, 1U << AMO_UINT32},
                 {{"3", "2"}, 1U << AMO_UINT32},
                 {{"1", "3"}, 1U << AMO_UINT32},
                 {{"3", "3"}, 0}};
    struct pair *pair = *state;
    const struct fabric_batch batch = {.count = 4, .slots = 1};
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct completion done = {0};
        uint32_t operand = 1, sum;
        for (int end = 0; end < 2; end++) {
            close_end(&pair->ends[end]);
            setenv("CASSINI_REVISION", cases[i].revisions[end], 1);
            open_end(&pair->ends[end], end ? "cxi1" : "cxi0");
        }
        unsetenv("CASSINI_REVISION");
        meet(pair);
        assert_int_equal(pair->ends[0].facts.amo_no_hrp, cases[i].none);
        assert_int_equal(pair->ends[1].facts.amo_no_hrp, cases[i].none);
        struct xfer x = xfer_of(&pair->ends[0], 0, sizeof operand);
        x.how = HINT(RESTRICTED) | HINT(INLINE) | HINT(HRP);
        x.amo.op = AMO_SUM;
        x.amo.type = AMO_UINT32;
        x.amo.operand = &operand;
        memset(pair->ends[1].region.address, 0, sizeof sum);
        assert_int_equal(choice.ops->batch(pair->ends[0].handle, VERB_ATOMIC, &x, &batch), LATER);
        assert_int_equal(next(pair, 0, &done), 1);
        assert_int_equal(done.status, 0);
        memcpy(&sum, pair->ends[1].region.address, sizeof sum);
        assert_int_equal(sum, 4);
    }
}

#define WITH_PAIR(test) cmocka_unit_test_setup_teardown(test, open_pair, close_pair)

int main(void)
{
    char name[32];
    const struct CMUnitTest tests[] = {
        WITH_PAIR(no_two_portals_have_one_index),
        WITH_PAIR(puts_and_gets_have_indices_in_halves_of_their_own),
        WITH_PAIR(keys_outside_of_their_half_are_refused),
        WITH_PAIR(a_list_that_is_not_done_is_not_of_the_next_meeting),
        WITH_PAIR(a_list_that_failed_is_not_of_the_next_meeting),
        WITH_PAIR(events_that_were_dropped_are_not_of_the_next_meeting),
        WITH_PAIR(a_portal_that_the_nic_disables_is_reported),
        WITH_PAIR(operations_longer_than_a_command_can_say_are_refused),
        WITH_PAIR(a_nic_that_loses_high_rate_atomics_is_sent_none),
    };
    snprintf(name, sizeof name, "unit-%d", (int)getpid());
    setenv("CASSINI_NAME", name, 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
