/* SPDX-License-Identifier: BSD-3-Clause */
/* A double of libcuda, libamdhip64 or libze_loader, whichever FAKE says. GPU memory is a memfd, but
 * its addresses cannot be touched: whoever forgets what they are dies. Copies happen when their
 * stream is synchronised, not before. The environment says how many there are (FAKE_CUDA_GPUS,
 * _ROCM_, _ZE_), with how much memory (FAKE_BYTES), whether copies need locked pages (FAKE_PINNED),
 * how long opening takes (FAKE_INIT_MS, CUDA alone; FAKE_OPEN_MS), and what goes wrong (FAKE_FAULT,
 * see fault). */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CUDA         1
#define ROCM         2
#define ZE           3
#define CALL         __attribute__((visibility("default")))
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* What the vendors call it. */
#if FAKE == ZE
#define GPUS "FAKE_ZE_GPUS"
enum {
    BAD_VALUE = 0x78000004,
    NO_MEMORY = 0x70000003,
    NO_DEVICE = 0x78000001,
    NO_CONTEXT = 0x78000005,
    LOST = 0x70000001,
    NO_COPY = 0x7ffffffe,
    NO_IPC = 0x70010000,
    NOT_PINNED = 0x78000003,
    PINNED_ALREADY = 0x78000004
};
#else
#define GPUS (FAKE == CUDA ? "FAKE_CUDA_GPUS" : "FAKE_ROCM_GPUS")
enum {
    BAD_VALUE = 1,
    NO_MEMORY = 2,
    NO_DEVICE = 100,
    NO_CONTEXT = 201,
    LOST = 46,
    NO_COPY = 700,
    NO_IPC = 201,
    NOT_PINNED = 713,
    PINNED_ALREADY = 712
};
#endif

enum { MOST = 64, PENDING = 16, MAGIC = 0x5eed, PAGE = 4096 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t setting(const char *name, uint64_t fallback)
{
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 0) : fallback;
}

/* "copy@7" fails the seventh copy, "lost@7" everything from then on; kernels from the seventh copy
 * on do not end after "hang@7". "open", "use", "pin", "export" and "import" fail those; "no pin"
 * means that there is no such thing. */
static bool fault(const char *what)
{
    const char *text = getenv("FAKE_FAULT");
    return text && strcmp(text, what) == 0;
}

static uint64_t fault_at(const char *what)
{
    const char *text = getenv("FAKE_FAULT");
    size_t length = strlen(what);
    return text && strncmp(text, what, length) == 0 && text[length] == '@'
               ? strtoull(text + length + 1, NULL, 0)
               : UINT64_MAX;
}

static _Atomic uint64_t copies;

static unsigned device_count(void)
{
    return (unsigned)setting(GPUS, 0);
}

/* ---- memory ---- */

static struct block {
    char *address; /* for the GPU's calls: no CPU may go there */
    char *bytes;   /* the same memory */
    size_t length;
    unsigned device;
    int fd;
    bool imported;
} blocks[MOST];

static struct {
    char *address;
    size_t length;
} pinned[MOST];

static uint64_t used_bytes(unsigned device)
{
    uint64_t used = 0;
    for (size_t i = 0; i < MOST; i++)
        used += blocks[i].address && !blocks[i].imported && blocks[i].device == device
                    ? blocks[i].length
                    : 0;
    return used;
}

static int map_block(struct block *block, int fd, size_t length, unsigned device, bool imported)
{
    char *bytes = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    char *address = mmap(NULL, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (bytes == MAP_FAILED || address == MAP_FAILED)
        return NO_MEMORY;
    *block = (struct block){address, bytes, length, device, fd, imported};
    return 0;
}

static struct block *free_block(void)
{
    for (size_t i = 0; i < MOST; i++)
        if (!blocks[i].address)
            return &blocks[i];
    return NULL;
}

static int allocate(unsigned device, size_t length, char **address)
{
    pthread_mutex_lock(&lock);
    struct block *block = free_block();
    int code = NO_MEMORY, fd = -1;
    if (block && used_bytes(device) + length <= setting("FAKE_BYTES", UINT64_C(4) << 30))
        fd = memfd_create("fake-gpu", MFD_CLOEXEC);
    if (fd >= 0 && !ftruncate(fd, (off_t)length))
        code = map_block(block, fd, length, device, false);
    if (!code) {
        /* A GPU's memory is not cleared. */
        memset(block->bytes, 0xa5, length < 65536 ? length : 65536);
        *address = block->address;
    }
    pthread_mutex_unlock(&lock);
    return code;
}

static struct block *block_at(const void *address, size_t length)
{
    for (size_t i = 0; i < MOST; i++) {
        struct block *b = &blocks[i];
        if (b->address && (const char *)address >= b->address &&
            (const char *)address + length <= b->address + b->length)
            return b;
    }
    return NULL;
}

static int drop(const void *address, bool imported)
{
    int code = BAD_VALUE;
    pthread_mutex_lock(&lock);
    struct block *b = block_at(address, 1);
    if (b && b->address == address && b->imported == imported) {
        munmap(b->address, b->length);
        munmap(b->bytes, b->length);
        close(b->fd);
        *b = (struct block){0};
        code = 0;
    }
    pthread_mutex_unlock(&lock);
    return code;
}

/* Whole pages are locked, and none twice. */
static bool overlaps(const char *address, size_t length)
{
    uintptr_t first = (uintptr_t)address / PAGE, last = ((uintptr_t)address + length - 1) / PAGE;
    for (size_t i = 0; i < MOST; i++)
        if (pinned[i].address && (uintptr_t)pinned[i].address / PAGE <= last &&
            ((uintptr_t)pinned[i].address + pinned[i].length - 1) / PAGE >= first)
            return true;
    return false;
}

static int pin(void *address, size_t length)
{
    pthread_mutex_lock(&lock);
    int code = fault("pin") ? NO_MEMORY : overlaps(address, length) ? PINNED_ALREADY : BAD_VALUE;
    for (size_t i = 0; i < MOST && code == BAD_VALUE; i++)
        if (!pinned[i].address) {
            pinned[i].address = address;
            pinned[i].length = length;
            code = 0;
        }
    pthread_mutex_unlock(&lock);
    return code;
}

static int unpin(void *address)
{
    int code = BAD_VALUE;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < MOST && code; i++)
        if (pinned[i].address == address) {
            pinned[i].address = NULL;
            code = 0;
        }
    pthread_mutex_unlock(&lock);
    return code;
}

/* Before anything was locked, nothing needs to be. */
static bool is_pinned(const char *address, size_t length)
{
    bool any = false;
    for (size_t i = 0; i < MOST; i++) {
        any |= pinned[i].address != NULL;
        if (pinned[i].address && address >= pinned[i].address &&
            address + length <= pinned[i].address + pinned[i].length)
            return true;
    }
    return !any;
}

/* ---- copies ---- */

struct stream {
    struct {
        char *to;
        const char *from;
        size_t length;
    } pending[PENDING];
    unsigned count;
    bool at_once;
};

/* The bytes behind an address that must, or must not, be a GPU's; NULL if it is the other. */
static char *behind(const void *address, size_t length, bool gpu)
{
    struct block *b = block_at(address, length);
    if (gpu)
        return b ? b->bytes + ((const char *)address - b->address) : NULL;
    return b ? NULL : (char *)address;
}

/* For tests that look at what they moved. */
CALL char *fake_view(char *address);
CALL char *fake_view(char *address)
{
    pthread_mutex_lock(&lock);
    char *bytes = behind(address, 1, true);
    pthread_mutex_unlock(&lock);
    return bytes;
}

static void run_pending(struct stream *stream)
{
    for (unsigned i = 0; i < stream->count; i++)
        memcpy(stream->pending[i].to, stream->pending[i].from, stream->pending[i].length);
    stream->count = 0;
}

static int begin_copy(struct stream *stream, void *to, bool to_gpu, const void *from, bool from_gpu,
                      size_t length)
{
    int code = 0;
    pthread_mutex_lock(&lock);
    char *there = behind(to, length, to_gpu), *here = behind(from, length, from_gpu);
    const char *host = to_gpu ? here : there;
    copies++;
    if (copies >= fault_at("lost"))
        code = LOST;
    else if (copies == fault_at("copy"))
        code = NO_COPY;
    else if (!there || !here || stream->count == PENDING)
        code = BAD_VALUE;
    else if (setting("FAKE_PINNED", 0) && to_gpu != from_gpu && !is_pinned(host, length))
        code = NOT_PINNED;
    if (!code) {
        stream->pending[stream->count].to = there;
        stream->pending[stream->count].from = here;
        stream->pending[stream->count++].length = length;
    }
    pthread_mutex_unlock(&lock);
    if (!code && stream->at_once)
        run_pending(stream);
    return code;
}

/* ---- between processes ---- */

struct handle {
    union {
        struct {
            int fd; /* first, as in Level Zero's */
            int pid;
            uint64_t magic, length;
            unsigned device;
        };
        char room[64];
    };
};

static int export_block(const void *address, struct handle *handle)
{
    int code = NO_IPC;
    pthread_mutex_lock(&lock);
    const struct block *b = block_at(address, 1);
    if (b && b->address == address && !fault("export")) {
        *handle = (struct handle){0};
        handle->fd = b->fd;
        handle->pid = getpid();
        handle->magic = MAGIC;
        handle->length = b->length;
        handle->device = b->device;
        code = 0;
    }
    pthread_mutex_unlock(&lock);
    return code;
}

static int import_block(const struct handle *handle, int fd, char **address)
{
    int code = NO_IPC;
    pthread_mutex_lock(&lock);
    struct block *block = free_block();
    if (block && fd >= 0 && handle->magic == MAGIC && !fault("import"))
        code = map_block(block, fd, handle->length, handle->device, true);
    if (!code)
        *address = block->address;
    else if (fd >= 0)
        close(fd);
    pthread_mutex_unlock(&lock);
    return code;
}

static int span(const void *address, void **base, size_t *length)
{
    pthread_mutex_lock(&lock);
    const struct block *b = block_at(address, 1);
    if (b) {
        *base = b->address;
        *length = b->length;
    }
    pthread_mutex_unlock(&lock);
    return b ? 0 : BAD_VALUE;
}

#if FAKE == CUDA || FAKE == ROCM
/* Its own process cannot open a handle. */
static int import_by_pid(const struct handle *handle, char **address)
{
    char path[64];
    if (handle->pid == getpid())
        return NO_IPC;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", handle->pid, handle->fd);
    return import_block(handle, open(path, O_RDWR | O_CLOEXEC), address);
}

static int synchronize(struct stream *stream)
{
    if (copies >= fault_at("lost"))
        return LOST;
    for (volatile uint64_t i = setting("FAKE_KERNEL", 0) * 20000; i > 0; i--)
        continue;
    run_pending(stream);
    return 0;
}

/* What is given up, because a kernel does not end, is no leak. */
static void *own(void *memory)
{
    static void *volatile owned[MOST];
    static _Atomic unsigned count;
    unsigned place = count++ % MOST;
    owned[place] = memory;
    return owned[place];
}

static int new_stream(void **stream)
{
    usleep((useconds_t)(1000 * setting("FAKE_OPEN_MS", 0)));
    *stream = own(calloc(1, sizeof(struct stream)));
    return *stream ? 0 : NO_MEMORY;
}

static const char *name_of(int code)
{
    switch (code) {
    case BAD_VALUE:
        return "ERROR_INVALID_VALUE";
    case NO_MEMORY:
        return "ERROR_OUT_OF_MEMORY";
    case NO_DEVICE:
        return "ERROR_NO_DEVICE";
    case NO_CONTEXT:
        return "ERROR_INVALID_CONTEXT";
    case LOST:
        return "ERROR_DEVICE_UNAVAILABLE";
    case NO_COPY:
        return "ERROR_ILLEGAL_ADDRESS";
    case NOT_PINNED:
        return "ERROR_HOST_MEMORY_NOT_REGISTERED";
    case PINNED_ALREADY:
        return "ERROR_HOST_MEMORY_ALREADY_REGISTERED";
    default:
        return "ERROR_UNKNOWN";
    }
}
#endif

/* ---- libcuda ---- */

#if FAKE == CUDA
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
    return ((struct stream *)stream)->count || copies >= fault_at("hang") ? 600 : 0;
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
    for (volatile uint64_t i = within && setting("FAKE_KERNEL", 0) == 2 ? 80000 : 0; i > 0; i--)
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

/* ---- libamdhip64 ---- */

#if FAKE == ROCM
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

CALL int hipIpcCloseMemHandle(void *address)
{
    return drop(address, true);
}
#endif

/* ---- libze_loader ---- */

#if FAKE == ZE
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

/* Of group 1, which only copies; mode 1 is synchronous. */
CALL int zeCommandListCreateImmediate(void *in, void *device, const struct described *how,
                                      void **list)
{
    struct stream *stream = calloc(1, sizeof *stream);
    usleep((useconds_t)(1000 * setting("FAKE_OPEN_MS", 0)));
    if (!stream || in != &context || !device || how->is != 0xe || how->numbers[0] != 1 ||
        fault("open")) {
        free(stream);
        return fault("open") ? LOST : BAD_VALUE;
    }
    stream->at_once = how->numbers[3] == 1;
    *list = stream;
    return 0;
}

CALL int zeCommandListDestroy(void *list)
{
    free(list);
    return 0;
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
