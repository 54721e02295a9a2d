/* SPDX-License-Identifier: BSD-3-Clause */
/* What is read of a machine, on machines that are made of files. */
#include "core/machine.h"
#include "support/machine_files.h"

#include <stdio.h>
#include <string.h>

/* ---- reading ---- */

static void system_line_is_cut_and_cannot_talk_to_a_terminal(void **state)
{
    char text[8], word[64];
    (void)state;
    put("/long", "0123456789\n");
    assert_true(system_line(root, text, sizeof text, "/long"));
    assert_string_equal(text, "0123456");
    put_bytes("/rude", "a\033[2Jb\0c\x80 \n\nd", 13);
    assert_true(system_line(root, word, sizeof word, "/rude"));
    assert_string_equal(word, "a [2Jb c");
    put("/empty", "");
    assert_false(system_line(root, word, sizeof word, "/empty"));
    assert_false(system_line(root, word, sizeof word, "/absent"));
    assert_false(system_line(root, word, sizeof word, "%s", "/"));
    assert_string_equal(word, "");
}

static void system_value_is_that_of_the_whole_name(void **state)
{
    char text[32];
    (void)state;
    put("/file", "SwapTotalled: 7\nSwapTotal:     12 kB\nnr 5\nmodel name\t: X 1\nno\nlast=9");
    assert_true(system_value(root, "SwapTotal", text, sizeof text, "/file"));
    assert_string_equal(text, "12 kB");
    assert_true(system_value(root, "nr", text, sizeof text, "/file"));
    assert_string_equal(text, "5");
    assert_true(system_value(root, "model name", text, sizeof text, "/file"));
    assert_string_equal(text, "X 1");
    assert_true(system_value(root, "last", text, sizeof text, "/file"));
    assert_string_equal(text, "9");
    assert_false(system_value(root, "no", text, sizeof text, "/file"));
    assert_false(system_value(root, "Swap", text, sizeof text, "/file"));
}

static void system_number_takes_numbers_only(void **state)
{
    uint64_t number = 1;
    (void)state;
    put("/dec", "42\n");
    put("/hex", "0x10de\n");
    put("/minus", "-1\n");
    put("/max", "max\n");
    put("/huge", "99999999999999999999999999\n");
    assert_true(system_number(root, &number, "/dec"));
    assert_int_equal(number, 42);
    assert_true(system_number(root, &number, "/hex"));
    assert_int_equal(number, 0x10de);
    assert_false(system_number(root, &number, "/minus"));
    assert_false(system_number(root, &number, "/max"));
    assert_false(system_number(root, &number, "/huge"));
}

static void lists_of_cpus_are_counted_and_searched(void **state)
{
    (void)state;
    assert_int_equal(cpus_count("0-3,8,10-11"), 7);
    assert_int_equal(cpus_count(""), 0);
    assert_int_equal(cpus_count("junk"), 0);
    assert_int_equal(cpus_count("5-"), 1);
    assert_int_equal(cpus_count("9-3"), 0);
    assert_true(cpus_count("0-99999999999999999999") <= CPUS_MOST + 1);
    assert_true(cpus_has("0-3,8", 8));
    assert_false(cpus_has("0-3,8", 7));
}

static void seen_groups(void *arg, const char *folder, bool unified)
{
    char *text = arg;
    size_t used = strlen(text);
    snprintf(text + used, 512 - used, "%s%s;", unified ? "*" : "", folder);
}

static void groups_are_visited_from_the_own_to_the_topmost(void **state)
{
    char text[512] = "";
    (void)state;
    put("/proc/self/cgroup", "4:memory:/a/b\n5:cp:/no\n2:cpu,cpuacct:/c\n1:cpuset:/x\n0::/u/v\n");
    system_groups(root, "cpu", seen_groups, text);
    assert_string_equal(text, "/sys/fs/cgroup/cpu/c;/sys/fs/cgroup/cpu;"
                              "*/sys/fs/cgroup/u/v;*/sys/fs/cgroup/u;*/sys/fs/cgroup;");
    text[0] = '\0';
    put("/proc/self/cgroup", "0::/\n7:\nx\n:::\n");
    system_groups(root, "cpu", seen_groups, text);
    assert_string_equal(text, "*/sys/fs/cgroup;");
}

/* ---- machines ---- */

static void an_arm_machine_says_which_cpu_it_has(void **state)
{
    struct machine machine;
    (void)state;
    put("/proc/cpuinfo", "processor\t: 0\nBogoMIPS\t: 50.00\nFeatures\t: fp asimd\n"
                         "CPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x3\n"
                         "CPU part\t: 0xd0c\nCPU revision\t: 1\n");
    machine_look(&machine, root);
    assert_string_equal(machine.cpu, "Arm Neoverse N1");
    assert_string_equal(machine.hypervisor, "");
    put("/proc/cpuinfo", "CPU implementer\t: 0x99\nCPU part\t: 0x123\n");
    put("/sys/firmware/devicetree/base/hypervisor/compatible", "linux,kvm");
    machine_look(&machine, root);
    assert_string_equal(machine.cpu, "implementer 0x99 part 0x123");
    assert_string_equal(machine.hypervisor, "linux,kvm");
}

static void a_hypervisor_and_a_container_are_seen(void **state)
{
    struct machine machine;
    (void)state;
    put("/proc/cpuinfo", "model name\t: X\nflags\t\t: fpu hypervisor lahf\n");
    machine_look(&machine, root);
    assert_string_equal(machine.hypervisor, "unknown");
    put("/sys/class/dmi/id/sys_vendor", "QEMU\n");
    put("/.dockerenv", "");
    put("/proc/meminfo", "MemTotal:       1024 kB\n");
    machine_look(&machine, root);
    assert_string_equal(machine.hypervisor, "QEMU");
    assert_string_equal(machine.container, "Docker");
    assert_int_equal(machine.memory, 1 << 20);
    put("/proc/cpuinfo", "model name\t: X\nflags\t\t: fpu lahf\n");
    machine_look(&machine, root);
    assert_string_equal(machine.hypervisor, "");
}

static void sockets_cores_nodes_and_caches_are_counted(void **state)
{
    struct topology topology;
    struct cache caches[8];
    (void)state;
    put_eight_cpus();
    topology_look(&topology, root);
    assert_int_equal(topology.cpus, 8);
    assert_int_equal(topology.sockets, 2);
    assert_int_equal(topology.cores, 4);
    assert_int_equal(topology.nodes, 2);
    assert_int_equal(caches_look(caches, LENGTH(caches), root), 2);
    assert_string_equal(caches[0].name, "L1d");
    assert_int_equal(caches[0].count, 4);
    assert_string_equal(caches[1].name, "L3");
    assert_string_equal(caches[1].size, "16384K");
    assert_string_equal(caches[1].shared, "0-1,4-5");
    assert_int_equal(caches[1].count, 2);
    assert_int_equal(caches_look(caches, 1, root), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_FILES(system_line_is_cut_and_cannot_talk_to_a_terminal),
        ON_FILES(system_value_is_that_of_the_whole_name),
        ON_FILES(system_number_takes_numbers_only),
        cmocka_unit_test(lists_of_cpus_are_counted_and_searched),
        ON_FILES(groups_are_visited_from_the_own_to_the_topmost),
        ON_FILES(an_arm_machine_says_which_cpu_it_has),
        ON_FILES(a_hypervisor_and_a_container_are_seen),
        ON_FILES(sockets_cores_nodes_and_caches_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
