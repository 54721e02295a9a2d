/* SPDX-License-Identifier: BSD-3-Clause */
/* weft info on machines that are made of files: a folder stands for the root of each. */
#include "core/clock.h"
#include "core/machine.h"
#include "tool/child.h"
#include "tool/info.h"
#include "tool/probe.h"

#include <errno.h>
#include <ftw.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#undef fail /* ours, not cmocka's */

static char root[64];

/* ---- a machine made of files ---- */

static int begin(void **state)
{
    (void)state;
    strcpy(root, "/tmp/weft-test-XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st, (void)flag, (void)ftw;
    return remove(path);
}

static int end(void **state)
{
    (void)state;
    return nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void put_bytes(const char *path, const void *bytes, size_t length)
{
    char full[512];
    snprintf(full, sizeof full, "%s%s", root, path);
    for (char *at = full + strlen(root) + 1; (at = strchr(at, '/')); at++) {
        *at = '\0';
        mkdir(full, 0777);
        *at = '/';
    }
    FILE *file = fopen(full, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    fclose(file);
}

static void put(const char *path, const char *text)
{
    put_bytes(path, text, strlen(text));
}

static void put_for_cpu(int cpu, const char *file, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/%s", cpu, file);
    put(path, text);
}

/* Two sockets of two cores of two threads: 0 and 4 are one core. */
static void put_eight_cpus(void)
{
    static const char *const siblings[] = {"0,4\n", "1,5\n", "2,6\n", "3,7\n"};
    put("/sys/devices/system/cpu/online", "0-7\n");
    put("/sys/devices/system/node/online", "0-1\n");
    put("/sys/devices/system/node/node0/cpulist", "0-1,4-5\n");
    put("/sys/devices/system/node/node1/cpulist", "2-3,6-7\n");
    for (int cpu = 0; cpu < 8; cpu++) {
        bool second = cpu % 4 >= 2;
        const char *socket = second ? "2-3,6-7\n" : "0-1,4-5\n";
        put_for_cpu(cpu, "topology/thread_siblings_list", siblings[cpu % 4]);
        put_for_cpu(cpu, "topology/core_siblings_list", socket);
        put_for_cpu(cpu, "topology/physical_package_id", second ? "1\n" : "0\n");
        put_for_cpu(cpu, "cache/index0/level", "1\n");
        put_for_cpu(cpu, "cache/index0/type", "Data\n");
        put_for_cpu(cpu, "cache/index0/size", "32K\n");
        put_for_cpu(cpu, "cache/index0/shared_cpu_list", siblings[cpu % 4]);
        put_for_cpu(cpu, "cache/index1/level", "1\n");
        put_for_cpu(cpu, "cache/index1/type", "Instruction\n");
        put_for_cpu(cpu, "cache/index1/size", "32K\n");
        put_for_cpu(cpu, "cache/index2/level", "3\n");
        put_for_cpu(cpu, "cache/index2/type", "Unified\n");
        put_for_cpu(cpu, "cache/index2/size", "16384K\n");
        put_for_cpu(cpu, "cache/index2/shared_cpu_list", socket);
    }
}

/* What a quiet machine with two CPUs shows, which are 0 and 1. */
static struct sight look(void)
{
    struct sight sight = {.root = root, .pair = {1, 0}, .usable = 2};
    machine_look(&sight.machine, root);
    topology_look(&sight.topology, root);
    sight.clocks[CLOCK_GETTIME].there = sight.clocks[CLOCK_CYCLES].there = true;
    sight.clocks[CLOCK_GETTIME].clock.cost_ps = 20000;
    return sight;
}

static bool found(const char *name, const struct sight *sight, struct finding *finding)
{
    static const struct hurt *const lists[] = {hurts_cpu, hurts_memory};
    for (size_t i = 0; i < LENGTH(lists); i++)
        for (const struct hurt *hurt = lists[i]; hurt->name; hurt++)
            if (strcmp(hurt->name, name) == 0) {
                bool is = hurt_found(hurt, sight, finding);
                assert_true(!is || (*finding->what && *finding->mend && *hurt->why));
                return is;
            }
    print_message("# there is no check \"%s\"\n", name);
    assert_true(false);
    return false;
}

static void is_so(const char *name, const struct sight *sight, const char *what, const char *mend)
{
    struct finding finding;
    assert_true(found(name, sight, &finding));
    if (!strstr(finding.what, what) || !strstr(finding.mend, mend))
        print_message("# %s | %s\n", finding.what, finding.mend);
    assert_non_null(strstr(finding.what, what));
    assert_non_null(strstr(finding.mend, mend));
}

static bool is_hint(const char *name, const struct sight *sight)
{
    struct finding finding;
    assert_true(found(name, sight, &finding));
    return finding.hint;
}

static void is_not_so(const char *name, const struct sight *sight)
{
    struct finding finding;
    assert_false(found(name, sight, &finding));
}

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

/* ---- findings ---- */

static void nothing_is_found_where_there_are_no_files(void **state)
{
    static const struct hurt *const lists[] = {hurts_cpu, hurts_memory};
    struct sight sight = look();
    struct finding finding;
    struct cache caches[8];
    (void)state;
    assert_int_equal(caches_look(caches, LENGTH(caches), root), 0);
    assert_int_equal(sight.topology.cpus, 0);
    for (size_t i = 0; i < LENGTH(lists); i++)
        for (const struct hurt *hurt = lists[i]; hurt->name; hurt++)
            /* How this program was built, and its limits, are no files. */
            if (strcmp(hurt->name, "build") != 0 && strcmp(hurt->name, "lock") != 0)
                assert_false(hurt_found(hurt, &sight, &finding));
}

static void a_governor_that_is_not_performance_hurts(void **state)
{
    struct sight sight = look();
    (void)state;
    put_for_cpu(0, "cpufreq/scaling_governor", "performance\n");
    put_for_cpu(1, "cpufreq/scaling_governor", "performance\n");
    is_not_so("governor", &sight);
    put_for_cpu(1, "cpufreq/scaling_governor", "powersave\n");
    is_so("governor", &sight, "powersave on 1 of 2", "echo performance | sudo tee");
}

static void turbo_is_worth_a_hint_on_either_kind_of_cpu(void **state)
{
    struct sight sight = look();
    struct finding finding;
    (void)state;
    put("/sys/devices/system/cpu/cpufreq/boost", "1\n");
    is_so("turbo", &sight, "turbo", "echo 0 | sudo tee /sys/devices/system/cpu/cpufreq/boost");
    put("/sys/devices/system/cpu/cpufreq/boost", "0\n");
    is_not_so("turbo", &sight);
    put("/sys/devices/system/cpu/intel_pstate/no_turbo", "0\n");
    is_so("turbo", &sight, "turbo", "echo 1 | sudo tee");
    assert_true(found("turbo", &sight, &finding));
    assert_true(finding.hint);
}

static void
two_threads_of_a_core_are_worth_a_hint_and_hurt_where_there_is_nothing_else(void **state)
{
    struct finding finding;
    (void)state;
    put_eight_cpus();
    struct sight sight = look();
    is_so("siblings", &sight, "CPUs 1,5 are one core", "--cpu 1,0");
    assert_true(found("siblings", &sight, &finding) && finding.hint);
    put("/sys/devices/system/cpu/smt/active", "0\n");
    is_not_so("siblings", &sight);
    sight.pair[1] = 5;
    is_so("siblings", &sight, "1 and 5, are threads of one core", "two cores");
    assert_true(found("siblings", &sight, &finding) && !finding.hint);
}

static void two_sockets_hurt(void **state)
{
    (void)state;
    put_eight_cpus();
    struct sight sight = look();
    is_not_so("sockets", &sight);
    sight.pair[1] = 2;
    is_so("sockets", &sight, "1 and 2, are on two sockets", "one socket");
}

static void one_cpu_hurts(void **state)
{
    (void)state;
    put("/sys/devices/system/cpu/online", "0\n");
    struct sight sight = look();
    is_not_so("one cpu", &sight);
    sight.usable = 1;
    is_so("one cpu", &sight, "there is one CPU", "second");
    put("/sys/devices/system/cpu/online", "0-3\n");
    sight = look();
    sight.usable = 1;
    is_so("one cpu", &sight, "one CPU of 4", "taskset -c 0-3");
}

static void a_quota_hurts_in_both_kinds_of_control_groups(void **state)
{
    struct sight sight = look();
    (void)state;
    put("/proc/self/cgroup", "0::/a\n");
    put("/sys/fs/cgroup/a/cpu.max", "max 100000\n");
    is_not_so("quota", &sight);
    put("/sys/fs/cgroup/cpu.max", "150000 100000\n");
    put("/sys/fs/cgroup/cpu.stat", "usage_usec 1\nnr_throttled 17\n");
    is_so("quota", &sight, "1.50 CPUs; held back 17 times", "--cpus");
    put("/proc/self/cgroup", "3:cpu,cpuacct:/b\n");
    put("/sys/fs/cgroup/cpu/b/cpu.cfs_quota_us", "-1\n");
    put("/sys/fs/cgroup/cpu/b/cpu.cfs_period_us", "100000\n");
    is_not_so("quota", &sight);
    put("/sys/fs/cgroup/cpu/b/cpu.cfs_quota_us", "25000\n");
    is_so("quota", &sight, "0.25 CPUs; held back 0 times", "--cpuset-cpus");
}

static void deep_sleep_hurts_unless_the_tools_may_forbid_it(void **state)
{
    char path[128];
    struct sight sight = look();
    (void)state;
    put_for_cpu(0, "cpuidle/state0/latency", "0\n");
    put_for_cpu(0, "cpuidle/state1/latency", "2\n");
    is_not_so("idle", &sight);
    put_for_cpu(0, "cpuidle/state2/latency", "133\n");
    is_so("idle", &sight, "133 us", "/dev/cpu_dma_latency");
    put_for_cpu(0, "cpuidle/state2/disable", "1\n");
    is_not_so("idle", &sight);
    put_for_cpu(0, "cpuidle/state2/disable", "0\n");
    put("/dev/cpu_dma_latency", "");
    snprintf(path, sizeof path, "%s/dev/cpu_dma_latency", root);
    is_not_so("idle", &sight);
}

static void a_clock_that_is_a_system_call_hurts(void **state)
{
    (void)state;
    put("/sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n");
    put("/sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc hpet\n");
    struct sight sight = look();
    is_not_so("clock", &sight);
    is_not_so("cycles", &sight);
    sight.clocks[CLOCK_GETTIME].clock.cost_ps = 900000;
    is_so("clock", &sight, "900 ns: the kernel's clock source is hpet", "--clock cycles");
    sight.clocks[CLOCK_CYCLES].there = false;
    is_so("clock", &sight, "hpet", "echo tsc | sudo tee");
    is_so("cycles", &sight, "constant rate", "clock_gettime");
}

static void gaps_hurt_when_they_are_long_or_many(void **state)
{
    struct sight sight = look();
    (void)state;
    sight.noise = (struct noise){
        .cpus = 2,
        .on = {{.cpu = 1, .span_ns = 200000000, .lost_ns = 100000, .largest_ns = 20000},
               {.cpu = 0, .span_ns = 200000000, .lost_ns = 150000, .largest_ns = 20000}}};
    is_not_so("gaps", &sight);
    sight.noise.on[1].lost_ns = 4000000;
    sight.noise.on[1].count = 12;
    is_so("gaps", &sight, "CPU 0 lost 2.00 % of 200 ms in 12 gaps", "kept free");
    sight.usable = 8;
    is_so("gaps", &sight, "CPU 0", "isolcpus=1,0");
    strcpy(sight.machine.hypervisor, "KVM");
    is_so("gaps", &sight, "CPU 0", "virtual machine");
    sight.noise.others_ms = 3;
    is_so("gaps", &sight, "CPU 0", "top");
}

static void other_processes_hurt(void **state)
{
    (void)state;
    put("/sys/devices/system/cpu/online", "0-1\n");
    put("/proc/loadavg", "0.90 0.10 0.10 1/85 123\n");
    struct sight sight = look();
    is_not_so("busy", &sight);
    put("/proc/loadavg", "3.50 0.10 0.10 1/85 123\n");
    is_so("busy", &sight, "3.50", "top");
    sight.noise.others_ms = 180;
    sight.noise.busiest_ms = 170;
    strcpy(sight.noise.busiest, "cc1, pid 12");
    is_so("busy", &sight, "180 ms of CPU within 200 ms, most of it cc1, pid 12", "top");
}

static void a_virtual_machine_hurts_and_so_does_what_its_host_takes(void **state)
{
    (void)state;
    put("/proc/stat", "cpu  100 0 100 99800 0 0 0 0 0 0\ncpu0 1\n");
    struct sight sight = look();
    is_not_so("virtual", &sight);
    is_not_so("steal", &sight);
    put("/proc/stat", "cpu  100 0 100 98790 0 0 0 1010 0 0\ncpu0 1\n");
    is_so("steal", &sight, "1.01 %", "not shared");
    assert_false(is_hint("steal", &sight));
    strcpy(sight.machine.hypervisor, "KVM");
    sight.noise.line_ns = 165;
    is_so("virtual", &sight, "(KVM), where a cache line takes 165 ns", "several runs");
}

static void what_the_host_took_long_ago_is_a_hint(void **state)
{
    (void)state;
    put("/proc/stat", "cpu  100 0 100 99600 0 0 0 200 0 0\ncpu0 1\n");
    struct sight sight = look();
    is_so("steal", &sight, "0.20 % of the CPUs' time since boot, 0 ms while", "not shared");
    assert_true(is_hint("steal", &sight));
    sight.noise.steal_ms = 10;
    assert_false(is_hint("steal", &sight));
}

static void pages_that_are_moved_hurt_on_several_nodes_only(void **state)
{
    (void)state;
    put("/proc/sys/kernel/numa_balancing", "1\n");
    struct sight sight = look();
    is_not_so("numa balancing", &sight);
    put_eight_cpus();
    sight = look();
    is_so("numa balancing", &sight, "2 memory nodes", "sysctl kernel.numa_balancing=0");
}

static void memory_has_its_hints(void **state)
{
    struct sight sight = look();
    (void)state;
    put("/proc/meminfo", "MemTotal: 1 kB\nSwapTotal: 4096 kB\nSwapFree: 4096 kB\n");
    is_not_so("swap", &sight);
    put("/proc/meminfo", "MemTotal: 1 kB\nSwapTotal: 4096 kB\nSwapFree: 1024 kB\n");
    is_so("swap", &sight, "3.0 MiB", "swapoff");
    put("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
    is_not_so("huge always", &sight);
    put("/sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n");
    is_so("huge always", &sight, "transparent", "echo madvise");
    put("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "8\n");
    is_not_so("no huge", &sight);
    put("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "0\n");
    is_so("no huge", &sight, "--use-hp", "nr_hugepages");
}

static void who_may_not_trace_is_told_unless_privileged(void **state)
{
    struct sight sight = look();
    (void)state;
    put("/proc/sys/kernel/yama/ptrace_scope", "1\n");
    put("/proc/self/status", "Name:\tx\nCapEff:\t0000000000000000\n");
    is_so("trace", &sight, "ptrace_scope is 1", "kernel.yama.ptrace_scope=0");
    put("/proc/self/status", "Name:\tx\nCapEff:\t000001ffffffffff\n");
    is_not_so("trace", &sight);
    is_not_so("lock", &sight);
    put("/proc/sys/kernel/yama/ptrace_scope", "0\n");
    put("/proc/self/status", "Name:\tx\nCapEff:\t0000000000000000\n");
    is_not_so("trace", &sight);
}

static void irqbalance_and_free_cpus_are_hints(void **state)
{
    (void)state;
    put("/proc/77/comm", "irqbalanced\n");
    struct sight sight = look();
    is_not_so("irqbalance", &sight);
    put("/proc/78/comm", "irqbalance\n");
    is_so("irqbalance", &sight, "irqbalance", "systemctl stop");
    is_not_so("isolated", &sight);
    sight.usable = 8;
    is_so("isolated", &sight, "no CPU", "isolcpus=1,0");
    put("/sys/devices/system/cpu/isolated", "6-7\n");
    is_not_so("isolated", &sight);
}

static void a_link_that_is_narrower_than_it_could_be_hurts(void **state)
{
    struct sight sight = look();
    (void)state;
    put("/sys/class/net/eth0/device/current_link_speed", "16.0 GT/s PCIe\n");
    put("/sys/class/net/eth0/device/max_link_speed", "16.0 GT/s PCIe\n");
    put("/sys/class/net/eth0/device/current_link_width", "16\n");
    put("/sys/class/net/eth0/device/max_link_width", "16\n");
    is_not_so("slot", &sight);
    put("/sys/class/net/eth0/device/current_link_width", "8\n");
    is_so("slot", &sight, "eth0 has a PCIe link of x8 at 16.0 GT/s PCIe of x16", "lspci");
    put("/sys/class/net/eth0/device/current_link_speed", "Unknown\n");
    is_not_so("slot", &sight);
}

/* ---- what is printed ---- */

static char *printed(void (*show)(const struct sight *sight, struct page *page),
                     const struct sight *sight)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    assert_non_null(out);
    show(sight, &(struct page){.form = PAGE_TEXT, .out = out});
    fclose(out);
    return text;
}

static void gpus_and_networks_are_named(void **state)
{
    (void)state;
    put("/sys/bus/pci/devices/0000:01:00.0/class", "0x030200\n");
    put("/sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n");
    put("/sys/bus/pci/devices/0000:01:00.0/device", "0x2335\n");
    put("/proc/driver/nvidia/gpus/0000:01:00.0/information", "Model: \t\t NVIDIA H200\n");
    put("/sys/bus/pci/devices/0000:02:00.0/class", "0x120000\n");
    put("/sys/bus/pci/devices/0000:02:00.0/vendor", "0x1002\n");
    put("/sys/bus/pci/devices/0000:02:00.0/device", "0x74a1\n");
    put("/sys/bus/pci/devices/0000:03:00.0/class", "0x030000\n");
    put("/sys/bus/pci/devices/0000:03:00.0/vendor", "0x1a03\n");
    put("/sys/class/net/hsn0/operstate", "up\n");
    put("/sys/class/net/hsn0/speed", "200000\n");
    put("/sys/class/net/hsn0/mtu", "9000\n");
    put("/sys/class/net/dummy0/operstate", "down\n");
    put("/sys/class/cxi/cxi0/device/numa_node", "1\n");
    put("/sys/class/cxi/cxi0/device/local_cpulist", "2-3,6-7\n");
    put("/sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
    put("/sys/class/infiniband/mlx5_0/ports/1/rate", "100 Gb/sec (4X EDR)\n");
    put_eight_cpus();
    struct sight sight = look();
    char *text = printed(devices_gpus, &sight);
    assert_non_null(strstr(text, "0000:01:00.0    NVIDIA H200, no driver\n"));
    assert_non_null(strstr(text, "AMD device 0x74a1"));
    assert_null(strstr(text, "0000:03"));
    free(text);
    text = printed(devices_network, &sight);
    assert_non_null(strstr(text, "hsn0            up, 200 Gb/s, MTU 9000\n"));
    assert_non_null(strstr(text, "node 1, near CPUs 2-3,6-7\n"));
    assert_non_null(strstr(text, "mlx5_0:1        ACTIVE, 100 Gb/sec (4X EDR)\n"));
    assert_null(strstr(text, "dummy0"));
    free(text);
}

/* Every file that anybody looks at, filled with the same. */
static void put_everywhere(const void *bytes, size_t length)
{
    static const char *const files[] = {
        "/proc/cpuinfo",
        "/proc/meminfo",
        "/proc/stat",
        "/proc/loadavg",
        "/proc/self/cgroup",
        "/proc/self/status",
        "/proc/sys/kernel/numa_balancing",
        "/proc/sys/kernel/yama/ptrace_scope",
        "/proc/1/comm",
        "/proc/driver/nvidia/version",
        "/sys/hypervisor/type",
        "/run/systemd/container",
        "/sys/devices/system/cpu/online",
        "/sys/devices/system/cpu/isolated",
        "/sys/devices/system/cpu/smt/active",
        "/sys/devices/system/cpu/cpufreq/boost",
        "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
        "/sys/devices/system/cpu/cpu0/cpuidle/state1/latency",
        "/sys/devices/system/cpu/cpu0/topology/thread_siblings_list",
        "/sys/devices/system/cpu/cpu0/topology/core_siblings_list",
        "/sys/devices/system/cpu/cpu1/topology/thread_siblings_list",
        "/sys/devices/system/cpu/cpu0/cache/index0/level",
        "/sys/devices/system/cpu/cpu0/cache/index0/type",
        "/sys/devices/system/cpu/cpu0/cache/index0/size",
        "/sys/devices/system/cpu/cpu0/cache/index0/shared_cpu_list",
        "/sys/devices/system/node/online",
        "/sys/devices/system/clocksource/clocksource0/current_clocksource",
        "/sys/devices/system/clocksource/clocksource0/available_clocksource",
        "/sys/kernel/mm/transparent_hugepage/enabled",
        "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages",
        "/sys/fs/cgroup/cpu.max",
        "/sys/bus/pci/devices/0000:01:00.0/class",
        "/sys/bus/pci/devices/0000:01:00.0/vendor",
        "/sys/class/net/eth0/operstate",
        "/sys/class/net/eth0/speed",
        "/sys/class/net/eth0/device/current_link_speed",
        "/sys/class/net/eth0/device/max_link_speed",
        "/sys/class/net/eth0/device/current_link_width",
        "/sys/class/net/eth0/device/max_link_width",
        "/sys/class/infiniband/mlx5_0/ports/1/state",
    };
    for (size_t i = 0; i < LENGTH(files); i++)
        put_bytes(files[i], bytes, length);
}

static void hostile_files_do_no_harm(void **state)
{
    static char large[300000], binary[70000];
    struct cache caches[8];
    (void)state;
    memset(large, '7', sizeof large);
    for (size_t i = 0; i < sizeof binary; i++)
        binary[i] = (char)(i * 167 + i / 251);
    const struct {
        const void *bytes;
        size_t length;
    } all[] = {{large, sizeof large},
               {binary, sizeof binary},
               {"\033]0;x\007%n%s%s", 13},
               {"0-4294967295,", 13},
               {"-", 1},
               {"\n\n\n", 3},
               {"0\n0::/../../..\n", 15}};
    for (size_t i = 0; i < LENGTH(all); i++) {
        put_everywhere(all[i].bytes, all[i].length);
        struct sight sight = look();
        caches_look(caches, LENGTH(caches), root);
        void (*const shows[])(const struct sight *, struct page *) = {devices_gpus, devices_network,
                                                                      hurts_show};
        for (size_t k = 0; k < LENGTH(shows); k++) {
            char *text = printed(shows[k], &sight);
            for (const char *at = text; *at; at++)
                assert_true(*at == '\n' || (*at >= ' ' && *at < 127));
            free(text);
        }
    }
}

static void what_was_measured_is_plausible(void **state)
{
    int64_t pair[2];
    struct noise noise;
    (void)state;
    int usable = cpu_pair(pair);
    noise_measure(&noise, pair, usable);
    assert_int_equal(noise.cpus, usable > 1 ? 2 : 1);
    for (int i = 0; i < noise.cpus; i++) {
        assert_true(noise.on[i].span_ns >= NOISE_MS * UINT64_C(1000000));
        assert_true(noise.on[i].lost_ns <= noise.on[i].span_ns);
        assert_true(noise.on[i].largest_ns > 0);
    }
    noise_measure(&noise, pair, 1);
    assert_int_equal(noise.cpus, 1);
    assert_true(noise.line_ns == 0);
    noise_measure(&noise, pair, 0);
    assert_int_equal(noise.cpus, 0);
}

/* ---- children ---- */

static void work_well(const void *arg, FILE *out)
{
    fprintf(out, "%s\n", (const char *)arg);
    printf("noise\n");
    fflush(stdout);
}

static void work_forever(const void *arg, FILE *out)
{
    (void)arg;
    signal(SIGTERM, SIG_IGN);
    fprintf(out, "first\n");
    for (;;)
        pause();
}

static void work_badly(const void *arg, FILE *out)
{
    fprintf(out, "first\n");
    if (*(const char *)arg == 'x')
        _exit(3);
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
}

static void a_child_that_works_is_heard_and_its_noise_kept_apart(void **state)
{
    struct probe probe;
    (void)state;
    assert_int_equal(probe_run(&probe, work_well, "a word", 10000), 0);
    assert_string_equal(probe.text, "a word\n");
    assert_string_equal(probe.said, "noise\n");
    probe_free(&probe);
}

static void a_child_that_hangs_is_given_up(void **state)
{
    struct probe probe;
    (void)state;
    assert_int_equal(probe_run(&probe, work_forever, NULL, 200), -ETIMEDOUT);
    assert_string_equal(probe.text, "first\n");
    assert_non_null(strstr(fail_reason(), "no answer within 0.2 s"));
    probe_free(&probe);
}

static void a_child_that_dies_says_how(void **state)
{
    struct probe probe;
    (void)state;
    assert_int_equal(probe_run(&probe, work_badly, "s", 10000), -ECHILD);
    assert_string_equal(probe.text, "first\n");
    assert_non_null(strstr(fail_reason(), "it crashed (Segmentation fault)"));
    probe_free(&probe);
    assert_int_equal(probe_run(&probe, work_badly, "x", 10000), -ECHILD);
    assert_non_null(strstr(fail_reason(), "exit code 3"));
    probe_free(&probe);
}

static void a_child_that_does_not_end_is_not_waited_for(void **state)
{
    pid_t child = fork();
    (void)state;
    if (child == 0)
        for (;;)
            pause();
    assert_true(child > 0);
    assert_int_equal(child_wait(child, 20), -1);
    kill(child, SIGKILL);
    int how = child_wait(child, 10000);
    assert_true(how != -1 && WIFSIGNALED(how));
    assert_int_equal(child_wait(child, 10000), -1); /* there is none any more */
}

#define ON_FILES(test) cmocka_unit_test_setup_teardown(test, begin, end)

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
        ON_FILES(nothing_is_found_where_there_are_no_files),
        ON_FILES(a_governor_that_is_not_performance_hurts),
        ON_FILES(turbo_is_worth_a_hint_on_either_kind_of_cpu),
        ON_FILES(two_threads_of_a_core_are_worth_a_hint_and_hurt_where_there_is_nothing_else),
        ON_FILES(two_sockets_hurt),
        ON_FILES(one_cpu_hurts),
        ON_FILES(a_quota_hurts_in_both_kinds_of_control_groups),
        ON_FILES(deep_sleep_hurts_unless_the_tools_may_forbid_it),
        ON_FILES(a_clock_that_is_a_system_call_hurts),
        ON_FILES(gaps_hurt_when_they_are_long_or_many),
        ON_FILES(other_processes_hurt),
        ON_FILES(a_virtual_machine_hurts_and_so_does_what_its_host_takes),
        ON_FILES(what_the_host_took_long_ago_is_a_hint),
        ON_FILES(pages_that_are_moved_hurt_on_several_nodes_only),
        ON_FILES(memory_has_its_hints),
        ON_FILES(who_may_not_trace_is_told_unless_privileged),
        ON_FILES(irqbalance_and_free_cpus_are_hints),
        ON_FILES(a_link_that_is_narrower_than_it_could_be_hurts),
        ON_FILES(gpus_and_networks_are_named),
        ON_FILES(hostile_files_do_no_harm),
        cmocka_unit_test(what_was_measured_is_plausible),
        cmocka_unit_test(a_child_that_works_is_heard_and_its_noise_kept_apart),
        cmocka_unit_test(a_child_that_hangs_is_given_up),
        cmocka_unit_test(a_child_that_dies_says_how),
        cmocka_unit_test(a_child_that_does_not_end_is_not_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
