/* SPDX-License-Identifier: BSD-3-Clause */
/* The spec: every row survives the way to the other end, nothing else gets in from there, and what
 * means nothing is refused whatever the numbers in it are. Random specs come from fixed seeds. */
#include "bench/bench.h"
#include "support/exact_msg.h"
#include "support/specs.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct opt_set rows_of(struct spec *spec)
{
    return (struct opt_set){.rows = spec_rows, .base = spec};
}

static void assign(struct spec *spec, const struct opt *row, const char *text)
{
    struct opt_set set = rows_of(spec);
    if (opt_assign(&set, row, text, OPT_BY_USER))
        fail_msg("%s", fail_reason());
}

static size_t choices_of(const struct opt *row)
{
    size_t n = 0;
    while (row->choices[n])
        n++;
    assert_true(n > 0);
    return n ? n : 1;
}

/* ---- rows ---- */

static void the_rows_are_those_of_the_enumeration(void **state)
{
    (void)state;
    for (int i = 0; i < SPEC_ROWS; i++) {
        const struct opt *row = &spec_rows[i];
        assert_non_null(row->name);
        assert_int_not_equal(row->type, OPT_SAME);
        for (int k = 0; k < i; k++)
            if (row->name && spec_rows[k].name &&
                (strcmp(spec_rows[k].name, row->name) == 0 || spec_rows[k].field == row->field))
                fail_msg("%s is there twice", row->name);
    }
    assert_null(spec_rows[SPEC_ROWS].name);
}

/* What can be typed into a row, the nth of it; false: there is no more. */
static bool value_of(const struct opt *row, size_t n, char *text, size_t room)
{
    switch (row->type) {
    case OPT_FLAG:
        snprintf(text, room, "%zu", n);
        return n < 2;
    case OPT_CHOICE:
        snprintf(text, room, "%s", n < choices_of(row) ? row->choices[n] : "");
        return n < choices_of(row);
    case OPT_SIZES:
        snprintf(text, room, "%s", (const char *[]){"1", "7", "4294967295", "1:2147483648"}[n % 4]);
        return n < 4;
    default:
        snprintf(text, room, "%llu",
                 (unsigned long long[]){row->min, row->max,
                                        row->min + (row->max - row->min) / 3}[n % 3]);
        return n < 3;
    }
}

static void every_shared_row_survives_the_way_to_the_other_end(void **state)
{
    char value[64], found[64];
    (void)state;
    for (const struct opt *row = spec_rows; row->name; row++)
        for (size_t n = 0; value_of(row, n, value, sizeof value); n++) {
            struct spec client, server;
            struct opt_set set = rows_of(&server);
            struct msg text = {0};
            spec_defaults(&client);
            spec_defaults(&server);
            assign(&client, row, value);
            assert_int_equal(spec_encode(&client, &text), 0);
            if (opt_decode(&set, &text))
                fail_msg("%s %s: %s", row->name, value, fail_reason());
            opt_format(row, &server, found, sizeof found);
            if (row->flags & OPT_SHARED) {
                if (strcmp(found, value) != 0)
                    fail_msg("%s %s came as %s", row->name, value, found);
                assert_int_equal(opt_origin(&set, row), OPT_BY_PEER);
            }
            assert_int_equal(spec_compare(&client, &server), 0);
        }
}

static void what_is_not_shared_stays_at_its_end(void **state)
{
    struct spec client, server;
    struct msg text = {0};
    (void)state;
    spec_defaults(&client);
    spec_defaults(&server);
    client.local.interval_ms = 5;
    assert_int_equal(spec_encode(&client, &text), 0);
    assert_null(strstr(text.bytes, "interval_ms"));
    assert_int_equal(spec_decode(&server, &text), 0);
    assert_int_equal(server.local.interval_ms, 1000);
}

/* ---- lines from outside ---- */

static void encode_defaults(struct msg *text)
{
    struct spec spec;
    spec_defaults(&spec);
    *text = (struct msg){0};
    assert_int_equal(spec_encode(&spec, text), 0);
    assert_int_equal(spec_decode(&spec, text), 0);
}

/* The text with another line for a row; "": with none. */
static void replace(struct msg *text, const char *name, const char *line)
{
    char key[80];
    struct msg before = *text;
    snprintf(key, sizeof key, "%s=", name);
    size_t length = strlen(key);
    *text = (struct msg){0};
    for (char *rest = before.bytes, *at; (at = strsep(&rest, "\n")) && *at;)
        if (strncmp(at, key, length) != 0)
            msg_add(text, "%s\n", at);
    msg_add(text, "%s", line);
}

static int decode(const struct msg *text)
{
    struct spec spec;
    struct msg *exact = exact_msg(text->bytes, text->length);
    spec_defaults(&spec);
    int status = spec_decode(&spec, exact);
    free(exact);
    return status;
}

static void expect_refused(const struct msg *text, const char *what)
{
    if (decode(text) != -EINVAL)
        fail_msg("%s was taken", what);
    assert_true(*fail_reason());
}

static void lines_that_no_row_answers_to_are_refused(void **state)
{
    static const char *const lines[] = {"nonsense=1", "interval_ms=5", "noise",      "=",
                                        "o=write",    "OP=write",      "--op=write", " op=write"};
    struct msg text;
    (void)state;
    for (size_t i = 0; i < LENGTH(lines); i++) {
        encode_defaults(&text);
        msg_add(&text, "%s\n", lines[i]);
        expect_refused(&text, lines[i]);
        assert_contains(fail_reason(), "is not known here");
    }
    encode_defaults(&text);
    msg_add(&text, ".nonsense=1\n"); /* the caller's */
    assert_int_equal(decode(&text), 0);
}

static void a_row_that_is_missing_is_refused(void **state)
{
    struct msg text;
    unsigned open = 0;
    (void)state;
    for (const struct opt *row = spec_rows; row->name; row++) {
        char key[80];
        encode_defaults(&text);
        snprintf(key, sizeof key, "%s=", row->name);
        if (!strstr(text.bytes, key)) {
            open += (row->flags & OPT_SHARED) != 0;
            continue;
        }
        replace(&text, row->name, "");
        expect_refused(&text, row->name);
        assert_contains(fail_reason(), "is missing");
    }
    /* The layout and the clock: 0 is a choice of theirs; counters, tunes and pieces, which nobody
     * need ask for. */
    assert_int_equal(open, 5);
}

static void values_beyond_a_rows_limits_are_refused(void **state)
{
    struct msg text;
    char line[128];
    (void)state;
    for (const struct opt *row = spec_rows; row->name; row++) {
        const char *bad[] = {"", "-1", "x", "1 ", "0x1", "18446744073709551616", "1\r", "1;", NULL};
        char below[32], above[32];
        if (!(row->flags & OPT_SHARED) || row->type == OPT_TEXT)
            continue;
        snprintf(below, sizeof below, "%llu", (unsigned long long)row->min - 1);
        snprintf(above, sizeof above, "%llu", (unsigned long long)row->max + 1);
        bool number = row->type == OPT_NUMBER || row->type == OPT_AMOUNT || row->type == OPT_SIZES;
        bad[LENGTH(bad) - 1] = "2K:1K";
        for (size_t i = 0; i < LENGTH(bad) + 2; i++) {
            const char *value = i < LENGTH(bad) ? bad[i] : i == LENGTH(bad) ? below : above;
            bool limit = i >= LENGTH(bad);
            if (limit && (!number || (value == below ? !row->min : row->max == UINT64_MAX)))
                continue;
            encode_defaults(&text);
            snprintf(line, sizeof line, "%s=%s\n", row->name, value);
            replace(&text, row->name, line);
            expect_refused(&text, line);
            assert_contains(fail_reason(), row->name);
        }
    }
}

static void counters_that_are_none_are_refused(void **state)
{
    static const char *const bad[] = {"../x", "a/b", "a,,b", "a b", "a;", "-1", "\033[2J"};
    struct msg text;
    (void)state;
    for (size_t i = 0; i < LENGTH(bad); i++) {
        encode_defaults(&text);
        assert_int_equal(msg_add(&text, "counters=%s\n", bad[i]), 0);
        expect_refused(&text, bad[i]);
    }
    encode_defaults(&text);
    assert_int_equal(msg_add(&text, "counters=%0*d\n", COUNTERS_WHICH, 0), 0);
    expect_refused(&text, "a long list");
}

static void a_nul_anywhere_is_refused(void **state)
{
    struct msg text;
    (void)state;
    encode_defaults(&text);
    for (size_t at = 0, length = text.length; at <= length; at++) {
        encode_defaults(&text);
        if (at == length) { /* one more, at the end */
            text.bytes[text.length++] = '\0';
            text.bytes[text.length] = '\0';
        }
        text.bytes[at] = '\0';
        expect_refused(&text, "a NUL");
        assert_contains(fail_reason(), "NUL");
    }
}

static void a_spec_that_means_nothing_is_refused_from_outside_too(void **state)
{
    struct msg text;
    (void)state;
    encode_defaults(&text);
    replace(&text, "op", "op=send\n"); /* in ping-pong */
    expect_refused(&text, "a ping-pong of sends");
    encode_defaults(&text);
    replace(&text, "both_ways", "both_ways=1\n");
    expect_refused(&text, "a ping-pong both ways");
}

/* ---- rules ---- */

/* What each operation has, in words of this test. */
static const struct meaning {
    const char *op, *methods, *layouts; /* first letters, L for lists */
    bool verified_both_ways;            /* in streams; in lists all are */
} meanings[] = {{"write", "lpsL", "sbz", false},
                {"read", "lsL", "bz", true},
                {"send", "lL", "", false},
                {"am", "ps", "sbz", true},
                {"atomic", "lpsL", "s", false}};

static char letter_of(const char *method)
{
    return strcmp(method, "list") == 0 ? 'L' : *method;
}

static bool means_something(const struct meaning *meaning, const struct spec *spec)
{
    char method = letter_of(method_names[spec->method - 1]);
    char layout = spec->data.layout ? *fabric_layout_names[spec->data.layout - 1] : 0;
    if (!strchr(meaning->methods, method))
        return false;
    if (layout && (strchr("lL", method) || !strchr(meaning->layouts, layout)))
        return false;
    if (spec->both_ways && !strchr("sL", method))
        return false;
    return !spec->both_ways || !spec->data.verify || method == 'L' || meaning->verified_both_ways;
}

static void exactly_the_combinations_that_mean_something_are_taken(void **state)
{
    unsigned taken = 0, refused = 0;
    (void)state;
    for (size_t i = 0; i < LENGTH(meanings); i++)
        for (int m = 0; method_names[m]; m++)
            for (unsigned bits = 0; bits < 4U * (LAYOUTS + 1); bits++) {
                struct spec spec = spec_of(meanings[i].op, method_names[m]);
                spec.data.layout = (int)(bits / 4);
                spec.both_ways = bits & 1;
                spec.data.verify = bits & 2;
                bool good = means_something(&meanings[i], &spec);
                int status = spec_check(&spec);
                if (status != (good ? 0 : -EINVAL))
                    fail_msg("%s, %s, layout %d, both ways %d, verify %d: %d, %s", meanings[i].op,
                             method_names[m], spec.data.layout, spec.both_ways, spec.data.verify,
                             status, fail_reason());
                good ? taken++ : refused++;
            }
    assert_true(taken > 40 && refused > 40);
}

static void each_method_has_its_line_in_the_table_above(void **state)
{
    (void)state;
    for (int i = 0; method_names[i]; i++)
        if (!strchr("lpsL", letter_of(method_names[i])))
            fail_msg("the table of meanings does not know %s", method_names[i]);
}

/* By the specification: which operation exists for which type, and counts messages. */
static void exactly_the_atomics_that_exist_are_taken(void **state)
{
    (void)state;
    for (int m = 0; method_names[m]; m++)
        for (int op = 0; op < AMO_OPS; op++)
            for (int type = 0; type < AMO_TYPES; type++)
                for (int compare = 0; compare < AMO_COMPARES; compare++) {
                    struct spec spec = spec_of("atomic", method_names[m]);
                    bool counts = op == AMO_SUM && (type == AMO_UINT32 || type == AMO_UINT64);
                    spec.amo = (struct spec_amo){op + 1, compare + 1, type + 1, false};
                    spec_settle(&spec);
                    assert_int_equal(spec.size.min, amo_size((enum amo_type)type));
                    bool good = amo_valid((enum amo_op)op, (enum amo_type)type,
                                          (enum amo_compare)compare) &&
                                (*method_names[m] != 'p' || counts);
                    if (spec_check(&spec) != (good ? 0 : -EINVAL))
                        fail_msg("%s %s %s, %s: %s", amo_op_names[op], amo_compare_names[compare],
                                 amo_type_names[type], method_names[m], fail_reason());
                    spec.size.max++;
                    assert_int_equal(spec_check(&spec), -EINVAL);
                }
}

static void numbers_that_no_run_can_have_are_refused(void **state)
{
    static const struct {
        size_t field;
        uint64_t value;
        const char *sentence;
    } cases[] = {{offsetof(struct spec, timeout_ms), 0, "timeout"},
                 {offsetof(struct spec, size.min), 0, "1 to 4294967295"},
                 {offsetof(struct spec, size.max), 4, "1 to 4294967295"}, /* below the smallest */
                 {offsetof(struct spec, size.max), UINT64_C(1) << 32, "1 to 4294967295"},
                 {offsetof(struct spec, pace.window), 0, "window"},
                 {offsetof(struct spec, pace.window), UINT32_MAX, "window"},
                 {offsetof(struct spec, pace.outstanding), 0, "outstanding"},
                 {offsetof(struct spec, count.duration_ms), UINT64_MAX, "duration"},
                 {offsetof(struct spec, local.interval_ms), UINT64_MAX, "interval"},
                 {offsetof(struct spec, data.am_header), 7, "header of 7 bytes"}};
    (void)state;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct spec spec = spec_of("am", "stream");
        assert_int_equal(spec_check(&spec), 0);
        *(uint64_t *)(void *)((char *)&spec + cases[i].field) = cases[i].value;
        if (spec_check(&spec) != -EINVAL)
            fail_msg("taken: %s", cases[i].sentence);
        assert_contains(fail_reason(), cases[i].sentence);
    }
}

static void an_active_message_has_room_for_its_header(void **state)
{
    static const struct {
        int layout; /* 1 + enum layout */
        uint64_t size, header;
        bool good;
    } cases[] = {{1 + LAYOUT_SHORT, 8, 8, true},
                 {1 + LAYOUT_SHORT, 7, 8, false},
                 {1 + LAYOUT_BCOPY, 7, 8, true},
                 {1 + LAYOUT_ZCOPY, 7, 8, false},
                 {1 + LAYOUT_ZCOPY, 7, 0, true},
                 {1 + LAYOUT_ZCOPY, 8, 8, true},
                 {1 + LAYOUT_ZCOPY, 64, 65, false},
                 {1 + LAYOUT_SHORT, 64, 16, false},
                 {1 + LAYOUT_BCOPY, 64, 16, false},
                 {1 + LAYOUT_BCOPY, 64, 0, false},
                 {1 + LAYOUT_BCOPY, 4, 0, true},
                 {0, 64, 16, true},
                 {0, 8, 16, false}};
    (void)state;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct spec spec = spec_of("am", "ping-pong");
        spec.data.layout = cases[i].layout;
        spec.data.am_header = cases[i].header;
        spec.size.min = spec.size.max = cases[i].size;
        if (spec_check(&spec) != (cases[i].good ? 0 : -EINVAL))
            fail_msg("case %zu: %s", i, fail_reason());
    }
}

/* The library and the other end may put anything into a choice. */
static void no_number_in_a_choice_does_harm(void **state)
{
    static const int numbers[] = {INT_MIN, -4096, -2, -1, 0,  1,  2,   3,     4,
                                  5,       6,     7,  12, 13, 14, 255, 65536, INT_MAX};
    static const size_t fields[] = {
        offsetof(struct spec, op),          offsetof(struct spec, method),
        offsetof(struct spec, data.layout), offsetof(struct spec, amo.op),
        offsetof(struct spec, amo.type),    offsetof(struct spec, amo.compare),
        offsetof(struct spec, local.clock)};
    unsigned taken = 0;
    (void)state;
    for (int op = 0; op_names[op]; op++)
        for (int m = 0; method_names[m]; m++)
            for (size_t a = 0; a < LENGTH(fields); a++)
                for (size_t b = 0; b < LENGTH(fields); b++)
                    for (size_t i = 0; i < LENGTH(numbers) * LENGTH(numbers); i++) {
                        struct spec spec = spec_of(op_names[op], method_names[m]);
                        *(int *)(void *)((char *)&spec + fields[a]) = numbers[i % LENGTH(numbers)];
                        *(int *)(void *)((char *)&spec + fields[b]) = numbers[i / LENGTH(numbers)];
                        int status = spec_check(&spec);
                        assert_true(status == 0 || (status == -EINVAL && *fail_reason()));
                        if (status)
                            continue;
                        taken++;
                        assert_non_null(op_of(&spec));
                        assert_non_null(method_of(&spec));
                        assert_true(*op_called(&spec));
                        assert_in_range(spec_legs(&spec), 1, 2);
                    }
    assert_true(taken > 1000);
}

/* ---- two ends ---- */

static void the_row_in_which_two_specs_differ_is_named(void **state)
{
    (void)state;
    for (const struct opt *row = spec_rows; row->name; row++) {
        struct spec client, server;
        char values[2][64], sentence[256];
        size_t n = 0;
        spec_defaults(&client);
        spec_defaults(&server);
        opt_format(row, &server, values[1], sizeof values[1]);
        do
            assert_true(value_of(row, n++, values[0], sizeof values[0]));
        while (strcmp(values[0], values[1]) == 0);
        assign(&client, row, values[0]);
        if (!(row->flags & OPT_SHARED)) {
            assert_int_equal(spec_compare(&client, &server), 0);
            continue;
        }
        assert_int_equal(spec_compare(&client, &server), -EINVAL);
        snprintf(sentence, sizeof sentence, ": %s is %s at the client and %s at the server",
                 row->name, values[0], *values[1] ? values[1] : "open");
        assert_contains(fail_reason(), sentence);
        assert_int_equal(spec_compare(&server, &client), -EINVAL);
        assert_int_equal(spec_compare(&client, &client), 0);
    }
}

/* ---- any spec ---- */

static uint64_t within(const struct opt *row, uint64_t *seed)
{
    uint64_t span = row->max - row->min, random = next_random(seed) >> next_random(seed) % 64;
    return row->min + (span == UINT64_MAX ? random : random % (span + 1));
}

static void randomize(struct spec *spec, uint64_t *seed)
{
    struct opt_set set = rows_of(spec);
    for (const struct opt *row = spec_rows; row->name; row++) {
        char text[64];
        unsigned low = (unsigned)next_random(seed) % 32,
                 high = low + next_random(seed) % (32 - low);
        if (next_random(seed) % 3 == 0)
            continue;
        if (row->type == OPT_CHOICE)
            snprintf(text, sizeof text, "%s", row->choices[next_random(seed) % choices_of(row)]);
        else if (row->type == OPT_FLAG)
            snprintf(text, sizeof text, "%d", (int)next_random(seed) & 1);
        else if (row->type == OPT_SIZES && next_random(seed) & 1)
            snprintf(text, sizeof text, "%llu:%llu", 1ULL << low, 1ULL << high);
        else
            snprintf(text, sizeof text, "%llu", (unsigned long long)within(row, seed));
        if (opt_assign(&set, row, text, OPT_BY_USER))
            fail_msg("%s", fail_reason());
    }
    spec_settle(spec);
}

static void any_spec_comes_to_the_other_end_or_is_refused_at_both(void **state)
{
    uint64_t seed = 11;
    unsigned taken = 0, refused = 0;
    (void)state;
    for (int i = 0; i < 20000; i++) {
        struct spec client, server;
        struct msg text = {0}, again = {0};
        spec_defaults(&client);
        spec_defaults(&server);
        randomize(&client, &seed);
        randomize(&server, &seed);
        assert_int_equal(spec_encode(&client, &text), 0);
        int here = spec_check(&client), there = spec_decode(&server, &text);
        if (here != there)
            fail_msg("%d here, %d there: %s\n%s", here, there, fail_reason(), text.bytes);
        here ? refused++ : taken++;
        assert_int_equal(spec_compare(&client, &server), 0);
        assert_int_equal(spec_encode(&server, &again), 0);
        assert_string_equal(again.bytes, text.bytes);
        client.local.interval_ms = server.local.interval_ms;
        assert_memory_equal(&client, &server, sizeof client);
    }
    /* Otherwise this would try only one of the two ways. */
    assert_true(taken > 200 && refused > 200);
}

static void sizes_double_up_to_the_largest(void **state)
{
    static const struct {
        uint64_t min, max, count;
    } cases[] = {{1, 1, 1}, {7, 7, 1}, {1, 8, 4}, {UINT32_MAX, UINT32_MAX, 1}, {1, 1U << 31, 32}};
    (void)state;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct spec spec = {.size = {cases[i].min, cases[i].max}};
        uint64_t n = 0, last = 0;
        for (uint64_t size = spec.size.min; size; size = spec_next_size(&spec, size), n++)
            last = size;
        assert_int_equal(n, cases[i].count);
        assert_int_equal(last, cases[i].max);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_rows_are_those_of_the_enumeration),
        cmocka_unit_test(every_shared_row_survives_the_way_to_the_other_end),
        cmocka_unit_test(what_is_not_shared_stays_at_its_end),
        cmocka_unit_test(lines_that_no_row_answers_to_are_refused),
        cmocka_unit_test(a_row_that_is_missing_is_refused),
        cmocka_unit_test(values_beyond_a_rows_limits_are_refused),
        cmocka_unit_test(counters_that_are_none_are_refused),
        cmocka_unit_test(a_nul_anywhere_is_refused),
        cmocka_unit_test(a_spec_that_means_nothing_is_refused_from_outside_too),
        cmocka_unit_test(exactly_the_combinations_that_mean_something_are_taken),
        cmocka_unit_test(each_method_has_its_line_in_the_table_above),
        cmocka_unit_test(exactly_the_atomics_that_exist_are_taken),
        cmocka_unit_test(numbers_that_no_run_can_have_are_refused),
        cmocka_unit_test(an_active_message_has_room_for_its_header),
        cmocka_unit_test(no_number_in_a_choice_does_harm),
        cmocka_unit_test(the_row_in_which_two_specs_differ_is_named),
        cmocka_unit_test(any_spec_comes_to_the_other_end_or_is_refused_at_both),
        cmocka_unit_test(sizes_double_up_to_the_largest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
