/* SPDX-License-Identifier: BSD-3-Clause */
/* A fabric for tests, loaded as a module: soft with a fault in every verb of the library. Of each
 * twenty, one put, get or message has a bit of its first byte turned over, and one atomic is made
 * twice. */
#include "fabric/fabric.h"

#include <stdatomic.h>

enum { FAULTY = 20, BIT = 0x10 };

static const struct fabric_ops *soft;
static struct fabric_ops corrupts_all;
static atomic_uint calls;

static bool faulty(void)
{
    return atomic_fetch_add(&calls, 1) % FAULTY == FAULTY - 1;
}

static void turn(const struct xfer *xfer)
{
    char *victim = xfer->local->address + xfer->at;
    *victim = (char)(*victim ^ BIT);
}

/* What leaves is wrong, what stays is not. */
static int wrongly(int (*post)(struct fabric *, const struct xfer *), struct fabric *fabric,
                   const struct xfer *xfer)
{
    if (!xfer->length || !faulty())
        return post(fabric, xfer);
    turn(xfer);
    int got = post(fabric, xfer);
    turn(xfer);
    return got;
}

static int corrupts_all_write(struct fabric *fabric, const struct xfer *xfer)
{
    return wrongly(soft->write, fabric, xfer);
}

static int corrupts_all_am(struct fabric *fabric, const struct xfer *xfer)
{
    return wrongly(soft->am, fabric, xfer);
}

static int corrupts_all_read(struct fabric *fabric, const struct xfer *xfer)
{
    int got = soft->read(fabric, xfer);
    if (got == DONE && faulty())
        turn(xfer);
    return got;
}

static int corrupts_all_atomic(struct fabric *fabric, const struct xfer *xfer)
{
    int got = soft->atomic(fabric, xfer);
    return got == DONE && faulty() ? soft->atomic(fabric, xfer) : got;
}

const struct fabric_ops *weft_fabric(const struct fabric_host *host);

const struct fabric_ops *weft_fabric(const struct fabric_host *host)
{
    if (host->abi != FABRIC_ABI)
        return NULL;
    soft = host->find("soft");
    corrupts_all = *soft;
    corrupts_all.name = "corrupts_all";
    corrupts_all.what = "soft with faults, for tests";
    corrupts_all.write = corrupts_all_write;
    corrupts_all.read = corrupts_all_read;
    corrupts_all.am = corrupts_all_am;
    corrupts_all.atomic = corrupts_all_atomic;
    return &corrupts_all;
}
