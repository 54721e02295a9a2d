/* SPDX-License-Identifier: BSD-3-Clause */
/* What a server grants, and to whom. */
#include "bench/run.h"
#include "support/specs.h"

#include <errno.h>
#include <stdio.h>

static void type_device(const char *device, char *text, size_t room)
{
    snprintf(text, room, "-d %s", device);
}

/* One end that was reached on lo. */
static struct peer end_of(int rank, bool trusted)
{
    return (struct peer){.rank = rank, .trusted = trusted, .here = "127.0.0.1"};
}

static int grants(struct peer peer, bool adopted, bool vouched, const char *device)
{
    struct session session = {.peer = &peer, .adopted = adopted};
    struct offer offer = {.vouched = vouched, .typed = type_device};
    return grant_fabric(&session, &offer, device);
}

enum { ADOPTED = true, OWN = false, VOUCHED = true, NOT = false, TRUSTED = true, STRANGER = false };

static void a_stranger_is_granted_only_what_is_guarded(void **state)
{
    (void)state;
    struct peer peer = end_of(PEER_SERVER, STRANGER);
    assert_int_equal(grants(peer, ADOPTED, NOT, "ofi:tcp"), 0);
    assert_int_equal(grants(peer, ADOPTED, NOT, "soft:cxi1"), 0);
    assert_int_equal(grants(peer, OWN, NOT, "cxi0"), 0);
    assert_int_equal(grants(peer, ADOPTED, NOT, "uct:tcp/lo"), -EACCES);
    assert_string_equal(
        fail_reason(),
        "uct:tcp is not known to protect the server's memory from its clients: start the "
        "server with -d uct:tcp, or with a secret");
    /* The server's own device, on the client's transport. */
    assert_int_equal(grants(peer, OWN, NOT, "uct:tcp/lo"), -EACCES);
    /* Named for another run, adopted for this one. */
    assert_int_equal(grants(peer, ADOPTED, VOUCHED, "uct:tcp/lo"), -EACCES);
}

static void what_the_server_names_or_a_trusted_client_asks_for_is_granted(void **state)
{
    (void)state;
    assert_int_equal(grants(end_of(PEER_SERVER, STRANGER), OWN, VOUCHED, "uct:tcp"), 0);
    assert_int_equal(grants(end_of(PEER_SERVER, TRUSTED), ADOPTED, NOT, "uct:tcp"), 0);
    assert_int_equal(grants(end_of(PEER_CLIENT, STRANGER), ADOPTED, NOT, "uct:tcp"), 0);
}

static void a_foreign_module_is_loaded_for_its_own_user_alone(void **state)
{
    (void)state;
    for (int rank = 0; rank < 2; rank++)
        for (int trusted = 0; trusted < 2; trusted++) {
            assert_int_equal(grants(end_of(rank, trusted), ADOPTED, NOT, "corrupts:cxi0"), -EACCES);
            assert_contains(fail_reason(), "corrupts is no fabric of Weft's own");
            assert_contains(fail_reason(), rank == PEER_SERVER ? "start the server with -d corrupts"
                                                               : "start the client with -d");
            assert_int_equal(grants(end_of(rank, trusted), OWN, VOUCHED, "corrupts:cxi0"), 0);
        }
}

static void another_interface_than_the_one_it_was_reached_on_is_refused(void **state)
{
    (void)state;
    for (int trusted = 0; trusted < 2; trusted++) {
        struct peer peer = end_of(PEER_SERVER, trusted);
        assert_int_equal(grants(peer, ADOPTED, NOT, "ofi:tcp/lo"), 0);
        assert_int_equal(grants(peer, OWN, NOT, "ofi:tcp/lo"), 0);
        snprintf(peer.here, sizeof peer.here, "192.0.2.77");
        assert_int_equal(grants(peer, ADOPTED, NOT, "ofi:tcp/lo"), -EACCES);
        assert_contains(fail_reason(), "start it with -d ofi:tcp/lo");
    }
}

static void without_bounds_everything_is_granted(void **state)
{
    (void)state;
    struct spec spec = spec_of("write", "latency");
    struct bounds none = {0};
    spec.timeout_ms = 86400000;
    spec.size.max = UINT32_MAX;
    assert_int_equal(grant_amounts(&none, &spec, "host"), 0);
}

static void bounds_left_open_are_filled(void **state)
{
    (void)state;
    struct spec spec = spec_of("write", "latency");
    struct bounds open = {0}, given = {.timeout_ms = 1, .memory = 2, .session_ms = 3};
    bounds_fill(&open);
    assert_int_equal(open.timeout_ms, 600000);
    assert_true(open.memory > 0 && open.memory < memory_available());
    assert_int_equal(open.session_ms, 0);
    assert_int_equal(grant_amounts(&open, &spec, "host"), 0);
    bounds_fill(&given);
    assert_int_equal(given.timeout_ms, 1);
    assert_int_equal(given.memory, 2);
}

static void a_longer_timeout_is_refused(void **state)
{
    (void)state;
    struct spec spec = spec_of("write", "latency");
    struct bounds most = {.timeout_ms = 60000};
    spec.timeout_ms = 60000;
    assert_int_equal(grant_amounts(&most, &spec, "host"), 0);
    spec.timeout_ms = 86400000;
    assert_int_equal(grant_amounts(&most, &spec, "host"), -EDQUOT);
    assert_contains(fail_reason(), "86400 s, and the server allows 60 s");
    assert_contains(fail_reason(), "--timeout 86400");
}

static void more_memory_is_refused(void **state)
{
    (void)state;
    struct spec spec = spec_of("send", "latency");
    struct bounds most = {.memory = 1 << 20};
    spec.size.min = spec.size.max = 1 << 18;
    assert_int_equal(grant_amounts(&most, &spec, "host"), 0);
    /* So much for each of several ends. */
    most.ends = 2;
    assert_int_equal(grant_amounts(&most, &spec, "host"), 0);
    most.ends = 3;
    assert_int_equal(grant_amounts(&most, &spec, "host"), -EDQUOT);
    assert_contains(fail_reason(), "takes 1.5 MiB");
    most.ends = 1;
    /* A buffer has two halves. */
    spec.size.min = spec.size.max = 1 << 20;
    assert_int_equal(grant_amounts(&most, &spec, "host"), -EDQUOT);
    assert_contains(fail_reason(), "allows 1.0 MiB: start it with --max-memory ");
    /* One huge page, however little of it is used. */
    spec.size.min = spec.size.max = 8;
    assert_int_equal(grant_amounts(&most, &spec, "host"), 0);
    assert_int_equal(grant_amounts(&most, &spec, "2M"), -EDQUOT);
}

static void threads_are_bounded_and_their_buffers_count_together(void **state)
{
    struct spec spec = spec_of("write", "stream");
    struct bounds most = {.threads = 4}, open = {0};
    (void)state;
    spec.threads = 4;
    assert_int_equal(grant_amounts(&most, &spec, "host"), 0);
    spec.threads = 5;
    assert_int_equal(grant_amounts(&most, &spec, "host"), -EDQUOT);
    assert_contains(fail_reason(),
                    "5 threads, and the server allows 4: start it with --max-threads 5");
    bounds_fill(&open);
    assert_true(open.threads >= 1);
    most = (struct bounds){.memory = 4 * run_buffer_bytes(&spec)};
    assert_int_equal(grant_amounts(&most, &spec, "host"), -EDQUOT);
    spec.threads = 4;
    assert_int_equal(grant_amounts(&most, &spec, "host"), 0);
}

/* From outside: whatever the sender says. */
static void a_number_of_threads_that_cannot_be_is_no_spec(void **state)
{
    static const char *const wrong[] = {"0", "129", "4294967297", "-1", "two", ""};
    struct spec spec = spec_of("write", "stream");
    (void)state;
    for (size_t i = 0; i < LENGTH(wrong); i++) {
        struct msg text;
        assert_int_equal(msg_print(&text, "threads=%s\n", wrong[i]), 0);
        assert_int_not_equal(spec_decode(&spec, &text), 0);
    }
}

static void samples_that_a_server_would_keep_count(void **state)
{
    (void)state;
    struct spec spec = spec_of("write", "stream");
    struct bounds most = {.memory = 1 << 20};
    spec.both_ways = spec.local.keep_samples = true;
    spec.count.iterations = 1000;
    assert_int_equal(grant_amounts(&most, &spec, "host"), 0);
    spec.count.iterations = UINT64_MAX;
    assert_int_equal(grant_amounts(&most, &spec, "host"), -EDQUOT);
    spec.count.iterations = UINT64_MAX / 8 + 1;
    assert_int_equal(grant_amounts(&most, &spec, "host"), -EDQUOT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stranger_is_granted_only_what_is_guarded),
        cmocka_unit_test(what_the_server_names_or_a_trusted_client_asks_for_is_granted),
        cmocka_unit_test(a_foreign_module_is_loaded_for_its_own_user_alone),
        cmocka_unit_test(another_interface_than_the_one_it_was_reached_on_is_refused),
        cmocka_unit_test(without_bounds_everything_is_granted),
        cmocka_unit_test(bounds_left_open_are_filled),
        cmocka_unit_test(threads_are_bounded_and_their_buffers_count_together),
        cmocka_unit_test(a_number_of_threads_that_cannot_be_is_no_spec),
        cmocka_unit_test(a_longer_timeout_is_refused),
        cmocka_unit_test(more_memory_is_refused),
        cmocka_unit_test(samples_that_a_server_would_keep_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
