/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside host: the sections of `weft info`. Every function that reads files takes them from below
 * state->root. */
#ifndef WEFT_HOST_SECTIONS_H
#define WEFT_HOST_SECTIONS_H

#include "host/host.h"
#include "host/printer.h"

/* The first four, for programs. */
void typed_section(const struct host_state *state, struct json *json);

void machine_section(const struct host_state *state, struct printer *printer);
void caches_section(const struct host_state *state, struct printer *printer);
void clocks_section(const struct host_state *state, struct printer *printer);
void memory_section(const struct host_state *state, struct printer *printer);
void noise_section(const struct host_state *state, struct printer *printer);

/* Devices. Neither loads a library or opens a device. A driver that hangs does so when its files
 * are read, so network_section reads them in a child process; network_devices is its work. */
void gpus_section(const struct host_state *state, struct printer *printer);
void network_section(const struct host_state *state, struct printer *printer);
void network_devices(const struct host_state *state, struct printer *printer);

/* Link, firmware, services and counters of CXI devices, also by a child process. */
void cxi_section(const struct host_state *state, struct printer *printer);

/* Every fabric, each asked by a child process of its own. */
void fabrics_section(const struct host_state *state, struct printer *printer);

/* True if the PCIe link of a device, given by its folder in /sys, is narrower or slower than its
 * maximum; text then says so. */
bool pcie_degraded(const char *root, const char *folder, char *text, size_t room);

/* "madvise" in "always [madvise] never", which it changes. */
const char *host_selected(char *text);

/* Capabilities of this process: bits of CapEff in /proc/self/status. */
enum capability { CAPABILITY_IPC_LOCK = 14, CAPABILITY_SYS_PTRACE = 19 };
bool host_capable(const struct host_state *state, enum capability capability);

#endif
