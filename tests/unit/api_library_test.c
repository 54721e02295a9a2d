/* SPDX-License-Identifier: BSD-3-Clause */
/* The public library between two threads: every test that the software NIC has, figures that agree
 * with each other and with programmed delays, refusals that both ends word alike, and ends that do
 * not come. */
#include <weft.h>

#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define LENGTH(list) (sizeof(list) / sizeof *(list))

/* A put is noticed by looking at memory while it is written, which is what is tested; and a stop is
 * set by signal handlers, whatever thread looks at it. */
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
    return "race:put_arrived\nrace:put_fire\nrace:life_interrupted\nrace:tally_turn\n";
}

static bool sanitized(void)
{
    const char *word = getenv("WEFT_SANITIZED");
    return word && *word && strcmp(word, "0") != 0;
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* ---- both ends ---- */

/* What is still true of the reports that came. */
struct reports {
    unsigned count, finals, after_final;
    uint64_t iterations;
    double elapsed_s;
    bool grows;                     /* each has as much as the one before it, or more */
    volatile sig_atomic_t *stop_at; /* set by the second report */
    cpu_set_t cpus;                 /* where the last was made */
};

struct end {
    struct weft_params params;
    const struct weft_bootstrap *bootstrap;
    struct reports reports;
    struct weft_result result;
    int status;
    char reason[1024];
};

static void on_report(void *arg, const struct weft_result *result)
{
    struct reports *r = arg;
    if (!r->count)
        r->grows = true;
    r->after_final += r->finals > 0;
    r->finals += result->final != 0;
    r->grows = r->grows && result->iterations >= r->iterations && result->elapsed_s >= r->elapsed_s;
    r->iterations = result->iterations;
    r->elapsed_s = result->elapsed_s;
    sched_getaffinity(0, sizeof r->cpus, &r->cpus);
    if (++r->count == 2 && r->stop_at)
        *r->stop_at = 1;
}

static void *run_end(void *arg)
{
    struct end *end = arg;
    end->status = weft_run(&end->params, end->bootstrap, on_report, &end->reports, &end->result);
    snprintf(end->reason, sizeof end->reason, "%s", weft_reason());
    return NULL;
}

static void run_ends(struct end ends[2])
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_end, &ends[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

/* Two threads that wait for each other by turns are slow on one CPU: a CPU each, if there are two,
 * counted from the last. */
static int cpu_of(int index)
{
    cpu_set_t allowed;
    int cpu = CPU_SETSIZE;
    if (sched_getaffinity(0, sizeof allowed, &allowed) || CPU_COUNT(&allowed) < 2)
        return -1;
    while (--cpu >= 0 && (!CPU_ISSET((size_t)cpu, &allowed) || index--))
        ;
    return cpu;
}

/* Both ends with the same parameters, each over its half of the pair. */
static void prepare(struct end ends[2], const struct weft_params *params,
                    const struct weft_bootstrap pair[2])
{
    for (int i = 0; i < 2; i++) {
        ends[i] = (struct end){.params = *params, .bootstrap = &pair[i]};
        ends[i].params.cpu = cpu_of(i);
    }
}

static void release(struct end ends[2])
{
    weft_result_free(&ends[0].result);
    weft_result_free(&ends[1].result);
}

static struct weft_params small(enum weft_op op, enum weft_mode mode, enum weft_layout layout)
{
    struct weft_params params;
    weft_params_init(&params);
    params.op = op;
    params.mode = mode;
    params.layout = layout;
    params.iterations = 200;
    params.warmup = 10;
    params.interval_ms = 0;
    params.timeout_ms = 20000;
    params.device = "soft";
    return params;
}

static void expect_done(const struct end ends[2])
{
    for (int i = 0; i < 2; i++)
        if (ends[i].status)
            fail_msg("end %d: %s", i, ends[i].reason);
}

/* ---- figures ---- */

static void close_to(double got, double wanted)
{
    if (!(fabs(got - wanted) <= 1e-9 * fabs(wanted)))
        fail_msg("%.12g, and %.12g is wanted", got, wanted);
}

/* Its counts add up, its buckets are in order, and the median lies where half of them are. */
static void expect_histogram(const struct weft_result *r)
{
    double low, high, before = 0, middle_low = 0, middle_high = 0;
    uint64_t count, sum = 0;
    size_t at = 0;
    while (weft_histogram_next(r->histogram, &at, &low, &high, &count)) {
        assert_true(count > 0);
        assert_true(low >= before && high >= low);
        before = low;
        if (sum < (r->iterations + 1) / 2 && sum + count >= (r->iterations + 1) / 2) {
            middle_low = low;
            middle_high = high;
        }
        sum += count;
    }
    assert_int_equal(sum, r->iterations);
    assert_true(r->latency_us.typical >= middle_low * (1 - 1e-9));
    assert_true(r->latency_us.typical <= middle_high * (1 + 1e-9));
}

static void expect_percentiles(const struct weft_params *p, const struct weft_result *r)
{
    double before = 0;
    size_t count = 0;
    while (count < WEFT_PERCENTILES && p->percentiles[count] > 0)
        count++;
    assert_int_equal(r->percentile_count, count);
    for (size_t i = 0; i < count; i++) {
        const struct weft_percentile *q = &r->percentiles[i];
        double beyond =
            (double)r->iterations - ceil((double)r->iterations * q->percent / 100 * (1 - 1e-12));
        close_to(q->percent, p->percentiles[i]);
        if (beyond < 10) {
            assert_true(isnan(q->us) && isnan(q->low_us) && isnan(q->high_us));
            continue;
        }
        assert_false(isnan(q->us));
        assert_true(q->low_us <= q->us && q->us <= q->high_us);
        if (!i || p->percentiles[i - 1] < q->percent)
            assert_true(q->us >= before);
        before = q->us;
    }
}

static void expect_figures(const struct end *end)
{
    const struct weft_params *p = &end->params;
    const struct weft_result *r = &end->result;
    double n = (double)r->iterations, legs = p->mode == WEFT_PING_PONG ? 2 : 1;
    assert_true(r->final);
    assert_non_null(r->fabric);
    assert_int_equal(r->bytes, r->iterations * p->size);
    assert_true(r->elapsed_s > 0);
    close_to(r->latency_us.overall, r->elapsed_s * 1e6 / n / legs);
    close_to(r->rate.overall, n / r->elapsed_s);
    close_to(r->bandwidth.overall, n / r->elapsed_s * (double)p->size);
    close_to(r->bandwidth.recent, r->rate.recent * (double)p->size);
    close_to(r->rate.recent * r->latency_us.recent * legs, 1e6);
    assert_true(r->latency_us.typical >= 0);
    assert_true(r->min_us <= r->latency_us.typical && r->latency_us.typical <= r->max_us);
    assert_true(r->deviation_us >= 0 && r->deviation_us <= r->max_us - r->min_us);
    expect_histogram(r);
    expect_percentiles(p, r);
}

/* Reports went to end 0 alone: one a test where there are no intervals, and the last one last. */
static void expect_reports(const struct end ends[2])
{
    assert_int_equal(ends[1].reports.count, 0);
    assert_int_equal(ends[0].reports.finals, 1);
    assert_int_equal(ends[0].reports.after_final, 0);
    assert_true(ends[0].reports.grows);
    assert_int_equal(ends[0].reports.iterations, ends[0].result.iterations);
    if (!ends[0].params.interval_ms)
        assert_int_equal(ends[0].reports.count, 1);
}

static void expect_good(const struct weft_params *params, const struct weft_bootstrap pair[2])
{
    struct end ends[2];
    prepare(ends, params, pair);
    run_ends(ends);
    expect_done(ends);
    assert_int_equal(ends[0].result.iterations, params->iterations);
    expect_figures(&ends[0]);
    expect_reports(ends);
    if (params->mode == WEFT_STREAM_BOTH) {
        assert_int_equal(ends[0].result.reverse_iterations, params->iterations);
        assert_true(ends[0].result.reverse_elapsed_s > 0);
    }
    release(ends);
}

/* Both ends return the same status and the same sentence, with these words in it, and can go on. */
static void expect_refused(struct end ends[2], int status, const char *words)
{
    const struct weft_params good = small(WEFT_AM, WEFT_PING_PONG, WEFT_SHORT);
    run_ends(ends);
    for (int i = 0; i < 2; i++) {
        if (ends[i].status != status || !strstr(ends[i].reason, words))
            fail_msg("end %d: %d (%d is wanted), %s", i, ends[i].status, status, ends[i].reason);
        assert_int_equal(ends[i].reports.count, 0);
        assert_null(ends[i].result.histogram);
    }
    assert_string_equal(ends[0].reason, ends[1].reason);
    expect_good(&good, (struct weft_bootstrap[2]){*ends[0].bootstrap, *ends[1].bootstrap});
}

/* ---- every test of the software NIC ---- */

static const struct {
    enum weft_op op;
    bool ping_pong, atomic, asks;
    bool layouts[WEFT_ZCOPY + 1];
} ops[] = {
    {WEFT_AM, true, false, false, {[WEFT_SHORT] = true, [WEFT_BCOPY] = true, [WEFT_ZCOPY] = true}},
    {WEFT_PUT, true, false, true, {[WEFT_SHORT] = true, [WEFT_BCOPY] = true, [WEFT_ZCOPY] = true}},
    {WEFT_GET, false, false, false, {[WEFT_BCOPY] = true, [WEFT_ZCOPY] = true}},
    {WEFT_ADD, true, true, true, {[WEFT_SHORT] = true}},
    {WEFT_FADD, false, true, true, {[WEFT_SHORT] = true}},
    {WEFT_SWAP, false, true, true, {[WEFT_SHORT] = true}},
    {WEFT_CSWAP, false, true, true, {[WEFT_SHORT] = true}}};

static void every_test_in_mode(enum weft_mode mode, bool verify)
{
    static const uint64_t sizes[] = {8, 4, 1, 64, 4096};
    struct weft_bootstrap pair[2];
    unsigned ran = 0;
    assert_int_equal(weft_threads(pair), 0);
    for (size_t i = 0; i < LENGTH(ops); i++)
        for (enum weft_layout layout = WEFT_SHORT; layout <= WEFT_ZCOPY; layout++)
            for (size_t k = 0; k < LENGTH(sizes); k++) {
                struct weft_params params = small(ops[i].op, mode, layout);
                params.size = sizes[k];
                params.verify = verify;
                params.outstanding = k % 2 ? 8 : 1;
                params.window = k % 2 ? 5 : 128;
                if (params.op == WEFT_AM && params.layout == WEFT_ZCOPY && params.size < 8)
                    params.am_header = 0;
                if ((mode == WEFT_PING_PONG && !ops[i].ping_pong) || !ops[i].layouts[layout] ||
                    (ops[i].atomic && params.size != 4 && params.size != 8) ||
                    (mode == WEFT_STREAM_BOTH && verify && ops[i].asks) ||
                    (layout == WEFT_SHORT && params.size > 64) ||
                    (ops[i].op == WEFT_AM && layout == WEFT_SHORT && params.size < 8))
                    continue;
                expect_good(&params, pair);
                ran++;
            }
    assert_true(ran >= 10);
    weft_close(&pair[0]);
    weft_close(&pair[1]);
}

static void every_ping_pong_runs_and_its_figures_agree(void **state)
{
    (void)state;
    every_test_in_mode(WEFT_PING_PONG, false);
}

static void every_ping_pong_runs_verified(void **state)
{
    (void)state;
    every_test_in_mode(WEFT_PING_PONG, true);
}

static void every_stream_runs_and_its_figures_agree(void **state)
{
    (void)state;
    every_test_in_mode(WEFT_STREAM, false);
}

static void every_stream_runs_verified(void **state)
{
    (void)state;
    every_test_in_mode(WEFT_STREAM, true);
}

static void every_stream_both_ways_runs_and_its_figures_agree(void **state)
{
    (void)state;
    every_test_in_mode(WEFT_STREAM_BOTH, false);
}

static void every_stream_both_ways_that_can_be_verified_is(void **state)
{
    (void)state;
    every_test_in_mode(WEFT_STREAM_BOTH, true);
}

/* The fabric of tests/doubles/fabric_corrupts_all.c spoils one of twenty. */
static void faults_are_caught_where_data_is_verified_and_only_there(void **state)
{
    static const struct {
        enum weft_op op;
        enum weft_mode mode;
        enum weft_layout layout;
        uint64_t size;
    } tests[] = {
        {WEFT_AM, WEFT_PING_PONG, WEFT_BCOPY, 64},   {WEFT_AM, WEFT_STREAM, WEFT_SHORT, 64},
        {WEFT_AM, WEFT_STREAM_BOTH, WEFT_BCOPY, 64}, {WEFT_PUT, WEFT_PING_PONG, WEFT_SHORT, 64},
        {WEFT_PUT, WEFT_STREAM, WEFT_BCOPY, 8},      {WEFT_GET, WEFT_STREAM, WEFT_BCOPY, 64},
        {WEFT_ADD, WEFT_STREAM, WEFT_SHORT, 8},      {WEFT_FADD, WEFT_STREAM, WEFT_SHORT, 4},
        {WEFT_SWAP, WEFT_STREAM, WEFT_SHORT, 8},     {WEFT_CSWAP, WEFT_STREAM, WEFT_SHORT, 8}};
    (void)state;
    for (size_t i = 0; i < 2 * LENGTH(tests); i++) {
        struct weft_params params = small(tests[i / 2].op, tests[i / 2].mode, tests[i / 2].layout);
        struct weft_bootstrap pair[2];
        struct end ends[2];
        params.size = tests[i / 2].size;
        params.device = "corrupts_all:cxi0";
        params.verify = i % 2 == 1;
        assert_int_equal(weft_threads(pair), 0);
        prepare(ends, &params, pair);
        run_ends(ends);
        bool caught = ends[0].status == -EBADMSG || ends[1].status == -EBADMSG;
        if (caught != params.verify || !ends[0].status != !ends[1].status)
            fail_msg("test %zu%s: %d %s, %d %s", i / 2, params.verify ? " verified" : "",
                     ends[0].status, ends[0].reason, ends[1].status, ends[1].reason);
        for (int k = 0; k < 2 && params.verify; k++)
            assert_non_null(strstr(ends[k].reason, "--verify: "));
        release(ends);
        weft_close(&pair[0]);
        weft_close(&pair[1]);
    }
}

/* A test that the two threads begin and end with. */
static void with_threads(void (*what)(const struct weft_bootstrap pair[2]))
{
    struct weft_bootstrap pair[2];
    assert_int_equal(weft_threads(pair), 0);
    assert_int_equal(pair[0].size, 2);
    assert_int_equal(pair[0].index, 0);
    assert_int_equal(pair[1].index, 1);
    what(pair);
    weft_close(&pair[0]);
    weft_close(&pair[1]);
}

static void at_the_edges(const struct weft_bootstrap pair[2])
{
    for (uint64_t n = 1; n <= 40; n += n < 12 ? 1 : 7) {
        struct weft_params params = small(WEFT_AM, WEFT_PING_PONG, WEFT_SHORT);
        params.iterations = n;
        params.warmup = n % 2;
        expect_good(&params, pair);
        params = small(WEFT_GET, WEFT_STREAM, WEFT_BCOPY);
        params.iterations = n;
        params.warmup = n % 2;
        params.outstanding = 4;
        expect_good(&params, pair);
        params = small(WEFT_AM, WEFT_STREAM, WEFT_SHORT);
        params.iterations = n;
        params.warmup = n % 2;
        params.window = 3;
        expect_good(&params, pair);
    }
}

static void few_iterations_are_counted_and_have_percentiles_only_where_ten_lie_beyond(void **state)
{
    (void)state;
    with_threads(at_the_edges);
}

static void own_percentiles(const struct weft_bootstrap pair[2])
{
    struct weft_params params = small(WEFT_PUT, WEFT_PING_PONG, WEFT_SHORT);
    params.iterations = 2000;
    for (int i = 0; i < WEFT_PERCENTILES; i++)
        params.percentiles[i] = 99.9 - i * 6.5;
    expect_good(&params, pair);
    memset(params.percentiles, 0, sizeof params.percentiles);
    expect_good(&params, pair);
}

static void as_many_percentiles_as_there_is_room_for_or_none(void **state)
{
    (void)state;
    with_threads(own_percentiles);
}

/* A result or a report may be left out. */
static void *run_quietly(void *arg)
{
    struct end *end = arg;
    end->status = weft_run(&end->params, end->bootstrap, NULL, NULL, NULL);
    return NULL;
}

static void unheard(const struct weft_bootstrap pair[2])
{
    const struct weft_params params = small(WEFT_AM, WEFT_STREAM, WEFT_SHORT);
    pthread_t threads[2];
    struct end ends[2];
    prepare(ends, &params, pair);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_quietly, &ends[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(ends[0].status, 0);
    assert_int_equal(ends[1].status, 0);
}

static void report_and_result_may_be_left_out(void **state)
{
    (void)state;
    with_threads(unheard);
}

/* ---- limits of time ---- */

static void for_a_while(const struct weft_bootstrap pair[2])
{
    static const enum weft_mode modes[] = {WEFT_PING_PONG, WEFT_STREAM, WEFT_STREAM_BOTH};
    for (size_t i = 0; i < LENGTH(modes); i++) {
        struct weft_params params = small(WEFT_AM, modes[i], WEFT_SHORT);
        struct end ends[2];
        params.iterations = 0;
        params.duration_ms = 200;
        params.interval_ms = 50;
        prepare(ends, &params, pair);
        run_ends(ends);
        expect_done(ends);
        expect_figures(&ends[0]);
        expect_reports(ends);
        assert_true(ends[0].result.iterations > 0);
        assert_true(ends[0].result.elapsed_s >= 0.199);
        assert_true(ends[0].result.elapsed_s < 5);
        assert_in_range(ends[0].reports.count, 2, 5);
        release(ends);
    }
}

static void a_duration_ends_a_test_and_intervals_are_reported(void **state)
{
    (void)state;
    with_threads(for_a_while);
}

/* Every operation takes longer than an interval, also the last. */
static void slower_than_intervals(const struct weft_bootstrap pair[2])
{
    static const struct {
        enum weft_op op;
        enum weft_mode mode;
        enum weft_layout layout;
    } tests[] = {{WEFT_AM, WEFT_PING_PONG, WEFT_SHORT}, {WEFT_GET, WEFT_STREAM, WEFT_BCOPY}};
    for (size_t i = 0; i < LENGTH(tests); i++) {
        struct weft_params params = small(tests[i].op, tests[i].mode, tests[i].layout);
        params.device = "null:delay=3ms";
        params.iterations = 4;
        params.warmup = 0;
        params.interval_ms = 1;
        struct end ends[2];
        prepare(ends, &params, pair);
        run_ends(ends);
        expect_done(ends);
        expect_figures(&ends[0]);
        expect_reports(ends);
        assert_true(ends[0].result.latency_us.recent >= 3000 * 0.98);
        assert_int_equal(ends[0].reports.count, 4);
        release(ends);
    }
}

static void an_interval_that_ends_with_the_last_operation_has_no_report_of_its_own(void **state)
{
    (void)state;
    with_threads(slower_than_intervals);
}

static void iterations_first(const struct weft_bootstrap pair[2])
{
    struct weft_params params = small(WEFT_PUT, WEFT_STREAM, WEFT_SHORT);
    params.duration_ms = 3600000;
    expect_good(&params, pair);
}

static void of_two_limits_the_first_one_counts(void **state)
{
    (void)state;
    with_threads(iterations_first);
}

static void until_stopped(const struct weft_bootstrap pair[2], enum weft_op op, enum weft_mode mode)
{
    struct weft_params params = small(op, mode, op == WEFT_GET ? WEFT_BCOPY : WEFT_SHORT);
    volatile sig_atomic_t stop = 0;
    struct end ends[2];
    params.iterations = 0;
    params.interval_ms = 30;
    prepare(ends, &params, pair);
    ends[0].params.stop = &stop;
    ends[0].reports.stop_at = &stop;
    run_ends(ends);
    assert_int_equal(ends[0].status, -EINTR);
    assert_true(ends[1].status < 0 && ends[1].status != -ETIMEDOUT);
    assert_non_null(strstr(ends[1].reason, "interrupted"));
    assert_true(ends[0].result.final);
    assert_true(ends[0].result.iterations > 0);
    assert_int_equal(ends[0].result.bytes, ends[0].result.iterations * 8);
    assert_true(ends[0].result.elapsed_s >= 0.059 && ends[0].result.elapsed_s < 5);
    expect_reports(ends);
    assert_true(ends[0].reports.count >= 3);
    release(ends);
}

static void stopped_streams(const struct weft_bootstrap pair[2])
{
    until_stopped(pair, WEFT_GET, WEFT_STREAM);
}

static void stopped_messages(const struct weft_bootstrap pair[2])
{
    until_stopped(pair, WEFT_AM, WEFT_STREAM);
}

static void stopped_ping_pong(const struct weft_bootstrap pair[2])
{
    until_stopped(pair, WEFT_PUT, WEFT_PING_PONG);
}

static void a_test_without_limits_goes_on_until_it_is_stopped(void **state)
{
    (void)state;
    with_threads(stopped_streams);
    with_threads(stopped_messages);
    with_threads(stopped_ping_pong);
}

/* ---- ends that differ ---- */

static void differing(const struct weft_bootstrap pair[2])
{
    static const struct {
        const char *name;
        size_t at;
    } fields[] = {{"size", offsetof(struct weft_params, size)},
                  {"am_header", offsetof(struct weft_params, am_header)},
                  {"window", offsetof(struct weft_params, window)},
                  {"outstanding", offsetof(struct weft_params, outstanding)},
                  {"warmup", offsetof(struct weft_params, warmup)},
                  {"iterations", offsetof(struct weft_params, iterations)},
                  {"duration_ms", offsetof(struct weft_params, duration_ms)}};
    const struct weft_params params = small(WEFT_PUT, WEFT_PING_PONG, WEFT_BCOPY);
    for (size_t i = 0; i < LENGTH(fields); i++)
        for (int which = 0; which < 2; which++) {
            struct end ends[2];
            prepare(ends, &params, pair);
            *(uint64_t *)((char *)&ends[which].params + fields[i].at) += 8;
            expect_refused(ends, -EINVAL, fields[i].name);
        }
    for (int what = 0; what < 4; what++) {
        static const char *const names[] = {"op is 1", "mode is 2", "layout is 1", "verify is 1"};
        struct end ends[2];
        prepare(ends, &params, pair);
        struct weft_params *p = &ends[0].params;
        p->op = what == 0 ? WEFT_AM : p->op;
        p->mode = what == 1 ? WEFT_STREAM : p->mode;
        p->layout = what == 2 ? WEFT_SHORT : p->layout;
        p->verify = what == 3;
        expect_refused(ends, -EINVAL, names[what]);
    }
}

static void ends_that_were_asked_for_different_tests_say_so_alike_and_can_go_on(void **state)
{
    (void)state;
    with_threads(differing);
}

static void other_fabrics(const struct weft_bootstrap pair[2])
{
    const struct weft_params params = small(WEFT_GET, WEFT_STREAM, WEFT_BCOPY);
    struct end ends[2];
    prepare(ends, &params, pair);
    ends[1].params.device = "null";
    expect_refused(ends, -ENODEV, "the client's fabric is soft, the server's is null");
    for (int which = 0; which < 2; which++) {
        prepare(ends, &params, pair);
        ends[which].params.device = "soft:cxi99";
        expect_refused(ends, -ENODEV, "cxi99");
        prepare(ends, &params, pair);
        ends[which].params.memory = "nosuch";
        expect_refused(ends, -EINVAL, "nosuch");
        prepare(ends, &params, pair);
        ends[which].params.cpu = 65535;
        expect_refused(ends, -ENODEV, "65535");
    }
}

static void what_one_end_lacks_is_said_by_both(void **state)
{
    (void)state;
    with_threads(other_fabrics);
}

static void one_device_named(const struct weft_bootstrap pair[2])
{
    const struct weft_params params = small(WEFT_AM, WEFT_PING_PONG, WEFT_SHORT);
    for (int named = 0; named < 3; named++) {
        struct end ends[2];
        prepare(ends, &params, pair);
        for (int i = 0; i < 2; i++)
            ends[i].params.device = i == named ? "soft:cxi1" : NULL;
        run_ends(ends);
        expect_done(ends);
        assert_int_equal(strncmp(ends[0].result.fabric, "soft", 4), 0);
        release(ends);
    }
}

static void a_device_may_be_named_at_one_end_or_at_none(void **state)
{
    (void)state;
    with_threads(one_device_named);
}

/* ---- what cannot be had ---- */

static const struct refusal {
    struct weft_params params; /* over those of small() where not 0 */
    int status;
    const char *words;
} refusals[] = {
    {{.op = WEFT_GET, .mode = WEFT_STREAM, .layout = WEFT_SHORT}, -EINVAL, "not for get"},
    {{.op = WEFT_FADD, .mode = WEFT_STREAM, .layout = WEFT_BCOPY}, -EINVAL, "not for atomics"},
    {{.op = WEFT_ADD, .mode = WEFT_PING_PONG, .layout = WEFT_ZCOPY}, -EINVAL, "not for atomics"},
    {{.op = WEFT_SWAP, .mode = WEFT_STREAM, .layout = WEFT_SHORT, .size = 7}, -EINVAL, "4 or 8"},
    {{.op = WEFT_GET, .mode = WEFT_PING_PONG, .layout = WEFT_BCOPY}, -EINVAL, "no ping-pong"},
    {{.op = WEFT_CSWAP, .mode = WEFT_PING_PONG, .layout = WEFT_SHORT}, -EINVAL, "no ping-pong"},
    {{.op = WEFT_AM, .mode = WEFT_STREAM, .layout = WEFT_SHORT, .size = 4}, -EINVAL, "8 bytes"},
    {{.op = WEFT_AM, .mode = WEFT_STREAM, .layout = WEFT_ZCOPY, .size = 8, .am_header = 16},
     -EINVAL,
     "header of 16"},
    {{.op = WEFT_AM, .mode = WEFT_STREAM, .layout = WEFT_ZCOPY, .size = 8, .am_header = 3},
     -EINVAL,
     "header of 3"},
    {{.op = WEFT_PUT, .mode = WEFT_STREAM, .layout = WEFT_ZCOPY, .size = UINT64_C(1) << 32},
     -EINVAL,
     "4294967296"},
    {{.op = WEFT_PUT, .mode = WEFT_STREAM_BOTH, .layout = WEFT_SHORT, .verify = 1},
     -EINVAL,
     "not in both directions"},
    {{.op = WEFT_PUT, .mode = WEFT_STREAM, .layout = WEFT_SHORT, .size = 1 << 20},
     -EMSGSIZE,
     "at most"},
    {{.op = WEFT_AM, .mode = WEFT_STREAM, .layout = WEFT_SHORT, .size = 1 << 20},
     -EMSGSIZE,
     "at most"},
    {{.op = WEFT_AM,
      .mode = WEFT_STREAM,
      .layout = WEFT_ZCOPY,
      .size = 1 << 20,
      .am_header = 1 << 19},
     -EMSGSIZE,
     "header takes at most"},
    {{.op = (enum weft_op)99, .mode = WEFT_STREAM, .layout = WEFT_SHORT}, -EINVAL, "operation 99"},
    {{.op = WEFT_PUT, .mode = (enum weft_mode)9, .layout = WEFT_SHORT}, -EINVAL, "mode 9"},
    {{.op = WEFT_PUT, .mode = WEFT_STREAM, .layout = (enum weft_layout)7}, -EINVAL, "layout 7"},
    {{.op = WEFT_PUT, .mode = WEFT_STREAM, .layout = WEFT_SHORT, .percentiles = {101}},
     -EINVAL,
     "percentile 101"},
    {{.op = WEFT_PUT, .mode = WEFT_STREAM, .layout = WEFT_SHORT, .percentiles = {50, -1}},
     -EINVAL,
     "percentile -1"},
    {{.op = WEFT_PUT, .mode = WEFT_STREAM, .layout = WEFT_SHORT, .percentiles = {NAN}},
     -EINVAL,
     "percentile"},
    {{.op = WEFT_PUT, .mode = WEFT_PING_PONG, .layout = WEFT_SHORT, .device = "null"},
     -ENOTSUP,
     "nobody is there to answer put in ping-pong"},
    {{.op = WEFT_ADD, .mode = WEFT_PING_PONG, .layout = WEFT_SHORT, .device = "null"},
     -ENOTSUP,
     "nobody is there to answer add in ping-pong"},
    {{.op = WEFT_AM, .mode = WEFT_STREAM, .layout = WEFT_SHORT, .device = "null"},
     -ENOTSUP,
     "nobody is there to answer am in stream"},
    {{.op = WEFT_GET, .mode = WEFT_STREAM, .layout = WEFT_BCOPY, .device = "null", .verify = 1},
     -EINVAL,
     "nothing to verify"}};

static struct weft_params asked(const struct refusal *refusal)
{
    const struct weft_params *over = &refusal->params;
    struct weft_params params = small(over->op, over->mode, over->layout);
    params.size = over->size ? over->size : params.size;
    params.am_header = over->am_header ? over->am_header : params.am_header;
    params.verify = over->verify;
    params.device = over->device ? over->device : params.device;
    if (over->percentiles[0] != 0)
        memcpy(params.percentiles, over->percentiles, sizeof params.percentiles);
    return params;
}

static void refuse_all(const struct weft_bootstrap pair[2])
{
    for (size_t i = 0; i < LENGTH(refusals); i++) {
        const struct weft_params params = asked(&refusals[i]);
        struct end ends[2];
        prepare(ends, &params, pair);
        expect_refused(ends, refusals[i].status, refusals[i].words);
    }
}

static void what_cannot_be_had_is_refused_at_both_ends_alike_and_they_can_go_on(void **state)
{
    (void)state;
    with_threads(refuse_all);
}

static void refuse_zeros(const struct weft_bootstrap pair[2])
{
    const struct weft_params params = small(WEFT_PUT, WEFT_STREAM, WEFT_SHORT);
    for (int what = 0; what < 3; what++) {
        static const char *const words[] = {"0 bytes", "window of 0", "0 outstanding"};
        struct end ends[2];
        prepare(ends, &params, pair);
        for (int i = 0; i < 2; i++) {
            struct weft_params *p = &ends[i].params;
            *(what == 0 ? &p->size : what == 1 ? &p->window : &p->outstanding) = 0;
        }
        expect_refused(ends, -EINVAL, words[what]);
    }
}

static void nothing_is_refused_where_something_is_needed(void **state)
{
    (void)state;
    with_threads(refuse_zeros);
}

static void no_timeout(const struct weft_bootstrap pair[2])
{
    const struct weft_params params = small(WEFT_PUT, WEFT_STREAM, WEFT_SHORT);
    struct end ends[2];
    prepare(ends, &params, pair);
    ends[0].params.timeout_ms = ends[1].params.timeout_ms = 0;
    expect_refused(ends, -EINVAL, "a timeout of 0");
}

static void a_timeout_of_nothing_is_refused(void **state)
{
    (void)state;
    with_threads(no_timeout);
}

static void one_refuses(const struct weft_bootstrap pair[2])
{
    struct weft_params params = small(WEFT_PUT, WEFT_STREAM, WEFT_SHORT);
    for (int which = 0; which < 2; which++) {
        struct end ends[2];
        prepare(ends, &params, pair);
        ends[which].params.percentiles[0] = 200;
        expect_refused(ends, -EINVAL, "percentile 200");
    }
}

static void what_one_end_refuses_the_other_hears(void **state)
{
    (void)state;
    with_threads(one_refuses);
}

static void wrong_struct(const struct weft_bootstrap pair[2])
{
    struct weft_params params = small(WEFT_AM, WEFT_PING_PONG, WEFT_SHORT);
    static const size_t wrong[] = {0, 1, sizeof params - 8, sizeof params + 8, SIZE_MAX};
    for (size_t i = 0; i < LENGTH(wrong); i++) {
        struct end ends[2];
        params.bytes = wrong[i];
        prepare(ends, &params, pair);
        expect_refused(ends, -EINVAL, "begin with weft_params_init");
    }
}

static void parameters_of_another_length_are_refused_before_anything_is_said(void **state)
{
    (void)state;
    with_threads(wrong_struct);
}

/* ---- a bootstrap of the caller's own ---- */

enum { SLOTS = 4 };

/* One way of two: a few messages in memory. */
struct weft_uct {
    pthread_mutex_t lock;
    char bytes[SLOTS][WEFT_MESSAGE_MAX];
    size_t lengths[SLOTS];
    unsigned first, count, calls, full, too_long;
    int broken; /* what receive returns, once empty */
};

struct lanes {
    struct weft_uct *out, *in;
};

static int weft_uct_publish(void *arg, const void *bytes, size_t length)
{
    struct weft_uct *lane = ((struct lanes *)arg)->out;
    int status = 0;
    pthread_mutex_lock(&lane->lock);
    if (length > WEFT_MESSAGE_MAX) {
        lane->too_long++;
        status = -EMSGSIZE;
    } else if (lane->count == SLOTS || ++lane->calls % 3 == 0) {
        lane->full++;
        status = -EAGAIN;
    } else {
        unsigned slot = (lane->first + lane->count++) % SLOTS;
        memcpy(lane->bytes[slot], bytes, length);
        lane->lengths[slot] = length;
    }
    pthread_mutex_unlock(&lane->lock);
    return status;
}

static int weft_uct_receive(void *arg, void *bytes, size_t room, size_t *length)
{
    struct weft_uct *lane = ((struct lanes *)arg)->in;
    int got = 0;
    pthread_mutex_lock(&lane->lock);
    if (lane->count) {
        unsigned slot = lane->first++ % SLOTS;
        lane->first %= SLOTS;
        lane->count--;
        got = lane->lengths[slot] <= room ? 1 : -EMSGSIZE;
        *length = lane->lengths[slot];
        if (got == 1)
            memcpy(bytes, lane->bytes[slot], *length);
    } else {
        got = lane->broken;
    }
    pthread_mutex_unlock(&lane->lock);
    return got;
}

struct own {
    struct weft_uct ways[2];
    struct lanes lanes[2];
    struct weft_bootstrap pair[2];
};

static struct own *open_own(void)
{
    struct own *own = calloc(1, sizeof *own);
    assert_non_null(own);
    for (unsigned i = 0; i < 2; i++) {
        pthread_mutex_init(&own->ways[i].lock, NULL);
        own->lanes[i] = (struct lanes){.out = &own->ways[i], .in = &own->ways[1 - i]};
        own->pair[i] = (struct weft_bootstrap){.size = 2,
                                               .index = i,
                                               .arg = &own->lanes[i],
                                               .publish = weft_uct_publish,
                                               .receive = weft_uct_receive};
    }
    return own;
}

static void close_own(struct own *own)
{
    for (int i = 0; i < 2; i++) {
        assert_int_equal(own->ways[i].too_long, 0);
        pthread_mutex_destroy(&own->ways[i].lock);
    }
    free(own);
}

static void a_bootstrap_of_the_callers_own_carries_a_test(void **state)
{
    static const enum weft_mode modes[] = {WEFT_PING_PONG, WEFT_STREAM, WEFT_STREAM_BOTH};
    (void)state;
    for (size_t i = 0; i < LENGTH(modes); i++) {
        const struct weft_params params = small(WEFT_AM, modes[i], WEFT_SHORT);
        struct own *own = open_own();
        expect_good(&params, own->pair);
        assert_true(own->ways[0].full > 0 && own->ways[1].full > 0);
        close_own(own);
    }
}

static void a_bootstrap_of_the_callers_own_carries_a_verified_test(void **state)
{
    struct weft_params params = small(WEFT_PUT, WEFT_STREAM, WEFT_SHORT);
    struct own *own = open_own();
    (void)state;
    params.verify = 1;
    params.iterations = 50;
    expect_good(&params, own->pair);
    close_own(own);
}

static void a_bootstrap_of_the_callers_own_carries_one_test_after_the_other(void **state)
{
    const struct weft_params params = small(WEFT_GET, WEFT_STREAM, WEFT_BCOPY);
    struct own *own = open_own();
    (void)state;
    for (int i = 0; i < 5; i++)
        expect_good(&params, own->pair);
    close_own(own);
}

static void a_bootstrap_of_the_callers_own_can_be_used_after_a_refusal(void **state)
{
    struct weft_params params = small(WEFT_GET, WEFT_STREAM, WEFT_SHORT);
    struct own *own = open_own();
    struct end ends[2];
    (void)state;
    prepare(ends, &params, own->pair);
    expect_refused(ends, -EINVAL, "not for get");
    close_own(own);
}

static void an_end_that_never_answers_is_given_up_after_the_timeout(void **state)
{
    (void)state;
    for (int index = 0; index < 2; index++) {
        struct own *own = open_own();
        struct end end = {.params = small(WEFT_AM, WEFT_PING_PONG, WEFT_SHORT),
                          .bootstrap = &own->pair[index]};
        double begin = seconds();
        end.params.timeout_ms = 300;
        run_end(&end);
        assert_int_equal(end.status, -ETIMEDOUT);
        assert_non_null(strstr(end.reason, index ? "client" : "server"));
        assert_true(seconds() - begin > 0.2 && seconds() - begin < 5);
        assert_null(end.result.histogram);
        close_own(own);
    }
}

static void a_bootstrap_without_room_is_given_up_after_the_timeout(void **state)
{
    struct own *own = open_own();
    struct end end = {.params = small(WEFT_AM, WEFT_PING_PONG, WEFT_SHORT),
                      .bootstrap = &own->pair[0]};
    double begin = seconds();
    (void)state;
    own->ways[0].count = SLOTS;
    end.params.timeout_ms = 300;
    run_end(&end);
    assert_int_equal(end.status, -ETIMEDOUT);
    assert_true(seconds() - begin > 0.2 && seconds() - begin < 5);
    close_own(own);
}

static void a_bootstrap_that_breaks_ends_the_test(void **state)
{
    struct own *own = open_own();
    struct end end = {.params = small(WEFT_AM, WEFT_PING_PONG, WEFT_SHORT),
                      .bootstrap = &own->pair[0]};
    double begin = seconds();
    (void)state;
    own->ways[1].broken = -ECONNRESET;
    run_end(&end);
    assert_int_equal(end.status, -ECONNRESET);
    assert_true(*end.reason);
    assert_true(seconds() - begin < 5);
    close_own(own);
}

static void a_bootstrap_that_is_none_is_refused(void **state)
{
    struct own *own = open_own();
    struct end end = {.params = small(WEFT_AM, WEFT_PING_PONG, WEFT_SHORT)};
    static const struct {
        unsigned size, index;
    } wrong[] = {{0, 0}, {1, 0}, {3, 0}, {2, 2}, {2, 7}};
    (void)state;
    for (size_t i = 0; i < LENGTH(wrong); i++) {
        struct weft_bootstrap bootstrap = own->pair[0];
        bootstrap.size = wrong[i].size;
        bootstrap.index = wrong[i].index;
        end.bootstrap = &bootstrap;
        run_end(&end);
        assert_int_equal(end.status, -EINVAL);
        assert_non_null(strstr(end.reason, "two ends"));
    }
    struct weft_bootstrap bootstrap = own->pair[0];
    bootstrap.publish = NULL;
    end.bootstrap = &bootstrap;
    run_end(&end);
    assert_int_equal(end.status, -EINVAL);
    bootstrap = own->pair[0];
    bootstrap.receive = NULL;
    run_end(&end);
    assert_int_equal(end.status, -EINVAL);
    close_own(own);
}

static void never_called(const struct weft_bootstrap pair[2])
{
    for (int index = 0; index < 2; index++) {
        struct end end = {.params = small(WEFT_AM, WEFT_PING_PONG, WEFT_SHORT),
                          .bootstrap = &pair[index]};
        double begin = seconds();
        end.params.timeout_ms = 300;
        run_end(&end);
        assert_true(end.status == -ETIMEDOUT || (index && end.status < 0));
        assert_true(seconds() - begin < 5);
    }
}

static void a_thread_that_never_comes_is_given_up_after_the_timeout(void **state)
{
    (void)state;
    with_threads(never_called);
}

/* ---- TCP ---- */

struct meeting {
    struct weft_bootstrap bootstrap;
    unsigned port;
    int status;
};

static void *listen_there(void *arg)
{
    struct meeting *m = arg;
    m->status = weft_tcp_listen(&m->bootstrap, "127.0.0.1", m->port, NULL);
    return NULL;
}

static unsigned free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &length), 0);
    close(fd);
    return ntohs(address.sin_port);
}

static void two_ends_meet_over_tcp_and_run_one_test_after_the_other(void **state)
{
    struct meeting there = {.port = free_port()};
    struct weft_bootstrap pair[2];
    struct weft_params params = small(WEFT_AM, WEFT_PING_PONG, WEFT_SHORT);
    struct end ends[2];
    pthread_t thread;
    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, listen_there, &there), 0);
    int status = weft_tcp_dial(&pair[0], "127.0.0.1", there.port, 10000, NULL);
    pthread_join(thread, NULL);
    assert_int_equal(status, 0);
    assert_int_equal(there.status, 0);
    pair[1] = there.bootstrap;
    assert_int_equal(pair[0].index, 0);
    assert_int_equal(pair[1].index, 1);
    expect_good(&params, pair);
    params.layout = (enum weft_layout)7;
    prepare(ends, &params, pair);
    expect_refused(ends, -EINVAL, "layout 7");
    params = small(WEFT_GET, WEFT_STREAM, WEFT_ZCOPY);
    params.device = NULL;
    expect_good(&params, pair);
    weft_close(&pair[0]);
    weft_close(&pair[1]);
}

static void a_port_that_is_none_or_where_nobody_listens_is_an_error(void **state)
{
    struct weft_bootstrap bootstrap;
    volatile sig_atomic_t stop = 1;
    (void)state;
    assert_int_equal(weft_tcp_listen(&bootstrap, "127.0.0.1", 65536, NULL), -EINVAL);
    assert_int_equal(weft_tcp_dial(&bootstrap, "127.0.0.1", 65536, 100, NULL), -EINVAL);
    assert_int_equal(weft_tcp_dial(&bootstrap, "127.0.0.1", 0, 100, NULL), -EINVAL);
    assert_true(weft_tcp_dial(&bootstrap, "127.0.0.1", free_port(), 100, NULL) < 0);
    assert_true(*weft_reason());
    assert_int_equal(weft_tcp_listen(&bootstrap, "127.0.0.1", free_port(), &stop), -EINTR);
    assert_int_equal(weft_tcp_dial(&bootstrap, "127.0.0.1", free_port(), 20000, &stop), -EINTR);
}

/* ---- time ---- */

static void five_microseconds(const struct weft_bootstrap pair[2])
{
    static const struct {
        enum weft_op op;
        enum weft_mode mode;
        enum weft_layout layout;
    } tests[] = {{WEFT_GET, WEFT_STREAM, WEFT_BCOPY},   {WEFT_GET, WEFT_STREAM, WEFT_ZCOPY},
                 {WEFT_FADD, WEFT_STREAM, WEFT_SHORT},  {WEFT_SWAP, WEFT_STREAM, WEFT_SHORT},
                 {WEFT_CSWAP, WEFT_STREAM, WEFT_SHORT}, {WEFT_AM, WEFT_PING_PONG, WEFT_SHORT}};
    for (size_t i = 0; i < LENGTH(tests); i++) {
        struct weft_params params = small(tests[i].op, tests[i].mode, tests[i].layout);
        double most = sanitized() ? 15 : 5 * 1.02, typical = 0;
        params.device = "null:delay=5us";
        params.iterations = 4000;
        /* Another process may take the CPU for most of a run; not for three of them. */
        for (int tries = 0; tries < 3 && !(typical >= 5 * 0.98 && typical <= most); tries++) {
            struct end ends[2];
            prepare(ends, &params, pair);
            run_ends(ends);
            expect_done(ends);
            expect_figures(&ends[0]);
            typical = ends[0].result.latency_us.typical;
            assert_true(ends[0].result.latency_us.overall >= 5 * 0.98);
            release(ends);
        }
        if (!(typical >= 5 * 0.98 && typical <= most))
            fail_msg("op %d: %g us, and 5 us were programmed", tests[i].op, typical);
    }
}

static void a_programmed_delay_is_what_is_read(void **state)
{
    (void)state;
    with_threads(five_microseconds);
}

/* Many under way at once take no longer than one. */
static void overlapping(const struct weft_bootstrap pair[2])
{
    struct weft_params params = small(WEFT_GET, WEFT_STREAM, WEFT_ZCOPY);
    struct end ends[2];
    params.device = "null:delay=100us";
    params.outstanding = 10;
    params.iterations = 2000;
    prepare(ends, &params, pair);
    run_ends(ends);
    expect_done(ends);
    assert_true(ends[0].result.elapsed_s >= 200 * 100e-6 * 0.98);
    assert_true(ends[0].result.elapsed_s < 2000 * 100e-6 * 0.5);
    release(ends);
}

static void as_many_as_are_allowed_are_under_way_at_once(void **state)
{
    (void)state;
    with_threads(overlapping);
}

static void nobody_completes(const struct weft_bootstrap pair[2])
{
    struct weft_params params = small(WEFT_GET, WEFT_STREAM, WEFT_BCOPY);
    struct end ends[2];
    params.device = "null:delay=3600s";
    params.timeout_ms = 400;
    double begin = seconds();
    prepare(ends, &params, pair);
    run_ends(ends);
    assert_int_equal(ends[0].status, -ETIMEDOUT);
    assert_true(ends[1].status < 0);
    assert_true(seconds() - begin > 0.3 && seconds() - begin < 5);
}

static void an_operation_that_never_completes_ends_at_the_timeout(void **state)
{
    (void)state;
    with_threads(nobody_completes);
}

/* ---- CPUs ---- */

struct pinned {
    struct end end;
    cpu_set_t before, after;
};

static void *run_pinned(void *arg)
{
    struct pinned *p = arg;
    sched_getaffinity(0, sizeof p->before, &p->before);
    run_end(&p->end);
    sched_getaffinity(0, sizeof p->after, &p->after);
    return NULL;
}

static void on_cpus(const struct weft_bootstrap pair[2])
{
    const struct weft_params params = small(WEFT_AM, WEFT_PING_PONG, WEFT_SHORT);
    struct pinned ends[2] = {0};
    pthread_t threads[2];
    cpu_set_t allowed, wanted;
    sched_getaffinity(0, sizeof allowed, &allowed);
    if (CPU_COUNT(&allowed) < 2)
        skip();
    for (int i = 0; i < 2; i++) {
        ends[i].end = (struct end){.params = params, .bootstrap = &pair[i]};
        ends[i].end.params.cpu = cpu_of(i);
    }
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_pinned, &ends[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ends[i].end.status, 0);
        assert_true(CPU_EQUAL(&ends[i].before, &allowed));
        assert_true(CPU_EQUAL(&ends[i].after, &allowed));
        weft_result_free(&ends[i].end.result);
    }
    CPU_ZERO(&wanted);
    CPU_SET((size_t)ends[0].end.params.cpu, &wanted);
    assert_true(CPU_EQUAL(&ends[0].end.reports.cpus, &wanted));
}

static void a_thread_is_put_on_its_cpu_and_back_again(void **state)
{
    (void)state;
    with_threads(on_cpus);
}

/* ---- small things ---- */

static void the_defaults_are_those_of_the_tool(void **state)
{
    struct weft_params p;
    (void)state;
    memset(&p, 0xff, sizeof p);
    weft_params_init(&p);
    assert_int_equal(p.bytes, sizeof p);
    assert_int_equal(p.size, 8);
    assert_int_equal(p.layout, WEFT_SHORT);
    assert_int_equal(p.iterations, 1000000);
    assert_int_equal(p.warmup, 10000);
    assert_int_equal(p.window, 128);
    assert_int_equal(p.outstanding, 1);
    assert_int_equal(p.am_header, 8);
    assert_int_equal(p.interval_ms, 1000);
    assert_int_equal(p.cpu, -1);
    assert_null(p.device);
    assert_null(p.stop);
    assert_true(*weft_version());
}

static void nothing_has_no_buckets_and_is_freed(void **state)
{
    struct weft_result result = {0};
    size_t at = 0;
    double low, high;
    uint64_t count;
    (void)state;
    assert_int_equal(weft_histogram_next(NULL, &at, &low, &high, &count), 0);
    weft_result_free(&result);
    weft_result_free(&result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_ping_pong_runs_and_its_figures_agree),
        cmocka_unit_test(every_ping_pong_runs_verified),
        cmocka_unit_test(every_stream_runs_and_its_figures_agree),
        cmocka_unit_test(every_stream_runs_verified),
        cmocka_unit_test(every_stream_both_ways_runs_and_its_figures_agree),
        cmocka_unit_test(every_stream_both_ways_that_can_be_verified_is),
        cmocka_unit_test(faults_are_caught_where_data_is_verified_and_only_there),
        cmocka_unit_test(few_iterations_are_counted_and_have_percentiles_only_where_ten_lie_beyond),
        cmocka_unit_test(as_many_percentiles_as_there_is_room_for_or_none),
        cmocka_unit_test(report_and_result_may_be_left_out),
        cmocka_unit_test(a_duration_ends_a_test_and_intervals_are_reported),
        cmocka_unit_test(an_interval_that_ends_with_the_last_operation_has_no_report_of_its_own),
        cmocka_unit_test(of_two_limits_the_first_one_counts),
        cmocka_unit_test(a_test_without_limits_goes_on_until_it_is_stopped),
        cmocka_unit_test(ends_that_were_asked_for_different_tests_say_so_alike_and_can_go_on),
        cmocka_unit_test(what_one_end_lacks_is_said_by_both),
        cmocka_unit_test(a_device_may_be_named_at_one_end_or_at_none),
        cmocka_unit_test(what_cannot_be_had_is_refused_at_both_ends_alike_and_they_can_go_on),
        cmocka_unit_test(nothing_is_refused_where_something_is_needed),
        cmocka_unit_test(a_timeout_of_nothing_is_refused),
        cmocka_unit_test(what_one_end_refuses_the_other_hears),
        cmocka_unit_test(parameters_of_another_length_are_refused_before_anything_is_said),
        cmocka_unit_test(a_bootstrap_of_the_callers_own_carries_a_test),
        cmocka_unit_test(a_bootstrap_of_the_callers_own_carries_a_verified_test),
        cmocka_unit_test(a_bootstrap_of_the_callers_own_carries_one_test_after_the_other),
        cmocka_unit_test(a_bootstrap_of_the_callers_own_can_be_used_after_a_refusal),
        cmocka_unit_test(an_end_that_never_answers_is_given_up_after_the_timeout),
        cmocka_unit_test(a_bootstrap_without_room_is_given_up_after_the_timeout),
        cmocka_unit_test(a_bootstrap_that_breaks_ends_the_test),
        cmocka_unit_test(a_bootstrap_that_is_none_is_refused),
        cmocka_unit_test(a_thread_that_never_comes_is_given_up_after_the_timeout),
        cmocka_unit_test(two_ends_meet_over_tcp_and_run_one_test_after_the_other),
        cmocka_unit_test(a_port_that_is_none_or_where_nobody_listens_is_an_error),
        cmocka_unit_test(a_programmed_delay_is_what_is_read),
        cmocka_unit_test(as_many_as_are_allowed_are_under_way_at_once),
        cmocka_unit_test(an_operation_that_never_completes_ends_at_the_timeout),
        cmocka_unit_test(a_thread_is_put_on_its_cpu_and_back_again),
        cmocka_unit_test(the_defaults_are_those_of_the_tool),
        cmocka_unit_test(nothing_has_no_buckets_and_is_freed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
