/* SPDX-License-Identifier: BSD-3-Clause */
/* What a port can do, from the attributes that libfabric gives, in words and as facts. */
#include "fabric/link.h"
#include "fabric/ofi/ofi.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- in words ---- */

void weft_ofi_describe(const struct fi_info *info, char *text, size_t room)
{
    snprintf(text, room, "send%s%s, inject %zu (%s)", info->caps & FI_RMA ? ", write, read" : "",
             info->caps & FI_ATOMIC ? ", atomics" : "", info->tx_attr->inject_size,
             info->fabric_attr->prov_name);
}

/* ---- as facts ---- */

bool weft_ofi_injects_atomics(const struct fi_info *info)
{
    return !strstr(info->fabric_attr->prov_name, "ofi_rxm");
}

static void verbs(const struct fi_info *info, struct fabric_facts *facts)
{
    bool has_amo = false;
    facts->verbs = VERB(SEND) | VERB(RECV) | VERB(AM) | VERB(TSEND) | VERB(TRECV);
    for (int i = 0; i < AMO_OPS; i++)
        has_amo |= facts->amo[0][i] || facts->amo[1][i];
    if (info->caps & FI_RMA)
        facts->verbs |= VERB(WRITE) | VERB(READ);
    if (has_amo)
        facts->verbs |= VERB(ATOMIC);
    facts->target_polls = facts->verbs & ~(VERB(WRITE) | VERB(READ) | VERB(ATOMIC));
    /* Without progress of its own, software at the target does it when it is polled. */
    if (info->domain_attr->data_progress != FI_PROGRESS_AUTO)
        facts->target_polls = facts->verbs;
}

static void layouts(const struct fi_info *info, struct fabric_facts *facts)
{
    size_t inject = info->tx_attr->inject_size, most = info->ep_attr->max_msg_size;
    size_t bounce = most < WEFT_OFI_BOUNCE ? most : WEFT_OFI_BOUNCE;
    facts->layout_max[VERB_AM][LAYOUT_SHORT] =
        inject < WEFT_OFI_HEADER_MAX ? inject : WEFT_OFI_HEADER_MAX;
    facts->layout_max[VERB_AM][LAYOUT_BCOPY] = bounce;
    facts->layout_max[VERB_AM][LAYOUT_ZCOPY] = bounce;
    facts->max_header = info->tx_attr->iov_limit > 1 ? WEFT_OFI_HEADER_MAX : 0;
    if (!(info->caps & FI_RMA))
        return;
    facts->layout_max[VERB_WRITE][LAYOUT_SHORT] = inject;
    facts->layout_max[VERB_WRITE][LAYOUT_BCOPY] = bounce;
    facts->layout_max[VERB_WRITE][LAYOUT_ZCOPY] = most;
    facts->layout_max[VERB_READ][LAYOUT_BCOPY] = bounce;
    facts->layout_max[VERB_READ][LAYOUT_ZCOPY] = most;
}

static void proofs(struct fabric_facts *facts)
{
    facts->proves[VERB_WRITE] = "the bytes are in the target's memory: delivery was asked for";
    facts->proves[VERB_READ] = "the target's bytes are in our memory";
    facts->proves[VERB_SEND] = "our buffer may be used again; by rendezvous: the target has pulled";
    facts->proves[VERB_RECV] = "a whole message is in the posted buffer";
    facts->proves[VERB_ATOMIC] = "it is applied at the target; fetching: the old value is here";
    facts->proves[VERB_AM] = "our buffer may be used again";
    facts->proves[VERB_TSEND] = "our buffer may be used again; synchronous: its receive was found";
    facts->proves[VERB_TRECV] = "a whole message is in the posted buffer";
}

/* The hints of an atomic are others than those of the rest: a caller that wants atomics, and at
 * most writes besides, is told about them. */
static void hints(const struct fi_info *info, const struct fabric_want *want,
                  struct fabric_facts *facts)
{
    bool atomics_only = (want->verbs & ~VERB(WRITE)) == VERB(ATOMIC);
    facts->honours = HINT(RESTRICTED) | HINT(BCOPY) | HINT(ZCOPY) | HINT(MORE);
    facts->max_inline = info->tx_attr->inject_size;
    if (facts->max_inline)
        facts->honours |= HINT(SHORT);
    if (facts->max_inline && !(atomics_only && !weft_ofi_injects_atomics(info)))
        facts->honours |= HINT(INLINE);
    if (!atomics_only)
        facts->honours |= HINT(MATCHING);
    if (info->caps & FI_RMA && info->domain_attr->cq_data_size >= sizeof(uint32_t))
        facts->honours |= HINT(RENDEZVOUS);
    facts->why_not[HINT_INLINE] = facts->max_inline ? "the provider never completes such an atomic"
                                                    : "the provider has no inject";
    facts->why_not[HINT_HRP] = "the provider has no high-rate puts";
    if (info->domain_attr->cq_data_size >= sizeof(uint32_t))
        facts->honours |= HINT(SYNC);
    facts->why_not[HINT_SYNC] = "it takes remote completion data";
    facts->why_not[HINT_LOCAL] = "a completion is asked for at delivery";
    facts->why_not[HINT_LEND] = "libfabric has no streams of bytes";
    facts->why_not[HINT_SHORT] = "the provider has no inject";
    facts->why_not[HINT_LL] = weft_ofi_is(info, "cxi") ? "the provider decides: FI_CXI_LLRING_MODE"
                                                       : "libfabric issues at once";
    facts->why_not[HINT_MATCHING] = "libfabric matches messages only";
    facts->why_not[HINT_RENDEZVOUS] = "it takes reads and remote completion data";
}

static const char *no_service(const struct fi_info *info)
{
#ifdef WEFT_SLINGSHOT
    return weft_ofi_is(info, "cxi") ? NULL : "provider cxi alone has services";
#else
    return weft_ofi_is(info, "cxi") ? "built without rdma/fi_cxi_ext.h"
                                    : "provider cxi alone has services";
#endif
}

void weft_ofi_facts(const struct weft_ofi_port *port, const struct fabric_want *want,
                    struct fabric_facts *facts)
{
    const struct fi_info *info = port->info;
    uint32_t version = fi_version();
    *facts =
        (struct fabric_facts){.depth = WEFT_OFI_SLOTS, .max_send = info->ep_attr->max_msg_size};
    if (info->tx_attr->size && info->tx_attr->size < facts->depth)
        facts->depth = (unsigned)info->tx_attr->size;
    if (info->caps & FI_ATOMIC)
        weft_ofi_atomics(port->domain, facts);
    facts->tag_bits = weft_ofi_tag_ignore;
    facts->max_unexpected = WEFT_OFI_WINDOW;
    /* Seen with 1.17: its shared memory never answers. */
    if (weft_ofi_is(info, "shm") && FI_VERSION_LT(version, FI_VERSION(2, 0)))
        facts->why_no_probe = "the provider answers no probe";
    facts->follows_here = port->follows_here;
    if (info->nic && info->nic->link_attr)
        facts->link_bits_per_s = info->nic->link_attr->speed;
    if (!facts->link_bits_per_s && weft_ofi_on_ip(info))
        facts->link_bits_per_s = link_bits_per_s("", info->domain_attr->name);
    /* Seen with 1.17: after atomics, messages of shm are lost or spin in its inject pool. */
    facts->one_run = weft_ofi_is(port->info, "shm");
    facts->compare_how = "fetched, and the value dropped";
    facts->why_no_service = no_service(info);
    snprintf(facts->library, sizeof facts->library, "libfabric %.32s",
             fi_tostr(&version, FI_TYPE_VERSION));
    facts->why_no_events = port->no_wait ? "the provider has no descriptor to wait for" : NULL;
    facts->why_no_gpu = "the provider has no FI_HMEM";
    facts->gpus = info->caps & FI_HMEM ? MEMORY_ALL_GPUS : 0;
    facts->gpu_verbs = VERB(WRITE) | VERB(READ) | VERB(SEND) | VERB(RECV) | VERB(AM);
    facts->gpu_layouts = 1U << LAYOUT_BCOPY | 1U << LAYOUT_ZCOPY;
    verbs(info, facts);
    /* What software does at the target when it is polled begins with something that comes. */
    facts->wakes = facts->target_polls;
    layouts(info, facts);
    proofs(facts);
    hints(info, want, facts);
    snprintf(facts->form, sizeof facts->form, "ofi %.64s (libfabric %u.%u)", port->name,
             FI_MAJOR(version), FI_MINOR(version));
    snprintf(facts->self, sizeof facts->self, "%.40s PID %d", port->name, (int)getpid());
#ifdef WEFT_SLINGSHOT
    if (weft_ofi_is(info, "cxi"))
        weft_ofi_slingshot_facts(info, facts);
#endif
    if (!weft_ofi_is(info, "shm"))
        snprintf(facts->device, sizeof facts->device, "%.63s", info->domain_attr->name);
    if (strcmp(info->fabric_attr->name, info->domain_attr->name) != 0)
        snprintf(facts->domain, sizeof facts->domain, "%.31s", info->fabric_attr->name);
}
