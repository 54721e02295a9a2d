/* SPDX-License-Identifier: BSD-3-Clause */
/* One run: open the fabric, place and expose memory, connect, measure every size, take it all down.
 * Whatever fails at one end is told to the other, so that both end with the reason. */
#include "bench/bench.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    POPULATE_BYTES = 64 << 20,
    MOMENT_MS = 200,
    VIGIL_MS = 20,
    PROBES = 51,
    PROBE_MAX_BYTES = 1 << 20
};
static const uint64_t probe_ns = 20000000;
static const double clock_share_worth_saying = 0.20;

unsigned run_hints(const struct plan *plan, const struct op *op, const struct fabric_facts *facts,
                   size_t size)
{
    unsigned hints = 0;
    if (!plan->no_idc && !plan->rendezvous && !plan->matching && size <= facts->max_inline)
        hints |= HINT(INLINE);
    if (!plan->no_ll)
        hints |= HINT(LL);
    if (!plan->unrestricted && !plan->matching)
        hints |= HINT(RESTRICTED);
    if (plan->matching)
        hints |= HINT(MATCHING);
    if (plan->rendezvous)
        hints |= HINT(RENDEZVOUS);
    return hints & op->hints & facts->honours;
}

static int tell_done(struct run *run)
{
    struct blob done;
    int status = blob_print(&done, "done=1\n");
    return status ? status : peer_tell(run->peer, &done);
}

/* ---- setting up ---- */

static int populate(struct run *run)
{
    struct region *buffer = &run->buffer;
    int status = 0;
    for (size_t at = 0; at < buffer->mapped && !status; at += POPULATE_BYTES) {
        size_t left = buffer->mapped - at;
        status = buffer->kind->populate(buffer, at, left < POPULATE_BYTES ? left : POPULATE_BYTES);
        if (!status)
            status = peer_alive(run->peer);
    }
    return status;
}

static size_t buffer_length(const struct run *run)
{
    return run->op->buffer ? run->op->buffer(run->plan) : (size_t)run->plan->size.max;
}

static int place_buffer(struct run *run)
{
    const char *name = run->plan->huge ? plan_huge[run->plan->huge - 1] : "host";
    const struct memory_ops *kind = memory_find(name);
    size_t length = buffer_length(run);
    if (run->facts.own_memory && run->plan->huge)
        return fail(-ENOTSUP, "fabric %s places the memory itself, and not in huge pages",
                    run->fabric->name);
    if (run->facts.own_memory) {
        run->buffer = (struct region){.kind = kind, .length = length, .fd = -1};
        return 0;
    }
    int status = kind->alloc(&run->buffer, length, kind);
    return status ? status : populate(run);
}

/* Where the fabric has some atomics but not this one. */
static int can_atomic(const struct plan *plan, const struct fabric_ops *fabric,
                      const struct fabric_facts *facts)
{
    unsigned op = (unsigned)plan->amo_op - 1, type = (unsigned)plan->amo_type - 1;
    unsigned compare = (unsigned)plan->amo_compare - 1;
    bool has = facts->amo[plan->fetching][op] & 1U << type;
    if (op == AMO_CSWAP)
        has = has && facts->cswap[compare] & 1U << type;
    if (has)
        return 0;
    return fail(-ENOTSUP, "fabric %s has no %s%s %s on %s", fabric->name,
                plan->fetching ? "fetching " : "", amo_op_names[op],
                op == AMO_CSWAP ? amo_compare_names[compare] : "", amo_type_names[type]);
}

int bench_can(const struct plan *plan, const struct op *op, const struct fabric_ops *fabric,
              const struct fabric_facts *facts)
{
    for (unsigned verb = 0; verb < VERBS; verb++)
        if (op->verbs & 1U << verb && !(facts->verbs & 1U << verb))
            return fail(-ENOTSUP, "fabric %s cannot %s", fabric->name,
                        fabric_verb_name((enum verb)verb));
    if (plan->verify && facts->alone)
        return fail(-EINVAL, "fabric %s moves nothing: --verify has nothing to check",
                    fabric->name);
    return op->verb == VERB_ATOMIC ? can_atomic(plan, fabric, facts) : 0;
}

static int connect_ends(struct run *run, const struct blob *key)
{
    struct blob mine, theirs, their_key;
    uint64_t since_ms = clock_ms();
    int status = run->fabric->address(run->handle, &mine);
    if (!status)
        status = peer_swap(run->peer, &mine, &theirs);
    if (!status)
        status = peer_swap(run->peer, key, &their_key);
    if (status)
        return status;
    for (;;) {
        status = run->fabric->connect(run->handle, &theirs, &their_key, 1, &run->remote);
        if (status == DONE)
            break;
        if (!status)
            status = peer_alive(run->peer);
        if (!status && clock_ms() - since_ms > run->peer->timeout_ms)
            status = fail(-ETIMEDOUT, "the fabric did not connect within %g s",
                          (double)run->peer->timeout_ms / 1000);
        if (status)
            return status;
        sched_yield();
    }
    if (!run->facts.alone && run->remote.length < buffer_length(run))
        return fail(-EPROTO, "the %s offers %zu bytes, %zu are needed", run->peer->other,
                    run->remote.length, buffer_length(run));
    if (run->op->start && (status = run->op->start(run)))
        return status;
    return peer_meet(run->peer, "connected", NULL, NULL);
}

/* Do the two ends have to take turns on one CPU? */
static int compare_places(struct run *run)
{
    struct blob mine, theirs;
    int status = cpu_describe(&mine);
    if (!status)
        status = peer_swap(run->peer, &mine, &theirs);
    if (status)
        return status;
    run->share_cpu = cpu_shared(&mine, &theirs);
    if (run->share_cpu)
        warn("both ends run on one CPU: every hop waits for a switch between them");
    return 0;
}

/* ---- what the header says ---- */

/* The median of a few operations of the smallest size, to weigh the clock's cost against. */
static int probe_median(struct run *run, double *ps)
{
    uint64_t since_ns = clock_ns();
    stats_clear(run->stats);
    int status = run->op->prepare(run, run->size);
    for (uint64_t i = 0; i < PROBES && !status && clock_ns() - since_ns < probe_ns; i++) {
        if (run->op->steps && (status = run->op->before(run, i)))
            break;
        uint64_t begin = clock_read(&run->clock);
        status = run->op->once(run);
        uint64_t sample_ps = run_sample(run, clock_read(&run->clock) - begin);
        stats_add(run->stats, &sample_ps, 1);
    }
    *ps = stats_median_ps(run->stats);
    return status ? status : tell_done(run);
}

static int probe(struct run *run, bool initiator, double *ps)
{
    *ps = 0;
    run->size = (size_t)run->plan->size.min;
    if (run->size > PROBE_MAX_BYTES)
        return 0;
    return initiator ? probe_median(run, ps) : run->op->serve(run, run->size);
}

static void describe_clock(const struct run *run, double median_ps, char *text, size_t room)
{
    const char *name = run->clock.kind == CLOCK_CYCLES ? "cycles" : "clock_gettime";
    double cost_ps = (double)run->clock.cost_ps / run->op->legs;
    int n = snprintf(text, room, "%s, %.0f ns per sample subtracted", name, cost_ps / 1000);
    if (n < 0 || (size_t)n >= room || !median_ps)
        return;
    if (cost_ps > clock_share_worth_saying * median_ps)
        snprintf(text + n, room - (size_t)n, " (%.0f %% of the median)", 100 * cost_ps / median_ps);
}

static int exchange_facts(struct run *run, struct bench_facts *facts)
{
    struct blob mine, theirs;
    double median_ps = 0;
    int status = probe(run, facts->initiator, &median_ps);
    if (!status && facts->initiator)
        describe_clock(run, median_ps, facts->clock, sizeof facts->clock);
    if (!status)
        status = blob_print(&mine, "self=%s\nclock=%s\n", run->facts.self,
                            facts->initiator ? facts->clock : "-");
    if (!status)
        status = peer_swap(run->peer, &mine, &theirs);
    if (!status)
        status = blob_value(&theirs, "self", facts->remote, sizeof facts->remote);
    if (!status && !facts->initiator)
        status = blob_value(&theirs, "clock", facts->clock, sizeof facts->clock);
    return status == -ENOENT ? fail(-EPROTO, "the %s did not describe itself", run->peer->other)
                             : status;
}

/* ---- measuring ---- */

/* Whoever reads our output may take his time: meanwhile the other end is to know that we live. What
 * goes wrong here is found again by the next who looks. */
struct vigil {
    struct peer *peer;
    pthread_t thread;
    atomic_bool over;
    bool begun;
};

static void *keep_vigil(void *arg)
{
    struct vigil *vigil = arg;
    while (!atomic_load(&vigil->over) && !peer_alive(vigil->peer))
        poll(NULL, 0, VIGIL_MS);
    return NULL;
}

static void vigil_begin(struct vigil *vigil, struct peer *peer)
{
    sigset_t all, before;
    *vigil = (struct vigil){.peer = peer};
    /* Signals stay with the thread that measures. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    vigil->begun = !pthread_create(&vigil->thread, NULL, keep_vigil, vigil);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void vigil_end(struct vigil *vigil)
{
    atomic_store(&vigil->over, true);
    if (vigil->begun)
        pthread_join(vigil->thread, NULL);
}

static int tell_row(struct run *run, struct result *result)
{
    struct report *report = run->wish->report;
    struct vigil vigil;
    int status = 0;
    if (!run->plan->report_all)
        return report->ops->row(report, result);
    vigil_begin(&vigil, run->peer);
    for (uint64_t i = 0; i < run->stats->count && i < run->stats->kept_room && !status; i++)
        status = report->ops->sample(report, i, run->stats->kept_ps[i]);
    if (!status)
        status = report->ops->row(report, result);
    vigil_end(&vigil);
    return status;
}

static int measure(struct run *run, struct interference *sum)
{
    struct result result = {.size = run->size, .stats = run->stats};
    struct interference before, after;
    stats_clear(run->stats);
    int status = run->op->prepare(run, run->size);
    interference_now(&before);
    if (!status)
        status = run->wish->method->run(run);
    interference_now(&after);
    interference_add(&result.interference, &before, &after);
    interference_add(sum, &before, &after);
    /* What was measured is told, whatever ended it. */
    char why[1024];
    snprintf(why, sizeof why, "%s", fail_reason());
    int told = run->stats->count ? tell_row(run, &result) : 0;
    if (status)
        return fail(status, "%s", why);
    return told ? told : tell_done(run);
}

static int one_size(struct run *run, bool initiator, struct interference *sum)
{
    char word[48];
    snprintf(word, sizeof word, "size %zu", run->size);
    int status = peer_meet(run->peer, word, NULL, NULL);
    if (status)
        return status;
    return initiator ? measure(run, sum) : run->op->serve(run, run->size);
}

static void say_interference(const struct interference *sum)
{
    const struct {
        uint64_t count;
        const char *what;
    } kinds[] = {{sum->switches, "x preempted"},
                 {sum->migrations, "x moved to another CPU"},
                 {sum->faults, "x page fault"},
                 {sum->steal_ms, " ms taken by the hypervisor"}};
    char text[256] = "";
    for (size_t i = 0; i < LENGTH(kinds); i++)
        if (kinds[i].count)
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s%" PRIu64 "%s",
                     *text ? ", " : "", kinds[i].count, kinds[i].what);
    if (*text)
        warn("disturbed while measuring: %s", text);
}

static int all_sizes(struct run *run, bool initiator, struct interference *sum)
{
    int status = 0;
    for (uint64_t size = run->plan->size.min; size <= run->plan->size.max && !status; size *= 2) {
        run->size = (size_t)size;
        status = one_size(run, initiator, sum);
    }
    if (!status)
        status = peer_meet(run->peer, "end", NULL, NULL);
    if (!status && initiator)
        status = clock_check(&run->clock);
    if (status == -ERANGE && run->plan->ignore_mismatch) {
        warn("%s", fail_reason());
        status = 0;
    }
    return status;
}

/* Deep sleep states of the CPU would be measured too; keeping them away needs the right. */
static int stay_awake(void)
{
    int32_t latency_us = 0;
    int fd = open("/dev/cpu_dma_latency", O_WRONLY | O_CLOEXEC);
    if (fd >= 0 && write(fd, &latency_us, sizeof latency_us) != sizeof latency_us) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static int connected(struct run *run, struct bench_facts *facts)
{
    const struct bench_wish *wish = run->wish;
    struct interference sum = {0};
    int status = exchange_facts(run, facts);
    if (status)
        return status;
    status = wish->report->ops->begin(wish->report, facts);
    if (!status)
        status = all_sizes(run, facts->initiator, &sum);
    char why[1024];
    snprintf(why, sizeof why, "%s", fail_reason());
    int told = wish->report->ops->end(wish->report, status);
    if (status)
        return fail(status, "%s", why);
    say_interference(&sum);
    return told;
}

/* To whoever meets it first, the other end's death looks like a fault of the fabric: wait a moment
 * for the control connection to tell. */
static int real_reason(struct peer *peer, int status)
{
    char kept[1024];
    uint64_t since_ms = clock_ms();
    int gone = 0;
    snprintf(kept, sizeof kept, "%s", fail_reason());
    while (!gone && clock_ms() - since_ms < MOMENT_MS) {
        gone = peer_alive(peer);
        if (!gone)
            poll(NULL, 0, 5);
    }
    return gone == -ECONNRESET || gone == -ETIMEDOUT ? gone : fail(status, "%s", kept);
}

/* On failure the other end is told, once. */
static int leave(struct run *run, int status)
{
    if (!status || run->left)
        return status;
    if (status != -EINTR && status != -ECONNRESET && status != -ETIMEDOUT)
        status = real_reason(run->peer, status);
    peer_end(run->peer, status, fail_reason());
    run->left = true;
    return status;
}

static int opened(struct run *run)
{
    const struct bench_wish *wish = run->wish;
    struct bench_facts facts = {.title = wish->title,
                                .plan = run->plan,
                                .set = wish->set,
                                .op = run->op,
                                .fabric = &run->facts,
                                .initiator = run->peer->rank == PEER_CLIENT,
                                .buffer = &run->buffer};
    struct blob key;
    int status = bench_can(run->plan, run->op, run->fabric, &run->facts);
    if (!status && facts.initiator)
        status = clock_open(&run->clock, run->plan->clock);
    if (!status && facts.initiator)
        status = stats_open(&run->stats, run->plan->report_all ? run->plan->iters : 0);
    if (!status)
        status = place_buffer(run);
    if (!status)
        status = compare_places(run);
    if (status)
        goto free_memory;
    status = run->fabric->expose(run->handle, &run->buffer, &key);
    if (status)
        goto free_memory;
    status = connect_ends(run, &key);
    if (!status)
        status = connected(run, &facts);
    /* The other end hears why before its operations begin to fail. */
    status = leave(run, status);
    run->fabric->withdraw(run->handle, &run->buffer);
free_memory:
    if (run->buffer.address && !run->facts.own_memory)
        run->buffer.kind->free(&run->buffer);
    stats_close(run->stats);
    return status;
}

int bench_run(const struct bench_wish *wish)
{
    struct run run = {.wish = wish,
                      .plan = wish->plan,
                      .op = wish->op,
                      .peer = wish->peer,
                      .fabric = wish->fabric->ops,
                      .buffer = {.fd = -1}};
    struct fabric_want want = {.device = wish->fabric->device,
                               .here = wish->peer->here,
                               .nonce = wish->nonce,
                               .service = wish->plan->service,
                               .verbs = wish->op->verbs,
                               .hints = wish->op->hints,
                               .server = wish->peer->rank == PEER_SERVER};
    int awake = stay_awake();
    int status = fabric_open(run.fabric, &run.handle, &want, &run.facts);
    if (!status) {
        status = opened(&run);
        run.fabric->close(run.handle);
    }
    if (awake >= 0)
        close(awake);
    return leave(&run, status);
}
