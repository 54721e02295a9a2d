/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzzes the spec as the other end sends it. What is accepted must survive being sent on. */
#include "bench/bench.h"
#include "fuzz/feed.h"

#include <stdlib.h>
#include <string.h>

unsigned fuzz_accepted;

/* What everything after spec_check relies on. */
static void use(const struct spec *spec)
{
    if (!op_of(spec) || !method_of(spec) || !*op_called(spec) || !spec_legs(spec) ||
        !method_of(spec)->samples(spec))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct spec first, second;
    struct msg text, sent = {0}, twice = {0};
    if (size >= sizeof text.bytes)
        return 0;
    memcpy(text.bytes, data, size);
    text.bytes[size] = '\0';
    text.length = size;
    spec_defaults(&first);
    spec_defaults(&second);
    if (spec_decode(&first, &text))
        return 0;
    fuzz_accepted++;
    use(&first);
    if (spec_encode(&first, &sent) || spec_decode(&second, &sent) || spec_encode(&second, &twice) ||
        strcmp(sent.bytes, twice.bytes) != 0 || spec_compare(&first, &second))
        abort();
    return 0;
}
