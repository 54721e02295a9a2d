/* SPDX-License-Identifier: BSD-3-Clause */
/* A fabric for tests, loaded as a module: soft with a fault in every verb. Of each twenty, one
 * write, read, send, tagged or active message has a bit of its first byte turned over, and one
 * atomic is made twice.
 */
#include "fabric/fabric.h"

#include <stdatomic.h>

enum { FAULTY = 20, BIT = 0x10, ECHO_BIT = 0x20 };

static const struct fabric_ops *soft;
static struct fabric_ops corrupts_all;
static atomic_uint calls;
static struct fabric *_Atomic echoes; /* the end that answers */

static bool faulty(void)
{
    return atomic_fetch_add(&calls, 1) % FAULTY == FAULTY - 1;
}

static void turn(const struct xfer *xfer, int bit)
{
    char *victim = xfer->local->address + xfer->at;
    *victim = (char)(*victim ^ bit);
}

/* Not queued: a fault is made around the call. */
static struct xfer at_once(const struct xfer *xfer)
{
    struct xfer now = *xfer;
    now.how |= HINT(LL);
    return now;
}

/* What leaves is wrong, what stays is not. */
static int wrongly(int (*post)(struct fabric *, const struct xfer *), struct fabric *fabric,
                   const struct xfer *xfer, int bit)
{
    if (!xfer->length || !faulty())
        return post(fabric, xfer);
    struct xfer now = at_once(xfer);
    turn(xfer, bit);
    int got = post(fabric, &now);
    /* What was queued all the same leaves later. */
    if (got != LATER)
        turn(xfer, bit);
    return got;
}

static int corrupts_all_open(struct fabric **fabric, const struct fabric_want *want,
                             struct fabric_facts *facts)
{
    int got = soft->open(fabric, want, facts);
    if (!got && want->server)
        echoes = *fabric;
    return got;
}

/* A message and its echo have another bit turned: the same one twice would be none. */
static int corrupts_all_send(struct fabric *fabric, const struct xfer *xfer)
{
    return wrongly(soft->send, fabric, xfer, fabric == echoes ? ECHO_BIT : BIT);
}

static int corrupts_all_write(struct fabric *fabric, const struct xfer *xfer)
{
    return wrongly(soft->write, fabric, xfer, BIT);
}

static int corrupts_all_am(struct fabric *fabric, const struct xfer *xfer)
{
    return wrongly(soft->am, fabric, xfer, BIT);
}

static int corrupts_all_tsend(struct fabric *fabric, const struct xfer *xfer)
{
    return wrongly(soft->tsend, fabric, xfer, BIT);
}

static int corrupts_all_read(struct fabric *fabric, const struct xfer *xfer)
{
    struct xfer now = at_once(xfer);
    int got = soft->read(fabric, &now);
    if (got == DONE && faulty())
        turn(xfer, BIT);
    return got;
}

static int corrupts_all_atomic(struct fabric *fabric, const struct xfer *xfer)
{
    struct xfer now = at_once(xfer);
    int got = soft->atomic(fabric, &now);
    return got == DONE && faulty() ? soft->atomic(fabric, &now) : got;
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
    corrupts_all.open = corrupts_all_open;
    corrupts_all.write = corrupts_all_write;
    corrupts_all.send = corrupts_all_send;
    corrupts_all.read = corrupts_all_read;
    corrupts_all.am = corrupts_all_am;
    corrupts_all.tsend = corrupts_all_tsend;
    corrupts_all.atomic = corrupts_all_atomic;
    corrupts_all.batch = NULL; /* one by one, as above */
    return &corrupts_all;
}
