/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of operations on another process's memory, as bare loops: what the bandwidth tools may at
 * best be on soft. lists copy|words|store|add SIZE COUNT CPU,CPU prints MB/s, SIZE times
 * operations. The memory is of the kind, and the places are as far apart, as the tools' own. */
#include "bench/bench.h"
#include "core/clock.h"
#include "core/cpu.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ALIGN = 64, WARM_LISTS = 3, RUN_NS = 300000000, BATCH_NS = 50000, BATCHES_MAX = 8192 };

struct lists {
    char *to, *from;
    size_t size, step;
    uint64_t count;
};

static void check(int status)
{
    if (status < 0) {
        fprintf(stderr, "lists: %s\n", fail_reason());
        exit(1);
    }
}

/* ---- one list ---- */

static void copy(const struct lists *l)
{
    for (uint64_t i = 0; i < l->count; i++)
        memcpy(l->to + i * l->step, l->from + i * l->step, l->size);
}

static void copy_words(const struct lists *l)
{
    for (uint64_t i = 0; i < l->count; i++)
        *(volatile uint64_t *)(void *)(l->to + i * l->step) =
            *(const uint64_t *)(const void *)(l->from + i * l->step);
}

static void store(const struct lists *l)
{
    for (uint64_t i = 0; i < l->count; i++)
        *(volatile uint64_t *)(void *)(l->to + i * l->step) = i;
}

static void add(const struct lists *l)
{
    for (uint64_t i = 0; i < l->count; i++)
        atomic_fetch_add((_Atomic uint64_t *)(void *)(l->to + i * l->step), 1);
}

static const struct {
    const char *name;
    void (*list)(const struct lists *lists);
} loops[] = {{"copy", copy}, {"words", copy_words}, {"store", store}, {"add", add}};

/* ---- all of them ---- */

static inline void one(void (*list)(const struct lists *lists), const struct lists *l)
{
    list(l);
    atomic_thread_fence(memory_order_seq_cst);
}

static uint64_t batch_ns(void (*list)(const struct lists *lists), const struct lists *l,
                         uint64_t lists)
{
    uint64_t since_ns = clock_raw_ns();
    for (uint64_t i = 0; i < lists; i++)
        one(list, l);
    return clock_raw_ns() - since_ns;
}

static int ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Bytes per second by the median batch: what else runs here takes the CPU from few of them. The
 * clock is read so rarely that it costs nothing. */
static double run(void (*list)(const struct lists *lists), const struct lists *l)
{
    static uint64_t batches[BATCHES_MAX];
    uint64_t lists = 1, all_ns = 0;
    size_t n = 0;
    for (int i = 0; i < WARM_LISTS; i++)
        one(list, l);
    while (batch_ns(list, l, lists) < BATCH_NS)
        lists *= 2;
    for (; n < BATCHES_MAX && all_ns < RUN_NS; n++)
        all_ns += batches[n] = batch_ns(list, l, lists);
    qsort(batches, n, sizeof batches[0], ascending);
    size_t middle = n / 2;
    return (double)(lists * l->count * l->size) / ((double)batches[middle] / 1e9);
}

/* The other process's memory: it has made it present, on its CPU, and sleeps. */
static pid_t owner(struct region *region, int cpu)
{
    int ready[2];
    char word = 0;
    check(pipe(ready) ? fail(-EPIPE, "no pipe") : 0);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        check(cpu_pin(cpu));
        check(memory_host.populate(region, 0, region->length));
        check(write(ready[1], &word, 1) == 1 ? 0 : -EPIPE);
        pause();
    }
    check(child > 0 && read(ready[0], &word, 1) == 1 ? 0 : fail(-EPIPE, "no second process"));
    return child;
}

int main(int argc, char **argv)
{
    struct lists l = {0};
    struct region mine, theirs;
    uint64_t size = 0;
    int target, initiator;
    size_t which = 0;
    while (argc == 5 && which < LENGTH(loops) && strcmp(argv[1], loops[which].name) != 0)
        which++;
    if (argc != 5 || which == LENGTH(loops) || unit_bytes(argv[2], &size) || !size ||
        unit_number(argv[3], &l.count) || !l.count ||
        sscanf(argv[4], "%d,%d", &target, &initiator) != 2) {
        fprintf(stderr, "usage: lists copy|words|store|add SIZE COUNT TARGET,INITIATOR\n");
        return 2;
    }
    l.size = (size_t)size;
    l.step = (l.size + ALIGN - 1) / ALIGN * ALIGN;
    check(memory_host.alloc(&mine, l.step * l.count, &memory_host));
    check(memory_host.alloc(&theirs, l.step * l.count, &memory_host));
    check(cpu_pin(initiator));
    pid_t child = owner(&theirs, target);
    check(memory_host.populate(&mine, 0, mine.length));
    l.from = mine.address;
    l.to = theirs.address;
    printf("%.2f MB/s\n", run(loops[which].list, &l) / 1e6);
    kill(child, SIGKILL);
    return waitpid(child, &(int){0}, 0) == child ? 0 : 1;
}
