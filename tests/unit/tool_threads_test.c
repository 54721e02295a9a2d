/* SPDX-License-Identifier: BSD-3-Clause */
/* Whole runs between two threads of one process, which share one mapping: what ThreadSanitizer
 * can see of the run, the peer and the software NIC. */
#include "core/opt.h"
#include "fabric/choose.h"
#include "support/unit.h"
#include "tool/tool.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* What is run. */
struct kind {
    const struct op *op;
    unsigned takes;
    const char *title;
};

static const struct kind writes = {&op_write, CXI_WRITE, "CXI RDMA Write Latency Test"};
static const struct kind reads = {&op_read, CXI_READ, "CXI RDMA Read Latency Test"};
static const struct kind sends = {&op_send, CXI_SEND, "CXI RDMA Send Latency Test"};
static const struct kind atomics = {&op_atomic, CXI_ATOMIC,
                                    "CXI Atomic Memory Operation Latency Test"};

struct half {
    const struct kind *kind;
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
    report_table_open(&table, out, NULL);
    struct bench_request request = {.title = half->kind->title,
                                    .plan = &half->plan,
                                    .set = &half->set,
                                    .op = half->kind->op,
                                    .method = &method_latency,
                                    .fabric = &half->fabric,
                                    .nonce = "00112233445566778899aabbccddeeff",
                                    .peer = half->peer,
                                    .report = &table.report};
    half->status = bench_run(&request);
    snprintf(half->reason, sizeof half->reason, "%s", fail_reason());
    fclose(out);
    peer_close(half->peer);
    return NULL;
}

/* Both halves with the same words; [0] is the client's outcome, [1] the server's. fabric may be
 * NULL: what the words say. */
static void run_both_on(struct half halves[2], const struct kind *kind,
                        const struct fabric_ops *fabric, int argc, char *const *argv,
                        uint64_t timeout_ms, const volatile sig_atomic_t *stop)
{
    struct peer_terms terms = {.timeout_ms = timeout_ms, .stop = stop};
    struct peer *pair[2];
    pthread_t threads[2];
    assert_int_equal(peer_threads(pair, &terms), 0);
    for (int i = 0; i < 2; i++) {
        const char *place;
        int given;
        halves[i] = (struct half){.kind = kind, .peer = pair[i]};
        halves[i].set =
            (struct opt_set){.rows = cxi_rows, .takes = kind->takes, .base = &halves[i].plan};
        opt_defaults(&halves[i].set);
        assert_int_equal(opt_parse(&halves[i].set, argc, argv, &place, 0, &given), 0);
        assert_int_equal(plan_check(&halves[i].plan, &halves[i].set), 0);
        assert_int_equal(fabric_choose(halves[i].plan.device, &halves[i].fabric), 0);
        if (fabric)
            halves[i].fabric.ops = fabric;
    }
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, half_run, &halves[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

static void run_both(struct half halves[2], const struct kind *kind, int argc, char *const *argv,
                     uint64_t timeout_ms, const volatile sig_atomic_t *stop)
{
    run_both_on(halves, kind, NULL, argc, argv, timeout_ms, stop);
}

static void drop(struct half halves[2])
{
    free(halves[0].text);
    free(halves[1].text);
}

#define RUN(halves, kind, ...)                                                                     \
    do {                                                                                           \
        char *words[] = {__VA_ARGS__};                                                             \
        run_both(halves, &(kind), (int)LENGTH(words), words, 20000, NULL);                         \
    } while (0)

static void writes_between_threads_arrive_and_are_verified(void **state)
{
    (void)state;
    struct half halves[2];
    RUN(halves, writes, "-s", "1:65536", "-n", "20", "--latency-gap", "0", "--verify");
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
    RUN(halves, writes, "-s", "1:1024", "-n", "20", "--latency-gap", "0", "--verify", "--no-ll",
        "--no-idc", "--unrestricted");
    assert_int_equal(halves[0].status, 0);
    assert_int_equal(halves[1].status, 0);
    drop(halves);
}

/* Both ends are content, and the client has a row that begins like this. */
static void expect_done(struct half halves[2], const char *row)
{
    for (int i = 0; i < 2; i++)
        if (halves[i].status)
            print_message("# %s: %s\n", i ? "server" : "client", halves[i].reason);
    assert_int_equal(halves[0].status, 0);
    assert_int_equal(halves[1].status, 0);
    assert_non_null(strstr(halves[0].text, row));
    assert_non_null(strstr(halves[1].text, "See client for results."));
    drop(halves);
}

static void reads_between_threads_arrive_and_are_verified(void **state)
{
    (void)state;
    struct half halves[2];
    RUN(halves, reads, "-s", "1:65536", "-n", "20", "--latency-gap", "0", "--verify");
    expect_done(halves, "       65536          20  ");
}

static void queued_ordered_reads_arrive_and_are_verified(void **state)
{
    (void)state;
    struct half halves[2];
    RUN(halves, reads, "-s", "1:1024", "-n", "20", "--latency-gap", "0", "--verify", "--no-ll",
        "--unrestricted");
    expect_done(halves, "        1024          20  ");
}

static void sends_between_threads_arrive_and_are_verified(void **state)
{
    (void)state;
    struct half halves[2];
    RUN(halves, sends, "-s", "1:65536", "-n", "20", "--latency-gap", "0", "--verify");
    expect_done(halves, "     65536          20  ");
}

static void sends_without_immediate_data_arrive_and_are_verified(void **state)
{
    (void)state;
    struct half halves[2];
    RUN(halves, sends, "-s", "1:1024", "-n", "20", "--latency-gap", "0", "--verify", "--no-idc");
    expect_done(halves, "      1024          20  ");
}

static void sends_by_rendezvous_arrive_and_are_verified(void **state)
{
    (void)state;
    struct half halves[2];
    RUN(halves, sends, "-s", "1:65536", "-n", "20", "--latency-gap", "0", "--verify", "-R");
    expect_done(halves, "     65536          20  ");
}

static void queued_sends_arrive_and_are_verified(void **state)
{
    (void)state;
    struct half halves[2];
    RUN(halves, sends, "-s", "1:1024", "-n", "20", "--latency-gap", "0", "--verify", "--no-ll");
    expect_done(halves, "      1024          20  ");
    RUN(halves, sends, "-s", "1:1024", "-n", "20", "--latency-gap", "0", "--verify", "--no-ll",
        "-R");
    expect_done(halves, "      1024          20  ");
}

static void atomics_between_threads_are_applied_and_verified(void **state)
{
    static const struct {
        char *op, *type, *row;
    } cases[] = {{"SUM", "UINT64", "          8         150  "},
                 {"MIN", "INT8", "          1         150  "},
                 {"LAND", "UINT16", "          2         150  "},
                 {"MAX", "FLOAT", "          4         150  "},
                 {"AXOR", "INT32", "          4         150  "},
                 {"SWAP", "FLOAT_COMPLEX", "          8         150  "},
                 {"SUM", "DOUBLE_COMPLEX", "         16         150  "},
                 {"CSWAP", "UINT128", "         16         150  "}};
    (void)state;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct half halves[2];
        RUN(halves, atomics, "-A", cases[i].op, "-T", cases[i].type, "-n", "150", "--latency-gap",
            "0", "--verify", "--fetching");
        expect_done(halves, cases[i].row);
        RUN(halves, atomics, "-A", cases[i].op, "-T", cases[i].type, "-n", "150", "--latency-gap",
            "0", "--verify", "--no-ll", "--matching");
        expect_done(halves, cases[i].row);
    }
}

static void null_runs_reads_sends_and_atomics(void **state)
{
    (void)state;
    struct half halves[2];
    RUN(halves, reads, "-d", "null", "-s", "1:64", "-n", "20", "--latency-gap", "0");
    expect_done(halves, "          64          20  ");
    RUN(halves, sends, "-d", "null:delay=1us", "-s", "1:64", "-n", "20", "--latency-gap", "0");
    expect_done(halves, "        64          20  ");
    RUN(halves, sends, "-d", "null", "-n", "20", "--latency-gap", "0");
    expect_done(halves, "         8          20  ");
    RUN(halves, atomics, "-d", "null:delay=1us", "-n", "20", "--latency-gap", "0", "--fetching");
    expect_done(halves, "          8          20  ");
}

static void a_corrupted_bit_is_caught_and_both_ends_say_so(void **state)
{
    (void)state;
    struct half halves[2];
    RUN(halves, writes, "-d", "corrupts:cxi0", "-s", "8", "-n", "100", "--latency-gap", "0",
        "--verify");
    assert_int_equal(halves[1].status, -EBADMSG);
    assert_int_equal(halves[0].status, -EREMOTEIO);
    for (int i = 0; i < 2; i++) {
        assert_non_null(strstr(halves[i].reason, "--verify: write "));
        assert_non_null(strstr(halves[i].reason, "byte 7 is 0x"));
    }
    drop(halves);
}

static void without_verify_a_corrupted_bit_goes_unnoticed(void **state)
{
    (void)state;
    struct half halves[2];
    RUN(halves, writes, "-d", "corrupts:cxi0", "-n", "100", "--latency-gap", "0");
    assert_int_equal(halves[0].status, 0);
    assert_int_equal(halves[1].status, 0);
    drop(halves);
}

static void null_refuses_verify_at_both_ends(void **state)
{
    (void)state;
    struct half halves[2];
    RUN(halves, writes, "-d", "null", "--verify");
    assert_true(halves[0].status == -EINVAL || halves[0].status == -EREMOTEIO);
    assert_true(halves[1].status == -EINVAL || halves[1].status == -EREMOTEIO);
    drop(halves);
}

static void an_operation_that_never_completes_ends_at_the_timeout(void **state)
{
    (void)state;
    struct half halves[2];
    char *words[] = {"-d", "null:delay=3600s"};
    run_both(halves, &writes, (int)LENGTH(words), words, 500, NULL);
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
    run_both(halves, &writes, (int)LENGTH(words), words, 20000, &stop);
    /* Both see the flag; who is told by the other before he looks is told so. */
    for (int i = 0; i < 2; i++)
        assert_true(halves[i].status == -EINTR || halves[i].status == -ECONNRESET);
    assert_true(halves[0].status == -EINTR || halves[1].status == -EINTR);
    drop(halves);
}

/* soft, but opening it takes the server longer than silence is borne. */
static int slow_open(struct fabric **fabric, const struct fabric_want *want,
                     struct fabric_facts *facts)
{
    struct timespec rest = {.tv_nsec = 900000000};
    while (want->server && nanosleep(&rest, &rest))
        ;
    return fabric_soft.open(fabric, want, facts);
}

static void a_fabric_that_opens_slowly_is_no_death(void **state)
{
    (void)state;
    char *words[] = {"-s", "8", "-n", "20", "--latency-gap", "0"};
    struct fabric_ops slow = fabric_soft;
    struct half halves[2];
    slow.name = "slow";
    slow.open = slow_open;
    run_both_on(halves, &writes, &slow, (int)LENGTH(words), words, 600, NULL);
    expect_done(halves, "           8          20  ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_between_threads_arrive_and_are_verified),
        cmocka_unit_test(queued_ordered_writes_arrive_and_are_verified),
        cmocka_unit_test(reads_between_threads_arrive_and_are_verified),
        cmocka_unit_test(queued_ordered_reads_arrive_and_are_verified),
        cmocka_unit_test(sends_between_threads_arrive_and_are_verified),
        cmocka_unit_test(sends_without_immediate_data_arrive_and_are_verified),
        cmocka_unit_test(sends_by_rendezvous_arrive_and_are_verified),
        cmocka_unit_test(queued_sends_arrive_and_are_verified),
        cmocka_unit_test(atomics_between_threads_are_applied_and_verified),
        cmocka_unit_test(null_runs_reads_sends_and_atomics),
        cmocka_unit_test(a_corrupted_bit_is_caught_and_both_ends_say_so),
        cmocka_unit_test(without_verify_a_corrupted_bit_goes_unnoticed),
        cmocka_unit_test(null_refuses_verify_at_both_ends),
        cmocka_unit_test(an_operation_that_never_completes_ends_at_the_timeout),
        cmocka_unit_test(an_interrupted_run_ends_at_both_ends),
        cmocka_unit_test(a_fabric_that_opens_slowly_is_no_death),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
