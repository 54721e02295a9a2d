/* SPDX-License-Identifier: BSD-3-Clause */
/* A fabric for tests, loaded as a module: soft, said to be a NIC that has high-rate puts. It shows
 * what a table makes of two ends on one NIC, and a header of puts that it does not do. */
#include "fabric/fabric.h"

static struct fabric_ops nic;
static const struct fabric_ops *soft;

static int nic_open(struct fabric **fabric, const struct fabric_want *want,
                    struct fabric_facts *facts)
{
    int status = soft->open(fabric, want, facts);
    facts->nic = true;
    facts->honours |= HINT(HRP);
    return status;
}

const struct fabric_ops *weft_fabric(const struct fabric_host *host);

const struct fabric_ops *weft_fabric(const struct fabric_host *host)
{
    if (host->abi != FABRIC_ABI)
        return NULL;
    soft = host->find("soft");
    nic = *soft;
    nic.name = "nic";
    nic.what = "soft, said to be a NIC, for tests";
    nic.open = nic_open;
    return &nic;
}
