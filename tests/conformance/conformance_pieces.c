/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages in pieces: what lies in several places arrives as one, and what comes is put into
 * several; bytes between them stay as they were, and pieces outside a buffer are refused. */
#include "conformance.h"
#include "fabric/pieces.h"

#include <errno.h>
#include <string.h>

enum { FROM = 512, TO = 4096, GAP = 0x5a, ALL_BITS = 0xffff };

/* Lengths of pieces, and how far apart they begin; 0: they follow each other. */
static const struct shape {
    unsigned count;
    size_t stride, lengths[8];
} shapes[] = {{1, 0, {8}},
              {2, 0, {4, 4}},
              {3, 9, {1, 7, 9}},
              {4, 100, {24, 16, 1, 2}},
              {2, 512, {512, 300}},
              {3, 5000, {4096, 1, 4095}},
              {4, 8192, {8192, 8192, 8192, 1}},
              {8, 12000, {12000, 1, 11999, 3, 4096, 7, 8, 10000}}};

static void needs_pieces(struct pair *pair, enum verb verb)
{
    bool host = memory_kinds[0]->vendor == MEMORY_CPU && memory_kinds[1]->vendor == MEMORY_CPU;
    needs(pair, verb, true);
    if (pair->end.facts.pieces & 1U << verb && host)
        return;
    print_message("# no pieces%s\n", host ? "" : " in GPU memory");
    skip();
}

static size_t cut(const struct shape *shape, struct fabric_pieces *pieces)
{
    size_t sum = 0;
    *pieces = (struct fabric_pieces){.count = shape->count};
    for (unsigned i = 0; i < shape->count; i++) {
        pieces->list[i].at = shape->stride ? i * shape->stride : sum;
        pieces->list[i].length = shape->lengths[i];
        sum += shape->lengths[i];
    }
    return sum;
}

/* A message of ours in its pieces, gaps between them; and as it is in one. */
static const char *lay_out(struct end *end, const struct fabric_pieces *pieces, size_t length,
                           uint64_t number)
{
    static char whole[REGION_BYTES];
    pattern(whole, length, number);
    memset(end->bytes + FROM, 0xee, (size_t)1 << 18);
    pieces_scatter(end->bytes + FROM, pieces, 0, whole, length);
    return whole;
}

static void finish(struct pair *pair, int got, uint64_t id)
{
    struct completion completion;
    if (got != DONE && got != LATER)
        print_message("# %s\n", fail_reason());
    assert_true(got == DONE || got == LATER);
    if (got == DONE)
        return;
    assert_int_equal(next_completion(&pair->end, &completion), 0);
    assert_int_equal(completion.status, 0);
    assert_int_equal(completion.id, id);
}

static void a_tagged_message_in_pieces_arrives_as_one(void **state)
{
    struct pair *pair = *state;
    struct end *end = &pair->end;
    needs_pieces(pair, VERB_TSEND);
    for (size_t i = 0; i < 2 * LENGTH(shapes); i++) {
        struct fabric_pieces pieces;
        bool early = i % 2;
        size_t length = cut(&shapes[i / 2], &pieces);
        struct xfer xfer = tagged_of(end, FROM, length, (uint64_t)i << 32 | 7);
        const char *whole = lay_out(end, &pieces, length, i);
        xfer.pieces = &pieces;
        uint64_t receive = (uint64_t)(100 + i) << 32 | (uint64_t)ALL_BITS << 16 | 7;
        if (!early)
            assert_int_equal(ask_all(pair, "tpost", TO, length, receive).status, 0);
        int got = post(end, VERB_TSEND, &xfer);
        if (early)
            assert_int_equal(ask_all(pair, "tpost", TO, length, receive).status, 0);
        finish(pair, got, i);
        memset(end->bytes + FROM, 0xdd, (size_t)1 << 18);
        struct answer came = ask_all(pair, "take", TO, length, 0);
        assert_int_equal(came.status, 0);
        assert_int_equal(came.id, 100 + i);
        assert_int_equal(came.length, length);
        assert_int_equal(came.digest, digest(whole, length));
    }
}

/* One that is in the pieces of its receive, and nothing between them is touched. */
static void expect_scattered(struct end *end, const struct fabric_pieces *pieces, size_t length,
                             uint64_t sent, size_t extent)
{
    static char found[REGION_BYTES];
    const char *to = end->bytes + TO;
    pieces_gather(found, to, pieces, 0, length);
    assert_int_equal(digest(found, length), sent);
    memset(found, GAP, extent);
    pieces_scatter(end->bytes + TO, pieces, 0, found, length);
    assert_memory_equal(to, found, extent);
}

static void a_tagged_message_is_received_into_pieces(void **state)
{
    enum { EXTENT = 100000 };
    struct pair *pair = *state;
    struct end *end = &pair->end;
    needs_pieces(pair, VERB_TRECV);
    for (size_t i = 0; i < 2 * LENGTH(shapes); i++) {
        struct fabric_pieces pieces;
        struct completion completion;
        bool early = i % 2;
        size_t length = cut(&shapes[i / 2], &pieces);
        struct xfer receive =
            tagged_of(end, TO, length, (uint64_t)i << 32 | (uint64_t)ALL_BITS << 16 | 9);
        receive.pieces = &pieces;
        memset(end->bytes + TO, GAP, EXTENT);
        uint64_t sent = ask(pair, "pattern", FROM, length, (int)i);
        if (early)
            assert_int_equal(ask_all(pair, "tsay", FROM, length, 9).status, 0);
        assert_int_equal(post(end, VERB_TRECV, &receive), LATER);
        if (!early)
            assert_int_equal(ask_all(pair, "tsay", FROM, length, 9).status, 0);
        assert_int_equal(next_completion(end, &completion), 0);
        assert_int_equal(completion.status, 0);
        assert_int_equal(completion.id, i);
        assert_int_equal(completion.length, length);
        expect_scattered(end, &pieces, length, sent, EXTENT);
    }
}

static void an_active_message_in_pieces_arrives_as_one(void **state)
{
    struct pair *pair = *state;
    struct end *end = &pair->end;
    needs_pieces(pair, VERB_AM);
    for (int layout = 0; layout <= LAYOUTS; layout++)
        for (size_t i = 0; i < LENGTH(shapes); i++) {
            struct fabric_pieces pieces;
            size_t length = cut(&shapes[i], &pieces);
            unsigned how = layout < LAYOUTS ? LAYOUT_HINT(layout) & end->facts.honours : 0;
            size_t most = end->facts.layout_max[VERB_AM][layout < LAYOUTS ? layout : LAYOUT_BCOPY];
            if (length + 8 > most)
                continue;
            struct xfer xfer = am_of(end, FROM, length, how | UINT64_C(8) << 32);
            static char expected[REGION_BYTES];
            const char *whole = lay_out(end, &pieces, length, i);
            xfer.pieces = &pieces;
            xfer.id = i;
            xfer.header = 0x1234567890 + i;
            memcpy(expected, &xfer.header, 8);
            memcpy(expected + 8, whole, length);
            finish(pair, post(end, VERB_AM, &xfer), i);
            struct answer came = ask_all(pair, "take", 0, 0, 0);
            assert_int_equal(came.status, 0);
            assert_int_equal(came.length, length + 8);
            assert_int_equal(came.digest, digest(expected, length + 8));
        }
}

static void pieces_outside_their_buffer_are_refused(void **state)
{
    struct pair *pair = *state;
    struct end *end = &pair->end;
    const struct fabric_pieces wrong[] = {{.count = 2, .list = {{0, 8}, {REGION_BYTES - FROM, 8}}},
                                          {.count = 2, .list = {{0, 8}, {SIZE_MAX - 3, 8}}},
                                          {.count = 2, .list = {{0, 8}, {64, 7}}},
                                          {.count = 2, .list = {{0, 8}, {64, 9}}},
                                          {.count = 2, .list = {{0, SIZE_MAX - 7}, {64, 24}}},
                                          {.count = 0},
                                          {.count = FABRIC_PIECES + 1}};
    needs_pieces(pair, VERB_TSEND);
    for (size_t i = 0; i < LENGTH(wrong); i++) {
        struct xfer xfer = tagged_of(end, FROM, 16, 7);
        xfer.pieces = &wrong[i];
        assert_true(choice.ops->tsend(end->handle, &xfer) < 0);
        if (end->facts.pieces & VERB(TRECV))
            assert_true(choice.ops->trecv(end->handle, &xfer) < 0);
        struct xfer am = am_of(end, FROM, 16, UINT64_C(8) << 32);
        am.pieces = &wrong[i];
        if (end->facts.pieces & VERB(AM))
            assert_true(choice.ops->am(end->handle, &am) < 0);
    }
}

static const struct CMUnitTest tests[] = {
    WITH_PAIR(a_tagged_message_in_pieces_arrives_as_one),
    WITH_PAIR(a_tagged_message_is_received_into_pieces),
    WITH_PAIR(an_active_message_in_pieces_arrives_as_one),
    WITH_PAIR(pieces_outside_their_buffer_are_refused),
};
const struct topic pieces_topic = {tests, LENGTH(tests)};
