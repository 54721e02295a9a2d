/* SPDX-License-Identifier: BSD-3-Clause */
/* The host room on machines made of files: a folder is the root of each. */
#include "core/child.h"
#include "core/clock.h"
#include "core/cpu.h"
#include "core/machine.h"
#include "host/checks.h"
#include "host/probe.h"
#include "host/sections.h"
#include "support/machine_files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The state of an idle machine with two CPUs, 0 and 1. */
static struct host_state look(void)
{
    struct host_state host = {.root = root, .pair = {1, 0}, .usable = 2};
    machine_look(&host.machine, root);
    topology_look(&host.topology, root);
    host.clocks[CLOCK_GETTIME].available = host.clocks[CLOCK_CYCLES].available = true;
    host.clocks[CLOCK_GETTIME].clock.cost_ps = 20000;
    return host;
}

static bool found(const char *name, const struct host_state *host, struct finding *finding)
{
    static const struct check *const lists[] = {checks_cpu, checks_memory};
    for (size_t i = 0; i < LENGTH(lists); i++)
        for (const struct check *check = lists[i]; check->name; check++)
            if (strcmp(check->name, name) == 0) {
                bool is = check_run(check, host, finding);
                assert_true(!is || (*finding->what && *finding->fix && *check->why));
                return is;
            }
    print_message("# no check \"%s\"\n", name);
    assert_true(false);
    return false;
}

static void is_so(const char *name, const struct host_state *host, const char *what,
                  const char *fix)
{
    struct finding finding;
    assert_true(found(name, host, &finding));
    if (!strstr(finding.what, what) || !strstr(finding.fix, fix))
        print_message("# %s | %s\n", finding.what, finding.fix);
    assert_non_null(strstr(finding.what, what));
    assert_non_null(strstr(finding.fix, fix));
}

static bool is_hint(const char *name, const struct host_state *host)
{
    struct finding finding;
    assert_true(found(name, host, &finding));
    return finding.hint;
}

static void is_not_so(const char *name, const struct host_state *host)
{
    struct finding finding;
    assert_false(found(name, host, &finding));
}

/* ---- findings ---- */

static void nothing_is_found_where_there_are_no_files(void **state)
{
    static const struct check *const lists[] = {checks_cpu, checks_memory};
    struct host_state host = look();
    struct finding finding;
    struct cache caches[8];
    (void)state;
    assert_int_equal(caches_look(caches, LENGTH(caches), root), 0);
    assert_int_equal(host.topology.cpus, 0);
    for (size_t i = 0; i < LENGTH(lists); i++)
        for (const struct check *check = lists[i]; check->name; check++)
            /* The build and the limits of this program do not come from files. */
            if (strcmp(check->name, "build") != 0 && strcmp(check->name, "lock") != 0)
                assert_false(check_run(check, &host, &finding));
}

static void a_governor_other_than_performance_is_a_warning(void **state)
{
    struct host_state host = look();
    (void)state;
    put_for_cpu(0, "cpufreq/scaling_governor", "performance\n");
    put_for_cpu(1, "cpufreq/scaling_governor", "performance\n");
    is_not_so("governor", &host);
    put_for_cpu(1, "cpufreq/scaling_governor", "powersave\n");
    is_so("governor", &host, "powersave on 1 of 2", "echo performance | sudo tee");
}

static void turbo_is_a_hint_on_both_kinds_of_cpu(void **state)
{
    struct host_state host = look();
    struct finding finding;
    (void)state;
    put("/sys/devices/system/cpu/cpufreq/boost", "1\n");
    is_so("turbo", &host, "turbo", "echo 0 | sudo tee /sys/devices/system/cpu/cpufreq/boost");
    put("/sys/devices/system/cpu/cpufreq/boost", "0\n");
    is_not_so("turbo", &host);
    put("/sys/devices/system/cpu/intel_pstate/no_turbo", "0\n");
    is_so("turbo", &host, "turbo", "echo 1 | sudo tee");
    assert_true(found("turbo", &host, &finding));
    assert_true(finding.hint);
}

static void
two_threads_of_a_core_are_a_hint_and_a_warning_where_there_is_no_other_core(void **state)
{
    struct finding finding;
    (void)state;
    put_eight_cpus();
    struct host_state host = look();
    is_so("siblings", &host, "CPUs 1,5 share one core", "--cpu 1,0");
    assert_true(found("siblings", &host, &finding) && finding.hint);
    put("/sys/devices/system/cpu/smt/active", "0\n");
    is_not_so("siblings", &host);
    host.pair[1] = 5;
    is_so("siblings", &host, "1 and 5, are threads of one core", "two cores");
    assert_true(found("siblings", &host, &finding) && !finding.hint);
}

static void two_sockets_are_a_warning(void **state)
{
    (void)state;
    put_eight_cpus();
    struct host_state host = look();
    is_not_so("sockets", &host);
    host.pair[1] = 2;
    is_so("sockets", &host, "1 and 2, are on two sockets", "one socket");
}

static void one_cpu_is_a_warning(void **state)
{
    (void)state;
    put("/sys/devices/system/cpu/online", "0\n");
    struct host_state host = look();
    is_not_so("one cpu", &host);
    host.usable = 1;
    is_so("one cpu", &host, "has one CPU", "second");
    put("/sys/devices/system/cpu/online", "0-3\n");
    host = look();
    host.usable = 1;
    is_so("one cpu", &host, "one CPU of 4", "taskset -c 0-3");
}

static void a_quota_is_a_warning_in_both_kinds_of_control_groups(void **state)
{
    struct host_state host = look();
    (void)state;
    put("/proc/self/cgroup", "0::/a\n");
    put("/sys/fs/cgroup/a/cpu.max", "max 100000\n");
    is_not_so("quota", &host);
    put("/sys/fs/cgroup/cpu.max", "150000 100000\n");
    put("/sys/fs/cgroup/cpu.stat", "usage_usec 1\nnr_throttled 17\n");
    is_so("quota", &host, "1.50 CPUs; it was throttled 17 times", "--cpus");
    put("/proc/self/cgroup", "3:cpu,cpuacct:/b\n");
    put("/sys/fs/cgroup/cpu/b/cpu.cfs_quota_us", "-1\n");
    put("/sys/fs/cgroup/cpu/b/cpu.cfs_period_us", "100000\n");
    is_not_so("quota", &host);
    put("/sys/fs/cgroup/cpu/b/cpu.cfs_quota_us", "25000\n");
    is_so("quota", &host, "0.25 CPUs; it was throttled 0 times", "--cpuset-cpus");
}

static void deep_idle_states_are_a_warning_unless_the_tools_can_disable_them(void **state)
{
    char path[128];
    struct host_state host = look();
    (void)state;
    put_for_cpu(0, "cpuidle/state0/latency", "0\n");
    put_for_cpu(0, "cpuidle/state1/latency", "2\n");
    is_not_so("idle", &host);
    put_for_cpu(0, "cpuidle/state2/latency", "133\n");
    is_so("idle", &host, "133 us", "/dev/cpu_dma_latency");
    put_for_cpu(0, "cpuidle/state2/disable", "1\n");
    is_not_so("idle", &host);
    put_for_cpu(0, "cpuidle/state2/disable", "0\n");
    put("/dev/cpu_dma_latency", "");
    snprintf(path, sizeof path, "%s/dev/cpu_dma_latency", root);
    is_not_so("idle", &host);
}

static void a_clock_that_is_a_system_call_is_a_warning(void **state)
{
    (void)state;
    put("/sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n");
    put("/sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc hpet\n");
    struct host_state host = look();
    is_not_so("clock", &host);
    is_not_so("cycles", &host);
    host.clocks[CLOCK_GETTIME].clock.cost_ps = 900000;
    is_so("clock", &host, "900 ns; the kernel clock is hpet", "--clock cycles");
    host.clocks[CLOCK_CYCLES].available = false;
    is_so("clock", &host, "hpet", "echo tsc | sudo tee");
    is_so("cycles", &host, "constant rate", "clock_gettime");
}

static void gaps_are_a_warning_when_they_are_long_or_many(void **state)
{
    struct host_state host = look();
    (void)state;
    host.noise = (struct noise){
        .cpus = 2,
        .on = {{.cpu = 1, .span_ns = 200000000, .lost_ns = 100000, .largest_ns = 20000},
               {.cpu = 0, .span_ns = 200000000, .lost_ns = 150000, .largest_ns = 20000}}};
    is_not_so("gaps", &host);
    host.noise.on[1].lost_ns = 4000000;
    host.noise.on[1].count = 12;
    is_so("gaps", &host, "CPU 0 lost 2.00 % of 200 ms in 12 gaps", "two isolated CPUs");
    host.usable = 8;
    is_so("gaps", &host, "CPU 0", "isolcpus=1,0");
    strcpy(host.machine.hypervisor, "KVM");
    is_so("gaps", &host, "CPU 0", "virtual machine");
    host.noise.others_ms = 3;
    is_so("gaps", &host, "CPU 0", "top");
}

static void other_processes_are_a_warning(void **state)
{
    (void)state;
    put("/sys/devices/system/cpu/online", "0-1\n");
    put("/proc/loadavg", "0.90 0.10 0.10 1/85 123\n");
    struct host_state host = look();
    is_not_so("busy", &host);
    put("/proc/loadavg", "3.50 0.10 0.10 1/85 123\n");
    is_so("busy", &host, "3.50", "top");
    host.noise.others_ms = 180;
    host.noise.busiest_ms = 170;
    strcpy(host.noise.busiest, "cc1, pid 12");
    is_so("busy", &host, "180 ms of CPU time in 200 ms, most of it by cc1, pid 12", "top");
}

static void a_virtual_machine_and_stolen_time_are_warnings(void **state)
{
    (void)state;
    put("/proc/stat", "cpu  100 0 100 99800 0 0 0 0 0 0\ncpu0 1\n");
    struct host_state host = look();
    is_not_so("virtual", &host);
    is_not_so("steal", &host);
    put("/proc/stat", "cpu  100 0 100 98790 0 0 0 1010 0 0\ncpu0 1\n");
    is_so("steal", &host, "1.01 %", "not shared");
    assert_false(is_hint("steal", &host));
    strcpy(host.machine.hypervisor, "KVM");
    host.noise.line_ns = 165;
    is_so("virtual", &host, "(KVM); a cache line transfer takes 165 ns", "several runs");
}

static void time_stolen_long_ago_is_a_hint(void **state)
{
    (void)state;
    put("/proc/stat", "cpu  100 0 100 99600 0 0 0 200 0 0\ncpu0 1\n");
    struct host_state host = look();
    is_so("steal", &host, "0.20 % of the CPU time since boot, 0 ms during", "not shared");
    assert_true(is_hint("steal", &host));
    host.noise.steal_ms = 10;
    assert_false(is_hint("steal", &host));
}

static void numa_balancing_is_a_warning_on_several_nodes_only(void **state)
{
    (void)state;
    put("/proc/sys/kernel/numa_balancing", "1\n");
    struct host_state host = look();
    is_not_so("numa balancing", &host);
    put_eight_cpus();
    host = look();
    is_so("numa balancing", &host, "2 NUMA nodes", "sysctl kernel.numa_balancing=0");
}

static void memory_has_its_hints(void **state)
{
    struct host_state host = look();
    (void)state;
    put("/proc/meminfo", "MemTotal: 1 kB\nSwapTotal: 4096 kB\nSwapFree: 4096 kB\n");
    is_not_so("swap", &host);
    put("/proc/meminfo", "MemTotal: 1 kB\nSwapTotal: 4096 kB\nSwapFree: 1024 kB\n");
    is_so("swap", &host, "3.0 MiB", "swapoff");
    put("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
    is_not_so("huge always", &host);
    put("/sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n");
    is_so("huge always", &host, "transparent", "echo madvise");
    put("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "8\n");
    is_not_so("no huge", &host);
    put("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "0\n");
    is_so("no huge", &host, "--use-hp", "nr_hugepages");
}

static void ptrace_scope_is_a_hint_unless_privileged(void **state)
{
    struct host_state host = look();
    (void)state;
    put("/proc/sys/kernel/yama/ptrace_scope", "1\n");
    put("/proc/self/status", "Name:\tx\nCapEff:\t0000000000000000\n");
    is_so("trace", &host, "ptrace_scope is 1", "kernel.yama.ptrace_scope=0");
    put("/proc/self/status", "Name:\tx\nCapEff:\t000001ffffffffff\n");
    is_not_so("trace", &host);
    is_not_so("lock", &host);
    put("/proc/sys/kernel/yama/ptrace_scope", "0\n");
    put("/proc/self/status", "Name:\tx\nCapEff:\t0000000000000000\n");
    is_not_so("trace", &host);
}

static void irqbalance_and_missing_isolation_are_hints(void **state)
{
    (void)state;
    put("/proc/77/comm", "irqbalanced\n");
    struct host_state host = look();
    is_not_so("irqbalance", &host);
    put("/proc/78/comm", "irqbalance\n");
    is_so("irqbalance", &host, "irqbalance", "systemctl stop");
    is_not_so("isolated", &host);
    host.usable = 8;
    is_so("isolated", &host, "no CPU", "isolcpus=1,0");
    put("/sys/devices/system/cpu/isolated", "6-7\n");
    is_not_so("isolated", &host);
}

static void a_pcie_link_below_its_maximum_is_a_warning(void **state)
{
    struct host_state host = look();
    (void)state;
    put("/sys/class/net/eth0/device/current_link_speed", "16.0 GT/s PCIe\n");
    put("/sys/class/net/eth0/device/max_link_speed", "16.0 GT/s PCIe\n");
    put("/sys/class/net/eth0/device/current_link_width", "16\n");
    put("/sys/class/net/eth0/device/max_link_width", "16\n");
    is_not_so("slot", &host);
    put("/sys/class/net/eth0/device/current_link_width", "8\n");
    is_so("slot", &host, "eth0 has a PCIe link of x8 at 16.0 GT/s PCIe, its maximum is x16",
          "lspci");
    put("/sys/class/net/eth0/device/current_link_speed", "Unknown\n");
    is_not_so("slot", &host);
}

/* ---- what is printed ---- */

static char *printed(void (*show)(const struct host_state *host, struct printer *printer),
                     const struct host_state *host)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    assert_non_null(out);
    show(host, &(struct printer){.format = PRINT_TEXT, .out = out});
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
    struct host_state host = look();
    char *text = printed(gpus_section, &host);
    assert_non_null(strstr(text, "0000:01:00.0    NVIDIA H200, no driver\n"));
    assert_non_null(strstr(text, "AMD device 0x74a1"));
    assert_null(strstr(text, "0000:03"));
    free(text);
    text = printed(network_devices, &host);
    assert_non_null(strstr(text, "hsn0            up, 200 Gb/s, MTU 9000\n"));
    assert_non_null(strstr(text, "NUMA node 1, local CPUs 2-3,6-7\n"));
    assert_non_null(strstr(text, "mlx5_0:1        ACTIVE, 100 Gb/sec (4X EDR)\n"));
    assert_null(strstr(text, "dummy0"));
    free(text);
}

static void put_cxi(const char *file, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "/sys/class/cxi/cxi0/device/%s", file);
    put(path, text);
}

static void a_cxi_device_is_described(void **state)
{
    (void)state;
    put_cxi("port/link", "up\n");
    put_cxi("properties/speed", "200000\n");
    put_cxi("properties/nid", "0x12345\n");
    put_cxi("properties/cassini_version", "1.1\n");
    put_cxi("numa_node", "1\n");
    put_cxi("uc/qspi_blob_version", "1.5.53\n");
    put_cxi("telemetry/hni_sts_rx_ok_octets", "77@1.5\n");
    put_cxi("telemetry/hni_pcs_uncorrected_cw", "3@1.5\n");
    put("/sys/kernel/debug/cxi/cxi0/services",
        "Resources\n  Max   1\n\nRgroups:\nID: 1\n  Name:default\n  State:Disabled\n"
        "  LNIs/RGID:1\n\nID: 5\n  Name:job\t\033[2J\n  State:Enabled\n");
    struct host_state host = look();
    char *text = printed(cxi_section, &host);
    assert_string_equal(text, "CXI devices\n"
                              "  cxi0            link up, 200 Gb/s, NIC 0x12345, Cassini 1.1, "
                              "NUMA node 1, firmware 1.5.53\n"
                              "    services      1 default (disabled), 5 job ?[2J (enabled)\n"
                              "    errors        hni_pcs_uncorrected_cw 3\n");
    free(text);
    host.verbose = true;
    text = printed(cxi_section, &host);
    assert_non_null(strstr(text, "    counters      hni_sts_rx_ok_octets 77\n"));
    free(text);
}

static void what_cannot_be_read_of_a_cxi_device_has_a_reason(void **state)
{
    (void)state;
    put_cxi("properties/link", "0\n");
    put_cxi("properties/speed", "-1\n");
    put_cxi("numa_node", "-1\n");
    put_cxi("telemetry/hni_pcs_uncorrected_cw", "0@1.5\n");
    struct host_state host = look();
    char *text = printed(cxi_section, &host);
    assert_non_null(strstr(text, "  cxi0            link down\n"));
    assert_non_null(strstr(text, "    errors        none (1 counters)\n"));
    assert_non_null(strstr(text, "speed_mbits (/sys/class/cxi/cxi0/device/properties/speed: it has "
                                 "no value)"));
    assert_non_null(strstr(text, "services (/sys/kernel/debug/cxi/cxi0/services: No such file or "
                                 "directory)"));
    assert_null(strstr(text, "NUMA node"));
    free(text);
}

/* Every file that is read, filled with the same bytes. */
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
        "/sys/class/cxi/cxi0/device/port/link",
        "/sys/class/cxi/cxi0/device/properties/speed",
        "/sys/class/cxi/cxi0/device/numa_node",
        "/sys/class/cxi/cxi0/device/telemetry/pct_spt_timeouts",
        "/sys/kernel/debug/cxi/cxi0/services",
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
        struct host_state host = look();
        caches_look(caches, LENGTH(caches), root);
        void (*const shows[])(const struct host_state *, struct printer *) = {
            gpus_section, network_devices, cxi_section, checks_section};
        for (size_t k = 0; k < LENGTH(shows); k++) {
            char *text = printed(shows[k], &host);
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

static void the_answer_and_the_output_of_a_child_are_kept_apart(void **state)
{
    struct probe probe;
    (void)state;
    assert_int_equal(probe_run(&probe, work_well, "a word", 10000), 0);
    assert_string_equal(probe.text, "a word\n");
    assert_string_equal(probe.output, "noise\n");
    probe_free(&probe);
}

static void a_child_that_hangs_is_killed_at_its_deadline(void **state)
{
    struct probe probe;
    (void)state;
    assert_int_equal(probe_run(&probe, work_forever, NULL, 200), -ETIMEDOUT);
    assert_string_equal(probe.text, "first\n");
    assert_non_null(strstr(fail_reason(), "no answer within 0.2 s"));
    probe_free(&probe);
}

static void the_way_a_child_ended_is_reported(void **state)
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_FILES(nothing_is_found_where_there_are_no_files),
        ON_FILES(a_governor_other_than_performance_is_a_warning),
        ON_FILES(turbo_is_a_hint_on_both_kinds_of_cpu),
        ON_FILES(two_threads_of_a_core_are_a_hint_and_a_warning_where_there_is_no_other_core),
        ON_FILES(two_sockets_are_a_warning),
        ON_FILES(one_cpu_is_a_warning),
        ON_FILES(a_quota_is_a_warning_in_both_kinds_of_control_groups),
        ON_FILES(deep_idle_states_are_a_warning_unless_the_tools_can_disable_them),
        ON_FILES(a_clock_that_is_a_system_call_is_a_warning),
        ON_FILES(gaps_are_a_warning_when_they_are_long_or_many),
        ON_FILES(other_processes_are_a_warning),
        ON_FILES(a_virtual_machine_and_stolen_time_are_warnings),
        ON_FILES(time_stolen_long_ago_is_a_hint),
        ON_FILES(numa_balancing_is_a_warning_on_several_nodes_only),
        ON_FILES(memory_has_its_hints),
        ON_FILES(ptrace_scope_is_a_hint_unless_privileged),
        ON_FILES(irqbalance_and_missing_isolation_are_hints),
        ON_FILES(a_pcie_link_below_its_maximum_is_a_warning),
        ON_FILES(gpus_and_networks_are_named),
        ON_FILES(a_cxi_device_is_described),
        ON_FILES(what_cannot_be_read_of_a_cxi_device_has_a_reason),
        ON_FILES(hostile_files_do_no_harm),
        cmocka_unit_test(what_was_measured_is_plausible),
        cmocka_unit_test(the_answer_and_the_output_of_a_child_are_kept_apart),
        cmocka_unit_test(a_child_that_hangs_is_killed_at_its_deadline),
        cmocka_unit_test(the_way_a_child_ended_is_reported),
        cmocka_unit_test(a_child_that_does_not_end_is_not_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
