/* SPDX-License-Identifier: BSD-3-Clause */
/* One test of the library, between two ends that were asked for the same. What cannot be done is
 * found out before anything is timed, and both ends hear of it and end with the same sentence. */
#include "bench/setup.h"
#include "core/clock.h"
#include "fabric/choose.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ALIGN = 128, LEAST_HALF = 256, WHY = 600 };

const struct test_op *test_op_find(enum weft_op op)
{
    static const struct test_op *const ops[] = {
        [WEFT_AM] = &test_am,      [WEFT_PUT] = &test_put,   [WEFT_GET] = &test_get,
        [WEFT_ADD] = &test_add,    [WEFT_FADD] = &test_fadd, [WEFT_SWAP] = &test_swap,
        [WEFT_CSWAP] = &test_cswap};
    return (size_t)op < LENGTH(ops) ? ops[op] : NULL;
}

static const struct test_method *method_find(enum weft_mode mode)
{
    static const struct test_method *const methods[] = {[WEFT_PING_PONG] = &test_ping_pong,
                                                        [WEFT_STREAM] = &test_stream,
                                                        [WEFT_STREAM_BOTH] = &test_stream_both};
    return (size_t)mode < LENGTH(methods) ? methods[mode] : NULL;
}

/* ---- what is wrong on every machine ---- */

static int check_layout(const struct weft_params *p, const struct test_op *op)
{
    if (p->layout == WEFT_FIRST_LAYOUT)
        return 0;
    if (p->layout < WEFT_SHORT || p->layout > WEFT_ZCOPY)
        return fail(-EINVAL, "no data layout %d", p->layout);
    const char *name = fabric_layout_names[p->layout - WEFT_SHORT];
    if (op->atomic && p->layout != WEFT_SHORT)
        return fail(-EINVAL, "data layout %s is not for atomics: %s has short alone", name,
                    op->name);
    if (op == &test_get && p->layout == WEFT_SHORT)
        return fail(-EINVAL, "data layout short is not for get: it has bcopy and zcopy");
    if (op == &test_am && p->layout == WEFT_SHORT && p->size < sizeof(uint64_t))
        return fail(-EINVAL,
                    "a message of %" PRIu64 " bytes: a short active message begins with its header "
                    "of 8 bytes",
                    p->size);
    if (op == &test_am && p->layout == WEFT_ZCOPY && p->am_header > p->size)
        return fail(-EINVAL,
                    "a message of %" PRIu64 " bytes has no room for its header of %" PRIu64,
                    p->size, p->am_header);
    return 0;
}

static int check_mode(const struct weft_params *p, const struct test_op *op,
                      const struct test_method *method)
{
    if (!op)
        return fail(-EINVAL, "no operation %d", p->op);
    if (!method)
        return fail(-EINVAL, "no mode %d", p->mode);
    if (method == &test_ping_pong && !op->fire)
        return fail(-EINVAL, "%s has no ping-pong: the other end cannot answer it", op->name);
    if (method == &test_stream_both && p->verify && op->answer)
        return fail(-EINVAL,
                    "verifying %s asks the other end, which is sending too: not in both directions "
                    "at once",
                    op->name);
    return 0;
}

int test_check(const struct weft_params *p)
{
    const struct test_op *op = test_op_find(p->op);
    int status = check_mode(p, op, method_find(p->mode));
    if (status)
        return status;
    if (!p->size || p->size > UINT32_MAX)
        return fail(-EINVAL, "a message of %" PRIu64 " bytes: 1 to %u are possible", p->size,
                    UINT32_MAX);
    if (op->atomic && p->size != sizeof(uint32_t) && p->size != sizeof(uint64_t))
        return fail(-EINVAL, "%s of %" PRIu64 " bytes: an atomic has 4 or 8", op->name, p->size);
    if (p->am_header && p->am_header < sizeof(uint64_t))
        return fail(-EINVAL, "a header of %" PRIu64 " bytes: none, or at least 8", p->am_header);
    if (!p->window || p->window > UINT32_MAX / 2)
        return fail(-EINVAL, "a window of %" PRIu64 " messages: at least 1", p->window);
    if (!p->outstanding)
        return fail(-EINVAL, "0 outstanding operations: at least 1");
    if (!p->timeout_ms)
        return fail(-EINVAL, "a timeout of 0");
    if (p->duration_ms > UINT64_C(1000000000) || p->interval_ms > UINT64_C(1000000000))
        return fail(-EINVAL, "a duration or an interval of more than 1000000 s");
    for (size_t i = 0; i < WEFT_PERCENTILES && p->percentiles[i] != 0; i++)
        if (!(p->percentiles[i] > 0 && p->percentiles[i] < 100))
            return fail(-EINVAL, "percentile %g is not between 0 and 100", p->percentiles[i]);
    return check_layout(p, op);
}

/* ---- what this fabric lacks ---- */

/* Where none was asked for. If there is none, the usual one, which is then refused. */
static enum weft_layout first_layout(const struct run *run)
{
    enum weft_layout usual = run->test == &test_get ? WEFT_BCOPY : WEFT_SHORT;
    for (unsigned k = usual - WEFT_SHORT; k < LAYOUTS && !run->test->atomic; k++) {
        struct weft_params request = *run->params;
        request.layout = (enum weft_layout)(WEFT_SHORT + k);
        if (setup_any_gpu(run) && !(run->facts.gpu_layouts & 1U << k))
            continue;
        if (run->facts.layout_max[run->verb][k] >= request.size &&
            !check_layout(&request, run->test))
            return request.layout;
    }
    return usual;
}

static int can_layout(const struct run *run)
{
    const struct weft_params *p = run->params;
    const size_t *most = run->facts.layout_max[run->verb];
    size_t here = most[p->layout - WEFT_SHORT];
    const char *name = fabric_layout_names[p->layout - WEFT_SHORT];
    char has[64] = "";
    for (int i = 0; i < LAYOUTS; i++)
        if (most[i])
            snprintf(has + strlen(has), sizeof has - strlen(has), "%s%s", *has ? ", " : "",
                     fabric_layout_names[i]);
    if (!here)
        return fail(-ENOTSUP, "%s has no %s in layout %s; it has %s", run->form, run->name, name,
                    *has ? has : "none");
    if (setup_any_gpu(run) && !(run->facts.gpu_layouts & 1U << (p->layout - WEFT_SHORT)))
        return fail(-ENOTSUP, "%s has no layout %s for GPU memory", run->form, name);
    if (p->size > here)
        return fail(-EMSGSIZE, "%s: %s in layout %s takes at most %zu bytes, not %" PRIu64,
                    run->form, run->name, name, here, p->size);
    if (p->op == WEFT_AM && p->layout == WEFT_ZCOPY && p->am_header > run->facts.max_header)
        return fail(-EMSGSIZE,
                    "%s: an active message's header takes at most %zu bytes, not %" PRIu64,
                    run->form, run->facts.max_header, p->am_header);
    return 0;
}

static int can_atomic(const struct run *run)
{
    const struct fabric_facts *facts = &run->facts;
    unsigned type = run->params->size == sizeof(uint32_t) ? AMO_UINT32 : AMO_UINT64;
    bool has = facts->amo[run->test->fetch][run->test->amo] & 1U << type;
    if (run->test->amo == AMO_CSWAP)
        has = has && facts->cswap[AMO_EQ] & 1U << type;
    return has ? 0
               : fail(-ENOTSUP, "%s has no %s of %" PRIu64 " bytes", run->form, run->name,
                      run->params->size);
}

static int can(const struct run *run)
{
    const struct test_op *op = run->test;
    bool answers = run->test_method == &test_ping_pong ? op != &test_am : op->needs_ack;
    int status = 0;
    if (op->verbs & ~run->facts.verbs)
        return fail(-ENOTSUP, "%s cannot %s", run->form, run->name);
    for (int rank = 0; rank < 2 && !status; rank++)
        status = setup_can_gpu(&run->facts, run->form, op->verbs, run->vendors[rank]);
    if (status)
        return status;
    if (run->facts.alone && run->params->verify)
        return fail(-EINVAL, "%s: nothing to verify", run->form);
    if (run->facts.alone && answers)
        return fail(-ENOTSUP, "%s: nobody is there to answer %s in %s", run->form, run->name,
                    run->test_method->name);
    return op->atomic ? can_atomic(run) : can_layout(run);
}

/* ---- agreeing ---- */

/* Both ends say whether they can go on; if one cannot, both return the same reason. */
static int verdict(struct run *run, int status, struct msg *mine, struct msg *theirs)
{
    char why[WHY], their_why[WHY] = "";
    uint64_t code = 0;
    snprintf(why, sizeof why, "%s", fail_reason());
    if (status == -EINTR)
        return status;
    int swapped = status ? msg_print(mine, "code=%d\nwhy=%s\n", -status, why) : 0;
    if (!swapped)
        swapped = peer_swap(run->peer, mine, theirs);
    if (swapped)
        return swapped;
    if (!msg_number(theirs, "code", &code) &&
        (!code || code > 4095 || msg_value(theirs, "why", their_why, sizeof their_why)))
        return fail(-EPROTO, "the %s's answer cannot be read", run->peer->other);
    if (!status && !code)
        return 0;
    run->refused = true;
    if (status && (run->peer->rank == PEER_CLIENT || !code))
        return fail(status, "%s", why);
    return fail(-(int)code, "%s", their_why);
}

#define COMMON(field)                                                                              \
    {                                                                                              \
#field, offsetof(struct weft_params, field)                                                \
    }

/* What both ends must have asked for alike. */
static const struct {
    const char *name;
    size_t at;
} common[] = {COMMON(size),   COMMON(am_header),  COMMON(window),     COMMON(outstanding),
              COMMON(warmup), COMMON(iterations), COMMON(duration_ms)};

static int describe(struct run *run, struct msg *text)
{
    const struct weft_params *p = run->params;
    char nonce[33];
    int status = random_digits(nonce, sizeof nonce);
    if (!status)
        status = msg_print(text, "op=%d\nmode=%d\nlayout=%d\nverify=%d\n", p->op, p->mode,
                           p->layout, p->verify != 0);
    for (size_t i = 0; i < LENGTH(common) && !status; i++)
        status = msg_add(text, "%s=%" PRIu64 "\n", common[i].name,
                         *(const uint64_t *)((const char *)p + common[i].at));
    if (!status)
        status = msg_add(text, "device=%s\nnonce=%s\nmemory=%s\n", p->device ? p->device : "",
                         nonce, p->memory ? p->memory : "host");
    return status ? status : fabric_describe(NULL, text);
}

/* Both ends compare both texts, so both come to the same sentence. */
static int compare(const struct run *run, const struct msg *mine, const struct msg *theirs)
{
    static const char *const more[] = {"op", "mode", "layout", "verify"};
    bool client = run->peer->rank == PEER_CLIENT;
    for (size_t i = 0; i < LENGTH(common) + LENGTH(more); i++) {
        const char *name = i < LENGTH(common) ? common[i].name : more[i - LENGTH(common)];
        uint64_t here = 0, there = 0;
        if (msg_number(mine, name, &here) || msg_number(theirs, name, &there))
            return fail(-EPROTO, "the %s does not say its %s", run->peer->other, name);
        if (here != there)
            return fail(-EINVAL,
                        "the two ends were asked for different tests: %s is %" PRIu64
                        " at the client and %" PRIu64 " at the server",
                        name, client ? here : there, client ? there : here);
    }
    return 0;
}

/* Whose GPU each end's buffer is on. */
static int note_vendors(struct run *run, const struct msg *mine, const struct msg *theirs)
{
    bool client = run->peer->rank == PEER_CLIENT;
    const struct msg *texts[2] = {client ? mine : theirs, client ? theirs : mine};
    int status = 0;
    for (int rank = 0; rank < 2 && !status; rank++) {
        const struct memory_ops *kind;
        unsigned device;
        char name[48];
        if (msg_value(texts[rank], "memory", name, sizeof name))
            return fail(-EPROTO, "a kind of memory that cannot be read");
        status = memory_choose(name, &kind, &device);
        if (!status)
            run->vendors[rank] = kind->vendor;
    }
    return status;
}

static int choose_fabric(const struct msg *mine, const struct msg *theirs, bool client,
                         struct fabric_choice *choice)
{
    char here[FABRIC_DEVICE_MAX] = "", there[FABRIC_DEVICE_MAX] = "", device[FABRIC_DEVICE_MAX];
    struct fabric_choice other;
    const char *why;
    int status = msg_value(mine, "device", here, sizeof here);
    if (!status)
        status = msg_value(theirs, "device", there, sizeof there);
    if (status)
        return fail(-EPROTO, "a device that cannot be read");
    if (!*here && !*there)
        status = fabric_between(mine, theirs, NULL, device, sizeof device, &why);
    else
        snprintf(device, sizeof device, "%s", *here ? here : there);
    if (!status)
        status = fabric_choose(device, choice);
    if (status || !*here || !*there)
        return status;
    /* A device of its own, but of the same fabric. */
    status = fabric_choose(there, &other);
    if (!status && other.ops != choice->ops)
        status = fail(-ENODEV, "the client's fabric is %s, the server's is %s",
                      client ? choice->ops->name : other.ops->name,
                      client ? other.ops->name : choice->ops->name);
    return status;
}

/* Loading a module can take seconds. */
static int choose_watched(const struct run *run, const struct msg *mine, const struct msg *theirs,
                          struct fabric_choice *choice)
{
    struct keepalive keepalive;
    keepalive_begin(&keepalive, run->peer, KEEPALIVE_LIBRARY_MS);
    int status = choose_fabric(mine, theirs, run->peer->rank == PEER_CLIENT, choice);
    keepalive_end(&keepalive);
    return status;
}

/* ---- getting ready ---- */

static bool measures(const struct run *run)
{
    return run->peer->rank == PEER_CLIENT || run->test_method == &test_stream_both;
}

static int open_clock(struct run *run)
{
    int status = clock_open(&run->clock, CLOCK_CYCLES);
    if (status == -ENOTSUP)
        status = clock_open(&run->clock, CLOCK_GETTIME);
    if (!status)
        status = stats_open(&run->stats, 0);
    run->histogram->stats = run->stats;
    run->histogram->us_per_tick = run->clock.ps_per_tick / 1e6 / run->test_method->legs;
    return status;
}

static int open_fabric(struct run *run, const struct fabric_choice *choice, const char *nonce)
{
    struct fabric_want want = {.device = choice->device,
                               .here = run->peer->here,
                               .service = 1,
                               .verbs = run->test->verbs,
                               .hints = HINT(SHORT) | HINT(BCOPY) | HINT(ZCOPY),
                               .gpus = (1U << run->vendors[0] | 1U << run->vendors[1]) &
                                       MEMORY_ALL_GPUS,
                               .server = run->peer->rank == PEER_SERVER,
                               .looks = run->params->verify};
    run->nonce = nonce;
    return setup_open(run, choice->ops, &want);
}

static int make_ready(struct run *run, const struct fabric_choice *choice, const char *nonce,
                      struct msg *key)
{
    size_t half = run->params->size < LEAST_HALF ? LEAST_HALF : run->params->size;
    int status = open_fabric(run, choice, nonce);
    if (status)
        return status;
    snprintf(run->form, sizeof run->form, "%s", run->facts.form);
    snprintf(run->histogram->fabric, sizeof run->histogram->fabric, "%s", run->form);
    run->result->fabric = run->histogram->fabric;
    run->receive_at = (half + ALIGN - 1) / ALIGN * ALIGN;
    if (run->params->layout == WEFT_FIRST_LAYOUT)
        run->settled.layout = first_layout(run);
    status = can(run);
    if (!status && measures(run))
        status = open_clock(run);
    if (!status)
        status = setup_place(run, run->params->memory ? run->params->memory : "host",
                             2 * run->receive_at);
    if (!status)
        status = setup_expose(run, key);
    if (status)
        return status;
    run->exposed = true;
    /* A GPU's has been cleared, and is not looked at by the CPU. */
    if (!run->buffer.gpu) {
        memset(run->buffer.address, 0, run->buffer.length);
        run->inbox = run->buffer.address + run->receive_at;
    }
    run->size = run->params->size;
    run->verify = run->params->verify;
    return run->test->prepare(run);
}

static int take_down(struct run *run, int status)
{
    if (run->exposed)
        run->fabric->withdraw(run->handle, &run->buffer);
    if (run->handle)
        run->fabric->close(run->handle);
    return setup_free(run, status);
}

/* ---- the run ---- */

static int tell_done(struct run *run)
{
    struct msg done;
    int status = msg_print(&done, "done=%" PRIu64 "\n", run->number);
    return status ? status : peer_send(run->peer, &done);
}

/* How the other end fared, where it measured too. */
static int swap_figures(struct run *run)
{
    struct msg mine, theirs;
    uint64_t elapsed_ps = 0;
    int status = msg_print(&mine, "iterations=%" PRIu64 "\nelapsed_ps=%.0f\n", run->tally.done,
                           (double)run->tally.elapsed * run->clock.ps_per_tick);
    if (!status)
        status = peer_swap(run->peer, &mine, &theirs);
    if (!status && (msg_number(&theirs, "iterations", &run->result->reverse_iterations) ||
                    msg_number(&theirs, "elapsed_ps", &elapsed_ps)))
        status = fail(-EPROTO, "the %s's figures cannot be read", run->peer->other);
    run->result->reverse_elapsed_s = (double)elapsed_ps / 1e12;
    return status;
}

static int measure(struct run *run)
{
    int status = 0;
    if (measures(run)) {
        tally_open(run);
        interference_now(&run->before);
        status = run->test_method->initiate(run);
        if (!status)
            status = tell_done(run);
    }
    if (!status && (run->peer->rank == PEER_SERVER || run->test_method == &test_stream_both))
        status = run->test_method->respond(run);
    if (!status && run->test_method == &test_stream_both)
        status = swap_figures(run);
    if (!status)
        status = peer_barrier(run->peer, "over", NULL, NULL);
    if (!status && measures(run) && (status = clock_check(&run->clock)) == -ERANGE) {
        warn("%s", fail_reason());
        status = 0;
    }
    return status;
}

/* Each end has looked for itself; a fabric may have other layouts there. */
static int same_layout(struct run *run, const struct msg *theirs)
{
    uint64_t layout = 0;
    if (!msg_number(theirs, "layout", &layout) && layout == (uint64_t)run->params->layout)
        return 0;
    run->refused = true;
    return fail(-ENOTSUP, "the two ends do not have the same data layouts first: choose one");
}

/* What is known when an iteration counts. */
static const char *proves(const struct run *run)
{
    if (run->test_method == &test_ping_pong)
        return "the other end has seen the message, and its answer has come in";
    if (run->test->needs_ack)
        return "the target has acknowledged the message";
    return run->facts.proves[run->verb] ? run->facts.proves[run->verb] : "";
}

static void tell_begin(struct run *run, const struct fabric_choice *choice, const struct msg *mine,
                       const struct msg *theirs)
{
    struct test_facts facts = {.choice = choice,
                               .fabric = &run->facts,
                               .layout = run->params->layout,
                               .method = run->test_method->name,
                               .proves = proves(run),
                               .legs = run->test_method->legs,
                               .clock = &run->clock,
                               .about = {mine, theirs}};
    run->audience->begin(run->audience->arg, &facts);
}

static int ready(struct run *run, const struct fabric_choice *choice, const char *nonce)
{
    struct msg mine, theirs, key;
    int status = make_ready(run, choice, nonce, &key);
    int said = msg_print(&mine, "layout=%d\n", run->params->layout);
    status = verdict(run, status ? status : said, &mine, &theirs);
    if (!status)
        status = same_layout(run, &theirs);
    if (!status)
        status = setup_compare(run);
    if (!status)
        status = setup_connect(run, &key);
    snprintf(run->form, sizeof run->form, "%s", run->facts.form);
    snprintf(run->histogram->fabric, sizeof run->histogram->fabric, "%s", run->form);
    if (!status)
        status =
            msg_print(&mine, "buffer=%s\nfabric=%s\nname=%s\n",
                      run->buffer.kind ? run->buffer.kind->name : "", run->form, run->facts.self);
    if (!status)
        status = peer_swap(run->peer, &mine, &theirs);
    if (!status && run->audience && run->audience->begin)
        tell_begin(run, choice, &mine, &theirs);
    return status ? status : measure(run);
}

static int agree(struct run *run)
{
    struct msg mine, theirs;
    struct fabric_choice choice = {0};
    char nonce[33];
    bool client = run->peer->rank == PEER_CLIENT;
    int status = test_check(run->params);
    if (!status)
        status = describe(run, &mine);
    status = verdict(run, status, &mine, &theirs);
    if (status || !run->test)
        return status;
    status = compare(run, &mine, &theirs);
    if (!status)
        status = note_vendors(run, &mine, &theirs);
    if (!status && msg_value(client ? &mine : &theirs, "nonce", nonce, sizeof nonce))
        status = fail(-EPROTO, "the client gives no nonce");
    if (!status)
        status = choose_watched(run, &mine, &theirs, &choice);
    /* A module may be missing at one end alone. */
    int chosen = msg_print(&mine, "chosen=1\n");
    status = verdict(run, status ? status : chosen, &mine, &theirs);
    return status ? status : ready(run, &choice, nonce);
}

/* The thread is put where it was before. */
static int pinned(struct run *run)
{
    cpu_set_t before;
    bool moves = run->params->cpu >= 0;
    if (moves && sched_getaffinity(0, sizeof before, &before))
        return fail(-errno, "which CPUs this thread may use: %s", strerror(errno));
    int status = moves ? cpu_pin(run->params->cpu) : 0;
    status = status ? verdict(run, status, &(struct msg){0}, &(struct msg){0}) : agree(run);
    if (moves)
        sched_setaffinity(0, sizeof before, &before);
    return status;
}

int test_run(const struct weft_params *params, struct peer *peer,
             const struct test_audience *audience, struct weft_result *result, bool *usable)
{
    struct run run = {.settled = *params,
                      .peer = peer,
                      .audience = peer->rank == PEER_CLIENT ? audience : NULL,
                      .result = result,
                      .test = test_op_find(params->op),
                      .test_method = method_find(params->mode),
                      .buffer = {.fd = -1}};
    struct weft_histogram *histogram = calloc(1, sizeof *histogram);
    *result = (struct weft_result){.histogram = histogram};
    *usable = false;
    if (!histogram)
        return fail(-ENOMEM, "no memory for statistics");
    run.params = &run.settled;
    run.histogram = histogram;
    run.name = run.test ? run.test->name : "?";
    run.verb = run.test ? run.test->verb : VERB_WRITE;
    int awake = setup_awake();
    int status = pinned(&run);
    if (!run.refused)
        status = setup_leave(&run, status);
    status = take_down(&run, status);
    if (!run.refused)
        status = setup_leave(&run, status);
    *usable = !status || run.refused;
    if (awake >= 0)
        close(awake);
    return status;
}
