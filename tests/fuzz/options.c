/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzzes option values as the other end sends them. What is accepted must survive being sent on. */
#include "core/opt.h"
#include "tool/perftest.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void decode(const struct msg *text, const struct opt *rows, size_t length, unsigned takes)
{
    void *first = calloc(1, length), *second = calloc(1, length);
    struct opt_set set = {.rows = rows, .takes = takes, .base = first};
    struct opt_set again = {.rows = rows, .takes = takes, .base = second};
    struct msg sent, twice;
    if (!first || !second)
        abort();
    opt_defaults(&set);
    opt_defaults(&again);
    msg_print(&sent, "%s", "");
    msg_print(&twice, "%s", "");
    if (!opt_decode(&set, text, NULL)) {
        if (opt_encode(&set, &sent) || opt_decode(&again, &sent, NULL) ||
            opt_encode(&again, &twice) || strcmp(sent.bytes, twice.bytes) != 0)
            abort();
    }
    free(first);
    free(second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct msg text;
    if (size >= sizeof text.bytes)
        return 0;
    memcpy(text.bytes, data, size);
    text.bytes[size] = '\0';
    text.length = size;
    decode(&text, perf_rows, sizeof(struct perftest), 0);
    decode(&text, cxi_rows, sizeof(struct plan), CXI_SEND);
    decode(&text, cxi_rows, sizeof(struct plan), CXI_ATOMIC);
    return 0;
}
