/* SPDX-License-Identifier: BSD-3-Clause */
/* A door of fabric: messages in pieces, byte by byte. For fabrics that copy, and for whoever fills
 * and checks such a message. */
#ifndef WEFT_PIECES_H
#define WEFT_PIECES_H

#include "fabric/facts.h"

#include <string.h>

/* Where byte `at` of a message lies, counted from its beginning; *left: how many follow there,
 * itself included. Without pieces all do. */
static inline size_t pieces_find(const struct fabric_pieces *pieces, size_t at, size_t *left)
{
    *left = SIZE_MAX - at;
    if (!pieces)
        return at;
    for (unsigned i = 0; i < pieces->count; i++) {
        size_t length = pieces->list[i].length;
        if (at < length) {
            *left = length - at;
            return pieces->list[i].at + at;
        }
        at -= length;
    }
    *left = 0;
    return 0;
}

/* Are they as long as they are said to be, and all within so many bytes? */
static inline bool pieces_within(const struct fabric_pieces *pieces, size_t length, size_t room)
{
    size_t sum = 0;
    if (!pieces->count || pieces->count > FABRIC_PIECES)
        return false;
    for (unsigned i = 0; i < pieces->count; i++) {
        size_t piece = pieces->list[i].length;
        if (piece > room || pieces->list[i].at > room - piece || piece > length - sum)
            return false;
        sum += piece;
    }
    return sum == length;
}

/* Does a message lie within its buffer, in pieces or not? */
static inline bool pieces_fit(const struct xfer *x)
{
    size_t room = x->local->length;
    if (!x->pieces)
        return x->length <= room && x->at <= room - x->length;
    return x->at <= room && pieces_within(x->pieces, x->length, room - x->at);
}

/* Copies bytes of a message, from byte `at` on, out of its pieces, and into them. */
static inline void pieces_gather(char *to, const char *from, const struct fabric_pieces *pieces,
                                 size_t at, size_t length)
{
    for (size_t done = 0, left; done < length; done += left) {
        size_t place = pieces_find(pieces, at + done, &left);
        if (!left)
            return;
        left = left < length - done ? left : length - done;
        memcpy(to + done, from + place, left);
    }
}

static inline void pieces_scatter(char *to, const struct fabric_pieces *pieces, size_t at,
                                  const char *from, size_t length)
{
    for (size_t done = 0, left; done < length; done += left) {
        size_t place = pieces_find(pieces, at + done, &left);
        if (!left)
            return;
        left = left < length - done ? left : length - done;
        memcpy(to + place, from + done, left);
    }
}

#endif
