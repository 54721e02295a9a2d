/* SPDX-License-Identifier: BSD-3-Clause */
/* Both ends in threads of one process: threads_pair DEVICE OP METHOD SIZE TIMES [STOP_MS]. Each
 * time everything is opened and closed. Prints how often it went well; what failed is said on
 * stderr, by each end. With STOP_MS the test has no end, and one end leaves after so long. */
#include <weft.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct end {
    struct weft_params params;
    struct weft_bootstrap bootstrap;
    int status;
};

static volatile sig_atomic_t stop;

static void *run(void *arg)
{
    struct end *end = arg;
    end->status = weft_run(&end->params, &end->bootstrap, NULL, NULL, NULL);
    if (end->status)
        fprintf(stderr, "%s\n", weft_reason());
    return NULL;
}

static int once(const struct weft_params *params, unsigned stop_ms, int stopped)
{
    struct weft_bootstrap pair[2];
    pthread_t threads[2];
    if (weft_threads(pair))
        return -1;
    struct end ends[2] = {{*params, pair[0], 0}, {*params, pair[1], 0}};
    stop = 0;
    ends[stopped].params.stop = &stop;
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, run, &ends[i]))
            return -1;
    if (stop_ms) {
        usleep(stop_ms * 1000);
        stop = 1;
    }
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    weft_close(&ends[0].bootstrap);
    weft_close(&ends[1].bootstrap);
    return ends[0].status || ends[1].status;
}

int main(int argc, char **argv)
{
    struct weft_params params;
    int good = 0;
    if (argc < 6)
        return 2;
    unsigned stop_ms = argc > 6 ? (unsigned)atoi(argv[6]) : 0;
    weft_params_init(&params);
    params.device = argv[1];
    params.op = argv[2];
    params.method = argv[3];
    params.size = strtoull(argv[4], NULL, 0);
    params.iterations = stop_ms ? 0 : 20;
    params.duration_ms = stop_ms ? 3600000 : 0;
    params.warmup = 1;
    if (strcmp(params.method, "stream") == 0)
        params.outstanding = 4;
    for (int i = 0; i < atoi(argv[5]); i++)
        good += !once(&params, stop_ms, i % 2);
    printf("%d\n", good);
    return 0;
}
