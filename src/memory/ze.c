/* SPDX-License-Identifier: BSD-3-Clause */
/* Intel GPUs, through the Level Zero loader. Copies use an immediate command list, on a copy engine
 * if there is one: in order and waited for, or, where the driver has no such lists, in synchronous
 * mode, in which a call returns when the copy is done. A handle for another process is a descriptor
 * of this one, so it must be passed too. */
#include "memory/gpu.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    NOT_READY = 1,
    OUT_OF_HOST_MEMORY = 0x70000002,
    OUT_OF_MEMORY = 0x70000003,
    UNSUPPORTED = 0x78000003,
    GPU_ONLY = 1,
    DEVICE_IS_GPU = 1,
    GROUP_COMPUTES = 1,
    GROUP_COPIES = 2,
    MODE_SYNCHRONOUS = 1,
    MODE_ASYNCHRONOUS = 2,
    IN_ORDER = 2,
    MOST_DEVICES = 64,
    MOST_DRIVERS = 8,
    MOST_GROUPS = 16,
    FAR_FD = 900,
    FAR_FDS = 100
};

/* Every struct begins with what it is. */
enum {
    IS_DEVICE_PROPERTIES = 0x3,
    IS_GROUP_PROPERTIES = 0x6,
    IS_CONTEXT = 0xd,
    IS_QUEUE = 0xe,
    IS_DEVICE_MEMORY = 0x15
};

struct device_properties {
    uint32_t is;
    void *next;
    uint32_t type, vendor, device, flags, subdevice, clock_rate;
    uint64_t longest_alloc;
    uint32_t contexts, priorities, threads, width, units, slices[2];
    uint64_t timer;
    uint32_t timestamp_bits[2];
    unsigned char uuid[16];
    char name[256];
};

struct group_properties {
    uint32_t is;
    void *next;
    uint32_t flags;
    size_t fill_pattern;
    uint32_t queues;
};

struct context_description {
    uint32_t is;
    const void *next;
    uint32_t flags;
};

struct queue_description {
    uint32_t is;
    const void *next;
    uint32_t ordinal, index, flags, mode, priority;
};

struct memory_description {
    uint32_t is;
    const void *next;
    uint32_t flags, ordinal;
};

struct ipc_handle {
    char bytes[GPU_HANDLE_BYTES];
};

static struct {
    int (*init)(unsigned flags);
    int (*drivers)(uint32_t *count, void **drivers);
    int (*devices)(void *driver, uint32_t *count, void **devices);
    int (*properties)(void *device, struct device_properties *properties);
    int (*groups)(void *device, uint32_t *count, struct group_properties *groups);
    int (*extension)(void *driver, const char *name, void **function);
    int (*context_create)(void *driver, const struct context_description *how, void **context);
    int (*list_create)(void *context, void *device, const struct queue_description *how,
                       void **list);
    int (*list_destroy)(void *list);
    int (*list_wait)(void *list, uint64_t timeout_ns);
    int (*copy)(void *list, void *to, const void *from, size_t bytes, void *signal, uint32_t waits,
                void **events);
    int (*alloc)(void *context, const struct memory_description *how, size_t bytes, size_t align,
                 void *device, void **address);
    int (*free)(void *context, void *address);
    int (*ipc_get)(void *context, const void *address, struct ipc_handle *handle);
    int (*ipc_fd)(void *context, struct ipc_handle handle, uint64_t *fd);
    int (*ipc_put)(void *context, struct ipc_handle handle);
    int (*ipc_open)(void *context, void *device, struct ipc_handle handle, unsigned flags,
                    void **address);
    int (*ipc_close)(void *context, const void *address);
    int (*span)(void *context, const void *address, void **base, size_t *length);
} ze;

static const struct gpu_symbol symbols[] = {
    {"zeInit", &ze.init, false},
    {"zeDriverGet", &ze.drivers, false},
    {"zeDeviceGet", &ze.devices, false},
    {"zeDeviceGetProperties", &ze.properties, false},
    {"zeDeviceGetCommandQueueGroupProperties", &ze.groups, false},
    {"zeDriverGetExtensionFunctionAddress", &ze.extension, true},
    {"zeContextCreate", &ze.context_create, false},
    {"zeCommandListCreateImmediate", &ze.list_create, false},
    {"zeCommandListDestroy", &ze.list_destroy, false},
    {"zeCommandListHostSynchronize", &ze.list_wait, true},
    {"zeCommandListAppendMemoryCopy", &ze.copy, false},
    {"zeMemAllocDevice", &ze.alloc, false},
    {"zeMemFree", &ze.free, false},
    {"zeMemGetIpcHandle", &ze.ipc_get, false},
    {"zeMemGetFileDescriptorFromIpcHandleExp", &ze.ipc_fd, true},
    {"zeMemPutIpcHandle", &ze.ipc_put, true},
    {"zeMemOpenIpcHandle", &ze.ipc_open, false},
    {"zeMemCloseIpcHandle", &ze.ipc_close, false},
    {"zeMemGetAddressRange", &ze.span, false},
};

/* Every GPU of every driver, found once. Memory belongs to a context, so all of a driver share one.
 */
static struct {
    void *driver, *device, *context;
} found[MOST_DEVICES];
static unsigned found_count;

/* Intel's driver locks pages on demand, where it has these. */
static int (*lock_pages)(void *driver, void *address, size_t bytes);
static int (*unlock_pages)(void *driver, void *address);

static void find_extension(void *driver, const char *name, void *where)
{
    void *function = NULL;
    if (ze.extension && !ze.extension(driver, name, &function) && function)
        memcpy(where, &function, sizeof function);
}

static int note_devices(void *driver)
{
    struct context_description how = {.is = IS_CONTEXT};
    void *devices[MOST_DEVICES], *context = NULL;
    uint32_t count = LENGTH(devices);
    int code = ze.devices(driver, &count, devices);
    if (!code)
        code = ze.context_create(driver, &how, &context);
    for (uint32_t i = 0; i < count && i < LENGTH(devices) && !code; i++) {
        struct device_properties properties = {.is = IS_DEVICE_PROPERTIES};
        code = ze.properties(devices[i], &properties);
        if (code || properties.type != DEVICE_IS_GPU || found_count == MOST_DEVICES)
            continue;
        found[found_count].driver = driver;
        found[found_count].context = context;
        found[found_count++].device = devices[i];
    }
    find_extension(driver, "zexDriverImportExternalPointer", &lock_pages);
    find_extension(driver, "zexDriverReleaseImportedPointer", &unlock_pages);
    return code;
}

static int ze_start(unsigned *count)
{
    void *drivers[MOST_DRIVERS];
    uint32_t number = LENGTH(drivers);
    int code = ze.init(GPU_ONLY);
    if (!code)
        code = ze.drivers(&number, drivers);
    if (code)
        return code;
    /* A driver that fails does not hide the GPUs of another. */
    for (uint32_t i = 0; i < number && i < LENGTH(drivers); i++) {
        int noted = note_devices(drivers[i]);
        code = noted ? noted : code;
    }
    *count = found_count;
    return found_count ? 0 : code;
}

static void ze_words(int code, char *text, size_t room)
{
    static const struct {
        int code;
        const char *words;
    } known[] = {{0x70000001, "ZE_RESULT_ERROR_DEVICE_LOST"},
                 {OUT_OF_HOST_MEMORY, "ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY"},
                 {OUT_OF_MEMORY, "ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY"},
                 {0x70010000, "ZE_RESULT_ERROR_INSUFFICIENT_PERMISSIONS"},
                 {0x70010001, "ZE_RESULT_ERROR_NOT_AVAILABLE"},
                 {0x70020000, "ZE_RESULT_ERROR_DEPENDENCY_UNAVAILABLE"},
                 {0x78000001, "ZE_RESULT_ERROR_UNINITIALIZED"},
                 {UNSUPPORTED, "ZE_RESULT_ERROR_UNSUPPORTED_FEATURE"},
                 {0x78000004, "ZE_RESULT_ERROR_INVALID_ARGUMENT"},
                 {0x78000009, "ZE_RESULT_ERROR_UNSUPPORTED_SIZE"},
                 {0x7ffffffe, "ZE_RESULT_ERROR_UNKNOWN"}};
    for (size_t i = 0; i < LENGTH(known); i++)
        if (known[i].code == code) {
            snprintf(text, room, "%s", known[i].words);
            return;
        }
    snprintf(text, room, "Level Zero error 0x%x", (unsigned)code);
}

/* The first group that only copies; without one, group 0. */
static uint32_t copy_group(void *device)
{
    struct group_properties groups[MOST_GROUPS];
    uint32_t count = LENGTH(groups);
    for (size_t i = 0; i < LENGTH(groups); i++)
        groups[i] = (struct group_properties){.is = IS_GROUP_PROPERTIES};
    if (ze.groups(device, &count, groups))
        return 0;
    for (uint32_t i = 0; i < count && i < LENGTH(groups); i++)
        if (groups[i].flags & GROUP_COPIES && !(groups[i].flags & GROUP_COMPUTES) &&
            groups[i].queues)
            return i;
    return 0;
}

static void ze_close(struct gpu *gpu)
{
    if (gpu->queue)
        ze.list_destroy(gpu->queue);
}

static int ze_open(struct gpu *gpu)
{
    void *device = found[gpu->device].device;
    struct queue_description queue = {.is = IS_QUEUE,
                                      .ordinal = copy_group(device),
                                      .flags = IN_ORDER,
                                      .mode = MODE_ASYNCHRONOUS};
    gpu->context = found[gpu->device].context;
    if (ze.list_wait && !ze.list_create(gpu->context, device, &queue, &gpu->queue))
        return 0;
    queue.flags = 0;
    queue.mode = MODE_SYNCHRONOUS;
    return ze.list_create(gpu->context, device, &queue, &gpu->queue);
}

static int ze_identify(unsigned device, char *text, size_t room)
{
    struct device_properties properties = {.is = IS_DEVICE_PROPERTIES};
    int code = ze.properties(found[device].device, &properties);
    for (size_t i = 0; i < sizeof properties.uuid && !code && 2 * i < room; i++)
        snprintf(text + 2 * i, room - 2 * i, "%02x", properties.uuid[i]);
    return code;
}

static int ze_alloc(struct gpu *gpu, size_t length, char **address)
{
    struct memory_description how = {.is = IS_DEVICE_MEMORY};
    void *there = NULL;
    int code =
        ze.alloc(gpu->context, &how, length, (size_t)64 << 10, found[gpu->device].device, &there);
    *address = there;
    return code;
}

/* Its handle goes first, if it has one. */
static void ze_free(struct gpu *gpu, char *address)
{
    const struct ipc_handle *ipc = gpu->more;
    if (ipc && ze.ipc_put)
        ze.ipc_put(gpu->context, *ipc);
    free(gpu->more);
    gpu->more = NULL;
    ze.free(gpu->context, address);
}

static int ze_begin(struct gpu *gpu, void *to, const void *from, size_t length, enum gpu_way way)
{
    (void)way;
    return ze.copy(gpu->queue, to, from, length, NULL, 0, NULL);
}

/* A list in synchronous mode has nothing under way. */
static int ze_query(struct gpu *gpu)
{
    return ze.list_wait ? ze.list_wait(gpu->queue, 0) : 0;
}

static int ze_wait(struct gpu *gpu)
{
    return ze.list_wait ? ze.list_wait(gpu->queue, UINT64_MAX) : 0;
}

static int ze_pin(struct gpu *gpu, void *address, size_t length)
{
    return lock_pages ? lock_pages(found[gpu->device].driver, address, length) : UNSUPPORTED;
}

static void ze_unpin(struct gpu *gpu, void *address)
{
    if (unlock_pages)
        unlock_pages(found[gpu->device].driver, address);
}

/* An open GPU has at most one buffer with one handle, which is kept, because its descriptor would
 * leak. */
static int keep_handle(struct gpu *gpu, const char *address)
{
    if (gpu->more)
        return 0;
    gpu->more = malloc(sizeof(struct ipc_handle));
    int code = gpu->more ? ze.ipc_get(gpu->context, address, gpu->more) : OUT_OF_HOST_MEMORY;
    if (code) {
        free(gpu->more);
        gpu->more = NULL;
    }
    return code;
}

/* The descriptor is at the start of the handle, unless the driver returns it separately. */
static int ze_export(struct gpu *gpu, char *address, struct gpu_handle *handle)
{
    uint64_t fd = 0;
    int code = keep_handle(gpu, address);
    if (code)
        return code;
    const struct ipc_handle *ipc = gpu->more;
    memcpy(handle->bytes, ipc->bytes, sizeof handle->bytes);
    if (ze.ipc_fd && !ze.ipc_fd(gpu->context, *ipc, &fd))
        handle->fd = (int)fd;
    else
        memcpy(&handle->fd, ipc->bytes, sizeof handle->fd);
    return 0;
}

/* The descriptor of a handle is one. */
static int ze_dmabuf(struct gpu *gpu, char *address, size_t length, int *fd, uint64_t *offset)
{
    struct gpu_handle handle = {.fd = -1};
    int code = ze_export(gpu, address, &handle);
    (void)length;
    *offset = 0;
    if (!code)
        *fd = fcntl(handle.fd, F_DUPFD_CLOEXEC, 0);
    return code;
}

/* The descriptor in a handle must be one of this process. But a driver with the process ID in its
 * handles looks for it in that process first, and uses ours only if that process has none of this
 * number. So ours gets a number that the other process is unlikely to have or to choose now. */
static int ze_import(struct gpu *gpu, const struct gpu_handle *handle, char **address)
{
    struct ipc_handle ipc;
    void *there = NULL;
    int far = fcntl(handle->fd, F_DUPFD_CLOEXEC, FAR_FD + getpid() % FAR_FDS);
    memcpy(ipc.bytes, handle->bytes, sizeof ipc.bytes);
    memcpy(ipc.bytes, far >= 0 ? &far : &handle->fd, sizeof far);
    int code = ze.ipc_open(gpu->context, found[gpu->device].device, ipc, 0, &there);
    if (far >= 0)
        close(far);
    *address = there;
    return code;
}

static void ze_release(struct gpu *gpu, char *address)
{
    ze.ipc_close(gpu->context, address);
}

static int ze_span(struct gpu *gpu, const char *address, size_t *length)
{
    void *base = NULL;
    int code = ze.span(gpu->context, address, &base, length);
    if (!code)
        *length -= (size_t)(address - (const char *)base);
    return code;
}

static const char *const libraries[] = {"libze_loader.so.1", NULL};

static const struct gpu_ops level_zero = {.libraries = libraries,
                                          .symbols = symbols,
                                          .symbol_count = LENGTH(symbols),
                                          .no_memory = OUT_OF_MEMORY,
                                          .not_ready = NOT_READY,
                                          .start = ze_start,
                                          .open = ze_open,
                                          .close = ze_close,
                                          .identify = ze_identify,
                                          .alloc = ze_alloc,
                                          .free = ze_free,
                                          .begin = ze_begin,
                                          .query = ze_query,
                                          .wait = ze_wait,
                                          .pin = ze_pin,
                                          .unpin = ze_unpin,
                                          .export_memory = ze_export,
                                          .import_memory = ze_import,
                                          .dmabuf = ze_dmabuf,
                                          .span = ze_span,
                                          .release = ze_release,
                                          .words = ze_words};

const struct memory_ops memory_ze = {
    .name = "ze", .vendor = MEMORY_INTEL, .gpu = &level_zero, GPU_KIND};
