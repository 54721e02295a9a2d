/* SPDX-License-Identifier: BSD-3-Clause */
/* The door of memory: where a buffer lives. Host memory and huge pages are memfds, so that
 * another process can map them. A kind is one table; memory_find knows them all. */
#ifndef WEFT_MEMORY_H
#define WEFT_MEMORY_H

#include "core/core.h"

struct memory_ops;

struct region {
    const struct memory_ops *kind;
    char *address; /* NULL: not placed yet (a fabric may have to place it itself) */
    size_t length; /* what was asked for */
    size_t mapped; /* length rounded up to whole pages */
    size_t page;
    int fd; /* the memfd behind it, or -1 */
};

struct memory_ops {
    const char *name;
    size_t page; /* 0: the system's own */

    /* Reserves length bytes; says how much is missing when there is not enough. Touches
     * nothing: memory_populate does, in pieces. */
    int (*alloc)(struct region *region, size_t length, const struct memory_ops *kind);
    void (*free)(struct region *region);

    /* Makes [at, at + length) present, so that no page fault is measured. */
    int (*populate)(struct region *region, size_t at, size_t length);

    /* Bytes from the CPU's memory into the region, and back. */
    int (*fill)(struct region *region, size_t at, const void *bytes, size_t length);
    int (*peek)(const struct region *region, size_t at, void *bytes, size_t length);
};

/* "host", "2M", "1G"; NULL if there is no such kind. */
const struct memory_ops *memory_find(const char *name);

/* -ENOMEM and a sentence if this machine or the container could not give this many bytes. */
int memory_enough(uint64_t bytes);

/* What host memory can be had now, in bytes: the machine's, or the container's if that is less. */
uint64_t memory_available(void);

extern const struct memory_ops memory_host, memory_huge_2m, memory_huge_1g;

#endif
