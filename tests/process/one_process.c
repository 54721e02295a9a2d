/* SPDX-License-Identifier: BSD-3-Clause */
/* Both ends of a fabric in one process: one_process DEVICE. They connect, one of them leaves, and
 * the other goes on writing to it for a while, as an end does that does not know it yet. */
#include "fabric/choose.h"
#include "fabric/fabric.h"
#include "memory/memory.h"

#include <errno.h>
#include <stdio.h>

enum { LENGTH_OF_BUFFER = 1 << 16, TRIES = 1000000, WRITES = 1000 };

struct end {
    struct fabric *handle;
    struct fabric_facts facts;
    struct region region;
    struct msg address, key;
    struct remote remote;
};

static int open_end(const struct fabric_choice *choice, struct end *end, bool server)
{
    struct fabric_want want = {.device = choice->device,
                               .here = "127.0.0.1",
                               .verbs = VERB(WRITE),
                               .service = 1,
                               .server = server};
    end->region = (struct region){.kind = &memory_host, .length = LENGTH_OF_BUFFER, .fd = -1};
    int status = fabric_open(choice->ops, &end->handle, &want, &end->facts);
    if (!status && !end->facts.own_memory)
        status = memory_host.alloc(&end->region, LENGTH_OF_BUFFER, &memory_host);
    if (!status)
        status = choice->ops->expose(end->handle, &end->region, &end->key);
    return status ? status : choice->ops->address(end->handle, &end->address);
}

static int connect_ends(const struct fabric_ops *ops, struct end ends[2])
{
    int got[2] = {LATER, LATER};
    for (int i = 0; i < TRIES && (got[0] != DONE || got[1] != DONE); i++)
        for (int k = 0; k < 2; k++) {
            struct fabric_meeting meeting = {.nonce = "one process",
                                             .address = &ends[1 - k].address,
                                             .keys = &ends[1 - k].key,
                                             .count = 1};
            got[k] = ops->connect(ends[k].handle, &meeting, &ends[k].remote);
            if (got[k] < 0)
                return got[k];
        }
    return got[0] == DONE && got[1] == DONE ? 0 : fail(-ETIMEDOUT, "they do not come together");
}

int main(int argc, char **argv)
{
    static struct end ends[2];
    struct fabric_choice choice;
    struct completion completion;
    if (argc != 2)
        return 2;
    int status = fabric_choose(argv[1], &choice);
    for (int i = 0; i < 2 && !status; i++)
        status = open_end(&choice, &ends[i], i);
    if (!status)
        status = connect_ends(choice.ops, ends);
    if (status) {
        fprintf(stderr, "%s\n", fail_reason());
        return 1;
    }
    struct xfer xfer = {.local = &ends[0].region, .remote = &ends[0].remote, .length = 8};
    choice.ops->leave(ends[1].handle);
    for (int i = 0; i < WRITES; i++) {
        choice.ops->write(ends[0].handle, &xfer);
        choice.ops->poll(ends[0].handle, &completion, 1);
    }
    choice.ops->leave(ends[0].handle);
    for (int i = 0; i < 2; i++)
        choice.ops->close(ends[i].handle);
    puts("left");
    return 0;
}
