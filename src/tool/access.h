/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside tool: who may be at the other end of a TCP connection: the secret of both ends, and the
 * networks from which a server takes clients. */
#ifndef WEFT_TOOL_ACCESS_H
#define WEFT_TOOL_ACCESS_H

#include "core/opt.h"
#include "tool/serve.h"

enum { ACCESS_PATH = 4096, ACCESS_LIST = 2048 };

struct access {
    char secret_file[ACCESS_PATH], allow_list[ACCESS_LIST]; /* as typed */
    struct secret secret;
    struct allow allow;
    bool held, limited; /* is there a secret, are there networks? */
};

/* clang-format off */
#define ACCESS_ROWS(at, tools) \
    {.name = "secret-file", .type = OPT_TEXT, \
     .field = (at) + offsetof(struct access, secret_file), .max = ACCESS_PATH, .word = "FILE", \
     .takes = (tools), .flags = OPT_OURS, \
     .help = "The secret that the other end must have, too;\n" \
             "\"weft keygen FILE\" makes one"}, \
    {.name = "allow", .type = OPT_TEXT, \
     .field = (at) + offsetof(struct access, allow_list), .max = ACCESS_LIST, \
     .word = "NET[,NET]", .takes = (tools), .flags = OPT_OURS, \
     .help = "Server: take clients from these networks only,\n" \
             "such as 10.0.0.0/8,fe80::/10"}
/* clang-format on */

/* Reads what the options and WEFT_SECRET name, for this role. */
int access_open(struct access *access, const struct opt_set *set, const struct role *role);

/* A new secret, for this end and a server that it starts. */
int access_renew(struct access *access);

/* Adds it to the terms of a connection. */
void access_terms(const struct access *access, struct peer_terms *terms);

#endif
