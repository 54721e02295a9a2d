/* SPDX-License-Identifier: BSD-3-Clause */
/* What fuzz targets read their input with. Past its end everything is 0. */
#ifndef WEFT_FUZZ_FEED_H
#define WEFT_FUZZ_FEED_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* How often the last input got to where a good peer would; tests/support/seeds.c looks at it. */
extern unsigned fuzz_accepted;

struct feed {
    const uint8_t *data;
    size_t left;
};

static inline uint64_t next_bytes(struct feed *feed, size_t count)
{
    uint64_t value = 0;
    for (size_t i = 0; i < count && feed->left; i++, feed->left--)
        value |= (uint64_t)*feed->data++ << 8 * i;
    return value;
}

static inline uint8_t next_byte(struct feed *feed)
{
    return (uint8_t)next_bytes(feed, 1);
}

#endif
