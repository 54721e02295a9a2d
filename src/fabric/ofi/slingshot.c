/* SPDX-License-Identifier: BSD-3-Clause */
/* HPE Slingshot, libfabric's cxi provider: what its own header adds. A service and a virtual
 * network are an authorisation key. Low-latency issue is the provider's environment, and so is the
 * size from which it sends by rendezvous (FI_CXI_RDZV_THRESHOLD), which is left to the user. With
 * order asked for its puts are unrestricted, without it they may be restricted. */
#include "fabric/ofi/ofi.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/fi_cxi_ext.h>

enum { DEFAULT_SERVICE = 1 };

/* The scheduler names the networks of a job, "10,11": the first is ours. 0: it named none. */
static uint16_t vni_of_job(void)
{
    const char *text = getenv("SLINGSHOT_VNIS");
    unsigned long vni = text ? strtoul(text, NULL, 10) : 0;
    return vni <= UINT16_MAX ? (uint16_t)vni : 0;
}

/* Not if the user has set them. A low-latency command queue for every operation, as the CXI tools
 * have it by default, not only while the queue is idle. */
static void tune(const struct fabric_want *want)
{
    if (!want->verbs || want->hints & HINT(LL))
        setenv("FI_CXI_LLRING_MODE", "always", 0);
}

/* A key of the provider's, which fi_freeinfo frees with the hints. */
static int add_key(uint8_t **key, size_t *size, uint32_t service, uint16_t vni)
{
    struct cxi_auth_key *added = calloc(1, sizeof *added);
    if (!added)
        return weft_ofi_host->fail(-ENOMEM, "ofi: no memory");
    added->svc_id = service;
    added->vni = vni;
    *key = (uint8_t *)(void *)added;
    *size = sizeof *added;
    return 0;
}

int weft_ofi_slingshot_request(struct fi_info *hints, const struct fabric_want *want)
{
    uint16_t vni = vni_of_job();
    tune(want);
    /* The default service needs no key; a network alone neither, the provider reads it itself. */
    if (want->service <= DEFAULT_SERVICE)
        return 0;
    /* A key is service and network: without the second the provider would choose another service.
     */
    if (!vni || want->service > UINT32_MAX)
        return weft_ofi_host->fail(-ENOENT,
                                   "ofi: cxi needs the VNI of service %llu: set SLINGSHOT_VNIS to "
                                   "it, or use -d cxi:cxi0, which asks the device",
                                   (unsigned long long)want->service);
    int status = add_key(&hints->domain_attr->auth_key, &hints->domain_attr->auth_key_size,
                         (uint32_t)want->service, vni);
    return status ? status
                  : add_key(&hints->ep_attr->auth_key, &hints->ep_attr->auth_key_size,
                            (uint32_t)want->service, vni);
}

/* By the NIC's address, so that two ends on one NIC are seen to be on one. */
void weft_ofi_slingshot_facts(const struct fi_info *info, struct fabric_facts *facts)
{
    const struct cxip_nic_attr *attr = info->nic ? info->nic->prov_attr : NULL;
    facts->nic = true;
    if (attr && attr->version)
        snprintf(facts->self, sizeof facts->self, "NIC 0x%x PID %d", attr->addr, (int)getpid());
}
