/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory and the connection: regions and their keys, addresses as text, the endpoint, and one word
 * each way before it counts as connected. */
#include "fabric/ip.h"
#include "fabric/key.h"
#include "fabric/uct/uct.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Exactly length bytes, or nothing. */
static int get_bytes(const struct msg *msg, const char *key, void *bytes, size_t length)
{
    size_t got = 0;
    int status = weft_uct_host->msg_hex(msg, key, bytes, length, &got);
    if (status || got == length)
        return status;
    return weft_uct_host->fail(-EPROTO, "uct: the other end's %s has %zu bytes, not %zu", key, got,
                               length);
}

/* ---- memory ---- */

static int place(struct weft_uct *l, struct region *region, struct weft_uct_exposed *e)
{
    size_t bytes = key_mark_at(region->length) + KEY_LINE;
    uct_alloc_method_t method = UCT_ALLOC_METHOD_MD;
    uct_mem_alloc_params_t params = {
        .field_mask = UCT_MEM_ALLOC_PARAM_FIELD_FLAGS | UCT_MEM_ALLOC_PARAM_FIELD_MEM_TYPE |
                      UCT_MEM_ALLOC_PARAM_FIELD_MDS | UCT_MEM_ALLOC_PARAM_FIELD_NAME,
        .flags = UCT_MD_MEM_ACCESS_ALL,
        .mem_type = UCS_MEMORY_TYPE_HOST,
        .mds = {.mds = &l->port.place.domain, .count = 1},
        .name = "weft"};
    if (bytes < region->length || bytes > l->port.domain_attr.cap.max_alloc)
        return weft_uct_host->fail(-ENOMEM, "uct: %zu bytes, and %s can place %" PRIu64,
                                   region->length, l->port.place.transport,
                                   l->port.domain_attr.cap.max_alloc);
    int enough = weft_uct_host->memory_enough(bytes);
    if (enough)
        return enough;
    ucs_status_t status = uct_mem_alloc(bytes, &method, 1, &params, &e->memory);
    if (status != UCS_OK)
        return weft_uct_refuse(l, "placing memory", status);
    /* Touched, so that no page fault is measured. */
    memset(e->memory.address, 0, bytes);
    e->placed = true;
    e->memh = e->memory.memh;
    e->mark =
        (volatile uint64_t *)(void *)((char *)e->memory.address + key_mark_at(region->length));
    region->address = e->memory.address;
    region->mapped = e->memory.length;
    region->page = (size_t)sysconf(_SC_PAGESIZE);
    return 0;
}

static int enlist(struct weft_uct *l, const struct region *region, struct weft_uct_exposed *e)
{
    if (!(l->port.domain_attr.cap.flags & UCT_MD_FLAG_REG))
        return weft_uct_host->fail(-ENOTSUP,
                                   "uct: %s reaches only memory that it has placed itself",
                                   l->port.place.transport);
    ucs_status_t status = uct_md_mem_reg(l->port.place.domain, region->address, region->length,
                                         UCT_MD_MEM_ACCESS_ALL, &e->memh);
    if (status != UCS_OK)
        return weft_uct_refuse(l, "registering memory", status);
    e->registered = true;
    return 0;
}

static int print_key(const struct weft_uct *l, const struct weft_uct_exposed *e, struct msg *key)
{
    unsigned char packed[WEFT_UCT_RKEY_MAX] = {0};
    size_t size = l->port.domain_attr.rkey_packed_size;
    ucs_status_t packs = UCS_OK;
    const struct key said = {.base = (uint64_t)(uintptr_t)e->region->address,
                             .length = e->region->length,
                             .key = e->key,
                             .entry = (uint64_t)(e - l->exposed),
                             .mark = e->mark ? 1 : 0};
    int status = key_print(weft_uct_host, key, &said);
    if (status || !(l->port.domain_attr.cap.flags & UCT_MD_FLAG_NEED_RKEY))
        return status;
    if (size > sizeof packed)
        return weft_uct_host->fail(-EMSGSIZE, "uct: a key of %zu bytes", size);
    if (size)
        packs = uct_md_mkey_pack(l->port.place.domain, e->memh, packed);
    return packs == UCS_OK ? weft_uct_host->msg_add_hex(key, "rkey", packed, size)
                           : weft_uct_refuse(l, "packing a key", packs);
}

static void unexpose(struct weft_uct *l, struct weft_uct_exposed *e)
{
    if (e->mark)
        *e->mark = 0;
    if (e->placed) {
        e->region->address = NULL;
        uct_mem_free(&e->memory);
    }
    if (e->registered)
        uct_md_mem_dereg(l->port.place.domain, e->memh);
    *e = (struct weft_uct_exposed){0};
}

/* The key that is good for this meeting. */
static int give_key(struct weft_uct *l, struct weft_uct_exposed *e, struct msg *key)
{
    int status = key_renew(weft_uct_host, &e->key);
    if (!status && e->mark)
        *e->mark = e->key;
    return status ? status : print_key(l, e, key);
}

static struct weft_uct_exposed *find(struct weft_uct *l, const struct region *region)
{
    for (struct weft_uct_exposed *e = l->exposed; e < l->exposed + WEFT_UCT_ENTRIES; e++)
        if (e->region == region)
            return e;
    return NULL;
}

int weft_uct_expose(struct fabric *fabric, struct region *region, struct msg *key)
{
    struct weft_uct *l = (struct weft_uct *)fabric;
    struct weft_uct_exposed *e = find(l, region);
    if (e)
        return give_key(l, e, key);
    e = find(l, NULL);
    if (!e)
        return weft_uct_host->fail(-ENOSPC, "uct: more than %d regions", WEFT_UCT_ENTRIES);
    int status = region->address ? enlist(l, region, e) : place(l, region, e);
    if (status)
        return status;
    e->region = region;
    status = give_key(l, e, key);
    if (status)
        unexpose(l, e);
    return status;
}

void weft_uct_lock(struct weft_uct *l)
{
    for (struct weft_uct_exposed *e = l->exposed; e < l->exposed + WEFT_UCT_ENTRIES; e++) {
        e->key = 0;
        if (e->mark)
            *e->mark = 0;
    }
}

void weft_uct_unexpose(struct weft_uct *l)
{
    for (struct weft_uct_exposed *e = l->exposed; e < l->exposed + WEFT_UCT_ENTRIES; e++)
        if (e->region)
            unexpose(l, e);
}

/* Puts a word of our note into their notice. */
static ucs_status_t tell(struct weft_uct *l, size_t at)
{
    struct xfer none = {.length = sizeof(uint64_t)};
    struct weft_uct_slot *slot = weft_uct_slot_take(l, VERBS, &none);
    uct_iov_t iov = {.buffer = (char *)&l->note + at, .length = sizeof(uint64_t), .count = 1};
    if (!slot)
        return UCS_ERR_NO_RESOURCE;
    slot->remote = NULL;
    ucs_status_t status =
        uct_ep_put_zcopy(l->ep, &iov, 1, l->their_notice + at, UCT_INVALID_RKEY, &slot->done);
    if (status == UCS_INPROGRESS)
        return UCS_OK;
    weft_uct_slot_give(slot);
    return status;
}

void weft_uct_withdraw(struct fabric *fabric, struct region *region)
{
    struct weft_uct *l = (struct weft_uct *)fabric;
    for (int i = 0; i < WEFT_UCT_ENTRIES; i++) {
        if (l->exposed[i].region != region)
            continue;
        bool hears = l->connected && !l->parted && !(l->todo & TODO_LOST);
        if (hears && l->has_notice)
            (void)tell(l, offsetof(struct weft_uct_notice, alive) + (size_t)i * sizeof(uint64_t));
        else if (hears && l->am_max[LAYOUT_SHORT] && !l->exposed[i].mark)
            weft_uct_mail_withdrawn(l, (uint64_t)i);
        weft_uct_drain(l);
        unexpose(l, &l->exposed[i]);
    }
}

/* In shared memory what is under way needs nobody else, and must not be there when the endpoint
 * goes; elsewhere the endpoint takes it along. */
void weft_uct_drain(struct weft_uct *l)
{
    enum { LAPS = 100000 };
    if (l->port.place.type != UCT_DEVICE_TYPE_SHM || l->settle == SETTLE_FENCE)
        return;
    l->draining = true;
    for (int lap = 0; lap < LAPS && l->taken; lap++)
        uct_worker_progress(l->worker);
    l->draining = false;
}

/* ---- the connection ---- */

static bool to_iface(const struct weft_uct *l)
{
    return l->port.attr.cap.flags & UCT_IFACE_FLAG_CONNECT_TO_IFACE;
}

static bool has_am(const struct weft_uct *l)
{
    return l->am_max[LAYOUT_SHORT] || l->am_max[LAYOUT_BCOPY];
}

static int add_endpoint(struct weft_uct *l, struct msg *mine)
{
    unsigned char bytes[WEFT_UCT_ADDRESS_MAX] = {0};
    uct_ep_params_t params = {.field_mask = UCT_EP_PARAM_FIELD_IFACE, .iface = l->port.iface};
    ucs_status_t status = l->ep ? UCS_OK : uct_ep_create(&params, &l->ep);
    if (status == UCS_OK && l->port.attr.ep_addr_len <= sizeof bytes)
        status = uct_ep_get_address(l->ep, (uct_ep_addr_t *)(void *)bytes);
    if (status != UCS_OK)
        return weft_uct_refuse(l, "an endpoint", status);
    return weft_uct_host->msg_add_hex(mine, "ep", bytes, l->port.attr.ep_addr_len);
}

int weft_uct_address(struct fabric *fabric, struct msg *mine)
{
    struct weft_uct *l = (struct weft_uct *)fabric;
    const uct_iface_attr_t *attr = &l->port.attr;
    unsigned char device[WEFT_UCT_ADDRESS_MAX] = {0}, iface[WEFT_UCT_ADDRESS_MAX] = {0};
    if (attr->device_addr_len > sizeof device || attr->iface_addr_len > sizeof iface ||
        attr->ep_addr_len > WEFT_UCT_ADDRESS_MAX)
        return weft_uct_host->fail(-EMSGSIZE, "uct: %s has addresses of more than %d bytes",
                                   l->port.place.transport, WEFT_UCT_ADDRESS_MAX);
    int renewed = l->renewed ? 0 : weft_uct_renew(l);
    if (renewed)
        return renewed;
    ucs_status_t status =
        uct_iface_get_device_address(l->port.iface, (uct_device_addr_t *)(void *)device);
    if (status == UCS_OK && to_iface(l))
        status = uct_iface_get_address(l->port.iface, (uct_iface_addr_t *)(void *)iface);
    if (status != UCS_OK)
        return weft_uct_refuse(l, "an address", status);
    int printed = weft_uct_host->msg_print(mine, "transport=%s\nnotice=0x%" PRIx64 "\n",
                                           l->port.place.transport, (uint64_t)(uintptr_t)l->notice);
    if (!printed)
        printed = weft_uct_host->msg_add_hex(mine, "device", device, attr->device_addr_len);
    if (!printed && to_iface(l))
        printed = weft_uct_host->msg_add_hex(mine, "iface", iface, attr->iface_addr_len);
    else if (!printed)
        printed = add_endpoint(l, mine);
    return printed;
}

static int unreachable(const struct weft_uct *l)
{
    if (l->port.place.type == UCT_DEVICE_TYPE_SELF)
        return weft_uct_host->fail(-EHOSTUNREACH, "uct: %s connects a process with itself only",
                                   l->port.place.transport);
    return weft_uct_host->fail(-EHOSTUNREACH, "uct: the other end cannot be reached by %s/%s%s",
                               l->port.place.transport, l->port.place.device,
                               l->port.place.type == UCT_DEVICE_TYPE_SHM
                                   ? ": that takes the same machine and the same container"
                                   : "");
}

/* A stranger must not make this end connect to somebody else. */
static int at_home(const struct weft_uct *l, const unsigned char *device, const char *there)
{
    struct in6_addr ip, wanted;
    char text[INET6_ADDRSTRLEN];
    if (!there || strcmp(l->port.place.transport, "tcp") != 0)
        return 0;
    if (!ip_of_ucx(device, l->port.attr.device_addr_len, &ip))
        return weft_uct_host->fail(-EPROTO, "uct: the other end's address makes no sense");
    if (ip_parse(there, &wanted) && ip_same(&ip, &wanted))
        return 0;
    ip_print(&ip, text, sizeof text);
    return weft_uct_host->fail(-EACCES, IP_ELSEWHERE, "uct", text, there);
}

static int make_endpoint(struct weft_uct *l, const struct msg *theirs, const char *there)
{
    const uct_iface_attr_t *attr = &l->port.attr;
    unsigned char device[WEFT_UCT_ADDRESS_MAX], other[WEFT_UCT_ADDRESS_MAX];
    uct_ep_params_t params = {.field_mask = UCT_EP_PARAM_FIELD_IFACE | UCT_EP_PARAM_FIELD_DEV_ADDR |
                                            UCT_EP_PARAM_FIELD_IFACE_ADDR,
                              .iface = l->port.iface,
                              .dev_addr = (uct_device_addr_t *)(void *)device,
                              .iface_addr = (uct_iface_addr_t *)(void *)other};
    int status = get_bytes(theirs, "device", device, attr->device_addr_len);
    if (!status)
        status = at_home(l, device, there);
    if (!status)
        status = to_iface(l) ? get_bytes(theirs, "iface", other, attr->iface_addr_len)
                             : get_bytes(theirs, "ep", other, attr->ep_addr_len);
    if (status)
        return status;
    if (!uct_iface_is_reachable(l->port.iface, params.dev_addr,
                                to_iface(l) ? params.iface_addr : NULL))
        return unreachable(l);
    ucs_status_t made;
    if (to_iface(l))
        made = uct_ep_create(&params, &l->ep);
    else
        made = l->ep ? uct_ep_connect_to_ep(l->ep, params.dev_addr, (uct_ep_addr_t *)(void *)other)
                     : UCS_ERR_NOT_CONNECTED;
    return made == UCS_OK ? 0 : weft_uct_refuse(l, "connecting", made);
}

static int same_transport(const struct weft_uct *l, const struct msg *theirs)
{
    char transport[UCT_TL_NAME_MAX] = "";
    int status = weft_uct_host->msg_value(theirs, "transport", transport, sizeof transport);
    if (status)
        return weft_uct_host->fail(-EPROTO, "uct: what the other end gave is no address");
    for (char *at = transport; *at; at++)
        if (!isalnum((unsigned char)*at) && *at != '_')
            *at = '?';
    if (strcmp(transport, l->port.place.transport) != 0)
        return weft_uct_host->fail(-EPROTO, "uct: the other end uses %s, this one %s", transport,
                                   l->port.place.transport);
    return 0;
}

/* What the key opens, and where it says that it is no longer good. */
static int unlock(struct weft_uct *l, struct weft_uct_remote *r, const struct msg *key,
                  const struct key *said)
{
    unsigned char packed[WEFT_UCT_RKEY_MAX];
    void *mapped = NULL;
    r->rkey = UCT_INVALID_RKEY;
    if (!(l->port.domain_attr.cap.flags & UCT_MD_FLAG_NEED_RKEY))
        return 0;
    int status = get_bytes(key, "rkey", packed, l->port.domain_attr.rkey_packed_size);
    if (status)
        return status;
    ucs_status_t opens = uct_rkey_unpack(l->port.place.component, packed, &r->bundle);
    if (opens != UCS_OK)
        return weft_uct_refuse(l, "the other end's key", opens);
    r->unpacked = true;
    r->rkey = r->bundle.rkey;
    if (!(l->port.domain_attr.cap.flags & UCT_MD_FLAG_RKEY_PTR) || !said->mark)
        return 0;
    opens = uct_rkey_ptr(l->port.place.component, &r->bundle, r->base, &mapped);
    if (opens != UCS_OK)
        return weft_uct_refuse(l, "the other end's memory", opens);
    return key_find_mark(weft_uct_host, "uct", mapped, said, &r->alive);
}

static int add_remote(struct weft_uct *l, const struct msg *key)
{
    struct weft_uct_remote *r = &l->remotes[l->remote_count];
    struct key said = {0};
    int status = key_read(weft_uct_host, "uct", key, WEFT_UCT_ENTRIES, &said);
    if (status)
        return status;
    r->base = said.base;
    r->key = said.key;
    r->length = (size_t)said.length;
    l->notice->alive[said.entry] = r->key;
    r->alive = &l->notice->alive[said.entry];
    l->by_entry[said.entry] = r;
    status = unlock(l, r, key, &said);
    l->remote_count += r->unpacked || !status;
    return status;
}

static int link_up(struct weft_uct *l, const struct fabric_meeting *meeting)
{
    const struct msg *theirs = meeting->address;
    int status = l->tried ? weft_uct_host->fail(-ENOTCONN, "uct: the ends did not come together")
                          : same_transport(l, theirs);
    l->tried = true;
    l->mail.word = fabric_nonce_word(meeting->nonce);
    if (!status && meeting->count > WEFT_UCT_ENTRIES)
        status = weft_uct_host->fail(-ENOSPC, "uct: more than %d regions", WEFT_UCT_ENTRIES);
    if (!status)
        status = weft_uct_host->msg_number(theirs, "notice", &l->their_notice);
    for (int i = 0; i < meeting->count && !status; i++)
        status = add_remote(l, &meeting->keys[i]);
    if (!status)
        status = make_endpoint(l, theirs, meeting->there);
    l->linked = !status;
    return status;
}

/* A word each way: by active message, or else by a put, if that needs no key. */
static int hello(struct weft_uct *l)
{
    const volatile uint64_t *heard = &l->notice->hello;
    bool puts =
        l->put_max[LAYOUT_ZCOPY] && !(l->port.domain_attr.cap.flags & UCT_MD_FLAG_NEED_RKEY);
    if (has_am(l))
        return weft_uct_mail_hello(l);
    if (!puts)
        return DONE;
    if (!l->has_notice) {
        l->note.hello = l->mail.word;
        ucs_status_t status = tell(l, offsetof(struct weft_uct_notice, hello));
        if (status != UCS_OK)
            return status == UCS_ERR_NO_RESOURCE ? LATER
                                                 : weft_uct_refuse(l, "a first word", status);
        l->has_notice = true;
    }
    /* Ours must have arrived too: nobody may poll here afterwards. */
    return *heard == l->mail.word && !l->taken ? DONE : LATER;
}

int weft_uct_connect(struct fabric *fabric, const struct fabric_meeting *meeting,
                     struct remote *remote)
{
    struct weft_uct *l = (struct weft_uct *)fabric;
    int status = l->linked ? 0 : link_up(l, meeting);
    if (status)
        return status;
    for (int i = 0; i < meeting->count && i < l->remote_count; i++)
        remote[i] = (struct remote){.length = l->remotes[i].length,
                                    .key = l->remotes[i].key,
                                    .base = l->remotes[i].base,
                                    .own = &l->remotes[i]};
    if (l->connected)
        return DONE;
    ucs_async_poll(l->port.async);
    uct_worker_progress(l->worker);
    if (l->todo & TODO_LOST)
        return weft_uct_host->fail(-ECONNRESET, "uct: the other end cannot be reached: %s",
                                   l->reason);
    status = hello(l);
    l->connected = status == DONE;
    return status;
}
