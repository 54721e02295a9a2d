/* SPDX-License-Identifier: BSD-3-Clause */
/* GPUs and network devices, only from files below /sys and /proc: no library is loaded, no device
 * opened. */
#include "core/machine.h"
#include "host/probe.h"
#include "host/sections.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NETWORK_MS = 5000, WORD = 128 };

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

/* ---- a device ---- */

/* Empty texts and numbers of 0 are not known. */
struct device {
    const char *name, *kind; /* gpu, cxi, infiniband, ethernet, loopback */
    char model[WORD], state[64], link_layer[64], rate[64];
    uint64_t speed_mbits, mtu_bytes;
    char driver[64], pcie_width[32], pcie_speed[64], numa_node[32], local_cpus[WORD];
};

/* What was printed of a folder of devices. */
struct device_list {
    const struct host_state *state;
    struct printer *printer;
    int count;
};

static void find_driver(const struct host_state *state, const char *folder, struct device *d)
{
    char path[PATH_MAX], target[PATH_MAX];
    snprintf(path, sizeof path, "%s%s/driver", state->root, folder);
    ssize_t length = readlink(path, target, sizeof target - 1);
    if (length <= 0)
        return;
    target[length] = '\0';
    const char *base = strrchr(target, '/');
    snprintf(d->driver, sizeof d->driver, "%.63s", base ? base + 1 : target);
}

/* Driver, PCIe link and NUMA node. */
static void find_slot(const struct host_state *state, const char *folder, struct device *d)
{
    const char *root = state->root;
    find_driver(state, folder, d);
    if (!system_line(root, d->pcie_width, sizeof d->pcie_width, "%s/current_link_width", folder) ||
        !system_line(root, d->pcie_speed, sizeof d->pcie_speed, "%s/current_link_speed", folder) ||
        !strtoul(d->pcie_width, NULL, 10))
        d->pcie_width[0] = d->pcie_speed[0] = '\0';
    if (!system_line(root, d->numa_node, sizeof d->numa_node, "%s/numa_node", folder) ||
        d->numa_node[0] == '-')
        d->numa_node[0] = '\0';
    else
        system_line(root, d->local_cpus, sizeof d->local_cpus, "%s/local_cpulist", folder);
}

static void add_slot(const struct host_state *state, const struct device *d, char *text,
                     size_t room)
{
    if (*d->driver)
        list_add(text, room, ", ", "driver %s", d->driver);
    if (*d->pcie_width)
        list_add(text, room, ", ", "PCIe x%s at %s", d->pcie_width, d->pcie_speed);
    if (state->topology.nodes > 1 && *d->numa_node) {
        list_add(text, room, ", ", "NUMA node %s", d->numa_node);
        if (*d->local_cpus)
            list_add(text, room, ", ", "local CPUs %s", d->local_cpus);
    }
}

static void device_text(const struct host_state *state, const struct device *d, char *text,
                        size_t room)
{
    bool cxi = strcmp(d->kind, "cxi") == 0, gpu = strcmp(d->kind, "gpu") == 0;
    text[0] = '\0';
    if (cxi)
        list_add(text, room, ", ", "CXI device; --device %.100s selects it", d->name);
    const char *const words[] = {d->model, d->link_layer,
                                 strcmp(d->kind, "loopback") == 0 ? d->kind : d->state, d->rate};
    for (size_t i = 0; i < LENGTH(words); i++)
        if (*words[i])
            list_add(text, room, ", ", "%s", words[i]);
    if (d->speed_mbits && !*d->rate)
        list_add(text, room, ", ", d->speed_mbits % 1000 ? "%g Gb/s" : "%.0f Gb/s",
                 (double)d->speed_mbits / 1000);
    if (d->mtu_bytes)
        list_add(text, room, ", ", "MTU %u", (unsigned)d->mtu_bytes);
    add_slot(state, d, text, room);
    if (gpu && !*d->driver)
        list_add(text, room, ", ", "no driver");
}

static void number_or_null(struct json *j, const char *key, const char *text)
{
    json_number(j, key, *text ? strtod(text, NULL) : NAN);
}

static void device_json(const struct device *d, struct json *j)
{
    const struct {
        const char *key, *text;
    } texts[] = {{"model", d->model},
                 {"state", d->state},
                 {"link_layer", d->link_layer},
                 {"driver", d->driver},
                 {"local_cpus", d->local_cpus}};
    json_open(j, NULL, '{');
    json_text(j, "name", d->name);
    json_text(j, "kind", d->kind);
    for (size_t i = 0; i < LENGTH(texts); i++)
        json_text(j, texts[i].key, *texts[i].text ? texts[i].text : NULL);
    json_number(j, "speed_mbits", d->speed_mbits ? (double)d->speed_mbits : NAN);
    json_number(j, "mtu_bytes", d->mtu_bytes ? (double)d->mtu_bytes : NAN);
    number_or_null(j, "pcie_lanes", d->pcie_width);
    number_or_null(j, "pcie_gt_per_s", d->pcie_speed);
    number_or_null(j, "numa_node", d->numa_node);
    json_close(j, '}');
}

/* For JSON, a child process writes each device as a line that is whole or not there. */
static void device_print(struct device_list *list, const struct device *d)
{
    struct printer *printer = list->printer;
    char text[512];
    list->count++;
    if (printer->format == PRINT_JSON) {
        device_json(d, &printer->json);
    } else if (printer->format == PRINT_OBJECTS) {
        struct json line = {.out = printer->out};
        device_json(d, &line);
        fputc('\n', printer->out);
    } else {
        device_text(list->state, d, text, sizeof text);
        print_value(printer, d->name, "%s", text);
    }
}

/* ---- GPUs ---- */

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
    struct device d = {.name = address, .kind = "gpu"};
    char folder[300];
    uint64_t class, vendor, device = 0;
    snprintf(folder, sizeof folder, "/sys/bus/pci/devices/%s", address);
    if (!system_number(root, &class, "%s/class", folder) ||
        !system_number(root, &vendor, "%s/vendor", folder) ||
        (class >> 16 != 0x03 && class >> 16 != 0x12) || !gpu_vendor(vendor))
        return;
    system_number(root, &device, "%s/device", folder);
    if (!system_value(root, "Model", d.model, sizeof d.model,
                      "/proc/driver/nvidia/gpus/%s/information", address) &&
        !system_line(root, d.model, sizeof d.model, "%s/product_name", folder))
        snprintf(d.model, sizeof d.model, "%s device 0x%04x", gpu_vendor(vendor), (unsigned)device);
    find_slot(gpus->state, folder, &d);
    device_print(gpus, &d);
}

static void print_gpu_driver(struct printer *printer, const char *name, const char *key,
                             const char *version)
{
    if (printer->format == PRINT_JSON)
        json_text(&printer->json, key, *version ? version : NULL);
    else if (*version)
        print_value(printer, name, "%s", version);
}

void gpus_section(const struct host_state *state, struct printer *printer)
{
    struct device_list gpus = {.state = state, .printer = printer};
    char nvidia[256] = "", amd[256] = "";
    print_section(printer, "GPUs", "gpus", '[');
    system_each(state->root, print_gpu, &gpus, "/sys/bus/pci/devices");
    print_section_end(printer, ']');
    system_value(state->root, "NVRM version", nvidia, sizeof nvidia, "/proc/driver/nvidia/version");
    system_line(state->root, amd, sizeof amd, "/sys/module/amdgpu/version");
    print_gpu_driver(printer, "NVIDIA driver", "nvidia_driver", nvidia);
    print_gpu_driver(printer, "AMD driver", "amd_driver", amd);
    if (!gpus.count && printer->format != PRINT_JSON)
        print_value(printer, "", "none");
}

/* ---- network devices ---- */

static void print_interface(void *arg, const char *name)
{
    struct device_list *list = arg;
    const char *root = list->state->root;
    struct device d = {.name = name, .kind = "ethernet"};
    char folder[300], device[320], path[PATH_MAX];
    uint64_t type = 0;
    snprintf(folder, sizeof folder, "/sys/class/net/%s", name);
    snprintf(device, sizeof device, "%s/device", folder);
    snprintf(path, sizeof path, "%s%s", root, device);
    bool up = system_line(root, d.state, sizeof d.state, "%s/operstate", folder) &&
              strcmp(d.state, "down") != 0;
    /* A virtual interface that is down is left out. */
    if (!*d.state || (!up && access(path, F_OK) != 0))
        return;
    system_number(root, &type, "%s/type", folder);
    d.kind = type == 772 ? "loopback" : d.kind;
    if (!system_number(root, &d.speed_mbits, "%s/speed", folder) || d.speed_mbits >= UINT32_MAX)
        d.speed_mbits = 0;
    system_number(root, &d.mtu_bytes, "%s/mtu", folder);
    find_slot(list->state, device, &d);
    device_print(list, &d);
}

struct ports {
    struct device_list *list;
    const char *device;
};

static void print_port(void *arg, const char *number)
{
    const struct ports *ports = arg;
    const char *root = ports->list->state->root;
    char folder[400], word[64], name[300];
    struct device d = {.name = name, .kind = "infiniband"};
    snprintf(name, sizeof name, "%s:%s", ports->device, number);
    snprintf(folder, sizeof folder, "/sys/class/infiniband/%.128s/ports/%.32s", ports->device,
             number);
    system_line(root, d.link_layer, sizeof d.link_layer, "%s/link_layer", folder);
    if (system_line(root, word, sizeof word, "%s/state", folder)) {
        const char *colon = strstr(word, ": ");
        snprintf(d.state, sizeof d.state, "%s", colon ? colon + 2 : word);
    }
    /* "200 Gb/sec (4X HDR)" */
    if (system_line(root, d.rate, sizeof d.rate, "%s/rate", folder))
        d.speed_mbits = (uint64_t)(strtod(d.rate, NULL) * 1000);
    snprintf(folder, sizeof folder, "/sys/class/infiniband/%.128s/device", ports->device);
    find_slot(ports->list->state, folder, &d);
    device_print(ports->list, &d);
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
    struct device d = {.name = name, .kind = "cxi"};
    char folder[300];
    snprintf(folder, sizeof folder, "/sys/class/cxi/%s/device", name);
    find_slot(list->state, folder, &d);
    device_print(list, &d);
}

void network_devices(const struct host_state *state, struct printer *printer)
{
    struct device_list list = {.state = state, .printer = printer};
    system_each(state->root, print_cxi, &list, "/sys/class/cxi");
    system_each(state->root, print_rdma_device, &list, "/sys/class/infiniband");
    system_each(state->root, print_interface, &list, "/sys/class/net");
    if (!list.count && printer->format == PRINT_LINES)
        print_value(printer, "", "none");
}

static void network_work(const void *arg, FILE *out)
{
    network_devices(arg, &(struct printer){.format = PRINT_LINES, .out = out});
}

static void network_objects(const void *arg, FILE *out)
{
    network_devices(arg, &(struct printer){.format = PRINT_OBJECTS, .out = out});
}

/* The last line of a child that was killed may be cut. */
static void take_objects(struct printer *printer, char *text)
{
    for (char *end; text && (end = strchr(text, '\n')); text = end + 1) {
        *end = '\0';
        json_raw(&printer->json, NULL, text);
    }
}

static void take_lines(struct printer *printer, char *text)
{
    char *rest = text, *line;
    while (rest && (line = strsep(&rest, "\n"))) {
        const char *name = strsep(&line, "\t");
        if (line)
            print_value(printer, name, "%s", line);
    }
}

void network_section(const struct host_state *state, struct printer *printer)
{
    struct probe probe;
    bool json = printer->format == PRINT_JSON;
    char error[512];
    print_section(printer, "Network devices", "network", '[');
    int status = probe_run(&probe, json ? network_objects : network_work, state, NETWORK_MS);
    snprintf(error, sizeof error, "%s, while reading below /sys/class", fail_reason());
    if (json)
        take_objects(printer, probe.text);
    else
        take_lines(printer, probe.text);
    probe_free(&probe);
    print_section_end(printer, ']');
    if (json)
        json_text(&printer->json, "network_error", status ? error : NULL);
    else if (status)
        print_value(printer, "error", "%s", error);
}
