/* SPDX-License-Identifier: BSD-3-Clause */
/* GPUs and network devices, as far as files tell. Nothing is loaded or opened for it. */
#include "core/machine.h"
#include "tool/info.h"

#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- words that are added up ---- */

static void add(char *text, size_t room, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void add(char *text, size_t room, const char *format, ...)
{
    size_t used = strlen(text);
    va_list words;
    if (used && used + 2 < room) {
        memcpy(text + used, ", ", 3);
        used += 2;
    }
    va_start(words, format);
    vsnprintf(text + used, room - used, format, words);
    va_end(words);
}

/* ---- slots ---- */

bool slot_narrowed(const char *root, const char *folder, char *text, size_t room)
{
    char speed[64], speed_most[64], width[32], width_most[32];
    if (!system_line(root, speed, sizeof speed, "%s/current_link_speed", folder) ||
        !system_line(root, speed_most, sizeof speed_most, "%s/max_link_speed", folder) ||
        !system_line(root, width, sizeof width, "%s/current_link_width", folder) ||
        !system_line(root, width_most, sizeof width_most, "%s/max_link_width", folder))
        return false;
    bool narrow = strtoul(width, NULL, 10) < strtoul(width_most, NULL, 10);
    bool slow = strtod(speed, NULL) < strtod(speed_most, NULL);
    /* A link that is down, or none at all, says 0 or nothing that is a number. */
    if (strtoul(width, NULL, 10) == 0 || strtod(speed, NULL) <= 0)
        return false;
    snprintf(text, room, "x%s at %s of x%s at %s", width, speed, width_most, speed_most);
    return narrow || slow;
}

static void slot(const struct sight *sight, const char *folder, char *text, size_t room)
{
    char node[32], cpus[128], width[32], speed[64], path[PATH_MAX], target[PATH_MAX];
    snprintf(path, sizeof path, "%s%s/driver", sight->root, folder);
    ssize_t length = readlink(path, target, sizeof target - 1);
    if (length > 0) {
        target[length] = '\0';
        const char *base = strrchr(target, '/');
        add(text, room, "driver %s", base ? base + 1 : target);
    }
    if (system_line(sight->root, width, sizeof width, "%s/current_link_width", folder) &&
        system_line(sight->root, speed, sizeof speed, "%s/current_link_speed", folder) &&
        strtoul(width, NULL, 10))
        add(text, room, "PCIe x%s at %s", width, speed);
    if (sight->topology.nodes > 1 &&
        system_line(sight->root, node, sizeof node, "%s/numa_node", folder) && node[0] != '-') {
        add(text, room, "node %s", node);
        if (system_line(sight->root, cpus, sizeof cpus, "%s/local_cpulist", folder))
            add(text, room, "near CPUs %s", cpus);
    }
}

/* ---- GPUs ---- */

/* Through a folder of devices. */
struct tour {
    const struct sight *sight;
    struct page *page;
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

/* Display controllers and processing accelerators of those who make such; not a board's VGA. */
static void show_gpu(void *arg, const char *address)
{
    struct tour *gpus = arg;
    const char *root = gpus->sight->root;
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
        add(text, sizeof text, "%s", model);
    else
        add(text, sizeof text, "%s device 0x%04x", gpu_vendor(vendor), (unsigned)device);
    size_t before = strlen(text);
    slot(gpus->sight, folder, text, sizeof text);
    if (!strstr(text + before, "driver"))
        add(text, sizeof text, "no driver");
    page_fact(gpus->page, address, "%s", text);
    gpus->count++;
}

void devices_gpus(const struct sight *sight, struct page *page)
{
    struct tour gpus = {.sight = sight, .page = page};
    char text[256];
    page_section(page, "GPUs", "gpus", '{');
    system_each(sight->root, show_gpu, &gpus, "/sys/bus/pci/devices");
    if (system_value(sight->root, "NVRM version", text, sizeof text, "/proc/driver/nvidia/version"))
        page_fact(page, "NVIDIA's driver", "%s", text);
    if (system_line(sight->root, text, sizeof text, "/sys/module/amdgpu/version"))
        page_fact(page, "AMD's driver", "%s", text);
    if (!gpus.count)
        page_fact(page, "", "none");
    page_end(page, '}');
}

/* ---- networks ---- */

static void show_interface(void *arg, const char *name)
{
    struct tour *all = arg;
    const char *root = all->sight->root;
    char folder[300], device[320], path[PATH_MAX], text[512] = "", word[64];
    uint64_t type = 0, speed, mtu;
    snprintf(folder, sizeof folder, "/sys/class/net/%s", name);
    snprintf(device, sizeof device, "%s/device", folder);
    snprintf(path, sizeof path, "%s%s", root, device);
    bool up =
        system_line(root, word, sizeof word, "%s/operstate", folder) && strcmp(word, "down") != 0;
    /* What is virtual and down is of no use to anybody. */
    if (!*word || (!up && access(path, F_OK) != 0))
        return;
    system_number(root, &type, "%s/type", folder);
    add(text, sizeof text, "%s", type == 772 ? "loopback" : word);
    if (system_number(root, &speed, "%s/speed", folder) && speed && speed < UINT32_MAX)
        add(text, sizeof text, speed % 1000 ? "%g Gb/s" : "%.0f Gb/s", (double)speed / 1000);
    if (system_number(root, &mtu, "%s/mtu", folder))
        add(text, sizeof text, "MTU %u", (unsigned)mtu);
    slot(all->sight, device, text, sizeof text);
    page_fact(all->page, name, "%s", text);
    all->count++;
}

struct ports {
    struct tour *all;
    const char *card;
};

static void show_port(void *arg, const char *number)
{
    const struct ports *ports = arg;
    const char *root = ports->all->sight->root;
    char folder[400], text[512] = "", word[64], name[300];
    snprintf(folder, sizeof folder, "/sys/class/infiniband/%.128s/ports/%.32s", ports->card,
             number);
    if (system_line(root, word, sizeof word, "%s/link_layer", folder))
        add(text, sizeof text, "%s", word);
    if (system_line(root, word, sizeof word, "%s/state", folder)) {
        const char *colon = strstr(word, ": ");
        add(text, sizeof text, "%s", colon ? colon + 2 : word);
    }
    if (system_line(root, word, sizeof word, "%s/rate", folder))
        add(text, sizeof text, "%s", word);
    snprintf(folder, sizeof folder, "/sys/class/infiniband/%.128s/device", ports->card);
    slot(ports->all->sight, folder, text, sizeof text);
    snprintf(name, sizeof name, "%s:%s", ports->card, number);
    page_fact(ports->all->page, name, "%s", text);
    ports->all->count++;
}

static void show_card(void *arg, const char *name)
{
    struct tour *all = arg;
    system_each(all->sight->root, show_port, &(struct ports){all, name},
                "/sys/class/infiniband/%s/ports", name);
}

static void show_cxi(void *arg, const char *name)
{
    struct tour *all = arg;
    char folder[300], text[512] = "a CXI device: the bare name means this one";
    snprintf(folder, sizeof folder, "/sys/class/cxi/%s/device", name);
    slot(all->sight, folder, text, sizeof text);
    page_fact(all->page, name, "%s", text);
    all->count++;
}

void devices_network(const struct sight *sight, struct page *page)
{
    struct tour all = {.sight = sight, .page = page};
    system_each(sight->root, show_cxi, &all, "/sys/class/cxi");
    system_each(sight->root, show_card, &all, "/sys/class/infiniband");
    system_each(sight->root, show_interface, &all, "/sys/class/net");
    if (!all.count)
        page_fact(page, "", "none");
}
