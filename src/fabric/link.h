/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside fabric, also for modules: the rate of a network device's link, as the kernel has it. */
#ifndef WEFT_FABRIC_LINK_H
#define WEFT_FABRIC_LINK_H

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The number that a file begins with, or 0. */
static inline double link_file(const char *path)
{
    double number = 0;
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    if (fscanf(file, "%lf", &number) != 1 || !(number > 0))
        number = 0;
    fclose(file);
    return number;
}

/* Of an interface, "eth0", or of a port, "mlx5_0:1". 0: not known; so of loopback devices. */
static inline uint64_t link_bits_per_s(const char *root, const char *device)
{
    char path[4096];
    const char *colon = strchr(device, ':');
    if (strchr(device, '/'))
        return 0;
    if (colon) {
        snprintf(path, sizeof path, "%s/sys/class/infiniband/%.*s/ports/%s/rate", root,
                 (int)(colon - device), device, colon + 1);
        return (uint64_t)(link_file(path) * 1e9);
    }
    snprintf(path, sizeof path, "%s/sys/class/net/%s/speed", root, device);
    return (uint64_t)(link_file(path) * 1e6);
}

#endif
