/* SPDX-License-Identifier: BSD-3-Clause */
/* AMD GPUs, through the HIP runtime library. A thread has a current device; every open GPU has its
 * own stream, and copies end with its synchronisation. */
#include "memory/gpu.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum {
    OUT_OF_MEMORY = 2,
    SCHEDULE_SPIN = 1,
    STREAM_NON_BLOCKING = 1,
    REGISTER_PORTABLE = 1,
    IPC_LAZY_PEER_ACCESS = 1,
    NOT_READY = 600,
    NOT_SUPPORTED = 801,
    HOST_TO_DEVICE = 1,
    DEVICE_TO_HOST = 2,
    DEVICE_TO_DEVICE = 3
};

struct ipc_handle {
    char bytes[GPU_HANDLE_BYTES];
};

static struct {
    int (*init)(unsigned flags);
    int (*count)(int *count);
    int (*bus)(char *text, int room, int device);
    const char *(*error_name)(int code);
    const char *(*error_string)(int code);
    int (*set_device)(int device);
    int (*set_flags)(unsigned flags);
    int (*stream_create)(void **stream, unsigned flags);
    int (*stream_destroy)(void *stream);
    int (*synchronize)(void *stream);
    int (*query)(void *stream);
    int (*room)(size_t *available, size_t *total);
    int (*alloc)(void **address, size_t bytes);
    int (*free)(void *address);
    int (*copy)(void *to, const void *from, size_t bytes, int kind, void *stream);
    int (*pin)(void *address, size_t bytes, unsigned flags);
    int (*unpin)(void *address);
    int (*ipc_get)(struct ipc_handle *handle, void *address);
    int (*ipc_open)(void **address, struct ipc_handle handle, unsigned flags);
    int (*ipc_close)(void *address);
    int (*span)(void **base, size_t *length, const void *address);
    int (*dmabuf_get)(const void *address, size_t bytes, int *fd, uint64_t *offset);
    int (*dmabuf_put)(int fd);
} hip;

static const struct gpu_symbol symbols[] = {
    {"hipInit", &hip.init, false},
    {"hipGetDeviceCount", &hip.count, false},
    {"hipDeviceGetPCIBusId", &hip.bus, false},
    {"hipGetErrorName", &hip.error_name, false},
    {"hipGetErrorString", &hip.error_string, false},
    {"hipSetDevice", &hip.set_device, false},
    {"hipSetDeviceFlags", &hip.set_flags, true},
    {"hipStreamCreateWithFlags", &hip.stream_create, false},
    {"hipStreamDestroy", &hip.stream_destroy, false},
    {"hipStreamSynchronize", &hip.synchronize, false},
    {"hipStreamQuery", &hip.query, false},
    {"hipMemGetInfo", &hip.room, false},
    {"hipMalloc", &hip.alloc, false},
    {"hipFree", &hip.free, false},
    {"hipMemcpyAsync", &hip.copy, false},
    {"hipHostRegister", &hip.pin, false},
    {"hipHostUnregister", &hip.unpin, false},
    {"hipIpcGetMemHandle", &hip.ipc_get, false},
    {"hipIpcOpenMemHandle", &hip.ipc_open, false},
    {"hipIpcCloseMemHandle", &hip.ipc_close, false},
    {"hipMemGetAddressRange", &hip.span, false},
    /* Of the runtime below, which is loaded with it. */
    {"hsa_amd_portable_export_dmabuf", &hip.dmabuf_get, true},
    {"hsa_amd_portable_close_dmabuf", &hip.dmabuf_put, true},
};

static int hip_start(unsigned *count)
{
    int number = 0;
    int code = hip.init(0);
    if (!code)
        code = hip.count(&number);
    *count = number > 0 ? (unsigned)number : 0;
    return code;
}

static void hip_words(int code, char *text, size_t room)
{
    const char *name = hip.error_name(code), *string = hip.error_string(code);
    snprintf(text, room, "%s, %s", name ? name : "?", string ? string : "?");
}

static inline int use(const struct gpu *gpu)
{
    return gpu_is_new(gpu) ? gpu_told(gpu, hip.set_device((int)gpu->device)) : 0;
}

static void hip_close(struct gpu *gpu)
{
    use(gpu);
    if (gpu->queue)
        hip.stream_destroy(gpu->queue);
}

static int hip_open(struct gpu *gpu)
{
    int code = use(gpu);
    /* Refused if the device is already in use; then the flags of its first user apply. */
    if (!code && hip.set_flags)
        hip.set_flags(SCHEDULE_SPIN);
    if (!code)
        code = hip.stream_create(&gpu->queue, STREAM_NON_BLOCKING);
    return code;
}

static int hip_identify(unsigned device, char *text, size_t room)
{
    return hip.bus(text, (int)room, (int)device);
}

static int hip_room(struct gpu *gpu, uint64_t *available)
{
    size_t here = 0, total = 0;
    int code = use(gpu);
    if (!code)
        code = hip.room(&here, &total);
    *available = here;
    return code;
}

static int hip_alloc(struct gpu *gpu, size_t length, char **address)
{
    void *there = NULL;
    int code = use(gpu);
    if (!code)
        code = hip.alloc(&there, length);
    *address = there;
    return code;
}

static void hip_free(struct gpu *gpu, char *address)
{
    if (!use(gpu))
        hip.free(address);
}

static int hip_begin(struct gpu *gpu, void *to, const void *from, size_t length, enum gpu_way way)
{
    static const int kinds[] = {HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE};
    int code = use(gpu);
    return code ? code : hip.copy(to, from, length, kinds[way], gpu->queue);
}

static int hip_query(struct gpu *gpu)
{
    int code = use(gpu);
    return code ? code : hip.query(gpu->queue);
}

static int hip_wait(struct gpu *gpu)
{
    int code = use(gpu);
    return code ? code : hip.synchronize(gpu->queue);
}

static int hip_pin(struct gpu *gpu, void *address, size_t length)
{
    int code = use(gpu);
    return code ? code : hip.pin(address, length, REGISTER_PORTABLE);
}

static void hip_unpin(struct gpu *gpu, void *address)
{
    if (!use(gpu))
        hip.unpin(address);
}

static int hip_export(struct gpu *gpu, char *address, struct gpu_handle *handle)
{
    struct ipc_handle ipc;
    int code = use(gpu);
    if (!code)
        code = hip.ipc_get(&ipc, address);
    if (!code)
        memcpy(handle->bytes, ipc.bytes, sizeof handle->bytes);
    return code;
}

static int hip_import(struct gpu *gpu, const struct gpu_handle *handle, char **address)
{
    struct ipc_handle ipc;
    void *there = NULL;
    memcpy(ipc.bytes, handle->bytes, sizeof ipc.bytes);
    int code = use(gpu);
    if (!code)
        code = hip.ipc_open(&there, ipc, IPC_LAZY_PEER_ACCESS);
    *address = there;
    return code;
}

static void hip_release(struct gpu *gpu, char *address)
{
    if (!use(gpu))
        hip.ipc_close(address);
}

static int hip_dmabuf(struct gpu *gpu, char *address, size_t length, int *fd, uint64_t *offset)
{
    int theirs = -1;
    int code = hip.dmabuf_get && hip.dmabuf_put ? use(gpu) : NOT_SUPPORTED;
    if (!code)
        code = hip.dmabuf_get(address, length, &theirs, offset);
    if (code)
        return code;
    *fd = fcntl(theirs, F_DUPFD_CLOEXEC, 0);
    hip.dmabuf_put(theirs);
    return 0;
}

static int hip_span(struct gpu *gpu, const char *address, size_t *length)
{
    void *base = NULL;
    int code = use(gpu);
    if (!code)
        code = hip.span(&base, length, address);
    if (!code)
        *length -= (size_t)(address - (const char *)base);
    return code;
}

static const char *const libraries[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5",
                                        NULL};

static const struct gpu_ops rocm = {.libraries = libraries,
                                    .symbols = symbols,
                                    .symbol_count = LENGTH(symbols),
                                    .no_memory = OUT_OF_MEMORY,
                                    .not_ready = NOT_READY,
                                    .start = hip_start,
                                    .open = hip_open,
                                    .close = hip_close,
                                    .identify = hip_identify,
                                    .room = hip_room,
                                    .alloc = hip_alloc,
                                    .free = hip_free,
                                    .begin = hip_begin,
                                    .query = hip_query,
                                    .wait = hip_wait,
                                    .pin = hip_pin,
                                    .unpin = hip_unpin,
                                    .export_memory = hip_export,
                                    .import_memory = hip_import,
                                    .dmabuf = hip_dmabuf,
                                    .span = hip_span,
                                    .release = hip_release,
                                    .words = hip_words};

const struct memory_ops memory_rocm = {
    .name = "rocm", .vendor = MEMORY_AMD, .gpu = &rocm, GPU_KIND};
