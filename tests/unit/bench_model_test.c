/* SPDX-License-Identifier: BSD-3-Clause */
/* The plain model of the atomics that --verify trusts, against expectations written out by hand,
 * and the vocabulary of atomics against the table of the specification. */
#include "bench/run.h"
#include "support/unit.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

/* ---- integers ---- */

static uint64_t apply(enum amo_op op, enum amo_type type, enum amo_compare compare, uint64_t target,
                      uint64_t operand, uint64_t compare_with)
{
    unsigned char t[16] = {0}, beyond[16];
    uint64_t result = 0;
    size_t size = amo_size(type);
    memset(beyond, 0x5a, sizeof beyond);
    memset(t, 0x5a, sizeof t);
    memcpy(t, &target, size);
    model_apply(op, type, compare, t, &operand, &compare_with);
    memcpy(&result, t, size);
    assert_memory_equal(t + size, beyond, sizeof t - size);
    return result;
}

#define M UINT64_MAX

static void integer_ops_give_what_the_specification_says(void **state)
{
    static const struct {
        enum amo_op op;
        enum amo_type type;
        uint64_t target, operand, compare, result;
    } cases[] = {
        {AMO_MIN, AMO_INT8, 0x01, 0x80, 0, 0x80},
        {AMO_MIN, AMO_UINT8, 0x01, 0x80, 0, 0x01},
        {AMO_MAX, AMO_INT8, 0x01, 0x80, 0, 0x01},
        {AMO_MAX, AMO_UINT8, 0x01, 0x80, 0, 0x80},
        {AMO_MIN, AMO_INT16, 0, 0xffff, 0, 0xffff},
        {AMO_MIN, AMO_UINT16, 0, 0xffff, 0, 0},
        {AMO_MAX, AMO_INT32, 0x80000000, 0x7fffffff, 0, 0x7fffffff},
        {AMO_MAX, AMO_UINT32, 0x80000000, 0x7fffffff, 0, 0x80000000},
        {AMO_MIN, AMO_INT64, 5, M, 0, M},
        {AMO_MIN, AMO_UINT64, 5, M, 0, 5},
        {AMO_MAX, AMO_INT64, 5, M, 0, 5},
        {AMO_MAX, AMO_UINT64, 5, M, 0, M},
        {AMO_SUM, AMO_INT8, 0x7f, 0x01, 0, 0x80},
        {AMO_SUM, AMO_UINT8, 0xff, 0x02, 0, 0x01},
        {AMO_SUM, AMO_INT16, 0x7fff, 0x0001, 0, 0x8000},
        {AMO_SUM, AMO_UINT16, 0xffff, 0xffff, 0, 0xfffe},
        {AMO_SUM, AMO_INT32, 0x80000000, 0xffffffff, 0, 0x7fffffff},
        {AMO_SUM, AMO_UINT32, 0xffffffff, 1, 0, 0},
        {AMO_SUM, AMO_INT64, INT64_MAX, 1, 0, UINT64_C(1) << 63},
        {AMO_SUM, AMO_UINT64, M, 3, 0, 2},
        {AMO_LOR, AMO_INT32, 0, 0, 0, 0},
        {AMO_LOR, AMO_INT32, 8, 0, 0, 1},
        {AMO_LOR, AMO_UINT8, 0, 0x80, 0, 1},
        {AMO_LAND, AMO_INT16, 8, 4, 0, 1},
        {AMO_LAND, AMO_UINT64, 8, 0, 0, 0},
        {AMO_LXOR, AMO_INT8, 8, 4, 0, 0},
        {AMO_LXOR, AMO_UINT32, 8, 0, 0, 1},
        {AMO_BOR, AMO_UINT8, 0x0c, 0x0a, 0, 0x0e},
        {AMO_BAND, AMO_UINT16, 0x0c, 0x0a, 0, 0x08},
        {AMO_BXOR, AMO_INT64, 0x0c, 0x0a, 0, 0x06},
        {AMO_SWAP, AMO_INT32, 1, 0xdeadbeef, 0, 0xdeadbeef},
        {AMO_AXOR, AMO_UINT8, 0xff, 0x01, 0x0f, 0xf1},
        {AMO_AXOR, AMO_INT64, 1, 2, 3, 2},
    };
    (void)state;
    for (size_t i = 0; i < LENGTH(cases); i++)
        assert_int_equal(apply(cases[i].op, cases[i].type, AMO_EQ, cases[i].target,
                               cases[i].operand, cases[i].compare),
                         cases[i].result);
}

/* c REL t: which of the six hold for c below, the same as and above t. */
static void the_compare_operand_is_on_the_left(void **state)
{
    static const bool holds[AMO_COMPARES][3] = {
        [AMO_EQ] = {false, true, false}, [AMO_NE] = {true, false, true},
        [AMO_LE] = {true, true, false},  [AMO_LT] = {true, false, false},
        [AMO_GE] = {false, true, true},  [AMO_GT] = {false, false, true}};
    (void)state;
    for (unsigned compare = 0; compare < AMO_COMPARES; compare++)
        for (unsigned i = 0; i < 3; i++)
            for (unsigned type = AMO_INT8; type <= AMO_UINT64; type++)
                assert_int_equal(apply(AMO_CSWAP, type, compare, 5, 9, 4 + i),
                                 holds[compare][i] ? 9 : 5);
    /* -1 is below 1 where there is a sign, and above where there is none. */
    assert_int_equal(apply(AMO_CSWAP, AMO_INT16, AMO_LT, 1, 9, 0xffff), 9);
    assert_int_equal(apply(AMO_CSWAP, AMO_UINT16, AMO_LT, 1, 9, 0xffff), 1);
    assert_int_equal(apply(AMO_CSWAP, AMO_INT64, AMO_GT, 1, 9, M), 1);
    assert_int_equal(apply(AMO_CSWAP, AMO_UINT64, AMO_GT, 1, 9, M), 9);
}

/* ---- real numbers ---- */

static uint64_t double_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static uint64_t float_bits(float value)
{
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    return bits;
}

/* Both real types at once. */
static void expect_real(enum amo_op op, enum amo_compare compare, double t, double x, double c,
                        double result)
{
    assert_int_equal(apply(op, AMO_DOUBLE, compare, double_bits(t), double_bits(x), double_bits(c)),
                     double_bits(result));
    assert_int_equal(apply(op, AMO_FLOAT, compare, float_bits((float)t), float_bits((float)x),
                           float_bits((float)c)),
                     float_bits((float)result));
}

static void a_nan_changes_nothing_in_min_and_max(void **state)
{
    double nan = (double)NAN, inf = (double)INFINITY;
    (void)state;
    expect_real(AMO_MIN, AMO_EQ, 1, nan, 0, 1);
    expect_real(AMO_MAX, AMO_EQ, 1, nan, 0, 1);
    expect_real(AMO_MIN, AMO_EQ, nan, 1, 0, nan);
    expect_real(AMO_MAX, AMO_EQ, nan, inf, 0, nan);
    expect_real(AMO_MIN, AMO_EQ, 1, -inf, 0, -inf);
    expect_real(AMO_MAX, AMO_EQ, 1, inf, 0, inf);
    expect_real(AMO_MIN, AMO_EQ, 2, 1, 0, 1);
    expect_real(AMO_MAX, AMO_EQ, 2, 1, 0, 2);
    /* The two zeroes are equal: neither is below. */
    expect_real(AMO_MIN, AMO_EQ, 0.0, -0.0, 0, 0.0);
    expect_real(AMO_MAX, AMO_EQ, -0.0, 0.0, 0, -0.0);
}

static void real_numbers_are_compared_as_ieee_says(void **state)
{
    double nan = (double)NAN;
    (void)state;
    expect_real(AMO_CSWAP, AMO_EQ, 0.0, 7, -0.0, 7);
    expect_real(AMO_CSWAP, AMO_NE, 0.0, 7, -0.0, 0.0);
    expect_real(AMO_CSWAP, AMO_LE, 0.0, 7, -0.0, 7);
    expect_real(AMO_CSWAP, AMO_LT, 2, 7, 1, 7);
    expect_real(AMO_CSWAP, AMO_GT, 2, 7, 1, 2);
    expect_real(AMO_CSWAP, AMO_GE, 2, 7, 2, 7);
    expect_real(AMO_CSWAP, AMO_NE, nan, 7, nan, 7);
    for (unsigned compare = AMO_EQ; compare < AMO_COMPARES; compare++)
        if (compare != AMO_NE) {
            expect_real(AMO_CSWAP, compare, nan, 7, nan, nan);
            expect_real(AMO_CSWAP, compare, 1, 7, nan, 1);
        }
}

static void real_sums_and_swaps_are_exact(void **state)
{
    double inf = (double)INFINITY;
    (void)state;
    expect_real(AMO_SUM, AMO_EQ, 1.5, 2.25, 0, 3.75);
    expect_real(AMO_SUM, AMO_EQ, -0.0, -0.0, 0, -0.0);
    expect_real(AMO_SUM, AMO_EQ, -0.0, 0.0, 0, 0.0);
    expect_real(AMO_SUM, AMO_EQ, inf, 1, 0, inf);
    expect_real(AMO_SWAP, AMO_EQ, 1, -0.0, 0, -0.0);
    assert_int_equal(apply(AMO_SUM, AMO_DOUBLE, 0, 1, 1, 0), 2); /* denormals */
    assert_int_equal(apply(AMO_SUM, AMO_FLOAT, 0, 1, 1, 0), 2);
    assert_int_equal(apply(AMO_SUM, AMO_FLOAT, 0, float_bits(FLT_MAX), float_bits(FLT_MAX), 0),
                     float_bits(INFINITY));
    assert_int_equal(apply(AMO_SUM, AMO_FLOAT, 0, float_bits(16777216), float_bits(1), 0),
                     float_bits(16777216));
}

static void complex_numbers_are_added_and_compared_part_by_part(void **state)
{
    float f[2] = {1, 2};
    double d[2] = {1, -0.0}, nan[2] = {(double)NAN, 0}, zero[2] = {1, 0}, other[2] = {1, 3};
    (void)state;
    model_apply(AMO_SUM, AMO_FLOAT_COMPLEX, 0, f, (float[2]){10, 20}, f);
    assert_true(f[0] == 11 && f[1] == 22);
    model_apply(AMO_CSWAP, AMO_FLOAT_COMPLEX, AMO_EQ, f, (float[2]){1, 1}, (float[2]){11, 23});
    assert_true(f[0] == 11 && f[1] == 22);
    model_apply(AMO_CSWAP, AMO_FLOAT_COMPLEX, AMO_NE, f, (float[2]){1, 1}, (float[2]){11, 23});
    assert_true(f[0] == 1 && f[1] == 1);
    model_apply(AMO_CSWAP, AMO_DOUBLE_COMPLEX, AMO_EQ, d, other, zero);
    assert_true(d[0] == 1 && d[1] == 3);
    model_apply(AMO_CSWAP, AMO_DOUBLE_COMPLEX, AMO_EQ, nan, other, nan);
    assert_true(isnan(nan[0]));
    model_apply(AMO_CSWAP, AMO_DOUBLE_COMPLEX, AMO_NE, nan, other, nan);
    assert_true(nan[0] == 1 && nan[1] == 3);
    model_apply(AMO_SWAP, AMO_DOUBLE_COMPLEX, 0, d, zero, other);
    assert_true(d[0] == 1 && d[1] == 0);
    model_apply(AMO_SUM, AMO_DOUBLE_COMPLEX, 0, d, other, other);
    assert_true(d[0] == 2 && d[1] == 3);
}

static void a_128_bit_swap_compares_all_its_bits(void **state)
{
    uint64_t t[2] = {1, 2}, x[2] = {7, 8};
    (void)state;
    model_apply(AMO_CSWAP, AMO_UINT128, AMO_EQ, t, x, (uint64_t[2]){1, 3});
    assert_true(t[0] == 1 && t[1] == 2);
    model_apply(AMO_CSWAP, AMO_UINT128, AMO_EQ, t, x, (uint64_t[2]){0, 2});
    assert_true(t[0] == 1 && t[1] == 2);
    model_apply(AMO_CSWAP, AMO_UINT128, AMO_EQ, t, x, (uint64_t[2]){1, 2});
    assert_true(t[0] == 7 && t[1] == 8);
}

static void numbers_become_values_of_their_type(void **state)
{
    uint64_t wide[2] = {M, M};
    double d[2] = {9, 9};
    float f[2] = {9, 9};
    unsigned char small[2] = {0xee, 0xee};
    (void)state;
    model_number(AMO_INT8, 100, small);
    assert_true(small[0] == 100 && small[1] == 0xee);
    model_number(AMO_FLOAT, 3, f);
    assert_true(f[0] == 3 && f[1] == 9);
    model_number(AMO_FLOAT_COMPLEX, 4, f);
    assert_true(f[0] == 4 && f[1] == 0);
    model_number(AMO_DOUBLE_COMPLEX, 5, d);
    assert_true(d[0] == 5 && d[1] == 0);
    model_number(AMO_UINT128, 6, wide);
    assert_true(wide[0] == 6 && wide[1] == 0);
    wide[1] = M;
    model_number(AMO_UINT64, 7, wide);
    assert_true(wide[0] == 7 && wide[1] == M);
}

/* ---- the vocabulary ---- */

/* The specification's table: a line a type, a column an op, in the order of the enum. n: how many
 * of EQ NE LE LT GE GT its CSWAP takes. */
static const struct {
    const char *type;
    size_t size;
    const char *ops;
    unsigned n;
} table[AMO_TYPES] = {
    /*                       MIN MAX SUM LOR LAND BOR BAND LXOR BXOR SWAP CSWAP AXOR */
    [AMO_INT8] = {"INT8", 1, "xxxxxxxxxxxx", 6},
    [AMO_UINT8] = {"UINT8", 1, "xxxxxxxxxxxx", 6},
    [AMO_INT16] = {"INT16", 2, "xxxxxxxxxxxx", 6},
    [AMO_UINT16] = {"UINT16", 2, "xxxxxxxxxxxx", 6},
    [AMO_INT32] = {"INT32", 4, "xxxxxxxxxxxx", 6},
    [AMO_UINT32] = {"UINT32", 4, "xxxxxxxxxxxx", 6},
    [AMO_INT64] = {"INT64", 8, "xxxxxxxxxxxx", 6},
    [AMO_UINT64] = {"UINT64", 8, "xxxxxxxxxxxx", 6},
    [AMO_FLOAT] = {"FLOAT", 4, "xxx......xx.", 6},
    [AMO_DOUBLE] = {"DOUBLE", 8, "xxx......xx.", 6},
    [AMO_FLOAT_COMPLEX] = {"FLOAT_COMPLEX", 8, "..x......xx.", 2},
    [AMO_DOUBLE_COMPLEX] = {"DOUBLE_COMPLEX", 16, "..x......xx.", 2},
    [AMO_UINT128] = {"UINT128", 16, "..........x.", 1},
};

static void which_op_exists_for_which_type_is_as_specified(void **state)
{
    (void)state;
    for (unsigned type = 0; type < AMO_TYPES; type++) {
        assert_string_equal(amo_type_names[type], table[type].type);
        assert_int_equal(amo_size(type), table[type].size);
        for (unsigned op = 0; op < AMO_OPS; op++)
            for (unsigned compare = 0; compare < AMO_COMPARES; compare++) {
                bool valid =
                    table[type].ops[op] == 'x' && (op != AMO_CSWAP || compare < table[type].n);
                assert_int_equal(amo_valid(op, type, compare), valid);
            }
    }
    assert_null(amo_type_names[AMO_TYPES]);
}

static void what_is_beyond_the_vocabulary_is_not_valid(void **state)
{
    (void)state;
    assert_false(amo_valid(AMO_OPS, AMO_UINT64, AMO_EQ));
    assert_false(amo_valid(AMO_SUM, AMO_TYPES, AMO_EQ));
    assert_false(amo_valid(AMO_CSWAP, AMO_UINT64, AMO_COMPARES));
    assert_false(amo_valid(255, 255, 255));
    assert_true(amo_valid(AMO_SUM, AMO_UINT64, AMO_COMPARES)); /* counts for CSWAP alone */
}

static void names_are_as_they_are_typed(void **state)
{
    static const char *const ops[] = {"MIN",  "MAX",  "SUM",  "LOR",  "LAND",  "BOR",
                                      "BAND", "LXOR", "BXOR", "SWAP", "CSWAP", "AXOR"};
    static const char *const compares[] = {"EQ", "NE", "LE", "LT", "GE", "GT"};
    (void)state;
    for (unsigned op = 0; op < AMO_OPS; op++)
        assert_string_equal(amo_op_names[op], ops[op]);
    for (unsigned compare = 0; compare < AMO_COMPARES; compare++)
        assert_string_equal(amo_compare_names[compare], compares[compare]);
    assert_null(amo_op_names[AMO_OPS]);
    assert_null(amo_compare_names[AMO_COMPARES]);
}

static void the_ops_of_a_type_are_listed_in_words(void **state)
{
    char text[128];
    (void)state;
    amo_list_ops(AMO_UINT128, text, sizeof text);
    assert_string_equal(text, "CSWAP EQ");
    amo_list_ops(AMO_DOUBLE_COMPLEX, text, sizeof text);
    assert_string_equal(text, "SUM, SWAP, CSWAP EQ/NE");
    amo_list_ops(AMO_FLOAT, text, sizeof text);
    assert_string_equal(text, "MIN, MAX, SUM, SWAP, CSWAP");
    amo_list_ops(AMO_INT8, text, sizeof text);
    assert_string_equal(text, "MIN, MAX, SUM, LOR, LAND, BOR, BAND, LXOR, BXOR, SWAP, CSWAP, AXOR");
}

static void a_list_of_ops_stays_within_its_room(void **state)
{
    char text[64];
    (void)state;
    for (unsigned type = 0; type < AMO_TYPES; type++)
        for (size_t room = 1; room < sizeof text; room++) {
            memset(text, 0x5a, sizeof text);
            amo_list_ops(type, text, room);
            assert_true(strnlen(text, room) < room);
            for (size_t i = room; i < sizeof text; i++)
                assert_int_equal(text[i], 0x5a);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integer_ops_give_what_the_specification_says),
        cmocka_unit_test(the_compare_operand_is_on_the_left),
        cmocka_unit_test(a_nan_changes_nothing_in_min_and_max),
        cmocka_unit_test(real_numbers_are_compared_as_ieee_says),
        cmocka_unit_test(real_sums_and_swaps_are_exact),
        cmocka_unit_test(complex_numbers_are_added_and_compared_part_by_part),
        cmocka_unit_test(a_128_bit_swap_compares_all_its_bits),
        cmocka_unit_test(numbers_become_values_of_their_type),
        cmocka_unit_test(which_op_exists_for_which_type_is_as_specified),
        cmocka_unit_test(what_is_beyond_the_vocabulary_is_not_valid),
        cmocka_unit_test(names_are_as_they_are_typed),
        cmocka_unit_test(the_ops_of_a_type_are_listed_in_words),
        cmocka_unit_test(a_list_of_ops_stays_within_its_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
