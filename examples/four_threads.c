/* SPDX-License-Identifier: BSD-3-Clause */
/* tag_bw with four threads at each end, thread i to thread i: how many messages a second do they
 * get across together? Built with cc four_threads.c $(pkg-config --cflags --libs weft) -pthread
 */
#include <weft.h>

#include <pthread.h>
#include <stdio.h>

static struct weft_params params;

/* The other end makes the same call. The library makes the threads of both. */
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
    params.op = "tag"; /* as ucx_perftest -t tag_bw */
    params.method = "stream";
    params.size = 4096;
    params.iterations = 100000; /* of each thread */
    params.threads = 4;

    int status = weft_threads(ends);
    if (status || pthread_create(&thread, NULL, other_end, &ends[1])) {
        fprintf(stderr, "cannot start: %s\n", weft_reason());
        return 1;
    }
    status = weft_run(&params, &ends[0], NULL, NULL, &result);
    if (status) {
        fprintf(stderr, "%s\n", weft_reason());
    } else {
        printf("%llu messages by %llu threads over %s: %.0f MB/s, %.0f messages a second\n",
               (unsigned long long)result.iterations, (unsigned long long)params.threads,
               result.fabric, result.bandwidth.overall / 1e6, result.rate.overall);
        weft_result_free(&result);
    }
    pthread_join(thread, NULL);
    weft_close(&ends[0]);
    weft_close(&ends[1]);
    return status ? 1 : 0;
}
