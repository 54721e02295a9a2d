/* SPDX-License-Identifier: BSD-3-Clause */
/* The door of memory: where a buffer is. Host memory and huge pages are memfds, so that another
 * process can map them; GPU memory has the vendor's handle for that. A kind is one table;
 * memory_find knows them all. */
#ifndef WEFT_MEMORY_H
#define WEFT_MEMORY_H

#include "core/core.h"

struct memory_ops;
struct gpu;

struct region {
    const struct memory_ops *kind;
    char *address; /* NULL: not placed yet (a fabric may have to place it itself). Of a GPU: for its
                      own calls only, the CPU must not look there */
    size_t length; /* what was asked for */
    size_t mapped; /* length rounded up to whole pages */
    size_t page;
    int fd;          /* its memfd, or -1 */
    unsigned device; /* which GPU; set before alloc */
    struct gpu *gpu; /* opened by alloc, or NULL */
};

/* The owner of memory, in the order of memory_vendors. */
enum memory_vendor { MEMORY_CPU, MEMORY_AMD, MEMORY_NVIDIA, MEMORY_INTEL, MEMORY_VENDORS };
extern const char *const memory_vendors[]; /* from AMD on, as they are typed; ends with NULL */

/* A bit of each, for sets of them. */
#define MEMORY_ALL_GPUS (1U << MEMORY_AMD | 1U << MEMORY_NVIDIA | 1U << MEMORY_INTEL)

struct memory_ops {
    const char *name;
    size_t page; /* 0: the system's own */
    enum memory_vendor vendor;
    const struct gpu_ops *gpu; /* of GPUs: the vendor's calls; else NULL */

    /* Reserves length bytes; if there is not enough, the error gives the missing amount. Touches
     * no page: memory_populate does, in pieces. */
    int (*alloc)(struct region *region, size_t length, const struct memory_ops *kind);
    void (*free)(struct region *region);

    /* Makes [at, at + length) present, so that no page fault is measured. */
    int (*populate)(struct region *region, size_t at, size_t length);

    /* Bytes from the CPU's memory into the region, and back. */
    int (*fill)(struct region *region, size_t at, const void *bytes, size_t length);
    int (*peek)(const struct region *region, size_t at, void *bytes, size_t length);

    /* The region as a dma-buf, by which another device's driver reaches a GPU's memory: a
     * descriptor for the caller to close, and where in it the region begins. -ENOTSUP, without a
     * sentence, where the vendor's library gives none. NULL: not of GPUs. */
    int (*dmabuf)(const struct region *region, int *fd, uint64_t *offset);
};

/* "host", "2M", "1G", "cuda", "rocm", "ze"; NULL if there is no such kind. */
const struct memory_ops *memory_find(const char *name);

/* The same with the number of a GPU, "cuda:1", or without: 0. -EINVAL and an error message. */
int memory_choose(const char *text, const struct memory_ops **kind, unsigned *device);

/* -ENOMEM and an error message if the machine or the container does not have this many bytes. */
int memory_enough(uint64_t bytes);

/* Why buffers of these kinds, for one or both ends on this machine, cannot be had: -ENOMEM, with a
 * sentence that counts the huge pages and has the commands for all of them. Without a sentence if
 * there are enough for both. */
int memory_pages_missing(const struct memory_ops *const kinds[], int ends, size_t length);

/* From here on what is freed stays with this process, for the next of many partners: libraries
 * allocate megabytes for each connection, and page faults would take most of its time. For tools:
 * it changes the allocator of the process. */
void memory_keep_freed(void);

/* Available host memory in bytes: of the machine, or of the container if that is less. */
uint64_t memory_available(void);

extern const struct memory_ops memory_host, memory_huge_2m, memory_huge_1g;
extern const struct memory_ops memory_cuda, memory_rocm, memory_ze;

/* ---- GPUs ---- */

enum gpu_way { GPU_IN, GPU_OUT, GPU_WITHIN }; /* host to GPU, GPU to host, GPU to GPU */

/* An open GPU, with a queue of its own for copies. For the thread that opened it. */
struct gpu {
    const struct memory_ops *kind;
    unsigned device;
    uint64_t serial;              /* unique in this process */
    void *context, *queue, *more; /* the vendor's */
    /* Copies, and returns when the copy is done: 0, or the vendor's code. */
    int (*copy)(struct gpu *gpu, void *to, const void *from, size_t length, enum gpu_way way);
    /* The same if all host memory is locked by gpu_pin; may be faster for small sizes. */
    int (*copy_locked)(struct gpu *gpu, void *to, const void *from, size_t length,
                       enum gpu_way way);
    size_t small[3]; /* up to so many bytes that is used, by enum gpu_way */
};

/* What another process needs to reach a GPU's memory. */
enum { GPU_HANDLE_BYTES = 64, GPU_IDENTITY_ROOM = 48 };
struct gpu_handle {
    unsigned char bytes[GPU_HANDLE_BYTES];
    char identity[GPU_IDENTITY_ROOM]; /* of the GPU, the same in all processes */
    int fd;                           /* to be handed over too, or -1; belongs to the exporter */
};

/* The kind of memory of a vendor's GPUs; MEMORY_CPU: of the first vendor that has a GPU here. count
 * is the number of its GPUs; -ENODEV and an error message if there is none, or not this one. */
int gpu_find(enum memory_vendor vendor, unsigned device, const struct memory_ops **kind,
             unsigned *count);

/* By its number, or, unless NULL, by its identity if a GPU here has it. */
int gpu_open(const struct memory_ops *kind, unsigned device, const char *identity,
             struct gpu **gpu);
void gpu_close(struct gpu *gpu);

/* Locks host pages for the GPU's copies; -errno and an error message if that fails. */
int gpu_pin(struct gpu *gpu, void *address, size_t length);
void gpu_unpin(struct gpu *gpu, void *address);

/* Maps another process's memory for copies of this one, until it is released. -EPROTO if the driver
 * says that it has less than length bytes. */
int gpu_export(const struct region *region, struct gpu_handle *handle);
int gpu_import(struct gpu *gpu, const struct gpu_handle *handle, size_t length, char **address);
void gpu_release(struct gpu *gpu, char *address);

int gpu_copy_failed(const struct gpu *gpu, int code, size_t length, enum gpu_way way);

/* Copies under way together: begun one by one, made in this order. Whether all of them are done is
 * asked once: 1, 0 or -errno. Waiting is for an end that lets go of memory they use. */
int gpu_begin(struct gpu *gpu, void *to, const void *from, size_t length, enum gpu_way way);
int gpu_done(struct gpu *gpu);
void gpu_wait(struct gpu *gpu);

static inline int gpu_copy_locked(struct gpu *gpu, void *to, const void *from, size_t length,
                                  enum gpu_way way)
{
    int code = gpu->copy_locked(gpu, to, from, length, way);
    return code ? gpu_copy_failed(gpu, code, length, way) : 0;
}

/* Returns when the bytes are at their destination. */
static inline int gpu_copy(struct gpu *gpu, void *to, const void *from, size_t length,
                           enum gpu_way way)
{
    int code = gpu->copy(gpu, to, from, length, way);
    return code ? gpu_copy_failed(gpu, code, length, way) : 0;
}

#endif
