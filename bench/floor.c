/* SPDX-License-Identifier: BSD-3-Clause */
/* The floors of this machine: what a figure of ours may at best be. One floor, one line, one run:
 * where a line or page lies can double a figure, so repeat whole processes and compare medians.
 * All that can fail is done before the fork, so the child only plays; the parent, on CPU B, has
 * the clock. Whether a wait should pause is the CPU's affair: both are tried, the better counts. */
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/core.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* Medians are the middle one, so what is sorted is odd in number. */
enum {
    DEADLINE_S = 20,
    BATCHES = 101,
    SAMPLES = 100001,
    LINE_ROUNDS = 10000,
    TCP_ROUNDS = 300,
    CLOCK_CALLS = 10000,
    CALIBRATION_NS = 100000000,
    COPY_BATCH_NS = 50000,
    COPY_TOTAL_NS = 500000000,
    COPY_BATCHES_MIN = 11,
    SAME_LINE_BYTES = 8, /* from the word that goes to the word that comes back */
    OTHER_LINE_BYTES = 128
};

struct asked {
    int cpu_a, cpu_b; /* the child's, the parent's */
    const char *argument;
    size_t apart_bytes; /* the floor's own, see the table */
};

/* ---- ending ----------------------------------------------------------------- */

static void quit(const char *what)
{
    fprintf(stderr, "floor: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void quit_late(int signal_number)
{
    static const char late[] = "floor: no end within 20 seconds\n";
    (void)signal_number;
    (void)!write(STDERR_FILENO, late, sizeof(late) - 1);
    _exit(1);
}

/* ---- samples ---------------------------------------------------------------- */

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static double median(double *samples, size_t count)
{
    qsort(samples, count, sizeof(*samples), compare);
    return samples[count / 2];
}

static double lesser(double a, double b)
{
    return a < b ? a : b;
}

static double *samples_alloc(size_t count)
{
    double *samples = malloc(count * sizeof(*samples));
    if (!samples)
        quit("samples");
    memset(samples, 0, count * sizeof(*samples)); /* the timed loops are to meet no page fault */
    return samples;
}

static void print_ns(double ns)
{
    printf("%.1f ns\n", ns);
}

/* ---- clocks ----------------------------------------------------------------- */

static double cycles_ps_per_tick(void)
{
    uint64_t start_ns = clock_raw_ns(), start = clock_cycles(), now_ns;
    do
        now_ns = clock_raw_ns();
    while (now_ns - start_ns < CALIBRATION_NS);
    return (double)(now_ns - start_ns) * 1000 / (double)(clock_cycles() - start);
}

static struct clock clock_asked(const struct asked *asked)
{
    struct clock clock = {.kind = CLOCK_GETTIME, .ps_per_tick = 1000};
    if (asked->argument) {
        clock.kind = CLOCK_CYCLES;
        clock.ps_per_tick = cycles_ps_per_tick();
    }
    return clock;
}

/* What two reads back to back show; the median. */
static double clock_pair_ns(const struct clock *clock)
{
    double *samples = samples_alloc(SAMPLES);
    for (size_t i = 0; i < SAMPLES; i++) {
        uint64_t start = clock_read(clock);
        samples[i] = (double)(clock_read(clock) - start);
    }
    double pair_ns = median(samples, SAMPLES) * clock->ps_per_tick / 1000;
    free(samples);
    return pair_ns;
}

static void floor_clock(const struct asked *asked)
{
    struct clock clock = clock_asked(asked);
    print_ns(clock_pair_ns(&clock));
}

/* What one read costs whoever makes many. */
static void floor_clock_call(const struct asked *asked)
{
    struct clock clock = clock_asked(asked);
    double batches[BATCHES];
    for (size_t batch = 0; batch < BATCHES; batch++) {
        uint64_t start_ns = clock_raw_ns();
        for (int call = 0; call < CLOCK_CALLS; call++)
            (void)clock_read(&clock);
        batches[batch] = (double)(clock_raw_ns() - start_ns) / CLOCK_CALLS;
    }
    print_ns(median(batches, BATCHES));
}

/* ---- two processes ---------------------------------------------------------- */

/* What the two ends share: two words, or two sockets. */
struct pair {
    _Atomic uint64_t *ping, *pong;
    bool pausing;
    int parent_fd, child_fd;
};

/* Plays rounds first + 1 ... first + count. */
typedef void play_function(const struct pair *pair, uint64_t first, uint64_t count);

static void pin(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof(set), &set) < 0) {
        fprintf(stderr, "floor: CPU %d: %s\n", cpu, strerror(errno));
        exit(1);
    }
}

static pid_t child_start(const struct asked *asked, const struct pair *pair, play_function *answer,
                         uint64_t rounds)
{
    pid_t parent = getpid();
    if (asked->cpu_a == asked->cpu_b) {
        fprintf(stderr, "floor: two CPUs are needed, only CPU %d is ours\n", asked->cpu_a);
        exit(1);
    }
    pin(asked->cpu_a);
    pid_t child = fork();
    if (child < 0)
        quit("fork");
    if (child == 0) {
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
            _exit(1);
        answer(pair, 0, rounds);
        _exit(0);
    }
    pin(asked->cpu_b);
    return child;
}

static void child_end(pid_t child)
{
    int status;
    if (waitpid(child, &status, 0) < 0)
        quit("waitpid");
    if (status != 0) {
        fprintf(stderr, "floor: the other process failed, status 0x%x\n", (unsigned)status);
        exit(1);
    }
}

/* Half a round trip, no clock in the loop: the median over batches. The first batch warms up. */
static double half_round_ns(const struct asked *asked, const struct pair *pair, play_function *ask,
                            play_function *answer, uint64_t rounds)
{
    double batches[BATCHES];
    pid_t child = child_start(asked, pair, answer, rounds * (BATCHES + 1));
    ask(pair, 0, rounds);
    for (uint64_t batch = 0; batch < BATCHES; batch++) {
        uint64_t start_ns = clock_raw_ns();
        ask(pair, rounds * (batch + 1), rounds);
        batches[batch] = (double)(clock_raw_ns() - start_ns) / (double)(2 * rounds);
    }
    child_end(child);
    return median(batches, BATCHES);
}

/* ---- memory ----------------------------------------------------------------- */

static void *shared_alloc(size_t size_bytes)
{
    int fd = memfd_create("floor", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, (off_t)size_bytes) < 0)
        quit("memfd");
    void *memory = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED)
        quit("mmap");
    if (madvise(memory, size_bytes, MADV_POPULATE_WRITE) < 0) {
        if (errno != EINVAL) /* that is a kernel before 5.14 */
            quit("populate");
        memset(memory, 0, size_bytes);
    }
    close(fd);
    return memory;
}

static double copies_ns(void *to, const void *from, size_t size_bytes, uint64_t copies)
{
    uint64_t start_ns = clock_raw_ns();
    for (uint64_t copy = 0; copy < copies; copy++) {
        memcpy(to, from, size_bytes);
        __asm__ volatile("" : : "r"(to), "r"(from) : "memory");
    }
    return (double)(clock_raw_ns() - start_ns);
}

static size_t size_asked(const struct asked *asked)
{
    char *end;
    errno = 0;
    unsigned long long size_bytes = strtoull(asked->argument, &end, 10);
    if (errno || *end || asked->argument[0] < '0' || asked->argument[0] > '9' || size_bytes == 0 ||
        size_bytes > SSIZE_MAX) {
        fprintf(stderr, "floor: not a size in bytes: %s\n", asked->argument);
        exit(2);
    }
    return (size_t)size_bytes;
}

/* Copies are batched until the clock is negligible; a big one is a batch by itself. */
static void floor_memcpy(const struct asked *asked)
{
    size_t size_bytes = size_asked(asked);
    void *to = shared_alloc(size_bytes), *from = shared_alloc(size_bytes);
    uint64_t copies = 1;
    double batch_ns;
    (void)copies_ns(to, from, size_bytes, copies); /* warms up */
    while ((batch_ns = copies_ns(to, from, size_bytes, copies)) < COPY_BATCH_NS)
        copies *= 2;
    size_t batches = (size_t)(COPY_TOTAL_NS / batch_ns) | 1;
    batches = batches < COPY_BATCHES_MIN ? COPY_BATCHES_MIN : batches;
    double *samples = samples_alloc(batches);
    for (size_t batch = 0; batch < batches; batch++)
        samples[batch] = copies_ns(to, from, size_bytes, copies) / (double)copies;
    double copy_ns = median(samples, batches);
    printf("%.1f ns %.2f GB/s\n", copy_ns, (double)size_bytes / copy_ns);
    free(samples);
}

/* ---- cache lines ------------------------------------------------------------ */

static inline void word_put(_Atomic uint64_t *word, uint64_t value)
{
    atomic_store_explicit(word, value, memory_order_release);
}

static inline void word_await(_Atomic uint64_t *word, uint64_t value, bool pausing)
{
    while (atomic_load_explicit(word, memory_order_acquire) != value)
        if (pausing)
            cpu_relax();
}

/* Pausing is a constant to these, so that neither loop carries the other's branch. */
static inline __attribute__((always_inline)) void
line_ask_by(const struct pair *pair, uint64_t first, uint64_t count, bool pausing)
{
    for (uint64_t round = first + 1; round <= first + count; round++) {
        word_put(pair->ping, round);
        word_await(pair->pong, round, pausing);
    }
}

static inline __attribute__((always_inline)) void
line_answer_by(const struct pair *pair, uint64_t first, uint64_t count, bool pausing)
{
    for (uint64_t round = first + 1; round <= first + count; round++) {
        word_await(pair->ping, round, pausing);
        word_put(pair->pong, round);
    }
}

static void line_ask(const struct pair *pair, uint64_t first, uint64_t count)
{
    if (pair->pausing)
        line_ask_by(pair, first, count, true);
    else
        line_ask_by(pair, first, count, false);
}

static void line_answer(const struct pair *pair, uint64_t first, uint64_t count)
{
    if (pair->pausing)
        line_answer_by(pair, first, count, true);
    else
        line_answer_by(pair, first, count, false);
}

static struct pair pair_of_words(size_t apart_bytes, bool pausing)
{
    char *page = shared_alloc((size_t)sysconf(_SC_PAGESIZE));
    return (struct pair){.ping = (_Atomic uint64_t *)(void *)page,
                         .pong = (_Atomic uint64_t *)(void *)(page + apart_bytes),
                         .pausing = pausing};
}

static double line_ns(const struct asked *asked, bool pausing)
{
    struct pair pair = pair_of_words(asked->apart_bytes, pausing);
    return half_round_ns(asked, &pair, line_ask, line_answer, LINE_ROUNDS);
}

/* The same as a tool would time it: two reads of the clock a round, their cost taken off once. */
static double line_clocked_ns(const struct asked *asked, bool pausing)
{
    struct clock clock = {.kind = CLOCK_GETTIME, .ps_per_tick = 1000};
    struct pair pair = pair_of_words(asked->apart_bytes, pausing);
    double *samples = samples_alloc(SAMPLES), clocks_ns = clock_pair_ns(&clock);
    pid_t child = child_start(asked, &pair, line_answer, LINE_ROUNDS + SAMPLES);
    line_ask(&pair, 0, LINE_ROUNDS);
    for (uint64_t i = 0; i < SAMPLES; i++) {
        uint64_t start_ns = clock_raw_ns();
        line_ask(&pair, LINE_ROUNDS + i, 1);
        samples[i] = (double)(clock_raw_ns() - start_ns);
    }
    child_end(child);
    double round_ns = median(samples, SAMPLES) - clocks_ns;
    free(samples);
    return round_ns > 0 ? round_ns / 2 : 0;
}

static void floor_line(const struct asked *asked)
{
    print_ns(lesser(line_ns(asked, false), line_ns(asked, true)));
}

static void floor_line_clock(const struct asked *asked)
{
    print_ns(lesser(line_clocked_ns(asked, false), line_clocked_ns(asked, true)));
}

/* ---- TCP -------------------------------------------------------------------- */

/* Connects to ourselves over the loopback, both ends in hand before the fork. */
static struct pair pair_of_sockets(void)
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(name);
    struct pair pair = {.parent_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    int one = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&name, length) < 0 ||
        listen(listener, 1) < 0 || getsockname(listener, (struct sockaddr *)&name, &length) < 0)
        quit("listen");
    if (pair.parent_fd < 0 || connect(pair.parent_fd, (struct sockaddr *)&name, length) < 0)
        quit("connect");
    pair.child_fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (pair.child_fd < 0)
        quit("accept");
    if (setsockopt(pair.parent_fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) < 0 ||
        setsockopt(pair.child_fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) < 0)
        quit("TCP_NODELAY");
    close(listener);
    return pair;
}

static void word_send(int fd, uint64_t word)
{
    if (send(fd, &word, sizeof(word), MSG_NOSIGNAL) != (ssize_t)sizeof(word))
        quit("send");
}

static uint64_t word_receive(int fd)
{
    uint64_t word = 0;
    size_t have = 0;
    while (have < sizeof(word)) {
        ssize_t got = recv(fd, (char *)&word + have, sizeof(word) - have, MSG_DONTWAIT);
        if (got > 0)
            have += (size_t)got;
        else if (got == 0 || errno != EAGAIN)
            quit("receive");
    }
    return word;
}

static void tcp_ask(const struct pair *pair, uint64_t first, uint64_t count)
{
    for (uint64_t round = first + 1; round <= first + count; round++) {
        word_send(pair->parent_fd, round);
        (void)word_receive(pair->parent_fd);
    }
}

static void tcp_answer(const struct pair *pair, uint64_t first, uint64_t count)
{
    for (uint64_t round = first + 1; round <= first + count; round++)
        word_send(pair->child_fd, word_receive(pair->child_fd));
}

static void floor_tcp(const struct asked *asked)
{
    struct pair pair = pair_of_sockets();
    print_ns(half_round_ns(asked, &pair, tcp_ask, tcp_answer, TCP_ROUNDS));
}

/* ---- the command line ------------------------------------------------------- */

enum argument { NO_ARGUMENT, SIZE, MAYBE_CYCLES };

static const struct floor {
    const char *name;
    enum argument argument;
    size_t apart_bytes;
    void (*measure)(const struct asked *asked);
    const char *help;
} floors[] = {
    {"line", NO_ARGUMENT, SAME_LINE_BYTES, floor_line, "one cache line, half a round trip"},
    {"line-clock", NO_ARGUMENT, SAME_LINE_BYTES, floor_line_clock, "the same, each round timed"},
    {"two-lines", NO_ARGUMENT, OTHER_LINE_BYTES, floor_line, "a line a direction"},
    {"two-lines-clock", NO_ARGUMENT, OTHER_LINE_BYTES, floor_line_clock, "each round timed"},
    {"memcpy", SIZE, 0, floor_memcpy, "bytes from one shared memory to another"},
    {"tcp", NO_ARGUMENT, 0, floor_tcp, "8 bytes over the loopback, half a round trip"},
    {"clock", MAYBE_CYCLES, 0, floor_clock, "what two reads back to back show"},
    {"clock-call", MAYBE_CYCLES, 0, floor_clock_call, "what one read of many costs"},
};

static void usage(void)
{
    static const char *const words[] = {"", " SIZE", " [cycles]"};
    fputs("usage: floor [--cpu A,B] FLOOR; B has the clock, A answers\n", stderr);
    for (size_t i = 0; i < LENGTH(floors); i++)
        fprintf(stderr, "  %s%s: %s\n", floors[i].name, words[floors[i].argument], floors[i].help);
    exit(2);
}

static const struct floor *floor_find(const char *name)
{
    for (size_t i = 0; i < LENGTH(floors); i++)
        if (strcmp(floors[i].name, name) == 0)
            return &floors[i];
    usage();
    return NULL;
}

static void cpus_parse(struct asked *asked, const char *text)
{
    char junk;
    if (sscanf(text, "%d,%d%c", &asked->cpu_a, &asked->cpu_b, &junk) != 2 || asked->cpu_a < 0 ||
        asked->cpu_b < 0 || asked->cpu_a >= CPU_SETSIZE || asked->cpu_b >= CPU_SETSIZE ||
        asked->cpu_a == asked->cpu_b) {
        fprintf(stderr, "floor: not two CPUs, as in 0,1: %s\n", text);
        exit(2);
    }
}

/* Without a request: the first two we may run on. */
static void cpus_choose(struct asked *asked)
{
    cpu_set_t set;
    int found = 0, cpus[2] = {0};
    if (sched_getaffinity(0, sizeof(set), &set) < 0)
        quit("affinity");
    for (int cpu = 0; cpu < CPU_SETSIZE && found < 2; cpu++)
        if (CPU_ISSET(cpu, &set))
            cpus[found++] = cpu;
    asked->cpu_a = cpus[0];
    asked->cpu_b = found == 2 ? cpus[1] : cpus[0];
}

static void argument_check(const struct floor *floor, const struct asked *asked)
{
    const char *word = asked->argument;
    if ((floor->argument == NO_ARGUMENT && word) || (floor->argument == SIZE && !word) ||
        (floor->argument == MAYBE_CYCLES && word && strcmp(word, "cycles") != 0))
        usage();
}

int main(int argc, char **argv)
{
    struct asked asked = {0};
    if (argc > 2 && strcmp(argv[1], "--cpu") == 0) {
        cpus_parse(&asked, argv[2]);
        argv += 2;
        argc -= 2;
    } else {
        cpus_choose(&asked);
    }
    if (argc < 2 || argc > 3)
        usage();
    const struct floor *floor = floor_find(argv[1]);
    asked.argument = argv[2];
    asked.apart_bytes = floor->apart_bytes;
    argument_check(floor, &asked);
    signal(SIGALRM, quit_late);
    alarm(DEADLINE_S);
    pin(asked.cpu_b);
    floor->measure(&asked);
    return 0;
}
