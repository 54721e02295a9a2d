/* SPDX-License-Identifier: BSD-3-Clause */
/* A door of core: on which CPUs this thread runs, and the other end. */
#ifndef WEFT_CPU_H
#define WEFT_CPU_H

#include "core/core.h"

/* Pins this thread, and what it starts, to a CPU. */
int cpu_pin(int64_t cpu);

/* Two of the allowed CPUs, on two cores that share their last-level cache if possible. Returns the
 * number of allowed CPUs. */
int cpu_pair(int64_t pair[2]);

/* Those CPUs of a list, "0-3,8", that this process may use, or all of them if it is NULL: one
 * thread of each core first. root is as in machine.h. Returns how many, at most room. */
enum { CPU_CHOICES = 1024 };
size_t cpu_choices(const char *root, const char *list, int64_t *cpus, size_t room);

/* "0,2-4", in that order, or "near": those of the NIC's NUMA node, which are not known yet. -EINVAL
 * and an error message that begins with what. */
struct cpu_list {
    size_t count;
    bool near;
    int64_t cpus[CPU_CHOICES];
};
int cpu_list_parse(struct cpu_list *list, const char *text, const char *what);
/* As it would be typed, one by one. */
void cpu_list_text(const struct cpu_list *list, char *text, size_t room);

/* The CPUs of the NUMA node of a NIC, by its name in /sys/class; false: not known. */
bool cpu_near(const char *root, const char *name, char *list, size_t room);

/* The CPUs this thread may use and the machine they are on, as lines for the other end. */
int cpu_describe(struct msg *text);

/* Must the two ends take turns on one CPU? mine and theirs are such lines. */
bool cpu_shared(const struct msg *mine, const struct msg *theirs);

/* Are they on one machine, and may the scheduler put both on one CPU? */
bool cpu_roams(const struct msg *mine, const struct msg *theirs);

#endif
