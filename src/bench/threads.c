/* SPDX-License-Identifier: BSD-3-Clause */
/* Several threads of an end: each has a session with the thread of the same number at the other
 * end, over a share of the one connection. The caller's thread is number 0 and agrees with the
 * other end for all; the others open what it has opened, are ready before the run is agreed on, and
 * last as long as the session. They are a team. */
#include "bench/run.h"
#include "bench/team.h"
#include "core/cpu.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LOOK_MS = 20, HANGS_MS = 3000, CLOSE_MS = 60000 };
enum step { STEP_READY, STEP_MEASURE, STEP_END };

struct worker {
    struct threads *all;
    unsigned number;
    pthread_t thread;
    struct team_member member;
    struct session session; /* of those other than 0 */
    unsigned did;           /* turns */
    int status;             /* of the last one */
    char why[TEAM_REASON];
};

struct threads {
    struct session *first;
    struct peer *whole;
    struct peer_shares *shares;
    struct team *team;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned turn; /* a step is asked for, of all but the first */
    enum step step;
    struct spec spec;
    char memory[SESSION_MEMORY];
    unsigned count, made;
    struct worker workers[];
};

/* ---- CPUs ---- */

/* Which were allowed before, and the NIC's. */
struct session_near {
    cpu_set_t before;
    char device[sizeof((struct fabric_facts *)0)->device];
    struct cpu_list list;
};

/* The CPUs of the NIC's NUMA node; this thread is on the first of them. */
static int go_near(struct session *s, struct session_near *near)
{
    char name[sizeof near->device], cpus[512];
    snprintf(near->device, sizeof near->device, "%s", s->facts.device);
    snprintf(name, sizeof name, "%.*s", (int)strcspn(near->device, ":"), near->device);
    sched_setaffinity(0, sizeof near->before, &near->before);
    near->list.count = cpu_near("", name, cpus, sizeof cpus)
                           ? cpu_choices("", cpus, near->list.cpus, LENGTH(near->list.cpus))
                           : 0;
    s->cpu.of_threads = near->list.count ? &near->list : NULL;
    if (near->list.count)
        return cpu_pin(near->list.cpus[0]);
    warn("--cpu near has no effect: the NUMA node of %s is not known",
         *name ? name : s->facts.form);
    return 0;
}

int session_pin(struct session *s, const struct cpu_list *asked)
{
    struct session_near *near = s->cpu.near;
    s->cpu.of_threads = asked && asked->count ? asked : NULL;
    if (!asked || !asked->near)
        return 0;
    if (near && strcmp(near->device, s->facts.device) == 0) {
        s->cpu.of_threads = near->list.count ? &near->list : NULL;
        return 0;
    }
    if (!near) {
        s->cpu.near = near = calloc(1, sizeof *near);
        if (!near || sched_getaffinity(0, sizeof near->before, &near->before))
            return fail(-ENOMEM, "no memory for a list of CPUs");
    }
    return go_near(s, near);
}

/* ---- what each of them does ---- */

static int pin(const struct worker *w)
{
    const struct cpu_list *cpus = w->all->first->cpu.of_threads;
    return cpus ? cpu_pin(cpus->cpus[w->number % cpus->count]) : 0;
}

/* What the first has opened, once more. */
static int get_ready(struct worker *w)
{
    const struct session *first = w->all->first;
    struct session *s = &w->session;
    int status = pin(w);
    memcpy(s->memory, first->memory, sizeof s->memory);
    memcpy(s->vendors, first->vendors, sizeof s->vendors);
    s->why = first->why;
    s->cpu.crowded = first->cpu.crowded;
    if (!status)
        status = session_open_fabric(s, &first->opened);
    return status ? status : session_place(s, w->all->memory, run_buffer_bytes(&w->all->spec));
}

/* The client's nonce is for this meeting; a connection of an earlier run is kept if both have it.
 */
static int meet_other(struct session *s)
{
    bool client = s->peer->rank == PEER_CLIENT;
    struct msg mine, theirs;
    uint64_t linked = 0;
    int status = client ? random_digits(s->nonce, sizeof s->nonce) : 0;
    if (!status)
        status = msg_print(&mine, "nonce=%s\nlinked=%d\n", client ? s->nonce : "", s->connected);
    if (!status)
        status = peer_swap(s->peer, &mine, &theirs);
    if (!status && (msg_number(&theirs, "linked", &linked) ||
                    (!client && msg_value(&theirs, "nonce", s->nonce, sizeof s->nonce))))
        status = fail(-EPROTO, "the %s's thread cannot be understood", s->peer->other);
    if (!status && !linked)
        session_unlink(s);
    return status;
}

static int measure(struct worker *w)
{
    struct session *s = &w->session;
    int status = meet_other(s);
    return status ? session_leave(s, status) : session_measure(s, &w->all->spec, &w->member.report);
}

/* How this member's run ended, for the others. */
static int conclude(struct team_member *m, int status)
{
    if (status)
        return team_lose(m, m->number, status);
    atomic_store(&team_own(m)->over, true);
    return 0;
}

static int do_step(struct worker *w, enum step step)
{
    switch (step) {
    case STEP_READY:
        return get_ready(w);
    case STEP_MEASURE:
        return conclude(&w->member, measure(w));
    default:
        /* Neither end waits for the other any more. */
        w->session.refused = true;
        return session_close(&w->session, 0);
    }
}

static void *work(void *arg)
{
    struct worker *w = arg;
    struct threads *all = w->all;
    enum step step = STEP_READY;
    warn_mute(); /* the first says the same */
    while (step != STEP_END) {
        pthread_mutex_lock(&all->lock);
        while (w->did == all->turn)
            pthread_cond_wait(&all->changed, &all->lock);
        step = all->step;
        pthread_mutex_unlock(&all->lock);
        int status = do_step(w, step);
        pthread_mutex_lock(&all->lock);
        w->status = status;
        snprintf(w->why, sizeof w->why, "%s", status ? fail_reason() : "");
        w->did = all->turn;
        pthread_cond_broadcast(&all->changed);
        pthread_mutex_unlock(&all->lock);
    }
    return NULL;
}

/* ---- asking them ---- */

static void ask(struct threads *all, enum step step)
{
    pthread_mutex_lock(&all->lock);
    all->step = step;
    all->turn++;
    pthread_cond_broadcast(&all->changed);
    pthread_mutex_unlock(&all->lock);
}

static unsigned first_busy(const struct threads *all)
{
    for (unsigned i = 1; i <= all->made; i++)
        if (all->workers[i].did != all->turn)
            return i;
    return 0;
}

/* Waits a moment for them: the first that is still at it, or 0. */
static unsigned busy(struct threads *all)
{
    struct timespec until;
    unsigned number;
    bool late = false;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += LOOK_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    pthread_mutex_lock(&all->lock);
    while ((number = first_busy(all)) && !late)
        late = pthread_cond_timedwait(&all->changed, &all->lock, &until) != 0;
    pthread_mutex_unlock(&all->lock);
    return number;
}

/* Until all have done it. One that does not after a failure hangs in a library. */
static int await(struct threads *all, struct peer *peer, uint64_t most_ms)
{
    uint64_t since_ms = 0;
    unsigned number;
    int status = 0;
    while ((number = busy(all))) {
        if (!status && peer)
            status = peer_alive(peer);
        if ((status || !peer) && !since_ms)
            since_ms = clock_ms();
        if (since_ms && clock_ms() - since_ms > most_ms)
            return fail(-EDEADLK, "thread %u does not end", number);
    }
    return status;
}

/* ---- making them ---- */

static int make(struct threads *all, unsigned number)
{
    struct worker *w = &all->workers[number];
    sigset_t signals, before;
    w->all = all;
    w->number = number;
    w->member.timeout_ms = all->whole->timeout_ms;
    int status = team_join(&w->member, all->team, number);
    struct peer *share = peer_share(all->shares, number);
    share->watch = (struct peer_watch){team_watch, &w->member};
    if (status || !number)
        return status;
    session_init(&w->session);
    w->session.peer = share;
    /* Signals are delivered to the first thread. */
    sigfillset(&signals);
    pthread_sigmask(SIG_SETMASK, &signals, &before);
    int error = pthread_create(&w->thread, NULL, work, w);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    all->made += !error;
    return error ? fail(-error, "thread %u: %s", number, strerror(error)) : 0;
}

static int make_all(struct session *s, unsigned count)
{
    pthread_condattr_t by_clock;
    struct threads *all = calloc(1, sizeof *all + count * sizeof *all->workers);
    struct team *team = calloc(1, team_bytes(count));
    if (!all || !team) {
        free(all);
        free(team);
        return fail(-ENOMEM, "no memory for %u threads", count);
    }
    *all = (struct threads){.first = s, .whole = s->peer, .team = team, .count = count};
    team->count = count;
    team->threads = true;
    pthread_mutex_init(&team->lock, NULL);
    pthread_mutex_init(&all->lock, NULL);
    pthread_condattr_init(&by_clock);
    pthread_condattr_setclock(&by_clock, CLOCK_MONOTONIC);
    pthread_cond_init(&all->changed, &by_clock);
    pthread_condattr_destroy(&by_clock);
    s->threads = all;
    int status = peer_shares_open(&all->shares, all->whole, count);
    for (unsigned i = 0; i < count && !status; i++)
        status = make(all, i);
    return status;
}

void threads_end(struct session *s)
{
    struct threads *all = s->threads;
    char why[1024];
    if (!all)
        return;
    snprintf(why, sizeof why, "%s", fail_reason());
    s->threads = NULL;
    ask(all, STEP_END);
    /* One that hangs keeps what it uses. */
    bool hangs = await(all, NULL, CLOSE_MS) != 0;
    fail(0, "%s", why);
    if (hangs)
        return;
    for (unsigned i = 1; i <= all->made; i++)
        pthread_join(all->workers[i].thread, NULL);
    for (unsigned i = 0; i < all->count; i++)
        if (all->workers[i].member.team)
            team_quit(&all->workers[i].member);
    peer_shares_close(all->shares);
    pthread_cond_destroy(&all->changed);
    pthread_mutex_destroy(&all->lock);
    pthread_mutex_destroy(&all->team->lock);
    free(all->team);
    free(all);
}

/* ---- a run ---- */

/* Between two runs nobody shows signs of life. */
static void begin(struct threads *all, uint64_t now_ms)
{
    for (unsigned i = 0; i < all->count; i++) {
        struct team_slot *slot = &all->team->slots[i];
        atomic_store(&slot->seen_ms, 0);
        atomic_store(&slot->over, false);
        all->workers[i].member.timeout_ms = all->spec.timeout_ms;
        all->workers[i].member.begun = all->workers[i].member.cut_short = false;
        struct peer *share = peer_share(all->shares, i);
        share->timeout_ms = all->spec.timeout_ms;
        share->stop = all->whole->stop;
        session_device(all->first, slot->device, sizeof slot->device);
    }
    all->team->begun_ms = now_ms;
}

/* Do more of them spin than there are CPUs? Each end has a list of its own, and ranks may each be
 * bound to a CPU; two ends without either share what this process may use. */
static bool crowded(const struct session *s, unsigned threads, unsigned ends, bool group)
{
    const struct cpu_list *list = s->cpu.of_threads;
    cpu_set_t set;
    CPU_ZERO(&set);
    if (list)
        for (size_t i = 0; i < list->count && i < threads; i++)
            CPU_SET((size_t)list->cpus[i] % CPU_SETSIZE, &set);
    else if (sched_getaffinity(0, sizeof set, &set))
        return false;
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    if (group && online > 0 && (long)ends * threads > online)
        return true;
    return threads * (list || group ? 1 : ends) > (unsigned)CPU_COUNT(&set);
}

int threads_ready(struct session *s, const struct spec *spec, const char *memory, unsigned ends,
                  bool group)
{
    unsigned count = (unsigned)spec->threads;
    if (s->threads && (count != s->threads->count || s->peer != s->threads->whole))
        threads_end(s);
    s->cpu.crowded = (count > 1 || group) && crowded(s, count, ends, group);
    if (s->cpu.crowded && s->peer->runs <= 1 && !group)
        warn("more threads than CPUs: they take turns, and times include waiting for a CPU");
    if (count < 2)
        return 0;
    int status = s->threads ? 0 : make_all(s, count);
    struct threads *all = s->threads;
    if (status || !all) {
        threads_end(s);
        return status;
    }
    all->spec = *spec;
    snprintf(all->memory, sizeof all->memory, "%s", memory);
    begin(all, 0);
    ask(all, STEP_READY);
    status = await(all, peer_share(all->shares, 0), CLOSE_MS);
    for (unsigned i = 1; i < count && !status; i++)
        if (all->workers[i].status)
            status = fail(all->workers[i].status, "thread %u: %s", i, all->workers[i].why);
    if (status)
        threads_end(s);
    return status;
}

int threads_measure(struct session *s, const struct spec *spec, struct report *report)
{
    struct threads *all = s->threads;
    struct team_member *mine = &all->workers[0].member;
    all->spec = *spec;
    if (!report)
        all->spec.local.interval_ms = 0;
    mine->sum = report;
    begin(all, clock_ms());
    ask(all, STEP_MEASURE);
    s->threads = NULL;
    s->peer = peer_share(all->shares, 0);
    int status = conclude(mine, session_measure(s, &all->spec, &mine->report));
    int hangs = await(all, s->peer, HANGS_MS);
    team_lost(mine, &status);
    /* From here on the connection is for one: neither end's threads look at it. */
    if (!status)
        status = peer_barrier(s->peer, "threads", NULL, NULL);
    s->peer = all->whole;
    s->threads = hangs == -EDEADLK ? NULL : all;
    return session_leave(s, status ? status : hangs);
}
