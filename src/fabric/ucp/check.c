/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses and keys that come from the other end, before UCX sees them: it takes both without a
 * length, believes what they say of their own parts, and ends the process where that makes no
 * sense. Both formats are those of UCX 1.13 to 1.18; others are refused. */
#include "fabric/ip.h"
#include "fabric/ucp/ucp.h"

#include <errno.h>
#include <ucs/algorithm/crc.h>

struct cursor {
    const unsigned char *at;
    size_t left;
    bool bad;
};

static const unsigned char *take(struct cursor *c, size_t length)
{
    const unsigned char *at = c->at;
    c->bad |= length > c->left;
    if (c->bad)
        return NULL;
    c->at += length;
    c->left -= length;
    return at;
}

static unsigned take_byte(struct cursor *c)
{
    const unsigned char *at = take(c, 1);
    return at ? *at : 0;
}

/* ---- a worker's address ---- */

/* The first byte has the version and flags; then the worker's name, and for every device: a byte of
 * its memory domain, its address, and what it has of transports. Each is a sum of its name, a block
 * of attributes, and its address. Lengths share their byte with flags. */
enum {
    VERSION_MASK = 15,
    HAS_NAME = 1 << 4,
    HAS_CLIENT = 4 << 4,
    UUID = 8,
    CLIENT = 8,
    SUM = 2,
    ATTRIBUTES = 16,
    EMPTY = 0x80,
    LAST = 0x80,
    HAS_PATHS = 0x40,
    HAS_SYSTEM = 0x20,
    DEVICE_MASK = 0x1f,
    HAS_ENDPOINT = 0x40,
    TRANSPORT_MASK = 0x3f,
    NO_DEVICES = 0xff
};

/* A stranger must not make this end connect to another machine. */
static int check_device(const unsigned char *device, size_t length, uint16_t sum, const char *there)
{
    struct in6_addr ip, wanted;
    char text[INET6_ADDRSTRLEN];
    if (!there || sum != ucs_crc16_string("tcp"))
        return 0;
    if (!ip_of_ucx(device, length, &ip))
        return weft_ucp_host->fail(-EPROTO, "ucp: the other end's address makes no sense");
    if (ip_parse(there, &wanted) && ip_same(&ip, &wanted))
        return 0;
    ip_print(&ip, text, sizeof text);
    return weft_ucp_host->fail(-EACCES, IP_ELSEWHERE, "ucp", text, there);
}

static int walk_device(struct cursor *c, const char *there, bool *last)
{
    bool empty = take_byte(c) & EMPTY;
    unsigned head = take_byte(c);
    size_t length = head & DEVICE_MASK;
    take(c, (head & HAS_PATHS ? 1 : 0) + (head & HAS_SYSTEM ? 1 : 0));
    const unsigned char *device = take(c, length);
    bool last_transport = empty;
    int status = 0;
    while (!last_transport && !c->bad && !status) {
        const unsigned char *sum = take(c, SUM + ATTRIBUTES);
        unsigned flags = take_byte(c);
        take(c, flags & TRANSPORT_MASK);
        last_transport = flags & LAST;
        /* A worker's has no endpoints. */
        c->bad |= flags & HAS_ENDPOINT;
        if (!c->bad)
            status = check_device(device, length, (uint16_t)(sum[0] | sum[1] << 8), there);
    }
    *last = head & LAST;
    return status;
}

int weft_ucp_check_address(const unsigned char *bytes, size_t length, const char *there)
{
    struct cursor c = {bytes, length, false};
    unsigned head = take_byte(&c);
    bool last = false;
    int status = 0;
    c.bad |= head & VERSION_MASK;
    take(&c, UUID + (head & HAS_CLIENT ? CLIENT : 0));
    if (head & HAS_NAME)
        take(&c, take_byte(&c));
    c.bad |= !c.left || *c.at == NO_DEVICES;
    while (!last && !c.bad && !status)
        status = walk_device(&c, there, &last);
    if (!status && (c.bad || c.left))
        status = weft_ucp_host->fail(-EPROTO, "ucp: the other end's address makes no sense");
    return status;
}

/* ---- a key ---- */

/* A bit per memory domain, the kind of memory, and for each domain a length and its own key. */
int weft_ucp_check_rkey(const unsigned char *bytes, size_t length, uint64_t types)
{
    struct cursor c = {bytes, length, false};
    const unsigned char *map = take(&c, sizeof(uint64_t));
    unsigned domains = 0;
    for (size_t i = 0; map && i < sizeof(uint64_t); i++)
        domains += (unsigned)__builtin_popcount(map[i]);
    unsigned type = take_byte(&c);
    c.bad |= type >= 64 || !((types | UCS_BIT(UCS_MEMORY_TYPE_HOST)) >> type & 1);
    while (domains-- && !c.bad)
        take(&c, take_byte(&c));
    if (c.bad)
        return weft_ucp_host->fail(-EPROTO, "ucp: the other end's key makes no sense");
    return 0;
}
