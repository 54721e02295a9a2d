/* SPDX-License-Identifier: BSD-3-Clause */
/* Choosing a fabric, and loading one. WEFT_MODULE_PATH names the folder of the test modules. */
#include "fabric/fabric.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#undef fail /* ours, not cmocka's */

static void a_bare_device_is_found_on_soft(void **state)
{
    (void)state;
    struct fabric_choice choice;
    assert_int_equal(fabric_choose("cxi2", &choice), 0);
    assert_ptr_equal(choice.ops, &fabric_soft);
    assert_string_equal(choice.device, "cxi2");
    assert_false(choice.named);
}

static void a_prefix_that_names_a_fabric_chooses_it(void **state)
{
    (void)state;
    struct fabric_choice choice;
    assert_int_equal(fabric_choose("null:delay=2us", &choice), 0);
    assert_ptr_equal(choice.ops, &fabric_null);
    assert_string_equal(choice.device, "delay=2us");
    assert_true(choice.named);
    assert_int_equal(fabric_choose("soft", &choice), 0);
    assert_string_equal(choice.device, "");
}

static void what_is_no_fabric_and_no_device_is_refused_with_a_list(void **state)
{
    (void)state;
    static const char *const bad[] = {"cxi99", "nosuch:x", "foo", "mlx5_1:1", ":", "", "../evil:x"};
    for (size_t i = 0; i < LENGTH(bad); i++) {
        struct fabric_choice choice;
        assert_int_equal(fabric_choose(bad[i], &choice), -ENODEV);
        assert_non_null(strstr(fail_reason(), "cxi0"));
        assert_non_null(strstr(fail_reason(), "null"));
    }
}

static void a_module_is_loaded_by_name_and_only_once(void **state)
{
    (void)state;
    struct fabric_choice choice;
    assert_int_equal(fabric_choose("flip:cxi0", &choice), 0);
    assert_string_equal(choice.ops->name, "flip");
    assert_ptr_equal(fabric_find("flip"), choice.ops);
}

static void a_module_of_another_version_is_refused(void **state)
{
    (void)state;
    struct fabric_choice choice;
    assert_int_equal(fabric_choose("stale:x", &choice), -ENODEV);
    assert_non_null(strstr(fail_reason(), "version"));
}

static void a_fabric_that_is_nowhere_says_what_was_looked_for(void **state)
{
    (void)state;
    assert_null(fabric_find("nowhere"));
    assert_non_null(strstr(fail_reason(), "weft-nowhere.so"));
}

static void mine(int number)
{
    (void)number;
}

static void loading_keeps_signal_handlers(void **state)
{
    (void)state;
    struct sigaction action = {.sa_handler = mine}, now;
    assert_int_equal(sigaction(SIGTERM, &action, NULL), 0);
    assert_non_null(fabric_find("flip"));
    assert_int_equal(sigaction(SIGTERM, NULL, &now), 0);
    assert_ptr_equal(now.sa_handler, mine);
    signal(SIGTERM, SIG_DFL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bare_device_is_found_on_soft),
        cmocka_unit_test(a_prefix_that_names_a_fabric_chooses_it),
        cmocka_unit_test(what_is_no_fabric_and_no_device_is_refused_with_a_list),
        cmocka_unit_test(a_module_is_loaded_by_name_and_only_once),
        cmocka_unit_test(a_module_of_another_version_is_refused),
        cmocka_unit_test(a_fabric_that_is_nowhere_says_what_was_looked_for),
        cmocka_unit_test(loading_keeps_signal_handlers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
