/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzzes the reader of batch files, and the options that their lines hold. */
#include "tool/batch.h"
#include "core/opt.h"
#include "fabric/choose.h"
#include "fuzz/feed.h"
#include "tool/perftest.h"

#include <stdlib.h>
#include <string.h>

unsigned fuzz_accepted;

static void options(const struct batch_line *line)
{
    struct perftest values = {0};
    struct opt_set set = {.rows = perf_rows, .base = &values};
    char device[FABRIC_DEVICE_MAX];
    const char *place;
    int given;
    spec_defaults(&values.spec);
    opt_defaults(&set);
    if (opt_parse(&set, line->count - 1, line->words + 1, &place, 0, &given))
        return;
    fuzz_accepted += !perf_settle(&set);
    perf_device(0, values.transport, values.device, device, sizeof device);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct batch batch;
    if (batch_parse(&batch, (const char *)data, size))
        return 0;
    for (size_t i = 0; i < batch.count; i++) {
        const struct batch_line *line = &batch.lines[i];
        if (line->error)
            continue;
        if (!line->count)
            abort();
        for (int k = 0; k < line->count; k++)
            if (strlen(line->words[k]) > size)
                abort();
        options(line);
    }
    batch_free(&batch);
    return 0;
}
