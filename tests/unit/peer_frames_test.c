/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames on a channel: in any pieces, after others that wait, and from peers that send nonsense. */
#include "core/clock.h"
#include "support/peers.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { STREAM_MAX = 4 * (FRAME_HEAD + MSG_MAX) };

static const char beat_content[] = "0000000000000007";

struct stream {
    size_t length;
    char bytes[STREAM_MAX];
};

static void add_frame(struct stream *stream, char kind, const void *bytes, size_t length)
{
    if (stream->length + FRAME_HEAD + length >= STREAM_MAX)
        return;
    snprintf(stream->bytes + stream->length, FRAME_HEAD + 1, "WEFT02 %c %06x\n", kind,
             (unsigned)length & 0xffffffU);
    stream->length += FRAME_HEAD;
    memcpy(stream->bytes + stream->length, bytes, length);
    stream->length += length;
}

static void frames_are_put_together_from_any_pieces(void **state)
{
    uint64_t seed = 2;
    (void)state;
    for (int round = 0; round < 500; round++) {
        struct stream stream = {0};
        char bytes[MSG_MAX];
        size_t lengths[8], told = 0, heard = 0;
        uint64_t from = seed;
        int other;
        struct channel *channel = half_channel(&other, LONG_MS);
        for (size_t i = 0; i < LENGTH(lengths); i++) {
            bool beat = next_random(&seed) % 3 == 0;
            size_t length = next_random(&seed) % (round % 10 ? 100 : MSG_MAX);
            for (size_t at = 0; at < length; at++)
                bytes[at] = (char)(at + told);
            size_t before = stream.length;
            add_frame(&stream, beat ? FRAME_BEAT : FRAME_DATA, beat ? beat_content : bytes,
                      beat ? BEAT_DIGITS : length);
            if (!beat && stream.length > before)
                lengths[told++] = length;
        }
        for (size_t at = 0; at < stream.length || heard < told;) {
            struct msg msg;
            size_t piece = 1 + next_random(&seed) % (round % 3 ? 40 : 9000);
            piece = piece < stream.length - at ? piece : stream.length - at;
            assert_true(!piece || give(other, stream.bytes + at, piece));
            at += piece;
            int status = channel_ready(channel, FRAME_DATA);
            assert_in_range(status, 0, 1);
            if (!status && at == stream.length && heard < told)
                fail_msg("round %d, seed %llu: %zu of %zu messages", round,
                         (unsigned long long)from, heard, told);
            if (!status)
                continue;
            channel_take(channel, &msg);
            assert_int_equal(msg.length, lengths[heard]);
            for (size_t i = 0; i < msg.length; i++)
                assert_true(msg.bytes[i] == (char)(i + heard));
            heard++;
        }
        channel_close(channel);
        close(other);
    }
}

/* More than there is room for. Each time nothing was heard for ever, but for what comes now. */
static void heartbeats_count_behind_messages_that_wait_for_hours(void **state)
{
    enum { BEATS = 64, ROUNDS = 40 };
    static const char last[] = "code=5\nwhy=broken\n";
    struct stream beats = {0}, messages = {0};
    struct msg msg = {0};
    int other;
    struct channel *channel = half_channel(&other, SHORT_MS);
    (void)state;
    for (int i = 0; i < BEATS; i++)
        add_frame(&beats, FRAME_BEAT, beat_content, BEAT_DIGITS);
    add_frame(&messages, FRAME_DATA, msg.bytes, MSG_MAX - 1);
    add_frame(&messages, FRAME_BEAT, beat_content, BEAT_DIGITS);
    add_frame(&messages, FRAME_DATA, "second", 6);
    assert_true(give(other, messages.bytes, messages.length));
    for (int i = 0; i < ROUNDS; i++) {
        /* Some of them cut in the middle. */
        size_t half = beats.length / 2 + (size_t)i % FRAME_HEAD;
        assert_true(give(other, beats.bytes, half));
        channel->heard_ms = 0;
        assert_int_equal(peer_alive(&channel->peer), 0);
        assert_true(give(other, beats.bytes + half, beats.length - half));
        channel->heard_ms = 0;
        assert_int_equal(peer_alive(&channel->peer), 0);
    }
    messages.length = 0;
    add_frame(&messages, FRAME_END, last, strlen(last));
    assert_true(give(other, messages.bytes, messages.length));
    assert_int_equal(peer_recv(&channel->peer, &msg, NULL, NULL), 0);
    assert_int_equal(msg.length, MSG_MAX - 1);
    assert_int_equal(peer_recv(&channel->peer, &msg, NULL, NULL), 0);
    assert_string_equal(msg.bytes, "second");
    assert_int_equal(peer_recv(&channel->peer, &msg, NULL, NULL), -EREMOTEIO);
    assert_string_equal(fail_reason(), "the client says: broken");
    channel_close(channel);
    close(other);
}

/* Frames of all kinds, most of them well-formed, in a row. */
static void random_stream(struct stream *stream, uint64_t *seed)
{
    static const char kinds[] = {FRAME_GREETING, FRAME_DATA, FRAME_DATA, FRAME_BEAT, FRAME_END};
    static const char *const ends[] = {"code=4\nwhy=x\n", "why=y\ncode=0x5\n", "code=\nwhy=\n", ""};
    stream->length = 0;
    for (uint64_t frames = 1 + next_random(seed) % 5; frames; frames--) {
        char kind = kinds[next_random(seed) % LENGTH(kinds)], bytes[MSG_MAX] = {0};
        const char *end = ends[next_random(seed) % LENGTH(ends)];
        bool big = next_random(seed) % 64 == 0;
        size_t length = next_random(seed) % (big ? MSG_MAX : 60);
        for (size_t i = 0; i < length; i++)
            bytes[i] = (char)next_random(seed);
        if (kind == FRAME_END)
            add_frame(stream, kind, end, strlen(end));
        else if (kind == FRAME_BEAT)
            add_frame(stream, kind, beat_content, BEAT_DIGITS);
        else
            add_frame(stream, kind, bytes, length);
    }
}

static void mutate(struct stream *stream, uint64_t *seed)
{
    size_t length = stream->length, at = length ? next_random(seed) % length : 0;
    size_t head = next_random(seed) % FRAME_HEAD, n = 1 + next_random(seed) % 30;
    switch (next_random(seed) % 6) {
    case 0: /* a byte anywhere */
        stream->bytes[at] = (char)next_random(seed);
        break;
    case 1: /* a character of the first head */
        stream->bytes[head] = "0123456789abcdefHDBEWFT \n"[next_random(seed) % 25];
        break;
    case 2: /* the length of the first frame */
        stream->bytes[9 + head % 6] = "0123456789abcdef"[next_random(seed) % 16];
        break;
    case 3: /* a piece less */
        n = n < length - at ? n : length - at;
        memmove(stream->bytes + at, stream->bytes + at + n, length - at - n);
        stream->length -= n;
        break;
    case 4: /* a piece twice */
        n = n < length - at ? n : length - at;
        n = n < STREAM_MAX - length ? n : STREAM_MAX - length;
        memmove(stream->bytes + at + n, stream->bytes + at, length - at);
        stream->length += n;
        break;
    default: /* cut off */
        stream->length = at;
    }
}

/* Everything a stream holds, until the channel says that no more will come. */
static int drain(struct channel *channel, bool greeting, size_t *messages)
{
    for (int waits = 0; waits < 100;) {
        struct msg msg;
        int status = greeting ? channel_ready(channel, FRAME_GREETING)
                              : peer_recv(&channel->peer, &msg, NULL, NULL);
        if (status < 0)
            return status;
        if (greeting && !status) { /* there is more than fits at once */
            waits++;
            continue;
        }
        if (greeting)
            channel_take(channel, &msg);
        if (msg.length >= MSG_MAX || msg.bytes[msg.length])
            return fail(-ENOMSG, "a message of %zu bytes", msg.length);
        ++*messages;
    }
    return fail(-ENOMSG, "the stream has ended, and yet it waits");
}

static void frames_from_a_madman_end_in_an_error_not_in_a_crash(void **state)
{
    static struct stream stream;
    uint64_t seed = 3;
    size_t heard = 0, strange = 0;
    (void)state;
    for (int round = 0; round < 20000; round++) {
        uint64_t from = seed;
        int other;
        size_t messages = 0;
        struct channel *channel = half_channel(&other, LONG_MS);
        random_stream(&stream, &seed);
        if (round % 16 == 0) /* noise from end to end */
            for (size_t i = round % 32 ? 4 : 0; i < stream.length; i++)
                stream.bytes[i] = (char)next_random(&seed);
        for (uint64_t times = next_random(&seed) % 5; times; times--)
            mutate(&stream, &seed);
        size_t half = stream.length ? next_random(&seed) % stream.length : 0;
        assert_true(give(other, stream.bytes, half));
        if (round % 3 == 0)
            peer_alive(&channel->peer);
        assert_true(give(other, stream.bytes + half, stream.length - half));
        shutdown(other, SHUT_WR);
        int status = drain(channel, round % 4 == 1, &messages);
        if (status != -EPROTO && status != -ECONNRESET && status != -EREMOTEIO)
            fail_msg("round %d, seed %llu: status %d, %s", round, (unsigned long long)from, status,
                     fail_reason());
        assert_true(messages <= stream.length / FRAME_HEAD);
        heard += messages;
        strange += status == -EPROTO;
        channel_close(channel);
        close(other);
    }
    /* Otherwise this would try only one of the two ways. */
    assert_true(heard > 1000 && strange > 1000);
}

static void a_frame_that_is_not_ours_is_named(void **state)
{
    static const struct {
        const char *bytes, *reason;
    } cases[] = {{"GET / HTTP/1.1\r\n", "does not speak Weft's protocol"},
                 {"X", "does not speak Weft's protocol"},
                 {"WEFT02_D 000000\n", "does not speak Weft's protocol"},
                 {"WEFT02 D 00000G\n", "does not speak Weft's protocol"},
                 {"WEFT02 D 00000A\n", "does not speak Weft's protocol"},
                 {"WEFT02 D 000000 ", "does not speak Weft's protocol"},
                 {"WEFT02 D      0\n", "does not speak Weft's protocol"},
                 {"WEFT02 D 0x0000\n", "does not speak Weft's protocol"},
                 {"WEFT01 D 000000\n", "the client speaks version 01 of the protocol, this is "
                                       "version 02"},
                 {"WEFT02 D ffffff\n", "the client announced a message of 16777215 bytes, the "
                                       "limit is 8191"},
                 {"WEFT02 D 002000\n", "announced a message of 8192 bytes"},
                 {"WEFT02 H 000000\n", "the client sent a message out of turn"},
                 {"WEFT02 Z 000000\n", "the client sent a message out of turn"},
                 {"WEFT02 N 000000\n", "the client sent a message out of turn"},
                 {"WEFT02 R 000000\n", "the client sent a message out of turn"},
                 {"WEFT02 B 000000\n", "the client sent a heartbeat that cannot be read"},
                 {"WEFT02 B 000010\n00000000-0000000", "a heartbeat that cannot be read"},
                 {"WEFT02 E 000000\n", "left with a message that cannot be read"}};
    (void)state;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct msg msg;
        int other;
        struct channel *channel = half_channel(&other, LONG_MS);
        assert_true(give(other, cases[i].bytes, strlen(cases[i].bytes)));
        assert_int_equal(peer_recv(&channel->peer, &msg, NULL, NULL), -EPROTO);
        assert_contains(fail_reason(), cases[i].reason);
        channel_close(channel);
        close(other);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_are_put_together_from_any_pieces),
        cmocka_unit_test(heartbeats_count_behind_messages_that_wait_for_hours),
        cmocka_unit_test(frames_from_a_madman_end_in_an_error_not_in_a_crash),
        cmocka_unit_test(a_frame_that_is_not_ours_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
