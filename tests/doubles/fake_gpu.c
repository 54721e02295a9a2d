/* SPDX-License-Identifier: BSD-3-Clause */
/* A double of libcuda, libamdhip64 or libze_loader, whichever FAKE says. GPU memory is a memfd, but
 * its addresses cannot be touched: whoever forgets what they are dies. Copies happen when their
 * stream is synchronised, or at the second query, not before. The environment says how many GPUs
 * there are (FAKE_CUDA_GPUS, _ROCM_, _ZE_), with how much memory (FAKE_BYTES), whether copies need
 * locked pages (FAKE_PINNED), how long opening takes (FAKE_INIT_MS, CUDA alone; FAKE_OPEN_MS), what
 * goes wrong (FAKE_FAULT, see fault), and in which file a process says at its end how many copies
 * it made and how often it waited for some (FAKE_COUNTS). */
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
    NOT_READY = 1,
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
    NOT_READY = 600,
    PINNED_ALREADY = 712
};
#endif

enum { MOST = 64, PENDING = 16384, MAGIC = 0x5eed, PAGE = 4096 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t setting(const char *name, uint64_t fallback)
{
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 0) : fallback;
}

/* "copy@7" fails the seventh copy, "lost@7" everything from then on; kernels from the seventh copy
 * on do not end after "hang@7". "open", "use", "pin", "export", "dmabuf" and "import" fail those;
 * "no pin" means that there is no such thing, "at once" that no list of Level Zero is in order. */
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

static _Atomic uint64_t copies, waits;

static __attribute__((destructor)) void tell_counts(void)
{
    const char *path = getenv("FAKE_COUNTS");
    int fd = path && copies ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
    if (fd >= 0) {
        dprintf(fd, "%d %ju %ju\n", getpid(), (uintmax_t)copies, (uintmax_t)waits);
        close(fd);
    }
}

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
    unsigned asked; /* queries since the last copy was begun */
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
    waits += stream->count > 0;
    stream->count = 0;
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

static int query(struct stream *stream)
{
    if (copies >= fault_at("hang") || (stream->count && !stream->asked++))
        return NOT_READY;
    return synchronize(stream);
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
        stream->asked = 0;
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

#if FAKE == CUDA || FAKE == ROCM
/* A dma-buf of whole pages of a block. */
static int dmabuf(const void *address, size_t length, int *fd, uint64_t *offset)
{
    int code = BAD_VALUE;
    pthread_mutex_lock(&lock);
    const struct block *b = block_at(address, length);
    if (b && (uintptr_t)address % PAGE == 0 && length % PAGE == 0 && !fault("dmabuf")) {
        *fd = fcntl(b->fd, F_DUPFD_CLOEXEC, 0);
        *offset = (uint64_t)((const char *)address - b->address);
        code = *fd < 0 ? NO_MEMORY : 0;
    }
    pthread_mutex_unlock(&lock);
    return code;
}
#endif

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

/* ---- the calls of each library ---- */

#if FAKE == CUDA
#include "fake_cuda.h"
#elif FAKE == ROCM
#include "fake_rocm.h"
#elif FAKE == ZE
#include "fake_ze.h"
#endif
