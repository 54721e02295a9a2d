/* SPDX-License-Identifier: BSD-3-Clause */
/* Option rows: values, the command line, the text on the wire and the help that they give. Random
 * values come from fixed seeds, so a failure comes again. */
#include "core/core.h"
#include "core/opt.h"
#include "support/exact_msg.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- option rows ---- */

struct requests {
    bool flag, quiet, other;
    uint64_t count, open, mine, time_ps;
    int64_t index, pair[2];
    struct opt_range sizes;
    int choice;
    char text[16];
};

static const char *const colours[] = {"red", "green", "Blue", NULL};

#define FIELD(member) .field = offsetof(struct requests, member)

/* clang-format off */
static const struct opt rows[] = {
    {.letter = 'f', .name = "flag", .type = OPT_FLAG, FIELD(flag), .flags = OPT_SHARED,
     .help = "A flag"},
    {.letter = 'q', .name = "quiet", .type = OPT_FLAG, FIELD(quiet), .help = "A flag of ours"},
    {.letter = 'n', .name = "count", .type = OPT_NUMBER, FIELD(count), .min = 1, .max = 1000,
     .fallback = "100", .word = "N", .flags = OPT_SHARED, .help = "How many"},
    {.name = "open", .type = OPT_NUMBER, FIELD(open), .max = UINT64_MAX, .word = "N",
     .flags = OPT_SHARED, .help = "Nothing unless given"},
    {.letter = 'i', .name = "index", .type = OPT_INDEX, FIELD(index), .max = 65535, .word = "N",
     .flags = OPT_SHARED, .help = "Which"},
    {.name = "pair", .type = OPT_PAIR, FIELD(pair), .max = 255, .word = "A[,B]",
     .flags = OPT_SHARED, .help = "One or two"},
    {.letter = 's', .name = "sizes", .type = OPT_SIZES, FIELD(sizes), .min = 1, .max = UINT32_MAX,
     .fallback = "8", .word = "MIN[:MAX]", .flags = OPT_SHARED, .help = "Sizes"},
    {.letter = 't', .name = "time", .type = OPT_TIME, FIELD(time_ps), .fallback = "2us",
     .word = "TIME", .flags = OPT_SHARED, .help = "How long"},
    {.letter = 'c', .name = "colour", .type = OPT_CHOICE, FIELD(choice), .choices = colours,
     .word = "COLOUR", .flags = OPT_SHARED, .help = "Which colour"},
    {.letter = 'x', .name = "text", .type = OPT_TEXT, FIELD(text), .max = 16, .fallback = "here",
     .word = "TEXT", .flags = OPT_SHARED, .help = "Words"},
    {.letter = 'm', .name = "mine", .type = OPT_NUMBER, FIELD(mine), .max = 65535, .fallback = "7",
     .word = "N", .help = "Not shared"},
    {.letter = 'o', .name = "other", .type = OPT_FLAG, FIELD(other), .takes = 2,
     .flags = OPT_SHARED, .help = "Another tool's"},
    {.type = OPT_LINE, .header = 1, .label = "Line"},
    {0}};
/* clang-format on */

/* Rows bound to a struct whose bytes are all set, so that a row left out shows. */
static struct opt_set bind_rows(struct requests *requests)
{
    struct opt_set set = {.rows = rows, .takes = 1, .base = requests};
    memset(requests, 0x55, sizeof *requests);
    requests->flag = requests->quiet = requests->other = true;
    requests->choice = 1;
    memset(set.origin, 0x55, sizeof set.origin);
    opt_defaults(&set);
    return set;
}

static const char *formatted(const struct opt_set *set, const char *name)
{
    static char text[64];
    opt_format(opt_find(set, name), set->base, text, sizeof text);
    return text;
}

static void opt_defaults_fill_every_row(void **state)
{
    struct requests w;
    struct opt_set set = bind_rows(&w);
    (void)state;
    assert_false(w.flag || w.quiet || w.other);
    assert_int_equal(w.count, 100);
    assert_int_equal(w.open, 0);
    assert_int_equal(w.mine, 7);
    assert_int_equal(w.time_ps, 2000000);
    assert_int_equal(w.index, -1);
    assert_int_equal(w.pair[0], -1);
    assert_int_equal(w.pair[1], -1);
    assert_int_equal(w.sizes.min, 8);
    assert_int_equal(w.sizes.max, 8);
    assert_int_equal(w.choice, 0);
    assert_string_equal(w.text, "here");
    for (const struct opt *row = opt_next(&set, NULL); row; row = opt_next(&set, row))
        if (row->type != OPT_LINE)
            assert_int_equal(opt_origin(&set, row), OPT_BY_DEFAULT);
}

static void opt_rows_of_another_tool_are_not_there(void **state)
{
    struct requests w;
    struct opt_set set = bind_rows(&w);
    int seen = 0, lines = 0;
    (void)state;
    assert_null(opt_find(&set, "other"));
    assert_null(opt_find(&set, "o"));
    for (const struct opt *row = opt_next(&set, NULL); row; row = opt_next(&set, row), seen++)
        lines += row->type == OPT_LINE;
    assert_int_equal(seen, LENGTH(rows) - 2);
    assert_int_equal(lines, 1);
    set.takes = 2;
    assert_ptr_equal(opt_find(&set, "other"), opt_find(&set, "o"));
    assert_non_null(opt_find(&set, "other"));
    assert_non_null(opt_find(&set, "flag"));
    set.takes = 0;
    assert_non_null(opt_find(&set, "other"));
    assert_null(opt_find(&set, "coun"));
    assert_null(opt_find(&set, "counts"));
    assert_null(opt_find(&set, ""));
}

static void opt_assign_takes_every_good_value_and_formats_it_as_typed(void **state)
{
    /* clang-format off */
    static const struct {
        const char *row, *text, *back;
    } cases[] = {
        {"flag", "1", "1"}, {"flag", "0", "0"}, {"count", "1", "1"}, {"count", "1000", "1000"},
        {"count", "0042", "42"}, {"open", "18446744073709551615", "18446744073709551615"},
        {"open", "1", "1"}, {"index", "0", "0"}, {"index", "65535", "65535"}, {"pair", "0", "0"},
        {"pair", "3,0", "3,0"}, {"pair", "255,255", "255,255"}, {"sizes", "1", "1"},
        {"sizes", "7", "7"}, {"sizes", "4294967295", "4294967295"}, {"sizes", "1K", "1024"},
        {"sizes", "3G", "3221225472"}, {"sizes", "1:8192", "1:8192"}, {"sizes", "8:8", "8"},
        {"sizes", "1K:1M", "1024:1048576"}, {"sizes", "1:2G", "1:2147483648"},
        {"time", "0", "0ps"}, {"time", "40ns", "40000ps"}, {"time", "3s", "3000000000000ps"},
        {"colour", "red", "red"}, {"colour", "GREEN", "green"}, {"colour", "blue", "Blue"},
        {"text", "x", "x"}, {"text", "null:delay=2us", "null:delay=2us"},
        {"text", "fifteen letters", "fifteen letters"}, {"mine", "0", "0"}};
    /* clang-format on */
    (void)state;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct requests w;
        struct opt_set set = bind_rows(&w);
        const struct opt *row = opt_find(&set, cases[i].row);
        if (opt_assign(&set, row, cases[i].text, OPT_BY_USER))
            fail_msg("%s %s: %s", cases[i].row, cases[i].text, fail_reason());
        assert_string_equal(formatted(&set, cases[i].row), cases[i].back);
        assert_int_equal(opt_origin(&set, row), OPT_BY_USER);
    }
}

static void opt_assign_refuses_every_bad_value_and_says_what_is_accepted(void **state)
{
    static const char number[] = "is not a whole number", range[] = "is out of range";
    static const char long_one[] = "00000000000000000000000000000000001";
    /* clang-format off */
    static const struct {
        const char *row, *what, *accepted, *values[16];
    } cases[] = {
        {"flag", "takes no value", "accepted: nothing", {"", "yes", "2", "01", "true"}},
        {"count", number, "accepted: 1 to 1000",
         {"", "8x", "-1", "+1", " 8", "8 ", "0x8", "1e2", "8K", "18446744073709551616"}},
        {"count", range, "accepted: 1 to 1000", {"0", "1001", "18446744073709551615"}},
        {"mine", range, "accepted: 0 to 65535", {"65536", "70000"}},
        {"open", number, "accepted: 0 to 18446744073709551615", {"18446744073709551616"}},
        {"index", number, "accepted: 0 to 65535", {"", "-1", "a", "1,2"}},
        {"index", range, "accepted: 0 to 65535", {"65536"}},
        {"pair", "is not A or A,B", "whole numbers up to 255",
         {"", ",", "1,", ",1", "1,2,3", "1, 2", "1;2", "-1", "256", "1,256", "1,-1", long_one,
          "1,00000000000000000000000000000000001"}},
        {"sizes", "is not a size", "accepted: 1 to 4294967295, with K, M or G",
         {"", "8x", "8k", "-8", "8 ", "8:", ":8", ":", "8:16:32", "8-16", "8: 16", "8:16x",
          long_one, "18446744073709551616"}},
        {"sizes", range, "accepted: 1 to 4294967295", {"0", "0:8", "4G", "4294967296", "1:8G"}},
        {"sizes", "has its minimum above its maximum", "MIN:MAX", {"16:8", "2:1", "1K:1"}},
        {"sizes", "powers of two", "such as 1:8192", {"3:8", "8:12", "3:3", "1:4294967295"}},
        {"time", "is not a time", "such as 500ns", {"", "2", "2 us", "-2us", "18446745s"}},
        {"colour", "is not known", "accepted: red, green, Blue", {"", "re", "redd", "1", " red"}},
        {"text", "is empty", "a TEXT", {""}},
        {"text", "is too long", "up to 15 characters", {"sixteen letters!", long_one}}};
    /* clang-format on */
    (void)state;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        for (const char *const *text = cases[i].values; *text; text++) {
            struct requests w, before;
            struct opt_set set = bind_rows(&w);
            const struct opt *row = opt_find(&set, cases[i].row);
            char option[32], quoted[64];
            before = w;
            if (opt_assign(&set, row, *text, OPT_BY_USER) != -EINVAL)
                fail_msg("--%s \"%s\" was taken", cases[i].row, *text);
            snprintf(option, sizeof option, "--%s ", cases[i].row);
            snprintf(quoted, sizeof quoted, ": \"%s\" (", *text);
            assert_contains(fail_reason(), option);
            assert_contains(fail_reason(), cases[i].what);
            assert_contains(fail_reason(), quoted);
            assert_contains(fail_reason(), cases[i].accepted);
            assert_memory_equal(&w, &before, sizeof w);
            assert_int_equal(opt_origin(&set, row), OPT_BY_DEFAULT);
        }
    }
}

static void opt_assign_refuses_control_characters_and_does_not_repeat_them(void **state)
{
    static const char *const bad[] = {"tab\there", "line\nend", "\177", "\033[2J"};
    struct requests w;
    struct opt_set set = bind_rows(&w);
    (void)state;
    for (size_t i = 0; i < LENGTH(bad); i++) {
        assert_int_equal(opt_assign(&set, opt_find(&set, "text"), bad[i], OPT_BY_USER), -EINVAL);
        assert_contains(fail_reason(), "--text has a control character");
        for (const char *at = fail_reason(); *at; at++)
            assert_true((unsigned char)*at >= ' ' && *at != 127);
    }
    assert_string_equal(w.text, "here");
}

/* ---- the command line ---- */

enum { WORDS = 8, PLACES = 2 };

struct command {
    struct requests w;
    struct opt_set set;
    const char *places[PLACES];
    int given;
};

static int parse(struct command *c, char *const *words)
{
    int argc = 0;
    while (words[argc])
        argc++;
    c->set = bind_rows(&c->w);
    c->given = -1;
    return opt_parse(&c->set, argc, words, c->places, PLACES, &c->given);
}

#define PARSE(command, ...) parse(command, (char *const[WORDS + 1]){__VA_ARGS__})

static void opt_parse_takes_a_value_in_all_four_forms(void **state)
{
    static char *const forms[][WORDS + 1] = {{"-n", "5"}, {"-n5"}, {"--count", "5"}, {"--count=5"}};
    (void)state;
    for (size_t i = 0; i < LENGTH(forms); i++) {
        struct command c;
        assert_int_equal(parse(&c, forms[i]), 0);
        assert_int_equal(c.w.count, 5);
        assert_int_equal(c.given, 0);
        assert_int_equal(opt_origin(&c.set, opt_find(&c.set, "count")), OPT_BY_USER);
        assert_int_equal(opt_origin(&c.set, opt_find(&c.set, "time")), OPT_BY_DEFAULT);
    }
}

static void opt_parse_takes_flags_alone_and_bundled(void **state)
{
    struct command c;
    (void)state;
    assert_int_equal(PARSE(&c, "-f"), 0);
    assert_true(c.w.flag && !c.w.quiet);
    assert_int_equal(PARSE(&c, "--quiet", "--flag"), 0);
    assert_true(c.w.flag && c.w.quiet);
    assert_int_equal(PARSE(&c, "-qf"), 0);
    assert_true(c.w.flag && c.w.quiet);
    assert_int_equal(PARSE(&c, "-qfn5"), 0);
    assert_true(c.w.flag && c.w.quiet && c.w.count == 5);
    assert_int_equal(PARSE(&c, "-fn", "6", "-q"), 0);
    assert_true(c.w.flag && c.w.quiet && c.w.count == 6);
    assert_int_equal(PARSE(&c, "-fz"), -EINVAL);
    assert_contains(fail_reason(), "unknown option: -z");
}

static void opt_parse_keeps_words_wherever_they_stand(void **state)
{
    struct command c;
    (void)state;
    assert_int_equal(PARSE(&c, "one", "-n", "5", "two", "-f"), 0);
    assert_int_equal(c.given, 2);
    assert_string_equal(c.places[0], "one");
    assert_string_equal(c.places[1], "two");
    assert_true(c.w.flag && c.w.count == 5);
    assert_int_equal(PARSE(&c, "-"), 0);
    assert_int_equal(c.given, 1);
    assert_string_equal(c.places[0], "-");
    assert_int_equal(PARSE(&c, NULL), 0);
    assert_int_equal(c.given, 0);
}

static void opt_parse_takes_nothing_for_an_option_behind_two_dashes(void **state)
{
    struct command c;
    (void)state;
    assert_int_equal(PARSE(&c, "-f", "--", "-n", "--"), 0);
    assert_int_equal(c.given, 2);
    assert_string_equal(c.places[0], "-n");
    assert_string_equal(c.places[1], "--");
    assert_true(c.w.flag);
    assert_int_equal(c.w.count, 100);
}

static void opt_parse_lets_the_last_one_win(void **state)
{
    struct command c;
    (void)state;
    assert_int_equal(PARSE(&c, "-n5", "--count=6", "-n", "7"), 0);
    assert_int_equal(c.w.count, 7);
}

static void opt_parse_takes_what_follows_for_the_value_even_with_a_dash(void **state)
{
    struct command c;
    (void)state;
    assert_int_equal(PARSE(&c, "-n", "-1"), -EINVAL);
    assert_contains(fail_reason(), "\"-1\"");
    assert_int_equal(PARSE(&c, "--text", "-f"), 0);
    assert_string_equal(c.w.text, "-f");
    assert_false(c.w.flag);
}

static void opt_parse_names_the_option_whose_value_is_missing(void **state)
{
    struct command c;
    (void)state;
    assert_int_equal(PARSE(&c, "--sizes"), -EINVAL);
    assert_string_equal(fail_reason(), "--sizes needs a value: MIN[:MAX]");
    assert_int_equal(PARSE(&c, "-f", "-s"), -EINVAL);
    assert_string_equal(fail_reason(), "-s (--sizes) needs a value: MIN[:MAX]");
    assert_int_equal(PARSE(&c, "--count="), -EINVAL);
    assert_contains(fail_reason(), "--count is not a whole number: \"\"");
    assert_int_equal(PARSE(&c, "--flag=1"), -EINVAL);
    assert_contains(fail_reason(), "--flag takes no value: \"1\"");
    assert_int_equal(PARSE(&c, "--flag="), -EINVAL);
}

static void opt_parse_suggests_the_option_that_was_meant(void **state)
{
    static const struct {
        char *typed;
        const char *meant;
    } cases[] = {{"--cuont", "--count"},
                 {"--color", "--colour"},
                 {"--flags", "--flag"},
                 {"--idnex", "--index"},
                 {"--quite=1", "--quiet"}};
    struct command c;
    (void)state;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        char expected[64];
        assert_int_equal(PARSE(&c, cases[i].typed), -EINVAL);
        snprintf(expected, sizeof expected, "did you mean %s?", cases[i].meant);
        assert_contains(fail_reason(), expected);
    }
    assert_int_equal(PARSE(&c, "--other"), -EINVAL);
    assert_contains(fail_reason(), "unknown option: --other");
    assert_int_equal(PARSE(&c, "--elephant"), -EINVAL);
    assert_string_equal(fail_reason(), "unknown option: --elephant (--help lists all)");
    assert_int_equal(PARSE(&c, "-Z"), -EINVAL);
    assert_string_equal(fail_reason(), "unknown option: -Z (--help lists all)");
}

static void opt_parse_takes_the_beginning_of_a_name_that_no_other_has(void **state)
{
    struct command c;
    (void)state;
    assert_int_equal(PARSE(&c, "--coun", "5", "--fl", "--tex=a", "--col", "red"), 0);
    assert_int_equal(c.w.count, 5);
    assert_true(c.w.flag);
    assert_string_equal(c.w.text, "a");
    assert_int_equal(PARSE(&c, "--co=5"), -EINVAL);
    assert_string_equal(fail_reason(), "--co may be --count, --colour: write more of it");
    assert_int_equal(PARSE(&c, "--fl=1"), -EINVAL);
    assert_contains(fail_reason(), "--flag takes no value: \"1\"");
    assert_int_equal(PARSE(&c, "--tex"), -EINVAL);
    assert_contains(fail_reason(), "--text needs a value");
}

static void opt_parse_does_not_take_a_letter_for_a_long_name(void **state)
{
    struct command c;
    (void)state;
    assert_int_equal(PARSE(&c, "--f"), -EINVAL);
    assert_int_equal(PARSE(&c, "--n=5"), -EINVAL);
    assert_int_equal(PARSE(&c, "--=5"), -EINVAL);
    assert_int_equal(PARSE(&c, "-count"), -EINVAL);
}

static void opt_parse_survives_a_very_long_word(void **state)
{
    struct command c;
    char word[3000], option[3010];
    (void)state;
    memset(word, 'a', sizeof word - 1);
    word[sizeof word - 1] = '\0';
    snprintf(option, sizeof option, "--%s", word);
    assert_int_equal(PARSE(&c, option), -EINVAL);
    assert_contains(fail_reason(), "unknown option: --aaa");
    snprintf(option, sizeof option, "--count=%s", word);
    assert_int_equal(PARSE(&c, option), -EINVAL);
    assert_int_equal(PARSE(&c, word), 0);
    assert_ptr_equal(c.places[0], word);
}

static void opt_parse_says_which_word_is_one_too_many(void **state)
{
    struct command c;
    (void)state;
    assert_int_equal(PARSE(&c, "one", "two", "three"), -EINVAL);
    assert_string_equal(fail_reason(), "Unexpected argument: three (\"two\" was given before)");
    /* Once the options are known to be good. */
    assert_int_equal(PARSE(&c, "one", "two", "three", "-n", "x"), -EINVAL);
    assert_contains(fail_reason(), "--count is not a whole number");
    struct opt_set set = bind_rows(&c.w);
    char *argv[] = {(char[]){"word"}};
    assert_int_equal(opt_parse(&set, 1, argv, NULL, 0, &c.given), -EINVAL);
    assert_string_equal(fail_reason(), "Unexpected argument: word");
}

/* In the words that users of the original look for; then what is accepted. */
static void a_row_may_have_its_own_words_for_a_bad_value(void **state)
{
    static const struct opt known[] = {{.name = "count",
                                        .type = OPT_NUMBER,
                                        FIELD(count),
                                        .min = 1,
                                        .max = 9,
                                        .refusal = "Invalid count: {value}"},
                                       {.name = "sizes",
                                        .type = OPT_SIZES,
                                        FIELD(sizes),
                                        .min = 1,
                                        .max = 64,
                                        .refusal = "Invalid size: {value}"},
                                       {.name = "colour",
                                        .type = OPT_CHOICE,
                                        FIELD(choice),
                                        .choices = colours,
                                        .refusal = "Invalid colour: {value}. Must be red"},
                                       {0}};
    static const struct {
        const char *name, *value, *reason;
    } cases[] = {
        {"count", "x", "Invalid count: x (--count is not a whole number; accepted: 1 to 9)"},
        {"count", "10", "Invalid count: 10 (--count is out of range; accepted: 1 to 9)"},
        {"count", "", "Invalid count:  (--count is not a whole number; accepted: 1 to 9)"},
        {"sizes", "8:4", "Invalid size: 8:4 (--sizes has its minimum above its maximum; MIN:MAX)"},
        {"sizes", "3:8", "Invalid size: 3:8 (ranges must be powers of 2)"},
        {"colour", "pink",
         "Invalid colour: pink. Must be red (--colour is not known; accepted: "
         "red, green, Blue)"}};
    struct requests w;
    struct opt_set set = {.rows = known, .base = &w};
    (void)state;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        const struct opt *row = opt_find(&set, cases[i].name);
        assert_int_equal(opt_assign(&set, row, cases[i].value, OPT_BY_USER), -EINVAL);
        assert_string_equal(fail_reason(), cases[i].reason);
    }
}

static void opt_parse_list_sets_rows_from_the_tail_of_a_device_name(void **state)
{
    struct requests w;
    struct opt_set set = bind_rows(&w);
    (void)state;
    assert_int_equal(opt_parse_list(&set, ""), 0);
    assert_int_equal(w.count, 100);
    assert_int_equal(opt_parse_list(&set, "time=3us"), 0);
    assert_int_equal(w.time_ps, 3000000);
    assert_int_equal(opt_parse_list(&set, "count=5,colour=RED,text=a=b"), 0);
    assert_int_equal(w.count, 5);
    assert_int_equal(w.choice, 1);
    assert_string_equal(w.text, "a=b");
    assert_int_equal(opt_origin(&set, opt_find(&set, "count")), OPT_BY_USER);
}

static void opt_parse_list_speaks_of_settings_without_dashes(void **state)
{
    static const struct opt settings[] = {{.name = "delay", .type = OPT_TIME, .flags = OPT_SETTING},
                                          {0}};
    uint64_t delay_ps;
    struct opt_set set = {.rows = settings, .base = &delay_ps};
    (void)state;
    opt_defaults(&set);
    assert_int_equal(opt_parse_list(&set, "delay=2"), -EINVAL);
    assert_int_equal(strncmp(fail_reason(), "delay is not a time: \"2\" (", 26), 0);
    assert_int_equal(opt_parse_list(&set, "delay=2us"), 0);
    assert_int_equal(delay_ps, 2000000);
}

static void opt_parse_list_refuses_what_it_does_not_know(void **state)
{
    static const struct {
        const char *list, *sentence;
    } cases[] = {{"nope=1", "\"nope\""},         {"count=5,nope", "\"nope\""},
                 {"count=5x", "\"5x\""},         {"count", "--count"},
                 {"count=", "--count"},          {"n=5", "\"n\""},
                 {"=5", "unknown setting"},      {"count=5 ,time=1ns", "\"5 \""},
                 {"count =5", "\"count \""},     {"time=1ns;count=5", "\"1ns;count=5\""},
                 {"Count=5", "\"Count\""},       {"other=1", "\"other\""},
                 {"time=1ns,time=2", "--time "}, {"5us", "\"5us\""}};
    struct requests w;
    char list[400];
    (void)state;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct opt_set set = bind_rows(&w);
        if (opt_parse_list(&set, cases[i].list) != -EINVAL)
            fail_msg("\"%s\" was taken", cases[i].list);
        assert_contains(fail_reason(), cases[i].sentence);
    }
    struct opt_set set = bind_rows(&w);
    memset(list, 'a', sizeof list - 1);
    list[sizeof list - 1] = '\0';
    assert_int_equal(opt_parse_list(&set, list), -EINVAL);
    assert_contains(fail_reason(), "255 characters");
}

/* ---- the wire ---- */

static void opt_encode_leaves_out_what_is_not_given_or_not_shared(void **state)
{
    struct command c;
    struct msg text = {0};
    (void)state;
    assert_int_equal(PARSE(&c, "-f", "-q", "-m9", "--pair=1,2"), 0);
    msg_print(&text, ".tool=x\n");
    assert_int_equal(opt_encode(&c.set, &text), 0);
    assert_string_equal(text.bytes, ".tool=x\nflag=1\ncount=100\npair=1,2\nsizes=8\n"
                                    "time=2000000ps\ntext=here\n");
    msg_print(&text, "%*s", MSG_MAX - 20, "");
    assert_int_equal(opt_encode(&c.set, &text), -EMSGSIZE);
}

/* A value for this row, as someone might type it. */
static void random_value(const struct opt *row, uint64_t *seed, char *text, size_t room)
{
    static const char *const units[] = {"ps", "ns", "us", "ms", "s"};
    uint64_t a = next_random(seed), b = next_random(seed), span = row->max - row->min;
    unsigned low = (unsigned)(a % 32), high = low + (unsigned)(b % (32 - low));
    a = span == UINT64_MAX ? a : row->min + a % (span + 1);
    switch (row->type) {
    case OPT_FLAG:
        snprintf(text, room, "%d", (int)(b & 1));
        break;
    case OPT_PAIR:
        if (b & 256)
            snprintf(text, room, "%d,%d", (int)a, (int)(b & 255));
        else
            snprintf(text, room, "%d", (int)a);
        break;
    case OPT_SIZES:
        if (b & 1U << 20)
            snprintf(text, room, "%llu:%llu", 1ULL << low, 1ULL << high);
        else
            snprintf(text, room, "%llu", (unsigned long long)a);
        break;
    case OPT_TIME:
        snprintf(text, room, "%u%s", (unsigned)(a % 10000), units[b % LENGTH(units)]);
        break;
    case OPT_CHOICE:
        snprintf(text, room, "%s", row->choices[b % 3]);
        break;
    case OPT_TEXT:
        for (low = 0; low <= b % (row->max - 1); low++)
            text[low] = (char)(' ' + next_random(seed) % 95);
        text[low] = '\0';
        break;
    default:
        snprintf(text, room, "%llu", (unsigned long long)a);
    }
}

static void assign_at_random(struct opt_set *set, uint64_t *seed, bool all)
{
    for (const struct opt *row = opt_next(set, NULL); row; row = opt_next(set, row)) {
        char text[64];
        if (row->type == OPT_LINE || (!all && next_random(seed) % 3 == 0))
            continue;
        random_value(row, seed, text, sizeof text);
        if (opt_assign(set, row, text, OPT_BY_USER))
            fail_msg("--%s \"%s\": %s", row->name, text, fail_reason());
    }
}

static void opt_decode_gets_back_what_was_encoded(void **state)
{
    uint64_t seed = 1;
    (void)state;
    for (int i = 0; i < 5000; i++) {
        struct requests client, server;
        struct opt_set from = bind_rows(&client), to = bind_rows(&server);
        struct msg text = {0};
        assign_at_random(&from, &seed, false);
        assign_at_random(&to, &seed, true);
        bool quiet = server.quiet;
        uint64_t mine = server.mine;
        assert_int_equal(opt_encode(&from, &text), 0);
        if (opt_decode(&to, &text))
            fail_msg("%s\n%s", fail_reason(), text.bytes);
        assert_int_equal(server.flag, client.flag);
        assert_int_equal(server.count, client.count);
        assert_int_equal(server.open, client.open);
        assert_int_equal(server.time_ps, client.time_ps);
        assert_int_equal(server.index, client.index);
        assert_memory_equal(server.pair, client.pair, sizeof server.pair);
        assert_memory_equal(&server.sizes, &client.sizes, sizeof server.sizes);
        assert_int_equal(server.choice, client.choice);
        assert_string_equal(server.text, client.text);
        assert_int_equal(server.quiet, quiet);
        assert_int_equal(server.mine, mine);
        assert_int_equal(opt_origin(&to, opt_find(&to, "count")), OPT_BY_PEER);
        assert_int_equal(opt_origin(&to, opt_find(&to, "mine")), OPT_BY_USER);
    }
}

static void opt_decode_refuses_bad_values_with_the_sentence_of_the_row(void **state)
{
    static const struct {
        const char *line, *sentence;
    } cases[] = {{"count=0", "--count is out of range: \"0\""},
                 {"count=1001", "--count is out of range"},
                 {"count=", "--count is not a whole number"},
                 {"count=-5", "--count is not a whole number"},
                 {"count= 5", "--count is not a whole number"},
                 {"count=5\r", "--count is not a whole number"},
                 {"flag=yes", "--flag takes no value"},
                 {"sizes=0", "--sizes is out of range"},
                 {"sizes=16:8", "--sizes has its minimum above"},
                 {"sizes=1:4294967296", "--sizes is out of range"},
                 {"time=5", "--time is not a time"},
                 {"colour=4", "--colour is not known"},
                 {"text=sixteen letters!", "--text is too long"},
                 {"text=a\033[2J", "--text has a control character"},
                 {"pair=1,2,3", "--pair is not A or A,B"},
                 {"index=-1", "--index is not a whole number"},
                 {"nonsense=1", "nonsense is not known"},
                 {"noise", "noise is not known"},
                 {"mine=5", "mine is not known"},
                 {"other=1", "other is not known"},
                 {"n=5", "n is not known"}};
    (void)state;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct requests w;
        struct opt_set set = bind_rows(&w);
        struct msg text = {0};
        msg_print(&text, "%s\n", cases[i].line);
        assert_int_equal(opt_encode(&set, &text), 0);
        if (opt_decode(&set, &text) != -EINVAL)
            fail_msg("%s was taken", cases[i].line);
        assert_contains(fail_reason(), cases[i].sentence);
    }
}

static void opt_decode_leaves_lines_with_a_full_stop_to_the_caller(void **state)
{
    struct requests w;
    struct opt_set set = bind_rows(&w);
    struct msg text = {0};
    (void)state;
    msg_print(&text, ".tool=x\n.nonsense\n.count=5\n\n");
    assert_int_equal(opt_encode(&set, &text), 0);
    assert_int_equal(opt_decode(&set, &text), 0);
    assert_int_equal(w.count, 100);
}

static void opt_decode_leaves_open_what_the_client_left_open(void **state)
{
    struct requests client, server;
    struct opt_set from = bind_rows(&client), to = bind_rows(&server);
    struct msg text = {0};
    uint64_t seed = 2;
    (void)state;
    assign_at_random(&to, &seed, true);
    assert_int_equal(opt_encode(&from, &text), 0);
    assert_int_equal(opt_decode(&to, &text), 0);
    assert_int_equal(server.open, 0);
    assert_int_equal(server.index, -1);
    assert_int_equal(server.pair[0], -1);
    assert_int_equal(server.pair[1], -1);
    assert_int_equal(server.choice, 0);
    assert_false(server.flag);
}

static void opt_decode_takes_rows_away_from_the_user(void **state)
{
    struct command server, client;
    struct msg text = {0};
    (void)state;
    assert_int_equal(PARSE(&server, "-n5", "-f", "-x", "same", "-i3", "-m1", "-s16"), 0);
    assert_int_equal(PARSE(&client, "-n6", "-x", "same", "-t", "1ns", "-m2", "-s16"), 0);
    assert_int_equal(opt_encode(&client.set, &text), 0);
    assert_int_equal(opt_decode(&server.set, &text), 0);
    assert_int_equal(server.w.count, 6);
    assert_int_equal(server.w.index, -1);
    assert_int_equal(server.w.mine, 1);
    for (const struct opt *row = opt_next(&server.set, NULL); row; row = opt_next(&server.set, row))
        if (row->type != OPT_LINE)
            assert_int_equal(opt_origin(&server.set, row) == OPT_BY_PEER,
                             (row->flags & OPT_SHARED) != 0);
}

/* Whatever comes, every field is one that the rows allow. */
static void check_fields(const struct requests *w)
{
    assert_in_range(w->count, 0, 1000);
    assert_true(w->index >= -1 && w->index <= 65535);
    assert_true(w->pair[0] >= -1 && w->pair[0] <= 255);
    assert_true(w->pair[1] >= -1 && w->pair[1] <= 255);
    assert_true(w->sizes.min <= w->sizes.max && w->sizes.max <= UINT32_MAX);
    assert_in_range(w->choice, 0, 3);
    assert_non_null(memchr(w->text, '\0', sizeof w->text));
    for (const char *at = w->text; *at; at++)
        assert_true((unsigned char)*at >= ' ' && *at != 127);
}

static size_t mutate(char *bytes, size_t length, size_t room, uint64_t *seed)
{
    size_t at = length ? next_random(seed) % length : 0, n = 1 + next_random(seed) % 700;
    switch (next_random(seed) % 4) {
    case 0:
        bytes[at] = (char)next_random(seed);
        return length;
    case 1: /* a piece taken out */
        n = n % 20 < length - at ? n % 20 : length - at;
        memmove(bytes + at, bytes + at + n, length - at - n);
        return length - n;
    case 2: /* one character many times over */
        n = length + n < room ? n : room - length;
        memmove(bytes + at + n, bytes + at, length - at);
        memset(bytes + at, bytes[at], n);
        return length + n;
    default:
        return at;
    }
}

static void opt_decode_survives_hostile_text(void **state)
{
    uint64_t seed = 3;
    int taken = 0, refused = 0;
    (void)state;
    for (int i = 0; i < 20000; i++) {
        struct requests w;
        struct opt_set set = bind_rows(&w);
        struct msg text = {0};
        assign_at_random(&set, &seed, false);
        assert_int_equal(opt_encode(&set, &text), 0);
        if (i % 8 == 0) /* noise from end to end */
            for (size_t at = 0; at < text.length; at++)
                text.bytes[at] = (char)next_random(&seed);
        for (uint64_t times = next_random(&seed) % 6; times; times--)
            text.length = mutate(text.bytes, text.length, MSG_MAX - 1, &seed);
        struct msg *exact = exact_msg(text.bytes, text.length);
        int status = opt_decode(&set, exact);
        free(exact);
        check_fields(&w);
        assert_true(status <= 0);
        taken += !status;
        refused += status < 0;
    }
    /* Otherwise this would try only one of the two ways. */
    assert_true(taken > 0 && refused > 1000);
}

static void opt_decode_refuses_a_value_with_a_nul_in_it(void **state)
{
    struct requests w;
    struct opt_set set = bind_rows(&w);
    struct msg text = {0};
    (void)state;
    assert_int_equal(opt_encode(&set, &text), 0);
    char *digit = strstr(text.bytes, "count=100");
    assert_non_null(digit);
    digit[7] = '\0'; /* count=1\0000 is no number */
    assert_int_equal(opt_decode(&set, &text), -EINVAL);
}

static void opt_decode_calls_a_value_that_is_too_long_invalid(void **state)
{
    struct requests w;
    struct opt_set set = bind_rows(&w);
    struct msg text = {0};
    (void)state;
    assert_int_equal(msg_print(&text, "text=%*s\n", 4000, "x"), 0);
    assert_int_equal(opt_encode(&set, &text), 0);
    assert_int_equal(opt_decode(&set, &text), -EINVAL);
    assert_contains(fail_reason(), "text");
}

/* A row with a default always has a value: text without it is not from our opt_encode, and taking
 * "nothing" for it would leave a size of 0 and a count below its minimum. */
static void opt_decode_misses_a_row_that_has_a_default(void **state)
{
    static const char *const lines[] = {"count=100\n", "sizes=8\n", "time=2000000ps\n",
                                        "text=here\n"};
    (void)state;
    for (size_t i = 0; i < LENGTH(lines); i++) {
        struct requests w;
        struct opt_set set = bind_rows(&w);
        struct msg text = {0};
        assert_int_equal(opt_encode(&set, &text), 0);
        char *line = strstr(text.bytes, lines[i]);
        assert_non_null(line);
        memmove(line, line + strlen(lines[i]), strlen(line + strlen(lines[i])) + 1);
        text.length -= strlen(lines[i]);
        if (opt_decode(&set, &text) != -EINVAL)
            fail_msg("taken without %s", lines[i]);
    }
}

/* ---- help ---- */

static const struct opt_words write_words = {.Op = "Write", .ops = "writes"};

static void opt_expand_replaces_its_three_marks(void **state)
{
    const struct opt row = {.name = "size", .fallback = "8"}, none = {.name = "open"};
    const struct opt nested = {.name = "nested", .fallback = "{Op}"};
    char text[64];
    (void)state;
    opt_expand(&row, "{Op} size of {ops} (default: {default})", &write_words, text, sizeof text);
    assert_string_equal(text, "Write size of writes (default: 8)");
    opt_expand(&row, "{op} {other} {Op {}}", &write_words, text, sizeof text);
    assert_string_equal(text, "{op} {other} {Op {}}");
    opt_expand(&none, "<{default}>", &write_words, text, sizeof text);
    assert_string_equal(text, "<>");
    opt_expand(&row, "<{Op}{ops}>", NULL, text, sizeof text);
    assert_string_equal(text, "<>");
    opt_expand(&nested, "{default}", &write_words, text, sizeof text);
    assert_string_equal(text, "{Op}");
}

static void opt_expand_stays_within_its_room(void **state)
{
    const struct opt row = {.name = "size", .fallback = "12345678"};
    (void)state;
    for (size_t room = 1; room < 20; room++) {
        char *text = malloc(room);
        assert_non_null(text);
        opt_expand(&row, "ab {default}", &write_words, text, room);
        assert_int_equal(strlen(text), room - 1 < 11 ? room - 1 : 11);
        assert_memory_equal(text, "ab 12345678", strlen(text));
        free(text);
    }
}

static void opt_help_is_laid_out_in_two_columns(void **state)
{
    /* clang-format off */
    static const struct opt help_rows[] = {
        {.letter = 'd', .name = "device", .type = OPT_TEXT, .word = "DEV", .fallback = "cxi0",
         .help = "Device name (default: \"{default}\")"},
        {.name = "warmup", .type = OPT_NUMBER, .word = "N", .help = "First line of {ops}\nsecond"},
        {.letter = 'f', .name = "flag", .type = OPT_FLAG, .help = "{Op}"},
        {.name = "eleven-char", .type = OPT_NUMBER, .word = "WORD", .help = "beside"},
        {.name = "twelve-chars", .type = OPT_NUMBER, .word = "WORD", .help = "below\nit"},
        {.name = "local", .type = OPT_FLAG, .flags = OPT_OURS, .help = "Ours"},
        {.type = OPT_LINE, .label = "No option"},
        {0}};
    /* clang-format on */
    const struct opt_set set = {.rows = help_rows};
    struct msg text = {0};
    (void)state;
    assert_int_equal(opt_help(&set, &write_words, 0, &text), 0);
    assert_string_equal(text.bytes, "  -d, --device=DEV        Device name (default: \"cxi0\")\n"
                                    "      --warmup=N          First line of writes\n"
                                    "                          second\n"
                                    "  -f, --flag              Write\n"
                                    "      --eleven-char=WORD  beside\n"
                                    "      --twelve-chars=WORD\n"
                                    "                          below\n"
                                    "                          it\n");
    msg_print(&text, "Ours:\n");
    assert_int_equal(opt_help(&set, &write_words, OPT_OURS, &text), 0);
    assert_string_equal(text.bytes, "Ours:\n      --local             Ours\n");
    msg_print(&text, "%*s", MSG_MAX - 40, "");
    assert_int_equal(opt_help(&set, &write_words, 0, &text), -EMSGSIZE);
}

static void opt_amounts_are_a_list_some_of_it_several_times(void **state)
{
    static const struct opt list[] = {
        {.name = "pieces", .type = OPT_AMOUNTS, .min = 1, .max = 8192}, {0}};
    static const char *const good[][2] = {
        {"8", "8"}, {"8,1K", "8,1024"}, {"3:2,1", "3,3,1"}, {"8192:1", "8192"}};
    static const char *const bad[] = {
        "",          ",",    "8,",  ",8",
        "0",         "8193", "1:0", "1:33",
        "1:16,2:17", "1:x",  "1:",  ":2",
        "1:2:3",     "8;9",  "1 ",  "11111111111111111111111111111111111111"};
    struct opt_amounts found;
    struct opt_set set = {.rows = list, .base = &found};
    char text[512];
    (void)state;
    for (size_t i = 0; i < LENGTH(good); i++) {
        assert_int_equal(opt_assign(&set, list, good[i][0], OPT_BY_USER), 0);
        opt_format(list, &found, text, sizeof text);
        assert_string_equal(text, good[i][1]);
    }
    for (size_t i = 0; i < LENGTH(bad); i++)
        if (!opt_assign(&set, list, bad[i], OPT_BY_USER))
            fail_msg("\"%s\" was taken", bad[i]);
    assert_int_equal(opt_assign(&set, list, "8191:32", OPT_BY_USER), 0);
    opt_format(list, &found, text, sizeof text);
    assert_int_equal(strlen(text), 32 * 5 - 1);
    opt_clear(&set, list, OPT_BY_DEFAULT);
    assert_int_equal(found.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opt_defaults_fill_every_row),
        cmocka_unit_test(opt_rows_of_another_tool_are_not_there),
        cmocka_unit_test(opt_assign_takes_every_good_value_and_formats_it_as_typed),
        cmocka_unit_test(opt_assign_refuses_every_bad_value_and_says_what_is_accepted),
        cmocka_unit_test(opt_assign_refuses_control_characters_and_does_not_repeat_them),
        cmocka_unit_test(opt_parse_takes_a_value_in_all_four_forms),
        cmocka_unit_test(opt_parse_takes_flags_alone_and_bundled),
        cmocka_unit_test(opt_parse_keeps_words_wherever_they_stand),
        cmocka_unit_test(opt_parse_takes_nothing_for_an_option_behind_two_dashes),
        cmocka_unit_test(opt_parse_lets_the_last_one_win),
        cmocka_unit_test(opt_parse_takes_what_follows_for_the_value_even_with_a_dash),
        cmocka_unit_test(opt_parse_names_the_option_whose_value_is_missing),
        cmocka_unit_test(opt_parse_suggests_the_option_that_was_meant),
        cmocka_unit_test(opt_parse_takes_the_beginning_of_a_name_that_no_other_has),
        cmocka_unit_test(opt_parse_does_not_take_a_letter_for_a_long_name),
        cmocka_unit_test(opt_parse_survives_a_very_long_word),
        cmocka_unit_test(opt_parse_says_which_word_is_one_too_many),
        cmocka_unit_test(a_row_may_have_its_own_words_for_a_bad_value),
        cmocka_unit_test(opt_parse_list_sets_rows_from_the_tail_of_a_device_name),
        cmocka_unit_test(opt_parse_list_speaks_of_settings_without_dashes),
        cmocka_unit_test(opt_parse_list_refuses_what_it_does_not_know),
        cmocka_unit_test(opt_encode_leaves_out_what_is_not_given_or_not_shared),
        cmocka_unit_test(opt_decode_gets_back_what_was_encoded),
        cmocka_unit_test(opt_decode_refuses_bad_values_with_the_sentence_of_the_row),
        cmocka_unit_test(opt_decode_leaves_lines_with_a_full_stop_to_the_caller),
        cmocka_unit_test(opt_decode_leaves_open_what_the_client_left_open),
        cmocka_unit_test(opt_decode_takes_rows_away_from_the_user),
        cmocka_unit_test(opt_decode_survives_hostile_text),
        cmocka_unit_test(opt_decode_refuses_a_value_with_a_nul_in_it),
        cmocka_unit_test(opt_decode_calls_a_value_that_is_too_long_invalid),
        cmocka_unit_test(opt_decode_misses_a_row_that_has_a_default),
        cmocka_unit_test(opt_expand_replaces_its_three_marks),
        cmocka_unit_test(opt_expand_stays_within_its_room),
        cmocka_unit_test(opt_amounts_are_a_list_some_of_it_several_times),
        cmocka_unit_test(opt_help_is_laid_out_in_two_columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
