/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside fabric, also for modules: numeric IP addresses, and the interfaces that have them. IPv4 is
 * kept as IPv6 writes it, ::ffff:10.0.0.1, so that both forms compare equal. */
#ifndef WEFT_FABRIC_IP_H
#define WEFT_FABRIC_IP_H

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* From the bytes of an in_addr or in6_addr. */
static inline struct in6_addr ip_of(int family, const void *bytes)
{
    struct in6_addr ip = {.s6_addr = {[10] = 0xff, [11] = 0xff}};
    if (family == AF_INET)
        memcpy(ip.s6_addr + 12, bytes, sizeof(struct in_addr));
    else
        memcpy(&ip, bytes, sizeof ip);
    return ip;
}

/* From the device address of UCX's tcp: a byte of flags, one of the family, and the IP address,
 * unless flag 1 says that it is a loopback address. False if it makes no sense. */
static inline bool ip_of_ucx(const unsigned char *device, size_t length, struct in6_addr *ip)
{
    enum { FLAGS, FAMILY, IP, LOOPBACK = 1 };
    *ip = in6addr_loopback;
    if (length > FLAGS && device[FLAGS] & LOOPBACK)
        return true;
    if ((length < IP + sizeof(struct in_addr) || device[FAMILY] != AF_INET) &&
        (length < IP + sizeof *ip || device[FAMILY] != AF_INET6))
        return false;
    *ip = ip_of(device[FAMILY], device + IP);
    return true;
}

/* From text, "10.0.0.1", "fe80::1%eth0"; false if it is no address. */
static inline bool ip_parse(const char *text, struct in6_addr *ip)
{
    char plain[INET6_ADDRSTRLEN];
    struct in_addr four;
    size_t length = strcspn(text, "%");
    if (length >= sizeof plain)
        return false;
    memcpy(plain, text, length);
    plain[length] = '\0';
    if (inet_pton(AF_INET6, plain, ip) == 1)
        return true;
    if (inet_pton(AF_INET, plain, &four) != 1)
        return false;
    *ip = ip_of(AF_INET, &four);
    return true;
}

static inline bool ip_loopback(const struct in6_addr *ip)
{
    return IN6_IS_ADDR_LOOPBACK(ip) || (IN6_IS_ADDR_V4MAPPED(ip) && ip->s6_addr[12] == 127);
}

/* The same machine's: equal, or both are loopback addresses. */
static inline bool ip_same(const struct in6_addr *a, const struct in6_addr *b)
{
    return memcmp(a, b, sizeof *a) == 0 || (ip_loopback(a) && ip_loopback(b));
}

/* Text of a refusal: what the other end names, and where it comes from. */
#define IP_ELSEWHERE                                                                               \
    "%s: the client names another address (%s) than it comes from (%s), and the server connects "  \
    "to no other without a secret"

static inline void ip_print(const struct in6_addr *ip, char *text, size_t room)
{
    char plain[INET6_ADDRSTRLEN] = "?";
    bool four = IN6_IS_ADDR_V4MAPPED(ip);
    inet_ntop(four ? AF_INET : AF_INET6, ip->s6_addr + (four ? 12 : 0), plain, sizeof plain);
    snprintf(text, room, "%s", plain);
}

/* The address of one entry of getifaddrs; false: it has none. */
static inline bool ip_of_entry(const struct ifaddrs *entry, struct in6_addr *ip)
{
    int family = entry->ifa_addr ? entry->ifa_addr->sa_family : AF_UNSPEC;
    const void *address = entry->ifa_addr;
    if (family == AF_INET)
        *ip = ip_of(family, &((const struct sockaddr_in *)address)->sin_addr);
    else if (family == AF_INET6)
        *ip = ip_of(family, &((const struct sockaddr_in6 *)address)->sin6_addr);
    return family == AF_INET || family == AF_INET6;
}

/* The network interface that has this address; "" if none has. */
static inline void ip_interface(const char *here, char *name, size_t room)
{
    struct ifaddrs *all;
    struct in6_addr wanted, ip;
    *name = '\0';
    if (!ip_parse(here, &wanted) || getifaddrs(&all))
        return;
    for (const struct ifaddrs *one = all; one && !*name; one = one->ifa_next)
        if (ip_of_entry(one, &ip) && memcmp(&ip, &wanted, sizeof ip) == 0)
            snprintf(name, room, "%s", one->ifa_name);
    freeifaddrs(all);
}

#endif
