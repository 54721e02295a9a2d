/* SPDX-License-Identifier: BSD-3-Clause */
/* Which fabric carries a run for which nobody named one: both ends say what they are and have, and
 * both decide alike. No module is loaded for it. */
#include "fabric/choose.h"
#include "fabric/fabric.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifndef WEFT_CXI_FOLDER
#define WEFT_CXI_FOLDER "/sys/class/cxi"
#endif

bool fabric_real_cxi(const char *device)
{
    char path[FABRIC_DEVICE_MAX + 32];
    if (!device || !*device || strchr(device, '/') || *device == '.')
        return false;
    int n = snprintf(path, sizeof path, WEFT_CXI_FOLDER "/%s", device);
    return n > 0 && (size_t)n < sizeof path && access(path, F_OK) == 0;
}

/* Can the device be used through its own library? Looked at only where there is such a device. */
static bool native_cxi(const char *device)
{
    if (!fabric_real_cxi(device) || !module_exists("cxi"))
        return false;
    void *library = dlopen("libcxi.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (library)
        dlclose(library);
    return library;
}

int fabric_describe(const char *device, struct msg *text)
{
    char host[64], network[64];
    host_id(host, sizeof host);
    host_network(network, sizeof network);
    return msg_add(text, ".host=%s\n.network=%s\n.uct=%d\n.ofi=%d\n.cxi=%d\n.libcxi=%d\n", host,
                   network, module_exists("uct"), module_exists("ofi"), fabric_real_cxi(device),
                   native_cxi(device));
}

static bool has(const struct msg *text, const char *key)
{
    uint64_t number;
    return !msg_number(text, key, &number) && number;
}

static bool same(const struct msg *mine, const struct msg *theirs, const char *key)
{
    char here[64], there[64];
    return !msg_value(mine, key, here, sizeof here) &&
           !msg_value(theirs, key, there, sizeof there) && *here && strcmp(here, there) == 0;
}

bool fabric_one_machine(const struct msg *mine, const struct msg *theirs)
{
    return same(mine, theirs, ".host");
}

static int no_module(const char *what)
{
    return fail(-ENODEV,
                "%s: this needs the module for libfabric (weft-ofi.so, and Debian's package "
                "libfabric1) at both ends",
                what);
}

static int put(char *text, size_t room, const char *fabric, const char *device)
{
    int n = snprintf(text, room, "%s%s", fabric, device);
    return n > 0 && (size_t)n < room ? 0 : fail(-EINVAL, "a device name that is too long");
}

int fabric_between(const struct msg *mine, const struct msg *theirs, const char *device,
                   bool trusted, char *text, size_t room, const char **why)
{
    bool ofi = has(mine, ".ofi") && has(theirs, ".ofi");
    *why = "";
    if (device && has(mine, ".cxi") && has(theirs, ".cxi")) {
        *why = "a CXI device at both ends";
        if (has(mine, ".libcxi") && has(theirs, ".libcxi"))
            return put(text, room, "cxi:", device);
        return ofi ? put(text, room, "ofi:cxi/", device) : no_module(*why);
    }
    bool one_machine = same(mine, theirs, ".host");
    if (one_machine && same(mine, theirs, ".network"))
        return device ? put(text, room, "soft:", device) : put(text, room, "soft", "");
    if (one_machine)
        *why = device ? "the ends are on two networks of one machine, without CXI devices"
                      : "the ends are on two networks of one machine";
    else
        *why = device ? "the ends are on two machines, without CXI devices"
                      : "the ends are on two machines";
    if (!device && trusted && has(mine, ".uct") && has(theirs, ".uct"))
        return put(text, room, "uct:tcp", "");
    return ofi ? put(text, room, "ofi:tcp", "") : no_module(*why);
}
