/* SPDX-License-Identifier: BSD-3-Clause */
/* Whole runs between two threads of one process, which share one mapping: what ThreadSanitizer
 * can see of the run, the peer and the software NIC. */
#include "tool/tool.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#undef fail /* ours, not cmocka's */

struct half {
    struct plan plan;
    struct opt_set set;
    struct fabric_choice fabric;
    struct peer *peer;
    char *text;
    size_t length;
    int status;
    char reason[512];
};

static void *half_run(void *arg)
{
    struct half *half = arg;
    struct report_table table;
    FILE *out = open_memstream(&half->text, &half->length);
    if (!out)
        return NULL;
    report_table_open(&table, out);
    struct bench_wish wish = {.title = "CXI RDMA Write Latency Test",
                              .plan = &half->plan,
                              .set = &half->set,
                              .op = &op_write,
                              .method = &method_latency,
                              .fabric = &half->fabric,
                              .nonce = "00112233445566778899aabbccddeeff",
                              .peer = half->peer,
                              .report = &table.report};
    half->status = bench_run(&wish);
    snprintf(half->reason, sizeof half->reason, "%s", fail_reason());
    fclose(out);
    peer_close(half->peer);
    return NULL;
}

/* Both halves with the same words; [0] is the client's outcome, [1] the server's. */
static void run_both(struct half halves[2], int argc, char *const *argv, uint64_t timeout_ms,
                     const volatile sig_atomic_t *stop)
{
    struct peer_terms terms = {.timeout_ms = timeout_ms, .stop = stop};
    struct peer *pair[2];
    pthread_t threads[2];
    assert_int_equal(peer_threads(pair, &terms), 0);
    for (int i = 0; i < 2; i++) {
        const char *place;
        int given;
        halves[i] = (struct half){.peer = pair[i]};
        halves[i].set =
            (struct opt_set){.rows = cxi_rows, .takes = CXI_WRITE, .base = &halves[i].plan};
        opt_defaults(&halves[i].set);
        assert_int_equal(opt_parse(&halves[i].set, argc, argv, &place, 0, &given), 0);
        assert_int_equal(plan_check(&halves[i].plan, &halves[i].set), 0);
        assert_int_equal(fabric_choose(halves[i].plan.device, &halves[i].fabric), 0);
    }
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, half_run, &halves[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

static void drop(struct half halves[2])
{
    free(halves[0].text);
    free(halves[1].text);
}

#define RUN(halves, ...)                                                                           \
    do {                                                                                           \
        char *words[] = {__VA_ARGS__};                                                             \
        run_both(halves, (int)LENGTH(words), words, 20000, NULL);                                  \
    } while (0)

static void writes_between_threads_arrive_and_are_verified(void **state)
{
    (void)state;
    struct half halves[2];
    RUN(halves, "-s", "1:65536", "-n", "20", "--latency-gap", "0", "--verify");
    assert_int_equal(halves[0].status, 0);
    assert_int_equal(halves[1].status, 0);
    assert_non_null(strstr(halves[0].text, "       65536          20  "));
    assert_non_null(strstr(halves[1].text, "See client for results."));
    drop(halves);
}

static void queued_ordered_writes_arrive_and_are_verified(void **state)
{
    (void)state;
    struct half halves[2];
    RUN(halves, "-s", "1:1024", "-n", "20", "--latency-gap", "0", "--verify", "--no-ll", "--no-idc",
        "--unrestricted");
    assert_int_equal(halves[0].status, 0);
    assert_int_equal(halves[1].status, 0);
    drop(halves);
}

static void a_flipped_bit_is_caught_and_both_ends_say_so(void **state)
{
    (void)state;
    struct half halves[2];
    RUN(halves, "-d", "flip:cxi0", "-s", "8", "-n", "100", "--latency-gap", "0", "--verify");
    assert_int_equal(halves[1].status, -EBADMSG);
    assert_int_equal(halves[0].status, -EREMOTEIO);
    for (int i = 0; i < 2; i++) {
        assert_non_null(strstr(halves[i].reason, "--verify: write "));
        assert_non_null(strstr(halves[i].reason, "byte 7 is 0x"));
    }
    drop(halves);
}

static void without_verify_a_flipped_bit_goes_unnoticed(void **state)
{
    (void)state;
    struct half halves[2];
    RUN(halves, "-d", "flip:cxi0", "-n", "100", "--latency-gap", "0");
    assert_int_equal(halves[0].status, 0);
    assert_int_equal(halves[1].status, 0);
    drop(halves);
}

static void null_refuses_verify_at_both_ends(void **state)
{
    (void)state;
    struct half halves[2];
    RUN(halves, "-d", "null", "--verify");
    assert_true(halves[0].status == -EINVAL || halves[0].status == -EREMOTEIO);
    assert_true(halves[1].status == -EINVAL || halves[1].status == -EREMOTEIO);
    drop(halves);
}

static void an_operation_that_never_completes_ends_at_the_timeout(void **state)
{
    (void)state;
    struct half halves[2];
    char *words[] = {"-d", "null:delay=3600s"};
    run_both(halves, (int)LENGTH(words), words, 500, NULL);
    assert_int_equal(halves[0].status, -ETIMEDOUT);
    assert_int_equal(halves[1].status, -ECONNRESET);
    drop(halves);
}

static void an_interrupted_run_ends_at_both_ends(void **state)
{
    (void)state;
    struct half halves[2];
    volatile sig_atomic_t stop = SIGINT;
    char *words[] = {"-n", "1000000"};
    run_both(halves, (int)LENGTH(words), words, 20000, &stop);
    /* Both see the flag; who is told by the other before he looks is told so. */
    for (int i = 0; i < 2; i++)
        assert_true(halves[i].status == -EINTR || halves[i].status == -ECONNRESET);
    assert_true(halves[0].status == -EINTR || halves[1].status == -EINTR);
    drop(halves);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_between_threads_arrive_and_are_verified),
        cmocka_unit_test(queued_ordered_writes_arrive_and_are_verified),
        cmocka_unit_test(a_flipped_bit_is_caught_and_both_ends_say_so),
        cmocka_unit_test(without_verify_a_flipped_bit_goes_unnoticed),
        cmocka_unit_test(null_refuses_verify_at_both_ends),
        cmocka_unit_test(an_operation_that_never_completes_ends_at_the_timeout),
        cmocka_unit_test(an_interrupted_run_ends_at_both_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
