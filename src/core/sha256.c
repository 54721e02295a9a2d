/* SPDX-License-Identifier: BSD-3-Clause */
/* SHA-256 and HMAC, for control messages only: plain, and fast enough for a few per second. */
#include "core/secret.h"

#include <string.h>

/* The first 32 bits of the fractions of the cube roots of the first 64 primes. */
static const uint32_t rounds[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t turn(uint32_t word, unsigned bits)
{
    return word >> bits | word << (32 - bits);
}

static void mix(struct sha256 *sha, const unsigned char *block)
{
    uint32_t w[64], *state = sha->state;
    for (size_t i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
               (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    for (int i = 16; i < 64; i++)
        w[i] = w[i - 16] + w[i - 7] + (turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ w[i - 15] >> 3) +
               (turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ w[i - 2] >> 10);
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
    for (int i = 0; i < 64; i++) {
        uint32_t one =
            h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) + rounds[i] + w[i];
        uint32_t two = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
        h = g;
        g = f;
        f = e;
        e = d + one;
        d = c;
        c = b;
        b = a;
        a = one + two;
    }
    const uint32_t more[] = {a, b, c, d, e, f, g, h};
    for (int i = 0; i < 8; i++)
        state[i] += more[i];
}

void sha256_begin(struct sha256 *sha)
{
    *sha = (struct sha256){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
                                     0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void sha256_add(struct sha256 *sha, const void *bytes, size_t length)
{
    const unsigned char *at = bytes;
    while (length) {
        size_t have = sha->length % SHA256_BLOCK, room = SHA256_BLOCK - have;
        size_t n = length < room ? length : room;
        memcpy(sha->block + have, at, n);
        sha->length += n;
        at += n;
        length -= n;
        if (n == room)
            mix(sha, sha->block);
    }
}

void sha256_end(struct sha256 *sha, unsigned char digest[SHA256_BYTES])
{
    static const unsigned char padding[SHA256_BLOCK] = {0x80};
    uint64_t bits = 8 * sha->length;
    unsigned char length[8];
    for (int i = 0; i < 8; i++)
        length[i] = (unsigned char)(bits >> (56 - 8 * i));
    sha256_add(sha, padding,
               1 + (2 * SHA256_BLOCK - 9 - sha->length % SHA256_BLOCK) % SHA256_BLOCK);
    sha256_add(sha, length, sizeof length);
    for (int i = 0; i < SHA256_BYTES; i++)
        digest[i] = (unsigned char)(sha->state[i / 4] >> (24 - 8 * (i % 4)));
    explicit_bzero(sha, sizeof *sha);
}

void hmac_begin(struct hmac *hmac, const void *key, size_t length)
{
    unsigned char inner[SHA256_BLOCK] = {0}, outer[SHA256_BLOCK];
    if (length > SHA256_BLOCK) {
        sha256_begin(&hmac->inner);
        sha256_add(&hmac->inner, key, length);
        sha256_end(&hmac->inner, inner);
    } else {
        memcpy(inner, key, length);
    }
    for (int i = 0; i < SHA256_BLOCK; i++) {
        outer[i] = inner[i] ^ 0x5c;
        inner[i] ^= 0x36;
    }
    sha256_begin(&hmac->inner);
    sha256_add(&hmac->inner, inner, sizeof inner);
    sha256_begin(&hmac->outer);
    sha256_add(&hmac->outer, outer, sizeof outer);
    explicit_bzero(inner, sizeof inner);
    explicit_bzero(outer, sizeof outer);
}

void hmac_add(struct hmac *hmac, const void *bytes, size_t length)
{
    sha256_add(&hmac->inner, bytes, length);
}

void hmac_end(struct hmac *hmac, unsigned char code[SHA256_BYTES])
{
    sha256_end(&hmac->inner, code);
    sha256_add(&hmac->outer, code, SHA256_BYTES);
    sha256_end(&hmac->outer, code);
}

bool bytes_equal(const void *a, const void *b, size_t length)
{
    const volatile unsigned char *left = a, *right = b;
    unsigned char differs = 0;
    for (size_t i = 0; i < length; i++)
        differs |= left[i] ^ right[i];
    return !differs;
}
