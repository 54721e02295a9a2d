/* SPDX-License-Identifier: BSD-3-Clause */
/* NVIDIA's GPUs, by the CUDA driver library. The device's primary context is used, which spins
 * while it waits; every open GPU has a stream of its own, and a copy ends with its
 * synchronisation: without it, copies within the GPU, and small ones from the host, are merely
 * under way when the call returns. */
#include "memory/gpu.h"

#include <stdio.h>
#include <string.h>

enum {
    OUT_OF_MEMORY = 2,
    SCHEDULE_SPIN = 1,
    STREAM_NON_BLOCKING = 1,
    REGISTER_PORTABLE = 1,
    IPC_LAZY_PEER_ACCESS = 1,
    UUID_BYTES = 16
};

typedef unsigned long long device_address;

struct ipc_handle {
    char bytes[GPU_HANDLE_BYTES];
};

static struct {
    int (*init)(unsigned flags);
    int (*count)(int *count);
    int (*device)(int *device, int ordinal);
    int (*uuid)(char *uuid, int device);
    int (*error_name)(int code, const char **text);
    int (*error_string)(int code, const char **text);
    int (*set_flags)(int device, unsigned flags);
    int (*retain)(void **context, int device);
    int (*release_context)(int device);
    int (*set_current)(void *context);
    int (*stream_create)(void **stream, unsigned flags);
    int (*stream_destroy)(void *stream);
    int (*synchronize)(void *stream);
    int (*room)(size_t *available, size_t *total);
    int (*alloc)(device_address *address, size_t bytes);
    int (*free)(device_address address);
    int (*in)(device_address to, const void *from, size_t bytes, void *stream);
    int (*out)(void *to, device_address from, size_t bytes, void *stream);
    int (*within)(device_address to, device_address from, size_t bytes, void *stream);
    int (*pin)(void *address, size_t bytes, unsigned flags);
    int (*unpin)(void *address);
    int (*ipc_get)(struct ipc_handle *handle, device_address address);
    int (*ipc_open)(device_address *address, struct ipc_handle handle, unsigned flags);
    int (*ipc_close)(device_address address);
} cu;

static const struct gpu_symbol symbols[] = {
    {"cuInit", &cu.init, false},
    {"cuDeviceGetCount", &cu.count, false},
    {"cuDeviceGet", &cu.device, false},
    {"cuDeviceGetUuid", &cu.uuid, false},
    {"cuGetErrorName", &cu.error_name, false},
    {"cuGetErrorString", &cu.error_string, false},
    {"cuDevicePrimaryCtxSetFlags_v2", &cu.set_flags, true},
    {"cuDevicePrimaryCtxRetain", &cu.retain, false},
    {"cuDevicePrimaryCtxRelease_v2", &cu.release_context, true},
    {"cuCtxSetCurrent", &cu.set_current, false},
    {"cuStreamCreate", &cu.stream_create, false},
    {"cuStreamDestroy_v2", &cu.stream_destroy, false},
    {"cuStreamSynchronize", &cu.synchronize, false},
    {"cuMemGetInfo_v2", &cu.room, false},
    {"cuMemAlloc_v2", &cu.alloc, false},
    {"cuMemFree_v2", &cu.free, false},
    {"cuMemcpyHtoDAsync_v2", &cu.in, false},
    {"cuMemcpyDtoHAsync_v2", &cu.out, false},
    {"cuMemcpyAsync", &cu.within, false},
    {"cuMemHostRegister_v2", &cu.pin, false},
    {"cuMemHostUnregister", &cu.unpin, false},
    {"cuIpcGetMemHandle", &cu.ipc_get, false},
    {"cuIpcOpenMemHandle_v2", &cu.ipc_open, false},
    {"cuIpcCloseMemHandle", &cu.ipc_close, false},
};

static int cuda_start(unsigned *count)
{
    int number = 0;
    int code = cu.init(0);
    if (!code)
        code = cu.count(&number);
    *count = number > 0 ? (unsigned)number : 0;
    return code;
}

static void cuda_words(int code, char *text, size_t room)
{
    const char *name = NULL, *string = NULL;
    if (cu.error_name(code, &name) || !name)
        snprintf(text, room, "error %d", code);
    else if (cu.error_string(code, &string) || !string)
        snprintf(text, room, "%s", name);
    else
        snprintf(text, room, "%s, %s", name, string);
}

/* Contexts are current in a thread, not in a process. */
static inline int use(const struct gpu *gpu)
{
    return gpu_is_new(gpu) ? cu.set_current(gpu->context) : 0;
}

static void cuda_close(struct gpu *gpu)
{
    int device;
    use(gpu);
    if (gpu->queue)
        cu.stream_destroy(gpu->queue);
    if (gpu->context && cu.release_context && !cu.device(&device, (int)gpu->device))
        cu.release_context(device);
}

static int cuda_open(struct gpu *gpu)
{
    int device;
    int code = cu.device(&device, (int)gpu->device);
    if (code)
        return code;
    /* Refused where somebody uses the context already; then it waits as he wished. */
    if (cu.set_flags)
        cu.set_flags(device, SCHEDULE_SPIN);
    code = cu.retain(&gpu->context, device);
    if (code)
        return code;
    code = use(gpu);
    if (!code)
        code = cu.stream_create(&gpu->queue, STREAM_NON_BLOCKING);
    if (code)
        cuda_close(gpu);
    return code;
}

/* Unlike a bus address it tells the parts of a divided GPU apart. */
static int cuda_identify(unsigned ordinal, char *text, size_t room)
{
    unsigned char uuid[UUID_BYTES];
    int device;
    int code = cu.device(&device, (int)ordinal);
    if (!code)
        code = cu.uuid((char *)uuid, device);
    for (size_t i = 0; i < sizeof uuid && !code && 2 * i < room; i++)
        snprintf(text + 2 * i, room - 2 * i, "%02x", uuid[i]);
    return code;
}

static int cuda_room(struct gpu *gpu, uint64_t *available)
{
    size_t here = 0, total = 0;
    int code = use(gpu);
    if (!code)
        code = cu.room(&here, &total);
    *available = here;
    return code;
}

static int cuda_alloc(struct gpu *gpu, size_t length, char **address)
{
    device_address there = 0;
    int code = use(gpu);
    if (!code)
        code = cu.alloc(&there, length);
    *address = (char *)(uintptr_t)there; /* NOLINT(performance-no-int-to-ptr) */
    return code;
}

static void cuda_free(struct gpu *gpu, char *address)
{
    if (!use(gpu))
        cu.free((uintptr_t)address);
}

static int cuda_copy(struct gpu *gpu, void *to, const void *from, size_t length, enum gpu_way way)
{
    int code = use(gpu);
    if (code)
        return code;
    if (way == GPU_IN)
        code = cu.in((uintptr_t)to, from, length, gpu->queue);
    else if (way == GPU_OUT)
        code = cu.out(to, (uintptr_t)from, length, gpu->queue);
    else
        code = cu.within((uintptr_t)to, (uintptr_t)from, length, gpu->queue);
    return code ? code : cu.synchronize(gpu->queue);
}

static int cuda_pin(struct gpu *gpu, void *address, size_t length)
{
    int code = use(gpu);
    return code ? code : cu.pin(address, length, REGISTER_PORTABLE);
}

static void cuda_unpin(struct gpu *gpu, void *address)
{
    if (!use(gpu))
        cu.unpin(address);
}

static int cuda_export(struct gpu *gpu, char *address, struct gpu_handle *handle)
{
    struct ipc_handle ipc;
    int code = use(gpu);
    if (!code)
        code = cu.ipc_get(&ipc, (uintptr_t)address);
    if (!code)
        memcpy(handle->bytes, ipc.bytes, sizeof handle->bytes);
    return code;
}

static int cuda_import(struct gpu *gpu, const struct gpu_handle *handle, char **address)
{
    struct ipc_handle ipc;
    device_address there = 0;
    memcpy(ipc.bytes, handle->bytes, sizeof ipc.bytes);
    int code = use(gpu);
    if (!code)
        code = cu.ipc_open(&there, ipc, IPC_LAZY_PEER_ACCESS);
    *address = (char *)(uintptr_t)there; /* NOLINT(performance-no-int-to-ptr) */
    return code;
}

static void cuda_release(struct gpu *gpu, char *address)
{
    if (!use(gpu))
        cu.ipc_close((uintptr_t)address);
}

static const char *const libraries[] = {"libcuda.so.1", NULL};

static const struct gpu_ops cuda = {.libraries = libraries,
                                    .symbols = symbols,
                                    .symbol_count = LENGTH(symbols),
                                    .no_memory = OUT_OF_MEMORY,
                                    .start = cuda_start,
                                    .open = cuda_open,
                                    .close = cuda_close,
                                    .identify = cuda_identify,
                                    .room = cuda_room,
                                    .alloc = cuda_alloc,
                                    .free = cuda_free,
                                    .copy = cuda_copy,
                                    .pin = cuda_pin,
                                    .unpin = cuda_unpin,
                                    .export_memory = cuda_export,
                                    .import_memory = cuda_import,
                                    .release = cuda_release,
                                    .words = cuda_words};

const struct memory_ops memory_cuda = {
    .name = "cuda", .maker = MEMORY_NVIDIA, .gpu = &cuda, GPU_KIND};
