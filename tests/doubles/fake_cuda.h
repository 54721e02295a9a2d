/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls of libcuda, for fake_gpu.c, which has all that they share. */
#ifndef WEFT_FAKE_CUDA_H
#define WEFT_FAKE_CUDA_H

typedef unsigned long long address_t;
static char contexts[MOST]; /* the place says which device */
static _Thread_local char *current;

static void *pointer(address_t address)
{
    return (void *)(uintptr_t)address; /* NOLINT(performance-no-int-to-ptr) */
}

CALL int cuInit(unsigned flags)
{
    usleep((useconds_t)(1000 * setting("FAKE_INIT_MS", 0)));
    return flags ? BAD_VALUE : device_count() ? 0 : NO_DEVICE;
}

CALL int cuDeviceGetCount(int *count)
{
    *count = (int)device_count();
    return 0;
}

CALL int cuDeviceGet(int *device, int ordinal)
{
    *device = ordinal;
    return (unsigned)ordinal < device_count() ? 0 : BAD_VALUE;
}

/* The first version takes them all for parts of one. */
CALL int cuDeviceGetUuid(char *uuid, int device)
{
    (void)device;
    memset(uuid, 0xc0, 16);
    return 0;
}

CALL int cuDeviceGetUuid_v2(char *uuid, int device)
{
    memset(uuid, 0xc0 + device, 16);
    return 0;
}

CALL int cuGetErrorName(int code, const char **text)
{
    *text = name_of(code);
    return 0;
}

CALL int cuGetErrorString(int code, const char **text)
{
    (void)code;
    *text = "says the double";
    return 0;
}

CALL int cuDevicePrimaryCtxSetFlags_v2(int device, unsigned flags)
{
    return (unsigned)device < device_count() && flags == 1 ? 0 : BAD_VALUE;
}

CALL int cuDevicePrimaryCtxRetain(void **context, int device)
{
    *context = &contexts[device];
    return fault("open") ? LOST : 0;
}

CALL int cuDevicePrimaryCtxRelease_v2(int device)
{
    return (unsigned)device < device_count() ? 0 : BAD_VALUE;
}

CALL int cuCtxSetCurrent(void *context)
{
    current = fault("use") ? NULL : context;
    return fault("use") ? LOST : 0;
}

CALL int cuStreamCreate(void **stream, unsigned flags)
{
    (void)flags;
    return current ? new_stream(stream) : NO_CONTEXT;
}

CALL int cuStreamDestroy_v2(void *stream)
{
    free(stream);
    return 0;
}

CALL int cuStreamSynchronize(void *stream)
{
    return current ? synchronize(stream) : NO_CONTEXT;
}

CALL int cuMemGetInfo_v2(size_t *available, size_t *total)
{
    *total = setting("FAKE_BYTES", UINT64_C(4) << 30);
    *available = *total - used_bytes((unsigned)(current - contexts));
    return 0;
}

CALL int cuMemAlloc_v2(address_t *address, size_t length)
{
    char *there = NULL;
    int code = current ? allocate((unsigned)(current - contexts), length, &there) : NO_CONTEXT;
    *address = (uintptr_t)there;
    return code;
}

/* Waits for all that runs. */
CALL int cuMemFree_v2(address_t address)
{
    while (copies >= fault_at("hang"))
        pause();
    return current ? drop(pointer(address), false) : NO_CONTEXT;
}

CALL int cuMemcpyHtoDAsync_v2(address_t to, const void *from, size_t length, void *stream)
{
    return current ? begin_copy(stream, pointer(to), true, from, false, length) : NO_CONTEXT;
}

CALL int cuMemcpyDtoHAsync_v2(void *to, address_t from, size_t length, void *stream)
{
    return current ? begin_copy(stream, to, false, pointer(from), true, length) : NO_CONTEXT;
}

CALL int cuMemcpyAsync(address_t to, address_t from, size_t length, void *stream)
{
    return current ? begin_copy(stream, pointer(to), true, pointer(from), true, length)
                   : NO_CONTEXT;
}

/* The one kernel that is ever asked for; only where FAKE_KERNEL is set, and then the copy engine
 * takes its time. If it is 2, the kernel takes longer still within GPUs. It reaches locked host
 * memory and GPUs', nothing else. */
CALL int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    *value = attribute == 91 && (unsigned)device < device_count();
    return 0;
}

CALL int cuMemHostAlloc(void **address, size_t length, unsigned flags)
{
    *address = flags == 3 ? own(calloc(1, length)) : NULL;
    return *address && !setting("FAKE_PINNED", 0) ? 0 : BAD_VALUE;
}

CALL int cuMemFreeHost(void *address)
{
    free(address);
    return 0;
}

CALL int cuStreamQuery(void *stream)
{
    return current ? query(stream) : NO_CONTEXT;
}

CALL int cuModuleLoadData(void **module, const void *text)
{
    *module = strstr(text, ".entry copy(") ? &contexts[0] : NULL;
    return *module && setting("FAKE_KERNEL", 0) ? 0 : BAD_VALUE;
}

CALL int cuModuleUnload(void *module)
{
    return module ? 0 : BAD_VALUE;
}

CALL int cuModuleGetFunction(void **function, void *module, const char *name)
{
    *function = module;
    return strcmp(name, "copy") == 0 ? 0 : BAD_VALUE;
}

static char *reached(char *address, size_t length)
{
    char *bytes = behind(address, length, true);
    return bytes ? bytes : is_pinned(address, length) ? address : NULL;
}

CALL int cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned x, unsigned y, unsigned z, unsigned shared, void *stream,
                        void **arguments, void **extra)
{
    char *to = *(char **)arguments[0], *from = *(char **)arguments[1];
    uint64_t length = *(uint64_t *)arguments[2];
    volatile uint32_t *flag = *(volatile uint32_t **)arguments[3];
    if (!function || grid_x * grid_y * grid_z != 1 || x < 32 || y * z != 1 || shared || !stream ||
        extra || !current)
        return BAD_VALUE;
    pthread_mutex_lock(&lock);
    bool within = behind(to, length, true) && behind(from, length, true);
    to = reached(to, length);
    from = reached(from, length);
    copies++;
    int code = copies >= fault_at("lost") ? LOST : copies == fault_at("copy") ? NO_COPY : 0;
    pthread_mutex_unlock(&lock);
    if (code || !to || !from)
        return code ? code : NO_COPY;
    if (copies >= fault_at("hang"))
        return 0;
    for (volatile uint64_t i = within && setting("FAKE_KERNEL", 0) == 2 ? 800000 : 0; i > 0; i--)
        continue;
    memmove(to, from, length);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    *flag = *(uint32_t *)arguments[4];
    return 0;
}

/* For bench/gpu alone. */
CALL int cuMemcpyDtoDAsync_v2(address_t to, address_t from, size_t length, void *stream)
{
    return cuMemcpyAsync(to, from, length, stream);
}

CALL int cuMemHostGetDevicePointer_v2(address_t *there, void *address, unsigned flags)
{
    (void)flags;
    *there = (uintptr_t)address;
    return 0;
}

CALL int cuMemHostRegister_v2(void *address, size_t length, unsigned flags)
{
    (void)flags;
    return current ? pin(address, length) : NO_CONTEXT;
}

CALL int cuMemHostUnregister(void *address)
{
    return current ? unpin(address) : NO_CONTEXT;
}

CALL int cuIpcGetMemHandle(struct handle *handle, address_t address)
{
    return current ? export_block(pointer(address), handle) : NO_CONTEXT;
}

CALL int cuMemGetHandleForAddressRange(void *handle, address_t address, size_t length, int type,
                                       unsigned long long flags)
{
    uint64_t offset = 0;
    int code = type == 1 && !flags ? dmabuf(pointer(address), length, handle, &offset) : BAD_VALUE;
    return code || !current ? NO_CONTEXT : 0;
}

CALL int cuIpcOpenMemHandle_v2(address_t *address, struct handle handle, unsigned flags)
{
    char *there = NULL;
    int code = flags == 1 && current ? import_by_pid(&handle, &there) : NO_CONTEXT;
    *address = (uintptr_t)there;
    return code;
}

CALL int cuMemGetAddressRange_v2(address_t *base, size_t *length, address_t address)
{
    void *there = NULL;
    int code = current ? span(pointer(address), &there, length) : NO_CONTEXT;
    *base = (uintptr_t)there;
    return code;
}

CALL int cuIpcCloseMemHandle(address_t address)
{
    return current ? drop(pointer(address), true) : NO_CONTEXT;
}

#endif
