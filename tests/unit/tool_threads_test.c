/* SPDX-License-Identifier: BSD-3-Clause */
/* Whole runs between two threads of one process, which share one mapping: what ThreadSanitizer
 * can see of the run, the peer and the software NIC. */
#include "support/unit.h"
#include "tool/cxi.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is run: an operation by its name. */
static const char writes[] = "write", reads[] = "read", sends[] = "send", atomics[] = "atomic";

struct half {
    struct cxi_options options;
    struct opt_set set;
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
    struct session session;
    bool given = opt_origin(&half->set, opt_find(&half->set, "device")) == OPT_BY_USER;
    struct offer offer = {.device = half->options.devices,
                          .given = given,
                          .vouched = given,
                          .service = half->options.service};
    FILE *out = open_memstream(&half->text, &half->length);
    if (!out)
        return NULL;
    report_table_open(&table, out, "A Latency Test", &half->set, NULL);
    session_init(&session);
    session.peer = half->peer;
    half->status = session_run(&session, &offer, &half->options.spec, 0, &table.report);
    half->status = session_close(&session, half->status);
    snprintf(half->reason, sizeof half->reason, "%s", fail_reason());
    fclose(out);
    peer_close(half->peer);
    return NULL;
}

static int choice_of(const char *name)
{
    int i = 0;
    while (strcmp(op_names[i], name) != 0)
        i++;
    return i + 1;
}

static void parse(struct half *half, const char *op, int argc, char *const *argv)
{
    struct spec *spec = &half->options.spec;
    const char *place;
    int given;
    spec_defaults(spec);
    spec->op = choice_of(op);
    spec->method = 1;
    assert_string_equal(method_of(spec)->name, "latency");
    half->set = (struct opt_set){
        .rows = cxi_rows, .takes = cxi_takes(op_of(spec), method_of(spec)), .base = &half->options};
    opt_defaults(&half->set);
    assert_int_equal(opt_parse(&half->set, argc, argv, &place, 0, &given), 0);
    spec_settle(spec);
    assert_int_equal(spec_check(spec), 0);
}

/* Both halves with the same words; [0] is the client's end, [1] the server's. */
static void run_both(struct half halves[2], const char *op, int argc, char *const *argv,
                     uint64_t timeout_ms, const volatile sig_atomic_t *stop)
{
    struct peer_terms terms = {.timeout_ms = timeout_ms, .stop = stop};
    struct peer *pair[2];
    pthread_t threads[2];
    assert_int_equal(peer_threads(pair, &terms), 0);
    for (int i = 0; i < 2; i++) {
        halves[i] = (struct half){.peer = pair[i]};
        parse(&halves[i], op, argc, argv);
        halves[i].options.spec.timeout_ms = timeout_ms;
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

#define RUN(halves, op, ...)                                                                       \
    do {                                                                                           \
        char *words[] = {__VA_ARGS__};                                                             \
        run_both(halves, op, (int)LENGTH(words), words, 20000, NULL);                              \
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
        assert_non_null(strstr(halves[i].reason, "verify: write "));
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
    for (int i = 0; i < 2; i++) {
        assert_int_equal(halves[i].status, -EINVAL);
        assert_string_equal(halves[i].reason,
                            "fabric null moves nothing: there is nothing to verify");
    }
    drop(halves);
}

static void an_operation_that_never_completes_ends_at_the_timeout(void **state)
{
    (void)state;
    struct half halves[2];
    char *words[] = {"-d", "null:delay=3600s"};
    run_both(halves, writes, (int)LENGTH(words), words, 500, NULL);
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
    run_both(halves, writes, (int)LENGTH(words), words, 20000, &stop);
    /* Both see the flag, unless the other end says so first. */
    for (int i = 0; i < 2; i++)
        assert_true(halves[i].status == -EINTR || halves[i].status == -ECONNRESET);
    assert_true(halves[0].status == -EINTR || halves[1].status == -EINTR);
    drop(halves);
}

/* Opening tests/doubles/fabric_slow.c takes the server longer than silence is borne. */
static void a_fabric_that_opens_slowly_is_no_death(void **state)
{
    (void)state;
    char *words[] = {"-d", "slow:cxi0", "-s", "8", "-n", "20", "--latency-gap", "0"};
    struct half halves[2];
    run_both(halves, writes, (int)LENGTH(words), words, 600, NULL);
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
