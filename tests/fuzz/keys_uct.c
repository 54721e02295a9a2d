/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzzes the addresses and keys that uct gets from the other end. This is the file itself; UCX, and
 * the files beside it, are replaced: no device is opened. The first byte says what the transport is
 * like, and how long its addresses are. */
#include "fuzz/mapped.h"

#define write look_at
#include "../../src/fabric/uct/link.c"
#undef write

unsigned fuzz_accepted;

static struct weft_uct uct;
static bool reachable;

/* ---- UCX ---- */

ucs_status_t uct_rkey_unpack(uct_component_h component, const void *packed, uct_rkey_bundle_t *key)
{
    (void)component;
    *key = (uct_rkey_bundle_t){.rkey = *(const unsigned char *)packed};
    return key->rkey == 0xff ? UCS_ERR_INVALID_PARAM : UCS_OK;
}

/* As in shared memory: an offset that the key says, whatever address is asked for. */
ucs_status_t uct_rkey_ptr(uct_component_h component, uct_rkey_bundle_t *key, uint64_t address,
                          void **local)
{
    (void)component;
    *local = (void *)((uintptr_t)mapped + key->rkey * 64 + (address & 0xfff));
    return key->rkey == 0xfe ? UCS_ERR_INVALID_ADDR : UCS_OK;
}

int uct_iface_is_reachable(uct_iface_h iface, const uct_device_addr_t *device,
                           const uct_iface_addr_t *address)
{
    (void)iface;
    (void)device;
    (void)address;
    return reachable;
}

ucs_status_t uct_ep_create(const uct_ep_params_t *params, uct_ep_h *ep)
{
    static struct uct_ep made;
    (void)params;
    *ep = &made;
    return UCS_OK;
}

ucs_status_t uct_ep_connect_to_ep(uct_ep_h ep, const uct_device_addr_t *device,
                                  const uct_ep_addr_t *address)
{
    (void)ep;
    (void)device;
    (void)address;
    return UCS_OK;
}

void ucs_async_poll(ucs_async_context_t *async)
{
    (void)async;
}

/* Not on the way of what comes from the other end. */
/* clang-format off */
ucs_status_t NEVER(uct_ep_get_address, uct_ep_h a, uct_ep_addr_t *b)
ucs_status_t NEVER(uct_iface_get_address, uct_iface_h a, uct_iface_addr_t *b)
ucs_status_t NEVER(uct_iface_get_device_address, uct_iface_h a, uct_device_addr_t *b)
ucs_status_t NEVER(uct_md_mem_dereg, uct_md_h a, uct_mem_h b)
ucs_status_t NEVER(uct_md_mem_reg, uct_md_h a, void *b, size_t c, unsigned d, uct_mem_h *e)
ucs_status_t NEVER(uct_md_mkey_pack, uct_md_h a, uct_mem_h b, void *c)
ucs_status_t NEVER(uct_mem_alloc, size_t a, const uct_alloc_method_t *b, unsigned c,
                   const uct_mem_alloc_params_t *d, uct_allocated_memory_t *e)
ucs_status_t NEVER(uct_mem_free, const uct_allocated_memory_t *a)
int NEVER(weft_uct_renew, struct weft_uct *l)
void NEVER(weft_uct_mail_withdrawn, struct weft_uct *l, uint64_t entry)
    /* clang-format on */

    /* ---- the files beside it ---- */

    const struct fabric_host *weft_uct_host = &fuzz_host;

int weft_uct_refuse(const struct weft_uct *l, const char *what, ucs_status_t status)
{
    (void)l;
    return fail(-EIO, "uct: %s: %d", what, status);
}

int weft_uct_mail_hello(struct weft_uct *l)
{
    return l->linked ? DONE : LATER;
}

/* ---- */

static void make_end(unsigned what, unsigned lengths)
{
    static struct uct_worker worker;
    unsigned device = lengths & 15, other = lengths >> 4;
    memset(mapped, 1, sizeof mapped);
    memset(uct.remotes, 0, sizeof uct.remotes);
    memset(uct.by_entry, 0, sizeof uct.by_entry);
    uct.remote_count = 0;
    uct.tried = uct.linked = uct.connected = false;
    uct.ep = NULL;
    uct.worker = &worker;
    uct.notice = &uct.notices[0];
    uct.am_max[LAYOUT_SHORT] = 8;
    struct weft_uct_port *port = &uct.port;
    snprintf(port->place.transport, sizeof port->place.transport, "tcp");
    port->place.type = what & 1 ? UCT_DEVICE_TYPE_SHM : UCT_DEVICE_TYPE_NET;
    port->domain_attr.cap.flags =
        (what & 2 ? UCT_MD_FLAG_NEED_RKEY : 0) | (what & 4 ? UCT_MD_FLAG_RKEY_PTR : 0);
    port->domain_attr.rkey_packed_size = 1 + (what >> 4 & 7);
    port->attr.cap.flags = what & 8 ? UCT_IFACE_FLAG_CONNECT_TO_IFACE : 0;
    port->attr.device_addr_len = device;
    port->attr.iface_addr_len = port->attr.ep_addr_len = other;
    reachable = !(what & 128);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct uct_ep own;
    struct feed feed = {data, size};
    struct remote remotes[MEETING_KEYS] = {{.address = NULL}};
    unsigned what = next_byte(&feed);
    make_end(what, next_byte(&feed));
    if (!(what & 8))
        uct.ep = &own;
    struct fabric_meeting meeting = next_meeting(&feed);
    if (weft_uct_connect(&uct.fabric, &meeting, remotes) != DONE)
        return 0;
    check_remotes(remotes, meeting.count);
    fuzz_accepted++;
    return 0;
}
