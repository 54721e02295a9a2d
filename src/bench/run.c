/* SPDX-License-Identifier: BSD-3-Clause */
/* One run on a session: connect if need be, say what is run, measure every size, report. Whatever
 * fails at one end is sent to the other, so that both end with the reason. */
#include "bench/run.h"
#include "core/machine.h"

#include <inttypes.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

enum { ALIGN = 128, LEAST_HALF = 256, QUIET_BYTES_PER_MS = 1000 };
static const double clock_share_worth_saying = 0.20;

/* ---- the data ---- */

static size_t rounded(size_t bytes)
{
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

/* In one direction there is one part: the places are the initiator's, or the target's. */
static size_t list_receive_at(const struct spec *spec)
{
    const struct op *op = op_of(spec);
    if (op->list.front)
        return rounded(op->list.front(spec));
    return spec->both_ways ? rounded(spec_list_bytes(spec)) : 0;
}

size_t run_receive_at(const struct spec *spec)
{
    if (method_of(spec)->lists)
        return list_receive_at(spec);
    size_t extent = spec_extent(spec, (size_t)spec->size.max);
    size_t half = extent < LEAST_HALF ? LEAST_HALF : extent;
    bool halves = method_of(spec)->ucx || op_of(spec)->traits & OP_HALVES;
    return halves ? rounded(half) : 0;
}

size_t run_buffer_bytes(const struct spec *spec)
{
    size_t half = run_receive_at(spec);
    if (method_of(spec)->lists)
        return half + spec_list_bytes(spec);
    return half ? 2 * half : (size_t)spec->size.max;
}

unsigned run_hints(const struct run *run)
{
    struct hint_question question = {.facts = &run->session->facts,
                                     .op = run->op,
                                     .spec = run->spec,
                                     .size = run->size,
                                     .gpu = run->session->buffer.gpu,
                                     .lists = run->method->lists};
    bool layouts = run->spec->data.layout && !(run->op->traits & OP_NO_LAYOUTS);
    unsigned hints = 0;
    for (int hint = 0; hint < HINT_NAMES; hint++) {
        struct hint_state state;
        hint_judge(&question, (enum hint)hint, &state);
        hints |= state.holds ? 1U << hint : 0;
    }
    /* There the layout decides, and a flush or an answer proves what has arrived. */
    if (run->method->ucx)
        hints &= ~HINT(INLINE);
    if (run->method->ucx && !run->verify && run->op->traits & OP_SETTLES)
        hints |= HINT(LOCAL) & run->session->facts.honours;
    return layouts ? hints | LAYOUT_HINT(run->spec->data.layout - 1) : hints;
}

/* ---- what is run ---- */

static bool initiates(const struct run *run)
{
    return run->session->peer->rank == PEER_CLIENT || run->spec->both_ways;
}

static bool responds(const struct run *run)
{
    return run->session->peer->rank == PEER_SERVER || run->spec->both_ways;
}

static int tell_done(struct run *run)
{
    struct msg done;
    int status = msg_print(&done, "done=%" PRIu64 "\n", run->flight.number);
    return status ? status : peer_send(run->session->peer, &done);
}

/* Everything of the last size is forgotten. */
static int prepare_size(struct run *run, size_t size)
{
    run->size = size;
    run->slots = run->method->lists ? list_slots(run->spec, size) : (struct slots){.count = 1};
    run->flight = (struct inflight){0};
    attend_begin(run);
    return run->op->prepare(run);
}

static double short_ns(double ps)
{
    return ps < 9950 ? ps / 1000 : round(ps / 1000);
}

/* The share is of the trial, not of the run, which is still to come. */
static void describe_clock(const struct run *run, double median_ps, char *text, size_t room)
{
    const struct clock *clock = &run->meter.clock;
    const char *name = clock->kind == CLOCK_CYCLES ? "cycles" : "clock_gettime";
    double cost_ps = (double)clock->cost_ps, part_ps = cost_ps / (double)run->meter.parts;
    int n = snprintf(text, room, "%s, step %.3g ns, cost %.3g ns, %.3g ns per sample subtracted",
                     name, short_ns((double)clock->step_ps), short_ns(cost_ps), short_ns(part_ps));
    if (n < 0 || (size_t)n >= room || !median_ps)
        return;
    if (part_ps > median_ps)
        snprintf(text + n, room - (size_t)n, " (estimate: more than the median)");
    else if (part_ps > clock_share_worth_saying * median_ps)
        snprintf(text + n, room - (size_t)n, " (estimate: %.0f %% of the median)",
                 100 * part_ps / median_ps);
}

/* A few operations before the header, where the method has them. */
static int preview(struct run *run, char *text, size_t room)
{
    double median_ps = 0;
    if (!run->method->preview)
        return 0;
    int status = prepare_size(run, (size_t)run->spec->size.min);
    if (!status)
        status = peer_barrier(run->session->peer, "preview", NULL, NULL);
    if (status || run->session->peer->rank == PEER_SERVER)
        return status ? status : run->method->respond(run);
    status = run->method->preview(run, &median_ps);
    if (!status)
        status = tell_done(run);
    describe_clock(run, median_ps, text, room);
    return status;
}

/* What is known when an operation counts as done. */
static const char *proves(const struct run *run)
{
    const char *const *fabric = run->session->facts.proves;
    if (run->method->legs == 2)
        return "the other end has seen the message, and its answer has come in";
    if (run->method->lists && run->op->traits & OP_NEEDS_ACK)
        return "the target has received the whole list and said so";
    if (run->method->ucx && run->op->traits & OP_NEEDS_ACK)
        return "the target has acknowledged the message";
    if (run->op->proves)
        return run->op->proves;
    if (run->method->ucx && run_hints(run) & HINT(LOCAL))
        return "our buffer may be used again; before a row, a flush has shown that the target has "
               "all of it";
    return fabric[run->op->verb] ? fabric[run->op->verb] : "";
}

/* This end, for readers of a result. */
static int describe(const struct session *s, struct msg *text)
{
    int status = machine_describe(text);
    return status ? status
                  : msg_add(text,
                            "weft=%s\ncommit=%s\nran_on=%d\nbuffer=%s\nfabric=%s\nlibrary=%s\n"
                            "name=%s\n",
                            core_version(), core_commit(), sched_getcpu(),
                            s->buffer.kind ? s->buffer.kind->name : "", s->facts.form,
                            s->facts.library, s->facts.self);
}

static int exchange_facts(struct run *run, struct facts *f)
{
    struct session *s = run->session;
    struct msg mine;
    int status = msg_print(&mine, "clock=%s\n", f->initiator ? f->clock_text : "-");
    if (!status)
        status = describe(s, &f->about[0]);
    if (!status)
        status = msg_add(&mine, "%s", f->about[0].bytes);
    if (!status)
        status = peer_swap(s->peer, &mine, &f->about[1]);
    if (!status)
        status = msg_value(&f->about[1], "name", f->remote, sizeof f->remote);
    if (!status && !f->initiator)
        status = msg_value(&f->about[1], "clock", f->clock_text, sizeof f->clock_text);
    return status == -ENOENT ? fail(-EPROTO, "the %s did not describe itself", s->peer->other)
                             : status;
}

/* ---- measuring ---- */

static int tell_row(struct run *run)
{
    struct report *report = run->out.report;
    const struct stats *stats = run->meter.stats;
    struct keepalive keepalive;
    int status = 0;
    if (!report || !(run->out.result.final || run->out.result.count))
        return 0;
    keepalive_begin(&keepalive, run->session->peer, 0);
    for (uint64_t i = 0; stats && i < stats->count && i < stats->kept_room && !status; i++)
        if (report->ops->sample) {
            status = report->ops->sample(report, i, stats->kept_ps[i]);
            peer_progress(run->session->peer);
        }
    if (!status)
        status = report->ops->row(report, &run->out.result);
    keepalive_end(&keepalive);
    return status;
}

/* Both ends, until both are done and nothing is under way any more. */
static int both_sides(struct run *run)
{
    uint64_t since_ns = clock_cpu_ns();
    int status = 0;
    if (initiates(run)) {
        meter_reset(run);
        status = run->method->initiate(run);
        /* What is under way may need the other end, which polls until it is told. */
        if (!status)
            status = flight_until(run, 0, UINT64_MAX);
        if (!status)
            status = tell_done(run);
    }
    if (!status && responds(run))
        status = run->method->respond(run);
    if (!status)
        status = flight_until(run, 0, UINT64_MAX);
    uint64_t cpu_ns = clock_cpu_ns() - since_ns;
    if (!status && run->op->list.finish)
        status = run->op->list.finish(run);
    if (!status)
        status = run_swap_figures(run, initiates(run), cpu_ns);
    return status ? status : run_counters_end(run);
}

static int one_size(struct run *run, size_t size)
{
    char word[48], why[1024];
    snprintf(word, sizeof word, "size %zu", size);
    run->out.result = (struct result){0};
    run_counters_begin(run);
    int status = prepare_size(run, size);
    if (!status)
        status = peer_barrier(run->session->peer, word, NULL, NULL);
    if (!status)
        status = both_sides(run);
    if (!initiates(run) && !run->method->lists)
        return status;
    /* Whatever ended it, what was measured is reported. */
    snprintf(why, sizeof why, "%s", fail_reason());
    run->out.result.complete = !status;
    run->out.operations += run->out.result.count;
    int told = tell_row(run);
    return status ? fail(status, "%s", why) : told;
}

static int check_clock(struct run *run)
{
    int status = clock_check(&run->meter.clock);
    if (status == -ERANGE && run->spec->local.ignore_mismatch) {
        warn("%s", fail_reason());
        status = 0;
    }
    return status;
}

/* Ends that may have run on one CPU tell each other how often they were taken off theirs. */
static int compare_switches(struct run *run, const struct interference *before)
{
    struct session *s = run->session;
    struct interference now, sum = {0};
    struct msg mine, theirs;
    uint64_t switches = 0;
    interference_now(&now);
    interference_add(&sum, before, &now);
    int status = msg_print(&mine, "switches=%" PRIu64 "\n", sum.switches);
    if (!status)
        status = peer_swap(s->peer, &mine, &theirs);
    if (!status && msg_number(&theirs, "switches", &switches))
        status = fail(-EPROTO, "the %s's figures cannot be read", s->peer->other);
    if (!status && s->peer->rank == PEER_CLIENT)
        interference_hint(sum.switches, switches, run->out.operations);
    return status;
}

static int all_sizes(struct run *run)
{
    const struct spec *spec = run->spec;
    struct progress *progress = &run->out.progress;
    struct interference before;
    int status = 0;
    interference_now(&before);
    uint64_t size = spec->size.min;
    do
        progress->sizes++;
    while ((size = spec_next_size(spec, size)));
    size = spec->size.min;
    do {
        status = one_size(run, (size_t)size);
        progress->done++;
    } while (!status && (size = spec_next_size(spec, size)));
    if (!status)
        status = peer_barrier(run->session->peer, "end", NULL, NULL);
    if (!status && run->session->cpu.roams)
        status = compare_switches(run, &before);
    return !status && initiates(run) ? check_clock(run) : status;
}

static int reported(struct run *run, const struct facts *facts)
{
    struct report *report = run->out.report;
    char why[1024];
    int status = report && report->ops->begin ? report->ops->begin(report, facts) : 0;
    if (!status)
        status = all_sizes(run);
    if (!report || !report->ops->end)
        return status;
    /* Other pairs end by it too. */
    if (status && report->ops->meet)
        status = session_reason(run->session, status);
    snprintf(why, sizeof why, "%s", fail_reason());
    int told = report->ops->end(report, status);
    return status ? fail(status, "%s", why) : told;
}

static int connected(struct run *run)
{
    struct session *s = run->session;
    struct facts facts = {.spec = run->spec,
                          .op = run->op,
                          .method = run->method,
                          .session = s,
                          .clock = &run->meter.clock,
                          .proves = proves(run),
                          .legs = run->legs,
                          .initiator = s->peer->rank == PEER_CLIENT};
    int status = run->op->start ? run->op->start(run) : 0;
    if (!status)
        status = peer_barrier(s->peer, "connected", NULL, NULL);
    if (!status)
        status = preview(run, facts.clock_text, sizeof facts.clock_text);
    if (!status)
        status = exchange_facts(run, &facts);
    if (run->method->lists && run->spec->both_ways)
        run->out.sums = facts_loopback(&facts) && s->facts.nic ? 2 : 1;
    if (!status)
        status = run_counters_open(run);
    if (!status)
        status = reported(run, &facts);
    run_counters_close(run);
    return status;
}

/* How much longer than usual a client may be seen to do nothing: it said so before. */
static uint64_t planned_ms(const struct spec *spec)
{
    return spec->pace.gap_ns / 1000000 + spec->size.max / QUIET_BYTES_PER_MS;
}

static int measure(struct session *s, const struct spec *spec, struct report *report)
{
    struct run run = {.handle = s->handle,
                      .op = op_of(spec),
                      .fabric = s->fabric,
                      .spec = spec,
                      .receive_at = run_receive_at(spec),
                      .legs = spec_legs(spec),
                      .verify = spec->data.verify,
                      .method = method_of(spec),
                      .session = s,
                      .out = {.report = report}};
    spec_fill_pieces(spec, &run.pieces.list);
    run.pieces.gather = spec->data.pieces.gather ? &run.pieces.list : NULL;
    run.pieces.scatter = spec->data.pieces.scatter ? &run.pieces.list : NULL;
    int status = initiates(&run) ? meter_open(&run) : 0;
    if (!status)
        status = session_connect(s);
    if (!status)
        status = run_nap_open(&run);
    run.nap.yields = s->cpu.yields || s->cpu.crowded;
    run.inbox = s->buffer.gpu ? NULL : s->buffer.address + run.receive_at;
    if (!status)
        status = connected(&run);
    attend_end(&run);
    /* The other end hears why before its operations begin to fail. */
    status = session_leave(s, status);
    meter_close(&run);
    /* Receives stay posted, and a GPU's memory must not be freed while the other end has it open.
     */
    if (session_any_gpu(s))
        status = session_release(s, status);
    else if (run.op->start || s->facts.one_run || status)
        session_unlink(s);
    return status;
}

int session_measure(struct session *s, const struct spec *spec, struct report *report)
{
    struct peer *peer = s->peer;
    const uint64_t before_ms = peer->quiet_ms;
    peer->quiet_ms = before_ms ? before_ms + planned_ms(spec) : 0;
    int status = s->threads ? threads_measure(s, spec, report) : measure(s, spec, report);
    peer->quiet_ms = before_ms;
    return status;
}
