/* SPDX-License-Identifier: BSD-3-Clause */
/* The devices and CPUs of several pairs. */
#include "support/unit.h"
#include "tool/cpus.h"
#include "tool/place.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

static void commas_separate_devices_and_not_settings(void **state)
{
    static const struct {
        const char *text;
        unsigned count;
        const char *devices[3];
    } cases[] = {
        {"cxi0", 1, {"cxi0"}},
        {"cxi0,cxi1", 2, {"cxi0", "cxi1"}},
        {"soft:cxi0,ofi:tcp/eth0,uct:tcp", 3, {"soft:cxi0", "ofi:tcp/eth0", "uct:tcp"}},
        {"null:delay=1ms,jitter=1us", 1, {"null:delay=1ms,jitter=1us"}},
        {"null:delay=1ms,jitter=1us,null:delay=2ms",
         2,
         {"null:delay=1ms,jitter=1us", "null:delay=2ms"}},
        {"cxi0,null:delay=2ms,jitter=1us,cxi1", 3, {"cxi0", "null:delay=2ms,jitter=1us", "cxi1"}}};
    (void)state;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        char device[FABRIC_DEVICE_MAX];
        unsigned count;
        assert_int_equal(place_devices(cases[i].text, &count), 0);
        assert_int_equal(count, cases[i].count);
        for (unsigned k = 0; k < count; k++) {
            place_device(cases[i].text, k, device);
            assert_string_equal(device, cases[i].devices[k]);
        }
    }
}

static void a_device_without_a_name_or_with_too_long_a_one_is_refused(void **state)
{
    char text[2 * FABRIC_DEVICE_MAX] = "cxi0,";
    unsigned count;
    (void)state;
    assert_int_equal(place_devices("cxi0,", &count), -EINVAL);
    assert_int_equal(place_devices(",cxi0", &count), -EINVAL);
    assert_int_equal(place_devices("cxi0,,cxi1", &count), -EINVAL);
    assert_contains(fail_reason(), "empty name");
    memset(text + 5, 'd', FABRIC_DEVICE_MAX - 1);
    assert_int_equal(place_devices(text, &count), 0);
    text[5 + FABRIC_DEVICE_MAX - 1] = 'd';
    assert_int_equal(place_devices(text, &count), -EINVAL);
    assert_contains(fail_reason(), "too long");
}

static void pairs_follow_each_other_from_the_first_cpu_on(void **state)
{
    struct place place;
    cpu_set_t allowed;
    size_t count;
    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    count = (size_t)CPU_COUNT(&allowed);
    place_open(&place, (int64_t[]){-1, -1}, "soft:cxi0", 2, false);
    assert_int_equal(place_cpu(&place, 0), -1);
    place_open(&place, (int64_t[]){-1, -1}, "soft:cxi0", 2, true);
    int64_t first = place_cpu(&place, 0), last = place_cpu(&place, (unsigned)count - 1);
    assert_true(CPU_ISSET((size_t)first, &allowed));
    assert_int_equal(place_cpu(&place, (unsigned)count), first);
    assert_int_equal(place_server(&place, (int64_t[]){-1, -1}, 2),
                     place_cpu(&place, count >= 4 ? 2 : 1));
    assert_int_equal(place_server(&place, (int64_t[]){0, 7}, 2), 7);
    place_open(&place, (int64_t[]){last, -1}, "soft:cxi0", 2, false);
    assert_int_equal(place_cpu(&place, 0), last);
    assert_int_equal(place_cpu(&place, 1), first);
    /* One that is not there is refused when it is pinned. */
    place_open(&place, (int64_t[]){60000, -1}, "soft:cxi0", 2, false);
    assert_int_equal(place_cpu(&place, 0), 60000);
    assert_string_equal(place.near, "");
}

static void lists_of_threads_are_split_between_the_ends(void **state)
{
    static const struct {
        const char *typed;
        bool local;
        unsigned threads;
        const char *whole;
    } lists[] = {
        {"2,3", false, 2, "2,3"},    {"2-5", true, 2, "2,3/4,5"},    {"1,0", true, 1, "1,0"},
        {"1/4,5", true, 2, "1/4,5"}, {"near", true, 3, "near/near"}, {"near/7", true, 1, "near/7"},
        {"", false, 4, ""}};
    struct cpus cpus;
    char text[CPUS_TEXT];
    (void)state;
    for (size_t i = 0; i < LENGTH(lists); i++) {
        assert_int_equal(cpus_read(&cpus, lists[i].typed, lists[i].local, lists[i].threads), 0);
        cpus_text(&cpus, text);
        assert_string_equal(text, lists[i].whole);
    }
    assert_int_equal(cpus_read(&cpus, "0/1", false, 1), -EINVAL);
    assert_contains(fail_reason(), "a second list is for the server that --local starts");
}

/* Nobody's CPU is another's, or all run anywhere. */
static void cpus_left_open_are_chosen_if_there_are_enough(void **state)
{
    struct cpus cpus;
    cpu_set_t allowed;
    (void)state;
    CPU_ZERO(&allowed);
    assert_int_equal(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    for (unsigned threads = 2; threads < 40; threads += 7) {
        bool enough = 2 * threads <= (unsigned)CPU_COUNT(&allowed);
        assert_int_equal(cpus_read(&cpus, "", true, threads), 0);
        for (int end = 0; end < 2; end++)
            assert_int_equal(cpus.ends[end].count, enough ? threads : 0);
        for (size_t i = 0; i < cpus.ends[0].count; i++)
            for (size_t k = 0; k < cpus.ends[1].count; k++)
                assert_int_not_equal(cpus.ends[0].cpus[i], cpus.ends[1].cpus[k]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commas_separate_devices_and_not_settings),
        cmocka_unit_test(a_device_without_a_name_or_with_too_long_a_one_is_refused),
        cmocka_unit_test(pairs_follow_each_other_from_the_first_cpu_on),
        cmocka_unit_test(lists_of_threads_are_split_between_the_ends),
        cmocka_unit_test(cpus_left_open_are_chosen_if_there_are_enough),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
