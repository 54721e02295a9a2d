/* SPDX-License-Identifier: BSD-3-Clause */
/* A way out of calls that never return. The ends of libfabric's shm share spinlocks: a process that
 * is killed or stopped while it holds one leaves the other end spinning in the library. A thread
 * looks at the calls from time to time. One that lasts too long gets a signal, whose handler jumps
 * out of pthread_spin_lock, where nothing but the endpoint's own locks is held, and the endpoint is
 * given up. */
#include "fabric/ofi/ofi.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

enum {
    LOOK_MS = 200,
    AGAIN_MS = 20,
    GONE_MS = 100,                /* that a call may last once the other end's process is gone */
    SLOWEST_BYTES_PER_MS = 10000, /* a call may move a whole message */
    SPIN_BYTES = 128              /* of the code of pthread_spin_lock */
};

struct weft_ofi_guard {
    sigjmp_buf out;
    pthread_t caller, watcher;
    atomic_uint calls, left; /* odd: one is under way; the one that is to be left */
    int over;                /* readable when the watcher must end */
    uint64_t timeout_ms, bytes, pid;
    char born[32]; /* the start time of that process; "": it is not seen from here */
    struct weft_ofi_guard *next;
};

/* ---- the other end's process ---- */

/* Its state, and when it was started; ' ': there is none. */
static char state_of(uint64_t pid, char *born, size_t room)
{
    char path[64], line[1024] = "";
    snprintf(path, sizeof path, "/proc/%" PRIu64 "/stat", pid);
    FILE *file = fopen(path, "re");
    char *at = file && fgets(line, sizeof line, file) ? strrchr(line, ')') : NULL;
    if (file)
        fclose(file);
    *born = '\0';
    if (!at || !at[1] || !at[2])
        return ' ';
    char state = at[2], *rest = at + 1;
    for (int field = 2; field <= 22 && rest; field++) {
        const char *word = strsep(&rest, " ");
        snprintf(born, room, "%s", word);
    }
    return state;
}

enum life { UNSEEN, RUNNING, STOPPED, GONE };

static enum life life_of(const struct weft_ofi_guard *g)
{
    char born[sizeof g->born];
    char state = state_of(g->pid, born, sizeof born);
    if (!*g->born)
        return UNSEEN;
    if (strchr(" ZX", state) || strcmp(born, g->born) != 0)
        return GONE;
    return strchr("Tt", state) ? STOPPED : RUNNING;
}

bool weft_ofi_peer_runs(const struct weft_ofi *r)
{
    return !r->guard || life_of(r->guard) <= RUNNING;
}

/* ---- the signal ---- */

static int signal_number;

static bool spins(const void *context)
{
#if defined(__x86_64__)
    uintptr_t at = (uintptr_t)((const ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    uintptr_t at = (uintptr_t)((const ucontext_t *)context)->uc_mcontext.pc;
#else
    uintptr_t at = 0;
    (void)context;
#endif
    return at - (uintptr_t)pthread_spin_lock < SPIN_BYTES;
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    struct weft_ofi_guard *g = info->si_value.sival_ptr;
    (void)number;
    if (info->si_code == SI_QUEUE && info->si_pid == getpid() && spins(context) &&
        atomic_load(&g->calls) == atomic_load(&g->left))
        siglongjmp(g->out, 1);
}

/* One that nobody uses; the handler stays, since a signal may still be on its way. */
static void choose_signal(void)
{
    struct sigaction was, mine = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
    for (int number = SIGRTMAX; number > SIGRTMIN && !signal_number; number--)
        if (!sigaction(number, NULL, &was) && was.sa_handler == SIG_DFL &&
            !sigaction(number, &mine, NULL))
            signal_number = number;
}

static void unblock_signal(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signal_number);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

/* ---- the watcher ---- */

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* A process that runs lets go of its locks. */
static uint64_t limit_ms(const struct weft_ofi_guard *g)
{
    switch (life_of(g)) {
    case GONE:
        return GONE_MS;
    case STOPPED:
        return g->timeout_ms;
    case RUNNING:
        return UINT64_MAX;
    case UNSEEN:
        break;
    }
    return g->timeout_ms + g->bytes / SLOWEST_BYTES_PER_MS;
}

static void *watch(void *arg)
{
    struct weft_ofi_guard *g = arg;
    struct pollfd over = {.fd = g->over, .events = POLLIN};
    uint64_t since_ms = now_ms();
    unsigned seen = 0;
    int wait_ms = LOOK_MS;
    while (poll(&over, 1, wait_ms) != 1) {
        unsigned call = atomic_load(&g->calls);
        bool same = call % 2 && call == seen;
        wait_ms = same ? AGAIN_MS : LOOK_MS;
        if (!same) {
            seen = call;
            since_ms = now_ms();
        } else if (now_ms() - since_ms >= limit_ms(g)) {
            atomic_store(&g->left, call);
            pthread_sigqueue(g->caller, signal_number, (union sigval){.sival_ptr = g});
        }
    }
    return NULL;
}

/* The other threads' signals are none of its business. */
static int start(struct weft_ofi_guard *g)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    sigset_t all, before;
    pthread_once(&once, choose_signal);
    if (!signal_number)
        return EBUSY;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&g->watcher, NULL, watch, g);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!error)
        unblock_signal();
    return error;
}

void weft_ofi_guard_begin(struct weft_ofi *r, const struct fabric_meeting *meeting)
{
    enum { DEFAULT_MS = 10000 };
    struct weft_ofi_guard *g = calloc(1, sizeof *g);
    if (!g)
        return;
    g->timeout_ms = meeting->timeout_ms ? meeting->timeout_ms : DEFAULT_MS;
    g->pid = r->peer_pid;
    state_of(g->pid, g->born, sizeof g->born);
    for (int i = 0; i < r->remote_count; i++)
        g->bytes += r->remotes[i].length;
    g->over = eventfd(0, EFD_CLOEXEC);
    if (g->over >= 0 && !start(g)) {
        r->guard = g;
        return;
    }
    if (g->over >= 0)
        close(g->over);
    free(g);
}

/* Guards that were used: their signals may still be on their way. */
static _Atomic(struct weft_ofi_guard *) used;

static void keep(struct weft_ofi_guard *g)
{
    g->next = atomic_load(&used);
    while (!atomic_compare_exchange_weak(&used, &g->next, g))
        ;
}

void weft_ofi_guard_end(struct weft_ofi *r)
{
    struct weft_ofi_guard *g = r->guard;
    if (!g)
        return;
    eventfd_write(g->over, 1);
    pthread_join(g->watcher, NULL);
    close(g->over);
    r->guard = NULL;
    if (atomic_load(&g->left))
        keep(g);
    else
        free(g);
}

/* ---- calls ---- */

static inline void enter(struct weft_ofi_guard *g)
{
    g->caller = pthread_self();
    atomic_store_explicit(&g->calls, atomic_load_explicit(&g->calls, memory_order_relaxed) + 1,
                          memory_order_release);
}

static inline void leave(struct weft_ofi_guard *g)
{
    atomic_store_explicit(&g->calls, atomic_load_explicit(&g->calls, memory_order_relaxed) + 1,
                          memory_order_release);
}

static int lost(const struct weft_ofi *r)
{
    return weft_ofi_host->fail(-ECONNRESET, "ofi: the connection to the other end is lost: %s",
                               r->reason);
}

/* Out of the handler, which blocks its signal. */
static int jumped(struct weft_ofi *r)
{
    leave(r->guard);
    unblock_signal();
    r->stuck = true;
    r->todo |= TODO_LOST;
    snprintf(r->reason, sizeof r->reason, "its process %s with a lock of the shared memory",
             life_of(r->guard) == STOPPED ? "was stopped" : "ended");
    return lost(r);
}

int weft_ofi_guarded(struct weft_ofi *r, int (*call)(struct weft_ofi *r))
{
    if (!r->guard)
        return call(r);
    if (r->stuck)
        return lost(r);
    if (sigsetjmp(r->guard->out, 0))
        return jumped(r);
    enter(r->guard);
    int got = call(r);
    leave(r->guard);
    return got;
}

int weft_ofi_guarded_verb(struct weft_ofi *r,
                          int (*verb)(struct fabric *fabric, const struct xfer *x),
                          const struct xfer *x)
{
    if (r->stuck)
        return lost(r);
    if (sigsetjmp(r->guard->out, 0))
        return jumped(r);
    enter(r->guard);
    int got = verb(&r->fabric, x);
    leave(r->guard);
    return got;
}

int weft_ofi_guarded_poll(struct weft_ofi *r, struct completion *completions, int max)
{
    if (r->stuck)
        return lost(r);
    if (sigsetjmp(r->guard->out, 0))
        return jumped(r);
    enter(r->guard);
    int got = weft_ofi_poll(&r->fabric, completions, max);
    leave(r->guard);
    return got;
}
