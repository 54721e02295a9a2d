/* SPDX-License-Identifier: BSD-3-Clause */
/* How far a run is, on a terminal. Runs that are over within seconds need no such line. */
#include "tool/progress.h"
#include "core/clock.h"

#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { FIRST_MS = 1000, LEAST_MS = 2000, EVERY_MS = 250 };

static struct {
    pthread_mutex_t lock; /* while a thread shows that a run is set up */
    bool on, shown;
    uint64_t since_ms, said_ms;
} line = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct {
    pthread_t thread;
    int over; /* readable when the thread must end */
    bool on;
} setup;

static bool on_terminal(void)
{
    const char *terminal = getenv("TERM");
    return isatty(STDERR_FILENO) && terminal && strcmp(terminal, "dumb") != 0;
}

void progress_begin(void)
{
    progress_end();
    line.on = on_terminal();
    line.since_ms = line.said_ms = clock_ms();
}

/* A terminal that was stopped (Ctrl-S) must not stop the run. */
static bool takes_it(void)
{
    struct pollfd errors = {.fd = STDERR_FILENO, .events = POLLOUT};
    return poll(&errors, 1, 0) == 1 && errors.revents & POLLOUT;
}

static void put(const char *text)
{
    ssize_t n = write(STDERR_FILENO, text, strlen(text));
    (void)n; /* if nobody sees it, nobody misses it */
}

static void time_left(double seconds, char *text, size_t room)
{
    uint64_t s = (uint64_t)(seconds + 0.5);
    if (s < 60)
        snprintf(text, room, "%u s", (unsigned)s);
    else if (s < 3600)
        snprintf(text, room, "%u min %02u s", (unsigned)(s / 60), (unsigned)(s % 60));
    else
        snprintf(text, room, "%llu h %02u min", (unsigned long long)(s / 3600),
                 (unsigned)(s / 60 % 60));
}

/* A line that is wrapped cannot be taken back. */
static void show_within(const char *text)
{
    struct winsize size = {0};
    char shown[192];
    int most = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) || !size.ws_col ? 80 : size.ws_col;
    snprintf(shown, sizeof shown, "\r%.*s\033[K", most - 1, text);
    put(shown);
}

void progress_show(const struct progress *p)
{
    char text[160], left[32], which[48] = "";
    uint64_t now_ms = clock_ms(), past_ms = now_ms - line.since_ms;
    double share = p->share < 0 ? 0 : p->share > 1 ? 1 : p->share;
    if (!line.on || past_ms < FIRST_MS || now_ms - line.said_ms < EVERY_MS || !p->sizes)
        return;
    share = ((double)p->done + share) / (double)p->sizes;
    if (share <= 0 || (double)past_ms / share < LEAST_MS || !takes_it())
        return;
    line.said_ms = now_ms;
    line.shown = true;
    if (p->sizes > 1)
        snprintf(which, sizeof which, " (%u of %u)", p->done + 1, p->sizes);
    time_left((double)past_ms / 1000 * (1 - share) / share, left, sizeof left);
    snprintf(text, sizeof text, "size %" PRIu64 "%s: %.0f %% done, %s left", p->size, which,
             100 * share, left);
    show_within(text);
}

void progress_step(const char *what, uint64_t done, uint64_t all)
{
    char text[160], left[32], tail[48] = "";
    double past_s = (double)(clock_ms() - line.since_ms) / 1000;
    if (!line.on || !takes_it())
        return;
    time_left(done ? past_s / (double)done * (double)(all - done) : 0, left, sizeof left);
    if (done)
        snprintf(tail, sizeof tail, ", %s left", left);
    snprintf(text, sizeof text, "%s%s", what, tail);
    show_within(text);
    put("\r");
    line.shown = true;
}

void progress_clear(void)
{
    pthread_mutex_lock(&line.lock);
    if (line.shown)
        put("\r\033[K");
    line.shown = false;
    pthread_mutex_unlock(&line.lock);
}

/* ---- before a run begins ---- */

static void *show_setup(void *arg)
{
    struct pollfd over = {.fd = setup.over, .events = POLLIN};
    uint64_t since_ms = clock_ms();
    (void)arg;
    while (poll(&over, 1, FIRST_MS) != 1) {
        char text[64];
        snprintf(text, sizeof text, "setting up, %u s", (unsigned)((clock_ms() - since_ms) / 1000));
        pthread_mutex_lock(&line.lock);
        if (takes_it()) {
            show_within(text);
            line.shown = true;
        }
        pthread_mutex_unlock(&line.lock);
    }
    return NULL;
}

void progress_wait(void)
{
    sigset_t all, before;
    progress_end();
    if (!on_terminal() || (setup.over = eventfd(0, EFD_CLOEXEC)) < 0)
        return;
    /* Signals are for the thread that sets up. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    setup.on = !pthread_create(&setup.thread, NULL, show_setup, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!setup.on)
        close(setup.over);
}

void progress_end(void)
{
    if (setup.on) {
        eventfd_write(setup.over, 1);
        pthread_join(setup.thread, NULL);
        close(setup.over);
        setup.on = false;
    }
    progress_clear();
}
