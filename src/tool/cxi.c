/* SPDX-License-Identifier: BSD-3-Clause */
/* The option rows of the CXI family, in the order of the help text, and how the header shows
 * what is not simply an option's value. */
#include "core/opt.h"
#include "fabric/choose.h"
#include "tool/output.h"
#include "tool/tool.h"

#include <inttypes.h>
#include <string.h>

enum {
    ALL = CXI_WRITE | CXI_READ | CXI_SEND | CXI_ATOMIC,
    SIZED = CXI_WRITE | CXI_READ | CXI_SEND
};

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
    AT_CLOCK,
    AT_LOCAL,
    AT_REMOTE
};

enum { NO_LINE = -1 };

static const char *const clocks[] = {"clock_gettime", "cycles", NULL};

/* ---- header values ---- */

static const struct plan *plan_of(const void *facts)
{
    return ((const struct bench_facts *)facts)->plan;
}

static int show_fabric(const void *facts, char *text, size_t room)
{
    const struct bench_facts *f = facts;
    bool why = f->why && *f->why;
    return snprintf(text, room, "%s%s%s", f->fabric->form, why ? ": " : "", why ? f->why : "");
}

static int show_memory(int64_t gpu, char *text, size_t room)
{
    return gpu < 0 ? snprintf(text, room, "System") : snprintf(text, room, "GPU %" PRId64, gpu);
}

static int show_tx(const void *facts, char *text, size_t room)
{
    return show_memory(plan_of(facts)->tx_gpu, text, room);
}

static int show_rx(const void *facts, char *text, size_t room)
{
    return show_memory(plan_of(facts)->rx_gpu, text, room);
}

static int show_vendor(const void *facts, int rank, char *text, size_t room)
{
    enum memory_vendor vendor = plan_of(facts)->vendors[rank];
    return vendor == MEMORY_CPU ? NO_LINE : snprintf(text, room, "%s", memory_vendors[vendor - 1]);
}

static int show_client_vendor(const void *facts, char *text, size_t room)
{
    return show_vendor(facts, PEER_CLIENT, text, room);
}

static int show_server_vendor(const void *facts, char *text, size_t room)
{
    return show_vendor(facts, PEER_SERVER, text, room);
}

static int show_test_type(const void *facts, char *text, size_t room)
{
    return snprintf(text, room, plan_of(facts)->duration_s ? "Duration" : "Iteration");
}

static int show_iters(const void *facts, char *text, size_t room)
{
    const struct plan *plan = plan_of(facts);
    return plan->duration_s ? NO_LINE : snprintf(text, room, "%" PRIu64, plan->iters);
}

static int show_duration(const void *facts, char *text, size_t room)
{
    const struct plan *plan = plan_of(facts);
    return plan->duration_s ? snprintf(text, room, "%" PRIu64 " seconds", plan->duration_s)
                            : NO_LINE;
}

static int show_gap(const void *facts, char *text, size_t room)
{
    return snprintf(text, room, "%" PRIu64 " microseconds", plan_of(facts)->gap_us);
}

static int show_size(const void *facts, char *text, size_t room)
{
    const struct opt_range *size = &plan_of(facts)->size;
    return size->min == size->max ? snprintf(text, room, "%" PRIu64, size->min) : NO_LINE;
}

static int show_min_size(const void *facts, char *text, size_t room)
{
    const struct opt_range *size = &plan_of(facts)->size;
    return size->min == size->max ? NO_LINE : snprintf(text, room, "%" PRIu64, size->min);
}

static int show_max_size(const void *facts, char *text, size_t room)
{
    const struct opt_range *size = &plan_of(facts)->size;
    return size->min == size->max ? NO_LINE : snprintf(text, room, "%" PRIu64, size->max);
}

/* A request that the fabric cannot honour is not silently dropped. */
static int show_hint(const void *facts, enum hint hint, bool off, char *text, size_t room)
{
    const struct fabric_facts *fabric = ((const struct bench_facts *)facts)->fabric;
    if (!(fabric->honours & 1U << hint))
        return snprintf(text, room, "n/a (%s)", fabric->why_not[hint]);
    return snprintf(text, room, off ? "Disabled" : "Enabled");
}

static const char not_applicable[] = "Disabled - Not Applicable";

/* Immediate data is decided for each size. */
static int show_idc(const void *facts, char *text, size_t room)
{
    const struct fabric_facts *fabric = ((const struct bench_facts *)facts)->fabric;
    const struct plan *plan = plan_of(facts);
    bool honoured = fabric->honours & HINT(INLINE);
    /* Who answers sends too. */
    bool first_gpu = plan->tx_gpu >= 0;
    bool last_gpu =
        ((const struct bench_facts *)facts)->op->legs == 2 ? plan->rx_gpu >= 0 : first_gpu;
    if (honoured && (plan->matching || plan->rendezvous))
        return snprintf(text, room, "%s", not_applicable);
    if (honoured && !plan->no_idc && first_gpu && last_gpu)
        return snprintf(text, room, "Disabled (from a GPU)");
    if (honoured && !plan->no_idc && plan->size.min > fabric->max_inline)
        return snprintf(text, room, "Disabled (over %zu bytes)", fabric->max_inline);
    if (honoured && !plan->no_idc && (first_gpu || last_gpu))
        return snprintf(text, room, "Enabled (not from the %s's GPU)",
                        first_gpu ? "client" : "server");
    return show_hint(facts, HINT_INLINE, plan->no_idc, text, room);
}

static int show_restricted(const void *facts, char *text, size_t room)
{
    const struct plan *plan = plan_of(facts);
    const struct fabric_facts *fabric = ((const struct bench_facts *)facts)->fabric;
    if (plan->matching && fabric->honours & HINT(RESTRICTED))
        return snprintf(text, room, "%s", not_applicable);
    return show_hint(facts, HINT_RESTRICTED, plan->unrestricted, text, room);
}

static int show_matching(const void *facts, char *text, size_t room)
{
    return show_hint(facts, HINT_MATCHING, !plan_of(facts)->matching, text, room);
}

static int show_rendezvous(const void *facts, char *text, size_t room)
{
    return plan_of(facts)->rendezvous ? show_hint(facts, HINT_RENDEZVOUS, false, text, room)
                                      : NO_LINE;
}

static int show_amo_op(const void *facts, char *text, size_t room)
{
    const struct plan *plan = plan_of(facts);
    const struct fabric_facts *fabric = ((const struct bench_facts *)facts)->fabric;
    bool compares = plan->amo_op - 1 == AMO_CSWAP;
    bool fetches =
        fabric->compare_how && !plan->fetching && (compares || plan->amo_op - 1 == AMO_AXOR);
    return snprintf(text, room, "%s %s%s%s%s%s%s", plan->fetching ? "FETCHING" : "NON-FETCHING",
                    amo_op_names[plan->amo_op - 1], compares ? " " : "",
                    compares ? amo_compare_names[plan->amo_compare - 1] : "", fetches ? " (" : "",
                    fetches ? fabric->compare_how : "", fetches ? ")" : "");
}

/* The widest types are not done alike everywhere. */
static int show_amo_type(const void *facts, char *text, size_t room)
{
    const struct fabric_facts *fabric = ((const struct bench_facts *)facts)->fabric;
    enum amo_type type = (enum amo_type)(plan_of(facts)->amo_type - 1);
    bool wide = amo_size(type) == AMO_MAX_BYTES && fabric->amo_how;
    return snprintf(text, room, "%s%s%s%s", amo_type_names[type], wide ? " (" : "",
                    wide ? fabric->amo_how : "", wide ? ")" : "");
}

static int show_ll(const void *facts, char *text, size_t room)
{
    return show_hint(facts, HINT_LL, plan_of(facts)->no_ll, text, room);
}

static int show_results(const void *facts, char *text, size_t room)
{
    return snprintf(text, room, plan_of(facts)->report_all ? "All" : "Summary");
}

static int show_huge(const void *facts, char *text, size_t room)
{
    const struct region *buffer = ((const struct bench_facts *)facts)->buffer;
    if (!plan_of(facts)->huge || buffer->gpu)
        return snprintf(text, room, "Disabled");
    return snprintf(text, room, "Enabled (%s - %zu pages)", buffer->kind->name,
                    buffer->mapped / buffer->page);
}

static int show_clock(const void *facts, char *text, size_t room)
{
    return snprintf(text, room, "%s", ((const struct bench_facts *)facts)->clock);
}

static int show_local(const struct bench_facts *facts, bool initiator, char *text, size_t room)
{
    if (facts->initiator != initiator)
        return NO_LINE;
    return snprintf(text, room, "%s%s%s", facts->fabric->self, *facts->fabric->domain ? " " : "",
                    facts->fabric->domain);
}

static int show_remote(const struct bench_facts *facts, bool initiator, char *text, size_t room)
{
    return facts->initiator == initiator ? NO_LINE : snprintf(text, room, "%s", facts->remote);
}

static int show_local_client(const void *facts, char *text, size_t room)
{
    return show_local(facts, true, text, room);
}

static int show_local_server(const void *facts, char *text, size_t room)
{
    return show_local(facts, false, text, room);
}

static int show_remote_client(const void *facts, char *text, size_t room)
{
    return show_remote(facts, true, text, room);
}

static int show_remote_server(const void *facts, char *text, size_t room)
{
    return show_remote(facts, false, text, room);
}

/* ---- rows ---- */

#define FIELD(member) .field = offsetof(struct plan, member)
#define LINE(place, words, value)                                                                  \
    {                                                                                              \
        .type = OPT_LINE, .header = (place), .label = (words), .show = (value), .takes = ALL       \
    }
#define SIZE_LINE(place, words, value)                                                             \
    {                                                                                              \
        .type = OPT_LINE, .header = (place), .label = (words), .show = (value), .takes = SIZED     \
    }

/* clang-format off */
const struct opt cxi_rows[] = {
    {.letter = 'd', .name = "device", .type = OPT_TEXT, FIELD(device), .max = FABRIC_DEVICE_MAX,
     .fallback = "cxi0", .word = "DEV", .takes = ALL,
     .help = "Device name (default: \"{default}\")",
     .header = AT_DEVICE, .label = "Device"},
    {.letter = 'v', .name = "svc-id", .type = OPT_NUMBER, FIELD(service), .min = 1, .max = 65535,
     .fallback = "1", .word = "SVC_ID", .takes = ALL,
     .help = "Service ID (default: {default})",
     .header = AT_SERVICE, .label = "Service ID"},
    {.letter = 'p', .name = "port", .type = OPT_NUMBER, FIELD(port), .max = 65535,
     .fallback = "49194", .word = "PORT", .takes = ALL,
     .help = "The port to listen on/connect to (default: {default})"},
    {.letter = 't', .name = "tx-gpu", .type = OPT_INDEX, FIELD(tx_gpu), .max = 65535,
     .word = "GPU", .takes = SIZED, .flags = OPT_SHARED,
     .help = "GPU index for allocating TX buf (default: no GPU)",
     .header = AT_CLIENT_MEM, .label = "Client TX Mem", .show = show_tx},
    {.letter = 'r', .name = "rx-gpu", .type = OPT_INDEX, FIELD(rx_gpu), .max = 65535,
     .word = "GPU", .takes = SIZED,
     .help = "GPU index for allocating RX buf (default: no GPU)",
     .header = AT_SERVER_MEM, .label = "Server RX Mem", .show = show_rx},
    {.letter = 'g', .name = "gpu-type", .type = OPT_CHOICE, FIELD(gpu_type), .choices = memory_vendors,
     .word = "TYPE", .takes = SIZED,
     .help = "GPU type (AMD or NVIDIA or INTEL) (default type determined\n"
             "by discovered GPU files on system)"},
    {.letter = 'n', .name = "iters", .type = OPT_NUMBER, FIELD(iters), .min = 1,
     .max = UINT64_MAX, .fallback = "100", .word = "ITERS", .takes = ALL, .flags = OPT_SHARED,
     .help = "Number of iterations to run (default: {default})",
     .header = AT_ITERS, .label = "Iterations", .show = show_iters},
    {.letter = 'D', .name = "duration", .type = OPT_NUMBER, FIELD(duration_s), .min = 1,
     .max = 1000000, .word = "SEC", .takes = ALL, .flags = OPT_SHARED,
     .help = "Run for the specified number of seconds",
     .header = AT_DURATION, .label = "Duration", .show = show_duration},
    {.name = "warmup", .type = OPT_NUMBER, FIELD(warmup), .max = UINT64_MAX,
     .fallback = "10", .word = "WARMUP", .takes = ALL, .flags = OPT_SHARED,
     .help = "Number of warmup iterations to run (default: {default})",
     .header = AT_WARMUP, .label = "Warmup Iters"},
    {.name = "latency-gap", .type = OPT_NUMBER, FIELD(gap_us), .max = 3600000000,
     .fallback = "1000", .word = "USEC", .takes = ALL, .flags = OPT_SHARED,
     .help = "Number of microseconds to wait between each\n"
             "iteration (default: {default})",
     .header = AT_GAP, .label = "Inter-Iter Gap", .show = show_gap},
    {.letter = 's', .name = "size", .type = OPT_SIZES, FIELD(size), .min = 1, .max = UINT32_MAX,
     .fallback = "8", .word = "MIN[:MAX]", .takes = SIZED, .flags = OPT_SHARED,
     .help = "{Op} size or range to use (default: {default})\n"
             "Ranges must be powers of 2 (e.g. \"1:8192\")\n"
             "The maximum size is 4294967295",
     .header = AT_SIZE, .label = "{Op} Size", .show = show_size},
    {.letter = 'A', .name = "atomic-op", .type = OPT_CHOICE, FIELD(amo_op),
     .choices = amo_op_names, .fallback = "SUM", .word = "OP", .takes = CXI_ATOMIC,
     .flags = OPT_SHARED | OPT_BARE, .help = "The atomic operation to use (default: {default})",
     .header = AT_AMO_OP, .label = "Atomic Op", .show = show_amo_op},
    {.letter = 'C', .name = "cswap-op", .type = OPT_CHOICE, FIELD(amo_compare),
     .choices = amo_compare_names, .fallback = "EQ", .word = "OP", .takes = CXI_ATOMIC,
     .flags = OPT_SHARED | OPT_BARE, .help = "The CSWAP operation to use (default: {default})"},
    {.letter = 'T', .name = "atomic-type", .type = OPT_CHOICE, FIELD(amo_type),
     .choices = amo_type_names, .fallback = "UINT64", .word = "TYPE", .takes = CXI_ATOMIC,
     .flags = OPT_SHARED | OPT_BARE, .help = "The atomic type to use (default: {default})",
     .header = AT_AMO_TYPE, .label = "Atomic Type", .show = show_amo_type},
    {.name = "fetching", .type = OPT_FLAG, FIELD(fetching), .takes = CXI_ATOMIC,
     .flags = OPT_SHARED, .help = "Use fetching AMOs"},
    {.name = "matching", .type = OPT_FLAG, FIELD(matching), .takes = CXI_ATOMIC,
     .flags = OPT_SHARED, .help = "Use matching list entries at the target",
     .header = AT_MATCHING, .label = "Matching LEs", .show = show_matching},
    {.name = "unrestricted", .type = OPT_FLAG, FIELD(unrestricted),
     .takes = CXI_WRITE | CXI_READ | CXI_ATOMIC, .flags = OPT_SHARED,
     .help = "Use unrestricted {ops}",
     .header = AT_RESTRICTED, .label = "Restricted", .show = show_restricted},
    {.name = "no-idc", .type = OPT_FLAG, FIELD(no_idc), .takes = CXI_WRITE | CXI_ATOMIC,
     .flags = OPT_SHARED, .help = "Do not use Immediate Data Cmds",
     .header = AT_IDC, .label = "IDC", .show = show_idc},
    {.name = "no-idc", .type = OPT_FLAG, FIELD(no_idc), .takes = CXI_SEND, .flags = OPT_SHARED,
     .help = "Do not use Immediate Data Cmds for sizes <= 224 bytes",
     .header = AT_IDC, .label = "IDC", .show = show_idc},
    {.name = "no-ll", .type = OPT_FLAG, FIELD(no_ll), .takes = ALL, .flags = OPT_SHARED,
     .help = "Do not use Low-Latency command issuing",
     .header = AT_LL, .label = "LL Cmd Launch", .show = show_ll},
    {.letter = 'R', .name = "rdzv", .type = OPT_FLAG, FIELD(rendezvous), .takes = CXI_SEND,
     .flags = OPT_SHARED, .help = "Use rendezvous PUTs",
     .header = AT_RENDEZVOUS, .label = "Rendezvous", .show = show_rendezvous},
    {.name = "report-all", .type = OPT_FLAG, FIELD(report_all), .takes = CXI_ATOMIC,
     .flags = OPT_SHARED, .help = "Report all latency measurements individually",
     .header = AT_RESULTS, .label = "Results Reported", .show = show_results},
    {.name = "report-all", .type = OPT_FLAG, FIELD(report_all), .takes = SIZED, .flags = OPT_SHARED,
     .help = "Report all latency measurements individually\n"
             "This option is ignored when using --duration",
     .header = AT_RESULTS, .label = "Results Reported", .show = show_results},
    {.name = "use-hp", .type = OPT_CHOICE, FIELD(huge), .choices = plan_huge,
     .word = "SIZE", .takes = SIZED, .flags = OPT_SHARED,
     .help = "Attempt to use huge pages when allocating\n"
             "Size may be \"2M\" or \"1G\"",
     .header = AT_HUGE, .label = "Hugepages", .show = show_huge},
    {.letter = 'h', .name = "help", .type = OPT_FLAG, FIELD(help), .takes = ALL,
     .help = "Print this help text and exit"},
    {.letter = 'V', .name = "version", .type = OPT_FLAG, FIELD(version), .takes = ALL,
     .help = "Print the version and exit"},

    {.letter = 'c', .name = "clock", .type = OPT_CHOICE, FIELD(clock), .choices = clocks,
     .fallback = "clock_gettime", .word = "TYPE", .takes = ALL, .flags = OPT_SHARED | OPT_OURS,
     .help = "What to time with: cycles or clock_gettime\n"
             "(default: {default})"},
    {.name = "ignore-cpu-freq-mismatch", .type = OPT_FLAG, FIELD(ignore_mismatch), .takes = ALL,
     .flags = OPT_SHARED | OPT_OURS,
     .help = "Only warn when the cycle counter's rate changed"},
    {.name = "local", .type = OPT_FLAG, FIELD(local), .takes = ALL, .flags = OPT_OURS,
     .help = "Start the server too, on this machine"},
    {.name = "loop", .type = OPT_FLAG, FIELD(loop), .takes = ALL, .flags = OPT_OURS,
     .help = "Server: take one client after another"},
    {.name = "bind", .type = OPT_TEXT, FIELD(bind), .max = 256, .word = "ADDR", .takes = ALL,
     .flags = OPT_OURS, .help = "Server: listen on this address only"},
    {.name = "timeout", .type = OPT_NUMBER, FIELD(timeout_s), .min = 1, .max = 86400,
     .fallback = "10", .word = "SEC", .takes = ALL, .flags = OPT_SHARED | OPT_OURS,
     .help = "Fail after this long without progress or sign of\n"
             "life (default: {default})"},
    {.name = "wait", .type = OPT_NUMBER, FIELD(wait_s), .max = 86400, .fallback = "5",
     .word = "SEC", .takes = ALL, .flags = OPT_OURS,
     .help = "Client: keep trying to reach the server for this\n"
             "long (default: {default})"},
    {.name = "cpu", .type = OPT_PAIR, FIELD(cpu), .max = 65535, .word = "A[,B]", .takes = ALL,
     .flags = OPT_OURS, .help = "Run on CPU A; with --local the server on CPU B"},
    {.name = "verify", .type = OPT_FLAG, FIELD(verify), .takes = ALL,
     .flags = OPT_SHARED | OPT_OURS,
     .help = "Check the data after every iteration, outside the\n"
             "timed part"},

    OUTPUT_ROWS(offsetof(struct plan, output), ALL),

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
