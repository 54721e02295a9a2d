/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory and the connection: regions and their keys, addresses as text, and one word each way
 * before it counts as connected. */
#include "fabric/ip.h"
#include "fabric/ofi/ofi.h"

#include <errno.h>
#include <inttypes.h>
#include <rdma/fi_cm.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- memory ---- */

static struct weft_ofi_exposed *find(struct weft_ofi *r, const struct region *region)
{
    for (struct weft_ofi_exposed *e = r->exposed; e < r->exposed + WEFT_OFI_ENTRIES; e++)
        if (e->region == region && (region || !e->mr))
            return e;
    return NULL;
}

static int print_key(const struct weft_ofi *r, const struct weft_ofi_exposed *e, struct msg *key)
{
    return weft_ofi_host->msg_print(
        key, "base=0x%" PRIx64 "\nlength=%zu\nkey=0x%" PRIx64 "\nentry=%d\nrkey=0x%" PRIx64 "\n",
        r->virtual_address ? (uint64_t)(uintptr_t)e->region->address : 0, e->region->length, e->key,
        (int)(e - r->exposed), fi_mr_key(e->mr));
}

int weft_ofi_expose(struct fabric *fabric, struct region *region, struct msg *key)
{
    struct weft_ofi *r = (struct weft_ofi *)fabric;
    struct weft_ofi_exposed *e = find(r, region);
    if (!e)
        e = find(r, NULL);
    if (!e)
        return weft_ofi_host->fail(-ENOSPC, "ofi: more than %d regions", WEFT_OFI_ENTRIES);
    if (!region->address)
        return weft_ofi_host->fail(-EINVAL, "ofi: a region without an address");
    int status = r->bound_mr || !r->port.domain ? weft_ofi_renew(r) : 0;
    if (!status && !e->mr)
        status = weft_ofi_register(r, region->address, region->length, region->gpu ? region : NULL,
                                   r->access, &e->mr);
    if (status)
        return status;
    e->region = region;
    if (!e->key)
        status = weft_ofi_host->random_word(&e->key);
    if (!status)
        status = print_key(r, e, key);
    if (status)
        weft_ofi_withdraw(fabric, region);
    return status;
}

/* A process that was stopped or killed may hold a lock in the memory that it shares with us. */
static bool hears(const struct weft_ofi *r)
{
    return r->connected && !r->parted && !(r->todo & TODO_LOST) && weft_ofi_peer_runs(r);
}

static int tell_withdrawn(struct weft_ofi *r)
{
    return weft_ofi_tell(r, NOTE_WITHDRAWN, &r->withdrawing, sizeof r->withdrawing);
}

/* The other end is told if that needs no waiting. */
void weft_ofi_withdraw(struct fabric *fabric, struct region *region)
{
    struct weft_ofi *r = (struct weft_ofi *)fabric;
    for (uint64_t i = 0; i < WEFT_OFI_ENTRIES; i++) {
        if (r->exposed[i].region != region)
            continue;
        r->withdrawing = i;
        if (hears(r))
            weft_ofi_guarded(r, tell_withdrawn);
        r->exposed[i].region = NULL;
        r->exposed[i].key = 0;
    }
    weft_ofi_deregister(r, false);
}

void weft_ofi_deregister(struct weft_ofi *r, bool all)
{
    for (int i = 0; i < WEFT_OFI_ENTRIES; i++)
        if (r->exposed[i].mr && (all || !r->exposed[i].region) && !fi_close(&r->exposed[i].mr->fid))
            r->exposed[i].mr = NULL;
}

/* ---- the address ---- */

bool weft_ofi_by_name(const struct weft_ofi *r)
{
    return r->port.info->addr_format == FI_ADDR_STR;
}

/* Names are good on one machine, in one life of it. */
static void machine(char *text, size_t room)
{
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (!file || !fgets(text, (int)room, file))
        snprintf(text, room, "unknown");
    if (file)
        fclose(file);
    text[strcspn(text, "\n")] = '\0';
}

int weft_ofi_address(struct fabric *fabric, struct msg *mine)
{
    struct weft_ofi *r = (struct weft_ofi *)fabric;
    unsigned char name[WEFT_OFI_ADDRESS_MAX];
    size_t length = sizeof name;
    char host[64];
    int status = weft_ofi_renew(r);
    if (status)
        return status;
    status = fi_getname(&r->ep->fid, name, &length);
    if (status)
        return weft_ofi_refuse(r, "an address", status);
    machine(host, sizeof host);
    status = weft_ofi_host->msg_print(mine, "provider=%s\nformat=%u\nhost=%s\nprocess=%d\n",
                                      r->port.info->fabric_attr->prov_name,
                                      r->port.info->addr_format, host, (int)getpid());
    return status ? status : weft_ofi_host->msg_add_hex(mine, "name", name, length);
}

static int same_kind(struct weft_ofi *r, const struct msg *theirs)
{
    char provider[64] = "", host[64] = "", here[64];
    uint64_t format = 0;
    if (weft_ofi_host->msg_value(theirs, "provider", provider, sizeof provider) ||
        weft_ofi_host->msg_number(theirs, "format", &format) ||
        weft_ofi_host->msg_value(theirs, "host", host, sizeof host) ||
        weft_ofi_host->msg_number(theirs, "process", &r->peer_pid))
        return weft_ofi_host->fail(-EPROTO, "ofi: what the other end gave is no address");
    if (strcmp(provider, r->port.info->fabric_attr->prov_name) != 0)
        return weft_ofi_host->fail(-EPROTO, "ofi: the other end uses %s, this one %s", provider,
                                   r->port.info->fabric_attr->prov_name);
    if (format != r->port.info->addr_format)
        return weft_ofi_host->fail(
            -EPROTO, "ofi: the other end's address is of kind %" PRIu64 ", ours of %u", format,
            r->port.info->addr_format);
    machine(here, sizeof here);
    if (weft_ofi_by_name(r) && strcmp(host, here) != 0)
        return weft_ofi_host->fail(-EHOSTUNREACH, "ofi: %s connects ends on one machine",
                                   r->port.name);
    return 0;
}

/* Providers trust what they are given: a name must end, a socket's address be one of its kind. */
static bool sound(const struct weft_ofi *r, const unsigned char *name, size_t length)
{
    unsigned char mine[WEFT_OFI_ADDRESS_MAX];
    size_t my_length = sizeof mine;
    if (weft_ofi_by_name(r))
        return name[length - 1] == '\0' && strlen((const char *)name) == length - 1;
    if (fi_getname(&r->ep->fid, mine, &my_length) || my_length != length)
        return false;
    sa_family_t family;
    memcpy(&family, name, sizeof family);
    return !weft_ofi_on_ip(r->port.info) ||
           family == (r->port.info->addr_format == FI_SOCKADDR_IN ? AF_INET : AF_INET6);
}

/* A stranger must not make this end connect to somebody else. */
static int at_home(const struct weft_ofi *r, const unsigned char *name, const char *there)
{
    struct sockaddr_in four;
    struct sockaddr_in6 six;
    struct in6_addr ip, wanted;
    char text[INET6_ADDRSTRLEN];
    if (!there || !weft_ofi_on_ip(r->port.info))
        return 0;
    memcpy(&four, name, sizeof four);
    if (four.sin_family == AF_INET) {
        ip = ip_of(AF_INET, &four.sin_addr);
    } else {
        memcpy(&six, name, sizeof six);
        ip = six.sin6_addr;
    }
    if (ip_parse(there, &wanted) && ip_same(&ip, &wanted))
        return 0;
    ip_print(&ip, text, sizeof text);
    return weft_ofi_host->fail(-EACCES, IP_ELSEWHERE, "ofi", text, there);
}

static int add_peer(struct weft_ofi *r, const struct msg *theirs, const char *there)
{
    unsigned char name[WEFT_OFI_ADDRESS_MAX] = {0};
    size_t length = 0;
    int status = weft_ofi_host->msg_hex(theirs, "name", name, sizeof name, &length);
    if (!status && (!length || !sound(r, name, length)))
        status = weft_ofi_host->fail(-EPROTO, "ofi: the other end's address makes no sense");
    if (!status)
        status = at_home(r, name, there);
    if (status)
        return status;
    memcpy(r->peer_name, name, sizeof name);
    int added = fi_av_insert(r->port.av, name, 1, &r->peer, 0, NULL);
    return added == 1 ? 0
                      : weft_ofi_refuse(r, "the other end's address", added < 0 ? added : -EINVAL);
}

/* ---- the connection ---- */

static int add_remote(struct weft_ofi *r, const struct msg *key)
{
    struct weft_ofi_remote *m = &r->remotes[r->remote_count];
    uint64_t length = 0, entry = 0;
    int status = weft_ofi_host->msg_number(key, "base", &m->base);
    if (!status)
        status = weft_ofi_host->msg_number(key, "length", &length);
    if (!status)
        status = weft_ofi_host->msg_number(key, "key", &m->key);
    if (!status)
        status = weft_ofi_host->msg_number(key, "rkey", &m->rkey);
    if (!status)
        status = weft_ofi_host->msg_number(key, "entry", &entry);
    if (status)
        return status;
    if (entry >= WEFT_OFI_ENTRIES || length > UINT64_MAX - m->base || length > SIZE_MAX || !m->key)
        return weft_ofi_host->fail(-EPROTO, "ofi: the other end's key makes no sense");
    m->length = (size_t)length;
    m->alive = m->key;
    r->by_entry[entry] = m;
    r->remote_count++;
    return 0;
}

static int link_up(struct weft_ofi *r, const struct fabric_meeting *meeting)
{
    int status = r->tried ? weft_ofi_host->fail(-ENOTCONN, "ofi: the ends did not come together")
                          : weft_ofi_renew(r);
    r->tried = true;
    if (!status)
        status = same_kind(r, meeting->address);
    r->word = fabric_nonce_word(meeting->nonce);
    if (!status && meeting->count > WEFT_OFI_ENTRIES)
        status = weft_ofi_host->fail(-ENOSPC, "ofi: more than %d regions", WEFT_OFI_ENTRIES);
    for (int i = 0; i < meeting->count && !status; i++)
        status = add_remote(r, &meeting->keys[i]);
    if (!status)
        status = add_peer(r, meeting->address, meeting->there);
    r->linked = !status;
    if (r->linked && weft_ofi_by_name(r))
        weft_ofi_guard_begin(r, meeting);
    return status;
}

/* The shared memory of an endpoint has a name only until the other end has mapped it: what has no
 * name is gone with its last process, however that dies. */
static void forget_name(struct weft_ofi *r)
{
    char name[WEFT_OFI_ADDRESS_MAX] = "";
    size_t length = sizeof name - 1;
    if (!weft_ofi_is(r->port.info, "shm") || fi_getname(&r->ep->fid, name, &length))
        return;
    const char *start = strstr(name, "://");
    start = start ? start + 3 : name;
    if (*start)
        shm_unlink(start);
}

/* One word each way. */
static int hello(struct weft_ofi *r)
{
    weft_ofi_progress(r);
    if (r->todo & TODO_LOST)
        return weft_ofi_host->fail(-ECONNRESET, "ofi: the other end cannot be reached: %s",
                                   r->reason);
    int status = r->said ? 0 : weft_ofi_tell(r, NOTE_HELLO, &r->word, sizeof r->word);
    if (status && status != -EAGAIN)
        return status;
    r->said |= !status;
    return r->said && r->heard ? DONE : LATER;
}

int weft_ofi_connect(struct fabric *fabric, const struct fabric_meeting *meeting,
                     struct remote *remote)
{
    struct weft_ofi *r = (struct weft_ofi *)fabric;
    int status = r->linked ? 0 : link_up(r, meeting);
    if (status)
        return status;
    for (int i = 0; i < meeting->count && i < r->remote_count; i++)
        remote[i] = (struct remote){.length = r->remotes[i].length,
                                    .key = r->remotes[i].key,
                                    .base = r->remotes[i].base,
                                    .own = &r->remotes[i]};
    if (r->connected)
        return DONE;
    status = weft_ofi_guarded(r, hello);
    r->connected = status == DONE;
    if (r->connected)
        forget_name(r);
    return status;
}
