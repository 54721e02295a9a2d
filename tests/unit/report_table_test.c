/* SPDX-License-Identifier: BSD-3-Clause */
/* The CXI table, letter by letter: header, rows, samples and endings of runs whose numbers are
 * known. */
#include "core/opt.h"
#include "support/unit.h"
#include "tool/cxi.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE   "------------------------------------------------------------------------\n"
#define TITLES "RDMA Size[B]      Writes     Min[us]     Max[us]    Mean[us]  StdDev[us]\n"

/* ---- a run that was never run ---- */

enum { WORDS = 8 };

struct page {
    struct cxi_options options;
    struct opt_set set;
    struct session session;
    struct facts facts;
    struct report_table table;
    char *text;
    size_t length;
};

static const struct fabric_facts soft_facts = {.honours =
                                                   HINT(INLINE) | HINT(LL) | HINT(RESTRICTED),
                                               .max_inline = 224,
                                               .max_ll = 64 << 20,
                                               .form = "soft (software NIC, shared memory)",
                                               .self = "NIC 0x13 PID 0",
                                               .domain = "VNI 10"};

static void open_page(struct page *page, bool initiator, char *const *words)
{
    int argc = 0, given;
    while (words[argc])
        argc++;
    struct spec *spec = &page->options.spec;
    *page = (struct page){.session = {.facts = soft_facts,
                                      .why = "",
                                      .memory = {"host", "host"},
                                      .buffer = {.kind = &memory_host, .fd = -1}},
                          .facts = {.spec = spec,
                                    .session = &page->session,
                                    .initiator = initiator,
                                    .legs = 1,
                                    .clock_text = "clock_gettime, 27 ns per sample subtracted",
                                    .remote = "NIC 0x12 PID 0"}};
    spec_defaults(spec);
    spec->op = choice_named(op_names, "write");
    spec->method = choice_named(method_names, "latency");
    page->facts.op = op_of(spec);
    page->facts.method = method_of(spec);
    page->set = (struct opt_set){.rows = cxi_rows,
                                 .takes = cxi_takes(page->facts.op, page->facts.method),
                                 .base = &page->options};
    opt_defaults(&page->set);
    if (opt_parse(&page->set, argc, words, &page->options.address, 1, &given))
        fail_msg("%s", fail_reason());
    FILE *out = open_memstream(&page->text, &page->length);
    assert_non_null(out);
    report_table_open(&page->table, out, "CXI RDMA Write Latency Test", &page->set, NULL);
}

#define OPEN(page, initiator, ...) open_page(page, initiator, (char *const[WORDS + 1]){__VA_ARGS__})

static void close_page(struct page *page)
{
    fclose(page->table.out);
    free(page->text);
}

static void begin(struct page *page)
{
    assert_int_equal(page->table.report.ops->begin(&page->table.report, &page->facts), 0);
}

static void end(struct page *page, int status)
{
    assert_int_equal(page->table.report.ops->end(&page->table.report, status), 0);
}

/* One size: its samples if all are reported, and its row. */
static void row(struct page *page, size_t size, const uint64_t *ps, size_t n)
{
    struct report *report = &page->table.report;
    struct stats *stats;
    assert_int_equal(stats_open(&stats, n), 0);
    stats_add(stats, ps, n);
    for (size_t i = 0; i < n && page->options.spec.local.keep_samples; i++)
        assert_int_equal(report->ops->sample(report, i, ps[i]), 0);
    struct result result = {.size = size, .count = n, .stats = stats, .us_per_unit = 1e-6};
    assert_int_equal(report->ops->row(report, &result), 0);
    stats_close(stats);
}

/* What stands below the header. */
static const char *results(const struct page *page)
{
    const char *last = strstr(page->text, "\nRemote");
    assert_non_null(last);
    last = strchr(last + 1, '\n');
    assert_non_null(last);
    assert_int_equal(strncmp(last + 1, LINE, strlen(LINE)), 0);
    return last + 1 + strlen(LINE);
}

static bool has_line(const char *text, const char *line)
{
    for (const char *at = text; (at = strstr(at, line)); at++)
        if ((at == text || at[-1] == '\n') && at[strlen(line)] == '\n')
            return true;
    return false;
}

/* ---- header ---- */

static void the_header_of_a_client_is_this_one(void **state)
{
    struct page page;
    (void)state;
    OPEN(&page, true, "host", "-n", "5");
    begin(&page);
    assert_string_equal(page.text,
                        LINE "    CXI RDMA Write Latency Test\n"
                             "Device           : cxi0\n"
                             "Fabric           : soft (software NIC, shared memory)\n"
                             "Service ID       : 1\n"
                             "Client TX Mem    : System\n"
                             "Server RX Mem    : System\n"
                             "Test Type        : Iteration\n"
                             "Iterations       : 5\n"
                             "Warmup Iters     : 10\n"
                             "Inter-Iter Gap   : 1000 microseconds\n"
                             "Write Size       : 8\n"
                             "IDC              : Enabled\n"
                             "Restricted       : Enabled\n"
                             "LL Cmd Launch    : Enabled\n"
                             "Results Reported : Summary\n"
                             "Hugepages        : Disabled\n"
                             "Clock            : clock_gettime, 27 ns per sample subtracted\n"
                             "Local (client)   : NIC 0x13 PID 0 VNI 10\n"
                             "Remote (server)  : NIC 0x12 PID 0\n" LINE);
    close_page(&page);
}

static void the_header_of_a_server_with_everything_given_is_this_one(void **state)
{
    struct page page;
    (void)state;
    OPEN(&page, false, "-dsoft:cxi1", "-v2", "-D3", "--warmup=0", "-s8:1M", "--use-hp=2M",
         "--unrestricted", "--no-ll");
    page.session.buffer =
        (struct region){.kind = &memory_huge_2m, .mapped = 4 << 20, .page = 2 << 20};
    page.session.facts.domain[0] = '\0';
    begin(&page);
    assert_string_equal(page.text,
                        LINE "    CXI RDMA Write Latency Test\n"
                             "Device           : soft:cxi1\n"
                             "Fabric           : soft (software NIC, shared memory)\n"
                             "Service ID       : 2\n"
                             "Client TX Mem    : System\n"
                             "Server RX Mem    : System\n"
                             "Test Type        : Duration\n"
                             "Duration         : 3 seconds\n"
                             "Warmup Iters     : 0\n"
                             "Inter-Iter Gap   : 1000 microseconds\n"
                             "Min Write Size   : 8\n"
                             "Max Write Size   : 1048576\n"
                             "IDC              : Enabled\n"
                             "Restricted       : Disabled\n"
                             "LL Cmd Launch    : Disabled\n"
                             "Results Reported : Summary\n"
                             "Hugepages        : Enabled (2M - 2 pages)\n"
                             "Clock            : clock_gettime, 27 ns per sample subtracted\n"
                             "Local (server)   : NIC 0x13 PID 0\n"
                             "Remote (client)  : NIC 0x12 PID 0\n" LINE);
    close_page(&page);
}

static void each_option_shows_in_the_header(void **state)
{
    static const struct {
        char *words[WORDS + 1];
        const char *line;
    } cases[] = {{{"-s", "224"}, "IDC              : Enabled"},
                 {{"-s", "225"}, "IDC              : Disabled (over 224 bytes)"},
                 {{"-s", "256:1024"}, "IDC              : Disabled (over 224 bytes)"},
                 {{"-s", "8:256"}, "IDC              : Enabled"},
                 {{"-s", "8:128"}, "IDC              : Enabled"},
                 {{"--no-idc"}, "IDC              : Disabled"},
                 {{"--no-idc", "-s", "8:256"}, "IDC              : Disabled"},
                 {{"-s", "4294967295"}, "Write Size       : 4294967295"},
                 {{"-s", "67108864"}, "LL Cmd Launch    : Enabled"},
                 {{"-s", "67108865"}, "LL Cmd Launch    : Disabled (over 67108864 bytes)"},
                 {{"-s", "134217728", "--no-ll"}, "LL Cmd Launch    : Disabled"},
                 {{"--verify"}, "Verify           : Every iteration, not timed"},
                 {{"-s", "64:64"}, "Write Size       : 64"},
                 {{"--report-all"}, "Results Reported : All"},
                 {{"--latency-gap", "0"}, "Inter-Iter Gap   : 0 microseconds"}};
    (void)state;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct page page;
        open_page(&page, true, cases[i].words);
        begin(&page);
        if (!has_line(page.text, cases[i].line))
            fail_msg("no line \"%s\" in\n%s", cases[i].line, page.text);
        close_page(&page);
    }
}

static void memory_on_a_gpu_shows_in_the_header(void **state)
{
    struct page page;
    (void)state;
    OPEN(&page, true, "host");
    snprintf(page.session.memory[PEER_CLIENT], SESSION_MEMORY, "cuda:1");
    page.session.vendors[PEER_CLIENT] = MEMORY_NVIDIA;
    begin(&page);
    assert_true(has_line(page.text, "Client TX Mem    : GPU 1"));
    assert_true(has_line(page.text, "Server RX Mem    : System"));
    assert_true(has_line(page.text, "Client GPU Type  : NVIDIA"));
    assert_true(has_line(page.text, "IDC              : Disabled (from a GPU)"));
    assert_null(strstr(page.text, "Server GPU Type"));
    close_page(&page);
    OPEN(&page, true, "host");
    snprintf(page.session.memory[PEER_SERVER], SESSION_MEMORY, "rocm");
    page.session.vendors[PEER_SERVER] = MEMORY_AMD;
    begin(&page);
    assert_true(has_line(page.text, "Client TX Mem    : System"));
    assert_true(has_line(page.text, "Server RX Mem    : GPU 0"));
    assert_true(has_line(page.text, "Server GPU Type  : AMD"));
    assert_true(has_line(page.text, "IDC              : Enabled"));
    close_page(&page);
}

static void a_hint_that_the_fabric_cannot_honour_is_not_applicable_with_a_reason(void **state)
{
    struct page page;
    (void)state;
    OPEN(&page, true, "host", "--no-idc");
    page.session.facts.honours = HINT(LL);
    page.session.facts.why_not[HINT_INLINE] = "no such commands";
    page.session.facts.why_not[HINT_RESTRICTED] = "always in order";
    begin(&page);
    assert_true(has_line(page.text, "IDC              : n/a (no such commands)"));
    assert_true(has_line(page.text, "Restricted       : n/a (always in order)"));
    assert_true(has_line(page.text, "LL Cmd Launch    : Enabled"));
    close_page(&page);
}

/* On its own, matching rules IDC and restricted order out; where there is none, it changes nothing.
 */
static void only_a_request_that_holds_rules_others_out(void **state)
{
    struct page page;
    struct op op;
    (void)state;
    for (int honoured = 0; honoured < 2; honoured++) {
        OPEN(&page, true, "host");
        op = *page.facts.op;
        op.hints |= HINT(MATCHING);
        page.facts.op = &op;
        page.options.spec.hints.matching = true;
        page.session.facts.honours |= honoured ? HINT(MATCHING) : 0;
        begin(&page);
        const char *value = honoured ? "Disabled - Not Applicable" : "Enabled";
        char line[64];
        snprintf(line, sizeof line, "IDC              : %s", value);
        assert_true(has_line(page.text, line));
        snprintf(line, sizeof line, "Restricted       : %s", value);
        assert_true(has_line(page.text, line));
        close_page(&page);
    }
}

static void a_service_that_there_is_not_has_its_reason(void **state)
{
    struct page page;
    (void)state;
    OPEN(&page, true, "host", "-v3");
    page.session.facts.why_no_service = "no such things";
    begin(&page);
    assert_true(has_line(page.text, "Service ID       : n/a (no such things)"));
    close_page(&page);
}

/* ---- rows ---- */

static void a_row_has_six_columns_of_known_width(void **state)
{
    static const uint64_t ps[] = {2000000, 2100000, 2200000, 2300000};
    struct page page;
    (void)state;
    OPEN(&page, true, "host");
    begin(&page);
    row(&page, 8, ps, LENGTH(ps));
    assert_string_equal(results(&page),
                        TITLES "           8           4        2.00        2.30        2.15       "
                               "0.112\n");
    end(&page, 0);
    assert_string_equal(results(&page),
                        TITLES "           8           4        2.00        2.30        2.15       "
                               "0.112\n" LINE);
    close_page(&page);
}

#define FAST "           1           2       0.020       0.024       0.022       0.002\n"
#define SLOW "           2           2       0.999        1.00        1.00       0.000\n"
#define ONE  "           4           1     1234.57     1234.57     1234.57       0.000\n"

static void a_range_has_one_title_and_a_row_as_each_size_is_done(void **state)
{
    static const uint64_t fast[] = {20000, 24000}, slow[] = {999400, 999700}, one[] = {1234567890};
    struct page page;
    (void)state;
    OPEN(&page, true, "host", "-s1:4");
    begin(&page);
    row(&page, 1, fast, LENGTH(fast));
    assert_string_equal(results(&page), TITLES FAST);
    row(&page, 2, slow, LENGTH(slow));
    assert_string_equal(results(&page), TITLES FAST SLOW);
    row(&page, 4, one, LENGTH(one));
    end(&page, 0);
    assert_string_equal(results(&page), TITLES FAST SLOW ONE LINE);
    close_page(&page);
}

static void a_row_too_wide_for_its_columns_stays_readable(void **state)
{
    static const uint64_t ps[] = {UINT64_C(1) << 55, UINT64_C(1) << 54};
    struct page page;
    size_t size, count;
    double min, max, mean, deviation;
    (void)state;
    OPEN(&page, true, "host");
    begin(&page);
    row(&page, 4294967295, ps, LENGTH(ps));
    assert_int_equal(sscanf(results(&page) + strlen(TITLES), "%zu %zu %lf %lf %lf %lf\n", &size,
                            &count, &min, &max, &mean, &deviation),
                     6);
    assert_int_equal(size, 4294967295);
    assert_int_equal(count, 2);
    assert_true(fabs(min - 18014398509.48) < 0.006 && fabs(max - 36028797018.96) < 0.006);
    assert_true(fabs(mean - 27021597764.22) < 0.006 && fabs(deviation - 9007199254.74) < 0.006);
    close_page(&page);
}

/* What is below the resolution is only known to be; of a size that is resolved, the spread of its
 * samples may be. */
static void what_the_clock_cannot_resolve_is_not_printed_as_measured(void **state)
{
    static const double percentiles[] = {10, 50, 0};
    uint64_t ps[40];
    struct page page;
    struct stats *stats;
    (void)state;
    OPEN(&page, true, "host");
    page.table.percentiles = percentiles;
    begin(&page);
    assert_int_equal(stats_open(&stats, 0), 0);
    for (uint64_t i = 0; i < LENGTH(ps); i++)
        ps[i] = i < 5 ? 0 : i < 39 ? 30000 : 60000;
    stats_add(stats, ps, LENGTH(ps));
    struct result result = {.size = 8,
                            .count = 40,
                            .stats = stats,
                            .us_per_unit = 1e-6,
                            .sampling.resolution_ns = 21.4};
    for (int resolved = 0; resolved < 2; resolved++) {
        result.sampling.resolved = resolved;
        assert_int_equal(page.table.report.ops->row(&page.table.report, &result), 0);
    }
    result.sampling.resolution_ns = 1200;
    assert_int_equal(page.table.report.ops->row(&page.table.report, &result), 0);
    /* 29.7 ns would be printed as 0.030, and the least as 0.030 too. */
    result.sampling.resolution_ns = 29.5;
    result.us_per_unit = 0.99e-6;
    assert_int_equal(page.table.report.ops->row(&page.table.report, &result), 0);
    const char *rows = strstr(page.text, "p50[us]\n");
    assert_non_null(rows);
    assert_string_equal(rows + strlen("p50[us]\n"),
                        "           8          40      <0.022       0.060       0.027      <0.022  "
                        "    <0.022       0.030\n"
                        "           8          40      <0.022       0.060       0.027       0.011  "
                        "    <0.022       0.030\n"
                        "           8          40       <1.20       <1.20       <1.20       0.011  "
                        "     <1.20       <1.20\n"
                        "           8          40      <0.030       0.060      <0.030       0.011  "
                        "    <0.030      <0.030\n");
    stats_close(stats);
    close_page(&page);
}

/* ---- all samples ---- */

static void all_samples_come_in_blocks_with_one_line_between(void **state)
{
    static const uint64_t first[] = {2008000, 2012000}, second[] = {2500400, 999, 30000000};
    struct page page;
    (void)state;
    OPEN(&page, true, "host", "--report-all", "-s8:16");
    begin(&page);
    row(&page, 8, first, LENGTH(first));
    row(&page, 16, second, LENGTH(second));
    end(&page, 0);
    assert_string_equal(
        results(&page),
        "  WriteNum  Latency[us]\n"
        "         0        2.008\n"
        "         1        2.012\n" LINE TITLES
        "           8           2        2.01        2.01        2.01       0.002\n" LINE
        "  WriteNum  Latency[us]\n"
        "         0        2.500\n"
        "         1        0.001\n"
        "         2       30.000\n" LINE TITLES
        "          16           3       0.001       30.00       10.83       13.59\n" LINE);
    close_page(&page);
}

/* From the text alone: what is printed below must follow from what is printed above. */
static void check_summary(const char *text, double tolerance)
{
    long double sum = 0, squares = 0;
    double min = HUGE_VAL, max = 0, printed[4], us[1000];
    unsigned number, n = 0, count;
    int used;
    const char *at = strchr(text, '\n') + 1;
    for (; sscanf(at, "%u %lf\n%n", &number, &us[n], &used) == 2 && number == n; n++) {
        at += used;
        sum += us[n];
        min = fmin(min, us[n]);
        max = fmax(max, us[n]);
    }
    for (unsigned i = 0; i < n; i++)
        squares += (us[i] - sum / n) * (us[i] - sum / n);
    assert_int_equal(strncmp(at, LINE TITLES, strlen(LINE TITLES)), 0);
    assert_int_equal(sscanf(at + strlen(LINE TITLES), "%*u %u %lf %lf %lf %lf", &count, &printed[0],
                            &printed[1], &printed[2], &printed[3]),
                     5);
    assert_int_equal(count, n);
    const double computed[] = {min, max, (double)(sum / n), (double)sqrtl(squares / n)};
    for (size_t i = 0; i < LENGTH(computed); i++) {
        char expected[32];
        unit_us(computed[i], expected, sizeof expected);
        if (fabs(printed[i] - strtod(expected, NULL)) > tolerance)
            fail_msg("%s computed, %g printed", expected, printed[i]);
    }
}

static void the_summary_follows_from_the_printed_samples(void **state)
{
    uint64_t seed = 1;
    (void)state;
    for (int round = 0; round < 300; round++) {
        uint64_t ps[500], span = UINT64_C(1) << (10 + next_random(&seed) % 20);
        size_t n = 1 + next_random(&seed) % LENGTH(ps);
        bool whole = round % 2; /* nanoseconds, which three decimals hold */
        struct page page;
        OPEN(&page, true, "host", "--report-all");
        for (size_t i = 0; i < n; i++) {
            ps[i] = 500000 + next_random(&seed) % span;
            ps[i] -= whole ? ps[i] % 1000 : 0;
        }
        begin(&page);
        row(&page, 8, ps, n);
        end(&page, 0);
        /* Otherwise the last printed digit may differ by one. */
        check_summary(results(&page), whole ? 1e-9 : 0.0101);
        close_page(&page);
    }
}

/* ---- endings ---- */

static void a_server_points_to_the_client(void **state)
{
    static const int statuses[] = {0, -EINTR, -ECONNRESET};
    (void)state;
    for (size_t i = 0; i < LENGTH(statuses); i++) {
        struct page page;
        OPEN(&page, false, NULL);
        begin(&page);
        assert_string_equal(results(&page), "");
        end(&page, statuses[i]);
        assert_string_equal(results(&page), "See client for results.\n" LINE);
        close_page(&page);
    }
}

static void a_run_without_rows_ends_with_the_line_of_the_header(void **state)
{
    struct page page;
    (void)state;
    OPEN(&page, true, "host");
    begin(&page);
    end(&page, 0);
    assert_string_equal(results(&page), "");
    close_page(&page);
}

static void a_run_cut_short_says_so_below_what_was_measured(void **state)
{
    static const uint64_t ps[] = {2000000};
    static const struct {
        int status;
        const char *nothing, *something;
    } cases[] = {{-EINTR, "Interrupted: nothing was measured.\n",
                  "Interrupted: the last row may be cut short.\n"},
                 {-ECONNRESET, "Incomplete: nothing was measured.\n",
                  "Incomplete: the last row may be cut short.\n"}};
    (void)state;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct page page;
        char expected[512];
        OPEN(&page, true, "host");
        begin(&page);
        end(&page, cases[i].status);
        snprintf(expected, sizeof expected, "%s" LINE, cases[i].nothing);
        assert_string_equal(results(&page), expected);
        close_page(&page);
        OPEN(&page, true, "host");
        begin(&page);
        row(&page, 8, ps, 1);
        end(&page, cases[i].status);
        snprintf(expected, sizeof expected,
                 TITLES "           8           1        2.00        2.00        2.00       0.000\n"
                        "%s" LINE,
                 cases[i].something);
        assert_string_equal(results(&page), expected);
        close_page(&page);
    }
}

static void no_run_has_two_lines_in_a_row_or_ends_without_one(void **state)
{
    static const uint64_t ps[] = {2000000, 2000001};
    (void)state;
    for (unsigned run = 0; run < 64; run++) {
        struct page page;
        bool initiator = run & 1;
        OPEN(&page, initiator, run & 2 ? "--report-all" : NULL);
        begin(&page);
        for (unsigned rows = 0; initiator && rows < run / 16; rows++)
            row(&page, 8, ps, 1 + rows % 2);
        end(&page, run & 4 ? run & 8 ? -EINTR : -EIO : 0);
        assert_null(strstr(page.text, LINE LINE));
        assert_string_equal(page.text + page.length - strlen(LINE), LINE);
        close_page(&page);
    }
}

/* Scripts wait for the rows: each part must be in the pipe when its call returns. */
static void every_part_is_in_the_pipe_at_once(void **state)
{
    static const uint64_t ps[] = {2000000};
    struct page page;
    char text[4096] = "";
    int fd[2];
    (void)state;
    OPEN(&page, true, "host");
    assert_int_equal(pipe2(fd, O_CLOEXEC | O_NONBLOCK), 0);
    FILE *memory = page.table.out, *out = fdopen(fd[1], "w");
    assert_non_null(out);
    page.table.out = out;
    begin(&page);
    assert_true(read(fd[0], text, sizeof text - 1) > 0);
    assert_true(has_line(text, "Device           : cxi0"));
    row(&page, 8, ps, 1);
    memset(text, 0, sizeof text);
    assert_true(read(fd[0], text, sizeof text - 1) > 0);
    assert_int_equal(strncmp(text, TITLES "           8 ", strlen(TITLES) + 13), 0);
    end(&page, 0);
    memset(text, 0, sizeof text);
    assert_true(read(fd[0], text, sizeof text - 1) > 0);
    assert_string_equal(text, LINE);
    fclose(out);
    close(fd[0]);
    page.table.out = memory;
    close_page(&page);
}

static void a_full_disk_is_an_error(void **state)
{
    static const uint64_t ps[] = {2000000};
    struct page page;
    (void)state;
    OPEN(&page, true, "host");
    FILE *memory = page.table.out, *full = fopen("/dev/full", "we");
    if (!full) {
        close_page(&page);
        skip();
    }
    begin(&page);
    page.table.out = full;
    struct report *report = &page.table.report;
    struct stats *stats;
    assert_int_equal(stats_open(&stats, 0), 0);
    stats_add(stats, ps, 1);
    struct result result = {.size = 8, .count = 1, .stats = stats, .us_per_unit = 1e-6};
    assert_int_equal(report->ops->row(report, &result), -EIO);
    assert_int_equal(strncmp(fail_reason(), "writing results: ", 17), 0);
    assert_int_equal(report->ops->end(report, 0), -EIO);
    stats_close(stats);
    fclose(full);
    page.table.out = memory;
    close_page(&page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_header_of_a_client_is_this_one),
        cmocka_unit_test(the_header_of_a_server_with_everything_given_is_this_one),
        cmocka_unit_test(each_option_shows_in_the_header),
        cmocka_unit_test(memory_on_a_gpu_shows_in_the_header),
        cmocka_unit_test(a_hint_that_the_fabric_cannot_honour_is_not_applicable_with_a_reason),
        cmocka_unit_test(only_a_request_that_holds_rules_others_out),
        cmocka_unit_test(a_service_that_there_is_not_has_its_reason),
        cmocka_unit_test(a_row_has_six_columns_of_known_width),
        cmocka_unit_test(a_range_has_one_title_and_a_row_as_each_size_is_done),
        cmocka_unit_test(a_row_too_wide_for_its_columns_stays_readable),
        cmocka_unit_test(what_the_clock_cannot_resolve_is_not_printed_as_measured),
        cmocka_unit_test(all_samples_come_in_blocks_with_one_line_between),
        cmocka_unit_test(the_summary_follows_from_the_printed_samples),
        cmocka_unit_test(a_server_points_to_the_client),
        cmocka_unit_test(a_run_without_rows_ends_with_the_line_of_the_header),
        cmocka_unit_test(a_run_cut_short_says_so_below_what_was_measured),
        cmocka_unit_test(no_run_has_two_lines_in_a_row_or_ends_without_one),
        cmocka_unit_test(every_part_is_in_the_pipe_at_once),
        cmocka_unit_test(a_full_disk_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
