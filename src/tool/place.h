/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside tool: which devices and CPUs the pairs of an end have. */
#ifndef WEFT_TOOL_PLACE_H
#define WEFT_TOOL_PLACE_H

#include "core/cpu.h"
#include "fabric/choose.h"

/* "cxi0,cxi1": how many devices, and each of them. Settings stay with their device:
 * "null:delay=1ms,jitter=1us". -EINVAL and an error message. */
enum { PLACE_DEVICES = 2048, PLACE_CPU = 96 };
int place_devices(const char *text, unsigned *count);
void place_device(const char *text, unsigned number, char device[FABRIC_DEVICE_MAX]);

struct place {
    int64_t cpus[CPU_CHOICES];
    size_t count, first;  /* 0: nothing is pinned */
    char near[PLACE_CPU]; /* the NIC that decided, or "" */
};

/* request is the option's: A, or place_words' near, or -1. For so many pairs here; local: this end
 * starts the other one. */
extern const char *const place_words[];
void place_open(struct place *place, const int64_t request[2], const char *device, unsigned pairs,
                bool local);

/* Of a pair, here; -1: any. Pairs follow each other from the first CPU on. */
int64_t place_cpu(const struct place *place, unsigned number);

/* The first one of the server that this end starts. */
int64_t place_server(const struct place *place, const int64_t request[2], unsigned pairs);

#endif
