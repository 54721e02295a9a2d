/* SPDX-License-Identifier: BSD-3-Clause */
/* What a server does at the word of a stranger, decided by names; and addresses that are compared.
 */
#include "fabric/choose.h"
#include "fabric/ip.h"
#include "support/unit.h"

#include <stdlib.h>

static void guarded_are_soft_null_and_libfabrics_tcp(void **state)
{
    (void)state;
    static const char *const guarded[] = {"soft",           "soft:cxi1", "null",
                                          "null:delay=1us", "ofi:tcp",   "ofi:tcp/eth0"};
    for (size_t i = 0; i < LENGTH(guarded); i++)
        if (!fabric_guarded(guarded[i]))
            fail_msg("%s is not guarded", guarded[i]);
}

static void the_names_of_the_guarded_are_listed(void **state)
{
    (void)state;
    char text[100], little[9];
    fabric_guarded_names(text, sizeof text);
    assert_string_equal(text, "soft, null, ofi:tcp");
    fabric_guarded_names(little, sizeof little);
    assert_string_equal(little, "soft, nu");
}

static void everything_else_is_not_guarded(void **state)
{
    (void)state;
    static const char *const open[] = {"uct",      "uct:tcp",   "uct:tcp/lo", "uct:posix/memory",
                                       "ofi",      "ofi:",      "ofi:shm",    "ofi:tcp;ofi_rxm",
                                       "ofi:TCP",  "OFI:tcp",   "ofi:tcp ",   "ofi: tcp",
                                       "ofi:tcp;", "ofi:tcp:x", "ofi:/tcp",   "ofi:tc",
                                       "ofi:tcpx", "corrupts",  "",           "corrupts:ofi:tcp",
                                       ":tcp",     "tcp",       "softer",     "sof:cxi0",
                                       "cxi",      "cxi:cxi0",  "ofi:cxi",    "ofi:cxi/cxi0"};
    for (size_t i = 0; i < LENGTH(open); i++)
        if (fabric_guarded(open[i]))
            fail_msg("\"%s\" is guarded", open[i]);
}

static void ours_are_those_in_the_list_and_no_other_module(void **state)
{
    (void)state;
    for (size_t i = 0; fabric_name(i); i++)
        assert_true(fabric_ours(fabric_name(i)));
    assert_true(fabric_ours("uct:tcp/lo"));
    assert_false(fabric_ours("corrupts:cxi0"));
    assert_false(fabric_ours("mpi_openmpi"));
    assert_false(fabric_ours("cxi0"));
    assert_false(fabric_ours(""));
}

static bool same(const char *a, const char *b)
{
    struct in6_addr one, two;
    return ip_parse(a, &one) && ip_parse(b, &two) && ip_same(&one, &two);
}

static void addresses_are_equal_in_both_forms(void **state)
{
    (void)state;
    assert_true(same("10.0.0.1", "10.0.0.1"));
    assert_true(same("10.0.0.1", "::ffff:10.0.0.1"));
    assert_true(same("fe80::1%eth0", "fe80::1"));
    assert_true(same("127.0.0.1", "::1"));
    assert_true(same("127.0.0.1", "127.0.0.2"));
    assert_false(same("10.0.0.1", "10.0.0.2"));
    assert_false(same("127.0.0.1", "10.0.0.1"));
    assert_false(same("::", "::1"));
    assert_false(same("0.0.0.0", "127.0.0.1"));
    assert_false(same("fd00::1", "fd00::2"));
    assert_false(same("", ""));
    assert_false(same("localhost", "localhost"));
}

static void an_interface_is_found_by_its_address(void **state)
{
    (void)state;
    char name[IF_NAMESIZE];
    ip_interface("127.0.0.1", name, sizeof name);
    assert_string_equal(name, "lo");
    ip_interface("::ffff:127.0.0.1", name, sizeof name);
    assert_string_equal(name, "lo");
    ip_interface("192.0.2.77", name, sizeof name);
    assert_string_equal(name, "");
}

static void an_interface_elsewhere_is_one_without_the_address(void **state)
{
    (void)state;
    char carrier[IF_NAMESIZE];
    assert_false(fabric_elsewhere("ofi:tcp/lo", "127.0.0.1", carrier, sizeof carrier));
    assert_false(fabric_elsewhere("ofi:tcp", "127.0.0.1", carrier, sizeof carrier));
    assert_false(fabric_elsewhere("uct:posix/memory", "127.0.0.1", carrier, sizeof carrier));
    assert_false(fabric_elsewhere("ofi:tcp/lo", "", carrier, sizeof carrier));
    assert_true(fabric_elsewhere("ofi:tcp/lo", "192.0.2.77", carrier, sizeof carrier));
    assert_string_equal(carrier, "");
}

/* ---- where neither end names one ---- */

static const char *between(const char *device, bool trusted)
{
    static char text[FABRIC_DEVICE_MAX];
    struct msg here, there;
    const char *why;
    assert_int_equal(msg_print(&here, ".host=a\n.network=1\n.uct=1\n.ofi=1\n.cxi=0\n"), 0);
    assert_int_equal(msg_print(&there, ".host=b\n.network=1\n.uct=1\n.ofi=1\n.cxi=0\n"), 0);
    assert_int_equal(fabric_between(&here, &there, device, trusted, text, sizeof text, &why), 0);
    assert_contains(why, "two machines");
    return text;
}

static void strangers_on_two_machines_meet_on_a_guarded_fabric(void **state)
{
    (void)state;
    assert_string_equal(between(NULL, false), "ofi:tcp");
    assert_string_equal(between("cxi0", false), "ofi:tcp");
    assert_string_equal(between("cxi0", true), "ofi:tcp");
    assert_string_equal(between(NULL, true), "uct:tcp");
    assert_true(fabric_guarded(between(NULL, false)));
}

static const char *between_nics(const char *mine, const char *theirs)
{
    static char text[FABRIC_DEVICE_MAX];
    struct msg here, there;
    const char *why;
    assert_int_equal(msg_print(&here, ".host=a\n.network=1\n.ofi=1\n.cxi=1\n%s", mine), 0);
    assert_int_equal(msg_print(&there, ".host=b\n.network=1\n.ofi=1\n.cxi=1\n%s", theirs), 0);
    assert_int_equal(fabric_between(&here, &there, "cxi1", false, text, sizeof text, &why), 0);
    assert_contains(why, "CXI device at both ends");
    assert_false(fabric_guarded(text));
    return text;
}

static void cxi_devices_meet_through_their_own_library_if_both_ends_have_it(void **state)
{
    (void)state;
    assert_string_equal(between_nics(".libcxi=1\n", ".libcxi=1\n"), "cxi:cxi1");
    assert_string_equal(between_nics(".libcxi=1\n", ".libcxi=0\n"), "ofi:cxi/cxi1");
    assert_string_equal(between_nics("", ".libcxi=1\n"), "ofi:cxi/cxi1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(guarded_are_soft_null_and_libfabrics_tcp),
        cmocka_unit_test(the_names_of_the_guarded_are_listed),
        cmocka_unit_test(everything_else_is_not_guarded),
        cmocka_unit_test(ours_are_those_in_the_list_and_no_other_module),
        cmocka_unit_test(addresses_are_equal_in_both_forms),
        cmocka_unit_test(an_interface_is_found_by_its_address),
        cmocka_unit_test(an_interface_elsewhere_is_one_without_the_address),
        cmocka_unit_test(strangers_on_two_machines_meet_on_a_guarded_fabric),
        cmocka_unit_test(cxi_devices_meet_through_their_own_library_if_both_ends_have_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
