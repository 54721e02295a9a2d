/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of a GPU in soft. Its own copy engines move the bytes, from whichever end executes a
 * command; the other process's memory is reached by its vendor's handle. Host memory that takes
 * part is page-locked at both ends, or a copy would go through a buffer of the driver's. */
#include "fabric/soft/soft.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- copies ---- */

static enum gpu_way way_of(bool to_gpu, bool from_gpu)
{
    return !from_gpu ? GPU_IN : !to_gpu ? GPU_OUT : GPU_WITHIN;
}

int soft_copy(struct soft *soft, char *to, bool to_gpu, const char *from, bool from_gpu,
              size_t length)
{
    if (!length)
        return 0;
    if (to_gpu || from_gpu) {
        enum gpu_way way = way_of(to_gpu, from_gpu);
        return soft->locked ? gpu_copy_locked(soft->gpu, to, from, length, way)
                            : gpu_copy(soft->gpu, to, from, length, way);
    }
    atomic_thread_fence(memory_order_seq_cst);
    memcpy(to, from, length);
    atomic_thread_fence(memory_order_seq_cst);
    return 0;
}

int soft_gpu_begin(struct soft *soft, char *to, bool to_gpu, const char *from, bool from_gpu,
                   size_t length)
{
    if (!length || (!to_gpu && !from_gpu))
        return soft_copy(soft, to, to_gpu, from, from_gpu, length);
    return gpu_begin(soft->gpu, to, from, length, way_of(to_gpu, from_gpu));
}

int soft_gpu_begin_all(struct soft *soft, const struct soft_command *command)
{
    const struct xfer *x = &command->xfer;
    const struct fabric_batch *list = &command->list;
    char *there = x->remote->address + x->remote_at, *here = x->local->address + x->at;
    bool reads = command->verb == VERB_READ;
    unsigned slot = 0;
    int status = 0;
    if (soft_immediate(x) && !reads)
        here = memcpy(soft->bounce + SOFT_BOUNCE + (command - soft->commands) * SOFT_BOUNCE_ROOM,
                      command->idc, x->length);
    for (unsigned i = 0; i < list->count && !status; i++) {
        size_t by = slot * list->step;
        status = reads ? soft_gpu_begin(soft, here + by, x->local->gpu, there + by, x->remote->gpu,
                                        x->length)
                       : soft_gpu_begin(soft, there + by, x->remote->gpu, here + by, x->local->gpu,
                                        x->length);
        slot = slot + 1 == list->slots ? 0 : slot + 1;
    }
    return status;
}

int soft_gpu_write(struct soft *soft, const struct xfer *x)
{
    const char *from = x->local->address + x->at;
    if (soft_immediate(x))
        from = memcpy(soft->bounce, from, x->length);
    int status = soft_copy(soft, x->remote->address + x->remote_at, x->remote->gpu, from,
                           x->local->gpu, x->length);
    return status ? status : DONE;
}

int soft_gpu_read(struct soft *soft, const struct xfer *x)
{
    int status = soft_copy(soft, x->local->address + x->at, x->local->gpu,
                           x->remote->address + x->remote_at, x->remote->gpu, x->length);
    return status ? status : DONE;
}

int soft_gpu_place(struct soft *soft, const struct xfer *x, const char *from, uint64_t entry,
                   uint64_t at, size_t fits, size_t *moved)
{
    size_t left = fits > *moved ? fits - *moved : 0;
    size_t piece = left < SOFT_GPU_PIECE ? left : SOFT_GPU_PIECE;
    /* What was kept in the command is not locked for the GPU. */
    if (x->how & HINT(INLINE))
        from = memcpy(soft->bounce, from, x->length);
    int status = soft_copy(soft, soft->link.regions[entry].address + at + *moved,
                           soft->link.regions[entry].gpu, from + *moved, x->local->gpu, piece);
    *moved += piece;
    return status ? status : *moved < fits ? LATER : DONE;
}

int soft_gpu_advance(struct soft *soft, struct soft_command *command)
{
    const struct xfer *x = &command->xfer;
    size_t left = x->length - command->moved;
    size_t piece = left < SOFT_GPU_PIECE ? left : SOFT_GPU_PIECE;
    char *there = x->remote->address + x->remote_at + command->moved;
    char *here = x->local->address + x->at + command->moved;
    int status;
    if (soft_immediate(x) && command->verb == VERB_WRITE)
        here = memcpy(soft->bounce, command->idc, piece);
    if (command->verb == VERB_READ)
        status = soft_copy(soft, here, x->local->gpu, there, x->remote->gpu, piece);
    else
        status = soft_copy(soft, there, x->remote->gpu, here, x->local->gpu, piece);
    command->moved += piece;
    return status ? status : command->moved == x->length ? DONE : -EAGAIN;
}

/* ---- the other end's memory ---- */

static int read_handle(const struct msg *text, struct gpu_handle *handle)
{
    size_t length = 0;
    int status = msg_hex(text, "handle", handle->bytes, sizeof handle->bytes, &length);
    if (!status && length != sizeof handle->bytes)
        status = fail(-EPROTO, "soft: a GPU's handle of %zu bytes", length);
    return status;
}

int soft_gpu_describe(const struct region *region, bool own_process, struct msg *text, int *fd)
{
    struct gpu_handle handle = {.fd = -1};
    int status = own_process ? 0 : gpu_export(region, &handle);
    if (!status)
        status = msg_add(text, "memory=%s\ngpu=%u\nidentity=%s\n", region->kind->name,
                         region->device, handle.identity);
    if (!status)
        status = msg_add_hex(text, "handle", handle.bytes, sizeof handle.bytes);
    *fd = handle.fd;
    return status;
}

bool soft_gpu_said(const struct msg *text)
{
    char name[16];
    return msg_value(text, "memory", name, sizeof name) == 0;
}

static int use_gpu(struct soft *soft, const struct memory_ops *kind, unsigned device,
                   const char *identity)
{
    if (soft->gpu && soft->gpu->kind != kind)
        return fail(-ENOTSUP,
                    "soft: one end's memory is on a GPU of %s, the other's of %s: no copy engine "
                    "reaches both",
                    memory_vendors[soft->gpu->kind->vendor - 1], memory_vendors[kind->vendor - 1]);
    return soft->gpu ? 0 : gpu_open(kind, device, identity, &soft->gpu);
}

int soft_gpu_map(struct soft *soft, struct soft_map *map, const struct msg *text, int fd)
{
    struct gpu_handle handle = {.fd = fd};
    const struct memory_ops *kind = NULL;
    uint64_t device, length;
    unsigned ignored;
    char name[16], *there;
    int status = msg_value(text, "memory", name, sizeof name);
    if (!status)
        status = memory_choose(name, &kind, &ignored);
    if (!status)
        status = msg_number(text, "gpu", &device);
    if (!status)
        status = msg_number(text, "length", &length);
    if (!status)
        status = msg_value(text, "identity", handle.identity, sizeof handle.identity);
    if (!status)
        status = read_handle(text, &handle);
    if (status || !kind || !kind->gpu)
        return fail(-EPROTO, "soft: the other end's GPU memory cannot be read");
    status = use_gpu(soft, kind, (unsigned)device, handle.identity);
    if (!status)
        status = gpu_import(soft->gpu, &handle, length, &there);
    if (status)
        return status;
    *map = (struct soft_map){.address = there, .length = length, .gpu = true};
    return 0;
}

/* ---- ours ---- */

int soft_gpu_expose(struct soft *soft, const struct region *region)
{
    return use_gpu(soft, region->kind, region->device, NULL);
}

/* Without it copies are slower, not wrong. */
static void pin(struct soft *soft, void *address, size_t length)
{
    if (soft->pin_count == SOFT_PINS || !length)
        return;
    if (!gpu_pin(soft->gpu, address, length)) {
        soft->pins[soft->pin_count++] = address;
        return;
    }
    if (!soft->unpinned)
        warn("%s; copies will be slower", fail_reason());
    soft->unpinned = true;
}

/* Nothing may use what is let go. */
static void land(struct soft *soft)
{
    if (soft->gpu && soft->flying)
        gpu_wait(soft->gpu);
}

void soft_gpu_withdraw(struct soft *soft, const struct region *region)
{
    land(soft);
    for (unsigned i = 0; i < soft->pin_count; i++)
        if (soft->pins[i] == region->address) {
            gpu_unpin(soft->gpu, region->address);
            soft->pins[i] = soft->pins[--soft->pin_count];
            return;
        }
}

/* The longest that a kernel copies, in the directions that there are: between host memory and a
 * GPU's, within GPUs'; active messages arrive in host memory. */
static size_t kernel_bytes(const struct soft *soft, bool host, bool two)
{
    const size_t *small = soft->gpu->small;
    size_t most = two ? small[GPU_WITHIN] : 0;
    if (host && small[GPU_IN] > most)
        most = small[GPU_IN];
    if ((host || soft->mail.arrival) && small[GPU_OUT] > most)
        most = small[GPU_OUT];
    return soft->locked ? most : 0;
}

/* Which path, for the header, and what then counts as done. two: both ends' memory is a GPU's. */
static void describe(struct soft *soft, bool host, bool theirs, bool two)
{
    size_t small = kernel_bytes(soft, host, two);
    char kernel[48] = "";
    if (small)
        snprintf(kernel, sizeof kernel, "kernel to %zu B and ", small);
    snprintf(soft->facts->form, sizeof soft->facts->form,
             "soft (software NIC, %scopy engine of %s GPU %u%s%s)", kernel,
             memory_vendors[soft->gpu->kind->vendor - 1], soft->gpu->device,
             theirs && !soft->link.own ? ", IPC" : "",
             !host            ? ""
             : soft->unpinned ? ", host memory not page-locked"
                              : ", page-locked host memory");
    soft->facts->proves[VERB_WRITE] =
        "the bytes are in the target's memory: the GPU's copy has been "
        "waited for";
    soft->facts->proves[VERB_READ] = "the target's bytes are in the initiator's memory: the GPU's "
                                     "copy has been waited for";
    soft->facts->batch_max = SOFT_GPU_BATCH;
}

int soft_gpu_join(struct soft *soft)
{
    const size_t bounce = SOFT_BOUNCE + SOFT_QUEUE * SOFT_BOUNCE_ROOM;
    bool host = false, ours = false, theirs = false;
    if (!soft->gpu)
        return 0;
    soft->bounce = aligned_alloc(SOFT_BOUNCE, bounce);
    if (!soft->bounce)
        return fail(-ENOMEM, "soft: no memory beside a GPU's");
    pin(soft, soft->bounce, bounce);
    for (int i = 0; i < SOFT_ENTRIES; i++)
        if (soft->exposed[i] && soft->exposed[i]->gpu) {
            ours = true;
        } else if (soft->exposed[i]) {
            pin(soft, soft->exposed[i]->address, soft->exposed[i]->mapped);
            host = true;
        }
    for (int i = 1; i < soft->link.received; i++) {
        const struct soft_map *map = &soft->link.maps[i];
        if (!map->gpu && !map->shared)
            pin(soft, map->address, map->length);
    }
    for (int i = 0; i < SOFT_ENTRIES; i++) {
        host |= soft->link.regions[i].address && !soft->link.regions[i].gpu;
        theirs |= soft->link.regions[i].gpu;
    }
    if (soft->mail.arrival) {
        pin(soft, soft->own->portal.address, soft->own->portal.mapped);
        if (!soft->link.own)
            pin(soft, soft->link.maps[0].address, soft->link.maps[0].length);
        pin(soft, soft->mail.arrival, SOFT_PULL_BYTES);
    }
    soft->locked = !soft->unpinned && !soft->link.own;
    describe(soft, host, theirs, ours && theirs);
    return 0;
}

void soft_gpu_unpin(struct soft *soft)
{
    land(soft);
    while (soft->pin_count)
        gpu_unpin(soft->gpu, soft->pins[--soft->pin_count]);
}

/* A GPU that only the other end's memory was on is not ours to keep. */
void soft_gpu_leave(struct soft *soft)
{
    bool ours = false;
    free(soft->bounce);
    soft->bounce = NULL;
    soft->unpinned = soft->locked = false;
    if (!soft->gpu)
        return;
    for (int i = 0; i < SOFT_ENTRIES; i++)
        ours |= soft->exposed[i] && soft->exposed[i]->gpu;
    if (!ours) {
        gpu_close(soft->gpu);
        soft->gpu = NULL;
    }
    soft_describe_path(soft->facts);
}
