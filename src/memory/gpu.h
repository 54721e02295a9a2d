/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside memory: what a GPU vendor provides, and the functions of a kind of memory built on it. The
 * calls return the vendor's own code, 0 for success; gpu.c makes the error messages. */
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
    int no_memory; /* the code for out of memory */
    int not_ready; /* and for copies under way */

    /* Once per process: the number of GPUs. */
    int (*start)(unsigned *count);
    /* Context and queue; a failure undoes both. */
    int (*open)(struct gpu *gpu);
    void (*close)(struct gpu *gpu);
    int (*identify)(unsigned device, char *text, size_t room);
    int (*room)(struct gpu *gpu, uint64_t *available); /* NULL: not available */

    int (*alloc)(struct gpu *gpu, size_t length, char **address);
    void (*free)(struct gpu *gpu, char *address);
    /* Puts a copy into the queue, which makes them in order; is the queue empty; waits until it is.
     */
    int (*begin)(struct gpu *gpu, void *to, const void *from, size_t length, enum gpu_way way);
    int (*query)(struct gpu *gpu);
    int (*wait)(struct gpu *gpu);
    int (*copy_locked)(struct gpu *gpu, void *to, const void *from, size_t length,
                       enum gpu_way way); /* NULL: begin and wait */
    int (*pin)(struct gpu *gpu, void *address, size_t length);
    void (*unpin)(struct gpu *gpu, void *address);
    int (*export_memory)(struct gpu *gpu, char *address, struct gpu_handle *handle);
    int (*import_memory)(struct gpu *gpu, const struct gpu_handle *handle, char **address);
    void (*release)(struct gpu *gpu, char *address);
    /* A descriptor of its own for memory of an allocation, and the offset there. */
    int (*dmabuf)(struct gpu *gpu, char *address, size_t length, int *fd, uint64_t *offset);
    /* How many bytes there are from an imported address on. */
    int (*span)(struct gpu *gpu, const char *address, size_t *length);

    /* The vendor's text for a code. */
    void (*words)(int code, char *text, size_t room);
};

/* Must the GPU be made current in this thread? Checked before each call of the vendor library. The
 * result is kept, and returned: after a failure it is tried again. */
bool gpu_is_new(const struct gpu *gpu);
int gpu_told(const struct gpu *gpu, int code);

/* Begins a copy and waits for it. */
int gpu_copy_one(struct gpu *gpu, void *to, const void *from, size_t length, enum gpu_way way);

/* Opens a vendor library; NULL if it is not installed. And how long a small copy may take if we
 * wait for it ourselves. */
void *gpu_library(const char *name);
extern const unsigned gpu_timeout_ms;

/* The functions of every kind of GPU memory. */
int gpu_alloc(struct region *region, size_t length, const struct memory_ops *kind);
void gpu_free(struct region *region);
int gpu_populate(struct region *region, size_t at, size_t length);
int gpu_fill(struct region *region, size_t at, const void *bytes, size_t length);
int gpu_peek(const struct region *region, size_t at, void *bytes, size_t length);
int gpu_dmabuf(const struct region *region, int *fd, uint64_t *offset);

/* An allocation that shares a block with others would be exported together with them. */
#define GPU_KIND                                                                                   \
    .page = 2 << 20, .alloc = gpu_alloc, .free = gpu_free, .populate = gpu_populate,               \
    .fill = gpu_fill, .peek = gpu_peek, .dmabuf = gpu_dmabuf

#endif
