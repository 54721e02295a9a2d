/* SPDX-License-Identifier: BSD-3-Clause */
/* What atomics should do, as plainly as C can say it, one value at a time and without any
 * atomicity: --verify holds a fabric against this. */
#include "bench/run.h"

#include <complex.h>
#include <string.h>

/* operand and compare_with in the words of the operation: c REL t, c on the left. */
#define COMPARES(compare, c, t)                                                                    \
    ((compare) == AMO_EQ   ? (c) == (t)                                                            \
     : (compare) == AMO_NE ? (c) != (t)                                                            \
     : (compare) == AMO_LE ? (c) <= (t)                                                            \
     : (compare) == AMO_LT ? (c) < (t)                                                             \
     : (compare) == AMO_GE ? (c) >= (t)                                                            \
                           : (c) > (t))

#define LOAD(type)                                                                                 \
    type t, x, c;                                                                                  \
    memcpy(&t, target, sizeof t);                                                                  \
    memcpy(&x, operand, sizeof x);                                                                 \
    memcpy(&c, compare_with, sizeof c)

/* Arithmetic is done on the unsigned twin, where wrapping around is defined. */
#define INTEGER(name, type, twin)                                                                  \
    static void name(enum amo_op op, enum amo_compare compare, void *target, const void *operand,  \
                     const void *compare_with)                                                     \
    {                                                                                              \
        LOAD(type);                                                                                \
        twin ut = (twin)t, ux = (twin)x, uc = (twin)c;                                             \
        if (op == AMO_MIN)                                                                         \
            t = x < t ? x : t;                                                                     \
        else if (op == AMO_MAX)                                                                    \
            t = x > t ? x : t;                                                                     \
        else if (op == AMO_SUM)                                                                    \
            t = (type)(twin)(ut + ux);                                                             \
        else if (op == AMO_LOR)                                                                    \
            t = t != 0 || x != 0;                                                                  \
        else if (op == AMO_LAND)                                                                   \
            t = t != 0 && x != 0;                                                                  \
        else if (op == AMO_LXOR)                                                                   \
            t = (t != 0) != (x != 0);                                                              \
        else if (op == AMO_BOR)                                                                    \
            t = (type)(twin)(ut | ux);                                                             \
        else if (op == AMO_BAND)                                                                   \
            t = (type)(twin)(ut & ux);                                                             \
        else if (op == AMO_BXOR)                                                                   \
            t = (type)(twin)(ut ^ ux);                                                             \
        else if (op == AMO_SWAP)                                                                   \
            t = x;                                                                                 \
        else if (op == AMO_CSWAP)                                                                  \
            t = COMPARES(compare, c, t) ? x : t;                                                   \
        else                                                                                       \
            t = (type)(twin)((ut & (twin)~uc) ^ ux);                                               \
        memcpy(target, &t, sizeof t);                                                              \
    }

#define FLOATING(name, type)                                                                       \
    static void name(enum amo_op op, enum amo_compare compare, void *target, const void *operand,  \
                     const void *compare_with)                                                     \
    {                                                                                              \
        LOAD(type);                                                                                \
        bool replaces = op == AMO_SWAP || (op == AMO_MIN && x < t) || (op == AMO_MAX && x > t) ||  \
                        (op == AMO_CSWAP && COMPARES(compare, c, t));                              \
        if (op == AMO_SUM) {                                                                       \
            t += x;                                                                                \
            memcpy(target, &t, sizeof t);                                                          \
        } else if (replaces) {                                                                     \
            memcpy(target, operand, sizeof t);                                                     \
        }                                                                                          \
    }

#define COMPLEX(name, type)                                                                        \
    static void name(enum amo_op op, enum amo_compare compare, void *target, const void *operand,  \
                     const void *compare_with)                                                     \
    {                                                                                              \
        LOAD(type complex);                                                                        \
        bool equal = creal(c) == creal(t) && cimag(c) == cimag(t);                                 \
        if (op == AMO_SUM) {                                                                       \
            t += x;                                                                                \
            memcpy(target, &t, sizeof t);                                                          \
        } else if (op == AMO_SWAP || equal == (compare == AMO_EQ)) {                               \
            memcpy(target, operand, sizeof t);                                                     \
        }                                                                                          \
    }

INTEGER(model_int8, int8_t, uint8_t)
INTEGER(model_uint8, uint8_t, uint8_t)
INTEGER(model_int16, int16_t, uint16_t)
INTEGER(model_uint16, uint16_t, uint16_t)
INTEGER(model_int32, int32_t, uint32_t)
INTEGER(model_uint32, uint32_t, uint32_t)
INTEGER(model_int64, int64_t, uint64_t)
INTEGER(model_uint64, uint64_t, uint64_t)
FLOATING(model_float, float)
FLOATING(model_double, double)
COMPLEX(model_float_complex, float)
COMPLEX(model_double_complex, double)

static void model_uint128(enum amo_op op, enum amo_compare compare, void *target,
                          const void *operand, const void *compare_with)
{
    (void)op, (void)compare;
    if (memcmp(target, compare_with, 16) == 0)
        memcpy(target, operand, 16);
}

void model_apply(enum amo_op op, enum amo_type type, enum amo_compare compare, void *target,
                 const void *operand, const void *compare_with)
{
    static void (*const models[AMO_TYPES])(enum amo_op, enum amo_compare, void *, const void *,
                                           const void *) = {
        [AMO_INT8] = model_int8,
        [AMO_UINT8] = model_uint8,
        [AMO_INT16] = model_int16,
        [AMO_UINT16] = model_uint16,
        [AMO_INT32] = model_int32,
        [AMO_UINT32] = model_uint32,
        [AMO_INT64] = model_int64,
        [AMO_UINT64] = model_uint64,
        [AMO_FLOAT] = model_float,
        [AMO_DOUBLE] = model_double,
        [AMO_FLOAT_COMPLEX] = model_float_complex,
        [AMO_DOUBLE_COMPLEX] = model_double_complex,
        [AMO_UINT128] = model_uint128,
    };
    models[type](op, compare, target, operand, compare_with);
}

void model_number(enum amo_type type, unsigned number, void *value)
{
    float single = (float)number;
    double twice = number;
    uint64_t whole = number;
    memset(value, 0, amo_size(type));
    switch (type) {
    case AMO_FLOAT:
    case AMO_FLOAT_COMPLEX:
        memcpy(value, &single, sizeof single);
        break;
    case AMO_DOUBLE:
    case AMO_DOUBLE_COMPLEX:
        memcpy(value, &twice, sizeof twice);
        break;
    default:
        memcpy(value, &whole, amo_size(type) < sizeof whole ? amo_size(type) : sizeof whole);
    }
}
