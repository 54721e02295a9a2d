/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices and CPUs of the pairs of an end. */
#include "tool/place.h"
#include "tool/local.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

const char *const place_words[] = {"near", NULL};

/* ---- devices ---- */

/* Where the device at text ends: at a comma that no setting, NAME=VALUE, follows. */
static size_t length_of(const char *text)
{
    const char *comma = strchr(text, ',');
    while (comma && comma[1 + strcspn(comma + 1, ":=,")] == '=')
        comma = strchr(comma + 1, ',');
    return comma ? (size_t)(comma - text) : strlen(text);
}

static const char *next(const char *text)
{
    text += length_of(text);
    return *text ? text + 1 : NULL;
}

int place_devices(const char *text, unsigned *count)
{
    *count = 0;
    for (const char *at = text; at; at = next(at), ++*count)
        if (!length_of(at))
            return fail(-EINVAL, "--device is a list with an empty name: \"%s\"", text);
        else if (length_of(at) >= FABRIC_DEVICE_MAX)
            return fail(-EINVAL,
                        "--device is too long: \"%s\" (accepted: up to %d characters for each)",
                        text, FABRIC_DEVICE_MAX - 1);
    return 0;
}

void place_device(const char *text, unsigned number, char device[FABRIC_DEVICE_MAX])
{
    const char *after = text;
    while (number-- && (after = next(after)))
        text = after;
    snprintf(device, FABRIC_DEVICE_MAX, "%.*s", (int)length_of(text), text);
}

/* ---- CPUs ---- */

/* The NIC in a device: "cxi0", "ofi:tcp/eth0", "uct:rc_mlx5/mlx5_0:1". What is built in has none.
 */
static bool nic_of(const char *device, char name[PLACE_CPU])
{
    char fabric[32];
    size_t length = strcspn(device, ":");
    const char *rest = device + length, *slash;
    snprintf(fabric, sizeof fabric, "%.*s", (int)length, device);
    if (!*rest && !fabric_real_cxi(device))
        return false;
    if (*rest && fabric_built_in(fabric))
        return false;
    rest = *rest ? rest + 1 : device;
    slash = strrchr(rest, '/');
    rest = slash ? slash + 1 : rest;
    return snprintf(name, PLACE_CPU, "%.*s", (int)strcspn(rest, ":,"), rest) < PLACE_CPU;
}

static void find_near(struct place *p, const char *device)
{
    char list[512];
    if (!nic_of(device, p->near) || !cpu_near("", p->near, list, sizeof list) ||
        !(p->count = cpu_choices("", list, p->cpus, LENGTH(p->cpus))))
        *p->near = '\0';
}

/* A CPU that this process may not use is refused when it is pinned. */
static void begin_at(struct place *p, int64_t cpu)
{
    while (p->first < p->count && p->cpus[p->first] != cpu)
        p->first++;
    if (p->first == p->count) {
        p->cpus[0] = cpu;
        p->first = 0;
        p->count = 1;
    }
}

void place_open(struct place *p, const int64_t request[2], const char *device, unsigned pairs,
                bool local)
{
    *p = (struct place){.count = 0};
    if (request[0] < 0)
        find_near(p, device);
    if (request[0] <= OPT_WORD && !p->count)
        warn("--cpu near has no effect: the NUMA node of %s is not known", device);
    if (p->count || (request[0] < 0 && !local))
        return;
    p->count = cpu_choices("", NULL, p->cpus, LENGTH(p->cpus));
    int64_t cpus[2] = {request[0], -1};
    if (local && pairs == 1)
        local_place(request, cpus);
    if (cpus[0] >= 0)
        begin_at(p, cpus[0]);
}

int64_t place_cpu(const struct place *p, unsigned number)
{
    return p->count ? p->cpus[(p->first + number) % p->count] : -1;
}

int64_t place_server(const struct place *p, const int64_t request[2], unsigned pairs)
{
    int64_t cpus[2];
    local_place(request, cpus);
    if (request[1] >= 0 || (pairs == 1 && !*p->near))
        return cpus[1];
    return place_cpu(p, (size_t)2 * pairs <= p->count ? pairs : 1);
}
