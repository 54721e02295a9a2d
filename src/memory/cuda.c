/* SPDX-License-Identifier: BSD-3-Clause */
/* NVIDIA GPUs, through the CUDA driver library. Every open GPU has its own stream, and copies end
 * with its synchronisation: without it, those within the GPU, and small ones from the host, may
 * still be running when the call returns. A kernel may copy small sizes instead and signal the end
 * itself: both ways are timed when the GPU is opened, and the faster one is used. */
#include "core/clock.h"
#include "memory/cuda_kernel.h"
#include "memory/gpu.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    OUT_OF_MEMORY = 2,
    SCHEDULE_SPIN = 1,
    STREAM_NON_BLOCKING = 1,
    REGISTER_PORTABLE = 1,
    REGISTER_MAPPED = 2,
    HOST_POINTERS_WORK = 91, /* an attribute: registered memory has one address everywhere */
    NOT_READY = 600,
    UNKNOWN = 999,
    STUCK = -1, /* ours: a kernel does not end */
    NOT_SUPPORTED = 801,
    IPC_LAZY_PEER_ACCESS = 1,
    AS_DMABUF = 1,
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
    int (*uuid_of_part)(char *uuid, int device);
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
    int (*span)(device_address *base, size_t *length, device_address address);
    int (*handle)(void *handle, device_address address, size_t bytes, int type,
                  unsigned long long flags);
    int (*attribute)(int *value, int attribute, int device);
    int (*host_alloc)(void **address, size_t bytes, unsigned flags);
    int (*host_free)(void *address);
    int (*query)(void *stream);
    int (*load)(void **module, const void *text);
    int (*unload)(void *module);
    int (*function)(void **function, void *module, const char *name);
    int (*launch)(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned x,
                  unsigned y, unsigned z, unsigned shared, void *stream, void **arguments,
                  void **extra);
} cu;

static const struct gpu_symbol symbols[] = {
    {"cuInit", &cu.init, false},
    {"cuDeviceGetCount", &cu.count, false},
    {"cuDeviceGet", &cu.device, false},
    {"cuDeviceGetUuid", &cu.uuid, false},
    {"cuDeviceGetUuid_v2", &cu.uuid_of_part, true},
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
    {"cuMemGetAddressRange_v2", &cu.span, false},
    {"cuMemGetHandleForAddressRange", &cu.handle, true},
    {"cuDeviceGetAttribute", &cu.attribute, true},
    {"cuMemHostAlloc", &cu.host_alloc, true},
    {"cuMemFreeHost", &cu.host_free, true},
    {"cuStreamQuery", &cu.query, false},
    {"cuModuleLoadData", &cu.load, true},
    {"cuModuleUnload", &cu.unload, true},
    {"cuModuleGetFunction", &cu.function, true},
    {"cuLaunchKernel", &cu.launch, true},
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
    if (code == STUCK)
        snprintf(text, room, "it has not answered for %g s", gpu_timeout_ms / 1000.0);
    else if (cu.error_name(code, &name) || !name)
        snprintf(text, room, "error %d", code);
    else if (cu.error_string(code, &string) || !string)
        snprintf(text, room, "%s", name);
    else
        snprintf(text, room, "%s, %s", name, string);
}

/* Contexts are current in a thread, not in a process. */
static inline int use(const struct gpu *gpu)
{
    return gpu_is_new(gpu) ? gpu_told(gpu, cu.set_current(gpu->context)) : 0;
}

/* Nothing is freed while a kernel does not end: freeing waits for everything that runs. */
static atomic_bool stuck;

static bool may_free(const struct gpu *gpu)
{
    return !stuck && !use(gpu);
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
    if (may_free(gpu))
        cu.free((uintptr_t)address);
}

static int cuda_begin(struct gpu *gpu, void *to, const void *from, size_t length, enum gpu_way way)
{
    int code = use(gpu);
    if (code)
        return code;
    if (way == GPU_IN)
        return cu.in((uintptr_t)to, from, length, gpu->queue);
    if (way == GPU_OUT)
        return cu.out(to, (uintptr_t)from, length, gpu->queue);
    return cu.within((uintptr_t)to, (uintptr_t)from, length, gpu->queue);
}

static int cuda_query(struct gpu *gpu)
{
    int code = use(gpu);
    return code ? code : cu.query(gpu->queue);
}

static int cuda_wait(struct gpu *gpu)
{
    int code = use(gpu);
    return code ? code : cu.synchronize(gpu->queue);
}

/* ---- few bytes, by a kernel ---- */

enum { SMALL_MOST = 4096, SMALL_LEAST = 64, TRIALS = 80, SPINS_A_LOOK = 4096, THREADS_MOST = 512 };

/* Locked memory, which the GPU writes to. */
struct small {
    void *module, *kernel;
    volatile uint32_t *flag;
    char *host, *there; /* for trials: as many bytes on both sides, twice */
    uint32_t number;
};

/* Not done after so many polls: why? 0 to continue polling. */
static int small_why(struct gpu *gpu, uint32_t number, uint64_t *since_ns)
{
    const struct small *s = gpu->more;
    uint64_t now_ns = clock_ns();
    int code = cu.query(gpu->queue);
    if (*s->flag == number)
        return 0;
    if (code != NOT_READY)
        return code ? code : UNKNOWN; /* it ended without its signal */
    if (!*since_ns)
        *since_ns = now_ns;
    if (now_ns - *since_ns < UINT64_C(1000000) * gpu_timeout_ms)
        return 0;
    stuck = true;
    return STUCK;
}

/* The number is written last; if it does not arrive, the stream has the reason. */
static int small_copy(struct gpu *gpu, void *to, const void *from, size_t length)
{
    struct small *s = gpu->more;
    uint64_t bytes = length, flag = (uintptr_t)s->flag, since_ns = 0;
    uint32_t number = ++s->number;
    void *arguments[] = {&to, &from, &bytes, &flag, &number};
    size_t words = (length + sizeof(uint64_t) - 1) / sizeof(uint64_t);
    unsigned threads = words <= 32 ? 32 : words < THREADS_MOST ? (unsigned)words : THREADS_MOST;
    int code = cu.launch(s->kernel, 1, 1, 1, threads, 1, 1, 0, gpu->queue, arguments, NULL);
    for (unsigned i = 1; !code && *s->flag != number; i++) {
        cpu_relax();
        if (i % SPINS_A_LOOK == 0)
            code = small_why(gpu, number, &since_ns);
    }
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return code;
}

static int cuda_copy_locked(struct gpu *gpu, void *to, const void *from, size_t length,
                            enum gpu_way way)
{
    if (length > gpu->small[way])
        return gpu_copy_one(gpu, to, from, length, way);
    int code = use(gpu);
    return code ? code : small_copy(gpu, to, from, length);
}

/* The time of the fastest copy of this length, so that interference does not decide. UINT64_MAX if
 * they fail. */
static uint64_t trial_ns(struct gpu *gpu, size_t length, enum gpu_way way, bool kernel)
{
    const struct small *s = gpu->more;
    char *to = way == GPU_OUT ? s->host : s->there;
    char *from = way == GPU_IN ? s->host : s->there + SMALL_MOST;
    uint64_t best_ns = UINT64_MAX;
    int code = 0;
    for (int i = 0; i < TRIALS && !code; i++) {
        uint64_t begin_ns = clock_ns();
        code =
            kernel ? small_copy(gpu, to, from, length) : gpu_copy_one(gpu, to, from, length, way);
        uint64_t took_ns = clock_ns() - begin_ns;
        best_ns = took_ns < best_ns ? took_ns : best_ns;
    }
    return code ? UINT64_MAX : best_ns;
}

/* Bytes go in, to another place within, and out again; in parts, of which one is not aligned. */
static bool small_is_right(struct gpu *gpu)
{
    static const size_t parts[] = {0, 1000, 1003, SMALL_MOST};
    const struct small *s = gpu->more;
    char *out = s->host + SMALL_MOST;
    for (size_t i = 0; i < SMALL_MOST; i++)
        s->host[i] = (char)(i * 31 + (i >> 8));
    memset(out, 0, SMALL_MOST);
    for (size_t i = 0; i + 1 < LENGTH(parts); i++) {
        size_t at = parts[i], length = parts[i + 1] - at;
        if (small_copy(gpu, s->there + at, s->host + at, length) ||
            small_copy(gpu, s->there + SMALL_MOST + at, s->there + at, length) ||
            small_copy(gpu, out + at, s->there + SMALL_MOST + at, length))
            return false;
    }
    return memcmp(s->host, out, SMALL_MOST) == 0;
}

static void small_choose(struct gpu *gpu)
{
    static const size_t lengths[] = {SMALL_MOST, SMALL_LEAST};
    for (int way = GPU_IN; way <= GPU_WITHIN; way++)
        for (size_t i = 0; i < LENGTH(lengths) && !gpu->small[way]; i++)
            if (trial_ns(gpu, lengths[i], (enum gpu_way)way, true) <
                trial_ns(gpu, lengths[i], (enum gpu_way)way, false))
                gpu->small[way] = lengths[i];
}

static void small_close(struct gpu *gpu)
{
    struct small *s = gpu->more;
    gpu->more = NULL;
    if (s && !stuck) {
        if (s->there)
            cuda_free(gpu, s->there);
        if (s->host)
            cu.host_free(s->host);
        if (s->module)
            cu.unload(s->module);
    }
    free(s);
}

static bool small_begin(struct gpu *gpu, struct small *s, int device)
{
    int works = 0;
    void *host = NULL;
    if (cu.attribute(&works, HOST_POINTERS_WORK, device) || !works ||
        cu.load(&s->module, cuda_kernel_text) || cu.function(&s->kernel, s->module, "copy") ||
        cu.host_alloc(&host, (size_t)2 * SMALL_MOST + sizeof *s->flag,
                      REGISTER_PORTABLE | REGISTER_MAPPED))
        return false;
    s->host = host;
    s->flag = (volatile uint32_t *)(void *)(s->host + (size_t)2 * SMALL_MOST);
    *s->flag = 0;
    return !cuda_alloc(gpu, (size_t)2 * SMALL_MOST, &s->there) && small_is_right(gpu);
}

/* If any of it is missing, copy engines make all copies. */
static void small_open(struct gpu *gpu, int device)
{
    if (!cu.attribute || !cu.host_alloc || !cu.host_free || !cu.load || !cu.unload ||
        !cu.function || !cu.launch)
        return;
    struct small *s = gpu->more = calloc(1, sizeof *s);
    if (s && small_begin(gpu, s, device))
        small_choose(gpu);
    else
        small_close(gpu);
}

/* ---- opening ---- */

static void cuda_close(struct gpu *gpu)
{
    int device;
    use(gpu);
    small_close(gpu);
    if (stuck)
        return;
    if (gpu->queue)
        cu.stream_destroy(gpu->queue);
    if (gpu->context && cu.release_context && !cu.device(&device, (int)gpu->device))
        cu.release_context(device);
}

static int cuda_open(struct gpu *gpu)
{
    int device;
    int code = stuck ? STUCK : cu.device(&device, (int)gpu->device);
    if (code)
        return code;
    /* Refused if the context is already in use; then its owner's flags apply. */
    if (cu.set_flags)
        cu.set_flags(device, SCHEDULE_SPIN);
    code = cu.retain(&gpu->context, device);
    if (code)
        return code;
    code = use(gpu);
    if (!code)
        code = cu.stream_create(&gpu->queue, STREAM_NON_BLOCKING);
    if (!code)
        small_open(gpu, device);
    if (!code && stuck)
        code = STUCK;
    if (code)
        cuda_close(gpu);
    return code;
}

/* Unlike a bus address, this identifies the parts of a partitioned GPU; its first version does not.
 */
static int cuda_identify(unsigned ordinal, char *text, size_t room)
{
    unsigned char uuid[UUID_BYTES] = {0};
    int device;
    int code = cu.device(&device, (int)ordinal);
    if (!code)
        code = (cu.uuid_of_part ? cu.uuid_of_part : cu.uuid)((char *)uuid, device);
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

static int cuda_pin(struct gpu *gpu, void *address, size_t length)
{
    int code = use(gpu);
    return code ? code : cu.pin(address, length, REGISTER_PORTABLE | REGISTER_MAPPED);
}

static void cuda_unpin(struct gpu *gpu, void *address)
{
    if (may_free(gpu))
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
    if (may_free(gpu))
        cu.ipc_close((uintptr_t)address);
}

static int cuda_dmabuf(struct gpu *gpu, char *address, size_t length, int *fd, uint64_t *offset)
{
    int code = cu.handle ? use(gpu) : NOT_SUPPORTED;
    *offset = 0;
    return code ? code : cu.handle(fd, (uintptr_t)address, length, AS_DMABUF, 0);
}

static int cuda_span(struct gpu *gpu, const char *address, size_t *length)
{
    device_address base = 0;
    int code = use(gpu);
    if (!code)
        code = cu.span(&base, length, (uintptr_t)address);
    if (!code)
        *length -= (uintptr_t)address - base;
    return code;
}

static const char *const libraries[] = {"libcuda.so.1", NULL};

static const struct gpu_ops cuda = {.libraries = libraries,
                                    .symbols = symbols,
                                    .symbol_count = LENGTH(symbols),
                                    .no_memory = OUT_OF_MEMORY,
                                    .not_ready = NOT_READY,
                                    .start = cuda_start,
                                    .open = cuda_open,
                                    .close = cuda_close,
                                    .identify = cuda_identify,
                                    .room = cuda_room,
                                    .alloc = cuda_alloc,
                                    .free = cuda_free,
                                    .begin = cuda_begin,
                                    .query = cuda_query,
                                    .wait = cuda_wait,
                                    .copy_locked = cuda_copy_locked,
                                    .pin = cuda_pin,
                                    .unpin = cuda_unpin,
                                    .export_memory = cuda_export,
                                    .import_memory = cuda_import,
                                    .release = cuda_release,
                                    .dmabuf = cuda_dmabuf,
                                    .span = cuda_span,
                                    .words = cuda_words};

const struct memory_ops memory_cuda = {
    .name = "cuda", .vendor = MEMORY_NVIDIA, .gpu = &cuda, GPU_KIND};
