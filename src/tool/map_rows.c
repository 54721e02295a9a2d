/* SPDX-License-Identifier: BSD-3-Clause */
/* weft map: its tests, its options, and what they come to. */
#include "tool/map.h"
#include "tool/perftest.h"
#include "tool/weft.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Those of the CXI tools, and those of ucx_perftest. */
#define CXI_TESTS(TEST)                                                                            \
    TEST(send_lat, "send", "latency", NULL, 0, 1, NULL)                                            \
    TEST(write_lat, "write", "latency", NULL, 0, 1, NULL)                                          \
    TEST(read_lat, "read", "latency", NULL, 0, 1, NULL)                                            \
    TEST(atomic_lat, "atomic", "latency", "SUM", 0, 1, NULL)                                       \
    TEST(write_bw, "write", "list", NULL, 0, 1, NULL)                                              \
    TEST(read_bw, "read", "list", NULL, 0, 1, NULL)                                                \
    TEST(send_bw, "send", "list", NULL, 0, 1, NULL)                                                \
    TEST(atomic_bw, "atomic", "list", "SUM", 0, 1, NULL)

static const struct perf_test tests[] = {
#define TEST PERF_TEST_ROW
    CXI_TESTS(TEST)
#include "tool/tests.def"
#undef TEST
};
const char *const map_test_names[] = {
#define TEST PERF_TEST_NAME
    CXI_TESTS(TEST)
#include "tool/tests.def"
#undef TEST
        NULL};

#define FIELD(member) .field = offsetof(struct map_options, member)
#define OF(row)       .of = (&spec_rows[SPEC_##row])

/* clang-format off */
const struct opt map_rows[] = {
    {.letter = 't', .name = "test", .type = OPT_CHOICE, FIELD(test), .choices = map_test_names,
     .fallback = "send_lat", .word = "TEST", .takes = 1,
     .help = "What each pair measures (default: {default})"},
    {.letter = 's', .name = "size", OF(SIZE), .fallback = "8", .word = "BYTES", .takes = 1,
     .help = "Size of an operation (default: {default})"},
    {.letter = 'd', .name = "device", .type = OPT_TEXT, FIELD(device), .max = FABRIC_DEVICE_MAX,
     .fallback = "cxi0", .word = "DEV", .takes = 1,
     .help = "Device of every rank; %r stands for its number\n(default: {default})"},
    {.letter = 'n', .name = "iters", OF(ITERATIONS), .min = 1, .max = UINT32_MAX, .fallback = "0",
     .word = "N", .takes = 1,
     .help = "Each pair measures so many operations, instead of\n--slot"},
    {.name = "slot", OF(DURATION), .scale = 1, .min = 1, .max = 60000, .fallback = "60",
     .word = "MS", .takes = 1,
     .help = "Each pair measures for this long (default: {default})"},
    {.name = "partners", .type = OPT_TEXT, FIELD(partners), .max = 32, .fallback = "all+16",
     .word = "K[+K2]", .takes = 1,
     .help = "Each rank meets K others, and a suspect K2 more in the\nsecond stage (default: {default})"},
    {.name = "at-once", .type = OPT_NUMBER, FIELD(at_once), .min = 1, .max = UINT32_MAX / 2,
     .word = "P", .takes = 1,
     .help = "The most pairs that measure at the same time"},
    {.name = "min-effect", .type = OPT_TEXT, FIELD(min_effect), .max = 32, .fallback = "5",
     .word = "PERCENT", .takes = 1,
     .help = "The smallest effect that counts (default: {default})"},
    {.name = "groups", .type = OPT_TEXT, FIELD(groups), .max = MAP_PATH, .fallback = "auto",
     .word = "HOW", .takes = 1,
     .help = "Groups of nodes: auto (as the launcher knows them),\n"
             "none, switch (from the address of the device), or a\n"
             "file with lines NODE GROUP (default: {default})"},
    {.name = "seed", .type = OPT_NUMBER, FIELD(seed), .min = 1, .max = UINT64_MAX, .word = "N",
     .takes = 1, .help = "Order of ranks and rounds (default: a random one)"},
    {.name = "local", .type = OPT_NUMBER, FIELD(local), .min = 2, .max = 4096, .word = "N",
     .takes = 1, .help = "Start N ranks on this machine"},
    {.name = "hosts", .type = OPT_TEXT, FIELD(hosts), .max = MAP_PATH, .word = "LIST", .takes = 1,
     .help = "Start a rank on each of these hosts, such as n[0-15]"},
    {.name = "agent", .type = OPT_TEXT, FIELD(agent), .max = 1024, .fallback = "ssh %h",
     .word = "COMMAND", .takes = 1,
     .help = "How to start a command on host %h (default: {default})"},
    {.name = "wait", .type = OPT_NUMBER, FIELD(wait_s), .max = 86400, .fallback = "30",
     .word = "SEC", .takes = 1,
     .help = "Wait this long for all ranks (default: {default})"},
    {.name = "timeout", OF(TIMEOUT), .scale = 1000, .min = 1, .max = 86400, .fallback = "10",
     .word = "SEC", .takes = 1,
     .help = "A rank that is silent for this long is struck\n(default: {default})"},
    {.name = "secret-file", .type = OPT_TEXT, FIELD(access.secret_file), .max = ACCESS_PATH,
     .word = "FILE", .takes = 1,
     .help = "The secret that all ranks have; a launcher that can\ncarry one needs none"},
    {.name = "json", .type = OPT_TEXT, FIELD(json), .max = MAP_PATH, .word = "FILE", .takes = 1,
     .help = "Write the map as JSON (\"-\": standard output, no text)"},
    {.name = "csv", .type = OPT_TEXT, FIELD(csv), .max = MAP_PATH, .word = "FILE", .takes = 1,
     .help = "Write a line per pair as CSV"},
    {.name = "cells", .type = OPT_TEXT, FIELD(cells), .max = MAP_PATH, .word = "FILE", .takes = 1,
     .help = "Write every measurement of every pair, as it comes in"},
    {.name = "member", .type = OPT_FLAG, FIELD(member), .takes = 1},
    {.letter = 'h', .name = "help", .type = OPT_FLAG, FIELD(help), .takes = 1,
     .help = "Print this help"},
    {0}};
/* clang-format on */
OPT_FITS(map_rows);

/* ---- what they come to ---- */

static bool given(const struct opt_set *set, const char *name)
{
    return opt_origin(set, opt_find(set, name)) == OPT_BY_USER;
}

static int settle_spec(struct map_options *o, const struct opt_set *set)
{
    struct spec *spec = &o->spec;
    const struct perf_test *test = &tests[o->test - 1];
    if (spec->size.min != spec->size.max)
        return fail(-EINVAL, "--size: a map is of one size, not of a range");
    if (given(set, "iters") && given(set, "slot"))
        return fail(-EINVAL, "--iters and --slot: give one of them");
    if (given(set, "iters"))
        spec->count.duration_ms = 0;
    else
        spec->count.iterations = 0;
    spec->count.warmup = 10;
    spec->pace.gap_ns = 0;
    if (spec->size.max > spec->data.most)
        spec->data.most = spec->size.max;
    spec->pace.outstanding = test->outstanding;
    int status = perf_test_apply(spec, test);
    if (spec->data.apart)
        spec->data.am_header = 0;
    if (spec->data.apart && !given(set, "device"))
        snprintf(o->device, sizeof o->device, "ucp");
    spec_settle(spec);
    if (!status)
        status = spec_check(spec);
    if (!status || spec->size.max)
        return status;
    /* Other tests have a size of 0. */
    char why[1024];
    snprintf(why, sizeof why, "%s", fail_reason());
    return fail(status, "--test %s: %s", map_test_names[o->test - 1], why);
}

/* "16+32", "all+16", "16". */
static int read_partners(const char *text, struct map_request *r)
{
    char first[32];
    const char *plus = strchr(text, '+');
    uint64_t partners = 0, again = 16;
    snprintf(first, sizeof first, "%.*s", (int)strcspn(text, "+"), text);
    bool all = strcmp(first, "all") == 0;
    if ((!all && (unit_number(first, &partners) || !partners)) ||
        (plus && (unit_number(plus + 1, &again) || !again)) || partners > MAP_RANKS_MAX ||
        again > MAP_RANKS_MAX)
        return fail(-EINVAL, "--partners: \"%s\" is not K or K+K2, such as 16+32 or all+16", text);
    r->partners = (uint32_t)partners;
    r->again = (uint32_t)again;
    return 0;
}

static int read_effect(const char *text, struct map_request *r)
{
    char *end;
    double percent = strtod(text, &end);
    size_t length = strspn(text, "0123456789.");
    bool signed_so = text[length] == '%' && !text[length + 1];
    if (!length || (text[length] && !signed_so) || end != text + length ||
        !(percent >= 0.1 && percent <= 1000))
        return fail(-EINVAL, "--min-effect: \"%s\" is not a percentage (accepted: 0.1 to 1000)",
                    text);
    r->min_effect = percent / 100;
    return 0;
}

static int check_files(const struct map_options *o)
{
    const char *const names[] = {"json", "csv", "cells"}, *const files[] = {o->json, o->csv,
                                                                            o->cells};
    int status = 0;
    for (size_t i = 0; i < LENGTH(files) && !status; i++) {
        if (!*files[i])
            continue;
        for (size_t k = 0; k < i; k++)
            if (*files[k] && save_same(files[k], files[i]))
                return fail(-EINVAL, "--%s and --%s both write to %s", names[k], names[i],
                            files[i]);
        status = save_check(files[i]);
    }
    return status;
}

int map_settle(struct map_options *o, struct opt_set *set, struct map_request *r)
{
    *r = (struct map_request){.options = o};
    int status = settle_spec(o, set);
    if (!status)
        status = read_partners(o->partners, r);
    if (!status)
        status = read_effect(o->min_effect, r);
    if (!status && o->local && *o->hosts)
        status = fail(-EINVAL, "--local and --hosts: give one of them");
    /* Of other launchers rank 0 alone needs the file. */
    if (!status && (o->local || *o->hosts))
        status = map_groups_check(o->groups);
    return status ? status : check_files(o);
}
