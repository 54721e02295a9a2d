/* SPDX-License-Identifier: BSD-3-Clause */
/* weft info on machines that are made of files: what distorts results, and what is printed. */
#include "core/clock.h"
#include "core/machine.h"
#include "support/machine_files.h"
#include "tool/info.h"
#include "tool/probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
