/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers with units, as they are typed and as they are printed. */
#include "core/core.h"
#include "support/unit.h"

#include <errno.h>
#include <string.h>

/* What a converter takes, and what it must refuse without touching the number or the sentence. */
struct good_unit {
    const char *text;
    uint64_t number;
};

static void check_units(int (*convert)(const char *, uint64_t *), const struct good_unit *good,
                        size_t n_good, const char *const *bad, size_t n_bad)
{
    uint64_t number;
    for (size_t i = 0; i < n_good; i++)
        if (convert(good[i].text, &number) || number != good[i].number)
            fail_msg("\"%s\" was not taken", good[i].text);
    fail(-EIO, "no sentence");
    number = 12345;
    for (size_t i = 0; i < n_bad; i++)
        if (convert(bad[i], &number) != -EINVAL || number != 12345)
            fail_msg("\"%s\" was taken as %llu", bad[i], (unsigned long long)number);
    assert_string_equal(fail_reason(), "no sentence");
}

/* clang-format off */
static void unit_number_takes_digits_and_nothing_else(void **state)
{
    static const struct good_unit good[] = {
        {"0", 0}, {"8", 8}, {"007", 7}, {"4294967296", 4294967296},
        {"18446744073709551615", UINT64_MAX}};
    static const char *const bad[] = {
        "", "8x", "x8", "-1", "+1", " 8", "8 ", "8\n", "8K", "0x8", "1e3", "1.0", "1,0", "1 000",
        "18446744073709551616", "18446744073709551625", "28446744073709551615",
        "99999999999999999999999"};
    (void)state;
    check_units(unit_number, good, LENGTH(good), bad, LENGTH(bad));
}

static void unit_bytes_scales_by_1024_and_never_wraps(void **state)
{
    static const struct good_unit good[] = {
        {"0", 0}, {"8", 8}, {"1K", 1024}, {"3M", 3 << 20}, {"4G", UINT64_C(4) << 30}, {"0G", 0},
        {"18446744073709551615", UINT64_MAX}, {"18014398509481983K", UINT64_MAX - 1023},
        {"17592186044415M", UINT64_MAX - 1048575}, {"17179869183G", UINT64_MAX - 1073741823}};
    static const char *const bad[] = {
        "", "K", "8x", "8k", "8KB", "8KiB", "8 K", "8T", "8KK", "1.5M", "-1K", " 8", "8 ", "K8",
        "18446744073709551616", "18014398509481984K", "17592186044416M", "17179869184G"};
    (void)state;
    check_units(unit_bytes, good, LENGTH(good), bad, LENGTH(bad));
}

static void unit_time_needs_its_unit_and_never_wraps(void **state)
{
    static const struct good_unit good[] = {
        {"0", 0}, {"0s", 0}, {"250ps", 250}, {"40ns", 40000}, {"2us", 2000000},
        {"1ms", 1000000000}, {"3s", 3000000000000}, {"18446744073709551615ps", UINT64_MAX},
        {"18446744073709551ns", 18446744073709551000U}, {"18446744s", 18446744000000000000U}};
    static const char *const bad[] = {
        "", "2", "00", "us", "2 us", " 2us", "2us ", "2US", "2min", "2.5us", "-2us", "2uss", "2u",
        "18446744073709551616ps", "18446744073709552ns", "18446745s"};
    (void)state;
    check_units(unit_time, good, LENGTH(good), bad, LENGTH(bad));
}
/* clang-format on */

static void unit_us_has_two_decimals_and_three_below_one(void **state)
{
    /* clang-format off */
    static const struct {
        double us;
        const char *text;
    } cases[] = {
        {0, "0.000"}, {0.0004, "0.000"}, {0.0006, "0.001"}, {0.02, "0.020"}, {0.5, "0.500"},
        {0.9994, "0.999"}, {0.999499999, "0.999"}, {0.9995, "1.00"}, {0.9996, "1.00"},
        {0.99999, "1.00"}, {1, "1.00"}, {1.004, "1.00"}, {1.006, "1.01"}, {2.0715, "2.07"},
        {12.344, "12.34"}, {12.346, "12.35"}, {999.999, "1000.00"}, {1e6, "1000000.00"}};
    /* clang-format on */
    (void)state;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        char text[32];
        unit_us(cases[i].us, text, sizeof text);
        assert_string_equal(text, cases[i].text);
    }
}

/* A table has no place for "1.000": what rounds up to 1 counts as 1. */
static void unit_us_never_prints_one_with_three_decimals(void **state)
{
    (void)state;
    for (uint64_t ps = 990000; ps < 1010000; ps++) {
        char text[32];
        unit_us((double)ps / 1e6, text, sizeof text);
        if (strcmp(text, "1.000") == 0 || strlen(text) != (text[0] == '0' ? 5 : 4))
            fail_msg("%llu ps: \"%s\"", (unsigned long long)ps, text);
    }
}

static void unit_bytes_text_says_bytes_as_people_do(void **state)
{
    /* clang-format off */
    static const struct {
        uint64_t bytes;
        const char *text;
    } cases[] = {
        {0, "0 B"}, {512, "512 B"}, {1023, "1023 B"}, {1024, "1.0 KiB"}, {1536, "1.5 KiB"},
        {3 << 20, "3.0 MiB"}, {UINT64_C(4) << 30, "4.0 GiB"}, {UINT64_C(5) << 40, "5.0 TiB"},
        {UINT64_C(1) << 50, "1024.0 TiB"}, {UINT64_MAX, "16777216.0 TiB"}};
    /* clang-format on */
    (void)state;
    for (size_t i = 0; i < LENGTH(cases); i++) {
        char text[32];
        unit_bytes_text(cases[i].bytes, text, sizeof text);
        assert_string_equal(text, cases[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unit_number_takes_digits_and_nothing_else),
        cmocka_unit_test(unit_bytes_scales_by_1024_and_never_wraps),
        cmocka_unit_test(unit_time_needs_its_unit_and_never_wraps),
        cmocka_unit_test(unit_us_has_two_decimals_and_three_below_one),
        cmocka_unit_test(unit_us_never_prints_one_with_three_decimals),
        cmocka_unit_test(unit_bytes_text_says_bytes_as_people_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
