/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzzes counters as the other end sends them. What is accepted has names, numbers and words that
 * can be shown, and survives being sent on. */
#include "bench/run.h"
#include "fuzz/feed.h"

#include <stdlib.h>
#include <string.h>

unsigned fuzz_accepted;

static void check(const struct counters *c)
{
    if (c->count > COUNTERS_MOST || (!c->count && !*c->why) ||
        (*c->device && !counter_device(c->device)))
        abort();
    for (unsigned i = 0; i < c->count; i++)
        if (!counter_named(c->list[i].name) || counters_find(c, c->list[i].name) != &c->list[i])
            abort();
    for (const char *at = c->why; *at; at++)
        if (text_control(at))
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct counters first, second;
    struct msg text, sent;
    if (size >= sizeof text.bytes)
        return 0;
    memcpy(text.bytes, data, size);
    text.bytes[size] = '\0';
    text.length = size;
    if (counters_parse(&first, &text))
        return 0;
    fuzz_accepted++;
    check(&first);
    if (counters_write(&first, &sent) || counters_parse(&second, &sent) ||
        memcmp(&first, &second, sizeof first) != 0)
        abort();
    return 0;
}
