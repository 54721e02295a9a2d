/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of a message's pieces in a slot, for an end that pulls it: how many, and of each where
 * it begins in its region and how long it is. What is read is copied before it is looked at. */
#include "fabric/pieces.h"
#include "fabric/soft/wire.h"

#include <errno.h>

_Static_assert((1 + 2 * FABRIC_PIECES) * sizeof(uint64_t) + SOFT_HEADER_BYTES + sizeof(uint64_t) <=
                   SOFT_SLOT_BYTES,
               "a slot has room for a header and a list");

void soft_pieces_write(char *list, const struct xfer *x)
{
    uint64_t words[1 + 2 * FABRIC_PIECES] = {x->pieces->count};
    for (unsigned i = 0; i < x->pieces->count; i++) {
        words[1 + 2 * i] = x->at + x->pieces->list[i].at;
        words[2 + 2 * i] = x->pieces->list[i].length;
    }
    memcpy(list, words, (1 + 2 * x->pieces->count) * sizeof words[0]);
}

int soft_pieces_read(struct fabric_pieces *pieces, const char *list, size_t length, size_t room)
{
    uint64_t count = load_word(list, 0);
    pieces->count = count <= FABRIC_PIECES ? (unsigned)count : 0;
    for (unsigned i = 0; i < pieces->count; i++) {
        pieces->list[i].at = load_word(list, 1 + 2 * (size_t)i);
        pieces->list[i].length = load_word(list, 2 + 2 * (size_t)i);
    }
    return pieces_within(pieces, length, room)
               ? 0
               : fail(-EPROTO, "soft: pieces of a message outside the other end's memory");
}
