/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters of network devices, on machines that are made of files. */
#include "core/counters.h"
#include "support/machine_files.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static struct counters before, now;

static void read_now(const char *device, const char *which)
{
    counters_read(&now, root, device, which);
}

/* Its value; it must be known. */
static uint64_t value(const char *name)
{
    const struct counter *c = counters_find(&now, name);
    if (!c || !c->known)
        fail_msg("%s is not known", name);
    return c ? c->value : 0;
}

static void is_unknown(const char *name)
{
    const struct counter *c = counters_find(&now, name);
    if (!c || c->known)
        fail_msg("%s is %s", name, c ? "known" : "not there");
}

static void put_statistic(const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "/sys/class/net/eth0/statistics/%s", name);
    put(path, text);
}

static void an_interface_has_all_its_statistics(void **state)
{
    (void)state;
    put_statistic("rx_bytes", "1000\n");
    put_statistic("rx_errors", "3\n");
    put_statistic("tx_dropped", "18446744073709551615\n");
    read_now("eth0", COUNTERS_USUAL);
    assert_string_equal(now.device, "eth0");
    assert_string_equal(now.why, "");
    assert_int_equal(now.count, 3);
    assert_int_equal(value("rx_bytes"), 1000);
    assert_true(value("tx_dropped") == UINT64_MAX);
    read_now("eth0", COUNTERS_ERRORS);
    assert_int_equal(now.count, 2);
    assert_null(counters_find(&now, "rx_bytes"));
    read_now("eth0", "rx_errors,nothing");
    assert_int_equal(now.count, 2);
    assert_int_equal(value("rx_errors"), 3);
    is_unknown("nothing");
}

/* The file has the time, too. */
static void of_cxi_the_usual_ones_are_read(void **state)
{
    (void)state;
    put("/sys/class/cxi/cxi0/device/telemetry/hni_sts_rx_ok_octets", "77@1700000000.000000001\n");
    put("/sys/class/cxi/cxi0/device/telemetry/pct_spt_timeouts", "2@1700000000.000000001\n");
    put("/sys/class/cxi/cxi0/device/telemetry/atu_cache_evictions", "9@1700000000.000000001\n");
    put("/sys/class/net/cxi0/statistics/rx_bytes", "1\n");
    read_now("cxi0", COUNTERS_USUAL);
    assert_int_equal(value("hni_sts_rx_ok_octets"), 77);
    assert_int_equal(value("pct_spt_timeouts"), 2);
    assert_int_equal(now.count, 2);
    assert_null(counters_find(&now, "atu_cache_evictions"));
    assert_null(counters_find(&now, "rx_bytes"));
    read_now("cxi0", COUNTERS_ERRORS);
    assert_null(counters_find(&now, "hni_sts_rx_ok_octets"));
    assert_int_equal(value("pct_spt_timeouts"), 2);
    read_now("cxi0", "atu_cache_evictions");
    assert_int_equal(value("atu_cache_evictions"), 9);
}

static void a_port_of_infiniband_has_both_kinds(void **state)
{
    (void)state;
    put("/sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_data", "10\n");
    put("/sys/class/infiniband/mlx5_0/ports/1/hw_counters/out_of_sequence", "4\n");
    put("/sys/class/infiniband/mlx5_0/ports/1/hw_counters/lifespan", "1\n");
    const char *const names[] = {"mlx5_0:1", "mlx5_0", "mlx5_0-dgram"};
    for (size_t i = 0; i < LENGTH(names); i++) {
        read_now(names[i], COUNTERS_USUAL);
        assert_int_equal(now.count, 2);
        assert_int_equal(value("port_rcv_data"), 10);
        assert_int_equal(value("out_of_sequence"), 4);
    }
    read_now("mlx5_0:2", COUNTERS_USUAL);
    assert_string_equal(now.why, "mlx5_0:2 has no counters in /sys/class");
    /* Which of two, nobody said. */
    put("/sys/class/infiniband/mlx5_0/ports/2/counters/port_rcv_data", "11\n");
    read_now("mlx5_0", COUNTERS_USUAL);
    assert_int_equal(now.count, 0);
    read_now("mlx5_0:2", COUNTERS_USUAL);
    assert_int_equal(value("port_rcv_data"), 11);
}

static void a_device_without_counters_has_a_reason(void **state)
{
    static const char *const names[] = {"",  "memory",    "../eth0", "eth0/..",
                                        ".", "mlx5_0:..", "a b",     "a\nb"};
    (void)state;
    put_statistic("rx_bytes", "1\n");
    put("/sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
    put("/sys/class/infiniband/mlx5_0/counters/beside", "1\n");
    for (size_t i = 0; i < LENGTH(names); i++) {
        read_now(names[i], COUNTERS_USUAL);
        assert_int_equal(now.count, 0);
        assert_true(*now.why);
    }
    read_now("eth0", COUNTERS_ERRORS);
    assert_int_equal(now.count, 0);
    assert_string_equal(now.why, "eth0 has no such counters");
}

static void what_went_back_is_unknown_and_never_negative(void **state)
{
    (void)state;
    put_statistic("rx_bytes", "1000\n");
    put_statistic("rx_errors", "3\n");
    put_statistic("rx_packets", "5\n");
    put_statistic("tx_packets", "5\n");
    counters_read(&before, root, "eth0", COUNTERS_USUAL);
    put_statistic("rx_bytes", "1500\n");
    put_statistic("rx_errors", "2\n");
    put_statistic("rx_packets", "none\n");
    put_statistic("tx_bytes", "7\n");
    read_now("eth0", COUNTERS_USUAL);
    counters_since(&now, &before);
    assert_int_equal(value("rx_bytes"), 500);
    assert_int_equal(value("tx_packets"), 0);
    is_unknown("rx_errors");
    is_unknown("rx_packets");
    is_unknown("tx_bytes");
}

/* It would read 0, whatever happened. */
static void what_stays_at_its_highest_value_is_unknown(void **state)
{
    (void)state;
    put("/sys/class/infiniband/mlx5_0/ports/1/counters/symbol_error", "65535\n");
    put("/sys/class/infiniband/mlx5_0/ports/1/counters/link_downed", "254\n");
    put("/sys/class/infiniband/mlx5_0/ports/1/counters/port_rcv_data", "65535\n");
    counters_read(&before, root, "mlx5_0", COUNTERS_USUAL);
    put("/sys/class/infiniband/mlx5_0/ports/1/counters/link_downed", "255\n");
    read_now("mlx5_0", COUNTERS_USUAL);
    counters_since(&now, &before);
    is_unknown("symbol_error");
    assert_int_equal(value("link_downed"), 1);
    assert_int_equal(value("port_rcv_data"), 0);
}

static void more_than_there_is_room_for_are_left_out(void **state)
{
    (void)state;
    for (int i = 0; i < COUNTERS_MOST + 10; i++) {
        char name[32];
        snprintf(name, sizeof name, "c%d", i);
        put_statistic(name, "1\n");
    }
    put_statistic("a-name-that-is-none", "1\n");
    read_now("eth0", COUNTERS_USUAL);
    assert_int_equal(now.count, COUNTERS_MOST);
    assert_null(counters_find(&now, "a-name-that-is-none"));
}

static void errors_are_known_by_their_names(void **state)
{
    static const char *const errors[] = {"rx_crc_errors",
                                         "tx_dropped",
                                         "collisions",
                                         "port_xmit_discards",
                                         "VL15_dropped",
                                         "link_downed",
                                         "local_ack_timeout_err",
                                         "rnr_nak_retry_err",
                                         "out_of_buffer",
                                         "hni_pcs_uncorrected_cw",
                                         "hni_llr_tx_replay_event",
                                         "atu_ats_trans_err"};
    static const char *const others[] = {"rx_bytes",          "tx_packets",
                                         "multicast",         "rx_nohandler",
                                         "port_xmit_wait",    "hni_pcs_corrected_cw",
                                         "hni_rx_paused_0",   "ee_deferred_eq_switch_cntr_0",
                                         "rx_write_requests", "hni_pcs_good_cw"};
    (void)state;
    for (size_t i = 0; i < LENGTH(errors); i++)
        if (!counter_is_error(errors[i]))
            fail_msg("%s is an error", errors[i]);
    for (size_t i = 0; i < LENGTH(others); i++)
        if (counter_is_error(others[i]))
            fail_msg("%s is no error", others[i]);
}

static void a_list_is_checked(void **state)
{
    static const char *const good[] = {"usual", "errors", "rx_bytes", "VL15_dropped,rx_bytes"};
    static const char *const bad[] = {"",    ",",    "a,",  ",a",  "a,,b",
                                      "a b", "../a", "a/b", "a=b", "a\n"};
    char longest[COUNTERS_WHICH + 1];
    (void)state;
    for (size_t i = 0; i < LENGTH(good); i++)
        assert_int_equal(counters_check(good[i]), 0);
    for (size_t i = 0; i < LENGTH(bad); i++)
        if (counters_check(bad[i]) != -EINVAL)
            fail_msg("\"%s\" is taken", bad[i]);
    memset(longest, 'a', COUNTERS_WHICH);
    longest[COUNTERS_WHICH] = '\0';
    assert_int_equal(counters_check(longest), -EINVAL);
    longest[COUNTER_NAME] = '\0';
    assert_int_equal(counters_check(longest), -EINVAL);
    longest[COUNTER_NAME - 1] = '\0';
    assert_int_equal(counters_check(longest), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_FILES(an_interface_has_all_its_statistics),
        ON_FILES(of_cxi_the_usual_ones_are_read),
        ON_FILES(a_port_of_infiniband_has_both_kinds),
        ON_FILES(a_device_without_counters_has_a_reason),
        ON_FILES(what_went_back_is_unknown_and_never_negative),
        ON_FILES(what_stays_at_its_highest_value_is_unknown),
        ON_FILES(more_than_there_is_room_for_are_left_out),
        cmocka_unit_test(errors_are_known_by_their_names),
        cmocka_unit_test(a_list_is_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
