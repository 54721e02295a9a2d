/* SPDX-License-Identifier: BSD-3-Clause */
/* What this NIC can do here, and what it proves. */
#include "fabric/cxi/cxi.h"

#include <stdio.h>

/* As the types of fabric/amo.h have it; a module cannot call that. */
static void offer_atomics(struct fabric_facts *facts)
{
    const uint16_t integers = (1U << (AMO_UINT64 + 1)) - 1;
    const uint16_t reals = 1U << AMO_FLOAT | 1U << AMO_DOUBLE;
    const uint16_t complex = 1U << AMO_FLOAT_COMPLEX | 1U << AMO_DOUBLE_COMPLEX;
    for (int op = 0; op < AMO_OPS; op++) {
        uint16_t types = integers;
        if (op == AMO_MIN || op == AMO_MAX || op == AMO_SUM || op == AMO_SWAP || op == AMO_CSWAP)
            types |= reals;
        if (op == AMO_SUM || op == AMO_SWAP || op == AMO_CSWAP)
            types |= complex;
        if (op == AMO_CSWAP)
            types |= 1U << AMO_UINT128;
        facts->amo[0][op] = facts->amo[1][op] = types;
    }
    for (int compare = 0; compare < AMO_COMPARES; compare++)
        facts->cswap[compare] = integers | reals;
    facts->cswap[AMO_EQ] |= complex | 1U << AMO_UINT128;
    facts->cswap[AMO_NE] |= complex;
}

/* A NIC may be set up to make a PCIe fetch-and-add of one of the atomics, of unsigned words; a sum
 * stays one. */
static void remove_remapped(const struct weft_cxi *cxi, struct fabric_facts *facts)
{
    int remapped = -1;
    if (!cxi->calls->cxil_get_amo_remap_to_pcie_fadd ||
        cxi->calls->cxil_get_amo_remap_to_pcie_fadd(cxi->dev, &remapped))
        return;
    const uint16_t words = 1U << AMO_UINT32 | 1U << AMO_UINT64;
    for (int op = 0; op < AMO_OPS; op++) {
        if (op == AMO_SUM || weft_cxi_amo_op((enum amo_op)op) != remapped)
            continue;
        facts->amo[0][op] &= (uint16_t)~words;
        facts->amo[1][op] &= (uint16_t)~words;
    }
}

uint16_t weft_cxi_no_hrp(const struct weft_cxi *cxi)
{
    const struct weft_cxil_devinfo *info = &cxi->dev->info;
    bool loses =
        info->device_id == CASSINI_1_DEVICE && info->device_rev <= CASSINI_1_LAST_LOSING_HRP;
    return loses ? 1U << AMO_UINT32 : 0;
}

static void say_what_is_proved(struct fabric_facts *facts)
{
    facts->proves[VERB_WRITE] =
        "the target's NIC has taken all of it and acknowledged it; without a "
        "flush its CPU may see the last bytes a moment later (HRP: the "
        "fabric's last port has it)";
    facts->proves[VERB_READ] = "the bytes are in the initiator's buffer";
    facts->proves[VERB_SEND] =
        "the command holds the bytes (IDC), the target's NIC has acknowledged "
        "them, or by rendezvous has pulled them";
    facts->proves[VERB_RECV] = "the message is in the posted buffer";
    facts->proves[VERB_ATOMIC] =
        "the target's NIC has applied it and acknowledged it; fetching: the "
        "old value is here";
    facts->proves[VERB_AM] = "the bytes were copied and the command queue has the command";
}

static void say_why_not(struct fabric_facts *facts)
{
    facts->why_not[HINT_HRP] = "the service has no profile for it";
    facts->why_not[HINT_SYNC] = "tagged messages have not been tried on this fabric";
    facts->why_not[HINT_LOCAL] = "an acknowledgement is from the target";
    facts->why_not[HINT_LEND] = "the NIC has no streams of bytes";
    facts->why_not[HINT_BCOPY] = "the NIC takes bytes from the command or from where they lie";
}

/* Known for sure where it was tried. */
static const char *why_no_events(const struct weft_cxi *cxi, const struct fabric_want *want)
{
    if (!cxi->calls->cxil_alloc_wait_obj)
        return "this libcxi has no wait objects";
    return want->events && !cxi->wait ? "the driver gives no wait object" : NULL;
}

void weft_cxi_facts(struct weft_cxi *cxi, const struct fabric_want *want,
                    struct fabric_facts *facts)
{
    const struct weft_cxil_devinfo *info = &cxi->dev->info;
    *facts = (struct fabric_facts){
        .verbs = VERB(WRITE) | VERB(READ) | VERB(SEND) | VERB(RECV) | VERB(ATOMIC) | VERB(AM),
        .honours = HINT(INLINE) | HINT(LL) | HINT(RESTRICTED) | HINT(MATCHING) | HINT(RENDEZVOUS) |
                   HINT(SHORT) | HINT(BCOPY) | HINT(ZCOPY) | HINT(MORE),
        .target_polls = VERB(SEND) | VERB(RECV) | VERB(AM),
        .nic = true,
        .gpus = MEMORY_ALL_GPUS,
        .gpu_verbs = VERB(WRITE) | VERB(READ) | VERB(SEND) | VERB(RECV) | VERB(AM),
        .gpu_layouts = 1U << LAYOUT_BCOPY | 1U << LAYOUT_ZCOPY,
        .max_inline = WEFT_C_MAX_IDC_PAYLOAD_RES,
        .max_inline_ordered = WEFT_C_MAX_IDC_PAYLOAD_UNR,
        .max_send = UINT32_MAX,
        .batch_max = UINT32_MAX,
        .depth = WEFT_CXI_SLOTS / 2};
    cxi->facts = facts;
    if (cxi->hrp)
        facts->honours |= HINT(HRP);
    facts->amo_no_hrp = weft_cxi_no_hrp(cxi);
    facts->layout_max[VERB_WRITE][LAYOUT_SHORT] = WEFT_C_MAX_IDC_PAYLOAD_UNR;
    facts->layout_max[VERB_WRITE][LAYOUT_ZCOPY] = UINT32_MAX;
    facts->layout_max[VERB_READ][LAYOUT_ZCOPY] = UINT32_MAX;
    facts->layout_max[VERB_AM][LAYOUT_SHORT] = WEFT_C_MAX_IDC_PAYLOAD_UNR;
    facts->layout_max[VERB_AM][LAYOUT_BCOPY] = WEFT_CXI_AM_BYTES;
    /* In Mb/s; what it does not know is not a speed. */
    if (info->link_speed < 10000000)
        facts->link_bits_per_s = info->link_speed * 1000000;
    facts->wakes = facts->target_polls;
    facts->why_no_events = why_no_events(cxi, want);
    offer_atomics(facts);
    remove_remapped(cxi, facts);
    say_what_is_proved(facts);
    say_why_not(facts);
    memcpy(cxi->amo, facts->amo, sizeof cxi->amo);
    memcpy(cxi->cswap, facts->cswap, sizeof cxi->cswap);
    snprintf(facts->form, sizeof facts->form, "cxi%u (libcxi%s)", info->dev_id,
             info->device_platform ? ", not an ASIC" : "");
    snprintf(facts->self, sizeof facts->self, "NIC 0x%x PID %u", info->nid, cxi->domain->pid);
    snprintf(facts->device, sizeof facts->device, "cxi%u", info->dev_id);
    snprintf(facts->domain, sizeof facts->domain, "VNI %u", cxi->domain->vni);
    snprintf(facts->library, sizeof facts->library, "libcxi.so.1");
}
