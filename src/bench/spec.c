/* SPDX-License-Identifier: BSD-3-Clause */
/* The rows of the spec, and the rules that no single row knows, each a sentence. */
#include "bench/spec.h"
#include "bench/team.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <weft.h>

enum { LONGEST_MS = 1000000000, LONGEST_LIST = 16382 };
static const char *const clock_names[] = {"clock_gettime", "cycles", NULL};

#define FIELD(member) .field = offsetof(struct spec, member)
#define PARAM(member) .param = 1 + offsetof(struct weft_params, member)

/* clang-format off */
const struct opt spec_rows[] = {
    [SPEC_OP] = {.name = "op", .type = OPT_CHOICE, FIELD(op), PARAM(op), .choices = op_names,
     .fallback = "am", .flags = OPT_SHARED | OPT_SETTING},
    [SPEC_METHOD] = {.name = "method", .type = OPT_CHOICE, FIELD(method), PARAM(method),
     .choices = method_names, .fallback = "ping-pong", .flags = OPT_SHARED | OPT_SETTING},
    [SPEC_BOTH_WAYS] = {.name = "both_ways", .type = OPT_FLAG, FIELD(both_ways), PARAM(both_ways),
     .flags = OPT_SHARED | OPT_SETTING},
    [SPEC_SIZE] = {.name = "size", .type = OPT_SIZES, FIELD(size), PARAM(size),
     .max = UINT32_MAX, .fallback = "8", .flags = OPT_SHARED | OPT_SETTING},
    [SPEC_TIMEOUT] = {.name = "timeout_ms", .type = OPT_NUMBER, FIELD(timeout_ms),
     PARAM(timeout_ms), .min = 1, .max = 86400000, .fallback = "10000", .flags = OPT_SHARED | OPT_SETTING},
    [SPEC_ITERATIONS] = {.name = "iterations", .type = OPT_AMOUNT, FIELD(count.iterations),
     PARAM(iterations), .max = UINT64_MAX, .fallback = "1000000", .flags = OPT_SHARED | OPT_SETTING},
    [SPEC_DURATION] = {.name = "duration_ms", .type = OPT_NUMBER, FIELD(count.duration_ms),
     PARAM(duration_ms), .max = LONGEST_MS, .fallback = "0", .flags = OPT_SHARED | OPT_SETTING},
    [SPEC_WARMUP] = {.name = "warmup", .type = OPT_AMOUNT, FIELD(count.warmup), PARAM(warmup),
     .max = UINT64_MAX, .fallback = "10000", .flags = OPT_SHARED | OPT_SETTING},
    [SPEC_OPS_PER_SAMPLE] = {.name = "ops_per_sample", .type = OPT_NUMBER,
     FIELD(count.ops_per_sample), PARAM(ops_per_sample), .min = 1, .max = 1000, .fallback = "1",
     .flags = OPT_SHARED | OPT_SETTING},
    [SPEC_GAP] = {.name = "gap_ns", .type = OPT_NUMBER, FIELD(pace.gap_ns), PARAM(gap_ns),
     .max = 3600000000000, .fallback = "0", .flags = OPT_SHARED | OPT_SETTING},
    [SPEC_WINDOW] = {.name = "window", .type = OPT_AMOUNT, FIELD(pace.window), PARAM(window),
     .min = 1, .max = 1 << 20, .fallback = "128", .flags = OPT_SHARED | OPT_SETTING},
    [SPEC_OUTSTANDING] = {.name = "outstanding", .type = OPT_AMOUNT, FIELD(pace.outstanding),
     PARAM(outstanding), .min = 1, .max = 1 << 20, .fallback = "1", .flags = OPT_SHARED | OPT_SETTING},
    [SPEC_LIST] = {.name = "list", .type = OPT_AMOUNT, FIELD(pace.list), PARAM(list),
     .min = 1, .max = LONGEST_LIST, .fallback = "256", .flags = OPT_SHARED | OPT_SETTING},
    [SPEC_MOST] = {.name = "buffer_max", .type = OPT_AMOUNT, FIELD(data.most), PARAM(buffer_max),
     .min = 1, .max = UINT64_MAX, .fallback = "4294967296", .flags = OPT_SHARED | OPT_SETTING},
    [SPEC_ALIGN] = {.name = "align", .type = OPT_AMOUNT, FIELD(data.align), PARAM(align),
     .min = 1, .max = UINT32_MAX, .fallback = "64", .flags = OPT_SHARED | OPT_SETTING},
    [SPEC_LAYOUT] = {.name = "layout", .type = OPT_CHOICE, FIELD(data.layout), PARAM(layout),
     .choices = fabric_layout_names, .flags = OPT_SHARED | OPT_SETTING},
    [SPEC_AM_HEADER] = {.name = "am_header", .type = OPT_AMOUNT, FIELD(data.am_header),
     PARAM(am_header), .max = UINT32_MAX, .fallback = "8", .flags = OPT_SHARED | OPT_SETTING},
    [SPEC_APART] = {.name = "header_apart", .type = OPT_FLAG, FIELD(data.apart),
     .flags = OPT_SHARED | OPT_SETTING},
    [SPEC_COPIES] = {.name = "copies", .type = OPT_FLAG, FIELD(data.copies),
     .flags = OPT_SHARED | OPT_SETTING},
    [SPEC_LEND] = {.name = "lend", .type = OPT_FLAG, FIELD(data.lend),
     .flags = OPT_SHARED | OPT_SETTING},
    [SPEC_VERIFY] = {.name = "verify", .type = OPT_FLAG, FIELD(data.verify), PARAM(verify),
     .flags = OPT_SHARED | OPT_SETTING},
    [SPEC_PIECES] = {.name = "pieces", .type = OPT_AMOUNTS, FIELD(data.pieces.sizes), PARAM(pieces),
     .min = 1, .max = UINT32_MAX, .flags = OPT_SHARED | OPT_SETTING},
    [SPEC_STRIDE] = {.name = "piece_stride", .type = OPT_AMOUNT, FIELD(data.pieces.stride),
     PARAM(piece_stride), .max = UINT32_MAX, .fallback = "0", .flags = OPT_SHARED | OPT_SETTING},
    [SPEC_GATHER] = {.name = "gather", .type = OPT_FLAG, FIELD(data.pieces.gather), PARAM(gather),
     .flags = OPT_SHARED | OPT_SETTING},
    [SPEC_SCATTER] = {.name = "scatter", .type = OPT_FLAG, FIELD(data.pieces.scatter),
     PARAM(scatter), .flags = OPT_SHARED | OPT_SETTING},
    [SPEC_UNRESTRICTED] = {.name = "unrestricted", .type = OPT_FLAG, FIELD(hints.unrestricted),
     PARAM(unrestricted), .flags = OPT_SHARED | OPT_SETTING},
    [SPEC_NO_IDC] = {.name = "no_idc", .type = OPT_FLAG, FIELD(hints.no_idc), PARAM(no_idc),
     .flags = OPT_SHARED | OPT_SETTING},
    [SPEC_NO_LL] = {.name = "no_ll", .type = OPT_FLAG, FIELD(hints.no_ll), PARAM(no_ll),
     .flags = OPT_SHARED | OPT_SETTING},
    [SPEC_RENDEZVOUS] = {.name = "rendezvous", .type = OPT_FLAG, FIELD(hints.rendezvous),
     PARAM(rendezvous), .flags = OPT_SHARED | OPT_SETTING},
    [SPEC_MATCHING] = {.name = "matching", .type = OPT_FLAG, FIELD(hints.matching),
     PARAM(matching), .flags = OPT_SHARED | OPT_SETTING},
    [SPEC_NO_HRP] = {.name = "no_hrp", .type = OPT_FLAG, FIELD(hints.no_hrp), PARAM(no_hrp),
     .flags = OPT_SHARED | OPT_SETTING},
    [SPEC_AMO_OP] = {.name = "amo_op", .type = OPT_CHOICE, FIELD(amo.op), PARAM(amo_op),
     .choices = amo_op_names, .fallback = "SUM", .flags = OPT_SHARED | OPT_SETTING},
    [SPEC_AMO_COMPARE] = {.name = "amo_compare", .type = OPT_CHOICE, FIELD(amo.compare),
     PARAM(amo_compare), .choices = amo_compare_names, .fallback = "EQ", .flags = OPT_SHARED | OPT_SETTING},
    [SPEC_AMO_TYPE] = {.name = "amo_type", .type = OPT_CHOICE, FIELD(amo.type), PARAM(amo_type),
     .choices = amo_type_names, .fallback = "UINT64", .flags = OPT_SHARED | OPT_SETTING},
    [SPEC_FETCHING] = {.name = "fetching", .type = OPT_FLAG, FIELD(amo.fetching), PARAM(fetching),
     .flags = OPT_SHARED | OPT_SETTING},
    [SPEC_TAG_SYNC] = {.name = "tag_sync", .type = OPT_FLAG, FIELD(tag.sync), PARAM(tag_sync),
     .flags = OPT_SHARED | OPT_SETTING},
    [SPEC_TAG_WILDCARD] = {.name = "tag_wildcard", .type = OPT_FLAG, FIELD(tag.wildcard),
     PARAM(tag_wildcard), .flags = OPT_SHARED | OPT_SETTING},
    [SPEC_TAG_UNEXPECTED] = {.name = "tag_unexpected", .type = OPT_FLAG, FIELD(tag.unexpected),
     PARAM(tag_unexpected), .flags = OPT_SHARED | OPT_SETTING},
    [SPEC_EVENTS] = {.name = "events", .type = OPT_FLAG, FIELD(waits.events), PARAM(events),
     .flags = OPT_SHARED | OPT_SETTING},
    [SPEC_WAKEUP] = {.name = "wakeup", .type = OPT_FLAG, FIELD(waits.wakeup),
     .flags = OPT_SHARED | OPT_SETTING},
    [SPEC_TARGET_OUT] = {.name = "target_out", .type = OPT_FLAG, FIELD(waits.target_out),
     .flags = OPT_SHARED | OPT_SETTING},
    [SPEC_CLOCK] = {.name = "clock", .type = OPT_CHOICE, FIELD(local.clock), PARAM(clock),
     .choices = clock_names, .flags = OPT_SHARED | OPT_SETTING},
    [SPEC_IGNORE_MISMATCH] = {.name = "ignore_mismatch", .type = OPT_FLAG,
     FIELD(local.ignore_mismatch), .flags = OPT_SHARED | OPT_SETTING},
    [SPEC_KEEP_SAMPLES] = {.name = "keep_samples", .type = OPT_FLAG, FIELD(local.keep_samples),
     .flags = OPT_SHARED | OPT_SETTING},
    [SPEC_UCX_WORDS] = {.name = "ucx_words", .type = OPT_FLAG, FIELD(local.ucx_words),
     .flags = OPT_SHARED | OPT_SETTING},
    [SPEC_INTERVAL] = {.name = "interval_ms", .type = OPT_NUMBER, FIELD(local.interval_ms),
     PARAM(interval_ms), .max = LONGEST_MS, .fallback = "1000", .flags = OPT_SETTING},
    [SPEC_COUNTERS] = {.name = "counters", .type = OPT_TEXT, FIELD(counters), PARAM(counters),
     .max = COUNTERS_WHICH, .word = "LIST", .flags = OPT_SHARED | OPT_SETTING},
    [SPEC_TUNES] = {.name = "tunes", .type = OPT_TEXT, FIELD(tunes), PARAM(tunes),
     .max = SPEC_TUNES_TEXT, .word = "LIST", .flags = OPT_SHARED | OPT_SETTING},
    [SPEC_THREADS] = {.name = "threads", .type = OPT_NUMBER, FIELD(threads), PARAM(threads),
     .min = 1, .max = TEAM_MOST, .fallback = "1", .flags = OPT_SHARED | OPT_SETTING},
    [SPEC_ROWS] = {0}};
/* clang-format on */
OPT_FITS(spec_rows);

static struct opt_set rows_of(const struct spec *spec)
{
    return (struct opt_set){.rows = spec_rows, .base = (void *)spec};
}

void spec_defaults(struct spec *spec)
{
    struct opt_set set = rows_of(spec);
    *spec = (struct spec){0};
    opt_defaults(&set);
}

void spec_settle(struct spec *spec)
{
    const struct op *op = op_of(spec);
    if (op && op->traits & OP_NO_LAYOUTS && spec->amo.type)
        spec->size.min = spec->size.max = amo_size(spec_amo_type(spec));
}

int spec_encode(const struct spec *spec, struct msg *text)
{
    struct opt_set set = rows_of(spec);
    return opt_encode(&set, text);
}

int spec_decode(struct spec *spec, const struct msg *text)
{
    struct opt_set set = rows_of(spec);
    int status = opt_decode(&set, text);
    return status ? status : spec_check(spec);
}

int spec_compare(const struct spec *client, const struct spec *server)
{
    for (const struct opt *row = spec_rows; row->name; row++) {
        char here[512], there[512];
        opt_format(row, client, here, sizeof here);
        opt_format(row, server, there, sizeof there);
        if (row->flags & OPT_SHARED && strcmp(here, there) != 0)
            return fail(-EINVAL,
                        "the two ends were asked for different tests: %s is %s at the client and "
                        "%s at the server",
                        row->name, *here ? here : "open", *there ? there : "open");
    }
    return 0;
}

/* ---- rules ---- */

/* The smallest size and the largest must both be possible in between. */
static int check_sizes(const struct spec *spec, const struct op *op, const struct method *method)
{
    bool empty = !spec->size.max && op->traits & OP_EMPTY && method->ucx;
    if ((!spec->size.min && !empty) || spec->size.max > UINT32_MAX ||
        spec->size.min > spec->size.max)
        return fail(-EINVAL, "size is out of range: \"%" PRIu64 "\" (accepted: 1 to %u)",
                    spec->size.min ? spec->size.max : 0, UINT32_MAX);
    return 0;
}

/* ---- pieces ---- */

size_t spec_extent(const struct spec *spec, size_t size)
{
    const struct spec_pieces *p = &spec->data.pieces;
    uint64_t count = p->sizes.count;
    bool apart = (p->gather || p->scatter) && p->stride && count;
    return apart ? (size_t)((count - 1) * p->stride + p->sizes.list[count - 1]) : size;
}

void spec_fill_pieces(const struct spec *spec, struct fabric_pieces *pieces)
{
    const struct spec_pieces *p = &spec->data.pieces;
    size_t at = 0;
    pieces->count = (unsigned)p->sizes.count;
    for (unsigned i = 0; i < pieces->count; i++) {
        pieces->list[i].at = p->stride ? i * (size_t)p->stride : at;
        pieces->list[i].length = (size_t)p->sizes.list[i];
        at += pieces->list[i].length;
    }
}

static int check_pieces(const struct spec *spec, const struct op *op, const struct method *method)
{
    const struct spec_pieces *p = &spec->data.pieces;
    uint64_t sum = 0;
    if (!p->gather && !p->scatter)
        return 0;
    if (!method->ucx || (p->gather && !(op->traits & OP_GATHERS)) ||
        (p->scatter && !(op->traits & OP_SCATTERS)))
        return fail(-EINVAL, "%s in %s cannot be %s pieces", op_called(spec), method->name,
                    p->gather && !(op->traits & OP_GATHERS) ? "sent from" : "received into");
    if (!p->sizes.count || p->sizes.count > FABRIC_PIECES)
        return fail(-EINVAL, "a message of %" PRIu64 " pieces: 1 to %d are possible",
                    p->sizes.count, FABRIC_PIECES);
    for (uint64_t i = 0; i < p->sizes.count; i++) {
        if (!p->sizes.list[i])
            return fail(-EINVAL, "a piece of 0 bytes: at least 1");
        if (p->sizes.list[i] > UINT32_MAX || (p->stride && p->sizes.list[i] > p->stride))
            return fail(-EINVAL,
                        "a piece of %" PRIu64 " bytes does not fit into a stride of %" PRIu64,
                        p->sizes.list[i], p->stride);
        sum += p->sizes.list[i];
    }
    if (spec->size.min != sum || spec->size.max != sum)
        return fail(-EINVAL, "pieces of %" PRIu64 " bytes together for a message of %" PRIu64, sum,
                    spec->size.max);
    if (spec_extent(spec, 0) > UINT32_MAX)
        return fail(-EINVAL, "pieces over %zu bytes: %u are possible", spec_extent(spec, 0),
                    UINT32_MAX);
    if (p->scatter && spec->data.lend)
        return fail(-EINVAL, "what is lent is not received into pieces");
    return 0;
}

/* ---- more rules ---- */

/* A choice is a place in its row's list, or 0. */
static int check_choices(const struct spec *spec)
{
    for (const struct opt *row = spec_rows; row->name; row++) {
        if (row->type != OPT_CHOICE)
            continue;
        int choice = *(const int *)(const void *)((const char *)spec + row->field), count = 0;
        while (row->choices[count])
            count++;
        if (choice < 0 || choice > count)
            return fail(-EINVAL, "%s %d: there are 1 to %d", row->name, choice, count);
    }
    return 0;
}

static int check_layout(const struct spec *spec, const struct op *op, const struct method *method)
{
    if (!spec->data.layout)
        return 0;
    const char *name = fabric_layout_names[spec->data.layout - 1];
    if (!method->ucx)
        return fail(-EINVAL, "data layout %s is for ping-pong and stream, not for %s", name,
                    method->name);
    if (op->traits & OP_AUTOMATIC)
        return fail(-EINVAL, "data layout %s is not for %s: the fabric chooses by size", name,
                    op_called(spec));
    if (op->traits & OP_NO_LAYOUTS && spec->data.layout - 1 != LAYOUT_SHORT)
        return fail(-EINVAL, "data layout %s is not for atomics: %s has short alone", name,
                    op_called(spec));
    return 0;
}

static int check_counts(const struct spec *spec)
{
    if (!spec->timeout_ms)
        return fail(-EINVAL, "a timeout of 0");
    if (!spec->pace.window || spec->pace.window > UINT32_MAX / 2)
        return fail(-EINVAL, "a window of %" PRIu64 " messages: at least 1", spec->pace.window);
    if (!spec->threads || spec->threads > TEAM_MOST)
        return fail(-EINVAL, "%" PRIu64 " threads: 1 to %d are possible", spec->threads, TEAM_MOST);
    if (!spec->pace.outstanding)
        return fail(-EINVAL, "0 outstanding operations: at least 1");
    if (!spec->pace.list || spec->pace.list > LONGEST_LIST)
        return fail(-EINVAL, "a list of %" PRIu64 " operations: 1 to %d are possible",
                    spec->pace.list, LONGEST_LIST);
    if (!spec->data.align || spec->data.align > UINT32_MAX)
        return fail(-EINVAL, "places at multiples of %" PRIu64 " bytes: 1 to %u are possible",
                    spec->data.align, UINT32_MAX);
    if (spec->count.duration_ms > LONGEST_MS || spec->local.interval_ms > LONGEST_MS)
        return fail(-EINVAL, "a duration or an interval of more than 1000000 s");
    if (spec->data.am_header && spec->data.am_header < sizeof(uint64_t))
        return fail(-EINVAL, "a header of %" PRIu64 " bytes: none, or at least 8",
                    spec->data.am_header);
    return 0;
}

/* Several operations per sample are timed, and completed, but not looked at. */
static int check_sampling(const struct spec *spec, const struct method *method)
{
    uint64_t ops = spec->count.ops_per_sample;
    if (!ops)
        return fail(-EINVAL, "0 operations per sample: at least 1");
    if (ops > 1 && method->ucx)
        return fail(-EINVAL, "%" PRIu64 " operations per sample are for latency, not for %s", ops,
                    method->name);
    if (ops > 1 && spec->data.verify)
        return fail(-EINVAL, "verifying looks at every operation: not with %" PRIu64 " per sample",
                    ops);
    return 0;
}

/* Words that a fabric's own names may have, and nothing else. */
static int check_tunes(const struct spec *spec)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_=,";
    if (spec->tunes[strspn(spec->tunes, letters)])
        return fail(-EINVAL, "tunes that are none: \"%.60s\"", spec->tunes);
    return 0;
}

int spec_check(const struct spec *spec)
{
    const struct op *op = op_of(spec);
    const struct method *method = method_of(spec);
    if (!op)
        return fail(-EINVAL, "no operation %d", spec->op);
    if (!method)
        return fail(-EINVAL, "no method %d", spec->method);
    if (spec->both_ways && !method->both_ways)
        return fail(-EINVAL, "both_ways is for streams and lists, not for %s", method->name);
    if (spec->both_ways && spec->data.verify && op->traits & OP_ASKS &&
        !(method->lists && op->verify.here))
        return fail(-EINVAL,
                    "verifying %s asks the other end, which is sending too: not in both directions "
                    "at once",
                    op_called(spec));
    int status = check_choices(spec);
    if (!status && method->check)
        status = method->check(spec, op);
    if (!status)
        status = check_sizes(spec, op, method);
    if (!status)
        status = check_pieces(spec, op, method);
    if (!status)
        status = check_counts(spec);
    if (!status)
        status = check_sampling(spec, method);
    if (!status)
        status = check_layout(spec, op, method);
    if (!status)
        status = check_tunes(spec);
    if (!status && *spec->counters)
        status = counters_check(spec->counters);
    return status || !op->check ? status : op->check(spec);
}
