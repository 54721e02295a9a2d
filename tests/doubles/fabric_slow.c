/* SPDX-License-Identifier: BSD-3-Clause */
/* A fabric for tests, loaded as a module: soft, but a server takes 900 ms to open it. */
#include "fabric/fabric.h"

#include <time.h>

static const struct fabric_ops *soft;
static struct fabric_ops slow;

static int slow_open(struct fabric **fabric, const struct fabric_want *want,
                     struct fabric_facts *facts)
{
    struct timespec rest = {.tv_nsec = 900000000};
    while (want->server && nanosleep(&rest, &rest))
        ;
    return soft->open(fabric, want, facts);
}

const struct fabric_ops *weft_fabric(const struct fabric_host *host);

const struct fabric_ops *weft_fabric(const struct fabric_host *host)
{
    if (host->abi != FABRIC_ABI)
        return NULL;
    soft = host->find("soft");
    slow = *soft;
    slow.name = "slow";
    slow.what = "soft that opens slowly, for tests";
    slow.open = slow_open;
    return &slow;
}
