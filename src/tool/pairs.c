/* SPDX-License-Identifier: BSD-3-Clause */
/* Several pairs of processes. Nothing here is timed: between two meetings the page is not touched.
 * A process that a vendor's library was loaded into must not fork, so the others are started by
 * exec, with the same command line and their place in WEFT_PAIR. */
#include "core/child.h"
#include "core/clock.h"
#include "tool/pairs_page.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LOOK_MS = 20, BEGIN_MS = 10000, STOP_MS = 3000, FAILED_MS = 1000 };
static const char place_name[] = "WEFT_PAIR";

/* ---- the page ---- */

static size_t page_length(unsigned count)
{
    return sizeof(struct pairs_page) + count * sizeof(struct pairs_slot);
}

static int map(struct pairs *p, size_t length)
{
    void *page = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, p->fd, 0);
    if (page == MAP_FAILED)
        return fail(-ENOMEM, "no memory for %u pairs: %s", p->count, strerror(errno));
    p->page = page;
    return 0;
}

static void drop(struct pairs *p)
{
    if (p->page)
        munmap(p->page, p->page->length);
    if (p->fd >= 0)
        close(p->fd);
    if (p->merged)
        stats_close(p->merged);
    free(p->counters);
    p->page = NULL;
    p->merged = NULL;
    p->counters = NULL;
    p->fd = -1;
    p->number = p->count = 0;
}

int pairs_open(struct pairs *p, unsigned count, char **argv)
{
    size_t length = page_length(count);
    *p = (struct pairs){.report = {&pairs_ops},
                        .count = count,
                        .devices = 1,
                        .argv = argv,
                        .connection = -1,
                        .fd = memfd_create("weft-pairs", MFD_CLOEXEC)};
    int status = p->fd < 0 || ftruncate(p->fd, (off_t)length)
                     ? fail(-errno, "no memory for %u pairs: %s", count, strerror(errno))
                     : map(p, length);
    if (!status)
        status = stats_open(&p->merged, 0);
    p->counters = calloc((size_t)2 * count, sizeof *p->counters);
    if (!status && !p->counters)
        status = fail(-ENOMEM, "no memory for %u pairs", count);
    if (status) {
        drop(p);
        return status;
    }
    p->page->length = length;
    p->page->count = count;
    p->page->parent = getpid();
    return random_digits(p->page->ticket, sizeof p->page->ticket);
}

/* The page is our parent's, or WEFT_PAIR is somebody's mistake. */
static bool fits(const struct pairs *p, size_t length)
{
    const struct pairs_page *page = p->page;
    return page->length == length && page->count >= 1 && page->count <= PAIRS_MOST &&
           length == page_length(page->count) && p->number < page->count && p->number;
}

int pairs_join(struct pairs *p)
{
    struct stat facts;
    const char *place = secure_getenv(place_name);
    *p = (struct pairs){.report = {&pairs_ops}, .fd = -1, .connection = -1};
    if (!place)
        return 0;
    if (sscanf(place, "%u %d %d", &p->number, &p->fd, &p->connection) != 3 ||
        fstat(p->fd, &facts) || facts.st_size < (off_t)sizeof *p->page ||
        map(p, (size_t)facts.st_size))
        return fail(-EINVAL, "%s is set by Weft alone: unset it", place_name);
    if (!fits(p, (size_t)facts.st_size))
        return fail(-EINVAL, "%s is set by Weft alone: unset it", place_name);
    unsetenv(place_name);
    fcntl(p->fd, F_SETFD, FD_CLOEXEC);
    if (p->connection >= 0)
        fcntl(p->connection, F_SETFD, FD_CLOEXEC);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != p->page->parent)
        _exit(1);
    p->count = p->page->count;
    p->timeout_ms = p->page->timeout_ms;
    return 1;
}

void pairs_share(struct pairs *p, const struct access *access, const char *address, unsigned port)
{
    struct pairs_page *page = p->page;
    page->held = access->held;
    page->secret = access->secret;
    page->port = port;
    snprintf(page->address, sizeof page->address, "%s", address);
}

void pairs_access(const struct pairs *p, struct access *access)
{
    access->held = p->page->held;
    access->secret = p->page->secret;
}

const char *pairs_place(const struct pairs *p, unsigned *port)
{
    *port = p->page->port;
    return p->page->address;
}

void pairs_assign(struct pairs *p, unsigned number, int64_t cpu, const char *device)
{
    struct pairs_slot *slot = &p->page->slots[number];
    slot->cpu = cpu;
    snprintf(slot->device, sizeof slot->device, "%s", device);
}

int64_t pairs_cpu(const struct pairs *p)
{
    return pairs_own(p)->cpu;
}

char *pairs_ticket(struct pairs *p)
{
    return p->page->ticket;
}

/* ---- processes ---- */

static int start(struct pairs *p, unsigned number, int connection)
{
    posix_spawn_file_actions_t actions;
    char place[64];
    snprintf(place, sizeof place, "%u %d %d", number, p->fd, connection);
    p->page->timeout_ms = p->timeout_ms;
    p->page->begun_ms = clock_ms();
    int error = setenv(place_name, place, 1) ? errno : posix_spawn_file_actions_init(&actions);
    if (error)
        return fail(-error, "pair %u: %s", number, strerror(error));
    /* Onto itself: it is inherited. */
    error = posix_spawn_file_actions_adddup2(&actions, p->fd, p->fd);
    if (!error && connection >= 0)
        error = posix_spawn_file_actions_adddup2(&actions, connection, connection);
    if (!error)
        error = posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    if (!error)
        error =
            posix_spawn(&p->children[number], "/proc/self/exe", &actions, NULL, p->argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    unsetenv(place_name);
    return error ? fail(-error, "pair %u: %s", number, strerror(error)) : 0;
}

int pairs_start(struct pairs *p)
{
    int status = 0;
    for (unsigned i = 1; i < p->count && !status; i++)
        status = start(p, i, -1);
    return status;
}

int pairs_gather(struct pairs *p, struct listener *listener, const struct peer_terms *terms,
                 struct peer *first)
{
    bool taken[PAIRS_MOST] = {false};
    int status = 0;
    for (unsigned i = 1; i < p->count && !status; i++) {
        unsigned number;
        int fd;
        status =
            tcp_collect(listener, terms, first, p->page->ticket, taken, p->count, &number, &fd);
        if (!status) {
            status = start(p, number, fd);
            close(fd);
        }
    }
    return status;
}

/* ---- failures ---- */

int pairs_lose(struct pairs *p, unsigned by, int status)
{
    struct pairs_page *page = p->page;
    int nobody = NOBODY;
    if (atomic_compare_exchange_strong(&page->lost, &nobody, CLAIMED)) {
        page->status = status;
        page->by = by;
        snprintf(page->why, sizeof page->why, "%s", fail_reason());
        atomic_store(&page->lost, LOST);
    }
    return status;
}

int pairs_reason(const struct pairs *p)
{
    const struct pairs_page *page = p->page;
    if (page->by == p->number || page->status == -EINTR)
        return fail(page->status, "%s", page->why);
    return fail(page->status, "pair %u: %s", page->by, page->why);
}

/* Pair 0: has the process of another ended before its work did? */
static int look_at_child(struct pairs *p, unsigned number)
{
    int how;
    pid_t child = p->children[number];
    if (!child || waitpid(child, &how, WNOHANG) != child)
        return 0;
    p->children[number] = 0;
    if (atomic_load(&p->page->slots[number].over) || atomic_load(&p->page->lost) != NOBODY)
        return 0;
    fail(-ECONNRESET, "lost its process here, which ended");
    return pairs_lose(p, number, -ECONNRESET);
}

static int look_at_pair(struct pairs *p, unsigned number, uint64_t now_ms)
{
    const struct pairs_slot *slot = &p->page->slots[number];
    uint64_t seen_ms = atomic_load(&slot->seen_ms), most_ms = p->timeout_ms;
    if (!seen_ms && most_ms < BEGIN_MS)
        most_ms = BEGIN_MS;
    seen_ms = seen_ms ? seen_ms : p->page->begun_ms;
    if (!seen_ms || now_ms < seen_ms || now_ms - seen_ms <= most_ms || atomic_load(&slot->over))
        return 0;
    fail(-ETIMEDOUT, "no sign of life of its process here for %g s", (double)most_ms / 1000);
    return pairs_lose(p, number, -ETIMEDOUT);
}

int pairs_watch(void *arg)
{
    struct pairs *p = arg;
    uint64_t now_ms = clock_ms();
    if (!p->page)
        return 0;
    atomic_store(&pairs_own(p)->seen_ms, now_ms);
    /* A keepalive's thread may ask too: one of the two looks. */
    uint64_t looked_ms = __atomic_load_n(&p->looked_ms, __ATOMIC_RELAXED);
    bool due = now_ms - looked_ms >= LOOK_MS &&
               __atomic_compare_exchange_n(&p->looked_ms, &looked_ms, now_ms, false,
                                           __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < p->count && due; i++) {
        look_at_child(p, i);
        if (i != p->number)
            look_at_pair(p, i, now_ms);
    }
    return atomic_load(&p->page->lost) == LOST ? pairs_reason(p) : 0;
}

/* ---- the end ---- */

bool pairs_rests(const struct pairs *p, unsigned number)
{
    siginfo_t facts = {.si_pid = 0};
    pid_t child = p->children[number];
    return !child || (!waitid(P_PID, (id_t)child, &facts, WSTOPPED | WNOHANG | WNOWAIT) &&
                      facts.si_pid == child && facts.si_code == CLD_STOPPED);
}

static void end_child(struct pairs *p, unsigned number, uint64_t until_ms)
{
    pid_t child = p->children[number];
    uint64_t now_ms = clock_ms(), most_ms = until_ms > now_ms ? until_ms - now_ms : 1;
    if (!child || child_wait(child, pairs_rests(p, number) ? 1 : most_ms) != -1)
        return;
    kill(child, SIGKILL);
    child_wait(child, CHILD_KILLED_MS);
    fail(-ETIMEDOUT, "its process here did not end");
    pairs_lose(p, number, -ETIMEDOUT);
}

int pairs_close(struct pairs *p, int status)
{
    if (!p->page)
        return status;
    uint64_t until_ms = clock_ms() + (status ? FAILED_MS : STOP_MS);
    if (status)
        pairs_lose(p, p->number, status);
    else
        atomic_store(&pairs_own(p)->over, true);
    for (unsigned i = 1; i < p->count && !p->number; i++)
        end_child(p, i, until_ms);
    if (!p->number && atomic_load(&p->page->lost) == LOST)
        status = pairs_reason(p);
    drop(p);
    return status;
}
