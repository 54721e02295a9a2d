/* SPDX-License-Identifier: BSD-3-Clause */
/* A module of another version, for tests: it must be refused, not used. */
#include "fabric/fabric.h"

static const struct fabric_ops other_abi = {.abi = FABRIC_ABI + 1, .name = "other_abi"};

const struct fabric_ops *weft_fabric(const struct fabric_host *host);

const struct fabric_ops *weft_fabric(const struct fabric_host *host)
{
    (void)host;
    return &other_abi;
}
