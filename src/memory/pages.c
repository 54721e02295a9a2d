/* SPDX-License-Identifier: BSD-3-Clause */
/* Host memory in pages of the system's size, of 2 MiB or of 1 GiB. Each region is an unnamed memfd,
 * which the kernel frees when the last process that maps it exits. Populating reports a shortage as
 * an error; without it the first access would end in SIGBUS. */
#include "core/machine.h"
#include "memory/memory.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/memfd.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

static uint64_t huge_number(const struct memory_ops *kind, const char *what)
{
    uint64_t number = 0;
    system_number("", &number, "/sys/kernel/mm/hugepages/hugepages-%zukB/%s", kind->page >> 10,
                  what);
    return number;
}

static uint64_t huge_free(const struct memory_ops *kind)
{
    uint64_t free_pages = huge_number(kind, "free_hugepages");
    uint64_t promised = huge_number(kind, "resv_hugepages");
    return free_pages - (promised < free_pages ? promised : free_pages);
}

int memory_pages_missing(const struct memory_ops *const kinds[], int ends, size_t length)
{
    char needs[256] = "", commands[512] = "";
    bool alike = ends == 2 && kinds[0] == kinds[1];
    const char *first = NULL;
    uint64_t first_pages = 0;
    for (int i = 0; i < (alike ? 1 : ends); i++) {
        size_t page = kinds[i]->gpu ? 0 : kinds[i]->page;
        uint64_t pages = page ? (length + page - 1) / page * (alike ? 2 : 1) : 0;
        uint64_t unused = page ? huge_free(kinds[i]) : 0;
        const char *and = *needs ? "; " : "";
        if (!page || (unused >= pages && ends > 1))
            continue;
        if (!first) {
            first = kinds[i]->name;
            first_pages = pages;
        }
        snprintf(needs + strlen(needs), sizeof needs - strlen(needs),
                 "%sof %s: %" PRIu64 " needed%s, %" PRIu64 " free", and, kinds[i]->name, pages,
                 alike ? " by both ends" : "", unused);
        snprintf(commands + strlen(commands), sizeof commands - strlen(commands),
                 "%secho %" PRIu64 " > /sys/kernel/mm/hugepages/hugepages-%zukB/nr_hugepages", and,
                 huge_number(kinds[i], "nr_hugepages") + pages - (unused < pages ? unused : 0),
                 page >> 10);
    }
    return first ? fail(-ENOMEM,
                        "Insufficient %s huge pages. Need %" PRIu64 " to run: %s; as root: %s",
                        first, first_pages, needs, commands)
                 : -ENOMEM;
}

static int huge_missing(const struct memory_ops *kind, size_t length)
{
    return memory_pages_missing(&kind, 1, length);
}

/* Where the stack begins, and where the memory before it ends; false: not to be seen. */
static bool below_stack(uint64_t *last, uint64_t *stack)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[512];
    uint64_t start = 0, end = 0;
    *last = *stack = 0;
    while (maps && !*stack && fgets(line, sizeof line, maps)) {
        if (sscanf(line, "%" SCNx64 "-%" SCNx64, &start, &end) != 2)
            continue;
        if (strstr(line, "[stack]"))
            *stack = start;
        else
            *last = end;
    }
    if (maps)
        fclose(maps);
    return *stack > *last;
}

/* A place that cannot be guessed, above all other memory but the stack. Libraries that let another
 * end write into a buffer are known to check its beginning better than its end: libfabric adds
 * address and length and does not notice when the sum wraps. NULL: wherever there is room. */
static void *high_place(size_t mapped, size_t page)
{
    const uint64_t margin = UINT64_C(1) << 30;
    uint64_t last, stack, word;
    if (!below_stack(&last, &stack) || stack - last < 4 * margin || random_word(&word))
        return NULL;
    uint64_t room = stack - last - 2 * margin;
    if (mapped + page >= room)
        return NULL;
    uint64_t at = last + margin + word % (room - mapped - page);
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): a place, not an object */
    return (void *)(uintptr_t)((at + page - 1) / page * page);
}

static int host_alloc(struct region *region, size_t length, const struct memory_ops *kind)
{
    size_t page = kind->page ? kind->page : (size_t)sysconf(_SC_PAGESIZE);
    size_t mapped = (length + page - 1) / page * page;
    unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    int status = 0;
    if (mapped < length)
        return fail(-ENOMEM, "a buffer of %zu bytes cannot be mapped", length);
    if (kind->page)
        flags |= MFD_HUGETLB | (unsigned)__builtin_ctzll(kind->page) << MFD_HUGE_SHIFT;
    else if ((status = memory_enough(mapped)))
        return status;
    int fd = memfd_create("weft", flags);
    if (fd < 0)
        return kind->page ? huge_missing(kind, mapped)
                          : fail(-errno, "memfd_create: %s", strerror(errno));
    if (ftruncate(fd, (off_t)mapped)) {
        status = fail(-errno, "a buffer of %zu bytes: %s", mapped, strerror(errno));
        goto close;
    }
    void *address =
        mmap(high_place(mapped, page), mapped, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (address == MAP_FAILED)
        address = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (address == MAP_FAILED) {
        status = kind->page ? huge_missing(kind, mapped)
                            : fail(-errno, "mapping %zu bytes: %s", mapped, strerror(errno));
        goto close;
    }
    *region = (struct region){.kind = kind,
                              .address = address,
                              .length = length,
                              .mapped = mapped,
                              .page = page,
                              .fd = fd};
    return 0;
close:
    close(fd);
    return status;
}

static void host_free(struct region *region)
{
    if (region->address)
        munmap(region->address, region->mapped);
    if (region->fd >= 0)
        close(region->fd);
    region->address = NULL;
    region->fd = -1;
}

static int host_populate(struct region *region, size_t at, size_t length)
{
    size_t first = at / region->page * region->page;
    size_t end = at + length;
    int status = region->kind->page ? 0 : memory_enough(length);
    if (status || !length)
        return status;
    if (!madvise(region->address + first, end - first, MADV_POPULATE_WRITE))
        return 0;
    if (errno != EINVAL)
        return fail(-errno, "populating %zu bytes: %s", end - first, strerror(errno));
    /* Kernels before 5.14. */
    for (size_t here = first; here < end; here += region->page)
        *(volatile char *)(region->address + here) = 0;
    return 0;
}

static int host_fill(struct region *region, size_t at, const void *bytes, size_t length)
{
    memcpy(region->address + at, bytes, length);
    return 0;
}

static int host_peek(const struct region *region, size_t at, void *bytes, size_t length)
{
    memcpy(bytes, region->address + at, length);
    return 0;
}

#define HOST_VERBS                                                                                 \
    .alloc = host_alloc, .free = host_free, .populate = host_populate, .fill = host_fill,          \
    .peek = host_peek

const struct memory_ops memory_host = {.name = "host", HOST_VERBS};
const struct memory_ops memory_huge_2m = {.name = "2M", .page = 2 << 20, HOST_VERBS};
const struct memory_ops memory_huge_1g = {.name = "1G", .page = 1 << 30, HOST_VERBS};
