/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside peer: names and addresses of TCP. */
#ifndef WEFT_PEER_NAMES_H
#define WEFT_PEER_NAMES_H

#include "peer/channel.h"

#include <netdb.h>
#include <sys/socket.h>

enum { NAMES_SLICE_MS = 100 }; /* no wait is longer without a look at *stop */

/* -EINTR and its error message once *stop is set. */
int names_stopped(const struct peer_terms *terms);

/* An address as text, numeric. */
void names_text(const struct sockaddr *address, socklen_t length, char *name, size_t room,
                bool with_port);

/* Fills the addresses of both ends, for fabrics that follow the control connection's network. */
void names_note(struct channel *channel);

/* Addresses of a name, by until_ms. The result is freed with freeaddrinfo. */
int names_resolve(const char *host, unsigned port, uint64_t until_ms,
                  const struct peer_terms *terms, struct addrinfo **found);

/* Is the address in one of the networks? In allow.c. */
bool names_allowed(const struct allow *allow, const struct sockaddr *address);

#endif
