/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory and the connection: regions and their keys, addresses as text, the endpoint, and one word
 * each way before it counts as connected. */
#include "fabric/key.h"
#include "fabric/ucp/ucp.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- memory ---- */

/* Placed by UCX, as its own tool does: there the transports of shared memory reach it. */
static int place(struct weft_ucp *u, struct region *region, struct weft_ucp_exposed *e)
{
    size_t bytes = key_mark_at(region->length) + KEY_LINE;
    ucp_mem_map_params_t params = {
        .field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS,
        .length = bytes,
        .flags = UCP_MEM_MAP_ALLOCATE | (u->tunes.nonblock ? UCP_MEM_MAP_NONBLOCK : 0U)};
    ucp_mem_attr_t attr = {.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS | UCP_MEM_ATTR_FIELD_LENGTH};
    if (bytes < region->length)
        return weft_ucp_host->fail(-ENOMEM, "ucp: %zu bytes", region->length);
    int enough = weft_ucp_host->memory_enough(bytes);
    if (enough)
        return enough;
    ucs_status_t status = ucp_mem_map(u->port.context, &params, &e->memh);
    if (status != UCS_OK)
        return weft_ucp_refuse(u, "placing memory", status);
    status = ucp_mem_query(e->memh, &attr);
    if (status != UCS_OK) {
        ucp_mem_unmap(u->port.context, e->memh);
        return weft_ucp_refuse(u, "placing memory", status);
    }
    /* Touched, so that no page fault is measured. */
    memset(attr.address, 0, bytes);
    e->mark = (volatile uint64_t *)(void *)((char *)attr.address + key_mark_at(region->length));
    region->address = attr.address;
    region->mapped = attr.length;
    region->page = (size_t)sysconf(_SC_PAGESIZE);
    return 0;
}

static int enlist(struct weft_ucp *u, const struct region *region, struct weft_ucp_exposed *e)
{
    ucp_mem_map_params_t params = {
        .field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH |
                      UCP_MEM_MAP_PARAM_FIELD_FLAGS | UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE,
        .address = region->address,
        .length = region->length,
        .flags = u->tunes.nonblock ? UCP_MEM_MAP_NONBLOCK : 0,
        .memory_type = weft_ucp_type(&u->port, region)};
    if (region->gpu && !(u->port.gpus & 1U << region->kind->vendor))
        return weft_ucp_host->fail(-ENOTSUP, "ucp: GPU memory that UCX does not reach");
    ucs_status_t status = ucp_mem_map(u->port.context, &params, &e->memh);
    return status == UCS_OK ? 0 : weft_ucp_refuse(u, "registering memory", status);
}

/* A GPU's comes first, then the longest. */
static void choose_inbox(struct weft_ucp *u)
{
    u->inbox = NULL;
    for (const struct weft_ucp_exposed *e = u->exposed; e < u->exposed + WEFT_UCP_ENTRIES; e++) {
        const struct region *r = e->region, *best = u->inbox;
        if (r && (!best || (r->gpu && !best->gpu) ||
                  (!r->gpu == !best->gpu && r->length > best->length)))
            u->inbox = r;
    }
}

/* Packed once: releases of UCX leave bytes of it unset, and one region has one key. */
static int pack_key(const struct weft_ucp *u, struct weft_ucp_exposed *e)
{
    if (e->rkey)
        return 0;
    ucs_status_t packs = ucp_rkey_pack(u->port.context, e->memh, &e->rkey, &e->rkey_bytes);
    if (packs != UCS_OK) {
        e->rkey = NULL;
        return weft_ucp_refuse(u, "packing a key", packs);
    }
    return e->rkey_bytes > WEFT_UCP_RKEY_MAX
               ? weft_ucp_host->fail(-EMSGSIZE, "ucp: a key of %zu bytes", e->rkey_bytes)
               : 0;
}

static int print_key(const struct weft_ucp *u, struct weft_ucp_exposed *e, struct msg *key)
{
    int status = pack_key(u, e);
    const struct key said = {.base = (uint64_t)(uintptr_t)e->region->address,
                             .length = e->region->length,
                             .key = e->key,
                             .entry = (uint64_t)(e - u->exposed),
                             .mark = e->mark ? 1 : 0};
    if (!status)
        status = key_print(weft_ucp_host, key, &said);
    return status ? status : weft_ucp_host->msg_add_hex(key, "rkey", e->rkey, e->rkey_bytes);
}

/* What is under way may still read or fill it, and a target writes where it is told to: it goes
 * when the other end has gone. */
static void unexpose(struct weft_ucp *u, struct weft_ucp_exposed *e)
{
    if (e->rkey)
        ucp_rkey_buffer_release(e->rkey);
    if (e->mark) {
        *e->mark = 0;
        e->region->address = NULL;
    }
    if (e->mark && u->linked && u->late_count < WEFT_UCP_ENTRIES)
        u->late[u->late_count++] = e->memh;
    else
        ucp_mem_unmap(u->port.context, e->memh);
    *e = (struct weft_ucp_exposed){0};
    choose_inbox(u);
}

void weft_ucp_give_back(struct weft_ucp *u)
{
    while (u->late_count)
        ucp_mem_unmap(u->port.context, u->late[--u->late_count]);
}

/* The key that is good for this meeting. */
static int give_key(struct weft_ucp *u, struct weft_ucp_exposed *e, struct msg *key)
{
    int status = key_renew(weft_ucp_host, &e->key);
    if (!status && e->mark)
        *e->mark = e->key;
    return status ? status : print_key(u, e, key);
}

static struct weft_ucp_exposed *find(struct weft_ucp *u, const struct region *region)
{
    for (struct weft_ucp_exposed *e = u->exposed; e < u->exposed + WEFT_UCP_ENTRIES; e++)
        if (e->region == region)
            return e;
    return NULL;
}

int weft_ucp_expose(struct fabric *fabric, struct region *region, struct msg *key)
{
    struct weft_ucp *u = (struct weft_ucp *)fabric;
    struct weft_ucp_exposed *e = find(u, region);
    if (e)
        return give_key(u, e, key);
    e = find(u, NULL);
    if (!e)
        return weft_ucp_host->fail(-ENOSPC, "ucp: more than %d regions", WEFT_UCP_ENTRIES);
    int status = region->address ? enlist(u, region, e) : place(u, region, e);
    if (status)
        return status;
    e->region = region;
    choose_inbox(u);
    status = give_key(u, e, key);
    if (status)
        unexpose(u, e);
    return status;
}

void weft_ucp_lock(struct weft_ucp *u)
{
    for (struct weft_ucp_exposed *e = u->exposed; e < u->exposed + WEFT_UCP_ENTRIES; e++) {
        e->key = 0;
        if (e->mark)
            *e->mark = 0;
    }
}

void weft_ucp_unexpose(struct weft_ucp *u)
{
    for (struct weft_ucp_exposed *e = u->exposed; e < u->exposed + WEFT_UCP_ENTRIES; e++)
        if (e->region)
            unexpose(u, e);
}

static int tell_withdrawn(struct weft_ucp *u)
{
    return weft_ucp_tell(u, NEWS_WITHDRAWN, u->withdrawn);
}

void weft_ucp_withdraw(struct fabric *fabric, struct region *region)
{
    struct weft_ucp *u = (struct weft_ucp *)fabric;
    struct weft_ucp_exposed *e = find(u, region);
    if (!e)
        return;
    if (u->connected && !u->parted && !(u->todo & TODO_LOST)) {
        u->withdrawn = (uint64_t)(e - u->exposed);
        (void)weft_ucp_survive(u, tell_withdrawn);
    }
    unexpose(u, e);
}

/* ---- the connection ---- */

/* The same at all ends on one machine. */
static uint64_t machine(void)
{
    char id[64] = "";
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (!file)
        return 0;
    if (!fgets(id, sizeof id, file))
        *id = '\0';
    fclose(file);
    return fabric_nonce_word(id);
}

int weft_ucp_address(struct fabric *fabric, struct msg *mine)
{
    struct weft_ucp *u = (struct weft_ucp *)fabric;
    ucp_address_t *address;
    size_t length;
    int renewed = u->worker ? 0 : weft_ucp_renew(u);
    if (renewed)
        return renewed;
    ucs_status_t status = ucp_worker_get_address(u->worker, &address, &length);
    if (status != UCS_OK)
        return weft_ucp_refuse(u, "an address", status);
    int printed = length > WEFT_UCP_ADDRESS_MAX
                      ? weft_ucp_host->fail(-EMSGSIZE,
                                            "ucp: an address of %zu bytes: name a transport, such "
                                            "as ucp:tcp",
                                            length)
                      : weft_ucp_host->msg_print(mine, "machine=0x%" PRIx64 "\n", machine());
    if (!printed)
        printed = weft_ucp_host->msg_add_hex(mine, "worker", address, length);
    ucp_worker_release_address(u->worker, address);
    return printed;
}

/* Bytes of the other end's, in a buffer that is long enough for whatever they say they are. */
static unsigned char *get_padded(const struct msg *msg, const char *key, size_t most,
                                 size_t *length)
{
    unsigned char *bytes = calloc(1, WEFT_UCP_PADDED);
    int status = bytes ? weft_ucp_host->msg_hex(msg, key, bytes, most, length)
                       : weft_ucp_host->fail(-ENOMEM, "ucp: no memory");
    if (!status)
        return bytes;
    if (bytes)
        weft_ucp_host->fail(-EPROTO, "ucp: the other end's %s cannot be read", key);
    free(bytes);
    return NULL;
}

static int make_endpoint(struct weft_ucp *u, const struct msg *theirs, const char *there)
{
    size_t length = 0;
    unsigned char *bytes = get_padded(theirs, "worker", WEFT_UCP_ADDRESS_MAX, &length);
    ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                                            UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                                            UCP_EP_PARAM_FIELD_ERR_HANDLER,
                              .address = (ucp_address_t *)(void *)bytes,
                              .err_handler = {.cb = weft_ucp_error, .arg = u}};
    uint64_t place = 0;
    if (!bytes)
        return -EPROTO;
    /* On another machine there is no shared memory that error handling would rule out. */
    int status = weft_ucp_host->msg_number(theirs, "machine", &place);
    u->peer_errors |= !status && place != machine() && !u->tunes.errors_none;
    params.err_mode = u->peer_errors ? UCP_ERR_HANDLING_MODE_PEER : UCP_ERR_HANDLING_MODE_NONE;
    if (!status)
        status = weft_ucp_check_address(bytes, length, there);
    if (!status) {
        ucs_status_t made = ucp_ep_create(u->worker, &params, &u->ep);
        if (made != UCS_OK) {
            u->ep = NULL;
            status = weft_ucp_refuse(u, "an endpoint to the other end", made);
        }
    }
    free(bytes);
    return status;
}

/* Where the other end's memory is mapped here, it has a mark. */
static int find_mark(struct weft_ucp *u, struct weft_ucp_remote *r, const struct key *said)
{
    void *mapped = NULL;
    if (!u->port.shared || ucp_rkey_ptr(r->rkey, r->base, &mapped) != UCS_OK)
        return 0;
    return key_find_mark(weft_ucp_host, "ucp", mapped, said, &r->alive);
}

static int unlock(struct weft_ucp *u, struct weft_ucp_remote *r, const struct msg *key,
                  const struct key *said)
{
    size_t length = 0;
    unsigned char *bytes = get_padded(key, "rkey", WEFT_UCP_RKEY_MAX, &length);
    if (!bytes)
        return -EPROTO;
    int status = weft_ucp_check_rkey(bytes, length, u->port.key_types);
    if (!status) {
        ucs_status_t opens = ucp_ep_rkey_unpack(u->ep, bytes, &r->rkey);
        if (opens != UCS_OK) {
            r->rkey = NULL;
            status = weft_ucp_refuse(u, "the other end's key", opens);
        }
    }
    free(bytes);
    return status || !said->mark ? status : find_mark(u, r, said);
}

static int add_remote(struct weft_ucp *u, const struct msg *key)
{
    struct weft_ucp_remote *r = &u->remotes[u->remote_count];
    struct key said = {0};
    int status = key_read(weft_ucp_host, "ucp", key, WEFT_UCP_ENTRIES, &said);
    if (status)
        return status;
    r->base = said.base;
    r->key = said.key;
    r->length = (size_t)said.length;
    u->notice[said.entry] = r->key;
    r->alive = &u->notice[said.entry];
    u->remote_count++;
    return unlock(u, r, key, &said);
}

static int link_up(struct weft_ucp *u, const struct fabric_meeting *meeting)
{
    int status = u->tried || !u->worker
                     ? weft_ucp_host->fail(-ENOTCONN, "ucp: the ends did not come together")
                     : 0;
    u->tried = true;
    u->word = fabric_nonce_word(meeting->nonce);
    if (!status && meeting->count > WEFT_UCP_ENTRIES)
        status = weft_ucp_host->fail(-ENOSPC, "ucp: more than %d regions", WEFT_UCP_ENTRIES);
    if (!status)
        status = make_endpoint(u, meeting->address, meeting->there);
    for (int i = 0; i < meeting->count && !status; i++)
        status = add_remote(u, &meeting->keys[i]);
    u->linked = !status;
    return status;
}

static void add_lane(void *arg, const char *name)
{
    char *all = arg;
    size_t used = strlen(all);
    if (!strstr(all, name))
        snprintf(all + used, FABRIC_DEVICE_MAX - used, "%s%s", used ? " " : "", name);
}

/* Which transports UCX has chosen. */
static void name_lanes(struct weft_ucp *u)
{
    char all[FABRIC_DEVICE_MAX] = "", *text = NULL;
    size_t length;
    FILE *stream = open_memstream(&text, &length);
    if (!stream)
        return;
    ucp_ep_print_info(u->ep, stream);
    fclose(stream);
    weft_ucp_each(text, add_lane, all);
    free(text);
    if (*all)
        snprintf(u->facts->form, sizeof u->facts->form, "ucp %.100s (UCX %.10s)", all,
                 ucp_get_version_string());
}

/* A word each way, and ours must be gone: nobody may poll here afterwards. */
static int hello(struct weft_ucp *u)
{
    ucp_worker_progress(u->worker);
    if (u->todo & TODO_LOST)
        return -ECONNRESET;
    if (!u->said) {
        int status = weft_ucp_tell(u, NEWS_HELLO, u->word);
        if (status < 0)
            return status == -EAGAIN ? LATER : status;
        u->said = true;
    }
    return u->heard && !u->taken ? DONE : LATER;
}

int weft_ucp_connect(struct fabric *fabric, const struct fabric_meeting *meeting,
                     struct remote *remote)
{
    struct weft_ucp *u = (struct weft_ucp *)fabric;
    int status = u->linked ? 0 : link_up(u, meeting);
    if (status)
        return status;
    for (int i = 0; i < meeting->count && i < u->remote_count; i++)
        remote[i] = (struct remote){.length = u->remotes[i].length,
                                    .key = u->remotes[i].key,
                                    .base = u->remotes[i].base,
                                    .own = &u->remotes[i]};
    if (u->connected)
        return DONE;
    weft_ucp_survive_begin(u);
    status = u->worker ? weft_ucp_survive(u, hello) : -ECONNRESET;
    if (u->todo & TODO_LOST || !u->worker)
        return weft_ucp_host->fail(-ECONNRESET, "ucp: the other end cannot be reached: %s",
                                   u->todo & TODO_LOST ? u->reason : "it has gone");
    u->connected = status == DONE;
    u->plain = u->connected && !u->tuned && !u->survives;
    if (u->connected)
        name_lanes(u);
    return status;
}
