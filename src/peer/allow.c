/* SPDX-License-Identifier: BSD-3-Clause */
/* Networks that may connect. Every address is compared in 16 bytes; IPv4 through a socket for both
 * families is still IPv4. */
#include "peer/names.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

enum { FOUR_BITS = 96 }; /* of the prefix ::ffff:0:0 */
static const unsigned char four_prefix[FOUR_BITS / 8] = {[10] = 0xff, [11] = 0xff};

static void note_family(struct allow_network *n)
{
    n->four = n->bits >= FOUR_BITS && memcmp(n->bytes, four_prefix, sizeof four_prefix) == 0;
}

/* "10.0.0.0/8", "fe80::1" */
static bool parse_network(struct allow_network *n, const char *text)
{
    char address[64];
    size_t length = strcspn(text, "/");
    uint64_t bits = 128;
    if (length >= sizeof address)
        return false;
    snprintf(address, sizeof address, "%.*s", (int)length, text);
    *n = (struct allow_network){0};
    unsigned before = 0;
    if (inet_pton(AF_INET, address, n->bytes + sizeof four_prefix) == 1) {
        memcpy(n->bytes, four_prefix, sizeof four_prefix);
        before = FOUR_BITS;
        bits = 32;
    } else if (inet_pton(AF_INET6, address, n->bytes) != 1) {
        return false;
    }
    uint64_t most = bits;
    if (text[length] && (unit_number(text + length + 1, &bits) || bits > most))
        return false;
    n->bits = before + (unsigned)bits;
    note_family(n);
    return true;
}

int allow_parse(struct allow *allow, const char *text, const char *what)
{
    char word[64];
    *allow = (struct allow){0};
    for (const char *at = text;; at++) {
        size_t length = strcspn(at, ",");
        snprintf(word, sizeof word, "%.*s", (int)length, at);
        if (allow->count == ALLOW_MAX)
            return fail(-EINVAL, "%s: more than %d networks", what, ALLOW_MAX);
        if (length >= sizeof word || !parse_network(&allow->networks[allow->count++], word))
            return fail(-EINVAL,
                        "%s: \"%s\" is not an address or a network (accepted: a list such as "
                        "10.0.0.0/8,fe80::/10,10.1.2.3)",
                        what, word);
        at += length;
        if (!*at)
            return 0;
    }
}

static bool inside(const struct allow_network *n, const struct allow_network *one)
{
    unsigned whole = n->bits / 8, rest = n->bits % 8;
    if (n->four != one->four || memcmp(n->bytes, one->bytes, whole) != 0)
        return false;
    return !rest || (n->bytes[whole] ^ one->bytes[whole]) >> (8 - rest) == 0;
}

bool names_allowed(const struct allow *allow, const struct sockaddr *address)
{
    struct allow_network one = {.bits = 128};
    if (address->sa_family == AF_INET6) {
        memcpy(one.bytes, &((const struct sockaddr_in6 *)address)->sin6_addr, sizeof one.bytes);
    } else {
        memcpy(one.bytes, four_prefix, sizeof four_prefix);
        memcpy(one.bytes + sizeof four_prefix, &((const struct sockaddr_in *)address)->sin_addr, 4);
    }
    note_family(&one);
    for (int i = 0; i < allow->count; i++)
        if (inside(&allow->networks[i], &one))
            return true;
    return false;
}
