/* SPDX-License-Identifier: BSD-3-Clause */
/* A door of core: the secret that two ends share, and HMAC-SHA-256, by which each shows that it
 * holds it. */
#ifndef WEFT_SECRET_H
#define WEFT_SECRET_H

#include "core/core.h"

/* ---- SHA-256 (FIPS 180-4) and HMAC (RFC 2104): begin, add any number of pieces, end ---- */

enum { SHA256_BYTES = 32, SHA256_BLOCK = 64 };

struct sha256 {
    uint32_t state[8];
    uint64_t length; /* of all that was added */
    unsigned char block[SHA256_BLOCK];
};
void sha256_begin(struct sha256 *sha);
void sha256_add(struct sha256 *sha, const void *bytes, size_t length);
void sha256_end(struct sha256 *sha, unsigned char digest[SHA256_BYTES]);

struct hmac {
    struct sha256 inner, outer;
};
void hmac_begin(struct hmac *hmac, const void *key, size_t length);
void hmac_add(struct hmac *hmac, const void *bytes, size_t length);
void hmac_end(struct hmac *hmac, unsigned char code[SHA256_BYTES]);

/* Takes as long whatever differs. */
bool bytes_equal(const void *a, const void *b, size_t length);

/* ---- the secret ---- */

enum { SECRET_BYTES = 32, SECRET_TEXT = 2 * SECRET_BYTES + 1 };

struct secret {
    unsigned char bytes[SECRET_BYTES];
};

/* From a file of 64 hexadecimal digits that only its owner may use, and the owner is this user or
 * root; "fd:N" is a file that the starting program left open as descriptor N, which is then closed.
 * Links are not followed. Every refusal is a sentence. */
int secret_read(struct secret *secret, const char *path);

/* A new one. */
int secret_make(struct secret *secret);

/* As such a file has it: digits and a newline, no NUL. */
void secret_text(const struct secret *secret, char text[SECRET_TEXT]);

#endif
