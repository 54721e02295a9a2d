/* SPDX-License-Identifier: BSD-3-Clause */
/* Evidence: what a cache line costs between two CPUs, and how much of their time goes elsewhere.
 * Everything ends by the clock, also where the other CPU is taken away meanwhile. */
#include "core/clock.h"
#include "core/machine.h"
#include "tool/info.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { LINE_MS = 25, LINE_LIMIT_MS = 150, BATCH = 200, BATCHES = 512, LOOK = 4096 };
static const uint64_t over = UINT64_MAX;

/* ---- a cache line ---- */

struct court {
    _Alignas(128) _Atomic uint64_t ping;
    _Atomic uint64_t pong; /* in the same line */
    _Alignas(128) int64_t cpus[2];
    bool pausing;
    double ns; /* half a round trip; 0: not known */
};

static void *answer(void *arg)
{
    struct court *court = arg;
    uint64_t seen = 0;
    cpu_pin(court->cpus[1]);
    for (;;) {
        uint64_t now = atomic_load_explicit(&court->ping, memory_order_acquire);
        if (now == over)
            return NULL;
        if (now != seen)
            atomic_store_explicit(&court->pong, seen = now, memory_order_release);
        else if (court->pausing)
            cpu_relax();
    }
}

static bool heard(struct court *court, uint64_t round, uint64_t until_ms)
{
    for (unsigned i = 1; atomic_load_explicit(&court->pong, memory_order_acquire) != round; i++) {
        if (i % LOOK == 0 && clock_ms() >= until_ms)
            return false;
        if (court->pausing)
            cpu_relax();
    }
    return true;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void *ask(void *arg)
{
    struct court *court = arg;
    double batches[BATCHES];
    uint64_t begin_ms = clock_ms(), round = 0;
    size_t count = 0;
    cpu_pin(court->cpus[0]);
    while (count < BATCHES && clock_ms() - begin_ms < LINE_MS) {
        uint64_t begin_ns = clock_raw_ns();
        for (int i = 0; i < BATCH; i++) {
            atomic_store_explicit(&court->ping, ++round, memory_order_release);
            if (!heard(court, round, begin_ms + LINE_LIMIT_MS))
                return NULL;
        }
        batches[count++] = (double)(clock_raw_ns() - begin_ns) / (2 * BATCH);
    }
    if (count) {
        qsort(batches, count, sizeof batches[0], by_value);
        court->ns = batches[count / 2];
    }
    return NULL;
}

static double line_ns(const int64_t pair[2], bool pausing)
{
    struct court court = {.cpus = {pair[0], pair[1]}, .pausing = pausing};
    pthread_t asker, answerer;
    if (pthread_create(&answerer, NULL, answer, &court))
        return 0;
    if (!pthread_create(&asker, NULL, ask, &court))
        pthread_join(asker, NULL);
    atomic_store(&court.ping, over);
    pthread_join(answerer, NULL);
    return court.ns;
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

/* ---- who else is there ---- */

enum { PROCESSES = 4096 };

struct process {
    long pid;
    uint64_t ticks;
    char name[32];
};

struct census {
    size_t count;
    struct process all[PROCESSES];
};

static void count_process(void *arg, const char *name)
{
    struct census *census = arg;
    char text[512];
    struct process *process = &census->all[census->count];
    char *rest;
    long pid = strtol(name, &rest, 10);
    if (*rest || pid <= 0 || pid == getpid() || census->count == PROCESSES ||
        !system_line("", text, sizeof text, "/proc/%ld/stat", pid))
        return;
    /* A name may have brackets and blanks in it. */
    char *begin = strchr(text, '('), *end = strrchr(text, ')');
    uint64_t user, system;
    if (!begin || !end || end < begin ||
        sscanf(end + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64, &user,
               &system) != 2)
        return;
    *process = (struct process){.pid = pid, .ticks = user + system};
    snprintf(process->name, sizeof process->name, "%.*s", (int)(end - begin - 1), begin + 1);
    census->count++;
}

static struct census *take_census(void)
{
    struct census *census = malloc(sizeof *census);
    if (!census)
        return NULL;
    census->count = 0;
    system_each("", count_process, census, "/proc");
    return census;
}

static uint64_t ticks_ms(uint64_t ticks)
{
    long per_second = sysconf(_SC_CLK_TCK);
    return per_second > 0 ? ticks * 1000 / (uint64_t)per_second : 0;
}

/* Both are in the order of the pids. */
static void find_busiest(struct noise *noise, const struct census *before,
                         const struct census *after)
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

/* CPU time of the machine so far, ours left out. */
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
    struct census *first = take_census();
    uint64_t others = others_ms();
    interference_now(&before);
    watch_all(noise);
    interference_now(&after);
    uint64_t later = others_ms();
    struct census *second = take_census();
    noise->others_ms = later > others ? later - others : 0;
    interference_add(&sum, &before, &after);
    noise->steal_ms = sum.steal_ms;
    find_busiest(noise, first, second);
    free(first);
    free(second);
    if (usable > 1)
        noise->line_ns = lesser(line_ns(pair, false), line_ns(pair, true));
}
