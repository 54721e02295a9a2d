/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside memory: what a vendor of GPUs gives, and the functions of a kind of memory made of it.
 * A vendor's calls return his own code, 0 for success; sentences are made in gpu.c. */
#ifndef WEFT_MEMORY_GPU_H
#define WEFT_MEMORY_GPU_H

#include "memory/memory.h"

/* A function of the vendor's library, and where its address goes. */
struct gpu_symbol {
    const char *name;
    void *where;
    bool optional;
};

struct gpu_ops {
    const char *const *libraries; /* by their versioned names, in the order of trying */
    const struct gpu_symbol *symbols;
    size_t symbol_count;
    int no_memory; /* the code that says so */

    /* Once a process: how many GPUs. */
    int (*start)(unsigned *count);
    /* Context and queue; what fails is undone. */
    int (*open)(struct gpu *gpu);
    void (*close)(struct gpu *gpu);
    int (*identify)(unsigned device, char *text, size_t room);
    int (*room)(struct gpu *gpu, uint64_t *available); /* NULL: does not tell */

    int (*alloc)(struct gpu *gpu, size_t length, char **address);
    void (*free)(struct gpu *gpu, char *address);
    int (*copy)(struct gpu *gpu, void *to, const void *from, size_t length, enum gpu_way way);
    int (*copy_locked)(struct gpu *gpu, void *to, const void *from, size_t length,
                       enum gpu_way way); /* NULL: as copy */
    int (*pin)(struct gpu *gpu, void *address, size_t length);
    void (*unpin)(struct gpu *gpu, void *address);
    int (*export_memory)(struct gpu *gpu, char *address, struct gpu_handle *handle);
    int (*import_memory)(struct gpu *gpu, const struct gpu_handle *handle, char **address);
    void (*release)(struct gpu *gpu, char *address);

    /* The vendor's words for a code. */
    void (*words)(int code, char *text, size_t room);
};

/* Must the vendor be told that this thread now uses this GPU? Asked before each of his calls. What
 * he answers is noted, and returned: whoever was refused is asked again. */
bool gpu_is_new(const struct gpu *gpu);
int gpu_told(const struct gpu *gpu, int code);

/* Opens a vendor's library; NULL if it is not there. How long a copy of few bytes may take, if we
 * wait for it ourselves. */
void *gpu_library(const char *name);
extern const unsigned gpu_timeout_ms;

/* The functions of every kind of GPU memory. */
int gpu_alloc(struct region *region, size_t length, const struct memory_ops *kind);
void gpu_free(struct region *region);
int gpu_populate(struct region *region, size_t at, size_t length);
int gpu_fill(struct region *region, size_t at, const void *bytes, size_t length);
int gpu_peek(const struct region *region, size_t at, void *bytes, size_t length);

/* Allocations that share a block with others would be handed over together with them. */
#define GPU_KIND                                                                                   \
    .page = 2 << 20, .alloc = gpu_alloc, .free = gpu_free, .populate = gpu_populate,               \
    .fill = gpu_fill, .peek = gpu_peek

#endif
