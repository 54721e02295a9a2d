/* SPDX-License-Identifier: BSD-3-Clause */
/* A test between two threads of this program: how long does an active message take? Built with
 *   cc two_threads.c $(pkg-config --cflags --libs weft) -pthread
 */
#include <weft.h>

#include <pthread.h>
#include <stdio.h>

static struct weft_params params;

/* Called at the end that measures: every second, and once for the whole test. */
static void print_report(void *arg, const struct weft_result *result)
{
    (void)arg;
    printf("%s%llu messages there and back: median %.3f us, average %.3f us each way\n",
           result->final ? "in all " : "so far ", (unsigned long long)result->iterations,
           result->latency_us.typical, result->latency_us.overall);
}

/* The other end makes the same call. */
static void *other_end(void *bootstrap)
{
    if (weft_run(&params, bootstrap, NULL, NULL, NULL))
        fprintf(stderr, "the other end: %s\n", weft_reason());
    return NULL;
}

int main(void)
{
    struct weft_bootstrap ends[2];
    struct weft_result result;
    pthread_t thread;

    weft_params_init(&params);
    weft_result_init(&result);
    params.op = "am";
    params.method = "ping-pong";
    params.iterations = 100000;

    int status = weft_threads(ends);
    if (status || pthread_create(&thread, NULL, other_end, &ends[1])) {
        fprintf(stderr, "cannot start: %s\n", weft_reason());
        return 1;
    }
    status = weft_run(&params, &ends[0], print_report, NULL, &result);
    if (status) {
        fprintf(stderr, "%s\n", weft_reason());
    } else {
        for (size_t i = 0; i < result.percentile_count; i++)
            printf("%5g %% took at most %.3f us\n", result.percentiles[i].percent,
                   result.percentiles[i].us);
        printf("carried by %s\n", result.fabric);
        weft_result_free(&result);
    }
    pthread_join(thread, NULL);
    weft_close(&ends[0]);
    weft_close(&ends[1]);
    return status ? 1 : 0;
}
