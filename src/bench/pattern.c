/* SPDX-License-Identifier: BSD-3-Clause */
/* Data for --verify: every word depends on the iteration and on its place, so a byte that is old,
 * missing or elsewhere is found. Worked on in pieces, with a sign of life between them. */
#include "bench/run.h"
#include "fabric/pieces.h"

#include <inttypes.h>
#include <string.h>

enum { PIECE_WORDS = 4096, PIECES_A_LOOK = 512 };

static uint64_t word(uint64_t number, uint64_t place)
{
    uint64_t x = (number + 1) * 0x9e3779b97f4a7c15U + place * 0xbf58476d1ce4e5b9U;
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9U;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebU;
    return x ^ x >> 31;
}

static void make(uint64_t *piece, uint64_t number, size_t at, size_t length)
{
    for (size_t i = 0; i < (length + sizeof *piece - 1) / sizeof *piece; i++)
        piece[i] = word(number, at / sizeof *piece + i);
}

/* Visits size bytes of the buffer, from base on, piece by piece: the data made for iteration made,
 * looked at in iteration number. */
static int visit(struct run *run, uint64_t made, uint64_t number, size_t base, size_t size,
                 int (*each)(struct run *run, uint64_t number, size_t base, size_t at,
                             const void *piece, size_t length))
{
    uint64_t piece[PIECE_WORDS];
    int status = 0;
    unsigned pieces = 0;
    for (size_t at = 0; at < size && !status; at += sizeof piece) {
        size_t length = size - at < sizeof piece ? size - at : sizeof piece;
        make(piece, made, at, length);
        status = each(run, number, base, at, piece, length);
        if (!status && ++pieces % PIECES_A_LOOK == 0)
            status = peer_step(run->session->peer);
    }
    return status;
}

/* The pieces that a message at base lies in; NULL: in one. */
static const struct fabric_pieces *pieces_of(const struct run *run, size_t base)
{
    return run->receive_at && base == run->receive_at ? run->pieces.scatter : run->pieces.gather;
}

static int fill_piece(struct run *run, uint64_t number, size_t base, size_t at, const void *piece,
                      size_t length)
{
    (void)number;
    struct region *buffer = &run->session->buffer;
    int status = 0;
    for (size_t done = 0, left; done < length && !status; done += left) {
        size_t place = pieces_find(pieces_of(run, base), at + done, &left);
        left = left < length - done ? left : length - done;
        status = buffer->kind->fill(buffer, base + place, (const char *)piece + done, left);
    }
    return status;
}

static int differs(const struct run *run, uint64_t number, size_t at, const unsigned char *found,
                   const unsigned char *sent, size_t length)
{
    size_t i = 0;
    /* NOLINTBEGIN(clang-analyzer-core.*): as many bytes as are compared were made */
    while (i + 1 < length && found[i] == sent[i])
        i++;
    return fail(-EBADMSG,
                "verify: %s %" PRIu64 " of %zu bytes: byte %zu is 0x%02x, 0x%02x was sent",
                op_called(run->spec), number, run->size, at + i, found[i], sent[i]);
    /* NOLINTEND(clang-analyzer-core.*) */
}

static int check_piece(struct run *run, uint64_t number, size_t base, size_t at, const void *piece,
                       size_t length)
{
    unsigned char found[PIECE_WORDS * sizeof(uint64_t)];
    struct region *buffer = &run->session->buffer;
    int status = 0;
    for (size_t done = 0, left; done < length && !status; done += left) {
        size_t place = pieces_find(pieces_of(run, base), at + done, &left);
        left = left < length - done ? left : length - done;
        status = buffer->kind->peek(buffer, base + place, found + done, left);
    }
    if (status || memcmp(found, piece, length) == 0)
        return status;
    return differs(run, number, at, found, piece, length);
}

int pattern_fill(struct run *run, uint64_t number, size_t at, size_t size)
{
    return visit(run, number, number, at, size, fill_piece);
}

int pattern_check(struct run *run, uint64_t number, size_t at, size_t size)
{
    return visit(run, number, number, at, size, check_piece);
}

int slots_fill(struct run *run, uint64_t number, size_t at)
{
    const struct slots *slots = &run->slots;
    int status = 0;
    for (unsigned i = 0; i < slots->count && !status; i++)
        status = pattern_fill(run, number * slots->count + i, at + i * slots->step, run->size);
    return status;
}

static int check_all(struct run *run, uint64_t data, uint64_t number, size_t at)
{
    const struct slots *slots = &run->slots;
    int status = 0;
    for (unsigned i = 0; i < slots->count && !status; i++)
        status = visit(run, data * slots->count + i, number * slots->count + i,
                       at + i * slots->step, run->size, check_piece);
    return status;
}

int slots_check(struct run *run, uint64_t number, size_t at)
{
    return check_all(run, number, number, at);
}

int slots_check_first(struct run *run, uint64_t number, size_t at)
{
    return check_all(run, 0, number, at);
}

int pattern_compare(struct run *run, uint64_t number, const void *bytes, size_t size)
{
    uint64_t piece[PIECE_WORDS];
    const unsigned char *found = bytes;
    for (size_t at = 0; at < size; at += sizeof piece) {
        size_t length = size - at < sizeof piece ? size - at : sizeof piece;
        make(piece, number, at, length);
        if (memcmp(found + at, piece, length) != 0)
            return differs(run, number, at, found + at, (const unsigned char *)piece, length);
    }
    return 0;
}
