/* SPDX-License-Identifier: BSD-3-Clause */
/* Text of others: what a terminal would obey is gone, letters of all languages stay. */
#include "core/core.h"
#include "support/unit.h"

#include <stdio.h>
#include <string.h>

static const char *cleaned(const char *text)
{
    static char clean[256];
    snprintf(clean, sizeof clean, "%s", text);
    text_clean(clean);
    return clean;
}

static void controls_are_replaced(void **state)
{
    (void)state;
    assert_string_equal(cleaned("\033[2J\177\a"), "?[2J??");
    assert_string_equal(cleaned("two\nlines\tand\rmore"), "two lines and?more");
    /* C1: CSI as one byte, and in UTF-8, where it is U+009B. */
    assert_string_equal(cleaned("a\x9b"
                                "2Jb"),
                        "a?2Jb");
    assert_string_equal(cleaned("a\xc2\x9b"
                                "2Jb\xc2\x80\xc2\x9f"),
                        "a??2Jb????");
}

static void letters_stay(void **state)
{
    static const char letters[] = "Z\xc3\xbcrich \xc2\xa0 \xe6\x97\xa5\xe6\x9c\xac "
                                  "\xf0\x9f\x98\x80 \xc3\x9b";
    (void)state;
    assert_string_equal(cleaned(letters), letters);
    assert_string_equal(cleaned(""), "");
}

/* Too long, a surrogate, beyond Unicode, cut short. */
static void what_is_not_utf8_is_replaced(void **state)
{
    (void)state;
    assert_string_equal(cleaned("\xc0\x9b"), "??");
    assert_string_equal(cleaned("\xe0\x82\x9b"), "???");
    assert_string_equal(cleaned("\xed\xa0\x80"), "???");
    assert_string_equal(cleaned("\xf4\x90\x80\x80"), "????");
    assert_string_equal(cleaned("\xfe"
                                "a\xe6\x97"),
                        "?a??");
}

static void every_single_byte_is_clean_afterwards(void **state)
{
    (void)state;
    for (int first = 1; first < 256; first++)
        for (int second = 1; second < 256; second++) {
            char text[3] = {(char)first, (char)second, '\0'};
            text_clean(text);
            for (const char *at = text; *at; at += text_character(at)) {
                assert_true(text_character(at));
                assert_false(text_control(at));
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(controls_are_replaced),
        cmocka_unit_test(letters_stay),
        cmocka_unit_test(what_is_not_utf8_is_replaced),
        cmocka_unit_test(every_single_byte_is_clean_afterwards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
