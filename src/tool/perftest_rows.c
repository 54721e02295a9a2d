/* SPDX-License-Identifier: BSD-3-Clause */
/* ucx_perftest: its tests and its options in the order of the help text. */
#include "bench/team.h"
#include "core/opt.h"
#include "fabric/choose.h"
#include "tool/perftest.h"
#include "tool/serve.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

const struct perf_test perf_tests[] = {
#define TEST PERF_TEST_ROW
#include "tool/tests.def"
#undef TEST
    {0}};
const char *const perf_test_names[] = {
#define TEST PERF_TEST_NAME
#include "tool/tests.def"
#undef TEST
    NULL};

static const char *const layout_words[] = {"Use short messages API (cannot used for get).",
                                           "Use copy-out API (cannot used for atomics).",
                                           "Use zero-copy API (cannot used for atomics)."};

const char *const perf_layouts[] = {"short",      "bcopy",      "zcopy",   "contig",        "iov",
                                    "contig,iov", "iov,contig", "iov,iov", "contig,contig", NULL};
static const char *const forms[] = {"weft", "ucx", NULL};
const char *const perf_errors[] = {"none", "peer", "failover", NULL};
static const char *const no_yes[] = {"0", "1", NULL};
static const char *const stream_modes[] = {"recv", "recv_data", NULL};
static const char *const wait_modes[] = {"poll", "sleep", NULL};
static const char *const thread_modes[] = {"single", "serialized", "multi", NULL};

#define FIELD(member) .field = offsetof(struct perftest, member)
#define OF(row)       .of = (&spec_rows[SPEC_##row])
#define TEST          .takes = (PERF_TEST | PERF_CLIENT)
#define OURS_TEST     .takes = (PERF_TEST | PERF_CLIENT), .flags = OPT_OURS
#define OURS_RUN      .takes = PERF_RUN, .flags = OPT_OURS

/* clang-format off */
const struct opt perf_rows[] = {
    {.letter = 't', .name = "test", .type = OPT_CHOICE, FIELD(test), .choices = perf_test_names,
     .word = "<test>", TEST, .help = "Test to run."},
    {.letter = 'D', .name = "layout", .type = OPT_CHOICE, FIELD(layout), .choices = perf_layouts,
     .word = "<layout>", TEST, .help = "Data layout."},
    {.letter = 'd', .name = "device", .type = OPT_TEXT, FIELD(device), .max = FABRIC_DEVICE_MAX,
     .word = "<device>", .takes = PERF_TEST,
     .help = "Device to use for testing."},
    {.letter = 'x', .name = "transport", .type = OPT_TEXT, FIELD(transport),
     .max = FABRIC_DEVICE_MAX - 8, .word = "<tl>", .takes = PERF_TEST, .help = "Transport to use for testing."},
    {.letter = 'c', .name = "cpu", .type = OPT_TEXT, FIELD(cpu), .max = CPUS_TEXT, .word = "<cpu>",
     .takes = PERF_RUN, .help = "Set affinity to this CPU. (off)"},
    {.letter = 'n', .name = "iters", OF(ITERATIONS), .fallback = "1000000", .word = "<iters>", TEST,
     .help = "Number of iterations to run. ({default})"},
    {.letter = 's', .name = "size", .type = OPT_AMOUNTS, FIELD(size), .max = UINT32_MAX,
     .fallback = "8", .word = "<size>", TEST, .help = "Message size. ({default})"},
    {.letter = 'H', .name = "am-header", OF(AM_HEADER), .fallback = "8", .word = "<size>", TEST, .help = "AM Header size. ({default})"},
    {.letter = 'w', .name = "warmup", OF(WARMUP), .fallback = "10000", .word = "<iters>", TEST,
     .help = "Number of warm-up iterations. ({default})"},
    {.letter = 'W', .name = "window", OF(WINDOW), .fallback = "128", .word = "<count>", TEST,
     .help = "Flow control window size, for active messages. ({default})"},
    {.letter = 'O', .name = "outstanding", .type = OPT_AMOUNT, FIELD(outstanding), .max = 1 << 20,
     .fallback = "1", .word = "<count>", TEST,
     .help = "Maximal number of uncompleted outstanding sends. ({default})"},
    {.letter = 'N', .name = "numeric", .type = OPT_FLAG, FIELD(grouped), .takes = PERF_RUN | PERF_CLIENT,
     .help = "Use numeric formatting - thousands separator."},
    {.letter = 'f', .name = "final", .type = OPT_FLAG, FIELD(final_only), .takes = PERF_RUN | PERF_CLIENT,
     .help = "Print only final numbers."},
    {.letter = 'v', .name = "csv-table", .type = OPT_FLAG, FIELD(csv), .takes = PERF_RUN | PERF_CLIENT,
     .help = "Print CSV-formatted output."},
    {.letter = 'p', .name = "port", .type = OPT_NUMBER, FIELD(port), .max = 65535,
     .fallback = "13337", .word = "<port>", .takes = PERF_RUN,
     .help = "TCP port to use for data exchange. ({default})"},
    {.letter = 'b', .name = "batch", .type = OPT_TEXT, FIELD(batch), .max = 4096,
     .word = "<batchfile>", .takes = PERF_RUN | PERF_CLIENT, .flags = OPT_REPEATS,
     .help = "Batch mode. Read and execute tests from a file.\n"
             "Every line of the file is a test to run. The first word is the\n"
             "test name, and the rest are command-line arguments for the test."},
    {.letter = 'h', .name = "help", .type = OPT_FLAG, FIELD(help), .takes = PERF_RUN,
     .flags = OPT_ACTION,
     .help = "Show this help message."},
    {.letter = 'l', .name = "loop", .type = OPT_FLAG, FIELD(loop), .takes = PERF_RUN,
     .help = "Accept clients in an infinite loop"},

    {.letter = 'V', .name = "version", .type = OPT_FLAG, FIELD(version), .takes = PERF_RUN,
     .flags = OPT_OURS | OPT_ACTION,
     .help = "Print the version and exit"},
    {.name = "duration", OF(DURATION), .scale = 1000, .max = 1000000, .word = "SEC",
     OURS_TEST, .help = "End after this long; -n then has no limit unless\n"
                        "given"},
    {.name = "interval", OF(INTERVAL), .scale = 1000, .max = 1000000, .fallback = "1",
     .word = "SEC", .takes = PERF_RUN | PERF_CLIENT, .flags = OPT_OURS,
     .help = "A row this often (default: {default}; 0: only the last)"},
    {.letter = 'm', .name = "memory", .type = OPT_TEXT, FIELD(memory), .max = PERF_MEMORY,
     .fallback = "host", .word = "A[,B]", OURS_TEST,
     .help = "Memory of the client and the server: host, 2M, 1G,\n"
             "or a GPU's: cuda, rocm, ze, or cuda:1 for GPU 1\n"
             "(default: {default})"},
    {.letter = 'T', .name = "threads", OF(THREADS), .fallback = "1", .word = "N",
     .takes = PERF_TEST, .flags = OPT_OURS,
     .help = "Threads of each end, thread i with thread i; rows\n"
             "are sums (default: {default}). -c 0,2-4 gives each its\n"
             "CPU, -c near those of the NIC's node; with --local\n"
             "-c CLIENT/SERVER"},
    {.letter = 'M', .name = "thread-mode", .type = OPT_CHOICE, FIELD(thread_mode),
     .choices = thread_modes, .word = "MODE", OURS_TEST,
     .help = "single, serialized or multi: accepted, has no\n"
             "effect, every thread has an endpoint of its own"},
    {.name = "bidir", OF(BOTH_WAYS), OURS_TEST,
     .help = "Both ends send at once (not for *_lat)"},
    {.letter = 'i', .name = "stride", OF(STRIDE), .fallback = "0", .word = "BYTES", OURS_TEST,
     .help = "-D iov: from one piece of a message to the next;\n"
             "0: they follow each other (default: {default})"},
    {.letter = 'C', .name = "wildcard", OF(TAG_WILDCARD), OURS_TEST,
     .help = "tag_*: receives take any tag"},
    {.letter = 'U', .name = "unexpected", OF(TAG_UNEXPECTED), OURS_TEST,
     .help = "tag_*: a message is probed for, then received\n"
             "(otherwise its receive is posted before it is\n"
             "sent)"},
    {.letter = 'o', .name = "one-sided", OF(TARGET_OUT), OURS_TEST,
     .help = "The target makes no progress (put_bw, get, atomics,\n"
             "where the fabric needs none)"},
    {.letter = 'R', .name = "rank", .type = OPT_TEXT, FIELD(rank), .max = PERF_RANK, .word = "RANK",
     .takes = PERF_RUN | PERF_CLIENT, .flags = OPT_OURS,
     .help = "The percentile in the first column, 0 to 100,\n"
             "instead of the median"},
    {.name = "sizes", .type = OPT_SIZES, FIELD(sizes), .min = 1, .max = UINT32_MAX,
     .word = "MIN:MAX", .takes = PERF_RUN | PERF_CLIENT, .flags = OPT_OURS,
     .help = "The test with each power of two, from one to the\n"
             "other, as a batch of them"},
    {.name = "form", .type = OPT_CHOICE, FIELD(form), .choices = forms, .fallback = "weft",
     .word = "FORM", .takes = PERF_RUN | PERF_CLIENT, .flags = OPT_OURS,
     .help = "The table as it is here, or ucx: as current\n"
             "releases of UCX print it (default: {default})"},
    {.letter = 'P', .name = "mpi", .type = OPT_CHOICE, FIELD(mpi), .choices = no_yes, .word = "0|1",
     OURS_RUN,
     .help = "0: a server or client even under a launcher; 1: a\n"
             "rank of a launcher, or an error"},
    {.letter = '6', .name = "ipv6", .type = OPT_FLAG, FIELD(ipv6), OURS_RUN,
     .help = "Accepted: both IPv4 and IPv6 are always taken"},
    {.letter = 'q', .name = "quiet", .type = OPT_FLAG, FIELD(quiet), OURS_RUN,
     .help = "No error text of the vendor's library"},
    {.letter = 'r', .name = "stream-recv", .type = OPT_CHOICE, FIELD(stream_mode),
     .choices = stream_modes, .fallback = "recv", .word = "MODE", OURS_TEST,
     .help = "stream_*: recv (into the buffer) or recv_data (where\n"
             "UCX has the bytes; default: {default})"},
    {.letter = 'e', .name = "errors", .type = OPT_CHOICE, FIELD(errors), .choices = perf_errors,
     .bare = "peer", .word = "MODE", OURS_TEST,
     .help = "ucp: error handling of endpoints, none or peer (-e\n"
             "alone, or -enone), instead of what the transports\n"
             "allow"},
    {.letter = 'z', .name = "registered", .type = OPT_FLAG, FIELD(registered), OURS_TEST,
     .help = "ucp: pass the handle of the registered buffer with\n"
             "every operation"},
    {.letter = 'B', .name = "nonblock", .type = OPT_FLAG, FIELD(nonblock), OURS_TEST,
     .help = "ucp: register the buffer without waiting for its\n"
             "pages"},
    {.letter = 'X', .name = "protocols", .type = OPT_FLAG, FIELD(protocols), OURS_TEST,
     .help = "ucp: print which protocol UCX has chosen"},
    {.letter = 'y', .name = "am-copy", OF(COPIES), OURS_TEST,
     .help = "*am_*: the receiver copies each message"},
    {.name = "verify", OF(VERIFY), OURS_TEST,
     .help = "Check the data; times then include the checking"},
    {.letter = 'E', .name = "wait-mode", .type = OPT_CHOICE, FIELD(wait_mode), .choices = wait_modes,
     .fallback = "poll", .word = "MODE", OURS_TEST,
     .help = "How both ends wait: poll, or sleep until an event of\n"
             "the fabric (default: {default})"},
    {.letter = 'I', .name = "wakeup", OF(WAKEUP), OURS_TEST,
     .help = "Have events to sleep on, but poll"},
    {.name = "local", .type = OPT_FLAG, FIELD(local), OURS_RUN,
     .help = "Start the server too, on this machine"},
    {.name = "loopback", .type = OPT_FLAG, FIELD(loopback), OURS_RUN,
     .help = "Be both ends, in one process of two threads (UCX's\n"
             "-l)"},
    {.name = "list", .type = OPT_FLAG, FIELD(list), .takes = PERF_RUN,
     .flags = OPT_OURS | OPT_ACTION,
     .help = "Print the devices that can be used, and exit"},
    {.name = "bind", .type = OPT_TEXT, FIELD(bind), .max = 256, .word = "ADDR", OURS_RUN,
     .help = "Server: listen on this address only"},
    ACCESS_ROWS(offsetof(struct perftest, access), PERF_RUN),
    {.name = "timeout", OF(TIMEOUT), .scale = 1000, .min = 1, .max = 86400,
     .fallback = "10", .word = "SEC", OURS_RUN,
     .help = "Fail after this long without progress or sign of\n"
             "life (default: {default}). A server's is the\n"
             "longest that a client may ask for"},
    BOUNDS_ROWS(offsetof(struct perftest, most), PERF_RUN),
    {.name = "max-threads", .type = OPT_NUMBER, FIELD(most.threads), .min = 1, .max = TEAM_MOST,
     .word = "N", OURS_RUN,
     .help = "Server: refuse clients that want more threads\n"
             "(default: as many as it has CPUs)"},
    {.name = "wait", .type = OPT_NUMBER, FIELD(wait_s), .max = 86400, .fallback = "5",
     .word = "SEC", OURS_RUN,
     .help = "Client: keep trying to reach the server for this\n"
             "long (default: {default})"},
    OUTPUT_ROWS(offsetof(struct perftest, output), PERF_RUN | PERF_CLIENT),
    {0}};
/* clang-format on */
OPT_FITS(perf_rows);

/* ---- help ---- */

enum { INDENT = 3, WORDS = 12, NAME_END = 26, MORE = 21 };

static int help_row(const struct opt *row, struct msg *text)
{
    char words[512], *rest = words;
    opt_expand(row, row->help, NULL, words, sizeof words);
    int status =
        msg_add(text, "%*s-%c %-*s", INDENT, "", row->letter, WORDS, row->word ? row->word : "");
    for (int i = 0; rest && !status; i++) {
        char *line = strsep(&rest, "\n");
        status = msg_add(text, "%*s%s\n", i ? MORE : 0, "", line);
    }
    return status;
}

static int help_tests(struct msg *text)
{
    int status = 0;
    for (const struct perf_test *test = perf_tests; test->name && !status; test++)
        status = msg_add(text, "%*s : %s\n", NAME_END, test->name, test->what);
    return status ? status : msg_add(text, "\n");
}

static int help_layouts(struct msg *text)
{
    int status = 0;
    for (int i = 0; i < LAYOUTS && !status; i++)
        status = msg_add(text, "%*s : %s\n", NAME_END, fabric_layout_names[i], layout_words[i]);
    return status ? status : msg_add(text, "\n");
}

int perf_help(const struct opt_set *set, struct msg *text)
{
    int status = msg_print(text, "Usage: ucx_perftest [ server-hostname ] [ options ]\n"
                                 "\n"
                                 "This test can be also launched as an MPI application\n"
                                 " Common options:\n"
                                 "\n"
                                 " Test options:\n");
    for (const struct opt *row = opt_next(set, NULL); row && !status; row = opt_next(set, row)) {
        if (row->flags & OPT_OURS)
            continue;
        if (row->letter == 'l')
            status = msg_add(text, "\n Server options:\n");
        if (!status)
            status = help_row(row, text);
        if (!status && row->letter == 't')
            status = help_tests(text);
        else if (!status && row->letter == 'D')
            status = help_layouts(text);
    }
    return status;
}

int perf_help_ours(const struct opt_set *set, struct msg *text)
{
    int status = msg_print(text, "\nWeft options:\n");
    return status ? status : opt_help(set, NULL, OPT_OURS, text);
}
