/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzzes the addresses and keys that ucp gets from the other end. These are the files themselves;
 * UCX, and the files beside them, are replaced: no device is opened. In its place what UCX would
 * read is read, as far as an address or a key says that it goes. The first byte says whether memory
 * is shared, and where. */
#include "fuzz/mapped.h"

#define write look_at
#include "../../src/fabric/ucp/check.c"
#include "../../src/fabric/ucp/link.c"
#undef write

unsigned fuzz_accepted;

static struct weft_ucp ucp;
static struct fabric_facts facts;
static unsigned what;

/* ---- UCX ---- */

uint16_t ucs_crc16_string(const char *text)
{
    return (uint16_t)(text[0] | text[1] << 8);
}

/* Every device and transport that an address has, without a look at its length. */
ucs_status_t ucp_ep_create(ucp_worker_h worker, const ucp_ep_params_t *params, ucp_ep_h *ep)
{
    const unsigned char *at = (const unsigned char *)params->address;
    unsigned flags, head, sum = 0;
    (void)worker;
    head = *at++;
    at += 8 + (head & 0x40 ? 8 : 0);
    if (head & 0x10)
        at += 1 + *at;
    do {
        bool last = *at++ & 0x80;
        flags = *at++;
        at += (flags & 0x40 ? 1 : 0) + (flags & 0x20 ? 1 : 0) + (flags & 0x1f);
        while (!last) {
            sum += at[0] + at[17];
            at += 18;
            last = *at & 0x80;
            at += 1 + (*at & 0x3f);
        }
    } while (!(flags & 0x80));
    *ep = (ucp_ep_h)(void *)&ucp;
    return sum == 1 ? UCS_ERR_INVALID_ADDR : UCS_OK;
}

ucs_status_t ucp_ep_rkey_unpack(ucp_ep_h ep, const void *packed, ucp_rkey_h *rkey)
{
    const unsigned char *at = packed;
    uint64_t map;
    unsigned sum = 0;
    (void)ep;
    memcpy(&map, at, sizeof map);
    for (at += sizeof map + 1; map; map &= map - 1) {
        for (unsigned i = 0; i < *at; i++)
            sum += at[1 + i];
        at += 1 + *at;
    }
    *rkey = (ucp_rkey_h)(void *)&mapped[sum % MAPPED];
    return sum % 256 == 0xff ? UCS_ERR_INVALID_PARAM : UCS_OK;
}

/* As in shared memory: an offset that the key says, whatever address is asked for. */
ucs_status_t ucp_rkey_ptr(ucp_rkey_h rkey, uint64_t address, void **local)
{
    *local = (void *)((uintptr_t)rkey + (address & 0xfff));
    return what & 2 ? UCS_ERR_UNREACHABLE : UCS_OK;
}

unsigned ucp_worker_progress(ucp_worker_h worker)
{
    (void)worker;
    return 0;
}

void ucp_ep_print_info(ucp_ep_h ep, FILE *stream)
{
    (void)ep;
    fputs("#  lane[0]:  2:tcp/lo.0 md[1]\n", stream);
}

const char *ucp_get_version_string(void)
{
    return "1.13.1";
}

/* Not on the way of what comes from the other end. */
/* clang-format off */
ucs_status_t NEVER(ucp_mem_map, ucp_context_h a, const ucp_mem_map_params_t *b, ucp_mem_h *c)
ucs_status_t NEVER(ucp_mem_unmap, ucp_context_h a, ucp_mem_h b)
ucs_status_t NEVER(ucp_mem_query, const ucp_mem_h a, ucp_mem_attr_t *b)
ucs_status_t NEVER(ucp_rkey_pack, ucp_context_h a, ucp_mem_h b, void **c, size_t *d)
void NEVER(ucp_rkey_buffer_release, void *a)
ucs_status_t NEVER(ucp_worker_get_address, ucp_worker_h a, ucp_address_t **b, size_t *c)
void NEVER(ucp_worker_release_address, ucp_worker_h a, ucp_address_t *b)
int NEVER(weft_ucp_renew, struct weft_ucp *u)
    /* clang-format on */

    /* ---- the files beside them ---- */

    const struct fabric_host *weft_ucp_host = &fuzz_host;

int weft_ucp_refuse(const struct weft_ucp *u, const char *which, ucs_status_t status)
{
    (void)u;
    return fail(-EIO, "ucp: %s: %d", which, status);
}

void weft_ucp_error(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    (void)arg;
    (void)ep;
    (void)status;
}

int weft_ucp_tell(struct weft_ucp *u, enum news news, uint64_t word)
{
    (void)news;
    (void)word;
    u->heard = true;
    return DONE;
}

void weft_ucp_survive_begin(struct weft_ucp *u)
{
    (void)u;
}

int weft_ucp_survive(struct weft_ucp *u, int (*call)(struct weft_ucp *u))
{
    return call(u);
}

void weft_ucp_each(const char *text, void (*found)(void *arg, const char *name), void *arg)
{
    (void)text;
    found(arg, "tcp/lo");
}

/* ---- */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct feed feed = {data, size};
    struct remote remotes[MEETING_KEYS] = {{.address = NULL}};
    what = next_byte(&feed);
    memset(&ucp, 0, sizeof ucp);
    memset(mapped, (int)(what >> 4), sizeof mapped);
    ucp.notice = ucp.notices[0];
    ucp.facts = &facts;
    ucp.worker = (ucp_worker_h)(void *)&ucp;
    ucp.port.shared = what & 1;
    struct fabric_meeting meeting = next_meeting(&feed);
    if (weft_ucp_connect(&ucp.fabric, &meeting, remotes) != DONE)
        return 0;
    check_remotes(remotes, meeting.count);
    fuzz_accepted++;
    return 0;
}
