/* SPDX-License-Identifier: BSD-3-Clause */
/* The list method: operations are posted together, rung once and waited for together, then the next
 * list begins; the list is the window. Every list begins at the first place of the buffers. A
 * sample is the time of a list. Both ways, an end that is done goes on, uncounted, until the other
 * is done too: so each direction was measured while the other ran. */
#include "bench/run.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- places ---- */

static size_t step_of(const struct spec *spec, size_t size)
{
    size_t align = (size_t)spec->data.align;
    return (size + align - 1) / align * align;
}

size_t spec_list_bytes(const struct spec *spec)
{
    size_t all = step_of(spec, (size_t)spec->size.max) * (size_t)spec->pace.list;
    return all < spec->data.most ? all : (size_t)spec->data.most;
}

/* A place whose whole step does not fit is not used, even if its bytes would. */
struct slots list_slots(const struct spec *spec, size_t size)
{
    struct slots slots = {.step = step_of(spec, size)};
    size_t fit = spec_list_bytes(spec) / slots.step;
    slots.count = (unsigned)(fit < spec->pace.list ? fit : spec->pace.list);
    slots.count += !slots.count;
    return slots;
}

/* ---- one list ---- */

static inline void advance(struct xfer *x, const struct xfer *first, const struct slots *slots,
                           unsigned *slot)
{
    if (++*slot == slots->count) {
        *slot = 0;
        x->at = first->at;
        x->remote_at = first->remote_at;
        x->amo.result = first->amo.result;
        return;
    }
    x->at += slots->step;
    x->remote_at += slots->step;
    if (x->amo.result)
        x->amo.result = (char *)x->amo.result + slots->step;
}

/* The last of as many as the fabric holds rings for them all. What is done at once may take long:
 * after so many bytes the other end is looked at. */
static int post_singly(struct run *run)
{
    enum { LOOK_BYTES = 64 << 20 };
    const struct xfer first = run->xfer;
    uint64_t list = run->spec->pace.list, together = run->session->facts.depth;
    uint64_t every = LOOK_BYTES / (run->size + 1) + 1;
    unsigned more = HINT(MORE) & run->session->facts.honours, slot = 0;
    int status = 0;
    for (uint64_t i = 1; i <= list && !status; i++) {
        run->xfer.how = i == list || i % together == 0 ? first.how : first.how | more;
        status = flight_post(run);
        if (!status && i % every == 0)
            status = peer_step(run->session->peer);
        advance(&run->xfer, &first, &run->slots, &slot);
    }
    run->xfer = first;
    return status;
}

static inline int post(struct run *run)
{
    const struct fabric_batch batch = {.count = (unsigned)run->spec->pace.list,
                                       .slots = run->slots.count,
                                       .step = run->slots.step};
    int got = -EAGAIN;
    if (run->fabric->batch && run->size <= run->session->facts.batch_max)
        got = run->fabric->batch(run->handle, run->op->verb, &run->xfer, &batch);
    if (got == -EAGAIN)
        return post_singly(run);
    run->flight.pending += got == LATER;
    return got < 0 ? got : 0;
}

static inline int one_list(struct run *run)
{
    /* Some may be acknowledged before the last is posted. */
    run->flight.number += run->spec->pace.list;
    int status = post(run);
    bool waits = run->flight.pending || run->flight.ack.local;
    return status || !waits ? status : flight_until(run, 0, 0);
}

/* ---- lists ---- */

/* What came of so many lists. */
static void fill(struct run *run, uint64_t lists)
{
    struct result *r = &run->out.result;
    struct meter *m = &run->meter;
    double size = (double)run->size, list = (double)run->spec->pace.list;
    /* As the other end is told, so that both compute the same. */
    m->done = lists * run->spec->pace.list;
    r->elapsed_s = (double)clock_to_ps(&m->clock, m->elapsed) / 1e12;
    double recent_s = (double)clock_to_ps(&m->clock, m->elapsed - m->reported_elapsed) / 1e12;
    double typical_us = stats_median_ps(m->stats) / 1e6;
    r->us_per_unit = 1e-6;
    r->sampling.ops = run->spec->pace.list;
    r->recent.count = m->done - m->reported_done;
    r->recent.s = recent_s;
    r->count = m->done;
    r->bytes = m->done * run->size;
    r->latency_us =
        (struct figure){.typical = typical_us, .recent = NAN, .overall = m->stats->mean_ps / 1e6};
    r->rate = (struct figure){.typical = typical_us > 0 ? list * 1e6 / typical_us : 0,
                              .recent = recent_s > 0 ? (double)r->recent.count / recent_s : 0,
                              .overall = r->elapsed_s > 0 ? (double)r->count / r->elapsed_s : 0};
    r->bandwidth = (struct figure){.typical = r->rate.typical * size,
                                   .recent = r->rate.recent * size,
                                   .overall = r->rate.overall * size};
}

static int tell_interval(struct run *run, uint64_t lists)
{
    struct meter *m = &run->meter;
    struct report *report = run->out.report;
    struct keepalive keepalive;
    int status = 0;
    fill(run, lists);
    keepalive_begin(&keepalive, run->session->peer, 0);
    if (report->ops->interval)
        status = report->ops->interval(report, &run->out.result);
    keepalive_end(&keepalive);
    m->reported_done = m->done;
    m->reported_elapsed = m->elapsed;
    return status;
}

static void tell_progress(struct run *run, uint64_t lists, uint64_t now)
{
    struct run_output *out = &run->out;
    const struct meter *m = &run->meter;
    if (!out->report || !out->report->ops->progress)
        return;
    out->progress.size = run->size;
    out->progress.share = m->duration ? (double)(m->elapsed + now - m->begin) / (double)m->duration
                                      : (double)lists / (double)run->spec->count.iterations;
    out->report->ops->progress(out->report, &out->progress);
}

/* Lists follow each other without a gap, so the clock is read once for each: a list of words takes
 * no longer than a few reads. Samples wait for their buckets. */
enum { BATCH = 64 };

struct batch {
    uint64_t begun; /* when the first list was */
    uint64_t since; /* when the last list was over, or what came after it */
    bool keep;
    size_t count;
    uint64_t ps[BATCH]; /* ticks, until they are put away */
};

static void put_away(struct run *run, struct batch *b)
{
    for (size_t i = 0; i < b->count; i++)
        b->ps[i] = clock_to_ps(&run->meter.clock, b->ps[i]);
    if (b->keep)
        stats_add(run->meter.stats, b->ps, b->count);
    b->count = 0;
    b->since = clock_read_unfenced(&run->meter.clock);
}

/* TURN_ON, TURN_END or -errno. A duration passes while the clock stands still, too: verifying may
 * take a thousand times as long as a list. */
static int turn(struct run *run, struct batch *b, uint64_t lists, uint64_t now)
{
    put_away(run, b);
    int what = meter_turn(run, now), status = 0;
    if (what >= 0 && run->meter.duration && now - b->begun >= run->meter.duration)
        what = TURN_END;
    if (what >= 0 && run->meter.looked == now)
        tell_progress(run, lists, now);
    if (what == TURN_PAUSE) {
        meter_stop(run);
        status = tell_interval(run, lists);
        meter_start(run);
        what = TURN_ON;
    }
    b->since = clock_read_unfenced(&run->meter.clock);
    return status ? status : what;
}

static int look(void *arg)
{
    return run_idle(arg, flight_poll(arg));
}

/* Verifying both ways, the ends go list by list: neither looks at its memory, or has the next list
 * written there, before the other is through. */
static bool in_step(const struct run *run)
{
    return run->verify && run->spec->both_ways && run->op->verify.here;
}

static int check_list(struct run *run, uint64_t number)
{
    const struct op_verify *verify = &run->op->verify;
    if (!in_step(run))
        return verify->after ? verify->after(run, number) : 0;
    int status = peer_barrier(run->session->peer, "list", look, run);
    return status ? status : verify->here(run, number);
}

/* What the op, or verifying, needs around a list: the clock stands still meanwhile. */
static int aside(struct run *run, int (*step)(struct run *run, uint64_t number), uint64_t number,
                 struct batch *b)
{
    if (!step)
        return 0;
    meter_stop(run);
    int status = step(run, number);
    meter_go_on(run);
    b->since = run->meter.begin;
    return status;
}

/* The first that has enough ends it for both. */
static int agree_on(struct run *run, bool more)
{
    struct msg mine, theirs;
    struct peer *peer = run->session->peer;
    uint64_t go_on = 0;
    int status = msg_print(&mine, "more=%d\n", more);
    if (!status)
        status = peer_send(peer, &mine);
    if (!status)
        status = peer_recv(peer, &theirs, look, run);
    if (!status && msg_number(&theirs, "more", &go_on))
        status = fail(-EPROTO, "the %s's word on the next list cannot be read", peer->other);
    return status ? status : more && go_on ? TURN_ON : TURN_END;
}

/* Lists number, number + 1, ... up to count, or until the duration has passed. */
static int iterate(struct run *run, uint64_t number, uint64_t count, bool keep, uint64_t *done)
{
    const struct op_verify *verify = &run->op->verify;
    bool before = run->verify || run->op->traits & OP_STEPS;
    int what = TURN_ON, status = 0;
    meter_start(run);
    struct batch batch = {.begun = run->meter.begin, .since = run->meter.begin, .keep = keep};
    while (*done < count && what == TURN_ON) {
        if (before)
            status = aside(run, verify->before, number + *done, &batch);
        if (!status)
            status = one_list(run);
        uint64_t now = clock_read_unfenced(&run->meter.clock);
        if (!status) {
            batch.ps[batch.count++] = now - batch.since;
            batch.since = now;
            ++*done;
        }
        if (!status && run->verify) {
            status = aside(run, check_list, number + *done - 1, &batch);
            now = batch.since;
        }
        if (batch.count == BATCH)
            put_away(run, &batch);
        if (status)
            what = status;
        else if (now >= run->meter.next)
            what = turn(run, &batch, *done, now);
        if (what >= 0 && in_step(run)) {
            meter_stop(run);
            what = agree_on(run, *done < count && what == TURN_ON);
            meter_go_on(run);
            batch.since = run->meter.begin;
        }
    }
    put_away(run, &batch);
    meter_stop(run);
    return what < 0 ? what : 0;
}

/* Several pairs: lists that do not count, until all pairs are here. So each is measured while all
 * others run. Ends that are in step have no lists of their own: they wait. */
static int until_all(struct run *run, uint64_t *number)
{
    struct report *report = run->out.report;
    uint64_t looked_ms = clock_ms();
    int met = report && report->ops->meet ? report->ops->meet(report, true) : 1;
    while (!met) {
        uint64_t done = 0, now_ms = clock_ms();
        met = in_step(run) ? look(run) : iterate(run, *number, 1, false, &done);
        met = met > 0 ? 0 : met;
        *number += done;
        if (!met && now_ms != looked_ms)
            met = peer_step(run->session->peer);
        looked_ms = now_ms;
        if (!met)
            met = report->ops->meet(report, false);
    }
    return met < 0 ? met : 0;
}

static int initiate(struct run *run)
{
    const struct spec_count *count = &run->spec->count;
    struct interference now;
    struct meter fresh = run->meter;
    uint64_t warm = 0, done = 0;
    run->meter.duration = run->meter.interval = 0;
    int status = iterate(run, 0, count->warmup, false, &warm);
    if (!status)
        status = until_all(run, &warm);
    if (status)
        return status;
    run->meter = fresh;
    status = iterate(run, warm, count->duration_ms ? UINT64_MAX : count->iterations, true, &done);
    fill(run, done);
    run->out.result.final = done > 0;
    run->out.result.sampling.warmup = warm;
    meter_judge(run);
    interference_now(&now);
    interference_add(&run->out.result.interference, &run->meter.before, &now);
    if (status)
        return status;
    fresh = run->meter;
    run->meter.duration = run->meter.interval = 0;
    warm += done;
    status = until_all(run, &warm);
    run->meter = fresh;
    return status;
}

/* ---- the other end ---- */

static const uint64_t go_on_ps = 1000000000;

/* Both ways: what an end does that is done before the other. Then it looks for the other's word at
 * once: a list may take long. */
static int go_on(void *arg)
{
    struct run *run = arg;
    uint64_t begin = clock_read_unfenced(&run->meter.clock);
    uint64_t enough = clock_from_ps(&run->meter.clock, go_on_ps);
    int status = 0;
    while (!status && clock_read_unfenced(&run->meter.clock) - begin < enough)
        status = one_list(run);
    return status ? status : 1;
}

/* Neither end may stop polling before the other's last list is over. */
static int both_stop(struct run *run, uint64_t *count)
{
    struct msg mine, theirs;
    struct peer *peer = run->session->peer;
    int status = msg_print(&mine, "stopped=%" PRIu64 "\n", run->flight.number);
    if (!status)
        status = peer_send(peer, &mine);
    if (!status)
        status = peer_recv(peer, &theirs, look, run);
    if (!status && msg_number(&theirs, "stopped", count))
        status = fail(-EPROTO, "the %s's last message cannot be read", peer->other);
    return status;
}

static int respond(struct run *run)
{
    uint64_t count;
    bool both = run->spec->both_ways;
    int status = run_serve(run, both ? go_on : run_progress(run), &count);
    if (!status && both)
        status = both_stop(run, &count);
    if (!status && run->flight.ack.local && count != run->flight.arrivals)
        status = fail(-EPROTO, "%" PRIu64 " messages were sent, %" PRIu64 " came", count,
                      run->flight.arrivals);
    return status;
}

/* ---- the table ---- */

double part_rate(const struct part *part)
{
    double mine = part->elapsed_s > 0 ? (double)part->count / part->elapsed_s : 0;
    double theirs =
        part->reverse_elapsed_s > 0 ? (double)part->reverse_count / part->reverse_elapsed_s : 0;
    return mine + theirs;
}

/* Of both directions, and of all pairs. */
double list_delivered(const struct result *r)
{
    const struct part whole = {.count = r->count,
                               .elapsed_s = r->elapsed_s,
                               .reverse_count = r->reverse_count,
                               .reverse_elapsed_s = r->reverse_elapsed_s};
    double sum = 0;
    for (unsigned i = 0; r->parts && i < r->parts->count; i++)
        sum += part_rate(&r->parts->list[i]);
    return r->parts ? sum : part_rate(&whole);
}

/* What both ends of one NIC send each other, it sends and receives: the table has the NIC's. */
double list_rate(const struct result *r)
{
    return list_delivered(r) * (r->sums ? r->sums : 1);
}

/* Up to the number of its process, "NIC 0x12 PID 0" is an address. */
bool facts_loopback(const struct facts *f)
{
    const char *mine = f->session->facts.self;
    const char *end = strstr(mine, " PID ");
    return strncmp(mine, "NIC ", 4) == 0 && end &&
           strncmp(mine, f->remote, (size_t)(end - mine) + 5) == 0;
}

static double megabytes(const struct result *r)
{
    return list_rate(r) * (double)r->size / 1e6;
}

/* In packets of the fabric that the tools were made for. */
enum { PACKET_BYTES = 2048 };

static double packets(const struct result *r)
{
    uint64_t each = (r->size + PACKET_BYTES - 1) / PACKET_BYTES;
    return list_rate(r) * (double)each / 1e6;
}

static const struct column columns[] = {{"BW[MB/s]", megabytes, .kind = COLUMN_BANDWIDTH},
                                        {"PktRate[Mpkt/s]", packets, .kind = COLUMN_RATE},
                                        {0}};

static const char *samples(const struct spec *spec)
{
    (void)spec;
    return "list time";
}

static int check(const struct spec *spec, const struct op *op)
{
    if (!op->list.form)
        return fail(-EINVAL, "%s is not done in lists", op_called(spec));
    if (spec->size.max > spec->data.most)
        return fail(-EINVAL, "a buffer of at most %" PRIu64 " bytes does not hold %" PRIu64,
                    spec->data.most, spec->size.max);
    if (!spec->count.iterations && !spec->count.duration_ms)
        return fail(-EINVAL, "lists without an end: give a number of them or a duration");
    return 0;
}

const struct method method_list = {.name = "list",
                                   .both_ways = "lists both ways",
                                   .lists = true,
                                   .legs = 1,
                                   .columns = columns,
                                   .samples = samples,
                                   .check = check,
                                   .initiate = initiate,
                                   .respond = respond};
