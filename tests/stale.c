/* SPDX-License-Identifier: BSD-3-Clause */
/* A module of another version, for tests: it must be refused, not used. */
#include "fabric/fabric.h"

static const struct fabric_ops stale = {.abi = FABRIC_ABI + 1, .name = "stale"};

const struct fabric_ops *weft_fabric(const struct fabric_host *host);

const struct fabric_ops *weft_fabric(const struct fabric_host *host)
{
    (void)host;
    return &stale;
}
