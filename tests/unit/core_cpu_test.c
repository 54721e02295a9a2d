/* SPDX-License-Identifier: BSD-3-Clause */
/* Which CPUs the two ends of a run use, and whether they share one. */
#include "core/cpu.h"
#include "support/machine_files.h"
#include "support/unit.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>

static void two_ends_share_a_cpu_only_on_one_machine_and_one_cpu(void **state)
{
    static const struct {
        const char *mine, *theirs;
        bool shared, roams;
    } cases[] = {{"host=a\ncpu=1\n", "host=a\ncpu=1\n", true, false},
                 {"host=a\ncpu=1\n", "host=a\ncpu=2\n", false, false},
                 {"host=a\ncpu=1\n", "host=a\ncpu=11\n", false, false},
                 {"host=a\ncpu=1\n", "host=b\ncpu=1\n", false, false},
                 {"host=a\ncpu=many\n", "host=a\ncpu=many\n", false, true},
                 {"host=a\ncpu=many\n", "host=a\ncpu=1\n", false, true},
                 {"host=a\ncpu=1\n", "host=a\ncpu=many\n", false, true},
                 {"host=a\ncpu=many\n", "host=b\ncpu=many\n", false, false},
                 {"host=a\ncpu=1\n", "cpu=1\n", false, false},
                 {"host=a\ncpu=1\n", "host=a\n", false, false},
                 {"host=a\ncpu=1\n", "", false, false},
                 {"", "", false, false}};
    (void)state;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct msg mine, theirs;
        msg_print(&mine, "%s", cases[i].mine);
        msg_print(&theirs, "%s", cases[i].theirs);
        if (cpu_shared(&mine, &theirs) != cases[i].shared)
            fail_msg("case %zu", i);
        if (cpu_roams(&mine, &theirs) != cases[i].roams)
            fail_msg("case %zu: free to meet", i);
    }
}

/* What a thread of its own finds: pinning must not reach the tests that follow. */
struct place {
    int64_t cpu, pair[2];
    int pinned, found;
    struct msg text;
};

static void *look_around(void *arg)
{
    struct place *place = arg;
    if (place->cpu >= 0)
        place->pinned = cpu_pin(place->cpu);
    place->found = cpu_pair(place->pair);
    cpu_describe(&place->text);
    return NULL;
}

static void look_from(struct place *place, int64_t cpu)
{
    pthread_t thread;
    *place = (struct place){.cpu = cpu, .pair = {-1, -1}};
    assert_int_equal(pthread_create(&thread, NULL, look_around, place), 0);
    pthread_join(thread, NULL);
}

static void the_pair_is_two_cpus_where_there_are_two(void **state)
{
    struct place place;
    cpu_set_t allowed;
    (void)state;
    CPU_ZERO(&allowed);
    assert_int_equal(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    look_from(&place, -1);
    assert_int_equal(place.found, CPU_COUNT(&allowed));
    assert_true(CPU_ISSET((size_t)place.pair[0], &allowed));
    assert_true(CPU_ISSET((size_t)place.pair[1], &allowed));
    assert_int_equal(place.pair[0] != place.pair[1], place.found > 1);
}

static void a_pinned_thread_has_one_cpu_and_says_which(void **state)
{
    struct place free_place, first, second;
    char expected[32];
    (void)state;
    look_from(&free_place, -1);
    look_from(&first, free_place.pair[0]);
    assert_int_equal(first.pinned, 0);
    assert_int_equal(first.found, 1);
    assert_int_equal(first.pair[0], free_place.pair[0]);
    assert_int_equal(first.pair[1], free_place.pair[0]);
    snprintf(expected, sizeof expected, "\ncpu=%d\n", (int)free_place.pair[0]);
    assert_contains(first.text.bytes, expected);
    assert_true(cpu_shared(&first.text, &first.text));
    if (free_place.found == 1)
        skip();
    assert_contains(free_place.text.bytes, "\ncpu=many\n");
    look_from(&second, free_place.pair[1]);
    assert_false(cpu_shared(&first.text, &second.text));
    assert_false(cpu_shared(&first.text, &free_place.text));
}

static void pinning_to_a_cpu_that_is_not_there_is_refused(void **state)
{
    struct place place;
    char expected[32];
    (void)state;
    look_from(&place, CPU_SETSIZE);
    assert_int_equal(place.pinned, -ENODEV);
    assert_int_equal(cpu_pin(65535), -ENODEV);
    snprintf(expected, sizeof expected, "CPU %d: ", 65535);
    assert_contains(fail_reason(), expected);
    assert_contains(fail_reason(), "no such CPU");
}

static void put_nic(const char *folder, const char *node, const char *cpus)
{
    char path[128];
    snprintf(path, sizeof path, "%s/device/numa_node", folder);
    put(path, node);
    snprintf(path, sizeof path, "%s/device/local_cpulist", folder);
    put(path, cpus);
}

static void the_cpus_near_a_nic_are_those_of_its_node(void **state)
{
    char list[64];
    (void)state;
    put_nic("/sys/class/cxi/cxi0", "1\n", "2-3,6-7\n");
    put_nic("/sys/class/infiniband/mlx5_0", "0\n", "0-1,4-5\n");
    put_nic("/sys/class/net/eth0", "0\n", "0-1\n");
    put_nic("/sys/class/net/eth1", "-1\n", "0-7\n");
    assert_true(cpu_near(root, "cxi0", list, sizeof list));
    assert_string_equal(list, "2-3,6-7");
    assert_true(cpu_near(root, "mlx5_0", list, sizeof list));
    assert_string_equal(list, "0-1,4-5");
    assert_true(cpu_near(root, "eth0", list, sizeof list));
    assert_string_equal(list, "0-1");
    /* A machine of one node says -1; what is not there, and what is no name, has none. */
    assert_false(cpu_near(root, "eth1", list, sizeof list));
    assert_false(cpu_near(root, "cxi1", list, sizeof list));
    assert_false(cpu_near(root, "", list, sizeof list));
    assert_false(cpu_near(root, "../cxi/cxi0", list, sizeof list));
    assert_false(cpu_near(root, "..", list, sizeof list));
}

static void choices_are_allowed_cpus_one_thread_of_each_core_first(void **state)
{
    cpu_set_t allowed;
    int64_t cpus[CPU_CHOICES];
    char siblings[32], list[32];
    unsigned first = 0;
    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    while (!CPU_ISSET(first, &allowed))
        first++;
    /* Without files every CPU is a core of its own. */
    size_t count = cpu_choices(root, NULL, cpus, LENGTH(cpus));
    assert_int_equal(count, CPU_COUNT(&allowed));
    assert_int_equal(cpus[0], first);
    assert_int_equal(cpu_choices(root, NULL, cpus, 1), 1);
    snprintf(list, sizeof list, "%u,1023", first);
    assert_int_equal(cpu_choices(root, list, cpus, LENGTH(cpus)), 1);
    assert_int_equal(cpus[0], first);
    assert_int_equal(cpu_choices(root, "1023", cpus, LENGTH(cpus)), 0);
    if (count == 1)
        skip();
    /* The first CPU is a second thread: of all, it comes last. */
    snprintf(siblings, sizeof siblings, "%u,%u\n", 1023U, first);
    put_for_cpu((int)first, "topology/thread_siblings_list", siblings);
    assert_int_equal(cpu_choices(root, NULL, cpus, LENGTH(cpus)), count);
    assert_int_equal(cpus[count - 1], first);
}

static void a_list_has_its_cpus_in_the_order_typed(void **state)
{
    static const struct {
        const char *typed, *whole;
    } lists[] = {{"0", "0"},       {"3,1", "3,1"}, {"0,2-4", "0,2,3,4"}, {"7-7", "7"},
                 {"near", "near"}, {"1,1", "1,1"}, {"65535", "65535"}};
    struct cpu_list list;
    char text[64];
    (void)state;
    for (size_t i = 0; i < LENGTH(lists); i++) {
        assert_int_equal(cpu_list_parse(&list, lists[i].typed, "--cpu"), 0);
        cpu_list_text(&list, text, sizeof text);
        assert_string_equal(text, lists[i].whole);
        assert_int_equal(list.near, strcmp(lists[i].typed, "near") == 0);
    }
}

static void what_is_no_list_of_cpus_is_refused(void **state)
{
    static const char *const wrong[] = {
        "",    ",",      "0,",     ",0",    "3-1", "0-",    "-1",
        "0 1", "near,0", "0-1024", "65536", "0x1", "1-2-3", "99999999999999999999999"};
    struct cpu_list list;
    (void)state;
    for (size_t i = 0; i < LENGTH(wrong); i++) {
        assert_int_equal(cpu_list_parse(&list, wrong[i], "--cpu"), -EINVAL);
        assert_contains(fail_reason(), "--cpu \"");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_ends_share_a_cpu_only_on_one_machine_and_one_cpu),
        cmocka_unit_test(the_pair_is_two_cpus_where_there_are_two),
        cmocka_unit_test(a_pinned_thread_has_one_cpu_and_says_which),
        cmocka_unit_test(pinning_to_a_cpu_that_is_not_there_is_refused),
        cmocka_unit_test(a_list_has_its_cpus_in_the_order_typed),
        cmocka_unit_test(what_is_no_list_of_cpus_is_refused),
        ON_FILES(the_cpus_near_a_nic_are_those_of_its_node),
        ON_FILES(choices_are_allowed_cpus_one_thread_of_each_core_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
