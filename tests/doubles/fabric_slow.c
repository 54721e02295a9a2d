/* SPDX-License-Identifier: BSD-3-Clause */
/* A fabric for tests, loaded as a module: soft, but a server takes 900 ms to open it. On cxi1
 * connecting takes a second and a half, and so does every write of 64 MiB or more, in one call. */
#include "fabric/fabric.h"

#include <string.h>
#include <time.h>

enum { LONG_BYTES = 64 << 20 };

static const struct fabric_ops *soft;
static struct fabric_ops slow;
static _Thread_local bool drags, met;

static void rest(time_t seconds, long ns)
{
    struct timespec left = {.tv_sec = seconds, .tv_nsec = ns};
    while (nanosleep(&left, &left))
        ;
}

static int slow_open(struct fabric **fabric, const struct fabric_want *want,
                     struct fabric_facts *facts)
{
    drags = strcmp(want->device, "cxi1") == 0;
    met = false;
    if (want->server && !drags)
        rest(0, 900000000);
    return soft->open(fabric, want, facts);
}

static int slow_connect(struct fabric *fabric, const struct fabric_meeting *meeting,
                        struct remote *remote)
{
    if (drags && !met)
        rest(1, 500000000);
    met = true;
    return soft->connect(fabric, meeting, remote);
}

static int slow_write(struct fabric *fabric, const struct xfer *xfer)
{
    if (drags && xfer->length >= LONG_BYTES)
        rest(1, 500000000);
    return soft->write(fabric, xfer);
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
    slow.connect = slow_connect;
    slow.write = slow_write;
    return &slow;
}
