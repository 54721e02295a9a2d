/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzzes the addresses and keys that ofi gets from the other end. This is the file itself;
 * libfabric, and the files beside it, are replaced: no device is opened. The first byte says which
 * kind of addresses the provider has. */
#include "fuzz/meeting.h"

#include <netinet/in.h>
#include <stdio.h>
#include <sys/mman.h>

/* Both ends are on a machine of this name; and the name of shared memory is not ours to remove. */
#define fopen(path, mode) fmemopen((char[]){"fuzz\n"}, 5, "r")
#define shm_unlink(name)  (void)(name)
#include "../../src/fabric/ofi/link.c"
#undef shm_unlink
#undef fopen

unsigned fuzz_accepted;

static struct weft_ofi ofi;

/* ---- libfabric ---- */

static int get_name(struct fid *fid, void *name, size_t *length)
{
    static const char by_name[] = "fi_shm://fuzz";
    size_t size = ofi.port.info->addr_format == FI_ADDR_STR       ? sizeof by_name
                  : ofi.port.info->addr_format == FI_SOCKADDR_IN6 ? sizeof(struct sockaddr_in6)
                                                                  : sizeof(struct sockaddr_in);
    (void)fid;
    if (*length < size)
        return -FI_ETOOSMALL;
    memset(name, 0, size);
    if (ofi.port.info->addr_format == FI_ADDR_STR)
        memcpy(name, by_name, size);
    *length = size;
    return 0;
}

/* As providers do: they read what their kind of address has. */
static int insert(struct fid_av *av, const void *name, size_t count, fi_addr_t *address,
                  uint64_t flags, void *context)
{
    char copy[WEFT_OFI_ADDRESS_MAX + 1];
    (void)av;
    (void)flags;
    (void)context;
    if (ofi.port.info->addr_format == FI_ADDR_STR)
        memcpy(copy, name, strlen(name) + 1);
    else
        memcpy(copy, name,
               ofi.port.info->addr_format == FI_SOCKADDR_IN6 ? sizeof(struct sockaddr_in6)
                                                             : sizeof(struct sockaddr_in));
    *address = 0;
    return (int)count;
}

static struct fi_ops_cm connecting = {.size = sizeof connecting, .getname = get_name};
static struct fid_ep endpoint = {.cm = &connecting};
static struct fi_ops_av addresses = {.size = sizeof addresses, .insert = insert};
static struct fid_av table = {.ops = &addresses};

/* ---- the files beside it ---- */

const struct fabric_host *weft_ofi_host = &fuzz_host;

int weft_ofi_refuse(const struct weft_ofi *r, const char *what, ssize_t status)
{
    (void)r;
    return fail((int)status, "ofi: %s: %d", what, (int)status);
}

int weft_ofi_renew(struct weft_ofi *r)
{
    (void)r;
    return 0;
}

void weft_ofi_guard_begin(struct weft_ofi *r, const struct fabric_meeting *meeting)
{
    (void)r;
    (void)meeting;
}

bool weft_ofi_peer_runs(const struct weft_ofi *r)
{
    (void)r;
    return true;
}

int weft_ofi_guarded(struct weft_ofi *r, int (*call)(struct weft_ofi *r))
{
    return call(r);
}

bool weft_ofi_is(const struct fi_info *info, const char *provider)
{
    return strcmp(info->fabric_attr->prov_name, provider) == 0;
}

void weft_ofi_progress(struct weft_ofi *r)
{
    r->heard = true;
}

int weft_ofi_tell(struct weft_ofi *r, enum note note, const void *bytes, size_t length)
{
    (void)r;
    (void)note;
    (void)bytes;
    (void)length;
    return 0;
}

int weft_ofi_register(struct weft_ofi *r, void *address, size_t length, const struct region *gpu,
                      uint64_t access, struct fid_mr **mr)
{
    (void)r;
    (void)address;
    (void)length;
    (void)gpu;
    (void)access;
    (void)mr;
    abort();
}

/* ---- */

static void make_end(unsigned what)
{
    static struct fi_fabric_attr attributes;
    static struct fi_info info = {.fabric_attr = &attributes};
    static const uint32_t formats[] = {FI_SOCKADDR_IN, FI_SOCKADDR_IN6, FI_ADDR_STR, FI_ADDR_IB_UD};
    static char providers[][8] = {"tcp", "tcp", "shm", "verbs"};
    attributes.prov_name = providers[what % LENGTH(formats)];
    info.addr_format = formats[what % LENGTH(formats)];
    memset(ofi.remotes, 0, sizeof ofi.remotes);
    memset(ofi.by_entry, 0, sizeof ofi.by_entry);
    ofi.remote_count = 0;
    ofi.tried = ofi.linked = ofi.said = ofi.heard = ofi.connected = false;
    ofi.ep = &endpoint;
    ofi.port.ep = &endpoint;
    ofi.port.av = &table;
    ofi.port.info = &info;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct feed feed = {data, size};
    struct remote remotes[MEETING_KEYS] = {{.address = NULL}};
    make_end(next_byte(&feed));
    struct fabric_meeting meeting = next_meeting(&feed);
    if (weft_ofi_connect(&ofi.fabric, &meeting, remotes) != DONE)
        return 0;
    check_remotes(remotes, meeting.count);
    fuzz_accepted++;
    return 0;
}
