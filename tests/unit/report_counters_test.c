/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters of network devices in conditions and in sentences. */
#include "report/report.h"
#include "support/unit.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct counters ends[2];

static void add(int rank, const char *name, uint64_t value, bool known)
{
    struct counter *c = &ends[rank].list[ends[rank].count++];
    *c = (struct counter){.value = value, .known = known};
    snprintf(c->name, sizeof c->name, "%s", name);
}

static int fill(void **state)
{
    (void)state;
    memset(ends, 0, sizeof ends);
    snprintf(ends[0].device, sizeof ends[0].device, "eth0");
    snprintf(ends[1].device, sizeof ends[1].device, "cxi0");
    add(0, "rx_bytes", 100, true);
    add(0, "rx_errors", 0, true);
    add(0, "tx_dropped", 2, true);
    add(1, "rx_bytes", 250, true);
    add(1, "rx_errors", 0, false);
    return 0;
}

static enum verdict judge(const char *text, double *value)
{
    static struct stats stats;
    struct result result = {.size = 8, .stats = &stats, .counters = {1, ends}};
    struct condition c;
    if (condition_parse(text, false, &c))
        fail_msg("%s: %s", text, fail_reason());
    return condition_judge(&c, &result, value);
}

static void a_condition_takes_the_larger_end_or_the_named_one(void **state)
{
    double value;
    (void)state;
    assert_int_equal(judge("counter:rx_bytes > 200", &value), VERDICT_FAILED);
    assert_true(value == 250);
    assert_int_equal(judge("counter:client:rx_bytes > 200", &value), VERDICT_PASSED);
    assert_true(value == 100);
    assert_int_equal(judge("counter:server:rx_bytes@8<=250", &value), VERDICT_FAILED);
    assert_int_equal(judge("counter:rx_bytes@4K > 0", &value), VERDICT_NONE);
}

static void what_is_not_known_is_judged_only_if_it_cannot_matter(void **state)
{
    double value;
    (void)state;
    assert_int_equal(judge("counter:client:rx_errors > 0", &value), VERDICT_PASSED);
    assert_int_equal(judge("counter:server:rx_errors > 0", &value), VERDICT_UNKNOWN);
    assert_int_equal(judge("counter:rx_errors > 0", &value), VERDICT_UNKNOWN);
    assert_int_equal(judge("counter:rx_errors >= 0", &value), VERDICT_FAILED);
    assert_int_equal(judge("counter:rx_errors < 1", &value), VERDICT_UNKNOWN);
    assert_int_equal(judge("counter:rx_errors < 0", &value), VERDICT_PASSED);
    assert_int_equal(judge("counter:nothing > 0", &value), VERDICT_UNKNOWN);
    /* The sum of what is known is enough. */
    assert_int_equal(judge("counter:errors > 1", &value), VERDICT_FAILED);
    assert_true(value == 2);
    assert_int_equal(judge("counter:errors > 2", &value), VERDICT_UNKNOWN);
    assert_int_equal(judge("counter:client:errors > 2", &value), VERDICT_PASSED);
}

static void without_counters_nothing_can_be_told(void **state)
{
    static struct stats stats;
    struct result result = {.size = 8, .stats = &stats};
    struct condition c;
    double value;
    (void)state;
    assert_int_equal(condition_parse("counter:errors < 5", false, &c), 0);
    assert_int_equal(condition_judge(&c, &result, &value), VERDICT_UNKNOWN);
    assert_true(isnan(value));
}

static void a_condition_that_is_none_is_refused(void **state)
{
    static const char *const bad[] = {"counter > 0",          "counter: > 0",
                                      "counter:a/b > 0",      "counter:rx_errors > 5us",
                                      "counter:rx_errors",    "counter:middle:rx_errors > 0",
                                      "counter:rx errors > 0"};
    char text[128];
    struct condition c;
    (void)state;
    for (size_t i = 0; i < LENGTH(bad); i++)
        if (condition_parse(bad[i], true, &c) != -EINVAL)
            fail_msg("taken: %s", bad[i]);
    snprintf(text, sizeof text, "counter:%064d > 0", 0);
    assert_int_equal(condition_parse(text, true, &c), -EINVAL);
}

static void prints(const char *which, const char *wanted)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    assert_non_null(out);
    counters_print(&(struct counted){1, ends}, which, 8, out);
    fclose(out);
    assert_string_equal(text, wanted);
    free(text);
}

static void there_is_a_line_per_end(void **state)
{
    (void)state;
    prints("usual", "counters: size 8, client eth0: rx_bytes +100, tx_dropped +2, 1 unchanged\n"
                    "counters: size 8, server cxi0: rx_bytes +250, rx_errors n/a\n");
    prints("rx_bytes,rx_errors,tx_dropped",
           "counters: size 8, client eth0: rx_bytes +100, rx_errors +0, tx_dropped +2\n"
           "counters: size 8, server cxi0: rx_bytes +250, rx_errors n/a\n");
    ends[1] = (struct counters){.why = "fabric soft uses no network device"};
    ends[0].count = 0;
    add(0, "rx_errors", 0, true);
    prints("errors", "counters: size 8, client eth0: 1 unchanged\n"
                     "counters: size 8, server: n/a (fabric soft uses no network device)\n");
}

int main(void)
{
#define FILLED(test) cmocka_unit_test_setup(test, fill)
    const struct CMUnitTest tests[] = {
        FILLED(a_condition_takes_the_larger_end_or_the_named_one),
        FILLED(what_is_not_known_is_judged_only_if_it_cannot_matter),
        FILLED(without_counters_nothing_can_be_told),
        FILLED(a_condition_that_is_none_is_refused),
        FILLED(there_is_a_line_per_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
