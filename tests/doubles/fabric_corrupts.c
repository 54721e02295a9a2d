/* SPDX-License-Identifier: BSD-3-Clause */
/* A fabric for tests, loaded as a module: soft with a fault. Every twentieth write arrives with
 * one bit of its last byte turned over. It shows that --verify sees it, and how a module is made.
 */
#include "fabric/fabric.h"

#include <stdatomic.h>

enum { FAULTY = 20 };

static const struct fabric_ops *soft;
static struct fabric_ops corrupts;
static atomic_int writes;

static int corrupts_write(struct fabric *fabric, const struct xfer *xfer)
{
    char *victim = xfer->local->address + xfer->at + xfer->length - 1;
    int turn = ++writes % FAULTY == 0 ? 0x10 : 0;
    *victim = (char)(*victim ^ turn);
    int got = soft->write(fabric, xfer);
    *victim = (char)(*victim ^ turn);
    return got;
}

const struct fabric_ops *weft_fabric(const struct fabric_host *host);

const struct fabric_ops *weft_fabric(const struct fabric_host *host)
{
    if (host->abi != FABRIC_ABI)
        return NULL;
    soft = host->find("soft");
    corrupts = *soft;
    corrupts.name = "corrupts";
    corrupts.what = "soft with a fault, for tests";
    corrupts.write = corrupts_write;
    corrupts.batch = NULL;
    return &corrupts;
}
