/* SPDX-License-Identifier: BSD-3-Clause */
/* Measures noise: the time of a cache line transfer between two CPUs, and the time that both lose
 * to other work. Every loop ends by the clock, even if the other CPU is preempted. */
#include "bench/bench.h"
#include "core/clock.h"
#include "core/cpu.h"
#include "core/machine.h"
#include "host/host.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* POLLS: loads between two looks at the deadline. */
enum { LINE_MS = 25, LINE_LIMIT_MS = 150, BATCH = 200, BATCHES = 512, POLLS = 4096 };

/* The value of ping that ends the responder. */
static const uint64_t stop = UINT64_MAX;

/* ---- cache line transfers ---- */

struct pingpong_line {
    _Alignas(128) _Atomic uint64_t ping;
    _Atomic uint64_t pong; /* in the same line */
    _Alignas(128) int64_t cpus[2];
    bool relaxing; /* with cpu_relax() between loads */
    double ns;     /* half a round trip; 0 if not measured */
};

static void *respond(void *arg)
{
    struct pingpong_line *line = arg;
    uint64_t seen = 0;
    cpu_pin(line->cpus[1]);
    for (;;) {
        uint64_t now = atomic_load_explicit(&line->ping, memory_order_acquire);
        if (now == stop)
            return NULL;
        if (now != seen)
            atomic_store_explicit(&line->pong, seen = now, memory_order_release);
        else if (line->relaxing)
            cpu_relax();
    }
}

static bool wait_pong(struct pingpong_line *line, uint64_t round, uint64_t until_ms)
{
    for (unsigned i = 1; atomic_load_explicit(&line->pong, memory_order_acquire) != round; i++) {
        if (i % POLLS == 0 && clock_ms() >= until_ms)
            return false;
        if (line->relaxing)
            cpu_relax();
    }
    return true;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void *initiate(void *arg)
{
    struct pingpong_line *line = arg;
    double batches[BATCHES];
    uint64_t begin_ms = clock_ms(), round = 0;
    size_t count = 0;
    cpu_pin(line->cpus[0]);
    while (count < BATCHES && clock_ms() - begin_ms < LINE_MS) {
        uint64_t begin_ns = clock_raw_ns();
        for (int i = 0; i < BATCH; i++) {
            atomic_store_explicit(&line->ping, ++round, memory_order_release);
            if (!wait_pong(line, round, begin_ms + LINE_LIMIT_MS))
                return NULL;
        }
        batches[count++] = (double)(clock_raw_ns() - begin_ns) / (2 * BATCH);
    }
    if (count) {
        qsort(batches, count, sizeof batches[0], by_value);
        line->ns = batches[count / 2];
    }
    return NULL;
}

static double line_ns(const int64_t pair[2], bool relaxing)
{
    struct pingpong_line line = {.cpus = {pair[0], pair[1]}, .relaxing = relaxing};
    pthread_t initiator, responder;
    if (pthread_create(&responder, NULL, respond, &line))
        return 0;
    if (!pthread_create(&initiator, NULL, initiate, &line))
        pthread_join(initiator, NULL);
    atomic_store(&line.ping, stop);
    pthread_join(responder, NULL);
    return line.ns;
}

/* ---- gaps ---- */

static void *watch(void *arg)
{
    struct gaps *gaps = arg;
    cpu_pin(gaps->cpu);
    uint64_t begin_ns = clock_raw_ns(), last_ns = begin_ns, now_ns;
    do {
        now_ns = clock_raw_ns();
        uint64_t gap_ns = now_ns - last_ns;
        last_ns = now_ns;
        if (gap_ns > gaps->largest_ns)
            gaps->largest_ns = gap_ns;
        if (gap_ns > NOISE_GAP_US * UINT64_C(1000)) {
            gaps->count++;
            gaps->lost_ns += gap_ns;
        }
    } while (now_ns - begin_ns < NOISE_MS * UINT64_C(1000000));
    gaps->span_ns = now_ns - begin_ns;
    return NULL;
}

static void watch_all(struct noise *noise)
{
    pthread_t threads[2];
    int begun = 0;
    while (begun < noise->cpus && !pthread_create(&threads[begun], NULL, watch, &noise->on[begun]))
        begun++;
    for (int i = 0; i < begun; i++)
        pthread_join(threads[i], NULL);
    noise->cpus = begun;
}

/* ---- other processes ---- */

enum { PROCESSES = 4096 };

struct process {
    long pid;
    uint64_t ticks;
    char name[32];
};

/* In the order of their pids. */
struct process_list {
    size_t count;
    struct process all[PROCESSES];
};

static void add_process(void *arg, const char *name)
{
    struct process_list *list = arg;
    char text[512];
    struct process *process = &list->all[list->count];
    char *rest;
    long pid = strtol(name, &rest, 10);
    if (*rest || pid <= 0 || pid == getpid() || list->count == PROCESSES ||
        !system_line("", text, sizeof text, "/proc/%ld/stat", pid))
        return;
    /* The name may contain brackets and spaces. */
    char *begin = strchr(text, '('), *end = strrchr(text, ')');
    uint64_t user, system;
    if (!begin || !end || end < begin ||
        sscanf(end + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64, &user,
               &system) != 2)
        return;
    *process = (struct process){.pid = pid, .ticks = user + system};
    snprintf(process->name, sizeof process->name, "%.*s", (int)(end - begin - 1), begin + 1);
    list->count++;
}

static struct process_list *list_processes(void)
{
    struct process_list *list = malloc(sizeof *list);
    if (!list)
        return NULL;
    list->count = 0;
    system_each("", add_process, list, "/proc");
    return list;
}

static uint64_t ticks_ms(uint64_t ticks)
{
    long per_second = sysconf(_SC_CLK_TCK);
    return per_second > 0 ? ticks * 1000 / (uint64_t)per_second : 0;
}

static void find_busiest(struct noise *noise, const struct process_list *before,
                         const struct process_list *after)
{
    uint64_t most = 0;
    size_t at = 0;
    for (size_t i = 0; before && after && i < after->count; i++) {
        const struct process *now = &after->all[i];
        while (at < before->count && before->all[at].pid < now->pid)
            at++;
        bool known = at < before->count && before->all[at].pid == now->pid;
        uint64_t was = known ? before->all[at].ticks : 0;
        if (now->ticks < was || now->ticks - was <= most)
            continue;
        most = now->ticks - was;
        snprintf(noise->busiest, sizeof noise->busiest, "%s, pid %ld", now->name, now->pid);
    }
    noise->busiest_ms = ticks_ms(most);
}

/* CPU time of this machine since boot, without this process. */
static uint64_t others_ms(void)
{
    char text[256];
    uint64_t user = 0, nice = 0, system = 0, irq = 0, softirq = 0;
    struct rusage own = {0};
    if (!system_line("", text, sizeof text, "/proc/stat") ||
        sscanf(text, "cpu %" SCNu64 " %" SCNu64 " %" SCNu64 " %*u %*u %" SCNu64 " %" SCNu64, &user,
               &nice, &system, &irq, &softirq) != 5)
        return 0;
    getrusage(RUSAGE_SELF, &own);
    uint64_t all_ms = ticks_ms(user + nice + system + irq + softirq);
    uint64_t own_ms = (uint64_t)(own.ru_utime.tv_sec + own.ru_stime.tv_sec) * 1000 +
                      (uint64_t)(own.ru_utime.tv_usec + own.ru_stime.tv_usec) / 1000;
    return all_ms > own_ms ? all_ms - own_ms : 0;
}

/* The smaller one that was measured. */
static double lesser(double a, double b)
{
    return a > 0 && (a < b || b <= 0) ? a : b;
}

void noise_measure(struct noise *noise, const int64_t pair[2], int usable)
{
    struct interference before, after, sum = {0};
    *noise = (struct noise){.cpus = usable > 1 ? 2 : usable};
    noise->on[0].cpu = pair[0];
    noise->on[1].cpu = pair[1];
    struct process_list *first = list_processes();
    uint64_t others = others_ms();
    interference_now(&before);
    watch_all(noise);
    interference_now(&after);
    uint64_t later = others_ms();
    struct process_list *second = list_processes();
    noise->others_ms = later > others ? later - others : 0;
    interference_add(&sum, &before, &after);
    noise->steal_ms = sum.steal_ms;
    find_busiest(noise, first, second);
    free(first);
    free(second);
    if (usable > 1)
        noise->line_ns = lesser(line_ns(pair, false), line_ns(pair, true));
}
