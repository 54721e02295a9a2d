/* SPDX-License-Identifier: BSD-3-Clause */
/* What is common to the GPU vendors: discovery, buffers, and all error messages. A vendor library
 * is loaded on first use and never unloaded. */
#include "memory/gpu.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const memory_vendors[] = {"AMD", "NVIDIA", "INTEL", NULL};

/* In the order of trying. */
static const struct memory_ops *const kinds[] = {&memory_cuda, &memory_rocm, &memory_ze};

/* The state of a vendor library. */
static struct state {
    bool tried;
    unsigned count;
    char why[160]; /* there are none */
} states[MEMORY_VENDORS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static const char *vendor_of(const struct memory_ops *kind)
{
    return memory_vendors[kind->vendor - 1];
}

static int gpu_fail(const struct memory_ops *kind, unsigned device, int code, const char *format,
                    ...) __attribute__((format(printf, 4, 5)));

/* "GPU 0 (NVIDIA): copying 8 bytes: CUDA_ERROR_..." */
static int gpu_fail(const struct memory_ops *kind, unsigned device, int code, const char *format,
                    ...)
{
    char what[160], words[160];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    kind->gpu->words(code, words, sizeof words);
    return fail(code == kind->gpu->no_memory ? -ENOMEM : -EIO, "GPU %u (%s): %s: %s", device,
                vendor_of(kind), what, words);
}

/* ---- finding ---- */

static bool resolve(const struct gpu_ops *ops, void *library, const char *name, struct state *state)
{
    for (size_t i = 0; i < ops->symbol_count; i++) {
        void *found = dlsym(library, ops->symbols[i].name);
        if (!found && !ops->symbols[i].optional) {
            snprintf(state->why, sizeof state->why, "%s has no %s", name, ops->symbols[i].name);
            return false;
        }
        memcpy(ops->symbols[i].where, &found, sizeof found);
    }
    return true;
}

static void *open_library(const struct gpu_ops *ops, const char **name)
{
    void *library = NULL;
    for (size_t i = 0; ops->libraries[i] && !library; i++) {
        *name = ops->libraries[i];
        library = gpu_library(*name);
    }
    return library;
}

/* "no driver: libamdhip64.so.7, libamdhip64.so.6 or ... is not found" */
static void say_missing(const struct gpu_ops *ops, struct state *state)
{
    size_t used = (size_t)snprintf(state->why, sizeof state->why, "no driver: ");
    for (size_t i = 0; ops->libraries[i] && used < sizeof state->why; i++)
        used += (size_t)snprintf(state->why + used, sizeof state->why - used, "%s%s",
                                 !i                      ? ""
                                 : ops->libraries[i + 1] ? ", "
                                                         : " or ",
                                 ops->libraries[i]);
    if (used < sizeof state->why)
        snprintf(state->why + used, sizeof state->why - used, " is not found");
}

static void look(const struct memory_ops *kind, struct state *state)
{
    const struct gpu_ops *ops = kind->gpu;
    const char *name = "";
    char words[120];
    void *library = open_library(ops, &name);
    if (!library) {
        say_missing(ops, state);
        return;
    }
    if (!resolve(ops, library, name, state))
        return;
    int code = ops->start(&state->count);
    if (code) {
        state->count = 0;
        ops->words(code, words, sizeof words);
        snprintf(state->why, sizeof state->why, "%s: %s", name, words);
    } else if (!state->count) {
        snprintf(state->why, sizeof state->why, "%s knows none", name);
    }
}

/* Vendor libraries install signal handlers and start threads: every handler is restored, and their
 * threads receive no signals. */
static void guard_begin(sigset_t *mask)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, mask);
    signals_keep();
}

static void guard_end(const sigset_t *mask)
{
    signals_restore();
    pthread_sigmask(SIG_SETMASK, mask, NULL);
}

static const struct state *state_of(const struct memory_ops *kind)
{
    struct state *state = &states[kind->vendor];
    pthread_mutex_lock(&lock);
    if (!state->tried) {
        sigset_t mask;
        guard_begin(&mask);
        look(kind, state);
        guard_end(&mask);
        state->tried = true;
    }
    pthread_mutex_unlock(&lock);
    return state;
}

/* The vendors that are present, for an error message. */
static void list_others(char *text, size_t room)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < LENGTH(kinds); i++) {
        unsigned count = state_of(kinds[i])->count;
        if (count && used < room)
            used += (size_t)snprintf(text + used, room - used, "%s%u of %s", used ? ", " : "",
                                     count, vendor_of(kinds[i]));
    }
}

static int none_at_all(void)
{
    char why[400] = "";
    size_t used = 0;
    for (size_t i = 0; i < LENGTH(kinds) && used < sizeof why; i++)
        used += (size_t)snprintf(why + used, sizeof why - used, "%s%s (%s)", i ? ", " : "",
                                 state_of(kinds[i])->why, vendor_of(kinds[i]));
    return fail(-ENODEV, "no GPU here: %s", why);
}

static int none_of(const struct memory_ops *kind)
{
    char others[96];
    list_others(others, sizeof others);
    return fail(-ENODEV, "no GPU of %s here (%s)%s%s", vendor_of(kind), state_of(kind)->why,
                *others ? "; there are: " : "", others);
}

static int check(const struct memory_ops *kind, unsigned device)
{
    unsigned count = state_of(kind)->count;
    if (!count)
        return none_of(kind);
    if (device < count)
        return 0;
    if (count == 1)
        return fail(-ENODEV, "no GPU %u: there is 1 GPU of %s here, GPU 0", device,
                    vendor_of(kind));
    return fail(-ENODEV, "no GPU %u: there are %u GPUs of %s here, 0 to %u", device, count,
                vendor_of(kind), count - 1);
}

int gpu_find(enum memory_vendor vendor, unsigned device, const struct memory_ops **kind,
             unsigned *count)
{
    for (size_t i = 0; i < LENGTH(kinds); i++) {
        if (vendor == MEMORY_CPU ? !state_of(kinds[i])->count : vendor != kinds[i]->vendor)
            continue;
        *kind = kinds[i];
        *count = state_of(kinds[i])->count;
        return check(kinds[i], device);
    }
    return none_at_all();
}

/* ---- an open GPU ---- */

static atomic_uint_fast64_t serials;
static _Thread_local uint64_t current;

bool gpu_is_new(const struct gpu *gpu)
{
    return current != gpu->serial;
}

int gpu_told(const struct gpu *gpu, int code)
{
    current = code ? 0 : gpu->serial;
    return code;
}

/* The GPU with this identity; the given number if none has it. */
static unsigned by_identity(const struct memory_ops *kind, unsigned device, const char *identity)
{
    char text[GPU_IDENTITY_ROOM];
    for (unsigned i = 0; i < state_of(kind)->count; i++)
        if (!kind->gpu->identify(i, text, sizeof text) && strcmp(text, identity) == 0)
            return i;
    return device;
}

int gpu_open(const struct memory_ops *kind, unsigned device, const char *identity, struct gpu **gpu)
{
    sigset_t mask;
    if (state_of(kind)->count && identity)
        device = by_identity(kind, device, identity);
    int status = check(kind, device);
    if (status)
        return status;
    *gpu = calloc(1, sizeof **gpu);
    if (!*gpu)
        return fail(-ENOMEM, "no memory for GPU %u", device);
    **gpu =
        (struct gpu){.kind = kind,
                     .device = device,
                     .serial = ++serials,
                     .copy = gpu_copy_one,
                     .copy_locked = kind->gpu->copy_locked ? kind->gpu->copy_locked : gpu_copy_one};
    guard_begin(&mask);
    int code = kind->gpu->open(*gpu);
    guard_end(&mask);
    if (!code)
        return 0;
    free(*gpu);
    *gpu = NULL;
    return gpu_fail(kind, device, code, "cannot be used");
}

void gpu_close(struct gpu *gpu)
{
    if (!gpu)
        return;
    gpu->kind->gpu->close(gpu);
    free(gpu);
}

int gpu_pin(struct gpu *gpu, void *address, size_t length)
{
    int code = gpu->kind->gpu->pin(gpu, address, length);
    return code ? gpu_fail(gpu->kind, gpu->device, code, "page-locking %zu bytes", length) : 0;
}

void gpu_unpin(struct gpu *gpu, void *address)
{
    gpu->kind->gpu->unpin(gpu, address);
}

int gpu_export(const struct region *region, struct gpu_handle *handle)
{
    struct gpu *gpu = region->gpu;
    const struct gpu_ops *ops = region->kind->gpu;
    *handle = (struct gpu_handle){.fd = -1};
    int code = ops->identify(gpu->device, handle->identity, sizeof handle->identity);
    if (!code)
        code = ops->export_memory(gpu, region->address, handle);
    return code ? gpu_fail(region->kind, gpu->device, code,
                           "its driver gives no handle for another process (a container, or a "
                           "part of a GPU?)")
                : 0;
}

int gpu_dmabuf(const struct region *region, int *fd, uint64_t *offset)
{
    *fd = -1;
    *offset = 0;
    int code = region->kind->gpu->dmabuf(region->gpu, region->address, region->mapped, fd, offset);
    return code || *fd < 0 ? -ENOTSUP : 0;
}

int gpu_import(struct gpu *gpu, const struct gpu_handle *handle, size_t length, char **address)
{
    const struct gpu_ops *ops = gpu->kind->gpu;
    size_t there = 0;
    int code = ops->import_memory(gpu, handle, address);
    if (code)
        return gpu_fail(gpu->kind, gpu->device, code,
                        "its driver does not open the other end's memory (another user, another "
                        "container, or GPUs that cannot reach each other?)");
    if (ops->span(gpu, *address, &there) || there >= length)
        return 0;
    ops->release(gpu, *address);
    return fail(-EPROTO, "the other end's GPU memory has %zu bytes, not %zu", there, length);
}

void gpu_release(struct gpu *gpu, char *address)
{
    gpu->kind->gpu->release(gpu, address);
}

int gpu_copy_failed(const struct gpu *gpu, int code, size_t length, enum gpu_way way)
{
    static const char *const ways[] = {"from the host", "to the host", "from GPU to GPU"};
    return gpu_fail(gpu->kind, gpu->device, code, "copying %zu bytes %s", length, ways[way]);
}

int gpu_copy_one(struct gpu *gpu, void *to, const void *from, size_t length, enum gpu_way way)
{
    const struct gpu_ops *ops = gpu->kind->gpu;
    int code = ops->begin(gpu, to, from, length, way);
    return code ? code : ops->wait(gpu);
}

int gpu_begin(struct gpu *gpu, void *to, const void *from, size_t length, enum gpu_way way)
{
    int code = gpu->kind->gpu->begin(gpu, to, from, length, way);
    return code ? gpu_copy_failed(gpu, code, length, way) : 0;
}

int gpu_done(struct gpu *gpu)
{
    const struct gpu_ops *ops = gpu->kind->gpu;
    int code = ops->query(gpu);
    if (code == ops->not_ready)
        return 0;
    return code ? gpu_fail(gpu->kind, gpu->device, code, "waiting for copies") : 1;
}

void gpu_wait(struct gpu *gpu)
{
    gpu->kind->gpu->wait(gpu);
}

/* ---- buffers ---- */

static int no_room(struct gpu *gpu, size_t length)
{
    char need[32], have[32];
    uint64_t available;
    const struct gpu_ops *ops = gpu->kind->gpu;
    unit_bytes_text(length, need, sizeof need);
    if (!ops->room || ops->room(gpu, &available))
        return fail(-ENOMEM, "not enough memory on GPU %u (%s): %s needed", gpu->device,
                    vendor_of(gpu->kind), need);
    unit_bytes_text(available, have, sizeof have);
    return fail(-ENOMEM, "not enough memory on GPU %u (%s): %s needed, %s free", gpu->device,
                vendor_of(gpu->kind), need, have);
}

int gpu_alloc(struct region *region, size_t length, const struct memory_ops *kind)
{
    unsigned device = region->device;
    size_t mapped = (length + kind->page - 1) / kind->page * kind->page;
    struct gpu *gpu = NULL;
    char *address = NULL;
    if (mapped < length)
        return fail(-ENOMEM, "cannot allocate a buffer of %zu bytes on a GPU", length);
    int status = gpu_open(kind, device, NULL, &gpu);
    if (status || !gpu)
        return status;
    int code = kind->gpu->alloc(gpu, mapped, &address);
    if (code) {
        status = code == kind->gpu->no_memory
                     ? no_room(gpu, mapped)
                     : gpu_fail(kind, device, code, "a buffer of %zu bytes", mapped);
        gpu_close(gpu);
        return status;
    }
    *region = (struct region){.kind = kind,
                              .address = address,
                              .length = length,
                              .mapped = mapped,
                              .page = kind->page,
                              .fd = -1,
                              .device = device,
                              .gpu = gpu};
    return 0;
}

void gpu_free(struct region *region)
{
    if (region->address)
        region->kind->gpu->free(region->gpu, region->address);
    gpu_close(region->gpu);
    region->address = NULL;
    region->gpu = NULL;
}

/* GPU memory is always present; this only clears it, like host memory. */
int gpu_populate(struct region *region, size_t at, size_t length)
{
    enum { PIECE = 4 << 20 };
    int status = 0;
    char *zeroes = calloc(1, PIECE);
    if (!zeroes)
        return fail(-ENOMEM, "no memory to clear a GPU buffer");
    for (size_t done = 0; done < length && !status; done += PIECE) {
        size_t piece = length - done < PIECE ? length - done : PIECE;
        status = gpu_copy(region->gpu, region->address + at + done, zeroes, piece, GPU_IN);
    }
    free(zeroes);
    return status;
}

int gpu_fill(struct region *region, size_t at, const void *bytes, size_t length)
{
    return length ? gpu_copy(region->gpu, region->address + at, bytes, length, GPU_IN) : 0;
}

int gpu_peek(const struct region *region, size_t at, void *bytes, size_t length)
{
    return length ? gpu_copy(region->gpu, bytes, region->address + at, length, GPU_OUT) : 0;
}
