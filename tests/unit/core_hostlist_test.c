/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of hosts, as Slurm writes them and as people type them. */
#include "core/core.h"
#include "support/unit.h"

#include <errno.h>
#include <stdio.h>

static void names_are_those_of_ranges_and_single_hosts(void **state)
{
    static const struct {
        const char *list, *names;
    } cases[] = {{"n0", "n0 "},           {"n0,n1", "n0 n1 "},
                 {"n[0-2]", "n0 n1 n2 "}, {"n[08-10,12],other", "n08 n09 n10 n12 other "},
                 {"a[1]b,c", "a1b c "},   {"x[3-3]-ib,y[01-02]", "x3-ib y01 y02 "}};
    (void)state;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        char all[200] = "", name[64];
        uint32_t count = 0;
        assert_int_equal(hostlist_count(cases[i].list, 100, &count), 0);
        for (uint32_t n = 0; n < count; n++) {
            assert_int_equal(hostlist_name(cases[i].list, n, name, sizeof name), 0);
            size_t used = strlen(all);
            snprintf(all + used, sizeof all - used, "%s ", name);
        }
        assert_string_equal(all, cases[i].names);
        assert_int_equal(hostlist_name(cases[i].list, count, name, sizeof name), -ENOENT);
    }
}

static void what_is_no_list_is_refused(void **state)
{
    static const char *const lists[] = {
        "",         ",",    "n[",   "n]",    "n[]",      "n[1-]", "n[-1]",  "n[2-1]",
        "n[1]x[2]", "n,,m", "n[a]", "n[1,]", "n[1-2-3]", "n,",    "n[[1]]", "n[9999999999]"};
    (void)state;
    for (size_t i = 0; i < LENGTH(lists); i++) {
        uint32_t count = 0;
        if (hostlist_count(lists[i], 100, &count) != -EINVAL)
            fail_msg("\"%s\" is taken for %u hosts", lists[i], count);
    }
}

static void a_list_that_is_too_long_is_refused_without_listing_it(void **state)
{
    uint32_t count = 0;
    char name[8];
    (void)state;
    assert_int_equal(hostlist_count("n[0-999999999]", 1000, &count), -EINVAL);
    assert_contains(fail_reason(), "more than 1000 hosts");
    assert_int_equal(hostlist_name("averylongname", 0, name, sizeof name), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_those_of_ranges_and_single_hosts),
        cmocka_unit_test(what_is_no_list_is_refused),
        cmocka_unit_test(a_list_that_is_too_long_is_refused_without_listing_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
