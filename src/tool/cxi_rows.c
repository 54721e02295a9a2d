/* SPDX-License-Identifier: BSD-3-Clause */
/* The option rows of the CXI family, in the order of the help text, and how the header shows
 * what is not simply an option's value. */
#include "tool/cxi.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *const cxi_huge[] = {"2M", "1G", NULL};

/* Places in the header. */
enum {
    AT_DEVICE = 1,
    AT_FABRIC,
    AT_SERVICE,
    AT_CLIENT_MEM,
    AT_SERVER_MEM,
    AT_CLIENT_GPU,
    AT_SERVER_GPU,
    AT_TEST_TYPE,
    AT_ITERS,
    AT_DURATION,
    AT_WARMUP,
    AT_OPS,
    AT_GAP,
    AT_SIZE,
    AT_MIN_SIZE,
    AT_MAX_SIZE,
    AT_AMO_OP,
    AT_AMO_TYPE,
    AT_IDC,
    AT_MATCHING,
    AT_RESTRICTED,
    AT_LL,
    AT_RENDEZVOUS,
    AT_RESULTS,
    AT_HUGE,
    AT_VERIFY,
    AT_CLOCK,
    AT_LOCAL,
    AT_REMOTE
};

enum { NO_LINE = -1 };

/* ---- header values ---- */

static const struct cxi_options *options_of(const void *header)
{
    return ((const struct header *)header)->base;
}

static const struct spec *spec_of(const void *header)
{
    return &options_of(header)->spec;
}

static const struct facts *facts_of(const void *header)
{
    return ((const struct header *)header)->facts;
}

static const struct session *session_of(const void *header)
{
    return facts_of(header)->session;
}

static const struct fabric_facts *fabric_of(const void *header)
{
    return &session_of(header)->facts;
}

static int show_fabric(const void *header, char *text, size_t room)
{
    const char *why = session_of(header)->why;
    return snprintf(text, room, "%s%s%s", fabric_of(header)->form, *why ? ": " : "", why);
}

static bool on_gpu(const void *header, int rank)
{
    return session_of(header)->vendors[rank] != MEMORY_CPU;
}

static int show_memory(const void *header, int rank, char *text, size_t room)
{
    const char *colon = strchr(session_of(header)->memory[rank], ':');
    if (!on_gpu(header, rank))
        return snprintf(text, room, "System");
    return snprintf(text, room, "GPU %s", colon ? colon + 1 : "0");
}

static int show_tx(const void *header, char *text, size_t room)
{
    return show_memory(header, PEER_CLIENT, text, room);
}

static int show_rx(const void *header, char *text, size_t room)
{
    return show_memory(header, PEER_SERVER, text, room);
}

static int show_vendor(const void *header, int rank, char *text, size_t room)
{
    enum memory_vendor vendor = session_of(header)->vendors[rank];
    return vendor == MEMORY_CPU ? NO_LINE : snprintf(text, room, "%s", memory_vendors[vendor - 1]);
}

static int show_client_vendor(const void *header, char *text, size_t room)
{
    return show_vendor(header, PEER_CLIENT, text, room);
}

static int show_server_vendor(const void *header, char *text, size_t room)
{
    return show_vendor(header, PEER_SERVER, text, room);
}

static int show_test_type(const void *header, char *text, size_t room)
{
    return snprintf(text, room, spec_of(header)->count.duration_ms ? "Duration" : "Iteration");
}

static int show_iters(const void *header, char *text, size_t room)
{
    const struct spec_count *count = &spec_of(header)->count;
    return count->duration_ms ? NO_LINE : snprintf(text, room, "%" PRIu64, count->iterations);
}

static int show_duration(const void *header, char *text, size_t room)
{
    uint64_t duration_ms = spec_of(header)->count.duration_ms;
    return duration_ms ? snprintf(text, room, "%" PRIu64 " seconds", duration_ms / 1000) : NO_LINE;
}

static int show_ops(const void *header, char *text, size_t room)
{
    uint64_t ops = spec_of(header)->count.ops_per_sample;
    return ops > 1 ? snprintf(text, room, "%" PRIu64, ops) : NO_LINE;
}

static int show_gap(const void *header, char *text, size_t room)
{
    return snprintf(text, room, "%" PRIu64 " microseconds", spec_of(header)->pace.gap_ns / 1000);
}

static int show_size(const void *header, char *text, size_t room)
{
    const struct opt_range *size = &spec_of(header)->size;
    return size->min == size->max ? snprintf(text, room, "%" PRIu64, size->min) : NO_LINE;
}

static int show_min_size(const void *header, char *text, size_t room)
{
    const struct opt_range *size = &spec_of(header)->size;
    return size->min == size->max ? NO_LINE : snprintf(text, room, "%" PRIu64, size->min);
}

static int show_max_size(const void *header, char *text, size_t room)
{
    const struct opt_range *size = &spec_of(header)->size;
    return size->min == size->max ? NO_LINE : snprintf(text, room, "%" PRIu64, size->max);
}

static int show_service(const void *header, char *text, size_t room)
{
    const char *why = fabric_of(header)->why_no_service;
    if (why)
        return snprintf(text, room, "n/a (%s)", why);
    return snprintf(text, room, "%" PRIu64, options_of(header)->service);
}

/* Hints may hold for some sizes: the header is about the smallest. */
static void judge(const void *header, enum hint hint, int rank, struct hint_state *state)
{
    struct hint_question question = {.facts = fabric_of(header),
                                     .op = facts_of(header)->op,
                                     .asked = &spec_of(header)->hints,
                                     .size = spec_of(header)->size.min,
                                     .gpu = on_gpu(header, rank)};
    hint_judge(&question, hint, state);
}

/* A request that cannot be honoured is not silently dropped. */
static int show_hint(const void *header, enum hint hint, char *text, size_t room)
{
    struct hint_state state;
    judge(header, hint, PEER_CLIENT, &state);
    if (!state.has)
        return snprintf(text, room, "n/a (%s)", state.why);
    if (state.barred)
        return snprintf(text, room, "Disabled - Not Applicable");
    if (!state.asked || state.holds)
        return snprintf(text, room, state.holds ? "Enabled" : "Disabled");
    return snprintf(text, room, "Disabled (%s)", state.why);
}

/* The end that answers sends too. */
static int show_idc(const void *header, char *text, size_t room)
{
    struct hint_state first, last;
    judge(header, HINT_INLINE, PEER_CLIENT, &first);
    judge(header, HINT_INLINE, PEER_SERVER, &last);
    if (facts_of(header)->legs == 2 && first.holds != last.holds)
        return snprintf(text, room, "Enabled (not from the %s's GPU)",
                        first.holds ? "server" : "client");
    return show_hint(header, HINT_INLINE, text, room);
}

static int show_restricted(const void *header, char *text, size_t room)
{
    return show_hint(header, HINT_RESTRICTED, text, room);
}

static int show_matching(const void *header, char *text, size_t room)
{
    return show_hint(header, HINT_MATCHING, text, room);
}

static int show_rendezvous(const void *header, char *text, size_t room)
{
    return spec_of(header)->hints.rendezvous ? show_hint(header, HINT_RENDEZVOUS, text, room)
                                             : NO_LINE;
}

static int show_amo_op(const void *header, char *text, size_t room)
{
    const struct spec *spec = spec_of(header);
    enum amo_op op = spec_amo_op(spec);
    const char *how = fabric_of(header)->compare_how;
    bool compares = op == AMO_CSWAP, fetching = spec->amo.fetching;
    bool fetches = how && !fetching && (compares || op == AMO_AXOR);
    return snprintf(text, room, "%s %s%s%s%s%s%s", fetching ? "FETCHING" : "NON-FETCHING",
                    amo_op_names[op], compares ? " " : "",
                    compares ? amo_compare_names[spec_amo_compare(spec)] : "", fetches ? " (" : "",
                    fetches ? how : "", fetches ? ")" : "");
}

/* The widest types are not done alike everywhere. */
static int show_amo_type(const void *header, char *text, size_t room)
{
    const char *how = fabric_of(header)->amo_how;
    enum amo_type type = spec_amo_type(spec_of(header));
    bool wide = amo_size(type) == AMO_MAX_BYTES && how;
    return snprintf(text, room, "%s%s%s%s", amo_type_names[type], wide ? " (" : "", wide ? how : "",
                    wide ? ")" : "");
}

static int show_ll(const void *header, char *text, size_t room)
{
    return show_hint(header, HINT_LL, text, room);
}

static int show_results(const void *header, char *text, size_t room)
{
    return snprintf(text, room, spec_of(header)->local.keep_samples ? "All" : "Summary");
}

static int show_huge(const void *header, char *text, size_t room)
{
    const struct region *buffer = &session_of(header)->buffer;
    if (buffer->kind == &memory_host || buffer->gpu)
        return snprintf(text, room, "Disabled");
    return snprintf(text, room, "Enabled (%s - %zu pages)", buffer->kind->name,
                    buffer->mapped / buffer->page);
}

static int show_verify(const void *header, char *text, size_t room)
{
    return spec_of(header)->data.verify ? snprintf(text, room, "Every iteration, not timed")
                                        : NO_LINE;
}

static int show_clock(const void *header, char *text, size_t room)
{
    return snprintf(text, room, "%s", facts_of(header)->clock_text);
}

static int show_local(const void *header, bool initiator, char *text, size_t room)
{
    const struct fabric_facts *fabric = fabric_of(header);
    if (facts_of(header)->initiator != initiator)
        return NO_LINE;
    return snprintf(text, room, "%s%s%s", fabric->self, *fabric->domain ? " " : "", fabric->domain);
}

static int show_remote(const void *header, bool initiator, char *text, size_t room)
{
    return facts_of(header)->initiator == initiator
               ? NO_LINE
               : snprintf(text, room, "%s", facts_of(header)->remote);
}

static int show_local_client(const void *header, char *text, size_t room)
{
    return show_local(header, true, text, room);
}

static int show_local_server(const void *header, char *text, size_t room)
{
    return show_local(header, false, text, room);
}

static int show_remote_client(const void *header, char *text, size_t room)
{
    return show_remote(header, true, text, room);
}

static int show_remote_server(const void *header, char *text, size_t room)
{
    return show_remote(header, false, text, room);
}

/* ---- rows ---- */

#define FIELD(member) .field = offsetof(struct cxi_options, member)
#define OF(row)       .of = (&spec_rows[SPEC_##row])
#define LINE(place, words, value)                                                                  \
    {                                                                                              \
        .type = OPT_LINE, .header = (place), .label = (words), .show = (value), .takes = CXI_ALL   \
    }
#define SIZE_LINE(place, words, value)                                                             \
    {                                                                                              \
        .type = OPT_LINE, .header = (place), .label = (words), .show = (value), .takes = CXI_SIZED \
    }

/* clang-format off */
const struct opt cxi_rows[] = {
    {.letter = 'd', .name = "device", .type = OPT_TEXT, FIELD(device), .max = FABRIC_DEVICE_MAX,
     .fallback = "cxi0", .word = "DEV", .takes = CXI_ALL,
     .help = "Device name (default: \"{default}\")",
     .header = AT_DEVICE, .label = "Device"},
    {.letter = 'v', .name = "svc-id", .type = OPT_NUMBER, FIELD(service), .min = 1, .max = 65535,
     .fallback = "1", .word = "SVC_ID", .takes = CXI_ALL,
     .help = "Service ID (default: {default})",
     .header = AT_SERVICE, .label = "Service ID", .show = show_service},
    {.letter = 'p', .name = "port", .type = OPT_NUMBER, FIELD(port), .max = 65535,
     .fallback = "49194", .word = "PORT", .takes = CXI_ALL,
     .help = "The port to listen on/connect to (default: {default})"},
    {.letter = 't', .name = "tx-gpu", .type = OPT_INDEX, FIELD(tx_gpu), .max = 65535,
     .word = "GPU", .takes = CXI_SIZED,
     .help = "GPU index for allocating TX buf (default: no GPU)",
     .header = AT_CLIENT_MEM, .label = "Client TX Mem", .show = show_tx},
    {.letter = 'r', .name = "rx-gpu", .type = OPT_INDEX, FIELD(rx_gpu), .max = 65535,
     .word = "GPU", .takes = CXI_SIZED,
     .help = "GPU index for allocating RX buf (default: no GPU)",
     .header = AT_SERVER_MEM, .label = "Server RX Mem", .show = show_rx},
    {.letter = 'g', .name = "gpu-type", .type = OPT_CHOICE, FIELD(gpu_type), .choices = memory_vendors,
     .word = "TYPE", .takes = CXI_SIZED,
     .help = "GPU type (AMD or NVIDIA or INTEL) (default type determined\n"
             "by discovered GPU files on system)"},
    {.letter = 'n', .name = "iters", OF(ITERATIONS), .type = OPT_NUMBER, .min = 1,
     .max = UINT64_MAX, .fallback = "100", .word = "ITERS", .takes = CXI_ALL,
     .help = "Number of iterations to run (default: {default})",
     .header = AT_ITERS, .label = "Iterations", .show = show_iters},
    {.letter = 'D', .name = "duration", OF(DURATION), .scale = 1000, .min = 1,
     .max = 1000000, .word = "SEC", .takes = CXI_ALL,
     .help = "Run for the specified number of seconds",
     .header = AT_DURATION, .label = "Duration", .show = show_duration},
    {.name = "warmup", OF(WARMUP), .type = OPT_NUMBER,
     .fallback = "10", .word = "WARMUP", .takes = CXI_ALL,
     .help = "Number of warmup iterations to run (default: {default})",
     .header = AT_WARMUP, .label = "Warmup Iters"},
    {.name = "latency-gap", OF(GAP), .scale = 1000, .max = 3600000000,
     .fallback = "1000", .word = "USEC", .takes = CXI_ALL,
     .help = "Number of microseconds to wait between each\n"
             "iteration (default: {default})",
     .header = AT_GAP, .label = "Inter-Iter Gap", .show = show_gap},
    {.letter = 's', .name = "size", OF(SIZE),
     .fallback = "8", .word = "MIN[:MAX]", .takes = CXI_SIZED,
     .help = "{Op} size or range to use (default: {default})\n"
             "Ranges must be powers of 2 (e.g. \"1:8192\")\n"
             "The maximum size is 4294967295",
     .header = AT_SIZE, .label = "{Op} Size", .show = show_size},
    {.letter = 'A', .name = "atomic-op", OF(AMO_OP), .fallback = "SUM", .word = "OP",
     .takes = CXI_AMO, .flags = OPT_BARE, .help = "The atomic operation to use (default: {default})",
     .header = AT_AMO_OP, .label = "Atomic Op", .show = show_amo_op},
    {.letter = 'C', .name = "cswap-op", OF(AMO_COMPARE), .fallback = "EQ", .word = "OP",
     .takes = CXI_AMO, .flags = OPT_BARE, .help = "The CSWAP operation to use (default: {default})"},
    {.letter = 'T', .name = "atomic-type", OF(AMO_TYPE), .fallback = "UINT64", .word = "TYPE",
     .takes = CXI_AMO, .flags = OPT_BARE, .help = "The atomic type to use (default: {default})",
     .header = AT_AMO_TYPE, .label = "Atomic Type", .show = show_amo_type},
    {.name = "fetching", OF(FETCHING), .takes = CXI_AMO,
     .help = "Use fetching AMOs"},
    {.name = "matching", OF(MATCHING), .takes = CXI_AMO,
     .help = "Use matching list entries at the target",
     .header = AT_MATCHING, .label = "Matching LEs", .show = show_matching},
    {.name = "unrestricted", OF(UNRESTRICTED), .takes = CXI_RESTRICTED,
     .help = "Use unrestricted {ops}",
     .header = AT_RESTRICTED, .label = "Restricted", .show = show_restricted},
    {.name = "no-idc", OF(NO_IDC), .takes = CXI_IDC, .help = "Do not use Immediate Data Cmds",
     .header = AT_IDC, .label = "IDC", .show = show_idc},
    {.name = "no-idc", OF(NO_IDC), .takes = CXI_IDC_SEND,
     .help = "Do not use Immediate Data Cmds for sizes <= 224 bytes",
     .header = AT_IDC, .label = "IDC", .show = show_idc},
    {.name = "no-ll", OF(NO_LL), .takes = CXI_ALL,
     .help = "Do not use Low-Latency command issuing",
     .header = AT_LL, .label = "LL Cmd Launch", .show = show_ll},
    {.letter = 'R', .name = "rdzv", OF(RENDEZVOUS), .takes = CXI_RENDEZVOUS, .help = "Use rendezvous PUTs",
     .header = AT_RENDEZVOUS, .label = "Rendezvous", .show = show_rendezvous},
    {.name = "report-all", OF(KEEP_SAMPLES), .takes = CXI_AMO,
     .help = "Report all latency measurements individually",
     .header = AT_RESULTS, .label = "Results Reported", .show = show_results},
    {.name = "report-all", OF(KEEP_SAMPLES), .takes = CXI_SIZED,
     .help = "Report all latency measurements individually\n"
             "This option is ignored when using --duration",
     .header = AT_RESULTS, .label = "Results Reported", .show = show_results},
    {.name = "use-hp", .type = OPT_CHOICE, FIELD(huge), .choices = cxi_huge,
     .word = "SIZE", .takes = CXI_SIZED,
     .help = "Attempt to use huge pages when allocating\n"
             "Size may be \"2M\" or \"1G\"",
     .header = AT_HUGE, .label = "Hugepages", .show = show_huge},
    {.letter = 'h', .name = "help", .type = OPT_FLAG, FIELD(help), .takes = CXI_ALL,
     .help = "Print this help text and exit"},
    {.letter = 'V', .name = "version", .type = OPT_FLAG, FIELD(version), .takes = CXI_ALL,
     .help = "Print the version and exit"},

    {.letter = 'c', .name = "clock", OF(CLOCK), .fallback = "clock_gettime",
     .word = "TYPE", .takes = CXI_ALL, .flags = OPT_OURS,
     .help = "What to time with: cycles or clock_gettime\n"
             "(default: {default})"},
    {.name = "ops-per-sample", OF(OPS_PER_SAMPLE), .fallback = "1", .word = "N", .takes = CXI_ALL,
     .flags = OPT_OURS,
     .help = "Operations that each iteration times together; a\n"
             "sample is their mean (default: {default})",
     .header = AT_OPS, .label = "Ops per Sample", .show = show_ops},
    {.name = "ignore-cpu-freq-mismatch", OF(IGNORE_MISMATCH), .takes = CXI_ALL,
     .flags = OPT_OURS,
     .help = "Only warn when the cycle counter's rate changed"},
    {.name = "local", .type = OPT_FLAG, FIELD(local), .takes = CXI_ALL, .flags = OPT_OURS,
     .help = "Start the server too, on this machine"},
    {.name = "loop", .type = OPT_FLAG, FIELD(loop), .takes = CXI_ALL, .flags = OPT_OURS,
     .help = "Server: take one client after another"},
    {.name = "bind", .type = OPT_TEXT, FIELD(bind), .max = 256, .word = "ADDR", .takes = CXI_ALL,
     .flags = OPT_OURS, .help = "Server: listen on this address only"},
    {.name = "timeout", OF(TIMEOUT), .scale = 1000, .min = 1, .max = 86400,
     .fallback = "10", .word = "SEC", .takes = CXI_ALL, .flags = OPT_OURS,
     .help = "Fail after this long without progress or sign of\n"
             "life (default: {default})"},
    {.name = "wait", .type = OPT_NUMBER, FIELD(wait_s), .max = 86400, .fallback = "5",
     .word = "SEC", .takes = CXI_ALL, .flags = OPT_OURS,
     .help = "Client: keep trying to reach the server for this\n"
             "long (default: {default})"},
    {.name = "cpu", .type = OPT_PAIR, FIELD(cpu), .max = 65535, .word = "A[,B]", .takes = CXI_ALL,
     .flags = OPT_OURS, .help = "Run on CPU A; with --local the server on CPU B"},
    {.name = "verify", OF(VERIFY), .takes = CXI_ALL, .flags = OPT_OURS,
     .help = "Check the data after every iteration, outside the\n"
             "timed part",
     .header = AT_VERIFY, .label = "Verify", .show = show_verify},

    OUTPUT_ROWS(offsetof(struct cxi_options, output), CXI_ALL),

    LINE(AT_FABRIC, "Fabric", show_fabric),
    SIZE_LINE(AT_CLIENT_GPU, "Client GPU Type", show_client_vendor),
    SIZE_LINE(AT_SERVER_GPU, "Server GPU Type", show_server_vendor),
    LINE(AT_TEST_TYPE, "Test Type", show_test_type),
    SIZE_LINE(AT_MIN_SIZE, "Min {Op} Size", show_min_size),
    SIZE_LINE(AT_MAX_SIZE, "Max {Op} Size", show_max_size),
    LINE(AT_CLOCK, "Clock", show_clock),
    LINE(AT_LOCAL, "Local (client)", show_local_client),
    LINE(AT_LOCAL, "Local (server)", show_local_server),
    LINE(AT_REMOTE, "Remote (client)", show_remote_client),
    LINE(AT_REMOTE, "Remote (server)", show_remote_server),
    {0}};
/* clang-format on */
OPT_FITS(cxi_rows);

unsigned cxi_takes(const struct op *op)
{
    bool inlines = op->hints & HINT(INLINE), pulls = op->hints & HINT(RENDEZVOUS);
    unsigned takes = CXI_ALL | (op->traits & OP_NO_LAYOUTS ? CXI_AMO : CXI_SIZED);
    takes |= inlines ? (pulls ? CXI_IDC_SEND : CXI_IDC) : 0;
    takes |= op->hints & HINT(RESTRICTED) ? CXI_RESTRICTED : 0;
    return takes | (pulls ? CXI_RENDEZVOUS : 0);
}
