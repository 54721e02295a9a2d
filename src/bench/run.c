/* SPDX-License-Identifier: BSD-3-Clause */
/* One run: open the fabric, place and expose memory, connect, measure every size, take it all down.
 * Whatever fails at one end is told to the other, so that both end with the reason. */
#include "bench/setup.h"
#include "core/clock.h"
#include "core/machine.h"
#include "fabric/choose.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PROBES = 51, PROBE_MAX_BYTES = 1 << 20, PROBE_GAP_US = 1000 };
static const uint64_t probe_ns = 30000000;
static const double clock_share_worth_saying = 0.20;

unsigned run_hints(const struct run *run, size_t size)
{
    const struct plan *plan = run->plan;
    const struct fabric_facts *facts = &run->facts;
    unsigned hints = 0;
    if (!plan->no_idc && !plan->rendezvous && !plan->matching && !run->buffer.gpu &&
        size <= facts->max_inline)
        hints |= HINT(INLINE);
    if (!plan->no_ll)
        hints |= HINT(LL);
    if (!plan->unrestricted && !plan->matching)
        hints |= HINT(RESTRICTED);
    if (plan->matching)
        hints |= HINT(MATCHING);
    if (plan->rendezvous)
        hints |= HINT(RENDEZVOUS);
    return hints & run->op->hints & facts->honours;
}

static int tell_done(struct run *run)
{
    struct msg done;
    int status = msg_print(&done, "done=1\n");
    return status ? status : peer_send(run->peer, &done);
}

/* ---- setting up ---- */

static size_t buffer_length(const struct run *run)
{
    return run->op->buffer ? run->op->buffer(run->plan) : (size_t)run->plan->size.max;
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
    return fail(-ENOTSUP, "fabric %s has no %s%s%s%s on %s", fabric->name,
                plan->fetching ? "fetching " : "", amo_op_names[op], op == AMO_CSWAP ? " " : "",
                op == AMO_CSWAP ? amo_compare_names[compare] : "", amo_type_names[type]);
}

/* Both ends' buffers, as far as they are known. */
static int can_gpus(const struct plan *plan, const struct op *op, const struct fabric_ops *fabric,
                    const struct fabric_facts *facts)
{
    int status = 0;
    for (int rank = 0; rank < 2 && !status; rank++)
        status = setup_can_gpu(facts, *facts->form ? facts->form : fabric->name, op->verbs,
                               plan->vendors[rank]);
    return status;
}

int bench_can(const struct plan *plan, const struct op *op, const struct fabric_ops *fabric,
              const struct fabric_facts *facts)
{
    for (unsigned verb = 0; verb < VERBS; verb++)
        if (op->verbs & 1U << verb && !(facts->verbs & 1U << verb))
            return fail(-ENOTSUP, "%s cannot %s", *facts->form ? facts->form : fabric->name,
                        fabric_verb_name((enum verb)verb));
    if (plan->verify && facts->alone)
        return fail(-EINVAL, "fabric %s moves nothing: --verify has nothing to check",
                    fabric->name);
    int status = can_gpus(plan, op, fabric, facts);
    if (status)
        return status;
    return op->verb == VERB_ATOMIC ? can_atomic(plan, fabric, facts) : 0;
}

/* ---- what the header says ---- */

/* The gap of the plan, or as much of it as makes an operation as cold as it will be. */
static void probe_gap(const struct run *run)
{
    uint64_t gap_us = run->plan->gap_us < PROBE_GAP_US ? run->plan->gap_us : PROBE_GAP_US;
    for (uint64_t since_ns = clock_ns(); clock_ns() - since_ns < gap_us * 1000;)
        if (run->share_cpu)
            sched_yield();
}

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
        probe_gap(run);
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

/* This end, for whoever reads a result later. */
static int describe(const struct run *run, struct msg *text)
{
    int status = machine_describe(text);
    return status ? status
                  : msg_add(text, "weft=%s\nbuffer=%s\nfabric=%s\nname=%s\n", weft_version(),
                            run->buffer.kind ? run->buffer.kind->name : "", run->facts.form,
                            run->facts.self);
}

static int exchange_facts(struct run *run, struct bench_facts *facts)
{
    struct msg mine, *theirs = &facts->about[1];
    double median_ps = 0;
    int status = probe(run, facts->initiator, &median_ps);
    if (!status && facts->initiator)
        describe_clock(run, median_ps, facts->clock, sizeof facts->clock);
    if (!status)
        status = msg_print(&mine, "self=%s\nclock=%s\n", run->facts.self,
                           facts->initiator ? facts->clock : "-");
    if (!status)
        status = describe(run, &facts->about[0]);
    if (!status)
        status = msg_add(&mine, "%s", facts->about[0].bytes);
    if (!status)
        status = peer_swap(run->peer, &mine, theirs);
    if (!status)
        status = msg_value(theirs, "self", facts->remote, sizeof facts->remote);
    if (!status && !facts->initiator)
        status = msg_value(theirs, "clock", facts->clock, sizeof facts->clock);
    return status == -ENOENT ? fail(-EPROTO, "the %s did not describe itself", run->peer->other)
                             : status;
}

/* ---- measuring ---- */

static int tell_row(struct run *run, struct result *result)
{
    struct report *report = run->request->report;
    struct keepalive keepalive;
    int status = 0;
    if (!run->plan->report_all)
        return report->ops->row(report, result);
    keepalive_begin(&keepalive, run->peer, 0);
    for (uint64_t i = 0; i < run->stats->count && i < run->stats->kept_room && !status; i++)
        status = report->ops->sample(report, i, run->stats->kept_ps[i]);
    if (!status)
        status = report->ops->row(report, result);
    keepalive_end(&keepalive);
    return status;
}

static int measure(struct run *run, struct interference *sum)
{
    struct result result = {.size = run->size, .stats = run->stats, .series = &run->series};
    struct interference before, after;
    stats_clear(run->stats);
    run->series.count = 0;
    int status = run->op->prepare(run, run->size);
    interference_now(&before);
    if (!status)
        status = run->request->method->run(run);
    interference_now(&after);
    interference_add(&result.interference, &before, &after);
    interference_hint(run->roams, result.interference.switches, run->stats->count);
    interference_add(sum, &before, &after);
    result.complete = !status;
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
    int status = peer_barrier(run->peer, word, NULL, NULL);
    if (status)
        return status;
    return initiator ? measure(run, sum) : run->op->serve(run, run->size);
}

static int all_sizes(struct run *run, bool initiator, struct interference *sum)
{
    int status = 0;
    run->progress = (struct progress){0};
    for (uint64_t size = run->plan->size.min; size <= run->plan->size.max; size *= 2)
        run->progress.sizes++;
    for (uint64_t size = run->plan->size.min; size <= run->plan->size.max && !status; size *= 2) {
        run->size = (size_t)size;
        status = one_size(run, initiator, sum);
        run->progress.done++;
    }
    if (!status)
        status = peer_barrier(run->peer, "end", NULL, NULL);
    if (!status && initiator)
        status = clock_check(&run->clock);
    if (status == -ERANGE && run->plan->ignore_mismatch) {
        warn("%s", fail_reason());
        status = 0;
    }
    return status;
}

static int connected(struct run *run, struct bench_facts *facts)
{
    const struct bench_request *request = run->request;
    struct interference sum = {0};
    int status = exchange_facts(run, facts);
    if (status)
        return status;
    status = request->report->ops->begin(request->report, facts);
    if (!status)
        status = all_sizes(run, facts->initiator, &sum);
    char why[1024];
    snprintf(why, sizeof why, "%s", fail_reason());
    int told = request->report->ops->end(request->report, status);
    if (status)
        return fail(status, "%s", why);
    interference_say(&sum);
    return told;
}

/* This end's buffer, as memory is named. */
static int place(struct run *run)
{
    const struct plan *plan = run->plan;
    char name[48];
    int64_t gpu = plan_gpu(plan, run->peer->rank);
    if (gpu < 0)
        return setup_place(run, plan->huge ? plan_huge[plan->huge - 1] : "host",
                           buffer_length(run));
    const struct memory_ops *kind;
    unsigned count;
    int status = gpu_find(plan->vendors[run->peer->rank], (unsigned)gpu, &kind, &count);
    if (status)
        return status;
    snprintf(name, sizeof name, "%s:%u", kind->name, (unsigned)gpu);
    return setup_place(run, name, buffer_length(run));
}

/* What is known when an operation counts as done. */
static const char *proves(const struct run *run)
{
    if (run->op->legs == 2)
        return "the other end has taken the message, and its answer is in the posted buffer";
    return run->facts.proves[run->op->verb] ? run->facts.proves[run->op->verb] : "";
}

static int opened(struct run *run)
{
    const struct bench_request *request = run->request;
    struct bench_facts facts = {.title = request->title,
                                .plan = run->plan,
                                .set = request->set,
                                .op = run->op,
                                .fabric = &run->facts,
                                .why = request->why,
                                .choice = request->fabric,
                                .method = request->method,
                                .ticks = &run->clock,
                                .initiator = run->peer->rank == PEER_CLIENT,
                                .buffer = &run->buffer};
    struct msg key;
    int status = bench_can(run->plan, run->op, run->fabric, &run->facts);
    if (!status && facts.initiator)
        status = clock_open(&run->clock, run->plan->clock);
    if (!status && facts.initiator)
        status = stats_open(&run->stats, run->plan->report_all ? run->plan->iters : 0);
    if (!status)
        status = place(run);
    if (!status)
        status = setup_compare(run);
    if (!status)
        status = setup_expose(run, &key);
    if (status)
        return status;
    status = setup_connect(run, &key);
    facts.proves = proves(run);
    if (!status && run->op->start)
        status = run->op->start(run);
    if (!status)
        status = peer_barrier(run->peer, "connected", NULL, NULL);
    if (!status)
        status = connected(run, &facts);
    /* The other end hears why before its operations begin to fail. */
    status = setup_leave(run, status);
    run->fabric->withdraw(run->handle, &run->buffer);
    return status;
}

int bench_run(const struct bench_request *request)
{
    struct run run = {.name = request->op->name,
                      .verb = request->op->verb,
                      .request = request,
                      .plan = request->plan,
                      .op = request->op,
                      .peer = request->peer,
                      .nonce = request->nonce,
                      .vendors = {request->plan->vendors[0], request->plan->vendors[1]},
                      .buffer = {.fd = -1}};
    struct fabric_want want = {.device = request->fabric->device,
                               .here = request->peer->here,
                               .service = request->plan->service,
                               .verbs = request->op->verbs,
                               .hints = request->op->hints,
                               .gpus = plan_gpus(request->plan),
                               .server = request->peer->rank == PEER_SERVER};
    int awake = setup_awake();
    int status = setup_open(&run, request->fabric->ops, &want);
    if (!status) {
        status = opened(&run);
        run.fabric->close(run.handle);
        status = setup_free(&run, status);
        stats_close(run.stats);
    }
    if (awake >= 0)
        close(awake);
    return setup_leave(&run, status);
}
