/* SPDX-License-Identifier: BSD-3-Clause */
/* What the bandwidth of lists is drawn below: one CPU's memcpy of as many bytes from and to places
 * that lie as the list's do. Sizes differ by what stays in the caches, so each has its own. */
#include "core/clock.h"
#include "report/report.h"

#include <math.h>
#include <string.h>

/* Beyond the caches more bytes say nothing more. The fastest of several passes counts, each long
 * enough for the clock. */
enum { MOST_BYTES = 64 << 20, PASSES = 5, PASS_NS = 200000, ROUNDS_MAX = 1 << 20 };

static uint64_t pass_ns(char *to, const char *from, const struct slots *slots, size_t size,
                        unsigned rounds)
{
    uint64_t since_ns = clock_raw_ns();
    for (unsigned round = 0; round < rounds; round++) {
        if (size == sizeof(uint64_t)) /* a word takes no call */
            for (size_t i = 0; i < slots->count; i++)
                memcpy(to + i * slots->step, from + i * slots->step, sizeof(uint64_t));
        else
            for (size_t i = 0; i < slots->count; i++)
                memcpy(to + i * slots->step, from + i * slots->step, size);
        __asm__ volatile("" : : "r"(to) : "memory");
    }
    return clock_raw_ns() - since_ns;
}

static double fastest(char *to, const char *from, const struct slots *slots, size_t size)
{
    unsigned rounds = 1;
    uint64_t least_ns = UINT64_MAX;
    while (pass_ns(to, from, slots, size, rounds) < PASS_NS && rounds < ROUNDS_MAX)
        rounds *= 2;
    for (int i = 0; i < PASSES; i++) {
        uint64_t ns = pass_ns(to, from, slots, size, rounds);
        least_ns = ns < least_ns ? ns : least_ns;
    }
    double bytes = (double)slots->count * (double)size * rounds;
    return least_ns ? bytes * 1e9 / (double)least_ns : NAN;
}

double ceiling_memcpy(const struct facts *f, uint64_t size)
{
    const struct region *from = &f->session->buffer;
    struct region to;
    if (!f->method->lists || f->session->facts.alone || session_any_gpu(f->session) || !size)
        return NAN;
    struct slots slots = list_slots(f->spec, (size_t)size);
    size_t room = from->length < MOST_BYTES ? from->length : MOST_BYTES;
    size_t fit = room / slots.step, bytes = size < room ? (size_t)size : room;
    slots.count = fit < slots.count ? (unsigned)fit : slots.count;
    slots.count += !slots.count;
    if (memory_host.alloc(&to, (slots.count - 1) * slots.step + bytes, &memory_host))
        return NAN;
    double found = memory_host.populate(&to, 0, to.length)
                       ? NAN
                       : fastest(to.address, from->address, &slots, bytes);
    memory_host.free(&to);
    return found;
}
