/* SPDX-License-Identifier: BSD-3-Clause */
/* Several pairs of processes. Nothing here is timed: between two meetings the page is not touched.
 * A process that a vendor's library was loaded into must not fork, so the others are started by
 * exec, with the same command line and their place in WEFT_PAIR. */
#include "tool/pairs.h"
#include "core/child.h"
#include "core/clock.h"

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

enum { STOP_MS = 3000, FAILED_MS = 1000 };
static const char place_name[] = "WEFT_PAIR";

/* ---- the page ---- */

/* What the processes of an end share. */
struct pairs_page {
    uint64_t length, timeout_ms;
    pid_t parent;
    char address[256], ticket[PEER_TICKET];
    unsigned port;
    bool held;
    struct secret secret;
    struct team team;
};

static size_t page_length(unsigned count)
{
    return offsetof(struct pairs_page, team) + team_bytes(count);
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
    team_quit(&p->member);
    p->page = NULL;
    p->fd = -1;
    p->member.number = p->count = 0;
}

static void look_at_child(struct team_member *member, unsigned number);
static bool rests(const struct team_member *member, unsigned number);

int pairs_open(struct pairs *p, unsigned count, char **argv)
{
    size_t length = page_length(count);
    *p = (struct pairs){.member = {.look = look_at_child, .rests = rests},
                        .count = count,
                        .argv = argv,
                        .connection = -1,
                        .fd = memfd_create("weft-pairs", MFD_CLOEXEC)};
    int status = p->fd < 0 || ftruncate(p->fd, (off_t)length)
                     ? fail(-errno, "no memory for %u pairs: %s", count, strerror(errno))
                     : map(p, length);
    if (!status) {
        p->page->length = length;
        p->page->team.count = count;
        p->page->parent = getpid();
        status = team_join(&p->member, &p->page->team, 0);
    }
    if (status) {
        drop(p);
        return status;
    }
    return random_digits(p->page->ticket, sizeof p->page->ticket);
}

/* The page is our parent's, or WEFT_PAIR is somebody's mistake. */
static bool fits(const struct pairs *p, size_t length, unsigned number)
{
    const struct pairs_page *page = p->page;
    return page->length == length && page->team.count >= 1 && page->team.count <= TEAM_MOST &&
           length == page_length(page->team.count) && number < page->team.count && number;
}

int pairs_join(struct pairs *p)
{
    struct stat facts;
    const char *place = secure_getenv(place_name);
    unsigned number;
    *p = (struct pairs){.fd = -1, .connection = -1};
    if (!place)
        return 0;
    if (sscanf(place, "%u %d %d", &number, &p->fd, &p->connection) != 3 || fstat(p->fd, &facts) ||
        facts.st_size < (off_t)sizeof *p->page || map(p, (size_t)facts.st_size))
        return fail(-EINVAL, "%s is set by Weft alone: unset it", place_name);
    if (!fits(p, (size_t)facts.st_size, number))
        return fail(-EINVAL, "%s is set by Weft alone: unset it", place_name);
    unsetenv(place_name);
    fcntl(p->fd, F_SETFD, FD_CLOEXEC);
    if (p->connection >= 0)
        fcntl(p->connection, F_SETFD, FD_CLOEXEC);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != p->page->parent)
        _exit(1);
    p->count = p->page->team.count;
    p->member.timeout_ms = p->page->timeout_ms;
    int status = team_join(&p->member, &p->page->team, number);
    return status ? status : 1;
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
    struct team_slot *slot = &p->page->team.slots[number];
    slot->cpu = cpu;
    snprintf(slot->device, sizeof slot->device, "%s", device);
}

int64_t pairs_cpu(const struct pairs *p)
{
    return team_own(&p->member)->cpu;
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
    p->page->timeout_ms = p->member.timeout_ms;
    p->page->team.begun_ms = clock_ms();
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
    bool taken[TEAM_MOST] = {false};
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

/* Pair 0: has the process of another ended before its work did? */
static void look_at_child(struct team_member *member, unsigned number)
{
    struct pairs *p = (struct pairs *)member;
    int how;
    pid_t child = p->children[number];
    if (!child || waitpid(child, &how, WNOHANG) != child)
        return;
    p->children[number] = 0;
    if (atomic_load(&member->team->slots[number].over))
        return;
    fail(-ECONNRESET, "lost its process here, which ended");
    team_lose(member, number, -ECONNRESET);
}

/* ---- the end ---- */

/* Has it ended, or was it stopped? */
static bool rests(const struct team_member *member, unsigned number)
{
    const struct pairs *p = (const struct pairs *)member;
    siginfo_t facts = {.si_pid = 0};
    pid_t child = p->children[number];
    return !child || (!waitid(P_PID, (id_t)child, &facts, WSTOPPED | WNOHANG | WNOWAIT) &&
                      facts.si_pid == child && facts.si_code == CLD_STOPPED);
}

static void end_child(struct pairs *p, unsigned number, uint64_t until_ms)
{
    pid_t child = p->children[number];
    uint64_t now_ms = clock_ms(), most_ms = until_ms > now_ms ? until_ms - now_ms : 1;
    if (!child || child_wait(child, rests(&p->member, number) ? 1 : most_ms) != -1)
        return;
    kill(child, SIGKILL);
    child_wait(child, CHILD_KILLED_MS);
    fail(-ETIMEDOUT, "its process here did not end");
    team_lose(&p->member, number, -ETIMEDOUT);
}

int pairs_close(struct pairs *p, int status)
{
    if (!p->page)
        return status;
    uint64_t until_ms = clock_ms() + (status ? FAILED_MS : STOP_MS);
    if (status)
        team_lose(&p->member, p->member.number, status);
    else
        atomic_store(&team_own(&p->member)->over, true);
    for (unsigned i = 1; i < p->count && !p->member.number; i++)
        end_child(p, i, until_ms);
    if (!p->member.number)
        team_lost(&p->member, &status);
    drop(p);
    return status;
}
