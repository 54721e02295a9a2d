/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages: what fits, and what is read back from them, hostile or not. */
#include "core/core.h"
#include "support/exact_msg.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void msg_print_replaces_and_blob_add_appends(void **state)
{
    struct msg msg = {0};
    (void)state;
    assert_int_equal(msg_print(&msg, "size=%d\n", 8), 0);
    assert_int_equal(msg_add(&msg, "port=%s\n", "1"), 0);
    assert_string_equal(msg.bytes, "size=8\nport=1\n");
    assert_int_equal(msg.length, strlen(msg.bytes));
    assert_int_equal(msg_print(&msg, "x"), 0);
    assert_string_equal(msg.bytes, "x");
    assert_int_equal(msg.length, 1);
    assert_int_equal(msg_print(&msg, "%s", ""), 0);
    assert_int_equal(msg.length, 0);
}

static void msg_takes_one_byte_less_than_its_room_and_keeps_what_it_has(void **state)
{
    struct msg msg = {0};
    (void)state;
    assert_int_equal(msg_print(&msg, "%*s", MSG_MAX - 1, "end"), 0);
    assert_int_equal(msg.length, MSG_MAX - 1);
    assert_int_equal(msg_add(&msg, "%s", ""), 0);
    assert_int_equal(msg_add(&msg, "x"), -EMSGSIZE);
    assert_contains(fail_reason(), "8191");
    assert_int_equal(msg.length, MSG_MAX - 1);
    assert_string_equal(msg.bytes + MSG_MAX - 4, "end");
    assert_int_equal(msg_print(&msg, "%*s", MSG_MAX, "end"), -EMSGSIZE);
    assert_int_equal(msg.length, 0);
    assert_string_equal(msg.bytes, "");
}

static void msg_value_finds_whole_keys_at_the_start_of_lines(void **state)
{
    struct msg msg = {0};
    char value[32] = "";
    (void)state;
    msg_print(&msg, "xkey=1\nkeys=2\nkey\nkey=3=4\nkey=5\nempty=\nlast=end");
    assert_int_equal(msg_value(&msg, "key", value, sizeof value), 0);
    assert_string_equal(value, "3=4");
    assert_int_equal(msg_value(&msg, "empty", value, sizeof value), 0);
    assert_string_equal(value, "");
    assert_int_equal(msg_value(&msg, "last", value, sizeof value), 0);
    assert_string_equal(value, "end");
    fail(-EIO, "untouched");
    assert_int_equal(msg_value(&msg, "ke", value, sizeof value), -ENOENT);
    assert_int_equal(msg_value(&msg, "end", value, sizeof value), -ENOENT);
    assert_string_equal(value, "end");
    assert_string_equal(fail_reason(), "untouched");
}

static void msg_value_fits_the_room_or_says_its_length(void **state)
{
    struct msg msg = {0};
    char value[6];
    (void)state;
    msg_print(&msg, "a=12345\nb=123456\n");
    assert_int_equal(msg_value(&msg, "a", value, sizeof value), 0);
    assert_string_equal(value, "12345");
    assert_int_equal(msg_value(&msg, "b", value, sizeof value), -EMSGSIZE);
    assert_string_equal(fail_reason(), "b: a value of 6 bytes");
}

static void msg_value_reads_nothing_behind_the_length(void **state)
{
    static const char text[] = "aa=11\nbb=22";
    (void)state;
    for (size_t length = 0; length < sizeof text; length++) {
        char value[16];
        struct msg *msg = exact_msg(text, length);
        int status = msg_value(msg, "bb", value, sizeof value);
        assert_int_equal(status, length > 8 ? 0 : -ENOENT);
        if (!status)
            assert_int_equal(strlen(value), length > 9 ? length - 9 > 2 ? 2 : length - 9 : 0);
        free(msg);
    }
}

static void msg_number_is_decimal_or_hexadecimal_and_nothing_else(void **state)
{
    /* clang-format off */
    static const struct {
        const char *text;
        int status;
        uint64_t number;
    } cases[] = {
        {"0", 0, 0}, {"42", 0, 42}, {"18446744073709551615", 0, UINT64_MAX}, {"0x0", 0, 0},
        {"0xff", 0, 255}, {"0xffffffffffffffff", 0, UINT64_MAX}, {"", -EPROTO, 0},
        {"-1", -EPROTO, 0}, {" 1", -EPROTO, 0}, {"1 ", -EPROTO, 0}, {"1K", -EPROTO, 0},
        {"0x", -EPROTO, 0}, {"0xg", -EPROTO, 0}, {"0x1 ", -EPROTO, 0}, {"ff", -EPROTO, 0},
        {"18446744073709551616", -EPROTO, 0}, {"0x10000000000000000", -EPROTO, 0},
        {"0000000000000000000000000000000000001", -EMSGSIZE, 0}};
    /* clang-format on */
    (void)state;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct msg msg = {0};
        uint64_t number = 7;
        msg_print(&msg, "before=1\nn=%s\nafter=2\n", cases[i].text);
        int status = msg_number(&msg, "n", &number);
        if (status != cases[i].status || (!status && number != cases[i].number))
            fail_msg("\"%s\": status %d, number %llu", cases[i].text, status,
                     (unsigned long long)number);
    }
}

static void msg_number_says_which_key_is_missing_or_wrong(void **state)
{
    struct msg msg = {0};
    uint64_t number;
    (void)state;
    msg_print(&msg, "pid=x7\n");
    assert_int_equal(msg_number(&msg, "nic", &number), -EPROTO);
    assert_contains(fail_reason(), "nic is missing");
    assert_int_equal(msg_number(&msg, "pid", &number), -EPROTO);
    assert_contains(fail_reason(), "pid");
    assert_contains(fail_reason(), "x7");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(msg_print_replaces_and_blob_add_appends),
        cmocka_unit_test(msg_takes_one_byte_less_than_its_room_and_keeps_what_it_has),
        cmocka_unit_test(msg_value_finds_whole_keys_at_the_start_of_lines),
        cmocka_unit_test(msg_value_fits_the_room_or_says_its_length),
        cmocka_unit_test(msg_value_reads_nothing_behind_the_length),
        cmocka_unit_test(msg_number_is_decimal_or_hexadecimal_and_nothing_else),
        cmocka_unit_test(msg_number_says_which_key_is_missing_or_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
