/* SPDX-License-Identifier: BSD-3-Clause */
/* How long does an RDMA read take? Percentiles of one read at a time, 10 us apart, between two
 * machines. Built with
 *   cc read_latency.c $(pkg-config --cflags --libs weft) -o read_latency
 * and started on both, here with the port to meet on:
 *   read_latency 7471              the end that is read from
 *   read_latency 7471 HOST         the end that reads
 */
#include <weft.h>

#include <stdio.h>
#include <stdlib.h>

/* Called at the end that reads, once per size. */
static void print_size(void *arg, const struct weft_result *result)
{
    (void)arg;
    printf("%8llu bytes: min %.3f, median %.3f, mean %.3f us", (unsigned long long)result->size,
           result->min_us, result->latency_us.typical, result->latency_us.overall);
    for (size_t i = 0; i < result->percentile_count; i++)
        printf(", %g %% %.3f", result->percentiles[i].percent, result->percentiles[i].us);
    printf("\n");
}

int main(int argc, char **argv)
{
    struct weft_bootstrap bootstrap;
    struct weft_params params;
    struct weft_result result;

    if (argc < 2) {
        fprintf(stderr, "usage: read_latency PORT [HOST]\n");
        return 2;
    }
    weft_params_init(&params);
    weft_result_init(&result);
    params.op = "read";
    params.method = "latency";
    params.gap_ns = 10000;
    params.iterations = 20000;
    params.warmup = 100;
    params.size = 8;
    params.size_max = 4096;

    unsigned port = (unsigned)atoi(argv[1]);
    int status = argc > 2 ? weft_tcp_dial(&bootstrap, argv[2], port, 10000, NULL)
                          : weft_tcp_listen(&bootstrap, NULL, port, NULL);
    if (!status) {
        status = weft_run(&params, &bootstrap, print_size, NULL, &result);
        if (!status && argc > 2)
            printf("carried by %s; done means: %s\n", result.fabric, result.completion_proves);
        weft_result_free(&result);
        weft_close(&bootstrap);
    }
    if (status)
        fprintf(stderr, "read_latency: %s\n", weft_reason());
    return status ? 1 : 0;
}
