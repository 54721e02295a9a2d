/* SPDX-License-Identifier: BSD-3-Clause */
/* GPUs and network devices, only from files below /sys and /proc: no library is loaded, no device
 * opened. */
#include "core/machine.h"
#include "host/probe.h"
#include "host/sections.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NETWORK_MS = 5000 };

/* ---- PCIe slots ---- */

bool pcie_degraded(const char *root, const char *folder, char *text, size_t room)
{
    char speed[64], speed_max[64], width[32], width_max[32];
    if (!system_line(root, speed, sizeof speed, "%s/current_link_speed", folder) ||
        !system_line(root, speed_max, sizeof speed_max, "%s/max_link_speed", folder) ||
        !system_line(root, width, sizeof width, "%s/current_link_width", folder) ||
        !system_line(root, width_max, sizeof width_max, "%s/max_link_width", folder))
        return false;
    bool narrow = strtoul(width, NULL, 10) < strtoul(width_max, NULL, 10);
    bool slow = strtod(speed, NULL) < strtod(speed_max, NULL);
    /* 0, or no number: the link is down, or there is none. */
    if (strtoul(width, NULL, 10) == 0 || strtod(speed, NULL) <= 0)
        return false;
    snprintf(text, room, "x%s at %s, its maximum is x%s at %s", width, speed, width_max, speed_max);
    return narrow || slow;
}

static void add_driver(const struct host_state *state, const char *folder, char *text, size_t room)
{
    char path[PATH_MAX], target[PATH_MAX];
    snprintf(path, sizeof path, "%s%s/driver", state->root, folder);
    ssize_t length = readlink(path, target, sizeof target - 1);
    if (length <= 0)
        return;
    target[length] = '\0';
    const char *base = strrchr(target, '/');
    list_add(text, room, ", ", "driver %s", base ? base + 1 : target);
}

/* Driver, PCIe link and NUMA node of a device. */
static void add_slot(const struct host_state *state, const char *folder, char *text, size_t room)
{
    char node[32], cpus[128], width[32], speed[64];
    add_driver(state, folder, text, room);
    if (system_line(state->root, width, sizeof width, "%s/current_link_width", folder) &&
        system_line(state->root, speed, sizeof speed, "%s/current_link_speed", folder) &&
        strtoul(width, NULL, 10))
        list_add(text, room, ", ", "PCIe x%s at %s", width, speed);
    if (state->topology.nodes > 1 &&
        system_line(state->root, node, sizeof node, "%s/numa_node", folder) && node[0] != '-') {
        list_add(text, room, ", ", "NUMA node %s", node);
        if (system_line(state->root, cpus, sizeof cpus, "%s/local_cpulist", folder))
            list_add(text, room, ", ", "local CPUs %s", cpus);
    }
}

/* ---- GPUs ---- */

/* What was printed of a folder of devices. */
struct device_list {
    const struct host_state *state;
    struct printer *printer;
    int count;
};

static const char *gpu_vendor(uint64_t vendor)
{
    static const struct {
        uint64_t vendor;
        const char *name;
    } vendors[] = {{0x10de, "NVIDIA"}, {0x1002, "AMD"}, {0x8086, "Intel"}, {0x1da3, "Habana"}};
    for (size_t i = 0; i < LENGTH(vendors); i++)
        if (vendors[i].vendor == vendor)
            return vendors[i].name;
    return NULL;
}

/* Display controllers and accelerators of GPU vendors; not the VGA controller of a server board. */
static void print_gpu(void *arg, const char *address)
{
    struct device_list *gpus = arg;
    const char *root = gpus->state->root;
    char folder[300], text[512] = "", model[128];
    uint64_t class, vendor, device = 0;
    snprintf(folder, sizeof folder, "/sys/bus/pci/devices/%s", address);
    if (!system_number(root, &class, "%s/class", folder) ||
        !system_number(root, &vendor, "%s/vendor", folder) ||
        (class >> 16 != 0x03 && class >> 16 != 0x12) || !gpu_vendor(vendor))
        return;
    system_number(root, &device, "%s/device", folder);
    if (system_value(root, "Model", model, sizeof model, "/proc/driver/nvidia/gpus/%s/information",
                     address) ||
        system_line(root, model, sizeof model, "%s/product_name", folder))
        list_add(text, sizeof text, ", ", "%s", model);
    else
        list_add(text, sizeof text, ", ", "%s device 0x%04x", gpu_vendor(vendor), (unsigned)device);
    size_t before = strlen(text);
    add_slot(gpus->state, folder, text, sizeof text);
    if (!strstr(text + before, "driver"))
        list_add(text, sizeof text, ", ", "no driver");
    print_value(gpus->printer, address, "%s", text);
    gpus->count++;
}

void gpus_section(const struct host_state *state, struct printer *printer)
{
    struct device_list gpus = {.state = state, .printer = printer};
    char text[256];
    print_section(printer, "GPUs", "gpus", '{');
    system_each(state->root, print_gpu, &gpus, "/sys/bus/pci/devices");
    if (system_value(state->root, "NVRM version", text, sizeof text, "/proc/driver/nvidia/version"))
        print_value(printer, "NVIDIA driver", "%s", text);
    if (system_line(state->root, text, sizeof text, "/sys/module/amdgpu/version"))
        print_value(printer, "AMD driver", "%s", text);
    if (!gpus.count)
        print_value(printer, "", "none");
    print_section_end(printer, '}');
}

/* ---- network devices ---- */

static void print_interface(void *arg, const char *name)
{
    struct device_list *list = arg;
    const char *root = list->state->root;
    char folder[300], device[320], path[PATH_MAX], text[512] = "", word[64];
    uint64_t type = 0, speed, mtu;
    snprintf(folder, sizeof folder, "/sys/class/net/%s", name);
    snprintf(device, sizeof device, "%s/device", folder);
    snprintf(path, sizeof path, "%s%s", root, device);
    bool up =
        system_line(root, word, sizeof word, "%s/operstate", folder) && strcmp(word, "down") != 0;
    /* A virtual interface that is down is left out. */
    if (!*word || (!up && access(path, F_OK) != 0))
        return;
    system_number(root, &type, "%s/type", folder);
    list_add(text, sizeof text, ", ", "%s", type == 772 ? "loopback" : word);
    if (system_number(root, &speed, "%s/speed", folder) && speed && speed < UINT32_MAX)
        list_add(text, sizeof text, ", ", speed % 1000 ? "%g Gb/s" : "%.0f Gb/s",
                 (double)speed / 1000);
    if (system_number(root, &mtu, "%s/mtu", folder))
        list_add(text, sizeof text, ", ", "MTU %u", (unsigned)mtu);
    add_slot(list->state, device, text, sizeof text);
    print_value(list->printer, name, "%s", text);
    list->count++;
}

struct ports {
    struct device_list *list;
    const char *device;
};

static void print_port(void *arg, const char *number)
{
    const struct ports *ports = arg;
    const char *root = ports->list->state->root;
    char folder[400], text[512] = "", word[64], name[300];
    snprintf(folder, sizeof folder, "/sys/class/infiniband/%.128s/ports/%.32s", ports->device,
             number);
    if (system_line(root, word, sizeof word, "%s/link_layer", folder))
        list_add(text, sizeof text, ", ", "%s", word);
    if (system_line(root, word, sizeof word, "%s/state", folder)) {
        const char *colon = strstr(word, ": ");
        list_add(text, sizeof text, ", ", "%s", colon ? colon + 2 : word);
    }
    if (system_line(root, word, sizeof word, "%s/rate", folder))
        list_add(text, sizeof text, ", ", "%s", word);
    snprintf(folder, sizeof folder, "/sys/class/infiniband/%.128s/device", ports->device);
    add_slot(ports->list->state, folder, text, sizeof text);
    snprintf(name, sizeof name, "%s:%s", ports->device, number);
    print_value(ports->list->printer, name, "%s", text);
    ports->list->count++;
}

static void print_rdma_device(void *arg, const char *name)
{
    struct device_list *list = arg;
    system_each(list->state->root, print_port, &(struct ports){list, name},
                "/sys/class/infiniband/%s/ports", name);
}

static void print_cxi(void *arg, const char *name)
{
    struct device_list *list = arg;
    char folder[300], text[512];
    snprintf(text, sizeof text, "CXI device; --device %.100s selects it", name);
    snprintf(folder, sizeof folder, "/sys/class/cxi/%s/device", name);
    add_slot(list->state, folder, text, sizeof text);
    print_value(list->printer, name, "%s", text);
    list->count++;
}

void network_devices(const struct host_state *state, struct printer *printer)
{
    struct device_list list = {.state = state, .printer = printer};
    system_each(state->root, print_cxi, &list, "/sys/class/cxi");
    system_each(state->root, print_rdma_device, &list, "/sys/class/infiniband");
    system_each(state->root, print_interface, &list, "/sys/class/net");
    if (!list.count)
        print_value(printer, "", "none");
}

static void network_work(const void *arg, FILE *out)
{
    network_devices(arg, &(struct printer){.format = PRINT_LINES, .out = out});
}

void network_section(const struct host_state *state, struct printer *printer)
{
    struct probe probe;
    print_section(printer, "Network devices", "network", '{');
    int status = probe_run(&probe, network_work, state, NETWORK_MS);
    char *rest = probe.text, *line;
    while (rest && (line = strsep(&rest, "\n"))) {
        const char *name = strsep(&line, "\t");
        if (line)
            print_value(printer, name, "%s", line);
    }
    if (status)
        print_value(printer, "error", "%s, while reading below /sys/class", fail_reason());
    probe_free(&probe);
    print_section_end(printer, '}');
}
