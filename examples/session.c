/* SPDX-License-Identifier: BSD-3-Clause */
/* Two tests one after the other on one session, whose device is opened once: the latency of small
 * writes, then the bandwidth of large reads. The two ends are threads of this program. Built with
 *   cc session.c $(pkg-config --cflags --libs weft) -pthread
 */
#include <weft.h>

#include <pthread.h>
#include <stdio.h>

enum { TESTS = 2 };
static struct weft_params tests[TESTS];

static void prepare(void)
{
    for (int i = 0; i < TESTS; i++)
        weft_params_init(&tests[i]);

    tests[0].op = "write";
    tests[0].method = "latency";
    tests[0].size = 64;
    tests[0].iterations = 10000;

    tests[1].op = "read";
    tests[1].method = "stream";
    tests[1].size = 1 << 20;
    tests[1].iterations = 1000;
    tests[1].warmup = 10;
    tests[1].outstanding = 4;
    tests[1].interval_ms = 0;
}

static void print_test(const struct weft_params *test, const struct weft_result *result)
{
    printf("%s of %llu bytes, %s: median %.3f us", test->op, (unsigned long long)result->size,
           test->method, result->latency_us.typical);
    if (result->bandwidth.overall > 0) /* not a number for latency */
        printf(", %.0f MB/s", result->bandwidth.overall / 1e6);
    printf("\n");
}

/* Both ends make the same calls in the same order; end 0 has the results. */
static void *run_end(void *arg)
{
    const struct weft_bootstrap *bootstrap = arg;
    struct weft_session *session;
    int status = weft_session_open(&session, bootstrap);
    if (status) {
        fprintf(stderr, "end %u: %s\n", bootstrap->index, weft_reason());
        return NULL;
    }
    for (int i = 0; i < TESTS && !status; i++) {
        struct weft_result result;
        weft_result_init(&result);
        status = weft_session_run(session, &tests[i], NULL, NULL, &result);
        if (status)
            fprintf(stderr, "end %u, test %d: %s\n", bootstrap->index, i, weft_reason());
        else if (bootstrap->index == 0)
            print_test(&tests[i], &result);
        weft_result_free(&result);
    }
    weft_session_close(session);
    return status ? NULL : arg;
}

int main(void)
{
    struct weft_bootstrap ends[2];
    pthread_t thread;
    void *other = NULL;

    prepare();
    if (weft_threads(ends) || pthread_create(&thread, NULL, run_end, &ends[1])) {
        fprintf(stderr, "cannot start: %s\n", weft_reason());
        return 1;
    }
    void *mine = run_end(&ends[0]);
    pthread_join(thread, &other);
    weft_close(&ends[0]);
    weft_close(&ends[1]);
    return mine && other ? 0 : 1;
}
