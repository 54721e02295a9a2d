/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls of libze_loader, for fake_gpu.c, which has all that they share. */
#ifndef WEFT_FAKE_ZE_H
#define WEFT_FAKE_ZE_H

static char driver, context, devices[MOST], broken[2];

struct described {
    uint32_t is;
    const void *next;
    uint32_t numbers[16];
};

CALL int zeInit(unsigned flags)
{
    return flags != 1 ? BAD_VALUE : device_count() ? 0 : NO_DEVICE;
}

/* Two more, which do not work. */
CALL int zeDriverGet(uint32_t *count, void **drivers)
{
    *count = 3;
    drivers[0] = &broken[0];
    drivers[1] = &driver;
    drivers[2] = &broken[1];
    return 0;
}

/* One device more, which is no GPU. */
CALL int zeDeviceGet(void *from, uint32_t *count, void **list)
{
    if (from != &driver || *count < device_count() + 1)
        return BAD_VALUE;
    *count = device_count() + 1;
    for (uint32_t i = 0; i < *count; i++)
        list[i] = &devices[i];
    return 0;
}

CALL int zeDeviceGetProperties(void *device, struct described *properties)
{
    unsigned number = (unsigned)((char *)device - devices);
    if (properties->is != 3 || number > device_count())
        return BAD_VALUE;
    properties->numbers[0] = number == 0 ? 4 : 1;
    memset((char *)properties + 96, (int)(0xe0 + number), 16);
    return 0;
}

CALL int zeDeviceGetCommandQueueGroupProperties(void *device, uint32_t *count, void *groups)
{
    struct {
        uint32_t is;
        void *next;
        uint32_t flags;
        size_t pattern;
        uint32_t queues;
    } *group = groups;
    (void)device;
    if (*count < 2 || group[0].is != 6 || group[1].is != 6)
        return BAD_VALUE;
    *count = 2;
    group[0].flags = 3;
    group[1].flags = 2;
    group[0].queues = group[1].queues = 1;
    return 0;
}

static int import_pointer(void *from, void *address, size_t length)
{
    return from == &driver ? pin(address, length) : BAD_VALUE;
}

static int release_pointer(void *from, void *address)
{
    return from == &driver ? unpin(address) : BAD_VALUE;
}

CALL int zeDriverGetExtensionFunctionAddress(void *from, const char *name, void **function)
{
    if (from != &driver || fault("no pin"))
        return BAD_VALUE;
    if (strcmp(name, "zexDriverImportExternalPointer") == 0)
        *function = (void *)import_pointer;
    else if (strcmp(name, "zexDriverReleaseImportedPointer") == 0)
        *function = (void *)release_pointer;
    else
        return BAD_VALUE;
    return 0;
}

CALL int zeContextCreate(void *from, const struct described *how, void **made)
{
    *made = &context;
    return from == &driver && how->is == 0xd ? 0 : BAD_VALUE;
}

/* Of group 1, which only copies; mode 1 is synchronous, mode 2 is not, and here in order. */
CALL int zeCommandListCreateImmediate(void *in, void *device, const struct described *how,
                                      void **list)
{
    struct stream *stream = calloc(1, sizeof *stream);
    usleep((useconds_t)(1000 * setting("FAKE_OPEN_MS", 0)));
    bool at_once = how->numbers[3] == 1, in_order = how->numbers[2] == 2;
    if (!stream || in != &context || !device || how->is != 0xe || how->numbers[0] != 1 ||
        at_once == in_order || fault("open") || (in_order && fault("at once"))) {
        free(stream);
        return fault("open") ? LOST : BAD_VALUE;
    }
    stream->at_once = at_once;
    *list = stream;
    return 0;
}

CALL int zeCommandListDestroy(void *list)
{
    free(list);
    return 0;
}

CALL int zeCommandListHostSynchronize(void *list, uint64_t timeout_ns)
{
    return timeout_ns ? synchronize(list) : query(list);
}

/* Which way is found out, not said. */
CALL int zeCommandListAppendMemoryCopy(void *list, void *to, const void *from, size_t length,
                                       void *signal, uint32_t waits, void **events)
{
    if (signal || waits || events)
        return BAD_VALUE;
    pthread_mutex_lock(&lock);
    bool to_gpu = block_at(to, length), from_gpu = block_at(from, length);
    pthread_mutex_unlock(&lock);
    return begin_copy(list, to, to_gpu, from, from_gpu, length);
}

CALL int zeMemAllocDevice(void *in, const struct described *how, size_t length, size_t align,
                          void *device, void **address)
{
    char *there = NULL;
    if (in != &context || how->is != 0x15 || !align || !device)
        return BAD_VALUE;
    int code = allocate((unsigned)((char *)device - devices), length, &there);
    *address = there;
    return code;
}

CALL int zeMemFree(void *in, void *address)
{
    return in == &context ? drop(address, false) : BAD_VALUE;
}

/* Its descriptor is there until it is put back. */
CALL int zeMemGetIpcHandle(void *in, const void *address, struct handle *handle)
{
    int code = in == &context ? export_block(address, handle) : BAD_VALUE;
    if (!code)
        handle->fd = fcntl(handle->fd, F_DUPFD_CLOEXEC, 0);
    return code;
}

CALL int zeMemPutIpcHandle(void *in, struct handle handle)
{
    return in == &context && handle.magic == MAGIC && !close(handle.fd) ? 0 : BAD_VALUE;
}

/* The exporter's descriptor if it has one of that number, whatever that is; else our own. */
static int descriptor_of(const struct handle *handle)
{
    char path[64], what[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", handle->pid, handle->fd);
    return readlink(path, what, sizeof what) < 0 ? fcntl(handle->fd, F_DUPFD_CLOEXEC, 0)
                                                 : open(path, O_RDWR | O_CLOEXEC);
}

CALL int zeMemOpenIpcHandle(void *in, void *device, struct handle handle, unsigned flags,
                            void **address)
{
    char *there = NULL;
    if (in != &context || !device || flags)
        return BAD_VALUE;
    int code = import_block(&handle, descriptor_of(&handle), &there);
    *address = there;
    return code;
}

CALL int zeMemGetAddressRange(void *in, const void *address, void **base, size_t *length)
{
    return in == &context ? span(address, base, length) : BAD_VALUE;
}

CALL int zeMemCloseIpcHandle(void *in, const void *address)
{
    return in == &context ? drop(address, true) : BAD_VALUE;
}

#endif
