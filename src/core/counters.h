/* SPDX-License-Identifier: BSD-3-Clause */
/* A door of core: the counters that the kernel keeps of a network device, from files below /sys:
 * CXI telemetry, InfiniBand counters and hw_counters, statistics of network interfaces. */
#ifndef WEFT_COUNTERS_H
#define WEFT_COUNTERS_H

#include "core/core.h"

enum { COUNTER_NAME = 64, COUNTERS_MOST = 90, COUNTERS_WHICH = 384 };

/* One of them: its value, or how far it has come. */
struct counter {
    char name[COUNTER_NAME]; /* of its file */
    uint64_t value;
    bool known;
};

/* Those of a device. */
struct counters {
    char device[64]; /* "eth0", "mlx5_0:1", "cxi0"; "" if there is none */
    char why[160];   /* why there are none, or "" */
    unsigned count;
    struct counter list[COUNTERS_MOST];
};

/* Those of both ends, for each pair of devices: the client's, then the server's. */
struct counted {
    unsigned pairs; /* 0: nobody asked, or they are not known */
    const struct counters *ends;
};

/* Which ones: these words, or names separated by commas. Usual: all there are; of the many of CXI,
 * those of traffic, congestion and errors. */
#define COUNTERS_USUAL  "usual"
#define COUNTERS_ERRORS "errors"

/* -EINVAL and an error message if it is none of that. */
int counters_check(const char *which);

/* Are they names, which a device may not have? */
bool counters_listed(const char *which);

/* Is it a name that a counter, a device can have? Names come from the other end, too. */
bool counter_named(const char *name);
bool counter_device(const char *device);

/* Does it count what should not happen? By its name. */
bool counter_is_error(const char *name);

/* Reads those of a device. A name that the device does not have is there, and not known. Drivers
 * that keep a copy of InfiniBand's hw_counters are given the time to renew it: may take some ms. */
void counters_read(struct counters *counters, const char *root, const char *device,
                   const char *which);

/* Makes differences of what was read now. One that went back was reset, or has wrapped: it is not
 * known how far it came; neither is one that stays at the highest value it can have. */
void counters_since(struct counters *now, const struct counters *before);

/* By its name, or NULL. */
const struct counter *counters_find(const struct counters *counters, const char *name);

#endif
