/* SPDX-License-Identifier: BSD-3-Clause */
/* The option rows of the CXI family, in the order of the help text. */
#include "tool/cxi_show.h"
#include "tool/pairs.h"
#include "tool/serve.h"

const char *const cxi_huge[] = {"2M", "1G", NULL};

/* ---- rows ---- */

#define FIELD(member) .field = offsetof(struct cxi_options, member)
#define OF(row)       .of = (&spec_rows[SPEC_##row])
#define LINE(place, words, value)                                                                  \
    {                                                                                              \
        .type = OPT_LINE, .header = (place), .label = (words), .show = (value), .takes = CXI_ALL   \
    }
#define PAIR_LINE(place, words, value)                                                             \
    {                                                                                              \
        .type = OPT_LINE, .header = (place), .label = (words), .show = (value), .takes = CXI_PAIR  \
    }
#define SIZE_LINE(place, words, value)                                                             \
    {                                                                                              \
        .type = OPT_LINE, .header = (place), .label = (words), .show = (value), .takes = CXI_SIZED \
    }
#define LAT_LINE(place, words, value)                                                              \
    {                                                                                              \
        .type = OPT_LINE, .header = (place), .label = (words), .show = (value),                    \
        .takes = CXI_LAT_SIZED                                                                     \
    }
#define BW_LINE(place, words, value)                                                               \
    {                                                                                              \
        .type = OPT_LINE, .header = (place), .label = (words), .show = (value),                    \
        .takes = CXI_BW_SIZED                                                                      \
    }

/* clang-format off */
#define LISTS(key, usual, tools) \
    {.letter = (key), .name = "iters", OF(ITERATIONS), .min = 1, \
     .max = UINT64_MAX, .fallback = (usual), .word = "ITERS", .takes = (tools), \
     .refusal = "Invalid iteration count: {value}", \
     .help = "Number of iterations to run (default: {default})", \
     .header = AT_ITERS, .label = "Iterations", .show = cxi_show_iters}
#define SIZES(usual, tools) \
    {.letter = 's', .name = "size", OF(SIZE), .min = 1, .max = UINT32_MAX, \
     .fallback = (usual), .word = "MIN[:MAX]", .takes = (tools), \
     .refusal = "Invalid size: {value}", \
     .help = "{Op} size or range to use (default: {default})\n" \
             "Ranges must be powers of 2 (e.g. \"1:8192\")\n" \
             "The maximum size is 4294967295", \
     .header = AT_SIZE, .label = "{Op} Size", .show = cxi_show_size}
#define LIST_SIZE(usual, tools, text) \
    {.letter = 'l', .name = "list-size", OF(LIST), .fallback = (usual), \
     .word = "SIZE", .takes = (tools), .help = (text), \
     .refusal = "Invalid list size: {value}", \
     .header = AT_LIST, .label = "List Size", .show = cxi_show_list}

const struct opt cxi_rows[] = {
    {.letter = 'd', .name = "device", .type = OPT_TEXT, FIELD(devices), .max = PLACE_DEVICES,
     .fallback = "cxi0", .word = "DEV", .takes = CXI_ALL,
     .help = "Device name (default: \"{default}\")",
     .header = AT_DEVICE, .label = "Device"},
    {.letter = 'v', .name = "svc-id", .type = OPT_NUMBER, FIELD(service), .min = 1,
     .max = INT32_MAX, .fallback = "1", .word = "SVC_ID", .takes = CXI_ALL,
     .refusal = "Invalid svc_id: {value}",
     .help = "Service ID (default: {default})",
     .header = AT_SERVICE, .label = "Service ID", .show = cxi_show_service},
    {.letter = 'p', .name = "port", .type = OPT_NUMBER, FIELD(port), .max = 65535,
     .fallback = "49194", .word = "PORT", .takes = CXI_PAIR, .refusal = "Invalid port: {value}",
     .help = "The port to listen on/connect to (default: {default})"},
    {.letter = 't', .name = "tx-gpu", .type = OPT_INDEX, FIELD(tx_gpu), .max = 65535,
     .word = "GPU", .takes = CXI_SIZED, .refusal = "Invalid src gpu device: {value}",
     .help = "GPU index for allocating TX buf (default: no GPU)",
     .header = AT_CLIENT_MEM, .label = "Client TX Mem", .show = cxi_show_tx},
    {.letter = 'r', .name = "rx-gpu", .type = OPT_INDEX, FIELD(rx_gpu), .max = 65535,
     .word = "GPU", .takes = CXI_SIZED, .refusal = "Invalid dest gpu device: {value}",
     .help = "GPU index for allocating RX buf (default: no GPU)",
     .header = AT_SERVER_MEM, .label = "Server RX Mem", .show = cxi_show_rx},
    {.letter = 't', .name = "tx-gpu", .type = OPT_INDEX, FIELD(tx_gpu), .max = 65535,
     .word = "GPU", .takes = CXI_LOOPBACK, .refusal = "Invalid src gpu device: {value}",
     .help = "GPU index for allocating TX buf (default: no GPU)",
     .header = AT_CLIENT_MEM, .label = "TX Mem", .show = cxi_show_tx},
    {.letter = 'r', .name = "rx-gpu", .type = OPT_INDEX, FIELD(rx_gpu), .max = 65535,
     .word = "GPU", .takes = CXI_LOOPBACK, .refusal = "Invalid dest gpu device: {value}",
     .help = "GPU index for allocating RX buf (default: no GPU)",
     .header = AT_SERVER_MEM, .label = "RX Mem", .show = cxi_show_rx},
    {.letter = 'g', .name = "gpu-type", .type = OPT_CHOICE, FIELD(gpu_type), .choices = memory_vendors,
     .word = "TYPE", .takes = CXI_SIZED | CXI_LOOPBACK,
     .refusal = "Invalid gpu type: {value}. Must be AMD or NVIDIA",
     .help = "GPU type (AMD or NVIDIA or INTEL) (default type determined\n"
             "by discovered GPU files on system)"},
    LISTS('n', "100", CXI_LAT),
    LISTS('n', "1000", CXI_BW_SIZED),
    LISTS('n', "10000", CXI_BW_AMO),
    LISTS('i', "25", CXI_LOOPBACK),
    {.letter = 'D', .name = "duration", OF(DURATION), .scale = 1000, .min = 1,
     .max = 1000000, .word = "SEC", .takes = CXI_ALL, .refusal = "Invalid duration: {value}",
     .help = "Run for the specified number of seconds",
     .header = AT_DURATION, .label = "Duration", .show = cxi_show_duration},
    {.name = "warmup", OF(WARMUP),
     .fallback = "10", .word = "WARMUP", .takes = CXI_LAT,
     .refusal = "Invalid warmup count: {value}",
     .help = "Number of warmup iterations to run (default: {default})",
     .header = AT_WARMUP, .label = "Warmup Iters"},
    {.name = "latency-gap", OF(GAP), .scale = 1000, .max = 3600000000,
     .fallback = "1000", .word = "USEC", .takes = CXI_LAT,
     .refusal = "Invalid iteration gap: {value}",
     .help = "Number of microseconds to wait between each\n"
             "iteration (default: {default})",
     .header = AT_GAP, .label = "Inter-Iter Gap", .show = cxi_show_gap},
    SIZES("8", CXI_LAT_SIZED),
    SIZES("65536", CXI_BW_SIZED),
    {.letter = 's', .name = "size", .type = OPT_AMOUNT, FIELD(transfer), .min = 1,
     .max = UINT32_MAX, .fallback = "524288", .word = "SIZE", .takes = CXI_LOOPBACK,
     .refusal = "Invalid transfer size: {value}",
     .help = "Transfer size in bytes (default: {default})\n"
             "The maximum size is 4294967295",
     .header = AT_SIZE, .label = "Write Size (B)"},
    {.letter = 'n', .name = "num-xfers", OF(LIST), .fallback = "8192", .word = "XFERS",
     .takes = CXI_LOOPBACK, .refusal = "Invalid list size: {value}",
     .help = "Number of transfers per iteration, all pushed to\n"
             "the Tx CQ prior to initiating xfer (default: {default})",
     .header = AT_LIST, .label = "Cmds per iter", .show = cxi_show_list},
    LIST_SIZE("256", CXI_BW_SIZED,
              "Number of {ops} per iteration, all pushed to\n"
              "the Tx CQ prior to initiating xfer (default: {default})"),
    LIST_SIZE("4096", CXI_BW_AMO,
              "Number of writes per iteration, all pushed to the\n"
              "initiator CQ prior to initiating xfer (default: {default})"),
    {.letter = 'A', .name = "atomic-op", OF(AMO_OP), .fallback = "SUM", .word = "OP",
     .takes = CXI_AMO, .flags = OPT_BARE, .help = "The atomic operation to use (default: {default})",
     .refusal = "Invalid atomic operation: {value}",
     .header = AT_AMO_OP, .label = "Atomic Op", .show = cxi_show_amo_op},
    {.letter = 'C', .name = "cswap-op", OF(AMO_COMPARE), .fallback = "EQ", .word = "OP",
     .takes = CXI_AMO, .flags = OPT_BARE, .help = "The CSWAP operation to use (default: {default})",
     .refusal = "Invalid CSWAP operation: {value}"},
    {.letter = 'T', .name = "atomic-type", OF(AMO_TYPE), .fallback = "UINT64", .word = "TYPE",
     .takes = CXI_AMO, .flags = OPT_BARE, .help = "The atomic type to use (default: {default})",
     .refusal = "Invalid atomic type: {value}",
     .header = AT_AMO_TYPE, .label = "Atomic Type", .show = cxi_show_amo_type},
    {.letter = 'b', .name = "bidirectional", OF(BOTH_WAYS), .takes = CXI_BW,
     .help = "Measure bidirectional bandwidth",
     .header = AT_BOTH_WAYS, .label = "Bidirectional", .show = cxi_show_both_ways},
    {.letter = 'R', .name = "rdzv", OF(RENDEZVOUS), .takes = CXI_BW_PULLS,
     .help = "Use rendezvous PUTs",
     .header = AT_RENDEZVOUS, .label = "Rendezvous PUTs", .show = cxi_show_puts},
    {.name = "fetching", OF(FETCHING), .takes = CXI_AMO,
     .help = "Use fetching AMOs"},
    {.name = "matching", OF(MATCHING), .takes = CXI_AMO,
     .help = "Use matching list entries at the target",
     .header = AT_MATCHING, .label = "Matching LEs", .show = cxi_show_matching},
    {.name = "unrestricted", OF(UNRESTRICTED), .takes = CXI_RESTRICTED,
     .help = "Use unrestricted {ops}",
     .header = AT_RESTRICTED, .label = "Restricted", .show = cxi_show_restricted},
    {.name = "no-hrp", OF(NO_HRP), .takes = CXI_BW_HRP,
     .help = "Do not use High Rate Puts for sizes <= 2048 bytes",
     .header = AT_HRP, .label = "HRP", .show = cxi_show_hrp},
    {.name = "no-hrp", OF(NO_HRP), .takes = CXI_BW_HRP_AMO, .help = "Do not use High Rate Puts",
     .header = AT_HRP, .label = "HRP", .show = cxi_show_hrp},
    {.name = "no-idc", OF(NO_IDC), .takes = CXI_IDC, .help = "Do not use Immediate Data Cmds",
     .header = AT_IDC, .label = "IDC", .show = cxi_show_idc},
    {.name = "no-idc", OF(NO_IDC), .takes = CXI_LAT_PULLS,
     .help = "Do not use Immediate Data Cmds for sizes <= 224 bytes",
     .header = AT_IDC, .label = "IDC", .show = cxi_show_idc},
    {.name = "no-idc", OF(NO_IDC), .takes = CXI_BW_PULLS,
     .help = "Do not use Immediate Data Cmds for sizes <= 192 bytes",
     .header = AT_IDC, .label = "IDC", .show = cxi_show_idc},
    {.name = "no-ll", OF(NO_LL), .takes = CXI_LAT,
     .help = "Do not use Low-Latency command issuing",
     .header = AT_LL, .label = "LL Cmd Launch", .show = cxi_show_ll},
    {.letter = 'R', .name = "rdzv", OF(RENDEZVOUS), .takes = CXI_LAT_PULLS, .help = "Use rendezvous PUTs",
     .header = AT_RENDEZVOUS, .label = "Rendezvous PUTs", .show = cxi_show_rendezvous},
    {.name = "report-all", OF(KEEP_SAMPLES), .takes = CXI_LAT_AMO,
     .help = "Report all latency measurements individually",
     .header = AT_RESULTS, .label = "Results Reported", .show = cxi_show_results},
    {.name = "report-all", OF(KEEP_SAMPLES), .takes = CXI_LAT_SIZED,
     .help = "Report all latency measurements individually\n"
             "This option is ignored when using --duration",
     .header = AT_RESULTS, .label = "Results Reported", .show = cxi_show_results},
    {.name = "buf-sz", OF(MOST), .fallback = "4294967296", .word = "SIZE", .takes = CXI_BW_SIZED,
     .refusal = "Invalid buffer size: {value}",
     .help = "The max TX/RDMA buffer size, specified in bytes\n"
             "If (size * list_size) > buf_sz, {ops} will overlap\n"
             "(default: {default})",
     .header = AT_BUFFER, .label = "Max RDMA Buf", .show = cxi_show_buffer},
    {.name = "buf-align", OF(ALIGN), .fallback = "64", .word = "ALIGN", .takes = CXI_BW_SIZED,
     .refusal = "Invalid buffer alignment: {value}",
     .help = "Byte-alignment of {ops} in the buffer (default: {default})",
     .header = AT_ALIGN, .label = "RDMA Buf Align"},
    {.name = "use-hp", .type = OPT_CHOICE, FIELD(huge), .choices = cxi_huge,
     .word = "SIZE", .takes = CXI_SIZED | CXI_LOOPBACK,
     .refusal = "Invalid hugepage type: {value}. Must be 2M or 1G",
     .help = "Attempt to use huge pages when allocating\n"
             "Size may be \"2M\" or \"1G\"",
     .header = AT_HUGE, .label = "Hugepages", .show = cxi_show_huge},
    {.letter = 'h', .name = "help", .type = OPT_FLAG, FIELD(help), .takes = CXI_ALL,
     .flags = OPT_ACTION,
     .help = "Print this help text and exit"},
    {.letter = 'V', .name = "version", .type = OPT_FLAG, FIELD(version), .takes = CXI_ALL,
     .flags = OPT_ACTION,
     .help = "Print the version and exit"},

    {.letter = 'c', .name = "clock", OF(CLOCK), .fallback = "clock_gettime",
     .word = "TYPE", .takes = CXI_LAT, .flags = OPT_OURS, .refusal = "Invalid clock: {value}",
     .help = "What to time with: cycles or clock_gettime\n"
             "(default: {default})"},
    {.name = "ops-per-sample", OF(OPS_PER_SAMPLE), .fallback = "1", .word = "N", .takes = CXI_LAT,
     .flags = OPT_OURS,
     .help = "Operations that each iteration times together; a\n"
             "sample is their mean (default: {default})",
     .header = AT_OPS, .label = "Ops per Sample", .show = cxi_show_ops},
    {.name = "ignore-cpu-freq-mismatch", OF(IGNORE_MISMATCH), .takes = CXI_LAT,
     .flags = OPT_OURS,
     .help = "Only warn when the cycle counter's rate changed"},
    {.name = "warmup", OF(WARMUP), .fallback = "1", .word = "LISTS",
     .takes = CXI_BW | CXI_LOOPBACK, .flags = OPT_OURS,
     .help = "Lists to run before anything counts (default: {default})",
     .header = AT_WARMUP, .label = "Warmup Lists"},
    {.name = "emu-mode", .type = OPT_FLAG, FIELD(emulated), .takes = CXI_BW, .flags = OPT_ACTION},
    {.name = "report-gbits", .type = OPT_FLAG, FIELD(gbits), .takes = CXI_BW, .flags = OPT_OURS,
     .help = "Bandwidth in Gb/s, not in MB/s"},
    {.name = "interval", .type = OPT_NUMBER, FIELD(interval_s), .min = 1, .max = 1000000,
     .word = "SEC", .takes = CXI_BW, .flags = OPT_OURS,
     .help = "A row this often, besides the last of each size"},
    {.name = "procs", .type = OPT_NUMBER, FIELD(procs), .min = 1, .max = TEAM_MOST,
     .word = "N", .takes = CXI_BW, .flags = OPT_OURS,
     .help = "Pairs of processes that measure together\n"
             "(default: one per device of -d A,B)",
     .header = AT_PAIRS, .label = "Pairs", .show = cxi_show_pairs},
    {.name = "max-procs", .type = OPT_NUMBER, FIELD(max_procs), .min = 1, .max = TEAM_MOST,
     .word = "N", .takes = CXI_BW, .flags = OPT_OURS,
     .help = "Server: refuse clients that want more pairs\n"
             "(default: as many as it has CPUs)"},
    {.name = "local", .type = OPT_FLAG, FIELD(local), .takes = CXI_PAIR, .flags = OPT_OURS,
     .help = "Start the server too, on this machine"},
    {.name = "list", .type = OPT_FLAG, FIELD(list), .takes = CXI_ALL,
     .flags = OPT_OURS | OPT_ACTION,
     .help = "Print the devices that can be used, and exit"},
    {.name = "loop", .type = OPT_FLAG, FIELD(loop), .takes = CXI_PAIR, .flags = OPT_OURS,
     .help = "Server: take one client after another"},
    {.name = "bind", .type = OPT_TEXT, FIELD(bind), .max = 256, .word = "ADDR", .takes = CXI_PAIR,
     .flags = OPT_OURS, .help = "Server: listen on this address only"},
    ACCESS_ROWS(offsetof(struct cxi_options, access), CXI_PAIR),
    {.name = "timeout", OF(TIMEOUT), .scale = 1000, .min = 1, .max = 86400,
     .fallback = "10", .word = "SEC", .takes = CXI_PAIR, .flags = OPT_OURS,
     .help = "Fail after this long without progress or sign of\n"
             "life (default: {default}). A server's is the\n"
             "longest that a client may ask for"},
    {.name = "timeout", OF(TIMEOUT), .scale = 1000, .min = 1, .max = 86400,
     .fallback = "10", .word = "SEC", .takes = CXI_LOOPBACK, .flags = OPT_OURS,
     .help = "Fail after this long without progress\n"
             "(default: {default})"},
    BOUNDS_ROWS(offsetof(struct cxi_options, most), CXI_PAIR),
    {.name = "wait", .type = OPT_NUMBER, FIELD(wait_s), .max = 86400, .fallback = "5",
     .word = "SEC", .takes = CXI_PAIR, .flags = OPT_OURS,
     .help = "Client: keep trying to reach the server for this\n"
             "long (default: {default})"},
    {.name = "cpu", .type = OPT_PAIR, FIELD(cpu), .max = 65535, .choices = place_words,
     .word = "A[,B]", .takes = CXI_PAIR, .flags = OPT_OURS,
     .help = "Run on CPU A; with --local the server on CPU B.\n"
             "\"near\": on the NIC's NUMA node, if that is known\n"
             "(default: near)"},
    {.name = "cpu", .type = OPT_INDEX, FIELD(cpu), .max = 65535, .word = "CPU",
     .takes = CXI_LOOPBACK, .flags = OPT_OURS, .help = "Initiate from this CPU\n"
             "(default: near the NIC, if its node is known)"},
    {.name = "verify", OF(VERIFY), .takes = CXI_ALL, .flags = OPT_OURS,
     .help = "Check the data after every iteration, outside the\n"
             "timed part",
     .header = AT_VERIFY, .label = "Verify", .show = cxi_show_verify},
    {.letter = 'e', .name = "events", OF(EVENTS), .takes = CXI_ALL, .flags = OPT_OURS,
     .help = "Sleep until an event of the fabric, instead of\n"
             "polling; prints the CPU time of both ends",
     .header = AT_EVENTS, .label = "Waits", .show = cxi_show_events},

    OUTPUT_ROWS(offsetof(struct cxi_options, output), CXI_ALL),

    LINE(AT_FABRIC, "Fabric", cxi_show_fabric),
    {.type = OPT_LINE, .header = AT_CPU, .label = "CPU", .show = cxi_show_cpu, .takes = CXI_ALL},
    BW_LINE(AT_CLIENT_RX, "Client RX Mem", cxi_show_client_rx),
    BW_LINE(AT_CLIENT_GPU_BW, "Client GPU Type", cxi_show_client_vendor),
    BW_LINE(AT_SERVER_TX, "Server TX Mem", cxi_show_server_tx),
    {.type = OPT_LINE, .header = AT_SERVER_GPU, .label = "GPU Type", .show = cxi_show_vendor,
     .takes = CXI_LOOPBACK},
    LAT_LINE(AT_CLIENT_GPU, "Client GPU Type", cxi_show_client_vendor),
    SIZE_LINE(AT_SERVER_GPU, "Server GPU Type", cxi_show_server_vendor),
    LINE(AT_TEST_TYPE, "Test Type", cxi_show_test_type),
    SIZE_LINE(AT_MIN_SIZE, "Min {Op} Size", cxi_show_min_size),
    SIZE_LINE(AT_MAX_SIZE, "Max {Op} Size", cxi_show_max_size),
    {.type = OPT_LINE, .header = AT_CLOCK, .label = "Clock", .show = cxi_show_clock,
     .takes = CXI_LAT},
    PAIR_LINE(AT_LOCAL, "Local (client)", cxi_show_local_client),
    PAIR_LINE(AT_LOCAL, "Local (server)", cxi_show_local_server),
    PAIR_LINE(AT_REMOTE, "Remote (client)", cxi_show_remote_client),
    PAIR_LINE(AT_REMOTE, "Remote (server)", cxi_show_remote_server),
    {.type = OPT_LINE, .header = AT_FOUND, .label = "", .show = cxi_show_found,
     .takes = CXI_BW_SIZED | CXI_LOOPBACK},
    {0}};
/* clang-format on */
OPT_FITS(cxi_rows);

unsigned cxi_takes(const struct op *op, const struct method *method)
{
    bool inlines = op->hints & HINT(INLINE), pulls = op->hints & HINT(RENDEZVOUS);
    bool amo = op->traits & OP_NO_LAYOUTS, lists = method->lists;
    unsigned takes = CXI_ALL | CXI_PAIR | (amo ? CXI_AMO : CXI_SIZED) | (lists ? CXI_BW : CXI_LAT);
    takes |= inlines && !pulls ? CXI_IDC : 0;
    takes |= op->hints & HINT(RESTRICTED) ? CXI_RESTRICTED : 0;
    takes |= lists ? (amo ? CXI_BW_AMO : CXI_BW_SIZED) : (amo ? CXI_LAT_AMO : CXI_LAT_SIZED);
    takes |= op->hints & HINT(HRP) ? (amo ? CXI_BW_HRP_AMO : CXI_BW_HRP) : 0;
    return takes | (pulls ? (lists ? CXI_BW_PULLS : CXI_LAT_PULLS) : 0);
}
