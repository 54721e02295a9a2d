/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls of libamdhip64, for fake_gpu.c, which has all that they share. */
#ifndef WEFT_FAKE_ROCM_H
#define WEFT_FAKE_ROCM_H

static _Thread_local unsigned current;

CALL int hipInit(unsigned flags)
{
    return flags ? BAD_VALUE : 0;
}

CALL int hipGetDeviceCount(int *count)
{
    *count = (int)device_count();
    return *count ? 0 : NO_DEVICE;
}

CALL int hipDeviceGetPCIBusId(char *text, int room, int device)
{
    snprintf(text, (size_t)room, "0000:%02x:00.0", 16 + device);
    return 0;
}

CALL const char *hipGetErrorName(int code)
{
    return name_of(code);
}

CALL const char *hipGetErrorString(int code)
{
    (void)code;
    return "says the double";
}

CALL int hipSetDevice(int device)
{
    current = (unsigned)device;
    return current < device_count() ? 0 : BAD_VALUE;
}

CALL int hipSetDeviceFlags(unsigned flags)
{
    (void)flags;
    return 0;
}

CALL int hipStreamCreateWithFlags(void **stream, unsigned flags)
{
    (void)flags;
    return fault("open") ? LOST : new_stream(stream);
}

CALL int hipStreamDestroy(void *stream)
{
    free(stream);
    return 0;
}

CALL int hipStreamSynchronize(void *stream)
{
    return synchronize(stream);
}

CALL int hipStreamQuery(void *stream)
{
    return query(stream);
}

CALL int hipMemGetInfo(size_t *available, size_t *total)
{
    *total = setting("FAKE_BYTES", UINT64_C(4) << 30);
    *available = *total - used_bytes(current);
    return 0;
}

CALL int hipMalloc(void **address, size_t length)
{
    char *there = NULL;
    int code = allocate(current, length, &there);
    *address = there;
    return code;
}

CALL int hipFree(void *address)
{
    return drop(address, false);
}

CALL int hipMemcpyAsync(void *to, const void *from, size_t length, int kind, void *stream)
{
    if (kind < 1 || kind > 3)
        return BAD_VALUE;
    return begin_copy(stream, to, kind != 2, from, kind != 1, length);
}

CALL int hipHostRegister(void *address, size_t length, unsigned flags)
{
    (void)flags;
    return pin(address, length);
}

CALL int hipHostUnregister(void *address)
{
    return unpin(address);
}

CALL int hipIpcGetMemHandle(struct handle *handle, void *address)
{
    return export_block(address, handle);
}

CALL int hipIpcOpenMemHandle(void **address, struct handle handle, unsigned flags)
{
    char *there = NULL;
    int code = flags == 1 ? import_by_pid(&handle, &there) : BAD_VALUE;
    *address = there;
    return code;
}

CALL int hipMemGetAddressRange(void **base, size_t *length, void *address)
{
    return span(address, base, length);
}

/* These are of libhsa-runtime64. */
CALL int hsa_amd_portable_export_dmabuf(const void *address, size_t length, int *fd,
                                        uint64_t *offset)
{
    return dmabuf(address, length, fd, offset);
}

CALL int hsa_amd_portable_close_dmabuf(int fd)
{
    return close(fd);
}

CALL int hipIpcCloseMemHandle(void *address)
{
    return drop(address, true);
}

#endif
