/* SPDX-License-Identifier: BSD-3-Clause */
/* What ucx_perftest's options come to: a device, kinds of memory, and the spec of a test. */
#include "core/opt.h"
#include "fabric/choose.h"
#include "tool/perftest.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- devices and memory ---- */

/* Is it a device of some transport? And all that there is. */
struct search {
    const char *device;
    bool found;
    size_t used;
    char all[600];
};

static void look_at(void *arg, const char *device, const char *what)
{
    struct search *s = arg;
    const char *slash = strchr(device, '/');
    (void)what;
    s->found |= slash && strcmp(slash + 1, s->device) == 0;
    if (s->used < sizeof s->all)
        s->used += (size_t)snprintf(s->all + s->used, sizeof s->all - s->used, " %s", device);
}

static int find_device(const char *device)
{
    struct search search = {.device = device};
    char guess[FABRIC_DEVICE_MAX + 24];
    fabric_list(look_at, &search);
    if (search.found)
        return 0;
    fabric_guess(device, guess, sizeof guess);
    return fail(-ENODEV, "no device \"%s\" here%s; there are:%s", device, guess, search.all);
}

int perf_device(unsigned kind, const char *transport, const char *device, char *text, size_t room)
{
    const char *layer = kind & PERF_LAYER ? "ucp" : "uct";
    bool both = *transport && *device;
    const char *colon = strchr(transport, ':');
    int n;
    struct fabric_choice choice;
    bool bare = !*transport && *device && !fabric_named(device) && fabric_choose(device, &choice);
    if (bare && find_device(device))
        return -ENODEV;
    if (both && strchr(device, ':') && fabric_named(device) && !fabric_named(transport))
        return fail(-EINVAL, "device %s is of another fabric than transport %s", device, transport);
    /* A transport of UCX's has no colon. */
    if (colon && !fabric_named(transport))
        return fabric_choose(transport, &choice);
    if (*transport && fabric_named(transport))
        n = snprintf(text, room, "%s%s%s", transport, !both ? "" : colon ? "/" : ":", device);
    else if (!*transport && !*device && kind & PERF_UCP & ~PERF_LAYER)
        n = snprintf(text, room, "ucp");
    else if (!*transport && !bare)
        n = snprintf(text, room, "%s", device);
    else if (fabric_named(layer))
        n = snprintf(text, room, "%s:%s%s%s", layer, transport, *device ? "/" : "", device);
    else
        return fail(-ENODEV,
                    "%s %s is UCX's, and the module for UCX (weft-%s.so) is not installed; "
                    "--list says what there is",
                    *transport ? "transport" : "device", *transport ? transport : device, layer);
    return n >= 0 && (size_t)n < room ? 0 : fail(-EINVAL, "a device name that is too long");
}

/* As perf_device takes them: UCX's transports have no prefix, and what follows a slash is -d. */
void perf_typed(const char *device, char *text, size_t room)
{
    bool layer = strncmp(device, "uct:", 4) == 0 || strncmp(device, "ucp:", 4) == 0;
    const char *plain = layer ? device + 4 : device;
    const char *slash = strchr(plain, '/');
    int length = (int)(slash ? slash - plain : (ptrdiff_t)strlen(plain));
    snprintf(text, room, "%s%.*s%s%s", length ? "-x " : "", length, plain,
             slash ? (length ? " -d " : "-d ") : "", slash ? slash + 1 : "");
}

int perf_memory(const char *text, int rank, char memory[PERF_MEMORY])
{
    const struct memory_ops *kind;
    unsigned gpu;
    const char *comma = strchr(text, ',');
    if (rank == PEER_SERVER && comma)
        text = comma + 1;
    else if (comma)
        snprintf(memory, PERF_MEMORY, "%.*s", (int)(comma - text), text);
    if (rank == PEER_SERVER || !comma)
        snprintf(memory, PERF_MEMORY, "%s", text);
    return memory_choose(memory, &kind, &gpu);
}

unsigned perf_kind(const struct perftest *o)
{
    unsigned kind = perf_tests[o->test - 1].kind;
    char memory[PERF_MEMORY];
    const struct memory_ops *ops;
    unsigned gpu;
    for (int rank = 0; rank < 2 && kind & PERF_LAYER; rank++)
        if (!perf_memory(o->memory, rank, memory) && !memory_choose(memory, &ops, &gpu) && ops->gpu)
            kind |= PERF_UCP;
    return kind;
}

int perf_same_threads(const struct opt_set *set, const struct msg *ask)
{
    uint64_t mine = ((const struct perftest *)set->base)->spec.threads, theirs;
    if (opt_origin(set, opt_find(set, "threads")) != OPT_BY_USER)
        return 0;
    if (msg_number(ask, "threads", &theirs))
        return fail(-EPROTO, "a test without a number of threads");
    if (theirs == mine)
        return 0;
    return fail(-EINVAL,
                "the client has %" PRIu64 " threads, the server %" PRIu64
                ": give both the same --threads",
                theirs, mine);
}

/* ---- the spec of a test ---- */

static int assign(struct spec *spec, enum spec_row row, const char *text)
{
    struct opt_set set = {.rows = spec_rows, .base = spec};
    return text ? opt_assign(&set, &spec_rows[row], text, OPT_BY_DEFAULT) : 0;
}

/* -s has the pieces of a message, which -D may leave in one. */
static void settle_pieces(struct spec *spec, const struct perftest *o)
{
    const char *layout = o->layout ? perf_layouts[o->layout - 1] : "";
    const char *comma = strchr(layout, ',');
    struct spec_pieces *pieces = &spec->data.pieces;
    spec->data.layout = o->layout <= LAYOUTS ? o->layout : 0;
    pieces->gather = strncmp(layout, "iov", 3) == 0;
    pieces->scatter = comma && strcmp(comma, ",iov") == 0;
    pieces->sizes = pieces->gather || pieces->scatter ? o->size : (struct opt_amounts){0};
    spec->size.min = 0;
    for (uint64_t i = 0; i < o->size.count; i++)
        spec->size.min += o->size.list[i];
    spec->size.max = spec->size.min;
}

/* Options that a fabric has under names of its own. */
static void settle_tunes(struct spec *spec, const struct perftest *o)
{
    const struct {
        bool asked;
        const char *name, *value;
    } tunes[] = {{o->errors, "errors=", o->errors ? perf_errors[o->errors - 1] : ""},
                 {o->registered, "registered", ""},
                 {o->nonblock, "nonblock", ""},
                 {o->protocols, "protocols", ""}};
    size_t used = 0;
    memset(spec->tunes, 0, sizeof spec->tunes);
    for (size_t i = 0; i < LENGTH(tunes); i++)
        if (tunes[i].asked && used < sizeof spec->tunes)
            used += (size_t)snprintf(spec->tunes + used, sizeof spec->tunes - used, "%s%s%s",
                                     used ? "," : "", tunes[i].name, tunes[i].value);
}

/* The value of an atomic is as long as the message. */
static int settle_atomic(struct spec *spec, const struct perf_test *test)
{
    uint64_t size = spec->size.min;
    if (!test->amo)
        return 0;
    if (size != sizeof(uint32_t) && size != sizeof(uint64_t))
        return fail(-EINVAL, "%s of %llu bytes: an atomic has 4 or 8", op_called(spec),
                    (unsigned long long)size);
    return assign(spec, SPEC_AMO_TYPE, size == sizeof(uint32_t) ? "UINT32" : "UINT64");
}

/* In UCX's protocol layer a header is not part of the size, and there is none unless asked for. */
static void settle_header(struct opt_set *set)
{
    struct perftest *o = set->base;
    if (!o->spec.data.apart || opt_origin(set, opt_find(set, "am-header")) == OPT_BY_USER)
        return;
    o->spec.data.am_header = 0;
    opt_resolved(set, "am-header", "test");
}

int perf_test_apply(struct spec *spec, const struct perf_test *test)
{
    int status = assign(spec, SPEC_OP, test->op);
    if (!status)
        status = assign(spec, SPEC_METHOD, test->method);
    if (!status)
        status = assign(spec, SPEC_AMO_OP, test->amo);
    spec->amo.fetching = test->kind & PERF_FETCHES;
    spec->tag.sync = test->kind & PERF_SYNC;
    spec->data.apart = test->kind & PERF_UCP & ~PERF_LAYER;
    return status ? status : settle_atomic(spec, test);
}

int perf_settle(struct opt_set *set)
{
    struct perftest *o = set->base;
    struct spec *spec = &o->spec;
    const struct opt *iters = opt_find(set, "iters"), *most = opt_find(set, "outstanding");
    if (!o->test)
        return fail(-EINVAL, "no test: say which with -t (-h lists them)");
    const struct perf_test *test = &perf_tests[o->test - 1];
    /* Without a limit of its own, a test with a duration ends by that. */
    if (spec->count.duration_ms && opt_origin(set, iters) == OPT_BY_DEFAULT) {
        spec->count.iterations = 0;
        opt_resolved(set, "iters", "duration");
    }
    if (!o->outstanding || opt_origin(set, most) != OPT_BY_USER)
        o->outstanding = test->outstanding;
    spec->pace.outstanding = o->outstanding;
    if (opt_origin(set, most) == OPT_BY_DEFAULT && test->outstanding != 1)
        opt_resolved(set, "outstanding", "test");
    settle_pieces(spec, o);
    settle_tunes(spec, o);
    spec->local.ignore_mismatch = spec->local.ucx_words = true;
    spec->waits.events = o->wait_mode == PERF_WAIT_SLEEP;
    spec->data.lend = o->stream_mode == PERF_STREAM_LENDS;
    int status = perf_test_apply(spec, test);
    settle_header(set);
    if (!status && spec->both_ways && !method_of(spec)->both_ways)
        status = fail(-EINVAL, "--bidir is for streams: %s goes there and back anyway", test->name);
    if (!status && op_of(spec)->verb != VERB_TSEND && (spec->tag.wildcard || spec->tag.unexpected))
        status = fail(-EINVAL, "-C and -U are for tagged messages: %s has none", test->name);
    return status ? status : spec_check(spec);
}
